//! Loss recovery with SACK (RFC 6675).

use aqmlab_params::Value;
use aqmlab_transport::{Role, Segment, StreamEvent};
use aqmlab_units::Span;

use crate::bench::{Bench, MSS, ack_of, ecn, iw, ms, numbers, sack};

fn no_limited() -> (&'static str, Value) {
    ("limited_transmit", Value::Flag(false))
}

/// Returns the sender of an endless stream, after it has sent ten segments.
fn ten() -> Bench {
    Bench::established(&[iw(10), sack(), no_limited()])
}

/// Returns a sender that had ten segments to send and has sent them.
fn ten_in_all() -> Bench {
    let mut b = Bench::new(Role::Active, &[iw(10), sack(), no_limited()]);
    b.connect();
    b.endpoint.write(u64::from(10 * MSS));
    b.now = ms(100);
    assert_eq!(numbers(&b.arrive(b.syn_ack())).len(), 10);
    assert_eq!(b.endpoint.poll_event(), Some(StreamEvent::Established));
    b
}

/// An acknowledgment counts as a duplicate if and only if it reports arrivals that were not known before.
///
/// Rules: 6675 2 duplicate ack
#[test]
fn a_duplicate_is_an_acknowledgment_with_news() {
    let plain = ack_of(0);
    let table = [
        (plain, &[(1, 2)][..], 1),
        (plain, &[], 0),
        (Segment { window: 500_000, ..plain }, &[(1, 2)], 1),
        (Segment { len: 100, ..plain }, &[(1, 2)], 1),
        (ack_of(1), &[(2, 3)], 1),
        (ack_of(2), &[(1, 2)], 0),
        // Data that has not been sent cannot have arrived, and an empty block reports nothing.
        (plain, &[(9, 11)], 0),
        (plain, &[(3, 3)], 0),
    ];
    for (i, (segment, blocks, counted)) in table.into_iter().enumerate() {
        let mut b = ten();
        b.arrive_with(segment, blocks);
        assert_eq!(b.endpoint.counters().duplicate_acks, counted, "row {i}");
        b.arrive_with(segment, blocks);
        assert_eq!(b.endpoint.counters().duplicate_acks, counted, "reported before: row {i}");
    }
}

/// Rules: 6675 5 step 1; 6675 5 step 4.1; 6675 5 step 4.2; 6675 5 step 4.3
#[test]
fn the_third_duplicate_retransmits_and_halves() {
    // The blocks cover half segments, so that IsLost is not yet true at the third duplicate.
    let half = MSS / 2;
    let mut b = ten();
    for n in 1..=2 {
        assert_eq!(b.arrive_with_bytes(ack_of(0), &[(MSS, MSS + n * half)]), []);
    }
    let sent = b.arrive_with_bytes(ack_of(0), &[(MSS, MSS + 3 * half)]);
    assert_eq!(numbers(&sent), [0]);
    assert_eq!((b.endpoint.cwnd(), b.endpoint.ssthresh()), (5.0, 5.0), "half of ten, and no inflation");
    assert!(b.endpoint.is_recovering());
    // RecoveryPoint covers all data sent, so an acknowledgment of less data does not end recovery.
    b.ack(9);
    assert!(b.endpoint.is_recovering());
    b.ack(10);
    assert!(!b.endpoint.is_recovering());
    assert_eq!(b.endpoint.cwnd(), 5.0);
}

/// One acknowledgment may report as much as three do: IsLost(HighACK + 1) is true if DupThresh
/// discontiguous runs, or more than (DupThresh - 1) * SMSS bytes, above it are SACKed.
///
/// Rules: 6675 4 IsLost; 6675 5 step 2
#[test]
fn one_acknowledgment_that_proves_the_loss_is_enough() {
    let (m, end) = (MSS, 1000);
    let table = [
        (vec![(m, 3 * m)], false),
        (vec![(m, 3 * m + 1)], true),
        (vec![(m, m + end), (3 * m, 3 * m + end)], false),
        (vec![(m, m + 1), (3 * m, 3 * m + 1), (5 * m, 5 * m + 1)], true),
        (vec![(m, 2 * m), (3 * m, 4 * m)], false),
        (vec![(m, 2 * m), (3 * m, 4 * m + 1)], true),
    ];
    for (blocks, lost) in table {
        let mut b = ten();
        let sent = b.arrive_with_bytes(ack_of(0), &blocks);
        assert_eq!(numbers(&sent), if lost { vec![0] } else { vec![] }, "{blocks:?}");
    }
}

