//! The language: every section of a scenario file and every key in it.

use aqmlab_params::{Default, Kind};
use aqmlab_units::{Packets, Rate, Span};

use crate::drawn::{CHANCES, PERIODS, RATES, TIMES, TRANSFERS};
use crate::field::{Field, Form, Variant, default, required, ruled};
use crate::route::MOST_LINKS_OF_A_PATH;

const S: u64 = 1_000_000_000;
/// A year: longer runs are mistakes.
const YEAR: Span = Span::s(365 * 24 * 3600);
const HOUR: Span = Span::s(3600);

const RUN_TIME: Kind = Kind::Span { min: Span::ms(1), max: YEAR };
const MOMENT: Kind = Kind::Span { min: Span::ZERO, max: YEAR };
/// Propagation: an hour is beyond Saturn.
pub(crate) const DELAY: Kind = Kind::Span { min: Span::ZERO, max: HOUR };
pub(crate) const RATE: Kind = Kind::Rate { min: Rate::kbit(1), max: Rate::gbit(100_000) };
const OVERHEAD: Kind = Kind::Bytes { min: 0, max: 1000 };
pub(crate) const TRANSFER: Kind = Kind::Bytes { min: 1, max: 1 << 50 };
pub(crate) const CHANCE: Kind = Kind::Number { min: 0.0, max: 1.0 };
/// Sizes of UDP packets: from an IP and UDP header to the most that IPv4 can carry.
pub(crate) const PACKET: Kind = Kind::Bytes { min: 28, max: 65_535 };
/// Sampling faster than a microsecond would record more than the simulation does.
const INTERVAL: Kind = Kind::Span { min: Span::ZERO, max: YEAR };
const COUNT: Kind = Kind::Integer { min: 1, max: 1_000_000_000_000 };

/// The kinds of quantity that a stop condition counts.
pub(crate) const QUANTITIES: &[&str] = &["arrivals", "drops", "marks", "backlog"];

/// What is recorded of a packet.
pub(crate) const PACKET_EVENTS: &[&str] = &["send", "lose", "enqueue", "dequeue", "drop", "mark", "arrive"];

/// The keys of a file.
pub const FILE: &[Field] = &[
    ruled(
        "title",
        Form::One(Kind::Text),
        "the file's name without its ending",
        "what the experiment is called",
    ),
    ruled("question", Form::One(Kind::Text), "empty", "the question that it answers; heads the report"),
    ruled(
        "metrics",
        Form::Names("metrics"),
        "none",
        "metrics that the table has besides those of every experiment; `aqmlab metrics` lists them all",
    ),
    ruled(
        "duration",
        Form::One(RUN_TIME),
        "`at` of [stop]",
        "when a run ends at the latest; short for `at` of [stop]",
    ),
    default(
        "warmup",
        Form::One(MOMENT),
        Default::Span(Span::ZERO),
        "measurement begins here; before, the network warms up",
    ),
    default(
        "seed",
        // 2^53 - runs: every JSON reader keeps such a number exactly.
        Form::One(Kind::Integer { min: 0, max: 9_007_199_254_640_991 }),
        Default::Integer(1),
        "the first run's seed; the others follow it",
    ),
    default(
        "runs",
        Form::One(Kind::Integer { min: 1, max: 100_000 }),
        Default::Integer(1),
        "runs of each arm, each with a seed of its own, the same seeds for every arm",
    ),
    required("topology", Form::Kinds(TOPOLOGIES), "routers and the links between them"),
    ruled("node", Form::Tables(NODE), "none", "routers of a graph"),
    ruled("link", Form::Tables(LINK), "none", "links of a graph"),
    required("traffic", Form::TablesOfKinds(TRAFFIC_KINDS), "classes of flows that are alike"),
    ruled(
        "delay",
        Form::Tables(DELAY_RULE),
        "none",
        "delay stages at the edge of the network, outside the queues: delay, loss and rate of each flow by rule",
    ),
    ruled(
        "stop",
        Form::Table(STOP),
        "at `duration`",
        "when a run ends: at the first of these that comes true",
    ),
    ruled("record", Form::Table(RECORD), "its defaults", "what to record, how often"),
    ruled(
        "live",
        Form::Table(LIVE),
        "its defaults",
        "how `aqmlab live` runs it; the simulator does not care",
    ),
    ruled(
        "arm",
        Form::Arms,
        "one arm called \"main\"",
        "variations of the above, each run with the same seeds",
    ),
    ruled(
        "sweep",
        Form::Sweep,
        "one case",
        "dotted paths with lists of values: every arm is run with every combination of them",
    ),
    ruled("claim", Form::Tables(CLAIM), "none", "what will come out, to be scored when it has"),
];

