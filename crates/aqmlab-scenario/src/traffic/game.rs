//! `game`: sparse flows of updates in both directions.

use std::sync::Arc;

use aqmlab_media::{Dialogue, Game as GameFlow, GamePlan, Kind as DialogueKind, Updates};
use aqmlab_params::{Default, Kind};
use aqmlab_qdisc::Ecn;
use aqmlab_traffic::Distribution;
use aqmlab_units::{Rate, Span};
use schemars::JsonSchema;
use serde::Serialize;

use super::fields::{CLASS, MANY};
use super::kind::{Carries, DatagramFlow, PACKET_FLOW, Part, Start, TrafficKind};
use super::reading::Reading;
use super::source::FlowSource;
use crate::field::{Field, Form, Variant, default};
use crate::language::{MOMENT, UPDATES};
use crate::pass::{Pass, Section};

/// Games.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Game {
    /// The updates.
    #[serde(flatten)]
    pub plan: Arc<GamePlan>,
}

pub(super) const PARTS: &[Part] = &[("traffic.game", GamePlan::VERSION)];

const PER_SECOND: Kind = Kind::Number { min: 0.1, max: 10_000.0 };
const TIME: Kind = Kind::Span { min: Span::ms(1), max: Span::s(100) };

const FIELDS: &[Field] = &[
    default("up_per_s", Form::One(PER_SECOND), Default::Number(64.0), "updates per second of the client"),
    default("down_per_s", Form::One(PER_SECOND), Default::Number(64.0), "updates per second of the server"),
    default(
        "up_size",
        Form::Drawn(&UPDATES),
        Default::Bytes(100),
        "sizes of the client's packets, headers included",
    ),
    default(
        "down_size",
        Form::Drawn(&UPDATES),
        Default::Bytes(250),
        "sizes of the server's packets, headers included",
    ),
    default(
        "jitter",
        Form::One(MOMENT),
        Default::Span(Span::ZERO),
        "each update is sent up to this much late, uniformly distributed",
    ),
    default(
        "deadline",
        Form::One(TIME),
        Default::Span(Span::ms(100)),
        "time by which an update should arrive at the other end",
    ),
];

pub(super) const KIND: Variant = Variant {
    kind: "game",
    help: "sparse UDP flows in both directions, as between the client and the server of a game; both ends send at their \
           own rate, and nobody adapts it",
    fields: &[CLASS, MANY, FIELDS],
};

pub(super) fn read(pass: &mut Pass<'_, '_>, section: &Section<'_>) -> Option<Reading<Game>> {
    Some(Reading::new(pass.integer(section, "count"), |pass, section| {
        let (up, down) = (pass.number(section, "up_per_s"), pass.number(section, "down_per_s"));
        let (up_size, down_size) = (pass.drawn(section, "up_size"), pass.drawn(section, "down_size"));
        let (jitter, deadline) = (pass.span(section, "jitter"), pass.span(section, "deadline"));
        let plan = GamePlan {
            up: Updates { per_s: up?, size: up_size? },
            down: Updates { per_s: down?, size: down_size? },
            jitter: jitter?,
            deadline: deadline?,
        };
        Some(Game { plan: Arc::new(plan) })
    }))
}

impl TrafficKind for Game {
    fn carries(&self) -> Carries<'_> {
        let largest = |of: &Updates| match of.size {
            Distribution::Constant(size) => Some(size),
            _ => None,
        };
        let Updates { per_s, size } = &self.plan.up;
        let rate = Rate::of(size.mean(), Span::try_from_secs_f64(1.0 / per_s).unwrap_or(Span::s(10)));
        Carries::Datagrams(DatagramFlow {
            mean_size: size.mean(),
            largest: largest(&self.plan.up).max(largest(&self.plan.down)),
            rate: Some(rate),
            mean_rate: Some(rate),
            ecn_capable: false,
        })
    }

    fn data_of(&self) -> [bool; 2] {
        [true, true]
    }

    fn makes_requests(&self) -> bool {
        false
    }

    fn is_dialogue(&self) -> bool {
        true
    }

    fn source(&self, start: Start<'_>) -> FlowSource {
        let draws = [["up_size", "up_jitter"], ["down_size", "down_jitter"]]
            .map(|of| of.map(|what| start.draws(what)));
        let game = GameFlow::new(self.plan.clone(), start.now, draws);
        FlowSource::Dialogue { dialogue: Dialogue::new(DialogueKind::Game(Box::new(game))), ecn: Ecn::NotEct }
    }

    fn deadline(&self) -> Option<Span> {
        Some(self.plan.deadline)
    }

    fn flow_bytes(&self) -> u64 {
        4 * PACKET_FLOW
    }
}
