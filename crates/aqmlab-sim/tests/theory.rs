//! The simulator compared with queueing theory. The Pollaczek-Khinchine formula and Little's law predict the
//! results.
mod support;

use support::{T_99_19, interval, record, summary};

const RATE_BPS: f64 = 10e6;
const SECONDS: f64 = 400.0;

fn queue(size: &str, load: f64) -> String {
    format!(
        r#"
        duration = "420s"
        warmup = "20s"
        [topology]
        kind = "dumbbell"
        rate = "10Mbit"
        delay = "1ms"
        access_rate = "none"
        queue = {{ kind = "droptail", limit = "1000000p" }}
        [[traffic]]
        name = "udp"
        kind = "poisson"
        rate = "{}kbit"
        size = {size}
        [record]
        queues = "0s"
        flows = "0s"
        "#,
        (load * RATE_BPS / 1000.0) as u64
    )
}

/// Mean wait and mean number waiting, each as a 99 % interval over 20 seeds.
fn measure(size: &str, load: f64) -> [(f64, f64); 2] {
    let (mut waits, mut waiting) = (Vec::new(), Vec::new());
    for seed in 1..=20 {
        let r = record(&queue(size, load), seed);
        let sum = summary(&r, "bottleneck", "*", "sojourn_sum_ns") as f64;
        waits.push(sum / summary(&r, "bottleneck", "*", "sojourn_count") as f64 / 1e9);
        let integral = summary(&r, "bottleneck", "*", "backlog_packets_integral_ns") as f64;
        waiting.push(integral / 1e9 / SECONDS);
    }
    [interval(&waits, T_99_19), interval(&waiting, T_99_19)]
}

/// The Pollaczek-Khinchine mean wait: `lambda E[S^2] / (2 (1 - rho))`, from the first two moments of the
/// packet size in bytes.
fn pollaczek_khinchine(lambda: f64, mean: f64, second: f64) -> f64 {
    let byte_s = 8.0 / RATE_BPS;
    lambda * second * byte_s * byte_s / (2.0 * (1.0 - lambda * mean * byte_s))
}

fn assert_inside(name: &str, (mean, half_width): (f64, f64), exact: f64) {
    println!("{name}: {mean:.6e} +- {half_width:.1e}, exact {exact:.6e}");
    assert!((mean - exact).abs() <= half_width, "{name}: {mean} +- {half_width} misses {exact}");
    assert!(half_width < 0.05 * exact, "{name}: the interval says little: {half_width} of {exact}");
}

#[test]
fn m_d_1() {
    let load = 0.8;
    let lambda = load * RATE_BPS / 8000.0;
    let exact = pollaczek_khinchine(lambda, 1000.0, 1e6);
    let [wait, waiting] = measure("\"1000B\"", load);
    assert_inside("M/D/1 wait", wait, exact);
    assert_inside("M/D/1 waiting", waiting, lambda * exact);
}

#[test]
fn m_m_1() {
    let load = 0.7;
    // Sizes are whole bytes, rounded up: geometric with success 1 - exp(-1/1000).
    let q = -libm::expm1(-1.0 / 1000.0);
    let (mean, second) = (1.0 / q, (2.0 - q) / (q * q));
    let lambda = load * RATE_BPS / 8000.0;
    let exact = pollaczek_khinchine(lambda, mean, second);
    let [wait, waiting] = measure("{ exponential = \"1000B\" }", load);
    assert_inside("M/M/1 wait", wait, exact);
    assert_inside("M/M/1 waiting", waiting, lambda * exact);
    // And M/M/1 proper, which the rounding to bytes moves by a thousandth: W = rho / (mu - lambda).
    let mu = RATE_BPS / 8000.0;
    assert!((exact / (load / (mu - lambda)) - 1.0).abs() < 0.003);
}

/// Little's law without any statistics: over a busy period that ends empty, the time integral of the
/// number waiting is exactly the sum of the waits.
#[test]
fn littles_law_to_the_nanosecond() {
    for kind in ["droptail", "red", "ared"] {
        let text = queue("{ exponential = \"700B\" }", 0.95)
            .replace("warmup = \"20s\"", "")
            .replace("420s", "60s")
            .replace(
                "kind = \"droptail\", limit = \"1000000p\"",
                &format!("kind = \"{kind}\", limit = \"100p\""),
            )
            .replace("rate = \"9500kbit\"", "rate = \"9500kbit\"\nstop = \"50s\"");
        let r = record(&text, 3);
        assert_eq!(summary(&r, "bottleneck", "*", "final_in_system_packets"), 0, "{kind}: the queue drains");
        let integral = summary(&r, "bottleneck", "*", "backlog_packets_integral_ns");
        assert!(integral > 0);
        // Dropped arrivals never wait in a queue that drops at the tail, so both sides are of the same packets.
        assert_eq!(integral, summary(&r, "bottleneck", "*", "sojourn_sum_ns"), "{kind}");
    }
}
