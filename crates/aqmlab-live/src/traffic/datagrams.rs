//! A flow of datagrams: a source, and what its receiver has got.

use std::os::fd::OwnedFd;

use aqmlab_traffic::PacketSource;
use aqmlab_units::Instant;
use rustix::net::SendFlags;

use super::counts::FlowCounts;
use super::info::Sent;
use crate::host;

/// Payload of the largest datagram.
static ZEROS: [u8; 65_536] = [0; 65_536];

/// A flow of datagrams.
#[derive(Debug)]
pub struct Datagrams {
    socket: OwnedFd,
    source: PacketSource,
    sizes: host::Datagrams,
    sent_packets: u64,
    sent_bytes: u64,
    delivered_bytes: u64,
    stopped: bool,
}

impl Datagrams {
    /// A source that sends through `socket`.
    pub fn new(socket: OwnedFd, source: PacketSource, sizes: host::Datagrams) -> Self {
        let (sent_packets, sent_bytes, delivered_bytes) = (0, 0, 0);
        Datagrams { socket, source, sizes, sent_packets, sent_bytes, delivered_bytes, stopped: false }
    }

    /// When the next leaves; `None` if none does.
    pub fn next_at(&self) -> Option<Instant> {
        (!self.stopped).then(|| self.source.next_at())
    }

    /// Sends the one that is due. Did the host take it?
    pub fn emit(&mut self) -> bool {
        let payload = self.sizes.payload(self.source.emit());
        let taken = rustix::net::send(&self.socket, &ZEROS[..payload], SendFlags::empty()).is_ok();
        if taken {
            self.sent_packets += 1;
            self.sent_bytes += payload as u64 + u64::from(self.sizes.header);
        }
        taken
    }

    /// It sends no more.
    pub fn stop(&mut self) {
        self.stopped = true;
    }

    /// One of them, with this payload, has reached its receiver.
    pub fn delivered(&mut self, payload: usize) {
        self.delivered_bytes += payload as u64 + u64::from(self.sizes.header);
    }

    /// What has been counted so far. There is nothing that could be sent again.
    pub fn counts(&self) -> FlowCounts {
        let sent = Sent {
            segments: self.sent_packets,
            bytes: self.sent_bytes,
            timeouts: Some(0),
            duplicates: Some(0),
            ..Sent::default()
        };
        FlowCounts { sent, delivered_bytes: self.delivered_bytes }
    }
}
