//! Delay stages at the edge of the network: transit times, losses, and where the books record lost packets.
mod support;

use aqmlab_recording::Recording;
use support::{flows, integers, record, summary};

const MS: u128 = 1_000_000;

/// A fast dumbbell with a round-trip time of 20 ms, with these rules and this traffic.
fn scenario(traffic: &str, delays: &str) -> String {
    format!(
        r#"
        duration = "10s"
        [topology]
        kind = "dumbbell"
        rate = "100Mbit"
        delay = "10ms"
        queue = {{ kind = "droptail", limit = "2000p" }}
        [[traffic]]
        name = "x"
        {traffic}
        {delays}
        "#
    )
}

/// The time at which the receiver has received all of one small transfer.
fn transfer_took(delays: &str) -> u128 {
    let r = record(&scenario("kind = \"bulk\"\nbytes = \"1kB\"", delays), 1);
    flows(&r, "x", "end_ns")[0]
}

#[test]
fn each_packet_of_a_direction_takes_its_delay_longer() {
    let plain = transfer_took("");
    // The SYN and the data go to the receiver, and the SYN-ACK between them goes to the sender.
    for (rule, extra) in [
        ("direction = \"to_receiver\"\ndelay = \"30ms\"", 60),
        ("direction = \"to_sender\"\ndelay = \"30ms\"", 30),
        ("delay = \"30ms\"", 90),
        ("delay = \"30ms\"\nat = \"exit\"", 90),
        ("class = \"x\"\nfrom = \"left\"\ndelay = \"30ms\"", 60),
        ("from = \"right\"\nto = \"left\"\ndelay = \"30ms\"", 30),
        ("delay = { list = [\"7ms\"] }\nrate = \"1Gbit\"", 21),
    ] {
        let took = transfer_took(&format!("[[delay]]\n{rule}\n"));
        // At 1 Gbit/s, a kilobyte takes 8 us.
        assert!(
            (plain + extra * MS..plain + extra * MS + 20_000).contains(&took),
            "{rule}: {plain} -> {took}"
        );
    }
}

#[test]
fn the_first_rule_that_matches_holds_at_each_edge() {
    let plain = transfer_took("");
    let rules = "[[delay]]\nclass = \"x\"\ndirection = \"to_receiver\"\ndelay = \"5ms\"\n\
                 [[delay]]\ndelay = \"1s\"\ndirection = \"to_receiver\"\n\
                 [[delay]]\ndelay = \"7ms\"\ndirection = \"to_receiver\"\nat = \"exit\"\n";
    assert_eq!(transfer_took(rules), plain + 2 * 12 * MS);
}

/// Dummynet's ticks: the last data of a transfer leaves the stage at the receiver's edge at a tick of its host, and both
/// SYN and data wait for more than two and at most three ticks.
#[test]
fn packets_leave_at_the_ticks_of_their_host() {
    const TICK: u128 = 10 * MS;
    let of = |keys: &str| {
        let delays = format!("[[delay]]\nat = \"exit\"\ndirection = \"to_receiver\"\n{keys}");
        let traffic = "kind = \"bulk\"\nbytes = \"1kB\"\ncount = 24\naccess_rate = \"none\"\n\
                       start = { uniform = [\"0s\", \"3s\"] }";
        let r = record(&scenario(traffic, &delays), 1);
        let took =
            flows(&r, "x", "end_ns").iter().zip(flows(&r, "x", "start_ns")).map(|(a, b)| a - b).collect();
        (flows(&r, "x", "end_ns"), took, flows(&r, "x", "base_rtt_ns"))
    };
    let (_, plain, bare): (_, Vec<u128>, _) = of("");
    for (keys, hosts) in [("", 1), ("tick_hosts = 4", 4)] {
        let (ends, took, base) = of(&format!("delay = \"37ms\"\ntick = \"10ms\"\n{keys}"));
        let phases: Vec<u128> = ends.iter().map(|end| end % TICK).collect();
        for flow in hosts..phases.len() {
            assert_eq!(phases[flow], phases[flow - hosts], "flow {flow} of {hosts} hosts");
        }
        let mut different = phases.clone();
        different.sort_unstable();
        different.dedup();
        assert_eq!(different.len(), hosts);
        for ((took, plain), (base, bare)) in took.iter().zip(&plain).zip(base.iter().zip(&bare)) {
            let more = took - plain;
            assert!(more > 4 * TICK && more <= 6 * TICK, "{more}");
            assert_eq!(base - bare, 25 * MS);
        }
    }
}

