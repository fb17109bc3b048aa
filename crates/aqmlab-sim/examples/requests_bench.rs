//! Opens many connections of one exchange each, one after another, and measures the cost per
//! connection and the memory in use.
//!
//! ```text
//! cargo run --release -p aqmlab-sim --example requests_bench -- seconds=10 rate=100000
//! ```
//!
//! It prints a JSON object with the number of exchanges, the number of events, the wall time and
//! the peak resident memory. `trace=FILE` takes the start times and sizes of the connections from a
//! file instead (`kind = "trace"`).

use aqmlab_scenario::{Beside, Limits, parse_within};
use aqmlab_sim::{Control, run};

fn main() {
    let (mut seconds, mut rate, mut trace) = ("10".to_owned(), "100000".to_owned(), None);
    for argument in std::env::args().skip(1) {
        match argument.split_once('=') {
            Some(("seconds", value)) => seconds = value.to_owned(),
            Some(("rate", value)) => rate = value.to_owned(),
            Some(("trace", value)) => trace = Some(value.to_owned()),
            _ => {
                eprintln!("unknown argument `{argument}`; write seconds=.., rate=.. or trace=..");
                std::process::exit(2);
            }
        }
    }
    let kind = match &trace {
        Some(file) => format!("kind = \"trace\"\nfile = \"{file}\""),
        None => format!("kind = \"requests\"\nrate = \"{rate}/s\"\nrequest = \"300B\"\nresponse = \"10kB\""),
    };
    let text = format!(
        r#"
        duration = "{seconds}s"
        warmup = "0s"
        [topology]
        kind = "dumbbell"
        rate = "100Gbit"
        delay = "5ms"
        queue = {{ kind = "droptail", limit = "100000p" }}
        [[traffic]]
        name = "web"
        {kind}
        from = "right"
        to = "left"
        rtt = "20ms"
        [record]
        flows = "0s"
        queues = "1s"
        "#
    );
    let experiment =
        parse_within(&text, "requests_bench.toml", Limits::default(), &Beside::of("requests_bench.toml"))
            .unwrap_or_else(|error| panic!("{error}"));
    let recording =
        run(&experiment.arms[0], 1, &Control::default()).unwrap_or_else(|error| panic!("{error}"));
    let flows = recording.table("flows").expect("every run has flows");
    let delivered = flows.columns.iter().find(|column| column.name == "delivered_bytes").expect("they count");
    let aqmlab_recording::ColumnData::U64(bytes) = &delivered.data else { unreachable!("bytes are numbers") };
    let exchanges = bytes.iter().sum::<u64>() as f64 / 10_300.0;
    println!(
        "{{\"exchanges\": {exchanges:.1}, \"events\": {}, \"wall_s\": {:.2}, \"peak_rss_kb\": {}}}",
        recording.manifest.events,
        recording.manifest.wall_s,
        peak_rss_kb()
    );
}

/// Peak resident memory, in kB (proc(5)).
fn peak_rss_kb() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}
