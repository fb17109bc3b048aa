//! The queues of DualPI2 and PI2: classifier, buffer, books, reasons, shares and probabilities. The laws are compared
//! with Linux in `linux_dualpi2.rs`.

use aqmlab_params::Value;
use aqmlab_qdisc::contract::LINK;
use aqmlab_qdisc::{Cause, Discipline, Ecn, Observer, Port, Qdisc, Reason, Stamped};
use aqmlab_random::Stream;
use aqmlab_units::{Bytes, Instant, Span};

mod support;
use support::{Fates, Pkt, build, bytes, law_value, packets, settings};

type Queue = Discipline<Stamped<Pkt>>;

fn queue(name: &str, values: &[(&'static str, Value)]) -> Queue {
    build(name, &settings(values), &LINK, Stream::new(7, "dualpi2"))
}

fn arrive(queue: &mut Queue, now: Instant, number: u64, ecn: Ecn, obs: &mut Fates) {
    queue.enqueue(now, Stamped { packet: Pkt { ecn, ..Pkt::new(number) }, arrived: now }, obs);
}

fn word(name: &'static str, word: &'static str) -> (&'static str, Value) {
    (name, Value::Choice(word))
}

fn span(name: &'static str, span: Span) -> (&'static str, Value) {
    (name, Value::Span(span))
}

/// Gains with which p' reaches `p` at the first update, and then stays there: the packet at the head arrived at
/// time zero, and the target is reached.
fn constant(p: f64) -> Vec<(&'static str, Value)> {
    // p' = beta d at the first update, 10 s after the start; no other follows.
    vec![
        span("target", Span::s(10)),
        span("tupdate", Span::s(10)),
        ("alpha", Value::Number(1e-9)),
        ("beta", Value::Number(p / 10.0)),
    ]
}

const UPDATE: Instant = Instant::from_ns(10_000_000_000);

#[test]
fn the_ecn_field_decides_about_the_queue() {
    for (classifier, in_l) in [
        ("l4s", [false, true, false, true]),
        ("ect1", [false, true, false, false]),
        ("any_ect", [false, true, true, true]),
    ] {
        let mut queue = queue("dualpi2", &[word("classifier", classifier)]);
        let mut found = Vec::new();
        for (n, ecn) in [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce].into_iter().enumerate() {
            let before = lengths(&queue);
            arrive(&mut queue, Instant::ZERO, n as u64, ecn, &mut Fates::default());
            found.push(lengths(&queue).0 > before.0);
        }
        assert_eq!(found, in_l, "{classifier}");
    }
}

/// The packets in L and C.
fn lengths(queue: &Queue) -> (u64, u64) {
    let mut found = Vec::new();
    queue.each_inner(&mut |name, inner| found.push((name.to_owned(), inner.backlog().packets.get())));
    assert_eq!([&*found[0].0, &*found[1].0], ["l4s", "classic"]);
    (found[0].1, found[1].1)
}

#[test]
fn both_queues_share_a_buffer_that_keeps_room_for_a_full_packet() {
    let mut fates = Fates::default();
    let mut small = queue("dualpi2", &[("limit", bytes(3499))]);
    for (n, ecn) in [Ecn::Ect1, Ecn::NotEct, Ecn::NotEct, Ecn::Ect1].into_iter().enumerate() {
        arrive(&mut small, Instant::ZERO, n as u64, ecn, &mut fates);
    }
    // 2000 B + the 1500 B of the MTU exceed 3499 B, although the packets have only 1000 B.
    assert_eq!(fates.lost(), [(2, Reason::Overflow), (3, Reason::Overflow)]);
    assert_eq!([fates.dropped[0].2.inner, fates.dropped[1].2.inner], [2, 1]);
}

#[test]
fn l_goes_first_and_c_keeps_a_tenth_of_the_bytes() {
    let mut queue = queue(
        "dualpi2",
        &[word("native", "step"), span("step_thresh", Span::s(9)), ("limit", packets(9000))],
    );
    let mut fates = Fates::default();
    for n in 0..8000 {
        arrive(&mut queue, Instant::ZERO, n, if n % 2 == 0 { Ecn::Ect1 } else { Ecn::NotEct }, &mut fates);
    }
    let left: Vec<_> =
        (0..4000).map(|_| queue.dequeue(Instant::ZERO, &mut fates).unwrap().packet.number % 2).collect();
    // The first credit is 1500 B times 80 hundredths, which 10 hundredths of 1000 B each use up in 12 packets; at 0,
    // L is still next.
    assert!(left[..13].iter().all(|&classic| classic == 0) && left[13] == 1, "{:?}", &left[..20]);
    let classic = left[13..].iter().sum::<u64>() as f64 / (left.len() - 13) as f64;
    assert!((classic - 0.1).abs() < 0.002, "{classic}");
}

#[test]
fn ls_own_law_marks_what_waits_and_reports_it_as_forced() {
    let mut queue = queue("dualpi2", &[]);
    let mut fates = Fates::default();
    for n in 0..4 {
        arrive(&mut queue, Instant::ZERO, n, Ecn::Ect1, &mut fates);
    }
    let now = Instant::ZERO + Span::us(1200);
    let out: Vec<_> = std::iter::from_fn(|| queue.dequeue(now, &mut fates)).map(|p| p.packet.ecn).collect();
    // A recurrent sum must exceed 1, so the first certain mark is the second packet; a packet that leaves
    // fewer than two behind is not marked.
    assert_eq!(out, [Ecn::Ect1, Ecn::Ce, Ecn::Ect1, Ecn::Ect1]);
    assert_eq!(fates.marked.len(), 1);
    assert_eq!(fates.marked[0].2, Cause { reason: Reason::Forced, inner: 1 });
}

#[test]
fn an_overloaded_queue_drops_what_it_would_mark() {
    for (overload, p, marks) in
        [("drop", 0.6, false), ("drop", 0.4, true), ("none", 0.6, true), ("overflow", 0.6, true)]
    {
        let values = [constant(p), vec![word("overload", overload), ("limit", packets(5000))]].concat();
        let mut queue = queue("dualpi2", &values);
        let mut fates = Fates::default();
        for n in 0..4000 {
            arrive(&mut queue, Instant::ZERO, n, Ecn::Ect0, &mut fates);
        }
        while queue.dequeue(UPDATE, &mut fates).is_some() {}
        let chosen = (fates.dropped.len(), fates.marked.len());
        let p = if overload == "overflow" { 0.5 } else { p };
        assert!((law_value(&queue, UPDATE, "p") - p).abs() < 1e-6, "{overload}");
        let (found, none) = if marks { (chosen.1, chosen.0) } else { (chosen.0, chosen.1) };
        assert_eq!(none, 0, "{overload} {p}");
        assert!((found as f64 / 4000.0 - p * p).abs() < 0.001, "{overload} {p}: {found}");
    }
}

#[test]
fn the_controller_has_the_longer_wait_of_both_queues_where_overload_is_handled() {
    for (overload, first, p) in [
        ("drop", Ecn::Ect1, 0.4),
        ("drop", Ecn::NotEct, 0.4),
        ("none", Ecn::Ect1, 0.1),
        ("none", Ecn::NotEct, 0.4),
    ] {
        let mut queue = queue("dualpi2", &[constant(0.4), vec![word("overload", overload)]].concat());
        let second = if first == Ecn::Ect1 { Ecn::NotEct } else { Ecn::Ect1 };
        arrive(&mut queue, Instant::ZERO, 0, first, &mut Fates::default());
        arrive(&mut queue, Instant::ZERO + Span::ms(7500), 1, second, &mut Fates::default());
        assert!((law_value(&queue, UPDATE, "p") - p).abs() < 1e-6, "{overload} {first:?}");
    }
}

#[test]
fn pi2_squares_for_classic_and_not_for_scalable_packets() {
    for (coins, tolerance) in [("random", 0.02), ("recurrent", 0.001)] {
        for (ecn, expected) in [(Ecn::NotEct, 0.09), (Ecn::Ect0, 0.09), (Ecn::Ect1, 0.6)] {
            let more = [
                word("coins", coins),
                word("decide", "dequeue"),
                ("ecn", Value::Flag(true)),
                ("limit", packets(9000)),
            ];
            let mut queue = queue("pi2", &[&constant(0.3)[..], &more].concat());
            let mut fates = Fates::default();
            for n in 0..8000 {
                arrive(&mut queue, Instant::ZERO, n, ecn, &mut fates);
            }
            while queue.dequeue(UPDATE, &mut fates).is_some() {}
            let (dropped, marked) = (fates.dropped.len() as f64 / 8000.0, fates.marked.len() as f64 / 8000.0);
            let (found, none) = if ecn == Ecn::NotEct { (dropped, marked) } else { (marked, dropped) };
            assert!(none == 0.0 && (found - expected).abs() < tolerance, "{coins} {ecn:?}: {found}");
        }
    }
}

/// Counts what enters and leaves each inner queue.
#[derive(Default)]
struct Inner {
    entered: [u64; 3],
    left: [u64; 3],
    dropped: [u64; 3],
}

impl Observer<Stamped<Pkt>> for Inner {
    fn dropped(&mut self, _: Instant, _: Stamped<Pkt>, at: Cause) {
        self.dropped[usize::from(at.inner)] += 1;
    }
    fn marked(&mut self, _: Instant, _: &Stamped<Pkt>, at: Cause) {
        assert_ne!(at.inner, 0);
    }
    fn entered(&mut self, _: Instant, _: &Stamped<Pkt>, inner: u16) {
        self.entered[usize::from(inner)] += 1;
    }
    fn left(&mut self, _: Instant, _: &Stamped<Pkt>, inner: u16) {
        self.left[usize::from(inner)] += 1;
    }
}

/// The port's books of the two queues balance under random loads.
#[test]
fn the_books_of_both_queues_balance() {
    for preset in ["rfc9332", "linux"] {
        for decide in ["enqueue", "dequeue"] {
            let values = [
                word("preset", preset),
                word("decide", decide),
                span("target", Span::ms(2)),
                span("tupdate", Span::ms(1)),
                ("limit", packets(60)),
            ];
            let mut direct = queue("dualpi2", &values);
            let mut counts = Inner::default();
            let mut port = Port::new(queue("dualpi2", &values), LINK.rate, Bytes::ZERO, 1);
            let (mut draws, mut now) = (Stream::new(3, "load"), Instant::ZERO);
            for n in 0..20_000 {
                let ecn = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce][(draws.bits() >> 62) as usize];
                now += Span::us(draws.bits() >> 54);
                while port.next_event().is_some_and(|at| at <= now) {
                    let at = port.next_event().unwrap();
                    port.link_free(at, &mut Fates::default());
                }
                port.arrive(now, Pkt { ecn, ..Pkt::new(n) }, &mut Fates::default());
                direct.enqueue(
                    now,
                    Stamped { packet: Pkt { ecn, ..Pkt::new(n) }, arrived: now },
                    &mut counts,
                );
                if n % 3 == 0 {
                    direct.dequeue(now, &mut counts);
                }
            }
            port.check_books().expect("the books balance");
            let (l4s, classic) = lengths(&direct);
            assert_eq!(counts.entered[1], counts.left[1] + counts.dropped[1] + l4s);
            assert_eq!(counts.entered[2], counts.left[2] + counts.dropped[2] + classic);
            assert!(counts.dropped[0] == 0 && counts.dropped[2] > 100 && counts.left[1] > 100);
        }
    }
}

/// RFC 9332, appendix A.1: the constants that its parameters determine.
#[test]
fn the_gains_follow_from_the_largest_round_trip_time() {
    let info = aqmlab_qdisc::registry::info("dualpi2").unwrap();
    let resolved = info.resolve(&settings(&[]), &LINK).unwrap();
    assert_eq!(resolved.get("tupdate"), Some(&Value::Span(Span::ms(15))));
    assert_eq!((resolved.number("alpha"), resolved.number("beta")), (Ok(0.15), Ok(3.0)));
    let long = settings(&[span("max_rtt", Span::ms(30)), span("target", Span::ms(20))]);
    let resolved = info.resolve(&long, &LINK).unwrap();
    assert_eq!(resolved.get("tupdate"), Some(&Value::Span(Span::ms(10))), "a third of max_rtt");
}
