//! The parameters of a port with classes, and their conversion to queues.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::borrow::Borrow;

use aqmlab_params::{Default, Kind, Origin, Param, ParamError, Settings, Value, words};
use aqmlab_random::Stream;
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Packets, Rate, Span};

use super::classes::share_of;
use super::{ClassQueue, Classes, Classifier, MOST_CLASSES, Scheduler};
use crate::info::{Decides, Derive, Effective, Info, Maturity};
use crate::law::RoundRobin;
use crate::{LinkContext, Packet, Qdisc, resolve};

words! {
    /// The order in which classes send.
    enum Order { Strict = "strict", Wrr = "wrr", Drr = "drr" }
}

/// Finds a discipline that may be inside another one.
pub(crate) type Find = fn(&str) -> Option<&'static Info>;

/// Builds a discipline that is inside another one.
pub(crate) type BuildInner<Q> = fn(&Effective, Stream) -> Result<Q, ParamError>;

/// Returns the registry entry of the port with classes; `derive` resolves its settings and looks up
/// the disciplines of the inner queues.
pub(crate) const fn classes_info(derive: Derive) -> Info {
    Info {
        name: "classes",
        title: "Port with classes",
        summary: "a classifier, one queue with its own discipline per class, and a scheduler",
        version: 2,
        applies: &[],
        maturity: Maturity::Experimental,
        decides: Decides::Both,
        params: CLASSES,
        presets: &[],
        derive,
        samples,
    }
}

const RFC2475: &str = "RFC 2475, section 2.3";

pub(super) const fn optional(
    name: &'static str,
    kind: Kind,
    nothing: &'static str,
    help: &'static str,
) -> Param {
    Param { name, kind, default: Default::Nothing(nothing), aliases: &[], source: RFC2475, help }
}

pub(super) const fn required(name: &'static str, kind: Kind, help: &'static str) -> Param {
    Param { name, kind, default: Default::Required, aliases: &[], source: RFC2475, help }
}

static CLASSES: &[Param] = &[
    Param {
        name: "scheduler",
        kind: Kind::Choice(Order::WORDS),
        default: Default::Choice(Order::Drr.word()),
        aliases: &[],
        source: "drr: Shreedhar and Varghese 1996; wrr: Katevenis, Sidiropoulos, Courcoubetis 1991",
        help: "the order in which classes send: with `strict`, always the first class that has something to \
               send; with `wrr`, each class in turn, as many packets as its weight; with `drr`, each class \
               in turn, as many bytes as its weight times quantum",
    },
    Param {
        name: "quantum",
        kind: Kind::Bytes { min: 64, max: 1_000_000 },
        default: Default::Bytes(1500),
        aliases: &[],
        source: "Shreedhar and Varghese 1996, section 4: at least the largest packet, for constant work per packet",
        help: "scheduler `drr`: bytes that a class of weight 1 may send per round",
    },
    optional(
        "queue",
        Kind::Discipline,
        "each class has its own",
        "the queue for each class that has no `queue` of its own",
    ),
    optional(
        "thresholds",
        Kind::List(&Kind::Table(THRESHOLDS)),
        "those of `queue` apply to all",
        "thresholds for single classes, which replace those of `queue` (weighted RED)",
    ),
    Param {
        source: "ours",
        ..optional(
            "limit",
            Kind::Size { min: Packets::new(1) },
            "the classes have their own limits and share none",
            "buffer that all classes share, in addition to the limits of their queues: an arrival of any \
             class is refused before it reaches its queue if the shared buffer has no room",
        )
    },
    resolve::LIMIT_RULE,
    required(
        "class",
        Kind::List(&Kind::Table(CLASS)),
        "the classes; for `strict`, the one with the highest priority first",
    ),
];

