//! One discipline in two hosts: the router and the simulator receive the same packets at the same
//! instants, and produce the same tables, cell by cell. The tables contain arrivals, drops and
//! marks by reason and class, exact integrals of the backlog, histograms of queueing delays, and
//! samples of queues and laws.
mod support;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use aqmlab_live::router::{FlowBooks, FlowRecord, FrameAtPort, Router, RouterRecord};
use aqmlab_live::{End, HostId};
use aqmlab_network::FlowPath;
use aqmlab_qdisc::{Cause, Ecn, Observer, Registry, registry};
use aqmlab_recording::capture::packet_id;
use aqmlab_recording::{ColumnData, Place, Recording, Table};
use aqmlab_scenario::{
    DatagramSource, Files, FlowChoice, FlowSource, PacketChoice, PacketEvent, Plan, QueueCount, QueueStop,
    Reference, References, parse_within,
};
use aqmlab_sim::{Control, run};
use aqmlab_traffic::packmime::CloudConnection;
use aqmlab_traffic::{Content, Identity, Population, Woken};
use aqmlab_units::{Instant, Span};
use support::{
    Counted, Segment, as_tcp, datagram, flags_of, frame_budget, plan, segment as tcp_segment, with_dscp,
};

/// `CLASS` stands for the name of the first traffic class. Which flows share a bin or a queue depends on their
/// addresses, which differ between the hosts. So SFB is not among them, SFQ has many hashes, and FQ-PIE a queue per
/// flow.
const DISCIPLINES: [&str; 28] = [
    r#"kind = "droptail", limit = "30p""#,
    r#"kind = "red", limit = "60p", min_th = "5p", max_th = "25p", max_p = 0.1"#,
    r#"kind = "pi", limit = "60p", q_ref = "10p""#,
    r#"kind = "pie", limit = "60p", target = "5ms", max_burst = "20ms", mark_ecnth = 0.9"#,
    r#"kind = "rem", limit = "60p""#,
    r#"kind = "blue", limit = "60p""#,
    r#"kind = "ared", limit = "60p""#,
    r#"kind = "scred", limit = "60p""#,
    r#"kind = "fred", limit = "60p""#,
    r#"kind = "redpd", limit = "60p""#,
    r#"kind = "sfq", limit = "60p", divisor = 65536, redflowlimit = "60kB", min_th = "2kB", max_th = "6kB", burst = 5"#,
    r#"kind = "fq", limit = "60p", flow_limit = 20, maxrate = "2Mbit", ce_threshold = "1ms""#,
    r#"kind = "codel", limit = "60p""#,
    r#"kind = "fq_codel", limit = "60p", target = "1ms", interval = "20ms""#,
    r#"kind = "fq_pie", limit = "60p", queues = "perfect", target = "2ms", max_burst = "5ms", mark_ecnth = 0.9"#,
    r#"kind = "gred", average = "priority", max_p = 0.1, class = [
        { name = "gold", traffic = ["CLASS"], limit = "40p", min_th = "5p", max_th = "25p" },
        { name = "rest", limit = "30p", min_th = "8p", max_th = "20p" }]"#,
    r#"kind = "choke", limit = "60p", min_th = "5p", max_th = "25p", max_p = 0.1"#,
    r#"kind = "avq", limit = "60p""#,
    r#"kind = "cobalt", limit = "60p", target = "1ms", interval = "20ms""#,
    r#"kind = "cake", bandwidth = "6Mbit", memory_limit = "60kB", isolation = "flows", tins = "diffserv4", ack_filter = "aggressive""#,
    r#"kind = "pi2", limit = "60p", target = "5ms""#,
    r#"kind = "dualpi2", limit = "60p", target = "5ms", classifier = "any_ect""#,
    r#"kind = "classes", class = [
        { name = "gold", traffic = ["CLASS"], weight = 2, queue = { kind = "red", limit = "40p", min_th = "3p" } },
        { name = "rest", queue = { kind = "codel", limit = "30p" } }]"#,
    r#"kind = "policer", rate = "6Mbit", burst = "9kB", queue = { kind = "red", limit = "60p", min_th = "3p" }"#,
    r#"kind = "spare", below = "20kB", queue = { kind = "red", limit = "60p", min_th = "3p" }"#,
    r#"kind = "tbf", preset = "linux", rate = "6Mbit", burst = "9kB", queue = { kind = "red", limit = "60p", min_th = "3p" }"#,
    r#"kind = "htb", class = [
        { name = "all", rate = "6Mbit" },
        { name = "gold", parent = "all", traffic = ["CLASS"], rate = "2Mbit", ceil = "6Mbit", queue = { kind = "red", limit = "40p", min_th = "3p" } },
        { name = "rest", parent = "all", rate = "4Mbit", ceil = "5Mbit", queue = { kind = "codel", limit = "30p" } }]"#,
    NESTED,
];

/// A policer that re-marks packets, in front of classes by code point, one of which is itself divided into
/// classes by traffic.
const NESTED: &str = r#"kind = "policer", rate = "2Mbit", burst = "20kB", exceed = "remark", dscp = "AF12", queue = {
    kind = "classes", scheduler = "wrr", class = [
        { name = "out", dscp = ["AF12"], queue = { kind = "red", limit = "30p", min_th = "3p" } },
        { name = "in", weight = 3, queue = { kind = "classes", scheduler = "strict", class = [
            { name = "first", traffic = ["CLASS"], queue = { kind = "blue", limit = "30p" } },
            { name = "rest", queue = { kind = "red", limit = "30p", min_th = "3p" } }] } }] }"#;

