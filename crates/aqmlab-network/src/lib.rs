//! The network of a plan: the layer below the engines of the simulator and the live router, which share it.
//!
//! - [`Schedule`]: the times of samples, of the end of the warm-up and of the end of a run.
//!   [`queue_stop_is_reached`] and [`Completions`] end a run early.
//! - [`ChangingLinks`]: links whose rate changes, with their capacities.
//! - [`Autorates`]: controllers that adjust shapers.
//! - [`FlowCounts`], [`FlowRow`], [`flow_table`]: the counts of a flow, and the table `flows`.
//!   Where each flow stands for a user, [`UserRows`] adds up the counts of that user's connections.
//! - [`Opener`]: what opens the connections of a class.
//! - [`hops`], [`FlowPath`]: the path of a class, and a flow's own pipes on it.
//! - [`request_recorder`], [`recorded_exchange`]: the recorder of a run's requests, and the conversion of
//!   sessions' reports into its form.
//! - [`Engine`], [`RunFacts`]: the parts of the program that determine a run, and the run's recording.
//!
//! This crate has no clock and no loop. A host reads the plan's settings through these parts, and calls them
//! after each event.

/// Incremented whenever a change to the shared parts (paths, schedule, conditions that end a run,
/// counts of flows) changes a result.
pub const VERSION: u32 = 1;

mod autorate;
mod changing;
mod dialogues;
mod flow_counts;
mod flow_rows;
mod opener;
mod path;
mod recording;
mod requests;
mod schedule;
mod user_rows;

pub use aqmlab_traffic::End;
pub use autorate::Autorates;
pub use changing::{ChangingLinks, Turn};
pub use dialogues::{DialogueRecorders, frame_recorder, sender_state};
pub use flow_counts::{Count, FlowCounts};
pub use flow_rows::{FlowRow, flow_table};
pub use opener::Opener;
pub use path::{FlowPath, Hop, OwnPipe, hops, stages};
pub use recording::{Engine, RunFacts, all_parts, parts};
pub use requests::{ended_page, recorded_exchange, request_recorder, wants_request_rows};
pub use schedule::{Completions, Milestone, Schedule, queue_stop_is_reached};
pub use user_rows::UserRows;
