//! The ready-made scenarios are valid, cause no warnings, and mean what their comments state.

use std::path::PathBuf;

use aqmlab_scenario::{Experiment, Limits, Plan, Sweep, Traffic, parse_within};
use aqmlab_storage::Folder;
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Packets, Rate, Span};

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

fn read(name: &str) -> Experiment {
    let text = std::fs::read_to_string(folder().join(name)).expect("a ready-made scenario is there");
    let files = Folder::of(folder().join(name).to_str().expect("paths are plain"));
    parse_within(&text, name, Limits::default(), &files).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn every_ready_made_scenario_parses_without_a_warning() {
    let mut found = 0;
    for entry in std::fs::read_dir(folder()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name.ends_with(".toml") {
            let experiment = read(&name);
            assert_eq!(experiment.warnings, Vec::<String>::new(), "{name}");
            found += 1;
        }
    }
    assert!(found >= 6, "{found} scenarios");
}

#[test]
fn the_demo_is_what_it_says() {
    let demo = read("demo.toml");
    let names: Vec<&str> = demo.arms.iter().map(|a| a.arm.as_str()).collect();
    assert_eq!(
        names,
        [
            "DropTail",
            "RED",
            "gentle RED",
            "Adaptive RED",
            "RED + ECN",
            "gentle RED + ECN",
            "Adaptive RED + ECN"
        ]
    );
    assert_eq!(demo.seeds, (1..=10).collect::<Vec<u64>>());
    for plan in &demo.arms {
        assert_eq!((plan.warmup, plan.stop.at), (Span::s(20), Span::s(120)));
        let bottleneck = &plan.links[0];
        assert_eq!(bottleneck.rate, Rate::mbit(10));
        // In 80 ms, 10 Mbit/s carries 100 packets of 1000 B.
        assert_eq!(bottleneck.queue.size("limit"), Ok(Size::Packets(Packets::new(200))));
        let Traffic::Cbr(cbr) = &plan.classes[1].traffic else { panic!("the second class is CBR") };
        assert_eq!(cbr.packets.rate.as_bps() * 10, bottleneck.rate.as_bps(), "a tenth of the link");
        let with_ecn = plan.arm.ends_with("ECN");
        assert_eq!(
            bottleneck.queue.get("ecn").map(|v| v.to_string()),
            match plan.arm.as_str() {
                "DropTail" => None,
                _ => Some(with_ecn.to_string()),
            }
        );
        assert_eq!(plan.classes[0].traffic.ecn_capable(), with_ecn);
    }
}

#[test]
fn the_live_demo_is_what_it_says() {
    let demo = read("demo_live.toml");
    let names: Vec<&str> = demo.arms.iter().map(|a| a.arm.as_str()).collect();
    assert_eq!(names, ["DropTail", "RED + ECN", "PI + ECN", "BLUE + ECN"]);
    for plan in &demo.arms {
        let (class, bottleneck) = (&plan.classes[0], &plan.links[0]);
        assert_eq!((class.count, class.traffic.congestion().as_deref()), (10, Some("reno")));
        // The link sends 833 packets of 1500 B per second, each in 1.2 ms; the buffer holds 120 ms
        // of packets.
        assert_eq!(class.traffic.data_packet(), Bytes::new(1500));
        assert_eq!(bottleneck.rate.time_for(class.traffic.data_packet()), Span::us(1200));
        assert_eq!(bottleneck.rate.time_for(class.traffic.data_packet() * 100), Span::ms(120));
        let tcp = class.traffic.tcp().expect("they are downloads");
        assert_eq!(tcp.ecn, plan.arm.ends_with("ECN"), "{}", plan.arm);
    }
}

#[test]
fn the_sweep_is_what_it_says() {
    let text = std::fs::read_to_string(folder().join("sweep.toml")).expect("a ready-made scenario is there");
    let sweep = Sweep::read(&text, "sweep.toml").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((sweep.cases(), sweep.runs()), (12, 240));
    let axes: Vec<&str> = sweep.axes().map(|axis| axis.short.as_str()).collect();
    assert_eq!(axes, ["rate", "count"]);
    let soft: Vec<&str> =
        sweep.claims().iter().filter(|c| c.strength == "soft").map(|c| c.name.as_str()).collect();
    assert_eq!((sweep.claims().len(), soft), (6, vec!["no additional timeouts"]));
    // At each rate, the buffer holds 80 ms of packets, and the thresholds are a fifth and three
    // fifths of the buffer.
    for (index, packets) in [(0, [50, 10, 30]), (11, [400, 80, 240])] {
        let red = sweep.case(index).expect("a case").experiment.arms.remove(1).links.remove(0).queue;
        let sizes = ["limit", "min_th", "max_th"].map(|name| red.size(name));
        assert_eq!(sizes, packets.map(|n| Ok(Size::Packets(Packets::new(n)))));
    }
}

#[test]
fn digests_tell_arms_apart_and_ignore_names() {
    let demo = read("demo.toml");
    let mut digests: Vec<String> = demo.arms.iter().map(Plan::digest).collect();
    assert!(digests.iter().all(|d| d.len() == 64 && d.bytes().all(|b| b.is_ascii_hexdigit())));
    let mut renamed = demo.arms[0].clone();
    (renamed.title, renamed.arm) = ("another".into(), "name".into());
    renamed.parameters.clear();
    assert_eq!(renamed.digest(), digests[0]);
    renamed.warmup = Span::s(21);
    assert_ne!(renamed.digest(), digests[0]);
    digests.sort();
    digests.dedup();
    assert_eq!(digests.len(), 7);
}