#[test]
fn the_base_round_trip_time_has_the_stages_in_it() {
    let delays =
        "[[delay]]\ndelay = \"30ms\"\n[[delay]]\nat = \"exit\"\ndirection = \"to_sender\"\ndelay = \"5ms\"\n";
    let r = record(&scenario("kind = \"bulk\"\nrtt = \"25ms\"", delays), 1);
    assert_eq!(flows(&r, "x", "base_rtt_ns"), [90 * MS]);
}

#[test]
fn draws_belong_to_the_flow() {
    let delays = "[[delay]]\ndelay = { uniform = [\"0ms\", \"100ms\"] }\n";
    let of = |count: u32| {
        let r = record(&scenario(&format!("kind = \"bulk\"\ncount = {count}\nbytes = \"1kB\""), delays), 1);
        flows(&r, "x", "base_rtt_ns")
    };
    let (few, many) = (of(5), of(200));
    assert_eq!(few, many[..5]);
    let mean = many.iter().sum::<u128>() as f64 / 200.0 / 1e6;
    // 20 ms and two uniform draws add up to 120 ms on average, with a standard deviation of 41 ms.
    assert!((mean - 120.0).abs() < 4.0 * 41.0 / 200f64.sqrt(), "{mean}");
}

/// The position of a stage determines what arrives at the queue.
#[test]
fn queues_see_packets_behind_an_entry_and_before_an_exit() {
    let arrivals = |at: &str| {
        let traffic = "kind = \"cbr\"\nrate = \"8Mbit\"\nsize = \"1000B\"";
        let r = record(&scenario(traffic, &format!("[[delay]]\ndelay = \"2s\"\nat = \"{at}\"\n")), 1);
        (summary(&r, "bottleneck", "*", "arrivals_packets"), flows(&r, "x", "delivered_bytes")[0])
    };
    // 1000 packets per second are sent for 10 seconds; those of the last 2.01 s do not arrive
    // before the end, because of the stage (2 s) and the path (10 ms).
    assert_eq!(arrivals("entry"), (8000, 7_990_000));
    assert_eq!(arrivals("exit"), (10_000, 7_990_000));
}

fn lost(r: &Recording, unit: &str) -> u128 {
    integers(r.table("run").expect("every recording has a run"), &format!("lost_outside_queues_{unit}"))[0]
}

#[test]
fn losses_of_a_stage_are_counted_apart_from_those_of_queues() {
    for at in ["entry", "exit"] {
        let traffic = "kind = \"cbr\"\nrate = \"8Mbit\"\nsize = \"1000B\"\ncount = 2\nstop = \"9s\"";
        let r = record(&scenario(traffic, &format!("[[delay]]\nloss = 0.1\nat = \"{at}\"\n")), 1);
        let (sent, gone) = (flows(&r, "x", "sent_segments").iter().sum::<u128>(), lost(&r, "packets"));
        // Each of the two flows sends 1000 packets per second for 9 seconds. Binomial(18000, 0.1)
        // has a standard deviation of 40.
        assert_eq!(sent, 18_002);
        assert!(gone.abs_diff(1800) < 5 * 40, "{at}: {gone}");
        assert_eq!(lost(&r, "bytes"), gone * 1000);
        assert_eq!(flows(&r, "x", "lost_outside_queues_packets").iter().sum::<u128>(), gone);
        assert_eq!(flows(&r, "x", "measured_lost_outside_queues_packets").iter().sum::<u128>(), gone);
        assert_eq!(flows(&r, "x", "delivered_bytes").iter().sum::<u128>(), (sent - gone) * 1000);
        for reason in ["early", "forced", "overflow", "injected"] {
            assert_eq!(summary(&r, "bottleneck", "*", &format!("dropped_{reason}_packets")), 0, "{at}");
        }
        let at_queue = summary(&r, "bottleneck", "*", "arrivals_packets");
        assert_eq!(at_queue, if at == "entry" { sent - gone } else { sent });
    }
}

