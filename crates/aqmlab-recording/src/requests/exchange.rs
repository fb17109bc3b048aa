//! An exchange: a request and its response.

use aqmlab_traffic::Identity;
use aqmlab_units::{Bytes, Instant};

/// A request and its response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exchange {
    /// The class's number.
    pub class: u32,
    /// The connection that carries it: its user, and its number among that user's connections.
    pub of: Identity,
    /// Its number on that connection, starting from 0.
    pub number: u32,
    /// Whether it opens the connection.
    pub opens_connection: bool,
    /// When the client passed the request to TCP.
    pub start: Instant,
    /// Bytes that the client writes.
    pub request: Bytes,
    /// Bytes of the server's response.
    pub response: Bytes,
}

/// How an exchange ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Ending {
    /// The last byte of the response has arrived.
    Completed,
    /// The exchange's connection was reset or given up.
    Failed,
    /// The run is over, or the exchange's class has stopped sending, and the exchange has neither completed
    /// nor failed.
    Censored,
}

impl Ending {
    /// Returns the word that recordings use for this ending.
    pub const fn name(self) -> &'static str {
        match self {
            Ending::Completed => "completed",
            Ending::Failed => "failed",
            Ending::Censored => "censored",
        }
    }
}

/// The identity of an exchange in its class.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct ExchangeId {
    pub of: Identity,
    pub number: u32,
}

impl Exchange {
    /// Returns its identity in its class.
    pub(super) const fn id(&self) -> ExchangeId {
        ExchangeId { of: self.of, number: self.number }
    }
}
