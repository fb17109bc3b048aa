//! Typed reading of sections of the tree. This is the only place where a key is looked up, checked,
//! given its default, and entered with its origin in the list of effective parameters.

use std::collections::BTreeSet;

use aqmlab_params::{Kind, Origin, Value};
use aqmlab_qdisc::registry::Catalogue;
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Rate, Span};

use crate::elsewhere;
use crate::error::Report;
use crate::field::{Absent, Field, Form, Key, OURS, Variant};
use crate::kind;
use crate::names::{is_printable, name_flaw};
use crate::parameter::Parameter;
use crate::suggest::{listed, nearest, no_such};
use crate::trace::Traces;
use crate::tree::{At, Entry, Node, Table, Tree};

/// One reading of the tree, for one arm, with the errors and effective parameters found so far.
pub(crate) struct Pass<'p, 't> {
    pub(crate) report: &'p mut Report<'t>,
    /// The traces that the scenario names.
    pub(crate) traces: &'p Traces<'p>,
    /// The disciplines that the scenario can name.
    pub(crate) catalogue: &'p Catalogue,
    /// The first seed and the number of seeds, if the file gives valid values.
    pub(crate) seeds: Option<(u64, u64)>,
    /// The length of the run, once it is known.
    pub(crate) run_length: Option<Span>,
    /// The names of the classes of traffic that are not enabled.
    pub(crate) disabled: Vec<String>,
    /// The names and ports of the traffic classes, once they are known.
    pub(crate) traffic: Option<Vec<(String, u16)>>,
    pub(crate) parameters: Vec<Parameter>,
    /// The paths of `parameters`.
    entered: BTreeSet<String>,
}

/// A table with its accepted keys.
#[derive(Clone)]
pub(crate) struct Section<'n> {
    /// The path of the table as a scenario file would write it: `traffic.ftp`.
    pub(crate) path: String,
    /// Its position.
    pub(crate) at: At,
    pub(crate) table: &'n Table,
    pub(crate) fields: Vec<&'static Field>,
}

impl<'n> Section<'n> {
    /// Returns the path of a key.
    pub(crate) fn sub(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_string() } else { format!("{}.{key}", self.path) }
    }

    /// Returns the node at a key, or at another tool's name for it.
    pub(crate) fn node(&self, key: &str) -> Option<&'n Node> {
        let aliases = self.fields.iter().find(|f| f.name == key).map_or(&[][..], |f| f.aliases);
        self.table.get(key).or_else(|| aliases.iter().find_map(|alias| self.table.get(alias.name)))
    }

    /// Returns the position of the key's value, or the position of the section if the key is not written.
    pub(crate) fn at(&self, key: &str) -> At {
        self.node(key).map_or_else(|| self.at.clone(), |n| n.at.clone())
    }

    /// Returns the help text of a key.
    pub(crate) fn help(&self, key: &str) -> &'static str {
        self.field(key).help
    }

    pub(crate) fn field(&self, key: &str) -> &'static Field {
        self.fields.iter().find(|f| f.name == key).expect("sections are read by the keys of their own table")
    }

    fn kind(&self, key: &str) -> Kind {
        match self.field(key).form {
            Form::One(kind) | Form::OrWord(kind, _) | Form::OverTime(kind, _) => kind,
            _ => unreachable!("only single values are read by kind"),
        }
    }
}

impl<'p, 't> Pass<'p, 't> {
    /// Creates a reading that has no effective parameters yet.
    pub(crate) fn new(report: &'p mut Report<'t>, traces: &'p Traces<'p>, catalogue: &'p Catalogue) -> Self {
        Pass {
            report,
            traces,
            catalogue,
            seeds: None,
            run_length: None,
            disabled: Vec::new(),
            traffic: None,
            parameters: Vec::new(),
            entered: BTreeSet::new(),
        }
    }
}

impl Pass<'_, '_> {
    /// Reports an error at `at`.
    pub(crate) fn error(&mut self, at: &At, path: &str, message: impl Into<String>) {
        self.report.error(at, path, message);
    }

