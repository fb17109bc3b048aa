//! The enum of all built-in disciplines.

use alloc::boxed::Box;

use aqmlab_units::{Instant, Rate};

use crate::disc::{Blue, Codel, DropTail, Fred, Pi, Red, RedPd, Rem};
use crate::{Arrived, Backlog, LawSamples, Observer, Packet, Qdisc};

/// Any discipline. The built-in ones are dispatched by `match`, so that a port's hot path has no indirect
/// call and no box; [`Discipline::Custom`] takes a user's own.
// A tag of its own is quicker to test than one hidden in a field of the largest variant.
#[repr(u8)]
#[non_exhaustive]
#[allow(
    clippy::large_enum_variant,
    reason = "one per port, on the hot path: a box would cost an indirection a packet"
)]
pub enum Discipline<P: Packet> {
    /// [`DropTail`]
    DropTail(DropTail<P>),
    /// [`Red`], with a fixed or an adaptive law
    Red(Red<P>),
    /// [`Blue`]
    Blue(Blue<P>),
    /// [`Codel`]
    Codel(Codel<P>),
    /// [`Fred`]
    Fred(Fred<P>),
    /// [`Pi`]
    Pi(Pi<P>),
    /// [`Rem`]
    Rem(Rem<P>),
    /// [`RedPd`]
    RedPd(RedPd<P>),
    /// Anything else.
    Custom(Box<dyn Qdisc<P> + Send>),
}

/// Does `$call` with the discipline inside, by its own type.
macro_rules! each {
    ($discipline:expr, $inner:ident => $call:expr) => {
        match $discipline {
            Discipline::DropTail($inner) => $call,
            Discipline::Red($inner) => $call,
            Discipline::Pi($inner) => $call,
            Discipline::Rem($inner) => $call,
            Discipline::Blue($inner) => $call,
            Discipline::Codel($inner) => $call,
            Discipline::Fred($inner) => $call,
            Discipline::RedPd($inner) => $call,
            Discipline::Custom($inner) => $call,
        }
    };
}

pub(crate) use each;

impl<P: Arrived> Qdisc<P> for Discipline<P> {
    #[inline(always)]
    fn enqueue(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) {
        each!(self, d => d.enqueue(now, pkt, obs))
    }
    #[inline(always)]
    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<P> {
        each!(self, d => d.dequeue(now, obs))
    }
    #[inline]
    fn deadline(&self) -> Option<Instant> {
        each!(self, d => d.deadline())
    }
    fn rate_changed(&mut self, now: Instant, rate: Rate) {
        each!(self, d => d.rate_changed(now, rate))
    }
    #[inline]
    fn backlog(&self) -> Backlog {
        each!(self, d => d.backlog())
    }
    fn settles_at_enqueue(&self) -> bool {
        each!(self, d => d.settles_at_enqueue())
    }
    fn reserve(&mut self, packets: usize, flows: usize) {
        each!(self, d => d.reserve(packets, flows));
    }
    fn observe(&self, now: Instant, out: &mut LawSamples) {
        each!(self, d => d.observe(now, out))
    }
}

/// A boxed discipline is one.
impl<P: Packet, Q: Qdisc<P> + ?Sized> Qdisc<P> for Box<Q> {
    fn enqueue(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) {
        (**self).enqueue(now, pkt, obs);
    }
    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<P> {
        (**self).dequeue(now, obs)
    }
    fn deadline(&self) -> Option<Instant> {
        (**self).deadline()
    }
    fn rate_changed(&mut self, now: Instant, rate: Rate) {
        (**self).rate_changed(now, rate);
    }
    fn backlog(&self) -> Backlog {
        (**self).backlog()
    }
    fn settles_at_enqueue(&self) -> bool {
        (**self).settles_at_enqueue()
    }
    fn reserve(&mut self, packets: usize, flows: usize) {
        (**self).reserve(packets, flows);
    }
    fn observe(&self, now: Instant, out: &mut LawSamples) {
        (**self).observe(now, out);
    }
}
