//! `browsers`: users who fetch one page at a time, with one request at a time on each connection.

use std::fmt::Display;
use std::sync::Arc;

use aqmlab_params::{Default, Kind};
use aqmlab_traffic::{BrowserPlan, Browsers as Users, Count, Distribution, End, ExchangePlan, Population};
use aqmlab_units::{Bytes, Instant, Span};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

use super::fields::{CLASS, CLOSES, SHARE, TCP};
use super::kind::{Carries, Draws, Opens, PageFetches, Part, SESSION, Start, TCP_FLOW, Tcp, TrafficKind};
use super::reading::{Reading, closes};
use super::requests::{REQUESTS, exchange_source};
use super::source::FlowSource;
use crate::closes::Closes;
use crate::drawn::{Times, Written};
use crate::error::Report;
use crate::field::{Field, Form, Variant, default, required, ruled};
use crate::language::{COUNT, COUNTS, EMBEDDED, PARALLEL, PERIODS, STARTS, TRANSFERS};
use crate::pass::{Pass, Section};
use crate::tree;

/// TCP connections of users with browsers, who determine the number of exchanges on each connection.
#[derive(Clone, PartialEq, Debug, JsonSchema)]
#[schemars(with = "BrowsersForm<'static>")]
pub struct Browsers {
    /// The pages and the users.
    pub plan: Arc<BrowserPlan>,
    /// What the connections carry.
    pub exchanges: Arc<ExchangePlan>,
    /// The end that closes each connection first.
    pub closes: Closes,
    /// The endpoints.
    pub tcp: Tcp,
}

/// Browsers in a plan as data. The number of exchanges on a connection follows from the page, and there are no pauses
/// between them.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct BrowsersForm<'b> {
    /// Bytes of each request, at least one.
    request_bytes: &'b Distribution<Bytes>,
    /// Bytes of each response, at least one.
    response_bytes: &'b Distribution<Bytes>,
    #[serde(flatten)]
    plan: &'b BrowserPlan,
    /// Delay at the server, from the last byte of a request to its response.
    server_delay_ns: &'b Distribution,
    /// The end that closes each connection first; without this key, the end that sends the last data.
    #[serde(skip_serializing_if = "Closes::is_last_sender")]
    closes: Closes,
    /// The endpoints' parameters.
    tcp: &'b Tcp,
}

impl Serialize for Browsers {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Browsers { plan, exchanges, closes, tcp } = self;
        let ExchangePlan { request, response, server_delay, .. } = &**exchanges;
        BrowsersForm {
            request_bytes: request,
            response_bytes: response,
            plan,
            server_delay_ns: server_delay,
            closes: *closes,
            tcp,
        }
        .serialize(serializer)
    }
}

pub(super) const PARTS: &[Part] = &[REQUESTS, ("traffic.browsers", BrowserPlan::VERSION)];

/// The default model of a class.
const STAND_IN: (&str, &str) = ("aqmlab's stand-in", include_str!("../../models/unc_stand_in.toml"));

/// The distributions of a class: those of a model, or those that the class gives in their place.
struct Model {
    request: Distribution<Bytes>,
    response: Distribution<Bytes>,
    plan: BrowserPlan,
}

const FIELDS: &[Field] = &[
    required("users", Form::One(COUNT), "number of users; each fetches one page after another"),
    ruled(
        "model",
        Form::One(Kind::Text),
        "the stand-in model that comes with aqmlab",
        "a TOML file next to the scenario that gives the distributions of the class: it has `title`, `source` and \
         all the keys below except `server_delay` and `tcp`",
    ),
    default("start", Form::Drawn(&STARTS), Default::Span(Span::ZERO), "when each user begins its first page"),
    default(
        "server_delay",
        Form::Drawn(&PERIODS),
        Default::Span(Span::ZERO),
        "delay at the server, from the last byte of a request to its response",
    ),
    CLOSES,
    TCP,
];

const AS_MODEL: &str = "from the model";

