//! Tests of the router with scripted arrivals and known results: instants, marks, refusals, books.
mod support;

use std::sync::{Arc, Mutex};

use aqmlab_live::frame::{Malformed, internet_checksum, parse};
use aqmlab_live::router::{FrameAtPort, FrameBudget, Refused, Router};
use aqmlab_live::{End, HostId};
use aqmlab_network::FlowPath;
use aqmlab_qdisc::{Cause, Ecn, Observer, Reason, Registry, registry};
use aqmlab_random::Stream;
use aqmlab_recording::StoppedBy;
use aqmlab_scenario::{Plan, QueueCount, QueueStop, Reference};
use aqmlab_traffic::Identity;
use aqmlab_units::{Instant, Span};
use support::{Counted, Kept, Segment, datagram, frame_budget, plan, segment as tcp_segment};

const CLIENT: HostId = HostId { class: 0, side: End::Client };
const SERVER: HostId = HostId { class: 0, side: End::Server };

const fn ms(n: u64) -> Instant {
    Instant::from_ns(n * 1_000_000)
}

/// Returns a plan with a link of 10 Mbit/s, on which 1250 octets take a millisecond, with 5 ms of delay each
/// way, and with one class of 3 flows.
fn scenario(queue: &str, traffic: &str) -> Plan {
    plan(&format!(
        r#"
        duration = "1s"
        [topology]
        kind = "dumbbell"
        rate = "10Mbit"
        delay = "5ms"
        queue = {{ {queue} }}
        [record]
        queues = "100ms"
        [[traffic]]
        name = "x"
        kind = "cbr"
        count = 3
        rate = "1Mbit"
        size = "1250B"
        {traffic}
        "#
    ))
}

