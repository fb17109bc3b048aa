//! PackMime-HTTP compared with the exact values of its distributions (found by integrating the tables of
//! `PackMimeHTTP` in ns-2.35) and with values from ns-2.35's generator.

use aqmlab_random::Stream;
use aqmlab_traffic::packmime::{HostDelay, OpenedByCloud, PackMime, PausesOf};
use aqmlab_traffic::{End, PlannedExchange};

const DRAWS: usize = 400_000;

fn cloud(rate: f64) -> PackMime {
    PackMime::new(rate, PausesOf::Connection, &Stream::new(1, "traffic/web"))
}

fn opened(rate: f64, count: usize) -> Vec<OpenedByCloud> {
    let mut cloud = cloud(rate);
    (0..count).map(|_| cloud.open()).collect()
}

fn exchanges(of: &OpenedByCloud) -> Vec<PlannedExchange> {
    of.connection.exchanges.clone().collect()
}

/// Values in sorted order, so that quantiles can be read off.
struct Sample(Vec<f64>);

impl Sample {
    fn new(values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.collect();
        values.sort_by(f64::total_cmp);
        Sample(values)
    }

    fn quantile(&self, p: f64) -> f64 {
        self.0[(p * self.0.len() as f64) as usize]
    }

    fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len() as f64
    }

    /// Checks that no quantile deviates from its expected value by more than a given share of that
    /// value.
    fn check(&self, what: &str, quantiles: &[(f64, f64, f64)]) {
        for &(p, expected, within) in quantiles {
            let found = self.quantile(p);
            assert!((found / expected - 1.0).abs() <= within, "{what}, {p}: {found} against {expected}");
        }
    }
}

/// Request sizes and delays have long-range dependence, so their quantiles vary more from seed to seed than
/// those of independent draws.
#[test]
fn sizes_and_delays_have_the_quantiles_of_the_source() {
    let opened = opened(27.0, DRAWS);
    let response = Sample::new(opened.iter().map(|c| exchanges(c)[0].response as f64));
    response.check(
        "response",
        &[
            (0.5, 889.0, 0.03),
            (0.9, 14_800.0, 0.02),
            (0.95, 29_800.0, 0.02),
            (0.99, 71_500.0, 0.03),
            (0.999, 464e3, 0.1),
        ],
    );
    let share = |bound: f64| response.0.partition_point(|&v| v <= bound) as f64 / DRAWS as f64;
    assert!((share(275.0) - 0.278).abs() < 0.004, "{}", share(275.0));
    assert!((share(10e3) - 0.8375).abs() < 0.003, "{}", share(10e3));
    assert!((1.0 - share(50e3) - 0.0158).abs() < 0.0008, "{}", share(50e3));
    let of_bytes: f64 =
        response.0.iter().filter(|&&v| v <= 10e3).sum::<f64>() / response.0.iter().sum::<f64>();
    // According to the integrated tables, 16.3 % of all bytes are in responses of up to 10 kB. Samples lack
    // the end of the tail, so the share in a sample is larger.
    assert!((0.15..0.19).contains(&of_bytes), "{of_bytes}");

    let request = Sample::new(opened.iter().map(|c| exchanges(c)[0].request as f64));
    request.check(
        "request",
        &[
            (0.1, 279.6, 0.02),
            (0.5, 421.8, 0.02),
            (0.9, 869.0, 0.02),
            (0.95, 1062.5, 0.03),
            (0.99, 3062.0, 0.05),
            (0.999, 14_450.0, 0.12),
        ],
    );
    let client = Sample::new(opened.iter().map(|c| c.connection.client_delay.as_secs_f64() * 1e3));
    client.check(
        "client delay",
        &[(0.0, 0.26, 0.001), (0.5, 0.735, 0.02), (0.9, 17.99, 0.04), (0.99, 299.4, 0.05)],
    );
    assert!((client.mean() / 13.4 - 1.0).abs() < 0.05, "{}", client.mean());
    let server = Sample::new(opened.iter().map(|c| c.connection.server_delay.as_secs_f64() * 1e3));
    server.check(
        "server delay",
        &[(0.0, 0.2475, 0.002), (0.5, 28.98, 0.03), (0.9, 57.0, 0.04), (0.99, 335.0, 0.06)],
    );
    assert!((server.mean() / 40.5 - 1.0).abs() < 0.05, "{}", server.mean());
    // Mean, median and minimum of the round-trip time if the network itself accounts for 18 ms;
    // they are 123, 84 and 19 ms in the source's own runs.
    let rtt = Sample::new(
        opened
            .iter()
            .map(|c| 18.0 + 2e3 * (c.connection.client_delay + c.connection.server_delay).as_secs_f64()),
    );
    assert!((rtt.mean() - 124.5).abs() < 5.0 && (rtt.quantile(0.5) - 84.5).abs() < 2.5, "{}", rtt.mean());
    assert!((19.0..19.2).contains(&rtt.quantile(0.0)));
}

