//! Selective acknowledgment options (RFC 2018).

use aqmlab_params::Value;
use aqmlab_transport::{Extras, Flags, Recovery, Role, Segment};

use crate::bench::{Bench, MSS, ack_of, by_segments, iw, ms, numbers, sack, segment};

/// Returns a receiver after its handshake with a peer that permits SACK.
fn receiver(most: u64) -> Bench {
    let blocks = ("sack_blocks", Value::Integer(most));
    Bench::accepted(&[sack(), blocks, ("ack_every", Value::Integer(1))])
}

/// Rules: 2018 2 both sides; 2018 2 on SYN only
#[test]
fn blocks_flow_only_if_both_sides_have_permitted_them() {
    for (ours, theirs) in [(true, true), (true, false), (false, true), (false, false)] {
        let recovery = if ours { "sack" } else { "newreno" };
        let given = [iw(10), ("recovery", Value::Choice(recovery))];
        let mut b = Bench::new(Role::Active, &given);
        let syn = b.connect();
        assert_eq!(syn.extras.has(Extras::SACK_PERMITTED), ours);
        let extras = Extras::NONE.with_if(Extras::SACK_PERMITTED, theirs);
        b.arrive(Segment { flags: Flags::SYN | Flags::ACK, extras, ..segment(0, 1, 0) });
        assert_eq!(b.endpoint.uses_sack(), ours && theirs);
        let beyond = b.arrive(segment(101, 1, 100));
        assert_eq!(beyond[0].sack_len > 0, ours && theirs);
        assert!(!beyond[0].extras.has(Extras::SACK_PERMITTED));
        // The other side answers with the option only if the SYN had it.
        let mut other = Bench::new(Role::Passive, &given);
        let syn = Segment { flags: Flags::SYN, extras, ..segment(0, 0, 0) };
        assert_eq!(other.arrive(syn)[0].extras.has(Extras::SACK_PERMITTED), ours && theirs);
    }
    assert_eq!(Recovery::WORDS, ["reno", "newreno", "sack", "tahoe"]);
}

/// If the other side does not permit SACK, losses are repaired as with NewReno.
///
/// Rules: 2018 2 both sides
#[test]
fn a_sender_that_is_told_nothing_recovers_by_duplicates() {
    let mut b = Bench::new(Role::Active, &[sack(), iw(10), ("limited_transmit", Value::Flag(false))]);
    b.connect();
    b.endpoint.write(u64::from(20 * MSS));
    b.arrive(Segment { flags: Flags::SYN | Flags::ACK, ..segment(0, 1, 0) });
    assert!((0..2).all(|_| b.ack(0).is_empty()));
    assert_eq!(numbers(&b.ack(0)), [0]);
    assert_eq!(numbers(&b.ack(4)), [4], "the next hole at a partial acknowledgment");
}

/// Rules: 2018 3 length; 2018 3 four blocks
#[test]
fn an_option_has_eight_bytes_a_block_and_four_blocks_at_most() {
    let mut b = receiver(4);
    for n in 1..=6 {
        let ack = b.arrive(segment(1 + 200 * n, 1, 100))[0];
        let blocks = n.min(4) as usize;
        assert_eq!(b.endpoint.options(&ack, &b.profile).sack.blocks().len(), blocks);
        // Two bytes for kind and length, and two to fill whole words.
        assert_eq!(usize::from(ack.sack_len), 8 * blocks + 4);
        assert_eq!(ack.wire_len(40).get(), 44 + 8 * blocks as u64);
    }
}

