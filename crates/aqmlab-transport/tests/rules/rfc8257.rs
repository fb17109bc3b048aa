//! DCTCP (RFC 8257): the receiver's echo of each mark, and the sender's estimate of how frequent they are.

use aqmlab_params::Value;
use aqmlab_transport::{Flags, Segment};

use crate::bench::{Bench, MSS, ack_of, echo, iw, numbers, segment};

fn dctcp(first_flight: u64) -> [(&'static str, Value); 3] {
    [("congestion", Value::Choice("dctcp")), ("ecn", Value::Flag(true)), iw(first_flight)]
}

/// Delivers data segments, marked or not, and returns for each acknowledgment the number of
/// segments acknowledged and whether it has the echo.
fn answers(marks: &[bool]) -> Vec<(u32, bool)> {
    let mut b = Bench::accepted(&dctcp(10));
    let mut found = Vec::new();
    for (n, ce) in (0..).zip(marks) {
        let sent = b.arrive_marked(segment(1 + n * MSS, 1, MSS), *ce);
        found.extend(sent.iter().map(|s| ((s.ack - 1) / MSS, s.flags.has(Flags::ECE))));
    }
    found
}

/// Rules: 8257 3.2 step 3; 8257 3.2 ece
#[test]
fn while_marks_do_not_change_acknowledgments_wait_as_ever() {
    assert_eq!(answers(&[false; 6]), [(2, false), (4, false), (6, false)]);
    let all = answers(&[true; 6]);
    assert_eq!(all, [(1, true), (3, true), (5, true)], "each has the echo, regardless of CWR");
}

/// Rules: 8257 3.2 step 1; 8257 3.2 step 2; 8257 3.2 two acks
#[test]
fn a_change_is_acknowledged_at_once_and_what_waited_before_it() {
    assert_eq!(answers(&[false, false, true]), [(2, false), (3, true)], "nothing waited");
    assert_eq!(answers(&[false, true]), [(1, false), (2, true)], "one segment waited");
    assert_eq!(answers(&[true, true, false]), [(1, true), (2, true), (3, false)]);
    let changing: Vec<bool> = (0..6).map(|n| n % 2 == 0).collect();
    let expected: Vec<(u32, bool)> = (0..6).map(|n| (n + 1, n % 2 == 0)).collect();
    assert_eq!(answers(&changing), expected, "each individually");
}

/// CWR does not end the echo while segments still arrive with marks.
///
/// Rules: 8257 3.2 ece
#[test]
fn the_echo_is_of_the_segments_that_it_covers() {
    let mut b = Bench::accepted(&dctcp(10));
    b.arrive_marked(segment(1, 1, MSS), true);
    let reduced = Segment { flags: Flags::ACK | Flags::CWR, ..segment(1 + MSS, 1, MSS) };
    b.arrive_marked(reduced, true);
    let sent = b.arrive_marked(segment(1 + 2 * MSS, 1, MSS), true);
    assert!(sent[0].flags.has(Flags::ECE));
}

/// The estimate alpha, computed here as section 3.3 defines it.
struct Estimate {
    alpha: f64,
    window_end: u32,
    acked: u32,
    marked: u32,
}

impl Estimate {
    /// Section 3.3, steps 1 to 8, in segments.
    fn heard(&mut self, ack: u32, sent: u32, marked: bool) {
        self.acked += 1;
        self.marked += u32::from(marked);
        if ack > self.window_end {
            let m = f64::from(self.marked) / f64::from(self.acked);
            self.alpha = self.alpha * (1.0 - 1.0 / 16.0) + m / 16.0;
            (self.window_end, self.acked, self.marked) = (sent, 0, 0);
        }
    }
}

/// Rules: 8257 3.3 step 1; 8257 3.3 step 3; 8257 3.3 step 4; 8257 3.3 step 6; 8257 3.3 step 7; 8257 3.3 step 9; 8257 4.2
#[test]
fn a_mark_takes_half_of_the_share_of_marks_and_once_in_a_window() {
    let mut b = Bench::established(&dctcp(20));
    let mut estimate = Estimate { alpha: 1.0, window_end: 0, acked: 0, marked: 0 };
    let (mut sent, mut reductions, mut react_from) = (20, 0, 0);
    for n in 1..=400 {
        let marked = n % 7 == 0 && n > 40;
        let before = b.endpoint.cwnd();
        estimate.heard(n, sent, marked);
        let out = b.arrive(if marked { echo(n) } else { ack_of(n) });
        let reacts = marked && n > react_from;
        if reacts {
            let expected = before * (1.0 - estimate.alpha / 2.0);
            assert!(
                (b.endpoint.cwnd() - expected).abs() < 1e-9,
                "segment {n}: {} of {before}",
                b.endpoint.cwnd()
            );
            (reductions, react_from) = (reductions + 1, sent);
        } else {
            assert!(b.endpoint.cwnd() >= before, "segment {n}");
        }
        sent = numbers(&out).into_iter().map(|n| n + 1).chain([sent]).max().expect("at least one");
    }
    assert!(reductions > 4 && estimate.alpha < 0.9, "{reductions} reductions, alpha {}", estimate.alpha);
}

/// Rules: 8257 3.3 step 6
#[test]
fn known_answers() {
    let mut b = Bench::established(&dctcp(16));
    let mut window = 16;
    b.ack(1); // 1 * 15/16
    let before = b.endpoint.cwnd();
    b.arrive(echo(2));
    assert!((b.endpoint.cwnd() - before * (1.0 - 0.9375 / 2.0)).abs() < 1e-9, "{}", b.endpoint.cwnd());
    window += 1;
    assert_eq!(before, f64::from(window));
}

/// Rules: 8257 3.3 cwr
#[test]
fn the_reduction_is_reported_as_ever() {
    let mut b = Bench::established(&dctcp(8));
    b.ack(1);
    b.arrive(echo(2));
    let sent = (3..=8).find_map(|n| b.ack(n).first().copied()).expect("the window opens again");
    assert!(sent.flags.has(Flags::CWR));
}

/// Rules: 8257 3.5
#[test]
fn a_loss_halves_the_window() {
    let mut given = dctcp(20).to_vec();
    given.push(("limited_transmit", Value::Flag(false)));
    let mut b = Bench::established(&given);
    b.ack(10);
    let flight = 20.0;
    assert_eq!(b.endpoint.cwnd(), 21.0);
    for _ in 0..3 {
        b.ack(10);
    }
    assert!(b.endpoint.is_recovering());
    assert!((b.endpoint.ssthresh() - flight / 2.0).abs() <= 1.0, "{}", b.endpoint.ssthresh());
}
