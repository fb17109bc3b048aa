//! What all parts of a plan share as plain data: references by name, and values that are absent.

use std::ops::Deref;

use schemars::JsonSchema;
use serde::Serialize;

/// Returns whether a value is as by default; such a value is absent from plans as data.
pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Links, routers or classes of the plan: their places in its lists and their names, which stand for them in plans as
/// data.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Named<Places, Names> {
    names: Names,
    #[serde(skip)]
    places: Places,
}

/// One link, router or class.
pub type Reference = Named<usize, String>;
/// Several links or classes.
pub type References = Named<Vec<usize>, Vec<String>>;

impl Reference {
    /// Refers to the thing at this place in a list of things with these names.
    pub fn new<N: AsRef<str>>(place: usize, names: &[N]) -> Self {
        Named { names: names[place].as_ref().to_owned(), places: place }
    }
}

impl References {
    /// Refers to the things at these places in a list of things with these names.
    pub fn new<N: AsRef<str>>(places: Vec<usize>, names: &[N]) -> Self {
        Named { names: places.iter().map(|&place| names[place].as_ref().to_owned()).collect(), places }
    }
}

impl<Places, Names> Named<Places, Names> {
    /// Returns the name or names.
    pub const fn names(&self) -> &Names {
        &self.names
    }

    pub(super) fn into_names(self) -> Names {
        self.names
    }
}

impl<Places, Names> Deref for Named<Places, Names> {
    type Target = Places;

    fn deref(&self) -> &Places {
        &self.places
    }
}
