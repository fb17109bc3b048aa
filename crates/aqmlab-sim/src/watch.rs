//! Recording of individual changes and packets, for the flows that a scenario selects, and capture of ports.
//!
//! A run that records none of this has no watch. Recorded ports do not look ahead, and have an observer of
//! their own ([`WatchedPort`]), so packets at a port that looks ahead need no check for a watch. Packets of
//! watched classes reach their hosts in a step of their own ([`crate::routes::Reception::Watched`]), and packets
//! on a recorded link reach its end in a step of their own ([`crate::routes::Next::FarEnd`]).
//!
//! If packets are recorded or captured, each has a number: among the packets that its host has sent for its
//! flow, from the flow's start on. Datagrams carry it themselves; a segment's number is kept with its options
//! ([`crate::options`]), so that it costs nothing in other runs.

use aqmlab_network::End;
use aqmlab_qdisc::{Cause, Observer, Reason, Stamped, TcpHeader};
use aqmlab_recording::capture::PortCapture;
use aqmlab_recording::{RecordingError, Table};
use aqmlab_scenario::{FlowChoice, LinkPlan, PacketEvent, Plan};
use aqmlab_transport::Profile;
use aqmlab_units::Instant;

use crate::capture::CaptureLog;
use crate::flow::{Body, Flow};
use crate::flow_trace::FlowTrace;
use crate::in_transit::InTransit;
use crate::options::OptionTable;
use crate::packet::{FlowId, PortPacket, SimPacket, Toward};
use crate::packet_log::{Filter, PacketLog};

/// What is watched in a run.
pub struct Watch {
    packets: Option<Packets>,
    trace: Option<Traced>,
    capture: Option<CaptureLog>,
    /// Events at the ports that a host looks at, since it last took them.
    seen: Vec<Seen>,
    /// What is recorded at each port, by the number of its link.
    ports: Vec<Port>,
    /// Which classes number their packets.
    numbered: Vec<bool>,
    /// The number of segments that each living flow of these classes has sent, by slot and direction.
    sent: Vec<[u64; 2]>,
    limit: u64,
}

/// What is recorded at a port.
struct Port {
    name: String,
    /// Whether its packets are recorded one by one.
    logged: bool,
    /// The port's number in the capture, if it is captured.
    captured: Option<usize>,
    /// Whether a host looks at it while the run is under way.
    looked_at: bool,
}

/// An event of a packet at a port that a host looks at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seen {
    /// When it happened.
    pub at: Instant,
    /// The port, by the number of its link.
    pub link: u32,
    /// What happened: it was enqueued or marked, it was dropped, or it left for the link.
    pub event: PacketEvent,
    /// Why, if it was marked or dropped.
    pub reason: Option<Reason>,
    /// When the packet arrived at the port.
    pub arrived: Instant,
    /// The packet.
    pub packet: SimPacket,
}

struct Packets {
    log: PacketLog,
    /// Whether packets are also recorded at hosts.
    at_hosts: bool,
}

struct Traced {
    choices: Vec<FlowChoice>,
    trace: FlowTrace,
}

/// A table that has more rows than the limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TableFull {
    /// The name of the table.
    pub table: &'static str,
    /// For `packets`, the instant of the first row beyond the limit; for `trace`, the instant at
    /// which the number of rows was checked.
    pub at: Instant,
}

impl Watch {
    /// Returns the watch that `plan`, `capture` and a host that `looks` at these ports require, or `None` if nothing
    /// is watched.
    pub fn of(plan: &Plan, capture: Option<PortCapture>, looks: Vec<usize>) -> Option<Self> {
        let record = &plan.record;
        let limit = record.limit.unwrap_or(u64::MAX);
        let packets = record.packets.as_ref().map(|choice| {
            let filter = Filter {
                events: choice.events.clone(),
                from: Instant::ZERO + choice.from,
                until: choice.until.map_or(Instant::FAR_FUTURE, |until| Instant::ZERO + until),
                flows: choice.flows.as_ref().map(|flows| numbers(plan, flows)),
            };
            Packets { log: PacketLog::new(filter, limit), at_hosts: choice.flows.is_some() }
        });
        let traced = || Traced { choices: record.trace.clone(), trace: FlowTrace::new() };
        let trace = (!record.trace.is_empty()).then(traced);
        if packets.is_none() && trace.is_none() && capture.is_none() && looks.is_empty() {
            return None;
        }
        let logged = record.packets.as_ref().map_or(&[][..], |choice| &**choice.links);
        let captured = capture.as_ref().map_or(&[][..], |capture| &capture.links);
        let port = |(number, link): (usize, &LinkPlan)| Port {
            name: link.name.clone(),
            logged: logged.contains(&number),
            captured: captured.iter().position(|&captured| captured == number),
            looked_at: looks.contains(&number),
        };
        let ports = plan.links.iter().enumerate().map(port).collect();
        let flows = record.packets.as_ref().map(|choice| choice.flows.as_deref());
        let numbered = (0..plan.classes.len()).map(|class| {
            let of_class = |flows: &[FlowChoice]| flows.iter().any(|choice| *choice.class == class);
            capture.is_some() || flows.is_some_and(|flows| flows.is_none_or(of_class))
        });
        let numbered = numbered.collect();
        let capture = capture.map(|capture| CaptureLog::new(plan, capture.file));
        Some(Watch { packets, trace, capture, seen: Vec::new(), ports, numbered, sent: Vec::new(), limit })
    }

