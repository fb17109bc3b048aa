//! The sender that tracks each outstanding segment (`sack_pipe = "segments"`): loss detection as in
//! RFC 8985 or RFC 6675, gradual reductions as in RFC 9937, probes as in RFC 8985, and detection of
//! spurious timeouts as in RFC 5682; each of these is used only if the profile enables it. It
//! replaces [`super::selective`] and most of the processing of acknowledgments in [`super::input`].
//! [`phases`] contains its reactions to congestion, [`timers`] its timers, and [`output`] the
//! choice of what it sends.

mod output;
mod phases;
mod reports;
mod samples;
mod timers;

use alloc::boxed::Box;

use aqmlab_units::{Instant, Span};

use super::{Endpoint, SELECTIVE};
use crate::congestion::AckReport;
use crate::profile::{Profile, RttArithmetic};
use crate::recovery::{Found, News, Phase, Timer, Tracking, round_trip};
use crate::rto::RtoTimer;
use crate::sack::{MAX_BLOCKS, Sack};
use crate::sequence::from_wire;
use crate::stamps::Stamp;

/// What an acknowledgment reports besides the data that has arrived.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(in crate::endpoint) struct Signs {
    /// An ECN echo.
    pub echo: bool,
    /// The acknowledgment is a duplicate ACK, and the sender does not use SACK.
    pub repeated: bool,
    /// The time stamp that it echoes, if that is one of a retransmission.
    pub stamp: Stamp,
}

impl Endpoint {
    /// Returns whether each outstanding segment is tracked.
    #[inline]
    pub(in crate::endpoint) fn tracks(&self, profile: &Profile) -> bool {
        profile.by_segments() && (self.uses_sack() || self.troubles.tracking().is_some())
    }

    /// Creates the list of outstanding segments, now that the connection is established, if this
    /// sender tracks segments.
    #[inline(never)] // keeps the code path of other senders short
    pub(in crate::endpoint) fn begin_tracking(&mut self, now: Instant, profile: &Profile) {
        if profile.by_segments() && (self.uses_sack() || profile.count_duplicates) {
            let (rtt, sent) = (self.rto.srtt(), self.sent());
            self.troubles.note().tracking = Some(Box::new(Tracking::new(rtt, sent, profile)));
            self.notes.put(SELECTIVE, self.has_data());
            if profile.samples() {
                self.begin_sampling(now, profile);
            }
            if profile.answers_marks() {
                self.troubles.control().set_feedback(self.ecn.is_accurate(), profile);
            }
        }
    }

    #[inline]
    pub(in crate::endpoint) fn tracking(&self) -> &Tracking {
        self.troubles.tracking().expect("tracking has begun")
    }

    #[inline]
    pub(in crate::endpoint) fn tracking_mut(&mut self) -> &mut Tracking {
        self.troubles.tracking_mut().expect("tracking has begun")
    }

    /// Processes an acknowledgment that reports nothing but `bytes` new bytes, while the sender is
    /// settled.
    #[inline(always)]
    pub(in crate::endpoint) fn on_calm_ack(&mut self, now: Instant, bytes: u32, profile: &Profile) {
        if profile.samples() {
            self.on_calm_ack_with_sample(now, bytes, profile);
            return;
        }
        let (una, sent) = (self.una + u64::from(bytes), self.sent());
        let probes = profile.tail_loss_probe && self.uses_sack();
        let Endpoint { rto, troubles, unacked, .. } = self;
        let tracking = troubles.tracking_mut().expect("tracking has begun");
        let Some(plain) = tracking.segments.acknowledge_plain(now, una) else {
            self.on_ack_by_segments(now, una, &Sack::NONE, Signs::default(), profile);
            return;
        };
        measure(rto, tracking, plain.first, (una, sent), profile);
        rto.acked(una);
        timers::rearm(rto, tracking, *unacked > bytes, now, true, probes, profile);
        self.advance_by(bytes, bytes);
        if profile.hears {
            let (segments, rtt, srtt) = (plain.segments, Some(plain.last), self.rto.srtt());
            self.inform_control(
                &AckReport { now, bytes, segments, marked: false, ce: 0, una, sent, rtt, srtt },
                profile,
            );
        }
        let opens = profile.opening(bytes, plain.segments);
        self.open_used_window(now, opens, profile);
        self.note_activity_on_ack(now, profile);
    }

