//! Judges the congestion controllers of quinn-proto: its NewReno, CUBIC and BBR in the simulator's network.
//!
//! cargo run --release --manifest-path examples/quinn/Cargo.toml [-- SITUATION ...] [> report.txt]
//!
//! With `JSON=1` in the environment, it prints JSON instead of tables; `RUNS=1` runs each situation once instead of three
//! times.

mod estimator;

use std::sync::Arc;
use std::time::{Duration, Instant as QuinnInstant};

use aqmlab_kit::{Bands, Controller, RoundTrips, Settings};
use aqmlab_units::Instant;
use quinn_proto::congestion::{self, ControllerFactory};

use estimator::Estimators;

/// A controller of quinn-proto as one of the kit's.
struct Adapter {
    controller: Box<dyn congestion::Controller>,
    /// The instant that stands for the start of the run.
    start: QuinnInstant,
    estimators: Estimators,
}

impl Adapter {
    fn at(&self, at: Instant) -> QuinnInstant {
        self.start + Duration::from_nanos(at.as_ns())
    }
}

impl Controller for Adapter {
    fn on_sent(&mut self, now: Instant, bytes: u64, number: u64) {
        self.controller.on_sent(self.at(now), bytes, number);
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RoundTrips) {
        let rtt = self.estimators.of(rtt);
        self.controller.on_ack(self.at(now), self.at(sent), bytes, app_limited, &rtt);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, largest: Option<u64>) {
        self.controller.on_end_acks(self.at(now), in_flight, app_limited, largest);
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, persistent: bool, lost_bytes: u64) {
        self.controller.on_congestion_event(self.at(now), self.at(sent), persistent, lost_bytes);
    }

    fn window(&self) -> u64 {
        self.controller.window()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        let (controller, start, estimators) = (self.controller.clone_box(), self.start, self.estimators);
        Box::new(Adapter { controller, start, estimators })
    }
}

fn main() {
    let runs = std::env::var("RUNS").ok().map(|runs| runs.parse().expect("RUNS must be a whole number"));
    let runs = runs.unwrap_or(Settings::default().runs);
    let settings = Settings { situations: std::env::args().skip(1).collect(), runs };
    let start = QuinnInstant::now();
    let estimators = Estimators::find();
    let bands = Bands::measure(&settings).unwrap_or_else(|e| panic!("{e}"));
    let judge = |name: &str, new: &dyn Fn(QuinnInstant, u16) -> Box<dyn congestion::Controller>| {
        let factory = |now: Instant, datagram: u32| {
            let controller = new(start + Duration::from_nanos(now.as_ns()), datagram as u16);
            Box::new(Adapter { controller, start, estimators }) as Box<dyn Controller>
        };
        let report = bands.judge(name, &factory).unwrap_or_else(|e| panic!("{e}"));
        if std::env::var_os("JSON").is_some() {
            println!("{}", report.to_json());
        } else {
            println!("{report}");
        }
    };
    judge("NewReno", &|now, mtu| Arc::new(congestion::NewRenoConfig::default()).build(now, mtu));
    judge("Cubic", &|now, mtu| Arc::new(congestion::CubicConfig::default()).build(now, mtu));
    judge("Bbr", &|now, mtu| Arc::new(congestion::BbrConfig::default()).build(now, mtu));
}
