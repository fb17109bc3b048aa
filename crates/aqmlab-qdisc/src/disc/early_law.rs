//! A law that decides on individual packets, and the rules of a queue under such a law.

use aqmlab_units::{Bytes, Instant, Rate, Span};

use crate::info::Decides;
use crate::law::Decision;
use crate::{Backlog, Ecn, LawSamples, Limit};

/// A law that decides on individual packets. Every law *sees* all arrivals and departures. It
/// *decides* only at arrivals, only at departures, or at both, as [`EarlyLaw::decides`] returns.
///
/// Whenever the queue is called, it first calls [`EarlyLaw::catch_up`], so the other methods see a
/// law that is up to date. Each decision has its own draw, a number in [0, 1) that `draw` returns,
/// whether or not the law uses it.
///
/// A port may look ahead unless the law decides at departures or names victims. A port that looks ahead still
/// reports each departure at the instant of that departure, so the law sees no difference.
pub trait EarlyLaw {
    /// The occasions (arrivals, departures or both) on which laws of this type may decide, whatever
    /// their parameters.
    const DECIDES: Decides = Decides::Enqueue;

    /// Returns the occasions on which this law decides, given its parameters. The result never
    /// changes.
    #[inline(always)]
    fn decides(&self) -> Decides {
        Self::DECIDES
    }

    /// Performs all updates that are due up to and including `now`. `backlog` has been constant since the
    /// last call.
    #[inline(always)]
    fn catch_up(&mut self, _now: Instant, _backlog: Backlog) {}

    /// Records that a packet of `size` arrives and finds `backlog` waiting, whether or not there is
    /// room for the packet.
    #[inline(always)]
    fn on_arrival(&mut self, _now: Instant, _backlog: Backlog, _size: Bytes) {}

    /// Decides on the packet that [`EarlyLaw::on_arrival`] has just seen, even if there is no room for it.
    #[inline(always)]
    fn decide_at_arrival(
        &mut self,
        _now: Instant,
        _backlog: Backlog,
        _size: Bytes,
        _draw: impl FnOnce() -> f64,
    ) -> Decision {
        Decision::Admit
    }

    /// Records that a packet is lost because there is no room for the arrival.
    #[inline(always)]
    fn on_overflow(&mut self, _now: Instant) {}

    /// Returns whether [`EarlyLaw::victim`] may name a packet other than the arrival. The result never
    /// changes; if it is true, the limit must be in packets.
    #[inline(always)]
    fn evicts(&self) -> bool {
        false
    }

    /// Returns which packet is lost for lack of room: a position among the `waiting` packets, 0 being the
    /// oldest, or `waiting` itself for the arrival.
    #[inline(always)]
    fn victim(&mut self, waiting: usize) -> usize {
        waiting
    }

    /// Records that a packet chosen by the law is dropped, not marked.
    #[inline(always)]
    fn on_early_drop(&mut self, _now: Instant) {}

    /// Records that the link polled the empty queue.
    #[inline(always)]
    fn on_idle(&mut self, _now: Instant) {}

    /// Decides on a packet that is about to leave. A packet that the law chooses but that cannot be
    /// marked is dropped ([`EarlyLaw::on_early_drop`]), and the next one is judged at the same
    /// instant.
    #[inline(always)]
    fn decide_at_departure(&mut self, _now: Instant, _pkt: Leaving, _draw: impl FnOnce() -> f64) -> Decision {
        Decision::Admit
    }

    /// Returns whether a packet with this ECN field, which [`EarlyLaw::decide_at_departure`] has admitted, is
    /// marked as it leaves if it is ECN-capable, with ECN on or off.
    #[inline(always)]
    fn marks_admitted(&self, _now: Instant, _pkt: Leaving, _ecn: Ecn) -> bool {
        false
    }

    /// Returns whether the law, in an empty queue, will decide as a new one would from `now` on. A law that does
    /// not know says no.
    #[inline(always)]
    fn is_as_new(&self, _now: Instant) -> bool {
        false
    }

    /// Records that a packet leaves for the link.
    #[inline(always)]
    fn on_departure(&mut self, _now: Instant, _pkt: Leaving) {}

    /// Changes the link's rate.
    fn rate_changed(&mut self, _now: Instant, _rate: Rate) {}

    /// Appends the law's values at `now`, given the `backlog`, which has been constant since the last call.
    fn observe(&self, now: Instant, backlog: Backlog, out: &mut LawSamples);
}

/// The properties of a leaving packet that a law sees.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Leaving {
    /// Its length.
    pub size: Bytes,
    /// Its ECN field.
    pub ecn: Ecn,
    /// Its waiting time.
    pub sojourn: Span,
    /// The backlog behind it.
    pub backlog: Backlog,
}

/// The parameters of the queue other than those of its law.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct EarlyQueue {
    /// Buffer limit.
    pub limit: Limit,
    /// Whether ECN-capable packets are marked instead of dropped if the law allows it.
    pub ecn: bool,
    /// Whether the loss of a packet that finds the buffer full counts as an overflow even if the
    /// law has chosen the packet.
    pub overflow_first: bool,
    /// Whether a chosen packet that is not ECN-capable passes untouched.
    pub spares_not_ect: bool,
}
