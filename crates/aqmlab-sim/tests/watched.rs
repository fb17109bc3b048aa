//! Records of individual changes and packets are complete and exact, and do not change any other table.
mod support;

use std::collections::BTreeMap;

use aqmlab_recording::{ColumnData, Recording, Table};
use aqmlab_sim::{Control, RunError, run, run_with};
use aqmlab_units::{Instant, Span};
use support::tap::{Act, Log, tapped};
use support::{flows, integers, names, numbers, plan, record, summary};

/// Twelve connections of two classes and a packet source, through a short queue, with losses of all kinds.
fn scenario(record: &str) -> String {
    format!(
        r#"
        duration = "20s"
        warmup = "0s"
        [topology]
        kind = "dumbbell"
        rate = "2Mbit"
        delay = "10ms"
        queue = {{ kind = "red", limit = "20p", min_th = "3p", max_th = "9p", max_p = 0.1, ecn = true }}
        reverse_queue = {{ kind = "droptail", limit = "6p" }}
        [[traffic]]
        name = "ecn"
        kind = "bulk"
        count = 6
        rtt = {{ uniform = ["40ms", "120ms"] }}
        start = {{ uniform = ["0s", "1s"] }}
        tcp = {{ profile = "rfc", ecn = true }}
        [[traffic]]
        name = "plain"
        kind = "bulk"
        count = 6
        rtt = "60ms"
        loss = 0.01
        start = {{ uniform = ["0s", "1s"] }}
        [[traffic]]
        name = "udp"
        kind = "poisson"
        rate = "100kbit"
        [record]
        {record}
        "#
    )
}

const ALL: &str = r#"
    trace = ["ecn", "plain"]
    packets = { flows = ["ecn", "plain", "udp"] }
"#;

fn table<'r>(recording: &'r Recording, name: &str) -> &'r Table {
    recording.table(name).unwrap_or_else(|| panic!("there is no table {name}"))
}

/// The number of packets for which `event` is recorded, by place.
fn counts(packets: &Table, event: &str) -> BTreeMap<String, u128> {
    let mut counts = BTreeMap::new();
    for (e, at) in names(packets, "event").iter().zip(names(packets, "place")) {
        if e == event {
            *counts.entry(at).or_default() += 1;
        }
    }
    counts
}

fn of(counts: &BTreeMap<String, u128>, at: &str) -> u128 {
    counts.get(at).copied().unwrap_or(0)
}

#[test]
fn nothing_else_changes_when_something_is_watched() {
    let (with, without) = (record(&scenario(ALL), 3), record(&scenario(""), 3));
    for table in &without.tables {
        let watched = with.table(table.name).expect("the same tables");
        assert_eq!(watched.digest(), table.digest(), "{}", table.name);
    }
    let more: Vec<_> = with.tables[without.tables.len()..].iter().map(|t| t.name).collect();
    assert_eq!(more, ["trace", "packets"]);
}

#[test]
fn the_packets_of_a_queue_are_its_books() {
    let recording = record(&scenario(ALL), 3);
    let packets = table(&recording, "packets");
    let [enqueued, dequeued, dropped, marked] =
        ["enqueue", "dequeue", "drop", "mark"].map(|event| counts(packets, event));
    for queue in ["bottleneck", "reverse"] {
        let book = |column: &str| summary(&recording, queue, "*", column);
        assert_eq!(of(&enqueued, queue), book("arrivals_packets"), "{queue}");
        let dropped_in_all: u128 = ["early", "forced", "overflow", "injected"]
            .iter()
            .map(|reason| book(&format!("dropped_{reason}_packets")))
            .sum();
        assert_eq!(of(&dropped, queue), dropped_in_all, "{queue}");
        let marked_in_all: u128 = ["early", "forced", "overflow", "injected"]
            .iter()
            .map(|reason| book(&format!("marked_{reason}_packets")))
            .sum();
        assert_eq!(of(&marked, queue), marked_in_all, "{queue}");
        // A packet whose transmission has begun but not ended is held by the link.
        let begun = of(&dequeued, queue) - book("departures_packets");
        assert!(begun <= 1, "{queue}: {begun}");
        let waiting = book("final_in_system_packets") - begun;
        assert_eq!(of(&enqueued, queue), of(&dequeued, queue) + of(&dropped, queue) + waiting, "{queue}");
    }
    assert!(of(&dropped, "bottleneck") > 50 && of(&marked, "bottleneck") > 50);
}

