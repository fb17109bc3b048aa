//! Announcements of connections: the router must know the new owner of a client port before the owner's first
//! frame arrives.
//!
//! The opening side announces each connection before its SYN leaves; the router reads the announcements when
//! it sees a SYN. The two share a lock-free ring: neither ever waits for the other, and neither allocates.

use aqmlab_network::{FlowPath, OwnPipe};
use aqmlab_qdisc::Pipe;
use rtrb::{Consumer, Producer, RingBuffer};

/// Maximum number of pipes in a row of the flow table: access links and delay stages, in both directions.
pub const MOST_PIPES: usize = 16;

/// Number of announcements that may wait for the router. The router reads them at each SYN, so only a few
/// ever wait.
const WAITING: usize = 1024;

/// A connection that is about to open.
pub struct Announcement {
    pub class: u16,
    /// Its client port.
    pub row: u32,
    /// Its flow, which is the index of its user.
    pub flow: u32,
    /// Its own pipes, in the order in which its class lists them.
    pub pipes: [Option<Pipe>; MOST_PIPES],
}

/// Announces connections to a router.
pub struct Announcer {
    ring: Producer<Announcement>,
    /// For each class, the pipes that every connection has to itself.
    pipes: Vec<Vec<OwnPipe>>,
}

/// Error: the ring is full, because the router has been too busy to read it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoRoom;

impl Announcer {
    /// Announces a connection of `class` that is about to open from the client port `row` over
    /// `path`. Its packets are counted in the books of `flow`.
    ///
    /// # Errors
    /// [`NoRoom`] if the router has not yet read the earlier announcements. The connection must then not be
    /// opened.
    pub fn announce(&mut self, class: usize, row: u32, flow: u32, path: &FlowPath<'_>) -> Result<(), NoRoom> {
        let mut pipes = [const { None }; MOST_PIPES];
        for (pipe, &which) in pipes.iter_mut().zip(&self.pipes[class]) {
            *pipe = Some(path.pipe(which));
        }
        self.ring.push(Announcement { class: class as u16, row, flow, pipes }).map_err(|_| NoRoom)
    }
}

/// Returns the two ends of a ring for announcements. For each class, `pipes` lists the pipes that every
/// connection has to itself.
pub fn ring(pipes: Vec<Vec<OwnPipe>>) -> (Announcer, Consumer<Announcement>) {
    debug_assert!(pipes.iter().all(|pipes| pipes.len() <= MOST_PIPES), "{pipes:?}");
    let (producer, consumer) = RingBuffer::new(WAITING);
    (Announcer { ring: producer, pipes }, consumer)
}
