//! A kernel queue as the router drives it: copies enter and leave it, and thereby reveal drops and marks.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, Mutex};

use aqmlab_qdisc::Histogram;
use aqmlab_units::Instant;

use super::mirror::{Habits, Held, Mirror, Returned, locked};
use super::path::KernelPath;
use crate::frame::internet_checksum;

/// Size of the largest packet that a queue returns.
const LONGEST: usize = 1 << 16;
/// The initial time to live of a copy; the kernel decrements it in the copy, not in the packet itself.
const TIME_TO_LIVE: u8 = 64;
/// Length of the shortest IPv4 header.
const HEADER: usize = 20;

/// A kernel queue at a link.
pub struct KernelQueue {
    path: Option<Box<dyn KernelPath>>,
    held: Arc<Mutex<Held>>,
    copy: Vec<u8>,
    /// Number of drops that the kernel has reported so far.
    drops: u32,
    /// The time at which the link became idle.
    idle_since: Instant,
    books: KernelQueueBooks,
}

/// Observations of a kernel queue that supplement its port's books. They cover the time from the
/// start of the run to the end of the drain.
#[derive(Clone, PartialEq, Debug)]
pub struct KernelQueueBooks {
    /// Packets handed to the kernel.
    pub offered: u64,
    /// Packets that returned.
    pub returned: u64,
    /// Packets found to have been dropped.
    pub dropped: u64,
    /// Packets that returned with a new mark.
    pub marked: u64,
    /// Packets that came out of the queue without having entered it.
    pub strays: u64,
    /// Lengths of the periods during which the link was idle although a packet was waiting. They
    /// show how late the kernel's shaper was. Empty if the discipline itself holds packets.
    pub lateness: Histogram,
}

impl KernelQueue {
    /// Returns a queue that is not yet connected, and the discipline for its port.
    pub fn new(habits: Habits) -> (Self, Mirror) {
        let (mirror, held) = Mirror::new();
        locked(&held).habits = habits;
        let mut lateness = Histogram::new();
        lateness.reserve();
        let books = KernelQueueBooks { offered: 0, returned: 0, dropped: 0, marked: 0, strays: 0, lateness };
        let queue = KernelQueue {
            path: None,
            held,
            copy: vec![0; LONGEST],
            drops: 0,
            idle_since: Instant::ZERO,
            books,
        };
        (queue, mirror)
    }

    /// Connects the queue to the kernel.
    pub fn connect(&mut self, path: Box<dyn KernelPath>) {
        self.path = Some(path);
    }

    /// Returns the descriptor that becomes readable when a packet has left; `None` if the queue is not
    /// connected.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.path.as_ref().map(|path| path.fd())
    }

    /// Hands the kernel a copy of the packet that is about to arrive at the port.
    ///
    /// # Errors
    /// Any error from the operating system.
    pub fn offer(&mut self, packet: &[u8]) -> io::Result<()> {
        let Some(path) = &mut self.path else { return Ok(()) };
        let mut held = locked(&self.held);
        held.coming = None;
        let Some(number) = held.free_number() else { return Ok(()) };
        let copy = &mut self.copy[..packet.len()];
        copy.copy_from_slice(packet);
        set_number(copy, number);
        self.books.offered += 1;
        path.offer(copy)?;
        let drops = path.state()?.drops;
        let has_dropped = drops != self.drops;
        self.drops = drops;
        held.coming = Some((number, has_dropped && held.habits.at_arrival));
        drop(held);
        self.collect()
    }

    /// Receives the packets that the kernel has forwarded.
    ///
    /// # Errors
    /// Any error from the operating system.
    pub fn collect(&mut self) -> io::Result<()> {
        let Some(path) = &mut self.path else { return Ok(()) };
        let mut held = locked(&self.held);
        while let Some(length) = path.take(&mut self.copy)? {
            let returned = number_of(&self.copy[..length]);
            match returned.is_some_and(|returned| held.come_back(returned)) {
                true => self.books.returned += 1,
                false => self.books.strays += 1,
            }
        }
        Ok(())
    }

    /// Records that the link has become idle.
    pub fn has_become_idle(&mut self, now: Instant) {
        self.idle_since = now;
    }

    /// Records that the link's idle time ends, because a packet is about to leave; `measured` says
    /// whether the idle time counts.
    pub fn ends_idle_time(&mut self, now: Instant, measured: bool) {
        let held = locked(&self.held);
        if let Some(arrived) = held.arrived()
            && measured
            && !held.habits.holds
        {
            let late = now.saturating_since(self.idle_since.max(arrived));
            self.books.lateness.add(late.as_ns(), 1);
        }
    }

    /// Returns the books.
    pub fn books(&self) -> KernelQueueBooks {
        let held = locked(&self.held);
        KernelQueueBooks { dropped: held.dropped, marked: held.marked, ..self.books.clone() }
    }
}

/// Puts a number in place of the identification of an IPv4 header, and sets the initial time to live and the
/// checksum.
fn set_number(packet: &mut [u8], number: u16) {
    let header = usize::from(packet[0] & 0x0f) * 4;
    packet[4..6].copy_from_slice(&number.to_be_bytes());
    packet[8] = TIME_TO_LIVE;
    packet[10..12].fill(0);
    let checksum = internet_checksum(&packet[..header]);
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
}

/// Returns the number and the traffic class of a copy; `None` if `packet` cannot be a copy.
fn number_of(packet: &[u8]) -> Option<Returned> {
    if packet.len() < HEADER || packet[0] >> 4 != 4 {
        return None;
    }
    Some(Returned { number: u16::from_be_bytes([packet[4], packet[5]]), traffic_class: packet[1] })
}
