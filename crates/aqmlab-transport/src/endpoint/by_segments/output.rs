//! The choice of the next segment: a probe, a lost segment, or new data.

use aqmlab_units::Instant;

use super::timers::{probe_stands, rearm};
use crate::endpoint::Endpoint;
use crate::profile::Profile;
use crate::recovery::{Frto, Probe, Timer, Tracking};
use crate::segment::{Flags, Segment};

impl Endpoint {
    /// Returns the next segment: a probe, a lost segment, or new data.
    #[inline(never)] // keeps the code path of other senders short
    pub(in crate::endpoint) fn transmit_by_segments(
        &mut self,
        now: Instant,
        profile: &Profile,
    ) -> Option<Segment> {
        if profile.pacing {
            self.release_timer(now);
        }
        if self.unacked == 0 && !self.tracking().probe_due {
            self.restart_after_idle(now, profile);
        }
        let usable = self.window.usable_if_paced(profile);
        let tracking = self.tracking_mut();
        if core::mem::take(&mut tracking.probe_due) {
            return Some(self.transmit_probe(now, profile));
        }
        let urgent = core::mem::take(&mut tracking.retransmission_due);
        if !urgent && u64::from(tracking.segments.in_flight()) >= usable {
            if self.has_data() {
                let sent = self.sent();
                self.tracking_mut().usage.fills(sent);
            }
            return None;
        }
        let lost = tracking.segments.next_lost().filter(|_| tracking.frto != Frto::Second);
        if lost.is_none() && !(self.has_data() && self.fits(self.reach(profile), profile)) {
            return None;
        }
        let in_bursts = profile.burst > 1 && lost.is_none();
        if in_bursts && !self.is_in_burst(now) && self.waits_for_burst(now, usable, profile) {
            self.note_waiting(usable, profile);
            return None;
        }
        if profile.pacing && !urgent && self.waits_for_its_time(now) {
            return None;
        }
        let ends_burst = in_bursts && self.note_burst(now, usable, profile);
        let (mut segment, in_flight) = match lost {
            Some(place) => {
                self.tracking_mut().undo.sent_again();
                let segment = self.transmit_again(now, place, true, profile);
                (segment, self.tracking().segments.in_flight())
            }
            None => self.transmit_new(now, profile),
        };
        if profile.push && lost.is_none() {
            let ends = ends_burst || self.next() >= self.stream_end;
            segment.flags = segment.flags.with_if(Flags::PSH, ends && segment.len > 0);
        }
        if profile.pacing {
            self.note_pace(now, segment.len, profile);
        }
        // If there is no room left, the burst ends here: whatever opens the window starts a new
        // burst.
        self.burst = if u64::from(in_flight) < usable { self.burst - 1 } else { 0 };
        if lost.is_none() {
            self.note_usage(u64::from(in_flight) >= usable);
            self.end_burst_until_paced(now, profile);
        }
        Some(segment)
    }

    /// Ends the burst if the next segment is new data that has to wait for its time: the timer begins a new burst.
    #[inline(always)]
    fn end_burst_until_paced(&mut self, now: Instant, profile: &Profile) {
        let alone = profile.pacing && profile.burst == 1 && self.burst > 0;
        if alone
            && self.tracking().segments.is_orderly()
            && self.has_data()
            && self.fits(self.reach(profile), profile)
            && self.waits_for_its_time(now)
        {
            self.burst = 0;
        }
    }

    /// Notes that new data has left, and whether the window is full now.
    #[inline(always)]
    fn note_usage(&mut self, full: bool) {
        let (una, sent) = (self.una, self.sent());
        let Tracking { usage, segments, .. } = self.tracking_mut();
        if full {
            usage.fills(sent);
        } else {
            usage.leaves_room(una, sent, segments.outstanding());
        }
    }

    /// Notes that a burst waits: the window limits the sender as if it were full, unless the other side's
    /// window leaves less room.
    #[cold]
    fn note_waiting(&mut self, usable: u64, profile: &Profile) {
        let room = usable.saturating_sub(u64::from(self.tracking().segments.in_flight()));
        let reach = self.reach(profile).saturating_sub(u64::from(self.flight)) / u64::from(profile.mss);
        if room < reach {
            let sent = self.sent();
            self.tracking_mut().usage.fills(sent);
        }
    }

    /// Returns whether the next segment is new data, and nothing but the windows can hold it back.
    #[inline(always)]
    pub(in crate::endpoint) fn sends_calmly(&self, profile: &Profile) -> bool {
        !self.unsettled
            && self.unacked > 0
            && !profile.pacing
            && profile.burst == 1
            && !(profile.paws || profile.push)
    }

    /// Ends the burst if the window has no room now, so that nothing more leaves before the next
    /// arrival.
    pub(super) fn end_burst_without_room(&mut self, profile: &Profile) {
        if self.tracking().fills(&self.window, profile) {
            self.burst = 0;
        }
    }

