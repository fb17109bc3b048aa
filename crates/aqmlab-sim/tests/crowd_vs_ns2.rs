//! A crowd of flows on a dumbbell, compared with ns-2.35: the same flows (the base RTT and start
//! time of each, by seed), the same queue, and 100 seconds of measurement. `vectors/ns2-crowd`
//! contains the results of ns-2.
//!
//! For DropTail and RED (gentle) with 10 and 50 NewReno flows, the 90 % interval for the ratio of
//! our value to ns-2's must lie within 0.97 to 1.03 for goodput, and within 0.85 to 1.15 for drop
//! percentage and mean queue. Jain's index and the timeouts per flow are printed next to ns-2's.
//! For 50 NewReno flows with ECN that compete with 50 SACK flows without ECN, and the other way
//! round, the interval for the share of each half must lie within 0.9 to 1.1.
mod support;

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use aqmlab_recording::Recording;
use aqmlab_sim::{Control, run};
use support::{flows, plan, summary};

const MEASURED_S: f64 = 100.0;

/// The largest number of ns-2's seeds to run: `AQMLAB_CROWD_SEEDS` if it is set, otherwise `few`.
fn seeds(few: usize) -> usize {
    std::env::var("AQMLAB_CROWD_SEEDS").map_or(few, |n| n.parse().expect("AQMLAB_CROWD_SEEDS is a number"))
}

/// The 95 % quantile of Student's t (for a two-sided 90 % interval) with `n - 1` degrees of
/// freedom, from the expansion in Abramowitz and Stegun 26.7.5. It is accurate to four digits with
/// at least 20 degrees of freedom, and to 0.5 % with at least 5.
fn t_90(n: f64) -> f64 {
    let (x, v): (f64, f64) = (1.644_854, n - 1.0);
    let (g1, g2) = ((x.powi(3) + x) / 4.0, (5.0 * x.powi(5) + 16.0 * x.powi(3) + 3.0 * x) / 96.0);
    x + g1 / v + g2 / (v * v)
}

/// The figures of one run that are compared with those of ns-2.
#[derive(Clone, Copy, Debug)]
struct Figures {
    goodput: f64,
    drop_percent: f64,
    mean_queue: f64,
    jain: f64,
    timeouts: f64,
    /// The first half's share of the goodput of all flows; no value if all flows are alike.
    first_half_share: f64,
}

fn vectors(file: &str) -> Vec<Vec<String>> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../vectors/ns2-crowd").join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    text.lines().map(|l| l.split(',').map(str::to_owned).collect()).collect()
}

/// ns-2's figures by seed.
fn theirs(case: &str, count: usize) -> Vec<(u64, Figures)> {
    let rows = vectors("crowd.csv");
    let column =
        |name: &str| rows[0].iter().position(|c| c == name).unwrap_or_else(|| panic!("no column {name}"));
    let (goodput, drop, queue, jain, timeouts, share) = (
        column("goodput_bps"),
        column("drop_percent"),
        column("mean_queue_packets"),
        column("jain"),
        column("timeouts_per_flow"),
        column("first_half_share"),
    );
    rows[1..]
        .iter()
        .filter(|r| r[0] == case && r[1] == count.to_string())
        .map(|r| {
            let number = |i: usize| r[i].parse::<f64>().expect("a number");
            let figures = Figures {
                goodput: number(goodput),
                drop_percent: number(drop),
                mean_queue: number(queue),
                jain: number(jain),
                timeouts: number(timeouts),
                first_half_share: r[share].parse().unwrap_or(f64::NAN),
            };
            (r[2].parse().expect("a seed"), figures)
        })
        .collect()
}

/// Base RTTs and start times, in seconds, of the first `count` flows of a seed.
fn scene(rows: &[Vec<String>], seed: u64, count: usize) -> [Vec<String>; 2] {
    let column =
        |name: &str| rows[0].iter().position(|c| c == name).unwrap_or_else(|| panic!("no column {name}"));
    let (rtt, start) = (column("base_rtt_s"), column("start_s"));
    let mine: Vec<_> = rows[1..].iter().filter(|r| r[0] == seed.to_string()).take(count).collect();
    assert_eq!(mine.len(), count);
    [rtt, start].map(|c| mine.iter().map(|r| r[c].clone()).collect())
}

/// A network and its flows: all of one kind, or half of them of one kind and half of another.
struct Crowd {
    case: &'static str,
    count: usize,
    /// Mbit/s; the access links are ten times as fast
    rate: u32,
    queue: &'static str,
    /// By class: `recovery` and ECN.
    classes: &'static [(&'static str, bool)],
    /// The largest delay that a sender adds before it sends a packet.
    jitter: &'static str,
}

