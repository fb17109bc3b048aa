//! Random connection vectors: what is written is read as it was, whatever a vector contains is either
//! written and read or refused in both directions, and both engines carry it out alike.

use aqmlab_qdisc::Registry;
use aqmlab_scenario::{ClassPlan, ConnectionVector, Files, Limits, Plan, parse_within};
use aqmlab_sim::{Control, run, run_plain};
use aqmlab_storage::{vectors_csv, vectors_parquet, vectors_tmix};
use aqmlab_traffic::PlannedExchange;
use aqmlab_units::{Instant, Span};
use proptest::prelude::*;

/// A year, the longest time in a scenario.
const YEAR: u64 = 365 * 86_400 * 1_000_000_000;
/// The longest time that a float in seconds holds to the nanosecond.
const EXACT: u64 = (1 << 23) * 1_000_000_000;
const MOST_BYTES: u64 = 1 << 50;

/// A stand-in for the scenario's folder: reading any path returns this content.
struct Beside(Vec<u8>);

impl Files for Beside {
    fn read(&self, _path: &str) -> std::io::Result<Vec<u8>> {
        Ok(self.0.clone())
    }
}

fn plan(file: &str, content: &[u8]) -> Result<Plan, String> {
    let text = format!(
        "duration = \"8760h\"\n[topology]\nkind = \"dumbbell\"\nrate = \"1Mbit\"\ndelay = \"3ms\"\n\
         queue = {{ kind = \"droptail\", limit = \"12p\" }}\nreverse_queue = {{ kind = \"droptail\", limit = \"12p\" }}\n\
         [[traffic]]\nname = \"web\"\nkind = \"trace\"\nfile = \"{file}\"\naccess_rate = \"100Mbit\"\n\
         [record]\nqueues = \"0s\"\nflows = \"0s\"\n"
    );
    let read = parse_within(&text, "t", Limits::default(), &Beside(content.to_vec()));
    read.map(|mut read| read.arms.remove(0)).map_err(|error| error.to_string())
}

/// A class whose vectors can be written: its name and its TCP appear in files.
fn class() -> ClassPlan {
    let csv = b"start_s,request_bytes,response_bytes\n0,1,1\n";
    plan("t.csv", csv).unwrap_or_else(|e| panic!("{e}")).classes.remove(0)
}

fn read(file: &str, content: &[u8]) -> Result<Vec<ConnectionVector>, String> {
    plan(file, content)?.classes[0].vectors(1, Instant::from_ns(YEAR))
}

/// How an exchange begins and ends.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Sends {
    Both,
    OnlyClient,
    OnlyServer,
}

/// Connections that a trace may contain. `time` draws waits, and `size` bytes above 0.
fn vectors(
    time: impl Strategy<Value = u64> + Clone + 'static,
    size: impl Strategy<Value = u64> + Clone + 'static,
    starts: impl Strategy<Value = u64> + Clone + 'static,
) -> impl Strategy<Value = Vec<ConnectionVector>> {
    let sends = prop_oneof![Just(Sends::Both), Just(Sends::OnlyClient), Just(Sends::OnlyServer)];
    let exchange = (sends, [time.clone(), time.clone()], [size.clone(), size]);
    let connection = (starts, prop::collection::vec(exchange, 1..6), [time.clone(), time]);
    (prop::collection::vec(connection, 1..12), any::<bool>()).prop_map(|(drawn, have_delays)| {
        let mut vectors: Vec<_> = drawn
            .into_iter()
            .map(|(start, exchanges, delays)| ConnectionVector {
                start: Instant::from_ns(start),
                delays: have_delays.then_some(delays.map(Span::ns)),
                exchanges: listed(&exchanges),
            })
            .collect();
        vectors.sort_by_key(|vector| vector.start);
        vectors
    })
}

fn listed(drawn: &[(Sends, [u64; 2], [u64; 2])]) -> Vec<PlannedExchange> {
    let mut before = None;
    let mut list = Vec::new();
    for &(sends, [pause, server_delay], [request, response]) in drawn {
        let sends = match (before, sends) {
            (Some(Sends::OnlyClient), Sends::OnlyServer) => Sends::Both,
            _ => sends,
        };
        let mut exchange = PlannedExchange {
            pause: Span::ns(if before.is_none() { 0 } else { pause }),
            request,
            server_delay: Span::ns(server_delay),
            response,
            last: false,
        };
        match sends {
            Sends::Both => {}
            Sends::OnlyClient => (exchange.server_delay, exchange.response) = (Span::ZERO, 0),
            Sends::OnlyServer => (exchange.pause, exchange.request) = (Span::ZERO, 0),
        }
        before = Some(sends);
        list.push(exchange);
    }
    list.last_mut().expect("there is one").last = true;
    list
}

fn edges(most: u64) -> impl Strategy<Value = u64> + Clone {
    prop_oneof![Just(0), Just(1), Just(most), 0..=most, 0..=999_999_999u64.min(most)].boxed().no_shrink()
}

