//! Delay stages: rules for packets at the edge of the network, between a flow's own link (if any)
//! and a router, and in routers before their output queues.

use std::sync::Arc;

use aqmlab_params::{Kind, Origin, Value};
use aqmlab_qdisc::{Course, Loss, Pipe, Times, UpTo, mean_of_ticks};
use aqmlab_random::Stream;
use aqmlab_traffic::packmime::HostDelay;
use aqmlab_traffic::{Distribution, End, Identity, Probability};
use aqmlab_units::{Bytes, Span};

use crate::field::OURS;
use crate::language::{CHANCE, DELAY, DELAY_RULE, EDGES, LEVEL_FILE};
use crate::pass::{Pass, Section};
use crate::plan::{
    AtEnd, ClassPlan, DelayCourse, DelayPlan, Edge, EndDelay, Jitter, LossCourse, Plan, Reference, StageAt,
    StageDelay, StagePlace, TickPlan,
};
use crate::suggest::no_such;
use crate::topology::Network;
use crate::trace::{DelayStep, LevelFile, LossStep};
use crate::tree::{Node, Tree};

impl Pass<'_, '_> {
    /// Reads the delay rules in the file.
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

    /// Returns whether a rule names a class of traffic that is not enabled.
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
            Some(_) => self
                .node_at(section, key, &network.nodes)
                .map(|node| Some(Reference::new(node, &network.nodes))),
            None => Some(None),
        };
        let (from, to) = (router("from")?, router("to")?);
        let direction = self.value(section, "direction")?;
        let at = self.stage_place(section, network)?;
        let (delay, jitter) = (self.stage_delay(section), self.drawn::<Span>(section, "jitter"));
        let reorder = self.flag(section, "reorder");
        let (loss, loss_course) = self.stage_loss(section)?;
        let rate = match section.node("rate") {
            Some(_) => Some(self.drawn(section, "rate")?),
            None => {
                self.enter(section, "rate", &"unlimited", Origin::Default(OURS));
                None
            }
        };
        let ticks = self.stage_ticks(section)?;
        Some(DelayPlan {
            name,
            class,
            from,
            to,
            to_receiver: direction != Value::Choice("to_sender"),
            to_sender: direction != Value::Choice("to_receiver"),
            at,
            delay: delay?,
            jitter: match jitter? {
                Distribution::Constant(most) => Jitter::UpTo(most),
                drawn => Jitter::Drawn(drawn),
            },
            reorder: reorder?,
            loss,
            loss_course,
            rate,
            ticks,
        })
    }

    /// Returns the clocks of the hosts that delay, if packets leave at ticks.
    fn stage_ticks(&mut self, section: &Section<'_>) -> Option<Option<TickPlan>> {
        let tick = self.span(section, "tick")?;
        let refused = match (tick.is_zero(), section.node("tick_hosts"), section.node("jitter")) {
            (true, Some(_), _) => {
                Some(("tick_hosts", "has no effect without `tick`; write the tick, or remove it"))
            }
            (false, _, Some(_)) => {
                Some(("jitter", "cannot accompany `tick`: packets leave at ticks; remove one of them"))
            }
            _ => None,
        };
        if let Some((key, why)) = refused {
            self.error(&section.at(key), &section.sub(key), format!("`{key}` {why}"));
            return None;
        }
        if tick.is_zero() {
            return Some(None);
        }
        let hosts = match section.node("tick_hosts") {
            Some(_) => match self.value(section, "tick_hosts")? {
                Value::Integer(hosts) => hosts,
                _ => unreachable!("the kind decides the value's type"),
            },
            None => {
                self.enter(section, "tick_hosts", &1, Origin::Default(OURS));
                1
            }
        };
        Some(Some(TickPlan { tick, hosts }))
    }

    /// Returns the place of a stage: an edge of the network, or the router that the file names.
    fn stage_place(&mut self, section: &Section<'_>, network: &Network<'_>) -> Option<StageAt> {
        if section.node("at").is_none() {
            self.enter(section, "at", &"entry", Origin::Default(OURS));
            return Some(StageAt::Entry);
        }
        let word = self.name(section, "at")?;
        let (place, at) = match EDGES.iter().position(|edge| *edge == word) {
            Some(0) => (StageAt::Entry, word),
            Some(_) => (StageAt::Exit, word),
            None => {
                let Some(node) = network.nodes.iter().position(|node| *node == word) else {
                    let nodes = network.nodes.iter().map(String::as_str);
                    let message = no_such("edge or router", &word, EDGES.iter().copied().chain(nodes));
                    self.error(&section.at("at"), &section.sub("at"), message);
                    return None;
                };
                (StageAt::Router { router: Reference::new(node, &network.nodes) }, word)
            }
        };
        self.enter(section, "at", &at, Origin::Given);
        Some(place)
    }

    /// Returns the loss probability of a stage: its distribution over flows, or its mean and its course.
    fn stage_loss(
        &mut self,
        section: &Section<'_>,
    ) -> Option<(Distribution<Probability>, Option<LossCourse>)> {
        let (path, node) = (section.sub("loss"), section.node("loss"));
        let course = match node.map(|node| &node.value) {
            Some(Tree::List(_)) => {
                let step = |(at, value): (Span, Value)| match value {
                    Value::Number(loss) => LossStep { at, loss },
                    _ => unreachable!("the kind decides the value's type"),
                };
                let pairs = self.pairs(node?, &path, &CHANCE, "[[\"0s\", 0.0], [\"5s\", 0.01]]")?;
                LossCourse::Steps { steps: pairs.into_iter().map(step).collect() }
            }
            Some(Tree::Table(table)) if table.get("file").is_some() => {
                let (levels, at_end) = self.stage_file(node?, &path, "loss")?;
                LossCourse::File { levels, at_end }
            }
            _ => return self.drawn(section, "loss").map(|loss| (loss, None)),
        };
        let mean = course.mean(self.run_length?);
        self.enter(section, "loss", &format!("changing, mean {mean}"), Origin::Given);
        Some((Distribution::Constant(Probability::new(mean)?), Some(course)))
    }

    /// Returns the file at a node, which has a column of delays or of losses, and what follows its end.
    fn stage_file(&mut self, node: &Node, path: &str, what: &'static str) -> Option<(Arc<LevelFile>, AtEnd)> {
        let section = self.section(node, path, LEVEL_FILE)?;
        let levels = self.rate_file(
            &section,
            |pass, file| pass.traces.levels(file)?.with(what),
            |levels| ("levels", levels.levels(), levels.digest.clone()),
        )?;
        let at_end = self.at_end(&section, &levels.file, levels.length)?;
        let at_end = if levels.length.is_zero() { AtEnd::Hold } else { at_end };
        Some((levels, at_end))
    }

    fn stage_delay(&mut self, section: &Section<'_>) -> Option<StageDelay> {
        const ENDS: &Kind = &Kind::Choice(&["client", "server"]);
        let end = |word: &str| End::ALL.into_iter().find(|end| end.name() == word);
        let (value, delay) = match section.node("delay").map(|node| &node.value) {
            Some(Tree::Text(word)) if end(word).is_some() => {
                (word.clone(), StageDelay::Of(EndDelay::Cloud(end(word)?)))
            }
            Some(Tree::Table(table)) if table.get("packmime").is_some() => {
                let path = section.sub("delay");
                if let Some(other) = table.entries.iter().find(|entry| entry.key != "packmime") {
                    let message = format!("`{}` cannot accompany `packmime`; remove it", other.key);
                    self.error(&other.key_at, &path, message);
                    return None;
                }
                let node = table.get("packmime")?;
                let Value::Choice(word) = self.given(node, &format!("{path}.packmime"), ENDS)? else {
                    unreachable!("the kind decides the value's type")
                };
                (format!("{{ packmime = \"{word}\" }}"), StageDelay::Of(EndDelay::Packmime(end(word)?)))
            }
            Some(Tree::List(_)) => {
                let step = |(at, value): (Span, Value)| match value {
                    Value::Span(delay) => DelayStep { at, delay },
                    _ => unreachable!("the kind decides the value's type"),
                };
                let (path, node) = (section.sub("delay"), section.node("delay")?);
                let pairs = self.pairs(node, &path, &DELAY, "[[\"0s\", \"10ms\"], [\"5s\", \"40ms\"]]")?;
                self.changing_delay(DelayCourse::Steps { steps: pairs.into_iter().map(step).collect() })?
            }
            Some(Tree::Table(table)) if table.get("file").is_some() => {
                let (levels, at_end) =
                    self.stage_file(section.node("delay")?, &section.sub("delay"), "delay")?;
                self.changing_delay(DelayCourse::File { levels, at_end })?
            }
            _ => return self.drawn(section, "delay").map(StageDelay::Drawn),
        };
        self.enter(section, "delay", &value, Origin::Given);
        Some(delay)
    }

    fn changing_delay(&self, course: DelayCourse) -> Option<(String, StageDelay)> {
        let mean = course.mean(self.run_length?);
        Some((format!("changing, mean {mean}"), StageDelay::Changing { course, mean }))
    }

    fn class_at(&mut self, section: &Section<'_>, classes: &[&ClassPlan]) -> Option<Reference> {
        let name = self.name(section, "class")?;
        let names: Vec<&str> = classes.iter().map(|class| class.name.as_str()).collect();
        let found = names.iter().position(|known| *known == name);
        match found {
            Some(_) => self.enter(section, "class", &name, Origin::Given),
            None => {
                let message = no_such("class of traffic", &name, names.iter().copied());
                self.error(&section.at("class"), &section.sub("class"), message);
            }
        }
        found.map(|class| Reference::new(class, &names))
    }

    /// Reports a rule that matches no packets.
    fn check_rule(
        &mut self,
        section: &Section<'_>,
        rule: &DelayPlan,
        network: &Network<'_>,
        classes: &[&ClassPlan],
    ) -> Option<()> {
        let ends = |link: usize| [network.links[link].from, network.links[link].to];
        let matching = |(i, class): &(usize, &&ClassPlan)| {
            (0..2).any(|direction| rule.matches(*i, direction, class.way(direction), ends))
        };
        if !classes.iter().enumerate().any(|class| matching(&class)) {
            let message = match &rule.at {
                StageAt::Entry | StageAt::Exit => {
                    "no packet matches this rule: no traffic class sends packets in this direction"
                        .to_string()
                }
                StageAt::Router { router } => format!(
                    "no packet matches this rule: none of the traffic classes that it covers sends packets through \"{}\" in this direction",
                    router.names()
                ),
            };
            self.error(&section.at, &section.path, message);
            return None;
        }
        if let StageDelay::Of(EndDelay::Cloud(end)) = rule.delay {
            let other = |class: &(usize, &&ClassPlan)| matching(class) && !class.1.knows_ends();
            if let Some((_, class)) = classes.iter().enumerate().find(other) {
                let (end, name) = (end.name(), &class.name);
                let message = format!(
                    "\"{end}\" is the delay that a cloud draws, or a trace gives, for its {end}s, but class \"{name}\" \
                     is neither a cloud nor a trace with delays; give the `class` of a cloud or of such a trace, or write {{ packmime = \"{end}\" }} \
                     for a separate draw per flow"
                );
                self.error(&section.at("delay"), &section.sub("delay"), message);
                return None;
            }
        }
        self.check_reordering(
            section,
            rule,
            &classes.iter().enumerate().filter(matching).map(|(_, c)| *c).collect::<Vec<_>>(),
        )?;
        let spread = [
            ("delay", matches!(rule.delay, StageDelay::Drawn(Distribution::Spread { .. }))),
            ("loss", matches!(rule.loss, Distribution::Spread { .. })),
            ("rate", matches!(rule.rate, Some(Distribution::Spread { .. }))),
        ];
        for (key, _) in spread.into_iter().filter(|(_, spread)| *spread) {
            let endless = |class: &(usize, &&ClassPlan)| matching(class) && class.1.draws_by_connection();
            if let Some((_, class)) = classes.iter().enumerate().find(endless) {
                let message = format!(
                    "`spread` needs a known number of flows, but the number of connections of \"{}\" is not known in advance; write `uniform`",
                    class.name
                );
                self.error(&section.at(key), &section.sub(key), message);
                return None;
            }
        }
        Some(())
    }
}

