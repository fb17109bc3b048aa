//! Reads the parameters of queues from a file: values of all kinds, including lists, tables and
//! queues. Reports errors in them, and adds them to the effective parameters.

use std::collections::BTreeSet;

use aqmlab_params::{Alias, Kind, Origin, Param, ParamError, Reading, Settings, Value};
use aqmlab_qdisc::registry::Catalogue;
use aqmlab_units::text::Size;

use crate::kind;
use crate::language::{MOST_PACKETS, QUEUE_KIND};
use crate::parameter::Parameter;
use crate::part;
use crate::pass::Pass;
use crate::queue::DISCIPLINE_HELP;
use crate::suggest::no_such;
use crate::tree::{At, Entry, Node, Table, Tree};

impl Pass<'_, '_> {
    /// Writes the values in `table` over those in `settings`. Returns false if something in the table is
    /// wrong.
    pub(crate) fn overlay(
        &mut self,
        table: &Table,
        path: &str,
        params: &'static [Param],
        settings: &mut Settings,
    ) -> bool {
        let mut clean = true;
        let mut seen: Vec<&str> = Vec::new();
        for entry in &table.entries {
            let Some(param) = params.iter().find(|p| p.answers_to(&entry.key)) else {
                clean &= matches!(entry.key.as_str(), QUEUE_KIND | "profile");
                continue;
            };
            let path = format!("{path}.{}", param.name);
            if seen.contains(&param.name) {
                let first = table.entries.iter().find(|e| param.answers_to(&e.key)).expect("it was seen");
                let message = if entry.key == param.name || first.key == param.name {
                    let other = if entry.key == param.name { &first.key } else { &entry.key };
                    format!("`{other}` is another name for `{}`, which is given as well", param.name)
                } else {
                    format!(
                        "`{}` and `{}` are both names for `{}`; write one of them",
                        first.key, entry.key, param.name
                    )
                };
                self.error(&entry.key_at, &path, message);
                clean = false;
            }
            seen.push(param.name);
            let alias = param.alias(&entry.key);
            if let Some(alias) = alias
                && is_in_bytes_in_ns3(alias, entry, table)
            {
                let message = format!(
                    "with `MaxSize` in bytes, ns-3 takes `{}` in bytes; write it with a unit",
                    alias.name
                );
                self.error(&entry.node.at, &path, message);
                clean = false;
                continue;
            }
            let node = &part::by_its_name(entry, param);
            let value = if part::is_part(node, param) {
                self.part_of_buffer(table, params, node, &path, param)
            } else {
                let origin = alias.map_or(Origin::Given, |a| self.origin_of_alias(a, &entry.node));
                self.parameter(node, &path, param, alias).map(|value| (value, origin))
            };
            match value {
                Some((value, origin)) => settings.set(param.name, value, origin),
                None => clean = false,
            }
            if let Some((alias, (name, value))) = alias.and_then(|a| Some((a, implied(a, &entry.node)?)))
                && let Some(implied) = params.iter().find(|p| p.name == name)
                && !table.entries.iter().any(|e| implied.answers_to(&e.key))
            {
                let rule = format!("as with `{}` in {}", alias.name, alias.of);
                settings.set(name, value, Origin::Derived(rule.into()));
            }
        }
        clean
    }

    /// Returns the origin of a value that is written under the name that another tool uses, with a
    /// note if the value has a different meaning in that tool.
    fn origin_of_alias(&self, alias: &Alias, written: &Node) -> Origin {
        let differs =
            matches!(alias.reading, Reading::Words(..) | Reading::Inverse | Reading::ZeroIsUnlimited)
                && !matches!(written.value, Tree::Text(_))
                || kind::is_automatic(&written.value, alias.reading).is_some();
        if !differs {
            return Origin::Given;
        }
        Origin::Derived(format!("{} `{} = {}`", alias.of, alias.name, self.report.quote(&written.at)).into())
    }

    /// Returns a parameter's value; the word "auto" requests an automatic one.
    fn parameter(&mut self, node: &Node, path: &str, param: &Param, alias: Option<&Alias>) -> Option<Value> {
        let automatic = matches!(param.default, aqmlab_params::Default::Auto(_));
        if automatic && matches!(&node.value, Tree::Text(word) if word == Value::AUTO) {
            return Some(Value::Auto);
        }
        if let Some(value) = self.nested_value(node, path, &param.kind) {
            return value;
        }
        match kind::value(node, &param.kind, &self.report.quote(&node.at)) {
            Ok(Value::Size(Size::Packets(n))) if n > MOST_PACKETS => {
                self.error(&node.at, path, format!("`{n}` is too large; it must be at most {MOST_PACKETS}"));
                None
            }
            Ok(value) => Some(value),
            Err(message) => {
                let or_auto = if automatic { ", or \"auto\"" } else { "" };
                let meaning =
                    alias.and_then(|a| Some(format!("; `{}` as in {}: {}", a.name, a.of, a.meaning()?)));
                self.error(&node.at, path, format!("{message}{or_auto}{}", meaning.unwrap_or_default()));
                None
            }
        }
    }

