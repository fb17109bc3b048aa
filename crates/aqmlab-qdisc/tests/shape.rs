//! Shapers whose rate changes while they hold packets: departures compared with arithmetic.

use aqmlab_params::{Origin, Value};
use aqmlab_qdisc::contract::LINK;
use aqmlab_qdisc::{Cause, LinkContext, Observer, Port, Qdisc, Stamped, registry};
use aqmlab_random::Stream;
use aqmlab_units::{Bytes, Instant, Rate, Span};

mod support;
use support::{Pkt, build, bytes, packets, settings};

/// A link on which no packet takes a nanosecond, so that the shaper alone paces.
const LINK_RATE: Rate = Rate::gbit(100_000);

fn rate(name: &'static str, bps: u64) -> (&'static str, Value) {
    (name, Value::Rate(Rate::bps(bps)))
}

fn fifo() -> (&'static str, Value) {
    ("queue", Value::Discipline { kind: "droptail", settings: settings(&[("limit", packets(9))]) })
}

fn port(kind: &str, values: &[(&'static str, Value)]) -> Port<Pkt> {
    let link = LinkContext { rate: LINK_RATE, ..LINK };
    Port::new(build(kind, &settings(values), &link, Stream::new(1, "port")), LINK_RATE, Bytes::ZERO, 1)
}

fn tbf() -> Port<Pkt> {
    port("tbf", &[rate("rate", 10_000_000), ("burst", bytes(SIZE + MORE)), fifo()])
}

/// A tree of one leaf below one class, both with the whole rate.
fn htb(kbit: u64) -> Port<Pkt> {
    let class = |name: &str, more: &[(&'static str, Value)]| {
        let mut table =
            settings(&[rate("rate", kbit * 1000), ("burst", bytes(1500)), ("cburst", bytes(1500))]);
        table.set("name", Value::Text(name.into()), Origin::Given);
        more.iter().for_each(|(key, value)| table.set(key, value.clone(), Origin::Given));
        Value::Table(table)
    };
    let leaf = class("leaf", &[("parent", Value::Text("all".into())), fifo()]);
    port("htb", &[("class", Value::List(vec![class("all", &[]), leaf]))])
}

const SIZE: u64 = 1500;
/// What a bucket holds in addition to one packet, so that it never overflows.
const MORE: u64 = 10;

/// The packets that have left a shaper, with their instants.
#[derive(Default)]
struct Left(Vec<(u64, Instant)>);

impl Observer<Stamped<Pkt>> for Left {
    fn dequeued(&mut self, now: Instant, packet: &Stamped<Pkt>) {
        self.0.push((packet.packet.number, now));
    }
    fn dropped(&mut self, _now: Instant, _packet: Stamped<Pkt>, _at: Cause) {
        panic!("there is room");
    }
    fn marked(&mut self, _now: Instant, _packet: &Stamped<Pkt>, _at: Cause) {}
}

/// Keeps a shaper busy, and changes its rate at random instants, of which `changed` is told. Calls `departed` for each packet
/// with the instant at which it left the shaper.
fn drive(
    mut port: Port<Pkt>,
    seed: u64,
    count: u64,
    mut changed: impl FnMut(Instant, u64),
    mut departed: impl FnMut(u64, Instant),
) {
    let (mut fates, mut draws) = (Left::default(), Stream::new(seed, "changes"));
    let (mut arrived, mut left) = (0, 0);
    let mut next_change = Instant::from_ns(3);
    while arrived < 3 {
        port.arrive(Instant::ZERO, Pkt { size: SIZE, ..Pkt::new(arrived) }, &mut fates);
        arrived += 1;
    }
    while left < count {
        let at = port.next_event().expect("a shaper with packets has something to do");
        if next_change <= at {
            let most = 1 << (16 + draws.below(10));
            let bps = 8 * (12_500 + draws.below(most / 8));
            changed(next_change, bps);
            port.shape(next_change, Rate::bps(bps), &mut fates);
            next_change = Instant::from_ns(next_change.as_ns() + 1 + draws.below(30_000_000));
        } else if port.is_sending() {
            port.link_free(at, &mut fates);
            left += 1;
            port.arrive(at, Pkt { size: SIZE, ..Pkt::new(arrived) }, &mut fates);
            arrived += 1;
        } else {
            port.wake(at, &mut fates);
        }
    }
    port.check_books().unwrap();
    fates.0.iter().take(count as usize).for_each(|(number, at)| departed(*number, *at));
}

/// A bucket of little more than one packet is full at first and holds less than one packet after each, so packet n + 1 leaves
/// when the integral of the rate has reached n packets less what the bucket holds in addition, rounded up to a nanosecond.
#[test]
fn a_token_bucket_sends_what_the_integral_of_its_rate_allows() {
    let mut rates = vec![(0, 10_000_000u64)];
    let mut departures = Vec::new();
    drive(
        tbf(),
        5,
        100_000,
        |at, bps| rates.push((at.as_ns(), bps)),
        |n, at| departures.push((n, at.as_ns())),
    );
    assert!(rates.len() > 10_000, "{}", rates.len());
    let (mut level, mut done) = (0, 0u128);
    for (n, at) in departures {
        let due = Bytes::new((SIZE * n).saturating_sub(MORE)).nanobits();
        // The integral up to each change that precedes the departure.
        while let Some((until, _)) = rates.get(level + 1) {
            let more = u128::from(rates[level].1) * u128::from(until - rates[level].0);
            if done + more >= due {
                break;
            }
            (done, level) = (done + more, level + 1);
        }
        let (begin, bps) = rates[level];
        let expected = begin + u64::try_from((due - done).div_ceil(u128::from(bps))).unwrap();
        assert_eq!(at, expected, "packet {n}");
    }
}

/// Linux's tree lets a class send as long as its bucket has any token, so the packet after an empty bucket leaves when it is
/// no longer empty. The long-term rate is the mean of the rates over time.
#[test]
fn a_tree_follows_its_rate_in_proportion() {
    for kbit in [10_000, 3_000] {
        let (mut at, mut bps, mut integral, mut last) = (0u64, kbit * 1000, 0u128, 0u64);
        let changed = |now: Instant, next: u64| {
            integral += u128::from(bps) * u128::from(now.as_ns() - at);
            (at, bps) = (now.as_ns(), next);
        };
        drive(htb(kbit), 6, 20_000, changed, |_, now| last = now.as_ns());
        integral += u128::from(bps) * u128::from(last - at);
        let sent = Bytes::new(SIZE).nanobits() * 20_000;
        let packets = (sent as f64 - integral as f64) / Bytes::new(SIZE).nanobits() as f64;
        // The bucket, and the packet that empties it.
        assert!((0.0..=2.001).contains(&packets), "{packets} packets more than the rate");
    }
}

/// CAKE charges a packet when it leaves, at the rate of that instant (Linux, cake_advance_shaper).
#[test]
fn cake_charges_each_packet_at_the_rate_that_holds() {
    let patient = [("target", Value::Span(Span::s(1000))), ("interval", Value::Span(Span::s(4000)))];
    let cake = [
        rate("bandwidth", 10_000_000),
        ("tins", Value::Choice("besteffort")),
        patient[0].clone(),
        patient[1].clone(),
    ];
    let (mut now, mut due, mut last) = (10_000_000u64, 0u64, 0);
    let mut rates = vec![(0, now)];
    let mut departures = Vec::new();
    drive(
        port("cake", &cake),
        7,
        20_000,
        |at, bps| rates.push((at.as_ns(), bps)),
        |_, at| departures.push(at.as_ns()),
    );
    let mut changes = rates.into_iter().peekable();
    for at in departures {
        // Linux's transmission times have 32 significant bits.
        assert!(at.abs_diff(due) <= 1 + ((due - last) >> 31), "{at} instead of {due}");
        last = at;
        while let Some((_, bps)) = changes.next_if(|(change, _)| *change <= at) {
            now = bps;
        }
        due = at + SIZE * 8 * 1_000_000_000 / now;
    }
}

/// Linux changes the rate of CAKE with `tc qdisc change` while packets wait (`vectors/linux-cake-rate`).
#[test]
fn cake_sends_at_the_kernels_instants() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../vectors/linux-cake-rate/departures.csv");
    let text = std::fs::read_to_string(file).expect("the vectors are there");
    let row = |line: &str| {
        let (at, rate) = line.split_once(',').expect("two columns");
        (at.parse::<u64>().expect("a time"), rate.parse::<u64>().ok())
    };
    let rows: Vec<(u64, Option<u64>)> = text.lines().skip(1).map(row).collect();
    let given = [
        ("preset", Value::Choice("linux")),
        rate("bandwidth", 10_000_000),
        ("tins", Value::Choice("besteffort")),
        ("isolation", Value::Choice("flowblind")),
        ("overhead", Value::Integer(0)),
        ("interval", Value::Span(Span::s(1000))),
    ];
    let (mut port, mut left) = (port("cake", &given), Left::default());
    let departures: Vec<u64> = rows.iter().filter(|(_, rate)| rate.is_none()).map(|(at, _)| *at).collect();
    for number in 0..departures.len() as u64 {
        port.arrive(Instant::ZERO, Pkt { size: SIZE, ..Pkt::new(number) }, &mut left);
    }
    let changes = rows.iter().filter_map(|(at, kbit)| Some((*at, (*kbit)?)));
    for (until, kbit) in changes.map(|(at, kbit)| (at, Some(kbit))).chain([(u64::MAX, None)]) {
        while let Some(at) = port.next_event().filter(|at| at.as_ns() < until) {
            if port.is_sending() {
                port.link_free(at, &mut left);
            } else {
                port.wake(at, &mut left);
            }
        }
        if let Some(kbit) = kbit {
            port.shape(Instant::from_ns(until), Rate::kbit(kbit), &mut left);
        }
    }
    assert_eq!((left.0.len(), departures.len()), (150, 150));
    for ((number, ours), kernels) in left.0.iter().zip(departures) {
        // The kernel's clock has steps of 256 ns, at the first departure as well.
        assert!(ours.as_ns().abs_diff(kernels) <= 1000, "packet {number}: {ours} and {kernels} ns");
    }
}

/// What is not a shaper says so; a policer passes the rate on to the shaper behind it.
#[test]
fn only_shapers_are_shaped() {
    for info in registry::catalogue() {
        for (_, values) in (info.samples)() {
            let mut queue = build(info.name, &values, &LINK, Stream::new(1, "port"));
            let shaped = Qdisc::<Stamped<Pkt>>::shape(&mut queue, Instant::ZERO, Rate::mbit(1));
            assert_eq!(shaped, ["tbf", "htb"].contains(&info.name), "{}", info.name);
        }
    }
}
