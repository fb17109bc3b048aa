//! The states of a connection.

/// Where in its life a connection is (RFC 9293, section 3.3.2).
///
/// ```text
///            open                                  (passive)
///   CLOSED ------------+                            LISTEN
///                      | snd SYN                      | rcv SYN, snd SYN-ACK
///                      v        rcv SYN, snd SYN-ACK  v
///                   SYN-SENT -------------------> SYN-RECEIVED
///      rcv SYN-ACK, snd ACK |                         | rcv ACK of SYN
///                           +-----> ESTABLISHED <-----+
///                        snd FIN |               | rcv FIN, snd ACK
///             +------------------+               +------------------+
///             v                                                     v
///         FIN-WAIT-1 -- rcv FIN, snd ACK --> CLOSING            CLOSE-WAIT
///             | rcv ACK of FIN                  |                   | snd FIN
///             v                                 | rcv ACK of FIN    v
///         FIN-WAIT-2                            |               LAST-ACK
///             | rcv FIN, snd ACK                v                   | rcv ACK of FIN
///             +----------------------------> TIME-WAIT              v
///                                               | time_wait over  CLOSED
///                                               +---------------> CLOSED
/// ```
///
/// Any state but LISTEN falls to CLOSED on an acceptable RST, on [`crate::Endpoint::abort`], and when the
/// retransmissions are exhausted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// No connection: not yet opened, or over.
    Closed,
    /// Waiting for a SYN.
    Listen,
    /// SYN sent.
    SynSent,
    /// SYN received and answered.
    SynReceived,
    /// Data may flow both ways.
    Established,
    /// Our FIN is sent, not yet acknowledged.
    FinWait1,
    /// Our FIN is acknowledged; the other side may still send.
    FinWait2,
    /// The other side is finished; we may still send.
    CloseWait,
    /// Both FINs are sent, ours is not yet acknowledged.
    Closing,
    /// The other side is finished, our FIN is not yet acknowledged.
    LastAck,
    /// Both FINs are acknowledged; waiting for stragglers.
    TimeWait,
}

impl State {
    /// The name in RFC 9293.
    pub const fn name(self) -> &'static str {
        match self {
            State::Closed => "CLOSED",
            State::Listen => "LISTEN",
            State::SynSent => "SYN-SENT",
            State::SynReceived => "SYN-RECEIVED",
            State::Established => "ESTABLISHED",
            State::FinWait1 => "FIN-WAIT-1",
            State::FinWait2 => "FIN-WAIT-2",
            State::CloseWait => "CLOSE-WAIT",
            State::Closing => "CLOSING",
            State::LastAck => "LAST-ACK",
            State::TimeWait => "TIME-WAIT",
        }
    }

    /// Whether both SYNs are acknowledged, so that data and FIN may be sent or may be outstanding.
    #[inline]
    pub const fn is_synchronised(self) -> bool {
        !matches!(self, State::Closed | State::Listen | State::SynSent | State::SynReceived)
    }

    /// After our first FIN has been sent.
    pub(crate) const fn fin_sent(self) -> State {
        match self {
            State::Established => State::FinWait1,
            State::CloseWait => State::LastAck,
            other => other,
        }
    }

    /// After our FIN has been acknowledged.
    pub(crate) const fn fin_acked(self) -> State {
        match self {
            State::FinWait1 => State::FinWait2,
            State::Closing => State::TimeWait,
            State::LastAck => State::Closed,
            other => other,
        }
    }

    /// After the other side's FIN, with all data before it, has arrived.
    pub(crate) const fn peer_closed(self) -> State {
        match self {
            State::Established => State::CloseWait,
            State::FinWait1 => State::Closing,
            State::FinWait2 => State::TimeWait,
            other => other,
        }
    }
}
