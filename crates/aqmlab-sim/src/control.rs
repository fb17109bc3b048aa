//! Observation and cancellation of a run from another thread, and the errors of a run.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use aqmlab_params::ParamError;
use aqmlab_qdisc::books;
use aqmlab_recording::capture::PortCapture;
use aqmlab_recording::{Imbalance, RecordingError, TableWriter};
use aqmlab_scenario::Problem;
use aqmlab_transport::Controller;
use aqmlab_units::Instant;

use crate::options::OptionImbalance;

/// State shared between a run and the thread that waits for it. A run reads it every 2^16 events.
#[derive(Debug)]
pub struct Control {
    /// Returns the time since some fixed instant on the host's clock. A run reads it twice, for the `wall_s` of its
    /// manifest; nothing else in a run depends on it.
    pub clock: fn() -> Duration,
    /// Set to end the run early. The run then returns [`RunError::Cancelled`] and leaves no recording.
    pub cancel: AtomicBool,
    /// Events processed so far.
    pub events: AtomicU64,
    /// Progress of the run in simulated time.
    pub sim_time_ns: AtomicU64,
    /// Largest number of bytes that the run's own tables may take; 0 means no cap.
    pub memory_cap: AtomicU64,
}

/// A run without a cap on memory and without a clock: its `wall_s` is 0.
impl Default for Control {
    fn default() -> Self {
        Control {
            clock: || Duration::ZERO,
            cancel: AtomicBool::default(),
            events: AtomicU64::default(),
            sim_time_ns: AtomicU64::default(),
            memory_cap: AtomicU64::default(),
        }
    }
}

impl Control {
    pub(crate) fn report(&self, events: u64, now_ns: u64) {
        self.events.store(events, Ordering::Relaxed);
        self.sim_time_ns.store(now_ns, Ordering::Relaxed);
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.cancel.load(Ordering::Relaxed)
    }

    pub(crate) fn cap(&self) -> Option<u64> {
        Some(self.memory_cap.load(Ordering::Relaxed)).filter(|&cap| cap > 0)
    }
}

/// What leaves a run while it is under way: files, and the packets of ports that a host looks at.
#[derive(Default)]
pub struct RunFiles {
    /// The packets that leave the captured queues.
    pub capture: Option<PortCapture>,
    /// One row per request, if [`wants_request_rows`](aqmlab_network::wants_request_rows) returns
    /// true. Without a file, the rows are held in memory.
    pub requests: Option<TableWriter>,
    /// The ports whose packets a host looks at while the run is under way, by the numbers of their links.
    pub looks: Vec<usize>,
}

impl RunFiles {
    /// Returns whether nothing leaves it.
    pub(crate) const fn is_empty(&self) -> bool {
        self.capture.is_none() && self.requests.is_none() && self.looks.is_empty()
    }
}

/// Other authors' congestion controllers: returns the one for the sender of a new connection of this class, which opens at
/// this time and whose full datagrams have this many bytes, or `None` if the class's profile is to choose.
pub type Controllers<'a> = &'a dyn Fn(&str, Instant, u32) -> Option<Box<dyn Controller>>;

/// Why a run did not produce a recording.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// A discipline refused its parameters.
    #[error("{0}")]
    Discipline(ParamError),
    /// The plan has no settings for this seed.
    #[error("{0}")]
    Seed(String),
    /// The plan requires something that only a kernel has.
    #[error("{}:{}: {}: {}", .0.line, .0.column, .0.path, .0.message)]
    OnlyLive(Problem),
    /// The cancel flag was set.
    #[error("the run was cancelled")]
    Cancelled,
    /// The run's tables outgrew the cap.
    #[error("the run needs more than its memory cap: {used} bytes in use, {cap} allowed")]
    Memory {
        /// bytes in use
        used: u64,
        /// bytes allowed
        cap: u64,
    },
    /// The paths of the classes have more places than the place number in a packet can represent.
    #[error(
        "the paths of all classes together have more than 65,535 queues and hosts; share paths between classes"
    )]
    Places,
    /// A recording of individual changes or packets has more rows than the scenario allows.
    #[error(
        "the table `{table}` of the recording reached its limit of {limit} rows at {at}: choose fewer flows, \
         links or events in [record] or a shorter time, or raise its `limit`"
    )]
    TooManyRows {
        /// the table
        table: &'static str,
        /// when
        at: Instant,
        /// rows allowed
        limit: u64,
    },
    /// A file could not be written during the run: captured packets, or rows of requests.
    #[error("{0}")]
    File(RecordingError),
    /// A port's books do not balance: a defect of the program or of an external discipline.
    #[error("the books of queue `{queue}` do not balance: {source}")]
    PortBooks {
        /// the queue
        queue: String,
        /// the identity that does not hold
        source: books::Imbalance,
    },
    /// The end-to-end books do not balance: a defect of the program.
    #[error("the books of the network do not balance: {0}")]
    NetworkBooks(Imbalance),
    /// Options are kept for packets that have left, or are missing for packets in flight: a defect
    /// of the program.
    #[error("the books of TCP options do not balance: {0}")]
    OptionBooks(OptionImbalance),
}