fn droptail(traffic: &str) -> Plan {
    scenario(r#"kind = "droptail", limit = "4p""#, traffic)
}

const BARE: &str = r#"access_rate = "none""#;

fn router(plan: &Plan) -> Router {
    Router::new(plan, 1, &Registry::builtin(), &frame_budget(plan, 100)).unwrap()
}

/// Returns the instants at which frames leave.
fn instants(out: &Kept) -> Vec<Instant> {
    out.0.iter().map(|(at, ..)| *at).collect()
}

#[test]
fn a_train_leaves_a_packet_time_apart_after_the_delay() {
    let plan = droptail(BARE);
    let (mut router, mut out) = (router(&plan), Kept::default());
    let packet = datagram(CLIENT, Some(2), Ecn::NotEct, 1250);
    for _ in 0..3 {
        router.accept(ms(10), CLIENT, &packet, &mut out).unwrap();
    }
    assert_eq!(router.next_due(), Some(ms(11)), "the first has been sent");
    // The reverse path has its own link.
    let answer = datagram(SERVER, Some(2), Ecn::NotEct, 625);
    router.accept(ms(10), SERVER, &answer, &mut out).unwrap();
    router.advance(ms(50), &mut out);
    assert_eq!(instants(&out), [ms(10) + Span::us(5_500), ms(16), ms(17), ms(18)]);
    assert_eq!(out.0[0].1, CLIENT);
    assert_eq!(out.0[1], (ms(16), SERVER, Some(2), packet), "not an octet has changed");
    let record = router.finish().unwrap();
    let flow = record.flows[2].all;
    assert_eq!((flow[0].delivered.packets, flow[1].delivered.packets), (3, 1));
    assert_eq!(record.flows[2].number, 2);
}

/// Internal events may be delayed by up to half of the shortest time that any frame still needs to leave the
/// network.
#[test]
fn only_what_leaves_must_be_punctual() {
    let packet = datagram(CLIENT, Some(0), Ecn::NotEct, 1250);
    let (plan, mut out) = (droptail(BARE), Kept::default());
    let mut bare = router(&plan);
    bare.accept(ms(10), CLIENT, &packet, &mut out).unwrap();
    assert_eq!((bare.next_due(), bare.next_leaving()), (Some(ms(11)), None));
    // The packet's transmission ends at 11 ms, and the packet is then on the link for 5 ms.
    assert_eq!(bare.next_inside(), Some(ms(11) + Span::us(2_500)));
    bare.advance(ms(11), &mut out);
    assert_eq!((bare.next_inside(), bare.next_leaving()), (None, Some(ms(16))));

    // Of the round-trip time of 22 ms, 10 ms are spent on the shared path, which leaves 3 ms for
    // each of the four times that a packet crosses an access link. The last access link is the last
    // part of the path.
    let mut with_access = router(&droptail("access_rate = \"1Gbit\"\nrtt = \"22ms\""));
    with_access.accept(ms(0), CLIENT, &packet, &mut out).unwrap();
    let entered = ms(3) + Span::us(10);
    assert_eq!(with_access.next_inside(), Some(entered + Span::us(1_500)));

    // There is no delay after the queue, so everything is urgent.
    let mut near = plan.clone();
    near.links.iter_mut().for_each(|link| link.delay = Span::ZERO);
    let mut near = router(&near);
    near.accept(ms(0), CLIENT, &packet, &mut out).unwrap();
    assert_eq!(near.next_inside(), Some(ms(1)));
}

/// Each frame leaves at the same instant, no matter how rarely the host polls.
#[test]
fn a_late_host_changes_no_instant() {
    let plan = droptail(
        r#"access_rate = "100Mbit"
        rtt = "50ms""#,
    );
    let drive = |step: u64| {
        let (mut router, mut out) = (router(&plan), Kept::default());
        let mut draws = Stream::new(3, "arrivals");
        let mut at = 0;
        for n in 0..200u16 {
            let (mut until, gap) = (at, draws.below(4_000_000));
            while until + step < at + gap {
                until += step;
                router.advance(Instant::from_ns(until), &mut out);
            }
            at += gap;
            let packet = datagram(CLIENT, Some(n % 3), Ecn::Ect0, 100 + usize::from(n) * 5);
            router.accept(Instant::from_ns(at), CLIENT, &packet, &mut out).unwrap();
        }
        router.advance(ms(2000), &mut out);
        (out.0, router.finish().unwrap())
    };
    let (eager, lazy) = (drive(10_000), drive(500_000_000));
    assert_eq!(eager.0, lazy.0);
    assert_eq!(eager.1, lazy.1);
}

#[test]
fn a_mark_is_in_the_octets_and_on_the_books() {
    let mut plan = droptail(BARE);
    plan.links[0].faults.mark = vec![1, 2, 3];
    plan.links[0].faults.drop = vec![4];
    let (mut router, mut out) = (router(&plan), Kept::default());
    for (n, ecn) in [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ect0, Ecn::Ce].into_iter().enumerate() {
        let packet = datagram(CLIENT, Some(0), ecn, 500);
        router.accept(ms(10 * n as u64), CLIENT, &packet, &mut out).unwrap();
    }
    router.advance(ms(100), &mut out);
    let classes: Vec<u8> = out.0.iter().map(|(.., octets)| octets[1] & 3).collect();
    assert_eq!(classes, [0, 3, 3, 3], "packets that are not ECN-capable are not marked; the fourth is lost");
    assert!(out.0.iter().all(|(.., octets)| internet_checksum(&octets[..20]) == 0));
    let record = router.finish().unwrap();
    let host = record.hosts[SERVER.number()];
    assert_eq!((host.left.packets, host.left_ce, host.left_marked), (4, 3, 2), "one arrived with CE");
    assert_eq!((record.flows[0].all[0].delivered_ce, record.flows[0].all[0].dropped), (3, 1));
}

#[test]
fn what_is_no_packet_is_refused_and_counted() {
    let plan = droptail(BARE);
    let mut router =
        Router::new(&plan, 1, &Registry::builtin(), &FrameBudget { frames: 2, largest: vec![1400] }).unwrap();
    let mut out = Counted::default();
    let good = datagram(CLIENT, Some(0), Ecn::NotEct, 1400);
    let refused =
        |router: &mut Router, octets: &[u8]| router.accept(ms(1), CLIENT, octets, &mut Counted::default());
    let mut checksum = good.clone();
    checksum[8] ^= 1;
    for (octets, why) in [
        (&[][..], Malformed::Short),
        (&[0x50; 40], Malformed::Version),
        (&[0x41; 40], Malformed::HeaderLength),
        (&good[..1000], Malformed::TotalLength),
        (&checksum, Malformed::Checksum),
    ] {
        assert_eq!(refused(&mut router, octets), Err(Refused::Malformed(why)));
    }
    let long = datagram(CLIENT, Some(0), Ecn::NotEct, 1401);
    assert_eq!(refused(&mut router, &long), Err(Refused::Oversize));
    assert_eq!(refused(&mut router, &good), Ok(()));
    assert_eq!(refused(&mut router, &good), Ok(()));
    assert_eq!(refused(&mut router, &good), Err(Refused::NoSlot));
    router.advance(ms(20), &mut out);
    assert_eq!(refused(&mut router, &good), Ok(()), "slots are returned");
    let record = router.finish().unwrap();
    let host = record.hosts[CLIENT.number()];
    assert_eq!(host.malformed, [1; 5]);
    assert_eq!((host.oversize, host.no_slot, host.refused()), (1, 1, 7));
    assert_eq!((host.read.packets, host.accepted.packets), (10, 3));
    assert_eq!((record.most_held, record.still_held), (2, 1));
}

/// ICMP packets, fragments and packets with unknown ports take the path of their class, with the
/// class's mean delay.
#[test]
fn packets_of_no_flow_are_forwarded_with_the_mean_delay() {
    let plan = droptail(
        r#"rtt = { uniform = ["50ms", "90ms"] }
        access_rate = "1Gbit""#,
    );
    let (mut router, mut out) = (router(&plan), Kept::default());
    let repaired = |mut octets: Vec<u8>| {
        octets[10..12].fill(0);
        let checksum = internet_checksum(&octets[..20]);
        octets[10..12].copy_from_slice(&checksum.to_be_bytes());
        octets
    };
    let mut icmp = datagram(CLIENT, Some(0), Ecn::NotEct, 125);
    icmp[9] = 1;
    let mut fragment = datagram(CLIENT, Some(0), Ecn::NotEct, 125);
    fragment[6] = 0x20;
    let stranger = datagram(CLIENT, None, Ecn::NotEct, 125);
    let beyond = datagram(CLIENT, Some(40), Ecn::NotEct, 125);
    for octets in [repaired(icmp), repaired(fragment), stranger, beyond] {
        router.accept(ms(0), CLIENT, &octets, &mut out).unwrap();
    }
    router.advance(ms(500), &mut out);
    // The base RTT is 70 ms on average, so the first packet is delayed by 35 ms of propagation, a
    // microsecond on each access link, and 100 us at the queue. The others follow back to back.
    let first = ms(35) + Span::us(102);
    assert_eq!(instants(&out), [0, 1, 2, 3].map(|n| first + Span::us(100) * n));
    assert!(out.0.iter().all(|(_, to, flow, _)| *to == SERVER && flow.is_none()));
    let record = router.finish().unwrap();
    assert_eq!((record.hosts[0].of_no_flow, record.hosts[0].fragments), (4, 1));
    assert!(record.flows.iter().all(|flow| flow.all[0].sent.packets == 0));
}

#[test]
fn ipv6_is_marked_and_knows_its_flow() {
    let mut plan = droptail(BARE);
    plan.links[0].faults.mark = vec![1];
    let (mut router, mut out) = (router(&plan), Kept::default());
    let mut octets = vec![0; 100];
    // Version 6, traffic class 2 (ECT(0)), flow label 0x12345, UDP.
    octets[..8].copy_from_slice(&[0x60, 0x21, 0x23, 0x45, 0, 60, 17, 64]);
    // The source is the first client address, 2001:2::1.
    octets[8..12].copy_from_slice(&[0x20, 0x01, 0, 2]);
    octets[23] = 1;
    octets[40..44].copy_from_slice(&[0x04, 0x01, 0x13, 0x89]);
    router.accept(ms(0), CLIENT, &octets, &mut out).unwrap();
    router.advance(ms(10), &mut out);
    octets[1] = 0x31;
    assert_eq!(out.0, [(ms(5) + Span::us(80), SERVER, Some(1), octets)]);
    router.finish().unwrap();
}

/// What happened to a frame at a port.
#[derive(Clone, Copy, PartialEq, Debug)]
enum What {
    Enqueued,
    /// The frame's waiting time in us.
    Dequeued(u64),
    Dropped(Reason),
    Marked(Reason),
}

/// The time in us, the link, the event, and the traffic class in the frame's octets.
type Note = (u64, usize, What, u8);

#[derive(Clone, Default)]
struct Observed(Arc<Mutex<Vec<Note>>>);

impl Observed {
    fn note(&mut self, now: Instant, frame: &FrameAtPort<'_>, what: What) {
        let class = parse(frame.octets).unwrap().traffic_class;
        assert!(frame.slot < 100, "slots are numbered from zero");
        self.0.lock().unwrap().push((now.as_ns() / 1000, frame.link, what, class));
    }
}

impl Observer<FrameAtPort<'_>> for Observed {
    fn enqueued(&mut self, now: Instant, frame: &FrameAtPort<'_>) {
        self.note(now, frame, What::Enqueued);
    }
    fn dequeued(&mut self, now: Instant, frame: &FrameAtPort<'_>) {
        self.note(now, frame, What::Dequeued(now.saturating_since(frame.arrived).as_ns() / 1000));
    }
    fn dropped(&mut self, now: Instant, frame: FrameAtPort<'_>, at: Cause) {
        self.note(now, &frame, What::Dropped(at.reason));
    }
    fn marked(&mut self, now: Instant, frame: &FrameAtPort<'_>, at: Cause) {
        self.note(now, frame, What::Marked(at.reason));
    }
}

