//! The sender that tracks each outstanding segment (`sack_pipe = "segments"`): loss detection by RFC 8985 or
//! RFC 6675, gradual reductions by RFC 9937, probes by RFC 8985, spurious timeouts by RFC 5682, each if the
//! profile has it. It replaces [`super::selective`] and most of the processing of acknowledgments in
//! [`super::input`].

use alloc::boxed::Box;

use aqmlab_units::{Instant, Span};

use super::{Endpoint, SELECTIVE};
use crate::congestion::{Heard, Outstanding, Sign};
use crate::profile::{Profile, RttArithmetic};
use crate::recovery::{Delivery, Found, Frto, News, Phase, Probe, Timer, Tracking, Undo};
use crate::sack::Sack;
use crate::segment::Segment;
use crate::sequence::from_wire;

/// What else an acknowledgment says.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Signs {
    /// An ECN echo.
    pub echo: bool,
    /// It is a duplicate, of a sender without SACK.
    pub repeated: bool,
}

impl Endpoint {
    /// Whether each outstanding segment is tracked.
    #[inline]
    pub(super) fn tracks(&self, profile: &Profile) -> bool {
        profile.by_segments() && (self.uses_sack() || self.troubles.tracking().is_some())
    }

    /// The connection is established: from now on segments are listed.
    #[inline(never)] // keeps the way of other senders short
    pub(super) fn begin_tracking(&mut self, profile: &Profile) {
        if profile.by_segments() && (self.uses_sack() || profile.count_duplicates) {
            let (rtt, sent) = (self.rto.srtt(), self.sent());
            self.troubles.note().tracking = Some(Box::new(Tracking::new(rtt, sent, profile)));
            self.notes.put(SELECTIVE, self.has_data());
        }
    }

    #[inline]
    pub(super) fn tracking(&self) -> &Tracking {
        self.troubles.tracking().expect("made with the connection")
    }

    #[inline]
    pub(super) fn tracking_mut(&mut self) -> &mut Tracking {
        self.troubles.tracking_mut().expect("made with the connection")
    }

    /// An acknowledgment of `bytes` that are new, and nothing else, while the list is settled.
    #[inline(always)]
    pub(super) fn on_calm_ack(&mut self, now: Instant, bytes: u32, profile: &Profile) {
        let (una, sent) = (self.una + u64::from(bytes), self.sent());
        let Some(plain) = self.tracking_mut().segments.acknowledge_plain(now, una) else {
            self.on_ack_by_segments(now, una, &Sack::NONE, Signs::default(), profile);
            return;
        };
        self.note_round_trip(plain.first, (una, sent), profile);
        self.rto.acked(una);
        self.advance_by(bytes, bytes);
        if profile.hears {
            let (segments, rtt) = (plain.segments, Some(plain.last));
            self.hear(&Heard { now, bytes, segments, marked: false, una, sent, rtt }, profile);
        }
        self.open_window(now, bytes, profile);
        self.note_activity_on_ack(now, profile);
        self.rearm_calmly(now, true, profile);
    }

    /// The acknowledgment field and the blocks of a segment.
    #[inline(never)] // keeps the way of other senders short
    pub(super) fn on_ack_by_segments(
        &mut self,
        now: Instant,
        ack: u64,
        sack: &Sack,
        Signs { echo, repeated }: Signs,
        profile: &Profile,
    ) {
        let ack = ack.max(self.una);
        let (calm, orderly) = (self.tracking().is_calm(), self.tracking().segments.is_orderly());
        let mut news = self.take_news(now, ack, sack, profile);
        if profile.count_duplicates && !self.uses_sack() {
            self.take_duplicates(ack, repeated, &mut news);
        }
        let orderly = orderly && self.tracking().segments.is_orderly();
        news.acked = (ack - self.una) as u32;
        news.echo = echo;
        let bytes = if news.acked > 0 { self.advance(ack) } else { 0 };
        news.opens = if orderly { bytes } else { news.delivered * profile.mss };
        if profile.hears && news.delivered > 0 {
            let (una, sent) = (self.una, self.sent());
            let (segments, rtt) = (news.delivered, news.last_rtt);
            self.hear(&Heard { now, bytes, segments, marked: echo, una, sent, rtt }, profile);
        }
        if !(calm && orderly && !echo) || news.twice {
            self.take_measures(now, ack, &news, profile);
            self.unsettled = !self.tracking().is_settled();
        } else if news.acked > 0 {
            self.open_window(now, bytes, profile);
            self.note_activity_on_ack(now, profile);
            self.rearm(now, true, profile);
        }
        if self.fin_is_acked() {
            self.enter(now, self.state.fin_acked(), profile);
        }
    }

