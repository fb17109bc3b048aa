//! A port's accounting: every packet's fate, exact time integrals, histograms.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use aqmlab_units::{Bytes, Instant, Packets, Span};

use crate::time_weighted::TimeByValue;
pub use crate::time_weighted::{Area, TimeWeighted};
use crate::{Backlog, Cause, Classed, Histogram, PacketKind, Reason};

/// A number of packets and their bytes (network layer, including headers but not the link's overhead).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Number of packets.
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

    /// Returns the component-wise sum.
    pub const fn plus(self, other: Tally) -> Tally {
        Tally { packets: self.packets + other.packets, bytes: self.bytes + other.bytes }
    }

    const fn minus(self, other: Tally) -> Tally {
        Tally { packets: self.packets - other.packets, bytes: self.bytes - other.bytes }
    }

    /// Returns a backlog as a tally.
    pub const fn of(backlog: Backlog) -> Tally {
        Tally { packets: backlog.packets.get(), bytes: backlog.bytes.get() }
    }
}

/// Packets of one class and kind that have arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Arrivals {
    /// All of them.
    pub all: Tally,
    /// Those that were ECN-capable on arrival: ECT(0), ECT(1) or CE.
    pub ect: Tally,
}

/// Fates of packets of one class and kind, by reason (`reason as usize`).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Fates {
    /// Lost.
    pub dropped: [Tally; Reason::ALL.len()],
    /// Marked with CE.
    pub marked: [Tally; Reason::ALL.len()],
}

impl Arrivals {
    const fn plus(self, other: &Arrivals) -> Arrivals {
        Arrivals { all: self.all.plus(other.all), ect: self.ect.plus(other.ect) }
    }
}

impl Fates {
    fn plus(mut self, other: &Fates) -> Fates {
        for i in 0..Reason::ALL.len() {
            self.dropped[i] = self.dropped[i].plus(other.dropped[i]);
            self.marked[i] = self.marked[i].plus(other.marked[i]);
        }
        self
    }

    /// Returns the packets lost for any reason.
    pub fn dropped_total(&self) -> Tally {
        sum(self.dropped)
    }

    /// Returns the packets marked for any reason.
    pub fn marked_total(&self) -> Tally {
        sum(self.marked)
    }
}

/// The fates of the packets of one class, or of all classes together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClassBooks<'a> {
    /// Packets that were waiting or in transmission when the measurement began.
    pub initial: Tally,
    /// Arrivals since the measurement began, by kind (`kind as usize`).
    pub arrivals: Cow<'a, [Arrivals]>,
    /// Fates of these arrivals and of the initial packets, by kind (`kind as usize`).
    pub fates: Cow<'a, [Fates]>,
    /// Packets transmitted completely.
    pub departed: Tally,
    /// Bytes transmitted in the measured interval, rounded to whole bytes: those of departed packets, without
    /// the part that was sent before the interval, and the part of the packet in transmission that has been
    /// sent. They are complete up to the last call of [`crate::Port::settle`]. A queue inside another one
    /// transmits a packet when it leaves.
    pub sent_bytes: u64,
    /// Queueing delay of each packet whose transmission has begun: dequeue time minus enqueue time, in ns.
    pub sojourn_ns: Cow<'a, Histogram>,
    /// The exact sum of these delays, in ns.
    pub sojourn_sum_ns: u128,
}

impl ClassBooks<'_> {
    /// Returns the packets waiting or in transmission now: those that arrived and have not left.
    pub fn held(&self) -> Tally {
        self.came().minus(self.gone())
    }

    fn came(&self) -> Tally {
        self.initial.plus(self.arrived())
    }

    fn gone(&self) -> Tally {
        self.departed.plus(self.dropped_total())
    }

    /// Returns the arrivals since the measurement began.
    pub fn arrived(&self) -> Tally {
        sum(self.arrivals.iter().map(|kind| kind.all))
    }

    /// Returns the packets lost for any reason.
    pub fn dropped_total(&self) -> Tally {
        sum(self.fates.iter().map(Fates::dropped_total))
    }

    /// Returns the packets marked for any reason.
    pub fn marked_total(&self) -> Tally {
        sum(self.fates.iter().map(Fates::marked_total))
    }

    /// Returns the arrivals of all kinds together, and their fates.
    pub fn all_kinds(&self) -> (Arrivals, Fates) {
        let arrivals = self.arrivals.iter().fold(Arrivals::default(), Arrivals::plus);
        (arrivals, self.fates.iter().fold(Fates::default(), Fates::plus))
    }
}

