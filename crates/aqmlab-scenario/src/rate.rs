//! Reads the rate of a link: constant, or changing during the run.

use std::fmt::{self, Display};
use std::sync::Arc;

use aqmlab_params::{Kind, Origin, Value};
use aqmlab_units::{Rate, Span};

use crate::field::OURS;
use crate::language::{CHANGING_RATES, LEVEL, MOMENT};
use crate::pass::{Pass, Section};
use crate::plan::{AtEnd, ChangingRate, RateClock, RateCourse};
use crate::trace::{MAHIMAHI_CHANCE, RateStep};
use crate::tree::{Node, Tree};

/// The rate of a link: constant, or the mean of a rate that changes.
#[derive(Clone)]
pub(crate) struct LinkRate {
    pub(crate) mean: Rate,
    pub(crate) changes: Option<ChangingRate>,
}

impl Display for LinkRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.changes {
            None => self.mean.fmt(f),
            Some(_) => write!(f, "changing, mean {}", self.mean),
        }
    }
}

/// The lowest mean rate of a link, which is also the lowest constant rate.
const LEAST_MEAN: Rate = Rate::kbit(1);
/// A file of chances with a lower mean rate is probably not in milliseconds.
const SLOW_CHANCES: Rate = Rate::kbit(100);

impl Pass<'_, '_> {
    /// Returns the rate of a link.
    pub(crate) fn link_rate(&mut self, section: &Section<'_>, key: &str) -> Option<LinkRate> {
        let path = section.sub(key);
        let changes = match section.node(key) {
            Some(node @ Node { value: Tree::List(_), .. }) => {
                let steps = self.steps(node, &path)?;
                self.enter(section, key, &Steps(&steps), Origin::Given);
                ChangingRate { clock: RateClock::Serving, course: RateCourse::Steps { steps, repeat: None } }
            }
            Some(node @ Node { value: Tree::Table(_), .. }) => self.changing_rate(node, &path)?,
            _ => return self.rate(section, key).map(|mean| LinkRate { mean, changes: None }),
        };
        let mean = changes.mean(self.run_length?);
        if mean < LEAST_MEAN {
            let message = format!(
                "the mean of the rate over the run is `{mean}`; it must be at least {LEAST_MEAN}, so write a rate \
                 above zero for some of the time"
            );
            self.error(&section.at(key), &path, message);
            return None;
        }
        let rule =
            "mean over the run, or over the period of what repeats; for draws, their expectation".into();
        let help = "the rate that automatic parameters and bandwidth-delay products use";
        self.enter_at(format!("{path}.mean"), &mean, Origin::Derived(rule), help);
        Some(LinkRate { mean, changes: Some(changes) })
    }

    fn changing_rate(&mut self, node: &Node, path: &str) -> Option<ChangingRate> {
        let variant = self.variant(node, path, CHANGING_RATES)?;
        let section = self.open_section(node, path, variant.all_fields())?;
        self.check_keys(section.table, path, &section.fields, &["kind"]);
        self.enter_at(section.sub("kind"), &variant.kind, Origin::Given, variant.help);
        let clock = self.rate_clock(&section);
        let course = match variant.kind {
            "steps" => self.listed_steps(&section),
            "file" => self.level_file(&section),
            "mahimahi" => self.chance_file(&section, clock?),
            "outages" => self.outages(&section),
            "markov" => self.markov(&section),
            "redrawn" => self.redrawn(&section),
            "fading" => self.fading(&section),
            _ => self.stalls(&section),
        };
        Some(ChangingRate { clock: clock?, course: course? })
    }

