//! A run in steady state allocates nothing: ten seconds more cost no allocation more.
mod support;

use allocation_counter::measure;
use aqmlab_sim::{Control, run};
use aqmlab_units::Span;

/// Twenty connections and a packet source behind one RED queue that marks: no packet is lost, so no receiver has to
/// keep what came beyond a hole.
const MARKING: &str = r#"
    duration = "40s"
    [topology]
    kind = "dumbbell"
    rate = "20Mbit"
    delay = "10ms"
    queue = { kind = "red", limit = "2000p", min_th = "30p", max_th = "90p", ecn = true, ecn_region = "feng", gentle = true }
    [record]
    queues = "0s"
    flows = "0s"
    [[traffic]]
    name = "ftp"
    kind = "bulk"
    count = 20
    rtt = { uniform = ["40ms", "120ms"] }
    tcp = { profile = "rfc", ecn = true, initial_ssthresh = "max_window", max_window = 40 }
    [[traffic]]
    name = "udp"
    kind = "poisson"
    rate = "1Mbit"
    size = "400B"
"#;

fn allocations(text: &str, seconds: u64) -> (u64, u64) {
    let mut plan = support::plan(text);
    plan.stop.at = Span::s(seconds);
    let mut events = 0;
    let counted = measure(|| {
        events = run(&plan, 1, &Control::default()).expect("it runs").manifest.events;
    });
    (counted.count_total, events)
}

#[test]
fn ten_seconds_more_allocate_nothing() {
    let (short, few) = allocations(MARKING, 20);
    let (long, many) = allocations(MARKING, 30);
    assert!(many > few + 50_000, "{few} and {many} events");
    assert!(short > 50, "the counter sees the tables being made: {short}");
    assert_eq!(long, short, "{} events more", many - few);
}
