//! TCP congestion control (RFC 5681).

use aqmlab_params::Value;
use aqmlab_transport::{ENDLESS, Flags, Role, Segment};
use aqmlab_units::Span;

use crate::bench::{Bench, MSS, ack_of, iw, ms, numbers, sack, segment};

/// Rules: 5681 3.1 initial window
#[test]
fn initial_window_by_segment_size() {
    use aqmlab_units::{Bytes, text::Size};
    for (mss, segments) in [(536, 4.0), (1095, 4.0), (1096, 3.0), (1460, 3.0), (2190, 3.0), (2191, 2.0)] {
        let b = Bench::established(&[("mss", Value::Size(Size::Bytes(Bytes::new(mss))))]);
        assert_eq!(b.endpoint.cwnd(), segments, "{mss}");
    }
}

/// Rules: 5681 3.1 eq 2
#[test]
fn slow_start_then_one_segment_per_window() {
    let mut b = Bench::established(&[iw(2)]);
    // Each ACK of one segment releases two.
    assert_eq!(numbers(&b.ack(1)), [2, 3]);
    assert_eq!(numbers(&b.ack(2)), [4, 5]);
    assert_eq!(b.endpoint.cwnd(), 4.0);
    // A delayed ACK of two segments opens the window by only one.
    assert_eq!(numbers(&b.ack(4)), [6, 7, 8]);
    assert_eq!(b.endpoint.cwnd(), 5.0);
}

/// Rules: 5681 3.1 eq 4
#[test]
fn ssthresh_is_never_below_two_segments() {
    for initial in [1, 2, 3] {
        let mut b = Bench::established(&[iw(initial)]);
        b.fire();
        assert_eq!(b.endpoint.ssthresh(), 2.0);
    }
}

/// Rules: 5681 3.2 step 2; 5681 3.2 step 3; 5681 3.2 step 4; 5681 3.2 step 5; 6582 3.2 full ack
#[test]
fn fast_retransmit_at_the_third_duplicate() {
    let mut b = Bench::established(&[iw(10), ("limited_transmit", Value::Flag(false))]);
    assert_eq!(b.ack(0), [], "the first duplicate");
    assert_eq!(b.ack(0), [], "the second");
    assert_eq!(numbers(&b.ack(0)), [0], "the third");
    assert_eq!(b.endpoint.ssthresh(), 5.0, "half of ten in flight");
    // The window is inflated to 5 + 3. Ten segments are outstanding, so two more duplicates raise
    // the window to ten, and the next one releases a segment.
    assert_eq!(b.ack(0), []);
    assert_eq!(b.ack(0), []);
    assert_eq!(numbers(&b.ack(0)), [10]);
    // A full acknowledgment covers all eleven segments: cwnd = min(ssthresh, max(0, 1) + 1).
    b.ack(11);
    assert!(!b.endpoint.is_recovering());
    assert_eq!(b.endpoint.cwnd(), 2.0);
}

/// Rules: 5681 2 duplicate ack
#[test]
fn what_is_a_duplicate_acknowledgment() {
    let table = [
        (ack_of(0), 1),
        (Segment { len: 100, ..ack_of(0) }, 0),
        (Segment { flags: Flags::ACK | Flags::FIN, ..ack_of(0) }, 0),
        (Segment { window: 5000, ..ack_of(0) }, 0),
    ];
    for (segment, counted) in table {
        let mut b = Bench::established(&[iw(4)]);
        b.arrive(segment);
        assert_eq!(b.endpoint.counters().duplicate_acks, counted, "{segment:?}");
    }
    let mut b = Bench::established(&[iw(1)]);
    b.endpoint.close();
    b.ack(1);
    b.arrive(segment(1, 2 + MSS, 0));
    b.arrive(segment(1, 2 + MSS, 0));
    assert_eq!(b.endpoint.counters().duplicate_acks, 0, "nothing outstanding");
}

/// Rules: 5681 3.1 eq 4; 5681 3.1 hold; 5681 3.1 loss window
#[test]
fn a_timeout_halves_ssthresh_once_and_the_window_is_one() {
    let mut b = Bench::established(&[iw(10)]);
    b.fire();
    assert_eq!((b.endpoint.cwnd(), b.endpoint.ssthresh()), (1.0, 5.0));
    b.fire();
    assert_eq!((b.endpoint.cwnd(), b.endpoint.ssthresh()), (1.0, 5.0), "held for the same segment");
}

