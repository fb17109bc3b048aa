//! A crowd of flows with the profile `linux` (or `linux_offload`) at a bottleneck, compared with Linux 6.1 (for DualPI2,
//! Linux 7.3) in virtual time: the same flows (the round-trip time and start time of each, by seed), and the same
//! queue. `vectors/linux-crowd` contains the results of the kernel.
//!
//! The means must agree within these limits: goodput within 1 %, mean queue within 3 %, drops and
//! marks within 8 %, and timeouts within a factor of 1.5. No flow may get less than a tenth of the
//! mean goodput unless a flow of the kernel does so, too. `differences.csv` lists the cases that
//! exceed these limits, with the figures that differ and the reason. The test also fails if that
//! list is no longer accurate.
mod support;

use std::collections::BTreeMap;
use std::path::PathBuf;

use aqmlab_recording::Recording;
use aqmlab_sim::{Control, run};
use support::{flows, plan, summary};

type Row = BTreeMap<String, String>;

fn table(file: &str) -> Vec<Row> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../vectors/linux-crowd").join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().expect("a line of names").split(',').collect();
    let row = |line: &str| {
        names.iter().zip(line.splitn(names.len(), ',')).map(|(n, v)| ((*n).into(), v.into())).collect()
    };
    lines.map(row).collect()
}

fn number(row: &Row, column: &str) -> f64 {
    row[column].parse().unwrap_or_else(|_| panic!("{column} of {row:?} is a number"))
}

/// The figures of a run, in the order of the columns of `runs.csv`.
const FIGURES: [&str; 6] = ["goodput_mbit", "mean_queue", "dropped", "marked", "timeouts", "least_share"];
const GOODPUT: usize = 0;
const QUEUE: usize = 1;
const DROPPED: usize = 2;
const MARKED: usize = 3;
const TIMEOUTS: usize = 4;
const LEAST: usize = 5;
type Figures = [f64; 6];

/// Number of our runs for each run of the kernel. They have the same flows, but different draws.
const RUNS: usize = 4;
/// The cases of the fast lane. They cover one flow, deep and shallow queues, runs with and without
/// ECN, both congestion controls, and queues that decide at arrival and at departure.
const FEW: [&str; 7] = [
    "reno_red_1_10",
    "reno_red_ecn_16_10",
    "reno_red_16_5",
    "cubic_red_ecn_16_10",
    "cubic_pfifo_4_20",
    "reno_pie_1_10",
    "cubic_fq_codel_ecn_4_10",
];

fn theirs(case: &str) -> Vec<Figures> {
    let rows = table("runs.csv");
    rows.iter().filter(|row| row["case"] == case).map(|row| FIGURES.map(|name| number(row, name))).collect()
}

/// RED with a case's thresholds.
fn red(case: &Row) -> String {
    format!(
        "{{ kind = \"red\", preset = \"linux\", limit = \"{}B\", min_th = \"{}B\", max_th = \"{}B\", \
         mean_packet = \"1500B\", burst = {}, max_p = {}, ecn = {} }}",
        number(case, "limit") * 1500.0,
        number(case, "min") * 1500.0,
        number(case, "max") * 1500.0,
        case["burst"],
        case["probability"],
        case["ecn"] == "1"
    )
}

