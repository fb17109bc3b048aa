//! Flows and packets that a scenario asks to be recorded one change and one packet at a time, and captured ports.
//!
//! A run that asks for none has no watch, and nothing on the way of a packet through ports that look ahead asks whether
//! it has: ports to be recorded do not look ahead, and have another observer ([`WatchedPort`]); the packets of classes to
//! be watched reach their hosts by a step of its own ([`crate::routes::Next::WatchedHost`]).

use aqmlab_network::End;
use aqmlab_qdisc::{Cause, Observer, Reason};
use aqmlab_recording::capture::PortCapture;
use aqmlab_recording::{RecordingError, Table};
use aqmlab_scenario::{FlowChoice, LinkPlan, PacketEvent, Plan};
use aqmlab_transport::Profile;
use aqmlab_units::Instant;

use crate::capture::CaptureLog;
use crate::flow::{Body, Flow};
use crate::flow_trace::FlowTrace;
use crate::in_transit::InTransit;
use crate::packet::{PortPacket, SimPacket, Toward};
use crate::packet_log::{Filter, PacketLog};

/// What is watched in a run.
pub struct Watch {
    packets: Option<Packets>,
    trace: Option<Traced>,
    capture: Option<CaptureLog>,
    /// By the number of its link, what is written down at each port.
    ports: Vec<Port>,
    limit: u64,
}

/// What is written down at a port.
struct Port {
    name: String,
    /// Its packets are recorded one by one.
    logged: bool,
    /// Its number in the capture, if it is captured.
    captured: Option<usize>,
}

struct Packets {
    log: PacketLog,
    /// Whether hosts are places to record at.
    at_hosts: bool,
}

struct Traced {
    choices: Vec<FlowChoice>,
    trace: FlowTrace,
}

/// There was a row too many.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TableFull {
    /// Of which table.
    pub table: &'static str,
    /// When.
    pub at: Instant,
}

impl Watch {
    /// What `plan` asks for, and the capture; `None` if that is nothing.
    pub fn of(plan: &Plan, capture: Option<PortCapture>) -> Option<Self> {
        let record = &plan.record;
        let packets = record.packets.as_ref().map(|choice| {
            let filter = Filter {
                events: choice.events.clone(),
                from: Instant::ZERO + choice.from,
                until: choice.until.map_or(Instant::FAR_FUTURE, |until| Instant::ZERO + until),
                flows: choice.flows.as_ref().map(|flows| numbers(plan, flows)),
            };
            Packets { log: PacketLog::new(filter, record.limit), at_hosts: choice.flows.is_some() }
        });
        let traced = || Traced { choices: record.trace.clone(), trace: FlowTrace::new() };
        let trace = (!record.trace.is_empty()).then(traced);
        if packets.is_none() && trace.is_none() && capture.is_none() {
            return None;
        }
        let logged = record.packets.as_ref().map_or(&[][..], |choice| &choice.links);
        let captured = capture.as_ref().map_or(&[][..], |capture| &capture.links);
        let port = |(number, link): (usize, &LinkPlan)| Port {
            name: link.name.clone(),
            logged: logged.contains(&number),
            captured: captured.iter().position(|&captured| captured == number),
        };
        let ports = plan.links.iter().enumerate().map(port).collect();
        let capture = capture.map(|capture| CaptureLog::new(plan, capture.file));
        Some(Watch { packets, trace, capture, ports, limit: record.limit })
    }

    /// Whether anything is written down at the port of a link.
    #[inline]
    pub fn watches(&self, link: u32) -> bool {
        let port = &self.ports[link as usize];
        port.logged || port.captured.is_some()
    }

    /// The observer of a port at which something is written down, before `in_transit` hears of it.
    pub fn at_port<'a>(&'a mut self, link: u32, in_transit: &'a mut InTransit) -> WatchedPort<'a> {
        let port = &self.ports[link as usize];
        let log = self.packets.as_mut().filter(|_| port.logged).map(|packets| &mut packets.log);
        let capture = self.capture.as_mut().zip(port.captured);
        WatchedPort { name: &port.name, log, capture, in_transit }
    }

    /// Whether the capture's file has failed to take what was written.
    pub fn capture_has_failed(&self) -> bool {
        self.capture.as_ref().is_some_and(CaptureLog::has_failed)
    }

    /// Ends the capture, if there is one.
    ///
    /// # Errors
    /// If its file could not be written.
    pub fn finish_capture(&mut self, end: Instant) -> Result<(), RecordingError> {
        self.capture.as_mut().map_or(Ok(()), |capture| capture.finish(end))
    }

    /// A host has sent a packet; `lost` if its own link lost it at once.
    pub fn sent(&mut self, now: Instant, packet: &SimPacket, lost: bool) {
        let host = match packet.toward() {
            Toward::Receiver => "sender",
            Toward::Sender => "receiver",
        };
        self.at_host(now, PacketEvent::Send, host, packet);
        if lost {
            self.at_host(now, PacketEvent::Lose, host, packet);
        }
    }

