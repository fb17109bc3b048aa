//! REM that decides at departures: its marks, its drops, the packets that pass, and ns-2's buffer, which
//! holds one packet fewer than its limit.

use aqmlab_params::Value;
use aqmlab_qdisc::contract::LINK;
use aqmlab_qdisc::{Discipline, Ecn, Qdisc, Reason};
use aqmlab_random::{Stream, unit_from_bits};
use aqmlab_units::{Instant, Packets, Span};

mod support;
use support::{Fates, Pkt, build, law_value, packets, settings};

fn pkt(number: u64) -> Pkt {
    Pkt { size: LINK.mean_packet.get(), ..Pkt::new(number) }
}

fn marked(fates: &Fates) -> Vec<u64> {
    fates.marked.iter().map(|(_, pkt, _)| pkt.number).collect()
}

fn rem(values: &[(&'static str, Value)]) -> Discipline<Pkt> {
    // The first period's arrivals raise the price by 0.3 each.
    let shared = [("limit", packets(1000)), ("gamma", Value::Number(0.3))];
    let given = settings(&[&shared, values].concat());
    build("rem", &given, &LINK, draws())
}

fn draws() -> Stream {
    Stream::new(3, "rem")
}

const AT_DEPARTURE: (&str, Value) = ("decide", Value::Choice("dequeue"));
const ECN: (&str, Value) = ("ecn", Value::Flag(true));
const PASS: (&str, Value) = ("not_ect", Value::Choice("pass"));

/// Sends 900 packets that all arrive at time zero and leave after the first update; returns those that
/// left, and the probability at that time.
fn sent(queue: &mut Discipline<Pkt>, ecn: impl Fn(u64) -> Ecn, fates: &mut Fates) -> (Vec<Pkt>, f64) {
    for number in 0..900 {
        queue.enqueue(Instant::ZERO, Pkt { ecn: ecn(number), ..pkt(number) }, fates);
    }
    assert!(
        fates.dropped.is_empty() && fates.marked.is_empty(),
        "nothing is decided before the first update"
    );
    let later = Instant::ZERO + Span::ms(3);
    let p = law_value(queue, later, "p");
    (std::iter::from_fn(|| queue.dequeue(later, fates)).collect(), p)
}

/// Returns the chosen packets among those that leave: departure n is decided by draw n.
fn chosen(p: f64) -> Vec<u64> {
    let mut numbered = draws().numbered();
    (0..900).filter(|&n| unit_from_bits(numbered.at(n)) < p).collect()
}

#[test]
fn each_departure_has_the_draw_of_its_number_and_is_marked_by_it() {
    let (mut queue, mut fates) = (rem(&[AT_DEPARTURE, ECN]), Fates::default());
    assert!(!queue.settles_at_enqueue());
    let (left, p) = sent(&mut queue, |_| Ecn::Ect0, &mut fates);
    assert!((0.2..0.4).contains(&p), "{p}");
    assert_eq!((left.len(), fates.dropped.len()), (900, 0));
    assert_eq!(marked(&fates), chosen(p));
    assert!(left.iter().all(|pkt| (pkt.ecn == Ecn::Ce) == marked(&fates).contains(&pkt.number)));
}

#[test]
fn what_cannot_be_marked_is_dropped_and_the_next_packet_leaves() {
    let (mut queue, mut fates) = (rem(&[AT_DEPARTURE, ECN]), Fates::default());
    let (left, p) = sent(&mut queue, |n| if n % 2 == 0 { Ecn::Ect0 } else { Ecn::NotEct }, &mut fates);
    let (even, odd): (Vec<u64>, Vec<u64>) = chosen(p).into_iter().partition(|n| n % 2 == 0);
    assert_eq!(marked(&fates), even);
    assert_eq!(fates.lost(), odd.iter().map(|&n| (n, Reason::Early)).collect::<Vec<_>>());
    let others: Vec<u64> = (0..900).filter(|n| !odd.contains(n)).collect();
    assert_eq!(left.iter().map(|pkt| pkt.number).collect::<Vec<_>>(), others);
}

#[test]
fn in_ns2_what_cannot_be_marked_passes() {
    let (mut queue, mut fates) = (rem(&[AT_DEPARTURE, ECN, PASS]), Fates::default());
    let (left, p) = sent(&mut queue, |n| if n % 2 == 0 { Ecn::Ect0 } else { Ecn::NotEct }, &mut fates);
    assert_eq!((left.len(), fates.dropped.len()), (900, 0));
    assert_eq!(marked(&fates), chosen(p).into_iter().filter(|n| n % 2 == 0).collect::<Vec<_>>());
}

#[test]
fn packets_may_pass_at_arrival_too() {
    let at_arrival = ("decide", Value::Choice("enqueue"));
    let (mut queue, mut fates) = (rem(&[at_arrival, ECN, PASS]), Fates::default());
    assert!(queue.settles_at_enqueue());
    let _ = sent(&mut queue, |_| Ecn::NotEct, &mut fates);
    let later = Instant::ZERO + Span::ms(5);
    for number in 900..1900 {
        queue.enqueue(later, pkt(number), &mut fates);
    }
    assert!(fates.dropped.is_empty(), "{:?}", fates.dropped);
    queue.enqueue(later, pkt(1900), &mut fates);
    assert_eq!(fates.lost(), [(1900, Reason::Overflow)]);
}

#[test]
fn a_full_buffer_comes_before_the_law() {
    let (mut queue, mut fates) = (rem(&[("gamma", Value::Number(1000.0))]), Fates::default());
    for number in 0..1000 {
        queue.enqueue(Instant::ZERO, pkt(number), &mut fates);
    }
    let later = Instant::ZERO + Span::ms(2);
    queue.enqueue(later, pkt(1000), &mut fates);
    queue.dequeue(later, &mut fates);
    queue.enqueue(later, pkt(1001), &mut fates);
    assert_eq!(fates.lost(), [(1000, Reason::Overflow), (1001, Reason::Early)]);
}

#[test]
fn limit_rule_below_holds_one_less() {
    for (limit, measure, held) in [("50p", "packets", 49), ("75kB", "packets", 49), ("50p", "bytes", 49)] {
        let limit = aqmlab_units::text::parse_size(limit).unwrap();
        let below = [
            ("limit", Value::Size(limit)),
            ("limit_rule", Value::Choice("below")),
            ("measure", Value::Choice(measure)),
        ];
        let (mut queue, mut fates) = (rem(&below), Fates::default());
        for number in 0..60 {
            queue.enqueue(Instant::ZERO, pkt(number), &mut fates);
        }
        assert_eq!(queue.backlog().packets, Packets::new(held), "{limit}");
        assert!(fates.dropped.iter().all(|(.., at)| at.reason == Reason::Overflow));
    }
}
