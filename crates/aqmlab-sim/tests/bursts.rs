//! Senders whose segments leave in bursts (`burst`), like those of hosts with segmentation offload:
//! what this does to a queue.
mod support;

use support::{record, summary};

/// The transmission times of a packet on the bottleneck and on an access link, in seconds.
const PACKET: f64 = 1500.0 * 8.0 / 50e6;
const ACCESS: f64 = 1500.0 * 8.0 / 10e9;

/// Returns the mean wait, in seconds, and the share of packets that are dropped.
fn run(count: u32, limit: u32, tcp: &str) -> (f64, f64) {
    let text = format!(
        r#"
        duration = "40s"
        warmup = "10s"
        [topology]
        kind = "dumbbell"
        rate = "50Mbit"
        delay = "1ms"
        access_rate = "10Gbit"
        queue = {{ kind = "droptail", limit = "{limit}p" }}
        [[traffic]]
        name = "ftp"
        kind = "bulk"
        count = {count}
        rtt = "20ms"
        start = {{ uniform = ["0s", "1s"] }}
        tcp = {{ profile = "linux", burst_wait = "room", {tcp} }}
        [record]
        queues = "0s"
        flows = "0s"
        "#
    );
    let r = record(&text, 1);
    let get = |column: &str| summary(&r, "bottleneck", "*", column) as f64;
    (
        get("sojourn_sum_ns") / get("sojourn_count") / 1e9,
        get("dropped_overflow_packets") / get("arrivals_packets"),
    )
}

/// One flow whose window fills half of its pipe. Without bursts, no packet waits. In bursts of N
/// packets, each packet waits for those before it in its burst, so the average packet waits for
/// (N - 1) / 2 others.
#[test]
fn packets_of_a_burst_wait_for_each_other() {
    let (alone, _) = run(1, 1000, "ack_every = 1, max_window = 40");
    assert!(alone < 0.01 * PACKET, "{alone}");
    for burst in [2, 4, 8] {
        let (wait, _) =
            run(1, 1000, &format!("ack_every = 1, max_window = 40, burst = {burst}, burst_time = \"0s\""));
        let law = f64::from(burst - 1) / 2.0 * (PACKET - ACCESS);
        println!("bursts of {burst}: {:.1} us, {:.1} by arithmetic", wait * 1e6, law * 1e6);
        assert!((wait / law - 1.0).abs() < 0.01, "bursts of {burst}: {wait}, not {law}");
    }
}

/// Bursts overflow a small buffer: more packets are lost than without bursts, although the windows
/// are no larger.
#[test]
fn a_small_buffer_loses_more_of_bursts() {
    let lost = |tcp: &str| run(4, 15, tcp).1;
    let (alone, sixteen) = (lost("burst = 1"), lost("burst = 16, burst_time = \"0s\""));
    println!("lost: {:.4} % alone, {:.4} % in bursts of 16", 100.0 * alone, 100.0 * sixteen);
    assert!(alone > 0.0 && sixteen > 1.5 * alone, "{alone}, {sixteen}");
}
