//! The built-in disciplines: queues that hold packets and ask a [`crate::law`].

mod droptail;
mod red;
mod red_resolve;
mod red_table;
mod red_weight;

pub use droptail::DropTail;
pub(crate) use droptail::INFO as DROPTAIL;
pub use red::{Measure, Red, RedControl, RedQueue};
pub(crate) use red_resolve::{ARED_INFO, RED_INFO, build_ared, build_red};
