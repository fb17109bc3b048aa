//! Distributions and lists: times over flows, packet sizes, arrival numbers.

use aqmlab_params::{Default, Kind, Origin, Value};
use aqmlab_traffic::{Distribution, PacketSizes};
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Span};

use crate::field::{Absent, OURS};
use crate::language::{ANY_TIME, PACKET};
use crate::pass::{Pass, Section};
use crate::suggest::{listed, nearest};
use crate::tree::{At, Entry, Node, Table, Tree};

/// The forms of a distribution of times.
pub(crate) const TIMES: &[&str] = &["uniform", "spread", "exponential", "list"];

const TIMES_FORM: &str = "a time (\"80ms\") or a distribution: { uniform = [\"60ms\", \"100ms\"] }, { spread = [..] }, \
                          { exponential = \"1s\", offset = \"0s\" }, { list = [..] }";

impl Pass<'_, '_> {
    /// The distribution at a key, its default, or `None` if it is wrong or ruled by something else.
    pub(crate) fn times(&mut self, section: &Section<'_>, key: &str) -> Option<Distribution> {
        let absent = section.fields.iter().find(|f| f.name == key)?.absent;
        let (times, origin) = match (section.node(key), absent) {
            (Some(node), _) => (self.times_at(node, &section.sub(key))?, Origin::Given),
            (None, Absent::Is(Default::Span(v))) => (Distribution::Constant(v), Origin::Default(OURS)),
            (None, _) => return None,
        };
        self.enter(section, key, &Times(&times), origin);
        Some(times)
    }

    fn times_at(&mut self, node: &Node, path: &str) -> Option<Distribution> {
        let table = match &node.value {
            Tree::Table(table) => table,
            Tree::Text(_) | Tree::Integer(_) | Tree::Float(_) => {
                return self.time_at(node, path).map(Distribution::Constant);
            }
            other => {
                let message =
                    format!("`{}` is {}; write {TIMES_FORM}", self.report.quote(&node.at), other.what());
                self.error(&node.at, path, message);
                return None;
            }
        };
        let form = self.form(node, table, path, TIMES, &["offset"])?;
        if form.key != "exponential"
            && let Some(extra) = table.entries.iter().find(|e| e.key == "offset")
        {
            self.error(&extra.key_at, path, "`offset` belongs to an exponential distribution only");
            return None;
        }
        let path = format!("{path}.{}", form.key);
        match form.key.as_str() {
            "uniform" => {
                self.interval(&form.node, &path).map(|(low, high)| Distribution::Uniform { low, high })
            }
            "spread" => {
                self.interval(&form.node, &path).map(|(low, high)| Distribution::Spread { low, high })
            }
            "exponential" => {
                let mean = self.time_at(&form.node, &path)?;
                let offset = match table.get("offset") {
                    Some(offset) => self.time_at(offset, &path)?,
                    None => Span::ZERO,
                };
                Some(Distribution::Exponential { mean, offset })
            }
            _ => self.time_list(&form.node, &path).map(Distribution::List),
        }
    }

    fn time_at(&mut self, node: &Node, path: &str) -> Option<Span> {
        match self.given(node, path, &ANY_TIME)? {
            Value::Span(v) => Some(v),
            _ => unreachable!("a time is a span"),
        }
    }

    fn interval(&mut self, node: &Node, path: &str) -> Option<(Span, Span)> {
        let Tree::List(items) = &node.value else {
            let message = format!(
                "`{}` is {}; write two times [low, high]",
                self.report.quote(&node.at),
                node.value.what()
            );
            self.error(&node.at, path, message);
            return None;
        };
        let [low, high] = items.as_slice() else {
            let message = format!("a list of {} where two times [low, high] are wanted", items.len());
            self.error(&node.at, path, message);
            return None;
        };
        let (low, high) = (self.time_at(low, path)?, self.time_at(high, path)?);
        if low > high {
            self.error(
                &node.at,
                path,
                format!("low `{low}` exceeds high `{high}`; write [\"{high}\", \"{low}\"]"),
            );
            return None;
        }
        Some((low, high))
    }

    fn time_list(&mut self, node: &Node, path: &str) -> Option<Vec<Span>> {
        match &node.value {
            Tree::List(items) if !items.is_empty() => {
                items.iter().map(|item| self.time_at(item, path)).collect::<Vec<_>>().into_iter().collect()
            }
            Tree::List(_) => {
                self.error(&node.at, path, "the list is empty; write at least one time");
                None
            }
            other => {
                let message =
                    format!("`{}` is {}; write a list of times", self.report.quote(&node.at), other.what());
                self.error(&node.at, path, message);
                None
            }
        }
    }

