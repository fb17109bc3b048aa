//! A deterministic packet-level simulator for queue disciplines.
//!
//! [`run`] takes a plan and a seed and returns a recording. Same plan and seed, same recording to the bit:
//! events are ordered by content ([`event`]), draws are named ([`aqmlab_random`]), one run is one thread.
//! Every packet has exactly one fate ([`fates`]), and a run whose books do not balance is an error.
//!
//! The physics lives elsewhere: queues and access links in `aqmlab-qdisc`, endpoints in
//! `aqmlab-transport`, workloads in `aqmlab-traffic`. This crate moves packets between them and keeps time.

mod control;
pub mod event;
pub mod fates;
mod faults;
pub mod flow;
pub mod network;
pub mod packet;
mod recorder;
mod run;
mod wheel;
pub mod world;

pub use control::Control;
pub use packet::{PortPacket, SimPacket};
pub use run::{RESULTS_VERSION, RunError, run, run_plain, run_with};
