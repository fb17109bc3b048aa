//! Links whose rate changes during a run: what is due next at each of them, and their capacities.

use std::iter::Peekable;

use aqmlab_qdisc::{Classed, Observer, Port, Stamped};
use aqmlab_recording::{Table, schema};
use aqmlab_scenario::{Chances, Levels, LinkPlan, Plan, RateClock};
use aqmlab_units::{Bytes, Instant, Rate, Span};

/// What is due at a link whose rate changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turn {
    /// The rate changes. This precedes everything else that happens at its instant.
    Rate,
    /// The link has a chance to send. Its departures are like those of any other link.
    Chance,
}

/// The links of a run whose rate changes.
///
/// A host calls [`ChangingLinks::begin`] for each of these links before the run, asks for the link's next turn, and takes
/// it when it is due. It reports the end of the warm-up, samples, and the end of the run.
pub struct ChangingLinks {
    /// One place per link of the plan.
    links: Vec<Option<Box<ChangingLink>>>,
    capacity: Table,
}

/// A link whose rate changes.
struct ChangingLink {
    name: String,
    overhead: Bytes,
    course: Course,
    books: CapacityBooks,
}

/// What is still to come.
enum Course {
    /// The levels of a serving link, and the present one.
    Serving { levels: Peekable<Levels>, rate: Rate },
    /// Chances to send this much each.
    Chances { chances: Peekable<Chances>, size: Bytes },
}

/// The capacity of a link over the measured interval.
#[derive(Default)]
struct CapacityBooks {
    /// The instant up to which the books are complete.
    until: Instant,
    /// In units of 10^-9 bit.
    capacity: u128,
    /// The capacity at the last sample.
    sampled: u128,
    /// The integral of the waiting bytes over the capacity, in units of a byte times 10^-9 bit.
    backlog: u128,
    /// The integral of the waiting bytes over time at `until`, in the port's books.
    integral: u128,
    standstill: Span,
    changes: u64,
}

impl ChangingLinks {
    /// Returns the links of `plan` whose rate changes, in the run with this seed.
    pub fn new(plan: &Plan, seed: u64) -> Self {
        let link = |link: &LinkPlan| {
            let changes = link.changes.as_ref()?;
            let course = match changes.clock {
                RateClock::Serving => {
                    Course::Serving { levels: changes.levels(&link.name, seed).peekable(), rate: link.rate }
                }
                RateClock::Chances { size } => {
                    Course::Chances { chances: changes.chances(&link.name, seed).peekable(), size }
                }
            };
            let (name, overhead, books) = (link.name.clone(), link.overhead, CapacityBooks::default());
            Some(Box::new(ChangingLink { name, overhead, course, books }))
        };
        ChangingLinks {
            links: plan.links.iter().map(link).collect(),
            capacity: Table::new(&schema::CAPACITY),
        }
    }

    /// Reserves room for this many samples, for hosts that must not allocate once they are running.
    pub fn reserve(&mut self, samples: usize) {
        for link in self.links.iter().flatten() {
            self.capacity.expect_name("queue", &link.name);
        }
        self.capacity.reserve(samples * self.links.iter().flatten().count());
    }

    /// Returns whether the rate of no link changes.
    pub fn is_empty(&self) -> bool {
        self.links.iter().all(Option::is_none)
    }

    /// Iterates over the numbers of these links.
    pub fn numbers(&self) -> impl Iterator<Item = usize> + use<> {
        let is_there: Vec<bool> = self.links.iter().map(Option::is_some).collect();
        (0..is_there.len()).filter(move |number| is_there[*number])
    }

    /// Returns the present rate of link `number`, zero if it stands still. `None` if it has none: its rate does not change, or
    /// it sends at chances.
    pub fn rate(&self, number: usize) -> Option<Rate> {
        match self.links[number].as_ref()?.course {
            Course::Serving { rate, .. } => Some(rate),
            Course::Chances { .. } => None,
        }
    }

    fn link(&mut self, number: usize) -> &mut ChangingLink {
        self.links[number].as_mut().expect("the rate of this link changes")
    }

    /// Prepares the idle port of link `number` for the beginning of the run.
    pub fn begin<P: Classed, O: Observer<Stamped<P>>>(
        &mut self,
        number: usize,
        port: &mut Port<P>,
        obs: &mut O,
    ) {
        match &mut self.link(number).course {
            Course::Serving { levels, rate } => {
                if let Some((_, first)) = levels.next_if(|(at, _)| *at == Instant::ZERO)
                    && first != *rate
                {
                    *rate = first;
                    port.set_rate(Instant::ZERO, first, obs);
                }
            }
            Course::Chances { .. } => port.send_at_chances(),
        }
    }

    /// Returns the next turn of link `number`, if there is one.
    pub fn next(&mut self, number: usize) -> Option<(Instant, Turn)> {
        match &mut self.link(number).course {
            Course::Serving { levels, rate } => {
                while levels.next_if(|(_, next)| next == rate).is_some() {}
                levels.peek().map(|(at, _)| (*at, Turn::Rate))
            }
            Course::Chances { chances, .. } => chances.peek().map(|at| (*at, Turn::Chance)),
        }
    }

