//! Connection vectors drawn without a network are what connections do in a run with the same seed.
mod support;

use std::collections::BTreeMap;

use aqmlab_recording::Recording;
use aqmlab_scenario::{ConnectionVector, Plan};
use aqmlab_traffic::Identity;
use aqmlab_units::{Instant, Span};

use support::{integers, plan, record};

const SEED: u64 = 11;

/// A path that loses and delays, so that exchanges take their time and some never end.
fn scenario(traffic: &str) -> String {
    format!(
        r#"
        duration = "40s"
        [topology]
        kind = "dumbbell"
        rate = "3Mbit"
        delay = "10ms"
        queue = {{ kind = "droptail", limit = "20p" }}
        [[traffic]]
        name = "web"
        {traffic}
        [record]
        requests = {{ sample = 1000000 }}
        "#
    )
}

const PACKMIME: &str = "kind = \"packmime\"\nrate = \"40/s\"";
const ARRIVALS: &str = r#"kind = "requests"
        rate = "30/s"
        start = "2s"
        stop = "35s"
        request = { uniform = ["100B", "900B"] }
        response = { pareto = "8kB", shape = 1.3 }
        exchanges = { list = [1, 3, 2] }
        pause = { exponential = "100ms" }
        server_delay = { exponential = "10ms" }"#;
const USERS: &str = r#"kind = "requests"
        users = 40
        start = { uniform = ["0s", "5s"] }
        think = { exponential = "1s" }
        request = "400B"
        response = { pareto = "8kB", shape = 1.3 }
        exchanges = { list = [1, 3, 2] }
        pause = { exponential = "100ms" }"#;

/// Exchanges of a recording, by connection and number: request, response and, of the first, the start.
type Recorded = BTreeMap<(Identity, u64), (u64, u64, Option<u64>)>;

fn recorded(recording: &Recording) -> Recorded {
    let table = recording.table("request_sample").expect("there are requests");
    let column = |name| integers(table, name).into_iter().map(|n| n as u64).collect::<Vec<_>>();
    let [user, serial, number, start, request, response] =
        ["user", "serial", "exchange", "start_ns", "request_bytes", "response_bytes"].map(column);
    let exchange = |i: usize| {
        let of = Identity { user: user[i] as u32, serial: serial[i] as u32 };
        ((of, number[i]), (request[i], response[i], (number[i] == 0).then_some(start[i])))
    };
    (0..user.len()).map(exchange).collect()
}

/// Every exchange that was completed is as `vectors` have it; how many there were.
fn compare(recorded: &Recorded, vectors: &BTreeMap<Identity, ConnectionVector>) -> usize {
    for ((of, number), found) in recorded {
        let vector = &vectors[of];
        let exchange = vector.exchanges[*number as usize];
        let start = (*number == 0).then(|| vector.start.saturating_since(Instant::ZERO).as_ns());
        assert_eq!(*found, (exchange.request, exchange.response, start), "{of:?}, exchange {number}");
    }
    recorded.len()
}

fn drawn(plan: &Plan) -> Vec<ConnectionVector> {
    plan.classes[0].vectors(SEED, Instant::ZERO + plan.stop.at).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn what_opens_of_its_own_accord_is_known_before_the_run() {
    for (traffic, least) in [(PACKMIME, 1000), (ARRIVALS, 500)] {
        let text = scenario(traffic);
        let vectors = drawn(&plan(&text));
        assert!(vectors.is_sorted_by_key(|vector| vector.start));
        let by_identity = vectors.into_iter().enumerate();
        let by_identity: BTreeMap<_, _> =
            by_identity.map(|(i, vector)| (Identity { user: 0, serial: i as u32 }, vector)).collect();
        let recording = record(&text, SEED);
        let found = recorded(&recording);
        assert!(compare(&found, &by_identity) > least, "{traffic}: {}", found.len());
        // All that opened is there, but for what was under way at the end.
        let begun = found.keys().filter(|(_, number)| *number == 0).count();
        let drawn = by_identity.len();
        assert!(begun <= drawn && begun * 10 > drawn * 9, "{begun} of {drawn}");
        assert!(by_identity.values().all(|vector| vector.exchanges.last().is_some_and(|last| last.last)));
    }
}

#[test]
fn of_users_the_recording_has_the_starts_and_the_draws_the_rest() {
    let text = scenario(USERS);
    let plan = plan(&text);
    let refused = plan.classes[0].vectors(SEED, Instant::ZERO + Span::s(40)).expect_err("users wait");
    assert!(refused.contains("depends on the network"), "{refused}");
    let found = recorded(&record(&text, SEED));
    let opened: Vec<_> = found
        .iter()
        .filter_map(|((of, _), (_, _, start))| Some((Instant::ZERO + Span::ns((*start)?), *of)))
        .collect();
    let vectors = plan.classes[0].vectors_of(&opened, SEED).unwrap_or_else(|e| panic!("{e}"));
    let by_identity = opened.iter().map(|&(_, of)| of).zip(vectors).collect();
    let whole =
        found.into_iter().filter(|((of, _), _)| opened.iter().any(|&(_, other)| other == *of)).collect();
    assert!(compare(&whole, &by_identity) > 500);
}

#[test]
fn only_cloud_connections_have_delays_of_their_own_and_a_written_round_trip_time_takes_them_away() {
    let delays = |traffic: &str| drawn(&plan(&scenario(traffic)))[0].delays.is_some();
    assert!(delays(PACKMIME));
    assert!(!delays(ARRIVALS));
    assert!(!delays(&format!("{PACKMIME}\nrtt = \"50ms\"")));
}

#[test]
fn what_carries_no_exchanges_has_no_vectors() {
    let plan = plan(&scenario("kind = \"bulk\"").replace("requests = { sample = 1000000 }", ""));
    let refused = plan.classes[0].vectors(SEED, Instant::ZERO).expect_err("bulk");
    assert!(refused.contains("carry no exchanges"), "{refused}");
}
