//! Connections compared with ns-2's two-way agent (Agent/TCP/FullTcp/Newreno), packet by packet. The vectors
//! and their origin: `vectors/ns2-full-flow/README.md`.

mod support;

use std::cell::RefCell;
use std::fmt::Write;
use std::path::Path as File;
use std::process::Command;
use std::rc::Rc;

use aqmlab_params::{Origin, Value};
use aqmlab_transport::{Flags, Profile, State, profile_settings};
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Instant, Rate, Span};
use support::vectors::{Row, number, seconds, table, words};
use support::{A, B, Fate, Faults, Link, Pair, Path};

/// ns-2 traces microseconds, and both round transmission times.
const CLOCK: Span = Span::us(3);
const FIRST: Span = Span::ms(120);
/// Bits of a TCP header that are compared: FIN, SYN, ECE and CWR.
const BITS: [(u32, Flags); 4] =
    [(0x01, Flags::FIN), (0x02, Flags::SYN), (0x40, Flags::ECE), (0x80, Flags::CWR)];

/// One packet: its time, sequence number, payload, acknowledgment and flags.
type Packet = (Instant, u32, u32, u32, u32);

/// A request and its response, and the pause before them.
#[derive(Clone, Copy)]
struct Exchange {
    gap: Span,
    request: u64,
    response: u64,
}

fn exchanges(case: &Row) -> Vec<Exchange> {
    let exchange = |word: &String| {
        let fields: Vec<&str> = word.split(':').collect();
        Exchange { gap: seconds(fields[0]), request: number(fields[1]), response: number(fields[2]) }
    };
    words(case, "exchanges").iter().map(exchange).collect()
}

