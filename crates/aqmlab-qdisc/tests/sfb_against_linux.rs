//! SFB compared with Linux's (`vectors/linux-flow-decisions`): the law follows the kernel's queue.

use std::collections::BTreeMap;

use aqmlab_qdisc::law::{Decision, FullBin, SfbKeys, SfbLaw, SfbParams};
use aqmlab_units::{Instant, Span};

mod support;
use support::flow_decisions::{Arrival, Event, events};

fn law(increment: f64, decrement: f64, bin_size: u64, max: u64, penalty: (f64, f64)) -> SfbLaw {
    SfbLaw::new(SfbParams {
        levels: 8,
        bins: 16,
        bin_size,
        at_bin_size: true,
        increment,
        decrement,
        steps: Some(65_535.0),
        full_bin: FullBin::All(max),
        drops_above_half: true,
        penalty_rate: penalty.0,
        penalty_burst: penalty.1,
        rehash: None,
        warmup: Span::ZERO,
        linux_time: true,
    })
}

#[derive(Default, Debug)]
struct Found {
    packets: usize,
    states: usize,
    penalised: u64,
    full: u64,
    /// Fates that need no draw and differ.
    wrong: usize,
    /// States whose largest probability or queue of a bin differs.
    wrong_states: usize,
    /// Drops and marks among packets with a draw: number, expected number, variance.
    drops: [f64; 3],
    marks: [f64; 3],
}

/// Follows the kernel's decisions; each flow has bins of its own at every level. The kernel created the queue `before`
/// the first arrival, at the beginning of a tick.
fn follow(case: &str, mut law: SfbLaw, before: Span, probabilities: bool) -> Found {
    let events = events(case);
    let marked: BTreeMap<u64, bool> =
        events
            .iter()
            .filter_map(|(_, e)| {
                if let Event::Departure { number, marked } = e { Some((*number, *marked)) } else { None }
            })
            .collect();
    let (mut found, mut waiting) = (Found::default(), BTreeMap::<u64, SfbKeys>::new());
    let (first, mut left) = (events[0].0, Instant::ZERO);
    for (now, event) in &events {
        let shifted = Instant::ZERO + before + now.saturating_since(first);
        match event {
            Event::Departure { number, .. } => {
                left = *now;
                law.on_departure(&waiting.remove(number).expect("it waits"));
            }
            // A packet may leave while the state is being read.
            Event::State(_) if now.saturating_since(left) < Span::us(2) => {}
            Event::State(figures) => {
                found.states += 1;
                let p = (law.largest_probability() * 65_535.0).round() as i64;
                let differs = law.longest() as i64 != figures[5] || (probabilities && p != figures[6]);
                found.wrong_states += usize::from(differs);
            }
            Event::Arrival(arrival) => arrived(arrival, shifted, &mut law, &marked, &mut found, &mut waiting),
        }
    }
    found.penalised = law.penalised();
    found.full = law.full();
    found
}

fn arrived(
    arrival: &Arrival,
    now: Instant,
    law: &mut SfbLaw,
    marked: &BTreeMap<u64, bool>,
    found: &mut Found,
    waiting: &mut BTreeMap<u64, SfbKeys>,
) {
    found.packets += 1;
    let Arrival { number, flow, capable, .. } = *arrival;
    let dropped = arrival.lost.contains(&number);
    let key = flow.wrapping_mul(0x1111_1111_0000_0000);
    law.epoch_at(now);
    // A draw of almost 1 lets every packet pass that is decided by its draw.
    let mut drawn = false;
    let (decision, keys) = law.on_arrival(
        now,
        key,
        || 0,
        || {
            drawn = true;
            1.0 - 1e-12
        },
    );
    if drawn {
        let p = law.probability(key) * 65_535.0;
        let lost = if capable { (2.0 * (p - 32_767.0)).clamp(0.0, p) } else { p } / 65_536.0;
        let marks = if capable { p / 65_536.0 - lost } else { 0.0 };
        for (hit, p, sums) in
            [(dropped, lost, &mut found.drops), (marked.get(&number) == Some(&true), marks, &mut found.marks)]
        {
            sums[0] += f64::from(u8::from(hit));
            sums[1] += p;
            sums[2] += p * (1.0 - p);
        }
    } else {
        let drops = matches!(decision, Decision::Notify(_));
        found.wrong += usize::from(drops != dropped);
    }
    if !dropped {
        law.on_queued(&keys);
        waiting.insert(number, keys);
    }
}

/// The first packet is sent within a few milliseconds of the creation; the phase of the kernel's ticks is unknown.
fn created(step: u64) -> Span {
    Span::us(250 * step)
}

const STEPS: u64 = 12;

/// A single flow has the same probability in all its bins, which the kernel reports. Losses of full bins and in the
/// penalty box need no draw.
#[test]
fn the_kernel_moves_probabilities_and_drops_as_the_law() {
    for (case, make) in [
        ("sfb_single", (|| law(0.01, 0.004, 30, 40, (10.0, 20.0))) as fn() -> SfbLaw),
        ("sfb_flood", || law(0.02, 0.002, 20, 60, (50.0, 10.0))),
    ] {
        let fates = (0..STEPS).map(|step| follow(case, make(), created(step), true));
        let best = fates.min_by_key(|found| found.wrong + found.wrong_states).unwrap();
        println!("{case}: {best:?}");
        assert_eq!((best.wrong, best.wrong_states), (0, 0), "{case}");
        assert!(best.states > 600 && best.penalised > 200);
        for [hits, expected, variance] in [best.drops, best.marks] {
            assert!((hits - expected).abs() < 4.0 * variance.sqrt(), "{case}: {hits} of {expected}");
        }
    }
}

/// Six flows that share some bins with one another. The smallest probability of a flow's bins is that of a bin of its
/// own, so fates follow it; the largest probability in the kernel may be that of a shared bin.
#[test]
fn flows_are_judged_by_bins_of_their_own() {
    let fates = (0..STEPS)
        .map(|step| follow("sfb_flows", law(0.01, 0.001, 20, 60, (50.0, 10.0)), created(step), false));
    let best = fates.min_by_key(|found| found.wrong).unwrap();
    println!("{best:?}");
    assert_eq!(best.wrong, 0);
    for [hits, expected, variance] in [best.drops, best.marks] {
        assert!((hits - expected).abs() < 4.0 * variance.sqrt(), "{hits} of {expected}");
    }
}
