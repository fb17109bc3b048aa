//! Users with browsers, after the UNC model: the published properties of the distributions, and
//! page times over an idle path, computed by hand.
mod support;

use std::collections::{BTreeMap, BTreeSet};

use aqmlab_random::Stream;
use aqmlab_recording::Recording;
use aqmlab_scenario::{Plan, Traffic};
use aqmlab_traffic::{BrowserPlan, ExchangePlan};

use support::{integers, plan, record};

const RTT_MS: u128 = 40;
/// Tolerance that covers the total transmission time of a page at 100 Gbit/s, over all its round
/// trips.
const TOLERANCE_NS: u128 = 40_000;

fn scenario(rate: &str, traffic: &str) -> String {
    format!(
        r#"
        duration = "60s"
        [topology]
        kind = "dumbbell"
        rate = "{rate}"
        delay = "20ms"
        access_rate = "none"
        queue = {{ kind = "droptail", limit = "100000p" }}
        [[traffic]]
        name = "web"
        kind = "browsers"
        {traffic}
        [record]
        requests = {{ sample = 1000000 }}
        "#
    )
}

fn column(recording: &Recording, table: &str, column: &str) -> Vec<u128> {
    integers(recording.table(table).unwrap_or_else(|| panic!("there is {table}")), column)
}

fn total(recording: &Recording, table: &str, name: &str) -> u128 {
    column(recording, table, name).iter().sum()
}

fn models(plan: &Plan) -> (&BrowserPlan, &ExchangePlan) {
    let Traffic::Browsers(browsers) = &plan.classes[0].traffic else { panic!("browsers") };
    (&browsers.plan, &browsers.exchanges)
}

/// Checks a million draws. The share of small responses, and how the tail falls off, lie within
/// five standard errors of the published values.
#[test]
fn responses_of_the_stand_in_are_those_that_are_published() {
    let plan = plan(&scenario("1Gbit", "users = 1"));
    let (_, exchanges) = models(&plan);
    let n = 1_000_000u32;
    let draws = Stream::new(3, "response");
    let sizes: Vec<f64> =
        (0..n).map(|i| exchanges.response.draw(0, &mut draws.member(i.into())).get() as f64).collect();
    let n = f64::from(n);
    let small: Vec<f64> = sizes.iter().copied().filter(|&size| size <= 10_000.0).collect();
    let share = small.len() as f64 / n;
    assert!((share - 0.87).abs() < 5.0 * (0.87 * 0.13 / n).sqrt(), "{share} have at most 10 kB");
    // With a tail of index 1.26, the mean of the draws varies too much, so the mean of the table
    // is compared instead.
    let mean = exchanges.response.mean().get() as f64;
    let bytes = small.iter().sum::<f64>() / n / mean;
    assert!((bytes - 0.20).abs() < 0.002, "{bytes} of the bytes");
    // With an index of 1.26, objects above ten times a given size are 10^-1.26 times as frequent as
    // objects above that size.
    let [above, far_above] =
        [10_000.0, 100_000.0].map(|least| sizes.iter().filter(|&&size| size > least).count() as f64);
    let fewer = far_above / above;
    assert!((fewer - 0.05495).abs() < 5.0 * (0.055 / above).sqrt(), "{fewer}");
    assert!(sizes.iter().all(|&size| (1.0..=1e9).contains(&size)));
}

#[test]
fn half_of_the_objects_of_the_stand_in_share_their_connection() {
    let plan = plan(&scenario("1Gbit", "users = 1"));
    let (browsers, _) = models(&plan);
    let draws = Stream::new(4, "pages");
    let (mut connections, mut objects, mut shared) = (Vec::new(), 0u64, 0u64);
    let (mut all, mut several, mut pages) = (0u64, 0u64, BTreeMap::new());
    for user in 0..300_000u32 {
        let parallel = browsers.draw(user, 0, &draws.member(user.into()), &mut connections);
        *pages.entry(parallel).or_insert(0u32) += 1;
        all += connections.len() as u64;
        objects += u64::from(connections.iter().sum::<u32>());
        several += connections.iter().filter(|&&n| n > 1).count() as u64;
        shared += u64::from(connections.iter().filter(|&&n| n > 1).sum::<u32>());
    }
    let share = |of: u64, whole: u64| of as f64 / whole as f64;
    // In theory, a share of 0.5 of the objects use a connection with several objects; a share of
    // 0.1534 of the connections carry several objects, on average 5.52; and a page has 4.99 objects
    // (`tests/browsers.rs` of the traffic crate).
    assert!((share(shared, objects) - 0.5).abs() < 0.005, "{}", share(shared, objects));
    assert!((share(several, all) - 0.153).abs() < 0.003, "{}", share(several, all));
    assert!((share(shared, several) - 5.52).abs() < 0.06, "{}", share(shared, several));
    assert!((share(objects, 300_000) - 4.99).abs() < 0.04, "{}", share(objects, 300_000));
    assert_eq!(pages.into_keys().collect::<Vec<_>>(), [2, 3, 4]);
}

