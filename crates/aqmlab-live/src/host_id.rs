//! Where frames enter and leave the network.

use aqmlab_network::End;

/// The host of one traffic class at one end of its path, where its frames enter the network and leave it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct HostId {
    /// The class: an index into the plan's classes.
    pub class: usize,
    /// Which of its hosts.
    pub side: End,
}

impl HostId {
    /// Its number among all hosts: two for each class.
    pub const fn number(self) -> usize {
        2 * self.class + self.side as usize
    }

    /// The host of that number.
    pub const fn of_number(number: usize) -> Self {
        HostId { class: number / 2, side: if number.is_multiple_of(2) { End::Client } else { End::Server } }
    }

    /// The host at the other end of the class's path.
    pub const fn opposite(self) -> Self {
        HostId { class: self.class, side: self.side.other() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_name_hosts() {
        for number in 0..10 {
            let entry = HostId::of_number(number);
            assert_eq!(entry.number(), number);
            assert_eq!(entry.opposite().number(), number ^ 1);
        }
    }
}
