//! Workloads as state machines: what to send next, and when.
//!
//! A workload knows neither TCP nor sockets. A [`PacketSource`] tells when its next packet leaves and how big it
//! is; a stream workload ([`Bulk`]) tells how many bytes to write and whether to close. The simulator
//! and the live generator drive the same code. No clock, no thread, no global.
#![no_std]
extern crate alloc;

mod distribution;
mod packets;
mod stream;

pub use distribution::Distribution;
pub use packets::{PacketSizes, PacketSource, Spacing};
pub use stream::Bulk;
