//! How do I put a queue discipline into a program of my own? With this crate alone, and no clock in it.
//!
//!     cargo run -p aqmlab-qdisc --example embed

use aqmlab_params::Settings;
use aqmlab_qdisc::{Cause, Classed, Dscp, Ecn, LinkContext, Observer, Packet, Port, Registry, Side};
use aqmlab_random::Stream;
use aqmlab_units::{Bytes, Instant, Rate, Span};

/// What the discipline may know of a packet of ours.
struct Frame(Ecn);

impl Packet for Frame {
    fn wire_len(&self) -> Bytes {
        Bytes::new(1500)
    }
    fn flow_hash(&self, salt: u64) -> u64 {
        salt
    }
    fn host_hash(&self, _: Side, salt: u64) -> u64 {
        salt
    }
    fn ecn(&self) -> Ecn {
        self.0
    }
    fn mark_ce(&mut self) {
        self.0 = Ecn::Ce
    }
    fn dscp(&self) -> Dscp {
        Dscp(0)
    }
    fn set_dscp(&mut self, _: Dscp) {}
}
impl Classed for Frame {}

/// Drops come back here, by value.
struct Recycle;
impl Observer<Frame> for Recycle {
    fn dropped(&mut self, _: Instant, _frame: Frame, _: Cause) {}
    fn marked(&mut self, _: Instant, _: &Frame, _: Cause) {}
}

fn main() {
    let (rate, delay) = (Rate::mbit(10), Span::ms(5));
    let link =
        LinkContext { rate, delay, rtt: Some(Span::ms(80)), flows: None, mean_packet: Bytes::new(1500) };
    let red = Registry::builtin()
        .build("red", &Settings::default(), &link, Stream::new(1, "red"))
        .expect("defaults fit");
    let mut port = Port::new(red, rate, Bytes::ZERO, 1);
    for n in 0..10_000 {
        let now = Instant::ZERO + Span::us(1150) * n; // 4 % more than the link can carry
        while let Some(end) = port.next_event().filter(|end| *end <= now) {
            let _sent = port.link_free(end, &mut Recycle);
        }
        port.arrive(now, Frame(Ecn::NotEct), &mut Recycle);
    }
    let (books, total) = (port.books(), port.books().total());
    println!("sent {}, dropped {}", total.departed.packets, total.dropped_total().packets);
    println!("mean backlog {:.1} packets", books.backlog_packets().mean(books.span()));
    port.check_books().expect("every packet has one fate");
}
