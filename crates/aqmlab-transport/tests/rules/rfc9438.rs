//! CUBIC (RFC 9438): the window after each acknowledgment is compared with the equations, which are
//! evaluated here.

use aqmlab_params::Value;
use aqmlab_transport::{ENDLESS, Segment};
use aqmlab_units::{Instant, Span};

use crate::bench::{Bench, MSS, ack_of, echo, iw, numbers, sack};

const C: f64 = 0.4;
const BETA: f64 = 0.7;

fn cubic() -> (&'static str, Value) {
    ("congestion", Value::Choice("cubic"))
}

/// A congestion avoidance stage; it begins with the window `epoch`, which is below `w_max`
/// (equation 2).
struct Stage {
    w_max: f64,
    k: f64,
}

impl Stage {
    fn new(w_max: f64, epoch: f64) -> Self {
        Stage { w_max, k: ((w_max - epoch) / C).cbrt() }
    }

    /// Equation 1.
    fn w_cubic(&self, t: f64) -> f64 {
        C * (t - self.k).powi(3) + self.w_max
    }

    /// Returns the window after an acknowledgment at `t` (4.2, 4.4, 4.5).
    fn after_ack(&self, cwnd: f64, t: f64, rtt: f64) -> f64 {
        let target = self.w_cubic(t + rtt).max(cwnd).min(1.5 * cwnd);
        cwnd + (target - cwnd) / cwnd
    }
}

/// A sender whose other side acknowledges one segment at a time.
struct Sender {
    b: Bench,
    acked: u32,
    sent: u32,
}

