//! One endpoint of a connection, composed of its parts.
//!
//! [`input`] processes arriving segments, [`predicted`] processes the most frequent ones on a fast
//! path, and [`output`] decides what is sent. [`selective`] contains the parts that differ with
//! SACK, and [`by_segments`] those that differ for a sender that tracks each outstanding segment.
//! [`by_packets`] is the counterpart for QUIC's rules. [`accurate`] contains what AccECN adds to both
//! directions. [`paced`] decides when such a sender's segments may leave, [`timers`] handles the expiry
//! of timers, and [`info`] is what a host can see.

mod accurate;
mod by_packets;
mod by_segments;
mod info;
mod input;
mod output;
mod paced;
mod predicted;
mod selective;
mod timers;

use alloc::boxed::Box;

use aqmlab_units::{Bytes, Instant, Rate, Span};

use crate::bits::Bits;
use crate::congestion::{Algorithm, Outstanding, PathModel, Window};
use crate::connection::State;
use crate::controller::Controller;
use crate::counters::{Counters, Tally};
use crate::ecn::{AccEcnOption, ClassicEcn};
use crate::event::{Ending, Pending, StreamEvent};
use crate::profile::Profile;
use crate::receiver::Receiver;
use crate::rto::{Clock, RtoTimer};
use crate::sack::{Options, Sack};
use crate::segment::{Extras, Segment};
use crate::stamps::Stamps;
use crate::trouble::Troubles;

pub use info::{Info, Reaction};

/// More bytes than will ever be sent, for an application that always has data to send.
pub const ENDLESS: u64 = u64::MAX;

/// What a side does to open the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// sends the SYN
    Active,
    /// waits for it
    Passive,
}

/// The value that means no limit on the number of segments that one call may release.
const NO_BURST_LIMIT: u32 = u32::MAX;

/// One endpoint of a TCP connection.
///
/// Internally, sequence numbers are 64-bit offsets: 0 is the SYN, and 1 is the first byte.
///
/// A simulation has many endpoints, so their size matters, and the fields that are needed together
/// to process a segment are adjacent: first come those that a receiving endpoint uses, then those
/// that only a sending endpoint uses.
#[derive(Clone, PartialEq, Debug)]
#[repr(C)]
pub struct Endpoint {
    receiver: Receiver,
    /// The lowest offset that has not been acknowledged.
    una: u64,
    /// Distance from `una` to the next offset to send; less than `unacked` after a timeout, when sending
    /// starts over.
    flight: u32,
    /// Distance from `una` to one past the highest offset ever sent.
    unacked: u32,
    /// Receive window of the other side, in bytes.
    peer_window: u32,
    /// Number of segments that may still leave in response to the latest arrival.
    burst: u32,
    tally: Tally,
    events: Pending,
    ecn: ClassicEcn,
    state: State,
    notes: Notes,
    /// True if duplicate ACKs or a timeout have occurred since the last ACK of new data, or if fast
    /// recovery is in progress; `recovery` must then process the next ACK of new data. If there is
    /// a list of segments, true unless the sender is
    /// [settled](crate::recovery::Tracking::is_settled).
    unsettled: bool,
    /// One past the last byte that the application has written; once the application has closed,
    /// the offset of the FIN.
    stream_end: u64,
    rto: RtoTimer,
    window: Window,
    /// When a segment with payload, SYN or FIN was last sent; if `idle_restart` is `ns2`, when data
    /// was last acknowledged; if it is `freebsd`, when a segment last arrived.
    last_activity: Instant,
    troubles: Troubles,
}

const _: () = assert!(size_of::<Endpoint>() <= 160, "an endpoint has outgrown two and a half cache lines");

/// Flags: segments that must be sent before anything else, two facts about the FIN, and two about
/// SACK.
type Notes = Bits;

