//! HyStart++ (RFC 9406), and HyStart as in Linux's CUBIC.

use aqmlab_params::Value;
use aqmlab_units::Span;

use crate::bench::{Bench, iw, numbers, sack};

/// A sender whose rounds are run one by one; each segment of a flight is acknowledged separately.
struct Rounds {
    b: Bench,
    acked: u32,
    sent: u32,
}

impl Rounds {
    fn new(exit: &'static str, first_flight: u64, more: &[(&'static str, Value)]) -> Self {
        let mut given = vec![
            sack(),
            iw(first_flight),
            ("sack_pipe", Value::Choice("segments")),
            ("slow_start_exit", Value::Choice(exit)),
        ];
        given.extend_from_slice(more);
        Rounds { b: Bench::established(&given), acked: 0, sent: first_flight as u32 }
    }

    /// Acknowledges the outstanding segments: the first of them `rtt` after their flight was sent,
    /// and the others at intervals of `apart`.
    fn round(&mut self, rtt: Span, apart: Span) {
        let (left, end) = (self.b.now, self.sent);
        let mut at = left + rtt;
        while self.acked < end {
            self.b.now = at;
            self.acked += 1;
            let sent = self.b.ack(self.acked);
            self.sent = numbers(&sent).into_iter().map(|n| n + 1).chain([self.sent]).max().expect("one");
            at += apart;
        }
    }

    fn cwnd(&self) -> f64 {
        self.b.endpoint.cwnd()
    }

    fn is_over(&self) -> bool {
        self.b.endpoint.ssthresh().is_finite()
    }
}

/// Rules: 9406 4.2 rounds; 9406 4.2 RttThresh; 9406 4.2 CSS growth; 9406 4.2 CSS_ROUNDS
#[test]
fn a_round_trip_that_has_grown_slows_slow_start_for_five_rounds() {
    let mut r = Rounds::new("hystart++", 10, &[]);
    r.round(Span::ms(80), Span::ZERO);
    assert_eq!(r.cwnd(), 20.0);
    r.round(Span::ms(89), Span::ZERO);
    assert_eq!(r.cwnd(), 40.0, "an eighth of 80 ms is 10");
    r.round(Span::ms(89), Span::ZERO);
    assert_eq!(r.cwnd(), 80.0, "no growth since the previous round");
    r.round(Span::ms(101), Span::ZERO); // 89 + 11.1
    let eighth = 80.0 + 7.0 + 73.0 / 4.0;
    assert!((r.cwnd() - eighth).abs() < 1e-9, "the eighth sample is the first that shows it: {}", r.cwnd());
    for round in 2..=5 {
        let (before, flight) = (r.cwnd(), r.sent - r.acked);
        assert!(!r.is_over(), "round {round}");
        r.round(Span::ms(101), Span::ZERO);
        assert!((r.cwnd() - before - f64::from(flight) / 4.0).abs() < 1e-9, "round {round}: {}", r.cwnd());
    }
    let before = r.cwnd();
    r.round(Span::ms(101), Span::ZERO);
    assert!(r.is_over() && r.cwnd() < before + 2.0, "avoidance: {}", r.cwnd());
}

/// Rules: 9406 4.2 RttThresh
#[test]
fn the_threshold_has_bounds() {
    for (rtt, grown, slows) in [(10, 13, false), (10, 14, true), (400, 415, false), (400, 416, true)] {
        let mut r = Rounds::new("hystart++", 20, &[]);
        r.round(Span::ms(rtt), Span::ZERO);
        r.round(Span::ms(grown), Span::ZERO);
        assert_eq!(r.cwnd() < 80.0, slows, "{rtt} ms, then {grown} ms");
    }
}

/// Rules: 9406 4.2 N_RTT_SAMPLE
#[test]
fn fewer_than_eight_samples_say_nothing() {
    for (flight, slows) in [(3, false), (4, true)] {
        let mut r = Rounds::new("hystart++", flight, &[]);
        r.round(Span::ms(80), Span::ZERO);
        r.round(Span::ms(200), Span::ZERO);
        r.round(Span::ms(200), Span::ZERO);
        assert_eq!(r.cwnd() < 8.0 * flight as f64, slows, "{}", r.cwnd());
    }
}

/// Rules: 9406 4.2 CSS resume
#[test]
fn a_round_trip_that_has_shrunk_again_resumes_slow_start() {
    let mut r = Rounds::new("hystart++", 10, &[]);
    r.round(Span::ms(80), Span::ZERO);
    r.round(Span::ms(100), Span::ZERO);
    let before = r.cwnd();
    assert!(before < 40.0);
    r.round(Span::ms(80), Span::ZERO);
    r.round(Span::ms(80), Span::ZERO);
    let (before, flight) = (r.cwnd(), f64::from(r.sent - r.acked));
    r.round(Span::ms(80), Span::ZERO);
    assert!((r.cwnd() - before - flight).abs() < 1e-9, "{} from {before}", r.cwnd());
    assert!(!r.is_over());
}

/// Rules: 9406 4.2 initial
#[test]
fn the_slow_start_after_a_timeout_is_the_standard_one() {
    let mut r = Rounds::new("hystart++", 40, &[]);
    r.b.fire();
    assert_eq!((r.cwnd(), r.b.endpoint.ssthresh()), (1.0, 20.0));
    r.acked = 40;
    r.sent = 40;
    let sent = r.b.ack(40);
    r.sent += numbers(&sent).len() as u32;
    for rtt in [80, 120, 160] {
        let (before, flight) = (r.cwnd(), f64::from(r.sent - r.acked));
        r.round(Span::ms(rtt), Span::ZERO);
        assert!((r.cwnd() - (before + flight).min(r.cwnd().max(20.0))).abs() < 1.0, "{}", r.cwnd());
    }
}

/// Rules: 9406 4.2 L
#[test]
fn one_acknowledgment_opens_the_window_by_a_limit() {
    let counting = [("increase", Value::Choice("byte_counting")), ("abc_limit", Value::Integer(8))];
    let mut r = Rounds::new("hystart++", 20, &counting);
    r.b.ack(20);
    assert_eq!(r.cwnd(), 28.0);
}

/// A train is long if it exceeds (61 + 1) / 2 ms, so 31 steps of 1 ms are not enough; gaps above 2 ms end it.
///
/// Rules: 9406 1 hystart
#[test]
fn hystart_ends_slow_start_at_a_long_train() {
    let step = Span::ms(1);
    for (flight, apart, ends) in [(32, step, false), (33, step, true), (33, Span::us(2_001), false)] {
        let mut r = Rounds::new("hystart", flight, &[]);
        r.round(Span::ms(61), apart);
        assert_eq!(r.is_over(), ends, "{flight} segments, {apart}");
    }
}

/// Rules: 9406 1 hystart
#[test]
fn hystart_ends_slow_start_at_a_round_trip_that_has_grown_by_an_eighth() {
    for (grown, ends) in [(90, false), (91, true)] {
        let mut r = Rounds::new("hystart", 16, &[]);
        r.round(Span::ms(80), Span::ZERO);
        r.round(Span::ms(grown), Span::ZERO);
        assert_eq!(r.is_over(), ends, "{grown} ms");
    }
    let mut small = Rounds::new("hystart", 4, &[]);
    small.round(Span::ms(80), Span::ZERO);
    small.round(Span::ms(200), Span::ZERO);
    assert!(!small.is_over(), "below 16 segments slow start continues");
}
