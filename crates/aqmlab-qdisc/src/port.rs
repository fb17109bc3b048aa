//! A port: a discipline, the link behind it, and the books of both.

use aqmlab_units::{Bytes, Instant, LinkClock, Rate, Span};

use crate::books::{Books, Imbalance, InnerBooks};
use crate::discipline::each;
use crate::pipe::Line;
use crate::{
    Backlog, Cause, Classed, Discipline, Inside, LawSamples, Observer, Packet, Qdisc, Stamped, TcpHeader,
};

/// A discipline and its link, for any host.
///
/// There is exactly one buffer per hop, and it is the discipline. The one packet in transmission
/// belongs to the port and is not in the backlog. The host drives the port as follows:
///
/// 1. When a packet arrives, the host calls [`Port::arrive`].
/// 2. The host calls [`Port::next_event`], which returns the instant of the next call.
/// 3. At that instant, or as soon afterwards as possible, the host calls [`Port::link_free`] if
///    [`Port::is_sending`]. This returns the packet whose transmission has ended and starts the
///    next one. Otherwise, which happens only with shapers, it calls [`Port::wake`].
///
/// A real-time host passes the ideal instants that `next_event` returned, not its own late ones.
///
/// Each call takes an [`Observer`], to which the port reports the packets that arrive, leave, are marked or
/// are dropped. A report that the observer ignores costs nothing because calls are dispatched statically.
///
/// A simulator needs fewer calls if the discipline [settles everything at
/// enqueue](Qdisc::settles_at_enqueue). After [`Port::look_ahead`], [`Port::arrive_ahead`] returns
/// when the packet will have been sent. At the next call, the port processes the departures that
/// have fallen due in the meantime, each at its own instant. With or without looking ahead, the
/// discipline sees the same calls at the same instants. The observer of a port that looks ahead
/// receives only marks and drops; hosts that need arrivals and departures must not let the port
/// look ahead.
pub struct Port<P: Classed> {
    discipline: Discipline<Stamped<P>>,
    link: Link<P>,
}

/// Everything in a port except its discipline, which each call receives as a value of its concrete type. The
/// port dispatches on the enum of disciplines once per call, not each time that it passes a packet on.
struct Link<P> {
    clock: LinkClock,
    overhead: Bytes,
    /// When the current transmission ends; far future if the link is idle.
    ends: Instant,
    /// The properties of the packet in transmission that the books need.
    on_wire: OnWire,
    /// The packet in transmission itself, unless the port looks ahead.
    in_hand: Option<Stamped<P>>,
    looks_ahead: bool,
    /// When the port looks ahead: the state that the link will have after everything that waits has been
    /// sent.
    ahead: Line,
    /// Otherwise: when the last transmission ended.
    idle_since: Instant,
    /// The part of the link's work (see [`Link::work`]) that does not count as busy time.
    uncounted: i128,
    motion: Motion,
    /// What is still to be sent of the packet in transmission unless the link moves, in units of 10^-9 bit.
    left: u128,
    books: Books,
}

/// The end of a transmission on a link that stands still.
const NEVER: Instant = Instant::from_ns(Instant::FAR_FUTURE.as_ns() - 1);

/// Whether a link sends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Motion {
    /// The link sends what there is.
    Moves,
    /// Its rate is zero.
    Stands,
    /// It sends only at [chances](Port::use_chance).
    AtChances,
}

#[derive(Clone, Copy, Default)]
struct OnWire {
    class: usize,
    size: Bytes,
}

/// Fate of a packet accepted by a port that looks ahead.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prospect {
    /// End of its transmission.
    pub sent: Instant,
    /// Whether it was marked on arrival.
    pub marked: bool,
}

/// A packet that has been transmitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Departure<P> {
    /// The packet.
    pub packet: P,
    /// When it arrived at this port.
    pub arrived: Instant,
    /// When the next transmission, which has just begun, will end; `None` if the link is idle now.
    pub next_end: Option<Instant>,
}

