//! The data plane: a router driven by this machine's clock, between devices.
//!
//! One thread reads packets, lets happen what is due, and waits for the next instant that the router names. The router is
//! called with ideal instants, so only a write can be late; by how much is on record ([`DataPlaneReport::lateness`]), and so is
//! what keeps a thread from its work: stalls, a processor that is too busy, a machine that was suspended.

mod clock;
mod control;
mod device;
mod event_loop;
mod report;
#[cfg(test)]
mod tests;
mod thread;

pub use clock::Clock;
pub use control::DataPlaneControl;
pub use device::{Device, FdDevice};
pub use report::{DataPlaneReport, Stall};
pub use thread::{DataPlane, DataPlaneOutcome, DataPlaneSettings};
