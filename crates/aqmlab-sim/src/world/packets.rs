//! Packets on their way: from place to place, to their hosts, or lost.

use aqmlab_qdisc::{Ecn, Packet};

use super::World;
use crate::event::{End, EventQueue, FlowRef};
use crate::network::Next;
use crate::packet::{FlowId, SimPacket, Toward};

impl<Q: EventQueue> World<'_, Q> {
    /// Moves a packet that has arrived: into the next queue on its path, over the last access link, or to its
    /// host.
    #[inline(never)]
    pub(super) fn forward(&mut self, packet: SimPacket) {
        match self.classes[usize::from(packet.flow().class)].next(&packet) {
            Next::Queue(link) => self.enqueue(link, packet),
            Next::Host => self.deliver(packet),
            Next::Access(link) => {
                let FlowId { slot, class, .. } = packet.flow();
                let tempi = &mut self.classes[usize::from(class)].tempi;
                let own = self.flows.of_packet(slot).own_links();
                self.agenda.over_access(own, tempi, link, self.now, packet);
            }
        }
    }

    /// A packet reaches its host.
    #[inline(always)]
    fn deliver(&mut self, packet: SimPacket) {
        self.fates.delivered.count(packet.wire_len());
        self.fates.packet_hops += u64::from(packet.hops());
        let slot = packet.flow().slot;
        let (generation, flow) = self.flows.tenant(slot);
        flow.in_flight -= 1;
        let Some(segment) = packet.segment() else {
            flow.datagrams().delivered_bytes += packet.wire_len();
            self.flows.look_whether_finished(slot);
            self.reap();
            return;
        };
        let end = match packet.toward() {
            Toward::Receiver => End::Receiver,
            Toward::Sender => End::Sender,
        };
        let class = &self.classes[usize::from(packet.flow().class)];
        let ce = packet.ecn() == Ecn::Ce;
        flow.connection().endpoint(end).on_segment(self.now, &segment, ce, class.profile());
        self.serve(FlowRef { slot, generation }, end);
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
    #[inline(always)]
    pub(super) fn send_outbox(&mut self) {
        if !self.outbox.is_empty() {
            self.empty_outbox();
        }
    }

    #[inline(never)]
    fn empty_outbox(&mut self) {
        let mut outbox = std::mem::take(&mut self.outbox);
        for packet in outbox.drain(..) {
            self.forward(packet);
        }
        self.outbox = outbox;
    }
}