/// Keys that hold for the experiment and cannot differ between arms.
pub(crate) const COMMON_TO_ARMS: &[&str] =
    &["title", "question", "metrics", "seed", "runs", "arm", "sweep", "claim"];

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
               a table `hop2` in the topology overrides keys of that hop",
        fields: &[HOPS, ONE_LINK, BACK, ACCESS],
    },
    Variant { kind: "graph", help: "any graph, made of [[node]] and [[link]]", fields: &[ACCESS] },
];

const HOPS: &[Field] = &[required(
    "hops",
    Form::One(Kind::Integer { min: 1, max: MOST_LINKS_OF_A_PATH as u64 }),
    "the number of bottlenecks in a row",
)];

const ONE_LINK: &[Field] = &[
    required("rate", Form::One(RATE), "the bottleneck's rate"),
    required("delay", Form::One(DELAY), "its one-way propagation delay"),
    ruled("queue", Form::Queue, "droptail with its defaults", "the queue from left to right"),
    default("overhead", Form::One(OVERHEAD), Default::Bytes(0), "bytes that the link adds to each packet"),
    ruled("faults", Form::Table(FAULTS), "none", "deterministic accidents on the link from left to right"),
];

const BACK: &[Field] = &[
    ruled("reverse_rate", Form::One(RATE), "as `rate`", "rate from right to left"),
    ruled("reverse_delay", Form::One(DELAY), "as `delay`", "propagation delay from right to left"),
    ruled("reverse_queue", Form::Queue, "droptail with its defaults", "the queue from right to left"),
    ruled(
        "reverse_faults",
        Form::Table(FAULTS),
        "none",
        "deterministic accidents on the link from right to left",
    ),
];

const ACCESS: &[Field] = &[ruled(
    "access_rate",
    Form::OrWord(RATE, "none"),
    "ten times the slowest link of the flow's path",
    "rate of each flow's own access link at both ends; \"none\": flows enter the routers directly",
)];

/// The keys of a hop of a parking lot.
pub const HOP: &[&[Field]] = &[
    &[
        ruled("rate", Form::One(RATE), "as the topology's", "this hop's rate"),
        ruled("delay", Form::One(DELAY), "as the topology's", "its one-way propagation delay"),
        ruled("queue", Form::Queue, "as the topology's", "its queue from left to right"),
        ruled(
            "overhead",
            Form::One(OVERHEAD),
            "as the topology's",
            "bytes that the link adds to each packet",
        ),
        ruled("faults", Form::Table(FAULTS), "as the topology's", "accidents on its link from left to right"),
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
        "the link's name, also of its queue; \
        the way back is called `to`-`from`, or the name with `-reverse`",
    ),
    required("from", Form::Name, "the node that it leaves"),
    required("to", Form::Name, "the node that it reaches"),
    required("rate", Form::One(RATE), "its rate"),
    required("delay", Form::One(DELAY), "its one-way propagation delay"),
    ruled("queue", Form::Queue, "droptail with its defaults", "the queue in front of it"),
    default("overhead", Form::One(OVERHEAD), Default::Bytes(0), "bytes that the link adds to each packet"),
    ruled("faults", Form::Table(FAULTS), "none", "deterministic accidents on the link"),
    default("duplex", Form::One(Kind::Flag), Default::Flag(true), "is there a link back as well?"),
    ruled("reverse_rate", Form::One(RATE), "as `rate`", "rate of the way back"),
    ruled("reverse_delay", Form::One(DELAY), "as `delay`", "propagation delay of the way back"),
    ruled("reverse_queue", Form::Queue, "droptail with its defaults", "the queue of the way back"),
    ruled("reverse_faults", Form::Table(FAULTS), "none", "deterministic accidents on the way back"),
];

/// The keys of `faults`.
pub const FAULTS: &[Field] = &[
    ruled("drop", Form::Arrivals, "none", "arrivals that are lost before the queue sees them"),
    ruled("mark", Form::Arrivals, "none", "arrivals that are marked CE, if ECN-capable"),
];