    /// A packet has been lost on the way from the network to its host.
    pub fn lost(&mut self, now: Instant, packet: &SimPacket) {
        let host = match packet.toward() {
            Toward::Receiver => "receiver",
            Toward::Sender => "sender",
        };
        self.at_host(now, PacketEvent::Lose, host, packet);
    }

    /// A packet has reached its host.
    pub fn arrived(&mut self, now: Instant, packet: &SimPacket) {
        let host = match packet.toward() {
            Toward::Receiver => "receiver",
            Toward::Sender => "sender",
        };
        self.at_host(now, PacketEvent::Arrive, host, packet);
    }

    fn at_host(&mut self, now: Instant, event: PacketEvent, host: &str, packet: &SimPacket) {
        if let Some(packets) = &mut self.packets
            && packets.at_hosts
        {
            packets.log.note(now, event, host, None, packet);
        }
    }

    /// An endpoint of a flow has been served.
    pub fn served(&mut self, now: Instant, flow: &Flow, end: End, profile: &Profile) {
        if end == End::Client
            && let Some(Traced { choices, trace }) = &mut self.trace
            && let Body::Tcp(connection) = &flow.body
            && choices.iter().any(|c| c.holds(usize::from(flow.id.class), u64::from(flow.index)))
        {
            trace.look(now, flow.id.number, &connection.sender, profile);
        }
    }

    /// A flow is over, and its last packet has gone.
    pub fn flow_ended(&mut self, flow: &Flow) {
        if let Some(Traced { trace, .. }) = &mut self.trace {
            trace.forget(flow.id.number);
        }
    }

    /// Whether there was a row too many.
    pub fn full(&self, now: Instant) -> Option<TableFull> {
        let packets = self.packets.as_ref().and_then(|p| p.log.full_at());
        if let Some(at) = packets {
            return Some(TableFull { table: "packets", at });
        }
        let rows = self.trace.as_ref().map_or(0, |t| t.trace.table().rows() as u64);
        (rows > self.limit).then_some(TableFull { table: "trace", at: now })
    }

    /// Bytes that the rows take, estimated from their number.
    pub fn memory_bytes(&self) -> usize {
        let cells = |table: &Table| table.rows() * table.columns.len();
        let packets = self.packets.as_ref().map_or(0, |p| cells(p.log.table()));
        let trace = self.trace.as_ref().map_or(0, |t| cells(t.trace.table()));
        (packets + trace) * size_of::<u64>()
    }

    /// The tables that were asked for.
    pub fn finish(self) -> impl Iterator<Item = Table> {
        let trace = self.trace.map(|t| t.trace.into_table());
        let packets = self.packets.map(|p| p.log.into_table());
        trace.into_iter().chain(packets)
    }
}

/// The observer of a port at which something is written down: first it writes, then the network hears of it, which
/// forgets a dropped packet's options.
pub struct WatchedPort<'a> {
    name: &'a str,
    log: Option<&'a mut PacketLog>,
    /// With the number of the port in it.
    capture: Option<(&'a mut CaptureLog, usize)>,
    in_transit: &'a mut InTransit,
}

impl WatchedPort<'_> {
    fn note(&mut self, now: Instant, event: PacketEvent, reason: Option<Reason>, pkt: &PortPacket) {
        if let Some(log) = &mut self.log {
            log.note(now, event, self.name, reason, &pkt.packet);
        }
    }

    fn left(&mut self, now: Instant, pkt: &PortPacket, dropped: Option<Reason>) {
        if let Some((capture, port)) = &mut self.capture {
            capture.left(now, *port, pkt, dropped, &self.in_transit.options);
        }
    }
}

impl Observer<PortPacket> for WatchedPort<'_> {
    fn enqueued(&mut self, now: Instant, pkt: &PortPacket) {
        self.note(now, PacketEvent::Enqueue, None, pkt);
    }

    fn dequeued(&mut self, now: Instant, pkt: &PortPacket) {
        self.note(now, PacketEvent::Dequeue, None, pkt);
        self.left(now, pkt, None);
    }

    fn dropped(&mut self, now: Instant, pkt: PortPacket, at: Cause) {
        self.note(now, PacketEvent::Drop, Some(at.reason), &pkt);
        self.left(now, &pkt, Some(at.reason));
        self.in_transit.dropped(now, pkt, at);
    }

    fn marked(&mut self, now: Instant, pkt: &PortPacket, at: Cause) {
        self.note(now, PacketEvent::Mark, Some(at.reason), pkt);
        if let Some((capture, port)) = &mut self.capture {
            capture.marked(*port, pkt, at.reason);
        }
        self.in_transit.marked(now, pkt, at);
    }
}

/// The numbers in the run of chosen flows, ascending.
fn numbers(plan: &Plan, choices: &[FlowChoice]) -> Vec<u32> {
    let mut all = Vec::new();
    for choice in choices {
        let first: u64 = plan.classes[..choice.class].iter().map(|c| c.count).sum();
        let indices = match &choice.indices {
            Some(indices) => indices.clone(),
            None => (0..plan.classes[choice.class].count).collect(),
        };
        all.extend(indices.into_iter().map(|i| (first + i) as u32));
    }
    all.sort_unstable();
    all.dedup();
    all
}
