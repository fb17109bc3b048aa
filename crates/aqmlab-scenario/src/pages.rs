//! `pages`: users who fetch web pages over several connections at the same time.

use std::sync::Arc;

use aqmlab_params::Value;
use aqmlab_traffic::{Device, PagePlan};

use crate::pass::{Pass, Section};
use crate::plan::{PopulationPlan, Sessions, Workload};

/// The keys of the shares, in the order of [`PagePlan::shares`].
const SHARES: [&str; 4] = ["scripts", "styles", "fonts", "images"];

/// The properties of a page that are drawn from the tables unless the file gives them.
const OF_TABLES: [&str; 2] = ["weight", "objects"];

impl Pass<'_, '_> {
    /// Returns the users of a `pages` class, and their number.
    pub(crate) fn page_users(&mut self, section: &Section<'_>) -> Option<(PopulationPlan, u64)> {
        let (users, plan) = (self.integer(section, "users"), self.page_plan(section));
        Some((PopulationPlan::Pages(Arc::new(plan?)), users?))
    }

    /// Returns the workload of a `pages` class: its users determine what the connections carry.
    pub(crate) fn multiplexed(&mut self, section: &Section<'_>) -> Option<Workload> {
        let (tcp, tcp_settings) = self.tcp(section)?;
        Some(Workload::Sessions { sessions: Sessions::Pages, tcp: Box::new(tcp), tcp_settings })
    }

    fn page_plan(&mut self, section: &Section<'_>) -> Option<PagePlan> {
        let device = match self.value(section, "device") {
            Some(Value::Choice("mobile")) => Some(Device::Mobile),
            Some(_) => Some(Device::Desktop),
            None => None,
        };
        let (shares, correlation) = (self.shares(section), self.correlation(section));
        let waves = self.integer(section, "waves");
        let (weight, objects) = OF_TABLES.map(|key| section.node(key).is_some()).into();
        let (weight, objects) = (
            if weight { self.drawn(section, "weight").map(Some) } else { Some(None) },
            if objects { self.drawn(section, "objects").map(Some) } else { Some(None) },
        );
        let (origins, request) = (self.drawn(section, "origins"), self.drawn(section, "request"));
        let (server_delay, parse) = (self.drawn(section, "server_delay"), self.drawn(section, "parse"));
        let think = self.drawn(section, "think");
        let connections = self.value(section, "connections");
        Some(PagePlan {
            device: device?,
            weight: weight?,
            objects: objects?,
            correlation: correlation?,
            shares: shares?,
            waves: waves? as u32,
            origins: origins?,
            request: request?,
            server_delay: server_delay?,
            parse: parse?,
            think: think?,
            keeps_connections: connections? == Value::Choice("kept"),
        })
    }

    fn shares(&mut self, section: &Section<'_>) -> Option<[f64; 4]> {
        let [scripts, styles, fonts, images] = SHARES.map(|key| self.number(section, key));
        let shares = [scripts?, styles?, fonts?, images?];
        let sum: f64 = shares.iter().sum();
        // The sum of decimal fractions may be inexact in its last digits.
        if sum > 1.0 + 1e-9 {
            let written = SHARES.into_iter().rfind(|key| section.node(key).is_some());
            let key = written.unwrap_or(SHARES[0]);
            let message = format!(
                "the shares of {} add up to {sum:.4}; they may add up to at most 1 (the rest is data)",
                SHARES.join(", ")
            );
            self.error(&section.at(key), &section.sub(key), message);
            return None;
        }
        Some(shares)
    }

    /// Returns the rank correlation between weight and number of objects, which applies only to
    /// draws from the tables.
    fn correlation(&mut self, section: &Section<'_>) -> Option<f64> {
        let written = OF_TABLES.into_iter().find(|key| section.node(key).is_some());
        if let (Some(node), Some(key)) = (section.node("correlation"), written) {
            let message = format!(
                "`correlation` applies only if weight and number of objects come from the device's tables, \
                 but `{key}` is written; leave out one of them"
            );
            self.error(&node.at, &section.sub("correlation"), message);
            return None;
        }
        self.number(section, "correlation")
    }
}
