//! Compares the preset `linux` of GRED with Linux's gred (`vectors/linux-gred`): the averages, each decision that needs
//! no draw, and how often RED chooses where the kernel draws.

use std::collections::{BTreeMap, VecDeque};

use aqmlab_params::Value;
use aqmlab_qdisc::{Discipline, Ecn, Inside, LawSamples, LinkContext, Qdisc, Stamped};
use aqmlab_random::Stream;
use aqmlab_units::{Bytes, Instant, Rate, Span};

mod support;
use support::flow_decisions::{Arrival, Event, events_in};
use support::{Fates, Pkt, build, bytes, settings};

const CASES: [&str; 8] =
    ["classes", "ecn", "harddrop", "limits", "priorities", "priorities_ecn", "equal", "equal_ecn"];
const LINK: LinkContext = LinkContext {
    rate: Rate::mbit(10),
    delay: Span::ZERO,
    rtt: Some(Span::ms(100)),
    flows: Some(6),
    mean_packet: Bytes::new(1000),
};
/// More than any limit.
const TOO_LONG: u64 = 1 << 40;

/// A virtual queue of the kernel: min, max, burst, limit, probability.
type Virtual = (u64, u64, u64, u64, f64);

const THREE: [Virtual; 3] =
    [(4000, 16_000, 8, 60_000, 0.1), (3000, 12_000, 6, 60_000, 0.05), (5000, 20_000, 10, 60_000, 0.02)];
const PRIORITIES: [Virtual; 3] = [
    (12_000, 36_000, 20, 100_000, 0.1),
    (12_000, 30_000, 20, 100_000, 0.1),
    (12_000, 24_000, 20, 100_000, 0.1),
];
const EQUAL: [Virtual; 3] = [
    (20_000, 40_000, 30, 100_000, 0.02),
    (15_000, 30_000, 30, 100_000, 0.05),
    (10_000, 20_000, 30, 100_000, 0.1),
];
/// The limit of the third is that of the table.
const FULL: [Virtual; 3] =
    [(30_000, 60_000, 40, 9000, 0.1), (3000, 30_000, 6, 12_000, 0.0001), (30_000, 60_000, 40, 20_000, 0.1)];

/// Returns the virtual queues of a case, whether each marks, and whether each marks only below max.
fn virtual_queues(case: &str) -> [(Virtual, bool, bool); 3] {
    let (three, average) = match case.trim_end_matches("_ecn") {
        "limits" => (FULL, false),
        "priorities" => (PRIORITIES, false),
        "equal" => (EQUAL, false),
        _ => (THREE, true),
    };
    assert_eq!(average, ["classes", "ecn", "harddrop"].contains(&case));
    std::array::from_fn(|i| {
        let hard = case == "harddrop";
        (three[i], case.ends_with("ecn") || (hard && i > 0), hard && i == 2)
    })
}

fn queue(case: &str) -> Discipline<Stamped<Pkt>> {
    let class = |i: usize, ((min, max, burst, limit, p), ecn, hard): (Virtual, bool, bool)| {
        let mut given = vec![
            ("name", Value::Text(format!("dp{}", i + 1))),
            ("min_th", bytes(min)),
            ("max_th", bytes(max)),
            ("burst", Value::Integer(burst)),
            ("limit", bytes(limit)),
            ("max_p", Value::Number(p)),
            ("ecn", Value::Flag(ecn)),
            ("ecn_region", Value::Choice(if hard { "rfc3168" } else { "linux" })),
        ];
        // The flows of the virtual queues 1 and 2; those of the others are in the last class.
        let ports: &[u64] = [&[1001, 1004][..], &[1002, 1003], &[]][i];
        if !ports.is_empty() {
            given.push(("port", Value::List(ports.iter().map(|port| Value::Integer(*port)).collect())));
        }
        Value::Table(settings(&given))
    };
    let classes = virtual_queues(case).into_iter().enumerate().map(|(i, one)| class(i, one));
    let average = match case.trim_end_matches("_ecn") {
        "priorities" => "priority",
        "equal" => "all",
        _ => "class",
    };
    let given = [
        ("preset", Value::Choice("linux")),
        ("average", Value::Choice(average)),
        ("class", Value::List(classes.collect())),
    ];
    build("gred", &settings(&given), &LINK, Stream::new(1, "gred"))
}

