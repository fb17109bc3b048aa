//! A frame as disciplines see it, and the pool of slots that hold the octets of frames; all slots are
//! allocated at the start.

use std::net::IpAddr;

use aqmlab_qdisc::{Classed, Dscp, Ecn, Packet, PacketKind, Side};
use aqmlab_random::philox2x64;
use aqmlab_units::Bytes;

use super::headers::Headers;
use crate::addresses::HostId;
#[cfg(target_os = "linux")]
use crate::sys::Unforked;

/// A packet in the router. Marks are kept here and written into the packet's octets when it leaves.
#[derive(Debug)]
pub struct LiveFrame {
    /// The slot that holds the frame's octets.
    pub(crate) slot: Slot,
    /// The frame's identification in captures.
    pub(crate) id: u64,
    len: u16,
    traffic_class: u8,
    /// The traffic class with which the frame arrived.
    came_with: u8,
    kind: PacketKind,
    /// The number of the host through which the frame arrived.
    origin: u16,
    /// The frame's place in the table of routes.
    pub(crate) place: u16,
    /// The pipe that the frame is in, or was in last.
    pub(crate) pipe: u32,
    /// Its owner.
    owner: Owner,
    tuple: u64,
    hosts: [u64; 2],
}

/// Owner of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Owner {
    /// The row of the router's flow table, counted within the frame's class.
    pub row: u32,
    /// The flow within the class; for frames that belong to no flow, the number after that of the last flow.
    pub flow: u32,
    /// Number of earlier connections that had the same client port.
    pub tenancy: u32,
}

const ECN_BITS: u8 = 0b11;

impl LiveFrame {
    /// Returns a frame that has arrived through `origin`, at the beginning of its path.
    pub(crate) fn new(slot: Slot, headers: &Headers, origin: HostId, owner: Owner, place: u16) -> Self {
        let hosts = [headers.source, headers.destination].map(folded);
        LiveFrame {
            slot,
            id: 0,
            len: headers.total_len,
            traffic_class: headers.traffic_class,
            came_with: headers.traffic_class,
            kind: headers.kind,
            origin: origin.number() as u16,
            place,
            pipe: 0,
            owner,
            tuple: tuple(headers, hosts),
            hosts,
        }
    }

    /// Returns the frame's length in octets.
    pub(crate) fn len(&self) -> usize {
        usize::from(self.len)
    }

    /// Returns the host through which the frame arrived.
    pub(crate) fn origin(&self) -> HostId {
        HostId::of_number(usize::from(self.origin))
    }

    /// Records that the frame enters a pipe, after which the frame continues to the next place on
    /// its path.
    pub(crate) fn enter(&mut self, pipe: u32) {
        self.pipe = pipe;
        self.place += 1;
    }

    /// Returns its owner.
    pub(crate) fn owner(&self) -> Owner {
        self.owner
    }

    /// Whether one of the router's queues has marked the frame.
    pub(crate) fn is_marked(&self) -> bool {
        self.ecn() == Ecn::Ce && self.came_with & ECN_BITS != Ecn::Ce as u8
    }

    /// Returns the traffic class to be written into the frame's octets, if it has changed.
    pub(crate) fn new_traffic_class(&self) -> Option<u8> {
        (self.traffic_class != self.came_with).then_some(self.traffic_class)
    }
}

/// Returns an address as a 64-bit word; an IPv6 address is hashed.
fn folded(address: IpAddr) -> u64 {
    match address {
        IpAddr::V4(address) => u64::from(u32::from(address)),
        IpAddr::V6(address) => {
            let bits = address.to_bits();
            philox2x64([(bits >> 64) as u64, bits as u64], 6)[0]
        }
    }
}

/// Returns a 64-bit hash of the 5-tuple, or of the 3-tuple where there are no ports.
fn tuple(headers: &Headers, [source, destination]: [u64; 2]) -> u64 {
    let ports = headers.ports.map_or(0, |(from, to)| 1 << 32 | u64::from(from) << 16 | u64::from(to));
    let [a, b] = philox2x64([source, destination], u64::from(headers.protocol));
    philox2x64([a, b], ports)[0]
}

impl Packet for LiveFrame {
    #[inline]
    fn wire_len(&self) -> Bytes {
        Bytes::new(u64::from(self.len))
    }

    fn flow_hash(&self, salt: u64) -> u64 {
        philox2x64([self.tuple, 0], salt)[0]
    }

    fn host_hash(&self, side: Side, salt: u64) -> u64 {
        philox2x64([self.hosts[side as usize], 1], salt)[0]
    }

    #[inline]
    fn ecn(&self) -> Ecn {
        match self.traffic_class & ECN_BITS {
            0 => Ecn::NotEct,
            1 => Ecn::Ect1,
            2 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }

    #[inline]
    fn mark_ce(&mut self) {
        self.traffic_class |= Ecn::Ce as u8;
    }

    fn dscp(&self) -> Dscp {
        Dscp(self.traffic_class >> 2)
    }

    fn set_dscp(&mut self, dscp: Dscp) {
        self.traffic_class = dscp.0 << 2 | self.traffic_class & ECN_BITS;
    }
}

impl Classed for LiveFrame {
    #[inline]
    fn class(&self) -> usize {
        self.origin().class
    }

