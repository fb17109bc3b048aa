//! Controllers that adjust the rates of shapers by the delay that packets of reflectors see.
//!
//! The rules are those of cake-autorate (lynxthecat/cake-autorate, `defaults.sh` and `README.md`, commit 07039794), for one
//! direction. DEVIATES from it in that the first delay of a reflector is its first baseline, where cake-autorate begins with a
//! long one that falls to the delays within a few answers; that the interval in which the rate that leaves is measured does
//! not grow at low rates; and that reflectors neither fail nor rest.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use aqmlab_qdisc::{Classed, Observer, Port, Stamped};
use aqmlab_recording::{Table, schema};
use aqmlab_scenario::{AutorateDelay, AutoratePlan, LinkPlan, Plan};
use aqmlab_units::{Bytes, Instant, Rate, Span};

/// The controllers of a run.
///
/// A host calls [`Autorates::begin`] for each of their links before the run, asks for the controller's next turn, and takes
/// it when it is due, right after a change of the link's rate and before everything else of that instant. It reports
/// when packets of reflectors are sent and delivered; a delivery may bring the next turn forward, but never to that instant.
pub struct Autorates {
    /// One place per link of the plan.
    links: Vec<Option<Box<Controller>>>,
    /// The links whose controllers have the class as their reflector, by class.
    reflectors: Vec<Vec<usize>>,
    table: Table,
}

/// A delay that a packet of a reflector has seen.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Answer {
    /// When the controller hears of it.
    at: Instant,
    /// The number of the flow in the run.
    flow: u32,
    /// The number of the packet in its flow.
    number: u64,
    delay: Span,
}

/// The controller of a shaper.
struct Controller {
    name: String,
    plan: AutoratePlan,
    overhead: Bytes,
    /// Packets on their way, by flow: their numbers and when they were sent.
    sent: BTreeMap<u32, VecDeque<(u64, Instant)>>,
    answers: BinaryHeap<Reverse<Answer>>,
    meter: Meter,
    law: Law,
}

/// Measures the rate that leaves the shaper.
struct Meter {
    next: Instant,
    /// Bytes that had left at the end of the last interval, less those before the port's books restarted.
    before: i128,
}

/// The state of the rules.
#[derive(Clone, Debug)]
struct Law {
    plan: AutoratePlan,
    rate: Rate,
    /// The baseline of each reflector, in nanoseconds.
    baselines: BTreeMap<u32, f64>,
    /// Whether each of the last delays was long, and its excess over the baseline in nanoseconds.
    window: VecDeque<(bool, f64)>,
    /// The rate that left in the last interval, and whether an increase has followed it.
    leaving: Rate,
    is_fresh: bool,
    last_decrease: Instant,
    last_decay: Instant,
}

/// What the rules have made of an answer.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Judgement {
    baseline: f64,
    mean_excess: f64,
    long: u64,
    is_high: bool,
    action: &'static str,
}

impl Autorates {
    /// Returns the controllers of `plan`.
    pub fn new(plan: &Plan) -> Self {
        let controller = |link: &LinkPlan| {
            let plan = link.autorate.clone()?;
            let (law, meter) =
                (Law::new(plan.clone()), Meter { next: Instant::ZERO + plan.interval, before: 0 });
            let (name, overhead) = (link.name.clone(), link.overhead);
            let (sent, answers) = (BTreeMap::new(), BinaryHeap::new());
            Some(Box::new(Controller { name, plan, overhead, sent, answers, meter, law }))
        };
        let links: Vec<Option<Box<Controller>>> = plan.links.iter().map(controller).collect();
        let of = |class| {
            let is_of =
                |link: &Option<Box<Controller>>| link.as_ref().is_some_and(|c| *c.plan.reflector == class);
            (0..links.len()).filter(|link| is_of(&links[*link])).collect()
        };
        let reflectors = (0..plan.classes.len()).map(of).collect();
        Autorates { links, reflectors, table: Table::new(&schema::AUTORATE) }
    }

    /// Returns whether there are no controllers.
    pub fn is_empty(&self) -> bool {
        self.links.iter().all(Option::is_none)
    }

