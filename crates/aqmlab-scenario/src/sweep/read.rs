//! Turns the text of a scenario into a sweep.

use aqmlab_qdisc::registry::{Catalogue, catalogue};

use crate::arms::{self, Arm};
use crate::changes::{Change, apply, meets};
use crate::elaborate::{self, Limits, common};
use crate::error::{Report, ScenarioError};
use crate::pass::Pass;
use crate::plan::{Experiment, Plan};
use crate::suggest::counted;
use crate::sweep::axes::{Values, axes};
use crate::sweep::exclude::exclusions;
use crate::sweep::short::Axis;
use crate::sweep::{MOST_RUNS, Sweep};
use crate::trace::{Files, NoFiles, Traces};
use crate::tree::{self, At, Entry, Node, Table, Tree};
use crate::warnings;

/// Largest number of values, summed over all axes, that are checked when the scenario is read.
const MOST_TRIED: usize = 1000;
/// Largest number of other combinations in which a value is tried that does not fit the first one.
const MOST_ALTERNATIVES: usize = 50;
/// Largest number of combinations to which the rules of `[[sweep.exclude]]` are applied.
const MOST_COMBINATIONS: u128 = 10 * MOST_RUNS;

impl Sweep<'static> {
    /// Reads a scenario that names no other files. `file` is the scenario's name for messages and for the default
    /// title.
    ///
    /// # Errors
    /// All errors that can be found without creating every case: each value of an axis is tried
    /// once, with the first values of the other axes.
    pub fn read(text: &str, file: &str) -> Result<Self, ScenarioError> {
        Sweep::read_within(text, file, Limits::default(), Box::new(NoFiles))
    }
}

impl<'f> Sweep<'f> {
    /// Does the same as [`Sweep::read`] for a machine with other limits, and with files, such as traces.
    ///
    /// # Errors
    /// As [`Sweep::read`].
    pub fn read_within(
        text: &str,
        file: &str,
        limits: Limits,
        files: Box<dyn Files + 'f>,
    ) -> Result<Self, ScenarioError> {
        Sweep::read_with(text, file, limits, files, catalogue())
    }

    /// Does the same as [`Sweep::read_within`] for scenarios that can name the disciplines of `catalogue`.
    ///
    /// # Errors
    /// As [`Sweep::read`].
    pub fn read_with(
        text: &str,
        file: &str,
        limits: Limits,
        files: Box<dyn Files + 'f>,
        catalogue: &Catalogue,
    ) -> Result<Self, ScenarioError> {
        let mut report = Report::new(text);
        let sweep = read(text, file, limits, Traces::new(files), catalogue, &mut report);
        let warnings = report.finish(file)?;
        let mut sweep = sweep.expect("an unreadable file has been reported");
        sweep.warnings = warnings;
        Ok(sweep)
    }
}

/// Reads a scenario that names no other files. `file` is the scenario's name for messages and for the default title.
/// For a sweep, the result is the first case; [`Sweep`] gives the others.
///
/// # Errors
/// All errors in the scenario.
pub fn parse(text: &str, file: &str) -> Result<Experiment, ScenarioError> {
    parse_within(text, file, Limits::default(), &NoFiles)
}

/// Does the same as [`parse`] for a machine with other limits, and with files, such as traces.
///
/// # Errors
/// All errors in the scenario.
pub fn parse_within(
    text: &str,
    file: &str,
    limits: Limits,
    files: &dyn Files,
) -> Result<Experiment, ScenarioError> {
    parse_with(text, file, limits, files, catalogue())
}

/// Does the same as [`parse_within`] for scenarios that can name the disciplines of `catalogue`, such as that of a
/// [`Registry`](aqmlab_qdisc::Registry) with disciplines of your own.
///
/// # Errors
/// All errors in the scenario.
pub fn parse_with(
    text: &str,
    file: &str,
    limits: Limits,
    files: &dyn Files,
    catalogue: &Catalogue,
) -> Result<Experiment, ScenarioError> {
    Ok(Sweep::read_with(text, file, limits, Box::new(files), catalogue)?.experiment())
}

