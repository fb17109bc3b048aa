//! PI: the [`Early`] queue with a [`PiLaw`].

use aqmlab_units::{Bytes, Instant, Rate};

use super::{Early, EarlyLaw, Measure};
use crate::law::{Decision, PiLaw};
use crate::{Backlog, LawSamples};

/// PI.
pub type Pi<P> = Early<P, PiControl>;

/// PI's law over a real queue.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PiControl {
    /// The law.
    pub law: PiLaw,
    /// In what the queue is measured.
    pub measure: Measure,
}

impl EarlyLaw for PiControl {
    #[inline]
    fn catch_up(&mut self, now: Instant, backlog: Backlog) {
        self.law.catch_up(now, || self.measure.of(backlog));
    }

    #[inline]
    fn decide_at_arrival(
        &mut self,
        _now: Instant,
        _backlog: Backlog,
        size: Bytes,
        draw: impl FnOnce() -> f64,
    ) -> Decision {
        self.law.on_arrival(size, draw)
    }

    /// The gains were chosen for one rate and stay.
    fn rate_changed(&mut self, _now: Instant, _rate: Rate) {}

    /// `p`.
    fn observe(&self, now: Instant, backlog: Backlog, out: &mut LawSamples) {
        let mut copy = *self;
        copy.catch_up(now, backlog);
        out.push(("p", copy.law.probability()));
    }
}
