//! The axes of a sweep: the keys that vary, and their values.

use crate::changes::{Change, changes, meets};
use crate::error::Report;
use crate::names::{is_axis_name, is_name};
use crate::suggest::{counted, listed};
use crate::sweep::short::{Axis, shorts};
use crate::tree::{At, Node, Table, Tree};

/// An axis, with the changes that each of its labels stands for.
#[derive(Clone, Debug)]
pub(crate) struct Values {
    pub(crate) axis: Axis,
    /// The changes that each label stands for.
    pub(crate) changes: Vec<Vec<Change>>,
}

/// The name of the axis of explicit cases.
pub(crate) const CASE: &str = "case";
const ZIP: &str = "zip";
/// The key of the rules that leave out combinations.
pub(crate) const EXCLUDE: &str = "exclude";

/// Returns the axes of `[sweep]` in the order of the file, or `None` if they contain an error.
pub(crate) fn axes(node: &Node, report: &mut Report<'_>) -> Option<Vec<Values>> {
    let Tree::Table(table) = &node.value else {
        report.error(&node.at, "sweep", format!("`sweep` is {}; write [sweep]", node.value.what()));
        return None;
    };
    let mut reader = Reader { report, clean: true };
    let mut found: Vec<(usize, Values)> = Vec::new();
    for change in changes(table, &[ZIP, CASE, EXCLUDE]) {
        found.extend(reader.plain(&change).map(|axis| (change.key_at.start, axis)));
    }
    for item in reader.tables(table, ZIP) {
        found.extend(reader.zip(item).map(|axis| (item.at.start, axis)));
    }
    if let Some(written) = table.get(CASE) {
        let cases = reader.tables(table, CASE);
        if !found.is_empty() {
            let message = "explicit cases replace the combinations of values; write either [[sweep.case]] or lists of values";
            reader.error(&written.at, "sweep.case", message);
        }
        found.extend(reader.cases(&cases).map(|axis| (written.at.start, axis)));
    }
    found.sort_by_key(|(start, _)| *start);
    let mut axes: Vec<Values> = found.into_iter().map(|(_, axis)| axis).collect();
    if axes.is_empty() && reader.clean {
        let message = "nothing is swept; write a dotted path with a list of values";
        reader.error(&node.at, "sweep", message);
    }
    reader.keys_are_set_once(&axes);
    reader.names_differ(&axes, table);
    if !reader.clean {
        return None;
    }
    let shorts = shorts(&axes.iter().map(|values| &values.axis).collect::<Vec<_>>());
    for (values, short) in axes.iter_mut().zip(shorts) {
        values.axis.short = short;
    }
    Some(axes)
}

/// Reads axes and keeps track of whether all are valid.
struct Reader<'r, 't> {
    report: &'r mut Report<'t>,
    clean: bool,
}

impl Reader<'_, '_> {
    fn error(&mut self, at: &At, path: &str, message: impl Into<String>) {
        self.clean = false;
        self.report.error(at, path, message);
    }

    /// Reads `"topology.rate" = ["5Mbit", "10Mbit"]`.
    fn plain(&mut self, change: &Change) -> Option<Values> {
        let name = change.dotted();
        let items = self.list(&change.node, &name)?;
        let labels: Vec<_> = items.iter().map(|item| self.label(item, &name)).collect();
        let labels = labels.into_iter().collect::<Option<Vec<_>>>()?;
        self.labels_differ(&labels, items, &name)?;
        let one = |item: &Node| vec![Change { node: item.clone(), ..change.clone() }];
        let axis = Axis { name: name.clone(), short: String::new(), keys: vec![name], labels };
        Some(Values { axis, changes: items.iter().map(one).collect() })
    }

