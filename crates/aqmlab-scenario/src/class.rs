//! Classes of flows: their traffic, their endpoints, and their paths.

use std::collections::BTreeSet;

use aqmlab_params::{Origin, Settings, Value};
use aqmlab_qdisc::Dscp;
use aqmlab_traffic::Distribution;
use aqmlab_transport::{Profile, profile_settings, profiles};
use aqmlab_units::{Rate, Span};

use crate::language::{MOST_LINKS_OF_A_PATH, RATE};
use crate::pass::{Pass, Section};
use crate::plan::{Access, AccessAt, ClassPlan, FlowStarts, MOST_CLASSES, References};
use crate::route;
use crate::suggest::{listed, no_such};
use crate::topology::{AccessWord, Network, item_name};
use crate::traffic::{self, Opens, Reading, TRAFFIC_KINDS, Tcp};
use crate::tree::{At, Node, Tree};

const DEFAULT_PROFILE: &str = "rfc";

/// A class with the places of its keys in the file, for messages about several classes.
pub(crate) struct ClassDraft {
    pub(crate) plan: ClassPlan,
    /// Place of the class.
    pub(crate) at: At,
    /// Number of flows, users or connections per second.
    pub(crate) number: Number,
    /// Place of `start`.
    pub(crate) start_at: At,
    /// `traffic.ftp`
    pub(crate) path: String,
}

/// The key that gives a class's number of flows, users or connections per second (`count`, `users`
/// or `rate`): its place, and whether its value may overload links.
pub(crate) struct Number {
    /// Its place.
    pub(crate) at: At,
    /// `traffic.ftp.count`
    pub(crate) path: String,
    /// Whether the load that these connections offer may be many times a link's rate.
    pub(crate) allows_overload: bool,
}

impl Pass<'_, '_> {
    /// Returns the traffic classes in the file.
    pub(crate) fn classes(&mut self, file: &Section<'_>, network: &Network<'_>) -> Option<Vec<ClassDraft>> {
        let items = self.items(file, "traffic")?;
        if items.is_empty() {
            self.error(
                &file.at("traffic"),
                "traffic",
                "there is no traffic; add a [[traffic]] with a `kind`",
            );
            return None;
        }
        if let Some(node) = items.get(MOST_CLASSES) {
            let message =
                format!("there are {} classes of traffic; at most {MOST_CLASSES} are allowed", items.len());
            self.error(&name_at(node), "traffic", message);
            return None;
        }
        let mut names = BTreeSet::new();
        let mut classes: Vec<Option<ClassDraft>> = Vec::new();
        for (i, node) in items.iter().enumerate() {
            let class = self.class(node, i, network);
            if let Some(class) = &class
                && !names.insert(class.plan.name.clone())
            {
                let message = format!("two classes of traffic are called \"{}\"", class.plan.name);
                self.error(&name_at(node), &class.path, message);
            }
            classes.push(class);
        }
        let mut classes: Vec<ClassDraft> = classes.into_iter().collect::<Option<_>>()?;
        classes.retain(|class| !self.disabled.contains(&class.plan.name));
        if classes.is_empty() {
            let message = "no class of traffic is enabled; remove `enabled = false` from one class";
            self.error(&file.at("traffic"), "traffic", message);
            return None;
        }
        Some(classes)
    }

    /// Records that a class is not enabled. Removes its keys, which begin at index `first`, from
    /// the effective parameters; only `enabled` stays.
    fn disable(&mut self, name: &str, path: &str, first: usize) {
        self.disabled.push(name.to_string());
        let enabled = format!("{path}.enabled");
        let of_class = self.parameters.split_off(first);
        self.parameters.extend(of_class.into_iter().filter(|p| p.path == enabled));
    }

