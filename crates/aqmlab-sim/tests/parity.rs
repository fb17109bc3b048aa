//! The simulator and the router make the same decisions. One recorded trace of arrivals passes
//! through the port inside the simulator, and through a port that is driven as in a live router: by
//! a loop that wakes late and irregularly, reads arrivals in batches with their time stamps, and
//! passes the ideal instants to the port.
mod support;

use std::collections::VecDeque;

use aqmlab_qdisc::registry::Info;
use aqmlab_qdisc::{Cause, Observer, Packet, Port, registry};
use aqmlab_random::Stream;
use aqmlab_scenario::Plan;
use aqmlab_sim::{Control, SimPacket, run_with};
use aqmlab_units::{Instant, Span};
use support::tap::{Act, Log, tapped};

fn scenario(info: &Info) -> Plan {
    let kind = info.name;
    let known = |name| info.params.iter().any(|param| param.name == name);
    let plain = [("limit", r#"limit = "40p""#), ("ecn", "ecn = true")];
    let plain = plain.map(|(name, text)| if known(name) { text } else { "" });
    let plain = plain.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(", ");
    let queue = match kind {
        "classes" => {
            r#"class = [{ name = "tcp", traffic = ["ftp"], weight = 3, queue = { kind = "red", limit = "40p", ecn = true } },
                { name = "rest", queue = { kind = "codel" } }]"#
        }
        "policer" => {
            r#"rate = "6Mbit", burst = "9kB", queue = { kind = "red", limit = "40p", min_th = "3p", ecn = true }"#
        }
        "tbf" => {
            r#"rate = "6Mbit", burst = "9kB", queue = { kind = "red", limit = "40p", min_th = "3p", ecn = true }"#
        }
        "spare" => r#"below = "4p", queue = { kind = "red", limit = "40p", min_th = "3p", ecn = true }"#,
        "htb" => {
            r#"class = [{ name = "all", rate = "6Mbit" },
                { name = "tcp", parent = "all", traffic = ["ftp"], rate = "3Mbit", ceil = "6Mbit", queue = { kind = "red", limit = "40p", ecn = true } },
                { name = "rest", parent = "all", rate = "3Mbit", ceil = "5Mbit", queue = { kind = "codel" } }]"#
        }
        "gred" => {
            r#"ecn = true, class = [{ name = "tcp", traffic = ["ftp"], limit = "40p" }, { name = "rest", limit = "40p", min_th = "3p" }]"#
        }
        "fq" => r#"limit = "40p", flow_limit = 20, ce_threshold = "30ms""#,
        "sfb" => r#"limit = "40p", bin_size = 4, increment = 0.05, ecn = true"#,
        "cake" => r#"memory_limit = "100kB""#,
        _ => &plain,
    };
    support::plan(&format!(
        r#"
        duration = "20s"
        [topology]
        kind = "dumbbell"
        rate = "4Mbit"
        delay = "10ms"
        queue = {{ kind = "{kind}", {queue} }}
        [[traffic]]
        name = "ftp"
        kind = "bulk"
        count = 8
        rtt = {{ uniform = ["40ms", "120ms"] }}
        tcp = {{ profile = "rfc", ecn = true }}
        [[traffic]]
        name = "udp"
        kind = "poisson"
        rate = "600kbit"
        size = {{ exponential = "400B" }}
        "#
    ))
}

/// An observer that ignores all events, because the tapped discipline records them itself.
struct Silent;
impl<P> Observer<P> for Silent {
    fn dropped(&mut self, _: Instant, _: P, _: Cause) {}
    fn marked(&mut self, _: Instant, _: &P, _: Cause) {}
}

/// A stand-in for a live network device: arrivals wait in the device's queue until the router wakes.
struct Device {
    arrivals: VecDeque<(Instant, SimPacket)>,
}

/// The loop of a live router. The router wakes when it can, not when it should. The router then
/// processes all transmissions that have ended and all arrivals that the device has time-stamped,
/// in the order of their ideal times.
fn route(port: &mut Port<SimPacket>, device: &mut Device, lateness: &mut Stream) {
    let mut wake = Instant::ZERO;
    while !device.arrivals.is_empty() || port.is_sending() {
        wake += Span::us(lateness.below(7_000));
        loop {
            let arrival = device.arrivals.front().map_or(Instant::FAR_FUTURE, |a| a.0);
            let departure = port.next_event().unwrap_or(Instant::FAR_FUTURE);
            if departure.min(arrival) > wake {
                break;
            }
            // A link that becomes free at t takes its next packet before the arrival at t is processed.
            if departure <= arrival {
                port.link_free(departure, &mut Silent);
            } else if let Some((at, packet)) = device.arrivals.pop_front() {
                port.arrive(at, packet, &mut Silent);
            }
        }
    }
}

#[test]
fn simulator_and_router_decide_alike_for_every_discipline() {
    let seed = 5;
    for info in registry::catalogue() {
        let simulated = Log::default();
        let mut plan = scenario(info);
        let registry = tapped(&mut plan.links[0].queue, &simulated);
        run_with(&plan, seed, &Control::default(), &registry).unwrap();
        let simulated = simulated.lock().unwrap().clone();

        let arrivals: VecDeque<_> = simulated
            .iter()
            .filter_map(|act| match act {
                Act::Enqueue(at, packet) => Some((*at, *packet)),
                _ => None,
            })
            .collect();
        assert!(arrivals.len() > 5_000, "{}", info.name);
        assert!(simulated.iter().any(|a| matches!(a, Act::Dropped(..) | Act::Marked(..))), "{}", info.name);

        let routed = Log::default();
        let mut link = scenario(info).links.remove(0);
        let registry = tapped(&mut link.queue, &routed);
        // The stream has the same name as in the simulator, and therefore gives the same draws.
        let draws = Stream::new(seed, format!("{}/tapped", link.name));
        let discipline = registry.build(&link.queue, draws).unwrap();
        let mut port = Port::new(discipline, link.rate, link.overhead, plan.classes.len());
        route(&mut port, &mut Device { arrivals }, &mut Stream::new(99, "lateness"));
        port.check_books().unwrap();

        // After the simulator's clock has stopped, the router continues until it is empty; up to
        // the stop, every operation is the same.
        let routed = routed.lock().unwrap().clone();
        assert_eq!(simulated[..], routed[..simulated.len()], "{}", info.name);
        let marks =
            routed.iter().filter(|a| matches!(a, Act::Marked(_, p, _) if p.ecn().is_capable())).count();
        // SFQ has no RED by default.
        assert_eq!(marks > 0, !matches!(info.name, "droptail" | "sfq"), "{}", info.name);
    }
}