impl Pass<'_, '_> {
    /// Reports packets that are to overtake each other but cannot.
    fn check_reordering(
        &mut self,
        section: &Section<'_>,
        rule: &DelayPlan,
        classes: &[&ClassPlan],
    ) -> Option<()> {
        if !rule.reorder {
            return Some(());
        }
        let has_links = |class: &&&ClassPlan| (0..2).any(|end| class.has_access(end));
        let changes = matches!(rule.delay, StageDelay::Changing { .. });
        let message = if rule.jitter.is_none() && !changes {
            "`reorder` needs `jitter` or a `delay` that changes: without them, packets leave in their order; write one of them, \
             or remove it"
                .to_owned()
        } else if let (StageAt::Exit, Some(class)) = (&rule.at, classes.iter().find(has_links)) {
            format!(
                "packets that have overtaken each other cannot enter the access links of \"{}\", which keep the order; \
                 put the stage at the entry or in a router, or write `access_rate = \"none\"`",
                class.name
            )
        } else {
            return Some(());
        };
        self.error(&section.at("reorder"), &section.sub("reorder"), message);
        None
    }
}

/// The jitter of packets that is drawn from a distribution.
#[derive(Debug)]
struct DrawnTimes(Distribution);

impl Times for DrawnTimes {
    fn draw(&self, stream: &mut Stream) -> Span {
        self.0.draw(0, stream)
    }
}

