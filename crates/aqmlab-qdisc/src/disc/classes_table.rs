//! The parameters of a port with classes, and their conversion to queues.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use aqmlab_params::{Kind, ParamError, Row, Settings, Value, params, words};
use aqmlab_random::Stream;
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Span};

use super::classes::share_of;
use super::codel;
use super::inner::{A_QUEUE, BuildInner, Inner, RFC2475, needs, quick_red, replace, resolve_inner};
use super::policer::policed;
use super::selectors::{Selector, classifier, matches, names, wrong_class};
use super::{ClassQueue, Classes, Scheduler};
use crate::info::{Catalogue, Decides, Derive, Effective, Info, Maturity};
use crate::law::RoundRobin;
use crate::resolve::{Common, LimitRule};
use crate::{LinkContext, Packet, Qdisc, resolve};

words! {
    /// The order in which classes send.
    enum Order { Strict = "strict", Wrr = "wrr", Drr = "drr" }
}

/// The entry of the port with classes in the catalogue.
pub(crate) const CLASSES_INFO: Info = Info {
    name: "classes",
    title: "Port with classes",
    summary: "a classifier, one queue with its own discipline per class, and a scheduler",
    version: 2,
    applies: &[],
    maturity: Maturity::Experimental,
    decides: Decides::Both,
    params: Parameters::TABLE,
    presets: &[],
    derive: Derive::Containing(derive),
    samples,
};

params! {
    struct Parameters {
        /// the order in which classes send: with `strict`, always the first class that has something to send;
        /// with `wrr`, each class in turn, as many packets as its weight; with `drr`, each class in turn, as
        /// many bytes as its weight times quantum
        scheduler: Order = Row::choice("drr")
            .source("drr: Shreedhar and Varghese 1996; wrr: Katevenis, Sidiropoulos, Courcoubetis 1991"),
        /// scheduler `drr`: bytes that a class of weight 1 may send per round
        quantum: Bytes = Row::bytes(1, 1_000_000).default(Bytes::new(1500))
            .source("Shreedhar and Varghese 1996, section 4: at least the largest packet, for constant work per packet"),
        /// the queue for each class that has no `queue` of its own
        queue: Option<Inner> = Row::of(Kind::Discipline).optional("each class has its own").source(RFC2475),
        /// thresholds for single classes, which replace those of `queue` (weighted RED)
        thresholds: Option<Vec<Settings>> = Row::of(Kind::List(&Kind::Table(Thresholds::TABLE)))
            .optional("those of `queue` apply to all")
            .source(RFC2475),
        /// buffer that all classes share, in addition to the limits of their queues: an arrival of any class is
        /// refused before it reaches its queue if the shared buffer has no room
        limit: Option<Size> = Common::limit()
            .optional("the classes have their own limits and share none")
            .source("ours"),
        limit_rule: LimitRule = Common::limit_rule(),
        /// the classes; for `strict`, the one with the highest priority first
        class: Vec<Settings> = Row::of(Kind::List(&Kind::Table(Class::TABLE))).source(RFC2475),
    }
}

params! {
    /// A class.
    struct Class {
        name: String = Selector::name(),
        traffic: Option<Vec<Value>> = Selector::traffic(),
        dscp: Option<Vec<Value>> = Selector::dscp(),
        port: Option<Vec<Value>> = Selector::port(),
        /// its share of the link relative to the other classes that have something to send
        weight: Option<u64> = Row::integer(1, 1_000_000).optional("")
            .auto("1; none with scheduler `strict`")
            .source("Shreedhar and Varghese 1996, section 3"),
        /// its queue: any discipline, including another port with classes; with `wrr` and `drr`, automatic
        /// parameters use the class's share of the link's rate
        queue: Inner = Row::of(Kind::Discipline).auto("the port's `queue`").source(RFC2475),
    }
}

params! {
    /// The thresholds of a class that differ from those of the common queue.
    struct Thresholds {
        /// the class
        class: String = Row::of(Kind::Text).source(RFC2475),
        /// its `min_th`
        min_th: Option<Size> = Row::size().optional("as in `queue`").source(RFC2475),
        /// its `max_th`
        max_th: Option<Size> = Row::size().optional("as in `queue`").source(RFC2475),
        /// its `max_p`
        max_p: Option<f64> = Row::above(0.0, 1.0).optional("as in `queue`").source(RFC2475),
    }
}

