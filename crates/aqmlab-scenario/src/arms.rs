//! Arms: each consists of the file's tree with some values replaced.

use aqmlab_params::Kind;

use crate::changes::{Change, apply, changes};
use crate::error::Report;
use crate::kind;
use crate::names::is_name;
use crate::tree::{Node, Table, Tree};

/// An arm: its name, what it changes, and the tree that results.
#[derive(Clone, Debug)]
pub(crate) struct Arm {
    pub(crate) name: String,
    pub(crate) changes: Vec<Change>,
    pub(crate) tree: Node,
}

/// The name of the only arm in a file without named arms.
const ONLY: &str = "main";

/// Returns all arms in `written`, each with its tree: `base` with the arm's changes applied. Errors
/// in the paths of changes go to `report`.
pub(crate) fn arms(written: Option<&Node>, base: &Node, report: &mut Report<'_>) -> Vec<Arm> {
    let Some(node) = written else {
        return vec![Arm { name: ONLY.to_string(), changes: Vec::new(), tree: base.clone() }];
    };
    let Tree::List(items) = &node.value else {
        report.error(&node.at, "arm", format!("`arm` is {}; write [[arm]]", node.value.what()));
        return Vec::new();
    };
    if items.is_empty() {
        report.error(&node.at, "arm", "the list is empty; write at least one [[arm]], or leave it out");
    }
    let mut arms: Vec<Arm> = Vec::new();
    for item in items {
        let Some(arm) = arm(base, item, report) else { continue };
        if arms.iter().any(|a| a.name == arm.name) {
            report.error(&item.at, "arm", format!("two arms are called {:?}", arm.name));
        }
        arms.push(arm);
    }
    arms
}

fn arm(base: &Node, item: &Node, report: &mut Report<'_>) -> Option<Arm> {
    let Tree::Table(table) = &item.value else {
        report.error(
            &item.at,
            "arm",
            format!("`{}` is {}; write [[arm]]", report.quote(&item.at), item.value.what()),
        );
        return None;
    };
    let name = name(item, table, report)?;
    let mut tree = base.clone();
    let changes = changes(table, &["name"]);
    if changes.is_empty() && table.entries.len() > 1 {
        report.error(
            &item.at,
            &format!("arm {name:?}"),
            "an empty table changes nothing; write dotted paths",
        );
    }
    for change in &changes {
        if let Err((at, message)) = apply(&mut tree, change) {
            report.error(&at, &format!("arm {name:?}"), message);
        }
    }
    Some(Arm { name, changes, tree })
}

fn name(item: &Node, table: &Table, report: &mut Report<'_>) -> Option<String> {
    let Some(node) = table.get("name") else {
        report.error(&item.at, "arm", "`name` is missing; write a string");
        return None;
    };
    match kind::value(node, &Kind::Text, &report.quote(&node.at)) {
        Ok(value) => {
            let name = value.to_string();
            if is_name(&name) {
                return Some(name);
            }
            report.error(
                &node.at,
                "arm.name",
                format!("{name:?} is not a name; an arm's name has 1 to 64 printable characters"),
            );
        }
        Err(message) => report.error(&node.at, "arm.name", message),
    }
    None
}
