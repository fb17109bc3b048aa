//! Keys that several kinds of traffic have.

use aqmlab_params::{Default, Kind};
use aqmlab_units::Span;

use crate::field::{Field, Form, default, ruled};
use crate::language::{COUNT, MOMENT, RATE, STARTS, TIMES};

/// The keys of every class.
pub(super) const CLASS: &[Field] = &[
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

/// The keys of classes with a number of flows.
pub(super) const MANY: &[Field] = &[
    default("count", Form::One(COUNT), Default::Integer(1), "the number of flows"),
    default("start", Form::Drawn(&STARTS), Default::Span(Span::ZERO), "when each flow starts"),
];

pub(super) const TCP: Field = ruled("tcp", Form::Tcp, "the profile `rfc`", "the TCP endpoints");

pub(super) const CLOSES: Field = default(
    "closes",
    Form::One(Kind::Choice(&["last_sender", "client", "server"])),
    Default::Choice("last_sender"),
    "the end that closes a connection first: the end that sends the last data (the server), with that data; or the client, \
     once that data has arrived. The other end closes after it, and the end that closes first waits in TIME-WAIT",
);

pub(super) const ALLOW_OVERLOAD: Field = default(
    "allow_overload",
    Form::One(Kind::Flag),
    Default::Flag(false),
    "`true` allows connections that open at a `rate` to offer a link a load of ten times its rate or more",
);

pub(super) const SHARE: Form = Form::One(Kind::Number { min: 0.0, max: 1.0 });
