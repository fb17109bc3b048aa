//! The built-in disciplines: queues that hold packets and ask a [`crate::law`].

mod blue;
mod blue_table;
mod classes;
mod classes_table;
mod codel;
mod controller;
mod droptail;
mod early;
mod fred;
mod fred_table;
mod measure;
mod pi;
mod pi_resolve;
mod pi_table;
mod policer;
mod red;
mod red_pd;
mod red_pd_table;
mod red_resolve;
mod red_table;
mod red_weight;
mod rem;
mod rem_resolve;
mod rem_table;
mod scred_table;
mod table;
mod words;

pub use blue::{Blue, BlueControl};
pub(crate) use blue_table::{BLUE_INFO, build_blue};
pub use classes::{ClassQueue, Classes, Classifier, MOST_CLASSES, Scheduler};
pub(crate) use classes_table::{
    build_classes, build_policer, classes_info, policer_info, resolve_classes, resolve_policer,
};
pub(crate) use codel::{CODEL_INFO, build_codel};
pub use codel::{Codel, CodelControl};
pub use droptail::DropTail;
pub(crate) use droptail::{DROPTAIL_INFO, build_droptail};
pub use early::{Early, EarlyLaw, EarlyQueue, Leaving};
pub use fred::{Fred, FredQueue};
pub(crate) use fred_table::{FRED_INFO, build_fred};
pub use measure::Measure;
pub use pi::{Pi, PiControl};
pub use pi_resolve::pi_phase_margin;
pub(crate) use pi_resolve::{PI_INFO, build_pi};
pub use policer::{Exceed, Policer};
pub use red::{Red, RedControl, RedRule};
pub use red_pd::RedPd;
pub(crate) use red_pd_table::{RED_PD_INFO, build_red_pd};
pub(crate) use red_resolve::{ARED_INFO, RED_INFO, SCRED_INFO, build_ared, build_red, build_scred};
pub use rem::{Rem, RemControl};
pub(crate) use rem_resolve::{REM_INFO, build_rem};
