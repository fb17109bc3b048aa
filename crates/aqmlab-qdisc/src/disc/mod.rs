//! The built-in disciplines: queues that hold packets and ask a [`crate::law`].

mod blue;
mod blue_table;
mod controller;
mod droptail;
mod early;
mod fred;
mod fred_table;
mod measure;
mod pi;
mod pi_resolve;
mod pi_table;
mod red;
mod red_resolve;
mod red_table;
mod red_weight;
mod rem;
mod rem_resolve;
mod rem_table;
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
pub use pi::{Pi, PiControl};
pub use pi_resolve::pi_phase_margin;
pub(crate) use pi_resolve::{PI_INFO, build_pi};
pub use red::{Red, RedControl, RedRule};
pub(crate) use red_resolve::{ARED_INFO, RED_INFO, SCRED_INFO, build_ared, build_red, build_scred};
pub use rem::{Rem, RemControl};
pub(crate) use rem_resolve::{REM_INFO, build_rem};
