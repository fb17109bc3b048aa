//! Where frames enter and leave the network.

/// Which end of its flows a host is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum End {
    /// Opens connections and sends: the beginning of the class's path.
    Client = 0,
    /// Accepts and receives: its end.
    Server = 1,
}

impl End {
    /// Both, in the order of their numbers.
    pub const ALL: [End; 2] = [End::Client, End::Server];

    /// The end at the other side.
    pub const fn other(self) -> End {
        match self {
            End::Client => End::Server,
            End::Server => End::Client,
        }
    }

    /// The word in messages and recordings.
    pub const fn name(self) -> &'static str {
        match self {
            End::Client => "client",
            End::Server => "server",
        }
    }
}

/// A door of the network: the host of one traffic class at one end of its path.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Entry {
    /// The class: an index into the plan's classes.
    pub class: usize,
    /// Which of its hosts.
    pub side: End,
}

impl Entry {
    /// Its number among all doors: two for each class.
    pub const fn number(self) -> usize {
        2 * self.class + self.side as usize
    }

    /// The door of that number.
    pub const fn of_number(number: usize) -> Self {
        Entry { class: number / 2, side: if number.is_multiple_of(2) { End::Client } else { End::Server } }
    }

    /// The host at the other end of the class's path.
    pub const fn opposite(self) -> Self {
        Entry { class: self.class, side: self.side.other() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_name_doors() {
        for number in 0..10 {
            let entry = Entry::of_number(number);
            assert_eq!(entry.number(), number);
            assert_eq!(entry.opposite().number(), number ^ 1);
        }
    }
}
