//! Links whose rate changes: departures against arithmetic and against Mahimahi's rule, and capacities.
mod support;

use aqmlab_recording::{ColumnData, Recording};
use aqmlab_sim::{Control, run};
use support::{integers, names, plan, record, summary};

/// A dumbbell whose rate is `rate`, with one stream of datagrams that enters it directly.
fn scenario(rate: &str, traffic: &str, more: &str) -> String {
    format!(
        r#"
        duration = "4s"
        warmup = "1s"
        [topology]
        kind = "dumbbell"
        rate = {rate}
        delay = "1ms"
        reverse_rate = "100Mbit"
        access_rate = "none"
        queue = {{ kind = "droptail", limit = "30p" }}
        {more}
        [[traffic]]
        name = "x"
        {traffic}
        [record]
        queues = "100ms"
        packets = {{ links = ["bottleneck"], events = ["enqueue", "receive"] }}
        "#
    )
}

/// The instants at which packets enter the queue and at which they have crossed the link, which has a delay of 1 ms.
fn crossing(recording: &Recording) -> [Vec<(u64, u64)>; 2] {
    let table = recording.table("packets").expect("packets are recorded");
    let (events, times, sizes) =
        (names(table, "event"), integers(table, "t_ns"), integers(table, "wire_bytes"));
    ["enqueue", "receive"].map(|event| {
        let delay = if event == "receive" { 1_000_000 } else { 0 };
        let rows = events.iter().zip(times.iter().zip(&sizes)).filter(|(e, _)| *e == event);
        rows.map(|(_, (at, size))| (*at as u64 - delay, *size as u64)).collect()
    })
}

/// Compares instants; the message has the first difference alone.
fn assert_same(found: &[u64], expected: &[u64]) {
    let first = found.iter().zip(expected).position(|(a, b)| a != b);
    let near = |list: &[u64]| first.map(|i| list[i.saturating_sub(1)..list.len().min(i + 3)].to_vec());
    assert_eq!((first, near(found), found.len()), (None, near(expected), expected.len()));
}

/// A link that always has one level is the constant link, cell by cell.
#[test]
fn one_level_is_a_constant_rate() {
    for traffic in ["kind = \"bulk\"\ncount = 3", "kind = \"poisson\"\nrate = \"5Mbit\"\nsize = \"900B\""] {
        let of = |rate| record(&scenario(rate, traffic, ""), 3);
        let (constant, level) = (of("\"4Mbit\""), of("[[\"0s\", \"4Mbit\"]]"));
        for (a, b) in constant.tables.iter().zip(&level.tables) {
            match a.name {
                "packets" => assert_eq!(crossing(&constant), crossing(&level)),
                name => assert_eq!(a.digest(), b.digest(), "{name}"),
            }
        }
        let links = level.table("links").expect("a link has a course");
        // 3 s at 4 Mbit/s.
        assert_eq!(integers(links, "capacity_bytes"), [1_500_000]);
        assert_eq!(integers(links, "changes"), [0]);
        assert_eq!(level.manifest.links[0].rate_bps, 4_000_000);
        assert!(constant.table("links").is_none() && constant.table("capacity").is_none());
    }
}