    fn rate_clock(&mut self, section: &Section<'_>) -> Option<RateClock> {
        let at_chances = self.word(section, "clock")? == "chances";
        match (section.node("chance"), at_chances) {
            (Some(_), true) => self.bytes(section, "chance").map(|size| RateClock::Chances { size }),
            (None, true) => {
                self.enter(section, "chance", &MAHIMAHI_CHANCE, Origin::Default(OURS));
                Some(RateClock::Chances { size: MAHIMAHI_CHANCE })
            }
            (None, false) => Some(RateClock::Serving),
            (Some(node), false) => {
                let message = "`chance` needs `clock = \"chances\"`; write that, or remove it";
                self.error(&node.at, &section.sub("chance"), message);
                None
            }
        }
    }

    /// Returns the steps at a node: pairs of an instant and a rate.
    fn steps(&mut self, node: &Node, path: &str) -> Option<Arc<[RateStep]>> {
        let step = |(at, value): (Span, Value)| match value {
            Value::Rate(rate) => RateStep { at, rate },
            _ => unreachable!("the kind decides the value's type"),
        };
        let pairs = self.pairs(node, path, &LEVEL, "[[\"0s\", \"10Mbit\"], [\"5s\", \"2Mbit\"]]")?;
        Some(pairs.into_iter().map(step).collect())
    }

    /// Returns the pairs of an instant and a value of this kind at a node; messages have the example.
    pub(crate) fn pairs(
        &mut self,
        node: &Node,
        path: &str,
        kind: &Kind,
        example: &str,
    ) -> Option<Vec<(Span, Value)>> {
        let items = match &node.value {
            Tree::List(items) if !items.is_empty() => items,
            other => {
                let what = if matches!(other, Tree::List(_)) { "an empty list" } else { other.what() };
                let quoted = self.report.quote(&node.at);
                let message = format!("`{quoted}` is {what}; write a list of pairs, such as {example}");
                self.error(&node.at, path, message);
                return None;
            }
        };
        let mut steps: Vec<(Span, Value)> = Vec::new();
        for item in items {
            let pair = match &item.value {
                Tree::List(pair) => pair.as_slice(),
                _ => &[],
            };
            let [at, value] = pair else {
                let quoted = self.report.quote(&item.at);
                let message = format!("`{quoted}` is not a pair; write a list of pairs, such as {example}");
                self.error(&item.at, path, message);
                return None;
            };
            let Value::Span(time) = self.given(at, path, &MOMENT)? else {
                unreachable!("the kind decides the value's type")
            };
            let value = self.given(value, path, kind)?;
            let message = match steps.last() {
                None if !time.is_zero() => {
                    format!("the first step is at `{time}`; write the value from \"0s\" on before it")
                }
                Some((before, _)) if time <= *before => {
                    format!("`{time}` is not after `{before}` of the step before; sort the steps by time")
                }
                _ => String::new(),
            };
            if !message.is_empty() {
                self.error(&at.at, path, message);
                return None;
            }
            steps.push((time, value));
        }
        Some(steps)
    }

    fn listed_steps(&mut self, section: &Section<'_>) -> Option<RateCourse> {
        let Some(node) = section.node("steps") else {
            self.missing(section, section.field("steps"));
            return None;
        };
        let steps = self.steps(node, &section.sub("steps"))?;
        self.enter(section, "steps", &Steps(&steps), Origin::Given);
        let repeat = match section.node("repeat") {
            Some(_) => Some(self.span(section, "repeat")?),
            None => None,
        };
        let last = steps.last().map_or(Span::ZERO, |step| step.at);
        if let Some(repeat) = repeat.filter(|repeat| *repeat <= last) {
            let message =
                format!("`repeat` is `{repeat}`, but the last step is at `{last}`; write a longer time");
            self.error(&section.at("repeat"), &section.sub("repeat"), message);
            return None;
        }
        Some(RateCourse::Steps { steps, repeat })
    }

