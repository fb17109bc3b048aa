//! Classes of flows.

use aqmlab_qdisc::Dscp;
use aqmlab_random::Stream;
use aqmlab_traffic::Distribution;
use aqmlab_units::{Rate, Span};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use super::data::{References, is_default};
use crate::error::Problem;
use crate::traffic::Traffic;

/// Largest number of classes in a plan: the simulator's packets store the number of their class in
/// 13 bits.
pub const MOST_CLASSES: usize = 1 << 13;

/// A class of similar flows.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct ClassPlan {
    /// The class's name in recordings.
    pub name: String,
    /// Number of flows: the number of connections or streams in a list, the number of users, or 1
    /// for an arrival process.
    pub count: u64,
    /// Links from source to destination, in order.
    pub path: References,
    /// Links from destination to source, in order.
    pub return_path: References,
    /// When each flow starts.
    #[serde(flatten)]
    pub start: FlowStarts,
    /// When each flow stops sending, if before the end of the run.
    #[serde(rename = "stop_ns")]
    pub stop_at: Option<Span>,
    /// Each flow's own access links, if it has any.
    pub access: Option<Access>,
    /// For connections with their own delays: whether delay stages represent the clients' delays, and whether
    /// they represent the servers'. Delays that no stage represents are placed on access links.
    #[serde(skip)]
    pub placed: [bool; 2],
    /// Loss probability of a flow's data packets on its sender's access link.
    #[serde(rename = "loss")]
    pub access_loss: f64,
    /// The differentiated services code point (DSCP) of each packet, in both directions; absent if best effort.
    #[serde(serialize_with = "code_point", skip_serializing_if = "is_default")]
    #[schemars(with = "u8")]
    pub dscp: Dscp,
    /// The port of the server's end of each flow; absent if [`ClassPlan::PORT`].
    #[serde(skip_serializing_if = "ClassPlan::is_usual_port")]
    #[schemars(description = "The port of the server's end of each flow, if it is not 5001.")]
    pub port: u16,
    /// What the flows of the class carry, and when they begin.
    #[serde(rename = "workload")]
    pub traffic: Traffic,
    /// The reason why only a kernel can run the class; `None` if the simulator can run it too.
    #[serde(skip)]
    pub only_live: Option<Problem>,
}

impl ClassPlan {
    /// The server port of classes that do not give one.
    pub const PORT: u16 = 5001;

    #[allow(clippy::trivially_copy_pass_by_ref)] // serde's
    const fn is_usual_port(port: &u16) -> bool {
        *port == Self::PORT
    }

    /// Returns the number of flows for rules that need one in advance. It is the number of clients for
    /// programs, whose flows are not known before they are found.
    pub fn expected_flows(&self) -> u64 {
        match &self.traffic {
            Traffic::Program(program) => program.clients,
            _ => self.count,
        }
    }

    /// Returns whether the servers' host of the class leads to the networks of the machine.
    pub fn has_uplink(&self) -> bool {
        matches!(&self.traffic, Traffic::Program(program) if program.uplink)
    }

    /// Returns whether the users of the class fetch pages.
    pub fn fetches_pages(&self) -> bool {
        self.traffic.opens().pages().is_some()
    }

    /// Iterates over the directions in which the class sends data, and yields the links on the path of each,
    /// in order. With traces and requests, servers may send data too; with traces, clients may send none.
    pub fn ways_of_data(&self) -> impl Iterator<Item = &[usize]> {
        let [there, back] = self.traffic.data_of();
        let there = there.then_some(self.path.as_slice());
        there.into_iter().chain(back.then_some(self.return_path.as_slice()))
    }
}

/// When each flow of a class starts.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum FlowStarts {
    /// Drawn for each flow.
    Drawn {
        /// What they are drawn from.
        #[serde(rename = "start_ns")]
        from: Distribution,
    },
    /// Those of the file that lists the flows.
    Listed {
        /// The start of each flow.
        #[serde(rename = "start_ns", serialize_with = "null")]
        #[schemars(with = "()")]
        starts: Vec<Span>,
    },
    /// Those that the scenario gives for each seed.
    BySeed {
        /// For each seed, either one start for all flows or one for each flow.
        #[serde(rename = "start_ns")]
        lists: SeedLists,
        /// The seed of the first list; the lists after it are for the seeds that follow.
        #[serde(rename = "first_seed")]
        first: u64,
    },
}

