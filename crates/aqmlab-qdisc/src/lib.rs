//! (in preparation)
#![no_std]
extern crate alloc;
mod qdisc;
pub use qdisc::*;
