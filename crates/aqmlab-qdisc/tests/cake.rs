//! CAKE with a shaper keeps the contract, and its flows, hosts and hash behave as published.

use aqmlab_params::{Settings, Value};
use aqmlab_qdisc::contract::{self, Checks, Item, LINK, Subject, TestPacket};
use aqmlab_qdisc::{Ecn, LawSamples, PacketKind, Port, Qdisc, Registry, TcpHeader, disc, registry};
use aqmlab_random::Stream;
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Instant, Rate, Span};

mod support;
use support::{Fates, Pkt, build, settings};

fn shaped(more: &[(&'static str, Value)]) -> Settings {
    let base = [
        ("bandwidth", Value::Rate(Rate::mbit(8))),
        ("queues", Value::Integer(16)),
        ("interval", Value::Span(Span::ms(2))),
        ("memory_limit", Value::Size(Size::Bytes(Bytes::new(60_000)))),
    ];
    settings(&[&base[..], more].concat())
}

#[test]
fn a_shaper_keeps_the_contract() {
    let mut checks = Checks::default();
    let flag = |name| (name, Value::Flag(true));
    let word = |name, word| (name, Value::Choice(word));
    for given in [
        shaped(&[]),
        shaped(&[flag("ingress"), word("tins", "diffserv8")]),
        shaped(&[word("framing", "atm"), word("isolation", "flowblind")]),
    ] {
        let effective = registry::info("cake").unwrap().resolve(&given, &LINK).unwrap();
        let make = |draws| -> Box<dyn Qdisc<TestPacket>> {
            Box::new(Registry::builtin().build(&effective, draws).unwrap())
        };
        for seed in 0..100 {
            let draws = Stream::new(seed, "contract/draws");
            let subject = Subject { make: &make, draws, limit: None, shaper: true, rate: LINK.rate };
            let script = contract::script_for(&subject, seed);
            let of_script = contract::check(&subject, &script);
            checks = checks.plus(of_script.unwrap_or_else(|e| panic!("seed {seed}: {e}")));
        }
    }
    assert!(checks.of(Item::Deadline) > 1000, "{checks:?}");
}

/// `memory_limit`, `target` and the tins' parameters are those that the kernel reports.
#[test]
fn automatic_values_are_the_kernels() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/linux-cake/parameters.csv");
    let table = std::fs::read_to_string(folder).unwrap();
    let mut compared = 0;
    for line in table.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let &[_, bandwidth, rtt, memory_limit, ..] = &cells[..] else { panic!("{line}") };
        let milliseconds = rtt.trim_end_matches("ms").parse().expect(line);
        let mut given = settings(&[("interval", Value::Span(Span::ms(milliseconds)))]);
        let number = |unit| bandwidth.strip_suffix(unit).and_then(|n: &str| n.parse::<u64>().ok());
        let rate = match (number("kbit"), number("mbit"), number("gbit")) {
            (Some(n), ..) => Some(Rate::kbit(n)),
            (_, Some(n), _) => Some(Rate::mbit(n)),
            (.., Some(n)) => Some(Rate::gbit(n)),
            _ => None,
        };
        if let Some(rate) = rate {
            given.set("bandwidth", Value::Rate(rate), aqmlab_params::Origin::Given);
        }
        let effective = registry::info("cake").unwrap().resolve(&given, &LINK).unwrap();
        let limit = Value::Size(Size::Bytes(Bytes::new(memory_limit.parse().expect(line))));
        assert_eq!(effective.get("memory_limit"), Some(&limit), "{line}");
        compared += 1;
    }
    assert_eq!(compared, 672);
}

