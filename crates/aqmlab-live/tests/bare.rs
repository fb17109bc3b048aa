//! The hosts and the traffic of a plan without a router: packets are carried from device to device
//! immediately.

mod alone;

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use aqmlab_live::LiveError;
use aqmlab_live::capacity::carry;
use aqmlab_live::data_plane::Clock;
use aqmlab_live::host::{self, Counters};
use aqmlab_live::traffic::{FlowRow, Generator, Outcome, RunEnd};
use aqmlab_recording::ColumnData;
use aqmlab_scenario::{Files, Plan};
use aqmlab_units::{Instant, Span};

fn main() -> ExitCode {
    alone::main(&[
        ("every_kind_of_traffic_does_what_its_plan_says", || every_kind(4)),
        ("every_kind_of_traffic_over_ipv6", || every_kind(6)),
        ("a_connection_that_nobody_answers_is_counted", silent_host),
    ])
}

fn plan(ip: u32, duration: &str, classes: &str) -> Plan {
    let text = format!(
        "title = \"t\"\nduration = \"{duration}\"\nwarmup = \"200ms\"\nlive = {{ ip = {ip} }}\n\
         topology = {{ kind = \"dumbbell\", rate = \"1Gbit\", delay = \"0s\", queue = {{ kind = \"droptail\", limit = \"1000p\" }} }}\n\
         record = {{ flows = \"50ms\" }}\n{classes}"
    );
    let experiment = aqmlab_scenario::parse_within(&text, "test", Default::default(), &Web);
    experiment.unwrap_or_else(|e| panic!("{e}")).arms.remove(0)
}

/// Requests and responses of a traced class; the last connection has no request, and the one before it has no
/// response.
struct Web;

impl Files for Web {
    fn read(&self, _: &str) -> std::io::Result<Vec<u8>> {
        Ok(b"start_s,request_bytes,response_bytes\n0.1,300,20000\n0.3,1,1\n0.35,70000,0\n0.4,0,5000\n".into())
    }
}

/// Runs a plan with two hosts per class and, for each class, a separate thread that carries its packets. Also
/// returns the longest time during which one of these threads did not poll its devices.
fn run(plan: &Plan, carried: bool) -> Result<(Outcome, Vec<Counters>, Span), LiveError> {
    host::leave_host_namespace(|| Ok(()))?;
    let (hosts, mut tuns) = host::set_up(plan, Vec::new())?;
    let (clock, run_end) = (Clock::start(), RunEnd::new(Instant::ZERO + plan.stop.at));
    let ended = AtomicBool::new(false);
    let (outcome, carried) = thread::scope(|scope| {
        let ended = &ended;
        let pairs = tuns.chunks_mut(2).filter(|_| carried);
        let carriers: Vec<_> =
            pairs.map(|pair| scope.spawn(|| carry(pair, ended, u64::MAX, |_| 1))).collect();
        let outcome = Generator::new(plan, 7, &hosts, clock, &run_end).and_then(Generator::run);
        ended.store(true, Ordering::Release);
        let carried = carriers.into_iter().map(|carrier| carrier.join().expect("carrying does not panic"));
        (outcome, carried.collect::<Result<Vec<_>, _>>())
    });
    let longest = carried?.iter().map(|carried| carried.longest_gap).max().unwrap_or(Span::ZERO);
    Ok((outcome?, hosts.counters(&tuns)?, longest))
}

const CLASSES: &str = r#"
[[traffic]]
name = "file"
kind = "bulk"
count = 3
bytes = "100kB"
tcp = { profile = "rfc", mss = "960B", ack_every = 1 }

[[traffic]]
name = "endless"
kind = "bulk"
count = 2
start = "100ms"
stop = "600ms"
tcp = { profile = "linux", max_window = 64 }

[[traffic]]
name = "cbr"
kind = "cbr"
count = 2
rate = "800kbit"
size = "500B"
stop = "800ms"

[[traffic]]
name = "bursts"
kind = "on_off_tcp"
count = 2
burst = "50kB"
off = "50ms"
tcp = { profile = "linux" }

[[traffic]]
name = "greedy"
kind = "on_off_tcp"
on = "100ms"
off = "100ms"
tcp = { profile = "linux", max_window = 32 }

[[traffic]]
name = "web"
kind = "trace"
file = "web.csv"
tcp = { profile = "linux" }
"#;