    /// Opens the window unless the profile requires that it was full (RFC 2861) and it was not.
    #[inline(always)]
    fn open_used_window(&mut self, now: Instant, bytes: u32, profile: &Profile) {
        if !profile.window_validation || self.tracking().usage.opens(&self.window) {
            self.open_window(now, bytes, profile);
        }
    }

    /// Processes the acknowledgment field and the SACK blocks of a segment.
    #[inline(never)] // keeps the code path of other senders short
    pub(in crate::endpoint) fn on_ack_by_segments(
        &mut self,
        now: Instant,
        ack: u64,
        sack: &Sack,
        Signs { echo, repeated, stamp }: Signs,
        profile: &Profile,
    ) {
        let ack = ack.max(self.una);
        let (calm, orderly) = (self.tracking().is_calm(), self.tracking().segments.is_orderly());
        let before = profile.samples().then(|| self.before_sample(profile));
        let mut news = News { stamp, ..News::default() };
        self.take_news(now, ack, sack, &mut news, profile);
        if profile.count_duplicates && !self.uses_sack() {
            self.take_duplicates(ack, repeated, &mut news);
        }
        let orderly = orderly && self.tracking().segments.is_orderly();
        news.acked = (ack - self.una) as u32;
        (news.ce, news.echo) = if self.ecn.is_accurate() {
            let ce = self.hear_marks(news.delivered, ack, profile);
            (ce, ce > 0)
        } else {
            (if echo { news.delivered } else { 0 }, echo)
        };
        let echo = news.echo;
        let bytes = if news.acked > 0 { self.advance(ack) } else { 0 };
        let segments = news.delivered + news.repeats;
        let by_segments = segments.saturating_mul(profile.mss);
        news.opens = if orderly { profile.opening(bytes, segments) } else { by_segments };
        if profile.hears && (news.delivered > 0 || news.ce > 0) {
            let (una, sent) = (self.una, self.sent());
            let (segments, rtt, srtt) = (news.delivered, news.last_rtt, self.rto.srtt());
            let ce = news.ce;
            let report = AckReport { now, bytes, segments, marked: echo, ce, una, sent, rtt, srtt };
            self.inform_control(&report, profile);
        }
        if !(calm && orderly && !echo) || news.twice {
            self.take_measures(now, ack, &news, profile);
            self.unsettled = !self.tracking().is_settled();
            if self.unsettled {
                self.end_burst_without_room(profile);
            }
        } else if news.acked > 0 {
            if before.is_none() {
                self.open_used_window(now, news.opens, profile);
            }
            self.note_activity_on_ack(now, profile);
            self.rearm(now, true, profile);
            self.unsettled = !self.tracking().is_settled();
        }
        if let Some(before) = before {
            self.take_sample(now, (&news).into(), before, profile);
        }
        if self.fin_is_acked() {
            self.enter(now, self.state.fin_acked(), profile);
        }
    }

