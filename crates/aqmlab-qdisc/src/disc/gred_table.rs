//! The parameters of a FIFO with a RED per class, and their conversion to a queue.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use aqmlab_params::{Kind, Origin, ParamError, Row, Settings, Value, params, words};
use aqmlab_random::Stream;
use aqmlab_units::Bytes;
use aqmlab_units::text::Size;

use super::gred::{AverageOf, Gred, GredClass, GredRules};
use super::inner::{needs, replace};
use super::red_resolve::{derive_red, red_law};
use super::red_table::{Shared, linux_values};
use super::selectors::{Selector, classifier, matches, names as class_names, wrong_class};
use super::table::{LINUX, names, packets, presets, tc, tc_bytes};
use super::words::Region;
use super::{EarlyLaw, RedControl};
use crate::info::{Derive, Effective, Info, Maturity, Preset};
use crate::resolve::{Common, LimitRule};
use crate::{LinkContext, Packet, resolve};

words!(impl AverageOf { Class = "class", All = "all", Priority = "priority" });

/// The queue's entry in the catalogue.
pub(crate) const GRED_INFO: Info = Info {
    name: "gred",
    title: "GRED",
    summary: "generalised RED: one FIFO with thresholds, a limit and an average per class (weighted RED)",
    version: 1,
    applies: &["red"],
    maturity: Maturity::ReferenceChecked,
    decides: RedControl::DECIDES,
    params: Parameters::TABLE,
    presets: PRESETS,
    derive: Derive::Alone(derive),
    samples,
};

const SOURCE: &str = "Linux, sch_gred";
const AS_ALL: &str = "as for all classes";

params! {
    struct Parameters {
        preset: &'static str = presets(const { &names::<2>(PRESETS) }),
        /// buffer that all classes share, in addition to their own limits
        limit: Option<Size> = Common::limit().optional("the classes share none, as in Linux").source("ours"),
        limit_rule: LimitRule = Common::limit_rule(),
        /// what a class compares with its thresholds: `class`, the average of its own packets; `all`, that of all
        /// packets (weighted RED; Linux with `grio` and equal priorities); `priority`, that of its own packets, plus
        /// those of all classes with a better priority that are not idle (Linux's `grio`)
        average: AverageOf = Row::choice("class").source(SOURCE),
        ..Shared {
            max_p, w_rule, gentle, ecn, ecn_region, mark_p, measure, mean_packet, byte_mode, max_packet,
            uniformisation, counting, idle, arithmetic, target,
        },
        /// the classes
        class: Vec<Settings> = Row::of(Kind::List(&Kind::Table(Class::TABLE))).source(SOURCE),
    }
}

params! {
    /// A class.
    struct Class {
        name: String = Selector::name(),
        traffic: Option<Vec<Value>> = Selector::traffic(),
        dscp: Option<Vec<Value>> = Selector::dscp(),
        port: Option<Vec<Value>> = Selector::port(),
        /// average `priority`: its priority; a lower number is better
        priority: Option<u64> = Row::integer(0, 255).optional("")
            .auto("its place among the classes, from 1; none with another average")
            .aliases(&[tc("prio")]).source(SOURCE),
        /// buffer size for the packets that its average counts: its own ones or, with average `all`, all packets
        limit: Size = Shared::limit().aliases(&[tc_bytes("limit")]),
        ..Shared { min_th, max_th },
        max_p: Option<f64> = Shared::max_p().optional(AS_ALL),
        ..Shared { w_q, burst },
        mean_packet: Option<Bytes> = Row::bytes(1, 65_535).optional(AS_ALL).aliases(&[tc_bytes("avpkt")])
            .help("mean packet size").source(SOURCE),
        ecn: Option<bool> = Shared::ecn().optional(AS_ALL),
        ecn_region: Option<Region> = Shared::ecn_region().optional(AS_ALL),
    }
}

const PRESETS: &[Preset] = &[
    Preset { name: "paper", title: "Floyd and Jacobson 1993 for each class", values: &[] },
    Preset { name: LINUX, title: "Linux sch_gred with the defaults of tc", values: linux_values![] },
];

/// Returns three classes with averages of their own, and two with priorities.
fn samples() -> Vec<(&'static str, Settings)> {
    let class = |name: &str, by: (&'static str, Value), low: u64| {
        let own = [
            Class::name().pair(name.into()),
            by,
            Shared::limit().is(packets(30)),
            Shared::min_th().is(packets(low)),
            Shared::max_th().is(packets(3 * low)),
            Shared::w_q().is(0.2),
        ];
        resolve::given(&own)
    };
    let traffic = |number| {
        let value = Value::TrafficClass { name: format!("class{number}"), number };
        Class::traffic().pair(Some(alloc::vec![value]))
    };
    let dscp = |n| Class::dscp().pair(Some(alloc::vec![Value::Integer(n)]));
    let rest = Class::dscp().pair(None);
    let three = [
        Shared::ecn().is(true),
        resolve::SAMPLE_LIMIT,
        Parameters::class().pair(alloc::vec![
            class("gold", traffic(0), 4),
            class("silver", traffic(1), 3),
            class("rest", rest.clone(), 2),
        ]),
    ];
    let two = [
        Parameters::average().is("priority"),
        Parameters::class().pair(alloc::vec![class("first", dscp(24), 4), class("rest", rest, 3)]),
    ];
    alloc::vec![("", resolve::given(&three)), ("with priorities", resolve::given(&two))]
}

