//! Queues: the discipline that a file names, its parameters, and the link that they are resolved against.

use std::collections::BTreeMap;

use aqmlab_params::{Alias, Kind, Origin, Param, ParamError, Reading, Settings, Value};
use aqmlab_qdisc::LinkContext;
use aqmlab_qdisc::registry::{Info, catalogue, info};
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Packets, Span};

use crate::delay;
use crate::field::OURS;
use crate::kind;
use crate::language::{DEFAULT_QUEUE, MOST_PACKETS, QUEUE_KIND};
use crate::part;
use crate::pass::Pass;
use crate::plan::{ClassPlan, DelayPlan, LinkPlan, Parameter, QueuePlan};
use crate::suggest::{listed, no_such};
use crate::topology::{LinkDraft, Network};
use crate::tree::{At, Node, Table, Tree};

const RTT_RULE: &str = "mean of `rtt` and delay stages over the TCP classes that cross the link (over all, if none is \
                        TCP), weighted by their flows";
/// The buffer of a queue of which nothing is written, where there is no round-trip time.
const UNWRITTEN_LIMIT: Size = Size::Packets(Packets::new(1000));
const PACKET_RULE: &str = "mean packet of the classes that cross the link, weighted by their flows";

impl Pass<'_, '_> {
    /// All links with their queues resolved.
    pub(crate) fn links(
        &mut self,
        network: Network<'_>,
        classes: &[ClassPlan],
        delays: &[DelayPlan],
    ) -> Option<Vec<LinkPlan>> {
        let rtts: BTreeMap<&str, Span> = classes
            .iter()
            .enumerate()
            .map(|(i, c)| (c.name.as_str(), base_rtt(&network, c, i, delays)))
            .collect();
        self.traffic_names = Some(classes.iter().map(|c| c.name.clone()).collect());
        let mut links = Vec::new();
        for (i, draft) in network.links.into_iter().enumerate() {
            let crossing = Crossing::of(i, classes);
            let context = LinkContext {
                rate: draft.rate,
                delay: draft.delay,
                rtt: crossing.rtt(&rtts),
                flows: crossing.flows(),
                mean_packet: crossing.mean_packet(),
            };
            let queue = self.queue(&draft, context, &crossing, classes);
            links.push(queue.map(|queue| LinkPlan {
                name: draft.name,
                from: draft.from,
                to: draft.to,
                rate: draft.rate,
                delay: draft.delay,
                overhead: draft.overhead,
                queue,
                faults: draft.faults,
            }));
        }
        links.into_iter().collect()
    }

    fn queue(
        &mut self,
        draft: &LinkDraft<'_>,
        context: LinkContext,
        crossing: &Crossing<'_>,
        classes: &[ClassPlan],
    ) -> Option<QueuePlan> {
        let path = &draft.queue_path;
        let at = draft.queue.map_or_else(|| draft.at.clone(), |n| n.at.clone());
        let (info, table, mut given) = self.written_queue(draft)?;
        if draft.queue.is_none() && context.rtt.is_none() {
            let rule = "no round-trip time to take a bandwidth-delay product of";
            given.set("limit", Value::Size(UNWRITTEN_LIMIT), Origin::Derived(rule.into()));
        }
        let settings = match (info.resolve)(&given, &context) {
            Ok(settings) => settings,
            Err(error) => {
                self.param_error(&error, table, info.params, &at, path);
                return None;
            }
        };
        if let Some(error) = untaken(info.name, &settings, &crossing.all, classes) {
            self.param_error(&error, table, info.params, &at, path);
            return None;
        }
        if let Some(flaw) = buffer_flaw(&settings, crossing.largest_packet()) {
            self.param_error(&ParamError::new("limit", flaw), table, info.params, &at, path);
            return None;
        }
        self.enter_settings(path, info.params, &settings);
        self.enter_context(path, &context);
        Some(QueuePlan { kind: info.name, settings, link: context })
    }