/// The examples of section 7: segments of 500 bytes start at 5000, and some are dropped.
///
/// Rules: 2018 4 first block; 2018 4 repeats; 2018 7
#[test]
fn the_examples_of_section_7() {
    // (segment that arrives, acknowledgment, blocks)
    type Step = (u32, u32, &'static [(u32, u32)]);
    let case_1: [Step; 4] = [(5000, 5500, &[]), (5500, 6000, &[]), (6000, 6500, &[]), (6500, 7000, &[])];
    let case_2: [Step; 7] = [
        (5500, 5000, &[(5500, 6000)]),
        (6000, 5000, &[(5500, 6500)]),
        (6500, 5000, &[(5500, 7000)]),
        (7000, 5000, &[(5500, 7500)]),
        (7500, 5000, &[(5500, 8000)]),
        (8000, 5000, &[(5500, 8500)]),
        (8500, 5000, &[(5500, 9000)]),
    ];
    let case_3: [Step; 6] = [
        (5000, 5500, &[]),
        (6000, 5500, &[(6000, 6500)]),
        (7000, 5500, &[(7000, 7500), (6000, 6500)]),
        (8000, 5500, &[(8000, 8500), (7000, 7500), (6000, 6500)]),
        // "Suppose at this point, the 4th packet is received out of order." Then the 2nd.
        (6500, 5500, &[(6000, 7500), (8000, 8500)]),
        (5500, 7500, &[(8000, 8500)]),
    ];
    for steps in [&case_1[..], &case_2, &case_3] {
        let mut b = receiver(4);
        (0..4999 / 100 + 1).for_each(|i| drop(b.arrive(segment(1 + i * 100, 1, (4999 - i * 100).min(100)))));
        for (seq, ack, blocks) in steps {
            let sent = b.arrive(segment(*seq, 1, 500));
            assert_eq!(sent[0].ack, *ack);
            assert_eq!(b.endpoint.options(&sent[0], &b.profile).sack.blocks(), *blocks, "after {seq}");
            assert_eq!(sent[0].sack_len > 0, !blocks.is_empty());
        }
    }
}

/// "If sent at all, SACK options SHOULD be included in all ACKs which do not ACK the highest sequence number in the
/// data receiver's queue": data in the other direction carries them too.
///
/// Rules: 2018 4 every ack
#[test]
fn data_the_other_way_carries_the_blocks_too() {
    let mut b = receiver(3);
    b.arrive(segment(101, 1, 100));
    b.endpoint.write(100);
    let sent = b.drain();
    assert_eq!((sent[0].len, sent[0].sack_len), (100, 12));
    b.arrive(segment(1, 1, 100));
    b.endpoint.write(100);
    assert_eq!(b.drain()[0].sack_len, 0, "nothing is missing any more");
}

/// Rules: 2018 5 not again
#[test]
fn what_has_arrived_is_not_sent_again() {
    let mut b = Bench::established(&[iw(10), sack()]);
    // 0, 4 and 6 are missing.
    let mut sent = Vec::new();
    sent.extend(b.ack_with(0, &[(1, 4)]));
    sent.extend(b.ack_with(0, &[(1, 4), (5, 6)]));
    for n in 7..10 {
        sent.extend(b.ack_with(0, &[(7, n + 1), (1, 4), (5, 6)]));
    }
    let again: Vec<u32> = numbers(&sent).into_iter().filter(|n| *n < 10).collect();
    assert_eq!(again, [0, 4, 6]);
}

/// "After a retransmit timeout the data sender SHOULD turn off all of the SACKed bits", because the receiver
/// may have reneged.
///
/// Rules: 2018 5 timeout
#[test]
fn a_timeout_forgets_what_was_told() {
    let mut b = Bench::established(&[iw(4), sack(), ("limited_transmit", Value::Flag(false))]);
    b.ack_with(0, &[(2, 3)]);
    assert_eq!(numbers(&b.fire()), [0]);
    // A new acknowledgment without blocks: segment 2 is sent again, although it had been SACKed.
    assert_eq!(numbers(&b.ack(1)), [1, 2]);
    assert_eq!(b.arrive(ack_of(1)), []);
}

/// A FIN that was SACKed on its own is sent again with the last data: two blocks cover that segment.
///
/// Rules: 2018 5 not again
#[test]
fn a_segment_has_arrived_when_blocks_cover_it_together() {
    let mut b = by_segments(7, &["rack", "prr"]);
    b.endpoint.withdraw();
    b.now = ms(200);
    b.ack(1);
    b.endpoint.close();
    assert!(b.drain()[0].flags.has(Flags::FIN));
    b.now = ms(300);
    let fin = (7 * MSS, 7 * MSS + 1);
    let sent = b.arrive_with_bytes(ack_of(1), &[fin, (5 * MSS, 6 * MSS), (2 * MSS, 4 * MSS)]);
    assert_eq!(numbers(&sent), [1, 4, 6]);
    assert!(sent[2].flags.has(Flags::FIN));
    b.now = ms(400);
    let sent = b.arrive_with_bytes(ack_of(1), &[(5 * MSS, fin.1), (2 * MSS, 4 * MSS)]);
    assert_eq!(numbers(&sent), [1, 4], "6 left after them");
}
