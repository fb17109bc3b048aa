//! Properties of the language: nothing panics, printed values can be parsed, and arms have their
//! documented effect.

use aqmlab_scenario::{Experiment, Plan, ScenarioError, parse};
use aqmlab_units::Span;
use proptest::prelude::*;

const DEMO: &str = include_str!("../../../scenarios/demo.toml");
const READY_MADE: [&str; 7] = [
    DEMO,
    include_str!("../../../scenarios/graph.toml"),
    include_str!("../../../scenarios/laws.toml"),
    include_str!("../../../scenarios/mm1.toml"),
    include_str!("../../../scenarios/one_flow.toml"),
    include_str!("../../../scenarios/parking_lot.toml"),
    include_str!("../../../scenarios/short_flows.toml"),
];

const SMALL: &str = "duration = \"60s\"\nwarmup = \"10s\"\n[topology]\nkind = \"dumbbell\"\nrate = \"10Mbit\"\n\
                     delay = \"10ms\"\n[[traffic]]\nname = \"ftp\"\nkind = \"bulk\"\n";

fn read(text: &str) -> Experiment {
    parse(text, "test.toml").unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn only(text: &str) -> Plan {
    read(text).arms.remove(0)
}

/// Fragments from which meaningless scenarios are composed.
fn fragment() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ -~]{0,12}",
        "\\PC{0,6}",
        prop::sample::select(vec![
            "[[traffic]]",
            "[[arm]]",
            "[topology]",
            "[topology.hop1]",
            "\n",
            "=",
            "{",
            "}",
            "\"",
            "[",
            "]",
            "'",
            "\"\"\"",
            "kind = \"graph\"\n",
            "hops = 1000\n",
            "count = 1000000000000\n",
            "rtt = { list = [] }\n",
            "1e999",
            "-0",
            "18446744073709551616",
            "nan",
            "\"584y\"",
            "\"99999999999h\"",
            "\"1000000bdp\"",
            "\"0.5p\"",
            "\"auto\"",
            "0xffffffffffffffffffffffffffffffffffff",
            "2026-01-01",
            "topology.queue.limit = 1\n",
            "\"..\" = 1\n",
            "\u{0}",
        ])
        .prop_map(str::to_string),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_it_panic(pieces in prop::collection::vec(fragment(), 0..20)) {
        let _ = parse(&pieces.concat(), "any.toml");
    }

    #[test]
    fn no_damage_to_a_scenario_makes_it_panic(
        which in 0..READY_MADE.len(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), 0usize..8, fragment()), 1..5),
    ) {
        let mut text: Vec<char> = READY_MADE[which].chars().collect();
        for (place, removed, inserted) in damage {
            let at = place.index(text.len());
            let end = (at + removed).min(text.len());
            text.splice(at..end, inserted.chars());
        }
        let text: String = text.into_iter().collect();
        if let Err(error) = parse(&text, "damaged.toml") {
            prop_assert!(!error.problems.is_empty());
            prop_assert!(error.problems.iter().all(|p| p.line >= 1 && p.column >= 1 && !p.message.is_empty()));
        }
    }

    #[test]
    fn times_are_shown_as_they_are_written(a in 0u64..1_000_000_000_000, b in 0u64..1_000_000_000_000, form in 0..4) {
        let (low, high) = (Span::ns(a.min(b)), Span::ns(a.max(b)));
        let written = match form {
            0 => format!("{{ uniform = [\"{low}\", \"{high}\"] }}"),
            1 => format!("{{ spread = [\"{low}\", \"{high}\"] }}"),
            2 => format!("{{ exponential = \"{high}\", offset = \"{low}\" }}"),
            _ => format!("{{ list = [\"{high}\", \"{low}\"] }}"),
        };
        let text = SMALL.replace("60s", "2000s") + &format!("start = {written}\n");
        let plan = only(&text);
        let shown = plan.parameters.iter().find(|p| p.path == "traffic.ftp.start").expect("start is shown");
        prop_assert_eq!(&shown.value, &written);
    }
}

