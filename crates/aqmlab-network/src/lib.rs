//! The network of a plan as both hosts see it: what the simulator and the live router have in common below their engines.
//!
//! - [`Schedule`]: samples, the end of the warm-up and the end of a run; [`queue_stop_is_reached`] and [`Completions`] end
//!   it before its time.
//! - [`FlowCounts`], [`FlowRow`], [`flow_table`]: what is counted of a flow, and the table `flows`; [`UserRows`] sums up
//!   where a flow is a user with many connections.
//! - [`hops`], [`FlowPath`]: the path of a class, and the pipes that a flow has on it to itself.
//! - [`request_recorder`], [`recorded_exchange`]: what a plan asks to be recorded of requests, and what a session says.
//! - [`Engine`], [`RunFacts`]: the parts of the program behind a run, and its recording.
//!
//! It has no clock and no loop. A host asks it what the plan says, and calls it when something has happened.

/// Rises by one whenever what both hosts have in common moves a result: paths, schedule, ends of runs, counts of flows.
pub const VERSION: u32 = 1;

mod flow_counts;
mod flow_rows;
mod path;
mod recording;
mod requests;
mod schedule;
mod user_rows;

pub use aqmlab_traffic::End;
pub use flow_counts::{Count, FlowCounts};
pub use flow_rows::{FlowRow, flow_table};
pub use path::{FlowPath, Hop, OwnPipe, hops, stages};
pub use recording::{Engine, RunFacts, all_parts, parts};
pub use requests::{ended_page, recorded_exchange, request_recorder, wants_request_rows};
pub use schedule::{Completions, Milestone, Schedule, queue_stop_is_reached};
pub use user_rows::UserRows;