/// Returns a port with classes for each kind of queue, and nested ports with classes for each classifying
/// field and each scheduler, with and without policers.
fn samples() -> Vec<(&'static str, Settings)> {
    let limit = &[resolve::SAMPLE_LIMIT];
    let class = |name: &str, values: &[(&'static str, Value)], queue: Inner| {
        let own = [Class::name().pair(name.into()), Class::queue().pair(queue)];
        resolve::given(&[values, &own].concat())
    };
    let queue = |kind: &'static str, values: &[_]| (kind, resolve::given(values));
    let weight = |n| Class::weight().pair(Some(n));
    let traffic = |numbers: &[usize]| {
        let one = |&number: &usize| Value::TrafficClass { name: format!("class{number}"), number };
        Class::traffic().pair(Some(numbers.iter().map(one).collect()))
    };
    let dscp = |n| Class::dscp().pair(Some(alloc::vec![Value::Integer(n)]));
    let port =
        |scheduler, classes| [Parameters::scheduler().is(scheduler), Parameters::class().pair(classes)];
    let target = codel::Parameters::target().is(Span::us(200));
    let one_of_each = [Parameters::class().pair(alloc::vec![
        class("gold", &[traffic(&[0])], quick_red()),
        class("silver", &[traffic(&[1])], queue("droptail", limit)),
        class("rest", &[], queue("codel", &[resolve::SAMPLE_LIMIT, target])),
    ])];
    let odd = Class::port().pair(Some(alloc::vec![Value::Integer(81)]));
    let by_port = port(
        "wrr",
        alloc::vec![
            class("odd", &[odd, weight(3)], policed(quick_red(), None)),
            class("even", &[weight(2)], queue("blue", limit)),
        ],
    );
    let by_dscp = port(
        "strict",
        alloc::vec![
            class("first", &[dscp(24)], queue("classes", &by_port)),
            class("worst", &[dscp(8)], queue("redpd", limit)),
            class("rest", &[], queue("fred", limit)),
        ],
    );
    let remarked = policed(queue("classes", &by_dscp), Some(8));
    let outer = port(
        "drr",
        alloc::vec![
            class("a", &[traffic(&[0, 1]), weight(2)], remarked),
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

/// Resolves the classes with their weights and queues, and refuses contradictory settings.
fn derive(all: &mut Settings, link: &LinkContext, catalogue: &Catalogue) -> Result<(), ParamError> {
    if Parameters::limit().read(all)?.is_some() {
        resolve::absolute_size(all, Common::limit(), link)?;
        resolve::check_buffer(all, link.mean_packet)?;
    }
    needs(all, Parameters::class(), "at least one table with a `name` and a `queue`")?;
    let p = Parameters::read(all)?;
    let classes: Vec<Settings> = p.class.iter().map(|table| table.completed(Class::TABLE)).collect();
    let names = names(&classes)?;
    matches(&mut classes.iter().enumerate(), &names)?;
    let classes = weights(classes, &names, p.scheduler)?;
    let thresholds = thresholds(p.thresholds.unwrap_or_default(), &classes, &names)?;
    let weight = |class| Class::weight().read(class);
    let shares = shares(&classes.iter().map(weight).collect::<Result<Vec<_>, _>>()?);
    let mut resolved = Vec::new();
    for (i, mut class) in classes.into_iter().enumerate() {
        let link = LinkContext { rate: share_of(link.rate, shares[i]), ..*link };
        let row = Class::queue();
        if row.is_auto(&class) {
            let (kind, common) = p.queue.clone().ok_or_else(|| {
                let message = format!(
                    "class `{}` has no `queue`, and the port has no common one; write {A_QUEUE}",
                    names[i]
                );
                row.error(message).under(Parameters::class().name(), Some(i))
            })?;
            let own = thresholds.iter().find(|(class, _)| *class == i);
            let settings = own.map_or(Ok(common.clone()), |(_, own)| over((kind, common), own, catalogue))?;
            row.derive(&mut class, resolve_inner((kind, settings), &link, catalogue)?, "the port's `queue`");
        } else {
            let queue = resolve_inner(row.read(&class)?, &link, catalogue);
            replace(&mut class, row, queue.map_err(|e| e.under(Parameters::class().name(), Some(i)))?);
        }
        resolved.push(class);
    }
    replace(all, Parameters::class(), resolved);
    Ok(())
}

/// Sets the weight of each class: none with `strict`, and 1 by default with `wrr` and `drr`.
fn weights(mut classes: Vec<Settings>, names: &[String], order: Order) -> Result<Vec<Settings>, ParamError> {
    let weight = Class::weight();
    for (i, class) in classes.iter_mut().enumerate() {
        let given = if weight.is_auto(class) { None } else { Some(weight.read(class)?) };
        match (order, given) {
            (Order::Strict, None | Some(None)) => {
                weight.derive(class, None, "scheduler `strict` has none");
            }
            (Order::Strict, Some(Some(given))) => {
                let message = format!(
                    "weight `{given}` of class `{}` has no meaning with scheduler `strict`, which follows \
                     the order of the classes; leave it out, or write scheduler `wrr` or `drr`",
                    names[i]
                );
                return Err(wrong_class(i, weight.name(), message));
            }
            (Order::Wrr | Order::Drr, None) => weight.derive(class, Some(1), "1 unless given"),
            (Order::Wrr | Order::Drr, Some(_)) => {}
        }
    }
    Ok(classes)
}

/// Returns the share of the link that is guaranteed to each class with these weights.
fn shares(weights: &[Option<u64>]) -> Vec<[u64; 2]> {
    let all: u64 = weights.iter().flatten().sum();
    weights.iter().map(|weight| if all == 0 { [1, 1] } else { [weight.unwrap_or(0), all] }).collect()
}

/// Returns the thresholds that are given, each with its class.
fn thresholds(
    tables: Vec<Settings>,
    classes: &[Settings],
    names: &[String],
) -> Result<Vec<(usize, Settings)>, ParamError> {
    let mut found: Vec<(usize, Settings)> = Vec::new();
    for (i, table) in tables.into_iter().enumerate() {
        let wrong = |message: String| {
            Err(Thresholds::class().error(message).under(Parameters::thresholds().name(), Some(i)))
        };
        let Ok(name) = Thresholds::class().read(&table) else {
            return wrong("`class` is missing; write its name".into());
        };
        let Some(class) = names.iter().position(|n| *n == name) else {
            return wrong(format!("there is no class `{name}`; the classes are {}", names.join(", ")));
        };
        if found.iter().any(|(other, _)| *other == class) {
            return wrong(format!("class `{name}` already has thresholds; write all of them in one table"));
        }
        if classes[class].is_given(Class::queue().name()) {
            return wrong(format!("class `{name}` has a `queue` of its own; write its thresholds there"));
        }
        found.push((class, table));
    }
    Ok(found)
}

/// Returns the common queue's settings, with the thresholds of a class in place of those of the queue.
fn over(
    (kind, mut common): Inner,
    thresholds: &Settings,
    catalogue: &Catalogue,
) -> Result<Settings, ParamError> {
    let params = catalogue.find(kind).map_or(&[][..], |info| info.params);
    let class = Thresholds::class().name();
    for s in thresholds.iter().filter(|s| s.name != class && s.value != Value::Nothing) {
        if !params.iter().any(|p| p.name == s.name) {
            let message = format!(
                "`{kind}`, the port's common queue, has no `{}`; remove it from `thresholds`",
                s.name
            );
            return Err(Parameters::thresholds().error(message));
        }
        common.set(s.name, s.value.clone(), s.origin.clone());
    }
    Ok(common)
}

/// Builds a port with classes from these parameters; `build` makes the queue of each class.
pub(crate) fn build_classes<P: Packet, Q: Qdisc<P>>(
    s: &Effective,
    draws: Stream,
    build: BuildInner<'_, Q>,
) -> Result<Classes<P, Q>, ParamError> {
    let p = Parameters::read(s)?;
    let tables = p.class.iter().map(Class::read).collect::<Result<Vec<_>, _>>()?;
    let classifier = classifier(&p.class.iter().map(Selector::read).collect::<Result<Vec<_>, _>>()?);
    let weights: Vec<Option<u64>> = tables.iter().map(|table| table.weight).collect();
    let mut classes = Vec::new();
    for (Class { name, queue, .. }, share) in tables.into_iter().zip(shares(&weights)) {
        let link = LinkContext { rate: share_of(s.link().rate, share), ..*s.link() };
        // The stream is named after the class, so an additional class leaves the draws of the
        // others unchanged.
        let queue = build(&Effective::inner(queue, link), Stream::new(draws.at(0), &name))?;
        classes.push(ClassQueue { name, queue, share });
    }
    let each = |times: u64| weights.iter().flatten().map(|w| w.saturating_mul(times)).collect::<Vec<_>>();
    let scheduler = match p.scheduler {
        Order::Strict => Scheduler::Strict,
        Order::Wrr => Scheduler::WeightedRoundRobin(RoundRobin::new(each(1))),
        Order::Drr => Scheduler::DeficitRoundRobin(RoundRobin::new(each(p.quantum.get()))),
    };
    let limit = p.limit.map(|_| resolve::limit(s)).transpose()?;
    Ok(Classes::new(classes, classifier, scheduler, limit))
}
