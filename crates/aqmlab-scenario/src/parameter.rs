//! Effective parameters, as `aqmlab show` and the report print them.

use aqmlab_params::{Alias, Origin};

/// One effective parameter, as `aqmlab show` and the report print it.
#[derive(Clone, PartialEq, Debug)]
pub struct Parameter {
    /// The path of the parameter in a scenario file, even if the file does not contain it:
    /// `topology.queue.min_th`, `traffic.ftp.start`. Arms refer to the parameter by this path.
    pub path: String,
    /// The value with its unit, in the notation of scenarios.
    pub value: String,
    /// Origin of the value.
    pub origin: Origin,
    /// Paper or RFC section from which the parameter and its default are taken.
    pub source: &'static str,
    /// The meaning of the parameter, in one sentence.
    pub help: &'static str,
    /// Other tools' names for the parameter.
    pub aliases: &'static [Alias],
}
