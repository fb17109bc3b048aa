//! Packets on their way: from place to place, to their hosts, or lost.

use aqmlab_qdisc::{Ecn, Packet};

use super::World;
use crate::event::{End, EventQueue};
use crate::flow::Body;
use crate::network::Next;
use crate::packet::{FlowId, SimPacket, Toward};

impl<Q: EventQueue> World<'_, Q> {
    /// Moves a packet that has arrived: into the next queue on its path, over the last access link, or to its
    /// host.
    #[inline]
    pub(super) fn forward(&mut self, packet: SimPacket) {
        match self.classes[usize::from(packet.flow().class)].next(&packet) {
            Next::Queue(link) => self.enqueue(link, packet),
            Next::Host => self.deliver(packet),
            Next::Access(last) => {
                let flow = self.flows.of_packet(packet.flow().slot);
                let access = flow.access.as_mut().expect("the class has access links");
                self.agenda.over_access(access, last, self.now, packet);
            }
        }
    }

    /// A packet reaches its host.
    fn deliver(&mut self, packet: SimPacket) {
        self.fates.delivered.count(packet.wire_len());
        self.fates.packet_hops += u64::from(packet.hops());
        let FlowId { slot, class, .. } = packet.flow();
        let flow = self.flows.of_packet(slot);
        match (&mut flow.body, packet.segment()) {
            (Body::Packets(d), None) => d.delivered_bytes += packet.wire_len(),
            (Body::Tcp(connection), Some(segment)) => {
                let end = match packet.toward() {
                    Toward::Receiver => End::Receiver,
                    Toward::Sender => End::Sender,
                };
                let tcp = self.classes[usize::from(class)].tcp.as_deref().expect("a class of connections");
                connection.endpoint(end).on_segment(self.now, &segment, packet.ecn() == Ecn::Ce, tcp);
                self.drain(slot, end);
            }
            _ => unreachable!("a flow receives what it sends"),
        }
        self.flows.packet_gone(slot);
        self.reap();
    }

    /// Takes out flows whose last packet has gone.
    #[inline]
    pub(super) fn reap(&mut self) {
        if self.flows.has_finished() {
            self.record_finished();
        }
    }

    #[cold]
    fn record_finished(&mut self) {
        while let Some(gone) = self.flows.reap() {
            self.recorder.flow_ended(&gone);
        }
    }

    /// A packet is lost on its flow's own link.
    pub(super) fn lose(&mut self, packet: SimPacket) {
        self.fates.dropped.count(packet.wire_len());
        self.flows.packet_gone(packet.flow().slot);
    }

    /// Packets of flows without access links enter their first queue.
    #[inline]
    pub(super) fn send_outbox(&mut self) {
        if self.outbox.is_empty() {
            return;
        }
        let mut outbox = std::mem::take(&mut self.outbox);
        for packet in outbox.drain(..) {
            self.forward(packet);
        }
        self.outbox = outbox;
    }
}