    /// Returns the section at `node` after checking its keys.
    pub(crate) fn section<'n>(
        &mut self,
        node: &'n Node,
        path: &str,
        fields: impl IntoIterator<Item = &'static Field>,
    ) -> Option<Section<'n>> {
        let section = self.open_section(node, path, fields)?;
        self.check_keys(section.table, path, &section.fields, &[]);
        Some(section)
    }

    /// Returns the section at `node` without checking its keys.
    pub(crate) fn open_section<'n>(
        &mut self,
        node: &'n Node,
        path: &str,
        fields: impl IntoIterator<Item = &'static Field>,
    ) -> Option<Section<'n>> {
        let fields = fields.into_iter().collect();
        let table = self.table(node, path)?;
        Some(Section { path: path.to_string(), at: node.at.clone(), table, fields })
    }

    /// Returns the table at `node`.
    pub(crate) fn table<'n>(&mut self, node: &'n Node, path: &str) -> Option<&'n Table> {
        match &node.value {
            Tree::Table(table) => Some(table),
            other => {
                let message = format!("`{}` is {}; write a table", self.report.quote(&node.at), other.what());
                self.error(&node.at, path, message);
                None
            }
        }
    }

    /// Checks that every key is among `keys` or `others`.
    pub(crate) fn check_keys<K: Key>(&mut self, table: &Table, path: &str, keys: &[K], others: &[&str]) {
        self.check_aliases(table, path, keys);
        for entry in &table.entries {
            let known = others.contains(&entry.key.as_str())
                || keys
                    .iter()
                    .any(|k| k.name() == entry.key || k.aliases().iter().any(|a| a.name == entry.key));
            if !known {
                self.unknown_key(entry, path, keys, others);
            }
        }
    }

    /// Checks that no field is written under two names. (The code that reads parameters makes this
    /// check for them.)
    fn check_aliases<K: Key>(&mut self, table: &Table, path: &str, keys: &[K]) {
        for key in keys.iter().filter(|key| key.is_field()) {
            let is_alias = |e: &&Entry| key.aliases().iter().any(|a| a.name == e.key);
            if let (Some(_), Some(other)) = (table.get(key.name()), table.entries.iter().find(is_alias)) {
                let message =
                    format!("`{}` is another name for `{}`, which is given as well", other.key, key.name());
                self.error(&other.key_at, &format!("{path}.{}", key.name()), message);
            }
        }
    }

    fn unknown_key<K: Key>(&mut self, entry: &Entry, path: &str, keys: &[K], others: &[&str]) {
        let names = keys.iter().map(|k| -> &str { k.name() }).chain(others.iter().copied());
        let aliases = keys.iter().flat_map(|k| k.aliases().iter().map(|a| a.name));
        let key = &entry.key;
        if let Some(advice) = elsewhere::of_key(key, |known| names.clone().any(|name| name == known)) {
            self.error(&entry.key_at, path, format!("unknown key {key:?}; {advice}"));
            return;
        }
        let message = match nearest(key, names.clone().chain(aliases)) {
            None => format!("unknown key {key:?}; the keys here are {}", listed(names)),
            Some(near) => {
                let meant =
                    keys.iter().find(|k| k.aliases().iter().any(|a| a.name == near) || k.name() == near);
                let also = meant.map_or_else(String::new, |k| also_known_as(k));
                format!("unknown key {key:?}; did you mean \"{near}\"?{also}")
            }
        };
        self.error(&entry.key_at, path, message);
    }

    /// Returns the variant that a table's key `kind` names.
    pub(crate) fn variant(
        &mut self,
        node: &Node,
        path: &str,
        variants: &'static [Variant],
    ) -> Option<&'static Variant> {
        let table = self.table(node, path)?;
        let kinds = || variants.iter().map(|v| v.kind);
        let Some(kind) = table.get("kind") else {
            self.error(&node.at, path, format!("`kind` is missing; write one of {}", listed(kinds())));
            return None;
        };
        let Value::Text(word) = self.given(kind, &format!("{path}.kind"), &Kind::Text)? else { return None };
        let found = variants.iter().find(|v| v.kind == word);
        if found.is_none() {
            self.error(&kind.at, &format!("{path}.kind"), no_such("kind", &word, kinds()));
        }
        found
    }

    /// Returns the value of a key or its default, or `None` if the value is wrong, missing or
    /// determined by another key.
    pub(crate) fn value(&mut self, section: &Section<'_>, key: &str) -> Option<Value> {
        let field = section.field(key);
        let (value, origin) = match (section.node(key), field.absent) {
            (Some(node), _) => {
                let path = section.sub(key);
                match flag_of_another_tool(section, field) {
                    Some(flag) => (flag, Origin::Given),
                    None => (self.given(node, &path, &section.kind(key))?, Origin::Given),
                }
            }
            (None, Absent::Is(default)) => (default.value()?, Origin::Default(OURS)),
            (None, Absent::Rule(_)) => return None,
            (None, Absent::Required) => {
                self.missing(section, field);
                return None;
            }
        };
        self.enter(section, key, &value, origin);
        Some(value)
    }

    /// Returns the value written at `node`.
    pub(crate) fn given(&mut self, node: &Node, path: &str, kind: &Kind) -> Option<Value> {
        match kind::value(node, kind, &self.report.quote(&node.at)) {
            Ok(value) => Some(value),
            Err(message) => {
                self.error(&node.at, path, message);
                None
            }
        }
    }

    /// Reports a required key that is missing.
    pub(crate) fn missing(&mut self, section: &Section<'_>, field: &Field) {
        let what = match field.form {
            Form::One(kind) | Form::OverTime(kind, _) => format!("write {}", kind::form(&kind)),
            Form::Steps(_) | Form::Levels(_) => "write a list".to_string(),
            Form::Kinds(variants) => {
                let kind = variants.first().map_or("", |v| v.kind);
                format!("add [{}] with a `kind` such as \"{kind}\"", field.name)
            }
            Form::PerSecond => format!("write {}", crate::field::PER_SECOND),
            Form::Command => "write a list of texts: the program and its arguments".to_string(),
            _ => "write a name".to_string(),
        };
        self.error(
            &section.at,
            &section.path,
            format!("`{}` is missing ({}); {what}", field.name, field.help),
        );
    }

    /// Adds the effective value of a key to the parameters.
    pub(crate) fn enter(
        &mut self,
        section: &Section<'_>,
        key: &str,
        value: &impl std::fmt::Display,
        origin: Origin,
    ) {
        let Field { help, aliases, .. } = *section.field(key);
        let (path, value) = (section.sub(key), value.to_string());
        self.enter_parameter(Parameter { path, value, origin, source: OURS, help, aliases });
    }

    /// Adds to the parameters an effective value that has no section because nothing was written.
    pub(crate) fn enter_at(
        &mut self,
        path: String,
        value: &impl std::fmt::Display,
        origin: Origin,
        help: &'static str,
    ) {
        self.enter_parameter(Parameter {
            path,
            value: value.to_string(),
            origin,
            source: OURS,
            help,
            aliases: &[],
        });
    }

    /// Adds a parameter. A value that several links share is added once.
    pub(crate) fn enter_parameter(&mut self, parameter: Parameter) {
        if self.entered.insert(parameter.path.clone()) {
            self.parameters.push(parameter);
        }
    }

    /// Changes a parameter that has already been added.
    pub(crate) fn amend(&mut self, path: &str, value: &impl std::fmt::Display) {
        if let Some(parameter) = self.parameters.iter_mut().find(|parameter| parameter.path == path) {
            parameter.value = value.to_string();
        }
    }

    /// Adds to the parameters a value that follows from a rule instead of being written.
    pub(crate) fn derive(
        &mut self,
        section: &Section<'_>,
        key: &str,
        value: &impl std::fmt::Display,
        rule: &str,
    ) {
        self.enter(section, key, value, Origin::Derived(rule.to_string().into()));
    }

    /// Returns the name at a key, if it is written and valid.
    pub(crate) fn name(&mut self, section: &Section<'_>, key: &str) -> Option<String> {
        let field = section.field(key);
        let Some(node) = section.node(key) else {
            if matches!(field.absent, Absent::Required) {
                self.missing(section, field);
            }
            return None;
        };
        let path = section.sub(key);
        let Value::Text(name) = self.given(node, &path, &Kind::Text)? else { return None };
        match name_flaw(&name) {
            None => Some(name),
            Some(flaw) => {
                self.error(&node.at, &path, format!("`{}` {flaw}", self.report.quote(&node.at)));
                None
            }
        }
    }
}

