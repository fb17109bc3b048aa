//! Queues: the discipline that a file names, its parameters, and the link against which they are
//! resolved.

use std::collections::BTreeMap;

use aqmlab_params::{Origin, ParamError, Settings, Value};
use aqmlab_qdisc::registry::Info;
use aqmlab_qdisc::{Effective, LinkContext};
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Packets, Span};

use crate::autorate::ShapedLink;
use crate::crossing::{Crossing, base_rtt};
use crate::elsewhere;
use crate::error::Problem;
use crate::field::OURS;
use crate::kernel_queue::{TC_INFO, TC_QUEUE, TC_SPEC};
use crate::language::{DEFAULT_QUEUE, QUEUE_KIND};
use crate::pass::Pass;
use crate::plan::{AutoratePlan, ClassPlan, DelayPlan, LinkPlan, Reference};
use crate::suggest::{listed, no_such};
use crate::topology::{LinkDraft, Network};
use crate::tree::{Node, Table, Tree};

const RTT_RULE: &str = "mean of `rtt` plus delay stages over the TCP classes that cross the link (over all classes if \
                        none is TCP), weighted by their numbers of flows";
/// The default buffer of a queue if the round-trip time is unknown.
const UNWRITTEN_LIMIT: Size = Size::Packets(Packets::new(1000));
const PACKET_RULE: &str =
    "mean packet size of the classes that cross the link, weighted by their numbers of flows";

impl Pass<'_, '_> {
    /// Returns all links with their queues resolved.
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
        self.traffic = Some(classes.iter().map(|c| (c.name.clone(), c.port)).collect());
        let delays_of: Vec<Span> = network.links.iter().map(|link| link.delay).collect();
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
            let autorate = self.link_autorate(i, &draft, queue.as_ref(), classes, |class| {
                let way = |links: &[usize]| links.iter().fold(Span::ZERO, |sum, link| sum + delays_of[*link]);
                let (there, back) = (way(&classes[class].path), way(&classes[class].return_path));
                let rtt = rtts.get(classes[class].name.as_str()).copied().unwrap_or_default();
                back + rtt.saturating_sub(there + back).div(2)
            });
            let only_live = self.only_a_kernels(&draft);
            links.push(queue.zip(autorate).map(|(queue, autorate)| LinkPlan {
                autorate,
                name: draft.name,
                from: Reference::new(draft.from, &network.nodes),
                to: Reference::new(draft.to, &network.nodes),
                rate: draft.rate,
                changes: draft.changes,
                delay: draft.delay,
                overhead: draft.overhead,
                queue,
                faults: draft.faults,
                only_live,
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
    ) -> Option<Effective> {
        let path = &draft.queue_path;
        let at = draft.queue.map_or_else(|| draft.at.clone(), |n| n.at.clone());
        let (info, table, mut given) = self.written_queue(draft)?;
        if draft.queue.is_none() && context.rtt.is_none() {
            let rule = "the default if the round-trip time, and so the bandwidth-delay product, is unknown";
            given.set("limit", Value::Size(UNWRITTEN_LIMIT), Origin::Derived(rule.into()));
        }
        let resolved = info.resolve_in(self.catalogue, &given, &context).and_then(|effective| {
            let wrong = untaken(info.name, &effective, &crossing.all, classes)
                .or_else(|| buffer_flaw(&effective, crossing.largest_packet()));
            wrong.map_or(Ok(effective), Err)
        });
        match resolved {
            Ok(effective) => {
                self.enter_settings(path, info.params, &effective);
                self.enter_context(path, &context);
                Some(effective)
            }
            Err(error) => {
                self.param_error(&error, table, info.params, &at, path);
                None
            }
        }
    }

    /// Returns the controller of a link's shaper, if the file gives one; the outer `None` is returned if it is wrong.
    fn link_autorate(
        &mut self,
        number: usize,
        draft: &LinkDraft<'_>,
        queue: Option<&Effective>,
        classes: &[ClassPlan],
        back: impl Fn(usize) -> Span,
    ) -> Option<Option<AutoratePlan>> {
        let Some((node, path)) = &draft.autorate else { return Some(None) };
        let queue = queue?;
        let link = ShapedLink { number, name: &draft.name, kind: queue.kind(), settings: queue };
        self.autorate(node, path, &link, classes, back).map(Some)
    }

    /// Returns why the simulator cannot build this link's queue, if that is a kernel queue.
    fn only_a_kernels(&mut self, draft: &LinkDraft<'_>) -> Option<Problem> {
        let named = match &draft.queue?.value {
            Tree::Table(table) => table.get(QUEUE_KIND)?,
            _ => draft.queue?,
        };
        if !matches!(&named.value, Tree::Text(name) if name == TC_QUEUE) {
            return None;
        }
        let path = format!("{}.{QUEUE_KIND}", draft.queue_path);
        if !draft.faults.drop.is_empty() || !draft.faults.mark.is_empty() {
            let message =
                "faults can be placed only in front of aqmlab's own queues, not in front of kernel queues";
            self.error(&named.at, &path, message);
        }
        let message = "the simulator has no kernel queues: run this arm with `aqmlab live`, or select the \
                       others with `--arm`; aqmlab's own queues follow Linux's rules with `preset = \"linux\"`";
        Some(self.report.problem(&named.at, &path, message.into()))
    }

    /// Makes those checks of the queues that are possible even if their links or the traffic are
    /// invalid.
    pub(crate) fn look_at_queues(&mut self, network: &Network<'_>) {
        for draft in &network.links {
            self.written_queue(draft);
        }
    }

    /// Returns the link's discipline, the table that gives it, if there is one, and the parameters
    /// that are written.
    fn written_queue<'n>(&mut self, draft: &LinkDraft<'n>) -> Option<(Info, Option<&'n Table>, Settings)> {
        let path = &draft.queue_path;
        let Some(node) = draft.queue else {
            let default = *self.catalogue.find(DEFAULT_QUEUE).expect("the default discipline is built in");
            let kind = format!("{path}.{QUEUE_KIND}");
            self.enter_at(kind, &default.name, Origin::Default(OURS), DISCIPLINE_HELP);
            return Some((default, None, Settings::default()));
        };
        let (info, table, given) = self.queue_at(node, path, true)?;
        self.enter_at(format!("{path}.{QUEUE_KIND}"), &info.name, Origin::Given, DISCIPLINE_HELP);
        Some((info, table, given))
    }

    /// Returns the discipline at `node`, the table that gives it, if there is one, and the
    /// parameters that are written there.
    pub(crate) fn discipline_at<'n>(
        &mut self,
        node: &'n Node,
        path: &str,
    ) -> Option<(Info, Option<&'n Table>, Settings)> {
        self.queue_at(node, path, false)
    }