/// The words for the two directions in the names of random streams.
const TOWARD: [&str; 2] = ["to_receiver", "to_sender"];

impl DelayPlan {
    /// Returns whether the rule applies to packets of class number `class` in this direction (0: to
    /// the receiver), given the links that they cross (`way`) and the routers at the two ends of
    /// each link (`ends`).
    fn matches(
        &self,
        class: usize,
        direction: usize,
        way: &[usize],
        ends: impl Fn(usize) -> [usize; 2],
    ) -> bool {
        let (Some(&first), Some(&last)) = (way.first(), way.last()) else { return false };
        let [enter, leave] = [ends(first)[0], ends(last)[1]];
        let is = |wanted: &Option<Reference>, place| wanted.as_ref().is_none_or(|wanted| **wanted == place);
        is(&self.class, class)
            && is(&self.from, enter)
            && is(&self.to, leave)
            && [self.to_receiver, self.to_sender][direction]
            && match self.at.place() {
                StagePlace::Edge(_) => true,
                StagePlace::Router(router) => {
                    leave == router || way.iter().any(|&link| ends(link)[0] == router)
                }
            }
    }

    /// Returns whether the stage can ever lose a packet.
    pub fn loses(&self) -> bool {
        self.loss != Distribution::Constant(Probability::NEVER)
    }

