//! One flow with chosen faults, compared with ns-2.35 segment by segment.
//!
//! The vectors in `vectors/ns2-single-flow` were written by ns-2 itself; the README there lists the
//! settings. Here two endpoints with the profile `ns2` use the same links with the same faults.
//! Each send time must agree to within 1 us, the resolution of ns-2's trace, and each sequence
//! number must agree exactly. If ns-2 is installed, the second test runs it again, so that the
//! vectors cannot become outdated, and the third test runs it with random faults:
//! `AQMLAB_NS2_RANDOM_CASES=1000 cargo test -p aqmlab-transport --test ns2_single_flow random`.

mod support;

use std::collections::VecDeque;
use std::path::{Path as FilePath, PathBuf};
use std::process::Command;

use aqmlab_params::{Origin, Value};
use aqmlab_transport::{ENDLESS, Profile, Recovery, profile_settings};
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Instant, Rate, Span};
use support::{A, Fate, Faults, Link, Pair, Path};

/// One line of `cases.csv`.
struct Case {
    line: String,
    name: String,
    recovery: &'static str,
    window: u64,
    mss: u64,
    ack_every: u64,
    ecn: bool,
    queue: usize,
    drop: Vec<u64>,
    drop_ack: Vec<u64>,
    mark: Vec<u64>,
    /// The time of each write, and its number of segments; a write without a number has [`ENDLESS`] bytes.
    writes: Vec<(Instant, Option<u64>)>,
    end: Instant,
    /// The sender's jitter.
    jitter: Span,
}

/// A vector: the phase of ns-2's clock, the delays that it drew, and the segments with their send times.
struct Vector {
    tick_phase: Span,
    /// The delay before each transmission of data, in order.
    delays: VecDeque<Span>,
    sends: Vec<(u64, u64)>,
}