/// The kinds of traffic.
pub const TRAFFIC_KINDS: &[Variant] = &[
    Variant {
        kind: "bulk",
        help: "TCP connections that send a number of bytes and close, or send for ever",
        fields: &[CLASS, MANY, BULK],
    },
    Variant {
        kind: "on_off_tcp",
        help: "TCP connections that send while they are on, greedily or a burst of bytes, and stay open while they are off",
        fields: &[CLASS, MANY, ON_OFF_TCP],
    },
    Variant {
        kind: "trace",
        help: "TCP connections of a list: when each starts, how many bytes the client sends and how many the server answers",
        fields: &[CLASS, TRACE],
    },
    Variant { kind: "cbr", help: "UDP packets at a constant bit rate", fields: &[CLASS, MANY, PACKETS] },
    Variant { kind: "poisson", help: "UDP packets with exponential gaps", fields: &[CLASS, MANY, PACKETS] },
    Variant {
        kind: "on_off_udp",
        help: "UDP packets at a constant bit rate while on, none while off",
        fields: &[CLASS, MANY, ON_OFF_UDP],
    },
];

const CLASS: &[Field] = &[
    ruled("name", Form::Name, "`traffic` and its number", "the class's name in recordings"),
    ruled("from", Form::Name, "the leftmost router", "the router where the senders are"),
    ruled("to", Form::Name, "the rightmost router", "the router where the receivers are"),
    ruled(
        "rtt",
        Form::Drawn(&TIMES),
        "what the path itself takes",
        "base round-trip time: twice the propagation delay of path and access links; what the path leaves of it is \
         shared evenly by the four access links",
    ),
    ruled("stop", Form::One(MOMENT), "the end of the run", "when each flow stops sending"),
    ruled(
        "access_rate",
        Form::OrWord(RATE, "none"),
        "as the topology's",
        "rate of each flow's own access link at both ends; \"none\": flows enter the routers directly",
    ),
    default(
        "loss",
        Form::One(Kind::Number { min: 0.0, max: 0.99 }),
        Default::Number(0.0),
        "probability that a data packet is lost on its access link",
    ),
];

const MANY: &[Field] = &[
    default("count", Form::One(COUNT), Default::Integer(1), "the number of flows"),
    default("start", Form::Drawn(&TIMES), Default::Span(Span::ZERO), "when each flow starts"),
];

const BULK: &[Field] = &[
    ruled("bytes", Form::OrWord(TRANSFER, "endless"), "\"endless\"", "how much each flow sends"),
    TCP,
    CLASS_LIVE,
];

const PACKETS: &[Field] = &[
    required("rate", Form::One(RATE), "network-layer rate of each flow"),
    default("size", Form::Sizes, Default::Bytes(1000), "packet size, headers included"),
];

/// What a source on and off begins with.
pub(crate) const BEGINS: &[&str] = &["on", "off", "stationary"];

const OFF: &[Field] = &[
    required("off", Form::Drawn(&PERIODS), "lengths of off periods"),
    default(
        "begin",
        Form::One(Kind::Choice(BEGINS)),
        Default::Choice("on"),
        "the first period; \"stationary\": in the middle of one, as if it had gone on for ever",
    ),
];

const ON_OFF_TCP: &[Field] = &[
    ruled(
        "on",
        Form::Drawn(&PERIODS),
        "`burst` says how much",
        "lengths of on periods, in which the sender always has something to send; what has not left at the end of one is \
         withdrawn",
    ),
    ruled(
        "burst",
        Form::Drawn(&TRANSFERS),
        "`on` says how long",
        "bytes of each burst; the off period begins when all of them are acknowledged",
    ),
    OFF[0],
    OFF[1],
    TCP,
    CLASS_LIVE,
];

const TCP: Field = ruled("tcp", Form::Tcp, "the profile `rfc`", "the TCP endpoints");

const CLASS_LIVE: Field = ruled(
    "live",
    Form::Table(LIVE_CLASS),
    "its defaults",
    "what `aqmlab live` asks of the kernel besides what `tcp` says",
);

