//! Columns: each holds values of one type, one per row, in row order.

use std::collections::BTreeMap;

/// The type of a column.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Type {
    /// A count, a size in bytes or a time in nanoseconds; below 2^63.
    U64 = 1,
    /// A number that may be negative.
    I64 = 2,
    /// A real number.
    F64 = 3,
    /// A name.
    Str = 4,
    /// An exact integral over time; below 10^38.
    U128 = 5,
    /// A [`Type::U64`] that may be absent.
    NullableU64 = 6,
    /// A [`Type::F64`] that may be absent.
    NullableF64 = 7,
    /// A [`Type::U128`] that may be absent.
    NullableU128 = 8,
}

impl Type {
    /// Returns the nullable variant of this type, or `None` if it has none.
    pub const fn optional(self) -> Option<Type> {
        match self {
            Type::U64 | Type::NullableU64 => Some(Type::NullableU64),
            Type::F64 | Type::NullableF64 => Some(Type::NullableF64),
            Type::U128 | Type::NullableU128 => Some(Type::NullableU128),
            Type::I64 | Type::Str => None,
        }
    }
}

/// A value to be added to a column.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Cell<'a> {
    /// for [`Type::U64`] and [`Type::NullableU64`]
    U64(u64),
    /// for [`Type::I64`]
    I64(i64),
    /// for [`Type::F64`] and [`Type::NullableF64`]
    F64(f64),
    /// for [`Type::Str`]
    Str(&'a str),
    /// for [`Type::U128`] and [`Type::NullableU128`]
    U128(u128),
    /// for an absent value in a nullable type
    Null,
}

macro_rules! cell_from {
    ($type:ty, $variant:ident) => {
        impl From<$type> for Cell<'_> {
            fn from(value: $type) -> Self {
                Cell::$variant(value)
            }
        }
        impl From<Option<$type>> for Cell<'_> {
            fn from(value: Option<$type>) -> Self {
                value.map_or(Cell::Null, Cell::$variant)
            }
        }
    };
}
cell_from!(u64, U64);
cell_from!(i64, I64);
cell_from!(f64, F64);
cell_from!(u128, U128);

impl<'a> From<&'a str> for Cell<'a> {
    fn from(value: &'a str) -> Self {
        Cell::Str(value)
    }
}

/// A named column.
#[derive(Clone, PartialEq, Debug)]
pub struct Column {
    /// Its name, which ends in the unit, such as `sojourn_ns`.
    pub name: &'static str,
    /// Its values.
    pub data: ColumnData,
}

/// The values of a column.
#[derive(Clone, PartialEq, Debug)]
pub enum ColumnData {
    /// see [`Type::U64`]
    U64(Vec<u64>),
    /// see [`Type::I64`]
    I64(Vec<i64>),
    /// see [`Type::F64`]
    F64(Vec<f64>),
    /// see [`Type::Str`]
    Str(Dictionary),
    /// see [`Type::U128`]
    U128(Vec<u128>),
    /// see [`Type::NullableU64`]
    NullableU64(Vec<Option<u64>>),
    /// see [`Type::NullableF64`]
    NullableF64(Vec<Option<f64>>),
    /// see [`Type::NullableU128`]
    NullableU128(Vec<Option<u128>>),
}

impl ColumnData {
    /// Creates an empty column.
    pub fn new(of: Type) -> Self {
        match of {
            Type::U64 => ColumnData::U64(Vec::new()),
            Type::I64 => ColumnData::I64(Vec::new()),
            Type::F64 => ColumnData::F64(Vec::new()),
            Type::Str => ColumnData::Str(Dictionary::default()),
            Type::U128 => ColumnData::U128(Vec::new()),
            Type::NullableU64 => ColumnData::NullableU64(Vec::new()),
            Type::NullableF64 => ColumnData::NullableF64(Vec::new()),
            Type::NullableU128 => ColumnData::NullableU128(Vec::new()),
        }
    }

