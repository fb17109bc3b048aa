//! A FIFO whose packets belong to classes, each with a RED of its own: weighted RED, and Linux's gred.

use alloc::string::String;
use alloc::vec::Vec;

use aqmlab_random::{Numbered, unit_from_bits};
use aqmlab_units::{Bytes, Instant, Packets, Rate};

use super::law_queue::mark;
use super::{Classifier, Measure};
use crate::flow_table::Keyed;
use crate::law::{Average, Decision, RedLaw};
use crate::{Arrived, Backlog, Cause, Fifo, Inside, LawSamples, Limit, Observer, Packet, Qdisc, Reason};

/// The packets that a class's average counts, and what is compared with the class's thresholds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AverageOf {
    /// The class's own packets.
    Class,
    /// All packets: there is one average.
    All,
    /// The class's own packets; the averages of all classes with a better priority are added, unless they are idle.
    Priority,
}

/// A class.
#[derive(Clone, Debug)]
pub struct GredClass {
    /// Its name.
    pub name: String,
    /// Its law.
    pub law: RedLaw,
    /// The limit of the packets that its average counts.
    pub limit: Limit,
    /// Its priority; a lower number is better.
    pub priority: u64,
    /// Whether a mark replaces a drop where the law allows it.
    pub ecn: bool,
    /// Mean packet size, which converts the link's rate to packets per second.
    pub mean_packet: Bytes,
    /// The draws of its law, one per arrival.
    pub draws: Numbered,
}

/// The rules that all classes share.
#[derive(Clone, Copy, Debug)]
pub struct GredRules {
    /// What the averages count.
    pub average: AverageOf,
    /// Unit of the averages and the thresholds.
    pub measure: Measure,
    /// The buffer that all classes share, in addition to their own limits.
    pub limit: Option<Limit>,
}

/// A class with its packets.
#[derive(Clone, Debug)]
struct Member {
    class: GredClass,
    backlog: Backlog,
    arrivals: u64,
}

/// A FIFO with a RED per class.
#[derive(Clone, Debug)]
pub struct Gred<P> {
    fifo: Fifo<Keyed<P, u16>>,
    members: Vec<Member>,
    classifier: Classifier,
    /// The class of packets that match none of the classifier's values.
    rest: u16,
    rules: GredRules,
    /// The average of all packets, which is used only if there is one for all.
    common: Average,
}

impl<P: Packet> Gred<P> {
    /// Creates an empty queue. `rest` is the class of packets that match none of the classifier's values.
    ///
    /// # Panics
    /// If there are no classes.
    pub fn new(classes: Vec<GredClass>, (classifier, rest): (Classifier, u16), rules: GredRules) -> Self {
        let own = classes.iter().map(|class| class.limit.room() as u64).sum();
        let member = |class| Member { class, backlog: Backlog::default(), arrivals: 0 };
        Gred {
            fifo: Fifo::for_limit(rules.limit.unwrap_or(Limit::Packets(Packets::new(own)))),
            common: *classes[0].law.average(),
            members: classes.into_iter().map(member).collect(),
            classifier,
            rest,
            rules,
        }
    }

    /// Returns the classes, with their laws in their states after the last call.
    pub fn classes(&self) -> impl Iterator<Item = &GredClass> {
        self.members.iter().map(|member| &member.class)
    }

    /// Returns what the average of a class counts.
    fn counted(&self, index: usize) -> Backlog {
        match self.rules.average {
            AverageOf::All => self.fifo.backlog(),
            AverageOf::Class | AverageOf::Priority => self.members[index].backlog,
        }
    }

    /// Updates the average of a class and returns what its thresholds are compared with.
    fn average(&mut self, now: Instant, index: usize, queued: f64) -> f64 {
        let law = &self.members[index].class.law;
        let better = match self.rules.average {
            AverageOf::Priority => self.better(index, law.average()),
            AverageOf::Class | AverageOf::All => 0.0,
        };
        let law = &mut self.members[index].class.law;
        if self.rules.average == AverageOf::All {
            law.adopt(&self.common);
        }
        let own = law.update_average(now, queued);
        if self.rules.average == AverageOf::All {
            self.common = *law.average();
        }
        own + better
    }

    /// Returns the sum of the averages of all busy classes with a better priority, as `reader` counts.
    fn better(&self, index: usize, reader: &Average) -> f64 {
        let priority = self.members[index].class.priority;
        let averages = self.members.iter().filter(|other| other.class.priority < priority);
        let averages = averages.map(|other| other.class.law.average());
        averages.filter(|average| !average.is_idle()).map(|average| average.read_by(reader)).sum()
    }