    /// Returns whether the stage represents the delays that a cloud draws, or a trace gives, for this end of
    /// the connections.
    pub(crate) fn places(&self, end: End) -> bool {
        self.delay == StageDelay::Of(EndDelay::Cloud(end))
    }

    /// Returns the pipe for packets of `class` that match the rule but belong to no flow. This pipe only adds
    /// the mean delay.
    pub fn mean_pipe(&self, class: &ClassPlan) -> Pipe {
        Pipe::new(self.mean(class))
    }

    /// Returns the mean delay for connections of a class.
    pub fn mean(&self, class: &ClassPlan) -> Span {
        let delay = self.delay.mean(class);
        match (&self.ticks, &self.delay) {
            (None, _) => delay,
            (Some(ticks), StageDelay::Drawn(Distribution::Constant(delay))) => {
                mean_of_ticks(*delay, ticks.tick)
            }
            // Cutting to whole ticks takes half a tick on average, and so does the time since the
            // last tick.
            (Some(ticks), _) => delay.saturating_sub(ticks.tick),
        }
    }

    /// Returns the minimum delay for connections of a class.
    pub fn least(&self, class: &ClassPlan) -> Span {
        let least = Pipe::new(self.delay.least(class));
        match &self.ticks {
            None => least.least_delay(),
            Some(ticks) => least.with_ticks(ticks.tick, Span::ZERO).least_delay(),
        }
    }

