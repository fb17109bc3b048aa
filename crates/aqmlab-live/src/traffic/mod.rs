//! The traffic of a plan through real sockets: the same populations, sessions, sources and draws as
//! in the simulator.
//!
//! One thread owns all sockets of all hosts, including both ends of each connection. An application
//! at one end can thus react to an event at the other end, such as a request, without messages
//! between processes. [`populations`] decides, without sockets, which connections open and when;
//! the generator opens them.

mod counts;
mod datagrams;
mod flow;
mod generator;
mod populations;
mod port_pool;
pub(crate) mod sockets;
mod stream;
mod timers;

pub use counts::{KernelCounts, OPTIONAL, SocketErrors};
pub use generator::{Generator, Outcome};
pub use populations::FlowRow;
pub use timers::RunEnd;
