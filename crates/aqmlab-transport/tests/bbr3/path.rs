//! Paths with aggregation, tiny products, changing rates and policers.

use aqmlab_units::{Rate, Span};

use crate::flow::{Bottleneck, Flow, is_within};
use crate::support::Fate;

const LONG: Span = Span::s(60);
/// Acknowledgments arrive together at this interval, half of the round-trip time.
const AGGREGATION: Span = Span::ms(20);

#[test]
fn achieving_expected_startup_bandwidth_on_a_link_with_aggregation() {
    let mut flow = Flow::endless(Bottleneck::mbit(50, 40, usize::MAX));
    flow.aggregate(AGGREGATION);
    let drain = flow.until("Drain", LONG);
    let capacity = flow.capacity(Rate::mbit(50));
    let bdp = capacity * 0.04;
    assert!(is_within(0.02, drain.model.max_bw, capacity), "{} of {capacity}", drain.model.max_bw);
    // one batch is what arrives in 20 ms
    let batch = capacity * 0.02;
    let extra = drain.model.extra_acked;
    assert!((0.5 * batch..=2.0 * batch).contains(&extra), "{extra} with batches of {batch}");
    assert!(drain.cwnd > 2.0 * bdp, "{} of {bdp}", drain.cwnd);
}

#[test]
fn achieving_expected_cruise_bandwidth_on_a_link_with_aggregation() {
    let mut flow = Flow::endless(Bottleneck::mbit(50, 40, usize::MAX));
    flow.until("ProbeBW_CRUISE", LONG);
    let before = flow.now();
    flow.aggregate(AGGREGATION);
    flow.run_for(Span::s(1));
    let after = flow.now();
    let batch = flow.capacity(Rate::mbit(50)) * 0.02;
    assert!(before.model.extra_acked < 0.2 * batch, "{}", before.model.extra_acked);
    assert!((0.5 * batch..=2.0 * batch).contains(&after.model.extra_acked), "{}", after.model.extra_acked);
    let delivered = flow.delivered();
    flow.run_for(Span::s(2));
    let share = (flow.delivered() - delivered) / 2.0 / flow.capacity(Rate::mbit(50));
    assert!(share > 0.97, "{share}");
    let widest = flow.since(after.at).iter().map(|entry| entry.cwnd - 2.0 * entry.bdp()).fold(0.0, f64::max);
    assert!(widest > 0.5 * batch, "the window has room for a batch: {widest}");
    // Ten rounds after the end of aggregation, its measure has expired.
    flow.back(|_, _| Fate::Pass);
    flow.run_for(Span::s(2));
    assert!(flow.now().model.extra_acked < 0.2 * batch, "{}", flow.now().model.extra_acked);
}

/// 64 kbit/s and 10 ms: a twentieth of a segment.
#[test]
fn correctly_managing_sub_packet_bdps() {
    let rate = Rate::kbit(64);
    let mut flow = Flow::endless(Bottleneck { rate, rtt: Span::ms(10), depth: usize::MAX });
    flow.until("ProbeBW_CRUISE", LONG);
    let begin = flow.now();
    let delivered = flow.delivered();
    flow.run_for(Span::s(60));
    let entries = flow.since(begin.at);
    assert!(entries.iter().all(|entry| entry.cwnd >= 4.0), "BBR.MinPipeCwnd");
    let capacity = flow.capacity(rate);
    let cruises = entries.iter().filter(|entry| entry.model.state == "ProbeBW_CRUISE");
    for entry in cruises {
        assert!(is_within(0.03, entry.pacing_rate, capacity), "{} of {capacity}", entry.pacing_rate);
    }
    let share = (flow.delivered() - delivered) / 60.0 / capacity;
    assert!(share > 0.95, "{share}");
}