    /// The one entry of a table that names the form of a distribution.
    fn form<'n>(
        &mut self,
        node: &Node,
        table: &'n Table,
        path: &str,
        forms: &[&'static str],
        others: &[&str],
    ) -> Option<&'n Entry> {
        let is_form = |e: &Entry| forms.contains(&e.key.as_str());
        if let Some(odd) = table.entries.iter().find(|e| !is_form(e) && !others.contains(&e.key.as_str())) {
            let message = match nearest(&odd.key, forms.iter().chain(others).copied()) {
                Some(near) => format!("unknown key {:?}; did you mean \"{near}\"?", odd.key),
                None => format!("unknown key {:?}; the forms are {}", odd.key, listed(forms.iter().copied())),
            };
            self.error(&odd.key_at, path, message);
            return None;
        }
        let mut found = table.entries.iter().filter(|e| is_form(e));
        match (found.next(), found.next()) {
            (Some(form), None) => Some(form),
            (None, _) => self.refuse_form(&node.at, path, "no form of distribution", forms),
            (_, Some(second)) => self.refuse_form(&second.key_at, path, "two forms of distribution", forms),
        }
    }

    fn refuse_form<T>(&mut self, at: &At, path: &str, what: &str, forms: &[&str]) -> Option<T> {
        self.error(at, path, format!("{what}; write one of {}", listed(forms.iter().copied())));
        None
    }

    /// The packet sizes at a key.
    pub(crate) fn sizes(&mut self, section: &Section<'_>, key: &str) -> Option<PacketSizes> {
        let absent = section.fields.iter().find(|f| f.name == key)?.absent;
        let path = section.sub(key);
        let (sizes, origin) = match (section.node(key), absent) {
            (Some(node), _) => (self.sizes_at(node, &path)?, Origin::Given),
            (None, Absent::Is(Default::Bytes(n))) => {
                (PacketSizes::Fixed(Bytes::new(n)), Origin::Default(OURS))
            }
            (None, _) => return None,
        };
        self.enter(section, key, &Sizes(&sizes), origin);
        Some(sizes)
    }

    fn sizes_at(&mut self, node: &Node, path: &str) -> Option<PacketSizes> {
        let Tree::Table(table) = &node.value else { return self.size_at(node, path).map(PacketSizes::Fixed) };
        let form = self.form(node, table, path, &["exponential"], &[])?;
        self.size_at(&form.node, &format!("{path}.exponential")).map(PacketSizes::Exponential)
    }

    fn size_at(&mut self, node: &Node, path: &str) -> Option<Bytes> {
        match self.given(node, path, &PACKET)? {
            Value::Size(Size::Bytes(v)) => Some(v),
            _ => unreachable!("a packet size is in bytes"),
        }
    }

    /// The arrival numbers at a key, ascending; none if the key is not written.
    pub(crate) fn arrivals(&mut self, section: &Section<'_>, key: &str) -> Option<Vec<u64>> {
        let Some(node) = section.node(key) else { return Some(Vec::new()) };
        let path = section.sub(key);
        let Tree::List(items) = &node.value else {
            let message = format!(
                "`{}` is {}; write a list of arrival numbers such as [5, 9]",
                self.report.quote(&node.at),
                node.value.what()
            );
            self.error(&node.at, &path, message);
            return None;
        };
        if items.is_empty() {
            self.error(
                &node.at,
                &path,
                "the list is empty; write at least one arrival number, or leave it out",
            );
            return None;
        }
        let any = Kind::Integer { min: 1, max: i64::MAX as u64 };
        let mut numbers = Vec::new();
        for item in items {
            match self.given(item, &path, &any)? {
                Value::Integer(n) if numbers.contains(&n) => {
                    self.error(&item.at, &path, format!("arrival `{n}` stands twice in the list"));
                    return None;
                }
                Value::Integer(n) => numbers.push(n),
                _ => unreachable!("an arrival number is an integer"),
            }
        }
        numbers.sort_unstable();
        let text: Vec<String> = numbers.iter().map(u64::to_string).collect();
        self.enter(section, key, &format!("[{}]", text.join(", ")), Origin::Given);
        Some(numbers)
    }
}

/// A distribution as it would be written in a scenario.
pub(crate) struct Times<'d>(pub(crate) &'d Distribution);

impl std::fmt::Display for Times<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Distribution::Constant(v) => v.fmt(f),
            Distribution::Uniform { low, high } => write!(f, "{{ uniform = [\"{low}\", \"{high}\"] }}"),
            Distribution::Spread { low, high } => write!(f, "{{ spread = [\"{low}\", \"{high}\"] }}"),
            Distribution::Exponential { mean, offset } => {
                write!(f, "{{ exponential = \"{mean}\", offset = \"{offset}\" }}")
            }
            Distribution::List(values) => {
                let quoted: Vec<String> = values.iter().map(|v| format!("\"{v}\"")).collect();
                write!(f, "{{ list = [{}] }}", quoted.join(", "))
            }
        }
    }
}

/// Packet sizes as they would be written in a scenario.
pub(crate) struct Sizes<'s>(pub(crate) &'s PacketSizes);

impl std::fmt::Display for Sizes<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            PacketSizes::Fixed(size) => size.fmt(f),
            PacketSizes::Exponential(mean) => write!(f, "{{ exponential = \"{mean}\" }}"),
        }
    }
}
