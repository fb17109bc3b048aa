//! The counters after chosen losses, lost acknowledgments and marks.

mod support;

use aqmlab_params::{Origin, Value};
use aqmlab_transport::{Counters, Profile, profile_settings};
use aqmlab_units::{Instant, Span};
use support::{A, B, Pair, Path, drop_list, mark_list, ms};

/// Transfers 40 segments over a path with a round trip of 100 ms, ten of them in the first flight,
/// and returns the counters of both sides. Packets of each direction are numbered from 0: from the
/// sender, 0 is the SYN, 1 is the ACK of the handshake, and `n + 2` is data segment n; from the
/// receiver, 0 is the SYN-ACK, and `n + 1` is ACK n.
fn transfer(lost: &'static [u64], lost_acks: &'static [u64], marked: &'static [u64]) -> [Counters; 2] {
    let mut settings = profile_settings("rfc").expect("built in");
    for (name, value) in [
        ("initial_window", Value::Integer(10)),
        ("ack_every", Value::Integer(1)),
        ("limited_transmit", Value::Flag(false)),
        ("ecn", Value::Flag(true)),
    ] {
        settings.set(name, value, Origin::Given);
    }
    let profile = Profile::resolve(&mut settings).expect("consistent");
    let bytes = 40 * u64::from(profile.mss);
    let there = if marked.is_empty() { drop_list(lost) } else { mark_list(marked) };
    let paths = [there, drop_list(lost_acks)].map(|faults| Path::plain(Span::ms(50), faults));
    let mut net = Pair::new(profile, paths);
    net.open(Instant::ZERO);
    net.with(A, |e, _, _| e.write(bytes));
    net.run_until(ms(60_000));
    assert_eq!(net.sides[B].delivered(), bytes);
    [A, B].map(|side| net.sides[side].endpoint.counters())
}

#[test]
fn losses_are_told_apart_by_window() {
    // Each row has the lost packets, and then the numbers of fast retransmits, timeouts,
    // retransmissions, spurious retransmissions, and windows with several lost segments.
    let table: [(&str, &'static [u64], [u32; 5]); 7] = [
        ("nothing", &[], [0, 0, 0, 0, 0]),
        ("one segment", &[2], [1, 0, 1, 0, 0]),
        ("two of a window", &[2, 5], [1, 0, 2, 0, 1]),
        ("three of a window", &[2, 4, 6], [1, 0, 3, 0, 1]),
        ("one in each of two windows", &[2, 30], [2, 0, 2, 0, 0]),
        // Packet 41 is the last one, so no duplicate ACK reveals its loss.
        ("the last segment", &[41], [0, 1, 1, 0, 0]),
        ("the last but one and the last", &[40, 41], [0, 1, 2, 0, 1]),
    ];
    for (what, lost, expected) in table {
        let [sender, receiver] = transfer(lost, &[], &[]);
        let found = [
            sender.fast_retransmits,
            sender.timeouts,
            sender.retransmitted,
            receiver.duplicates_received,
            sender.multiple_loss_windows,
        ];
        assert_eq!(found, expected, "{what}");
    }
}

#[test]
fn a_retransmission_that_was_not_needed_is_seen_by_the_receiver() {
    // The ACKs of the first flight are lost, so the first segment is sent again when the timer
    // fires.
    let [sender, receiver] = transfer(&[], &[1, 2, 3, 4, 5, 6, 7, 8, 9, 10], &[]);
    assert_eq!((sender.timeouts, sender.retransmitted, sender.multiple_loss_windows), (1, 1, 0));
    assert_eq!(receiver.duplicates_received, 1);
}

#[test]
fn marks_are_counted_where_they_arrive_and_where_they_are_heard() {
    // Two segments of the first flight and one of a later flight are marked.
    let [sender, receiver] = transfer(&[], &[], &[2, 5, 30]);
    assert_eq!((receiver.ce_received, sender.ecn_reductions), (3, 2));
    assert_eq!((sender.retransmitted, sender.fast_retransmits), (0, 0));
}
