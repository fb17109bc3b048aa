//! The self-description of the language: fields, and their accepted values.
//!
//! The parser, the defaults, the messages, the reference and the JSON Schema all use the tables in
//! [`crate::language`]. The parameters of disciplines and of TCP have their own tables, to which
//! this module refers.

use aqmlab_params::{Alias, Default, Kind, Param};

/// One key of a section of a scenario.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// The key.
    pub name: &'static str,
    /// Its accepted values.
    pub form: Form,
    /// The value that applies if the key is not written.
    pub absent: Absent,
    /// The meaning of the key, in one sentence.
    pub help: &'static str,
    /// Other tools' names for the key.
    pub aliases: &'static [Alias],
}

impl Field {
    /// Returns the same field with the names that other tools use for it.
    pub(crate) const fn known_as(self, aliases: &'static [Alias]) -> Field {
        Field { aliases, ..self }
    }
}

/// The notation of a rate of events, such as connections per second, for messages and the reference.
pub(crate) const PER_SECOND: &str = "a number per second such as \"100/s\", from 0.000001/s to 1000000000/s";

/// The accepted values of a key.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Form {
    /// One value.
    One(Kind),
    /// One value of this kind; or a list of steps, each an instant and the value from then on; or a table whose keys
    /// depend on its `kind`.
    OverTime(Kind, &'static [Variant]),
    /// A list of steps: an instant and the value of this kind from then on.
    Steps(Kind),
    /// A list of values of this kind.
    Levels(Kind),
    /// One value of this kind, or this word instead.
    OrWord(Kind, &'static str),
    /// A name: letters, digits and a few other characters.
    Name,
    /// A distribution of values over the flows of a class, or over repeated draws.
    Drawn(&'static Drawn),
    /// A distribution, or steps or a file of values that change during the run.
    DrawnOverTime(&'static Drawn),
    /// The same, or the delays that PackMime-HTTP draws for one end of each connection.
    StageDelay(&'static Drawn),
    /// Packet sizes: one for all, or a distribution.
    Sizes,
    /// A rate of events, such as connections per second: `"100/s"`.
    PerSecond,
    /// Arrival numbers, counted from 1.
    Arrivals,
    /// Flows: a list of classes, each given by its name or by a table with `class` and the indices `flows`.
    Flows,
    /// A list of names; the string says what is named, such as `links`.
    Names(&'static str),
    /// A name, or a list of names; the string says what is named, such as `classes`.
    NameOrNames(&'static str),
    /// A command: a list of texts, the program and its arguments.
    Command,
    /// Several of these words, as a list.
    Words(&'static [&'static str]),
    /// A queue discipline: its name, or a table with `kind` and the discipline's own parameters.
    Queue,
    /// TCP: a profile's name, or a table with `profile` and the transport's own parameters.
    Tcp,
    /// A table with these keys.
    Table(&'static [Field]),
    /// A table whose keys depend on its `kind`.
    Kinds(&'static [Variant]),
    /// Several tables with these keys, each with a name.
    Tables(&'static [Field]),
    /// Several tables whose keys depend on their `kind`.
    TablesOfKinds(&'static [Variant]),
    /// Several arms, each with a name and new values at dotted paths.
    Arms,
    /// A sweep: dotted paths with lists of values, and the tables `zip` and `case`.
    Sweep,
    /// A table of labels by axis.
    Labels,
}

/// A distribution as the value of a key.
#[derive(Clone, Copy, Debug)]
pub struct Drawn {
    /// The kind of one value.
    pub kind: Kind,
    /// The noun for one value, such as `time`.
    pub noun: &'static str,
    /// An example of one value, in the notation of scenarios.
    pub example: &'static str,
    /// The forms of distribution that the quantity may have.
    pub forms: &'static [&'static str],
}

/// The keys of a table with this `kind`.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    /// The value of `kind`.
    pub kind: &'static str,
    /// Its meaning.
    pub help: &'static str,
    /// The keys of such a table except `kind`: those that several kinds share, and those of this kind.
    pub fields: &'static [&'static [Field]],
}

impl Variant {
    /// Iterates over all keys except `kind`.
    pub fn all_fields(&self) -> impl Iterator<Item = &'static Field> + use<> {
        self.fields.iter().flat_map(|f| f.iter())
    }
}

/// The value of a key that is not written.
#[derive(Clone, Copy, Debug)]
pub enum Absent {
    /// The key must be written.
    Required,
    /// This value.
    Is(Default),
    /// The value is given by this rule, stated in words.
    Rule(&'static str),
}

/// The source that is stated for defaults of the language itself.
pub(crate) const OURS: &str = "scenario language";

pub(crate) const fn required(name: &'static str, form: Form, help: &'static str) -> Field {
    Field { name, form, absent: Absent::Required, help, aliases: &[] }
}

pub(crate) const fn default(name: &'static str, form: Form, is: Default, help: &'static str) -> Field {
    Field { name, form, absent: Absent::Is(is), help, aliases: &[] }
}

pub(crate) const fn ruled(name: &'static str, form: Form, rule: &'static str, help: &'static str) -> Field {
    Field { name, form, absent: Absent::Rule(rule), help, aliases: &[] }
}

/// A key that may occur in a table: a field of the language or a parameter of a discipline or of TCP.
pub(crate) trait Key {
    fn name(&self) -> &'static str;
    fn aliases(&self) -> &'static [Alias];
    /// Returns whether the key is a field of the language.
    fn is_field(&self) -> bool {
        false
    }
}

impl Key for Field {
    fn name(&self) -> &'static str {
        self.name
    }
    fn aliases(&self) -> &'static [Alias] {
        self.aliases
    }
    fn is_field(&self) -> bool {
        true
    }
}

impl Key for Param {
    fn name(&self) -> &'static str {
        self.name
    }
    fn aliases(&self) -> &'static [Alias] {
        self.aliases
    }
}

impl<K: Key> Key for &K {
    fn name(&self) -> &'static str {
        (**self).name()
    }
    fn aliases(&self) -> &'static [Alias] {
        (**self).aliases()
    }
    fn is_field(&self) -> bool {
        (**self).is_field()
    }
}