/// Returns the place of a flow's class.
const fn class_of(flow: u64) -> usize {
    match flow {
        1 | 4 => 0,
        2 | 3 => 1,
        _ => 2,
    }
}

fn packet(arrival: &Arrival, at: Instant) -> Stamped<Pkt> {
    let ecn = if arrival.capable { Ecn::Ect0 } else { Ecn::NotEct };
    let ports = Some([1000 + arrival.flow as u16, 9]);
    let packet = Pkt { size: arrival.size, flow: arrival.flow, ecn, ports, ..Pkt::new(arrival.number) };
    Stamped { packet, arrived: at }
}

/// Returns the values of each class's law: its average, and the probability at what it compares with its thresholds.
fn laws(queue: &Discipline<Stamped<Pkt>>, now: Instant) -> Vec<(f64, f64)> {
    let mut found = Vec::new();
    queue.each_inner(&mut |_, inner: Inside<'_, Stamped<Pkt>>| {
        let mut samples = LawSamples::new();
        inner.observe(now, &mut samples);
        let value = |name| samples.iter().find(|(known, _)| *known == name).expect(name).1;
        found.push((value("avg"), value("p")));
    });
    found
}

/// What a case has shown.
#[derive(Default, Debug)]
struct Found {
    averages: usize,
    below: usize,
    forced: usize,
    full: usize,
    /// Packets that were chosen where RED draws, and what is expected of such a number.
    hits: f64,
    expected: f64,
    variance: f64,
}

/// Follows a history with the laws of our queue, which sees each packet that was queued in it, and checks each decision
/// that needs no draw.
fn follow(case: &str, events: &[(Instant, Event)]) -> Found {
    let (mut queue, mut fates, virtuals) = (queue(case), Fates::default(), virtual_queues(case));
    let shared = case.starts_with("equal");
    let departures = events.iter().filter_map(|(_, event)| match event {
        Event::Departure { number, marked } => Some((*number, *marked)),
        _ => None,
    });
    let marked: BTreeMap<u64, bool> = departures.collect();
    // For each class, arrivals since RED drew, and the largest product of their number and the probability so far.
    let mut cycles: [Option<(f64, f64)>; 3] = [None; 3];
    let mut waiting: VecDeque<(usize, u64)> = VecDeque::new();
    let mut found = Found::default();
    for (now, event) in events {
        let arrival = match event {
            Event::Departure { number, .. } => {
                let out = queue.dequeue(*now, &mut fates).map(|out| out.packet.number);
                assert_eq!(out, Some(*number), "{case}");
                waiting.pop_front();
                continue;
            }
            Event::State(averages) => {
                // The kernel read its clock up to 1 us before the instant that is recorded, and an idle average depends
                // on the time.
                for (class, theirs) in averages.iter().enumerate() {
                    let ours = [0, 512, 1024]
                        .map(|ns| laws(&queue, Instant::from_ns(now.as_ns() - ns))[class].0 as i64);
                    assert!(ours.contains(theirs), "{case}: average {theirs} at {now}, here {ours:?}");
                }
                found.averages += 1;
                continue;
            }
            Event::Arrival(arrival) => arrival,
        };
        let Arrival { number, flow, size, capable, ref lost } = *arrival;
        let (is_lost, is_marked) = (*lost == [number], marked.get(&number) == Some(&true));
        assert!(is_lost || lost.is_empty(), "{case} {number}: another packet is lost");
        let class = class_of(flow);
        let mut seen = packet(arrival, *now);
        if is_lost {
            seen.packet.size = TOO_LONG;
        }
        queue.enqueue_spared(*now, seen, &mut fates);
        let (_, p) = laws(&queue, *now)[class];
        let ((.., limit, _), ecn, hard) = virtuals[class];
        let in_queue: u64 = waiting.iter().filter(|one| shared || one.0 == class).map(|one| one.1).sum();
        let full = in_queue + size > limit;
        let cycle = &mut cycles[class];
        if p == 0.0 {
            assert_eq!((is_lost, is_marked), (full, false), "{case} {number}: below min");
            (*cycle, found.below) = (None, found.below + 1);
        } else if p == 1.0 {
            let marks = ecn && !hard && capable && !full;
            assert_eq!((is_lost, is_marked), (!marks, marks), "{case} {number}: above max");
            (*cycle, found.forced) = (None, found.forced + 1);
        } else if full {
            // Whether RED chose it as well is not known.
            assert!(is_lost, "{case} {number}: no room");
            *cycle = None;
        } else {
            let hit = is_lost || is_marked;
            assert!(!hit || is_marked == (ecn && capable), "{case} {number}");
            if let Some((count, most)) = cycle.as_mut() {
                *count += 1.0;
                let reached = (*count * p).min(1.0);
                if reached > *most {
                    let p = (reached - *most) / (1.0 - *most);
                    found.hits += f64::from(u8::from(hit));
                    found.expected += p;
                    found.variance += p * (1.0 - p);
                    *most = reached;
                } else {
                    assert!(!hit, "{case} {number}: no draw");
                }
                if hit {
                    *cycle = Some((0.0, 0.0));
                }
            } else {
                // Behind an arrival without room, the cycle is unknown.
                assert!(!hit || case == "limits", "{case} {number}: the first of a cycle only draws");
                *cycle = Some((0.0, 0.0));
            }
        }
        found.full += usize::from(full);
        if !is_lost {
            waiting.push_back((class, size));
        }
    }
    assert!(queue.backlog().packets.is_zero(), "{case}");
    found
}