/// Limited transmit depends on pipe and cwnd: each segment that has arrived makes room for a new
/// one, even if one acknowledgment reports two arrivals. None of these new segments counts towards
/// FlightSize.
///
/// Rules: 6675 5 step 3; 3042 2
#[test]
fn limited_transmit_is_governed_by_the_pipe() {
    let mut b = Bench::established(&[iw(4), sack()]);
    assert_eq!(numbers(&b.ack_with(0, &[(1, 2)])), [4]);
    assert_eq!(numbers(&b.ack_with(0, &[(1, 3)])), [5]);
    assert_eq!(numbers(&b.ack_with(0, &[(1, 4)])), [0]);
    assert_eq!(b.endpoint.ssthresh(), 2.0, "half of four");
    let mut b = Bench::established(&[iw(4), sack()]);
    assert_eq!(numbers(&b.ack_with(0, &[(1, 3)])), [4, 5]);
    let mut b = Bench::established(&[iw(4), sack(), no_limited()]);
    assert_eq!(b.ack_with(0, &[(1, 3)]), []);
}

/// Ten segments are outstanding and the first is lost, so cwnd becomes five. At the third
/// duplicate, the pipe has 7 segments: 1 retransmitted and 6 in flight. Each further duplicate ACK
/// removes one segment from the pipe, and once the pipe is below five, each permits a new segment.
///
/// Rules: 6675 4 SetPipe; 6675 5 step B; 6675 5 step C
#[test]
fn the_pipe_decides_how_much_leaves() {
    let mut b = ten();
    let sent: Vec<Vec<u32>> = (2..=10).map(|to| numbers(&b.ack_with(0, &[(1, to)]))).collect();
    let nothing: Vec<u32> = vec![];
    assert_eq!(sent[..2], [nothing.clone(), nothing.clone()]);
    assert_eq!(sent[2], [0]);
    assert_eq!(sent[3..5], [nothing.clone(), nothing]);
    assert_eq!(sent[5..], [[10], [11], [12], [13]]);
    // A lost retransmission is not noticed; an acknowledgment of all but the new segments ends
    // recovery.
    assert_eq!(numbers(&b.ack_with(10, &[])), [14]);
    assert!(!b.endpoint.is_recovering());
}

/// Lost octets are not in the pipe until they are retransmitted: with three holes in ten segments,
/// five segments may be sent immediately.
///
/// Rules: 6675 4 SetPipe; 6675 4 NextSeg 1
#[test]
fn lost_segments_are_sent_again_in_order_before_anything_new() {
    let mut b = ten();
    // Segments 0, 2 and 4 are lost, and one acknowledgment reports all arrivals. The pipe is empty because
    // nothing is in flight, so five segments may leave.
    let sent = b.ack_with(0, &[(5, 10), (3, 4), (1, 2)]);
    assert_eq!(numbers(&sent), [0, 2, 4, 10, 11]);
    // Each hole is retransmitted once per recovery (HighRxt).
    assert_eq!(numbers(&b.ack_with(0, &[(10, 11), (5, 10), (3, 4)])), [12]);
    assert_eq!(numbers(&b.ack_with(2, &[(5, 11), (3, 4)])), [13]);
}

/// A hole may be narrower than a segment; the data beyond it has already arrived.
///
/// Rules: 6675 4 NextSeg 1
#[test]
fn a_retransmission_ends_where_the_hole_does() {
    let mut b = ten();
    let sent = b.arrive_with_bytes(ack_of(0), &[(1000, 4 * MSS), (4 * MSS + 200, 10 * MSS)]);
    let again: Vec<(u32, u32)> = sent.iter().map(|s| (s.seq - 1, s.len)).collect();
    assert_eq!(again[..2], [(0, 1000), (4 * MSS, 200)]);
}

/// Rules: 6675 4 NextSeg 2
#[test]
fn new_data_goes_before_holes_that_may_yet_be_reordering() {
    let mut b = ten();
    // Segment 0 is lost. Segment 8 has not arrived either, but IsLost does not count it as lost, because only
    // one segment above it, 9, has arrived.
    let sent = b.ack_with(0, &[(9, 10), (1, 8)]);
    assert_eq!(numbers(&sent), [0, 10, 11, 12]);
}

/// Rules: 6675 4 NextSeg 3
#[test]
fn without_new_data_such_a_hole_is_sent_again() {
    let mut b = ten_in_all();
    assert_eq!(numbers(&b.ack_with(0, &[(9, 10), (1, 8)])), [0, 8]);
}

/// One segment that ends with the highest outstanding octet is sent, once per recovery, and only
/// after more than the first retransmission has been acknowledged.
///
/// Rules: 6675 4 NextSeg 4
#[test]
fn one_rescue_retransmission_at_the_end_of_what_is_outstanding() {
    let mut b = ten_in_all();
    // Segments 0, 8 and 9 are lost; no arrival reveals the loss of the last two.
    assert_eq!(numbers(&b.ack_with(0, &[(1, 8)])), [0], "HighACK is not greater than RescueRxt");
    assert_eq!(numbers(&b.ack(8)), [9]);
    assert!(b.endpoint.is_recovering());
    assert_eq!(b.ack_with(8, &[]), [], "once");
    // The acknowledgment of the rescue retransmission reveals the hole before it, to which rule 3
    // applies because HighRxt has not moved.
    assert_eq!(numbers(&b.ack_with(8, &[(9, 10)])), [8]);
    b.ack(10);
    assert!(!b.endpoint.is_recovering());
}

