//! Short connections of the profile `linux` compared with those of Linux 6.1 in virtual time, segment by
//! segment and from the SYN on: `vectors/linux-short-flows` records what two kernels send each other over two
//! links with chosen losses and delays. Every SYN and every segment with data, of both sides, must leave in the
//! same order, with the same length and within [`CLOCK`] of the same time. The exceptions are the cases in
//! `differences.csv`.

mod support;

use std::collections::BTreeMap;

use aqmlab_params::{Origin, Value};
use aqmlab_transport::{Flags, Profile, Segment, State, profile_settings};
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Instant, Rate, Span};
use support::vectors::{Row, number, seconds, table, words};
use support::{A, B, Fate, Faults, Link, Pair, Path};

/// The limit on the difference between two times. It allows for the readings of the kernel's clock and for the
/// kernel's SYN, which is longer than ours.
const CLOCK: Span = Span::us(60);
/// The delay added in each direction because each reading of the kernel's clock advances that clock by 256 ns.
const READINGS: Span = Span::ns(3_400);
/// The kernel's clock of ticks (jiffies) when its clock of nanoseconds was zero: both count from the start of the
/// kernel, the former from -300 s modulo 2^32 ticks. The sum of both is a multiple of the coarsest step of the
/// timing wheel that matters here, 32.768 s.
const TICKS_AHEAD: Span = Span::ms(27_680);

fn profile(case: &Row) -> Profile {
    let mut settings = profile_settings("linux").expect("built in");
    let timestamps = case["timestamps"] != "0";
    let mut set = |name, value| settings.set(name, value, Origin::Given);
    set("congestion", Value::Choice(if case["congestion"] == "cubic" { "cubic" } else { "reno" }));
    set("timestamps", Value::Flag(timestamps));
    set("eifel", Value::Flag(timestamps));
    // Twice SO_RCVBUF is the buffer, and half of that the window; it grows with the first 339 segments.
    set("quick_acks_growing", Value::Integer(339));
    set("receive_window", Value::Size(Size::Bytes(Bytes::new((1 << 20) - 1448))));
    if !timestamps {
        set("mss", Value::Size(Size::Bytes(Bytes::new(1460))));
        set("header", Value::Size(Size::Bytes(Bytes::new(40))));
        set("sack_blocks", Value::Integer(4));
    }
    Profile::resolve(&mut settings).expect("consistent")
}

/// Returns the faults of one direction: packets are named as `S`, by the number of a data segment or as `A` and
/// the number of a pure acknowledgment, followed by `:` and the number of the copy unless it is the first.
fn faults(case: &Row, side: &str, mss: u32) -> Faults {
    let drop = words(case, &format!("drop_{side}"));
    let late: BTreeMap<String, Span> = words(case, &format!("late_{side}"))
        .iter()
        .map(|word| word.split_once('=').expect("a delay"))
        .map(|(name, ms)| (name.into(), Span::ms(number(ms))))
        .collect();
    let (mut acks, mut seen) = (0, BTreeMap::new());
    Box::new(move |_, segment| {
        let mut name = if segment.flags.has(Flags::SYN) {
            "S".into()
        } else if segment.len > 0 {
            ((segment.seq - 1) / mss).to_string()
        } else {
            acks += 1;
            format!("A{}", acks - 1)
        };
        let copy = seen.entry(name.clone()).or_insert(0);
        *copy += 1;
        if *copy > 1 {
            name = format!("{name}:{copy}");
        }
        match late.get(&name) {
            _ if drop.contains(&name) => Fate::Drop,
            Some(span) => Fate::Late(*span),
            None => Fate::Pass,
        }
    })
}

/// A SYN or a data segment: when it left after the first SYN, its offset in the stream (none for a SYN), and its
/// length.
type Sent = (Span, Option<u64>, u64);

/// The client's requests and the server's responses, in bytes.
fn exchanges(case: &Row, mss: u32) -> Vec<(u64, u64)> {
    let size = |n: &str| number(n) * u64::from(mss) - number(&case["short_of_full"]);
    let pair = |word: &String| word.split_once('/').map(|(a, b)| (size(a), size(b))).expect("two sizes");
    words(case, "exchanges").iter().map(pair).collect()
}

