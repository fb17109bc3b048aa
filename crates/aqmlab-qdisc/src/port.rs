//! A port: a discipline, the link behind it, and the books of both.

use alloc::collections::VecDeque;

use aqmlab_units::{Bytes, Instant, LinkClock, Rate};

use crate::books::{Books, Imbalance};
use crate::discipline::each;
use crate::{Backlog, Cause, Classed, Discipline, LawSamples, Observer, Packet, Qdisc, Stamped};

/// A discipline and its link, for any host.
///
/// There is exactly one buffer per hop, and it is the discipline; the one packet in transmission is the
/// port's and is not in the backlog. The host drives it with three calls and one instant:
///
/// 1. a packet comes: [`Port::arrive`];
/// 2. [`Port::next_event`] tells when to come back; at that instant (or as soon after as the host can)
/// 3. if [`Port::is_sending`]: [`Port::link_free`], which returns the packet whose transmission has ended
///    and starts the next one; else (only shapers): [`Port::wake`].
///
/// A host of real time passes the ideal instants, those that `next_event` told, not its own lateness.
///
/// A simulator can do with fewer calls if the discipline [settles everything at
/// enqueue](Qdisc::settles_at_enqueue): after [`Port::look_ahead`], [`Port::arrive_ahead`] says when the packet will
/// have been sent, and the port catches up with its departures, each at its own instant, when it is next called. The
/// discipline sees the same calls at the same instants either way.
pub struct Port<P: Classed> {
    discipline: Discipline<Stamped<P>>,
    link: Link<P>,
}

/// All of a port but its discipline, which each call gets by its own type: the port looks once which of the
/// built-in ones it has, and no packet passes through a value that could be of any.
struct Link<P> {
    clock: LinkClock,
    overhead: Bytes,
    sending: Option<Sending<P>>,
    looks_ahead: bool,
    /// Looking ahead: when the transmissions of the waiting packets will end, in their order.
    ends: VecDeque<Instant>,
    /// Looking ahead: the end of the last transmission that is settled.
    last_end: Instant,
    books: Books,
}

struct Sending<P> {
    pkt: Stamped<P>,
    ends: Instant,
}

/// What becomes of a packet that a port which looks ahead has kept.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Prospect {
    /// When its transmission will have ended.
    pub sent: Instant,
    /// It has been marked on arrival.
    pub marked: bool,
}

/// A packet that has been transmitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Departure<P> {
    /// The packet.
    pub packet: P,
    /// When it had arrived at this port.
    pub arrived: Instant,
    /// When the next transmission, which has just begun, will end; `None` if the link is idle now.
    pub next_end: Option<Instant>,
}

impl<P: Classed> Port<P> {
    /// A port with an idle link at `rate`. Each packet occupies the link for `overhead` more than its
    /// length. `classes` is how many classes [`Classed::class`] tells apart, at least one.
    ///
    /// # Panics
    /// If the rate is zero.
    pub fn new(discipline: Discipline<Stamped<P>>, rate: Rate, overhead: Bytes, classes: usize) -> Self {
        let (clock, books) = (LinkClock::new(rate), Books::new(classes));
        let (ends, last_end) = (VecDeque::new(), Instant::ZERO);
        let link = Link { clock, overhead, sending: None, looks_ahead: false, ends, last_end, books };
        Port { discipline, link }
    }

    /// `pkt` arrives. Returns the end of its transmission (or of that of another packet which the
    /// discipline prefers) if the link was idle and has now begun one.
    pub fn arrive(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) -> Option<Instant> {
        each!(&mut self.discipline, queue => self.link.arrive(queue, now, pkt, obs))
    }