    /// Reads a `[[sweep.zip]]`: several keys that change together.
    fn zip(&mut self, item: &Node) -> Option<Values> {
        let table = self.table(item, ZIP)?;
        let name = self.name(item, table, ZIP)?;
        if !is_axis_name(&name) {
            let message = format!(
                "{name:?} is not a name for an axis; such a name has 1 to 64 letters, digits, \"_\" or \"-\", begins with a letter, and is \
                 not one of {}",
                listed(crate::names::RESERVED.iter().copied())
            );
            self.error(&name_at(item, table), "sweep.zip.name", message);
            return None;
        }
        let keys = changes(table, &["name", "labels"]);
        let Some(first) = keys.first() else {
            let message = "nothing is swept; write dotted paths with lists of the same length";
            self.error(&item.at, "sweep.zip", message);
            return None;
        };
        let count = self.list(&first.node, &first.dotted())?.len();
        let mut all: Vec<Vec<Change>> = vec![Vec::new(); count];
        let mut fit = true;
        for key in &keys {
            let Some(items) = self.list(&key.node, &key.dotted()) else {
                fit = false;
                continue;
            };
            if items.len() != count {
                let message = format!(
                    "`{}` has {}, `{}` has {}; zipped lists must have the same length",
                    key.dotted(),
                    count_of(items, "value"),
                    first.dotted(),
                    counted(count as u64, "value")
                );
                self.error(&key.node.at, &format!("sweep.{name}"), message);
                fit = false;
            }
            for (changes, item) in all.iter_mut().zip(items) {
                changes.push(Change { node: item.clone(), ..key.clone() });
            }
        }
        let labels = self.zip_labels(table, &name, first, count).filter(|_| fit)?;
        let keys = keys.iter().map(Change::dotted).collect();
        Some(Values { axis: Axis { short: name.clone(), name, keys, labels }, changes: all })
    }

    /// Returns the labels that are written or, if none are, the labels of the first key's values.
    fn zip_labels(&mut self, table: &Table, name: &str, first: &Change, count: usize) -> Option<Vec<String>> {
        let path = format!("sweep.{name}");
        let (items, written) = match table.get("labels") {
            None => (self.list(&first.node, &first.dotted())?, false),
            Some(node) => (self.list(node, "labels")?, true),
        };
        if items.len() != count {
            let at = table.get("labels").map_or_else(|| first.node.at.clone(), |n| n.at.clone());
            let message = format!(
                "`labels` has {} for {}; write one for each",
                count_of(items, "label"),
                counted(count as u64, "value")
            );
            self.error(&at, &path, message);
            return None;
        }
        let label = |item: &Node| if written { self.text(item, &path) } else { self.label(item, &path) };
        let labels: Vec<_> = items.iter().map(label).collect();
        let labels = labels.into_iter().collect::<Option<Vec<_>>>()?;
        self.labels_differ(&labels, items, &path)?;
        Some(labels)
    }

    /// Returns all `[[sweep.case]]` as one axis.
    fn cases(&mut self, items: &[&Node]) -> Option<Values> {
        let mut axis = Axis { name: CASE.into(), short: CASE.into(), keys: Vec::new(), labels: Vec::new() };
        let mut all = Vec::new();
        for item in items {
            let Some(table) = self.table(item, CASE) else { continue };
            let Some(name) = self.name(item, table, CASE) else { continue };
            let at = name_at(item, table);
            if !is_name(&name) {
                let message =
                    format!("{name:?} is not a name; a case's name has 1 to 64 printable characters");
                self.error(&at, "sweep.case.name", message);
            } else if axis.labels.contains(&name) {
                self.error(&at, "sweep.case.name", format!("two cases are called {name:?}"));
            }
            let changes = changes(table, &["name"]);
            for key in changes.iter().map(Change::dotted) {
                if !axis.keys.contains(&key) {
                    axis.keys.push(key);
                }
            }
            axis.labels.push(name);
            all.push(changes);
        }
        (!all.is_empty()).then_some(Values { axis, changes: all })
    }

