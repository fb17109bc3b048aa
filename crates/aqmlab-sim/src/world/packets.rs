//! Packets on their way: from place to place, to their hosts, or lost.

use aqmlab_network::End;
use aqmlab_qdisc::Packet;

use super::World;
use crate::connection::Connection;
use crate::event::EventQueue;
use crate::flow::Body;
use crate::impairments::AccessLink;
use crate::packet::{FlowId, SimPacket};
use crate::routes::Next;

impl<Q: EventQueue> World<'_, Q> {
    /// Moves a packet that has arrived: into the next queue on its path, over the last access link, or to its
    /// host.
    #[inline(always)]
    pub(super) fn forward(&mut self, packet: &mut SimPacket) {
        match self.in_transit.routes.next(packet.place()) {
            Next::Queue { link, onward } => self.enqueue(link, onward, packet),
            Next::Host(End::Server, passed) => self.at_server(packet, passed),
            Next::Host(End::Client, passed) => self.at_client(packet, passed),
            _ => self.forward_elsewhere(packet),
        }
    }

    /// Where hops are not fused, and where something is recorded one by one.
    #[inline(never)]
    fn forward_elsewhere(&mut self, packet: &SimPacket) {
        // Looked up once more: to hand it over would cost the packets that do not come here.
        match self.in_transit.routes.next(packet.place()) {
            Next::Access(link, _) | Next::Risk(link) => self.enter_access(link, *packet),
            Next::AttendedAccess(link, _) => self.enter_access(link, *packet),
            Next::AttendedHost(end, passed) => self.at_attended_host(packet, passed, end),
            Next::WatchedHost(end, passed) => self.at_watched_host(packet, passed, end),
            Next::Queue { .. } | Next::Host(..) => unreachable!("these are on every packet's way"),
        }
    }

    /// A packet enters one of its flow's own links with an event of its own, as where hops are not fused.
    fn enter_access(&mut self, link: AccessLink, packet: SimPacket) {
        let FlowId { slot, class, .. } = packet.flow();
        let serialisers = &mut self.classes[usize::from(class)].serialisers;
        let own = self.in_transit.flows.of_packet(slot).own_links();
        if !self.scheduler.over_access(own, serialisers, link, self.now, packet) {
            if let Some(watch) = &mut self.watch {
                watch.lost(self.now, &packet);
            }
            self.lose(packet);
            self.reap();
        }
    }

    /// [`World::forward`] where speed does not matter.
    #[inline(never)]
    pub(super) fn forward_seldom(&mut self, mut packet: SimPacket) {
        self.forward(&mut packet);
    }

    /// Takes out flows whose last packet has gone.
    #[inline]
    pub(super) fn reap(&mut self) {
        if self.in_transit.flows.has_finished() {
            self.record_finished();
        }
    }

    #[cold]
    fn record_finished(&mut self) {
        while let Some(gone) = self.in_transit.flows.reap() {
            self.recorder.flow_ended(&gone);
            if let Some(watch) = &mut self.watch {
                watch.flow_ended(&gone);
            }
            if let Body::Tcp(Connection { applications: Some(applications), .. }) = gone.body {
                self.spare.push(applications);
            }
        }
    }

    /// A packet is lost on its flow's own link.
    pub(super) fn lose(&mut self, packet: SimPacket) {
        self.in_transit.fates.lost.count(packet.wire_len());
        self.in_transit.options.forget(&packet);
        self.in_transit.flows.packet_gone(packet.flow().slot);
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
            self.forward_seldom(packet);
        }
        self.outbox = outbox;
    }
}