fn read<'f>(
    text: &str,
    file: &str,
    limits: Limits,
    traces: Traces<'f>,
    catalogue: &Catalogue,
    report: &mut Report<'_>,
) -> Option<Sweep<'f>> {
    let root = tree::read(text, report)?;
    let Tree::Table(written) = &root.value else { unreachable!("a file is a table") };
    if written.entries.is_empty() {
        let least = "the minimum is a `duration`, a [topology] and one [[traffic]]";
        report.error(&(0..0), "", format!("the file is empty; {least}"));
        return None;
    }
    let common = common(&root, file, &traces, catalogue, report);
    let base = without(written, &["arm", "sweep", "claim"]);
    let tree = Node { at: root.at.clone(), value: Tree::Table(base.clone()) };
    let arms = arms::arms(written.get("arm"), &tree, report);
    let axes = written.get("sweep").map_or_else(|| Some(Vec::new()), |node| axes(node, report));
    arms_keep_their_values(&arms, axes.as_deref().unwrap_or_default(), report);
    let known: Vec<&Axis> = axes.iter().flatten().map(|values| &values.axis).collect();
    let names: Vec<&str> = arms.iter().map(|arm| arm.name.as_str()).collect();
    // If axes could not be read, their labels are unknown, and so is the meaning of claims that use them.
    let claims = axes
        .is_some()
        .then(|| Pass::new(report, &traces, catalogue).claims(written.get("claim"), &known, &names));
    let exclusions = match (&axes, written.get("sweep")) {
        (Some(axes), Some(Node { value: Tree::Table(sweep), .. })) => exclusions(sweep, axes, report)?,
        _ => Vec::new(),
    };
    let runs = common.as_ref().map_or(1, |common| common.runs);
    let mut sweep = Sweep {
        text: text.to_string(),
        file: file.to_string(),
        limits,
        traces,
        catalogue: catalogue.clone(),
        common: common.clone().unwrap_or_default(),
        base,
        arms,
        has_arms: written.get("arm").is_some(),
        axes: axes.clone().unwrap_or_default(),
        exclusions,
        kept: None,
        claims: Vec::new(),
        first: Vec::new(),
        warnings: Vec::new(),
    };
    if axes.is_none() {
        sweep.try_unswept(report);
        return None;
    }
    let at = written.get("sweep").map_or(0..0, |node| node.at.clone());
    if let Err(message) = sweep.keep(runs) {
        report.error(&at, "sweep", message);
        return None;
    }
    let first = sweep.try_each(report);
    sweep.common = common?;
    sweep.claims = claims??;
    sweep.first = first?;
    sweep.first.iter_mut().for_each(|plan| plan.title.clone_from(&sweep.common.title));
    Some(sweep)
}

/// Checks that no axis replaces a value that an arm sets. If one did, the arm's name would be
/// misleading, and no error would say so.
fn arms_keep_their_values(arms: &[Arm], axes: &[Values], report: &mut Report<'_>) {
    for arm in arms {
        for own in &arm.changes {
            for swept in axes.iter().flat_map(|axis| axis.changes.iter().flatten()) {
                let Some((at, key)) = replaced(own, swept) else { continue };
                let line = report.line_of(&swept.key_at);
                let message = format!(
                    "`{key}` is set here and swept in line {line}, which would replace it; leave it out of the arm, or do \
                     not sweep it"
                );
                report.error(&at, &format!("arm {:?}", arm.name), message);
            }
        }
    }
}

/// Returns the place at which an arm's change sets a key that the swept change would set again, and
/// that key; `None` if there is no such key.
fn replaced(own: &Change, swept: &Change) -> Option<(At, String)> {
    if meets(&swept.path, &own.path) {
        return Some((own.key_at.clone(), own.dotted()));
    }
    if !meets(&own.path, &swept.path) {
        return None;
    }
    let below = &swept.path[own.path.len()..];
    let mut at = &own.key_at;
    let mut node = &own.node;
    for key in below {
        let Tree::Table(table) = &node.value else { return None };
        let entry = table.entries.iter().find(|entry| entry.key == *key)?;
        (at, node) = (&entry.key_at, &entry.node);
    }
    Some((at.clone(), swept.dotted()))
}

/// Returns the table without some of its keys.
fn without(table: &Table, keys: &[&str]) -> Table {
    let kept = |entry: &&Entry| !keys.contains(&entry.key.as_str());
    Table { entries: table.entries.iter().filter(kept).cloned().collect(), inline: table.inline }
}

