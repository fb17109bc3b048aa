//! Delays between hosts and network that connections have of their own.

use aqmlab_traffic::End;
use aqmlab_traffic::packmime::HostDelay;
use aqmlab_units::Span;

use crate::trace::Trace;

/// The delays of a class whose connections have delays of their own.
#[derive(Clone, Copy, Debug)]
pub struct OwnDelays<'a> {
    /// What gives them.
    pub from: DelaysFrom<'a>,
    /// Whether they apply; otherwise the class's `rtt` does.
    pub apply: bool,
}

/// What gives the one-way delays between each client or server and the network.
#[derive(Clone, Copy, Debug)]
pub enum DelaysFrom<'a> {
    /// The population draws them for each connection, as in PackMime-HTTP.
    Packmime,
    /// A file lists them.
    Trace(&'a Trace),
}

impl DelaysFrom<'_> {
    /// Returns the name of the source, for messages.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            DelaysFrom::Packmime => "PackMime-HTTP",
            DelaysFrom::Trace(_) => "this trace",
        }
    }

    /// Returns the mean one-way delay of this end of the connections.
    pub(crate) fn mean(self, end: End) -> Span {
        match self {
            DelaysFrom::Packmime => HostDelay::mean(end),
            DelaysFrom::Trace(trace) => {
                let delays = trace.delays_of(end);
                let count = delays.len().max(1) as u128;
                Span::ns((delays.map(|delay| u128::from(delay.as_ns())).sum::<u128>() / count) as u64)
            }
        }
    }

    /// Returns the minimum one-way delay of this end of the connections.
    pub(crate) fn least(self, end: End) -> Span {
        match self {
            DelaysFrom::Packmime => HostDelay::least(end),
            DelaysFrom::Trace(trace) => trace.delays_of(end).min().unwrap_or(Span::ZERO),
        }
    }
}
