//! An exchange: a request and its response.

use aqmlab_traffic::Identity;
use aqmlab_units::{Bytes, Instant};

/// A request and its response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exchange {
    /// The class's number.
    pub class: u32,
    /// The connection that carries it: whose, and which of that user's.
    pub of: Identity,
    /// Its number on that connection, the first is 0.
    pub number: u32,
    /// Whether it opens the connection.
    pub opens_connection: bool,
    /// When the client handed the request to TCP.
    pub start: Instant,
    /// What the client writes.
    pub request: Bytes,
    /// What the server answers.
    pub response: Bytes,
}

/// How an exchange ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Ending {
    /// The last byte of the response has arrived.
    Completed,
    /// Its connection has been reset or given up.
    Failed,
    /// The run is over, or its class has stopped sending, and it has neither been completed nor failed.
    Censored,
}

impl Ending {
    /// The word in recordings.
    pub const fn name(self) -> &'static str {
        match self {
            Ending::Completed => "completed",
            Ending::Failed => "failed",
            Ending::Censored => "censored",
        }
    }
}

/// Which exchange of a class.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ExchangeId {
    pub of: Identity,
    pub number: u32,
}

impl Exchange {
    /// Which of its class it is.
    pub(super) const fn id(&self) -> ExchangeId {
        ExchangeId { of: self.of, number: self.number }
    }
}
