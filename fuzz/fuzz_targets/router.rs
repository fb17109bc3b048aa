//! Arbitrary bytes arrive at arbitrary times from any host of several networks: the router must not
//! panic, the packets that it sends must be valid and in order of time, and at the end, every
//! packet must have exactly one fate.
#![no_main]

use std::sync::OnceLock;

use aqmlab_live::HostId;
use aqmlab_live::frame::parse;
use aqmlab_live::router::{FrameSink, OutgoingFrame, FrameBudget, Router};
use aqmlab_qdisc::Registry;
use aqmlab_scenario::{Plan, parse as read_scenario};
use aqmlab_units::{Instant, Span};
use arbitrary::{Arbitrary, Result, Unstructured};
use libfuzzer_sys::fuzz_target;

/// One operation on a router.
#[derive(Arbitrary, Debug)]
enum Act<'a> {
    /// Passes to the router a packet that a host has sent.
    Accept { host: u8, after: Gap, packet: Packet<'a> },
    /// Calls the router again after some time.
    Advance { after: Gap },
    /// Calls the router again at the time that it requested.
    Wait,
}

/// Nanoseconds between the previous operation and this one: none, a few, or up to a second.
#[derive(Arbitrary, Clone, Copy, Debug)]
enum Gap {
    None,
    Short(u16),
    Long(u32),
}

#[derive(Debug)]
enum Packet<'a> {
    /// Any bytes.
    Any(&'a [u8]),
    /// A datagram with a correct header and this client port, ECN field and length.
    Good { port: u16, ecn: u8, len: u16 },
}

impl<'a> Arbitrary<'a> for Packet<'a> {
    fn arbitrary(bytes: &mut Unstructured<'a>) -> Result<Self> {
        if bytes.ratio(1, 4)? {
            return Ok(Packet::Any(bytes.arbitrary()?));
        }
        let (port, ecn) = (bytes.int_in_range(1020..=1030)?, bytes.int_in_range(0..=3)?);
        Ok(Packet::Good { port, ecn, len: bytes.int_in_range(28..=1600)? })
    }
}

impl Packet<'_> {
    fn octets(&self, host: HostId) -> Vec<u8> {
        match *self {
            Packet::Any(octets) => octets.to_vec(),
            Packet::Good { port, ecn, len } => {
                let mut octets = vec![0; usize::from(len)];
                octets[..2].copy_from_slice(&[0x45, ecn]);
                octets[2..4].copy_from_slice(&len.to_be_bytes());
                octets[8..10].copy_from_slice(&[64, 17]);
                let at_client = host.number().is_multiple_of(2);
                let (from, to) = if at_client { (port, 5001) } else { (5001, port) };
                octets[20..22].copy_from_slice(&from.to_be_bytes());
                octets[22..24].copy_from_slice(&to.to_be_bytes());
                let checksum = aqmlab_live::frame::internet_checksum(&octets[..20]);
                octets[10..12].copy_from_slice(&checksum.to_be_bytes());
                octets
            }
        }
    }
}

/// Queues of different kinds, each for a network of its own.
const QUEUES: [&str; 6] = [
    r#"kind = "droptail", limit = "5p""#,
    r#"kind = "red", limit = "9p", min_th = "2p", max_th = "6p", w_q = 0.2, ecn = true"#,
    r#"kind = "pi", limit = "9p", q_ref = "3p", ecn = true"#,
    r#"kind = "blue", limit = "9p", ecn = true"#,
    r#"kind = "fred", limit = "9p", min_th = "2p", max_th = "6p", ecn = true"#,
    r#"kind = "rem", limit = "9p", ecn = true"#,
];

fn plans() -> &'static [Plan] {
    static PLANS: OnceLock<Vec<Plan>> = OnceLock::new();
    PLANS.get_or_init(|| QUEUES.iter().map(|queue| plan(queue)).collect())
}

