//! `pages`: users who fetch web pages over several connections at the same time.

use std::sync::Arc;

use aqmlab_params::{Default, Kind, Value};
use aqmlab_traffic::{Device, PagePlan, PageUsers, Population};
use aqmlab_units::{Instant, Span};
use schemars::JsonSchema;
use serde::Serialize;

use super::fields::{CLASS, SHARE, TCP};
use super::kind::{Carries, Draws, Opens, PageFetches, Part, SESSION, TCP_FLOW, Tcp, TrafficKind};
use super::reading::Reading;
use crate::field::{Field, Form, Variant, default, required, ruled};
use crate::language::{COUNT, OBJECTS, ORIGINS, PERIODS, STARTS, TRANSFERS};
use crate::pass::{Pass, Section};

/// TCP connections of users who fetch web pages, with many objects at the same time on each.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Pages {
    /// The pages and the users.
    #[serde(flatten)]
    pub plan: Arc<PagePlan>,
    /// The endpoints' parameters.
    pub tcp: Tcp,
}

pub(super) const PARTS: &[Part] = &[("traffic.pages", PagePlan::VERSION)];

/// Bytes for an object of a page, which is stored twice: in the page, and in the list of transfers.
const OBJECT: u64 = 112;
/// Number of objects that nine out of ten pages do not exceed.
const LARGE_PAGE: u64 = 185;

/// The keys of the shares, in the order of [`PagePlan::shares`].
const SHARES: [&str; 4] = ["scripts", "styles", "fonts", "images"];

/// The properties of a page that are drawn from the tables unless the file gives them.
const OF_TABLES: [&str; 2] = ["weight", "objects"];

/// The devices for which the Web Almanac has crawls.
pub(crate) const DEVICES: &[&str] = &["desktop", "mobile"];

/// How long the connections of a page stay open.
pub(crate) const CONNECTIONS: &[&str] = &["page", "kept"];

const FIELDS: &[Field] = &[
    required("users", Form::One(COUNT), "number of users; each fetches one page after another"),
    required("think", Form::Drawn(&PERIODS), "time from the end of a user's page to the next page"),
    default("start", Form::Drawn(&STARTS), Default::Span(Span::ZERO), "when each user begins its first page"),
    default(
        "device",
        Form::One(Kind::Choice(DEVICES)),
        Default::Choice("desktop"),
        "device whose tables apply: page weight, requests per page and sizes of objects (HTTP Archive, Web Almanac \
         2025, chapter page weight)",
    ),
    ruled(
        "weight",
        Form::Drawn(&TRANSFERS),
        "from the device's table",
        "total bytes of a page's objects, including the document",
    ),
    ruled(
        "objects",
        Form::Drawn(&OBJECTS),
        "from the device's table",
        "objects of a page, including the document, each with its own request",
    ),
    default(
        "correlation",
        Form::One(Kind::Number { min: -1.0, max: 1.0 }),
        Default::Number(0.6),
        "rank correlation (Spearman) between weight and number of objects across pages",
    ),
    default(
        "scripts",
        SHARE,
        Default::Number(0.3),
        "share of scripts among the objects other than the document; objects that are not scripts, style sheets, \
         fonts or images are data",
    ),
    default("styles", SHARE, Default::Number(0.11), "share of style sheets"),
    default("fonts", SHARE, Default::Number(0.05), "share of fonts"),
    default("images", SHARE, Default::Number(0.22), "share of images"),
    default(
        "waves",
        Form::One(Kind::Integer { min: 1, max: 3 }),
        Default::Integer(3),
        "depth of a page; 3: document, then scripts, style sheets and fonts, then images and data; 2: document, \
         then everything else; 1: everything at the same time",
    ),
    default(
        "origins",
        Form::Drawn(&ORIGINS),
        Default::Integer(5),
        "origins of a page; each has a connection, and each object belongs to a random origin",
    ),
    default("request", Form::Drawn(&TRANSFERS), Default::Bytes(500), "bytes of each request"),
    default(
        "server_delay",
        Form::Drawn(&PERIODS),
        Default::Span(Span::ZERO),
        "delay at the server, from the last byte of a request until its response is ready",
    ),
    default(
        "parse",
        Form::Drawn(&PERIODS),
        Default::Span(Span::ZERO),
        "time at the client, from the last byte of a wave to the requests of the next",
    ),
    default(
        "connections",
        Form::One(Kind::Choice(CONNECTIONS)),
        Default::Choice("page"),
        "\"page\": connections close with their page; \"kept\": they stay open for the user's next page",
    ),
    TCP,
];