/// Returns the value as TOML: numbers, flags, lists and tables have no quotes.
fn toml(value: &str) -> String {
    let bare =
        value.parse::<f64>().is_ok() || ["true", "false"].contains(&value) || value.starts_with(['{', '[']);
    if bare { value.to_string() } else { format!("\"{value}\"") }
}

#[test]
fn a_plan_written_out_in_full_is_the_same_plan() {
    for text in READY_MADE {
        let experiment = read(text);
        let mut longhand = text.to_string();
        for plan in &experiment.arms {
            longhand += &format!("\n[[arm]]\nname = \"written out: {}\"\n", plan.arm);
            for p in &plan.parameters {
                let computed =
                    p.path.contains(".context.") || p.path.ends_with("path") || p.path.ends_with(".name");
                if !computed {
                    let path: Vec<&str> = p.path.split('.').collect();
                    longhand += &format!("\"{}\" = {}\n", path.join("."), toml(&p.value));
                }
            }
        }
        let again = read(&longhand);
        let links = |plan: &Plan| serde_json::to_value(&plan.links).expect("plain data");
        let n = experiment.arms.len();
        for plan in &experiment.arms {
            let name = format!("written out: {}", plan.arm);
            let twin = again.arms.iter().find(|a| a.arm == name).expect("the arm is there");
            assert_eq!(links(twin), links(plan), "{name}");
            assert_eq!(twin.digest(), plan.digest(), "{name}");
        }
        assert!(again.arms.len() >= n);
    }
}

#[test]
fn every_parameter_has_an_origin_a_source_and_help() {
    for text in READY_MADE {
        for plan in read(text).arms {
            let json = serde_json::to_value(&plan).expect("plain data");
            for p in &plan.parameters {
                assert!(!p.help.is_empty() && !p.source.is_empty(), "{}", p.path);
                // For PI, `gains = "auto"` names a design rule; the gains that the rule gives are
                // in `a` and `b`.
                let word = p.path.ends_with(".gains");
                assert!(word || p.value != "auto", "{} is left automatic", p.path);
                assert_eq!(json["origins"][&p.path], p.origin.to_string(), "{}", p.path);
            }
            let mut paths: Vec<&str> = plan.parameters.iter().map(|p| p.path.as_str()).collect();
            paths.sort_unstable();
            let all = paths.len();
            paths.dedup();
            assert_eq!(paths.len(), all, "a path is listed twice");
        }
    }
}

#[test]
fn arms_replace_add_and_open_shorthands() {
    let text = format!(
        "{SMALL}tcp = \"ns2\"\n[[arm]]\nname = \"a\"\n\"topology.queue.limit\" = \"77p\"\n\"traffic.ftp.tcp.ecn\" = true\n\
         [[arm]]\nname = \"b\"\ntopology.rate = \"5Mbit\"\ntraffic.ftp.count = 3\n\
         [[arm]]\nname = \"c\"\n[arm.topology]\nrate = \"2Mbit\"\n"
    );
    let arms = read(&text).arms;
    assert_eq!(arms[0].links[0].queue.get("limit").map(ToString::to_string), Some("77p".to_string()));
    assert!(arms[0].classes[0].traffic.ecn_capable());
    assert_eq!(arms[0].classes[0].traffic.data_packet().get(), 1040, "the profile ns2 is kept");
    assert_eq!((arms[1].links[0].rate.to_string(), arms[1].classes[0].count), ("5Mbit".to_string(), 3));
    assert!(!arms[1].classes[0].traffic.ecn_capable(), "arms do not touch each other");
    assert_eq!(arms[2].links[0].rate.to_string(), "2Mbit");
}

#[test]
fn aliases_of_other_tools_are_understood() {
    let plan =
        only(&SMALL.replace(
            "[[traffic]]",
            "queue = { kind = \"red\", thresh_ = \"7p\", max = \"30p\" }\n[[traffic]]",
        ));
    let settings = &plan.links[0].queue;
    assert_eq!(settings.get("min_th").map(ToString::to_string), Some("7p".to_string()));
    assert_eq!(settings.get("max_th").map(ToString::to_string), Some("30p".to_string()));
}

