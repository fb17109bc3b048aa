//! Measures how many instructions a discipline spends on one packet. The program keeps a backlog,
//! sends packets through the discipline while a profiler counts instructions, and prints one JSON
//! line. The cost of one packet is the difference between the instruction counts of a long and a
//! short run, divided by the difference between their packet counts.
//!
//!     cargo run --release -p aqmlab-qdisc --example discipline_bench -- red 100 1000000
//!
//! The name `red` selects enqueue and dequeue alone, `port/red` the same operations together with
//! the link and the books, and `nothing` the overhead of this program, which must be subtracted.
//! Laws that mark are set to mark 5 % of the packets; CoDel, whose marks follow a schedule, is kept
//! above its target but marks none.

use aqmlab_params::{Origin, Settings, Value};
use aqmlab_qdisc::{
    Arrived, Cause, Classed, Discipline, Dscp, Ecn, LinkContext, Observer, Packet, Port, Qdisc, Registry,
    Side, Stamped, registry,
};
use aqmlab_random::Stream;
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Instant, Packets, Rate, Span};

/// 1500 B take 120 us.
const LINK: LinkContext = LinkContext {
    rate: Rate::mbit(100),
    delay: Span::ms(10),
    rtt: Some(Span::ms(100)),
    flows: Some(20),
    mean_packet: Bytes::new(1500),
};
const PACKET_TIME: Span = Span::us(120);

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let ([name, backlog, packets], flows) = match args.as_slice() {
        [name, backlog, packets] => ([name, backlog, packets], 1),
        [name, backlog, packets, flows] => {
            ([name, backlog, packets], flows.parse().expect("the number of flows is an integer"))
        }
        _ => panic!("usage: discipline_bench [port/]<discipline> <backlog> <packets> [<flows>]"),
    };
    let backlog: u64 = backlog.parse().expect("the backlog is a number of packets");
    let packets: u64 = packets.parse().expect("the number of packets is an integer");
    let marks = match (name.as_str(), name.strip_prefix("port/")) {
        ("nothing", _) => through_nothing(packets, flows),
        (_, Some(name)) => through_port(name, [backlog, packets, flows]),
        (name, None) => through_discipline(name, [backlog, packets, flows]),
    };
    println!(r#"{{"name":"{name}","backlog":{backlog},"packets":{packets},"marks":{marks}}}"#);
}

/// Only creates the packets and reads their fields.
fn through_nothing(packets: u64, flows: u64) -> u64 {
    for n in 0..packets {
        std::hint::black_box(&Some(Load::fresh(Instant::ZERO, n % flows)));
    }
    0
}

/// Alternately enqueues and dequeues at a constant backlog, and returns the number of marks. As in a port,
/// the discipline is called through its concrete type.
fn through_discipline(name: &str, counts: [u64; 3]) -> u64 {
    match discipline::<Load>(name, counts[0]) {
        Discipline::DropTail(queue) => through(queue, counts),
        Discipline::Red(queue) => through(queue, counts),
        Discipline::Blue(queue) => through(queue, counts),
        Discipline::Codel(queue) => through(queue, counts),
        Discipline::Cobalt(queue) => through(queue, counts),
        Discipline::Cake(queue) => through(queue, counts),
        Discipline::FqCodel(queue) => through(queue, counts),
        Discipline::FqPie(queue) => through(queue, counts),
        Discipline::Sfq(queue) => through(queue, counts),
        Discipline::Fq(queue) => through(queue, counts),
        Discipline::Gred(queue) => through(queue, counts),
        Discipline::Pi2(queue) => through(queue, counts),
        Discipline::DualPi2(queue) => through(queue, counts),
        Discipline::Fred(queue) => through(queue, counts),
        Discipline::Pi(queue) => through(queue, counts),
        Discipline::Pie(queue) => through(queue, counts),
        Discipline::Rem(queue) => through(queue, counts),
        Discipline::Choke(queue) => through(queue, counts),
        Discipline::Sfb(queue) => through(queue, counts),
        Discipline::Avq(queue) => through(queue, counts),
        Discipline::RedPd(queue) => through(queue, counts),
        Discipline::Spare(queue) => through(queue, counts),
        Discipline::Tbf(queue) => through(queue, counts),
        Discipline::Htb(queue) => through(queue, counts),
        _ => panic!("the bench does not support `{name}`"),
    }
}

fn through(mut queue: impl Qdisc<Load>, [backlog, packets, flows]: [u64; 3]) -> u64 {
    let (mut fates, mut now) = (Fates::default(), Instant::ZERO);
    for n in 0..backlog {
        queue.enqueue(now, Load::fresh(now, n % flows), &mut fates);
    }
    fates = Fates::default();
    for n in 0..packets {
        queue.enqueue(now, Load::fresh(now, n % flows), &mut fates);
        now += PACKET_TIME;
        std::hint::black_box(&queue.dequeue(now, &mut fates));
    }
    assert_eq!((fates.dropped, queue.backlog().packets), (0, Packets::new(backlog)));
    fates.marked
}

