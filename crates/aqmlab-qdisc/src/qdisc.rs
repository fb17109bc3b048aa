//! The central traits: what a discipline knows of a packet, to whom it reports each packet's fate, and what
//! it must be able to do.

use alloc::vec::Vec;

use aqmlab_units::{Bytes, Instant, Packets, Rate};

/// The ECN field of a packet (RFC 3168, section 5).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u8)]
pub enum Ecn {
    /// 00: not ECN-capable
    #[default]
    NotEct = 0,
    /// 01: ECN-capable, L4S (RFC 9331)
    Ect1 = 1,
    /// 10: ECN-capable, classic
    Ect0 = 2,
    /// 11: congestion experienced
    Ce = 3,
}

impl Ecn {
    /// Whether a queue may mark this packet instead of dropping it. True for ECT(0), ECT(1) and CE.
    pub const fn is_capable(self) -> bool {
        !matches!(self, Ecn::NotEct)
    }
}

/// Which end of a flow a hash is taken of.
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
    /// The greatest.
    pub const MAX: Dscp = Dscp(63);

    /// The names that code points have (RFC 2474, RFC 2597, RFC 3246, RFC 5865, RFC 8622).
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

    /// The code point called `name`.
    pub fn named(name: &str) -> Option<Dscp> {
        Dscp::NAMES.iter().find(|(known, _)| *known == name).map(|(_, dscp)| *dscp)
    }
}

/// What a discipline may know of a packet. The simulator implements it on a small struct, the router on a
/// frame.
pub trait Packet {
    /// Length at the network layer, headers included; a link adds its own overhead.
    fn wire_len(&self) -> Bytes;
    /// Hash of the 5-tuple (3-tuple for fragments and what is neither TCP nor UDP).
    fn flow_hash(&self, salt: u64) -> u64;
    /// Hash of one host's address.
    fn host_hash(&self, side: Side, salt: u64) -> u64;
    /// The ECN field.
    fn ecn(&self) -> Ecn;
    /// Sets the ECN field to CE; the host repairs checksums. Called only if [`Ecn::is_capable`].
    fn mark_ce(&mut self);
    /// The differentiated-services code point.
    fn dscp(&self) -> Dscp;
    /// Changes the differentiated-services code point.
    fn set_dscp(&mut self, dscp: Dscp);
    /// The ports of source and destination, if it has any and shows them (a fragment does not).
    fn ports(&self) -> Option<[u16; 2]> {
        None
    }
}

/// Why a packet was dropped or marked.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
#[non_exhaustive]
pub enum Reason {
    /// Chosen by the discipline's law: at random by its probability, or by its schedule.
    Early,
    /// Above the discipline's upper threshold, where every packet is notified (RED: avg beyond `max_th`), or every
    /// one of a flow that has more than it may (FRED).
    Forced,
    /// The buffer's limit was reached: tail drop.
    Overflow,
    /// Injected by a rule of the scenario or a test, not by a queue's own judgement.
    Injected,
}

impl Reason {
    /// All reasons, in the order of their numbers.
    pub const ALL: [Reason; 4] = [Reason::Early, Reason::Forced, Reason::Overflow, Reason::Injected];

    /// The word used in recordings.
    pub const fn name(self) -> &'static str {
        match self {
            Reason::Early => "early",
            Reason::Forced => "forced",
            Reason::Overflow => "overflow",
            Reason::Injected => "injected",
        }
    }
}

/// Why, and in which inner queue of a discipline that has several.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cause {
    /// Why.
    pub reason: Reason,
    /// The inner queue, by its place in the order of [`Qdisc::each_inner`], those within others after them, from 1 on;
    /// 0 where there is none, or where the packet has not come to one.
    pub inner: u16,
}

impl Cause {
    /// A cause in a discipline itself, and not in an inner queue.
    pub const fn of(reason: Reason) -> Self {
        Cause { reason, inner: 0 }
    }
}

