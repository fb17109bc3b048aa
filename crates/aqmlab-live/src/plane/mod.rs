//! The data plane: a router driven by this machine's clock, between devices.

mod clock;
mod device;

pub use clock::Clock;
pub use device::{Device, FdDevice};
