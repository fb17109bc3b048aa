//! The states of a connection.

/// The state of a connection (RFC 9293, section 3.3.2).
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
/// Any state except LISTEN changes to CLOSED on an acceptable RST, on [`crate::Endpoint::abort`], and when
/// the retransmissions are exhausted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// No connection: not yet opened, or ended.
    Closed,
    /// Waiting for a SYN.
    Listen,
    /// SYN sent.
    SynSent,
    /// SYN received and answered.
    SynReceived,
    /// Data may flow both ways.
    Established,
    /// Our FIN has been sent, but not acknowledged.
    FinWait1,
    /// Our FIN has been acknowledged; the other side may still send.
    FinWait2,
    /// The other side has finished; we may still send.
    CloseWait,
    /// Both FINs have been sent; ours has not been acknowledged.
    Closing,
    /// The other side has finished; our FIN has not been acknowledged.
    LastAck,
    /// Both FINs have been acknowledged; the endpoint waits for late segments.
    TimeWait,
}

impl State {
    /// Returns the name of the state in RFC 9293.
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

    /// Returns whether both SYNs have been acknowledged, so that data and FIN may be sent or
    /// outstanding.
    #[inline]
    pub const fn is_synchronised(self) -> bool {
        !matches!(self, State::Closed | State::Listen | State::SynSent | State::SynReceived)
    }

    /// Returns the state that follows when our FIN is first sent.
    pub(crate) const fn fin_sent(self) -> State {
        match self {
            State::Established => State::FinWait1,
            State::CloseWait => State::LastAck,
            other => other,
        }
    }

    /// Returns the state that follows when our FIN is acknowledged.
    pub(crate) const fn fin_acked(self) -> State {
        match self {
            State::FinWait1 => State::FinWait2,
            State::Closing => State::TimeWait,
            State::LastAck => State::Closed,
            other => other,
        }
    }

    /// Returns the state that follows when the other side's FIN and all data before it have
    /// arrived.
    pub(crate) const fn peer_closed(self) -> State {
        match self {
            State::Established => State::CloseWait,
            State::FinWait1 => State::Closing,
            State::FinWait2 => State::TimeWait,
            other => other,
        }
    }
}
