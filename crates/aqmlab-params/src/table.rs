//! The definition of a parameter: name, kind, range, default, source, other names.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use aqmlab_units::{Packets, Rate, Span};

use crate::{Origin, Settings, Value};

/// One parameter of something that can be configured.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Param {
    /// Its name in a scenario file, after the paper or RFC: `min_th`.
    pub name: &'static str,
    /// The kind of its values, and their range.
    pub kind: Kind,
    /// The value that applies if none is given.
    pub default: Default,
    /// The names that other tools give it.
    pub aliases: &'static [Alias],
    /// The source of the parameter and of its default: a paper or a section of an RFC.
    pub source: &'static str,
    /// Its meaning, in one sentence.
    pub help: &'static str,
    /// Whether plans as data leave the parameter out where it has its default, so that plans from before the
    /// parameter keep their digests. Only the parameters of TCP have this property so far.
    pub implied: bool,
}

/// Another tool's name for a parameter, accepted as input and listed in help.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Alias {
    /// The tool: `"ns-2"`, `"tc"`, `"paper"`.
    pub of: &'static str,
    /// The name: `"thresh_"`.
    pub name: &'static str,
    /// How that tool writes values, if not in the notation used with the parameter's own name.
    pub reading: Reading,
    /// Another parameter, and the value that it takes if this name is used and the scenario gives
    /// it no value.
    pub implies: Option<(&'static str, &'static str)>,
}

/// How another tool writes the values of a parameter. The notation used with the parameter's own name
/// is accepted too.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum Reading {
    /// The same notation as with the parameter's own name.
    Same,
    /// A bare number is in this unit: `"s"`, `"p"` or `"B"`.
    In(&'static str),
    /// 1 means true, and 0 means false.
    Switch,
    /// The words for true (or 1) and false (or 0).
    Words(&'static str, &'static str),
    /// 0 means no limit.
    ZeroIsUnlimited,
    /// The value given is the reciprocal of the parameter's value.
    Inverse,
    /// These numbers request an automatic value. Any other bare number is in the unit, if there is one.
    Automatic {
        /// as with [`Reading::In`]
        unit: Option<&'static str>,
        /// the numbers
        at: &'static [Automatic],
    },
}

/// A number with which another tool requests an automatic value.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Automatic {
    /// The number.
    pub written: i32,
    /// Another parameter, and the value that it takes if the scenario gives it none: the rule by which that
    /// tool computes the automatic value.
    pub with: Option<(&'static str, &'static Value)>,
}

impl Reading {
    /// Returns the request for an automatic value that the bare number `written` is, if it is one.
    pub fn automatic(&self, written: f64) -> Option<&'static Automatic> {
        let Reading::Automatic { at, .. } = self else { return None };
        at.iter().find(|automatic| f64::from(automatic.written) == written)
    }
}

impl Alias {
    /// Creates an alias: the tool `of` calls the parameter `name` and writes its values as we do.
    pub const fn new(of: &'static str, name: &'static str) -> Self {
        Alias { of, name, reading: Reading::Same, implies: None }
    }

    /// Sets the notation in which that tool writes values.
    #[must_use]
    pub const fn reads(self, reading: Reading) -> Self {
        Alias { reading, ..self }
    }

    /// Returns how a value given under this name is to be read, or `None` if it is read in the same way as
    /// under the parameter's own name.
    pub fn meaning(&self) -> Option<String> {
        let reading = match self.reading {
            Reading::Same => None,
            Reading::In(unit) => Some(in_unit(unit)),
            Reading::Automatic { unit, at } => {
                let numbers = unit.map(in_unit).into_iter();
                Some(numbers.chain(at.iter().map(Automatic::meaning)).collect::<Vec<_>>().join("; "))
            }
            Reading::Switch => Some("1 and 0 are true and false".to_string()),
            Reading::Words(yes, no) => Some(format!("true is `{yes}`, false is `{no}`")),
            Reading::ZeroIsUnlimited => Some("0 is unlimited".to_string()),
            Reading::Inverse => Some("its inverse".to_string()),
        };
        let implied = self.implies.map(|(name, word)| format!("`{name}` is then `{word}`"));
        let both: Vec<String> = reading.into_iter().chain(implied).collect();
        (!both.is_empty()).then(|| both.join("; "))
    }
}

impl Automatic {
    fn meaning(&self) -> String {
        let with = self.with.map_or_else(String::new, |(name, value)| format!(", with `{name}` `{value}`"));
        format!("{} is automatic{with}", self.written)
    }
}

/// Returns what a bare number means that is in this unit.
fn in_unit(unit: &str) -> String {
    let unit = match unit {
        "s" => "seconds",
        "p" => "packets",
        _ => "bytes",
    };
    format!("a bare number is in {unit}")
}