/// Returns what the client and the server of our connection send if it opens at `start`.
fn ours(case: &Row, start: Instant) -> [Vec<Sent>; 2] {
    let profile = profile(case);
    let delay = Span::ms(number(&case["delay_ms"])).div(2);
    let fast = || Link::new(Rate::mbit(100), delay, usize::MAX);
    let slow = || Link::new(Rate::mbit(10), delay + READINGS, usize::MAX);
    let there = Path::new([fast(), slow()], faults(case, "client", profile.mss));
    let back = Path::new([slow(), fast()], faults(case, "server", profile.mss));
    let (exchanges, think) = (exchanges(case, profile.mss), Span::ms(number(&case["think_ms"])));
    let mut net = Pair::new(profile, [there, back]);
    net.now = start;
    net.open(start);
    let end = start + seconds(&case["end_s"]);
    let (mut asked, mut answered, mut ask_at) = (0, 0, None);
    let total = |side: fn(&(u64, u64)) -> u64, n: usize| exchanges[..n].iter().map(side).sum::<u64>();
    loop {
        if answered < exchanges.len() && net.sides[B].delivered() >= total(|e| e.0, answered + 1) {
            answered += 1;
            net.with(B, |e, _, _| e.write(exchanges[answered - 1].1));
            continue;
        }
        if ask_at.is_none() && asked < exchanges.len() {
            ask_at = match asked {
                0 => (net.sides[A].endpoint.state() == State::Established).then_some(net.now),
                _ => (net.sides[A].delivered() >= total(|e| e.1, asked)).then_some(net.now + think),
            };
        }
        let next = net.next_event();
        if let Some(at) = ask_at
            && next.is_none_or(|next| at <= next)
        {
            (net.now, ask_at, asked) = (at, None, asked + 1);
            net.with(A, |e, _, _| e.write(exchanges[asked - 1].0));
            continue;
        }
        if next.is_none_or(|next| next > end) {
            break;
        }
        net.step();
    }
    net.sides.map(|side| {
        let counted = |(_, s): &&(Instant, Segment)| s.len > 0 || s.flags.has(Flags::SYN);
        let sent = side.sent.iter().filter(counted);
        sent.map(|(at, s)| {
            let offset = (!s.flags.has(Flags::SYN)).then(|| u64::from(s.seq) - 1);
            (*at - start, offset, u64::from(s.len))
        })
        .collect()
    })
}

/// Returns what the client's and the server's kernel sent, and when the first SYN left on the clock of ticks.
fn theirs(case: &Row) -> (Instant, [Vec<Sent>; 2]) {
    let rows = table(FOLDER, &format!("{}.csv", case["case"]));
    let start = number(&rows[0]["time_ns"]);
    let sent = ["c", "s"].map(|side| {
        let of_side = rows.iter().filter(|row| row["from"] == side);
        let counted = of_side.filter(|row| row["length"] != "0" || row["flags"].contains('S'));
        counted
            .map(|row| {
                let offset = (!row["sequence"].is_empty()).then(|| number(&row["sequence"]));
                (Span::ns(number(&row["time_ns"]) - start), offset, number(&row["length"]))
            })
            .collect()
    });
    (Instant::ZERO + Span::ns(start) + TICKS_AHEAD, sent)
}

const FOLDER: &str = "linux-short-flows";

/// Returns the largest permitted difference between two times.
fn clock(elapsed: Span) -> Span {
    CLOCK + elapsed.div(50_000)
}

/// Returns the number of segments that agree.
fn together(theirs: &[Sent], ours: &[Sent]) -> usize {
    let agrees = |(t, o): &(&Sent, &Sent)| {
        let apart = t.0.saturating_sub(o.0).max(o.0.saturating_sub(t.0));
        (t.1, t.2) == (o.1, o.2) && apart <= clock(t.0)
    };
    theirs.iter().zip(ours).take_while(agrees).count()
}

fn near(sends: &[Sent], at: usize, mss: u64) -> String {
    let shown = sends[at.saturating_sub(4).min(sends.len())..].iter().take(9);
    shown
        .map(|(at, offset, len)| {
            let what =
                offset.map_or("SYN".into(), |offset| format!("{:.2} ({len} B)", offset as f64 / mss as f64));
            format!("\n    {:.3} ms, {what}", at.as_ns() as f64 / 1e6)
        })
        .collect()
}

#[test]
fn short_connections_send_what_linux_sends() {
    let excused: BTreeMap<String, Row> =
        table(FOLDER, "differences.csv").into_iter().map(|row| (row["case"].clone(), row)).collect();
    let only = std::env::var("AQMLAB_LINUX_CASE").ok();
    let (mut failures, mut agree, mut count) = (String::new(), 0, 0);
    println!("| case | segments | together |\n|---|---|---|");
    for case in table(FOLDER, "cases.csv") {
        let name = &case["case"];
        if only.as_ref().is_some_and(|only| !name.contains(only)) {
            continue;
        }
        let (start, theirs) = theirs(&case);
        let ours = ours(&case, start);
        let same = [A, B].map(|side| together(&theirs[side], &ours[side]));
        let whole = |side: usize| same[side] == theirs[side].len() && same[side] == ours[side].len();
        let segments = theirs[A].len() + theirs[B].len();
        (agree, count) = (agree + usize::from(whole(A) && whole(B)), count + 1);
        println!("| {name} | {segments} | {} |", same[A] + same[B]);
        let expected = excused.get(name).map(|row| number(&row["together"]) as usize);
        if (whole(A) && whole(B)) != expected.is_none() || expected.is_some_and(|e| same[A] + same[B] != e) {
            failures.push_str(&format!("\n{name}: {same:?} together, {expected:?} listed"));
            for side in [A, B].into_iter().filter(|side| !whole(*side)) {
                let (t, o) = (near(&theirs[side], same[side], 1448), near(&ours[side], same[side], 1448));
                failures.push_str(&format!("\n  {} of Linux:{t}\n  ours:{o}", ["client", "server"][side]));
            }
        }
    }
    println!("{agree} of {count} agree");
    assert!(failures.is_empty(), "{agree} of {count} agree{failures}");
}
