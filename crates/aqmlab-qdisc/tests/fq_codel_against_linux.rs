//! Compares the preset `linux` of FQ-CoDel, and CoDel's `ce_threshold`, with Linux, packet by packet
//! (`vectors/linux-decisions`): which packet left at each instant at which the kernel polled its queue, and
//! whether it was marked. The packets that are missing were lost.

use std::path::PathBuf;

use aqmlab_params::{Settings, Value};
use aqmlab_qdisc::contract::LINK;
use aqmlab_qdisc::{Ecn, Qdisc, Reason, Stamped};
use aqmlab_random::Stream;
use aqmlab_units::{Instant, Span};

mod support;
use support::{Fates, Pkt, build, bytes, law_value, packets, settings};

/// An event at the kernel's queue.
enum Event {
    Arrival(Pkt),
    /// The packet with this number leaves, marked or not.
    Departure(u64, bool),
}

fn events(case: &str) -> Vec<(Instant, Event)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../vectors/linux-decisions");
    let text = std::fs::read_to_string(folder.join(format!("{case}.csv"))).unwrap();
    let mut arrivals = 0;
    let mut event = |line: &str| {
        let [at, event, values] = line.split(',').collect::<Vec<_>>()[..] else { panic!("{case}: {line}") };
        let values: Vec<u64> = values.split(' ').map(|value| value.parse().expect(line)).collect();
        let event = match (event, &values[..]) {
            ("arrived", &[size, ecn, flow]) => {
                let ecn = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0][ecn as usize];
                arrivals += 1;
                Event::Arrival(Pkt { size, ecn, flow, ..Pkt::new(arrivals - 1) })
            }
            ("sent" | "marked", &[number]) => Event::Departure(number, event == "marked"),
            _ => panic!("{case}: {line}"),
        };
        (Instant::from_ns(at.parse().expect(line)), event)
    };
    text.lines().skip(1).map(&mut event).collect()
}

/// Returns the departures that differ, and prints what the case contains.
fn differ(case: &str, kind: &str, given: &Settings) -> usize {
    let mut queue = build::<Stamped<Pkt>>(kind, given, &LINK, Stream::new(1, "salt"));
    let (mut fates, mut differ, mut left, mut marked, mut arrived) = (Fates::default(), 0, 0, 0, 0);
    let mut last = Instant::ZERO;
    for (now, event) in events(case) {
        last = now;
        match event {
            Event::Arrival(packet) => {
                arrived += 1;
                queue.enqueue(now, Stamped { packet, arrived: now }, &mut fates);
            }
            Event::Departure(number, ce) => {
                let out = queue.dequeue(now, &mut fates);
                let found = out.map(|out| (out.packet.number, out.packet.ecn == Ecn::Ce));
                if found != Some((number, ce)) {
                    if differ < 3 {
                        println!("{case}: at {now:?} {found:?}, in the kernel {number} {ce}");
                    }
                    differ += 1;
                }
                left += 1;
                marked += usize::from(ce);
            }
        }
    }
    let overflows = fates.lost().iter().filter(|(_, reason)| *reason == Reason::Overflow).count();
    println!(
        "{case}: {arrived} packets, {left} left, {marked} marked, {overflows} lost for lack of room, {} otherwise; {differ} departures differ",
        fates.dropped.len() - overflows
    );
    differ += queue.backlog().packets.get() as usize;
    if kind == "fq_codel" {
        assert_eq!(law_value(&queue, last, "collisions"), 0.0, "{case}: two flows share a queue");
    }
    differ
}

fn cases() -> Vec<(&'static str, &'static str, Settings)> {
    let times = |target, interval| {
        [("target", Value::Span(Span::ms(target))), ("interval", Value::Span(Span::ms(interval)))]
    };
    let no_ecn = ("ecn", Value::Flag(false));
    let ce = |ms| ("ce_threshold", Value::Span(Span::ms(ms)));
    let case = |case: &'static str, given: &[&[(&'static str, Value)]]| {
        let kind = if case.starts_with("fq_") { "fq_codel" } else { "codel" };
        (case, kind, settings(&[&[("preset", Value::Choice("linux"))], &given.concat()[..]].concat()))
    };
    vec![
        case("fq_codel_rounds", &[]),
        case("fq_codel_sparse", &[&times(1, 20), &[("quantum", bytes(600))]]),
        case("fq_codel_noecn", &[&times(2, 30), std::slice::from_ref(&no_ecn)]),
        case("fq_codel_limit", &[&times(2, 30), &[("limit", packets(60))]]),
        case("fq_codel_batch", &[&[("limit", packets(300))]]),
        case(
            "fq_codel_small_batch",
            &[&times(1, 10), &[("limit", packets(100)), ("batch", Value::Integer(7))]],
        ),
        case("fq_codel_memory", &[&[("memory_limit", bytes(100_000))]]),
        case("fq_codel_ce", &[&[ce(3), no_ecn]]),
        case("fq_codel_ce_ect1", &[&[ce(1), ("ce_threshold_for", Value::Choice("ect1"))]]),
        case("codel_ce", &[&[ce(2)]]),
    ]
}

#[test]
fn every_departure_and_mark_is_the_kernels() {
    let all: Vec<_> = cases().iter().map(|(case, kind, given)| (*case, differ(case, kind, given))).collect();
    assert!(all.iter().all(|(_, differ)| *differ == 0), "{all:?}");
}

/// The kernel's variants decide differently from the RFC's, so the cases distinguish them.
#[test]
fn each_variant_of_the_preset_matters() {
    for (name, value) in [
        ("packet_memory", "length"),
        ("mtu_of", "queue"),
        ("arithmetic", "exact"),
        ("half_of", "packets"),
        ("empty_new", "old"),
    ] {
        let total = differ_with(name, &Value::Choice(value));
        assert!(total > 0, "{name} = {value} decides as the kernel");
    }
    assert!(differ_with("overflow_counts", &Value::Flag(false)) > 0);
}

fn differ_with(name: &'static str, value: &Value) -> usize {
    let fq = cases().into_iter().filter(|(_, kind, _)| *kind == "fq_codel");
    let total = fq.map(|(case, kind, mut given)| {
        given.set(name, value.clone(), aqmlab_params::Origin::Given);
        differ(case, kind, &given)
    });
    total.sum()
}
