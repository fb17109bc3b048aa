//! Compares the preset `linux` with Linux's RED, CoDel, pfifo and bfifo, decision by decision
//! (`vectors/linux-decisions`): which packets the kernel refused, dropped and marked, and when, given the
//! same arrivals and departures at the same instants.

use std::collections::VecDeque;
use std::path::PathBuf;

use aqmlab_params::{Settings, Value};
use aqmlab_qdisc::contract::LINK;
use aqmlab_qdisc::law::{
    ByteMode, Counting, Decision, EcnRegion, IdleRule, RedArithmetic, RedLaw, RedParams, SpacingRule,
};
use aqmlab_qdisc::{Cause, Discipline, Ecn, Observer, Qdisc, Stamped};
use aqmlab_random::Stream;
use aqmlab_units::{Bytes, Instant, Span};

mod support;
use support::{Pkt, build, bytes, law_value, packets, settings};

/// An event at the kernel's queue.
enum Event {
    /// A packet of this size arrives, ECN-capable or not, and is queued or refused.
    Arrival { size: u64, capable: bool, queued: bool },
    /// The packet with this number leaves, marked or not; those before it that are still waiting
    /// are dropped.
    Departure { number: u64, marked: bool },
    /// Figures that the kernel's discipline reports about its own state.
    State(Vec<i64>),
}

fn events(case: &str) -> Vec<(Instant, Event)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../vectors/linux-decisions");
    let path = folder.join(format!("{case}.csv"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let event = |line: &str| {
        let [at, event, values] = line.split(',').collect::<Vec<_>>()[..] else { panic!("{case}: {line}") };
        let values: Vec<i64> = values.split(' ').map(|value| value.parse().expect(line)).collect();
        let first = values[0].unsigned_abs();
        let event = match event {
            "queued" | "refused" => {
                Event::Arrival { size: first, capable: values[1] == 1, queued: event == "queued" }
            }
            "sent" | "marked" => Event::Departure { number: first, marked: event == "marked" },
            "state" => Event::State(values),
            _ => panic!("{case}: {line}"),
        };
        (Instant::from_ns(at.parse().expect(line)), event)
    };
    text.lines().skip(1).map(event).collect()
}

/// The fate of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Refused,
    Dropped,
    Marked,
    Sent,
}

/// The fates of the packets, by packet number, each with its instant.
#[derive(Default)]
struct Fates(Vec<Option<(Instant, Fate)>>);

impl Fates {
    fn set(&mut self, now: Instant, number: u64, fate: Fate) {
        let number = usize::try_from(number).unwrap();
        self.0.resize(self.0.len().max(number + 1), None);
        assert_eq!(self.0[number].replace((now, fate)), None, "packet {number} has two fates");
    }
}

/// The fates of the packets in the kernel.
fn theirs(events: &[(Instant, Event)]) -> Fates {
    let (mut fates, mut waiting, mut arrivals) = (Fates::default(), VecDeque::new(), 0);
    for (now, event) in events {
        match event {
            Event::Arrival { queued, .. } => {
                if *queued {
                    waiting.push_back(arrivals);
                } else {
                    fates.set(*now, arrivals, Fate::Refused);
                }
                arrivals += 1;
            }
            Event::Departure { number, marked } => {
                while let Some(first) = waiting.pop_front().filter(|first| first != number) {
                    fates.set(*now, first, Fate::Dropped);
                }
                fates.set(*now, *number, if *marked { Fate::Marked } else { Fate::Sent });
            }
            Event::State(_) => {}
        }
    }
    assert!(waiting.is_empty(), "packets that have no fate");
    fates
}

/// Records drops with the given fate: refused at an arrival, or dropped when the queue is polled.
struct Drops<'a> {
    fates: &'a mut Fates,
    fate: Fate,
}