    /// Returns the tables under `[[sweep.KEY]]`.
    fn tables<'n>(&mut self, sweep: &'n Table, key: &str) -> Vec<&'n Node> {
        let Some(node) = sweep.get(key) else { return Vec::new() };
        match &node.value {
            Tree::List(items) if !items.is_empty() => items.iter().collect(),
            other => {
                let what = if matches!(other, Tree::List(_)) { "an empty list" } else { other.what() };
                self.error(&node.at, "sweep", format!("`{key}` is {what}; write [[sweep.{key}]]"));
                Vec::new()
            }
        }
    }

    fn table<'n>(&mut self, item: &'n Node, key: &str) -> Option<&'n Table> {
        if let Tree::Table(table) = &item.value {
            return Some(table);
        }
        let message =
            format!("`{}` is {}; write [[sweep.{key}]]", self.report.quote(&item.at), item.value.what());
        self.error(&item.at, "sweep", message);
        None
    }

    fn name(&mut self, item: &Node, table: &Table, key: &str) -> Option<String> {
        match table.get("name") {
            Some(node) => self.text(node, &format!("sweep.{key}.name")),
            None => {
                self.error(&item.at, &format!("sweep.{key}"), "`name` is missing; write a string");
                None
            }
        }
    }

    fn text(&mut self, node: &Node, path: &str) -> Option<String> {
        if let Tree::Text(text) = &node.value {
            return Some(text.clone());
        }
        let message = format!("`{}` is {}; write a string", self.report.quote(&node.at), node.value.what());
        self.error(&node.at, path, message);
        None
    }

    /// Returns the items of a list, which must not be empty.
    fn list<'n>(&mut self, node: &'n Node, key: &str) -> Option<&'n [Node]> {
        match &node.value {
            Tree::List(items) if !items.is_empty() => return Some(items),
            Tree::List(_) => {
                self.error(
                    &node.at,
                    "sweep",
                    format!("the list of `{key}` is empty; write at least one value"),
                );
            }
            other => {
                let quoted = self.report.quote(&node.at);
                let message =
                    format!("`{quoted}` is {}; `{key}` is swept over a list of values", other.what());
                self.error(&node.at, "sweep", message);
            }
        }
        None
    }

    /// Returns the label of a value: its text without quotes, or, for a table, its name or its kind.
    fn label(&mut self, item: &Node, path: &str) -> Option<String> {
        let label = match &item.value {
            Tree::Text(text) => Some(text.clone()),
            Tree::Table(table) => {
                ["name", "kind", "profile"].into_iter().find_map(|key| match table.get(key) {
                    Some(Node { value: Tree::Text(text), .. }) => Some(text.clone()),
                    _ => None,
                })
            }
            Tree::List(_) => None,
            _ => Some(self.report.written(&item.at).to_string()),
        };
        let label = label.filter(|label| is_name(label));
        if label.is_none() {
            let message = format!(
                "`{}` has no short text as a label; write a [[sweep.zip]] with `labels`",
                self.report.quote(&item.at)
            );
            self.error(&item.at, &format!("sweep.{path}"), message);
        }
        label
    }

    fn labels_differ(&mut self, labels: &[String], items: &[Node], path: &str) -> Option<()> {
        let path = path.strip_prefix("sweep.").unwrap_or(path);
        let mut differ = Some(());
        for (i, label) in labels.iter().enumerate() {
            let message = if !is_name(label) {
                format!("{label:?} is not a label; a label has 1 to 64 printable characters")
            } else if labels[..i].contains(label) {
                format!("{label:?} occurs twice; the labels of an axis must differ")
            } else {
                continue;
            };
            self.error(&items[i].at, &format!("sweep.{path}"), message);
            differ = None;
        }
        differ
    }

    /// Checks that no key is swept twice, and that no swept key overwrites one swept before it.
    fn keys_are_set_once(&mut self, axes: &[Values]) {
        let mut before: Vec<&Change> = Vec::new();
        for axis in axes {
            let explicit = axis.axis.name == CASE;
            for changes in &axis.changes {
                if explicit {
                    before.clear();
                }
                for change in changes {
                    self.is_set_once(change, &before);
                    before.push(change);
                }
                if !explicit {
                    break; // the keys are the same for every label
                }
            }
        }
    }

    fn is_set_once(&mut self, change: &Change, before: &[&Change]) {
        let Some(earlier) = before.iter().find(|b| meets(&change.path, &b.path)) else { return };
        let (key, other) = (change.dotted(), earlier.dotted());
        let message = if key == other {
            format!("`{key}` is swept twice; only one axis may set a key")
        } else {
            format!("`{key}` replaces `{other}`, which is swept above it; write `{key}` first")
        };
        self.error(&change.key_at, "sweep", message);
    }

    fn names_differ(&mut self, axes: &[Values], table: &Table) {
        for (i, axis) in axes.iter().enumerate() {
            let name = &axis.axis.name;
            if axes[..i].iter().any(|a| a.axis.name == *name) {
                let at = self.tables(table, ZIP).into_iter().rev().find_map(|item| match &item.value {
                    Tree::Table(zip) => zip
                        .get("name")
                        .filter(|n| matches!(&n.value, Tree::Text(t) if t == name))
                        .map(|n| n.at.clone()),
                    _ => None,
                });
                let at = at.unwrap_or_else(|| axis.changes[0][0].key_at.clone());
                self.error(&at, "sweep.zip.name", format!("two axes are called {name:?}"));
            }
        }
    }
}

fn name_at(item: &Node, table: &Table) -> At {
    table.get("name").map_or_else(|| item.at.clone(), |n| n.at.clone())
}

fn count_of(items: &[Node], noun: &str) -> String {
    counted(items.len() as u64, noun)
}
