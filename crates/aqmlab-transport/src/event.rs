//! Events that an endpoint reports to its application.

use crate::bits::Bits;

/// Something that has happened to the byte stream or to the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum StreamEvent {
    /// The handshake is complete.
    Established,
    /// This many further bytes have arrived in order.
    Delivered(u64),
    /// This many further bytes have been acknowledged by the other side.
    Acked(u64),
    /// The other side has finished sending, and all its data has been delivered.
    PeerClosed,
    /// Both directions have been closed and acknowledged, and TIME-WAIT is over.
    Closed,
    /// The other side reset the connection.
    Reset,
    /// This side gave up, after too many retransmissions or because the application aborted.
    Aborted,
}

/// Events that the host has not fetched yet. Amounts are summed, so these events take the same
/// memory however late the host fetches them. The host must fetch them before an amount reaches 4
/// GiB.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Pending {
    delivered: u32,
    acked: u32,
    /// Events that happen once in a connection's life.
    once: Bits,
}

const ESTABLISHED: u8 = 1;
const PEER_CLOSED: u8 = 1 << 1;
const CLOSED: u8 = 1 << 2;
const RESET: u8 = 1 << 3;
const ABORTED: u8 = 1 << 4;
const ENDS: u8 = CLOSED | RESET | ABORTED;
const ANY_ONCE: u8 = ESTABLISHED | PEER_CLOSED | ENDS;

/// How a connection has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Ending {
    Closed,
    Reset,
    Aborted,
}

impl Pending {
    pub(crate) fn established(&mut self) {
        self.once.set(ESTABLISHED);
    }

    #[inline]
    pub(crate) fn delivered(&mut self, bytes: u32) {
        self.delivered =
            self.delivered.checked_add(bytes).expect("a host must fetch an amount before it reaches 4 GiB");
    }

    #[inline]
    pub(crate) fn acked(&mut self, bytes: u32) {
        self.acked =
            self.acked.checked_add(bytes).expect("a host must fetch an amount before it reaches 4 GiB");
    }

    pub(crate) fn peer_closed(&mut self) {
        self.once.set(PEER_CLOSED);
    }

    pub(crate) fn ended(&mut self, end: Ending) {
        self.once.clear(ENDS);
        self.once.set(match end {
            Ending::Closed => CLOSED,
            Ending::Reset => RESET,
            Ending::Aborted => ABORTED,
        });
    }

    /// Returns the next event, in the order in which these events occur in a connection's life.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<StreamEvent> {
        if self.once.any(ANY_ONCE) { self.next_of_all() } else { self.next_amount() }
    }

    /// Discards the amounts of data, and returns the next event of any other kind.
    #[inline]
    pub(crate) fn next_change(&mut self) -> Option<StreamEvent> {
        (self.delivered, self.acked) = (0, 0);
        if self.once.any(ANY_ONCE) { self.next_of_all() } else { None }
    }

    #[inline]
    fn next_amount(&mut self) -> Option<StreamEvent> {
        if self.delivered > 0 {
            return Some(StreamEvent::Delivered(core::mem::take(&mut self.delivered).into()));
        }
        if self.acked > 0 {
            return Some(StreamEvent::Acked(core::mem::take(&mut self.acked).into()));
        }
        None
    }

    #[cold]
    fn next_of_all(&mut self) -> Option<StreamEvent> {
        if self.once.take(ESTABLISHED) {
            return Some(StreamEvent::Established);
        }
        if let Some(event) = self.next_amount() {
            return Some(event);
        }
        let ends = [
            (PEER_CLOSED, StreamEvent::PeerClosed),
            (CLOSED, StreamEvent::Closed),
            (RESET, StreamEvent::Reset),
            (ABORTED, StreamEvent::Aborted),
        ];
        ends.into_iter().find(|(bit, _)| self.once.take(*bit)).map(|(_, event)| event)
    }
}
