//! Web users of PackMime-HTTP, over a fast path without other traffic: the connections are those
//! that the model has drawn.
mod support;

use aqmlab_random::Stream;
use aqmlab_recording::Recording;
use aqmlab_traffic::PlannedExchange;
use aqmlab_traffic::packmime::{PackMime, PausesOf};
use aqmlab_units::{Instant, Span};

use support::{flows, integers, plan, record};

const RATE: f64 = 50.0;
const SEED: u64 = 3;

/// A path with a delay of 4.5 ms in each direction; the transmission time is negligible.
fn scenario(traffic: &str) -> String {
    format!(
        r#"
        duration = "120s"
        [topology]
        kind = "dumbbell"
        rate = "100Gbit"
        delay = "4.5ms"
        access_rate = "100Gbit"
        queue = {{ kind = "droptail", limit = "100000p" }}
        [[traffic]]
        name = "web"
        kind = "packmime"
        rate = "50/s"
        {traffic}
        [record]
        requests = {{ sample = 100000 }}
        "#
    )
}

/// One connection as the model has drawn it.
struct Drawn {
    opens: Instant,
    base_rtt: Span,
    exchanges: Vec<PlannedExchange>,
}

fn drawn(pauses: PausesOf) -> Vec<Drawn> {
    let mut model = PackMime::new(RATE, pauses, &Stream::new(SEED, "traffic/web/packmime"));
    let mut now = Instant::ZERO;
    std::iter::from_fn(|| {
        let opened = model.open();
        now += opened.gap;
        let delays = (opened.connection.client_delay + opened.connection.server_delay) * 2;
        let exchanges = opened.connection.exchanges.collect();
        Some(Drawn { opens: now, base_rtt: Span::ms(9) + delays, exchanges })
    })
    .take_while(|drawn| drawn.opens <= Instant::ZERO + Span::s(120))
    .collect()
}

fn sample(recording: &Recording, column: &str) -> Vec<u64> {
    let table = recording.table("request_sample").expect("there are requests");
    integers(table, column).into_iter().map(|n| n as u64).collect()
}

#[test]
fn connections_open_and_ask_as_the_model_says() {
    check_connections("");
}

/// Delay stages, in routers or at the edges, apply the delays of the clients, of the servers, or of
/// both.
#[test]
fn delays_of_hosts_may_lie_on_delay_stages() {
    let stage = |place: &str, end: &str| format!("[[delay]]\n{place}\ndelay = \"{end}\"\n");
    let (left, right) = (stage("at = \"left\"", "client"), stage("at = \"right\"", "server"));
    check_connections(&format!("access_rate = \"none\"\n{left}{right}"));
    check_connections(&format!("{left}{right}"));
    check_connections(&left);
    let edges = [stage("at = \"exit\"\nto = \"right\"", "server"), stage("from = \"right\"", "server")];
    check_connections(&edges.concat());
}

fn check_connections(traffic: &str) {
    let recording = record(&scenario(traffic), SEED);
    let drawn = drawn(PausesOf::Connection);
    let [serial, number, start, request, response, time] =
        ["serial", "exchange", "start_ns", "request_bytes", "response_bytes", "response_time_ns"]
            .map(|column| sample(&recording, column));
    let planned: usize = drawn.iter().map(|drawn| drawn.exchanges.len()).sum();
    let done = serial.len() as f64 / planned as f64;
    // Exchanges with long pauses, and connections opened shortly before the end of the run, have not ended.
    assert!((0.97..=1.0).contains(&done), "{done}");
    let mut small = 0;
    for i in 0..serial.len() {
        let of = &drawn[serial[i] as usize];
        let exchange = of.exchanges[number[i] as usize];
        assert_eq!((request[i], response[i]), (exchange.request, exchange.response));
        if number[i] == 0 {
            assert_eq!(start[i], of.opens.as_ns());
        }
        // An exchange takes one round trip (two if it opens the connection) plus the server's
        // delay, provided that request and response fit in one segment each.
        if request[i] <= 1460 && response[i] <= 1460 {
            let trips = if number[i] == 0 { 2 } else { 1 };
            let expected = (of.base_rtt * trips + exchange.server_delay).as_ns();
            // The four access links divide the delay among them, each in whole nanoseconds.
            assert!(time[i].abs_diff(expected) < 3000, "{}: {} against {expected}", serial[i], time[i]);
            small += 1;
        }
    }
    assert!(small > 3000, "{small}");
    assert_eq!(flows(&recording, "web", "measured_delivered_bytes").len(), 1, "all count as one flow");
}

#[test]
fn a_written_round_trip_time_takes_the_place_of_drawn_delays() {
    let recording = record(&scenario("rtt = \"50ms\"\npauses = \"cloud\""), SEED);
    let drawn = drawn(PausesOf::Cloud);
    let [serial, number, response, time] =
        ["serial", "exchange", "response_bytes", "response_time_ns"].map(|column| sample(&recording, column));
    for i in 0..serial.len() {
        let exchange = drawn[serial[i] as usize].exchanges[number[i] as usize];
        if number[i] > 0 && exchange.request <= 1460 && response[i] <= 1460 {
            let expected = (Span::ms(50) + exchange.server_delay).as_ns();
            assert!(time[i].abs_diff(expected) < 3000, "{} against {expected}", time[i]);
        }
    }
    assert!(number.iter().any(|&n| n > 0));
}

#[test]
fn the_plan_says_what_clients_and_servers_add() {
    let plan = plan(&scenario(""));
    let access = plan.classes[0].access.as_ref().expect("it has access links");
    assert_eq!(access.rtt.mean(), Span::us(9_000 + 107_800));
    let client = "[[delay]]\nat = \"left\"\ndelay = \"client\"\n";
    let plan = support::plan(&scenario(client));
    let access = plan.classes[0].access.as_ref().expect("it has access links");
    assert_eq!(access.rtt.mean(), Span::us(9_000 + 81_000));
    let rtt = plan.parameters.iter().find(|parameter| parameter.path == "traffic.web.rtt");
    assert_eq!(rtt.map(|parameter| parameter.value.as_str()), Some("90ms"));
    assert_eq!(plan.links[0].queue.link().rtt, Some(Span::us(9_000 + 107_800)));
}
