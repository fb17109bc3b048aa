//! The parameters of a tree of classes, and their conversion to queues.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use aqmlab_params::{Kind, ParamError, Row, Settings, Value, params};
use aqmlab_random::Stream;
use aqmlab_units::{Bytes, Rate};

use super::htb::{ClassRates, Htb, HtbRules, Leaf, bucket};
use super::inner::{A_QUEUE, BuildInner, Inner, RFC2475, needs, quick_red, replace, resolve_inner};
use super::selectors::{Selector, classifier, matches, names, wrong_class};
use super::table::{names as preset_names, presets, tc, tc_bytes};
use super::tbf::Shaping;
use super::{ClassQueue, Classifier};
use crate::info::{Catalogue, Decides, Derive, Effective, Info, Maturity, Preset};
use crate::law::{Arithmetic, Cells, HTB_LEVELS, HtbClass, HtbLaw, TokenBucket};
use crate::{LinkContext, Packet, Qdisc, resolve};

/// The entry of the tree in the catalogue.
pub(crate) const HTB_INFO: Info = Info {
    name: "htb",
    title: "Hierarchical token buckets",
    summary: "a tree of classes with rates and ceilings that borrow from their parents, and a queue per leaf",
    version: 1,
    applies: &[],
    maturity: Maturity::ReferenceChecked,
    decides: Decides::Both,
    params: Parameters::TABLE,
    presets: PRESETS,
    derive: Derive::Containing(derive),
    samples,
};

const TC: &str = "tc-htb(8)";

params! {
    struct Parameters {
        preset: &'static str = presets(const { &preset_names::<2>(PRESETS) }),
        /// the queue for each leaf that has no `queue` of its own
        queue: Option<Inner> = Row::of(Kind::Discipline).optional("each leaf has its own").source(TC),
        /// the classes, in the order in which those of the same priority and parent take turns
        class: Vec<Settings> = Row::of(Kind::List(&Kind::Table(Class::TABLE))).source(TC),
        /// a leaf's automatic quantum is its rate in bytes per second divided by this number
        r2q: u64 = Row::integer(1, 1_000_000).default(10).aliases(&[tc("r2q")]).source(TC),
        header: u64 = Shaping::header(),
        overhead: u64 = Shaping::overhead(),
        mpu: u64 = Shaping::mpu(),
        framing: Cells = Shaping::framing(),
        /// `exact`, or `linux`: as in tbf, and buckets whose depth tc rounds down to microseconds and then to 64 ns
        arithmetic: Arithmetic = Shaping::arithmetic(),
        asks_empty: bool = Shaping::asks_empty(),
    }
}

params! {
    /// A class.
    struct Class {
        name: String = Selector::name(),
        /// the class from which it borrows
        parent: Option<String> = Row::of(Kind::Text).optional("it is at the root, and never borrows").source(TC),
        traffic: Option<Vec<Value>> = Selector::traffic(),
        dscp: Option<Vec<Value>> = Selector::dscp(),
        port: Option<Vec<Value>> = Selector::port(),
        /// the rate that it has without borrowing
        rate: Rate = Row::rate(Rate::kbit(1), Rate::gbit(1000)).aliases(&[tc("rate")]).source(TC),
        /// the rate that it never exceeds
        ceil: Rate = Row::rate(Rate::kbit(1), Rate::gbit(1000)).auto("rate").aliases(&[tc("ceil")]).source(TC),
        /// depth of the bucket that rate fills
        burst: Bytes = Row::bytes(1, 1_000_000_000).default(Bytes::new(1600)).aliases(&[tc_bytes("burst")])
            .source("tc with high-resolution timers"),
        /// depth of the bucket that ceil fills
        cburst: Bytes = Row::bytes(1, 1_000_000_000).default(Bytes::new(1600)).aliases(&[tc_bytes("cburst")])
            .source("tc with high-resolution timers"),
        /// leaves: those with the lowest number send first, and are the first that borrow
        prio: Option<u64> = Row::integer(0, 7).optional("").auto("0; none for a class with children")
            .aliases(&[tc("prio")]).source(TC),
        /// leaves: bytes per turn among the leaves of the same priority
        quantum: Option<Bytes> = Row::bytes(1, 1_000_000_000).optional("")
            .auto("rate / r2q, at least 1000 and at most 200000; none for a class with children")
            .aliases(&[tc_bytes("quantum")]).source("Linux"),
        /// leaves: the queue, any discipline; automatic parameters use the class's rate
        queue: Option<Inner> = Row::of(Kind::Discipline).optional("")
            .auto("the tree's `queue`; none for a class with children").source(RFC2475),
    }
}