#[test]
fn connections_of_http_1_0_carry_one_exchange_and_are_else_the_same() {
    let draws = Stream::new(1, "traffic/web");
    let mut both = PackMime::new(27.0, PausesOf::Connection, &draws);
    let mut single = both.clone().without_persistence();
    let mut several = 0;
    for _ in 0..5_000 {
        let (a, b) = (both.open(), single.open());
        assert_eq!(
            (a.gap, a.connection.client_delay, a.connection.server_delay),
            (b.gap, b.connection.client_delay, b.connection.server_delay)
        );
        let (a, b): (Vec<_>, Vec<_>) = (a.connection.exchanges.collect(), b.connection.exchanges.collect());
        assert_eq!((b.len(), b[0].last), (1, true));
        assert_eq!(
            (a[0].request, a[0].response, a[0].server_delay),
            (b[0].request, b[0].response, b[0].server_delay)
        );
        several += usize::from(a.len() > 1);
    }
    // Binomial(5000, 0.09) has a standard deviation of 20.
    assert!(several.abs_diff(450) < 100, "{several}");
}

/// The share of first responses that are downloads: 0.7237 at 27 connections per second (the mean lengths of
/// the two kinds of runs). The mean of a download whose sizes above 9 MB are drawn again, and the
/// share of the larger ones, follow from the table of ns-2.35 by integrating each of its segments, where the size is
/// a power of the probability.
#[test]
fn responses_above_the_bound_are_drawn_again_and_all_else_stays() {
    const MOST: u64 = 9_000_000;
    let draws = Stream::new(3, "traffic/web");
    let mut all = PackMime::new(27.0, PausesOf::Connection, &draws);
    let mut bound = all.clone().with_max_response(MOST);
    let (mut sum, mut pairs, mut beyond_body, mut again) = (0.0, 0u32, 0u32, 0u32);
    let mut first = 0.0;
    for _ in 0..DRAWS {
        let (a, b) = (all.open(), bound.open());
        assert_eq!(
            (a.gap, a.connection.client_delay, a.connection.server_delay),
            (b.gap, b.connection.client_delay, b.connection.server_delay)
        );
        let (a, b): (Vec<_>, Vec<_>) = (a.connection.exchanges.collect(), b.connection.exchanges.collect());
        assert_eq!(a.len(), b.len());
        first += b[0].response as f64;
        for (a, b) in a.iter().zip(&b) {
            assert_eq!((a.request, a.pause, a.server_delay), (b.request, b.pause, b.server_delay));
            assert!(b.response <= MOST && (a.response == b.response || a.response > MOST));
            sum += b.response as f64;
            (pairs, again) = (pairs + 1, again + u32::from(a.response > MOST));
            beyond_body += u32::from(b.response > 50_000);
        }
    }
    // 2.60e-5 of the first responses: 10.4 of 400,000, with a standard deviation of 3.2.
    assert!(again.abs_diff(10) <= 13, "{again}");
    // The mean of the first responses is 7383 B; their standard deviation of 80 kB makes 127 B here.
    let first = first / DRAWS as f64;
    assert!((first - 7383.0).abs() < 500.0, "{first}");
    // With the smaller responses of persistent connections, the mean of all is 6.6 kB, and 690 of 50,000 are
    // longer than 50 kB; Weigle et al. state 6700 B and about 700.
    let (mean, many) = (sum / f64::from(pairs), 5e4 * f64::from(beyond_body) / f64::from(pairs));
    assert!((mean - 6615.0).abs() < 420.0, "{mean}");
    assert!((many - 690.0).abs() < 40.0, "{many}");
}

