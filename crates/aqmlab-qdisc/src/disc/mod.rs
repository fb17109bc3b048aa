//! The built-in disciplines: queues that hold packets and ask a [`crate::law`].

mod blue;
mod blue_table;
mod droptail;
mod early;
mod fred;
mod fred_table;
mod measure;
mod red;
mod red_resolve;
mod red_table;
mod red_weight;
mod scred_table;
mod table;

pub use blue::{Blue, BlueControl};
pub(crate) use blue_table::{BLUE_INFO, build_blue};
pub use droptail::DropTail;
pub(crate) use droptail::INFO as DROPTAIL;
pub use early::{Early, EarlyLaw, EarlyQueue};
pub use fred::{Fred, FredQueue};
pub(crate) use fred_table::{FRED_INFO, build_fred};
pub use measure::Measure;
pub use red::{Red, RedControl, RedRule};
pub(crate) use red_resolve::{ARED_INFO, RED_INFO, SCRED_INFO, build_ared, build_red, build_scred};
