//! Checks that scenario texts become the intended plans.

use aqmlab_qdisc::Passage;
use aqmlab_scenario::{
    Access, Bulk, Carries, Completed, FlowChoice, FlowStarts, IpVersion, Limits, LivePlan, PacketEvent,
    Packets, Plan, Poisson, QueueCount, Reference, RequestPlan, Tcp, Traffic, Wait, parse, parse_within,
};
use aqmlab_storage::Folder;
use aqmlab_traffic::{Distribution, Identity, PacketSizes};
use aqmlab_transport::{Congestion, Profile, profile_settings};
use aqmlab_units::{Bytes, Instant, Rate, Span};

fn only(text: &str) -> Plan {
    parse(text, "folder/my test.toml").unwrap_or_else(|e| panic!("{e}")).arms.remove(0)
}

fn link_names(plan: &Plan, links: &[usize]) -> Vec<String> {
    links.iter().map(|&l| plan.links[l].name.clone()).collect()
}

const DUMBBELL: &str =
    "duration = \"60s\"\n[topology]\nkind = \"dumbbell\"\nrate = \"10Mbit\"\ndelay = \"10ms\"\n";

#[test]
fn a_dumbbell_has_two_links_and_defaults_for_the_rest() {
    let plan = only(&format!("{DUMBBELL}[[traffic]]\nkind = \"bulk\"\n"));
    assert_eq!((plan.title.as_str(), plan.arm.as_str()), ("my test", "main"));
    assert_eq!(plan.nodes, ["left", "right"]);
    let ends: Vec<_> =
        plan.links.iter().map(|l| (l.name.as_str(), *l.from, *l.to, l.rate, l.delay)).collect();
    let (rate, delay) = (Rate::mbit(10), Span::ms(10));
    assert_eq!(ends, [("bottleneck", 0, 1, rate, delay), ("reverse", 1, 0, rate, delay)]);
    let class = &plan.classes[0];
    assert_eq!((class.name.as_str(), class.count, class.access_loss), ("traffic1", 1, 0.0));
    assert_eq!((&*class.path, &*class.return_path), (&vec![0], &vec![1]));
    assert!(
        class.stop_at.is_none()
            && class.start == FlowStarts::Drawn { from: Distribution::Constant(Span::ZERO) }
    );
    let Some(Access { rate, rtt, .. }) = &class.access else { panic!("there are access links") };
    assert_eq!((*rate, rtt), (Rate::mbit(100), &Distribution::Constant(Span::ms(20))));
    let Traffic::Bulk(Bulk { bytes: None, tcp, .. }) = &class.traffic else { panic!("an endless transfer") };
    assert!(!tcp.profile.ecn && !tcp.settings.is_auto("initial_window"));
    assert_eq!((plan.stop.at, plan.warmup), (Span::s(60), Span::ZERO));
    assert_eq!((plan.record.queues, plan.record.flows), (Span::ms(100), Span::ms(500)));
}

#[test]
fn the_way_back_can_differ() {
    let back = "reverse_rate = \"1Mbit\"\nreverse_delay = \"30ms\"\nreverse_queue = { kind = \"droptail\", limit = \"9p\" }\n\
                reverse_faults = { drop = [9, 2] }\noverhead = \"38B\"\n";
    let plan = only(&format!("{DUMBBELL}{back}[[traffic]]\nkind = \"bulk\"\n"));
    let reverse = &plan.links[1];
    assert_eq!(
        (reverse.rate, reverse.delay, reverse.overhead),
        (Rate::mbit(1), Span::ms(30), Bytes::new(38))
    );
    assert_eq!(reverse.queue.get("limit").map(ToString::to_string), Some("9p".into()));
    assert_eq!((&reverse.faults.drop, plan.links[0].faults.drop.len()), (&vec![2, 9], 0));
    // The access rate is ten times the rate of the faster direction, so access links are a bottleneck in
    // neither; the path takes 10 ms forward and 30 ms back.
    let Some(Access { rate, rtt, .. }) = &plan.classes[0].access else { panic!("there are access links") };
    assert_eq!((*rate, rtt), (Rate::mbit(100), &Distribution::Constant(Span::ms(40))));
}

