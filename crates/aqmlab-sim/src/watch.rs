//! Flows and packets that a scenario asks to be recorded one change and one packet at a time.
//!
//! A run that asks for none has no watch, and nothing on the way of a packet asks whether it has: links to be recorded
//! have a tap on their discipline ([`crate::packet_log::Tap`]), and the packets of classes to be watched reach their
//! hosts by a step of its own ([`crate::routes::Next::WatchedHost`]).

use std::sync::{Arc, Mutex};

use aqmlab_network::End;
use aqmlab_qdisc::Discipline;
use aqmlab_recording::capture::PortCapture;
use aqmlab_recording::{RecordingError, Table};
use aqmlab_scenario::{FlowChoice, PacketEvent, Plan};
use aqmlab_transport::Profile;
use aqmlab_units::Instant;

use crate::capture::{CaptureTap, SharedCapture};
use crate::flow::{Body, Flow};
use crate::flow_trace::FlowTrace;
use crate::options::ShownOptions;
use crate::packet::{PortPacket, SimPacket, Toward};
use crate::packet_log::{Filter, PacketLog, SharedLog, Tap, note};

/// What is watched in a run.
pub struct Watch {
    packets: Option<Packets>,
    trace: Option<Traced>,
    capture: Option<Captured>,
    limit: u64,
}

struct Captured {
    log: SharedCapture,
    /// Indices of the links, in the order of the capture.
    links: Vec<usize>,
    options: ShownOptions,
}

struct Packets {
    log: SharedLog,
    /// Indices of the links with a tap, ascending.
    links: Vec<usize>,
    /// Are hosts places to record at?
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
            let log = Arc::new(Mutex::new(PacketLog::new(filter, record.limit)));
            Packets { log, links: choice.links.clone(), at_hosts: choice.flows.is_some() }
        });
        let traced = || Traced { choices: record.trace.clone(), trace: FlowTrace::new() };
        let trace = (!record.trace.is_empty()).then(traced);
        let capture = capture.map(|PortCapture { links, file }| {
            let options = ShownOptions::default();
            Captured { log: SharedCapture::new(plan, file, options.clone()), links, options }
        });
        let wanted = packets.is_some() || trace.is_some() || capture.is_some();
        wanted.then_some(Watch { packets, trace, capture, limit: record.limit })
    }

    /// The discipline of a link, with a tap if the link is recorded and one if it is captured.
    pub fn tap(&self, link: usize, name: &str, inner: Discipline<PortPacket>) -> Discipline<PortPacket> {
        let inner = self.capture_tap(link, inner);
        match &self.packets {
            Some(packets) if packets.links.binary_search(&link).is_ok() => {
                Discipline::Custom(Box::new(Tap::new(inner, packets.log.clone(), name)))
            }
            _ => inner,
        }
    }

    fn capture_tap(&self, link: usize, inner: Discipline<PortPacket>) -> Discipline<PortPacket> {
        let Some(captured) = &self.capture else { return inner };
        match captured.links.iter().position(|&l| l == link) {
            Some(port) => {
                Discipline::Custom(Box::new(CaptureTap::new(inner, captured.log.clone(), port as u32)))
            }
            None => inner,
        }
    }

    /// Where a capture sees the options of packets, if there is one.
    pub fn shown_options(&self) -> Option<ShownOptions> {
        self.capture.as_ref().map(|captured| captured.options.clone())
    }

    /// Has the capture's file failed to take what was written?
    pub fn capture_has_failed(&self) -> bool {
        self.capture.as_ref().is_some_and(|captured| captured.log.has_failed())
    }

    /// Ends the capture, if there is one.
    ///
    /// # Errors
    /// If its file could not be written.
    pub fn finish_capture(&self, end: Instant) -> Result<(), RecordingError> {
        self.capture.as_ref().map_or(Ok(()), |captured| captured.log.finish(end))
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

    fn at_host(&self, now: Instant, event: PacketEvent, host: &str, packet: &SimPacket) {
        if let Some(packets) = &self.packets
            && packets.at_hosts
        {
            note(&packets.log, now, event, host, None, packet);
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

    /// Was there a row too many?
    pub fn full(&self, now: Instant) -> Option<TableFull> {
        let packets = self.packets.as_ref().and_then(|p| locked(&p.log).full_at());
        if let Some(at) = packets {
            return Some(TableFull { table: "packets", at });
        }
        let rows = self.trace.as_ref().map_or(0, |t| t.trace.table().rows() as u64);
        (rows > self.limit).then_some(TableFull { table: "trace", at: now })
    }

    /// Bytes that the rows take, estimated from their number.
    pub fn memory_bytes(&self) -> usize {
        let cells = |table: &Table| table.rows() * table.columns.len();
        let packets = self.packets.as_ref().map_or(0, |p| cells(locked(&p.log).table()));
        let trace = self.trace.as_ref().map_or(0, |t| cells(t.trace.table()));
        (packets + trace) * size_of::<u64>()
    }

    /// The tables that were asked for.
    pub fn finish(self) -> impl Iterator<Item = Table> {
        let trace = self.trace.map(|t| t.trace.into_table());
        let packets = self.packets.map(|p| locked(&p.log).table().clone());
        trace.into_iter().chain(packets)
    }
}

fn locked(log: &SharedLog) -> std::sync::MutexGuard<'_, PacketLog> {
    log.lock().expect("nobody panics while writing")
}

/// Do the hosts of a class see anything that is recorded?
pub fn is_watched(plan: &Plan, class: usize) -> bool {
    let packets = plan.record.packets.iter().flat_map(|p| p.flows.iter().flatten());
    plan.record.trace.iter().chain(packets).any(|choice| choice.class == class)
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