#[test]
fn the_mean_connection_knows_the_bound() {
    // Means of the first response at 27 connections per second for bounds of 0.1, 1 and 9 MB, less the mean
    // without a bound, by integrating the table of ns-2.35.
    let whole = PackMime::MEAN_CONNECTION;
    assert_eq!(PackMime::mean_connection(None), whole);
    for (most, less) in [(100_000, 3483.1), (1_000_000, 2069.4), (9_000_000, 1246.9)] {
        let mean = PackMime::mean_connection(Some(most));
        assert_eq!(
            (mean.exchanges, mean.bytes[0], mean.waits_s),
            (whole.exchanges, whole.bytes[0], whole.waits_s)
        );
        // Drawing again raises the rest by the share of what is cut, so the two differ by up to 10 B.
        assert!((whole.bytes[1] - mean.bytes[1] - less).abs() < 25.0, "{most}: {mean:?}");
    }
    let none = PackMime::mean_connection(Some(1 << 50)).bytes[1];
    assert!((none / whole.bytes[1] - 1.0).abs() < 0.02, "{none}");
}

/// Persistent connections draw their further responses from distributions of their own; some lie far above the
/// least bound.
#[test]
fn no_response_is_above_the_least_bound() {
    let most = PackMime::LEAST_MAX_RESPONSE;
    let mut cloud = cloud(27.0).with_max_response(most);
    for _ in 0..100_000 {
        assert!(cloud.open().connection.exchanges.all(|exchange| (1..=most).contains(&exchange.response)));
    }
}

/// Delays that flows draw for their own hosts have the same distributions as those that clouds draw.
#[test]
fn hosts_are_as_far_by_themselves_as_in_clouds() {
    for (end, median, p90, p99) in [(End::Client, 0.735, 17.99, 299.4), (End::Server, 28.98, 57.0, 335.0)] {
        let mut draws = Stream::new(9, "hosts");
        let mut delays: Vec<f64> =
            (0..200_000).map(|_| HostDelay::draw(end, &mut draws).as_secs_f64() * 1e3).collect();
        let mean = delays.iter().sum::<f64>() / delays.len() as f64;
        delays.sort_unstable_by(f64::total_cmp);
        let at = |share: f64| delays[(delays.len() as f64 * share) as usize];
        for (share, expected) in [(0.5, median), (0.9, p90), (0.99, p99)] {
            assert!(
                (at(share) / expected - 1.0).abs() < 0.06,
                "{end:?} {share}: {} against {expected}",
                at(share)
            );
        }
        assert!((mean / (HostDelay::mean(end).as_secs_f64() * 1e3) - 1.0).abs() < 0.03, "{end:?}: {mean}");
        let least = HostDelay::least(end).as_secs_f64() * 1e3;
        assert!(
            least > 0.2 && least <= delays[0] && delays[0] < least * 1.01,
            "{end:?}: {least} {}",
            delays[0]
        );
    }
}

#[test]
fn gaps_are_weibull_with_the_mean_of_the_rate() {
    // Shape and scale are as ns-2 computes them.
    for (rate, shape, scale) in
        [(1.0, 0.5607, 0.604_78), (27.0, 0.8209, 0.033_282), (100.0, 0.8840, 0.009_409_3)]
    {
        let gaps = Sample::new(opened(rate, 100_000).iter().map(|c| c.gap.as_secs_f64()));
        let quantile = |p: f64| scale * libm::pow(-libm::log(1.0 - p), 1.0 / shape);
        let expected = [0.1, 0.5, 0.9, 0.99].map(|p| (p, quantile(p), if rate < 2.0 { 0.2 } else { 0.06 }));
        gaps.check("gap", &expected);
        assert!(
            (gaps.mean() * rate - 1.0).abs() < if rate < 2.0 { 0.15 } else { 0.04 },
            "{}",
            gaps.mean() * rate
        );
    }
}

#[test]
fn server_times_end_at_a_tenth_of_a_second() {
    let opened = opened(27.0, 100_000);
    let times = Sample::new(opened.iter().map(|c| exchanges(c)[0].server_delay.as_secs_f64()));
    times.check("server time", &[(0.5, 0.005_866, 0.02), (0.95, 0.1, 0.0)]);
    assert!((times.mean() / 0.021_95 - 1.0).abs() < 0.02, "{}", times.mean());
    let at_most = times.0.iter().filter(|&&t| t >= 0.1).count() as f64 / times.0.len() as f64;
    assert!((at_most - 0.1096).abs() < 0.003, "{at_most}");
}