fn plan(queue: &str) -> Plan {
    let text = format!(
        r#"
        duration = "2s"
        warmup = "100ms"
        [topology]
        kind = "dumbbell"
        rate = "10Mbit"
        delay = "5ms"
        queue = {{ {queue} }}
        [record]
        queues = "50ms"
        [[traffic]]
        name = "far"
        kind = "bulk"
        count = 4
        rtt = {{ uniform = ["20ms", "40ms"] }}
        loss = 0.05
        access_rate = "20Mbit"
        [[traffic]]
        name = "near"
        kind = "cbr"
        count = 3
        rate = "1Mbit"
        size = "500B"
        access_rate = "none"
        "#
    );
    let mut plans = read_scenario(&text, "fuzz.toml").unwrap_or_else(|error| panic!("{error}")).arms;
    plans.remove(0)
}

/// A sink that checks the packets that the router sends.
#[derive(Default)]
struct Sink {
    last: Instant,
    packets: u64,
    octets: u64,
}

impl FrameSink for Sink {
    fn leave(&mut self, leaving: OutgoingFrame<'_>) {
        assert!(leaving.at >= self.last, "the router sends packets in order of time");
        self.last = leaving.at;
        let headers = parse(leaving.octets).expect("every frame that the router sends is a valid packet");
        assert_eq!(usize::from(headers.total_len), leaving.octets.len());
        assert_eq!(headers.traffic_class & 3, leaving.ecn as u8);
        self.packets += 1;
        self.octets += leaving.octets.len() as u64;
    }
}

/// Number of frames for which the router has memory: small, so that the memory runs out.
const SLOTS: usize = 24;

fuzz_target!(|input: (u8, u64, Vec<Act<'_>>)| {
    let (shape, seed, acts) = input;
    let plan = &plans()[usize::from(shape) % QUEUES.len()];
    let budget = FrameBudget { frames: SLOTS, largest: vec![1500, 576] };
    let mut router = Router::new(plan, seed, &Registry::builtin(), &budget).expect("the plan is valid");
    let (mut sink, mut now) = (Sink::default(), Instant::ZERO);
    let mut read = 0;
    for act in acts {
        match act {
            Act::Accept { host, after, packet } => {
                now = now + span(after);
                let host = HostId::of_number(usize::from(host) % 4);
                read += 1;
                let _ = router.accept(now, host, &packet.octets(host), &mut sink);
            }
            Act::Advance { after } => {
                now = now + span(after);
                router.advance(now, &mut sink);
                assert!(router.next_due().is_none_or(|due| due > now), "everything that was due has been \
                                                                        done");
            }
            Act::Wait => {
                if let Some(due) = router.next_due() {
                    // Arrivals may have come later than `due`, and the time must not go backwards.
                    now = now.max(due);
                    router.advance(now, &mut sink);
                }
            }
        }
        assert!(router.held() <= SLOTS);
        assert!(sink.last <= now);
    }
    // A second after the end of the run, no packet is in flight.
    now = now.max(Instant::ZERO + plan.stop.at);
    router.advance(now + Span::s(1), &mut sink);
    assert!(router.ended().is_some());
    assert_eq!(router.held(), 0);
    let record = router.finish().expect("the books balance");
    let sum = |of: fn(&aqmlab_live::router::HostBooks) -> u64| record.hosts.iter().map(of).sum::<u64>();
    assert_eq!(sum(|host| host.read.packets), read);
    assert_eq!(sum(|host| host.accepted.packets + host.refused()), read);
    assert_eq!((sum(|host| host.left.packets), sum(|host| host.left.bytes)), (sink.packets, sink.octets));
    let fates = |of: fn(&aqmlab_live::router::FlowBooks) -> u64| {
        record.flows.iter().flat_map(|flow| &flow.drained).map(of).sum::<u64>()
    };
    // Packets that belong to no flow are counted only in the books of the hosts.
    let of_flows = sum(|host| host.accepted.packets - host.of_no_flow);
    assert_eq!(fates(|flow| flow.sent.packets), of_flows);
    assert_eq!(fates(|flow| flow.delivered.packets + flow.dropped + flow.lost), of_flows);
});

fn span(gap: Gap) -> Span {
    match gap {
        Gap::None => Span::ZERO,
        Gap::Short(ns) => Span::ns(u64::from(ns)),
        Gap::Long(ns) => Span::ns(u64::from(ns) % 1_000_000_000),
    }
}
