//! BLUE's queue: which packets are chosen, which are evicted, where the probability settles.

use aqmlab_params::Value;
use aqmlab_qdisc::contract::LINK;
use aqmlab_qdisc::{Discipline, Qdisc, Reason};
use aqmlab_random::Stream;
use aqmlab_units::{Instant, Span};

mod support;
use support::{Fates, Pkt, build, law_value, packets, settings};

fn blue(limit: u64, values: &[(&'static str, Value)], seed: u64) -> Discipline<Pkt> {
    let given = settings(&[values, &[("limit", packets(limit))]].concat());
    build("blue", &given, &LINK, Stream::new(seed, "blue"))
}

fn probability(queue: &Discipline<Pkt>, now: Instant) -> f64 {
    law_value(queue, now, "p")
}

/// The sum of (observed - expected)^2 / expected.
fn chi_square(observed: &[f64], expected: &[f64]) -> f64 {
    observed.iter().zip(expected).map(|(o, e)| (o - e) * (o - e) / e).sum()
}

#[test]
fn gaps_between_chosen_packets_are_geometric() {
    // One overflow sets p to 0.05 for the rest of the run.
    let values = [("d1", Value::Number(0.05)), ("freeze_time", Value::Span(Span::s(1000)))];
    let (mut queue, mut fates) = (blue(1, &values, 1), Fates::default());
    let now = Instant::ZERO;
    (0..2).for_each(|n| queue.enqueue(now, Pkt::new(n), &mut fates));
    assert_eq!((fates.lost(), probability(&queue, now)), (vec![(1, Reason::Overflow)], 0.05));
    queue.dequeue(now, &mut fates);
    fates.dropped.clear();
    for n in 0..400_000 {
        queue.enqueue(now, Pkt::new(n), &mut fates);
        queue.dequeue(now, &mut fates);
    }
    let lost = fates.lost();
    assert!(lost.iter().all(|(_, reason)| *reason == Reason::Early));
    // One bin for each gap from 1 to 60, and one for all longer gaps.
    let mut observed = [0.0; 61];
    for pair in lost.windows(2) {
        observed[(pair[1].0 - pair[0].0 - 1).min(60) as usize] += 1.0;
    }
    let gaps = (lost.len() - 1) as f64;
    let mut expected: Vec<f64> = (0..60).map(|n| gaps * 0.05 * 0.95f64.powi(n)).collect();
    expected.push(gaps * 0.95f64.powi(60));
    // 60 degrees of freedom, 1 %.
    let chi = chi_square(&observed, &expected);
    assert!(chi < 88.38, "{chi} over {gaps} gaps");
}

#[test]
fn random_victims_are_uniform_over_the_queue_and_the_arrival() {
    let values = [("preset", Value::Choice("altq")), ("freeze_time", Value::Span(Span::s(1000)))];
    let (mut queue, mut fates) = (blue(9, &values, 2), Fates::default());
    let mut waiting: Vec<u64> = Vec::new();
    let mut observed = [0.0; 10];
    for n in 0..20_009 {
        queue.enqueue(Instant::ZERO, Pkt::new(n), &mut fates);
        waiting.push(n);
        if let Some((_, victim, at)) = fates.dropped.pop() {
            assert_eq!(at.reason, Reason::Overflow);
            let place = waiting.iter().position(|&w| w == victim.number).expect("it was waiting");
            waiting.remove(place);
            observed[place] += 1.0;
        }
    }
    // 9 degrees of freedom, 1 %.
    let chi = chi_square(&observed, &[2000.0; 10]);
    assert!(chi < 21.67, "{chi}: {observed:?}");
    // The other packets leave in their original order.
    let left: Vec<u64> =
        std::iter::from_fn(|| queue.dequeue(Instant::ZERO, &mut fates)).map(|p| p.number).collect();
    assert_eq!(left, waiting);
}

#[test]
fn the_probability_settles_at_the_share_that_is_too_much() {
    // A packet takes 1.2 ms to send, and one arrives every millisecond on average, so one in six is
    // in excess.
    let values = [("freeze_time", Value::Span(Span::ms(10)))];
    let (mut queue, mut fates) = (blue(50, &values, 3), Fates::default());
    let (mut now, mut free, mut draws) = (Instant::ZERO, Instant::ZERO, Stream::new(3, "arrivals"));
    let mut samples = Vec::new();
    for n in 0..400_000 {
        now += Span::ns(draws.below(2_000_000));
        while free <= now {
            match queue.dequeue(free, &mut fates) {
                Some(_) => free += Span::us(1200),
                None => break,
            }
        }
        let idle = free <= now;
        queue.enqueue(now, Pkt::new(n), &mut fates);
        if idle && queue.dequeue(now, &mut fates).is_some() {
            free = now + Span::us(1200);
        }
        if n >= 200_000 {
            samples.push(probability(&queue, now));
        }
    }
    let mean = samples.iter().sum::<f64>() / samples.len() as f64;
    let spread = (samples.iter().map(|p| (p - mean) * (p - mean)).sum::<f64>() / samples.len() as f64).sqrt();
    assert!((mean - 1.0 / 6.0).abs() < 0.01, "mean {mean}");
    assert!(spread < 0.2 * mean, "spread {spread} about {mean}");
}
