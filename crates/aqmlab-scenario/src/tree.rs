//! The TOML text as a tree that records the place of each key and value.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use crate::error::Report;

/// A range of bytes in the scenario's text.
pub(crate) type At = Range<usize>;

/// A value and its place.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) at: At,
    pub(crate) value: Tree,
}

/// The types of TOML.
#[derive(Clone, Debug)]
pub(crate) enum Tree {
    Text(String),
    Integer(i128),
    Float(f64),
    Flag(bool),
    /// A date as written.
    Date(String),
    List(Vec<Node>),
    Table(Table),
}

/// The entries of a table in the order of the file.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    pub(crate) entries: Vec<Entry>,
    /// Whether the table is written as `{ ... }`, not with a header or dotted keys.
    pub(crate) inline: bool,
}

/// A key, its place, and its value.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: String,
    pub(crate) key_at: At,
    pub(crate) node: Node,
}

impl Table {
    pub(crate) fn get(&self, key: &str) -> Option<&Node> {
        self.entries.iter().find(|e| e.key == key).map(|e| &e.node)
    }

    pub(crate) fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        self.entries.iter_mut().find(|e| e.key == key).map(|e| &mut e.node)
    }
}

impl Tree {
    /// Returns the name of the value's type, for messages.
    pub(crate) fn what(&self) -> &'static str {
        match self {
            Tree::Text(_) => "a string",
            Tree::Integer(_) => "a whole number",
            Tree::Float(_) => "a number",
            Tree::Flag(_) => "a boolean",
            Tree::Date(_) => "a date",
            Tree::List(_) => "a list",
            Tree::Table(_) => "a table",
        }
    }
}

/// Reads TOML. Syntax errors go to `report`, and the result is then `None`.
pub(crate) fn read(text: &str, report: &mut Report<'_>) -> Option<Node> {
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let at = error.span().unwrap_or(0..0);
        let message = error.message().trim_end_matches('.').replace('\n', ", ");
        let place = match report.quote(&at).trim() {
            "" => String::new(),
            quoted => format!(" at `{quoted}`"),
        };
        report.error(&at, "", format!("not TOML{place}: {message}"));
    }
    let root = Node { at: 0..0, value: Tree::Table(table_of(text, table.get_ref(), false)) };
    errors.is_empty().then_some(root)
}

fn table_of(text: &str, table: &DeTable<'_>, inline: bool) -> Table {
    let mut entries: Vec<Entry> = table
        .iter()
        .map(|(key, value)| Entry {
            key: key.get_ref().to_string(),
            key_at: key.span(),
            node: node_of(text, value.span(), value.get_ref()),
        })
        .collect();
    entries.sort_by_key(|e| e.key_at.start);
    Table { entries, inline }
}

fn node_of(text: &str, at: At, value: &DeValue<'_>) -> Node {
    let value = match value {
        DeValue::String(s) => Tree::Text(s.to_string()),
        DeValue::Integer(n) => Tree::Integer(integer(n.as_str(), n.radix())),
        // A float beyond the range of f64 is read as infinity, which is outside every accepted range.
        DeValue::Float(x) => Tree::Float(x.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(b) => Tree::Flag(*b),
        DeValue::Datetime(date) => Tree::Date(date.to_string()),
        DeValue::Array(items) => {
            Tree::List(items.iter().map(|i| node_of(text, i.span(), i.get_ref())).collect())
        }
        DeValue::Table(table) => {
            let inline = text.get(at.clone()).is_some_and(|t| t.starts_with('{'));
            Tree::Table(table_of(text, table, inline))
        }
    };
    Node { at, value }
}

/// Parses an integer. A number that does not fit in 128 bits becomes the nearest that does, because
/// it exceeds every limit anyway.
fn integer(digits: &str, radix: u32) -> i128 {
    let limit = if digits.starts_with('-') { i128::MIN } else { i128::MAX };
    i128::from_str_radix(digits, radix).unwrap_or(limit)
}