/// Rules: 5681 4.1
#[test]
fn an_idle_connection_restarts_with_the_initial_window() {
    let mut b = Bench::new(Role::Active, &[iw(3)]);
    b.endpoint.open(b.now, &b.profile);
    b.drain();
    b.endpoint.write(u64::from(14 * MSS));
    b.now = ms(100);
    b.arrive(Segment { flags: Flags::SYN | Flags::ACK, ..segment(0, 1, 0) });
    for n in 1..=14 {
        b.ack(n);
    }
    assert_eq!(b.endpoint.cwnd(), 17.0);
    let idle_until = |b: &mut Bench, pause| {
        b.now += pause;
        b.endpoint.write(u64::from(20 * MSS));
        b.drain().len()
    };
    let rto = b.endpoint.rto(&b.profile);
    assert_eq!(idle_until(&mut b, rto), 17, "not longer than the timeout");
    b.ack(31);
    b.ack(34);
    assert_eq!(idle_until(&mut b, rto + Span::ns(1)), 3);
}

/// Rules: 5681 4.2 delayed ack; 5681 4.2 at once
#[test]
fn acknowledgments_at_once_and_delayed() {
    let mut b = Bench::new(Role::Passive, &[]);
    b.arrive(Segment { flags: Flags::SYN, ack: 0, ..segment(0, 0, 0) });
    b.arrive(segment(1, 1, 0));
    let acks = |sent: Vec<Segment>| sent.iter().map(|s| s.ack).collect::<Vec<_>>();
    assert!(acks(b.arrive(segment(1, 1, 100))).is_empty());
    assert_eq!(acks(b.arrive(segment(101, 1, 100))), [201], "every second segment");
    assert_eq!(acks(b.arrive(segment(301, 1, 100))), [201], "out of order: at once");
    assert_eq!(acks(b.arrive(segment(401, 1, 100))), [201]);
    assert_eq!(acks(b.arrive(segment(201, 1, 100))), [501], "the hole is filled: at once");
    assert_eq!(acks(b.arrive(segment(201, 1, 100))), [501], "a repetition: at once");
    assert!(acks(b.arrive(segment(501, 1, 100))).is_empty());
    let arrived = b.now;
    assert_eq!(acks(b.fire()), [601]);
    assert_eq!(b.now, arrived + b.profile.delayed_ack);
}

/// Rules: 5681 3.1 initial window; 5681 3.1 eq 2; 6928 2
#[test]
fn flights_double_from_any_initial_window() {
    for first in [2, 3, 4, 10] {
        let mut b = Bench::established(&[iw(first)]);
        let mut acked = 0;
        for round in 0..4 {
            let flight = b.endpoint.flight().get() / u64::from(MSS);
            assert_eq!(flight, first << round, "round trip {round} from {first}");
            (0..flight).for_each(|_| {
                acked += 1;
                b.ack(acked);
            });
        }
    }
}

/// Rules: 5681 3.1 lost SYN
#[test]
fn after_a_lost_syn_ack_the_passive_side_begins_with_one_segment_too() {
    let mut b = Bench::new(Role::Passive, &[iw(10)]);
    b.arrive(Segment { flags: Flags::SYN, ack: 0, ..segment(0, 0, 0) });
    assert_eq!(b.fire()[0].flags, Flags::SYN | Flags::ACK);
    b.endpoint.write(ENDLESS);
    assert_eq!(numbers(&b.arrive(segment(1, 1, 0))), [0]);
}

/// Rules: 5681 3.1 eq 3
#[test]
fn avoidance_opens_the_window_by_one_segment_for_each_window_of_acks() {
    let mut b = Bench::established(&[iw(10)]);
    b.fire(); // ssthresh 5
    (1..=14).for_each(|n| drop(b.ack(n)));
    assert!(b.endpoint.cwnd() > b.endpoint.ssthresh());
    for n in 15..100 {
        let window = b.endpoint.cwnd();
        b.ack(n);
        assert_eq!(b.endpoint.cwnd(), window + 1.0 / window);
    }
}

/// Rules: 5681 3.1 ssthresh
#[test]
fn slow_start_has_no_end_before_the_first_loss() {
    let mut b = Bench::established(&[iw(10)]);
    (1..=2000).for_each(|n| drop(b.ack(n)));
    assert_eq!(b.endpoint.cwnd(), 2010.0);
}

