//! The keys of the network: topologies, routers, links and their faults, and delay stages.

use aqmlab_params::{Default, Kind};
use aqmlab_units::Span;

use super::autorate::AUTORATE;
use super::quantity::{
    CHANCES, COUNT, DELAY, JITTERS, MOST_LINKS_OF_A_PATH, OVERHEAD, RATE, RATES, TICK, TIMES,
};
use super::rate::CHANGING_RATES;
use crate::field::{Field, Form, Variant, default, required, ruled};

/// The key that names the discipline of a queue.
pub(crate) const QUEUE_KIND: &str = "kind";

/// The discipline that a link has if the file gives no queue for it.
pub(crate) const DEFAULT_QUEUE: &str = "droptail";

/// The kinds of topology.
pub const TOPOLOGIES: &[Variant] = &[
    Variant {
        kind: "dumbbell",
        help: "two routers, `left` and `right`, with the links `bottleneck` and `reverse` between them",
        fields: &[ONE_LINK, BACK, ACCESS],
    },
    Variant {
        kind: "parking_lot",
        help: "routers `r0` to `rN` in a row, with the links `hop1` to `hopN` and `hop1-reverse` to `hopN-reverse`; \
               a table such as `hop2` in the topology overrides the keys of that hop",
        fields: &[HOPS, ONE_LINK, BACK, ACCESS],
    },
    Variant { kind: "graph", help: "any graph, made of [[node]] and [[link]]", fields: &[ACCESS] },
];

/// The rate of a link.
const LINK_RATE: Form = Form::OverTime(RATE, CHANGING_RATES);

const HOPS: &[Field] = &[required(
    "hops",
    Form::One(Kind::Integer { min: 1, max: MOST_LINKS_OF_A_PATH as u64 }),
    "the number of bottlenecks in a row",
)];

const ONE_LINK: &[Field] = &[
    required("rate", LINK_RATE, "the bottleneck's rate"),
    required("delay", Form::One(DELAY), "the bottleneck's one-way propagation delay"),
    ruled("queue", Form::Queue, "droptail with its defaults", "queue of the link from left to right"),
    default("overhead", Form::One(OVERHEAD), Default::Bytes(0), "bytes that the link adds to each packet"),
    ruled("faults", Form::Table(FAULTS), "none", "deterministic faults on the link from left to right"),
    CONTROLLER,
];

const CONTROLLER: Field = ruled(
    "autorate",
    Form::Table(AUTORATE),
    "none: the shaper keeps its rate",
    "a controller that adjusts the rate of the shaper in `queue` by a measured delay",
);

const BACK: &[Field] = &[
    ruled("reverse_rate", LINK_RATE, "the value of `rate`", "rate from right to left"),
    ruled("reverse_delay", Form::One(DELAY), "the value of `delay`", "propagation delay from right to left"),
    ruled("reverse_queue", Form::Queue, "droptail with its defaults", "queue of the link from right to left"),
    ruled(
        "reverse_faults",
        Form::Table(FAULTS),
        "none",
        "deterministic faults on the link from right to left",
    ),
];

const ACCESS: &[Field] = &[ruled(
    "access_rate",
    Form::OrWord(RATE, "none"),
    "ten times the rate of the slowest link on the flow's path, in the direction in which that is faster",
    "rate of each flow's own access links at both ends; with \"none\", flows enter the routers directly",
)];

/// The keys of a hop in a parking lot.
pub const HOP: &[&[Field]] = &[
    &[
        ruled("rate", LINK_RATE, "the topology's value", "this hop's rate"),
        ruled("delay", Form::One(DELAY), "the topology's value", "this hop's one-way propagation delay"),
        ruled("queue", Form::Queue, "the topology's value", "queue of this hop's link from left to right"),
        ruled(
            "overhead",
            Form::One(OVERHEAD),
            "the topology's value",
            "bytes that the link adds to each packet",
        ),
        ruled(
            "faults",
            Form::Table(FAULTS),
            "the topology's value",
            "deterministic faults on this hop's link from left to right",
        ),
        CONTROLLER,
    ],
    BACK,
];

/// The keys of a `[[node]]`.
pub const NODE: &[Field] = &[required("name", Form::Name, "the router's name")];

