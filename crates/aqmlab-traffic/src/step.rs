//! What passes between a session and its host: at which end, how far the streams have come, and what the applications do then.

use aqmlab_units::{Bytes, Instant, Span};

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

/// What an application does to its byte stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Act {
    /// It writes so many bytes.
    Write(u64),
    /// It writes so many bytes and closes.
    WriteLast(u64),
    /// It has something to send at all times from now on.
    WriteEndlessly,
    /// It takes back what has not been sent yet of what it writes without end.
    Withdraw,
}

/// What happens now, and when the session wants to be woken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Step {
    /// At the end that opened the connection.
    pub client: Option<Act>,
    /// At the other end.
    pub server: Option<Act>,
    /// Call [`Session::on_timer`](crate::Session::on_timer) then. One such instant is to come at most.
    pub wake_at: Option<Instant>,
    /// This exchange is done, just now.
    pub done: Option<ExchangeDone>,
    /// Another one is done as well: the session is to look again at once.
    pub more: bool,
}

/// One exchange as the applications carry it out.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PlannedExchange {
    /// At the client, from the last byte of the response before; zero for the first exchange.
    pub pause: Span,
    /// Bytes, at least one.
    pub request: u64,
    /// At the server, from the last byte of the request to the response.
    pub server_delay: Span,
    /// Bytes, at least one.
    pub response: u64,
    /// No other exchange follows on the connection.
    pub last: bool,
}

/// A request and its response, the last byte of which has arrived. How long that took is the time since `began`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ExchangeDone {
    /// Its number on its connection; the first is 0, and its time includes the set-up of the connection.
    pub number: u32,
    /// What the client wrote.
    pub request: Bytes,
    /// What the server answered.
    pub response: Bytes,
    /// When the client handed its request to TCP.
    pub began: Instant,
    /// Whether it opened the connection.
    pub opened_connection: bool,
    /// No other exchange follows on the connection.
    pub last: bool,
}

/// How far the streams have come at one end, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StreamPosition {
    /// Delivered to this end's application, in order.
    pub delivered: u64,
    /// Of what this end has written, acknowledged.
    pub acked: u64,
}
