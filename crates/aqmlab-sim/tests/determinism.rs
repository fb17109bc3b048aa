//! The same scenario and seed give the same recording, and an additional flow leaves all other
//! draws unchanged.
mod support;

use aqmlab_recording::Recording;
use aqmlab_sim::{Control, run};
use support::{flows, integers, plan, plans, record};

const CROWD: &str = r#"
    duration = "20s"
    warmup = "5s"
    [topology]
    kind = "dumbbell"
    rate = "10Mbit"
    delay = "10ms"
    access_rate = "100Mbit"
    queue = { kind = "red", limit = "120p", min_th = "10p", max_th = "40p", ecn = true }
    [[traffic]]
    name = "ftp"
    kind = "bulk"
    count = COUNT
    rtt = { uniform = ["60ms", "100ms"] }
    start = { uniform = ["0s", "2s"] }
    tcp = { profile = "rfc", ecn = true }
    [[traffic]]
    name = "short"
    kind = "bulk"
    bytes = "30kB"
    count = 40
    rtt = { exponential = "20ms", offset = "40ms" }
    start = { uniform = ["0s", "18s"] }
    loss = 0.01
    [[traffic]]
    name = "udp"
    kind = "poisson"
    rate = "1Mbit"
    size = { exponential = "400B" }
"#;

fn crowd(count: u32) -> String {
    CROWD.replace("COUNT", &count.to_string())
}

fn digests(r: &Recording) -> Vec<(&'static str, String)> {
    r.tables.iter().map(|t| (t.name, t.digest().to_string())).collect()
}

#[test]
fn twice_the_same() {
    let plan = plan(&crowd(10));
    let once = run(&plan, 7, &Control::default()).unwrap();
    let again = run(&plan, 7, &Control::default()).unwrap();
    assert_eq!(digests(&once), digests(&again));
    let other = run(&plan, 8, &Control::default()).unwrap();
    assert_ne!(digests(&once), digests(&other), "the seed matters");
    assert!(flows(&once, "short", "end_ns").iter().filter(|&&end| end > 0).count() > 30, "flows complete");
}

#[test]
fn other_threads_beside_it_change_nothing() {
    let plan = plan(&crowd(10));
    let alone = digests(&run(&plan, 7, &Control::default()).unwrap());
    let together: Vec<_> = std::thread::scope(|scope| {
        let runs: Vec<_> = [7u64, 8, 7]
            .map(|seed| {
                scope.spawn({
                    let plan = &plan;
                    move || digests(&run(plan, seed, &Control::default()).unwrap())
                })
            })
            .into_iter()
            .collect();
        runs.into_iter().map(|r| r.join().unwrap()).collect()
    });
    assert_eq!(together[0], alone);
    assert_eq!(together[2], alone);
}

#[test]
fn one_flow_more_leaves_all_other_draws_as_they_were() {
    let (ten, eleven) = (record(&crowd(10), 7), record(&crowd(11), 7));
    for (class, n) in [("ftp", 10), ("short", 40), ("udp", 1)] {
        for column in ["start_ns", "base_rtt_ns", "index"] {
            let (a, b) = (flows(&ten, class, column), flows(&eleven, class, column));
            assert_eq!(a[..n], b[..n], "{class} {column}");
        }
    }
    // The packets of a source depend only on its own draws.
    for column in ["sent_segments", "sent_bytes"] {
        assert_eq!(flows(&ten, "udp", column), flows(&eleven, "udp", column));
    }
}

#[test]
fn arms_that_differ_in_their_queue_see_the_same_arrivals() {
    let text = format!(
        "{}\n[[arm]]\nname = \"RED\"\n[[arm]]\nname = \"DropTail\"\n\"topology.queue\" = {{ kind = \"droptail\", limit = \"120p\" }}\n",
        crowd(10)
    );
    let arms = plans(&text);
    assert_eq!(arms.len(), 2);
    let [a, b] = [&arms[0], &arms[1]].map(|p| run(p, 7, &Control::default()).unwrap());
    for column in ["start_ns", "base_rtt_ns"] {
        assert_eq!(flows(&a, "ftp", column), flows(&b, "ftp", column));
    }
    assert_eq!(flows(&a, "udp", "sent_bytes"), flows(&b, "udp", "sent_bytes"));
    assert_ne!(digests(&a), digests(&b));
}

/// A run with more events than there are between two readings of the control.
fn long_run(control: &Control) -> String {
    let mut plan = plan(&crowd(10));
    plan.stop.at = plan.stop.at * 10;
    run(&plan, 7, control).expect_err("the run is stopped").to_string()
}

#[test]
fn a_cancelled_run_leaves_nothing() {
    let control = Control::default();
    control.cancel.store(true, std::sync::atomic::Ordering::Relaxed);
    assert_eq!(long_run(&control), "the run was cancelled");
}

#[test]
fn a_run_beyond_its_memory_cap_ends_with_the_figures() {
    let control = Control::default();
    control.memory_cap.store(1000, std::sync::atomic::Ordering::Relaxed);
    let error = long_run(&control);
    assert!(
        error.starts_with("the run needs more than its memory cap: ") && error.ends_with(" 1000 allowed"),
        "{error}"
    );
}

/// Samples count every packet exactly once, even across the end of the warm-up, which resets the
/// ports' books.
#[test]
fn samples_add_up_to_the_whole_run() {
    let interval = |text: &str| format!("{}\n[record]\nqueues = \"{text}\"\n", crowd(10));
    // In the first run, a sample coincides with the end of the warm-up; in the second, none does.
    let sums: Vec<u128> = ["50ms", "35ms"]
        .iter()
        .map(|ms| {
            let r = record(&interval(ms), 7);
            let queues = r.table("queues").unwrap();
            let at = support::names(queues, "queue");
            let counts = integers(queues, "arrivals_packets");
            let times = integers(queues, "t_ns");
            // The sums cover the time up to 19.95 s, a multiple of both sampling intervals.
            (0..queues.rows())
                .filter(|&i| at[i] == "bottleneck" && times[i] <= 19_950_000_000)
                .map(|i| counts[i])
                .sum()
        })
        .collect();
    assert_eq!(sums[0], sums[1]);
    let no_warmup = record(&interval("50ms").replace("warmup = \"5s\"", ""), 7);
    let measured = support::summary(&no_warmup, "bottleneck", "*", "arrivals_packets");
    assert!(measured >= sums[0] && measured - sums[0] < 100, "{measured} arrivals, {} in samples", sums[0]);
}

/// The books of the whole run, computed from the tables.
#[test]
fn every_packet_has_one_fate() {
    let r = record(&crowd(10), 7);
    let run = r.table("run").unwrap();
    for unit in ["packets", "bytes"] {
        let get = |what: &str| integers(run, &format!("{what}_{unit}"))[0];
        let known = get("delivered") + get("dropped") + get("lost_outside_queues");
        assert_eq!(get("sent"), known + get("in_flight"), "{unit}");
        assert!(get("dropped") > 0 && get("lost_outside_queues") > 0);
    }
    let summary = r.table("summary").unwrap();
    for i in 0..summary.rows() {
        let get = |c: &str| integers(summary, c)[i];
        let dropped: u128 = ["early", "forced", "overflow", "injected"]
            .iter()
            .map(|r| get(&format!("dropped_{r}_packets")))
            .sum();
        if support::names(summary, "class")[i] == "*" {
            assert_eq!(
                get("initial_in_system_packets") + get("arrivals_packets"),
                get("departures_packets") + dropped + get("final_in_system_packets")
            );
        }
    }
}