#[test]
fn contradictory_parameters_are_refused() {
    let refused = |given: &Settings| {
        registry::info("cake").unwrap().resolve(given, &LINK).expect_err("contradictory").message
    };
    let queues = settings(&[("queues", Value::Integer(12))]);
    assert_eq!(refused(&queues), "queues `12` is no multiple of 8");
    let times = settings(&[("target", Value::Span(Span::ms(20))), ("interval", Value::Span(Span::ms(2)))]);
    assert!(refused(&times).starts_with("target `20ms` exceeds interval `2ms`"));
    let memory = settings(&[("memory_limit", Value::Size(Size::Bytes(Bytes::new(1000))))]);
    assert!(
        refused(&memory).starts_with("memory_limit `1kB` is smaller than one packet"),
        "{}",
        refused(&memory)
    );
}

/// Sends packets of all code points through a port, a third of them acknowledgments, and compares the books of each
/// tin with the packets of its code points.
#[test]
fn each_tin_has_books() {
    let given = shaped(&[("tins", Value::Choice("diffserv4")), ("ack_filter", Value::Choice("aggressive"))]);
    let cake = build("cake", &given, &LINK, Stream::new(3, "salt"));
    let mut port = Port::new(cake, Rate::mbit(10), Bytes::new(0), 1);
    let tin_of = disc::cake_tins("diffserv4").unwrap();
    let (mut fates, mut now, mut sent) = (Fates::default(), Instant::ZERO, Vec::new());
    let mut arrived = [0; 4];
    let pass = |port: &mut Port<Pkt>, until: Instant, fates: &mut Fates, sent: &mut Vec<Pkt>| {
        while port.next_event().is_some_and(|at| at <= until) {
            let at = port.next_event().unwrap();
            if port.is_sending() {
                sent.push(port.link_free(at, fates).packet);
            } else {
                port.wake(at, fates);
            }
        }
    };
    for number in 0..3000 {
        now += Span::us(if number % 400 == 399 { 300_000 } else { 700 });
        pass(&mut port, now, &mut fates, &mut sent);
        let dscp = (number * 7 % 64) as u8;
        arrived[usize::from(tin_of[usize::from(dscp)])] += 1;
        let is_ack = number % 3 == 0;
        let tcp = is_ack.then(|| TcpHeader::new(number as u32, TcpHeader::ACK, false));
        let kind = if is_ack { PacketKind::Ack } else { PacketKind::Other };
        let packet =
            Pkt { size: 1000, flow: number % 6, ecn: Ecn::Ect0, dscp, tcp, kind, ..Pkt::new(number) };
        port.arrive(now, packet, &mut fates);
    }
    pass(&mut port, now + Span::s(60), &mut fates, &mut sent);
    port.settle(now + Span::s(60));
    port.check_books().unwrap();
    let of_tin = |packets: &[Pkt], tin: usize| {
        packets.iter().filter(|packet| usize::from(tin_of[usize::from(packet.dscp)]) == tin).count() as u64
    };
    let dropped: Vec<Pkt> = fates.dropped.iter().map(|(_, packet, _)| *packet).collect();
    let marked: Vec<Pkt> = fates.marked.iter().map(|(_, packet, _)| *packet).collect();
    assert!(dropped.iter().any(|packet| packet.kind == PacketKind::Ack) && !marked.is_empty());
    let mut law = LawSamples::new();
    port.observe(now + Span::s(60), &mut law);
    assert!(law.iter().any(|(name, value)| *name == "filtered" && *value > 10.0), "{law:?}");
    let mut names = Vec::new();
    port.each_inner(|inner, _| names.push(inner.path.clone()));
    assert_eq!(names[..4], ["tin_best_effort", "tin_best_effort/sparse", "tin_best_effort/bulk", "tin_bulk"]);
    assert_eq!(names.len(), 12);
    for (tin, inner) in port.books().inner().iter().step_by(3).enumerate() {
        let books = inner.books.total();
        let expected = [arrived[tin], of_tin(&sent, tin), of_tin(&dropped, tin), of_tin(&marked, tin)];
        let found = [books.arrived(), books.departed, books.dropped_total(), books.marked_total()];
        assert_eq!(found.map(|tally| tally.packets), expected, "{}", inner.path);
    }
}