    /// Returns the pipe for the packets of a connection of `class` in this direction. `carried` holds the
    /// delays that the connection's cloud or trace gives for its ends, if any. The constant delay, the loss
    /// probability and the rate are drawn for the connection's host, and the phase of a clock for the host that
    /// delays, for both directions; individual losses and jitter are drawn for
    /// the connection itself. All streams are named after the rule, the class and the direction, except that
    /// the stream for PackMime-HTTP's delays does not depend on the direction: they are the same in both.
    pub fn pipe(
        &self,
        class: &ClassPlan,
        direction: usize,
        of: Identity,
        carried: Option<[Span; 2]>,
        seed: u64,
    ) -> Pipe {
        let (toward, count, index) = (TOWARD[direction], class.count, class.host_index(of));
        let stream = |what, index| {
            Stream::indexed(seed, format_args!("delay/{}/{}/{toward}/{what}", self.name, class.name), index)
        };
        let draws = |what| stream(what, index);
        let mut pipe = Pipe::new(match &self.delay {
            StageDelay::Drawn(delay) => delay.value(index, count, draws("delay")),
            StageDelay::Changing { mean, .. } => *mean,
            StageDelay::Of(EndDelay::Cloud(end)) => {
                carried.map_or(class.mean_end(*end), |carried| carried[*end as usize])
            }
            StageDelay::Of(EndDelay::Packmime(end)) => {
                let path = format_args!("delay/{}/{}/delay", self.name, class.name);
                HostDelay::draw(*end, &mut Stream::indexed(seed, path, index))
            }
        });
        if let StageDelay::Changing { course, .. } = &self.delay {
            pipe = pipe.with_delays(course.course());
        }
        if let Some(ticks) = &self.ticks {
            let path = format_args!("delay/{}/tick", self.name);
            let mut phase = Stream::indexed(seed, path, index % ticks.hosts);
            pipe = pipe.with_ticks(ticks.tick, Span::ns(phase.below(ticks.tick.as_ns())));
        }
        if let Some(rate) = &self.rate {
            pipe = pipe.with_rate(rate.value(index, count, draws("rate")), Bytes::ZERO);
        }
        if let Some(course) = &self.loss_course {
            pipe = pipe.with_losses(Loss::changing(course.course(), stream("lost", of.index())));
        } else if self.loses() {
            let loss = self.loss.value(index, count, draws("loss"));
            if loss != Probability::NEVER {
                pipe = pipe.with_loss(loss.get(), stream("lost", of.index()));
            }
        }
        if !self.jitter.is_none() {
            let times: Arc<dyn Times> = match &self.jitter {
                Jitter::UpTo(most) => Arc::new(UpTo(*most)),
                Jitter::Drawn(times) => Arc::new(DrawnTimes(times.clone())),
            };
            pipe = pipe.with_times(times, stream("jitter", of.index()));
        }
        if self.reorder {
            pipe = pipe.reordering();
        }
        pipe
    }
}

/// Returns the mean of steps up to `end`.
fn mean_of_steps(steps: &[(Span, f64)], end: Span) -> f64 {
    let ends = steps[1..].iter().map(|step| step.0).chain([Span::MAX]);
    let parts = steps
        .iter()
        .zip(ends)
        .map(|((at, value), until)| value * until.min(end).saturating_sub(*at).as_secs_f64());
    parts.sum::<f64>() / end.as_secs_f64()
}

/// Returns after which time the levels of a file are repeated, if they are.
fn period(levels: &LevelFile, at_end: AtEnd) -> Option<Span> {
    (at_end == AtEnd::Repeat).then_some(levels.length)
}

impl DelayCourse {
    fn steps(&self) -> (&Arc<[DelayStep]>, Option<Span>) {
        match self {
            DelayCourse::Steps { steps } => (steps, None),
            DelayCourse::File { levels, at_end } => (&levels.delays, period(levels, *at_end)),
        }
    }

    fn course(&self) -> Course<Span> {
        let (steps, repeat) = self.steps();
        Course::new(steps.iter().map(|step| (step.at, step.delay)).collect(), repeat)
    }

    /// Returns the mean over a run of this length, or over the period if that is shorter.
    fn mean(&self, run: Span) -> Span {
        let (steps, repeat) = self.steps();
        let steps: Vec<_> = steps.iter().map(|step| (step.at, step.delay.as_ns() as f64)).collect();
        Span::ns((mean_of_steps(&steps, repeat.map_or(run, |repeat| repeat.min(run))) + 0.5) as u64)
    }
}

impl LossCourse {
    fn steps(&self) -> (&Arc<[LossStep]>, Option<Span>) {
        match self {
            LossCourse::Steps { steps } => (steps, None),
            LossCourse::File { levels, at_end } => (&levels.losses, period(levels, *at_end)),
        }
    }

    fn course(&self) -> Course<f64> {
        let (steps, repeat) = self.steps();
        Course::new(steps.iter().map(|step| (step.at, step.loss)).collect(), repeat)
    }

