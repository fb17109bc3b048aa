//! Compares the shapers with Linux's (`vectors/linux-shapers`): which packets leave, and when.

use std::path::PathBuf;

use aqmlab_params::{Settings, Value};
use aqmlab_qdisc::contract::LINK;
use aqmlab_qdisc::{Discipline, Ecn, LinkContext, Qdisc, Stamped};
use aqmlab_random::Stream;
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Instant, Packets, Rate, Span};

mod support;
use support::{Fates, Pkt, build, bytes, settings};

/// Two steps of the kernel's virtual time: that of the packet, and that of the shaper's timer.
const GRID: Span = Span::ns(512);

fn text(file: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../vectors/linux-shapers");
    std::fs::read_to_string(folder.join(file)).unwrap_or_else(|e| panic!("{file}: {e}"))
}

/// The arrivals of a case, and its departures: packet, instant, and whether it is marked. A packet's flow is its
/// traffic class.
struct Case {
    arrivals: Vec<(Instant, Pkt)>,
    departures: Vec<(u64, Instant, bool)>,
}

/// Returns a case; `header` is the part of the lengths that the packets of the test leave out.
fn case(name: &str, header: u64) -> Case {
    let mut case = Case { arrivals: Vec::new(), departures: Vec::new() };
    for line in text(&format!("{name}.csv")).lines().skip(1) {
        let [at, event, values] = line.split(',').collect::<Vec<_>>()[..] else { panic!("{name}: {line}") };
        let now = Instant::from_ns(at.parse().expect(line));
        let values: Vec<u64> = values.split(' ').map(|value| value.parse().expect(line)).collect();
        match (event, &values[..]) {
            ("arrived" | "refused", &[size, _, flow]) => {
                let number = case.arrivals.len() as u64;
                let size = size - header;
                case.arrivals.push((now, Pkt { size, flow, class: flow as usize, ..Pkt::new(number) }));
            }
            ("sent" | "marked", &[number]) => case.departures.push((number, now, event == "marked")),
            _ => panic!("{name}: {line}"),
        }
    }
    case
}

/// Runs a shaper on a link of no transmission time; the shaper says when the next packet may leave. If `late`, each
/// departure is as late as the kernel's, if this is within the grid.
fn run(case: &Case, queue: &mut Discipline<Stamped<Pkt>>, late: bool) -> Vec<(u64, Instant, bool)> {
    let (mut fates, mut left) = (Fates::default(), Vec::<(u64, Instant, bool)>::new());
    let at = |due: Instant, left: usize| match case.departures.get(left) {
        Some((_, kernel, _)) if late && *kernel > due && *kernel <= due + GRID => *kernel,
        _ => due,
    };
    let mut arrivals = case.arrivals.iter().peekable();
    loop {
        let due = queue.deadline().map(|due| at(due, left.len()));
        let now = match arrivals.peek() {
            Some((arrival, _)) if due.is_none_or(|due| *arrival <= due) => {
                let (now, packet) = *arrivals.next().unwrap();
                queue.enqueue(now, Stamped { packet, arrived: now }, &mut fates);
                now
            }
            _ => match due {
                Some(due) => due,
                None => return left,
            },
        };
        while let Some(out) = queue.dequeue(now, &mut fates) {
            left.push((out.packet.number, now, out.packet.ecn == Ecn::Ce));
        }
    }
}