    /// Does the same as [`Endpoint::transmit_by_segments`] while the endpoint [sends
    /// calmly](Endpoint::sends_calmly).
    #[inline(always)]
    pub(in crate::endpoint) fn transmit_calmly(
        &mut self,
        now: Instant,
        profile: &Profile,
    ) -> Option<Segment> {
        let usable = self.window.usable(0, profile);
        let in_flight = u64::from(self.tracking().segments.outstanding());
        if in_flight >= usable {
            return None;
        }
        let segment = match self.new_full_data(now, profile) {
            Some(segment) => segment,
            None => self.transmit_any_new(now, profile)?,
        };
        let (una, end, by_sack) = (self.una, self.sent(), self.uses_sack());
        let Endpoint { rto, troubles, .. } = self;
        let tracking = troubles.tracking_mut().expect("tracking has begun");
        tracking.sent_new(now, segment.len, end, profile);
        if profile.tail_loss_probe && by_sack && !probe_stands(rto, tracking, now, in_flight, profile) {
            rearm(rto, tracking, true, now, false, true, profile);
        }
        if in_flight + 1 < usable {
            self.burst -= 1;
            tracking.usage.leaves_room(una, end, in_flight as u32 + 1);
        } else {
            self.burst = 0; // as above
            tracking.usage.fills(end);
        }
        Some(segment)
    }

    /// Returns new data of any size, if the receive window and Nagle's rule permit it.
    #[cold]
    fn transmit_any_new(&mut self, now: Instant, profile: &Profile) -> Option<Segment> {
        let leaves = self.has_data() && self.fits(self.reach(profile), profile);
        leaves.then(|| self.new_data_apart(now, profile))
    }

    #[cold]
    #[inline(never)]
    fn new_data_apart(&mut self, now: Instant, profile: &Profile) -> Segment {
        self.new_data(now, profile)
    }

    /// Returns whether [`Endpoint::transmit_by_segments`] would return a segment, provided that the
    /// limit on bursts permits it.
    pub(in crate::endpoint) fn wants_to_send_by_segments(&self, profile: &Profile) -> bool {
        let tracking = self.tracking();
        // The caller does not say what time it is; this concerns only senders with a drawn delay.
        let (now, usable) = (self.last_activity, self.window.usable_if_paced(profile));
        let room = u64::from(tracking.segments.in_flight()) < usable;
        let waits = profile.burst > 1 && self.waits_for_burst(now, usable, profile);
        let new = !waits && self.has_data() && self.fits(self.reach(profile), profile);
        tracking.probe_due || room && (new || tracking.segments.first_lost().is_some())
    }

    /// Returns new data, and the number of segments in flight including this data.
    #[inline(always)]
    fn transmit_new(&mut self, now: Instant, profile: &Profile) -> (Segment, u32) {
        let from = self.sent();
        let mut segment = match self.new_full_data(now, profile) {
            Some(segment) => segment,
            None => self.new_data_apart(now, profile),
        };
        if profile.paws {
            segment.extras = self.stamp(now, segment.extras, profile);
        }
        let end = self.sent();
        let tracking = self.tracking_mut();
        tracking.segments.note_departure(now, from, end);
        tracking.sent_new(now, segment.len, end, profile);
        tracking.prr.sent();
        let in_flight = tracking.segments.in_flight();
        // A timer for a probe replaces any other (RFC 8985, section 8).
        let may_probe = tracking.may_probe(profile);
        let arms = tracking.timer == Timer::Probe || may_probe;
        if profile.tail_loss_probe && arms && self.uses_sack() {
            let before = u64::from(self.tracking().segments.outstanding()) - 1;
            if !(may_probe && probe_stands(&self.rto, self.tracking(), now, before, profile)) {
                self.rearm(now, false, profile);
            }
        }
        (segment, in_flight)
    }

    /// Returns whether a partial segment is still unacknowledged.
    pub(in crate::endpoint) fn partial_is_outstanding(&self) -> bool {
        self.tracking().partial_end > self.una
    }

    #[inline(never)]
    fn transmit_again(&mut self, now: Instant, place: usize, counts: bool, profile: &Profile) -> Segment {
        let sent = self.sent();
        let (from, to) = self.tracking().segments.bounds(place, self.una);
        let most = (to - from) as u32;
        let (segment, end) = self.data(now, (from - self.una) as u32, most, profile);
        let end = self.una + u64::from(end);
        let tracking = self.tracking_mut();
        let first = tracking.segments.is_first(place);
        tracking.note_again(now, place, sent);
        tracking.segments.note_departure(now, from, end);
        tracking.segments.sent_again(now, place, end, counts);
        tracking.prr.sent();
        if first && tracking.timer != Timer::Reordering && profile.fast_retransmit_restarts_timer {
            tracking.timer = Timer::Timeout;
            self.rto.start(now, profile);
        }
        segment
    }

    /// RFC 8985, section 7.3: returns new data if there is any, and otherwise the last segment
    /// again.
    #[cold]
    #[inline(never)]
    fn transmit_probe(&mut self, now: Instant, profile: &Profile) -> Segment {
        let (len, reach) = (self.segment_len(self.next(), profile), self.reach(profile));
        // In a probe, only the receive window limits new data; Nagle's rule, for example, does not
        // apply.
        let new = if len > 0 { u64::from(self.flight + len) <= reach } else { self.fits(reach, profile) };
        let last = self.tracking().segments.last();
        let segment = match last.filter(|_| !new) {
            Some(place) => {
                let known = self.tracking().segments.has_arrived(place);
                let counts = !known && profile.probe_counts;
                self.transmit_again(now, place, counts, profile)
            }
            None => {
                let from = self.sent();
                let mut segment = self.new_data_apart(now, profile);
                if profile.paws {
                    segment.extras = self.stamp(now, segment.extras, profile);
                }
                let end = self.sent();
                self.tracking_mut().segments.note_departure(now, from, end);
                self.tracking_mut().sent_new(now, segment.len, end, profile);
                self.note_usage(self.tracking().fills(&self.window, profile));
                segment
            }
        };
        let end = self.sent();
        self.tracking_mut().probe = Some(Probe { end, again: !new });
        segment
    }
}
