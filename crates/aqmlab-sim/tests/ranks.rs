//! One test for each rank of simultaneous events.
mod support;

use support::graph::graph;
use support::{integers, names, numbers, record, summary};

/// Two local CBR flows of 5 Mbit/s feed a link of 10 Mbit/s with a buffer for one packet. Every 1.6
/// ms, two packets of 0.8 ms each arrive in the same nanosecond in which the link becomes free.
/// Both fit only if the departure comes before the sources' timers. (`ranks_of_arrivals.rs` tests
/// the same for packets that come over links.)
#[test]
fn departures_before_timers() {
    let r = record(
        r#"
        duration = "2s"
        [topology]
        kind = "dumbbell"
        rate = "10Mbit"
        delay = "1ms"
        access_rate = "none"
        queue = { kind = "droptail", limit = "1p" }
        [[traffic]]
        name = "cbr"
        kind = "cbr"
        rate = "5Mbit"
        size = "1000B"
        count = 2
        "#,
        1,
    );
    assert!(summary(&r, "bottleneck", "*", "arrivals_packets") > 2000);
    assert_eq!(summary(&r, "bottleneck", "*", "dropped_overflow_packets"), 0);
}

/// A packet that comes over a link (an arrival) meets a packet from a local source (a timer) at a
/// queue with room for one packet: the arrival is admitted.
#[test]
fn arrivals_before_timers() {
    // `over-link` reaches b after exactly 8 ms (4 ms of transmission and 4 ms of propagation),
    // whereas `on-the-spot` enters at b. Both send every 8 ms, so their packets meet at b, whose
    // link is always busy.
    let links = [("a", "b", "2Mbit", "4ms", None), ("b", "c", "1Mbit", "1ms", Some(1))];
    let streams = [("on-the-spot", "b", "c", "1Mbit", "0s"), ("over-link", "a", "c", "1Mbit", "0s")];
    let r = record(&graph("4s", &links, &streams), 1);
    // Both send at the same instant. The link is then busy with the first packet, so one packet of
    // each pair waits.
    assert_eq!(summary(&r, "b-c", "over-link", "dropped_overflow_packets"), 0);
    let on_the_spot = summary(&r, "b-c", "on-the-spot", "dropped_overflow_packets");
    assert!(on_the_spot > 100, "{on_the_spot}");
}

/// Two links feed a third, and their packets reach it in the same nanosecond. The packet from the
/// link that is first in the plan goes first, whichever class uses that link, and whichever packet
/// was scheduled first.
#[test]
fn simultaneous_arrivals_go_by_the_link_they_come_from() {
    for swap in [false, true] {
        let (first, second) = if swap { ("y", "x") } else { ("x", "y") };
        let links = [
            ("x", "m", "2Mbit", "1ms", None),
            ("y", "m", "2Mbit", "1ms", None),
            ("m", "z", "1Mbit", "1ms", Some(1)),
        ];
        let streams = [("one", first, "z", "1Mbit", "0s"), ("two", second, "z", "1Mbit", "0s")];
        let r = record(&graph("4s", &links, &streams), 1);
        let dropped = |class| summary(&r, "m-z", class, "dropped_overflow_packets");
        let (by_x, by_y) = if swap { ("two", "one") } else { ("one", "two") };
        assert_eq!(dropped(by_x), 0, "swap {swap}");
        assert!(dropped(by_y) > 100, "swap {swap}");
    }
}

/// A sample at t sees a packet at t. With one packet and one sample every 10 ms, the first sample
/// (at 10 ms) counts the packets of 0 and 10 ms, and every later sample counts the packet of its
/// own instant.
#[test]
fn samplers_last() {
    let r = record(
        r#"
        duration = "1s"
        [topology]
        kind = "dumbbell"
        rate = "10Mbit"
        delay = "1ms"
        access_rate = "none"
        [[traffic]]
        kind = "cbr"
        rate = "800kbit"
        size = "1000B"
        [record]
        queues = "10ms"
        "#,
        1,
    );
    let queues = r.table("queues").unwrap();
    let at: Vec<usize> = names(queues, "queue")
        .iter()
        .enumerate()
        .filter(|(_, q)| *q == "bottleneck")
        .map(|(i, _)| i)
        .collect();
    let arrivals = integers(queues, "arrivals_packets");
    let series: Vec<u128> = at.iter().map(|&i| arrivals[i]).collect();
    assert_eq!(series[0], 2);
    assert!(series[1..].iter().all(|&n| n == 1), "{series:?}");
}

/// A law's update that is due at t comes before a packet at t. Adaptive RED's first update of max_p
/// is due at 0.5 s, when a packet arrives as well. The average is the queue that the last arrival
/// found (w_q is 1). Just before 0.5 s, at the end of a burst, the average is 8 packets, which is
/// below the band (8.6 to 10.4); once the packet of 0.5 s has arrived, the average is 9, within the
/// band. Therefore, max_p falls only if the update comes first.
#[test]
fn law_updates_before_everything() {
    let r = record(
        r#"
        duration = "2s"
        [topology]
        kind = "dumbbell"
        rate = "10Mbit"
        delay = "1ms"
        access_rate = "none"
        queue = { kind = "ared", limit = "100p", min_th = "5p", max_th = "14p", w_q = 1.0 }
        [[traffic]]
        name = "steady"
        kind = "cbr"
        rate = "800kbit"
        size = "1000B"
        [[traffic]]
        name = "burst"
        kind = "cbr"
        count = 10
        rate = "8kbit"
        size = "1000B"
        start = "499900us"
        [record]
        queues = "500ms"
        "#,
        1,
    );
    let law = r.table("law").unwrap();
    let (values, laws, times) = (numbers(law, "value"), names(law, "name"), integers(law, "t_ns"));
    let samples = |name: &str| -> Vec<(u128, f64)> {
        let rows = (0..law.rows()).filter(|&i| laws[i] == name);
        rows.map(|i| (times[i] / 1_000_000, values[i])).collect()
    };
    let (max_p, avg) = (samples("max_p"), samples("avg"));
    assert_eq!(avg[0], (500, 9.0), "the packet of 0.5 s finds nine");
    // An update while the average is below the band multiplies max_p by 0.9 (Floyd, Gummadi,
    // Shenker 2001); max_p begins at 0.1.
    assert_eq!(max_p[0].0, 500);
    assert!((max_p[0].1 - 0.09).abs() < 1e-12, "{max_p:?}");
    assert!((max_p[1].1 - 0.081).abs() < 1e-12, "{max_p:?}");
}
