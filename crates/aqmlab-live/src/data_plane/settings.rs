//! How a data plane waits, writes and is scheduled.

use aqmlab_scenario::Wait;
use aqmlab_units::Span;

/// Settings of a data plane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DataPlaneSettings {
    /// How the thread waits for the next departure.
    pub wait: Wait,
    /// Time before a departure during which [`Wait::Hybrid`] does not sleep.
    pub spin: Span,
    /// Time that a packet may wait for others, so that they are written in the same pass. Packets wait once
    /// the thread has been too busy to spin, and always with `offload`.
    pub gather: Span,
    /// Whether segments are joined, and each packet that is read from or written to a device is
    /// preceded by the header of [`crate::frame::offload`].
    pub offload: bool,
    /// Whether the data plane requests real-time scheduling and locked memory. If these are refused, it runs
    /// without them.
    pub realtime: bool,
    /// Whether the kernel runs in virtual time: the clock stands still while a thread computes, so it is read
    /// only after each wait.
    pub virtual_time: bool,
}
