//! Packets that have left the network and are written to their hosts in one pass; with offloads, consecutive
//! segments of a connection are written in one system call.

use aqmlab_units::{Instant, Span};

use crate::frame::LinkHeader;
use crate::frame::offload::{HEADER, MOST_SEGMENTS, SuperSegment};
use crate::router::OutgoingFrame;

/// Maximum number of pending writes.
const MOST_WRITES: usize = 64;

/// Pending writes, each of one or more packets, in the order in which their first packets left the network.
/// Packets of one connection keep their order.
pub struct Batch {
    writes: Vec<Write>,
    waiting: usize,
    /// Whether segments are joined, and written with an offload header.
    offload: bool,
}

/// A packet or super-segment for a host.
pub struct Write {
    /// The device's number.
    pub to: usize,
    /// The link header of its first packet, if the device has a link layer.
    pub link: LinkHeader,
    super_segment: SuperSegment,
    offload: bool,
    /// For each packet, its ideal departure time and, if it leaves in the measured interval, the limit of its lateness.
    pub due: Vec<(Instant, Option<Span>)>,
    /// The four octets that hold the ports of a TCP segment; they are equal for all packets of one
    /// connection.
    ports: [u8; 4],
}

impl Batch {
    /// Returns an empty batch, which will allocate no further memory.
    pub fn new(offload: bool) -> Self {
        let write = |_| Write {
            to: 0,
            link: LinkHeader::default(),
            super_segment: SuperSegment::new(),
            offload,
            due: Vec::with_capacity(MOST_SEGMENTS),
            ports: [0; 4],
        };
        Batch { writes: (0..MOST_WRITES).map(write).collect(), waiting: 0, offload }
    }

    /// Adds a packet. The batch must have room for it.
    pub fn add(&mut self, frame: &OutgoingFrame<'_>) {
        let (to, ports) = (frame.to.number(), ports(frame.octets));
        let of_connection = |write: &&mut Write| write.to == to && write.ports == ports;
        let candidates = if self.offload { &mut self.writes[..self.waiting] } else { &mut [] };
        let due = (frame.at, frame.measured);
        if let Some(write) = candidates.iter_mut().rev().find(of_connection)
            && write.super_segment.append(frame.octets)
        {
            return write.due.push(due);
        }
        let write = &mut self.writes[self.waiting];
        (write.to, write.link, write.ports) = (to, *frame.link, ports);
        write.super_segment.begin(frame.octets);
        write.due.clear();
        write.due.push(due);
        self.waiting += 1;
    }

    /// Whether the batch is so full that the next packet might not fit.
    pub const fn is_full(&self) -> bool {
        self.waiting == MOST_WRITES
    }

    /// Returns the departure time of the first waiting packet.
    pub fn oldest(&self) -> Option<Instant> {
        Some(self.writes[..self.waiting].first()?.due[0].0)
    }

    /// Number of waiting packets.
    pub fn packets(&self) -> usize {
        self.writes[..self.waiting].iter().map(|write| write.due.len()).sum()
    }

    /// Returns everything that waits, and leaves the batch empty.
    pub fn take(&mut self) -> &[Write] {
        let waiting = std::mem::take(&mut self.waiting);
        &self.writes[..waiting]
    }
}

impl Write {
    /// Returns the octets in the form that the device expects.
    pub fn octets(&self) -> &[u8] {
        if self.offload { self.super_segment.octets() } else { &self.super_segment.octets()[HEADER..] }
    }
}

/// Returns the ports of a TCP segment without IP options. In any other packet, these octets may mean
/// anything, which is harmless because such a packet is never joined.
fn ports(packet: &[u8]) -> [u8; 4] {
    let at = if packet.first().is_some_and(|first| first >> 4 == 6) { 40 } else { 20 };
    packet.get(at..at + 4).and_then(|ports| ports.try_into().ok()).unwrap_or_default()
}