#[test]
fn a_rate_of_a_stage_holds_for_each_flow() {
    let traffic = "kind = \"bulk\"\ncount = 3\ntcp = { profile = \"rfc\", receive_window = \"60kB\" }";
    let r = record(
        &scenario(
            traffic,
            "[[delay]]\ndirection = \"to_receiver\"\nrate = { list = [\"1Mbit\", \"2Mbit\"] }\n",
        ),
        1,
    );
    // 1460 B of each packet of 1500 B are data, and the handshake takes a little time.
    for (bytes, mbit) in flows(&r, "x", "delivered_bytes").iter().zip([1.0, 2.0, 1.0]) {
        let share = *bytes as f64 / (mbit * 1e6 / 8.0 * 10.0 * 1460.0 / 1500.0);
        assert!((0.97..=1.0).contains(&share), "{bytes} at {mbit} Mbit/s: {share}");
    }
}

#[test]
fn jitter_never_reorders() {
    let traffic = "kind = \"bulk\"\ncount = 20\ntcp = { profile = \"rfc\", receive_window = \"100kB\" }";
    let r = record(
        &scenario(traffic, "[[delay]]\njitter = \"20ms\"\n[[delay]]\nat = \"exit\"\njitter = \"20ms\"\n"),
        1,
    );
    assert!(flows(&r, "x", "delivered_bytes").iter().all(|bytes| *bytes > 1_000_000));
    // A packet out of order would cause duplicate ACKs, and nothing else could cause a retransmission here.
    assert_eq!(summary(&r, "bottleneck", "*", "dropped_overflow_packets"), 0);
    assert_eq!(flows(&r, "x", "fast_retransmits").iter().sum::<u128>(), 0);
}

/// If the delays of two classes differ, the class with the shorter delay has the higher goodput.
#[test]
fn a_delay_difference_costs_a_class_its_share() {
    let text = r#"
        duration = "120s"
        warmup = "20s"
        [topology]
        kind = "dumbbell"
        rate = "10Mbit"
        delay = "10ms"
        queue = { kind = "red", limit = "100p", min_th = "10p", max_th = "30p" }
        [[traffic]]
        name = "near"
        kind = "bulk"
        count = 9
        rtt = { uniform = ["40ms", "60ms"] }
        [[traffic]]
        name = "far"
        kind = "bulk"
        count = 9
        rtt = { uniform = ["40ms", "60ms"] }
        [[delay]]
        class = "far"
        delay = "50ms"
    "#;
    let r = record(text, 1);
    let of = |class: &str| flows(&r, class, "measured_delivered_bytes").iter().sum::<u128>() as f64;
    let ratio = of("near") / of("far");
    // With the queue, the RTTs are 180 ms and 80 ms: shares proportional to 1/RTT give a ratio of
    // 2.25, and the square root of that is 1.5.
    assert!((1.4..4.0).contains(&ratio), "{ratio}");
}

// --- in routers ------------------------------------------------------------------------------------------------------

/// Three links in series, each with a delay of 1 ms. One class crosses all three links, and another
/// only the middle one; `more` contains further sections of the scenario.
fn row(more: &str) -> Recording {
    let text = format!(
        r#"
        duration = "10s"
        [topology]
        kind = "parking_lot"
        hops = 3
        rate = "100Mbit"
        delay = "1ms"
        [[traffic]]
        name = "far"
        kind = "bulk"
        bytes = "1kB"
        access_rate = "none"
        [[traffic]]
        name = "near"
        kind = "bulk"
        bytes = "1kB"
        from = "r1"
        to = "r2"
        rtt = "12ms"
        start = "5s"
        {more}
        "#
    );
    record(&text, 1)
}

/// SYN, SYN-ACK and data each pass each stage once: at the first router of a path, in the middle
/// and at the last router.
#[test]
fn a_stage_in_a_router_delays_whoever_passes_it() {
    let (plain, took) = (row(""), |r: &Recording, class: &str| flows(r, class, "end_ns")[0]);
    let rtt = |r: &Recording, class: &str| flows(r, class, "base_rtt_ns")[0];
    assert_eq!((rtt(&plain, "far"), rtt(&plain, "near")), (6 * MS, 12 * MS));
    // For each router: whether it is on the path of the near class.
    for (router, is_near) in [("r0", 0), ("r1", 1), ("r2", 1), ("r3", 0)] {
        for (direction, packets, ways) in [("both", 3, 2), ("to_receiver", 2, 1), ("to_sender", 1, 1)] {
            let r = row(&format!(
                "[[delay]]\nat = \"{router}\"\ndirection = \"{direction}\"\ndelay = \"20ms\"\n"
            ));
            let later = |class: &str| took(&r, class) - took(&plain, class);
            let what = format!("{router} {direction}");
            assert_eq!(
                (later("far"), later("near")),
                (packets * 20 * MS, is_near * packets * 20 * MS),
                "{what}"
            );
            let longer = |class: &str| rtt(&r, class) - rtt(&plain, class);
            assert_eq!((longer("far"), longer("near")), (ways * 20 * MS, is_near * ways * 20 * MS), "{what}");
        }
    }
}

