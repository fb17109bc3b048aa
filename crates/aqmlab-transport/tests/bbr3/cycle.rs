//! The states of ProbeBW.

use aqmlab_units::{Rate, Span};

use crate::flow::{Bottleneck, Flow, counts_by_round, course};
use crate::support::Fate;

const LONG: Span = Span::s(30);

/// Loses every nth data segment.
fn lose_every(flow: &mut Flow, nth: u32) {
    let mut n = 0;
    flow.there(move |_, segment| {
        n += u32::from(segment.len > 0);
        if segment.len > 0 && n % nth == 0 { Fate::Drop } else { Fate::Pass }
    });
}

#[test]
fn exiting_probe_up_on_bandwidth_plateau() {
    let mut flow = Flow::endless(Bottleneck::mbit(10, 40, usize::MAX));
    let up = flow.until("ProbeBW_UP", LONG);
    assert_eq!((up.model.pacing_gain, up.model.cwnd_gain), (1.25, 2.25));
    let down = flow.until("ProbeBW_DOWN", LONG);
    assert!(down.model.full_bw_now && flow.retransmitted() == 0);
    let counts = counts_by_round(&flow.since(up.at));
    assert_eq!(counts, [0, 1, 2, 3], "three rounds in a row");
}

/// The application keeps some 30 segments in flight while ProbeBW_UP lasts; then every tenth segment is lost. The
/// draft's HandleInflightTooHigh leaves inflight_longterm as it is if the application limits the flow.
#[test]
fn exiting_probe_up_on_loss_when_application_limited() {
    for limited in [true, false] {
        let mut flow = Flow::endless(Bottleneck::mbit(10, 40, usize::MAX));
        flow.until("ProbeBW_UP", LONG);
        if limited {
            flow.write(6, Span::ms(10));
            flow.run_for(Span::ms(300));
        }
        assert_eq!(flow.now().model.state, "ProbeBW_UP");
        lose_every(&mut flow, 10);
        let down = flow.while_in("ProbeBW_UP", Span::ms(300));
        assert!(!down.model.full_bw_now, "not because of a plateau");
        assert_eq!(down.model.inflight_longterm.is_infinite(), limited);
    }
}

/// Only ProbeRTT, which an application without pauses must undergo every five seconds, interrupts the state.
#[test]
fn never_exiting_probe_up_or_startup_when_application_limited_with_no_loss() {
    let mut flow = Flow::silent(Bottleneck::mbit(10, 40, usize::MAX));
    flow.write(2, Span::ms(10));
    flow.run_for(Span::s(30));
    let states = course(&flow.since(aqmlab_units::Instant::ZERO));
    assert!(states.iter().all(|state| ["Startup", "ProbeRTT"].contains(state)), "{states:?}");

    let mut flow = Flow::endless(Bottleneck::mbit(10, 40, usize::MAX));
    let up = flow.until("ProbeBW_UP", LONG);
    flow.write(6, Span::ms(10));
    flow.until("ProbeRTT", Span::s(12));
    let entries = flow.since(up.at);
    assert_eq!(course(&entries), ["ProbeBW_UP", "ProbeRTT"]);
    let lasted = entries[entries.len() - 1].at - up.at;
    assert!(lasted > Span::s(2), "{lasted}, tens of rounds");
}

/// Without a bound, and with one that a shallow queue has set.
#[test]
fn exiting_probe_down_on_inflight() {
    for depth in [usize::MAX, 15] {
        let mut flow = Flow::endless(Bottleneck::mbit(10, 40, depth));
        flow.until("ProbeBW_UP", LONG);
        let down = flow.until("ProbeBW_DOWN", LONG);
        assert_eq!(down.model.pacing_gain, 0.9);
        assert_eq!(down.model.inflight_longterm.is_infinite(), depth == usize::MAX);
        let cruise = flow.until("ProbeBW_CRUISE", LONG);
        let target = |entry: &crate::flow::Entry| entry.inflight().min(entry.inflight_with_headroom());
        assert!(cruise.flight <= target(&cruise), "{} above {}", cruise.flight, target(&cruise));
        let entries = flow.since(down.at);
        assert_eq!(course(&entries), ["ProbeBW_DOWN", "ProbeBW_CRUISE"]);
        let repaired = entries.iter().position(|entry| !entry.recovering).unwrap_or(0);
        let before = &entries[repaired..entries.len() - 1];
        assert!(before.iter().all(|entry| entry.flight > target(entry)), "it leaves as soon as it may");
    }
}

/// With a round-trip time of 120 ms, 63 rounds are longer than bw_probe_wait, and 10 % less than the bandwidth keeps
/// in flight what ProbeBW_UP has added. A pause before the probe serves as ProbeRTT, which would be due too early.
#[test]
fn exiting_probe_down_after_max_time() {
    let mut flow = Flow::endless(Bottleneck::mbit(10, 120, usize::MAX));
    flow.until("ProbeBW_CRUISE", LONG);
    flow.pause();
    flow.run_for(Span::s(6));
    flow.fill();
    flow.until("ProbeBW_UP", Span::s(1));
    let down = flow.until("ProbeBW_DOWN", LONG);
    flow.deliver_at(Rate::kbit(9_000));
    let refill = flow.while_in("ProbeBW_DOWN", LONG);
    assert_eq!(refill.model.state, "ProbeBW_REFILL", "not by way of ProbeBW_CRUISE");
    let before = flow.since(down.at);
    assert!(before.iter().all(|entry| entry.flight > entry.inflight()), "the queue has not drained");
    let lasted = refill.at - down.at;
    assert!(lasted > Span::s(2) && lasted < Span::ms(3_200), "{lasted}");
}

/// A queue of 15 segments sets the bound; the loss that sets it a second time is drawn.
#[test]
fn handling_loss_during_probe_up_after_inflight_longterm_is_set() {
    let mut flow = Flow::endless(Bottleneck::mbit(10, 40, 15));
    flow.until_that("a bound", LONG, |entry| entry.model.inflight_longterm.is_finite());
    flow.until("ProbeBW_CRUISE", LONG);
    let up = flow.until("ProbeBW_UP", LONG);
    let bound = up.model.inflight_longterm;
    assert!(bound.is_finite());
    lose_every(&mut flow, 10);
    let down = flow.until("ProbeBW_DOWN", Span::ms(300));
    assert_eq!(course(&flow.since(up.at)), ["ProbeBW_UP", "ProbeBW_DOWN"]);
    assert!(!down.model.full_bw_now, "not because of a plateau");
    let lowered = down.model.inflight_longterm;
    assert!(lowered < bound && lowered >= 0.7 * down.bdp().min(down.cwnd), "{bound}, then {lowered}");
}

#[test]
fn handling_application_limited_sending_during_probe_refill() {
    let mut flow = Flow::endless(Bottleneck::mbit(10, 40, usize::MAX));
    let refill = flow.until("ProbeBW_REFILL", LONG);
    flow.write(1, Span::ms(10));
    let up = flow.until("ProbeBW_UP", LONG);
    assert_eq!(course(&flow.since(refill.at)), ["ProbeBW_REFILL", "ProbeBW_UP"]);
    assert_eq!(up.model.max_bw, refill.model.max_bw);
    flow.run_for(Span::ms(500));
    assert!(flow.now().model.max_bw == refill.model.max_bw, "samples that the application limits are lower");
    flow.fill();
    flow.until("ProbeBW_DOWN", LONG);
    flow.until("ProbeBW_CRUISE", LONG);
}
