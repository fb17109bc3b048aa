//! Compares the preset `linux` of fq with Linux's fq (`vectors/linux-fq`): which packet is lost, which one leaves, at
//! which instant the queue lets it leave, and which are marked.

use aqmlab_params::Value;
use aqmlab_qdisc::contract::LINK;
use aqmlab_qdisc::{Discipline, Ecn, Qdisc, Stamped};
use aqmlab_random::Stream;
use aqmlab_units::{Instant, Rate, Span};

mod support;
use support::flow_decisions::{Event, events_in};
use support::{Fates, Pkt, build, bytes, law_value, packets, settings};

type Given = Vec<(&'static str, Value)>;

/// The cases; the recorded sizes contain the header.
fn cases() -> Vec<(&'static str, Given)> {
    let integer = |name, n| (name, Value::Integer(n));
    let size = |name, n| (name, bytes(n));
    let rate = |name, kbit| (name, Value::Rate(Rate::kbit(kbit)));
    let span = |name, ms| (name, Value::Span(Span::ms(ms)));
    let limit = |n| ("limit", packets(n));
    vec![
        ("rounds", vec![]),
        ("quantum", vec![size("quantum", 1514), size("initial_quantum", 3000), span("refill_delay", 400)]),
        (
            "limits",
            vec![limit(60), integer("flow_limit", 20), size("quantum", 600), size("initial_quantum", 600)],
        ),
        ("ce", vec![span("ce_threshold", 10)]),
        ("maxrate", vec![rate("maxrate", 2000)]),
        (
            "maxrate_quantum",
            vec![rate("maxrate", 1000), size("quantum", 9000), size("initial_quantum", 1000)],
        ),
        ("maxrate_low", vec![rate("maxrate", 400)]),
        (
            "maxrate_threshold",
            vec![rate("maxrate", 2000), rate("low_rate_threshold", 3000), integer("flow_limit", 30)],
        ),
        ("maxrate_ce", vec![rate("maxrate", 2000), span("ce_threshold", 1)]),
        ("maxrate_slow", vec![rate("maxrate", 8), integer("flow_limit", 10)]),
    ]
}

fn queue(given: &[(&'static str, Value)]) -> Discipline<Stamped<Pkt>> {
    let own = [
        ("preset", Value::Choice("linux")),
        ("header", Value::Integer(0)),
        ("flows", Value::Integer(65_536)),
    ];
    build("fq", &settings(&[&own[..], given].concat()), &LINK, Stream::new(1, "salt"))
}

/// What a queue did with a case's arrivals.
#[derive(Default, PartialEq, Eq, Debug)]
struct History {
    /// The packets that were lost, each at its arrival.
    lost: Vec<u64>,
    /// The packets that left, with the instant and whether they had a mark.
    left: Vec<(Instant, u64, bool)>,
}

fn theirs(events: &[(Instant, Event)]) -> History {
    let mut found = History::default();
    for (now, event) in events {
        match event {
            Event::Arrival(arrival) => found.lost.extend(&arrival.lost),
            Event::Departure { number, marked } => found.left.push((*now, *number, *marked)),
            Event::State(_) => {}
        }
    }
    found
}

/// Returns what our queue does with the kernel's arrivals. It is asked for packets at the instants at which the paced link
/// asked the kernel's, or, at the root of a link that takes no time, whenever it may have one.
fn ours(case: &str, given: &[(&'static str, Value)], events: &[(Instant, Event)]) -> (History, f64) {
    let (mut queue, mut fates, mut found) = (queue(given), Fates::default(), History::default());
    let (at_root, mut last) = (case.starts_with("maxrate"), Instant::ZERO);
    let take = |queue: &mut Discipline<Stamped<Pkt>>, now, found: &mut History| {
        let out = queue.dequeue(now, &mut Fates::default()).map(|out| out.packet);
        found.left.extend(out.map(|pkt| (now, pkt.number, pkt.ecn == Ecn::Ce)));
        out.is_some()
    };
    let pauses_end = |queue: &mut Discipline<Stamped<Pkt>>, until: Instant, found: &mut History| {
        while let Some(due) = queue.deadline().filter(|due| *due < until) {
            while take(queue, due, found) {}
        }
    };
    for (now, event) in events {
        last = *now;
        match event {
            Event::Arrival(arrival) => {
                if at_root {
                    pauses_end(&mut queue, *now, &mut found);
                }
                let ecn = if arrival.capable { Ecn::Ect0 } else { Ecn::NotEct };
                let packet = Pkt { size: arrival.size, flow: arrival.flow, ecn, ..Pkt::new(arrival.number) };
                queue.enqueue(*now, Stamped { packet, arrived: *now }, &mut fates);
                while at_root && take(&mut queue, *now, &mut found) {}
            }
            Event::Departure { .. } if !at_root => {
                take(&mut queue, *now, &mut found);
            }
            Event::Departure { .. } | Event::State(_) => {}
        }
    }
    if at_root {
        pauses_end(&mut queue, Instant::FAR_FUTURE, &mut found);
    }
    found.lost = fates.dropped.iter().map(|(_, pkt, _)| pkt.number).collect();
    (found, law_value(&queue, last, "collisions"))
}

/// Returns the number of losses and departures that differ, and the longest distance of two instants of departure.
fn differ(case: &str, given: &[(&'static str, Value)]) -> (usize, Span) {
    let events = events_in("linux-fq", case);
    let (theirs, (ours, collisions)) = (theirs(&events), ours(case, given, &events));
    assert_eq!(collisions, 0.0, "{case}: two flows share a queue");
    let departures = ours.left.iter().zip(&theirs.left);
    let apart = departures.clone().map(|(a, b)| a.0.saturating_since(b.0).max(b.0.saturating_since(a.0)));
    let apart = apart.max().expect("packets leave");
    let differ = departures.filter(|(a, b)| (a.1, a.2) != (b.1, b.2)).count()
        + ours.left.len().abs_diff(theirs.left.len())
        + ours.lost.iter().zip(&theirs.lost).filter(|(a, b)| a != b).count()
        + ours.lost.len().abs_diff(theirs.lost.len());
    let marked = theirs.left.iter().filter(|one| one.2).count();
    println!(
        "{case}: {} lost, {} sent, {marked} marked; {differ} differ, {apart} apart",
        theirs.lost.len(),
        theirs.left.len()
    );
    assert_eq!(marked > 0, case == "ce");
    (differ, apart)
}

#[test]
fn every_loss_departure_and_mark_is_the_kernels() {
    for (case, given) in cases() {
        let (differ, apart) = differ(case, &given);
        assert_eq!(differ, 0, "{case}");
        // The kernel's clock has steps of 256 ns, and each reading takes one.
        assert!(apart <= Span::us(2), "{case}: {apart}");
    }
}

/// Each of these parameters decides about some packets.
#[test]
fn other_values_do_not_give_the_kernels_decisions() {
    for (case, name, value) in [
        ("rounds", "quantum", bytes(3029)),
        ("quantum", "refill_delay", Value::Span(Span::ms(40))),
        ("limits", "initial_quantum", bytes(1500)),
        ("maxrate", "header", Value::Integer(14)),
        ("maxrate_low", "low_rate_threshold", Value::Rate(Rate::kbit(399))),
    ] {
        let mut given = cases().into_iter().find(|(known, _)| *known == case).expect(case).1;
        given.retain(|(known, _)| *known != name);
        given.push((name, value));
        let (differ, apart) = differ(case, &given);
        assert!(differ > 0 || apart > Span::us(20), "{case} {name}");
    }
}
