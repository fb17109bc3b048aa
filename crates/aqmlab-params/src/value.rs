//! The value of a parameter.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use aqmlab_units::text::Size;
use aqmlab_units::{Rate, Span};

use crate::Settings;

/// The value of one parameter.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Value {
    /// To be computed from the context; never left in effective parameters.
    Auto,
    /// Yes or no.
    Flag(bool),
    /// A count.
    Integer(u64),
    /// No limit, where there could be a count.
    Unlimited,
    /// A plain number: a gain, a weight, a probability.
    Number(f64),
    /// A length of time.
    Span(Span),
    /// A data rate.
    Rate(Rate),
    /// Packets, bytes or bandwidth-delay products.
    Size(Size),
    /// One word of a fixed list.
    Choice(&'static str),
    /// Free text: a name.
    Text(String),
    /// Nothing, where there could be a value.
    Nothing,
    /// Several values of one kind.
    List(Vec<Value>),
    /// A table of parameters of its own.
    Table(Settings),
    /// A queue discipline inside of another.
    Discipline {
        /// The registry's name of it: `"red"`.
        kind: &'static str,
        /// Its parameters.
        settings: Settings,
    },
    /// A traffic class of the scenario.
    TrafficClass {
        /// Its name.
        name: String,
        /// Its number, by which packets know it.
        number: usize,
    },
}

impl Value {
    /// The word for [`Value::Unlimited`].
    pub const UNLIMITED: &'static str = "unlimited";
    /// The word for [`Value::Nothing`] where values are shown.
    pub const NOTHING: &'static str = "none";
}

impl fmt::Display for Value {
    /// As it would be written in a scenario file, without quotes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Auto => f.write_str("auto"),
            Value::Unlimited => f.write_str(Value::UNLIMITED),
            Value::Flag(v) => v.fmt(f),
            Value::Integer(v) => v.fmt(f),
            Value::Number(v) => v.fmt(f),
            Value::Span(v) => v.fmt(f),
            Value::Rate(v) => v.fmt(f),
            Value::Size(v) => v.fmt(f),
            Value::Choice(v) => f.write_str(v),
            Value::Text(v) => f.write_str(v),
            Value::Nothing => f.write_str(Value::NOTHING),
            Value::TrafficClass { name, .. } => f.write_str(name),
            Value::List(items) => listed(f, ["[", "]"], items.iter(), |f, item| item.fmt(f)),
            Value::Table(settings) => table(f, None, settings),
            Value::Discipline { kind, settings } => table(f, Some(kind), settings),
        }
    }
}

fn table(f: &mut fmt::Formatter<'_>, kind: Option<&str>, settings: &Settings) -> fmt::Result {
    if let Some(kind) = kind {
        write!(f, "{kind} ")?;
    }
    listed(f, ["{", "}"], settings.iter(), |f, s| write!(f, "{} = {}", s.name, s.value))
}

fn listed<T>(
    f: &mut fmt::Formatter<'_>,
    [open, close]: [&str; 2],
    items: impl Iterator<Item = T>,
    each: impl Fn(&mut fmt::Formatter<'_>, T) -> fmt::Result,
) -> fmt::Result {
    f.write_str(open)?;
    for (i, item) in items.enumerate() {
        if i > 0 {
            f.write_str(", ")?;
        }
        each(f, item)?;
    }
    f.write_str(close)
}