    /// Looks at queues whose links or traffic are wrong, as far as that goes.
    pub(crate) fn look_at_queues(&mut self, network: &Network<'_>) {
        for draft in &network.links {
            self.written_queue(draft);
        }
    }

    /// The discipline, its table and the parameters that are written.
    fn written_queue<'n>(
        &mut self,
        draft: &LinkDraft<'n>,
    ) -> Option<(&'static Info, Option<&'n Table>, Settings)> {
        let path = &draft.queue_path;
        let Some(node) = draft.queue else {
            let default = info(DEFAULT_QUEUE).expect("the default discipline is built in");
            let kind = format!("{path}.{QUEUE_KIND}");
            self.enter_at(kind, &default.name, Origin::Default(OURS), DISCIPLINE_HELP);
            return Some((default, None, Settings::default()));
        };
        let (info, table, given) = self.discipline_at(node, path)?;
        self.enter_at(format!("{path}.{QUEUE_KIND}"), &info.name, Origin::Given, DISCIPLINE_HELP);
        Some((info, table, given))
    }

    /// The discipline at `node`, its table if it has one, and the parameters that are written there.
    fn discipline_at<'n>(
        &mut self,
        node: &'n Node,
        path: &str,
    ) -> Option<(&'static Info, Option<&'n Table>, Settings)> {
        let (info, table) = self.discipline(node, path)?;
        let mut given = Settings::default();
        let clean = table.is_none_or(|table| {
            self.check_keys(table, path, info.params, &[QUEUE_KIND]);
            self.overlay(table, path, info.params, &mut given)
        });
        clean.then_some((info, table, given))
    }

    /// The discipline that is written at `node`, with the table of its parameters, if there is one.
    fn discipline<'n>(&mut self, node: &'n Node, path: &str) -> Option<(&'static Info, Option<&'n Table>)> {
        let names = || catalogue().iter().map(|i| i.name);
        let (named, table) = match &node.value {
            Tree::Table(table) => (table.get(QUEUE_KIND), Some(table)),
            _ => (Some(node), None),
        };
        let Some(named) = named else {
            let message = format!("`{QUEUE_KIND}` is missing; write one of {}", listed(names()));
            self.error(&node.at, path, message);
            return None;
        };
        let kind_path = format!("{path}.{QUEUE_KIND}");
        let Tree::Text(name) = &named.value else {
            let message = format!(
                "`{}` is {}; write a discipline ({}) or a table {{ kind = .., limit = .. }}",
                self.report.quote(&named.at),
                named.value.what(),
                listed(names())
            );
            self.error(&named.at, path, message);
            return None;
        };
        let Some(info) = info(name) else {
            self.error(&named.at, &kind_path, no_such("discipline", name, names()));
            return None;
        };
        Some((info, table))
    }

    /// Puts what `table` says over `settings`. False if something in it is wrong.
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
                let message =
                    format!("`{}` is another name of `{}`, which is given as well", entry.key, param.name);
                self.error(&entry.key_at, &path, message);
                clean = false;
            }
            seen.push(param.name);
            let alias = param.alias(&entry.key);
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
            if let Some((alias, (name, word))) = alias.and_then(|a| Some((a, a.implies?)))
                && !table.entries.iter().any(|e| e.key == name)
            {
                let rule = format!("as `{}` has it in {}", alias.name, alias.of);
                settings.set(name, Value::Choice(word), Origin::Derived(rule.into()));
            }
        }
        clean
    }

    /// Where a value comes from that is written under another tool's name: told where it reads differently there.
    fn origin_of_alias(&self, alias: &Alias, written: &Node) -> Origin {
        let differs =
            matches!(alias.reading, Reading::Words(..) | Reading::Inverse | Reading::ZeroIsUnlimited)
                && !matches!(written.value, Tree::Text(_));
        if !differs {
            return Origin::Given;
        }
        Origin::Derived(format!("{} `{} = {}`", alias.of, alias.name, self.report.quote(&written.at)).into())
    }

    /// A parameter's value; an automatic one may be asked for by the word "auto".
    fn parameter(&mut self, node: &Node, path: &str, param: &Param, alias: Option<&Alias>) -> Option<Value> {
        let automatic = matches!(param.default, aqmlab_params::Default::Auto(_));
        if automatic && matches!(&node.value, Tree::Text(word) if word == "auto") {
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

    /// A value of a kind that has values inside, or that names something of the scenario; what is wrong is told. The outer
    /// `None` is for all other kinds.
    fn nested_value(&mut self, node: &Node, path: &str, kind: &Kind) -> Option<Option<Value>> {
        match kind {
            Kind::List(of) => Some(self.list_value(node, path, of)),
            Kind::Table(params) => Some(self.table_value(node, path, params)),
            Kind::Discipline => {
                let found = self.discipline_at(node, path);
                Some(found.map(|(info, _, settings)| Value::Discipline { kind: info.name, settings }))
            }
            Kind::TrafficClass => Some(self.traffic_class(node, path)),
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

    /// A traffic class by its name. Where the traffic is wrong itself, any name will do.
    fn traffic_class(&mut self, node: &Node, path: &str) -> Option<Value> {
        let Value::Text(name) = self.given(node, path, &Kind::Text)? else { return None };
        let number = match &self.traffic_names {
            None => 0,
            Some(names) => match names.iter().position(|n| *n == name) {
                Some(number) => number,
                None => {
                    let message = no_such("traffic class", &name, names.iter().map(String::as_str));
                    self.error(&node.at, path, message);
                    return None;
                }
            },
        };
        Some(Value::TrafficClass { name, number })
    }

    /// Tells of a parameter that its owner refuses, at the place where it is written, or as near to that as there is something.
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
            (table, params) = inside_of(&node.value, params, place.name);
        }
        if let Some(node) = written(table, params, error.name) {
            at = node.at.clone();
        }
        self.error(&at, &format!("{path}.{}", error.name), error.message.clone());
    }

    /// Enters effective settings with all that their table says of them.
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

    /// Enters what is inside of a value, each with its own origin. False if there is nothing inside.
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
                let Some(info) = info(kind) else { return false };
                self.enter_at(format!("{path}.{QUEUE_KIND}"), &info.name, origin.clone(), DISCIPLINE_HELP);
                self.enter_settings(path, info.params, settings);
            }
            _ => return false,
        }
        true
    }

    fn enter_context(&mut self, path: &str, context: &LinkContext) {
        if let Some(rtt) = context.rtt {
            let origin = Origin::Derived(RTT_RULE.into());
            self.enter_at(
                format!("{path}.context.rtt"),
                &rtt,
                origin,
                "what automatic parameters take as round-trip time",
            );
        }
        let origin = Origin::Derived(PACKET_RULE.into());
        let help = "what automatic parameters take as packet size";
        self.enter_at(format!("{path}.context.mean_packet"), &context.mean_packet, origin, help);
    }
}

