//! Goodput is the data that reaches receivers for the first time in the measured interval. It
//! cannot exceed what the bottleneck's queue passes on.
mod support;

use aqmlab_recording::Recording;
use proptest::prelude::*;
use support::{flows, integers, record, summary};

/// The bytes that leave the bottleneck's queue in the measured interval, plus those that may have
/// left the queue before the interval and still reach receivers within it: the bytes that the link
/// sends during the time that a packet takes from the queue to the receiver, and one packet per
/// flow.
fn carried(recording: &Recording, link_bps: u64, behind_ms: u64) -> u128 {
    let departures = summary(recording, "bottleneck", "*", "departures_bytes");
    let flows = recording.table("flows").expect("every recording has flows").rows() as u128;
    departures + u128::from(link_bps * behind_ms / 8000) + (flows + 1) * 1500
}

fn total(recording: &Recording, column: &str) -> u128 {
    integers(recording.table("flows").expect("every recording has flows"), column).iter().sum()
}

/// Twenty flows fill the queue of a link of 50 Mbit/s just before the warm-up ends, and NewReno repairs one
/// hole per round trip: megabytes then wait behind holes and are delivered later.
#[test]
fn what_waits_behind_a_hole_at_the_end_of_the_warm_up_is_no_goodput() {
    let text = r#"
        duration = "12s"
        warmup = "8s"
        [topology]
        kind = "dumbbell"
        rate = "50Mbit"
        delay = "10ms"
        queue = { kind = "droptail", limit = "1bdp" }
        [[traffic]]
        name = "ftp"
        kind = "bulk"
        count = 20
        rtt = "100ms"
        start = { uniform = ["0s", "7s"] }
        "#;
    let link_bytes = 50_000_000 / 8 * 4;
    let mut above_the_link = 0;
    for seed in 1..=4 {
        let r = record(text, seed);
        let (received, delivered) =
            (total(&r, "measured_received_bytes"), total(&r, "measured_delivered_bytes"));
        assert!(received <= carried(&r, 50_000_000, 50), "seed {seed}: {received}");
        // Of each packet's 1500 bytes, 1460 are payload. Data that had already passed the queue
        // before the interval adds at most what the link carries in 50 ms.
        assert!(received <= link_bytes * 1460 / 1500 + 50_000_000 / 8 / 20, "seed {seed}: {received}");
        above_the_link += u32::from(delivered > link_bytes);
    }
    assert!(above_the_link > 0, "in-order delivery gives more than the link carries");
}

#[derive(Clone, Debug)]
struct Dumbbell {
    rate_kbit: u64,
    rtt_ms: u64,
    queue: &'static str,
    flows: u32,
    tcp: &'static str,
    bytes: Option<u32>,
    loss: f64,
    udp_kbit: u64,
    warmup_ms: u64,
}