/// Stages at two routers and at an edge all apply; at each of these places, only the first matching
/// rule applies.
#[test]
fn stages_on_one_path_add_up() {
    let stages = "[[delay]]\nat = \"r1\"\ndelay = \"20ms\"\n[[delay]]\nat = \"r2\"\nclass = \"far\"\ndelay = \"5ms\"\n\
                  [[delay]]\nat = \"r2\"\ndelay = \"300ms\"\n[[delay]]\ndelay = \"1ms\"\nclass = \"far\"\n";
    let (plain, r) = (row(""), row(stages));
    let later = |class: &str| flows(&r, class, "end_ns")[0] - flows(&plain, class, "end_ns")[0];
    assert_eq!((later("far"), later("near")), (3 * 26 * MS, 3 * 320 * MS));
    assert_eq!(flows(&r, "far", "base_rtt_ns"), [58 * MS]);
}

/// Queues upstream of the router see packets without its delay, and queues downstream see them with it.
#[test]
fn what_lies_behind_a_router_sees_its_delay_and_losses() {
    let arrivals = |stages: &str| {
        let traffic = "[[traffic]]\nname = \"back\"\nkind = \"cbr\"\nfrom = \"r3\"\nto = \"r0\"\nrate = \"8Mbit\"\nsize = \"1000B\"\n\
                       access_rate = \"none\"\n";
        let r = row(&format!("{traffic}{stages}"));
        let at = |queue: &str| summary(&r, queue, "back", "arrivals_packets");
        let lost = flows(&r, "back", "lost_outside_queues_packets")[0];
        (["hop3-reverse", "hop2-reverse", "hop1-reverse"].map(at), lost, lost_in(&r))
    };
    // One packet is sent per millisecond, the first at 0 s and the last at the end of the run; a
    // hop takes 1.08 ms.
    assert_eq!(arrivals(""), ([10_001, 9_999, 9_998], 0, 0));
    let late = "[[delay]]\nclass = \"back\"\nat = \"r2\"\ndelay = \"2s\"\n";
    assert_eq!(arrivals(late), ([10_001, 7_999, 7_998], 0, 0));
    let ([first, second, third], lost, in_all) =
        arrivals("[[delay]]\nclass = \"back\"\nat = \"r1\"\nloss = 0.1\n");
    // Binomial(9998, 0.1) has a standard deviation of 30.
    assert!(lost.abs_diff(1000) < 150 && lost == in_all, "{lost} {in_all}");
    assert_eq!((first, second), (10_001, 9_999));
    assert!((9_998 - lost..=9_999 - lost).contains(&third), "{third}");
}

/// Number of packets lost outside the queues, according to the books of the network.
fn lost_in(r: &Recording) -> u128 {
    lost(r, "packets")
}

// --- hosts without links of their own --------------------------------------------------------------------------------

/// Returns the completion time and the base round-trip time of one small transfer between hosts
/// that are at the routers themselves.
fn transfer_at_the_routers(delays: &str) -> (u128, u128) {
    let r = record(&scenario("kind = \"bulk\"\nbytes = \"1kB\"\naccess_rate = \"none\"", delays), 1);
    (flows(&r, "x", "end_ns")[0], flows(&r, "x", "base_rtt_ns")[0])
}

#[test]
fn a_stage_needs_no_link_beside_it() {
    let (plain, rtt) = transfer_at_the_routers("");
    assert_eq!(rtt, 20 * MS);
    for (rule, extra, of_rtt) in [
        ("direction = \"to_receiver\"\ndelay = \"30ms\"", 60, 30),
        ("direction = \"to_sender\"\ndelay = \"30ms\"", 30, 30),
        ("direction = \"to_sender\"\ndelay = \"30ms\"\nat = \"exit\"", 30, 30),
        ("delay = \"30ms\"\nat = \"exit\"", 90, 60),
        ("from = \"right\"\ndelay = \"0ms\"", 0, 0),
    ] {
        let (took, rtt) = transfer_at_the_routers(&format!("[[delay]]\n{rule}\n"));
        assert_eq!((took, rtt), (plain + extra * MS, (20 + of_rtt) * MS), "{rule}");
    }
}

