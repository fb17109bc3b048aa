//! Compares the preset `linux` of PIE with Linux's PIE (`vectors/linux-decisions`): its probability, delay and
//! departure rate after each update, and which packets the kernel refused and marked, given the same arrivals and
//! departures at the same instants. Where the kernel draws a random number, the law is given a draw with which
//! it decides as the kernel did; how often the kernel hits is compared with the law's probability.

use std::collections::BTreeSet;
use std::path::PathBuf;

use aqmlab_params::Value;
use aqmlab_qdisc::contract::LINK;
use aqmlab_qdisc::law::{Decision, PieArithmetic, PieLaw, PieParams};
use aqmlab_qdisc::{Discipline, Ecn, Qdisc, Reason, Stamped};
use aqmlab_random::Stream;
use aqmlab_units::{Bytes, Instant, Span};

mod support;
use support::{Fates, Pkt, build, packets, settings};

/// An event at the kernel's queue; packets are numbered in the order of arrival.
enum Event {
    Arrival { size: u64, capable: bool, queued: bool },
    Departure { number: usize, marked: bool },
    Update,
    State { p: u64, delay_us: u64, rate: u64 },
}

fn events(case: &str) -> Vec<(u64, Event)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../vectors/linux-decisions");
    let text = std::fs::read_to_string(folder.join(format!("{case}.csv"))).expect(case);
    let event = |line: &str| {
        let [at, event, values] = line.split(',').collect::<Vec<_>>()[..] else { panic!("{case}: {line}") };
        let values: Vec<u64> = values.split_whitespace().map(|value| value.parse().expect(line)).collect();
        let event = match event {
            "queued" | "refused" => {
                Event::Arrival { size: values[0], capable: values[1] == 1, queued: event == "queued" }
            }
            "sent" | "marked" => Event::Departure { number: values[0] as usize, marked: event == "marked" },
            "update" => Event::Update,
            "state" => Event::State { p: values[0], delay_us: values[1], rate: values[2] },
            _ => panic!("{case}: {line}"),
        };
        (at.parse().expect(line), event)
    };
    text.lines().skip(1).map(event).collect()
}

/// A case: its name, its parameters beyond the preset, and those of the queue.
struct Case {
    name: &'static str,
    given: Vec<(&'static str, Value)>,
    limit: usize,
    ecn: bool,
}

fn cases() -> Vec<Case> {
    let ms = |name, ms| (name, Value::Span(Span::ms(ms)));
    let number = |name, value| (name, Value::Number(value));
    let case = |name, given, limit, ecn| Case { name, given, limit, ecn };
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
        Discipline::Pie(queue) => queue.law().law,
        _ => panic!("not PIE"),
    }
}

/// What a replay found.
#[derive(Default, Debug)]
struct Found {
    packets: usize,
    states: usize,
    /// States whose probability, delay or rate differ.
    wrong: usize,
    /// Fates that differ although the law may have chosen its draw.
    differ: usize,
    overflows: usize,
    marks: usize,
    /// Where the law drew: hits of the kernel, their expected number and its variance.
    hits: f64,
    expected: f64,
    variance: f64,
    largest: f64,
}

impl Found {
    /// The distance of the hits from their expected number, in standard deviations.
    fn deviation(&self) -> f64 {
        (self.hits - self.expected) / self.variance.sqrt().max(1e-9)
    }
}

fn replay(case: &Case, mut law: PieLaw) -> Found {
    let (events, period) = (events(case.name), law.params().t_update.as_ns());
    let marked: BTreeSet<usize> = events
        .iter()
        .filter_map(|(_, event)| match event {
            Event::Departure { number, marked: true } => Some(*number),
            _ => None,
        })
        .collect();
    // The law's time begins one period before the kernel's first update.
    let (first, _) = events.iter().find(|(_, event)| matches!(event, Event::Update)).expect("an update");
    let begin = first - period;
    let (mut found, mut sizes, mut arrived) = (Found::default(), Vec::new(), Vec::new());
    let (mut waiting, mut bytes, mut updates, mut previous) = (0, 0, 0, 0);
    for (at, event) in &events {
        let now = Instant::from_ns(at - begin);
        if let Event::Update = event {
            updates += 1;
            let due = updates * period;
            assert!((0..20_000).contains(&(now.as_ns() - due)), "{}: {now:?}", case.name);
            assert!(previous < due, "{}: an event between an update and its instant", case.name);
        }
        previous = now.as_ns();
        law.catch_up(now, Bytes::new(bytes));
        match *event {
            Event::Update => {}
            Event::State { p, delay_us, rate } => {
                let drain = law.drain_rate().map_or(0, |rate| rate.bytes_per_s() as u64);
                let ours = (law.probability_in_units() << 8, law.delay().as_ns() / 1000, drain);
                found.states += 1;
                found.wrong += usize::from(ours != (p, delay_us, rate));
                found.largest = found.largest.max(law.probability());
            }
            Event::Departure { number, .. } => {
                let size = sizes[number];
                (waiting, bytes) = (waiting - 1, bytes - size);
                let sojourn = now.saturating_since(arrived[number]);
                law.on_departure(now, Bytes::new(size), sojourn, Bytes::new(bytes));
            }
            Event::Arrival { size, capable, queued } => {
                let full = waiting == case.limit;
                let hit = (!queued && !full) || marked.contains(&sizes.len());
                let p = match law.params().largest {
                    Some(largest) => law.probability() * size as f64 / largest.as_f64(),
                    None => law.probability(),
                };
                let mut drawn = false;
                let decision = law.on_arrival(Bytes::new(bytes), Bytes::new(size), || {
                    drawn = true;
                    if hit { 0.0 } else { 1.0 - f64::EPSILON }
                });
                if drawn && !full {
                    let p = p.min(1.0);
                    found.hits += f64::from(u8::from(hit));
                    found.expected += p;
                    found.variance += p * (1.0 - p);
                }
                let marks = match decision {
                    Decision::Notify(notice) => case.ecn && capable && notice.markable,
                    Decision::Admit => false,
                };
                let refuses = full || (decision != Decision::Admit && !marks);
                if refuses {
                    law.on_drop();
                }
                found.overflows += usize::from(full);
                found.marks += usize::from(marks && !full);
                found.differ +=
                    usize::from(refuses == queued || (marks && !full) != marked.contains(&sizes.len()));
                found.packets += 1;
                sizes.push(size);
                arrived.push(now);
                if queued {
                    (waiting, bytes) = (waiting + 1, bytes + size);
                }
            }
        }
    }
    found
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
            Event::Arrival { size, capable, queued } => {
                let ecn = if capable { Ecn::Ect0 } else { Ecn::NotEct };
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