    fn class(&mut self, node: &Node, index: usize, network: &Network<'_>) -> Option<ClassDraft> {
        let called = item_name("traffic", index, &node.value);
        let path = format!("traffic.{called}");
        let first = self.parameters.len();
        let variant = self.variant(node, &path, TRAFFIC_KINDS)?;
        let section = self.open_section(node, &path, variant.all_fields())?;
        self.check_keys(section.table, &path, &section.fields, &["kind"]);
        self.enter_at(format!("{path}.kind"), &variant.kind, Origin::Given, variant.help);
        let name = match section.node("name") {
            Some(_) => self.name(&section, "name"),
            None => Some(called),
        };
        let enabled = match section.node("enabled") {
            Some(_) => self.flag(&section, "enabled"),
            None => Some(true),
        };
        let Reading { count, starts, own_delays, rest } = traffic::read(variant.kind, self, &section)?;
        let start = match starts {
            Some(starts) => Some(FlowStarts::Listed { starts }),
            None => self.starts(&section, count),
        };
        let stop_at = self.span(&section, "stop");
        let access_loss = self.number(&section, "loss");
        let dscp = Dscp(self.integer(&section, "dscp").unwrap_or_default() as u8);
        let port = self.integer(&section, "port").map_or(ClassPlan::PORT, |port| port as u16);
        let ways = self.ways(&section, network);
        let access = ways.as_ref().and_then(|ways| self.class_access(&section, network, ways, own_delays));

        let traffic = rest(self, &section);
        let (there, return_path) = ways?;
        let traffic = traffic?;
        let only_live = self.only_live(&section, &traffic);
        let plan = ClassPlan {
            name: name?,
            count: count?,
            path: there,
            return_path,
            start: start?,
            stop_at,
            access: access?,
            placed: [false; 2],
            access_loss: access_loss?,
            dscp,
            port,
            traffic,
            only_live,
        };
        if !enabled? {
            self.disable(&plan.name, &path, first);
        }
        self.check_class(&section, &plan);
        self.check_openings(&section, &plan, propagation(network, &plan.path, &plan.return_path));
        let key = match plan.traffic.opens() {
            Opens::Listed => "count",
            Opens::AtRate { .. } => "rate",
            Opens::ByUsers { .. } => "users",
        };
        let allows_overload = self.allows_overload(&section, plan.traffic.opens())?;
        let number = Number { at: section.at(key), path: section.sub(key), allows_overload };
        Some(ClassDraft { plan, at: section.at.clone(), number, start_at: section.at("start"), path })
    }

    /// Checks that the settings of a class agree with each other.
    fn check_class(&mut self, section: &Section<'_>, plan: &ClassPlan) {
        let first = plan.start.least();
        if let Some(stop) = plan.stop_at.filter(|stop| *stop <= first) {
            let message = format!("stop `{stop}` is not after the earliest start `{first}`");
            self.error(&section.at("stop"), &section.sub("stop"), message);
        }
        if plan.access_loss > 0.0 && !plan.has_access(0) {
            let why = match plan.access {
                None => "`access_rate` is \"none\"",
                Some(_) => "`access_at` is \"receiver\"",
            };
            let message = format!("`loss` applies to packets on the access links of the senders, but {why}");
            self.error(&section.at("loss"), &section.sub("loss"), message);
        }
    }

    /// Checks that the settings of a class's users or arrivals agree with each other. `propagation` is the delay of
    /// the class's path, summed over both directions.
    fn check_openings(&mut self, section: &Section<'_>, plan: &ClassPlan, propagation: Span) {
        let rtt = plan.access.as_ref().map(|access| &access.rtt);
        match plan.traffic.opens() {
            Opens::Listed => {}
            Opens::AtRate { .. } => {
                if let Some(Distribution::Spread { .. }) = rtt {
                    let message = "`spread` needs a known number of flows, but the number of connections that \
                                   open at a `rate` is not known in advance; write `uniform`";
                    self.error(&section.at("rtt"), &section.sub("rtt"), message);
                }
            }
            Opens::ByUsers { think, .. } => {
                if plan.draws_by_connection()
                    && let Some(Distribution::Spread { .. }) = rtt
                {
                    let message = "`spread` needs a known number of flows, but each connection of a browser has its own \
                                   round-trip time; write `uniform`";
                    self.error(&section.at("rtt"), &section.sub("rtt"), message);
                }
                let travels = !propagation.is_zero() || rtt.is_some_and(|rtt| !rtt.mean().is_zero());
                if think.mean().is_zero() && !travels {
                    let message = "without think time and without any path delay, a user opens infinitely many \
                                   connections at the same instant; write a longer `think`";
                    self.error(&section.at("think"), &section.sub("think"), message);
                }
            }
        }
    }

