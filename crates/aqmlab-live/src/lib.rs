//! Live runs: the same disciplines, ports and delay stages that the simulator drives, between real TCP
//! stacks.
//!
//! - [`capture`]: a thread that writes the packets passing through ports to a file; the data plane
//!   never waits for it.
//! - [`frame`]: IP packets as bytes: a parser that handles any input, the ECN field, a pool of
//!   reusable slots.
//! - [`router`]: the network of a plan in virtual time, without a socket or a clock; it accepts
//!   frames, and delivers each at its ideal instant.
//! - [`kernel_queue`]: a kernel queue in place of one of aqmlab's queues.
//! - [`data_plane`]: the loop that drives a network of ports on this machine's clock, and measures
//!   its own lateness.
//!
//! - [`host`]: the hosts at the edges of this network, each a separate network namespace with settings from
//!   the plan's TCP profile.
//! - [`traffic`]: the plan's traffic through real sockets in these hosts, with the same random
//!   draws as in the simulator.
//! - [`live`]: a complete run, with checks of its faithfulness.
//!
//! A discipline never learns how late this machine is: it is called with the instants at which its
//! link would have become free. Only the writing of a packet to its device may be late, and that
//! lateness is recorded.

pub mod addresses;
#[cfg(target_os = "linux")]
mod busiest;
#[cfg(target_os = "linux")]
mod calibration;
#[cfg(target_os = "linux")]
pub mod capacity;
pub mod capture;
#[cfg(target_os = "linux")]
mod capture_report;
#[cfg(target_os = "linux")]
pub mod data_plane;
#[cfg(target_os = "linux")]
pub mod doctor;
mod error;
#[cfg(target_os = "linux")]
mod faithfulness;
#[cfg(target_os = "linux")]
mod feasible;
#[cfg(target_os = "linux")]
mod found;
pub mod frame;
#[cfg(target_os = "linux")]
pub mod host;
pub mod kernel_queue;
#[cfg(target_os = "linux")]
pub mod machine;
#[cfg(target_os = "linux")]
mod open_connections;
#[cfg(target_os = "linux")]
mod outcome;
#[cfg(target_os = "linux")]
mod priority;
#[cfg(target_os = "linux")]
mod quantiles;
pub mod router;
mod run;
#[cfg(target_os = "linux")]
mod selftest;
#[cfg(target_os = "linux")]
mod sys;
#[cfg(target_os = "linux")]
mod threads;
#[cfg(target_os = "linux")]
pub mod traffic;

pub use addresses::HostId;
pub use aqmlab_network::End;

#[cfg(target_os = "linux")]
pub use calibration::Calibration;
pub use error::LiveError;
#[cfg(target_os = "linux")]
pub use faithfulness::{Faithfulness, LONGEST_SILENCE, Observed, TimeScales};
#[cfg(target_os = "linux")]
pub use host::{ProgramSetup, Terminal};
#[cfg(target_os = "linux")]
pub use outcome::{ENGINE, LiveRun};
pub use run::{Options, Phase, RunProgress, live, live_captured, live_programs, live_with};
#[cfg(target_os = "linux")]
pub use selftest::{SelfTest, selftest};
#[cfg(target_os = "linux")]
pub use sys::copy_of;
