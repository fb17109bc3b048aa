//! Packets as the simulator moves them: 32 bytes, with fields instead of header bytes.

use aqmlab_qdisc::{Classed, Dscp, Ecn, Packet, PacketKind, Side, Stamped};
use aqmlab_random::philox2x64;
use aqmlab_scenario::MOST_CLASSES;
use aqmlab_transport::{Extras, Flags, Segment};
use aqmlab_units::Bytes;

/// The direction of a packet on its flow's path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Toward {
    /// From the sender to the receiver.
    Receiver = 0,
    /// From the receiver to the sender.
    Sender = 1,
}

/// A place on a path: an index into the table of [`Routes`](crate::routes::Routes). The next place
/// of the path has the next index.
pub type Place = u16;

/// The data that the packets of a class in one direction have in common: the beginning of their
/// path, and their code point.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Begin(u64);

impl Begin {
    /// Combines the beginning of a path and a code point.
    pub const fn new(place: Place, dscp: Dscp) -> Self {
        Begin((place as u64) << PLACE | ((dscp.0 & DSCP_MASK) as u64) << DSCP)
    }
}

/// The flow of a packet, in the form in which packets carry it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowId {
    /// Its slot. A flow keeps its slot until its last packet has left the network.
    pub slot: u32,
    /// The flow's number in the run, which does not change when slots are reused, and which
    /// determines hashes and the order of events.
    pub number: u32,
    /// The index of the flow's class, below [`MOST_CLASSES`](aqmlab_scenario::MOST_CLASSES).
    pub class: u16,
}

/// A packet in flight.
///
/// The fields share four words: a packet is copied at each place that it passes, and a copy then
/// takes four moves instead of one per field.
///
/// | word | bits 0 to 31 | 32 to 63 |
/// |---|---|---|
/// | 0 | slot of its flow | number of its flow |
/// | 1 | length at the network layer | payload (16), kind of a datagram (3), class (13) |
/// | 2 | sequence number, or the lower half of a datagram's number | acknowledgment, or the upper half |
/// | 3 | window (31), direction (1) | TCP flags (8), place on its path (16), DSCP (6), ECN field (2) |
///
/// The flags are [packed](Flags::packed). If data about a segment is kept separately (`options.rs`: its TCP
/// options or, where packets are recorded, its number), the window is replaced by the number of the entry, plus a
/// number above the largest window.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SimPacket([u64; 4]);

const _: () = assert!(size_of::<SimPacket>() == 32, "a packet is half a cache line");

const FLAGS: u32 = 32;
const PLACE: u32 = 40;
const DSCP_MASK: u8 = 0x3f;
const DSCP: u32 = 56;
const ECN: u32 = 62;
const TOWARD_SENDER: u64 = 1 << 31;
const WINDOW: u32 = (1 << 31) - 1;
/// The number of the first entry: one more than the largest window.
const ENTRY: u32 = (1 << 30) + 1;

/// The position of the class in the upper half of the second word. The bits below it hold the kind
/// of a datagram; the kind of a segment follows from its flags and payload.
const CLASS: u32 = KIND + PacketKind::PLACES.trailing_zeros();
const KIND: u32 = 16;
const _: () = assert!(MOST_CLASSES <= 1 << (32 - CLASS), "the index of a class fits in a packet");

const fn word(low: u32, high: u32) -> u64 {
    low as u64 | (high as u64) << 32
}

impl SimPacket {
    /// Creates a TCP segment with a header of `header` bytes, at the beginning of its path. Its
    /// window is at most 2^30 bytes (RFC 7323, section 2.3). Its options are kept separately
    /// (`options.rs`).
    #[inline]
    pub fn tcp(flow: FlowId, toward: Toward, begin: Begin, segment: &Segment, header: u32) -> Self {
        debug_assert!(segment.window < ENTRY);
        let bits = u64::from(segment.flags.packed()) << FLAGS
            | begin.0
            | (segment.ecn as u64) << ECN
            | if toward == Toward::Sender { TOWARD_SENDER } else { 0 };
        SimPacket([
            word(flow.slot, flow.number),
            word(segment.len + header, segment.len | u32::from(flow.class) << CLASS),
            word(segment.seq, segment.ack),
            u64::from(segment.window) | bits,
        ])
    }

    /// Adds an entry at `place`, with options of `len` bytes, and returns the packet.
    pub(crate) fn with_entry(mut self, place: u32, len: u8) -> Self {
        debug_assert!(place <= WINDOW - ENTRY);
        self.0[1] += u64::from(len);
        self.0[3] = self.0[3] & !u64::from(WINDOW) | u64::from(ENTRY + place);
        self
    }

    /// Undoes [`SimPacket::with_entry`] for a packet without options, which has this window.
    pub(crate) fn without_entry(mut self, window: u32) -> Self {
        self.0[3] = self.0[3] & !u64::from(WINDOW) | u64::from(window);
        self
    }

    /// Returns the place of the packet's entry, if it has one.
    #[inline]
    pub(crate) fn entry(&self) -> Option<u32> {
        (self.low(3) & WINDOW).checked_sub(ENTRY)
    }

    /// Creates a datagram at the beginning of its path. It is number `number` of those of its flow in its direction.
    pub fn datagram(
        flow: FlowId,
        toward: Toward,
        begin: Begin,
        number: u64,
        wire_len: Bytes,
        ecn: Ecn,
    ) -> Self {
        let wire_len = wire_len.get() as u32;
        let bits = begin.0 | (ecn as u64) << ECN | if toward == Toward::Sender { TOWARD_SENDER } else { 0 };
        let class = (PacketKind::Other as u32) << KIND | u32::from(flow.class) << CLASS;
        SimPacket([word(flow.slot, flow.number), word(wire_len, class), number, bits])
    }

