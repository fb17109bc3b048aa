//! `bulk`: TCP connections that send a given number of bytes and close, or send forever.

use std::ops::Not;

use aqmlab_params::{Default, Kind, Origin};
use aqmlab_traffic::{Act, End, Session, SingleExchange};
use aqmlab_units::Bytes;
use schemars::JsonSchema;
use serde::Serialize;

use super::fields::{CLASS, MANY, TCP};
use super::kind::{Carries, Part, Start, Tcp, TrafficKind};
use super::reading::{Reading, closes};
use super::source::FlowSource;
use crate::closes::Closes;
use crate::field::{Field, Form, OURS, Variant, default, ruled};
use crate::language::TRANSFER;
use crate::pass::{Pass, Section};
use crate::tree::{Node, Tree};

/// A TCP connection that sends `bytes` and closes, or sends forever.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Bulk {
    /// How much each flow sends, if it ever ends.
    pub bytes: Option<Bytes>,
    /// Whether the server closes a connection first, once all data has arrived.
    #[serde(skip_serializing_if = "Not::not")]
    pub server_closes: bool,
    /// The endpoints' parameters.
    pub tcp: Tcp,
}

/// Transfers have no version, because they are only a list of starts.
pub(super) const PARTS: &[Part] = &[];

const FIELDS: &[Field] = &[
    ruled("bytes", Form::OrWord(TRANSFER, "endless"), "\"endless\"", "how much each flow sends"),
    default(
        "closes",
        Form::One(Kind::Choice(&["client", "server"])),
        Default::Choice("client"),
        "the end that closes a connection first: the client, with its last data, or the server, once all data has arrived. \
         The other end closes after it, and the end that closes first waits in TIME-WAIT",
    ),
    TCP,
];

pub(super) const KIND: Variant = Variant {
    kind: "bulk",
    help: "TCP connections that send a given number of bytes and close, or send forever",
    fields: &[CLASS, MANY, FIELDS],
};

pub(super) fn read(pass: &mut Pass<'_, '_>, section: &Section<'_>) -> Option<Reading<Bulk>> {
    Some(Reading::new(pass.integer(section, "count"), |pass, section| {
        let bytes = bytes(pass, section);
        let closes = closes(pass, section);
        let tcp = pass.tcp(section)?;
        let (bytes, server_closes) = (bytes?, closes? == Closes::Server);
        if server_closes && bytes.is_none() {
            let message = "the server closes once all data has arrived, but flows without `bytes` send forever; write \
                           `bytes`, or leave `closes` out";
            pass.error(&section.at("closes"), &section.sub("closes"), message);
            return None;
        }
        Some(Bulk { bytes, server_closes, tcp })
    }))
}

/// Returns how much each flow sends: an outer `None` means a mistake, an inner `None` no end.
fn bytes(pass: &mut Pass<'_, '_>, section: &Section<'_>) -> Option<Option<Bytes>> {
    match section.node("bytes") {
        Some(Node { value: Tree::Text(word), .. }) if word == "endless" => {
            pass.enter(section, "bytes", &"endless", Origin::Given);
            Some(None)
        }
        Some(_) => pass.bytes(section, "bytes").map(Some),
        None => {
            pass.enter(section, "bytes", &"endless", Origin::Default(OURS));
            Some(None)
        }
    }
}

impl TrafficKind for Bulk {
    fn carries(&self) -> Carries<'_> {
        if self.server_closes { Carries::Sessions(&self.tcp) } else { Carries::Stream(&self.tcp) }
    }

    fn source(&self, _start: Start<'_>) -> FlowSource {
        match self.bytes {
            Some(bytes) if self.server_closes => {
                let session = SingleExchange::new(bytes, Bytes::ZERO).closed_by(End::Server);
                FlowSource::Session(Session::Single(session))
            }
            Some(bytes) => FlowSource::Stream(Act::WriteLast(bytes.get())),
            None => FlowSource::Stream(Act::WriteEndlessly),
        }
    }

    fn completes(&self) -> bool {
        self.bytes.is_some()
    }
}
