//! ECN for one class of flows but not for the other, at one queue: which packets are marked, which
//! are dropped, and which packets of a connection are ECN-capable.
mod support;

use aqmlab_recording::Recording;
use support::{flows, record, summary};

/// Transfers of 400 kB through a queue that marks early. All transfers end. `with` and `without`
/// are the `tcp` settings of the two classes.
fn run(discipline: &str, with: &str, without: &str) -> Recording {
    let class = |name: &str, tcp: &str| {
        format!(
            r#"
        [[traffic]]
        name = "{name}"
        kind = "bulk"
        bytes = "400kB"
        count = 6
        rtt = {{ uniform = ["40ms", "120ms"] }}
        start = {{ uniform = ["0s", "2s"] }}
        tcp = {{ {tcp}, time_wait = "1s" }}
        "#
        )
    };
    let text = format!(
        r#"
        duration = "300s"
        [topology]
        kind = "dumbbell"
        rate = "4Mbit"
        delay = "10ms"
        queue = {discipline}
        {}{}"#,
        class("with", with),
        class("without", without)
    );
    record(&text, 5)
}

/// The minimum and maximum thresholds are far below the limit, so RED acts early and never drops a
/// packet because the queue is full.
const RED: &str = r#"{ kind = "red", limit = "400p", min_th = "10p", max_th = "60p", ecn = true }"#;

fn total(recording: &Recording, class: &str, column: &str) -> u128 {
    flows(recording, class, column).iter().sum()
}

#[test]
fn marks_hit_the_capable_class_and_drops_the_other() {
    let run = run(RED, r#"profile = "rfc", ecn = true"#, r#"profile = "rfc""#);
    let of = |class, column| summary(&run, "bottleneck", class, column);
    assert!(of("with", "marked_early_packets") > 10 && of("without", "dropped_early_packets") > 10);
    assert_eq!((of("without", "marked_early_packets"), of("without", "ect_arrivals_packets")), (0, 0));
    // In the class with ECN, only packets that are not ECN-capable themselves are dropped: SYNs and
    // retransmissions.
    let fragile = of("with", "arrivals_packets") - of("with", "ect_arrivals_packets");
    assert!(of("with", "dropped_early_packets") <= fragile);
    // Each marked packet arrives, and the sender reacts to it at most once.
    assert_eq!(total(&run, "with", "ce_received"), of("with", "marked_early_packets"));
    let reactions = total(&run, "with", "ecn_reductions");
    assert!(reactions > 0 && reactions <= total(&run, "with", "ce_received"));
    assert_eq!(total(&run, "without", "ce_received") + total(&run, "without", "ecn_reductions"), 0);
    assert_eq!(total(&run, "without", "delivered_bytes"), 6 * 400_000);
}

#[test]
fn new_data_is_capable_and_what_is_sent_again_by_profile() {
    // This queue only drops, so there are retransmissions.
    let drops = r#"{ kind = "droptail", limit = "12p" }"#;
    let run = run(drops, r#"profile = "rfc", ecn = true"#, r#"profile = "ns2", mss = "1460B", ecn = true"#);
    let capable = |class| summary(&run, "bottleneck", class, "ect_arrivals_packets");
    let sent = |class| total(&run, class, "sent_segments");
    let again = total(&run, "with", "retransmitted_segments");
    assert!(again > 0 && total(&run, "without", "retransmitted_segments") > 0);
    assert_eq!(capable("with"), sent("with") - again, "RFC 3168, 6.1.5");
    assert_eq!(capable("without"), sent("without"), "ns-2");
}

#[test]
fn profiles_that_do_not_ask_send_nothing_capable() {
    let run = run(RED, r#"profile = "linux""#, r#"profile = "freebsd4""#);
    for class in ["with", "without"] {
        assert_eq!(summary(&run, "bottleneck", class, "ect_arrivals_packets"), 0);
        assert_eq!(summary(&run, "bottleneck", class, "marked_early_packets"), 0);
        assert_eq!(total(&run, class, "delivered_bytes"), 6 * 400_000, "{class}");
    }
}
