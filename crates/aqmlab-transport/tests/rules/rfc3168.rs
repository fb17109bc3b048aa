//! Explicit congestion notification (RFC 3168).

use aqmlab_params::Value;
use aqmlab_transport::{Flags, Role, Segment};

use crate::bench::{Bench, MSS, echo, ecn, iw, ms, numbers, segment};

/// Rules: 3168 6.1.2 once per window; 3168 6.1.2 CWR
#[test]
fn one_halving_per_window_no_retransmission_and_cwr_once() {
    let mut b = Bench::established(&ecn());
    assert!(b.endpoint.uses_ecn());
    let mut sent = b.arrive(echo(1));
    assert_eq!(b.endpoint.cwnd(), 8.0);
    // A second mark in the same window, echoed until CWR arrives.
    for n in 2..=16 {
        sent.extend(b.arrive(echo(n)));
    }
    assert_eq!(b.endpoint.cwnd(), 8.0, "still one halving");
    assert_eq!(numbers(&sent), (16..24).collect::<Vec<_>>(), "the next flight is eight, nothing again");
    let cwr: Vec<u32> = sent.iter().filter(|s| s.flags.has(Flags::CWR)).map(|s| (s.seq - 1) / MSS).collect();
    assert_eq!(cwr, [16], "on the first new segment only");
    assert_eq!(b.endpoint.counters().ecn_reductions, 1);
    // The next window may be reduced again.
    b.arrive(echo(17));
    assert_eq!((b.endpoint.cwnd(), b.endpoint.counters().ecn_reductions), (4.0, 2));
}

/// Rules: 3168 6.1.2 once per window
#[test]
fn loss_and_mark_in_one_window_are_one_reduction() {
    let mut b = Bench::established(&ecn());
    b.arrive(echo(1));
    for _ in 0..3 {
        b.arrive(echo(1));
    }
    assert!(b.endpoint.is_recovering(), "what is missing is retransmitted");
    assert_eq!((b.endpoint.ssthresh(), b.endpoint.cwnd()), (8.0, 8.0));
    let mut b = Bench::established(&ecn());
    for _ in 0..3 {
        b.ack(0);
    }
    assert_eq!(b.endpoint.ssthresh(), 8.0);
    b.arrive(echo(4));
    b.arrive(echo(16));
    assert_eq!((b.endpoint.ssthresh(), b.endpoint.counters().ecn_reductions), (8.0, 0));
}

/// Rules: 3168 6.1.2 once per window
#[test]
fn a_timeout_in_the_marked_window_holds_ssthresh_and_a_later_one_does_not() {
    let mut b = Bench::established(&ecn());
    b.arrive(echo(1));
    b.fire();
    assert_eq!(b.endpoint.ssthresh(), 8.0, "the mark has halved it already");
    let mut b = Bench::established(&ecn());
    b.arrive(echo(1));
    (2..=18).for_each(|n| drop(b.ack(n)));
    let flight = b.endpoint.flight().get() / u64::from(MSS);
    b.fire();
    assert_eq!(b.endpoint.ssthresh(), flight as f64 / 2.0, "a new window, a new reduction");
}

/// Rules: 3168 6.1.2 window of one
#[test]
fn at_one_segment_the_sender_waits_for_its_timer() {
    let mut b = Bench::established(&[iw(1), ecn()[1].clone()]);
    b.now = ms(200);
    assert_eq!(b.arrive(echo(1)), [], "nothing leaves");
    assert_eq!(b.endpoint.deadline(), Some(ms(200) + b.endpoint.rto(&b.profile)));
    let sent = b.fire();
    assert_eq!(numbers(&sent), [1], "one new segment");
    assert!(sent[0].flags.has(Flags::CWR));
    assert_eq!((b.endpoint.counters().timeouts, b.endpoint.counters().ecn_waits), (0, 1));
}

/// Rules: 3168 6.1.1 SYN not ECT; 3168 6.1.4; 3168 6.1.5 retransmission
#[test]
fn what_is_ecn_capable() {
    let mut b = Bench::new(Role::Active, &ecn());
    b.endpoint.open(b.now, &b.profile);
    let syn = b.drain()[0];
    assert!(syn.flags.has(Flags::SYN | Flags::ECE | Flags::CWR) && !syn.ect);
    let mut b = Bench::established(&ecn());
    assert!(b.ack(1).iter().all(|s| s.ect), "new data");
    let again = b.fire();
    assert!(numbers(&again) == [1] && !again[0].ect, "not a retransmission");
    let pure = b.arrive(segment(500, 1, 100));
    assert!(!pure[0].ect, "not a pure acknowledgment");
}

/// Rules: 3168 6.1.3 echo; 3168 6.1.1 setup
#[test]
fn the_echo_lasts_until_cwr() {
    let mut b = Bench::new(Role::Passive, &[("ecn", Value::Flag(true)), ("ack_every", Value::Integer(1))]);
    let syn = Segment { flags: Flags::SYN | Flags::ECE | Flags::CWR, ack: 0, ..segment(0, 0, 0) };
    let syn_ack = b.arrive(syn)[0];
    assert!(syn_ack.flags.has(Flags::SYN | Flags::ACK | Flags::ECE) && !syn_ack.flags.has(Flags::CWR));
    let mut at = 1;
    // (CE, CWR) arriving, and whether the acknowledgment echoes.
    let table = [
        (false, false, false),
        (true, false, true),
        (false, false, true),
        (false, true, false),
        (true, true, true),
        (false, true, false),
    ];
    for (i, (ce, cwr, echoes)) in table.into_iter().enumerate() {
        let data = Segment { flags: Flags::ACK.with_if(Flags::CWR, cwr), ect: true, ..segment(at, 1, 100) };
        let ack = b.arrive_marked(data, ce)[0];
        assert_eq!(ack.flags.has(Flags::ECE), echoes, "segment {i}");
        at += 100;
    }
}

/// Rules: 3168 6.1.1 refusal
#[test]
fn a_side_that_does_not_want_ecn_gets_none() {
    let mut b = Bench::new(Role::Passive, &[]);
    let syn = Segment { flags: Flags::SYN | Flags::ECE | Flags::CWR, ack: 0, ..segment(0, 0, 0) };
    assert_eq!(b.arrive(syn)[0].flags, Flags::SYN | Flags::ACK);
    assert!(!b.endpoint.uses_ecn());
}
