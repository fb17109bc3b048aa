//! Proportional rate reduction (RFC 9937).

use aqmlab_params::Value;

use crate::bench::{Bench, ack_of, by_segments, echo, iw, ms, numbers, sack};

/// 20 segments are in flight and 10 should remain, so one is sent for every second arrival.
///
/// Rules: 9937 6 proportional; 9937 6 first; 9937 6 end
#[test]
fn the_window_comes_down_as_data_arrives() {
    let mut b = by_segments(20, &["prr"]);
    b.now = ms(200);
    assert_eq!(
        (numbers(&b.ack_with(0, &[(1, 2)])), numbers(&b.ack_with(0, &[(1, 3)]))),
        (vec![20], vec![21])
    );
    let sent: Vec<Vec<u32>> = (4..12).map(|n| numbers(&b.ack_with(0, &[(1, n)]))).collect();
    let expected: [&[u32]; 8] = [&[0], &[], &[22], &[], &[23], &[], &[24], &[]];
    assert_eq!(sent, expected);
    assert_eq!((b.endpoint.ssthresh(), b.endpoint.is_recovering()), (10.0, true));
    b.ack(22);
    assert_eq!((b.endpoint.cwnd().floor(), b.endpoint.is_recovering()), (10.0, false));
}

/// Fewer than 10 segments are in flight, so one is sent for each arrival, and one more if the
/// cumulative acknowledgment advances.
///
/// Rules: 9937 6 conservative; 9937 6 safe
#[test]
fn below_the_threshold_one_leaves_for_each_that_arrives_and_two_when_it_is_safe() {
    let mut b = by_segments(20, &["prr"]);
    b.now = ms(200);
    b.ack_with(0, &[(15, 16)]);
    b.ack_with(0, &[(15, 17)]);
    assert_eq!(numbers(&b.ack_with(0, &[(15, 18)])), [0]);
    assert_eq!(numbers(&b.ack_with(0, &[(15, 19)])), [1]);
    assert_eq!(numbers(&b.ack_with(1, &[(15, 19)])), [2, 3]);
}

/// Returns a sender without SACK that counts duplicate ACKs and has 20 segments in flight.
fn by_duplicates(prr: bool) -> Bench {
    let switches = [("count_duplicates", Value::Flag(true)), ("prr", Value::Flag(prr))];
    let mut b =
        Bench::established(&[&[iw(20), ("sack_pipe", Value::Choice("segments"))], &switches[..]].concat());
    b.now = ms(200);
    b
}

/// A segment leaves for every second duplicate ACK, as with SACK. A partial ACK reports the arrival of at
/// least one segment, and the loss of the next missing one.
///
/// Rules: 9937 6 without sack; 6582 3.2 partial ack
#[test]
fn without_sack_each_duplicate_ack_counts_as_a_segment_that_has_arrived() {
    let mut b = by_duplicates(true);
    let sent: Vec<Vec<u32>> = (0..10).map(|_| numbers(&b.ack(0))).collect();
    let expected: [&[u32]; 10] = [&[20], &[21], &[0], &[], &[22], &[], &[23], &[], &[24], &[]];
    assert_eq!(sent, expected);
    assert_eq!((b.endpoint.ssthresh(), b.endpoint.is_recovering()), (10.0, true));
    assert_eq!(numbers(&b.ack(5)), [5], "nine have arrived since the third duplicate, and four have left");
    b.ack(22);
    assert!(
        b.endpoint.is_recovering(),
        "duplicate ACKs of this number may be caused by needless retransmissions"
    );
    b.ack(23);
    assert_eq!((b.endpoint.cwnd().floor(), b.endpoint.is_recovering()), (10.0, false));
}

/// Rules: 9937 6 without sack
#[test]
fn without_sack_and_without_reduction_the_same_segments_are_counted() {
    let mut b = by_duplicates(false);
    let sent: Vec<u32> = (0..12).map(|_| b.ack(0)).flat_map(|sent| numbers(&sent)).collect();
    assert_eq!((sent, b.endpoint.cwnd()), (vec![20, 21, 0], 10.0));
    assert_eq!(numbers(&b.ack(0)), [22], "9 of 22 and the copy are in flight");
}

/// After a timeout, everything counts as lost, and duplicate ACKs of retransmissions do not count.
///
/// Rules: 9937 6 without sack
#[test]
fn without_sack_a_timeout_forgets_the_duplicates() {
    let mut b = by_duplicates(true);
    b.ack(0);
    b.ack(0);
    assert_eq!(numbers(&b.fire()), [0]);
    for _ in 0..5 {
        assert_eq!(b.ack(0), [], "one in flight fills the window");
    }
    assert_eq!(numbers(&b.ack(1)), [1, 2]);
}

/// Without PRR, the window has its final size from the start of recovery, and nothing leaves until
/// enough data has arrived.
///
/// Rules: 6675 5 step 4.2; 6675 5 step 4.3
#[test]
fn without_it_half_a_window_passes_in_silence() {
    let mut b = by_segments(20, &[]);
    b.now = ms(200);
    let sent: Vec<u32> = (2..14).map(|n| b.ack_with(0, &[(1, n)])).flat_map(|sent| numbers(&sent)).collect();
    assert_eq!((sent, b.endpoint.cwnd()), (vec![20, 21, 0], 10.0));
    assert_eq!(numbers(&b.ack_with(0, &[(1, 14)])), [22], "9 of 22 and the copy are in flight");
}

/// At a mark, no data is lost, but the window decreases as it does after a loss, until data sent
/// after the mark is acknowledged.
///
/// Rules: 3168 6.1.2 once per window
#[test]
fn a_mark_is_a_reduction_too() {
    let given = [sack(), iw(20), ("sack_pipe", Value::Choice("segments")), ("prr", Value::Flag(true))];
    let mut b = Bench::established(&[&given[..], &[("ecn", Value::Flag(true))]].concat());
    b.now = ms(200);
    let sent: Vec<usize> = (1..=20).map(|n| b.arrive(echo(n)).len()).collect();
    assert_eq!(sent.iter().sum::<usize>(), 10);
    assert!(sent.chunks(2).all(|two| two.iter().sum::<usize>() == 1), "one for every second: {sent:?}");
    assert_eq!(b.endpoint.ssthresh(), 10.0);
    b.arrive(ack_of(21));
    assert_eq!((b.endpoint.cwnd().floor(), b.endpoint.counters().ecn_reductions), (10.0, 1));
}