    /// Returns whether the packets of a class are reported.
    pub fn is_reflector(&self, class: usize) -> bool {
        !self.reflectors[class].is_empty()
    }

    /// Iterates over the numbers of the links with controllers.
    pub fn numbers(&self) -> impl Iterator<Item = usize> + use<> {
        let is_there: Vec<bool> = self.links.iter().map(Option::is_some).collect();
        (0..is_there.len()).filter(move |number| is_there[*number])
    }

    /// Reserves room for this many answers, for hosts that must not allocate often once they are running.
    pub fn reserve(&mut self, answers: usize) {
        if !self.is_empty() {
            self.table.reserve(answers);
        }
    }

    fn link(&mut self, number: usize) -> &mut Controller {
        self.links[number].as_mut().expect("this link has a controller")
    }

    /// Sets the first rate of the shaper at link `number`, which is idle.
    pub fn begin<P: Classed, O: Observer<Stamped<P>>>(
        &mut self,
        number: usize,
        port: &mut Port<P>,
        obs: &mut O,
    ) {
        let rate = self.link(number).law.rate;
        port.shape(Instant::ZERO, rate, obs);
    }

    /// Returns the end of the interval over which the controller at link `number` measures what leaves. This is its next turn if
    /// no answer comes before.
    pub fn next_measurement(&self, number: usize) -> Instant {
        self.links[number].as_ref().expect("this link has a controller").meter.next
    }

    /// Returns the next turn of the controller at link `number`.
    pub fn next(&self, number: usize) -> Instant {
        let controller = self.links[number].as_ref().expect("this link has a controller");
        let answer = controller.answers.peek().map_or(Instant::FAR_FUTURE, |Reverse(answer)| answer.at);
        controller.meter.next.min(answer)
    }

    /// Records that flow `flow` of a class of reflectors has sent its packet `number`.
    pub fn sent(&mut self, class: usize, flow: u32, number: u64, now: Instant) {
        /// Packets of a flow that may be on their way; older ones count as lost.
        const MOST: usize = 4096;
        let Autorates { links, reflectors, .. } = self;
        for link in &reflectors[class] {
            let Some(controller) = &mut links[*link] else { continue };
            let sent = controller.sent.entry(flow).or_default();
            if sent.len() == MOST {
                sent.pop_front();
            }
            sent.push_back((number, now));
        }
    }

    /// Records that a packet of a reflector has reached its receiver. Calls `hears` with each link whose controller will hear of
    /// it, and when.
    pub fn delivered(
        &mut self,
        class: usize,
        flow: u32,
        number: u64,
        now: Instant,
        mut hears: impl FnMut(usize, Instant),
    ) {
        let Autorates { links, reflectors, .. } = self;
        for link in &reflectors[class] {
            let at = links[*link].as_mut().and_then(|controller| controller.delivered(flow, number, now));
            at.into_iter().for_each(|at| hears(*link, at));
        }
    }

    /// Takes the turn of the controller at link `number`, which is due now. Returns the end of the transmission that has
    /// begun, if one has.
    pub fn act<P: Classed, O: Observer<Stamped<P>>>(
        &mut self,
        number: usize,
        now: Instant,
        port: &mut Port<P>,
        obs: &mut O,
    ) -> Option<Instant> {
        let Autorates { links, table, .. } = self;
        let controller = links[number].as_mut().expect("this link has a controller");
        let before = controller.law.rate;
        controller.measure(now, port);
        while let Some(Reverse(answer)) = controller.answers.peek().copied().filter(|Reverse(a)| a.at <= now)
        {
            controller.answers.pop();
            let judgement = controller.law.judge(now, answer.flow, answer.delay);
            controller.record(&answer, judgement, table);
        }
        let rate = controller.law.rate;
        if rate == before { None } else { port.shape(now, rate, obs) }
    }

    /// Ends the warm-up. Must be called before the ports' books restart.
    pub fn warmup_ended<'p, P: Classed + 'p>(&mut self, ports: impl Iterator<Item = &'p Port<P>>) {
        for (link, port) in self.links.iter_mut().zip(ports) {
            if let Some(controller) = link {
                controller.meter.before -= left(port, controller.overhead);
            }
        }
    }

