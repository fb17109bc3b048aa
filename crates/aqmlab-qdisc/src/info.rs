//! What there is to know of a discipline without a packet type: its names, its parameters, how they are resolved.

use alloc::borrow::Cow;
use alloc::format;
use alloc::vec::Vec;
use core::ops::Deref;

use aqmlab_params::{Origin, Param, ParamError, Settings, Value};
use aqmlab_units::text::Size;

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

/// A discipline's own part of [`Info::resolve`]: in settings that have presets and defaults already, computes what is
/// automatic or relative to the link, and checks every value against the others.
pub type Derive = fn(&mut Settings, &LinkContext) -> Result<(), ParamError>;

/// A discipline's parameters as its queue is built from them, with the link that they hold for: every parameter is present,
/// and nothing is automatic or relative to the link. Only [`Info::resolve`] makes them, so what is not resolved builds no
/// queue:
///
/// ```compile_fail,E0308
/// # use aqmlab_params::Settings;
/// # use aqmlab_qdisc::{Registry, contract::TestPacket};
/// # use aqmlab_random::Stream;
/// Registry::<TestPacket>::builtin().build(&Settings::default(), Stream::new(1, "red"));
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct Effective {
    kind: &'static str,
    settings: Settings,
    link: LinkContext,
}

impl Effective {
    /// The discipline's name.
    pub const fn kind(&self) -> &'static str {
        self.kind
    }

    /// What the parameters were resolved against.
    pub const fn link(&self) -> &LinkContext {
        &self.link
    }

    /// As a value of the discipline that this one is inside of.
    pub(crate) fn into_value(self) -> Value {
        Value::Discipline { kind: self.kind, settings: self.settings }
    }

    /// The queue that is inside of this discipline, as its `table` holds it, over `link`.
    pub(crate) fn inner(&self, table: &Settings, link: LinkContext) -> Result<Effective, ParamError> {
        match table.discipline("queue")? {
            Some((kind, settings)) => Ok(Effective { kind, settings: settings.clone(), link }),
            None => Err(ParamError::new("queue", format!("`{}` has no queue inside", self.kind))),
        }
    }
}

impl Deref for Effective {
    type Target = Settings;

    fn deref(&self) -> &Settings {
        &self.settings
    }
}

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
    /// What its automatic parameters are, and which values do not go together.
    pub derive: Derive,
    /// With what the contract kit and other tests try it, each with a label: what it must be given, a buffer that a script of
    /// the kit can fill, and values with which its law reacts within a few hundred packets. The first is tried with every
    /// preset and every word of a choice.
    pub samples: fn() -> Vec<(&'static str, Settings)>,
}

impl Info {
    /// The effective parameters: `given`, and for the rest what the preset, the defaults and `link` make of it.
    ///
    /// # Errors
    /// If a value is missing, or does not go together with the others or the link.
    pub fn resolve(&self, given: &Settings, link: &LinkContext) -> Result<Effective, ParamError> {
        let mut settings = given.completed(self.params);
        self.apply_preset(given, &mut settings)?;
        (self.derive)(&mut settings, link)?;
        let open = |value: &Value| matches!(value, Value::Auto | Value::Size(Size::Bdp(_) | Size::Time(_)));
        if let Some(s) = settings.iter().find(|s| open(&s.value)) {
            return Err(ParamError::new(s.name, format!("{} `{}` has not been resolved", s.name, s.value)));
        }
        Ok(Effective { kind: self.name, settings, link: *link })
    }

    /// Puts the preset's values wherever nothing is given.
    fn apply_preset(&self, given: &Settings, all: &mut Settings) -> Result<(), ParamError> {
        if self.presets.is_empty() {
            return Ok(());
        }
        let name = all.choice("preset")?;
        let preset = self.presets.iter().find(|p| p.name == name).ok_or_else(|| {
            let names: Vec<_> = self.presets.iter().map(|p| p.name).collect();
            ParamError::no_such_word("preset", name, &names)
        })?;
        for (name, value) in preset.values.iter().filter(|(name, _)| given.get(name).is_none()) {
            all.set(name, value.clone(), Origin::Profile(Cow::Borrowed(preset.name)));
        }
        Ok(())
    }
}
