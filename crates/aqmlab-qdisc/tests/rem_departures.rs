//! REM that decides at departures: marks there, drops there, packets that pass; and ns-2's buffer of one less.

use aqmlab_params::{Origin, Settings, Value};
use aqmlab_qdisc::contract::LINK;
use aqmlab_qdisc::{
    Arrived, Cause, Classed, Discipline, Dscp, Ecn, Observer, Packet, Qdisc, Reason, Registry, Side,
};
use aqmlab_random::{Stream, unit_from_bits};
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Instant, Packets, Span};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Pkt {
    number: u64,
    ecn: Ecn,
}

impl Packet for Pkt {
    fn wire_len(&self) -> Bytes {
        LINK.mean_packet
    }
    fn flow_hash(&self, salt: u64) -> u64 {
        salt
    }
    fn host_hash(&self, _: Side, salt: u64) -> u64 {
        salt
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn mark_ce(&mut self) {
        self.ecn = Ecn::Ce;
    }
    fn dscp(&self) -> Dscp {
        Dscp(0)
    }
    fn set_dscp(&mut self, _: Dscp) {}
}

/// REM does not ask how long a packet has waited.
impl Classed for Pkt {}

impl Arrived for Pkt {
    fn arrived(&self) -> Instant {
        Instant::ZERO
    }
}

#[derive(Default)]
struct Fates {
    dropped: Vec<(u64, Reason)>,
    marked: Vec<u64>,
}

impl Observer<Pkt> for Fates {
    fn dropped(&mut self, _: Instant, pkt: Pkt, at: Cause) {
        self.dropped.push((pkt.number, at.reason));
    }
    fn marked(&mut self, _: Instant, pkt: &Pkt, _: Cause) {
        self.marked.push(pkt.number);
    }
}

fn rem(values: &[(&'static str, Value)]) -> Discipline<Pkt> {
    let mut given = Settings::default();
    let limit = ("limit", Value::Size(Size::Packets(Packets::new(1000))));
    // The first period's arrivals raise the price by 0.3 each.
    for (name, value) in [limit, ("gamma", Value::Number(0.3))].iter().chain(values) {
        given.set(name, value.clone(), Origin::Given);
    }
    Registry::builtin().build("rem", &given, &LINK, draws()).unwrap()
}

fn draws() -> Stream {
    Stream::new(3, "rem")
}

const AT_DEPARTURE: (&str, Value) = ("decide", Value::Choice("dequeue"));
const ECN: (&str, Value) = ("ecn", Value::Flag(true));
const PASS: (&str, Value) = ("not_ect", Value::Choice("pass"));

/// 900 packets arrive at once and are sent off after the first update; who left, and the probability then.
fn sent(queue: &mut Discipline<Pkt>, ecn: impl Fn(u64) -> Ecn, fates: &mut Fates) -> (Vec<Pkt>, f64) {
    for number in 0..900 {
        queue.enqueue(Instant::ZERO, Pkt { number, ecn: ecn(number) }, fates);
    }
    assert!(
        fates.dropped.is_empty() && fates.marked.is_empty(),
        "nothing is decided before the first update"
    );
    let later = Instant::ZERO + Span::ms(3);
    let mut law = Vec::new();
    queue.observe(later, &mut law);
    let p = law.iter().find(|(name, _)| *name == "p").unwrap().1;
    (std::iter::from_fn(|| queue.dequeue(later, fates)).collect(), p)
}

/// Which of the packets that leave are chosen: departure n has draw n.
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
    assert_eq!(fates.marked, chosen(p));
    assert!(left.iter().all(|pkt| (pkt.ecn == Ecn::Ce) == fates.marked.contains(&pkt.number)));
}

#[test]
fn what_cannot_be_marked_is_dropped_and_the_next_packet_leaves() {
    let (mut queue, mut fates) = (rem(&[AT_DEPARTURE, ECN]), Fates::default());
    let (left, p) = sent(&mut queue, |n| if n % 2 == 0 { Ecn::Ect0 } else { Ecn::NotEct }, &mut fates);
    let (even, odd): (Vec<u64>, Vec<u64>) = chosen(p).into_iter().partition(|n| n % 2 == 0);
    assert_eq!(fates.marked, even);
    assert_eq!(fates.dropped, odd.iter().map(|&n| (n, Reason::Early)).collect::<Vec<_>>());
    let others: Vec<u64> = (0..900).filter(|n| !odd.contains(n)).collect();
    assert_eq!(left.iter().map(|pkt| pkt.number).collect::<Vec<_>>(), others);
}

#[test]
fn in_ns2_what_cannot_be_marked_passes() {
    let (mut queue, mut fates) = (rem(&[AT_DEPARTURE, ECN, PASS]), Fates::default());
    let (left, p) = sent(&mut queue, |n| if n % 2 == 0 { Ecn::Ect0 } else { Ecn::NotEct }, &mut fates);
    assert_eq!((left.len(), fates.dropped.len()), (900, 0));
    assert_eq!(fates.marked, chosen(p).into_iter().filter(|n| n % 2 == 0).collect::<Vec<_>>());
}

#[test]
fn packets_may_pass_at_arrival_too() {
    let at_arrival = ("decide", Value::Choice("enqueue"));
    let (mut queue, mut fates) = (rem(&[at_arrival, ECN, PASS]), Fates::default());
    assert!(queue.settles_at_enqueue());
    let _ = sent(&mut queue, |_| Ecn::NotEct, &mut fates);
    let later = Instant::ZERO + Span::ms(5);
    for number in 900..1900 {
        queue.enqueue(later, Pkt { number, ecn: Ecn::NotEct }, &mut fates);
    }
    assert!(fates.dropped.is_empty(), "{:?}", fates.dropped);
    queue.enqueue(later, Pkt { number: 1900, ecn: Ecn::NotEct }, &mut fates);
    assert_eq!(fates.dropped, [(1900, Reason::Overflow)]);
}

#[test]
fn a_full_buffer_comes_before_the_law() {
    let (mut queue, mut fates) = (rem(&[("gamma", Value::Number(1000.0))]), Fates::default());
    for number in 0..1000 {
        queue.enqueue(Instant::ZERO, Pkt { number, ecn: Ecn::NotEct }, &mut fates);
    }
    let later = Instant::ZERO + Span::ms(2);
    queue.enqueue(later, Pkt { number: 1000, ecn: Ecn::NotEct }, &mut fates);
    queue.dequeue(later, &mut fates);
    queue.enqueue(later, Pkt { number: 1001, ecn: Ecn::NotEct }, &mut fates);
    assert_eq!(fates.dropped, [(1000, Reason::Overflow), (1001, Reason::Early)]);
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
            queue.enqueue(Instant::ZERO, Pkt { number, ecn: Ecn::NotEct }, &mut fates);
        }
        assert_eq!(queue.backlog().packets, Packets::new(held), "{limit}");
        assert!(fates.dropped.iter().all(|(_, reason)| *reason == Reason::Overflow));
    }
}
