//! Accurate ECN feedback (RFC 9768): negotiation, the counter ACE, and when it is reported.

use aqmlab_params::Value;
use aqmlab_transport::{AccEcnOption, ENDLESS, Endpoint, Flags, Options, Role, Segment, State};
use aqmlab_units::Ecn;

use crate::bench::{Bench, MSS, ack_of, iw, ms, segment};

const SYN_ACK: Flags = Flags::SYN.with_if(Flags::ACK, true);
const ALL_CODE_POINTS: [Ecn; 4] = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce];

pub fn accurate(more: &[(&'static str, Value)]) -> Vec<(&'static str, Value)> {
    let mut given = vec![
        ("ecn", Value::Flag(true)),
        ("ecn_feedback", Value::Choice("accurate")),
        ("ecn_option", Value::Choice("none")),
        iw(10),
    ];
    given.extend_from_slice(more);
    given
}

/// Returns an active endpoint after a handshake of 100 ms, in which the code point of its SYN arrived unchanged. It
/// has an endless stream to send, and has sent its first flight.
pub fn sender(more: &[(&'static str, Value)]) -> Bench {
    let mut b = Bench::new(Role::Active, &accurate(more));
    b.connect();
    b.endpoint.write(ENDLESS);
    b.now = ms(100);
    b.arrive(Segment { flags: SYN_ACK.with_ace(0b010), ..b.syn_ack() });
    assert!(b.endpoint.uses_accurate_ecn());
    b
}

/// Returns a passive endpoint after a handshake of 100 ms, which has not changed any code point.
pub fn receiver(more: &[(&'static str, Value)]) -> Bench {
    let mut b = Bench::new(Role::Passive, &accurate(more));
    let extras = b.syn_ack().extras;
    b.arrive(Segment { flags: Flags::SYN.with_ace(0b111), extras, ..segment(0, 0, 0) });
    b.now = ms(100);
    b.arrive(Segment { flags: Flags::ACK.with_ace(0b010), ..segment(1, 1, 0) });
    assert_eq!(b.endpoint.state(), State::Established);
    b
}

/// Delivers a segment with a code point.
pub fn arrive_as(b: &mut Bench, seg: Segment, ecn: Ecn) -> Vec<Segment> {
    b.arrive(Segment { ecn, ..seg })
}

/// Delivers an acknowledgment of everything below segment `n` with this counter.
fn ack_with(b: &mut Bench, n: u32, ace: u8) -> Vec<Segment> {
    b.arrive(Segment { flags: Flags::ACK.with_ace(ace), ..ack_of(n) })
}

/// Returns the counter of marked packets that this side has heard of: s.cep.
fn heard(endpoint: &Endpoint) -> u32 {
    endpoint.ecn_counters().expect("AccECN is in use").1.ce_packets
}

/// Table 2: the feedback mode of host A.
///
/// Rules: 9768 3.1.1 request; 9768 3.1.2 answers; 9768 3.1.3 SYN-ACK
#[test]
fn the_active_side_takes_the_mode_of_the_answer() {
    for (ace, uses_ecn, is_accurate) in [
        (0b010, true, true),
        (0b011, false, true), // a SYN that is not ECN-capable has become so: still AccECN, but nothing is ECT
        (0b100, false, true),
        (0b110, false, true),
        (0b101, true, true), // reserved: as if unchanged
        (0b001, true, false),
        (0b000, false, false),
        (0b111, false, false), // broken: a reflection
    ] {
        let mut b = Bench::new(Role::Active, &accurate(&[]));
        assert_eq!(b.connect().flags, Flags::SYN.with_ace(0b111));
        b.endpoint.write(ENDLESS);
        let sent = b.arrive(Segment { flags: SYN_ACK.with_ace(ace), ..b.syn_ack() });
        assert_eq!(b.endpoint.uses_accurate_ecn(), is_accurate, "{ace:03b}");
        let data = sent.iter().find(|s| s.len > 0).expect("it sends data");
        assert_eq!(data.ecn == Ecn::Ect0, uses_ecn, "{ace:03b}");
        assert_eq!(data.flags.ace(), if is_accurate { 5 } else { 0 }, "{ace:03b}");
    }
}

/// Table 2, and what is none of its combinations.
///
/// Rules: 9768 3.1.1 answer; 9768 3.1.2 questions; 9768 3.1.3 SYN
#[test]
fn the_passive_side_answers_with_the_code_point_of_the_syn() {
    for ace in 0..8 {
        for (ecn, code) in ALL_CODE_POINTS.into_iter().zip([0b010, 0b011, 0b100, 0b110]) {
            let mut b = Bench::new(Role::Passive, &accurate(&[]));
            let sent =
                arrive_as(&mut b, Segment { flags: Flags::SYN.with_ace(ace), ..segment(0, 0, 0) }, ecn);
            let expected = match ace {
                0b000 => 0b000,
                0b011 => 0b001,
                _ => code,
            };
            assert_eq!(sent[0].flags, SYN_ACK.with_ace(expected), "{ace:03b} {ecn:?}");
            assert_eq!(b.endpoint.uses_accurate_ecn(), !matches!(ace, 0b000 | 0b011));
        }
    }
    let classic = [("ecn", Value::Flag(true))];
    let mut b = Bench::new(Role::Passive, &classic);
    let sent = b.arrive(Segment { flags: Flags::SYN.with_ace(0b111), ..segment(0, 0, 0) });
    assert_eq!(sent[0].flags, SYN_ACK.with_ace(0b001), "host B knows only RFC 3168");
}

/// Table 3.
///
/// Rules: 9768 3.2.2.1 client; 9768 3.2.1
#[test]
fn the_acknowledgment_of_a_syn_ack_reports_its_code_point() {
    for (ecn, code, counter) in
        [(Ecn::NotEct, 0b010, 5), (Ecn::Ect1, 0b011, 5), (Ecn::Ect0, 0b100, 5), (Ecn::Ce, 0b110, 6)]
    {
        for handshake_ack in ["separate", "piggyback"] {
            let more = [("handshake_ack", Value::Choice(handshake_ack))];
            let mut b = Bench::new(Role::Active, &accurate(&more));
            b.connect();
            b.endpoint.write(u64::from(MSS));
            let answer = Segment { flags: SYN_ACK.with_ace(0b010), ecn, ..b.syn_ack() };
            let sent = b.arrive(answer);
            assert_eq!((sent[0].flags, sent[0].len), (Flags::ACK.with_ace(code), 0), "{ecn:?}");
            assert_eq!((sent[1].flags.ace(), sent[1].len), (counter, MSS), "data has the counter");
            // A repeated SYN-ACK is answered alike, and counts at most once.
            let again = b.arrive(answer);
            assert_eq!(again[0].flags, Flags::ACK.with_ace(code));
            let received = b.endpoint.ecn_counters().expect("AccECN").0;
            assert_eq!(received.ce_packets, u32::from(counter));
        }
    }
}

/// Table 4: s.cep, whether data is ECN-capable, and whether feedback counts.
///
/// Rules: 9768 3.2.2.1 server; 9768 3.2.2.3 server
#[test]
fn the_passive_side_learns_the_code_point_of_its_syn_ack() {
    for (ace, counter, capable, counts) in [
        (0b000, 5, false, false),
        (0b001, 5, true, true),
        (0b010, 5, true, true),
        (0b011, 5, false, true),
        (0b100, 5, false, true),
        (0b101, 5, true, true),
        (0b110, 6, false, true),
        (0b111, 5, true, true),
    ] {
        let mut b = Bench::new(Role::Passive, &accurate(&[]));
        b.endpoint.write(ENDLESS);
        b.arrive(Segment { flags: Flags::SYN.with_ace(0b111), ..segment(0, 0, 0) });
        let sent = b.arrive(Segment { flags: Flags::ACK.with_ace(ace), ..segment(1, 1, 0) });
        assert_eq!(heard(&b.endpoint), counter, "{ace:03b}");
        assert_eq!(sent[0].ecn == Ecn::Ect0, capable, "{ace:03b}");
        assert_eq!(sent[0].flags.ace(), 5, "it still reports");
        ack_with(&mut b, 1, counter as u8 + 1);
        assert_eq!(b.endpoint.counters().ecn_reductions > 0, counts, "{ace:03b}");
    }
    // An ECN-capable SYN-ACK may be marked. The connection then begins with one segment.
    let more = [("ect_on_syn_ack", Value::Flag(true))];
    for (ace, capable, window) in
        [(0b100, true, 10.0), (0b110, true, 1.0), (0b010, false, 10.0), (0b011, false, 10.0)]
    {
        let mut b = Bench::new(Role::Passive, &accurate(&more));
        b.endpoint.write(ENDLESS);
        let sent = b.arrive(Segment { flags: Flags::SYN.with_ace(0b111), ..segment(0, 0, 0) });
        assert_eq!(sent[0].ecn, Ecn::Ect0);
        let sent = b.arrive(Segment { flags: Flags::ACK.with_ace(ace), ..segment(1, 1, 0) });
        assert_eq!((sent[0].ecn == Ecn::Ect0, b.endpoint.cwnd()), (capable, window), "{ace:03b}");
    }
}

/// Rules: 9768 3.2.2.3 client; 5562 3
#[test]
fn the_active_side_tests_the_code_point_of_its_syn() {
    let more = [("ect_on_syn", Value::Flag(true))];
    for (ace, capable, window) in
        [(0b100, true, 10.0), (0b110, true, 1.0), (0b010, false, 10.0), (0b011, false, 10.0)]
    {
        let mut b = Bench::new(Role::Active, &accurate(&more));
        assert_eq!(b.connect().ecn, Ecn::Ect0);
        b.endpoint.write(ENDLESS);
        let sent = b.arrive(Segment { flags: SYN_ACK.with_ace(ace), ..b.syn_ack() });
        let data = sent.iter().find(|s| s.len > 0).expect("data");
        assert_eq!((data.ecn == Ecn::Ect0, b.endpoint.cwnd()), (capable, window), "{ace:03b}");
        assert_eq!(heard(&b.endpoint), 5, "s.cep stays in step with r.cep");
    }
}

/// What the handshake says is not tested, or marks are tested in the first rounds, too: "the sender might check whether
/// the feedback for every packet it sends for the first three or four rounds indicates CE-marking".
///
/// Rules: 9768 3.2.2.3 rounds
#[test]
fn marks_on_all_packets_of_four_rounds_do_not_count_any_longer() {
    let test = |word| ("ecn_path_test", Value::Choice(word));
    let mut b = Bench::new(Role::Active, &accurate(&[test("off")]));
    b.connect();
    b.endpoint.write(ENDLESS);
    let sent = b.arrive(Segment { flags: SYN_ACK.with_ace(0b100), ..b.syn_ack() });
    assert!(sent.iter().filter(|s| s.len > 0).all(|s| s.ecn == Ecn::Ect0), "not tested");
    for (word, exception, capable) in [
        ("handshake", None, true),
        ("rounds", None, false),
        ("rounds", Some(3), true),
        ("rounds", Some(10), true),
    ] {
        let mut b = sender(&[test(word), iw(8), ("ecn_at_one", Value::Choice("keep"))]);
        let (mut ace, mut acked, mut sent, mut rounds) = (5_u32, 0, 8, Vec::new());
        for _ in 0..6 {
            let end = sent;
            let mut ecn = None;
            for n in acked + 1..=end {
                ace += u32::from(Some(n) != exception);
                for s in ack_with(&mut b, n, (ace % 8) as u8) {
                    (sent, ecn) = (sent + 1, Some(s.ecn));
                }
            }
            acked = end;
            rounds.push(ecn);
        }
        assert_eq!(rounds[..2], [Some(Ecn::Ect0); 2], "{word} {exception:?}");
        let expected = if capable { Ecn::Ect0 } else { Ecn::NotEct };
        assert_eq!(rounds[4..], [Some(expected); 2], "{word} {exception:?}");
        let reductions = b.endpoint.counters().ecn_reductions;
        ace += 1;
        let sent = b.arrive(Segment { flags: Flags::ACK.with_ace((ace % 8) as u8), ..ack_of(acked + 1) });
        assert!(sent.iter().all(|s| s.ecn == expected) && !sent.is_empty());
        if !capable {
            assert_eq!(b.endpoint.counters().ecn_reductions, reductions, "marks do not count");
        }
    }
}

/// Rules: 9768 3.1.4.1
#[test]
fn a_syn_requests_accecn_twice_and_the_first_answer_counts() {
    let more = [("ecn_fallback", Value::Choice("timeout"))];
    let mut b = Bench::new(Role::Active, &accurate(&more));
    let mut flags = vec![b.connect().flags];
    flags.extend((0..3).map(|_| b.fire()[0].flags));
    let (asks, not) = (Flags::SYN.with_ace(0b111), Flags::SYN);
    assert_eq!(flags, [asks, asks, not, not]);
    b.endpoint.write(ENDLESS);
    let sent = b.arrive(Segment { flags: SYN_ACK.with_ace(0b010), ..b.syn_ack() });
    assert!(b.endpoint.uses_accurate_ecn());
    assert_eq!(sent.iter().find(|s| s.len > 0).expect("data").ecn, Ecn::Ect0, "a client is still allowed to");
    // The answer to the last SYN, which came first, ends it.
    let mut b = Bench::new(Role::Active, &accurate(&more));
    b.connect();
    (0..2).for_each(|_| drop(b.fire()));
    b.arrive(b.syn_ack());
    b.arrive(Segment { flags: SYN_ACK.with_ace(0b010), ..b.syn_ack() });
    assert!(!b.endpoint.uses_ecn());
    // By default, each SYN requests it.
    let mut b = Bench::new(Role::Active, &accurate(&[]));
    b.connect();
    assert!((0..4).all(|_| b.fire()[0].flags == asks));
}

/// Rules: 9768 3.1.4.2; 9768 3.2.3.2.2 SYN-ACK
#[test]
fn a_syn_ack_is_sent_again_without_the_option_and_then_without_agreement() {
    let more = [("ecn_fallback", Value::Choice("timeout")), ("ecn_option", Value::Choice("simple"))];
    let mut b = Bench::new(Role::Passive, &accurate(&more));
    b.endpoint.write(ENDLESS);
    let mut sent = b.arrive(Segment { flags: Flags::SYN.with_ace(0b111), ..segment(0, 0, 0) });
    sent.extend((0..3).flat_map(|_| b.fire()));
    let (agrees, not) = (SYN_ACK.with_ace(0b010), SYN_ACK);
    assert_eq!(sent.iter().map(|s| s.flags).collect::<Vec<_>>(), [agrees, agrees, not, not]);
    let options: Vec<u8> = sent.iter().map(|s| s.extras.accurate_ecn_len()).collect();
    assert_eq!(options, [12, 0, 0, 0]);
    let data = b.arrive(Segment { flags: Flags::ACK.with_ace(0b010), ..segment(1, 1, 0) });
    assert_eq!((data[0].ecn, data[0].flags.ace()), (Ecn::NotEct, 5), "it still reports, but nothing is ECT");
}

/// Rules: 9768 3.1.5 SYNs
#[test]
fn a_repeated_syn_is_answered_in_the_same_mode() {
    let syn = |ace| Segment { flags: Flags::SYN.with_ace(ace), ..segment(0, 0, 0) };
    let mut b = Bench::new(Role::Passive, &accurate(&[]));
    b.endpoint.write(ENDLESS);
    b.arrive(syn(0b111));
    let sent = arrive_as(&mut b, syn(0b111), Ecn::Ce);
    assert_eq!(sent[0].flags, SYN_ACK.with_ace(0b110), "the code point of the latest SYN");
    let sent = b.arrive(syn(0b000));
    assert_eq!(sent[0].flags, SYN_ACK.with_ace(0b010));
    let sent = b.arrive(Segment { flags: Flags::ACK.with_ace(0b010), ..segment(1, 1, 0) });
    assert_eq!((sent[0].ecn, sent[0].flags.ace()), (Ecn::NotEct, 5), "nothing is ECT after such a SYN");
    // One that asks for the other kind of feedback resets the connection.
    for (first, second) in [(0b111, 0b011), (0b011, 0b111)] {
        let mut b = Bench::new(Role::Passive, &accurate(&[]));
        b.arrive(syn(first));
        let sent = b.arrive(syn(second));
        assert!(sent[0].flags.has(Flags::RST) && b.endpoint.state() == State::Closed);
    }
    // Without ECN at first, there is none later.
    let mut b = Bench::new(Role::Passive, &accurate(&[]));
    b.arrive(syn(0b000));
    assert_eq!(b.arrive(syn(0b111))[0].flags, SYN_ACK);
}

/// Rules: 9768 3.1.2 simultaneous
#[test]
fn when_both_sides_open_each_answers_the_syn() {
    let mut b = Bench::new(Role::Active, &accurate(&[]));
    b.connect();
    let sent =
        arrive_as(&mut b, Segment { flags: Flags::SYN.with_ace(0b111), ..segment(0, 0, 0) }, Ecn::Ect0);
    assert_eq!(sent[0].flags, SYN_ACK.with_ace(0b100));
    b.arrive(Segment { flags: SYN_ACK.with_ace(0b010), ..b.syn_ack() });
    assert!(b.endpoint.state() == State::Established && b.endpoint.uses_accurate_ecn());
    assert_eq!(heard(&b.endpoint), 5, "the flags of a SYN-ACK are no counter");
}

/// Rules: 9768 3.2 r.cep; 9768 3.2.2.2 encode
#[test]
fn the_counter_counts_each_acceptable_marked_packet_and_wraps() {
    let mut b = receiver(&[]);
    for n in 0..20_u32 {
        let sent = arrive_as(&mut b, segment(1 + n * MSS, 1, MSS), Ecn::Ce);
        let received = b.endpoint.ecn_counters().expect("AccECN").0;
        assert_eq!((received.ce_packets, received.ce_bytes), (6 + n, (n + 1) * MSS));
        assert!(sent.iter().all(|s| u32::from(s.flags.ace()) == (6 + n) % 8), "{n}");
    }
    let counters = |b: &Bench| b.endpoint.ecn_counters().expect("AccECN").0;
    let before = counters(&b);
    // Not acceptable: all of it has arrived, or it is beyond the window.
    arrive_as(&mut b, segment(1, 1, MSS), Ecn::Ce);
    arrive_as(&mut b, segment(1 + 30_000 * MSS + (1 << 30), 1, MSS), Ecn::Ce);
    assert_eq!(counters(&b), before);
    // A pure acknowledgment counts as a packet, and data beyond a hole as packet and bytes.
    arrive_as(&mut b, Segment { flags: Flags::ACK.with_ace(5), ..segment(1 + 20 * MSS, 1, 0) }, Ecn::Ce);
    arrive_as(&mut b, segment(1 + 22 * MSS, 1, 100), Ecn::Ect0);
    arrive_as(&mut b, segment(1 + 24 * MSS, 1, 50), Ecn::Ect1);
    arrive_as(&mut b, segment(1 + 26 * MSS, 1, 10), Ecn::NotEct);
    let after = counters(&b);
    assert_eq!((after.ce_packets, after.ce_bytes), (before.ce_packets + 1, before.ce_bytes));
    assert_eq!((after.ect0_bytes, after.ect1_bytes), (101, 51));
}

/// Rules: 9768 3.2.2.5.1 change; 9768 3.2.2.5.1 increment
#[test]
fn a_mark_after_none_and_every_second_mark_are_reported_at_once() {
    // Delayed acknowledgments alone would acknowledge every hundredth segment.
    let mut b = receiver(&[("ack_every", Value::Integer(100))]);
    let marks = [false, false, true, true, true, true, false, true, false, true];
    let mut reports = Vec::new();
    for (n, marked) in (0_u32..).zip(marks) {
        let ecn = if marked { Ecn::Ce } else { Ecn::Ect0 };
        let sent = arrive_as(&mut b, segment(1 + n * MSS, 1, MSS), ecn);
        reports.extend(sent.iter().map(|s| (n, s.flags.ace())));
    }
    // A change at 2; two marks more at 4; one at 5 waits until the change at 7.
    assert_eq!(reports, [(2, 6), (4, 0), (7, 2), (9, 3)]);
    // Without unacknowledged data, the third mark is reported.
    let mut b = receiver(&[]);
    let pure = Segment { flags: Flags::ACK.with_ace(5), ..segment(1, 1, 0) };
    let answers: Vec<usize> = (0..6).map(|_| arrive_as(&mut b, pure, Ecn::Ce).len()).collect();
    assert_eq!(answers, [0, 0, 1, 0, 0, 1]);
}

/// Rules: 9768 3.1.5 response; 9768 3.2.2.2 decode
#[test]
fn the_window_is_reduced_once_and_never_with_cwr() {
    let mut b = sender(&[iw(16)]);
    let sent = ack_with(&mut b, 1, 6);
    assert_eq!((b.endpoint.cwnd(), heard(&b.endpoint)), (8.0, 6));
    assert!(sent.iter().all(|s| s.flags.ace() == 5), "ACE is the counter, not CWR");
    for n in 2..=16 {
        ack_with(&mut b, n, ((5 + n) % 8) as u8);
    }
    assert_eq!((b.endpoint.cwnd(), heard(&b.endpoint)), (8.0, 21), "one reduction in a window");
    assert_eq!(b.endpoint.counters().ecn_reductions, 1);
    let cwnd = b.endpoint.cwnd();
    ack_with(&mut b, 17, 5);
    assert!(b.endpoint.cwnd() > cwnd && heard(&b.endpoint) == 21, "no mark");
    ack_with(&mut b, 18, 6);
    assert_eq!(b.endpoint.counters().ecn_reductions, 2);
}

/// Appendix A.2.1: 9 segments and 2 marks, 10 segments and 2 marks.
///
/// Rules: 9768 3.2.2.5.2
#[test]
fn a_large_acknowledgment_counts_as_many_marks_as_are_likely() {
    for (segments, marks) in [(9, 2), (10, 10)] {
        let mut b = sender(&[iw(16)]);
        ack_with(&mut b, 1, 5);
        ack_with(&mut b, 1 + segments, 7);
        assert_eq!(heard(&b.endpoint), 5 + marks, "{segments}");
    }
    // Where acknowledgments are large as a rule ("the moving average was well below 8" does not hold), the least.
    for segments in [10, 16] {
        let mut b = sender(&[iw(16)]);
        ack_with(&mut b, segments, 7);
        assert_eq!(heard(&b.endpoint), 7, "{segments}");
    }
    // More marks than segments: control packets were marked, too.
    let mut b = sender(&[]);
    ack_with(&mut b, 1, 1); // 9, modulo 8
    assert_eq!(heard(&b.endpoint), 9);
}

/// Rules: 9768 3.2.2.2 superseded
#[test]
fn an_acknowledgment_without_progress_is_not_heard() {
    let mut b = sender(&[]);
    ack_with(&mut b, 2, 6);
    ack_with(&mut b, 1, 5);
    ack_with(&mut b, 2, 5);
    assert_eq!(heard(&b.endpoint), 6, "an older counter does not count as seven marks");
    // New data is newer than anything else.
    b.arrive(Segment { flags: Flags::ACK.with_ace(7), len: 10, ..ack_of(2) });
    assert_eq!(heard(&b.endpoint), 7);
    ack_with(&mut b, 3, 0);
    assert_eq!(heard(&b.endpoint), 8, "the next one catches up");
}

/// Rules: 9768 3.2.2.4
#[test]
fn a_zero_counter_at_first_means_that_the_field_is_cleared() {
    let mut b = sender(&[]);
    let cwnd = b.endpoint.cwnd();
    let sent = ack_with(&mut b, 1, 0);
    assert!(sent.iter().all(|s| s.ecn == Ecn::NotEct && s.flags.ace() == 5), "it still reports");
    assert!(b.endpoint.cwnd() > cwnd);
    let cwnd = b.endpoint.cwnd();
    ack_with(&mut b, 2, 3);
    assert!(b.endpoint.cwnd() > cwnd, "feedback does not count");
    let mut b = sender(&[]);
    ack_with(&mut b, 1, 5);
    ack_with(&mut b, 2, 0);
    assert_eq!(heard(&b.endpoint), 8, "later, zero is a value like any other");
}

/// RFC 8257 with the counter as its echo: a third of the segments is marked.
///
/// Rules: 9768 3.2.2.2 DCTCP
#[test]
fn dctcp_counts_the_marks_that_are_reported() {
    let more = [("congestion", Value::Choice("dctcp")), iw(30)];
    let mut b = sender(&more);
    let (mut ace, mut alpha, mut window_end, mut counts) = (5, 1.0, 0, (0.0, 0.0));
    let mut cwnd = 30.0;
    for n in 1..=30_u32 {
        // Every third acknowledgment acknowledges one marked segment.
        let marked = n % 3 == 0;
        ace += u8::from(marked);
        let sent_before = 1 + (b.endpoint.acked().get() + b.endpoint.flight().get()) / u64::from(MSS);
        counts = (counts.0 + 1.0, counts.1 + f64::from(u8::from(marked)));
        if u64::from(n) > window_end {
            alpha = alpha * 15.0 / 16.0 + counts.1 / counts.0 / 16.0;
            (window_end, counts) = (sent_before - 1, (0.0, 0.0));
        }
        if n == 3 {
            cwnd = b.endpoint.cwnd() * (1.0 - alpha / 2.0);
        }
        ack_with(&mut b, n, ace % 8);
        if n == 3 {
            assert!((b.endpoint.cwnd() - cwnd).abs() < 1e-9, "{} {cwnd}", b.endpoint.cwnd());
        }
    }
    assert_eq!(heard(&b.endpoint), 15);
    assert_eq!(b.endpoint.counters().ecn_reductions, 1);
}

/// RFC 8257, section 3.3: M is the share of marked bytes, and AccECN tells that one of two segments was marked. The
/// first acknowledgment ends the first observation window, so alpha is 15/16 + M/16.
///
/// Rules: 9768 3.2.2.2 DCTCP
#[test]
fn dctcp_learns_how_many_segments_of_an_acknowledgment_are_marked() {
    for (marks, m) in [(1, 0.5), (2, 1.0)] {
        let mut b = sender(&[("congestion", Value::Choice("dctcp")), iw(8)]);
        ack_with(&mut b, 2, 5 + marks);
        let alpha = 15.0 / 16.0 + m / 16.0;
        assert_eq!(b.endpoint.cwnd(), 8.0 * (1.0 - alpha / 2.0), "{marks}");
    }
}

/// The receiver of DCTCP acknowledges each change separately (RFC 8257, 3.2); with AccECN, the counter says the same
/// without a second acknowledgment.
///
/// Rules: 9768 3.2.2.5.1 DCTCP
#[test]
fn the_receiver_of_dctcp_needs_no_second_acknowledgment() {
    let mut b = receiver(&[("congestion", Value::Choice("dctcp"))]);
    let mut sent = arrive_as(&mut b, segment(1, 1, MSS), Ecn::Ect0);
    assert!(sent.is_empty());
    sent = arrive_as(&mut b, segment(1 + MSS, 1, MSS), Ecn::Ce);
    assert_eq!(sent.iter().map(|s| ((s.ack - 1) / MSS, s.flags.ace())).collect::<Vec<_>>(), [(2, 6)]);
}

/// The choices of draft-ietf-tcpm-generalized-ecn.
///
/// Rules: 9768 3.1.5 ECT
#[test]
fn control_packets_are_ecn_capable_by_choice() {
    let flags =
        ["dsack", "ect_on_ack", "ect_on_bare_fin", "ect_on_reset", "ect_on_retransmission", "ect_on_syn"];
    for capable in [false, true] {
        let mut more: Vec<(&'static str, Value)> =
            flags.iter().map(|name| (*name, Value::Flag(capable || *name == "dsack"))).collect();
        more.push(("recovery", Value::Choice("sack")));
        let expected = if capable { Ecn::Ect0 } else { Ecn::NotEct };
        let mut b = Bench::new(Role::Active, &accurate(&more));
        assert_eq!(b.connect().ecn, expected, "SYN");
        b.endpoint.write(2 * u64::from(MSS));
        let code = if capable { 0b100 } else { 0b010 };
        let sent = b.arrive(Segment { flags: SYN_ACK.with_ace(code), ..b.syn_ack() });
        assert_eq!((sent[0].len, sent[0].ecn), (0, expected), "pure ACK");
        assert_eq!((sent[1].len, sent[1].ecn), (MSS, Ecn::Ect0), "data");
        assert_eq!(b.fire()[0].ecn, expected, "retransmission");
        ack_with(&mut b, 2, 5);
        b.endpoint.close();
        let fin = b.drain();
        assert!(fin[0].flags.has(Flags::FIN) && fin[0].ecn == expected, "FIN");
        b.endpoint.abort();
        let reset = b.drain();
        assert!(reset[0].flags.has(Flags::RST) && reset[0].ecn == expected, "RST");
    }
}

fn options(counters: (u32, u32, u32), order: u8, count: u8) -> Options {
    let (ect0_bytes, ce_bytes, ect1_bytes) = counters;
    let counters = aqmlab_transport::EcnCounters { ce_packets: 0, ce_bytes, ect0_bytes, ect1_bytes };
    Options { accurate_ecn: AccEcnOption::new(&counters, order, count), ..Options::NONE }
}

/// Appendix A.2.2: the option tells that a large acknowledgment reports few marks.
///
/// Rules: 9768 3.2.3.1; 9768 3.2.3.2.3
#[test]
fn the_option_tells_how_many_marks_there_were() {
    let given = [iw(16), ("ecn_option", Value::Choice("simple"))];
    for (bytes, marks) in [(2 * MSS, 2), (10 * MSS, 10)] {
        let mut b = sender(&given);
        let ack = Segment { flags: Flags::ACK.with_ace(7), ..ack_of(10) };
        b.arrive_with_options(ack, &options((1 + 10 * MSS - bytes, bytes, 1), 0, 2));
        assert_eq!(heard(&b.endpoint), 5 + marks);
        assert_eq!(b.endpoint.ecn_counters().expect("AccECN").1.ce_bytes, bytes);
    }
}

/// Rules: 9768 3.2.3.2.4; 9768 3.2.3.2.5
#[test]
fn a_zeroed_option_is_ignored_and_one_that_contradicts_ace_ends_ect() {
    for (ect0, known) in [(0, 1), (1, 101)] {
        let mut b = Bench::new(Role::Active, &accurate(&[]));
        b.connect();
        b.endpoint.write(ENDLESS);
        let answer = Segment { flags: SYN_ACK.with_ace(0b010), ..b.syn_ack() };
        b.arrive_with_options(answer, &options((ect0, 0, 1), 0, 3));
        let ack = Segment { flags: Flags::ACK.with_ace(5), ..ack_of(1) };
        b.arrive_with_options(ack, &options((101, 0, 1), 0, 1));
        assert_eq!(b.endpoint.ecn_counters().expect("AccECN").1.ect0_bytes, known);
    }
    let mut b = sender(&[]);
    let ack = Segment { flags: Flags::ACK.with_ace(5), ..ack_of(1) };
    let sent = b.arrive_with_options(ack, &options((1, MSS, 1), 0, 2));
    assert!(sent.iter().all(|s| s.ecn == Ecn::NotEct) && !sent.is_empty());
}

/// Returns the option of a segment that has just left: its kind's order, and its fields.
fn option_of(b: &Bench, segment: &Segment) -> Option<[Option<u32>; 3]> {
    let option = b.endpoint.options(segment, &b.profile).accurate_ecn;
    assert_eq!(option.is_present(), segment.extras.accurate_ecn_len() > 0);
    assert_eq!(
        option.wire_len().next_multiple_of(4) as u8 * u8::from(option.is_present()),
        segment.extras.accurate_ecn_len()
    );
    option.is_present().then(|| option.fields())
}

/// The two examples of section 3.2.3.3.
///
/// Rules: 9768 3.2.3.3 simple; 9768 3.2.3.2.1
#[test]
fn an_option_has_the_counters_that_have_ever_changed() {
    let simple = [("ecn_option", Value::Choice("simple")), ("ack_every", Value::Integer(1))];
    let mut b = receiver(&simple);
    let arrive = |b: &mut Bench, n: u32, ecn| {
        let sent = arrive_as(b, segment(1 + n * 100, 1, 100), ecn);
        option_of(b, &sent[0])
    };
    assert_eq!(arrive(&mut b, 0, Ecn::NotEct), None, "no counter has changed");
    assert_eq!(arrive(&mut b, 1, Ecn::Ect0), Some([Some(101), None, None]));
    assert_eq!(arrive(&mut b, 2, Ecn::Ect0), Some([Some(201), None, None]));
    assert_eq!(arrive(&mut b, 3, Ecn::Ce), Some([Some(201), Some(100), None]));
    assert_eq!(arrive(&mut b, 4, Ecn::Ect0), Some([Some(301), Some(100), None]));
    assert_eq!(arrive(&mut b, 5, Ecn::Ect1), Some([Some(301), Some(100), Some(101)]));
    let mut b = receiver(&simple);
    assert_eq!(arrive(&mut b, 0, Ecn::Ce), Some([Some(1), Some(100), None]), "either order");
    assert_eq!(arrive(&mut b, 1, Ecn::Ect1), Some([None, Some(100), Some(101)]), "order 1");
    // Handshake: on the SYN-ACK, its acknowledgment and the first data.
    let mut b = Bench::new(Role::Active, &accurate(&simple[..1]));
    assert_eq!(b.connect().extras.accurate_ecn_len(), 0, "never on a SYN");
    b.endpoint.write(ENDLESS);
    let syn_ack = Segment { flags: SYN_ACK.with_ace(0b010), ..b.syn_ack() };
    let sent = b.arrive(syn_ack);
    let options: Vec<u8> = sent.iter().map(|s| s.extras.accurate_ecn_len()).collect();
    assert_eq!((options[..3].to_vec(), sent[0].len), (vec![12, 12, 0], 0));
    assert_eq!(sent[1].wire_len(40).get(), 40 + 12 + u64::from(MSS));
}

/// Rules: 9768 3.2.3.2.2 first data
#[test]
fn when_the_first_data_is_lost_no_option_is_sent() {
    let simple = [("ecn_option", Value::Choice("simple")), ("ack_every", Value::Integer(1))];
    for loses in [false, true] {
        let mut b = sender(&simple);
        if loses {
            assert_eq!(b.fire()[0].extras.accurate_ecn_len(), 0);
        }
        let data = Segment { flags: Flags::ACK.with_ace(5), len: 10, ..ack_of(10) };
        let sent = arrive_as(&mut b, data, Ecn::Ect0);
        assert_eq!(sent[0].extras.accurate_ecn_len() > 0, !loses);
    }
}

/// Linux sends an option on each segment, but none before it has received one.
///
/// Rules: 9768 3.2.3.3 each; 9768 3.2.3.2.3 sends
#[test]
fn each_segment_has_an_option_by_choice_once_one_is_heard() {
    for (if_heard, hears) in [(false, false), (true, false), (true, true)] {
        let more = [
            ("ecn_option", Value::Choice("each")),
            ("ecn_option_if_heard", Value::Flag(if_heard)),
            ("ack_every", Value::Integer(1)),
        ];
        let mut b = Bench::new(Role::Passive, &accurate(&more));
        let sent = b.arrive(Segment { flags: Flags::SYN.with_ace(0b111), ..segment(0, 0, 0) });
        assert_eq!(option_of(&b, &sent[0]), Some([Some(1), Some(0), Some(1)]), "the SYN-ACK always has one");
        let answer = Segment { flags: Flags::ACK.with_ace(0b010), ..segment(1, 1, 0) };
        b.arrive_with_options(answer, &if hears { options((1, 0, 1), 1, 3) } else { Options::NONE });
        b.endpoint.write(u64::from(MSS));
        let data = b.drain();
        let sends = hears || !if_heard;
        assert_eq!(option_of(&b, &data[0]).is_some(), sends, "data without news");
        // One that arrives later counts, too.
        let late = Segment { flags: Flags::ACK.with_ace(5), ..segment(1, 1, 100) };
        let sent = b.arrive_with_options(late, &options((1, 0, 1), 1, 3));
        assert_eq!(option_of(&b, &sent[0]), Some([Some(1), Some(0), Some(1)]));
    }
}

/// Data behind the first one has arrived with an option, so the first one was not lost because of its option.
///
/// Rules: 9768 3.2.3.2.2 first data
#[test]
fn when_other_data_with_an_option_arrives_the_first_keeps_its_own() {
    let more = [
        ("ecn_option", Value::Choice("each")),
        ("recovery", Value::Choice("sack")),
        ("dsack", Value::Flag(true)),
        ("sack_pipe", Value::Choice("segments")),
    ];
    for arrives in [false, true] {
        let mut b = sender(&more);
        if arrives {
            b.arrive_with(Segment { flags: Flags::ACK.with_ace(5), ..ack_of(0) }, &[(1, 2)]);
        }
        let again = b.fire();
        assert_eq!((again[0].seq, again[0].extras.accurate_ecn_len() > 0), (1, arrives));
    }
}

/// With 12 bytes of time stamps, 28 remain: two blocks and 8 bytes, three blocks alone, or one block and 12 bytes.
///
/// Rules: 9768 3.2.3.3 SACK
#[test]
fn an_option_leaves_room_for_two_blocks() {
    let more = [
        ("recovery", Value::Choice("sack")),
        ("dsack", Value::Flag(true)),
        ("ecn_option", Value::Choice("simple")),
        ("header", Value::Size(aqmlab_units::text::Size::Bytes(aqmlab_units::Bytes::new(52)))),
        ("sack_blocks", Value::Integer(3)),
    ];
    let mut b = receiver(&more);
    let beyond = |b: &mut Bench, n: u32, ecn| {
        let sent = arrive_as(b, segment(1 + n * 100, 1, 50), ecn);
        let options = b.endpoint.options(&sent[0], &b.profile);
        let len = sent[0].extras.accurate_ecn_len();
        assert_eq!(usize::from(sent[0].sack_len), 4 + 8 * options.sack.blocks().len());
        assert!(sent[0].options_len() <= 28);
        (len, options.sack.blocks().len())
    };
    assert_eq!(beyond(&mut b, 1, Ecn::Ect0), (8, 1));
    assert_eq!(beyond(&mut b, 3, Ecn::Ect0), (8, 2));
    assert_eq!(beyond(&mut b, 5, Ecn::Ce), (8, 2), "the option precedes the third block");
    assert_eq!(beyond(&mut b, 7, Ecn::Ect1), (0, 3), "three counters would leave room for one block");
    assert_eq!(beyond(&mut b, 9, Ecn::NotEct), (0, 3));
}