impl Observer<Stamped<Pkt>> for Drops<'_> {
    fn dropped(&mut self, now: Instant, pkt: Stamped<Pkt>, _: Cause) {
        self.fates.set(now, pkt.packet.number, self.fate);
    }
    fn marked(&mut self, _: Instant, _: &Stamped<Pkt>, _: Cause) {}
}

/// Replays the arrivals, and polls the queue at the kernel's departures. `state` is called with the kernel's
/// figures.
fn ours(
    events: &[(Instant, Event)],
    queue: &mut Discipline<Stamped<Pkt>>,
    mut state: impl FnMut(Instant, &Discipline<Stamped<Pkt>>, &[i64]),
) -> Fates {
    let (mut fates, mut arrivals) = (Fates::default(), 0);
    for (now, event) in events {
        match event {
            Event::Arrival { size, capable, .. } => {
                let ecn = if *capable { Ecn::Ect0 } else { Ecn::NotEct };
                let packet = Pkt { size: *size, ecn, ..Pkt::new(arrivals) };
                let mut drops = Drops { fates: &mut fates, fate: Fate::Refused };
                queue.enqueue(*now, Stamped { packet, arrived: *now }, &mut drops);
                arrivals += 1;
            }
            Event::Departure { .. } => {
                let mut drops = Drops { fates: &mut fates, fate: Fate::Dropped };
                if let Some(out) = queue.dequeue(*now, &mut drops) {
                    let fate = if out.packet.ecn == Ecn::Ce { Fate::Marked } else { Fate::Sent };
                    fates.set(*now, out.packet.number, fate);
                }
            }
            Event::State(figures) => state(*now, queue, figures),
        }
    }
    fates
}

fn differ(ours: &Fates, theirs: &Fates) -> usize {
    (0..theirs.0.len()).filter(|&i| ours.0.get(i).copied().flatten() != theirs.0[i]).count()
}

fn count(fates: &Fates, fate: Fate) -> usize {
    fates.0.iter().flatten().filter(|(_, found)| *found == fate).count()
}

/// Replays a case of CoDel and compares its state too; returns the number of fates and the number of states
/// that differ.
fn codel(case: &str, given: &Settings) -> (usize, usize) {
    let events = events(case);
    let mut queue = build("codel", given, &LINK, Stream::new(1, "unused"));
    let (mut states, mut wrong, mut drop_next_ns) = (0, 0, 0);
    let found = ours(&events, &mut queue, |now, queue, figures| {
        let value = |name| law_value(queue, now, name);
        let [count, _, dropping, until_us] = figures[..] else { panic!("{case}: {figures:?}") };
        states += 1;
        wrong += usize::from(value("count") as i64 != count || value("dropping") as i64 != dropping);
        if dropping == 1 {
            let until_ns = value("drop_next").mul_add(1e9, -(now.as_ns() as f64));
            drop_next_ns = drop_next_ns.max((until_ns - 1000.0 * until_us as f64).abs() as u64);
        }
    });
    let kernel = theirs(&events);
    let of = |fate| count(&kernel, fate);
    let differ = differ(&found, &kernel);
    println!(
        "{case}: {} packets, {} dropped, {} marked, {} refused; {differ} fates differ, {wrong} of {states} states, drop_next by {drop_next_ns} ns",
        kernel.0.len(),
        of(Fate::Dropped),
        of(Fate::Marked),
        of(Fate::Refused),
    );
    (differ, wrong)
}