/// Due: the segment at `una`, regardless of the window.
const RETRANSMISSION: u8 = 1;
/// Due: one new segment beyond the window (limited transmit), if it fits within the window plus one
/// segment per duplicate ACK.
const LIMITED: u8 = 1 << 1;
/// Due: a pure acknowledgment that must leave before any data, such as the last one of the
/// handshake or the one for the segments before a change of CE.
const HANDSHAKE_ACK: u8 = 1 << 2;
/// Due: a RST whose sequence number is that of the next offset to send.
const RESET: u8 = 1 << 3;
/// The next segment is chosen by the scoreboard or, if segments are tracked and there is data, by the list of
/// segments.
const SELECTIVE: u8 = 1 << 6;
/// All flags that may call for something other than ordinary data.
const DUE: u8 = RETRANSMISSION | LIMITED | HANDSHAKE_ACK | RESET | SELECTIVE | REFLECTING;
/// The application has closed: a FIN follows the last byte.
const CLOSING: u8 = 1 << 4;
/// The FIN was sent in a segment without payload.
const LONE_FIN: u8 = 1 << 5;
/// AccECN is in use: each segment is completed with what it says about marks.
const REFLECTING: u8 = 1 << 7;

impl Endpoint {
    /// Creates an endpoint that has not opened a connection yet: CLOSED if active, LISTEN if passive.
    ///
    /// # Panics
    /// If the profile names a congestion control that only kernels have.
    pub fn new(role: Role, profile: &Profile) -> Self {
        assert!(profile.congestion.is_some(), "only kernels have the congestion control of this profile");
        Endpoint {
            receiver: Receiver::new(),
            una: 0,
            flight: 0,
            unacked: 0,
            peer_window: 0,
            burst: NO_BURST_LIMIT,
            tally: Tally::default(),
            events: Pending::default(),
            ecn: ClassicEcn::default(),
            state: match role {
                Role::Active => State::Closed,
                Role::Passive => State::Listen,
            },
            notes: Notes::default(),
            unsettled: false,
            stream_end: 1,
            rto: RtoTimer::new(),
            window: Window::new(profile),
            last_activity: Instant::ZERO,
            troubles: Troubles::new(),
        }
    }

    /// Gives a new endpoint a clock of its own for the ns-2 arithmetic, which is ahead of the clock with the
    /// profile's `tick_phase` by this share of a tick, from 0 to below 1.
    #[must_use]
    pub fn with_clock_ahead(mut self, share: f64) -> Self {
        self.troubles.note().clock = Clock::ahead(share);
        self
    }

    /// Gives a new endpoint a seed for the draws of its congestion control
    /// ([`Profile::needs_seed`]); endpoints with different seeds make different draws.
    pub fn set_seed(&mut self, seed: u64, profile: &Profile) {
        self.troubles.control().set_seed(seed, profile);
    }

    /// Puts another author's controller in the place of the profile's congestion control, before the connection opens.
    ///
    /// # Panics
    /// If the profile has no [`packet_numbers`](Profile::has_packet_numbers).
    pub fn set_controller(&mut self, controller: Box<dyn Controller>, profile: &Profile) {
        assert!(profile.has_packet_numbers(), "a controller needs a sender with packet numbers");
        self.troubles.control().replace(controller);
    }

    fn clock(&self) -> Clock {
        self.troubles.get().clock
    }

    /// Starts to connect: queues the SYN. Does nothing unless the endpoint is new and active.
    pub fn open(&mut self, now: Instant, _profile: &Profile) {
        if self.state == State::Closed && self.sent() == 0 {
            self.state = State::SynSent;
            self.last_activity = now;
        }
    }

    /// Accepts `bytes` more bytes from the application, or an endless stream ([`ENDLESS`]). The application
    /// may call this before the handshake. Calls after [`Endpoint::close`] are ignored.
    pub fn write(&mut self, bytes: u64) {
        if !self.notes.any(CLOSING) {
            self.check_application();
            self.stream_end = self.stream_end.saturating_add(bytes);
            self.burst = NO_BURST_LIMIT;
            self.note_data();
        }
    }

    /// Withdraws the unsent part of an endless write ([`ENDLESS`]); the application may write again
    /// later. Has no effect if only finite amounts were written.
    pub fn withdraw(&mut self) {
        if self.stream_end == ENDLESS {
            self.stream_end = self.sent().max(1);
        }
    }

