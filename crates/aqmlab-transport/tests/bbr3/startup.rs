//! Startup and Drain.

use aqmlab_units::{Rate, Span};

use crate::flow::{Bottleneck, Flow, counts_by_round, course, is_within};
use crate::support::Fate;

#[test]
fn exiting_startup_on_bandwidth_plateau() {
    for (rate, rtt_ms) in [(1, 100), (10, 40), (100, 10), (1000, 20), (100, 200)] {
        let mut flow = Flow::endless(Bottleneck::mbit(rate, rtt_ms, usize::MAX));
        let drain = flow.until("Drain", Span::s(60));
        assert!(drain.model.full_bw_now && drain.model.full_bw_reached);
        let capacity = flow.capacity(Rate::mbit(rate));
        assert!(is_within(0.02, drain.model.max_bw, capacity), "{} of {capacity}", drain.model.max_bw);
        let entries = flow.since(aqmlab_units::Instant::ZERO);
        assert_eq!(course(&entries), ["Startup", "Drain"]);
        let counts = counts_by_round(&entries);
        assert!(counts.ends_with(&[0, 1, 2, 3]), "three rounds in a row: {counts:?}");
    }
}

/// The application writes 40 segments per round trip of 200 ms, and every fifth segment is lost.
#[test]
fn exiting_startup_on_loss_when_application_limited() {
    let mut flow = Flow::silent(Bottleneck::mbit(100, 200, usize::MAX));
    flow.write(2, Span::ms(10));
    flow.run_for(Span::s(3));
    assert_eq!((flow.now().model.state, flow.now().model.full_bw_count), ("Startup", 0));
    let mut n = 0;
    flow.there(move |_, segment| {
        n += u32::from(segment.len > 0);
        if segment.len > 0 && n % 5 == 0 { Fate::Drop } else { Fate::Pass }
    });
    let drain = flow.while_in("Startup", Span::s(2));
    assert!(drain.model.full_bw_now && drain.model.full_bw_reached && drain.recovering);
    assert!(drain.model.full_bw_count < 3, "no plateau");
    // max(BBR.bdp, BBR.inflight_latest): the application keeps only some 40 segments in flight
    assert!(is_within(1e-9, drain.model.inflight_longterm, drain.bdp()), "{:?}", drain.model);
}

#[test]
fn exiting_drain_based_on_inflight() {
    let mut flow = Flow::endless(Bottleneck::mbit(10, 40, usize::MAX));
    let begin = flow.until("Drain", Span::s(10));
    assert_eq!(begin.model.pacing_gain, 0.5);
    assert!(is_within(0.001, begin.pacing_rate, 0.5 * 0.99 * begin.model.max_bw));
    let end = flow.while_in("Drain", Span::s(10));
    assert!(end.model.state.starts_with("ProbeBW"), "{end:?}");
    let entries = flow.since(begin.at);
    let drains: Vec<_> = entries.iter().filter(|entry| entry.model.state == "Drain").collect();
    assert!(drains.iter().all(|entry| entry.flight > entry.inflight()));
    assert!(end.flight <= end.inflight() && end.model.round_count <= begin.model.round_count + 3);
}

/// With 10 % less, as in the draft, the queue still drains within three rounds, because Drain sends at half the
/// rate; so that what is in flight "remains higher", 60 % less are needed.
#[test]
fn exiting_drain_based_on_time() {
    for (rate, drains) in [(90, true), (40, false)] {
        let mut flow = Flow::endless(Bottleneck::mbit(100, 40, usize::MAX));
        let begin = flow.until("Drain", Span::s(10));
        flow.deliver_at(Rate::mbit(rate));
        let end = flow.while_in("Drain", Span::s(10));
        assert!(end.model.state.starts_with("ProbeBW"), "{end:?}");
        let rounds = end.model.round_count - begin.model.round_count;
        assert_eq!((end.flight <= end.inflight(), rounds <= 3), (drains, drains), "{rounds} rounds");
        assert!(drains || rounds == 4, "the first round that begins after three");
    }
}
