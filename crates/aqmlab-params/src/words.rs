//! Choices as types: a single definition holds both the words that a table offers and their meanings.

/// Defines an enum whose variants are the words of a choice.
///
/// The table takes the words from `WORDS`. The owner of the table reads the value as this type and matches the
/// variants, so code that leaves a word unhandled does not compile. The second form of the macro assigns
/// words to the variants of an existing enum.
///
/// ```
/// use aqmlab_params::{Row, Settings, params, words};
///
/// words! {
///     /// Where a queue decides.
///     pub enum Decide {
///         /// on arrival
///         Enqueue = "enqueue",
///         /// as packets leave
///         Dequeue = "dequeue",
///     }
/// }
///
/// params!(pub struct Queue { decide: Decide = Row::choice("dequeue").source("ours") });
///
/// let queue = Queue::read(&Settings::defaults(Queue::TABLE))?;
/// assert_eq!(queue.decide, Decide::Dequeue);
/// # Ok::<(), aqmlab_params::ParamError>(())
/// ```
#[macro_export]
macro_rules! words {
    ($(#[$meta:meta])* $vis:vis enum $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        $vis enum $name { $($(#[$doc])* $variant),+ }

        $crate::words!($vis impl $name { $($variant = $word),+ });
    };
    ($vis:vis impl $name:ident { $($variant:ident = $word:literal),+ $(,)? }) => {
        impl $name {
            /// The words that scenario files use, in the order of the variants.
            $vis const WORDS: &'static [&'static str] = &[$($word),+];

            /// Returns the variant's word.
            $vis const fn word(self) -> &'static str {
                match self { $($name::$variant => $word),+ }
            }
        }

        impl $crate::Words for $name {
            const WORDS: &'static [&'static str] = $name::WORDS;

            fn from_word(word: &str) -> ::core::option::Option<Self> {
                match word {
                    $($word => Some($name::$variant),)+
                    _ => None,
                }
            }

            fn to_word(self) -> &'static str {
                self.word()
            }
        }
    };
}
