//! The interface between a session and its host: ends, positions in the streams, and the applications'
//! actions.

use aqmlab_units::{Bytes, Instant, Span};
use schemars::JsonSchema;
use serde::Serialize;

/// One of the two ends of a flow. A flow's ends are also the ends of the path of its class.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum End {
    /// The end that opens connections and sends, where the class's path begins.
    Client = 0,
    /// The end that accepts connections and receives, where the path ends.
    Server = 1,
}

impl End {
    /// Both ends, in the order of their numbers.
    pub const ALL: [End; 2] = [End::Client, End::Server];

    /// Returns the opposite end.
    pub const fn other(self) -> End {
        match self {
            End::Client => End::Server,
            End::Server => End::Client,
        }
    }

    /// Returns the word that messages and recordings use for this end.
    pub const fn name(self) -> &'static str {
        match self {
            End::Client => "client",
            End::Server => "server",
        }
    }
}

/// An application's action on its byte stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Act {
    /// It writes this many bytes.
    Write(u64),
    /// It writes this many bytes and closes.
    WriteLast(u64),
    /// It always has data to send from now on.
    WriteEndlessly,
    /// It withdraws the unsent part of its endless data.
    Withdraw,
}

impl Act {
    /// Returns the action of writing the last `bytes` of a stream, after which the end `closes` at once or
    /// waits until the other end has closed.
    pub(crate) const fn write_last(bytes: u64, closes: bool) -> Act {
        if closes { Act::WriteLast(bytes) } else { Act::Write(bytes) }
    }
}

/// The actions to take now, and the session's next wake-up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Step {
    /// Action at the end that opened the connection.
    pub client: Option<Act>,
    /// Action at the other end.
    pub server: Option<Act>,
    /// When to call [`Session::on_timer`](crate::Session::on_timer). At most one such call is
    /// pending.
    pub wake_at: Option<Instant>,
    /// The exchange that has just been completed.
    pub done: Option<ExchangeDone>,
    /// Whether another exchange has also been completed; if so, the host must call the session
    /// again immediately.
    pub more: bool,
}

impl Step {
    /// Returns the step of one end that acts.
    pub(crate) fn of(end: End, act: Act) -> Step {
        match end {
            End::Client => Step { client: Some(act), ..Step::default() },
            End::Server => Step { server: Some(act), ..Step::default() },
        }
    }

    /// Returns whether the end at which the last data has just arrived closes now, before the end that sent
    /// the data. The stream to this end is then complete although no FIN has arrived.
    pub fn receiver_closes(&self) -> bool {
        self.done.is_some_and(|done| done.last) && (self.client.is_some() || self.server.is_some())
    }
}

/// One exchange, with the pause before it and the delay within it. In a list, the request or the response
/// may be missing, but not both, and an exchange without a response is never followed by one without a
/// request.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PlannedExchange {
    /// Pause at the client, from the last byte of the previous response to this request or, if the
    /// previous exchange has no response, from that exchange's request; zero for the first exchange, and if
    /// there is no request.
    pub pause: Span,
    /// Bytes of the request; zero if the server sends of its own accord.
    pub request: u64,
    /// Delay at the server, from the last byte of the request to the response or, if there is no
    /// request, from the server's previous response (for the first exchange, from the opening of the
    /// connection); zero if there is no response.
    pub server_delay: Span,
    /// Bytes of the response; zero if the client does not wait for one.
    pub response: u64,
    /// Whether this is the last exchange on the connection.
    pub last: bool,
}

impl PlannedExchange {
    /// Returns the bytes that this end sends.
    pub const fn bytes(&self, end: End) -> u64 {
        match end {
            End::Client => self.request,
            End::Server => self.response,
        }
    }

    /// Returns the end that sends first.
    pub const fn first_sends(&self) -> End {
        if self.request > 0 { End::Client } else { End::Server }
    }

    /// Returns the end at which the exchange's last byte arrives.
    pub const fn completes_at(&self) -> End {
        if self.response > 0 { End::Client } else { End::Server }
    }
}

/// A completed exchange: the last byte of the response has arrived or, if there is no response, of
/// the request. The duration of the exchange is the time since `began`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExchangeDone {
    /// Its number on its connection, from 0. The duration of exchange 0 includes the connection
    /// set-up.
    pub number: u32,
    /// Bytes that the client wrote.
    pub request: Bytes,
    /// Bytes of the server's response.
    pub response: Bytes,
    /// When the client passed its request to TCP or, if there is no request, the server its response; for
    /// the first exchange, when the connection opened.
    pub began: Instant,
    /// Whether this exchange opened the connection.
    pub opened_connection: bool,
    /// Whether this is the last exchange on the connection.
    pub last: bool,
}

/// The positions in the two byte streams at one end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StreamPosition {
    /// Bytes delivered to this end's application, in order.
    pub delivered: u64,
    /// Bytes written by this end and acknowledged.
    pub acked: u64,
}
