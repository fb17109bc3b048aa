//! Packets of several flows, an observer that keeps the lost ones, and settings in a line.

use aqmlab_params::{Origin, Settings, Value};
use aqmlab_qdisc::{Arrived, Cause, Classed, Dscp, Ecn, Observer, Packet, Reason, Side};
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Instant, Packets, Span};

/// All packets have this size.
const SIZE: Bytes = Bytes::new(1500);
/// What it takes at 10 Mbit/s.
pub const PACKET_TIME: Span = Span::us(1200);

/// A numbered packet of a flow, not ECN-capable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pkt {
    pub number: u64,
    pub flow: u64,
}

impl Packet for Pkt {
    fn wire_len(&self) -> Bytes {
        SIZE
    }
    fn flow_hash(&self, salt: u64) -> u64 {
        (self.flow + 1).wrapping_mul(salt | 1)
    }
    fn host_hash(&self, _: Side, salt: u64) -> u64 {
        salt
    }
    fn ecn(&self) -> Ecn {
        Ecn::NotEct
    }
    fn mark_ce(&mut self) {
        panic!("a packet that is not ECN-capable is marked");
    }
    fn dscp(&self) -> Dscp {
        Dscp(0)
    }
    fn set_dscp(&mut self, _: Dscp) {}
}

impl Arrived for Pkt {
    fn arrived(&self) -> Instant {
        unreachable!("the laws that it meets decide at arrival")
    }
}

impl Classed for Pkt {}

/// The packets that were lost, and why.
#[derive(Default)]
pub struct Lost(pub Vec<(Pkt, Reason)>);

impl Observer<Pkt> for Lost {
    fn dropped(&mut self, _: Instant, pkt: Pkt, at: Cause) {
        self.0.push((pkt, at.reason));
    }
    fn marked(&mut self, _: Instant, _: &Pkt, _: Cause) {
        panic!("nothing can be marked");
    }
}

/// Settings that a scenario gives.
pub fn settings(values: &[(&'static str, Value)]) -> Settings {
    let mut settings = Settings::default();
    for (name, value) in values {
        settings.set(name, value.clone(), Origin::Given);
    }
    settings
}

/// So many packets.
pub fn packets(n: u64) -> Value {
    Value::Size(Size::Packets(Packets::new(n)))
}
