//! The wrapper that spares short flows: which packets the law may touch, and which flows are short.

use aqmlab_params::{Settings, Value};
use aqmlab_qdisc::contract::LINK;
use aqmlab_qdisc::{Discipline, Ecn, Qdisc, Reason, Stamped, registry};
use aqmlab_random::Stream;
use aqmlab_units::{Instant, Span};

mod support;
use support::{Fates, Pkt, build, bytes, law_value, packets, settings};

type Queue = Discipline<Stamped<Pkt>>;

fn spare(inner: (&'static str, Settings), more: &[(&'static str, Value)]) -> Settings {
    settings(&[&[("queue", Value::Discipline { kind: inner.0, settings: inner.1 })], more].concat())
}

/// Settings with which each of these laws notifies most arrivals of a long queue.
fn eager(kind: &'static str) -> Settings {
    let ecn = ("ecn", Value::Flag(true));
    let more = match kind {
        "red" => vec![("min_th", packets(2)), ("max_th", packets(6)), ("w_q", Value::Number(0.5))],
        "blue" => vec![("increment", Value::Number(0.25))],
        "pi" => vec![("q_ref", packets(3)), ("a", Value::Number(0.002)), ("b", Value::Number(0.0019))],
        "rem" => vec![("q_ref", packets(3)), ("gamma", Value::Number(0.1))],
        "pie" => vec![("target", Value::Span(Span::ms(2))), ("max_burst", Value::Span(Span::ms(2)))],
        _ => vec![],
    };
    settings(&[&[("limit", packets(60)), ecn][..], &more].concat())
}

fn is_short(number: u64) -> bool {
    Stream::new(3, "load").at(number).is_multiple_of(2)
}

/// Offers twice the rate of the link for a while: many flows of a few packets, and one that goes on. Returns the
/// fates, with each packet's place in its flow as its class.
fn overload(queue: &mut Queue, capable: bool) -> Fates {
    let (mut fates, mut brought) = (Fates::default(), [0; 2]);
    for number in 0..6000_u64 {
        let now = Instant::ZERO + Span::us(400) * number;
        let short = is_short(number);
        let nth = brought[usize::from(short)];
        brought[usize::from(short)] += 1;
        let (flow, place) = if short { (nth / 5, nth % 5) } else { (1_000_000, nth) };
        let ecn = if capable { Ecn::Ect0 } else { Ecn::NotEct };
        let packet = Pkt { flow, class: place as usize, ecn, ..Pkt::new(number) };
        queue.enqueue(now, Stamped { packet, arrived: now }, &mut fates);
        if number % 2 == 0 {
            queue.dequeue(now, &mut fates);
        }
    }
    fates
}

#[test]
fn the_law_touches_no_packet_of_a_short_flow() {
    for kind in ["red", "ared", "scred", "pi", "pie", "rem", "blue", "avq"] {
        for capable in [false, true] {
            let bare = overload(&mut build(kind, &eager(kind), &LINK, Stream::new(1, "d")), capable);
            let given = spare((kind, eager(kind)), &[("below", packets(8))]);
            let mut queue: Queue = build("spare", &given, &LINK, Stream::new(1, "d"));
            let spared = overload(&mut queue, capable);
            let touched = |fates: &Fates, short: bool| {
                let by_law = |reason| matches!(reason, Reason::Early | Reason::Forced);
                let of = |packet: &Pkt| (packet.class < 8) == short;
                let all = fates.dropped.iter().chain(&fates.marked);
                all.filter(|(_, packet, at)| by_law(at.reason) && of(packet)).count()
            };
            assert!(touched(&bare, true) > 20, "{kind} without the wrapper: {}", touched(&bare, true));
            assert_eq!(touched(&spared, true), 0, "{kind}, ECN-capable {capable}");
            assert!(touched(&spared, false) > 20, "{kind}: {}", touched(&spared, false));
            let first_packets = (0..6000).filter(|number| is_short(*number)).count() + 8;
            let found = law_value(&queue, Instant::ZERO + Span::s(9), "spared");
            assert_eq!(found, first_packets as f64, "{kind}");
        }
    }
}

