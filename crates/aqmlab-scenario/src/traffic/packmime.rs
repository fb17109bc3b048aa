//! `packmime`: TCP connections of web users, as PackMime-HTTP draws them.

use std::ops::Not;

use aqmlab_params::{Default, Kind, Origin, Value};
use aqmlab_traffic::packmime::{HostDelay, PackMime, PausesOf};
use aqmlab_traffic::{Cloud, End, MeanConnection, Population};
use aqmlab_units::{Bytes, Instant, Span};
use schemars::JsonSchema;
use serde::Serialize;

use super::delays::{DelaysFrom, OwnDelays};
use super::fields::{ALLOW_OVERLOAD, CLASS, CLOSES, TCP};
use super::kind::{Carries, Draws, Opens, Part, Tcp, TrafficKind, first_start};
use super::reading::{Reading, closes, per_second};
use super::requests::REQUESTS;
use crate::closes::Closes;
use crate::field::{Field, Form, OURS, Variant, default, required, ruled};
use crate::language::STARTS;
use crate::pass::{Pass, Section};

/// TCP connections of web users; the cloud draws what they carry.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Packmime {
    /// The users.
    #[serde(flatten)]
    pub cloud: CloudPlan,
    /// The end that closes each connection first; without this key, the end that sends the last data.
    #[serde(skip_serializing_if = "Closes::is_last_sender")]
    pub closes: Closes,
    /// The endpoints' parameters.
    pub tcp: Tcp,
}

/// A cloud of web users: see [`PackMime`].
#[derive(Clone, Copy, PartialEq, Debug, Serialize, JsonSchema)]
pub struct CloudPlan {
    /// Connections per second.
    #[serde(rename = "rate_per_s")]
    pub per_s: f64,
    /// How often the location and spread of the pauses on persistent connections are drawn.
    pub pauses: PausesOf,
    /// Whether each connection carries one exchange, as in HTTP/1.0.
    #[serde(skip_serializing_if = "Not::not")]
    pub http_1_0: bool,
    /// The largest response, if there is a bound; larger ones are drawn again.
    #[serde(rename = "max_response_bytes", skip_serializing_if = "Option::is_none")]
    pub max_response: Option<Bytes>,
    /// Whether the model draws delays for each connection; otherwise the class's `rtt` applies.
    pub own_delays: bool,
}

pub(super) const PARTS: &[Part] = &[("traffic.packmime", PackMime::VERSION), REQUESTS];

/// The largest bound on responses that a file may give: no run lasts long enough to send as much.
const MOST_OF_A_RESPONSE: u64 = 1 << 50;

/// The choices for how often pauses on persistent connections are drawn.
pub(crate) const PAUSES: &[&str] = &["connection", "cloud"];

const FIELDS: &[Field] = &[
    required("rate", Form::PerSecond, "connections per second"),
    default("start", Form::Drawn(&STARTS), Default::Span(Span::ZERO), "when arrivals begin"),
    default(
        "pauses",
        Form::One(Kind::Choice(PAUSES)),
        Default::Choice("connection"),
        "how often the location and spread of the pauses on persistent connections are drawn: for each \
         connection, as in ns-2 until version 2.30, or once for the whole cloud, as in version 2.31 and \
         later",
    ),
    default(
        "http",
        Form::One(Kind::Choice(&["1.1", "1.0"])),
        Default::Choice("1.1"),
        "version of HTTP: with \"1.1\", 9 % of the connections carry several exchanges; with \"1.0\", each carries one",
    ),
    ruled(
        "max_response",
        Form::One(Kind::Bytes { min: PackMime::LEAST_MAX_RESPONSE, max: MOST_OF_A_RESPONSE }),
        "unlimited",
        "bytes of the largest response; a response drawn larger than this is drawn again, and all other draws stay the same. \
         ns-2 has no such bound",
    ),
    CLOSES,
    ALLOW_OVERLOAD,
    TCP,
];

pub(super) const KIND: Variant = Variant {
    kind: "packmime",
    help: "TCP connections of web users, as PackMime-HTTP draws them: their opening times, their requests and \
           responses, and the delays of clients and servers",
    fields: &[CLASS, FIELDS],
};

pub(super) fn read(pass: &mut Pass<'_, '_>, section: &Section<'_>) -> Option<Reading<Packmime>> {
    let cloud = cloud(pass, section);
    let mean = End::ALL.into_iter().fold(Span::ZERO, |sum, end| sum + HostDelay::mean(end) * 2);
    let rule = "the path's propagation delay plus the mean of the connections' draws";
    let reading = Reading::new(Some(1), move |pass, section| {
        let (closes, tcp) = (closes(pass, section), pass.tcp(section)?);
        Some(Packmime { cloud: cloud?, closes: closes?, tcp })
    });
    Some(Reading { own_delays: Some((mean, rule)), ..reading })
}

fn cloud(pass: &mut Pass<'_, '_>, section: &Section<'_>) -> Option<CloudPlan> {
    let per_s = per_second(pass, section, "rate");
    let pauses = match pass.value(section, "pauses")? {
        Value::Choice("cloud") => PausesOf::Cloud,
        _ => PausesOf::Connection,
    };
    let http_1_0 = pass.value(section, "http")? == Value::Choice("1.0");
    let max_response = max_response(pass, section)?;
    let own_delays = section.node("rtt").is_none();
    Some(CloudPlan { per_s: per_s?, pauses, http_1_0, max_response, own_delays })
}

fn max_response(pass: &mut Pass<'_, '_>, section: &Section<'_>) -> Option<Option<Bytes>> {
    if section.node("max_response").is_none() {
        pass.enter(section, "max_response", &"unlimited", Origin::Default(OURS));
        return Some(None);
    }
    pass.bytes(section, "max_response").map(Some)
}

impl TrafficKind for Packmime {
    fn carries(&self) -> Carries<'_> {
        Carries::Sessions(&self.tcp)
    }

    fn opens(&self) -> Opens<'_> {
        Opens::AtRate { per_s: self.cloud.per_s, bursty: true }
    }

    fn population(&self, starts: Vec<(Instant, u32)>, draws: Draws<'_>) -> Population {
        let model = PackMime::new(self.cloud.per_s, self.cloud.pauses, &draws.of("packmime"));
        let model = if self.cloud.http_1_0 { model.without_persistence() } else { model };
        let model = match self.cloud.max_response {
            Some(most) => model.with_max_response(most.get()),
            None => model,
        };
        Population::Cloud(Box::new(Cloud::new(model, first_start(&starts))))
    }

    fn closed_by(&self) -> Option<End> {
        self.closes.end()
    }

    fn mean_connection(&self) -> Option<MeanConnection> {
        Some(PackMime::mean_connection(self.cloud.max_response.map(Bytes::get)))
    }

    fn own_delays(&self) -> Option<OwnDelays<'_>> {
        Some(OwnDelays { from: DelaysFrom::Packmime, apply: self.cloud.own_delays })
    }

    fn vectors_flaw(&self, _class: &str) -> Option<String> {
        None
    }
}