/// The kind of values of a parameter. Ranges are inclusive unless the name of the variant says otherwise.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum Kind {
    /// `true` or `false`
    Flag,
    /// A whole number.
    Integer {
        /// least
        min: u64,
        /// largest
        max: u64,
    },
    /// A whole number, or the word `unlimited`.
    Limit {
        /// least
        min: u64,
        /// largest value other than `unlimited`
        max: u64,
    },
    /// A number in `[min, max]`.
    Number {
        /// least
        min: f64,
        /// largest
        max: f64,
    },
    /// A number in `(above, max]`.
    NumberAbove {
        /// exclusive lower bound
        above: f64,
        /// largest
        max: f64,
    },
    /// A length of time.
    Span {
        /// least
        min: Span,
        /// largest
        max: Span,
    },
    /// A data rate.
    Rate {
        /// least
        min: Rate,
        /// largest
        max: Rate,
    },
    /// Packets, bytes, bandwidth-delay products or a time at the link's rate; `min` applies to
    /// packets and bytes alike.
    Size {
        /// smallest number of packets or bytes
        min: Packets,
    },
    /// A size that must be in bytes.
    Bytes {
        /// least
        min: u64,
        /// largest
        max: u64,
    },
    /// One of these words.
    Choice(&'static [&'static str]),
    /// One of these words, or another name that only some hosts know.
    Open(&'static [&'static str]),
    /// Free text.
    Text,
    /// A differentiated-services code point: a number from 0 to 63, or a name such as `EF`.
    Dscp,
    /// The name of a traffic class of the scenario.
    TrafficClass,
    /// A port of the scenario's traffic: a number from 0 to 65535.
    Port,
    /// Several values of one kind, at least one.
    List(&'static Kind),
    /// A table of these parameters.
    Table(&'static [Param]),
    /// A queue discipline: its name, or a table with `kind` and the discipline's own parameters.
    Discipline,
}

/// The value of a parameter that is not given.
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum Default {
    /// There is no default: a value must be given.
    Required,
    /// This flag.
    Flag(bool),
    /// This count.
    Integer(u64),
    /// No limit.
    Unlimited,
    /// This number.
    Number(f64),
    /// This length of time.
    Span(Span),
    /// This rate.
    Rate(Rate),
    /// This many packets.
    Packets(u64),
    /// This many bytes.
    Bytes(u64),
    /// This multiple of the bandwidth-delay product.
    Bdp(f64),
    /// This word.
    Choice(&'static str),
    /// No value; the text says what this means.
    Nothing(&'static str),
    /// Computed from the context by this rule.
    Auto(&'static str),
}

impl Default {
    /// Returns the default as a value, or `None` if the parameter is required.
    pub fn value(&self) -> Option<Value> {
        use aqmlab_units::Bytes;
        use aqmlab_units::text::Size;
        Some(match *self {
            Default::Required => return None,
            Default::Flag(v) => Value::Flag(v),
            Default::Integer(v) => Value::Integer(v),
            Default::Unlimited => Value::Unlimited,
            Default::Number(v) => Value::Number(v),
            Default::Span(v) => Value::Span(v),
            Default::Rate(v) => Value::Rate(v),
            Default::Packets(v) => Value::Size(Size::Packets(Packets::new(v))),
            Default::Bytes(v) => Value::Size(Size::Bytes(Bytes::new(v))),
            Default::Bdp(v) => Value::Size(Size::Bdp(v)),
            Default::Choice(v) => Value::Choice(v),
            Default::Nothing(_) => Value::Nothing,
            Default::Auto(_) => Value::Auto,
        })
    }
}

impl Param {
    /// Creates a required parameter without a name.
    pub const fn of(kind: Kind) -> Self {
        let default = Default::Required;
        Param { name: "", kind, default, aliases: &[], source: "", help: "", implied: false }
    }

    /// Returns whether `name` is this parameter's name or one of its aliases.
    pub fn answers_to(&self, name: &str) -> bool {
        self.name == name || self.alias(name).is_some()
    }

    /// Returns the alias `name`, or `None` if that is the parameter's own name.
    pub fn alias(&self, name: &str) -> Option<&'static Alias> {
        self.aliases.iter().find(|a| a.name == name && a.name != self.name)
    }
}

impl Settings {
    /// Returns every parameter of `table` at its default; required parameters are missing until
    /// [`Settings::set`] sets them.
    pub fn defaults(table: &'static [Param]) -> Self {
        let mut settings = Settings::default();
        for parameter in table {
            let Some(value) = parameter.default.value() else { continue };
            let origin = match parameter.default {
                Default::Auto(rule) => Origin::Derived(rule.into()),
                _ => Origin::Default(parameter.source),
            };
            settings.set(parameter.name, value, origin);
        }
        settings
    }

    /// Returns these values in the order of `table`, with the table's default for each missing value.
    #[must_use]
    pub fn completed(&self, table: &'static [Param]) -> Self {
        let mut all = Settings::defaults(table);
        for s in self.iter() {
            all.set(s.name, s.value.clone(), s.origin.clone());
        }
        all
    }
}
