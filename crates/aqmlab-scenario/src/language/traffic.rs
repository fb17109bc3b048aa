//! The keys of `[[traffic]]`: the kinds of classes, and the keys of each.

use aqmlab_params::{Alias, Default, Kind};
use aqmlab_traffic::packmime::PackMime;
use aqmlab_units::Span;

use super::quantity::{
    COUNT, COUNTS, EMBEDDED, MOMENT, OBJECTS, ORIGINS, PACKET, PARALLEL, PERIODS, RATE, STARTS, TIMES,
    TRANSFER, TRANSFERS,
};
use crate::field::{Field, Form, Variant, default, required, ruled};

/// The kinds of traffic.
pub const TRAFFIC_KINDS: &[Variant] = &[
    Variant {
        kind: "bulk",
        help: "TCP connections that send a given number of bytes and close, or send forever",
        fields: &[CLASS, MANY, BULK],
    },
    Variant {
        kind: "on_off_tcp",
        help: "TCP connections that send during on periods, either greedily or one burst of bytes per period, and stay open during off periods",
        fields: &[CLASS, MANY, ON_OFF_TCP],
    },
    Variant {
        kind: "requests",
        help: "TCP connections that carry requests and responses, one exchange after another, opened at a \
               rate or by users with think times",
        fields: &[CLASS, REQUESTS],
    },
    Variant {
        kind: "packmime",
        help: "TCP connections of web users, as PackMime-HTTP draws them: their opening times, their requests and \
               responses, and the delays of clients and servers",
        fields: &[CLASS, PACKMIME],
    },
    Variant {
        kind: "pages",
        help: "TCP connections of users who fetch web pages typical of 2025: several connections per page, with many \
               requests at a time on each",
        fields: &[CLASS, PAGES],
    },
    Variant {
        kind: "browsers",
        help: "TCP connections of users with browsers from around 2000, following the UNC model of HTTP traffic: \
               one page at a time, over parallel connections with one request at a time on each",
        fields: &[CLASS, BROWSERS, BROWSER_MODEL],
    },
    Variant {
        kind: "trace",
        help: "TCP connections from a list: the start of each, and the bytes that client and server send, exchange by \
               exchange",
        fields: &[CLASS, TRACE],
    },
    Variant {
        kind: "cbr",
        help: "UDP packets at a constant bit rate",
        fields: &[CLASS, MANY, PACKETS, CBR, UDP],
    },
    Variant {
        kind: "poisson",
        help: "UDP packets with exponential gaps",
        fields: &[CLASS, MANY, PACKETS, UDP],
    },
    Variant {
        kind: "on_off_udp",
        help: "UDP packets at a constant bit rate during on periods, none during off periods",
        fields: &[CLASS, MANY, ON_OFF_UDP, UDP],
    },
    Variant {
        kind: "schedule",
        help: "UDP packets from a list, sent whatever the state of the network: the list gives the departure time of \
               each packet, its size, its ECN field and its flow",
        fields: &[CLASS, SCHEDULE],
    },
];

const CLASS: &[Field] = &[
    ruled("name", Form::Name, "`traffic` and its number", "the class's name in recordings"),
    ruled(
        "enabled",
        Form::One(Kind::Flag),
        "true",
        "`false` leaves out the class, and the delay stages that name it; useful in arms and sweeps",
    ),
    ruled("from", Form::Name, "the leftmost router", "the router where the senders are"),
    ruled("to", Form::Name, "the rightmost router", "the router where the receivers are"),
    ruled(
        "rtt",
        Form::Drawn(&TIMES),
        "the round-trip time of the path itself",
        "base round-trip time: twice the propagation delay of path and access links; the access links (one per \
         direction at each end that has them) evenly share the part that exceeds the path's own round-trip \
         time",
    ),
    ruled("stop", Form::One(MOMENT), "the end of the run", "when each flow stops sending"),
    ruled(
        "access_rate",
        Form::OrWord(RATE, "none"),
        "the topology's value",
        "rate of each flow's own access links at both ends; with \"none\", flows enter the routers directly",
    ),
    ruled(
        "access_at",
        Form::One(Kind::Choice(&["both", "sender", "receiver"])),
        "\"both\"",
        "the ends of a flow that have access links; at the other end, the host is at the router itself",
    ),
    ruled(
        "dscp",
        Form::One(Kind::Dscp),
        "0, best effort",
        "differentiated services code point (DSCP) of each packet, in both directions",
    ),
    ruled(
        "port",
        Form::One(Kind::Integer { min: 1, max: 65_535 }),
        "5001",
        "port number at the server's end of each flow; a queue with classes can classify packets by it",
    ),
    default(
        "loss",
        Form::One(Kind::Number { min: 0.0, max: 0.99 }),
        Default::Number(0.0),
        "probability that a packet which the sender (the end that opens the connection) sends is lost on the sender's \
         access link: data, requests, acknowledgments of responses, datagrams; packets towards the sender are never lost \
         there",
    ),
];

const MANY: &[Field] = &[
    default("count", Form::One(COUNT), Default::Integer(1), "the number of flows"),
    default("start", Form::Drawn(&STARTS), Default::Span(Span::ZERO), "when each flow starts"),
];

