//! What a port counts: every packet's fate, exact time integrals, histograms.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use aqmlab_units::{Bytes, Instant, Packets, Span};

use crate::time_weighted::TimeByValue;
pub use crate::time_weighted::{Area, TimeWeighted};
use crate::{Backlog, Cause, Ecn, Histogram, Reason};

/// A number of packets and their bytes (network layer, headers included, without the link's overhead).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// How many.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Tally {
    #[inline]
    fn count(&mut self, size: Bytes) {
        self.packets += 1;
        self.bytes += size.get();
    }

    /// Component-wise sum.
    pub const fn plus(self, other: Tally) -> Tally {
        Tally { packets: self.packets + other.packets, bytes: self.bytes + other.bytes }
    }

    const fn minus(self, other: Tally) -> Tally {
        Tally { packets: self.packets - other.packets, bytes: self.bytes - other.bytes }
    }

    /// What a queue holds, as a tally.
    pub const fn of(backlog: Backlog) -> Tally {
        Tally { packets: backlog.packets.get(), bytes: backlog.bytes.get() }
    }
}

/// The fates of one class's packets, indexed by [`Reason`] where there are several.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ClassBooks {
    /// Waiting or in transmission when the measurement began.
    pub initial: Tally,
    /// Arrived since.
    pub arrived: Tally,
    /// Of these, ECN-capable on arrival: ECT(0), ECT(1) or CE.
    pub arrived_ect: Tally,
    /// Transmitted entirely.
    pub departed: Tally,
    /// Lost, by reason (`reason as usize`).
    pub dropped: [Tally; Reason::ALL.len()],
    /// Marked with CE, by reason (`reason as usize`).
    pub marked: [Tally; Reason::ALL.len()],
    /// Queueing delay of each packet that began its transmission: dequeue minus enqueue, in ns.
    pub sojourn_ns: Histogram,
    /// The exact sum of these, in ns.
    pub sojourn_sum_ns: u128,
}

impl ClassBooks {
    /// Waiting or in transmission now: what came and has not gone.
    pub fn held(&self) -> Tally {
        self.came().minus(self.gone())
    }

    fn came(&self) -> Tally {
        self.initial.plus(self.arrived)
    }

    fn gone(&self) -> Tally {
        self.departed.plus(self.dropped_total())
    }

    /// Lost for whatever reason.
    pub fn dropped_total(&self) -> Tally {
        self.dropped.iter().fold(Tally::default(), |sum, t| sum.plus(*t))
    }

    /// Marked for whatever reason.
    pub fn marked_total(&self) -> Tally {
        self.marked.iter().fold(Tally::default(), |sum, t| sum.plus(*t))
    }
}

/// The books of one port over one measured interval.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Books {
    from: Instant,
    /// Integrals are complete up to here.
    until: Instant,
    /// In transmission at `from`: its sojourn was over before the measurement began.
    initial_sending: u64,
    classes: Vec<ClassBooks>,
    backlog_packets: TimeByValue,
    backlog_bytes: Area,
    busy: Span,
    /// Of the queues inside, each before those inside of it.
    inner: Vec<InnerBooks>,
}

/// The books of a queue inside of another.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InnerBooks {
    /// Its name after those of the queues around it: `gold`, `gold/bulk`.
    pub path: String,
    /// What came to it and what became of that. It has no link: what leaves it counts as departed.
    pub books: Books,
    /// The number of the queue that it is in; 0 if in none but the port's own.
    within: u16,
    waiting: Backlog,
}

/// An accounting identity that does not hold. The text names it with both sides.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Imbalance(pub String);

impl core::fmt::Display for Imbalance {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for Imbalance {}

impl Books {
    /// Empty books of a port with `classes` classes (at least one), measuring from [`Instant::ZERO`].
    pub(crate) fn new(classes: usize) -> Self {
        Books {
            from: Instant::ZERO,
            until: Instant::ZERO,
            initial_sending: 0,
            classes: alloc::vec![ClassBooks::default(); classes.max(1)],
            backlog_packets: TimeByValue::new(),
            backlog_bytes: Area::default(),
            busy: Span::ZERO,
            inner: Vec::new(),
        }
    }

    /// Books of one more queue inside, the next in the order of their numbers; those of queues around it are there.
    pub(crate) fn open_inner(&mut self, name: &str, within: u16) {
        let around = within.checked_sub(1).map(|i| &self.inner[usize::from(i)].path);
        let path = around.map_or_else(|| name.into(), |around| format!("{around}/{name}"));
        let books = Books::new(self.classes.len());
        self.inner.push(InnerBooks { path, books, within, waiting: Backlog::default() });
    }