    /// Responds to an acknowledgment up to `ack` while data is missing or a reaction to congestion is in
    /// progress.
    #[inline(never)] // keeps the way of an orderly ACK short
    fn take_measures(&mut self, now: Instant, ack: u64, news: &News, profile: &Profile) {
        let advances = news.acked > 0;
        if !advances && news.delivered > 0 {
            self.troubles.note().counts.duplicate_acks += 1;
        }
        if self.probe_has_repaired(ack, advances || news.delivered > 0, news.twice) {
            self.reduce_at_once(news, profile);
        }
        self.judge_timeout(ack, news, profile);
        self.judge_reduction(news, profile);
        self.leave_phase(ack);
        let (found, wait) = if self.uses_sack() {
            self.find_lost(now, profile)
        } else {
            (self.find_lost_by_duplicates(ack, advances, profile), None)
        };
        self.enter_phase(found, news, profile);
        self.reduce_window(news.delivered, advances && found.segments == 0, profile);
        if advances {
            if !news.echo && !self.tracking().reduces() {
                self.open_window(now, news.opens, profile);
            }
            self.note_activity_on_ack(now, profile);
        }
        if let Some(wait) = wait {
            self.rto.arm_by_ticks(now, wait + profile.patience(), profile);
            self.tracking_mut().timer = Timer::Reordering;
        } else if advances || self.sacked_is_older_than_first(now, news) {
            self.rearm(now, true, profile);
        }
    }

