//! The state of a sender that tracks each outstanding segment.

use alloc::boxed::Box;

use aqmlab_units::{Instant, Span};

use super::pace::Pace;
use super::prr::Prr;
use super::segments::{Found, Segments};
use super::usage::Usage;
use crate::congestion::Window;
use crate::profile::{Profile, RttArithmetic};
use crate::rto::Deviation;
use crate::stamps::{Stamp, is_before, stamp};

/// TLP.max_ack_delay (RFC 8985, section 7.2).
const MAX_ACK_DELAY: Span = Span::ms(200);
/// The probe timeout while no round-trip time has been measured (RFC 8985, section 7.2).
const FIRST_PROBE: Span = Span::s(1);

/// Returns the longest time for which the other side is expected to delay an acknowledgment. Linux uses its
/// minimum timeout, which by default has the same value as [`MAX_ACK_DELAY`].
fn longest_ack_delay(profile: &Profile) -> Span {
    match profile.rtt_arithmetic {
        RttArithmetic::Linux => profile.min_rto,
        RttArithmetic::Rfc6298 | RttArithmetic::Ns2 => MAX_ACK_DELAY,
    }
}

/// The sender's reaction to congestion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    /// No reaction.
    Open,
    /// The window decreases because of a mark, or because of a loss that a probe has repaired.
    Reduction,
    /// The sender repairs losses that acknowledgments have reported: fast recovery.
    Recovery,
    /// The sender repairs segments that a timeout has declared lost.
    Loss,
}

/// The purpose of the timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Timer {
    /// The retransmission timeout (RFC 6298).
    Timeout,
    /// The time at which segments that have so far been considered reordered count as lost (RFC
    /// 8985, section 6.2, step 5).
    Reordering,
    /// The probe timeout (RFC 8985, section 7.2).
    Probe,
}

/// A probe that has left and has not been answered (RFC 8985, section 7.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Probe {
    /// TLP.end_seq.
    pub end: u64,
    /// TLP.is_retrans.
    pub again: bool,
}

/// The progress in finding out whether a timeout was spurious (RFC 5682, section 3.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Frto {
    /// The timeout is not being examined, and recovery follows RFC 5681.
    Off,
    /// The first acknowledgment after the timeout is awaited (step 2).
    First,
    /// New data has been sent, and the next acknowledgment is awaited (step 3).
    Second,
    /// The same, but lost segments may be sent as well: if a control determines the pacing rate, Linux sends them
    /// once its pacing timer has fired.
    SecondOfPaced,
}

/// Window and `ssthresh` before a reduction.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Undo {
    pub cwnd: f64,
    pub ssthresh: f64,
    /// SND.UNA at the time of the reduction, as long as the reduction may still be undone.
    pub begin: Option<u64>,
    /// Number of segments retransmitted since then and not reported as duplicates; `None` before the
    /// first retransmission (RFC 3708, section 3).
    pub unreported: Option<u32>,
}

impl Undo {
    const fn nothing() -> Self {
        Undo { cwnd: 0.0, ssthresh: 0.0, begin: None, unreported: None }
    }

    /// Records that a segment is retransmitted.
    pub(crate) fn sent_again(&mut self) {
        self.unreported = Some(self.unreported.unwrap_or(0) + 1);
    }

    /// Notes a report that `segments` segments, ending at `to`, have arrived twice.
    pub(crate) fn reported(&mut self, segments: u32, to: u64) {
        if self.begin.is_some_and(|begin| to > begin) {
            self.unreported = self.unreported.map(|left| left.saturating_sub(segments));
        }
    }

    /// Returns whether all retransmissions have turned out to be spurious.
    pub(crate) fn is_due(&self) -> bool {
        self.begin.is_some() && self.unreported == Some(0)
    }
}

/// The first retransmission since no outstanding segment had been retransmitted (RFC 3522, section 3.2, step 2).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct FirstAgain {
    /// When it left.
    stamp: u32,
    /// One past the highest offset sent before.
    sent: u64,
}

/// The segments, the phase and the timers.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Tracking {
    pub segments: Segments,
    pub phase: Phase,
    /// One past the highest offset sent when the phase began: RecoveryPoint.
    pub recover: u64,
    pub prr: Prr,
    pub timer: Timer,
    pub probe: Option<Probe>,
    /// When the timer was last set for a probe that is due before any timeout.
    pub probe_set: Instant,
    /// A probe must leave now, regardless of the window.
    pub probe_due: bool,
    /// The first lost segment must also leave now, regardless of the window (RFC 6675, section 5,
    /// step 4.3).
    pub retransmission_due: bool,
    pub frto: Frto,
    /// End of the latest partial segment.
    pub partial_end: u64,
    pub undo: Undo,
    /// The first retransmission of a segment that is still outstanding, or was when the latest phase ended.
    first_again: Option<FirstAgain>,
    pub deviation: Deviation,
    pub usage: Usage,
    /// The departure times of paced segments and of bursts; `None` until they are first needed.
    pub pace: Option<Box<Pace>>,
}

