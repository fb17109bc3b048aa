//! What the application learns from its endpoint.

/// Something that happened to the byte stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum StreamEvent {
    /// The handshake is complete.
    Established,
    /// This many further bytes have arrived in order.
    Delivered(u64),
    /// This many further bytes have been acknowledged by the other side.
    Acked(u64),
    /// The other side has sent all it will send, and all of it has been delivered.
    PeerClosed,
    /// Both directions have been closed and acknowledged, and TIME-WAIT is over.
    Closed,
    /// The other side reset the connection.
    Reset,
    /// This side gave up: too many retransmissions, or the application aborted.
    Aborted,
}

/// Events not yet asked for. Amounts add up, so that the memory is constant however late the host asks.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Pending {
    delivered: u64,
    acked: u64,
    established: bool,
    peer_closed: bool,
    end: Option<End>,
}

/// How a connection ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    Closed,
    Reset,
    Aborted,
}

impl Pending {
    pub(crate) fn established(&mut self) {
        self.established = true;
    }

    #[inline]
    pub(crate) fn delivered(&mut self, bytes: u64) {
        self.delivered += bytes;
    }

    #[inline]
    pub(crate) fn acked(&mut self, bytes: u64) {
        self.acked += bytes;
    }

    pub(crate) fn peer_closed(&mut self) {
        self.peer_closed = true;
    }

    pub(crate) fn ended(&mut self, end: End) {
        self.end = Some(end);
    }

    /// The next event, in the order of a connection's life.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<StreamEvent> {
        if core::mem::take(&mut self.established) {
            return Some(StreamEvent::Established);
        }
        match core::mem::take(&mut self.delivered) {
            0 => {}
            bytes => return Some(StreamEvent::Delivered(bytes)),
        }
        match core::mem::take(&mut self.acked) {
            0 => {}
            bytes => return Some(StreamEvent::Acked(bytes)),
        }
        if core::mem::take(&mut self.peer_closed) {
            return Some(StreamEvent::PeerClosed);
        }
        self.end.take().map(|end| match end {
            End::Closed => StreamEvent::Closed,
            End::Reset => StreamEvent::Reset,
            End::Aborted => StreamEvent::Aborted,
        })
    }
}