#[test]
fn a_stage_without_a_link_loses_and_paces() {
    let traffic = "kind = \"cbr\"\nrate = \"8Mbit\"\nsize = \"1000B\"\naccess_rate = \"none\"";
    let r = record(&scenario(traffic, "[[delay]]\nloss = 0.25\n[[delay]]\nloss = 0.25\nat = \"exit\"\n"), 1);
    let (sent, delivered) = (flows(&r, "x", "sent_segments")[0], flows(&r, "x", "delivered_bytes")[0] / 1000);
    assert_eq!(sent, 10_001);
    // A share of (3/4)^2 of the 10 000 packets arrives: 5625, with a standard deviation of 50.
    assert!((5425..=5825).contains(&delivered), "{delivered}");
    assert_eq!(lost(&r, "packets"), flows(&r, "x", "lost_outside_queues_packets")[0]);
    let r = record(&scenario(traffic, "[[delay]]\nrate = \"4Mbit\"\n"), 1);
    // In ten seconds, the stage passes half of the packets, 5000. Those of the last 12 ms do not
    // arrive before the end: the delay of the path is 10 ms, and the transmission of the first
    // packet takes 2 ms.
    let delivered = flows(&r, "x", "delivered_bytes")[0] / 1000;
    assert!((4990..=4995).contains(&delivered), "{delivered}");
}

/// Hosts at one end have access links, while those at the other end are at the router itself.
#[test]
fn a_receiver_may_be_at_the_exit_router() {
    let of = |at: &str, rtt: &str| {
        let traffic =
            format!("kind = \"bulk\"\nbytes = \"1kB\"\naccess_rate = \"1Gbit\"\n{rtt}\n{at}\ncount = 50");
        let r = record(&scenario(&traffic, ""), 1);
        (flows(&r, "x", "end_ns"), flows(&r, "x", "base_rtt_ns"))
    };
    let (plain, rtt) = of("", "rtt = \"100ms\"");
    assert_eq!(rtt, [100 * MS; 50]);
    for at in ["sender", "receiver"] {
        let (took, rtt) = of(&format!("access_at = \"{at}\""), "rtt = \"100ms\"");
        // The round trip is the same, but SYN, SYN-ACK and data cross fewer links. At 1 Gbit/s, a
        // kilobyte takes 8 us.
        assert_eq!(rtt, [100 * MS; 50], "{at}");
        assert!(took.iter().zip(&plain).all(|(a, b)| a < b && b - a < 30_000), "{at}: {took:?} {plain:?}");
        let (_, drawn) = of(&format!("access_at = \"{at}\""), "rtt = { uniform = [\"20ms\", \"200ms\"] }");
        // A flow's two links divide the rest of the delay between them, exactly to the nanosecond.
        assert_eq!(drawn.len(), 50);
        assert!(drawn.iter().any(|rtt| *rtt < 60 * MS) && drawn.iter().any(|rtt| *rtt > 160 * MS));
    }
    assert_eq!(of("access_at = \"both\"", "rtt = \"100ms\""), (plain, rtt));
}

#[test]
fn a_packet_passes_the_links_that_there_are() {
    let hops = |more: &str| {
        let traffic = format!("kind = \"cbr\"\nrate = \"8kbit\"\nsize = \"1000B\"\nstop = \"5s\"\n{more}");
        let r = record(&scenario(&traffic, ""), 1);
        let run = r.table("run").expect("every recording has a run");
        (integers(run, "packet_hops")[0], flows(&r, "x", "delivered_bytes")[0] / 1000)
    };
    for (more, links) in [
        ("access_rate = \"1Gbit\"", 3),
        ("access_rate = \"1Gbit\"\naccess_at = \"sender\"", 2),
        ("access_rate = \"1Gbit\"\naccess_at = \"receiver\"", 2),
        ("access_rate = \"none\"", 1),
        ("access_rate = \"none\"\n[[delay]]\ndelay = \"1ms\"", 1),
    ] {
        let (hops, packets) = hops(more);
        assert_eq!(hops, links * packets, "{more}");
    }
}