/// Base RTTs and start times, as lists in scenario text.
fn list(values: &[String]) -> String {
    values.iter().map(|v| format!("\"{v}s\"")).collect::<Vec<_>>().join(",")
}

impl Crowd {
    fn ours(&self, scenes: &[Vec<String>], seed: u64) -> Figures {
        let Crowd { rate, queue, count, jitter, .. } = *self;
        let mut text = format!(
            r#"
            duration = "120s"
            warmup = "20s"
            [topology]
            kind = "dumbbell"
            rate = "{rate}Mbit"
            delay = "10ms"
            access_rate = "{rate}0Mbit"
            queue = {queue}
            reverse_queue = {{ kind = "droptail", limit = "100000p" }}
            [record]
            queues = "0s"
            flows = "0s"
            "#
        );
        let [rtt, start] = scene(scenes, seed, count);
        let each = count / self.classes.len();
        for (i, (recovery, ecn)) in self.classes.iter().enumerate() {
            let mine = i * each..(i + 1) * each;
            let (rtt, start) = (list(&rtt[mine.clone()]), list(&start[mine]));
            text += &format!(
                r#"
                [[traffic]]
                name = "ftp{i}"
                kind = "bulk"
                count = {each}
                rtt = {{ list = [{rtt}] }}
                start = {{ list = [{start}] }}
                tcp = {{ profile = "ns2", mss = "1000B", max_window = 1000, recovery = "{recovery}", ecn = {ecn}, send_jitter = "{jitter}" }}
                "#
            );
        }
        self.figures(&run(&plan(&text), seed, &Control::default()).unwrap_or_else(|e| panic!("{e}")))
    }

    fn of_flows(&self, r: &Recording, column: &str) -> Vec<f64> {
        let classes = 0..self.classes.len();
        classes.flat_map(|i| flows(r, &format!("ftp{i}"), column)).map(|n| n as f64).collect()
    }

    fn figures(&self, r: &Recording) -> Figures {
        let get = |column: &str| summary(r, "bottleneck", "*", column) as f64;
        let dropped =
            get("dropped_early_packets") + get("dropped_forced_packets") + get("dropped_overflow_packets");
        let delivered = self.of_flows(r, "measured_delivered_bytes");
        let goodputs: Vec<f64> = delivered.iter().map(|b| b * 8.0 / MEASURED_S).collect();
        let (sum, squares) = goodputs.iter().fold((0.0, 0.0), |(s, q), x| (s + x, q + x * x));
        Figures {
            goodput: sum,
            drop_percent: 100.0 * dropped / get("arrivals_packets"),
            mean_queue: get("backlog_packets_integral_ns") / 1e9 / MEASURED_S,
            jain: sum * sum / (self.count as f64 * squares),
            timeouts: self.of_flows(r, "measured_timeouts").iter().sum::<f64>() / self.count as f64,
            first_half_share: goodputs[..self.count / 2].iter().sum::<f64>() / sum,
        }
    }
}

/// The ratio of means over paired seeds, with its 90 % interval (delta method, covariance of the pairs).
fn ratio(pairs: &[(f64, f64)]) -> (f64, f64, f64) {
    let n = pairs.len() as f64;
    let (a, b) = pairs.iter().fold((0.0, 0.0), |(a, b), p| (a + p.0 / n, b + p.1 / n));
    let ratio = a / b;
    // The variance of the ratio follows from that of the residuals a_i - ratio b_i (delta method).
    let variance = pairs.iter().map(|p| (p.0 - ratio * p.1).powi(2)).sum::<f64>() / (n - 1.0);
    let half = t_90(n) * (variance / n).sqrt() / b;
    (ratio, ratio - half, ratio + half)
}

/// The interval for the ratio of our value to ns-2's, for one figure.
struct Ratio {
    name: &'static str,
    low: f64,
    high: f64,
}

/// The figures by name.
type Getter = fn(&Figures) -> f64;
const GETTERS: [(&str, Getter); 7] = [
    ("goodput_bps", |f| f.goodput),
    ("drop_percent", |f| f.drop_percent),
    ("mean_queue_packets", |f| f.mean_queue),
    ("jain", |f| f.jain),
    ("timeouts_per_flow", |f| f.timeouts),
    ("first_half_share", |f| f.first_half_share),
    ("second_half_share", |f| 1.0 - f.first_half_share),
];

