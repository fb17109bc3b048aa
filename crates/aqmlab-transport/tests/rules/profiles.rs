//! How the profiles differ in the segments that they send.

use aqmlab_params::Value;
use aqmlab_transport::{ENDLESS, Extras, Flags, Options, Role, Segment, Stamps};
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Ecn, Instant, Span};

use crate::bench::{Bench, MSS, ack_of, iw, ms, sack, segment};

/// Returns a sender after a handshake of 100 ms, and its first flight.
fn sender(profile: &str) -> (Bench, Vec<Segment>) {
    let mut b = Bench::of(profile, Role::Active, &[]);
    b.connect();
    b.endpoint.write(ENDLESS);
    b.now = ms(100);
    let window = b.profile.receive_window;
    let sent = b.arrive(Segment { flags: Flags::SYN | Flags::ACK, window, ..segment(0, 1, 0) });
    (b, sent.into_iter().filter(|s| s.len > 0).collect())
}

/// Rules: 5681 3.1 initial window; 6928 2; 6298 2.4
#[test]
fn the_first_flight_and_its_timeout() {
    // Number of segments in the first flight, and how long after this flight the timer fires.
    for (profile, flight, timeout) in [
        ("rfc", 3, Span::s(1)),
        ("ns2", 2, Span::ms(300)),
        ("freebsd4", 2, Span::s(1)),
        // The timeout, SRTT + max(200 ms, 4 RTTVAR), is 300 ms and would expire at 400 ms; timers
        // that far ahead fire at the next multiple of eight ticks of 1 ms.
        ("linux", 10, Span::ms(308)),
    ] {
        let (mut b, sent) = sender(profile);
        assert_eq!(sent.len(), flight, "{profile}");
        assert!(sent.iter().all(|s| s.len == b.profile.mss));
        assert_eq!(b.fire()[0].seq, 1);
        assert_eq!(b.now - ms(100), timeout, "{profile}");
    }
}

/// RFC 5681 counts segments: four of at most 1095 bytes, three of at most 2190, two above. RFC 6928 counts bytes:
/// min(10 * MSS, max(2 * MSS, 14600)), of which only whole segments leave. Linux sends ten of any size.
///
/// Rules: 5681 3.1 initial window; 6928 2; 5681 4.1
#[test]
fn first_flights_by_segment_size() {
    for (mss, rfc, modern) in [
        (536, 4, 10),
        (1095, 4, 10),
        (1096, 3, 10),
        (1448, 3, 10),
        (1460, 3, 10),
        (1461, 3, 9), // 14600 / 1461 = 9.993
        (2190, 3, 6),
        (2191, 2, 6),
        (4000, 2, 3),
        (7300, 2, 2),
        (8960, 2, 2),
        (60_000, 2, 2),
    ] {
        for (profile, flight) in [("rfc", rfc), ("modern", modern), ("linux", 10)] {
            let size = Value::Size(Size::Bytes(Bytes::new(mss)));
            let given = [("mss", size), ("ack_every", Value::Integer(1)), ("nagle", Value::Flag(false))];
            let mut b = Bench::of(profile, Role::Active, &given);
            b.connect();
            b.endpoint.write(40 * mss);
            b.now = ms(100);
            let sent = b.arrive(b.syn_ack()).into_iter().filter(|s| s.len > 0).count();
            assert_eq!(sent, flight, "{profile} with segments of {mss} B");
            // All is acknowledged, one segment at a time; then the restart window applies (RFC 5681, 4.1).
            let mut acked = 1;
            while b.endpoint.flight().get() > 0 {
                b.now += Span::ms(100);
                acked += mss as u32;
                b.arrive(segment(1, acked, 0));
            }
            let window = b.endpoint.cwnd();
            assert!(window > flight as f64, "{profile} with segments of {mss} B: {window}");
            b.now += Span::s(600);
            b.endpoint.write(40 * mss);
            assert_eq!(b.drain().len(), flight, "{profile} with segments of {mss} B, after a pause");
        }
    }
}