/// A queue of 20 segments has set a bound before the rate rises from 10 to 100 Mbit/s.
#[test]
fn increasing_bandwidth_10x_and_ensuring_full_bandwidth_is_reached() {
    let mut flow = Flow::endless(Bottleneck::mbit(10, 40, 20));
    flow.until_that("a bound", LONG, |entry| entry.model.inflight_longterm.is_finite());
    flow.until("ProbeBW_CRUISE", LONG);
    flow.set_rate(Rate::mbit(100));
    let begin = flow.until("ProbeBW_UP", LONG);
    let capacity = flow.capacity(Rate::mbit(100));
    let end = flow.until_that("98 % of the rate", LONG, |entry| entry.model.max_bw > 0.98 * capacity);
    // The bound at the beginning of each round of the last probe.
    let entries = flow.since(begin.at);
    let first = entries.iter().rposition(|entry| entry.model.state != "ProbeBW_UP").map_or(0, |at| at + 1);
    let mut bounds: Vec<_> = entries[first..]
        .iter()
        .map(|entry| (entry.model.round_count, entry.model.inflight_longterm))
        .collect();
    bounds.dedup_by_key(|(round, _)| *round);
    let steps: Vec<_> = bounds.windows(2).map(|pair| pair[1].1 - pair[0].1).collect();
    // Sending at 1.25 times the rate, it takes log(10) / log(1.25) = 10.3 rounds to find ten times the rate; the bound
    // grows from 55 by 280 segments, a BDP of 333, in log2(280) = 8.1 rounds.
    let rounds = end.model.round_count - begin.model.round_count;
    assert!(rounds <= 20, "{rounds}");
    let grown: Vec<_> = steps.iter().copied().skip_while(|step| *step == 0.0).take(4).collect();
    assert!(grown.windows(2).all(|pair| (1.7..=2.3).contains(&(pair[1] / pair[0]))), "doubles: {steps:?}");
}

/// From 100 to 10 Mbit/s, with a queue of a BDP of the larger rate.
#[test]
fn decreasing_bandwidth_10x_and_ensuring_max_bandwidth_adapts_down() {
    let mut flow = Flow::endless(Bottleneck::mbit(100, 40, 333));
    flow.until("ProbeBW_CRUISE", LONG);
    flow.set_rate(Rate::mbit(10));
    let old = flow.capacity(Rate::mbit(100));
    let new = flow.capacity(Rate::mbit(10));
    flow.until_that("losses", Span::s(3), |entry| entry.model.bw_shortterm < old / 2.0);
    // Two cycles later, the filter holds nothing of before.
    for _ in 0..3 {
        flow.until("ProbeBW_UP", LONG);
        flow.until("ProbeBW_DOWN", LONG);
    }
    flow.until("ProbeBW_CRUISE", LONG);
    let end = flow.now();
    assert!(is_within(0.02, end.model.max_bw, new), "{} of {new}", end.model.max_bw);
}

/// A bucket of 50 segments at 10 Mbit/s, at the entrance of a link of 100 Mbit/s.
#[test]
fn handling_token_bucket_policers() {
    let mut flow = Flow::endless(Bottleneck::mbit(100, 40, usize::MAX));
    flow.until("ProbeBW_CRUISE", LONG);
    let tokens = flow.capacity(Rate::mbit(10));
    let (mut bucket, mut last) = (50.0_f64, flow.net.now);
    flow.there(move |now, segment| {
        if segment.len == 0 {
            return Fate::Pass;
        }
        bucket = (bucket + tokens * now.saturating_since(last).as_ns() as f64 * 1e-9).min(50.0);
        last = now;
        if bucket < 1.0 {
            return Fate::Drop;
        }
        bucket -= 1.0;
        Fate::Pass
    });
    flow.until_that("losses", Span::s(3), |entry| {
        entry.model.bw_shortterm.is_finite() && entry.model.inflight_shortterm.is_finite()
    });
    flow.run_for(Span::s(20));
    let (delivered, lost) = (flow.delivered(), flow.retransmitted());
    flow.run_for(Span::s(30));
    let share = (flow.delivered() - delivered) / 30.0 / tokens;
    let loss = f64::from(flow.retransmitted() - lost) / (flow.delivered() - delivered);
    assert!(share > 0.85 && share <= 1.01, "{share}");
    assert!(loss < 0.05, "{loss}");
}
