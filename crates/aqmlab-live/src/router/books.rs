//! A router's counts, except those of its ports.

use aqmlab_qdisc::books::{Books, Tally};
use aqmlab_recording::{Fates, Table};
use aqmlab_units::{Bytes, Rate};

use crate::error::LiveError;
use crate::frame::Malformed;

/// The reason why a frame was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refused {
    /// It is not a valid IP packet.
    Malformed(Malformed),
    /// It is longer than the class's largest packet, because a sender has left segmentation to its device
    /// (GSO); the run is void.
    Oversize,
    /// All slots for frames are taken, although the plan's queues and delays normally hold fewer frames than
    /// there are slots.
    NoSlot,
}

/// State at the end of the measured interval. Later frames are not measured.
pub struct Frozen {
    pub books: Vec<Books>,
    pub fates: Fates,
    pub resident: aqmlab_recording::Tally,
    pub flows: Vec<Vec<[FlowBooks; 2]>>,
    /// Tables of the links whose rate changes and of the controllers of shapers, and the links' mean capacities.
    pub changing: Vec<Table>,
    pub capacities: Vec<Option<Rate>>,
    /// The error of the first port whose books did not balance at that time.
    pub fault: Option<LiveError>,
}

/// The books of one host.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct HostBooks {
    /// Packets that arrived, accepted or not, with their lengths as read.
    pub read: Tally,
    /// Accepted packets, with their lengths as given in their headers.
    pub accepted: Tally,
    /// Fragments among the accepted packets.
    pub fragments: u64,
    /// Accepted packets that belong to none of the class's flows: fragments, ICMP, other ports.
    pub of_no_flow: u64,
    /// Packets refused as malformed, by kind (`kind as usize`).
    pub malformed: [u64; Malformed::ALL.len()],
    /// Packets refused because they were too long.
    pub oversize: u64,
    /// Packets refused because no slot was free.
    pub no_slot: u64,
    /// Packets that left the network through this host.
    pub left: Tally,
    /// Packets that left with CE.
    pub left_ce: u64,
    /// Packets that left with a mark set by one of the router's queues.
    pub left_marked: u64,
}

impl HostBooks {
    pub(super) fn refuse(&mut self, why: Refused) {
        match why {
            Refused::Malformed(kind) => self.malformed[kind as usize] += 1,
            Refused::Oversize => self.oversize += 1,
            Refused::NoSlot => self.no_slot += 1,
        }
    }

    /// Returns the number of packets refused for any reason.
    pub fn refused(&self) -> u64 {
        self.malformed() + self.oversize + self.no_slot
    }

    /// Returns the number of packets refused as malformed, for all kinds together.
    pub fn malformed(&self) -> u64 {
        self.malformed.iter().sum()
    }

    /// Returns the number of packets refused as malformed in this way.
    pub const fn malformed_as(&self, kind: Malformed) -> u64 {
        self.malformed[kind as usize]
    }
}

/// Counts of a flow's packets in one direction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FlowBooks {
    /// Packets that entered the network.
    pub sent: Tally,
    /// Packets that left through the other host.
    pub delivered: Tally,
    /// Bytes that a receiver counts as new: TCP payload when it leaves the network for the first
    /// time, in order or not, and whole datagrams.
    pub received_bytes: u64,
    /// Delivered packets with CE.
    pub delivered_ce: u64,
    /// Packets dropped at queues.
    pub dropped: u64,
    /// Packets lost outside the queues.
    pub lost: u64,
}

impl FlowBooks {
    /// Returns the counts since `before`.
    pub const fn since(self, before: FlowBooks) -> FlowBooks {
        const fn tally(now: Tally, before: Tally) -> Tally {
            Tally { packets: now.packets - before.packets, bytes: now.bytes - before.bytes }
        }
        FlowBooks {
            sent: tally(self.sent, before.sent),
            delivered: tally(self.delivered, before.delivered),
            received_bytes: self.received_bytes - before.received_bytes,
            delivered_ce: self.delivered_ce - before.delivered_ce,
            dropped: self.dropped - before.dropped,
            lost: self.lost - before.lost,
        }
    }
}

pub(super) fn count(tally: &mut Tally, size: Bytes) {
    *tally = tally.plus(Tally { packets: 1, bytes: size.get() });
}
