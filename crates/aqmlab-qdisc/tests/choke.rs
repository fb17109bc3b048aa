//! CHOKe compared with Linux's (`vectors/linux-flow-decisions`), and its queue with a model that keeps only a list of
//! places.

use std::collections::BTreeMap;

use aqmlab_params::Value;
use aqmlab_qdisc::contract::LINK;
use aqmlab_qdisc::law::{
    ByteMode, ChokeLaw, Comparisons, Counting, EcnRegion, IdleRule, RedArithmetic, RedParams, SpacingRule,
};
use aqmlab_qdisc::{Qdisc, Reason, registry};
use aqmlab_random::{Numbered, Stream, unit_from_bits};
use aqmlab_units::{Instant, Span};

mod support;
use support::flow_decisions::{Arrival, Event, events};
use support::{Fates, Pkt, build, law_value, packets, settings};

/// What a case gives to tc, and the exponent of the weight that tc shows.
struct Case {
    name: &'static str,
    limit: u64,
    min_th: u64,
    max_th: u64,
    burst: u64,
    max_p: f64,
    ewma: i32,
}

const fn case(name: &'static str, max_p: f64) -> Case {
    Case { name, limit: 200, min_th: 10, max_th: 40, burst: 20, max_p, ewma: 4 }
}

fn law(case: &Case) -> ChokeLaw {
    let given = settings(&[
        ("preset", Value::Choice("linux")),
        ("limit", packets(case.limit)),
        ("min_th", packets(case.min_th)),
        ("max_th", packets(case.max_th)),
        ("burst", Value::Integer(case.burst)),
    ]);
    let resolved = registry::info("choke").unwrap().resolve(&given, &LINK).unwrap();
    let weight = resolved.number("w_q").unwrap();
    assert_eq!(weight, 0.5f64.powi(case.ewma), "{}", case.name);
    let red = RedParams {
        min_th: case.min_th as f64,
        max_th: case.max_th as f64,
        max_p: case.max_p,
        weight,
        gentle: false,
        spacing: SpacingRule::Linux,
        byte_mode: ByteMode::Off,
        idle: IdleRule::Linux,
        counting: Counting::Linux,
        ecn_region: EcnRegion::Everywhere,
        arithmetic: RedArithmetic::Linux,
        packets_per_s: 1250.0,
    };
    ChokeLaw::new(red, Comparisons::Fixed(1))
}

/// Hits among decisions with a draw: how many there were, how many were expected, and the variance.
#[derive(Default, Debug)]
struct Hits {
    hits: f64,
    expected: f64,
    variance: f64,
}

impl Hits {
    fn add(&mut self, hit: bool, p: f64) {
        self.hits += f64::from(u8::from(hit));
        self.expected += p;
        self.variance += p * (1.0 - p);
    }

    /// The distance from the expected number, in standard deviations.
    fn deviation(&self) -> f64 {
        (self.hits - self.expected).abs() / self.variance.sqrt().max(1e-9)
    }
}

/// The kernel's table of packets: (number, flow), with gaps. The first and the last place are no gaps.
#[derive(Default)]
struct Table(Vec<Option<(u64, u64)>>);

impl Table {
    fn waiting(&self) -> u64 {
        self.0.iter().flatten().count() as u64
    }

    fn remove(&mut self, number: u64) -> u64 {
        let place = self.0.iter().position(|p| p.is_some_and(|(n, _)| n == number)).expect("it waits");
        let flow = self.0[place].take().map(|(_, flow)| flow).unwrap();
        while matches!(self.0.last(), Some(None)) {
            self.0.pop();
        }
        let gaps = self.0.iter().take_while(|p| p.is_none()).count();
        self.0.drain(..gaps);
        flow
    }

    /// The probability that an arrival of this flow meets its flow.
    fn meeting(&self, flow: u64) -> f64 {
        let Some(first) = self.0.first() else { return 0.0 };
        let len = self.0.len() as f64;
        let same = self.0.iter().flatten().filter(|(_, f)| *f == flow).count() as f64 / len;
        let gap = self.0.iter().filter(|p| p.is_none()).count() as f64 / len;
        let oldest = f64::from(u8::from(first.is_some_and(|(_, f)| f == flow)));
        same * (1.0 + gap + gap * gap) + gap * gap * gap * oldest
    }
}

/// What following a case has found.
#[derive(Default, Debug)]
struct Found {
    below: usize,
    forced: usize,
    overflows: usize,
    meetings: Hits,
    red: Hits,
    gaps: usize,
}

