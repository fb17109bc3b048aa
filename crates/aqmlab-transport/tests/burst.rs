//! New data leaves in bursts, as from a host with segmentation offload, or as single segments if
//! bursts are turned off.

mod support;

use aqmlab_params::{Origin, Value};
use aqmlab_transport::{ENDLESS, Flags, Profile, profile_settings};
use aqmlab_units::{Instant, Rate, Span};
use support::{A, B, Fate, Faults, Link, Pair, Path, faultless};

/// Returns an open connection. A segment takes 1 ms on the slow link, ACKs are not delayed (one per segment),
/// and one data segment may be lost.
fn pair(given: &[(&'static str, Value)], lost: u32) -> Pair {
    let mut settings = profile_settings("modern").expect("built in");
    let fixed = [
        ("ack_every", Value::Integer(1)),
        ("initial_window", Value::Integer(20)),
        ("slow_start_exit", Value::Choice("none")),
        ("tail_loss_probe", Value::Flag(false)),
    ];
    for (name, value) in fixed.iter().chain(given) {
        settings.set(name, value.clone(), Origin::Given);
    }
    let profile = Profile::resolve(&mut settings).expect("consistent");
    let slow = Link::new(Rate::mbit(12), Span::ms(20), usize::MAX);
    let fast = || Link::new(Rate::mbit(100_000), Span::ms(20), usize::MAX);
    let mut data = 0;
    let lossy: Faults = Box::new(move |_, segment| {
        data += u32::from(segment.len > 0);
        if segment.len > 0 && data == lost { Fate::Drop } else { Fate::Pass }
    });
    let there = Path::new([fast(), slow], lossy);
    let mut net = Pair::new(profile, [there, Path::new([fast(), fast()], faultless())]);
    net.open(Instant::ZERO);
    net
}

/// Returns the sizes, in segments, of the groups that leave together, in order.
fn bursts(given: &[(&'static str, Value)], segments: u64) -> Vec<usize> {
    let mut net = pair(given, 0);
    let mss = 1448;
    net.with(A, |e, _, _| e.write(segments * mss));
    net.run_until(Instant::ZERO + Span::s(20));
    assert_eq!(net.sides[A].endpoint.acked().get(), segments * mss, "all of it arrives");
    assert_eq!(net.sides[A].endpoint.counters().timeouts, 0);
    let sent = net.sides[A].data_sent();
    sent.chunk_by(|a, b| a.0 == b.0).map(<[_]>::len).collect()
}

fn burst(segments: u64, time: Span) -> [(&'static str, Value); 2] {
    [("burst", Value::Integer(segments)), ("burst_time", Value::Span(time))]
}

/// In slow start, each acknowledgment releases two segments; with bursts of four, every second
/// acknowledgment releases four.
#[test]
fn what_fits_the_window_leaves_in_bursts() {
    let alone = bursts(&[], 60);
    assert_eq!((alone[0], &alone[1..21]), (20, &[2; 20][..]));
    let four = bursts(&burst(4, Span::ZERO), 60);
    assert_eq!((four[0], &four[1..11]), (20, &[4; 10][..]));
}

/// There are 63 segments, so the last burst contains only the three remaining ones.
#[test]
fn the_last_data_waits_for_nothing() {
    let sent = bursts(&burst(4, Span::ZERO), 63);
    assert_eq!((sent.iter().sum::<usize>(), sent.last()), (63, Some(&3)), "{sent:?}");
}

/// After n acknowledgments in slow start, the window is 20 + n segments, and each acknowledgment
/// makes room for two more. A third of the window (rounded down) is free after 4 acknowledgments (8
/// of 24 segments), after 5 more (10 of 29, where 9 suffice) and after 6 more (12 of 35, where 11
/// suffice). The last burst consists of the remaining ten segments.
#[test]
fn no_burst_waits_for_more_than_a_third_of_the_window() {
    assert_eq!(bursts(&burst(64, Span::ZERO), 60), [20, 8, 10, 12, 10]);
}

/// The handshake measures a round-trip time of 80 ms. Twenty segments per 80 ms, doubled in slow
/// start, make half a segment per millisecond, so the minimum of two segments per burst applies. In
/// 12 ms, six segments leave at the pacing rate, and more as the window grows.
#[test]
fn a_burst_is_what_the_paced_rate_sends_in_its_time() {
    let least = bursts(&burst(44, Span::ms(1)), 60);
    assert_eq!((least[0], &least[1..21]), (20, &[2; 20][..]));
    let timed = bursts(&burst(44, Span::ms(12)), 60);
    assert!((6..=8).contains(&timed[1]), "{timed:?}");
    assert!(timed.len() < least.len() / 2, "{timed:?}");
}

/// The part of the window that is unused because a burst is waiting counts as used, so in
/// congestion avoidance the window still grows, also where only a full window may grow
/// (`idle_restart = "rfc2861"`). If an acknowledgment stands for two segments, a
/// burst of eight may leave room for one segment more, so the window is rarely full.
#[test]
fn what_waits_counts_as_used() {
    for (control, growth, idle) in [
        ("reno", "rfc9438", "rfc5681"),
        ("reno", "linux", "rfc2861"),
        ("cubic", "rfc9438", "rfc5681"),
        ("cubic", "linux", "rfc5681"),
        ("cubic", "rfc9438", "rfc2861"),
        ("cubic", "linux", "rfc2861"),
    ] {
        for acks in [1, 2] {
            let grown = |given: &[(&'static str, Value)]| {
                let rules = [
                    ("congestion", Value::Choice(control)),
                    ("cubic_growth", Value::Choice(growth)),
                    ("idle_restart", Value::Choice(idle)),
                    ("ack_every", Value::Integer(acks)),
                ];
                let mut net = pair(&[&rules, given].concat(), 40);
                net.with(A, |e, _, _| e.write(ENDLESS));
                net.run_until(Instant::ZERO + Span::s(3));
                assert!(net.sides[A].endpoint.counters().fast_retransmits == 1);
                net.sides[A].endpoint.cwnd()
            };
            let (alone, eight) = (grown(&[]), grown(&burst(8, Span::ZERO)));
            assert!(
                eight > 0.88 * alone && eight < 1.1 * alone,
                "{control}, {growth}, {idle}, every {acks}: {eight}, {alone} without"
            );
        }
    }
}

/// Bursts of four: PSH is on every fourth segment and, because the application has written no more, on
/// the last of the three that remain (RFC 9293, 3.9.1.2: "the last buffered segment").
#[test]
fn the_last_segment_of_a_burst_and_of_what_was_written_carry_push() {
    let mut net = pair(&[&burst(4, Span::ZERO)[..], &[("push", Value::Flag(true))]].concat(), 0);
    net.with(A, |e, _, _| e.write(63 * 1448));
    net.run_until(Instant::ZERO + Span::s(20));
    let data = net.sides[A].sent.iter().filter(|(_, segment)| segment.len > 0);
    let pushed: Vec<usize> =
        (1..).zip(data).filter(|(_, (_, s))| s.flags.has(Flags::PSH)).map(|(n, _)| n).collect();
    assert_eq!(pushed, (1..=15).map(|n| 4 * n).chain([63]).collect::<Vec<_>>());
}

/// The first flight of 20 segments leaves in bursts of three, and two. A receiver that acknowledges every
/// second segment also acknowledges the last one of each burst if it minds PSH.
#[test]
fn a_segment_with_push_is_acknowledged_immediately() {
    let acks = |minds| {
        let rules = [
            ("ack_every", Value::Integer(2)),
            ("push", Value::Flag(true)),
            ("ack_pushed", Value::Flag(minds)),
        ];
        let mut net = pair(&[&burst(3, Span::ZERO)[..], &rules].concat(), 0);
        net.with(A, |e, _, _| e.write(20 * 1448));
        net.run_until(Instant::ZERO + Span::s(20));
        let acked = net.sides[B].sent.iter().map(|(_, segment)| (segment.ack.saturating_sub(1)) / 1448);
        acked.filter(|segments| *segments > 0).collect::<Vec<_>>()
    };
    assert_eq!(acks(false), [2, 4, 6, 8, 10, 12, 14, 16, 18, 20]);
    assert_eq!(acks(true), [2, 3, 5, 6, 8, 9, 11, 12, 14, 15, 17, 18, 20]);
}
