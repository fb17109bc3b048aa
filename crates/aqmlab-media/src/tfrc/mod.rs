//! TCP-Friendly Rate Control: RFC 5348.
//!
//! Not included: history discounting (section 5.5), which the RFC leaves to the receiver, and idle periods beyond what
//! the nofeedback timer says about them.

mod equation;
mod intervals;
mod receiver;
mod sender;

pub use equation::{loss_event_rate, throughput};
pub use intervals::LossHistory;
pub use receiver::{Receiver, Report};
pub use sender::Sender;

/// The version of this part, incremented whenever a change to it changes a result.
pub const VERSION: u32 = 1;