/// Follows the kernel's queue and checks each decision that needs no draw.
fn follow(case: &Case) -> Found {
    let (events, mut law, mut table, mut found) =
        (events(case.name), law(case), Table::default(), Found::default());
    let marked: BTreeMap<u64, bool> =
        events
            .iter()
            .filter_map(|(_, e)| {
                if let Event::Departure { number, marked } = e { Some((*number, *marked)) } else { None }
            })
            .collect();
    // The cycle of RED's draw: arrivals since it began, and the largest product of count and probability so far.
    let mut cycle: Option<(f64, f64)> = None;
    for (now, event) in &events {
        let arrival = match event {
            Event::Departure { number, .. } => {
                assert_eq!(table.0[0].unwrap().0, *number, "{}: first in, first out", case.name);
                table.remove(*number);
                continue;
            }
            Event::Arrival(arrival) => arrival,
            Event::State(_) => continue,
        };
        let Arrival { number, flow, capable, ref lost, .. } = *arrival;
        let waiting = table.waiting();
        let avg = law.on_arrival(*now, waiting as f64);
        let full = waiting >= case.limit;
        let victim = lost.iter().find(|n| **n != number);
        let refused = lost.contains(&number);
        found.gaps += usize::from(table.0.iter().any(Option::is_none));
        if law.comparisons(avg) == 0 {
            assert!(victim.is_none() && refused == full, "{} {number}: below min_th", case.name);
            found.below += 1;
            found.overflows += usize::from(full);
            cycle = None;
        } else {
            let p = table.meeting(flow);
            assert!(p > 0.0 || victim.is_none(), "{} {number}", case.name);
            assert!(p < 1.0 || victim.is_some(), "{} {number}", case.name);
            found.meetings.add(victim.is_some(), p);
            if let Some(victim) = victim {
                assert!(refused && lost.len() == 2, "both are lost");
                assert_eq!(table.remove(*victim), flow, "of the same flow");
                continue;
            }
            if avg > case.max_th as f64 {
                let marks = case.name == "choke_ecn" && capable;
                assert_eq!(refused, !marks || full, "{} {number}: above max_th", case.name);
                // A packet that meets its flow later shows no mark.
                assert!(refused || marked.get(&number) != Some(&false), "{} {number}", case.name);
                found.forced += 1;
                cycle = None;
            } else if full {
                assert!(refused);
                found.overflows += 1;
            } else if case.name == "choke_drop" {
                if let Some((count, most)) = cycle.as_mut() {
                    *count += 1.0;
                    let reached = (*count * law.red().probability(avg)).min(1.0);
                    if reached > *most {
                        found.red.add(refused, (reached - *most) / (1.0 - *most));
                        *most = reached;
                    } else {
                        assert!(!refused, "{} {number}: no draw", case.name);
                    }
                    if refused {
                        cycle = Some((0.0, 0.0));
                    }
                } else {
                    assert!(!refused, "{} {number}: the first of a cycle only draws", case.name);
                    cycle = Some((0.0, 0.0));
                }
            }
        }
        if !refused {
            table.0.push(Some((number, flow)));
        }
    }
    assert!(table.0.is_empty(), "packets without a fate");
    found
}

#[test]
fn the_kernel_compares_and_decides_as_the_law() {
    let limited =
        Case { limit: 40, min_th: 35, max_th: 39, burst: 40, max_p: 0.02, ewma: 3, name: "choke_limit" };
    let mut forced = 0;
    for case in [case("choke_drop", 0.1), case("choke_ecn", 0.05), case("choke_single", 0.02), limited] {
        let found = follow(&case);
        println!("{}: {found:?}", case.name);
        assert!(found.below > 300);
        forced += found.forced;
        match case.name {
            "choke_single" => {
                assert!(found.meetings.variance < 1e-9 && found.meetings.hits > 300.0, "each meets its flow")
            }
            "choke_limit" => assert!(found.overflows > 20 && found.meetings.deviation() < 4.0),
            _ => {
                assert!(found.gaps > 300);
                assert!(found.meetings.hits > 300.0 && found.meetings.deviation() < 4.0, "{found:?}");
            }
        }
        if case.name == "choke_drop" {
            assert!(found.red.hits > 30.0 && found.red.deviation() < 4.0, "{found:?}");
        }
    }
    assert!(forced > 600);
}

const LIMIT: usize = 34;
const PACKET_TIME: Span = Span::us(1200);