impl<P: Classed> Port<P> {
    /// Creates a port with an idle link at `rate`. Each packet occupies the link for the
    /// transmission time of its length plus `overhead`. `classes` is the number of classes that
    /// [`Classed::class`] distinguishes, at least one.
    ///
    /// # Panics
    /// If the rate is zero.
    pub fn new(discipline: Discipline<Stamped<P>>, rate: Rate, overhead: Bytes, classes: usize) -> Self {
        let (clock, mut books) = (LinkClock::new(rate), Books::new(classes));
        walk(&discipline, 0, &mut 0, &mut |within, name, _| books.open_inner(name, within));
        let (on_wire, ahead) = (OnWire::default(), Line::default());
        let (ends, in_hand, looks_ahead) = (Instant::FAR_FUTURE, None, false);
        let (idle_since, uncounted) = (Instant::ZERO, 0);
        let (motion, left) = (Motion::Moves, 0);
        let link = Link {
            clock,
            overhead,
            ends,
            on_wire,
            in_hand,
            looks_ahead,
            ahead,
            idle_since,
            uncounted,
            motion,
            left,
            books,
        };
        Port { discipline, link }
    }

    /// Reserves room in the books and the discipline for a queue of up to `packets` packets and for this many
    /// flows, for hosts that must not allocate once they are running ([`Qdisc::reserve`]).
    pub fn reserve(&mut self, packets: usize, flows: usize) {
        self.link.books.reserve(packets);
        self.discipline.reserve(packets, flows);
    }

    /// Accepts `pkt`. If the link was idle and has now begun a transmission, returns the end of
    /// this transmission. The packet in transmission need not be `pkt`: the discipline may prefer
    /// another one.
    pub fn arrive<O>(&mut self, now: Instant, pkt: P, obs: &mut O) -> Option<Instant>
    where
        O: Observer<Stamped<P>>,
    {
        each!(&mut self.discipline, queue => self.link.arrive(queue, now, pkt, obs))
    }

    /// Ends the current transmission: returns its packet and starts the next.
    ///
    /// # Panics
    /// If nothing is being sent.
    pub fn link_free<O: Observer<Stamped<P>>>(&mut self, now: Instant, obs: &mut O) -> Departure<P> {
        each!(&mut self.discipline, queue => self.link.free(queue, now, obs))
    }

    /// Makes an empty port look ahead, if its discipline [settles everything at
    /// enqueue](Qdisc::settles_at_enqueue). Returns whether it now looks ahead.
    ///
    /// # Panics
    /// If the port holds a packet.
    pub fn look_ahead(&mut self) -> bool {
        assert!(
            !self.is_sending() && self.backlog() == Backlog::default(),
            "only an empty port can begin to look ahead"
        );
        self.link.looks_ahead = self.discipline.settles_at_enqueue();
        self.link.looks_ahead
    }

    /// Returns whether this port looks ahead.
    #[inline]
    pub const fn looks_ahead(&self) -> bool {
        self.link.looks_ahead
    }

    /// Accepts a copy of `pkt` at a port that looks ahead, and returns its fate, or `None` if it is lost.
    /// [`Port::arrive`], [`Port::link_free`] and [`Port::wake`] must not be called on such a port. Its
    /// backlog, law and books are up to date only after [`Port::catch_up`], and its rate must not change
    /// while packets wait.
    pub fn arrive_ahead(
        &mut self,
        now: Instant,
        pkt: &P,
        obs: &mut dyn Observer<Stamped<P>>,
    ) -> Option<Prospect>
    where
        P: Copy,
    {
        debug_assert!(self.link.looks_ahead, "`arrive_ahead` needs a port that looks ahead");
        each!(&mut self.discipline, queue => self.link.arrive_ahead(queue, now, pkt, obs))
    }

    /// Ends all transmissions up to `now` in a port that looks ahead. This method has no effect on ports that
    /// do not look ahead.
    ///
    /// # Panics
    /// If `now` is [`Instant::FAR_FUTURE`], which is never reached.
    pub fn catch_up(&mut self, now: Instant) {
        assert!(now < Instant::FAR_FUTURE, "`now` must be before the far future");
        if self.link.looks_ahead {
            each!(&mut self.discipline, queue => self.link.catch_up(queue, now));
            self.link.books.complete();
        }
    }

    /// Handles the discipline's deadline while the link is idle. Returns the end of the transmission that has
    /// begun, if one has. A call at any other time is harmless.
    pub fn wake<O: Observer<Stamped<P>>>(&mut self, now: Instant, obs: &mut O) -> Option<Instant> {
        if self.is_sending() {
            return None;
        }
        self.settle(now);
        each!(&mut self.discipline, queue => self.link.begin_train(queue, now, obs))
    }