const DISCIPLINE_HELP: &str = "the queue discipline";

/// What is written of the parameter `name`.
fn written<'n>(table: Option<&'n Table>, params: &[Param], name: &str) -> Option<&'n Node> {
    let param = params.iter().find(|p| p.name == name)?;
    table?.entries.iter().find(|e| param.answers_to(&e.key)).map(|e| &e.node)
}

/// The table that a value of the parameter `name` holds, with what may stand in it.
fn inside_of<'n>(
    value: &'n Tree,
    params: &'static [Param],
    name: &str,
) -> (Option<&'n Table>, &'static [Param]) {
    let Tree::Table(table) = value else { return (None, &[]) };
    let params: &'static [Param] = match params.iter().find(|p| p.name == name).map(|p| p.kind) {
        Some(Kind::Table(params)) => params,
        Some(Kind::List(&Kind::Table(params))) => params,
        Some(Kind::Discipline) => match table.get(QUEUE_KIND).map(|node| &node.value) {
            Some(Tree::Text(kind)) => info(kind).map_or(&[][..], |info| info.params),
            _ => &[],
        },
        _ => &[],
    };
    (Some(table), params)
}

/// The path of an item of a list: a table by its `name`, or the `class` that it is about, or its place.
fn item_path(path: &str, index: usize, item: &Tree) -> String {
    let Tree::Table(table) = item else { return path.to_string() };
    match table.get("name").or_else(|| table.get("class")).map(|node| &node.value) {
        Some(Tree::Text(name)) => format!("{path}.{name}"),
        _ => format!("{path}.{}", index + 1),
    }
}

