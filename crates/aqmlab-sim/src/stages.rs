//! What a flow passes by itself in delay stages.

use aqmlab_network::FlowPath;
use aqmlab_qdisc::{Passage, Pipe};
use aqmlab_scenario::StagePlace;
use aqmlab_units::{Bytes, Instant, Span};

use crate::packet::Toward;

/// A flow's passage through one delay stage, in one direction. It has one feeder, so that what enters first comes out first.
pub struct StagePipe {
    pipe: Pipe,
    /// When the last packet came out, and how many before it came out at that instant.
    last: Option<(Instant, u64)>,
}

impl StagePipe {
    /// One that nothing has entered.
    pub const fn new(pipe: Pipe) -> Self {
        StagePipe { pipe, last: None }
    }

    /// The constant delay.
    pub const fn delay(&self) -> Span {
        self.pipe.delay()
    }

    /// A packet of `size` enters at `now`: when it comes out, and in which turn of that instant. `None` if it is lost.
    pub fn pass(&mut self, now: Instant, size: Bytes) -> Option<(Instant, u64)> {
        let Passage::Due(due) = self.pipe.pass(now, size) else { return None };
        let turn = self.last.filter(|(at, _)| *at == due).map_or(0, |(_, turn)| turn + 1);
        self.last = Some((due, turn));
        Some((due, turn))
    }
}

/// A flow's passages through the delay stages in routers.
pub struct RouterStages {
    /// By direction ([`Toward`]), in the order in which packets meet them.
    pipes: [Vec<StagePipe>; 2],
    /// Packets lost here.
    pub lost_packets: u64,
}

impl RouterStages {
    /// Those of a flow that meets stages at these places, by direction.
    pub fn new(path: &FlowPath<'_>, places: &[Vec<StagePlace>; 2]) -> Self {
        let pipe = |direction, place| StagePipe::new(path.stage(direction, place).expect("a stage is there"));
        let pipes =
            [0, 1].map(|direction| places[direction].iter().map(|&place| pipe(direction, place)).collect());
        RouterStages { pipes, lost_packets: 0 }
    }

    /// What they add to the round-trip time.
    pub fn delay(&self) -> Span {
        self.pipes.iter().flatten().fold(Span::ZERO, |sum, stage| sum + stage.delay())
    }

    /// A packet of `size` enters the stage of this number on its way at `now`: see [`StagePipe::pass`].
    pub fn pass(&mut self, toward: Toward, number: u8, now: Instant, size: Bytes) -> Option<(Instant, u64)> {
        let passage = self.pipes[toward as usize][usize::from(number)].pass(now, size);
        self.lost_packets += u64::from(passage.is_none());
        passage
    }
}