    /// Does the same as [`Pass::discipline_at`], except that the queue of a link (`of_link`) may
    /// also be a kernel queue.
    fn queue_at<'n>(
        &mut self,
        node: &'n Node,
        path: &str,
        of_link: bool,
    ) -> Option<(Info, Option<&'n Table>, Settings)> {
        let (info, table) = self.discipline(node, path, of_link)?;
        let mut given = Settings::default();
        let clean = table.is_none_or(|table| {
            self.check_keys(table, path, info.params, &[QUEUE_KIND]);
            self.overlay(table, path, info.params, &mut given)
        });
        clean.then_some((info, table, given))
    }

    /// Returns the discipline that is written at `node`, with the table of its parameters, if there
    /// is one.
    fn discipline<'n>(
        &mut self,
        node: &'n Node,
        path: &str,
        of_link: bool,
    ) -> Option<(Info, Option<&'n Table>)> {
        let catalogue = self.catalogue;
        let names = || catalogue.iter().map(|i| i.name);
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
        if name == TC_QUEUE {
            if !of_link {
                self.error(
                    &named.at,
                    &kind_path,
                    "a kernel queue belongs to a link and cannot be inside another queue",
                );
                return None;
            }
            return Some((TC_INFO, table));
        }
        let Some(info) = catalogue.find(name) else {
            let known_elsewhere = elsewhere::of_discipline(name, of_link);
            let message = known_elsewhere.unwrap_or_else(|| no_such("discipline", name, names()));
            self.error(&named.at, &kind_path, message);
            return None;
        };
        Some((*info, table))
    }

    fn enter_context(&mut self, path: &str, context: &LinkContext) {
        if let Some(rtt) = context.rtt {
            let origin = Origin::Derived(RTT_RULE.into());
            self.enter_at(
                format!("{path}.context.rtt"),
                &rtt,
                origin,
                "round-trip time for automatic parameters",
            );
        }
        let origin = Origin::Derived(PACKET_RULE.into());
        let help = "packet size for automatic parameters";
        self.enter_at(format!("{path}.context.mean_packet"), &context.mean_packet, origin, help);
    }
}