    /// Returns a value of a kind that contains other values, or that names something in the
    /// scenario, and reports errors in it. The outer `None` is returned for all other kinds.
    fn nested_value(&mut self, node: &Node, path: &str, kind: &Kind) -> Option<Option<Value>> {
        match kind {
            Kind::List(of) => Some(self.list_value(node, path, of)),
            Kind::Table(params) => Some(self.table_value(node, path, params)),
            Kind::Discipline => {
                let found = self.discipline_at(node, path);
                Some(found.map(|(info, _, settings)| Value::Discipline { kind: info.name, settings }))
            }
            Kind::TrafficClass => Some(self.traffic_class(node, path)),
            Kind::Port => Some(self.traffic_port(node, path)),
            _ => None,
        }
    }

    fn list_value(&mut self, node: &Node, path: &str, of: &Kind) -> Option<Value> {
        let Tree::List(items) = &node.value else {
            let message = format!(
                "`{}` is {}; write a list, each item {}",
                self.report.quote(&node.at),
                node.value.what(),
                kind::form(of)
            );
            self.error(&node.at, path, message);
            return None;
        };
        if items.is_empty() {
            self.error(
                &node.at,
                path,
                format!("the list is empty; write at least one item, {}", kind::form(of)),
            );
            return None;
        }
        let mut values = Vec::new();
        for (i, item) in items.iter().enumerate() {
            let path = item_path(path, i, &item.value);
            values.push(match self.nested_value(item, &path, of) {
                Some(value) => value,
                None => self.given(item, &path, of),
            });
        }
        values.into_iter().collect::<Option<Vec<_>>>().map(Value::List)
    }

    fn table_value(&mut self, node: &Node, path: &str, params: &'static [Param]) -> Option<Value> {
        let table = self.table(node, path)?;
        self.check_keys(table, path, params, &[]);
        let mut settings = Settings::default();
        self.overlay(table, path, params, &mut settings).then_some(Value::Table(settings))
    }

    /// Returns a traffic class by its name. If the traffic itself is wrong, any name is accepted.
    fn traffic_class(&mut self, node: &Node, path: &str) -> Option<Value> {
        let Value::Text(name) = self.given(node, path, &Kind::Text)? else { return None };
        let number = match &self.traffic {
            None => 0,
            Some(classes) => match classes.iter().position(|(n, _)| *n == name) {
                Some(number) => number,
                None => {
                    let message = no_such("traffic class", &name, classes.iter().map(|(n, _)| n.as_str()));
                    self.error(&node.at, path, message);
                    return None;
                }
            },
        };
        Some(Value::TrafficClass { name, number })
    }

    /// Returns a port with the traffic classes that use it. If the traffic itself is wrong, any port is
    /// accepted.
    fn traffic_port(&mut self, node: &Node, path: &str) -> Option<Value> {
        let Value::Integer(number) = self.given(node, path, &Kind::Port)? else { return None };
        let ports: Option<Vec<u64>> =
            self.traffic.as_ref().map(|all| all.iter().map(|(_, port)| u64::from(*port)).collect());
        let mut classes = Vec::new();
        if let Some(ports) = ports {
            classes.extend((0..ports.len()).filter(|class| ports[*class] == number));
            if classes.is_empty() {
                let known: Vec<String> = BTreeSet::from_iter(ports).iter().map(u64::to_string).collect();
                let message = format!(
                    "no traffic has the port `{number}` (in use: {}); write one of them, or \
                     `port = {number}` in a `[[traffic]]`",
                    known.join(", ")
                );
                self.error(&node.at, path, message);
                return None;
            }
        }
        Some(Value::Port { number: number as u16, classes })
    }

    /// Reports a parameter that a discipline or TCP refuses, at the place where it is written or
    /// the nearest place that exists.
    pub(crate) fn param_error(
        &mut self,
        error: &ParamError,
        mut table: Option<&Table>,
        mut params: &'static [Param],
        otherwise: &At,
        path: &str,
    ) {
        let (mut at, mut path) = (otherwise.clone(), path.to_string());
        for place in &error.within {
            path = format!("{path}.{}", place.name);
            let Some(mut node) = written(table, params, place.name) else {
                table = None;
                continue;
            };
            if let (Tree::List(items), Some(index)) = (&node.value, place.item)
                && let Some(item) = items.get(index)
            {
                (path, node) = (item_path(&path, index, &item.value), item);
            }
            at = node.at.clone();
            (table, params) = inside_of(self.catalogue, &node.value, params, place.name);
        }
        if let Some(node) = written(table, params, error.name) {
            at = node.at.clone();
        }
        self.error(&at, &format!("{path}.{}", error.name), error.message.clone());
    }

