//! NewReno (RFC 6582) and limited transmit (RFC 3042).

use aqmlab_params::Value;
use aqmlab_units::Span;

use crate::bench::{Bench, MSS, echo, ecn, iw, numbers};

/// Rules: 3042 2; 5681 3.2 step 1; 5681 3.2 step 2
#[test]
fn limited_transmit_sends_on_the_first_two_duplicates() {
    let mut b = Bench::established(&[iw(4)]);
    assert_eq!(numbers(&b.ack(0)), [4]);
    assert_eq!(numbers(&b.ack(0)), [5]);
    assert_eq!(numbers(&b.ack(0)), [0]);
    // RFC 5681, 3.2, step 2: the two extra segments are not part of the flight that is halved.
    assert_eq!(b.endpoint.ssthresh(), 2.0);
}

/// Rules: 6582 3.2 partial ack; 6582 4 impatient
#[test]
fn a_partial_ack_retransmits_the_next_hole() {
    let mut b = Bench::established(&[iw(10), ("limited_transmit", Value::Flag(false))]);
    (0..3).for_each(|_| drop(b.ack(0)));
    let deadline = b.endpoint.deadline();
    b.now += Span::ms(100);
    // Segments 0, 4 and 6 are missing, so the retransmission of 0 causes an ACK of 4.
    assert_eq!(numbers(&b.ack(4)), [4]);
    assert!(b.endpoint.is_recovering());
    let first = b.endpoint.deadline();
    assert!(first > deadline, "the first partial ACK restarts the timer");
    b.now += Span::ms(100);
    assert_eq!(numbers(&b.ack(6)), [6]);
    assert_eq!(b.endpoint.deadline(), first, "impatient: the second does not");
    b.now += Span::ms(100);
    // All ten segments are acknowledged, so recovery is over: cwnd = min(5, max(0, 1) + 1), which
    // is below ssthresh.
    assert_eq!(numbers(&b.ack(10)), [10, 11]);
    assert_eq!(b.endpoint.cwnd(), 2.0);
}

/// Rules: 6582 4 slow but steady
#[test]
fn slow_but_steady_restarts_the_timer_each_time() {
    let steady = ("partial_ack", Value::Choice("slow_but_steady"));
    let mut b = Bench::established(&[iw(10), steady]);
    (0..3).for_each(|_| drop(b.ack(0)));
    for n in [4, 6] {
        b.now += Span::ms(100);
        b.ack(n);
        assert_eq!(b.endpoint.deadline(), Some(b.now + b.endpoint.rto(&b.profile)));
    }
}

/// Rules: 6582 3.2 step 2; 6582 3.2 step 4
#[test]
fn duplicates_of_segments_sent_before_a_timeout_do_not_retransmit() {
    let mut b = Bench::established(&[iw(6)]);
    assert_eq!(numbers(&b.fire()), [0]);
    assert_eq!(numbers(&b.ack(1)), [1, 2], "slow start from one segment");
    // Segments 1 and 2 had arrived the first time, so their retransmission causes duplicate ACKs.
    for _ in 0..3 {
        b.ack(1);
    }
    assert_eq!(b.endpoint.counters().fast_retransmits, 0);
    // These ACKs cover exactly the data that was sent before the timeout, so there is still no fast
    // retransmit.
    for _ in 0..4 {
        b.ack(6);
    }
    assert_eq!(b.endpoint.counters().fast_retransmits, 0);
    b.ack(7);
    for _ in 0..3 {
        b.ack(7);
    }
    assert_eq!(b.endpoint.counters().fast_retransmits, 1, "beyond `recover` duplicates count again");
}

/// Rules: 6582 3.2 step 2
#[test]
fn a_loss_after_a_mark_recovers_all_that_was_sent_before_it() {
    let mut b = Bench::established(&ecn());
    b.arrive(echo(1));
    (2..=12).for_each(|n| drop(b.ack(n)));
    let sent = 12 + b.endpoint.flight().get() as u32 / MSS;
    assert!(sent > 16, "new data since the mark");
    (0..3).for_each(|_| drop(b.ack(12)));
    // The window of the mark ends at 16; `recover` is the end of the data that had been sent when
    // the loss was detected.
    assert_eq!(numbers(&b.ack(17))[0], 17, "a partial acknowledgment: the next hole");
    assert!(b.endpoint.is_recovering());
}