    /// Returns the links on the class's path, and those on its return path.
    fn ways(&mut self, section: &Section<'_>, network: &Network<'_>) -> Option<(References, References)> {
        let from = self.router(section, "from", network, network.ends.map(|(from, _)| from));
        let to = self.router(section, "to", network, network.ends.map(|(_, to)| to));
        let (from, to) = (from?, to?);
        let name = |n: usize| &network.nodes[n];
        if from == to {
            let message =
                format!("sender and receiver are both at \"{}\"; no link lies between them", name(from));
            self.error(&section.at("to"), &section.path, message);
            return None;
        }
        let way = |a, b| route::shortest(&network.links, network.nodes.len(), a, b);
        let (there, back) = (way(from, to), way(to, from));
        let names: Vec<&str> = network.links.iter().map(|link| link.name.as_str()).collect();
        let [there, back] = [there, back].map(|way| way.map(|links| References::new(links, &names)));
        // If the description of the network has errors, a missing path is not reported as an error in the
        // traffic.
        if !self.report.is_clean_of("link") || !self.report.is_clean_of("node") {
            return Some((there?, back?));
        }
        if there.is_none() {
            let message = format!("there is no path from \"{}\" to \"{}\"", name(from), name(to));
            self.error(&section.at("to"), &section.path, message);
        } else if back.is_none() {
            let message = format!("there is no path back from \"{}\" to \"{}\"", name(to), name(from));
            self.error(&section.at("from"), &section.path, message);
        }
        let (there, back) = (there?, back?);
        let longest = there.len().max(back.len());
        if longest > MOST_LINKS_OF_A_PATH {
            let message = format!(
                "the path between \"{}\" and \"{}\" has {longest} links; it may have at most \
                 {MOST_LINKS_OF_A_PATH}",
                name(from),
                name(to)
            );
            self.error(&section.at("to"), &section.path, message);
            return None;
        }
        for (key, links) in [("path", &there), ("return path", &back)] {
            let rule = Origin::Derived("fewest hops, then least delay, then order of the file".into());
            self.enter_at(
                section.sub(key),
                &links.names().join(", "),
                rule,
                "the links that its packets cross",
            );
        }
        Some((there, back))
    }

    fn router(
        &mut self,
        section: &Section<'_>,
        key: &str,
        network: &Network<'_>,
        default: Option<usize>,
    ) -> Option<usize> {
        if section.node(key).is_some() {
            return self.node_at(section, key, &network.nodes);
        }
        match default {
            Some(node) => {
                self.derive(section, key, &network.nodes[node], "end to end");
                Some(node)
            }
            None => {
                let nodes = listed(network.nodes.iter().map(String::as_str));
                let message = format!("`{key}` is missing; in a graph, write one of the nodes {nodes}");
                self.error(&section.at, &section.path, message);
                None
            }
        }
    }

    /// Returns the access links: an outer `None` means a mistake, an inner `None` means that there are none.
    /// Where connections have delays of their own, `own_delays` is the mean of their contributions to the
    /// round-trip time, with the rule for `rtt`.
    fn class_access(
        &mut self,
        section: &Section<'_>,
        network: &Network<'_>,
        (there, back): &(References, References),
        own_delays: Option<(Span, &str)>,
    ) -> Option<Option<Access>> {
        // Access links must not be a bottleneck in either direction, whatever the rates of the path.
        let slowest = |way: &[usize]| way.iter().map(|&l| network.links[l].rate).min();
        let slowest = slowest(there).max(slowest(back))?;
        let propagation = propagation(network, there, back);
        let word = self.access(section)?;
        let rate = match (word, network.access) {
            (AccessWord::None, _) | (AccessWord::Silent, AccessWord::None) => {
                let needs = [
                    (
                        "rtt",
                        "`rtt` needs access links to hold the delay, but `access_rate` is \"none\"; a [[delay]] needs no access links",
                    ),
                    (
                        "access_at",
                        "`access_at` selects the ends with access links, but `access_rate` is \"none\"",
                    ),
                ];
                for (key, message) in needs {
                    if let Some(node) = section.node(key) {
                        self.error(&node.at, &section.sub(key), message);
                        return None;
                    }
                }
                if word == AccessWord::Silent {
                    self.derive(section, "access_rate", &"none", "as topology.access_rate");
                }
                return Some(None);
            }
            (AccessWord::Rate(rate), _) => rate,
            (AccessWord::Silent, AccessWord::Rate(rate)) => {
                self.derive(section, "access_rate", &rate, "as topology.access_rate");
                rate
            }
            (AccessWord::Silent, AccessWord::Silent) => {
                let rate = ten_times(slowest);
                self.derive(
                    section,
                    "access_rate",
                    &rate,
                    "ten times the rate of the slowest link on the path, in the direction in which that is faster",
                );
                rate
            }
        };
        let rtt = self.rtt(section, propagation, own_delays)?;
        let at = match section.node("access_at") {
            None => AccessAt::Both,
            Some(_) => match self.value(section, "access_at")? {
                Value::Choice("sender") => AccessAt::Sender,
                Value::Choice("receiver") => AccessAt::Receiver,
                _ => AccessAt::Both,
            },
        };
        Some(Some(Access { rate, rtt, at }))
    }

