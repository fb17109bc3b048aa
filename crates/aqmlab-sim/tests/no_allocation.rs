//! A run in steady state allocates nothing: ten more seconds need no further allocation.
mod support;

use allocation_counter::{AllocationInfo, measure};
use aqmlab_recording::Recording;
use aqmlab_sim::{Control, run};
use aqmlab_units::Span;
use support::integers;

/// Twenty connections with forty segments in flight each, and a packet source, through one
/// queue that never empties and never overflows.
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

/// Sixty users, each of whom opens more than one connection per second, with three exchanges on each.
fn users(more: &str) -> String {
    format!(
        r#"
        duration = "100s"
        [topology]
        kind = "dumbbell"
        rate = "20Mbit"
        delay = "10ms"
        queue = {{ kind = "droptail", limit = "2000p" }}
        [record]
        queues = "0s"
        flows = "0s"
        [[traffic]]
        name = "web"
        kind = "requests"
        users = 60
        think = "200ms"
        request = "300B"
        response = "6kB"
        exchanges = 3
        pause = "50ms"
        server_delay = "3ms"
        rtt = {{ uniform = ["40ms", "80ms"] }}
        {more}
        "#
    )
}

fn allocated(text: &str, seconds: u64) -> (AllocationInfo, Recording) {
    let mut plan = support::plan(text);
    plan.stop.at = Span::s(seconds);
    let mut recording = None;
    let counted = measure(|| {
        recording = Some(run(&plan, 1, &Control::default()).expect("it runs"));
    });
    (counted, recording.expect("it has run"))
}

/// Returns the number of allocations, and the number of hops that all packets have made in total.
fn allocations(text: &str, seconds: u64) -> (u64, u128) {
    let (counted, recording) = allocated(text, seconds);
    let run = recording.table("run").expect("every recording has a run");
    (counted.count_total, integers(run, "packet_hops")[0])
}

fn assert_steady(text: &str, from: u64) {
    let (short, few) = allocations(text, from);
    let (long, many) = allocations(text, from + 10);
    assert!(many > few + 40_000, "{few} and {many} packet-hops");
    assert!(short > 50, "the counter sees the allocation of the tables: {short}");
    assert_eq!(long, short, "{} packet-hops more", many - few);
}

#[test]
fn ten_seconds_more_allocate_nothing() {
    assert_steady(&scenario(r#"kind = "droptail", limit = "2000p""#, "newreno"), 20);
}

/// RED marks packets, and endpoints react to the marks.
#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "builds with debug assertions copy endpoints, to compare header prediction"
)]
fn nor_do_they_under_marks() {
    let red = r#"kind = "red", limit = "2000p", min_th = "30p", max_th = "90p", ecn = true, ecn_region = "feng", gentle = true"#;
    assert_steady(&scenario(red, "newreno"), 20);
}

/// Losses cause no allocations either, once each endpoint has had its largest number of holes: SACK
/// options, scoreboards and data beyond a hole reuse the same memory.
#[test]
#[cfg_attr(
    debug_assertions,
    ignore = "builds with debug assertions copy endpoints, to compare header prediction"
)]
fn nor_do_they_under_losses() {
    assert_steady(&scenario(r#"kind = "droptail", limit = "60p""#, "sack"), 80);
}

/// New connections reuse the memory of earlier ones.
#[test]
fn nor_do_requests() {
    assert_steady(&users(""), 40);
}

/// New pages reuse the memory of pages that have been fetched. (That holds only after some time,
/// because a recording has a row for each bin of its page-time histograms.)
#[test]
fn nor_do_pages_of_browsers() {
    let browsers = users("").replace("kind = \"requests\"", "kind = \"browsers\"");
    let of_requests = ["exchanges = 3", "pause = \"50ms\"", "response = \"6kB\""];
    let browsers = of_requests.into_iter().fold(browsers, |text, key| text.replace(key, ""));
    assert_steady(
        &browsers.replace("request = \"300B\"", "embedded = { uniform = [0, 9] }\nresponse = \"2kB\""),
        200,
    );
}

/// A class that is going to stop needs no memory for connections that have already ended.
#[test]
fn the_end_of_a_class_costs_nothing_before_it_comes() {
    let ([without, with], seconds) = (["", r#"stop = "90s""#], 60);
    let [without, with] = [without, with].map(|more| allocated(&users(more), seconds));
    assert_eq!(without.1.manifest.events, with.1.manifest.events, "events");
    assert!(with.0.bytes_max <= without.0.bytes_max + 1000, "{with:?}, without stop {without:?}");
}
