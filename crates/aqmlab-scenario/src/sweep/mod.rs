//! Sweeps: one scenario, many cases. The file is read once; a case is made when it is asked for.

mod axes;
mod case;
mod claims;
mod read;
mod short;

use crate::arms::Arm;
use crate::elaborate::{Common, Limits};
use crate::plan::{Experiment, Plan};
use crate::trace::Traces;
use crate::tree::Table;
use axes::Values;

pub use claims::Claim;
pub use read::{parse, parse_within};
pub use short::Axis;

/// Runs of all cases, arms and seeds: beyond it lies a mistake.
pub const MOST_RUNS: u128 = 1_000_000;

/// A scenario file read once, with the cases of its `[sweep]`. Without one there are no axes and one case.
pub struct Sweep<'f> {
    /// What problems of a case are told with.
    text: String,
    file: String,
    limits: Limits,
    traces: Traces<'f>,
    common: Common,
    /// The file without arms, sweep and claims.
    base: Table,
    arms: Vec<Arm>,
    /// Whether the file writes arms, or there is only the unnamed one.
    has_arms: bool,
    axes: Vec<Values>,
    claims: Vec<Claim>,
    first: Vec<Plan>,
    warnings: Vec<String>,
}

/// One combination of labels.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its number: the last axis turns fastest.
    pub index: u64,
    /// The name of each axis and its label.
    pub settings: Vec<(String, String)>,
    /// A scenario of this case alone: neither sweep nor claims, all arms. It has the same plans.
    pub text: String,
    /// The case's plans, with its own warnings.
    pub experiment: Experiment,
}

impl Sweep<'_> {
    /// What holds for all cases; its arms are those of the first case, its warnings those of every value that an axis
    /// takes, tried with the first of the others.
    pub fn experiment(&self) -> Experiment {
        self.common.experiment(self.first.clone(), self.warnings.clone())
    }

    /// The names of the arms, in the order of the file.
    pub fn arms(&self) -> impl Iterator<Item = &str> {
        self.arms.iter().map(|arm| arm.name.as_str())
    }

    /// What varies, in the order of the file.
    pub fn axes(&self) -> impl Iterator<Item = &Axis> {
        self.axes.iter().map(|values| &values.axis)
    }

    /// What the scenario says will come out.
    pub fn claims(&self) -> &[Claim] {
        &self.claims
    }

    /// The number of cases.
    pub fn cases(&self) -> u64 {
        self.axes.iter().map(|values| values.axis.labels.len() as u64).product()
    }

    /// The number of runs: of every case, each arm with each seed.
    pub fn runs(&self) -> u64 {
        self.cases() * self.arms.len() as u64 * self.common.runs
    }
}
