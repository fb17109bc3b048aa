//! RED and Adaptive RED: the [`Early`] queue with a [`crate::law::RedLaw`], fixed or adaptive.

use aqmlab_units::{Bytes, Instant, Rate};

use super::{Early, EarlyLaw, Measure};
use crate::law::{AdaptiveRed, Decision, RedLaw};
use crate::{Backlog, LawSamples};

/// RED and Adaptive RED.
pub type Red<P> = Early<P, RedControl>;

/// RED's law for a real queue.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RedControl {
    /// The law.
    pub rule: RedRule,
    /// Unit of the average and the thresholds.
    pub measure: Measure,
    /// Mean packet size, which converts the link's rate to packets per second.
    pub mean_packet: Bytes,
}

/// Whether `max_p` moves.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum RedRule {
    /// `max_p` is fixed.
    Fixed(RedLaw),
    /// `max_p` moves.
    Adaptive(AdaptiveRed),
}

impl RedControl {
    /// Returns RED's own law, in its state after the last call.
    pub const fn law(&self) -> &RedLaw {
        match &self.rule {
            RedRule::Fixed(law) => law,
            RedRule::Adaptive(law) => law.red(),
        }
    }
}

impl EarlyLaw for RedControl {
    #[inline]
    fn decide_at_arrival(
        &mut self,
        now: Instant,
        backlog: Backlog,
        size: Bytes,
        draw: impl FnOnce() -> f64,
    ) -> Decision {
        let queued = self.measure.of(backlog);
        let (law, avg) = match &mut self.rule {
            RedRule::Fixed(law) => {
                let avg = law.update_average(now, queued);
                (law, avg)
            }
            RedRule::Adaptive(law) => {
                let avg = law.update(now, queued);
                (law.red_mut(), avg)
            }
        };
        law.decide(avg, queued, size, draw)
    }

    fn on_overflow(&mut self, _now: Instant) {
        match &mut self.rule {
            RedRule::Fixed(law) => law.on_overflow(),
            RedRule::Adaptive(law) => law.on_overflow(),
        }
    }

    #[inline]
    fn on_idle(&mut self, now: Instant) {
        match &mut self.rule {
            RedRule::Fixed(law) => law.on_idle(now),
            RedRule::Adaptive(law) => law.on_idle(now),
        }
    }

    fn rate_changed(&mut self, now: Instant, rate: Rate) {
        let packets_per_s = rate.packets_per_s(self.mean_packet);
        match &mut self.rule {
            RedRule::Fixed(law) => law.rate_changed(now, packets_per_s),
            RedRule::Adaptive(law) => law.rate_changed(now, packets_per_s),
        }
    }

    /// Appends `avg` (in the unit of the thresholds), `p` (before spacing, after the low-pass
    /// filter), `max_p` and `count`.
    fn observe(&self, now: Instant, _backlog: Backlog, out: &mut LawSamples) {
        let law = match &self.rule {
            RedRule::Fixed(law) => *law,
            RedRule::Adaptive(law) => *law.at(now).red(),
        };
        let avg = law.average().at(now);
        out.extend([
            ("avg", avg),
            ("p", law.probability_in_use(avg)),
            ("max_p", law.max_p()),
            ("count", law.count() as f64),
        ]);
    }
}