/// Returns whether the queue contains inner queues.
fn is_nested(queue: &str) -> bool {
    queue.contains("queue = {")
}

/// Returns the same queue, but with ECN.
fn with_ecn(queue: &str) -> String {
    if is_nested(queue) {
        ["red", "blue", "codel"].iter().fold(queue.to_owned(), |queue, kind| {
            queue.replace(&format!("kind = \"{kind}\""), &format!("kind = \"{kind}\", ecn = true"))
        })
    } else if ["dualpi2", "cake", "fq"].iter().any(|kind| queue.starts_with(&format!("kind = \"{kind}\""))) {
        queue.to_owned() // always marks
    } else {
        format!("{queue}, ecn = true")
    }
}

#[test]
fn no_discipline_is_left_out() {
    for info in registry::catalogue() {
        let name = format!("kind = \"{}\"", info.name);
        let count = DISCIPLINES.iter().filter(|queue| queue.starts_with(&name)).count();
        let expected = match info.name {
            "sfb" => 0,
            "policer" => 2,
            _ => 1,
        };
        assert_eq!(count, expected, "{name}");
    }
}

fn same(kind: &str, simulated: &Table, routed: &Table) {
    assert!(simulated.rows() > 0 || simulated.name == "law", "{kind}: {} says something", simulated.name);
    if simulated.digest() == routed.digest() {
        return;
    }
    assert_eq!(simulated.rows(), routed.rows(), "{kind}: rows of {}", simulated.name);
    for (a, b) in simulated.columns.iter().zip(&routed.columns) {
        assert_eq!(format!("{:?}", a.data), format!("{:?}", b.data), "{kind}: {}.{}", a.name, b.name);
    }
    panic!("{kind}: the digests of {} differ", simulated.name);
}

/// Compares all tables whose data come only from ports.
fn compare_ports(kind: &str, simulated: &Recording, routed: &RouterRecord) {
    let ports = &routed.ports;
    for routed in [&ports.summary, &ports.kinds, &ports.histograms, &ports.queues, &ports.law] {
        same(kind, simulated.table(routed.name).unwrap(), routed);
    }
}

fn numbers(table: &Table, column: &str) -> Vec<u64> {
    match table.column(column) {
        Some(ColumnData::U64(values)) => values.clone(),
        other => panic!("{column} is {other:?}"),
    }
}

fn names(table: &Table, column: &str) -> Vec<String> {
    match table.column(column) {
        Some(ColumnData::Str(values)) => values.iter().map(str::to_owned).collect(),
        other => panic!("{column} is {other:?}"),
    }
}

// --- the whole network: sources, own links, delay stages, queues in a row ------------------------------------------

/// The sources of a plan, which send as the router's hosts would: in chronological order and, at any one
/// instant, in the order of their numbers.
struct Senders {
    /// For each flow: its next instant, its number in the run, its host, its index in the class,
    /// and its source once it has started.
    flows: Vec<(Instant, u32, HostId, u16, Option<DatagramSource>)>,
}

impl Senders {
    fn of(plan: &Plan, seed: u64) -> Self {
        let (mut flows, mut first) = (Vec::new(), 0);
        for (class, of) in plan.classes.iter().enumerate() {
            let host = HostId { class, side: End::Client };
            for (start, index) in of.starts(seed) {
                flows.push((start, first + index, host, index as u16, None));
            }
            first += of.count as u32;
        }
        Senders { flows }
    }

    /// Calls `each` for every packet up to `end`, in order.
    fn send(mut self, plan: &Plan, seed: u64, end: Instant, mut each: impl FnMut(Instant, HostId, Vec<u8>)) {
        loop {
            let next = self.flows.iter_mut().min_by_key(|(at, number, ..)| (*at, *number)).unwrap();
            let (at, _, host, index, source) = next;
            if *at > end {
                return;
            }
            match source {
                None => {
                    let FlowSource::Packets(started) = plan.classes[host.class].source(
                        Identity::first_of(u32::from(*index)),
                        Content::Drawn,
                        *at,
                        seed,
                    ) else {
                        panic!("only datagrams here")
                    };
                    *at = started.next_at().unwrap_or(Instant::FAR_FUTURE);
                    *source = Some(started);
                }
                Some(source) => {
                    let (size, ecn) = source.emit();
                    let octets = datagram(*host, Some(*index), ecn, size.get() as usize);
                    each(*at, *host, with_dscp(octets, plan.classes[host.class].dscp));
                    *at = source.next_at().unwrap_or(Instant::FAR_FUTURE);
                }
            }
        }
    }
}

fn route(plan: &Plan, seed: u64) -> RouterRecord {
    let mut router = Router::new(plan, seed, &Registry::builtin(), &frame_budget(plan, 20_000)).unwrap();
    let (mut out, end) = (Counted::default(), Instant::ZERO + plan.stop.at);
    Senders::of(plan, seed).send(plan, seed, end, |at, host, octets| {
        router.accept(at, host, &octets, &mut out).unwrap();
    });
    router.advance(end, &mut out);
    router.finish().unwrap()
}

