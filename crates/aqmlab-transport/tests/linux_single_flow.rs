//! The profile `linux` compared with Linux 6.1 in virtual time, segment by segment:
//! `vectors/linux-single-flow` records the segments that the kernel's sender sends over two links
//! with chosen losses and marks. The order and lengths of segments must be equal, and their times,
//! including those set by timers, must agree within [`CLOCK`]. The exceptions are the cases in
//! `differences.csv`, which lists where and why each of them diverges.

mod support;

use std::collections::BTreeMap;

use aqmlab_params::{Origin, Value};
use aqmlab_transport::{Profile, profile_settings};
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Instant, Rate, Span};
use support::vectors::{Row, number, seconds, table, words};
use support::{A, Fate, Faults, Link, Pair, Path, ms};

/// The limit on the difference between two times. It allows for the clock of the vectors, which is
/// accurate to 5 us, for the phase of our clock, which takes only the values in [`PHASES`], and for the kernel's SYN, which is longer than ours.
const CLOCK: Span = Span::us(50);

const FOLDER: &str = "linux-single-flow";
/// The same with segmentation offload.
const OFFLOAD: &str = "linux-offload";

fn profile(case: &Row) -> Profile {
    let offload = case.get("offload").is_some_and(|on| on == "1");
    let mut settings = profile_settings(if offload { "linux_offload" } else { "linux" }).expect("built in");
    let on = |column: &str| case[column] != "0";
    let mut set = |name, value| settings.set(name, value, Origin::Given);
    let controls = ["reno", "cubic", "dctcp"];
    let control = controls.into_iter().find(|name| *name == case["congestion"]);
    set("congestion", Value::Choice(control.expect("one of ours")));
    set("recovery", Value::Choice(if on("sack") { "sack" } else { "newreno" }));
    set("ecn", Value::Flag(on("ecn")));
    set("nagle", Value::Flag(on("nagle")));
    set("rack", Value::Flag(on("rack")));
    set("tail_loss_probe", Value::Flag(on("tlp")));
    set("frto", Value::Flag(on("frto")));
    set("timestamps", Value::Flag(on("timestamps")));
    // Only late segments have old time stamps.
    set("paws", Value::Flag(on("timestamps") && !case["late"].is_empty()));
    set("dsack", Value::Flag(on("dsack")));
    set("eifel", Value::Flag(on("timestamps")));
    set("sack_delay_most", Value::Integer(number(&case["ack_compression"])));
    // With DCTCP, Linux sets ECT on each packet, including retransmitted segments (see the column
    // `ecn` of the vectors).
    set("ect_on_retransmission", Value::Flag(case["congestion"] == "dctcp"));
    // The receive window grows from nearly 64 KiB to half of the buffer, by two segments for each
    // segment that arrives.
    let buffer = number(&case["receive_buffer"]);
    let growing = if buffer > 1 << 17 { 339 } else { 22 + u64::from(on("timestamps")) };
    set("quick_acks_growing", Value::Integer(growing));
    // Half of the buffer, minus a segment that is held back.
    let mss = if on("timestamps") { 1448 } else { 1460 };
    set("receive_window", Value::Size(Size::Bytes(Bytes::new(buffer - mss))));
    if !on("timestamps") {
        set("mss", Value::Size(Size::Bytes(Bytes::new(1460))));
        set("header", Value::Size(Size::Bytes(Bytes::new(40))));
        set("sack_blocks", Value::Integer(4));
    }
    Profile::resolve(&mut settings).expect("consistent")
}

/// Parses words of the form `segment` or `segment:n`, which select the first or the nth
/// transmission of a data segment. Segments are numbered by their position in the data.
fn listed(words: &[String]) -> Vec<(u64, u64)> {
    let pair = |word: &String| {
        let (segment, nth) = word.split_once(':').unwrap_or((word, "1"));
        (number(segment), number(nth))
    };
    words.iter().map(pair).collect()
}

fn data_faults(case: &Row, mss: u32) -> Faults {
    let (drop, mark) = (listed(&words(case, "drop")), listed(&words(case, "mark")));
    let mut late = listed(&words(case, "late"));
    let mut seen = BTreeMap::new();
    Box::new(move |_, segment| {
        if segment.len == 0 {
            return Fate::Pass;
        }
        let nth = seen.entry(segment.seq).or_insert(0);
        *nth += 1;
        let this = (u64::from((segment.seq - 1) / mss), *nth);
        match this {
            _ if drop.contains(&this) => Fate::Drop,
            _ if mark.contains(&this) => Fate::Mark,
            (number, _) => match late.iter().position(|late| late.0 == number) {
                Some(at) => Fate::Late(Span::ms(late.remove(at).1)),
                None => Fate::Pass,
            },
        }
    })
}

/// Returns the faults that affect ACKs, by the number of the ACK; the SYN-ACK does not count.
fn ack_faults(case: &Row) -> Faults {
    let drop: Vec<u64> = words(case, "drop_ack").iter().map(|n| number(n)).collect();
    Box::new(move |n, _| if n > 0 && drop.contains(&(n - 1)) { Fate::Drop } else { Fate::Pass })
}

/// A data segment: its send time relative to that of the first one, its offset in the stream and its length.
type Sent = (Span, u64, u64);

/// Start times that are tried, as step sizes and spans, in this order until one gives agreement: CUBIC's time
/// steps and the ticks of timers depend on the start time, and the vectors do not contain it. Timers of half a
/// second and more have ticks of 64 ms.
const PHASES: [(Span, Span); 4] = [
    (Span::us(10), Span::ms(8)),
    (Span::us(100), Span::ms(64)),
    (Span::us(1), Span::ms(8)),
    (Span::us(10), Span::ms(64)),
];
/// The delay added in each direction because each reading of the kernel's clock advances that clock by 256
/// ns.
const READINGS: Span = Span::ns(3_400);

