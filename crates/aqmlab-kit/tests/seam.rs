//! The seam between sender and controller: NewReno as RFC 9002, appendix B, writes it, behind the trait, does what the
//! NewReno of the sender does.

use aqmlab_kit::{Bands, Controller, KitError, Position, RoundTrips, SITUATIONS, Settings};
use aqmlab_scenario::parse;
use aqmlab_units::Instant;

/// Appendix B, with the window as a real number of bytes.
#[derive(Clone)]
struct NewReno {
    datagram: f64,
    window: f64,
    ssthresh: f64,
    recovery_began: Option<Instant>,
}

impl NewReno {
    fn boxed(datagram: u32) -> Box<dyn Controller> {
        let datagram = f64::from(datagram);
        Box::new(NewReno { datagram, window: 10.0 * datagram, ssthresh: f64::INFINITY, recovery_began: None })
    }
}

impl Controller for NewReno {
    fn on_ack(&mut self, _now: Instant, sent: Instant, bytes: u64, app_limited: bool, _rtt: &RoundTrips) {
        if app_limited || self.recovery_began.is_some_and(|began| sent <= began) {
            return;
        }
        if self.window < self.ssthresh {
            self.window += bytes as f64;
        } else {
            self.window += self.datagram * bytes as f64 / self.window;
        }
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, persistent: bool, _lost: u64) {
        if self.recovery_began.is_none_or(|began| sent > began) {
            self.recovery_began = Some(now);
            self.ssthresh = (self.window / 2.0).max(2.0 * self.datagram);
            self.window = self.ssthresh;
        }
        if persistent {
            self.window = 2.0 * self.datagram;
            self.recovery_began = None;
        }
    }

    fn window(&self) -> u64 {
        self.window as u64
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }
}

/// Windows of whole bytes and of real numbers differ by less than a byte, so a packet may leave one acknowledgment later.
#[test]
fn new_reno_of_the_appendix_is_the_new_reno_of_the_sender() {
    let situations = ["single", "buffer_0_25", "several", "random_loss", "with_cubic", "short_flows"];
    let settings = Settings { situations: situations.map(String::from).to_vec(), runs: 1 };
    let bands = Bands::measure(&settings).expect("they run");
    let report = bands.judge("appendix B", &|_, datagram| NewReno::boxed(datagram)).expect("it runs");
    for comparison in &report.comparisons {
        let reno = comparison.references[0].1;
        let off = (comparison.own - reno).abs() / reno.max(1.0);
        assert!(off < 0.05, "{comparison:?}");
    }
    let json = report.to_json();
    assert!(json.contains(r#""position": "within""#) && json.contains(r#""name": "appendix B""#), "{json}");
}

/// A window that never changes is told apart: it overfills short buffers and takes all from others.
#[test]
fn a_window_that_ignores_losses_is_outside_the_bands() {
    #[derive(Clone)]
    struct Fixed(u64);
    impl Controller for Fixed {
        fn on_congestion_event(&mut self, _now: Instant, _sent: Instant, _persistent: bool, _lost: u64) {}

        fn window(&self) -> u64 {
            self.0
        }

        fn clone_box(&self) -> Box<dyn Controller> {
            Box::new(self.clone())
        }
    }
    let settings = Settings { situations: vec!["with_reno".into(), "codel".into()], runs: 1 };
    let bands = Bands::measure(&settings).expect("they run");
    let report =
        bands.judge("fixed", &|_, datagram| Box::new(Fixed(300 * u64::from(datagram)))).expect("it runs");
    let above = report.comparisons.iter().filter(|comparison| comparison.position == Position::Above).count();
    assert!(above >= 3, "{report}");
    assert!(report.to_string().contains("above"));
}

#[test]
fn each_situation_is_a_scenario_without_a_warning() {
    for situation in SITUATIONS {
        let experiment = parse(situation.text, situation.name).unwrap_or_else(|e| panic!("{e}"));
        assert!(experiment.warnings.is_empty(), "{}: {:?}", situation.name, experiment.warnings);
        assert_eq!(experiment.arms.len(), 1);
    }
}

#[test]
fn what_cannot_be_judged_is_refused() {
    let settings = Settings { situations: vec!["sinlge".into()], runs: 1 };
    let refused = Bands::measure(&settings).expect_err("there is none").to_string();
    assert!(refused.contains("\"sinlge\"") && refused.contains("single"), "{refused}");
    let none = Bands::measure(&Settings { runs: 0, ..Settings::default() });
    assert!(matches!(none, Err(KitError::NoRuns)));
}
