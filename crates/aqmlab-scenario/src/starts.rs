//! The starts of the flows of a class: drawn for each seed, or written for each seed.

use aqmlab_params::{Kind, Origin, Value};
use aqmlab_units::Span;

use crate::field::{Absent, Form};
use crate::language::{FILE, STARTS};
use crate::pass::{Pass, Section};
use crate::plan::{FlowStarts, Plan, SeedLists};
use crate::suggest::counted;
use crate::tree::{Node, Tree};

const SEEDS: &str = "seeds";

impl Pass<'_, '_> {
    /// Reads the first seed and the number of seeds from the file. Errors in these values are
    /// reported elsewhere.
    pub(crate) fn know_seeds(&mut self, file: &Section<'_>) {
        self.seeds = whole(file, "seed").zip(whole(file, "runs"));
    }

    /// Returns when each flow of a class with `count` flows starts.
    pub(crate) fn starts(&mut self, section: &Section<'_>, count: Option<u64>) -> Option<FlowStarts> {
        let by_seed = section.node("start").and_then(|node| match &node.value {
            Tree::Table(table) => table.get(SEEDS).map(|lists| (node, table, lists)),
            _ => None,
        });
        let Some((node, table, lists)) = by_seed else {
            return self.drawn(section, "start").map(|from| FlowStarts::Drawn { from });
        };
        let path = section.sub("start");
        self.form(node, table, &path, STARTS.forms, &[])?;
        let (first, lists) = self.seed_starts(lists, &path, count?)?;
        self.enter(section, "start", &lists, Origin::Given);
        Some(FlowStarts::BySeed { lists, first })
    }

    fn seed_starts(&mut self, node: &Node, path: &str, count: u64) -> Option<(u64, SeedLists)> {
        const FORM: &str =
            "write a list for each seed, with a start for each flow or one start for all flows";
        let Tree::List(items) = &node.value else {
            let message = format!("`{}` is {}; {FORM}", self.report.quote(&node.at), node.value.what());
            self.error(&node.at, path, message);
            return None;
        };
        let (first, runs) = self.seeds?;
        if items.len() as u64 != runs {
            let (lists, seeds) = (counted(items.len() as u64, "list"), counted(runs, "seed"));
            let message = format!("{lists} of starts, but the scenario has {seeds} (`runs`); {FORM}");
            self.error(&node.at, path, message);
            return None;
        }
        let mut seeds = Vec::new();
        for (item, seed) in items.iter().zip(first..) {
            let starts: Vec<&Node> = match &item.value {
                Tree::List(starts) if starts.len() as u64 != count => {
                    let message = format!(
                        "{} for seed {seed}, but the class has {} (`count`); write a start for each flow",
                        counted(starts.len() as u64, "start"),
                        counted(count, "flow"),
                    );
                    self.error(&item.at, path, message);
                    return None;
                }
                Tree::List(starts) => starts.iter().collect(),
                _ => vec![item],
            };
            let starts = starts.into_iter().map(|start| match self.given(start, path, &STARTS.kind)? {
                Value::Span(start) => Some(start),
                _ => unreachable!("a start is a time"),
            });
            seeds.push(starts.collect::<Option<Vec<Span>>>()?);
        }
        Some((first, SeedLists { seeds }))
    }
}

/// Returns a whole number from the file, or its default.
fn whole(file: &Section<'_>, key: &str) -> Option<u64> {
    let field = FILE.iter().find(|field| field.name == key)?;
    let Form::One(Kind::Integer { min, max }) = field.form else { return None };
    match (file.node(key).map(|node| &node.value), field.absent) {
        (Some(Tree::Integer(n)), _) => u64::try_from(*n).ok().filter(|n| (min..=max).contains(n)),
        (None, Absent::Is(default)) => match default.value()? {
            Value::Integer(n) => Some(n),
            _ => None,
        },
        _ => None,
    }
}

/// The notation of a scenario.
impl std::fmt::Display for SeedLists {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let list = |starts: &Vec<Span>| {
            let starts: Vec<String> = starts.iter().map(|start| format!("\"{start}\"")).collect();
            format!("[{}]", starts.join(", "))
        };
        let lists: Vec<String> = self.seeds.iter().map(list).collect();
        write!(f, "{{ seeds = [{}] }}", lists.join(", "))
    }
}

impl Plan {
    /// Checks that the plan can be run with this seed.
    ///
    /// # Errors
    /// If the file gives starts only for other seeds. The error is a sentence without a full stop.
    pub fn check_seed(&self, seed: u64) -> Result<(), String> {
        for class in &self.classes {
            if let FlowStarts::BySeed { lists, first } = &class.start
                && !class.start.has(seed)
            {
                let last = first + lists.seeds.len() as u64 - 1;
                let seeds = if *first == last {
                    format!("seed {first}")
                } else {
                    format!("the seeds {first} to {last}")
                };
                return Err(format!(
                    "the starts of `{}` are written for {seeds}, not for seed {seed}",
                    class.name
                ));
            }
        }
        Ok(())
    }
}
