//! Reads the controllers that adjust shapers.

use aqmlab_params::{Settings, Value};
use aqmlab_units::{Rate, Span};

use crate::language::AUTORATE;
use crate::pass::{Pass, Section};
use crate::plan::{AutorateDelay, AutoratePlan, ClassPlan, Reference};
use crate::suggest::no_such;
use crate::traffic::Carries;
use crate::tree::Node;

/// What is known of the link whose shaper a controller adjusts.
pub(crate) struct ShapedLink<'a> {
    pub(crate) number: usize,
    pub(crate) name: &'a str,
    /// The discipline of its queue, with effective parameters.
    pub(crate) kind: &'static str,
    pub(crate) settings: &'a Settings,
}

impl Pass<'_, '_> {
    /// Returns the controller that `node` describes. `back` returns the delay of a class's way back without queueing.
    pub(crate) fn autorate(
        &mut self,
        node: &Node,
        path: &str,
        link: &ShapedLink<'_>,
        classes: &[ClassPlan],
        back: impl Fn(usize) -> Span,
    ) -> Option<AutoratePlan> {
        let section = self.section(node, path, AUTORATE)?;
        let shaper = shaped_rate(link.kind, link.settings);
        if let Err(message) = &shaper {
            self.error(&node.at, path, message.as_str());
        }
        let reflector = self.reflector(&section, link, classes);
        let [min, max] = ["min", "max"].map(|key| self.rate(&section, key));
        let base = match (section.node("base"), &shaper) {
            (Some(_), _) => self.rate(&section, "base"),
            (None, Ok(rate)) => {
                self.derive(&section, "base", rate, "as the rate of the shaper");
                Some(*rate)
            }
            (None, Err(_)) => None,
        };
        let return_delay = match (section.node("return_delay"), reflector) {
            (Some(_), _) => self.span(&section, "return_delay"),
            (None, Some(class)) => {
                let delay = back(class);
                let rule = "propagation and access links of the reflector's way back";
                self.derive(&section, "return_delay", &delay, rule);
                Some(delay)
            }
            (None, None) => None,
        };
        let names: Vec<&str> = classes.iter().map(|class| class.name.as_str()).collect();
        let measures = match self.word(&section, "measures")? {
            "half_rtt" => AutorateDelay::HalfRtt,
            _ => AutorateDelay::OneWay,
        };
        let plan = AutoratePlan {
            measures,
            increase_threshold: self.span(&section, "increase_threshold")?,
            delay_threshold: self.span(&section, "delay_threshold")?,
            decrease_threshold: self.span(&section, "decrease_threshold")?,
            largest_packet: self.bytes(&section, "largest_packet")?,
            window: self.integer(&section, "window")?,
            detections: self.integer(&section, "detections")?,
            baseline_up: self.number(&section, "baseline_up")?,
            baseline_down: self.number(&section, "baseline_down")?,
            decrease_least: self.number(&section, "decrease_least")?,
            decrease_most: self.number(&section, "decrease_most")?,
            increase_least: self.number(&section, "increase_least")?,
            increase_most: self.number(&section, "increase_most")?,
            decay_down: self.number(&section, "decay_down")?,
            decay_up: self.number(&section, "decay_up")?,
            high_load: self.number(&section, "high_load")?,
            interval: self.span(&section, "interval")?,
            refractory: self.span(&section, "refractory")?,
            decay_refractory: self.span(&section, "decay_refractory")?,
            reflector: Reference::new(reflector?, &names),
            return_delay: return_delay?,
            min: min?,
            base: base?,
            max: max?,
        };
        self.autorate_is_sound(&section, &plan).then_some(plan)
    }

