//! The end of a run, and the beginning of measurement.

use aqmlab_units::Span;

use crate::class::ClassDraft;
use crate::field::Absent;
use crate::language::{COMPLETED, CONDITION, FILE, QUANTITIES, STOP};
use crate::pass::{Pass, Section};
use crate::plan::{ClassPlan, Completed, CountStop, QueueCount, QueueStop, Reference, References, Stop};
use crate::suggest::{listed, no_such};
use crate::tree::{At, Node, Tree};

/// The time at which a run ends at the latest, with its place in the file.
#[derive(Clone)]
pub(crate) struct End {
    pub(crate) at: Span,
    pub(crate) written: At,
}

impl Pass<'_, '_> {
    /// Returns `duration`, or `at` of `[stop]`.
    pub(crate) fn end(&mut self, file: &Section<'_>) -> Option<End> {
        let duration = self.span(file, "duration").map(|at| End { at, written: file.at("duration") });
        let stop = file.node("stop");
        if let Some(node) = stop {
            self.section(node, "stop", STOP);
        }
        let stop_at = stop.and_then(|node| match &node.value {
            Tree::Table(table) => table.get("at").map(|at| (node, at)),
            _ => None,
        });
        match (file.node("duration"), stop_at) {
            (Some(_), Some((_, at))) => {
                self.error(
                    &at.at,
                    "stop.at",
                    "`duration` is written as well and means the same; keep one of them",
                );
                None
            }
            (None, Some((node, at))) => {
                let section = self.open_section(node, "stop", STOP)?;
                self.span(&section, "at").map(|value| End { at: value, written: at.at.clone() })
            }
            (None, None) => {
                let field = FILE.iter().find(|f| f.name == "duration").expect("a file has a duration");
                debug_assert!(matches!(field.absent, Absent::Rule(_)));
                self.error(&file.at, "", "`duration` is missing; write a time such as `duration = \"120s\"`");
                None
            }
            (Some(_), None) => duration,
        }
    }

    /// Returns the warm-up, which ends before the run does.
    pub(crate) fn warmup(&mut self, file: &Section<'_>, end: Option<&End>) -> Option<Span> {
        let warmup = self.span(file, "warmup")?;
        let end = end?;
        if warmup >= end.at {
            let (at, path, message) = match file.node("warmup") {
                Some(node) => {
                    let message = format!(
                        "warmup `{warmup}` leaves nothing of the run of `{}`; write a shorter warm-up",
                        end.at
                    );
                    (node.at.clone(), "warmup", message)
                }
                None => (end.written.clone(), "duration", format!("duration `{}` is zero", end.at)),
            };
            self.error(&at, path, message);
            return None;
        }
        Some(warmup)
    }

    /// Returns the end of the run, with the other conditions of `[stop]`.
    pub(crate) fn stop(
        &mut self,
        file: &Section<'_>,
        end: Option<End>,
        classes: &[ClassDraft],
        links: &[String],
    ) -> Option<Stop> {
        let Some(node) = file.node("stop") else {
            return Some(Stop { at: end?.at, completed: None, condition: None });
        };
        let section = self.section(node, "stop", STOP)?;
        let completed = section.node("completed").map(|node| self.completed(&section, node, classes));
        let condition = section.node("condition").map(|node| self.condition(&section, node, links));
        // An outer `None` means that the key is not written, an inner `None` that its value is invalid.
        Some(Stop {
            at: end?.at,
            completed: match completed {
                None => None,
                Some(stop) => Some(stop?),
            },
            condition: match condition {
                None => None,
                Some(stop) => Some(stop?),
            },
        })
    }

