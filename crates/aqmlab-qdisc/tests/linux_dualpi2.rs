//! Compares DualPI2's laws, with the parameters of the preset `linux`, with Linux 7.3 (`vectors/linux-dualpi2`):
//! given the kernel's arrivals and the outcomes of its coins, the probability at every update, the queue served,
//! the credit, the packets lost for lack of room and those marked by the step are the kernel's. The coins fall
//! as often as their probabilities say.

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;

use aqmlab_params::{Settings, Value};
use aqmlab_qdisc::contract::LINK;
use aqmlab_qdisc::disc::DualQueue;
use aqmlab_qdisc::law::{Arithmetic, DualPi2Law, Lane, Verdict};
use aqmlab_qdisc::{Discipline, Ecn, Stamped};
use aqmlab_random::Stream;
use aqmlab_units::{Bytes, Instant, Span};

mod support;
use support::{Pkt, build, packets, settings};

/// An event at the kernel's queue; packets are numbered in the order of arrival.
enum Event {
    Arrival { size: u64, ecn: Ecn },
    Departure { number: usize, marked: bool },
    Drop { number: usize },
    Update,
    State { p: u64, steps: u64, credit: i64 },
}

fn events(case: &str) -> Vec<(Instant, Event)> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../vectors/linux-dualpi2");
    let text = std::fs::read_to_string(path.join(format!("{case}.csv"))).expect(case);
    let event = |line: &str| {
        let [at, event, values] = line.split(',').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let values: Vec<i64> = values.split_whitespace().map(|value| value.parse().expect(line)).collect();
        let whole = |place: usize| values[place].unsigned_abs();
        let number = || usize::try_from(whole(0)).unwrap();
        let event = match event {
            "arrived" => {
                let ecn = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce][usize::try_from(whole(1)).unwrap()];
                Event::Arrival { size: whole(0), ecn }
            }
            "sent" | "marked" => Event::Departure { number: number(), marked: event == "marked" },
            "dropped" => Event::Drop { number: number() },
            "update" => Event::Update,
            "state" => Event::State { p: whole(0), steps: whole(1), credit: values[2] },
            _ => panic!("{case}: {line}"),
        };
        (Instant::from_ns(at.parse().expect(line)), event)
    };
    text.lines().skip(1).map(event).collect()
}

fn queue(given: &Settings) -> (DualPi2Law, DualQueue) {
    let queue = build::<Stamped<Pkt>>("dualpi2", given, &LINK, Stream::new(1, "unused"));
    let Discipline::DualPi2(queue) = queue else { panic!("not dualpi2") };
    (*queue.law(), *queue.queue())
}

/// A waiting packet.
struct Waiting {
    number: usize,
    size: u64,
    ecn: Ecn,
    arrived: Instant,
    concerned: bool,
}

/// What a case shows.
#[derive(Default, Debug)]
struct Found {
    packets: usize,
    updates: usize,
    /// Packets whose fate no coin decides, and those of them that have another fate in the kernel.
    certain: usize,
    wrong: usize,
    overflows: usize,
    steps: u64,
    /// Decisions with a coin: chosen, expected, variance.
    chosen: f64,
    expected: f64,
    variance: f64,
    /// The largest distance of the kernel's p' from ours.
    apart: f64,
    /// Credits and step marks that differ, and packets from the other queue.
    differ: usize,
}