#[test]
fn the_packets_of_all_flows_are_the_books_of_the_network() {
    let recording = record(&scenario(ALL), 3);
    let packets = table(&recording, "packets");
    let total = |event: &str| counts(packets, event).values().sum::<u128>();
    let run = table(&recording, "run");
    let book = |column: &str| integers(run, column)[0];
    assert_eq!(total("send"), book("sent_packets"));
    assert_eq!(total("arrive"), book("delivered_packets"));
    assert_eq!(total("drop"), book("dropped_packets"));
    assert_eq!(total("lose"), book("lost_outside_queues_packets"));
    assert!(total("lose") > 5, "{} packets lost on access links", total("lose"));
}

/// A separate tap on the discipline sees exactly the recorded events, at the same instants.
#[test]
fn times_and_sequence_numbers_are_those_of_the_packets() {
    let only = r#"packets = { links = ["bottleneck"], events = ["enqueue", "dequeue", "drop", "mark"] }"#;
    let log = Log::default();
    let mut plan = plan(&scenario(only));
    let registry = tapped(&mut plan.links[0].queue, &log);
    let recording = run_with(&plan, 5, &Control::default(), &registry);
    let recording = recording.unwrap_or_else(|e| panic!("{e}"));
    let packets = table(&recording, "packets");
    let log = log.lock().expect("the run did not panic");
    let (times, events, reasons) =
        (integers(packets, "t_ns"), names(packets, "event"), names(packets, "reason"));
    let Some(ColumnData::NullableU64(sequences)) = packets.column("seq") else { panic!("no seq") };
    assert_eq!(log.len(), packets.rows());
    for (row, act) in log.iter().enumerate() {
        let (word, at, packet, reason) = match act {
            Act::Enqueue(at, packet) => ("enqueue", at, packet, ""),
            Act::Dropped(at, packet, reason) => ("drop", at, packet, reason.name()),
            Act::Marked(at, packet, reason) => ("mark", at, packet, reason.name()),
            Act::Left(at, packet) => ("dequeue", at, packet, ""),
        };
        assert_eq!((events[row].as_str(), reasons[row].as_str()), (word, reason), "row {row}");
        assert_eq!(times[row], u128::from(at.as_ns()), "row {row}");
        assert_eq!(sequences[row], packet.segment().map(|s| u64::from(s.seq)), "row {row}");
    }
}

#[test]
fn a_choice_of_flows_events_and_times_is_kept() {
    let some = r#"packets = { links = ["bottleneck"], flows = [{ class = "plain", flows = [2, 4] }],
        events = ["enqueue", "send", "drop"], from = "2s", until = "7s" }"#;
    let (some, all) = (record(&scenario(some), 3), record(&scenario(ALL), 3));
    let rows = |recording: &Recording| {
        let packets = table(recording, "packets");
        let head = integers(packets, "t_ns").into_iter().zip(integers(packets, "flow"));
        head.zip(names(packets, "event").into_iter().zip(names(packets, "place")))
            .map(|((t, flow), (event, at))| (t, flow, event, at))
            .collect::<Vec<_>>()
    };
    let expected: Vec<_> = rows(&all)
        .into_iter()
        .filter(|(t, flow, event, at)| {
            (2_000_000_000..=7_000_000_000).contains(t)
                // Flows are numbered across all classes, so the first six are of class "ecn".
                && [8, 10].contains(flow)
                && ["enqueue", "send", "drop"].contains(&event.as_str())
                && at != "reverse"
        })
        .collect();
    assert!(expected.len() > 200, "{}", expected.len());
    assert_eq!(rows(&some), expected);
}