fn preset(more: &[(&'static str, Value)]) -> Settings {
    settings(&[&[("preset", Value::Choice("linux"))], more].concat())
}

fn codel_cases() -> [(&'static str, Settings); 5] {
    let ecn = ("ecn", Value::Flag(true));
    let times = |target, interval| [("target", Value::Span(target)), ("interval", Value::Span(interval))];
    [
        ("codel_constant", preset(&[])),
        ("codel_bursts", preset(&[])),
        ("codel_ecn", preset(std::slice::from_ref(&ecn))),
        ("codel_short", preset(&[&times(Span::ms(1), Span::ms(20))[..], &[ecn]].concat())),
        (
            "codel_limit",
            preset(&[&times(Span::ms(20), Span::ms(100))[..], &[("limit", packets(40))]].concat()),
        ),
    ]
}

#[test]
fn codel_decides_as_the_kernel() {
    for (case, given) in codel_cases() {
        assert_eq!(codel(case, &given), (0, 0), "{case}: fates and states that differ");
    }
}

/// The RFC's arithmetic decides differently where many packets are chosen, so the cases distinguish it from
/// Linux's arithmetic.
#[test]
fn exact_arithmetic_is_not_the_kernels() {
    for (case, mut given) in codel_cases() {
        given.set("arithmetic", Value::Choice("exact"), aqmlab_params::Origin::Given);
        let (differ, _) = codel(case, &given);
        let few = ["codel_bursts", "codel_limit"].contains(&case);
        assert_eq!(differ > 0, !few, "{case}");
    }
}

#[test]
fn fifos_decide_as_the_kernels() {
    for (case, limit) in [("pfifo", packets(20)), ("bfifo", bytes(20_000))] {
        let events = events(case);
        let mut queue = build("droptail", &settings(&[("limit", limit)]), &LINK, Stream::new(1, "unused"));
        let (found, kernel) = (ours(&events, &mut queue, |_, _, _| {}), theirs(&events));
        println!("{case}: {} packets, {} refused", kernel.0.len(), count(&kernel, Fate::Refused));
        assert!(count(&kernel, Fate::Refused) > 300);
        assert_eq!(differ(&found, &kernel), 0, "{case}");
    }
}

const MIN_TH: f64 = 15_000.0;
const MAX_TH: f64 = 45_000.0;

/// The parameters that tc derives from `min 15000 max 45000 avpkt 1000 burst 25 bandwidth 10Mbit`.
fn red(max_p: f64, harddrop: bool) -> RedParams {
    let size = |name, n| (name, bytes(n));
    let given = preset(&[
        size("limit", 400_000),
        size("min_th", 15_000),
        size("max_th", 45_000),
        size("mean_packet", 1000),
        ("burst", Value::Integer(25)),
    ]);
    let resolved = aqmlab_qdisc::registry::info("red").unwrap().resolve(&given, &LINK).unwrap();
    RedParams {
        min_th: MIN_TH,
        max_th: MAX_TH,
        max_p,
        weight: resolved.number("w_q").unwrap(),
        gentle: false,
        spacing: SpacingRule::Linux,
        byte_mode: ByteMode::Off,
        idle: IdleRule::Linux,
        counting: Counting::Linux,
        ecn_region: if harddrop { EcnRegion::BelowMaxTh } else { EcnRegion::Everywhere },
        arithmetic: RedArithmetic::Linux,
        packets_per_s: 1250.0,
    }
}

/// An arrival at RED: the instant, the packets waiting, its size, whether it is ECN-capable, and its
/// fate.
struct Arrival {
    now: Instant,
    waiting: u64,
    size: u64,
    capable: bool,
    fate: Fate,
    /// The kernel's average in bytes; it has k fractional bits if the weight is 2^-k. Behind htb, the average
    /// does not decay over idle periods.
    average: f64,
}

fn arrivals(events: &[(Instant, Event)], weight: f64) -> Vec<Arrival> {
    let fates = theirs(events);
    let bits = (1.0 / weight).log2() as u32;
    assert_eq!(0.5f64.powi(bits as i32), weight, "tc's weights are powers of two");
    let (mut waiting, mut sizes, mut found, mut average) = (0, Vec::new(), Vec::new(), 0u64);
    for (now, event) in events {
        match *event {
            Event::Arrival { size, capable, queued } => {
                let (_, fate) = fates.0[found.len()].expect("each packet has a fate");
                average = average + waiting - (average >> bits);
                let average = average as f64 * weight;
                found.push(Arrival { now: *now, waiting, size, capable, fate, average });
                sizes.push(size);
                waiting += if queued { size } else { 0 };
            }
            Event::Departure { number, .. } => waiting -= sizes[usize::try_from(number).unwrap()],
            Event::State(_) => {}
        }
    }
    found
}

/// Draws that make RED decide as the kernel did.
#[derive(Default)]
struct Draws {
    /// One value for each draw of the law, in order, that makes the law decide as the kernel did.
    fitting: Vec<f64>,
    /// For decisions with a draw: the number of hits, its expected value and its variance, separately for each
    /// quarter of [0, 1) in which the product of count and probability may lie.
    hits: [f64; 4],
    expected: [f64; 4],
    variance: [f64; 4],
    /// Number of hits that no draw can explain, plus hits that were certain but did not occur.
    impossible: usize,
}

impl Draws {
    /// Ends a cycle, whose draw must have been at least `least` and less than `below` (1 if no hit ended the
    /// cycle).
    fn end(&mut self, least: f64, below: f64) {
        self.fitting.push(f64::midpoint(least, below));
        self.impossible += usize::from(least >= below);
    }
}

/// Follows the kernel's decisions between the thresholds. RED draws a number R in [0, 1) at the
/// beginning of a cycle and hits as soon as the product of count and probability reaches it.
fn draws(arrivals: &[Arrival], law: &RedLaw, limit: u64) -> Draws {
    let (mut draws, mut cycle): (Draws, Option<(f64, f64)>) = (Draws::default(), None);
    for arrival in arrivals {
        let avg = arrival.average;
        // A packet that finds no room counts as an overflow.
        let full = arrival.waiting + arrival.size > limit;
        let hit = arrival.fate == Fate::Marked || (arrival.fate == Fate::Refused && !full);
        if !(MIN_TH..MAX_TH).contains(&avg) {
            if let Some((_, most)) = cycle.take() {
                draws.end(most, 1.0);
            }
            continue;
        }
        let Some((packets, most)) = cycle.as_mut() else {
            cycle = Some((0.0, 0.0));
            draws.impossible += usize::from(hit);
            continue;
        };
        *packets += 1.0;
        let reached = (*packets * law.probability(avg)).min(1.0);
        if reached > *most {
            let p = (reached - *most) / (1.0 - *most);
            let quarter = (reached * 4.0).min(3.0) as usize;
            draws.hits[quarter] += f64::from(u8::from(hit));
            draws.expected[quarter] += p;
            draws.variance[quarter] += p * (1.0 - p);
        }
        if hit {
            draws.end(*most, reached);
            cycle = Some((0.0, 0.0));
        } else {
            *most = most.max(reached);
        }
    }
    if let Some((_, most)) = cycle {
        draws.end(most, 1.0);
    }
    draws
}

/// Below the lower threshold no packet is chosen, and above the upper one every packet is. Between
/// them, there are draws that make the law decide as the kernel did, and these draws are uniform.
#[test]
fn red_decides_as_the_kernel_where_it_draws_nothing_and_as_often_where_it_draws() {
    let (mut hits, mut expected, mut variance, mut sides) = (0.0, 0.0, 0.0, 0);
    for (case, max_p, limit, ecn, harddrop) in [
        ("red_constant", 0.1, 400_000, false, false),
        ("red_bursts", 0.02, 400_000, false, false),
        ("red_ecn", 0.1, 400_000, true, false),
        ("red_harddrop", 0.1, 400_000, true, true),
        ("red_limit", 1e-4, 40_000, true, false),
    ] {
        let params = red(max_p, harddrop);
        let arrivals = arrivals(&events(case), params.weight);
        let mut law = RedLaw::new(params);
        let mut real = RedLaw::new(RedParams { arithmetic: RedArithmetic::Exact, ..params });
        let draws = draws(&arrivals, &law, limit);
        let mut given = draws.fitting.iter();
        let (mut differ, mut drawn, mut overflows, mut other_side) = (0, 0, 0, 0);
        let mut apart = 0.0f64;
        for arrival in &arrivals {
            let size = Bytes::new(arrival.size);
            let draw = || *given.next().expect("as many draws as the kernel made");
            let decision = law.on_arrival(arrival.now, arrival.waiting as f64, size, draw);
            assert_eq!(law.average().at(arrival.now), arrival.average, "{case}");
            let full = arrival.waiting + arrival.size > limit;
            let fate = match decision {
                Decision::Notify(notice) if !(ecn && arrival.capable && notice.markable) => Fate::Refused,
                _ if full => Fate::Refused,
                Decision::Notify(_) => Fate::Marked,
                Decision::Admit => Fate::Sent,
            };
            drawn += usize::from((MIN_TH..MAX_TH).contains(&arrival.average));
            overflows += usize::from(full && fate == Fate::Refused);
            differ += usize::from(fate != arrival.fate);
            let _ = real.on_arrival(arrival.now, arrival.waiting as f64, size, || 0.5);
            let average = real.average().at(arrival.now);
            apart = apart.max((average - arrival.average).abs());
            let side = |average: f64| (average >= MIN_TH, average >= MAX_TH);
            other_side += usize::from(side(average) != side(arrival.average));
        }
        let quarters: [f64; 4] =
            std::array::from_fn(|i| (draws.hits[i] - draws.expected[i]) / draws.variance[i].max(1e-9).sqrt());
        println!(
            "{case}: {} packets, {drawn} between the thresholds, {overflows} overflows; {differ} differ, {} impossible; hits {:?}, expected {:.1?}, deviations {quarters:.1?}; real averages: up to {apart:.2} B apart, {other_side} on the other side",
            arrivals.len(),
            draws.impossible,
            draws.hits,
            draws.expected
        );
        assert!(given.next().is_none(), "{case}: as many draws as the kernel made");
        assert_eq!((differ, draws.impossible), (0, 0), "{case}");
        assert!(apart < 1.0, "{case}");
        sides += other_side;
        for (i, deviation) in quarters.iter().enumerate() {
            assert!(deviation.abs() < 4.0 || draws.expected[i] < 0.5, "{case}: {quarters:?}");
        }
        hits += draws.hits.iter().sum::<f64>();
        expected += draws.expected.iter().sum::<f64>();
        variance += draws.variance.iter().sum::<f64>();
    }
    println!("hits: {hits}, expected {expected:.1} with a standard deviation of {:.1}", variance.sqrt());
    assert!((hits - expected).abs() < 3.0 * variance.sqrt() && expected > 100.0);
    assert_eq!(
        sides, 2,
        "real numbers would decide differently, so the cases distinguish the two arithmetics"
    );
}

/// GRED computes RED's average and reports it, in whole bytes. Its idle period begins when its last packet
/// leaves.
#[test]
fn the_average_is_the_kernels() {
    let events = events("gred_average");
    let params = red(0.02, false);
    let arrivals = arrivals(&events, params.weight);
    let (mut law, mut number, mut waiting) = (RedLaw::new(params), 0, 0);
    let mut states = 0;
    for (now, event) in &events {
        match event {
            Event::Arrival { size, queued, .. } => {
                let queue = arrivals[number].waiting as f64;
                let _ = law.on_arrival(*now, queue, Bytes::new(*size), || 0.5);
                number += 1;
                waiting += usize::from(*queued);
            }
            Event::Departure { .. } => {
                waiting -= 1;
                if waiting == 0 {
                    law.on_idle(*now);
                }
            }
            Event::State(figures) => {
                assert_eq!(figures[0], arrived_average(&law) as i64, "at {now:?}");
                states += 1;
            }
        }
    }
    println!("{states} averages are equal");
    assert!(states > 1000);
}

/// The average at the last arrival, which the kernel reports while the link is idle.
fn arrived_average(law: &RedLaw) -> f64 {
    law.average().at(Instant::ZERO)
}
