//! Datagrams that are sent according to a schedule, with an ECN field, or with random gaps: the
//! times at which they leave, and their fates.
mod support;

use aqmlab_recording::Recording;
use aqmlab_scenario::{Files, Limits, ScenarioError, parse_within};
use aqmlab_sim::{Control, run};
use support::{flows, integers, names, summary};

struct OneFile(&'static str);

impl Files for OneFile {
    fn read(&self, _path: &str) -> std::io::Result<Vec<u8>> {
        Ok(self.0.as_bytes().to_vec())
    }
}

const PATH: &str = r#"
    duration = "10s"
    [record]
    packets = { flows = ["x"], events = ["send", "arrive"] }
    [topology]
    kind = "dumbbell"
    rate = "10Mbit"
    delay = "20ms"
    access_rate = "none"
"#;

fn sent(more: &str, file: &'static str) -> Result<Recording, ScenarioError> {
    let text = format!("{PATH}\n{more}");
    let plan = parse_within(&text, "test.toml", Limits::default(), &OneFile(file))?.arms.remove(0);
    Ok(run(&plan, 1, &Control::default()).unwrap_or_else(|e| panic!("{e}")))
}

fn scheduled(file: &'static str) -> Recording {
    sent("[[traffic]]\nname = \"x\"\nkind = \"schedule\"\nfile = \"x.csv\"", file)
        .unwrap_or_else(|e| panic!("{e}"))
}

/// The times at which packets were sent or arrived, and their sizes.
fn packets(r: &Recording, event: &str) -> Vec<(u128, u128)> {
    let table = r.table("packets").expect("packets are recorded");
    let of = names(table, "event");
    let rows = integers(table, "t_ns").into_iter().zip(integers(table, "wire_bytes"));
    rows.zip(of).filter(|(_, of)| of == event).map(|(row, _)| row).collect()
}

#[test]
fn packets_leave_when_the_schedule_says_so_and_as_it_says() {
    // There are two flows, and the rows are not sorted. Two packets that are due at the same
    // instant leave in the order of the file.
    let r = scheduled(
        "flow,size_bytes,time_s,ecn\n1,100,2,\n0,1250,0.5,ect0\n0,28,0.5,not-ect\n0,500,9.75,ce\n1,200,1,ect1\n",
    );
    const MS: u128 = 1_000_000;
    let expected = [(500 * MS, 1250), (500 * MS, 28), (1000 * MS, 200), (2000 * MS, 100), (9750 * MS, 500)];
    assert_eq!(packets(&r, "send"), expected);
    // The path takes 1 ms of transmission and 20 ms of propagation. The small packet that is due at
    // the same instant arrives 22.4 us later.
    let arrivals = packets(&r, "arrive");
    assert_eq!(arrivals[..2], [(521 * MS, 1250), (521 * MS + 22_400, 28)]);
    assert_eq!(flows(&r, "x", "start_ns"), [500 * MS, 1000 * MS]);
    assert_eq!(flows(&r, "x", "sent_segments"), [3, 2]);
    assert_eq!(flows(&r, "x", "sent_bytes"), [1778, 300]);
    assert_eq!(flows(&r, "x", "delivered_bytes"), [1778, 300]);
    assert_eq!(flows(&r, "x", "ce_received"), [1, 0], "one was sent with CE");
}

#[test]
fn times_may_be_whole_nanoseconds_and_one_flow_needs_no_column() {
    let r = scheduled("time_ns,size_bytes\n1000000007,1000\n3,60\n");
    assert_eq!(packets(&r, "send"), [(3, 60), (1_000_000_007, 1000)]);
}

#[test]
fn what_would_leave_after_the_end_does_not() {
    let r = scheduled("time_s,size_bytes\n1,1000\n10.5,60\n");
    assert_eq!(flows(&r, "x", "sent_segments"), [1]);
}

fn marks(r: &Recording) -> u128 {
    let of = |reason| summary(r, "bottleneck", "x", &format!("marked_{reason}_packets"));
    of("early") + of("forced")
}

/// Sends 12 Mbit/s into a link of 10 Mbit/s through a RED queue that marks packets.
fn flood(ecn: &str) -> Recording {
    let text = format!(
        r#"
        duration = "20s"
        warmup = "0s"
        [topology]
        kind = "dumbbell"
        rate = "10Mbit"
        delay = "5ms"
        queue = {{ kind = "red", limit = "50p", min_th = "5p", max_th = "15p", ecn = true }}
        [[traffic]]
        name = "x"
        kind = "cbr"
        rate = "12Mbit"
        {ecn}
        "#
    );
    support::record(&text, 1)
}

#[test]
fn a_queue_marks_datagrams_that_say_they_may_be_marked() {
    let plain = flood("");
    assert_eq!(flows(&plain, "x", "ce_received"), [0]);
    assert_eq!(marks(&plain), 0);
    for word in ["ect0", "ect1"] {
        let marked = flood(&format!("ecn = \"{word}\""));
        let of_queue = marks(&marked);
        assert!(of_queue > 100, "{word}: {of_queue} marks");
        // Marked packets arrive, except those still in the queue or in flight at the end.
        let received = flows(&marked, "x", "ce_received")[0];
        assert!((of_queue - 60..=of_queue).contains(&received), "{received} of {of_queue}");
    }
}

#[test]
fn an_accident_marks_a_chosen_datagram() {
    let text = |ecn: &str| {
        format!(
            "[topology.faults]\nmark = [3, 5]\n[[traffic]]\nname = \"x\"\nkind = \"cbr\"\nrate = \"100kbit\"\nsize = \"500B\"\n{ecn}"
        )
    };
    let marked = sent(&text("ecn = \"ect0\""), "").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(flows(&marked, "x", "ce_received"), [2]);
    let plain = sent(&text(""), "").unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(flows(&plain, "x", "ce_received"), [0]);
}

#[test]
fn random_gaps_are_those_of_ns_2() {
    // In ns-2.35, a source of 400 kbit/s with packets of 500 bytes and `random_ 1` sends its first
    // packet immediately, and 9943 packets in 99.5 s. The gaps range from 5.002 ms to 15.000 ms;
    // they have a mean of 10.008 ms, a standard deviation of 0.2893 times the constant gap, and a
    // serial correlation of 0.001.
    let text = |random: &str| {
        format!("[[traffic]]\nname = \"x\"\nkind = \"cbr\"\nrate = \"400kbit\"\nsize = \"500B\"\n{random}")
    };
    let r = sent(&text("random_ = 1"), "").unwrap_or_else(|e| panic!("{e}"));
    let at: Vec<u128> = packets(&r, "send").into_iter().map(|(at, _)| at).collect();
    assert_eq!(at[0], 0);
    let gaps: Vec<f64> = at.windows(2).map(|w| (w[1] - w[0]) as f64 / 1e7).collect();
    assert!(gaps.iter().all(|gap| (0.5..=1.5).contains(gap)));
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    // The tolerance is four standard errors of the mean of a thousand uniform gaps.
    assert!((mean - 1.0).abs() < 4.0 * 0.2887 / 1000f64.sqrt(), "{mean}");
    let even = sent(&text("random_ = 0"), "").unwrap_or_else(|e| panic!("{e}"));
    let at: Vec<u128> = packets(&even, "send").into_iter().map(|(at, _)| at).collect();
    assert!(at.windows(2).all(|w| w[1] - w[0] == 10_000_000));
    assert!(sent(&text("random_ = 2"), "").is_err());
    let twice = sent(&text("random_ = 1\nrandom_gaps = true"), "").unwrap_err();
    assert!(twice.to_string().contains("`random_` is another name for `random_gaps`"), "{twice}");
}