/// Returns the segments of our sender if it opens the connection at `phase`.
fn ours(case: &Row, phase: Span) -> Vec<Sent> {
    let profile = profile(case);
    let mss = profile.mss;
    let fast = || Link::new(Rate::mbit(100), Span::ms(10), usize::MAX);
    let slow = || Link::new(Rate::mbit(10), Span::ms(20) + READINGS, usize::MAX);
    let there = Path::new([fast(), slow()], data_faults(case, mss));
    let back = Path::new([slow(), fast()], ack_faults(case));
    let mut net = Pair::new(profile, [there, back]);
    net.now = Instant::ZERO + phase;
    net.open(net.now);
    while net.sides[A].endpoint.state() != aqmlab_transport::State::Established {
        assert!(net.step());
    }
    let open = net.now;
    for word in words(case, "writes") {
        let (at, much) = word.split_once(':').expect("time:segments");
        let bytes = much.strip_suffix('B').map_or_else(|| number(much) * u64::from(mss), number);
        net.run_until(open + seconds(at));
        net.now = open + seconds(at);
        net.with(A, |e, _, _| e.write(bytes));
    }
    net.run_until(ms(0) + phase + seconds(&case["end_s"]));
    let sent = net.sides[A].data_sent();
    let first = sent[0].0;
    sent.into_iter().map(|(at, seq, len)| (at - first, u64::from(seq) - 1, u64::from(len))).collect()
}

fn theirs(folder: &str, case: &Row) -> Vec<Sent> {
    let rows = table(folder, &format!("{}.csv", case["case"]));
    let data = rows.iter().filter(|row| row["from"] == "s" && row["length"] != "0");
    data.map(|row| (Span::ns(number(&row["time_ns"])), number(&row["sequence"]), number(&row["length"])))
        .collect()
}

/// Returns the largest permitted difference between two times.
fn clock(elapsed: Span) -> Span {
    CLOCK + elapsed.div(50_000)
}

/// Returns the number of segments that agree, and the largest difference between their times.
fn together(theirs: &[Sent], ours: &[Sent]) -> (usize, Span) {
    let mut largest = Span::ZERO;
    for (n, (t, o)) in theirs.iter().zip(ours).enumerate() {
        let apart = t.0.saturating_sub(o.0).max(o.0.saturating_sub(t.0));
        if (t.1, t.2) != (o.1, o.2) || apart > clock(t.0) {
            return (n, largest);
        }
        largest = largest.max(apart);
    }
    (theirs.len().min(ours.len()), largest)
}

/// Finds the phase with which our flow agrees longest with the kernel's flow.
fn best_phase(case: &Row, theirs: &[Sent], tried: &[(Span, Span)]) -> (usize, Span, Vec<Sent>) {
    let mut best: Option<(usize, Span, Vec<Sent>)> = None;
    let phases =
        |&(step, span): &(Span, Span)| (0..span.as_ns() / step.as_ns()).map(move |n| step.saturating_mul(n));
    for phase in tried.iter().flat_map(phases) {
        let ours = ours(case, phase);
        let (same, largest) = together(theirs, &ours);
        let whole = same == theirs.len() && same == ours.len();
        if best.as_ref().is_none_or(|(most, ..)| same > *most) || whole {
            best = Some((same, largest, ours));
        }
        if whole {
            break;
        }
    }
    best.expect("at least one phase")
}

fn near(sends: &[Sent], at: usize, mss: u64) -> String {
    let shown = sends[at.saturating_sub(3)..].iter().take(8);
    shown
        .map(|(at, seq, len)| {
            format!("\n    {:.3} ms, {} ({len} B)", at.as_ns() as f64 / 1e6, *seq as f64 / mss as f64)
        })
        .collect()
}

#[test]
fn sends_what_linux_sends() {
    compare(FOLDER);
}

/// The kernel hands several segments down at once, and PSH is on the last of them.
#[test]
fn sends_what_linux_sends_with_segmentation_offload() {
    compare(OFFLOAD);
}

/// Compares all cases of a folder, and prints them.
fn compare(folder: &str) {
    let excused: BTreeMap<String, Row> =
        table(folder, "differences.csv").into_iter().map(|row| (row["case"].clone(), row)).collect();
    let only = std::env::var("AQMLAB_LINUX_CASE").ok();
    let mut failures = String::new();
    println!("| case | segments | together | largest difference (us) |\n|---|---|---|---|");
    for case in table(folder, "cases.csv") {
        let name = &case["case"];
        if only.as_ref().is_some_and(|only| !name.contains(only)) {
            continue;
        }
        let theirs = theirs(folder, &case);
        let expected = excused.get(name).map(|row| number(&row["together"]) as usize);
        // A case that is known to diverge does so at any phase.
        let tried = if expected.is_some() { &PHASES[..1] } else { &PHASES[..] };
        let (same, largest, ours) = best_phase(&case, &theirs, tried);
        println!("| {name} | {} | {same} | {:.1} |", theirs.len(), largest.as_ns() as f64 / 1e3);
        let whole = same == theirs.len() && same == ours.len();
        let as_listed = match expected {
            Some(count) => !whole && same == count,
            None => whole,
        };
        if !as_listed {
            let mss = if case["timestamps"] == "1" { 1448 } else { 1460 };
            let (t, o) = (near(&theirs, same, mss), near(&ours, same.min(ours.len()), mss));
            failures.push_str(&format!(
                "\n{name}: {same} together, {expected:?} listed\n  Linux:{t}\n  ours:{o}"
            ));
        }
    }
    assert!(failures.is_empty(), "{failures}");
}
