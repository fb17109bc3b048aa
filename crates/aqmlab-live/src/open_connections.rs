//! Number of connections that a plan is expected to have open at the same time, and the memory that they
//! take.

use aqmlab_scenario::{Opens, Plan};

use crate::error::LiveError;
use crate::router::{client_ports, own_round_trip};

/// Memory that a client port takes in the router.
const PER_PORT: u64 = 3 << 10;
/// Memory that both ends of a connection take in the kernel. Linux 6.18 needs 7 KiB without data,
/// and 26 KiB with 10 kB of waiting data; this value lies between the two.
const PER_CONNECTION: u64 = 16 << 10;

/// Returns the mean number of connections that users and arrivals have open if no packet waits in a
/// queue. Each is open for two round trips: one for its set-up and one for an exchange. Under
/// congestion, more are open.
pub fn expected(plan: &Plan) -> u64 {
    (0..plan.classes.len()).map(|class| expected_of(plan, class)).sum::<f64>().round() as u64
}

fn expected_of(plan: &Plan, number: usize) -> f64 {
    let class = &plan.classes[number];
    let open_s = 2.0 * (plan.propagation(number) + own_round_trip(plan, number)).as_secs_f64();
    match class.traffic.opens() {
        Opens::Listed => 0.0,
        Opens::AtRate { per_s, .. } => per_s * open_s,
        Opens::ByUsers { think, pages } => {
            let at_once = pages.and_then(|pages| pages.at_once).map_or(1, |others| others.mean().0 + 1);
            let share = open_s / (open_s + think.mean().as_secs_f64()).max(f64::MIN_POSITIVE);
            (class.count * at_once) as f64 * share
        }
    }
}

/// Checks that open connections fit into the memory that is `available`, if that is known.
///
/// # Errors
/// If they do not fit; the error states the memory needed and the memory available.
pub fn check_memory(plan: &Plan, available: Option<u64>) -> Result<(), LiveError> {
    let ports: u64 = client_ports(plan)?.into_iter().map(u64::from).sum();
    let needed = ports * PER_PORT + expected(plan) * PER_CONNECTION;
    match available {
        Some(available) if needed > available => Err(LiveError::Machine {
            what: format!(
                "{ports} client ports and {} simultaneous connections take about {} MiB, but only {} MiB are free",
                expected(plan),
                needed >> 20,
                available >> 20
            ),
            remedy: "choose fewer users, a lower rate or a shorter run".into(),
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(population: &str) -> Plan {
        let text = format!(
            "title = \"t\"\nduration = \"60s\"\n\
             topology = {{ kind = \"dumbbell\", rate = \"10Mbit\", delay = \"0s\", queue = {{ kind = \"droptail\", limit = \"9p\" }} }}\n\
             [[traffic]]\nname = \"web\"\n{population}\nrtt = \"100ms\"\n"
        );
        aqmlab_scenario::parse(&text, "test").unwrap_or_else(|e| panic!("{e}")).arms.remove(0)
    }

    const EXCHANGE: &str = "kind = \"requests\"\nrequest = \"400B\"\nresponse = \"12kB\"\n";

    #[test]
    fn connections_open_at_a_time_by_littles_law() {
        // Two round trips of 100 ms at 500 connections per second.
        assert_eq!(expected(&plan(&format!("{EXCHANGE}rate = \"500/s\""))), 100);
        // Each connection is open for 0.2 s of every 1.2 s.
        assert_eq!(expected(&plan(&format!("{EXCHANGE}users = 600\nthink = \"1s\""))), 100);
        assert_eq!(expected(&plan("kind = \"packmime\"\nrate = \"50/s\"")), 10);
        assert_eq!(
            expected(&plan("kind = \"bulk\"\ncount = 30")),
            0,
            "flows of a list are counted individually"
        );
    }

    #[test]
    fn more_than_the_memory_holds_is_refused_with_both_figures() {
        let plan = plan(&format!("{EXCHANGE}users = 10000\nthink = \"1s\""));
        // 131,072 ports of 3 KiB, and 1,667 connections of 16 KiB.
        let refusal = check_memory(&plan, Some(390 << 20)).unwrap_err().to_string();
        assert!(refusal.contains("131072 client ports and 1667 simultaneous connections"), "{refusal}");
        assert!(refusal.contains("410 MiB, but only 390 MiB are free"), "{refusal}");
        assert!(check_memory(&plan, Some(411 << 20)).is_ok() && check_memory(&plan, None).is_ok());
    }
}