const TRACE: &[Field] = &[
    required(
        "file",
        Form::One(Kind::Text),
        "a CSV or Parquet file beside the scenario with the columns `start_s` or `start_ns`, `request_bytes`, \
         `response_bytes` and, where wanted, `class`: a connection a row",
    ),
    ruled("class", Form::Name, "all rows", "only rows whose `class` is this"),
    TCP,
    CLASS_LIVE,
];

const ON_OFF_UDP: &[Field] = &[
    required("rate", Form::One(RATE), "network-layer rate of each flow while it is on"),
    default("size", Form::One(PACKET), Default::Bytes(1000), "packet size, headers included"),
    required(
        "on",
        Form::Drawn(&PERIODS),
        "lengths of on periods; each is the nearest whole number of packets, at least one",
    ),
    OFF[0],
    OFF[1],
];

/// The keys of a `[[delay]]`. A packet meets the first rule that it matches at the place where it enters the network,
/// and the first at the place where it leaves.
pub const DELAY_RULE: &[Field] = &[
    ruled("name", Form::Name, "`delay` and its number", "what the rule is called"),
    ruled("class", Form::Name, "all", "packets of flows of this class"),
    ruled("from", Form::Name, "any", "packets that enter the network at this router"),
    ruled("to", Form::Name, "any", "packets that leave it at this router"),
    default(
        "direction",
        Form::One(Kind::Choice(DIRECTIONS)),
        Default::Choice("both"),
        "packets to the end that accepts the connection, packets back, or both",
    ),
    default(
        "at",
        Form::One(Kind::Choice(EDGES)),
        Default::Choice("entry"),
        "where it works: between the flow's own link and the first router, or between the last router and the flow's own \
         link",
    ),
    default(
        "delay",
        Form::Drawn(&TIMES),
        Default::Span(Span::ZERO),
        "added to each packet; one draw a flow and direction",
    ),
    default(
        "jitter",
        Form::One(DELAY),
        Default::Span(Span::ZERO),
        "each packet is delayed up to so much more, uniformly drawn; packets of a flow keep their order",
    ),
    default(
        "loss",
        Form::Drawn(&CHANCES),
        Default::Number(0.0),
        "probability that a packet is lost here; one draw of it a flow and direction",
    ),
    ruled(
        "rate",
        Form::Drawn(&RATES),
        "unlimited",
        "rate at which the packets of a flow leave, behind a buffer without limit; one draw a flow and direction",
    ),
];

/// Which way packets go.
pub(crate) const DIRECTIONS: &[&str] = &["both", "to_receiver", "to_sender"];

/// At which edge of the network.
pub(crate) const EDGES: &[&str] = &["entry", "exit"];

/// The keys of `[stop]`.
pub const STOP: &[Field] = &[
    ruled("at", Form::One(RUN_TIME), "`duration`", "at this time, whatever else"),
    ruled("completed", Form::Table(COMPLETED), "never", "when so many flows of a class have completed"),
    ruled("condition", Form::Table(CONDITION), "never", "when a count at a queue has been reached"),
];

/// The keys of `completed` in `[stop]`.
pub const COMPLETED: &[Field] = &[
    required("class", Form::Name, "the class of flows"),
    required("count", Form::One(COUNT), "how many flows have completed since the end of the warm-up"),
];

/// The keys of `condition` in `[stop]`: one of the quantities, and where.
pub const CONDITION: &[Field] = &[
    required("queue", Form::Name, "the link in front of which the queue is"),
    ruled("arrivals", Form::One(COUNT), "not counted", "packets that arrived since the end of the warm-up"),
    ruled("drops", Form::One(COUNT), "not counted", "packets dropped for any reason since then"),
    ruled("marks", Form::One(COUNT), "not counted", "packets marked since then"),
    ruled("backlog", Form::One(COUNT), "not counted", "packets waiting at one moment"),
];

/// The keys of `[record]`.
pub const RECORD: &[Field] = &[
    default(
        "queues",
        Form::One(INTERVAL),
        Default::Span(Span::ns(S / 10)),
        "interval of queue and law samples; \"0s\": none",
    ),
    default(
        "flows",
        Form::One(INTERVAL),
        Default::Span(Span::ns(S / 2)),
        "interval of samples of each flow; \"0s\": none",
    ),
    ruled(
        "trace",
        Form::Flows,
        "none",
        "TCP flows of which each change of window, threshold, round-trip time and timer is recorded",
    ),
    ruled("packets", Form::Table(PACKET_RECORD), "none", "packets that are recorded one by one"),
    default(
        "limit",
        Form::One(Kind::Integer { min: 1, max: 1_000_000_000 }),
        Default::Integer(2_000_000),
        "most rows of the trace, and of the packets; a run that comes to more ends with an error",
    ),
];

