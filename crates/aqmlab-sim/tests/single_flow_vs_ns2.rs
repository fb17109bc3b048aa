//! One flow with chosen faults, simulated from a scenario file: it equals ns-2.35's flow segment by
//! segment.
//!
//! `vectors/ns2-single-flow` contains ns-2's segments and their times; the README there has the
//! settings. The transport crate compares its endpoints with ns-2 over a small network of its own.
//! Here the whole simulator must agree with ns-2: each send time to 1 us, and each sequence number
//! exactly.
mod support;

use std::path::PathBuf;

use aqmlab_sim::{Control, Toward, run_with};
use support::plan;
use support::tap::{Act, Log, tapped};

/// One row of `cases.csv`, as pairs of a column's name and its value.
struct Case(Vec<(String, String)>);

impl Case {
    fn get(&self, column: &str) -> &str {
        &self.0.iter().find(|(name, _)| name == column).unwrap_or_else(|| panic!("no column {column}")).1
    }

    /// Returns the line of a scenario that causes the faults listed in a column; the line is empty
    /// if the column lists none. ns-2 numbers packets from 0; a scenario numbers them from 1.
    fn faults(&self, key: &str, what: &str, column: &str) -> String {
        let numbers = self.get(column).split_whitespace().map(|n| n.parse::<u64>().expect("a number") + 1);
        let list = numbers.map(|n| n.to_string()).collect::<Vec<_>>().join(", ");
        if list.is_empty() { list } else { format!("{key} = {{ {what} = [{list}] }}") }
    }
}

fn read(file: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../vectors/ns2-single-flow").join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn cases() -> Vec<Case> {
    let text = read("cases.csv");
    let mut lines = text.lines();
    let columns: Vec<&str> = lines.next().expect("a head line").split(',').collect();
    let case = |line: &str| {
        Case(columns.iter().zip(line.split(',')).map(|(c, v)| ((*c).into(), v.into())).collect())
    };
    lines.map(case).collect()
}

/// sender -> 10 Mbit/s, 10 ms -> router -> 1 Mbit/s, 20 ms -> receiver. The test observes the
/// sender's segments before any fault, on a first link that has no delay and a negligible
/// transmission time.
fn scenario(case: &Case, tick_phase_ns: &str) -> String {
    let bottleneck: u64 = case.get("queue").parse().expect("a count");
    let start = case.get("writes").strip_suffix(":inf").expect("an endless flow");
    format!(
        r#"
        duration = "{end}s"
        [topology]
        kind = "graph"
        access_rate = "none"
        [[node]]
        name = "tap"
        [[node]]
        name = "sender"
        [[node]]
        name = "router"
        [[node]]
        name = "receiver"
        [[link]]
        from = "tap"
        to = "sender"
        rate = "100Tbit"
        delay = "0s"
        [[link]]
        from = "sender"
        to = "router"
        rate = "10Mbit"
        delay = "10ms"
        queue = {{ kind = "droptail", limit = "999p" }}
        {drop}
        [[link]]
        from = "router"
        to = "receiver"
        rate = "1Mbit"
        delay = "20ms"
        queue = {{ kind = "droptail", limit = "{limit}p" }}
        {mark}
        reverse_queue = {{ kind = "droptail", limit = "999p" }}
        {drop_ack}
        [[traffic]]
        name = "flow"
        kind = "bulk"
        from = "tap"
        to = "receiver"
        start = "{start}s"
        tcp = {{ profile = "ns2", recovery = "{recovery}", mss = "{mss}B", max_window = {window}, ack_every = {ack_every}, ecn = {ecn}, tick_phase = "{tick_phase_ns}ns" }}
        "#,
        end = case.get("end_s"),
        drop = case.faults("faults", "drop", "drop"),
        mark = case.faults("faults", "mark", "mark"),
        drop_ack = case.faults("reverse_faults", "drop", "drop_ack"),
        limit = bottleneck - 1,
        recovery = case.get("recovery"),
        mss = case.get("mss"),
        window = case.get("window"),
        ack_every = if case.get("sink") == "second" { 2 } else { 1 },
        ecn = case.get("ecn") == "1",
    )
}

/// The send time in ns, and the offset of the first byte, of every data segment.
fn sends(case: &Case, tick_phase_ns: &str) -> Vec<(u64, u64)> {
    let mut plan = plan(&scenario(case, tick_phase_ns));
    let log = Log::default();
    let registry = tapped(&mut plan.links[0].queue, &log);
    run_with(&plan, 1, &Control::default(), &registry).unwrap_or_else(|e| panic!("{e}"));
    let log = log.lock().expect("the run did not panic");
    log.iter()
        .filter_map(|act| match act {
            // The SYN has sequence number 0, so the first byte has number 1.
            Act::Enqueue(at, packet) if packet.toward() == Toward::Receiver => {
                let data = packet.segment().filter(|s| s.len > 0)?;
                Some((at.as_ns(), u64::from(data.seq) - 1))
            }
            _ => None,
        })
        .collect()
}

#[test]
fn every_send_time_and_sequence_number_agrees() {
    let mut compared = 0;
    for case in cases() {
        let name = case.get("case");
        // Two kinds of cases are skipped: those in which the application pauses, because a bulk
        // flow offers all of its data immediately, and those in which the sender adds random
        // delays, because the simulator's draws differ from ns-2's.
        if !case.get("writes").ends_with(":inf") || !case.get("jitter_us").is_empty() {
            continue;
        }
        let text = read(&format!("{name}.csv"));
        let mut lines = text.lines();
        let phase = lines.next().and_then(|l| l.strip_prefix("# tick_phase_ns ")).expect("the clock's phase");
        let theirs = lines.skip(1).map(|l| {
            let (at, sequence) = l.split_once(',').expect("two columns");
            (at.parse::<u64>().expect("us") * 1000, sequence.parse::<u64>().expect("bytes"))
        });
        // What happens in the last instants depends on where each of the two simulators stops.
        let end = case.get("end_s").parse::<u64>().expect("seconds") * 1_000_000_000 - 10_000;
        let theirs: Vec<_> = theirs.filter(|s| s.0 < end).collect();
        let ours: Vec<_> = sends(&case, phase).into_iter().filter(|s| s.0 < end).collect();
        assert_eq!(ours.len(), theirs.len(), "{name}: segments sent");
        for (i, (o, t)) in ours.iter().zip(&theirs).enumerate() {
            assert!(o.1 == t.1 && o.0.abs_diff(t.0) <= 1000, "{name}, segment {i}: ours {o:?}, ns-2 {t:?}");
        }
        compared += ours.len();
    }
    println!("{compared} segments compared");
    assert!(compared > 100_000);
}
