//! The fast engine compared with the plain one. The timing wheel with fused hops and ports that
//! look ahead gives the same recording, table by table, as the plain heap with an event for every
//! departure and every hop.
mod support;

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use aqmlab_qdisc::Registry;
use aqmlab_recording::Recording;
use aqmlab_scenario::{Limits, Plan, parse_within};
use aqmlab_sim::{Control, run, run_plain};
use aqmlab_storage::Folder;
use proptest::prelude::*;

fn digests(r: &Recording) -> Vec<(&'static str, String)> {
    let held = r.tables.iter().map(|t| (t.name, t.digest().to_string()));
    held.chain(r.streamed.iter().map(|t| (t.name, t.digest.to_string()))).collect()
}

/// The columns that differ, each with the first value that differs.
fn differences(a: &Recording, b: &Recording) -> Vec<String> {
    let mut found = Vec::new();
    for (left, right) in a.tables.iter().zip(&b.tables).filter(|(l, r)| l.digest() != r.digest()) {
        for (l, r) in left.columns.iter().zip(&right.columns) {
            let (l, r, name) = (format!("{:?}", l.data), format!("{:?}", r.data), l.name);
            if let Some((x, y)) = l.split(", ").zip(r.split(", ")).find(|(x, y)| x != y) {
                found.push(format!("{}.{name}: {x} against {y}", left.name));
            } else if l != r {
                found.push(format!("{}.{name}: one has more rows", left.name));
            }
        }
    }
    found
}

fn assert_twins(plan: &Plan, seed: u64, what: &str) {
    let mut plan = plan.clone();
    // If there are requests, each request is compared.
    plan.record.requests.each = true;
    let plan = &plan;
    let fast = run(plan, seed, &Control::default()).unwrap_or_else(|e| panic!("{what}: {e}"));
    let plain = run_plain(plan, seed, &Control::default(), &Registry::builtin())
        .unwrap_or_else(|e| panic!("{what}: {e}"));
    let where_they_differ = differences(&fast, &plain);
    assert_eq!(digests(&fast), digests(&plain), "{what}, seed {seed}: {where_they_differ:?}");
    let (few, many) = (fast.manifest.events, plain.manifest.events);
    assert!(few < many || plan.stop.condition.is_some(), "{what}: {few} events, plain {many}");
}

#[test]
fn every_ready_made_scenario() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let mut plans = Vec::new();
    for entry in std::fs::read_dir(&folder).expect("scenarios exist") {
        let path = entry.expect("a file").path();
        if path.extension().is_none_or(|kind| kind != "toml") {
            continue;
        }
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).expect("readable");
        let files = Folder::of(path.to_str().expect("paths are plain"));
        let experiment =
            parse_within(&text, &name, Limits::default(), &files).unwrap_or_else(|e| panic!("{e}"));
        for plan in experiment.arms {
            let what = format!("{name}, {}", plan.arm);
            plans.push((plan, experiment.seeds[0], what));
        }
    }
    assert!(plans.len() >= 6, "{}", plans.len());
    // The plain engine is slow, so processors share the plans.
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some((plan, seed, what)) = plans.get(next.fetch_add(1, Ordering::Relaxed)) {
                    sampled_and_not(plan, *seed, what);
                }
            });
        }
    });
}

/// Compares the engines on a plan, limited to 20 seconds after a warm-up of at most 20 seconds, with and without
/// samples of flows: hosts that are not sampled are served ahead of time.
fn sampled_and_not(plan: &Plan, seed: u64, what: &str) {
    let mut plan = plan.clone();
    plan.warmup = plan.warmup.min(aqmlab_units::Span::s(20));
    plan.stop.at = plan.stop.at.min(plan.warmup + aqmlab_units::Span::s(20));
    assert_twins(&plan, seed, what);
    plan.record.flows = aqmlab_units::Span::ZERO;
    plan.record.trace.clear();
    plan.record.packets = None;
    assert_twins(&plan, seed, &format!("{what}, flows not recorded"));
}

/// A sender that keeps track of each segment, with all its timers.
const SEGMENTS: &str = "recovery = \"sack\", sack_pipe = \"segments\", rack = true, tail_loss_probe = true, \
                        prr = true, frto = true, timestamps = true, dsack = true";

#[derive(Clone, Debug)]
struct Small {
    rate_kbit: u64,
    delay_us: u64,
    queue: &'static str,
    flows: u32,
    rtt_ms: (u64, u64),
    mss: u32,
    bytes: Option<u32>,
    ecn: bool,
    access: &'static str,
    loss: f64,
    hops: u32,
    udp_kbit: u64,
    recovery: &'static str,
    stop: &'static str,
    stages: &'static str,
    pause: &'static str,
    record: &'static str,
    sampled: &'static str,
    warmup: &'static str,
    profile: &'static str,
    endpoint: &'static str,
    start: &'static str,
    until: &'static str,
    back: &'static str,
    datagrams: &'static str,
    access_at: &'static str,
}

