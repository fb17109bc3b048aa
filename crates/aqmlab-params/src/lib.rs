//! Parameter tables.
//!
//! Whatever can be configured (a discipline, a TCP profile, a traffic model) describes its parameters in one
//! static table of [`Param`]s. The scenario parser, the defaults, the origin of each value in `show`, the
//! help of `aqm show`, the reference chapters and the JSON Schema all read that table; no parameter is
//! described twice.
//!
//! The path of a value: the parser turns text into a [`Value`] by the table's [`Kind`], collects them in
//! [`Settings`] with an [`Origin`] each, and the owner of the table resolves them once: presets and defaults
//! for what is missing, then what is automatic from its context (link rate, round-trip time). What is left
//! are *effective* parameters.
#![no_std]
extern crate alloc;

mod settings;
mod table;
mod words;

pub use settings::{Origin, ParamError, Place, Setting, Settings, Value};
pub use table::{Alias, Default, Kind, Param, Reading};
