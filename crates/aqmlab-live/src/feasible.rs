//! Checks whether a plan can run live, as far as this can be known before the hosts are created.

use aqmlab_scenario::{Carries, ClassPlan, Plan};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::addresses::Addresses;
use crate::error::LiveError;
use crate::host::descriptors_refused;
use crate::machine::Machine;
use crate::open_connections;
use crate::router::client_ports;

/// Descriptors that a class needs in addition to those of its flows: two namespaces, two devices,
/// and a server.
const PER_CLASS: u64 = 5;
/// Descriptors that a flow over an uplink needs: both ends, and the socket that accepts it.
const PER_UPLINK: u64 = 4;
/// Descriptors for everything else: standard input and output, libraries, epoll instances, a recording's
/// files.
const OTHERS: u64 = 64;

/// Checks a plan, and raises the limit on descriptors to the number that the process needs.
///
/// # Errors
/// If a kernel's queue serves a link whose rate changes, or the plan's classes or flows need more addresses, ports, memory or sockets than are available.
pub fn check(plan: &Plan) -> Result<(), LiveError> {
    if plan.classes.len() > Addresses::MOST_CLASSES {
        return Err(LiveError::Unsupported(format!(
            "it has {} classes of traffic, but there are addresses only for {}",
            plan.classes.len(),
            Addresses::MOST_CLASSES
        )));
    }
    check_rates(plan)?;
    check_dialogues(plan)?;
    client_ports(plan)?;
    check_access(plan)?;
    let uplinks: u64 = plan.classes.iter().filter(|class| class.has_uplink()).map(|class| class.count).sum();
    allow_descriptors(descriptors(plan) + 2 * open_connections::expected(plan) + PER_UPLINK * uplinks)?;
    open_connections::check_memory(plan, Machine::this().available_memory())
}

/// Refuses kernel queues at links whose rate changes, because the kernel's shaper keeps its rate.
fn check_rates(plan: &Plan) -> Result<(), LiveError> {
    match plan.links.iter().find(|link| link.changes.is_some() && link.kernel_spec().is_some()) {
        None => Ok(()),
        Some(link) => Err(LiveError::Unsupported(format!(
            "the rate of `{}` changes during the run, but a queue of the kernel has a constant rate: choose one of aqmlab's \
             queues, or write a constant rate",
            link.name
        ))),
    }
}

/// Refuses classes of which both ends send datagrams.
fn check_dialogues(plan: &Plan) -> Result<(), LiveError> {
    match plan.classes.iter().find(|class| class.traffic.is_dialogue()) {
        None => Ok(()),
        Some(class) => Err(LiveError::Unsupported(format!(
            "the flows of `{}` are of kind media, game or ping, whose ends only the simulator has: use `aqmlab run`, or \
             leave out the class with `enabled = false` (a live run still lacks hosts that write numbers and reports into \
             datagrams, and record when they arrive)",
            class.name
        ))),
    }
}

/// Refuses sources that, in the long run, send more than their own access links carry, because their queues
/// would outgrow any memory.
fn check_access(plan: &Plan) -> Result<(), LiveError> {
    for class in &plan.classes {
        if let (Some(access), Some(rate)) = (&class.access, class.traffic.mean_rate())
            && rate > access.rate
        {
            return Err(LiveError::Unsupported(format!(
                "a flow of `{}` sends `{rate}` on average, but its access links carry only `{}`, so ever more packets \
                 would wait there; choose a larger `access_rate`, `access_rate = \"none\"` or a lower rate",
                class.name, access.rate
            )));
        }
    }
    Ok(())
}

/// Returns a sentence for each quantity that the plan requests but a live run does not record.
pub fn remarks(plan: &Plan) -> Vec<String> {
    let mut remarks = Vec::new();
    if !plan.record.trace.is_empty() {
        remarks.push(
            "`record.trace`: a kernel does not report each change of a connection, so there is no table `trace`"
                .into(),
        );
    }
    if plan.record.packets.is_some() {
        remarks
            .push("`record.packets`: a live run has no table `packets`; capture a port with `--pcap`".into());
    }
    remarks
}

/// Returns the maximum number of connections of users and arrivals that may be open at the same time, if each
/// takes two of the remaining descriptors.
pub fn most_connections(plan: &Plan) -> u64 {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    limit.saturating_sub(descriptors(plan)) / 2
}

/// Returns the number of descriptors needed at the same time, without those for connections of users and
/// arrivals (see [`open_connections`]) and of traces, whose number is not known in advance.
fn descriptors(plan: &Plan) -> u64 {
    let of_class = |class: &ClassPlan| match class.traffic.carries() {
        _ if !class.is_list() => 0,
        Carries::Sessions(_) if class.traffic.is_from_file() => 0,
        Carries::Stream(_) | Carries::Sessions(_) => 2 * class.count,
        Carries::Datagrams(_) => class.count,
        // The sockets of programs are their own.
        Carries::Programs(_) => 0,
    };
    OTHERS + plan.classes.iter().map(|class| PER_CLASS + of_class(class)).sum::<u64>()
}