    /// Returns the table of the controllers, if there are any. They may go on, but nothing more is recorded.
    pub fn finish(&mut self) -> Option<Table> {
        let table = std::mem::replace(&mut self.table, Table::new(&schema::AUTORATE));
        (!self.is_empty()).then_some(table)
    }

    /// Returns the number of cells that have been recorded so far.
    pub fn cells(&self) -> usize {
        self.table.rows() * self.table.columns.len()
    }
}

/// Returns the bytes that have left a port since its books restarted, with what the link adds.
fn left<P: Classed>(port: &Port<P>, overhead: Bytes) -> i128 {
    let departed = port.books().departed();
    i128::from(departed.bytes + overhead.get() * departed.packets)
}

impl Controller {
    /// Returns when the controller hears of the packet.
    fn delivered(&mut self, flow: u32, number: u64, now: Instant) -> Option<Instant> {
        let sent = self.sent.get_mut(&flow)?;
        // Packets of a flow arrive in order, so those before this one are lost.
        while let Some(&(first, at)) = sent.front().filter(|(first, _)| *first <= number) {
            sent.pop_front();
            if first == number {
                // An answer is heard after everything that happens at the instant of the delivery.
                let back = self.plan.return_delay.max(Span::ns(1));
                let there = now.saturating_since(at);
                let delay = match self.plan.measures {
                    AutorateDelay::OneWay => there,
                    AutorateDelay::HalfRtt => (there + back).div(2),
                };
                self.answers.push(Reverse(Answer { at: now + back, flow, number, delay }));
                return Some(now + back);
            }
        }
        None
    }

    /// Measures the rate that has left the shaper, if an interval ends now.
    fn measure<P: Classed>(&mut self, now: Instant, port: &Port<P>) {
        if self.meter.next > now {
            return;
        }
        let left = left(port, self.overhead);
        let bytes = u64::try_from(left - self.meter.before).unwrap_or(0);
        self.law.leaving = Rate::of(Bytes::new(bytes), self.plan.interval);
        self.law.is_fresh = true;
        self.meter = Meter { next: now + self.plan.interval, before: left };
    }

    fn record(&self, answer: &Answer, judgement: Judgement, table: &mut Table) {
        let Judgement { baseline, mean_excess, long, is_high, action } = judgement;
        table.push([
            answer.at.as_ns().into(),
            self.name.as_str().into(),
            u64::from(answer.flow).into(),
            answer.delay.as_ns().into(),
            baseline.into(),
            mean_excess.into(),
            long.into(),
            if is_high { "high" } else { "low" }.into(),
            self.law.leaving.as_bps().into(),
            action.into(),
            self.law.rate.as_bps().into(),
        ]);
    }
}

impl Law {
    fn new(plan: AutoratePlan) -> Self {
        Law {
            rate: plan.base,
            baselines: BTreeMap::new(),
            window: (0..plan.window).map(|_| (false, 0.0)).collect(),
            leaving: Rate::default(),
            is_fresh: false,
            last_decrease: Instant::ZERO,
            last_decay: Instant::ZERO,
            plan,
        }
    }