    /// Returns the mean over a run of this length, or over the period if that is shorter.
    fn mean(&self, run: Span) -> f64 {
        let (steps, repeat) = self.steps();
        let steps: Vec<_> = steps.iter().map(|step| (step.at, step.loss)).collect();
        mean_of_steps(&steps, repeat.map_or(run, |repeat| repeat.min(run))).clamp(0.0, 1.0)
    }
}

impl StageDelay {
    /// Returns the mean delay for connections of a class.
    pub fn mean(&self, class: &ClassPlan) -> Span {
        match self {
            StageDelay::Drawn(delay) => delay.mean(),
            StageDelay::Changing { mean, .. } => *mean,
            StageDelay::Of(EndDelay::Cloud(end)) => class.mean_end(*end),
            StageDelay::Of(EndDelay::Packmime(end)) => HostDelay::mean(*end),
        }
    }

    /// Returns the minimum delay for connections of a class.
    pub fn least(&self, class: &ClassPlan) -> Span {
        match self {
            StageDelay::Drawn(delay) => delay.least(),
            StageDelay::Changing { course, .. } => course.course().values().min().unwrap_or(Span::ZERO),
            StageDelay::Of(EndDelay::Cloud(end)) => class.least_end(*end),
            StageDelay::Of(EndDelay::Packmime(end)) => HostDelay::least(*end),
        }
    }
}

impl ClassPlan {
    /// Returns the links that the class's packets cross in this direction (0: to the receiver), in order.
    pub fn way(&self, direction: usize) -> &[usize] {
        if direction == 0 { &self.path } else { &self.return_path }
    }

    /// Iterates over the links in both directions.
    pub fn links_both_ways(&self) -> impl Iterator<Item = usize> {
        self.path.iter().chain(&*self.return_path).copied()
    }
}

/// Returns the places at which a packet that crosses the links `way` may meet delay stages, in
/// order.
pub(crate) fn stage_places(
    way: &[usize],
    ends: impl Fn(usize) -> [usize; 2],
) -> impl Iterator<Item = StagePlace> {
    let leave = way.last().map(|&last| ends(last)[1]);
    let routers = way.iter().map(move |&link| ends(link)[0]).chain(leave).map(StagePlace::Router);
    let [entry, exit] = [Edge::Entry, Edge::Exit].map(|edge| std::iter::once(StagePlace::Edge(edge)));
    entry.chain(routers).chain(exit)
}

impl Plan {
    /// Returns the delay stage that packets of class number `class` meet at this place in this
    /// direction (0: to the receiver): the first rule that matches.
    pub fn delay_stage(&self, class: usize, direction: usize, place: StagePlace) -> Option<&DelayPlan> {
        self.delay_stage_number(class, direction, place).map(|number| &self.delays[number])
    }

    /// Returns the number in [`Plan::delays`] of the stage that [`Plan::delay_stage`] returns.
    pub fn delay_stage_number(&self, class: usize, direction: usize, place: StagePlace) -> Option<usize> {
        let way = self.classes[class].way(direction);
        let ends = |link: usize| [*self.links[link].from, *self.links[link].to];
        self.delays
            .iter()
            .position(|rule| rule.at.place() == place && rule.matches(class, direction, way, ends))
    }
}

/// Returns the rules that packets of class number `number` meet in either direction: at each place,
/// the first rule that matches. `ends` gives the routers at the ends of a link.
pub(crate) fn met<'d>(
    delays: &'d [DelayPlan],
    class: &ClassPlan,
    number: usize,
    ends: impl Fn(usize) -> [usize; 2] + Copy,
) -> Vec<&'d DelayPlan> {
    let mut met = Vec::new();
    for direction in 0..2 {
        let way = class.way(direction);
        met.extend(stage_places(way, ends).filter_map(|place| {
            delays.iter().find(|rule| rule.at.place() == place && rule.matches(number, direction, way, ends))
        }));
    }
    met
}

/// Returns the mean delay that stages add to the round-trip time of class number `number`.
pub(crate) fn mean_of(
    delays: &[DelayPlan],
    class: &ClassPlan,
    number: usize,
    ends: impl Fn(usize) -> [usize; 2] + Copy,
) -> Span {
    met(delays, class, number, ends).into_iter().fold(Span::ZERO, |sum, rule| sum + rule.mean(class))
}
