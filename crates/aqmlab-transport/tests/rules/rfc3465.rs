//! Appropriate byte counting (RFC 3465).

use aqmlab_params::Value;

use crate::bench::{Bench, iw};

/// Rules: 3465 2.2
#[test]
fn counts_bytes_up_to_its_limit() {
    let abc = |l| [iw(4), ("increase", Value::Choice("byte_counting")), ("abc_limit", Value::Integer(l))];
    for (limit, window) in [(1, 5.0), (2, 6.0)] {
        let mut b = Bench::established(&abc(limit));
        b.ack(2);
        assert_eq!(b.endpoint.cwnd(), window);
    }
}

/// Rules: 3465 2.1; 3465 2.3
#[test]
fn after_a_timeout_the_limit_is_one_and_avoidance_counts_a_window() {
    let abc = [iw(4), ("increase", Value::Choice("byte_counting"))];
    let mut b = Bench::established(&abc);
    b.fire();
    b.ack(2);
    assert_eq!(b.endpoint.cwnd(), 2.0, "one segment, although two were acknowledged (RFC 3465, 2.3)");
    // ssthresh is two, so this is congestion avoidance. The window of two segments opens by one
    // once a total of two segments has been acknowledged.
    b.ack(3);
    assert_eq!(b.endpoint.cwnd(), 2.0);
    b.ack(4);
    assert_eq!(b.endpoint.cwnd(), 3.0);
}
