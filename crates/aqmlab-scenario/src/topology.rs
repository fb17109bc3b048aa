//! Routers and links: turns each of the three kinds of topology into a list of directed links.

use aqmlab_params::Origin;
use aqmlab_units::{Bytes, Rate, Span};

use crate::field::{Field, Form};
use crate::language::{FAULTS, FILE, HOP, LINK, NODE, TOPOLOGIES};
use crate::pass::{Pass, Section};
use crate::plan::{ChangingRate, Faults};
use crate::rate::LinkRate;
use crate::suggest::no_such;
use crate::tree::{At, Node, Tree};

/// Nodes and links as in the file; the queues are not resolved yet.
pub(crate) struct Network<'n> {
    pub(crate) nodes: Vec<String>,
    pub(crate) links: Vec<LinkDraft<'n>>,
    /// The topology's setting for access links.
    pub(crate) access: AccessWord,
    /// The default places of senders and receivers.
    pub(crate) ends: Option<(usize, usize)>,
}

/// A directed link whose queue is not resolved yet.
pub(crate) struct LinkDraft<'n> {
    pub(crate) name: String,
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// The constant rate, or the mean of a rate that changes.
    pub(crate) rate: Rate,
    pub(crate) changes: Option<ChangingRate>,
    pub(crate) delay: Span,
    pub(crate) overhead: Bytes,
    pub(crate) faults: Faults,
    /// The queue as the file gives it, if the file gives one.
    pub(crate) queue: Option<&'n Node>,
    /// The queue's path in parameters and messages.
    pub(crate) queue_path: String,
    /// The controller of the queue's shaper as the file gives it, with its path, if the file gives one.
    pub(crate) autorate: Option<(&'n Node, String)>,
    /// The place to report in messages if the file does not give the queue.
    pub(crate) at: At,
}

/// A setting for access links.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum AccessWord {
    /// The file has no such setting.
    Silent,
    /// There are no access links.
    None,
    /// Access links have this rate.
    Rate(Rate),
}

/// The sections that describe a link: its own, and the one for all hops.
struct Place<'s, 'n> {
    own: Option<&'s Section<'n>>,
    common: &'s Section<'n>,
    /// The key path of the table that contains the link's queues.
    path: String,
}

/// The rate and delay of one direction of a link; `None` for a value that is wrong in the file.
struct Pace {
    rate: Option<LinkRate>,
    delay: Option<Span>,
    overhead: Bytes,
}

impl<'n> Place<'_, 'n> {
    /// Returns the section that supplies the value of `key`.
    fn section_of(&self, key: &str) -> Section<'n> {
        let own = self.own.filter(|own| own.node(key).is_some());
        own.unwrap_or(self.common).clone()
    }
}

/// Stands in for a wrong rate until the errors are reported.
const STAND_IN_RATE: Rate = Rate::mbit(1);