fn small() -> impl Strategy<Value = Small> {
    let queue = prop_oneof![
        Just(r#"{ kind = "droptail", limit = "3p" }"#),
        Just(r#"{ kind = "droptail", limit = "40kB" }"#),
        Just(r#"{ kind = "red", limit = "30p", min_th = "3p", max_th = "9p", ecn = true }"#),
        Just(r#"{ kind = "red", preset = "ns2", limit = "50p", min_th = "5p", max_th = "15p" }"#),
        Just(r#"{ kind = "ared", limit = "60p", ecn = true }"#),
        Just(r#"{ kind = "pi", limit = "60p", q_ref = "10p", a = 0.002, b = 0.0019, ecn = true }"#),
        Just(r#"{ kind = "pie", limit = "60p", preset = "linux", target = "5ms", ecn = true }"#),
        Just(r#"{ kind = "pie", limit = "60p", preset = "rfc8033_options", max_burst = "20ms" }"#),
        Just(r#"{ kind = "rem", limit = "60p", q_ref = "9p", gamma = 0.1, decide = "dequeue" }"#),
        Just(r#"{ kind = "blue", limit = "20p", freeze_time = "10ms", ecn = true }"#),
        Just(r#"{ kind = "blue", preset = "altq", limit = "20p" }"#),
        Just(r#"{ kind = "avq", limit = "40p", virtual_limit = "10p", ecn = true }"#),
        Just(r#"{ kind = "fred", limit = "40p", ecn = true }"#),
        Just(r#"{ kind = "choke", limit = "40p", min_th = "3p", max_th = "20p", ecn = true }"#),
        Just(r#"{ kind = "choke", preset = "linux", limit = "40p", min_th = "3p", max_th = "20p" }"#),
        Just(
            r#"{ kind = "gred", preset = "linux", average = "all", class = [{ name = "all", limit = "30kB", min_th = "3kB" }] }"#
        ),
        Just(r#"{ kind = "sfb", limit = "40p", increment = 0.05, rehash = "300ms", ecn = true }"#),
        Just(
            r#"{ kind = "sfb", preset = "linux", limit = "40p", bin_size = 4, rehash = "300ms", warmup = "100ms" }"#
        ),
        Just(r#"{ kind = "sfq", limit = "20p", divisor = 16, perturb = "300ms" }"#),
        Just(
            r#"{ kind = "sfq", preset = "linux", limit = "40p", redflowlimit = "60kB", head_drop = true, ecn = true }"#
        ),
        Just(r#"{ kind = "fq", limit = "40p", flow_limit = 10, maxrate = "400kbit", ce_threshold = "3ms" }"#),
        Just(r#"{ kind = "redpd", limit = "40p", start = "500ms" }"#),
        Just(r#"{ kind = "codel", limit = "60p", ecn = true }"#),
        Just(r#"{ kind = "fq_codel", limit = "60p", flows = 16, target = "1ms", interval = "20ms" }"#),
        Just(r#"{ kind = "fq_codel", preset = "linux", limit = "60p", queues = "perfect" }"#),
        Just(r#"{ kind = "fq_pie", limit = "60p", flows = 16, target = "2ms", max_burst = "5ms" }"#),
        Just(r#"{ kind = "fq_pie", preset = "linux", limit = "60p", target = "2ms", queues = "perfect" }"#),
        Just(r#"{ kind = "codel", limit = "60p", target = "1ms", interval = "20ms" }"#),
        Just(r#"{ kind = "pi2", limit = "60p", target = "2ms", ecn = true }"#),
        Just(r#"{ kind = "dualpi2", limit = "60p", target = "2ms", classifier = "any_ect" }"#),
        Just(r#"{ kind = "dualpi2", preset = "linux", limit = "60p", decide = "enqueue" }"#),
        Just(r#"{ kind = "cake", memory_limit = "60kB", tins = "diffserv4", ack_filter = "aggressive" }"#),
        Just(
            r#"{ kind = "cake", bandwidth = "1Mbit", memory_limit = "60kB", isolation = "flows", ack_filter = "on" }"#
        ),
        Just(
            r#"{ kind = "spare", below = "4p", flows = 8, queue = { kind = "red", limit = "30p", min_th = "3p" } }"#
        ),
        Just(
            r#"{ kind = "tbf", preset = "linux", rate = "1Mbit", burst = "9kB", queue = { kind = "droptail", limit = "20p" } }"#
        ),
        Just(
            r#"{ kind = "htb", class = [{ name = "all", rate = "1Mbit", queue = { kind = "droptail", limit = "20p" } }] }"#
        ),
    ];
    // Round numbers make events of different objects coincide.
    let rate = prop_oneof![3 => 100u64..20_000, 1 => Just(8_000)];
    let delay = prop_oneof![3 => 0u64..30_000, 1 => Just(10_000)];
    let rtt = prop_oneof![3 => (1u64..80, 0u64..200), 1 => (Just(40), Just(0))];
    let network = (rate, delay, queue, 1u32..12, rtt, 1u32..4);
    let recovery = prop_oneof![
        1 => Just(r#"recovery = "reno""#),
        1 => Just(r#"recovery = "newreno""#),
        1 => Just(r#"recovery = "sack""#),
        2 => Just(SEGMENTS),
    ];
    let mss = prop_oneof![Just(536u32), Just(960), Just(1000), Just(1460)];
    let flows = (mss, prop::option::of(1u32..200_000), any::<bool>(), recovery);
    let rest = (
        prop_oneof![Just("none"), Just("100Mbit"), Just("8Mbit"), Just("1Mbit")],
        prop_oneof![Just(0.0), 0.0..0.1f64],
        0u64..2_000,
        // Most runs end at a given time.
        prop_oneof![
            6 => Just(""),
            1 => Just(r#"completed = { class = "tcp", count = 3 }"#),
            1 => Just(r#"condition = { queue = "hop1", arrivals = 200 }"#),
            1 => Just(r#"condition = { queue = "hop1", drops = 5 }"#),
            1 => Just(r#"condition = { queue = "hop1", backlog = 3 }"#),
        ],
        // The records of individual packets and flows are also the same.
        prop_oneof![
            4 => Just(""),
            1 => Just(r#"trace = ["tcp"]"#),
            1 => Just(r#"packets = { flows = ["tcp", "udp"] }"#),
            1 => Just(r#"packets = { links = ["hop1"] }"#),
            1 => Just(
                r#"
                trace = [{ class = "tcp", flows = [0] }]
                packets = { links = ["hop1"], flows = [{ class = "tcp", flows = [0] }], from = "500ms" }
                "#
            ),
            1 => Just(r#"packets = { links = ["hop1"], events = ["drop", "mark"], until = "3s" }"#),
        ],
    );
    let stages = prop_oneof![
        3 => Just(""),
        1 => Just("[[delay]]\ndelay = \"7ms\"\n"),
        1 => Just("[[delay]]\ndelay = { uniform = [\"1ms\", \"90ms\"] }\njitter = \"3ms\"\nat = \"exit\"\n"),
        1 => Just("[[delay]]\nloss = 0.05\nat = \"exit\"\n[[delay]]\nclass = \"tcp\"\nloss = 0.02\nrate = \"300kbit\"\n"),
        1 => Just("[[delay]]\nclass = \"udp\"\nloss = { uniform = [0.0, 0.3] }\njitter = \"20ms\"\n"),
        1 => Just("[[delay]]\nat = \"r0\"\ndelay = \"10ms\"\n[[delay]]\nat = \"r1\"\ndelay = { uniform = [\"0ms\", \"40ms\"] }\n"),
        1 => Just(
            "[[delay]]\nat = \"r1\"\nloss = 0.05\njitter = \"2ms\"\n[[delay]]\nat = \"r0\"\nclass = \"tcp\"\nrate = \"300kbit\"\n\
             [[delay]]\nat = \"exit\"\nclass = \"tcp\"\ndelay = \"3ms\"\n"
        ),
    ];
    let pause = prop_oneof![
        2 => Just(""),
        1 => Just("on = { exponential = \"300ms\" }\noff = { pareto = \"200ms\", shape = 1.5 }\nbegin = \"stationary\""),
        1 => Just("burst = { pareto = \"12kB\", shape = 1.2 }\noff = { uniform = [\"0ms\", \"100ms\"] }\nbegin = \"off\""),
    ];
    // Hosts are served ahead of time, but not beyond the sample after the next one.
    let sampled = prop_oneof![1 => Just("20ms"), 1 => Just("100ms"), 2 => Just("700ms"), 2 => Just("0s")];
    let hosts = (
        prop_oneof![3 => Just("1s"), 1 => Just("0s")],
        prop_oneof![3 => Just("rfc"), 1 => Just("ns2"), 1 => Just("freebsd4"), 1 => Just("linux")],
        prop_oneof![
            3 => Just(""),
            1 => Just("ack_every = 1"),
            1 => Just("ack_every = 3, delayed_ack = \"40ms\""),
            1 => Just("max_window = 1"),
            1 => Just("send_jitter = \"3ms\""),
            1 => Just("send_jitter = \"400ms\", ack_every = 1"),
            1 => Just("max_window = 4, ack_every = 4"),
            1 => Just("delayed_ack = \"0ms\", nagle = true"),
            1 => Just("receive_window = \"6kB\", ecn_at_one = \"wait_for_rto\""),
        ],
        prop_oneof![2 => Just("{ uniform = [\"0s\", \"1s\"] }"), 1 => Just("\"0s\"")],
        // The applications stop at the same instant as other events, or at an instant between them.
        prop_oneof![3 => Just(""), 1 => Just("stop = \"1001ms\""), 1 => Just("stop = \"2345678us\"")],
        // These classes send data along the path of the acknowledgments.
        prop_oneof![
            1 => Just("kind = \"packmime\"\nrate = \"20/s\"\nallow_overload = true\naccess_rate = \"20Mbit\"\ntcp = { ecn = true }"),
            1 => Just(""),
            1 => Just("kind = \"bulk\"\nbytes = \"60kB\"\ncount = 5"),
            1 => Just("kind = \"bulk\"\ncount = 2\ntcp = { profile = \"linux\", congestion = \"bbr\" }"),
            1 => Just("kind = \"bulk\"\ncount = 2\ntcp = { profile = \"linux\", congestion = \"bbr3\" }"),
            1 => Just("kind = \"bulk\"\ncount = 2\ntcp = { profile = \"prague\" }"),
            1 => Just("kind = \"bulk\"\ncount = 2\nstop = \"2s\""),
            1 => Just("kind = \"trace\"\nfile = \"tests/traces/three.csv\""),
            1 => Just(
                "kind = \"requests\"\nusers = 4\nthink = { exponential = \"100ms\" }\nrequest = \"300B\"\n\
                 response = { pareto = \"8kB\", shape = 1.2 }\nexchanges = { uniform = [1, 4] }\npause = \"20ms\"\n\
                 server_delay = { exponential = \"5ms\" }\ntcp = { profile = \"linux\" }"
            ),
            1 => Just(
                "kind = \"requests\"\nusers = 6\nthink = \"0s\"\nrequest = { exponential = \"4kB\" }\n\
                 response = \"1B\"\nexchanges = 3\nstart = { uniform = [\"0s\", \"1s\"] }\nstop = \"2s\"\n\
                 tcp = { time_wait = \"0s\" }"
            ),
            2 => Just(
                "kind = \"requests\"\nrate = \"30/s\"\nallow_overload = true\nrequest = \"300B\"\n\
                 response = { exponential = \"9kB\" }\ntcp = { time_wait = \"10ms\" }"
            ),
            2 => Just(
                "kind = \"pages\"\nusers = 3\nthink = { exponential = \"100ms\" }\nweight = { pareto = \"40kB\", shape = 1.3 }\n\
                 objects = { uniform = [1, 30] }\norigins = { uniform = [1, 4] }\nserver_delay = { exponential = \"5ms\" }"
            ),
            2 => Just(
                "kind = \"pages\"\nusers = 2\nthink = \"50ms\"\nweight = \"30kB\"\nobjects = 12\norigins = 3\nparse = \"0s\"\n\
                 connections = \"kept\"\nstop = \"2s\"\ntcp = { ack_every = 1, time_wait = \"0s\" }"
            ),
            2 => Just(
                "kind = \"browsers\"\nusers = 4\nthink = { exponential = \"200ms\" }\nparallel = { uniform = [1, 6] }"
            ),
            1 => Just(
                "kind = \"browsers\"\nusers = 3\nthink = \"0s\"\nservers = 2\npersistent = 0.5\nper_persistent = 3\n\
                 response = \"2kB\"\nserver_delay = \"5ms\"\nstop = \"2s\"\ntcp = { profile = \"freebsd4\", time_wait = \"0s\" }"
            ),
            1 => Just(
                "kind = \"requests\"\nrate = \"5/s\"\nallow_overload = true\nrequest = \"30kB\"\nresponse = \"300B\"\nexchanges = 2\n\
                 pause = { exponential = \"200ms\" }\nserver_delay = \"10ms\"\ntcp = { ecn = true }"
            ),
        ],
    );
    let datagrams = prop_oneof![
        2 => Just("kind = \"poisson\"\nrate = UDP\nsize = { exponential = \"300B\" }"),
        1 => Just("kind = \"poisson\"\nrate = UDP\nsize = { exponential = \"300B\" }\necn = \"ect1\""),
        1 => Just("kind = \"cbr\"\nrate = UDP\nrandom_gaps = true\necn = \"ect0\"\ncount = 3"),
        1 => Just("kind = \"schedule\"\nfile = \"tests/traces/datagrams.csv\""),
        1 => Just(
            "kind = \"media\"\ncontrol = { kind = \"gcc\" }\nrate = UDP\nmin_rate = \"1kbit\"\nmax_rate = \"1Gbit\"\n\
             key_every = 20"
        ),
        1 => Just(
            "kind = \"media\"\ncontrol = { kind = \"scream\", reaction = \"l4s\" }\nrate = UDP\nmin_rate = \"1kbit\"\n\
             max_rate = \"1Gbit\"\necn = \"ect1\""
        ),
        1 => Just(
            "kind = \"media\"\ncontrol = { kind = \"tfrc\" }\nrate = UDP\nmin_rate = \"1kbit\"\nmax_rate = \"1Gbit\"\n\
             endless = true\necn = \"ect0\""
        ),
        1 => Just("kind = \"game\"\njitter = \"20ms\"\ncount = 2"),
        1 => Just("kind = \"ping\"\nperiod = { exponential = \"20ms\" }\ncount = 3"),
    ];
    let access_at = prop_oneof![
        2 => Just(""),
        1 => Just("access_at = \"sender\""),
        1 => Just("access_at = \"receiver\""),
    ];
    (network, flows, rest, stages, (pause, sampled, hosts, (datagrams, access_at))).prop_map(
        |(
            (rate_kbit, delay_us, queue, flows, rtt, hops),
            (mss, bytes, ecn, recovery),
            (access, loss, udp, stop, record),
            stages,
            (pause, sampled, (warmup, profile, endpoint, start, until, back), (datagrams, access_at)),
        )| {
            let bytes = if pause.is_empty() { bytes } else { None };
            // Every hop adds its delay in each direction, and the base RTT must be at least the sum
            // of these delays.
            let least = 2 * u64::from(hops) * delay_us / 1000 + rtt.0;
            Small {
                rate_kbit,
                delay_us,
                queue,
                flows,
                rtt_ms: (least + 1, least + 1 + rtt.1),
                mss,
                bytes,
                ecn,
                recovery,
                access,
                loss: if access == "none" || access_at.contains("receiver") { 0.0 } else { loss },
                hops,
                udp_kbit: udp.max(10),
                // Endless flows never complete, so a scenario that waits for them to complete is refused.
                stop: if stop.starts_with("completed") && (bytes.is_none() || flows < 3) { "" } else { stop },
                stages,
                pause,
                record,
                sampled,
                warmup,
                profile,
                endpoint,
                start,
                until,
                back,
                datagrams,
                access_at: if access == "none" { "" } else { access_at },
            }
        },
    )
}

fn text(s: &Small) -> String {
    let rtt = if s.access == "none" {
        String::new()
    } else {
        format!(r#"rtt = {{ uniform = ["{}ms", "{}ms"] }}"#, s.rtt_ms.0, s.rtt_ms.1)
    };
    let bytes = s.bytes.map_or(String::new(), |b| format!("bytes = \"{b}B\""));
    let back = if s.back.is_empty() {
        String::new()
    } else {
        format!("[[traffic]]\nname = \"back\"\nfrom = \"r{}\"\nto = \"r0\"\n{}\n{rtt}", s.hops, s.back)
    };
    format!(
        r#"
        duration = "4s"
        warmup = "{warmup}"
        [topology]
        kind = "parking_lot"
        hops = {hops}
        rate = "{rate}kbit"
        delay = "{delay}us"
        access_rate = "{access}"
        queue = {queue}
        [[traffic]]
        name = "tcp"
        kind = "{kind}"
        {pause}
        count = {flows}
        {rtt}
        {bytes}
        loss = {loss}
        start = {start}
        {access_at}
        {until}
        tcp = {{ profile = "{profile}", mss = "{mss}B", ecn = {ecn}, {recovery}, time_wait = "100ms", {endpoint} }}
        {back}
        [[traffic]]
        name = "udp"
        {datagrams}
        {access_at}
        stop = "3s"
        [[traffic]]
        name = "voice"
        kind = "on_off_udp"
        rate = "{udp}kbit"
        size = "200B"
        on = {{ pareto = "200ms", shape = 1.4 }}
        off = "100ms"
        {stages}
        [record]
        queues = "50ms"
        flows = "{sampled}"
        {record}
        [stop]
        {stop}
        "#,
        hops = s.hops,
        rate = s.rate_kbit,
        delay = s.delay_us,
        access = s.access,
        queue = s.queue,
        flows = s.flows,
        loss = s.loss,
        mss = s.mss,
        ecn = s.ecn,
        recovery = s.recovery,
        udp = s.udp_kbit,
        access_at = s.access_at,
        datagrams = s.datagrams.replace("UDP", &format!("\"{}kbit\"", s.udp_kbit)),
        stop = s.stop,
        stages = s.stages,
        pause = s.pause,
        kind = if s.pause.is_empty() { "bulk" } else { "on_off_tcp" },
        record = s.record,
        sampled = s.sampled,
        warmup = s.warmup,
        profile = s.profile,
        endpoint = s.endpoint,
        start = s.start,
        until = s.until,
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]
    #[test]
    fn random_small_networks(s in small(), seed in 0u64..1000) {
        let plan = support::plan(&text(&s));
        let fast = run(&plan, seed, &Control::default()).unwrap();
        let plain = run_plain(&plan, seed, &Control::default(), &Registry::builtin()).unwrap();
        prop_assert_eq!(digests(&fast), digests(&plain), "{:?}", differences(&fast, &plain));
        prop_assert_eq!((fast.manifest.t1, fast.manifest.stopped_by), (plain.manifest.t1, plain.manifest.stopped_by));
    }
}

/// Rates that change often, and at instants at which other things happen.
fn courses() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        Just(r#"[["0s", "8Mbit"], ["1s", "1Mbit"], ["1500ms", "0bit"], ["1700ms", "3333kbit"]]"#),
        Just(
            r#"{ kind = "steps", steps = [["0s", "8Mbit"], ["3ms", "2Mbit"], ["7ms", "0bit"]], repeat = "10ms" }"#
        ),
        Just(r#"{ kind = "file", file = "tests/traces/rates.csv", at_end = "repeat" }"#),
        Just(r#"{ kind = "mahimahi", file = "tests/traces/chances.down", at_end = "repeat" }"#),
        Just(
            r#"{ kind = "mahimahi", file = "tests/traces/chances.down", at_end = "hold", chance = "700B" }"#
        ),
        Just(
            r#"{ kind = "mahimahi", file = "tests/traces/chances.down", at_end = "repeat", clock = "serving", bin = "10ms" }"#
        ),
        Just(
            r#"{ kind = "outages", rate = "5Mbit", up = { exponential = "50ms" }, down = { exponential = "10ms" } }"#
        ),
        Just(r#"{ kind = "markov", levels = ["0bit", "1Mbit", "9Mbit"], stay = "20ms" }"#),
        Just(
            r#"{ kind = "redrawn", level = { uniform = ["100kbit", "9Mbit"] }, every = "30ms", clock = "chances" }"#
        ),
        Just(r#"{ kind = "fading", mean = "3Mbit", deviation_db = 6, coherence = "50ms" }"#),
        Just(r#"{ kind = "stalls", rate = "6Mbit", every = "100ms", lasts = "20ms" }"#),
    ]
}

/// Delays and losses that change, and packets that overtake others; or none of these.
fn changing_stages() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        2 => Just(""),
        1 => Just("[[delay]]\nat = \"r1\"\njitter = { exponential = \"5ms\" }\nreorder = true\n[[delay]]\njitter = \"8ms\"\nreorder = true\n"),
        1 => Just(
            "[[delay]]\nat = \"r0\"\ndelay = [[\"0s\", \"1ms\"], [\"1s\", \"30ms\"], [\"2s\", \"2ms\"]]\nreorder = true\n\
             [[delay]]\nat = \"exit\"\ndelay = [[\"0s\", \"20ms\"], [\"1500ms\", \"0ms\"]]\nloss = [[\"0s\", 0.0], [\"1s\", 0.1], [\"2s\", 0.0]]\n"
        ),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, ..ProptestConfig::default() })]
    #[test]
    fn random_small_networks_whose_rates_change(
        s in small(), course in courses(), stages in changing_stages(), seed in 0u64..1000
    ) {
        let s = Small { stages: if stages.is_empty() { s.stages } else { stages }, ..s };
        let constant = format!("rate = \"{}kbit\"\n        delay", s.rate_kbit);
        let plan = support::plan(&text(&s).replace(&constant, &format!("rate = {course}\n        delay")));
        prop_assert!(plan.links.iter().all(|link| link.changes.is_some()));
        let fast = run(&plan, seed, &Control::default()).unwrap();
        let plain = run_plain(&plan, seed, &Control::default(), &Registry::builtin()).unwrap();
        prop_assert_eq!(digests(&fast), digests(&plain), "{:?}", differences(&fast, &plain));
        prop_assert_eq!((fast.manifest.t1, fast.manifest.stopped_by), (plain.manifest.t1, plain.manifest.stopped_by));
    }
}

/// The second link classifies packets by a code point that a queue of the first link writes. No
/// port upstream of that queue may look ahead.
#[test]
fn what_is_re_marked_at_one_link_is_seen_so_at_the_next() {
    let plan = support::plan(
        r#"
        duration = "5s"
        [topology]
        kind = "graph"
        [[node]]
        name = "a"
        [[node]]
        name = "m"
        [[node]]
        name = "b"
        [[link]]
        name = "policed"
        from = "a"
        to = "m"
        rate = "20Mbit"
        delay = "1ms"
        queue = { kind = "policer", rate = "1Mbit", burst = "10kB", exceed = "remark", dscp = "AF12", queue = { kind = "droptail", limit = "100p" } }
        [[link]]
        name = "sorted"
        from = "m"
        to = "b"
        rate = "10Mbit"
        delay = "1ms"
        [link.queue]
        kind = "classes"
        scheduler = "strict"
        [[link.queue.class]]
        name = "out"
        dscp = ["AF12"]
        queue = { kind = "droptail", limit = "100p" }
        [[link.queue.class]]
        name = "rest"
        queue = { kind = "droptail", limit = "100p" }
        [[traffic]]
        name = "u"
        kind = "cbr"
        from = "a"
        to = "b"
        rate = "4Mbit"
        size = "1000B"
        rtt = "20ms"
        "#,
    );
    assert_twins(&plan, 1, "re-marked at the first link");
    let fast = run(&plan, 1, &Control::default()).unwrap();
    let arrivals = |queue| support::summary(&fast, queue, "*", "arrivals_packets");
    // At 4 Mbit/s, 2500 packets arrive in 5 s. Of these, 635 keep their code point:
    // 1 Mbit/s for 5 s, plus a burst of 10 kB.
    assert!((630..=640).contains(&arrivals("sorted/rest")), "{}", arrivals("sorted/rest"));
    assert!((1855..=1870).contains(&arrivals("sorted/out")), "{}", arrivals("sorted/out"));
}

/// Classification by the ports of traffic classes gives the same result as classification by the
/// classes themselves: the same packets, drops and waiting times, for data and for acknowledgments.
#[test]
fn classes_by_port_are_those_by_traffic() {
    let plan = |web: &str| {
        support::plan(&format!(
            r#"
            duration = "10s"
            [topology]
            kind = "dumbbell"
            rate = "5Mbit"
            delay = "5ms"
            reverse_queue = {{ kind = "classes", queue = {{ kind = "droptail", limit = "50p" }}, class = [
                {{ name = "web", {web} }}, {{ name = "rest" }} ] }}
            [topology.queue]
            kind = "classes"
            queue = {{ kind = "red", limit = "40p", min_th = "5p" }}
            limit = "60p"
            class = [{{ name = "web", weight = 3, {web} }}, {{ name = "rest" }}]
            [[traffic]]
            name = "web"
            kind = "bulk"
            count = 4
            port = 80
            [[traffic]]
            name = "more web"
            kind = "cbr"
            rate = "200kbit"
            port = 8080
            [[traffic]]
            name = "other"
            kind = "bulk"
            count = 4
            "#
        ))
    };
    let (by_port, by_traffic) = (plan("port = [8080, 80]"), plan(r#"traffic = ["web", "more web"]"#));
    assert_twins(&by_port, 3, "classes by port");
    let [ports, traffic] = [&by_port, &by_traffic].map(|plan| run(plan, 3, &Control::default()).unwrap());
    assert_eq!(digests(&ports), digests(&traffic), "{:?}", differences(&ports, &traffic));
    for queue in ["bottleneck/web", "bottleneck/rest", "reverse/web", "reverse/rest"] {
        let arrivals = support::summary(&ports, queue, "*", "arrivals_packets");
        assert!(arrivals > 500, "{queue}: {arrivals}");
    }
}

/// Four links in series, each slower than the previous one, and one link back. The second and the
/// fourth link are each fed by one link, and the third by two. The traffic consists of web users
/// behind shared links, bulk flows and datagrams; delay stages are in routers.
fn row(queue: &str, queues: &str, flows: &str, stop: &str) -> Plan {
    let nodes = ["a", "r0", "r1", "r2", "r3", "b", "c"];
    let nodes: String = nodes.iter().map(|name| format!("[[node]]\nname = \"{name}\"\n")).collect();
    let links =
        [("a", "r0", 4), ("r0", "r1", 3), ("r1", "r2", 3), ("r2", "r3", 2), ("r3", "b", 1), ("c", "r2", 2)];
    let links: String = links
        .iter()
        .map(|(from, to, rate)| {
            format!(
                "[[link]]\nname = \"{from}{to}\"\nfrom = \"{from}\"\nto = \"{to}\"\nrate = \"{rate}Mbit\"\ndelay = \"3ms\"\n\
                 queue = {queue}\nreverse_queue = {{ kind = \"droptail\", limit = \"9p\" }}\n"
            )
        })
        .collect();
    support::plan(&format!(
        r#"
        duration = "6s"
        warmup = "1500ms"
        record = {{ queues = "{queues}", flows = "{flows}" }}
        {stop}
        [topology]
        kind = "graph"
        access_rate = "none"
        {nodes}
        {links}
        [[traffic]]
        name = "web"
        kind = "packmime"
        from = "b"
        to = "a"
        rate = "30/s"
        tcp = {{ ecn = true }}
        [[traffic]]
        name = "bulk"
        kind = "bulk"
        from = "a"
        to = "b"
        count = 3
        bytes = "90kB"
        start = {{ uniform = ["0s", "3s"] }}
        tcp = {{ recovery = "sack" }}
        [[traffic]]
        name = "side"
        kind = "poisson"
        from = "c"
        to = "b"
        rate = "200kbit"
        size = {{ exponential = "500B" }}
        stop = "5s"
        [[delay]]
        class = "web"
        at = "r3"
        delay = "client"
        [[delay]]
        class = "web"
        at = "a"
        delay = "server"
        [[delay]]
        class = "bulk"
        at = "r2"
        delay = "10ms"
        "#
    ))
}

/// A queue that only one link feeds takes in each packet as soon as its arrival time is known, but
/// not before any observation of queues that is due earlier than that time.
#[test]
fn queues_that_one_link_feeds() {
    for queue in [
        r#"{ kind = "droptail", limit = "12p" }"#,
        r#"{ kind = "droptail", limit = "6kB" }"#,
        r#"{ kind = "red", limit = "20p", min_th = "2p", max_th = "6p", ecn = true }"#,
        r#"{ kind = "rem", limit = "30p", q_ref = "5p", gamma = 0.1, decide = "dequeue" }"#,
    ] {
        for (queues, flows) in [("0s", "0s"), ("20ms", "0s"), ("250ms", "70ms")] {
            assert_twins(&row(queue, queues, flows, ""), 3, &format!("{queue}, looks {queues} and {flows}"));
        }
    }
}

/// Some runs end when a given number of flows or requests is complete. The recording of such a run
/// must not contain anything that was done ahead of time for later instants, not even for those
/// just after the end.
#[test]
fn runs_that_end_with_what_completes() {
    let queue = r#"{ kind = "droptail", limit = "12p" }"#;
    for stop in [
        r#"class = "bulk", count = 1"#,
        r#"class = "bulk", count = 3"#,
        r#"class = "web", requests = 2"#,
        r#"class = "web", requests = 100"#,
        r#"class = "web", requests = 100_000"#,
    ] {
        for each in [false, true] {
            let mut plan = row(queue, "100ms", "0s", &format!("stop = {{ completed = {{ {stop} }} }}"));
            plan.record.requests.each = each;
            let fast = run(&plan, 5, &Control::default()).unwrap();
            let plain = run_plain(&plan, 5, &Control::default(), &Registry::builtin()).unwrap();
            assert_eq!(digests(&fast), digests(&plain), "{stop}: {:?}", differences(&fast, &plain));
            let end = |of: &Recording| (of.manifest.t1, of.manifest.stopped_by);
            assert_eq!(end(&fast), end(&plain), "{stop}");
        }
    }
}

/// Short flows end at nearly the same time, when far hosts have already been served ahead of time.
/// That run is discarded and repeated without serving hosts ahead of time; the recording is that of
/// the repetition.
#[test]
fn a_run_that_ends_before_what_it_has_done_ahead() {
    let plan = support::plan(
        r#"
        duration = "9s"
        warmup = "500ms"
        stop = { completed = { class = "near", count = 30 } }
        record = { queues = "100ms", flows = "0s" }
        [topology]
        kind = "dumbbell"
        rate = "20Mbit"
        delay = "2ms"
        access_rate = "100Mbit"
        queue = { kind = "droptail", limit = "200p" }
        [[traffic]]
        name = "near"
        kind = "bulk"
        count = 30
        bytes = "6kB"
        rtt = "12ms"
        start = "1s"
        [[traffic]]
        name = "far"
        kind = "bulk"
        count = 40
        rtt = "400ms"
        start = { uniform = ["0s", "400ms"] }
        "#,
    );
    for seed in 0..4 {
        assert_twins(&plan, seed, "ends with what completes");
    }
}

/// An end that closes without having sent the last data does so at the arrival of a segment without FIN.
#[test]
fn connections_that_either_end_closes() {
    for closes in ["last_sender", "client", "server"] {
        for (access, flows, stop) in [
            ("\"1Gbit\"", "0s", ""),
            ("\"1Gbit\"", "10ms", ""),
            ("\"none\"", "10ms", ""),
            ("\"1Gbit\"", "0s", "stop = { completed = { class = \"x\", count = 2 } }"),
        ] {
            let text = format!(
                r#"
                duration = "5s"
                warmup = "1500ms"
                {stop}
                [topology]
                kind = "dumbbell"
                rate = "2Mbit"
                delay = "10ms"
                access_rate = {access}
                queue = {{ kind = "droptail", limit = "8p" }}
                reverse_queue = {{ kind = "droptail", limit = "8p" }}
                [[traffic]]
                name = "x"
                kind = "trace"
                file = "tests/traces/three.csv"
                closes = "{closes}"
                tcp = {{ time_wait = "200ms" }}
                [[traffic]]
                name = "bulk"
                kind = "bulk"
                [[traffic]]
                name = "back"
                kind = "bulk"
                from = "right"
                to = "left"
                [record]
                queues = "100ms"
                flows = "{flows}"
                "#
            );
            let plan = support::plan(&text);
            for seed in [1, 2] {
                assert_twins(&plan, seed, &format!("{closes}, access {access}, flows {flows}, {stop}"));
            }
        }
    }
}