const PRESETS: &[Preset] = &[
    Preset { name: "exact", title: "the algorithm, without rounding", values: &[] },
    Preset {
        name: "linux",
        title: "Linux's htb on Ethernet",
        values: &[
            Parameters::header().is(14),
            Parameters::arithmetic().is("linux"),
            Parameters::asks_empty().is(false),
        ],
    },
];

/// Returns a tree of three levels, and one with another tree inside.
fn samples() -> Vec<(&'static str, Settings)> {
    let class = |name: &str, parent: &str, rate: u64, ceil: u64, more: &[(&'static str, Value)]| {
        let own = [
            Class::name().pair(name.into()),
            Class::parent().pair(Some(parent.into()).filter(|parent: &String| !parent.is_empty())),
            Class::rate().is(Rate::kbit(rate)),
            Class::ceil().is(Rate::kbit(ceil)),
        ];
        resolve::given(&[&own, more].concat())
    };
    let traffic = |number| {
        let value = Value::TrafficClass { name: format!("class{number}"), number };
        Class::traffic().pair(Some(alloc::vec![value]))
    };
    let leaf = |queue: Inner| Class::queue().pair(Some(queue));
    let prio = Class::prio().pair(Some(1));
    let three = alloc::vec![
        class("all", "", 8000, 8000, &[]),
        class("left", "all", 3000, 8000, &[]),
        class("a", "left", 1000, 4000, &[traffic(0), leaf(quick_red())]),
        class("b", "left", 2000, 8000, &[traffic(1), leaf(quick_red()), prio]),
        class("rest", "all", 5000, 6000, &[leaf(quick_red())]),
    ];
    let three = [Parameters::class().pair(three)];
    let inside = ("htb", resolve::given(&three));
    let two = alloc::vec![
        class("first", "", 3000, 3000, &[traffic(0), leaf(inside)]),
        class("second", "", 4000, 5000, &[leaf(quick_red())]),
    ];
    let two = [Parameters::class().pair(two)];
    alloc::vec![("", resolve::given(&three)), ("with a tree inside", resolve::given(&two))]
}

/// Resolves the classes with their queues, and refuses what is no tree.
fn derive(all: &mut Settings, link: &LinkContext, catalogue: &Catalogue) -> Result<(), ParamError> {
    needs(all, Parameters::class(), "at least one table with a `name`, a `rate` and a `queue`")?;
    let p = Parameters::read(all)?;
    let mut classes: Vec<Settings> = p.class.iter().map(|table| table.completed(Class::TABLE)).collect();
    let names = names(&classes)?;
    let parents = parents(&classes, &names)?;
    let is_leaf = |i: usize| !parents.contains(&Some(i));
    matches(&mut classes.iter().enumerate().filter(|(i, _)| is_leaf(*i)), &names)?;
    for (i, class) in classes.iter_mut().enumerate() {
        let at_class = |e: ParamError| e.under(Parameters::class().name(), Some(i));
        needs(class, Class::rate(), "a rate such as \"2Mbit\"").map_err(at_class)?;
        Class::ceil().derive_if_auto(class, |class| Class::rate().read(class))?;
        let (rate, ceil) = (Class::rate().read(class)?, Class::ceil().read(class)?);
        if ceil < rate {
            let message = format!("ceil `{ceil}` is below rate `{rate}` of class `{}`", names[i]);
            return Err(at_class(Class::ceil().error(message)));
        }
        if !is_leaf(i) {
            inner_class(class, &names[i]).map_err(at_class)?;
            continue;
        }
        if Class::prio().is_auto(class) {
            Class::prio().derive(class, Some(0), "0 unless given");
        }
        if Class::quantum().is_auto(class) {
            let quantum = (rate.as_bps() / 8 / p.r2q).clamp(1000, 200_000);
            let rule = "rate / r2q, at least 1000 and at most 200000";
            Class::quantum().derive(class, Some(Bytes::new(quantum)), rule);
        }
        let link = LinkContext { rate: rate.min(link.rate), ..*link };
        let row = Class::queue();
        if row.is_auto(class) {
            let common = p.queue.clone().ok_or_else(|| {
                let message = format!(
                    "leaf `{}` has no `queue`, and the tree has no common one; write {A_QUEUE}",
                    names[i]
                );
                at_class(row.error(message))
            })?;
            row.derive(class, Some(resolve_inner(common, &link, catalogue)?), "the tree's `queue`");
        } else if let Some(given) = row.read(class)? {
            let queue = resolve_inner(given, &link, catalogue).map_err(at_class)?;
            replace(class, row, Some(queue));
        }
    }
    replace(all, Parameters::class(), classes);
    Ok(())
}

/// Refuses what only leaves have, and marks it as absent.
fn inner_class(class: &mut Settings, name: &str) -> Result<(), ParamError> {
    let selectors = [Class::traffic(), Class::dscp(), Class::port()].map(|row| row.name());
    let of_leaves = [Class::prio().name(), Class::quantum().name(), Class::queue().name()];
    for key in selectors.into_iter().chain(of_leaves) {
        if class.is_given(key) {
            let message = format!(
                "class `{name}` has children, so no packets wait in it; write `{key}` for its leaves"
            );
            return Err(ParamError::new(key, message));
        }
    }
    let rule = "it has children";
    Class::prio().derive(class, None, rule);
    Class::quantum().derive(class, None, rule);
    Class::queue().derive(class, None, rule);
    Ok(())
}

/// Returns the parent of each class.
fn parents(classes: &[Settings], names: &[String]) -> Result<Vec<Option<usize>>, ParamError> {
    let wrong = |i: usize, message: String| Err(wrong_class(i, Class::parent().name(), message));
    let mut parents = Vec::new();
    for (i, class) in classes.iter().enumerate() {
        let parent = Class::parent().read(class)?;
        let place = parent.as_ref().map(|parent| names.iter().position(|name| name == parent));
        match (parent, place) {
            (Some(parent), Some(None)) => {
                let others: Vec<&str> =
                    names.iter().filter(|name| **name != names[i]).map(String::as_str).collect();
                return wrong(
                    i,
                    format!("there is no class `{parent}`; the other classes are {}", others.join(", ")),
                );
            }
            (_, place) => parents.push(place.flatten()),
        }
    }
    for i in 0..classes.len() {
        let mut line = alloc::vec![names[i].as_str()];
        let mut above = parents[i];
        while let Some(parent) = above {
            line.push(&names[parent]);
            if parent == i {
                return wrong(i, format!("class `{}` is its own ancestor: {}", names[i], line.join(" in ")));
            }
            if line.len() > HTB_LEVELS {
                // Another class of the line may be its own ancestor.
                let in_cycle =
                    line[1..].iter().filter(|name| *name == line.last().unwrap_or(&"")).count() > 1;
                if in_cycle {
                    break;
                }
                let message = format!("the tree has more than {HTB_LEVELS} levels: {}", line.join(" in "));
                return wrong(i, message);
            }
            above = parents[parent];
        }
    }
    Ok(parents)
}

/// Builds a tree from these parameters; `build` makes the queue of each leaf.
pub(crate) fn build_htb<P: Packet, Q: Qdisc<P>>(
    s: &Effective,
    draws: Stream,
    build: BuildInner<'_, Q>,
) -> Result<Htb<P, Q>, ParamError> {
    let p = Parameters::read(s)?;
    let full = |of: (Rate, Bytes)| {
        let (tariff, depth) = bucket(p.arithmetic, of);
        TokenBucket::with_depth(tariff, depth)
    };
    let tables = p.class.iter().map(Class::read).collect::<Result<Vec<_>, _>>()?;
    let number = |name: &String| tables.iter().position(|class| class.name == *name).map(|i| i as u16);
    let classes: Vec<HtbClass> = tables
        .iter()
        .map(|class| HtbClass {
            parent: class.parent.as_ref().and_then(number),
            rate: full((class.rate, class.burst)),
            ceil: full((class.ceil, class.cburst)),
            prio: class.prio.unwrap_or(0) as u8,
            quantum: class.quantum.map_or(0, |quantum| quantum.get() as i64),
        })
        .collect();
    let rates =
        |class: &Class| ClassRates { rate: (class.rate, class.burst), ceil: (class.ceil, class.cburst) };
    let rates = tables.iter().map(rates).collect();
    let (mut queues, mut leaves, mut selectors) = (Vec::new(), Vec::new(), Vec::new());
    for (class, (table, settings)) in tables.into_iter().zip(&p.class).enumerate() {
        let Some(queue) = table.queue else { continue };
        let link = LinkContext { rate: table.rate.min(s.link().rate), ..*s.link() };
        // The stream is named after the class, so an additional class leaves the draws of the others unchanged.
        let queue = build(&Effective::inner(queue, link), Stream::new(draws.at(0), &table.name))?;
        queues.push(ClassQueue { name: table.name, queue, share: [1, 1] });
        leaves.push(Leaf { class, rate: table.rate });
        selectors.push(Selector::read(settings)?);
    }
    let by: (Classifier, u16) = classifier(&selectors);
    let rules = HtbRules {
        header: Bytes::new(p.header),
        framing: Shaping::framing_of(p.overhead, p.mpu, p.framing),
        asks_empty: p.asks_empty,
        arithmetic: p.arithmetic,
        rates,
        root: classes.iter().position(|class| class.parent.is_none()).unwrap_or(0),
    };
    Ok(Htb::new(HtbLaw::new(&classes), rules, (queues, leaves), by))
}
