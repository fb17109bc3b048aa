//! A tree as TOML text in canonical form: first the values that are not tables, then a header for
//! each table and each item of a list of tables. Below a header, each entry takes one line.

use std::fmt::Write;

use crate::tree::{Entry, Node, Table, Tree};

/// Returns the text of the file whose content is `root`.
pub(crate) fn document(root: &Table) -> String {
    let mut out = String::new();
    let is_section = |entry: &&Entry| match &entry.node.value {
        Tree::Table(_) => true,
        Tree::List(items) => !items.is_empty() && items.iter().all(|i| matches!(i.value, Tree::Table(_))),
        _ => false,
    };
    let (sections, values): (Vec<&Entry>, Vec<&Entry>) = root.entries.iter().partition(is_section);
    values.iter().for_each(|entry| line(&mut out, entry));
    for entry in sections {
        match &entry.node.value {
            Tree::Table(table) => section(&mut out, &format!("[{}]", key(&entry.key)), table),
            Tree::List(items) => {
                for item in items {
                    if let Tree::Table(table) = &item.value {
                        section(&mut out, &format!("[[{}]]", key(&entry.key)), table);
                    }
                }
            }
            _ => unreachable!("sections are tables"),
        }
    }
    out
}

fn section(out: &mut String, header: &str, table: &Table) {
    let gap = if out.is_empty() { "" } else { "\n" };
    writeln!(out, "{gap}{header}").expect("a String accepts any text");
    table.entries.iter().for_each(|entry| line(out, entry));
}

fn line(out: &mut String, entry: &Entry) {
    writeln!(out, "{} = {}", key(&entry.key), value(&entry.node)).expect("a String accepts any text");
}

fn value(node: &Node) -> String {
    match &node.value {
        Tree::Text(text) => quoted(text),
        Tree::Integer(n) => n.to_string(),
        Tree::Float(x) => float(*x),
        Tree::Flag(flag) => flag.to_string(),
        Tree::Date(date) => date.clone(),
        Tree::List(items) => format!("[{}]", items.iter().map(value).collect::<Vec<_>>().join(", ")),
        Tree::Table(table) if table.entries.is_empty() => "{}".to_string(),
        Tree::Table(table) => {
            let entries = table.entries.iter().map(|e| format!("{} = {}", key(&e.key), value(&e.node)));
            format!("{{ {} }}", entries.collect::<Vec<_>>().join(", "))
        }
    }
}

/// Returns the shortest decimal text that parses to the same number.
fn float(x: f64) -> String {
    if x.is_finite() { format!("{x:?}") } else { x.to_string().to_lowercase() }
}

fn key(key: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !key.is_empty() && key.chars().all(bare) { key.to_string() } else { quoted(key) }
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() => {
                write!(out, "\\u{:04X}", u32::from(c)).expect("a String accepts any text");
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Report;
    use crate::tree;
    use proptest::prelude::*;

    fn read(text: &str) -> Table {
        let Some(Node { value: Tree::Table(table), .. }) = tree::read(text, &mut Report::new(text)) else {
            panic!("not TOML: {text}")
        };
        table
    }

    #[test]
    fn values_come_before_tables() {
        let text = "[b]\n\"x y\" = [1, 2.5]\nc.d = true\n[[e]]\nf = 1e30\n[[e]]\n";
        let root = read(&format!("a = 'q\"\\'\n{text}"));
        let written =
            "a = \"q\\\"\\\\\"\n\n[b]\n\"x y\" = [1, 2.5]\nc = { d = true }\n\n[[e]]\nf = 1e30\n\n[[e]]\n";
        assert_eq!(document(&root), written);
    }

    fn any_value() -> impl Strategy<Value = Tree> {
        let leaf = prop_oneof![
            "\\PC{0,8}|[\\x00-\\x7f]{0,8}".prop_map(Tree::Text),
            any::<i64>().prop_map(|n| Tree::Integer(n.into())),
            any::<f64>().prop_filter("NaN equals nothing", |x| !x.is_nan()).prop_map(Tree::Float),
            any::<bool>().prop_map(Tree::Flag),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4)
                    .prop_map(|items| Tree::List(items.into_iter().map(node).collect())),
                any_table(inner).prop_map(Tree::Table),
            ]
        })
    }

    fn any_table(value: impl Strategy<Value = Tree>) -> impl Strategy<Value = Table> {
        prop::collection::btree_map("[a-z]{1,3}|\\PC{0,3}|[\\x00-\\x7f]{0,3}", value, 0..4).prop_map(|map| {
            let entry = |(key, value)| Entry { key, key_at: 0..0, node: node(value) };
            Table { entries: map.into_iter().map(entry).collect(), inline: true }
        })
    }

    fn node(value: Tree) -> Node {
        Node { at: 0..0, value }
    }

    /// Returns whether two trees are equal except for places, the order of keys and the notation of
    /// tables.
    fn same(a: &Tree, b: &Tree) -> bool {
        match (a, b) {
            (Tree::Text(a), Tree::Text(b)) => a == b,
            (Tree::Integer(a), Tree::Integer(b)) => a == b,
            (Tree::Float(a), Tree::Float(b)) => a.to_bits() == b.to_bits(),
            (Tree::Flag(a), Tree::Flag(b)) => a == b,
            (Tree::List(a), Tree::List(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(&a.value, &b.value))
            }
            (Tree::Table(a), Tree::Table(b)) => {
                a.entries.len() == b.entries.len()
                    && a.entries.iter().all(|e| b.get(&e.key).is_some_and(|n| same(&e.node.value, &n.value)))
            }
            _ => false,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_is_written_reads_as_it_was(table in any_table(any_value())) {
            let text = document(&table);
            prop_assert!(same(&Tree::Table(table), &Tree::Table(read(&text))), "{}", text);
        }
    }
}
