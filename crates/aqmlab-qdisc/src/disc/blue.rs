//! BLUE: the [`Early`] queue with a [`crate::law::BlueLaw`].

use aqmlab_random::{Stream, unit_from_bits};
use aqmlab_units::{Bytes, Instant, Span};

use super::{Early, EarlyLaw, Measure};
use crate::law::{BlueLaw, Decision};
use crate::{Backlog, LawSamples};

/// BLUE.
pub type Blue<P> = Early<P, BlueControl>;

/// BLUE's law over a real queue, with what it draws besides the arrivals' fates.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BlueControl {
    law: BlueLaw,
    /// Unit of the threshold.
    measure: Measure,
    /// Is each freeze time drawn anew, uniform between 0 and twice the parameter?
    random_freeze: bool,
    /// Does an overflow take a random packet, the arrival included, and not the arrival?
    random_victim: bool,
    draws: Stream,
    updates: u64,
    victims: u64,
}

/// Where the draws of freeze times and of victims begin in the queue's stream; no arrival gets so far.
const FREEZE_DRAWS: u64 = 1 << 62;
const VICTIM_DRAWS: u64 = 1 << 63;

impl BlueControl {
    /// A control over an empty queue; `draws` is the queue's stream.
    pub fn new(
        law: BlueLaw,
        measure: Measure,
        random_freeze: bool,
        random_victim: bool,
        draws: Stream,
    ) -> Self {
        let mut control =
            BlueControl { law, measure, random_freeze, random_victim, draws, updates: 0, victims: 0 };
        control.draw_freeze_time(true);
        control
    }

    /// The law.
    pub const fn law(&self) -> &BlueLaw {
        &self.law
    }

    #[inline]
    fn draw_freeze_time(&mut self, updated: bool) {
        if updated && self.random_freeze {
            let unit = unit_from_bits(self.draws.at(FREEZE_DRAWS + self.updates));
            self.updates += 1;
            let seconds = 2.0 * unit * self.law.params().freeze_time.as_secs_f64();
            self.law
                .set_hold(Span::try_from_secs_f64(seconds).expect("twice a freeze time is a length of time"));
        }
    }
}

impl EarlyLaw for BlueControl {
    #[inline]
    fn decide_at_arrival(
        &mut self,
        now: Instant,
        backlog: Backlog,
        _size: Bytes,
        draw: impl FnOnce() -> f64,
    ) -> Decision {
        let updated = self.law.on_arrival(now, self.measure.of(backlog));
        self.draw_freeze_time(updated);
        self.law.decision(Measure::Packets.of(backlog), draw)
    }

    fn on_overflow(&mut self, now: Instant) {
        let updated = self.law.on_loss(now);
        self.draw_freeze_time(updated);
    }

    fn on_early_drop(&mut self, now: Instant) {
        let updated = self.law.on_early_drop(now);
        self.draw_freeze_time(updated);
    }

    fn evicts(&self) -> bool {
        self.random_victim
    }

    fn victim(&mut self, waiting: usize) -> usize {
        if !self.random_victim {
            return waiting;
        }
        let bits = self.draws.at(VICTIM_DRAWS + self.victims);
        self.victims += 1;
        // Uniform on 0 ..= waiting.
        ((u128::from(bits) * (waiting as u128 + 1)) >> 64) as usize
    }

    #[inline]
    fn on_idle(&mut self, now: Instant) {
        let updated = self.law.on_idle(now);
        self.draw_freeze_time(updated);
    }

    /// `p`: the probability, `p_m`.
    fn observe(&self, _now: Instant, _backlog: Backlog, out: &mut LawSamples) {
        out.push(("p", self.law.probability()));
    }
}
