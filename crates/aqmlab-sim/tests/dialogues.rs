//! Media, games and pings: books, both engines, and figures that arithmetic gives.

use aqmlab_qdisc::Registry;
use aqmlab_recording::{ColumnData, Recording};
use aqmlab_sim::{Control, run, run_plain};

fn plan(seconds: u32, rate: &str, queue: &str, classes: &str) -> aqmlab_scenario::Plan {
    let text = format!(
        "title = \"t\"\nduration = \"{seconds}s\"\n\
         record = {{ queues = \"100ms\", flows = \"100ms\" }}\n\
         topology = {{ kind = \"dumbbell\", rate = \"{rate}\", delay = \"20ms\", queue = {queue} }}\n{classes}"
    );
    aqmlab_scenario::parse(&text, "test").unwrap_or_else(|e| panic!("{e}")).arms.remove(0)
}

fn record(plan: &aqmlab_scenario::Plan, seed: u64) -> Recording {
    run(plan, seed, &Control::default()).unwrap_or_else(|e| panic!("{e}"))
}

fn numbers(recording: &Recording, table: &str, column: &str) -> Vec<u64> {
    match recording.table(table).and_then(|t| t.column(column)) {
        Some(ColumnData::U64(values)) => values.clone(),
        Some(ColumnData::NullableU64(values)) => values.iter().map(|v| v.unwrap_or(0)).collect(),
        Some(ColumnData::U128(values)) => values.iter().map(|&v| v as u64).collect(),
        other => panic!("{table}.{column}: {other:?}"),
    }
}

fn total(recording: &Recording, table: &str, column: &str) -> u64 {
    numbers(recording, table, column).iter().sum()
}

/// Every frame and every update has one fate.
fn check_frames(recording: &Recording) {
    let captured = numbers(recording, "frame_summary", "captured_frames");
    let fates = ["on_time_frames", "late_frames", "discarded_frames", "lost_frames", "open_frames"]
        .map(|fate| numbers(recording, "frame_summary", fate));
    for (row, &captured) in captured.iter().enumerate() {
        let sum: u64 = fates.iter().map(|fate| fate[row]).sum();
        assert_eq!(sum, captured, "row {row}");
        assert!(captured > 0);
    }
    let complete = total(recording, "frame_summary", "on_time_frames")
        + total(recording, "frame_summary", "late_frames");
    assert_eq!(total(recording, "frame_histograms", "weight"), complete);
}

const DROPTAIL: &str = "{ kind = \"droptail\", limit = \"50p\" }";
const CODEL: &str = "{ kind = \"codel\", ecn = true }";

/// One class of each kind, next to TCP.
fn mixed() -> String {
    let media = |name: &str, control: &str, more: &str| {
        format!(
            "[[traffic]]\nname = \"{name}\"\nkind = \"media\"\ncontrol = {{ {control} }}\nrate = \"400kbit\"\n{more}\n"
        )
    };
    [
        media("gcc", "kind = \"gcc\"", "key_every = 60"),
        media("line", "kind = \"gcc\", estimator = \"kalman\", pacing = 1.0", "access_rate = \"none\""),
        media("scream", "kind = \"scream\"", "ecn = \"ect0\"\nloss = 0.01"),
        media("l4s", "kind = \"scream\", reaction = \"l4s\"", "ecn = \"ect1\"\nstop = \"7s\""),
        media("tfrc", "kind = \"tfrc\", prevents_oscillation = true", "ecn = \"ect0\"\ncount = 2"),
        media("endless", "kind = \"tfrc\"", "endless = true"),
        media("constant", "kind = \"constant\"", "start = \"1s\""),
        "[[traffic]]\nname = \"game\"\nkind = \"game\"\njitter = \"5ms\"\ndown_size = { uniform = [\"100B\", \"400B\"] }\n".into(),
        "[[traffic]]\nname = \"ping\"\nkind = \"ping\"\nperiod = { exponential = \"100ms\" }\nloss = 0.05\ncount = 3\n".into(),
        "[[traffic]]\nname = \"bulk\"\nkind = \"bulk\"\ncount = 2\n".into(),
    ]
    .concat()
}

#[test]
fn both_engines_agree_and_books_balance() {
    for queue in [DROPTAIL, CODEL, "{ kind = \"fq_codel\", ecn = true }"] {
        let plan = plan(10, "5Mbit", queue, &mixed());
        for seed in 1..3 {
            let fast = record(&plan, seed);
            let plain = run_plain(&plan, seed, &Control::default(), &Registry::builtin()).unwrap();
            for (a, b) in fast.tables.iter().zip(&plain.tables) {
                assert_eq!(a, b, "{queue}, seed {seed}: table {}", a.name);
            }
            check_frames(&fast);
        }
    }
}

/// A constant media flow with one packet per frame is a CBR flow: 200 kbit/s in frames of 500 B, 50 per second.
#[test]
fn a_constant_flow_is_a_cbr_flow() {
    let class = |kind: &str| {
        format!(
            "[[traffic]]\nname = \"x\"\nrate = \"200kbit\"\ncount = 4\nstart = {{ spread = [\"0s\", \"33ms\"] }}\n{kind}\n\
                 [[traffic]]\nname = \"tcp\"\nkind = \"bulk\"\n"
        )
    };
    let media =
        "kind = \"media\"\ncontrol = { kind = \"constant\" }\nfps = 50\nvariation = 0.0\npacket = \"500B\"";
    for queue in [DROPTAIL, "{ kind = \"red\", limit = \"60p\" }"] {
        let [cbr, media] = ["kind = \"cbr\"\nsize = \"500B\"", media].map(|kind| {
            let mut plan = plan(20, "1Mbit", queue, &class(kind));
            plan.warmup = aqmlab_units::Span::s(2);
            record(&plan, 7)
        });
        for table in &cbr.tables {
            assert_eq!(Some(table), media.table(table.name), "{}", table.name);
        }
        assert!(
            total(&cbr, "summary", "arrivals_packets") > total(&cbr, "summary", "departures_packets"),
            "the queue decides about packets"
        );
        check_frames(&media);
    }
}