/// Raises the process's limit on open files as far as possible.
fn allow_descriptors(needed: u64) -> Result<(), LiveError> {
    let limit = getrlimit(Resource::Nofile);
    let most = limit.maximum.unwrap_or(u64::MAX);
    if needed > most {
        return Err(descriptors_refused(needed, most));
    }
    if limit.current.is_some_and(|current| current < most) {
        // If the request is refused, the present limit holds, and a later socket that exceeds it
        // reports an error.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(classes: &str) -> Plan {
        let text = format!(
            "title = \"t\"\nduration = \"1s\"\n\
             topology = {{ kind = \"dumbbell\", rate = \"10Mbit\", delay = \"1ms\", queue = {{ kind = \"droptail\", limit = \"9p\" }} }}\n{classes}"
        );
        aqmlab_scenario::parse(&text, "test").unwrap_or_else(|e| panic!("{e}")).arms.remove(0)
    }

    #[test]
    fn sockets_are_counted_at_both_ends() {
        let plan = plan(
            "[[traffic]]\nname = \"a\"\nkind = \"bulk\"\ncount = 100\n\
             [[traffic]]\nname = \"b\"\nkind = \"cbr\"\nrate = \"1Mbit\"\nsize = \"500B\"\ncount = 7\n",
        );
        assert_eq!(descriptors(&plan), 64 + 10 + 200 + 7);
        assert!(check(&plan).is_ok());
        assert!(remarks(&plan).is_empty());
    }

    #[test]
    fn dialogues_are_refused() {
        for kind in ["ping\"", "game\"", "media\"\nrate = \"1Mbit\"\ncontrol = { kind = \"gcc\" }"] {
            let plan = plan(&format!("[[traffic]]\nname = \"a\"\nkind = \"{kind}\n"));
            let refusal = check(&plan).unwrap_err().to_string();
            assert!(refusal.contains("`a`") && refusal.contains("`aqmlab run`"), "{refusal}");
        }
    }

    #[test]
    fn a_source_faster_than_its_access_links_is_refused() {
        let source = |kind: &str, access: &str| {
            let class = format!(
                "[[traffic]]\nname = \"a\"\nkind = \"{kind}\"\nrate = \"1Mbit\"\nsize = \"500B\"\naccess_rate = \"{access}\"\n"
            );
            let on_off = "on = \"1s\"\noff = \"1s\"\n";
            check(&plan(&if kind == "cbr" { class } else { class + on_off }))
        };
        let refusal = source("cbr", "999kbit").unwrap_err().to_string();
        assert!(refusal.contains("`1Mbit`") && refusal.contains("`999kbit`"), "{refusal}");
        // The source is silent half of the time, during which waiting packets are sent.
        assert!(source("on_off_udp", "501kbit").is_ok());
        assert!(source("on_off_udp", "499kbit").is_err());
        for enough in ["1Mbit", "none"] {
            assert!(source("cbr", enough).is_ok(), "{enough}");
        }
    }

    #[test]
    fn a_kernel_queue_needs_a_constant_rate() {
        let text = |rate: &str, queue: &str| {
            format!(
                "title = \"t\"\nduration = \"1s\"\n\
                 topology = {{ kind = \"dumbbell\", rate = {rate}, delay = \"1ms\", queue = {queue} }}\n\
                 [[traffic]]\nname = \"a\"\nkind = \"bulk\"\n"
            )
        };
        let check = |rate, queue| {
            check(
                &aqmlab_scenario::parse(&text(rate, queue), "test")
                    .unwrap_or_else(|e| panic!("{e}"))
                    .arms
                    .remove(0),
            )
        };
        let (steps, kernel) = (
            "[[\"0s\", \"4Mbit\"], [\"100ms\", \"1Mbit\"]]",
            "{ kind = \"tc\", spec = \"pfifo limit 100\" }",
        );
        let refusal = check(steps, kernel).unwrap_err().to_string();
        assert!(refusal.contains("`bottleneck`") && refusal.contains("one of aqmlab's queues"), "{refusal}");
        assert!(check(steps, "\"droptail\"").is_ok() && check("\"4Mbit\"", kernel).is_ok());
    }

    #[test]
    fn a_class_with_more_flows_than_there_is_room_for_is_refused() {
        let mut plan = plan("[[traffic]]\nname = \"a\"\nkind = \"bulk\"\ncount = 2\n");
        plan.classes[0].count = 1 << 21;
        let refusal = check(&plan).unwrap_err().to_string();
        assert!(refusal.contains("2097152 connections") && refusal.contains("1048576"), "{refusal}");
        plan.classes[0].count = 2;
        let class = plan.classes[0].clone();
        plan.classes.resize(257, class);
        assert!(check(&plan).unwrap_err().to_string().contains("257 classes"));
    }
}