/// The instants at which the datagrams of a stream of one per millisecond have crossed the bottleneck, in ms, by number.
fn datagrams(rule: &str) -> Vec<Option<f64>> {
    let traffic = "kind = \"cbr\"\nrate = \"8Mbit\"\nsize = \"1000B\"\naccess_rate = \"none\"";
    let more = "[record]\npackets = { links = [\"bottleneck\"], events = [\"enqueue\"] }";
    let recording = record(&scenario(traffic, &format!("[[delay]]\n{rule}\n{more}")), 1);
    let table = recording.table("packets").expect("packets are recorded");
    let (times, numbers) = (integers(table, "t_ns"), integers(table, "number"));
    let mut arrivals = vec![None; 10_001];
    for (at, number) in times.iter().zip(&numbers) {
        arrivals[*number as usize] = Some(*at as f64 / 1e6);
    }
    arrivals
}

#[test]
fn a_delay_that_changes_keeps_the_order_unless_asked() {
    let begin = datagrams("delay = \"0ms\"")[0].expect("nothing is lost");
    let steps = "delay = [[\"0s\", \"10ms\"], [\"2s\", \"50ms\"], [\"4s\", \"10ms\"]]";
    let delays = |rule: &str| -> Vec<f64> {
        let arrivals = datagrams(rule);
        let sent = |n: usize| begin + n as f64;
        arrivals.iter().enumerate().filter_map(|(n, at)| Some(at.as_ref()? - sent(n))).collect()
    };
    let expected = |n: usize| if (2000.0..4000.0).contains(&(begin + n as f64)) { 50.0 } else { 10.0 };
    let free = delays(&format!("{steps}\nreorder = true"));
    assert!(free.iter().enumerate().all(|(n, delay)| (delay - expected(n)).abs() < 1e-6));
    // In order, the packets after the change wait until the last one before it has left, which took 50 ms.
    let kept = delays(steps);
    let last = (0..10_001).rev().find(|n| expected(*n) == 50.0).expect("one is delayed by 50 ms");
    for (n, delay) in kept.iter().enumerate() {
        let waits = 50.0 - (n as f64 - last as f64);
        let expected = if n > last { waits.max(10.0) } else { expected(n) };
        assert!((delay - expected).abs() < 1e-6, "{n}: {delay} instead of {expected}");
    }
}

#[test]
fn losses_that_change_are_counted_with_their_flow() {
    let rule = "loss = [[\"0s\", 0.0], [\"3s\", 1.0], [\"4s\", 0.0], [\"6s\", 0.5]]";
    let arrivals = datagrams(rule);
    let lost = |from: usize, to: usize| arrivals[from..to].iter().filter(|at| at.is_none()).count();
    assert_eq!((lost(0, 2990), lost(3010, 3990), lost(4010, 5990)), (0, 980, 0));
    // Binomial(3980, 0.5): five standard deviations are 158.
    assert!(lost(6010, 9990).abs_diff(1990) < 158, "{}", lost(6010, 9990));
}

/// The jitter of packets that may overtake each other has the distribution that is written, in a dense stream as well.
#[test]
fn jitter_with_reordering_is_as_written() {
    let begin = datagrams("delay = \"0ms\"")[0].expect("nothing is lost");
    for (jitter, mean, deviation) in [
        ("\"20ms\"", 10.0, 20.0 / 12f64.sqrt()),
        ("{ exponential = \"7ms\" }", 7.0, 7.0),
        ("{ uniform = [\"5ms\", \"15ms\"] }", 10.0, 10.0 / 12f64.sqrt()),
    ] {
        let of = |reorder: bool| -> Vec<f64> {
            let arrivals = datagrams(&format!("jitter = {jitter}\nreorder = {reorder}"));
            let late = |(n, at): (usize, &Option<f64>)| Some(at.as_ref()? - begin - n as f64);
            arrivals[..9900].iter().enumerate().filter_map(late).collect()
        };
        let average = |late: &[f64]| late.iter().sum::<f64>() / late.len() as f64;
        let (free, kept) = (of(true), of(false));
        assert!(
            (average(&free) - mean).abs() < 5.0 * deviation / 9900f64.sqrt(),
            "{jitter}: {}",
            average(&free)
        );
        assert!(average(&kept) > mean + deviation / 2.0, "{jitter}: in order, {}", average(&kept));
        assert!(free.windows(2).any(|pair| pair[1] + 1.0 < pair[0]));
        assert!(kept.windows(2).all(|pair| pair[1] + 1.0 >= pair[0] - 1e-9));
    }
}