/// "Any information contained in the scoreboard for sequence numbers greater than the new value of HighACK SHOULD NOT
/// be cleared when leaving the loss recovery phase."
///
/// Rules: 6675 5 step A
#[test]
fn what_is_known_beyond_the_recovery_point_outlasts_recovery() {
    let mut b = ten();
    assert_eq!(numbers(&b.ack_with(0, &[(1, 10)])), [0, 10, 11, 12, 13]);
    // Segment 10 is also lost; 11 and 12 arrive before the retransmission of 0 does.
    b.ack_with(0, &[(11, 13), (1, 10)]);
    b.ack_with(10, &[(11, 13)]);
    assert!(!b.endpoint.is_recovering());
    // One more arrival proves the loss of segment 10, which leads to a new recovery and a new reduction.
    assert_eq!(numbers(&b.ack_with(10, &[(11, 14)]))[0], 10);
    assert!(b.endpoint.is_recovering());
    assert_eq!(b.endpoint.counters().fast_retransmits, 2);
}

/// Rules: 6675 5.1 no new phase; 6675 5.1 filling in
#[test]
fn after_a_timeout_holes_are_filled_and_no_recovery_begins() {
    let mut b = ten();
    assert_eq!(numbers(&b.ack_with(0, &[(1, 4)])), [0]);
    assert_eq!(numbers(&b.fire()), [0]);
    assert!(!b.endpoint.is_recovering());
    // Segments that have arrived are reported again and are skipped; 4 and 7 are also lost.
    assert_eq!(numbers(&b.ack_with(4, &[(8, 10), (5, 7)])), [4, 7], "slow start: two segments");
    assert!(!b.endpoint.is_recovering(), "whatever IsLost says, before RecoveryPoint is acknowledged");
    // Once RecoveryPoint has been acknowledged, the loss of segment 10 begins another recovery
    // phase.
    assert_eq!(numbers(&b.ack(10)), [10, 11, 12]);
    assert_eq!(b.ack_with(10, &[(11, 12)]), []);
    assert_eq!(b.endpoint.counters().fast_retransmits, 1);
    let runs = [(12 * MSS + 9, 12 * MSS + 10), (12 * MSS + 5, 12 * MSS + 6)];
    assert_eq!(numbers(&b.arrive_with_bytes(ack_of(10), &runs)), [10]);
    assert_eq!(b.endpoint.counters().fast_retransmits, 2);
}

/// "The standard: the timer is re-armed each time an ACK arrives that advances the cumulative ACK point."
///
/// Rules: 6675 6
#[test]
fn each_advance_in_recovery_restarts_the_timer() {
    let mut b = ten();
    b.ack_with(0, &[(1, 4), (5, 6), (7, 10)]);
    for n in [4, 6] {
        b.now += Span::ms(100);
        b.ack_with(n, &[(7, 10)]);
        assert_eq!(b.endpoint.deadline(), Some(b.now + b.endpoint.rto(&b.profile)));
    }
}

/// Rules: 3168 6.1.2 once per window; 6675 5 step 4.2
#[test]
fn a_loss_in_a_window_that_a_mark_has_halved_is_recovered_without_another_halving() {
    let mut b = Bench::established(&[ecn()[0].clone(), ecn()[1].clone(), sack()]);
    b.arrive(crate::bench::echo(1));
    assert_eq!(b.endpoint.cwnd(), 8.0);
    assert_eq!(numbers(&b.ack_with(1, &[(2, 6)]))[0], 1);
    assert_eq!((b.endpoint.cwnd(), b.endpoint.ssthresh()), (8.0, 8.0));
}

/// A retransmitted segment gives no RTT sample (Karn's algorithm), regardless of its position.
///
/// Rules: 6298 3 karn
#[test]
fn a_segment_lost_and_sent_again_within_recovery_is_no_sample() {
    let mut b = ten();
    let srtt = b.endpoint.srtt();
    // Segment 10 is sent in recovery and timed, then lost and sent again.
    assert_eq!(numbers(&b.ack_with(0, &[(1, 10)])), [0, 10, 11, 12, 13]);
    b.now += Span::ms(300);
    assert_eq!(numbers(&b.ack_with(0, &[(11, 14), (1, 10)]))[0], 10);
    b.now += Span::ms(300);
    b.ack(14);
    assert_eq!(b.endpoint.srtt(), srtt);
}
