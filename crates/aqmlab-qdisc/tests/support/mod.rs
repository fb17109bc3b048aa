//! Parts common to the tests of queues: a packet, an observer that records fates, and short ways to write
//! settings.
#![allow(dead_code, reason = "each test uses a part of it")]

pub mod flow_decisions;
pub mod pie;

use aqmlab_params::{Origin, Settings, Value};
use aqmlab_qdisc::{
    Arrived, Cause, Classed, Discipline, Dscp, Ecn, LawSamples, LinkContext, Observer, Packet, PacketKind,
    Qdisc, Reason, Registry, Side, Stamped, TcpHeader, registry,
};
use aqmlab_random::Stream;
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Instant, Packets};

/// The default size of a packet.
pub const SIZE: Bytes = Bytes::new(1000);

/// A numbered packet. Outside a port, it counts as having arrived at time zero.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pkt {
    pub number: u64,
    pub size: u64,
    pub class: usize,
    pub kind: PacketKind,
    pub flow: u64,
    pub ecn: Ecn,
    pub dscp: u8,
    pub ports: Option<[u16; 2]>,
    pub tcp: Option<TcpHeader>,
}

impl Pkt {
    /// Creates a packet of [`SIZE`], not ECN-capable, of class 0 and flow 0.
    pub const fn new(number: u64) -> Self {
        Pkt {
            number,
            size: SIZE.get(),
            class: 0,
            kind: PacketKind::Other,
            flow: 0,
            ecn: Ecn::NotEct,
            dscp: 0,
            ports: None,
            tcp: None,
        }
    }
}

impl Packet for Pkt {
    fn wire_len(&self) -> Bytes {
        Bytes::new(self.size)
    }
    fn flow_hash(&self, salt: u64) -> u64 {
        (self.flow + 1).wrapping_mul(salt | 1)
    }
    /// Each value of a port stands for a host of its own.
    fn host_hash(&self, side: Side, salt: u64) -> u64 {
        let host = self.ports.map_or(0, |ports| ports[usize::from(side == Side::Destination)]);
        (u64::from(host) + 1).wrapping_mul(salt | 1)
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn mark_ce(&mut self) {
        assert!(self.ecn.is_capable(), "a packet that is not ECN-capable is marked");
        self.ecn = Ecn::Ce;
    }
    fn dscp(&self) -> Dscp {
        Dscp(self.dscp)
    }
    fn set_dscp(&mut self, dscp: Dscp) {
        self.dscp = dscp.0;
    }
    fn ports(&self) -> Option<[u16; 2]> {
        self.ports
    }
}

impl Classed for Pkt {
    fn class(&self) -> usize {
        self.class
    }
    fn kind(&self) -> PacketKind {
        self.kind
    }
}

impl Arrived for Pkt {
    fn arrived(&self) -> Instant {
        Instant::ZERO
    }
}

/// Gives access to the packet itself, whether it is stamped or not.
pub trait Held {
    fn held(&self) -> Pkt;
}

impl Held for Pkt {
    fn held(&self) -> Pkt {
        *self
    }
}

impl Held for Stamped<Pkt> {
    fn held(&self) -> Pkt {
        self.packet
    }
}

/// The drops and marks, in order.
#[derive(Default, PartialEq, Debug)]
pub struct Fates {
    pub dropped: Vec<(Instant, Pkt, Cause)>,
    pub marked: Vec<(Instant, Pkt, Cause)>,
}

impl Fates {
    /// Returns the numbers of the dropped packets, with the reasons.
    pub fn lost(&self) -> Vec<(u64, Reason)> {
        self.dropped.iter().map(|(_, pkt, at)| (pkt.number, at.reason)).collect()
    }
}

impl<P: Held> Observer<P> for Fates {
    fn dropped(&mut self, now: Instant, pkt: P, at: Cause) {
        self.dropped.push((now, pkt.held(), at));
    }
    fn marked(&mut self, now: Instant, pkt: &P, at: Cause) {
        self.marked.push((now, pkt.held(), at));
    }
    fn tcp_header(&self, pkt: &P) -> Option<TcpHeader> {
        pkt.held().tcp
    }
}

/// Returns these values as settings, as if a scenario had given them.
pub fn settings(values: &[(&'static str, Value)]) -> Settings {
    let mut settings = Settings::default();
    for (name, value) in values {
        settings.set(name, value.clone(), Origin::Given);
    }
    settings
}

/// This many packets.
pub fn packets(n: u64) -> Value {
    Value::Size(Size::Packets(Packets::new(n)))
}

/// This many bytes.
pub fn bytes(n: u64) -> Value {
    Value::Size(Size::Bytes(Bytes::new(n)))
}

/// Returns the law's value `name` at `now`.
pub fn law_value<P: Packet>(queue: &dyn Qdisc<P>, now: Instant, name: &str) -> f64 {
    let mut samples = LawSamples::new();
    queue.observe(now, &mut samples);
    samples.iter().find(|(known, _)| *known == name).unwrap_or_else(|| panic!("no {name} in {samples:?}")).1
}

/// Builds the built-in discipline called `name` with the settings `given`.
pub fn build<P: Arrived + 'static>(
    name: &str,
    given: &Settings,
    link: &LinkContext,
    draws: Stream,
) -> Discipline<P> {
    let resolved = registry::info(name).expect(name).resolve(given, link);
    let resolved = resolved.unwrap_or_else(|e| panic!("{name}: {e}"));
    Registry::builtin().build(&resolved, draws).unwrap_or_else(|e| panic!("{name}: {e}"))
}