/// A queue in which nothing is short decides as the same queue without the wrapper, draw by draw.
#[test]
fn long_flows_meet_the_same_fates_as_without_the_wrapper() {
    let run = |kind, given: &Settings| {
        let mut queue: Queue = build(kind, given, &LINK, Stream::new(7, "d"));
        let mut fates = Fates::default();
        for number in 0..4000_u64 {
            let now = Instant::ZERO + Span::us(500) * number;
            let packet = Pkt { flow: number % 3, ..Pkt::new(number) };
            queue.enqueue(now, Stamped { packet, arrived: now }, &mut fates);
            // While the flows are short, the queue is empty, and the law has nothing to decide.
            if number < 30 || number % 3 > 0 {
                queue.dequeue(now, &mut fates);
            }
        }
        fates
    };
    for kind in ["red", "pi", "rem", "pie"] {
        let (bare, spared) = (run(kind, &eager(kind)), run("spare", &spare((kind, eager(kind)), &[])));
        assert!(bare.dropped.len() > 100, "{kind}: {}", bare.dropped.len());
        assert_eq!(bare, spared, "{kind}");
    }
}

/// Returns how many of these arrivals (millisecond, flow, bytes) are spared.
fn spared(more: &[(&'static str, Value)], arrivals: &[(u64, u64, u64)]) -> u64 {
    let mut queue: Queue = build("spare", &spare(("red", eager("red")), more), &LINK, Stream::new(1, "d"));
    for (at, flow, size) in arrivals {
        let now = Instant::ZERO + Span::ms(*at);
        let packet = Pkt { flow: *flow, size: *size, ..Pkt::new(0) };
        queue.enqueue(now, Stamped { packet, arrived: now }, &mut Fates::default());
    }
    law_value(&queue, Instant::ZERO + Span::s(1000), "spared") as u64
}

#[test]
fn a_flow_is_short_until_it_has_brought_so_much() {
    let five = [(0, 1, 400); 5];
    assert_eq!(spared(&[("below", packets(3))], &five), 3);
    assert_eq!(spared(&[("below", bytes(800))], &five), 2);
    assert_eq!(spared(&[("below", bytes(801))], &five), 3);
    assert_eq!(spared(&[], &[(0, 1, 400); 50]), 10);
}

#[test]
fn the_longest_silent_flow_is_forgotten_for_a_new_one() {
    let two = [("below", packets(1)), ("flows", Value::Integer(2))];
    assert_eq!(spared(&two, &[(0, 1, 99), (1, 2, 99), (2, 1, 99), (3, 2, 99)]), 2);
    // The third flow takes the place of the first, which then takes that of the second.
    assert_eq!(spared(&two, &[(0, 1, 99), (1, 2, 99), (2, 3, 99), (3, 2, 99), (4, 1, 99), (5, 3, 99)]), 5);
    // An arrival ends the silence of a flow.
    assert_eq!(spared(&two, &[(0, 1, 99), (1, 2, 99), (2, 1, 99), (3, 3, 99), (4, 1, 99), (5, 2, 99)]), 4);
}

#[test]
fn silence_makes_a_flow_new() {
    let forget = [("below", packets(1)), ("forget", Value::Span(Span::ms(50)))];
    assert_eq!(spared(&forget, &[(0, 1, 99), (50, 1, 99), (100, 1, 99)]), 1);
    assert_eq!(spared(&forget, &[(0, 1, 99), (51, 1, 99), (60, 1, 99), (111, 1, 99)]), 3);
}

#[test]
fn a_law_that_cannot_spare_packets_is_refused() {
    let refused = |inner| {
        let given = spare(inner, &[]);
        registry::info("spare").unwrap().resolve(&given, &LINK).expect_err("refused").message
    };
    assert_eq!(
        refused(("codel", Settings::default())),
        "`codel` has no law that decides at arrivals about the packets of one queue, so it cannot spare flows; write \
         one of `red`, `ared`, `scred`, `pi`, `pie`, `rem`, `blue`, `avq`"
    );
    let rem = settings(&[("decide", Value::Choice("dequeue"))]);
    assert!(refused(("rem", rem)).starts_with("`rem` with decide `dequeue` has no law"));
    assert!(registry::info("spare").unwrap().resolve(&Settings::default(), &LINK).is_err());
}