    /// Without SACK, what has arrived follows from the number of duplicate ACKs (RFC 9937, section 6). Before SND.UNA
    /// advances.
    #[cold]
    fn take_duplicates(&mut self, ack: u64, repeated: bool, news: &mut News) {
        let sent = self.sent();
        let advances = ack > self.una;
        let tracking = self.tracking_mut();
        let before_recover = ack < tracking.recover;
        if advances {
            news.delivered = tracking.segments.settle_duplicates(news.delivered);
            if news.repeated {
                // Which of these were sent once, and when the latest arrived, is not known.
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
            // What left before a timeout is lost.
            Phase::Loss => before_recover && sent > tracking.recover,
        };
        if repeated && counts {
            news.delivered = tracking.segments.count_duplicate();
        }
    }

    /// The newly delivered segments, and the round trip that they measure.
    #[inline]
    fn take_news(&mut self, now: Instant, ack: u64, sack: &Sack, profile: &Profile) -> News {
        let (una, sent) = (self.una, self.sent());
        let Tracking { segments, undo, .. } = self.tracking_mut();
        let mut news = News::default();
        segments.acknowledge(now, ack, &mut news);
        let offset = |number| from_wire(profile.initial_sequence, number, una);
        let mut blocks = sack.blocks();
        if profile.dsack
            && let Some((from, to)) = first_is_twice(blocks, ack, offset)
        {
            blocks = &blocks[1..];
            news.twice = true;
            segments.arrived_twice(ack, sent);
            undo.reported(((to - from) as u32).div_ceil(profile.mss), to);
        }
        for (from, to) in blocks {
            if let (Some(from), Some(to)) = (offset(*from), offset(*to)) {
                segments.sack(now, from, to, ack, sent, &mut news);
            }
        }
        if let Some(rtt) = segments.round_trip(&news, profile.timestamps) {
            self.note_round_trip(rtt, (ack, sent), profile);
        }
        if ack > una {
            self.rto.acked(ack);
        }
        news
    }

    #[inline]
    fn note_round_trip(&mut self, rtt: Span, reach: (u64, u64), profile: &Profile) {
        if profile.rtt_arithmetic == RttArithmetic::Linux {
            let Endpoint { rto, troubles, .. } = self;
            let tracking = troubles.tracking_mut().expect("made with the connection");
            rto.measured_by_linux(rtt, &mut tracking.deviation, reach, profile);
        } else {
            self.rto.measured_besides(rtt, profile);
        }
    }

    /// Whether an acknowledgment shows that a probe has repaired a loss (RFC 8985, section 7.4.2).
    fn probe_has_repaired(&mut self, ack: u64, news: bool, twice: bool) -> bool {
        let tracking = self.tracking_mut();
        let Some(probe) = tracking.probe.filter(|probe| ack >= probe.end) else { return false };
        if !probe.again || !news || twice {
            tracking.probe = None; // new data, or both copies have arrived
            return false;
        }
        if ack > probe.end {
            tracking.probe = None;
            return true;
        }
        false
    }

    /// A loss that a probe has repaired is a sign of congestion, although nothing is missing any more.
    fn reduce_at_once(&mut self, news: &News, profile: &Profile) {
        if matches!(self.tracking().phase, Phase::Open | Phase::Reduction) {
            self.begin_phase(Phase::Reduction, Some(Sign::Mark), news.delivered, profile);
            self.window.settle();
            self.tracking_mut().phase = Phase::Open;
        }
    }

    /// Whether a timeout was spurious (RFC 5682, section 3.1, steps 2 and 3).
    fn judge_timeout(&mut self, ack: u64, news: &News, profile: &Profile) {
        if self.tracking().frto == Frto::Off || self.tracking().phase != Phase::Loss {
            return;
        }
        let (sent, has_data) = (self.sent(), self.has_data() && self.fits(self.reach(profile), profile));
        let advances = news.acked > 0;
        let tracking = self.tracking_mut();
        // What left after the timeout says nothing.
        if news.original.is_some_and(|end| end <= tracking.recover) {
            self.go_back(true);
            return;
        }
        match tracking.frto {
            Frto::First if advances && ack < tracking.recover && has_data => {
                tracking.frto = Frto::Second;
                tracking.recover = sent;
            }
            Frto::First if !advances && news.delivered == 0 => {}
            _ => tracking.frto = Frto::Off,
        }
    }

    /// Whether the latest reduction was spurious: the first copy of a retransmitted segment has arrived (RFC
    /// 3522, 3.2), or both copies of all of them (RFC 3708, section 3).
    fn judge_reduction(&mut self, news: &News, profile: &Profile) {
        let Tracking { undo, segments, phase, .. } = self.tracking();
        let by_first_copy = profile.eifel
            && profile.timestamps
            && news.first_copy
            && news.acked > 0
            && undo.begin.is_some()
            && segments.copies() == 0;
        if by_first_copy {
            self.go_back(true);
        } else if profile.dsack_undo && undo.is_due() {
            self.go_back(*phase == Phase::Loss);
        }
    }

    /// Undoes a spurious reduction: restores the window, and with `none_lost` the segments that were
    /// considered lost.
    fn go_back(&mut self, none_lost: bool) {
        let tracking = self.tracking_mut();
        tracking.frto = Frto::Off;
        if tracking.is_recovering() {
            tracking.phase = Phase::Open;
        }
        if none_lost {
            tracking.segments.none_lost();
        }
        self.undo_reduction();
    }

    /// Prepares for a reduction that may turn out to be spurious.
    fn remember_window(&mut self) {
        let (cwnd, ssthresh) = (self.window.cwnd(), self.window.ssthresh());
        let begin = Some(self.una);
        self.tracking_mut().undo = Undo { cwnd, ssthresh, begin, unreported: None };
        self.troubles.note().control.remember();
    }

    /// It was spurious: restores everything that determines the window.
    fn undo_reduction(&mut self) {
        let Undo { cwnd, ssthresh, .. } = self.tracking().undo;
        self.tracking_mut().undo.begin = None;
        self.window.restore(cwnd, ssthresh);
        self.troubles.note().control.restore();
    }

    /// The data that was outstanding at the start of the phase is acknowledged. A reduction for a mark
    /// continues until data sent after the mark is acknowledged.
    fn leave_phase(&mut self, ack: u64) {
        let by_sack = self.uses_sack();
        let tracking = self.tracking_mut();
        let over = match tracking.phase {
            Phase::Open => false,
            Phase::Reduction => ack > tracking.recover,
            Phase::Recovery | Phase::Loss if by_sack => ack >= tracking.recover,
            // What was sent again needlessly brings duplicate ACKs of exactly that (RFC 6582, section 3.2, step 2).
            Phase::Recovery | Phase::Loss => ack > tracking.recover,
        };
        if over {
            let settles = tracking.reduces();
            if tracking.is_recovering() {
                tracking.segments.recovered();
            }
            tracking.phase = Phase::Open;
            tracking.frto = Frto::Off;
            if settles {
                self.window.settle();
            }
        }
    }

    /// Marks lost segments; returns their number, and the time to wait for more.
    fn find_lost(&mut self, now: Instant, profile: &Profile) -> (Found, Option<Span>) {
        let srtt = self.rto.srtt();
        let tracking = self.tracking_mut();
        let recovering = tracking.is_recovering();
        let segments = &mut tracking.segments;
        if segments.is_orderly() {
            return (Found::default(), None);
        }
        if profile.rack {
            let window = segments.reordering_window(recovering, srtt, profile);
            segments.find_lost_by_time(now, window)
        } else {
            (segments.find_lost_by_count(profile.dupthresh), None)
        }
    }

    /// Without SACK, the first segment is lost after `dupthresh` duplicate ACKs, and after each partial ACK (RFC 6582,
    /// section 3.2).
    #[cold]
    fn find_lost_by_duplicates(&mut self, ack: u64, advances: bool, profile: &Profile) -> Found {
        let tracking = self.tracking_mut();
        let due = match tracking.phase {
            Phase::Open | Phase::Reduction => tracking.segments.sacked() >= profile.dupthresh,
            Phase::Recovery => advances && ack < tracking.recover,
            Phase::Loss => false,
        };
        if due { tracking.segments.find_first_lost() } else { Found::default() }
    }

    /// A loss begins fast recovery (after a timeout, the loss of a copy); an echo begins only a reduction.
    fn enter_phase(&mut self, found: Found, news: &News, profile: &Profile) {
        let tracking = self.tracking();
        let lost = tracking.segments.lost() > 0;
        match tracking.phase {
            Phase::Open if lost => {
                self.begin_phase(Phase::Recovery, Some(Sign::Loss), news.delivered, profile)
            }
            Phase::Reduction if lost => self.begin_phase(Phase::Recovery, None, news.delivered, profile),
            Phase::Loss if found.copies > 0 => {
                self.begin_phase(Phase::Recovery, Some(Sign::Loss), news.delivered, profile);
            }
            Phase::Open if news.echo => {
                self.troubles.note().counts.ecn_reductions += 1;
                self.begin_phase(Phase::Reduction, Some(Sign::Mark), news.delivered, profile);
            }
            _ => {}
        }
    }

    /// Begins a phase, with a reduction if a `sign` of congestion has not caused one yet.
    fn begin_phase(&mut self, phase: Phase, sign: Option<Sign>, delivered: u32, profile: &Profile) {
        let (sent, by_sack) = (self.sent(), self.uses_sack());
        self.troubles.note().counts.fast_retransmits += u32::from(phase == Phase::Recovery);
        let tracking = self.tracking_mut();
        // RFC 9937, section 6: RecoverFS.
        let flight = tracking.segments.outstanding() - tracking.segments.sacked() + delivered;
        let Some(sign) = sign else {
            tracking.phase = phase;
            if by_sack {
                tracking.recover = sent;
            } // else the reduction ends where it would have: measured in Linux
            if profile.exact_echo {
                self.halve_after_mark(flight, profile);
            }
            return;
        };
        if phase == Phase::Recovery {
            self.remember_window();
        } else {
            self.tracking_mut().undo.begin = None;
        }
        let tracking = self.tracking_mut();
        tracking.begin(phase, sent, flight);
        tracking.retransmission_due = phase == Phase::Recovery && !profile.prr;
        let outstanding = Outstanding { flight: flight * profile.mss, inflation: 0 };
        let (window, algorithm) = self.congestion(profile);
        window.lower(algorithm, sign, outstanding, profile);
        if !profile.prr {
            window.settle();
        }
        self.ecn.reduced();
    }

    /// A loss occurs while the window is reduced for a mark, by less than a loss requires (RFC 8257, 3.5).
    #[cold]
    fn halve_after_mark(&mut self, flight: u32, profile: &Profile) {
        let outstanding = Outstanding { flight: flight * profile.mss, inflation: 0 };
        let (window, algorithm) = self.congestion(profile);
        window.lower(algorithm, Sign::Loss, outstanding, profile);
    }

    /// Advances a reduction in progress by the number of segments that have arrived.
    fn reduce_window(&mut self, delivered: u32, safe: bool, profile: &Profile) {
        let ssthresh = self.window.ssthresh();
        let tracking = self.tracking_mut();
        if profile.prr && tracking.reduces() && delivered > 0 {
            let in_flight = tracking.segments.in_flight();
            let ack = Delivery { segments: delivered, in_flight, safe };
            let segments = tracking.prr.window(ack, ssthresh as u32);
            self.window.set(segments);
        }
    }

    /// Whether newly SACKed data was sent before the first outstanding segment, which has been retransmitted
    /// since then.
    fn sacked_is_older_than_first(&self, now: Instant, news: &News) -> bool {
        let left = self.tracking().segments.first_left();
        news.first_sacked.zip(left).is_some_and(|(rtt, left)| rtt > now.saturating_since(left))
    }

    /// The timer to be set: the probe's, or the retransmission timer. `anew`: an acknowledgment starts it;
    /// otherwise, and if another timer precedes it, the first outstanding segment did.
    fn rearm(&mut self, now: Instant, anew: bool, profile: &Profile) {
        let tracking = self.tracking();
        let probes = self.uses_sack()
            && tracking.probe.is_none()
            && matches!(tracking.phase, Phase::Open | Phase::Reduction)
            && tracking.segments.is_orderly();
        self.rearm_with(now, anew, probes && profile.tail_loss_probe, profile);
    }

    /// The same while the list is settled.
    #[inline(always)]
    fn rearm_calmly(&mut self, now: Instant, anew: bool, profile: &Profile) {
        self.rearm_with(now, anew, profile.tail_loss_probe && self.uses_sack(), profile);
    }

    #[inline(always)]
    fn rearm_with(&mut self, now: Instant, anew: bool, probes: bool, profile: &Profile) {
        let Endpoint { rto, troubles, unacked, .. } = self;
        let tracking = troubles.tracking_mut().expect("made with the connection");
        if *unacked == 0 {
            rto.stop();
            tracking.timer = Timer::Timeout;
            return;
        }
        let since_first = if probes { !anew } else { tracking.timer != Timer::Timeout };
        let first = if since_first { tracking.segments.first_left() } else { None };
        let timeout = first.unwrap_or(now).saturating_add(rto.rto(profile)).saturating_since(now);
        tracking.timer = if probes { Timer::Probe } else { Timer::Timeout };
        let wait = if probes { timeout.min(tracking.probe_timeout(rto.srtt(), profile)) } else { timeout };
        rto.arm_by_ticks(now, wait, profile);
    }

    /// The timer has fired: returns true if it was not for a timeout.
    #[inline(never)] // keeps the way of other senders short
    pub(super) fn timer_was_no_timeout(&mut self, now: Instant, profile: &Profile) -> bool {
        if profile.pacing && self.release_timer(now) && now < self.rto.deadline() {
            return true;
        }
        match core::mem::replace(&mut self.tracking_mut().timer, Timer::Timeout) {
            Timer::Timeout => return false,
            Timer::Reordering => {
                let (found, wait) = self.find_lost(now, profile);
                if found.segments > 0 && self.tracking().phase != Phase::Recovery {
                    let news = News { delivered: 1, ..News::default() };
                    self.enter_phase(found, &news, profile);
                    self.reduce_window(news.delivered, false, profile);
                }
                self.tracking_mut().timer = Timer::Reordering;
                match wait {
                    Some(wait) => self.rto.arm_by_ticks(now, wait + profile.patience(), profile),
                    None => self.rearm(now, false, profile),
                }
            }
            Timer::Probe => {
                self.tracking_mut().probe_due = true;
                self.unsettled = true;
                self.rto.start(now, profile);
            }
        }
        true
    }

    /// The retransmission timer has expired; with `again`, nothing was acknowledged since its last expiry.
    #[inline(never)] // keeps the way of other senders short
    pub(super) fn time_out_by_segments(&mut self, now: Instant, again: bool, profile: &Profile) {
        let (una, sent) = (self.una, self.sent());
        if !again {
            self.remember_window();
        }
        self.troubles.note().counts.timeouts += 1;
        self.unsettled = true;
        let by_sack = self.uses_sack();
        let tracking = self.tracking_mut();
        let recovering = tracking.is_recovering();
        let reduced = tracking.reduces() && una < tracking.recover;
        let outstanding = tracking.segments.outstanding() - tracking.segments.sacked();
        if !by_sack {
            tracking.segments.forget_duplicates();
        }
        tracking.segments.find_lost_at_timeout(now, profile.rack);
        tracking.phase = Phase::Loss;
        tracking.recover = sent;
        tracking.probe = None;
        (tracking.probe_due, tracking.retransmission_due) = (false, false);
        tracking.frto = if profile.frto && (!recovering || again) { Frto::First } else { Frto::Off };
        let in_flight = tracking.segments.in_flight();
        let outstanding = Outstanding { flight: outstanding * profile.mss, inflation: 0 };
        let (window, algorithm) = self.congestion(profile);
        window.timed_out(algorithm, outstanding, again, reduced, profile);
        window.set(in_flight + 1);
        self.ecn.reduced();
        self.rto.back_off(profile);
        self.rto.start(now, profile);
    }

    /// Returns the next segment: a probe, a lost segment, or new data.
    #[inline(never)] // keeps the way of other senders short
    pub(super) fn transmit_by_segments(&mut self, now: Instant, profile: &Profile) -> Option<Segment> {
        if !self.unsettled && self.unacked > 0 && !profile.pacing && profile.burst == 1 {
            return self.transmit_calmly(now, profile);
        }
        if profile.pacing {
            self.release_timer(now);
        }
        if core::mem::take(&mut self.tracking_mut().probe_due) {
            return Some(self.transmit_probe(now, profile));
        }
        if self.unacked == 0 {
            self.restart_after_idle(now, profile);
        }
        let usable = self.window.usable(0, profile);
        let tracking = self.tracking_mut();
        let urgent = core::mem::take(&mut tracking.retransmission_due);
        if !urgent && u64::from(tracking.segments.in_flight()) >= usable {
            return None;
        }
        let lost = tracking.segments.next_lost().filter(|_| tracking.frto != Frto::Second);
        if lost.is_none() && !(self.has_data() && self.fits(self.reach(profile), profile)) {
            return None;
        }
        let in_bursts = profile.burst > 1 && lost.is_none();
        if in_bursts && !self.is_in_burst(now) && self.waits_for_burst(usable, profile) {
            return None;
        }
        if profile.pacing && !urgent && self.waits_for_its_time(now) {
            return None;
        }
        if in_bursts {
            self.note_burst(now, profile);
        }
        let segment = match lost {
            Some(place) => {
                self.tracking_mut().undo.sent_again();
                self.transmit_again(now, place, profile)
            }
            None => self.transmit_new(now, profile),
        };
        if profile.pacing {
            self.note_pace(now, segment.len, profile);
        }
        self.burst -= 1;
        if u64::from(self.tracking().segments.in_flight()) >= usable {
            self.burst = 0; // what could open the window gives a new burst: the next call need not look
        }
        Some(segment)
    }

    /// The same while the list is settled: new data, if there is room for it.
    #[inline(always)]
    fn transmit_calmly(&mut self, now: Instant, profile: &Profile) -> Option<Segment> {
        let usable = self.window.usable(0, profile);
        let in_flight = u64::from(self.tracking().segments.outstanding());
        if in_flight >= usable || !self.has_data() || !self.fits(self.reach(profile), profile) {
            return None;
        }
        let segment = self.new_data(now, profile);
        self.list_new(now, segment.len, profile);
        if profile.tail_loss_probe {
            self.rearm_calmly(now, false, profile);
        }
        self.burst = if in_flight + 1 < usable { self.burst - 1 } else { 0 }; // as above
        Some(segment)
    }

    /// Whether [`Endpoint::transmit_by_segments`] would return a segment, unless the limit on bursts forbids
    /// it.
    pub(super) fn wants_to_send_by_segments(&self, profile: &Profile) -> bool {
        let tracking = self.tracking();
        let room = u64::from(tracking.segments.in_flight()) < self.window.usable(0, profile);
        let waits = profile.burst > 1 && self.waits_for_burst(self.window.usable(0, profile), profile);
        let new = !waits && self.has_data() && self.fits(self.reach(profile), profile);
        tracking.probe_due || room && (new || tracking.segments.first_lost().is_some())
    }

    fn transmit_new(&mut self, now: Instant, profile: &Profile) -> Segment {
        let segment = self.new_data(now, profile);
        self.list_new(now, segment.len, profile);
        let tracking = self.tracking_mut();
        tracking.prr.sent();
        if profile.tail_loss_probe && tracking.timer != Timer::Reordering && tracking.phase == Phase::Open {
            self.rearm(now, false, profile);
        }
        segment
    }

    /// A new segment with `len` bytes has left.
    #[inline(always)]
    fn list_new(&mut self, now: Instant, len: u32, profile: &Profile) {
        let end = self.sent();
        let tracking = self.tracking_mut();
        tracking.segments.sent(now, end);
        if 0 < len && len < profile.mss {
            tracking.partial_end = end;
        }
    }

    /// Whether a segment that was not full waits for its acknowledgment.
    pub(super) fn partial_is_outstanding(&self) -> bool {
        self.tracking().partial_end > self.una
    }

    fn transmit_again(&mut self, now: Instant, place: usize, profile: &Profile) -> Segment {
        let (from, to) = self.tracking().segments.bounds(place, self.una);
        let most = (to - from) as u32;
        let (segment, end) = self.data(now, (from - self.una) as u32, most, profile);
        let end = self.una + u64::from(end);
        let tracking = self.tracking_mut();
        tracking.segments.sent_again(now, place, end);
        tracking.prr.sent();
        if place == 0 && tracking.timer != Timer::Reordering && profile.fast_retransmit_restarts_timer {
            tracking.timer = Timer::Timeout;
            self.rto.start(now, profile);
        }
        segment
    }

    /// RFC 8985, section 7.3: new data if there is some, otherwise the last segment again.
    fn transmit_probe(&mut self, now: Instant, profile: &Profile) -> Segment {
        let new = self.has_data() && self.fits(self.reach(profile), profile);
        let last = self.tracking().segments.last();
        let segment = match last.filter(|_| !new) {
            Some(place) => self.transmit_again(now, place, profile),
            None => {
                let segment = self.new_data(now, profile);
                let end = self.sent();
                self.tracking_mut().segments.sent(now, end);
                segment
            }
        };
        let end = self.sent();
        self.tracking_mut().probe = Some(Probe { end, again: !new });
        segment
    }
}

/// The range that the first block reports as received twice: below `ack`, or within the second block (RFC
/// 2883, section 4).
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
