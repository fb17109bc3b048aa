//! The hosts at the ends of each class's path: network namespaces that contain only a TUN device, an address,
//! a route, and the stack settings of the class.
//!
//! These namespaces have no names. Each lives as long as its descriptor and its sockets, so nothing
//! of it remains after the process has ended, for whatever reason. The original namespace of the
//! process is never changed.

mod counters;
mod interface;
mod kernel_queue;
mod namespace;
mod netlink;
mod programs;
pub(crate) mod refusal;
mod setup;
mod stack;
mod uplink;
mod wire;

pub use counters::Counters;
pub use interface::Tun;
pub use kernel_queue::{KernelCounts, KernelHost, LinuxQueue, kernel_queues, lacks, look_at_queues};
pub use namespace::{Namespace, leave_host_namespace};
pub use programs::{ProgramSetup, Programs, Terminal};
pub use refusal::{descriptors as descriptors_refused, thread as no_thread, too_few_descriptors};
pub use setup::{Host, Hosts, set_up};
pub use stack::{Datagrams, Stack, TcpSockets};
pub use uplink::{Outside, Uplinks};
pub use wire::{Attached, Wire, Wires, open_wires};