/// Rules: 5681 4.3
#[test]
fn losses_in_two_successive_windows_reduce_twice() {
    let mut b = Bench::established(&[iw(16), ("limited_transmit", Value::Flag(false))]);
    (0..3).for_each(|_| drop(b.ack(0)));
    assert_eq!(b.endpoint.ssthresh(), 8.0);
    (0..12).for_each(|_| drop(b.ack(0)));
    b.ack(16);
    let flight = b.endpoint.flight().get() / u64::from(MSS);
    // The first segment sent since the loss was detected is also missing.
    b.ack(17);
    let outstanding = b.endpoint.flight().get() / u64::from(MSS);
    assert!(flight > 4 && outstanding >= flight - 1);
    (0..3).for_each(|_| drop(b.ack(17)));
    assert_eq!(b.endpoint.ssthresh(), outstanding as f64 / 2.0);
    assert_eq!(b.endpoint.counters().fast_retransmits, 2);
    // If a retransmission is lost, which only the timer detects, the window is also reduced a
    // second time.
    let mut b = Bench::established(&[iw(16), ("limited_transmit", Value::Flag(false))]);
    (0..3).for_each(|_| drop(b.ack(0)));
    b.fire();
    assert!(b.endpoint.ssthresh() < 8.0, "{}", b.endpoint.ssthresh());
}

/// Rules: 5681 3.1 send window; 9293 3.8.6
#[test]
fn the_least_of_three_windows_bounds_the_flight() {
    for (congestion, own, theirs, flight) in [(4, 100, 100, 4), (10, 6, 100, 6), (10, 100, 5, 5)] {
        let mut b = Bench::new(Role::Active, &[iw(congestion), ("max_window", Value::Integer(own))]);
        b.connect();
        b.endpoint.write(ENDLESS);
        let answer = Segment { flags: Flags::SYN | Flags::ACK, window: theirs * MSS, ..segment(0, 1, 0) };
        assert_eq!(numbers(&b.arrive(answer)).len(), flight);
    }
}

fn reno(given: &[(&'static str, Value)]) -> Bench {
    let reno = [("recovery", Value::Choice("reno")), ("limited_transmit", Value::Flag(false))];
    Bench::established(&[&reno[..], given].concat())
}

/// Reno: "When the next ACK arrives that acknowledges previously unacknowledged data, a TCP MUST set cwnd to ssthresh",
/// whatever else is missing.
///
/// Rules: 5681 3.2 step 6
#[test]
fn reno_deflates_at_the_next_new_acknowledgment() {
    for acknowledged in [4, 10] {
        let mut b = reno(&[iw(10)]);
        (0..6).for_each(|_| drop(b.ack(0)));
        assert!(b.endpoint.is_recovering());
        let sent = numbers(&b.ack(acknowledged));
        assert!(!sent.contains(&acknowledged) || acknowledged == 10, "no hole is sent again for it");
        assert!(!b.endpoint.is_recovering());
        assert_eq!((b.endpoint.cwnd(), b.endpoint.ssthresh()), (5.0, 5.0));
    }
}

/// Reno has no `recover`, so three more duplicates cause another fast retransmit and another
/// halving.
///
/// Rules: 5681 3.2 step 2; 5681 3.2 step 6
#[test]
fn reno_halves_once_more_for_a_second_loss_in_the_window() {
    let mut b = reno(&[iw(10)]);
    (0..3).for_each(|_| drop(b.ack(0)));
    b.ack(4);
    assert!((0..2).all(|_| b.ack(4).is_empty()));
    assert_eq!(numbers(&b.ack(4)), [4]);
    assert_eq!((b.endpoint.counters().fast_retransmits, b.endpoint.ssthresh()), (2, 3.0), "six were out");
}

/// 66,100 times the segment size of 65,000 bytes does not fit in 32 bits, but the threshold, half
/// of that, does.
///
/// Rules: 5681 3.1 eq 4
#[test]
fn half_of_very_many_segments_is_no_small_threshold() {
    use aqmlab_units::{Bytes, text::Size};

    let mss = Value::Size(Size::Bytes(Bytes::new(65_000)));
    let segments = ("sack_pipe", Value::Choice("segments"));
    let settings = [("mss", mss), sack(), iw(66_101), segments, ("nagle", Value::Flag(false))];
    let mut b = Bench::new(Role::Active, &settings);
    b.connect();
    b.now = ms(100);
    b.arrive(Segment { flags: Flags::SYN | Flags::ACK, ..b.syn_ack() });
    for _ in 0..66_100 {
        b.endpoint.write(1);
        b.drain();
    }
    b.fire();
    assert!((b.endpoint.ssthresh() - 33_050.0).abs() < 33.0, "{}", b.endpoint.ssthresh());
}
