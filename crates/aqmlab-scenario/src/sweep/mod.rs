//! Sweeps: one scenario, many cases. The file is read once; each case is created only on request.

mod axes;
mod case;
mod claims;
mod exclude;
mod read;
mod short;

use aqmlab_qdisc::registry::Catalogue;

use crate::arms::Arm;
use crate::elaborate::{Common, Limits};
use crate::plan::{Experiment, Plan};
use crate::trace::Traces;
use crate::tree::Table;
use axes::Values;
use exclude::Exclusion;

pub use claims::Claim;
pub use read::{parse, parse_with, parse_within};
pub use short::Axis;

/// Largest number of runs over all cases, arms and seeds; a larger number can only be a mistake.
pub const MOST_RUNS: u128 = 1_000_000;

/// A scenario file read once, with the cases of its `[sweep]`. A file without a `[sweep]` has no
/// axes and one case.
pub struct Sweep<'f> {
    /// The text of the file, for reporting the errors of a case.
    text: String,
    file: String,
    limits: Limits,
    traces: Traces<'f>,
    catalogue: Catalogue,
    common: Common,
    /// The file without arms, sweep and claims.
    base: Table,
    arms: Vec<Arm>,
    /// Whether the file defines arms; otherwise there is only the unnamed arm.
    has_arms: bool,
    axes: Vec<Values>,
    exclusions: Vec<Exclusion>,
    /// The numbers of the combinations that no rule leaves out; `None` without rules.
    kept: Option<Vec<u64>>,
    claims: Vec<Claim>,
    first: Vec<Plan>,
    warnings: Vec<String>,
}

/// One combination of labels.
#[derive(Clone, Debug)]
pub struct Case {
    /// The number of the case, in the order in which the label on the last axis changes fastest.
    pub index: u64,
    /// The name of each axis, with the label that the case has on it.
    pub settings: Vec<(String, String)>,
    /// The text of a scenario for this case alone, with all arms but without sweep and claims.
    /// Parsing this text gives the same plans as the case.
    pub text: String,
    /// The case's plans, with its own warnings.
    pub experiment: Experiment,
}

impl Sweep<'_> {
    /// Returns the experiment common to all cases. Its arms are those of the first case. Its
    /// warnings are those that any value of any axis causes when combined with the first values of
    /// the other axes.
    pub fn experiment(&self) -> Experiment {
        self.common.experiment(self.first.clone(), self.warnings.clone())
    }

    /// Iterates over the names of the arms, in the order of the file.
    pub fn arms(&self) -> impl Iterator<Item = &str> {
        self.arms.iter().map(|arm| arm.name.as_str())
    }

    /// Iterates over the axes, in the order of the file.
    pub fn axes(&self) -> impl Iterator<Item = &Axis> {
        self.axes.iter().map(|values| &values.axis)
    }

    /// Returns the claims of the scenario.
    pub fn claims(&self) -> &[Claim] {
        &self.claims
    }

    /// Returns the number of cases.
    pub fn cases(&self) -> u64 {
        self.kept.as_ref().map_or_else(|| self.combinations(), |kept| kept.len() as u64)
    }

    /// Returns the number of combinations of labels, including those that `[[sweep.exclude]]` leaves out.
    pub fn combinations(&self) -> u64 {
        self.axes.iter().map(|values| values.axis.labels.len() as u64).product()
    }

    /// Iterates over the rules of `[[sweep.exclude]]` as text, in the order of the file.
    pub fn exclusions(&self) -> impl Iterator<Item = &str> {
        self.exclusions.iter().map(|rule| rule.text.as_str())
    }

    /// Returns the number of runs: one for each combination of case, arm and seed.
    pub fn runs(&self) -> u64 {
        self.cases() * self.arms.len() as u64 * self.common.runs
    }
}
