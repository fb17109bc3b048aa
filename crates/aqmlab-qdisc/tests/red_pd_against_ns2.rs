//! RED-PD with the ns-2 variants, compared arrival by arrival with a trace of ns-2.35 that runs the scripts
//! of RED-PD's authors (`tests/data`): the filter's probabilities after each identification, and, given the
//! draws that ns-2 made, the average and the fate of each packet.

use std::collections::{BTreeMap, VecDeque};

use aqmlab_qdisc::law::{
    ByteMode, Counting, Decision, EcnRegion, IdleRule, RedArithmetic, RedLaw, RedParams, RedPdLaw,
    RedPdParams, SpacingRule,
};
use aqmlab_units::{Bytes, Instant, Span};

const SIZE: Bytes = Bytes::new(1000);
/// 1000 B at 4 Mbit/s.
const SERVICE: Span = Span::ms(2);
const MIN_TH: f64 = 5.0;
/// ns-2 prints six significant digits of the average.
const DIGITS: f64 = 5e-6;

const FILTER: RedPdParams = RedPdParams {
    target_rtt: Span::ms(40),
    lists: 5,
    hits: 3,
    list_flows: 50,
    min_interval: Span::ms(80),
    max_interval: Span::ms(400),
    start: Span::us(10_100_000),
    drop_rate_weight: 0.5,
    min_drop_rate: 0.001,
    min_change: Span::ms(400),
    max_reduction: 0.05,
    release: 0.005,
    unresponsive_test: true,
    no_idle: true,
};

fn red() -> RedLaw {
    RedLaw::new(RedParams {
        min_th: MIN_TH,
        max_th: 15.0,
        max_p: 0.1,
        weight: 0.02,
        gentle: true,
        spacing: SpacingRule::Paper,
        byte_mode: ByteMode::Off,
        idle: IdleRule::Ns2,
        counting: Counting::Ns2,
        ecn_region: EcnRegion::BelowMarkP(0.1),
        arithmetic: RedArithmetic::Exact,
        packets_per_s: 500.0,
    })
}

/// The times at which packets leave: first the one in transmission, then those waiting.
#[derive(Default)]
struct Link(VecDeque<Instant>);

impl Link {
    fn waiting(&mut self, now: Instant, red: &mut RedLaw) -> usize {
        while let Some(left) = self.0.front().copied().filter(|at| *at <= now) {
            self.0.pop_front();
            if self.0.is_empty() {
                red.on_idle(left);
            }
        }
        self.0.len().saturating_sub(1)
    }

    fn admit(&mut self, now: Instant) {
        let begin = self.0.back().copied().unwrap_or(now);
        self.0.push_back(begin + SERVICE);
    }
}

fn number<T: std::str::FromStr>(text: &str) -> T {
    text.parse().unwrap_or_else(|_| panic!("`{text}` is not a number"))
}

/// Reads a draw that ns-2 made.
fn drawn(text: &str, now: Instant) -> f64 {
    text.parse().unwrap_or_else(|_| panic!("at {now} ns-2 made no draw"))
}

/// Passes one packet through the filter and RED, and returns its fate.
fn fate(
    filter: &mut RedPdLaw,
    red: &mut RedLaw,
    link: &mut Link,
    now: Instant,
    flow: u64,
    draws: [&str; 2],
) -> &'static str {
    let waiting = link.waiting(now, red);
    let above = red.average().at(now) >= MIN_TH;
    if filter.on_arrival(now, flow, SIZE, above, waiting > 1, || drawn(draws[0], now)) {
        return "filter";
    }
    let decision = red.on_arrival(now, waiting as f64, SIZE, || drawn(draws[1], now));
    let admitted = decision == Decision::Admit;
    filter.on_red(flow, SIZE, !admitted);
    if !admitted {
        return "early";
    }
    link.admit(now);
    "admitted"
}

#[test]
fn each_probability_and_each_fate_is_that_of_ns2() {
    let (mut filter, mut red, mut link) = (RedPdLaw::new(FILTER), red(), Link::default());
    let (mut fates, mut compared, mut unresponsive) = (BTreeMap::new(), 0, 0);
    for line in include_str!("data/red_pd.csv").lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let now = Instant::from_ns(number(fields[1]));
        if fields[0] == "R" {
            // ns-2's clock is a float; ours may be a nanosecond behind.
            filter.catch_up(now + Span::ns(2));
            assert_eq!(filter.monitored().0, fields[2..].len() / 3, "{line}");
            for flow in fields[2..].chunks(3) {
                let (flow, p): (u64, f64) = (number(flow[0]), number(flow[1]));
                assert!((filter.probability(flow) - p).abs() < 1e-9, "{}: {line}", filter.probability(flow));
                compared += 1;
            }
            for flow in fields[2..].chunks(3) {
                assert_eq!(filter.is_unresponsive(number(flow[0])), flow[2] == "1", "{line}");
                unresponsive += usize::from(flow[2] == "1");
            }
            continue;
        }
        let [_, _, flow, _, avg, filter_u, u, theirs] = fields[..] else { panic!("{line}") };
        let ours = fate(&mut filter, &mut red, &mut link, now, number(flow), [filter_u, u]);
        assert_eq!(ours, theirs, "{line}");
        if ours != "filter" {
            let avg: f64 = number(avg);
            assert!((red.average().at(now) - avg).abs() <= DIGITS * avg + 1e-12, "{line}");
        }
        *fates.entry(ours).or_insert(0) += 1;
    }
    println!("{fates:?}; {compared} probabilities, {unresponsive} of them of unresponsive flows");
    assert_eq!(fates.values().sum::<usize>(), 9000);
    assert!(
        fates["filter"] > 1500 && compared > 400 && unresponsive > 50,
        "{fates:?} {compared} {unresponsive}"
    );
}
