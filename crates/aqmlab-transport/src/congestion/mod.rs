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

use aqmlab_units::Instant;

pub(crate) use window::{Ack, Outstanding, Sign, Window};

use crate::profile::{Congestion, Profile};
use cubic::Cubic;
use reno::Reno;
use window::{Control, Cut};

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

impl Congestion {
    /// All of them.
    pub const ALL: [Congestion; 2] = [Congestion::Reno, Congestion::Cubic];

    /// Rises by one whenever the algorithm moves a result.
    pub const fn version(self) -> u32 {
        match self {
            Congestion::Reno => reno::VERSION,
            Congestion::Cubic => cubic::VERSION,
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
