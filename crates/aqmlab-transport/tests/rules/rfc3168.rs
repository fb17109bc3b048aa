//! Explicit congestion notification (RFC 3168).

use aqmlab_params::Value;
use aqmlab_transport::{ENDLESS, Flags, Role, Segment, StreamEvent};
use aqmlab_units::Ecn;

use crate::bench::{Bench, MSS, echo, ecn, iw, ms, numbers, segment};

/// Rules: 3168 6.1.2 once per window; 3168 6.1.2 CWR
#[test]
fn one_halving_per_window_no_retransmission_and_cwr_once() {
    let mut b = Bench::established(&ecn());
    assert!(b.endpoint.uses_ecn());
    let mut sent = b.arrive(echo(1));
    assert_eq!(b.endpoint.cwnd(), 8.0);
    // A second mark falls into the same window; its echo lasts until CWR arrives.
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
    assert!(b.endpoint.is_recovering(), "missing segments are retransmitted");
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
    assert!(syn.flags.has(Flags::SYN | Flags::ECE | Flags::CWR) && !syn.ecn.is_capable());
    let mut b = Bench::established(&ecn());
    assert!(b.ack(1).iter().all(|s| s.ecn.is_capable()), "new data");
    let again = b.fire();
    assert!(numbers(&again) == [1] && !again[0].ecn.is_capable(), "not a retransmission");
    let pure = b.arrive(segment(500, 1, 100));
    assert!(!pure[0].ecn.is_capable(), "not a pure acknowledgment");
}