fn sizes(most: u64) -> impl Strategy<Value = u64> + Clone {
    prop_oneof![Just(1), Just(most), 1..=most, 1..=3000u64].boxed().no_shrink()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn csv_is_read_as_it_was_written(vectors in vectors(edges(YEAR), sizes(MOST_BYTES), edges(YEAR - 1))) {
        let class = class();
        let csv = vectors_csv(&[(&class, vectors.clone())]).unwrap_or_else(|e| panic!("{e}"));
        prop_assert_eq!(read("t.csv", csv.as_bytes()), Ok(vectors), "{}", csv);
    }

    #[test]
    fn parquet_is_read_as_it_was_written(vectors in vectors(edges(EXACT), sizes(MOST_BYTES), edges(EXACT))) {
        let class = class();
        let parquet = vectors_parquet(&[(&class, vectors.clone())]).unwrap_or_else(|e| panic!("{e}"));
        prop_assert_eq!(read("t.parquet", &parquet), Ok(vectors));
    }

    /// In Tmix, times are microseconds of which none is 0, and both delays of a connection are a quarter of the
    /// round-trip time.
    #[test]
    fn tmix_is_read_as_it_was_written(
        drawn in vectors(edges(YEAR / 1000 - 1), sizes(i32::MAX as u64), edges(YEAR / 1000 - 1))
    ) {
        let mut vectors = drawn;
        let micros = |span: Span| Span::us(span.as_ns() + 1);
        for vector in &mut vectors {
            vector.start = Instant::ZERO + Span::us(vector.start.saturating_since(Instant::ZERO).as_ns());
            vector.delays = vector.delays.map(|[one, _]| [micros(one); 2]);
            let mut is_first = true;
            for exchange in &mut vector.exchanges {
                if !is_first && exchange.request > 0 {
                    exchange.pause = micros(exchange.pause);
                }
                if exchange.response > 0 {
                    let sends_first = is_first && exchange.request == 0;
                    exchange.server_delay =
                        if sends_first { Span::ZERO } else { micros(exchange.server_delay) };
                }
                is_first = false;
            }
        }
        let class = class();
        let tmix = vectors_tmix(&class, &vectors).unwrap_or_else(|e| panic!("{e}"));
        let bom = [b"\xef\xbb\xbf", tmix.as_bytes()].concat();
        let with_mark = read("inbound.ns", &bom);
        prop_assert_eq!(with_mark.as_ref(), Ok(&vectors), "{}", tmix);
        // The content shows the format, whatever the name of the file.
        prop_assert_eq!(read("inbound", tmix.replace('\n', "\r\n").as_bytes()), Ok(vectors));
    }

    /// Whatever is written can be read. Values are drawn from beyond all limits.
    #[test]
    fn what_cannot_be_read_is_not_written(
        start in edges(YEAR - 1),
        delays in prop::option::of([edges(2 * YEAR), edges(2 * YEAR)]),
        drawn in prop::collection::vec(
            ([edges(2 * YEAR), edges(2 * YEAR)], [edges(2 * MOST_BYTES), edges(2 * MOST_BYTES)]), 1..4
        ),
    ) {
        let mut exchanges: Vec<_> = drawn
            .into_iter()
            .map(|([pause, delay], [request, response])| PlannedExchange {
                pause: Span::ns(pause),
                request,
                server_delay: Span::ns(delay),
                response,
                last: false,
            })
            .collect();
        exchanges.last_mut().expect("there is one").last = true;
        let start = Instant::from_ns(start);
        let vectors = vec![ConnectionVector { start, delays: delays.map(|of| of.map(Span::ns)), exchanges }];
        let class = class();
        let all = [(&class, vectors.clone())];
        let from = |file: &str, written: Result<Vec<u8>, String>| {
            written.map(|content| plan(file, &content).map(|plan| plan.classes[0].vectors(1, start)))
        };
        if let Ok(read) = from("t.csv", vectors_csv(&all).map(String::into_bytes)) {
            prop_assert_eq!(read, Ok(Ok(vectors.clone())));
        }
        if let Ok(read) = from("t.parquet", vectors_parquet(&all)) {
            prop_assert_eq!(read, Ok(Ok(vectors.clone())));
        }
        if let Ok(read) = from("t.cvec", vectors_tmix(&class, &vectors).map(String::into_bytes)) {
            prop_assert!(read.is_ok(), "{:?}", read);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 48, ..ProptestConfig::default() })]

    /// Connections in which both ends send several times in a row, at a link that loses packets.
    #[test]
    fn both_engines_carry_out_a_list_alike(
        vectors in vectors(0..80_000_000u64, 1..30_000u64, 0..3_000_000_000u64)
    ) {
        let class = class();
        let csv = vectors_csv(&[(&class, vectors.clone())]).unwrap_or_else(|e| panic!("{e}"));
        let mut plan = plan("t.csv", csv.as_bytes()).unwrap_or_else(|e| panic!("{e}"));
        plan.stop.at = Span::s(20);
        plan.record.requests.each = plan.classes[0].traffic.makes_requests();
        let fast = run(&plan, 1, &Control::default()).unwrap_or_else(|e| panic!("{e}"));
        let plain = run_plain(&plan, 1, &Control::default(), &Registry::builtin());
        let plain = plain.unwrap_or_else(|e| panic!("{e}"));
        let digests = |of: &aqmlab_recording::Recording| {
            let held = of.tables.iter().map(|table| (table.name, table.digest().to_string()));
            held.chain(of.streamed.iter().map(|table| (table.name, table.digest.to_string()))).collect::<Vec<_>>()
        };
        prop_assert_eq!(digests(&fast), digests(&plain), "{}", csv);
    }
}
