//! Tests of sweeps: which cases there are, what they contain, and that the text of each case
//! describes the same scenario as the case.

use std::path::PathBuf;

use aqmlab_scenario::{Case, Experiment, Limits, MOST_RUNS, Plan, ScenarioError, Sweep, parse_within};
use aqmlab_storage::Folder;
use aqmlab_units::Rate;

const NETWORK: &str = "title = \"all of it\"\nduration = \"60s\"\nruns = 3\n[topology]\nkind = \"dumbbell\"\n\
                       rate = \"10Mbit\"\ndelay = \"10ms\"\n[[traffic]]\nname = \"ftp\"\nkind = \"bulk\"\nrtt = \"80ms\"\n";

fn read(text: &str, file: &str) -> Result<Sweep<'static>, ScenarioError> {
    Sweep::read_within(text, file, Limits::default(), Box::new(Folder::of(file)))
}

fn sweep(more: &str) -> Sweep<'static> {
    Sweep::read(&format!("{NETWORK}{more}"), "test.toml").unwrap_or_else(|e| panic!("{e}\n{more}"))
}

fn problem(more: &str) -> String {
    let error = Sweep::read(&format!("{NETWORK}{more}"), "f").err().expect("it is refused");
    error.to_string()
}

fn case(sweep: &Sweep<'_>, index: u64) -> Case {
    sweep.case(index).unwrap_or_else(|e| panic!("{e}"))
}

fn digests(experiment: &Experiment) -> Vec<String> {
    experiment.arms.iter().map(Plan::digest).collect()
}

/// Checks that the text of each case, parsed by itself, gives the plans of that case.
fn round_trip(sweep: &Sweep<'_>, file: &str) {
    for index in 0..sweep.cases() {
        let case = case(sweep, index);
        let again = read(&case.text, file).unwrap_or_else(|e| panic!("{e}\n{}", case.text)).experiment();
        assert_eq!(digests(&again), digests(&case.experiment), "{}", case.text);
        let names = |e: &Experiment| e.arms.iter().map(|a| a.arm.clone()).collect::<Vec<_>>();
        assert_eq!(names(&again), names(&case.experiment));
        assert_eq!((&again.title, &again.question), (&case.experiment.title, &case.experiment.question));
        assert_eq!((&again.seeds, &again.metrics), (&case.experiment.seeds, &case.experiment.metrics));
        let twice = read(&case.text, file).expect("it was read before");
        assert_eq!(twice.case(0).expect("there is one case").text, case.text, "the form is canonical");
    }
}

const PRODUCT: &str = r#"
[[arm]]
name = "DropTail"
[[arm]]
name = "RED"
"topology.queue" = { kind = "red", min_th = "3p", max_th = "9p" }
[sweep]
"topology.rate" = ["5Mbit", "10Mbit"]
traffic.ftp.count = [5, 0x14, 80]
[[sweep.zip]]
name = "buffer"
"topology.queue.limit" = ["12p", "36p"]
"traffic.ftp.start" = ["0s", { uniform = ["0s", "1s"] }]
"#;

#[test]
fn a_product_turns_its_last_axis_fastest() {
    let sweep = sweep(PRODUCT);
    let axes: Vec<_> =
        sweep.axes().map(|a| (a.name.as_str(), a.short.as_str(), a.labels.join(" "))).collect();
    assert_eq!(
        axes,
        [
            ("topology.rate", "rate", "5Mbit 10Mbit".to_string()),
            ("traffic.ftp.count", "count", "5 0x14 80".to_string()),
            ("buffer", "buffer", "12p 36p".to_string()),
        ]
    );
    assert_eq!((sweep.cases(), sweep.runs()), (12, 12 * 2 * 3));
    let labels: Vec<String> = (0..sweep.cases())
        .map(|i| {
            case(&sweep, i).settings.iter().map(|(_, label)| label.as_str()).collect::<Vec<_>>().join(" ")
        })
        .collect();
    assert_eq!(labels[..4], ["5Mbit 5 12p", "5Mbit 5 36p", "5Mbit 0x14 12p", "5Mbit 0x14 36p"]);
    assert_eq!(labels[11], "10Mbit 80 36p");
}