#[test]
fn a_bound_on_responses_is_in_the_plan_only_if_it_is_written() {
    let of = |key: &str| {
        only(&format!("{DUMBBELL}[[traffic]]\nname = \"web\"\nkind = \"packmime\"\nrate = \"10/s\"\n{key}"))
    };
    let (free, bound) = (of(""), of("max_response = \"200kB\"\n"));
    let json = |plan: &Plan| serde_json::to_value(plan).expect("plain data")["classes"][0].clone();
    assert_eq!(json(&free)["workload"].get("max_response_bytes"), None);
    assert_eq!(json(&bound)["workload"]["max_response_bytes"], 200_000);
    assert_ne!(free.digest(), bound.digest());
    let largest = |plan: &Plan| {
        let drawn = plan.classes[0].vectors(1, Instant::from_ns(1_000_000_000_000)).expect("a cloud");
        drawn.iter().flat_map(|one| &one.exchanges).map(|exchange| exchange.response).max()
    };
    assert!(largest(&free) > Some(200_000) && largest(&bound) <= Some(200_000));
}

/// Dummynet's arithmetic by hand: delays of 40 to 79 ms are 4 to 7 ticks of 10 ms. Packets of one host leave
/// at the same instants modulo a tick; three hosts have three phases, the same in both directions.
#[test]
fn hosts_with_ticks_delay_by_whole_ticks_and_each_has_its_phase() {
    let of = |keys: &str| {
        only(&format!(
            "{DUMBBELL}[[traffic]]\nname = \"ftp\"\nkind = \"bulk\"\ncount = 12\n\
             [[delay]]\ndelay = {{ uniform = [\"40ms\", \"79ms\"] }}\n{keys}"
        ))
    };
    let tick = Span::ms(10);
    let leaves = |plan: &Plan, flow: u32, direction: usize| {
        let (class, at) = (&plan.classes[0], Instant::from_ns(1_000_000_000));
        let mut pipe = plan.delays[0].pipe(class, direction, Identity::first_of(flow), None, 7);
        let Passage::Due(due) = pipe.pass(at, Bytes::new(100)) else { panic!("nothing is lost") };
        (due.saturating_since(at), due.as_ns() % tick.as_ns(), pipe.delay())
    };
    let plan = of("tick = \"10ms\"\ntick_hosts = 3\n");
    let exact = of("");
    let mut phases = std::collections::BTreeSet::new();
    for flow in 0..12 {
        let drawn = leaves(&exact, flow, 0).0;
        let (delay, phase, mean) = leaves(&plan, flow, 0);
        let whole = tick.saturating_mul(drawn.as_ns() / tick.as_ns());
        assert!(delay > whole.saturating_sub(tick) && delay <= whole, "{drawn}: {delay}");
        assert_eq!(mean, whole.saturating_sub(Span::ms(5)));
        assert_eq!(phase, leaves(&plan, flow % 3, 1).1, "one clock per host");
        phases.insert(phase);
    }
    assert_eq!(phases.len(), 3);
    let one = of("tick = \"10ms\"\n");
    assert_eq!(
        (0..12).map(|flow| leaves(&one, flow, 0).1).collect::<std::collections::BTreeSet<_>>().len(),
        1
    );
    // The mean delay of uniform draws is less by a tick: half of it is cut, half passes before the arrival.
    let class = &plan.classes[0];
    assert_eq!((plan.delays[0].mean(class), plan.delays[0].least(class)), (Span::us(49_500), Span::ms(30)));
    assert_eq!((exact.delays[0].mean(class), exact.delays[0].least(class)), (Span::us(59_500), Span::ms(40)));
    // The plan has these keys only where they are written.
    let json = |plan: &Plan| serde_json::to_value(plan).expect("plain data")["delays"][0].clone();
    assert_eq!((&json(&plan)["tick_ns"], &json(&one)["tick_hosts"]), (&10_000_000.into(), &1.into()));
    assert!(json(&exact).get("tick_ns").is_none() && json(&exact).get("tick_hosts").is_none());
    assert_eq!(exact.digest(), of("tick = \"0s\"\n").digest());
}

#[test]
fn a_hop_overrides_the_parking_lot() {
    let plan = only(
        "duration = \"60s\"\n[topology]\nkind = \"parking_lot\"\nhops = 3\nrate = \"10Mbit\"\ndelay = \"5ms\"\n\
         queue = { kind = \"droptail\", limit = \"40p\" }\n[topology.hop2]\nrate = \"4Mbit\"\nqueue = \"red\"\n\
         [[traffic]]\nkind = \"bulk\"\nfrom = \"r3\"\nto = \"r1\"\n",
    );
    assert_eq!(plan.nodes, ["r0", "r1", "r2", "r3"]);
    let queues: Vec<_> =
        plan.links.iter().step_by(2).map(|l| (l.name.as_str(), l.rate, l.queue.kind())).collect();
    assert_eq!(
        queues,
        [
            ("hop1", Rate::mbit(10), "droptail"),
            ("hop2", Rate::mbit(4), "red"),
            ("hop3", Rate::mbit(10), "droptail")
        ]
    );
    assert_eq!(plan.links[3].rate, Rate::mbit(4), "both directions of a hop are equally fast");
    assert_eq!(link_names(&plan, &plan.classes[0].path), ["hop3-reverse", "hop2-reverse"]);
    assert_eq!(link_names(&plan, &plan.classes[0].return_path), ["hop2", "hop3"]);
}