fn dumbbell() -> impl Strategy<Value = Dumbbell> {
    let queue = prop_oneof![
        Just(r#"{ kind = "droptail", limit = "1bdp" }"#),
        Just(r#"{ kind = "droptail", limit = "5p" }"#),
        Just(r#"{ kind = "red", limit = "60p", min_th = "3p", max_th = "9p", ecn = true }"#),
        Just(r#"{ kind = "fred", limit = "40p" }"#),
    ];
    let tcp = prop_oneof![
        Just(r#"profile = "rfc""#),
        Just(r#"profile = "rfc", recovery = "reno""#),
        Just(r#"profile = "rfc", recovery = "sack", ecn = true"#),
        Just(r#"profile = "ns2""#),
        Just(r#"profile = "linux", receive_window = "20kB""#),
    ];
    let loss = prop_oneof![Just(0.0), 0.0..0.1f64];
    let bytes = prop::option::of(1u32..200_000);
    (200u64..30_000, 30u64..200, queue, 1u32..15, tcp, bytes, loss, 10u64..300, 0u64..2_500).prop_map(
        |(rate_kbit, rtt_ms, queue, flows, tcp, bytes, loss, udp_kbit, warmup_ms)| Dumbbell {
            rate_kbit,
            rtt_ms,
            queue,
            flows,
            tcp,
            bytes,
            loss,
            udp_kbit,
            warmup_ms,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]
    #[test]
    fn flows_get_no_more_than_their_queue_carries(d in dumbbell(), seed in 0u64..1000) {
        let text = format!(
            r#"
            duration = "3s"
            warmup = "{warmup}ms"
            [topology]
            kind = "dumbbell"
            rate = "{rate}kbit"
            delay = "10ms"
            access_rate = "1Gbit"
            queue = {queue}
            [[traffic]]
            name = "tcp"
            kind = "bulk"
            count = {flows}
            rtt = "{rtt}ms"
            loss = {loss}
            {bytes}
            start = {{ uniform = ["0s", "1s"] }}
            tcp = {{ {tcp} }}
            [[traffic]]
            name = "udp"
            kind = "poisson"
            rate = "{udp}kbit"
            size = "400B"
            rtt = "{rtt}ms"
            [record]
            flows = "100ms"
            "#,
            warmup = d.warmup_ms,
            rate = d.rate_kbit,
            queue = d.queue,
            flows = d.flows,
            rtt = d.rtt_ms,
            loss = d.loss,
            bytes = d.bytes.map_or(String::new(), |b| format!("bytes = \"{b}B\"")),
            tcp = d.tcp,
            udp = d.udp_kbit,
        );
        let r = record(&text, seed);
        let received = total(&r, "measured_received_bytes");
        prop_assert!(received <= carried(&r, 1000 * d.rate_kbit, d.rtt_ms / 2 + 1), "{received}");
        for class in ["tcp", "udp"] {
            let columns = ["received_bytes", "delivered_bytes", "sent_bytes"].map(|name| flows(&r, class, name));
            let [got, delivered, sent] = &columns;
            for i in 0..got.len() {
                prop_assert!(delivered[i] <= got[i] && got[i] <= sent[i], "{class} {i}: {columns:?}");
            }
        }
        prop_assert_eq!(flows(&r, "udp", "received_bytes"), flows(&r, "udp", "delivered_bytes"));
        let series = r.table("flow_series").expect("flows are sampled");
        let (got, delivered) = (integers(series, "received_bytes"), integers(series, "delivered_bytes"));
        prop_assert!(got.iter().zip(&delivered).all(|(got, delivered)| got >= delivered));
    }
}

/// Half a terabit per second in packets that a link of 1 Tbit/s sends in half a nanosecond keeps it busy for
/// half of the time.
#[test]
fn packets_below_a_nanosecond_keep_a_link_busy() {
    let text = |rate: &str| {
        format!(
            r#"
            duration = "1ms"
            warmup = "200us"
            [topology]
            kind = "dumbbell"
            rate = "1Tbit"
            delay = "1us"
            access_rate = "none"
            queue = {{ kind = "droptail", limit = "100p" }}
            [[traffic]]
            kind = "cbr"
            rate = "{rate}"
            size = "64B"
            "#
        )
    };
    let half = record(&text("500Gbit"), 1);
    assert_eq!(summary(&half, "bottleneck", "*", "busy_ns"), 400_000);
    let twice = record(&text("2Tbit"), 1);
    assert_eq!(summary(&twice, "bottleneck", "*", "busy_ns"), 800_000);
    assert_eq!(summary(&twice, "bottleneck", "*", "sent_bytes"), 800_000 * 1000 / 8, "1 Tbit/s for 800 us");
    assert!(summary(&twice, "bottleneck", "*", "dropped_overflow_packets") > 1_000_000);
}

/// A saturated link sends its rate in every interval, however short.
#[test]
fn the_bytes_of_a_short_interval_are_those_that_the_link_sends() {
    // Two sources of 12 Mbit/s share a link of 10 Mbit/s; a packet takes 0.8 ms.
    for (from_us, length_us) in [(100_100u64, 10_000), (100_333, 4_000), (100_700, 1_000), (101_234, 567)] {
        let text = format!(
            r#"
            duration = "{}us"
            warmup = "{from_us}us"
            [topology]
            kind = "dumbbell"
            rate = "10Mbit"
            delay = "1ms"
            access_rate = "none"
            queue = {{ kind = "droptail", limit = "20p" }}
            [[traffic]]
            name = "a"
            kind = "cbr"
            rate = "6Mbit"
            [[traffic]]
            name = "b"
            kind = "poisson"
            rate = "20Mbit"
            "#,
            from_us + length_us
        );
        let r = record(&text, 1);
        let sent = |class: &str| summary(&r, "bottleneck", class, "sent_bytes");
        let exact = u128::from(length_us * 10 / 8);
        assert!(sent("*").abs_diff(exact) <= 1, "{} of {exact} B in {length_us} us", sent("*"));
        // Each of at most two parts of packets is rounded to a byte.
        assert!(sent("*").abs_diff(sent("a") + sent("b")) <= 2, "the classes share them");
    }
}

/// A download over a slow way back is limited by its acknowledgments and not by access links: each of the
/// acknowledgments of 40 B, of which 100 kbit/s carry 312.5 per second, acknowledges two segments of 1460 B:
/// 7.3 Mbit/s. With acknowledgments that also come singly, it is a little less.
#[test]
fn default_access_links_limit_neither_direction() {
    let text = r#"
        duration = "40s"
        warmup = "10s"
        [topology]
        kind = "dumbbell"
        rate = "10Mbit"
        delay = "10ms"
        reverse_rate = "100kbit"
        queue = { kind = "droptail", limit = "100p" }
        reverse_queue = { kind = "droptail", limit = "1000p" }
        [[traffic]]
        name = "ftp"
        kind = "bulk"
        rtt = "40ms"
        "#;
    let r = record(text, 1);
    let goodput = total(&r, "measured_received_bytes") as f64 * 8.0 / 30.0 / 1e6;
    assert!((goodput / 7.3 - 1.0).abs() < 0.01, "{goodput} Mbit/s");
}