/// RFC 5681 begins with one segment after any lost SYN or SYN-ACK. Linux does so after two retransmissions, one of
/// them by the timer, unless the time stamp shows that the first SYN-ACK was answered (measured: cases `synack`,
/// `synack2` and `synacks_too_late` of `vectors/linux-short-flows`).
///
/// Rules: 5681 3.1 lost SYN; 7323 4.1
#[test]
fn first_flights_after_repeated_syn_acks() {
    #[derive(Clone, Copy, PartialEq)]
    enum Repeated {
        Timer,
        Syn,
    }
    use Repeated::{Syn, Timer};
    for (repeated, first_is_answered, rfc, linux) in [
        (&[][..], true, 3, 10),
        (&[Timer], false, 1, 10),
        (&[Syn], false, 1, 10),
        (&[Timer, Syn], false, 1, 1),
        (&[Timer, Timer], false, 1, 1),
        (&[Timer, Timer], true, 1, 10),
    ] {
        for (profile, flight) in [("rfc", rfc), ("linux", linux)] {
            let mut b = Bench::of(profile, Role::Passive, &[]);
            let extras = Extras::NONE.with_if(Extras::SACK_PERMITTED, profile == "linux");
            let syn = Segment { flags: Flags::SYN, ack: 0, extras, ..segment(0, 0, 0) };
            b.arrive(syn);
            for how in repeated {
                b.now += Span::ms(10);
                let sent = if *how == Timer { b.fire() } else { b.arrive(syn) };
                assert!(sent[0].flags.has(Flags::SYN));
            }
            let (again, ack) = (b.now, segment(1, 1, 0));
            b.now += Span::ms(100);
            b.endpoint.write(ENDLESS);
            let copy = profile == "linux" && !first_is_answered;
            let sent = if copy {
                let options = Options { stamps: Stamps::echoing(again), ..Options::NONE };
                b.arrive_with_options(Segment { extras: Extras::STAMPED, ..ack }, &options)
            } else {
                b.arrive(ack)
            };
            let case = repeated.iter().map(|how| if *how == Timer { 't' } else { 's' }).collect::<String>();
            assert_eq!(sent.len(), flight, "{profile} after {case}, first answered: {first_is_answered}");
            if copy {
                assert_eq!(b.endpoint.srtt(), Some(Span::ms(100)), "the time stamp measures the copy");
            }
        }
    }
}

/// Without a list of segments, `timestamps` has no effect: a repeated SYN carries none, and nothing measures it.
#[test]
fn time_stamps_need_a_list_of_segments() {
    // The SYN-ACK echoes the first SYN, which left 1.1 s before: SRTT + 4 RTTVAR = 1.1 s + 4 * 0.55 s.
    for (pipe, stamped, rto) in [("rfc6675", false, Span::s(3)), ("segments", true, Span::ms(3300))] {
        let given = [
            ("timestamps", Value::Flag(true)),
            ("recovery", Value::Choice("sack")),
            ("sack_pipe", Value::Choice(pipe)),
        ];
        let mut b = Bench::new(Role::Active, &given);
        b.connect();
        assert_eq!(b.fire()[0].extras.has(Extras::STAMPED), stamped, "{pipe}");
        b.now += Span::ms(100);
        b.arrive(Segment { extras: Extras::SACK_PERMITTED, ..b.syn_ack() });
        assert_eq!((b.endpoint.srtt().is_some(), b.endpoint.rto(&b.profile)), (stamped, rto), "{pipe}");
    }
}

/// Once the deviation has decayed, Linux's timeout is 200 ms above the round trip, not 200 ms in total.
#[test]
fn the_least_timeout_of_a_steady_path() {
    for (profile, timeout) in [("rfc", 1000), ("freebsd4", 1000), ("linux", 300), ("ns2", 200)] {
        let (mut b, _) = sender(profile);
        b.profile.max_window = 100;
        let mut acked = 1;
        for _ in 0..60 {
            b.now += Span::ms(100);
            while b.endpoint.flight().get() > 0 {
                acked += b.endpoint.flight().get() as u32;
                b.endpoint.on_segment(b.now, &segment(1, acked, 0), &b.profile);
            }
            b.drain();
        }
        assert_eq!(b.endpoint.rto(&b.profile), Span::ms(timeout), "{profile}");
    }
}

/// Returns the payload length of each segment, and whether it has the FIN.
fn ends(sent: &[Segment]) -> Vec<(u32, bool)> {
    sent.iter().map(|s| (s.len, s.flags.has(Flags::FIN))).collect()
}

