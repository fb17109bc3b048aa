//! Controllers that adjust the rate of a shaper.

use aqmlab_units::{Bytes, Rate, Span};
use schemars::JsonSchema;
use serde::Serialize;

use super::data::Reference;

/// A controller that adjusts the rate of a link's shaper by the delay of a reflector's packets, as cake-autorate does.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct AutoratePlan {
    /// The class whose packets measure the delay. Each of its flows is a reflector of its own.
    pub reflector: Reference,
    /// How long the answer to a packet takes back to the controller.
    #[serde(rename = "return_delay_ns")]
    pub return_delay: Span,
    /// What the controller takes as the delay of the direction that it shapes.
    pub measures: AutorateDelay,
    /// The lowest rate.
    #[serde(rename = "min_bps")]
    pub min: Rate,
    /// The first rate, to which the shaper returns while the load is low.
    #[serde(rename = "base_bps")]
    pub base: Rate,
    /// The highest rate.
    #[serde(rename = "max_bps")]
    pub max: Rate,
    /// Up to this mean excess of the delay over its baseline, a rate increases by `increase_most`.
    #[serde(rename = "increase_threshold_ns")]
    pub increase_threshold: Span,
    /// A delay that exceeds its baseline by more counts as long.
    #[serde(rename = "delay_threshold_ns")]
    pub delay_threshold: Span,
    /// From this mean excess on, a rate decreases by `decrease_most`.
    #[serde(rename = "decrease_threshold_ns")]
    pub decrease_threshold: Span,
    /// The largest packet, whose transmission time at the shaper's rate is added to all three thresholds.
    #[serde(rename = "largest_packet_bytes")]
    pub largest_packet: Bytes,
    /// The number of answers that count.
    pub window: u64,
    /// As many long delays among them mean that the queue in front of the link is too long.
    pub detections: u64,
    /// The weight of a delay in its baseline if the delay is longer.
    pub baseline_up: f64,
    /// The same if it is shorter.
    pub baseline_down: f64,
    /// The factor of the rate if delays are just long.
    pub decrease_least: f64,
    /// The factor if they are at least `decrease_threshold`.
    pub decrease_most: f64,
    /// The factor under high load if delays are almost long.
    pub increase_least: f64,
    /// The factor if they are at most `increase_threshold`.
    pub increase_most: f64,
    /// The factor by which a rate above `base` decreases under low load.
    pub decay_down: f64,
    /// The factor by which a rate below `base` increases under low load.
    pub decay_up: f64,
    /// The load is high if more than this share of the shaper's rate leaves.
    pub high_load: f64,
    /// The interval over which the rate that leaves is measured.
    #[serde(rename = "interval_ns")]
    pub interval: Span,
    /// The time after a decrease in which the rate neither decreases nor increases.
    #[serde(rename = "refractory_ns")]
    pub refractory: Span,
    /// The time between two returns towards `base`.
    #[serde(rename = "decay_refractory_ns")]
    pub decay_refractory: Span,
}

impl AutoratePlan {
    /// Incremented whenever a change to the controller changes a result.
    pub const VERSION: u32 = 1;
}

/// What a controller takes as the delay of the direction that it shapes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AutorateDelay {
    /// The time from the sender to the receiver.
    OneWay,
    /// Half of the time until the answer is back.
    HalfRtt,
}
