//! Links whose rate changes during a run.

use std::sync::Arc;

use aqmlab_traffic::Distribution;
use aqmlab_units::{Bytes, Rate, Span};
use schemars::JsonSchema;
use serde::Serialize;

use crate::trace::{ChanceFile, LevelFile, RateStep};

/// How the rate of a link changes: by which clock the link sends, and the course of the rate.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct ChangingRate {
    /// The clock.
    #[serde(flatten)]
    pub clock: RateClock,
    /// The course of the rate.
    #[serde(flatten)]
    pub course: RateCourse,
}

/// How a link turns a changing rate into departures.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(tag = "clock", rename_all = "lowercase")]
pub enum RateClock {
    /// The link sends a packet for as long as the rate requires; what is left of a packet when the rate changes is
    /// sent at the new rate. Time in which there is nothing to send is not saved.
    Serving,
    /// The link sends only at instants, up to this many bytes at each. What a chance does not use is lost, and a
    /// packet may take several chances. (Mahimahi's links.)
    Chances {
        /// Bytes per chance, link overhead included.
        #[serde(rename = "chance_bytes")]
        size: Bytes,
    },
}

/// The course of a rate over a run.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum RateCourse {
    /// The steps that the scenario lists.
    Steps {
        /// The steps; the first is at zero.
        steps: Arc<[RateStep]>,
        /// The time after which the steps are repeated, if they are.
        #[serde(rename = "repeat_ns", skip_serializing_if = "Option::is_none")]
        repeat: Option<Span>,
    },
    /// The levels of a file.
    File {
        /// The file.
        #[serde(flatten)]
        levels: Arc<LevelFile>,
        /// What follows the end of the file.
        at_end: AtEnd,
    },
    /// The chances of a file in Mahimahi's format. A serving link has their mean rate in each bin.
    Mahimahi {
        /// The file.
        #[serde(flatten)]
        chances: Arc<ChanceFile>,
        /// What follows the end of the file.
        at_end: AtEnd,
        /// The length of a bin; absent if the link sends at the chances themselves.
        #[serde(rename = "bin_ns", skip_serializing_if = "Option::is_none")]
        bin: Option<Span>,
    },
    /// The link is up and down in turn.
    Outages {
        /// The rate of the link when it is up.
        #[serde(rename = "rate_bps")]
        rate: Rate,
        /// How long it is up.
        #[serde(rename = "up_ns")]
        up: Distribution,
        /// How long it is down.
        #[serde(rename = "down_ns")]
        down: Distribution,
    },
    /// A Markov chain: from each level to another one, all equally probable.
    Markov {
        /// The levels.
        #[serde(rename = "levels_bps")]
        levels: Vec<Rate>,
        /// The mean of the exponential time at each level.
        #[serde(rename = "stay_ns")]
        stay: Span,
    },
    /// A new level at regular intervals, drawn independently of the level before it.
    Redrawn {
        /// What the levels are drawn from.
        #[serde(rename = "level_bps")]
        level: Distribution<Rate>,
        /// The interval.
        #[serde(rename = "every_ns")]
        every: Span,
        /// The first change.
        #[serde(rename = "first_ns")]
        first: Span,
    },
    /// Log-normal fading: the logarithm of the rate is a stationary Gauss-Markov process.
    Fading {
        /// The mean rate.
        #[serde(rename = "mean_bps")]
        mean: Rate,
        /// The standard deviation of the logarithm of the rate, in decibels.
        deviation_db: f64,
        /// The time after which the correlation of the logarithm has fallen to 1/e.
        #[serde(rename = "coherence_ns")]
        coherence: Span,
        /// The interval between levels.
        #[serde(rename = "step_ns")]
        step: Span,
    },
    /// The link stands still at regular intervals.
    Stalls {
        /// The rate between stalls.
        #[serde(rename = "rate_bps")]
        rate: Rate,
        /// The interval between the beginnings of stalls.
        #[serde(rename = "every_ns")]
        every: Span,
        /// The length of a stall.
        #[serde(rename = "lasts_ns")]
        lasts: Span,
        /// The beginning of the first stall.
        #[serde(rename = "first_ns")]
        first: Span,
    },
}

/// What follows the end of a file of rates or chances.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AtEnd {
    /// The file again, from its beginning.
    Repeat,
    /// The last level of rates; after the last chance, no chance.
    Hold,
}