pub(super) const KIND: Variant = Variant {
    kind: "pages",
    help: "TCP connections of users who fetch web pages typical of 2025: several connections per page, with many \
           requests at a time on each",
    fields: &[CLASS, FIELDS],
};

pub(super) fn read(pass: &mut Pass<'_, '_>, section: &Section<'_>) -> Option<Reading<Pages>> {
    let (users, plan) = (pass.integer(section, "users"), page_plan(pass, section));
    Some(Reading::new(users, move |pass, section| {
        let tcp = pass.tcp(section)?;
        Some(Pages { plan: Arc::new(plan?), tcp })
    }))
}

fn page_plan(pass: &mut Pass<'_, '_>, section: &Section<'_>) -> Option<PagePlan> {
    let device = match pass.value(section, "device") {
        Some(Value::Choice("mobile")) => Some(Device::Mobile),
        Some(_) => Some(Device::Desktop),
        None => None,
    };
    let (shares, correlation) = (shares(pass, section), correlation(pass, section));
    let waves = pass.integer(section, "waves");
    let (weight, objects) = OF_TABLES.map(|key| section.node(key).is_some()).into();
    let (weight, objects) = (
        if weight { pass.drawn(section, "weight").map(Some) } else { Some(None) },
        if objects { pass.drawn(section, "objects").map(Some) } else { Some(None) },
    );
    let (origins, request) = (pass.drawn(section, "origins"), pass.drawn(section, "request"));
    let (server_delay, parse) = (pass.drawn(section, "server_delay"), pass.drawn(section, "parse"));
    let think = pass.drawn(section, "think");
    let connections = pass.value(section, "connections");
    Some(PagePlan {
        device: device?,
        weight: weight?,
        objects: objects?,
        correlation: correlation?,
        shares: shares?,
        waves: waves? as u32,
        origins: origins?,
        request: request?,
        server_delay: server_delay?,
        parse: parse?,
        think: think?,
        keeps_connections: connections? == Value::Choice("kept"),
    })
}

fn shares(pass: &mut Pass<'_, '_>, section: &Section<'_>) -> Option<[f64; 4]> {
    let [scripts, styles, fonts, images] = SHARES.map(|key| pass.number(section, key));
    let shares = [scripts?, styles?, fonts?, images?];
    let sum: f64 = shares.iter().sum();
    // The sum of decimal fractions may be inexact in its last digits.
    if sum > 1.0 + 1e-9 {
        let written = SHARES.into_iter().rfind(|key| section.node(key).is_some());
        let key = written.unwrap_or(SHARES[0]);
        let message = format!(
            "the shares of {} add up to {sum:.4}; they may add up to at most 1 (the rest is data)",
            SHARES.join(", ")
        );
        pass.error(&section.at(key), &section.sub(key), message);
        return None;
    }
    Some(shares)
}

/// Returns the rank correlation between weight and number of objects, which applies only to
/// draws from the tables.
fn correlation(pass: &mut Pass<'_, '_>, section: &Section<'_>) -> Option<f64> {
    let written = OF_TABLES.into_iter().find(|key| section.node(key).is_some());
    if let (Some(node), Some(key)) = (section.node("correlation"), written) {
        let message = format!(
            "`correlation` applies only if weight and number of objects come from the device's tables, \
             but `{key}` is written; leave out one of them"
        );
        pass.error(&node.at, &section.sub("correlation"), message);
        return None;
    }
    pass.number(section, "correlation")
}

impl TrafficKind for Pages {
    fn carries(&self) -> Carries<'_> {
        Carries::Sessions(&self.tcp)
    }

    fn opens(&self) -> Opens<'_> {
        let PagePlan { think, origins, .. } = &*self.plan;
        let pages = PageFetches { opened: origins, at_once: Some(origins), own_hosts: false };
        Opens::ByUsers { think, pages: Some(pages) }
    }

    fn population(&self, starts: Vec<(Instant, u32)>, draws: Draws<'_>) -> Population {
        let users = PageUsers::new(starts, self.plan.clone(), draws.of("pages"), draws.of("think"));
        Population::Pages(Box::new(users))
    }

    fn vectors_flaw(&self, class: &str) -> Option<String> {
        Some(format!(
            "the connections of \"{class}\" carry many exchanges at the same time, but connection vectors list them one after another"
        ))
    }

    fn flow_bytes(&self) -> u64 {
        let objects = self.plan.objects.as_ref().map_or(LARGE_PAGE, |objects| objects.mean().0);
        self.plan.origins.mean().0 * (TCP_FLOW + SESSION) + objects * OBJECT
    }

    fn smaller(&self) -> &'static str {
        "fewer flows, or pages with fewer objects"
    }
}
