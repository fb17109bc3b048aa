//! Combinations of labels that a sweep leaves out: `[[sweep.exclude]]`.

use crate::changes::changes;
use crate::error::Report;
use crate::suggest::no_such;
use crate::sweep::axes::{EXCLUDE, Values};
use crate::sweep::short::{Axis, meant};
use crate::tree::{Node, Table, Tree};

/// A rule that leaves out every case whose labels are all among those that it names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Exclusion {
    /// The named axes, by their positions, each with the positions of its labels.
    labels: Vec<(usize, Vec<usize>)>,
    /// The rule as text, such as `rate = 5Mbit, count = 20 or 80`.
    pub text: String,
}

impl Exclusion {
    /// Returns whether the rule leaves out the case with these labels, given as a position on each axis.
    pub(crate) fn covers(&self, chosen: &[usize]) -> bool {
        self.labels.iter().all(|(axis, labels)| labels.contains(&chosen[*axis]))
    }
}

/// Returns the rules of `[sweep]`, or `None` if they contain an error.
pub(crate) fn exclusions(sweep: &Table, axes: &[Values], report: &mut Report<'_>) -> Option<Vec<Exclusion>> {
    let Some(node) = sweep.get(EXCLUDE) else { return Some(Vec::new()) };
    let items = match &node.value {
        Tree::List(items) if !items.is_empty() => items,
        other => {
            let what = if matches!(other, Tree::List(_)) { "an empty list" } else { other.what() };
            report.error(&node.at, "sweep.exclude", format!("`exclude` is {what}; write [[sweep.exclude]]"));
            return None;
        }
    };
    let rules: Vec<_> = items.iter().map(|item| exclusion(item, axes, report)).collect();
    rules.into_iter().collect()
}

fn exclusion(item: &Node, axes: &[Values], report: &mut Report<'_>) -> Option<Exclusion> {
    const PATH: &str = "sweep.exclude";
    let Tree::Table(table) = &item.value else {
        let message =
            format!("`{}` is {}; write [[sweep.exclude]]", report.quote(&item.at), item.value.what());
        report.error(&item.at, PATH, message);
        return None;
    };
    let known: Vec<&Axis> = axes.iter().map(|values| &values.axis).collect();
    let named = changes(table, &[]);
    if named.is_empty() {
        report.error(&item.at, PATH, "the rule is empty; write axes with the labels to leave out together");
        return None;
    }
    let mut labels = Vec::new();
    let mut texts = Vec::new();
    for change in &named {
        let name = change.dotted();
        let found = meant(&name, &known);
        let [axis] = found.as_slice() else {
            let shorts: Vec<&str> = known.iter().map(|axis| axis.short.as_str()).collect();
            report.error(&change.key_at, PATH, no_such("axis", &name, shorts));
            return None;
        };
        let place = known.iter().position(|other| std::ptr::eq(*other, *axis)).expect("the axis is known");
        let written = match &change.node.value {
            Tree::List(items) => items.iter().collect(),
            _ => vec![&change.node],
        };
        let places: Vec<_> = written.iter().map(|node| position(node, axis, report)).collect();
        let places = places.into_iter().collect::<Option<Vec<usize>>>()?;
        let these: Vec<&str> = places.iter().map(|&label| axis.labels[label].as_str()).collect();
        texts.push(format!("{} = {}", axis.short, these.join(" or ")));
        labels.push((place, places));
    }
    Some(Exclusion { labels, text: texts.join(", ") })
}

/// Returns the position of a label on an axis.
fn position(node: &Node, axis: &Axis, report: &mut Report<'_>) -> Option<usize> {
    let label = match &node.value {
        Tree::Text(text) => text.clone(),
        _ => report.written(&node.at).to_string(),
    };
    let found = axis.labels.iter().position(|known| *known == label);
    if found.is_none() {
        let message =
            no_such(&format!("label of `{}`", axis.short), &label, axis.labels.iter().map(String::as_str));
        report.error(&node.at, "sweep.exclude", message);
    }
    found
}
