//! The central traits: the properties of a packet that a discipline sees, the observer of the fates of
//! packets, and the operations of a discipline.

use alloc::vec::Vec;

use aqmlab_units::{Bytes, Ecn, Instant, Packets, Rate};

use crate::TcpHeader;

/// The endpoint of a flow whose address is to be hashed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// the sending host
    Source,
    /// the receiving host
    Destination,
}

/// A differentiated-services code point (RFC 2474), six bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub struct Dscp(pub u8);

impl Dscp {
    /// The largest code point.
    pub const MAX: Dscp = Dscp(63);

    /// The names of code points (RFC 2474, RFC 2597, RFC 3246, RFC 5865, RFC 8622).
    pub const NAMES: [(&'static str, Dscp); 24] = [
        ("DF", Dscp(0)),
        ("LE", Dscp(1)),
        ("CS1", Dscp(8)),
        ("AF11", Dscp(10)),
        ("AF12", Dscp(12)),
        ("AF13", Dscp(14)),
        ("CS2", Dscp(16)),
        ("AF21", Dscp(18)),
        ("AF22", Dscp(20)),
        ("AF23", Dscp(22)),
        ("CS3", Dscp(24)),
        ("AF31", Dscp(26)),
        ("AF32", Dscp(28)),
        ("AF33", Dscp(30)),
        ("CS4", Dscp(32)),
        ("AF41", Dscp(34)),
        ("AF42", Dscp(36)),
        ("AF43", Dscp(38)),
        ("CS5", Dscp(40)),
        ("VA", Dscp(44)),
        ("EF", Dscp(46)),
        ("CS6", Dscp(48)),
        ("CS7", Dscp(56)),
        ("BE", Dscp(0)),
    ];

    /// Returns the code point called `name`.
    pub fn named(name: &str) -> Option<Dscp> {
        Dscp::NAMES.iter().find(|(known, _)| *known == name).map(|(_, dscp)| *dscp)
    }
}

/// The properties of a packet that a discipline sees. A simulator implements this trait for a small struct, a
/// router for a frame.
pub trait Packet {
    /// Returns the length at the network layer, headers included. The link adds its own overhead to this.
    fn wire_len(&self) -> Bytes;
    /// Returns a hash of the 5-tuple (3-tuple for fragments and protocols other than TCP and UDP).
    fn flow_hash(&self, salt: u64) -> u64;
    /// Returns a hash of one host's address.
    fn host_hash(&self, side: Side, salt: u64) -> u64;
    /// Returns the ECN field.
    fn ecn(&self) -> Ecn;
    /// Sets the ECN field to CE; the host must correct checksums. Called only if [`Ecn::is_capable`].
    fn mark_ce(&mut self);
    /// Returns the differentiated-services code point.
    fn dscp(&self) -> Dscp;
    /// Changes the differentiated-services code point.
    fn set_dscp(&mut self, dscp: Dscp);
    /// Returns the source and destination ports, if the packet has ports and shows them (a fragment does
    /// not).
    fn ports(&self) -> Option<[u16; 2]> {
        None
    }
}

/// The reason why a packet was dropped or marked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
#[non_exhaustive]
pub enum Reason {
    /// Chosen by the discipline's law: at random with the law's probability, or by the law's schedule.
    Early,
    /// Chosen with certainty: because the queue is above the discipline's upper threshold (RED: avg
    /// beyond `max_th`), or because the packet's flow exceeds its limit (FRED).
    Forced,
    /// The buffer's limit was reached: tail drop.
    Overflow,
    /// Injected by a rule of the scenario or a test, not decided by a queue.
    Injected,
}

impl Reason {
    /// All reasons, in the order of their numbers.
    pub const ALL: [Reason; 4] = [Reason::Early, Reason::Forced, Reason::Overflow, Reason::Injected];

    /// Returns the word that recordings use for this reason.
    pub const fn name(self) -> &'static str {
        match self {
            Reason::Early => "early",
            Reason::Forced => "forced",
            Reason::Overflow => "overflow",
            Reason::Injected => "injected",
        }
    }
}

/// The reason why a packet was dropped or marked and, in a discipline with inner queues, the inner
/// queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cause {
    /// The reason.
    pub reason: Reason,
    /// The number of the inner queue, counted from 1 in the order of [`Qdisc::each_inner`], each queue before
    /// the queues inside it; 0 if there is no inner queue or the packet has not reached one.
    pub inner: u16,
}

