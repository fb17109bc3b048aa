//! Typed parameters: a row defines a parameter once, and the type of its values belongs to it.

use alloc::borrow::Cow;
use alloc::string::String;
use core::marker::PhantomData;

use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Packets, Rate, Span};

use crate::{
    Alias, Default, Field, Kind, Limit, Open, Origin, Param, ParamError, Settings, Stored, Value, Words,
};

/// A parameter whose values have the type `T`. Its bounds, its default and its values in presets have this
/// type too.
#[derive(Debug)]
pub struct Row<T> {
    /// The parameter without its type.
    pub param: Param,
    values: PhantomData<fn() -> T>,
}

impl<T> Clone for Row<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Row<T> {}

impl<T> Row<T> {
    /// Creates a required parameter without a name; `kind` describes values of type `T`.
    pub const fn of(kind: Kind) -> Self {
        Row { param: Param::of(kind), values: PhantomData }
    }

    /// Sets the name and, unless it is empty, the help. The text of a documentation comment begins with
    /// a space, which does not belong to the help.
    #[must_use]
    pub const fn named(mut self, name: &'static str, help: &'static str) -> Self {
        self.param.name = name;
        if !help.is_empty() {
            self.param.help = help.split_at(1).1;
        }
        self
    }

    /// Sets the meaning, one sentence.
    #[must_use]
    pub const fn help(mut self, help: &'static str) -> Self {
        self.param.help = help;
        self
    }

    /// Sets the source of the parameter and of its default.
    #[must_use]
    pub const fn source(mut self, source: &'static str) -> Self {
        self.param.source = source;
        self
    }

    /// Sets the names that other tools give the parameter.
    #[must_use]
    pub const fn aliases(mut self, aliases: &'static [Alias]) -> Self {
        self.param.aliases = aliases;
        self
    }

    /// Sets the rule by which the value is computed if it is not given.
    #[must_use]
    pub const fn auto(mut self, rule: &'static str) -> Self {
        self.param.default = Default::Auto(rule);
        self
    }

    /// Makes the parameter one that may be left without a value; `meaning` explains that case.
    #[must_use]
    pub const fn optional(mut self, meaning: &'static str) -> Row<Option<T>> {
        self.param.default = Default::Nothing(meaning);
        Row { param: self.param, values: PhantomData }
    }

    /// Makes plans as data leave the parameter out where it has its default; see [`Param::implied`].
    #[must_use]
    pub const fn implied(mut self) -> Self {
        self.param.implied = true;
        self
    }

    const fn or(mut self, default: Default) -> Self {
        self.param.default = default;
        self
    }

    /// Returns the parameter's name.
    pub const fn name(&self) -> &'static str {
        self.param.name
    }

    /// Returns whether the value is still to be computed.
    pub fn is_auto(&self, settings: &Settings) -> bool {
        settings.is_auto(self.name())
    }

    /// Returns an error about this parameter.
    pub fn error(&self, message: impl Into<String>) -> ParamError {
        ParamError::new(self.name(), message)
    }
}

impl<T: Field> Row<T> {
    /// Returns the value in `settings`.
    ///
    /// # Errors
    /// If the value is missing, still automatic or of another kind.
    pub fn read(&self, settings: &Settings) -> Result<T, ParamError> {
        T::from_value(self.name(), settings.get(self.name()))
    }

    /// Returns the value in `settings` as a struct stores it.
    ///
    /// # Errors
    /// As [`Row::read`], or if the struct's type cannot hold the value.
    pub fn store<F: Stored<T>>(&self, settings: &Settings) -> Result<F, ParamError> {
        F::stored(self.name(), self.read(settings)?)
    }

    /// Returns the name with this value.
    pub fn pair(&self, value: T) -> (&'static str, Value) {
        (self.name(), value.into_value())
    }

    /// Sets the value that `rule` yields.
    pub fn derive(&self, settings: &mut Settings, value: T, rule: impl Into<Cow<'static, str>>) {
        settings.set(self.name(), value.into_value(), Origin::Derived(rule.into()));
    }

    /// Sets the value that the table's rule yields, if the value is still to be computed.
    ///
    /// # Errors
    /// Those of `value`.
    pub fn derive_if_auto(
        &self,
        settings: &mut Settings,
        value: impl FnOnce(&Settings) -> Result<T, ParamError>,
    ) -> Result<(), ParamError> {
        if let Default::Auto(rule) = self.param.default
            && self.is_auto(settings)
        {
            let value = value(settings)?;
            self.derive(settings, value, rule);
        }
        Ok(())
    }
}

/// Defines the constructor of the parameters with values of one type, their default, and the pair of name and
/// value with which presets set them.
macro_rules! of_type {
    ($type:ty: $value:ident => $default:expr, $setting:expr) => {
        impl Row<$type> {
            /// Sets the default.
            #[must_use]
            pub const fn default(self, $value: $type) -> Self {
                self.or($default)
            }

            /// Returns the name with this value, for presets.
            pub const fn is(self, $value: $type) -> (&'static str, Value) {
                (self.param.name, $setting)
            }
        }
    };
}