    /// Returns whether the hosts of a class take part: their packets are numbered, or events there are
    /// recorded.
    pub fn attends(&self, class: usize) -> bool {
        let traced = |traced: &Traced| traced.choices.iter().any(|choice| *choice.class == class);
        self.numbered[class] || self.trace.as_ref().is_some_and(traced)
    }

    /// Returns whether the receptions of packets at the end of a link are recorded.
    pub fn records_receptions(&self, link: u32) -> bool {
        let chosen = |packets: &Packets| packets.log.filter().events.contains(&PacketEvent::Receive);
        self.ports[link as usize].logged && self.packets.as_ref().is_some_and(chosen)
    }

    /// Returns the number of the next segment that a flow sends in this direction, and counts the
    /// segment; `None` if the class does not number its packets.
    pub fn number(&mut self, flow: &FlowId, toward: Toward) -> Option<u64> {
        if !self.numbered[usize::from(flow.class)] {
            return None;
        }
        let slot = flow.slot as usize;
        if slot >= self.sent.len() {
            self.sent.resize(slot + 1, [0; 2]);
        }
        let sent = &mut self.sent[slot][toward as usize];
        *sent += 1;
        Some(*sent - 1)
    }

    /// Returns the events at the ports that a host looks at since the last call.
    pub fn take_seen(&mut self) -> Vec<Seen> {
        std::mem::take(&mut self.seen)
    }

    /// Returns whether anything is recorded at the port of a link.
    #[inline]
    pub fn watches(&self, link: u32) -> bool {
        let port = &self.ports[link as usize];
        port.logged || port.captured.is_some() || port.looked_at
    }

    /// Returns the observer of a recorded port; this observer also passes everything on to `in_transit`.
    pub fn at_port<'a>(&'a mut self, link: u32, in_transit: &'a mut InTransit) -> WatchedPort<'a> {
        let port = &self.ports[link as usize];
        let log = self.packets.as_mut().filter(|_| port.logged).map(|packets| &mut packets.log);
        let capture = self.capture.as_mut().zip(port.captured);
        let seen = Some(&mut self.seen).filter(|_| port.looked_at);
        WatchedPort { link, name: &port.name, log, capture, seen, in_transit }
    }

    /// Returns whether writing the capture's file has failed.
    pub fn capture_has_failed(&self) -> bool {
        self.capture.as_ref().is_some_and(CaptureLog::has_failed)
    }

    /// Completes the capture, if there is one.
    ///
    /// # Errors
    /// If its file could not be written.
    pub fn finish_capture(&mut self, end: Instant) -> Result<(), RecordingError> {
        self.capture.as_mut().map_or(Ok(()), |capture| capture.finish(end))
    }

    /// Records that a host has sent a packet, which has this number; `lost` tells whether the host's own
    /// link lost it immediately.
    pub fn sent(&mut self, now: Instant, packet: &SimPacket, number: Option<u64>, lost: bool) {
        let host = match packet.toward() {
            Toward::Receiver => "sender",
            Toward::Sender => "receiver",
        };
        self.at_host(now, PacketEvent::Send, host, packet, number);
        if lost {
            self.at_host(now, PacketEvent::Lose, host, packet, number);
        }
    }

    /// Records that a packet has been lost outside the queues.
    pub fn lost(&mut self, now: Instant, packet: &SimPacket, options: &OptionTable) {
        let host = match packet.toward() {
            Toward::Receiver => "receiver",
            Toward::Sender => "sender",
        };
        self.at_host(now, PacketEvent::Lose, host, packet, options.number_of(packet));
    }

    /// Records that a packet has reached the router at the end of a link.
    pub fn received(&mut self, now: Instant, link: u32, packet: &SimPacket, options: &OptionTable) {
        if let Some(packets) = &mut self.packets {
            let (name, number) = (&self.ports[link as usize].name, options.number_of(packet));
            packets.log.note(now, PacketEvent::Receive, name, None, (packet, number));
        }
    }

