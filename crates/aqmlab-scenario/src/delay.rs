//! Delay stages: rules for packets at the edge of the network, between a flow's own link, if it has one, and a router.

use aqmlab_params::{Origin, Value};
use aqmlab_qdisc::Pipe;
use aqmlab_random::Stream;
use aqmlab_traffic::{Distribution, Identity, Probability};
use aqmlab_units::{Bytes, Span};

use crate::field::OURS;
use crate::language::DELAY_RULE;
use crate::pass::{Pass, Section};
use crate::plan::{ClassPlan, DelayPlan, Edge, LinkPlan, Plan, PopulationPlan};
use crate::suggest::no_such;
use crate::topology::Network;
use crate::tree::Tree;

impl Pass<'_, '_> {
    /// The rules of the file.
    pub(crate) fn delays(
        &mut self,
        file: &Section<'_>,
        network: &Network<'_>,
        classes: &[&ClassPlan],
    ) -> Option<Vec<DelayPlan>> {
        let sections = self.tables(file, "delay", DELAY_RULE)?;
        let mut rules: Vec<DelayPlan> = Vec::new();
        for (i, section) in sections.iter().enumerate() {
            if self.is_disabled(section) {
                continue;
            }
            let rule = self.delay_rule(section, i, network, classes)?;
            if rules.iter().any(|known| known.name == rule.name) {
                let message = format!("two delay stages are called \"{}\"", rule.name);
                self.error(&section.at("name"), &section.path, message);
                return None;
            }
            self.check_rule(section, &rule, network, classes)?;
            rules.push(rule);
        }
        Some(rules)
    }

    /// Whether a rule names a class of traffic that is not enabled.
    fn is_disabled(&self, section: &Section<'_>) -> bool {
        let name = section.node("class").map(|node| &node.value);
        matches!(name, Some(Tree::Text(name)) if self.disabled.contains(name))
    }

    fn delay_rule(
        &mut self,
        section: &Section<'_>,
        index: usize,
        network: &Network<'_>,
        classes: &[&ClassPlan],
    ) -> Option<DelayPlan> {
        let name = match section.node("name") {
            Some(_) => self.name(section, "name")?,
            None => format!("delay{}", index + 1),
        };
        let class = match section.node("class") {
            Some(_) => Some(self.class_at(section, classes)?),
            None => None,
        };
        let mut router = |key| match section.node(key) {
            Some(_) => self.node_at(section, key, &network.nodes).map(Some),
            None => Some(None),
        };
        let (from, to) = (router("from")?, router("to")?);
        let directions = match self.value(section, "direction")? {
            Value::Choice("to_receiver") => [true, false],
            Value::Choice("to_sender") => [false, true],
            _ => [true, true],
        };
        let edge = match self.value(section, "at")? {
            Value::Choice("exit") => Edge::Exit,
            _ => Edge::Entry,
        };
        let (delay, jitter) = (self.drawn(section, "delay"), self.span(section, "jitter"));
        let loss = self.drawn(section, "loss");
        let rate = match section.node("rate") {
            Some(_) => Some(self.drawn(section, "rate")?),
            None => {
                self.enter(section, "rate", &"unlimited", Origin::Default(OURS));
                None
            }
        };
        Some(DelayPlan {
            name,
            class,
            from,
            to,
            directions,
            edge,
            delay: delay?,
            jitter: jitter?,
            loss: loss?,
            rate,
        })
    }

    fn class_at(&mut self, section: &Section<'_>, classes: &[&ClassPlan]) -> Option<usize> {
        let name = self.name(section, "class")?;
        let found = classes.iter().position(|class| class.name == name);
        match found {
            Some(_) => self.enter(section, "class", &name, Origin::Given),
            None => {
                let message = no_such("class of traffic", &name, classes.iter().map(|c| c.name.as_str()));
                self.error(&section.at("class"), &section.sub("class"), message);
            }
        }
        found
    }

