//! Runs scenarios in tests and reads their tables.
#![allow(dead_code)]

pub mod graph;
pub mod pcap;
pub mod tap;

use aqmlab_recording::{ColumnData, Recording, Table};
use aqmlab_scenario::{Limits, Plan, parse_within};
use aqmlab_sim::{Control, run};
use aqmlab_storage::Folder;

/// Returns the plans of a scenario text, one per arm.
pub fn plans(text: &str) -> Vec<Plan> {
    match parse_within(text, "test.toml", Limits::default(), &Folder::of("test.toml")) {
        Ok(experiment) => experiment.arms,
        Err(error) => panic!("{error}"),
    }
}

/// The only plan of a scenario text.
pub fn plan(text: &str) -> Plan {
    plans(text).remove(0)
}

/// Runs the only arm of a scenario text.
pub fn record(text: &str, seed: u64) -> Recording {
    run(&plan(text), seed, &Control::default()).unwrap_or_else(|e| panic!("{e}"))
}

/// The whole numbers in a column.
pub fn integers(table: &Table, column: &str) -> Vec<u128> {
    match table.column(column).unwrap_or_else(|| panic!("no column {column}")) {
        ColumnData::U64(v) => v.iter().map(|&x| u128::from(x)).collect(),
        ColumnData::NullableU64(v) => v.iter().map(|x| u128::from(x.unwrap_or(0))).collect(),
        ColumnData::NullableU128(v) => v.iter().map(|x| x.unwrap_or(0)).collect(),
        other => panic!("{column} is {:?}", other.type_of()),
    }
}

/// Names in a column.
pub fn names(table: &Table, column: &str) -> Vec<String> {
    match table.column(column) {
        Some(ColumnData::Str(v)) => v.iter().map(str::to_owned).collect(),
        _ => panic!("no names in {column}"),
    }
}

/// Numbers in a column.
pub fn numbers(table: &Table, column: &str) -> Vec<f64> {
    match table.column(column) {
        Some(ColumnData::F64(v)) => v.clone(),
        _ => panic!("no numbers in {column}"),
    }
}

/// A whole number in the summary row of a queue and class.
pub fn summary(recording: &Recording, queue: &str, class: &str, column: &str) -> u128 {
    let table = recording.table("summary").expect("every recording has a summary");
    let (queues, classes) = (names(table, "queue"), names(table, "class"));
    let row = (0..table.rows())
        .find(|&i| queues[i] == queue && classes[i] == class)
        .expect("queue and class exist");
    integers(table, column)[row]
}

/// A column of the table of flows, for the flows of one class.
pub fn flows(recording: &Recording, class: &str, column: &str) -> Vec<u128> {
    let table = recording.table("flows").expect("every recording has flows");
    let classes = names(table, "class");
    integers(table, column).into_iter().zip(classes).filter(|(_, c)| c == class).map(|(v, _)| v).collect()
}

/// Mean and half-width of a Student-t interval. `t` is the quantile for the confidence level and
/// `n - 1` degrees of freedom.
pub fn interval(samples: &[f64], t: f64) -> (f64, f64) {
    let n = samples.len() as f64;
    let mean = samples.iter().sum::<f64>() / n;
    let variance = samples.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / (n - 1.0);
    (mean, t * (variance / n).sqrt())
}

/// The 99 % two-sided quantile of Student's t with 19 degrees of freedom.
pub const T_99_19: f64 = 2.861;
/// The 95 % two-sided quantile of Student's t with 9 degrees of freedom.
pub const T_95_9: f64 = 2.262;
