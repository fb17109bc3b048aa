//! Pacing: no segment leaves before its time, and the endpoint's shared timer is set to that time.

use aqmlab_units::{Instant, Span};

use super::Endpoint;
use crate::profile::Profile;

impl Endpoint {
    /// Returns whether the next segment has to wait; if so, the timer fires in time.
    pub(super) fn waits_for_its_time(&mut self, now: Instant) -> bool {
        let Some(next) = self.tracking().pace.waits(now) else { return false };
        let due = self.rto.deadline();
        if next < due {
            self.tracking_mut().pace.held = Some(due);
            self.rto.arm_for(now, next - now);
        }
        true
    }

    /// Restores the timer's setting from before a segment had to wait, unless it has been set since. Returns
    /// true if it did.
    pub(super) fn release_timer(&mut self, now: Instant) -> bool {
        let deadline = self.rto.deadline();
        let pace = &mut self.tracking_mut().pace;
        let Some(due) = pace.held.take() else { return false };
        let waited = pace.has_set(deadline);
        if waited {
            self.rto.arm_for(now, due.saturating_since(now));
        }
        waited
    }

    /// Notes that a segment of `len` bytes leaves.
    pub(super) fn note_pace(&mut self, now: Instant, len: u32, profile: &Profile) {
        let takes = self.rto.srtt().map_or(Span::ZERO, |srtt| {
            let (cwnd, ssthresh) = (self.window.cwnd().max(1.0), self.window.ssthresh());
            let slow_start = cwnd < ssthresh / 2.0;
            let gain = if slow_start { profile.pacing_gain_slow_start } else { profile.pacing_gain };
            let share = f64::from(len) / f64::from(profile.mss);
            Span::ns((srtt.as_ns() as f64 * share / (gain * cwnd)) as u64)
        });
        self.tracking_mut().pace.sent(now, takes, profile.pacing_burst);
    }
}
