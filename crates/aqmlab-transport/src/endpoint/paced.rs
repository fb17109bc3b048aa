//! Pacing: no segment leaves before its departure time, to which the endpoint's shared timer is set.

use aqmlab_units::{Bytes, Instant, Span};

use super::Endpoint;
use crate::profile::{BurstWait, Profile, third_of};
use crate::recovery::Phase;

/// The first segments of a flow that are not paced if the congestion control determines the rate as in Linux, or with
/// [`Profile::pacing_credit`]; as observed on Linux 6.1.
const UNPACED: u32 = 10;

/// A burst waits only if some segment has left within this time (Linux).
const RECENTLY: Span = Span::ms(1);

impl Endpoint {
    /// Returns whether the next segment has to wait; if so, makes sure that the timer fires when
    /// that segment may leave.
    pub(super) fn waits_for_its_time(&mut self, now: Instant) -> bool {
        let next = self.tracking().pace.as_ref().and_then(|pace| pace.waits(now));
        let Some(next) = next else { return false };
        let due = self.rto.deadline();
        if next < due {
            self.tracking_mut().pace().held = Some(due);
            self.rto.arm_for(now, next - now);
        }
        true
    }

    /// Restores the setting that the timer had before a segment had to wait, unless the timer has
    /// been set again since then. Returns true if it was restored.
    pub(super) fn release_timer(&mut self, now: Instant) -> bool {
        let deadline = self.rto.deadline();
        let Some(pace) = &mut self.tracking_mut().pace else { return false };
        let Some(due) = pace.held.take() else { return false };
        let waited = pace.has_set(deadline);
        if waited {
            self.rto.arm_for(now, due.saturating_since(now));
        }
        waited
    }

    /// Notes that a segment of `len` bytes is leaving.
    pub(super) fn note_pace(&mut self, now: Instant, len: u32, profile: &Profile) {
        if let Some(pacing) = self.troubles.get().control.pacing(profile) {
            let takes = pacing.rate.time_for(Bytes::new(len.into()));
            if !pacing.as_linux {
                self.tracking_mut().pace().sent(now, takes, pacing.burst);
            } else if self.tally.data_segments >= UNPACED {
                self.tracking_mut().pace().sent_late(now, takes, pacing.burst);
            }
            return;
        }
        let takes = self.rto.srtt().map_or(Span::ZERO, |srtt| {
            let share = f64::from(len) / f64::from(profile.mss);
            let takes = Span::ns((srtt.as_ns() as f64 * share / self.paced_window(profile)) as u64);
            // Nothing waits for longer than a timeout, whose bound the round-trip time may exceed.
            takes.min(self.rto.rto(profile))
        });
        let burst = if profile.burst > 1 { self.burst_size(profile) } else { 0 };
        let (burst, unpaced) = (profile.pacing_burst.max(burst), self.tally.data_segments <= UNPACED);
        let pace = self.tracking_mut().pace();
        match profile.pacing_credit {
            true if unpaced => {}
            true => pace.sent_late(now, takes, burst),
            false => pace.sent(now, takes, burst),
        }
    }

    /// Returns the number of segments that leave in one smoothed round-trip time at the pacing
    /// rate.
    pub(super) fn paced_window(&self, profile: &Profile) -> f64 {
        let least = if profile.answers_marks() { profile.prague_least_window } else { 1.0 };
        let (cwnd, ssthresh) = (self.window.cwnd().max(least), self.window.ssthresh());
        let slow_start = cwnd < ssthresh / 2.0;
        let gain = if slow_start { profile.pacing_gain_slow_start } else { profile.pacing_gain };
        gain * cwnd
    }

    /// Returns the number of segments in a burst that begins now.
    fn burst_size(&self, profile: &Profile) -> u32 {
        let Some(srtt) = self.rto.srtt().filter(|_| !profile.burst_time.is_zero()) else {
            return profile.burst;
        };
        let share = profile.burst_time.as_ns() as f64 / srtt.as_ns() as f64;
        ((self.paced_window(profile) * share) as u32).max(2).min(profile.burst)
    }

    /// Returns whether new data that would begin a burst has to wait until the window of `usable` segments
    /// has room for a whole burst, until a third of the window is free, or until the rest of the data fits.
    #[cold]
    pub(super) fn waits_for_burst(&self, now: Instant, usable: u64, profile: &Profile) -> bool {
        let tracking = self.tracking();
        let in_flight = u64::from(tracking.segments.in_flight());
        if tracking.phase != Phase::Open || in_flight == 0 || !self.expects_soon(now, profile) {
            return false;
        }
        let mss = u64::from(profile.mss);
        let reach = self.reach(profile);
        let window = usable.min(reach / mss);
        let room = usable.saturating_sub(in_flight).min(reach.saturating_sub(u64::from(self.flight)) / mss);
        let left = self.stream_end.saturating_sub(self.next()).div_ceil(mss);
        room < u64::from(self.burst_size(profile).min(third_of(window))).min(left)
    }

    /// Returns whether an acknowledgment is expected so soon that a burst may wait for it.
    fn expects_soon(&self, now: Instant, profile: &Profile) -> bool {
        if profile.burst_wait == BurstWait::Room {
            return true;
        }
        let half = self.rto.srtt().unwrap_or(Span::ZERO).div(2);
        let first = self.tracking().segments.first_left();
        let is_near = first.is_some_and(|first| now.saturating_since(first) >= half);
        is_near && now.saturating_since(self.last_activity) <= RECENTLY
    }

    /// Returns whether new data belongs to a burst that leaves at this instant.
    pub(super) fn is_in_burst(&self, now: Instant) -> bool {
        self.rest_of_burst(now) > 0
    }

    /// Notes that new data is leaving. Returns whether it ends a burst of several segments.
    #[cold]
    pub(super) fn note_burst(&mut self, now: Instant, usable: u64, profile: &Profile) -> bool {
        let rest = self.rest_of_burst(now);
        let left = if rest > 0 { rest } else { self.burst_size(profile).min(self.room(usable, profile)) };
        self.tracking_mut().pace().burst = (now, left - 1);
        rest == 1
    }

    /// Returns how many segments of new data fit into a window of `usable` segments and into that of the other
    /// side; at least one, because a segment is leaving.
    fn room(&self, usable: u64, profile: &Profile) -> u32 {
        let in_flight = u64::from(self.tracking().segments.in_flight());
        let reach = self.reach(profile).saturating_sub(u64::from(self.flight)) / u64::from(profile.mss);
        usable.saturating_sub(in_flight).min(reach).max(1) as u32
    }

    /// Returns how many segments of the burst that leaves at this instant have not left yet.
    fn rest_of_burst(&self, now: Instant) -> u32 {
        let burst = self.tracking().pace.as_ref().map(|pace| pace.burst);
        burst.map_or(0, |(began, left)| if began == now { left } else { 0 })
    }
}
