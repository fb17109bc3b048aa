//! PackMime-HTTP compared with ns-2.35's own generator (`vectors/ns2-packmime`): quantiles and the
//! correlation of successive values, over several seeds of each program.

use std::collections::BTreeMap;
use std::path::PathBuf;

use aqmlab_random::Stream;
use aqmlab_traffic::packmime::{PackMime, PausesOf};

const VARIABLES: [&str; 6] = ["gap", "request", "response", "client_delay", "server_delay", "server_time"];
const QUANTILES: [f64; 8] = [0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999];
const SEEDS: u64 = 6;
const DRAWS: usize = 100_000;

/// For each rate, variable and column, one value per seed.
type Figures = BTreeMap<(u32, usize, usize), Vec<f64>>;

fn of_ns2() -> Figures {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../vectors/ns2-packmime/draws.csv");
    let text = std::fs::read_to_string(path).expect("the vectors are there");
    let mut figures = Figures::new();
    for line in text.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let rate = fields[0].parse().expect("a rate");
        let variable = VARIABLES.iter().position(|&name| name == fields[2]).expect("a variable");
        for (column, value) in fields[3..].iter().enumerate() {
            figures.entry((rate, variable, column)).or_default().push(value.parse().expect("a number"));
        }
    }
    figures
}

fn ours(rate: u32) -> Figures {
    let mut figures = Figures::new();
    for seed in 1..=SEEDS {
        let mut cloud = PackMime::new(f64::from(rate), PausesOf::Cloud, &Stream::new(seed, "traffic/web"));
        let mut values = VARIABLES.map(|_| Vec::with_capacity(DRAWS));
        for _ in 0..DRAWS {
            let mut opened = cloud.open();
            let exchange = opened.connection.exchanges.next().expect("a connection has an exchange");
            let of_one = [
                opened.gap.as_secs_f64(),
                exchange.request as f64,
                exchange.response as f64,
                opened.connection.client_delay.as_secs_f64() * 1e3,
                opened.connection.server_delay.as_secs_f64() * 1e3,
                exchange.server_delay.as_secs_f64(),
            ];
            values.iter_mut().zip(of_one).for_each(|(values, value)| values.push(value));
        }
        for (variable, mut values) in values.into_iter().enumerate() {
            let lag1 = lag1(&values);
            values.sort_by(f64::total_cmp);
            let quantiles = QUANTILES.map(|q| values[(q * DRAWS as f64) as usize]);
            for (column, value) in quantiles.into_iter().chain([lag1]).enumerate() {
                figures.entry((rate, variable, column)).or_default().push(value);
            }
        }
    }
    figures
}

/// The correlation between the logarithms of successive values.
fn lag1(values: &[f64]) -> f64 {
    // Times are whole nanoseconds, so the shortest gaps are zero.
    let logs: Vec<f64> = values.iter().map(|&v| libm::log(v.max(1e-9))).collect();
    let mean = logs.iter().sum::<f64>() / logs.len() as f64;
    let variance: f64 = logs.iter().map(|x| (x - mean) * (x - mean)).sum();
    logs.windows(2).map(|w| (w[0] - mean) * (w[1] - mean)).sum::<f64>() / variance
}

/// The mean, and the square of its standard error.
fn mean_of(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (mean, values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1.0) / n)
}

#[test]
fn quantiles_and_correlations_are_those_of_ns2() {
    let theirs = of_ns2();
    let mut compared = 0;
    for rate in [5, 27, 100] {
        for (key @ (_, variable, column), values) in ours(rate) {
            let ((a, a_error), (b, b_error)) = (mean_of(&values), mean_of(&theirs[&key]));
            // ns-2 prints six digits, and truncates sizes to whole bytes, as we do.
            let rounding = if column == QUANTILES.len() { 0.01 } else { 2e-3 * b };
            let within = 4.0 * libm::sqrt(a_error + b_error) + rounding;
            assert!(
                (a - b).abs() <= within,
                "{} at {rate}/s, column {column}: {a} against {b}, ± {within}",
                VARIABLES[variable]
            );
            compared += 1;
        }
    }
    assert_eq!(compared, 3 * 6 * 9);
}