    /// Changes the link's rate. The rest of a packet in transmission is sent at the new rate, exactly: no
    /// part of a nanosecond is lost. At a rate of zero, the link stands still: the packet in transmission
    /// waits, and the link takes no other packet from the discipline, which is not told of this rate.
    /// Returns when the transmission in progress now ends, if there is one and the link moves; the end that the
    /// host knew before is void. A change at the instant at which a transmission ends comes first.
    ///
    /// # Panics
    /// If the port looks ahead, because it has already computed departures at the old rate.
    pub fn set_rate<O>(&mut self, now: Instant, rate: Rate, obs: &mut O) -> Option<Instant>
    where
        O: Observer<Stamped<P>>,
    {
        assert!(!self.link.looks_ahead, "a port that looks ahead has a constant rate");
        self.settle(now);
        self.link.change(now, rate);
        if rate > Rate::default() {
            self.discipline.rate_changed(now, rate);
            if !self.is_sending() {
                each!(&mut self.discipline, queue => self.link.begin_train(queue, now, obs));
            }
        }
        self.transmission_end()
    }

    /// Changes the rate of the discipline's shaper ([`Qdisc::shape`]). Returns the end of the transmission that has begun, if one
    /// has.
    ///
    /// # Panics
    /// If the discipline has no shaper.
    pub fn shape<O>(&mut self, now: Instant, rate: Rate, obs: &mut O) -> Option<Instant>
    where
        O: Observer<Stamped<P>>,
    {
        self.settle(now);
        assert!(self.discipline.shape(now, rate), "the discipline has a shaper");
        self.wake(now, obs)
    }

    /// Makes the link of an idle port send only at [chances](Port::use_chance) from now on.
    ///
    /// # Panics
    /// If the port looks ahead or is sending.
    pub fn send_at_chances(&mut self) {
        assert!(
            !self.link.looks_ahead && !self.is_sending(),
            "only an idle port can begin to send at chances"
        );
        self.link.motion = Motion::AtChances;
    }

    /// Lets a link that [sends at chances](Port::send_at_chances) send up to `left` bytes at `now`, which this
    /// method reduces by the bytes sent. Returns the packet whose transmission this completes. The host calls this method again until it returns `None`: what then remains of the chance is
    /// lost, and a packet of which only a part was sent is continued at the next chance.
    pub fn use_chance<O>(&mut self, now: Instant, left: &mut Bytes, obs: &mut O) -> Option<Departure<P>>
    where
        O: Observer<Stamped<P>>,
    {
        self.settle(now);
        each!(&mut self.discipline, queue => self.link.use_chance(queue, now, left, obs))
    }

    /// Restarts all books; the port's backlog is carried over. The discipline's state is kept.
    pub fn measure_from(&mut self, now: Instant) {
        self.settle(now);
        self.link.books.restart(self.is_sending());
        self.link.uncounted = self.link.work(now);
    }