/// Returns the setting of `name` and its origin.
fn told(settings: &aqmlab_params::Settings, name: &str) -> String {
    let setting = settings.iter().find(|s| s.name == name).unwrap_or_else(|| panic!("{name} is set"));
    format!("{}, {}", setting.value, setting.origin)
}

#[test]
fn values_under_other_tools_names_are_as_those_tools_write_them() {
    let queue = |written: &str| {
        let text = SMALL.replace("[[traffic]]", &format!("queue = {{ {written} }}\n[[traffic]]"));
        only(&text).links[0].queue.clone()
    };
    let red = queue(
        "kind = \"red\", limit_ = 60, thresh_ = 7, maxthresh_ = 30, linterm_ = 50, gentle_ = 1, setbit_ = true, wait_ = true, \
         bytes_ = 0, queue_in_bytes_ = false, mean_pktsize_ = 500, targetdelay_ = 0.005",
    );
    for (name, expected) in [
        ("limit", "60p, given"),
        ("min_th", "7p, given"),
        ("max_th", "30p, given"),
        ("max_p", "0.02, derived: ns-2 `linterm_ = 50`"),
        ("gentle", "true, given"),
        ("ecn", "true, given"),
        ("uniformisation", "ns2_wait, derived: ns-2 `wait_ = true`"),
        ("byte_mode", "off, derived: ns-2 `bytes_ = 0`"),
        ("measure", "packets, derived: ns-2 `queue_in_bytes_ = false`"),
        ("mean_packet", "500B, given"),
        ("target", "5ms, given"),
    ] {
        assert_eq!(told(&red, name), expected, "{name}");
    }
    let part = queue("kind = \"red\", limit_ = 60, thresh_ = \"0.25buffer\"");
    assert!(told(&part, "min_th").starts_with("15p, "), "a part of a limit under its other name");
    let tc = queue("kind = \"red\", limit = \"400kB\", min = 30000, max = 90000, avpkt = 1000");
    assert_eq!(
        (told(&tc, "min_th").as_str(), told(&tc, "mean_packet").as_str()),
        ("30kB, given", "1kB, given")
    );

    let tcp = |written: &str| {
        let text = format!("{SMALL}tcp = {{ profile = \"ns2\", {written} }}\n");
        only(&text).classes[0].traffic.tcp().expect("bulk").clone()
    };
    let tcp =
        tcp("minrto_ = 0.3, rtxcur_init_ = 6, packetSize_ = 960, ecn_ = 1, singledup_ = 0, maxburst_ = 0");
    assert_eq!((tcp.min_rto, tcp.initial_rto, tcp.mss), (Span::ms(300), Span::s(6), 960));
    assert_eq!((tcp.ecn, tcp.limited_transmit, tcp.max_burst), (true, false, u32::MAX));
}

#[test]
fn limit_of_ns2_counts_the_packet_that_arrives_where_ns2_does() {
    for kind in ["droptail", "rem"] {
        for limit in ["50", "\"50p\"", "\"50000B\""] {
            let queue = |more: &str| {
                let queue = format!("queue = {{ kind = \"{kind}\", {more} }}\n[[traffic]]");
                only(&SMALL.replace("[[traffic]]", &queue)).links[0].queue.clone()
            };
            let as_in_ns2 = queue(&format!("limit_ = {limit}"));
            assert_eq!(told(&as_in_ns2, "limit_rule"), "below, derived: as with `limit_` in ns-2");
            let written = queue(&format!("limit_ = {limit}, limit_rule = \"fits\""));
            assert_eq!(told(&written, "limit_rule"), "fits, given");
        }
        let ours = only(&SMALL.replace(
            "[[traffic]]",
            &format!("queue = {{ kind = \"{kind}\", limit = \"50p\" }}\n[[traffic]]"),
        ));
        assert!(told(&ours.links[0].queue, "limit_rule").starts_with("fits, default"));
    }
}