impl Pass<'_, '_> {
    /// Returns the free text at a key, or an empty text if the key is not written. The text must
    /// not contain control characters, which a terminal would obey, except those in `also`.
    pub(crate) fn prose(&mut self, section: &Section<'_>, key: &str, also: &[char]) -> Option<String> {
        if section.node(key).is_none() {
            return Some(String::new());
        }
        let text = self.text(section, key)?;
        let Some(sign) = text.chars().find(|c| !is_printable(*c) && !also.contains(c)) else {
            return Some(text);
        };
        let message = format!("{sign:?} is not a printable character; write plain text");
        self.error(&section.at(key), &section.sub(key), message);
        None
    }
}

/// The control characters that only break lines or make gaps in text.
pub(crate) const LINES: &[char] = &['\n', '\t'];

macro_rules! typed {
    ($fn:ident, $pattern:pat => $value:expr, $type:ty) => {
        /// Returns the key's value, as [`Pass::value`] does.
        pub(crate) fn $fn(&mut self, section: &Section<'_>, key: &str) -> Option<$type> {
            match self.value(section, key)? {
                $pattern => Some($value),
                _ => unreachable!("the kind decides the value's type"),
            }
        }
    };
}

impl Pass<'_, '_> {
    typed!(span, Value::Span(v) => v, Span);
    typed!(rate, Value::Rate(v) => v, Rate);
    typed!(integer, Value::Integer(v) => v, u64);
    typed!(number, Value::Number(v) => v, f64);
    typed!(flag, Value::Flag(v) => v, bool);
    typed!(text, Value::Text(v) => v, String);
    typed!(word, Value::Choice(v) => v, &'static str);
    typed!(bytes, Value::Size(Size::Bytes(v)) => v, Bytes);
}

/// Returns the flag at a key, if it is written as 0 or 1 (as in Tcl) under another tool's name.
fn flag_of_another_tool(section: &Section<'_>, field: &Field) -> Option<Value> {
    let by_alias = section.table.get(field.name).is_none();
    match (field.form, &section.node(field.name)?.value) {
        (Form::One(Kind::Flag), Tree::Integer(n @ (0 | 1))) if by_alias => Some(Value::Flag(*n == 1)),
        _ => None,
    }
}

/// Returns ` (ns-2 alias: thresh_)`, or nothing.
fn also_known_as(key: &impl Key) -> String {
    let others = key.aliases().iter().filter(|a| a.name != key.name());
    let named: Vec<String> = others.map(|a| format!("{} alias: {}", a.of, a.name)).collect();
    if named.is_empty() { String::new() } else { format!(" ({})", named.join(", ")) }
}
