//! A ring of bytes between two threads: each packet enters as a whole or not at all, and packets leave in
//! order.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use aqmlab_qdisc::Reason;
use aqmlab_recording::capture::{PacketAtPort, Reasons};
use aqmlab_units::{Bytes, Instant, Span};
use rtrb::{Consumer, Producer, RingBuffer};

/// Number of bytes that precede those of the packet: port, captured length and original length (u32 each),
/// marks and drop reason (u8 each), two unused bytes, time, waiting time and identification (u64 each). These
/// fields are in native byte order, because they never leave the machine.
const HEAD: usize = 40;
const NOT_DROPPED: u8 = u8::MAX;

/// For each port, the number of packets that did not fit.
pub type Missed = Arc<[AtomicU64]>;

/// The producing end of the ring, used by the data plane.
pub struct Sender {
    ring: Producer<u8>,
    snap: usize,
    /// Buffer in which a packet is assembled before it enters the ring.
    piece: Vec<u8>,
    missed: Missed,
}

/// The consuming end of the ring, used by the thread that writes the capture file.
pub struct Receiver {
    ring: Consumer<u8>,
    /// The bytes of the packet that was taken out last.
    bytes: Vec<u8>,
    /// For each port, the number of packets that did not fit.
    pub missed: Missed,
}

/// A packet taken from the ring.
pub struct Received<'a> {
    /// The packet and its event.
    pub packet: PacketAtPort,
    /// Its first bytes.
    pub head: &'a [u8],
    /// Length of the whole packet.
    pub len: u32,
}

/// Returns the two ends of a ring of `size` bytes, for packets of `ports` ports and at most `snap` bytes of
/// each packet.
pub fn of(size: usize, ports: usize, snap: usize) -> (Sender, Receiver) {
    let (mut producer, mut consumer) = RingBuffer::new(size);
    touch(&mut producer, &mut consumer);
    let missed: Missed = (0..ports).map(|_| AtomicU64::new(0)).collect();
    let sender =
        Sender { ring: producer, snap, piece: Vec::with_capacity(HEAD + snap), missed: missed.clone() };
    (sender, Receiver { ring: consumer, bytes: Vec::with_capacity(snap), missed })
}

/// Writes to the whole ring once, because the system allocates each page when it is first written, which
/// should not happen during the run.
fn touch(producer: &mut Producer<u8>, consumer: &mut Consumer<u8>) {
    if let Ok(all) = producer.write_chunk(producer.buffer().capacity()) {
        all.commit_all();
    }
    if let Ok(all) = consumer.read_chunk(consumer.slots()) {
        all.commit_all();
    }
}

impl Sender {
    /// Adds a packet, or counts it as missed. Both cases take the same time and allocate nothing.
    pub fn send(&mut self, packet: &PacketAtPort, frame: &[u8]) {
        let kept = &frame[..frame.len().min(self.snap)];
        self.piece.clear();
        self.piece.extend_from_slice(&packet.port.to_ne_bytes());
        self.piece.extend_from_slice(&(kept.len() as u32).to_ne_bytes());
        self.piece.extend_from_slice(&(frame.len() as u32).to_ne_bytes());
        let dropped = packet.dropped.map_or(NOT_DROPPED, |reason| reason as u8);
        self.piece.extend_from_slice(&[packet.marked.bits(), dropped, 0, 0]);
        self.piece.extend_from_slice(&packet.at.as_ns().to_ne_bytes());
        self.piece.extend_from_slice(&packet.waited.as_ns().to_ne_bytes());
        self.piece.extend_from_slice(&packet.id.to_ne_bytes());
        self.piece.extend_from_slice(kept);
        if self.ring.push_entire_slice(&self.piece).is_err() {
            self.missed[packet.port as usize].fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Receiver {
    /// Takes the next packet out of the ring, if there is one.
    pub fn receive(&mut self) -> Option<Received<'_>> {
        let mut head = [0; HEAD];
        self.ring.pop_entire_slice(&mut head).ok()?;
        let u32_at = |at: usize| u32::from_ne_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let u64_at = |at: usize| u64::from_ne_bytes(std::array::from_fn(|i| head[at + i]));
        self.bytes.resize(u32_at(4) as usize, 0);
        self.ring.pop_entire_slice(&mut self.bytes).expect("a packet enters as a whole");
        let len = u32_at(8);
        let packet = PacketAtPort {
            port: u32_at(0),
            id: u64_at(32),
            at: Instant::from_ns(u64_at(16)),
            waited: Span::ns(u64_at(24)),
            marked: Reasons::from_bits(head[12]),
            dropped: Reason::ALL.get(usize::from(head[13])).copied(),
            wire_len: Bytes::new(u64::from(len)),
        };
        Some(Received { packet, head: &self.bytes, len })
    }

    /// Whether no further packets will follow.
    pub fn is_over(&self) -> bool {
        // The order of the two checks matters: once the other end is gone, nothing more can enter the ring.
        self.ring.is_abandoned() && self.ring.is_empty()
    }
}
