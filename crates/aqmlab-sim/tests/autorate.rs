//! Shapers that are adjusted by a measured delay: the closed loop on a link whose rate falls to a quarter.
mod support;

use aqmlab_qdisc::Registry;
use aqmlab_recording::{ColumnData, Recording};
use aqmlab_sim::{Control, run, run_plain};
use support::{integers, names, plan, record};

fn scenario(rate: &str, traffic: &str) -> String {
    format!(
        r#"
        duration = "60s"
        warmup = "5s"
        [topology]
        kind = "parking_lot"
        hops = 2
        rate = "1Gbit"
        delay = "1ms"
        reverse_rate = "100Mbit"
        access_rate = "none"
        queue = {{ kind = "droptail", limit = "1000p" }}
        [topology.hop1]
        queue = {{ kind = "cake", bandwidth = "12Mbit" }}
        autorate = {{ reflector = "ping", min = "1Mbit", max = "20Mbit" }}
        [topology.hop2]
        rate = {rate}
        delay = "20ms"
        reverse_delay = "20ms"
        [[traffic]]
        name = "ping"
        kind = "cbr"
        count = 6
        rate = "2240bit"
        size = "84B"
        start = {{ uniform = ["0s", "300ms"] }}
        {traffic}
        "#
    )
}

const UPLOAD: &str = r#"[[traffic]]
        name = "upload"
        kind = "bulk"
        count = 4
        start = "1s"
        tcp = { profile = "linux", congestion = "cubic" }"#;

fn column(recording: &Recording, name: &str) -> Vec<u64> {
    integers(recording.table("autorate").expect("there is a controller"), name)
        .iter()
        .map(|n| *n as u64)
        .collect()
}

/// An answer comes back after the delays of all links; 84 bytes take 672 ns at 1 Gbit/s and 56 us at 12 Mbit/s. The shaper of
/// 12 Mbit/s lets a packet through at once if it has been idle.
#[test]
fn without_other_traffic_the_delay_is_that_of_the_path() {
    let recording = record(&scenario("\"12Mbit\"", ""), 3);
    let (times, delays) = (column(&recording, "t_ns"), column(&recording, "delay_ns"));
    // Six flows, every 0.3 s for 60 s.
    assert!((1194..=1200).contains(&delays.len()), "{}", delays.len());
    let undisturbed = 21_056_672;
    let exact = delays.iter().filter(|delay| **delay == undisturbed).count();
    assert!(exact > delays.len() / 2, "{exact} of {}", delays.len());
    // Pings may meet each other, but wait at most for the other five, in the shaper and at the second link.
    assert!(delays.iter().all(|delay| (undisturbed..undisturbed + 10 * 56_000).contains(delay)));
    assert!(times.is_sorted());
    let shaper = column(&recording, "shaper_bps");
    assert!(shaper.iter().all(|rate| *rate == 12_000_000), "it rests at its base");
}

#[test]
fn the_shaper_follows_the_link() {
    let text = scenario("[[\"0s\", \"12Mbit\"], [\"20s\", \"3Mbit\"], [\"40s\", \"12Mbit\"]]", UPLOAD);
    let recording = record(&text, 3);
    let (times, shaper) = (column(&recording, "t_ns"), column(&recording, "shaper_bps"));
    let at = |s: f64| shaper[times.partition_point(|t| *t as f64 <= s * 1e9) - 1];
    assert!(at(20.0) > 10_000_000, "{}", at(20.0));
    // Five decreases by a quarter, 0.3 s apart, reach a quarter of the rate; the first needs three long delays.
    assert!(at(20.5) > 3_000_000 && at(25.0) < 3_300_000, "{} and {}", at(20.5), at(25.0));
    assert!((20..40).all(|s| at(f64::from(s) + 0.99) >= 1_000_000));
    // An increase of 4 % for every measurement of 0.2 s doubles the rate in 3.5 s.
    assert!(at(50.0) > 9_000_000, "{}", at(50.0));
    let actions = names(recording.table("autorate").unwrap(), "action");
    let moves: Vec<usize> = (1..shaper.len()).filter(|i| shaper[*i] != shaper[i - 1]).collect();
    assert!(moves.iter().all(|i| actions[*i] != "hold"));
    let Some(ColumnData::F64(baselines)) = recording.table("autorate").unwrap().column("baseline_ns") else {
        panic!("baselines are numbers")
    };
    // The weight of 0.001 lets the baseline rise by a few per cent while delays are long.
    assert!(baselines.iter().all(|baseline| (21e6..40e6).contains(baseline)));
}

#[test]
fn the_plain_engine_agrees() {
    let text =
        scenario("{ kind = \"markov\", levels = [\"2Mbit\", \"8Mbit\", \"14Mbit\"], stay = \"3s\" }", UPLOAD);
    let plan = plan(&text);
    let fast = run(&plan, 9, &Control::default()).unwrap();
    let plain = run_plain(&plan, 9, &Control::default(), &Registry::builtin()).unwrap();
    for (a, b) in fast.tables.iter().zip(&plain.tables) {
        assert_eq!(a.digest(), b.digest(), "{}", a.name);
    }
    assert!(fast.table("autorate").unwrap().rows() > 1000);
}