    /// Responds to an acknowledgment up to `ack` while data is missing or a reaction to congestion is in
    /// progress.
    fn take_measures(&mut self, now: Instant, ack: u64, news: &News, profile: &Profile) {
        let advances = news.acked > 0;
        if !advances && news.delivered > 0 {
            self.troubles.note().counts.duplicate_acks += 1;
        }
        if self.probe_has_repaired(ack, advances || news.delivered > 0, news.twice) {
            self.reduce_at_once(news, profile);
        }
        self.judge_timeout(ack, news, profile);
        let searches = self.judge_reduction(ack, news, profile);
        self.leave_phase(ack, profile);
        let waits = !searches && self.tracking().phase == Phase::Recovery;
        let (found, wait) = if waits || self.uses_sack() && profile.rack && !news.advances_rack {
            (Found::default(), None)
        } else if self.uses_sack() {
            self.find_lost(now, profile)
        } else {
            (self.find_lost_by_duplicates(ack, advances, profile), None)
        };
        self.enter_phase(found, news.delivered, news.echo, profile);
        self.reduce_window(news.delivered + news.repeats, advances && found.segments == 0, profile);
        let opens = advances || news.delivered > 0 && self.opens_by_reports(profile);
        if opens {
            let echo = news.echo && !profile.echo_opens && !profile.answers_marks();
            if !echo && !self.tracking().reduces() {
                self.open_used_window(now, news.opens, profile);
            }
        }
        if advances {
            self.note_activity_on_ack(now, profile);
        }
        self.tracking_mut().forget_first_again();
        if let Some(wait) = wait {
            self.rto.arm_by_ticks(now, wait + profile.patience(), profile);
            self.tracking_mut().timer = Timer::Reordering;
        } else if advances
            || news
                .first_sacked
                .is_some_and(|rtt| timers::sacked_is_older_than_first(self.tracking(), now, rtt))
        {
            self.rearm(now, true, profile);
        }
    }

    /// Returns whether data opens the window as soon as it is SACKed.
    #[inline]
    fn opens_by_reports(&self, profile: &Profile) -> bool {
        profile.reordered_opens && self.tracking().segments.is_far_from_order(profile)
    }

    /// Without SACK, infers how much has arrived from the number of duplicate ACKs (RFC 9937,
    /// section 6). Must be called after the acknowledged segments have left the list but before
    /// SND.UNA advances.
    #[cold]
    fn take_duplicates(&mut self, ack: u64, repeated: bool, news: &mut News) {
        let sent = self.sent();
        let advances = ack > self.una;
        let tracking = self.tracking_mut();
        let before_recover = ack < tracking.recover;
        if advances {
            news.delivered = tracking.segments.settle_duplicates(news.delivered);
            if news.repeated {
                // It is not known which of the delivered segments were sent only once, or when the
                // latest one arrived.
                (news.last_rtt, news.original) = (None, None);
            }
            if tracking.phase != Phase::Recovery || !before_recover {
                tracking.segments.forget_duplicates();
            }
            return;
        }
        let counts = match tracking.phase {
            Phase::Open | Phase::Reduction => true,
            Phase::Recovery => before_recover,
            // Segments sent before a timeout count as lost.
            Phase::Loss => before_recover && sent > tracking.recover,
        };
        if repeated && counts {
            news.delivered = tracking.segments.count_duplicate();
        }
    }

    /// Updates the list of segments and the round-trip time, and records in `news` what the
    /// acknowledgment reports for the first time.
    #[inline]
    fn take_news(&mut self, now: Instant, ack: u64, sack: &Sack, news: &mut News, profile: &Profile) {
        let (una, sent) = (self.una, self.sent());
        let Tracking { segments, undo, phase, probe, .. } = self.tracking_mut();
        let acked = if ack > una { segments.acknowledge(now, ack, news) } else { None };
        let late = news.late;
        let offset = |number| from_wire(profile.initial_sequence, number, una);
        let mut blocks = sack.blocks();
        if profile.dsack
            && let Some((from, to)) = first_is_twice(blocks, ack, offset)
        {
            blocks = &blocks[1..];
            news.twice = true;
            if !(profile.dsack_needs_reordering && probe.is_some_and(|probe| probe.end == to)) {
                segments.arrived_twice(ack, sent, profile);
            }
            let segments = ((to - from) as u32).div_ceil(profile.mss);
            undo.reported(segments, to);
            news.repeats = if profile.dsack_delivers { segments } else { 0 };
        }
        // The blocks are sorted, because RFC 8985, section 6.2, step 2, says "in ascending order",
        // whereas the option itself begins with the latest block (RFC 2018, section 4).
        let mut ranges = [(0, 0); MAX_BLOCKS];
        let offsets = blocks.iter().filter_map(|(from, to)| Some((offset(*from)?, offset(*to)?)));
        let count = ranges.iter_mut().zip(offsets).map(|(place, range)| *place = range).count();
        ranges[..count].sort_unstable();
        let mut known = !news.twice && count == blocks.len();
        for &(from, to) in &ranges[..count] {
            known &= segments.sack(now, from, to, ack, sent, news);
        }
        segments.remember(known.then_some(sack));
        if *phase == Phase::Loss && undo.begin.is_none() {
            news.late = late; // what arrives now need not be an original
        }
        if let Some(end) = news.late {
            segments.note_reordering(end.saturating_sub(u64::from(profile.mss)), profile);
        }
        // DEVIATES from RFC 8985, section 6.2, step 2, as Linux does: SACKed segments precede those that
        // are acknowledged cumulatively.
        if let Some(rtt) = acked.filter(|_| profile.rtt_arithmetic == RttArithmetic::Linux) {
            segments.set_latest_rtt(rtt);
        }
        if let Some(rtt) = round_trip(now, news, profile) {
            self.note_round_trip(rtt, (ack, sent), profile);
        }
        if ack > una {
            self.rto.acked(ack);
        }
    }