    /// Records that a packet has reached its host.
    pub fn arrived(&mut self, now: Instant, packet: &SimPacket, options: &OptionTable) {
        let host = match packet.toward() {
            Toward::Receiver => "receiver",
            Toward::Sender => "sender",
        };
        self.at_host(now, PacketEvent::Arrive, host, packet, options.number_of(packet));
    }

    fn at_host(
        &mut self,
        now: Instant,
        event: PacketEvent,
        host: &str,
        packet: &SimPacket,
        number: Option<u64>,
    ) {
        if let Some(packets) = &mut self.packets
            && packets.at_hosts
        {
            packets.log.note(now, event, host, None, (packet, number));
        }
    }

    /// Records that an endpoint of a flow has been processed.
    pub fn served(&mut self, now: Instant, flow: &Flow, end: End, profile: &Profile) {
        if end == End::Client
            && let Some(Traced { choices, trace }) = &mut self.trace
            && let Body::Tcp(connection) = &flow.body
            && choices.iter().any(|c| c.holds(usize::from(flow.id.class), u64::from(flow.index)))
        {
            trace.look(now, flow.id.number, &connection.sender, profile);
        }
    }

    /// Records that a flow is over and that its last packet has left.
    pub fn flow_ended(&mut self, flow: &Flow) {
        if let Some(sent) = self.sent.get_mut(flow.id.slot as usize) {
            *sent = [0; 2];
        }
        if let Some(Traced { trace, .. }) = &mut self.trace {
            trace.forget(flow.id.number);
        }
    }

    /// Returns the table that has more rows than the limit, if there is one.
    pub fn full(&self, now: Instant) -> Option<TableFull> {
        let packets = self.packets.as_ref().and_then(|p| p.log.full_at());
        if let Some(at) = packets {
            return Some(TableFull { table: "packets", at });
        }
        let rows = self.trace.as_ref().map_or(0, |t| t.trace.table().rows() as u64);
        (rows > self.limit).then_some(TableFull { table: "trace", at: now })
    }

    /// Estimates the memory that the recorded rows and the counts of segments occupy, in bytes.
    pub fn memory_bytes(&self) -> usize {
        let cells = |table: &Table| table.rows() * table.columns.len();
        let packets = self.packets.as_ref().map_or(0, |p| cells(p.log.table()));
        let trace = self.trace.as_ref().map_or(0, |t| cells(t.trace.table()));
        (packets + trace) * size_of::<u64>() + self.sent.capacity() * size_of::<[u64; 2]>()
    }

    /// Iterates over the requested tables.
    pub fn finish(self) -> impl Iterator<Item = Table> {
        let trace = self.trace.map(|t| t.trace.into_table());
        let packets = self.packets.map(|p| p.log.into_table());
        trace.into_iter().chain(packets)
    }
}

/// The observer of a recorded port. It records each event and only then passes the event on to the
/// network, which removes the options of a dropped packet.
pub struct WatchedPort<'a> {
    link: u32,
    name: &'a str,
    log: Option<&'a mut PacketLog>,
    /// The capture, and the port's number in it.
    capture: Option<(&'a mut CaptureLog, usize)>,
    /// What a host has yet to take, if it looks at this port.
    seen: Option<&'a mut Vec<Seen>>,
    in_transit: &'a mut InTransit,
}

impl WatchedPort<'_> {
    fn note(&mut self, now: Instant, event: PacketEvent, reason: Option<Reason>, pkt: &PortPacket) {
        if let Some(log) = &mut self.log {
            let number = self.in_transit.options.number_of(&pkt.packet);
            log.note(now, event, self.name, reason, (&pkt.packet, number));
        }
        if let Some(seen) = &mut self.seen {
            let Stamped { packet, arrived } = *pkt;
            seen.push(Seen { at: now, link: self.link, event, reason, arrived, packet });
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

    fn tcp_header(&self, pkt: &PortPacket) -> Option<TcpHeader> {
        self.in_transit.tcp_header(pkt)
    }
}

/// Returns the numbers that the selected flows have in the run, in ascending order.
fn numbers(plan: &Plan, choices: &[FlowChoice]) -> Vec<u32> {
    let mut all = Vec::new();
    for choice in choices {
        let first: u64 = plan.classes[..*choice.class].iter().map(|c| c.count).sum();
        let indices = match &choice.indices {
            Some(indices) => indices.clone(),
            None => (0..plan.classes[*choice.class].count).collect(),
        };
        all.extend(indices.into_iter().map(|i| (first + i) as u32));
    }
    all.sort_unstable();
    all.dedup();
    all
}