/// FullTcp behaves in this way: see `full_flow.tcl` in `tests/python/test_full_tcp.py`.
#[test]
fn a_fin_apart_waits_until_nothing_is_outstanding() {
    let closed = |bytes: u32, fin| {
        let mut b = Bench::established(&[iw(4), ("fin", Value::Choice(fin))]);
        b.endpoint.withdraw();
        b.now = ms(200);
        b.arrive(ack_of(4));
        b.endpoint.write(bytes.into());
        b.endpoint.close();
        let sent = b.drain();
        (b, sent)
    };
    let (_, sent) = closed(500, "apart");
    assert_eq!(ends(&sent), [(500, true)], "nothing else is outstanding");
    let (_, sent) = closed(MSS + 500, "with_data");
    assert_eq!(ends(&sent), [(MSS, false), (500, true)]);

    let (mut b, sent) = closed(MSS + 500, "apart");
    assert_eq!(ends(&sent), [(MSS, false), (500, false)]);
    assert_eq!(b.ack(5), [], "500 bytes are outstanding");
    assert_eq!(ends(&b.fire()), [(500, false)], "they left without it, and leave so again");
    assert_eq!(ends(&b.arrive(segment(1, 1 + 5 * MSS + 500, 0))), [(0, true)]);
    assert_eq!(ends(&b.fire()), [(0, true)]);

    let (mut b, _) = closed(500, "apart");
    assert_eq!(ends(&b.fire()), [(500, true)], "it left with them, and leaves so again");
}

/// Minshall's rule sends the last part of a message right after its full segments, but delays a
/// second small part.
#[test]
fn a_partial_segment_waits_for_data_or_for_another_partial_segment() {
    for (rule, first) in [("rfc1122", &[MSS][..]), ("minshall", &[MSS, 300])] {
        let pipe = ("sack_pipe", Value::Choice("segments"));
        let nagle = ("nagle", Value::Flag(true));
        let mut b = Bench::established(&[iw(4), sack(), pipe, nagle, ("nagle_rule", Value::Choice(rule))]);
        b.endpoint.withdraw();
        b.now = ms(200);
        b.ack(4);
        b.endpoint.write(u64::from(MSS + 300));
        let lens = |sent: Vec<Segment>| sent.iter().map(|s| s.len).collect::<Vec<_>>();
        assert_eq!(lens(b.drain()), first, "{rule}");
        b.endpoint.write(200);
        assert_eq!(b.drain(), [], "{rule}");
        let held = MSS + 300 + 200 - first.iter().sum::<u32>();
        assert_eq!(lens(b.arrive(segment(1, 1 + 4 * MSS + first.iter().sum::<u32>(), 0))), [held], "{rule}");
    }
}

/// After a loss, the window is `ssthresh`, which is at least two segments and, with `whole_segments`, a whole number.
#[test]
fn half_of_the_congestion_window_is_cut_to_whole_segments() {
    for (window, whole, left) in
        [(11, true, 5.0), (11, false, 5.5), (5, true, 2.0), (5, false, 2.5), (3, true, 2.0), (3, false, 2.0)]
    {
        let base = ("reduction_base", Value::Choice("congestion_window"));
        let whole_segments = ("whole_segments", Value::Flag(whole));
        let mut b = Bench::established(&[iw(window), base, whole_segments, ("dupthresh", Value::Integer(1))]);
        b.ack(0);
        assert_eq!((b.endpoint.cwnd(), b.endpoint.ssthresh()), (left, left), "{window} {whole}");
    }
}

/// Four acknowledged segments of 500 B open the window by four segments, or by 2000 B.
#[test]
fn segments_that_are_not_full_count_as_segments_or_as_bytes() {
    for (count_segments, opened) in [(true, 4.0), (false, 4.0 * 500.0 / 1448.0)] {
        let given = [
            ("count_segments", Value::Flag(count_segments)),
            ("nagle", Value::Flag(false)),
            ("window_validation", Value::Flag(false)),
        ];
        let mut b = Bench::of("linux", Role::Active, &given);
        b.connect();
        b.now = ms(100);
        let window = b.profile.receive_window;
        b.arrive(Segment { flags: Flags::SYN | Flags::ACK, window, ..segment(0, 1, 0) });
        for _ in 0..4 {
            b.endpoint.write(500);
            b.drain();
        }
        b.now = ms(200);
        let before = b.endpoint.cwnd();
        b.arrive(segment(1, 2001, 0));
        let opens = b.endpoint.cwnd() - before;
        assert!((opens - opened).abs() < 1e-9, "{count_segments}: {opens}");
    }
}

