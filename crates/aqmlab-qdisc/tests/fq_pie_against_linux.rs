//! Compares the preset `linux` of FQ-PIE with Linux's FQ-PIE (`vectors/linux-decisions`). The fate of each arrival
//! is compared with the law of its flow's queue, given the kernel's departures; the order of the departures, with
//! that of the whole discipline, given the packets that the kernel queued. Where nothing is drawn, the whole
//! discipline is compared.

use aqmlab_params::Value;
use aqmlab_qdisc::contract::LINK;
use aqmlab_qdisc::law::{PieArithmetic, PieLaw, PieParams};
use aqmlab_qdisc::{Discipline, Ecn, Qdisc, Reason, Stamped};
use aqmlab_random::Stream;
use aqmlab_units::{Instant, Span};

mod support;
use support::pie::{Case, Event, events, replay};
use support::{Fates, Pkt, build, bytes, law_value, packets, settings};

fn cases() -> Vec<Case> {
    let ms = |name, ms| (name, Value::Span(Span::ms(ms)));
    let number = |name, value| (name, Value::Number(value));
    let case = |name, given, limit, ecn| Case { name, given, limit, ecn, flows: 8 };
    let scaled = vec![
        ms("target", 10),
        ms("t_update", 6),
        number("alpha", 1.0 / 16.0),
        number("beta", 10.0 / 16.0),
        ("byte_mode", Value::Flag(true)),
    ];
    let rate = vec![("delay", Value::Choice("rate")), ms("target", 10), ("quantum", bytes(600))];
    vec![
        case("fq_pie_noecn", vec![], 10_240, false),
        case("fq_pie_ecn", vec![ms("target", 5), number("mark_ecnth", 0.4)], 10_240, true),
        case("fq_pie_rate", rate, 10_240, false),
        case("fq_pie_bytemode", scaled, 10_240, false),
        case("fq_pie_limit", vec![ms("target", 200)], 60, true),
        case("fq_pie_memory", vec![ms("target", 500), ("memory_limit", bytes(30_000))], 10_240, false),
        case("fq_pie_flood", vec![number("alpha", 2.0), number("beta", 2.0)], 3000, true),
    ]
}

