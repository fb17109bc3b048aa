//! Reports of data beyond a hole: the first three leave immediately, and later ones wait for more data.

mod support;

use aqmlab_params::{Origin, Value};
use aqmlab_transport::{Profile, profile_settings};
use aqmlab_units::{Instant, Rate, Span};
use support::{A, B, Fate, Link, Pair, Path, faultless};

/// Returns the send times of the receiver's reports of a hole, relative to the first report. The
/// first of thirty segments is lost; the others arrive `gap` apart.
fn reports(delay: Span, most: u64, gap: Span) -> Vec<Span> {
    reports_of(2, delay, most, gap)
}

/// Does the same as `reports`, for a receiver that sends one ACK per `ack_every` in-order segments.
fn reports_of(ack_every: u64, delay: Span, most: u64, gap: Span) -> Vec<Span> {
    let mut settings = profile_settings("modern").expect("built in");
    let given = [
        ("ack_every", Value::Integer(ack_every)),
        ("sack_delay", Value::Span(delay)),
        ("sack_delay_slack", Value::Span(Span::us(100))),
        ("sack_delay_most", Value::Integer(most)),
        ("initial_window", Value::Integer(30)),
    ];
    for (name, value) in given {
        settings.set(name, value, Origin::Given);
    }
    let profile = Profile::resolve(&mut settings).expect("consistent");
    let rate = Rate::kbit(1500 * 8 * 1_000_000 / gap.as_ns());
    let link = |rate| Link::new(rate, Span::ms(50), usize::MAX);
    let fast = Rate::mbit(100_000);
    let mut data = 0;
    let lossy = Box::new(move |_, segment: &aqmlab_transport::Segment| {
        data += u32::from(segment.len > 0);
        if segment.len > 0 && data == 1 { Fate::Drop } else { Fate::Pass }
    });
    let there = Path::new([link(rate), link(fast)], lossy);
    let mut net = Pair::new(profile, [there, Path::new([link(fast), link(fast)], faultless())]);
    net.open(Instant::ZERO);
    net.with(A, |e, _, _| e.write(30 * 1448));
    net.run_until(Instant::ZERO + Span::ms(390));
    let reports = net.sides[B].sent.iter().filter(|(_, segment)| segment.sack_len > 0);
    let times: Vec<Instant> = reports.map(|(at, _)| *at).collect();
    times.iter().map(|at| *at - times[0]).collect()
}

/// Ten segments arrive per millisecond. After three reports, each report leaves 1.1 ms after the
/// segment that caused it and includes the segments that have arrived by then.
#[test]
fn from_the_fourth_on_they_wait_for_more() {
    let gap = Span::us(100);
    let at_once = reports(Span::ZERO, 44, gap);
    assert_eq!(at_once.len(), 29);
    let waiting = reports(Span::ms(1), 44, gap);
    let near = |a: Span, b: Span| a.saturating_sub(b).max(b.saturating_sub(a)) < Span::us(2);
    assert!((0..3).all(|n| near(waiting[n], gap.saturating_mul(n as u64))), "{waiting:?}");
    assert!(near(waiting[3], Span::us(300) + Span::us(1100)), "{waiting:?}");
    assert!(near(waiting[4], Span::us(1500) + Span::us(1100)), "{waiting:?}");
    assert_eq!(waiting.len(), 6, "{waiting:?}");
}

/// At most `sack_delay_most` reports wait; the next one leaves immediately and includes them.
#[test]
fn as_many_wait_as_may() {
    let few = reports(Span::ms(1), 4, Span::us(100));
    let steps: Vec<u64> = few.windows(2).map(|pair| (pair[1] - pair[0]).as_ns().div_ceil(90_000)).collect();
    assert_eq!(&steps[..4], [2, 2, 6, 6], "the fifth leaves at once: {few:?}");
    assert_eq!(reports(Span::ms(1), 0, Span::us(100)).len(), 29);
}

/// The delay is at most a twentieth of the round trip: 10 ms for a round trip of 200 ms.
#[test]
fn none_waits_longer_than_a_twentieth_of_the_round_trip() {
    let waiting = reports(Span::s(1), 255, Span::us(400));
    assert!(
        waiting[3] > Span::us(3 * 400 + 10_000) && waiting[3] < Span::us(3 * 400 + 10_400),
        "{waiting:?}"
    );
}

/// A receiver that acknowledges each segment individually delays no report.
#[test]
fn none_waits_where_each_segment_is_acknowledged() {
    assert_eq!(reports_of(1, Span::ms(1), 44, Span::us(100)).len(), 29);
    assert_eq!(reports_of(3, Span::ms(1), 44, Span::us(100)).len(), 6);
}
