//! On/off sources: their periods, their long-run rate, and their first period.

use std::sync::Arc;

use aqmlab_random::Stream;
use aqmlab_traffic::{
    Act, Begin, Bursty, Distribution, End, OnOff, PacketSource, Probability, Quantity, Session,
    SingleExchange, Step, StreamPosition,
};
use aqmlab_units::{Bytes, Instant, Rate, Span};

const SIZE: Bytes = Bytes::new(1250);
/// At this rate, a packet of [`SIZE`] takes 10 ms.
const RATE: Rate = Rate::mbit(1);

fn times(on: Distribution, off: Distribution, begin: Begin) -> Arc<OnOff> {
    Arc::new(OnOff { on, off, begin })
}

fn constant(on_ms: u64, off_ms: u64, begin: Begin) -> Arc<OnOff> {
    times(Distribution::Constant(Span::ms(on_ms)), Distribution::Constant(Span::ms(off_ms)), begin)
}

fn source(times: Arc<OnOff>, index: u64) -> PacketSource {
    let draws = |what| Stream::indexed(3, what, index);
    PacketSource::on_off(RATE, SIZE, times, Instant::ZERO, draws("on"), draws("off"))
}

fn departures(mut source: PacketSource, until: Instant) -> Vec<Instant> {
    let mut all = Vec::new();
    while source.next_at() < until {
        all.push(source.next_at());
        assert_eq!(source.emit(), SIZE);
    }
    all
}

fn ms(of: &[Instant]) -> Vec<u64> {
    of.iter().map(|at| at.as_ns() / 1_000_000).collect()
}

#[test]
fn an_on_period_is_the_nearest_number_of_packets_and_lasts_as_long_as_they_take() {
    let until = Instant::ZERO + Span::ms(200);
    // An on period of 34 ms has 3 packets, and one of 36 ms has 4. After the last packet, which takes 10 ms,
    // there are 50 ms without packets.
    assert_eq!(
        ms(&departures(source(constant(34, 50, Begin::On), 0), until)),
        [0, 10, 20, 80, 90, 100, 160, 170, 180]
    );
    assert_eq!(
        ms(&departures(source(constant(36, 50, Begin::On), 0), until)),
        [0, 10, 20, 30, 90, 100, 110, 120, 180, 190]
    );
    assert_eq!(
        ms(&departures(source(constant(1, 70, Begin::On), 0), until)),
        [0, 80, 160],
        "at least one packet"
    );
    assert_eq!(
        ms(&departures(source(constant(20, 70, Begin::Off), 0), until)),
        [70, 80, 160, 170],
        "as ns-2 begins"
    );
}

#[test]
fn the_mean_rate_is_the_duty_cycle_of_the_rate() {
    let mean = Span::ms(500);
    let seconds = 400u64;
    for (on, off) in [
        (
            Distribution::Exponential { mean, offset: Span::ZERO },
            Distribution::Exponential { mean: mean * 3, offset: Span::ZERO },
        ),
        (
            Distribution::Pareto { mean, shape: 1.9, max: None },
            Distribution::Pareto { mean: mean * 3, shape: 1.9, max: None },
        ),
    ] {
        let plan = times(on, off, Begin::Stationary);
        assert!((plan.duty() - 0.25).abs() < 1e-12);
        let rates: Vec<f64> = (0..200)
            .map(|i| {
                departures(source(plan.clone(), i), Instant::ZERO + Span::s(seconds)).len() as f64
                    / seconds as f64
            })
            .collect();
        let n = rates.len() as f64;
        let average = rates.iter().sum::<f64>() / n;
        let variance = rates.iter().map(|x| (x - average) * (x - average)).sum::<f64>() / (n - 1.0);
        // The mean is a quarter of 100 packets per second, within four standard errors.
        assert!((average - 25.0).abs() < 4.0 * (variance / n).sqrt(), "{average} of {plan:?}");
    }
}

/// Sources that start in the middle of a period are as likely to be on at time zero, and at any
/// later time, as they are in the long run; sources that start with a whole period are not.
#[test]
fn a_stationary_beginning_has_no_transient() {
    let pareto = |ms| Distribution::Pareto { mean: Span::ms(ms), shape: 1.5, max: None };
    let (n, window) = (4000u64, Span::ms(200));
    let busy = |begin, from: Span| {
        let plan = times(pareto(1000), pareto(1000), begin);
        let sum: usize = (0..n)
            .map(|i| departures(source(plan.clone(), i), Instant::ZERO + from + window))
            .map(|all| all.iter().filter(|at| **at >= Instant::ZERO + from).count())
            .sum();
        sum as f64 / n as f64
    };
    // 20 packets fit into the window, and half of them are sent on average; the standard deviation of a
    // source's count is at most 10.
    let error = 4.0 * 10.0 / (n as f64).sqrt();
    for from in [Span::ZERO, Span::s(1), Span::s(30)] {
        assert!((busy(Begin::Stationary, from) - 10.0).abs() < error, "{from}");
    }
    assert!(busy(Begin::On, Span::ZERO) > 19.0);
    assert!(busy(Begin::Off, Span::ZERO) < 1.0);
}

#[test]
fn a_greedy_session_writes_without_end_and_withdraws() {
    let draws = Stream::new(1, "x");
    let mut session = Session::greedy(constant(30, 50, Begin::Off), draws, draws);
    let at = |ms| Instant::ZERO + Span::ms(ms);
    let step = |client, wake| Step { client, wake_at: Some(at(wake)), ..Step::default() };
    assert_eq!(session.begin(at(0)), step(None, 50));
    assert_eq!(session.on_timer(at(50)), step(Some(Act::WriteEndlessly), 80));
    assert_eq!(
        session.on_progress(at(60), End::Client, StreamPosition { acked: 9, ..StreamPosition::default() }),
        Step::default()
    );
    assert_eq!(session.on_timer(at(80)), step(Some(Act::Withdraw), 130));
    assert_eq!(session.on_timer(at(130)), step(Some(Act::WriteEndlessly), 160));
}

