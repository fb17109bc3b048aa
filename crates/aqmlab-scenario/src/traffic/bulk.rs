//! `bulk`: TCP connections that send a given number of bytes and close, or send forever.

use aqmlab_params::Origin;
use aqmlab_traffic::Act;
use aqmlab_units::Bytes;
use schemars::JsonSchema;
use serde::Serialize;

use super::fields::{CLASS, MANY, TCP};
use super::kind::{Carries, Part, Start, Tcp, TrafficKind};
use super::reading::Reading;
use super::source::FlowSource;
use crate::field::{Field, Form, OURS, Variant, ruled};
use crate::language::TRANSFER;
use crate::pass::{Pass, Section};
use crate::tree::{Node, Tree};

/// A TCP connection that sends `bytes` and closes, or sends forever.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct Bulk {
    /// How much each flow sends, if it ever ends.
    pub bytes: Option<Bytes>,
    /// The endpoints' parameters.
    pub tcp: Tcp,
}

/// Transfers have no version, because they are only a list of starts.
pub(super) const PARTS: &[Part] = &[];

const FIELDS: &[Field] =
    &[ruled("bytes", Form::OrWord(TRANSFER, "endless"), "\"endless\"", "how much each flow sends"), TCP];

pub(super) const KIND: Variant = Variant {
    kind: "bulk",
    help: "TCP connections that send a given number of bytes and close, or send forever",
    fields: &[CLASS, MANY, FIELDS],
};

pub(super) fn read(pass: &mut Pass<'_, '_>, section: &Section<'_>) -> Option<Reading<Bulk>> {
    Some(Reading::new(pass.integer(section, "count"), |pass, section| {
        let bytes = bytes(pass, section);
        let tcp = pass.tcp(section)?;
        Some(Bulk { bytes: bytes?, tcp })
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
        Carries::Stream(&self.tcp)
    }

    fn source(&self, _start: Start<'_>) -> FlowSource {
        FlowSource::Stream(self.bytes.map_or(Act::WriteEndlessly, |bytes| Act::WriteLast(bytes.get())))
    }

    fn completes(&self) -> bool {
        self.bytes.is_some()
    }
}
