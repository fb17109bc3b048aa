//! A flow's own passages through delay stages.

use aqmlab_network::FlowPath;
use aqmlab_qdisc::{Passage, Pipe};
use aqmlab_units::{Bytes, Instant, Span};

use crate::event::MOST_TURNS;
use crate::packet::Toward;

/// A flow's passage through one delay stage, in one direction. A passage has one feeder, so packets
/// leave it in the order in which they enter, unless its jitter reorders them.
pub struct StagePipe {
    delay: Span,
    /// The pipe, if it does more than delay all packets by the same amount.
    more: Option<Box<Pipe>>,
    /// When the last packet leaves (the far future if none has entered yet), and how many packets
    /// leave before it at the same instant; if packets overtake each other, how many have entered before it.
    last_due: Instant,
    last_turn: u64,
    reorders: bool,
}

impl StagePipe {
    /// Creates a passage that no packet has entered yet.
    pub fn new(pipe: Pipe) -> Self {
        let (delay, reorders) = (pipe.delay(), pipe.reorders());
        let more = (!pipe.is_constant()).then(|| Box::new(pipe));
        StagePipe { delay, more, last_due: Instant::FAR_FUTURE, last_turn: 0, reorders }
    }

    /// Returns the constant part of the delay.
    pub const fn delay(&self) -> Span {
        self.delay
    }

    /// Passes a packet of `size` that enters at `now`. Returns when the packet leaves, and its turn
    /// at that instant, or `None` if it is lost.
    #[inline]
    pub fn pass(&mut self, now: Instant, size: Bytes) -> Option<(Instant, u64)> {
        let due = match &mut self.more {
            None => now + self.delay,
            Some(pipe) => match pipe.pass(now, size) {
                Passage::Due(due) => due,
                Passage::Lost => return None,
            },
        };
        self.last_turn = if due == self.last_due || self.reorders { next_turn(self.last_turn) } else { 0 };
        self.last_due = due;
        Some((due, self.last_turn))
    }
}

/// Returns the turn after this one. If packets overtake each other, turns go round; two packets with the same turn are far
/// apart in time.
const fn next_turn(turn: u64) -> u64 {
    (turn + 1) % MOST_TURNS
}

/// A flow's passages through delay stages in routers.
pub struct RouterStages {
    /// The passages in the order in which packets meet them, starting with the passages to the
    /// receiver.
    pipes: Box<[StagePipe]>,
    /// The number of passages to the receiver.
    to_receiver: usize,
    /// Number of packets lost in these passages.
    pub lost_packets: u64,
}

impl RouterStages {
    /// Creates the passages of a flow through the stages with these numbers, which are listed per
    /// direction.
    pub fn new(path: &FlowPath<'_>, numbers: &[Vec<usize>; 2]) -> Self {
        let pipe = |direction| move |&number: &usize| StagePipe::new(path.stage_of(direction, number));
        let pipes = numbers[0].iter().map(pipe(0)).chain(numbers[1].iter().map(pipe(1))).collect();
        RouterStages { pipes, to_receiver: numbers[0].len(), lost_packets: 0 }
    }

    /// Returns the delay that the passages add to the round-trip time.
    pub fn delay(&self) -> Span {
        self.pipes.iter().fold(Span::ZERO, |sum, stage| sum + stage.delay())
    }

    /// Passes a packet of `size` that enters, at `now`, the stage with this number on its path: see
    /// [`StagePipe::pass`].
    #[inline]
    pub fn pass(&mut self, toward: Toward, number: u8, now: Instant, size: Bytes) -> Option<(Instant, u64)> {
        let before = if toward == Toward::Receiver { 0 } else { self.to_receiver };
        let passage = self.pipes[before + usize::from(number)].pass(now, size);
        self.lost_packets += u64::from(passage.is_none());
        passage
    }
}
