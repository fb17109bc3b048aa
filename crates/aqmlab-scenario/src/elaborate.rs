//! Turns the text of a scenario into an experiment.

use aqmlab_qdisc::registry::Catalogue;
use aqmlab_units::Bytes;

use crate::class::ClassDraft;
use crate::error::Report;
use crate::estimate;
use crate::language::FILE;
use crate::pass::{LINES, Pass, Section};
use crate::plan::{Experiment, Plan};
use crate::trace::Traces;
use crate::tree::Node;

/// The machine's resources that a scenario may use.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Memory per run.
    pub memory: Bytes,
}

impl Default for Limits {
    /// Returns 8 GB, which a laptop can give to one run.
    fn default() -> Self {
        Limits { memory: Bytes::new(8_000_000_000) }
    }
}

/// The settings common to all arms.
#[derive(Clone, Default)]
pub(crate) struct Common {
    pub(crate) title: String,
    question: String,
    metrics: Vec<String>,
    seed: u64,
    pub(crate) runs: u64,
}

impl Common {
    /// Returns the experiment that consists of these plans.
    pub(crate) fn experiment(&self, mut arms: Vec<Plan>, warnings: Vec<String>) -> Experiment {
        arms.iter_mut().for_each(|plan| plan.title.clone_from(&self.title));
        Experiment {
            title: self.title.clone(),
            question: self.question.clone(),
            metrics: self.metrics.clone(),
            seeds: (self.seed..self.seed + self.runs).collect(),
            arms,
            warnings,
        }
    }
}

/// Reads the settings common to all arms, and checks the keys of the whole file.
pub(crate) fn common(
    root: &Node,
    file: &str,
    traces: &Traces<'_>,
    catalogue: &Catalogue,
    report: &mut Report<'_>,
) -> Option<Common> {
    let mut pass = Pass::new(report, traces, catalogue);
    let section = pass.section(root, "", FILE)?;
    let title = match section.node("title") {
        Some(_) => pass.prose(&section, "title", &[]),
        None => Some(stem(file)),
    };
    let question = pass.prose(&section, "question", LINES);
    let metrics = pass.names(&section, "metrics", "metric");
    let (seed, runs) = (pass.integer(&section, "seed"), pass.integer(&section, "runs"));
    Some(Common { title: title?, question: question?, metrics: metrics?, seed: seed?, runs: runs? })
}

/// Returns the file's name without folders or the extension `.toml`.
fn stem(file: &str) -> String {
    let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
    let stem = name.strip_suffix(".toml").unwrap_or(name);
    if stem.is_empty() { "untitled".to_string() } else { stem.to_string() }
}

/// Returns the plan of the arm called `arm`, whose tree is `tree`. The title is left empty.
pub(crate) fn plan(
    arm: &str,
    tree: &Node,
    limits: Limits,
    traces: &Traces<'_>,
    catalogue: &Catalogue,
    report: &mut Report<'_>,
) -> Option<Plan> {
    let mut pass = Pass::new(report, traces, catalogue);
    let file = pass.section(tree, "", FILE)?;
    pass.know_seeds(&file);
    let end = pass.end(&file);
    pass.run_length = end.as_ref().map(|end| end.at);
    let warmup = pass.warmup(&file, end.as_ref());
    let record = pass.record(&file);
    let live = pass.live(&file);
    let network = pass.network(&file);
    if network.is_none() {
        pass.look_for_traffic(&file);
    }
    let network = network?;
    let drafts = pass.classes(&file, &network);
    if drafts.is_none() || !pass.report.is_clean_of("topology") {
        // If the network or the traffic is invalid, conclusions from it would be misleading; the
        // written values can still be checked.
        pass.look_at_queues(&network);
        return None;
    }
    let mut drafts = drafts?;
    let delays = pass.delays(&file, &network, &drafts.iter().map(|d| &d.plan).collect::<Vec<_>>());
    if let Some(delays) = &delays {
        pass.place_own_delays(&mut drafts, delays, &network);
    }
    let links: Vec<String> = network.links.iter().map(|l| l.name.clone()).collect();
    let stop = pass.stop(&file, end, &drafts, &links);
    if let Some(stop) = &stop {
        pass.starts_before(stop.at, &drafts);
    }
    let record = record.and_then(|record| pass.choices(&file, record, &drafts, &links));
    let nodes = network.nodes.clone();
    let (classes, numbers): (Vec<_>, Vec<_>) = drafts.into_iter().map(|d| (d.plan, d.number)).unzip();
    let links = pass.links(network, &classes, delays.as_deref().unwrap_or_default());
    let plan = Plan {
        title: String::new(),
        arm: arm.to_string(),
        warmup: warmup?,
        stop: stop?,
        nodes,
        links: links?,
        classes,
        delays: delays?,
        record: record?,
        live: live?,
        parameters: std::mem::take(&mut pass.parameters),
    };
    if pass.rates_are_sound(&plan, &numbers)
        && let Some((class, message)) = estimate::refusal(&plan, limits.memory)
    {
        pass.error(&numbers[class].at, &numbers[class].path, message);
    }
    Some(plan)
}

impl Pass<'_, '_> {
    /// Without a network, classes of traffic cannot be interpreted, but their absence is still reported.
    fn look_for_traffic(&mut self, file: &Section<'_>) {
        if file.node("traffic").is_none() {
            let message = "`traffic` is missing; add a [[traffic]] with a `kind` such as \"bulk\"";
            self.error(&file.at, "", message);
        }
    }

    fn starts_before(&mut self, end: aqmlab_units::Span, drafts: &[ClassDraft]) {
        for draft in drafts {
            let first = draft.plan.start.least();
            if first >= end {
                let message = format!("start `{first}` is not before the end of the run at `{end}`");
                self.error(&draft.start_at, &format!("{}.start", draft.path), message);
            }
        }
    }
}