#[test]
fn an_observer_hears_of_everything_at_ports_in_order() {
    let mut plan = droptail(BARE);
    plan.links[0].faults.mark = vec![2];
    plan.links[0].faults.drop = vec![3];
    let (mut router, mut out, observed) = (router(&plan), Kept::default(), Observed::default());
    router.observe_ports(Box::new(observed.clone()));
    let packet = datagram(CLIENT, Some(0), Ecn::Ect0, 1250);
    for n in 0..3 {
        router.accept(Instant::from_ns(250_000 * n), CLIENT, &packet, &mut out).unwrap();
    }
    router.advance(ms(3), &mut out);
    assert!(router.take_observer().is_some());
    router.accept(ms(3), CLIENT, &packet, &mut out).unwrap();
    router.advance(ms(9), &mut out);
    let (drop, mark) = (What::Dropped(Reason::Injected), What::Marked(Reason::Injected));
    assert_eq!(
        *observed.0.lock().unwrap(),
        [
            (0, 0, What::Enqueued, 2),
            (0, 0, What::Dequeued(0), 2),
            (250, 0, What::Enqueued, 2),
            (250, 0, mark, 3),
            (500, 0, What::Enqueued, 2),
            (500, 0, drop, 2),
            (1000, 0, What::Dequeued(750), 3),
        ]
    );
    // If a capture has seen a mark in a packet's octets, the packet leaves with that mark and a correct
    // checksum.
    assert_eq!((out.0[1].3[1], internet_checksum(&out.0[1].3[..20])), (3, 0));
    router.finish().unwrap();
}