fn sum(tallies: impl IntoIterator<Item = Tally>) -> Tally {
    tallies.into_iter().fold(Tally::default(), Tally::plus)
}

/// The part of a class's books that does not depend on the kind of packet.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Passed {
    initial: Tally,
    departed: Tally,
    /// Number of packets that did not wait and are not in the histogram yet: see [`Books::recent`].
    undelayed: u64,
    sojourn_sum_ns: u128,
    sojourn_ns: Histogram,
}

/// Number of sojourn times that are collected before they are entered into their histograms.
const TOGETHER: usize = 32;

/// The books of one port over one measured interval.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Books {
    from: Instant,
    /// Instant up to which the integrals are complete.
    until: Instant,
    /// Number of packets in transmission at `from`, whose sojourn ended before the measurement began.
    initial_sending: u64,
    classes: Vec<Passed>,
    /// Class and sojourn time in ns of packets that are not in their histograms yet. In a network of
    /// many ports, a histogram bin has usually left the cache by the time it is needed again.
    /// Entering several packets together overlaps the cache misses.
    recent: Vec<(u32, u64)>,
    /// Indexed by [`Classed::class_and_kind`], like the next field. The two are separate because every packet
    /// arrives, but few have any fate other than departure.
    arrivals: Vec<Arrivals>,
    fates: Vec<Fates>,
    /// Whether any count in `fates` is above zero.
    has_fates: bool,
    backlog_packets: TimeByValue,
    backlog_bytes: Area,
    busy: Span,
    /// The part of the packet in transmission that had been sent when the measurement began: class and bytes.
    sent_before: (usize, i64),
    /// The part of the packet in transmission that has been sent.
    sent_since: (usize, i64),
    /// Books of the inner queues, each queue before the queues inside it.
    inner: Vec<InnerBooks>,
}

/// The books of a queue inside another one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InnerBooks {
    /// Its name, preceded by those of the queues around it: `gold`, `gold/bulk`.
    pub path: String,
    /// Its arrivals and their fates. An inner queue has no link, so packets that leave it count as departed.
    pub books: Books,
    /// The number of the inner queue that contains it; 0 if it is directly inside the port's own
    /// queue.
    within: u16,
    waiting: Backlog,
}

/// An accounting identity that does not hold. The text names it and gives both sides.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Imbalance(pub String);

impl core::fmt::Display for Imbalance {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for Imbalance {}

impl Books {
    /// Creates empty books for a port with `classes` classes (at least one); the measurement begins at
    /// [`Instant::ZERO`].
    pub(crate) fn new(classes: usize) -> Self {
        Books {
            from: Instant::ZERO,
            until: Instant::ZERO,
            initial_sending: 0,
            classes: alloc::vec![Passed::default(); classes.max(1)],
            recent: Vec::with_capacity(TOGETHER),
            arrivals: alloc::vec![Arrivals::default(); classes.max(1) * PacketKind::PLACES],
            fates: alloc::vec![Fates::default(); classes.max(1) * PacketKind::PLACES],
            has_fates: false,
            backlog_packets: TimeByValue::new(),
            backlog_bytes: Area::default(),
            busy: Span::ZERO,
            sent_before: (0, 0),
            sent_since: (0, 0),
            inner: Vec::new(),
        }
    }

    /// Opens the books of the next inner queue, in the order of the queues' numbers. The books of the queues
    /// around it must be open already.
    pub(crate) fn open_inner(&mut self, name: &str, within: u16) {
        let around = within.checked_sub(1).map(|i| &self.inner[usize::from(i)].path);
        let path = around.map_or_else(|| name.into(), |around| format!("{around}/{name}"));
        let books = Books::new(self.classes.len());
        self.inner.push(InnerBooks { path, books, within, waiting: Backlog::default() });
    }

