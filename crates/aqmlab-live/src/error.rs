//! Reasons why a live run produces no recording.

use std::io;

use aqmlab_params::ParamError;
use aqmlab_qdisc::books;
use aqmlab_units::{Instant, Span};

/// A reason why a live run produces no recording.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LiveError {
    /// A discipline refused its parameters.
    #[error("{0}")]
    Discipline(ParamError),
    /// The plan requires something that real hosts cannot do.
    #[error("this scenario cannot run live: {0}")]
    Unsupported(String),
    /// Something that this machine lacks or forbids.
    #[error("this machine cannot run the scenario live: {what}; {remedy}")]
    Machine {
        /// what is missing
        what: String,
        /// remedy
        remedy: String,
    },
    /// The kernel lacks a queue discipline; other arms may still run.
    #[error(
        "this kernel has no queue discipline `{name}`; load it: `modprobe sch_{name}`, or boot a kernel built with it"
    )]
    NoDiscipline {
        /// the discipline's name in tc
        name: String,
    },
    /// tc refuses the specification of a kernel queue.
    #[error("tc refuses `{spec}`: {words}")]
    TcRefuses {
        /// index of the link
        link: usize,
        /// the specification as written
        spec: String,
        /// tc's message
        words: String,
    },
    /// A program of the plan prevents the run.
    #[error("{0}")]
    Program(String),
    /// The operating system refused an operation.
    #[error("cannot {operation} {object}: {source}")]
    Io {
        /// the operation, such as `"read from"`
        operation: &'static str,
        /// the interface, file or namespace
        object: String,
        /// the system's error
        source: io::Error,
    },
    /// The machine was suspended during the run, so the timers of the run's hosts and of the router no longer
    /// agree.
    #[error("the machine was suspended for {lost} at {at}; the run is void")]
    Suspended {
        /// when the suspension was noticed
        at: Instant,
        /// duration of the suspension
        lost: Span,
    },
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
    NetworkBooks(String),
}

impl LiveError {
    /// Returns a function that wraps the error with which the operating system refused `operation` on
    /// `object`.
    pub fn io(operation: &'static str, object: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let object = object.into();
        move |source| LiveError::Io { operation, object, source }
    }

    /// The kind of the error, as a word that programs can compare.
    pub const fn kind(&self) -> &'static str {
        match self {
            LiveError::Discipline(_) | LiveError::Unsupported(_) | LiveError::TcRefuses { .. } => "scenario",
            LiveError::NoDiscipline { .. } => "discipline",
            LiveError::Machine { .. } | LiveError::Io { .. } => "machine",
            LiveError::Program(_) => "program",
            LiveError::Suspended { .. } => "suspended",
            LiveError::PortBooks { .. } | LiveError::NetworkBooks(_) => "books",
        }
    }
}
