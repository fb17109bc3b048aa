//! Arms: the tree of the file with some of its values replaced.

use aqmlab_params::Kind;

use crate::error::Report;
use crate::kind;
use crate::language::COMMON_TO_ARMS;
use crate::suggest::{listed, nearest};
use crate::topology::item_name;
use crate::tree::{At, Entry, Node, Table, Tree};

/// An arm: its name and its own tree.
pub(crate) struct Arm {
    pub(crate) name: String,
    pub(crate) tree: Node,
}

/// The name of the only arm of a file that names none.
const ONLY: &str = "main";

/// All arms of the file, each with its tree; what is wrong with their paths goes to `report`.
pub(crate) fn arms(root: &Node, report: &mut Report<'_>) -> Vec<Arm> {
    let Tree::Table(file) = &root.value else { return Vec::new() };
    let Some(node) = file.get("arm") else { return vec![Arm { name: ONLY.to_string(), tree: root.clone() }] };
    let Tree::List(items) = &node.value else {
        report.error(&node.at, "arm", format!("`arm` is {}; write [[arm]]", node.value.what()));
        return Vec::new();
    };
    if items.is_empty() {
        report.error(&node.at, "arm", "the list is empty; write at least one [[arm]], or leave it out");
    }
    let mut arms: Vec<Arm> = Vec::new();
    for item in items {
        let Some(arm) = arm(root, item, report) else { continue };
        if arms.iter().any(|a| a.name == arm.name) {
            report.error(&item.at, "arm", format!("two arms are called {:?}", arm.name));
        }
        arms.push(arm);
    }
    arms
}

fn arm(root: &Node, item: &Node, report: &mut Report<'_>) -> Option<Arm> {
    let Tree::Table(table) = &item.value else {
        report.error(
            &item.at,
            "arm",
            format!("`{}` is {}; write [[arm]]", report.quote(&item.at), item.value.what()),
        );
        return None;
    };
    let name = name(item, table, report)?;
    let mut tree = root.clone();
    let changes = changes(table);
    if changes.is_empty() && table.entries.len() > 1 {
        report.error(
            &item.at,
            &format!("arm {name:?}"),
            "an empty table changes nothing; write dotted paths",
        );
    }
    for change in changes {
        if let Err((at, message)) = apply(&mut tree, &change) {
            report.error(&at, &format!("arm {name:?}"), message);
        }
    }
    Some(Arm { name, tree })
}

fn name(item: &Node, table: &Table, report: &mut Report<'_>) -> Option<String> {
    let Some(node) = table.get("name") else {
        report.error(&item.at, "arm", "`name` is missing; write a text");
        return None;
    };
    match kind::value(node, &Kind::Text, &report.quote(&node.at)) {
        Ok(value) => {
            let name = value.to_string();
            let printable =
                !name.trim().is_empty() && name.trim() == name && !name.chars().any(char::is_control);
            if printable && name.chars().count() <= 64 {
                return Some(name);
            }
            report.error(
                &node.at,
                "arm.name",
                format!("{name:?} is no name; an arm's name has 1 to 64 printable characters"),
            );
        }
        Err(message) => report.error(&node.at, "arm.name", message),
    }
    None
}

/// One replacement.
struct Change<'n> {
    path: Vec<String>,
    key_at: At,
    node: &'n Node,
}

/// The arm's replacements in the order of the file. Quoted dotted keys, bare dotted keys and sub-headers mean
/// the same; an inline table is a value and replaces wholly.
fn changes(table: &Table) -> Vec<Change<'_>> {
    fn collect<'n>(table: &'n Table, path: &[String], out: &mut Vec<Change<'n>>) {
        for entry in table.entries.iter().filter(|e| !(path.is_empty() && e.key == "name")) {
            let path: Vec<String> =
                path.iter().cloned().chain(entry.key.split('.').map(|k| k.trim().to_string())).collect();
            match &entry.node.value {
                Tree::Table(inner) if !inner.inline => collect(inner, &path, out),
                _ => out.push(Change { path, key_at: entry.key_at.clone(), node: &entry.node }),
            }
        }
    }
    let mut out = Vec::new();
    collect(table, &[], &mut out);
    out
}