#[test]
fn rtt_and_packet_size_of_a_queue_are_those_of_its_flows() {
    let text = format!(
        "{SMALL}count = 3\nrtt = \"100ms\"\n[[traffic]]\nname = \"far\"\nkind = \"bulk\"\nrtt = \"200ms\"\n\
         [[traffic]]\nname = \"cbr\"\nkind = \"cbr\"\nrate = \"1Mbit\"\nsize = \"500B\"\n"
    );
    let plan = only(&text);
    // The mean round-trip time is (3 * 100 + 200) / 4 ms; the unresponsive class does not count.
    // The mean packet has (4 * 1500 + 500) / 5 bytes.
    assert_eq!(plan.links[0].queue.link().rtt, Some(Span::ms(125)));
    assert_eq!(plan.links[0].queue.link().mean_packet.get(), 1300);
    assert_eq!(plan.links[1].queue.link().mean_packet.get(), 40, "acknowledgments on the way back");
}

#[test]
fn what_is_suspicious_is_told() {
    let warnings = |text: &str| read(text).warnings.join("\n");
    assert_eq!(warnings(SMALL), "");
    assert!(warnings(&format!("{SMALL}tcp = {{ ecn = true }}\n")).contains("no queue on their path marks"));
    let queue = |q: &str| SMALL.replace("[[traffic]]", &format!("queue = {{ kind = {q} }}\n[[traffic]]"));
    // CAKE marks without a parameter that says so.
    assert_eq!(warnings(&(queue("\"cake\"") + "tcp = { ecn = true }\n")), "");
    assert_eq!(warnings(&queue("\"cake\"")), "");
    assert!(warnings(&format!("{SMALL}start = {{ uniform = [\"0s\", \"20s\"] }}\n")).contains("warm-up"));
    assert!(warnings(&queue("\"red\", ecn = true")).contains("no flow that crosses it uses ECN"));
    assert!(
        warnings(&(queue("\"droptail\", limit = \"2p\"") + "rtt = \"100ms\"\n")).contains("below a tenth")
    );
    // A queue inside a queue is also taken into account, and the data of requests travels in both directions.
    let classes = "\"classes\", scheduler = \"strict\", class = [{ name = \"a\", queue = { kind = \"red\", ecn = true } }]";
    assert!(warnings(&queue(classes)).contains("no flow that crosses it uses ECN"));
    assert_eq!(warnings(&(queue(classes) + "tcp = { ecn = true }\n")), "");
    let requests = "kind = \"requests\"\nrate = \"1/s\"\nrequest = \"1kB\"\nresponse = \"9kB\"\n";
    let back = "from = \"right\"\nto = \"left\"\ntcp = { ecn = true }\n";
    let text = queue("\"red\", ecn = true").replace("kind = \"bulk\"\n", requests) + back;
    assert!(text.contains("requests"), "{text}");
    assert_eq!(warnings(&text), "");
    // A fault can mark packets, as a queue can.
    let marked =
        |traffic: &str| SMALL.replace("[[traffic]]", "faults = { mark = [9] }\n[[traffic]]") + traffic;
    assert_eq!(warnings(&marked("tcp = { ecn = true }\n")), "");
    assert_eq!(
        warnings(&marked("")),
        "`faults.mark` of `bottleneck` marks packets, but no flow that crosses it uses ECN"
    );
    let flood = format!("{SMALL}[[traffic]]\nname = \"u\"\nkind = \"cbr\"\nrate = \"11Mbit\"\n");
    assert!(warnings(&flood).contains("exceeds the `10Mbit`"));
    let pi = |gains: &str| {
        let text = queue(&format!("\"pi\", q_ref = \"20p\", {gains}")) + "rtt = \"100ms\"\ncount = 20\n";
        warnings(&text)
    };
    assert_eq!(pi("gains = \"auto\""), "");
    let told = pi("a = 0.01, b = 0.009");
    assert!(told.contains("are unstable for 20 flows") && told.contains("the phase margin is -"), "{told}");
}

