//! Recoveries that prove to be spurious.

use aqmlab_units::Span;

use crate::flow::{Bottleneck, Flow, course};
use crate::support::Fate;

const LONG: Span = Span::s(30);

/// In ProbeBW_UP, 20 segments in a row are late by more than the allowance for reordering, so the later ones overtake them.
#[test]
fn handling_spurious_fast_recovery() {
    let mut flow = Flow::endless(Bottleneck::mbit(10, 40, usize::MAX));
    let up = flow.until("ProbeBW_UP", LONG);
    let mut left = 20;
    flow.there(move |_, segment| {
        if segment.len == 0 || left == 0 {
            return Fate::Pass;
        }
        left -= 1;
        Fate::Late(Span::ms(35))
    });
    let recovery = flow.until_that("recovery", Span::s(1), |entry| entry.recovering);
    let lowered = flow.until("ProbeBW_DOWN", Span::ms(200));
    assert!(lowered.model.inflight_longterm.is_finite());
    let restored = flow.until_that("the undoing", Span::s(1), |entry| {
        entry.model.inflight_longterm.is_infinite() && !entry.recovering
    });
    assert_eq!(restored.model.bw_shortterm, f64::INFINITY);
    assert_eq!(restored.model.inflight_shortterm, f64::INFINITY);
    assert!(restored.cwnd >= 0.9 * recovery.cwnd, "{} after {}", restored.cwnd, recovery.cwnd);
    flow.until("ProbeBW_UP", Span::s(1));
    let states = course(&flow.since(up.at));
    // Late segments of a second round may interrupt the second probe as well.
    let back = ["ProbeBW_UP", "ProbeBW_DOWN", "ProbeBW_REFILL", "ProbeBW_UP"];
    assert!(states.starts_with(&back) && states.ends_with(&back), "{states:?}");
}

/// In ProbeBW_UP, everything is late by 600 ms for a while, which is longer than the timeout.
#[test]
fn handling_spurious_rto_recovery() {
    let mut flow = Flow::endless(Bottleneck::mbit(10, 40, usize::MAX));
    let up = flow.until("ProbeBW_UP", LONG);
    let begin = flow.net.now;
    flow.there(move |now, segment| {
        let end = begin + Span::ms(700);
        if segment.len == 0 || now >= end { Fate::Pass } else { Fate::Late(end - now) }
    });
    flow.until_that("a timeout", Span::s(1), |entry| entry.cwnd <= 4.0);
    let restored = flow.until_that("the undoing", Span::s(2), |entry| entry.cwnd > 10.0);
    assert!(flow.net.sides[0].endpoint.counters().timeouts > 0);
    assert_eq!(restored.model.bw_shortterm, f64::INFINITY);
    assert_eq!(restored.model.inflight_shortterm, f64::INFINITY);
    assert_eq!(restored.model.inflight_longterm, up.model.inflight_longterm);
    assert!(restored.cwnd >= 0.9 * up.cwnd, "{} after {}", restored.cwnd, up.cwnd);
    flow.until("ProbeBW_UP", Span::s(2));
    let states = course(&flow.since(up.at));
    assert!(states.ends_with(&["ProbeBW_REFILL", "ProbeBW_UP"]), "{states:?}");
}