/// Returns whether RED has a parameter of this name.
fn is_of_red(name: &str) -> bool {
    Shared::TABLE.iter().any(|param| param.name == name)
}

/// Returns RED's settings for a class: those of the class, and otherwise those for all classes.
fn of_class(all: &Settings, class: &Settings) -> Settings {
    let mut red = Settings::default();
    let common = all.iter().filter(|s| s.name == Parameters::preset().name() || is_of_red(s.name));
    let own = class.iter().filter(|s| is_of_red(s.name) && s.value != Value::Nothing);
    common.chain(own).for_each(|s| red.set(s.name, s.value.clone(), s.origin.clone()));
    red
}

/// Resolves the classes, and refuses contradictory settings.
fn derive(all: &mut Settings, link: &LinkContext) -> Result<(), ParamError> {
    let mean = resolve::mean_packet(all, link)?;
    if Parameters::limit().read(all)?.is_some() {
        resolve::absolute_in_queue_unit(all, Common::limit(), link, Shared::measure().read(all)?, mean)?;
        resolve::check_buffer(all, mean)?;
    }
    needs(all, Parameters::class(), "at least one table with a `name`")?;
    let p = Parameters::read(all)?;
    let mut classes: Vec<Settings> = p.class.iter().map(|table| table.completed(Class::TABLE)).collect();
    let names = class_names(&classes)?;
    matches(&mut classes.iter().enumerate(), &names)?;
    priorities(&mut classes, &names, p.average)?;
    for (i, class) in classes.iter_mut().enumerate() {
        let mut red = of_class(all, class);
        derive_red(&mut red, link).map_err(|e| e.under(Parameters::class().name(), Some(i)))?;
        for param in Class::TABLE.iter().filter(|param| is_of_red(param.name)) {
            let Some(found) = red.iter().find(|s| s.name == param.name) else { continue };
            let common = class.get(param.name).is_none_or(|own| *own == Value::Nothing);
            let origin = if common { Origin::Derived(AS_ALL.into()) } else { found.origin.clone() };
            class.set(param.name, found.value.clone(), origin);
        }
    }
    replace(all, Parameters::class(), classes);
    Ok(())
}

/// Sets the priority of each class: its place unless given, and none unless priorities matter. Refuses equal ones.
fn priorities(classes: &mut [Settings], names: &[String], average: AverageOf) -> Result<(), ParamError> {
    let row = Class::priority();
    let mut found: Vec<u64> = Vec::new();
    for (i, class) in classes.iter_mut().enumerate() {
        let given = if row.is_auto(class) { None } else { row.read(class)? };
        if average != AverageOf::Priority {
            if let Some(given) = given {
                let message = format!(
                    "priority `{given}` of class `{}` has no meaning with average `{}`; leave it out, or write \
                     average `priority`",
                    names[i],
                    average.word()
                );
                return Err(wrong_class(i, row.name(), message));
            }
            row.derive(class, None, "average `priority` alone has them");
            continue;
        }
        let priority = given.unwrap_or(i as u64 + 1);
        if let Some(other) = found.iter().position(|other| *other == priority) {
            let message = format!(
                "classes `{}` and `{}` both have priority `{priority}`, and Linux would average all packets; write \
                 another priority, or average `all`",
                names[other], names[i]
            );
            return Err(wrong_class(i, row.name(), message));
        }
        if given.is_none() {
            row.derive(class, Some(priority), "its place");
        }
        found.push(priority);
    }
    Ok(())
}

/// Builds the queue from these parameters.
pub(crate) fn build_gred<P: Packet>(s: &Effective, draws: Stream) -> Result<Gred<P>, ParamError> {
    let p = Parameters::read(s)?;
    let classes = p.class.iter().map(|table| {
        let (class, red) = (Class::read(table)?, of_class(s, table));
        Ok(GredClass {
            law: red_law(&red, s.link())?,
            limit: resolve::limit(&red)?,
            priority: class.priority.unwrap_or(0),
            ecn: Shared::ecn().read(&red)?,
            mean_packet: Shared::mean_packet().read(&red)?,
            // The stream is named after the class, so an additional class leaves the draws of the others unchanged.
            draws: Stream::new(draws.at(0), &class.name).numbered(),
            name: class.name,
        })
    });
    let classes = classes.collect::<Result<Vec<_>, _>>()?;
    let by = classifier(&p.class.iter().map(Selector::read).collect::<Result<Vec<_>, _>>()?);
    let limit = p.limit.map(|_| resolve::limit(s)).transpose()?;
    Ok(Gred::new(classes, by, GredRules { average: p.average, measure: Shared::measure().read(s)?, limit }))
}
