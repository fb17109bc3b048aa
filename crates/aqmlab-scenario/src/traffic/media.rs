//! `media`: frames over UDP, at a rate that a controller adapts to the network.

use std::sync::Arc;

use aqmlab_media::gcc::{self, Estimator};
use aqmlab_media::scream::{self, Reaction};
use aqmlab_media::{ControlPlan, Dialogue, FramePlan, Kind as DialogueKind, MediaFlow, MediaPlan, tfrc};
use aqmlab_params::{Default, Kind, Origin, Words};
use aqmlab_qdisc::Ecn;
use aqmlab_units::{Bytes, Rate, Span};
use schemars::JsonSchema;
use serde::Serialize;

use super::fields::{CLASS, MANY};
use super::kind::{Carries, DatagramFlow, Part, Start, TrafficKind};
use super::packets::{ECN, ecn, ecn_field, is_not_capable};
use super::reading::Reading;
use super::source::FlowSource;
use crate::field::{Field, Form, Variant, default, required, ruled};
use crate::language::{MOMENT, PACKET, RATE};
use crate::pass::{Pass, Section};

/// Flows of frames.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Media {
    /// The flows.
    #[serde(flatten)]
    pub plan: Arc<MediaPlan>,
    /// The ECN field of each packet with media, if it is ECN-capable.
    #[serde(serialize_with = "ecn_field", skip_serializing_if = "is_not_capable")]
    #[schemars(with = "String")]
    pub ecn: Ecn,
}

const MEDIA: Part = ("traffic.media", MediaPlan::VERSION);
const FRAMES: Part = ("traffic.frames", FramePlan::VERSION);
const GCC: Part = ("media.gcc", gcc::VERSION);
const SCREAM: Part = ("media.scream", scream::VERSION);
const TFRC: Part = ("media.tfrc", tfrc::VERSION);
pub(super) const PARTS: &[Part] = &[MEDIA, FRAMES, GCC, SCREAM, TFRC];

const FEEDBACK: Kind = Kind::Span { min: Span::ms(1), max: Span::s(10) };
const TIME: Kind = Kind::Span { min: Span::ms(1), max: Span::s(100) };

/// The rate controllers.
const CONTROLS: &[Variant] = &[
    Variant { kind: "constant", help: "the rate is constant, and there is no feedback", fields: &[] },
    Variant {
        kind: "gcc",
        help: "Google congestion control (draft-ietf-rmcat-gcc-02): the delay gradient and losses",
        fields: &[&[
            default(
                "estimator",
                Form::One(Kind::Choice(Estimator::WORDS)),
                Default::Choice("trendline"),
                "how the delay gradient is estimated: by the line through recent delays that WebRTC uses today, or by the \
                 draft's Kalman filter, which notices only queues that grow by several milliseconds per frame",
            ),
            default(
                "feedback",
                Form::One(FEEDBACK),
                Default::Span(Span::ms(50)),
                "time between two reports of arrivals (RFC 8888)",
            ),
            default(
                "pacing",
                Form::One(Kind::Number { min: 1.0, max: 100.0 }),
                Default::Number(2.5),
                "rate of the pacer, as a multiple of the target rate: 1 in the draft, 2.5 in WebRTC; with 1, frames of \
                 varying size wait at the sender",
            ),
        ]],
    },
    Variant {
        kind: "scream",
        help: "SCReAM (RFC 8298): a congestion window that follows the queueing delay, losses and marks",
        fields: &[&[
            default(
                "feedback",
                Form::One(FEEDBACK),
                Default::Span(Span::ms(20)),
                "time between two reports of arrivals (RFC 8298, section 4.2: 20 ms from 500 kbit/s on)",
            ),
            default(
                "reaction",
                Form::One(Kind::Choice(Reaction::WORDS)),
                Default::Choice("classic"),
                "reaction to marks: by a fixed factor, as in the RFC, or in proportion to their share, as the later \
                 draft-johansson-ccwg-rfc8298bis-screamv2 does for L4S",
            ),
        ]],
    },
    Variant {
        kind: "tfrc",
        help: "TCP-Friendly Rate Control (RFC 5348): the rate of TCP at the same loss event rate, with feedback once per \
               round-trip time",
        fields: &[&[default(
            "prevents_oscillation",
            Form::One(Kind::Flag),
            Default::Flag(false),
            "whether the rate also follows the last round-trip time (RFC 5348, section 4.5)",
        )]],
    },
];