    fn rtt(
        &mut self,
        section: &Section<'_>,
        propagation: Span,
        own_delays: Option<(Span, &str)>,
    ) -> Option<Distribution> {
        let Some(node) = section.node("rtt") else {
            if let Some((own_delays, rule)) = own_delays {
                let mean = propagation + own_delays;
                self.derive(section, "rtt", &mean, rule);
                return Some(Distribution::Constant(mean));
            }
            self.derive(section, "rtt", &propagation, "propagation delay of the path in both directions");
            return Some(Distribution::Constant(propagation));
        };
        let rtt = self.drawn(section, "rtt")?;
        if rtt.least() < propagation {
            let message = format!(
                "rtt `{}` is below the path's own round-trip propagation delay, `{propagation}`; write at least that, \
                 or shorten the path's delays",
                rtt.least()
            );
            self.error(&node.at, &section.sub("rtt"), message);
            return None;
        }
        Some(rtt)
    }

    /// Returns the endpoints of a class's connections.
    pub(crate) fn tcp(&mut self, section: &Section<'_>) -> Option<Tcp> {
        self.tcp_from(section, DEFAULT_PROFILE)
    }

    /// Returns the TCP endpoints, which start from the profile `unnamed` if the file names none.
    pub(crate) fn tcp_from(&mut self, section: &Section<'_>, unnamed: &'static str) -> Option<Tcp> {
        let path = section.sub("tcp");
        let node = section.node("tcp");
        let table = match node.map(|n| &n.value) {
            Some(Tree::Table(table)) => Some(table),
            _ => None,
        };
        let named = match (node, table) {
            (_, Some(table)) => table.get("profile"),
            (node, None) => node,
        };
        let mut settings = self.profile(named, unnamed, &path)?;
        if let Some(table) = table {
            self.check_keys(table, &path, Profile::TABLE, &["profile"]);
            self.overlay(table, &path, Profile::TABLE, &mut settings);
        }
        let profile = match Profile::resolve(&mut settings) {
            Ok(profile) => profile,
            Err(error) => {
                let at = node.map_or_else(|| section.at.clone(), |n| n.at.clone());
                self.param_error(&error, table, Profile::TABLE, &at, &path);
                return None;
            }
        };
        self.enter_settings(&path, Profile::TABLE, &settings);
        Some(Tcp { profile: Box::new(profile), settings })
    }

    /// Returns the settings of the named profile or, if none is named, of the profile `unnamed`.
    fn profile(&mut self, named: Option<&Node>, unnamed: &'static str, path: &str) -> Option<Settings> {
        let names = || profiles().iter().map(|p| p.name);
        let help = "the set of TCP parameter values from which to start";
        let (name, origin) = match named {
            None => (unnamed, Origin::Default(crate::field::OURS)),
            Some(Node { value: Tree::Text(name), .. }) if names().any(|n| n == name) => {
                (name.as_str(), Origin::Given)
            }
            Some(node) => {
                let message = match &node.value {
                    Tree::Text(name) => no_such("TCP profile", name, names()),
                    other => format!(
                        "`{}` is {}; write a profile ({}) or a table {{ profile = .., ecn = true }}",
                        self.report.quote(&node.at),
                        other.what(),
                        listed(names())
                    ),
                };
                self.error(&node.at, path, message);
                return None;
            }
        };
        self.enter_at(format!("{path}.profile"), &name, origin, help);
        profile_settings(name)
    }
}

/// Returns the propagation delay of the path, summed over both directions, excluding access links.
fn propagation(network: &Network<'_>, there: &[usize], back: &[usize]) -> Span {
    there.iter().chain(back).fold(Span::ZERO, |sum, &l| sum + network.links[l].delay)
}

/// Returns a rate at which the access link is never the bottleneck for a flow that gets an equal share of the
/// path's rate.
fn ten_times(rate: Rate) -> Rate {
    let aqmlab_params::Kind::Rate { max, .. } = RATE else { unreachable!("a rate is a rate") };
    Rate::bps(rate.as_bps().saturating_mul(10)).min(max)
}

/// Returns the place of an item's name.
fn name_at(node: &Node) -> At {
    match &node.value {
        Tree::Table(table) => table.get("name").map_or_else(|| node.at.clone(), |n| n.at.clone()),
        _ => node.at.clone(),
    }
}