/// A scenario with the flows of this seed. `again` numbers the runs of one seed. Each flow starts
/// later by `again` times the sum of 0.7 ms and its number in microseconds, so that the runs differ
/// even if the queue makes no random draws.
fn scenario(case: &Row, scenes: &[Row], seed: usize, again: usize) -> String {
    let count = number(case, "flows") as usize;
    let mine = scenes.iter().filter(|row| number(row, "seed") as usize == seed).take(count);
    let list = |column: &str, later: &dyn Fn(usize) -> f64| {
        let values = mine.clone().enumerate().map(|(n, row)| number(row, column) + later(n));
        values.map(|s| format!("\"{:.0}us\"", s * 1e6)).collect::<Vec<_>>().join(", ")
    };
    let shaped = case["queue"].starts_with("htb");
    // In the kernel's runs, a packet arrives when its transmission begins, not when it ends, so our
    // round-trip times are shorter by one transmission time. htb's packets leave over a fast link here, too.
    let transmission = if shaped { 0.0 } else { 1500.0 * 8.0 / number(case, "rate_kbit") / 1e3 };
    let rtt = list("rtt_s", &|_| -transmission);
    let start = list("start_s", &|n| again as f64 * (0.7e-3 + n as f64 * 1e-6));
    let (limit, rate) = (&case["limit"], number(case, "rate_kbit"));
    let queue = match case["queue"].as_str() {
        // For DCTCP, each packet that finds at least `min` packets in the queue is marked.
        "red" if case["burst"].is_empty() => format!(
            "{{ kind = \"red\", preset = \"linux\", limit = \"{}B\", min_th = \"{}B\", max_th = \"{}B\", \
             mean_packet = \"1500B\", w_q = 1.0, ecn = true }}",
            number(case, "limit") * 1500.0,
            number(case, "min") * 1500.0,
            number(case, "max") * 1500.0,
        ),
        "red" => red(case),
        "htb_red" => format!(
            "{{ kind = \"htb\", preset = \"linux\", class = [{{ name = \"all\", rate = \"{0:.0}bit\", ceil = \"{0:.0}bit\", \
             burst = \"1600B\", cburst = \"1600B\", queue = {1} }}] }}",
            // htb counts 14 bytes of header with each packet, as the kernel's script does for its rate.
            rate * 1e3 * 1514.0 / 1500.0,
            red(case),
        ),
        "pfifo" => format!("{{ kind = \"droptail\", limit = \"{limit}p\" }}"),
        // The kernel counts 14 bytes more for each packet, so a packet of its MTU has 1500 bytes here.
        "cake" => "{ kind = \"cake\", preset = \"linux\", isolation = \"flows\", tins = \"besteffort\", \
                   mtu = \"1500B\" }"
            .into(),
        kind => format!(
            "{{ kind = \"{kind}\", preset = \"linux\", limit = \"{limit}p\", {} = \"1500B\" {} }}",
            match kind {
                "pie" => "mean_packet",
                "fq_codel" => "quantum = \"1500B\", mtu",
                _ => "mtu",
            },
            // DualPI2 always marks.
            if kind == "dualpi2" { String::new() } else { format!(", ecn = {}", case["ecn"] == "1") },
        ),
    };
    let link = if shaped { 1e7 } else { rate };
    let (warmup, measured) = (number(case, "warmup_s"), number(case, "measured_s"));
    format!(
        r#"
        duration = "{}s"
        warmup = "{warmup}s"
        [topology]
        kind = "dumbbell"
        rate = "{link}kbit"
        delay = "10ms"
        access_rate = "10Gbit"
        queue = {queue}
        reverse_queue = {{ kind = "droptail", limit = "100000p" }}
        [record]
        queues = "0s"
        flows = "0s"
        [[traffic]]
        name = "crowd"
        kind = "bulk"
        count = {count}
        rtt = {{ list = [{rtt}] }}
        start = {{ list = [{start}] }}
        tcp = {{ profile = "{}", congestion = "{}", ecn = {}, ecn_fallback = "off", receive_window = "1MiB", quick_acks_growing = 339{} }}
        "#,
        warmup + measured,
        if case["offload"] == "1" { "linux_offload" } else { "linux" },
        case["congestion"],
        case["ecn"] == "1",
        match case["congestion"].as_str() {
            // Linux with DCTCP sets ECT on all of its packets.
            "dctcp" => ", ect_on_syn = true, ect_on_syn_ack = true, ect_on_retransmission = true",
            "bbr" => ", pacing_burst = 1", // the kernel's packets hold one segment each
            _ => "",
        },
    )
}