/// For each seed, either one start for all flows or one for each flow.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SeedLists {
    /// The lists.
    pub seeds: Vec<Vec<Span>>,
}

/// A list that a file gives is not repeated: the plan has the digest of the file.
fn null<S: Serializer>(_: &[Span], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_none()
}

impl FlowStarts {
    /// Returns the earliest start that any flow can have.
    pub fn least(&self) -> Span {
        match self {
            FlowStarts::Drawn { from } => from.least(),
            FlowStarts::Listed { starts } => starts.iter().min().copied().unwrap_or_default(),
            FlowStarts::BySeed { lists, .. } => {
                lists.seeds.iter().flatten().min().copied().unwrap_or_default()
            }
        }
    }

    /// Returns the latest start that a uniform, spread or list distribution gives; for any other, such as an
    /// exponential one, returns the mean.
    pub(crate) fn latest(&self) -> Span {
        match self {
            FlowStarts::Drawn {
                from: Distribution::Uniform { high, .. } | Distribution::Spread { high, .. },
            } => *high,
            FlowStarts::Drawn { from: Distribution::List(starts) } | FlowStarts::Listed { starts } => {
                starts.iter().max().copied().unwrap_or_default()
            }
            FlowStarts::Drawn { from } => from.mean(),
            FlowStarts::BySeed { lists, .. } => {
                lists.seeds.iter().flatten().max().copied().unwrap_or_default()
            }
        }
    }

    /// Returns whether there are starts for this seed.
    pub fn has(&self, seed: u64) -> bool {
        match self {
            FlowStarts::BySeed { lists, first } => list_of(lists, *first, seed).is_some(),
            FlowStarts::Drawn { .. } | FlowStarts::Listed { .. } => true,
        }
    }

    /// Returns the start of flow `index` out of `count` flows in the run with this seed; `stream` belongs to that
    /// flow.
    ///
    /// # Panics
    /// If there are starts only for other seeds.
    pub fn of(&self, seed: u64, index: u64, count: u64, stream: Stream) -> Span {
        let nth = |starts: &[Span]| starts[index as usize % starts.len()];
        match self {
            FlowStarts::Drawn { from } => from.value(index, count, stream),
            FlowStarts::Listed { starts } => nth(starts),
            FlowStarts::BySeed { lists, first } => {
                nth(list_of(lists, *first, seed).expect("`Plan::check_seed` has checked the seed"))
            }
        }
    }
}

fn list_of(lists: &SeedLists, first: u64, seed: u64) -> Option<&[Span]> {
    let list = usize::try_from(seed.checked_sub(first)?).ok()?;
    lists.seeds.get(list).map(Vec::as_slice)
}

fn code_point<S: Serializer>(dscp: &Dscp, serializer: S) -> Result<S::Ok, S::Error> {
    dscp.0.serialize(serializer)
}

/// Each flow's own links. They never drop packets, because their buffers are unlimited.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Access {
    /// Rate of each access link, in each direction.
    #[serde(rename = "rate_bps")]
    pub rate: Rate,
    /// Distribution of the base round-trip time over the flows: twice the propagation delay of the
    /// path and the access links together. The access links, one per direction at each end that has
    /// them, evenly share the part of this time that exceeds the propagation delay of the path.
    #[serde(rename = "rtt_ns")]
    pub rtt: Distribution,
    /// The endpoints that have access links; absent if both have.
    #[serde(skip_serializing_if = "is_default")]
    pub at: AccessAt,
}

/// The endpoints of a flow that have access links.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AccessAt {
    /// both
    #[default]
    #[serde(skip)]
    Both,
    /// the endpoint that sends the data
    Sender,
    /// the endpoint that receives the data
    Receiver,
}

impl AccessAt {
    /// Returns whether this end (0: the sender) has access links.
    pub const fn has(self, end: usize) -> bool {
        match self {
            AccessAt::Both => true,
            AccessAt::Sender => end == 0,
            AccessAt::Receiver => end == 1,
        }
    }
}

impl Access {
    /// Returns the number of links: one per direction at each end that has them.
    pub fn links(&self) -> u64 {
        if self.at == AccessAt::Both { 4 } else { 2 }
    }
}
