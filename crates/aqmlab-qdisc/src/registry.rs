//! Which disciplines there are: names, parameters, how to resolve and build them.
//!
//! What needs no packet type (`aqm list`, the scenario parser, the reference chapters) reads the
//! [`catalogue`]; a host that builds queues of its own packet type has a [`Registry`], which is open: a
//! discipline of a user's own is one [`Registry::register`] away and is then resolved, built, tested by the
//! contract kit and recorded like the built-in ones.

use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;

use aqmlab_params::{Param, ParamError, Settings, Value};
use aqmlab_random::Stream;

use crate::disc::{self, DropTail};
use crate::{Discipline, LinkContext, Packet};

/// How far a discipline can be trusted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Maturity {
    /// Works and keeps the contract; not compared with anything.
    Experimental,
    /// Agrees with an independent implementation or with published known answers.
    ReferenceChecked,
    /// Reproduces the published results of its paper.
    PaperChecked,
}

impl Maturity {
    /// The word in lists and chapters.
    pub const fn name(self) -> &'static str {
        match self {
            Maturity::Experimental => "experimental",
            Maturity::ReferenceChecked => "reference-checked",
            Maturity::PaperChecked => "paper-checked",
        }
    }
}

/// Where a discipline decides on drops and marks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decides {
    /// When a packet arrives.
    Enqueue,
    /// When a packet is about to leave.
    Dequeue,
    /// At both ends.
    Both,
}

impl Decides {
    /// The word in lists and chapters.
    pub const fn name(self) -> &'static str {
        match self {
            Decides::Enqueue => "enqueue",
            Decides::Dequeue => "dequeue",
            Decides::Both => "enqueue and dequeue",
        }
    }
}

/// A named bundle of parameter values. It applies where the scenario gives no value of its own.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Preset {
    /// Its name, a word of the parameter `preset`.
    pub name: &'static str,
    /// What it stands for, one line.
    pub title: &'static str,
    /// The values that differ from the table's defaults.
    pub values: &'static [(&'static str, Value)],
}

/// Turns what a scenario gives into effective parameters: every parameter present, nothing automatic,
/// every value checked against the others. Resolving a second time changes nothing.
pub type Resolve = fn(&Settings, &LinkContext) -> Result<Settings, ParamError>;

/// What there is to know of a discipline without a packet type.
#[derive(Clone, Copy, Debug)]
pub struct Info {
    /// Its name in scenario files.
    pub name: &'static str,
    /// Its name in prose and tables.
    pub title: &'static str,
    /// What it does, one line.
    pub summary: &'static str,
    /// How far it can be trusted.
    pub maturity: Maturity,
    /// Where it decides.
    pub decides: Decides,
    /// Its parameters.
    pub params: &'static [Param],
    /// Its presets.
    pub presets: &'static [Preset],
    /// From what is given to effective parameters.
    pub resolve: Resolve,
}

/// The built-in disciplines.
pub fn catalogue() -> &'static [Info] {
    static ALL: &[Info] = &[
        disc::DROPTAIL,
        disc::RED_INFO,
        disc::ARED_INFO,
        disc::SCRED_INFO,
        disc::PI_INFO,
        disc::REM_INFO,
        disc::BLUE_INFO,
        disc::FRED_INFO,
        disc::RED_PD_INFO,
        disc::CODEL_INFO,
    ];
    ALL
}

/// The built-in discipline called `name`.
pub fn info(name: &str) -> Option<&'static Info> {
    catalogue().iter().find(|i| i.name == name)
}

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
    pub fn builtin() -> Self {
        let entries = alloc::vec![
            Entry {
                info: disc::DROPTAIL,
                build: Box::new(|s, _, _| Ok(Discipline::DropTail(DropTail::build(s)?))),
            },
            Entry {
                info: disc::RED_INFO,
                build: Box::new(|s, link, draws| Ok(Discipline::Red(disc::build_red(s, link, draws)?))),
            },
            Entry {
                info: disc::ARED_INFO,
                build: Box::new(|s, link, draws| Ok(Discipline::Red(disc::build_ared(s, link, draws)?))),
            },
            Entry {
                info: disc::SCRED_INFO,
                build: Box::new(|s, link, draws| Ok(Discipline::Red(disc::build_scred(s, link, draws)?))),
            },
            Entry {
                info: disc::PI_INFO,
                build: Box::new(|s, _, draws| Ok(Discipline::Pi(disc::build_pi(s, draws)?))),
            },
            Entry {
                info: disc::REM_INFO,
                build: Box::new(|s, link, draws| Ok(Discipline::Rem(disc::build_rem(s, link, draws)?))),
            },
            Entry {
                info: disc::BLUE_INFO,
                build: Box::new(|s, _, draws| Ok(Discipline::Blue(disc::build_blue(s, draws)?))),
            },
            Entry {
                info: disc::FRED_INFO,
                build: Box::new(|s, link, draws| Ok(Discipline::Fred(disc::build_fred(s, link, draws)?))),
            },
            Entry {
                info: disc::RED_PD_INFO,
                build: Box::new(|s, link, draws| Ok(Discipline::RedPd(disc::build_red_pd(s, link, draws)?))),
            },
            Entry {
                info: disc::CODEL_INFO,
                build: Box::new(|s, _, draws| Ok(Discipline::Codel(disc::build_codel(s, draws)?))),
            },
        ];
        Registry { entries }
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