/// Replays a case. The queues follow the kernel, so each decision is compared on its own.
fn replay(case: &str, (law, queue): (DualPi2Law, DualQueue)) -> Found {
    let (mut law, events, mut found) = (law, events(case), Found::default());
    let drops: BTreeMap<usize, Instant> = events
        .iter()
        .filter_map(
            |(at, event)| if let Event::Drop { number } = event { Some((*number, *at)) } else { None },
        )
        .collect();
    let mut lanes: [VecDeque<Waiting>; 2] = Default::default();
    for (now, event) in &events {
        let now = *now;
        let bytes = |lanes: &[VecDeque<Waiting>; 2]| {
            Bytes::new(lanes.iter().flatten().map(|waiting| waiting.size).sum())
        };
        match *event {
            Event::Update => {
                let oldest = lanes.iter().filter_map(|lane| lane.front()).map(|head| head.arrived).min();
                law.update(oldest.map_or(Span::ZERO, |oldest| now.saturating_since(oldest)));
                found.updates += 1;
            }
            Event::State { p, steps, credit } => {
                let ours = law.probability() * 2f64.powi(32);
                found.apart = found.apart.max((ours - p as f64).abs() / 2f64.powi(32));
                found.differ += usize::from(law.credit() != credit) + usize::from(found.steps != steps);
            }
            Event::Arrival { size, ecn } => {
                let number = found.packets;
                found.packets += 1;
                let lane = queue.l4s.lane(ecn);
                let waiting = lanes.iter().map(VecDeque::len).sum::<usize>() as u64;
                let aqmlab_qdisc::Limit::Packets(limit) = queue.limit else { panic!("a limit in packets") };
                let (full, dropped) = (waiting >= limit.get(), drops.get(&number) == Some(&now));
                if full {
                    found.overflows += 1;
                    found.wrong += usize::from(!dropped);
                } else if queue.at_arrival {
                    let kernel = if dropped { Some(Verdict::Drop) } else { None };
                    found.judge(&law, lane, ecn, bytes(&lanes), 0.0, kernel);
                } else {
                    found.wrong += usize::from(dropped);
                }
                if !dropped {
                    let concerned = lanes[0].len() as u64 >= queue.least_found;
                    lanes[lane as usize].push_back(Waiting { number, size, ecn, arrived: now, concerned });
                }
            }
            Event::Departure { number, marked } => loop {
                let head = |lane: Lane| lanes[lane as usize].front().map(|head| head.arrived);
                let lane = law.next(head(Lane::L4s), head(Lane::Classic)).expect("a packet waits");
                let packet = lanes[lane as usize].pop_front().unwrap();
                let leaves = packet.number == number;
                if !leaves && drops.get(&packet.number) != Some(&now) {
                    panic!("{case}: packet {} is served instead of {number} at {now:?}", packet.number);
                }
                let behind = lanes[lane as usize].len() as u64;
                let native = if lane == Lane::L4s && packet.concerned {
                    law.native(now.saturating_since(packet.arrived), behind)
                } else {
                    0.0
                };
                let kernel = match (leaves, marked) {
                    (false, _) => Verdict::Drop,
                    (true, true) => Verdict::Mark { forced: false },
                    (true, false) => Verdict::Pass,
                };
                if !queue.at_arrival {
                    found.judge(&law, lane, packet.ecn, bytes(&lanes), native, Some(kernel));
                } else if native >= 1.0 {
                    found.certain += 1;
                    found.wrong += usize::from(!marked && packet.ecn != Ecn::Ce);
                }
                if leaves {
                    found.steps += u64::from(native >= 1.0);
                    law.on_departure(lane, Bytes::new(packet.size), !lanes[1 - lane as usize].is_empty());
                    break;
                }
            },
            Event::Drop { .. } => {}
        }
    }
    assert!(lanes.iter().all(VecDeque::is_empty), "{case}: packets that have no fate");
    found
}

impl Found {
    /// Compares the kernel's decision with what the law decides if all its coins hit and if all miss. At an
    /// arrival, `kernel` is `None` for a packet that is queued, marked or not.
    fn judge(
        &mut self,
        law: &DualPi2Law,
        lane: Lane,
        ecn: Ecn,
        left: Bytes,
        native: f64,
        kernel: Option<Verdict>,
    ) {
        let decides = |draw: f64| {
            let mut law = *law;
            match lane {
                Lane::L4s => law.scalable(ecn.is_capable(), left, native, || draw),
                Lane::Classic => law.classic(ecn.is_capable(), left, || draw),
            }
        };
        // A mark of a packet that has CE changes nothing.
        let seen = |verdict| match verdict {
            Verdict::Mark { .. } if ecn == Ecn::Ce || kernel.is_none() => Verdict::Pass,
            Verdict::Mark { .. } => Verdict::Mark { forced: false },
            other => other,
        };
        let (hit, miss) = (seen(decides(0.0)), seen(decides(1.0 - 1e-12)));
        let kernel = kernel.unwrap_or(Verdict::Pass);
        if hit == miss {
            self.certain += 1;
            self.wrong += usize::from(kernel != hit);
            return;
        }
        assert!(kernel == hit || kernel == miss, "{kernel:?}, but only {hit:?} and {miss:?} are possible");
        let p = match (lane, law.is_overloaded()) {
            (Lane::L4s, false) => law.coupled(),
            _ => law.probability() * law.probability(),
        };
        self.chosen += f64::from(u8::from(kernel == hit));
        self.expected += p;
        self.variance += p * (1.0 - p);
    }
}

