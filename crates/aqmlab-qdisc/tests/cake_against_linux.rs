//! Compares COBALT and CAKE with Linux's CAKE (`vectors/linux-cake`), packet by packet where the kernel draws no
//! random numbers, and by shares elsewhere.

use std::path::PathBuf;

use aqmlab_params::{Settings, Value};
use aqmlab_qdisc::contract::LINK;
use aqmlab_qdisc::{Ecn, PacketKind, Qdisc, Stamped, TcpHeader};
use aqmlab_random::Stream;
use aqmlab_units::{Instant, Span};

mod support;
use support::{Fates, Pkt, build, law_value, settings};

/// An event at the kernel's queue.
enum Event {
    Arrival(Pkt),
    /// The packet with this number leaves, marked or not.
    Departure(u64, bool),
}

fn text(file: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../vectors/linux-cake");
    std::fs::read_to_string(folder.join(file)).unwrap_or_else(|e| panic!("{file}: {e}"))
}

/// Length of the link's header, which the kernel counts and the network layer does not.
const ETHERNET: u64 = 14;

/// Reads a header in hexadecimal digits, of a segment that fills a frame of this size.
fn tcp_header(digits: &str, size: u64) -> TcpHeader {
    let octet = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).expect(digits);
    let mut segment: Vec<u8> = digits.as_bytes().chunks(2).map(octet).collect();
    segment.resize(size as usize - ETHERNET as usize - 20, 0);
    TcpHeader::read(&segment).expect(digits)
}

fn events(case: &str) -> Vec<(Instant, Event)> {
    let mut arrivals = 0;
    let mut event = |line: &str| {
        let [at, event, values] = line.split(',').collect::<Vec<_>>()[..] else { panic!("{case}: {line}") };
        let words: Vec<&str> = values.split(' ').collect();
        let values: Vec<u64> = words.iter().take(5).map(|value| value.parse().expect(line)).collect();
        let event = match (event, &values[..]) {
            ("arrived", &[size, tos, flow, source, destination]) => {
                // In the cases of the filter, a TCP header or, for a datagram, `-`.
                let tcp =
                    words.get(5).filter(|header| **header != "-").map(|header| tcp_header(header, size));
                let ecn = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0][(tos & 3) as usize];
                arrivals += 1;
                let ports = Some([source as u16, destination as u16]);
                let dscp = (tos >> 2) as u8;
                Event::Arrival(Pkt {
                    size: size - ETHERNET,
                    ecn,
                    flow,
                    dscp,
                    ports,
                    tcp,
                    kind: tcp.map_or(PacketKind::Other, |header| {
                        PacketKind::of_tcp((header.flags & 0xff) as u8, header.payload)
                    }),
                    ..Pkt::new(arrivals - 1)
                })
            }
            ("sent" | "marked", &[number]) => Event::Departure(number, event == "marked"),
            _ => panic!("{case}: {line}"),
        };
        (Instant::from_ns(at.parse().expect(line)), event)
    };
    text(&format!("{case}.csv")).lines().skip(1).map(&mut event).collect()
}

