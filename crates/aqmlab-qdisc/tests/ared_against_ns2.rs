//! Compares Adaptive RED and Self-Configuring RED with traces of ns-2.35 (`tests/data`), arrival by
//! arrival: backlog, average, probability, `max_p`, and each packet's fate given the draws that
//! ns-2 made. Both laws use the ns-2 variants, with the queue in bytes and byte mode on.

use std::collections::VecDeque;

use aqmlab_qdisc::law::{
    Adaptation, AdaptiveRed, AimdRule, ByteMode, Counting, CrossingRule, Decision, EcnRegion, IdleRule,
    RedArithmetic, RedLaw, RedParams, SpacingRule, When,
};
use aqmlab_units::{Bytes, Instant, Rate, Span};

const RATE: Rate = Rate::mbit(1);
/// ns-2 prints six significant digits.
const DIGITS: f64 = 5e-6;

const AIMD: Adaptation = Adaptation::Aimd(AimdRule {
    interval: Span::ms(500),
    alpha: 0.01,
    beta: 0.9,
    top: 0.5,
    bottom: 0.01,
    when: When::Arrivals,
    move_gentle_foot: false,
});
const CROSSINGS: Adaptation = Adaptation::Crossings(CrossingRule {
    alpha: 3.0,
    beta: 2.0,
    starts_above: true,
    move_gentle_foot: false,
});

fn law(spacing: SpacingRule, rule: Adaptation) -> AdaptiveRed {
    let red = RedLaw::new(RedParams {
        min_th: 5000.0,
        max_th: 15_000.0,
        max_p: 0.1,
        weight: 0.02,
        gentle: true,
        spacing,
        byte_mode: ByteMode::Ns2 { mean: Bytes::new(1000) },
        idle: IdleRule::Ns2,
        counting: Counting::Ns2,
        ecn_region: EcnRegion::BelowMarkP(0.1),
        arithmetic: RedArithmetic::Exact,
        packets_per_s: 125.0,
    });
    AdaptiveRed::new(red, rule)
}

/// When each packet leaves, and its size: first the one in transmission, then those waiting.
#[derive(Default)]
struct Link(VecDeque<(Instant, Bytes)>);

impl Link {
    fn waiting(&mut self, now: Instant, law: &mut AdaptiveRed) -> Bytes {
        while let Some((left, _)) = self.0.front().copied().filter(|(at, _)| *at <= now) {
            self.0.pop_front();
            if self.0.is_empty() {
                law.on_idle(left);
            }
        }
        self.0.iter().skip(1).map(|(_, size)| *size).sum()
    }

    fn admit(&mut self, now: Instant, size: Bytes) {
        let begin = self.0.back().map_or(now, |(at, _)| *at);
        self.0.push_back((begin + RATE.time_for(size), size));
    }
}

fn close(ours: f64, theirs: &str, scale: f64, line: &str) {
    let theirs: f64 = theirs.parse().unwrap();
    assert!((ours - theirs).abs() <= DIGITS * theirs.max(scale) + 1e-12, "{ours} against {theirs}: {line}");
}

/// Replays one trace and returns the number of arrivals, the number of early drops and the range of
/// `max_p`.
fn replay(trace: &str, spacing: SpacingRule, rule: Adaptation) -> (usize, usize, f64, f64) {
    let (mut law, mut link) = (law(spacing, rule), Link::default());
    let (mut arrivals, mut early, mut low, mut high) = (0, 0, 1.0f64, 0.0f64);
    for line in trace.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let [at, size, waiting, avg, prob, max_p, u, fate] = fields[..] else { panic!("{line}") };
        let (now, size) = (Instant::from_ns(at.parse().unwrap()), Bytes::new(size.parse().unwrap()));
        let queued = link.waiting(now, &mut law);
        assert_eq!(queued.get(), waiting.parse::<u64>().unwrap(), "{line}");
        let decision = law.on_arrival(now, queued.as_f64(), size, || u.parse().expect("ns-2 made this draw"));
        let average = law.red().average().at(now);
        close(average, avg, 0.0, line);
        close(law.red().max_p(), max_p, 0.0, line);
        if !u.is_empty() {
            close(law.red().probability(average), prob, 0.1, line);
        }
        if matches!(decision, Decision::Admit) {
            link.admit(now, size);
            assert_eq!(fate, "admitted", "{line}");
        } else {
            early += 1;
            assert_eq!(fate, "early", "{line}");
        }
        arrivals += 1;
        (low, high) = (low.min(law.red().max_p()), high.max(law.red().max_p()));
    }
    (arrivals, early, low, high)
}

#[test]
fn max_p_rises_and_falls_as_in_ns2_and_every_fate_agrees() {
    let rising = replay(include_str!("data/ared_rising.csv"), SpacingRule::Ns2Wait, AIMD);
    let falling = replay(include_str!("data/ared_falling.csv"), SpacingRule::Paper, AIMD);
    println!("arrivals, early drops, least and greatest max_p: {rising:?}, {falling:?}");
    assert_eq!((rising.0, falling.0), (4000, 4000));
    assert!(rising.1 > 500 && rising.3 > 0.3, "{rising:?}");
    assert!(falling.1 > 20 && falling.2 < 0.09, "{falling:?}");
}

#[test]
fn self_configuring_red_moves_at_the_crossings_of_ns2() {
    let feng = replay(include_str!("data/feng.csv"), SpacingRule::Paper, CROSSINGS);
    println!("arrivals, early drops, least and greatest max_p: {feng:?}");
    assert_eq!(feng.0, 4000);
    // Six silences and six floods alternate, so the smallest value is 0.1 / 3^6 * 2^5.
    assert!(feng.1 > 500 && (feng.2 - 0.1 * 32.0 / 729.0).abs() < 1e-12, "{feng:?}");
}
