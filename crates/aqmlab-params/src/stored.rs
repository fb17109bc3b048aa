//! Values that are of two kinds, and the types as which structs store values.

use alloc::format;
use alloc::string::String;

use aqmlab_units::Bytes;

use crate::ParamError;

/// A count that may be unlimited.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Limit {
    /// This count.
    At(u64),
    /// No limit.
    Unlimited,
}

/// A word of `W`, or another name, which only some hosts know.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Open<W> {
    /// The word.
    Word(W),
    /// The name.
    Other(String),
}

/// A type as which a struct stores values of type `T`. Each type stores its own values; the others are smaller
/// than the type of the values, or quicker to use.
pub trait Stored<T>: Sized {
    /// Converts the value of the parameter `name`.
    ///
    /// # Errors
    /// If the type cannot hold the value.
    fn stored(name: &'static str, value: T) -> Result<Self, ParamError>;
}

impl<T> Stored<T> for T {
    fn stored(_: &'static str, value: T) -> Result<Self, ParamError> {
        Ok(value)
    }
}

impl Stored<u64> for u32 {
    fn stored(name: &'static str, value: u64) -> Result<Self, ParamError> {
        u32::try_from(value)
            .map_err(|_| ParamError::new(name, format!("{name} `{value}` exceeds the maximum, {}", u32::MAX)))
    }
}

impl Stored<Bytes> for u32 {
    fn stored(name: &'static str, value: Bytes) -> Result<Self, ParamError> {
        u32::stored(name, value.get())
    }
}

/// "Unlimited" is the largest number: more than is ever reached.
impl Stored<Limit> for u32 {
    fn stored(name: &'static str, value: Limit) -> Result<Self, ParamError> {
        match value {
            Limit::At(count) => u32::stored(name, count),
            Limit::Unlimited => Ok(u32::MAX),
        }
    }
}

impl Stored<u64> for f64 {
    fn stored(_: &'static str, value: u64) -> Result<Self, ParamError> {
        Ok(value as f64)
    }
}

/// Another name is not stored: only its host knows it.
impl<W> Stored<Open<W>> for Option<W> {
    fn stored(_: &'static str, value: Open<W>) -> Result<Self, ParamError> {
        Ok(match value {
            Open::Word(word) => Some(word),
            Open::Other(_) => None,
        })
    }
}
