//! The end of a run.

use aqmlab_units::Span;
use schemars::JsonSchema;
use serde::Serialize;

use super::data::{Reference, References};

/// The conditions that end a run: the first that becomes true ends it. `at` always applies, so
/// every run ends.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Stop {
    /// Ends the run at this time.
    #[serde(rename = "at_ns")]
    pub at: Span,
    /// Ends the run when this many flows of some classes, or this many of their requests, have
    /// completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed: Option<CountStop>,
    /// Ends the run when a count at a queue reaches a given number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<QueueStop>,
}

/// Stops when `count` flows or requests of these classes together have completed since the end of
/// the warm-up.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(into = "CountStopForm")]
#[schemars(with = "CountStopForm")]
pub struct CountStop {
    /// The classes whose completions are added up.
    pub classes: References,
    /// What is counted.
    pub of: Completed,
    /// The count at which the run stops.
    pub count: u64,
}

/// The number of completed flows or requests that ends the run.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "CountStop", deny_unknown_fields)]
struct CountStopForm {
    /// The class, if there is only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<String>,
    /// The classes whose completions are added up, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    classes: Option<Vec<String>>,
    /// Number of flows.
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
    /// Number of requests.
    #[serde(skip_serializing_if = "Option::is_none")]
    requests: Option<u64>,
}

impl From<CountStop> for CountStopForm {
    fn from(stop: CountStop) -> Self {
        let (class, classes) = match <[String; 1]>::try_from(stop.classes.into_names()) {
            Ok([name]) => (Some(name), None),
            Err(names) => (None, Some(names)),
        };
        let of = |of| Some(stop.count).filter(|_| stop.of == of);
        CountStopForm { class, classes, count: of(Completed::Flows), requests: of(Completed::Requests) }
    }
}

/// What a stop condition can count as completed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Completed {
    /// flows whose data has all arrived
    Flows,
    /// requests whose response has arrived
    Requests,
}

/// Stops when `quantity` at link `link` reaches `count`; events during the warm-up are not counted.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(
    deny_unknown_fields,
    description = "The number of packets, counted or waiting at a queue, that ends the run."
)]
pub struct QueueStop {
    /// The link.
    #[serde(rename = "queue")]
    pub link: Reference,
    /// What is counted.
    pub quantity: QueueCount,
    /// Number of packets.
    #[serde(rename = "packets")]
    pub count: u64,
}

/// The quantity, in packets, that a stop condition counts at a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum QueueCount {
    /// packets that arrived
    Arrivals,
    /// packets dropped for any reason
    Drops,
    /// packets marked
    Marks,
    /// packets waiting at present (a level, not a count)
    Backlog,
}
