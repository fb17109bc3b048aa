//! Judges a congestion controller of another author.
//!
//! The kit drives a [`Controller`] with the QUIC sender of `aqmlab-transport` (RFC 9002), runs it through situations that
//! RFC 9743 asks to evaluate, and compares what it measures with bands: the range of NewReno, CUBIC and BBR in the place of
//! the controller, under the same sender, in the same situation, with the same draws.
//!
//! ```no_run
//! use aqmlab_kit::{Bands, Controller, Settings};
//! use aqmlab_units::Instant;
//!
//! #[derive(Clone)]
//! struct Fixed;
//!
//! impl Controller for Fixed {
//!     fn on_congestion_event(&mut self, _now: Instant, _sent: Instant, _persistent: bool, _lost: u64) {}
//!     fn window(&self) -> u64 {
//!         50 * 1200
//!     }
//!     fn clone_box(&self) -> Box<dyn Controller> {
//!         Box::new(self.clone())
//!     }
//! }
//!
//! let bands = Bands::measure(&Settings::default())?;
//! let report = bands.judge("fixed window", &|_now, _datagram| Box::new(Fixed))?;
//! println!("{report}");
//! # Ok::<(), aqmlab_kit::KitError>(())
//! ```
//!
//! A band is no verdict on quality: a value above the largest goodput of the three may be progress, or come at the expense
//! of others, which the same report shows.

mod bands;
mod measures;
mod report;
mod situations;

pub use aqmlab_transport::{Controller, RoundTrips};
pub use bands::{Bands, Factory, KitError, Settings};
pub use measures::Measure;
pub use report::{Comparison, Position, Report};
pub use situations::{SITUATIONS, Situation};