    /// Returns the number of a datagram among those of its flow, from 0; `None` for a segment.
    pub(crate) fn datagram_number(&self) -> Option<u64> {
        self.segment().is_none().then_some(self.0[2])
    }

    #[inline]
    const fn low(&self, word: usize) -> u32 {
        self.0[word] as u32
    }

    #[inline]
    const fn high(&self, word: usize) -> u32 {
        (self.0[word] >> 32) as u32
    }

    /// Returns eight bits of the last word, starting at bit `at`.
    #[inline]
    const fn octet(&self, at: u32) -> u8 {
        (self.0[3] >> at) as u8
    }

    /// Returns the flow.
    #[inline]
    pub fn flow(&self) -> FlowId {
        FlowId { slot: self.low(0), number: self.high(0), class: self.class() as u16 }
    }

    /// Returns its direction.
    #[inline]
    pub fn toward(&self) -> Toward {
        if self.0[3] & TOWARD_SENDER == 0 { Toward::Receiver } else { Toward::Sender }
    }

    /// Returns the TCP segment that the packet contains, except for the data that is stored in
    /// its entry, or `None` for a datagram (every TCP segment has a flag set).
    #[inline]
    pub fn segment(&self) -> Option<Segment> {
        let flags = Flags::from_packed(self.octet(FLAGS));
        (flags != Flags::NONE).then_some(Segment {
            seq: self.low(2),
            ack: self.high(2),
            len: self.high(1) & 0xffff,
            flags,
            window: self.low(3) & WINDOW,
            ecn: self.ecn(),
            extras: Extras::NONE,
            sack_len: 0,
        })
    }

    /// Returns whether the packet neither opens nor closes a connection.
    #[inline]
    pub fn is_ordinary(&self) -> bool {
        let mark = Flags::SYN.packed() | Flags::FIN.packed() | Flags::RST.packed();
        self.octet(FLAGS) & mark == 0
    }

    /// Returns the place on its path that the packet has reached or will reach next.
    #[inline]
    pub fn place(&self) -> Place {
        (self.0[3] >> PLACE) as Place
    }

    /// Moves the packet back by one place: it has not left for the next place yet.
    #[inline]
    pub fn step_back(&mut self) {
        self.0[3] -= 1 << PLACE;
    }

    /// Moves the packet forward by one place: it is on its way to the next place.
    #[inline]
    pub fn pass(&mut self) {
        self.0[3] += 1 << PLACE;
    }
}

impl std::fmt::Debug for SimPacket {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SimPacket")
            .field("flow", &self.flow())
            .field("toward", &self.toward())
            .field("wire_len", &self.wire_len().get())
            .field("segment", &self.segment())
            .field("place", &self.place())
            .field("ecn", &self.ecn())
            .finish()
    }
}

impl Packet for SimPacket {
    #[inline]
    fn wire_len(&self) -> Bytes {
        Bytes::new(u64::from(self.low(1)))
    }

    fn flow_hash(&self, salt: u64) -> u64 {
        let direction = u64::from(self.toward() == Toward::Sender);
        philox2x64([u64::from(self.high(0)) << 1 | direction, 0], salt)[0]
    }

    fn host_hash(&self, side: Side, salt: u64) -> u64 {
        // As in a live run and in captures, the flows of a class run between the same two hosts.
        let is_sender_host = (side == Side::Source) == (self.toward() == Toward::Receiver);
        philox2x64([(self.class() as u64) << 1 | u64::from(is_sender_host), 1], salt)[0]
    }

    #[inline]
    fn ecn(&self) -> Ecn {
        match self.0[3] >> ECN {
            0 => Ecn::NotEct,
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }

    #[inline]
    fn mark_ce(&mut self) {
        self.0[3] |= (Ecn::Ce as u64) << ECN;
    }

    fn dscp(&self) -> Dscp {
        Dscp(self.octet(DSCP) & DSCP_MASK)
    }

    fn set_dscp(&mut self, dscp: Dscp) {
        self.0[3] = self.0[3] & !(u64::from(DSCP_MASK) << DSCP) | u64::from(dscp.0 & DSCP_MASK) << DSCP;
    }
}

impl Classed for SimPacket {
    #[inline]
    fn class(&self) -> usize {
        (self.high(1) >> CLASS) as usize
    }

    fn kind(&self) -> PacketKind {
        match self.segment() {
            Some(segment) => PacketKind::of_tcp(segment.flags.bits(), segment.len > 0),
            None => PacketKind::Other,
        }
    }

    /// For a segment in the middle of a connection, an addition gives the kind without branches: if
    /// the length of the payload is not zero, a carry into the bits above that length changes the
    /// kind from 0 (a pure ACK) to 1 (data).
    #[inline(always)]
    fn class_and_kind(&self) -> usize {
        const CARRY: u32 = (1 << KIND) - 1;
        const _: () = assert!(PacketKind::Ack as u32 == 0 && PacketKind::Data as u32 == 1);
        if !self.is_ordinary() {
            return opening_or_closing(self);
        }
        ((self.high(1) + CARRY) >> KIND) as usize
    }
}

/// Returns the class and kind of a segment that opens or closes a connection.
#[cold]
#[inline(never)]
fn opening_or_closing(packet: &SimPacket) -> usize {
    PacketKind::PLACES * packet.class() + packet.kind() as usize
}

/// A packet as the discipline of a port sees it.
pub type PortPacket = Stamped<SimPacket>;
