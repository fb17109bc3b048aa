//! `trace`: TCP connections from a list.

use std::ops::Not;
use std::sync::Arc;

use aqmlab_params::{Default, Kind, Origin, Value};
use aqmlab_traffic::{ListedExchanges, SingleExchange};
use schemars::JsonSchema;
use serde::Serialize;

use super::delays::{DelaysFrom, OwnDelays};
use super::fields::{CLASS, TCP};
use super::kind::{Carries, Part, Start, Tcp, TrafficKind};
use super::reading::{Reading, list_file};
use super::source::FlowSource;
use crate::closes::Closes;
use crate::field::{Field, Form, Variant, default, required, ruled};
use crate::pass::{Pass, Section};
use crate::trace::{OnUnsupported, Trace};

/// A list of connections; each is a flow.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct TracedConnections {
    /// The list.
    #[serde(flatten)]
    pub trace: Arc<Trace>,
    /// Whether each connection has its own delays, which the list gives; otherwise the class's
    /// `rtt` applies.
    #[serde(skip_serializing_if = "Not::not")]
    pub own_delays: bool,
    /// The end that closes each connection first; without this key, the end that sends the last data.
    #[serde(skip_serializing_if = "Closes::is_last_sender")]
    pub closes: Closes,
    /// The endpoints' parameters.
    pub tcp: Tcp,
}

const EXCHANGE: Part = ("traffic.exchange", SingleExchange::VERSION);
pub(super) const PARTS: &[Part] = &[EXCHANGE, ("traffic.listed", ListedExchanges::VERSION)];

/// What happens to connections of a trace that cannot be expressed.
const ON_UNSUPPORTED: &[&str] = &["refuse", "skip"];

/// The end that closes first.
const CLOSES: &[&str] = &["last_sender", "client", "server", "file"];

const FIELDS: &[Field] = &[
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
    default(
        "closes",
        Form::One(Kind::Choice(CLOSES)),
        Default::Choice("last_sender"),
        "the end that closes a connection first: the end that sends the last data, with that data; the client or the \
         server, which closes once the last data has been sent or has arrived; or the end that a file for Tmix gives. The \
         other end closes after it, and the end that closes first waits in TIME-WAIT",
    ),
    TCP,
];

pub(super) const KIND: Variant = Variant {
    kind: "trace",
    help: "TCP connections from a list: the start of each, and the bytes that client and server send, exchange by \
           exchange",
    fields: &[CLASS, FIELDS],
};

pub(super) fn read(pass: &mut Pass<'_, '_>, section: &Section<'_>) -> Option<Reading<TracedConnections>> {
    let trace = trace(pass, section)?;
    let closes = closes(pass, section, &trace);
    let rule = "the path's propagation delay plus the mean of the delays in the trace";
    let own_delays = trace.mean_delays().map(|mean| (mean, rule));
    let reading = Reading::listed(trace.starts().collect(), move |pass, section| {
        let tcp = pass.tcp(section)?;
        let own_delays = trace.has_delays() && section.node("rtt").is_none();
        Some(TracedConnections { trace, own_delays, closes: closes?, tcp })
    });
    Some(Reading { own_delays, ..reading })
}

/// Returns the trace of a class, and adds the number of its connections to the effective
/// parameters.
fn trace(pass: &mut Pass<'_, '_>, section: &Section<'_>) -> Option<Arc<Trace>> {
    let file = list_file(pass, section)?;
    let class = match section.node("class") {
        Some(_) => Some(pass.name(section, "class")?),
        None => None,
    };
    if let Some(class) = &class {
        pass.enter(section, "class", class, Origin::Given);
    }
    let unsupported = match pass.value(section, "on_unsupported")? {
        Value::Choice("skip") => OnUnsupported::Skip,
        _ => OnUnsupported::Refuse,
    };
    match pass.traces.read(&file, class.as_deref(), unsupported) {
        Ok(trace) => {
            let rule = Origin::Derived("the rows of the trace".into());
            let help = "connections of the trace";
            pass.enter_at(section.sub("count"), &trace.starts().len(), rule.clone(), help);
            for (what, count) in trace.left_out.kinds() {
                let help = "connections of the file that cannot be expressed";
                pass.enter_at(section.sub(&format!("left_out.{what}")), &count, rule.clone(), help);
            }
            pass.enter_at(section.sub("digest"), &trace.digest, rule, "SHA-256 of the trace's file");
            Some(trace)
        }
        Err(message) => {
            pass.error(&section.at("file"), &section.sub("file"), message);
            None
        }
    }
}

fn closes(pass: &mut Pass<'_, '_>, section: &Section<'_>, trace: &Trace) -> Option<Closes> {
    let closes = super::reading::closes(pass, section)?;
    if closes == Closes::File && !trace.says_who_closes() {
        let message = format!(
            "the trace `{}` does not say which end closes a connection; write \"client\", \"server\" or \
             \"last_sender\", or name a file for Tmix that has lines with 0 bytes",
            trace.file
        );
        pass.error(&section.at("closes"), &section.sub("closes"), message);
        return None;
    }
    Some(closes)
}

impl TrafficKind for TracedConnections {
    fn carries(&self) -> Carries<'_> {
        Carries::Sessions(&self.tcp)
    }

    fn uses(&self, all: &'static [Part]) -> &'static [Part] {
        if self.trace.has_vectors() { all } else { &[EXCHANGE] }
    }

    fn source(&self, start: Start<'_>) -> FlowSource {
        FlowSource::Session(self.trace.session(start.of.index() as usize, self.closes))
    }

    fn data_of(&self) -> [bool; 2] {
        let exchanges = self.trace.exchanges();
        [exchanges.iter().any(|of| of.request > 0), exchanges.iter().any(|of| of.response > 0)]
    }

    fn completes(&self) -> bool {
        true
    }

    fn own_delays(&self) -> Option<OwnDelays<'_>> {
        let delays = OwnDelays { from: DelaysFrom::Trace(&self.trace), apply: self.own_delays };
        self.trace.has_delays().then_some(delays)
    }

    fn is_from_file(&self) -> bool {
        true
    }

    fn vectors_flaw(&self, _class: &str) -> Option<String> {
        None
    }
}
