//! Distributions of times: when flows start, how far apart their ends are.

use alloc::vec::Vec;

use aqmlab_random::Stream;
use aqmlab_units::Span;

/// A distribution of a length of time over the flows of a class.
#[derive(Clone, PartialEq, Debug)]
pub enum Distribution {
    /// The same for every flow.
    Constant(Span),
    /// Uniform on `[low, high]`, to the nanosecond.
    Uniform {
        /// least
        low: Span,
        /// greatest
        high: Span,
    },
    /// Evenly spread: flow i of n has `low + i (high - low) / (n - 1)`; no draw.
    Spread {
        /// the first flow's
        low: Span,
        /// the last flow's
        high: Span,
    },
    /// Exponential with this mean, shifted by `offset`.
    Exponential {
        /// mean of the exponential part
        mean: Span,
        /// added to every draw
        offset: Span,
    },
    /// Flow i has entry `i mod len`; never empty.
    List(Vec<Span>),
}

impl Distribution {
    /// The value of flow `index` of `count`. `stream` is that flow's own; at most its first draw is used, so
    /// one more flow never changes another's value (except under [`Distribution::Spread`], by definition).
    pub fn value(&self, index: u64, count: u64, mut stream: Stream) -> Span {
        match self {
            Distribution::Constant(v) => *v,
            Distribution::Uniform { low, high } => {
                let width = high.saturating_sub(*low).as_ns();
                // Both ends included; a width of u64::MAX would overflow by one and is cut.
                *low + Span::ns(stream.below(width.saturating_add(1)))
            }
            Distribution::Spread { low, high } => {
                let width = u128::from(high.saturating_sub(*low).as_ns());
                let steps = u128::from(count.saturating_sub(1).max(1));
                *low + Span::ns((width * u128::from(index) / steps) as u64)
            }
            Distribution::Exponential { mean, offset } => {
                let draw = mean.as_secs_f64() * stream.exponential();
                *offset
                    + Span::try_from_secs_f64(draw).expect("an exponential draw of 53 bits is below 37 means")
            }
            Distribution::List(values) => values[(index % values.len() as u64) as usize],
        }
    }

    /// The least value that any flow can have.
    pub fn least(&self) -> Span {
        match self {
            Distribution::Constant(v) => *v,
            Distribution::Uniform { low, .. } | Distribution::Spread { low, .. } => *low,
            Distribution::Exponential { offset, .. } => *offset,
            Distribution::List(values) => values.iter().copied().min().unwrap_or(Span::ZERO),
        }
    }

    /// The mean over flows.
    pub fn mean(&self) -> Span {
        match self {
            Distribution::Constant(v) => *v,
            Distribution::Uniform { low, high } | Distribution::Spread { low, high } => {
                *low + high.saturating_sub(*low).div(2)
            }
            Distribution::Exponential { mean, offset } => *mean + *offset,
            Distribution::List(values) => {
                let sum: u128 = values.iter().map(|v| u128::from(v.as_ns())).sum();
                Span::ns((sum / values.len().max(1) as u128) as u64)
            }
        }
    }
}