/// Returns a queue of this kind; the queue and any queues inside it are small enough to overflow.
fn queue_of(kind: &str) -> String {
    let more = match kind {
        "classes" => {
            r#"class = [{ name = "x", traffic = ["x"], queue = { kind = "droptail", limit = "20p" } },
                { name = "rest", queue = "droptail" }]"#
        }
        "policer" => {
            r#"rate = "5Mbit", burst = "10kB", queue = { kind = "red", limit = "20p", min_th = "2p" }"#
        }
        "tbf" => r#"rate = "5Mbit", burst = "10kB", queue = { kind = "red", limit = "20p", min_th = "2p" }"#,
        "htb" => {
            r#"class = [{ name = "x", traffic = ["x"], rate = "2Mbit", queue = { kind = "droptail", limit = "20p" } },
                { name = "rest", rate = "4Mbit", queue = "droptail" }]"#
        }
        "gred" => {
            r#"limit = "20p", class = [{ name = "x", traffic = ["x"], limit = "9p", min_th = "2p" }, { name = "rest", min_th = "3p" }]"#
        }
        "spare" => r#"queue = { kind = "red", limit = "20p", min_th = "2p" }"#,
        "cake" => r#"memory_limit = "30kB""#,
        _ => r#"limit = "20p""#,
    };
    format!("kind = \"{kind}\", {more}")
}