of_type!(bool: v => Default::Flag(v), Value::Flag(v));
of_type!(u64: v => Default::Integer(v), Value::Integer(v));
of_type!(f64: v => Default::Number(v), Value::Number(v));
of_type!(Span: v => Default::Span(v), Value::Span(v));
of_type!(Rate: v => Default::Rate(v), Value::Rate(v));
of_type!(Bytes: v => Default::Bytes(v.get()), Value::Size(Size::Bytes(v)));
of_type!(Limit: v => match v {
    Limit::At(n) => Default::Integer(n),
    Limit::Unlimited => Default::Unlimited,
}, match v {
    Limit::At(n) => Value::Integer(n),
    Limit::Unlimited => Value::Unlimited,
});
of_type!(Size: v => match v {
    Size::Packets(n) => Default::Packets(n.get()),
    Size::Bytes(n) => Default::Bytes(n.get()),
    Size::Bdp(multiple) => Default::Bdp(multiple),
    Size::Time(_) => panic!("a time is no default of a size"),
}, Value::Size(v));

impl Row<bool> {
    /// Creates a parameter that is true or false.
    pub const fn flag(default: bool) -> Self {
        Self::of(Kind::Flag).default(default)
    }
}

impl Row<u64> {
    /// Creates a parameter that is a whole number.
    pub const fn integer(min: u64, max: u64) -> Self {
        Row::of(Kind::Integer { min, max })
    }
}

impl Row<Limit> {
    /// Creates a parameter that is a whole number or unlimited.
    pub const fn limit(min: u64, max: u64) -> Self {
        Row::of(Kind::Limit { min, max })
    }
}

impl Row<f64> {
    /// Creates a parameter that is a number in `[min, max]`.
    pub const fn number(min: f64, max: f64) -> Self {
        Row::of(Kind::Number { min, max })
    }

    /// Creates a parameter that is a number in `(above, max]`.
    pub const fn above(above: f64, max: f64) -> Self {
        Row::of(Kind::NumberAbove { above, max })
    }
}

impl Row<Span> {
    /// Creates a parameter that is a length of time.
    pub const fn span(min: Span, max: Span) -> Self {
        Row::of(Kind::Span { min, max })
    }
}

impl Row<Rate> {
    /// Creates a parameter that is a data rate.
    pub const fn rate(min: Rate, max: Rate) -> Self {
        Row::of(Kind::Rate { min, max })
    }
}

impl Row<Size> {
    /// Creates a parameter that is a size of at least one packet or byte.
    pub const fn size() -> Self {
        Row::of(Kind::Size { min: Packets::new(1) })
    }
}

impl Row<Bytes> {
    /// Creates a parameter that is a number of bytes.
    pub const fn bytes(min: u64, max: u64) -> Self {
        Row::of(Kind::Bytes { min, max })
    }
}

impl Row<&'static str> {
    /// Creates a parameter that is one of `words`, by default the first.
    pub const fn one_of(words: &'static [&'static str]) -> Self {
        Self::of(Kind::Choice(words)).or(Default::Choice(words[0]))
    }
}

impl<W: Words> Row<W> {
    /// Creates a parameter that is one of the words of `W`.
    pub const fn words() -> Self {
        Row::of(Kind::Choice(W::WORDS))
    }

    /// Creates a parameter that is one of the words of `W`, by default the word `default`. In a constant, any
    /// other default does not compile.
    pub const fn choice(default: &'static str) -> Self {
        Self::words().default(default)
    }

    /// Returns this parameter with only some of the words of `W`.
    #[must_use]
    pub const fn only(mut self, words: &'static [&'static str]) -> Self {
        self.param.kind = Kind::Choice(words);
        self
    }

    /// Replaces the default.
    #[must_use]
    pub const fn default(self, word: &'static str) -> Self {
        self.or(Default::Choice(a_word_of(W::WORDS, word)))
    }

    /// Returns the name with this word, for presets. In a constant, another word does not compile.
    pub const fn is(self, word: &'static str) -> (&'static str, Value) {
        (self.param.name, Value::Choice(a_word_of(W::WORDS, word)))
    }
}

impl<W: Words> Row<Open<W>> {
    /// Creates a parameter that is one of the words of `W`, by default the word `default`, or another name.
    pub const fn open(default: &'static str) -> Self {
        Row::of(Kind::Open(W::WORDS)).or(Default::Choice(a_word_of(W::WORDS, default)))
    }

    /// Returns the name with this word, for presets. In a constant, another word does not compile.
    pub const fn is(self, word: &'static str) -> (&'static str, Value) {
        (self.param.name, Value::Choice(a_word_of(W::WORDS, word)))
    }
}

