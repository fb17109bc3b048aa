//! ProbeRTT, and how to avoid it.

use aqmlab_units::{Instant, Span};

use crate::flow::{Bottleneck, Flow, course};

const LONG: Span = Span::s(30);

#[test]
fn entering_and_exiting_probe_rtt() {
    let mut flow = Flow::endless(Bottleneck::mbit(10, 40, usize::MAX));
    flow.until("ProbeBW_CRUISE", LONG);
    let begin = flow.until("ProbeRTT", LONG);
    assert_eq!(begin.model.cwnd_gain, 0.5);
    assert!(begin.at > Instant::ZERO + Span::s(5));
    let low = flow.until_that("half a BDP in flight", Span::s(1), |entry| entry.flight <= 0.5 * entry.bdp());
    let end = flow.until_that("the end", Span::s(2), |entry| entry.model.state != "ProbeRTT");
    assert!(end.at - low.at >= Span::ms(200) && end.model.round_count > low.model.round_count);
    assert_eq!((end.model.state, end.model.full_bw_reached), ("ProbeBW_CRUISE", true));
    let before = flow.delivered();
    flow.run_for(Span::s(1));
    let capacity = flow.capacity(aqmlab_units::Rate::mbit(10));
    assert!(flow.delivered() - before > 0.95 * capacity, "it sends again");
}

#[test]
fn skipping_probe_rtt_due_to_application_limited_sending() {
    let mut flow = Flow::endless(Bottleneck::mbit(10, 40, usize::MAX));
    flow.until("ProbeBW_CRUISE", LONG);
    flow.pause();
    flow.run_for(Span::s(6));
    assert_eq!(flow.net.sides[0].endpoint.flight().get(), 0);
    let again = flow.net.now;
    flow.fill();
    let model = flow.net.sides[0].endpoint.path_model().expect("BBR has a model");
    assert!(model.idle_restart);
    flow.run_for(Span::s(4));
    let states = course(&flow.since(again));
    assert!(!states.contains(&"ProbeRTT"), "{states:?}");
    assert!(!flow.now().model.idle_restart);
}

/// The application limits Startup for longer than the interval, without pauses.
#[test]
fn entering_and_exiting_probe_rtt_during_startup() {
    let mut flow = Flow::silent(Bottleneck::mbit(10, 40, usize::MAX));
    flow.write(2, Span::ms(10));
    let begin = flow.until("ProbeRTT", Span::s(12));
    assert!(!begin.model.full_bw_reached && begin.at > Instant::ZERO + Span::s(5));
    let end = flow.until("Startup", Span::s(2));
    assert!(end.at - begin.at >= Span::ms(200));
    flow.fill();
    let drain = flow.until("Drain", LONG);
    let capacity = flow.capacity(aqmlab_units::Rate::mbit(10));
    assert!((drain.model.max_bw / capacity - 1.0).abs() < 0.02, "it finds the bandwidth");
}