fn network(queue: &str, more: &str) -> Plan {
    network_at(["\"4Mbit\"", "\"3.7Mbit\""], queue, more)
}

/// Returns the network whose two links have these rates.
fn network_at([rate, second]: [&str; 2], queue: &str, more: &str) -> Plan {
    let queue = queue.replace("CLASS", "long");
    let text = format!(
        r#"
        duration = "12s"
        warmup = "3s"
        [topology]
        kind = "parking_lot"
        hops = 2
        rate = {rate}
        delay = "5ms"
        queue = {{ {queue} }}
        [topology.hop2]
        rate = {second}
        [record]
        queues = "7ms"
        [[traffic]]
        name = "long"
        kind = "poisson"
        count = 6
        rate = "400kbit"
        size = "700B"
        loss = 0.01
        start = {{ uniform = ["0s", "1s"] }}
        rtt = {{ uniform = ["50ms", "150ms"] }}
        [[traffic]]
        name = "local"
        kind = "cbr"
        from = "r0"
        to = "r1"
        count = 5
        rate = "300kbit"
        size = "1000B"
        rtt = "60ms"
        [[traffic]]
        name = "back"
        kind = "poisson"
        from = "r2"
        to = "r0"
        count = 4
        rate = "1.1Mbit"
        size = "1200B"
        access_rate = "none"
        {more}
        "#
    );
    parse_within(&text, "test.toml", Default::default(), &Chances)
        .unwrap_or_else(|e| panic!("{e}"))
        .arms
        .remove(0)
}

