//! The settings that only the live router uses: how it operates, and what it requires of the kernel.

use aqmlab_params::Value;
use aqmlab_transport::Congestion;

use crate::error::Problem;
use crate::language::LIVE;
use crate::pass::{Pass, Section};
use crate::plan::{IpVersion, LivePlan, Wait};
use crate::suggest::{listed, nearest};
use crate::traffic::Traffic;
use crate::tree::Tree;

impl Pass<'_, '_> {
    /// Reads `[live]`. If the file lacks that section, its defaults are not added to the effective
    /// parameters, because most scenarios are never run live.
    pub(crate) fn live(&mut self, file: &Section<'_>) -> Option<LivePlan> {
        let Some(node) = file.node("live") else { return Some(LivePlan::default()) };
        let section = self.section(node, "live", LIVE)?;
        let ip = self.ip_version(&section);
        let (drain, spin) = (self.span(&section, "drain"), self.span(&section, "spin"));
        let offload = self.flag(&section, "offload");
        let wait = match self.value(&section, "wait") {
            Some(Value::Choice("epoll")) => Some(Wait::Epoll),
            Some(_) => Some(Wait::Hybrid),
            None => None,
        };
        Some(LivePlan { ip: ip?, drain: drain?, wait: wait?, spin: spin?, offload: offload? })
    }

    fn ip_version(&mut self, section: &Section<'_>) -> Option<IpVersion> {
        match self.integer(section, "ip")? {
            4 => Some(IpVersion::V4),
            6 => Some(IpVersion::V6),
            other => {
                let message = format!("`{other}` is not a version of the Internet Protocol; write 4 or 6");
                self.error(&section.at("ip"), &section.sub("ip"), message);
                None
            }
        }
    }

    /// Returns why the simulator cannot run a class, or `None` if it can.
    pub(crate) fn only_live(&mut self, class: &Section<'_>, traffic: &Traffic) -> Option<Problem> {
        if let Traffic::Program(_) = traffic {
            let message = "the simulator runs no programs: run this scenario with `aqmlab live`".to_string();
            let (at, path) = (class.at("kind"), class.sub("kind"));
            return Some(self.report.problem(&at, &path, message));
        }
        if traffic.tcp()?.congestion.is_some() {
            return None;
        }
        let name = traffic.congestion()?;
        let at = match class.node("tcp").map(|node| &node.value) {
            Some(Tree::Table(table)) => table.get("congestion").map(|node| node.at.clone()),
            _ => None,
        };
        let ours = Congestion::WORDS.iter().copied();
        let meant = match nearest(&name, ours.clone()) {
            Some(near) => format!("did you mean \"{near}\"? "),
            None => String::new(),
        };
        let message = format!(
            "the simulator has no congestion control \"{name}\": {meant}it has {}; `aqmlab live` asks the kernel \
             for any other",
            listed(ours)
        );
        let path = format!("{}.congestion", class.sub("tcp"));
        Some(self.report.problem(&at.unwrap_or_else(|| class.at.clone()), &path, message))
    }
}
