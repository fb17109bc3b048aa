//! The driver of the benches. It simulates TCP flows over one bottleneck, or over several in
//! series, and prints, as JSON, how much work that took.
//!
//! ```text
//! cargo run --release -p aqmlab-sim --example bench_dumbbell -- flows=100 discipline=red seconds=15
//! ```
//!
//! It measures only its own run. The program that starts it (`benches/run.py`) also counts
//! instructions, and subtracts the figures of a short run from those of a long one, so that set-up
//! cancels out. [`Scene`] gives the default of every `KEY=VALUE` that is left out.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use aqmlab_recording::{ColumnData, Recording};
use aqmlab_sim::{Control, run};

/// The network. The default values are those of `benches/scene.py`, which the peers also use.
struct Scene {
    flows: u64,
    /// `droptail` or `red`
    discipline: String,
    /// simulated time
    seconds: f64,
    /// interval between queue samples, 0 for none
    record_ms: f64,
    /// interval between samples of each flow, 0 for none
    record_flows_ms: f64,
    /// bottlenecks in series, each with the same rate, delay and queue
    bottlenecks: u64,
    rate_mbit: f64,
    /// one-way propagation delay of a bottleneck
    delay_ms: f64,
    access_mbit: f64,
    /// the lowest and the highest base round-trip time; those of the flows are spread evenly
    /// between them
    rtt_ms: [f64; 2],
    /// the start times of the flows are spread evenly over this time
    start_s: f64,
    mss: u64,
    /// `reno`, `newreno`, `sack`, or `segments`: SACK with RACK-TLP, PRR, F-RTO and timestamps
    recovery: String,
    /// `reno` or `cubic`
    congestion: String,
    /// the profile whose values apply unless another key of the scene overrides them
    profile: String,
    /// segments
    max_window: u64,
    min_rto_ms: f64,
    limit: u64,
    min_th: u64,
    max_th: u64,
    max_p: f64,
    w_q: f64,
    /// each flow sends one segment and then keeps its connection open, idle
    idle: bool,
    /// sample the resident memory while the simulation runs (costs instructions)
    rss: bool,
}

impl Default for Scene {
    fn default() -> Self {
        Scene {
            flows: 100,
            discipline: "red".to_owned(),
            seconds: 15.0,
            record_ms: 0.0,
            record_flows_ms: 0.0,
            bottlenecks: 1,
            rate_mbit: 100.0,
            delay_ms: 5.0,
            access_mbit: 1000.0,
            rtt_ms: [20.0, 200.0],
            start_s: 1.0,
            mss: 1448,
            recovery: "newreno".to_owned(),
            congestion: "reno".to_owned(),
            profile: "rfc".to_owned(),
            max_window: 1 << 20,
            min_rto_ms: 1000.0,
            limit: 1000,
            min_th: 100,
            max_th: 300,
            max_p: 0.1,
            w_q: 0.002,
            idle: false,
            rss: false,
        }
    }
}

impl Scene {
    fn from_arguments() -> Result<Self, String> {
        let mut scene = Scene::default();
        for argument in std::env::args().skip(1) {
            let (key, value) = argument.split_once('=').ok_or(format!("`{argument}` is not KEY=VALUE"))?;
            scene.set(key, value)?;
        }
        Ok(scene)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), String> {
        let number = || value.parse::<f64>().map_err(|e| format!("{key}: `{value}`: {e}"));
        let count = || value.parse::<u64>().map_err(|e| format!("{key}: `{value}`: {e}"));
        match key {
            "flows" => self.flows = count()?,
            "discipline" => self.discipline = value.to_owned(),
            "seconds" => self.seconds = number()?,
            "record_ms" => self.record_ms = number()?,
            "record_flows_ms" => self.record_flows_ms = number()?,
            "bottlenecks" => self.bottlenecks = count()?,
            "rate_mbit" => self.rate_mbit = number()?,
            "delay_ms" => self.delay_ms = number()?,
            "access_mbit" => self.access_mbit = number()?,
            "rtt_low_ms" => self.rtt_ms[0] = number()?,
            "rtt_high_ms" => self.rtt_ms[1] = number()?,
            "start_s" => self.start_s = number()?,
            "mss" => self.mss = count()?,
            "recovery" => self.recovery = value.to_owned(),
            "congestion" => self.congestion = value.to_owned(),
            "profile" => self.profile = value.to_owned(),
            "max_window" => self.max_window = count()?,
            "min_rto_ms" => self.min_rto_ms = number()?,
            "limit" => self.limit = count()?,
            "min_th" => self.min_th = count()?,
            "max_th" => self.max_th = count()?,
            "max_p" => self.max_p = number()?,
            "w_q" => self.w_q = number()?,
            "idle" => self.idle = count()? != 0,
            "rss" => self.rss = count()? != 0,
            _ => return Err(format!("unknown key `{key}`")),
        }
        Ok(())
    }