    /// Ends the application's stream: a FIN follows the last byte written. An endless stream ends with
    /// the last byte sent so far.
    ///
    /// DEVIATES from RFC 9293, 3.10.4: before the handshake, the request is stored and the connection is
    /// kept, so that a workload may write and close as soon as it has opened the connection.
    /// [`Endpoint::abort`] discards the request.
    pub fn close(&mut self) {
        if self.notes.any(CLOSING) {
            return;
        }
        self.withdraw();
        self.notes.set(CLOSING);
        self.burst = NO_BURST_LIMIT;
        self.note_data();
    }

    /// Notes that there is more data to send. If there is a list of segments, the list decides when
    /// it is sent.
    fn note_data(&mut self) {
        if self.troubles.tracking().is_some() {
            self.notes.set(SELECTIVE);
        }
    }

    /// Drops the connection and notifies the other side with a RST.
    pub fn abort(&mut self) {
        if self.state == State::Closed {
            return;
        }
        let unheard = matches!(self.state, State::Listen | State::SynSent | State::TimeWait);
        self.notes.put(RESET, !unheard);
        self.finish(Ending::Aborted);
    }

    /// Returns the next event for the application, or `None` if no event is left.
    #[inline]
    pub fn poll_event(&mut self) -> Option<StreamEvent> {
        self.events.next()
    }

    /// Does the same as [`Endpoint::poll_event`], but discards [`StreamEvent::Delivered`] and
    /// [`StreamEvent::Acked`], for a host that does not need these amounts.
    #[inline]
    pub fn poll_change(&mut self) -> Option<StreamEvent> {
        self.events.next_change()
    }

    /// Returns when the host must call [`Endpoint::on_timer`]: the earliest of the times for
    /// retransmission, for a delayed acknowledgment and for the end of TIME-WAIT.
    #[inline]
    pub fn deadline(&self) -> Option<Instant> {
        let least = self.rto.deadline().min(self.receiver.deadline());
        (least != Instant::FAR_FUTURE).then_some(least)
    }

    /// Returns the counts since the endpoint was created.
    pub fn counters(&self) -> Counters {
        let seldom = &self.troubles.get().counts;
        let first_sent = self.sent().min(self.stream_end).saturating_sub(1);
        let syn = u32::from(self.sent() > 0) + seldom.syn_retransmissions;
        let control = syn + u32::from(self.notes.any(LONE_FIN)) + seldom.control_segments;
        Counters {
            bytes_sent: first_sent + seldom.bytes_repeated,
            bytes_retransmitted: seldom.bytes_retransmitted,
            segments_sent: self.tally.data_segments + self.tally.acks + control,
            data_segments_sent: self.tally.data_segments,
            retransmitted: seldom.retransmitted,
            timeouts: seldom.timeouts,
            fast_retransmits: seldom.fast_retransmits,
            ecn_reductions: seldom.ecn_reductions,
            ecn_waits: seldom.ecn_waits,
            duplicate_acks: seldom.duplicate_acks,
            ce_received: seldom.ce_received,
            acks_sent: self.tally.acks,
            duplicates_received: seldom.duplicates_received,
            multiple_loss_windows: seldom.multiple_loss_windows,
            syn_retransmissions: seldom.syn_retransmissions,
        }
    }

    /// Returns the state of the connection.
    pub fn state(&self) -> State {
        self.state
    }

    /// Returns the congestion window in segments, without the inflation of fast recovery.
    pub fn cwnd(&self) -> f64 {
        self.window.cwnd()
    }

    /// Returns the slow-start threshold in segments; infinity means that there is no limit.
    pub fn ssthresh(&self) -> f64 {
        self.window.ssthresh()
    }

    /// Returns the smoothed round-trip time, once there is a sample.
    pub fn srtt(&self) -> Option<Span> {
        self.rto.srtt()
    }

    /// Returns the retransmission timeout as it would be set now, including back-off and bounds.
    pub fn rto(&self, profile: &Profile) -> Span {
        self.rto.rto(profile)
    }

    /// Returns the amount of data sent and not acknowledged, as the window counts it. After a timeout,
    /// sending starts over at the oldest unacknowledged data, and data beyond the current position counts as
    /// lost.
    pub fn flight(&self) -> Bytes {
        Bytes::new(self.flight.into())
    }

