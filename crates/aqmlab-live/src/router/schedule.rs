//! The schedule of a run: samples, the end of the warm-up, the end.

use aqmlab_recording::StoppedBy;
use aqmlab_scenario::Plan;
use aqmlab_units::{Instant, Span};

/// What a router does at an instant by itself. Of one instant they go in this order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Milestone {
    /// Its ports are sampled.
    Sample,
    /// The warm-up is over.
    WarmupEnd,
    /// The run is over: what is counted from now on is not measured.
    End,
}

/// When these come.
pub struct Schedule {
    interval: Span,
    /// Far future where there is none to come.
    next_sample: Instant,
    warmup_ends: Instant,
    ends: Instant,
    /// When measuring began.
    pub t0: Instant,
    /// When and why the run ended.
    pub ended: Option<(Instant, StoppedBy)>,
}

impl Schedule {
    /// That of a plan's run.
    pub fn new(plan: &Plan) -> Self {
        let interval = plan.record.queues;
        let at = |span: Span| if span.is_zero() { Instant::FAR_FUTURE } else { Instant::ZERO + span };
        Schedule {
            interval,
            next_sample: at(interval),
            warmup_ends: at(plan.warmup),
            ends: Instant::ZERO + plan.stop.at,
            t0: Instant::ZERO + plan.warmup,
            ended: None,
        }
    }

    /// What comes next, and when; `None` once the run is over.
    #[inline]
    pub fn next(&self) -> Option<(Instant, Milestone)> {
        if self.ended.is_some() {
            return None;
        }
        let (mut at, mut milestone) = (self.next_sample, Milestone::Sample);
        if self.warmup_ends < at {
            (at, milestone) = (self.warmup_ends, Milestone::WarmupEnd);
        }
        if self.ends < at {
            (at, milestone) = (self.ends, Milestone::End);
        }
        Some((at, milestone))
    }

    /// A sample has been taken.
    pub fn sampled(&mut self) {
        self.next_sample += self.interval;
    }

    /// The warm-up is over.
    pub fn warmed_up(&mut self) {
        self.warmup_ends = Instant::FAR_FUTURE;
    }

    /// Is the warm-up over, and the run not?
    pub fn is_measuring(&self) -> bool {
        self.warmup_ends == Instant::FAR_FUTURE && self.ended.is_none()
    }

    /// The run is over.
    pub fn end(&mut self, at: Instant, why: StoppedBy) {
        self.t0 = self.t0.min(at);
        self.ended = Some((at, why));
    }
}