impl Sweep<'_> {
    /// Finds the combinations that no rule leaves out.
    ///
    /// # Errors
    /// If none remains, or if the cases would be more than [`MOST_RUNS`] runs.
    fn keep(&mut self, seeds: u64) -> Result<(), String> {
        if self.axes.is_empty() {
            return Ok(()); // without axes, the limits on `runs` and on the file's content suffice
        }
        let count = |values: &Values| values.axis.labels.len() as u128;
        let combinations = self.axes.iter().map(count).fold(1u128, u128::saturating_mul);
        let arms = self.arms.len() as u64;
        let runs = |cases: u128| cases.saturating_mul(arms.into()).saturating_mul(seeds.into());
        let too_many = |cases: u128| {
            format!(
                "{} of {} with {} each are {} runs; at most {MOST_RUNS} are allowed: write shorter lists, or fewer `runs`",
                counted(cases, "case"),
                counted(arms, "arm"),
                counted(seeds, "seed"),
                runs(cases)
            )
        };
        // Rules are applied to one combination at a time, which takes too long for far more than can be run.
        if combinations > MOST_COMBINATIONS || self.exclusions.is_empty() && runs(combinations) > MOST_RUNS {
            return Err(too_many(combinations));
        }
        if self.exclusions.is_empty() {
            return Ok(());
        }
        let kept: Vec<u64> =
            (0..self.combinations()).filter(|&number| !self.is_excluded(&self.labels_of(number))).collect();
        if kept.is_empty() {
            return Err("[[sweep.exclude]] leaves out every case".to_string());
        }
        if runs(kept.len() as u128) > MOST_RUNS {
            return Err(too_many(kept.len() as u128));
        }
        self.kept = Some(kept);
        Ok(())
    }

    fn is_excluded(&self, chosen: &[usize]) -> bool {
        self.exclusions.iter().any(|rule| rule.covers(chosen))
    }

    /// Returns the plans of the first case that can run. Also tries each value of each axis, with the values
    /// that this case has on the other axes, and reports the values that do not fit there or elsewhere.
    fn try_each(&self, report: &mut Report<'_>) -> Option<Vec<Plan>> {
        let first = self.chosen(0);
        let clean = |chosen: &Vec<usize>| {
            let mut own = Report::new(&self.text);
            self.plans(&self.changes(chosen), &mut own);
            own.is_clean()
        };
        let fits = |chosen: &Vec<usize>| !self.is_excluded(chosen) && clean(chosen);
        // A first case that cannot run may only be an impossible combination.
        let base = Some(first.clone())
            .filter(&clean)
            .or_else(|| self.others(&first, None).find(&fits))
            .unwrap_or(first);
        let plans = self.try_first(&base, report);
        for chosen in self.departures(&base).take(MOST_TRIED) {
            let axis = (0..base.len()).find(|&axis| chosen[axis] != base[axis]).expect("one axis departs");
            if self.is_excluded(&chosen) {
                continue;
            }
            let changes = self.changes(&chosen);
            let mut own = Report::new(&self.text);
            self.plans(&changes, &mut own);
            let fits_elsewhere = || self.others(&chosen, Some(axis)).any(|other| fits(&other));
            if !own.is_clean() && plans.is_some() && fits_elsewhere() {
                continue; // an impossible combination, which is reported when its case is expanded
            }
            let note = self.note(&chosen, |a| a == axis);
            for warning in report.absorb(own, &note, |at, _| is_within_any(at, &changes)) {
                if !report.has_warning(&warning) {
                    report.warn(format!("{warning}{note}"));
                }
            }
        }
        plans
    }

    /// Iterates over other combinations, in which the label on the axis `kept` is that of `chosen`: first
    /// those that differ in a single axis, then some that are evenly spaced among all.
    fn others(&self, chosen: &[usize], kept: Option<usize>) -> impl Iterator<Item = Vec<usize>> {
        let all = self.combinations();
        let step = all.div_ceil(MOST_ALTERNATIVES as u64);
        let spaced =
            (0..MOST_ALTERNATIVES as u64).map(move |i| i * step).take_while(move |number| *number < all);
        let spaced = spaced.map(move |number| {
            let mut other = self.labels_of(number);
            if let Some(axis) = kept {
                other[axis] = chosen[axis];
            }
            other
        });
        let near =
            self.departures(chosen).filter(move |other| kept.is_none_or(|axis| other[axis] == chosen[axis]));
        near.take(MOST_ALTERNATIVES).chain(spaced)
    }

    /// Iterates over the combinations that differ from `base` in a single axis.
    fn departures(&self, base: &[usize]) -> impl Iterator<Item = Vec<usize>> {
        self.axes.iter().enumerate().flat_map(move |(axis, values)| {
            (0..values.changes.len()).filter(move |&label| label != base[axis]).map(move |label| {
                let mut chosen = base.to_vec();
                chosen[axis] = label;
                chosen
            })
        })
    }

    /// Reports errors in the rest of the file if its axes cannot be read. Missing keys are not reported,
    /// because they may be the swept ones.
    fn try_unswept(&self, report: &mut Report<'_>) {
        let mut own = Report::new(&self.text);
        self.plans(&[], &mut own);
        own.forget(|message| message.contains("is missing"));
        report.absorb(own, "", |_, _| true);
    }

    /// Returns the plans of the first case. Errors that occur even without the swept values are
    /// reported without the labels of the case.
    fn try_first(&self, firsts: &[usize], report: &mut Report<'_>) -> Option<Vec<Plan>> {
        let changes = self.changes(firsts);
        let mut own = Report::new(&self.text);
        let plans = self.plans(&changes, &mut own);
        let mut plain = Report::new(&self.text);
        if !own.is_clean() {
            self.plans(&[], &mut plain);
        }
        let (note, plain) = (self.note(firsts, |_| true), plain.known());
        let speaks = |at: &At, message: &str| is_within_any(at, &changes) || plain.has(at, message);
        report.absorb(own, &note, speaks).into_iter().for_each(|warning| report.warn(warning));
        plans
    }

    /// Returns the labels of these axes, such as ` (rate = 5Mbit, count = 20)`; the text is empty
    /// if there are no axes.
    pub(super) fn note(&self, chosen: &[usize], axes: impl Fn(usize) -> bool) -> String {
        let labels = self.axes.iter().zip(chosen).enumerate().filter(|(i, _)| axes(*i));
        let all: Vec<String> =
            labels.map(|(_, (v, &label))| format!("{} = {}", v.axis.short, v.axis.labels[label])).collect();
        if all.is_empty() { String::new() } else { format!(" ({})", all.join(", ")) }
    }

    /// Returns the changes that the chosen labels stand for.
    pub(super) fn changes(&self, chosen: &[usize]) -> Vec<&Change> {
        self.axes.iter().zip(chosen).flat_map(|(values, &label)| &values.changes[label]).collect()
    }

    /// Returns the plans of all arms, with `changes` applied to each arm. An error in a swept value
    /// that affects only some arms is reported for the first of these.
    pub(super) fn plans(&self, changes: &[&Change], report: &mut Report<'_>) -> Option<Vec<Plan>> {
        let several = self.arms.len() > 1;
        let mut plans = Vec::new();
        let mut reports = Vec::new();
        for arm in &self.arms {
            let mut own = Report::new(&self.text);
            let mut tree = arm.tree.clone();
            for change in changes {
                if let Err((at, message)) = apply(&mut tree, change) {
                    own.error(&at, "sweep", message);
                }
            }
            plans.push(elaborate::plan(
                &arm.name,
                &tree,
                self.limits,
                &self.traces,
                &self.catalogue,
                &mut own,
            ));
            if let (Some(Some(plan)), true) = (plans.last(), own.is_clean()) {
                for warning in warnings::of(plan) {
                    own.warn(if several { format!("arm \"{}\": {warning}", arm.name) } else { warning });
                }
            }
            reports.push(own);
        }
        let known: Vec<_> = reports.iter().map(Report::known).collect();
        for (arm, own) in self.arms.iter().zip(reports) {
            let everywhere = |at: &At, message: &str| known.iter().all(|k| k.has(at, message));
            let warnings = report.absorb(own, &format!(" (arm \"{}\")", arm.name), |at, message| {
                !is_within_any(at, changes) || everywhere(at, message)
            });
            warnings.into_iter().for_each(|warning| report.warn(warning));
        }
        plans.into_iter().collect()
    }
}

/// Returns whether a place lies within a swept key or value; such a place shows by itself which
/// case is meant.
pub(super) fn is_within_any(at: &At, changes: &[&Change]) -> bool {
    let inside = |outer: &At| outer.start <= at.start && at.end <= outer.end;
    changes.iter().any(|change| inside(&change.node.at) || inside(&change.key_at))
}