fn root() -> PathBuf {
    FilePath::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn seconds(text: &str) -> Instant {
    let s: f64 = text.parse().expect("a number of seconds");
    Instant::ZERO + Span::try_from_secs_f64(s).expect("not negative")
}

fn numbers(text: &str) -> Vec<u64> {
    text.split_whitespace().map(|n| n.parse().expect("a packet number")).collect()
}

fn cases() -> Vec<Case> {
    let path = root().join("vectors/ns2-single-flow/cases.csv");
    let text = std::fs::read_to_string(path).expect("the table of cases is in the repository");
    text.lines().skip(1).map(case).collect()
}

fn case(line: &str) -> Case {
    let field: Vec<&str> = line.split(',').collect();
    let writes = field[10].split_whitespace().map(|w| {
        let (at, packets) = w.split_once(':').expect("time:packets");
        (seconds(at), packets.parse().ok())
    });
    Case {
        line: line.into(),
        name: field[0].into(),
        recovery: Recovery::WORDS.iter().find(|word| **word == field[1]).expect("a recovery"),
        window: field[2].parse().expect("a count"),
        mss: field[3].parse().expect("bytes"),
        ack_every: if field[4] == "second" { 2 } else { 1 },
        ecn: field[5] == "1",
        queue: field[6].parse().expect("a count"),
        drop: numbers(field[7]),
        drop_ack: numbers(field[8]),
        mark: numbers(field[9]),
        writes: writes.collect(),
        end: seconds(field[11]),
        jitter: field[12].parse().map_or(Span::ZERO, Span::us),
    }
}

fn vector(text: &str) -> Vector {
    let mut lines = text.lines();
    let phase = lines.next().and_then(|l| l.strip_prefix("# tick_phase_ns ")).expect("the first line");
    let delays = text.lines().find_map(|l| l.strip_prefix("# delays_ns ")).unwrap_or_default();
    let sends = lines.skip_while(|l| !l.ends_with("sequence")).skip(1).map(|l| {
        let (at, sequence) = l.split_once(',').expect("two columns");
        (at.parse().expect("microseconds"), sequence.parse().expect("bytes"))
    });
    let ns = |text: &str| Span::ns(text.parse().expect("nanoseconds"));
    Vector {
        tick_phase: ns(phase),
        delays: delays.split_whitespace().map(ns).collect(),
        sends: sends.collect(),
    }
}

fn profile(case: &Case, tick_phase: Span) -> Profile {
    let mut settings = profile_settings("ns2").expect("built in");
    for (name, value) in [
        ("recovery", Value::Choice(case.recovery)),
        ("max_window", Value::Integer(case.window)),
        ("mss", Value::Size(Size::Bytes(Bytes::new(case.mss)))),
        ("ack_every", Value::Integer(case.ack_every)),
        ("ecn", Value::Flag(case.ecn)),
        ("tick_phase", Value::Span(tick_phase)),
        ("send_jitter", Value::Span(case.jitter)),
    ] {
        settings.set(name, value, Origin::Given);
    }
    Profile::resolve(&mut settings).expect("consistent")
}

/// Returns the faults of a case: packets to drop at the entrance, by number, and packets to mark at
/// the second link, by number among the remaining packets.
fn faults(drop: Vec<u64>, mark: Vec<u64>) -> Faults {
    let mut passed = 0;
    Box::new(move |n, _| {
        if drop.contains(&n) {
            return Fate::Drop;
        }
        passed += 1;
        if mark.contains(&(passed - 1)) { Fate::Mark } else { Fate::Pass }
    })
}

/// Returns the segments of our sender in this case.
fn run(case: &Case, theirs: &Vector) -> Vec<(u64, u64)> {
    let fast = || Link::new(Rate::mbit(10), Span::ms(10), 1000);
    // ns-2's DropTail also counts the packet that is arriving, so a `limit` of 10 lets 9 packets
    // wait.
    let slow = |limit: usize| Link::new(Rate::mbit(1), Span::ms(20), limit - 1);
    let there = Path::new([fast(), slow(case.queue)], faults(case.drop.clone(), case.mark.clone()));
    let back = Path::new([slow(1000), fast()], faults(case.drop_ack.clone(), Vec::new()));
    let mut net = Pair::new(profile(case, theirs.tick_phase), [there, back]);
    net.sides[A].delays = theirs.delays.clone();
    for (i, (at, packets)) in case.writes.iter().enumerate() {
        net.run_until(*at);
        net.now = *at;
        if i == 0 {
            net.open(*at);
        }
        net.with(A, |e, _, _| e.write(packets.map_or(ENDLESS, |n| n * case.mss)));
    }
    net.run_until(case.end);
    let sends = net.sides[A].data_sent().into_iter();
    sends.map(|(at, seq, _)| (at.as_ns(), u64::from(seq) - 1)).collect()
}

/// Leaves out the last events of a run, which depend on the order of simultaneous events.
fn before(end: Instant, sends: Vec<(u64, u64)>, per_second: u64) -> Vec<(u64, u64)> {
    let end = (end.as_ns() / 1_000 - 10) * (per_second / 1_000_000);
    sends.into_iter().filter(|(at, _)| *at < end).collect()
}

/// Compares the segments; returns the largest difference in nanoseconds, or the point of
/// divergence.
fn compare(theirs: &[(u64, u64)], ours: &[(u64, u64)]) -> Result<u64, String> {
    let mut largest = 0;
    for (i, (t, o)) in theirs.iter().zip(ours).enumerate() {
        let difference = (t.0 * 1000).abs_diff(o.0);
        if difference > 1000 || t.1 != o.1 {
            let from = i.saturating_sub(4);
            let window = |v: &[(u64, u64)], unit| {
                let near = v[from..v.len().min(i + 6)].iter();
                near.map(|(at, s)| format!("\n    {} us, byte {s}", at / unit)).collect::<String>()
            };
            return Err(format!("segment {i}:\n  ns-2:{}\n  ours:{}", window(theirs, 1), window(ours, 1000)));
        }
        largest = largest.max(difference);
    }
    if theirs.len() != ours.len() {
        return Err(format!("ns-2 sent {} segments, we {}", theirs.len(), ours.len()));
    }
    Ok(largest)
}

/// Compares all cases with the vectors that `read` supplies, and prints the table in
/// docs/validation.md.
fn check(cases: &[Case], read: impl Fn(&Case) -> String) {
    let mut failures = String::new();
    println!("| case | segments compared | largest difference (us) |\n|---|---|---|");
    for case in cases {
        let theirs = vector(&read(case));
        let ours = before(case.end, run(case, &theirs), 1_000_000_000);
        let theirs = before(case.end, theirs.sends, 1_000_000);
        match compare(&theirs, &ours) {
            Ok(ns) => println!("| {} | {} | {:.2} |", case.name, theirs.len(), ns as f64 / 1000.0),
            Err(why) => failures.push_str(&format!("\n{}\n{why}", case.line)),
        }
    }
    assert!(failures.is_empty(), "{failures}");
}

fn ns2_is_missing() -> bool {
    let missing = Command::new("ns").arg("-h").output().is_err();
    if missing {
        println!("skipped: ns-2 (`ns`) is not installed");
    }
    missing
}

/// Returns what ns-2 prints for a case of this table.
fn ask_ns2(table: &FilePath, case: &Case) -> String {
    let output = Command::new("ns")
        .arg("peers/ns2/single_flow.tcl")
        .args([table.as_os_str(), case.name.as_ref()])
        .current_dir(root())
        .output()
        .expect("ns-2 runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn equals_the_recorded_vectors() {
    check(&cases(), |case| {
        let path = root().join(format!("vectors/ns2-single-flow/{}.csv", case.name));
        std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    });
}

#[test]
fn equals_ns2_run_now() {
    if !ns2_is_missing() {
        check(&cases(), |case| ask_ns2("vectors/ns2-single-flow/cases.csv".as_ref(), case));
    }
}

/// Returns a case with random faults in both directions, marks, windows, queues and sinks; the
/// number of the case determines everything.
fn random_case(number: u64) -> String {
    let mut state = 0x9E37_79B9_7F4A_7C15u64.wrapping_mul(number + 1);
    let mut below = |n: u64| {
        // xorshift64* (Vigna 2016)
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        (state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % n
    };
    let recovery = Recovery::WORDS[(number % 3) as usize];
    let syn_lost = below(2) == 1;
    let mut list = |most: u64, from: u64, among: u64| {
        let mut numbers: Vec<u64> = (0..below(most + 1)).map(|_| from + below(among)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    };
    let mut drop = list(14, 1, 120);
    if syn_lost {
        drop.insert(0, 0);
    }
    let (drop_ack, mark) = (list(10, 0, 120), list(16, 1, 120));
    if recovery == "sack" {
        // More simultaneous holes than an option has blocks, with some retransmissions lost.
        drop.extend(list(24, 40, 50));
        drop.sort_unstable();
        drop.dedup();
    }
    let text = |numbers: Vec<u64>| numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(" ");
    let (drop, drop_ack, mark) = (text(drop), text(drop_ack), text(mark));
    let window = 2 + below(60);
    let mss = [536, 1000, 1460][below(3) as usize];
    let sink = ["every", "second"][below(2) as usize];
    let ecn = below(2);
    // With small segments, arrivals and departures at the bottleneck often coincide, and the rounding of
    // ns-2's clock determines which comes first at a full queue.
    let small = 4 + below(40);
    let queue = if mss == 536 { 1000 } else { [1000, small][below(2) as usize] };
    let mark = if ecn == 1 { mark } else { String::new() };
    let jitter = ["", "", "1000", "10000"][below(4) as usize];
    format!(
        "random_{number},{recovery},{window},{mss},{sink},{ecn},{queue},{drop},{drop_ack},{mark},0.1:inf,20,{jitter}"
    )
}

#[test]
fn equals_ns2_in_random_cases() {
    if ns2_is_missing() {
        return;
    }
    let count = std::env::var("AQMLAB_NS2_RANDOM_CASES").map_or(20, |n| n.parse().expect("a count"));
    let lines: Vec<String> = (0..count).map(random_case).collect();
    let header = "case,recovery,window,mss,sink,ecn,queue,drop,drop_ack,mark,writes,end_s,jitter_us";
    let table = std::env::temp_dir().join(format!("aqmlab-random-cases-{}.csv", std::process::id()));
    std::fs::write(&table, format!("{header}\n{}\n", lines.join("\n"))).expect("a temporary file");
    let cases: Vec<Case> = lines.iter().map(|l| case(l)).collect();
    check(&cases, |case| ask_ns2(&table, case));
    std::fs::remove_file(&table).expect("just written");
}