fn recorded(case: &Row) -> String {
    let name = format!("../../vectors/ns2-full-flow/{}.csv", case["case"]);
    let path = File::new(env!("CARGO_MANIFEST_DIR")).join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Returns the packets that each side of ns-2's connection sent, and the phase of its clocks.
fn theirs(text: &str) -> ([Vec<Packet>; 2], Span) {
    let phase = text.lines().next().and_then(|line| line.strip_prefix("# tick_phase_ns ")).expect("a phase");
    let mut sides = [Vec::new(), Vec::new()];
    for line in text.lines().skip(1).filter(|line| !line.starts_with("time_s")) {
        let f: Vec<&str> = line.split([',', ' ']).collect();
        let flags = u32::from_str_radix(f[5].trim_start_matches("0x"), 16).expect("flags");
        let flags = flags & BITS.iter().map(|(bit, _)| bit).sum::<u32>();
        let ack = f[4].parse::<i64>().expect("a number").max(0) as u32;
        let packet = (Instant::ZERO + seconds(f[0]), number(f[2]) as u32, number(f[3]) as u32, ack, flags);
        sides[usize::from(f[1] == "s")].push(packet);
    }
    (sides, Span::ns(number(phase)))
}

fn drops(case: &Row, column: &str) -> Faults {
    let numbers: Vec<u64> = words(case, column).iter().map(|word| number(word)).collect();
    Box::new(move |n, _| if numbers.contains(&n) { Fate::Drop } else { Fate::Pass })
}

/// Returns the packets that each side of our connection sends, with these settings changed.
fn ours(case: &Row, phase: Span, changed: &[(&'static str, Value)]) -> [Vec<Packet>; 2] {
    let mut settings = profile_settings("ns2_fulltcp").expect("built in");
    let given = [
        ("mss", Value::Size(Size::Bytes(Bytes::new(1460)))),
        ("max_window", Value::Integer(number(&case["window"]))),
        ("initial_window", Value::Integer(number(&case["initial"]))),
        ("ack_every", Value::Integer(number(&case["every"]))),
        ("nagle", Value::Flag(false)),
        ("ecn", Value::Flag(true)),
        ("tick_phase", Value::Span(phase)),
    ];
    for (name, value) in given.into_iter().chain(changed.iter().cloned()) {
        settings.set(name, value, Origin::Given);
    }
    let profile = Profile::resolve(&mut settings).expect("consistent");
    let near = || Link::new(Rate::mbit(10), Span::ms(10), usize::MAX);
    let far = || Link::new(Rate::mbit(4), Span::ms(number(&case["delay_ms"])), usize::MAX);
    let paths = [
        Path::new([near(), far()], drops(case, "drop")),
        Path::new([far(), near()], drops(case, "drop_back")),
    ];
    let mut pair = Pair::new(profile, paths);

    let list = exchanges(case);
    let closes = case["close"].clone();
    // The time of the next request, which the applications set.
    let next = Rc::new(RefCell::new(Some(Instant::ZERO + FIRST)));
    let (requests, answers): (Vec<u64>, Vec<u64>) = {
        let sums = |each: fn(&Exchange) -> u64| {
            list.iter()
                .scan(0, move |sum, e| {
                    *sum += each(e);
                    Some(*sum)
                })
                .collect()
        };
        (sums(|e| e.request), sums(|e| e.response))
    };
    let (mut answered, mut heard) = (0, 0);
    let (planned, all, closing) = (Rc::clone(&next), list.clone(), closes.clone());
    pair.applications = Some(Box::new(move |side, endpoint, now| {
        let delivered = endpoint.delivered().get();
        if side == B && answered < all.len() && delivered == requests[answered] {
            endpoint.write(all[answered].response);
            answered += 1;
            if answered == all.len() && closing == "s" {
                endpoint.close();
            }
        }
        if side == A && heard < all.len() && delivered == answers[heard] && delivered > 0 {
            heard += 1;
            if heard < all.len() {
                *planned.borrow_mut() = Some(now + all[heard].gap);
            } else if closing == "c" {
                endpoint.close();
            }
        }
    }));
    let end = Instant::ZERO + seconds(&case["end_s"]);
    let mut asked = 0;
    loop {
        let request = *next.borrow();
        match (request, pair.next_event()) {
            (Some(at), event) if event.is_none_or(|event| at <= event) => {
                *next.borrow_mut() = None;
                let bytes = list[asked].request;
                pair.now = at;
                pair.with(A, |e, now, p| {
                    e.write(bytes);
                    e.open(now, p);
                });
                asked += 1;
            }
            (_, Some(event)) if event <= end => {
                pair.step();
                // The side that does not close first closes once it has acknowledged the FIN of the other.
                for side in [A, B] {
                    if pair.sides[side].endpoint.state() == State::CloseWait {
                        pair.with(side, |e, _, _| e.close());
                    }
                }
            }
            _ => break,
        }
    }
    pair.sides.map(|side| {
        side.sent
            .iter()
            .map(|(at, s)| {
                let flags = BITS.iter().filter(|(_, flag)| s.flags.has(*flag)).map(|(bit, _)| bit).sum();
                (*at, s.seq, s.len, s.ack, flags)
            })
            .collect()
    })
}

fn same(a: &Packet, b: &Packet) -> bool {
    let apart = Span::ns(a.0.as_ns().abs_diff(b.0.as_ns()));
    (a.1, a.2, a.3, a.4) == (b.1, b.2, b.3, b.4) && apart <= CLOCK
}

/// Returns the first difference between two sequences of packets.
fn difference(mine: &[Packet], other: &[Packet]) -> Option<String> {
    let number = (0..mine.len().max(other.len())).find(|i| match (mine.get(*i), other.get(*i)) {
        (Some(a), Some(b)) => !same(a, b),
        _ => true,
    })?;
    let mut text = format!("packet {number}:");
    for (whose, packets) in [("ours", mine), ("ns-2", other)] {
        for (at, seq, len, ack, flags) in packets.iter().skip(number.saturating_sub(2)).take(5) {
            let _ = write!(text, "\n  {whose} {:.6} {seq} {len} {ack} {flags:#04x}", at.as_ns() as f64 / 1e9);
        }
    }
    Some(text)
}

fn compare(case: &Row, text: &str, changed: &[(&'static str, Value)]) -> Option<String> {
    let (theirs, phase) = theirs(text);
    let ours = ours(case, phase, changed);
    let hosts = ["client", "server"].iter().zip(ours.iter().zip(&theirs));
    hosts.filter_map(|(host, (a, b))| Some(format!("{host}, {}", difference(a, b)?))).next()
}

#[test]
fn equals_the_recorded_vectors() {
    let mut wrong = String::new();
    for case in table("ns2-full-flow", "cases.csv") {
        if let Some(found) = compare(&case, &recorded(&case), &[]) {
            let _ = writeln!(wrong, "{}: {found}", case["case"]);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// For each rule of the table of cases: the value that the parameter had before the rule was known.
fn without(rule: &str) -> Vec<(&'static str, Value)> {
    let choice = |name, word| vec![(name, Value::Choice(word))];
    match rule {
        "increase" => choice("increase", "per_ack"),
        "recovery_window" => choice("recovery_window", "rfc6582"),
        "timeout_ssthresh" => choice("timeout_ssthresh", "ns2"),
        "answer_repeated_syn" => vec![("answer_repeated_syn", Value::Flag(true))],
        "keep_syn_backoff" => vec![("keep_syn_backoff", Value::Flag(true))],
        "syn_loss_window" => choice("syn_loss_window", "rfc5681"),
        "idle_restart" => choice("idle_restart", "rfc5681"),
        "hold_last_byte" => vec![("hold_last_byte", Value::Flag(false))],
        "timer_uses_sample" => vec![("timer_uses_sample", Value::Flag(true))],
        "ack_ends_backoff" => vec![("ack_ends_backoff", Value::Flag(false))],
        other => panic!("no rule `{other}`"),
    }
}

/// Prints, for each case, what the rule changes: the time of the last data in ns-2, with the
/// rule and without it, and the number of packets before the first difference.
#[test]
fn table_of_the_rules() {
    let last = |sides: &[Vec<Packet>; 2]| {
        let data = sides.iter().flatten().filter(|packet| packet.2 > 0).map(|packet| packet.0);
        data.max().map_or(0.0, |at| at.as_ns() as f64 / 1e9)
    };
    for case in table("ns2-full-flow", "cases.csv") {
        let (theirs, phase) = theirs(&recorded(&case));
        let [after, before] = [vec![], without(&case["rule"])].map(|changed| ours(&case, phase, &changed));
        let same = (0..2).map(|i| theirs[i].iter().zip(&before[i]).take_while(|(a, b)| same(a, b)).count());
        let (same, all) = (same.sum::<usize>(), theirs[0].len() + theirs[1].len());
        let [ns2, after, before] = [&theirs, &after, &before].map(last);
        let (name, rule) = (&case["case"], &case["rule"]);
        println!("| {name} | `{rule}` | {ns2:.3} | {after:.3} | {before:.3} | {same} of {all} |");
    }
}

/// Each rule is needed: without it, each of its cases differs.
#[test]
fn differs_without_the_rule() {
    for case in table("ns2-full-flow", "cases.csv") {
        let found = compare(&case, &recorded(&case), &without(&case["rule"]));
        assert!(found.is_some(), "{}: the vector does not depend on the rule", case["case"]);
    }
}

/// Returns ns-2's packets in this case, or `None` if ns-2 is not installed.
fn ask_ns2(case: &Row) -> Option<String> {
    let names =
        ["exchanges", "close", "window", "every", "initial", "delay_ms", "drop", "drop_back", "end_s"];
    let script = File::new(env!("CARGO_MANIFEST_DIR")).join("../../peers/ns2/full_flow.tcl");
    let given = names.map(|name| format!("{name}={}", case[name]));
    let output = Command::new("ns").arg(script).args(given).output().ok()?;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).expect("text"))
}

/// Returns a case with random sizes, pauses and faults; the number of the case determines everything.
fn random_case(number: u64) -> Row {
    let mut state = 0x9E37_79B9_7F4A_7C15u64.wrapping_mul(number + 1);
    let mut below = |n: u64| {
        // xorshift64* (Vigna 2016)
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        (state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % n
    };
    let mut exchanges = Vec::new();
    for i in 0..1 + below(4) {
        let gap = if i == 0 { 0 } else { [10, 60, 110, 170, 260, 900][below(6) as usize] + below(30) };
        let response = [400, 3000, 12_000, 60_000][below(4) as usize];
        exchanges.push(format!("0.{gap:03}:{}:{}", 40 + below(2000), 40 + below(response)));
    }
    let mut list = |most: u64, among: u64| {
        let mut numbers: Vec<u64> = (0..below(most + 1)).map(|_| below(among)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(" ")
    };
    let faults = number % 3;
    let drop_back = if faults == 0 { String::new() } else { list(if faults == 1 { 2 } else { 6 }, 40) };
    let drop = if faults == 2 { list(2, 40) } else { String::new() };
    let given = [
        ("case", format!("random_{number}")),
        ("exchanges", exchanges.join(" ")),
        ("close", ["s", "c"][below(2) as usize].into()),
        ("window", (4 + below(40)).to_string()),
        ("every", (1 + below(2)).to_string()),
        ("initial", (1 + below(4)).to_string()),
        ("delay_ms", (5 + below(120)).to_string()),
        ("drop", drop),
        ("drop_back", drop_back),
        ("end_s", "40".into()),
    ];
    given.into_iter().map(|(name, value)| (name.into(), value)).collect()
}

#[test]
fn equals_ns2_in_random_cases() {
    let count = std::env::var("AQMLAB_NS2_RANDOM_CASES").map_or(30, |n| n.parse().expect("a count"));
    let (mut wrong, mut same) = (String::new(), [0; 3]);
    for number in 0..count {
        let case = random_case(number);
        let Some(text) = ask_ns2(&case) else {
            eprintln!("ns-2 (the command ns) is not installed");
            return;
        };
        match compare(&case, &text, &[]) {
            // With many losses, rules that no parameter reproduces matter, too (docs/validation.md).
            Some(_) if number % 3 == 2 => {}
            Some(found) => {
                let _ = writeln!(wrong, "{case:?}: {found}");
            }
            None => same[(number % 3) as usize] += 1,
        }
    }
    eprintln!("{same:?} of {count} agree: without loss, with at most two lost, with more");
    assert!(wrong.is_empty(), "{wrong}");
}