    /// A rule without packets is a mistake.
    fn check_rule(
        &mut self,
        section: &Section<'_>,
        rule: &DelayPlan,
        network: &Network<'_>,
        classes: &[&ClassPlan],
    ) -> Option<()> {
        let ends = |class: &ClassPlan, direction: usize| {
            let way = if direction == 0 { &class.path } else { &class.return_path };
            let (first, last) = (way.first()?, way.last()?);
            Some([network.links[*first].from, network.links[*last].to])
        };
        let matching = |(i, class): &(usize, &&ClassPlan)| {
            (0..2)
                .any(|direction| ends(class, direction).is_some_and(|ends| rule.matches(*i, direction, ends)))
        };
        if !classes.iter().enumerate().any(|class| matching(&class)) {
            let message = "no packet matches this rule: no class of traffic has packets that go this way";
            self.error(&section.at, &section.path, message);
            return None;
        }
        let spread = [
            ("delay", matches!(rule.delay, Distribution::Spread { .. })),
            ("loss", matches!(rule.loss, Distribution::Spread { .. })),
            ("rate", matches!(rule.rate, Some(Distribution::Spread { .. }))),
        ];
        for (key, _) in spread.into_iter().filter(|(_, spread)| *spread) {
            let endless = |class: &(usize, &&ClassPlan)| {
                matching(class)
                    && matches!(class.1.population, PopulationPlan::Arrivals(_) | PopulationPlan::Cloud(_))
            };
            if let Some((_, class)) = classes.iter().enumerate().find(endless) {
                let message = format!(
                    "`spread` needs a known number of flows, and connections of \"{}\" come at a `rate` without end; write \
                     `uniform`",
                    class.name
                );
                self.error(&section.at(key), &section.sub(key), message);
                return None;
            }
        }
        Some(())
    }
}

/// The names of directions in paths of draws.
const TOWARD: [&str; 2] = ["to_receiver", "to_sender"];

impl DelayPlan {
    /// Does it hold for packets of class number `class` in this direction (0: to the receiver), which enter and leave
    /// the network at these routers?
    fn matches(&self, class: usize, direction: usize, [enter, leave]: [usize; 2]) -> bool {
        self.class.is_none_or(|wanted| wanted == class)
            && self.from.is_none_or(|wanted| wanted == enter)
            && self.to.is_none_or(|wanted| wanted == leave)
            && self.directions[direction]
    }

    /// May it ever lose a packet?
    pub fn loses(&self) -> bool {
        self.loss != Distribution::Constant(Probability::NEVER)
    }

    /// What packets go through that match the rule but belong to no flow: the mean delay, and no more.
    pub fn mean_pipe(&self) -> Pipe {
        Pipe::new(self.delay.mean())
    }

    /// What the packets of a connection of `class` go through in this direction. All is drawn from streams that the rule,
    /// the class, the direction and the connection name; constant delay, loss probability and rate are its host's.
    pub fn pipe(&self, class: &ClassPlan, direction: usize, of: Identity, seed: u64) -> Pipe {
        let (toward, count, index) = (TOWARD[direction], class.count, class.host_index(of));
        let stream = |what, index| {
            Stream::indexed(seed, format_args!("delay/{}/{}/{toward}/{what}", self.name, class.name), index)
        };
        let draws = |what| stream(what, index);
        let mut pipe = Pipe::new(self.delay.value(index, count, draws("delay")));
        if let Some(rate) = &self.rate {
            pipe = pipe.with_rate(rate.value(index, count, draws("rate")), Bytes::ZERO);
        }
        let loss = self.loss.value(index, count, draws("loss"));
        if loss != Probability::NEVER {
            pipe = pipe.with_loss(loss.get(), stream("lost", of.index()));
        }
        if !self.jitter.is_zero() {
            pipe = pipe.with_jitter(self.jitter, stream("jitter", of.index()));
        }
        pipe
    }
}

/// The first rule for the packets of class number `class` in a direction (0: to the receiver) at an edge.
pub(crate) fn rule_of(
    delays: &[DelayPlan],
    ends: [usize; 2],
    class: usize,
    direction: usize,
    edge: Edge,
) -> Option<&DelayPlan> {
    delays.iter().find(|rule| rule.edge == edge && rule.matches(class, direction, ends))
}

/// The routers where packets of a class enter and leave the network, by direction.
fn ends(links: &[LinkPlan], class: &ClassPlan, direction: usize) -> [usize; 2] {
    let way = if direction == 0 { &class.path } else { &class.return_path };
    let link = |at: Option<&usize>| &links[*at.expect("a path has links")];
    [link(way.first()).from, link(way.last()).to]
}

impl Plan {
    /// The delay stage that packets of class number `class` meet in a direction (0: to the receiver) at an edge.
    pub fn delay_stage(&self, class: usize, direction: usize, edge: Edge) -> Option<&DelayPlan> {
        rule_of(&self.delays, ends(&self.links, &self.classes[class], direction), class, direction, edge)
    }
}

/// The mean of what delay stages add to the round-trip time of a class.
pub(crate) fn mean_of(delays: &[DelayPlan], ends: [[usize; 2]; 2], class: usize) -> Span {
    let mut sum = Span::ZERO;
    for (direction, ends) in ends.into_iter().enumerate() {
        for edge in [Edge::Entry, Edge::Exit] {
            if let Some(rule) = rule_of(delays, ends, class, direction, edge) {
                sum += rule.delay.mean();
            }
        }
    }
    sum
}
