//! `on_off_tcp`: TCP connections that send during on periods, greedily or one burst of bytes per period.

use std::sync::Arc;

use aqmlab_traffic::{Begin, Bursty, Distribution, OnOff, Session};
use aqmlab_units::Bytes;
use schemars::JsonSchema;
use serde::Serialize;

use super::fields::{CLASS, MANY, TCP};
use super::kind::{Carries, Part, Start, Tcp, TrafficKind};
use super::on_off::{OFF, ON_OFF, begin, on_off};
use super::reading::Reading;
use super::source::FlowSource;
use crate::field::{Field, Form, Variant, ruled};
use crate::language::{PERIODS, TRANSFERS};
use crate::pass::{Pass, Section};

/// TCP connections that send during on periods.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct OnOffTcp {
    /// What they send.
    #[serde(flatten)]
    pub sends: Sends,
    /// The endpoints' parameters.
    pub tcp: Tcp,
}

/// What a connection sends in its on periods.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Sends {
    /// As much as it can.
    Greedily(Arc<OnOff>),
    /// One burst of bytes in each.
    Bursts(Arc<Bursty>),
}

const BURSTS: Part = ("traffic.bursts", Bursty::VERSION);
pub(super) const PARTS: &[Part] = &[ON_OFF, BURSTS];

const FIELDS: &[Field] = &[
    ruled(
        "on",
        Form::Drawn(&PERIODS),
        "given by `burst`",
        "lengths of on periods, in which the sender always has data to send; unsent data is withdrawn at the end of a \
         period",
    ),
    ruled(
        "burst",
        Form::Drawn(&TRANSFERS),
        "given by `on`",
        "bytes of each burst; the off period begins when all of them are acknowledged",
    ),
    OFF[0],
    OFF[1],
    TCP,
];

pub(super) const KIND: Variant = Variant {
    kind: "on_off_tcp",
    help: "TCP connections that send during on periods, either greedily or one burst of bytes per period, and stay open during off periods",
    fields: &[CLASS, MANY, FIELDS],
};

pub(super) fn read(pass: &mut Pass<'_, '_>, section: &Section<'_>) -> Option<Reading<OnOffTcp>> {
    Some(Reading::new(pass.integer(section, "count"), rest))
}

fn rest(pass: &mut Pass<'_, '_>, section: &Section<'_>) -> Option<OnOffTcp> {
    let off = pass.drawn(section, "off");
    let begin = begin(pass, section);
    let tcp = pass.tcp(section);
    let sends = match (section.node("on"), section.node("burst")) {
        (Some(_), None) => {
            let on = pass.drawn(section, "on");
            Sends::Greedily(on_off(pass, section, on?, off?, begin?)?)
        }
        (None, Some(_)) => {
            let sizes = pass.drawn(section, "burst");
            Sends::Bursts(bursty(pass, section, sizes?, off?, begin?)?)
        }
        (None, None) => {
            let message =
                "neither `on` (duration of greedy periods) nor `burst` (bytes) is written; write one of them";
            pass.error(&section.at, &section.path, message);
            return None;
        }
        (Some(_), Some(node)) => {
            pass.error(&node.at, &section.sub("burst"), "`on` is written as well; keep one of them");
            return None;
        }
    };
    Some(OnOffTcp { sends, tcp: tcp? })
}

fn bursty(
    pass: &mut Pass<'_, '_>,
    section: &Section<'_>,
    sizes: Distribution<Bytes>,
    off: Distribution,
    begin: Begin,
) -> Option<Arc<Bursty>> {
    if begin == Begin::Stationary {
        let message = "`begin = \"stationary\"` needs the duration of a burst, which depends on the \
                       network; write \"on\" or \"off\"";
        pass.error(&section.at("begin"), &section.sub("begin"), message);
        return None;
    }
    Some(Arc::new(Bursty { sizes, off, begin }))
}

impl TrafficKind for OnOffTcp {
    fn carries(&self) -> Carries<'_> {
        Carries::Sessions(&self.tcp)
    }

    fn uses(&self, _all: &'static [Part]) -> &'static [Part] {
        match self.sends {
            Sends::Greedily(_) => &[ON_OFF],
            Sends::Bursts(_) => &[BURSTS],
        }
    }

    fn source(&self, start: Start<'_>) -> FlowSource {
        FlowSource::Session(match &self.sends {
            Sends::Greedily(times) => Session::greedy(times.clone(), start.draws("on"), start.draws("off")),
            Sends::Bursts(bursty) => {
                Session::bursts(bursty.clone(), start.draws("burst"), start.draws("off"))
            }
        })
    }
}