/// Settings that are written for Ethernet's packets are reported where packets are much larger or smaller.
#[test]
fn settings_made_for_other_packets_are_told() {
    let queue = |q: &str, traffic: &str| {
        let text = SMALL.replace("[[traffic]]", &format!("queue = {{ kind = {q} }}\n[[traffic]]"));
        read(&text.replace("kind = \"bulk\"\n", &format!("{traffic}\n"))).warnings.join("\n")
    };
    let jumbo = "kind = \"bulk\"\ntcp = { mss = \"8960B\" }";
    let plain = "kind = \"bulk\"";
    let voice = "kind = \"cbr\"\nrate = \"1Mbit\"\nsize = \"200B\"";
    let class = "\"classes\", class = [{ name = \"a\", queue = \"codel\" }]";
    for (kind, traffic, told) in [
        ("\"codel\"", jumbo, "write `mtu = \"9kB\"`"),
        ("\"codel\"", voice, "it drops nothing while 7 packets or fewer wait"),
        ("\"codel\", mtu = \"9000B\"", jumbo, ""),
        ("\"codel\"", plain, ""),
        (class, jumbo, "write `mtu = \"9kB\"`"),
        (
            "\"fq_codel\", ecn = false",
            jumbo,
            "it drops even where a single packet stays behind; write `mtu = \"9kB\"`",
        ),
        ("\"fq_codel\", ecn = false", voice, "it drops nothing while 7 packets or fewer wait"),
        ("\"fq_codel\", ecn = false", plain, ""),
        ("\"cake\"", jumbo, "for which it sets the targets of slow tins; write `mtu = \"9kB\"`"),
        ("\"cake\"", voice, ""),
        // These have no `mtu`, or one with another meaning.
        ("\"cobalt\", ecn = false", jumbo, ""),
        ("\"pie\"", jumbo, ""),
        ("\"red\", byte_mode = \"paper\"", jumbo, "write `max_packet = \"9kB\"`"),
        ("\"red\", byte_mode = \"paper\"", voice, "write `max_packet = \"200B\"`"),
        ("\"red\", byte_mode = \"paper\", max_packet = \"9000B\"", jumbo, ""),
        ("\"pi\", gains = \"auto\", byte_mode = \"max\"", jumbo, "write `max_packet = \"9kB\"`"),
        ("\"rem\", byte_mode = \"mean\"", jumbo, ""),
        ("\"red\"", jumbo, ""),
        ("\"red\", preset = \"ns2\"", jumbo, "`mean_packet` of its queue is `500B`"),
        ("\"red\", preset = \"ns2\"", plain, ""),
        (
            "\"classes\", quantum = \"1500B\", class = [{ name = \"a\", queue = \"droptail\" }]",
            jumbo,
            "`quantum`",
        ),
        ("\"classes\", quantum = \"9000B\", class = [{ name = \"a\", queue = \"droptail\" }]", jumbo, ""),
        // Only this scheduler counts bytes.
        ("\"classes\", scheduler = \"wrr\", class = [{ name = \"a\", queue = \"droptail\" }]", jumbo, ""),
    ] {
        let warnings = queue(kind, traffic);
        assert!(
            if told.is_empty() { warnings.is_empty() } else { warnings.contains(told) },
            "{kind}: {warnings}"
        );
    }
}

/// Exponential sizes whose mean is near the smallest or the largest datagram are hardly exponential.
#[test]
fn clipped_sizes_are_told_with_their_share() {
    let sizes = |mean: &str| {
        let source = format!("kind = \"poisson\"\nrate = \"1Mbit\"\nsize = {{ exponential = \"{mean}\" }}\n");
        read(&SMALL.replace("kind = \"bulk\"\n", &source)).warnings.join("\n")
    };
    assert_eq!(sizes("1000B"), "");
    // 28 + s exp(-28 / s) = 30 for s = 14.26, and 1 - exp(-28 / 14.26) = 0.86.
    assert!(
        sizes("30B").contains("86 % of the datagrams of `ftp` have the smallest size, `28B`"),
        "{}",
        sizes("30B")
    );
    assert!(sizes("40kB").contains("the largest size, `65.535kB`"), "{}", sizes("40kB"));
}

