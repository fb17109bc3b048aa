//! `requests`: TCP connections that carry exchanges, opened at a rate or by users with think times.

use std::sync::Arc;

use aqmlab_params::Default;
use aqmlab_traffic::{
    Arrivals, Distribution, End, ExchangePlan, Gaps, MeanConnection, Population, Requests as RequestSession,
    Session, Users,
};
use aqmlab_units::{Instant, Span};
use schemars::JsonSchema;
use serde::Serialize;

use super::fields::{ALLOW_OVERLOAD, CLASS, CLOSES, TCP};
use super::kind::{Carries, Draws, Opens, Part, Start, Tcp, TrafficKind, first_start};
use super::reading::{Reading, closes, per_second};
use super::source::FlowSource;
use crate::closes::Closes;
use crate::field::{Field, Form, Variant, default, required, ruled};
use crate::language::{COUNT, COUNTS, PERIODS, STARTS, TRANSFERS};
use crate::pass::{Pass, Section};

/// TCP connections that carry one exchange after another.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Requests {
    /// What opens them.
    #[serde(flatten)]
    pub opened: Opened,
    /// What they carry.
    #[serde(flatten)]
    pub exchanges: Arc<ExchangePlan>,
    /// The end that closes each connection first; without this key, the end that sends the last data.
    #[serde(skip_serializing_if = "Closes::is_last_sender")]
    pub closes: Closes,
    /// The endpoints' parameters.
    pub tcp: Tcp,
}

/// What opens the connections.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub enum Opened {
    /// A Poisson process with this number of connections per second.
    #[serde(rename = "rate_per_s")]
    AtRate(f64),
    /// Users, who think for these times.
    #[serde(rename = "think_ns")]
    ByUsers(Arc<Distribution>),
}

pub(super) const REQUESTS: Part = ("traffic.requests", ExchangePlan::VERSION);
const ARRIVALS: Part = ("traffic.arrivals", Arrivals::VERSION);
const USERS: Part = ("traffic.users", Users::VERSION);
pub(super) const PARTS: &[Part] = &[REQUESTS, ARRIVALS, USERS];

const FIELDS: &[Field] = &[
    ruled(
        "rate",
        Form::PerSecond,
        "given by `users`",
        "connections per second, with exponential gaps (a Poisson process), whatever the state of earlier ones",
    ),
    ruled(
        "users",
        Form::One(COUNT),
        "given by `rate`",
        "number of users; each has one connection at a time, and opens the next one after thinking",
    ),
    ruled(
        "think",
        Form::Drawn(&PERIODS),
        "given by `rate`",
        "time from the last response of a user's connection to the user's next connection",
    ),
    default(
        "start",
        Form::Drawn(&STARTS),
        Default::Span(Span::ZERO),
        "when each user opens its first connection, or when the arrivals begin",
    ),
    required("request", Form::Drawn(&TRANSFERS), "bytes of each request"),
    required("response", Form::Drawn(&TRANSFERS), "bytes of each response"),
    default(
        "exchanges",
        Form::Drawn(&COUNTS),
        Default::Integer(1),
        "requests, with their responses, per connection",
    ),
    default(
        "pause",
        Form::Drawn(&PERIODS),
        Default::Span(Span::ZERO),
        "pause at the client, from the last byte of a response to the next request on the connection",
    ),
    default(
        "server_delay",
        Form::Drawn(&PERIODS),
        Default::Span(Span::ZERO),
        "delay at the server, from the last byte of a request to its response",
    ),
    CLOSES,
    ALLOW_OVERLOAD,
    TCP,
];

pub(super) const KIND: Variant = Variant {
    kind: "requests",
    help: "TCP connections that carry requests and responses, one exchange after another, opened at a \
           rate or by users with think times",
    fields: &[CLASS, FIELDS],
};