/// A hundred thousand packets, most of them invalid, pass through every discipline: each packet has exactly
/// one fate.
#[test]
fn books_balance_whatever_comes() {
    for info in registry::catalogue() {
        let plan = scenario(
            &queue_of(info.name),
            "access_rate = \"20Mbit\"\nrtt = { uniform = [\"20ms\", \"40ms\"] }\nloss = 0.01",
        );
        let mut router = Router::new(&plan, 5, &Registry::builtin(), &frame_budget(&plan, 200)).unwrap();
        let (mut out, mut draws, mut at) = (Counted::default(), Stream::new(5, info.name), 0);
        let packets = 100_000 / registry::catalogue().len();
        for _ in 0..packets {
            at += draws.below(600_000);
            let host = if draws.hit(0.7) { CLIENT } else { SERVER };
            let len = 28 + draws.below(1400) as usize;
            let mut octets = datagram(host, Some(draws.below(4) as u16), Ecn::Ect0, len);
            if draws.hit(0.6) {
                let place = draws.below(20) as usize;
                octets[place] = draws.below(256) as u8;
            }
            let _ = router.accept(Instant::from_ns(at), host, &octets, &mut out);
        }
        router.advance(Instant::from_ns(at) + Span::s(1), &mut out);
        let record = router.finish().unwrap_or_else(|error| panic!("{}: {error}", info.name));
        let read: u64 = record.hosts.iter().map(|host| host.read.packets).sum();
        let refused: u64 = record.hosts.iter().map(|host| host.refused()).sum();
        assert_eq!(read, packets as u64);
        assert!(refused > read / 3 && out.0 > read / 10, "{}: {refused} refused, {} left", info.name, out.0);
        assert_eq!(record.still_held, 0, "{}: a second later all have gone", info.name);
        assert!(record.flows.iter().map(|flow| flow.drained[0].lost).sum::<u64>() > 0);
    }
}

/// The measurement ends with the run; frames in flight still arrive.
#[test]
fn after_the_end_frames_go_on_and_are_not_measured() {
    let mut plan = droptail(BARE);
    plan.warmup = Span::ms(100);
    plan.stop.at = Span::ms(204);
    let (mut router, mut out) = (router(&plan), Kept::default());
    let packet = datagram(CLIENT, Some(0), Ecn::NotEct, 1250);
    for at in [50, 99, 150, 200, 201, 300] {
        router.accept(ms(at), CLIENT, &packet, &mut out).unwrap();
    }
    assert_eq!(router.ended(), Some((ms(204), StoppedBy::Time)));
    router.advance(ms(400), &mut out);
    assert_eq!(out.0.len(), 6);
    let record = router.finish().unwrap();
    assert_eq!((record.t0, record.t1), (ms(100), ms(204)));
    let flow = record.flows[0];
    // The second packet has been sent by the end of the warm-up, and leaves at 105 ms; those sent at 200 and
    // 201 ms are in flight at the end.
    assert_eq!((flow.all[0].sent.packets, flow.all[0].delivered.packets), (5, 3));
    assert_eq!((flow.measured[0].sent.packets, flow.measured[0].delivered.packets), (3, 2));
    assert_eq!(flow.drained[0].delivered.packets, 6);
    let queue = |column| support_column(&record.ports.summary, column);
    assert_eq!((queue("arrivals_packets"), queue("departures_packets")), (3, 3));
    assert_eq!(record.ports.queues.rows(), 2 * 2, "samples at 100 and 200 ms of two links");
}

/// Returns an IPv4 packet in which the first flow's client sends a TCP segment with this much
/// payload.
fn segment(seq: u32, syn: bool, payload: usize) -> Vec<u8> {
    tcp_segment(
        CLIENT,
        0,
        Segment { ecn: Ecn::NotEct, len: 40 + payload, payload, seq, flags: if syn { 2 } else { 16 } },
    )
}

