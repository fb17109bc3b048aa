//! FRED's queue compared with a model that keeps only a list of waiting packets and the strikes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use aqmlab_params::Value;
use aqmlab_qdisc::contract::LINK;
use aqmlab_qdisc::{Discipline, LinkContext, Qdisc, Reason};
use aqmlab_random::{Stream, unit_from_bits};
use aqmlab_units::{Instant, Span};

mod support;
use support::{Fates, Pkt, build, packets, settings};

/// Transmission time of a packet at 10 Mbit/s.
const PACKET_TIME: Span = Span::us(1200);

const fn pkt(number: u64, flow: u64) -> Pkt {
    Pkt { size: 1500, flow, ..Pkt::new(number) }
}

const LIMIT: usize = 60;

/// A literal implementation of the paper's figure 6, with plain lists. Lengths are in packets.
struct Model {
    two_packets: bool,
    waiting: VecDeque<Pkt>,
    strikes: BTreeMap<u64, u32>,
    avg: f64,
    avgcq: f64,
    count: f64,
    idle_since: Option<Instant>,
}

const MIN_TH: f64 = 15.0;
const MAX_TH: f64 = 30.0;
const MAX_P: f64 = 0.1;
const W_Q: f64 = 0.05;
const MIN_Q: usize = 2;

impl Model {
    fn new(two_packets: bool) -> Self {
        Model {
            two_packets,
            waiting: VecDeque::new(),
            strikes: BTreeMap::new(),
            avg: 0.0,
            avgcq: 1.0,
            count: -1.0,
            idle_since: Some(Instant::ZERO),
        }
    }

    fn active(&self) -> f64 {
        self.waiting.iter().map(|p| p.flow).collect::<BTreeSet<_>>().len() as f64
    }

    fn aged(&self, now: Instant) -> f64 {
        let Some(since) = self.idle_since else { return self.avg };
        let virtual_packets = ((now - since).as_secs_f64() * LINK.packets_per_s()).floor();
        self.avg * (1.0 - W_Q).powi(virtual_packets as i32)
    }

    fn arrives(&mut self, now: Instant, pkt: Pkt, u: f64) -> Option<Reason> {
        let qlen = self.waiting.iter().filter(|p| p.flow == pkt.flow).count();
        let strikes = if qlen == 0 { 0 } else { self.strikes.get(&pkt.flow).copied().unwrap_or(0) };
        self.strikes.insert(pkt.flow, strikes);
        let avg = self.aged(now);
        let extended = self.two_packets && avg >= MAX_TH;
        let max_q = if extended { 2.0 } else { MIN_TH };
        if qlen as f64 >= max_q
            || (!extended && avg >= MAX_TH && qlen as f64 > 2.0 * self.avgcq)
            || (qlen as f64 >= self.avgcq && strikes > 1)
        {
            self.strikes.insert(pkt.flow, strikes + 1);
            return Some(Reason::Forced);
        }
        if (MIN_TH..MAX_TH).contains(&avg) {
            self.count += 1.0;
            if qlen as f64 >= self.avgcq.max(MIN_Q as f64) {
                let pb = MAX_P * (avg - MIN_TH) / (MAX_TH - MIN_TH);
                let pa = if self.count * pb < 1.0 { pb / (1.0 - self.count * pb) } else { 1.0 };
                if u < pa {
                    self.count = 0.0;
                    return Some(Reason::Early);
                }
            }
        } else if avg < MIN_TH {
            self.count = -1.0;
        } else {
            self.count = 0.0;
            if !extended {
                return Some(Reason::Forced);
            }
        }
        if self.waiting.len() == LIMIT {
            return Some(Reason::Overflow);
        }
        self.avg = if self.idle_since.is_some() && self.avg > 0.0 {
            avg
        } else {
            self.avg * (1.0 - W_Q) + W_Q * self.waiting.len() as f64
        };
        self.idle_since = None;
        self.waiting.push_back(pkt);
        self.avgcq = (self.avg / self.active()).max(1.0);
        None
    }

    fn leaves(&mut self, now: Instant) -> Option<Pkt> {
        let Some(&pkt) = self.waiting.front() else {
            self.idle_since.get_or_insert(now);
            return None;
        };
        let active = self.active();
        self.waiting.pop_front();
        self.avg = self.avg * (1.0 - W_Q) + W_Q * self.waiting.len() as f64;
        self.avgcq = (self.avg / active).max(1.0);
        Some(pkt)
    }
}

