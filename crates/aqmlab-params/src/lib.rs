//! Parameter tables.
//!
//! Everything that can be configured (a discipline, a TCP profile, a traffic model) describes its
//! parameters in one static table of [`Param`]s. The scenario parser, the defaults, the origin of
//! each value in `show`, the help of `aqm show`, the reference chapters and the JSON Schema all
//! read that table; no parameter is described twice.
//!
//! [`params!`] defines a table as typed [`Row`]s. The same rows give the struct that holds effective values,
//! the function that reads it, and the access to single values while automatic ones are computed. A name that
//! is not in the table does not compile.
//!
//! Every value goes through the following steps. The parser converts text to a [`Value`] according to the
//! table's [`Kind`] and collects the values in [`Settings`], each with an [`Origin`]. The owner of the table
//! then resolves them once: it fills in presets and defaults, and computes automatic values from its context
//! (link rate, round-trip time). The results are *effective* parameters.
#![no_std]
extern crate alloc;

mod field;
mod row;
mod settings;
mod stored;
mod table;
mod words;

pub use field::{Field, Words};
pub use row::Row;
pub use settings::{Origin, ParamError, Place, Setting, Settings, Value};
pub use stored::{Limit, Open, Stored};
pub use table::{Alias, Automatic, Default, Kind, Param, Reading};