    /// Visits the queues inside the discipline with their books, each queue before the queues inside it.
    pub fn each_inner(&self, mut visit: impl FnMut(&InnerBooks, Inside<'_, Stamped<P>>)) {
        let mut books = self.link.books.inner().iter();
        walk(&self.discipline, 0, &mut 0, &mut |_, _, queue| {
            visit(books.next().expect("books of all queues were opened with the port"), queue);
        });
    }

    /// Completes the books' integrals up to `now`. Without this call, they end at the port's last event.
    pub fn settle(&mut self, now: Instant) {
        self.catch_up(now);
        self.link.books.settle(now, self.discipline.backlog());
        self.link.books.settle_inner(now);
        self.link.settle_transmission(now);
    }

    /// Returns the instant of the host's next call, or `None` if only an arrival, a change of the rate or a
    /// chance can change anything.
    pub fn next_event(&self) -> Option<Instant> {
        if self.is_sending() {
            self.transmission_end()
        } else if self.link.motion != Motion::Moves {
            None
        } else {
            self.discipline.deadline()
        }
    }

    /// Returns when the transmission in progress ends, or `None` if there is none or the link stands still.
    fn transmission_end(&self) -> Option<Instant> {
        Some(self.link.ends).filter(|ends| *ends < NEVER)
    }

    /// Returns whether a transmission ends at `now`.
    #[inline]
    pub fn is_due(&self, now: Instant) -> bool {
        self.link.ends == now
    }

    /// Returns whether a packet is in transmission.
    #[inline]
    pub const fn is_sending(&self) -> bool {
        self.link.is_sending()
    }

    /// Returns the packet in transmission, if the port keeps it; a port that looks ahead never
    /// does.
    pub fn in_transmission(&self) -> Option<&P> {
        self.transmission().map(|s| &s.packet)
    }

    /// Returns the packet in transmission with its arrival time.
    pub const fn transmission(&self) -> Option<&Stamped<P>> {
        self.link.in_hand.as_ref()
    }

    /// Returns the link's rate.
    pub const fn rate(&self) -> Rate {
        self.link.clock.rate()
    }

    /// Returns the backlog, excluding the packet in transmission.
    pub fn backlog(&self) -> Backlog {
        self.discipline.backlog()
    }

    /// Returns the discipline.
    pub const fn discipline(&self) -> &Discipline<Stamped<P>> {
        &self.discipline
    }

    /// Appends the law's values at `now`.
    pub fn observe(&self, now: Instant, out: &mut LawSamples) {
        self.discipline.observe(now, out);
    }

    /// Returns the books, complete up to [`Books::until`].
    pub const fn books(&self) -> &Books {
        &self.link.books
    }

    /// Checks that the books balance: packets and bytes are conserved, per class and in total, given the
    /// backlog that the discipline reports; the histograms add up to the measured time; there are as many
    /// sojourn times as transmissions.
    ///
    /// # Errors
    /// Returns the first identity that does not hold.
    pub fn check_books(&self) -> Result<(), Imbalance> {
        let on_wire = self.is_sending().then_some(self.link.on_wire.size);
        self.link.books.check(self.discipline.backlog(), on_wire)?;
        let mut outcome = Ok(());
        self.each_inner(|inner, queue| {
            if outcome.is_ok() {
                outcome = inner.check(queue.backlog());
            }
        });
        outcome
    }
}

/// Visits the queues inside `queue`, each queue before the queues inside it, and passes `visit` the
/// number of the containing queue, the name of the queue, and the queue itself. `last` is the
/// number given to the last queue so far.
fn walk<P: Packet>(
    queue: &dyn Qdisc<P>,
    within: u16,
    last: &mut u16,
    visit: &mut dyn FnMut(u16, &str, Inside<'_, P>),
) {
    queue.each_inner(&mut |name, inner| {
        *last += 1;
        let number = *last;
        visit(within, name, inner);
        match inner {
            Inside::Queue(queue) => walk(queue, number, last, visit),
            Inside::Divided(_, parts) => {
                for (name, backlog) in parts {
                    *last += 1;
                    visit(number, name, Inside::Group(*backlog));
                }
            }
            Inside::Group(_) | Inside::Observed(..) => {}
        }
    });
}

impl<P: Classed> Link<P> {
    #[inline]
    const fn is_sending(&self) -> bool {
        self.ends.as_ns() != Instant::FAR_FUTURE.as_ns()
    }

    /// Returns the work that the link has done by `now`, in units of 10^-9 bit, overhead included: packets
    /// that have left since the books were restarted, and the part of the current one that has been sent. Work
    /// divided by the rate is the exact busy time, without the rounding of instants to nanoseconds.
    fn work(&self, now: Instant) -> i128 {
        let departed = self.books.departed();
        let departed = Bytes::new(departed.bytes) + self.overhead * departed.packets;
        departed.nanobits() as i128 + self.sent_part(now)
    }

    /// Returns how much of the packet in transmission has been sent by `now`, in units of 10^-9 bit.
    fn sent_part(&self, now: Instant) -> i128 {
        if !self.is_sending() {
            return 0;
        }
        let whole = (self.on_wire.size + self.overhead).nanobits() as i128;
        if self.ends < now {
            return whole;
        }
        // Less than zero for a packet whose predecessor left in this nanosecond, but before its exact end.
        whole - self.left(now) as i128
    }

    /// Returns how much of the packet in transmission, which has not ended, is still to be sent at `now`, in units of
    /// 10^-9 bit.
    fn left(&self, now: Instant) -> u128 {
        if self.motion != Motion::Moves {
            return self.left;
        }
        let time = self.ends.saturating_since(now);
        self.clock.rate().nanobits_in(time) + u128::from(self.clock.remainder())
    }

    /// Changes the rate, which may be zero, and moves the end of the transmission in progress. The books are
    /// settled.
    fn change(&mut self, now: Instant, rate: Rate) {
        debug_assert!(now <= self.ends, "a change follows the transmissions that ended before it");
        let left = if self.is_sending() { self.left(now) } else { 0 };
        let work = self.work(now) - self.uncounted;
        if rate == Rate::default() {
            (self.motion, self.left) = (Motion::Stands, left);
            if left > 0 {
                self.ends = NEVER;
            }
            return;
        }
        // The busy time so far is kept exactly, with its part of a nanosecond.
        let (old, new) = (i128::from(self.clock.rate().as_bps()), i128::from(rate.as_bps()));
        let (busy, rest) = (work.div_euclid(old), work.rem_euclid(old));
        self.uncounted += work - (busy * new + rest * new / old);
        self.motion = Motion::Moves;
        let time = self.clock.set_rate(rate, left);
        if self.is_sending() {
            self.ends = now + time;
        }
    }

    #[inline(never)]
    fn use_chance<Q, O>(
        &mut self,
        queue: &mut Q,
        now: Instant,
        amount: &mut Bytes,
        obs: &mut O,
    ) -> Option<Departure<P>>
    where
        Q: Qdisc<Stamped<P>>,
        O: Observer<Stamped<P>>,
    {
        if amount.is_zero() {
            return None;
        }
        if !self.is_sending() {
            self.take_in_hand(queue, now, obs);
            if !self.is_sending() {
                return None;
            }
            self.left = (self.on_wire.size + self.overhead).nanobits();
            self.ends = NEVER;
        }
        let part = amount.nanobits().min(self.left);
        self.left -= part;
        *amount = amount.saturating_sub(Bytes::of_nanobits(part));
        if self.left > 0 {
            return None;
        }
        let sent = self.in_hand.take().expect("a packet is in transmission");
        self.finish(queue, now);
        Some(Departure { packet: sent.packet, arrived: sent.arrived, next_end: None })
    }

    /// Brings the books' busy time and transmitted bytes up to date.
    fn settle_transmission(&mut self, now: Instant) {
        let rate = i128::from(self.clock.rate().as_bps());
        let busy = match self.motion {
            // Such a link takes no time to send. It is busy while a packet waits.
            Motion::AtChances => self.books.time_waiting(),
            _ => Span::ns(((self.work(now) - self.uncounted) / rate).max(0) as u64),
        };
        let whole = ((self.on_wire.size + self.overhead).nanobits() as i128).max(1);
        let part = self.sent_part(now).max(-whole);
        let bytes = (i128::from(self.on_wire.size.get()) * part + whole / 2).div_euclid(whole);
        self.books.sent(busy, self.on_wire.class, bytes as i64);
    }

    #[inline]
    fn arrive<Q, O>(&mut self, queue: &mut Q, now: Instant, pkt: P, obs: &mut O) -> Option<Instant>
    where
        Q: Qdisc<Stamped<P>>,
        O: Observer<Stamped<P>>,
    {
        let pkt = Stamped { packet: pkt, arrived: now };
        obs.enqueued(now, &pkt);
        self.note_arrival(queue, now, &pkt.packet);
        self.admit(queue, now, pkt, obs);
        if self.is_sending() {
            return None;
        }
        self.begin_train(queue, now, obs)
    }

    #[inline]
    fn free<Q, O>(&mut self, queue: &mut Q, now: Instant, obs: &mut O) -> Departure<P>
    where
        Q: Qdisc<Stamped<P>>,
        O: Observer<Stamped<P>>,
    {
        let sent = self.in_hand.take().expect("link_free is called when a transmission has ended");
        debug_assert!(now >= self.ends, "the link is not free yet");
        self.idle_since = self.ends;
        self.finish(queue, now);
        self.start_in_hand(queue, now, obs);
        let next_end = self.is_sending().then_some(self.ends);
        Departure { packet: sent.packet, arrived: sent.arrived, next_end }
    }

    /// Begins a back-to-back train on an idle link, if there is a packet to send.
    #[inline(never)]
    fn begin_train<Q, O>(&mut self, queue: &mut Q, now: Instant, obs: &mut O) -> Option<Instant>
    where
        Q: Qdisc<Stamped<P>>,
        O: Observer<Stamped<P>>,
    {
        // The last transmission ended less than a nanosecond after `idle_since`: a packet that arrives in that
        // instant waits for it.
        if self.idle_since < now {
            self.clock.restart();
        }
        self.start_in_hand(queue, now, obs);
        self.is_sending().then_some(self.ends)
    }

    /// Puts the next packet, if there is one, on the idle link and keeps it, unless the link stands still.
    #[inline(always)]
    fn start_in_hand<Q, O>(&mut self, queue: &mut Q, now: Instant, obs: &mut O)
    where
        Q: Qdisc<Stamped<P>>,
        O: Observer<Stamped<P>>,
    {
        if self.motion == Motion::Moves {
            self.take_in_hand(queue, now, obs);
        }
    }

    /// Puts the next packet, if there is one, on the idle link and keeps it.
    #[inline(always)]
    fn take_in_hand<Q, O>(&mut self, queue: &mut Q, now: Instant, obs: &mut O)
    where
        Q: Qdisc<Stamped<P>>,
        O: Observer<Stamped<P>>,
    {
        self.in_hand = self.start(queue, now, obs);
        if let Some(pkt) = &self.in_hand {
            self.books.began_transmission(pkt.packet.class(), now.saturating_since(pkt.arrived));
            obs.dequeued(now, pkt);
        }
    }

    #[inline]
    fn arrive_ahead<Q>(
        &mut self,
        queue: &mut Q,
        now: Instant,
        pkt: &P,
        obs: &mut dyn Observer<Stamped<P>>,
    ) -> Option<Prospect>
    where
        Q: Qdisc<Stamped<P>>,
        P: Copy,
    {
        let size = pkt.wire_len();
        if (self.ends <= now || !self.is_sending()) && queue.passes_at_once(size) {
            return Some(Prospect { sent: self.send_at_once(now, pkt), marked: false });
        }
        self.catch_up(queue, now);
        self.note_arrival(queue, now, pkt);
        let (lost, marked) = self.admit(queue, now, Stamped { packet: *pkt, arrived: now }, obs);
        if !self.is_sending() {
            // A new train. Even if the packet is lost, the idle link polls the queue, which tells
            // the discipline that the link is idle.
            self.restart_ahead(now);
            self.start_ahead(queue, now, obs);
            if self.is_sending() {
                self.note_train();
            }
            return (!lost).then_some(Prospect { sent: self.ends, marked });
        }
        if lost {
            return None;
        }
        let sent = self.ahead.pass(now, self.clock.serialiser(), size + self.overhead);
        Some(Prospect { sent, marked })
    }

    /// Sends a packet that arrives at a port which looks ahead. The caller has checked that nothing waits,
    /// the link is idle and the discipline passes the packet at once. Returns the time at which the packet
    /// will have been sent.
    #[inline(always)]
    fn send_at_once(&mut self, now: Instant, pkt: &P) -> Instant {
        let OnWire { class, size } = self.on_wire;
        self.books.settle_empty(now);
        if self.is_sending() {
            self.books.leaves(class, size);
        }
        self.books.arrived(pkt);
        let (class, size) = (pkt.class(), pkt.wire_len());
        self.restart_ahead(now);
        self.begin(now, class, size);
        self.books.began_ahead(class, Span::ZERO);
        self.note_train();
        self.ends
    }

    /// Begins a new train, unless the last one ended at this instant: its last packet occupies the link for
    /// less than a nanosecond more.
    #[inline(always)]
    fn restart_ahead(&mut self, now: Instant) {
        if self.ahead.free_at() < now {
            self.clock.restart();
        }
    }

    /// Records that a new train has begun.
    #[inline(always)]
    fn note_train(&mut self) {
        self.ahead = Line::busy(self.ends, self.clock.remainder());
    }

    /// Ends the transmissions that have ended by `now`, each at its own instant, and begins their
    /// successors.
    #[inline(always)]
    fn catch_up<Q: Qdisc<Stamped<P>>>(&mut self, queue: &mut Q, now: Instant) {
        debug_assert!(now < Instant::FAR_FUTURE, "`now` must be before the far future");
        while self.ends <= now {
            let ends = self.ends;
            self.finish(queue, ends);
            self.start_ahead(queue, ends, &mut Nobody);
        }
    }

    /// Records the arrival of a packet in the books.
    #[inline(always)]
    fn note_arrival<Q: Qdisc<Stamped<P>>>(&mut self, queue: &Q, now: Instant, pkt: &P) {
        self.books.settle(now, queue.backlog());
        self.books.arrived(pkt);
    }

    /// Passes a packet to the discipline. Returns whether this packet (or another one) was lost, and whether
    /// this packet was marked.
    #[inline(always)]
    fn admit<Q, O>(&mut self, queue: &mut Q, now: Instant, pkt: Stamped<P>, obs: &mut O) -> (bool, bool)
    where
        Q: Qdisc<Stamped<P>>,
        O: Observer<Stamped<P>> + ?Sized,
    {
        let mut recorder = FateRecorder { books: &mut self.books, host: obs, lost: false, marked: false };
        queue.enqueue(now, pkt, &mut recorder);
        (recorder.lost, recorder.marked)
    }

    /// Ends the current transmission.
    #[inline(always)]
    fn finish<Q: Qdisc<Stamped<P>>>(&mut self, queue: &Q, now: Instant) {
        self.books.settle(now, queue.backlog());
        self.books.leaves(self.on_wire.class, self.on_wire.size);
        self.ends = Instant::FAR_FUTURE;
    }

    /// Starts the next transmission at a port that looks ahead, which keeps only the properties of the packet
    /// that the books need.
    #[inline(always)]
    fn start_ahead<Q, O>(&mut self, queue: &mut Q, now: Instant, obs: &mut O)
    where
        Q: Qdisc<Stamped<P>>,
        O: Observer<Stamped<P>> + ?Sized,
    {
        if let Some(pkt) = self.start(queue, now, obs) {
            self.books.began_ahead(pkt.packet.class(), now.saturating_since(pkt.arrived));
        }
    }

    /// Begins the transmission of a packet.
    #[inline(always)]
    fn begin(&mut self, now: Instant, class: usize, size: Bytes) {
        self.ends = now + self.clock.serialise(size + self.overhead);
        self.on_wire = OnWire { class, size };
    }

    /// Takes the next packet from the discipline, if there is one, and puts it on the idle link.
    #[inline(always)]
    fn start<Q, O>(&mut self, queue: &mut Q, now: Instant, obs: &mut O) -> Option<Stamped<P>>
    where
        Q: Qdisc<Stamped<P>>,
        O: Observer<Stamped<P>> + ?Sized,
    {
        let mut recorder = FateRecorder { books: &mut self.books, host: obs, lost: false, marked: false };
        let pkt = queue.dequeue(now, &mut recorder)?;
        let (class, size) = (pkt.packet.class(), pkt.wire_len());
        self.begin(now, class, size);
        Some(pkt)
    }
}

/// Records each fate in the books and passes it on to the host.
struct FateRecorder<'a, O: ?Sized> {
    books: &'a mut Books,
    host: &'a mut O,
    /// A packet was dropped.
    lost: bool,
    /// A packet was marked.
    marked: bool,
}

impl<P: Classed, O: Observer<Stamped<P>> + ?Sized> Observer<Stamped<P>> for FateRecorder<'_, O> {
    fn dropped(&mut self, now: Instant, pkt: Stamped<P>, at: Cause) {
        self.lost = true;
        self.books.dropped(now, &pkt, at);
        self.host.dropped(now, pkt, at);
    }

    fn marked(&mut self, now: Instant, pkt: &Stamped<P>, at: Cause) {
        self.marked = true;
        self.books.marked(pkt, at);
        self.host.marked(now, pkt, at);
    }

    fn entered(&mut self, now: Instant, pkt: &Stamped<P>, inner: u16) {
        self.books.entered(now, pkt, inner);
    }

    fn left(&mut self, now: Instant, pkt: &Stamped<P>, inner: u16) {
        let sojourn = now.saturating_since(pkt.arrived);
        self.books.left(now, pkt.packet.class(), pkt.wire_len(), sojourn, inner);
    }

    fn tcp_header(&self, pkt: &Stamped<P>) -> Option<TcpHeader> {
        self.host.tcp_header(pkt)
    }
}

/// The observer for a dequeue during which nothing can be reported.
struct Nobody;

impl<P> Observer<P> for Nobody {
    fn dropped(&mut self, _now: Instant, _pkt: P, _at: Cause) {
        unreachable!("a discipline that settles everything at enqueue reports nothing at dequeue");
    }

    fn marked(&mut self, _now: Instant, _pkt: &P, _at: Cause) {
        unreachable!("a discipline that settles everything at enqueue reports nothing at dequeue");
    }
}