    /// Judges a delay that a reflector reports at `now`, and adjusts the rate.
    fn judge(&mut self, now: Instant, reflector: u32, delay: Span) -> Judgement {
        let plan = &self.plan;
        let delay = delay.as_ns() as f64;
        let baseline = self.baselines.entry(reflector).or_insert(delay);
        let weight = if delay >= *baseline { plan.baseline_up } else { plan.baseline_down };
        *baseline = weight * delay + (1.0 - weight) * *baseline;
        let (baseline, excess) = (*baseline, delay - *baseline);
        let packet = self.rate.time_for(plan.largest_packet).as_ns();
        let threshold = |time: Span| (time.as_ns() + packet) as f64;
        let is_long = excess > threshold(plan.delay_threshold);
        self.window.pop_front();
        self.window.push_back((is_long, excess));
        let long = self.window.iter().filter(|(is_long, _)| *is_long).count() as u64;
        let mean_excess = self.window.iter().map(|(_, excess)| excess).sum::<f64>() / plan.window as f64;
        let is_high = self.leaving.as_bps() as f64 > plan.high_load * self.rate.as_bps() as f64;
        let may_move = now.saturating_since(self.last_decrease) > plan.refractory;
        let middle = threshold(plan.delay_threshold);
        let (action, factor) = if long >= plan.detections {
            if !may_move {
                ("hold", 1.0)
            } else {
                let most = threshold(plan.decrease_threshold);
                let share = ((mean_excess - middle) / (most - middle)).clamp(0.0, 1.0);
                self.last_decrease = now;
                ("decrease", plan.decrease_least - share * (plan.decrease_least - plan.decrease_most))
            }
        } else if is_high {
            // One increase for each measurement of what leaves.
            if !may_move || !std::mem::take(&mut self.is_fresh) {
                ("hold", 1.0)
            } else {
                let least = threshold(plan.increase_threshold);
                let share = ((middle - mean_excess) / (middle - least)).clamp(0.0, 1.0);
                ("increase", plan.increase_least - share * (plan.increase_least - plan.increase_most))
            }
        } else if self.rate != plan.base && now.saturating_since(self.last_decay) > plan.decay_refractory {
            self.last_decay = now;
            ("return", if self.rate > plan.base { plan.decay_down } else { plan.decay_up })
        } else {
            ("hold", 1.0)
        };
        let next = Rate::bps((self.rate.as_bps() as f64 * factor) as u64);
        let next = match action {
            "return" if self.rate > plan.base => next.max(plan.base),
            "return" => next.min(plan.base),
            _ => next,
        };
        self.rate = next.clamp(plan.min, plan.max);
        Judgement { baseline, mean_excess, long, is_high, action }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A controller of a shaper of 12 Mbit/s whose baselines only fall. `more` are further keys.
    fn law(more: &str) -> Law {
        let text = format!(
            r#"title = "t"
            duration = "1s"
            [topology]
            kind = "dumbbell"
            rate = "1Gbit"
            delay = "1ms"
            queue = {{ kind = "tbf", rate = "12Mbit", burst = "10kB", limit = "100p" }}
            autorate = {{ reflector = "ping", min = "5Mbit", max = "20Mbit", baseline_up = 0, {more} }}
            [[traffic]]
            name = "ping"
            kind = "cbr"
            rate = "10kbit"
            size = "84B"
            "#
        );
        let mut experiment = aqmlab_scenario::parse(&text, "test").unwrap_or_else(|e| panic!("{e}"));
        let mut law =
            Law::new(experiment.arms.remove(0).links.remove(0).autorate.expect("there is a controller"));
        law.baselines.insert(7, 1e6 * BASE as f64);
        law
    }

    const BASE: u64 = 20;

    /// Answers that exceed a baseline of 20 ms by this many milliseconds, 50 ms apart from `from` ms on. Returns the last action.
    fn answer(law: &mut Law, from: u64, excesses: &[u64]) -> &'static str {
        let mut last = "";
        for (i, excess) in (0..).zip(excesses) {
            let now = Instant::ZERO + Span::ms(from + 50 * i);
            last = law.judge(now, 7, Span::ms(BASE + excess)).action;
        }
        last
    }

    fn load(law: &mut Law, mbit: u64) {
        (law.leaving, law.is_fresh) = (Rate::mbit(mbit), true);
    }

