//! The recorded counts of a flow with chosen losses.
mod support;

use support::{flows, integers, names, record};

/// One transfer of 40 segments, with ten segments in the first flight. Arrivals at the bottleneck:
/// number 1 is the SYN, number 2 the ACK of the handshake, and number `n + 3` the n-th segment; in
/// the reverse direction, number 1 is the SYN-ACK, and number `n + 2` the n-th ACK.
fn counts(lost: &str, lost_acks: &str) -> [u128; 5] {
    let faults = |key: &str, list: &str| {
        if list.is_empty() { String::new() } else { format!("{key} = {{ drop = [{list}] }}") }
    };
    let (there, back) = (faults("faults", lost), faults("reverse_faults", lost_acks));
    let text = format!(
        r#"
        duration = "60s"
        [topology]
        kind = "dumbbell"
        rate = "10Mbit"
        delay = "20ms"
        {there}
        {back}
        [[traffic]]
        name = "ftp"
        kind = "bulk"
        bytes = "58400B"
        tcp = {{ initial_window = 10, ack_every = 1, limited_transmit = false }}
        "#
    );
    let run = record(&text, 1);
    assert_eq!(flows(&run, "ftp", "delivered_bytes"), [58_400]);
    [
        "fast_retransmits",
        "timeouts",
        "retransmitted_segments",
        "spurious_retransmissions",
        "multiple_loss_windows",
    ]
    .map(|column| flows(&run, "ftp", column)[0])
}

#[test]
fn losses_timeouts_and_what_was_sent_in_vain() {
    let table: [(&str, &str, &str, [u128; 5]); 6] = [
        ("nothing", "", "", [0, 0, 0, 0, 0]),
        ("one segment", "3", "", [1, 0, 1, 0, 0]),
        ("two of one window", "3, 6", "", [1, 0, 2, 0, 1]),
        ("one in each of two windows", "3, 31", "", [2, 0, 2, 0, 0]),
        ("the last", "42", "", [0, 1, 1, 0, 0]),
        ("the ACKs of the first flight", "", "2, 3, 4, 5, 6, 7, 8, 9, 10, 11", [0, 1, 1, 1, 0]),
    ];
    for (what, lost, lost_acks, expected) in table {
        assert_eq!(counts(lost, lost_acks), expected, "{what}");
    }
}

/// Returns the timeouts of a connection at both ends and at the client, the SYNs and the SYN-ACKs that
/// it repeats. It has one request of one segment, and a response of two.
fn timeouts_by_end(lost: &str, lost_back: &str) -> [u128; 4] {
    let text = format!(
        r#"
        duration = "60s"
        [topology]
        kind = "dumbbell"
        rate = "10Mbit"
        delay = "20ms"
        faults = {{ drop = [{lost}] }}
        reverse_faults = {{ drop = [{lost_back}] }}
        [[traffic]]
        name = "web"
        kind = "requests"
        users = 1
        think = "1000s"
        request = "300B"
        response = "2920B"
        start = "0s"
        tcp = {{ initial_window = 10, ack_every = 1 }}
        "#
    );
    let run = record(&text, 1);
    assert_eq!(flows(&run, "web", "delivered_bytes"), [3220]);
    let columns = ["timeouts", "timeouts_at_client", "syn_retransmissions", "syn_ack_retransmissions"];
    columns.map(|column| {
        let count = flows(&run, "web", column)[0];
        assert_eq!(flows(&run, "web", &format!("measured_{column}")), [count]);
        count
    })
}

#[test]
fn each_timeout_is_counted_at_its_end_and_those_of_the_handshake_apart() {
    // From the client: SYN, ACK, request; from the server: SYN-ACK, the ACK of the request with the
    // response's two segments. A lost SYN-ACK is repeated when the client's second SYN arrives.
    let table: [(&str, &str, &str, [u128; 4]); 5] = [
        ("nothing", "1000", "1000", [0, 0, 0, 0]),
        ("the SYN", "1", "1000", [0, 0, 1, 0]),
        ("the SYN-ACK", "1000", "1", [0, 0, 1, 1]),
        ("the request", "3", "1000", [1, 1, 0, 0]),
        ("the response and the ACK of the request", "1000", "2, 3, 4", [2, 1, 0, 0]),
    ];
    for (what, lost, lost_back, expected) in table {
        assert_eq!(timeouts_by_end(lost, lost_back), expected, "{what}");
    }
}

/// A SYN-ACK waits behind 90 packets, and the whole first flight of its connection is lost. As in Linux
/// (`vectors/linux-short-flows`, case `reported`), a probe repeats the last segment and one timeout the other eight.
/// If a sender takes the acknowledgments of these copies for those of originals, each segment needs a timeout of its
/// own, twice as long as the one before.
#[test]
fn a_late_syn_ack_and_a_lost_first_flight_cost_one_timeout() {
    let text = r#"
        duration = "1s"
        [topology]
        kind = "dumbbell"
        rate = "10Mbit"
        delay = "20ms"
        queue = { kind = "droptail", limit = "100p" }
        faults = { drop = [93, 94, 95, 96, 97, 98, 99, 100, 101] }
        [[traffic]]
        name = "burst"
        kind = "cbr"
        rate = "1Gbit"
        size = "1500B"
        stop = "1079us"
        access_rate = "none"
        [[traffic]]
        name = "web"
        kind = "requests"
        from = "right"
        to = "left"
        users = 1
        think = "1000s"
        request = "300B"
        response = "12kB"
        access_rate = "none"
        tcp = { profile = "linux" }
        "#;
    let run = record(text, 1);
    assert_eq!(flows(&run, "burst", "sent_segments"), [90]);
    let web =
        ["timeouts", "retransmitted_segments", "received_bytes"].map(|column| flows(&run, "web", column)[0]);
    assert_eq!(web, [1, 9, 12_300]);
}

/// Web users offer 60 to 120 % of a link's rate, and up to 11 % of their packets are lost. Every exchange ends, and none
/// takes 30 s: a segment that is lost four times in a row waits for timeouts of about 1, 2, 4 and 8 s.
#[test]
fn every_exchange_ends_at_loads_of_60_to_120_percent() {
    // A user without losses needs 0.1 s for an exchange of 12.5 kB, which occupy the link for 10 ms.
    for users in [60, 90, 120] {
        let text = format!(
            r#"
            duration = "300s"
            [topology]
            kind = "dumbbell"
            rate = "10Mbit"
            delay = "20ms"
            queue = {{ kind = "droptail", limit = "100p" }}
            [[traffic]]
            name = "web"
            kind = "requests"
            from = "right"
            to = "left"
            users = {users}
            think = {{ exponential = "900ms" }}
            request = "300B"
            response = "12kB"
            tcp = {{ profile = "linux" }}
            "#
        );
        let run = record(&text, 1);
        let of = |table: &str, column: &str| integers(run.table(table).expect("they are recorded"), column);
        let sum = |column: &str| of("request_summary", column).iter().sum::<u128>();
        assert!(sum("completed") > 15_000 && sum("failed") == 0, "{users} users");
        let kinds = names(run.table("request_histograms").expect("they are recorded"), "kind");
        let (low, high) = (of("request_histograms", "low"), of("request_histograms", "high"));
        for ((kind, low), high) in kinds.iter().zip(low).zip(high) {
            assert!(high < 30_000_000_000, "{users} users, {kind}: {low} to {high} ns");
        }
    }
}
