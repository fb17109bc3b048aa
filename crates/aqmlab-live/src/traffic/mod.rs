//! The traffic of a plan through real sockets: the same populations, sessions, sources and draws as in the simulator.
//!
//! One thread has all sockets of all hosts, both ends of each connection. What an application at one end does when something
//! reaches the other (an answer to a request) so needs no message between processes. [`populations`] decides what opens when
//! and knows no socket; the generator carries it out.

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