/// A column of `flows`, and the router's count for it.
type Column = (&'static str, fn(&FlowRecord) -> u64);

fn compare_network(queue: &str, more: &str, seed: u64) -> RouterRecord {
    compare_plan(&network(queue, more), queue, more, seed)
}

fn compare_plan(plan: &Plan, queue: &str, more: &str, seed: u64) -> RouterRecord {
    let simulated = run(plan, seed, &Control::default()).unwrap();
    let routed = route(plan, seed);
    compare_ports(queue, &simulated, &routed);
    for table in &routed.changing {
        same(queue, simulated.table(table.name).unwrap(), table);
    }
    let flows = simulated.table("flows").unwrap();
    let columns: [Column; 7] = [
        ("sent_segments", |f| f.all[0].sent.packets),
        ("sent_bytes", |f| f.all[0].sent.bytes),
        ("received_bytes", |f| f.all[0].received_bytes),
        ("delivered_bytes", |f| f.all[0].delivered.bytes),
        ("measured_received_bytes", |f| f.measured[0].received_bytes),
        ("measured_delivered_bytes", |f| f.measured[0].delivered.bytes),
        ("measured_sent_bytes", |f| f.measured[0].sent.bytes),
    ];
    for (column, of) in columns {
        let routed: Vec<u64> = routed.flows.iter().map(of).collect();
        assert_eq!(numbers(flows, column), routed, "{queue}: {column}");
    }
    assert!(numbers(simulated.table("run").unwrap(), "dropped_packets")[0] > 100, "{queue}: queues are full");
    if !more.contains("entry") {
        same(queue, simulated.table("run").unwrap(), &routed.run);
        let lost: Vec<u64> = routed.flows.iter().map(|f| f.all[0].lost).collect();
        assert_eq!(numbers(flows, "lost_outside_queues_packets"), lost, "{queue}");
    }
    routed
}

#[test]
fn datagrams_through_two_queues_in_a_row_meet_the_same_fate() {
    for (seed, queue) in (7..).zip(DISCIPLINES) {
        compare_network(queue, "", seed);
    }
}

/// Rates of two links that change, by each clock.
const CHANGING: [[&str; 2]; 8] = [
    // Steps at the instants of packets, a standstill, and a fall to a tenth.
    [
        r#"[["0s", "4Mbit"], ["1500ms", "0bit"], ["2100ms", "400kbit"], ["5s", "7777777bit"], ["9s", "3Mbit"]]"#,
        r#"[["0s", "0bit"], ["1s", "3.7Mbit"], ["11999ms", "0bit"]]"#,
    ],
    [
        r#"{ kind = "outages", rate = "5Mbit", up = { exponential = "1s" }, down = { exponential = "200ms" } }"#,
        r#"{ kind = "markov", levels = ["2Mbit", "3Mbit", "6Mbit"], stay = "300ms" }"#,
    ],
    [
        r#"{ kind = "fading", mean = "4Mbit", deviation_db = 4, coherence = "500ms", step = "20ms" }"#,
        r#"{ kind = "redrawn", level = { uniform = ["2Mbit", "6Mbit"] }, every = "700ms", first = "300ms" }"#,
    ],
    [r#"{ kind = "stalls", rate = "4.5Mbit", every = "2s", lasts = "180ms" }"#, r#""3.7Mbit""#],
    // The same by chances; both links have chances at the same instants, and one has several at once.
    [
        r#"{ kind = "steps", steps = [["0s", "4Mbit"], ["2s", "0bit"], ["2.5s", "6Mbit"]], clock = "chances", chance = "1500B" }"#,
        r#"{ kind = "steps", steps = [["0s", "4Mbit"], ["2s", "6Mbit"]], clock = "chances", chance = "1500B" }"#,
    ],
    [
        r#"{ kind = "markov", levels = ["2Mbit", "8Mbit"], stay = "400ms", clock = "chances", chance = "600B" }"#,
        r#"{ kind = "fading", mean = "4Mbit", deviation_db = 3, coherence = "1s", step = "50ms" }"#,
    ],
    [
        r#"{ kind = "mahimahi", file = "chances" }"#,
        r#"{ kind = "mahimahi", file = "chances", clock = "serving", bin = "40ms" }"#,
    ],
    [r#""4Mbit""#, r#"{ kind = "mahimahi", file = "chances", chance = "2000B" }"#],
];

/// Chances of about 4 Mbit/s: in every 10 ms, two at one instant, one 3 ms later, and another one in every third.
struct Chances;

impl Files for Chances {
    fn read(&self, _: &str) -> std::io::Result<Vec<u8>> {
        let ten = |n: u64| {
            let begin = 10 * n + 1;
            let more = if n.is_multiple_of(3) { format!("{}\n", begin + 7) } else { String::new() };
            format!("{begin}\n{begin}\n{}\n{more}", begin + 3)
        };
        Ok((0..70).map(ten).collect::<String>().into())
    }
}

#[test]
fn links_whose_rate_changes_send_alike() {
    // A law, a shaper, flows with queues of their own, and classes that have shapers.
    let queues = ["red", "codel", "fq_pie", "tbf", "htb"].map(|kind| {
        let begin = format!("kind = \"{kind}\"");
        *DISCIPLINES.iter().find(|queue| queue.starts_with(&begin)).expect("it is among them")
    });
    for (seed, (rates, queue)) in
        (40..).zip(CHANGING.iter().flat_map(|rates| queues.map(|queue| (rates, queue))))
    {
        let plan = network_at(*rates, queue, "");
        let routed = compare_plan(&plan, queue, "", seed);
        let names: Vec<&str> = routed.changing.iter().map(|table| table.name).collect();
        assert_eq!(names, ["links", "capacity"]);
        let changing = routed.capacities.iter().flatten().count();
        assert_eq!(routed.changing[0].rows(), changing);
        assert!(routed.changing[1].rows() > 1000 * changing);
    }
}

/// Controllers hear of the same delays at the same instants, so shapers have the same rates at all times.
#[test]
fn shapers_are_adjusted_alike() {
    let reflectors =
        r#"autorate = { reflector = "long", min = "500kbit", max = "9Mbit", delay_threshold = "15ms","#;
    let shapers = [
        r#"kind = "cake", bandwidth = "3Mbit", memory_limit = "60kB", isolation = "flows""#,
        r#"kind = "tbf", preset = "linux", rate = "3Mbit", burst = "9kB", queue = { kind = "red", limit = "60p", min_th = "3p" }"#,
        r#"kind = "htb", class = [
            { name = "all", rate = "3Mbit" },
            { name = "gold", parent = "all", traffic = ["long"], rate = "1Mbit", ceil = "3Mbit", queue = { kind = "red", limit = "40p", min_th = "3p" } },
            { name = "rest", parent = "all", rate = "2Mbit", ceil = "3Mbit", queue = { kind = "codel", limit = "30p" } }]"#,
    ];
    for (seed, (shaper, measures)) in
        (60..).zip(shapers.iter().flat_map(|shaper| ["one_way", "half_rtt"].map(|way| (shaper, way))))
    {
        // The braces of the queue are closed by the network.
        let queue = format!("{shaper} }}\n{reflectors} measures = \"{measures}\"");
        let rates = CHANGING[seed as usize % 4];
        let plan = network_at(rates, &queue, "");
        let routed = compare_plan(&plan, &queue, "", seed);
        let table =
            routed.changing.iter().find(|table| table.name == "autorate").expect("there are controllers");
        let actions = names(table, "action");
        for wanted in ["increase", "decrease", "return", "hold"] {
            assert!(actions.iter().any(|action| action == wanted), "{queue}: no {wanted}");
        }
    }
}

/// A stop condition ends the measured interval between samples, and the link goes on during the drain.
#[test]
fn so_they_do_until_a_queue_ends_the_run() {
    let chances = r#"{ kind = "steps", steps = [["0s", "4Mbit"], ["4s", "1Mbit"]], clock = "chances", chance = "1500B" }"#;
    for rates in [CHANGING[0], CHANGING[5], [chances, chances]] {
        let mut plan = network_at(rates, DISCIPLINES[0], "");
        let link = plan.links.iter().position(|link| link.name == "hop1").unwrap();
        let names: Vec<&str> = plan.links.iter().map(|link| link.name.as_str()).collect();
        let link = Reference::new(link, &names);
        plan.stop.condition = Some(QueueStop { link, quantity: QueueCount::Drops, count: 100 });
        let (simulated, routed) = (run(&plan, 5, &Control::default()).unwrap(), route(&plan, 5));
        assert_eq!((routed.t1, routed.stopped_by), (simulated.manifest.t1, simulated.manifest.stopped_by));
        assert!(routed.t1 < Instant::ZERO + plan.stop.at, "{rates:?}");
        for table in &routed.changing {
            same("droptail", simulated.table(table.name).unwrap(), table);
        }
    }
}

#[test]
fn so_they_do_behind_delay_stages_and_losses() {
    let exit = r#"
        [[delay]]
        class = "long"
        delay = { uniform = ["0ms", "30ms"] }
        jitter = "3ms"
        direction = "to_receiver"
        [[delay]]
        class = "local"
        at = "exit"
        loss = 0.1
        rate = "350kbit"
        delay = "1ms"
        "#;
    let routed = compare_network(DISCIPLINES[1], exit, 3);
    assert!(routed.flows.iter().map(|f| f.all[0].lost).sum::<u64>() > 100);
    // If both hosts are attached directly to routers, a stage has no access links next to it; if
    // only one host is, there are access links at the other end.
    let bare = compare_network(
        DISCIPLINES[1],
        "[[delay]]\nclass = \"back\"\nat = \"exit\"\ndelay = \"9ms\"\nloss = 0.1\n",
        5,
    );
    assert!(bare.flows.iter().map(|f| f.all[0].lost).sum::<u64>() > 100);
    for at in ["sender", "receiver"] {
        let more = format!(
            "[[traffic]]\nname = \"half\"\nkind = \"cbr\"\nrandom_gaps = true\nfrom = \"r0\"\nto = \"r2\"\nrate = \"200kbit\"\n\
             count = 3\necn = \"ect0\"\nrtt = {{ uniform = [\"70ms\", \"90ms\"] }}\naccess_at = \"{at}\"\n"
        );
        compare_network(DISCIPLINES[2], &more, 6);
    }
    // Stages in routers: one that only delays packets, followed by one that also loses some.
    let routers = compare_network(
        DISCIPLINES[3],
        "[[delay]]\nat = \"r1\"\ndelay = { uniform = [\"0ms\", \"30ms\"] }\njitter = \"3ms\"\n\
         [[delay]]\nclass = \"long\"\nat = \"r2\"\nloss = 0.1\ndelay = \"2ms\"\n[[delay]]\nat = \"r0\"\ndelay = \"1ms\"\n",
        9,
    );
    assert!(routers.flows.iter().map(|f| f.all[0].lost).sum::<u64>() > 100);
    // If a stage behind an access link loses a packet, the simulator records the loss when the packet is
    // sent, and the router when the packet arrives at the stage. Between these two instants, the simulator's
    // books differ from the router's, except for those of the queues.
    let entry = "[[delay]]\nclass = \"long\"\nloss = 0.05 # at the entry\n";
    compare_network(DISCIPLINES[0], entry, 4);
}

/// In the router and in the simulator, packets arrive with the code points of their classes, and a
/// policer re-marks excess packets.
#[test]
fn code_points_lead_to_the_same_queues() {
    let queue = r#"kind = "policer", rate = "1.5Mbit", burst = "20kB", exceed = "remark", dscp = "AF12", queue = {
        kind = "classes", scheduler = "strict", class = [
            { name = "in", dscp = ["AF11"], queue = { kind = "droptail", limit = "40p" } },
            { name = "out", dscp = ["AF12"], queue = { kind = "droptail", limit = "20p" } },
            { name = "rest", queue = { kind = "codel" } }] }"#;
    let more = r#"
        [[traffic]]
        name = "assured"
        kind = "cbr"
        from = "r0"
        to = "r2"
        rate = "1.2Mbit"
        size = "900B"
        rtt = "80ms"
        dscp = "AF11"
        "#;
    let routed = compare_network(queue, more, 17);
    let summary = &routed.ports.summary;
    let arrived = |queue: &str, class: &str| {
        let (queues, classes) = (names(summary, "queue"), names(summary, "class"));
        let row = (0..summary.rows()).find(|&i| queues[i] == queue && classes[i] == class).unwrap();
        numbers(summary, "arrivals_packets")[row]
    };
    assert!(arrived("hop1/in", "assured") > 500 && arrived("hop1/in", "long") == 0);
    assert!(arrived("hop1/out", "assured") > 10, "some are re-marked");
    assert!(arrived("hop1/out", "long") > 10 && arrived("hop1/rest", "long") > 100);
    assert_eq!(arrived("hop1/rest", "assured"), 0);
    let sum: u64 = ["in", "out", "rest"].iter().map(|inner| arrived(&format!("hop1/{inner}"), "*")).sum();
    assert_eq!(sum, arrived("hop1", "*"));
}

// --- connections: the router's queues receive what the simulated ones received -----------------------------

fn connections(queue: &str) -> Plan {
    let queue = queue.replace("CLASS", "ftp");
    plan(&format!(
        r#"
        duration = "15s"
        warmup = "3s"
        [topology]
        kind = "dumbbell"
        rate = "4Mbit"
        delay = "10ms"
        queue = {{ {queue} }}
        [record]
        queues = "10ms"
        [[traffic]]
        name = "ftp"
        kind = "bulk"
        count = 8
        rtt = {{ uniform = ["40ms", "120ms"] }}
        tcp = {{ profile = "rfc", ecn = true }}
        [[traffic]]
        name = "deaf"
        kind = "bulk"
        count = 2
        rtt = "80ms"
        tcp = {{ profile = "rfc" }}
        [[traffic]]
        name = "udp"
        kind = "poisson"
        rate = "400kbit"
        size = "500B"
        rtt = "50ms"
        "#
    ))
}

/// Returns every packet that reached a queue of the simulator, in order, with its time, its host (as if
/// nothing lay between host and queue) and its octets.
fn arrivals(plan: &Plan, simulated: &Recording) -> Vec<(Instant, HostId, Vec<u8>)> {
    let packets = simulated.table("packets").unwrap();
    let (times, flows, sizes) =
        (numbers(packets, "t_ns"), numbers(packets, "flow"), numbers(packets, "wire_bytes"));
    let (ways, fields, flags) = (names(packets, "toward"), names(packets, "ecn"), names(packets, "flags"));
    let Some(ColumnData::NullableU64(payloads)) = packets.column("payload_bytes") else {
        panic!("payload_bytes may be null")
    };
    let class_of = |mut flow: u64| {
        plan.classes.iter().position(|class| match flow.checked_sub(class.count) {
            Some(rest) => {
                flow = rest;
                false
            }
            None => true,
        })
    };
    let one = |i: usize| {
        let class = class_of(flows[i]).unwrap();
        let host = HostId { class, side: if ways[i] == "receiver" { End::Client } else { End::Server } };
        let before: u64 = plan.classes[..class].iter().map(|c| c.count).sum();
        let ecn = match fields[i].as_str() {
            "not-ECT" => Ecn::NotEct,
            "ECT(0)" => Ecn::Ect0,
            other => panic!("{other} on arrival at the first queue"),
        };
        let octets = datagram(host, Some((flows[i] - before) as u16), ecn, sizes[i] as usize);
        let octets = match payloads[i] {
            Some(payload) => as_tcp(octets, payload as usize, flags_of(&flags[i])),
            None => octets,
        };
        (Instant::from_ns(times[i]), host, octets)
    };
    let events = names(packets, "event");
    (0..packets.rows()).filter(|&i| events[i] == "enqueue").map(one).collect()
}

/// An event at a port: the time, the link, the word for the event, and the packet's identification.
type Identified = (u64, String, &'static str, u64);

/// Collects the packets that enter and leave the links of these names.
struct Ports(Vec<String>, Arc<Mutex<Vec<Identified>>>);

impl Ports {
    fn note(&self, now: Instant, event: &'static str, frame: &FrameAtPort<'_>) {
        self.1.lock().unwrap().push((now.as_ns(), self.0[frame.link].clone(), event, frame.id));
    }
}

impl Observer<FrameAtPort<'_>> for Ports {
    fn enqueued(&mut self, now: Instant, frame: &FrameAtPort<'_>) {
        self.note(now, "enqueue", frame);
    }
    fn dequeued(&mut self, now: Instant, frame: &FrameAtPort<'_>) {
        self.note(now, "dequeue", frame);
    }
    fn dropped(&mut self, now: Instant, frame: FrameAtPort<'_>, _at: Cause) {
        self.note(now, "drop", &frame);
    }
    fn marked(&mut self, _now: Instant, _frame: &FrameAtPort<'_>, _at: Cause) {}
}

/// Returns the same events as the simulator has recorded them.
fn identified(simulated: &Recording) -> Vec<Identified> {
    let packets = simulated.table("packets").unwrap();
    let [times, flows, counts] = ["t_ns", "flow", "number"].map(|column| numbers(packets, column));
    let [events, places, ways] = ["event", "place", "toward"].map(|column| names(packets, column));
    let one = |i: usize| {
        let event = ["enqueue", "dequeue", "drop"].into_iter().find(|event| *event == events[i])?;
        let id = packet_id(flows[i] as u32, ways[i] == "sender", counts[i]);
        Some((times[i], places[i].clone(), event, id))
    };
    (0..packets.rows()).filter_map(one).collect()
}

#[test]
fn packets_of_ecn_connections_are_marked_and_dropped_alike() {
    for (seed, queue) in (11..).zip(DISCIPLINES) {
        let marks = !queue.contains("droptail");
        let queue = if marks { with_ecn(queue) } else { queue.to_owned() };
        let mut plan = connections(&queue);
        let names: Vec<&str> = plan.links.iter().map(|link| link.name.as_str()).collect();
        plan.record.packets = Some(PacketChoice {
            links: References::new((0..names.len()).collect(), &names),
            flows: None,
            events: vec![PacketEvent::Enqueue, PacketEvent::Dequeue, PacketEvent::Drop],
            from: Span::ZERO,
            until: None,
        });
        let simulated = run(&plan, seed, &Control::default()).unwrap();
        let arrivals = arrivals(&plan, &simulated);
        assert!(arrivals.len() > 5_000, "{queue}: {}", arrivals.len());
        // The router's network is the same, but without the elements in front of the queues.
        plan.classes.iter_mut().for_each(|class| class.access = None);
        let mut router =
            Router::new(&plan, seed, &Registry::builtin(), &frame_budget(&plan, 20_000)).unwrap();
        let (mut out, observed) = (Counted::default(), Arc::default());
        let links = plan.links.iter().map(|link| link.name.clone()).collect();
        router.observe_ports(Box::new(Ports(links, Arc::clone(&observed))));
        for (at, host, octets) in &arrivals {
            router.accept(*at, *host, octets, &mut out).unwrap();
        }
        router.advance(Instant::ZERO + plan.stop.at, &mut out);
        let routed = router.finish().unwrap();
        compare_ports(&queue, &simulated, &routed);
        // Each packet has the same identification in both hosts, at each event.
        let (mut here, mut there) = (observed.lock().unwrap().clone(), identified(&simulated));
        here.sort_unstable();
        there.sort_unstable();
        assert!(here == there, "{queue}: {} and {} events", here.len(), there.len());
        let marked: u64 = ["marked_early_packets", "marked_forced_packets"]
            .iter()
            .map(|column| numbers(&routed.ports.summary, column)[0])
            .sum();
        assert_eq!(marked > 0, marks, "{queue}: {marked} marks");
        let marked_on_the_way_out: u64 = routed.hosts.iter().map(|host| host.left_marked).sum();
        assert_eq!(marked_on_the_way_out > 0, marks);
    }
}

// --- connections that open and close: users, arrivals ------------------------------------------------------

/// Returns the settings of a class that makes requests over access links that lose packets;
/// `population` sets the number of users or the rate of arrivals.
fn requests(population: &str) -> String {
    format!(
        r#"
        kind = "requests"
        {population}
        request = "400B"
        response = {{ pareto = "12kB", shape = 1.2, max = "200kB" }}
        exchanges = 3
        pause = "20ms"
        rtt = {{ uniform = ["30ms", "90ms"] }}
        loss = 0.005
        "#
    )
}

fn web(traffic: &str, more: &str) -> Plan {
    let mut plan = plan(&format!(
        r#"
        duration = "25s"
        warmup = "5s"
        [topology]
        kind = "dumbbell"
        rate = "4Mbit"
        delay = "10ms"
        queue = {{ kind = "red", limit = "60p", min_th = "5p", max_th = "25p", max_p = 0.1, ecn = true }}
        [record]
        queues = "10ms"
        [[traffic]]
        name = "udp"
        kind = "poisson"
        from = "right"
        to = "left"
        rate = "400kbit"
        size = "500B"
        rtt = "50ms"
        [[traffic]]
        name = "web"
        from = "right"
        to = "left"
        {traffic}
        tcp = {{ profile = "rfc", ecn = true }}
        {more}
        "#
    ));
    // The recording contains each request, and the packets that the hosts of all connections send.
    // Connections that open during the run are numbered after all flows.
    plan.record.requests.each = true;
    plan.record.limit = Some(10_000_000);
    let names: Vec<&str> = plan.classes.iter().map(|class| class.name.as_str()).collect();
    let all = |class, indices| FlowChoice { class: Reference::new(class, &names), indices };
    plan.record.packets = Some(PacketChoice {
        links: References::new(Vec::new(), &names),
        flows: Some(vec![all(0, None), all(1, Some((0..100_000).collect()))]),
        events: vec![PacketEvent::Send],
        from: Span::ZERO,
        until: None,
    });
    plan
}

/// Returns the user and the serial number of each connection, in the order in which the connections opened.
fn opened(plan: &Plan, seed: u64) -> Vec<Identity> {
    // Requests during a warm-up would not be recorded.
    let simulated = run(&Plan { warmup: Span::ZERO, ..plan.clone() }, seed, &Control::default()).unwrap();
    let Place::Memory(batches) = &simulated.streamed[0].place else { panic!("rows are held in memory") };
    let opening = batches.iter().flat_map(|batch| {
        let column = |name| match batch.column(name) {
            Some(ColumnData::U64(values)) => values,
            other => panic!("`{name}` is {other:?}"),
        };
        let [opens, start, user, serial] = ["opens_connection", "start_ns", "user", "serial"].map(column);
        let of = |row: usize| Identity { user: user[row] as u32, serial: serial[row] as u32 };
        (0..batch.rows()).filter(|&row| opens[row] == 1).map(move |row| (start[row], of(row)))
    });
    let mut opened: Vec<(u64, Identity)> = opening.collect();
    opened.sort_unstable();
    opened.into_iter().map(|(_, of)| of).collect()
}

/// Returns the properties that a cloud gives its first connections, by serial number; none for other
/// populations.
fn carried(plan: &Plan, seed: u64, connections: usize) -> Vec<CloudConnection> {
    let mut population = plan.classes[1].population(seed);
    if !matches!(population, Population::Cloud(_)) {
        return Vec::new();
    }
    let mut wake = population.begin();
    let open = || {
        let Woken::Opens(opening) = population.on_wake(wake.take()?) else {
            unreachable!("a cloud only opens")
        };
        wake = opening.wake;
        opening.content.connection().cloned()
    };
    std::iter::from_fn(open).take(connections).collect()
}

/// A packet that a host sent in the simulator.
struct Sent {
    at: Instant,
    host: HostId,
    /// Index of the connection in the order of opening; `None` for datagrams.
    connection: Option<usize>,
    segment: Segment,
}

fn sent(plan: &Plan, simulated: &Recording) -> Vec<Sent> {
    let packets = simulated.table("packets").unwrap();
    let column = |name| numbers(packets, name);
    let (times, flows, sizes) = (column("t_ns"), column("flow"), column("wire_bytes"));
    let optional = |name| match packets.column(name) {
        Some(ColumnData::NullableU64(values)) => values.clone(),
        other => panic!("{name} is {other:?}"),
    };
    let (payloads, seqs) = (optional("payload_bytes"), optional("seq"));
    let (ways, fields, flags) = (names(packets, "toward"), names(packets, "ecn"), names(packets, "flags"));
    let all_flows: u64 = plan.classes.iter().map(|class| class.count).sum();
    let one = |i: usize| {
        let connection = flows[i].checked_sub(all_flows + 1).map(|number| number as usize);
        let side = if ways[i] == "receiver" { End::Client } else { End::Server };
        let segment = Segment {
            ecn: if fields[i] == "ECT(0)" { Ecn::Ect0 } else { Ecn::NotEct },
            len: sizes[i] as usize,
            payload: payloads[i].unwrap_or(0) as usize,
            seq: seqs[i].unwrap_or(0) as u32,
            flags: flags_of(&flags[i]),
        };
        let host = HostId { class: usize::from(connection.is_some()), side };
        Sent { at: Instant::from_ns(times[i]), host, connection, segment }
    };
    (0..packets.rows()).map(one).collect()
}

/// Passes the packets of the simulator's hosts through the router. Connections share `ports` client ports:
/// the next connection uses the port whose last packet was sent longest ago.
fn route_connections(plan: &Plan, seed: u64, packets: &[Sent], ports: u32) -> RouterRecord {
    let opened = opened(plan, seed);
    assert!(opened.len() > 3 * ports as usize, "{} connections use client ports repeatedly", opened.len());
    let carried = carried(plan, seed, opened.len());
    let mut last_of: Vec<usize> = vec![0; opened.len()];
    for (number, packet) in packets.iter().enumerate() {
        packet.connection.inspect(|&connection| last_of[connection] = number);
    }
    let mut router = Router::new(plan, seed, &Registry::builtin(), &frame_budget(plan, 20_000)).unwrap();
    let mut announcer = router.announcer();
    let (mut free, mut port_of) = ((0..ports).collect::<VecDeque<u32>>(), vec![None; opened.len()]);
    let mut out = Counted::default();
    for (number, packet) in packets.iter().enumerate() {
        let Sent { at, host, connection, segment } = *packet;
        let octets = match connection {
            None => datagram(host, Some(0), segment.ecn, segment.len),
            Some(connection) => {
                let port = *port_of[connection].get_or_insert_with(|| {
                    let (port, of) = (free.pop_front().expect("a free port"), opened[connection]);
                    let path = FlowPath::new(plan, 1, plan.propagation(1), Some(of), seed);
                    let path = path.carrying(carried.get(of.serial as usize));
                    announcer.announce(1, port, of.user, &path).unwrap();
                    port
                });
                if last_of[connection] == number {
                    free.push_back(port);
                }
                tcp_segment(host, port, segment)
            }
        };
        router.accept(at, host, &octets, &mut out).unwrap();
    }
    router.advance(Instant::ZERO + plan.stop.at, &mut out);
    router.finish().unwrap()
}

fn compare_connections(traffic: &str, ports: u32, more: &str) {
    let (plan, seed) = (web(traffic, more), 23);
    let simulated = run(&plan, seed, &Control::default()).unwrap();
    let routed = route_connections(&plan, seed, &sent(&plan, &simulated), ports);
    compare_ports(traffic, &simulated, &routed);
    same(traffic, simulated.table("run").unwrap(), &routed.run);
    let flows = simulated.table("flows").unwrap();
    let both = |of: fn(&FlowBooks) -> u64| {
        let sum = |books: [FlowBooks; 2]| books.iter().map(of).sum::<u64>();
        let records = routed.flows.iter();
        (records.clone().map(|f| sum(f.all)).collect(), records.map(|f| sum(f.measured)).collect())
    };
    let columns: [BothWays; 3] = [
        ("received_bytes", |books| books.received_bytes),
        ("ce_received", |books| books.delivered_ce),
        ("lost_outside_queues_packets", |books| books.lost),
    ];
    for (column, of) in columns {
        let (all, measured): (Vec<u64>, Vec<u64>) = both(of);
        assert_eq!(numbers(flows, column), all, "{traffic}: {column}");
        assert_eq!(numbers(flows, &format!("measured_{column}")), measured, "{traffic}: {column}");
        assert!(all.iter().sum::<u64>() > 10, "{column}: {all:?}");
    }
    let by_clients: Vec<u64> = routed.flows.iter().map(|f| f.all[1].received_bytes).collect();
    assert_eq!(numbers(flows, "received_by_client_bytes"), by_clients, "{traffic}");
}

/// A column of `flows` that counts both directions, and the router's counts for it.
type BothWays = (&'static str, fn(&FlowBooks) -> u64);

#[test]
fn connections_that_come_and_go_are_counted_with_their_users() {
    let exit = "[[delay]]\nclass = \"web\"\nat = \"exit\"\ndelay = { uniform = [\"0ms\", \"9ms\"] }\njitter = \"2ms\"\n";
    compare_connections(&requests("users = 20\nthink = { exponential = \"300ms\" }"), 60, exit);
    compare_connections(&requests("rate = \"12/s\""), 80, exit);
}

/// The routers apply the delays that a cloud draws for its clients and servers; one of the routers also loses
/// packets.
#[test]
fn so_are_connections_of_a_cloud_behind_delay_stages_in_routers() {
    let traffic = "kind = \"packmime\"\nrate = \"45/s\"\naccess_rate = \"none\"";
    let stages = "[[delay]]\nclass = \"web\"\nat = \"right\"\ndelay = \"client\"\n\
                  [[delay]]\nclass = \"web\"\nat = \"left\"\ndelay = \"server\"\nloss = 0.01\n\
                  [[delay]]\nclass = \"udp\"\nat = \"left\"\ndelay = { packmime = \"client\" }\n";
    compare_connections(traffic, 300, stages);
}