pub(super) fn read(pass: &mut Pass<'_, '_>, section: &Section<'_>) -> Option<Reading<Requests>> {
    let (opened, count) = opened(pass, section).unzip();
    Some(Reading::new(count, |pass, section| {
        let (request, response) = (pass.drawn(section, "request"), pass.drawn(section, "response"));
        let per_connection = pass.drawn(section, "exchanges");
        let (pause, server_delay) = (pass.drawn(section, "pause"), pass.drawn(section, "server_delay"));
        let (closes, tcp) = (closes(pass, section), pass.tcp(section));
        let exchanges = ExchangePlan {
            request: request?,
            response: response?,
            per_connection: per_connection?,
            pause: pause?,
            server_delay: server_delay?,
        };
        Some(Requests { opened: opened?, exchanges: Arc::new(exchanges), closes: closes?, tcp: tcp? })
    }))
}

/// Returns what opens the connections, and the number of flows of the class.
fn opened(pass: &mut Pass<'_, '_>, section: &Section<'_>) -> Option<(Opened, u64)> {
    match (section.node("rate"), section.node("users")) {
        (Some(_), None) => {
            if let Some(node) = section.node("think") {
                let message = "`think` belongs to `users`; connections that open at a `rate` do not wait";
                pass.error(&node.at, &section.sub("think"), message);
                return None;
            }
            let per_second = per_second(pass, section, "rate")?;
            Some((Opened::AtRate(per_second), 1))
        }
        (None, Some(_)) => {
            let users = pass.integer(section, "users");
            if section.node("think").is_none() {
                let message = "`think` is missing (time from the last response of a user's connection to the user's \
                               next connection); write a time such as \"5s\", or a distribution";
                pass.error(&section.at, &section.path, message);
                return None;
            }
            let think = pass.drawn(section, "think");
            Some((Opened::ByUsers(Arc::new(think?)), users?))
        }
        (None, None) => {
            let message = "neither `rate` (connections per second) nor `users` (number of users with \
                           think times) is written; write one of them";
            pass.error(&section.at, &section.path, message);
            None
        }
        (Some(_), Some(node)) => {
            pass.error(&node.at, &section.sub("users"), "`rate` is written as well; keep one of them");
            None
        }
    }
}

impl TrafficKind for Requests {
    fn carries(&self) -> Carries<'_> {
        Carries::Sessions(&self.tcp)
    }

    fn uses(&self, _all: &'static [Part]) -> &'static [Part] {
        match self.opened {
            Opened::AtRate(_) => &[REQUESTS, ARRIVALS],
            Opened::ByUsers(_) => &[REQUESTS, USERS],
        }
    }

    fn opens(&self) -> Opens<'_> {
        match &self.opened {
            Opened::AtRate(per_s) => Opens::AtRate { per_s: *per_s, bursty: false },
            Opened::ByUsers(think) => Opens::ByUsers { think, pages: None },
        }
    }

    fn population(&self, starts: Vec<(Instant, u32)>, draws: Draws<'_>) -> Population {
        match &self.opened {
            &Opened::AtRate(per_s) => Population::Arrivals(Arrivals::new(
                Gaps::Exponential { per_s },
                first_start(&starts),
                draws.of("gap"),
            )),
            Opened::ByUsers(think) => Population::Users(Users::new(starts, think.clone(), draws.of("think"))),
        }
    }

    fn source(&self, start: Start<'_>) -> FlowSource {
        exchange_source(&self.exchanges, start)
    }

    fn closed_by(&self) -> Option<End> {
        self.closes.end()
    }

    fn mean_connection(&self) -> Option<MeanConnection> {
        Some(self.exchanges.mean_connection())
    }

    fn vectors_flaw(&self, _class: &str) -> Option<String> {
        None
    }
}

/// Returns the source of a connection with exchanges.
pub(super) fn exchange_source(plan: &Arc<ExchangePlan>, start: Start<'_>) -> FlowSource {
    let Start { of, draws, .. } = start;
    let exchange = draws.of("exchange");
    FlowSource::Session(Session::Requests(match start.exchanges {
        Some(count) => RequestSession::counted(plan.clone(), of, &exchange, count),
        None => RequestSession::new(plan.clone(), of, &exchange, &draws.of("exchanges")),
    }))
}
