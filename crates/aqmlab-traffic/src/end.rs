//! The two ends of a flow.

/// One end of a flow, and of its class's path.
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
