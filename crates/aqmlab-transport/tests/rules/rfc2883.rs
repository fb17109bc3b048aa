//! Duplicate SACK (RFC 2883), and how its reports undo window reductions (RFC 3708).

use aqmlab_params::Value;

use crate::bench::{Bench, by_segments, ms, numbers, sack, segment};

/// Returns a receiver to which the first 100 bytes have been delivered.
fn receiver(dsack: bool) -> Bench {
    let given = [sack(), ("dsack", Value::Flag(dsack)), ("ack_every", Value::Integer(1))];
    let mut b = Bench::accepted(&given);
    b.arrive(segment(1, 1, 100));
    b
}

/// Returns the acknowledgment number and the SACK blocks of the ACK that a segment causes.
fn report(b: &mut Bench, seq: u32, len: u32) -> (u32, Vec<(u32, u32)>) {
    let ack = b.arrive(segment(seq, 1, len))[0];
    let blocks = if ack.sack_len > 0 {
        b.endpoint.options(&ack, &b.profile).sack.blocks().to_vec()
    } else {
        Vec::new()
    };
    (ack.ack, blocks)
}

/// Rules: 2883 4.1 duplicate; 2883 4 once
#[test]
fn a_segment_that_arrives_twice_is_the_first_block_of_one_acknowledgment() {
    let mut b = receiver(true);
    assert_eq!(report(&mut b, 1, 100), (101, vec![(1, 101)]));
    assert_eq!(report(&mut b, 101, 100), (201, vec![]));
    assert_eq!(report(&mut b, 151, 100), (251, vec![(151, 201)]), "the part that has arrived");
    let mut without = receiver(false);
    assert_eq!(report(&mut without, 1, 100), (101, vec![]));
}

/// Rules: 2883 4.1 hole; 2883 4.2 within
#[test]
fn blocks_of_what_waits_follow_it() {
    let mut b = receiver(true);
    assert_eq!(report(&mut b, 301, 100), (101, vec![(301, 401)]));
    assert_eq!(report(&mut b, 1, 100), (101, vec![(1, 101), (301, 401)]));
    assert_eq!(report(&mut b, 401, 100), (101, vec![(301, 501)]));
    assert_eq!(report(&mut b, 301, 100), (101, vec![(301, 401), (301, 501)]));
}

/// Returns a sender that has sent ten segments and has retransmitted the first after three reports
/// of later segments.
fn reduced(switches: &[&'static str], lost: u32) -> Bench {
    let mut b = by_segments(10, switches);
    b.now = ms(200);
    (1..=3).for_each(|n| drop(b.ack_with(0, &[(lost, lost + n)])));
    assert_eq!((b.endpoint.ssthresh(), b.endpoint.counters().retransmitted), (5.0, lost));
    b
}

/// Rules: 3708 3; 2883 4.1 duplicate
#[test]
fn a_reduction_is_undone_when_all_that_was_sent_again_is_reported() {
    for (switches, undone) in [(&["dsack", "dsack_undo"][..], true), (&["dsack"], false)] {
        let mut b = reduced(switches, 1);
        b.now = ms(210);
        b.ack(10);
        assert_eq!(b.endpoint.ssthresh(), 5.0);
        b.now = ms(300);
        b.ack_with(10, &[(0, 1)]);
        assert_eq!((b.endpoint.ssthresh().is_infinite(), b.endpoint.cwnd() >= 10.0), (undone, undone));
    }
}

/// Rules: 3708 3
#[test]
fn a_reduction_stands_while_one_of_them_is_not_reported() {
    let mut b = by_segments(10, &["dsack", "dsack_undo", "prr"]);
    b.now = ms(200);
    (1..=8).for_each(|n| drop(b.ack_with(0, &[(2, 2 + n)])));
    assert_eq!(b.endpoint.counters().retransmitted, 2);
    b.now = ms(300);
    b.ack_with(10, &[(0, 1)]);
    assert_eq!(b.endpoint.ssthresh(), 5.0);
    b.ack_with(10, &[(1, 2)]);
    assert!(b.endpoint.ssthresh().is_infinite());
}

/// Rules: 3522 3.2
#[test]
fn a_reduction_is_undone_when_the_first_copy_is_acknowledged() {
    // An acknowledgment without the echo of a retransmission echoes an original. Its time of arrival says nothing:
    // the first copy may be later than any round trip so far, and the second may be faster.
    for (switches, at, of_copy, undone) in [
        (&["timestamps", "eifel"][..], 210, false, true),
        (&["timestamps", "eifel"], 900, false, true),
        (&["timestamps", "eifel"], 210, true, false),
        (&["timestamps", "eifel"], 300, true, false),
        (&["timestamps"], 210, false, false),
    ] {
        let mut b = reduced(switches, 1);
        let again = b.now;
        b.now = ms(at);
        if of_copy {
            b.ack_of_copy(4, again);
        } else {
            b.ack(4);
        }
        assert_eq!(
            b.endpoint.ssthresh().is_infinite(),
            undone,
            "{switches:?} at {at} ms, of copy: {of_copy}"
        );
    }
}

/// The acknowledgment of the copy is lost, and the next one echoes new data that was sent after the copy. Its time
/// stamp is not older than the first retransmission, so the reduction stands.
///
/// Rules: 3522 3.2
#[test]
fn a_reduction_stands_when_data_sent_after_the_copy_is_acknowledged() {
    for undone in [true, false] {
        let mut b = by_segments(10, &["timestamps", "eifel", "prr"]);
        b.now = ms(200);
        let sent: Vec<u32> = (1..=9).flat_map(|n| numbers(&b.ack_with(0, &[(1, 1 + n)]))).collect();
        let before = sent.iter().position(|n| *n == 0).expect("the copy leaves");
        assert!(before > 0 && sent.len() > before + 1, "new data leaves before and after it: {sent:?}");
        b.now = ms(300);
        b.ack(1 + sent[if undone { before - 1 } else { before + 1 }]);
        assert_eq!(b.endpoint.ssthresh().is_infinite(), undone, "{sent:?}");
    }
}

/// After the first report, the allowance for reordering is two quarters of a round trip instead of
/// one quarter.
///
/// Rules: 8985 6.2 dsack
#[test]
fn a_report_widens_the_allowance_for_reordering() {
    for (dsack, due) in [(true, 250), (false, 225)] {
        let mut b = by_segments(10, if dsack { &["rack", "dsack"] } else { &["rack"] });
        b.now = ms(200);
        b.ack_with(1, &[(0, 1)]);
        assert!(!numbers(&b.ack_with(1, &[(2, 3)])).contains(&1));
        assert_eq!((numbers(&b.fire())[0], b.now), (1, ms(due)));
    }
}