    /// Discards everything before the instant up to which the books are settled: all figures
    /// restart from zero, and the port's backlog is carried over.
    pub(crate) fn restart(&mut self, sending: bool) {
        self.complete();
        self.from = self.until;
        self.initial_sending = u64::from(sending);
        for number in 0..self.classes.len() {
            let initial = self.class(number).held();
            let class = &mut self.classes[number];
            let mut sojourn_ns = core::mem::take(&mut class.sojourn_ns);
            sojourn_ns.clear();
            *class = Passed { initial, sojourn_ns, ..Passed::default() };
        }
        self.arrivals.fill(Arrivals::default());
        self.fates.fill(Fates::default());
        self.has_fates = false;
        self.backlog_packets.clear();
        self.backlog_bytes = Area::default();
        self.busy = Span::ZERO;
        self.sent_before = self.sent_since;
        self.inner.iter_mut().for_each(|inner| inner.books.restart(false));
    }

    /// Reserves room for all counts of a queue of up to `packets` packets.
    pub(crate) fn reserve(&mut self, packets: usize) {
        self.classes.iter_mut().for_each(|class| class.sojourn_ns.reserve());
        self.backlog_packets.reserve(packets + 1);
        self.inner.iter_mut().for_each(|inner| inner.books.reserve(packets));
    }

    /// Completes the integrals up to `now`. The caller guarantees that the backlog has not changed since the
    /// integrals were last completed.
    #[inline]
    pub(crate) fn settle(&mut self, now: Instant, backlog: Backlog) {
        if now <= self.until {
            return;
        }
        let ns = now.saturating_since(self.until).as_ns();
        self.backlog_packets.held_for(backlog.packets.get(), ns);
        self.backlog_bytes.held_for(backlog.bytes.get(), ns);
        self.until = now;
    }

    /// Completes the integrals up to `now` on the assumption that no packet has waited.
    #[inline]
    pub(crate) fn settle_empty(&mut self, now: Instant) {
        if now <= self.until {
            return;
        }
        self.backlog_packets.held_for(0, now.saturating_since(self.until).as_ns());
        self.until = now;
    }

    /// Sets the link's busy time, and the part of the packet in transmission that has been sent.
    pub(crate) fn sent(&mut self, busy: Span, class: usize, bytes: i64) {
        self.busy = busy;
        self.sent_since = (class, bytes);
    }

    /// Returns the packets of all classes that have been transmitted completely.
    pub fn departed(&self) -> Tally {
        sum(self.classes.iter().map(|class| class.departed))
    }

    #[inline]
    pub(crate) fn arrived(&mut self, pkt: &impl Classed) {
        let (size, ecn) = (pkt.wire_len(), pkt.ecn());
        let arrivals = &mut self.arrivals[pkt.class_and_kind()];
        arrivals.all.count(size);
        if ecn.is_capable() {
            arrivals.ect.count(size);
        }
    }

    #[inline]
    pub(crate) fn began_transmission(&mut self, class: usize, sojourn: Span) {
        let books = &mut self.classes[class];
        books.sojourn_ns.add(sojourn.as_ns(), 1);
        books.sojourn_sum_ns += u128::from(sojourn.as_ns());
    }

    /// Records the beginning of a transmission like [`Books::began_transmission`], but postpones part of the
    /// work: [`Books::complete`] must be called before the books are read.
    #[inline]
    pub(crate) fn began_ahead(&mut self, class: usize, sojourn: Span) {
        let books = &mut self.classes[class];
        if sojourn.is_zero() {
            books.undelayed += 1;
            return;
        }
        books.sojourn_sum_ns += u128::from(sojourn.as_ns());
        self.recent.push((class as u32, sojourn.as_ns()));
        if self.recent.len() == TOGETHER {
            self.enter_recent();
        }
    }

    #[inline(never)]
    fn enter_recent(&mut self) {
        for (class, ns) in self.recent.drain(..) {
            self.classes[class as usize].sojourn_ns.add(ns, 1);
        }
    }

    /// Completes the histograms of sojourn times.
    pub(crate) fn complete(&mut self) {
        self.enter_recent();
        for class in self.classes.iter_mut().filter(|class| class.undelayed > 0) {
            class.sojourn_ns.add(0, core::mem::take(&mut class.undelayed));
        }
    }

    #[inline]
    pub(crate) fn leaves(&mut self, class: usize, size: Bytes) {
        self.classes[class].departed.count(size);
    }

