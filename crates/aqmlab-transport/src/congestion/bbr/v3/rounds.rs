//! Packet-timed round trips, the largest delivery rate, and when that has reached a plateau.

use super::super::super::window::{Sample, Window};
use super::{Bbr, State, delivery_rate, has_data};
use crate::profile::Profile;

/// The rate still grows if it is at least this multiple of its earlier value; otherwise, after this many rounds, the
/// pipe is full.
const GROWTH: f64 = 1.25;
const FULL_BW_ROUNDS: u8 = 3;
/// Drain lasts at most this many rounds.
const DRAIN_ROUNDS: u32 = 3;

impl Bbr {
    pub(super) fn start_round(&mut self) {
        self.next_round_delivered = self.delivered;
    }

    fn update_round(&mut self, sample: &Sample) {
        self.round_start = sample.prior_delivered >= self.next_round_delivered;
        if self.round_start {
            self.start_round();
            self.round_count += 1;
            self.rounds_since_probe_up += 1;
        }
    }

    /// UpdateMaxBw. The filter has two places, for the current cycle and the previous one.
    fn update_max_bw(&mut self, sample: &Sample) {
        self.round_start = false;
        if !has_data(sample) {
            return;
        }
        self.update_round(sample);
        let rate = delivery_rate(sample);
        if rate > 0.0 && (rate >= self.max_bw || !sample.app_limited) {
            let [previous, current] = &mut self.max_bw_filter;
            *current = current.max(rate);
            self.max_bw = current.max(*previous);
        }
    }

    /// AdvanceMaxBwFilter.
    pub(super) fn advance_max_bw_filter(&mut self) {
        self.max_bw_filter = [self.max_bw_filter[1], 0.0];
    }

    /// UpdateCongestionSignals.
    pub(super) fn update_congestion_signals(&mut self, sample: &Sample, window: &Window) {
        self.update_max_bw(sample);
        if self.loss_round_start {
            self.adapt_lower_bounds_from_congestion(window);
            self.is_loss_in_round = false;
        }
    }

    pub(super) fn reset_full_bw(&mut self) {
        (self.full_bw, self.full_bw_count, self.full_bw_now) = (0.0, 0, false);
    }

    pub(super) fn check_full_bw_reached(&mut self, sample: &Sample) {
        if self.full_bw_now || !self.round_start || sample.app_limited {
            return;
        }
        let rate = delivery_rate(sample);
        if rate >= self.full_bw * GROWTH {
            self.reset_full_bw();
            self.full_bw = rate;
            return;
        }
        self.full_bw_count += 1;
        self.full_bw_now = self.full_bw_count >= FULL_BW_ROUNDS;
        self.full_bw_reached |= self.full_bw_now;
    }

    pub(super) fn check_startup_done(&mut self, sample: &Sample) {
        self.check_startup_high_loss(sample);
        if self.state == State::Startup && self.full_bw_reached {
            self.state = State::Drain;
            self.drain_start_round = self.round_count;
        }
    }

    pub(super) fn check_drain_done(&mut self, sample: &Sample, profile: &Profile) {
        if self.state != State::Drain {
            return;
        }
        let drained = f64::from(sample.in_flight) <= self.inflight(self.bw, 1.0, profile);
        if drained || self.round_count > self.drain_start_round + DRAIN_ROUNDS {
            self.start_probe_down(sample.now); // EnterProbeBW
        }
    }
}