#[test]
fn a_graph_has_named_links_both_ways_unless_told_otherwise() {
    let plan = only(
        "duration = \"60s\"\n[topology]\nkind = \"graph\"\naccess_rate = \"none\"\n\
         [[node]]\nname = \"a\"\n[[node]]\nname = \"b\"\n[[node]]\nname = \"c\"\n\
         [[link]]\nfrom = \"a\"\nto = \"b\"\nrate = \"1Mbit\"\ndelay = \"1ms\"\n\
         [[link]]\nname = \"bc\"\nfrom = \"b\"\nto = \"c\"\nrate = \"1Mbit\"\ndelay = \"1ms\"\n\
         [[link]]\nfrom = \"a\"\nto = \"c\"\nrate = \"1Mbit\"\ndelay = \"9ms\"\nduplex = false\n\
         [[traffic]]\nkind = \"bulk\"\nfrom = \"a\"\nto = \"c\"\n",
    );
    let names: Vec<&str> = plan.links.iter().map(|l| l.name.as_str()).collect();
    assert_eq!(names, ["a-b", "b-a", "bc", "bc-reverse", "a-c"]);
    assert_eq!(link_names(&plan, &plan.classes[0].path), ["a-c"], "one hop of any length");
    assert_eq!(link_names(&plan, &plan.classes[0].return_path), ["bc-reverse", "b-a"]);
    assert!(plan.classes[0].access.is_none());
    let of_the_way_back = |link: &str| {
        let of_link = format!("link.{link}.reverse_");
        plan.parameters.iter().filter(|p| p.path.starts_with(&of_link)).count()
    };
    assert!(of_the_way_back("bc") > 0);
    assert_eq!(of_the_way_back("a-c"), 0, "a missing table has no values");
    // The round-trip time in a bandwidth-delay product is 9 ms forward plus 2 ms back, without
    // access links.
    assert_eq!(plan.links[4].queue.link().rtt, Some(Span::ms(11)));
}

#[test]
fn packets_and_stops_are_as_written() {
    let plan = only(&format!(
        "{}[[traffic]]\nname = \"web\"\nkind = \"bulk\"\nbytes = \"1MB\"\ncount = 7\n\
         [[traffic]]\nname = \"noise\"\nkind = \"poisson\"\nrate = \"1Mbit\"\nsize = {{ exponential = \"500B\" }}\nstop = \"9s\"\n\
         loss = 0.25\n[stop]\nat = \"50s\"\ncompleted = {{ class = \"web\", count = 6 }}\n\
         condition = {{ queue = \"reverse\", backlog = 5 }}\n[record]\nqueues = \"0s\"\n",
        DUMBBELL.replace("duration = \"60s\"\n", "")
    ));
    let Traffic::Poisson(Poisson { packets: Packets { rate, sizes, .. } }) = plan.classes[1].traffic else {
        panic!("packets")
    };
    assert_eq!((rate, sizes), (Rate::mbit(1), PacketSizes::Exponential(Bytes::new(500))));
    assert_eq!((plan.classes[1].stop_at, plan.classes[1].access_loss), (Some(Span::s(9)), 0.25));
    assert_eq!(plan.stop.at, Span::s(50));
    let completed = plan.stop.completed.expect("a count stops it");
    assert_eq!((&*completed.classes, completed.of, completed.count), (&vec![0], Completed::Flows, 6));
    let condition = plan.stop.condition.expect("a condition stops it");
    assert_eq!((*condition.link, condition.quantity, condition.count), (1, QueueCount::Backlog, 5));
    assert_eq!(plan.record.queues, Span::ZERO);
}