/// The cases, with the settings that differ from those of the preset.
fn cases() -> Vec<(&'static str, Settings)> {
    let word = |name, word| (name, Value::Choice(word));
    let number = |name, n| (name, Value::Integer(n));
    let with = |values: &[(&'static str, Value)]| settings(&[&[word("preset", "linux")], values].concat());
    let overflow = word("overload", "overflow");
    vec![
        ("mix", with(&[])),
        ("bursts", with(&[])),
        ("scalable", with(&[])),
        ("classic", with(&[])),
        ("overload", with(&[])),
        ("overflow", with(&[overflow.clone(), ("limit", packets(150))])),
        ("enqueue", with(&[word("decide", "enqueue")])),
        (
            "packets",
            with(&[
                word("native", "step_packets"),
                number("step_packets", 5),
                number("min_qlen_step", 3),
                ("coupling", Value::Number(4.0)),
                number("classic_protection", 30),
            ]),
        ),
        (
            "any_ect",
            with(&[
                word("classifier", "any_ect"),
                ("step_thresh", Value::Span(Span::ms(20))),
                number("min_qlen_step", 2),
            ]),
        ),
        (
            "gains",
            with(&[
                ("target", Value::Span(Span::ms(5))),
                ("tupdate", Value::Span(Span::us(5120))),
                ("alpha", Value::Number(100.0 / 256.0)),
                ("beta", Value::Number(300.0 / 256.0)),
                ("coupling", Value::Number(1.0)),
            ]),
        ),
        ("stall", with(&[overflow])),
    ]
}

#[test]
fn dualpi2_decides_as_the_kernel_where_no_coin_falls_and_as_often_where_one_does() {
    let mut all = Found::default();
    for (case, given) in cases() {
        let found = replay(case, queue(&given));
        println!("{case}: {found:?}");
        assert_eq!((found.apart, found.differ, found.wrong), (0.0, 0, 0), "{case}");
        let deviation = (found.chosen - found.expected) / found.variance.max(1.0).sqrt();
        assert!(deviation.abs() < 4.0, "{case}: {deviation}");
        all.packets += found.packets;
        all.updates += found.updates;
        all.certain += found.certain;
        all.overflows += found.overflows;
        all.steps += found.steps;
        all.chosen += found.chosen;
        all.expected += found.expected;
        all.variance += found.variance;
    }
    println!("all: {all:?}");
    assert!((all.chosen - all.expected).abs() < 3.0 * all.variance.sqrt());
    assert!(all.overflows > 400 && all.steps > 4000 && all.updates > 3000 && all.expected > 1000.0);
}

/// Real numbers give nearly the same probabilities, except where the kernel's step wraps.
#[test]
fn exact_arithmetic_differs_by_rounding_and_where_the_kernel_wraps() {
    for (case, mut given) in cases() {
        given.set("arithmetic", Value::Choice("exact"), aqmlab_params::Origin::Given);
        let parameters = queue(&given);
        assert_eq!(parameters.0.params().base.arithmetic, Arithmetic::Exact);
        let mut worst = 0.0f64;
        // Only the probabilities matter here, so the fates are the kernel's.
        let (mut law, mut lanes) = (parameters.0, BTreeMap::new());
        let mut number = 0;
        for (now, event) in events(case) {
            match event {
                Event::Arrival { .. } => {
                    lanes.insert(number, now);
                    number += 1;
                }
                Event::Departure { number, .. } | Event::Drop { number } => {
                    lanes.remove(&number);
                }
                Event::Update => {
                    let oldest = lanes.values().min();
                    law.update(oldest.map_or(Span::ZERO, |oldest| now.saturating_since(*oldest)));
                }
                Event::State { p, .. } => {
                    worst = worst.max((law.probability() - p as f64 / 2f64.powi(32)).abs())
                }
            }
        }
        println!("{case}: at most {worst:.6} apart");
        assert_eq!(worst > 0.01, case == "stall", "{case}: {worst}");
        assert!(worst > 1e-9, "{case}: the case does not distinguish the two");
    }
}