/// Sends random bursts from a few or many flows, with silences, checks that every fate agrees with
/// the model, and returns the number of drops for each reason.
fn compare(seed: u64, flows: u64, two_packets: bool) -> BTreeMap<Reason, usize> {
    let given = settings(&[
        ("limit", packets(LIMIT as u64)),
        ("min_th", packets(15)),
        ("max_th", packets(30)),
        ("max_p", Value::Number(MAX_P)),
        ("w_q", Value::Number(W_Q)),
        ("min_q", Value::Integer(MIN_Q as u64)),
        ("many_flows", Value::Choice(if two_packets { "average" } else { "off" })),
    ]);
    let draws = Stream::new(seed, "fred");
    let mut fred = build("fred", &given, &LINK, draws);
    let mut numbered = draws.numbered();
    let (mut model, mut world) = (Model::new(two_packets), Stream::new(seed, "world"));
    let (mut now, mut lost, mut fates) = (Instant::ZERO, Fates::default(), BTreeMap::new());
    let mut number = 0;
    for _ in 0..4000 {
        let (arrivals, departures) = match world.below(40) {
            0 => {
                now += Span::ms(world.below(300));
                (0, 2 * LIMIT)
            }
            1..10 => (world.below(12), 0),
            _ => (world.below(4), world.below(3) as usize),
        };
        for _ in 0..arrivals {
            // One flow sends half of all packets.
            let flow = if world.below(2) == 0 { 0 } else { world.below(flows) };
            let pkt = pkt(number, flow);
            let expected = model.arrives(now, pkt, unit_from_bits(numbered.at(number)));
            fred.enqueue(now, pkt, &mut lost);
            assert_eq!(
                lost.dropped.pop().map(|(_, _, at)| at.reason),
                expected,
                "seed {seed} packet {number}"
            );
            if let Some(reason) = expected {
                *fates.entry(reason).or_default() += 1;
            }
            number += 1;
        }
        for _ in 0..departures {
            now += PACKET_TIME;
            assert_eq!(fred.dequeue(now, &mut lost), model.leaves(now), "seed {seed}");
        }
        let mut values = Vec::new();
        fred.observe(now, &mut values);
        let value = |name| values.iter().find(|(n, _)| *n == name).map(|(_, v)| *v).unwrap();
        assert!((value("avg") - model.aged(now)).abs() < 1e-9, "seed {seed}: {values:?}");
        assert_eq!(value("flows"), model.active(), "seed {seed}");
    }
    fates
}

#[test]
fn the_queue_agrees_with_the_figure_over_plain_lists() {
    let mut all: BTreeMap<Reason, usize> = BTreeMap::new();
    for seed in 0..20 {
        for (flows, two_packets) in [(3, false), (10, false), (100, false), (100, true)] {
            for (reason, n) in compare(seed, flows, two_packets) {
                *all.entry(reason).or_default() += n;
            }
        }
    }
    for reason in [Reason::Early, Reason::Forced] {
        assert!(all[&reason] > 1000, "{all:?}");
    }
}

/// Returns the share of the link that a flow obtains if it sends at twice the link's rate and competes with
/// four flows, each of which keeps a window of 5 packets and sends a new packet when one has left.
fn share_of_the_flood(name: &str, values: &[(&'static str, Value)]) -> f64 {
    let link = LinkContext { rtt: None, ..LINK };
    let mut queue: Discipline<Pkt> = build(name, &settings(values), &link, Stream::new(1, "flood"));
    let (mut now, mut lost, mut windows) = (Instant::ZERO, Fates::default(), [5u32; 5]);
    let (mut number, mut sent, mut flood) = (0, 0, 0);
    while sent < 20_000 {
        let mut arrive = |flow| {
            queue.enqueue(now, pkt(number, flow), &mut lost);
            number += 1;
        };
        arrive(0);
        arrive(0);
        for flow in 1..5 {
            (0..std::mem::take(&mut windows[flow as usize])).for_each(|_| arrive(flow));
        }
        now += PACKET_TIME;
        let left = queue.dequeue(now, &mut lost).map(|pkt| pkt.flow);
        // A lost packet is replaced immediately, like one that has left.
        for flow in lost.dropped.drain(..).map(|(_, pkt, _)| pkt.flow).chain(left) {
            windows[flow as usize] += 1;
        }
        sent += u64::from(left.is_some());
        flood += u64::from(left == Some(0));
    }
    flood as f64 / sent as f64
}

#[test]
fn a_flow_that_does_not_react_is_held_near_its_share() {
    let queue = [("limit", packets(60)), ("min_th", packets(15)), ("max_th", packets(30))];
    let (red, fred) = (share_of_the_flood("red", &queue), share_of_the_flood("fred", &queue));
    // Five flows: a fair share is 0.2. RED drops the same share of every flow's packets.
    assert!(fred < 0.3, "FRED {fred}");
    assert!(red > 1.2 * fred, "RED {red}, FRED {fred}");
}
