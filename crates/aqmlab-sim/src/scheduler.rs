//! Pending events, and their keys.

use aqmlab_network::End;
use aqmlab_qdisc::Packet;
use aqmlab_recording::Tally;
use aqmlab_units::Instant;

use crate::access::{AccessLink, AccessLinks, Serialisers};
use crate::event::{EventQueue, FlowRef, Key, Notice, Rank};
use crate::packet::SimPacket;

/// Pending events.
pub struct Scheduler<Q: EventQueue> {
    /// The events.
    pub queue: Q,
    /// The number of links; the numbers of flows' objects follow those of the links.
    links: u64,
    /// The part that the keys of all arrivals over flows' own links have in common.
    own_arrivals: u64,
}

/// The objects of a flow that have timers. The values are the low bits of the object's number,
/// which orders events. The numbers of a flow's access links ([`AccessLink`]) and delay stages reuse
/// these low bits, but occur only with the rank of arrivals, so they cannot be confused with the
/// objects below.
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
    /// the instant at which the flow stops sending
    Stop = 4,
    /// the delay that the sending endpoint adds before it transmits
    ClientDelay = 5,
    /// the delay that the receiving endpoint adds before it transmits
    ServerDelay = 6,
}

/// Number of objects reserved for each flow: enough for a delay stage in each router of the longest
/// path, in both directions.
const OBJECTS_PER_FLOW: u64 = 512;
/// The number of a flow's first delay stage in a router, after its access links.
const FIRST_STAGE: u64 = 4;

impl<Q: EventQueue> Scheduler<Q> {
    /// Creates a scheduler without events for a network with this many links.
    pub fn new(queue: Q, links: usize) -> Self {
        Scheduler { queue, links: links as u64, own_arrivals: Key::order(Rank::Arrival, links as u64) }
    }

    #[inline]
    fn flow_object(&self, number: u32, object: u64) -> u64 {
        self.links + u64::from(number) * OBJECTS_PER_FLOW + object
    }

    /// Schedules the arrival of a packet from a link, as the `turn`-th arrival from that link at that
    /// instant.
    #[inline]
    pub fn arrival_from_link(&mut self, at: Instant, link: u32, turn: u64, packet: SimPacket) {
        self.queue.push_arrival(Key::new(at, Rank::Arrival, u64::from(link), turn), packet);
    }

    /// Schedules an event of a flow; the event has the rank of timers. Each object has one valid
    /// event, so the turn is always 0. A superseded event may share its key with its successor
    /// because the two are the same event.
    #[inline]
    pub fn timer(&mut self, at: Instant, number: u32, object: FlowObject, notice: Notice) {
        let object = self.flow_object(number, object as u64);
        self.queue.push(Key::new(at, Rank::Timer, object, 0), notice);
    }

    /// Schedules the one valid timer event of an endpoint.
    #[inline]
    pub fn endpoint_timer(&mut self, at: Instant, number: u32, flow: FlowRef, end: End) {
        let object = if end == End::Client { FlowObject::Client } else { FlowObject::Server };
        self.timer(at, number, object, Notice::EndpointTimer { flow, end });
    }

    /// Passes a packet over the flow's own link `which` at `at`, and schedules its arrival at the
    /// other end. Returns false if the link lost the packet.
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

    /// Schedules the arrival of a packet from the flow's own link `which`, as the `turn`-th arrival from
    /// that link at that instant.
    #[inline(always)]
    pub fn arrival_from_own_link(&mut self, due: Instant, which: AccessLink, turn: u64, packet: SimPacket) {
        // This is the key of object `flow_object(number, which)`, computed with the fewest operations.
        let object = u64::from(packet.flow().number) * OBJECTS_PER_FLOW + which as u64;
        self.queue.push_arrival(Key::of_order(due, self.own_arrivals, object, turn), packet);
    }

    /// Schedules the arrival of a packet that has passed a delay stage in a router: the one with this
    /// number on its path. The packet is the `turn`-th to arrive from that stage at that instant.
    pub fn arrival_from_stage(&mut self, due: Instant, number: u8, turn: u64, packet: SimPacket) {
        let which = FIRST_STAGE + 2 * u64::from(number) + packet.toward() as u64;
        let object = u64::from(packet.flow().number) * OBJECTS_PER_FLOW + which;
        self.queue.push_arrival(Key::of_order(due, self.own_arrivals, object, turn), packet);
    }

    /// Counts the packets that are in flight from one place to the next, and their bytes.
    pub fn packets(&self) -> Tally {
        let mut tally = Tally::default();
        self.queue.for_each_packet(&mut |packet| tally.count(packet.wire_len()));
        tally
    }

    /// Returns how many of the packets in flight have an entry in the table of options.
    pub fn packets_with_entries(&self) -> u64 {
        let mut count = 0;
        self.queue.for_each_packet(&mut |packet| count += u64::from(packet.entry().is_some()));
        count
    }
}