const FIELDS: &[Field] = &[
    required("control", Form::Kinds(CONTROLS), "the rate controller"),
    required("rate", Form::One(RATE), "first rate at the network layer, headers included"),
    ruled(
        "min_rate",
        Form::One(RATE),
        "\"150kbit\", or `rate` if that is lower or constant",
        "lowest rate (RFC 8593, section 6)",
    ),
    ruled(
        "max_rate",
        Form::One(RATE),
        "\"1500kbit\", or `rate` if that is higher or constant",
        "highest rate (RFC 8593, section 6)",
    ),
    default(
        "endless",
        Form::One(Kind::Flag),
        Default::Flag(false),
        "`true` for senders that always have a full packet to send, and no frames",
    ),
    default(
        "fps",
        Form::One(Kind::Number { min: 0.1, max: 1000.0 }),
        Default::Number(30.0),
        "frames per second",
    ),
    default(
        "key_every",
        Form::One(Kind::Integer { min: 0, max: 1_000_000 }),
        Default::Integer(0),
        "number of frames from one key frame to the next; 0 without key frames",
    ),
    default(
        "key_factor",
        Form::One(Kind::Number { min: 1.0, max: 100.0 }),
        Default::Number(4.0),
        "how many times larger key frames are than others; the mean rate does not change",
    ),
    default(
        "variation",
        Form::One(Kind::Number { min: 0.0, max: 0.5 }),
        Default::Number(0.15),
        "scale of the Laplacian deviation of frame sizes from their mean, as a share of it (RFC 8593, section 5.1)",
    ),
    default(
        "latency",
        Form::One(MOMENT),
        Default::Span(Span::ms(200)),
        "time from a new target rate to the first frame of its size (RFC 8593, section 6)",
    ),
    default("packet", Form::One(PACKET), Default::Bytes(1200), "largest packet, headers included"),
    default(
        "deadline",
        Form::One(TIME),
        Default::Span(Span::ms(150)),
        "time from the capture of a frame to its complete arrival, beyond which it is late (ITU-T G.114: 150 ms)",
    ),
    default(
        "freeze_after",
        Form::One(TIME),
        Default::Span(Span::ms(150)),
        "the picture freezes if the next frame comes three times the mean gap after the last one, and this much later \
         than the mean gap (W3C WebRTC statistics: 150 ms)",
    ),
    default(
        "discard_after",
        Form::One(TIME),
        Default::Span(Span::s(1)),
        "the sender discards a frame that has waited for this long",
    ),
    default(
        "ecn",
        Form::One(Kind::Choice(ECN)),
        Default::Choice("not-ect"),
        "the ECN field of each packet with media; only `scream` and `tfrc` react to marks",
    ),
];

pub(super) const KIND: Variant = Variant {
    kind: "media",
    help: "frames over UDP, as of a video call, at a rate that a controller adapts to the network; feedback travels on the \
           reverse path",
    fields: &[CLASS, MANY, FIELDS],
};

const LEAST: Rate = Rate::kbit(150);
const MOST: Rate = Rate::kbit(1500);

pub(super) fn read(pass: &mut Pass<'_, '_>, section: &Section<'_>) -> Option<Reading<Media>> {
    Some(Reading::new(pass.integer(section, "count"), |pass, section| {
        let control = control(pass, section);
        let rates = rates(pass, section, control);
        let frames = frames(pass, section);
        let packet = pass.bytes(section, "packet");
        let deadline = pass.span(section, "deadline");
        let (freeze_after, discard_after) =
            (pass.span(section, "freeze_after"), pass.span(section, "discard_after"));
        let ecn = ecn(pass, section);
        let control = control?;
        let ecn = check_ecn(pass, section, control, ecn?)?;
        let [rate, least, most] = rates?;
        let packet = check_packet(pass, section, packet?)?;
        let plan = MediaPlan {
            frames: frames?,
            control,
            rate,
            least,
            most,
            packet,
            deadline: deadline?,
            freeze_after: freeze_after?,
            discard_after: discard_after?,
        };
        Some(Media { plan: Arc::new(plan), ecn })
    }))
}

