//! The traffic of a plan through real sockets: the same workloads, draws and starts as in the simulator.
//!
//! One thread has all sockets of all hosts, both ends of each connection. What an application at one end does when something
//! reaches the other (an answer to a request) so needs no message between processes.

mod counts;
mod datagrams;
mod flow;
mod generator;
mod info;
mod interest;
mod signals;
pub(crate) mod sockets;
mod stream;
mod tables;
mod timers;

pub use counts::{KernelCounts, OPTIONAL, SocketErrors};
pub use generator::{Generator, Outcome};
pub use signals::Signals;
pub use tables::FlowRow;