    /// Returns the class that the controller's reflectors are, if its packets measure the delay of the link.
    fn reflector(
        &mut self,
        section: &Section<'_>,
        link: &ShapedLink<'_>,
        classes: &[ClassPlan],
    ) -> Option<usize> {
        let name = self.name(section, "reflector")?;
        let names = || classes.iter().map(|class| class.name.as_str());
        let message = match names().position(|known| known == name) {
            None => no_such("class of traffic", &name, names()),
            Some(class) if !matches!(classes[class].traffic.carries(), Carries::Datagrams(_)) => format!(
                "class `{name}` opens connections; a reflector answers single packets, such as those of `kind = \"cbr\"`"
            ),
            Some(class) if !classes[class].path.contains(&link.number) => format!(
                "the packets of class `{name}` do not cross `{}`, so they cannot measure its delay; choose a class that sends \
                 over this link",
                link.name
            ),
            Some(class) => {
                self.enter(section, "reflector", &name, aqmlab_params::Origin::Given);
                return Some(class);
            }
        };
        self.error(&section.at("reflector"), &section.sub("reflector"), message);
        None
    }

    fn autorate_is_sound(&mut self, section: &Section<'_>, plan: &AutoratePlan) -> bool {
        let mut sound = true;
        let mut wrong = |key: &str, message: String| {
            self.error(&section.at(key), &section.sub(key), message);
            sound = false;
        };
        let AutoratePlan { min, base, max, window, detections, .. } = plan;
        if min > max {
            wrong("min", format!("`min` is `{min}`, which is above `max`, `{max}`; exchange them"));
        } else if base < min || base > max {
            wrong(
                "base",
                format!("`base` is `{base}`; it must be between `min`, `{min}`, and `max`, `{max}`"),
            );
        }
        let (low, middle, high) = (plan.increase_threshold, plan.delay_threshold, plan.decrease_threshold);
        if low >= middle {
            wrong(
                "increase_threshold",
                format!("`increase_threshold` is `{low}`; it must be below `delay_threshold`, `{middle}`"),
            );
        }
        if high <= middle {
            wrong(
                "decrease_threshold",
                format!("`decrease_threshold` is `{high}`; it must be above `delay_threshold`, `{middle}`"),
            );
        }
        if detections > window {
            wrong(
                "detections",
                format!(
                    "`detections` is {detections}, but only {window} answers count (`window`); write at most that"
                ),
            );
        }
        if plan.decrease_most > plan.decrease_least {
            let (most, least) = (plan.decrease_most, plan.decrease_least);
            wrong(
                "decrease_most",
                format!("`decrease_most` is {most}; it must be at most `decrease_least`, {least}"),
            );
        }
        if plan.increase_least > plan.increase_most {
            let (most, least) = (plan.increase_most, plan.increase_least);
            wrong(
                "increase_least",
                format!("`increase_least` is {least}; it must be at most `increase_most`, {most}"),
            );
        }
        sound
    }
}

/// Returns the rate of the shaper in a queue.
///
/// # Errors
/// The sentence for a user if there is none.
fn shaped_rate(kind: &str, settings: &Settings) -> Result<Rate, String> {
    let rate = |name: &str, of: &Settings| match of.get(name) {
        Some(Value::Rate(rate)) => Some(*rate),
        _ => None,
    };
    match kind {
        "tbf" if rate("peakrate", settings).is_some() => {
            Err("a controller adjusts one rate, but this `tbf` has a `peakrate` as well; leave that out"
                .to_owned())
        }
        "tbf" => rate("rate", settings).ok_or_else(|| "this `tbf` has no `rate`".to_owned()),
        "cake" => rate("bandwidth", settings).ok_or_else(|| {
            "this `cake` has no shaper that a controller could adjust; write its `bandwidth`".to_owned()
        }),
        "htb" => {
            let classes = settings.tables("class").unwrap_or_default();
            let roots: Vec<_> =
                classes.iter().filter(|class| class.get("parent") == Some(&Value::Nothing)).collect();
            match roots.as_slice() {
                [root] => {
                    rate("ceil", root).ok_or_else(|| "the class without a parent has no `ceil`".to_owned())
                }
                roots => Err(format!(
                    "a controller adjusts one rate, but {} classes of this `htb` have no parent; give them a common one",
                    roots.len()
                )),
            }
        }
        "policer" | "spare" => match settings.discipline("queue") {
            Ok(Some((kind, inner))) => shaped_rate(kind, inner),
            _ => Err("this queue has no shaper".to_owned()),
        },
        _ => Err(format!(
            "`{kind}` has no shaper that a controller could adjust; choose `cake` with `bandwidth`, or put the queue into \
             `tbf` or `htb`"
        )),
    }
}