/// Departures of a serving link, from the arrivals and the steps by arithmetic alone.
#[test]
fn a_serving_link_sends_what_the_integral_of_its_rate_allows() {
    let steps =
        "[[\"0s\", \"4Mbit\"], [\"900ms\", \"0bit\"], [\"1300ms\", \"777kbit\"], [\"2s\", \"9999991bit\"]]";
    let levels: [(u64, u64); 4] =
        [(0, 4_000_000), (900_000_000, 0), (1_300_000_000, 777_000), (2_000_000_000, 9_999_991)];
    let more = "";
    let traffic = "kind = \"poisson\"\nrate = \"3Mbit\"\nsize = { exponential = \"600B\" }";
    let limit = scenario(steps, traffic, more).replace("30p", "100000p");
    let recording = record(&limit, 5);
    let [arrivals, departures] = crossing(&recording);
    // Work in units of 10^-9 bit: the integral of the rate up to an instant, and its inverse, rounded down.
    let until = |i: usize| levels.get(i + 1).map_or(u64::MAX, |level| level.0);
    let integral = |at: u64| -> u128 {
        let part = |(i, (begin, rate)): (usize, &(u64, u64))| {
            u128::from(*rate) * u128::from(at.min(until(i)).saturating_sub(*begin))
        };
        levels.iter().enumerate().map(part).sum()
    };
    let inverse = |work: u128| -> u64 {
        let level = (0..levels.len()).find(|i| until(*i) == u64::MAX || integral(until(*i)) >= work).unwrap();
        let (begin, rate) = levels[level];
        begin + ((work - integral(begin)) / u128::from(rate)) as u64
    };
    let mut done = 0u128;
    let expected: Vec<u64> = arrivals
        .iter()
        .map(|(at, size)| {
            // A packet that finds the link idle begins at its arrival; what the link could have sent is lost.
            done = done.max(integral(*at)) + 8_000_000_000 * u128::from(*size);
            inverse(done)
        })
        .filter(|at| *at + 1_000_000 <= 4_000_000_000)
        .collect();
    let found: Vec<u64> = departures.iter().map(|(at, _)| *at).collect();
    assert!(found.len() > 1000);
    assert_same(&found, &expected);
    let links = recording.table("links").expect("a link has a course");
    assert_eq!(integers(links, "standstill_ns"), [300_000_000]);
    let capacity = (integral(4_000_000_000) - integral(1_000_000_000)) / 8_000_000_000;
    assert_eq!(integers(links, "capacity_bytes"), [capacity]);
    assert_eq!(integers(links, "changes"), [2], "one of the three is in the warm-up");
    assert_eq!(integers(links, "used_bytes"), [summary(&recording, "bottleneck", "*", "sent_bytes")]);
}

/// Mahimahi's rule (mm-link): chances up to an instant precede the packet that arrives at it; each carries bytes of the packet
/// in transmission and of those behind it; what it leaves is lost.
fn by_mahimahi(stamps_ms: &[u64], length_ms: u64, size: i64, arrivals: &[(u64, u64)]) -> Vec<u64> {
    let mut chances =
        (0..).flat_map(|round| stamps_ms.iter().map(move |at| (round * length_ms + at) * 1_000_000));
    let (mut queue, mut departures) = (std::collections::VecDeque::<i64>::new(), Vec::new());
    let mut next = chances.next().unwrap();
    for (at, bytes) in arrivals.iter().chain(&[(4_000_000_000 - 1_000_000, 0)]) {
        while next <= *at {
            let mut left = size;
            while let Some(first) = queue.front_mut().filter(|_| left > 0) {
                *first -= left;
                left = 0;
                if *first <= 0 {
                    left -= *first;
                    queue.pop_front();
                    departures.push(next);
                }
            }
            next = chances.next().unwrap();
        }
        queue.push_back(*bytes as i64);
    }
    departures
}

#[test]
fn chances_are_those_of_mahimahi() {
    let text = std::fs::read_to_string("tests/traces/chances.down").expect("the trace exists");
    let stamps: Vec<u64> = text.lines().map(|line| line.parse().expect("a number")).collect();
    let length = *stamps.last().expect("a line");
    for (chance, traffic) in [
        (1500, "kind = \"cbr\"\nrate = \"4Mbit\"\nsize = \"1500B\""),
        (1500, "kind = \"cbr\"\nrate = \"2Mbit\"\nsize = \"200B\""),
        (700, "kind = \"poisson\"\nrate = \"3Mbit\"\nsize = { exponential = \"700B\" }"),
        // Datagrams at whole milliseconds arrive with chances.
        (1500, "kind = \"cbr\"\nrate = \"8Mbit\"\nsize = \"1000B\""),
    ] {
        let rate = format!(
            "{{ kind = \"mahimahi\", file = \"tests/traces/chances.down\", at_end = \"repeat\", chance = \"{chance}B\" }}"
        );
        let recording = record(&scenario(&rate, traffic, "").replace("30p", "100000p"), 2);
        let [arrivals, departures] = crossing(&recording);
        let found: Vec<u64> = departures.iter().map(|(at, _)| *at).collect();
        assert!(found.len() > 500);
        assert_same(&found, &by_mahimahi(&stamps, length, chance, &arrivals));
        let links = recording.table("links").expect("a link has a course");
        let chances = (0..20u64).flat_map(|round| stamps.iter().map(move |at| round * length + at));
        let measured = chances.filter(|ms| (1001..=4000).contains(ms)).count() as u128;
        assert_eq!(integers(links, "changes"), [measured]);
        assert_eq!(integers(links, "capacity_bytes"), [measured * chance as u128]);
    }
}