fn every_kind(ip: u32) -> Result<(), LiveError> {
    let plan = plan(ip, "1s", CLASSES);
    let (outcome, counters, gap) = run(&plan, true)?;
    let mut rows: BTreeMap<&str, Vec<&FlowRow>> = BTreeMap::new();
    for row in &outcome.rows {
        rows.entry(&plan.classes[row.class as usize].name).or_default().push(row);
    }
    assert_eq!(outcome.rows.len(), 14, "every flow has a row");
    for row in &rows["file"] {
        assert_eq!(row.counts.delivered_bytes.unwrap(), 100_000);
        assert!(row.end.is_some() && row.counts.sent_bytes.unwrap() >= 100_000);
        // 105 segments of 960 bytes.
        assert!(row.counts.sent_segments.unwrap() >= 105, "{:?}", row.counts);
        assert_eq!(row.counts.timeouts.unwrap_or(0), 0);
    }
    for row in &rows["endless"] {
        assert!(row.end.is_some(), "it has been stopped");
        assert_eq!(row.start, Instant::from_ns(100_000_000));
    }
    for row in &rows["cbr"] {
        // All packets that are sent are received.
        let (sent, delivered) = (row.counts.sent_segments.unwrap(), row.counts.delivered_bytes.unwrap());
        assert!((1..=161).contains(&sent), "{sent}");
        assert_eq!(delivered, sent * 500);
    }
    let flight = samples(&outcome, "flight_bytes", rows["greedy"][0].number);
    assert!(flight.values().all(|bytes| *bytes <= 32 * 1448), "a window of 32 segments: {flight:?}");
    let web: Vec<_> = rows["web"].iter().map(|row| row.counts.delivered_bytes.unwrap()).collect();
    assert_eq!(web, [20_300, 2, 70_000, 5_000]);
    assert!(rows["web"].iter().all(|row| row.end.is_some()));
    assert_eq!(outcome.socket_errors, Default::default());
    let hidden: Vec<_> = counters.iter().flat_map(Counters::hidden_drops).collect();
    assert!(hidden.is_empty(), "{hidden:?}");
    assert!(outcome.series.rows() > 60, "{} samples", outcome.series.rows());
    let latest = outcome.lateness_ns.bins().map(|bin| bin.high).max().unwrap_or(0);
    if latest < PUNCTUAL.as_ns() && gap < SHORT {
        in_time(&outcome, &rows);
    } else {
        eprintln!(
            "the machine was late by up to {} ms, and packets waited for up to {} ms: the times of events are not checked",
            latest / 1_000_000,
            gap.as_ns() / 1_000_000
        );
    }
    Ok(())
}

/// The times of events are checked only if the machine was never later than this.
const PUNCTUAL: Span = Span::ms(10);
/// Packets that are delayed for no longer than this arrive within the 50 ms between two samples.
const SHORT: Span = Span::ms(25);

/// Checks the times of events on a machine that is not late.
fn in_time(outcome: &Outcome, rows: &BTreeMap<&str, Vec<&FlowRow>>) {
    for row in &rows["endless"] {
        assert!(row.counts.delivered_bytes.unwrap() > 1_000_000, "{:?}", row.counts);
        let end = row.end.expect("it has been stopped").as_secs_f64();
        assert!((0.6..1.0).contains(&end), "{end}");
    }
    for row in &rows["cbr"] {
        // 200 packets per second for 0.8 s.
        assert!((155..=161).contains(&row.counts.sent_segments.unwrap()), "{:?}", row.counts);
        let measured = row.counts.since(row.at_warmup);
        assert!((115..=125).contains(&measured.sent_segments.unwrap()), "{measured:?}");
    }
    for row in &rows["bursts"] {
        let bursts = row.counts.delivered_bytes.unwrap() / 50_000;
        assert!((3..=20).contains(&bursts), "an off period of 50 ms after each: {bursts}");
    }
    let samples = samples(outcome, "delivered_bytes", rows["greedy"][0].number);
    let gained = |from: u64, to: u64| samples[&to] - samples[&from];
    // The source is on, off, on, off. Data that the socket has accepted before an off period is
    // still sent, but within the first half of that period.
    assert!(gained(50, 100) > 100_000 && gained(200, 300) > 100_000, "{samples:?}");
    assert_eq!((gained(150, 200), gained(350, 400)), (0, 0), "{samples:?}");
}

/// Returns a column of a flow's samples, by their times in milliseconds.
fn samples(outcome: &Outcome, name: &str, flow: u32) -> BTreeMap<u64, u64> {
    let column = |name| match outcome.series.column(name) {
        Some(ColumnData::U64(values)) => values,
        other => panic!("{other:?}"),
    };
    let of_flow = column("flow").iter().zip(column("t_ns").iter().zip(column(name)));
    of_flow.filter(|(of, _)| **of == u64::from(flow)).map(|(_, (t, bytes))| (t / 1_000_000, *bytes)).collect()
}

/// If packets are not delivered, the SYN is sent and retransmitted once, and then the host gives up.
fn silent_host() -> Result<(), LiveError> {
    let class = "[[traffic]]\nname = \"lost\"\nkind = \"bulk\"\ncount = 3\ntcp = { profile = \"rfc\", syn_retries = 1 }\n";
    let (outcome, ..) = run(&plan(4, "4s", class), false)?;
    assert_eq!(outcome.socket_errors.timed_out, 3);
    assert_eq!(outcome.rows.len(), 3);
    for row in &outcome.rows {
        assert_eq!((row.counts.delivered_bytes.unwrap(), row.end), (0, None));
    }
    Ok(())
}