/// A literal implementation of figure 1 with RED's pseudo-code and a list of places. Lengths are in packets.
struct Model {
    gaps: bool,
    comparisons: fn(f64) -> u64,
    places: Vec<Option<Pkt>>,
    avg: f64,
    count: f64,
    idle_since: Option<Instant>,
    drawn: u64,
    matched: u64,
}

const MIN_TH: f64 = 10.0;
const MAX_TH: f64 = 30.0;
const MAX_P: f64 = 0.1;
const W_Q: f64 = 0.05;

impl Model {
    fn new(gaps: bool, comparisons: fn(f64) -> u64) -> Self {
        let idle_since = Some(Instant::ZERO);
        Model {
            gaps,
            comparisons,
            places: Vec::new(),
            avg: 0.0,
            count: -1.0,
            idle_since,
            drawn: 0,
            matched: 0,
        }
    }

    fn waiting(&self) -> usize {
        self.places.iter().flatten().count()
    }

    fn trim(&mut self) {
        if !self.gaps {
            self.places.retain(Option::is_some);
        }
        while self.places.last() == Some(&None) {
            self.places.pop();
        }
        while self.places.first() == Some(&None) {
            self.places.remove(0);
        }
    }

    fn aged(&self, now: Instant) -> f64 {
        let Some(since) = self.idle_since else { return self.avg };
        let virtual_packets = ((now - since).as_secs_f64() * LINK.packets_per_s()).floor();
        self.avg * (1.0 - W_Q).powi(virtual_packets as i32)
    }

    /// Returns the place of the packet with which an arrival is compared.
    fn candidate(&mut self, draws: &mut Numbered) -> usize {
        for _ in 0..3 {
            let unit = unit_from_bits(draws.at((1 << 62) + self.drawn));
            self.drawn += 1;
            let place = (unit * self.places.len() as f64) as usize;
            if self.places[place].is_some() {
                return place;
            }
        }
        0
    }

    /// Returns the packets that are lost, with reasons.
    fn arrives(&mut self, now: Instant, pkt: Pkt, draws: &mut Numbered) -> Vec<(u64, Reason)> {
        let queued = self.waiting();
        self.avg = if self.idle_since.is_some() && self.avg > 0.0 {
            self.aged(now)
        } else {
            self.avg * (1.0 - W_Q) + W_Q * queued as f64
        };
        self.idle_since = None;
        if self.avg <= MIN_TH {
            self.count = -1.0;
            return self.queue(pkt);
        }
        let mut lost = Vec::new();
        for _ in 0..(self.comparisons)(self.avg) {
            if self.places.is_empty() {
                break;
            }
            let place = self.candidate(draws);
            if let Some(met) = self.places[place].filter(|met| met.flow == pkt.flow) {
                self.places[place] = None;
                self.trim();
                lost.push((met.number, Reason::Early));
            }
        }
        if !lost.is_empty() {
            lost.push((pkt.number, Reason::Early));
            self.matched += 1;
            return lost;
        }
        if self.avg > MAX_TH {
            self.count = 0.0;
            return vec![(pkt.number, Reason::Forced)];
        }
        self.count += 1.0;
        let pb = MAX_P * (self.avg - MIN_TH) / (MAX_TH - MIN_TH);
        let pa = if self.count * pb < 1.0 { pb / (1.0 - self.count * pb) } else { 1.0 };
        if unit_from_bits(draws.at(pkt.number)) < pa {
            self.count = 0.0;
            return vec![(pkt.number, Reason::Early)];
        }
        self.queue(pkt)
    }

    fn queue(&mut self, pkt: Pkt) -> Vec<(u64, Reason)> {
        if self.waiting() == LIMIT {
            return vec![(pkt.number, Reason::Overflow)];
        }
        self.places.push(Some(pkt));
        Vec::new()
    }

    fn leaves(&mut self, now: Instant) -> Option<Pkt> {
        if self.places.is_empty() {
            self.idle_since.get_or_insert(now);
            return None;
        }
        let pkt = self.places.remove(0);
        self.trim();
        pkt
    }
}

const fn one(_: f64) -> u64 {
    1
}

const fn three(_: f64) -> u64 {
    3
}

/// Four regions: 2 comparisons up to 15, 4 up to 20, 6 up to 25, and then 8.
fn by_region(avg: f64) -> u64 {
    (1..=4u32).find(|i| avg <= 10.0 + 5.0 * f64::from(*i)).map_or(8, |i| 2 * u64::from(i))
}

