//! The simulator compared with theory. The Pollaczek-Khinchine formula and Little's law predict the
//! results for queues; the closed form by DCTCP's authors predicts the results for DCTCP.
mod support;

use aqmlab_traffic::exponential_scale;
use aqmlab_units::Bytes;
use support::{T_99_19, flows, integers, interval, names, record, summary};

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

/// The mean wait and the mean number of packets waiting, each as a 99 % interval over 20 seeds.
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
    assert!(half_width < 0.05 * exact, "{name}: the interval is too wide: {half_width} of {exact}");
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
    // Sizes are exponential with mean s, but at least a and at most b bytes: by integration by parts, their
    // second moment is a^2 + 2 s ((a + s) exp(-a/s) - (b + s) exp(-b/s)).
    let s = exponential_scale(Bytes::new(1000)).expect("datagrams can have this mean");
    let (a, b) = (28.0, 65_535.0);
    let second = a * a + 2.0 * s * ((a + s) * libm::exp(-a / s) - (b + s) * libm::exp(-b / s));
    let lambda = load * RATE_BPS / 8000.0;
    let exact = pollaczek_khinchine(lambda, 1000.0, second);
    let [wait, waiting] = measure("{ exponential = \"1000B\" }", load);
    assert_inside("M/M/1 wait", wait, exact);
    assert_inside("M/M/1 waiting", waiting, lambda * exact);
    // M/M/1 itself, W = rho / (mu - lambda), is checked as well; the smallest datagram changes it by a
    // thousandth.
    let mu = RATE_BPS / 8000.0;
    assert!((exact / (load / (mu - lambda)) - 1.0).abs() < 0.003);
}

/// Little's law without any statistics: over a busy period, after which the queue is empty, the
/// time integral of the number waiting is exactly the sum of the waits.
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
        // In a queue that drops at the tail, dropped arrivals never wait, so both sides refer to
        // the same packets.
        assert_eq!(integral, summary(&r, "bottleneck", "*", "sojourn_sum_ns"), "{kind}");
    }
}

/// Synchronised DCTCP flows through a queue that marks packets if at least K packets wait: M.
/// Alizadeh, A. Greenberg et al., "Data Center TCP (DCTCP)", SIGCOMM 2010, section 3.3. All
/// quantities are in packets and round trips.
struct Sawtooth {
    flows: f64,
    /// C RTT, with the packet in transmission included.
    pipe: f64,
    threshold: f64,
    /// The number of round trips, after each reduction, in which windows do not grow. The paper
    /// assumes none. According to RFC 3168, 6.1.2, and RFC 8257, acknowledgments with an echo do
    /// not open the window, and each packet of the previous round trip has been marked.
    silent: f64,
}

impl Sawtooth {
    /// W*: the window at which the queue reaches K.
    fn window(&self) -> f64 {
        (self.pipe + self.threshold) / self.flows
    }

    /// The share of packets that are marked: those of the round trip from W* to W* + 1, divided by
    /// all packets of a period (if `silent` is 0, this is equation 6: alpha^2 (1 - alpha / 4) = (2
    /// W* + 1) / (W* + 1)^2).
    fn alpha(&self) -> f64 {
        let top = self.window() + 1.0;
        let sum = |from: f64, to: f64| (to * to - from * from) / 2.0;
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..60 {
            let alpha = (low + high) / 2.0;
            let bottom = top * (1.0 - alpha / 2.0);
            let all = sum(bottom, top) + self.silent * bottom;
            if alpha * all < sum(top - 1.0, top) { low = alpha } else { high = alpha }
        }
        low
    }

    /// The amplitude of a window's oscillation, (W* + 1) alpha / 2. This is also the number of
    /// round trips for which the window grows (equation 9).
    fn swing(&self) -> f64 {
        (self.window() + 1.0) * self.alpha() / 2.0
    }

    fn period(&self) -> f64 {
        self.swing() + self.silent
    }

    /// Equation 10: K + N.
    fn highest(&self) -> f64 {
        self.threshold + self.flows
    }

    /// Equations 7, 8 and 12.
    fn lowest(&self) -> f64 {
        self.highest() - self.flows * self.swing()
    }
}

const DCTCP_SECONDS: f64 = 25.0;
/// The gain g. It is so small that alpha hardly changes within a period, as the paper assumes (equation 15).
const GAIN: f64 = 1.0 / 256.0;
/// The transmission time of a packet of 1500 B, and a round trip without queueing, in seconds.
const PACKET: f64 = 1500.0 * 8.0 / 100e6;
const ROUND_TRIP: f64 = 10e-3 + PACKET;

/// The figures of a run.
struct Swing {
    marked: f64,
    lowest: f64,
    highest: f64,
    period: f64,
    utilisation: f64,
}

