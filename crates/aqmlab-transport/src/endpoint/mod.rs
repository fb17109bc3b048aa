//! One end of a connection: the parts put together.
//!
//! [`input`] takes what arrives, [`output`] decides what leaves, [`timers`] what happens when nothing does.

mod input;
mod output;
mod timers;

use core::num::NonZeroU8;

use aqmlab_units::{Bytes, Instant, Span};

use crate::congestion::Window;
use crate::connection::State;
use crate::counters::Counters;
use crate::ecn::ClassicEcn;
use crate::event::{End, Pending, StreamEvent};
use crate::profile::Profile;
use crate::receiver::Receiver;
use crate::recovery::NewReno;
use crate::rto::RtoTimer;

/// More bytes than will ever be sent: an application that never runs dry.
pub const ENDLESS: u64 = u64::MAX;

/// Which side opens.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// sends the SYN
    Active,
    /// waits for it
    Passive,
}

/// No limit on the segments that one call may release.
const NO_BURST_LIMIT: u32 = u32::MAX;

/// One end of a TCP connection.
///
/// Sequence numbers inside are 64-bit offsets: 0 is the SYN, 1 the first byte.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// Oldest offset not acknowledged.
    una: u64,
    /// Next offset to send; below `sent` after a timeout, when sending starts over.
    next: u64,
    /// One past the highest offset ever sent.
    sent: u64,
    /// One past the last byte the application has written; the FIN's offset once it has closed.
    stream_end: u64,
    window: Window,
    recovery: NewReno,
    rto: RtoTimer,
    receiver: Receiver,
    /// When a segment with payload, SYN or FIN was last sent, or for ns-2 when data was last acknowledged.
    last_activity: Instant,
    events: Pending,
    counters: Counters,
    /// Receive window of the other side, in bytes.
    peer_window: u32,
    /// Own first sequence number.
    initial: u32,
    /// Segments that may still leave because of the latest arrival.
    burst: u32,
    ecn: ClassicEcn,
    state: State,
    due: Due,
    /// The application has closed: a FIN follows the last byte.
    closing: bool,
}

/// What must be sent before anything else.
#[derive(Clone, Copy, Default, Debug)]
struct Due {
    /// The segment at `una`, whatever the window.
    retransmission: bool,
    /// One new segment beyond the window (limited transmit), if it fits within this many segments more.
    limited: Option<NonZeroU8>,
    /// A pure acknowledgment, before any data.
    handshake_ack: bool,
    /// A RST, with the sequence number `next`.
    reset: bool,
}

impl Endpoint {
    /// An endpoint that has not begun: CLOSED if active, LISTEN if passive.
    pub fn new(role: Role, profile: &Profile) -> Self {
        Endpoint {
            una: 0,
            next: 0,
            sent: 0,
            stream_end: 1,
            window: Window::new(profile),
            recovery: NewReno::new(),
            rto: RtoTimer::new(),
            receiver: Receiver::new(),
            last_activity: Instant::ZERO,
            events: Pending::default(),
            counters: Counters::default(),
            peer_window: 0,
            initial: profile.initial_sequence,
            burst: NO_BURST_LIMIT,
            ecn: ClassicEcn::default(),
            state: match role {
                Role::Active => State::Closed,
                Role::Passive => State::Listen,
            },
            due: Due::default(),
            closing: false,
        }
    }

    /// Starts to connect: queues the SYN. Does nothing unless the endpoint is new and active.
    pub fn open(&mut self, now: Instant, _profile: &Profile) {
        if self.state == State::Closed && self.sent == 0 {
            self.state = State::SynSent;
            self.last_activity = now;
        }
    }

    /// The application offers `bytes` more, or [`ENDLESS`]. May come before the handshake. Ignored after
    /// [`Endpoint::close`].
    pub fn write(&mut self, bytes: u64) {
        if !self.closing {
            self.stream_end = self.stream_end.saturating_add(bytes);
            self.burst = NO_BURST_LIMIT;
        }
    }

    /// The application is finished: a FIN follows the last byte written. An endless stream ends with the
    /// last byte sent so far.
    ///
    /// DEVIATES from RFC 9293, 3.10.4: before the handshake the wish is kept instead of forgetting the
    /// connection, so that a workload may write and close as soon as it has opened. [`Endpoint::abort`]
    /// forgets.
    pub fn close(&mut self) {
        if self.closing {
            return;
        }
        if self.stream_end == ENDLESS {
            self.stream_end = self.sent.max(1);
        }
        self.closing = true;
        self.burst = NO_BURST_LIMIT;
    }

    /// Drops the connection and tells the other side with a RST.
    pub fn abort(&mut self) {
        if self.state == State::Closed {
            return;
        }
        self.due.reset = !matches!(self.state, State::Listen | State::SynSent | State::TimeWait);
        self.finish(End::Aborted);
    }

    /// The next thing that the application should know, until `None`.
    #[inline]
    pub fn poll_event(&mut self) -> Option<StreamEvent> {
        self.events.next()
    }

    /// When [`Endpoint::on_timer`] is wanted: the least of retransmission, delayed acknowledgment and
    /// TIME-WAIT.
    #[inline]
    pub fn deadline(&self) -> Option<Instant> {
        let least = self.rto.deadline().min(self.receiver.deadline());
        (least != Instant::FAR_FUTURE).then_some(least)
    }

    /// Counts since the start.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The state of the connection.
    pub fn state(&self) -> State {
        self.state
    }

    /// The congestion window in segments, without the inflation of fast recovery.
    pub fn cwnd(&self) -> f64 {
        self.window.cwnd()
    }

    /// The slow-start threshold in segments.
    pub fn ssthresh(&self) -> f64 {
        self.window.ssthresh()
    }

    /// The smoothed round-trip time, once there is a sample.
    pub fn srtt(&self) -> Option<Span> {
        self.rto.srtt()
    }

    /// The retransmission timeout as it would be set now, backed off and within its bounds.
    pub fn rto(&self, profile: &Profile) -> Span {
        self.rto.rto(profile)
    }

    /// Sent and not acknowledged, as the window counts it: after a timeout sending starts over, and what is
    /// beyond the restart is taken for lost.
    pub fn flight(&self) -> Bytes {
        Bytes::new(self.outstanding())
    }

    /// Bytes handed to the application here, in order.
    pub fn delivered(&self) -> Bytes {
        Bytes::new(self.receiver.delivered())
    }

    /// Bytes that the other side has acknowledged.
    pub fn acked(&self) -> Bytes {
        Bytes::new(self.una.min(self.stream_end).saturating_sub(1))
    }

    /// Is the endpoint in fast recovery?
    pub fn is_recovering(&self) -> bool {
        self.recovery.is_recovering()
    }

    /// Have both sides agreed on ECN?
    pub fn uses_ecn(&self) -> bool {
        self.ecn.agreed()
    }

    #[inline]
    fn outstanding(&self) -> u64 {
        self.next - self.una
    }

    /// Is the endpoint in the state after its FIN was acknowledged?
    #[inline]
    fn fin_is_acked(&self) -> bool {
        self.una > self.stream_end
    }

    fn finish(&mut self, end: End) {
        self.state = State::Closed;
        self.rto.stop();
        self.receiver.stop();
        self.events.ended(end);
    }

    fn enter(&mut self, now: Instant, state: State, profile: &Profile) {
        if state == self.state {
            return;
        }
        self.state = state;
        match state {
            State::TimeWait => self.rto.arm_for(now, profile.time_wait),
            State::Closed => self.finish(End::Closed),
            _ => {}
        }
    }
}