    fn note_round_trip(&mut self, rtt: Span, reach: (u64, u64), profile: &Profile) {
        let Endpoint { rto, troubles, .. } = self;
        measure(rto, troubles.tracking_mut().expect("tracking has begun"), rtt, reach, profile);
    }

    fn find_lost(&mut self, now: Instant, profile: &Profile) -> (Found, Option<Span>) {
        let srtt = self.rto.srtt();
        find_lost(self.tracking_mut(), now, srtt, profile)
    }

    /// Without SACK, declares the first segment lost after `dupthresh` duplicate ACKs, and after each
    /// partial ACK (RFC 6582, section 3.2).
    #[cold]
    fn find_lost_by_duplicates(&mut self, ack: u64, advances: bool, profile: &Profile) -> Found {
        let tracking = self.tracking_mut();
        let due = match tracking.phase {
            Phase::Open | Phase::Reduction => {
                tracking.segments.sacked() >= tracking.segments.threshold(profile)
            }
            Phase::Recovery => advances && ack < tracking.recover,
            Phase::Loss => false,
        };
        if due { tracking.segments.find_first_lost() } else { Found::default() }
    }
}

/// Marks segments that are lost; returns the number of newly lost segments, and how long to wait
/// before looking for more.
#[inline(always)]
fn find_lost(
    tracking: &mut Tracking,
    now: Instant,
    srtt: Option<Span>,
    profile: &Profile,
) -> (Found, Option<Span>) {
    let recovering = tracking.is_recovering();
    let segments = &mut tracking.segments;
    if segments.is_orderly() && !(profile.rack && segments.first_is_overtaken()) {
        return (Found::default(), None);
    }
    if profile.rack {
        segments.find_lost_by_time(now, recovering, srtt, profile)
    } else {
        (segments.find_lost_by_count(segments.threshold(profile)), None)
    }
}

/// Processes a round-trip time measured by an acknowledgment. `reach` holds two offsets: data below the first
/// has arrived, and data below the second has been sent.
#[inline(always)]
fn measure(rto: &mut RtoTimer, tracking: &mut Tracking, rtt: Span, reach: (u64, u64), profile: &Profile) {
    if profile.rtt_arithmetic == RttArithmetic::Linux {
        rto.measured_by_linux(rtt, &mut tracking.deviation, reach, profile);
    } else {
        rto.measured_besides(rtt, profile);
    }
}

/// If the first block reports data that was received twice, returns its range, which is then below `ack` or
/// within the second block (RFC 2883, section 4).
fn first_is_twice(
    blocks: &[(u32, u32)],
    ack: u64,
    offset: impl Fn(u32) -> Option<u64>,
) -> Option<(u64, u64)> {
    let range = |(from, to): (u32, u32)| Some((offset(from)?, offset(to)?));
    let (from, to) = range(*blocks.first()?).filter(|(from, to)| from < to)?;
    let second = blocks.get(1).copied().and_then(range);
    let within = second.is_some_and(|second| second.0 <= from && to <= second.1);
    (from < ack || within).then_some((from, to))
}
