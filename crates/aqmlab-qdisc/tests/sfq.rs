//! SFQ against schedules worked out by hand: one packet per turn (McKenney 1990), losses from the longest queue, and
//! perturbations.

use aqmlab_params::Value;
use aqmlab_qdisc::contract::LINK;
use aqmlab_qdisc::{Discipline, Qdisc, Reason, Stamped, registry};
use aqmlab_random::Stream;
use aqmlab_units::{Instant, Span};

mod support;
use support::{Fates, Pkt, build, bytes, law_value, packets, settings};

struct Bench {
    queue: Discipline<Stamped<Pkt>>,
    fates: Fates,
    now: Instant,
    sent: u64,
}

impl Bench {
    /// The flows of these tests do not share queues: there are many hashes.
    fn new(given: &[(&'static str, Value)]) -> Self {
        let many = [("divisor", Value::Integer(65_536))];
        let queue = build("sfq", &settings(&[&many[..], given].concat()), &LINK, Stream::new(1, "salt"));
        Bench { queue, fates: Fates::default(), now: Instant::ZERO, sent: 0 }
    }

    /// Packets of these flows arrive; they are numbered in order of arrival.
    fn arrive(&mut self, flows: &[u64], size: u64) {
        for &flow in flows {
            let packet = Pkt { flow, size, ..Pkt::new(self.sent) };
            self.sent += 1;
            self.queue.enqueue(self.now, Stamped { packet, arrived: self.now }, &mut self.fates);
        }
    }

    /// Returns the flows of all packets, in order of departure.
    fn flows(&mut self) -> Vec<u64> {
        std::iter::from_fn(|| self.queue.dequeue(self.now, &mut self.fates))
            .map(|out| out.packet.flow)
            .collect()
    }

    fn lost(&self) -> Vec<u64> {
        assert!(self.fates.dropped.iter().all(|(_, _, at)| at.reason == Reason::Overflow));
        self.fates.dropped.iter().map(|(_, pkt, _)| pkt.number).collect()
    }
}

/// Whatever the sizes, each queue sends a packet in turn; a flow that comes back is last.
#[test]
fn a_turn_is_a_packet() {
    let mut bench = Bench::new(&[]);
    bench.arrive(&[0, 0, 0, 0], 1500);
    bench.arrive(&[1, 1, 2], 100);
    assert_eq!(bench.flows(), [0, 1, 2, 0, 1, 0, 0]);
}

/// Flow 0 has 1000 B per round for packets of 600 B: two, then (400 B of debt are made up by the next 1000 B) one or
/// two. Flow 1 sends three packets of 300 B, and a fourth with what is left of the first credit.
#[test]
fn a_turn_is_a_quantum() {
    let mut bench = Bench::new(&[("turn", Value::Choice("quantum")), ("quantum", bytes(1000))]);
    bench.arrive(&[0; 5], 600);
    bench.arrive(&[1; 6], 300);
    // 0: 1000, 400, -200. 1: 1000, 700, 400, 100, -200. 0: 800, 200, -400. 1: 800, 500. 0: 600.
    assert_eq!(bench.flows(), [0, 0, 1, 1, 1, 1, 0, 0, 1, 1, 0]);
}

/// The sixth packet makes flow 0 the longest, which loses its last packet, or its first. If two are equally long, the
/// one that has just become so loses: the next arrival of flow 1 finds 0 and 1 with three packets each.
#[test]
fn the_longest_queue_loses() {
    for (head_drop, lost) in [(false, 5), (true, 0)] {
        let mut bench = Bench::new(&[("limit", packets(5)), ("head_drop", Value::Flag(head_drop))]);
        bench.arrive(&[0, 0, 0, 0, 1, 0], 1000);
        assert_eq!(bench.lost(), [lost]);
        // The queues have four packets and one, then three and two, then three each.
        bench.arrive(&[1, 1], 1000);
        let losers: Vec<u64> = bench.fates.dropped.iter().map(|(_, pkt, _)| pkt.flow).collect();
        assert_eq!(losers, [0, 0, 1]);
    }
}

/// If each queue has one packet, the next in turn loses it, and not the arrival.
#[test]
fn the_next_in_turn_loses_among_equals() {
    let mut bench = Bench::new(&[("limit", packets(3))]);
    bench.arrive(&[0, 1, 2, 3], 1000);
    assert_eq!((bench.lost(), bench.flows()), (vec![0], vec![1, 2, 3]));
}

#[test]
fn a_flow_too_many_and_a_packet_too_deep_are_lost() {
    let given = [("flows", Value::Integer(2)), ("depth", Value::Integer(2))];
    let mut bench = Bench::new(&given);
    bench.arrive(&[0, 1, 2, 0, 0], 1000);
    assert_eq!((bench.lost(), bench.flows()), (vec![2, 4], vec![0, 1, 0]));
    // Both queues are free again.
    bench.arrive(&[2, 3], 1000);
    assert_eq!(bench.flows(), [2, 3]);
}

/// With one queue per four hashes, flows meet; after a perturbation, others do. No packet is lost or leaves twice, and
/// the packets of a flow stay in order.
#[test]
fn perturbations_move_what_waits() {
    let given =
        [("divisor", Value::Integer(4)), ("perturb", Value::Span(Span::s(1))), ("limit", packets(100))];
    let mut bench = Bench::new(&given);
    let mut orders = Vec::new();
    for second in 0..20 {
        bench.now = Instant::ZERO + Span::s(second);
        bench.arrive(&[0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5], 1000);
        bench.now += Span::ms(999);
        let queues = law_value(&bench.queue, bench.now, "queues");
        bench.now += Span::ms(1);
        let flows = bench.flows();
        assert_eq!((flows.len(), bench.lost()), (12, vec![]));
        assert!(queues <= 4.0);
        orders.push(flows);
    }
    orders.sort();
    orders.dedup();
    assert!(orders.len() > 5, "the hashes change");
    assert!(law_value(&bench.queue, bench.now, "collisions") > 20.0);
}

#[test]
fn parameters_that_make_no_queue_are_refused() {
    let refused = |given: &[(&'static str, Value)]| {
        registry::info("sfq").unwrap().resolve(&settings(given), &LINK).unwrap_err().message
    };
    let red = ("redflowlimit", bytes(60_000));
    let linux = ("preset", Value::Choice("linux"));
    assert_eq!(
        refused(&[linux, ("divisor", Value::Integer(3))]),
        "divisor `3` is not a power of two, as Linux requires; write 2 or 4"
    );
    assert_eq!(
        refused(&[red.clone(), ("min_th", bytes(9000)), ("max_th", bytes(8000))]),
        "min_th `9kB` exceeds max_th `8kB`"
    );
    assert_eq!(
        refused(&[red, ("min_th", bytes(20_000)), ("max_th", bytes(60_000)), ("burst", Value::Integer(10))]),
        "burst `10` is too small for min_th; it must be at least 20"
    );
}