type Refusal = (At, String);

/// Replaces the value at the change's path.
fn apply(tree: &mut Node, change: &Change<'_>) -> Result<(), Refusal> {
    let refuse = |message: String| Err((change.key_at.clone(), message));
    let first = change.path[0].as_str();
    if COMMON_TO_ARMS.contains(&first) {
        return refuse(format!(
            "`{first}` is the same for every arm; only what the network is and does can differ"
        ));
    }
    if change.path.iter().any(String::is_empty) {
        return refuse(format!(
            "\"{}\" is no path; write keys with single dots between them",
            change.path.join(".")
        ));
    }
    match change.path.as_slice() {
        [list, name, rest @ ..]
            if matches!(list.as_str(), "traffic" | "link" | "node" | "delay") && !rest.is_empty() =>
        {
            let item = named_item(tree, list, name, change)?;
            set(item, rest, change)
        }
        path => set(tree, path, change),
    }
}

/// The item called `name` in the array of tables `list`.
fn named_item<'t>(
    tree: &'t mut Node,
    list: &str,
    name: &str,
    change: &Change<'_>,
) -> Result<&'t mut Node, Refusal> {
    let refuse = |message: String| (change.key_at.clone(), message);
    let Tree::Table(file) = &mut tree.value else { unreachable!("a file is a table") };
    let Some(Node { value: Tree::List(items), .. }) = file.get_mut(list) else {
        return Err(refuse(format!("there is no [[{list}]] to change")));
    };

    let names: Vec<String> =
        items.iter().enumerate().map(|(i, item)| item_name(list, i, &item.value)).collect();
    match names.iter().position(|n| n == name) {
        Some(i) => Ok(&mut items[i]),
        None => {
            let known = || names.iter().map(String::as_str);
            Err(refuse(match nearest(name, known()) {
                Some(near) => format!("there is no {list} \"{name}\"; did you mean \"{list}.{near}\"?"),
                None => format!("there is no {list} \"{name}\"; there are {}", listed(known())),
            }))
        }
    }
}

/// Sets `path` below `node`; tables on the way that are not there are made.
fn set(node: &mut Node, path: &[String], change: &Change<'_>) -> Result<(), Refusal> {
    let (key, rest) = path.split_first().expect("a path has a key");
    open_shorthand(node, &change.path[..change.path.len() - path.len()], &change.key_at);
    let Tree::Table(table) = &mut node.value else {
        let what = node.value.what();
        let message = format!("\"{}\" leads into {what}, which has no key \"{key}\"", change.path.join("."));
        return Err((change.key_at.clone(), message));
    };
    if rest.is_empty() {
        table.entries.retain(|e| e.key != *key);
        table.entries.push(entry(key, &change.key_at, change.node.clone()));
        return Ok(());
    }
    if table.get(key).is_none() {
        let empty = Node { at: change.key_at.clone(), value: Tree::Table(Table::default()) };
        table.entries.push(entry(key, &change.key_at, empty));
        let made = table.get_mut(key).expect("it was just put there");
        return set(made, rest, change);
    }
    set(table.get_mut(key).expect("it is there"), rest, change)
}

fn entry(key: &str, key_at: &At, node: Node) -> Entry {
    Entry { key: key.to_string(), key_at: key_at.clone(), node }
}

/// `queue = "red"` stands for `queue = { kind = "red" }`, and `tcp = "ns2"` for `tcp = { profile = "ns2" }`:
/// written out when a path leads into them. A queue that is not written is the default one.
fn open_shorthand(node: &mut Node, path: &[String], key_at: &At) {
    let name = match path.last().map(String::as_str) {
        Some("queue" | "reverse_queue") => "kind",
        Some("tcp") => "profile",
        _ => return,
    };
    let named = match &node.value {
        Tree::Text(_) => node.clone(),
        Tree::Table(table) if table.entries.is_empty() && name == "kind" => {
            Node { at: key_at.clone(), value: Tree::Text(crate::language::DEFAULT_QUEUE.to_string()) }
        }
        _ => return,
    };
    node.value = Tree::Table(Table { entries: vec![entry(name, key_at, named)], inline: true });
}