/// The chances that follow from levels: one whenever the integral of the rate has grown by their bytes.
#[test]
fn chances_of_a_rate_are_at_multiples_of_its_integral() {
    let rate = "{ kind = \"fading\", mean = \"3333333bit\", deviation_db = 5, coherence = \"70ms\", clock = \"chances\" }";
    let plan = plan(&scenario(rate, "kind = \"bulk\"", ""));
    let changes = plan.links[0].changes.as_ref().expect("a link has a course");
    let chances: Vec<u64> = changes.chances("bottleneck", 2).map(|at| at.as_ns()).take(3000).collect();
    let levels: Vec<(u64, u64)> = changes
        .levels("bottleneck", 2)
        .map(|(at, rate)| (at.as_ns(), rate.as_bps()))
        .take_while(|(at, _)| *at < chances[2999] + 1_000_000_000)
        .collect();
    let (mut done, mut expected) = (0u128, Vec::new());
    for pair in levels.windows(2) {
        let [(begin, rate), (end, _)] = [pair[0], pair[1]];
        let after = done + u128::from(rate) * u128::from(end - begin);
        loop {
            let due = 12_000_000_000_000 * (expected.len() as u128 + 1);
            // Rounded down, a chance in the last nanosecond before a new level is at the instant of that level.
            if due > after {
                break;
            }
            expected.push(begin + ((due - done) / u128::from(rate)) as u64);
        }
        done = after;
    }
    assert_same(&chances, &expected[..3000]);
}

/// The samples of the capacity add up to it, and the course of one link does not depend on the rest of the network.
#[test]
fn samples_add_up_and_draws_depend_on_nothing_else() {
    let rate = "{ kind = \"markov\", levels = [\"1Mbit\", \"5Mbit\", \"0bit\"], stay = \"30ms\" }";
    let capacities = |seed, traffic: &str| {
        let text = scenario(rate, traffic, "").replace("warmup = \"1s\"", "");
        let recording = run(&plan(&text), seed, &Control::default()).unwrap();
        let sampled = integers(recording.table("capacity").expect("samples"), "capacity_bytes");
        let whole = integers(recording.table("links").expect("a link has a course"), "capacity_bytes")[0];
        let sum: u128 = sampled.iter().sum();
        assert!(sum <= whole && whole - sum < 40, "{sum} of {whole}");
        sampled
    };
    let first = capacities(1, "kind = \"bulk\"\ncount = 2");
    assert_eq!(first, capacities(1, "kind = \"cbr\"\nrate = \"9Mbit\"\nsize = \"100B\""));
    assert_ne!(first, capacities(2, "kind = \"bulk\"\ncount = 2"));
}

/// Little's law in capacity instead of time: in a saturated queue of one size of packet, each packet waits for the capacity
/// that those before it take, however the rate changes.
#[test]
fn the_wait_in_capacity_is_the_backlog_ahead() {
    for clock in ["serving", "chances"] {
        let rate = format!(
            "{{ kind = \"steps\", steps = [[\"0s\", \"9Mbit\"], [\"60ms\", \"300kbit\"], [\"90ms\", \"0bit\"]], repeat = \"100ms\", \
             clock = \"{clock}\" }}"
        );
        let traffic = "kind = \"cbr\"\nrate = \"20Mbit\"\nsize = \"1500B\"";
        let recording = record(&scenario(&rate, traffic, ""), 1);
        let links = recording.table("links").expect("a link has a course");
        let Some(ColumnData::U128(area)) = links.column("backlog_bytes_by_capacity") else {
            panic!("a column")
        };
        let mean = area[0] as f64 / integers(links, "capacity_bytes")[0] as f64;
        // The buffer of 30 packets is full but for the time until the next packet comes, 0.6 ms.
        assert!((mean / 1500.0 - 30.0).abs() < 0.6, "{clock}: {mean}");
        let used = integers(links, "used_bytes")[0] as f64 / integers(links, "capacity_bytes")[0] as f64;
        assert!((used - 1.0).abs() < 0.001, "{clock}: {used}");
    }
}