/// On an idle path, each round-trip takes 2 * 20 ms and four transmissions of 125 B at 1 Mbit/s (1 ms) at the bottleneck and
/// its reverse: two. Without access links, nothing else.
#[test]
fn an_idle_path_gives_its_round_trip_time() {
    let class = "[[traffic]]\nname = \"ping\"\nkind = \"ping\"\nsize = \"125B\"\nanswer = \"250B\"\naccess_rate = \"none\"\n";
    let recording = record(&plan(10, "1Mbit", DROPTAIL, class), 1);
    let times = numbers(&recording, "request_sample", "response_time_ns");
    assert_eq!(times.len(), 50);
    // The reverse link has the rate of the forward link.
    assert!(times.iter().all(|&ns| ns == 40_000_000 + 1_000_000 + 2_000_000), "{times:?}");
    assert_eq!(total(&recording, "request_summary", "completed"), 50);
    assert_eq!(total(&recording, "request_summary", "failed"), 0);
}

/// A fifth of the requests is lost, and counts as failed after two seconds.
#[test]
fn unanswered_requests_fail() {
    let class =
        "[[traffic]]\nname = \"ping\"\nkind = \"ping\"\nperiod = \"10ms\"\nloss = 0.2\ntimeout = \"500ms\"\n";
    let recording = record(&plan(20, "10Mbit", DROPTAIL, class), 1);
    let [completed, failed, censored] =
        ["completed", "failed", "censored"].map(|how| total(&recording, "request_summary", how));
    // Requests at 0, 10 ms, ..., 20 s: nothing happens after the end.
    assert!((2000..=2001).contains(&(completed + failed + censored)), "{completed} {failed} {censored}");
    let share = failed as f64 / (completed + failed) as f64;
    assert!((share - 0.2).abs() < 0.03, "{share}");
    assert!(censored < 20);
}

/// A game sends 64 updates per second in each direction, and all arrive in time.
#[test]
fn a_game_keeps_its_rate() {
    let recording = record(&plan(10, "10Mbit", DROPTAIL, "[[traffic]]\nname = \"g\"\nkind = \"game\"\n"), 1);
    assert_eq!(
        numbers(&recording, "frame_summary", "captured_frames"),
        [640, 640],
        "1/64 s, 2/64 s, ..., 10 s"
    );
    assert_eq!(total(&recording, "frame_summary", "late_frames"), 0);
    assert_eq!(total(&recording, "frame_summary", "lost_frames"), 0);
    check_frames(&recording);
}

fn media_alone(control: &str, more: &str) -> Recording {
    let class = format!(
        "[[traffic]]\nname = \"m\"\nkind = \"media\"\ncontrol = {{ {control} }}\nrate = \"300kbit\"\nmax_rate = \"10Mbit\"\n\
         rtt = \"50ms\"\n{more}\n"
    );
    let mut plan = plan(60, "2Mbit", "{ kind = \"droptail\", limit = \"100p\" }", &class);
    plan.warmup = aqmlab_units::Span::s(20);
    let recording = record(&plan, 3);
    check_frames(&recording);
    recording
}

/// Returns the share of the bottleneck that the flow uses, the mean frame delay in ms, and the share of frames that are
/// not in time.
fn figures(recording: &Recording) -> (f64, f64, f64) {
    let bytes = numbers(recording, "flows", "measured_delivered_bytes")[0];
    let complete = total(recording, "frame_summary", "on_time_frames")
        + total(recording, "frame_summary", "late_frames");
    let delay = total(recording, "frame_summary", "frame_delay_sum_ns") as f64 / complete as f64 / 1e6;
    let captured = total(recording, "frame_summary", "captured_frames");
    let on_time = total(recording, "frame_summary", "on_time_frames");
    (bytes as f64 * 8.0 / 40.0 / 2e6, delay, 1.0 - on_time as f64 / captured as f64)
}

/// Each controller finds most of a constant link, and those that mind delay keep frames within their deadline.
#[test]
fn controllers_find_the_link() {
    let controls = [
        // A frame of 8 kB takes 33 ms, and the path 25 ms.
        ("trendline", "kind = \"gcc\"", 0.6, 40.0..80.0),
        // The draft's filter notices only fast queues, and its losses begin at 480 ms.
        ("kalman", "kind = \"gcc\", estimator = \"kalman\"", 0.6, 40.0..300.0),
        // The queueing delay settles near its target of 100 ms (RFC 8298, section 4.1.1.1).
        ("scream", "kind = \"scream\"", 0.9, 100.0..180.0),
        // Only losses end the growth: the queue is full, and frames wait at the sender as well.
        ("tfrc", "kind = \"tfrc\"", 0.95, 400.0..1000.0),
    ];
    for (name, control, least, delays) in controls {
        let (used, delay, not_in_time) = figures(&media_alone(control, ""));
        println!("{name}: {used:.3} of the link, {delay:.1} ms, {not_in_time:.4} not in time");
        assert!(used > least && used <= 1.0, "{name} uses {used}");
        assert!(delays.contains(&delay), "{name}: {delay} ms");
    }
}

/// An endless TFRC sender fills the link.
#[test]
fn endless_tfrc_fills_the_link() {
    let (used, delay, _) = figures(&media_alone("kind = \"tfrc\"", "endless = true\npacket = \"1000B\""));
    println!("{used:.3} of the link, {delay:.1} ms");
    assert!(used > 0.9, "{used}");
}
