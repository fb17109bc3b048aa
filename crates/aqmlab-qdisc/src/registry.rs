//! The registry of disciplines: their names, their parameters, their resolution and construction.
//!
//! Callers that have no packet type (`aqm list`, the scenario parser, the reference chapters) read a
//! [`Catalogue`]: that of the built-in disciplines ([`catalogue`]) or that of a registry. A host that builds
//! queues for its own packet type has a [`Registry`], to which user-defined disciplines can be added by
//! [`Registry::register`]. They are then named in scenarios that are read with [`Registry::catalogue`],
//! resolved, built, tested by the contract kit and recorded like the built-in ones.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use aqmlab_params::{ParamError, Settings};
use aqmlab_random::Stream;

pub use crate::discipline::catalogue;
use crate::discipline::{Builder, builders};
pub use crate::info::{Catalogue, Decides, Derive, Effective, Info, Maturity, Preset, Versions};
use crate::{Arrived, Discipline, LinkContext, Packet};

/// Returns the built-in discipline called `name`.
pub fn info(name: &str) -> Option<&'static Info> {
    catalogue().find(name)
}

impl Info {
    /// Returns the effective parameters: those in `given`, and otherwise the values that follow
    /// from the preset, the defaults and `link`. Queues inside this discipline are built-in ones.
    ///
    /// # Errors
    /// If a value is missing, or contradicts the others or the link.
    pub fn resolve(&self, given: &Settings, link: &LinkContext) -> Result<Effective, ParamError> {
        self.resolve_in(catalogue(), given, link)
    }
}

/// Builds a discipline from its parameters and its own stream of draws. The registry builds the disciplines
/// inside it.
pub type Build<P> =
    Box<dyn Fn(&Effective, Stream, &Registry<P>) -> Result<Discipline<P>, ParamError> + Send + Sync>;

/// One registered discipline.
pub struct Entry<P: Packet> {
    /// Its description.
    pub info: Info,
    /// Its constructor.
    pub build: Build<P>,
}

/// The error for a name that is already taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DuplicateName(pub &'static str);

impl core::fmt::Display for DuplicateName {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "a discipline called `{}` is already registered", self.0)
    }
}

impl core::error::Error for DuplicateName {}

/// All disciplines that a host can build.
pub struct Registry<P: Packet> {
    entries: Vec<Entry<P>>,
}

impl<P: Packet> Registry<P> {
    /// Returns a registry of the built-in disciplines.
    pub fn builtin() -> Self
    where
        P: Arrived + 'static,
    {
        let entry = |(info, build): (Info, Builder<P>)| Entry {
            info,
            build: Box::new(move |s, draws, registry| build(s, draws, &|s, draws| registry.build(s, draws))),
        };
        Registry { entries: builders().map(entry).collect() }
    }

    /// Adds a discipline.
    ///
    /// # Errors
    /// If the name of the discipline is already taken.
    pub fn register(&mut self, entry: Entry<P>) -> Result<(), DuplicateName> {
        if self.find(entry.info.name).is_some() {
            return Err(DuplicateName(entry.info.name));
        }
        self.entries.push(entry);
        Ok(())
    }

    /// Returns the discipline called `name`.
    pub fn find(&self, name: &str) -> Option<&Entry<P>> {
        self.entries.iter().find(|e| e.info.name == name)
    }

    /// Iterates over all disciplines in the order of their registration.
    pub fn iter(&self) -> impl Iterator<Item = &Entry<P>> {
        self.entries.iter()
    }

    /// Returns the descriptions of all disciplines, with which scenarios can be read.
    pub fn catalogue(&self) -> Catalogue {
        self.iter().map(|entry| entry.info).collect()
    }

    /// Builds the discipline that `effective` describes.
    ///
    /// # Errors
    /// If there is no discipline of that name, or the discipline refuses the parameters.
    pub fn build(&self, effective: &Effective, draws: Stream) -> Result<Discipline<P>, ParamError> {
        let name = effective.kind();
        let entry = self.find(name).ok_or_else(|| {
            ParamError::new("discipline", format!("there is no discipline called `{name}`"))
        })?;
        (entry.build)(effective, draws, self)
    }
}