    fn completed(&mut self, stop: &Section<'_>, node: &Node, classes: &[ClassDraft]) -> Option<CountStop> {
        let section = self.section(node, &stop.sub("completed"), COMPLETED)?;
        let (flows, requests) = (section.node("count").is_some(), section.node("requests").is_some());
        if flows == requests {
            let what = if flows { "flows and requests are counted" } else { "nothing is counted" };
            let message = format!("{what}; write one of `count` (flows) and `requests`");
            self.error(&node.at, &section.path, message);
            return None;
        }
        let (key, of) = if flows { ("count", Completed::Flows) } else { ("requests", Completed::Requests) };
        let count = self.integer(&section, key);
        let counted = self.counted_classes(&section, classes)?;
        let count = count?;
        let plans = || counted.iter().map(|&class| &classes[class].plan);
        let flaw = |plan: &ClassPlan| match of {
            Completed::Flows if !plan.traffic.completes() => {
                Some("never complete; those of bulk traffic with `bytes` and of traces do")
            }
            Completed::Requests if !plan.traffic.makes_requests() => {
                Some("make no requests; those of `requests`, `packmime` and traces with responses do")
            }
            _ => None,
        };
        if let Some((name, flaw)) = plans().find_map(|plan| Some((&plan.name, flaw(plan)?))) {
            let message = format!("the flows of \"{name}\" {flaw}");
            self.error(&section.at("class"), &section.sub("class"), message);
            return None;
        }
        let most = plans().fold(0u64, |sum, plan| sum.saturating_add(plan.count));
        if flows && count > most {
            let names: Vec<_> = plans().map(|plan| format!("\"{}\"", plan.name)).collect();
            let (class, has) = if names.len() == 1 { ("class", "has") } else { ("classes", "have") };
            let message =
                format!("`{count}` flows can never complete; {class} {} {has} `{most}`", names.join(", "));
            self.error(&section.at("count"), &section.sub("count"), message);
            return None;
        }
        Some(CountStop { classes: counted, of, count })
    }

    /// Returns the class that the key `class` names, or all classes that it lists.
    fn counted_classes(&mut self, section: &Section<'_>, classes: &[ClassDraft]) -> Option<References> {
        let known: Vec<&str> = classes.iter().map(|c| c.plan.name.as_str()).collect();
        if !matches!(section.node("class"), Some(Node { value: Tree::List(_), .. })) {
            let class = self.one_of(section, "class", "class of traffic", &known)?;
            return Some(References::new(vec![class], &known));
        }
        let names = self.names(section, "class", "class of traffic")?;
        let mut counted = Vec::new();
        for name in &names {
            let found = known.iter().position(|class| class == name);
            let message = match found {
                None => no_such("class of traffic", name, known.iter().copied()),
                Some(class) if counted.contains(&class) => format!("\"{name}\" is named twice"),
                Some(class) => {
                    counted.push(class);
                    continue;
                }
            };
            self.error(&section.at("class"), &section.sub("class"), message);
            return None;
        }
        self.enter(section, "class", &format!("{names:?}"), aqmlab_params::Origin::Given);
        Some(References::new(counted, &known))
    }

    fn condition(&mut self, stop: &Section<'_>, node: &Node, links: &[String]) -> Option<QueueStop> {
        let section = self.section(node, &stop.sub("condition"), CONDITION)?;
        let names: Vec<&str> = links.iter().map(String::as_str).collect();
        let link = self.one_of(&section, "queue", "link", &names);
        let written: Vec<&'static str> =
            QUANTITIES.iter().copied().filter(|q| section.node(q).is_some()).collect();
        let [word] = written.as_slice() else {
            let what =
                if written.is_empty() { "nothing is counted" } else { "several quantities are counted" };
            let choice = listed(QUANTITIES.iter().copied());
            self.error(&node.at, &section.path, format!("{what}; write one of {choice}"));
            return None;
        };
        let count = self.integer(&section, word)?;
        let quantity = match *word {
            "arrivals" => QueueCount::Arrivals,
            "drops" => QueueCount::Drops,
            "marks" => QueueCount::Marks,
            _ => QueueCount::Backlog,
        };
        Some(QueueStop { link: Reference::new(link?, &names), quantity, count })
    }

    /// Returns the index in `names` of the name at a key.
    pub(crate) fn one_of(
        &mut self,
        section: &Section<'_>,
        key: &str,
        what: &str,
        names: &[&str],
    ) -> Option<usize> {
        let name = self.name(section, key)?;
        let found = names.iter().position(|n| *n == name);
        if found.is_none() {
            let message = no_such(what, &name, names.iter().copied());
            self.error(&section.at(key), &section.sub(key), message);
        } else {
            self.enter(section, key, &name, aqmlab_params::Origin::Given);
        }
        found
    }
}
