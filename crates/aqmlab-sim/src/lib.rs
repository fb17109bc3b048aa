//! A deterministic packet-level simulator for queue disciplines.
//!
//! [`run`] takes a plan and a seed and returns a recording. The same plan and seed give exactly the
//! same recording, bit by bit: events are ordered by content (`event.rs`), draws are named
//! ([`aqmlab_random`]), and a run uses a single thread. Every packet has exactly one fate
//! ([`aqmlab_recording::Fates`]), and a run whose books do not balance is an error.
//!
//! The models are in other crates: queues and access links in `aqmlab-qdisc`, endpoints in
//! `aqmlab-transport`, workloads in `aqmlab-traffic`. This crate moves packets between these models
//! and keeps time.

mod access;
mod capture;
mod connection;
mod control;
mod event;
mod flow;
mod flow_table;
mod flow_trace;
mod headers;
mod in_transit;
mod network;
mod options;
mod packet;
mod packet_log;
mod recorder;
mod routes;
mod run;
mod scheduler;
mod stages;
mod stepped;
mod talk;
mod timer_ring;
mod watch;
mod wheel;
mod world;

pub use capture::captured_ports;
pub use control::{Control, Controllers, RunError, RunFiles};
pub use options::OptionImbalance;
pub use packet::{FlowId, PortPacket, SimPacket, Toward};
pub use run::{ENGINE, run, run_controllers, run_into, run_plain, run_with};
pub use stepped::Stepped;
pub use watch::Seen;