    pub(crate) fn dropped(&mut self, now: Instant, pkt: &impl Classed, at: Cause) {
        let size = pkt.wire_len();
        self.fates_of(pkt).dropped[at.reason as usize].count(size);
        self.each_around(at.inner, |inner| {
            inner.goes(now, size);
            inner.books.fates_of(pkt).dropped[at.reason as usize].count(size);
        });
    }

    pub(crate) fn marked(&mut self, pkt: &impl Classed, at: Cause) {
        let size = pkt.wire_len();
        self.fates_of(pkt).marked[at.reason as usize].count(size);
        self.each_around(at.inner, |inner| inner.books.fates_of(pkt).marked[at.reason as usize].count(size));
    }

    /// Records the arrival of a packet at an inner queue.
    pub(crate) fn entered(&mut self, now: Instant, pkt: &impl Classed, number: u16) {
        let Some(inner) = self.inner_of(number) else { return };
        inner.settle(now);
        inner.waiting.packets += Packets::new(1);
        inner.waiting.bytes += pkt.wire_len();
        inner.books.arrived(pkt);
    }

    /// Records the departure of a packet from an inner queue, with its sojourn time.
    pub(crate) fn left(&mut self, now: Instant, class: usize, size: Bytes, sojourn: Span, number: u16) {
        let Some(inner) = self.inner_of(number) else { return };
        inner.goes(now, size);
        inner.books.began_transmission(class, sojourn);
        inner.books.leaves(class, size);
    }

    fn fates_of(&mut self, pkt: &impl Classed) -> &mut Fates {
        self.has_fates = true;
        &mut self.fates[pkt.class_and_kind()]
    }

    /// Completes the integrals of the inner queues.
    pub(crate) fn settle_inner(&mut self, now: Instant) {
        self.inner.iter_mut().for_each(|inner| inner.settle(now));
    }

    /// Returns the books of an inner queue, or `None` if the number is unknown here; a user-defined
    /// discipline may report any number.
    fn inner_of(&mut self, number: u16) -> Option<&mut InnerBooks> {
        self.inner.get_mut(usize::from(number.checked_sub(1)?))
    }

    /// Calls `each` with the books of an inner queue and with those of every queue around it.
    fn each_around(&mut self, mut number: u16, mut each: impl FnMut(&mut InnerBooks)) {
        while let Some(inner) = self.inner_of(number) {
            each(inner);
            number = inner.within;
        }
    }

    /// Returns the books of the inner queues, each queue before the queues inside it.
    pub fn inner(&self) -> &[InnerBooks] {
        &self.inner
    }

    /// Returns the instant at which the measured interval began.
    pub const fn from(&self) -> Instant {
        self.from
    }

    /// Returns the instant up to which the integrals are complete: that of the port's last event or
    /// of the last call of [`crate::Port::settle`].
    pub const fn until(&self) -> Instant {
        self.until
    }

    /// Returns the length of the measured interval.
    pub const fn span(&self) -> Span {
        self.until.saturating_since(self.from)
    }

    /// Returns whether any packet has been dropped or marked.
    pub const fn has_fates(&self) -> bool {
        self.has_fates
    }

    /// Returns the books of one class.
    ///
    /// # Panics
    /// If the port was made for fewer classes.
    pub fn class(&self, class: usize) -> ClassBooks<'_> {
        let Passed { initial, departed, ref sojourn_ns, sojourn_sum_ns, .. } = self.classes[class];
        let kinds = class * PacketKind::PLACES..class * PacketKind::PLACES + PacketKind::COUNT;
        let part = |(of, bytes): (usize, i64)| if of == class { bytes } else { 0 };
        let sent_bytes = departed.bytes as i64 + part(self.sent_since) - part(self.sent_before);
        ClassBooks {
            initial,
            arrivals: Cow::Borrowed(&self.arrivals[kinds.clone()]),
            fates: Cow::Borrowed(&self.fates[kinds]),
            departed,
            sent_bytes: sent_bytes.max(0) as u64,
            sojourn_ns: Cow::Borrowed(sojourn_ns),
            sojourn_sum_ns,
        }
    }