/// The keys of a model of browsers.
const MODEL: &[Field] = &[
    ruled("request", Form::Drawn(&TRANSFERS), AS_MODEL, "bytes of each request"),
    ruled("response", Form::Drawn(&TRANSFERS), AS_MODEL, "bytes of each response"),
    ruled("think", Form::Drawn(&PERIODS), AS_MODEL, "time from the end of a user's page to the next page"),
    ruled("embedded", Form::Drawn(&EMBEDDED), AS_MODEL, "objects of a page besides its document"),
    ruled(
        "servers",
        Form::Drawn(&PARALLEL),
        AS_MODEL,
        "servers of a page, which share its objects evenly; each connection goes to one of them",
    ),
    ruled(
        "parallel",
        Form::Drawn(&PARALLEL),
        AS_MODEL,
        "largest number of connections that a page has open at the same time; the document is fetched alone",
    ),
    ruled(
        "persistent",
        SHARE,
        AS_MODEL,
        "share of the connections that are persistent; each of the others carries one object, as in HTTP/1.0",
    ),
    ruled(
        "per_persistent",
        Form::Drawn(&COUNTS),
        AS_MODEL,
        "number of objects on a persistent connection, fetched one after another; fewer if the server has fewer left",
    ),
];

/// The other keys of a file that contains a model of browsers.
const FILE: &[Field] = &[
    required("title", Form::One(Kind::Text), "the model's name"),
    required("source", Form::One(Kind::Text), "the source of the distributions"),
];

pub(super) const KIND: Variant = Variant {
    kind: "browsers",
    help: "TCP connections of users with browsers from around 2000, following the UNC model of HTTP traffic: \
           one page at a time, over parallel connections with one request at a time on each",
    fields: &[CLASS, FIELDS, MODEL],
};

pub(super) fn read(pass: &mut Pass<'_, '_>, section: &Section<'_>) -> Option<Reading<Browsers>> {
    let (users, model) = (pass.integer(section, "users"), model_of(pass, section));
    Some(Reading::new(users, move |pass, section| {
        let server_delay = pass.drawn(section, "server_delay");
        let (closes, tcp) = (closes(pass, section), pass.tcp(section));
        let Model { request, response, plan } = model?;
        let exchanges = ExchangePlan {
            request,
            response,
            per_connection: Distribution::Constant(Count(1)),
            pause: Distribution::Constant(Span::ZERO),
            server_delay: server_delay?,
        };
        Some(Browsers { plan: Arc::new(plan), exchanges: Arc::new(exchanges), closes: closes?, tcp: tcp? })
    }))
}

/// Returns the distributions of a class.
fn model_of(pass: &mut Pass<'_, '_>, section: &Section<'_>) -> Option<Model> {
    let (name, model) = match section.node("model") {
        None => {
            pass.derive(section, "model", &STAND_IN.0, "no `model` is written");
            let (name, text) = STAND_IN;
            (name.to_string(), read_model(pass, name, text).expect("a test checks the stand-in"))
        }
        Some(_) => {
            let file = pass.text(section, "model")?;
            let read = pass.traces.text("model of browsers", &file);
            match read.and_then(|text| read_model(pass, &file, &text)) {
                Ok(model) => (file, model),
                Err(message) => {
                    pass.error(&section.at("model"), &section.sub("model"), message);
                    return None;
                }
            }
        }
    };
    distributions(pass, section, Some((&model, &format!("as {name} has it"))))
}

/// Reads a model from `text`, the content of `file`.
///
/// # Errors
/// Returns everything that is wrong with the text, with line numbers.
fn read_model(outer: &Pass<'_, '_>, file: &str, text: &str) -> Result<Model, String> {
    let mut report = Report::new(text);
    let tree = tree::read(text, &mut report);
    let mut pass = Pass::new(&mut report, outer.traces, outer.catalogue);
    let model = tree.and_then(|tree| whole_model(&mut pass, &tree));
    match (report.finish(file), model) {
        (Ok(_), Some(model)) => Ok(model),
        (Err(error), _) => Err(error.to_string().replace('\n', "; ")),
        (Ok(_), None) => unreachable!("an invalid model has been reported"),
    }
}