#[test]
fn connections_carry_the_exchanges_of_the_source() {
    let opened = opened(27.0, DRAWS);
    let all: Vec<Vec<PlannedExchange>> = opened.iter().map(exchanges).collect();
    let pairs = all.iter().map(Vec::len).sum::<usize>() as f64 / DRAWS as f64;
    // The expected number is 1 + 0.09 (e - 1), where a geometric series gives e = 3.194 exchanges
    // on a persistent connection.
    let (objects, pages) =
        (2.0 + 1.0 / (libm::exp(1.0 / 1.578) - 1.0), 2.0 + 1.0 / (libm::exp(1.0 / 0.417) - 1.0));
    let persistent = 0.82 * objects + 0.18 * pages * (0.69 + 0.31 * objects);
    assert!((pairs - (1.0 + 0.09 * (persistent - 1.0))).abs() < 0.003, "{pairs}");
    for of_one in &all {
        let (first, last) = (of_one[0], of_one.len() - 1);
        assert!(first.pause.is_zero());
        assert!(of_one.iter().enumerate().all(|(i, e)| e.last == (i == last) && e.request == first.request));
        if first.response <= 275 {
            assert!(of_one.iter().all(|e| e.response == first.response));
        }
    }
    let later = all.iter().flat_map(|of_one| &of_one[1..]);
    let sizes = Sample::new(later.clone().filter(|e| e.response > 275).map(|e| e.response as f64));
    // The median over all later responses is 2^10.62; here, responses of up to 275 bytes are left out, which
    // raises the median.
    assert!((1500.0..2100.0).contains(&sizes.quantile(0.5)), "{}", sizes.quantile(0.5));
    let pauses = Sample::new(later.map(|e| e.pause.as_secs_f64()));
    assert!((0.055..0.075).contains(&pauses.quantile(0.5)), "{}", pauses.quantile(0.5));
    // The number of pauses between pages on a connection is one less than its number of pages.
    let long = pauses.0.iter().filter(|&&p| p > 2.0).count() as f64 / pauses.0.len() as f64;
    let between = 0.18 * (pages - 1.0) / (persistent - 1.0);
    assert!((long - between).abs() < 0.015, "{long} against {between}");
}

#[test]
fn connections_carry_on_average_what_is_said_of_them() {
    let all: Vec<Vec<PlannedExchange>> = opened(27.0, DRAWS).iter().map(exchanges).collect();
    let mean = |of: fn(&PlannedExchange) -> f64| {
        all.iter().map(|of_one| of_one.iter().map(of).sum::<f64>()).sum::<f64>() / DRAWS as f64
    };
    let said = PackMime::MEAN_CONNECTION;
    for (what, found, said, within) in [
        ("exchanges", mean(|_| 1.0), said.exchanges, 0.01),
        ("requests", mean(|e| e.request as f64), said.bytes[0], 0.05),
        // The mean of 400,000 responses varies by a tenth from seed to seed.
        ("responses", mean(|e| e.response as f64), said.bytes[1], 0.15),
        ("waits", mean(|e| (e.pause + e.server_delay).as_secs_f64()), said.waits_s, 0.05),
    ] {
        assert!((found / said - 1.0).abs() <= within, "{what}: {found} against {said}");
    }
}

#[test]
fn a_cloud_is_the_same_again() {
    let values = |_| {
        let opened = opened(27.0, 8000);
        opened
            .iter()
            .map(|c| (c.gap, c.connection.client_delay, c.connection.server_delay, exchanges(c)))
            .collect::<Vec<_>>()
    };
    assert_eq!(values(0), values(1));
}

#[test]
fn pauses_of_a_cloud_hang_on_one_draw() {
    let medians = |pauses_of| {
        [1u64, 2, 3].map(|seed| {
            let mut cloud = PackMime::new(27.0, pauses_of, &Stream::new(seed, "traffic/web"));
            let pauses = (0..50_000)
                .flat_map(|_| exchanges(&cloud.open()).split_off(1))
                .map(|e| e.pause.as_secs_f64());
            Sample::new(pauses).quantile(0.5)
        })
    };
    let spread =
        |of: [f64; 3]| of.iter().copied().fold(0.0, f64::max) / of.iter().copied().fold(f64::MAX, f64::min);
    assert!(spread(medians(PausesOf::Connection)) < 1.1);
    assert!(spread(medians(PausesOf::Cloud)) > 1.3);
}
