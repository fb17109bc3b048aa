//! Queue disciplines and active queue management as arithmetic on arguments.
//!
//! A discipline here is a state machine. It is told when a packet arrives and when the link can take one;
//! it answers with packets and with their fates. It reads no clock, owns no socket, starts no thread, logs
//! nothing and draws random numbers only from the stream it was given, so that a simulator and a router
//! drive the very same code and a run can be repeated to the bit. The crate is `no_std` with `alloc`.
//!
//! - [`Qdisc`], [`Packet`], [`Observer`]: the contract between disciplines and hosts.
//! - [`law`]: control laws, numbers in and verdict out, which never see a packet.
//! - [`disc`]: the queues that ask them; [`Discipline`] is the enum of all built-in ones.
//! - [`registry`]: names, parameter tables, resolution of automatic parameters, construction.
//! - [`Port`]: discipline + link + books, the loop that every host shares. [`DelayStage`]: per-flow delay,
//!   rate and loss.
//! - [`contract`]: the test kit that every registered discipline must pass.
#![no_std]
extern crate alloc;

pub mod books;
mod context;
pub mod contract;
mod delay_stage;
pub mod disc;
mod discipline;
mod ecn_policy;
mod fifo;
mod flow_table;
mod histogram;
mod keyed;
pub mod law;
mod limit;
mod pipe;
mod port;
mod qdisc;
pub mod registry;
mod resolve;
mod stamped;
mod time_weighted;

pub use books::Books;
pub use context::LinkContext;
pub use delay_stage::{DelayStage, StageBooks};
pub use discipline::Discipline;
pub use ecn_policy::EcnPolicy;
pub use fifo::Fifo;
pub use histogram::{Bin, Histogram};
pub use limit::Limit;
pub use pipe::{Line, Loss, Passage, Pipe};
pub use port::{Departure, Port, Prospect};
pub use qdisc::*;
pub use registry::{Entry, Info, Registry};
pub use stamped::{Classed, Stamped};
