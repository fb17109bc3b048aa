//! Connections that users and arrival processes open, one after another.
mod support;

use support::{flows, integers, record};

/// A path of 10 Mbit/s with a round-trip time of 40 ms and a negligible queue.
fn scenario(traffic: &str) -> String {
    format!(
        r#"
        duration = "21s"
        warmup = "1s"
        [topology]
        kind = "dumbbell"
        rate = "10Mbit"
        delay = "10ms"
        queue = {{ kind = "droptail", limit = "1000p" }}
        [[traffic]]
        name = "web"
        kind = "requests"
        rtt = "40ms"
        {traffic}
        [record]
        flows = "100ms"
        "#
    )
}

fn column(text: &str, name: &str) -> Vec<u128> {
    flows(&record(text, 1), "web", name)
}

#[test]
fn users_get_as_many_exchanges_done_as_their_cycle_allows() {
    // A cycle consists of one round trip for set-up, one for the exchange, 20 ms at the server and
    // 340 ms of thinking: 440 ms, plus the transmission of one segment, 1.6 ms with its ACKs.
    let users = scenario(
        r#"
        users = 3
        think = "340ms"
        request = "100B"
        response = "1000B"
        server_delay = "20ms"
        "#,
    );
    let delivered = column(&users, "measured_delivered_bytes");
    assert_eq!(delivered.len(), 3, "a row for each user");
    for bytes in delivered {
        let exchanges = bytes as f64 / 1100.0;
        assert!((exchanges - 20.0 / 0.4416).abs() < 1.5, "{exchanges} in 20 s");
    }
}

#[test]
fn persistent_connections_spare_the_set_up() {
    // Each connection has a set-up of one round trip, then ten exchanges of one round trip each,
    // with pauses of 60 ms.
    let users = scenario(
        r#"
        users = 1
        think = "60ms"
        request = "100B"
        response = "1000B"
        exchanges = 10
        pause = "60ms"
        "#,
    );
    let exchanges = column(&users, "measured_delivered_bytes")[0] as f64 / 1100.0;
    let cycle = 0.040 + 10.0 * (0.040 + 0.060 + 0.001);
    assert!((exchanges - 10.0 * 20.0 / cycle).abs() < 5.0, "{exchanges} in 20 s");
}

#[test]
fn arrivals_come_at_their_rate_and_have_one_row() {
    let arrivals = scenario(
        r#"
        rate = "50/s"
        request = "100B"
        response = "900B"
        "#,
    );
    let delivered = column(&arrivals, "measured_delivered_bytes");
    assert_eq!(delivered.len(), 1, "one row for all");
    let connections = delivered[0] as f64 / 1000.0;
    // The tolerance is four standard deviations of a Poisson count.
    assert!((connections - 1000.0).abs() < 4.0 * 1000f64.sqrt(), "{connections} in 20 s");
}

#[test]
fn nothing_opens_after_the_stop() {
    let stopped = |stop: &str| {
        let users = format!("rate = \"50/s\"\nrequest = \"100B\"\nresponse = \"900B\"\n{stop}");
        column(&scenario(&users), "delivered_bytes")[0] / 1000
    };
    let (until_6s, all) = (stopped("stop = \"6s\""), stopped(""));
    assert!((230..=370).contains(&until_6s), "{until_6s} in 6 s");
    assert!(all > 3 * until_6s, "{all} in 21 s");
}

#[test]
fn a_user_whose_connection_fails_tries_again() {
    // Nothing gets through, and every connection attempt is given up after one retransmission of
    // its SYN.
    let text = scenario(
        r#"
        users = 1
        think = "1s"
        request = "100B"
        response = "900B"
        tcp = { initial_rto = "100ms", min_rto = "100ms", syn_retries = 1 }
        "#,
    );
    let text = format!("{text}\n[[delay]]\nfrom = \"left\"\nloss = 1.0\nat = \"exit\"\n");
    let run = record(&text, 1);
    let sent = integers(run.table("run").expect("there is one"), "sent_packets")[0];
    // The client sends a SYN, and another one 100 ms later; the user gives up after a further
    // 200 ms and thinks for a second: the cycle takes 1.3 s.
    assert!((26..=36).contains(&sent), "{sent} SYNs in 21 s");
}
