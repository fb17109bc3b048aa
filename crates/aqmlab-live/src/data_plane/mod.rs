//! The data plane: a router between devices, driven by this machine's clock.
//!
//! One thread reads packets, executes due events, and waits for the next instant that the router requests.
//! The router is called with ideal instants, so only a write can be late. The report records the lateness
//! ([`DataPlaneReport::lateness`]) and everything that keeps the thread from its work: stalls, a processor
//! that is too busy, a suspended machine.

mod batch;
mod clock;
mod control;
mod device;
mod event_loop;
mod report;
mod settings;
#[cfg(test)]
mod tests;
mod thread;

pub use clock::Clock;
pub use control::DataPlaneControl;
pub use device::{Device, FdDevice};
pub use report::{DataPlaneReport, OffloadCounts, Stall};
pub use settings::DataPlaneSettings;
pub use thread::{DataPlane, DataPlaneOutcome};
