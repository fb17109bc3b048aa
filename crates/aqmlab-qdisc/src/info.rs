//! What there is to know of a discipline without a packet type: its names, its parameters, how they are resolved.

use alloc::vec::Vec;

use aqmlab_params::{Param, ParamError, Settings, Value};

use crate::LinkContext;

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

    /// Whether arrivals are decided on.
    #[inline(always)]
    pub const fn at_arrival(self) -> bool {
        matches!(self, Decides::Enqueue | Decides::Both)
    }

    /// Whether departures are decided on.
    #[inline(always)]
    pub const fn at_departure(self) -> bool {
        matches!(self, Decides::Dequeue | Decides::Both)
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
    /// Rises by one whenever the same parameters, packets and draws meet other fates than before.
    pub version: u32,
    /// The other disciplines of the catalogue whose law it applies: what moves their results moves its own.
    pub applies: &'static [&'static str],
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
    /// With what the contract kit and other tests try it, each with a label: what it must be given, a buffer that a script of
    /// the kit can fill, and values with which its law reacts within a few hundred packets. The first is tried with every
    /// preset and every word of a choice.
    pub samples: fn() -> Vec<(&'static str, Settings)>,
}