/// A receiver's kernel reports the data delivered in order, whereas the router knows which data
/// reached the receiver, and when.
#[test]
fn payload_counts_once_and_when_it_leaves() {
    let plan = plan(
        r#"
        duration = "204ms"
        warmup = "100ms"
        [topology]
        kind = "dumbbell"
        rate = "10Mbit"
        delay = "5ms"
        [[traffic]]
        name = "x"
        kind = "bulk"
        access_rate = "none"
        "#,
    );
    let (mut router, mut out) = (router(&plan), Counted::default());
    let first = u32::MAX - 1_000; // number of the stream's first byte; the numbers wrap around
    for (at, ahead, payload) in [
        (10, 0, 1000),     // in order
        (11, 2000, 1000),  // beyond a hole
        (12, 2000, 1000),  // a duplicate
        (99, 3000, 1000),  // leaves in the measured interval, still beyond the hole
        (120, 1000, 1000), // fills the hole: the data behind it has already been counted
        (130, 3500, 1000), // half of it is new
        (203, 5000, 1000), // still on its way at the end
    ] {
        let octets = segment(first.wrapping_add(ahead), false, payload);
        if at == 10 {
            let syn = segment(first.wrapping_sub(1), true, 0);
            router.accept(ms(5), CLIENT, &syn, &mut out).unwrap();
        }
        router.accept(ms(at), CLIENT, &octets, &mut out).unwrap();
    }
    router.advance(ms(400), &mut out);
    let flow = router.finish().unwrap().flows[0];
    let received = [flow.all[0], flow.measured[0], flow.drained[0]].map(|books| books.received_bytes);
    assert_eq!(received, [4500, 2500, 5500]);
    assert_eq!(flow.all[1].received_bytes, 0);
}

fn support_column(table: &aqmlab_recording::Table, column: &str) -> u64 {
    match table.column(column) {
        Some(aqmlab_recording::ColumnData::U64(values)) => values[0],
        other => panic!("{column}: {other:?}"),
    }
}

#[test]
fn a_run_ends_early_by_its_condition_or_by_command() {
    let mut plan = droptail(BARE);
    plan.stop.condition =
        Some(QueueStop { link: Reference::new(0, &["bottleneck"]), quantity: QueueCount::Drops, count: 2 });
    let packet = datagram(CLIENT, Some(0), Ecn::NotEct, 1250);
    let (mut by_condition, mut out) = (router(&plan), Counted::default());
    // One packet is in transmission and four wait; the sixth and the seventh are dropped.
    for n in 0..8 {
        by_condition.accept(Instant::from_ns(n), CLIENT, &packet, &mut out).unwrap();
    }
    assert_eq!(by_condition.ended(), Some((Instant::from_ns(6), StoppedBy::Condition)));
    by_condition.end(ms(5), StoppedBy::Completed, &mut out);
    assert_eq!(by_condition.finish().unwrap().stopped_by, StoppedBy::Condition, "the first counts");

    let mut by_command = router(&plan);
    by_command.accept(ms(1), CLIENT, &packet, &mut out).unwrap();
    by_command.end(ms(30), StoppedBy::Completed, &mut out);
    let record = by_command.finish().unwrap();
    assert_eq!((record.t1, record.stopped_by), (ms(30), StoppedBy::Completed));
}

// --- client ports that several connections use in turn -----------------------------------------------------

/// Returns a plan with two users on a link of 10 Mbit/s with a delay of 5 ms. Each user has an access link of
/// its own: the first user is 10 ms away from the network and the second 20 ms, so the average is
/// 15 ms.
fn users() -> Plan {
    plan(
        r#"
        duration = "10s"
        [topology]
        kind = "dumbbell"
        rate = "10Mbit"
        delay = "5ms"
        queue = { kind = "droptail", limit = "100p" }
        [[traffic]]
        name = "web"
        kind = "requests"
        users = 2
        think = "1s"
        request = "100B"
        response = "1kB"
        access_rate = "1Gbit"
        access_at = "receiver"
        rtt = { spread = ["30ms", "50ms"] }
        "#,
    )
}

const PORT: u32 = 7;

