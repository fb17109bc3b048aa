//! One discipline in two worlds: the router and the simulator get the same packets at the same instants, and leave the
//! same tables, cell by cell: arrivals, drops and marks by reason and class, exact integrals of the backlog, histograms of
//! queueing delays, samples of queues and laws.
mod support;

use aqmlab_live::router::{FlowRecord, Router, RouterRecord};
use aqmlab_live::{End, HostId};
use aqmlab_qdisc::{Ecn, Registry, registry};
use aqmlab_recording::{ColumnData, Recording, Table};
use aqmlab_scenario::{DatagramSource, FlowSource, PacketChoice, PacketEvent, Plan};
use aqmlab_sim::{Control, run};
use aqmlab_traffic::Identity;
use aqmlab_units::Instant;
use support::{Counted, datagram, frame_budget, plan, with_dscp};

/// `CLASS` stands for the first traffic class.
const DISCIPLINES: [&str; 13] = [
    r#"kind = "droptail", limit = "30p""#,
    r#"kind = "red", limit = "60p", min_th = "5p", max_th = "25p", max_p = 0.1"#,
    r#"kind = "pi", limit = "60p", q_ref = "10p""#,
    r#"kind = "rem", limit = "60p""#,
    r#"kind = "blue", limit = "60p""#,
    r#"kind = "ared", limit = "60p""#,
    r#"kind = "scred", limit = "60p""#,
    r#"kind = "fred", limit = "60p""#,
    r#"kind = "redpd", limit = "60p""#,
    r#"kind = "codel", limit = "60p""#,
    r#"kind = "classes", class = [
        { name = "gold", traffic = ["CLASS"], weight = 2, queue = { kind = "red", limit = "40p", min_th = "3p" } },
        { name = "rest", queue = { kind = "codel", limit = "30p" } }]"#,
    r#"kind = "policer", rate = "6Mbit", burst = "9kB", queue = { kind = "red", limit = "60p", min_th = "3p" }"#,
    NESTED,
];

/// A policer that re-marks, in front of classes by code point, of which one has classes by traffic.
const NESTED: &str = r#"kind = "policer", rate = "2Mbit", burst = "20kB", exceed = "remark", dscp = "AF12", queue = {
    kind = "classes", scheduler = "wrr", class = [
        { name = "out", dscp = ["AF12"], queue = { kind = "red", limit = "30p", min_th = "3p" } },
        { name = "in", weight = 3, queue = { kind = "classes", scheduler = "strict", class = [
            { name = "first", traffic = ["CLASS"], queue = { kind = "blue", limit = "30p" } },
            { name = "rest", queue = { kind = "red", limit = "30p", min_th = "3p" } }] } }] }"#;

/// Does it have queues inside?
fn is_nested(queue: &str) -> bool {
    queue.contains("queue = {")
}

/// The same with ECN.
fn with_ecn(queue: &str) -> String {
    if is_nested(queue) {
        ["red", "blue", "codel"].iter().fold(queue.to_owned(), |queue, kind| {
            queue.replace(&format!("kind = \"{kind}\""), &format!("kind = \"{kind}\", ecn = true"))
        })
    } else {
        format!("{queue}, ecn = true")
    }
}