/// The discipline that the registry builds from these parameters, and others that replace them.
fn queue(case: &Case, more: &[(&'static str, Value)]) -> Discipline<Stamped<Pkt>> {
    let mut given = vec![
        ("preset", Value::Choice("linux")),
        ("limit", packets(case.limit as u64)),
        ("ecn", Value::Flag(case.ecn)),
    ];
    given.extend(case.given.iter().chain(more).cloned());
    build("fq_pie", &settings(&given), &LINK, Stream::new(1, "salt"))
}

fn law(case: &Case) -> PieLaw {
    let Discipline::FqPie(queue) = queue(case, &[]) else { panic!("not FQ-PIE") };
    let packet = Stamped { packet: Pkt::new(0), arrived: Instant::ZERO };
    queue.law_of(&packet).expect("hashed queues exist from the start").law.clone()
}

#[test]
fn each_arrival_has_the_fate_that_its_queues_law_allows() {
    let (mut hits, mut expected, mut variance) = (0.0, 0.0, 0.0);
    for case in cases() {
        let found = replay(&case, law(&case));
        let deviation = found.deviation();
        println!("{}: {found:?}, {deviation:.2} standard deviations", case.name);
        assert_eq!(found.differ, 0, "{}", case.name);
        assert!(deviation.abs() < 3.5, "{}", case.name);
        // Each case reaches what it was made for.
        assert_eq!(found.overflows > 100, case.name == "fq_pie_limit");
        assert_eq!(found.marks > 50, case.name == "fq_pie_ecn");
        assert!(found.largest > 1.0 || case.name != "fq_pie_flood");
        hits += found.hits;
        expected += found.expected;
        variance += found.variance;
    }
    println!("hits: {hits}, expected {expected:.1} with a standard deviation of {:.1}", variance.sqrt());
    assert!((hits - expected).abs() < 3.0 * variance.sqrt() && expected > 500.0);
}

/// Linux's departures from RFC 8033 show in these cases, too.
#[test]
fn each_difference_from_the_rfc_shows() {
    type Change = (&'static str, fn(&mut PieParams));
    let without: [Change; 3] = [
        ("arithmetic", |p| p.arithmetic = PieArithmetic::Exact),
        ("cap", |p| p.cap = false),
        ("derandomize", |p| p.derandomize = false),
    ];
    for (name, change) in without {
        let differs = cases().into_iter().any(|case| {
            let mut params = *law(&case).params();
            change(&mut params);
            let found = replay(&case, PieLaw::new(params));
            found.differ > 0 || found.deviation().abs() > 4.0
        });
        assert!(differs, "{name}");
    }
}

/// Sends packets through the whole discipline, all of them or those that the kernel queued, and returns how many
/// departures differ from the kernel's, and how many refusals.
fn whole(case: &Case, more: &[(&'static str, Value)], all: bool) -> (usize, usize) {
    let mut queue = queue(case, more);
    let (events, mut fates, mut refused) = (events(case.name), Fates::default(), Vec::new());
    let begin = events[0].0;
    let (mut arrivals, mut differ, mut now) = (0, 0, Instant::ZERO);
    for (at, event) in &events {
        now = Instant::from_ns(at - begin);
        match *event {
            Event::Arrival { size, ecn, flow, queued } => {
                let packet = Pkt { size, ecn, flow: flow as u64, ..Pkt::new(arrivals) };
                if queued || all {
                    queue.enqueue(now, Stamped { packet, arrived: now }, &mut fates);
                }
                if !queued {
                    refused.push((arrivals, Reason::Overflow));
                }
                arrivals += 1;
            }
            Event::Departure { number, marked } => {
                let out = queue.dequeue(now, &mut fates).map(|out| (out.packet.number, out.packet.ecn));
                let same = out
                    .is_some_and(|(ours, ecn)| ours == number as u64 && (!all || marked == (ecn == Ecn::Ce)));
                differ += usize::from(!same);
            }
            Event::Update | Event::State { .. } => {}
        }
    }
    assert_eq!(law_value(&queue, now, "collisions"), 0.0, "{}: two flows share a queue", case.name);
    let lost = if all { usize::from(fates.lost() != refused) } else { fates.dropped.len() };
    (differ, lost + queue.backlog().packets.get() as usize)
}

#[test]
fn the_packets_that_are_queued_leave_in_the_kernels_order() {
    let never = ("target", Value::Span(Span::s(100)));
    for case in cases() {
        assert_eq!(whole(&case, std::slice::from_ref(&never), false), (0, 0), "{}", case.name);
    }
}

/// In the cases without draws, the whole discipline loses the kernel's packets, those that find its limit
/// reached, and sends the others in the kernel's order. The limit on memory loses none.
#[test]
fn the_whole_discipline_loses_what_the_kernel_loses() {
    let case = |name: &str| cases().into_iter().find(|case| case.name == name).expect("a case");
    assert_eq!(whole(&case("fq_pie_limit"), &[], true), (0, 0));
    assert_eq!(whole(&case("fq_pie_memory"), &[], true), (0, 0));
    let drop = ("memory_full", Value::Choice("drop"));
    assert_ne!(whole(&case("fq_pie_memory"), &[drop], true), (0, 0));
}

/// A new queue that is empty at its turn leaves the lists if no others are old.
#[test]
fn the_way_of_an_empty_new_queue_shows() {
    let given = [("target", Value::Span(Span::s(100))), ("empty_new", Value::Choice("old"))];
    let differ: usize = cases().iter().map(|case| whole(case, &given, false).0).sum();
    assert!(differ > 0);
}