    /// The factors of cake-autorate's README: linear between the thresholds, and constant beyond them.
    #[test]
    fn rates_move_in_proportion_to_the_mean_excess() {
        // Four excesses of 15 and two of 0 have a mean of 10: the largest increase, once for each measurement.
        for (excesses, kbit) in [
            ([0; 6], 12_480),
            ([10; 6], 12_480),
            ([20; 6], 12_240),
            ([15, 15, 0, 0, 15, 15], 12_480),
            ([30; 6], 12_000),
        ] {
            let mut law = law("largest_packet = \"0B\"");
            answer(&mut law, 1000, &excesses[..5]);
            load(&mut law, 10);
            assert_eq!(answer(&mut law, 1250, &excesses[5..]), "increase");
            assert_eq!(law.rate, Rate::kbit(kbit), "{excesses:?}");
            assert_eq!(
                (answer(&mut law, 1300, &excesses[5..]), law.rate),
                ("hold", Rate::kbit(kbit)),
                "no new measurement"
            );
        }
        // Three of six delays are long; a mean of 45 ms is halfway between 30 and 60.
        for (excesses, kbit) in [
            ([0, 0, 0, 90, 90, 90], 10_440),
            ([0, 0, 0, 31, 31, 31], 11_880),
            ([0, 0, 150, 150, 150, 0], 9_000),
        ] {
            let mut law = law("largest_packet = \"0B\"");
            load(&mut law, 10);
            law.is_fresh = false;
            answer(&mut law, 1000, &excesses[..5]);
            answer(&mut law, 1250, &excesses[5..]);
            assert_eq!(law.rate, Rate::kbit(kbit), "{excesses:?}");
        }
    }

    #[test]
    fn a_decrease_is_followed_by_a_rest() {
        let mut law = law("largest_packet = \"0B\"");
        load(&mut law, 10);
        answer(&mut law, 1000, &[90, 90]);
        assert_eq!(answer(&mut law, 1100, &[90]), "decrease");
        assert_eq!(answer(&mut law, 1150, &[90, 90, 90, 90, 90, 90]), "hold", "300 ms after it");
        let rate = law.rate;
        assert_eq!(answer(&mut law, 1401, &[90]), "decrease");
        assert_eq!(law.rate, Rate::bps((rate.as_bps() as f64 * 0.75) as u64));
        // Delays fall, and the load is high: the rate rises only after the rest.
        assert_eq!(answer(&mut law, 1420, &[0, 0, 0, 0, 0]), "hold");
        load(&mut law, 20);
        assert_eq!(answer(&mut law, 1701, &[0]), "hold");
        assert_eq!(answer(&mut law, 1702, &[0]), "increase");
        // However long delays are, the rate stays at its minimum.
        for i in 0..40 {
            answer(&mut law, 2000 + 400 * i, &[200]);
        }
        assert_eq!(law.rate, Rate::mbit(5));
    }

    #[test]
    fn under_low_load_the_rate_returns_to_its_base() {
        let mut law = law("largest_packet = \"0B\"");
        law.rate = Rate::mbit(10);
        load(&mut law, 1);
        assert_eq!((answer(&mut law, 1001, &[0]), law.rate), ("return", Rate::kbit(10_100)));
        assert_eq!(answer(&mut law, 2001, &[0]), "hold", "one second after it");
        assert_eq!((answer(&mut law, 2002, &[0]), law.rate), ("return", Rate::kbit(10_201)));
        law.rate = Rate::kbit(12_050);
        answer(&mut law, 4000, &[0]);
        assert_eq!(law.rate, Rate::mbit(12), "not below the base");
    }

    /// At 12 Mbit/s a packet of 1500 bytes takes 1 ms.
    #[test]
    fn the_largest_packet_is_no_delay() {
        for (excess, long) in [(31, 0), (32, 6)] {
            let mut law = law("refractory = \"1h\"");
            law.last_decrease = Instant::ZERO + Span::s(1);
            let now = Instant::ZERO + Span::s(2);
            (0..5).for_each(|_| _ = law.judge(now, 7, Span::ms(BASE + excess)));
            assert_eq!(law.judge(now, 7, Span::ms(BASE + excess)).long, long);
        }
    }

    /// Each reflector has a baseline, which falls to a shorter delay by 90 % of the way.
    #[test]
    fn baselines_belong_to_reflectors() {
        let mut law = law("");
        let now = Instant::ZERO + Span::s(1);
        assert_eq!(law.judge(now, 1, Span::ms(100)).baseline, 1e8);
        assert_eq!(law.judge(now, 2, Span::ms(20)).baseline, 2e7);
        assert_eq!(law.judge(now, 1, Span::ms(60)).baseline, 6.4e7);
    }
}
