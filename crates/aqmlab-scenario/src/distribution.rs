//! Packet sizes, arrival numbers, and the form of a distribution.

use aqmlab_params::{Default, Kind, Origin, Value};
use aqmlab_traffic::{LARGEST_DATAGRAM, PacketSizes, SMALLEST_DATAGRAM, exponential_scale};
use aqmlab_units::Bytes;
use aqmlab_units::text::Size;

use crate::field::{Absent, OURS};
use crate::language::PACKET;
use crate::pass::{Pass, Section};
use crate::suggest::{listed, nearest};
use crate::tree::{At, Entry, Node, Table, Tree};

impl Pass<'_, '_> {
    /// Returns the only entry of a table; the entry's key names the form of a distribution.
    pub(crate) fn form<'n>(
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
            (None, _) => self.refuse_form(&node.at, path, "the form is missing", forms),
            (_, Some(second)) => self.refuse_form(&second.key_at, path, "two forms are given", forms),
        }
    }

    fn refuse_form<T>(&mut self, at: &At, path: &str, what: &str, forms: &[&str]) -> Option<T> {
        self.error(at, path, format!("{what}; write one of {}", listed(forms.iter().copied())));
        None
    }

    /// Returns the packet sizes at a key.
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
        let path = format!("{path}.exponential");
        let mean = self.size_at(&form.node, &path)?;
        if exponential_scale(mean).is_none() {
            let message = format!(
                "no exponential sizes have the mean `{mean}`: a datagram has at least {SMALLEST_DATAGRAM} and at most \
                 {LARGEST_DATAGRAM}; write a mean between these two"
            );
            self.error(&form.node.at, &path, message);
            return None;
        }
        Some(PacketSizes::Exponential(mean))
    }

    pub(crate) fn size_at(&mut self, node: &Node, path: &str) -> Option<Bytes> {
        match self.given(node, path, &PACKET)? {
            Value::Size(Size::Bytes(v)) => Some(v),
            _ => unreachable!("a packet size is in bytes"),
        }
    }

    /// Returns the arrival numbers at a key, ascending, or none if the key is not written.
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
                    self.error(&item.at, &path, format!("arrival `{n}` occurs twice in the list"));
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

/// Packet sizes in the notation of a scenario.
pub(crate) struct Sizes<'s>(pub(crate) &'s PacketSizes);

impl std::fmt::Display for Sizes<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            PacketSizes::Fixed(size) => size.fmt(f),
            PacketSizes::Exponential(mean) => write!(f, "{{ exponential = \"{mean}\" }}"),
        }
    }
}
