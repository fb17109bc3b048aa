//! `ping`: requests over UDP, each answered at once.

use std::sync::Arc;

use aqmlab_media::{Dialogue, Kind as DialogueKind, Ping as PingFlow, PingPlan};
use aqmlab_params::{Default, Kind};
use aqmlab_qdisc::Ecn;
use aqmlab_units::{Rate, Span};
use schemars::JsonSchema;
use serde::Serialize;

use super::fields::{CLASS, MANY};
use super::kind::{Carries, DatagramFlow, PACKET_FLOW, Part, SESSION, Start, TrafficKind};
use super::reading::Reading;
use super::source::FlowSource;
use crate::field::{Field, Form, Variant, default};
use crate::language::{PACKET, PERIODS};
use crate::pass::{Pass, Section};

/// Pings.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Ping {
    /// The requests.
    #[serde(flatten)]
    pub plan: Arc<PingPlan>,
}

pub(super) const PARTS: &[Part] = &[("traffic.ping", PingPlan::VERSION)];

const TIME: Kind = Kind::Span { min: Span::ms(1), max: Span::s(1000) };

const FIELDS: &[Field] = &[
    default(
        "period",
        Form::Drawn(&PERIODS),
        Default::Span(Span::ms(200)),
        "time from one request to the next, whether or not it has been answered; with an exponential distribution, \
         requests are a Poisson process",
    ),
    default(
        "size",
        Form::One(PACKET),
        Default::Bytes(84),
        "size of requests, headers included (84 B are an ICMP echo request of `ping`)",
    ),
    default("answer", Form::One(PACKET), Default::Bytes(84), "size of answers, headers included"),
    default(
        "timeout",
        Form::One(TIME),
        Default::Span(Span::s(2)),
        "time after which a request counts as failed",
    ),
];

pub(super) const KIND: Variant = Variant {
    kind: "ping",
    help: "requests over UDP that the other end answers at once; the response time is the round-trip time",
    fields: &[CLASS, MANY, FIELDS],
};

pub(super) fn read(pass: &mut Pass<'_, '_>, section: &Section<'_>) -> Option<Reading<Ping>> {
    Some(Reading::new(pass.integer(section, "count"), |pass, section| {
        let (period, timeout) = (pass.drawn(section, "period"), pass.span(section, "timeout"));
        let (size, answer) = (pass.bytes(section, "size"), pass.bytes(section, "answer"));
        let plan = PingPlan { period: period?, size: size?, answer: answer?, timeout: timeout? };
        if plan.period.least().is_zero() && plan.period.mean() < Span::us(1) {
            let message = "requests would follow each other without a pause; write a longer `period`, such as \"200ms\"";
            pass.error(&section.at("period"), &section.sub("period"), message);
            return None;
        }
        Some(Ping { plan: Arc::new(plan) })
    }))
}

impl Ping {
    fn rate(&self) -> Rate {
        Rate::of(self.plan.size, self.plan.period.mean())
    }
}

impl TrafficKind for Ping {
    fn carries(&self) -> Carries<'_> {
        Carries::Datagrams(DatagramFlow {
            mean_size: self.plan.size,
            largest: Some(self.plan.size.max(self.plan.answer)),
            rate: Some(self.rate()),
            mean_rate: Some(self.rate()),
            ecn_capable: false,
        })
    }

    fn data_of(&self) -> [bool; 2] {
        [true, true]
    }

    fn is_dialogue(&self) -> bool {
        true
    }

    fn source(&self, start: Start<'_>) -> FlowSource {
        let ping = PingFlow::new(self.plan.clone(), start.now, start.draws("period"));
        FlowSource::Dialogue { dialogue: Dialogue::new(DialogueKind::Ping(Box::new(ping))), ecn: Ecn::NotEct }
    }

    fn flow_bytes(&self) -> u64 {
        PACKET_FLOW + SESSION
    }
}
