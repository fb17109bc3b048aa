//! Tables of `vectors/`: comma-separated values without quotes, with a line of names.

use std::collections::BTreeMap;
use std::path::Path;

use aqmlab_units::Span;

/// One row, by column.
pub type Row = BTreeMap<String, String>;

/// Reads a table from a folder of `vectors/`.
pub fn table(folder: &str, name: &str) -> Vec<Row> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors").join(folder).join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().expect("a line of names").split(',').collect();
    let row = |line: &str| {
        names.iter().zip(line.splitn(names.len(), ',')).map(|(n, v)| ((*n).into(), v.into())).collect()
    };
    lines.map(row).collect()
}

/// Returns the words in a column.
pub fn words(case: &Row, column: &str) -> Vec<String> {
    case[column].split_whitespace().map(String::from).collect()
}

pub fn number(text: &str) -> u64 {
    text.parse().expect("a number")
}

pub fn seconds(text: &str) -> Span {
    Span::try_from_secs_f64(text.parse().expect("a number of seconds")).expect("not negative")
}
