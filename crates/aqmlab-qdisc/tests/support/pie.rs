//! Linux's PIE and FQ-PIE replayed through PIE's law (`vectors/linux-decisions`): given the kernel's arrivals and
//! departures at their instants, the law decides on each arrival. Where the kernel draws a random number, the law
//! is given a draw with which it decides as the kernel did; how often the kernel hits is compared with the law's
//! probability.

use std::collections::BTreeSet;
use std::path::PathBuf;

use aqmlab_params::Value;
use aqmlab_qdisc::Ecn;
use aqmlab_qdisc::law::{Decision, PieLaw};
use aqmlab_units::{Bytes, Instant};

/// An event at the kernel's queue; packets are numbered in the order of arrival.
pub enum Event {
    Arrival { size: u64, ecn: Ecn, flow: usize, queued: bool },
    Departure { number: usize, marked: bool },
    Update,
    State { p: u64, delay_us: u64, rate: u64 },
}

pub fn events(case: &str) -> Vec<(u64, Event)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../vectors/linux-decisions");
    let text = std::fs::read_to_string(folder.join(format!("{case}.csv"))).expect(case);
    // Cases with flows say only what left: each packet that did was queued.
    let departure = |line: &str| {
        let (_, number) = line.split_once(",sent,").or_else(|| line.split_once(",marked,"))?;
        number.parse::<usize>().ok()
    };
    let left: BTreeSet<usize> = text.lines().filter_map(departure).collect();
    let mut arrivals = 0;
    let event = |line: &str| {
        let [at, event, values] = line.split(',').collect::<Vec<_>>()[..] else { panic!("{case}: {line}") };
        let values: Vec<u64> = values.split_whitespace().map(|value| value.parse().expect(line)).collect();
        let event = match event {
            "queued" | "refused" => {
                let ecn = if values[1] == 1 { Ecn::Ect0 } else { Ecn::NotEct };
                Event::Arrival { size: values[0], ecn, flow: 0, queued: event == "queued" }
            }
            "arrived" => {
                arrivals += 1;
                let ecn = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0][values[1] as usize];
                let queued = left.contains(&(arrivals - 1));
                Event::Arrival { size: values[0], ecn, flow: values[2] as usize, queued }
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
pub struct Case {
    pub name: &'static str,
    pub given: Vec<(&'static str, Value)>,
    pub limit: usize,
    pub ecn: bool,
    /// Number of flows, each of which has a queue.
    pub flows: usize,
}

/// What a replay found.
#[derive(Default, Debug)]
pub struct Found {
    pub packets: usize,
    pub states: usize,
    /// States whose probability, delay or rate differ.
    pub wrong: usize,
    /// Fates that differ although the law may have chosen its draw.
    pub differ: usize,
    pub overflows: usize,
    pub marks: usize,
    /// Where the law drew: hits of the kernel, their expected number and its variance.
    pub hits: f64,
    pub expected: f64,
    pub variance: f64,
    pub largest: f64,
}

impl Found {
    /// The distance of the hits from their expected number, in standard deviations.
    pub fn deviation(&self) -> f64 {
        (self.hits - self.expected) / self.variance.sqrt().max(1e-9)
    }
}

/// Replays a case; each flow begins with this law.
pub fn replay(case: &Case, law: PieLaw) -> Found {
    let (events, period) = (events(case.name), law.params().t_update.as_ns());
    let mut laws = vec![law; case.flows];
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
    let (mut found, mut arrivals) = (Found::default(), Vec::new());
    let (mut waiting, mut bytes, mut updates, mut previous) = (0, vec![0; case.flows], 0, 0);
    for (at, event) in &events {
        let now = Instant::from_ns(at - begin);
        if let Event::Update = event {
            updates += 1;
            let due = updates * period;
            assert!((0..20_000).contains(&(now.as_ns() - due)), "{}: {now:?}", case.name);
            assert!(previous < due, "{}: an event between an update and its instant", case.name);
        }
        previous = now.as_ns();
        for (law, bytes) in laws.iter_mut().zip(&bytes) {
            law.catch_up(now, Bytes::new(*bytes));
            found.largest = found.largest.max(law.probability());
        }
        match *event {
            Event::Update => {}
            Event::State { p, delay_us, rate } => {
                let law = &laws[0];
                let drain = law.drain_rate().map_or(0, |rate| rate.bytes_per_s() as u64);
                let ours = (law.probability_in_units() << 8, law.delay().as_ns() / 1000, drain);
                found.states += 1;
                found.wrong += usize::from(ours != (p, delay_us, rate));
            }
            Event::Departure { number, .. } => {
                let (flow, size, arrived): (usize, u64, Instant) = arrivals[number];
                waiting -= 1;
                bytes[flow] -= size;
                let sojourn = now.saturating_since(arrived);
                laws[flow].on_departure(now, Bytes::new(size), sojourn, Bytes::new(bytes[flow]));
            }
            Event::Arrival { size, ecn, flow, queued } => {
                let law = &mut laws[flow];
                let full = waiting == case.limit;
                let hit = (!queued && !full) || marked.contains(&arrivals.len());
                let p = match law.params().largest {
                    Some(largest) => law.probability() * size as f64 / largest.as_f64(),
                    None => law.probability(),
                };
                let mut drawn = false;
                let decision = law.on_arrival(Bytes::new(bytes[flow]), Bytes::new(size), || {
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
                    Decision::Notify(notice) => case.ecn && ecn.is_capable() && notice.markable,
                    Decision::Admit => false,
                };
                let refuses = full || (decision != Decision::Admit && !marks);
                if refuses {
                    law.on_drop();
                }
                found.overflows += usize::from(full);
                found.marks += usize::from(marks && !full);
                found.differ +=
                    usize::from(refuses == queued || (marks && !full) != marked.contains(&arrivals.len()));
                found.packets += 1;
                arrivals.push((flow, size, now));
                if queued {
                    waiting += 1;
                    bytes[flow] += size;
                }
            }
        }
    }
    found
}