/// Told what becomes of packets at a queue; receives the dropped ones by value, so that a router can recycle frames.
///
/// A discipline reports to its port what it drops and marks. A [`crate::Port`] enters that into its books and hands it on
/// to its own observer, the host's, which hears of every arrival and departure besides.
pub trait Observer<P> {
    /// `pkt` has come to the port, and the discipline has not yet decided on it. Disciplines do not call this.
    fn enqueued(&mut self, _now: Instant, _pkt: &P) {}
    /// `pkt` has left its queue, and its transmission begins. Disciplines do not call this.
    fn dequeued(&mut self, _now: Instant, _pkt: &P) {}
    /// `pkt` is lost. Called exactly once for each packet that enters and never leaves.
    fn dropped(&mut self, now: Instant, pkt: P, at: Cause);
    /// `pkt` now carries CE and did not before. It goes on.
    fn marked(&mut self, now: Instant, pkt: &P, at: Cause);
    /// `pkt` comes to an inner queue, by the number of [`Cause::inner`]. It is queued there, or its fate is reported.
    fn entered(&mut self, _now: Instant, _pkt: &P, _inner: u16) {}
    /// `pkt` leaves an inner queue, and is not lost.
    fn left(&mut self, _now: Instant, _pkt: &P, _inner: u16) {}
}

/// What a queue holds: waiting packets, without the one in transmission.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Backlog {
    /// Waiting packets.
    pub packets: Packets,
    /// Their bytes.
    pub bytes: Bytes,
}

/// Named law values, for plots: `("avg", 12.3)`, `("p", 0.02)`.
pub type LawSamples = Vec<(&'static str, f64)>;

/// Decides which packet leaves next, which are marked and which are lost.
///
/// # Contract
/// 1. *Conservation*, in packets and bytes: arrived = left + dropped + backlog, after every call.
/// 2. *Order of time*: `now` never goes back between calls; equal is normal.
/// 3. *Liveness*: if `dequeue(now)` gives `None` while the backlog is not empty, `deadline()` is some
///    instant after `now`.
/// 4. *One meaning of deadline*: an absolute instant, "call `dequeue` then, or as soon after as you can".
/// 5. *Catching up*: there is no tick. Between two calls the backlog is constant, so a law with a sampling
///    period catches up at the next call, with the state it would have had if woken at every sampling
///    instant; an update due at t comes before the packet of t.
/// 6. *Bounded*: work per call is bounded by a documented constant, or by the drops it reports.
/// 7. *Replay*: same calls, same stream, same outcome. CE only on ECT; the limit is never exceeded; work
///    conserving unless a shaper; settled at enqueue if it says so ([`Qdisc::settles_at_enqueue`]).
///
/// [`crate::contract`] checks all seven for whatever is registered.
pub trait Qdisc<P: Packet> {
    /// `pkt` arrives. It is queued, or some packet (not necessarily this one) goes to `obs`.
    fn enqueue(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>);
    /// The link can take a packet: the next one, if one may leave.
    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<P>;
    /// Shapers only: when a held packet may become releasable.
    fn deadline(&self) -> Option<Instant>;
    /// The link behind this queue changed its rate.
    fn rate_changed(&mut self, now: Instant, rate: Rate);
    /// What is queued now.
    fn backlog(&self) -> Backlog;
    /// The length of the packet that leaves next, unless it is lost on leaving; `None` if nothing waits, or the queue cannot
    /// say. It may settle whose turn it is, and no more.
    fn next_len(&mut self) -> Option<Bytes> {
        None
    }
    /// Whether everything is settled at arrival. Then what `enqueue` has kept leaves in the order of arrival and as it is,
    /// one packet at each `dequeue` while any wait, nothing is reported from `dequeue`, and a port can tell at
    /// arrival when a packet will have been sent ([`crate::Port::arrive_ahead`]). [`crate::contract`] checks it of
    /// whatever says so.
    fn settles_at_enqueue(&self) -> bool {
        false
    }
    /// Whether a packet of this length that came now would leave by a `dequeue` of the same instant as it is, and nothing
    /// would be changed or reported by either call. A port with an idle link may then do without both. Nothing waits then.
    fn passes_at_once(&self, _size: Bytes) -> bool {
        false
    }
    /// Makes room at once for as many waiting packets as the limit lets in, `packets` at most, and for the state of so many
    /// flows, for hosts that must not allocate once they run. It changes nothing that other calls return; what keeps
    /// neither packets nor flows has nothing to do.
    fn reserve(&mut self, _packets: usize, _flows: usize) {}
    /// Shows each queue inside this one with its name, but not those inside of them. Which there are never changes.
    fn each_inner(&self, _visit: &mut dyn FnMut(&str, &dyn Qdisc<P>)) {}
    /// Appends the law's current values as of `now` (which is not before the last call's): caught up, but
    /// without changing what later calls return.
    fn observe(&self, now: Instant, out: &mut LawSamples);
}