impl Alias {
    /// Adds another parameter, and the word that it takes if this alias is used.
    #[must_use]
    pub const fn implies<W: Words>(self, other: Row<W>, word: &'static str) -> Self {
        Alias { implies: Some((other.param.name, a_word_of(W::WORDS, word))), ..self }
    }
}

const fn a_word_of(words: &[&str], word: &'static str) -> &'static str {
    let mut i = 0;
    while i < words.len() {
        if same(words[i].as_bytes(), word.as_bytes()) {
            return word;
        }
        i += 1;
    }
    panic!("the parameter has no such word")
}

const fn same(a: &[u8], b: &[u8]) -> bool {
    let mut i = 0;
    while i < a.len() && i < b.len() && a[i] == b[i] {
        i += 1;
    }
    i == a.len() && i == b.len()
}

/// Defines the parameters of a discipline or an endpoint: a struct with one field per parameter, `Self::TABLE`,
/// `Self::read`, and a function per parameter that returns its [`Row`] and has its name.
///
/// A documentation comment is the field's and the parameter's: it becomes the help. Without one, the
/// help of the row applies. `..Other { a, b }` puts the rows `a` and `b` of another struct into the table, without
/// fields. `a: u32 as Bytes` stores values of type `Bytes` as a `u32` ([`Stored`]). Fields in a `derived` block
/// after the struct's are no parameters: `Self::read` leaves them at the defaults of their types.
///
/// ```
/// use aqmlab_params::{Origin, Row, Settings, params, words};
/// use aqmlab_units::Span;
///
/// words!(pub enum Clock { Exact = "exact", Coarse = "coarse" });
///
/// params! {
///     /// The parameters of a delay controller.
///     pub struct Delays {
///         /// acceptable waiting time
///         target: Span = Row::span(Span::ns(1), Span::s(100)).default(Span::ms(5)).source("RFC 8289, 4.2"),
///         /// time between two samples
///         period: Span = Row::span(Span::us(1), Span::s(1)).auto("ten times target").source("ours"),
///         /// arithmetic
///         clock: Clock = Row::choice("exact").source("ours"),
///     }
/// }
///
/// assert_eq!(Delays::TABLE[0].name, "target");
/// assert_eq!(Delays::TABLE[0].help, "acceptable waiting time");
/// let mut settings = Settings::defaults(Delays::TABLE);
/// assert!(Delays::period().is_auto(&settings));
/// let target = Delays::target().read(&settings)?;
/// Delays::period().derive(&mut settings, target * 10, "ten times target");
/// let delays = Delays::read(&settings)?;
/// assert_eq!((delays.period, delays.clock), (Span::ms(50), Clock::Exact));
/// # Ok::<(), aqmlab_params::ParamError>(())
/// ```
///
/// A misspelt name, a bound or a default of another type, and a word that the choice lacks do not compile:
///
/// ```compile_fail,E0080
/// # use aqmlab_params::{Row, words};
/// words!(pub enum Clock { Exact = "exact", Coarse = "coarse" });
/// const CLOCK: Row<Clock> = Row::choice("fine");
/// ```
#[macro_export]
macro_rules! params {
    (@row $values:ty) => { $crate::Row<$values> };
    (@row $stored:ty, $values:ty) => { $crate::Row<$values> };
    ($(#[$meta:meta])* $vis:vis struct $name:ident { $(
        $(.. $base:ident { $($shared:ident),+ $(,)? })?
        $($(#[doc = $help:literal])* $field:ident: $type:ty $(as $values:ty)? = $row:expr)?
    ),* } $(derived {
        $($(#[$what:meta])* $seen:vis $derived:ident: $of:ty),* $(,)?
    })?) => {
        $(#[$meta])*
        #[derive(Clone, Debug)]
        #[allow(dead_code, reason = "a parameter may serve only to derive others")]
        $vis struct $name {
            $($($(#[doc = $help])* $vis $field: $type,)?)*
            $($($(#[$what])* $seen $derived: $of,)*)?
        }

        #[allow(dead_code, missing_docs, reason = "the table explains each of them; not every row is derived")]
        impl $name {
            /// The table of these parameters.
            $vis const TABLE: &'static [$crate::Param] =
                &[$($($($base::$shared().param,)+)? $(Self::$field().param,)?)*];

            /// Reads effective parameters.
            ///
            /// # Errors
            /// If a value is missing, still automatic or of another kind.
            pub(crate) fn read(
                settings: &$crate::Settings,
            ) -> ::core::result::Result<Self, $crate::ParamError> {
                Ok($name {
                    $($($field: Self::$field().store(settings)?,)?)*
                    $($($derived: ::core::default::Default::default(),)*)?
                })
            }

            $($($vis const fn $field() -> $crate::params!(@row $type $(, $values)?) {
                const ROW: $crate::params!(@row $type $(, $values)?) =
                    $row.named(stringify!($field), concat!($($help),*));
                ROW
            })?)*
        }
    };
}