const BULK: &[Field] =
    &[ruled("bytes", Form::OrWord(TRANSFER, "endless"), "\"endless\"", "how much each flow sends"), TCP];

const PACKETS: &[Field] = &[
    required("rate", Form::One(RATE), "network-layer rate of each flow"),
    default("size", Form::Sizes, Default::Bytes(1000), "packet size, headers included"),
];

const CBR: &[Field] = &[default(
    "random_gaps",
    Form::One(Kind::Flag),
    Default::Flag(false),
    "each gap is drawn separately, uniformly from 0.5 to 1.5 times the constant gap",
)
.known_as(&[Alias::new("ns-2", "random_")])];

/// The ECN fields that a source may set on all its packets.
pub(crate) const ECN: &[&str] = &["not-ect", "ect0", "ect1"];

const UDP: &[Field] = &[default(
    "ecn",
    Form::One(Kind::Choice(ECN)),
    Default::Choice("not-ect"),
    "the ECN field of each packet: queues mark packets whose field is \"ect0\" or \"ect1\" instead of dropping them, and senders \
     do not react",
)];

const SCHEDULE: &[Field] = &[required(
    "file",
    Form::One(Kind::Text),
    "a CSV or Parquet file next to the scenario with the columns `time_s` or `time_ns` (since the run's beginning), \
     `size_bytes` (headers included) and, optionally, `ecn` (`not-ect`, `ect0`, `ect1`, `ce`) and `flow` (0, 1, ..): one \
     packet per row",
)];

/// The initial states of an on/off source.
pub(crate) const BEGINS: &[&str] = &["on", "off", "stationary"];

const OFF: &[Field] = &[
    required("off", Form::Drawn(&PERIODS), "lengths of off periods"),
    default(
        "begin",
        Form::One(Kind::Choice(BEGINS)),
        Default::Choice("on"),
        "the first period; with \"stationary\", a flow starts in the middle of a period, as if it had always been running",
    ),
];

const ON_OFF_TCP: &[Field] = &[
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

const TCP: Field = ruled("tcp", Form::Tcp, "the profile `rfc`", "the TCP endpoints");

const ALLOW_OVERLOAD: Field = default(
    "allow_overload",
    Form::One(Kind::Flag),
    Default::Flag(false),
    "`true` allows connections that open at a `rate` to offer a link a load of ten times its rate or more",
);

const REQUESTS: &[Field] = &[
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
    ALLOW_OVERLOAD,
    TCP,
];

/// The largest bound on responses that a file may give: no run lasts long enough to send as much.
const MOST_OF_A_RESPONSE: u64 = 1 << 50;

/// The choices for how often pauses on persistent connections are drawn.
pub(crate) const PAUSES: &[&str] = &["connection", "cloud"];

const PACKMIME: &[Field] = &[
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
    ALLOW_OVERLOAD,
    TCP,
];

/// The devices for which the Web Almanac has crawls.
pub(crate) const DEVICES: &[&str] = &["desktop", "mobile"];

/// How long the connections of a page stay open.
pub(crate) const CONNECTIONS: &[&str] = &["page", "kept"];

const SHARE: Form = Form::One(Kind::Number { min: 0.0, max: 1.0 });

const PAGES: &[Field] = &[
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

const BROWSERS: &[Field] = &[
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
    TCP,
];

const AS_MODEL: &str = "from the model";

/// The keys of a model of browsers.
pub(crate) const BROWSER_MODEL: &[Field] = &[
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
pub(crate) const MODEL_FILE: &[Field] = &[
    required("title", Form::One(Kind::Text), "the model's name"),
    required("source", Form::One(Kind::Text), "the source of the distributions"),
];

/// What happens to connections of a trace that cannot be expressed.
const ON_UNSUPPORTED: &[&str] = &["refuse", "skip"];

const TRACE: &[Field] = &[
    required(
        "file",
        Form::One(Kind::Text),
        "a CSV or Parquet file next to the scenario with the columns `start_s` or `start_ns`, \
         `request_bytes`, `response_bytes` and, optionally, `class`: one connection per row; or connection \
         vectors, one exchange per row; or a file for Tmix (`.cvec`, `.tcvec`, `.ns`)",
    ),
    ruled("class", Form::Name, "all rows", "only the rows with this `class` are used"),
    default(
        "on_unsupported",
        Form::One(Kind::Choice(ON_UNSUPPORTED)),
        Default::Choice("refuse"),
        "connections of a file for Tmix that cannot be expressed, such as concurrent ones: the file is refused, or \
         they are skipped and counted",
    ),
    TCP,
];

const ON_OFF_UDP: &[Field] = &[
    required("rate", Form::One(RATE), "network-layer rate of each flow during on periods"),
    default("size", Form::One(PACKET), Default::Bytes(1000), "packet size, headers included"),
    required(
        "on",
        Form::Drawn(&PERIODS),
        "lengths of on periods; each is rounded to the nearest whole number of packets, at least one",
    ),
    OFF[0],
    OFF[1],
];