/// Returns what the whole discipline does with the kernel's arrivals when it is asked for packets at the kernel's
/// instants.
fn ours(case: &str) -> Vec<(Instant, Event)> {
    let (mut queue, mut fates, mut found) = (queue(case), Fates::default(), Vec::new());
    let leave =
        |out: Stamped<Pkt>| Event::Departure { number: out.packet.number, marked: out.packet.ecn == Ecn::Ce };
    for (now, event) in events_in("linux-gred", case) {
        match event {
            Event::Arrival(mut arrival) => {
                queue.enqueue(now, packet(&arrival, now), &mut fates);
                arrival.lost = fates.dropped.drain(..).map(|(_, pkt, _)| pkt.number).collect();
                found.push((now, Event::Arrival(arrival)));
            }
            Event::Departure { .. } => {
                found.extend(queue.dequeue(now, &mut fates).map(|out| (now, leave(out))));
            }
            Event::State(_) => {}
        }
    }
    let last = found.last().expect("there are events").0;
    found.extend(std::iter::from_fn(|| queue.dequeue(last, &mut fates)).map(|out| (last, leave(out))));
    found
}

#[test]
fn averages_and_decisions_are_the_kernels() {
    let mut total = [Found::default(), Found::default()];
    for case in CASES {
        for (events, total) in [events_in("linux-gred", case), ours(case)].iter().zip(&mut total) {
            let found = follow(case, events);
            let deviation = (found.hits - found.expected).abs() / found.variance.sqrt().max(1e-9);
            println!("{case}: {found:?}, {deviation:.2} standard deviations");
            assert!(deviation < 4.0 || found.expected < 1.0, "{case}");
            assert!(found.below > 300 && (case == "limits" || found.forced > 100), "{case}");
            assert!(case != "limits" || found.full > 300);
            total.hits += found.hits;
            total.expected += found.expected;
            total.variance += found.variance;
            total.averages += found.averages;
        }
    }
    for found in total {
        println!("in total: {found:?}, standard deviation {:.1}", found.variance.sqrt());
        assert!((found.hits - found.expected).abs() < 3.0 * found.variance.sqrt() && found.expected > 100.0);
    }
}
