//! Routers and links: from the three kinds of topology to one list of directed links.

use aqmlab_params::Origin;
use aqmlab_units::{Bytes, Rate, Span};

use crate::field::{Field, Form};
use crate::language::{FAULTS, FILE, HOP, LINK, NODE, TOPOLOGIES};
use crate::pass::{Pass, Section};
use crate::plan::Faults;
use crate::suggest::nearest;
use crate::tree::{At, Node, Table, Tree};

/// Nodes and links as the file has them, queues not yet resolved.
pub(crate) struct Network<'n> {
    pub(crate) nodes: Vec<String>,
    pub(crate) links: Vec<LinkDraft<'n>>,
    /// The topology's word on access links.
    pub(crate) access: AccessWord,
    /// Where senders and receivers are unless a class says otherwise.
    pub(crate) ends: Option<(usize, usize)>,
}

/// A directed link whose queue waits for its context.
pub(crate) struct LinkDraft<'n> {
    pub(crate) name: String,
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) rate: Rate,
    pub(crate) delay: Span,
    pub(crate) overhead: Bytes,
    pub(crate) faults: Faults,
    /// The queue as it is written, if it is.
    pub(crate) queue: Option<&'n Node>,
    /// The queue's path in parameters and messages.
    pub(crate) queue_path: String,
    /// Where to point if the queue is not written.
    pub(crate) at: At,
}

/// What is written about access links.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum AccessWord {
    /// Nothing.
    Silent,
    /// There are none.
    None,
    /// They have this rate.
    Rate(Rate),
}

/// The keys of one direction of a link in its section.
struct Keys {
    rate: &'static str,
    delay: &'static str,
    queue: &'static str,
    faults: &'static str,
}

const FORWARD: Keys = Keys { rate: "rate", delay: "delay", queue: "queue", faults: "faults" };
const REVERSE: Keys =
    Keys { rate: "reverse_rate", delay: "reverse_delay", queue: "reverse_queue", faults: "reverse_faults" };

