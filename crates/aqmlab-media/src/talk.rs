//! What hosts and the state machines of this crate tell each other.

use aqmlab_traffic::End;
use aqmlab_units::{Bytes, Instant, Span};

/// A datagram to be sent. Each end numbers its own from 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Datagram {
    /// Its number among those of its sender.
    pub number: u64,
    /// Its length at the network layer.
    pub wire_len: Bytes,
    /// Whether it belongs to the media, game or ping; feedback does not.
    pub is_data: bool,
}

/// Something that hosts record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Noticed {
    /// An end captured a frame, or made a message.
    Captured {
        /// The end that receives it.
        to: End,
        /// When.
        at: Instant,
        /// Its size, headers included.
        bytes: Bytes,
    },
    /// All packets of a frame have arrived.
    Complete {
        /// The end that received it.
        to: End,
        /// When it was captured.
        captured: Instant,
        /// The time from then to the arrival of its last packet.
        delay: Span,
        /// Whether that is more than the deadline.
        late: bool,
    },
    /// A frame will never be complete: its sender discarded a part of it, or a packet has been missing for too long.
    Incomplete {
        /// The end that would have received it.
        to: End,
        /// When it was captured.
        captured: Instant,
        /// Whether the sender discarded it.
        discarded: bool,
    },
    /// A packet arrived after the deadline of its frame.
    LatePacket {
        /// The end that received it.
        to: End,
    },
    /// The picture froze.
    Froze {
        /// The end that shows it.
        to: End,
        /// The time between the frames before and after.
        gap: Span,
    },
    /// A request was answered, or has not been answered in time.
    Answered {
        /// The number of the request.
        number: u64,
        /// When it was sent.
        sent: Instant,
        /// Its size and that of the answer.
        sizes: (Bytes, Bytes),
        /// Whether the answer arrived.
        arrived: bool,
    },
}

/// A frame that is neither complete nor lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unfinished {
    /// The end that receives it.
    pub to: End,
    /// When it was captured.
    pub captured: Instant,
    /// The time by which it should be complete.
    pub due: Instant,
}

/// The time after which a datagram is taken to have left the network: the maximum segment lifetime of RFC 9293.
pub(crate) const LIFETIME: Span = Span::s(120);

/// The earlier of two instants.
pub(crate) fn earlier(a: Instant, b: Instant) -> Instant {
    if b < a { b } else { a }
}
