//! The retransmission timer (RFC 6298).

use aqmlab_params::Value;
use aqmlab_transport::{ENDLESS, Flags, Role, Segment};
use aqmlab_units::{Instant, Span};

use crate::bench::{Bench, MSS, iw, ms, numbers, segment};

/// Rules: 6298 2.2; 6298 2.3; 6298 4
#[test]
fn known_answers() {
    // The samples are 100, 100 and 200 ms; G is 10 ms, and there is no minimum timeout.
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

/// Rules: 6298 5.1; 6298 5.2; 6298 5.3
#[test]
fn the_timer_runs_while_data_is_outstanding_and_from_the_last_news() {
    let mut b = Bench::new(Role::Active, &[iw(3)]);
    b.connect();
    b.now = ms(100);
    b.arrive(Segment { flags: Flags::SYN | Flags::ACK, ..segment(0, 1, 0) });
    assert_eq!(b.endpoint.deadline(), None, "nothing is outstanding");
    let rto = b.endpoint.rto(&b.profile);
    b.now = ms(500);
    b.endpoint.write(u64::from(MSS));
    b.drain();
    assert_eq!(b.endpoint.deadline(), Some(ms(500) + rto));
    b.now = ms(600);
    b.endpoint.write(u64::from(MSS));
    b.drain();
    assert_eq!(b.endpoint.deadline(), Some(ms(500) + rto), "it is already running");
    b.now = ms(700);
    b.ack(0);
    assert_eq!(b.endpoint.deadline(), Some(ms(500) + rto), "a duplicate reports nothing new");
    b.ack(1);
    assert_eq!(b.endpoint.deadline(), Some(ms(700) + b.endpoint.rto(&b.profile)));
    b.ack(2);
    assert_eq!(b.endpoint.deadline(), None, "all is acknowledged");
}

/// Rules: 6298 5.4; 6298 5.5; 6298 5.6
#[test]
fn a_timeout_sends_the_earliest_segment_again_and_starts_the_timer_with_the_doubled_timeout() {
    let mut b = Bench::established(&[iw(4)]);
    b.now = ms(200);
    b.ack(1);
    let rto = b.endpoint.rto(&b.profile);
    assert_eq!(numbers(&b.fire()), [1], "only the earliest one");
    assert_eq!(b.endpoint.deadline(), Some(b.now + rto.saturating_mul(2)));
}

/// Rules: 6298 3 sampling
#[test]
fn one_segment_of_each_flight_is_timed() {
    let mut b = Bench::established(&[iw(4)]);
    // The round trip of the flight's first segment took 100 ms; the other segments, which were
    // sent with it, give no samples.
    for (at, n, srtt) in [(200, 1, 100_000), (900, 2, 100_000), (950, 4, 100_000), (1000, 5, 187_500)] {
        b.now = ms(at);
        b.ack(n);
        assert_eq!(b.endpoint.srtt(), Some(Span::us(srtt)), "{n}");
    }
}

/// Rules: 6298 2.1; 6298 2.4; 6298 2.5; 6298 4
#[test]
fn the_bounds_of_the_timeout_are_the_given_ones() {
    let span = |name, ms| (name, Value::Span(Span::ms(ms)));
    // Each row has the minimum timeout, the granularity, and the timeout on a path whose round trip
    // is always 100 ms.
    for (least, granularity, expected) in [(1000, 1, 1000), (200, 1, 200), (0, 10, 110), (0, 100, 200)] {
        // Only one segment is sent per round trip, so each is timed.
        let one = ("max_window", Value::Integer(1));
        let mut b = Bench::established(&[one, span("min_rto", least), span("granularity", granularity)]);
        for n in 1..=60 {
            b.now += Span::ms(100);
            b.ack(n);
        }
        assert_eq!(b.endpoint.rto(&b.profile), Span::ms(expected), "{least}, {granularity}");
    }
    let mut b = Bench::new(Role::Active, &[span("initial_rto", 3000), span("max_rto", 10_000)]);
    b.connect();
    for seconds in [3, 9, 19, 29] {
        b.fire();
        assert_eq!(b.now, ms(1000 * seconds));
    }
}
