//! A law that sees departures and draws at arrivals, as PIE does (RFC 8033: PIE decides at enqueue, on the
//! basis of what it saw at dequeue). The hooks of [`EarlyLaw`] suffice for such a law.

use aqmlab_qdisc::disc::{Early, EarlyLaw, EarlyQueue, Leaving};
use aqmlab_qdisc::law::{Decision, Notice};
use aqmlab_qdisc::{Backlog, Discipline, Ecn, LawSamples, Limit, Port, Qdisc, Stamped};
use aqmlab_random::{Stream, unit_from_bits};
use aqmlab_units::{Bytes, Instant, Packets, Rate, Span};

mod support;
use support::{Fates, Pkt, law_value};

const PERIOD: Span = Span::ms(15);
const TARGET_S: f64 = 0.015;

/// A proportional controller whose input is the last waiting time seen; the probability changes at multiples
/// of [`PERIOD`].
#[derive(Clone, Copy, Default)]
struct Delay {
    p: f64,
    waited_s: f64,
    updates: u64,
}

impl EarlyLaw for Delay {
    fn catch_up(&mut self, now: Instant, _backlog: Backlog) {
        let due = now.as_ns() / PERIOD.as_ns() - self.updates;
        self.updates += due;
        // The steps are equal and `p` is clamped at both ends, so all steps can be made at once.
        self.p = (self.p + due as f64 * (self.waited_s - TARGET_S)).clamp(0.0, 1.0);
    }
    fn decide_at_arrival(
        &mut self,
        _: Instant,
        _: Backlog,
        _: Bytes,
        draw: impl FnOnce() -> f64,
    ) -> Decision {
        if draw() < self.p { Decision::Notify(Notice::EARLY) } else { Decision::Admit }
    }
    fn on_departure(&mut self, _: Instant, pkt: Leaving) {
        self.waited_s = pkt.sojourn.as_secs_f64();
    }
    fn observe(&self, now: Instant, backlog: Backlog, out: &mut LawSamples) {
        let mut copy = *self;
        copy.catch_up(now, backlog);
        out.extend([("p", copy.p), ("waited", copy.waited_s)]);
    }
}

fn draws() -> Stream {
    Stream::new(5, "delay")
}

fn queue<P: aqmlab_qdisc::Arrived>(law: Delay) -> Early<P, Delay> {
    let limit = Limit::Packets(Packets::new(5000));
    Early::new(law, EarlyQueue { limit, ecn: true, overflow_first: false, spares_not_ect: false }, draws())
}

/// No packet leaves between these arrivals; each arrival is still decided by the draw with its own
/// number.
#[test]
fn arrivals_between_two_departures_have_a_draw_each() {
    let (mut queue, mut fates) = (queue(Delay { p: 0.3, ..Delay::default() }), Fates::default());
    (0..2000).for_each(|n| queue.enqueue(Instant::ZERO, Pkt::new(n), &mut fates));
    let mut numbered = draws().numbered();
    let chosen: Vec<u64> = (0..2000).filter(|&n| unit_from_bits(numbered.at(n)) < 0.3).collect();
    assert_eq!(fates.dropped.iter().map(|(_, pkt, _)| pkt.number).collect::<Vec<_>>(), chosen);
    assert!((500..700).contains(&chosen.len()), "{}", chosen.len());
}

#[test]
fn the_law_sees_how_long_what_leaves_has_waited() {
    let (mut queue, mut fates) = (queue::<Stamped<Pkt>>(Delay::default()), Fates::default());
    let at = |ms| Instant::ZERO + Span::ms(ms);
    for (number, ms) in [(0, 1), (1, 2)] {
        queue.enqueue(at(ms), Stamped { packet: Pkt::new(number), arrived: at(ms) }, &mut fates);
    }
    for (ms, waited) in [(11, 0.010), (32, 0.030)] {
        assert!(queue.dequeue(at(ms), &mut fates).is_some());
        assert!((law_value(&queue, at(ms), "waited") - waited).abs() < 1e-12);
    }
    // The updates at 15 ms and at 30 ms saw 10 ms; the one at 45 ms sees 30 ms.
    assert_eq!(law_value(&queue, at(44), "p"), 0.0);
    assert!((law_value(&queue, at(45), "p") - 0.015).abs() < 1e-12);
}

/// A law that sees departures still permits looking ahead: the port reports each departure at its own
/// instant.
#[test]
fn a_port_that_looks_ahead_shows_the_law_the_same_departures() {
    let port = || {
        let queue = queue::<Stamped<Pkt>>(Delay::default());
        // A prime: no transmission time is a whole number of nanoseconds.
        Port::new(Discipline::Custom(Box::new(queue)), Rate::bps(9_999_991), Bytes::ZERO, 1)
    };
    let (mut plain, mut ahead) = (port(), port());
    assert!(ahead.look_ahead());
    let (mut fates, mut fates_ahead) = (Fates::default(), Fates::default());
    let (mut load, mut now) = (Stream::new(9, "load"), Instant::ZERO);
    let (mut sent, mut foreseen) = (Vec::new(), Vec::new());
    for number in 0..50_000 {
        now += Span::ns(load.below(if number / 5000 % 2 == 0 { 1_200_000 } else { 2_000_000 }));
        let ecn = if load.below(2) == 0 { Ecn::Ect0 } else { Ecn::NotEct };
        let pkt = Pkt { ecn, ..Pkt::new(number) };
        while let Some(end) = plain.next_event().filter(|end| *end <= now) {
            sent.push((end, plain.link_free(end, &mut fates).packet.number));
        }
        plain.arrive(now, pkt, &mut fates);
        foreseen.extend(ahead.arrive_ahead(now, &pkt, &mut fates_ahead).map(|p| (p.sent, number)));
        assert_eq!(law_value(plain.discipline(), now, "p"), law_value(ahead.discipline(), now, "p"));
    }
    assert_eq!(fates, fates_ahead);
    assert_eq!(sent, foreseen[..sent.len()]);
    assert!(fates.dropped.len() > 500 && fates.marked.len() > 500, "the law acts: {}", fates.dropped.len());
}