    /// Returns the file that a rate names, read by `read`, and adds what it contains to the effective parameters.
    pub(crate) fn rate_file<T>(
        &mut self,
        section: &Section<'_>,
        read: impl FnOnce(&Self, &str) -> Result<Arc<T>, String>,
        facts: impl FnOnce(&T) -> (&'static str, usize, String),
    ) -> Option<Arc<T>> {
        let file = self.text(section, "file")?;
        match read(self, &file) {
            Ok(content) => {
                let (what, count, digest) = facts(&content);
                let rule = Origin::Derived("the rows of the file".into());
                self.enter_at(section.sub(what), &count, rule.clone(), "rows of the file");
                self.enter_at(section.sub("digest"), &digest, rule, "SHA-256 of the file");
                Some(content)
            }
            Err(message) => {
                self.error(&section.at("file"), &section.sub("file"), message);
                None
            }
        }
    }

    fn level_file(&mut self, section: &Section<'_>) -> Option<RateCourse> {
        let levels = self.rate_file(
            section,
            |pass, file| pass.traces.levels(file)?.with("rate"),
            |levels| ("levels", levels.levels(), levels.digest.clone()),
        )?;
        let at_end = self.at_end(section, &levels.file, levels.length)?;
        if at_end == AtEnd::Repeat && levels.length.is_zero() && section.node("at_end").is_some() {
            let message =
                "a file with one level has no length and cannot be repeated; write at_end = \"hold\"";
            self.error(&section.at("at_end"), &section.sub("at_end"), message);
            return None;
        }
        let at_end = if levels.length.is_zero() { AtEnd::Hold } else { at_end };
        Some(RateCourse::File { levels, at_end })
    }

    fn chance_file(&mut self, section: &Section<'_>, clock: RateClock) -> Option<RateCourse> {
        let chances = self.rate_file(
            section,
            |pass, file| pass.traces.chances(file),
            |chances| ("chances", chances.chances(), chances.digest.clone()),
        )?;
        let at_end = self.at_end(section, &chances.file, chances.length())?;
        let size = match clock {
            RateClock::Chances { size } => size,
            RateClock::Serving => MAHIMAHI_CHANCE,
        };
        let mean = chances.mean(size);
        if mean < SLOW_CHANCES {
            self.report.warn(format!(
                "the chances of `{}` amount to {mean} over {}; if its lines are microseconds, divide them by 1000: that \
                 would be {}",
                chances.file,
                chances.length(),
                Rate::bps(mean.as_bps().saturating_mul(1000))
            ));
        }
        let bin = match (clock, section.node("bin")) {
            (RateClock::Serving, Some(_)) => Some(self.span(section, "bin")?),
            (RateClock::Serving, None) => {
                let bin = Span::ms(100);
                self.enter(section, "bin", &bin, Origin::Default(OURS));
                Some(bin)
            }
            (RateClock::Chances { .. }, None) => None,
            (RateClock::Chances { .. }, Some(node)) => {
                let message = "`bin` needs `clock = \"serving\"`; write that, or remove it";
                self.error(&node.at, &section.sub("bin"), message);
                return None;
            }
        };
        Some(RateCourse::Mahimahi { chances, at_end, bin })
    }

    /// Returns what follows the end of a file of this length.
    pub(crate) fn at_end(&mut self, section: &Section<'_>, file: &str, length: Span) -> Option<AtEnd> {
        if section.node("at_end").is_some() {
            let Value::Choice(word) = self.value(section, "at_end")? else {
                unreachable!("the kind decides the value's type")
            };
            return Some(if word == "hold" { AtEnd::Hold } else { AtEnd::Repeat });
        }
        self.enter(section, "at_end", &"repeat", Origin::Default(OURS));
        let run = self.run_length?;
        if !length.is_zero() && length < run {
            self.report.warn(format!(
                "`{file}` lasts {length}, less than the run of {run}, and is repeated; write `at_end` to confirm that, or \
                 to hold its last level"
            ));
        }
        Some(AtEnd::Repeat)
    }

    fn outages(&mut self, section: &Section<'_>) -> Option<RateCourse> {
        let (rate, up, down) = (
            self.rate(section, "rate"),
            self.drawn::<Span>(section, "up"),
            self.drawn::<Span>(section, "down"),
        );
        let (up, down) = (up?, down?);
        for (key, mean) in [("up", up.mean()), ("down", down.mean())] {
            if mean.is_zero() {
                let message = format!("the mean of `{key}` is zero; write a longer time");
                self.error(&section.at(key), &section.sub(key), message);
                return None;
            }
        }
        Some(RateCourse::Outages { rate: rate?, up, down })
    }

    fn markov(&mut self, section: &Section<'_>) -> Option<RateCourse> {
        let stay = self.span(section, "stay");
        let Some(node) = section.node("levels") else {
            self.missing(section, section.field("levels"));
            return None;
        };
        let path = section.sub("levels");
        let items = match &node.value {
            Tree::List(items) if items.len() > 1 => items,
            _ => {
                let message = format!(
                    "`{}` is not a list of at least two rates; write one such as [\"2Mbit\", \"20Mbit\"]",
                    self.report.quote(&node.at)
                );
                self.error(&node.at, &path, message);
                return None;
            }
        };
        let mut levels = Vec::new();
        for item in items {
            let Value::Rate(rate) = self.given(item, &path, &LEVEL)? else {
                unreachable!("the kind decides the value's type")
            };
            levels.push(rate);
        }
        let shown: Vec<String> = levels.iter().map(Rate::to_string).collect();
        self.enter(section, "levels", &shown.join(", "), Origin::Given);
        Some(RateCourse::Markov { levels, stay: stay? })
    }

    fn redrawn(&mut self, section: &Section<'_>) -> Option<RateCourse> {
        let (level, every) = (self.drawn(section, "level"), self.span(section, "every")?);
        let first = self.span_or(section, "first", every, "as `every`")?;
        Some(RateCourse::Redrawn { level: level?, every, first })
    }

    fn fading(&mut self, section: &Section<'_>) -> Option<RateCourse> {
        let (mean, deviation_db) = (self.rate(section, "mean"), self.number(section, "deviation_db"));
        let coherence = self.span(section, "coherence")?;
        let step =
            self.span_or(section, "step", coherence.div(10).max(Span::us(100)), "a tenth of `coherence`")?;
        Some(RateCourse::Fading { mean: mean?, deviation_db: deviation_db?, coherence, step })
    }

    fn stalls(&mut self, section: &Section<'_>) -> Option<RateCourse> {
        let (rate, lasts) = (self.rate(section, "rate"), self.span(section, "lasts"));
        let every = self.span(section, "every")?;
        let first = self.span_or(section, "first", every, "as `every`")?;
        let lasts = lasts?;
        if lasts >= every {
            let message = format!(
                "a stall of `{lasts}` does not end before the next, `{every}` later; write a shorter one"
            );
            self.error(&section.at("lasts"), &section.sub("lasts"), message);
            return None;
        }
        Some(RateCourse::Stalls { rate: rate?, every, lasts, first })
    }

    /// Returns the time at a key or, if it is not written, `otherwise`, which follows from a rule.
    fn span_or(&mut self, section: &Section<'_>, key: &str, otherwise: Span, rule: &str) -> Option<Span> {
        if section.node(key).is_some() {
            return self.span(section, key);
        }
        self.derive(section, key, &otherwise, rule);
        Some(otherwise)
    }
}

/// Steps in the notation of scenarios, or their number if there are many.
struct Steps<'s>(&'s [RateStep]);

impl Display for Steps<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const MOST: usize = 8;
        if self.0.len() > MOST {
            return write!(f, "{} steps", self.0.len());
        }
        let pairs: Vec<String> =
            self.0.iter().map(|step| format!("[\"{}\", \"{}\"]", step.at, step.rate)).collect();
        write!(f, "[{}]", pairs.join(", "))
    }
}