    /// Returns the number of bytes delivered, in order, to the application at this side.
    pub fn delivered(&self) -> Bytes {
        Bytes::new(self.receiver.delivered())
    }

    /// Returns the number of bytes that have arrived at this side, in order or beyond a hole; each
    /// byte counts once.
    pub fn received(&self) -> Bytes {
        Bytes::new(self.receiver.received(&self.troubles))
    }

    /// Returns the number of bytes that the other side has acknowledged.
    pub fn acked(&self) -> Bytes {
        Bytes::new(self.una.min(self.stream_end).saturating_sub(1))
    }

    /// Returns whether the endpoint is in fast recovery.
    pub fn is_recovering(&self) -> bool {
        let tracked = self.troubles.tracking().is_some_and(|tracking| tracking.is_recovering());
        let numbered = self.troubles.get().packets.as_ref().is_some_and(|packets| packets.recovering);
        tracked || numbered || self.troubles.get().recovery.is_recovering()
    }

    /// Returns the options of the `segment` that [`Endpoint::poll_transmit`] has just returned.
    pub fn options(&self, segment: &Segment, profile: &Profile) -> Options {
        if segment.flags.is_numbered() {
            return self.packets().frame.options();
        }
        let reports = segment.sack_len > 0;
        let mut sack = if reports { self.receiver.sack(&self.troubles, profile) } else { Sack::NONE };
        let stamps =
            if segment.extras.has(Extras::STAMPED) { self.troubles.get().stamps } else { Stamps::NONE };
        let mut accurate_ecn = AccEcnOption::NONE;
        if segment.extras.accurate_ecn_len() > 0 {
            sack.truncate(segment.sack_len, profile.sack_overhead);
            accurate_ecn =
                self.troubles.get().accurate.as_ref().map_or(AccEcnOption::NONE, |state| state.option);
        }
        Options { sack, stamps, accurate_ecn }
    }

    /// Returns whether both sides have permitted SACK.
    pub fn uses_sack(&self) -> bool {
        self.receiver.permits_sack()
    }

    /// Returns whether both sides have agreed on ECN.
    pub fn uses_ecn(&self) -> bool {
        self.ecn.agreed() || self.ecn.is_accurate()
    }

    /// Returns the next offset to send.
    #[inline]
    fn next(&self) -> u64 {
        self.una + u64::from(self.flight)
    }

    /// Returns one past the highest offset ever sent.
    #[inline]
    fn sent(&self) -> u64 {
        self.una + u64::from(self.unacked)
    }

    /// Returns the rate at which segments leave, for a congestion control that determines it.
    pub fn pacing_rate(&self, profile: &Profile) -> Option<Rate> {
        self.troubles.get().control.pacing(profile).map(|pacing| pacing.rate)
    }

    /// Returns what the congestion control knows about the path, if it is version 3 of BBR.
    pub fn path_model(&self) -> Option<PathModel> {
        self.troubles.get().control.model()
    }

    /// Returns the window and the algorithm that controls it.
    #[inline(always)]
    fn congestion(&mut self, profile: &Profile) -> (&mut Window, Algorithm<'_>) {
        let Endpoint { window, troubles, .. } = self;
        (window, Algorithm::of(profile, || troubles.control()))
    }

    /// Returns the outstanding data on which the reaction to a congestion signal is based; `flight`
    /// is the number of bytes that the window counts.
    fn outstanding(&self, flight: u32) -> Outstanding {
        Outstanding { flight, inflation: self.troubles.get().recovery.inflation() }
    }

    /// Returns whether our FIN has been acknowledged.
    #[inline]
    fn fin_is_acked(&self) -> bool {
        self.una > self.stream_end
    }

    fn finish(&mut self, end: Ending) {
        self.state = State::Closed;
        self.rto.stop();
        self.receiver.stop(&mut self.troubles);
        self.events.ended(end);
    }

    fn enter(&mut self, now: Instant, state: State, profile: &Profile) {
        if state == self.state {
            return;
        }
        self.state = state;
        match state {
            State::TimeWait => self.rto.arm_for(now, profile.time_wait),
            State::Closed => self.finish(Ending::Closed),
            _ => {}
        }
    }
}
