//! Workloads as state machines: what to send next, and when.
//!
//! A workload knows neither TCP nor sockets, so that a simulator and a live generator can drive the same code. A
//! [`PacketSource`] tells when its next packet leaves and how big it is; a [`Distribution`] spreads starts and
//! round-trip times over the flows of a class. No clock, no thread, no global.
#![no_std]
extern crate alloc;

mod distribution;
mod packets;

pub use distribution::Distribution;
pub use packets::{PacketSizes, PacketSource, Spacing};