fn control(pass: &mut Pass<'_, '_>, section: &Section<'_>) -> Option<ControlPlan> {
    let Some(node) = section.node("control") else {
        pass.missing(section, section.field("control"));
        return None;
    };
    let path = section.sub("control");
    let variant = pass.variant(node, &path, CONTROLS)?;
    let section = pass.open_section(node, &path, variant.all_fields())?;
    pass.check_keys(section.table, &path, &section.fields, &["kind"]);
    pass.enter_at(section.sub("kind"), &variant.kind, Origin::Given, variant.help);
    Some(match variant.kind {
        "gcc" => {
            let (word, feedback) = (pass.word(&section, "estimator"), pass.span(&section, "feedback"));
            let pacing = pass.number(&section, "pacing");
            ControlPlan::Gcc { estimator: Estimator::from_word(word?)?, feedback: feedback?, pacing: pacing? }
        }
        "scream" => {
            let (word, feedback) = (pass.word(&section, "reaction"), pass.span(&section, "feedback"));
            ControlPlan::Scream { reaction: Reaction::from_word(word?)?, feedback: feedback? }
        }
        "tfrc" => ControlPlan::Tfrc { prevents_oscillation: pass.flag(&section, "prevents_oscillation")? },
        _ => ControlPlan::Constant,
    })
}

/// Returns the first, the lowest and the highest rate.
fn rates(pass: &mut Pass<'_, '_>, section: &Section<'_>, control: Option<ControlPlan>) -> Option<[Rate; 3]> {
    let rate = pass.rate(section, "rate");
    let mut bound = |key: &str| section.node(key).map(|_| pass.rate(section, key));
    let (least, most) = (bound("min_rate"), bound("max_rate"));
    let rate = rate?;
    let is_constant = control? == ControlPlan::Constant;
    for key in ["min_rate", "max_rate"] {
        if let Some(node) = section.node(key).filter(|_| is_constant) {
            let message = format!(
                "`{key}` belongs to a rate that is controlled; remove it, or choose another `control`"
            );
            pass.error(&node.at, &section.sub(key), message);
            return None;
        }
    }
    let least = least.map_or(Some(if is_constant { rate } else { LEAST.min(rate) }), |least| least)?;
    let most = most.map_or(Some(if is_constant { rate } else { MOST.max(rate) }), |most| most)?;
    if least > most {
        let message = format!("`min_rate` `{least}` exceeds `max_rate` `{most}`; write a lower rate");
        pass.error(&section.at("min_rate"), &section.sub("min_rate"), message);
        return None;
    }
    if rate < least || rate > most {
        let message = format!("`rate` `{rate}` is not between `min_rate` `{least}` and `max_rate` `{most}`");
        pass.error(&section.at("rate"), &section.sub("rate"), message);
        return None;
    }
    for (key, value) in [("min_rate", least), ("max_rate", most)] {
        if section.node(key).is_none() {
            pass.derive(section, key, &value, "see `docs/scenario.md`");
        }
    }
    Some([rate, least, most])
}

/// Returns the frames, or `None` within `Some` for senders without.
fn frames(pass: &mut Pass<'_, '_>, section: &Section<'_>) -> Option<Option<FramePlan>> {
    const KEYS: [&str; 5] = ["fps", "key_every", "key_factor", "variation", "latency"];
    if pass.flag(section, "endless")? {
        if let Some((key, node)) = KEYS.iter().find_map(|key| Some((key, section.node(key)?))) {
            let message =
                format!("`{key}` belongs to frames, but `endless = true` has none; remove one of them");
            pass.error(&node.at, &section.sub(key), message);
            return None;
        }
        return Some(None);
    }
    let per_s = pass.number(section, "fps");
    let (key_every, key_factor) = (pass.integer(section, "key_every"), pass.number(section, "key_factor"));
    let (variation, latency) = (pass.number(section, "variation"), pass.span(section, "latency"));
    let key_every = key_every?;
    if let Some(node) = section.node("key_factor").filter(|_| key_every == 0) {
        let message = "`key_factor` needs `key_every`, the number of frames from one key frame to the next";
        pass.error(&node.at, &section.sub("key_factor"), message);
        return None;
    }
    let key_factor = if key_every == 0 { 1.0 } else { key_factor? };
    Some(Some(FramePlan { per_s: per_s?, key_every, key_factor, variation: variation?, latency: latency? }))
}

