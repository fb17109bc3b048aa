//! The result: a table for people, JSON for programs.

use std::fmt;

use serde::Serialize;

use crate::measures::Measure;
use crate::situations::Situation;

/// Where a value lies in relation to its band.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Position {
    /// less than each reference
    Below,
    /// between the least and the largest reference
    Within,
    /// more than each reference
    Above,
}

/// One measure in one situation.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Comparison {
    /// the name of the situation
    pub situation: &'static str,
    /// the sections of RFC 9743
    pub sections: &'static str,
    /// the criteria or paths of these sections
    pub criterion: &'static str,
    /// what is measured
    pub measure: Measure,
    /// the controller's value
    pub own: f64,
    /// the references' values, by the name of the control
    pub references: Vec<(&'static str, f64)>,
    /// the lower end of the band: the least of the references
    pub low: f64,
    /// the upper end of the band: the largest of the references
    pub high: f64,
    /// where the value lies
    pub position: Position,
}

impl Comparison {
    pub(crate) fn new(
        situation: &Situation,
        measure: Measure,
        own: f64,
        references: Vec<(&'static str, f64)>,
    ) -> Self {
        let low = references.iter().map(|(_, value)| *value).fold(f64::INFINITY, f64::min);
        let high = references.iter().map(|(_, value)| *value).fold(f64::NEG_INFINITY, f64::max);
        let position = match own {
            own if own < low => Position::Below,
            own if own > high => Position::Above,
            _ => Position::Within,
        };
        let Situation { name, sections, criterion, .. } = *situation;
        Comparison { situation: name, sections, criterion, measure, own, references, low, high, position }
    }
}

/// All comparisons of a controller.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    /// the name of the controller
    pub name: String,
    /// the number of runs whose results are averaged
    pub runs: u64,
    /// in the order of the situations
    pub comparisons: Vec<Comparison>,
}

impl Report {
    /// Returns the report as JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("a report has numbers and names only")
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self
            .comparisons
            .first()
            .map_or(&[][..], |first| &first.references[..])
            .iter()
            .map(|(name, _)| *name)
            .collect();
        write!(f, "{:<18} {:<20} {:>10}", "situation", "measure", self.name)?;
        names.iter().try_for_each(|name| write!(f, " {name:>8}"))?;
        writeln!(f, "  position")?;
        let mut before = "";
        for comparison in &self.comparisons {
            let Comparison { situation, measure, own, references, position, .. } = comparison;
            let shown = if *situation == before { "" } else { *situation };
            before = situation;
            write!(f, "{shown:<18} {:<20} {own:>10.2}", measure.label())?;
            references.iter().try_for_each(|(_, value)| write!(f, " {value:>8.2}"))?;
            let position = match position {
                Position::Below => "below",
                Position::Within => "",
                Position::Above => "above",
            };
            writeln!(f, "  {position}")?;
        }
        Ok(())
    }
}
