//! One case of a sweep.

use crate::arms::Arm;
use crate::changes::{Change, apply, replaces};
use crate::error::{Report, ScenarioError};
use crate::sweep::axes::Values;
use crate::sweep::read::is_within_any;
use crate::sweep::{Case, Sweep};
use crate::toml_text;
use crate::tree::{Entry, Node, Table, Tree};

impl Sweep<'_> {
    /// Returns the case with this number, which must be below [`Sweep::cases`], without creating
    /// any other case.
    ///
    /// # Errors
    /// The errors that this combination of values causes.
    ///
    /// # Panics
    /// If there is no such case.
    pub fn case(&self, index: u64) -> Result<Case, ScenarioError> {
        assert!(index < self.cases(), "there is no case {index}");
        let chosen = self.chosen(index);
        let changes = self.changes(&chosen);
        let setting = |(v, &label): (&Values, &usize)| (v.axis.name.clone(), v.axis.labels[label].clone());
        let mut own = Report::new(&self.text);
        let plans = self.plans(&changes, &mut own);
        let mut report = Report::new(&self.text);
        let note = self.note(&chosen, |_| true);
        // With several axes, the place of an error shows only one of the labels that do not fit together.
        let alone = self.axes.len() == 1;
        let warnings = report.absorb(own, &note, |at, _| alone && is_within_any(at, &changes));
        report.finish(&self.file)?;
        let plans = plans.expect("errors that leave no plan have been reported");
        Ok(Case {
            index,
            settings: self.axes.iter().zip(&chosen).map(setting).collect(),
            text: self.case_text(&changes),
            experiment: self.common.experiment(plans, warnings),
        })
    }

    /// Returns the label of a case on each axis, whether or not the case can run.
    pub fn labels(&self, index: u64) -> Vec<&str> {
        let chosen = self.chosen(index);
        self.axes.iter().zip(chosen).map(|(values, label)| values.axis.labels[label].as_str()).collect()
    }

    /// Returns the position of the case's label on each axis.
    pub(super) fn chosen(&self, index: u64) -> Vec<usize> {
        self.labels_of(self.kept.as_ref().map_or(index, |kept| kept[index as usize]))
    }

    /// Returns the position of a combination's label on each axis. The positions are the digits of the
    /// combination's number; the last digit belongs to the last axis.
    pub(super) fn labels_of(&self, number: u64) -> Vec<usize> {
        let mut rest = number;
        let mut chosen: Vec<usize> = self
            .axes
            .iter()
            .rev()
            .map(|values| {
                let count = values.changes.len() as u64;
                let label = rest % count;
                rest /= count;
                label as usize
            })
            .collect();
        chosen.reverse();
        chosen
    }

    fn case_text(&self, changes: &[&Change]) -> String {
        let mut root = self.base.clone();
        if root.get("title").is_none() {
            root.entries.insert(0, entry("title", Tree::Text(self.common.title.clone())));
        }
        if self.has_arms {
            let arms = self.arms.iter().map(|arm| node(Tree::Table(arm_table(arm, changes))));
            root.entries.push(entry("arm", Tree::List(arms.collect())));
            return toml_text::document(&root);
        }
        let mut tree = node(Tree::Table(root));
        for change in changes {
            apply(&mut tree, change).expect("the same change was made for the plan");
        }
        let Tree::Table(root) = &tree.value else { unreachable!("the file is still a table after a change") };
        toml_text::document(root)
    }
}

/// Returns the arm's own changes, followed by those of the case. An arm's change is left out if the
/// case replaces it completely, so that no path occurs twice.
fn arm_table(arm: &Arm, changes: &[&Change]) -> Table {
    let mut all: Vec<&Change> = Vec::new();
    for change in arm.changes.iter().chain(changes.iter().copied()) {
        all.retain(|earlier| !replaces(&change.path, &earlier.path));
        all.push(change);
    }
    let mut entries = vec![entry("name", Tree::Text(arm.name.clone()))];
    entries.extend(all.into_iter().map(|change| entry(&change.dotted(), change.node.value.clone())));
    Table { entries, inline: false }
}

fn entry(key: &str, value: Tree) -> Entry {
    Entry { key: key.to_string(), key_at: 0..0, node: node(value) }
}

fn node(value: Tree) -> Node {
    Node { at: 0..0, value }
}
