//! The schedule of a run: samples, the end of the warm-up, and the end of the run, which may come early.

use aqmlab_qdisc::{Classed, Port};
use aqmlab_recording::StoppedBy;
use aqmlab_scenario::{Completed, CountStop, Plan, QueueCount, QueueStop};
use aqmlab_units::{Instant, Span};

/// A host's own action at an instant. Simultaneous actions take place in this order, after everything else at
/// that instant.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Milestone {
    /// Queues and laws are sampled.
    SampleQueues,
    /// Flows are sampled.
    SampleFlows,
    /// The warm-up is over.
    WarmupEnd,
    /// The run is over: whatever happens later is not measured.
    End,
}

impl Milestone {
    /// All milestones, in the order of their numbers.
    const ALL: [Milestone; 4] =
        [Milestone::SampleQueues, Milestone::SampleFlows, Milestone::WarmupEnd, Milestone::End];
}

/// The times of the milestones. The simulator schedules an event for the next milestone; the live
/// router looks up that milestone's time.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// The intervals between samples of queues and of flows; zero if there are none.
    intervals: [Span; 2],
    /// When each milestone is due, indexed by its number; the far future if it never is.
    next: [Instant; 4],
    t0: Instant,
    ended: Option<(Instant, StoppedBy)>,
}

impl Schedule {
    /// Creates the schedule of a plan's run.
    pub fn new(plan: &Plan) -> Self {
        Schedule::with(plan, [plan.record.queues, plan.record.flows])
    }

    /// Creates the schedule for a host that does not sample flows.
    pub fn without_flows(plan: &Plan) -> Self {
        Schedule::with(plan, [plan.record.queues, Span::ZERO])
    }

    /// Creates the schedule for a host that does not sample queues.
    pub fn without_queues(plan: &Plan) -> Self {
        Schedule::with(plan, [Span::ZERO, plan.record.flows])
    }

    fn with(plan: &Plan, intervals: [Span; 2]) -> Self {
        let at = |span: Span| if span.is_zero() { Instant::FAR_FUTURE } else { Instant::ZERO + span };
        Schedule {
            intervals,
            next: [at(intervals[0]), at(intervals[1]), at(plan.warmup), Instant::ZERO + plan.stop.at],
            t0: Instant::ZERO + plan.warmup,
            ended: None,
        }
    }

    /// Returns the next milestone and its time, or `None` once the run is over.
    #[inline]
    pub fn next(&self) -> Option<(Instant, Milestone)> {
        if self.ended.is_some() {
            return None;
        }
        let mut next = (self.next[0], Milestone::SampleQueues);
        for milestone in &Milestone::ALL[1..] {
            let at = self.next[*milestone as usize];
            if at < next.0 {
                next = (at, *milestone);
            }
        }
        Some(next)
    }

    /// Returns when a milestone is due next; the far future if it is not due again.
    #[inline]
    pub fn at(&self, milestone: Milestone) -> Instant {
        self.next[milestone as usize]
    }

    /// Records that a sample has been taken, or that the warm-up has ended. [`Schedule::end`] handles the end
    /// of the run.
    pub fn pass(&mut self, milestone: Milestone) {
        let next = &mut self.next[milestone as usize];
        *next = match milestone {
            Milestone::SampleQueues | Milestone::SampleFlows => *next + self.intervals[milestone as usize],
            Milestone::WarmupEnd | Milestone::End => Instant::FAR_FUTURE,
        };
    }

    /// Records the end of the run.
    pub fn end(&mut self, at: Instant, why: StoppedBy) {
        self.t0 = self.t0.min(at);
        self.ended = Some((at, why));
    }

    /// Returns whether the warm-up is over but the run is not.
    #[inline]
    pub fn is_measuring(&self) -> bool {
        self.next[Milestone::WarmupEnd as usize] == Instant::FAR_FUTURE && self.ended.is_none()
    }

    /// Returns the beginning of the measured interval: the end of the warm-up, or the end of the run if that
    /// came first.
    pub const fn t0(&self) -> Instant {
        self.t0
    }

    /// Returns when and why the run ended, if it has.
    pub const fn ended(&self) -> Option<(Instant, StoppedBy)> {
        self.ended
    }
}

/// Returns whether the count at a queue has reached the number that ends the run.
pub fn queue_stop_is_reached<P: Classed>(stop: &QueueStop, port: &Port<P>) -> bool {
    let classes = port.books().classes();
    let count: u64 = match stop.quantity {
        QueueCount::Arrivals => classes.map(|c| c.arrived().packets).sum(),
        QueueCount::Drops => classes.map(|c| c.dropped_total().packets).sum(),
        QueueCount::Marks => classes.map(|c| c.marked_total().packets).sum(),
        QueueCount::Backlog => port.backlog().packets.get(),
    };
    count >= stop.count
}

/// Counts the flows or requests that have completed since the end of the warm-up, if their number may end the
/// run.
#[derive(Clone, Debug)]
pub struct Completions {
    stop: Option<CountStop>,
    counted: u64,
}

impl Completions {
    /// Creates a count of zero for a run of `plan`.
    pub fn new(plan: &Plan) -> Self {
        Completions { stop: plan.stop.completed.clone(), counted: 0 }
    }

    /// Records that a flow or a request of `class` has completed. Returns whether that ends the
    /// run.
    pub fn count(&mut self, class: usize, what: Completed) -> bool {
        match &self.stop {
            Some(stop) if stop.of == what && stop.classes.contains(&class) => {
                self.counted += 1;
                self.counted >= stop.count
            }
            _ => false,
        }
    }

    /// Returns whether the count is within a sixteenth of the number that ends the run.
    pub fn is_near_end(&self) -> bool {
        self.stop.as_ref().is_some_and(|stop| self.counted + stop.count / 16 + 1 >= stop.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milestones_come_in_order_and_none_after_the_end() {
        let text = "title = \"t\"\nduration = \"300ms\"\nwarmup = \"200ms\"\n\
                    record = { queues = \"100ms\", flows = \"200ms\" }\n\
                    topology = { kind = \"dumbbell\", rate = \"10Mbit\", delay = \"1ms\", queue = { kind = \"droptail\", limit = \"9p\" } }\n\
                    [[traffic]]\nname = \"a\"\nkind = \"bulk\"\n";
        let plan = aqmlab_scenario::parse(text, "test").unwrap_or_else(|e| panic!("{e}")).arms.remove(0);
        let mut schedule = Schedule::new(&plan);
        let mut passed = Vec::new();
        while let Some((at, milestone)) = schedule.next() {
            passed.push((at.as_ns() / 1_000_000, milestone));
            assert_eq!(schedule.is_measuring(), passed.len() > 4, "{passed:?}");
            match milestone {
                Milestone::End => schedule.end(at, StoppedBy::Time),
                other => schedule.pass(other),
            }
        }
        let (queues, flows) = (Milestone::SampleQueues, Milestone::SampleFlows);
        let expected =
            [(100, queues), (200, queues), (200, flows), (200, Milestone::WarmupEnd), (300, queues)];
        assert_eq!(passed[..5], expected);
        assert_eq!(passed[5..], [(300, Milestone::End)]);
        assert_eq!(schedule.t0().as_ns(), 200_000_000);
    }
}
