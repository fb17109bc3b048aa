//! Tables: columns of equal length.

use crate::column::{Cell, Column, ColumnData, Type};
use crate::digest::{Digest, Hasher};
use crate::schema::Schema;

/// A table of a recording, built row by row and held column by column.
#[derive(Clone, PartialEq, Debug)]
pub struct Table {
    /// Its name, which is also the stem of its file name.
    pub name: &'static str,
    /// Its columns, all of the same length.
    pub columns: Vec<Column>,
}

impl Table {
    /// Creates an empty table.
    pub fn new(schema: &Schema) -> Self {
        let column = |&(name, of)| Column { name, data: ColumnData::new(of) };
        Table { name: schema.name, columns: schema.columns.iter().map(column).collect() }
    }

    /// Creates an empty table for a host that cannot measure everything: every number except those in the
    /// columns `known` may be absent. The names and the order of the columns are those of the schema.
    pub fn partial(schema: &Schema, known: &[&str]) -> Self {
        let column = |&(name, of): &(&'static str, Type)| {
            let of = if known.contains(&name) { of } else { of.optional().unwrap_or(of) };
            Column { name, data: ColumnData::new(of) }
        };
        Table { name: schema.name, columns: schema.columns.iter().map(column).collect() }
    }

    /// Reserves room for this many more rows, so that pushing them allocates nothing.
    pub fn reserve(&mut self, rows: usize) {
        self.columns.iter_mut().for_each(|column| column.data.reserve(rows));
    }

    /// Reserves room for `name` in a column of names, so that the first row with it allocates
    /// nothing.
    ///
    /// # Panics
    /// If there is no such column, which is a mistake in the host's code.
    pub fn expect_name(&mut self, column: &'static str, name: &str) {
        match self.columns.iter_mut().find(|c| c.name == column).map(|c| &mut c.data) {
            Some(ColumnData::Str(names)) => _ = names.intern(name),
            _ => panic!("`{}` has no column of names called `{column}`", self.name),
        }
    }

    /// Appends a row, with values in the order of the schema.
    ///
    /// # Panics
    /// If the number or the types of the row's values do not fit the schema, which is a mistake in the host's
    /// code.
    pub fn push<'a>(&mut self, row: impl IntoIterator<Item = Cell<'a>>) {
        let mut columns = self.columns.iter_mut();
        for cell in row {
            let column =
                columns.next().unwrap_or_else(|| panic!("a row of `{}` has too many values", self.name));
            let fits = column.data.push(cell);
            assert!(fits, "column `{}` of `{}` does not take {cell:?}", column.name, self.name);
        }
        assert!(columns.next().is_none(), "a row of `{}` has too few values", self.name);
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.columns.first().map_or(0, |column| column.data.len())
    }

    /// Returns a column by name.
    pub fn column(&self, name: &str) -> Option<&ColumnData> {
        self.columns.iter().find(|column| column.name == name).map(|column| &column.data)
    }

    /// Returns the SHA-256 of the table's logical contents: names, types and values, not the bytes
    /// of any file.
    ///
    /// In the hashed bytes, integers are little-endian, and a text is its length in bytes (u64)
    /// followed by its UTF-8 bytes. The hashed bytes are: the text `aqmlab-table-1`; the number of
    /// columns (u64); for each column its name and its type (u8, the discriminant of
    /// [`crate::Type`]); the number of rows (u64); the values row by row, in the order of the
    /// columns. A u64, i64 or u128 is hashed as it is, an f64 as its IEEE 754 bits (every NaN as
    /// 0x7ff8000000000000), and a name as a text. In a nullable column, a byte 1 precedes each
    /// value, and a byte 0 stands for an absent value.
    pub fn digest(&self) -> Digest {
        let mut hasher = Hasher::new();
        hasher.text("aqmlab-table-1");
        self.hash_columns(&mut hasher);
        hasher.u64(self.rows() as u64);
        self.hash_rows(&mut hasher);
        hasher.finish()
    }

    /// Hashes the number of columns, and the name and type of each.
    pub(crate) fn hash_columns(&self, hasher: &mut Hasher) {
        hasher.u64(self.columns.len() as u64);
        for column in &self.columns {
            hasher.text(column.name);
            hasher.u8(column.data.type_of() as u8);
        }
    }

    /// Hashes all values, row by row.
    pub(crate) fn hash_rows(&self, hasher: &mut Hasher) {
        for row in 0..self.rows() {
            for column in &self.columns {
                hash_value(hasher, &column.data, row);
            }
        }
    }
}

fn hash_value(hasher: &mut Hasher, data: &ColumnData, row: usize) {
    match data {
        ColumnData::U64(v) => hasher.u64(v[row]),
        ColumnData::I64(v) => hasher.i64(v[row]),
        ColumnData::F64(v) => hasher.f64(v[row]),
        ColumnData::Str(v) => hasher.text(v.row(row)),
        ColumnData::U128(v) => hasher.u128(v[row]),
        ColumnData::NullableU64(v) => hasher.optional(v[row], Hasher::u64),
        ColumnData::NullableF64(v) => hasher.optional(v[row], Hasher::f64),
        ColumnData::NullableU128(v) => hasher.optional(v[row], Hasher::u128),
    }
}