#[test]
fn swept_values_reach_every_arm_after_the_arms_own_changes() {
    let sweep = sweep(PRODUCT);
    let last = case(&sweep, 11).experiment;
    for (plan, kind) in last.arms.iter().zip(["droptail", "red"]) {
        assert_eq!(plan.links[0].rate, Rate::mbit(10));
        assert_eq!(plan.links[0].queue.kind(), kind);
        assert_eq!(plan.links[0].queue.get("limit").expect("a limit").to_string(), "36p");
        assert_eq!(plan.classes[0].count, 80);
    }
    assert_eq!(
        digests(&sweep.experiment()),
        digests(&case(&sweep, 0).experiment),
        "the first case stands for all"
    );
}

#[test]
fn thresholds_follow_a_swept_buffer() {
    let red = |thresholds: &str, limits: &str| {
        sweep(&format!(
            "[[arm]]\nname = \"RED\"\n\"topology.queue\" = {{ kind = \"red\", {thresholds} }}\n\
             [sweep]\n\"topology.queue.limit\" = [{limits}]\n"
        ))
    };
    let parts = red("min_th = \"0.25buffer\", max_th = \"0.5buffer\"", "\"20p\", \"8p\", \"50p\", \"20kB\"");
    let written = [("20p", "5p", "10p"), ("8p", "2p", "4p"), ("50p", "13p", "25p"), ("20kB", "5kB", "10kB")];
    for (i, (limit, min_th, max_th)) in written.into_iter().enumerate() {
        let plan = case(&parts, i as u64).experiment.arms.remove(0);
        let whole = red(&format!("min_th = \"{min_th}\", max_th = \"{max_th}\""), &format!("\"{limit}\""));
        assert_eq!(plan.digest(), case(&whole, 0).experiment.arms[0].digest(), "{limit}");
        let shown = plan.parameters.iter().find(|p| p.path == "topology.queue.min_th").expect("it is shown");
        assert!(
            shown.origin.to_string().contains(&format!("0.25 of `limit`, `{limit}`")),
            "{}",
            shown.origin
        );
    }
    round_trip(&parts, "test.toml");
}

#[test]
fn explicit_cases_have_their_own_keys() {
    let sweep = sweep(
        "[[sweep.case]]\nname = \"as it is\"\n[[sweep.case]]\nname = \"the paper's\"\n\"topology.rate\" = \"1.5Mbit\"\n\
         [[sweep.case]]\nname = \"many\"\ntraffic.ftp.count = 100\n",
    );
    let axis = sweep.axes().next().expect("one axis");
    assert_eq!((axis.name.as_str(), axis.labels.len()), ("case", 3));
    assert_eq!(axis.keys, ["topology.rate", "traffic.ftp.count"]);
    assert_eq!(case(&sweep, 1).experiment.arms[0].links[0].rate, Rate::bps(1_500_000));
    assert_eq!(case(&sweep, 2).experiment.arms[0].links[0].rate, Rate::mbit(10));
    assert_eq!(case(&sweep, 2).settings, [("case".to_string(), "many".to_string())]);
    round_trip(&sweep, "test.toml");
}

#[test]
fn the_text_of_a_case_is_the_same_scenario() {
    round_trip(&sweep(PRODUCT), "test.toml");
    // The swept values are tables, shorthands, lists and words; one arm sets a key next to a swept
    // one, and another sets a table with a swept key.
    round_trip(
        &sweep(
            "[record]\ntrace = [\"ftp\"]\nqueues = \"50ms\"\n[[arm]]\nname = \"[\\\"quoted\\\"]\"\n\
             \"topology.reverse_queue\" = \"red\"\n\"topology.reverse_queue.limit\" = \"99p\"\n[[arm]]\nname = \"b\"\n\"traffic.ftp.tcp\" = \"ns2\"\n[arm.traffic.ftp]\nstart = \"1s\"\n\
             [sweep]\n\"topology.queue\" = [\"pi\", { kind = \"red\", max_p = 0.02 }]\n\"traffic.ftp.tcp.ecn\" = [false, true]\n\
             \"topology.queue.limit\" = [\"50p\", \"1.5bdp\"]\nwarmup = [\"1s\", \"2s\"]\n",
        ),
        "test.toml",
    );
}

