//! What is read from the recording of a run.

use aqmlab_recording::{ColumnData, Recording, Table};
use serde::Serialize;

/// A measured quantity. All refer to the measured interval, after the warm-up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// goodput of the judged flows together, in Mbit/s
    Goodput,
    /// mean time that packets of all flows wait in the bottleneck's queue, in ms
    QueueingDelay,
    /// retransmitted packets of the judged flows, in percent of the packets sent
    Retransmissions,
    /// Jain's index of the judged flows' goodputs
    Fairness,
    /// goodput of the judged flows, in percent of the goodput of all TCP flows
    Share,
    /// mean time from request to response, in ms
    ResponseTime,
}

impl Measure {
    /// Returns its name and unit for people.
    pub fn label(self) -> &'static str {
        match self {
            Measure::Goodput => "goodput, Mbit/s",
            Measure::QueueingDelay => "queueing delay, ms",
            Measure::Retransmissions => "retransmitted, %",
            Measure::Fairness => "Jain's index",
            Measure::Share => "share, %",
            Measure::ResponseTime => "response time, ms",
        }
    }

    /// Reads the quantity from a recording of a situation; the full segments of its judged flows have `mss` bytes.
    pub(crate) fn of(self, recording: &Recording, mss: u32) -> f64 {
        let flows = Flows::of(recording);
        let judged = |values: &[f64]| flows.sum(values, |class| class == "judged");
        let goodputs = &flows.received;
        match self {
            Measure::Goodput => 8.0 * judged(goodputs) / seconds(recording) / 1e6,
            Measure::QueueingDelay => {
                let queues = table(recording, "summary");
                let first = (0..queues.rows()).find(|row| text(queues, "class", *row) == "*");
                let row = first.expect("there is a queue");
                1e-6 * numbers(queues, "sojourn_sum_ns")[row] / numbers(queues, "sojourn_count")[row].max(1.0)
            }
            Measure::Retransmissions => {
                100.0 * judged(&flows.retransmitted) * f64::from(mss) / judged(&flows.sent).max(1.0)
            }
            Measure::Fairness => {
                let own = |row: &usize| flows.classes[*row] == "judged";
                let own: Vec<f64> = (0..goodputs.len()).filter(own).map(|row| goodputs[row]).collect();
                let squares: f64 = own.iter().map(|goodput| goodput * goodput).sum();
                let sum: f64 = own.iter().sum();
                sum * sum / (own.len() as f64 * squares).max(1.0)
            }
            Measure::Share => 100.0 * judged(goodputs) / flows.sum(goodputs, |_| true).max(1.0),
            Measure::ResponseTime => {
                let requests = table(recording, "request_summary");
                let sum = |name| numbers(requests, name).iter().sum::<f64>();
                1e-6 * sum("response_time_sum_ns") / sum("completed").max(1.0)
            }
        }
    }
}

/// The columns of the table of flows that are used here, in bytes and segments.
struct Flows {
    classes: Vec<String>,
    received: Vec<f64>,
    sent: Vec<f64>,
    retransmitted: Vec<f64>,
}

impl Flows {
    fn of(recording: &Recording) -> Self {
        let flows = table(recording, "flows");
        Flows {
            classes: (0..flows.rows()).map(|row| text(flows, "class", row)).collect(),
            received: numbers(flows, "measured_received_bytes"),
            sent: numbers(flows, "measured_sent_bytes"),
            retransmitted: numbers(flows, "measured_retransmitted_segments"),
        }
    }

    fn sum(&self, values: &[f64], includes: impl Fn(&str) -> bool) -> f64 {
        self.classes.iter().zip(values).filter(|(class, _)| includes(class)).map(|(_, value)| value).sum()
    }
}

fn seconds(recording: &Recording) -> f64 {
    let run = table(recording, "run");
    (numbers(run, "t1_ns")[0] - numbers(run, "t0_ns")[0]) / 1e9
}

fn table<'a>(recording: &'a Recording, name: &str) -> &'a Table {
    recording.table(name).unwrap_or_else(|| panic!("the situation records the table `{name}`"))
}

fn numbers(table: &Table, name: &str) -> Vec<f64> {
    match table.column(name) {
        Some(ColumnData::U64(values)) => values.iter().map(|value| *value as f64).collect(),
        Some(ColumnData::U128(values)) => values.iter().map(|value| *value as f64).collect(),
        Some(ColumnData::F64(values)) => values.clone(),
        Some(ColumnData::NullableU64(values)) => {
            values.iter().map(|value| value.unwrap_or(0) as f64).collect()
        }
        Some(ColumnData::NullableU128(values)) => {
            values.iter().map(|value| value.unwrap_or(0) as f64).collect()
        }
        _ => panic!("`{}` has no numbers `{name}`", table.name),
    }
}

fn text(table: &Table, name: &str, row: usize) -> String {
    match table.column(name) {
        Some(ColumnData::Str(names)) => names.row(row).to_owned(),
        _ => panic!("`{}` has no names `{name}`", table.name),
    }
}