impl Sender {
    /// Creates a sender that is in slow start with a hundred segments in the first flight and that sends no
    /// extra segments at duplicate ACKs.
    fn new(given: &[(&'static str, Value)]) -> Self {
        let mut all = vec![
            cubic(),
            iw(100),
            ("limited_transmit", Value::Flag(false)),
            ("recovery_exit", Value::Choice("ssthresh")),
        ];
        all.extend_from_slice(given);
        Sender { b: Bench::established(&all), acked: 0, sent: 100 }
    }

    fn note(&mut self, sent: &[Segment]) {
        self.sent = numbers(sent).into_iter().map(|n| n + 1).chain([self.sent]).max().expect("one at least");
    }

    fn cwnd(&self) -> f64 {
        self.b.endpoint.cwnd()
    }

    /// Acknowledges the next segment `t` seconds after `epoch`.
    fn ack_at(&mut self, epoch: Instant, t: f64) {
        self.b.now = epoch + Span::ns((t * 1e9).round() as u64);
        self.acked += 1;
        let sent = self.b.ack(self.acked);
        self.note(&sent);
    }

    /// Returns the smoothed round-trip time at the last acknowledgment.
    fn rtt(&self) -> f64 {
        self.b.endpoint.srtt().expect("there was a sample").as_secs_f64()
    }

    /// Loses the first outstanding segment and lets all others arrive; the retransmission is
    /// acknowledged together with them.
    fn lose_one(&mut self) {
        for _ in 0..3 {
            let sent = self.b.ack(self.acked);
            self.note(&sent);
        }
        assert!(self.b.endpoint.is_recovering());
        self.acked = self.sent;
        let sent = self.b.ack(self.acked);
        self.note(&sent);
        assert!(!self.b.endpoint.is_recovering());
    }

    /// Acknowledges a segment at each of these times within a stage, and compares the window with the
    /// equations each time.
    fn follow(&mut self, stage: &Stage, times: &[f64]) {
        let epoch = self.b.now;
        for t in times {
            let before = self.cwnd();
            self.ack_at(epoch, *t);
            let expected = stage.after_ack(before, *t, self.rtt());
            assert!((self.cwnd() - expected).abs() < 1e-9, "t {t}: {} is not {expected}", self.cwnd());
        }
    }
}

fn purely_cubic() -> [(&'static str, Value); 1] {
    [("cubic_reno_friendly", Value::Flag(false))]
}

/// Rules: 9438 4.2 eq 1; 9438 4.2 eq 2; 9438 4.2 target; 9438 4.4; 9438 4.5; 9438 4.6 loss
#[test]
fn the_window_follows_the_cubic_function() {
    let known = Stage::new(100.0, 70.0);
    assert!((known.k - 4.217).abs() < 1e-3 && (known.w_cubic(2.0) - 95.64).abs() < 1e-2);
    let mut s = Sender::new(&purely_cubic());
    s.lose_one();
    assert_eq!((s.cwnd(), s.b.endpoint.ssthresh()), (70.0, 70.0), "0.7 of a hundred");
    // The function is concave, then at the plateau, then convex; finally its growth is limited to
    // that of slow start (1.5 cwnd).
    s.follow(&known, &[0.0, 0.001, 0.1, 1.0, 2.0, 3.0, 4.0, 4.217, 4.4, 5.0, 6.5, 30.0]);
    assert!(known.w_cubic(30.0) > 1.5 * s.cwnd(), "the upper bound was needed");
}

/// Rules: 9438 4.2 target
#[test]
fn with_byte_counting_each_segment_counts_and_not_each_acknowledgment() {
    let mut s = Sender::new(&[purely_cubic()[0].clone(), ("increase", Value::Choice("byte_counting"))]);
    s.lose_one();
    let (stage, before) = (Stage::new(100.0, 70.0), s.cwnd());
    s.acked += 1;
    s.ack_at(s.b.now, 0.0);
    let target = stage.w_cubic(s.rtt());
    assert!((s.cwnd() - (before + 2.0 * (target - before) / before)).abs() < 1e-9, "two segments, one ACK");
}

/// Rules: 9438 4.7
#[test]
fn a_window_that_has_lost_ground_gives_up_more() {
    for (fast, share) in [(true, (1.0 + BETA) / 2.0), (false, 1.0)] {
        let mut s = Sender::new(&[purely_cubic()[0].clone(), ("cubic_fast_convergence", Value::Flag(fast))]);
        s.lose_one();
        s.follow(&Stage::new(100.0, 70.0), &[0.0]);
        let before = s.cwnd();
        assert!(before < 100.0);
        s.lose_one();
        assert!((s.cwnd() - 49.0).abs() < 1e-9, "0.7 of seventy");
        s.follow(&Stage::new(share * before, 49.0), &[0.0, 0.5, 1.0, 2.0]);
    }
}

/// Rules: 9438 4.3 eq 4; 9438 4.3 alpha
#[test]
fn the_window_is_at_least_renos_and_grows_as_renos_beyond_where_it_was() {
    let mut s = Sender::new(&[]);
    s.lose_one();
    let epoch = s.b.now;
    let (mut w_est, mut seen_both) = (70.0, [false; 2]);
    while s.cwnd() < 103.0 {
        let before = s.cwnd();
        // No time passes, so the cubic function stays at its initial value.
        s.ack_at(epoch, 0.0);
        let alpha = if w_est >= 100.0 { 1.0 } else { 3.0 * (1.0 - BETA) / (1.0 + BETA) };
        seen_both[usize::from(alpha == 1.0)] = true;
        w_est += alpha / before;
        assert!((s.cwnd() - w_est).abs() < 1e-9, "{} is not {w_est}", s.cwnd());
    }
    assert_eq!(seen_both, [true; 2]);
}

/// Rules: 9438 4.8
#[test]
fn after_a_timeout_the_first_stage_begins_at_its_plateau() {
    let mut s = Sender::new(&purely_cubic());
    s.b.fire();
    assert_eq!((s.cwnd(), s.b.endpoint.ssthresh()), (1.0, 70.0));
    while s.cwnd() < 70.0 {
        s.ack_at(s.b.now, 0.0);
    }
    s.follow(&Stage::new(70.0, 70.0), &[0.0, 1.0, 2.0, 4.0]);
}

/// Rules: 9438 4.9
#[test]
fn a_timeout_that_was_spurious_gives_the_stage_back() {
    let given = [
        purely_cubic()[0].clone(),
        sack(),
        iw(32),
        ("sack_pipe", Value::Choice("segments")),
        ("frto", Value::Flag(true)),
        ("initial_ssthresh", Value::Choice("max_window")),
        ("max_window", Value::Integer(32)),
    ];
    let mut s = Sender::new(&given);
    s.sent = 32;
    let (stage, epoch) = (Stage::new(32.0, 32.0), s.b.now);
    s.follow(&stage, &[0.0, 0.25]);
    let before = s.cwnd();
    let again = s.b.fire();
    assert_eq!((numbers(&again).len(), s.cwnd()), (1, 1.0));
    let late = (s.b.now - epoch).as_secs_f64() + 0.01;
    s.ack_at(epoch, late);
    s.ack_at(epoch, late);
    let expected = stage.after_ack(before, late, s.rtt());
    assert!((s.cwnd() - expected).abs() < 1e-9, "{} is not {expected}", s.cwnd());
}

/// Rules: 9438 4.10
#[test]
fn slow_start_that_ends_without_a_loss_ends_at_the_plateau() {
    let given = [
        purely_cubic()[0].clone(),
        iw(32),
        ("initial_ssthresh", Value::Choice("max_window")),
        ("max_window", Value::Integer(32)),
    ];
    let mut s = Sender::new(&given);
    assert_eq!((s.cwnd(), s.b.endpoint.ssthresh()), (32.0, 32.0));
    s.sent = 32;
    s.follow(&Stage::new(32.0, 32.0), &[0.0, 1.0, 2.0]);
}

/// Rules: 9438 5.8; 9438 4.2 time
#[test]
fn a_window_that_is_not_used_does_not_grow_and_its_time_does_not_pass() {
    let stage = Stage::new(100.0, 70.0);
    let mut s = Sender::new(&purely_cubic());
    s.lose_one();
    let epoch = s.b.now;
    s.follow(&stage, &[0.0, 0.5]);
    // The other side reduces its window to ten segments, so outstanding data drains and nothing new
    // leaves.
    let small = |n| Segment { window: 10 * MSS, ..ack_of(n) };
    let cwnd = s.cwnd();
    while s.sent - s.acked > 10 {
        s.acked += 1;
        s.b.arrive(small(s.acked));
    }
    let full = s.cwnd();
    assert!(full > cwnd, "the first of them found the window full");
    s.b.now = epoch + Span::s(60);
    for _ in 0..5 {
        s.acked += 1;
        let sent = s.b.arrive(small(s.acked));
        s.note(&sent);
    }
    assert_eq!(s.cwnd(), full);
    // The other side's window opens again; the next acknowledgment still finds cwnd partly unused,
    // but the one after that does not.
    s.acked += 1;
    let sent = s.b.ack(s.acked);
    s.note(&sent);
    assert_eq!(s.cwnd(), full);
    s.ack_at(epoch, 60.25);
    let expected = stage.after_ack(full, 0.75, s.rtt());
    assert!((s.cwnd() - expected).abs() < 1e-9, "{} is not {expected}", s.cwnd());
}

/// Rules: 9438 4.2 time
#[test]
fn a_pause_does_not_count_as_time() {
    let stage = Stage::new(100.0, 70.0);
    let mut s = Sender::new(&[purely_cubic()[0].clone(), ("idle_restart", Value::Choice("off"))]);
    s.lose_one();
    let epoch = s.b.now;
    s.follow(&stage, &[0.0, 0.5]);
    s.b.endpoint.withdraw();
    s.acked = s.sent;
    s.b.ack(s.acked);
    let before = s.cwnd();
    s.b.now = epoch + Span::s(100);
    s.b.endpoint.write(ENDLESS);
    let sent = s.b.drain();
    s.note(&sent);
    s.ack_at(epoch, 100.25);
    let expected = stage.after_ack(before, 0.75, s.rtt());
    assert!((s.cwnd() - expected).abs() < 1e-9, "{} is not {expected}", s.cwnd());
}

/// Rules: 9438 4.6 ece
#[test]
fn an_echo_leaves_the_same_share_and_one_segment_at_least() {
    let ecn = ("ecn", Value::Flag(true));
    for (first_flight, left, ssthresh) in [(100, 70.0, 70.0), (2, 1.4, 2.0), (1, 1.0, 2.0)] {
        let keep = ("ecn_at_one", Value::Choice("keep"));
        let mut b = Bench::established(&[cubic(), iw(first_flight), ecn.clone(), keep]);
        b.arrive(echo(1));
        let found = (b.endpoint.cwnd(), b.endpoint.ssthresh());
        assert!((found.0 - left).abs() < 1e-9 && (found.1 - ssthresh).abs() < 1e-9, "{found:?}");
    }
}

/// Rules: 9438 4.6 loss
#[test]
fn a_loss_leaves_two_segments_at_least() {
    for base in ["flight", "window"] {
        let given =
            [cubic(), iw(2), ("dupthresh", Value::Integer(1)), ("reduction_base", Value::Choice(base))];
        let mut b = Bench::established(&given);
        b.ack(0);
        assert!(b.endpoint.is_recovering());
        assert_eq!((b.endpoint.cwnd(), b.endpoint.ssthresh()), (2.0, 2.0), "{base}");
    }
}
