//! Ports with classes and policers: shares, priorities and rates compared with calculated ones, books of
//! every inner queue, and the settings that a port refuses.

use aqmlab_params::{Origin, ParamError, Value};
use aqmlab_qdisc::contract::{LINK, presets};
use aqmlab_qdisc::{Cause, Departure, Ecn, Effective, Port, Qdisc, Reason, registry};
use aqmlab_random::Stream;
use aqmlab_units::{Bytes, Instant, Packets, Rate, Span};

mod support;
use support::{Fates, Pkt, build, bytes, packets, settings};

/// Returns a packet of a class; each class is one flow.
const fn pkt(class: usize, size: u64) -> Pkt {
    Pkt { class, flow: class as u64, size, ..Pkt::new(0) }
}

fn queue(kind: &'static str, values: &[(&'static str, Value)]) -> Value {
    Value::Discipline { kind, settings: settings(values) }
}

fn fifo(limit: u64) -> Value {
    queue("droptail", &[("limit", packets(limit))])
}

fn class(name: &str, values: &[(&'static str, Value)]) -> Value {
    let mut table = settings(values);
    table.set("name", Value::Text(name.into()), Origin::Given);
    Value::Table(table)
}

fn traffic(numbers: &[usize]) -> Value {
    Value::List(
        numbers.iter().map(|&number| Value::TrafficClass { name: format!("t{number}"), number }).collect(),
    )
}

fn numbers(numbers: &[u64]) -> Value {
    Value::List(numbers.iter().map(|n| Value::Integer(*n)).collect())
}

/// Returns a port of this discipline for three traffic classes.
fn port(kind: &str, values: &[(&'static str, Value)]) -> Port<Pkt> {
    let built = build(kind, &settings(values), &LINK, Stream::new(1, "port"));
    Port::new(built, LINK.rate, Bytes::ZERO, 3)
}

fn resolved(kind: &str, values: &[(&'static str, Value)]) -> Result<Effective, ParamError> {
    registry::info(kind).unwrap().resolve(&settings(values), &LINK)
}

/// Arrivals at a constant rate: class, size, gap.
struct Source {
    pkt: Pkt,
    gap: Span,
    next: Instant,
}

/// Drives `port` for `time` and returns the bytes that each class has sent.
fn drive(port: &mut Port<Pkt>, sources: &mut [Source], time: Span) -> [u64; 3] {
    let (mut sent, mut fates, end) = ([0; 3], Fates::default(), Instant::ZERO + time);
    let mut leave = |port: &mut Port<Pkt>, until: Instant, fates: &mut Fates| {
        while let Some(at) = port.next_event().filter(|at| *at <= until) {
            let Departure { packet, .. } = port.link_free(at, fates);
            sent[packet.class] += packet.size;
        }
    };
    loop {
        let source = sources.iter_mut().min_by_key(|s| s.next).unwrap();
        let now = source.next;
        if now > end {
            break;
        }
        leave(port, now, &mut fates);
        port.arrive(now, source.pkt, &mut fates);
        source.next = now + source.gap;
    }
    leave(port, end, &mut fates);
    port.settle(end);
    port.check_books().unwrap();
    sent
}

fn source(class: usize, size: u64, rate: Rate) -> Source {
    Source { pkt: pkt(class, size), gap: rate.time_for(Bytes::new(size)), next: Instant::ZERO }
}

/// Both classes offer more than their share of 10 Mbit/s for a minute. They receive three quarters
/// and one quarter of this rate, whatever the packet sizes; with `wrr`, the first class sends three
/// packets for each packet of the second.
#[test]
fn weights_of_three_to_one_share_the_link_three_to_one() {
    for (scheduler, sizes) in
        [("drr", [1500, 1500]), ("drr", [300, 1500]), ("drr", [1500, 64]), ("wrr", [1000, 500])]
    {
        let mut port = port(
            "classes",
            &[
                ("scheduler", Value::Choice(scheduler)),
                (
                    "class",
                    Value::List(vec![
                        class(
                            "three",
                            &[
                                ("traffic", traffic(&[0])),
                                ("weight", Value::Integer(3)),
                                ("queue", fifo(100)),
                            ],
                        ),
                        class("one", &[("traffic", traffic(&[1])), ("queue", fifo(100))]),
                    ]),
                ),
            ],
        );
        let mut sources = [0, 1].map(|class| source(class, sizes[class], Rate::mbit(9)));
        let sent = drive(&mut port, &mut sources, Span::s(60));
        let amount = |class: usize| if scheduler == "wrr" { sent[class] / sizes[class] } else { sent[class] };
        let ratio = amount(0) as f64 / amount(1) as f64;
        assert!((ratio / 3.0 - 1.0).abs() < 0.02, "{scheduler} {sizes:?}: {ratio}");
        let all = LINK.rate.bytes_per_s() * 60.0;
        assert!(((sent[0] + sent[1]) as f64 / all - 1.0).abs() < 0.001, "the link is never idle: {sent:?}");
    }
}

/// One class fills the buffer that both share. Arrivals of either class are then refused before they reach
/// their queues, and each queue's own limit holds as well.
#[test]
fn a_shared_buffer_refuses_whatever_arrives_when_it_is_full() {
    let classes = Value::List(vec![
        class("long", &[("traffic", traffic(&[0])), ("queue", fifo(100))]),
        class("short", &[("traffic", traffic(&[1])), ("queue", fifo(5))]),
    ]);
    let values = [("scheduler", Value::Choice("strict")), ("limit", packets(30)), ("class", classes)];
    let (mut port, mut fates) = (port("classes", &values), Fates::default());
    // One packet is in transmission and 30 wait; after ten packets have left, six packets of the
    // other class arrive.
    for class in [0; 40].into_iter().chain([1]) {
        port.arrive(Instant::ZERO, pkt(class, 1500), &mut fates);
    }
    assert_eq!(port.backlog().packets, Packets::new(30));
    assert_eq!(fates.dropped.len(), 10);
    assert!(fates.dropped.iter().all(|(.., at)| *at == Cause::of(Reason::Overflow)), "in no inner queue");
    let mut now = Instant::ZERO;
    for _ in 0..10 {
        now = port.next_event().unwrap();
        port.link_free(now, &mut fates);
    }
    for _ in 0..6 {
        port.arrive(now, pkt(1, 1500), &mut fates);
    }
    assert_eq!(fates.dropped.len(), 11);
    assert_eq!(fates.dropped[10].2, Cause { reason: Reason::Overflow, inner: 2 }, "its own limit is 5");
    port.settle(now);
    port.check_books().unwrap();
    let total = port.books().total();
    let arrived: u64 = port.books().inner().iter().map(|inner| inner.books.total().arrived().packets).sum();
    assert_eq!((total.arrived().packets, total.dropped_total().packets), (47, 11));
    assert_eq!(arrived, 47 - 10, "packets that the shared limit refuses reach no class");
}

/// Capacity that one class does not need goes to the other class.
#[test]
fn a_share_that_nobody_needs_is_not_kept() {
    let classes = Value::List(vec![
        class("three", &[("traffic", traffic(&[0])), ("weight", Value::Integer(3)), ("queue", fifo(100))]),
        class("one", &[("traffic", traffic(&[1])), ("queue", fifo(100))]),
    ]);
    let mut port = port("classes", &[("class", classes)]);
    let mut sources = [source(0, 1000, Rate::mbit(2)), source(1, 1000, Rate::mbit(20))];
    let sent = drive(&mut port, &mut sources, Span::s(60));
    for (class, mbit) in [(0, 2.0), (1, 8.0)] {
        let rate = sent[class] as f64 * 8.0 / 60e6;
        assert!((rate / mbit - 1.0).abs() < 0.01, "class {class}: {rate} Mbit/s");
    }
}

/// All 4 Mbit/s of the first class pass, and each packet waits for at most one packet of another class.
#[test]
fn the_top_class_keeps_its_rate_under_strict_priority() {
    let classes = Value::List(vec![
        class("top", &[("traffic", traffic(&[0])), ("queue", fifo(10))]),
        class("rest", &[("queue", fifo(100))]),
    ]);
    let mut port = port("classes", &[("scheduler", Value::Choice("strict")), ("class", classes)]);
    let mut sources =
        [source(0, 1000, Rate::mbit(4)), source(1, 1500, Rate::mbit(20)), source(2, 1500, Rate::mbit(20))];
    let sent = drive(&mut port, &mut sources, Span::s(60));
    let offered = 60.0 * 4e6 / 8.0;
    assert!((sent[0] as f64 / offered - 1.0).abs() < 1e-3, "{sent:?}");
    assert_eq!(port.books().class(0).dropped_total().packets, 0);
    let top = &port.books().inner()[0];
    assert_eq!(top.path, "top");
    let longest = top.books.total().sojourn_ns.bins().last().unwrap().low;
    assert!(longest <= 1_200_000, "1500 B take 1.2 ms, a packet waited {longest} ns");
    let rest = (sent[1] + sent[2]) as f64 * 8.0 / 60e6;
    assert!((rest / 6.0 - 1.0).abs() < 0.001, "the other classes get what is left: {rest} Mbit/s");
}

/// 20 Mbit/s offered, 3 Mbit/s and 30 kB allowed.
#[test]
fn a_policed_class_gets_its_rate_and_its_burst() {
    for exceed in ["drop", "remark"] {
        let mut values = vec![
            ("rate", Value::Rate(Rate::mbit(3))),
            ("burst", bytes(30_000)),
            ("queue", fifo(50)),
            ("exceed", Value::Choice(exceed)),
        ];
        if exceed == "remark" {
            values.push(("dscp", Value::Integer(8)));
        }
        let mut policed = port("policer", &values);
        let sent = drive(&mut policed, &mut [source(0, 1000, Rate::mbit(9))], Span::s(60))[0] as f64;
        let allowed = 60.0 * 3e6 / 8.0 + 30_000.0;
        let books = policed.books().total();
        match exceed {
            "drop" => {
                assert!((sent / allowed - 1.0).abs() < 0.01, "{sent} of {allowed}");
                assert_eq!(books.dropped_total(), books.all_kinds().1.dropped[Reason::Forced as usize]);
            }
            _ => assert_eq!(books.dropped_total().packets, 0, "re-marked packets pass"),
        }
    }
}

/// Excess packets are re-marked, and the classes behind the policer are distinguished by the new code point:
/// conforming packets have priority.
#[test]
fn a_re_marked_packet_goes_to_the_class_of_its_new_code_point() {
    let inside = queue(
        "classes",
        &[
            ("scheduler", Value::Choice("strict")),
            (
                "class",
                Value::List(vec![
                    class("in", &[("dscp", numbers(&[10])), ("queue", fifo(50))]),
                    class("out", &[("queue", fifo(50))]),
                ]),
            ),
        ],
    );
    let mut port = port(
        "policer",
        &[
            ("rate", Value::Rate(Rate::mbit(3))),
            ("burst", bytes(30_000)),
            ("exceed", Value::Choice("remark")),
            ("dscp", Value::Integer(12)),
            ("queue", inside),
        ],
    );
    let mut of_class = source(0, 1000, Rate::mbit(20));
    of_class.pkt.dscp = 10;
    drive(&mut port, &mut [of_class], Span::s(20));
    let sent = |i: usize| {
        let inner = &port.books().inner()[i];
        (inner.path.clone(), inner.books.total().departed.bytes as f64 * 8.0 / 20e6)
    };
    let ((conforming, fast), (other, slow)) = (sent(0), sent(1));
    assert_eq!((conforming.as_str(), other.as_str()), ("in", "out"));
    assert!(
        (fast / 3.012 - 1.0).abs() < 0.01 && (slow / 6.988 - 1.0).abs() < 0.01,
        "{fast} and {slow} Mbit/s"
    );
}

/// Puts random loads on every port of the contract kit, with the measurement beginning in the middle. Each
/// inner queue's books balance; the books of a class include what the queues inside it hold, and the books of
/// the port include what the classes hold.
#[test]
fn books_of_every_inner_queue_balance() {
    let info = registry::info("classes").unwrap();
    for variant in presets(info) {
        let built = build("classes", &variant.settings, &LINK, Stream::new(1, "port"));
        let mut port = Port::new(built, LINK.rate, Bytes::ZERO, 3);
        let (mut draws, mut fates, mut now) = (Stream::new(5, "load"), Fates::default(), Instant::ZERO);
        for n in 0..30_000 {
            now += Span::ns(draws.below(1_000_000));
            while let Some(at) = port.next_event().filter(|at| *at <= now) {
                port.link_free(at, &mut fates);
            }
            let ecn = if draws.below(2) == 0 { Ecn::Ect0 } else { Ecn::NotEct };
            let ports =
                (draws.below(4) > 0).then(|| [80 + draws.below(3) as u16, 79 + draws.below(3) as u16]);
            let dscp = 8 * draws.below(4) as u8;
            let size = 40 + draws.below(1461);
            port.arrive(
                now,
                Pkt { number: n, dscp, ports, ecn, ..pkt(draws.below(3) as usize, size) },
                &mut fates,
            );
            if n == 7_000 {
                port.measure_from(now);
            }
            if n % 1_000 == 0 {
                port.settle(now);
                port.check_books().unwrap_or_else(|e| panic!("{}: {e}", variant.label));
            }
        }
        port.settle(now);
        port.check_books().unwrap_or_else(|e| panic!("{}: {e}", variant.label));
        let mut outermost = 0;
        for inner in port.books().inner() {
            let books = inner.books.total();
            assert!(books.arrived().packets > 500, "{}: {} is used", variant.label, inner.path);
            assert_eq!(inner.books.span(), port.books().span());
            outermost += if inner.path.contains('/') { 0 } else { books.arrived().packets };
        }
        assert_eq!(outermost, port.books().total().arrived().packets, "{}", variant.label);
        assert!(port.books().total().dropped_total().packets > 1_000, "{}", variant.label);
    }
}

/// RED, BLUE and CoDel inside a port with one class decide as they do alone, draw by draw.
#[test]
fn a_port_with_one_class_decides_as_its_queue_does_alone() {
    for (kind, values) in [
        (
            "red",
            vec![
                ("limit", packets(40)),
                ("min_th", packets(3)),
                ("max_th", packets(9)),
                ("w_q", Value::Number(0.05)),
            ],
        ),
        (
            "blue",
            vec![
                ("limit", packets(12)),
                ("freeze_time", Value::Span(Span::ms(3))),
                ("d1", Value::Number(0.02)),
            ],
        ),
        (
            "codel",
            vec![
                ("limit", packets(40)),
                ("target", Value::Span(Span::ms(2))),
                ("interval", Value::Span(Span::ms(20))),
            ],
        ),
        (
            "pi",
            vec![
                ("limit", packets(40)),
                ("q_ref", packets(5)),
                ("a", Value::Number(0.01)),
                ("b", Value::Number(0.009)),
            ],
        ),
    ] {
        for scheduler in ["strict", "wrr", "drr"] {
            let draws = Stream::new(3, "port");
            let inner = queue(kind, &values);
            let given = settings(&[
                ("scheduler", Value::Choice(scheduler)),
                ("class", Value::List(vec![class("all", &[("queue", inner)])])),
            ]);
            let with_class = build("classes", &given, &LINK, draws);
            let alone = build(kind, &settings(&values), &LINK, Stream::new(draws.at(0), "all"));
            assert!(
                !with_class.settles_at_enqueue(),
                "the next packet of a scheduler is not known at arrival"
            );
            let run = |discipline| {
                let mut port: Port<Pkt> = Port::new(discipline, LINK.rate, Bytes::ZERO, 3);
                let (mut load, mut fates, mut now) =
                    (Stream::new(8, "load"), Fates::default(), Instant::ZERO);
                let mut sent = Vec::new();
                for number in 0..20_000 {
                    now += Span::ns(load.below(if number % 4_000 < 200 { 40_000_000 } else { 1_000_000 }));
                    while let Some(at) = port.next_event().filter(|at| *at <= now) {
                        sent.push((at, port.link_free(at, &mut fates).packet.number));
                    }
                    let size = 40 + load.below(1461);
                    port.arrive(now, Pkt { number, ..pkt(0, size) }, &mut fates);
                }
                port.settle(now);
                port.check_books().unwrap();
                let chosen = |list: &[(Instant, Pkt, Cause)]| -> Vec<_> {
                    list.iter().map(|(now, pkt, at)| (*now, *pkt, at.reason)).collect()
                };
                let fates = (chosen(&fates.dropped), chosen(&fates.marked));
                (sent, fates, port.books().total(), port.books().backlog_packets())
            };
            let (inside, outside) = (run(with_class), run(alone));
            assert!(outside.1.0.len() > 100, "{kind} makes decisions");
            assert!(inside == outside, "{kind} with {scheduler}");
        }
    }
}

#[test]
fn packets_are_told_apart_by_traffic_class_code_point_or_port() {
    let taken = |field: &'static str, value: Value, pkt: Pkt| {
        let classes = Value::List(vec![
            class("named", &[(field, value), ("queue", fifo(9))]),
            class("rest", &[("queue", fifo(9))]),
        ]);
        let mut port = port("classes", &[("class", classes)]);
        port.arrive(Instant::ZERO, pkt, &mut Fates::default());
        port.books().inner()[0].books.total().arrived().packets == 1
    };
    let pkt = pkt(2, 100);
    for (class, named) in [(0, false), (1, true), (2, true)] {
        assert_eq!(taken("traffic", traffic(&[1, 2]), Pkt { class, ..pkt }), named, "class {class}");
    }
    for (dscp, named) in [(0, false), (46, true), (45, false), (63, false)] {
        assert_eq!(taken("dscp", numbers(&[46]), Pkt { dscp, ..pkt }), named, "DSCP {dscp}");
    }
    for (ports, named) in
        [(None, false), (Some([5000, 80]), true), (Some([80, 5000]), true), (Some([5000, 81]), false)]
    {
        assert_eq!(taken("port", numbers(&[80, 443]), Pkt { ports, ..pkt }), named, "{ports:?}");
    }
}

/// Thresholds given for a class replace those of the common `queue`: weighted RED.
#[test]
fn thresholds_of_a_class_stand_in_place_of_those_of_the_queue_of_all() {
    let red = queue("red", &[("limit", packets(60)), ("min_th", packets(5)), ("max_th", packets(20))]);
    let thresholds = Value::List(vec![Value::Table(settings(&[
        ("class", Value::Text("gold".into())),
        ("min_th", packets(15)),
        ("max_th", packets(45)),
    ]))]);
    let classes = Value::List(vec![class("gold", &[("traffic", traffic(&[0]))]), class("rest", &[])]);
    let values = [("queue", red), ("thresholds", thresholds), ("class", classes)];
    let once = resolved("classes", &values).unwrap();
    let tables = once.tables("class").unwrap();
    let of = |class: usize| {
        let (kind, settings) = tables[class].discipline("queue").unwrap().unwrap();
        assert_eq!(kind, "red");
        ["min_th", "max_th", "limit"].map(|name| settings.size(name).unwrap().to_string())
    };
    assert_eq!(of(0), ["15p", "45p", "60p"]);
    assert_eq!(of(1), ["5p", "20p", "60p"]);
    assert_eq!(registry::info("classes").unwrap().resolve(&once, &LINK), Ok(once.clone()), "a second time");
}

/// An automatic weight of the average is computed from the class's share of the link.
#[test]
fn automatic_parameters_take_the_part_of_the_link_that_a_class_has() {
    let red = queue("red", &[("limit", packets(60)), ("w_rule", Value::Choice("paper"))]);
    let two = |weights: [u64; 2]| {
        let class = |i: usize, values: &[(&'static str, Value)]| {
            let mut values = values.to_vec();
            values.extend([("weight", Value::Integer(weights[i])), ("queue", red.clone())]);
            class(["a", "b"][i], &values)
        };
        let classes = Value::List(vec![class(0, &[("traffic", traffic(&[0]))]), class(1, &[])]);
        let resolved = resolved("classes", &[("class", classes)]).unwrap();
        let table = resolved.tables("class").unwrap()[0].clone();
        table.discipline("queue").unwrap().unwrap().1.number("w_q").unwrap()
    };
    // 1 - exp(-1/C): C = 2.5 Mbit/s over 12,000 bit.
    assert!((two([1, 3]) / -(-12_000.0f64 / 2.5e6).exp_m1() - 1.0).abs() < 1e-9);
    assert!((two([3, 1]) / -(-12_000.0f64 / 7.5e6).exp_m1() - 1.0).abs() < 1e-9);
}

#[test]
fn what_makes_no_port_is_refused_where_it_stands() {
    let gold = |more: &[(&'static str, Value)]| {
        let mut values = vec![("traffic", traffic(&[0])), ("queue", fifo(10))];
        values.extend(more.to_vec());
        class("gold", &values)
    };
    let rest = || class("rest", &[("queue", fifo(10))]);
    let list = |classes: Vec<Value>| ("class", Value::List(classes));
    let drop_queue = |name: &str| class(name, &[("traffic", traffic(&[1]))]);
    let thresholds = |name: &str| {
        let table = settings(&[("class", Value::Text(name.into())), ("min_th", packets(3))]);
        ("thresholds", Value::List(vec![Value::Table(table)]))
    };
    type Case<'a> = (Vec<(&'static str, Value)>, &'a str, &'a str);
    let cases: Vec<Case<'_>> = vec![
        (vec![], "class", "`class` is missing"),
        (vec![list(vec![gold(&[]), drop_queue("none")])], "class[1].queue", "class `none` has no `queue`"),
        (vec![list(vec![gold(&[]), gold(&[])])], "class[1].name", "two classes are called `gold`"),
        (
            vec![list(vec![
                gold(&[]),
                class("silver", &[("traffic", traffic(&[2, 0])), ("queue", fifo(1))]),
            ])],
            "class[1].traffic",
            "traffic `t0` already belongs to class `gold`",
        ),
        (
            vec![list(vec![gold(&[]), class("ef", &[("dscp", numbers(&[46])), ("queue", fifo(1))])])],
            "class[1].dscp",
            "two classifiers for one packet",
        ),
        (
            vec![list(vec![gold(&[("port", numbers(&[80]))])])],
            "class[0].port",
            "two classifiers for one packet",
        ),
        (
            vec![list(vec![class("ef", &[("dscp", numbers(&[46])), ("queue", fifo(1))])])],
            "class[0].dscp",
            "add a class without `dscp` for the rest",
        ),
        (
            vec![list(vec![rest(), class("more", &[("queue", fifo(1))])])],
            "class[1].name",
            "both take what no other",
        ),
        (
            vec![
                ("scheduler", Value::Choice("strict")),
                list(vec![gold(&[("weight", Value::Integer(3))]), rest()]),
            ],
            "class[0].weight",
            "has no meaning with scheduler `strict`",
        ),
        (
            vec![list(vec![gold(&[]), rest()]), thresholds("silver")],
            "thresholds[0].class",
            "there is no class `silver`",
        ),
        (
            vec![list(vec![gold(&[]), rest()]), thresholds("gold")],
            "thresholds[0].class",
            "has a `queue` of its own",
        ),
        (
            vec![list(vec![class("all", &[])]), thresholds("all"), ("queue", fifo(10))],
            "thresholds",
            "has no `min_th`",
        ),
        (
            vec![list(vec![class(
                "all",
                &[("queue", queue("red", &[("limit", packets(9)), ("min_th", packets(20))]))],
            )])],
            "class[0].queue.max_th",
            "exceeds",
        ),
    ];
    for (values, place, part) in cases {
        let error = resolved("classes", &values).expect_err(place);
        let mut path = String::new();
        for at in &error.within {
            path += at.name;
            path += &at.item.map_or_else(|| ".".into(), |item| format!("[{item}]."));
        }
        assert_eq!(path + error.name, place, "{error}");
        assert!(error.message.contains(part), "{place}: {error}");
    }
    let policer = [("rate", Value::Rate(Rate::mbit(1))), ("burst", bytes(10_000)), ("queue", fifo(5))];
    let with = |more: &[(&'static str, Value)]| {
        let mut values = policer.to_vec();
        values.extend(more.to_vec());
        resolved("policer", &values).unwrap_err().message
    };
    assert!(resolved("policer", &policer).is_ok());
    assert!(with(&[("exceed", Value::Choice("remark"))]).contains("needs `dscp`"));
    assert!(with(&[("dscp", Value::Integer(3))]).contains("never written into a packet"));
    assert!(with(&[("burst", bytes(1000))]).contains("smaller than a packet"));
    let error = resolved("policer", &policer[..2]).unwrap_err();
    assert!(error.message.contains("`queue` is missing; write a discipline"), "{error}");
}