impl Cause {
    /// Returns a cause that lies in the discipline itself rather than in an inner queue.
    pub const fn of(reason: Reason) -> Self {
        Cause { reason, inner: 0 }
    }
}

/// Observes the fates of packets at a queue. The observer receives dropped packets by value, so a router can
/// recycle frames.
///
/// A discipline reports its drops and marks to its port. A [`crate::Port`] records them in its
/// books and passes them on to the host's observer, which also receives every arrival and
/// departure.
pub trait Observer<P> {
    /// Reports that `pkt` has reached the port and that the discipline has not decided on it yet.
    /// Disciplines do not call this.
    fn enqueued(&mut self, _now: Instant, _pkt: &P) {}
    /// Reports that `pkt` has left its queue and that its transmission begins. Disciplines do not
    /// call this.
    fn dequeued(&mut self, _now: Instant, _pkt: &P) {}
    /// Reports that `pkt` is lost. Called exactly once for each packet that enters and never leaves.
    fn dropped(&mut self, now: Instant, pkt: P, at: Cause);
    /// Reports that `pkt`, which is not lost, now carries CE and did not before.
    fn marked(&mut self, now: Instant, pkt: &P, at: Cause);
    /// Reports that `pkt` enters an inner queue, identified by its number as in [`Cause::inner`]. Either the
    /// packet is queued there, or its fate is reported.
    fn entered(&mut self, _now: Instant, _pkt: &P, _inner: u16) {}
    /// Reports that `pkt` leaves an inner queue and is not lost.
    fn left(&mut self, _now: Instant, _pkt: &P, _inner: u16) {}
    /// Returns the TCP header of `pkt`, which is in the queue or arriving; `None` if it is no whole TCP segment,
    /// or if the host does not show headers. Hosts keep headers outside the packets that they hand to a queue,
    /// because few disciplines read them. An observer that passes reports on must pass this question on, too.
    fn tcp_header(&self, _pkt: &P) -> Option<TcpHeader> {
        None
    }
}

/// The contents of a queue: waiting packets, excluding the one in transmission.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Backlog {
    /// Waiting packets.
    pub packets: Packets,
    /// Their bytes.
    pub bytes: Bytes,
}

/// What is inside a discipline and has books and samples of its own.
pub enum Inside<'a, P> {
    /// A queue that exists as long as the discipline.
    Queue(&'a dyn Qdisc<P>),
    /// The backlog of a queue without a law of its own, or of a group of queues that come and go. Books and tables
    /// therefore do not grow with the number of flows. A packet stays in the group in which it arrived.
    Group(Backlog),
    /// A group with a law, and the function that appends the law's values.
    Observed(Backlog, &'a dyn Fn(Instant, &mut LawSamples)),
    /// A group that consists of these groups, by name. A packet belongs to the whole and to one of them, and both
    /// are told of its entry and exit.
    Divided(Backlog, &'a [(&'static str, Backlog)]),
}

impl<P> Clone for Inside<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P> Copy for Inside<'_, P> {}

impl<P: Packet> Inside<'_, P> {
    /// Returns the backlog.
    pub fn backlog(&self) -> Backlog {
        match self {
            Inside::Queue(queue) => queue.backlog(),
            Inside::Group(backlog) | Inside::Observed(backlog, _) | Inside::Divided(backlog, _) => *backlog,
        }
    }

    /// Appends the law's values at `now`, if there is a law.
    pub fn observe(&self, now: Instant, out: &mut LawSamples) {
        match self {
            Inside::Queue(queue) => queue.observe(now, out),
            Inside::Observed(_, observe) => observe(now, out),
            Inside::Group(_) | Inside::Divided(..) => {}
        }
    }
}

