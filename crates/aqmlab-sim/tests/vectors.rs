//! Connection vectors drawn without a network equal the connections of a run with the same seed.
mod support;

use std::collections::BTreeMap;

use aqmlab_recording::Recording;
use aqmlab_scenario::{ConnectionVector, Files, Limits, Plan, parse_within};
use aqmlab_sim::{Control, run};
use aqmlab_storage::{vectors_csv, vectors_parquet, vectors_tmix};
use aqmlab_traffic::Identity;
use aqmlab_units::{Instant, Span};

use support::{integers, plan, record};

const SEED: u64 = 11;

/// A path with losses and delays, so that exchanges are slow and some never end.
fn scenario(traffic: &str) -> String {
    format!(
        r#"
        duration = "40s"
        [topology]
        kind = "dumbbell"
        rate = "3Mbit"
        delay = "10ms"
        queue = {{ kind = "red", limit = "40p", min_th = "5p", max_th = "15p" }}
        reverse_queue = {{ kind = "red", limit = "40p", min_th = "5p", max_th = "15p" }}
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

/// The exchanges of a recording, by connection and number: request, response and, for the first
/// exchange, the start.
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

/// Asserts that every completed exchange equals the one in `vectors`, and returns the number of
/// such exchanges.
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
        // The list contains all connections that opened, except those in progress at the end.
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
    assert!(refused.contains("depend on the network"), "{refused}");
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

/// A stand-in for the scenario's folder: reading any path returns this content.
struct Beside(Vec<u8>);

impl Files for Beside {
    fn read(&self, _path: &str) -> std::io::Result<Vec<u8>> {
        Ok(self.0.clone())
    }
}

/// The plan of the scenario, with a trace in place of its traffic.
fn traced(file: &str, content: Vec<u8>, more: &str) -> Plan {
    let text = scenario(&format!("kind = \"trace\"\n        file = \"{file}\"\n        {more}"));
    parse_within(&text, "t", Limits::default(), &Beside(content))
        .unwrap_or_else(|e| panic!("{e}"))
        .arms
        .remove(0)
}

/// The recorded values of each completed exchange: connection, number, start, sizes and response time.
fn exchanges(recording: &Recording, connection: &str) -> Vec<[u64; 6]> {
    let table = recording.table("request_sample").expect("there are requests");
    let columns = [connection, "exchange", "start_ns", "request_bytes", "response_bytes", "response_time_ns"];
    let columns = columns.map(|name| integers(table, name));
    let mut rows: Vec<_> =
        (0..table.rows()).map(|i| columns.each_ref().map(|column| column[i] as u64)).collect();
    rows.sort_unstable();
    rows
}

/// The file contains every value that would otherwise follow from a class's mean round-trip time,
/// because the mean of a model is not the mean of its draws.
#[test]
fn a_trace_of_what_a_population_did_gives_the_same_run() {
    for (traffic, more) in [(PACKMIME, ""), (ARRIVALS, "stop = \"35s\"")] {
        let text = scenario(traffic);
        let plan = plan(&text);
        let class = &plan.classes[0];
        let vectors = || vec![(class, drawn(&plan))];
        let first = record(&text, SEED);
        for (file, content) in [
            ("v.csv", vectors_csv(&vectors()).unwrap_or_else(|e| panic!("{e}")).into_bytes()),
            ("v.parquet", vectors_parquet(&vectors()).unwrap_or_else(|e| panic!("{e}"))),
        ] {
            let again = traced(file, content, more);
            assert_eq!(drawn(&again), drawn(&plan), "{file}");
            let again = run(&again, SEED, &Control::default()).unwrap_or_else(|e| panic!("{e}"));
            let (one, other) = (exchanges(&first, "serial"), exchanges(&again, "user"));
            assert!(one.len() > 500, "{traffic}: {}", one.len());
            let differing = one.iter().zip(&other).find(|(one, other)| one != other);
            assert_eq!((one.len(), differing), (other.len(), None), "{traffic}, {file}");
            // The queues have the same figures, cell by cell.
            for table in ["summary", "histograms", "queues", "request_summary", "request_histograms"] {
                assert_eq!(first.table(table), again.table(table), "{table} of {file}");
            }
        }
    }
}

#[test]
fn a_trace_of_tmix_is_the_same_but_for_what_its_format_rounds() {
    let plan = plan(&scenario(PACKMIME));
    let vectors = drawn(&plan);
    let text = vectors_tmix(&plan.classes[0], &vectors).unwrap_or_else(|e| panic!("{e}"));
    let again = drawn(&traced("v.cvec", text.clone().into_bytes(), ""));
    assert_eq!(again.len(), vectors.len());
    let apart = |one: u64, other: u64, most: u64| assert!(one.abs_diff(other) <= most, "{one} and {other}");
    let since_zero = |vector: &ConnectionVector| vector.start.saturating_since(Instant::ZERO).as_ns();
    for (one, other) in vectors.iter().zip(&again) {
        apart(since_zero(one), since_zero(other), 500);
        let way = |of: &ConnectionVector| of.delays.map(|[a, b]| (a + b).as_ns()).expect("it has delays");
        apart(way(one), way(other), 250);
        assert_eq!(one.exchanges.len(), other.exchanges.len());
        for (one, other) in one.exchanges.iter().zip(&other.exchanges) {
            assert_eq!((one.request, one.response, one.last), (other.request, other.response, other.last));
            // In the format, none of these times is shorter than a microsecond.
            apart(one.pause.as_ns(), other.pause.as_ns(), 1000);
            apart(one.server_delay.as_ns(), other.server_delay.as_ns(), 1000);
        }
    }
    // A value that has already been rounded is not rounded again.
    let plan = traced("v.cvec", text.clone().into_bytes(), "");
    assert_eq!(vectors_tmix(&plan.classes[0], &drawn(&plan)), Ok(text));
}

#[test]
fn both_formats_of_tmix_say_the_same() {
    let alternate = "# two connections\nS 100000 2 1 1\nm 1460 1460\nw 65535 65535\nr 40000\nl 0.01 0.02\n\
                     I 0 0 300\nA 0 9000 800\nI 0 500000 310\nA 0 1 70000\nA 1 0 0\n\n\
                     S 200000 1 2 2\nI 0 0 55\nA 0 7 1\n";
    let original = "SEQ 100000 2 77 1\nw 65535 65535\nr 40000\nl 0.010000 0.020000\n> 300\nt 9000\n< 800\n\
                    t 500000\n> 310\nt 1\n< 70000\nt 1000\n# the next\nSEQ 200000 1 78 2\n> 55\nt 7\n< 1\n";
    let read = |text: &str| drawn(&traced("v.cvec", text.into(), ""));
    let both = read(alternate);
    assert_eq!(both, read(original));
    let ms = Span::ms;
    let found: Vec<_> =
        both[0].exchanges.iter().map(|e| (e.pause, e.request, e.server_delay, e.response, e.last)).collect();
    let expected = [(ms(0), 300, ms(9), 800, false), (ms(500), 310, Span::us(1), 70_000, true)];
    assert_eq!(found, expected);
    // The round trip takes 40 ms, so one way takes 20 ms, and half of that is at each end.
    assert_eq!((both[0].start, both[0].delays), (Instant::ZERO + ms(100), Some([ms(10); 2])));
    assert_eq!((both[1].delays, both[1].exchanges[0].response), (Some([ms(0); 2]), 1));
    // If the file gives no round-trip time, the scenario defines the delays.
    assert_eq!(read(&alternate.replace("r 40000", "r 0"))[0].delays, None);
}

#[test]
fn connections_of_a_trace_have_the_delays_that_it_says_unless_a_round_trip_time_is_written() {
    let csv = "connection,start_s,exchange,think_s,request_bytes,server_delay_s,response_bytes,client_delay_s,server_path_delay_s\n\
               0,1,0,0,100,0.05,100,0.01,0.02\n0,,1,0.5,100,0,100,,\n1,2,0,0,100,0,100,0.1,0.05\n";
    let times = |more: &str| {
        let plan = traced("v.csv", csv.into(), more);
        let rtt = plan.classes[0].access.as_ref().expect("access links").rtt.mean();
        let recording = run(&plan, SEED, &Control::default()).unwrap_or_else(|e| panic!("{e}"));
        (rtt, exchanges(&recording, "user").into_iter().map(|row| Span::ns(row[5])).collect::<Vec<_>>())
    };
    // The path has a round trip of 20 ms. Transmission takes a few tenths of a millisecond, or
    // twice that if the request opens the connection.
    let near = |found: &[Span], expected: [u64; 3]| {
        for (&found, expected) in found.iter().zip(expected) {
            let beyond = found.saturating_sub(Span::ms(expected));
            assert!(Span::ZERO < beyond && beyond < Span::us(1700), "{found} for {expected} ms");
        }
        assert_eq!(found.len(), 3);
    };
    let (rtt, found) = times("");
    assert_eq!(rtt, Span::ms(20 + (60 + 300) / 2));
    near(&found, [2 * 80 + 50, 80, 2 * 320]);
    let (rtt, found) = times("rtt = \"30ms\"");
    assert_eq!(rtt, Span::ms(30));
    near(&found, [2 * 30 + 50, 30, 2 * 30]);
}

/// The delays of a trace's clients, of its servers, or of both are at delay stages. Each exchange
/// takes as long as if the delays were on the connection's own links.
#[test]
fn delays_of_a_trace_may_lie_at_delay_stages() {
    let csv = "connection,start_s,exchange,think_s,request_bytes,server_delay_s,response_bytes,client_delay_s,server_path_delay_s\n\
               0,1,0,0,100,0.05,100,0.01,0.02\n0,,1,0.5,100,0,100,,\n1,2,0,0,100,0,100,0.1,0.05\n";
    let stage = |at: &str, end: &str| format!("\n[[delay]]\nat = \"{at}\"\ndelay = \"{end}\"\n");
    for (more, rules) in [
        ("", vec![stage("entry", "client")]),
        ("", vec![stage("exit", "server")]),
        ("", vec![stage("entry", "server"), stage("exit", "client")]),
        ("access_rate = \"none\"", vec![stage("entry", "client"), stage("exit", "server")]),
    ] {
        let plan = traced("v.csv", csv.into(), &format!("{more}{}", rules.concat()));
        let recording = run(&plan, SEED, &Control::default()).unwrap_or_else(|e| panic!("{e}"));
        let found = exchanges(&recording, "user");
        assert_eq!(found.len(), 3, "{more} {rules:?}");
        for (row, expected) in found.iter().zip([2 * 80 + 50, 80, 2 * 320]) {
            let beyond = Span::ns(row[5]).saturating_sub(Span::ms(expected));
            assert!(
                Span::ZERO < beyond && beyond < Span::us(1700),
                "{row:?}, {expected} ms, {more} {rules:?}"
            );
        }
    }
}

#[test]
fn of_a_file_of_several_classes_one_is_taken() {
    let (web, api) = (plan(&scenario(PACKMIME)), plan(&scenario(&format!("{ARRIVALS}\nrtt = \"30ms\""))));
    let mut other = api.classes[0].clone();
    other.name = "api".into();
    let csv = vectors_csv(&[(&web.classes[0], drawn(&web)), (&other, drawn(&api))]);
    let csv = csv.unwrap_or_else(|e| panic!("{e}"));
    let taken =
        |class: &str| drawn(&traced("v.csv", csv.clone().into_bytes(), &format!("class = \"{class}\"")));
    assert_eq!(taken("web"), drawn(&web));
    assert_eq!(taken("api"), drawn(&api));
}

/// Each end's waits are exact, whatever the network does between them: what an end sends of its own accord
/// counts from its own previous data.
#[test]
fn an_end_that_sends_again_waits_from_its_own_data() {
    let tmix = "S 1000000 1 1 1\nr 80000\nA 0 0 100\nA 250000 0 200\nI 0 30000 300\nI 45000 0 50\nA 0 7000 60\n\
                I 0 1 500\n";
    let recording = run(&traced("inbound.ns", tmix.into(), ""), SEED, &Control::default());
    let recording = recording.unwrap_or_else(|e| panic!("{e}"));
    let rows = exchanges(&recording, "user");
    // Data without a response is not a request: exchanges 2 and 4 have none.
    let ms = |n: u64| n * 1_000_000;
    let numbers: Vec<_> = rows.iter().map(|row| (row[1], row[3], row[4])).collect();
    assert_eq!(numbers, [(0, 0, 100), (1, 0, 200), (3, 50, 60)]);
    assert_eq!((rows[0][2], rows[1][2]), (ms(1000), ms(1250)));
    // The second response has arrived; then, 30 ms and 45 ms later, the client has sent 300 and 50 bytes.
    assert_eq!(rows[2][2], rows[1][2] + rows[1][5] + ms(75));
    // The path takes 50 ms each way, and the server 7 ms; transmissions take 2 ms at most. The first data of the
    // server follows three ways of the handshake.
    let took = |row: &[u64; 6], least: u64| (ms(least)..ms(least + 2)).contains(&row[5]);
    assert!(took(&rows[0], 200) && took(&rows[1], 50) && took(&rows[2], 107), "{rows:?}");
    // Both ends have sent all their data: 350 and 500 bytes of the client, 360 of the server.
    let sent = |column| support::flows(&recording, "web", column);
    assert_eq!((sent("delivered_bytes"), sent("delivered_bytes").len()), (vec![350 + 500 + 360], 1));
}

#[test]
fn what_tmix_expresses_and_a_trace_does_not_is_left_out_and_counted_if_asked() {
    let good = "S 100 1 1 1\nI 0 0 300\nA 0 9 800\nA 6000000 0 0\n";
    let bad = [
        ("concurrent", "C 200 2 1 1 1\nw 1 1\nI 0 0 3\nA 0 0 4\nI 9 0 3\n"),
        ("concurrent", "CONC 200 1 1 1 1\nc> 3\nt> 9\nc< 4\n"),
        ("overlapping", "S 200 1 1 1\nI 0 0 3\nA 5 0 4\n"),
        ("overlapping", "S 200 1 1 1\nI 0 0 3\nI 5 5 4\n"),
        ("half-closed", "S 200 1 1 1\nI 0 0 3\nI 5 0 0\nA 0 5 4\n"),
        ("stalled", "S 200 1 1 1\nI 0 7 3\n"),
        ("stalled", "SEQ 200 1 1 1\nt 7\n> 3\n"),
        ("empty", "S 200 1 1 1\nr 5\n"),
        ("empty", "SEQ 200 1 1 1\nt 5\n"),
    ];
    let parse = |text: &str, more: &str| {
        let scenario = scenario(&format!("kind = \"trace\"\n        file = \"v.ns\"\n        {more}"));
        parse_within(&scenario, "t", Limits::default(), &Beside(text.into()))
    };
    let skip = "on_unsupported = \"skip\"";
    for (kind, lines) in bad {
        let text = format!("{good}{lines}{}", good.replace("S 100", "S 300"));
        let refused = parse(&text, "").expect_err(kind).to_string();
        assert!(refused.contains("on_unsupported"), "{refused}");
        let plan = parse(&text, skip).unwrap_or_else(|e| panic!("{e}")).arms.remove(0);
        assert_eq!(drawn(&plan).len(), 2, "{lines}");
        let shown = plan.parameters.iter().find(|of| of.path == format!("traffic.web.left_out.{kind}"));
        assert_eq!(shown.map(|of| of.value.as_str()), Some("1"), "{lines}");
    }
    // Of a file without such connections, nothing is left out.
    let plan = parse(good, skip).unwrap_or_else(|e| panic!("{e}")).arms.remove(0);
    assert!(!plan.parameters.iter().any(|of| of.path.contains("left_out")));
}