    /// Appends a value. Returns `false`, and changes nothing, if the value is of another type.
    #[must_use]
    pub fn push(&mut self, cell: Cell<'_>) -> bool {
        match (self, cell) {
            (ColumnData::U64(v), Cell::U64(x)) => v.push(x),
            (ColumnData::I64(v), Cell::I64(x)) => v.push(x),
            (ColumnData::F64(v), Cell::F64(x)) => v.push(x),
            (ColumnData::Str(v), Cell::Str(x)) => v.push(x),
            (ColumnData::U128(v), Cell::U128(x)) => v.push(x),
            (ColumnData::NullableU64(v), Cell::U64(x)) => v.push(Some(x)),
            (ColumnData::NullableU64(v), Cell::Null) => v.push(None),
            (ColumnData::NullableF64(v), Cell::F64(x)) => v.push(Some(x)),
            (ColumnData::NullableF64(v), Cell::Null) => v.push(None),
            (ColumnData::NullableU128(v), Cell::U128(x)) => v.push(Some(x)),
            (ColumnData::NullableU128(v), Cell::Null) => v.push(None),
            _ => return false,
        }
        true
    }

    /// Reserves room for this many more values.
    pub fn reserve(&mut self, values: usize) {
        match self {
            ColumnData::U64(v) => v.reserve(values),
            ColumnData::I64(v) => v.reserve(values),
            ColumnData::F64(v) => v.reserve(values),
            ColumnData::Str(v) => v.rows.reserve(values),
            ColumnData::U128(v) => v.reserve(values),
            ColumnData::NullableU64(v) => v.reserve(values),
            ColumnData::NullableF64(v) => v.reserve(values),
            ColumnData::NullableU128(v) => v.reserve(values),
        }
    }

    /// Returns the type.
    pub fn type_of(&self) -> Type {
        match self {
            ColumnData::U64(_) => Type::U64,
            ColumnData::I64(_) => Type::I64,
            ColumnData::F64(_) => Type::F64,
            ColumnData::Str(_) => Type::Str,
            ColumnData::U128(_) => Type::U128,
            ColumnData::NullableU64(_) => Type::NullableU64,
            ColumnData::NullableF64(_) => Type::NullableF64,
            ColumnData::NullableU128(_) => Type::NullableU128,
        }
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        match self {
            ColumnData::U64(v) => v.len(),
            ColumnData::I64(v) => v.len(),
            ColumnData::F64(v) => v.len(),
            ColumnData::Str(v) => v.len(),
            ColumnData::U128(v) => v.len(),
            ColumnData::NullableU64(v) => v.len(),
            ColumnData::NullableF64(v) => v.len(),
            ColumnData::NullableU128(v) => v.len(),
        }
    }

    /// Returns whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Names, each stored once, because a column of names repeats a few names many times.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Dictionary {
    names: Vec<String>,
    by_name: BTreeMap<String, u32>,
    rows: Vec<u32>,
}

impl Dictionary {
    /// Appends a name.
    pub fn push(&mut self, name: &str) {
        let repeats = self.rows.last().filter(|&&last| self.names[last as usize] == name).copied();
        let index = repeats.unwrap_or_else(|| self.intern(name));
        self.rows.push(index);
    }

    /// Returns the index of a name in the list of names; a new name is added to the list.
    pub(crate) fn intern(&mut self, name: &str) -> u32 {
        if let Some(&index) = self.by_name.get(name) {
            return index;
        }
        let index =
            u32::try_from(self.names.len()).expect("a table must have fewer than 2^32 different names");
        self.names.push(name.to_owned());
        self.by_name.insert(name.to_owned(), index);
        index
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Iterates over the names of the rows.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.rows.iter().map(|&index| self.names[index as usize].as_str())
    }

    /// Returns the name in row `row`.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn row(&self, row: usize) -> &str {
        &self.names[self.rows[row] as usize]
    }
}
