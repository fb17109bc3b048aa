//! Lengths of alternating on and off periods.

use alloc::sync::Arc;

use aqmlab_random::Stream;
use aqmlab_units::Span;
use schemars::JsonSchema;
use serde::Serialize;

use crate::distribution::Distribution;

/// The first period of a source.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Begin {
    /// A whole on period.
    On,
    /// A whole off period, as in ns-2's generators.
    Off,
    /// Stationary: the source is on with probability `mean on / (mean on + mean off)`, and the first period
    /// is the residual life of an on or off period at a random instant. With heavy-tailed periods, the effect
    /// of any other start lasts a long time.
    Stationary,
}

/// The periods of the sources of a class.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct OnOff {
    /// Lengths of on periods.
    #[serde(rename = "on_ns")]
    pub on: Distribution,
    /// Lengths of off periods.
    #[serde(rename = "off_ns")]
    pub off: Distribution,
    /// The first period.
    pub begin: Begin,
}

impl OnOff {
    /// The version of this part, incremented whenever a change to it changes a result.
    pub const VERSION: u32 = 1;

    /// Returns the share of the time that a source is on, in the long run.
    pub fn duty(&self) -> f64 {
        let (on, off) = (self.on.mean().as_secs_f64(), self.off.mean().as_secs_f64());
        on / (on + off)
    }
}

/// One source's periods. On periods and off periods have separate streams of draws.
#[derive(Clone, Debug)]
pub(crate) struct Periods {
    times: Arc<OnOff>,
    on_draws: Stream,
    off_draws: Stream,
    ons: u64,
    offs: u64,
}

/// A period and its length.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Period {
    On(Span),
    Off(Span),
}

impl Periods {
    pub(crate) fn new(times: Arc<OnOff>, on_draws: Stream, off_draws: Stream) -> Self {
        Periods { times, on_draws, off_draws, ons: 0, offs: 0 }
    }

    /// Draws the first period. Its draws come before all other draws from the two streams.
    ///
    /// # Panics
    /// If the start is stationary and [`Distribution::residual`] has no formula for the
    /// distribution.
    pub(crate) fn first(&mut self) -> Period {
        match self.times.begin {
            Begin::On => Period::On(self.next_on()),
            Begin::Off => Period::Off(self.next_off()),
            Begin::Stationary if self.on_draws.hit(self.times.duty()) => {
                Period::On(left_of(&self.times.on, &mut self.on_draws))
            }
            Begin::Stationary => Period::Off(left_of(&self.times.off, &mut self.off_draws)),
        }
    }

    pub(crate) fn next_on(&mut self) -> Span {
        self.ons += 1;
        self.times.on.draw(self.ons - 1, &mut self.on_draws)
    }

    pub(crate) fn next_off(&mut self) -> Span {
        self.offs += 1;
        self.times.off.draw(self.offs - 1, &mut self.off_draws)
    }
}

fn left_of(of: &Distribution, draws: &mut Stream) -> Span {
    of.residual(draws).expect("a stationary start needs a distribution whose residual life has a formula")
}
