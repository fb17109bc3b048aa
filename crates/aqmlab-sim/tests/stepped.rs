//! A run in parts gives the recording of a whole run, whatever a host looks at and wherever the parts end.
mod support;

use aqmlab_qdisc::Registry;
use aqmlab_recording::Recording;
use aqmlab_scenario::{PacketEvent, Plan, parse};
use aqmlab_sim::{Control, Stepped, run};
use aqmlab_units::Instant;

fn digests(recording: &Recording) -> Vec<(&'static str, String)> {
    recording.tables.iter().map(|t| (t.name, t.digest().to_string())).collect()
}

fn arms(scenario: &str) -> Vec<Plan> {
    let file = format!("{}/../../scenarios/{scenario}.toml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&file).expect("readable");
    let mut arms = parse(&text, scenario).unwrap_or_else(|e| panic!("{e}")).arms;
    for plan in &mut arms {
        plan.warmup = plan.warmup.min(aqmlab_units::Span::s(2));
        plan.stop.at = plan.stop.at.min(aqmlab_units::Span::s(6));
    }
    arms
}

fn stepped(plan: &Plan, looks: Vec<usize>) -> Stepped<'_> {
    Stepped::new(plan, 1, Control::default(), &Registry::builtin(), looks).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn parts_of_any_length_give_the_recording_of_a_whole_run() {
    for scenario in
        ["demo", "lockout", "mm1", "classes", "web_users", "parking_lot", "falling_rate", "shared_queues"]
    {
        for plan in &arms(scenario) {
            let whole = run(plan, 1, &Control::default()).unwrap_or_else(|e| panic!("{e}"));
            for looks in [vec![], vec![0]] {
                let mut parts = stepped(plan, looks.clone());
                let (mut at, mut most) = (1_000_003, 1);
                while !parts.advance(Instant::from_ns(at), most).unwrap_or_else(|e| panic!("{e}")) {
                    assert!(parts.now() <= Instant::from_ns(at));
                    if parts.next_at().is_some_and(|next| next > Instant::from_ns(at)) {
                        at += 7_654_321;
                    }
                    most = most * 3 % 1009 + 1;
                }
                let what = format!("{scenario}, {}, looks at {looks:?}", plan.arm);
                let events = parts.events();
                let recording = parts.finish().unwrap_or_else(|e| panic!("{e}"));
                assert_eq!(recording.manifest.events, events, "{what}");
                assert_eq!(digests(&recording), digests(&whole), "{what}");
            }
        }
    }
}

/// What was seen at a port adds up to what its books say: the recording's own samples, from time zero.
#[test]
fn what_is_seen_of_packets_agrees_with_the_samples() {
    for plan in &arms("demo") {
        let mut parts = stepped(plan, vec![0]);
        let (mut held, mut marked) = (0_i64, 0_u64);
        let mut ended = false;
        while !ended {
            let until = parts.next_at().expect("the run has not ended");
            ended = parts.advance(until, u64::MAX).unwrap_or_else(|e| panic!("{e}"));
            for seen in parts.take_seen() {
                held += match seen.event {
                    PacketEvent::Enqueue => 1,
                    PacketEvent::Drop | PacketEvent::Dequeue => -1,
                    _ => 0,
                };
                marked += u64::from(seen.event == PacketEvent::Mark);
            }
            assert_eq!(held as u64, parts.port(0).backlog().packets.get(), "{} at {until}", plan.arm);
        }
        let recording = parts.finish().unwrap_or_else(|e| panic!("{e}"));
        let queues = recording.tables.iter().find(|t| t.name == "queues").expect("sampled");
        let (Some(aqmlab_recording::ColumnData::Str(names)), Some(aqmlab_recording::ColumnData::U64(marks))) =
            (queues.column("queue"), queues.column("marked_packets"))
        else {
            panic!("known columns")
        };
        let own = (0..queues.rows()).filter(|&row| names.row(row) == "bottleneck");
        assert_eq!(marked, own.map(|row| marks[row]).sum::<u64>(), "{}", plan.arm);
    }
}
