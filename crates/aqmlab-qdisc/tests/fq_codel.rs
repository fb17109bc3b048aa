//! FQ-CoDel against schedules worked out by hand from RFC 8290: section 4.1 (queueing and overflows) and
//! section 4.2 (credit, new and old queues).

use aqmlab_params::{Origin, Value};
use aqmlab_qdisc::contract::LINK;
use aqmlab_qdisc::disc::{CodelControl, FqCodel, idle_queue_bytes};
use aqmlab_qdisc::{Discipline, Inside, Port, Qdisc, Reason, Stamped};
use aqmlab_random::Stream;
use aqmlab_units::{Bytes, Instant, Span};

mod support;
use support::{Fates, Pkt, build, bytes, law_value, packets, settings};

/// A queue whose flows do not meet, and its observer.
struct Bench {
    queue: FqCodel<Stamped<Pkt>>,
    fates: Fates,
    now: Instant,
    sent: u64,
}

impl Bench {
    fn new(given: &[(&'static str, Value)]) -> Self {
        let mut given = settings(given);
        given.set("queues", Value::Choice("perfect"), Origin::Given);
        let Discipline::FqCodel(queue) = build("fq_codel", &given, &LINK, Stream::new(1, "salt")) else {
            panic!("it is an FQ-CoDel");
        };
        Bench { queue, fates: Fates::default(), now: Instant::ZERO, sent: 0 }
    }

    /// Packets of a flow arrive; they are numbered in order of arrival.
    fn arrive(&mut self, flow: u64, sizes: &[u64]) {
        for &size in sizes {
            let packet = Pkt { flow, size, ..Pkt::new(self.sent) };
            self.sent += 1;
            self.queue.enqueue(self.now, Stamped { packet, arrived: self.now }, &mut self.fates);
        }
    }

    /// Returns the flows of the next packets to leave, with their numbers.
    fn leave(&mut self, packets: usize) -> Vec<(u64, u64)> {
        let next = |_| self.queue.dequeue(self.now, &mut self.fates).expect("a packet waits").packet;
        (0..packets).map(next).map(|pkt| (pkt.flow, pkt.number)).collect()
    }

    fn flows(&mut self, packets: usize) -> Vec<u64> {
        self.leave(packets).into_iter().map(|(flow, _)| flow).collect()
    }

    fn lists(&self) -> [u64; 2] {
        ["new", "old"].map(|name| law_value(&self.queue, self.now, name) as u64)
    }
}

/// Credits: A begins with 1000 B. Two packets of 600 B leave it at -200, so it turns old with 800; a third one
/// leaves it at 200, and a fourth one at -400. B, with packets of 300 B, sends four per quantum (1000, 700,
/// 400, 100 B are left before each).
#[test]
fn credit_is_bytes_and_a_queue_sends_while_any_is_left() {
    let mut bench = Bench::new(&[("quantum", bytes(1000))]);
    bench.arrive(0, &[600; 8]);
    bench.arrive(1, &[300; 8]);
    assert_eq!(bench.lists(), [2, 0]);
    // A: 2 packets, -200 -> old, 800. B: 4 packets, -200 -> old, 800. A: 800, 200, -400 -> 600. B: 800, 500,
    // 200, -100 -> 900. A: 600, 0 -> 1000. B: its last packet.
    let expected = [0, 0, 1, 1, 1, 1, 0, 0, 1, 1, 1, 0, 1, 0, 0, 0];
    assert_eq!(bench.flows(16), expected);
    assert_eq!(bench.queue.dequeue(bench.now, &mut bench.fates), None);
    assert_eq!(bench.lists(), [0, 0]);
}

/// A flow that sends a packet now and then is served before the bulk flows, behind no more than what was
/// already chosen.
#[test]
fn a_new_queue_goes_before_the_old_ones() {
    let mut bench = Bench::new(&[("quantum", bytes(1500))]);
    bench.arrive(0, &[1500; 10]);
    bench.arrive(1, &[1500; 10]);
    assert_eq!(bench.flows(4), [0, 1, 0, 1]);
    bench.arrive(2, &[100]);
    bench.arrive(3, &[100]);
    assert_eq!(bench.lists(), [2, 2]);
    assert_eq!(bench.flows(3), [2, 3, 0]);
    // Both are empty now and have passed behind the old queues; their next packets wait there.
    assert_eq!(bench.lists(), [0, 4]);
    // The old queues are 0 (no credit), 2, 3, 1. 0 moves behind 1, and 2 sends and is found empty; so is 3.
    bench.arrive(2, &[100]);
    assert_eq!((bench.lists(), bench.flows(3)), ([0, 4], vec![2, 1, 0]));
    // 2 and 3 are idle and can become new again.
    assert_eq!(bench.lists(), [0, 2]);
    bench.arrive(3, &[100]);
    assert_eq!((bench.lists(), bench.flows(2)), ([1, 2], vec![3, 1]));
}

/// A queue that has sent exactly a quantum has no credit left.
#[test]
fn a_quantum_of_bytes_ends_the_turn() {
    let mut bench = Bench::new(&[("quantum", bytes(1000))]);
    bench.arrive(0, &[500; 4]);
    bench.arrive(1, &[500; 4]);
    assert_eq!(bench.flows(8), [0, 0, 1, 1, 0, 0, 1, 1]);
}

/// Ten packets fit. The eleventh makes flow 0 with six packets (6000 B) the longest: it loses the three at its
/// head. Flow 2 has more packets, but fewer bytes.
#[test]
fn an_overflow_halves_the_queue_with_most_bytes_from_its_head() {
    let lost = |given: &[(&'static str, Value)]| {
        let mut bench = Bench::new(&[&[("limit", packets(15))], given].concat());
        bench.arrive(0, &[1000; 6]);
        bench.arrive(1, &[1000; 2]);
        bench.arrive(2, &[100; 8]);
        assert!(
            bench
                .fates
                .dropped
                .iter()
                .all(|(_, pkt, at)| { pkt.flow == 0 && (at.reason, at.inner) == (Reason::Overflow, 1) })
        );
        bench.fates.lost().into_iter().map(|(number, _)| number).collect::<Vec<_>>()
    };
    assert_eq!(lost(&[]), [0, 1, 2]);
    assert_eq!(lost(&[("batch", Value::Integer(2))]), [0, 1]);
    assert_eq!(lost(&[("half_of", Value::Choice("bytes"))]), [0, 1, 2]);
    assert_eq!(lost(&[("limit", bytes(8799))]), [0, 1, 2]);
    assert_eq!(lost(&[("limit", packets(100)), ("memory_limit", bytes(8799))]), [0, 1, 2]);
}

/// CoDel of each queue drops on its own: a flow that waits too long loses packets, and one that does not, none.
#[test]
fn each_queue_has_its_own_codel() {
    let mut bench = Bench::new(&[("ecn", Value::Flag(false))]);
    let mut left = [0; 2];
    for ms in 0..1000 {
        bench.now = Instant::ZERO + Span::ms(ms);
        bench.arrive(0, &[1000; 2]);
        if ms % 3 == 0 {
            bench.arrive(1, &[200]);
        }
        bench.leave(1).into_iter().for_each(|(flow, _)| left[flow as usize] += 1);
    }
    assert!(bench.fates.dropped.len() > 10);
    assert!(bench.fates.dropped.iter().all(|(_, pkt, at)| pkt.flow == 0 && at.reason == Reason::Early));
    assert_eq!(left, [666, 334]);
    let counts = [0, 1].map(|flow| {
        let law = bench.queue.law_of(&Stamped { packet: Pkt { flow, ..Pkt::new(0) }, arrived: bench.now });
        law.expect("its queue exists").law.count()
    });
    assert!(counts[0] > 10 && counts[1] == 0, "{counts:?}");
}

/// With a queue per flow, memory is bounded: a flow that comes back soon finds its state, and a queue whose
/// law would start anew anyway goes to the next flow.
#[test]
fn idle_queues_are_used_again_once_nothing_is_remembered() {
    let mut bench = Bench::new(&[]);
    for flow in 0..10_000 {
        bench.now += Span::ms(1);
        bench.arrive(flow, &[1000]);
        assert_eq!(bench.flows(1), [flow]);
        assert_eq!(bench.queue.dequeue(bench.now, &mut bench.fates), None);
    }
    let first = bench.queue.law_of(&Stamped { packet: Pkt::new(0), arrived: bench.now });
    assert_eq!(first, None, "the queue of the first flow has gone to another one");
    assert_eq!(law_value(&bench.queue, bench.now, "new_queues"), 10_000.0);
}

/// The chapter states the memory of an empty queue.
#[test]
#[cfg(target_pointer_width = "64")]
fn an_empty_queue_is_small() {
    assert_eq!(idle_queue_bytes::<Stamped<Pkt>, CodelControl>(), 128);
}

/// Flows come and go, and the port's books stay the same two: sparse and bulk.
#[test]
fn books_are_kept_for_two_groups() {
    let queue = build("fq_codel", &settings(&[("limit", packets(50))]), &LINK, Stream::new(1, "salt"));
    let (mut port, mut fates) = (Port::new(queue, LINK.rate, Bytes::ZERO, 1), Fates::default());
    for n in 0..1000 {
        let now = Instant::ZERO + Span::us(500) * n; // half of what arrives finds no room
        while let Some(end) = port.next_event().filter(|end| *end <= now) {
            port.link_free(end, &mut fates);
        }
        let flow = if n % 10 == 0 { n } else { 0 };
        port.arrive(now, Pkt { flow, size: 1250, ..Pkt::new(n) }, &mut fates);
    }
    port.settle(Instant::ZERO + Span::s(1));
    port.check_books().unwrap();
    let (mut names, mut arrived, mut held) = (Vec::new(), 0, 0);
    port.each_inner(|inner, group| {
        assert!(matches!(group, Inside::Group(_)));
        names.push(inner.path.clone());
        arrived += inner.books.total().arrived().packets;
        held += group.backlog().packets.get();
    });
    assert_eq!((names, arrived), (vec!["sparse".to_owned(), "bulk".to_owned()], 1000));
    assert_eq!(held, port.backlog().packets.get());
}
