//! CoDel under TCP: it holds the standing queue near its target, whereas DropTail fills the buffer.
mod support;

use support::{record, summary};

/// Twenty connections with a round-trip time of 80 ms over 10 Mbit/s.
fn scenario(queue: &str, ecn: bool) -> String {
    format!(
        r#"
        duration = "60s"
        warmup = "20s"
        [topology]
        kind = "dumbbell"
        rate = "10Mbit"
        delay = "10ms"
        queue = {{ {queue} }}
        [[traffic]]
        name = "ftp"
        kind = "bulk"
        count = 20
        rtt = "80ms"
        tcp = {{ ecn = {ecn} }}
        "#
    )
}

/// Returns the mean wait in milliseconds, the throughput as a share of the link's rate, and the
/// numbers of packets that the law dropped and marked.
fn outcome(queue: &str, ecn: bool) -> (f64, f64, u128, u128) {
    let r = record(&scenario(queue, ecn), 1);
    let of = |column| summary(&r, "bottleneck", "*", column);
    let wait_ms = of("sojourn_sum_ns") as f64 / of("sojourn_count") as f64 / 1e6;
    let share = of("departures_bytes") as f64 * 8.0 / 10e6 / 40.0;
    (wait_ms, share, of("dropped_early_packets"), of("marked_early_packets"))
}

#[test]
fn the_standing_queue_stays_near_the_target_and_the_link_stays_busy() {
    let (drop_tail, ..) = outcome(r#"kind = "droptail", limit = "300p""#, false);
    assert!(drop_tail > 150.0, "a full buffer is 360 ms: {drop_tail:.1} ms");
    for (queue, ecn) in [("", false), (", ecn = true", true)] {
        let (wait, share, drops, marks) = outcome(&format!(r#"kind = "codel", limit = "300p"{queue}"#), ecn);
        println!("{wait:.2} ms, {share:.3} of the link, {drops} drops, {marks} marks");
        assert!((2.5..15.0).contains(&wait), "ecn {ecn}: {wait:.2} ms; the target is 5 ms");
        assert!(share > 0.95, "ecn {ecn}: {share:.3} of the link");
        assert!(if ecn { marks > 500 } else { drops > 500 && marks == 0 });
    }
}

/// If the target is 20 ms instead of 5 ms, the wait is more than one and a half times as long.
#[test]
fn the_wait_follows_the_target() {
    let at =
        |target: &str| outcome(&format!(r#"kind = "codel", limit = "300p", target = "{target}""#), false).0;
    let (short, long) = (at("5ms"), at("20ms"));
    assert!(long > 1.5 * short && long < 40.0, "{short:.2} ms and {long:.2} ms");
}
