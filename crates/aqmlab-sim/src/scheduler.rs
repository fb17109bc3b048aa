//! Events to come, and how they are named.

use aqmlab_network::End;
use aqmlab_qdisc::Packet;
use aqmlab_recording::Tally;
use aqmlab_units::Instant;

use crate::access::{AccessLink, AccessLinks, Serialisers};
use crate::event::{EventQueue, FlowRef, Key, Notice, Rank};
use crate::packet::SimPacket;

/// Events to come.
pub struct Scheduler<Q: EventQueue> {
    /// The events.
    pub queue: Q,
    /// The number of links: flows' objects are numbered behind them.
    links: u64,
    /// What the keys of arrivals over flows' own links have in common.
    own_arrivals: u64,
}

/// What of a flow has timers: the low bits of its object's number in the order of events. A flow's access links
/// ([`AccessLink`]) and its delay stages have the same low bits in the rank of arrivals; ranks keep them apart.
#[derive(Clone, Copy)]
pub enum FlowObject {
    /// the sending endpoint
    Client = 0,
    /// the receiving endpoint
    Server = 1,
    /// a packet source
    Source = 2,
    /// the start of the flow
    Start = 3,
    /// the end of its sending
    Stop = 4,
    /// the delay of what the sending endpoint sends
    ClientDelay = 5,
    /// the delay of what the receiving endpoint sends
    ServerDelay = 6,
}

/// Enough for a delay stage in each router of the longest path, both ways.
const OBJECTS_PER_FLOW: u64 = 512;
/// The first of a flow's delay stages in routers, behind its access links.
const FIRST_STAGE: u64 = 4;

impl<Q: EventQueue> Scheduler<Q> {
    /// Nothing to come yet, in a network of so many links.
    pub fn new(queue: Q, links: usize) -> Self {
        Scheduler { queue, links: links as u64, own_arrivals: Key::order(Rank::Arrival, links as u64) }
    }

    #[inline]
    fn flow_object(&self, number: u32, object: u64) -> u64 {
        self.links + u64::from(number) * OBJECTS_PER_FLOW + object
    }

    /// A packet comes out of a link: the `turn`-th at that instant.
    #[inline]
    pub fn arrival_from_link(&mut self, at: Instant, link: u32, turn: u64, packet: SimPacket) {
        self.queue.push_arrival(Key::new(at, Rank::Arrival, u64::from(link), turn), packet);
    }

    /// An event of a flow in the rank of timers. Each object has one valid event, so their turn is always 0; a
    /// superseded one may share its key with its successor, and is the same event.
    #[inline]
    pub fn timer(&mut self, at: Instant, number: u32, object: FlowObject, notice: Notice) {
        let object = self.flow_object(number, object as u64);
        self.queue.push(Key::new(at, Rank::Timer, object, 0), notice);
    }

    /// The one valid timer event of an endpoint.
    #[inline]
    pub fn endpoint_timer(&mut self, at: Instant, number: u32, flow: FlowRef, end: End) {
        let object = if end == End::Client { FlowObject::Client } else { FlowObject::Server };
        self.timer(at, number, object, Notice::EndpointTimer { flow, end });
    }

    /// A packet enters one of its flow's own links at `at`: its arrival at the other end is scheduled. False
    /// if the link lost it.
    #[inline(always)]
    pub fn over_access(
        &mut self,
        access: &mut AccessLinks,
        serialisers: &mut Serialisers,
        which: AccessLink,
        at: Instant,
        mut packet: SimPacket,
    ) -> bool {
        let Some((due, turn)) = access.pass(serialisers, which, at, packet.wire_len()) else { return false };
        packet.pass();
        self.arrival_from_own_link(due, which, turn, packet);
        true
    }

    /// A packet comes out of one of its flow's own links: the `turn`-th at that instant.
    #[inline(always)]
    pub fn arrival_from_own_link(&mut self, due: Instant, which: AccessLink, turn: u64, packet: SimPacket) {
        // The key of object `flow_object(number, which)`, in the fewest steps.
        let object = u64::from(packet.flow().number) * OBJECTS_PER_FLOW + which as u64;
        self.queue.push_arrival(Key::of_order(due, self.own_arrivals, object, turn), packet);
    }

    /// A packet comes out of its flow's passage through a delay stage in a router, of this number on its way: the `turn`-th
    /// at that instant.
    pub fn arrival_from_stage(&mut self, due: Instant, number: u8, turn: u64, packet: SimPacket) {
        let which = FIRST_STAGE + 2 * u64::from(number) + packet.toward() as u64;
        let object = u64::from(packet.flow().number) * OBJECTS_PER_FLOW + which;
        self.queue.push_arrival(Key::of_order(due, self.own_arrivals, object, turn), packet);
    }

    /// The packets on their way from one place to the next.
    pub fn packets(&self) -> Tally {
        let mut tally = Tally::default();
        self.queue.for_each_packet(&mut |packet| tally.count(packet.wire_len()));
        tally
    }

    /// How many of them have TCP options.
    pub fn packets_with_options(&self) -> u64 {
        let mut count = 0;
        self.queue.for_each_packet(&mut |packet| count += u64::from(packet.options().is_some()));
        count
    }
}
