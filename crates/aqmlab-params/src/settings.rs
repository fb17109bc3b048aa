//! The values of a table's parameters, and the origin of each. A value may itself be a table of values.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::{fmt, slice};

use aqmlab_units::text::Size;
use aqmlab_units::{Rate, Span};

/// The value of one parameter.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Value {
    /// A value that is still to be computed from the context; never present in effective parameters.
    Auto,
    /// Yes or no.
    Flag(bool),
    /// A count.
    Integer(u64),
    /// No limit, for a parameter that could also be given as a count.
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
    /// No value, for a parameter that may be left without one.
    Nothing,
    /// Several values of the same kind.
    List(Vec<Value>),
    /// A nested table with its own parameters.
    Table(Settings),
    /// A queue discipline inside another one.
    Discipline {
        /// Its name in the registry: `"red"`.
        kind: &'static str,
        /// Its parameters.
        settings: Settings,
    },
    /// A traffic class of the scenario.
    TrafficClass {
        /// Its name.
        name: String,
        /// Its number, which identifies it in packets.
        number: usize,
    },
    /// A port of the scenario's traffic.
    Port {
        /// The port.
        number: u16,
        /// The numbers of the traffic classes that use it.
        classes: Vec<usize>,
    },
}

impl Value {
    /// The word for [`Value::Auto`].
    pub const AUTO: &'static str = "auto";
    /// The word for [`Value::Unlimited`].
    pub const UNLIMITED: &'static str = "unlimited";
    /// The word that stands for [`Value::Nothing`] where values are shown.
    pub const NOTHING: &'static str = "none";

    /// Returns the numbers of the traffic classes that this value names, directly or through their port.
    pub fn traffic_classes(&self) -> &[usize] {
        match self {
            Value::TrafficClass { number, .. } => slice::from_ref(number),
            Value::Port { classes, .. } => classes,
            _ => &[],
        }
    }
}

impl fmt::Display for Value {
    /// Writes the value as in a scenario file, but without quotes.
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
            Value::Port { number, .. } => number.fmt(f),
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

/// Origin of a value.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Origin {
    /// Written in the scenario.
    Given,
    /// Part of a named profile or preset.
    Profile(Cow<'static, str>),
    /// The table's default, with its source.
    Default(&'static str),
    /// Computed by this rule.
    Derived(Cow<'static, str>),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Given => f.write_str("given"),
            Origin::Profile(name) => write!(f, "profile {name}"),
            Origin::Default(source) => write!(f, "default ({source})"),
            Origin::Derived(rule) => write!(f, "derived: {rule}"),
        }
    }
}

/// One value with its origin.
#[derive(Clone, PartialEq, Debug)]
pub struct Setting {
    /// The parameter.
    pub name: &'static str,
    /// Its value.
    pub value: Value,
    /// Origin of the value.
    pub origin: Origin,
}

/// The values of a table's parameters, in the table's order.
#[derive(Clone, PartialEq, Debug, core::default::Default)]
pub struct Settings {
    items: Vec<Setting>,
}

/// The error for a value that is not accepted; it names the parameter, its value, and the accepted values.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParamError {
    /// Path from the outermost table to the table that holds the parameter; empty if that is the outermost
    /// table itself.
    pub within: Vec<Place>,
    /// The parameter whose value is wrong.
    pub name: &'static str,
    /// The reason, a sentence without a full stop: ``min_th `30p` exceeds max_th `10p` ``.
    pub message: String,
}

/// A parameter that holds a table, or a list of tables.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// Its name.
    pub name: &'static str,
    /// Index of the item in the list, from 0.
    pub item: Option<usize>,
}

impl fmt::Display for ParamError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl core::error::Error for ParamError {}

impl ParamError {
    /// Creates an error about the parameter `name`.
    pub fn new(name: &'static str, message: impl Into<String>) -> Self {
        ParamError { within: Vec::new(), name, message: message.into() }
    }

    /// Creates the error for a `word` that is not among the `words` of the choice `name`.
    pub fn no_such_word(name: &'static str, word: &str, words: &[&str]) -> Self {
        ParamError::new(name, format!("{name} `{word}` is not one of {words:?}"))
    }

    /// Returns this error with its path extended outwards by one level: the table with the error is the value
    /// of the parameter `name` or, if `item` is given, that item of the list of tables that `name` holds.
    #[must_use]
    pub fn under(mut self, name: &'static str, item: Option<usize>) -> Self {
        self.within.insert(0, Place { name, item });
        self
    }
}

impl Settings {
    /// Sets or replaces one value.
    pub fn set(&mut self, name: &'static str, value: Value, origin: Origin) {
        match self.items.iter_mut().find(|s| s.name == name) {
            Some(s) => (s.value, s.origin) = (value, origin),
            None => self.items.push(Setting { name, value, origin }),
        }
    }

    /// Iterates over all values.
    pub fn iter(&self) -> impl Iterator<Item = &Setting> {
        self.items.iter()
    }

    /// Returns one value, if present.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.items.iter().find(|s| s.name == name).map(|s| &s.value)
    }

    /// Returns whether the scenario itself contains this value.
    pub fn is_given(&self, name: &str) -> bool {
        self.items.iter().any(|s| s.name == name && s.origin == Origin::Given)
    }

    /// Returns whether this value is still to be computed.
    pub fn is_auto(&self, name: &str) -> bool {
        self.get(name) == Some(&Value::Auto)
    }

    /// Returns the values in the list `name`; there are none if the parameter has no value.
    ///
    /// # Errors
    /// If the value is missing, still automatic or of another kind.
    pub fn list(&self, name: &'static str) -> Result<&[Value], ParamError> {
        match self.get(name) {
            Some(Value::List(items)) => Ok(items),
            Some(Value::Nothing) => Ok(&[]),
            other => Err(mismatch(name, "a list", other)),
        }
    }

    /// Returns the tables in the list `name`; there are none if the parameter has no value.
    ///
    /// # Errors
    /// If the value is missing, still automatic or of another kind.
    pub fn tables(&self, name: &'static str) -> Result<Vec<&Settings>, ParamError> {
        let mut tables = Vec::new();
        for item in self.list(name)? {
            match item {
                Value::Table(settings) => tables.push(settings),
                other => return Err(mismatch(name, "a list of tables", Some(other))),
            }
        }
        Ok(tables)
    }

    /// Returns the discipline that the parameter `name` holds, with its parameters, or `None` if it holds
    /// none.
    ///
    /// # Errors
    /// If the value is missing, still automatic or of another kind.
    pub fn discipline(&self, name: &'static str) -> Result<Option<(&'static str, &Settings)>, ParamError> {
        match self.get(name) {
            Some(Value::Discipline { kind, settings }) => Ok(Some((*kind, settings))),
            Some(Value::Nothing) => Ok(None),
            other => Err(mismatch(name, "a queue discipline", other)),
        }
    }
}

pub(crate) fn mismatch(name: &'static str, what: &str, found: Option<&Value>) -> ParamError {
    let found = found.map_or_else(|| "missing".to_string(), |v| format!("`{v}`"));
    ParamError::new(name, format!("{name} must be {what}, but it is {found}"))
}