/// Polls the queue at the kernel's departures, and returns the number of departures that differ.
fn differ(case: &str, kind: &str, given: &Settings) -> usize {
    let mut queue = build::<Stamped<Pkt>>(kind, given, &LINK, Stream::new(1, "salt"));
    let (mut fates, mut differ, mut left, mut marked, mut arrived) = (Fates::default(), 0, 0, 0, 0);
    for (now, event) in events(case) {
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
    let dropped = arrived - left;
    println!("{case}: {arrived} packets, {dropped} dropped, {marked} marked; {differ} departures differ");
    differ + queue.backlog().packets.get() as usize
}

fn linux(more: &[(&'static str, Value)]) -> Settings {
    settings(&[&[("preset", Value::Choice("linux"))], more].concat())
}

fn times(target: u64, interval: u64) -> [(&'static str, Value); 2] {
    [("target", Value::Span(Span::ms(target))), ("interval", Value::Span(Span::ms(interval)))]
}

#[test]
fn cobalt_decides_as_a_queue_of_cake() {
    for (case, given) in [
        ("cobalt_constant", linux(&[])),
        ("cobalt_bursts", linux(&[])),
        ("cobalt_short", linux(&times(1, 20))),
    ] {
        assert_eq!(differ(case, "cobalt", &given), 0, "{case}");
        let mut exact = given;
        exact.set("arithmetic", Value::Choice("exact"), aqmlab_params::Origin::Given);
        assert!(differ(case, "cobalt", &exact) > 0, "{case} does not distinguish the arithmetics");
    }
}

/// Runs CAKE as a host with a link of no transmission time would, and returns its departures: instant, packet,
/// and whether it is marked. The discipline itself says when the next packet may leave.
fn paced(case: &str, given: &Settings) -> Vec<(Instant, u64, bool)> {
    let mut queue = build::<Stamped<Pkt>>("cake", given, &LINK, Stream::new(1, "salt"));
    let (mut fates, mut left) = (Fates::default(), Vec::new());
    let mut poll = |queue: &mut aqmlab_qdisc::Discipline<Stamped<Pkt>>, now| {
        while let Some(out) = queue.dequeue(now, &mut fates) {
            left.push((now, out.packet.number, out.packet.ecn == Ecn::Ce));
        }
    };
    let arrivals = events(case).into_iter().filter_map(|(now, event)| match event {
        Event::Arrival(packet) => Some((now, packet)),
        Event::Departure(..) => None,
    });
    for (now, packet) in arrivals {
        while let Some(due) = queue.deadline().filter(|due| *due < now) {
            poll(&mut queue, due);
        }
        queue.enqueue(now, Stamped { packet, arrived: now }, &mut Fates::default());
        poll(&mut queue, now);
    }
    while let Some(due) = queue.deadline() {
        poll(&mut queue, due);
    }
    left
}

fn departures(case: &str) -> Vec<(Instant, u64, bool)> {
    let departure = |(now, event)| match event {
        Event::Arrival(_) => None,
        Event::Departure(number, marked) => Some((now, number, marked)),
    };
    events(case).into_iter().filter_map(departure).collect()
}

/// Two steps of the kernel's virtual time: that of the packet that starts the shaper, and that of its timer.
const GRID: Span = Span::ns(512);

/// Returns the number of departures that differ from the kernel's, in packet or mark, or by more than the grid
/// in their instant.
fn paced_differ(case: &str, given: &Settings) -> usize {
    let (ours, kernel) = (paced(case, given), departures(case));
    let apart = |a: Instant, b: Instant| a.max(b).saturating_since(a.min(b));
    let pairs = || ours.iter().zip(&kernel);
    let fates = pairs().filter(|(a, b)| (a.1, a.2) != (b.1, b.2)).count();
    let late = pairs().filter(|(a, b)| apart(a.0, b.0) > GRID).count();
    let most = pairs().map(|(a, b)| apart(a.0, b.0)).max().unwrap();
    println!(
        "{case}: {} departures ({} of ours), {fates} differ; {late} instants differ, at most by {most}",
        kernel.len(),
        ours.len()
    );
    if let Some((a, b)) = pairs().find(|(a, b)| (a.1, a.2) != (b.1, b.2)) {
        println!("{case}: ours {a:?}, the kernel's {b:?}");
    }
    fates + late + ours.len().abs_diff(kernel.len())
}

fn cake(bandwidth_kbit: u64, more: &[(&'static str, Value)]) -> Settings {
    let rate = ("bandwidth", Value::Rate(aqmlab_units::Rate::kbit(bandwidth_kbit)));
    linux(&[&[rate], more].concat())
}

fn word(name: &'static str, word: &'static str) -> (&'static str, Value) {
    (name, Value::Choice(word))
}

fn single(more: &[(&'static str, Value)]) -> Vec<(&'static str, Value)> {
    [&[word("tins", "besteffort"), word("isolation", "flowblind")], more].concat()
}

#[test]
fn the_shaper_sends_at_the_kernels_instants() {
    let whole = |name, n| (name, Value::Integer(n));
    let rtt = |ms| ("interval", Value::Span(Span::ms(ms)));
    let cases = [
        ("shaper", cake(10_000, &single(&[]))),
        ("shaper_overhead", cake(7000, &single(&[whole("overhead", 38), whole("mpu", 84)]))),
        ("shaper_atm", cake(5000, &single(&[whole("overhead", 32), word("framing", "atm")]))),
        ("shaper_ptm", cake(33_333, &single(&[whole("overhead", 30), word("framing", "ptm")]))),
        ("shaper_slow", cake(600, &single(&[rtt(30)]))),
        ("shaper_long", cake(600, &single(&[rtt(10_000)]))),
        ("ingress", cake(8000, &single(&[("ingress", Value::Flag(true)), rtt(20)]))),
    ];
    let all: Vec<_> = cases.iter().map(|(case, given)| (*case, paced_differ(case, given))).collect();
    assert!(all.iter().all(|(_, differ)| *differ == 0), "{all:?}");
}

#[test]
fn tins_are_served_as_in_the_kernel() {
    let cases = [
        ("tins3", "diffserv3"),
        ("tins4", "diffserv4"),
        ("tins8", "diffserv8"),
        ("precedence", "precedence"),
    ];
    let mut all: Vec<_> = cases
        .iter()
        .map(|(case, mode)| {
            let given = cake(10_000, &[word("tins", mode), word("isolation", "flowblind")]);
            (*case, differ(case, "cake", &given) + paced_differ(case, &given))
        })
        .collect();
    let unlimited = linux(&[word("tins", "diffserv4"), word("isolation", "flowblind")]);
    all.push(("tins4_unlimited", differ("tins4_unlimited", "cake", &unlimited)));
    assert!(all.iter().all(|(_, differ)| *differ == 0), "{all:?}");
}

/// Trains of segments of four connections in one queue, with SACK, ECN, time stamps, and options that are unusual
/// or damaged. A wrong choice of the filter is a departure that differs.
#[test]
fn the_filter_drops_the_kernels_acknowledgments() {
    let times = [("interval", Value::Span(Span::s(1)))];
    let ingress = [("ingress", Value::Flag(true))];
    let cases = [
        ("acks", "on", &times),
        ("acks_aggressive", "aggressive", &times),
        ("acks_ingress", "aggressive", &ingress),
        ("acks_unlimited", "on", &times),
    ];
    let kernels = text("acks_cases.csv");
    for (case, filter, more) in cases {
        let given = |filter| {
            let words = single(&[&[word("ack_filter", filter)], &more[..]].concat());
            if case == "acks_unlimited" { linux(&words) } else { cake(1000, &words) }
        };
        let found = if case == "acks_unlimited" {
            differ(case, "cake", &given(filter))
        } else {
            paced_differ(case, &given(filter))
        };
        assert_eq!(found, 0, "{case}");
        let filtered = |word| {
            let mut queue = build::<Stamped<Pkt>>("cake", &given(word), &LINK, Stream::new(1, "salt"));
            let mut fates = Fates::default();
            for (now, event) in events(case) {
                match event {
                    Event::Arrival(packet) => {
                        queue.enqueue(now, Stamped { packet, arrived: now }, &mut fates);
                    }
                    Event::Departure(..) => drop(queue.dequeue(now, &mut fates)),
                }
            }
            law_value(&queue, Instant::from_ns(u64::MAX / 2), "filtered")
        };
        let row = kernels.lines().find(|line| line.starts_with(&format!("{case},"))).expect(case);
        let kernel: f64 = row.rsplit(',').next().unwrap().parse().unwrap();
        assert_eq!((filtered(filter), filtered("none")), (kernel, 0.0), "{case}");
        let other = if filter == "on" { "aggressive" } else { "on" };
        assert_ne!(filtered(other), kernel, "{case} does not distinguish the two filters");
    }
}

/// With flows in queues of their own, only the random fraction of a byte in each quantum can change the order.
/// The kernel draws other numbers, so two packets now and then change places.
#[test]
fn flows_share_as_in_the_kernel() {
    let given = cake(10_000, &[word("tins", "besteffort"), word("isolation", "flows")]);
    let (ours, kernel) = (paced("flows", &given), departures("flows"));
    let other = ours.iter().zip(&kernel).filter(|(a, b)| (a.1, a.2) != (b.1, b.2)).count();
    println!("flows: {} departures ({} of ours), {other} differ", kernel.len(), ours.len());
    assert_eq!(ours.len(), kernel.len());
    assert!(other < 10, "{other} departures differ");
}

/// Four flows from one host to another, and one between two other hosts; each offers 0.7 of the rate. The share
/// of the lonely flow tells the modes of isolation apart.
#[test]
fn hosts_share_as_in_the_kernel() {
    for (case, isolation) in [
        ("hosts_flowblind", "flowblind"),
        ("hosts_flows", "flows"),
        ("hosts_srchost", "srchost"),
        ("hosts_dsthost", "dsthost"),
        ("hosts_hosts", "hosts"),
        ("hosts_dual_srchost", "dual-srchost"),
        ("hosts_dual_dsthost", "dual-dsthost"),
        ("hosts_triple", "triple-isolate"),
    ] {
        let given = cake(10_000, &[word("tins", "besteffort"), word("isolation", isolation)]);
        let arrives = |event: &(Instant, Event)| matches!(event.1, Event::Arrival(_));
        let end = events(case).iter().filter(|event| arrives(event)).map(|event| event.0).max().unwrap();
        // While the load lasts, all flows have packets waiting.
        let share = |all: Vec<(Instant, u64, bool)>| {
            let during: Vec<_> = all.iter().filter(|departure| departure.0 <= end).collect();
            let alone = during.iter().filter(|departure| departure.1 % 5 == 4).count();
            (during.len(), alone as f64 / during.len() as f64)
        };
        let (ours, kernel) = (share(paced(case, &given)), share(departures(case)));
        println!("{case}: ours {ours:?}, the kernel's {kernel:?}");
        // In a single queue, overflows and BLUE choose packets of any flow: three standard deviations.
        let chance = 3.0 * (2.0 * 0.2 * 0.8 / kernel.0 as f64).sqrt();
        let apart = if isolation == "flowblind" { chance } else { 0.01 };
        assert!((ours.1 - kernel.1).abs() < apart, "{case}: {ours:?} against {kernel:?}");
        assert!(ours.0.abs_diff(kernel.0) <= 2, "{case}: {ours:?} against {kernel:?}");
    }
}

#[test]
fn each_code_point_belongs_to_the_kernels_tin() {
    let table = text("code_points.csv");
    for line in table.lines().skip(1) {
        let mut cells = line.split(',');
        let mode = cells.next().unwrap();
        let kernel: Vec<u64> = cells.map(|cell| cell.parse().unwrap()).collect();
        assert_eq!(kernel.len(), 64);
        // tc lists the bulk tin before best effort.
        let bulk_first = ["diffserv3", "diffserv4"].contains(&mode);
        let ours: Vec<u64> = aqmlab_qdisc::disc::cake_tins(mode)
            .expect("a mode of CAKE")
            .iter()
            .map(|tin| match (bulk_first, *tin) {
                (true, tin @ (0 | 1)) => 1 - u64::from(tin),
                (_, tin) => u64::from(tin),
            })
            .collect();
        assert_eq!(ours, kernel, "{mode}");
    }
}