/// Returns the number of departures that differ from the kernel's: another packet, another mark, or an instant
/// that is off by more than the grid.
fn differ(name: &str, header: u64, kind: &str, given: &Settings) -> usize {
    let case = case(name, header);
    let link = LinkContext { mean_packet: Bytes::new(500), ..LINK };
    let mut queue = build::<Stamped<Pkt>>(kind, given, &link, Stream::new(1, "shapers"));
    // A bucket that is full loses the time by which the kernel's clock makes a packet late.
    let (ours, kernel) =
        (run(&case, &mut queue, ["tbf_packet", "htb_deep"].contains(&name)), &case.departures);
    let apart = |a: Instant, b: Instant| a.max(b).saturating_since(a.min(b));
    let pairs = || ours.iter().zip(kernel);
    let fates = pairs().filter(|(a, b)| (a.0, a.2) != (b.0, b.2)).count();
    let late = pairs().filter(|(a, b)| apart(a.1, b.1) > GRID).count();
    let most = pairs().map(|(a, b)| apart(a.1, b.1)).max().unwrap();
    println!(
        "{name}: {} packets, {} leave ({} of ours), {fates} differ; {late} instants differ, at most by {most}",
        case.arrivals.len(),
        kernel.len(),
        ours.len()
    );
    if let Some((a, b)) = pairs().find(|(a, b)| (a.0, a.2) != (b.0, b.2) || apart(a.1, b.1) > GRID) {
        println!("{name}: ours {a:?}, the kernel's {b:?}");
    }
    fates + late + ours.len().abs_diff(kernel.len())
}

