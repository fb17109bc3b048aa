//! RACK-TLP (RFC 8985).

use aqmlab_params::Value;
use aqmlab_units::Span;

use crate::bench::{MSS, by_segments, by_segments_with, ms, numbers};

/// Rules: 8985 6.2 step 5; 8985 6.2 reo_wnd
#[test]
fn a_segment_is_lost_a_quarter_of_a_round_trip_after_a_later_one_has_arrived() {
    let mut b = by_segments(10, &["rack"]);
    b.now = ms(200);
    assert_eq!(numbers(&b.ack_with(0, &[(1, 2)])), [10], "it may be reordered");
    assert!(!b.endpoint.is_recovering());
    assert_eq!(numbers(&b.fire()), [0]);
    assert_eq!((b.now, b.endpoint.is_recovering()), (ms(225), true));
}

/// As long as no reordering has been seen, three SACKed segments above a segment suffice to declare
/// it lost.
///
/// Rules: 8985 6.2 dupthresh
#[test]
fn three_segments_above_make_it_lost_at_once() {
    let mut b = by_segments(10, &["rack"]);
    b.now = ms(200);
    b.ack_with(0, &[(1, 2)]);
    b.ack_with(0, &[(1, 3)]);
    assert_eq!(numbers(&b.ack_with(0, &[(1, 4)]))[..1], [0]);
}

/// Once reordering has been seen, the allowance for it still applies when three segments above a
/// hole are SACKed.
///
/// Rules: 8985 6.2 reordering
#[test]
fn reordering_that_was_seen_is_allowed_for() {
    let mut b = by_segments(10, &["rack"]);
    b.now = ms(200);
    b.ack_with(0, &[(1, 2)]);
    b.now = ms(201);
    b.ack(2); // the first arrived late
    let retransmitted = b.endpoint.counters().retransmitted;
    for n in 4..8 {
        b.ack_with(2, &[(3, n)]);
    }
    assert_eq!((b.endpoint.counters().retransmitted, retransmitted), (0, 0));
    assert_eq!(numbers(&b.fire())[..1], [2]);
}

/// IsLost of RFC 6675, unlike RACK, never finds that a retransmission is lost.
///
/// Rules: 8985 6.2 retransmission
#[test]
fn a_retransmission_that_is_lost_is_found_by_what_left_after_it() {
    for (switches, again) in [(&["rack", "prr"][..], &[0][..]), (&["prr"], &[])] {
        let mut b = by_segments(10, switches);
        b.now = ms(200);
        b.ack_with(0, &[(1, 2)]);
        b.ack_with(0, &[(1, 3)]);
        b.now = ms(201);
        assert_eq!(numbers(&b.ack_with(0, &[(1, 4)])), [0]);
        b.now = ms(202);
        (5..=10).for_each(|n| drop(b.ack_with(0, &[(1, n)])));
        assert!(b.endpoint.counters().data_segments_sent > 13, "new data has left after it");
        b.now = ms(302);
        let sent = b.ack_with(0, &[(1, 12)]);
        let sent: Vec<u32> = numbers(&sent).into_iter().filter(|n| *n < 10).collect();
        assert!(sent.is_empty(), "10 and 11 left before it: {sent:?}");
        let sent = b.ack_with(0, &[(1, 13)]);
        let sent: Vec<u32> = numbers(&sent).into_iter().filter(|n| *n < 10).collect();
        assert_eq!(sent, again);
    }
}

/// The blocks of a SACK option begin with the latest block, but segments are judged in ascending
/// order, so the arrivals that one acknowledgment reports do not count as reordered.
///
/// Rules: 8985 6.2 ascending
#[test]
fn blocks_that_arrive_together_are_no_reordering() {
    let mut b = by_segments(10, &["rack"]);
    b.now = ms(200);
    assert_eq!(numbers(&b.ack_with(0, &[(6, 7), (3, 4), (1, 2)]))[..1], [0], "three are SACKed");
}

/// RACK.rtt is the round trip of the most recently delivered segment. If RACK.segment was sent
/// later than that one, its own round trip is shorter.
///
/// Rules: 8985 6.2 RACK.rtt
#[test]
fn the_round_trip_is_that_of_the_latest_delivery() {
    let mut b = by_segments(10, &["rack", "prr"]);
    b.now = ms(200);
    assert_eq!(numbers(&b.ack_with(0, &[(1, 2)])), [10]);
    b.now = ms(201);
    assert_eq!(numbers(&b.ack_with(0, &[(1, 3)])), [11]);
    b.now = ms(202);
    assert_eq!(numbers(&b.ack_with(0, &[(1, 4)])), [0]);
    b.now = ms(302);
    let sent = numbers(&b.ack(11));
    assert!(!sent.contains(&11), "it left at 201 ms, and the round trip of 10 took 102: {sent:?}");
    assert_eq!(numbers(&b.fire())[..1], [11]);
    assert_eq!(b.now, ms(303));
}