#[test]
fn ready_made_scenarios_survive_being_written() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    for entry in std::fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("an entry is readable").path();
        if path.extension().is_none_or(|kind| kind != "toml") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a scenario is text");
        let file = path.to_str().expect("paths are plain");
        let sweep = read(&text, file).unwrap_or_else(|e| panic!("{e}"));
        let experiment = parse_within(&text, file, Limits::default(), &Folder::of(file)).expect("it parses");
        assert_eq!(digests(&experiment), digests(&case(&sweep, 0).experiment));
        if sweep.cases() == 1 {
            round_trip(&sweep, file);
        }
    }
}

#[test]
fn a_million_cases_are_made_one_at_a_time() {
    let list = |unit: &str| (1..=100).map(|n| format!("\"{n}{unit}\"")).collect::<Vec<_>>().join(", ");
    let text = format!(
        "[sweep]\n\"topology.rate\" = [{}]\n\"topology.delay\" = [{}]\n\"traffic.ftp.start\" = [{}]\n",
        list("Mbit"),
        list("us"),
        list("ms")
    );
    let sweep = Sweep::read(&format!("{}{text}", NETWORK.replace("runs = 3", "runs = 1")), "test.toml");
    let sweep = sweep.unwrap_or_else(|e| panic!("{e}"));
    assert_eq!((sweep.cases(), u128::from(sweep.runs())), (1_000_000, MOST_RUNS));
    let last = case(&sweep, 987_654);
    let labels: Vec<&str> = last.settings.iter().map(|(_, label)| label.as_str()).collect();
    assert_eq!(labels, ["99Mbit", "77us", "55ms"]);
    assert_eq!(last.experiment.arms[0].links[0].rate, Rate::mbit(99));
}