    #[inline]
    fn kind(&self) -> PacketKind {
        self.kind
    }
}

/// A frame's place in its [`FramePool`]. A slot cannot be copied and must not be dropped, so its owner must
/// return it.
#[derive(Debug)]
#[must_use = "a slot that is not returned is lost to the pool"]
pub struct Slot(u32);

/// The header of the link layer (Ethernet II) that a packet had at the interface from which it was read. A bridge
/// writes it again; between hosts, packets have none, and it is not used.
pub type LinkHeader = [u8; 14];

/// Slots of equal length, in one block of memory that is touched before the first frame arrives.
#[derive(Debug)]
pub struct FramePool {
    // Programs are forked during the run; it is dropped before the memory.
    #[cfg(target_os = "linux")]
    _unforked: Unforked,
    octets: Box<[u8]>,
    /// The link header of the frame in each slot.
    links: Box<[LinkHeader]>,
    slot_len: usize,
    free: Vec<u32>,
    /// Largest number of slots that have been taken at the same time.
    most_taken: usize,
    slots: usize,
}

/// Contents of fresh slots. They are not zero, because the system would allocate pages of zeros only at the
/// first write, during the run.
const FRESH: u8 = 0xa5;

impl FramePool {
    /// Returns a pool of `slots` slots for frames of at most `slot_len` octets.
    ///
    /// # Panics
    /// If there are 2^32 slots or more.
    pub fn new(slots: usize, slot_len: usize) -> Self {
        let count = u32::try_from(slots).expect("fewer than 2^32 slots");
        let mut octets = vec![FRESH; slots * slot_len].into_boxed_slice();
        FramePool {
            #[cfg(target_os = "linux")]
            _unforked: Unforked::new(&mut octets),
            octets,
            links: vec![[FRESH; 14]; slots].into_boxed_slice(),
            slot_len,
            free: (0..count).rev().collect(),
            most_taken: 0,
            slots,
        }
    }

    /// Takes a slot and copies a frame into it; `None` if all slots are taken or the frame is too long.
    pub fn store(&mut self, frame: &[u8]) -> Option<Slot> {
        if frame.len() > self.slot_len {
            return None;
        }
        let slot = Slot(self.free.pop()?);
        self.octets[slot.start(self.slot_len)..][..frame.len()].copy_from_slice(frame);
        self.most_taken = self.most_taken.max(self.taken());
        Some(slot)
    }

    /// Notes the link header of the frame in a slot.
    pub fn note_link(&mut self, slot: &Slot, link: &LinkHeader) {
        self.links[slot.0 as usize] = *link;
    }

    /// Returns the link header of the frame in a slot; any octets if it has none.
    pub fn link(&self, slot: &Slot) -> &LinkHeader {
        &self.links[slot.0 as usize]
    }

    /// Returns a slot to the pool.
    pub fn free(&mut self, slot: Slot) {
        debug_assert!(self.free.len() < self.slots, "more slots returned than exist");
        self.free.push(slot.0);
    }

    /// Returns the first `len` octets of a slot.
    ///
    /// # Panics
    /// If slots are shorter than `len` octets.
    #[inline]
    pub fn frame(&self, slot: &Slot, len: usize) -> &[u8] {
        &self.octets[slot.start(self.slot_len)..][..self.slot_len][..len]
    }

    /// Returns the first `len` octets of a slot, for writing.
    ///
    /// # Panics
    /// If slots are shorter than `len` octets.
    #[inline]
    pub fn frame_mut(&mut self, slot: &Slot, len: usize) -> &mut [u8] {
        &mut self.octets[slot.start(self.slot_len)..][..self.slot_len][..len]
    }

    /// Returns the number of slots taken.
    pub fn taken(&self) -> usize {
        self.slots - self.free.len()
    }

    /// Returns the largest number of slots that have been taken at the same time.
    pub const fn most_taken(&self) -> usize {
        self.most_taken
    }

    /// Returns the number of slots.
    pub const fn slots(&self) -> usize {
        self.slots
    }
}

impl Slot {
    /// Returns the slot's number, which is below [`FramePool::slots`] and unique in the network.
    pub const fn number(&self) -> u32 {
        self.0
    }

    const fn start(&self, slot_len: usize) -> usize {
        self.0 as usize * slot_len
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_hold_their_frames_until_they_are_given_back() {
        let mut pool = FramePool::new(3, 8);
        let slots: Vec<Slot> = (0..3u8).map(|n| pool.store(&[n; 8]).unwrap()).collect();
        assert!(pool.store(&[9]).is_none(), "all are taken");
        for (n, slot) in slots.iter().enumerate() {
            assert_eq!(pool.frame(slot, 8), [n as u8; 8]);
        }
        slots.into_iter().for_each(|slot| pool.free(slot));
        assert_eq!((pool.taken(), pool.most_taken(), pool.slots()), (0, 3, 3));
        assert!(pool.store(&[0; 9]).is_none(), "too long");
        assert_eq!(pool.taken(), 0, "and it costs no slot");
        let again = pool.store(&[7; 2]).unwrap();
        pool.frame_mut(&again, 2)[1] = 8;
        assert_eq!(pool.frame(&again, 2), [7, 8]);
        pool.free(again);
    }
}
