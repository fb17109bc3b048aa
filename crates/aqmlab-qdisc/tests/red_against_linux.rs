//! RED with the preset `linux` compared with a kernel: the fate of each datagram in bursts with idle periods
//! between them (`vectors/linux-red-idle`). The thresholds are a byte apart, so the average alone decides.

use std::path::PathBuf;

use aqmlab_qdisc::law::{
    ByteMode, Counting, Decision, EcnRegion, IdleRule, RedArithmetic, RedLaw, RedParams, SpacingRule,
};
use aqmlab_units::{Bytes, Instant};

const SIZE: Bytes = Bytes::new(1000);

/// The results of a replay.
#[derive(Default)]
struct Replay {
    compared: usize,
    dropped: usize,
    differ: usize,
    after_idle: usize,
}

fn replay(name: &str, min_th: f64, weight_log: i32, packets_per_s: f64) -> Replay {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../vectors/linux-red-idle")
        .join(format!("{name}.csv"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut law = RedLaw::new(RedParams {
        min_th,
        max_th: min_th + 1.0,
        max_p: 0.02,
        weight: 0.5f64.powi(weight_log),
        gentle: false,
        spacing: SpacingRule::Linux,
        byte_mode: ByteMode::Off,
        idle: IdleRule::Linux,
        counting: Counting::Linux,
        ecn_region: EcnRegion::BelowMaxTh,
        arithmetic: RedArithmetic::Linux,
        packets_per_s,
    });
    let (mut waiting, mut found) = (0u32, Replay::default());
    for line in text.lines().skip(1) {
        let (at, event) = line.split_once(',').expect("two columns");
        let now = Instant::from_ns(at.parse().unwrap());
        match event {
            "idle" => law.on_idle(now),
            "sent" => waiting -= 1,
            "queued" | "dropped" => {
                found.after_idle +=
                    usize::from(law.average().is_idle() && law.average().at(Instant::ZERO) > 0.0);
                let decision = law.on_arrival(now, f64::from(waiting) * SIZE.as_f64(), SIZE, || 0.5);
                let (ours, theirs) = (decision != Decision::Admit, event == "dropped");
                found.compared += 1;
                found.dropped += usize::from(theirs);
                found.differ += usize::from(ours != theirs);
                waiting += u32::from(!theirs);
            }
            _ => panic!("{name}: {line}"),
        }
    }
    found
}

#[test]
fn each_datagram_has_the_fate_that_the_kernel_gave_it() {
    for (name, min_th, weight_log, packets_per_s, datagrams) in [
        ("slow", 10_000.0, 6, 1250.0, 3405),
        ("fast", 20_000.0, 4, 6250.0, 4653),
        ("coarse", 5_000.0, 3, 250.0, 1496),
    ] {
        let r = replay(name, min_th, weight_log, packets_per_s);
        println!("{name}: {} compared, {} after idle times", r.compared, r.after_idle);
        assert_eq!(r.compared, datagrams, "{name}");
        assert!(r.dropped > 500 && r.after_idle > 30, "{name}: {}", r.after_idle);
        assert_eq!(r.differ, 0, "{name}: of {} decisions", r.compared);
    }
}
