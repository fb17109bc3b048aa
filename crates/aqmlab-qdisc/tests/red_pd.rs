//! RED-PD with real queues: which flows it restricts, and which it does not.

use aqmlab_params::Value;
use aqmlab_qdisc::contract::LINK;
use aqmlab_qdisc::{Discipline, LinkContext, Qdisc};
use aqmlab_random::Stream;
use aqmlab_units::{Instant, Span};

mod support;
use support::{Fates, Pkt, build, packets, settings};

/// Transmission time of a packet at 10 Mbit/s.
const PACKET_TIME: Span = Span::us(1200);

const fn pkt(number: u64, flow: u64) -> Pkt {
    Pkt { size: 1500, flow, ..Pkt::new(number) }
}

/// The rule by which a source sets its rate.
#[derive(Clone, Copy)]
enum Source {
    /// A constant number of packets per packet time.
    Constant(f64),
    /// Like TCP: after each round trip, one packet more per round trip, or half the rate if any packet was
    /// lost in it.
    Tcp { round_trip: Span, rate: f64, lost: bool, due: Instant },
}

impl Source {
    fn tcp(ms: u64) -> Self {
        Source::Tcp { round_trip: Span::ms(ms), rate: 0.1, lost: false, due: Instant::ZERO }
    }

    /// Returns the mean number of packets to send in the next packet time.
    fn rate(&mut self, now: Instant) -> f64 {
        match self {
            Source::Constant(rate) => *rate,
            Source::Tcp { round_trip, rate, lost, due } => {
                while *due <= now {
                    let packet = PACKET_TIME.as_secs_f64() / round_trip.as_secs_f64();
                    *rate = if *lost { (*rate / 2.0).max(packet) } else { *rate + packet };
                    (*lost, *due) = (false, *due + *round_trip);
                }
                *rate
            }
        }
    }
}

/// Returns each source's share of the link in the second half of five minutes, and the flows that
/// the queue considers unresponsive.
fn shares(name: &str, sources: &mut [Source], values: &[(&'static str, Value)]) -> (Vec<f64>, Vec<bool>) {
    let red = [("limit", packets(100)), ("min_th", packets(10)), ("max_th", packets(40))];
    let given = settings(&[red.as_slice(), values].concat());
    let link = LinkContext { rtt: None, ..LINK };
    let mut queue: Discipline<Pkt> = build(name, &given, &link, Stream::new(1, "queue"));
    let (mut now, mut lost, mut number) = (Instant::ZERO, Fates::default(), 0);
    let (mut sent, mut draws) = (vec![0.0; sources.len()], Stream::new(2, "sources"));
    for slot in 0..250_000 {
        for (flow, source) in sources.iter_mut().enumerate() {
            // The rate is rounded up or down at random, so that the mean number of packets equals the rate.
            let packets = source.rate(now) + draws.unit();
            for _ in 0..packets as u64 {
                queue.enqueue(now, pkt(number, flow as u64), &mut lost);
                number += 1;
            }
        }
        for (_, pkt, _) in lost.dropped.drain(..) {
            if let Source::Tcp { lost, .. } = &mut sources[pkt.flow as usize] {
                *lost = true;
            }
        }
        now += PACKET_TIME;
        let left = queue.dequeue(now, &mut lost);
        if let Some(pkt) = left.filter(|_| slot >= 125_000) {
            sent[pkt.flow as usize] += 1.0;
        }
    }
    let flows = (0..sources.len() as u64).map(|flow| pkt(0, flow));
    let unresponsive = match &queue {
        Discipline::RedPd(queue) => {
            flows.map(|pkt| queue.filter().is_unresponsive(queue.flow_of(&pkt))).collect()
        }
        _ => Vec::new(),
    };
    let all: f64 = sent.iter().sum();
    (sent.into_iter().map(|n| n / all).collect(), unresponsive)
}

#[test]
fn a_flood_is_held_back_to_its_share_and_found_unresponsive() {
    let sources =
        || [Source::Constant(1.0), Source::tcp(40), Source::tcp(40), Source::tcp(40), Source::tcp(40)];
    let (red, _) = shares("red", &mut sources(), &[]);
    for (test, no_idle) in [(true, false), (true, true), (false, false)] {
        let values = [("unresponsive_test", Value::Flag(test)), ("no_idle", Value::Flag(no_idle))];
        let (pd, unresponsive) = shares("redpd", &mut sources(), &values);
        println!("RED {red:.3?}, RED-PD {pd:.3?} {unresponsive:?}");
        assert!(red[0] > 0.5, "RED leaves the link to the flood: {red:?}");
        // Five flows.
        assert!(pd[0] < 0.3, "{pd:?}");
        assert_eq!(unresponsive[0], test);
    }
}

#[test]
fn a_tcp_with_a_short_round_trip_is_held_back() {
    let sources = || [Source::tcp(10), Source::tcp(80), Source::tcp(80), Source::tcp(80), Source::tcp(80)];
    let (red, _) = shares("red", &mut sources(), &[]);
    let (pd, _) = shares("redpd", &mut sources(), &[]);
    println!("RED {red:.3?}, RED-PD {pd:.3?}");
    assert!(red[0] > 0.6 && pd[0] < 0.3, "RED {red:?}, RED-PD {pd:?}");
}

/// Frequent observation shows how the law evolves but changes nothing: neither the fates of packets nor later
/// observations.
#[test]
fn to_observe_changes_nothing() {
    let fates = |often: bool| {
        let given = settings(&[("limit", packets(50)), ("min_th", packets(5)), ("max_th", packets(20))]);
        let link = LinkContext { rtt: None, ..LINK };
        let mut queue: Discipline<Pkt> = build("redpd", &given, &link, Stream::new(1, "queue"));
        let (mut now, mut lost, mut draws) = (Instant::ZERO, Fates::default(), Stream::new(2, "sources"));
        let (mut law, mut seen) = (Vec::new(), Vec::new());
        for number in 0..60_000 {
            // Load and silence alternate; during a silence, observation makes the law perform many
            // identifications before the next packet arrives.
            let steps = if number % 20_000 == 19_999 { 1000 } else { 1 };
            for _ in 0..steps {
                now += Span::ns(draws.below(1_500_000 * steps.min(100)));
                if often {
                    law.clear();
                    queue.observe(now, &mut law);
                }
            }
            queue.enqueue(now, pkt(number, draws.below(5).min(draws.below(5))), &mut lost);
            if draws.hit(0.7) {
                queue.dequeue(now, &mut lost);
            }
            if number % 1000 == 0 {
                law.clear();
                queue.observe(now, &mut law);
                seen.push(law.clone());
            }
        }
        (lost.lost(), seen)
    };
    let (often, seldom) = (fates(true), fates(false));
    assert!(seldom.0.len() > 5000, "{}", seldom.0.len());
    assert!(seldom.1.iter().any(|law| law.iter().any(|(name, value)| *name == "monitored" && *value > 0.0)));
    assert!(often == seldom);
}
