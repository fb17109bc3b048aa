//! A count at a queue that ends the run.

use aqmlab_qdisc::{Classed, Port};
use aqmlab_scenario::{QueueCount, QueueStop};

/// Has the count come to where the run ends?
pub fn is_reached<P: Classed>(stop: &QueueStop, port: &Port<P>) -> bool {
    let classes = port.books().classes().iter();
    let count: u64 = match stop.quantity {
        QueueCount::Arrivals => classes.map(|c| c.arrived.packets).sum(),
        QueueCount::Drops => classes.map(|c| c.dropped_total().packets).sum(),
        QueueCount::Marks => classes.map(|c| c.marked_total().packets).sum(),
        QueueCount::Backlog => port.backlog().packets.get(),
    };
    count >= stop.count
}