#[test]
fn users_of_the_stand_in_think_long_and_heavy_tailed() {
    let plan = plan(&scenario("1Gbit", "users = 1"));
    let (browsers, _) = models(&plan);
    let draws = Stream::new(5, "think");
    let n = 400_000u64;
    let mut think: Vec<f64> =
        (0..n).map(|i| browsers.think.draw(0, &mut draws.member(i)).as_secs_f64()).collect();
    let mean = think.iter().sum::<f64>() / n as f64;
    let variance = think.iter().map(|t| (t - mean) * (t - mean)).sum::<f64>() / n as f64;
    assert!((mean - 30.0).abs() < 5.0 * (variance / n as f64).sqrt(), "{mean} s");
    // With 4.99 objects per page, and about a second to fetch the page, there are 0.16 requests per
    // user per second.
    assert!((4.99 / (mean + 1.0) - 0.16).abs() < 0.003);
    think.sort_unstable_by(f64::total_cmp);
    let above = |t: f64| (n as usize - think.partition_point(|&x| x <= t)) as f64 / n as f64;
    // From 20 s to 100 s, a Pareto tail of index 1.4 thins by a factor of 5^1.4 = 9.5, and an
    // exponential tail with this mean by a factor of 14.4.
    let ratio = above(20.0) / above(100.0);
    assert!((9.0..11.5).contains(&ratio), "{ratio}");
    assert!(think.last().is_some_and(|&longest| longest <= 600.0));
}

/// Returns settings for a page that is always the same and has small objects.
fn small(more: &str) -> String {
    format!(
        r#"
        users = 3
        response = "1kB"
        think = "1s"
        embedded = 5
        servers = 1
        tcp = {{ initial_window = 10 }}
        {more}
        "#
    )
}

/// Round trips of a page of six objects: two for an object that opens a connection, one for any other.
#[test]
fn a_page_takes_two_round_trips_for_each_connection_in_a_row_and_one_more_for_each_object_that_follows() {
    for (more, round_trips, delayed) in [
        ("persistent = 0.0\nparallel = 1", 12, 0),
        ("persistent = 0.0\nparallel = 2", 2 + 6, 0),
        ("persistent = 0.0\nparallel = 4", 2 + 4, 0),
        ("persistent = 0.0\nparallel = 100", 2 + 2, 0),
        ("persistent = 1.0\nparallel = 4", 7, 0),
        // The first connection continues with two objects, and another opens for the other three.
        ("persistent = 1.0\nper_persistent = 3\nparallel = 2", 2 + 4, 0),
        ("persistent = 1.0\nper_persistent = 3\nparallel = 1", 4 + 4, 0),
        ("persistent = 1.0\nparallel = 4\nserver_delay = \"7ms\"", 7, 6),
    ] {
        let recording = record(&scenario("100Gbit", &small(more)), 5);
        let times = column(&recording, "page_sample", "page_time_ns");
        let expected = (round_trips * RTT_MS + 7 * delayed) * 1_000_000;
        assert!(times.iter().all(|time| time.abs_diff(expected) < TOLERANCE_NS), "{more}: {times:?}");
        // Users are closed loops: each fetches a page, thinks for a second, and fetches the next page.
        let cycle = expected + 1_000_000_000;
        let pages = 3 * (60_000_000_000u128).div_ceil(cycle);
        let [completed, censored] =
            ["completed", "censored"].map(|how| total(&recording, "page_summary", how));
        assert_eq!(completed + censored, pages, "{more}");
        assert_eq!(total(&recording, "page_summary", "page_bytes"), 6000 * completed);
        let objects = total(&recording, "request_summary", "completed");
        assert!((6 * completed..=6 * pages).contains(&objects));
    }
}

#[test]
fn no_two_exchanges_have_one_name_and_first_ones_open_their_connections() {
    let recording = record(&scenario("100Gbit", "users = 40\nthink = { exponential = \"1s\" }"), 2);
    let of: Vec<_> = ["user", "serial", "exchange", "opens_connection"]
        .map(|name| column(&recording, "request_sample", name))
        .into();
    let names: BTreeSet<_> = (0..of[0].len()).map(|i| (of[0][i], of[1][i], of[2][i])).collect();
    assert_eq!(names.len(), of[0].len());
    assert!(names.len() > 5000, "{}", names.len());
    assert!((0..of[0].len()).all(|i| (of[2][i] == 0) == (of[3][i] == 1)));
}

#[test]
fn connections_of_one_user_have_round_trip_times_of_their_own() {
    let text = small("persistent = 0.0\nparallel = 1").replace("users = 3", "users = 1")
        + "access_rate = \"100Gbit\"\nrtt = { uniform = [\"100ms\", \"200ms\"] }\n";
    let recording = record(&scenario("100Gbit", &text).replacen("access_rate = \"none\"", "", 1), 5);
    let times = column(&recording, "request_sample", "response_time_ns");
    assert!(times.len() > 100, "{}", times.len());
    let distinct: BTreeSet<_> = times.iter().map(|time| time / 1_000_000).collect();
    assert!(distinct.len() > times.len() / 2, "{} of {}", distinct.len(), times.len());
    assert!(times.iter().all(|time| (200_000_000..401_000_000).contains(time)));
}

/// Under congestion, users wait and therefore request less: there is no request without a waiting
/// user, and requests do not accumulate.
#[test]
fn under_congestion_users_slow_down() {
    let users = "users = 200\nthink = { exponential = \"1s\" }\nresponse = \"10kB\"\nparallel = 2";
    let [idle, full] = ["10Gbit", "2Mbit"].map(|rate| record(&scenario(rate, users), 1));
    let [idle, full] = [idle, full].map(|recording| {
        let of = |how| total(&recording, "request_summary", how);
        (of("completed"), of("failed"), of("censored"))
    });
    assert!(idle.0 > 20_000, "{idle:?}");
    // Two megabits per second carry at most 25 responses per second.
    assert!((1000..1500).contains(&full.0), "{full:?}");
    assert!(full.2 <= 200 * 2, "{full:?}: two connections per user");
}
