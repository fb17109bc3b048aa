//! The description of a discipline, independent of any packet type: its names, its parameters and
//! their resolution.

use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec::Vec;
use core::ops::Deref;

use aqmlab_params::{Origin, Param, ParamError, Settings, Value};
use aqmlab_units::text::Size;

use crate::LinkContext;

/// How well a discipline has been validated.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Maturity {
    /// Works and satisfies the contract; not compared with any other implementation.
    Experimental,
    /// Agrees with an independent implementation or with published known answers.
    ReferenceChecked,
    /// Reproduces the published results of its paper.
    PaperChecked,
}

impl Maturity {
    /// Returns the name used in lists and chapters.
    pub const fn name(self) -> &'static str {
        match self {
            Maturity::Experimental => "experimental",
            Maturity::ReferenceChecked => "reference-checked",
            Maturity::PaperChecked => "paper-checked",
        }
    }
}

/// When a discipline decides on drops and marks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decides {
    /// When a packet arrives.
    Enqueue,
    /// When a packet is about to leave.
    Dequeue,
    /// On both occasions.
    Both,
}

impl Decides {
    /// Returns the name used in lists and chapters.
    pub const fn name(self) -> &'static str {
        match self {
            Decides::Enqueue => "enqueue",
            Decides::Dequeue => "dequeue",
            Decides::Both => "enqueue and dequeue",
        }
    }

    /// Returns whether the discipline decides on arriving packets.
    #[inline(always)]
    pub const fn at_arrival(self) -> bool {
        matches!(self, Decides::Enqueue | Decides::Both)
    }

    /// Returns whether the discipline decides on leaving packets.
    #[inline(always)]
    pub const fn at_departure(self) -> bool {
        matches!(self, Decides::Dequeue | Decides::Both)
    }
}

/// A named set of parameter values. A preset's value applies where the scenario gives no value of
/// its own.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Preset {
    /// Its name, a word of the parameter `preset`.
    pub name: &'static str,
    /// Its meaning, in one line.
    pub title: &'static str,
    /// The values that differ from the table's defaults.
    pub values: &'static [(&'static str, Value)],
}

/// The discipline's own part of [`Info::resolve`]. It receives settings that already contain
/// presets and defaults, computes the values that are automatic or relative to the link, and checks
/// the values against each other.
#[derive(Clone, Copy, Debug)]
pub enum Derive {
    /// From the settings and the link.
    Alone(fn(&mut Settings, &LinkContext) -> Result<(), ParamError>),
    /// The discipline contains others, which the catalogue describes.
    Containing(fn(&mut Settings, &LinkContext, &Catalogue) -> Result<(), ParamError>),
}

