//! TFRC flows alone and with TCP, compared with ns-2.35: `vectors/ns2-tfrc` has its settings and results.
//!
//! The ratio of our mean over eight seeds to ns-2's must lie within these bounds: 3 % for the rate of a flow alone, 15 % for
//! the rates of TFRC where four flows compete with four TCP flows, 25 % where one competes with seven, and 25 % for the
//! percentage of drops among several flows. (A flow alone drops a packet in several hundred in both programs.)
mod support;

use std::path::PathBuf;

use aqmlab_sim::{Control, run};
use support::{flows, plan, summary};

const SEEDS: std::ops::RangeInclusive<u64> = 1..=8;

/// Rates of TFRC and of TCP in bit/s, and the percentage of drops.
type Figures = [f64; 3];

fn mean(runs: &[Figures]) -> Figures {
    [0, 1, 2].map(|i| runs.iter().map(|run| run[i]).sum::<f64>() / runs.len() as f64)
}

fn theirs(case: &str) -> Figures {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../vectors/ns2-tfrc/runs.csv");
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let rows = text.lines().map(|line| line.split(',').collect::<Vec<_>>()).filter(|row| row[0] == case);
    let number = |text: &str| text.parse::<f64>().expect("a number");
    let runs: Vec<Figures> = rows.map(|row| [2, 3, 4].map(|i| number(row[i]))).collect();
    assert_eq!(runs.len(), SEEDS.count(), "{case}");
    mean(&runs)
}

fn ours(queue: &str, tfrcs: u32, tcps: u32) -> Figures {
    let start = r#"start = { uniform = ["0s", "5s"] }"#;
    let mut text = format!(
        r#"
        duration = "150s"
        warmup = "50s"
        [topology]
        kind = "dumbbell"
        rate = "5Mbit"
        delay = "10ms"
        access_rate = "100Mbit"
        queue = {queue}
        reverse_queue = {{ kind = "droptail", limit = "100000p" }}
        [record]
        queues = "0s"
        flows = "0s"
        [[traffic]]
        name = "tfrc"
        kind = "media"
        control = {{ kind = "tfrc" }}
        endless = true
        rate = "150kbit"
        max_rate = "1Gbit"
        packet = "1000B"
        count = {tfrcs}
        rtt = "60ms"
        {start}
        "#
    );
    if tcps > 0 {
        text += &format!(
            r#"
            [[traffic]]
            name = "tcp"
            kind = "bulk"
            count = {tcps}
            rtt = "60ms"
            {start}
            tcp = {{ profile = "ns2", mss = "960B", max_window = 1000, recovery = "sack", send_jitter = "1.6ms" }}
            "#
        );
    }
    let runs: Vec<Figures> = SEEDS
        .map(|seed| {
            let recording = run(&plan(&text), seed, &Control::default()).unwrap_or_else(|e| panic!("{e}"));
            let get = |class: &str, column: &str| summary(&recording, "bottleneck", class, column) as f64;
            let rate = |class: &str| get(class, "departures_bytes") * 8.0 / 100.0;
            let dropped =
                ["early", "forced", "overflow"].map(|why| get("*", &format!("dropped_{why}_packets")));
            let tcp = if tcps > 0 { rate("tcp") } else { 0.0 };
            assert_eq!(flows(&recording, "tfrc", "measured_sent_bytes").len(), tfrcs as usize);
            [rate("tfrc"), tcp, 100.0 * dropped.iter().sum::<f64>() / get("*", "arrivals_packets")]
        })
        .collect();
    mean(&runs)
}

#[test]
fn tfrc_gets_what_it_gets_in_ns2() {
    let droptail = r#"{ kind = "droptail", limit = "99p" }"#;
    let red = r#"{ kind = "red", preset = "ns2", measure = "packets", byte_mode = "off", limit = "99p", min_th = "10p", max_th = "30p", max_p = 0.1, w_q = 0.002, gentle = true, mean_packet = "1000B" }"#;
    let mut failures = Vec::new();
    for (case, queue, tfrcs, tcps, rate_bound) in [
        ("droptail-1-0", droptail, 1, 0, 0.03),
        ("red-1-0", red, 1, 0, 0.03),
        ("droptail-4-4", droptail, 4, 4, 0.15),
        ("red-4-4", red, 4, 4, 0.15),
        ("red-1-7", red, 1, 7, 0.25),
    ] {
        let (ours, theirs) = (ours(queue, tfrcs, tcps), theirs(case));
        let [rate, _, drops] = [0, 1, 2].map(|i| ours[i] / theirs[i]);
        println!(
            "{case}: TFRC {:.0} ({rate:.3} of ns-2's), TCP {:.0}, drops {:.3} % ({drops:.3})",
            ours[0], ours[1], ours[2]
        );
        if (rate - 1.0).abs() > rate_bound {
            failures.push(format!("{case}: rate {rate}"));
        }
        if tcps > 0 && (drops - 1.0).abs() > 0.25 {
            failures.push(format!("{case}: drops {drops}"));
        }
    }
    assert!(failures.is_empty(), "{failures:?}");
}
