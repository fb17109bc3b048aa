//! Sparse flows in both directions, as between a game's client and its server.

use alloc::sync::Arc;
use alloc::vec::Vec;

use aqmlab_random::Stream;
use aqmlab_traffic::{Distribution, End};
use aqmlab_units::{Bytes, Instant, Span};
use schemars::JsonSchema;
use serde::Serialize;

use crate::frames::Frames;
use crate::talk::{Datagram, LIFETIME, Noticed, Unfinished, earlier};

/// The updates that one end of a game sends.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Updates {
    /// Updates per second.
    #[serde(rename = "per_s")]
    pub per_s: f64,
    /// Sizes at the network layer.
    #[serde(rename = "size_bytes")]
    pub size: Distribution<Bytes>,
}

/// The updates of a class of games.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct GamePlan {
    /// What the client sends.
    pub up: Updates,
    /// What the server sends.
    pub down: Updates,
    /// Updates are sent up to this much late, uniformly distributed.
    #[serde(rename = "jitter_ns", skip_serializing_if = "is_zero")]
    pub jitter: Span,
    /// Time by which an update should arrive.
    #[serde(rename = "deadline_ns")]
    pub deadline: Span,
}

fn is_zero(span: &Span) -> bool {
    span.is_zero()
}

impl GamePlan {
    /// The version of this part, incremented whenever a change to it changes a result.
    pub const VERSION: u32 = 1;

    fn of(&self, end: End) -> &Updates {
        match end {
            End::Client => &self.up,
            End::Server => &self.down,
        }
    }
}

/// The streams of draws of one game: sizes and jitter of the client, then of the server.
pub type GameDraws = [[Stream; 2]; 2];

/// A game between two ends.
#[derive(Clone, Debug)]
pub struct Game {
    plan: Arc<GamePlan>,
    start: Instant,
    sides: [Side; 2],
    stopped: bool,
}

#[derive(Clone, Debug)]
struct Side {
    next_at: Instant,
    sent: u64,
    draws: [Stream; 2],
    frames: Frames,
}

impl Game {
    /// Creates a game whose ends begin at `start`.
    pub fn new(plan: Arc<GamePlan>, start: Instant, draws: GameDraws) -> Self {
        let sides = End::ALL.map(|from| {
            let to = from.other();
            let draws = draws[from as usize];
            // Updates are not shown, so they do not freeze.
            let frames = Frames::new(to, plan.deadline, LIFETIME);
            Side { next_at: start, sent: 0, draws, frames }
        });
        let mut game = Game { plan, start, sides, stopped: false };
        for end in End::ALL {
            game.schedule(end);
        }
        game
    }

    /// Sets when the next update of an end is due: its tick, and the jitter.
    fn schedule(&mut self, end: End) {
        let side = &mut self.sides[end as usize];
        let tick = Span::ns((side.sent as f64 * 1e9 / self.plan.of(end).per_s) as u64);
        let unit = side.draws[1].from_draw(side.sent).unit();
        let jitter = Span::ns((self.plan.jitter.as_ns() as f64 * unit) as u64);
        // A jitter longer than a tick does not change the order.
        side.next_at = (self.start + tick + jitter).max(side.next_at);
    }

    pub(crate) fn next_at(&self) -> Instant {
        if self.stopped {
            return Instant::FAR_FUTURE;
        }
        earlier(self.sides[0].next_at, self.sides[1].next_at)
    }

    pub(crate) fn stop(&mut self) {
        self.stopped = true;
    }

    pub(crate) fn poll(&mut self, now: Instant, noticed: &mut Vec<Noticed>) -> Option<(End, Datagram)> {
        if self.stopped {
            return None;
        }
        let end = End::ALL.into_iter().find(|&end| self.sides[end as usize].next_at <= now)?;
        let sizes = &self.plan.of(end).size;
        let side = &mut self.sides[end as usize];
        let number = side.sent;
        let wire_len = sizes.draw(number, &mut side.draws[0]);
        side.sent += 1;
        side.frames.captured(now, 1, noticed);
        let to = end.other();
        noticed.push(Noticed::Captured { to, at: now, bytes: wire_len });
        self.schedule(end);
        Some((end, Datagram { number, wire_len, is_data: true }))
    }

    pub(crate) fn arrive(&mut self, now: Instant, end: End, number: u64, noticed: &mut Vec<Noticed>) {
        self.sides[end.other() as usize].frames.arrived(now, number, noticed);
    }

    pub(crate) fn unfinished(&self) -> impl Iterator<Item = Unfinished> {
        self.sides.iter().flat_map(|side| side.frames.unfinished())
    }
}