/// The keys of a `[[link]]`.
pub const LINK: &[Field] = &[
    ruled(
        "name",
        Form::Name,
        "`from`-`to`",
        "the name of the link and of its queue; the reverse link has this name with `-reverse` or, without a name here, `to`-`from`",
    ),
    required("from", Form::Name, "the node at which the link begins"),
    required("to", Form::Name, "the node at which the link ends"),
    required("rate", LINK_RATE, "its rate"),
    required("delay", Form::One(DELAY), "the link's one-way propagation delay"),
    ruled("queue", Form::Queue, "droptail with its defaults", "the queue in front of the link"),
    default("overhead", Form::One(OVERHEAD), Default::Bytes(0), "bytes that the link adds to each packet"),
    ruled("faults", Form::Table(FAULTS), "none", "deterministic faults on the link"),
    CONTROLLER,
    default("duplex", Form::One(Kind::Flag), Default::Flag(true), "whether there is a reverse link as well"),
    ruled("reverse_rate", LINK_RATE, "the value of `rate`", "rate of the reverse link"),
    ruled("reverse_delay", Form::One(DELAY), "the value of `delay`", "propagation delay of the reverse link"),
    ruled("reverse_queue", Form::Queue, "droptail with its defaults", "the queue of the reverse link"),
    ruled("reverse_faults", Form::Table(FAULTS), "none", "deterministic faults on the reverse link"),
];

/// The keys of `faults`.
pub const FAULTS: &[Field] = &[
    ruled("drop", Form::Arrivals, "none", "arrivals that are lost before the queue sees them"),
    ruled("mark", Form::Arrivals, "none", "arrivals that are marked CE, if ECN-capable"),
];

/// The keys of a `[[delay]]`. At each place on a packet's path (where it enters the network, each
/// router, and where it leaves), only the first rule that matches the packet applies.
pub const DELAY_RULE: &[Field] = &[
    ruled("name", Form::Name, "`delay` and its number", "the rule's name"),
    ruled("class", Form::Name, "all", "only packets of flows of this class"),
    ruled("from", Form::Name, "any", "only packets that enter the network at this router"),
    ruled("to", Form::Name, "any", "only packets that leave the network at this router"),
    default(
        "direction",
        Form::One(Kind::Choice(DIRECTIONS)),
        Default::Choice("both"),
        "the direction of the packets: to the end that accepts the connection, to the other end, or both",
    ),
    ruled(
        "at",
        Form::Name,
        "\"entry\"",
        "the stage's place: \"entry\", between the flow's own link and the first router; \"exit\", between the last router and \
         the flow's own link; or the name of a router on the flow's path, with the stage before the router's output queue",
    ),
    default(
        "delay",
        Form::StageDelay(&TIMES),
        Default::Span(Span::ZERO),
        "delay added to each packet; drawn once per flow and direction. \"client\" and \"server\": the \
         delay that a `packmime` cloud draws, or a trace gives, for this end of the connection; \
         `{ packmime = .. }`: a separate draw per flow, from the distribution of such delays; steps or a file: a delay that \
         changes, the same for all flows. A packet that would overtake the flow's previous one leaves with it",
    ),
    default(
        "jitter",
        Form::Drawn(&JITTERS),
        Default::Span(Span::ZERO),
        "additional delay of each packet: a single time J means uniform from zero to J; a packet that would overtake the \
         flow's previous one leaves with it, so packets have this distribution only if they are further apart than it is wide",
    ),
    default(
        "reorder",
        Form::One(Kind::Flag),
        Default::Flag(false),
        "with `jitter` or a `delay` that changes, whether packets may overtake each other; every packet's jitter then has its \
         distribution, and every packet the delay of its instant",
    ),
    default(
        "loss",
        Form::DrawnOverTime(&CHANCES),
        Default::Number(0.0),
        "probability that a packet is lost here; drawn once per flow and direction, or the same for all flows and changing",
    ),
    ruled(
        "rate",
        Form::Drawn(&RATES),
        "unlimited",
        "rate at which the packets of a flow leave the stage's unlimited buffer; drawn once per flow and direction",
    ),
    default(
        "tick",
        Form::One(TICK),
        Default::Span(Span::ZERO),
        "the clock tick of the host that delays, as in dummynet: `delay` is cut to whole ticks, and a packet leaves that \
         many ticks after the last tick before its arrival; exact times if this is 0",
    ),
    ruled(
        "tick_hosts",
        Form::One(COUNT),
        "1",
        "with `tick`, the number of hosts that delay; flows are shared out among them in turn, and each host's clock has \
         a phase of its own, drawn uniformly within a tick",
    ),
];

/// Directions of packets.
pub(crate) const DIRECTIONS: &[&str] = &["both", "to_receiver", "to_sender"];

/// The edges of the network. A delay stage is at one of them, or in a router.
pub(crate) const EDGES: &[&str] = &["entry", "exit"];
