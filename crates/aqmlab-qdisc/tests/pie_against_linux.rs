//! Compares the preset `linux` of PIE with Linux's PIE (`vectors/linux-decisions`): its probability, delay and
//! departure rate after each update, and which packets the kernel refused and marked, given the same arrivals and
//! departures at the same instants.

use aqmlab_params::Value;
use aqmlab_qdisc::contract::LINK;
use aqmlab_qdisc::law::{PieArithmetic, PieLaw, PieParams};
use aqmlab_qdisc::{Discipline, Qdisc, Reason, Stamped};
use aqmlab_random::Stream;
use aqmlab_units::{Instant, Span};

mod support;
use support::pie::{Case, Event, events, replay};
use support::{Fates, Pkt, build, packets, settings};

fn cases() -> Vec<Case> {
    let ms = |name, ms| (name, Value::Span(Span::ms(ms)));
    let number = |name, value| (name, Value::Number(value));
    let case = |name, given, limit, ecn| Case { name, given, limit, ecn, flows: 1 };
    let scaled = vec![
        ms("target", 10),
        ms("t_update", 6),
        number("alpha", 1.0 / 16.0),
        number("beta", 10.0 / 16.0),
        ("byte_mode", Value::Flag(true)),
    ];
    vec![
        case("pie_timestamps", vec![], 1000, false),
        case("pie_rate_estimator", vec![("delay", Value::Choice("rate"))], 1000, false),
        case("pie_ecn", vec![], 1000, true),
        case("pie_bytemode", scaled, 1000, false),
        case("pie_limit", vec![ms("target", 50)], 60, true),
        case("pie_flood", vec![number("alpha", 2.0), number("beta", 2.0)], 1000, true),
    ]
}

/// The law that the registry builds from these parameters.
fn law(case: &Case) -> PieLaw {
    let mut given = vec![
        ("preset", Value::Choice("linux")),
        ("limit", packets(case.limit as u64)),
        ("ecn", Value::Flag(case.ecn)),
    ];
    given.extend(case.given.iter().cloned());
    match build::<Pkt>("pie", &settings(&given), &LINK, Stream::new(1, "unused")) {
        Discipline::Pie(queue) => queue.law().law.clone(),
        _ => panic!("not PIE"),
    }
}

#[test]
fn probability_delay_and_rate_are_the_kernels_and_so_are_the_decisions() {
    let (mut hits, mut expected, mut variance) = (0.0, 0.0, 0.0);
    for case in cases() {
        let found = replay(&case, law(&case));
        let deviation = found.deviation();
        println!("{}: {found:?}, {deviation:.2} standard deviations", case.name);
        assert_eq!((found.wrong, found.differ), (0, 0), "{}", case.name);
        assert!(found.states > 180 && deviation.abs() < 3.5, "{}", case.name);
        // Each case reaches what it was made for.
        assert_eq!(found.overflows > 400, case.name == "pie_limit");
        assert_eq!(found.marks > 20, case.name == "pie_ecn");
        assert_eq!(found.largest > 1.0, case.name == "pie_flood");
        hits += found.hits;
        expected += found.expected;
        variance += found.variance;
    }
    println!("hits: {hits}, expected {expected:.1} with a standard deviation of {:.1}", variance.sqrt());
    assert!((hits - expected).abs() < 3.0 * variance.sqrt() && expected > 800.0);
}

/// Each of Linux's departures from RFC 8033 shows in at least one case, so the cases distinguish them.
#[test]
fn each_difference_from_the_rfc_shows() {
    type Change = (&'static str, fn(&mut PieParams));
    let without: [Change; 5] = [
        ("arithmetic", |p| p.arithmetic = PieArithmetic::Exact),
        ("cap", |p| p.cap = false),
        ("surge", |p| p.surge = false),
        ("decay", |p| p.decay = 0.98),
        ("derandomize", |p| p.derandomize = false),
    ];
    for (name, change) in without {
        let differs = cases().into_iter().any(|case| {
            let mut params = *law(&case).params();
            change(&mut params);
            let found = replay(&case, PieLaw::new(params));
            found.wrong + found.differ > 0 || found.deviation().abs() > 4.0
        });
        assert!(differs, "{name}");
    }
}

/// The whole discipline refuses the same packets where nothing but the limit decides.
#[test]
fn the_whole_queue_overflows_as_the_kernels() {
    let case = cases().into_iter().find(|case| case.name == "pie_limit").expect("the case");
    let events = events(case.name);
    let begin = events[0].0 - law(&case).params().t_update.as_ns();
    let given = [
        ("preset", Value::Choice("linux")),
        ("target", Value::Span(Span::ms(50))),
        ("limit", packets(60)),
        ("ecn", Value::Flag(true)),
    ];
    let mut queue = build("pie", &settings(&given), &LINK, Stream::new(1, "pie"));
    let (mut fates, mut refused, mut arrivals) = (Fates::default(), Vec::new(), 0);
    for (at, event) in &events {
        let now = Instant::from_ns(at - begin);
        match *event {
            Event::Arrival { size, ecn, queued, .. } => {
                let packet = Pkt { size, ecn, ..Pkt::new(arrivals) };
                queue.enqueue(now, Stamped { packet, arrived: now }, &mut fates);
                if !queued {
                    refused.push((arrivals, Reason::Overflow));
                }
                arrivals += 1;
            }
            Event::Departure { number, .. } => {
                let out = queue.dequeue(now, &mut fates).expect("a packet waits");
                assert_eq!(out.packet.number, number as u64);
            }
            Event::Update | Event::State { .. } => {}
        }
    }
    assert!(refused.len() > 400);
    assert_eq!(fates.lost(), refused);
}
