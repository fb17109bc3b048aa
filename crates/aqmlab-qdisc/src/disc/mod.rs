//! The built-in disciplines: queues that hold packets and ask a [`crate::law`].

mod droptail;

pub use droptail::DropTail;
pub(crate) use droptail::INFO as DROPTAIL;