/// The parameters of a class.
const CLASS: &[Param] = &[
    required("name", Kind::Text, "name of the class; in recordings, its queue is called `link/name`"),
    optional(
        "traffic",
        Kind::List(&Kind::TrafficClass),
        "another key selects the packets, or the class takes all that no other class takes",
        "traffic classes whose packets belong to this class",
    ),
    optional(
        "dscp",
        Kind::List(&Kind::Dscp),
        "another key selects the packets, or the class takes all that no other class takes",
        "code points whose packets belong to this class",
    ),
    optional(
        "port",
        Kind::List(&Kind::Port),
        "another key selects the packets, or the class takes all that no other class takes",
        "destination ports whose packets belong to this class; a packet whose destination port belongs to no class is matched by its source port",
    ),
    Param {
        name: "weight",
        kind: Kind::Integer { min: 1, max: 1_000_000 },
        default: Default::Auto("1; none with scheduler `strict`"),
        aliases: &[],
        source: "Shreedhar and Varghese 1996, section 3",
        help: "its share of the link relative to the other classes that have something to send",
    },
    Param {
        name: "queue",
        kind: Kind::Discipline,
        default: Default::Auto("the port's `queue`"),
        aliases: &[],
        source: RFC2475,
        help: "its queue: any discipline, including another port with classes; with `wrr` and `drr`, \
               automatic parameters use the class's share of the link's rate",
    },
];

/// The thresholds of a class that differ from those of the common queue.
const THRESHOLDS: &[Param] = &[
    required("class", Kind::Text, "the class"),
    optional("min_th", Kind::Size { min: Packets::new(1) }, "as in `queue`", "its `min_th`"),
    optional("max_th", Kind::Size { min: Packets::new(1) }, "as in `queue`", "its `max_th`"),
    optional("max_p", Kind::NumberAbove { above: 0.0, max: 1.0 }, "as in `queue`", "its `max_p`"),
];