impl Pass<'_, '_> {
    /// Returns the network that the file describes.
    pub(crate) fn network<'n>(&mut self, file: &Section<'n>) -> Option<Network<'n>> {
        let Some(node) = file.node("topology") else {
            let field = FILE.iter().find(|f| f.name == "topology").expect("a file has a topology");
            self.missing(file, field);
            return None;
        };
        let variant = self.variant(node, "topology", TOPOLOGIES)?;
        let section = self.open_section(node, "topology", variant.all_fields())?;
        self.enter_at("topology.kind".into(), &variant.kind, Origin::Given, variant.help);
        if variant.kind != "graph" {
            self.refuse_graph_tables(file, variant.kind);
        }
        match variant.kind {
            "dumbbell" => self.dumbbell(&section),
            "parking_lot" => self.parking_lot(&section),
            _ => self.graph(file, &section),
        }
    }

    fn refuse_graph_tables(&mut self, file: &Section<'_>, kind: &str) {
        for key in ["node", "link"] {
            if let Some(entry) = file.table.entries.iter().find(|e| e.key == key) {
                let message =
                    format!("a {kind} makes its own nodes and links; [[{key}]] needs `kind = \"graph\"`");
                self.error(&entry.key_at, key, message);
            }
        }
    }

    fn dumbbell<'n>(&mut self, section: &Section<'n>) -> Option<Network<'n>> {
        self.check_keys(section.table, &section.path, &section.fields, &["kind"]);
        let access = self.access(section);
        let place = Place { own: None, common: section, path: section.path.clone() };
        let links = self.both_directions(&place, ["bottleneck", "reverse"], [0, 1]).into();
        let nodes = vec!["left".to_string(), "right".to_string()];
        Some(Network { nodes, links, access: access?, ends: Some((0, 1)) })
    }

    fn parking_lot<'n>(&mut self, section: &Section<'n>) -> Option<Network<'n>> {
        let hops = self.integer(section, "hops");
        self.check_hops(section, hops);
        let access = self.access(section);
        let mut links = Vec::new();
        for (i, name) in (1..=hops?).map(|i| format!("hop{i}")).enumerate() {
            let path = section.sub(&name);
            let own = match section.node(&name) {
                Some(node) => Some(self.section(node, &path, HOP.iter().flat_map(|f| f.iter()))?),
                None => None,
            };
            let place = Place { own: own.as_ref(), common: section, path };
            links.extend(self.both_directions(&place, [&name, &format!("{name}-reverse")], [i, i + 1]));
        }
        let nodes: Vec<String> = (0..=hops?).map(|i| format!("r{i}")).collect();
        let ends = Some((0, nodes.len() - 1));
        Some(Network { nodes, links, access: access?, ends })
    }

    /// Checks the keys of a parking lot: those of the topology, and those that name its hops.
    fn check_hops(&mut self, section: &Section<'_>, hops: Option<u64>) {
        let number = |key: &str| key.strip_prefix("hop").and_then(|n| n.parse::<u64>().ok());
        let mut others = vec!["kind"];
        for entry in section.table.entries.iter().filter(|e| number(&e.key).is_some()) {
            others.push(&entry.key);
            // If `hops` itself is wrong, it is unknown which hops exist, so no hop's table is reported as
            // nonexistent.
            let there = number(&entry.key).is_some_and(|n| n >= 1 && hops.is_none_or(|most| n <= most));
            if let (Some(hops), false) = (hops, there) {
                let message =
                    format!("there is no `{}`; `hops` is {hops}, so the last is `hop{hops}`", entry.key);
                self.error(&entry.key_at, &section.path, message);
            }
        }
        self.check_keys(section.table, &section.path, &section.fields, &others);
    }

    /// Returns both directions of the link that `at` describes; a hop's own section overrides the
    /// common one. If the rate or the delay is wrong, a substitute value allows the rest of the
    /// file to be checked.
    fn both_directions<'n>(
        &mut self,
        at: &Place<'_, 'n>,
        names: [&str; 2],
        ends: [usize; 2],
    ) -> [LinkDraft<'n>; 2] {
        let there = self.pace(at);
        let back = Pace {
            rate: self.or_as(at, "reverse_rate", ("rate", there.rate.clone()), Self::link_rate),
            delay: self.or_as(at, "reverse_delay", ("delay", there.delay), Self::span),
            overhead: there.overhead,
        };
        [
            self.draft(at, names[0], ends, &there, ["queue", "faults", "autorate"]),
            self.draft(at, names[1], [ends[1], ends[0]], &back, ["reverse_queue", "reverse_faults", ""]),
        ]
    }

    fn pace(&mut self, at: &Place<'_, '_>) -> Pace {
        Pace {
            rate: self.link_rate(&at.section_of("rate"), "rate"),
            delay: self.span(&at.section_of("delay"), "delay"),
            overhead: self.bytes(&at.section_of("overhead"), "overhead").unwrap_or(Bytes::ZERO),
        }
    }

    fn draft<'n>(
        &mut self,
        at: &Place<'_, 'n>,
        name: &str,
        [from, to]: [usize; 2],
        pace: &Pace,
        [queue, faults, autorate]: [&str; 3],
    ) -> LinkDraft<'n> {
        let with_queue = at.section_of(queue);
        LinkDraft {
            name: name.to_string(),
            from,
            to,
            rate: pace.rate.as_ref().map_or(STAND_IN_RATE, |rate| rate.mean),
            changes: pace.rate.as_ref().and_then(|rate| rate.changes.clone()),
            delay: pace.delay.unwrap_or(Span::ZERO),
            overhead: pace.overhead,
            faults: self.faults(&at.section_of(faults), faults).unwrap_or_default(),
            autorate: (!autorate.is_empty())
                .then(|| at.section_of(autorate).node(autorate))
                .flatten()
                .map(|node| (node, format!("{}.{autorate}", at.path))),
            queue: with_queue.node(queue),
            queue_path: format!("{}.{queue}", at.path),
            at: with_queue.at,
        }
    }

    /// Returns the value of `key` or, if the file does not give it, `forward`, which is the value
    /// for the other direction.
    fn or_as<T: std::fmt::Display>(
        &mut self,
        at: &Place<'_, '_>,
        key: &'static str,
        forward: (&str, Option<T>),
        read: fn(&mut Self, &Section<'_>, &str) -> Option<T>,
    ) -> Option<T> {
        let section = at.section_of(key);
        if section.node(key).is_some() {
            return read(self, &section, key);
        }
        let value = forward.1?;
        let origin = Origin::Derived(format!("as `{}`", forward.0).into());
        let help = section.help(key);
        self.enter_at(format!("{}.{key}", at.path), &value, origin, help);
        Some(value)
    }

    /// Returns the section's setting for access links.
    pub(crate) fn access(&mut self, section: &Section<'_>) -> Option<AccessWord> {
        let Some(node) = section.node("access_rate") else { return Some(AccessWord::Silent) };
        if matches!(&node.value, Tree::Text(word) if word == "none") {
            self.enter(section, "access_rate", &"none", Origin::Given);
            return Some(AccessWord::None);
        }
        self.rate(section, "access_rate").map(AccessWord::Rate)
    }

    fn faults(&mut self, section: &Section<'_>, key: &str) -> Option<Faults> {
        let Some(node) = section.node(key) else { return Some(Faults::default()) };
        let faults = self.section(node, &section.sub(key), FAULTS)?;
        Some(Faults { drop: self.arrivals(&faults, "drop")?, mark: self.arrivals(&faults, "mark")? })
    }

    fn graph<'n>(&mut self, file: &Section<'n>, section: &Section<'n>) -> Option<Network<'n>> {
        self.check_keys(section.table, &section.path, &section.fields, &["kind"]);
        let access = self.access(section);
        let mut nodes: Vec<String> = Vec::new();
        for own in self.tables(file, "node", NODE)? {
            let Some(name) = self.name(&own, "name") else { continue };
            if nodes.contains(&name) {
                self.error(&own.at("name"), &own.sub("name"), format!("two nodes are called \"{name}\""));
            }
            nodes.push(name);
        }
        let mut links: Vec<LinkDraft<'n>> = Vec::new();
        for own in self.tables(file, "link", LINK)? {
            for link in self.graph_link(&own, &nodes).into_iter().flatten() {
                if links.iter().any(|l| l.name == link.name) {
                    let message =
                        format!("two links are called \"{}\"; give one of them a `name`", link.name);
                    self.error(&own.at("name"), &own.path, message);
                }
                links.push(link);
            }
        }
        Some(Network { nodes, links, access: access?, ends: None })
    }

    /// Adds both directions of a `[[link]]`, or only the forward direction of a one-way link.
    fn graph_link<'n>(&mut self, own: &Section<'n>, nodes: &[String]) -> Option<Vec<LinkDraft<'n>>> {
        let (from, to) = (self.node_at(own, "from", nodes), self.node_at(own, "to", nodes));
        let given = self.name(own, "name");
        let duplex = self.flag(own, "duplex").unwrap_or(true);
        let ends = [from.unwrap_or(0), to.unwrap_or(0)];
        let called = |end: usize| nodes.get(end).map_or("", String::as_str);
        let (there, back) = match &given {
            Some(name) => (name.clone(), format!("{name}-reverse")),
            None => (
                format!("{}-{}", called(ends[0]), called(ends[1])),
                format!("{}-{}", called(ends[1]), called(ends[0])),
            ),
        };
        let place = Place { own: None, common: own, path: own.path.clone() };
        let links = if duplex {
            self.both_directions(&place, [&there, &back], ends).into()
        } else {
            self.no_way_back(own);
            let pace = self.pace(&place);
            vec![self.draft(&place, &there, ends, &pace, ["queue", "faults", "autorate"])]
        };
        let (from, to) = (from?, to?);
        if from == to {
            let message = format!("a link from \"{}\" to itself leads nowhere", nodes[from]);
            self.error(&own.at("to"), &own.sub("to"), message);
            return None;
        }
        Some(links)
    }

    /// Reports keys of the reverse direction for a link that has none.
    fn no_way_back(&mut self, own: &Section<'_>) {
        for key in own.fields.iter().map(|f| f.name).filter(|name| name.starts_with("reverse_")) {
            if own.node(key).is_some() {
                let message = format!("there is no reverse link with `duplex = false`; leave `{key}` out");
                self.error(&own.at(key), &own.sub(key), message);
            }
        }
    }

    /// Returns the index of the node that a key names.
    pub(crate) fn node_at(&mut self, section: &Section<'_>, key: &str, nodes: &[String]) -> Option<usize> {
        let name = self.name(section, key)?;
        let found = nodes.iter().position(|n| *n == name);
        if found.is_none() {
            let message = match nodes {
                [] => format!("there is no node \"{name}\"; add a [[node]] of this name"),
                nodes => no_such("node", &name, nodes.iter().map(String::as_str)),
            };
            self.error(&section.at(key), &section.sub(key), message);
        } else {
            self.enter(section, key, &name, Origin::Given);
        }
        found
    }

    /// Returns the sections of an array of tables, each identified by its name, or else by its
    /// number.
    pub(crate) fn tables<'n>(
        &mut self,
        file: &Section<'n>,
        key: &str,
        fields: &'static [Field],
    ) -> Option<Vec<Section<'n>>> {
        debug_assert!(file.fields.iter().any(|f| f.name == key && matches!(f.form, Form::Tables(_))));
        let items = self.items(file, key)?;
        let sections = items.iter().enumerate().map(|(i, node)| {
            let path = format!("{key}.{}", item_name(key, i, &node.value));
            self.section(node, &path, fields)
        });
        sections.collect::<Vec<_>>().into_iter().collect()
    }

    /// Returns the items of an array of tables, or none if the file lacks the key.
    pub(crate) fn items<'n>(&mut self, file: &Section<'n>, key: &str) -> Option<&'n [Node]> {
        match file.node(key) {
            None => Some(&[]),
            Some(Node { value: Tree::List(items), .. }) => Some(items),
            Some(node) => {
                let message = format!("`{key}` is {}; write [[{key}]]", node.value.what());
                self.error(&node.at, key, message);
                None
            }
        }
    }
}

/// Returns the name by which paths address item number `index` (from 0) of the array of tables
/// `list`: its own name or, if it has none, its two ends (for a link) or its position (for any
/// other item).
pub(crate) fn item_name(list: &str, index: usize, item: &Tree) -> String {
    let text = |key: &str| match item {
        Tree::Table(table) => match table.get(key).map(|n| &n.value) {
            Some(Tree::Text(text)) => Some(text.as_str()),
            _ => None,
        },
        _ => None,
    };
    match (text("name"), text("from"), text("to")) {
        (Some(name), _, _) => name.to_string(),
        (None, Some(from), Some(to)) if list == "link" => format!("{from}-{to}"),
        _ => format!("{list}{}", index + 1),
    }
}
