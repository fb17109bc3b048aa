//! A sender with packet numbers (`profile = "quic"`) against RFC 9002 and RFC 9000, section 13; each expected value is
//! computed by hand from the rule that it names.

mod support;

use aqmlab_params::{Origin, Value};
use aqmlab_transport::{ENDLESS, Profile, Segment, State, StreamEvent, profile_settings};
use aqmlab_units::{Instant, Rate, Span};
use support::{A, B, Fate, Faults, Link, Pair, Path, faultless, ms};

const MSS: u32 = 1165;

fn quic(given: &[(&'static str, Value)]) -> Profile {
    let mut settings = profile_settings("quic").expect("built in");
    settings.set("pacing", Value::Flag(false), Origin::Given);
    for (name, value) in given {
        settings.set(name, value.clone(), Origin::Given);
    }
    Profile::resolve(&mut settings).expect("consistent")
}

/// A round trip of 100 ms without a limit on the rate; the fates are those of data packets, which count from 1 as their
/// numbers do.
fn pair(given: &[(&'static str, Value)], mut fate: impl FnMut(u32) -> Fate + 'static) -> Pair {
    let link = |ms| Link::new(Rate::mbit(1_000_000), Span::ms(ms), usize::MAX);
    let faults: Faults =
        Box::new(move |_, segment: &Segment| if segment.len > 0 { fate(segment.window) } else { Fate::Pass });
    let paths = [Path::new([link(25), link(25)], faults), Path::new([link(25), link(25)], faultless())];
    let mut net = Pair::new(quic(given), paths);
    net.open(Instant::ZERO);
    net
}

fn drops(numbers: &'static [u32]) -> impl FnMut(u32) -> Fate + 'static {
    move |number| if numbers.contains(&number) { Fate::Drop } else { Fate::Pass }
}

/// The first byte of each packet, in segments, and its number, for packets that left at `at`, rounded to milliseconds.
fn left(net: &Pair, at: u64) -> Vec<(u32, u32)> {
    let data = net.sides[A].sent.iter().filter(|(t, s)| s.len > 0 && in_ms(*t) == at);
    data.map(|(_, s)| ((s.seq - 1) / MSS, s.window)).collect()
}

fn in_ms(at: Instant) -> u64 {
    (at.as_secs_f64() * 1e3).round() as u64
}

/// Appendix B.5: in slow start, the window grows by what is acknowledged: 10, 20 and 40 packets in the first round trips.
#[test]
fn the_window_doubles_in_each_round_trip_of_slow_start() {
    let mut net = pair(&[], |_| Fate::Pass);
    net.with(A, |e, _, _| e.write(ENDLESS));
    for (round, packets) in [(1, 10), (2, 20), (3, 40)] {
        net.run_until(ms(100 * round + 50));
        let sent = net.sides[A].sent.iter().filter(|(t, s)| s.len > 0 && *t > ms(100 * round - 50)).count();
        assert_eq!(sent, packets, "in round trip {round}");
    }
    let numbers: Vec<u32> =
        net.sides[A].sent.iter().filter(|(_, s)| s.len > 0).map(|(_, s)| s.window).collect();
    assert!(numbers.iter().zip(1..).all(|(number, n)| *number == n), "RFC 9000, 12.3: they increase by one");
}

/// Section 6.1.1: packet 3 is lost when packet 6 is acknowledged, and its data leaves in a packet with a new number. B.6:
/// the window is half of what it was, and stays so for the losses of the same round trip (packet 5).
#[test]
fn a_loss_halves_the_window_once_per_round_trip() {
    let mut net = pair(&[], drops(&[3, 5]));
    net.with(A, |e, _, _| e.write(ENDLESS));
    net.run_until(ms(150));
    assert_eq!(net.sides[A].endpoint.cwnd(), 10.0);
    net.run_until(ms(250));
    // Packets 1 and 2 open the window to 12. Acknowledgments of 4, of 6 (alone, because it follows a gap) and so on
    // belong to the recovery or come before it: 4 opens the window to 13, of which 6.5 remain.
    let sender = &net.sides[A].endpoint;
    assert_eq!(sender.ssthresh(), 6.5);
    assert_eq!((sender.counters().fast_retransmits, sender.counters().retransmitted), (1, 1));
    // Packets 11 to 16 have left before. 7.3.2: one packet leaves at once, although the window is full.
    assert_eq!(left(&net, 200).last(), Some(&(2, 17)));
    net.run_until(ms(290));
    assert_eq!(net.sides[A].endpoint.cwnd(), 6.5, "nothing sent after the loss has been acknowledged");
    assert!(net.sides[A].endpoint.is_recovering());
    net.run_until(ms(390));
    assert_eq!(left(&net, 300).first(), Some(&(4, 18)));
    assert!(
        net.sides[A].endpoint.is_recovering(),
        "packet 17 has left at the time of the reduction, not after it"
    );
    net.run_until(ms(410));
    assert!(!net.sides[A].endpoint.is_recovering(), "7.3.2: it ends with the first packet sent during it");
}

/// B.5: in congestion avoidance, the window grows by one packet in each round trip in which it is filled.
#[test]
fn congestion_avoidance_adds_a_packet_per_round_trip() {
    let mut net = pair(&[], drops(&[3]));
    net.with(A, |e, _, _| e.write(ENDLESS));
    net.run_until(ms(450));
    let before = net.sides[A].endpoint.cwnd();
    net.run_until(ms(1450));
    let grown = net.sides[A].endpoint.cwnd() - before;
    assert!((8.5..=10.0).contains(&grown), "{grown} in ten round trips");
}

/// Section 6.2.1: the handshake measures 100 ms, so rttvar is 50 ms. The last packets of a flight are lost; the latest
/// acknowledgments measure 100 ms twice more: rttvar is 50 * (3/4)^n after n further samples. Two probes leave after
/// smoothed_rtt + 4 * rttvar + max_ack_delay (6.2.4), and the window stays (6.2.1: a probe is no sign of congestion).
#[test]
fn probes_leave_after_the_probe_timeout_and_double_it() {
    let mut net = pair(&[], |number| if number > 4 { Fate::Drop } else { Fate::Pass });
    net.with(A, |e, _, _| e.write(u64::from(6 * MSS)));
    net.run_until(ms(250));
    let sender = &net.sides[A].endpoint;
    assert_eq!(in_ms(Instant::ZERO + sender.srtt().expect("measured")), 100);
    // Packets 1 to 4 are acknowledged in pairs: two samples. 100 + 4 * 50 * 9/16 + 25 = 237.5 ms after 100 ms.
    let window = sender.cwnd();
    net.run_until(ms(3000));
    let probes: Vec<u64> =
        net.sides[A].sent.iter().filter(|(t, s)| s.len > 0 && *t > ms(110)).map(|(t, _)| in_ms(*t)).collect();
    // The first probes leave at 337.5 ms; then the timeout is 475 ms from there, then 950 ms.
    assert_eq!(probes[..6], [338, 338, 813, 813, 1763, 1763]);
    assert_eq!(net.sides[A].endpoint.cwnd(), window);
    assert_eq!(net.sides[A].endpoint.counters().timeouts, 3);
}

/// Section 7.6: the second flight (packets 11 to 30) and three pairs of probes are lost; the handshake and the first flight
/// have measured 100 ms six times, so the probe timeout is 172.5 ms (100 + 4 * 50 * 0.75^5 + 25), and the losses last from
/// 200 to 1407 ms, more than three times as long. When the next probe is acknowledged, the window is the smallest, two
/// packets, and opens by one.
#[test]
fn persistent_congestion_leaves_two_packets() {
    let mut net = pair(&[], |number| if (11..=36).contains(&number) { Fate::Drop } else { Fate::Pass });
    net.with(A, |e, _, _| e.write(ENDLESS));
    net.run_until(ms(2500));
    let sender = &net.sides[A].endpoint;
    assert_eq!((sender.cwnd(), sender.counters().timeouts), (20.0, 3));
    let probes: Vec<u32> =
        [372, 717, 1407].into_iter().flat_map(|at| left(&net, at)).map(|(_, n)| n).collect();
    assert_eq!(probes, [31, 32, 33, 34, 35, 36]);
    net.run_until(ms(2890));
    let sender = &net.sides[A].endpoint;
    assert_eq!((sender.cwnd(), sender.ssthresh()), (3.0, 10.0));
    assert_eq!(sender.counters().fast_retransmits, 1);
}

/// RFC 9000, section 13.2.2: every second packet is acknowledged, and a single one within 25 ms (18.2).
#[test]
fn every_second_packet_is_acknowledged_and_a_single_one_after_25_ms() {
    let mut net = pair(&[], |_| Fate::Pass);
    net.with(A, |e, _, _| e.write(u64::from(3 * MSS)));
    net.run_until(ms(1000));
    let acks: Vec<u64> =
        net.sides[B].sent.iter().filter(|(_, s)| s.sack_len > 0).map(|(t, _)| in_ms(*t)).collect();
    assert_eq!(acks, [150, 175]);
    assert_eq!(net.sides[A].acked(), u64::from(3 * MSS));
    // Section 5.3: the delay of 25 ms that the second acknowledgment reports is not part of the round trip.
    assert_eq!(in_ms(Instant::ZERO + net.sides[A].endpoint.srtt().expect("measured")), 100);
}

/// Section 7.1 and B.7: an increase of the count of CE marks halves the window once per round trip.
#[test]
fn marks_halve_the_window_once_per_round_trip() {
    let marks = |number: u32| if (3..=6).contains(&number) { Fate::Mark } else { Fate::Pass };
    let mut net = pair(&[("ecn", Value::Flag(true))], marks);
    net.with(A, |e, _, _| e.write(ENDLESS));
    net.run_until(ms(290));
    let sender = &net.sides[A].endpoint;
    // 1 and 2 open the window to 12 before the first mark is reported.
    assert_eq!((sender.cwnd(), sender.counters().ecn_reductions), (6.0, 1));
    assert_eq!(sender.counters().retransmitted, 0);
}

/// Section 7.8: a window that the application does not fill does not grow.
#[test]
fn an_application_that_sends_little_does_not_open_the_window() {
    let mut net = pair(&[], |_| Fate::Pass);
    for round in 1..20 {
        net.run_until(ms(100 * round));
        net.now = ms(100 * round);
        net.with(A, |e, _, _| e.write(2 * u64::from(MSS)));
    }
    net.run_until(ms(4000));
    assert_eq!(net.sides[A].endpoint.cwnd(), 10.0);
}

/// Section 7.7: with N of 1.25, a window of 10 packets leaves in 80 ms of a round trip of 100 ms: two every 16 ms.
#[test]
fn packets_are_paced() {
    let mut net = pair(&[("pacing", Value::Flag(true))], |_| Fate::Pass);
    net.with(A, |e, _, _| e.write(ENDLESS));
    net.run_until(ms(190));
    let times: Vec<u64> = net.sides[A].data_sent().iter().map(|(t, ..)| in_ms(*t)).collect();
    assert_eq!(times, [100, 100, 116, 116, 132, 132, 148, 148, 164, 164]);
}

/// Whatever is lost, late or marked in either direction, each byte arrives once and in order, and both sides close.
#[test]
fn whatever_happens_to_packets_the_stream_arrives() {
    for seed in 0..200_u64 {
        let mut state = seed;
        let mut draw = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            match (state >> 33) % 20 {
                0..=3 => Fate::Drop,
                4..=6 => Fate::Late(Span::ms(state >> 58)),
                7 => Fate::Mark,
                _ => Fate::Pass,
            }
        };
        let mut other = draw;
        let link = |ms| Link::new(Rate::mbit(10), Span::ms(ms), 20);
        let paths = [
            Path::new([link(5), link(5)], Box::new(move |n, _| if n > 300 { Fate::Pass } else { draw() })),
            Path::new([link(5), link(5)], Box::new(move |n, _| if n > 300 { Fate::Pass } else { other() })),
        ];
        let congestion = ["reno", "cubic", "bbr"][seed as usize % 3];
        let given = [
            ("congestion", Value::Choice(congestion)),
            ("ecn", Value::Flag(seed % 2 == 0)),
            ("pacing", Value::Flag(seed % 5 > 0)),
            ("time_wait", Value::Span(Span::s(60))), // longer than any sequence of lost FINs
        ];
        let mut net = Pair::new(quic(&given), paths);
        net.open(Instant::ZERO);
        for side in [A, B] {
            net.with(side, |e, _, _| {
                e.write(200_000);
                e.close();
            });
        }
        net.run_until(Instant::ZERO + Span::s(600));
        for side in &net.sides {
            assert_eq!((side.delivered(), side.acked()), (200_000, 200_000), "seed {seed}");
            assert!(side.saw(StreamEvent::Closed), "seed {seed}: {:?}", side.endpoint.state());
            assert_eq!(side.endpoint.state(), State::Closed);
        }
    }
}
