//! A stage of pipes that itself stores the packets while they are delayed. It provides per-flow
//! delay, rate and loss for hosts that have no event queue.

use alloc::collections::BinaryHeap;
use alloc::format;
use alloc::vec::Vec;
use core::cmp::{Ordering, Reverse};

use aqmlab_units::{Bytes, Instant, Packets};

use crate::books::{Imbalance, Tally};
use crate::{Backlog, Cause, Observer, Packet, Passage, Pipe, Reason};

/// Delays each packet in the pipe that a rule selects, like dummynet and ns-2's DelayBox.
///
/// Packets in the same pipe leave in the order in which they arrived. Packets in different pipes leave in the
/// order of their due times; if two are due at the same time, the one in the pipe with the lower number
/// leaves first. Such a tie is therefore never decided by which of the two packets arrived first.
/// Packets lost in a pipe are reported as [`Reason::Injected`]. Packets beyond the cap are reported as
/// [`Reason::Overflow`] and counted separately.
pub struct DelayStage<P, Rule> {
    pipes: Vec<Pipe>,
    rule: Rule,
    cap: Packets,
    held: BinaryHeap<Reverse<Held<P>>>,
    held_bytes: Bytes,
    next_number: u64,
    books: StageBooks,
}

/// The counts of a delay stage since its creation.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct StageBooks {
    /// Packets that entered.
    pub arrived: Tally,
    /// Packets that left.
    pub departed: Tally,
    /// Packets lost in a pipe.
    pub lost: Tally,
    /// Packets refused because the stage was full.
    pub overflowed: Tally,
}

struct Held<P> {
    due: Instant,
    pipe: u32,
    number: u64,
    packet: P,
}

impl<P: Packet, Rule: Fn(&P) -> usize> DelayStage<P, Rule> {
    /// Creates a stage of `pipes`; `rule` returns the index of each packet's pipe. At most `cap`
    /// packets are held.
    pub fn new(pipes: Vec<Pipe>, rule: Rule, cap: Packets) -> Self {
        let (held, books) = (BinaryHeap::new(), StageBooks::default());
        DelayStage { pipes, rule, cap, held, held_bytes: Bytes::ZERO, next_number: 0, books }
    }

    /// Reserves room for this many packets, so that holding them allocates nothing.
    pub fn reserve(&mut self, packets: usize) {
        self.held.reserve(packets);
    }

    /// Replaces pipe `number` from now on. Packets that are already in the old pipe still leave when they are
    /// due.
    ///
    /// # Panics
    /// If no pipe has this number.
    pub fn set_pipe(&mut self, number: usize, pipe: Pipe) {
        self.pipes[number] = pipe;
    }

    /// Accepts a packet.
    ///
    /// # Panics
    /// If the rule names a pipe that does not exist.
    pub fn accept(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) {
        let size = pkt.wire_len();
        add(&mut self.books.arrived, size);
        if self.held.len() as u64 >= self.cap.get() {
            add(&mut self.books.overflowed, size);
            obs.dropped(now, pkt, Cause::of(Reason::Overflow));
            return;
        }
        let pipe = (self.rule)(&pkt);
        match self.pipes[pipe].pass(now, size) {
            Passage::Lost => {
                add(&mut self.books.lost, size);
                obs.dropped(now, pkt, Cause::of(Reason::Injected));
            }
            Passage::Due(due) => {
                let (pipe, number) = (pipe as u32, self.next_number);
                self.held.push(Reverse(Held { due, pipe, number, packet: pkt }));
                self.held_bytes += size;
                self.next_number += 1;
            }
        }
    }

    /// Returns the next packet that is due at `now`, with its due time; call it until it returns
    /// `None`.
    pub fn release(&mut self, now: Instant) -> Option<(Instant, P)> {
        if self.deadline()? > now {
            return None;
        }
        let Reverse(Held { due, packet, .. }) = self.held.pop()?;
        self.held_bytes -= packet.wire_len();
        add(&mut self.books.departed, packet.wire_len());
        Some((due, packet))
    }

    /// Returns the instant at which the next packet is due.
    pub fn deadline(&self) -> Option<Instant> {
        self.held.peek().map(|Reverse(h)| h.due)
    }

    /// Returns the backlog.
    pub fn backlog(&self) -> Backlog {
        Backlog { packets: Packets::new(self.held.len() as u64), bytes: self.held_bytes }
    }

    /// Returns the counts.
    pub const fn books(&self) -> &StageBooks {
        &self.books
    }

    /// Checks that arrived = departed + lost + overflowed + held, in packets and bytes.
    ///
    /// # Errors
    /// Returns the identity, with both sides, if it does not hold.
    pub fn check_books(&self) -> Result<(), Imbalance> {
        let StageBooks { arrived, departed, lost, overflowed } = self.books;
        let gone = departed.plus(lost).plus(overflowed).plus(Tally::of(self.backlog()));
        if arrived == gone {
            return Ok(());
        }
        Err(Imbalance(format!("arrived = departed + lost + overflowed + held: {arrived:?} != {gone:?}")))
    }
}

fn add(tally: &mut Tally, size: Bytes) {
    *tally = tally.plus(Tally { packets: 1, bytes: size.get() });
}

impl<P> Held<P> {
    fn key(&self) -> (Instant, u32, u64) {
        (self.due, self.pipe, self.number)
    }
}

impl<P> PartialEq for Held<P> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl<P> Eq for Held<P> {}

impl<P> PartialOrd for Held<P> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<P> Ord for Held<P> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}