/// Sends random bursts, with silences, checks that every fate agrees with the model, and returns the number of drops
/// for each reason.
fn compare(
    seed: u64,
    flows: u64,
    more: &[(&'static str, Value)],
    mut model: Model,
) -> BTreeMap<Reason, usize> {
    let given = [
        ("limit", packets(LIMIT as u64)),
        ("min_th", packets(10)),
        ("max_th", packets(30)),
        ("max_p", Value::Number(MAX_P)),
        ("w_q", Value::Number(W_Q)),
    ];
    let draws = Stream::new(seed, "choke");
    let mut choke = build("choke", &settings(&[&given, more].concat()), &LINK, draws);
    let mut numbered = draws.numbered();
    let (mut now, mut world, mut fates) = (Instant::ZERO, Stream::new(seed, "world"), Fates::default());
    let (mut number, mut reasons) = (0, BTreeMap::<Reason, usize>::new());
    for _ in 0..3000 {
        let (arrivals, departures) = match world.below(40) {
            0 => {
                now += Span::ms(world.below(300));
                (0, 2 * LIMIT)
            }
            1..10 => (world.below(20), 0),
            _ => (world.below(4), world.below(3) as usize),
        };
        for _ in 0..arrivals {
            // One flow sends half of all packets.
            let flow = if world.below(2) == 0 { 0 } else { world.below(flows) };
            let pkt = Pkt { size: 1500, flow, ..Pkt::new(number) };
            let expected = model.arrives(now, pkt, &mut numbered);
            choke.enqueue(now, pkt, &mut fates);
            assert_eq!(fates.lost(), expected, "seed {seed} packet {number}");
            fates.dropped.clear();
            expected.iter().for_each(|(_, reason)| *reasons.entry(*reason).or_default() += 1);
            number += 1;
        }
        for _ in 0..departures {
            now += PACKET_TIME;
            assert_eq!(choke.dequeue(now, &mut fates), model.leaves(now), "seed {seed}");
        }
        assert!((law_value(&choke, now, "avg") - model.aged(now)).abs() < 1e-9, "seed {seed}");
        assert_eq!(law_value(&choke, now, "matched"), model.matched as f64, "seed {seed}");
        assert_eq!(choke.backlog().packets.get(), model.waiting() as u64);
    }
    reasons
}

#[test]
fn the_queue_agrees_with_the_figure_over_a_plain_list() {
    let mut all = BTreeMap::<Reason, usize>::new();
    for seed in 0..10 {
        for flows in [3, 100] {
            for (more, gaps, comparisons) in [
                (vec![], false, one as fn(f64) -> u64),
                (vec![("candidate", Value::Choice("linux"))], true, one),
                (vec![("comparisons", Value::Integer(3))], false, three),
                (
                    vec![("regions", Value::Integer(4)), ("candidate", Value::Choice("linux"))],
                    true,
                    by_region,
                ),
            ] {
                for (reason, n) in compare(seed, flows, &more, Model::new(gaps, comparisons)) {
                    *all.entry(reason).or_default() += n;
                }
            }
        }
    }
    for reason in [Reason::Early, Reason::Forced, Reason::Overflow] {
        assert!(all[&reason] > 100, "{all:?}");
    }
}

/// Section 3 of the paper: a flow that sends more than its share meets itself more often, so its share of the link is
/// far below its share of the arrivals.
#[test]
fn a_flow_that_floods_the_queue_gets_less_than_its_share_of_the_arrivals() {
    let sent = |kind: &str| {
        let given = settings(&[("limit", packets(100)), ("min_th", packets(10)), ("max_th", packets(60))]);
        let mut queue = build(kind, &given, &LINK, Stream::new(1, kind));
        let (mut now, mut world, mut fates, mut flood) =
            (Instant::ZERO, Stream::new(2, "world"), Fates::default(), [0u32; 2]);
        for number in 0..60_000 {
            // The flood sends 1.5 times the link's rate, and 30 others half of it together.
            let flow = if world.below(4) < 3 { 0 } else { 1 + world.below(30) };
            queue.enqueue(now, Pkt { size: 1500, flow, ..Pkt::new(number) }, &mut fates);
            if number % 2 == 0 {
                now += PACKET_TIME;
                if let Some(pkt) = queue.dequeue(now, &mut fates) {
                    flood[usize::from(pkt.flow == 0)] += 1;
                }
            }
        }
        f64::from(flood[1]) / f64::from(flood[0] + flood[1])
    };
    let (red, choke) = (sent("red"), sent("choke"));
    assert!(red > 0.7, "RED drops from all alike: {red}");
    assert!(choke < 0.62, "{choke}");
}
