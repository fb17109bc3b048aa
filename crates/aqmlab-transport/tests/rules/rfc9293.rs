//! The connection (RFC 9293).

use aqmlab_params::Value;
use aqmlab_transport::{Flags, Role, Segment, State, StreamEvent};

use crate::bench::{Bench, MSS, ack_of, iw, numbers, segment};

/// Rules: 9293 3.10.7.4 second
#[test]
fn a_reset_counts_only_at_the_next_expected_number() {
    let reset = |seq| Segment { flags: Flags::RST, ..segment(seq, 0, 0) };
    let mut b = Bench::established(&[iw(2)]);
    assert_eq!(b.arrive(reset(1 << 31)), [], "outside the window: ignored");
    assert_eq!(b.arrive(reset(2)).len(), 1, "inside it: a challenge acknowledgment");
    assert_eq!(b.endpoint.state(), State::Established);
    assert_eq!(b.arrive(reset(1)), []);
    assert_eq!((b.endpoint.state(), b.endpoint.poll_event()), (State::Closed, Some(StreamEvent::Reset)));
    assert_eq!(b.endpoint.deadline(), None);
}

/// Rules: 9293 3.8.3
#[test]
fn gives_up_after_its_retries_and_says_so() {
    let mut b = Bench::established(&[iw(2), ("data_retries", Value::Integer(3))]);
    (0..3).for_each(|_| assert_eq!(numbers(&b.fire()), [0]));
    let last = b.fire();
    assert!(last.len() == 1 && last[0].flags.has(Flags::RST));
    assert_eq!(b.endpoint.poll_event(), Some(StreamEvent::Aborted));
    let mut b = Bench::new(Role::Active, &[("syn_retries", Value::Integer(2))]);
    b.endpoint.open(b.now, &b.profile);
    b.drain();
    (0..2).for_each(|_| assert!(b.fire()[0].flags.has(Flags::SYN)));
    assert_eq!(b.fire(), []);
    assert_eq!(b.endpoint.poll_event(), Some(StreamEvent::Aborted));
}

/// Rules: 9293 3.10.7.4 fifth
#[test]
fn an_acknowledgment_of_the_future_is_answered_and_changes_nothing() {
    let mut b = Bench::established(&[iw(2)]);
    assert_eq!(b.ack(3).len(), 1);
    assert_eq!((b.endpoint.acked().get(), b.endpoint.flight().get()), (0, u64::from(2 * MSS)));
}

/// Rules: 9293 3.8.6
#[test]
fn the_receive_window_of_the_other_side_bounds_the_flight() {
    let mut b = Bench::established(&[iw(4)]);
    let narrow = Segment { window: 3 * MSS + 100, ..ack_of(4) };
    assert_eq!(numbers(&b.arrive(narrow)), [4, 5, 6], "whole segments only (silly window avoidance)");
}

/// Rules: 9293 3.7.4
#[test]
fn nagle_holds_a_partial_segment_while_data_is_outstanding() {
    for (nagle, expected) in [(false, vec![100, 100]), (true, vec![100])] {
        let mut b = Bench::new(Role::Active, &[("nagle", Value::Flag(nagle))]);
        b.endpoint.open(b.now, &b.profile);
        b.drain();
        b.arrive(Segment { flags: Flags::SYN | Flags::ACK, ..segment(0, 1, 0) });
        let mut sent = Vec::new();
        for _ in 0..2 {
            b.endpoint.write(100);
            sent.extend(b.drain());
        }
        assert_eq!(sent.iter().map(|s| s.len).collect::<Vec<_>>(), expected);
        let rest: u32 = b.arrive(segment(1, 101, 0)).iter().map(|s| s.len).sum();
        assert_eq!(rest, if nagle { 100 } else { 0 });
    }
}
