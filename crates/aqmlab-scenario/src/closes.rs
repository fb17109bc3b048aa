//! The end of a connection that closes first.

use aqmlab_traffic::End;
use schemars::JsonSchema;
use serde::Serialize;

/// The end that closes a connection first; the other end then closes, too.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Closes {
    /// The end that sends the last data.
    LastSender,
    /// The client, as soon as the last data has been sent or has arrived.
    Client,
    /// The server, as soon as the last data has been sent or has arrived.
    Server,
    /// The end that closes first in the file; where the file does not say so, the end that sends the last data.
    File,
}

impl Closes {
    /// Returns whether the end that sends the last data closes first.
    pub fn is_last_sender(&self) -> bool {
        *self == Closes::LastSender
    }

    /// Returns the end, if it does not depend on the connection.
    pub(crate) const fn end(self) -> Option<End> {
        match self {
            Closes::Client => Some(End::Client),
            Closes::Server => Some(End::Server),
            Closes::LastSender | Closes::File => None,
        }
    }
}
