//! The speed of one run. Runs a scenario's first arm once and prints the numbers of events and hops
//! and the processor time per hop, then the same figures as JSON.
//!
//! cargo run --release -p aqmlab-sim --example run_once -- scenarios/demo.toml

use aqmlab_recording::ColumnData;
use aqmlab_scenario::{Limits, parse_within};
use aqmlab_sim::{Control, run};
use aqmlab_storage::Folder;

fn main() {
    let path = std::env::args().nth(1).expect("give a scenario file");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}"));
    let experiment =
        parse_within(&text, &path, Limits::default(), &Folder::of(&path)).unwrap_or_else(|e| panic!("{e}"));
    let plan = &experiment.arms[0];
    let cpu_before = thread_cpu_s();
    let recording = run(plan, experiment.seeds[0], &Control::default()).unwrap_or_else(|e| panic!("{e}"));
    let cpu_s = thread_cpu_s() - cpu_before;
    let table = recording.table("run").expect("every recording has a run");
    let get = |name: &str| match table.column(name) {
        Some(ColumnData::U64(v)) => v[0],
        _ => panic!("no column {name}"),
    };
    let (events, hops) = (recording.manifest.events, get("packet_hops"));
    println!(
        "arm {}: {events} events, {hops} packet-hops, {cpu_s:.3} s, {:.0} ns per hop",
        plan.arm,
        cpu_s * 1e9 / hops as f64
    );
    println!(
        r#"{{"packet_hops":{hops},"delivered":{},"dropped":{},"events":{events},"cpu_s":{cpu_s:.6}}}"#,
        get("delivered_packets"),
        get("dropped_packets"),
    );
}

/// Processor time of this thread (Linux; 0 if the kernel does not report it).
fn thread_cpu_s() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ns: u64 = text.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0);
    ns as f64 / 1e9
}
