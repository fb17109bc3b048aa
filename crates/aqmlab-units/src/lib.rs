//! Instants, spans, sizes and rates as types.
//!
//! Every quantity with a unit in aqmlab has a type from this crate, and the conversion factors 8,
//! 1000 and 1_000_000_000 occur nowhere else. Time is an integer count of nanoseconds, sizes are
//! integer bytes or packets, and rates are integer bit/s, so sums are exact on every machine. Only
//! operators that make physical sense exist: `Rate * Span` does not compile, while
//! [`Rate::time_for`] does.
//!
//! This crate reads no clock and allocates only to print values or explain errors ([`text`]).
#![no_std]
extern crate alloc;

mod ecn;
mod link_clock;
mod rate;
mod size;
pub mod text;
mod time;

pub use ecn::Ecn;
pub use link_clock::{LinkClock, Serialiser};
pub use rate::Rate;
pub use size::{Bytes, Packets};
pub use time::{Instant, Span};