/// Disciplines that can be named: the built-in ones, or those of a [`Registry`](crate::Registry).
#[derive(Clone, Debug)]
pub struct Catalogue(Cow<'static, [Info]>);

impl Catalogue {
    /// Returns a catalogue of these disciplines, which have different names.
    pub(crate) const fn of(infos: &'static [Info]) -> Self {
        Catalogue(Cow::Borrowed(infos))
    }

    /// Returns the discipline called `name`.
    pub fn find(&self, name: &str) -> Option<&Info> {
        self.iter().find(|info| info.name == name)
    }

    /// Adds the discipline called `name`, and those whose law it applies.
    fn add_versions(&self, name: &str, versions: &mut Versions) {
        let Some(info) = self.find(name) else { return };
        if versions.insert(info.name, info.version).is_none() {
            info.applies.iter().for_each(|applied| self.add_versions(applied, versions));
        }
    }

    /// Adds the disciplines within this value, at any depth.
    fn add_inner(&self, value: &Value, versions: &mut Versions) {
        let within = |settings: &Settings, versions: &mut Versions| {
            settings.iter().for_each(|setting| self.add_inner(&setting.value, versions));
        };
        match value {
            Value::Discipline { kind, settings } => {
                self.add_versions(kind, versions);
                within(settings, versions);
            }
            Value::Table(settings) => within(settings, versions),
            Value::List(items) => items.iter().for_each(|item| self.add_inner(item, versions)),
            _ => {}
        }
    }
}

impl FromIterator<Info> for Catalogue {
    fn from_iter<I: IntoIterator<Item = Info>>(infos: I) -> Self {
        Catalogue(infos.into_iter().collect())
    }
}

impl Deref for Catalogue {
    type Target = [Info];

    fn deref(&self) -> &[Info] {
        &self.0
    }
}

impl<'a> IntoIterator for &'a Catalogue {
    type Item = &'a Info;
    type IntoIter = core::slice::Iter<'a, Info>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Effective parameters: those from which a queue is built, with the link for which they were resolved.
/// Every parameter is present, and none is automatic or relative to the link. Only
/// [`Info::resolve`] creates them, so no queue is built from unresolved settings:
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
    versions: Versions,
}

/// The version of each discipline, by its name.
pub type Versions = BTreeMap<&'static str, u32>;

impl Effective {
    /// Returns the discipline's name.
    pub const fn kind(&self) -> &'static str {
        self.kind
    }

    /// Returns the link for which the parameters were resolved.
    pub const fn link(&self) -> &LinkContext {
        &self.link
    }

    /// Returns the disciplines that determine the fates of a link's packets: this one, those inside it, and
    /// those whose law one of them applies.
    pub const fn versions(&self) -> &Versions {
        &self.versions
    }

    /// Returns the name and the parameters, which the settings of the containing discipline can hold.
    pub(crate) fn into_inner(self) -> (&'static str, Settings) {
        (self.kind, self.settings)
    }

    /// Returns the effective parameters, for `link`, of an inner queue that the containing discipline has
    /// resolved, and whose versions include those of the inner queue.
    pub(crate) fn inner((kind, settings): (&'static str, Settings), link: LinkContext) -> Effective {
        Effective { kind, settings, link, versions: Versions::new() }
    }
}

impl Deref for Effective {
    type Target = Settings;

    fn deref(&self) -> &Settings {
        &self.settings
    }
}

/// The description of a discipline, independent of any packet type.
#[derive(Clone, Copy, Debug)]
pub struct Info {
    /// Its name in scenario files.
    pub name: &'static str,
    /// Its name in prose and tables.
    pub title: &'static str,
    /// Its function, in one line.
    pub summary: &'static str,
    /// Version of its behaviour, incremented whenever the same parameters, packets and draws lead
    /// to different fates than before.
    pub version: u32,
    /// Other disciplines of the catalogue whose law it applies. A change in their results changes the results
    /// of this discipline too.
    pub applies: &'static [&'static str],
    /// How well it has been validated.
    pub maturity: Maturity,
    /// When it decides.
    pub decides: Decides,
    /// Its parameters.
    pub params: &'static [Param],
    /// Its presets.
    pub presets: &'static [Preset],
    /// Derives its automatic parameters and refuses contradictory values.
    pub derive: Derive,
    /// Labelled settings for the contract kit and other tests: the required values, a buffer that a script of
    /// the kit can fill, and values that make the law react within a few hundred packets. The first sample is
    /// tested with every preset and with every word of every choice.
    pub samples: fn() -> Vec<(&'static str, Settings)>,
}

impl Info {
    /// Does the same as [`Info::resolve`], with the queues inside this discipline from `catalogue`.
    ///
    /// # Errors
    /// As [`Info::resolve`].
    pub fn resolve_in(
        &self,
        catalogue: &Catalogue,
        given: &Settings,
        link: &LinkContext,
    ) -> Result<Effective, ParamError> {
        let mut settings = given.completed(self.params);
        self.apply_preset(given, &mut settings)?;
        match self.derive {
            Derive::Alone(derive) => derive(&mut settings, link)?,
            Derive::Containing(derive) => derive(&mut settings, link, catalogue)?,
        }
        let open = |value: &Value| matches!(value, Value::Auto | Value::Size(Size::Bdp(_) | Size::Time(_)));
        if let Some(s) = settings.iter().find(|s| open(&s.value)) {
            return Err(ParamError::new(s.name, format!("{} `{}` has not been resolved", s.name, s.value)));
        }
        let mut versions = Versions::new();
        catalogue.add_versions(self.name, &mut versions);
        settings.iter().for_each(|setting| catalogue.add_inner(&setting.value, &mut versions));
        Ok(Effective { kind: self.name, settings, link: *link, versions })
    }

    /// Sets the preset's values for parameters that are not given.
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
