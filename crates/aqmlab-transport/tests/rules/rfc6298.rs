//! The retransmission timer (RFC 6298).

use aqmlab_params::Value;
use aqmlab_transport::{ENDLESS, Flags, Role, Segment};
use aqmlab_units::{Instant, Span};

use crate::bench::{Bench, iw, ms, numbers, segment};

/// Rules: 6298 2.2; 6298 2.3; 6298 4
#[test]
fn known_answers() {
    // Samples of 100, 100 and 200 ms; G 10 ms, no floor.
    let given = [iw(1), ("min_rto", Value::Span(Span::ZERO)), ("granularity", Value::Span(Span::ms(10)))];
    let mut b = Bench::established(&given);
    let us = |n| Span::us(n);
    assert_eq!((b.endpoint.srtt(), b.endpoint.rto(&b.profile)), (Some(us(100_000)), us(300_000)));
    b.now = ms(200);
    b.ack(1);
    assert_eq!((b.endpoint.srtt(), b.endpoint.rto(&b.profile)), (Some(us(100_000)), us(250_000)));
    b.now = ms(400);
    b.ack(2);
    assert_eq!((b.endpoint.srtt(), b.endpoint.rto(&b.profile)), (Some(us(112_500)), us(325_000)));
}

/// Rules: 6298 2.4; 6298 2.5; 6298 3 karn; 6298 5.5
#[test]
fn backs_off_doubling_to_the_bound_and_karn_takes_no_sample() {
    let mut b = Bench::established(&[iw(1)]);
    let mut last = b.now;
    for expected in [1, 2, 4, 8, 16, 32, 60, 60] {
        assert_eq!(numbers(&b.fire()), [0]);
        assert_eq!(b.now - last, Span::s(expected));
        last = b.now;
    }
    let srtt = b.endpoint.srtt();
    b.now += Span::ms(700);
    b.ack(1);
    assert_eq!(b.endpoint.srtt(), srtt, "it could be for either copy");
    assert_eq!(b.endpoint.rto(&b.profile), Span::s(60), "backed off until a sample is taken");
    b.now += Span::ms(100);
    b.ack(2);
    assert_eq!(b.endpoint.rto(&b.profile), Span::s(1));
}

/// Rules: 6298 5.7; 6298 2.1; 5681 3.1 lost SYN
#[test]
fn a_lost_syn_doubles_and_leaves_three_seconds_and_a_window_of_one() {
    let mut b = Bench::new(Role::Active, &[iw(10)]);
    b.endpoint.open(b.now, &b.profile);
    b.drain();
    b.endpoint.write(ENDLESS);
    for at in [1, 3, 7] {
        assert!(b.fire()[0].flags.has(Flags::SYN));
        assert_eq!(b.now, Instant::ZERO + Span::s(at));
    }
    b.now += Span::ms(100);
    let sent = b.arrive(Segment { flags: Flags::SYN | Flags::ACK, ..segment(0, 1, 0) });
    assert_eq!(numbers(&sent), [0], "RFC 5681, 3.1: initial window of one segment");
    assert_eq!(b.endpoint.rto(&b.profile), Span::s(3), "RFC 6298, 5.7");
}
