//! Descriptors of a script, and calls that wait.

use aqmlab_transport::Profile;

use crate::script::{Call, Ns};

/// A descriptor of the script.
#[derive(Clone, Default, Debug)]
pub(crate) struct Socket {
    /// The number of its `listen` call.
    pub listener: Option<usize>,
    /// It belongs to a connection.
    pub connects: bool,
    pub nonblocking: bool,
    pub nodelay: bool,
    /// The congestion control that the application has chosen.
    pub congestion: Option<&'static str>,
    /// Bytes of its receive buffer, twice the number that the application gave (Linux, `SO_RCVBUF`).
    pub receive_buffer: Option<u32>,
}

impl Socket {
    /// Applies what the application has set before the connection.
    pub fn change_profile(&self, profile: &mut Profile) {
        profile.nagle &= !self.nodelay;
    }
}

/// A call that has not returned yet.
#[derive(Clone, Debug)]
pub(crate) struct Blocked {
    pub line: usize,
    pub call: Call,
    pub from: Ns,
    pub until: Ns,
    /// Bytes that a write has already handed over.
    pub done: u64,
}

impl Blocked {
    pub fn is_write(&self) -> bool {
        matches!(self.call.name.as_str(), "write" | "send" | "sendto" | "sendmsg")
    }
}
