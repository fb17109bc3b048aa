//! Paced segments leave in bursts, at the rate that the window and the round-trip time determine;
//! without pacing, the whole flight leaves at the same time.

mod support;

use aqmlab_params::{Origin, Value};
use aqmlab_transport::{ENDLESS, Profile, profile_settings};
use aqmlab_units::{Instant, Rate, Span};
use support::{A, Fate, Faults, Link, Pair, Path, faultless};

/// No link limits the rate, so only the sender spreads the segments.
fn transfer(given: &[(&'static str, Value)], faults: Faults) -> Pair {
    let mut settings = profile_settings("modern").expect("built in");
    for (name, value) in given {
        settings.set(name, value.clone(), Origin::Given);
    }
    let profile = Profile::resolve(&mut settings).expect("consistent");
    let link = || Link::new(Rate::mbit(100_000), Span::ms(50), usize::MAX);
    let mut net =
        Pair::new(profile, [Path::new([link(), link()], faults), Path::new([link(), link()], faultless())]);
    net.open(Instant::ZERO);
    net.with(A, |e, _, _| e.write(ENDLESS));
    net
}

fn paced(burst: u64) -> Vec<(&'static str, Value)> {
    vec![
        ("pacing", Value::Flag(true)),
        ("pacing_burst", Value::Integer(burst)),
        ("ack_every", Value::Integer(1)),
    ]
}

/// Returns the send time of each segment of the first flight, relative to the first segment.
fn first_flight(given: &[(&'static str, Value)]) -> Vec<Span> {
    let mut net = transfer(given, faultless());
    net.run_until(Instant::ZERO + Span::ms(390));
    let sent = net.sides[A].data_sent();
    sent.iter().map(|(at, ..)| *at - sent[0].0).collect()
}

/// The handshake measures a round-trip time of 200 ms. At two windows of ten segments per round
/// trip, segments are 10 ms apart.
#[test]
fn a_first_flight_takes_half_a_round_trip_in_bursts() {
    for (burst, expected) in
        [(1, [0, 10, 20, 30, 40, 50, 60, 70, 80, 90]), (2, [0, 0, 20, 20, 40, 40, 60, 60, 80, 80])]
    {
        let left = first_flight(&paced(burst));
        assert_eq!(left.len(), 10);
        for (left, expected) in left.iter().zip(expected) {
            let off = left.as_secs_f64() - f64::from(expected) / 1e3;
            assert!(off.abs() < 1e-5, "{left}, not {expected} ms, in bursts of {burst}");
        }
    }
}

#[test]
fn without_pacing_a_flight_leaves_at_once() {
    let left = first_flight(&[]);
    assert!(left.len() == 10 && left.iter().all(|at| at.is_zero()));
}

/// While the timer is set for a segment's departure, neither the retransmission timeout nor the
/// probe is forgotten.
#[test]
fn what_is_lost_at_the_end_of_a_paced_flight_is_sent_again() {
    for probe in [true, false] {
        let mut given = paced(1);
        given.push(("tail_loss_probe", Value::Flag(probe)));
        let mut data = 0;
        let lossy: Faults = Box::new(move |_, segment| {
            data += u32::from(segment.len > 0);
            if segment.len > 0 && (7..=10).contains(&data) { Fate::Drop } else { Fate::Pass }
        });
        let mut net = transfer(&given, lossy);
        net.run_until(Instant::ZERO + Span::s(20));
        let sender = &net.sides[A].endpoint;
        assert!(sender.acked().get() > 1_000_000, "{probe}: {}", sender.acked());
        assert_eq!(sender.counters().timeouts, 0, "{probe}: acknowledgments find it");
    }
}
