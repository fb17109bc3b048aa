//! Reads from the `requests` table of a recording when the connections of a class opened.

use aqmlab_traffic::Identity;
use aqmlab_units::{Instant, Span};

use super::formats::rows_of_parquet;
use super::row::{Cell, whole};

/// The positions of the values in a row.
struct Columns {
    class: usize,
    /// The positions of the columns [`NUMBERS`], in the same order.
    numbers: [usize; 4],
}

const NUMBERS: [&str; 4] = ["user", "serial", "opens_connection", "start_ns"];

impl Columns {
    fn of(names: &[&str]) -> Result<Self, String> {
        let place = |wanted: &str| {
            let place = names.iter().position(|name| *name == wanted);
            place.ok_or_else(|| format!("it is not a table of requests: column `{wanted}` is missing"))
        };
        let [user, connection, opens, start] = NUMBERS.map(place);
        Ok(Columns { class: place("class")?, numbers: [user?, connection?, opens?, start?] })
    }

    /// Returns when a connection of `class` opened, if this row belongs to the exchange that opened it.
    fn row(&self, cells: &[Cell<'_>], class: &str) -> Result<Option<(Instant, Identity)>, String> {
        if !matches!(&cells[self.class], Cell::Text(name) if name == class) {
            return Ok(None);
        }
        let number = |i: usize, most| whole(NUMBERS[i], &cells[self.numbers[i]], 0, most);
        let most = u64::from(u32::MAX);
        let of = Identity { user: number(0, most)? as u32, serial: number(1, most)? as u32 };
        let start = Instant::ZERO + Span::ns(number(3, i64::MAX as u64)?);
        Ok((number(2, 1)? == 1).then_some((start, of)))
    }
}

/// Returns the connections of `class` that were opened, in the order of their starts. `parquet`
/// holds the contents of `file`, which is a `requests` table.
///
/// # Errors
/// If the contents are not such a table. The error is a sentence without a full stop.
pub fn recorded_openings(
    parquet: Vec<u8>,
    file: &str,
    class: &str,
) -> Result<Vec<(Instant, Identity)>, String> {
    let row = |columns: &Columns, cells: &[Cell<'_>]| columns.row(cells, class);
    let rows = rows_of_parquet("recording", file, parquet, Columns::of, row)?;
    let mut openings: Vec<_> = rows.into_iter().flatten().collect();
    openings.sort_unstable();
    Ok(openings)
}