/// After a pause, sixteen segments are acknowledged individually. Starting with the first marked
/// segment, or with a segment that is not ECN-capable, two segments are acknowledged individually.
/// A segment with CWR is acknowledged immediately.
#[test]
fn segments_are_acknowledged_each_after_a_pause_and_at_marks() {
    let given = [("quick_acks_again", Value::Integer(16)), ("ecn", Value::Flag(true))];
    let mut b = Bench::accepted(&given);
    let mut next = 1;
    let mut arrive = |b: &mut Bench, flags: Flags, ce: bool| {
        next += 100;
        b.arrive_marked(Segment { flags, ecn: Ecn::Ect0, ..segment(next - 100, 1, 100) }, ce).len()
    };
    let mut acks = |b: &mut Bench, n: usize| (0..n).map(|_| arrive(b, Flags::ACK, false)).sum::<usize>();
    assert_eq!(acks(&mut b, 4), 2, "every second");
    b.now += Span::s(2);
    assert_eq!(acks(&mut b, 20), 16 + 2);
    assert_eq!((arrive(&mut b, Flags::ACK, true), arrive(&mut b, Flags::ACK, false)), (1, 1));
    assert_eq!(arrive(&mut b, Flags::ACK, false), 0);
    assert_eq!(arrive(&mut b, Flags::ACK, false), 1);
    assert_eq!(arrive(&mut b, Flags::ACK | Flags::CWR, false), 1);
    let again = b.arrive(segment(next, 1, 100)).len();
    assert_eq!((again, b.arrive(Segment { ecn: Ecn::Ect0, ..segment(next + 100, 1, 100) }).len()), (1, 1));
    assert_eq!(b.arrive(Segment { ecn: Ecn::Ect0, ..segment(next + 200, 1, 100) }).len(), 0);
}

/// The kernel acknowledges before the application runs, unless data that was already waiting
/// carries the acknowledgment.
#[test]
fn an_acknowledgment_that_is_due_leaves_before_the_answer() {
    for (rule, waiting, sent) in
        [("with_answer", 0, vec![300]), ("apart", 0, vec![0, 300]), ("apart", 50, vec![350])]
    {
        let mut b =
            Bench::accepted(&[("quick_acks", Value::Integer(16)), ("prompt_ack", Value::Choice(rule))]);
        b.endpoint.write(waiting);
        b.endpoint.on_segment(b.now, &segment(1, 1, 100), &b.profile);
        b.endpoint.acknowledge_apart(&b.profile);
        b.endpoint.write(300);
        let lens: Vec<u32> = b.drain().iter().map(|s| s.len).collect();
        assert_eq!(lens, sent, "{rule}");
    }
}

/// A duplicate segment starts a series of sixteen segments that are acknowledged individually. Data beyond a
/// hole also ends a pause, so the data that follows it starts no such series.
#[test]
fn segments_are_acknowledged_each_from_a_repetition_on() {
    let mut b = Bench::accepted(&[("quick_acks_again", Value::Integer(16))]);
    let acks = |b: &mut Bench, numbers: core::ops::Range<u32>| -> usize {
        numbers.map(|n| b.arrive(segment(1 + n * 100, 1, 100)).len()).sum()
    };
    assert_eq!((acks(&mut b, 0..4), acks(&mut b, 3..4)), (2, 1));
    assert_eq!(acks(&mut b, 4..24), 15 + 2);
    b.now += Span::s(2);
    assert_eq!(acks(&mut b, 25..26), 1, "beyond a hole");
    b.now += Span::ms(100);
    assert_eq!((acks(&mut b, 24..25), acks(&mut b, 26..30)), (1, 2));
}