fn swing(count: u32, threshold: u32) -> Swing {
    let r = record(
        &format!(
            r#"
            duration = "60s"
            warmup = "35s"
            [topology]
            kind = "dumbbell"
            rate = "100Mbit"
            delay = "1ms"
            access_rate = "10Gbit"
            queue = {{ kind = "red", preset = "linux", limit = "3000000B", min_th = "{bytes}B", max_th = "{bytes}B",
                       mean_packet = "1500B", w_q = 1.0, ecn = true }}
            [[traffic]]
            name = "dctcp"
            kind = "bulk"
            count = {count}
            rtt = "10ms"
            start = "0s"
            tcp = {{ congestion = "dctcp", ecn = true, ack_every = 1, ecn_at_one = "keep", dctcp_gain = {GAIN} }}
            [record]
            queues = "1ms"
            flows = "0s"
            "#,
            bytes = threshold * 1500,
        ),
        1,
    );
    let get = |column: &str| summary(&r, "bottleneck", "*", column) as f64;
    let table = r.table("queues").expect("every recording has samples");
    let samples = integers(table, "t_ns").into_iter().zip(names(table, "queue"));
    let mut waiting: Vec<u128> = integers(table, "backlog_packets")
        .into_iter()
        .zip(samples)
        .filter(|(_, (at, queue))| *at > 35_000_000_000 && queue == "bottleneck")
        .map(|(waiting, _)| waiting)
        .collect();
    waiting.sort_unstable();
    let quantile = |share: f64| waiting[(share * (waiting.len() - 1) as f64) as usize] as f64;
    let mean = get("backlog_packets_integral_ns") / 1e9 / DCTCP_SECONDS;
    let reductions: u128 = flows(&r, "dctcp", "measured_ecn_reductions").iter().sum();
    let round_trip = ROUND_TRIP + mean * PACKET;
    Swing {
        marked: (get("marked_early_packets") + get("marked_forced_packets")) / get("arrivals_packets"),
        lowest: quantile(0.01),
        highest: quantile(0.99),
        period: DCTCP_SECONDS * f64::from(count) / reductions as f64 / round_trip,
        utilisation: get("departures_packets") * PACKET / DCTCP_SECONDS,
    }
}

fn theory(count: u32, threshold: u32, silent: f64) -> Sawtooth {
    let (flows, threshold) = (f64::from(count), f64::from(threshold));
    Sawtooth { flows, pipe: ROUND_TRIP / PACKET, threshold, silent }
}

/// The closed form that includes the round trip without window growth must agree with the run,
/// apart from two effects that it leaves out. First, a window is a whole number of segments, so
/// each flow's window may be off by up to one (which changes the queue by one per flow, the share
/// of marks by one part in W*, and the period by half a round trip). Second, alpha changes by g in
/// each round trip of the period. The paper's own form must agree with the run, apart from the one
/// round trip per period that it leaves out.
#[test]
fn dctcp_swings_as_its_authors_say() {
    for count in [1, 2, 4] {
        let (run, law, paper) = (swing(count, 40), theory(count, 40, 1.0), theory(count, 40, 0.0));
        println!(
            "{count}: marked {:.4}, {:.4} ({:.4}); queue {} to {}, {:.2} to {} ({:.2}); period {:.2}, {:.2} ({:.2})",
            run.marked,
            law.alpha(),
            paper.alpha(),
            run.lowest,
            run.highest,
            law.lowest(),
            law.highest(),
            paper.lowest(),
            run.period,
            law.period(),
            paper.period(),
        );
        let near = |what: &str, measured: f64, expected: f64, most: f64| {
            assert!(
                (measured - expected).abs() <= most,
                "{count} flows, {what}: {measured}, not {expected} +- {most}"
            );
        };
        near("the highest queue", run.highest, law.highest(), 1.0);
        near("the lowest queue", run.lowest, law.lowest(), law.flows);
        near("the lowest queue of the paper", run.lowest, paper.lowest(), law.flows);
        near("marks", run.marked / law.alpha(), 1.0, GAIN * law.period() + 1.0 / law.window());
        near("the paper's marks", run.marked / paper.alpha(), 1.0, 1.0 / paper.period());
        near("the period", run.period, law.period(), 0.5);
        near("the paper's period", run.period, paper.period(), 1.0);
        assert!(run.utilisation > 0.9999, "{count} flows: {}", run.utilisation);
    }
}

/// Section 3.4: the link becomes idle if K + N is less than the swing of the queue, but not if K is
/// above a seventh of C RTT.
#[test]
fn dctcp_fills_the_link_from_the_threshold_on_that_its_authors_compute() {
    let (low, enough) = (3, 20);
    let seventh = ROUND_TRIP / PACKET / 7.0;
    assert!(theory(1, low, 1.0).lowest() < -1.0 && f64::from(low) < seventh && seventh < f64::from(enough));
    let (starved, full) = (swing(1, low), swing(1, enough));
    println!("K {low}: {:.4} of the link; K {enough}: {:.4}", starved.utilisation, full.utilisation);
    assert!(starved.lowest == 0.0 && starved.utilisation < 0.995, "{}", starved.utilisation);
    assert!(full.lowest > 0.0 && full.utilisation > 0.9999, "{}", full.utilisation);
}