    /// Adds effective settings to the parameters, with the help, source and aliases that their table gives
    /// for them.
    pub(crate) fn enter_settings(&mut self, path: &str, params: &'static [Param], settings: &Settings) {
        for setting in settings.iter() {
            let Some(param) = params.iter().find(|p| p.name == setting.name) else { continue };
            if self.enter_nested(
                &format!("{path}.{}", setting.name),
                &param.kind,
                &setting.value,
                &setting.origin,
            ) {
                continue;
            }
            self.enter_parameter(Parameter {
                path: format!("{path}.{}", setting.name),
                value: setting.value.to_string(),
                origin: setting.origin.clone(),
                source: param.source,
                help: param.help,
                aliases: param.aliases,
            });
        }
    }

    /// Adds the values inside a value to the parameters, each with its own origin. Returns false if there are
    /// none.
    fn enter_nested(&mut self, path: &str, kind: &Kind, value: &Value, origin: &Origin) -> bool {
        match (kind, value) {
            (Kind::Table(params), Value::Table(settings)) => self.enter_settings(path, params, settings),
            (Kind::List(of @ Kind::Table(_)), Value::List(items)) => {
                for (i, item) in items.iter().enumerate() {
                    let name = match item {
                        Value::Table(settings) => {
                            settings.text("name").or_else(|_| settings.text("class")).ok()
                        }
                        _ => None,
                    };
                    let name = name.unwrap_or_else(|| (i + 1).to_string());
                    self.enter_nested(&format!("{path}.{name}"), of, item, origin);
                }
            }
            (Kind::Discipline, Value::Discipline { kind, settings }) => {
                let Some(info) = self.catalogue.find(kind) else { return false };
                self.enter_at(format!("{path}.{QUEUE_KIND}"), &info.name, origin.clone(), DISCIPLINE_HELP);
                self.enter_settings(path, info.params, settings);
            }
            _ => return false,
        }
        true
    }
}

/// Returns the value that the file gives for the parameter `name`.
fn written<'n>(table: Option<&'n Table>, params: &[Param], name: &str) -> Option<&'n Node> {
    let param = params.iter().find(|p| p.name == name)?;
    table?.entries.iter().find(|e| param.answers_to(&e.key)).map(|e| &e.node)
}

/// Returns the table that a value of the parameter `name` holds, with its accepted keys.
fn inside_of<'n>(
    catalogue: &Catalogue,
    value: &'n Tree,
    params: &'static [Param],
    name: &str,
) -> (Option<&'n Table>, &'static [Param]) {
    let Tree::Table(table) = value else { return (None, &[]) };
    let params: &'static [Param] = match params.iter().find(|p| p.name == name).map(|p| p.kind) {
        Some(Kind::Table(params)) => params,
        Some(Kind::List(&Kind::Table(params))) => params,
        Some(Kind::Discipline) => match table.get(QUEUE_KIND).map(|node| &node.value) {
            Some(Tree::Text(kind)) => catalogue.find(kind).map_or(&[][..], |info| info.params),
            _ => &[],
        },
        _ => &[],
    };
    (Some(table), params)
}

/// Returns the path of an item in a list. A table is identified by its `name` or the `class` that it concerns
/// or, if it has neither, by its position.
fn item_path(path: &str, index: usize, item: &Tree) -> String {
    let Tree::Table(table) = item else { return path.to_string() };
    match table.get("name").or_else(|| table.get("class")).map(|node| &node.value) {
        Some(Tree::Text(name)) => format!("{path}.{name}"),
        _ => format!("{path}.{}", index + 1),
    }
}

/// Returns another parameter, and the value that it takes if the scenario gives it none, because a value is
/// written under the name that another tool uses.
fn implied(alias: &Alias, written: &Node) -> Option<(&'static str, Value)> {
    let by_name = alias.implies.map(|(name, word)| (name, Value::Choice(word)));
    by_name.or_else(|| {
        let (name, value) = kind::is_automatic(&written.value, alias.reading)?.with?;
        Some((name, value.clone()))
    })
}

/// Returns whether a bare number that is read in packets would be in bytes in ns-3, whose queues count in
/// the unit of their `MaxSize`.
fn is_in_bytes_in_ns3(alias: &Alias, entry: &Entry, table: &Table) -> bool {
    let bare = matches!(entry.node.value, Tree::Integer(_) | Tree::Float(_));
    let in_packets = matches!(alias.reading, Reading::In("p") | Reading::Automatic { unit: Some("p"), .. });
    let in_bytes = |size: &str| matches!(aqmlab_units::text::parse_size(size), Ok(Size::Bytes(_)));
    let size = table.get("MaxSize").map(|node| &node.value);
    alias.of == "ns-3" && bare && in_packets && matches!(size, Some(Tree::Text(size)) if in_bytes(size))
}