fn figures(r: &Recording, case: &Row) -> Figures {
    let get = |column: &str| summary(r, "bottleneck", "*", column) as f64;
    let all = |what: &str| -> f64 {
        ["early", "forced", "overflow"].iter().map(|why| get(&format!("{what}_{why}_packets"))).sum()
    };
    let of_flows =
        |column: &str| -> Vec<f64> { flows(r, "crowd", column).into_iter().map(|n| n as f64).collect() };
    let measured = number(case, "measured_s");
    let bytes = of_flows("measured_received_bytes");
    let sum: f64 = bytes.iter().sum();
    let least = bytes.iter().copied().fold(f64::INFINITY, f64::min);
    [
        sum * 8e-6 / measured,
        get("backlog_packets_integral_ns") / 1e9 / measured,
        all("dropped"),
        all("marked"),
        of_flows("measured_timeouts").iter().sum(),
        least * bytes.len() as f64 / sum,
    ]
}

fn mean(runs: &[Figures], figure: usize) -> f64 {
    runs.iter().map(|run| run[figure]).sum::<f64>() / runs.len() as f64
}

/// Returns the names of the figures whose means differ by more than the limits allow.
fn apart(ours: &[Figures], theirs: &[Figures]) -> Vec<&'static str> {
    let inside = |figure: usize| {
        let (a, b) = (mean(ours, figure), mean(theirs, figure));
        // The uncertainty of a count is about its square root.
        let chance = 2.0 * (b.max(1.0) * (1.0 / theirs.len() as f64 + 1.0 / ours.len() as f64)).sqrt();
        match figure {
            GOODPUT => (a - b).abs() <= 0.01 * b,
            QUEUE => (a - b).abs() <= 0.03 * b,
            DROPPED | MARKED => (a - b).abs() <= (0.08 * b).max(chance),
            TIMEOUTS => a <= (1.5 * b).max(b + chance) && b <= (1.5 * a).max(a + chance),
            _ => {
                let starved = |runs: &[Figures]| runs.iter().any(|run| run[LEAST] < 0.1);
                !starved(ours) || starved(theirs)
            }
        }
    };
    (0..FIGURES.len()).filter(|figure| !inside(*figure)).map(|figure| FIGURES[figure]).collect()
}

/// Compares the selected cases, prints a table, and fails if the list of differences has changed.
fn compare(wanted: impl Fn(&str) -> bool) {
    let (scenes, excused) = (table("scenes.csv"), table("differences.csv"));
    let mut failures = String::new();
    println!("| case | runs | {} |", FIGURES.join(" | "));
    for case in table("cases.csv") {
        let name = &case["case"];
        if !wanted(name) {
            continue;
        }
        let theirs = theirs(name);
        let draws = (1..=theirs.len()).flat_map(|seed| (0..RUNS).map(move |again| (seed, again)));
        let ours: Vec<Figures> = draws
            .map(|(seed, again)| {
                let plan = plan(&scenario(&case, &scenes, seed, again));
                let recording = run(&plan, again as u64 + 1, &Control::default()).expect("it runs");
                figures(&recording, &case)
            })
            .collect();
        let cells = (0..FIGURES.len()).map(|f| format!("{:.4} / {:.4}", mean(&ours, f), mean(&theirs, f)));
        let cells = cells.collect::<Vec<_>>().join(" | ");
        println!("| {name} | {} / {} | {cells} |", ours.len(), theirs.len());
        let apart = apart(&ours, &theirs).join(" ");
        let listed = excused.iter().find(|row| row["case"] == *name).map_or("", |row| &row["apart"]);
        if apart != listed {
            failures.push_str(&format!("\n{name}: apart in [{apart}], listed [{listed}]"));
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

#[test]
fn some_crowds_fare_as_on_linux() {
    assert!(FEW.iter().all(|few| table("cases.csv").iter().any(|case| case["case"] == *few)));
    compare(|case| FEW.contains(&case));
}

#[test]
#[ignore = "all of them take minutes"]
fn all_crowds_fare_as_on_linux() {
    let only = std::env::var("AQMLAB_CROWD_CASE").ok();
    compare(|case| only.as_ref().is_none_or(|only| case.contains(only.as_str())));
}