#[test]
fn flows_and_packets_to_record_are_as_written() {
    let text = format!(
        "{DUMBBELL}[[traffic]]\nname = \"ftp\"\nkind = \"bulk\"\ncount = 5\n\
         [[traffic]]\nname = \"udp\"\nkind = \"cbr\"\nrate = \"1Mbit\"\n[record]\nlimit = 7\n"
    );
    let plain = only(&text).record;
    assert_eq!((plain.trace.len(), plain.packets.is_none(), plain.limit), (0, true, None));
    let plan = only(&format!(
        "{text}trace = [{{ class = \"ftp\", flows = [3, 1] }}]\n\
         packets = {{ flows = [\"udp\"], events = [\"mark\", \"send\"], from = \"1s\", until = \"2s\" }}\n"
    ));
    assert_eq!(plan.record.limit, Some(7));
    let [FlowChoice { class, indices: Some(indices) }] = plan.record.trace.as_slice() else {
        panic!("two flows")
    };
    assert_eq!((**class, class.names().as_str(), indices), (0, "ftp", &vec![1, 3]));
    assert!(plan.record.trace[0].holds(0, 3) && !plan.record.trace[0].holds(0, 2));
    assert!(!plan.record.trace[0].holds(1, 3));
    let packets = plan.record.packets.expect("packets are chosen");
    assert_eq!(
        packets.flows,
        Some(vec![FlowChoice { class: Reference::new(1, &["ftp", "udp"]), indices: None }])
    );
    assert_eq!(*packets.links, [0, 1], "both directions of the dumbbell");
    assert_eq!(packets.events, [PacketEvent::Send, PacketEvent::Mark]);
    assert_eq!((packets.from, packets.until), (Span::s(1), Some(Span::s(2))));
}