#[test]
fn traces_are_read_once_and_found_beside_the_file() {
    let folder = std::env::temp_dir().join(format!("aqmlab-sweep-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let rows = "start_s,request_bytes,response_bytes\n0.25,312,18250\n0.5,64000,0\n";
    std::fs::write(folder.join("web.csv"), rows).expect("a trace");
    let text = format!(
        "{NETWORK}[[traffic]]\nname = \"web\"\nkind = \"trace\"\nfile = \"web.csv\"\nrtt = \"50ms\"\n\
         [[arm]]\nname = \"a\"\n[[arm]]\nname = \"b\"\n\"topology.queue\" = \"red\"\n[sweep]\n\"traffic.web.rtt\" = [\"50ms\", \"90ms\"]\n"
    );
    let file = folder.join("test.toml");
    let file = file.to_str().expect("paths are plain");
    let sweep = read(&text, file).unwrap_or_else(|e| panic!("{e}"));
    round_trip(&sweep, file);
    let before = digests(&case(&sweep, 1).experiment);
    std::fs::write(folder.join("web.csv"), "changed while the sweep is in use").expect("a trace");
    assert_eq!(digests(&case(&sweep, 1).experiment), before, "all cases of a sweep have the same trace");
    std::fs::remove_dir_all(&folder).expect("it can be removed");
}

#[test]
fn claims_are_handed_over_with_their_places() {
    let sweep = sweep(concat!(
        "[sweep]\n\"topology.rate\" = [\"5Mbit\", \"10Mbit\"]\n\"traffic.ftp.count\" = [5, 20]\n",
        "[[claim]]\nname = \"M02\"\ntext = \"RED is ahead\"\nexpect = \"goodput_bps > 1Mbit\"\nwhere = { count = 20, arm = \"main\" }\n",
        "strength = \"soft\"\nsource = \"VII-A\"\n[[claim]]\nname = \"long\"\nexpect = '''\n  drop_percent < 1'''\n",
    ));
    let [first, second] = sweep.claims() else { panic!("two claims") };
    assert_eq!((first.name.as_str(), first.expect.as_str()), ("M02", "goodput_bps > 1Mbit"));
    let place = |c: &aqmlab_scenario::Claim| (c.line, c.column);
    assert_eq!(place(first), (18, 11));
    assert_eq!((first.strength, first.source.as_str()), ("soft", "VII-A"));
    let label = |k: &str, l: &str| (k.to_string(), l.to_string());
    assert_eq!(first.conditions, [label("traffic.ftp.count", "20"), label("arm", "main")]);
    assert_eq!((second.strength, place(second)), ("firm", (25, 1)));
    assert!(!case(&sweep, 0).text.contains("claim") && !case(&sweep, 0).text.contains("sweep"));
}

#[test]
fn a_value_is_refused_where_it_is_written_and_tried_before_its_case_comes() {
    let message =
        problem("[sweep]\n\"topology.rate\" = [\"5Mbit\", \"5M\"]\n\"traffic.ftp.count\" = [1, 0]\n");
    assert!(message.contains("f:13:29: topology.rate: `5M` has the unknown unit `M`"), "{message}");
    assert!(message.contains("f:14:27: traffic.ftp.count: `0` is out of range"), "{message}");
}

#[test]
fn what_the_first_values_make_wrong_elsewhere_names_them() {
    let red = "[[arm]]\nname = \"RED\"\n\"topology.queue\" = { kind = \"red\", min_th = \"5p\", max_th = \"15p\" }\n";
    let message = problem(&format!("{red}[sweep]\n\"topology.queue.limit\" = [\"12p\", \"36p\"]\n"));
    assert_eq!(message, "f:14:60: topology.queue.max_th: max_th `15p` exceeds limit `12p` (limit = 12p)");
}

#[test]
fn what_only_two_values_together_make_wrong_is_told_with_the_case() {
    let sweep = sweep("[sweep]\nduration = [\"60s\", \"20s\"]\nwarmup = [\"5s\", \"30s\"]\n");
    assert!((0..3).all(|i| sweep.case(i).is_ok()));
    let error = sweep.case(3).expect_err("the whole run is gone").to_string();
    assert_eq!(
        error,
        "test.toml:14:17: warmup: warmup `30s` leaves nothing of the run of `20s`; write a shorter warm-up \
         (duration = 20s, warmup = 30s)"
    );
    assert_eq!(sweep.labels(3), ["20s", "30s"]);
}

/// A value that fits the first case is not needed: it is enough that it fits somewhere.
#[test]
fn an_impossible_combination_of_first_values_does_not_refuse_the_sweep() {
    let red = "[[arm]]\nname = \"RED\"\n\"topology.queue\" = { kind = \"red\", min_th = \"5p\" }\n";
    let axes = "[sweep]\n\"topology.queue.max_th\" = [\"30p\", \"9p\"]\n\"topology.queue.limit\" = [\"12p\", \"36p\"]\n";
    let sweep = sweep(&format!("{red}{axes}"));
    assert_eq!((0..4).map(|i| sweep.case(i).is_ok()).collect::<Vec<_>>(), [false, true, true, true]);
    let nowhere = axes.replace("\"9p\"", "\"90p\"");
    let message = problem(&format!("{red}{nowhere}"));
    assert!(message.contains("max_th `90p` exceeds limit `36p`"), "{message}");
}

#[test]
fn excluded_combinations_are_no_cases() {
    let axes = "[sweep]\n\"topology.rate\" = [\"5Mbit\", \"10Mbit\"]\n\"traffic.ftp.count\" = [1, 5, 20]\n";
    let rules = "[[sweep.exclude]]\nrate = \"5Mbit\"\ncount = [5, \"20\"]\n[[sweep.exclude]]\ntraffic.ftp.count = 1\n\"topology.rate\" = \"10Mbit\"\n";
    let sweep = sweep(&format!("{axes}{rules}"));
    assert_eq!((sweep.cases(), sweep.combinations(), sweep.runs()), (3, 6, 9));
    let cases: Vec<_> = (0..3).map(|i| sweep.labels(i).join(" ")).collect();
    assert_eq!(cases, ["5Mbit 1", "10Mbit 5", "10Mbit 20"]);
    assert_eq!(case(&sweep, 1).settings[1].1, "5");
    assert_eq!(
        sweep.exclusions().collect::<Vec<_>>(),
        ["rate = 5Mbit, count = 5 or 20", "count = 1, rate = 10Mbit"]
    );
    let whole = "[[sweep.exclude]]\nrate = [\"5Mbit\", \"10Mbit\"]\n";
    assert!(problem(&format!("{axes}{whole}")).contains("[[sweep.exclude]] leaves out every case"));
}

#[test]
fn what_follows_from_a_value_names_it() {
    let text = format!("warmup = \"30s\"\n{NETWORK}[sweep]\nduration = [\"60s\", \"20s\"]\n");
    let error = Sweep::read(&text, "f").err().expect("it is refused").to_string();
    assert_eq!(
        error,
        "f:1:10: warmup: warmup `30s` leaves nothing of the run of `20s`; write a shorter warm-up (duration = 20s)"
    );
}
