//! Reading a class of traffic: the part that depends on its kind.

use aqmlab_params::{Origin, Value};
use aqmlab_units::Span;

use crate::closes::Closes;
use crate::field::PER_SECOND;
use crate::pass::{Pass, Section};
use crate::tree::Tree;

/// What the kind of a class determines before the class's path and access links are read.
pub(crate) struct Reading<T> {
    /// The number of flows, connections or users.
    pub(crate) count: Option<u64>,
    /// When each flow starts, if a file lists the flows.
    pub(crate) starts: Option<Vec<Span>>,
    /// If connections have delays of their own, their mean contribution to the round-trip time, and the rule
    /// for the class's `rtt`.
    pub(crate) own_delays: Option<(Span, &'static str)>,
    /// Reads the other keys, and returns the traffic.
    pub(crate) rest: Rest<T>,
}

type Rest<T> = Box<dyn FnOnce(&mut Pass<'_, '_>, &Section<'_>) -> Option<T>>;

impl<T: 'static> Reading<T> {
    pub(super) fn new(
        count: Option<u64>,
        rest: impl FnOnce(&mut Pass<'_, '_>, &Section<'_>) -> Option<T> + 'static,
    ) -> Self {
        Reading { count, starts: None, own_delays: None, rest: Box::new(rest) }
    }

    /// Returns the reading of a class whose flows a file lists with these starts.
    pub(super) fn listed(
        starts: Vec<Span>,
        rest: impl FnOnce(&mut Pass<'_, '_>, &Section<'_>) -> Option<T> + 'static,
    ) -> Self {
        Reading { starts: Some(starts.clone()), ..Reading::new(Some(starts.len() as u64), rest) }
    }

    /// Returns the reading of traffic in general.
    pub(super) fn map<U: 'static>(self, traffic: fn(T) -> U) -> Reading<U> {
        let Reading { count, starts, own_delays, rest } = self;
        Reading {
            count,
            starts,
            own_delays,
            rest: Box::new(move |pass, section| rest(pass, section).map(traffic)),
        }
    }
}

/// Returns the number of connections per second at a key.
pub(super) fn per_second(pass: &mut Pass<'_, '_>, section: &Section<'_>, key: &str) -> Option<f64> {
    let Some(node) = section.node(key) else {
        pass.missing(section, section.field(key));
        return None;
    };
    let (path, quoted) = (section.sub(key), pass.report.quote(&node.at));
    let Tree::Text(text) = &node.value else {
        let message = match &node.value {
            Tree::Integer(_) | Tree::Float(_) => format!("`{quoted}` has no unit; write {PER_SECOND}"),
            other => format!("`{quoted}` is {}; write {PER_SECOND}", other.what()),
        };
        pass.error(&node.at, &path, message);
        return None;
    };
    let number = text.trim().strip_suffix("/s").and_then(|number| number.trim().parse::<f64>().ok());
    let Some(per_second) = number.filter(|n| (1e-6..=1e9).contains(n)) else {
        let what = if number.is_some() { "out of range" } else { "not a number per second" };
        pass.error(&node.at, &path, format!("`{quoted}` is {what}; write {PER_SECOND}"));
        return None;
    };
    pass.enter(section, key, &format!("{per_second}/s"), Origin::Given);
    Some(per_second)
}

/// Returns the end that closes a connection first.
pub(super) fn closes(pass: &mut Pass<'_, '_>, section: &Section<'_>) -> Option<Closes> {
    Some(match pass.value(section, "closes")? {
        Value::Choice("client") => Closes::Client,
        Value::Choice("server") => Closes::Server,
        Value::Choice("file") => Closes::File,
        _ => Closes::LastSender,
    })
}

/// Returns the name of the file that lists what a class of traffic sends.
pub(super) fn list_file(pass: &mut Pass<'_, '_>, section: &Section<'_>) -> Option<String> {
    if section.node("file").is_some() {
        return pass.text(section, "file");
    }
    let message = "`file` is missing; write the name of a CSV or Parquet file next to the scenario";
    pass.error(&section.at, &section.path, message);
    None
}
