//! RED at its edges: at `max_th`, at probability 1, and from one draw to the next.

mod support;

use aqmlab_params::Value;
use aqmlab_qdisc::contract::LINK;
use aqmlab_qdisc::disc::{EarlyQueue, Measure, Red, RedControl, RedRule};
use aqmlab_qdisc::law::{
    Adaptation, AdaptiveRed, AimdRule, ByteMode, Counting, CrossingRule, Decision, EcnRegion, IdleRule,
    Notice, RedArithmetic, RedLaw, RedParams, SpacingRule, When,
};
use aqmlab_qdisc::{Ecn, Limit, Port, Qdisc};
use aqmlab_random::{Stream, unit_from_bits};
use aqmlab_units::{Bytes, Instant, Packets, Rate, Span};
use support::{Fates, Pkt, SIZE, build, packets, settings};

/// The weight is 1, so the average equals the queue length.
const PARAMS: RedParams = RedParams {
    min_th: 5.0,
    max_th: 15.0,
    max_p: 0.5,
    weight: 1.0,
    gentle: true,
    spacing: SpacingRule::Off,
    byte_mode: ByteMode::Off,
    idle: IdleRule::Paper,
    counting: Counting::Paper,
    ecn_region: EcnRegion::BelowMaxTh,
    arithmetic: RedArithmetic::Exact,
    packets_per_s: 1000.0,
};

/// Returns the notice given to an arrival that finds `queued` waiting and has the smallest draw.
fn notice(queued: f64) -> Notice {
    match RedLaw::new(PARAMS).on_arrival(Instant::ZERO, queued, SIZE, || 0.0) {
        Decision::Notify(notice) => notice,
        Decision::Admit => panic!("at {queued} the draw 0 is chosen"),
    }
}

/// RFC 3168, section 7: marks below the maximum threshold, and drops "at or above" it.
#[test]
fn at_max_th_marks_have_become_drops() {
    for (avg, marks) in [(15.0f64.next_down(), true), (15.0, false)] {
        assert_eq!(notice(avg).marks(true, Ecn::Ect0), marks, "{avg}");
        assert!(!notice(avg).marks(true, Ecn::NotEct) && !notice(avg).marks(false, Ecn::Ect0));
    }
}

#[test]
fn self_configuring_red_stops_at_probability_one() {
    let rule = CrossingRule { alpha: 3.0, beta: 2.0, starts_above: false, move_gentle_foot: true };
    let mut law = AdaptiveRed::new(RedLaw::new(PARAMS), Adaptation::Crossings(rule));
    let mut max_p = |queued| {
        let _ = law.on_arrival(Instant::ZERO, queued, SIZE, || 0.999);
        law.red().max_p()
    };
    assert_eq!([10.0, 16.0, 10.0, 16.0, 4.0].map(&mut max_p), [0.5, 1.0, 1.0, 1.0, 1.0 / 3.0]);
    for _ in 0..2000 {
        max_p(10.0);
        assert!(max_p(4.0) > 0.0, "no factor raises 0 again");
    }
}

/// Floyd et al. 2001: updates fall due at multiples of 500 ms, not 500 ms after the packet at which the last
/// one was made.
#[test]
fn updates_of_adaptive_red_keep_their_times_when_nobody_asks() {
    let rule = AimdRule {
        interval: Span::ms(500),
        alpha: 0.01,
        beta: 0.9,
        top: 0.5,
        bottom: 0.01,
        when: When::Timer,
        move_gentle_foot: true,
    };
    let params = RedParams { max_p: 0.1, ..PARAMS };
    let mut law = AdaptiveRed::new(RedLaw::new(params), Adaptation::Aimd(rule));
    let mut max_p_at = |ms: u64| {
        let _ = law.on_arrival(Instant::ZERO + Span::ms(ms), 14.0, SIZE, || 0.999);
        law.red().max_p()
    };
    for (ms, max_p) in [(1, 0.1), (700, 0.11), (999, 0.11), (1000, 0.12), (1499, 0.12), (2600, 0.15)] {
        let is = max_p_at(ms);
        assert!((is - max_p).abs() < 1e-12, "at {ms} ms: {is}");
    }
}

/// Arrival n is decided by draw n of the queue's stream, whether or not the draws before it were
/// needed.
#[test]
fn each_arrival_has_the_draw_of_its_number() {
    let draws = Stream::new(11, "bottleneck/red");
    let queue = EarlyQueue {
        limit: Limit::Packets(Packets::new(100)),
        ecn: false,
        overflow_first: false,
        spares_not_ect: false,
    };
    let rule = RedRule::Fixed(RedLaw::new(PARAMS));
    let control = RedControl { rule, measure: Measure::Packets, mean_packet: SIZE };
    let mut numbered = draws.numbered();
    let mut red = Red::new(control, queue, draws);
    let (mut lost, mut expected) = (Fates::default(), 0);
    for n in 0..10_000 {
        let waiting = red.backlog().packets.as_f64();
        // The probability rises from 0 at 5 packets to 0.5 at 15.
        expected += u64::from(unit_from_bits(numbered.at(n)) < ((waiting - 5.0) * 0.05).max(0.0));
        red.enqueue(Instant::from_ns(n), Pkt::new(n), &mut lost);
        assert_eq!(lost.dropped.len() as u64, expected, "arrival {n}");
        // Between 3 and 13 packets wait, so the queue is alternately below and above the threshold.
        if waiting >= if n / 50 % 2 == 0 { 13.0 } else { 3.0 } {
            red.dequeue(Instant::from_ns(n), &mut lost);
        }
    }
    assert!(expected > 1000, "{expected}");
}

/// A source that never yields, at 1.6 times the link's rate: RED drops three eighths of its packets and
/// occasionally slightly more, under every rule for idle periods. A state in which the average is above
/// `max_th` on an idle link, so that no packet is admitted, must end.
#[test]
fn a_source_that_never_yields_does_not_shut_the_queue_for_good() {
    const RATE: u64 = 1250; // packets of 1000 bytes per second
    for (idle, weight) in [("paper", 0.002), ("paper", 0.05), ("ns2", 0.002), ("linux", 0.002)] {
        let given = settings(&[
            ("limit", packets(50)),
            ("min_th", packets(5)),
            ("max_th", packets(20)),
            ("w_q", Value::Number(weight)),
            ("idle", Value::Choice(idle)),
            ("gentle", Value::Flag(false)),
        ]);
        let red = build("red", &given, &LINK, Stream::new(1, "flood"));
        let mut port = Port::new(red, Rate::mbit(10), Bytes::ZERO, 1);
        let (mut lost, mut sent, mut ends) = (Fates::default(), 0, None);
        for n in 0..80_000 {
            let now = Instant::ZERO + Span::us(500 * n);
            while let Some(end) = ends.filter(|end| *end <= now) {
                ends = port.link_free(end, &mut lost).next_end;
                sent += 1;
            }
            ends = port.arrive(now, Pkt::new(n), &mut lost).or(ends);
        }
        let share = sent as f64 / (40.0 * RATE as f64);
        assert!(share > 0.9, "{idle}, weight {weight}: {share:.3} of the link, {} lost", lost.dropped.len());
    }
}
