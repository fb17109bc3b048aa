//! Bands of reference, and a controller compared with them.

use std::collections::BTreeMap;

use aqmlab_qdisc::Registry;
use aqmlab_scenario::{Experiment, ScenarioError, parse};
use aqmlab_sim::{Control, RunError, run, run_controllers};
use aqmlab_transport::Controller;
use aqmlab_units::Instant;

use crate::report::{Comparison, Report};
use crate::situations::{JUDGED, SITUATIONS, Situation};

/// Creates the controller of a new connection, which opens at this time and whose full datagrams have this many bytes.
pub type Factory<'a> = &'a dyn Fn(Instant, u32) -> Box<dyn Controller>;

/// The controls whose range is the band.
pub(crate) const REFERENCES: [&str; 3] = ["reno", "cubic", "bbr"];

/// How much is run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// the situations, by name; all if empty
    pub situations: Vec<String>,
    /// the number of runs of each situation, whose results are averaged; run n has seed n
    pub runs: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Settings { situations: Vec::new(), runs: 3 }
    }
}

/// Why nothing could be judged.
#[derive(Debug, thiserror::Error)]
pub enum KitError {
    /// There is no such situation.
    #[error("there is no situation {name:?}; the situations are {known}")]
    Unknown {
        /// what was asked for
        name: String,
        /// the names of all situations
        known: String,
    },
    /// There is nothing to run.
    #[error("runs must be at least 1")]
    NoRuns,
    /// A situation is not a valid scenario: a defect of the kit.
    #[error("{0}")]
    Scenario(#[from] ScenarioError),
    /// A run failed.
    #[error("situation {situation:?}: {source}")]
    Run {
        /// the situation
        situation: &'static str,
        /// the reason
        source: RunError,
    },
}

/// What the reference controls measure in each situation.
#[derive(Clone, Debug)]
pub struct Bands {
    settings: Settings,
    /// By control, the values of the situations' measures.
    values: BTreeMap<&'static str, Vec<Vec<f64>>>,
}

impl Bands {
    /// Runs the reference controls through the situations.
    ///
    /// # Errors
    /// If a situation is unknown, or if a run fails.
    pub fn measure(settings: &Settings) -> Result<Bands, KitError> {
        Self::measure_under(settings, &Control::default())
    }

    /// Does the same in runs that a host may observe and cancel.
    ///
    /// # Errors
    /// If a situation is unknown, or if a run fails or is cancelled.
    pub fn measure_under(settings: &Settings, watch: &Control) -> Result<Bands, KitError> {
        let chosen = chosen(settings)?;
        let mut values = BTreeMap::new();
        for control in REFERENCES {
            let of = |situation: &&Situation| measure(situation, settings.runs, control, None, watch);
            values.insert(control, chosen.iter().map(of).collect::<Result<Vec<_>, KitError>>()?);
        }
        Ok(Bands { settings: settings.clone(), values })
    }

    /// Runs the controllers that `factory` creates through the same situations. `name` is for the report.
    ///
    /// # Errors
    /// If a run fails.
    pub fn judge(&self, name: &str, factory: Factory<'_>) -> Result<Report, KitError> {
        self.judge_under(name, factory, &Control::default())
    }

    /// Does the same in runs that a host may observe and cancel.
    ///
    /// # Errors
    /// If a run fails or is cancelled.
    pub fn judge_under(&self, name: &str, factory: Factory<'_>, watch: &Control) -> Result<Report, KitError> {
        let mut comparisons = Vec::new();
        for (at, situation) in chosen(&self.settings)?.into_iter().enumerate() {
            let own = measure(situation, self.settings.runs, REFERENCES[0], Some(factory), watch)?;
            for (n, (measure, own)) in situation.measures.iter().zip(own).enumerate() {
                let of = |control: &&'static str| (*control, self.values[control][at][n]);
                comparisons.push(Comparison::new(
                    situation,
                    *measure,
                    own,
                    REFERENCES.iter().map(of).collect(),
                ));
            }
        }
        Ok(Report { name: name.to_owned(), runs: self.settings.runs, comparisons })
    }
}

fn chosen(settings: &Settings) -> Result<Vec<&'static Situation>, KitError> {
    if settings.runs == 0 {
        return Err(KitError::NoRuns);
    }
    if settings.situations.is_empty() {
        return Ok(SITUATIONS.iter().collect());
    }
    let find = |name: &String| {
        let known = || SITUATIONS.iter().map(|situation| situation.name).collect::<Vec<_>>().join(", ");
        let found = SITUATIONS.iter().find(|situation| situation.name == name);
        found.ok_or_else(|| KitError::Unknown { name: name.clone(), known: known() })
    };
    settings.situations.iter().map(find).collect()
}

/// Returns the means over all runs of a situation's measures. The judged flows have this control, or the controllers of
/// a factory.
fn measure(
    situation: &Situation,
    runs: u64,
    control: &str,
    factory: Option<Factory<'_>>,
    watch: &Control,
) -> Result<Vec<f64>, KitError> {
    let text = situation.text.replace(JUDGED, &JUDGED.replace("reno", control));
    let Experiment { arms, .. } = parse(&text, &format!("{}.toml", situation.name))?;
    let plan = &arms[0];
    let mss = plan.classes.iter().find(|class| class.name == "judged").and_then(|class| class.traffic.tcp());
    let mss = mss.expect("every situation has judged flows").mss;
    let mut sums = vec![0.0; situation.measures.len()];
    for seed in 1..=runs {
        let recording = match factory {
            None => run(plan, seed, watch),
            Some(factory) => {
                let of = |class: &str, now, datagram| (class == "judged").then(|| factory(now, datagram));
                run_controllers(plan, seed, watch, &Registry::builtin(), &of)
            }
        };
        let recording = recording.map_err(|source| KitError::Run { situation: situation.name, source })?;
        for (sum, measure) in sums.iter_mut().zip(situation.measures) {
            *sum += measure.of(&recording, mss);
        }
    }
    Ok(sums.into_iter().map(|sum| sum / runs as f64).collect())
}