    /// Cuts off what was before the instant up to which the books are settled: all figures start anew, what
    /// the port holds is carried in.
    pub(crate) fn restart(&mut self, sending: bool) {
        self.from = self.until;
        self.initial_sending = u64::from(sending);
        for class in &mut self.classes {
            let (initial, mut sojourn_ns) = (class.held(), core::mem::take(&mut class.sojourn_ns));
            sojourn_ns.clear();
            *class = ClassBooks { initial, sojourn_ns, ..ClassBooks::default() };
        }
        self.backlog_packets.clear();
        self.backlog_bytes = Area::default();
        self.busy = Span::ZERO;
        self.inner.iter_mut().for_each(|inner| inner.books.restart(false));
    }

    /// Makes room for all that can be counted of a queue of up to `packets`.
    pub(crate) fn reserve(&mut self, packets: usize) {
        self.classes.iter_mut().for_each(|class| class.sojourn_ns.reserve());
        self.backlog_packets.reserve(packets + 1);
        self.inner.iter_mut().for_each(|inner| inner.books.reserve(packets));
    }

    /// Completes the integrals up to `now`, before which nothing has changed since they were last complete.
    #[inline]
    pub(crate) fn settle(&mut self, now: Instant, backlog: Backlog, sending: bool) {
        if now <= self.until {
            return;
        }
        let ns = now.saturating_since(self.until).as_ns();
        self.backlog_packets.held_for(backlog.packets.get(), ns);
        self.backlog_bytes.held_for(backlog.bytes.get(), ns);
        if sending {
            self.busy += Span::ns(ns);
        }
        self.until = now;
    }

    #[inline]
    pub(crate) fn arrived(&mut self, class: usize, size: Bytes, ecn: Ecn) {
        let books = &mut self.classes[class];
        books.arrived.count(size);
        if ecn.is_capable() {
            books.arrived_ect.count(size);
        }
    }

    #[inline]
    pub(crate) fn began_transmission(&mut self, class: usize, sojourn: Span) {
        let books = &mut self.classes[class];
        books.sojourn_ns.add(sojourn.as_ns(), 1);
        books.sojourn_sum_ns += u128::from(sojourn.as_ns());
    }

    #[inline]
    pub(crate) fn departed(&mut self, class: usize, size: Bytes) {
        self.classes[class].departed.count(size);
    }

    pub(crate) fn dropped(&mut self, now: Instant, class: usize, size: Bytes, at: Cause) {
        self.classes[class].dropped[at.reason as usize].count(size);
        self.each_around(at.inner, |inner| {
            inner.goes(now, size);
            inner.books.classes[class].dropped[at.reason as usize].count(size);
        });
    }

    pub(crate) fn marked(&mut self, class: usize, size: Bytes, at: Cause) {
        self.classes[class].marked[at.reason as usize].count(size);
        self.each_around(at.inner, |inner| inner.books.classes[class].marked[at.reason as usize].count(size));
    }

    /// A packet comes to an inner queue.
    pub(crate) fn entered(&mut self, now: Instant, class: usize, size: Bytes, ecn: Ecn, number: u16) {
        let Some(inner) = self.inner_of(number) else { return };
        inner.settle(now);
        inner.waiting.packets += Packets::new(1);
        inner.waiting.bytes += size;
        inner.books.arrived(class, size, ecn);
    }

    /// A packet leaves an inner queue after so long.
    pub(crate) fn left(&mut self, now: Instant, class: usize, size: Bytes, sojourn: Span, number: u16) {
        let Some(inner) = self.inner_of(number) else { return };
        inner.goes(now, size);
        inner.books.began_transmission(class, sojourn);
        inner.books.departed(class, size);
    }

    /// Completes the integrals of the queues inside.
    pub(crate) fn settle_inner(&mut self, now: Instant) {
        self.inner.iter_mut().for_each(|inner| inner.settle(now));
    }

    /// An inner queue. A discipline of a user's own may have numbers that mean nothing here.
    fn inner_of(&mut self, number: u16) -> Option<&mut InnerBooks> {
        self.inner.get_mut(usize::from(number.checked_sub(1)?))
    }

    /// An inner queue and those that it is in.
    fn each_around(&mut self, mut number: u16, mut each: impl FnMut(&mut InnerBooks)) {
        while let Some(inner) = self.inner_of(number) {
            each(inner);
            number = inner.within;
        }
    }

