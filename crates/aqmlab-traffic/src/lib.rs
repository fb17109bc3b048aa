//! Workloads as state machines: what to send next, and when.
//!
//! A workload knows neither TCP nor sockets, so that a simulator and a live generator can drive the same code. A
//! [`PacketSource`] tells when its next packet leaves and how big it is; a [`Session`] tells what the applications at
//! both ends of a connection write, and when; a [`Distribution`] spreads starts and round-trip times over the flows of
//! a class, and says how long on and off periods last ([`OnOff`]). No clock, no thread, no global.
#![no_std]
extern crate alloc;

mod distribution;
mod on_off;
mod packets;
mod pareto;
mod quantity;
mod session;

pub use distribution::Distribution;
pub use on_off::{Begin, OnOff};
pub use packets::{PacketSizes, PacketSource, Spacing};
pub use pareto::Pareto;
pub use quantity::{Probability, Quantity};
pub use session::{Act, Bursty, ByteBursts, Exchange, Greedy, Progress, Session, Step};