/// Like `through_discipline`, but through a port: one packet arrives during each transmission.
fn through_port(name: &str, [backlog, packets, flows]: [u64; 3]) -> u64 {
    let (queue, mut fates) = (discipline::<Stamped<Load>>(name, backlog), Fates::default());
    let mut port = Port::new(queue, LINK.rate, Bytes::ZERO, 1);
    for n in 0..=backlog {
        port.arrive(Instant::ZERO, Load::fresh(Instant::ZERO, n % flows), &mut fates);
    }
    fates = Fates::default();
    let mut end = port.next_event().expect("the link is sending");
    for n in 0..packets {
        // Multiples of the golden ratio place each arrival at a different point of its
        // transmission, so no two successive sojourn times are equal.
        let into = Span::ns(n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 48);
        port.arrive(end + into, Load::fresh(end + into, n % flows), &mut fates);
        end += PACKET_TIME;
        std::hint::black_box(&port.link_free(end, &mut fates));
    }
    port.check_books().expect("the books balance");
    assert_eq!((fates.dropped, port.backlog().packets), (0, Packets::new(backlog)));
    fates.marked
}

/// Returns parameters with an ample buffer. With these parameters, a RED discipline whose average
/// is `backlog` marks 5 % of the packets: the average is midway between the thresholds, so pb is
/// 0.025, and the gaps between marks are uniform on 1 to 39, with a mean of 20.
fn parameters(name: &str, backlog: u64) -> Vec<(&'static str, Value)> {
    let packets = |n| Value::Size(Size::Packets(Packets::new(n)));
    let (limit, ecn) = (("limit", packets(4 * backlog)), ("ecn", Value::Flag(true)));
    // No update falls due in the whole run, so the law keeps its initial `max_p`.
    let never = Value::Span(Span::s(1_000_000));
    let early = [
        limit.clone(),
        ecn.clone(),
        ("min_th", packets(backlog / 2)),
        ("max_th", packets(backlog / 2 * 3)),
        ("max_p", Value::Number(0.05)),
        ("w_q", Value::Number(0.002)),
    ];
    let early_and = |more: &[(&'static str, Value)]| [&early, more].concat();
    // Each sample is taken just after an arrival, before the next departure. The queue is then one packet
    // longer than `backlog` and equals q_ref, so the probability remains constant.
    let standing = backlog + 1;
    let controller =
        |more: &[_]| [&[limit.clone(), ecn.clone(), ("q_ref", packets(standing))], more].concat();
    match name {
        "droptail" => vec![limit],
        "red" | "scred" | "redpd" => early_and(&[]),
        "ared" => early_and(&[("interval", never)]),
        // The bins of the only flow hold as many packets as may wait there, so their probability stays 0.
        "sfb" => vec![limit, ecn, ("bin_size", Value::Integer(4 * backlog))],
        // The virtual queue is so long that no packet is chosen.
        "avq" => vec![limit, ecn, ("virtual_limit", packets(1_000_000_000))],
        // All packets belong to one flow and would meet each other above min_th, so the average stays below.
        "choke" => vec![limit, ecn, ("min_th", packets(2 * backlog)), ("max_th", packets(4 * backlog))],
        // All packets belong to one flow, which must not exceed its limit, `max_q`.
        "fred" => early_and(&[("max_q", packets(4 * backlog))]),
        // There is only one update in the whole run: at the first arrival that finds more than `threshold`
        // waiting.
        "blue" => vec![
            limit,
            ecn,
            ("threshold", packets(backlog / 2)),
            ("d1", Value::Number(0.05)),
            ("freeze_time", Value::Span(Span::s(1000))),
        ],
        "cobalt" => {
            vec![limit, ("target", Value::Span(PACKET_TIME)), ("interval", Value::Span(Span::s(1000)))]
        }
        // All packets belong to one flow and one tin.
        "cake" => vec![
            ("target", Value::Span(PACKET_TIME)),
            ("interval", Value::Span(Span::s(4))),
            ("memory_limit", Value::Size(Size::Bytes(Bytes::new(4 * 1500 * backlog)))),
        ],
        "codel" => {
            vec![limit, ("target", Value::Span(PACKET_TIME)), ("interval", Value::Span(Span::s(1000)))]
        }
        // RED as above, which only the first packet does not reach.
        "spare" => vec![("below", packets(1)), ("queue", inner("red", early_and(&[])))],
        // The buckets are never empty.
        "tbf" => vec![
            ("rate", Value::Rate(Rate::gbit(10))),
            ("burst", Value::Size(Size::Bytes(Bytes::new(1_000_000)))),
            ("queue", inner("droptail", vec![limit])),
        ],
        // One class, to which all packets belong.
        "gred" => {
            let mut class = given(early_and(&[]));
            class.set("name", Value::Text("all".into()), Origin::Given);
            vec![("class", Value::List(vec![Value::Table(class)]))]
        }
        "htb" => {
            let mut class = given(vec![("rate", Value::Rate(Rate::gbit(10)))]);
            class.set("name", Value::Text("all".into()), Origin::Given);
            class.set("queue", inner("droptail", vec![limit]), Origin::Given);
            vec![("class", Value::List(vec![Value::Table(class)]))]
        }
        // Every packet belongs to one of this many flows in turn, each with a queue of its own.
        "fq_codel" => vec![
            limit,
            ("queues", Value::Choice("perfect")),
            ("target", Value::Span(PACKET_TIME)),
            ("interval", Value::Span(Span::s(1000))),
        ],
        "fq" => vec![limit, ("flow_limit", Value::Integer(4 * backlog))],
        // Each queue has a turn per packet.
        "sfq" => vec![limit, ("depth", Value::Integer(4 * backlog))],
        // The target is never exceeded.
        "fq_pie" => vec![limit, ("queues", Value::Choice("perfect")), ("target", Value::Span(Span::s(100)))],
        // Packets wait for `backlog` packet times, which is the target, so the probability that the first updates
        // set remains. All packets are Classic.
        "pi2" | "dualpi2" => {
            let mut all = vec![limit, ("target", Value::Span(PACKET_TIME * (backlog + 1)))];
            all.extend((name == "pi2").then_some(ecn));
            all
        }
        // The first sample sets the probability, which then remains constant.
        "pi" => controller(&[
            ("b", Value::Number(0.05 / standing as f64)),
            ("a", Value::Number(0.051 / standing as f64)),
        ]),
        // The first update sets the probability by the growth of the delay, which then remains constant.
        "pie" => vec![
            limit,
            ecn,
            ("target", Value::Span(PACKET_TIME * backlog)),
            ("t_update", Value::Span(Span::ms(100))),
            ("max_burst", Value::Span(Span::ZERO)),
            ("alpha", Value::Number(1e-6)),
            ("beta", Value::Number(1000.0)),
        ],
        // In each period the link can send twenty packets; in the first period, twenty plus `backlog` arrive.
        "rem" => controller(&[
            ("period", Value::Span(PACKET_TIME * 20)),
            ("gamma", Value::Number(-libm::log(0.95) / libm::log(1.001) / backlog as f64)),
        ]),
        other => panic!("the bench has no parameters for `{other}`; add some"),
    }
}

fn given(values: Vec<(&'static str, Value)>) -> Settings {
    let mut settings = Settings::default();
    for (name, value) in values {
        settings.set(name, value, Origin::Given);
    }
    settings
}

fn inner(kind: &'static str, values: Vec<(&'static str, Value)>) -> Value {
    Value::Discipline { kind, settings: given(values) }
}

/// Returns a discipline with these parameters.
fn discipline<P: Arrived + 'static>(name: &str, backlog: u64) -> Discipline<P> {
    let settings = given(parameters(name, backlog));
    let draws = Stream::new(1, "bench");
    let resolved = registry::info(name).expect("a built-in discipline").resolve(&settings, &LINK);
    resolved.and_then(|s| Registry::builtin().build(&s, draws)).unwrap_or_else(|e| panic!("{e}"))
}

/// A packet whose struct takes 32 bytes, the same as the simulator's.
#[derive(Clone, Copy)]
struct Load {
    size: u32,
    bits: u8,
    arrived: Instant,
    flow: u32,
    _fields: [u32; 3],
}

impl Load {
    /// Creates a packet whose contents are hidden from the optimiser.
    fn fresh(arrived: Instant, flow: u64) -> Self {
        let (size, flow) = (std::hint::black_box(1500), flow as u32);
        Load { size, bits: Ecn::Ect0 as u8, arrived, flow, _fields: [0; 3] }
    }
}

impl Packet for Load {
    fn wire_len(&self) -> Bytes {
        Bytes::new(u64::from(self.size))
    }
    fn flow_hash(&self, salt: u64) -> u64 {
        (u64::from(self.flow) + 1).wrapping_mul(salt | 1)
    }
    fn host_hash(&self, _: Side, salt: u64) -> u64 {
        salt
    }
    fn ecn(&self) -> Ecn {
        [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce][usize::from(self.bits & 3)]
    }
    fn mark_ce(&mut self) {
        self.bits |= Ecn::Ce as u8;
    }
    fn dscp(&self) -> Dscp {
        Dscp(0)
    }
    fn set_dscp(&mut self, _: Dscp) {}
}

impl Arrived for Load {
    fn arrived(&self) -> Instant {
        self.arrived
    }
}

impl Classed for Load {}

#[derive(Default)]
struct Fates {
    dropped: u64,
    marked: u64,
}

impl<P> Observer<P> for Fates {
    fn dropped(&mut self, _: Instant, _: P, _: Cause) {
        self.dropped += 1;
    }
    fn marked(&mut self, _: Instant, _: &P, _: Cause) {
        self.marked += 1;
    }
}