    /// The books of the queues inside, each before those inside of it.
    pub fn inner(&self) -> &[InnerBooks] {
        &self.inner
    }

    /// When the measured interval began.
    pub const fn from(&self) -> Instant {
        self.from
    }

    /// Up to when the integrals are complete: the port's last event or [`crate::Port::settle`].
    pub const fn until(&self) -> Instant {
        self.until
    }

    /// The length of the measured interval.
    pub const fn span(&self) -> Span {
        self.until.saturating_since(self.from)
    }

    /// One class's books.
    ///
    /// # Panics
    /// If the port was made for fewer classes.
    pub fn class(&self, class: usize) -> &ClassBooks {
        &self.classes[class]
    }

    /// All classes in order.
    pub fn classes(&self) -> &[ClassBooks] {
        &self.classes
    }

    /// The sum over all classes.
    pub fn total(&self) -> ClassBooks {
        let mut sum = ClassBooks::default();
        for class in &self.classes {
            sum.initial = sum.initial.plus(class.initial);
            sum.arrived = sum.arrived.plus(class.arrived);
            sum.arrived_ect = sum.arrived_ect.plus(class.arrived_ect);
            sum.departed = sum.departed.plus(class.departed);
            for reason in Reason::ALL {
                let i = reason as usize;
                sum.dropped[i] = sum.dropped[i].plus(class.dropped[i]);
                sum.marked[i] = sum.marked[i].plus(class.marked[i]);
            }
            sum.sojourn_ns.merge(&class.sojourn_ns);
            sum.sojourn_sum_ns += class.sojourn_sum_ns;
        }
        sum
    }

    /// Waiting packets over time, summed up at each call.
    pub fn backlog_packets(&self) -> TimeWeighted {
        self.backlog_packets.summary()
    }

    /// Waiting bytes over time.
    pub const fn backlog_bytes(&self) -> &Area {
        &self.backlog_bytes
    }

    /// How long the link was transmitting.
    pub const fn busy(&self) -> Span {
        self.busy
    }

    /// Checks the identities between what was counted, what the discipline says that it holds, and what
    /// the link is sending (`None`: nothing).
    ///
    /// # Errors
    /// The first identity that fails.
    pub(crate) fn check(&self, backlog: Backlog, sending: Option<Bytes>) -> Result<(), Imbalance> {
        let on_wire = sending.map_or(Tally::default(), |size| Tally { packets: 1, bytes: size.get() });
        let total = self.total();
        for (number, class) in self.classes.iter().enumerate() {
            let (came, gone) = (class.came(), class.gone());
            if gone.packets > came.packets || gone.bytes > came.bytes {
                let identity = "departed + dropped exceeds initial + arrived";
                return Err(Imbalance(format!("class {number}: {identity}: {gone:?} against {came:?}")));
            }
        }
        let held = Tally::of(backlog).plus(on_wire);
        equal(total.held(), held, || "arrived and not yet gone = backlog + in transmission".into())?;
        let began = total.departed.packets + on_wire.packets - self.initial_sending;
        equal(total.sojourn_ns.total(), began, || "sojourn times = transmissions begun".into())?;
        let span = self.span().as_ns();
        equal(self.backlog_packets.total(), span, || "time by backlog = measured time".into())?;
        if self.busy > self.span() {
            return Err(Imbalance(format!("busy {} exceeds the measured {}", self.busy, self.span())));
        }
        Ok(())
    }
}

impl InnerBooks {
    fn settle(&mut self, now: Instant) {
        self.books.settle(now, self.waiting, false);
    }

    fn goes(&mut self, now: Instant, size: Bytes) {
        self.settle(now);
        self.waiting.packets -= Packets::new(1);
        self.waiting.bytes -= size;
    }

    /// Checks its identities against what its discipline says that it holds.
    ///
    /// # Errors
    /// The first identity that fails.
    pub(crate) fn check(&self, backlog: Backlog) -> Result<(), Imbalance> {
        self.books.check(backlog, None).map_err(|e| Imbalance(format!("inner queue `{}`: {e}", self.path)))
    }
}

fn equal<T: PartialEq + core::fmt::Debug>(
    left: T,
    right: T,
    identity: impl Fn() -> String,
) -> Result<(), Imbalance> {
    if left == right {
        return Ok(());
    }
    Err(Imbalance(format!("{}: {left:?} against {right:?}", identity())))
}
