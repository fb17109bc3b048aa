//! Which disciplines there are: names, parameters, how to resolve and build them.
//!
//! What needs no packet type (`aqm list`, the scenario parser, the reference chapters) reads the
//! [`catalogue`]; a host that builds queues of its own packet type has a [`Registry`], which is open: a
//! discipline of a user's own is one [`Registry::register`] away and is then resolved, built, tested by the
//! contract kit and recorded like the built-in ones.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use aqmlab_params::{ParamError, Settings};
use aqmlab_random::Stream;

use crate::discipline::builders;
pub use crate::discipline::{catalogue, info};
pub use crate::info::{Decides, Info, Maturity, Preset, Resolve};
use crate::{Arrived, Discipline, LinkContext, Packet};

/// Makes a discipline from *effective* parameters and its own stream of draws.
pub type Build<P> =
    Box<dyn Fn(&Settings, &LinkContext, Stream) -> Result<Discipline<P>, ParamError> + Send + Sync>;

/// One registered discipline.
pub struct Entry<P: Packet> {
    /// What is known of it.
    pub info: Info,
    /// How it is made.
    pub build: Build<P>,
}

/// The name is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct DuplicateName(pub &'static str);

impl core::fmt::Display for DuplicateName {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "a discipline called `{}` is registered already", self.0)
    }
}

impl core::error::Error for DuplicateName {}

/// All disciplines that a host can build.
pub struct Registry<P: Packet> {
    entries: Vec<Entry<P>>,
}

impl<P: Packet> Registry<P> {
    /// The built-in disciplines.
    pub fn builtin() -> Self
    where
        P: Arrived + 'static,
    {
        let entry = |(info, build)| Entry { info, build: Box::new(build) };
        Registry { entries: builders().map(entry).collect() }
    }

    /// Adds a discipline.
    ///
    /// # Errors
    /// If its name is taken.
    pub fn register(&mut self, entry: Entry<P>) -> Result<(), DuplicateName> {
        if self.find(entry.info.name).is_some() {
            return Err(DuplicateName(entry.info.name));
        }
        self.entries.push(entry);
        Ok(())
    }

    /// The discipline called `name`.
    pub fn find(&self, name: &str) -> Option<&Entry<P>> {
        self.entries.iter().find(|e| e.info.name == name)
    }

    /// All disciplines in the order of their registration.
    pub fn iter(&self) -> impl Iterator<Item = &Entry<P>> {
        self.entries.iter()
    }

    /// Resolves `settings` and makes the discipline called `name`.
    ///
    /// # Errors
    /// If there is none of that name, or a parameter is wrong.
    pub fn build(
        &self,
        name: &str,
        settings: &Settings,
        link: &LinkContext,
        draws: Stream,
    ) -> Result<Discipline<P>, ParamError> {
        let entry = self.find(name).ok_or_else(|| {
            ParamError::new("discipline", format!("there is no discipline called `{name}`"))
        })?;
        let effective = (entry.info.resolve)(settings, link)?;
        (entry.build)(&effective, link, draws)
    }
}