#[test]
fn the_trace_tells_every_timeout_retransmission_and_reduction() {
    let recording = record(&scenario(ALL), 3);
    let trace = table(&recording, "trace");
    let (events, owners) = (names(trace, "event"), integers(trace, "flow"));
    for (event, column) in [
        ("timeout", "timeouts"),
        ("fast_retransmit", "fast_retransmits"),
        ("ecn_reduction", "ecn_reductions"),
    ] {
        let told = |flow: u128| {
            events.iter().zip(&owners).filter(|&(e, &of)| e == event && of == flow).count() as u128
        };
        let counted: Vec<_> =
            ["ecn", "plain"].iter().flat_map(|class| flows(&recording, class, column)).collect();
        assert_eq!((0..12).map(told).collect::<Vec<_>>(), counted, "{event}");
        assert!(counted.iter().sum::<u128>() > 5, "{event}: {counted:?}");
    }
    let opened = events.iter().filter(|e| *e == "open").count();
    assert_eq!(opened, 12);
}

/// The rows of a trace are the same whether packets are recorded or not, and whether one class is
/// traced or both.
#[test]
fn a_trace_does_not_depend_on_what_else_is_recorded() {
    let both = record(&scenario(ALL), 3);
    let alone = record(&scenario(r#"trace = ["ecn", "plain"]"#), 3);
    assert_eq!(table(&alone, "trace").digest(), table(&both, "trace").digest());
    assert!(alone.table("packets").is_none());
    let ecn = record(&scenario(r#"trace = ["ecn"]"#), 3);
    let rows = integers(table(&both, "trace"), "flow").into_iter().filter(|&flow| flow < 6).count();
    assert_eq!(table(&ecn, "trace").rows(), rows);
}

/// A sample of a flow equals the latest row of that flow's trace at that instant.
#[test]
fn the_trace_is_what_samples_show() {
    let recording = record(&scenario(ALL), 3);
    let (trace, series) = (table(&recording, "trace"), table(&recording, "flow_series"));
    let (times, owners) = (integers(trace, "t_ns"), integers(trace, "flow"));
    let (windows, acked) = (numbers(trace, "cwnd_segments"), integers(trace, "acked_bytes"));
    let (sampled, of_flow) = (integers(series, "t_ns"), integers(series, "flow"));
    let (cwnd, sampled_acked) = (numbers(series, "cwnd_segments"), integers(series, "acked_bytes"));
    for sample in 0..series.rows() {
        // Among simultaneous events, samplers come last.
        let row = (0..trace.rows())
            .rev()
            .find(|&row| owners[row] == of_flow[sample] && times[row] <= sampled[sample])
            .expect("the flow has opened");
        assert_eq!((windows[row], acked[row]), (cwnd[sample], sampled_acked[sample]), "sample {sample}");
    }
    assert!(series.rows() > 400);
}

/// The profile `rfc` begins without a threshold (RFC 5681, 3.1: "arbitrarily high").
#[test]
fn a_threshold_is_null_until_the_first_reduction_sets_it() {
    let recording = record(&scenario(ALL), 3);
    for name in ["trace", "flow_series"] {
        let Some(ColumnData::NullableF64(thresholds)) = table(&recording, name).column("ssthresh_segments")
        else {
            panic!("no thresholds in {name}")
        };
        assert_eq!(thresholds[0], None, "{name}");
        assert!(thresholds.iter().flatten().count() > 0, "{name}: reductions set it");
        assert!(thresholds.iter().flatten().all(|s| *s < 1000.0), "{name}: to what was in flight");
    }
}

#[test]
fn too_many_rows_end_the_run_with_a_message() {
    for (what, key) in
        [("trace", r#"trace = ["ecn"]"#), ("packets", r#"packets = { links = ["bottleneck"] }"#)]
    {
        let text = scenario(&format!("limit = 50\n{key}"));
        match run(&plan(&text), 3, &Control::default()) {
            Err(RunError::TooManyRows { table, at, limit }) => {
                assert_eq!((table, limit), (what, 50));
                assert!(at > Instant::ZERO && at <= Instant::ZERO + Span::s(20), "{at}");
            }
            other => panic!("{what}: {:?}", other.map(|_| "a recording")),
        }
    }
    let exact = record(&scenario(r#"packets = { links = ["bottleneck"], until = "1s" }"#), 3);
    let rows = table(&exact, "packets").rows();
    let just = |limit: usize| {
        let key = format!("limit = {limit}\npackets = {{ links = [\"bottleneck\"], until = \"1s\" }}");
        run(&plan(&scenario(&key)), 3, &Control::default()).is_ok()
    };
    assert!(just(rows) && !just(rows - 1), "{rows} rows");
}

/// The identity of a packet: its flow, its direction, its number.
type Identity = (u128, String, u128);

fn identities(packets: &Table) -> Vec<Identity> {
    let (flows, numbers) = (integers(packets, "flow"), integers(packets, "number"));
    let named = flows.into_iter().zip(names(packets, "toward")).zip(numbers);
    named.map(|((flow, toward), number)| (flow, toward, number)).collect()
}

/// All rows except for the numbers: time, event, place, identity, and the fields of the header.
fn rows(packets: &Table) -> Vec<(u128, String, String, Identity, [u128; 4], String)> {
    let header = ["wire_bytes", "payload_bytes", "seq", "ack"].map(|column| integers(packets, column));
    let (times, events, places) =
        (integers(packets, "t_ns"), names(packets, "event"), names(packets, "place"));
    let (identities, flags) = (identities(packets), names(packets, "flags"));
    let row = |i: usize| {
        let fields = [0, 1, 2, 3].map(|field| header[field][i]);
        let (event, place) = (events[i].clone(), places[i].clone());
        (times[i], event, place, identities[i].clone(), fields, flags[i].clone())
    };
    (0..packets.rows()).map(row).collect()
}

/// Each packet that a host sends has the next number of its flow and direction, keeps this number and
/// its header until its end, and has one fate.
#[test]
fn a_packet_has_one_number_and_one_fate() {
    let recording = record(&scenario(ALL), 3);
    let mut lives: BTreeMap<Identity, Vec<_>> = BTreeMap::new();
    let mut sent: BTreeMap<(u128, String), u128> = BTreeMap::new();
    for (at, event, place, identity, header, flags) in rows(table(&recording, "packets")) {
        if event == "send" {
            let next = sent.entry((identity.0, identity.1.clone())).or_default();
            assert_eq!(identity.2, *next, "{identity:?}");
            *next += 1;
        }
        lives.entry(identity).or_default().push((at, event, place, header, flags));
    }
    for (identity, life) in &lives {
        let (_, _, _, header, flags) = &life[0];
        assert!(life.iter().all(|(.., h, f)| (h, f) == (header, flags)), "{identity:?}: {life:?}");
        assert!(life.is_sorted_by_key(|(at, ..)| *at), "{identity:?}: {life:?}");
        let told: Vec<&str> =
            life.iter().map(|(_, event, ..)| event.as_str()).filter(|event| *event != "mark").collect();
        let whole = ["send", "enqueue", "dequeue", "receive", "arrive"];
        let fits =
            told == ["send", "lose"] || told == ["send", "enqueue", "drop"] || whole.starts_with(&told);
        assert!(fits, "{identity:?}: {told:?}");
    }
    assert!(sent.len() == 25 && sent.values().all(|&number| number > 50), "{sent:?}");
}

/// A packet is received at the end of a link after its transmission time and the link's delay, in the
/// order of events; a packet that is still on the link at the end of the run is not received.
#[test]
fn a_reception_is_recorded_when_it_happens() {
    let recording = record(&scenario(ALL), 3);
    let packets = rows(table(&recording, "packets"));
    assert!(packets.is_sorted_by_key(|(at, ..)| *at));
    let mut under_way = BTreeMap::new();
    let mut received = 0;
    for (at, event, place, identity, [wire_bytes, ..], _) in packets {
        if event == "dequeue" {
            // At 2 Mbit/s, a byte takes 4000 ns. The delay of the link is 10 ms.
            under_way.insert((place, identity), at + 4000 * wire_bytes + 10_000_000);
        } else if event == "receive" {
            assert_eq!(under_way.remove(&(place, identity)), Some(at));
            received += 1;
        }
    }
    let end = 20_000_000_000;
    assert!(under_way.values().all(|&at| at > end) && !under_way.is_empty(), "{under_way:?}");
    assert!(received > 3000, "{received}");
}

/// A second of delay leaves half of a run of two seconds: of 1500 packets that a link begins to send,
/// 750 have been received at the end.
#[test]
fn nothing_is_received_after_the_end() {
    let scenario = r#"
        duration = "2s"
        warmup = "0s"
        [topology]
        kind = "dumbbell"
        rate = "9Mbit"
        delay = "1s"
        queue = { kind = "droptail", limit = "100p" }
        [[traffic]]
        name = "cbr"
        kind = "cbr"
        rate = "6Mbit"
        size = "1000B"
        start = "100us"
        access_rate = "none"
        [record]
        packets = { links = ["bottleneck"] }
    "#;
    let recording = record(scenario, 1);
    let packets = table(&recording, "packets");
    let times = |event: &str| -> Vec<u128> {
        let of = rows(packets).into_iter().filter(|(_, e, ..)| e == event);
        of.map(|(at, ..)| at).collect()
    };
    assert_eq!((times("dequeue").len(), times("receive").len()), (1500, 750));
    assert!(times("receive").iter().all(|&at| at <= 2_000_000_000));
}

/// A packet's number is the same whatever else is recorded: fewer places, a part of the time, fewer
/// flows.
#[test]
fn numbers_do_not_depend_on_what_is_recorded() {
    let all = rows(table(&record(&scenario(ALL), 3), "packets"));
    for (choice, keep) in [
        (
            r#"{ links = ["bottleneck"] }"#,
            &(|row: &(u128, u128, &str)| row.2 == "bottleneck") as &dyn Fn(&(u128, u128, &str)) -> bool,
        ),
        (r#"{ flows = ["ecn", "plain", "udp"], from = "5s", until = "9s" }"#, &|row| {
            (5_000_000_000..=9_000_000_000).contains(&row.0)
        }),
        (r#"{ flows = [{ class = "plain", flows = [1] }, "udp"] }"#, &|row| row.1 == 7 || row.1 == 12),
    ] {
        let some = rows(table(&record(&scenario(&format!("packets = {choice}")), 3), "packets"));
        let expected: Vec<_> =
            all.iter().filter(|(at, _, place, of, ..)| keep(&(*at, of.0, place))).cloned().collect();
        assert!(some.len() > 500 && some == expected, "{choice}: {} rows", some.len());
    }
}

/// BLUE drops packets from the middle of its queue: they are the ones that do not leave it.
#[test]
fn a_random_victim_is_the_packet_that_does_not_leave() {
    let scenario = r#"
        duration = "5s"
        warmup = "0s"
        [topology]
        kind = "dumbbell"
        rate = "1Mbit"
        delay = "10ms"
        queue = { kind = "blue", limit = "20p", victim = "random" }
        [[traffic]]
        name = "cbr"
        kind = "cbr"
        rate = "1.5Mbit"
        size = "500B"
        rtt = "50ms"
        [record]
        packets = { links = ["bottleneck"] }
    "#;
    let recording = record(scenario, 1);
    let numbers = |event: &str| -> Vec<u128> {
        let rows = rows(table(&recording, "packets")).into_iter().filter(|(_, e, ..)| e == event);
        rows.map(|(.., of, _, _)| of.2).collect()
    };
    let [enqueued, dequeued, dropped] = ["enqueue", "dequeue", "drop"].map(numbers);
    assert!(enqueued.iter().copied().eq(0..enqueued.len() as u128));
    assert!(dequeued.is_sorted() && dropped.iter().all(|number| dequeued.binary_search(number).is_err()));
    // A quarter of the packets do not fit: most victims are older than the arrival.
    assert!(dropped.len() > 100 && !dropped.is_sorted(), "{} drops", dropped.len());
    let waiting = summary(&recording, "bottleneck", "*", "final_in_system_packets");
    assert!((waiting - 1..=waiting).contains(&((enqueued.len() - dequeued.len() - dropped.len()) as u128)));
}
