//! Delay stages at the edge of the network and in routers.

use std::sync::Arc;

use aqmlab_traffic::{Distribution, End, Probability};
use aqmlab_units::{Rate, Span};
use schemars::JsonSchema;
use serde::Serialize;

use super::data::{Reference, is_default};
use super::rate::AtEnd;
use crate::trace::{DelayStep, LevelFile, LossStep};

/// A delay stage at the edge of the network or in a router: the packets that it delays, and the
/// delay.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct DelayPlan {
    /// The rule's name.
    pub name: String,
    /// The rule applies only to packets of flows of this class.
    pub class: Option<Reference>,
    /// The rule applies only to packets that enter the network at this router.
    pub from: Option<Reference>,
    /// The rule applies only to packets that leave the network at this router.
    pub to: Option<Reference>,
    /// Whether the rule applies to packets that travel to the receiver.
    pub to_receiver: bool,
    /// Whether the rule applies to packets that travel to the sender.
    pub to_sender: bool,
    /// The place of the stage on the path of packets.
    #[serde(flatten)]
    pub at: StageAt,
    /// The constant delay for each flow and direction.
    #[serde(flatten)]
    pub delay: StageDelay,
    /// The additional delay of each packet.
    #[serde(rename = "jitter_ns")]
    pub jitter: Jitter,
    /// Whether a packet may overtake the packets of its flow before it; absent if not.
    #[serde(skip_serializing_if = "is_default")]
    pub reorder: bool,
    /// The loss probability for each flow and direction.
    pub loss: Distribution<Probability>,
    /// How the loss probability of all flows changes, if it does; `loss` is then its mean.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss_course: Option<LossCourse>,
    /// The rate for each flow and direction, if it is limited.
    #[serde(rename = "rate_bps")]
    pub rate: Option<Distribution<Rate>>,
    /// The clocks of the hosts that delay, if packets leave at their ticks.
    #[serde(flatten)]
    pub ticks: Option<TickPlan>,
}

/// The hosts of a delay stage that delay packets by whole ticks of their kernels' clocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct TickPlan {
    /// The tick.
    #[serde(rename = "tick_ns")]
    pub tick: Span,
    /// The number of hosts, each with a phase of its own; the flows are shared out among them.
    #[serde(rename = "tick_hosts")]
    pub hosts: u64,
}

/// The delay that a stage adds to each packet of a flow in one direction.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub enum StageDelay {
    /// A separate draw for each flow and direction.
    #[serde(rename = "delay_ns")]
    Drawn(Distribution),
    /// The same for all flows, but changing during the run.
    #[serde(rename = "changing_delay")]
    Changing {
        /// The delay over time.
        #[serde(flatten)]
        course: DelayCourse,
        /// Its mean over the run, or over the period of what repeats.
        #[serde(rename = "mean_ns")]
        mean: Span,
    },
    /// A one-way delay that belongs to an end of the connection, the same in both directions.
    #[serde(rename = "delay_of")]
    Of(EndDelay),
}

/// A delay between an end of a connection and the edge of the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum EndDelay {
    /// The delay that the class's cloud has drawn or its trace gives for the connection.
    Cloud(End),
    /// A draw per flow from PackMime-HTTP's distribution.
    Packmime(End),
}

/// How a delay changes during a run.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum DelayCourse {
    /// The steps that the scenario lists; the first is at zero.
    Steps {
        /// The steps.
        steps: Arc<[DelayStep]>,
    },
    /// Those of a file.
    File {
        /// The file.
        #[serde(flatten)]
        levels: Arc<LevelFile>,
        /// What follows its end.
        at_end: AtEnd,
    },
}

/// How a loss probability changes during a run.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum LossCourse {
    /// The steps that the scenario lists; the first is at zero.
    Steps {
        /// The steps.
        steps: Arc<[LossStep]>,
    },
    /// Those of a file.
    File {
        /// The file.
        #[serde(flatten)]
        levels: Arc<LevelFile>,
        /// What follows its end.
        at_end: AtEnd,
    },
}

/// The additional delay of each packet.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Jitter {
    /// Uniform between zero and this time.
    UpTo(Span),
    /// Drawn from this distribution.
    Drawn(Distribution),
}

impl Jitter {
    /// Returns whether no packet is delayed.
    pub fn is_none(&self) -> bool {
        *self == Jitter::UpTo(Span::ZERO)
    }
}

/// The place of a delay stage: an edge of the network, or a router, before its output queue.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(tag = "at", rename_all = "lowercase")]
pub enum StageAt {
    /// between the flow's own link and the first router
    Entry,
    /// between the last router and the flow's own link
    Exit,
    /// in a router, before its output queue
    Router {
        /// The router of the stage.
        router: Reference,
    },
}

impl StageAt {
    /// Returns the place on a packet's path.
    pub fn place(&self) -> StagePlace {
        match self {
            StageAt::Entry => StagePlace::Edge(Edge::Entry),
            StageAt::Exit => StagePlace::Edge(Edge::Exit),
            StageAt::Router { router } => StagePlace::Router(**router),
        }
    }
}

/// An edge of the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Edge {
    /// Between the flow's own link, or its host, and the first router.
    Entry,
    /// Between the last router and the flow's own link, or its host.
    Exit,
}

/// The place of a delay stage on the path of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StagePlace {
    /// An edge of the network.
    Edge(Edge),
    /// In this router, before its output queue: an index into [`Plan::nodes`].
    Router(usize),
}