#[test]
fn a_burst_follows_an_off_period_after_the_last_byte_is_acknowledged() {
    let draws = Stream::new(1, "x");
    let sizes = Distribution::List([3000, 500].map(Bytes::new).to_vec());
    let off = Distribution::Constant(Span::ms(50));
    let at = |ms| Instant::ZERO + Span::ms(ms);
    let write = |bytes| Step { client: Some(Act::Write(bytes)), ..Step::default() };
    let wake = |ms| Step { wake_at: Some(at(ms)), ..Step::default() };
    let acked = |acked| StreamPosition { acked, ..StreamPosition::default() };

    let plan = Arc::new(Bursty { sizes, off, begin: Begin::On });
    let mut session = Session::bursts(plan.clone(), draws, draws);
    assert_eq!(session.begin(at(0)), write(3000));
    assert_eq!(session.on_progress(at(10), End::Client, acked(2999)), Step::default());
    assert_eq!(session.on_progress(at(20), End::Client, acked(3000)), wake(70));
    assert_eq!(session.on_progress(at(30), End::Client, acked(3000)), Step::default(), "once");
    assert_eq!(session.on_timer(at(70)), write(500));
    assert_eq!(session.on_progress(at(75), End::Client, acked(3000)), Step::default());
    assert_eq!(session.on_progress(at(80), End::Client, acked(3500)), wake(130));

    let mut late = Session::bursts(Arc::new(Bursty { begin: Begin::Off, ..(*plan).clone() }), draws, draws);
    assert_eq!(late.begin(at(0)), wake(50));
}

#[test]
fn a_server_answers_when_it_has_the_whole_request() {
    let at = Instant::ZERO;
    let arrived = |delivered| StreamPosition { delivered, ..StreamPosition::default() };
    let mut both = Session::Single(SingleExchange::new(Bytes::new(300), Bytes::new(9000)));
    assert_eq!(both.begin(at), Step { client: Some(Act::Write(300)), ..Step::default() });
    assert_eq!(both.on_progress(at, End::Server, arrived(299)), Step::default());
    assert_eq!(
        both.on_progress(at, End::Server, arrived(300)),
        Step { server: Some(Act::WriteLast(9000)), ..Step::default() }
    );
    assert_eq!(both.on_progress(at, End::Server, arrived(300)), Step::default(), "once");

    let mut push = Session::Single(SingleExchange::new(Bytes::ZERO, Bytes::new(10)));
    assert_eq!(push.begin(at), Step { server: Some(Act::WriteLast(10)), ..Step::default() });
    assert_eq!(push.on_progress(at, End::Server, arrived(0)), Step::default());

    let mut post = Session::Single(SingleExchange::new(Bytes::new(10), Bytes::ZERO));
    assert_eq!(post.begin(at), Step { client: Some(Act::WriteLast(10)), ..Step::default() });
    let done = post.on_progress(at, End::Server, arrived(10)).done.map(|done| done.request);
    assert_eq!(done, Some(Bytes::new(10)), "nothing comes back");
    assert_eq!(post.on_progress(at, End::Server, arrived(10)), Step::default(), "once");
}

#[test]
fn an_empirical_distribution_follows_its_points() {
    let points = vec![(Bytes::new(100), 0.2), (Bytes::new(200), 0.6), (Bytes::new(1000), 1.0)];
    let empirical = Distribution::Empirical(points);
    let mut draws = Stream::new(5, "sizes");
    let n = 100_000;
    let values: Vec<u64> = (0..n).map(|i| empirical.draw(i, &mut draws).get()).collect();
    for (limit, share) in [(100, 0.2), (150, 0.4), (200, 0.6), (600, 0.8), (1000, 1.0)] {
        let found = values.iter().filter(|v| **v <= limit).count() as f64 / n as f64;
        assert!((found - share).abs() < 5.0 * 0.5 / (n as f64).sqrt() + 0.005, "{limit}: {found}");
    }
    // Of the values, 20 % are exactly 100, 40 % have the mean 150, and 40 % have the mean 600.
    assert_eq!((empirical.least(), empirical.mean()), (Bytes::new(100), Bytes::new(320)));
}

#[test]
fn draws_are_cut_before_they_overflow_a_clock() {
    let heavy = Distribution::Pareto { mean: Span::s(3600), shape: 1.001, max: None };
    let mut draws = Stream::new(9, "heavy");
    for i in 0..100_000 {
        assert!(heavy.draw(i, &mut draws) <= Span::ns(1 << 62));
    }
}

#[test]
fn probabilities_lie_between_nothing_and_one() {
    assert_eq!(Probability::new(1.5), None);
    assert_eq!(Probability::new(f64::NAN), None);
    let (low, high) = (Probability::of_units(0), Probability::new(0.25).expect("is one"));
    let uniform = Distribution::Uniform { low, high };
    let mut draws = Stream::new(2, "loss");
    let mean = (0..10_000).map(|i| uniform.draw(i, &mut draws).get()).sum::<f64>() / 1e4;
    assert!((mean - 0.125).abs() < 5.0 * 0.0722 / 100.0, "{mean}");
    assert_eq!(uniform.mean().get(), 0.125);
}
