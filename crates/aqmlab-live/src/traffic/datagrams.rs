//! A flow of datagrams: a source, and the counts of its receiver.

use std::os::fd::OwnedFd;

use aqmlab_qdisc::{Dscp, Ecn};
use aqmlab_scenario::{DatagramSource, IpVersion};
use aqmlab_units::Instant;
use rustix::net::SendFlags;

use super::counts::KernelCounts;
use super::sockets::set_traffic_class;
use crate::host;

/// Payload of the largest datagram.
static ZEROS: [u8; 65_536] = [0; 65_536];

/// A flow of datagrams.
#[derive(Debug)]
pub struct Datagrams {
    socket: OwnedFd,
    source: DatagramSource,
    sizes: host::Datagrams,
    ip: IpVersion,
    /// Code point that the flow's packets are to have.
    dscp: Dscp,
    /// Code point and ECN field that the socket now gives its packets.
    marking: (Dscp, Ecn),
    sent_packets: u64,
    sent_bytes: u64,
    delivered_bytes: u64,
    stopped: bool,
}

impl Datagrams {
    /// Returns a source that sends through `socket`.
    pub fn new(
        socket: OwnedFd,
        source: DatagramSource,
        sizes: host::Datagrams,
        ip: IpVersion,
        dscp: Dscp,
    ) -> Self {
        let (sent_packets, sent_bytes, delivered_bytes) = (0, 0, 0);
        let marking = (Dscp::default(), Ecn::NotEct);
        Datagrams {
            socket,
            source,
            sizes,
            ip,
            dscp,
            marking,
            sent_packets,
            sent_bytes,
            delivered_bytes,
            stopped: false,
        }
    }

    /// Returns the time of the next datagram; `None` if there is none.
    pub fn next_at(&self) -> Option<Instant> {
        if self.stopped { None } else { self.source.next_at() }
    }

    /// Sends the datagram that is due; returns whether the host accepted it.
    pub fn emit(&mut self) -> bool {
        let (size, ecn) = self.source.emit();
        let payload = self.sizes.payload(size);
        let class = (self.dscp, ecn);
        let marked =
            class == self.marking || set_traffic_class(&self.socket, self.ip, self.dscp, ecn).is_ok();
        if marked {
            self.marking = class;
        }
        // A packet whose ECN field could not be set as planned is not sent, because it would be a different
        // packet.
        let taken = marked && rustix::net::send(&self.socket, &ZEROS[..payload], SendFlags::empty()).is_ok();
        if taken {
            self.sent_packets += 1;
            self.sent_bytes += payload as u64 + u64::from(self.sizes.header);
        }
        taken
    }

    /// Stops the source.
    pub fn stop(&mut self) {
        self.stopped = true;
    }

    /// Counts a datagram that has reached its receiver; `payload` is the number of bytes that it
    /// carries.
    pub fn delivered(&mut self, payload: usize) {
        self.delivered_bytes += payload as u64 + u64::from(self.sizes.header);
    }

    /// Returns the counts so far. Datagrams are never retransmitted.
    pub fn counts(&self) -> KernelCounts {
        KernelCounts {
            sent_segments: Some(self.sent_packets),
            sent_bytes: Some(self.sent_bytes),
            delivered_bytes: Some(self.delivered_bytes),
            ..KernelCounts::ZERO
        }
    }
}