impl Crowd {
    /// Runs at most `most` of ns-2's seeds, on two threads, and compares the results.
    fn compare(&self, most: usize) -> Vec<Ratio> {
        let mut theirs = theirs(self.case, self.count);
        theirs.truncate(most);
        let scenes = vectors("scenes.csv");
        let next = AtomicUsize::new(0);
        let pairs = Mutex::new(vec![None; theirs.len()]);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    loop {
                        let i = next.fetch_add(1, Ordering::Relaxed);
                        let Some((seed, figures)) = theirs.get(i) else { break };
                        let mine = self.ours(&scenes, *seed);
                        pairs.lock().expect("no run panicked")[i] = Some((mine, *figures));
                    }
                });
            }
        });
        let pairs: Vec<(Figures, Figures)> =
            pairs.into_inner().expect("no run panicked").into_iter().flatten().collect();
        assert!(pairs.len() >= most.min(20), "{}: {} seeds", self.case, pairs.len());
        let alike = self.classes.len() == 1;
        let getters = GETTERS.iter().filter(|(name, _)| !(alike && name.ends_with("_share")));
        getters.map(|(name, get)| self.compare_figure(name, *get, &pairs)).collect()
    }

    fn compare_figure(&self, name: &'static str, get: Getter, pairs: &[(Figures, Figures)]) -> Ratio {
        let Crowd { case, count, .. } = self;
        let values: Vec<_> = pairs.iter().map(|(a, b)| (get(a), get(b))).collect();
        let n = values.len() as f64;
        let (a, b) = values.iter().fold((0.0, 0.0), |(a, b), p| (a + p.0 / n, b + p.1 / n));
        let r = ratio(&values);
        println!(
            "| {case} | {count} | {} | {name} | {a:.5} | {b:.5} | {:.4} | {:.4} to {:.4} |",
            values.len(),
            r.0,
            r.1,
            r.2
        );
        Ratio { name, low: r.1, high: r.2 }
    }

    fn assert_inside(&self, most: usize) {
        for Ratio { name, low, high } in self.compare(most) {
            let (least, most) = match name {
                "goodput_bps" => (0.97, 1.03),
                "drop_percent" | "mean_queue_packets" => (0.85, 1.15),
                "first_half_share" | "second_half_share" => (0.9, 1.1),
                _ => continue,
            };
            assert!(
                least <= low && high <= most,
                "{} {} {name}: {low:.4} to {high:.4} outside {least} to {most}",
                self.case,
                self.count
            );
        }
    }
}

// ns-2's drop-tail with `limit_ 100` keeps 99 packets waiting in addition to the packet in transmission.
const DROPTAIL: &str = r#"{ kind = "droptail", limit = "99p" }"#;
// ns-2 ran with a queue that counts packets. If it counted bytes, RED could drop a packet that
// finds only one packet in the queue.
const RED: &str = r#"{ kind = "red", preset = "ns2", measure = "packets", byte_mode = "off", limit = "200p", min_th = "15p", max_th = "45p", max_p = 0.1, w_q = 0.002, gentle = true, mean_packet = "1040B" }"#;
// RED marks over the whole gentle range, as with `use_mark_p_ false`; the average does not reach
// the end of that range.
const RED_ECN: &str = r#"{ kind = "red", preset = "ns2", measure = "packets", byte_mode = "off", limit = "400p", min_th = "30p", max_th = "90p", max_p = 0.1, w_q = 0.002, gentle = true, mean_packet = "1040B", ecn = true, ecn_region = "feng" }"#;

fn newreno(case: &'static str, count: usize, queue: &'static str) {
    jittered(case, count, queue, "0s");
}

fn jittered(case: &'static str, count: usize, queue: &'static str, jitter: &'static str) {
    let classes = &[("newreno", false)];
    Crowd { case, count, rate: 10, queue, classes, jitter }.assert_inside(seeds(25));
}

/// These runs have five times as many packets as those at 10 Mbit/s, so the fast lane uses fewer seeds.
fn mixed(case: &'static str, classes: &'static [(&'static str, bool)]) {
    Crowd { case, count: 100, rate: 50, queue: RED_ECN, classes, jitter: "0s" }.assert_inside(seeds(6));
}

#[test]
fn droptail_10() {
    newreno("droptail", 10, DROPTAIL);
}

#[test]
fn droptail_50() {
    newreno("droptail", 50, DROPTAIL);
}

// Senders delay their packets by up to 832 us, the time that a packet takes at the bottleneck.
#[test]
fn droptail_10_with_jitter() {
    jittered("droptail-jitter", 10, DROPTAIL, "832us");
}

#[test]
fn droptail_50_with_jitter() {
    jittered("droptail-jitter", 50, DROPTAIL, "832us");
}

#[test]
fn red_10() {
    newreno("red", 10, RED);
}

#[test]
fn red_50() {
    newreno("red", 50, RED);
}

#[test]
fn newreno_with_ecn_against_sack_without() {
    mixed("newreno-ecn-sack", &[("newreno", true), ("sack", false)]);
}

#[test]
fn sack_with_ecn_against_newreno_without() {
    mixed("sack-ecn-newreno", &[("sack", true), ("newreno", false)]);
}
