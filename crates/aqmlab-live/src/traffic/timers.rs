//! Timers: a heap of instants, and the end of the run.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicU64, Ordering};

use aqmlab_units::Instant;

use super::flow::FlowKey;

/// Event at an instant.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum TimerEvent {
    /// Wakes a class's population.
    Open {
        /// the class
        class: u16,
        /// for this user
        user: u32,
    },
    /// Wakes a flow's session, or sends its next datagram.
    Wake(FlowKey),
    /// Stops a flow's sending.
    Stop(FlowKey),
}

/// Future events. At any one instant, connections open first.
#[derive(Clone, Debug, Default)]
pub struct Timers(BinaryHeap<Reverse<(Instant, TimerEvent)>>);

impl Timers {
    /// Schedules `event` at `at`.
    pub fn add(&mut self, at: Instant, event: TimerEvent) {
        self.0.push(Reverse((at, event)));
    }

    /// Returns the instant of the next event.
    pub fn next_at(&self) -> Option<Instant> {
        self.0.peek().map(|Reverse((at, _))| *at)
    }

    /// Takes the next event that is due by `now`, with its instant.
    pub fn take(&mut self, now: Instant) -> Option<(Instant, TimerEvent)> {
        if self.next_at()? > now {
            return None;
        }
        self.0.pop().map(|Reverse(next)| next)
    }
}

/// The end of the measured interval, which all threads of a run share; any of them may bring it
/// forward.
#[derive(Debug)]
pub struct RunEnd {
    at_ns: AtomicU64,
}

impl RunEnd {
    /// Creates a run's end at `at`, which may be brought forward.
    pub fn new(at: Instant) -> Self {
        RunEnd { at_ns: AtomicU64::new(at.as_ns()) }
    }

    /// Returns the instant at which the run ends.
    pub fn at(&self) -> Instant {
        Instant::from_ns(self.at_ns.load(Ordering::Acquire))
    }

    /// Brings the end forward to `at`, unless it is already earlier; returns whether it has changed.
    pub fn bring_forward(&self, at: Instant) -> bool {
        self.at_ns.fetch_min(at.as_ns(), Ordering::AcqRel) > at.as_ns()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_in_order_and_not_before() {
        let mut timers = Timers::default();
        let at = Instant::from_ns;
        let flow = FlowKey { class: 0, row: 7, opened: 1 };
        timers.add(at(20), TimerEvent::Stop(flow));
        timers.add(at(20), TimerEvent::Wake(flow));
        timers.add(at(20), TimerEvent::Open { class: 1, user: 0 });
        timers.add(at(10), TimerEvent::Wake(flow));
        assert_eq!(timers.take(at(9)), None);
        assert_eq!(timers.take(at(19)), Some((at(10), TimerEvent::Wake(flow))));
        assert_eq!(timers.take(at(19)), None);
        let rest: Vec<_> = std::iter::from_fn(|| timers.take(at(30))).map(|(_, event)| event).collect();
        let expected =
            [TimerEvent::Open { class: 1, user: 0 }, TimerEvent::Wake(flow), TimerEvent::Stop(flow)];
        assert_eq!(rest, expected);
    }

    #[test]
    fn a_run_ends_at_the_earliest_instant_that_anyone_says() {
        let at = Instant::from_ns;
        let end = RunEnd::new(at(50));
        assert!(!end.bring_forward(at(60)) && end.bring_forward(at(40)) && !end.bring_forward(at(40)));
        assert_eq!(end.at(), at(40));
    }
}
