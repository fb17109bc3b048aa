//! What only the live router looks at: how it runs, and what it asks of the kernel.

use aqmlab_params::{Origin, Value};

use crate::field::{OURS, Variant};
use crate::language::{LIVE, LIVE_CLASS};
use crate::pass::{Pass, Section};
use crate::plan::{IpVersion, LiveClass, LivePlan, Wait};

/// The kernel's names have at most so many letters: `TCP_CA_NAME_MAX` less the final zero (Linux, `net/tcp.h`).
const LONGEST_CONGESTION: usize = 15;

impl Pass<'_, '_> {
    /// `[live]`. Where it is not written nothing is entered: most scenarios are never run live.
    pub(crate) fn live(&mut self, file: &Section<'_>) -> Option<LivePlan> {
        let Some(node) = file.node("live") else { return Some(LivePlan::default()) };
        let section = self.section(node, "live", LIVE)?;
        let ip = self.ip_version(&section);
        let (drain, spin) = (self.span(&section, "drain"), self.span(&section, "spin"));
        let wait = match self.value(&section, "wait") {
            Some(Value::Choice("epoll")) => Some(Wait::Epoll),
            Some(_) => Some(Wait::Hybrid),
            None => None,
        };
        Some(LivePlan { ip: ip?, drain: drain?, wait: wait?, spin: spin? })
    }

    fn ip_version(&mut self, section: &Section<'_>) -> Option<IpVersion> {
        match self.integer(section, "ip")? {
            4 => Some(IpVersion::V4),
            6 => Some(IpVersion::V6),
            other => {
                let message = format!("`{other}` is no version of the Internet Protocol; write 4 or 6");
                self.error(&section.at("ip"), &section.sub("ip"), message);
                None
            }
        }
    }

    /// `live` of a class of traffic, if its kind has that key.
    pub(crate) fn live_class(&mut self, class: &Section<'_>, kind: &Variant) -> Option<LiveClass> {
        let has_connections = kind.all_fields().any(|field| field.name == "live");
        let Some(node) = class.node("live").filter(|_| has_connections) else {
            return Some(LiveClass::default());
        };
        let section = self.section(node, &class.sub("live"), LIVE_CLASS)?;
        if section.node("congestion").is_none() {
            let live = LiveClass::default();
            self.enter(&section, "congestion", &live.congestion, Origin::Default(OURS));
            return Some(live);
        }
        let congestion = self.name(&section, "congestion")?;
        if congestion.len() > LONGEST_CONGESTION {
            let message = format!(
                "\"{congestion}\" is no congestion control of the kernel: their names have at most \
                 {LONGEST_CONGESTION} letters"
            );
            self.error(&section.at("congestion"), &section.sub("congestion"), message);
            return None;
        }
        self.enter(&section, "congestion", &congestion, Origin::Given);
        Some(LiveClass { congestion })
    }
}
