//! The keys of a run: its end, what it records, and its live operation.

use aqmlab_params::{Default, Kind};
use aqmlab_units::Span;

use super::quantity::{COUNT, INTERVAL, MOMENT, RUN_TIME, TRANSFER};
use crate::field::{Field, Form, default, required, ruled};
use crate::plan::RequestPlan;

/// The quantities that a stop condition can count.
pub(crate) const QUANTITIES: &[&str] = &["arrivals", "drops", "marks", "backlog"];

/// The keys of `[stop]`.
pub const STOP: &[Field] = &[
    ruled("at", Form::One(RUN_TIME), "`duration`", "at this time, regardless of the other conditions"),
    ruled(
        "completed",
        Form::Table(COMPLETED),
        "never",
        "when this many flows or requests of some classes have completed",
    ),
    ruled("condition", Form::Table(CONDITION), "never", "when a count at a queue reaches a given number"),
];

/// The keys of `completed` in `[stop]`.
pub const COMPLETED: &[Field] = &[
    required(
        "class",
        Form::NameOrNames("classes"),
        "the classes whose flows or requests are counted; the counts of several classes are added up",
    ),
    ruled(
        "count",
        Form::One(COUNT),
        "`requests` are counted",
        "number of flows that have completed since the end of the warm-up",
    ),
    ruled(
        "requests",
        Form::One(COUNT),
        "flows are counted",
        "number of requests whose responses have completed since the end of the warm-up, in classes that make requests",
    ),
];

/// The keys of `condition` in `[stop]`: the queue, and one of the quantities.
pub const CONDITION: &[Field] = &[
    required("queue", Form::Name, "the link whose queue is observed"),
    ruled(
        "arrivals",
        Form::One(COUNT),
        "not counted",
        "packets that have arrived since the end of the warm-up",
    ),
    ruled(
        "drops",
        Form::One(COUNT),
        "not counted",
        "packets dropped for any reason since the end of the warm-up",
    ),
    ruled("marks", Form::One(COUNT), "not counted", "packets marked since the end of the warm-up"),
    ruled("backlog", Form::One(COUNT), "not counted", "packets waiting at the same time"),
];

/// The recordable events of a packet.
pub(crate) const PACKET_EVENTS: &[&str] =
    &["send", "lose", "enqueue", "dequeue", "receive", "drop", "mark", "arrive"];

/// The keys of `[record]`.
pub const RECORD: &[Field] = &[
    default(
        "queues",
        Form::One(INTERVAL),
        Default::Span(Span::ms(100)),
        "interval between samples of queues and laws; \"0s\": no samples",
    ),
    default(
        "flows",
        Form::One(INTERVAL),
        Default::Span(Span::ms(500)),
        "interval between samples of each flow; \"0s\": no samples",
    ),
    ruled(
        "trace",
        Form::Flows,
        "none",
        "TCP flows for which each change in window, threshold, round-trip time and timer is recorded",
    ),
    ruled("packets", Form::Table(PACKET_RECORD), "none", "packets that are recorded one by one"),
    ruled(
        "requests",
        Form::Table(REQUEST_RECORD),
        "the defaults of its keys",
        "how requests are recorded, for classes that make requests",
    ),
    default(
        "limit",
        Form::One(Kind::Integer { min: 1, max: 1_000_000_000 }),
        Default::Integer(2_000_000),
        "largest number of rows in the trace and in the packet recording; a run that exceeds it ends with an error",
    ),
];

/// The keys of `packets` in `[record]`.
pub const PACKET_RECORD: &[Field] = &[
    ruled("links", Form::Names("links"), "the paths of `flows`", "the links at which packets are recorded"),
    ruled(
        "flows",
        Form::Flows,
        "all flows, at links only",
        "the flows whose packets are recorded, at links and at their hosts",
    ),
    ruled("events", Form::Words(PACKET_EVENTS), "all", "the recorded events of a packet"),
    default("from", Form::One(MOMENT), Default::Span(Span::ZERO), "beginning of the recording"),
    ruled("until", Form::One(MOMENT), "the end of the run", "end of the recording"),
];

/// The keys of `requests` in `[record]`.
pub const REQUEST_RECORD: &[Field] = &[
    default(
        "each",
        Form::One(Kind::Flag),
        Default::Flag(RequestPlan::DEFAULT.each),
        "whether there is a row per request",
    ),
    default(
        "first_band",
        Form::One(TRANSFER),
        Default::Bytes(RequestPlan::DEFAULT.first_band.get()),
        "upper limit of the first size band of responses",
    ),
    default(
        "band_factor",
        Form::One(Kind::Integer { min: 2, max: 1000 }),
        Default::Integer(RequestPlan::DEFAULT.band_factor),
        "ratio of the upper limits of successive bands",
    ),
    default(
        "bands",
        Form::One(Kind::Integer { min: 1, max: 64 }),
        Default::Integer(RequestPlan::DEFAULT.bands as u64),
        "number of size bands; the last has no upper limit",
    ),
    default(
        "sample",
        Form::One(Kind::Integer { min: 0, max: 1_000_000 }),
        Default::Integer(RequestPlan::DEFAULT.sample as u64),
        "largest number of completed requests in the sample of each class",
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
        "how long packets in flight are still forwarded after the end of the run, before the books are closed",
    ),
    default(
        "wait",
        Form::One(Kind::Choice(WAITS)),
        Default::Choice("hybrid"),
        "how the router waits for a departure: \"hybrid\" sleeps until `spin` before it, then spins; \"epoll\" sleeps until the departure",
    ),
    default(
        "spin",
        // Under SCHED_FIFO, a loop that never sleeps is stopped for 50 ms in each second.
        Form::One(Kind::Span { min: Span::ZERO, max: Span::ms(1) }),
        Default::Span(Span::us(30)),
        "how long before a departure a router with wait \"hybrid\" wakes up",
    ),
    default(
        "offload",
        Form::One(Kind::Flag),
        Default::Flag(false),
        "whether hosts and router exchange several segments at a time, as with a network card that splits (TSO) and joins (GRO) segments",
    ),
];