/// Five segments let the window grow, and the next four are also acknowledged individually. If the
/// first segment is beyond a hole, it also lets the window grow, but its acknowledgment ends the
/// initial phase; after that, only segments that let the window grow are acknowledged individually.
#[test]
fn segments_that_let_the_window_grow_are_acknowledged_each() {
    let order = |growing, sack: bool, first: u32| -> Vec<usize> {
        let mut b = Bench::accepted(&[
            ("quick_acks", Value::Integer(4)),
            ("quick_acks_again", Value::Integer(16)),
            ("quick_acks_growing", Value::Integer(growing)),
            ("recovery", Value::Choice(if sack { "sack" } else { "newreno" })),
        ]);
        let mut numbers: Vec<u32> = (0..14).filter(|n| *n != first).collect();
        numbers.insert(0, first);
        numbers.iter().map(|n| b.arrive(segment(1 + n * 100, 1, 100)).len()).collect()
    };
    let singly = |n: usize| (0..14).map(|at| usize::from(at < n || (at - n) % 2 == 1)).collect::<Vec<_>>();
    assert_eq!(order(0, true, 0), singly(4));
    assert_eq!(order(5, true, 0), singly(9));
    // Segments 1, 0, 2, 3 and 4 let the window grow.
    assert_eq!(order(5, true, 1), singly(5));
}

/// The delay of acknowledgments grows, but not beyond SRTT, which the handshake has measured as
/// 100 ms; segments in quick succession reduce it again.
///
/// Rules: 5681 4.2 delayed ack
#[test]
fn a_delay_follows_the_gaps_between_segments() {
    let given = [
        ("quick_acks_again", Value::Integer(16)),
        ("delayed_ack_adapts", Value::Flag(true)),
        ("delayed_ack", Value::Span(Span::ms(40))),
    ];
    for (gap, waits) in [(10, 40), (30, 50), (39, 59)] {
        let mut b = Bench::accepted(&given);
        let mut next = 1;
        let mut arrive = |b: &mut Bench| {
            next += 100;
            b.arrive(segment(next - 100, 1, 100)).len()
        };
        assert_eq!(arrive(&mut b) + arrive(&mut b), 1);
        b.now += Span::ms(gap);
        assert_eq!(arrive(&mut b), 0);
        let came = b.now;
        assert_eq!((b.fire().len(), b.now - came), (1, Span::ms(waits)), "after {gap} ms");
        b.now += Span::ms(70);
        arrive(&mut b);
        let came = b.now;
        assert_eq!(
            (b.fire().len(), b.now - came),
            (1, Span::ms(100.min(2 * waits))),
            "its wait has had no effect"
        );
    }
}

/// Rules: 6298 2.1; 6298 5.5
#[test]
fn lost_syns_by_profile() {
    // Linux's timers of 0.5 to 4 s fire at multiples of 64 ms, longer ones at multiples of 512 ms, always after
    // their time: 1000, 1024 + 2000, 3072 + 4000 and 7104 + 8000 ms.
    for (profile, at) in [
        ("rfc", [1000, 3000, 7000, 15_000]),
        ("ns2", [3000, 9000, 21_000, 45_000]),
        ("freebsd4", [3000, 9000, 21_000, 45_000]),
        ("linux", [1024, 3072, 7104, 15_360]),
    ] {
        let mut b = Bench::of(profile, Role::Active, &[]);
        b.connect();
        for ms in at {
            assert!(b.fire()[0].flags.has(Flags::SYN));
            assert_eq!(b.now, Instant::ZERO + Span::ms(ms), "{profile}");
        }
    }
}

/// Rules: 5681 4.2 delayed ack
#[test]
fn acknowledgments_by_profile() {
    // Number of ACKs for the first 20 segments, and the delay of the ACK for one more segment.
    // Linux counts the 40 ms in ticks, not including the current tick.
    for (profile, acks, delay) in
        [("rfc", 10, 200), ("ns2", 20, 0), ("freebsd4", 10, 100), ("linux", 16 + 2, 41)]
    {
        let mut b = Bench::of(profile, Role::Passive, &[]);
        b.arrive(Segment { flags: Flags::SYN, ack: 0, ..segment(0, 0, 0) });
        b.arrive(segment(1, 1, 0));
        let len = b.profile.mss;
        let sent: usize = (0..20).map(|n| b.arrive(segment(1 + n * len, 1, len)).len()).sum();
        assert_eq!(sent, acks, "{profile}");
        let last = b.arrive(segment(1 + 20 * len, 1, len));
        assert_eq!(last.len(), usize::from(delay == 0), "{profile}");
        if delay > 0 {
            let arrived = b.now;
            assert_eq!((b.fire().len(), b.now), (1, arrived + Span::ms(delay)), "{profile}");
        }
    }
}

