//! Shapers on links: rates compared with calculated ones, shapers inside ports with classes, and the settings that
//! are refused.

use aqmlab_params::{Origin, ParamError, Value};
use aqmlab_qdisc::contract::LINK;
use aqmlab_qdisc::{Effective, Port, registry};
use aqmlab_random::Stream;
use aqmlab_units::{Bytes, Instant, Rate, Span};

mod support;
use support::{Fates, Pkt, build, bytes, packets, settings};

const SIZE: u64 = 1000;

fn queue(kind: &'static str, values: &[(&'static str, Value)]) -> (&'static str, Value) {
    ("queue", Value::Discipline { kind, settings: settings(values) })
}

fn fifo() -> (&'static str, Value) {
    queue("droptail", &[("limit", packets(20))])
}

fn traffic(number: usize) -> (&'static str, Value) {
    ("traffic", Value::List(vec![Value::TrafficClass { name: format!("t{number}"), number }]))
}

fn table(name: &str, values: &[(&'static str, Value)]) -> Value {
    let mut table = settings(values);
    table.set("name", Value::Text(name.into()), Origin::Given);
    Value::Table(table)
}

fn kbit(name: &'static str, rate: u64) -> (&'static str, Value) {
    (name, Value::Rate(Rate::kbit(rate)))
}

fn parent(name: &str) -> (&'static str, Value) {
    ("parent", Value::Text(name.into()))
}

fn classes(all: Vec<Value>) -> (&'static str, Value) {
    ("class", Value::List(all))
}

fn resolved(kind: &str, values: &[(&'static str, Value)]) -> Result<Effective, ParamError> {
    registry::info(kind).unwrap().resolve(&settings(values), &LINK)
}

/// Offers packets of each class at these rates (kbit/s) to a discipline on a link of 10 Mbit/s for twenty seconds, and
/// returns the rates at which they leave.
fn rates(kind: &str, values: &[(&'static str, Value)], offered: [u64; 3]) -> [u64; 3] {
    let built = build(kind, &settings(values), &LINK, Stream::new(1, "port"));
    let mut port: Port<Pkt> = Port::new(built, LINK.rate, Bytes::ZERO, 3);
    let (mut sent, mut fates) = ([0; 3], Fates::default());
    let mut run = |port: &mut Port<Pkt>, until: Instant, fates: &mut Fates| {
        while let Some(at) = port.next_event().filter(|at| *at <= until) {
            if port.is_sending() {
                sent[port.link_free(at, fates).packet.class] += SIZE;
            } else {
                port.wake(at, fates);
            }
        }
    };
    let (start, time) = (Instant::ZERO, Span::s(20));
    let mut next = offered.map(|rate| if rate == 0 { Instant::FAR_FUTURE } else { start });
    loop {
        let class = (0..3).min_by_key(|class| next[*class]).unwrap();
        let now = next[class];
        if now > start + time {
            break;
        }
        run(&mut port, now, &mut fates);
        port.arrive(now, Pkt { class, flow: class as u64, size: SIZE, ..Pkt::new(0) }, &mut fates);
        next[class] += Rate::kbit(offered[class]).time_for(Bytes::new(SIZE));
    }
    run(&mut port, start + time, &mut fates);
    port.settle(start + time);
    port.check_books().unwrap();
    sent.map(|bytes| bytes * 8 / 20 / 1000)
}

fn close(found: [u64; 3], expected: [u64; 3]) {
    let near = |(a, b): (u64, u64)| a.abs_diff(b) <= 10 + b / 100;
    assert!(found.into_iter().zip(expected).all(near), "{found:?}, not {expected:?}");
}

/// With all leaves overloaded and no spare rate, each has its own. What a leaf leaves is shared by the quanta of those
/// that borrow, up to their ceilings; a lower priority number borrows first.
#[test]
fn leaves_have_their_own_rate_and_borrow_the_rest() {
    let leaf = |name, number, rate, ceil, quantum, prio| {
        let own = [traffic(number), parent("all"), kbit("rate", rate), kbit("ceil", ceil)];
        table(name, &[&own[..], &[("quantum", bytes(quantum)), ("prio", Value::Integer(prio))]].concat())
    };
    let tree = |prio, ceil| {
        let all = vec![
            table("all", &[kbit("rate", 6000)]),
            leaf("a", 0, 1000, 6000, 1000, 1),
            leaf("b", 1, 2000, ceil, 3000, prio),
            leaf("c", 2, 3000, 6000, 2000, 1),
        ];
        [classes(all), fifo()]
    };
    close(rates("htb", &tree(1, 6000), [9000, 9000, 9000]), [1000, 2000, 3000]);
    // The 3000 of c: one quarter to a, three quarters to b.
    close(rates("htb", &tree(1, 6000), [9000, 9000, 0]), [1750, 4250, 0]);
    close(rates("htb", &tree(1, 3000), [9000, 9000, 0]), [3000, 3000, 0]);
    close(rates("htb", &tree(0, 6000), [9000, 9000, 0]), [1000, 5000, 0]);
    close(rates("htb", &tree(0, 6000), [9000, 500, 0]), [5500, 500, 0]);
}

/// A class borrows from the nearest class above it first.
#[test]
fn what_a_branch_leaves_stays_in_the_branch() {
    let leaf = |name, number, above, rate| {
        table(name, &[traffic(number), parent(above), kbit("rate", rate), kbit("ceil", 9000)])
    };
    let all = vec![
        table("all", &[kbit("rate", 9000)]),
        table("left", &[parent("all"), kbit("rate", 6000), kbit("ceil", 9000)]),
        leaf("a", 0, "left", 2000),
        leaf("b", 1, "left", 4000),
        leaf("c", 2, "all", 3000),
    ];
    let tree = [classes(all), fifo()];
    close(rates("htb", &tree, [9000, 0, 9000]), [6000, 0, 3000]);
    close(rates("htb", &tree, [9000, 9000, 9000]), [2000, 4000, 3000]);
    close(rates("htb", &tree, [9000, 1000, 500]), [7500, 1000, 500]);
}

#[test]
fn a_filter_has_its_rate_and_a_link_that_is_slower_has_its_own() {
    let filter = |rate| [kbit("rate", rate), ("burst", bytes(3000)), fifo()];
    close(rates("tbf", &filter(3000), [9000, 0, 0]), [3000, 0, 0]);
    close(rates("tbf", &filter(30_000), [20_000, 0, 0]), [10_000, 0, 0]);
}

/// A port with classes sends what its shapers release: each class has at most its shaper's rate, and a class behind
/// it in the order has what is left of the link.
#[test]
fn shapers_inside_classes_hold_only_their_own_class_back() {
    let shaped = |rate| queue("tbf", &[kbit("rate", rate), ("burst", bytes(3000)), fifo()]);
    for (scheduler, expected) in
        [("strict", [3000, 2000, 5000]), ("drr", [3000, 2000, 5000]), ("wrr", [3000, 2000, 5000])]
    {
        let all = vec![
            table("a", &[traffic(0), shaped(3000)]),
            table("b", &[traffic(1), shaped(2000)]),
            table("c", &[traffic(2), fifo()]),
        ];
        let port = [("scheduler", Value::Choice(scheduler)), classes(all)];
        close(rates("classes", &port, [9000, 9000, 9000]), expected);
        close(rates("classes", &port, [9000, 500, 0]), [3000, 500, 0]);
    }
    let all = vec![
        table("a", &[traffic(0), kbit("rate", 4000), kbit("ceil", 9000), shaped(3000)]),
        table("b", &[traffic(1), kbit("rate", 2000), fifo()]),
    ];
    close(rates("htb", &[classes(all)], [9000, 9000, 0]), [3000, 2000, 0]);
}

#[test]
fn what_is_no_tree_is_refused() {
    let leaf = |name, more: &[_]| table(name, &[&[kbit("rate", 1000), fifo()], more].concat());
    let branch = |name, more: &[_]| table(name, &[&[kbit("rate", 1000)], more].concat());
    for (all, place, words) in [
        (
            vec![leaf("a", &[parent("b")]), leaf("c", &[])],
            "a",
            "there is no class `b`; the other classes are c",
        ),
        (vec![leaf("a", &[parent("a")])], "a", "class `a` is its own ancestor: a in a"),
        (
            vec![branch("a", &[parent("b")]), branch("b", &[parent("a")]), leaf("c", &[])],
            "a",
            "class `a` is its own ancestor: a in b in a",
        ),
        (
            vec![leaf("c", &[parent("a")]), branch("a", &[parent("b")]), branch("b", &[parent("a")])],
            "a",
            "class `a` is its own ancestor: a in b in a",
        ),
        (
            vec![branch("a", &[fifo()]), leaf("b", &[parent("a")])],
            "a",
            "class `a` has children, so no packets wait in it; write `queue` for its leaves",
        ),
        (vec![leaf("a", &[kbit("ceil", 500)])], "a", "ceil `500kbit` is below rate `1Mbit` of class `a`"),
        (
            vec![leaf("a", &[]), leaf("b", &[])],
            "b",
            "classes `a` and `b` both take what no other class takes",
        ),
        (
            vec![table("a", &[kbit("rate", 1000)])],
            "a",
            "leaf `a` has no `queue`, and the tree has no common one",
        ),
        (vec![table("a", &[fifo()])], "a", "`rate` is missing"),
    ] {
        let error = resolved("htb", &[classes(all)]).unwrap_err();
        assert!(error.message.contains(words), "{}", error.message);
        assert_eq!(error.within.len(), 1, "{place}: {error:?}");
    }
    let names: Vec<String> = (0..10).map(|n| format!("c{n}")).collect();
    let deep = (0..10).map(|n| match n {
        0 => branch(&names[0], &[]),
        9 => leaf(&names[9], &[parent(&names[8])]),
        n => branch(&names[n], &[parent(&names[n - 1])]),
    });
    let error = resolved("htb", &[classes(deep.collect())]).unwrap_err();
    assert!(error.message.contains("the tree has more than 8 levels"), "{}", error.message);
}

#[test]
fn contradictory_filters_are_refused() {
    let whole = |more: &[_]| [&[kbit("rate", 8000), ("burst", bytes(5000))], more].concat();
    let ms = |n| ("latency", Value::Span(Span::ms(n)));
    for (given, name, words) in [
        (whole(&[]), "limit", "the buffer has no size; write `limit`"),
        (whole(&[("limit", packets(5)), ms(5)]), "latency", "both set the buffer"),
        (whole(&[("limit", packets(5)), fifo()]), "limit", "which `queue` replaces"),
        (whole(&[ms(5), fifo()]), "latency", "which `queue` replaces"),
        (whole(&[fifo(), kbit("peakrate", 8000)]), "peakrate", "does not exceed rate"),
        (whole(&[fifo(), kbit("peakrate", 9000)]), "peakrate", "peakrate needs `mtu`"),
        (whole(&[fifo(), ("mtu", bytes(1500))]), "mtu", "which is not given"),
        (
            vec![kbit("rate", 8000), ("burst", bytes(1499)), fifo()],
            "burst",
            "burst `1.499kB` is smaller than a packet of `1.5kB`, header included",
        ),
    ] {
        let error = resolved("tbf", &given).unwrap_err();
        assert_eq!(error.name, name, "{}", error.message);
        assert!(error.message.contains(words), "{}", error.message);
    }
    // 8 Mbit/s for 20 ms, and the bucket.
    let fifo = resolved("tbf", &whole(&[ms(20)])).unwrap();
    let (kind, inner) = fifo.discipline("queue").unwrap().unwrap();
    assert_eq!((kind, inner.get("limit")), ("droptail", Some(&bytes(25_000))));
}
