//! What is due when: a heap of instants.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use aqmlab_units::Instant;

/// Something that is due.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Due {
    /// The next flow of this class starts.
    Start {
        /// the class
        class: u32,
    },
    /// A flow's session wants to be woken, or its next datagram leaves.
    Wake {
        /// the flow's number
        flow: u32,
    },
    /// A flow stops sending.
    Stop {
        /// the flow's number
        flow: u32,
    },
    /// Flows are sampled.
    Sample,
    /// The warm-up is over.
    WarmupEnd,
}

/// What is to come. At one instant starts come first, then flows, then those that look at them.
#[derive(Clone, Debug, Default)]
pub struct Timers(BinaryHeap<Reverse<(Instant, Due)>>);

impl Timers {
    /// `due` at `at`.
    pub fn add(&mut self, at: Instant, due: Due) {
        self.0.push(Reverse((at, due)));
    }

    /// When the next is due.
    pub fn next_at(&self) -> Option<Instant> {
        self.0.peek().map(|Reverse((at, _))| *at)
    }

    /// The next that is due by `now`, with the instant at which it was.
    pub fn take(&mut self, now: Instant) -> Option<(Instant, Due)> {
        if self.next_at()? > now {
            return None;
        }
        self.0.pop().map(|Reverse(next)| next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_due_comes_in_order_and_not_before() {
        let mut timers = Timers::default();
        let at = Instant::from_ns;
        timers.add(at(20), Due::Sample);
        timers.add(at(20), Due::Wake { flow: 7 });
        timers.add(at(20), Due::Start { class: 1 });
        timers.add(at(10), Due::WarmupEnd);
        assert_eq!(timers.take(at(9)), None);
        assert_eq!(timers.take(at(19)), Some((at(10), Due::WarmupEnd)));
        assert_eq!(timers.take(at(19)), None);
        let rest: Vec<_> = std::iter::from_fn(|| timers.take(at(30))).map(|(_, due)| due).collect();
        assert_eq!(rest, [Due::Start { class: 1 }, Due::Wake { flow: 7 }, Due::Sample]);
    }
}