pub(crate) const DISCIPLINE_HELP: &str = "the queue discipline";

/// Returns an error if the packets of a traffic class arrive at a queue with classes but fit none of
/// these classes.
fn untaken(kind: &str, settings: &Settings, coming: &[usize], classes: &[ClassPlan]) -> Option<ParamError> {
    if matches!(kind, "policer" | "spare" | "tbf") {
        let (kind, inner) = settings.discipline("queue").ok()??;
        return untaken(kind, inner, coming, classes).map(|e| e.under("queue", None));
    }
    if !matches!(kind, "classes" | "htb" | "gred") {
        return None;
    }
    // Packets wait only in the leaves of a tree. The classes of a FIFO have no queues of their own.
    let all_tables = settings.tables("class").ok()?;
    let is_leaf =
        |table: &Settings| kind == "gred" || table.discipline("queue").is_ok_and(|queue| queue.is_some());
    let places: Vec<usize> = (0..all_tables.len()).filter(|i| is_leaf(all_tables[*i])).collect();
    let tables: Vec<_> = places.iter().map(|i| &all_tables[*i]).collect();
    let named = |table: &&&Settings| -> Vec<usize> {
        let lists = ["traffic", "port"].map(|by| table.list(by).unwrap_or_default());
        lists.into_iter().flatten().flat_map(Value::traffic_classes).copied().collect()
    };
    let all: Vec<Vec<usize>> = tables.iter().map(named).collect();
    let takes_the_rest =
        |i: usize| ["traffic", "dscp", "port"].iter().all(|by| tables[i].get(by) == Some(&Value::Nothing));
    let by_traffic = all.iter().any(|names| !names.is_empty());
    let rest = (0..tables.len()).find(|i| takes_the_rest(*i));
    let lost =
        |class: &&usize| by_traffic && rest.is_none() && !all.iter().any(|named| named.contains(class));
    if let Some(lost) = coming.iter().find(lost) {
        let message = format!(
            "no class takes the packets of \"{}\", which cross the link; name this traffic in the \
             `traffic` of a class, or add a class without `traffic` for the rest",
            classes[*lost].name
        );
        return Some(ParamError::new("class", message));
    }
    tables.iter().enumerate().find_map(|(i, table)| {
        let (kind, inner) = table.discipline("queue").ok().flatten()?;
        let coming: Vec<usize> = if by_traffic {
            let others = |class: &&usize| !all.iter().any(|named| named.contains(class));
            let mine = |class: &&usize| all[i].contains(class) || (rest == Some(i) && others(class));
            coming.iter().filter(mine).copied().collect()
        } else {
            coming.to_vec()
        };
        untaken(kind, inner, &coming, classes).map(|e| e.under("queue", None).under("class", Some(places[i])))
    })
}

/// Returns an error if even an empty buffer has no room for the largest packet, which would then
/// never pass.
fn buffer_flaw(settings: &Settings, largest: Bytes) -> Option<ParamError> {
    let Some(Value::Size(limit @ Size::Bytes(bytes))) = settings.get("limit") else { return None };
    let whole_packets = settings.get("limit_rule").is_none_or(|rule| *rule == Value::Choice("fits"));
    (whole_packets && *bytes < largest).then(|| {
        let message = format!(
            "limit `{limit}` is smaller than a packet of `{largest}` that crosses the link; write at least that"
        );
        ParamError::new("limit", message)
    })
}

/// Converts an absolute size to a number of packets of mean size.
pub(crate) fn in_packets(size: Size, mean_packet: Bytes) -> Option<f64> {
    match size {
        Size::Packets(n) => Some(n.as_f64()),
        Size::Bytes(n) => Some(n.as_f64() / mean_packet.as_f64()),
        Size::Bdp(_) | Size::Time(_) => None,
    }
}

impl LinkPlan {
    /// Returns the arguments for tc that set up the link's queue, if it is a kernel queue.
    pub fn kernel_spec(&self) -> Option<String> {
        (self.queue.kind() == TC_QUEUE).then(|| self.queue.text(TC_SPEC).unwrap_or_default())
    }
}
