//! F-RTO (RFC 5682), and the round trips of retransmitted data (RFC 7323).

use aqmlab_units::Span;

use crate::bench::{by_segments, numbers};

/// Rules: 5682 3.1 step 2; 5682 3.1 step 3b
#[test]
fn a_timeout_is_undone_when_what_was_sent_once_arrives() {
    let mut b = by_segments(10, &["frto"]);
    assert_eq!(numbers(&b.fire()), [0]);
    assert_eq!((b.endpoint.cwnd(), b.endpoint.ssthresh()), (1.0, 5.0));
    b.now += Span::ms(5);
    assert_eq!(numbers(&b.ack(1)), [10, 11], "two new segments, nothing again");
    let sent = numbers(&b.ack(2));
    assert!(sent.iter().all(|n| *n > 11), "nothing again: {sent:?}");
    assert!(b.endpoint.cwnd() >= 10.0 && b.endpoint.ssthresh().is_infinite());
}

/// Rules: 5682 3.1 step 2; 5682 3.1 step 3a
#[test]
fn a_timeout_stands_when_only_new_data_arrives() {
    let mut b = by_segments(10, &["frto"]);
    b.fire();
    b.now += Span::ms(100);
    assert_eq!(numbers(&b.ack(1)), [10, 11]);
    b.now += Span::ms(100);
    assert_eq!(numbers(&b.ack_with(1, &[(10, 11)])), [1]);
    assert_eq!(b.endpoint.ssthresh(), 5.0);
}

/// Without timestamps, a retransmitted segment gives no sample (RFC 6298, 3), and the timeout
/// stays backed off.
///
/// Rules: 7323 4.1; 6298 3 karn
#[test]
fn with_time_stamps_an_acknowledgment_of_a_copy_ends_the_back_off() {
    for (switches, rto) in [(&["timestamps"][..], 1), (&[], 4)] {
        let mut b = by_segments(4, switches);
        b.fire();
        b.fire();
        let again = b.now;
        b.now += Span::ms(100);
        if switches.is_empty() {
            b.ack(1);
        } else {
            b.ack_of_copy(1, again);
        }
        assert_eq!(b.endpoint.rto(&b.profile), Span::s(rto));
    }
    // Without the echo of a copy, the round trip began with the original.
    let mut b = by_segments(4, &["timestamps"]);
    let (left, before) = (b.now, b.endpoint.srtt().expect("from the handshake"));
    b.fire();
    b.now += Span::ms(5);
    b.ack(1);
    let expected = before - before.div(8) + (b.now - left).div(8);
    assert_eq!(b.endpoint.srtt(), Some(expected));
}
