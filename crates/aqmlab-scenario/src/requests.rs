//! `requests` and `packmime`: connections that carry exchanges, opened at a rate, by users or by a cloud.

use std::sync::Arc;

use aqmlab_params::{Origin, Value};
use aqmlab_traffic::packmime::{HostDelay, PausesOf};
use aqmlab_traffic::{Distribution, End, ExchangePlan, Gaps};
use aqmlab_units::{Bytes, Span};

use crate::field::{OURS, PER_SECOND};
use crate::pass::{Pass, Section};
use crate::plan::{ClassPlan, CloudPlan, PopulationPlan, Sessions, Workload};
use crate::tree::Tree;

/// Returns the mean of the round-trip delays that the clients and servers of PackMime-HTTP add.
pub(crate) fn mean_delays() -> Span {
    End::ALL.into_iter().fold(Span::ZERO, |sum, end| sum + HostDelay::mean(end) * 2)
}

/// Returns whether a class of traffic is a cloud.
pub(crate) fn is_cloud(section: &Section<'_>) -> bool {
    section.fields.iter().any(|field| field.name == "pauses")
}

impl Pass<'_, '_> {
    /// Returns the population that opens the connections of a `requests` class, and the number of flows of
    /// the class.
    pub(crate) fn population(&mut self, section: &Section<'_>) -> Option<(PopulationPlan, u64)> {
        match (section.node("rate"), section.node("users")) {
            (Some(_), None) => {
                if let Some(node) = section.node("think") {
                    let message = "`think` belongs to `users`; connections that open at a `rate` do not wait";
                    self.error(&node.at, &section.sub("think"), message);
                    return None;
                }
                let per_second = self.per_second(section, "rate")?;
                Some((PopulationPlan::Arrivals(Gaps::Exponential { per_s: per_second }), 1))
            }
            (None, Some(_)) => {
                let users = self.integer(section, "users");
                if section.node("think").is_none() {
                    let message = "`think` is missing (time from the last response of a user's connection to the user's \
                                   next connection); write a time such as \"5s\", or a distribution";
                    self.error(&section.at, &section.path, message);
                    return None;
                }
                let think = self.drawn(section, "think");
                Some((PopulationPlan::Users(Arc::new(think?)), users?))
            }
            (None, None) => {
                let message = "neither `rate` (connections per second) nor `users` (number of users with \
                               think times) is written; write one of them";
                self.error(&section.at, &section.path, message);
                None
            }
            (Some(_), Some(node)) => {
                self.error(&node.at, &section.sub("users"), "`rate` is written as well; keep one of them");
                None
            }
        }
    }

    /// Returns a cloud of web users.
    pub(crate) fn cloud(&mut self, section: &Section<'_>) -> Option<CloudPlan> {
        let per_s = self.per_second(section, "rate");
        let pauses = match self.value(section, "pauses")? {
            Value::Choice("cloud") => PausesOf::Cloud,
            _ => PausesOf::Connection,
        };
        let persistent = self.value(section, "http")? == Value::Choice("1.1");
        let max_response = self.max_response(section)?;
        let own_delays = section.node("rtt").is_none();
        Some(CloudPlan { per_s: per_s?, pauses, persistent, max_response, own_delays })
    }

    fn max_response(&mut self, section: &Section<'_>) -> Option<Option<Bytes>> {
        if section.node("max_response").is_none() {
            self.enter(section, "max_response", &"unlimited", Origin::Default(OURS));
            return Some(None);
        }
        self.bytes(section, "max_response").map(Some)
    }

    /// Returns the workload of a cloud's connections, whose exchanges the cloud draws.
    pub(crate) fn web(&mut self, section: &Section<'_>) -> Option<Workload> {
        let (tcp, tcp_settings) = self.tcp(section)?;
        Some(Workload::Sessions { sessions: Sessions::Web, tcp: Box::new(tcp), tcp_settings })
    }

    fn per_second(&mut self, section: &Section<'_>, key: &str) -> Option<f64> {
        let Some(node) = section.node(key) else {
            self.missing(section, section.field(key));
            return None;
        };
        let (path, quoted) = (section.sub(key), self.report.quote(&node.at));
        let Tree::Text(text) = &node.value else {
            let message = match &node.value {
                Tree::Integer(_) | Tree::Float(_) => format!("`{quoted}` has no unit; write {PER_SECOND}"),
                other => format!("`{quoted}` is {}; write {PER_SECOND}", other.what()),
            };
            self.error(&node.at, &path, message);
            return None;
        };
        let number = text.trim().strip_suffix("/s").and_then(|number| number.trim().parse::<f64>().ok());
        let Some(per_second) = number.filter(|n| (1e-6..=1e9).contains(n)) else {
            let what = if number.is_some() { "out of range" } else { "not a number per second" };
            self.error(&node.at, &path, format!("`{quoted}` is {what}; write {PER_SECOND}"));
            return None;
        };
        self.enter(section, key, &format!("{per_second}/s"), Origin::Given);
        Some(per_second)
    }

    /// Returns what the connections of a `requests` class carry.
    pub(crate) fn requests(&mut self, section: &Section<'_>) -> Option<Workload> {
        let (request, response) = (self.drawn(section, "request"), self.drawn(section, "response"));
        let per_connection = self.drawn(section, "exchanges");
        let (pause, server_delay) = (self.drawn(section, "pause"), self.drawn(section, "server_delay"));
        let tcp = self.tcp(section);
        let exchanges = ExchangePlan {
            request: request?,
            response: response?,
            per_connection: per_connection?,
            pause: pause?,
            server_delay: server_delay?,
        };
        let (tcp, tcp_settings) = tcp?;
        let sessions = Sessions::Requests(Arc::new(exchanges));
        Some(Workload::Sessions { sessions, tcp: Box::new(tcp), tcp_settings })
    }

    /// Checks that the settings of a `requests` class agree with each other. `propagation` is the delay of
    /// the class's path, summed over both directions.
    pub(crate) fn check_requests(&mut self, section: &Section<'_>, plan: &ClassPlan, propagation: Span) {
        let rtt = plan.access.as_ref().map(|access| &access.rtt);
        match &plan.population {
            PopulationPlan::List => {}
            PopulationPlan::Arrivals(_) | PopulationPlan::Cloud(_) => {
                if let Some(Distribution::Spread { .. }) = rtt {
                    let message = "`spread` needs a known number of flows, but the number of connections that \
                                   open at a `rate` is not known in advance; write `uniform`";
                    self.error(&section.at("rtt"), &section.sub("rtt"), message);
                }
            }
            PopulationPlan::Users(_) | PopulationPlan::Pages(_) | PopulationPlan::Browsers(_) => {
                if plan.draws_by_connection()
                    && let Some(Distribution::Spread { .. }) = rtt
                {
                    let message = "`spread` needs a known number of flows, but each connection of a browser has its own \
                                   round-trip time; write `uniform`";
                    self.error(&section.at("rtt"), &section.sub("rtt"), message);
                }
                let thinks = plan.population.think().is_some_and(|think| !think.mean().is_zero());
                let travels = !propagation.is_zero() || rtt.is_some_and(|rtt| !rtt.mean().is_zero());
                if !thinks && !travels {
                    let message = "without think time and without any path delay, a user opens infinitely many \
                                   connections at the same instant; write a longer `think`";
                    self.error(&section.at("think"), &section.sub("think"), message);
                }
            }
        }
    }
}