    /// Appends the values of a class's law: `avg` (in the unit of the thresholds, that of the class alone or of
    /// all), `p` (before spacing, at the average that its thresholds are compared with) and `count`.
    fn observe_class(&self, index: usize, now: Instant, out: &mut LawSamples) {
        let law = &self.members[index].class.law;
        let (own, compared) = match self.rules.average {
            AverageOf::Class => (law.average().at(now), 0.0),
            AverageOf::All => {
                let mut law = *law;
                law.adopt(&self.common);
                (law.average().at(now), 0.0)
            }
            AverageOf::Priority => (law.average().at(now), self.better(index, law.average())),
        };
        out.extend([("avg", own), ("p", law.probability(own + compared)), ("count", law.count() as f64)]);
    }
}

impl<P: Arrived> Gred<P> {
    /// Accepts a packet, which the law may neither drop nor mark if it is `spared`.
    fn accept(&mut self, now: Instant, mut pkt: P, spared: bool, obs: &mut dyn Observer<P>) {
        let key = self.classifier.class_of(&pkt).unwrap_or(self.rest);
        let index = usize::from(key);
        let at = |reason| Cause { reason, inner: key + 1 };
        obs.entered(now, &pkt, key + 1);
        let (counted, size) = (self.counted(index), pkt.wire_len());
        let queued = self.rules.measure.of(counted);
        let avg = self.average(now, index, queued);
        let Member { class, backlog, arrivals } = &mut self.members[index];
        let number = *arrivals;
        *arrivals += 1;
        let draw = || unit_from_bits(class.draws.at(number));
        let notice = match class.law.decide(avg, queued, size, draw) {
            Decision::Notify(notice) if !spared => Some(notice),
            Decision::Notify(_) | Decision::Admit => None,
        };
        if let Some(notice) = notice.filter(|notice| !notice.marks(class.ecn, pkt.ecn())) {
            return obs.dropped(now, pkt, at(notice.reason));
        }
        let shared = self.rules.limit.is_none_or(|limit| limit.admits(self.fifo.backlog(), size));
        if !shared || !class.limit.admits(counted, size) {
            class.law.on_overflow();
            return obs.dropped(now, pkt, at(Reason::Overflow));
        }
        if let Some(notice) = notice {
            mark(now, &mut pkt, at(notice.reason), obs);
        }
        backlog.packets += Packets::new(1);
        backlog.bytes += size;
        self.fifo.push(Keyed { key, packet: pkt });
    }
}

impl<P: Arrived> Qdisc<P> for Gred<P> {
    fn enqueue(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) {
        self.accept(now, pkt, false, obs);
    }

    fn enqueue_spared(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) {
        self.accept(now, pkt, true, obs);
    }

    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<P> {
        let Keyed { key, packet } = self.fifo.pop()?;
        let Member { class, backlog, .. } = &mut self.members[usize::from(key)];
        backlog.packets -= Packets::new(1);
        backlog.bytes -= packet.wire_len();
        // A class is idle from here to its next arrival: the link asks all classes together for a packet.
        if self.rules.average == AverageOf::All {
            if self.fifo.is_empty() {
                self.common.on_idle(now);
            }
        } else if backlog.packets.is_zero() {
            class.law.on_idle(now);
        }
        obs.left(now, &packet, key + 1);
        Some(packet)
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }

    fn rate_changed(&mut self, now: Instant, rate: Rate) {
        for Member { class, .. } in &mut self.members {
            class.law.rate_changed(now, rate.packets_per_s(class.mean_packet));
        }
    }

    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    fn next_len(&mut self) -> Option<Bytes> {
        self.fifo.head().map(Packet::wire_len)
    }

    fn reserve(&mut self, packets: usize, _flows: usize) {
        let own = self.members.iter().map(|member| member.class.limit.most_of(packets)).sum::<usize>();
        let shared = self.rules.limit.map_or(packets, |limit| limit.most_of(packets));
        self.fifo.reserve(Limit::Packets(Packets::new(own.min(shared) as u64)), packets);
    }

    fn each_inner(&self, visit: &mut dyn FnMut(&str, Inside<'_, P>)) {
        for (index, member) in self.members.iter().enumerate() {
            let observe = |now, out: &mut LawSamples| self.observe_class(index, now, out);
            visit(&member.class.name, Inside::Observed(member.backlog, &observe));
        }
    }

    /// The classes report the values of their laws.
    fn observe(&self, _now: Instant, _out: &mut LawSamples) {}
}
