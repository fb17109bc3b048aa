//! The value of a parameter.

use alloc::string::String;
use core::fmt;

use aqmlab_units::text::Size;
use aqmlab_units::{Rate, Span};

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
}

impl Value {
    /// The word for [`Value::Unlimited`].
    pub const UNLIMITED: &'static str = "unlimited";
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
        }
    }
}
