//! Captures of ports: packets that leave a queue are written to a file, with headers, during the run.

use std::collections::VecDeque;

use aqmlab_qdisc::{Ecn, Packet, Reason};
use aqmlab_recording::RecordingError;
use aqmlab_recording::capture::{CaptureFile, CapturedPort, Frame, PacketAtPort, Reasons, packet_id};
use aqmlab_scenario::Plan;
use aqmlab_units::Instant;

use crate::headers;
use crate::options::OptionTable;
use crate::packet::{PortPacket, Toward};

/// Returns the links with these indices in the form that a capture file needs.
pub fn captured_ports(plan: &Plan, links: &[usize]) -> Vec<CapturedPort> {
    let port = |&link: &usize| {
        let link = &plan.links[link];
        CapturedPort { name: link.name.clone(), rate: link.rate }
    };
    links.iter().map(port).collect()
}

/// A capture in progress. Ports have the same numbers in this log as in the file.
pub struct CaptureLog {
    /// The file; `None` after the run.
    file: Option<Box<dyn CaptureFile>>,
    /// For each class, the number that its first flow has in the run.
    first_numbers: Vec<u32>,
    /// The server port of each class.
    server_ports: Vec<u16>,
    /// Per port, the waiting packets that have been marked there, with the reasons for the marks,
    /// in the order in which they were marked. Most disciplines send packets in that order.
    marked: Vec<VecDeque<(PortPacket, Reasons)>>,
    /// The bytes of the packet being written.
    image: Vec<u8>,
}

impl CaptureLog {
    /// Creates a capture that has no packets yet.
    pub fn new(plan: &Plan, file: Box<dyn CaptureFile>) -> Self {
        let mut first_numbers = Vec::with_capacity(plan.classes.len());
        let mut number = 0;
        for class in &plan.classes {
            first_numbers.push(number);
            number += class.count as u32;
        }
        let marked = vec![VecDeque::new(); file.ports()];
        let server_ports = plan.classes.iter().map(|class| class.port).collect();
        CaptureLog { file: Some(file), first_numbers, server_ports, marked, image: Vec::new() }
    }

    /// Returns whether writing has failed.
    pub fn has_failed(&self) -> bool {
        self.file.as_ref().is_some_and(|file| file.has_failed())
    }

    /// Completes the file.
    ///
    /// # Errors
    /// If the file could not be written.
    pub fn finish(&mut self, end: Instant) -> Result<(), RecordingError> {
        let Some(file) = self.file.take() else { return Ok(()) };
        let ports = file.ports();
        file.finish(end, &vec![0; ports]).map(|_| ()).map_err(|failure| failure.error)
    }

    /// Records that a packet leaves the queue of a port, either onto the link or because it is
    /// dropped. `options` contains the options of all packets in flight.
    pub fn left(
        &mut self,
        at: Instant,
        port: usize,
        packet: &PortPacket,
        dropped: Option<Reason>,
        options: &OptionTable,
    ) {
        let marked = self.take_marks(port, packet);
        let Some(file) = &mut self.file else { return };
        let (waited, packet) = (at.saturating_since(packet.arrived), &packet.packet);
        let number = options.number_of(packet).expect("the packets of a captured run are numbered");
        let flow = packet.flow();
        let id = packet_id(flow.number, packet.toward() == Toward::Sender, number);
        let index = flow.number - self.first_numbers[usize::from(flow.class)];
        let flow = (index, self.server_ports[usize::from(flow.class)]);
        let len = headers::write(&mut self.image, packet, options.of(packet), flow, file.snap()) as u32;
        let wire_len = packet.wire_len();
        let event = PacketAtPort { port: port as u32, id, at, waited, marked, dropped, wire_len };
        file.note(&event, Frame { head: &self.image, len });
    }

    /// Records that a packet waiting at a port is marked. Its fields, which include its number or the
    /// place of its options, identify the packet.
    pub fn marked(&mut self, port: usize, packet: &PortPacket, reason: Reason) {
        let packet = as_marked(packet);
        let marked = &mut self.marked[port];
        match marked.iter_mut().find(|(p, reasons)| *p == packet && !reasons.has(reason)) {
            Some((_, reasons)) => reasons.insert(reason),
            None => {
                let mut reasons = Reasons::NONE;
                reasons.insert(reason);
                marked.push_back((packet, reasons));
            }
        }
    }

    fn take_marks(&mut self, port: usize, packet: &PortPacket) -> Reasons {
        if packet.ecn() == Ecn::Ce {
            let marked = &mut self.marked[port];
            let place = marked.iter().position(|(p, _)| p == packet);
            return place.and_then(|i| marked.remove(i)).map_or(Reasons::NONE, |(_, reasons)| reasons);
        }
        Reasons::NONE
    }
}

fn as_marked(packet: &PortPacket) -> PortPacket {
    let mut packet = *packet;
    packet.mark_ce();
    packet
}
