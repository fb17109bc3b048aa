//! The measured values are those after the warm-up: the values of a run minus those of a run that
//! ends when the warm-up does.
mod support;

use aqmlab_recording::Recording;
use support::{flows, record, summary};

/// Runs a scenario whose `head` gives the duration and the warm-up. The traffic consists of endless
/// transfers, short transfers that end before 4 s, and datagrams, through a queue that marks and
/// drops.
fn run(head: &str) -> Recording {
    let text = format!(
        r#"
        {head}
        [topology]
        kind = "dumbbell"
        rate = "4Mbit"
        delay = "10ms"
        queue = {{ kind = "red", limit = "30p", ecn = true }}
        [[traffic]]
        name = "ftp"
        kind = "bulk"
        count = 4
        rtt = {{ uniform = ["40ms", "120ms"] }}
        tcp = {{ profile = "rfc", ecn = true }}
        [[traffic]]
        name = "short"
        kind = "bulk"
        bytes = "5kB"
        count = 4
        rtt = "40ms"
        tcp = {{ profile = "rfc", time_wait = "100ms" }}
        [[traffic]]
        name = "udp"
        kind = "cbr"
        rate = "1Mbit"
        size = "500B"
        "#
    );
    record(&text, 3)
}

#[test]
fn measured_is_the_whole_less_what_was_before() {
    let all = run("duration = \"10s\"\nwarmup = \"4s\"");
    let before = run("duration = \"4s\"");
    for (measured, counted) in [
        ("measured_received_bytes", "received_bytes"),
        ("measured_delivered_bytes", "delivered_bytes"),
        ("measured_sent_bytes", "sent_bytes"),
        ("measured_timeouts", "timeouts"),
        ("measured_retransmitted_segments", "retransmitted_segments"),
        ("measured_fast_retransmits", "fast_retransmits"),
        ("measured_ecn_reductions", "ecn_reductions"),
        ("measured_ce_received", "ce_received"),
        ("measured_spurious_retransmissions", "spurious_retransmissions"),
        ("measured_multiple_loss_windows", "multiple_loss_windows"),
    ] {
        for class in ["ftp", "short", "udp"] {
            let [whole, head] = [&all, &before].map(|r| flows(r, class, counted));
            let difference: Vec<_> = whole.iter().zip(&head).map(|(a, b)| a - b).collect();
            assert_eq!(flows(&all, class, measured), difference, "{class}: {measured}");
        }
    }
    assert!(flows(&before, "ftp", "delivered_bytes").iter().all(|&bytes| bytes > 10_000));
    assert_eq!(flows(&before, "short", "delivered_bytes"), [5000; 4]);
}

/// Packets are lost in a router after hosts behind a long link have been served beyond the end of
/// the warm-up. A loss counts when it happens, not when the host is served.
#[test]
fn losses_in_routers_are_measured_from_the_cut() {
    let run = |head: &str| {
        let text = format!(
            r#"
            {head}
            [topology]
            kind = "dumbbell"
            rate = "20Mbit"
            delay = "80ms"
            [[traffic]]
            name = "ftp"
            kind = "bulk"
            count = 30
            rtt = {{ uniform = ["200ms", "300ms"] }}
            [[delay]]
            at = "right"
            loss = 0.05
            [record]
            flows = "0s"
            "#
        );
        record(&text, 1)
    };
    let all = |warmup| run(&format!("duration = \"4s\"\nwarmup = \"{warmup}\""));
    for warmup in ["2s", "2500ms", "3s"] {
        let all = all(warmup);
        let before = run(&format!("duration = \"{warmup}\""));
        let [whole, head] = [&all, &before].map(|r| flows(r, "ftp", "lost_outside_queues_packets"));
        assert!(head.iter().sum::<u128>() > 50, "{warmup}: {head:?}");
        let difference: Vec<_> = whole.iter().zip(&head).map(|(a, b)| a - b).collect();
        assert_eq!(flows(&all, "ftp", "measured_lost_outside_queues_packets"), difference, "{warmup}");
    }
}

/// Forty transfers start, one every 100 ms, and the run stops when ten are complete. Transfers that
/// complete during the warm-up of 2 s do not count, so the tenth that counts begins at 2.9 s, or a
/// little earlier if transfers from before t0 complete after it.
#[test]
fn completions_count_from_the_cut() {
    let starts: Vec<_> = (0..40).map(|i| format!("\"{}ms\"", 100 * i)).collect();
    let text = format!(
        r#"
        duration = "10s"
        warmup = "2s"
        [topology]
        kind = "dumbbell"
        rate = "10Mbit"
        delay = "10ms"
        [[traffic]]
        name = "short"
        kind = "bulk"
        bytes = "5kB"
        count = 40
        rtt = "40ms"
        start = {{ list = [{}] }}
        [stop]
        completed = {{ class = "short", count = 10 }}
        "#,
        starts.join(", ")
    );
    let r = record(&text, 1);
    let ends = flows(&r, "short", "end_ns");
    let after = ends.iter().filter(|&&end| end > 2_000_000_000).count();
    assert_eq!((after, ends.iter().max().copied()), (10, Some(u128::from(r.manifest.t1.as_ns()))));
    assert!(r.manifest.t0.as_ns() == 2_000_000_000 && r.manifest.t1.as_ns() > 2_800_000_000);
}

#[test]
fn queues_measure_from_the_cut_too() {
    let all = run("duration = \"10s\"");
    let after = run("duration = \"10s\"\nwarmup = \"4s\"");
    let before = run("duration = \"4s\"");
    let additive = |class, columns: &[&str]| {
        for column in columns {
            let [all, after, before] =
                [&all, &after, &before].map(|r| summary(r, "bottleneck", class, column));
            assert!(before > 0 && after > 0, "{class}: {column}");
            assert_eq!(before + after, all, "{class}: {column}");
        }
    };
    for class in ["ftp", "udp", "*"] {
        additive(class, &["arrivals_packets", "arrivals_bytes", "departures_packets", "departures_bytes"]);
    }
    additive("ftp", &["ect_arrivals_packets", "marked_early_packets"]);
    additive("udp", &["dropped_early_packets"]);
    additive("*", &["busy_ns", "sojourn_sum_ns", "sojourn_count"]);
    additive("*", &["backlog_packets_integral_ns", "backlog_packets_sq_integral_ns"]);
}

#[test]
fn marks_reach_the_sender_that_halves_for_them() {
    let run = run("duration = \"10s\"");
    let (seen, reductions) = (flows(&run, "ftp", "ce_received"), flows(&run, "ftp", "ecn_reductions"));
    assert!(seen.iter().zip(&reductions).all(|(s, r)| s > &0 && r > &0 && r <= s), "{seen:?} {reductions:?}");
}