/// Reads a model, in which every key is required.
fn whole_model(pass: &mut Pass<'_, '_>, root: &tree::Node) -> Option<Model> {
    let section = pass.section(root, "", FILE.iter().chain(MODEL))?;
    for field in MODEL.iter().filter(|field| section.node(field.name).is_none()) {
        let message =
            format!("`{}` is missing ({}); a model of browsers must have it", field.name, field.help);
        pass.error(&section.at, &section.path, message);
    }
    let (title, source) = (pass.text(&section, "title"), pass.text(&section, "source"));
    let model = distributions(pass, &section, None);
    title.and(source).and(model)
}

/// Returns the distributions at the keys of a section; for a key that is not written, those of a model, with the
/// rule that is given as their origin.
fn distributions(
    pass: &mut Pass<'_, '_>,
    section: &Section<'_>,
    model: Option<(&Model, &str)>,
) -> Option<Model> {
    let (request, response) = (
        or(pass, section, "request", model.map(|(of, rule)| (&of.request, rule))),
        or(pass, section, "response", model.map(|(of, rule)| (&of.response, rule))),
    );
    let model = model.map(|(of, rule)| (&of.plan, rule));
    let think = or(pass, section, "think", model.map(|(of, rule)| (&of.think, rule)));
    let embedded = or(pass, section, "embedded", model.map(|(of, rule)| (&of.embedded, rule)));
    let servers = or(pass, section, "servers", model.map(|(of, rule)| (&of.servers, rule)));
    let parallel = or(pass, section, "parallel", model.map(|(of, rule)| (&of.parallel, rule)));
    let per_persistent =
        or(pass, section, "per_persistent", model.map(|(of, rule)| (&of.per_persistent, rule)));
    let persistent = match model {
        Some((of, rule)) if section.node("persistent").is_none() => {
            pass.derive(section, "persistent", &of.persistent, rule);
            Some(of.persistent)
        }
        _ => pass.number(section, "persistent"),
    };
    let plan = BrowserPlan {
        embedded: embedded?,
        servers: servers?,
        parallel: parallel?,
        persistent: persistent?,
        per_persistent: per_persistent?,
        think: think?,
    };
    Some(Model { request: request?, response: response?, plan })
}

/// Returns the distribution written at a key, or the model's if the key is not written.
fn or<T: Written + Display>(
    pass: &mut Pass<'_, '_>,
    section: &Section<'_>,
    key: &str,
    model: Option<(&Distribution<T>, &str)>,
) -> Option<Distribution<T>> {
    let Some((model, rule)) = model.filter(|_| section.node(key).is_none()) else {
        return pass.drawn(section, key);
    };
    // The mean is more informative here than a table of a hundred points.
    let text = match model {
        Distribution::Empirical(points) => {
            format!("{} points with mean {}", points.len(), model.mean())
        }
        other => Times(other).to_string(),
    };
    pass.derive(section, key, &text, rule);
    Some(model.clone())
}

impl TrafficKind for Browsers {
    fn carries(&self) -> Carries<'_> {
        Carries::Sessions(&self.tcp)
    }

    fn opens(&self) -> Opens<'_> {
        let BrowserPlan { think, embedded, .. } = &*self.plan;
        let pages = PageFetches { opened: embedded, at_once: None, own_hosts: true };
        Opens::ByUsers { think, pages: Some(pages) }
    }

    fn population(&self, starts: Vec<(Instant, u32)>, draws: Draws<'_>) -> Population {
        let users = Users::new(starts, self.plan.clone(), draws.of("pages"), draws.of("think"));
        Population::Browsers(Box::new(users))
    }

    fn source(&self, start: Start<'_>) -> FlowSource {
        exchange_source(&self.exchanges, start)
    }

    fn closed_by(&self) -> Option<End> {
        self.closes.end()
    }

    fn vectors_flaw(&self, class: &str) -> Option<String> {
        Some(format!(
            "the number of exchanges of a connection of \"{class}\" follows from its user's page, and the pages fetched \
             depend on the network; classes of kind \"packmime\", \"requests\" and \"trace\" have connection vectors"
        ))
    }

    fn flow_bytes(&self) -> u64 {
        self.plan.parallel.mean().0 * (TCP_FLOW + SESSION)
    }
}
