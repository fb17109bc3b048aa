//! A run in steady state allocates nothing: ten seconds more cost no allocation more.
mod support;

use allocation_counter::measure;
use aqmlab_sim::{Control, run};
use aqmlab_units::Span;

/// Twenty connections, each with forty segments under way, and a packet source behind one queue, which always has
/// packets waiting and room for them all.
fn scenario(queue: &str, recovery: &str) -> String {
    format!(
        r#"
        duration = "100s"
        [topology]
        kind = "dumbbell"
        rate = "20Mbit"
        delay = "10ms"
        queue = {{ {queue} }}
        [record]
        queues = "0s"
        flows = "0s"
        [[traffic]]
        name = "ftp"
        kind = "bulk"
        count = 20
        rtt = {{ uniform = ["40ms", "120ms"] }}
        tcp = {{ profile = "rfc", ecn = true, recovery = "{recovery}", initial_ssthresh = "max_window", max_window = 40 }}
        [[traffic]]
        name = "udp"
        kind = "poisson"
        rate = "1Mbit"
        size = "400B"
        "#
    )
}

fn allocations(text: &str, seconds: u64) -> (u64, u64) {
    let mut plan = support::plan(text);
    plan.stop.at = Span::s(seconds);
    let mut events = 0;
    let counted = measure(|| {
        events = run(&plan, 1, &Control::default()).expect("it runs").manifest.events;
    });
    (counted.count_total, events)
}

fn assert_steady(queue: &str, recovery: &str, from: u64) {
    let text = scenario(queue, recovery);
    let (short, few) = allocations(&text, from);
    let (long, many) = allocations(&text, from + 10);
    assert!(many > few + 40_000, "{few} and {many} events");
    assert!(short > 50, "the counter sees the tables being made: {short}");
    assert_eq!(long, short, "{} events more", many - few);
}

#[test]
fn ten_seconds_more_allocate_nothing() {
    assert_steady(r#"kind = "droptail", limit = "2000p""#, "newreno", 20);
}

/// RED marks, and endpoints react.
#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "builds with debug assertions copy endpoints, to compare header prediction"
)]
fn nor_do_they_under_marks() {
    assert_steady(
        r#"kind = "red", limit = "2000p", min_th = "30p", max_th = "90p", ecn = true, ecn_region = "feng", gentle = true"#,
        "newreno",
        20,
    );
}

/// Nor do losses, once each endpoint has had as many holes as it ever will: SACK options, scoreboards and what waits
/// beyond a hole use the same memory again.
#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "builds with debug assertions copy endpoints, to compare header prediction"
)]
fn nor_do_they_under_losses() {
    assert_steady(r#"kind = "droptail", limit = "60p""#, "sack", 80);
}
