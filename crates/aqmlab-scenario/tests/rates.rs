//! Rates that change: files as they are written elsewhere, and the courses of generators against their theory.

use std::io;

use aqmlab_scenario::{ChangingRate, Experiment, Files, Limits, Plan, parse_within};
use aqmlab_units::{Instant, Rate};

/// One file, whatever its name.
struct One(&'static [u8]);

impl Files for One {
    fn read(&self, _path: &str) -> io::Result<Vec<u8>> {
        Ok(self.0.to_vec())
    }
}

fn read(rate: &str, content: &'static [u8]) -> Experiment {
    let text = format!(
        "duration = \"60s\"\n[topology]\nkind = \"dumbbell\"\nrate = {rate}\ndelay = \"10ms\"\nreverse_rate = \"100Mbit\"\n\
         [[traffic]]\nkind = \"bulk\"\nrtt = \"40ms\"\n"
    );
    parse_within(&text, "t", Limits::default(), &One(content)).unwrap_or_else(|e| panic!("{e}"))
}

fn plan(rate: &str) -> Plan {
    read(rate, b"").arms.remove(0)
}

fn changes(plan: &Plan) -> &ChangingRate {
    plan.links[0].changes.as_ref().expect("the rate changes")
}

/// The first levels as (ms, Mbit/s).
fn levels(plan: &Plan, count: usize) -> Vec<(f64, f64)> {
    let shown = |(at, rate): (Instant, Rate)| (at.as_secs_f64() * 1e3, rate.as_bps() as f64 / 1e6);
    changes(plan).levels("bottleneck", 1).take(count).map(shown).collect()
}

#[test]
fn files_may_have_a_byte_order_mark_and_either_end_of_line() {
    let one = b"time_s,rate_mbps\n100,8\n101.5,0\n102,2.5\n";
    let other = b"\xef\xbb\xbf# measured\r\ntime_s , rate_mbps\r\n100,8\r\n101.5,0\r\n102,2.5\r\n";
    let expected = [(0.0, 8.0), (1500.0, 0.0), (2000.0, 2.5), (2500.0, 8.0), (4000.0, 0.0)];
    for content in [&one[..], &other[..]] {
        let plan = read("{ kind = \"file\", file = \"x.csv\", at_end = \"repeat\" }", content).arms.remove(0);
        assert_eq!(levels(&plan, 5), expected);
        // 1.5 s at 8 and 0.5 s at 2.5 Mbit/s in 2.5 s.
        assert_eq!(plan.links[0].rate, Rate::bps(5_300_000));
    }
    for content in [&b"1\n1\n3\n"[..], b"\xef\xbb\xbf1\r\n1\r\n3\r\n", b"1\n1\n3"] {
        let plan =
            read("{ kind = \"mahimahi\", file = \"x.down\", at_end = \"repeat\" }", content).arms.remove(0);
        let chances = changes(&plan).chances("bottleneck", 1).take(7);
        assert_eq!(chances.map(|at| at.as_ns() / 1_000_000).collect::<Vec<_>>(), [1, 1, 3, 4, 4, 6, 7]);
        assert_eq!(plan.links[0].rate, Rate::mbit(12));
    }
}

#[test]
fn a_file_shorter_than_the_run_is_repeated_or_held_and_that_is_said() {
    let content = b"time_s,rate_mbps\n0,8\n1,2\n";
    let silent = read("{ kind = \"file\", file = \"x.csv\" }", content);
    assert!(
        silent.warnings.iter().any(|w| w.contains("lasts 2s, less than the run of 60s")),
        "{:?}",
        silent.warnings
    );
    for (word, mean, third) in [("repeat", 5_000_000, Some(8.0)), ("hold", 2_100_000, None)] {
        let said = read(&format!("{{ kind = \"file\", file = \"x.csv\", at_end = \"{word}\" }}"), content);
        assert!(said.warnings.is_empty(), "{:?}", said.warnings);
        assert_eq!(said.arms[0].links[0].rate, Rate::bps(mean));
        assert_eq!(levels(&said.arms[0], 3).get(2).map(|level| level.1), third);
    }
}

#[test]
fn chances_in_microseconds_are_suspicious() {
    let content = b"1000\n2000\n3000\n";
    let warnings = read("{ kind = \"mahimahi\", file = \"x.down\" }", content).warnings;
    assert!(
        warnings.iter().any(|w| w.contains("amount to 12kbit over 3s") && w.contains("would be 12Mbit")),
        "{warnings:?}"
    );
}

#[test]
fn a_rate_beyond_the_access_links_is_told() {
    let of = |rate: &str, access: &str| {
        let text = format!(
            "duration = \"20s\"\n[topology]\nkind = \"dumbbell\"\nrate = {rate}\ndelay = \"10ms\"\naccess_rate = \"{access}\"\n\
             [[traffic]]\nkind = \"bulk\"\ncount = 2\nrtt = \"40ms\"\n"
        );
        let read = aqmlab_scenario::parse(&text, "t").unwrap_or_else(|e| panic!("{e}"));
        read.warnings.iter().any(|w| w.contains("reaches `90Mbit`") && w.contains("only `80Mbit`"))
    };
    let steps = "[[\"0s\", \"10Mbit\"], [\"5s\", \"90Mbit\"], [\"6s\", \"10Mbit\"]]";
    assert!(of(steps, "40Mbit"));
    assert!(!of(steps, "45Mbit") && !of("\"90Mbit\"", "40Mbit"));
}

/// A serving link has in each bin the chances that lie in it or end it, and all of them over the file.
#[test]
fn bins_keep_the_sum_of_chances() {
    let content = b"1\n10\n11\n20\n25\n25\n";
    let rate =
        "{ kind = \"mahimahi\", file = \"x.down\", at_end = \"hold\", clock = \"serving\", bin = \"10ms\" }";
    let plan = read(rate, content).arms.remove(0);
    // Two, two and two chances of 12 kbit, in 10, 10 and 5 ms; then nothing.
    assert_eq!(levels(&plan, 9), [(0.0, 2.4), (10.0, 2.4), (20.0, 4.8), (25.0, 0.0)]);
}

#[test]
fn the_digest_depends_on_the_contents_of_a_file_and_on_nothing_without_one() {
    let rate = "{ kind = \"file\", file = \"x.csv\", at_end = \"hold\" }";
    let of = |content| read(rate, content).arms.remove(0).digest();
    assert_ne!(of(b"time_s,rate_mbps\n0,8\n"), of(b"time_s,rate_mbps\n0,9\n"));
    let constant = plan("\"8Mbit\"");
    assert!(!serde_json::to_string(&constant).expect("a plan is data").contains("changes"));
    assert!(!constant.parts().contains_key("scenario.rates"));
    assert!(plan("[[\"0s\", \"8Mbit\"]]").parts().contains_key("scenario.rates"));
}

/// The time at each rate, up to the last level, in seconds by rate.
fn shares(plan: &Plan, count: usize) -> Vec<(u64, f64)> {
    let levels: Vec<(Instant, Rate)> = changes(plan).levels("bottleneck", 3).take(count).collect();
    let mut shares: Vec<(u64, f64)> = Vec::new();
    for pair in levels.windows(2) {
        assert!(pair[0].0 < pair[1].0, "levels are at later and later instants");
        let time = (pair[1].0 - pair[0].0).as_secs_f64();
        match shares.iter_mut().find(|(rate, _)| *rate == pair[0].1.as_bps()) {
            Some(share) => share.1 += time,
            None => shares.push((pair[0].1.as_bps(), time)),
        }
    }
    shares.sort_by_key(|share| share.0);
    shares
}

/// An alternating renewal process is up for E(up) / (E(up) + E(down)) of the time.
#[test]
fn outages_have_the_shares_of_a_renewal_process() {
    let rate = "{ kind = \"outages\", rate = \"6Mbit\", up = { exponential = \"300ms\" }, down = { uniform = [\"50ms\", \"150ms\"] } }";
    let plan = plan(rate);
    let count = 40_001;
    let shares = shares(&plan, count);
    let periods = (count / 2) as f64;
    assert_eq!(shares.iter().map(|share| share.0).collect::<Vec<_>>(), [0, 6_000_000]);
    // Five standard deviations of the mean: 29 ms for the uniform time, 300 ms for the exponential one.
    assert!((shares[0].1 / periods - 0.1).abs() < 5.0 * 0.029 / periods.sqrt(), "{shares:?}");
    assert!((shares[1].1 / periods - 0.3).abs() < 5.0 * 0.3 / periods.sqrt(), "{shares:?}");
    assert_eq!(plan.links[0].rate, Rate::bps(4_500_000));
}

/// A chain that leaves every level at the same rate, for any other level, is at each level for the same time.
#[test]
fn a_markov_chain_is_at_each_level_for_the_same_time_and_never_stays() {
    let plan = plan("{ kind = \"markov\", levels = [\"1Mbit\", \"2Mbit\", \"9Mbit\"], stay = \"100ms\" }");
    let levels: Vec<(Instant, Rate)> = changes(&plan).levels("bottleneck", 3).take(30_001).collect();
    assert!(levels.windows(2).all(|pair| pair[0].1 != pair[1].1));
    let shares = shares(&plan, 30_001);
    // 10,000 stays at each level, of 100 ms on average; the numbers of visits vary less than independent draws would.
    for (rate, time) in &shares {
        assert!((time - 1000.0).abs() < 5.0 * 0.1 * (2.0 * 10_000f64).sqrt(), "{rate}: {time}");
    }
    assert_eq!(plan.links[0].rate, Rate::mbit(4));
}

#[test]
fn levels_are_redrawn_at_their_instants() {
    let plan = plan("{ kind = \"redrawn\", level = { uniform = [\"2Mbit\", \"10Mbit\"] }, first = \"12s\" }");
    let found = levels(&plan, 20_000);
    assert_eq!(
        found[..4].iter().map(|level| level.0).collect::<Vec<_>>(),
        [0.0, 12_000.0, 27_000.0, 42_000.0]
    );
    let mean = found.iter().map(|level| level.1).sum::<f64>() / found.len() as f64;
    assert!((mean - 6.0).abs() < 5.0 * 8.0 / 12f64.sqrt() / (found.len() as f64).sqrt(), "{mean}");
    assert!(found.iter().all(|level| (2.0..=10.0).contains(&level.1)));
    assert_eq!(plan.links[0].rate, Rate::mbit(6));
}

/// The logarithm of the rate is normal with the given deviation, its correlation is exp(-t / coherence), and the mean
/// of the rate is the given one.
#[test]
fn fading_has_its_mean_its_deviation_and_its_coherence() {
    let plan = plan(
        "{ kind = \"fading\", mean = \"20Mbit\", deviation_db = 3, coherence = \"100ms\", step = \"50ms\" }",
    );
    let n = 200_000;
    let found = levels(&plan, n);
    assert!((found[1].0 - 50.0).abs() < 1e-9);
    let mean = found.iter().map(|level| level.1).sum::<f64>() / n as f64;
    let db: Vec<f64> = found.iter().map(|level| 10.0 * level.1.log10()).collect();
    let middle = db.iter().sum::<f64>() / n as f64;
    let covariance = |lag: usize| {
        let products = db.iter().zip(&db[lag..]).map(|(a, b)| (a - middle) * (b - middle));
        products.sum::<f64>() / (n - lag) as f64
    };
    // Sums of a process with correlation r have (1 + r) / (1 - r) times the variance of independent ones, here 4.1.
    let error = 5.0 * (4.1 / n as f64).sqrt();
    assert!(
        (middle - (10.0 * 20f64.log10() - 9.0 * std::f64::consts::LN_10 / 20.0)).abs() < 3.0 * error,
        "{middle}"
    );
    assert!((covariance(0).sqrt() - 3.0).abs() < 3.0 * error, "{}", covariance(0));
    for (lag, expected) in [(1, -0.5f64), (2, -1.0), (6, -3.0)] {
        let correlation = covariance(lag) / covariance(0);
        assert!((correlation - libm::exp(expected)).abs() < 2.0 * error, "{lag}: {correlation}");
    }
    // The standard deviation of a rate is 78 % of its mean.
    assert!((mean / 20.0 - 1.0).abs() < 0.8 * error, "{mean}");
    assert_eq!(plan.links[0].rate, Rate::mbit(20));
}

#[test]
fn stalls_come_at_their_instants() {
    let plan = plan(
        "{ kind = \"stalls\", rate = \"10Mbit\", every = \"100ms\", lasts = \"20ms\", first = \"30ms\" }",
    );
    assert_eq!(levels(&plan, 5), [(0.0, 10.0), (30.0, 0.0), (50.0, 10.0), (130.0, 0.0), (150.0, 10.0)]);
    assert_eq!(plan.links[0].rate, Rate::mbit(8));
}

#[test]
fn automatic_parameters_and_bandwidth_delay_products_use_the_mean() {
    let buffer = |rate: &str| {
        let text = format!(
            "duration = \"20s\"\n[topology]\nkind = \"dumbbell\"\nrate = {rate}\ndelay = \"10ms\"\n\
             queue = {{ kind = \"droptail\", limit = \"1bdp\" }}\n[[traffic]]\nkind = \"bulk\"\nrtt = \"40ms\"\n"
        );
        let plan = aqmlab_scenario::parse(&text, "t").unwrap_or_else(|e| panic!("{e}")).arms.remove(0);
        (plan.links[0].queue.get("limit").map(ToString::to_string), plan.classes[0].access.clone())
    };
    assert_eq!(buffer("[[\"0s\", \"12Mbit\"], [\"15s\", \"4Mbit\"]]"), buffer("\"10Mbit\""));
}