fn linux(more: &[(&'static str, Value)]) -> Settings {
    settings(&[&[("preset", Value::Choice("linux"))], more].concat())
}

/// Returns tbf's parameters for packets whose length includes the header.
fn tbf(rate_bps: u64, burst: u64, more: &[(&'static str, Value)]) -> Settings {
    let own =
        [("rate", Value::Rate(Rate::bps(rate_bps))), ("burst", bytes(burst)), ("header", Value::Integer(0))];
    linux(&[&own, more].concat())
}

fn inside(kind: &'static str, given: &[(&'static str, Value)]) -> (&'static str, Value) {
    ("queue", Value::Discipline { kind, settings: settings(given) })
}

fn limit(n: u64) -> (&'static str, Value) {
    ("limit", bytes(n))
}

#[test]
fn tbf_sends_each_packet_when_the_kernel_does() {
    let whole = |name, n| (name, Value::Integer(n));
    let peak = ("peakrate", Value::Rate(Rate::mbit(12)));
    let latency = ("latency", Value::Span(Span::ms(200)));
    let cases = [
        ("tbf", tbf(10_000_000, 5000, &[limit(60_000)])),
        ("tbf_slow", tbf(333_333, 4444, &[latency])),
        ("tbf_packet", tbf(9_999_000, 1514, &[limit(100_000)])),
        ("tbf_large", tbf(8_000_000, 1000, &[limit(100_000)])),
        ("tbf_peak", tbf(5_000_000, 30_000, &[limit(80_000), peak, ("mtu", bytes(2000))])),
        ("tbf_overhead", tbf(7_000_000, 9000, &[limit(80_000), whole("overhead", 24), whole("mpu", 200)])),
        (
            "tbf_atm",
            tbf(8_000_000, 9000, &[limit(80_000), whole("overhead", 18), ("framing", Value::Choice("atm"))]),
        ),
        ("tbf_fast", tbf(933_000_000, 20_000, &[limit(300_000)])),
    ];
    let all: Vec<_> = cases.iter().map(|(name, given)| (*name, differ(name, 0, "tbf", given))).collect();
    assert!(all.iter().all(|(_, differ)| *differ == 0), "{all:?}");
}

/// What a queue inside decides depends on when the shaper takes its packets, and whether it asks an empty queue.
#[test]
fn queues_inside_tbf_decide_as_in_the_kernel() {
    let codel = inside("codel", &CODEL);
    let with_codel = tbf(8_000_000, 3000, std::slice::from_ref(&codel));
    assert_eq!(differ("tbf_codel", 0, "tbf", &with_codel), 0);
    let by_length = tbf(8_000_000, 3000, &[codel, ("peek", Value::Choice("length"))]);
    assert!(differ("tbf_codel", 0, "tbf", &by_length) > 0, "the case does not distinguish the ways to peek");

    let with_red = |idle, more: &[_]| tbf(8_000_000, 3000, &[&[inside("red", &red(idle))], more].concat());
    assert_eq!(differ("tbf_red", 0, "tbf", &with_red("linux", &[])), 0);
    let asks = ("asks_empty", Value::Flag(true));
    assert!(
        differ("tbf_red", 0, "tbf", &with_red("linux", std::slice::from_ref(&asks))) > 0,
        "RED knows when it is idle"
    );
    // Even if it were asked, a RED that ignores idle periods does the same.
    assert_eq!(differ("tbf_red", 0, "tbf", &with_red("never", &[asks])), 0);
}

const CODEL: [(&str, Value); 3] = [
    ("preset", Value::Choice("linux")),
    ("target", Value::Span(Span::ms(3))),
    ("limit", Value::Size(Size::Packets(Packets::new(1000)))),
];

/// Thresholds that are a byte apart, so that the average alone decides.
fn red(idle: &'static str) -> Vec<(&'static str, Value)> {
    vec![
        ("preset", Value::Choice("linux")),
        ("limit", bytes(400_000)),
        ("min_th", bytes(9000)),
        ("max_th", bytes(9001)),
        ("mean_packet", bytes(1000)),
        ("w_q", Value::Number(1.0 / 256.0)),
        ("max_p", Value::Number(0.02)),
        ("idle", Value::Choice(idle)),
    ]
}

/// A class of a tree: its parent, rate, ceiling, buckets, and the flow whose packets it takes.
fn class(
    name: &str,
    parent: &str,
    [rate, ceil]: [u64; 2],
    [burst, cburst]: [u64; 2],
    more: &[(&'static str, Value)],
) -> Settings {
    let own = [
        ("name", Value::Text(name.into())),
        ("rate", Value::Rate(Rate::kbit(rate))),
        ("ceil", Value::Rate(Rate::kbit(ceil))),
        ("burst", bytes(burst)),
        ("cburst", bytes(cburst)),
    ];
    let mut all = settings(&[&own, more].concat());
    if !parent.is_empty() {
        all.set("parent", Value::Text(parent.into()), aqmlab_params::Origin::Given);
    }
    all
}

fn flow(number: usize) -> (&'static str, Value) {
    let class = Value::TrafficClass { name: format!("flow{number}"), number };
    ("traffic", Value::List(vec![class]))
}

fn quantum(n: u64) -> (&'static str, Value) {
    ("quantum", bytes(n))
}

fn prio(n: u64) -> (&'static str, Value) {
    ("prio", Value::Integer(n))
}

/// Returns a tree of these classes, with the same queue in each leaf.
fn htb(queue: (&'static str, Value), more: &[(&'static str, Value)], classes: Vec<Settings>) -> Settings {
    let classes = Value::List(classes.into_iter().map(Value::Table).collect());
    linux(&[&[queue, ("class", classes)], more].concat())
}

fn fifo() -> (&'static str, Value) {
    inside("droptail", &[("limit", Value::Size(Size::Packets(Packets::new(50))))])
}

/// The classes of `htb_borrow` and `htb_codel`.
fn borrow() -> Vec<Settings> {
    vec![
        class("all", "", [10_000, 10_000], [4000, 4000], &[]),
        class("10", "all", [1000, 10_000], [3000, 3000], &[flow(0), quantum(3000)]),
        class("11", "all", [3000, 10_000], [3000, 3000], &[flow(1), quantum(6000)]),
        class("12", "all", [6000, 8000], [3000, 3000], &[flow(2), quantum(1514)]),
    ]
}

/// The classes of `htb_deep`.
fn deep() -> Vec<Settings> {
    vec![
        class("all", "", [10_000, 10_000], [4000, 4000], &[]),
        class("2", "all", [4000, 9000], [5000, 5000], &[]),
        class("3", "all", [6000, 10_000], [5000, 5000], &[]),
        class("20", "2", [1000, 9000], [2000, 2000], &[flow(0), quantum(1600), prio(1)]),
        class("21", "2", [3000, 9000], [2000, 2000], &[flow(1), quantum(4800), prio(1)]),
        class("30", "3", [2000, 10_000], [2000, 2000], &[flow(2), quantum(3000), prio(0)]),
        class("31", "3", [4000, 5000], [9000, 2000], &[flow(3), quantum(3000), prio(2)]),
    ]
}

#[test]
fn htb_sends_each_packet_when_the_kernel_does() {
    let one = |rates, bursts| vec![class("1", "", rates, bursts, &[])];
    let atm = [("overhead", Value::Integer(18)), ("framing", Value::Choice("atm"))];
    let cases = [
        ("htb", htb(fifo(), &[], one([10_000, 10_000], [15, 15]))),
        ("htb_defaults", htb(fifo(), &[], one([7777, 7777], [1600, 1600]))),
        ("htb_ceil", htb(fifo(), &[], one([5000, 12_000], [20_000, 2500]))),
        ("htb_atm", htb(fifo(), &atm, one([8000, 8000], [4000, 4000]))),
        ("htb_borrow", htb(fifo(), &[], borrow())),
        ("htb_deep", htb(fifo(), &[], deep())),
    ];
    let all: Vec<_> = cases.iter().map(|(name, given)| (*name, differ(name, 14, "htb", given))).collect();
    assert!(all.iter().all(|(_, differ)| *differ == 0), "{all:?}");
}

#[test]
fn queues_inside_htb_decide_as_in_the_kernel() {
    let header = ("header", Value::Integer(0));
    let codel = htb(inside("codel", &CODEL), std::slice::from_ref(&header), borrow());
    assert_eq!(differ("htb_codel", 0, "htb", &codel), 0);
    let with_red = |idle, more: &[_]| {
        let one = vec![class("1", "", [8000, 8000], [3000, 3000], &[])];
        htb(inside("red", &red(idle)), &[std::slice::from_ref(&header), more].concat(), one)
    };
    assert_eq!(differ("htb_red", 0, "htb", &with_red("linux", &[])), 0);
    let asks = ("asks_empty", Value::Flag(true));
    assert!(
        differ("htb_red", 0, "htb", &with_red("linux", std::slice::from_ref(&asks))) > 0,
        "RED knows when it is idle"
    );
    assert_eq!(differ("htb_red", 0, "htb", &with_red("never", &[asks])), 0);
}

/// A strict band, and three that share the rest by their quanta.
#[test]
fn bands_and_quanta_are_those_of_ets() {
    let bands = ["first", "a", "b", "c"].iter().zip([0, 2250, 1500, 757]).enumerate();
    let shared: Vec<_> = bands
        .clone()
        .skip(1)
        .map(|(number, (name, quantum))| {
            let own =
                [("name", Value::Text((*name).into())), flow(number), ("weight", Value::Integer(quantum))];
            Value::Table(settings(&own))
        })
        .collect();
    let rest =
        [("scheduler", Value::Choice("drr")), ("quantum", bytes(2)), fifo(), ("class", Value::List(shared))];
    let first = settings(&[("name", Value::Text("first".into())), flow(0), fifo()]);
    let rest = settings(&[("name", Value::Text("rest".into())), inside("classes", &rest)]);
    let bands = [
        ("scheduler", Value::Choice("strict")),
        ("class", Value::List(vec![Value::Table(first), Value::Table(rest)])),
    ];
    let one = vec![class("1", "", [10_000, 10_000], [15, 15], &[])];
    assert_eq!(
        differ("ets", 0, "htb", &htb(inside("classes", &bands), &[("header", Value::Integer(0))], one)),
        0
    );
}

/// The depth of htb's buckets that tc computes, in ticks of 64 ns.
#[test]
fn buckets_are_as_deep_as_tc_makes_them() {
    for line in text("depths.csv").lines().skip(1) {
        let [rate, burst, _, tokens, _] = line.split(',').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let digits = rate.trim_end_matches(|c: char| c.is_alphabetic());
        let unit = match &rate[digits.len()..] {
            "bit" => 1,
            "kbit" => 1000,
            "mbit" => 1_000_000,
            "gbit" => 1_000_000_000,
            other => panic!("{other}"),
        };
        let bytes_per_s = digits.parse::<u64>().expect(line) * unit / 8;
        // Without a burst, tc writes 1600 bytes.
        let burst = if burst.is_empty() { 1600 } else { burst.parse().expect(line) };
        let depth = aqmlab_qdisc::law::linux_depth(bytes_per_s, Bytes::new(burst));
        assert_eq!(depth, Span::ns(64 * tokens.parse::<u64>().expect(line)), "{line}");
    }
}