/// Rules: 5681 3.1 send window
#[test]
fn the_windows_of_the_hosts_bound_the_flight() {
    for (profile, segments) in [("freebsd4", 11), ("ns2", 20)] {
        let (mut b, _) = sender(profile);
        let (len, window) = (b.profile.mss, b.profile.receive_window);
        for n in 1..=100 {
            b.arrive(Segment { window, ..segment(1, 1 + n * len, 0) });
        }
        assert!(b.endpoint.cwnd() > f64::from(segments));
        assert_eq!(b.endpoint.flight().get(), u64::from(segments * len), "{profile}");
    }
}

/// Returns a sender of `segments` segments, all of which have been acknowledged.
fn idle_after(rule: &'static str, segments: u32, lose_first: bool) -> Bench {
    let mut b = Bench::new(Role::Active, &[iw(4), ("idle_restart", Value::Choice(rule))]);
    b.connect();
    b.endpoint.write(u64::from(segments * MSS));
    b.now = ms(100);
    b.arrive(Segment { flags: Flags::SYN | Flags::ACK, ..segment(0, 1, 0) });
    if lose_first {
        b.fire();
    }
    (1..=segments).for_each(|n| drop(b.ack(n)));
    b
}

/// Rules: 2861 3.2
#[test]
fn a_pause_halves_the_window_for_each_timeout_down_to_the_restart_window() {
    for (timeouts, window) in [(0, 36), (1, 18), (2, 9), (3, 4), (9, 4)] {
        let mut b = idle_after("rfc2861", 32, false);
        assert_eq!(b.endpoint.cwnd(), 36.0);
        b.now += b.endpoint.rto(&b.profile).saturating_mul(timeouts) + Span::ms(1);
        b.endpoint.write(u64::from(40 * MSS));
        assert_eq!(b.drain().len(), window, "after {timeouts} timeouts");
    }
}

/// Rules: 2861 3.2
#[test]
fn a_pause_leaves_slow_start_up_to_three_quarters_of_the_window() {
    let mut b = idle_after("rfc2861", 60, true);
    let window = b.endpoint.cwnd();
    assert!(window > 8.0 && b.endpoint.ssthresh() == 2.0);
    b.now += b.endpoint.rto(&b.profile).saturating_mul(3);
    b.endpoint.write(u64::from(MSS));
    b.drain();
    assert_eq!((b.endpoint.cwnd(), b.endpoint.ssthresh()), (4.0, 0.75 * window));
}

/// FreeBSD 4, `tcp_output()`: a pause lasts a whole timeout since the last arrival, and the window is then set to the
/// flight size of slow start. A timeout that lies exactly at the end of the pause counts.
#[test]
fn a_pause_in_freebsd_sets_the_window_also_to_a_larger_value() {
    let sent_after = |b: &mut Bench, pause: Span| {
        b.now += pause;
        b.endpoint.write(u64::from(40 * MSS));
        b.drain().len()
    };
    let mut b = idle_after("freebsd", 32, false);
    let rto = b.endpoint.rto(&b.profile);
    assert_eq!(sent_after(&mut b, rto - Span::ns(1)), 36, "the window before the pause");
    let mut b = idle_after("freebsd", 32, false);
    assert_eq!(sent_after(&mut b, rto), 4);
    // After a timeout, two acknowledgments open the window from one segment to less than four.
    for (rule, raised) in [("freebsd", true), ("rfc5681", false)] {
        let mut b = idle_after(rule, 2, true);
        let (window, rto) = (b.endpoint.cwnd(), b.endpoint.rto(&b.profile));
        assert!(window < 4.0);
        assert_eq!(sent_after(&mut b, rto + Span::ms(1)), if raised { 4 } else { window as usize });
    }
}

/// RFC 5681, 4.1, on senders that count from the last segment received: "The reception of the request makes the
/// test for an idle connection fail".
#[test]
fn a_request_ends_a_pause_in_freebsd() {
    for (rule, sent) in [("freebsd", 36), ("rfc5681", 4)] {
        let mut b = idle_after(rule, 32, false);
        b.now += b.endpoint.rto(&b.profile).saturating_mul(10);
        b.arrive(segment(1, 1 + 32 * MSS, 100));
        b.endpoint.write(u64::from(40 * MSS));
        let full = b.drain().iter().filter(|segment| segment.len == MSS).count();
        assert_eq!(full, sent, "{rule}");
    }
}