/// A traffic class that comes to a port with classes of which none takes it.
fn untaken(kind: &str, settings: &Settings, coming: &[usize], classes: &[ClassPlan]) -> Option<ParamError> {
    if kind == "policer" {
        let (kind, inner) = settings.discipline("queue").ok()??;
        return untaken(kind, inner, coming, classes).map(|e| e.under("queue", None));
    }
    if kind != "classes" {
        return None;
    }
    let tables = settings.tables("class").ok()?;
    if let Some(class) = tables.iter().position(|table| table.get("port") != Some(&Value::Nothing)) {
        let message = "the flows of a scenario have ports only in a live run, and no say in them; write `traffic` or `dscp`";
        return Some(ParamError::new("port", message).under("class", Some(class)));
    }
    let named = |table: &Settings| -> Vec<usize> {
        let number = |value: &Value| match value {
            Value::TrafficClass { number, .. } => Some(*number),
            _ => None,
        };
        table.list("traffic").map_or_else(|_| Vec::new(), |list| list.iter().filter_map(number).collect())
    };
    let all: Vec<Vec<usize>> = tables.iter().map(|table| named(table)).collect();
    let takes_the_rest =
        |i: usize| ["traffic", "dscp"].iter().all(|by| tables[i].get(by) == Some(&Value::Nothing));
    let by_traffic = all.iter().any(|names| !names.is_empty());
    let rest = (0..tables.len()).find(|i| takes_the_rest(*i));
    let lost =
        |class: &&usize| by_traffic && rest.is_none() && !all.iter().any(|named| named.contains(class));
    if let Some(lost) = coming.iter().find(lost) {
        let message = format!(
            "no class takes the packets of \"{}\", which cross the link; name it in `traffic` of one, or add a class without \
             `traffic` for the rest",
            classes[*lost].name
        );
        return Some(ParamError::new("class", message));
    }
    tables.iter().enumerate().find_map(|(i, table)| {
        let (kind, inner) = table.discipline("queue").ok()??;
        let coming: Vec<usize> = if by_traffic {
            let others = |class: &&usize| !all.iter().any(|named| named.contains(class));
            let mine = |class: &&usize| all[i].contains(class) || (rest == Some(i) && others(class));
            coming.iter().filter(mine).copied().collect()
        } else {
            coming.to_vec()
        };
        untaken(kind, inner, &coming, classes).map(|e| e.under("queue", None).under("class", Some(i)))
    })
}

/// A packet that no buffer state admits would never pass.
fn buffer_flaw(settings: &Settings, largest: Bytes) -> Option<String> {
    let Some(Value::Size(limit @ Size::Bytes(bytes))) = settings.get("limit") else { return None };
    let whole_packets = settings.get("limit_rule").is_none_or(|rule| *rule == Value::Choice("fits"));
    (whole_packets && *bytes < largest).then(|| {
        format!("limit `{limit}` is smaller than a packet of `{largest}` that crosses the link; write at least that")
    })
}

/// Who crosses a link: those whose data does, else those whose answers do, else everybody.
struct Crossing<'c> {
    classes: Vec<&'c ClassPlan>,
    crosses: Crosses,
    /// The numbers of all of whom anything crosses it, data or answers.
    all: Vec<usize>,
}

/// What of them crosses it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Crosses {
    Data,
    Answers,
    Nothing,
}

