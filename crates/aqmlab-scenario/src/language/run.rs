//! A run: when it ends, what is recorded of it, how it is run live.

use aqmlab_params::{Default, Kind};
use aqmlab_units::Span;

use super::quantity::{COUNT, INTERVAL, MOMENT, RUN_TIME, TRANSFER};
use crate::field::{Field, Form, default, required, ruled};
use crate::plan::RequestPlan;

/// The kinds of quantity that a stop condition counts.
pub(crate) const QUANTITIES: &[&str] = &["arrivals", "drops", "marks", "backlog"];

/// The keys of `[stop]`.
pub const STOP: &[Field] = &[
    ruled("at", Form::One(RUN_TIME), "`duration`", "at this time, whatever else"),
    ruled(
        "completed",
        Form::Table(COMPLETED),
        "never",
        "when so many flows or requests of some classes have completed",
    ),
    ruled("condition", Form::Table(CONDITION), "never", "when a count at a queue has been reached"),
];

/// The keys of `completed` in `[stop]`.
pub const COMPLETED: &[Field] = &[
    required("class", Form::NameOrNames("classes"), "whose are counted; of several classes together"),
    ruled(
        "count",
        Form::One(COUNT),
        "`requests` are counted",
        "how many flows have completed since the end of the warm-up",
    ),
    ruled(
        "requests",
        Form::One(COUNT),
        "flows are counted",
        "how many requests have been answered to the last byte since then, of classes that make some",
    ),
];

/// The keys of `condition` in `[stop]`: one of the quantities, and where.
pub const CONDITION: &[Field] = &[
    required("queue", Form::Name, "the link in front of which the queue is"),
    ruled("arrivals", Form::One(COUNT), "not counted", "packets that arrived since the end of the warm-up"),
    ruled("drops", Form::One(COUNT), "not counted", "packets dropped for any reason since then"),
    ruled("marks", Form::One(COUNT), "not counted", "packets marked since then"),
    ruled("backlog", Form::One(COUNT), "not counted", "packets waiting at one moment"),
];

/// What is recorded of a packet.
pub(crate) const PACKET_EVENTS: &[&str] = &["send", "lose", "enqueue", "dequeue", "drop", "mark", "arrive"];

/// The keys of `[record]`.
pub const RECORD: &[Field] = &[
    default(
        "queues",
        Form::One(INTERVAL),
        Default::Span(Span::ms(100)),
        "interval of queue and law samples; \"0s\": none",
    ),
    default(
        "flows",
        Form::One(INTERVAL),
        Default::Span(Span::ms(500)),
        "interval of samples of each flow; \"0s\": none",
    ),
    ruled(
        "trace",
        Form::Flows,
        "none",
        "TCP flows of which each change of window, threshold, round-trip time and timer is recorded",
    ),
    ruled("packets", Form::Table(PACKET_RECORD), "none", "packets that are recorded one by one"),
    ruled(
        "requests",
        Form::Table(REQUEST_RECORD),
        "the defaults of its keys",
        "how the requests of classes that make some are recorded",
    ),
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

/// The keys of `requests` in `[record]`.
pub const REQUEST_RECORD: &[Field] = &[
    default(
        "each",
        Form::One(Kind::Flag),
        Default::Flag(RequestPlan::DEFAULT.each),
        "whether there is a row for each request",
    ),
    default(
        "first_band",
        Form::One(TRANSFER),
        Default::Bytes(RequestPlan::DEFAULT.first_band.get()),
        "responses smaller than this are the first size band",
    ),
    default(
        "band_factor",
        Form::One(Kind::Integer { min: 2, max: 1000 }),
        Default::Integer(RequestPlan::DEFAULT.band_factor),
        "how many times the sizes of a band are those of the band before",
    ),
    default(
        "bands",
        Form::One(Kind::Integer { min: 1, max: 64 }),
        Default::Integer(RequestPlan::DEFAULT.bands as u64),
        "number of size bands; the last has no upper end",
    ),
    default(
        "sample",
        Form::One(Kind::Integer { min: 0, max: 1_000_000 }),
        Default::Integer(RequestPlan::DEFAULT.sample as u64),
        "completed requests in the sample of each class, at most",
    ),
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