/// Rules: 3168 6.1.3 echo; 3168 6.1.1 setup
#[test]
fn the_echo_lasts_until_cwr() {
    let mut b = Bench::new(Role::Passive, &[("ecn", Value::Flag(true)), ("ack_every", Value::Integer(1))]);
    let syn = Segment { flags: Flags::SYN | Flags::ECE | Flags::CWR, ack: 0, ..segment(0, 0, 0) };
    let syn_ack = b.arrive(syn)[0];
    assert!(syn_ack.flags.has(Flags::SYN | Flags::ACK | Flags::ECE) && !syn_ack.flags.has(Flags::CWR));
    let mut at = 1;
    // (CE, CWR) of the arriving segment, and whether the acknowledgment has the echo.
    let table = [
        (false, false, false),
        (true, false, true),
        (false, false, true),
        (false, true, false),
        (true, true, true),
        (false, true, false),
    ];
    for (i, (ce, cwr, echoes)) in table.into_iter().enumerate() {
        let data =
            Segment { flags: Flags::ACK.with_if(Flags::CWR, cwr), ecn: Ecn::Ect0, ..segment(at, 1, 100) };
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

fn fallback(word: &'static str) -> [(&'static str, Value); 3] {
    [iw(4), ("ecn", Value::Flag(true)), ("ecn_fallback", Value::Choice(word))]
}

const SETUP: Flags = Flags::from_bits(0xc2); // SYN, ECE, CWR

/// Rules: 3168 6.1.1 setup; 3168 6.1.1 refusal
#[test]
fn the_active_side_agrees_to_one_answer_only() {
    let answers = [
        (Flags::NONE, false),
        (Flags::ECE, true),
        (Flags::CWR, false),
        (Flags::ECE | Flags::CWR, false), // reflects the SYN's flags
    ];
    for wants in [false, true] {
        for (answer, agrees) in answers {
            let mut b = Bench::new(Role::Active, &[iw(4), ("ecn", Value::Flag(wants))]);
            assert_eq!(b.connect().flags, if wants { SETUP } else { Flags::SYN });
            b.endpoint.write(ENDLESS);
            let data = b.arrive(Segment { flags: Flags::SYN | Flags::ACK | answer, ..segment(0, 1, 0) });
            assert_eq!(b.endpoint.uses_ecn(), wants && agrees, "{wants} {answer:?}");
            assert!(data[1..].iter().all(|s| s.ecn.is_capable() == (wants && agrees)));
            b.arrive(echo(1));
            assert_eq!(
                b.endpoint.counters().ecn_reductions,
                u32::from(wants && agrees),
                "whether or not it arrived"
            );
        }
    }
}

/// Rules: 3168 6.1.1 setup
#[test]
fn the_ece_of_a_syn_ack_answers_the_syn_and_is_no_echo_when_both_sides_open() {
    let mut b = Bench::new(Role::Active, &ecn());
    b.endpoint.write(ENDLESS);
    let syn = b.connect();
    let answer = b.arrive(Segment { flags: syn.flags, ack: 0, ..segment(0, 0, 0) });
    assert_eq!(answer[0].flags, Flags::SYN | Flags::ACK | Flags::ECE);
    let data = b.arrive(Segment { flags: answer[0].flags, ..segment(0, 1, 0) });
    assert!(b.endpoint.uses_ecn() && data.iter().all(|s| !s.flags.has(Flags::CWR)));
    assert_eq!((b.endpoint.counters().ecn_reductions, b.endpoint.counters().ecn_waits), (0, 0));
    assert_eq!(numbers(&data), [0], "data leaves with the answer");
}

/// Rules: 3168 6.1.1 setup; 3168 6.1.1 refusal; 3168 6.1.1 SYN not ECT
#[test]
fn the_passive_side_agrees_to_one_question_only() {
    for wants in [false, true] {
        for asked in [Flags::NONE, Flags::ECE, Flags::CWR, Flags::ECE | Flags::CWR] {
            let mut b = Bench::new(Role::Passive, &[("ecn", Value::Flag(wants))]);
            let answer = b.arrive(Segment { flags: Flags::SYN | asked, ack: 0, ..segment(0, 0, 0) })[0];
            let agrees = wants && asked == Flags::ECE | Flags::CWR;
            assert_eq!(answer.flags, (Flags::SYN | Flags::ACK).with_if(Flags::ECE, agrees), "{asked:?}");
            assert!(!answer.ecn.is_capable());
            assert_eq!(b.endpoint.uses_ecn(), agrees);
        }
    }
}

/// Rules: 3168 6.1.1.1; 3168 6.1.1 mixed
#[test]
fn a_syn_sent_again_may_stop_asking_and_then_no_answer_agrees() {
    for (word, asks_again) in [("off", true), ("timeout", false), ("timeout_or_reset", false)] {
        let mut b = Bench::new(Role::Active, &fallback(word));
        assert_eq!(b.connect().flags, SETUP, "{word}");
        for _ in 0..2 {
            assert_eq!(b.fire()[0].flags, if asks_again { SETUP } else { Flags::SYN }, "{word}");
        }
        b.endpoint.write(ENDLESS);
        // This SYN-ACK answers the first SYN, but the SYN sent since then forbids ECT on data.
        let late = Segment { flags: Flags::SYN | Flags::ACK | Flags::ECE, ..segment(0, 1, 0) };
        let data = b.arrive(late);
        assert_eq!((b.endpoint.uses_ecn(), data[1].ecn.is_capable()), (asks_again, asks_again), "{word}");
    }
}

/// Rules: 3168 6.1.1.1
#[test]
fn a_reset_in_answer_to_an_ecn_setup_syn_may_bring_one_without() {
    let reset = Segment { flags: Flags::RST | Flags::ACK, ..segment(0, 1, 0) };
    for word in ["off", "timeout", "timeout_or_reset"] {
        let mut b = Bench::new(Role::Active, &fallback(word));
        b.connect();
        let answer = b.arrive(reset);
        if word == "timeout_or_reset" {
            assert_eq!(answer.iter().map(|s| s.flags).collect::<Vec<_>>(), [Flags::SYN]);
            assert_eq!(b.arrive(reset), [], "this reset counts");
        } else {
            assert_eq!(answer, []);
        }
        assert_eq!(b.endpoint.poll_event(), Some(StreamEvent::Reset), "{word}");
    }
}

/// Rules: 3168 6.1.1 mixed
#[test]
fn a_plain_syn_after_one_that_asked_ends_it() {
    let mut b = Bench::new(Role::Passive, &fallback("off"));
    let syn = |flags| Segment { flags, ack: 0, ..segment(0, 0, 0) };
    assert_eq!(b.arrive(syn(SETUP))[0].flags, Flags::SYN | Flags::ACK | Flags::ECE);
    assert_eq!(b.arrive(syn(SETUP))[0].flags, Flags::SYN | Flags::ACK | Flags::ECE, "the same once more");
    assert_eq!(b.arrive(syn(Flags::SYN))[0].flags, Flags::SYN | Flags::ACK);
    assert_eq!(b.arrive(syn(SETUP))[0].flags, Flags::SYN | Flags::ACK, "an old SYN-ACK restores nothing");
    b.arrive(segment(1, 1, 0));
    assert!(!b.endpoint.uses_ecn());
}

/// Rules: 3168 6.1.2 CWR
#[test]
fn every_reduction_is_told_on_the_first_new_data() {
    let told = |sent: &[Segment]| -> Vec<u32> {
        sent.iter().filter(|s| s.flags.has(Flags::CWR)).map(|s| (s.seq - 1) / MSS).collect()
    };
    let mut b = Bench::established(&ecn());
    let mut sent = Vec::new();
    (0..15).for_each(|_| sent.extend(b.ack(0)));
    assert_eq!(numbers(&sent)[2..4], [0, 18], "limited transmit, the retransmission, then new data");
    assert_eq!(told(&sent), [18], "after a fast retransmit");
    let mut b = Bench::established(&ecn());
    let mut sent = b.fire();
    (1..=16).for_each(|n| sent.extend(b.ack(n)));
    assert_eq!(told(&sent), [16], "after a timeout; a retransmission gives no sample");
}

/// Rules: 3168 6.1.2 lost CWR
#[test]
fn the_loss_of_the_segment_with_cwr_is_another_reduction_and_told_again() {
    let mut b = Bench::established(&ecn());
    let mut sent = b.arrive(echo(1));
    (2..=16).for_each(|n| sent.extend(b.arrive(echo(n))));
    let cwr = sent.iter().find(|s| s.flags.has(Flags::CWR)).expect("told");
    assert_eq!((cwr.seq, b.endpoint.cwnd()), (1 + 16 * MSS, 8.0));
    // The segment with CWR is lost: the segments behind it cause duplicate ACKs of 16, with ECE
    // still set.
    let mut sent = Vec::new();
    (0..10).for_each(|_| sent.extend(b.arrive(echo(16))));
    assert_eq!(b.endpoint.ssthresh(), 4.0, "the window of the mark is over");
    let first_new = sent.iter().find(|s| s.flags.has(Flags::CWR)).expect("told again");
    assert!(first_new.seq > cwr.seq);
    // The same applies if the timer detects the loss.
    let mut b = Bench::established(&ecn());
    (1..=16).for_each(|n| drop(b.arrive(echo(n))));
    assert_eq!((numbers(&b.fire()), b.endpoint.ssthresh()), (vec![16], 4.0));
}

/// Rules: 3168 6.1.2 no growth
#[test]
fn an_acknowledgment_with_an_echo_does_not_open_the_window() {
    let mut b = Bench::established(&ecn());
    b.arrive(echo(1));
    (2..=16).for_each(|n| drop(b.arrive(echo(n))));
    assert_eq!(b.endpoint.cwnd(), 8.0);
    (17..=19).for_each(|n| drop(b.ack(n)));
    assert_eq!(b.endpoint.cwnd(), 8.0 + 1.0 / 8.0 + 1.0 / 8.125 + 1.0 / (8.125 + 1.0 / 8.125));
}

/// Rules: 3168 6.1.2 window of one
#[test]
fn an_echo_at_a_window_of_one_by_variant() {
    // Each row has the variant, the segments sent as soon as the echo arrives, the window and
    // ssthresh.
    let table: [(_, &[u32], _, _); 4] = [
        ("wait_for_rto", &[], 1.0, f64::INFINITY),
        ("keep", &[1], 1.0, 2.0),
        ("ssthresh", &[1, 2], 2.0, 2.0),
        ("ns2", &[], 0.5, 2.0),
    ];
    for (word, at_once, window, ssthresh) in table {
        let at_one = ("ecn_at_one", Value::Choice(word));
        // When the echo arrives, nothing else is in flight, so the value that is halved is the
        // window.
        let base = ("reduction_base", Value::Choice("window"));
        let mut b = Bench::established(&[iw(1), ecn()[1].clone(), at_one, base]);
        let sent = b.arrive(echo(1));
        assert_eq!(numbers(&sent), at_once, "{word}");
        assert_eq!((b.endpoint.cwnd(), b.endpoint.ssthresh()), (window, ssthresh), "{word}");
        assert_eq!(b.endpoint.counters().ecn_waits, u32::from(at_once.is_empty()), "{word}");
        if at_once.is_empty() {
            assert_eq!(numbers(&b.fire()), [1], "{word}");
        }
    }
}

/// Rules: 3168 6.1.3 delayed
#[test]
fn a_delayed_acknowledgment_echoes_a_mark_on_any_segment_it_covers() {
    for (marks, echoes) in [([false, false], false), ([true, false], true), ([false, true], true)] {
        let mut b = Bench::accepted(&ecn());
        let mut acks = Vec::new();
        for (i, ce) in marks.into_iter().enumerate() {
            acks.extend(
                b.arrive_marked(Segment { ecn: Ecn::Ect0, ..segment(1 + 100 * i as u32, 1, 100) }, ce),
            );
        }
        assert_eq!(acks.iter().map(|s| s.flags.has(Flags::ECE)).collect::<Vec<_>>(), [echoes], "{marks:?}");
    }
}

/// Rules: 3168 6.1.5 outside the window
#[test]
fn a_mark_on_data_outside_the_window_is_not_echoed() {
    for listens in [false, true] {
        let given = ("echo_outside_window", Value::Flag(listens));
        for seq in [1, 1 << 30 | 500] {
            let mut b = Bench::accepted(&[ecn()[1].clone(), given.clone()]);
            b.arrive(segment(1, 1, 100));
            b.arrive(segment(101, 1, 100));
            let ack = b.arrive_marked(Segment { ecn: Ecn::Ect0, ..segment(seq, 1, 100) }, true);
            assert_eq!(ack[0].flags.has(Flags::ECE), listens, "{seq}");
        }
    }
}

/// The parameter that breaks this rule (`ect_on_syn`) affects only SYNs that request ECN.
///
/// Rules: 3168 6.1.1 SYN not ECT
#[test]
fn a_syn_is_ecn_capable_only_where_it_asks_for_ecn_and_may_be() {
    for (ecn, on_syn, expected) in [(true, true, true), (true, false, false), (false, true, false)] {
        let settings = [("ecn", Value::Flag(ecn)), ("ect_on_syn", Value::Flag(on_syn))];
        let mut b = Bench::of("rfc", Role::Active, &settings);
        assert_eq!(b.connect().ecn.is_capable(), expected, "ecn {ecn}, ect_on_syn {on_syn}");
        assert_eq!(b.fire()[0].ecn.is_capable(), expected, "the same holds for the retransmitted SYN");
        let mut b = Bench::of("rfc", Role::Passive, &settings);
        let syn_ack = b.arrive(Segment { flags: SETUP, ack: 0, ..segment(0, 0, 0) })[0];
        assert!(!syn_ack.ecn.is_capable(), "the SYN-ACK has its own parameter");
    }
    let fallback = ("ecn_fallback", Value::Choice("timeout"));
    let on_syn = ("ect_on_syn", Value::Flag(true));
    let mut b = Bench::of("rfc", Role::Active, &[("ecn", Value::Flag(true)), on_syn, fallback]);
    assert!(b.connect().ecn.is_capable());
    assert!(!b.fire()[0].ecn.is_capable(), "a SYN that no longer requests ECN is not ECN-capable either");
}

/// An echo of a mark on the SYN could not be distinguished from the answer to the SYN's ECE and
/// CWR.
///
/// Rules: 3168 6.1.1 setup
#[test]
fn congestion_met_by_a_syn_is_not_echoed() {
    let mut b =
        Bench::of("rfc", Role::Passive, &[("ecn", Value::Flag(true)), ("ect_on_syn", Value::Flag(true))]);
    b.arrive_marked(Segment { flags: SETUP, ack: 0, ..segment(0, 0, 0) }, true);
    b.arrive(segment(1, 1, 0));
    b.arrive(segment(1, 1, 100));
    let ack = b.arrive(segment(101, 1, 100)).pop().expect("an ACK");
    assert!(!ack.flags.has(Flags::ECE));
}

/// Rules: 3168 6.1.1 SYN not ECT; 3168 6.1.4; 3168 6.1.5 retransmission
#[test]
fn what_is_ecn_capable_by_profile() {
    // SYN, SYN-ACK, data, pure ACK, retransmission, FIN with data, FIN alone
    let table = [
        ("rfc", [false, false, true, false, false, true, false]),
        ("ns2", [false, false, true, false, true, true, false]),
        ("ns2_fulltcp", [false, false, true, false, true, true, false]),
        ("freebsd4", [false, false, true, false, false, true, false]),
        ("linux", [false, false, true, false, false, true, false]),
        ("linux_offload", [false, false, true, false, false, true, false]),
        ("modern", [false, false, true, false, false, true, false]),
        ("prague", [false, false, true, false, true, true, false]),
    ];
    let others = aqmlab_transport::profiles().iter().filter(|profile| profile.name != "quic").count();
    assert_eq!(table.len(), others, "every profile but that of QUIC, whose packets are all ECN-capable");
    for (profile, expected) in table {
        let two = ("pacing_burst", Value::Integer(2));
        let given = [iw(2), two, ("ecn", Value::Flag(true)), ("fin", Value::Choice("with_data"))];
        let bench = |role| Bench::of(profile, role, &given);
        let mut b = bench(Role::Passive);
        let syn_ack = b.arrive(Segment { flags: SETUP, ack: 0, ..segment(0, 0, 0) })[0];
        b.arrive(segment(1, 1, 0));
        b.arrive(segment(1, 1, 100));
        let pure = b.arrive(segment(101, 1, b.profile.mss)).pop().expect("an ACK");
        b.endpoint.close();
        let lone_fin = b.drain()[0];
        assert_eq!((pure.len, lone_fin.len), (0, 0));
        let mut b = bench(Role::Active);
        let syn = b.connect();
        b.endpoint.write(u64::from(2 * b.profile.mss));
        b.endpoint.close();
        let sent = b.arrive(Segment { flags: Flags::SYN | Flags::ACK | Flags::ECE, ..segment(0, 1, 0) });
        let data: Vec<Segment> = sent.into_iter().filter(|s| s.len > 0).collect();
        let again = b.fire()[0];
        assert!(data[1].flags.has(Flags::FIN) && again.seq == data[0].seq);
        let found = [syn, syn_ack, data[0], pure, again, data[1], lone_fin].map(|s| s.ecn.is_capable());
        assert_eq!(found, expected, "{profile}");
    }
}