    /// Changes the rate of link `number`, whose turn is due now. Returns the end of the transmission in progress, as
    /// [`Port::set_rate`] does.
    ///
    /// # Panics
    /// If the link sends at chances.
    pub fn change<P: Classed, O: Observer<Stamped<P>>>(
        &mut self,
        number: usize,
        now: Instant,
        port: &mut Port<P>,
        obs: &mut O,
    ) -> Option<Instant> {
        let ChangingLink { course, books, .. } = self.link(number);
        let Course::Serving { levels, rate } = course else { panic!("a serving link has levels") };
        port.settle(now);
        books.serve(now, *rate, port);
        books.changes += 1;
        *rate = levels.next().expect("a change is due").1;
        port.set_rate(now, *rate, obs)
    }

    /// Returns what link `number`, whose turn is due now, may send: the sum of its chances at this instant. (What a
    /// chance leaves is lost only if nothing waits, and then the next one at the same instant finds nothing either.)
    ///
    /// # Panics
    /// If the link does not send at chances.
    pub fn chance<P: Classed>(&mut self, number: usize, now: Instant, port: &mut Port<P>) -> Bytes {
        let ChangingLink { course, books, .. } = self.link(number);
        let Course::Chances { chances, size } = course else { panic!("this link has no chances") };
        let mut amount = Bytes::ZERO;
        while chances.next_if(|at| *at == now).is_some() {
            amount += *size;
            books.changes += 1;
        }
        books.capacity += amount.nanobits();
        books.backlog += u128::from(port.backlog().bytes.get()) * amount.nanobits();
        amount
    }

    /// Ends the warm-up. The books of the ports have just restarted.
    pub fn measure_from<'p, P: Classed + 'p>(
        &mut self,
        now: Instant,
        ports: impl Iterator<Item = &'p Port<P>>,
    ) {
        for (link, port) in self.links.iter_mut().zip(ports) {
            if let Some(link) = link {
                link.settle_capacity(now);
                let sampled = link.books.sampled.wrapping_sub(link.books.capacity);
                let integral = port.books().backlog_bytes().integral;
                link.books = CapacityBooks { until: now, sampled, integral, ..CapacityBooks::default() };
            }
        }
    }

    /// Adds a row per link to the samples of capacities.
    pub fn sample(&mut self, now: Instant) {
        for link in self.links.iter_mut().flatten() {
            let capacity = link.capacity_at(now);
            let since = capacity.wrapping_sub(link.books.sampled);
            link.books.sampled = capacity;
            let name = link.name.as_str();
            self.capacity.push([now.as_ns().into(), name.into(), Bytes::of_nanobits(since).get().into()]);
        }
    }

    /// Returns the number of cells that the samples have filled so far.
    pub fn cells(&self) -> usize {
        self.capacity.rows() * self.capacity.columns.len()
    }

    /// Returns the tables of these links and the mean capacity of each over the measured interval, which ends now. The
    /// ports are settled. The links may go on, but are no longer measured.
    pub fn finish<'p, P: Classed + 'p>(
        &mut self,
        now: Instant,
        ports: impl Iterator<Item = &'p Port<P>>,
    ) -> (Vec<Table>, Vec<Option<Rate>>) {
        if self.is_empty() {
            return (Vec::new(), vec![None; self.links.len()]);
        }
        let mut table = Table::new(&schema::LINKS);
        let mut means = Vec::new();
        for (link, port) in self.links.iter_mut().zip(ports) {
            means.push(link.as_mut().map(|link| link.finish(now, port, &mut table)));
        }
        (vec![table, std::mem::replace(&mut self.capacity, Table::new(&schema::CAPACITY))], means)
    }
}

impl ChangingLink {
    /// Returns the capacity since the books were restarted.
    fn capacity_at(&self, now: Instant) -> u128 {
        let more = match &self.course {
            Course::Serving { rate, .. } => rate.nanobits_in(now.saturating_since(self.books.until)),
            Course::Chances { .. } => 0,
        };
        self.books.capacity + more
    }

    fn settle_capacity(&mut self, now: Instant) {
        self.books.capacity = self.capacity_at(now);
        self.books.until = now;
    }

    fn finish<P: Classed>(&mut self, now: Instant, port: &Port<P>, table: &mut Table) -> Rate {
        if let Course::Serving { rate, .. } = self.course {
            self.books.serve(now, rate, port);
        }
        let (books, total) = (&self.books, port.books().total());
        let used = total.sent_bytes + self.overhead.get() * total.departed.packets;
        table.push([
            self.name.as_str().into(),
            Bytes::of_nanobits(books.capacity).get().into(),
            used.into(),
            books.standstill.as_ns().into(),
            books.changes.into(),
            (books.backlog / Bytes::new(1).nanobits()).into(),
        ]);
        Rate::of(Bytes::of_nanobits(books.capacity), port.books().span())
    }
}

impl CapacityBooks {
    /// Completes the books up to `now`, until when the link has had this rate. The port is settled.
    fn serve<P: Classed>(&mut self, now: Instant, rate: Rate, port: &Port<P>) {
        let (time, integral) = (now.saturating_since(self.until), port.books().backlog_bytes().integral);
        self.capacity += rate.nanobits_in(time);
        self.backlog += integral.saturating_sub(self.integral) * u128::from(rate.as_bps());
        if rate == Rate::default() {
            self.standstill += time;
        }
        (self.until, self.integral) = (now, integral);
    }
}