impl Pass<'_, '_> {
    /// The network of the file.
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
        let forward = self.direction(section, None, &FORWARD, "bottleneck", (0, 1));
        let reverse = self.direction(section, None, &REVERSE, "reverse", (1, 0));
        let nodes = vec!["left".to_string(), "right".to_string()];
        Some(Network { nodes, links: vec![forward?, reverse?], access: access?, ends: Some((0, 1)) })
    }

    fn parking_lot<'n>(&mut self, section: &Section<'n>) -> Option<Network<'n>> {
        let hops = self.integer(section, "hops");
        let names: Vec<String> = (1..=hops.unwrap_or(0)).map(|i| format!("hop{i}")).collect();
        // Where the number of hops is wrong, their tables are not called unknown on top of it.
        let is_hop = |key: &str| key.strip_prefix("hop").is_some_and(|n| n.parse::<u64>().is_ok());
        let others: Vec<&str> = match hops {
            Some(_) => names.iter().map(String::as_str).collect(),
            None => section.table.entries.iter().map(|e| e.key.as_str()).filter(|k| is_hop(k)).collect(),
        };
        let others: Vec<&str> = others.into_iter().chain(["kind"]).collect();
        self.check_keys(section.table, &section.path, &section.fields, &others);
        let access = self.access(section);
        let mut links = Vec::new();
        for (i, name) in names.iter().enumerate() {
            let own = match section.node(name) {
                Some(node) => {
                    Some(self.section(node, &section.sub(name), HOP.iter().flat_map(|f| f.iter()))?)
                }
                None => None,
            };
            let path = section.sub(name);
            let forward = self.direction(section, Some((own.as_ref(), &path)), &FORWARD, name, (i, i + 1));
            let back = format!("{name}-reverse");
            let reverse = self.direction(section, Some((own.as_ref(), &path)), &REVERSE, &back, (i + 1, i));
            links.extend([forward?, reverse?]);
        }
        let nodes = (0..=hops?).map(|i| format!("r{i}")).collect::<Vec<_>>();
        let ends = Some((0, nodes.len() - 1));
        Some(Network { nodes, links, access: access?, ends })
    }

    /// One direction of a link that `section` describes, overridden by a hop's own section.
    fn direction<'n>(
        &mut self,
        section: &Section<'n>,
        hop: Option<(Option<&Section<'n>>, &String)>,
        keys: &Keys,
        name: &str,
        (from, to): (usize, usize),
    ) -> Option<LinkDraft<'n>> {
        let own = hop.and_then(|(own, _)| own);
        let pick = |key: &str| match own {
            Some(own) if own.node(key).is_some() => own.clone(),
            _ => section.clone(),
        };
        let rate = self.own_or_forward(&pick, keys.rate, FORWARD.rate, Self::rate_value);
        let delay = self.own_or_forward(&pick, keys.delay, FORWARD.delay, Self::span_value);
        let overhead = self.bytes(&pick("overhead"), "overhead");
        let faults = self.faults(&pick(keys.faults), keys.faults);
        let with_queue = pick(keys.queue);
        let queue_path = match hop {
            Some((_, path)) => format!("{path}.{}", keys.queue),
            None => section.sub(keys.queue),
        };
        Some(LinkDraft {
            name: name.to_string(),
            from,
            to,
            rate: rate?,
            delay: delay?,
            overhead: overhead?,
            faults: faults?,
            queue: with_queue.node(keys.queue),
            queue_path,
            at: with_queue.at,
        })
    }

    /// The value of `key`; where it is not written, that of the forward direction.
    fn own_or_forward<'n, T: std::fmt::Display>(
        &mut self,
        pick: &impl Fn(&str) -> Section<'n>,
        key: &'static str,
        forward: &'static str,
        read: fn(&mut Self, &Section<'_>, &str) -> Option<T>,
    ) -> Option<T> {
        let section = pick(key);
        if key == forward || section.node(key).is_some() {
            return read(self, &section, key);
        }
        let before = self.parameters.len();
        let value = read(self, &pick(forward), forward);
        self.parameters.truncate(before);
        let value = value?;
        self.derive(&section, key, &value, &format!("as {forward}"));
        Some(value)
    }

    fn rate_value(&mut self, section: &Section<'_>, key: &str) -> Option<Rate> {
        self.rate(section, key)
    }

    fn span_value(&mut self, section: &Section<'_>, key: &str) -> Option<Span> {
        self.span(section, key)
    }

    /// What the section says of access links.
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

    /// Both directions, or the one, of a [[link]].
    fn graph_link<'n>(&mut self, own: &Section<'n>, nodes: &[String]) -> Option<Vec<LinkDraft<'n>>> {
        let (from, to) = (self.node_at(own, "from", nodes), self.node_at(own, "to", nodes));
        let given = self.name(own, "name");
        let duplex = self.flag(own, "duplex");
        let (Some(from), Some(to)) = (from, to) else {
            // The rest of the link is still looked at, so that its own mistakes are told as well.
            self.direction(own, None, &FORWARD, "", (0, 0));
            return None;
        };
        if from == to {
            let message = format!("a link from \"{}\" to itself leads nowhere", nodes[from]);
            self.error(&own.at("to"), &own.sub("to"), message);
            return None;
        }
        let name = given.clone().unwrap_or_else(|| format!("{}-{}", nodes[from], nodes[to]));
        let forward = self.direction(own, None, &FORWARD, &name, (from, to));
        if !duplex? {
            return Some(vec![forward?]);
        }
        let back = given.map_or_else(|| format!("{}-{}", nodes[to], nodes[from]), |n| format!("{n}-reverse"));
        let reverse = self.direction(own, None, &REVERSE, &back, (to, from));
        Some(vec![forward?, reverse?])
    }

    /// The index of the node that a key names.
    pub(crate) fn node_at(&mut self, section: &Section<'_>, key: &str, nodes: &[String]) -> Option<usize> {
        let name = self.name(section, key)?;
        let found = nodes.iter().position(|n| *n == name);
        if found.is_none() {
            let message = match nearest(&name, nodes.iter().map(String::as_str)) {
                Some(near) => format!("there is no node \"{name}\"; did you mean \"{near}\"?"),
                None if nodes.is_empty() => {
                    format!("there is no node \"{name}\"; add a [[node]] of this name")
                }
                None => format!(
                    "there is no node \"{name}\"; the nodes are {}",
                    crate::suggest::listed(nodes.iter().map(String::as_str),)
                ),
            };
            self.error(&section.at(key), &section.sub(key), message);
        } else {
            self.enter(section, key, &name, Origin::Given);
        }
        found
    }

    /// The sections of an array of tables; each is called by its name, or else by its number.
    pub(crate) fn tables<'n>(
        &mut self,
        file: &Section<'n>,
        key: &str,
        fields: &'static [Field],
    ) -> Option<Vec<Section<'n>>> {
        debug_assert!(file.fields.iter().any(|f| f.name == key && matches!(f.form, Form::Tables(_))));
        let items = self.items(file, key)?;
        let sections = items.iter().enumerate().map(|(i, node)| {
            let path = format!("{key}.{}", item_name(&node.value).unwrap_or_else(|| (i + 1).to_string()));
            self.section(node, &path, fields)
        });
        sections.collect::<Vec<_>>().into_iter().collect()
    }

    /// The items of an array of tables; none if the key is not written.
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

/// What an item of an array of tables is called in paths: its name; a link without one after its ends.
pub(crate) fn item_name(item: &Tree) -> Option<String> {
    let Tree::Table(table) = item else { return None };
    let text = |table: &Table, key: &str| match table.get(key).map(|n| &n.value) {
        Some(Tree::Text(text)) => Some(text.clone()),
        _ => None,
    };
    text(table, "name").or_else(|| Some(format!("{}-{}", text(table, "from")?, text(table, "to")?)))
}
