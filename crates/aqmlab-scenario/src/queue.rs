//! Queues: the discipline that a file names, its parameters, and the link that they are resolved against.

use std::collections::BTreeMap;

use aqmlab_params::{Alias, Origin, Param, ParamError, Reading, Settings, Value};
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
            let queue = self.queue(&draft, context, crossing.largest_packet());
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

    fn queue(&mut self, draft: &LinkDraft<'_>, context: LinkContext, largest: Bytes) -> Option<QueuePlan> {
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
        if let Some(flaw) = buffer_flaw(&settings, largest) {
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
        let (info, table) = self.discipline(draft)?;
        let mut given = Settings::default();
        let clean = table.is_none_or(|table| {
            self.check_keys(table, &draft.queue_path, info.params, &[QUEUE_KIND]);
            self.overlay(table, &draft.queue_path, info.params, &mut given)
        });
        clean.then_some((info, table, given))
    }

    /// The discipline that is written, or the default one; with the table of its parameters, if there is one.
    fn discipline<'n>(&mut self, draft: &LinkDraft<'n>) -> Option<(&'static Info, Option<&'n Table>)> {
        let path = &draft.queue_path;
        let help = "the queue discipline";
        let Some(node) = draft.queue else {
            let default = info(DEFAULT_QUEUE).expect("the default discipline is built in");
            self.enter_at(format!("{path}.{QUEUE_KIND}"), &default.name, Origin::Default(OURS), help);
            return Some((default, None));
        };
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
        self.enter_at(kind_path, &info.name, Origin::Given, help);
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

    /// Tells of a parameter that its owner refuses, at the place where it is written.
    pub(crate) fn param_error(
        &mut self,
        error: &ParamError,
        table: Option<&Table>,
        params: &'static [Param],
        otherwise: &At,
        path: &str,
    ) {
        let param = params.iter().find(|p| p.name == error.name);
        let entry = table.zip(param).and_then(|(t, p)| t.entries.iter().find(|e| p.answers_to(&e.key)));
        let at = entry.map_or_else(|| otherwise.clone(), |e| e.node.at.clone());
        self.error(&at, &format!("{path}.{}", error.name), error.message.clone());
    }

    /// Enters effective settings with all that their table says of them.
    pub(crate) fn enter_settings(&mut self, path: &str, params: &'static [Param], settings: &Settings) {
        for setting in settings.iter() {
            let Some(param) = params.iter().find(|p| p.name == setting.name) else { continue };
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
        let data: Vec<_> = classes.iter().filter(|c| c.path.contains(&link)).collect();
        if !data.is_empty() {
            return Crossing { classes: data, crosses: Crosses::Data };
        }
        let answers: Vec<_> =
            classes.iter().filter(|c| c.return_path.contains(&link) && c.answer_packet().is_some()).collect();
        if !answers.is_empty() {
            return Crossing { classes: answers, crosses: Crosses::Answers };
        }
        Crossing { classes: classes.iter().collect(), crosses: Crosses::Nothing }
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
