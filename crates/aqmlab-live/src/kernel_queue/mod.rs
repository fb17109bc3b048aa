//! A queue of the kernel in the place of one of ours: its packets leave in the order in which the kernel
//! forwards them.
//!
//! The kernel's discipline is behind a shaper at the link's rate. The router writes a copy of each arriving
//! packet to it, with a number in place of the IP identification, and keeps the packet itself ([`Mirror`], a
//! discipline like any other at the link's port). When the copy returns, the packet leaves the mirror: the
//! port sends it, and books, pipes and tables are as for other queues. A copy that does not return has been
//! dropped; one that returns with CE has been marked.
//!
//! The kernel works in real time. Packets therefore reach it only when their instants have come, and leave it
//! when they are read; the router's own times before and after the kernel stay ideal.

mod mirror;
mod path;
mod peer;

pub use mirror::{Habits, Mirror};
pub use path::{KernelPath, KernelState};
pub use peer::{KernelQueue, KernelQueueBooks};
