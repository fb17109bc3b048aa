//! What a capture may hear of frames at queues.

use aqmlab_qdisc::Reason;
use aqmlab_units::{Instant, Span};

/// Something that happens to a frame at a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What {
    /// It reaches the queue.
    Enqueue,
    /// Its transmission begins, after it has waited so long.
    Dequeue {
        /// queueing delay: dequeue minus enqueue
        queued: Span,
    },
    /// The queue drops it.
    Drop {
        /// why
        reason: Reason,
    },
    /// The queue marks it.
    Mark {
        /// why
        reason: Reason,
    },
}

/// Something that has happened to a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Happening<'a> {
    /// At the queue of this link: an index into the plan's links.
    pub link: usize,
    /// When, ideally.
    pub at: Instant,
    /// What.
    pub what: What,
    /// The number of the frame's slot: it has it from the first queue to the last, and no other frame has it meanwhile.
    pub slot: u32,
    /// The whole packet as it is now, marks included.
    pub frame: &'a [u8],
}

/// Hears of every frame at every queue, in the order of time. It is called in the middle of the run: it must not block,
/// and whether it allocates is its own affair.
pub trait Tap: Send {
    /// Something has happened.
    fn happens(&mut self, what: Happening<'_>);
}