impl<'c> Crossing<'c> {
    fn of(link: usize, classes: &'c [ClassPlan]) -> Self {
        let any = |c: &ClassPlan| {
            c.path.contains(&link) || (c.return_path.contains(&link) && c.answer_packet().is_some())
        };
        let all = classes.iter().enumerate().filter(|(_, c)| any(c)).map(|(i, _)| i).collect();
        let data: Vec<_> = classes.iter().filter(|c| c.path.contains(&link)).collect();
        if !data.is_empty() {
            return Crossing { classes: data, crosses: Crosses::Data, all };
        }
        let answers: Vec<_> =
            classes.iter().filter(|c| c.return_path.contains(&link) && c.answer_packet().is_some()).collect();
        if !answers.is_empty() {
            return Crossing { classes: answers, crosses: Crosses::Answers, all };
        }
        Crossing { classes: classes.iter().collect(), crosses: Crosses::Nothing, all }
    }

    /// Mean base round-trip time of what reacts to the queue; `None` if it takes no time at all.
    fn rtt(&self, rtts: &BTreeMap<&str, Span>) -> Option<Span> {
        let responsive: Vec<_> =
            self.classes.iter().copied().filter(|c| c.workload.tcp().is_some()).collect();
        let classes = if responsive.is_empty() { &self.classes } else { &responsive };
        let mean = mean(classes, |c| rtts[c.name.as_str()].as_ns());
        (mean > 0).then_some(Span::ns(mean))
    }

    /// TCP flows whose data crosses; `None` if there are none.
    fn flows(&self) -> Option<u64> {
        if self.crosses != Crosses::Data {
            return None;
        }
        let responsive = self.classes.iter().filter(|c| c.workload.tcp().is_some());
        let flows = responsive.fold(0u64, |sum, c| sum.saturating_add(c.count));
        (flows > 0).then_some(flows)
    }

    fn mean_packet(&self) -> Bytes {
        Bytes::new(mean(&self.classes, |c| self.packet(c).get()).max(1))
    }

    /// The largest packet of a fixed size.
    fn largest_packet(&self) -> Bytes {
        self.classes.iter().map(|c| self.packet(c)).max().unwrap_or(Bytes::ZERO)
    }

    fn packet(&self, class: &ClassPlan) -> Bytes {
        if self.crosses == Crosses::Answers {
            class.answer_packet().unwrap_or(Bytes::ZERO)
        } else {
            class.data_packet()
        }
    }
}

/// The mean base round-trip time of a class: what its path takes, or what `rtt` says, and its delay stages.
fn base_rtt(network: &Network<'_>, class: &ClassPlan, index: usize, delays: &[DelayPlan]) -> Span {
    let links = |way: &[usize]| way.iter().fold(Span::ZERO, |sum, &l| sum + network.links[l].delay);
    let own = match &class.access {
        Some(access) => access.rtt.mean(),
        None => links(&class.path) + links(&class.return_path),
    };
    let ends = |way: &[usize]| match way {
        [first, .., last] => [network.links[*first].from, network.links[*last].to],
        [only] => [network.links[*only].from, network.links[*only].to],
        [] => unreachable!("a path has links"),
    };
    own + delay::mean_of(delays, [ends(&class.path), ends(&class.return_path)], index)
}

/// The mean over flows, rounded to the nearest.
fn mean(classes: &[&ClassPlan], value: impl Fn(&ClassPlan) -> u64) -> u64 {
    let flows: u128 = classes.iter().map(|c| u128::from(c.count)).sum();
    let sum: u128 = classes.iter().map(|c| u128::from(value(c)) * u128::from(c.count)).sum();
    ((sum + flows / 2) / flows.max(1)) as u64
}

/// An absolute size in packets of mean size.
pub(crate) fn in_packets(size: Size, mean_packet: Bytes) -> Option<f64> {
    match size {
        Size::Packets(n) => Some(n.as_f64()),
        Size::Bytes(n) => Some(n.as_f64() / mean_packet.as_f64()),
        Size::Bdp(_) | Size::Time(_) => None,
    }
}
