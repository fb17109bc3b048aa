//! Congestion control: how much may be in flight.
//!
//! Three parts. The [`Window`] is what all controls answer with, in segments, and the rules that they share: what
//! a reduction is taken from, how little may remain, what a pause leaves. A [`Control`] is an algorithm: it hears
//! of each acknowledgment that may open the window and of each sign of congestion. [`Algorithm`] is the one that
//! the profile names. None of them knows sequence numbers: which segment is missing, how much of what is
//! outstanding has left the network, and the inflation that goes with it are the business of [`crate::recovery`].
//!
//! A further control is a file beside [`reno`], a word in the profile and a variant of [`Algorithm`]. What it
//! remembers besides the window lies in [`Memory`], so that flows without it are no larger. Nothing paces segments
//! yet, so no control can ask for it: a rate would be one more answer of [`Control`].

mod cubic;
mod reno;
mod window;

use alloc::boxed::Box;

use aqmlab_units::{Instant, Span};

pub(crate) use window::{Outstanding, Window};

use crate::profile::{Congestion, Increase, Profile};
use cubic::Cubic;
use reno::Reno;

/// An acknowledgment of new data outside fast recovery, without an ECN echo.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Ack {
    pub now: Instant,
    /// Bytes of the stream that it acknowledges.
    pub bytes: u32,
    /// Bytes in flight before it.
    pub flight: u32,
    /// The smoothed round-trip time, once there is one.
    pub srtt: Option<Span>,
    /// Whether the latest reduction was a timeout's.
    pub after_timeout: bool,
}

impl Ack {
    /// Segments acknowledged, with their fraction.
    #[inline]
    fn segments(&self, profile: &Profile) -> f64 {
        f64::from(self.bytes) / f64::from(profile.mss)
    }

    /// Whether the window had room for another segment: the application or the other side's window was the limit.
    fn leaves_room(&self, window: &Window, profile: &Profile) -> bool {
        let usable = u64::from(window.cwnd() as u32) * u64::from(profile.mss);
        u64::from(self.flight) + u64::from(profile.mss) <= usable
    }
}

/// A sign of congestion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Sign {
    /// A fast retransmit that is the first sign in its window.
    Loss,
    /// An ECN echo, likewise.
    Mark,
    /// The retransmission timer has fired.
    Timeout {
        /// Whether this loss has lowered `ssthresh` already, which therefore stays.
        held: bool,
    },
}

/// What a reduction leaves.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Cut {
    /// This part of what was there.
    pub share: f64,
    /// And so many segments at least.
    pub least: f64,
}

/// An algorithm. It is asked for changes of the [`Window`], whose bounds others see to.
pub(crate) trait Control {
    /// New data is acknowledged and the window is below `ssthresh`.
    #[inline]
    fn slow_start(&mut self, window: &mut Window, ack: &Ack, profile: &Profile) {
        slow_start(window, ack, profile);
    }

    /// New data is acknowledged in congestion avoidance.
    fn avoid(&mut self, window: &mut Window, ack: &Ack, profile: &Profile);

    /// Congestion is found, and the window about to be reduced.
    fn congestion(&mut self, sign: Sign, window: &Window, profile: &Profile) -> Cut;
}

/// One segment for each that is acknowledged, within a limit for each acknowledgment.
#[inline]
fn slow_start(window: &mut Window, ack: &Ack, profile: &Profile) {
    let limit = match profile.increase {
        // RFC 5681, equation 2: min(N, SMSS)
        Increase::PerAck => 1,
        // RFC 3465, 2.3: L is 1 in the slow start that follows a timeout
        Increase::ByteCounting if ack.after_timeout => 1,
        Increase::ByteCounting => profile.abc_limit,
    };
    window.open(ack.segments(profile).min(f64::from(limit)));
}

/// What a control remembers besides the window; nothing for Reno.
#[derive(Clone, PartialEq, Default, Debug)]
pub(crate) struct Memory(Option<Box<Cubic>>);

impl Memory {
    pub(crate) const fn none() -> Self {
        Memory(None)
    }

    /// Nothing was outstanding, and sending begins anew at `now`.
    pub(crate) fn resumed(&mut self, now: Instant) {
        if let Some(cubic) = &mut self.0 {
            cubic.resumed(now);
        }
    }
}

/// The control that a profile names, with its memory.
pub(crate) enum Algorithm<'m> {
    Reno(Reno),
    Cubic(&'m mut Cubic),
}

impl<'m> Algorithm<'m> {
    /// That of `profile`, which finds its memory where `memory` says, if it has one.
    #[inline(always)]
    pub(crate) fn of(profile: &Profile, memory: impl FnOnce() -> &'m mut Memory) -> Self {
        match profile.congestion {
            Some(Congestion::Cubic) => Algorithm::Cubic(memory().0.get_or_insert_default()),
            // No endpoint is made with a control that only kernels have.
            Some(Congestion::Reno) | None => Algorithm::Reno(Reno),
        }
    }
}

impl Control for Algorithm<'_> {
    #[inline(always)]
    fn slow_start(&mut self, window: &mut Window, ack: &Ack, profile: &Profile) {
        match self {
            Algorithm::Reno(reno) => reno.slow_start(window, ack, profile),
            Algorithm::Cubic(cubic) => cubic.slow_start(window, ack, profile),
        }
    }

    #[inline(always)]
    fn avoid(&mut self, window: &mut Window, ack: &Ack, profile: &Profile) {
        match self {
            Algorithm::Reno(reno) => reno.avoid(window, ack, profile),
            Algorithm::Cubic(cubic) => cubic.avoid(window, ack, profile),
        }
    }

    #[inline(always)]
    fn congestion(&mut self, sign: Sign, window: &Window, profile: &Profile) -> Cut {
        match self {
            Algorithm::Reno(reno) => reno.congestion(sign, window, profile),
            Algorithm::Cubic(cubic) => cubic.congestion(sign, window, profile),
        }
    }
}
