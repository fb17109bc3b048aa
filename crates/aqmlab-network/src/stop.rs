//! What ends a run before its time.

use aqmlab_qdisc::{Classed, Port};
use aqmlab_scenario::{Plan, QueueCount, QueueStop};

/// Whether the count at a queue has come to where the run ends.
pub fn queue_stop_is_reached<P: Classed>(stop: &QueueStop, port: &Port<P>) -> bool {
    let classes = port.books().classes().iter();
    let count: u64 = match stop.quantity {
        QueueCount::Arrivals => classes.map(|c| c.arrived.packets).sum(),
        QueueCount::Drops => classes.map(|c| c.dropped_total().packets).sum(),
        QueueCount::Marks => classes.map(|c| c.marked_total().packets).sum(),
        QueueCount::Backlog => port.backlog().packets.get(),
    };
    count >= stop.count
}

/// Counts the flows that have completed since the end of the warm-up, where that may end the run.
#[derive(Clone, Copy, Debug)]
pub struct Completions {
    /// The class whose flows count, and how many of them end the run.
    stop: Option<(usize, u64)>,
    counted: u64,
}

impl Completions {
    /// None so far of the flows of `plan`.
    pub fn new(plan: &Plan) -> Self {
        Completions { stop: plan.stop.completed.as_ref().map(|stop| (stop.class, stop.count)), counted: 0 }
    }

    /// A flow of `class` has completed: whether that ends the run.
    pub fn count(&mut self, class: usize) -> bool {
        match self.stop {
            Some((counted, most)) if counted == class => {
                self.counted += 1;
                self.counted >= most
            }
            _ => false,
        }
    }
}
