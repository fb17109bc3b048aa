//! Prague (draft-briscoe-iccrg-prague-congestion-control-04) and what RFC 9331, section 4, asks of a sender for L4S,
//! over paths that mark, lose or delay segments. `docs/l4s.md` lists the requirements with these tests.

mod support;

use aqmlab_params::{Origin, Value};
use aqmlab_random::Stream;
use aqmlab_transport::{ENDLESS, Profile, Segment, profile_settings};
use aqmlab_units::{Ecn, Instant, Rate, Span};
use support::{A, Fate, Faults, Link, Pair, Path, faultless};

fn profile(given: &[(&'static str, Value)]) -> Profile {
    let mut settings = profile_settings("prague").expect("built in");
    for (name, value) in given {
        settings.set(name, value.clone(), Origin::Given);
    }
    Profile::resolve(&mut settings).expect("consistent")
}

/// Returns a transfer over a path without a queue, with this round-trip time.
fn transfer(rtt: Span, given: &[(&'static str, Value)], faults: Faults) -> Pair {
    let link = || Link::new(Rate::mbit(100_000), rtt.div(4), usize::MAX);
    let paths = [Path::new([link(), link()], faults), Path::new([link(), link()], faultless())];
    let mut net = Pair::new(profile(given), paths);
    net.open(Instant::ZERO);
    net.with(A, |e, _, _| e.write(ENDLESS));
    net
}

/// Settings of a flow that begins in congestion avoidance with this window.
fn beginning(window: u64) -> Vec<(&'static str, Value)> {
    vec![
        ("initial_window", Value::Integer(window)),
        ("max_window", Value::Integer(window)),
        ("initial_ssthresh", Value::Choice("max_window")),
    ]
}

fn at(seconds: f64) -> Instant {
    Instant::ZERO + Span::us((seconds * 1e6) as u64)
}

fn data(net: &Pair) -> impl Iterator<Item = &(Instant, Segment)> {
    net.sides[A].sent.iter().filter(|(_, segment)| segment.len > 0)
}

fn marks_by_chance(share: f64) -> Faults {
    let mut draws = Stream::new(1, "marks");
    Box::new(move |_, segment| if segment.len > 0 && draws.hit(share) { Fate::Mark } else { Fate::Pass })
}

/// Does `what` to the data segments with these numbers.
fn to_some(what: Fate, numbers: fn(u32) -> bool) -> Faults {
    let mut count = 0;
    Box::new(move |_, segment| {
        count += u32::from(segment.len > 0);
        if segment.len > 0 && numbers(count) { what } else { Fate::Pass }
    })
}

/// Returns the number of segments sent per round trip of `rtt` or, if that is shorter, of 25 ms.
fn mean_window(rtt: Span, share: f64) -> f64 {
    let from = ("prague_rtt_from", Value::Integer(0));
    let every = ("ack_every", Value::Integer(1));
    let mut net = transfer(rtt, &[from, every], marks_by_chance(share));
    net.run_until(at(10.0));
    let before = net.sides[A].endpoint.counters().data_segments_sent;
    net.run_until(at(70.0));
    let counters = net.sides[A].endpoint.counters();
    assert_eq!((counters.retransmitted, counters.timeouts), (0, 0));
    f64::from(counters.data_segments_sent - before) / 60.0 * rtt.max(Span::ms(25)).as_secs_f64()
}

/// If each segment is marked with the probability p, then x = W p marks arrive per virtual round trip of W segments.
/// A decrease by p / 2 of the window comes, on average, once in 1 + 1/x of them: after the virtual round trip
/// without a decrease, the next mark takes another 1/x. The increase of 1 - p balances it, so that
/// x / 2 = (1 - p) (1 + 1/x): x tends to 1 + sqrt(3), and the rate to 2.7 / (p rtt_virt). What this leaves out are
/// fractions of segments, of which a window leaves half a segment unused on average, and changes of alpha.
#[test]
fn the_rate_is_inversely_proportional_to_the_share_of_marks_and_to_a_virtual_round_trip() {
    for (rtt, share) in [(50, 0.1_f64), (50, 0.03), (25, 0.03), (5, 0.03)] {
        let x = (1.0 - share) * (1.0 + (1.0 + 2.0 / (1.0 - share)).sqrt());
        let (found, expected) = (mean_window(Span::ms(rtt), share), x / share - 0.5);
        println!("{rtt} ms, {share}: {found:.1}, {expected:.1} ({:.3})", found / expected);
        assert!((found / expected - 1.0).abs() < 0.1, "{rtt} ms, {share}: {found}, not {expected}");
    }
}

/// Section 2.2: also retransmissions. Other controls of the same profile do not claim to be scalable.
#[test]
fn all_data_has_ect1() {
    let mut net = transfer(Span::ms(50), &[], to_some(Fate::Drop, |n| n % 50 == 7));
    net.run_until(at(3.0));
    assert!(net.sides[A].endpoint.counters().retransmitted > 5);
    assert!(data(&net).all(|(_, segment)| segment.ecn == Ecn::Ect1));
    let mut net = transfer(Span::ms(50), &[("congestion", Value::Choice("cubic"))], faultless());
    net.run_until(at(1.0));
    assert!(data(&net).all(|(_, segment)| segment.ecn == Ecn::Ect0));
}

/// Section 2.3.1: a sender that does not hear how many segments are marked does not claim to be scalable, and takes a
/// mark for a loss. The first mark halves the window in either case; until the second, alpha falls below a fifth.
#[test]
fn without_accurate_feedback_the_sender_is_classic() {
    for (feedback, code_point, left) in
        [("accurate", Ecn::Ect1, 0.9..0.999), ("classic", Ecn::Ect0, 0.499..0.501)]
    {
        let mut given = beginning(40);
        given.push(("ecn_feedback", Value::Choice(feedback)));
        let mut net = transfer(Span::ms(50), &given, to_some(Fate::Mark, |n| n == 10 || n == 1000));
        let mut before = 0.0;
        while net.sides[A].endpoint.counters().ecn_reductions < 2 {
            before = net.sides[A].endpoint.cwnd();
            assert!(net.now < at(10.0) && net.step(), "{feedback}: one reduction");
        }
        let share = net.sides[A].endpoint.cwnd() / before;
        assert!(left.contains(&share), "{feedback}: {share}");
        assert!(data(&net).all(|(_, segment)| segment.ecn == code_point), "{feedback}");
    }
}

/// Section 2.4.1.
#[test]
fn a_loss_reduces_the_window_as_with_reno_or_cubic() {
    for (classic, left) in [("reno", 20.0), ("cubic", 28.0)] {
        let mut given = beginning(40);
        given.push(("prague_classic", Value::Choice(classic)));
        let mut net = transfer(Span::ms(50), &given, to_some(Fate::Drop, |n| n == 100));
        net.run_until(at(1.0));
        let (endpoint, counters) = (&net.sides[A].endpoint, net.sides[A].endpoint.counters());
        assert_eq!((counters.fast_retransmits, counters.timeouts), (1, 0));
        let share = endpoint.ssthresh() / left; // pacing leaves a segment or two of the window unused
        assert!((0.94..=1.0).contains(&share), "{classic}: {}", endpoint.ssthresh());
    }
}

/// Section 2.3.3: by RACK. Once reordering has been seen, segments that are late by less than a quarter of a round
/// trip are not lost, however many have overtaken them; by the number of these, each would be.
#[test]
fn reordering_is_judged_by_time() {
    for (rack, least, most) in [(true, 0, 1), (false, 5, u32::MAX)] {
        let mut given = beginning(100);
        given.push(("rack", Value::Flag(rack)));
        let late = to_some(Fate::Late(Span::ms(20)), |n| n % 200 == 50);
        let mut net = transfer(Span::ms(100), &given, late);
        net.run_until(at(10.0));
        let again = net.sides[A].endpoint.counters().retransmitted;
        assert!((least..=most).contains(&again), "rack {rack}: {again}");
    }
}

/// Section 2.5.1: at most two windows per round trip leave in slow start, and one in congestion avoidance.
#[test]
fn segments_never_leave_together() {
    let mut net = transfer(Span::ms(50), &[], marks_by_chance(0.02));
    net.run_until(at(20.0));
    let times: Vec<Instant> = data(&net).map(|(at, _)| *at).collect();
    let least = times.windows(2).map(|pair| pair[1] - pair[0]).min().expect("many");
    let largest = 400.0; // segments
    assert!(times.len() > 10_000 && least.as_secs_f64() > 0.05 / 2.0 / largest, "{least}");
}

/// RFC 9331, section 4.3: with all segments marked, the window stays at its least, of which the rate follows, also
/// below one segment per round trip.
#[test]
fn a_window_may_be_a_fraction_of_a_segment() {
    for least in [2.0, 1.5, 0.5, 0.1] {
        let given = [("prague_least_window", Value::Number(least)), ("ack_every", Value::Integer(1))];
        let mut net = transfer(Span::ms(50), &given, marks_by_chance(1.0));
        net.run_until(at(2.0));
        let before = net.sides[A].endpoint.counters().data_segments_sent;
        net.run_until(at(102.0));
        let counters = net.sides[A].endpoint.counters();
        let (found, expected) = (counters.data_segments_sent - before, least / 0.05 * 100.0);
        assert!((f64::from(found) / expected - 1.0).abs() < 0.02, "{least}: {found}, not {expected}");
        assert_eq!((counters.retransmitted, counters.timeouts), (0, 0));
    }
}

/// Section 2.4.4: the virtual round-trip time takes effect after 500 round trips, until when a short one opens the
/// window as far as any other.
#[test]
fn a_new_flow_grows_by_actual_round_trips() {
    let mut given = beginning(1000);
    given[0].1 = Value::Integer(10);
    given.push(("ack_every", Value::Integer(1)));
    let mut net = transfer(Span::ms(5), &given, to_some(Fate::Mark, |n| n == 1));
    net.run_until(at(0.1));
    let windows: Vec<f64> = [1.1, 2.1, 4.1, 5.1]
        .map(|to| {
            net.run_until(at(to));
            net.sides[A].endpoint.cwnd()
        })
        .into();
    let (early, late) = (windows[1] - windows[0], windows[3] - windows[2]);
    assert!((early / 200.0 - 1.0).abs() < 0.02, "{early} segments in 200 round trips");
    assert!((late / (200.0 / 25.0) - 1.0).abs() < 0.02, "{late} segments in 40 virtual round trips");
}