#[test]
fn no_discipline_is_left_out() {
    for info in registry::catalogue() {
        let name = format!("kind = \"{}\"", info.name);
        let count = DISCIPLINES.iter().filter(|queue| queue.starts_with(&name)).count();
        assert_eq!(count, if info.name == "policer" { 2 } else { 1 }, "{name}");
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

/// All tables that come from ports alone.
fn compare_ports(kind: &str, simulated: &Recording, routed: &RouterRecord) {
    let ports = &routed.ports;
    for routed in [&ports.summary, &ports.histograms, &ports.queues, &ports.law] {
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

/// The sources of a plan, as a router's hosts would send: by time, and at one instant by number.
struct Senders {
    /// Next instant, number in the run, host, index in the class, source once it has started.
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

    /// The packets up to `end`, in order.
    fn send(mut self, plan: &Plan, seed: u64, end: Instant, mut each: impl FnMut(Instant, HostId, Vec<u8>)) {
        loop {
            let next = self.flows.iter_mut().min_by_key(|(at, number, ..)| (*at, *number)).unwrap();
            let (at, _, host, index, source) = next;
            if *at > end {
                return;
            }
            match source {
                None => {
                    let FlowSource::Packets(started) =
                        plan.classes[host.class].source(Identity::first_of(u32::from(*index)), *at, seed)
                    else {
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
    let queue = queue.replace("CLASS", "long");
    plan(&format!(
        r#"
        duration = "12s"
        warmup = "3s"
        [topology]
        kind = "parking_lot"
        hops = 2
        rate = "4Mbit"
        delay = "5ms"
        queue = {{ {queue} }}
        [topology.hop2]
        rate = "3.7Mbit"
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
    ))
}

/// A column of `flows`, and where the router has it.
type Column = (&'static str, fn(&FlowRecord) -> u64);

fn compare_network(queue: &str, more: &str, seed: u64) -> RouterRecord {
    let plan = network(queue, more);
    let simulated = run(&plan, seed, &Control::default()).unwrap();
    let routed = route(&plan, seed);
    compare_ports(queue, &simulated, &routed);
    let flows = simulated.table("flows").unwrap();
    let columns: [Column; 8] = [
        ("base_rtt_ns", |f| f.base_rtt.as_ns()),
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
    // Where hosts are at the routers, a stage stands alone; where they are there at one end, links are at the other.
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
    // Where a stage loses behind an access link, the simulator enters the loss when the packet is sent, the router when
    // it gets there: the books of a moment differ, those of the queues do not.
    let entry = "[[delay]]\nclass = \"long\"\nloss = 0.05 # at the entry\n";
    compare_network(DISCIPLINES[0], entry, 4);
}

/// Packets come with the code points of their classes, and a policer gives those that exceed another, in both.
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

// --- connections: what a simulated queue got, a router's gets ------------------------------------------------------

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

/// Every packet that reached a queue of the simulator, in order: when, by which host it comes if nothing lies between
/// host and queue, and its octets.
fn arrivals(plan: &Plan, simulated: &Recording) -> Vec<(Instant, HostId, Vec<u8>)> {
    let packets = simulated.table("packets").unwrap();
    let (times, flows, sizes) =
        (numbers(packets, "t_ns"), numbers(packets, "flow"), numbers(packets, "wire_bytes"));
    let (ways, fields) = (names(packets, "toward"), names(packets, "ecn"));
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
        (Instant::from_ns(times[i]), host, octets)
    };
    (0..packets.rows()).map(one).collect()
}

#[test]
fn packets_of_ecn_connections_are_marked_and_dropped_alike() {
    for (seed, queue) in (11..).zip(DISCIPLINES) {
        let marks = !queue.contains("droptail");
        let queue = if marks { with_ecn(queue) } else { queue.to_owned() };
        let mut plan = connections(&queue);
        plan.record.packets = Some(PacketChoice {
            links: (0..plan.links.len()).collect(),
            flows: None,
            events: vec![PacketEvent::Enqueue],
            from: aqmlab_units::Span::ZERO,
            until: None,
        });
        let simulated = run(&plan, seed, &Control::default()).unwrap();
        let arrivals = arrivals(&plan, &simulated);
        assert!(arrivals.len() > 5_000, "{queue}: {}", arrivals.len());
        // The same network without what lies in front of its queues.
        plan.classes.iter_mut().for_each(|class| class.access = None);
        let mut router =
            Router::new(&plan, seed, &Registry::builtin(), &frame_budget(&plan, 20_000)).unwrap();
        let mut out = Counted::default();
        for (at, host, octets) in &arrivals {
            router.accept(*at, *host, octets, &mut out).unwrap();
        }
        router.advance(Instant::ZERO + plan.stop.at, &mut out);
        let routed = router.finish().unwrap();
        compare_ports(&queue, &simulated, &routed);
        let marked: u64 = ["marked_early_packets", "marked_forced_packets"]
            .iter()
            .map(|column| numbers(&routed.ports.summary, column)[0])
            .sum();
        assert_eq!(marked > 0, marks, "{queue}: {marked} marks");
        let marked_on_the_way_out: u64 = routed.hosts.iter().map(|host| host.left_marked).sum();
        assert_eq!(marked_on_the_way_out > 0, marks);
    }
}