/// Returns a SYN, or a segment of 1000 octets with 960 octets of payload, from the client.
fn of_client(seq: u32, syn: bool) -> Vec<u8> {
    let (len, payload) = if syn { (40, 0) } else { (1000, 960) };
    tcp_segment(
        CLIENT,
        PORT,
        Segment { ecn: Ecn::NotEct, len, payload, seq, flags: if syn { 2 } else { 16 } },
    )
}

#[test]
fn a_client_port_goes_from_one_connection_to_the_next() {
    let plan = users();
    let (mut router, mut out) = (router(&plan), Kept::default());
    let mut announcer = router.announcer();
    let mut announce = |user| {
        let path = FlowPath::new(&plan, 0, plan.propagation(0), Some(Identity::first_of(user)), 1);
        announcer.announce(0, PORT, user, &path).unwrap();
    };
    // No connection has the port yet.
    router.accept(ms(0), CLIENT, &of_client(5, true), &mut out).unwrap();
    announce(1);
    router.accept(ms(100), CLIENT, &of_client(5, true), &mut out).unwrap();
    router.accept(ms(101), CLIENT, &of_client(6, false), &mut out).unwrap();
    // The next connection is announced, but its SYN has not arrived: the port still belongs to the first one.
    announce(0);
    router.accept(ms(200), CLIENT, &of_client(966, false), &mut out).unwrap();
    // A segment of the first connection is on the link when the SYN of the second arrives; later segments
    // belong to the second.
    router.accept(ms(300), CLIENT, &of_client(1926, false), &mut out).unwrap();
    router.accept(ms(300), CLIENT, &of_client(1000, true), &mut out).unwrap();
    router.accept(ms(308), CLIENT, &of_client(1001, false), &mut out).unwrap();
    router.advance(ms(900), &mut out);
    // A packet of 1000 octets takes 800 us on the shared link, then 8 us on the access link.
    let (syn, data) = (Span::us(32) + Span::ns(320), Span::us(808));
    let gone = |at: u64, delay: u64| ms(at + 5 + delay);
    let expected = [
        (gone(0, 15) + syn, None),
        (gone(100, 20) + syn, Some(1)),
        (gone(101, 20) + data, Some(1)),
        (gone(200, 20) + data, Some(1)),
        (gone(300, 10) + Span::us(800) + syn, Some(0)),
        // By then, the SYN of the second connection has left.
        (gone(300, 15) + data, Some(1)),
        (gone(308, 10) + data, Some(0)),
    ];
    let left: Vec<_> = out.0.iter().map(|&(at, _, flow, _)| (at, flow)).collect();
    assert_eq!(left, expected);
    let record = router.finish().unwrap();
    let [second, first] = [0, 1].map(|user| record.flows[user].all[0]);
    assert_eq!((first.sent.packets, first.delivered.packets, first.received_bytes), (4, 4, 2 * 960));
    assert_eq!((second.sent.packets, second.delivered.packets, second.received_bytes), (2, 2, 960));
    assert_eq!(record.hosts[0].of_no_flow, 1);
}

/// Segments that a server sends on a closed connection arrive before the SYN-ACK of the next connection.
#[test]
fn what_comes_before_the_syn_is_not_received() {
    let plan = users();
    let (mut router, mut out) = (router(&plan), Kept::default());
    let mut announcer = router.announcer();
    let path = FlowPath::new(&plan, 0, plan.propagation(0), Some(Identity::first_of(0)), 1);
    announcer.announce(0, PORT, 0, &path).unwrap();
    router.accept(ms(0), CLIENT, &of_client(5, true), &mut out).unwrap();
    let of_server = |seq, syn| {
        let (len, payload) = if syn { (40, 0) } else { (540, 500) };
        tcp_segment(
            SERVER,
            PORT,
            Segment { ecn: Ecn::NotEct, len, payload, seq, flags: if syn { 2 } else { 16 } },
        )
    };
    for (at, seq, syn) in [(1, 777_000, false), (40, 100, true), (60, 101, false)] {
        router.accept(ms(at), SERVER, &of_server(seq, syn), &mut out).unwrap();
    }
    router.advance(ms(200), &mut out);
    let record = router.finish().unwrap();
    assert_eq!((record.flows[0].all[1].delivered.packets, record.flows[0].all[1].received_bytes), (3, 500));
}