#[test]
fn how_requests_are_recorded_is_as_written_or_the_default_of_the_language() {
    let plan = |record: &str| {
        let text = format!(
            "{DUMBBELL}[[traffic]]\nname = \"web\"\nkind = \"trace\"\nfile = \"one_request.csv\"\n{record}"
        );
        let files =
            Folder::of(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/bad_scenarios/traces/web.toml"));
        parse_within(&text, "test", Limits::default(), &files)
            .unwrap_or_else(|e| panic!("{e}"))
            .arms
            .remove(0)
    };
    let (plain, empty) = (plan(""), plan("[record]\nrequests = {}\n"));
    assert_eq!(plain.record.requests, RequestPlan::DEFAULT);
    assert_eq!((&empty.record.requests, empty.digest()), (&plain.record.requests, plain.digest()));
    let asked = plan(
        "[record]\nrequests = { each = true, first_band = \"2kB\", band_factor = 4, bands = 3, sample = 0 }\n",
    );
    let wanted =
        RequestPlan { each: true, first_band: Bytes::new(2000), band_factor: 4, bands: 3, sample: 0 };
    assert_eq!(asked.record.requests, wanted);
    let requests =
        |plan: &Plan| serde_json::to_value(&plan.record).expect("plain data").get("requests").cloned();
    assert_eq!(requests(&plain), None);
    assert_eq!(requests(&asked).expect("they are in the plan")["first_band_bytes"], 2000);
    assert_ne!(asked.digest(), plain.digest());
}

#[test]
fn what_is_not_recorded_does_not_change_the_digest() {
    let text = format!("{DUMBBELL}[[traffic]]\nname = \"ftp\"\nkind = \"bulk\"\n[record]\n");
    let digest = |more: &str| only(&format!("{text}{more}\n")).digest();
    assert_eq!(digest(""), digest("limit = 7"));
    assert_ne!(digest(""), digest("trace = [\"ftp\"]"));
    assert_ne!(digest("trace = [\"ftp\"]"), digest("trace = [\"ftp\"]\nlimit = 7"));
}

#[test]
fn a_later_parameter_of_tcp_changes_the_digest_only_where_it_is_set() {
    let of = |tcp: &str| only(&format!("{DUMBBELL}[[traffic]]\nkind = \"bulk\"\ntcp = {{ {tcp} }}\n"));
    let plain = of("");
    assert_eq!(plain.digest(), of("hold_last_byte = false").digest());
    assert_ne!(plain.digest(), of("hold_last_byte = true").digest());
    let later: Vec<_> = Profile::TABLE.iter().filter(|param| param.implied).map(|param| param.name).collect();
    let stated = |plan: &Plan| {
        let json = serde_json::to_value(plan).expect("plain data");
        later.iter().filter(|name| !json["classes"][0]["workload"]["tcp"][**name].is_null()).count()
    };
    assert_eq!((stated(&plain), stated(&of("hold_last_byte = true"))), (0, 1));
    let [rfc, fulltcp] = ["rfc", "ns2_fulltcp"].map(|name| profile_settings(name).expect("built in"));
    let set = later.iter().filter(|name| rfc.get(name) != fulltcp.get(name)).count();
    assert_eq!((set, stated(&of("profile = \"ns2_fulltcp\""))), (7, 7));
}

#[test]
fn a_plan_as_data_has_names_and_whole_numbers_of_units() {
    let plan =
        only(&format!("{DUMBBELL}[[traffic]]\nname = \"ftp\"\nkind = \"bulk\"\ncount = 2\nrtt = \"80ms\"\n"));
    let json = serde_json::to_value(&plan).expect("plain data");
    assert_eq!(json["nodes"], serde_json::json!(["left", "right"]));
    let (link, class) = (&json["links"][0], &json["classes"][0]);
    assert_eq!((&link["from"], &link["to"]), (&json["nodes"][0], &json["nodes"][1]));
    assert_eq!(link["rate_bps"], plan.links[0].rate.as_bps());
    assert_eq!(
        (&link["queue"]["kind"], &link["queue"]["settings"]["limit_packets"]),
        (&"droptail".into(), &67.into())
    );
    assert_eq!((&class["path"][0], &class["access"]["rtt_ns"]), (&"bottleneck".into(), &80_000_000.into()));
    assert_eq!(
        (&class["workload"]["bytes"], &class["workload"]["tcp"]["mss_bytes"]),
        (&serde_json::Value::Null, &1460.into())
    );
}

#[test]
fn other_systems_line_endings_and_marks_do_no_harm() {
    let text = format!("{DUMBBELL}[[traffic]]\nkind = \"bulk\"\n");
    let windows = format!("\u{feff}{}", text.replace('\n', "\r\n"));
    assert_eq!(only(&windows).digest(), only(&text).digest());
}

#[test]
fn what_has_no_limit_is_called_so() {
    let unlimited = [("max_burst", "unlimited"), ("syn_retries", "unlimited"), ("data_retries", "3")];
    let plan = only(
        "duration = \"60s\"\n[topology]\nkind = \"dumbbell\"\nrate = \"1Mbit\"\ndelay = \"1ms\"\n[[traffic]]\n\
         kind = \"bulk\"\ntcp = { syn_retries = \"unlimited\", data_retries = 3 }\n",
    );
    let Carries::Stream(Tcp { profile, settings }) = plan.classes[0].traffic.carries() else {
        panic!("it is bulk")
    };
    for (name, text) in unlimited {
        assert_eq!(settings.get(name).expect("a TCP parameter").to_string(), text);
        let shown = plan.parameters.iter().find(|p| p.path.ends_with(name)).expect("it is shown");
        assert_eq!(shown.value, text);
    }
    assert_eq!((profile.max_burst, profile.syn_retries, profile.data_retries), (u32::MAX, u32::MAX, 3));
    let json = serde_json::to_value(&plan).expect("plain data");
    assert_eq!(json["classes"][0]["workload"]["tcp"]["max_burst"], serde_json::Value::Null);
    assert_eq!(json["classes"][0]["workload"]["tcp"]["data_retries"], 3);
}

const CALM: &str = "duration = \"9s\"\n[topology]\nkind = \"dumbbell\"\nrate = \"1Mbit\"\ndelay = \"5ms\"\n\
                    [[traffic]]\nname = \"ftp\"\nkind = \"bulk\"\n";

#[test]
fn the_live_router_is_told_what_is_written_or_else_its_defaults() {
    let plain = only(CALM);
    assert_eq!(plain.live, LivePlan::default());
    let live = only(&format!("{CALM}[live]\nip = 6\nwait = \"epoll\"\ndrain = \"500ms\"\n"));
    let expected =
        LivePlan { ip: IpVersion::V6, drain: Span::ms(500), wait: Wait::Epoll, ..LivePlan::default() };
    assert_eq!(live.live, expected);
}

#[test]
fn a_congestion_control_that_only_kernels_have_is_understood_and_its_place_known() {
    let congestion = |name: &str| only(&format!("{CALM}tcp = {{ congestion = \"{name}\" }}\n"));
    for (name, ours) in [("reno", Some(Congestion::Reno)), ("bbr3", Some(Congestion::Bbr3)), ("vegas", None)]
    {
        let plan = congestion(name);
        let traffic = &plan.classes[0].traffic;
        assert_eq!(traffic.tcp().expect("it is bulk").congestion, ours);
        assert_eq!(traffic.congestion().as_deref(), Some(name));
        assert_eq!(plan.only_live().count(), usize::from(ours.is_none()));
        let json = serde_json::to_value(&plan).expect("plain data");
        assert_eq!(json["classes"][0]["workload"]["tcp"]["congestion"], name);
    }
    assert_ne!(congestion("reno").digest(), congestion("cubic").digest());
    let plan = congestion("cubik");
    let problem = plan.only_live().next().expect("the simulator has none of that name");
    assert_eq!((problem.line, problem.column), (9, 22));
    assert_eq!(problem.path, "traffic.ftp.tcp.congestion");
    assert_eq!(
        problem.message,
        "the simulator has no congestion control \"cubik\": did you mean \"cubic\"? it has \"reno\", \
         \"cubic\", \"dctcp\", \"bbr\", \"bbr3\" and \"prague\"; `aqmlab live` asks the kernel for any other"
    );
}

#[test]
fn what_only_the_live_router_reads_is_in_a_plan_where_it_is_no_default() {
    let plain = only(CALM);
    let defaults = only(&format!("{CALM}[live]\nip = 4\nspin = \"30us\"\n"));
    assert_eq!(plain.digest(), defaults.digest());
    let live = |plan: &Plan| serde_json::to_value(plan).expect("plain data").get("live").cloned();
    assert_eq!(live(&plain), None);
    let sixth = only(&format!("{CALM}[live]\nip = 6\n"));
    assert_ne!(plain.digest(), sixth.digest());
    assert_eq!(live(&sixth).expect("it is in the plan")["ip"], 6);
}

#[test]
fn starts_may_be_written_for_each_seed() {
    let text = |start: &str| {
        format!(
            "duration = \"9s\"\nseed = 7\nruns = 3\n[topology]\nkind = \"dumbbell\"\nrate = \"10Mbit\"\ndelay = \"10ms\"\n\
             [[traffic]]\nname = \"ftp\"\nkind = \"bulk\"\ncount = 2\nstart = {start}\n"
        )
    };
    let read = |start: &str| parse(&text(start), "t.toml").map(|mut e| e.arms.remove(0));
    let written = "{ seeds = [[\"0s\", \"1.5s\"], \"2s\", [\"1ms\", \"0s\"]] }";
    let plan = read(written).unwrap_or_else(|e| panic!("{e}"));
    let starts = |seed: u64| {
        let mut starts = plan.classes[0].starts(seed);
        starts.sort_by_key(|(_, index)| *index);
        starts.into_iter().map(|(at, _)| Span::ns(at.as_ns())).collect::<Vec<_>>()
    };
    assert_eq!(starts(7), [Span::ZERO, Span::ms(1500)]);
    assert_eq!(starts(8), [Span::s(2); 2], "one for all flows");
    assert_eq!(starts(9), [Span::ms(1), Span::ZERO]);
    assert_eq!((plan.check_seed(7), plan.check_seed(9)), (Ok(()), Ok(())));
    for seed in [6, 10] {
        assert_eq!(
            plan.check_seed(seed).unwrap_err(),
            format!("the starts of `ftp` are written for the seeds 7 to 9, not for seed {seed}")
        );
    }
    let shown = plan.parameters.iter().find(|p| p.path == "traffic.ftp.start").unwrap();
    assert_eq!(shown.value, "{ seeds = [[\"0ns\", \"1.5s\"], [\"2s\"], [\"1ms\", \"0ns\"]] }");
    let other = read(&written.replace("1.5s", "1.6s")).unwrap();
    assert_ne!(plan.digest(), other.digest(), "other starts are another plan");
    let shifted = parse(&text(written).replace("seed = 7", "seed = 8"), "t.toml").unwrap().arms.remove(0);
    assert_ne!(plan.digest(), shifted.digest(), "and so are those for other seeds");
}

/// Responses are data: the automatic parameters of a link that they cross count their flows and
/// their packets, although the requests of the same class travel in the opposite direction.
#[test]
fn automatic_parameters_count_data_whichever_way_it_flows() {
    let plan = only(
        "duration = \"10s\"\n\
         [topology]\nkind = \"dumbbell\"\nrate = \"10Mbit\"\ndelay = \"10ms\"\n\
         queue = { kind = \"pi\", limit = \"100p\", gains = \"auto\" }\n\
         [[traffic]]\nname = \"users\"\nkind = \"requests\"\nfrom = \"right\"\nto = \"left\"\nusers = 12\n\
         think = \"1s\"\nrequest = \"400B\"\nresponse = \"20kB\"\n\
         [[traffic]]\nname = \"bulk\"\nkind = \"bulk\"\nfrom = \"left\"\nto = \"right\"\ncount = 4\n\
         tcp = { mss = \"500B\" }\n",
    );
    let queue = &plan.links[0].queue;
    let [users, bulk] = [0, 1].map(|class: usize| plan.classes[class].traffic.data_packet().get());
    assert_eq!(queue.link().flows, Some(16), "12 of responses, 4 of bulk data");
    assert_eq!(queue.link().mean_packet.get(), (12 * users + 4 * bulk + 8) / 16);
    assert_eq!(queue.integer("flows"), Ok(16));
    // In the other direction, requests are data as well, but the acknowledgments of bulk data are
    // not.
    let back = plan.links[1].queue.link();
    assert_eq!((back.flows, back.mean_packet.get()), (Some(12), users));
}

/// A queue with classes can classify packets by port: each of its classes lists ports, and each traffic class
/// has one port.
#[test]
fn a_classifier_by_port_takes_the_traffic_with_that_port() {
    let text = |ports: &str| {
        format!(
            "duration = \"10s\"\n[topology]\nkind = \"dumbbell\"\nrate = \"10Mbit\"\ndelay = \"10ms\"\n\
             [topology.queue]\nkind = \"classes\"\nqueue = {{ kind = \"droptail\", limit = \"50p\" }}\n\
             class = [{{ name = \"web\", port = {ports} }}, {{ name = \"rest\" }}]\n\
             [[traffic]]\nname = \"web\"\nkind = \"bulk\"\nport = 80\n\
             [[traffic]]\nname = \"secure\"\nkind = \"bulk\"\nport = 443\n\
             [[traffic]]\nname = \"other\"\nkind = \"bulk\"\n"
        )
    };
    let plan = only(&text("[443, 80]"));
    assert_eq!([0, 1, 2].map(|class: usize| plan.classes[class].port), [80, 443, 5001]);
    let json = serde_json::to_value(&plan.classes).expect("plain data");
    assert_eq!([0, 1, 2].map(|class: usize| json[class]["port"].as_u64()), [Some(80), Some(443), None]);
    let error = parse(&text("[80, 81]"), "ports.toml").unwrap_err().to_string();
    assert!(error.contains("no traffic has the port `81` (in use: 80, 443, 5001)"), "{error}");
    assert!(error.starts_with("ports.toml:9:"), "{error}");
    for wrong in ["0", "65536", "\"http\""] {
        let text = text("[80]").replace("port = 443", &format!("port = {wrong}"));
        let error = parse(&text, "ports.toml").unwrap_err().to_string();
        assert!(error.contains("traffic.secure.port"), "{error}");
    }
}

#[test]
fn a_class_that_is_not_enabled_is_as_if_it_were_not_there() {
    let head = "title = \"t\"\nduration = \"9s\"\n\
                topology = { kind = \"dumbbell\", rate = \"10Mbit\", delay = \"1ms\", queue = { kind = \"droptail\", limit = \"9p\" } }\n\
                [[traffic]]\nname = \"ftp\"\nkind = \"bulk\"\n";
    let web = "[[traffic]]\nname = \"web\"\nkind = \"bulk\"\ncount = 7\n";
    let rule = "[[delay]]\nclass = \"web\"\ndelay = \"3ms\"\n";
    let arms = "[[arm]]\nname = \"alone\"\n\"traffic.web.enabled\" = false\n[[arm]]\nname = \"both\"\n";
    let plans = parse(&format!("{head}{web}{rule}{arms}"), "test").unwrap_or_else(|e| panic!("{e}")).arms;
    assert_eq!(plans[0].digest(), only(head).digest());
    assert_eq!(plans[1].digest(), only(&format!("{head}{web}{rule}")).digest());
    assert!(plans[0].parameters.iter().any(|p| p.path == "traffic.web.enabled" && p.value == "false"));
    assert!(plans[0].parameters.iter().all(|p| p.path != "traffic.web.count"));
}

/// Parses a scenario in which, for 100 s, connections open at the given rate and cross a 10 Mbit/s
/// link. Each has a request of 1460 bytes and a response of 14,600 bytes, in full segments of 1500
/// bytes. The text `more` is appended to the scenario.
fn at_a_rate(rate: &str, more: &str) -> Result<aqmlab_scenario::Experiment, String> {
    let text = format!(
        "title = \"t\"\nduration = \"100s\"\n\
         topology = {{ kind = \"dumbbell\", rate = \"10Mbit\", delay = \"10ms\", queue = {{ kind = \"droptail\", limit = \"9p\" }} }}\n\
         record = {{ queues = \"0s\", flows = \"0s\" }}\n\
         [[traffic]]\nname = \"web\"\nkind = \"requests\"\nrequest = \"1460B\"\nresponse = \"14600B\"\nrate = \"{rate}\"\n{more}"
    );
    parse(&text, "test").map_err(|error| error.to_string())
}

#[test]
fn a_load_of_ten_times_a_link_needs_to_be_allowed() {
    // A link of 10 Mbit/s carries 82.891 responses per second, each of which needs 10 segments of
    // 1500 bytes, plus a SYN and a FIN of 40 bytes each.
    assert!(at_a_rate("828/s", "").is_ok());
    let error = at_a_rate("829/s", "").unwrap_err();
    assert!(error.contains("10 times its rate (`10Mbit`)") && error.contains("allow_overload"), "{error}");
    assert!(at_a_rate("829/s", "allow_overload = true\n").is_ok());
    // A class that is allowed to exceed the rate does not count when other classes are checked.
    let both = "allow_overload = true\n[[traffic]]\nname = \"b\"\nkind = \"packmime\"\nrate = \"9/s\"\n";
    assert!(at_a_rate("829/s", both).is_ok());
}

#[test]
fn memory_is_estimated_for_the_connections_that_pile_up() {
    let connections = |rate: &str| {
        let plan = at_a_rate(rate, "allow_overload = true\n").unwrap().arms.remove(0);
        aqmlab_scenario::estimate::memory(&plan).total().get() / 1024
    };
    // The number of open connections is the number of connections that open during the lifetime of
    // one, which is two round trips of 20 ms.
    assert_eq!(connections("50/s"), 2);
    // Of the 1000 connections that open per second, 917.109 accumulate for 100 s; the other 82.891
    // take 40 ms each.
    assert_eq!(connections("1000/s"), 91_714);
}

/// Two classes whose names begin with `web`, and one whose name does not.
const MIXED: &str = "title = \"t\"\nduration = \"9s\"\n\
    topology = { kind = \"dumbbell\", rate = \"10Mbit\", delay = \"1ms\", queue = { kind = \"droptail\", limit = \"9p\" } }\n\
    [[traffic]]\nname = \"web1\"\nkind = \"bulk\"\n[[traffic]]\nname = \"web2\"\nkind = \"bulk\"\n[[traffic]]\nname = \"ftp\"\nkind = \"bulk\"\n";

#[test]
fn a_star_in_a_path_stands_for_any_text_in_a_name() {
    let counts = |change: &str| {
        let plan = only(&format!("{MIXED}[[arm]]\nname = \"a\"\n{change}"));
        plan.classes.iter().map(|class| class.count).collect::<Vec<_>>()
    };
    assert_eq!(counts("\"traffic.web*.count\" = 3\n"), [3, 3, 1]);
    assert_eq!(counts("\"traffic.*.count\" = 3\n"), [3, 3, 3]);
    assert_eq!(counts("\"traffic.*1.count\" = 3\n"), [3, 1, 1]);
    assert_eq!(counts("\"traffic.*.count\" = 3\n\"traffic.ftp.count\" = 4\n"), [3, 3, 4]);
    assert_eq!(counts("\"traffic.ftp.count\" = 4\n\"traffic.*.count\" = 3\n"), [3, 3, 3]);
    let none = parse(&format!("{MIXED}[[arm]]\nname = \"a\"\n\"traffic.mail*.count\" = 3\n"), "test");
    assert!(none.unwrap_err().to_string().contains("there is no traffic \"mail*\""));
}

#[test]
fn what_an_arm_sets_by_a_star_cannot_be_swept() {
    let sweep = |arm: &str, axis: &str| {
        let text = format!("{MIXED}[[arm]]\nname = \"a\"\n{arm} = 3\n[sweep]\n{axis} = [4, 5]\n");
        aqmlab_scenario::Sweep::read(&text, "test").map(|_| ()).map_err(|e| e.to_string())
    };
    for (arm, axis) in [
        ("\"traffic.web*.count\"", "\"traffic.web2.count\""),
        ("\"traffic.web2.count\"", "\"traffic.*.count\""),
        ("\"traffic.web*.count\"", "\"traffic.*2.count\""),
    ] {
        let error = sweep(arm, axis).unwrap_err();
        assert!(error.contains("is set here and swept in line"), "{error}");
    }
    assert_eq!(sweep("\"traffic.web*.count\"", "\"traffic.ftp.count\""), Ok(()));
}
