//! Rarely used state, separate from the state that every segment needs.

use alloc::boxed::Box;

use crate::congestion::Memory;
use crate::counters::Incidents;
use crate::loss_window::LossWindow;
use crate::quick::Quick;
use crate::reassembly::Beyond;
use crate::recovery::{Machine, Scoreboard, Tracking};

/// Memory of losses, marks and timeouts, in both halves of an endpoint.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Trouble {
    pub recovery: Machine,
    /// The data beyond a hole; `None` until the first hole, then reused for later ones.
    pub beyond: Option<Box<Beyond>>,
    /// The data that the other side has received beyond a hole, with SACK; also kept for the next hole.
    pub board: Option<Box<Scoreboard>>,
    /// All outstanding segments, if each is tracked.
    pub tracking: Option<Box<Tracking>>,
    /// When data in order is acknowledged, if more than a count determines it.
    pub quick: Option<Box<Quick>>,
    /// The memory of the congestion control.
    pub control: Memory,
    pub counts: Incidents,
    pub loss_window: LossWindow,
    /// Timeouts without new data acknowledged in between; valid while
    /// [`RtoTimer::has_fired`](crate::rto::RtoTimer::has_fired).
    pub timeouts_in_a_row: u32,
    /// The number of the duplicate ACK for which limited transmit is due.
    pub limited: u8,
}

const _: () =
    assert!(size_of::<Trouble>() <= 152, "the state kept after losses has grown for every flow with losses");

impl Trouble {
    const fn none() -> Self {
        Trouble {
            recovery: Machine::new(),
            beyond: None,
            board: None,
            tracking: None,
            quick: None,
            control: Memory::none(),
            counts: Incidents::none(),
            loss_window: LossWindow::none(),
            timeouts_in_a_row: 0,
            limited: 0,
        }
    }
}

/// The state of an endpoint without losses.
static NONE: Trouble = Trouble::none();

/// An endpoint's [`Trouble`], created at the first loss, mark or timeout: most short flows never have one.
#[derive(Clone, PartialEq, Default, Debug)]
pub(crate) struct Troubles(Option<Box<Trouble>>);

impl Troubles {
    pub(crate) const fn new() -> Self {
        Troubles(None)
    }

    /// The history of losses so far.
    #[inline]
    pub(crate) fn get(&self) -> &Trouble {
        self.0.as_deref().unwrap_or(&NONE)
    }

    /// The history of losses so far, if there is one, with mutable access.
    #[inline]
    pub(crate) fn get_mut(&mut self) -> Option<&mut Trouble> {
        self.0.as_deref_mut()
    }

    /// All outstanding segments, if each is tracked.
    #[inline]
    pub(crate) fn tracking(&self) -> Option<&Tracking> {
        self.0.as_deref()?.tracking.as_deref()
    }

    /// The same, with mutable access.
    #[inline]
    pub(crate) fn tracking_mut(&mut self) -> Option<&mut Tracking> {
        self.0.as_deref_mut()?.tracking.as_deref_mut()
    }

    /// The history of losses so far, created if necessary, with mutable access.
    #[cold]
    pub(crate) fn note(&mut self) -> &mut Trouble {
        self.0.get_or_insert_with(|| Box::new(Trouble::none()))
    }
}
