//! Compares the preset `linux` of SFQ with Linux's SFQ (`vectors/linux-flow-decisions`): which packet is lost at each
//! arrival, and which one leaves at each departure. Where the kernel's RED draws, its hits are compared with RED's
//! probability.

use std::collections::{BTreeMap, VecDeque};

use aqmlab_params::Value;
use aqmlab_qdisc::contract::LINK;
use aqmlab_qdisc::{Discipline, Ecn, Qdisc, Stamped};
use aqmlab_random::Stream;
use aqmlab_units::{Bytes, Instant};

mod support;
use support::flow_decisions::{Arrival, Event, events};
use support::{Fates, Pkt, build, bytes, law_value, packets, settings};

type Given = Vec<(&'static str, Value)>;

fn queue(given: &[(&'static str, Value)]) -> Discipline<Stamped<Pkt>> {
    let linux = [("preset", Value::Choice("linux"))];
    build("sfq", &settings(&[&linux[..], given].concat()), &LINK, Stream::new(1, "salt"))
}

/// Cases without RED; their flows have different hashes.
fn plain() -> Vec<(&'static str, Given)> {
    let many = ("divisor", Value::Integer(16_384));
    let integer = |name, n| (name, Value::Integer(n));
    let limit = |n| ("limit", packets(n));
    vec![
        ("sfq_default", vec![]),
        ("sfq_quantum", vec![many.clone(), limit(60)]),
        ("sfq_large_quantum", vec![many.clone(), limit(200), ("quantum", bytes(4000))]),
        ("sfq_depth", vec![many.clone(), limit(120), integer("depth", 12), integer("flows", 60)]),
        ("sfq_flows", vec![many.clone(), limit(120), integer("flows", 4)]),
        (
            "sfq_headdrop",
            vec![many.clone(), limit(60), integer("depth", 20), ("head_drop", Value::Flag(true))],
        ),
        ("sfq_many", vec![many, limit(20)]),
    ]
}

fn packet(arrival: &Arrival, at: Instant) -> Stamped<Pkt> {
    let ecn = if arrival.capable { Ecn::Ect0 } else { Ecn::NotEct };
    let packet = Pkt { size: arrival.size, flow: arrival.flow, ecn, ..Pkt::new(arrival.number) };
    Stamped { packet, arrived: at }
}

/// Returns the numbers of arrivals and of departures that differ from the kernel's. With `queued_only`, only the
/// packets that the kernel queued arrive.
fn differ(case: &str, given: &[(&'static str, Value)], queued_only: bool) -> (usize, usize) {
    let (mut queue, mut fates, mut last) = (queue(given), Fates::default(), Instant::ZERO);
    let (mut arrivals, mut departures, mut lost) = (0, 0, 0);
    for (now, event) in events(case) {
        last = now;
        match event {
            Event::Arrival(arrival) => {
                if queued_only && arrival.lost.contains(&arrival.number) {
                    continue;
                }
                queue.enqueue(now, packet(&arrival, now), &mut fates);
                let mut ours: Vec<u64> = fates.dropped.drain(..).map(|(_, pkt, _)| pkt.number).collect();
                ours.sort_unstable();
                lost += ours.len();
                arrivals += usize::from(ours != arrival.lost);
            }
            Event::Departure { number, .. } => {
                let out = queue.dequeue(now, &mut fates).map(|out| out.packet.number);
                departures += usize::from(out != Some(number));
            }
            Event::State(_) => {}
        }
    }
    println!("{case}: {lost} lost; {arrivals} arrivals and {departures} departures differ");
    assert_eq!(law_value(&queue, last, "collisions"), 0.0, "{case}: two flows share a queue");
    (arrivals, departures + queue.backlog().packets.get() as usize)
}

#[test]
fn every_loss_and_departure_is_the_kernels() {
    for (case, given) in plain() {
        assert_eq!(differ(case, &given, false), (0, 0), "{case}");
    }
}

/// With a packet per turn instead of a quantum, other packets leave.
#[test]
fn the_turns_of_the_preset_matter() {
    let changed = plain().into_iter().map(|(case, mut given)| {
        given.push(("turn", Value::Choice("packet")));
        differ(case, &given, false).1
    });
    assert!(changed.sum::<usize>() > 0);
}

const RED_CASES: [&str; 4] = ["sfq_red", "sfq_red_ecn", "sfq_red_hard", "sfq_red_head"];
const MIN_TH: f64 = 4000.0;
const MAX_TH: f64 = 12_000.0;

fn with_red() -> Given {
    vec![
        ("divisor", Value::Integer(16_384)),
        ("limit", packets(400)),
        ("depth", Value::Integer(100)),
        ("redflowlimit", bytes(60_000)),
        ("min_th", bytes(4000)),
        ("max_th", bytes(12_000)),
        ("burst", Value::Integer(6)),
        ("max_p", Value::Number(0.1)),
    ]
}

/// With RED, the packets that the kernel queued leave in its order.
#[test]
fn red_changes_no_turn() {
    let mut given = with_red();
    given.retain(|(name, _)| ["divisor", "limit", "depth"].contains(name));
    for case in &RED_CASES[..3] {
        assert_eq!(differ(case, &given, true), (0, 0), "{case}");
    }
}

/// Hits among decisions with a draw.
#[derive(Default, Debug)]
struct Found {
    below: usize,
    forced: usize,
    hits: f64,
    expected: f64,
    variance: f64,
}

/// A flow's queue in the kernel, as the fates of its packets show it.
struct FlowQueue {
    /// Numbers, sizes, and whether they are ECN-capable.
    waiting: VecDeque<(u64, u64, bool)>,
    law: aqmlab_qdisc::law::RedLaw,
    /// Arrivals since RED drew, and the largest product of their number and the probability so far.
    cycle: Option<(f64, f64)>,
}

/// Follows a queue and checks each decision that needs no draw.
fn follow(case: &str, events: &[(Instant, Event)]) -> Found {
    let (ecn, hard, head) = (case != "sfq_red", case == "sfq_red_hard", case == "sfq_red_head");
    let Discipline::Sfq(built) = queue(&with_red()) else { panic!("not SFQ") };
    let fresh = built.queue().red.expect("RED");
    let departures = events.iter().filter_map(|(_, event)| match event {
        Event::Departure { number, marked } => Some((*number, *marked)),
        _ => None,
    });
    let marked: BTreeMap<u64, bool> = departures.collect();
    let (mut flows, mut found) = (BTreeMap::<u64, FlowQueue>::new(), Found::default());
    for (now, event) in events {
        let arrival = match event {
            Event::Departure { number, .. } => {
                let first = |queue: &&mut FlowQueue| queue.waiting.front().is_some_and(|p| p.0 == *number);
                flows.values_mut().find(first).expect("first of its flow").waiting.pop_front();
                continue;
            }
            Event::Arrival(arrival) => arrival,
            Event::State(_) => continue,
        };
        let Arrival { number, flow, size, capable, ref lost } = *arrival;
        let empty = || FlowQueue { waiting: VecDeque::new(), law: fresh, cycle: None };
        let queue = flows.entry(flow).or_insert_with(empty);
        if queue.waiting.is_empty() {
            *queue = empty();
        }
        let queued: u64 = queue.waiting.iter().map(|p| p.1).sum();
        // The average does not depend on what RED decides.
        queue.law.on_arrival(*now, queued as f64, Bytes::new(size), || 1.0 - f64::EPSILON);
        let avg = queue.law.average().at(*now);
        let first = queue.waiting.front().copied();
        let full = queue.waiting.len() >= 100;
        assert!(!full || avg >= MAX_TH, "{case} {number}: at the depth, RED chooses each packet");
        let is_marked = marked.get(&number) == Some(&true);
        // The packet that loses its place, or gets the mark.
        let victim = if head { first.map_or(number, |first| first.0) } else { number };
        if avg < MIN_TH {
            assert!(lost.is_empty(), "{case} {number}: below min");
            // At the head of the queue, a later choice may still mark it.
            assert!(head || !is_marked, "{case} {number}: below min");
            (queue.cycle, found.below) = (None, found.below + 1);
        } else if avg >= MAX_TH {
            let head_takes = head && first.is_some_and(|first| first.2);
            let marks = ecn && !hard && (head_takes || capable);
            // At the depth, a packet is lost in spite of its mark.
            assert_eq!(
                *lost,
                if marks && !full { vec![] } else { vec![victim] },
                "{case} {number}: above max"
            );
            let bearer = if head_takes { victim } else { number };
            // A packet that is lost later shows no mark.
            assert!(!marks || marked.get(&bearer) != Some(&false), "{case} {number}: above max");
            (queue.cycle, found.forced) = (None, found.forced + 1);
        } else if head {
            let capable = capable || first.is_some_and(|first| first.2);
            assert!(lost.is_empty() || (!capable && *lost == [victim]), "{case} {number}");
        } else {
            let hit = !lost.is_empty() || is_marked;
            assert!(!hit || lost.is_empty() == (ecn && capable), "{case} {number}");
            if let Some((count, most)) = queue.cycle.as_mut() {
                *count += 1.0;
                let reached = (*count * queue.law.probability(avg)).min(1.0);
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
                    queue.cycle = Some((0.0, 0.0));
                }
            } else {
                assert!(!hit, "{case} {number}: the first of a cycle only draws");
                queue.cycle = Some((0.0, 0.0));
            }
        }
        if lost.contains(&number) {
            continue;
        }
        if !lost.is_empty() {
            queue.waiting.pop_front();
        }
        queue.waiting.push_back((number, size, capable));
    }
    found
}

/// Returns what the whole discipline does with the kernel's arrivals when it is asked for packets at the kernel's
/// instants.
fn ours(case: &str) -> Vec<(Instant, Event)> {
    let mut given = with_red();
    given.push(("ecn", Value::Flag(case != "sfq_red")));
    given.push(("head_drop", Value::Flag(case == "sfq_red_head")));
    given.push(("ecn_region", Value::Choice(if case == "sfq_red_hard" { "rfc3168" } else { "linux" })));
    let (mut queue, mut fates, mut found) = (queue(&given), Fates::default(), Vec::new());
    let leave =
        |out: Stamped<Pkt>| Event::Departure { number: out.packet.number, marked: out.packet.ecn == Ecn::Ce };
    for (now, event) in events(case) {
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
fn red_decides_by_the_average_of_each_flow() {
    for case in RED_CASES {
        check_red(case, &events(case));
        check_red(case, &ours(case));
    }
}

fn check_red(case: &str, events: &[(Instant, Event)]) {
    let found = follow(case, events);
    let deviation = (found.hits - found.expected).abs() / found.variance.sqrt().max(1e-9);
    println!("{case}: {found:?}, {deviation:.2} standard deviations");
    assert!(found.below > 300 && found.forced > 100, "{case}");
    assert!(case == "sfq_red_head" || (found.expected > 20.0 && deviation < 4.0), "{case}");
}
