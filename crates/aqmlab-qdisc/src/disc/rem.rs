//! REM: the [`Early`] queue with a [`RemLaw`], which decides at arrivals or at departures.

use aqmlab_units::{Bytes, Instant, Rate};

use super::{Early, EarlyLaw, Leaving, Measure};
use crate::info::Decides;
use crate::law::{Decision, RemLaw};
use crate::{Backlog, LawSamples};

/// REM.
pub type Rem<P> = Early<P, RemControl>;

/// REM's law over a real queue.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RemControl {
    /// The law.
    pub law: RemLaw,
    /// In what queue and arrivals are measured.
    pub measure: Measure,
    /// Mean packet size: turns the link's rate into packets per second.
    pub mean_packet: Bytes,
    /// Whether packets are chosen as they leave, instead of as they arrive.
    pub at_departure: bool,
}

impl EarlyLaw for RemControl {
    const DECIDES: Decides = Decides::Both;

    #[inline(always)]
    fn decides(&self) -> Decides {
        if self.at_departure { Decides::Dequeue } else { Decides::Enqueue }
    }

    #[inline]
    fn catch_up(&mut self, now: Instant, backlog: Backlog) {
        self.law.catch_up(now, || self.measure.of(backlog));
    }

    /// ns-2.35: arrivals count whether they find room or not.
    #[inline]
    fn on_arrival(&mut self, _now: Instant, _backlog: Backlog, size: Bytes) {
        self.law.on_arrival(match self.measure {
            Measure::Packets => 1,
            Measure::Bytes => size.get(),
        });
    }

    #[inline]
    fn decide_at_arrival(
        &mut self,
        _now: Instant,
        _backlog: Backlog,
        size: Bytes,
        draw: impl FnOnce() -> f64,
    ) -> Decision {
        self.law.judge(size, draw)
    }

    #[inline]
    fn decide_at_departure(&mut self, _now: Instant, pkt: Leaving, draw: impl FnOnce() -> f64) -> Decision {
        self.law.judge(pkt.size, draw)
    }

    fn rate_changed(&mut self, _now: Instant, rate: Rate) {
        self.law.rate_changed(rate.packets_per_s(self.mean_packet));
    }

    /// `price`, `p`.
    fn observe(&self, now: Instant, backlog: Backlog, out: &mut LawSamples) {
        let mut copy = *self;
        copy.catch_up(now, backlog);
        out.extend([("price", copy.law.price()), ("p", copy.law.probability())]);
    }
}
