//! A tap on a discipline: it records all calls to the discipline, and the discipline's decisions.
#![allow(dead_code)]

use std::sync::{Arc, Mutex};

use aqmlab_qdisc::{
    Backlog, Cause, Discipline, Effective, Entry, Inside, LawSamples, Observer, Qdisc, Reason, Registry,
    TcpHeader, registry,
};
use aqmlab_random::Stream;
use aqmlab_sim::{PortPacket, SimPacket};
use aqmlab_units::{Instant, Rate};

/// A packet that arrives at a discipline, or what the discipline does with a packet.
#[derive(Clone, PartialEq, Debug)]
pub enum Act {
    /// a packet arrived
    Enqueue(Instant, SimPacket),
    /// a packet was lost
    Dropped(Instant, SimPacket, Reason),
    /// a packet was marked
    Marked(Instant, SimPacket, Reason),
    /// a packet was passed to the link
    Left(Instant, SimPacket),
}

/// The list of recorded acts, which a tap and its reader share.
pub type Log = Arc<Mutex<Vec<Act>>>;

/// A discipline that records all calls to the discipline inside it.
struct Tap {
    inner: Discipline<PortPacket>,
    log: Log,
}

struct TapObserver<'a> {
    log: &'a Log,
    host: &'a mut dyn Observer<PortPacket>,
}

impl Observer<PortPacket> for TapObserver<'_> {
    fn dropped(&mut self, now: Instant, pkt: PortPacket, at: Cause) {
        self.log.lock().unwrap().push(Act::Dropped(now, pkt.packet, at.reason));
        self.host.dropped(now, pkt, at);
    }
    fn marked(&mut self, now: Instant, pkt: &PortPacket, at: Cause) {
        self.log.lock().unwrap().push(Act::Marked(now, pkt.packet, at.reason));
        self.host.marked(now, pkt, at);
    }
    fn entered(&mut self, now: Instant, pkt: &PortPacket, inner: u16) {
        self.host.entered(now, pkt, inner);
    }
    fn left(&mut self, now: Instant, pkt: &PortPacket, inner: u16) {
        self.host.left(now, pkt, inner);
    }
    fn tcp_header(&self, pkt: &PortPacket) -> Option<TcpHeader> {
        self.host.tcp_header(pkt)
    }
}

impl Qdisc<PortPacket> for Tap {
    fn enqueue(&mut self, now: Instant, pkt: PortPacket, host: &mut dyn Observer<PortPacket>) {
        self.log.lock().unwrap().push(Act::Enqueue(now, pkt.packet));
        self.inner.enqueue(now, pkt, &mut TapObserver { log: &self.log, host });
    }
    fn dequeue(&mut self, now: Instant, host: &mut dyn Observer<PortPacket>) -> Option<PortPacket> {
        let pkt = self.inner.dequeue(now, &mut TapObserver { log: &self.log, host })?;
        self.log.lock().unwrap().push(Act::Left(now, pkt.packet));
        Some(pkt)
    }
    fn deadline(&self) -> Option<Instant> {
        self.inner.deadline()
    }
    fn rate_changed(&mut self, now: Instant, rate: Rate) {
        self.inner.rate_changed(now, rate);
    }
    fn backlog(&self) -> Backlog {
        self.inner.backlog()
    }
    fn each_inner(&self, visit: &mut dyn FnMut(&str, Inside<'_, PortPacket>)) {
        self.inner.each_inner(visit);
    }
    fn observe(&self, now: Instant, out: &mut LawSamples) {
        self.inner.observe(now, out);
    }
}

/// Turns `queue` into a discipline called "tapped", which is the same discipline with a tap on it.
/// Returns a registry that can build this discipline.
pub fn tapped(queue: &mut Effective, log: &Log) -> Registry<PortPacket> {
    let (mut registry, kind, log) = (Registry::builtin(), queue.kind(), log.clone());
    let info = registry::Info { name: "tapped", ..*registry::info(kind).unwrap() };
    *queue = info.resolve(queue, queue.link()).unwrap();
    let build = move |effective: &Effective, draws: Stream, registry: &Registry<PortPacket>| {
        let inner = (registry.find(kind).unwrap().build)(effective, draws, registry)?;
        Ok(Discipline::Custom(Box::new(Tap { inner, log: log.clone() })))
    };
    registry.register(Entry { info, build: Box::new(build) }).unwrap();
    registry
}