    /// Iterates over all classes in order.
    pub fn classes(&self) -> impl Iterator<Item = ClassBooks<'_>> {
        (0..self.classes.len()).map(|class| self.class(class))
    }

    /// Returns the sum over all classes.
    pub fn total(&self) -> ClassBooks<'static> {
        let mut arrivals = alloc::vec![Arrivals::default(); PacketKind::COUNT];
        let mut fates = alloc::vec![Fates::default(); PacketKind::COUNT];
        let (mut passed, mut sent_bytes) = (Passed::default(), 0);
        for class in self.classes() {
            sent_bytes += class.sent_bytes;
            passed.initial = passed.initial.plus(class.initial);
            passed.departed = passed.departed.plus(class.departed);
            passed.sojourn_ns.merge(&class.sojourn_ns);
            passed.sojourn_sum_ns += class.sojourn_sum_ns;
            arrivals.iter_mut().zip(class.arrivals.iter()).for_each(|(sum, kind)| *sum = sum.plus(kind));
            fates.iter_mut().zip(class.fates.iter()).for_each(|(sum, kind)| *sum = sum.plus(kind));
        }
        let Passed { initial, departed, sojourn_ns, sojourn_sum_ns, .. } = passed;
        ClassBooks {
            initial,
            arrivals: Cow::Owned(arrivals),
            fates: Cow::Owned(fates),
            departed,
            sent_bytes,
            sojourn_ns: Cow::Owned(sojourn_ns),
            sojourn_sum_ns,
        }
    }

    /// Returns time-weighted statistics of the number of waiting packets; each call computes them
    /// anew.
    pub fn backlog_packets(&self) -> TimeWeighted {
        self.backlog_packets.summary()
    }

    /// Returns time-weighted statistics of the number of waiting bytes.
    pub const fn backlog_bytes(&self) -> &Area {
        &self.backlog_bytes
    }

    /// Returns for how long at least one packet has waited.
    pub(crate) fn time_waiting(&self) -> Span {
        self.span().saturating_sub(Span::ns(self.backlog_packets.time_at_zero()))
    }

    /// Returns how long the link was transmitting, up to the last call of [`crate::Port::settle`]: the exact
    /// sum of transmission times, rounded down to a nanosecond. For a link that sends at chances, returns for how long at
    /// least one packet has waited.
    pub const fn busy(&self) -> Span {
        self.busy
    }

    /// Checks the identities between the counts, the backlog that the discipline reports, and the packet in
    /// transmission (`None` if there is none).
    ///
    /// # Errors
    /// Returns the first identity that does not hold.
    pub(crate) fn check(&self, backlog: Backlog, sending: Option<Bytes>) -> Result<(), Imbalance> {
        let on_wire = sending.map_or(Tally::default(), |size| Tally { packets: 1, bytes: size.get() });
        let total = self.total();
        for (number, class) in self.classes().enumerate() {
            let (came, gone) = (class.came(), class.gone());
            if gone.packets > came.packets || gone.bytes > came.bytes {
                let identity = "departed + dropped exceeds initial + arrived";
                return Err(Imbalance(format!("class {number}: {identity}: {gone:?} > {came:?}")));
            }
        }
        let held = Tally::of(backlog).plus(on_wire);
        equal(total.held(), held, || "arrived and not yet gone = backlog + in transmission".into())?;
        let began = total.departed.packets + on_wire.packets - self.initial_sending;
        equal(total.sojourn_ns.total(), began, || "sojourn times = transmissions begun".into())?;
        let span = self.span().as_ns();
        equal(self.backlog_packets.total(), span, || "time by backlog = measured time".into())?;
        if self.busy > self.span() {
            return Err(Imbalance(format!("busy time {} exceeds measured time {}", self.busy, self.span())));
        }
        Ok(())
    }
}

impl InnerBooks {
    fn settle(&mut self, now: Instant) {
        self.books.settle(now, self.waiting);
    }

    fn goes(&mut self, now: Instant, size: Bytes) {
        self.settle(now);
        self.waiting.packets -= Packets::new(1);
        self.waiting.bytes -= size;
    }

    /// Checks the identities between the inner queue's counts and the backlog that its discipline reports.
    ///
    /// # Errors
    /// Returns the first identity that does not hold.
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
    Err(Imbalance(format!("{}: {left:?} != {right:?}", identity())))
}
