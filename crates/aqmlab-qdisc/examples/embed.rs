//! Uses a queue discipline in a program of your own, with this crate only and without a clock.
//!
//!     cargo run -p aqmlab-qdisc --example embed

use aqmlab_params::{Origin, Settings, Value};
use aqmlab_qdisc::{
    Cause, Classed, Dscp, Ecn, LinkContext, Observer, Packet, Port, Registry, Side, Stamped, registry,
};
use aqmlab_random::Stream;
use aqmlab_units::{Bytes, Instant, Rate, Span};

/// A packet of a network simulator or a QUIC stack.
pub struct Datagram {
    flow: u64,
    len: Bytes,
    ecn: Ecn,
}

impl Packet for Datagram {
    fn wire_len(&self) -> Bytes {
        self.len
    }
    fn flow_hash(&self, salt: u64) -> u64 {
        (self.flow ^ salt).wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }
    fn host_hash(&self, _: Side, salt: u64) -> u64 {
        self.flow_hash(salt) // every flow has hosts of its own here
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn mark_ce(&mut self) {
        self.ecn = Ecn::Ce;
    }
    fn dscp(&self) -> Dscp {
        Dscp(0)
    }
    fn set_dscp(&mut self, _: Dscp) {}
}

/// The books are kept per class; here each flow is a class.
impl Classed for Datagram {
    fn class(&self) -> usize {
        self.flow as usize
    }
}

/// Receives each lost packet by value, as soon as it is lost.
#[derive(Default)]
pub struct Sender {
    /// Number of lost packets.
    pub losses: u64,
    /// Number of packets marked with CE.
    pub marks: u64,
}
impl Observer<Stamped<Datagram>> for Sender {
    fn dropped(&mut self, _: Instant, _lost: Stamped<Datagram>, _: Cause) {
        self.losses += 1;
    }
    fn marked(&mut self, _: Instant, _: &Stamped<Datagram>, _: Cause) {
        self.marks += 1;
    }
}

/// Sends one flow with ECN and one without through a port for ten seconds, together at 106 % of the
/// link's rate.
pub fn run() -> (Port<Datagram>, Sender) {
    let (rate, delay, rtt) = (Rate::mbit(10), Span::ms(5), Some(Span::ms(80)));
    let link = LinkContext { rate, delay, rtt, flows: None, mean_packet: Bytes::new(1200) };
    let mut settings = Settings::default();
    settings.set("ecn", Value::Flag(true), Origin::Given);
    settings.set("gentle", Value::Flag(true), Origin::Given);
    let red = registry::info("red").expect("it is built in").resolve(&settings, &link).expect("these fit");
    let red = Registry::builtin().build(&red, Stream::new(1, "red")).expect("they are RED's");

    let (mut port, mut sender) = (Port::new(red, rate, Bytes::ZERO, 2), Sender::default());
    for n in 0..10_000 {
        let now = Instant::ZERO + Span::ms(1) * n;
        while let Some(end) = port.next_event().filter(|end| *end <= now) {
            let _sent = port.link_free(end, &mut sender); // on its way to the other end
        }
        port.arrive(now, Datagram { flow: 0, len: Bytes::new(1200), ecn: Ecn::Ect0 }, &mut sender);
        if n % 4 == 0 {
            port.arrive(now, Datagram { flow: 1, len: Bytes::new(500), ecn: Ecn::NotEct }, &mut sender);
        }
    }
    port.settle(Instant::ZERO + Span::s(10));
    (port, sender)
}

fn main() {
    let (port, sender) = run();
    port.check_books().expect("every packet has one fate");
    for (flow, books) in port.books().classes().enumerate() {
        let (arrived, sent) = (books.arrived().packets, books.departed.packets);
        let (marked, dropped) = (books.marked_total().packets, books.dropped_total().packets);
        println!("flow {flow}: arrived {arrived}, sent {sent}, marked {marked}, dropped {dropped}");
    }
    let backlog = port.books().backlog_packets();
    println!("mean backlog {:.1} packets", backlog.mean(port.books().span()));
    println!("{} losses and {} marks reported", sender.losses, sender.marks);
}