impl Tracking {
    pub(crate) fn new(rtt: Option<Span>, sent: u64, profile: &Profile) -> Self {
        Tracking {
            segments: Segments::new(rtt),
            phase: Phase::Open,
            recover: 0,
            prr: Prr::begin(1),
            timer: Timer::Timeout,
            probe: None,
            probe_set: Instant::ZERO,
            probe_due: false,
            retransmission_due: false,
            frto: Frto::Off,
            partial_end: 0,
            undo: Undo::nothing(),
            first_again: None,
            deviation: Deviation::new(rtt, sent, profile),
            usage: Usage::new(),
            pace: None,
        }
    }

    /// Records that a new segment of `len` bytes, which ends at `end`, is being sent.
    #[inline(always)]
    pub(crate) fn sent_new(&mut self, now: Instant, len: u32, end: u64, profile: &Profile) {
        self.segments.sent(now, end);
        if 0 < len && len < profile.mss {
            self.partial_end = end;
        }
    }

    /// Notes that the segment at `place` is being retransmitted, while everything below `sent` has been sent.
    pub(crate) fn note_again(&mut self, now: Instant, place: usize, sent: u64) {
        let stamp = stamp(now);
        self.first_again.get_or_insert(FirstAgain { stamp, sent });
        self.segments.note_original(place);
    }

    /// Returns whether an acknowledgment of everything below `ack` echoes a time stamp from before the first
    /// retransmission. An acknowledgment that echoes no retransmission echoes an original; originals that left
    /// after the first retransmission lie beyond all data that had been sent by then.
    pub(crate) fn echoes_before_first_again(&self, ack: u64, echo: Stamp) -> bool {
        self.first_again.is_some_and(|first| match echo {
            Some(echo) => is_before(echo, first.stamp),
            None => ack <= first.sent,
        })
    }

    /// Forgets the first retransmission once no outstanding segment has been retransmitted and no recovery is
    /// in progress.
    pub(crate) fn forget_first_again(&mut self) {
        if self.first_again.is_some() && self.phase == Phase::Open && !self.segments.has_repeated() {
            self.first_again = None;
        }
    }

    /// Returns the departure times of paced segments and of bursts, for modification.
    pub(crate) fn pace(&mut self) -> &mut Pace {
        self.pace.get_or_insert_with(|| Box::new(Pace::new()))
    }

    /// Begins a phase with everything up to `sent` outstanding and `flight` segments in the network.
    pub(crate) fn begin(&mut self, phase: Phase, sent: u64, flight: u32) {
        self.phase = phase;
        self.recover = sent;
        self.prr = Prr::begin(flight);
    }

    /// Returns whether no segment is missing or about to be considered missing, and no reaction to congestion
    /// is in progress.
    #[inline]
    pub(crate) fn is_calm(&self) -> bool {
        self.phase == Phase::Open
            && self.probe.is_none()
            && self.segments.is_orderly()
            && self.timer != Timer::Reordering
    }

    /// Returns whether the sender is calm and nothing is due, so that the next acknowledgment of new
    /// data and the next segment are ordinary ones.
    pub(crate) fn is_settled(&self) -> bool {
        self.is_calm() && !self.probe_due && !self.retransmission_due
    }

    /// Returns whether the window has no room for a segment until something arrives or the timer
    /// fires.
    #[inline(always)]
    pub(crate) fn fills(&self, window: &Window, profile: &Profile) -> bool {
        let urgent = self.retransmission_due || self.probe_due;
        let full = u64::from(self.segments.in_flight()) >= window.usable(0, profile);
        full && !urgent && !profile.pacing && profile.burst == 1
    }

    /// Returns how long to wait before a probe (RFC 8985, section 7.2).
    #[inline(always)]
    pub(crate) fn probe_timeout(&self, srtt: Option<Span>, profile: &Profile) -> Span {
        let Some(srtt) = srtt else { return FIRST_PROBE };
        let alone = self.segments.outstanding() == 1;
        srtt.saturating_mul(2) + if alone { longest_ack_delay(profile) } else { profile.patience() }
    }

    /// Returns whether a probe may be scheduled, given that the sender uses SACK: no other probe is
    /// outstanding, no recovery is in progress, and nothing is SACKed (RFC 8985, section 7.2).
    /// DEVIATES, as Linux does: during a reduction for a mark, segments may be SACKed.
    pub(crate) fn may_probe(&self, profile: &Profile) -> bool {
        let phase = match self.phase {
            Phase::Open => self.segments.is_orderly(),
            Phase::Reduction => profile.rtt_arithmetic == RttArithmetic::Linux || self.segments.is_orderly(),
            Phase::Recovery | Phase::Loss => false,
        };
        phase && self.probe.is_none()
    }

    /// Returns whether the window is being reduced gradually.
    pub(crate) fn reduces(&self) -> bool {
        matches!(self.phase, Phase::Reduction | Phase::Recovery)
    }

    pub(crate) fn is_recovering(&self) -> bool {
        matches!(self.phase, Phase::Recovery | Phase::Loss)
    }

    /// Returns whether lost segments begin another phase; `found` counts those just declared lost.
    #[inline]
    pub(crate) fn has_begun_losing(&self, found: Found) -> bool {
        match self.phase {
            Phase::Open | Phase::Reduction => self.segments.lost() > 0,
            Phase::Recovery => false,
            Phase::Loss => found.copies > 0,
        }
    }
}