/// Step 5 applies to each outstanding segment, even if all were sent only once and nothing above
/// them is SACKed, because a copy that has arrived may have left after them.
///
/// Rules: 8985 6.2 step 5
#[test]
fn what_left_before_a_copy_that_has_arrived_is_judged_after_the_recovery() {
    let mut b = by_segments(10, &["rack", "prr"]);
    for (at, sacked, sent) in [(200, (1, 2), 10), (201, (1, 3), 11), (202, (1, 4), 0)] {
        b.now = ms(at);
        assert_eq!(numbers(&b.ack_with(0, &[sacked])), [sent]);
    }
    for (at, to, sent) in [
        (203, 6, None),
        (204, 7, Some(4)),
        (205, 8, None),
        (206, 9, None),
        (207, 10, Some(12)),
        (208, 11, Some(13)),
    ] {
        b.now = ms(at);
        assert_eq!(numbers(&b.ack_with(0, &[(5, to), (1, 4)])).pop(), sent);
    }
    b.now = ms(303);
    assert_eq!(numbers(&b.ack_with(0, &[(5, 12), (1, 4)])), [14]);
    b.now = ms(304);
    assert_eq!(numbers(&b.ack_with(0, &[(1, 12)]))[..1], [0], "its first copy left before that of 4");
    for (at, to) in [(307, 13), (308, 14)] {
        b.now = ms(at);
        b.ack_with(0, &[(1, to)]);
    }
    b.now = ms(404);
    let sent = numbers(&b.ack(14));
    assert!(sent.iter().all(|n| *n > 14) && !sent.is_empty() && !b.endpoint.is_recovering(), "{sent:?}");
    assert_eq!(numbers(&b.fire())[..1], [14]);
    assert_eq!(b.now, ms(303 + 100 + 2), "10 took 8 ms");
}

/// After a timeout, all segments that are not SACKed count as lost.
///
/// Rules: 6675 5.1 filling in
#[test]
fn a_timeout_keeps_what_is_sacked_and_nothing_else() {
    let mut b = by_segments(4, &[]);
    b.endpoint.withdraw();
    b.ack_with(0, &[(2, 3)]);
    assert_eq!(numbers(&b.fire()), [0]);
    assert_eq!(numbers(&b.ack(1)), [1, 3], "2 has arrived");
}

/// Rules: 8985 7.2; 8985 7.3
#[test]
fn a_probe_leaves_after_two_round_trips() {
    for (endless, probe) in [(true, 4), (false, 3)] {
        let mut b = by_segments(4, &["tail_loss_probe"]);
        if !endless {
            b.endpoint.withdraw();
        }
        assert_eq!(numbers(&b.fire()), [probe], "new data, or the last segment again");
        assert_eq!(b.now, ms(300));
        assert_eq!(b.endpoint.counters().timeouts, 0);
        assert!(
            b.endpoint.deadline().is_some_and(|at| at - b.now >= Span::ms(300)),
            "the timeout, not a probe"
        );
        b.fire();
        assert_eq!(b.endpoint.counters().timeouts, 1);
    }
}

/// Nagle's rule delays the second small segment, unless it is sent as a probe.
///
/// Rules: 8985 7.3 new data
#[test]
fn a_probe_is_new_data_also_where_nagle_would_wait() {
    let nagle = [("nagle", Value::Flag(true)), ("nagle_rule", Value::Choice("minshall"))];
    let mut b = by_segments_with(10, &["tail_loss_probe"], &nagle);
    b.endpoint.withdraw();
    b.now = ms(200);
    b.ack(10);
    let mut write = |bytes| {
        b.endpoint.write(bytes);
        b.drain().iter().map(|segment| segment.len).collect::<Vec<u32>>()
    };
    assert_eq!((write(300), write(200)), (vec![300], vec![]));
    let probe: Vec<_> = b.fire().iter().map(|segment| (segment.seq, segment.len)).collect();
    assert_eq!((probe, b.endpoint.counters().timeouts), (vec![(1 + 10 * MSS + 300, 200)], 0));
}

/// TLP.max_ack_delay: the acknowledgment of a lone segment may be delayed.
///
/// Rules: 8985 7.2 delayed
#[test]
fn the_probe_of_a_lone_segment_waits_for_a_delayed_acknowledgment() {
    let mut b = by_segments(1, &["tail_loss_probe"]);
    assert_eq!(b.fire().len(), 1);
    assert_eq!(b.now, ms(100 + 2 * 100 + 200));
}

/// Linux has no separate value for TLP.max_ack_delay; it uses the minimum timeout, and sends a
/// probe no later than the retransmission timer would fire.
///
/// Rules: 8985 7.2 delayed
#[test]
fn the_probe_of_a_lone_segment_waits_as_long_as_linux_expects() {
    let arithmetic = ("rtt_arithmetic", Value::Choice("linux"));
    for (min_rto, waits) in [(30, 2 * 100 + 30), (1000, 100 + 1000)] {
        let least = ("min_rto", Value::Span(Span::ms(min_rto)));
        let mut b = by_segments_with(1, &["tail_loss_probe"], &[arithmetic.clone(), least]);
        assert_eq!(b.fire().len(), 1);
        assert_eq!(b.now, ms(100 + waits), "{min_rto} ms");
        assert_eq!(b.endpoint.counters().timeouts, 0);
    }
}