fn check_ecn(pass: &mut Pass<'_, '_>, section: &Section<'_>, control: ControlPlan, ecn: Ecn) -> Option<Ecn> {
    let message = match (control, ecn) {
        (ControlPlan::Constant | ControlPlan::Gcc { .. }, Ecn::Ect0 | Ecn::Ect1) => {
            "this controller does not react to marks, so its packets must not be ECN-capable; remove `ecn`, or choose \
             \"scream\" or \"tfrc\""
        }
        (ControlPlan::Scream { reaction: Reaction::L4s, .. }, Ecn::NotEct | Ecn::Ect0) => {
            "`reaction = \"l4s\"` needs `ecn = \"ect1\"` (RFC 9331, section 4.1)"
        }
        (ControlPlan::Scream { reaction: Reaction::Classic, .. } | ControlPlan::Tfrc { .. }, Ecn::Ect1) => {
            "ECT(1) promises a reaction in proportion to the marks (RFC 9331, section 4.3), which this controller does \
             not have; write \"ect0\", or \"scream\" with `reaction = \"l4s\"`"
        }
        _ => return Some(ecn),
    };
    pass.error(&section.at("ecn"), &section.sub("ecn"), message);
    None
}

/// Headers of IPv4, UDP and RTP, and some data.
const SMALLEST: Bytes = Bytes::new(100);

fn check_packet(pass: &mut Pass<'_, '_>, section: &Section<'_>, packet: Bytes) -> Option<Bytes> {
    if packet >= SMALLEST {
        return Some(packet);
    }
    let message =
        format!("`{packet}` leaves no room for media next to headers of 40 B; write at least {SMALLEST}");
    pass.error(&section.at("packet"), &section.sub("packet"), message);
    None
}

impl TrafficKind for Media {
    fn carries(&self) -> Carries<'_> {
        let plan = &self.plan;
        let is_constant = plan.control == ControlPlan::Constant;
        // A frame is divided into packets of equal size.
        let mean_size = plan.frames.map_or(plan.packet, |frames| {
            let frame = (plan.rate.bytes_per_s() / frames.per_s) as u64;
            Bytes::new((frame / frame.div_ceil(plan.packet.get()).max(1)).max(1))
        });
        Carries::Datagrams(DatagramFlow {
            mean_size,
            largest: Some(plan.packet),
            rate: is_constant.then_some(plan.rate),
            mean_rate: is_constant.then_some(plan.rate),
            ecn_capable: self.ecn.is_capable(),
        })
    }

    fn uses(&self, _all: &'static [Part]) -> &'static [Part] {
        match self.plan.control {
            ControlPlan::Constant => &[MEDIA, FRAMES],
            ControlPlan::Gcc { .. } => &[MEDIA, FRAMES, GCC],
            ControlPlan::Scream { .. } => &[MEDIA, FRAMES, SCREAM],
            ControlPlan::Tfrc { .. } => &[MEDIA, FRAMES, TFRC],
        }
    }

    fn is_dialogue(&self) -> bool {
        true
    }

    fn source(&self, start: Start<'_>) -> FlowSource {
        let flow = MediaFlow::new(self.plan.clone(), start.now, start.draws("size"));
        FlowSource::Dialogue { dialogue: Dialogue::new(DialogueKind::Media(Box::new(flow))), ecn: self.ecn }
    }

    fn deadline(&self) -> Option<Span> {
        Some(self.plan.deadline)
    }

    fn flow_bytes(&self) -> u64 {
        // What was sent is remembered for two minutes.
        const PER_PACKET: u64 = 64;
        let packets = self.plan.most.packets_per_s(self.plan.packet) * 120.0;
        16_384 + packets as u64 * PER_PACKET
    }
}