    /// The transmission under way has ended: returns its packet and starts the next.
    ///
    /// # Panics
    /// If nothing is being sent.
    pub fn link_free(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Departure<P> {
        each!(&mut self.discipline, queue => self.link.free(queue, now, obs))
    }

    /// Makes an empty port look ahead, if its discipline [settles everything at
    /// enqueue](Qdisc::settles_at_enqueue). Does it now?
    ///
    /// # Panics
    /// If the port holds a packet.
    pub fn look_ahead(&mut self) -> bool {
        assert!(!self.is_sending() && self.backlog() == Backlog::default(), "only an empty port changes its ways");
        self.link.looks_ahead = self.discipline.settles_at_enqueue();
        self.link.looks_ahead
    }

    /// Does it look ahead?
    #[inline]
    pub const fn looks_ahead(&self) -> bool {
        self.link.looks_ahead
    }

    /// `pkt` arrives at a port that looks ahead: what will become of it, or `None` if it is lost. Such a port is
    /// called by none of the other three, its backlog and law are up to date after [`Port::catch_up`] only, and its
    /// rate must not change while packets wait.
    pub fn arrive_ahead(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) -> Option<Prospect> {
        debug_assert!(self.link.looks_ahead, "a port is told once to look ahead");
        each!(&mut self.discipline, queue => self.link.arrive_ahead(queue, now, pkt, obs))
    }

    /// A port that looks ahead: all transmissions that end up to `now` have ended. Elsewhere it changes nothing.
    pub fn catch_up(&mut self, now: Instant) {
        if self.link.looks_ahead {
            each!(&mut self.discipline, queue => self.link.catch_up(queue, now));
        }
    }

    /// The discipline's deadline has come while the link is idle. Returns the end of the transmission that
    /// has begun, if one has. Calling it at any other time does no harm.
    pub fn wake(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<Instant> {
        if self.is_sending() {
            return None;
        }
        self.settle(now);
        each!(&mut self.discipline, queue => self.link.begin_train(queue, now, obs))
    }

    /// The link's rate changes; a transmission under way keeps its end.
    ///
    /// # Panics
    /// If the rate is zero.
    pub fn set_rate(&mut self, now: Instant, rate: Rate) {
        self.link.clock.set_rate(rate);
        self.discipline.rate_changed(now, rate);
    }

    /// Cuts off the past: all books start anew, what the port holds is carried in. State is kept.
    pub fn measure_from(&mut self, now: Instant) {
        self.settle(now);
        self.link.books.restart(self.is_sending());
    }

    /// Completes the books' integrals up to `now`; without it they end at the port's last event.
    pub fn settle(&mut self, now: Instant) {
        self.catch_up(now);
        self.link.books.settle(now, self.discipline.backlog(), self.is_sending());
    }

    /// The absolute instant at which the host must come back; `None` if only an arrival can change
    /// anything.
    pub fn next_event(&self) -> Option<Instant> {
        match &self.link.sending {
            Some(sending) => Some(sending.ends),
            None => self.discipline.deadline(),
        }
    }

    /// Is a packet in transmission?
    #[inline]
    pub const fn is_sending(&self) -> bool {
        self.link.sending.is_some()
    }

    /// The packet in transmission.
    pub fn in_transmission(&self) -> Option<&P> {
        self.link.sending.as_ref().map(|s| &s.pkt.packet)
    }

    /// The link's rate.
    pub const fn rate(&self) -> Rate {
        self.link.clock.rate()
    }

    /// What waits, without the packet in transmission.
    pub fn backlog(&self) -> Backlog {
        self.discipline.backlog()
    }

    /// The discipline.
    pub const fn discipline(&self) -> &Discipline<Stamped<P>> {
        &self.discipline
    }

    /// Appends the law's values as of `now`.
    pub fn observe(&self, now: Instant, out: &mut LawSamples) {
        self.discipline.observe(now, out);
    }

    /// The books, complete up to [`Books::until`].
    pub const fn books(&self) -> &Books {
        &self.link.books
    }

    /// Do the books balance? Conservation in packets and bytes per class and in sum against what the
    /// discipline says that it holds; measured time against histograms; sojourn times against
    /// transmissions.
    ///
    /// # Errors
    /// The identity that fails.
    pub fn check_books(&self) -> Result<(), Imbalance> {
        self.link.books.check(self.discipline.backlog(), self.in_transmission())
    }
}

impl<P: Classed> Link<P> {
    #[inline]
    fn arrive<Q>(&mut self, queue: &mut Q, now: Instant, pkt: P, obs: &mut dyn Observer<P>) -> Option<Instant>
    where
        Q: Qdisc<Stamped<P>>,
    {
        self.books.settle(now, queue.backlog(), self.sending.is_some());
        self.books.arrived(pkt.class(), pkt.wire_len(), pkt.ecn());
        let mut clerk = Clerk { books: &mut self.books, host: obs, lost: false, marked: false };
        queue.enqueue(now, Stamped { packet: pkt, arrived: now }, &mut clerk);
        if self.sending.is_some() {
            return None;
        }
        self.begin_train(queue, now, obs)
    }

    #[inline]
    fn free<Q>(&mut self, queue: &mut Q, now: Instant, obs: &mut dyn Observer<P>) -> Departure<P>
    where
        Q: Qdisc<Stamped<P>>,
    {
        self.books.settle(now, queue.backlog(), true);
        let Sending { pkt, ends } =
            self.sending.take().expect("link_free is called when a transmission has ended");
        debug_assert!(now >= ends, "the link is not free yet");
        self.books.departed(pkt.packet.class(), pkt.wire_len());
        let next_end = self.start(queue, now, obs);
        Departure { packet: pkt.packet, arrived: pkt.arrived, next_end }
    }

    /// The link was idle: a new back-to-back train begins, if there is a packet.
    #[inline(never)]
    fn begin_train<Q>(&mut self, queue: &mut Q, now: Instant, obs: &mut dyn Observer<P>) -> Option<Instant>
    where
        Q: Qdisc<Stamped<P>>,
    {
        self.clock.restart();
        self.start(queue, now, obs)
    }

    #[inline]
    fn arrive_ahead<Q>(
        &mut self,
        queue: &mut Q,
        now: Instant,
        pkt: P,
        obs: &mut dyn Observer<P>,
    ) -> Option<Prospect>
    where
        Q: Qdisc<Stamped<P>>,
    {
        self.catch_up(queue, now);
        self.books.settle(now, queue.backlog(), self.sending.is_some());
        let size = pkt.wire_len();
        self.books.arrived(pkt.class(), size, pkt.ecn());
        let mut clerk = Clerk { books: &mut self.books, host: obs, lost: false, marked: false };
        queue.enqueue(now, Stamped { packet: pkt, arrived: now }, &mut clerk);
        let Clerk { lost, marked, .. } = clerk;
        if lost {
            if self.sending.is_none() {
                stay_idle(queue, now);
            }
            return None;
        }
        if self.sending.is_some() {
            self.last_end += self.clock.serialise(size + self.overhead);
            self.ends.push_back(self.last_end);
        } else {
            self.clock.restart();
            self.last_end = now + self.clock.serialise(size + self.overhead);
            self.begin(queue, now, self.last_end);
        }
        Some(Prospect { sent: self.last_end, marked })
    }

    /// Ends what has ended by `now`, and begins what follows it.
    #[inline]
    fn catch_up<Q: Qdisc<Stamped<P>>>(&mut self, queue: &mut Q, now: Instant) {
        while let Some(sending) = &self.sending
            && sending.ends <= now
        {
            let ends = sending.ends;
            self.books.settle(ends, queue.backlog(), true);
            self.books.departed(sending.pkt.packet.class(), sending.pkt.wire_len());
            self.sending = None;
            match self.ends.pop_front() {
                Some(next) => self.begin(queue, ends, next),
                None => stay_idle(queue, ends),
            }
        }
    }

    /// Puts the next packet on the idle link; its transmission ends at `ends`.
    #[inline(always)]
    fn begin<Q: Qdisc<Stamped<P>>>(&mut self, queue: &mut Q, now: Instant, ends: Instant) {
        let pkt = queue.dequeue(now, &mut Nobody).expect("what was kept leaves in its turn");
        self.books.began_transmission(pkt.packet.class(), now.saturating_since(pkt.arrived));
        self.sending = Some(Sending { pkt, ends });
    }

    /// Asks the discipline for a packet and puts it on the idle link.
    #[inline(always)]
    fn start<Q>(&mut self, queue: &mut Q, now: Instant, obs: &mut dyn Observer<P>) -> Option<Instant>
    where
        Q: Qdisc<Stamped<P>>,
    {
        let mut clerk = Clerk { books: &mut self.books, host: obs, lost: false, marked: false };
        let pkt = queue.dequeue(now, &mut clerk)?;
        let (class, sojourn) = (pkt.packet.class(), now.saturating_since(pkt.arrived));
        let ends = now + self.clock.serialise(pkt.wire_len() + self.overhead);
        self.sending = Some(Sending { pkt, ends });
        self.books.began_transmission(class, sojourn);
        Some(ends)
    }
}

/// The idle link asks and gets nothing: that is how the discipline learns of it.
#[inline]
fn stay_idle<P: Classed, Q: Qdisc<Stamped<P>>>(queue: &mut Q, now: Instant) {
    let next = queue.dequeue(now, &mut Nobody);
    assert!(next.is_none(), "the discipline said that everything is settled at enqueue");
}

/// Enters each fate into the books and hands it on to the host.
struct Clerk<'a, P> {
    books: &'a mut Books,
    host: &'a mut dyn Observer<P>,
    /// A packet was dropped.
    lost: bool,
    /// A packet was marked.
    marked: bool,
}

impl<P: Classed> Observer<Stamped<P>> for Clerk<'_, P> {
    fn dropped(&mut self, now: Instant, pkt: Stamped<P>, at: Cause) {
        self.lost = true;
        self.books.dropped(pkt.packet.class(), pkt.wire_len(), at);
        self.host.dropped(now, pkt.packet, at);
    }

    fn marked(&mut self, now: Instant, pkt: &Stamped<P>, at: Cause) {
        self.marked = true;
        self.books.marked(pkt.packet.class(), pkt.wire_len(), at);
        self.host.marked(now, &pkt.packet, at);
    }
}

/// Listens to a dequeue at which nothing can be reported.
struct Nobody;

impl<P> Observer<P> for Nobody {
    fn dropped(&mut self, _now: Instant, _pkt: P, _at: Cause) {
        unreachable!("the discipline said that everything is settled at enqueue");
    }

    fn marked(&mut self, _now: Instant, _pkt: &P, _at: Cause) {
        unreachable!("the discipline said that everything is settled at enqueue");
    }
}