/// Named law values, for plots: `("avg", 12.3)`, `("p", 0.02)`.
pub type LawSamples = Vec<(&'static str, f64)>;

/// A queue discipline: decides which packet leaves next, which packets are marked, and which are lost.
///
/// # Contract
/// 1. *Conservation*, in packets and bytes: arrived = left + dropped + backlog, after every call.
/// 2. *Time order*: `now` never goes back between calls; equal instants are normal.
/// 3. *Liveness*: if `dequeue(now)` returns `None` while the backlog is not empty, `deadline()` is
///    some instant after `now`.
/// 4. *One meaning of deadline*: an absolute instant, which means "call `dequeue` at this instant, or as soon
///    afterwards as you can".
/// 5. *Catching up*: there is no tick. Between two calls the backlog is constant, so a law with a sampling
///    period catches up at the next call. Its state is then the same as if it had been woken at every sampling
///    instant. An update due at t comes before a packet at t.
/// 6. *Bounded*: the work per call is bounded by a documented constant or by the number of drops that the
///    call reports.
/// 7. *Replay*: the same calls and the same stream give the same outcome. CE is set only on ECT packets; the
///    limit is never exceeded; a discipline is work conserving unless it is a shaper, and settles everything
///    at enqueue if it says so ([`Qdisc::settles_at_enqueue`]).
///
/// [`crate::contract`] checks all seven for every registered discipline.
pub trait Qdisc<P: Packet> {
    /// Accepts `pkt`. The packet is queued, or a packet (not necessarily this one) is reported to `obs` as
    /// lost.
    fn enqueue(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>);
    /// Accepts `pkt` as [`Qdisc::enqueue`] does, except that the law may neither drop nor mark it: it is lost only
    /// for lack of room. The law sees the arrival as any other. Only queues whose law decides at arrivals about
    /// individual packets tell the two apart.
    fn enqueue_spared(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) {
        self.enqueue(now, pkt, obs);
    }
    /// Returns the next packet for the link, if one may leave.
    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<P>;
    /// Returns the time at which a held packet may become ready to leave; only shapers have such a time.
    fn deadline(&self) -> Option<Instant>;
    /// Reports that the rate of the link behind this queue has changed to `rate`.
    fn rate_changed(&mut self, now: Instant, rate: Rate);
    /// Changes the rate of the shaper in this discipline, if it has one; returns whether it has. A host then calls
    /// [`Qdisc::dequeue`] if its link is idle, because a held packet may become ready earlier or later than before.
    fn shape(&mut self, _now: Instant, _rate: Rate) -> bool {
        false
    }
    /// Returns the backlog.
    fn backlog(&self) -> Backlog;
    /// Returns the length of the packet that is next to leave (it may still be lost as it leaves), or `None`
    /// if nothing waits or the length is unknown. A call must change nothing, except that it may determine
    /// which queue is next.
    fn next_len(&mut self) -> Option<Bytes> {
        None
    }
    /// Returns whether everything is settled at arrival. If so, `dequeue` reports nothing, and it
    /// returns every packet that `enqueue` has accepted: one per call while any are waiting,
    /// unmodified and in the order of arrival. A port can then compute, when a packet arrives, the
    /// time at which it will have been sent ([`crate::Port::arrive_ahead`]). [`crate::contract`]
    /// checks this for every discipline that declares it.
    fn settles_at_enqueue(&self) -> bool {
        false
    }
    /// Returns whether a packet of this length, if enqueued now and dequeued at the same instant,
    /// would come out unmodified, and the two calls would change nothing else and report nothing.
    /// This implies that no packet is waiting. A port with an idle link may then skip both calls.
    fn passes_at_once(&self, _size: Bytes) -> bool {
        false
    }
    /// Returns whether the discipline may hold packets back, so that `dequeue` returns none although some wait.
    /// Only shapers do, and disciplines that contain one.
    fn holds_back(&self) -> bool {
        false
    }
    /// Reserves room for as many waiting packets as the limit admits (but at most `packets`) and for the
    /// state of this many flows. This is for hosts that must not allocate once they are running. It does not
    /// change the results of other calls. Disciplines that keep neither packets nor flows need not implement
    /// it.
    fn reserve(&mut self, _packets: usize, _flows: usize) {}
    /// Visits each queue or group of queues that is directly inside this one, and passes its name. The set of
    /// both never changes: queues that come and go are kept in groups.
    fn each_inner(&self, _visit: &mut dyn FnMut(&str, Inside<'_, P>)) {}
    /// Appends the law's current values at `now`, which is not before the last call. The values include all
    /// updates due by then; the call does not affect the results of later calls.
    fn observe(&self, now: Instant, out: &mut LawSamples);
}
