//! Changes: new values for paths in the file's tree, in the notation of arms and sweeps.

use crate::language::COMMON_TO_ARMS;
use crate::suggest::{listed, nearest};
use crate::topology::item_name;
use crate::tree::{At, Entry, Node, Table, Tree};

/// One replacement.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    /// The keys that lead to the value.
    pub(crate) path: Vec<String>,
    /// Where the path is written.
    pub(crate) key_at: At,
    /// The new value.
    pub(crate) node: Node,
}

impl Change {
    /// Returns the path as it is written: `traffic.ftp.count`.
    pub(crate) fn dotted(&self) -> String {
        self.path.join(".")
    }
}

/// Returns the replacements in a table of paths, in the order of the file. Quoted dotted keys, bare
/// dotted keys and sub-headers have the same meaning; an inline table is a value and replaces the
/// whole table. The keys in `others` belong to the table itself and are not paths.
pub(crate) fn changes(table: &Table, others: &[&str]) -> Vec<Change> {
    fn collect(table: &Table, path: &[String], others: &[&str], out: &mut Vec<Change>) {
        for entry in &table.entries {
            if path.is_empty() && others.contains(&entry.key.as_str()) {
                continue;
            }
            let path: Vec<String> =
                path.iter().cloned().chain(entry.key.split('.').map(|k| k.trim().to_string())).collect();
            match &entry.node.value {
                Tree::Table(inner) if !inner.inline => collect(inner, &path, others, out),
                _ => out.push(Change { path, key_at: entry.key_at.clone(), node: entry.node.clone() }),
            }
        }
    }
    let mut out = Vec::new();
    collect(table, &[], others, &mut out);
    out
}

/// Why a change cannot be made, and where to report it.
pub(crate) type Refusal = (At, String);

/// Replaces the value at the change's path.
///
/// # Errors
/// If there is no such path.
pub(crate) fn apply(tree: &mut Node, change: &Change) -> Result<(), Refusal> {
    let refuse = |message: String| Err((change.key_at.clone(), message));
    let first = change.path[0].as_str();
    if COMMON_TO_ARMS.contains(&first) {
        return refuse(format!(
            "`{first}` belongs to the experiment as a whole; only the network and its traffic can differ between \
             arms or cases"
        ));
    }
    if change.path.iter().any(String::is_empty) {
        return refuse(format!(
            "\"{}\" is not a path; write keys with single dots between them",
            change.dotted()
        ));
    }
    match change.path.as_slice() {
        [list, name, rest @ ..]
            if matches!(list.as_str(), "traffic" | "link" | "node" | "delay") && !rest.is_empty() =>
        {
            named_items(tree, list, name, change)?.into_iter().try_for_each(|item| set(item, rest, change))
        }
        path => set(tree, path, change),
    }
}

/// Returns the items of the array of tables `list` whose names match `name`, where a `*` stands for any text.
fn named_items<'t>(
    tree: &'t mut Node,
    list: &str,
    name: &str,
    change: &Change,
) -> Result<Vec<&'t mut Node>, Refusal> {
    let refuse = |message: String| (change.key_at.clone(), message);
    let Tree::Table(file) = &mut tree.value else { unreachable!("a file is a table") };
    let Some(Node { value: Tree::List(items), .. }) = file.get_mut(list) else {
        return Err(refuse(format!("there is no [[{list}]] to change")));
    };

    let names: Vec<String> =
        items.iter().enumerate().map(|(i, item)| item_name(list, i, &item.value)).collect();
    if !names.iter().any(|known| fits(name, known)) {
        let known = || names.iter().map(String::as_str);
        return Err(refuse(match nearest(name, known()) {
            Some(near) => format!("there is no {list} \"{name}\"; did you mean \"{list}.{near}\"?"),
            None => format!("there is no {list} \"{name}\"; there are {}", listed(known())),
        }));
    }
    Ok(items.iter_mut().zip(&names).filter(|(_, known)| fits(name, known)).map(|(item, _)| item).collect())
}

/// Returns whether setting `whole` replaces everything that `path` sets.
pub(crate) fn replaces(whole: &[String], path: &[String]) -> bool {
    whole.len() <= path.len() && whole.iter().zip(path).all(|(of, key)| of == key || fits(of, key))
}

/// Returns whether setting `whole` replaces anything that `path` sets. Either path may contain patterns.
pub(crate) fn meets(whole: &[String], path: &[String]) -> bool {
    whole.len() <= path.len() && whole.iter().zip(path).all(|(one, other)| overlap(one, other))
}

/// Returns whether a name matches a pattern, in which a `*` stands for any text. No name contains a
/// `*`.
fn fits(pattern: &str, name: &str) -> bool {
    !name.contains('*') && overlap(pattern, name)
}

/// Returns whether some text matches both patterns.
fn overlap(one: &str, other: &str) -> bool {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    // `rest[j]` states whether some text matches both the rest of `one` and `other[j..]`; the loop goes from
    // the end of `one` to its beginning.
    let mut rest = vec![false; other.len() + 1];
    for i in (0..=one.len()).rev() {
        let after = std::mem::replace(&mut rest, vec![false; other.len() + 1]);
        for j in (0..=other.len()).rev() {
            let (a, b) = (one.get(i), other.get(j));
            rest[j] = match (a, b) {
                (None, None) => true,
                (Some('*'), _) if after[j] => true,
                (_, Some('*')) if rest[j + 1] => true,
                (Some('*'), Some(_)) => rest[j + 1],
                (Some(_), Some('*')) => after[j],
                (Some(a), Some(b)) => a == b && after[j + 1],
                _ => false,
            };
        }
    }
    rest[0]
}

/// Sets `path` below `node` and creates missing tables on the way.
fn set(node: &mut Node, path: &[String], change: &Change) -> Result<(), Refusal> {
    let (key, rest) = path.split_first().expect("a path has a key");
    if let (Tree::List(items), false) = (&mut node.value, rest.is_empty()) {
        // In a list of tables within a table, such as the classes of a queue, an item is addressed
        // by its name.
        let named = |item: &&mut Node| item_name("", 0, &item.value) == *key;
        if let Some(item) = items.iter_mut().find(named) {
            return set(item, rest, change);
        }
    }
    open_shorthand(node, &change.path[..change.path.len() - path.len()], &change.key_at);
    let Tree::Table(table) = &mut node.value else {
        let what = node.value.what();
        let message = format!("\"{}\" leads into {what}, which has no key \"{key}\"", change.dotted());
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
        let made = table.get_mut(key).expect("it was just inserted");
        return set(made, rest, change);
    }
    set(table.get_mut(key).expect("it is there"), rest, change)
}

fn entry(key: &str, key_at: &At, node: Node) -> Entry {
    Entry { key: key.to_string(), key_at: key_at.clone(), node }
}

/// Expands `queue = "red"` to `queue = { kind = "red" }`, and `tcp = "ns2"` to
/// `tcp = { profile = "ns2" }`, so that a path can lead to a key inside. A missing queue becomes the
/// default queue.
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
