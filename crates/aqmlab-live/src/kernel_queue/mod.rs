//! A kernel queue in place of one of aqmlab's queues: its packets leave in the order in which the kernel
//! forwards them.
//!
//! The kernel's discipline runs inside a shaper that is set to the link's rate. The router writes a
//! copy of each arriving packet to the kernel, with a number in place of the IP identification, and
//! keeps the packet itself ([`Mirror`], a discipline like any other at the link's port). When the
//! copy returns, the packet leaves the mirror: the port sends it, and books, pipes and tables are
//! the same as for other queues. A copy that does not return has been dropped; one that returns
//! with CE has been marked.
//!
//! The kernel works in real time. Each packet is therefore handed to the kernel only when its ideal arrival
//! time has come, and leaves the kernel queue when its copy is read; the router's times before and after the
//! kernel queue remain ideal.

mod mirror;
mod path;
mod peer;

pub use mirror::{Habits, Mirror};
pub use path::{KernelPath, KernelState};
pub use peer::{KernelQueue, KernelQueueBooks};