/// The keys of `packets` in `[record]`.
pub const PACKET_RECORD: &[Field] = &[
    ruled("links", Form::Names("links"), "the paths of `flows`", "the links at which packets are recorded"),
    ruled("flows", Form::Flows, "everybody's, at links only", "whose packets, at links and at their hosts"),
    ruled("events", Form::Words(PACKET_EVENTS), "all", "what is recorded of a packet"),
    default("from", Form::One(MOMENT), Default::Span(Span::ZERO), "from when on"),
    ruled("until", Form::One(MOMENT), "the end of the run", "until when"),
];

/// How the live router waits for the next departure.
pub(crate) const WAITS: &[&str] = &["hybrid", "epoll"];

/// The keys of `[live]`.
pub const LIVE: &[Field] = &[
    default(
        "ip",
        Form::One(Kind::Integer { min: 4, max: 6 }),
        Default::Integer(4),
        "version of the Internet Protocol, 4 or 6",
    ),
    default(
        "drain",
        Form::One(Kind::Span { min: Span::ZERO, max: Span::s(60) }),
        Default::Span(Span::s(1)),
        "how long packets under way are still forwarded after the end, before books are closed",
    ),
    default(
        "wait",
        Form::One(Kind::Choice(WAITS)),
        Default::Choice("hybrid"),
        "how the router waits for a departure: asleep, and awake for the last `spin` before it; or asleep to the end",
    ),
    default(
        "spin",
        // A loop that never sleeps under SCHED_FIFO is stopped for 50 ms in each second.
        Form::One(Kind::Span { min: Span::ZERO, max: Span::ms(1) }),
        Default::Span(Span::us(30)),
        "how long before a departure a router that waits \"hybrid\" wakes up",
    ),
];

/// The keys of `live` in a class of TCP connections.
pub const LIVE_CLASS: &[Field] = &[default(
    "congestion",
    Form::Name,
    Default::Choice("reno"),
    "the kernel's congestion control, by its name: `reno`, `cubic`, `bbr`; whether the kernel has it is known when it runs",
)];

/// The keys of an `[[arm]]` besides the dotted paths.
pub const ARM: &[Field] = &[required("name", Form::One(Kind::Text), "the arm's name in tables and plots")];

/// The keys of a `[[sweep.zip]]` besides the dotted paths.
pub const ZIP: &[Field] = &[
    required("name", Form::One(Kind::Text), "the axis' name"),
    ruled("labels", Form::Names("values"), "the values of the first path", "what the values are called"),
];

/// The keys of a `[[sweep.case]]` besides the dotted paths.
pub const CASE: &[Field] = &[required("name", Form::One(Kind::Text), "what the case is called")];

/// The keys of a `[[claim]]`.
pub const CLAIM: &[Field] = &[
    required("name", Form::One(Kind::Text), "the claim's name"),
    ruled("text", Form::One(Kind::Text), "empty", "the claim in words"),
    required("expect", Form::One(Kind::Text), "the claim as an expression over metrics, arms and axes"),
    ruled(
        "where",
        Form::Labels,
        "every axis is named in the expression",
        "labels of axes, `arm`, `queue` or `class` that hold in the whole expression",
    ),
    default(
        "strength",
        Form::One(Kind::Choice(&["firm", "soft"])),
        Default::Choice("firm"),
        "a firm claim that fails makes the command fail",
    ),
    ruled("source", Form::One(Kind::Text), "empty", "where the claim comes from"),
];

/// The key that is not a parameter of a discipline but names it.
pub(crate) const QUEUE_KIND: &str = "kind";

/// The default queue when none is written.
pub(crate) const DEFAULT_QUEUE: &str = "droptail";

/// No distribution of times goes beyond a year.
pub(crate) const ANY_TIME: Kind = MOMENT;

/// Unused buffers cost nothing, but no sum over them may overflow.
pub(crate) const MOST_PACKETS: Packets = Packets::new(1_000_000_000_000);