#[test]
fn memory_is_the_callers_to_grant() {
    let text = format!("{SMALL}count = 100000\n");
    let limits = |mb: u64| aqmlab_scenario::Limits { memory: aqmlab_units::Bytes::new(mb * 1_000_000) };
    let refused: ScenarioError =
        aqmlab_scenario::parse_within(&text, "f", limits(100), &aqmlab_storage::Folder::of("f"))
            .expect_err("too many flows");
    assert!(refused.to_string().contains("`100000` flows need about"), "{refused}");
    assert!(
        aqmlab_scenario::parse_within(&text, "f", limits(2000), &aqmlab_storage::Folder::of("f")).is_ok()
    );
}

#[test]
fn a_file_full_of_mistakes_is_refused_in_time_that_grows_with_it() {
    // Quadratic work on a megabyte would take minutes, so the test would visibly hang.
    let error = parse(&"[[traffic]]\n".repeat(80_000), "f").expect_err("there are only headers");
    assert_eq!(error.problems.len(), 2, "no duration, no topology: {error}");
    let text = format!("{SMALL}{}", "[[traffic]]\nkind = \"bluk\"\n".repeat(8_000));
    let error = parse(&text, "f").expect_err("no such kind");
    assert_eq!(error.problems.len(), 8_000);
    assert_eq!(error.problems[7_999].line, 9 + 16_000);
}

#[test]
fn a_part_of_the_buffer_moves_with_the_buffer() {
    let queue = |settings: &str| {
        let text = SMALL.replace("[[traffic]]", &format!("queue = {{ {settings} }}\n[[traffic]]"));
        let plan = only(&text);
        let settings = plan.links[0].queue.clone();
        ["min_th", "max_th"].map(|name| settings.size(name).expect("a threshold").to_string())
    };
    let parts = "kind = \"red\", min_th = \"0.25buffer\", max_th = \"0.75 buffer\"";
    assert_eq!(queue(&format!("{parts}, limit = \"36p\"")), ["9p", "27p"]);
    // Fractions of the buffer are rounded to the nearest packet, keys may be in any order, and the
    // limit may be written under one of its other names.
    assert_eq!(queue(&format!("limit_ = \"50p\", {parts}")), ["13p", "38p"]);
    assert_eq!(queue(&format!("{parts}, limit = \"100kB\", measure = \"bytes\"")), ["25kB", "75kB"]);
    let bdp = queue("kind = \"red\", limit = \"2bdp\", min_th = \"0.25buffer\", max_th = \"0.5buffer\"");
    assert_eq!(bdp, queue("kind = \"red\", limit = \"2bdp\", min_th = \"0.5bdp\", max_th = \"1bdp\""));
}

#[test]
fn an_arm_that_changes_the_buffer_changes_its_parts() {
    let text = SMALL.replace(
        "[[traffic]]",
        "queue = { kind = \"red\", limit = \"36p\", min_th = \"0.25buffer\", max_th = \"0.75buffer\" }\n[[traffic]]",
    ) + "[[arm]]\nname = \"small\"\n\"topology.queue.limit\" = \"12p\"\n[[arm]]\nname = \"same\"\n\
          \"topology.queue\" = { kind = \"red\", limit = \"36p\", min_th = \"9p\", max_th = \"27p\" }\n[[arm]]\nname = \"as it is\"\n";
    let arms = read(&text).arms;
    let min_th = |i: usize| arms[i].links[0].queue.size("min_th").expect("a threshold").to_string();
    assert_eq!(min_th(0), "3p");
    // A fraction of the buffer stands for the size that it amounts to: if that size is written
    // instead, the plan is the same.
    assert_eq!(arms[1].digest(), arms[2].digest());
}
