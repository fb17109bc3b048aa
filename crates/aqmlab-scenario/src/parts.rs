//! The parts of the program that determine a plan's result, each with its version.
//!
//! The version of a part is defined in the part's source and is incremented when the part's results
//! change. A plan lists only the parts that it uses, so correcting one part does not affect plans
//! that do not use it. Code on which all parts depend (units, parameters) has no version: a change
//! there that alters results counts as a change to the parts whose results it alters.

use std::collections::{BTreeMap, BTreeSet};

use aqmlab_qdisc::registry::Catalogue;
use aqmlab_transport::Congestion;

use crate::draws;
use crate::plan::{AutoratePlan, ChangingRate, Plan};
use crate::traffic::PARTS;

/// The version of each part, by the part's name. A part is a crate or a piece of one, such as `qdisc.red`.
pub type Parts = BTreeMap<String, u32>;

/// The sender that tracks segments. Live runs do not use it, whatever their profile.
pub const SEGMENTS: &str = "transport.segments";

/// The course of rates that change. Plans without such a rate do not depend on it.
const RATES: &str = "scenario.rates";

/// The controllers that adjust shapers. Plans without one do not depend on them.
const AUTORATE: &str = "network.autorate";

/// Returns all parts, with the disciplines of `catalogue`, except the hosts themselves.
pub fn all_parts(catalogue: &Catalogue) -> Parts {
    let mut all = own_parts();
    all.extend(catalogue.iter().map(|info| (discipline(info.name), info.version)));
    all
}

/// Returns the parts that are neither disciplines nor hosts.
fn own_parts() -> Parts {
    let crates = [
        ("random", aqmlab_random::VERSION),
        ("qdisc", aqmlab_qdisc::VERSION),
        ("traffic", aqmlab_traffic::VERSION),
        ("scenario", draws::VERSION),
        ("transport", aqmlab_transport::VERSION),
        (SEGMENTS, aqmlab_transport::SEGMENTS_VERSION),
        (RATES, ChangingRate::VERSION),
        (AUTORATE, AutoratePlan::VERSION),
    ];
    let controls = Congestion::ALL.iter().map(|of| (control(*of), of.version()));
    let kinds = PARTS.iter().copied().flatten().map(|(name, version)| ((*name).to_owned(), *version));
    crates
        .map(|(name, version)| (name.to_owned(), version))
        .into_iter()
        .chain(kinds)
        .chain(controls)
        .collect()
}

impl Plan {
    /// Returns the parts that the plan uses, apart from its host.
    pub fn parts(&self) -> Parts {
        let mut names: BTreeSet<String> =
            ["random", "qdisc", "traffic", "scenario"].map(str::to_owned).into();
        for class in &self.classes {
            names.extend(class.traffic.parts().iter().map(|(name, _)| (*name).to_owned()));
            if let Some(tcp) = class.traffic.tcp() {
                names.insert("transport".to_owned());
                names.extend(tcp.lists_segments().then(|| SEGMENTS.to_owned()));
                // A congestion control that only kernels implement has no version here.
                names.extend(tcp.congestion.map(control));
            }
        }
        names.extend(self.links.iter().any(|link| link.changes.is_some()).then(|| RATES.to_owned()));
        names.extend(self.links.iter().any(|link| link.autorate.is_some()).then(|| AUTORATE.to_owned()));
        let mut parts = own_parts();
        parts.retain(|name, _| names.contains(name));
        let disciplines = self.links.iter().flat_map(|link| link.queue.versions());
        parts.extend(disciplines.map(|(name, version)| (discipline(name), *version)));
        parts
    }
}

fn discipline(name: &str) -> String {
    format!("qdisc.{name}")
}

fn control(of: Congestion) -> String {
    format!("transport.{}", of.word())
}

#[cfg(test)]
mod tests {
    use aqmlab_qdisc::registry::{catalogue, info};

    use super::*;
    use crate::parse;

    const TRAFFIC: &str = "[[traffic]]\nname = \"ftp\"\nkind = \"bulk\"\ncount = 2\nrtt = \"30ms\"\n";

    /// Returns the plan of a dumbbell with this queue and these classes.
    fn plan(queue: &str, traffic: &str) -> Plan {
        let text = format!(
            "duration = \"2s\"\n[topology]\nkind = \"dumbbell\"\nrate = \"2Mbit\"\ndelay = \"5ms\"\naccess_rate = \"20Mbit\"\n\
             queue = {queue}\n{traffic}"
        );
        parse(&text, "parts.toml").expect(queue).arms.remove(0)
    }