    fn queue(&self) -> Result<String, String> {
        let Scene { limit, min_th, max_th, max_p, w_q, .. } = self;
        match self.discipline.as_str() {
            "droptail" => Ok(format!(r#"{{ kind = "droptail", limit = "{limit}p" }}"#)),
            "red" => Ok(format!(
                r#"{{ kind = "red", limit = "{limit}p", min_th = "{min_th}p", max_th = "{max_th}p", max_p = {max_p:?}, w_q = {w_q:?}, gentle = true }}"#
            )),
            other => Err(format!("discipline: `{other}` is neither droptail nor red")),
        }
    }

    /// The TCP settings for loss detection and recovery.
    fn recovery(&self) -> String {
        match self.recovery.as_str() {
            "segments" => r#"recovery = "sack", sack_pipe = "segments", rack = true, tail_loss_probe = true, prr = true, frto = true, timestamps = true"#.to_owned(),
            scheme => format!("recovery = \"{scheme}\""),
        }
    }

    /// The scenario file that corresponds to the scene.
    fn scenario(&self) -> Result<String, String> {
        let queue = self.queue()?;
        let topology = match self.bottlenecks {
            1 => "kind = \"dumbbell\"".to_owned(),
            hops => format!("kind = \"parking_lot\"\nhops = {hops}"),
        };
        let [low, high] = self.rtt_ms;
        Ok(format!(
            r#"
title = "bench"
duration = "{seconds}s"
[topology]
{topology}
rate = "{rate}Mbit"
delay = "{delay}ms"
access_rate = "{access}Mbit"
queue = {queue}
reverse_queue = {{ kind = "droptail", limit = "10000000p" }}
[[traffic]]
name = "bulk"
{kind}
count = {flows}
rtt = {{ spread = ["{low}ms", "{high}ms"] }}
start = {{ spread = ["0s", "{start}s"] }}
tcp = {{ profile = "{profile}", mss = "{mss}B", ack_every = 1, initial_window = 2, limited_transmit = false, max_window = {window}, congestion = "{congestion}", {recovery}, min_rto = "{rto}ms" }}
[record]
queues = "{record}ms"
flows = "{record_flows}ms"
"#,
            seconds = self.seconds,
            kind = match self.idle {
                false => "kind = \"bulk\"".to_owned(),
                true => format!("kind = \"on_off_tcp\"\nburst = \"{}B\"\noff = \"1000s\"", self.mss),
            },
            rate = self.rate_mbit,
            delay = self.delay_ms,
            access = self.access_mbit,
            flows = self.flows,
            start = self.start_s,
            mss = self.mss,
            profile = self.profile,
            congestion = self.congestion,
            recovery = self.recovery(),
            rto = self.min_rto_ms,
            window = self.max_window,
            record = self.record_ms,
            record_flows = self.record_flows_ms,
        ))
    }
}

fn main() {
    if let Err(message) = Scene::from_arguments().and_then(|scene| measure(&scene)) {
        eprintln!("bench_dumbbell: {message}");
        std::process::exit(2);
    }
}

fn measure(scene: &Scene) -> Result<(), String> {
    let experiment = aqmlab_scenario::parse(&scene.scenario()?, "bench").map_err(|e| e.to_string())?;
    let control = Arc::new(Control::default());
    let watch = scene.rss.then(|| MemoryWatch::start(Arc::clone(&control)));
    let cpu_before = thread_cpu_s();
    let recording = run(&experiment.arms[0], 1, &control).map_err(|e| e.to_string())?;
    let cpu_s = thread_cpu_s() - cpu_before;
    let rss_running = watch.map_or(0, MemoryWatch::stop);

    let run_of = |name| column(&recording, "run", name)[0];
    let delivered = column(&recording, "flows", "delivered_bytes");
    let sent: u64 = column(&recording, "flows", "sent_segments").iter().sum();
    let resent: u64 = column(&recording, "flows", "retransmitted_segments").iter().sum();
    println!(
        r#"{{"packet_hops":{hops},"delivered":{segments},"sent":{sent},"resent":{resent},"dropped":{dropped},"events":{events},"established":{established},"cpu_s":{cpu_s:.6},"rss_running":{rss_running},"rss_peak":{peak}}}"#,
        hops = run_of("packet_hops"),
        segments = delivered.iter().sum::<u64>() / scene.mss,
        dropped = run_of("dropped_packets"),
        events = control.events.load(Ordering::Relaxed),
        established = delivered.iter().filter(|&&bytes| bytes > 0).count(),
        peak = status_bytes("VmHWM:"),
    );
    Ok(())
}

fn column<'a>(recording: &'a Recording, table: &str, name: &str) -> &'a [u64] {
    let table = recording.table(table).unwrap_or_else(|| panic!("no table {table}"));
    match table.column(name) {
        Some(ColumnData::U64(values)) => values,
        _ => panic!("there is no integer column {name}"),
    }
}

/// Samples the resident memory during a run, so that tables that are built after its end do not count.
struct MemoryWatch {
    over: Arc<AtomicBool>,
    most: Arc<AtomicU64>,
    thread: std::thread::JoinHandle<()>,
}

impl MemoryWatch {
    fn start(control: Arc<Control>) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let most = Arc::new(AtomicU64::new(0));
        let (is_over, peak) = (Arc::clone(&over), Arc::clone(&most));
        let thread = std::thread::spawn(move || {
            // A value counts only after the simulated time has advanced again, which shows that
            // the run was not over when the value was taken.
            let (mut progress, mut largest) = (0, 0);
            while !is_over.load(Ordering::Relaxed) {
                let now = control.sim_time_ns.load(Ordering::Relaxed);
                if now != progress {
                    progress = now;
                    peak.store(largest, Ordering::Relaxed);
                }
                largest = largest.max(status_bytes("VmRSS:"));
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        MemoryWatch { over, most, thread }
    }

    fn stop(self) -> u64 {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().expect("the thread that samples memory does not panic");
        self.most.load(Ordering::Relaxed)
    }
}

/// Processor time of this thread (Linux; 0 if the kernel does not report it).
fn thread_cpu_s() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let ns: u64 = text.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0);
    ns as f64 / 1e9
}

/// Returns, in bytes, a value that `/proc/self/status` gives in kilobytes (Linux; 0 elsewhere).
fn status_bytes(key: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with(key));
    let kilobytes = line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}
