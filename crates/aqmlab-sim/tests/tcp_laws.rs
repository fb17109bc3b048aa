//! The laws of TCP throughput hold within the error of their models.
mod support;

use support::{T_95_9, flows, integers, interval, record, summary};

/// The throughput is (SMSS / RTT) sqrt(1.5 / p), within 15 %, for random losses between 0.1 % and 1
/// %, with one ACK per segment and hardly any timeouts (Mathis, Semke, Mahdavi, Ott 1997).
#[test]
fn square_root_law() {
    const SECONDS: f64 = 600.0;
    for p in [0.001, 0.003, 0.01] {
        let text = format!(
            r#"
            duration = "620s"
            warmup = "20s"
            [topology]
            kind = "dumbbell"
            rate = "1Gbit"
            delay = "10ms"
            queue = {{ kind = "droptail", limit = "100000p" }}
            [[traffic]]
            name = "ftp"
            kind = "bulk"
            count = 1
            rtt = "100ms"
            loss = {p}
            tcp = {{ profile = "rfc", min_rto = "200ms", ack_every = 1, mss = "1460B", max_window = 100000 }}
            [record]
            queues = "0s"
            flows = "0s"
            "#
        );
        let throughput: Vec<f64> = (1..=10)
            .map(|seed| {
                flows(&record(&text, seed), "ftp", "measured_delivered_bytes")[0] as f64 * 8.0 / SECONDS
            })
            .collect();
        let (mean, half_width) = interval(&throughput, T_95_9);
        let law = 1460.0 * 8.0 / 0.1 * (1.5f64 / p).sqrt();
        println!(
            "p {p}: {:.3} Mbit/s +- {:.3}, law {:.3}, ratio {:.3}",
            mean / 1e6,
            half_width / 1e6,
            law / 1e6,
            mean / law
        );
        assert!((mean / law - 1.0).abs() < 0.15, "p {p}: {mean} against {law}");
    }
}

/// N flows share a link under an AQM. The notification probability settles where the square-root
/// law fills the link: p = 1.5 (N / (R C))^2, where R is the round-trip time including the queue.
/// The two sides agree within 25 %.
#[test]
fn aqm_equilibrium() {
    const FLOWS: f64 = 30.0;
    const SECONDS: f64 = 100.0;
    let text = r#"
        duration = "120s"
        warmup = "20s"
        [topology]
        kind = "dumbbell"
        rate = "30Mbit"
        delay = "20ms"
        queue = { kind = "ared", limit = "1000p", min_th = "30p", max_th = "90p", w_q = 0.0005, ecn = true, ecn_region = "feng" }
        [[traffic]]
        name = "ftp"
        kind = "bulk"
        count = 30
        rtt = "100ms"
        start = { uniform = ["0s", "5s"] }
        tcp = { profile = "rfc", ecn = true, ack_every = 1, mss = "1460B", max_window = 100000 }
        [record]
        queues = "0s"
        flows = "0s"
        "#;
    let (mut observed, mut predicted) = (Vec::new(), Vec::new());
    for seed in 1..=10 {
        let r = record(text, seed);
        let get = |column: &str| summary(&r, "bottleneck", "ftp", column) as f64;
        let notified: f64 =
            ["marked_early", "marked_forced", "dropped_early", "dropped_forced", "dropped_overflow"]
                .iter()
                .map(|reason| get(&format!("{reason}_packets")))
                .sum();
        observed.push(notified / get("arrivals_packets"));
        let capacity = get("departures_packets") / SECONDS;
        let wait = summary(&r, "bottleneck", "*", "sojourn_sum_ns") as f64
            / summary(&r, "bottleneck", "*", "sojourn_count") as f64
            / 1e9;
        let rtt = 0.1 + wait;
        predicted.push(1.5 * (FLOWS / (rtt * capacity)).powi(2));
    }
    let ((p, width), (law, _)) = (interval(&observed, T_95_9), interval(&predicted, T_95_9));
    println!("p {p:.5} +- {width:.5}, law {law:.5}, ratio {:.3}", p / law);
    assert!((p / law - 1.0).abs() < 0.25, "{p} against {law}");
}

/// A clock with ticks of 10 ms shows that a round trip of 45 ms takes four or five ticks, each with probability
/// 1/2, if its phase is uniform. The 95 % interval for the count of 400 flows is 200 +- 20; the test allows twice
/// as much.
#[test]
fn each_flow_may_have_a_clock_of_its_own() {
    let measured = |phases: &str, count: usize, seed| {
        let text = format!(
            r#"
            duration = "1s"
            [topology]
            kind = "dumbbell"
            rate = "10Gbit"
            delay = "10ms"
            access_rate = "10Gbit"
            queue = {{ kind = "droptail", limit = "100000p" }}
            [[traffic]]
            name = "x"
            kind = "bulk"
            count = {count}
            rtt = "45ms"
            tcp = {{ profile = "ns2", {phases} }}
            [record]
            flows = "50ms"
            "#
        );
        let recording = record(&text, seed);
        let samples = recording.table("flow_series").expect("flows are sampled");
        let mut first = integers(samples, "srtt_ns");
        first.truncate(count);
        first
    };
    const MS: u128 = 1_000_000;
    assert_eq!(measured("tick_phases = \"same\"", 400, 1), [40 * MS; 400]);
    assert_eq!(measured("tick_phase = \"6ms\"", 400, 1), [50 * MS; 400]);
    let random = measured("tick_phases = \"random\"", 400, 1);
    let of = |ticks: u128| random.iter().filter(|srtt| **srtt == ticks * 10 * MS).count();
    assert_eq!(of(4) + of(5), 400, "{random:?}");
    assert!((160..=240).contains(&of(4)), "{} of 400 flows measure four ticks", of(4));
    assert_ne!(random, measured("tick_phases = \"random\"", 400, 2), "the seed determines the phases");
    let more = measured("tick_phases = \"random\"", 401, 1);
    assert_eq!(random, more[..400], "an additional flow changes no phase");
}