    fn names(parts: &Parts, group: &str) -> Vec<String> {
        parts.keys().filter_map(|name| name.strip_prefix(group)).map(str::to_owned).collect()
    }

    #[test]
    fn a_plan_has_the_disciplines_of_its_queues_at_any_depth_and_those_whose_law_they_apply() {
        let classes = "{ kind = \"classes\", class = [{ name = \"a\", traffic = [\"ftp\"], queue = { kind = \"policer\", \
                       rate = \"1Mbit\", \
                       burst = \"10kB\", queue = { kind = \"ared\" } } }, { name = \"rest\", queue = \"codel\" }] }";
        for (queue, expected) in [
            ("\"pi\"", vec!["droptail", "pi"]),
            ("\"red\"", vec!["droptail", "red"]),
            ("\"redpd\"", vec!["droptail", "red", "redpd"]),
            (classes, vec!["ared", "classes", "codel", "droptail", "policer", "red"]),
        ] {
            assert_eq!(names(&plan(queue, TRAFFIC).parts(), "qdisc."), expected, "{queue}");
        }
    }

    #[test]
    fn a_plan_has_red_if_its_queue_applies_the_law_of_red() {
        for info in catalogue() {
            let queue = match info.name {
                "classes" => {
                    "{ kind = \"classes\", class = [{ name = \"all\", queue = \"red\" }] }".to_owned()
                }
                "policer" => {
                    "{ kind = \"policer\", rate = \"1Mbit\", burst = \"10kB\", queue = \"pi\" }".to_owned()
                }
                "tbf" => "{ kind = \"tbf\", rate = \"1Mbit\", burst = \"10kB\", queue = \"pi\" }".to_owned(),
                "spare" => "{ kind = \"spare\", queue = \"pi\" }".to_owned(),
                "gred" => "{ kind = \"gred\", class = [{ name = \"all\" }] }".to_owned(),
                "htb" => "{ kind = \"htb\", class = [{ name = \"all\", rate = \"1Mbit\", queue = \"pi\" }] }"
                    .to_owned(),
                name => format!("{name:?}"),
            };
            let parts = plan(&queue, TRAFFIC).parts();
            assert_eq!(parts.get(&discipline(info.name)), Some(&info.version));
            let has_red = matches!(
                info.name,
                "red" | "ared" | "scred" | "redpd" | "gred" | "choke" | "sfq" | "classes"
            );
            assert_eq!(parts.contains_key("qdisc.red"), has_red, "{queue}");
        }
    }

    #[test]
    fn every_law_that_a_discipline_applies_is_in_the_catalogue() {
        for applying in catalogue() {
            assert!(applying.version > 0);
            for name in applying.applies {
                assert!(info(name).is_some_and(|applied| applied.name != applying.name), "{name}");
            }
        }
    }

    #[test]
    fn a_plan_has_the_traffic_and_the_congestion_controls_of_its_classes() {
        let of = |traffic: &str| {
            let parts = plan("\"pi\"", traffic).parts();
            (names(&parts, "traffic."), names(&parts, "transport."))
        };
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let cubic =
            "[[traffic]]\nkind = \"bulk\"\ncount = 1\nrtt = \"30ms\"\ntcp = { congestion = \"cubic\" }\n";
        assert_eq!(of(TRAFFIC), (owned(&[]), owned(&["reno"])));
        assert_eq!(of(cubic), (owned(&[]), owned(&["cubic"])));
        assert_eq!(of(&format!("{TRAFFIC}{cubic}")).1, ["cubic", "reno"]);
        let linux = TRAFFIC.replace("rtt =", "tcp = { profile = \"linux\" }\nrtt =");
        assert_eq!(of(&linux).1, ["reno", "segments"]);
        let cbr =
            "[[traffic]]\nkind = \"cbr\"\ncount = 1\nrate = \"100kbit\"\nsize = \"500B\"\nrtt = \"30ms\"\n";
        assert_eq!(of(cbr), (owned(&["packets"]), owned(&[])));
        assert!(!plan("\"pi\"", cbr).parts().contains_key("transport"));
        let users = "[[traffic]]\nkind = \"requests\"\nusers = 3\nthink = \"1s\"\nrequest = \"300B\"\nresponse = \"20kB\"\n\
                     rtt = \"30ms\"\n";
        assert_eq!(of(users).0, ["requests", "users"]);
    }
}
