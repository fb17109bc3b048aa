//! The table `flows`.

use aqmlab_recording::{Table, schema};
use aqmlab_scenario::Plan;
use aqmlab_units::{Instant, Span};

use crate::flow_counts::{Count, FlowCounts};

/// A flow that ended during the run or still existed when the run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowRow<T = u64> {
    /// Its number in the run: flows are numbered class by class, in the plan's order.
    pub number: u32,
    /// Its class.
    pub class: u16,
    /// Its index within the class.
    pub index: u32,
    /// When it started.
    pub start: Instant,
    /// The time at which its receiver had received everything; `None` if it never had.
    pub end: Option<Instant>,
    /// Twice the propagation delay of its path and its own links.
    pub base_rtt: Span,
    /// All its counts.
    pub counts: FlowCounts<T>,
    /// Its counts at the end of the warm-up.
    pub at_warmup: FlowCounts<T>,
}

/// Returns the table `flows`: these rows in the order of their numbers. The counts named in
/// `optional` may be unknown.
///
/// # Panics
/// If a column of the table is neither a field of a row nor a count (a mistake in the schema or in
/// [`FlowCounts`]).
pub fn flow_table<T: Count>(plan: &Plan, rows: &mut [FlowRow<T>], optional: &[&str]) -> Table {
    rows.sort_unstable_by_key(|row| row.number);
    let names = schema::FLOWS.columns.iter().map(|(name, _)| *name);
    let known: Vec<&str> = names.clone().filter(|name| !optional.contains(&count_of(name).0)).collect();
    let columns: Vec<Column> = names.map(Column::named).collect();
    let mut table = Table::partial(&schema::FLOWS, &known);
    for row in rows {
        let (counts, measured) = (row.counts.values(), row.counts.since(row.at_warmup).values());
        table.push(columns.iter().map(|column| match *column {
            Column::Number => u64::from(row.number).into(),
            Column::Class => plan.classes[usize::from(row.class)].name.as_str().into(),
            Column::Index => u64::from(row.index).into(),
            Column::Start => row.start.as_ns().into(),
            Column::End => row.end.map(Instant::as_ns).into(),
            Column::BaseRtt => row.base_rtt.as_ns().into(),
            Column::Count(number) => counts.as_ref()[number].known().into(),
            Column::Measured(number) => measured.as_ref()[number].known().into(),
        }));
    }
    table
}

/// The contents of a column. Counts are numbered as in [`FlowCounts::NAMES`].
enum Column {
    Number,
    Class,
    Index,
    Start,
    End,
    BaseRtt,
    Count(usize),
    Measured(usize),
}

impl Column {
    fn named(name: &str) -> Self {
        match name {
            "flow" => Column::Number,
            "class" => Column::Class,
            "index" => Column::Index,
            "start_ns" => Column::Start,
            "end_ns" => Column::End,
            "base_rtt_ns" => Column::BaseRtt,
            _ => {
                let (count, measured) = count_of(name);
                let number = FlowCounts::<u64>::NAMES.iter().position(|known| *known == count);
                let number = number.unwrap_or_else(|| panic!("there is no count named `{count}`"));
                if measured { Column::Measured(number) } else { Column::Count(number) }
            }
        }
    }
}

/// Returns the count in a column, and whether it covers only the measured interval.
fn count_of(column: &str) -> (&str, bool) {
    match column.strip_prefix("measured_") {
        Some(count) => (count, true),
        None => (column, false),
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_recording::ColumnData;

    use super::*;

    fn plan() -> Plan {
        let text = "title = \"t\"\nduration = \"1s\"\n\
                    topology = { kind = \"dumbbell\", rate = \"10Mbit\", delay = \"1ms\", queue = { kind = \"droptail\", limit = \"9p\" } }\n\
                    [[traffic]]\nname = \"a\"\nkind = \"bulk\"\ncount = 2\n";
        aqmlab_scenario::parse(text, "test").unwrap_or_else(|e| panic!("{e}")).arms.remove(0)
    }

    fn row<T: Count>(number: u32, timeouts: T, before: T) -> FlowRow<T> {
        let counts = |timeouts| FlowCounts { timeouts, ..FlowCounts::ZERO };
        FlowRow {
            number,
            class: 0,
            index: number,
            start: Instant::ZERO,
            end: None,
            base_rtt: Span::ms(4),
            counts: counts(timeouts),
            at_warmup: counts(before),
        }
    }

    fn column<'t>(table: &'t Table, name: &str) -> &'t ColumnData {
        &table.columns.iter().find(|column| column.name == name).expect("a column of `flows`").data
    }

    #[test]
    fn every_count_has_its_column_and_rows_stand_in_the_order_of_their_numbers() {
        let columns: Vec<&str> = schema::FLOWS.columns.iter().map(|(name, _)| *name).collect();
        for name in FlowCounts::<u64>::NAMES {
            assert!(columns.contains(name), "`flows` has no column `{name}`");
        }
        let table = flow_table(&plan(), &mut [row(1, 9, 4), row(0, 7u64, 0)], &[]);
        assert_eq!(*column(&table, "flow"), ColumnData::U64(vec![0, 1]));
        assert_eq!(*column(&table, "timeouts"), ColumnData::U64(vec![7, 9]));
        assert_eq!(*column(&table, "measured_timeouts"), ColumnData::U64(vec![7, 5]));
    }

    #[test]
    fn what_a_host_may_not_know_is_null_in_both_columns() {
        let table = flow_table(&plan(), &mut [row(0, None, Some(4))], &["timeouts"]);
        for name in ["timeouts", "measured_timeouts"] {
            assert_eq!(*column(&table, name), ColumnData::NullableU64(vec![None]), "{name}");
        }
        assert_eq!(*column(&table, "sent_bytes"), ColumnData::U64(vec![0]));
    }
}
