//! Captures of ports: what leaves a queue is written down as packets with headers, while the run goes on.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

use aqmlab_qdisc::{Backlog, Cause, Discipline, Ecn, LawSamples, Observer, Packet, Qdisc, Reason};
use aqmlab_recording::RecordingError;
use aqmlab_recording::capture::{Capture, CapturedPort, Frame, PacketAtPort, Reasons};
use aqmlab_scenario::Plan;
use aqmlab_units::{Instant, Rate};

use crate::headers;
use crate::options::ShownOptions;
use crate::packet::PortPacket;

/// The links with these indices as a capture's file needs them.
pub fn captured_ports(plan: &Plan, links: &[usize]) -> Vec<CapturedPort> {
    let port = |&link: &usize| {
        let link = &plan.links[link];
        CapturedPort { name: link.name.clone(), rate: link.rate }
    };
    links.iter().map(port).collect()
}

/// A capture under way.
pub struct CaptureLog {
    /// Gone when the run is over.
    file: Option<Capture>,
    /// The number in the run of each class's first flow.
    first_numbers: Vec<u32>,
    options: ShownOptions,
    /// The bytes of the packet that is being written.
    image: Vec<u8>,
}

/// Shared by the taps on all captured ports of one run, in one thread.
#[derive(Clone)]
pub struct SharedCapture(Arc<Mutex<CaptureLog>>);

impl SharedCapture {
    /// Nothing is captured yet.
    pub fn new(plan: &Plan, file: Capture, options: ShownOptions) -> Self {
        let mut first_numbers = Vec::with_capacity(plan.classes.len());
        let mut number = 0;
        for class in &plan.classes {
            first_numbers.push(number);
            number += class.count as u32;
        }
        let (file, image) = (Some(file), Vec::new());
        let log = CaptureLog { file, first_numbers, options, image };
        SharedCapture(Arc::new(Mutex::new(log)))
    }

    fn log(&self) -> MutexGuard<'_, CaptureLog> {
        self.0.lock().expect("nobody panics while writing")
    }

    /// Has writing failed?
    pub fn has_failed(&self) -> bool {
        self.log().file.as_ref().is_some_and(Capture::has_failed)
    }

    /// Ends the file.
    ///
    /// # Errors
    /// If it could not be written.
    pub fn finish(&self, end: Instant) -> Result<(), RecordingError> {
        let Some(file) = self.log().file.take() else { return Ok(()) };
        let ports = file.ports();
        file.finish(end, &vec![0; ports]).map(|_| ()).map_err(|failure| failure.error)
    }
}

impl CaptureLog {
    fn note(
        &mut self,
        at: Instant,
        port: u32,
        packet: &PortPacket,
        marked: Reasons,
        dropped: Option<Reason>,
    ) {
        let Some(file) = &mut self.file else { return };
        let (waited, packet) = (at.saturating_since(packet.arrived), &packet.packet);
        let flow = packet.flow();
        let index = flow.number - self.first_numbers[usize::from(flow.class)];
        let options = packet.options().and_then(|place| self.options.at(place));
        let len = headers::write(&mut self.image, packet, options.as_ref(), index, file.snap()) as u32;
        let wire_len = packet.wire_len();
        let event = PacketAtPort { port, at, waited, marked, dropped, wire_len };
        file.note(&event, Frame { head: &self.image, len });
    }
}

/// A discipline with a tap on it: what leaves it goes into a capture. As [`crate::packet_log::Tap`], it keeps its port
/// from looking ahead.
pub struct CaptureTap {
    inner: Discipline<PortPacket>,
    ear: Ear,
}

/// What a tap hears goes into the capture.
struct Ear {
    capture: SharedCapture,
    port: u32,
    /// Packets that wait and have been marked here, with why, in the order in which they were marked. Most disciplines
    /// send them in that order.
    marked: VecDeque<(PortPacket, Reasons)>,
}

impl CaptureTap {
    /// A tap on the queue of the port that is number `port` of the capture.
    pub fn new(inner: Discipline<PortPacket>, capture: SharedCapture, port: u32) -> Self {
        CaptureTap { inner, ear: Ear { capture, port, marked: VecDeque::new() } }
    }
}

impl Ear {
    fn left(&mut self, now: Instant, packet: &PortPacket, dropped: Option<Reason>) {
        let marked = self.take_marks(packet);
        self.capture.log().note(now, self.port, packet, marked, dropped);
    }

    /// A packet is known by all that it carries and by when it arrived. What is the same in all of that may be taken
    /// one for the other.
    fn marked(&mut self, packet: &PortPacket, reason: Reason) {
        let packet = as_marked(packet);
        match self.marked.iter_mut().find(|(p, reasons)| *p == packet && !reasons.has(reason)) {
            Some((_, reasons)) => reasons.insert(reason),
            None => {
                let mut reasons = Reasons::NONE;
                reasons.insert(reason);
                self.marked.push_back((packet, reasons));
            }
        }
    }

    fn take_marks(&mut self, packet: &PortPacket) -> Reasons {
        if packet.ecn() == Ecn::Ce {
            let place = self.marked.iter().position(|(p, _)| p == packet);
            return place.and_then(|i| self.marked.remove(i)).map_or(Reasons::NONE, |(_, reasons)| reasons);
        }
        Reasons::NONE
    }
}

fn as_marked(packet: &PortPacket) -> PortPacket {
    let mut packet = *packet;
    packet.mark_ce();
    packet
}

struct Listener<'a> {
    ear: &'a mut Ear,
    host: &'a mut dyn Observer<PortPacket>,
}

impl Observer<PortPacket> for Listener<'_> {
    fn dropped(&mut self, now: Instant, pkt: PortPacket, at: Cause) {
        // First: the host forgets the packet's options.
        self.ear.left(now, &pkt, Some(at.reason));
        self.host.dropped(now, pkt, at);
    }

    fn marked(&mut self, now: Instant, pkt: &PortPacket, at: Cause) {
        self.ear.marked(pkt, at.reason);
        self.host.marked(now, pkt, at);
    }
}

impl Qdisc<PortPacket> for CaptureTap {
    fn enqueue(&mut self, now: Instant, pkt: PortPacket, host: &mut dyn Observer<PortPacket>) {
        self.inner.enqueue(now, pkt, &mut Listener { ear: &mut self.ear, host });
    }

    fn dequeue(&mut self, now: Instant, host: &mut dyn Observer<PortPacket>) -> Option<PortPacket> {
        let packet = self.inner.dequeue(now, &mut Listener { ear: &mut self.ear, host })?;
        self.ear.left(now, &packet, None);
        Some(packet)
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

    fn reserve(&mut self, packets: usize, flows: usize) {
        self.inner.reserve(packets, flows);
    }

    fn observe(&self, now: Instant, out: &mut LawSamples) {
        self.inner.observe(now, out);
    }
}