/// Returns a port with classes for each kind of queue, and nested ports with classes for each classifying
/// field and each scheduler, with and without policers.
fn samples() -> Vec<(&'static str, Settings)> {
    let (limit, rest) = (resolve::SAMPLE_LIMIT, Value::List(alloc::vec![Value::Integer(81)]));
    let number = |n| ("weight", Value::Integer(n));
    let class = |name: &str, values: &[(&'static str, Value)], queue: Value| {
        let mut settings = resolve::given(values);
        settings.set("name", Value::Text(name.into()), Origin::Given);
        settings.set("queue", queue, Origin::Given);
        Value::Table(settings)
    };
    let queue = |kind, values: &[_]| Value::Discipline { kind, settings: resolve::given(values) };
    let traffic = |numbers: &[usize]| {
        let one = |&number: &usize| Value::TrafficClass { name: format!("class{number}"), number };
        ("traffic", Value::List(numbers.iter().map(one).collect()))
    };
    let dscp = |n| ("dscp", Value::List(alloc::vec![Value::Integer(n)]));
    let port = |scheduler, classes: Vec<Value>| {
        [("scheduler", Value::Choice(scheduler)), ("class", Value::List(classes))]
    };
    let one_of_each = [(
        "class",
        Value::List(alloc::vec![
            class("gold", &[traffic(&[0])], quick_red()),
            class("silver", &[traffic(&[1])], queue("droptail", core::slice::from_ref(&limit))),
            class("rest", &[], queue("codel", &[limit.clone(), ("target", Value::Span(Span::us(200)))])),
        ]),
    )];
    let by_port = port(
        "wrr",
        alloc::vec![
            class(
                "odd",
                &[("port", rest), number(3)],
                Value::Discipline { kind: "policer", settings: policed(quick_red(), None) }
            ),
            class("even", &[number(2)], queue("blue", core::slice::from_ref(&limit))),
        ],
    );
    let by_dscp = port(
        "strict",
        alloc::vec![
            class("first", &[dscp(24)], queue("classes", &by_port)),
            class("worst", &[dscp(8)], queue("redpd", core::slice::from_ref(&limit))),
            class("rest", &[], queue("fred", core::slice::from_ref(&limit))),
        ],
    );
    let remarked = policed(queue("classes", &by_dscp), Some(8));
    let outer = port(
        "drr",
        alloc::vec![
            class(
                "a",
                &[traffic(&[0, 1]), number(2)],
                Value::Discipline { kind: "policer", settings: remarked }
            ),
            class("b", &[], queue("classes", &by_port)),
        ],
    );
    let all = [
        ("", &one_of_each[..]),
        ("by port, wrr", &by_port[..]),
        ("by dscp, strict, one level inside", &by_dscp[..]),
        ("three levels", &outer[..]),
    ];
    all.into_iter().map(|(label, values)| (label, resolve::given(values))).collect()
}

/// Returns the settings of a policer with a rate that about half of a script's packets exceed. The excess
/// packets are re-marked if a code point is given.
pub(super) fn policed(queue: Value, remarked: Option<u64>) -> Settings {
    let burst = Value::Size(Size::Bytes(Bytes::new(20_000)));
    let mut settings =
        resolve::given(&[("rate", Value::Rate(Rate::mbit(8))), ("burst", burst), ("queue", queue)]);
    if let Some(dscp) = remarked {
        settings.set("exceed", Value::Choice("remark"), Origin::Given);
        settings.set("dscp", Value::Integer(dscp), Origin::Given);
    }
    settings
}

/// Returns a RED queue that reacts within a few hundred packets.
pub(super) fn quick_red() -> Value {
    let size = |n| Value::Size(Size::Packets(Packets::new(n)));
    let values = [
        resolve::SAMPLE_LIMIT,
        ("min_th", size(2)),
        ("max_th", size(8)),
        ("w_q", Value::Number(0.2)),
        ("ecn", Value::Flag(true)),
    ];
    Value::Discipline { kind: "red", settings: resolve::given(&values) }
}

/// Returns the resolved form of the queue that `table` contains.
pub(super) fn own_queue(table: &Settings, link: &LinkContext, find: Find) -> Result<Value, ParamError> {
    let queue = table
        .discipline("queue")?
        .ok_or_else(|| ParamError::new("queue", format!("`queue` is missing; write {A_QUEUE}")))?;
    resolve_inner(queue, link, find)
}

/// Resolves a queue inside another discipline.
fn resolve_inner(
    (kind, given): (&str, &Settings),
    link: &LinkContext,
    find: Find,
) -> Result<Value, ParamError> {
    let info =
        find(kind).ok_or_else(|| ParamError::new("kind", format!("there is no discipline called `{kind}`")));
    let inner = info.and_then(|info| info.resolve(given, link)).map_err(|e| e.under("queue", None))?;
    Ok(inner.into_value())
}

pub(super) const A_QUEUE: &str = "a discipline such as { kind = \"droptail\", limit = \"100p\" }";

pub(super) fn needs(all: &Settings, name: &'static str, what: &str) -> Result<(), ParamError> {
    match all.get(name) {
        Some(_) => Ok(()),
        None => Err(ParamError::new(name, format!("`{name}` is missing; write {what}"))),
    }
}

/// Replaces a value but keeps its origin.
pub(super) fn replace(all: &mut Settings, name: &'static str, value: Value) {
    let origin = all.iter().find(|s| s.name == name).map_or(Origin::Given, |s| s.origin.clone());
    all.set(name, value, origin);
}

/// Resolves the classes with their weights and queues, and refuses contradictory settings.
pub(crate) fn derive_classes(all: &mut Settings, link: &LinkContext, find: Find) -> Result<(), ParamError> {
    if !matches!(all.get("limit"), None | Some(Value::Nothing)) {
        resolve::absolute_size(all, resolve::Common::limit(), link)?;
        resolve::check_buffer(all, link.mean_packet)?;
    }
    needs(all, "class", "at least one table with a `name` and a `queue`")?;
    let classes: Vec<Settings> =
        all.tables("class")?.into_iter().map(|table| table.completed(CLASS)).collect();
    let names = names(&classes)?;
    matches(&classes, &names)?;
    let classes = weights(classes, &names, Order::read(all, "scheduler")?)?;
    let shares = shares(&classes);
    let thresholds = thresholds(all, &classes, &names)?;
    let mut resolved = Vec::new();
    for (i, mut class) in classes.into_iter().enumerate() {
        let link = LinkContext { rate: share_of(link.rate, shares[i]), ..*link };
        if class.is_auto("queue") {
            let mut common = all.discipline("queue")?.ok_or_else(|| {
                let message = format!(
                    "class `{}` has no `queue`, and the port has no common one; write {A_QUEUE}",
                    names[i]
                );
                ParamError::new("queue", message).under("class", Some(i))
            })?;
            let with_thresholds =
                thresholds.iter().find(|(class, _)| *class == i).map(|(_, t)| over(common, t, find));
            let with_thresholds = with_thresholds.transpose()?;
            if let Some(settings) = &with_thresholds {
                common.1 = settings;
            }
            let queue = resolve_inner(common, &link, find)?;
            class.set("queue", queue, Origin::Derived("the port's `queue`".into()));
        } else {
            let queue = own_queue(&class, &link, find).map_err(|e| e.under("class", Some(i)))?;
            replace(&mut class, "queue", queue);
        }
        resolved.push(Value::Table(class));
    }
    replace(all, "class", Value::List(resolved));
    Ok(())
}

/// Returns the classes' names, which must differ.
fn names(classes: &[Settings]) -> Result<Vec<String>, ParamError> {
    if !(1..=MOST_CLASSES).contains(&classes.len()) {
        let message = format!("there are {} classes; write 1 to {MOST_CLASSES}", classes.len());
        return Err(ParamError::new("class", message));
    }
    let mut names: Vec<String> = Vec::new();
    for (i, class) in classes.iter().enumerate() {
        let wrong = |message: String| Err(ParamError::new("name", message).under("class", Some(i)));
        let Ok(name) = class.text("name") else { return wrong("`name` is missing; write a string".into()) };
        if name.is_empty() || name.contains(['/', '*']) {
            return wrong(format!("`{name}` is not a name for a class; write a string without `/` or `*`"));
        }
        if names.contains(&name) {
            return wrong(format!("two classes are called `{name}`"));
        }
        names.push(name);
    }
    Ok(names)
}

const MATCHES: [&str; 3] = ["traffic", "dscp", "port"];

/// Checks that each packet has one class: all classes use the same field, no value occurs twice,
/// and at most one class takes the rest.
fn matches(classes: &[Settings], names: &[String]) -> Result<(), ParamError> {
    let mut by: Option<(&'static str, usize)> = None;
    let mut rest: Option<usize> = None;
    let mut seen: Vec<(&Value, usize)> = Vec::new();
    for (i, class) in classes.iter().enumerate() {
        let wrong = |name, message: String| Err(ParamError::new(name, message).under("class", Some(i)));
        let written: Vec<_> =
            MATCHES.into_iter().filter(|name| class.get(name) != Some(&Value::Nothing)).collect();
        match (&written[..], by) {
            ([], _) => {
                if let Some(other) = rest.replace(i) {
                    let message = format!(
                        "classes `{}` and `{}` both take what no other class takes; write `traffic`, `dscp` or `port` for one of them",
                        names[other], names[i]
                    );
                    return wrong("name", message);
                }
            }
            ([name], None) => by = Some((name, i)),
            ([name], Some((other, first))) if *name != other => {
                let message = format!(
                    "class `{}` matches by {name} and class `{}` by {other}: two classifiers for one packet; write only one of them",
                    names[i], names[first]
                );
                return wrong(name, message);
            }
            ([_], Some(_)) => {}
            ([one, other, ..], _) => {
                let message = format!(
                    "class `{}` matches by {one} and by {other}: two classifiers for one packet; write only one of them",
                    names[i]
                );
                return wrong(other, message);
            }
        }
        for name in written {
            for value in class.list(name)? {
                if let Some((_, other)) = seen.iter().find(|(of, _)| *of == value) {
                    let message = format!(
                        "{name} `{value}` already belongs to class `{}`; a packet has one class",
                        names[*other]
                    );
                    return wrong(name, message);
                }
                seen.push((value, i));
            }
        }
    }
    match (by, rest) {
        (Some((by @ ("dscp" | "port"), first)), None) => {
            let message = format!(
                "no class takes packets with any other {by}; add a class without `{by}` for the rest"
            );
            Err(ParamError::new(by, message).under("class", Some(first)))
        }
        _ => Ok(()),
    }
}

/// Sets the weight of each class: none with `strict`, and 1 by default with `wrr` and `drr`.
fn weights(mut classes: Vec<Settings>, names: &[String], order: Order) -> Result<Vec<Settings>, ParamError> {
    for (i, class) in classes.iter_mut().enumerate() {
        match (order, class.get("weight")) {
            (Order::Strict, None | Some(Value::Auto | Value::Nothing)) => {
                class.set("weight", Value::Nothing, Origin::Derived("scheduler `strict` has none".into()));
            }
            (Order::Strict, Some(weight)) => {
                let message = format!(
                    "weight `{weight}` of class `{}` has no meaning with scheduler `strict`, which follows \
                     the order of the classes; leave it out, or write scheduler `wrr` or `drr`",
                    names[i]
                );
                return Err(ParamError::new("weight", message).under("class", Some(i)));
            }
            (Order::Wrr | Order::Drr, Some(Value::Auto)) => {
                class.set("weight", Value::Integer(1), Origin::Derived("1 unless given".into()));
            }
            (Order::Wrr | Order::Drr, _) => {}
        }
    }
    Ok(classes)
}

/// Returns the share of the link that each class is guaranteed.
fn shares<S: Borrow<Settings>>(classes: &[S]) -> Vec<[u64; 2]> {
    let weight = |class: &S| class.borrow().integer("weight").unwrap_or(0);
    let all: u64 = classes.iter().map(weight).sum();
    classes.iter().map(|class| if all == 0 { [1, 1] } else { [weight(class), all] }).collect()
}

/// Returns the thresholds that are given, each with its class.
fn thresholds<'a>(
    all: &'a Settings,
    classes: &[Settings],
    names: &[String],
) -> Result<Vec<(usize, &'a Settings)>, ParamError> {
    let mut found: Vec<(usize, &Settings)> = Vec::new();
    for (i, table) in all.tables("thresholds")?.into_iter().enumerate() {
        let wrong = |message: String| Err(ParamError::new("class", message).under("thresholds", Some(i)));
        let Ok(name) = table.text("class") else { return wrong("`class` is missing; write its name".into()) };
        let Some(class) = names.iter().position(|n| *n == name) else {
            return wrong(format!("there is no class `{name}`; the classes are {}", names.join(", ")));
        };
        if found.iter().any(|(other, _)| *other == class) {
            return wrong(format!("class `{name}` already has thresholds; write all of them in one table"));
        }
        if classes[class].is_given("queue") {
            return wrong(format!("class `{name}` has a `queue` of its own; write its thresholds there"));
        }
        found.push((class, table));
    }
    Ok(found)
}

/// Returns a copy of the common queue's settings in which the thresholds of a class replace those
/// of the queue.
fn over(
    (kind, common): (&str, &Settings),
    thresholds: &Settings,
    find: Find,
) -> Result<Settings, ParamError> {
    let mut settings = common.clone();
    let params = find(kind).map_or(&[][..], |info| info.params);
    for s in thresholds.iter().filter(|s| s.name != "class" && s.value != Value::Nothing) {
        if !params.iter().any(|p| p.name == s.name) {
            let message = format!(
                "`{kind}`, the port's common queue, has no `{}`; remove it from `thresholds`",
                s.name
            );
            return Err(ParamError::new("thresholds", message));
        }
        settings.set(s.name, s.value.clone(), s.origin.clone());
    }
    Ok(settings)
}

/// Builds a port with classes from these parameters; `build` makes the queue of each class.
pub(crate) fn build_classes<P: Packet, Q: Qdisc<P>>(
    s: &Effective,
    draws: Stream,
    build: BuildInner<Q>,
) -> Result<Classes<P, Q>, ParamError> {
    let tables = s.tables("class")?;
    let mut classes = Vec::new();
    for (table, share) in tables.iter().zip(shares(&tables)) {
        let name = table.text("name")?;
        let link = LinkContext { rate: share_of(s.link().rate, share), ..*s.link() };
        // The stream is named after the class, so an additional class leaves the draws of the
        // others unchanged.
        let queue = build(&s.inner(table, link)?, Stream::new(draws.at(0), &name))?;
        classes.push(ClassQueue { name, queue, share });
    }
    let classifier = classifier(&tables)?;
    let weight = |table: &Settings| table.integer("weight");
    let scheduler = match Order::read(s, "scheduler")? {
        Order::Strict => Scheduler::Strict,
        Order::Wrr => {
            let weights: Result<Vec<_>, _> = tables.iter().copied().map(weight).collect();
            Scheduler::WeightedRoundRobin(RoundRobin::new(weights?))
        }
        Order::Drr => {
            let quantum: Bytes = resolve::bytes(s, "quantum")?;
            let quanta: Result<Vec<_>, _> =
                tables.iter().map(|table| weight(table).map(|w| w.saturating_mul(quantum.get()))).collect();
            Scheduler::DeficitRoundRobin(RoundRobin::new(quanta?))
        }
    };
    let limit = match s.get("limit") {
        None | Some(Value::Nothing) => None,
        Some(_) => Some(resolve::limit(s)?),
    };
    Ok(Classes::new(classes, classifier, scheduler, limit))
}

/// Returns the classifier, and the class of the packets that match none of its values: the class
/// that names no value or, if every class names one, the last.
fn classifier(tables: &[&Settings]) -> Result<(Classifier, u16), ParamError> {
    let last = tables.len() - 1;
    let names_none = |table: &Settings, by| table.get(by) == Some(&Value::Nothing);
    let by = MATCHES.into_iter().find(|by| !tables.iter().all(|t| names_none(t, by)));
    let rest = by.and_then(|by| tables.iter().position(|t| names_none(t, by))).unwrap_or(last) as u16;
    let mut pairs: Vec<(usize, u16)> = Vec::new();
    for (i, table) in tables.iter().enumerate() {
        for value in by.map_or(Ok(&[][..]), |by| table.list(by))? {
            match value {
                Value::Integer(number) => pairs.push((*number as usize, i as u16)),
                named => pairs.extend(named.traffic_classes().iter().map(|number| (*number, i as u16))),
            }
        }
    }
    let direct = |pairs: &[(usize, u16)]| {
        let mut classes = alloc::vec![rest; pairs.iter().map(|(key, _)| key + 1).max().unwrap_or(0)];
        pairs.iter().for_each(|(key, class)| classes[*key] = *class);
        classes
    };
    let classifier = match by {
        Some("dscp") => Classifier::Dscp(direct(&pairs)),
        // In a scenario, each traffic class uses one port, so classes that name ports are matched
        // by traffic class: see the last arm.
        Some("port") if !tables.iter().any(|t| matches!(t.list("port"), Ok([Value::Port { .. }, ..]))) => {
            pairs.sort_unstable();
            Classifier::Port(pairs.into_iter().map(|(port, class)| (port as u16, class)).collect())
        }
        _ => Classifier::TrafficClass(direct(&pairs)),
    };
    Ok((classifier, rest))
}
