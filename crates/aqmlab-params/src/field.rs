//! The types of values, and their conversion from and to [`Value`].

use alloc::string::String;
use alloc::vec::Vec;

use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Rate, Span};

use crate::settings::mismatch;
use crate::{Limit, Open, ParamError, Settings, Value};

/// A type of values.
pub trait Field: Sized {
    /// Converts the value of the parameter `name`.
    ///
    /// # Errors
    /// If the value is missing, still automatic or of another kind. The parser has checked kinds against the
    /// table, so this is a mistake in the code of the table's owner. It is reported as an error rather than a
    /// panic because users can register parameter tables of their own.
    fn from_value(name: &'static str, value: Option<&Value>) -> Result<Self, ParamError>;

    /// Returns the value that settings hold.
    fn into_value(self) -> Value;
}

/// A type whose values are words; [`words!`](crate::words!) defines such types.
pub trait Words: Copy + 'static {
    /// The words that scenario files use.
    const WORDS: &'static [&'static str];

    /// Returns the value that `word` stands for.
    fn from_word(word: &str) -> Option<Self>;

    /// Returns the word that stands for this value.
    fn to_word(self) -> &'static str;
}

/// Defines the conversions of a type and, if it has one, the method of [`Settings`] that reads it by name.
macro_rules! fields {
    ($($type:ty $(, $reader:ident)?: $what:literal, $pattern:pat => $found:expr, $value:ident => $setting:expr;)+) => {
        $(impl Field for $type {
            fn from_value(name: &'static str, value: Option<&Value>) -> Result<Self, ParamError> {
                match value {
                    Some($pattern) => Ok($found),
                    other => Err(mismatch(name, $what, other)),
                }
            }

            fn into_value(self) -> Value {
                let $value = self;
                $setting
            }
        })+

        impl Settings {
            $($(#[doc = concat!("Returns the value of `name`, ", $what, ".")]
            ///
            /// # Errors
            /// If the value is missing, still automatic or of another kind.
            pub fn $reader(&self, name: &'static str) -> Result<$type, ParamError> {
                Field::from_value(name, self.get(name))
            })?)+
        }
    };
}

fields! {
    bool, flag: "true or false", Value::Flag(v) => *v, v => Value::Flag(v);
    u64, integer: "a whole number", Value::Integer(v) => *v, v => Value::Integer(v);
    f64, number: "a number", Value::Number(v) => *v, v => Value::Number(v);
    Span, span: "a time", Value::Span(v) => *v, v => Value::Span(v);
    Rate: "a rate", Value::Rate(v) => *v, v => Value::Rate(v);
    Size, size: "a size", Value::Size(v) => *v, v => Value::Size(v);
    Bytes: "a number of bytes", Value::Size(Size::Bytes(v)) => *v, v => Value::Size(Size::Bytes(v));
    &'static str, choice: "one word of a list", Value::Choice(v) => v, v => Value::Choice(v);
    String, text: "a string", Value::Text(v) => v.clone(), v => Value::Text(v);
}

/// A queue discipline: its name, and its parameters.
impl Field for (&'static str, Settings) {
    fn from_value(name: &'static str, value: Option<&Value>) -> Result<Self, ParamError> {
        match value {
            Some(Value::Discipline { kind, settings }) => Ok((kind, settings.clone())),
            other => Err(mismatch(name, "a queue discipline", other)),
        }
    }

    fn into_value(self) -> Value {
        Value::Discipline { kind: self.0, settings: self.1 }
    }
}

impl Field for Settings {
    fn from_value(name: &'static str, value: Option<&Value>) -> Result<Self, ParamError> {
        match value {
            Some(Value::Table(settings)) => Ok(settings.clone()),
            other => Err(mismatch(name, "a table", other)),
        }
    }

    fn into_value(self) -> Value {
        Value::Table(self)
    }
}

/// A value of any kind, not converted.
impl Field for Value {
    fn from_value(name: &'static str, value: Option<&Value>) -> Result<Self, ParamError> {
        value.cloned().ok_or_else(|| mismatch(name, "a value", None))
    }

    fn into_value(self) -> Value {
        self
    }
}

impl<T: Field> Field for Vec<T> {
    fn from_value(name: &'static str, value: Option<&Value>) -> Result<Self, ParamError> {
        match value {
            Some(Value::List(items)) => items.iter().map(|item| T::from_value(name, Some(item))).collect(),
            other => Err(mismatch(name, "a list", other)),
        }
    }

    fn into_value(self) -> Value {
        Value::List(self.into_iter().map(T::into_value).collect())
    }
}

impl<T: Field> Field for Option<T> {
    fn from_value(name: &'static str, value: Option<&Value>) -> Result<Self, ParamError> {
        if value == Some(&Value::Nothing) { Ok(None) } else { T::from_value(name, value).map(Some) }
    }

    fn into_value(self) -> Value {
        self.map_or(Value::Nothing, T::into_value)
    }
}

impl Field for Limit {
    fn from_value(name: &'static str, value: Option<&Value>) -> Result<Self, ParamError> {
        match value {
            Some(Value::Unlimited) => Ok(Limit::Unlimited),
            Some(Value::Integer(v)) => Ok(Limit::At(*v)),
            other => Err(mismatch(name, "a whole number or unlimited", other)),
        }
    }

    fn into_value(self) -> Value {
        match self {
            Limit::At(v) => Value::Integer(v),
            Limit::Unlimited => Value::Unlimited,
        }
    }
}

impl<W: Words> Field for Open<W> {
    fn from_value(name: &'static str, value: Option<&Value>) -> Result<Self, ParamError> {
        match value {
            Some(Value::Text(other)) => Ok(Open::Other(other.clone())),
            word => W::from_value(name, word).map(Open::Word),
        }
    }

    fn into_value(self) -> Value {
        match self {
            Open::Word(word) => word.into_value(),
            Open::Other(name) => Value::Text(name),
        }
    }
}

impl<W: Words> Field for W {
    fn from_value(name: &'static str, value: Option<&Value>) -> Result<Self, ParamError> {
        let word = <&str>::from_value(name, value)?;
        W::from_word(word).ok_or_else(|| ParamError::no_such_word(name, word, W::WORDS))
    }

    fn into_value(self) -> Value {
        Value::Choice(self.to_word())
    }
}
