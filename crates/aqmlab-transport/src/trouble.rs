//! Rarely used state, kept apart from the state that every segment needs.

use alloc::boxed::Box;

use crate::congestion::Memory;
use crate::counters::Incidents;
use crate::ecn::AccEcn;
use crate::loss_window::LossWindow;
use crate::packets::Packets;
use crate::quick::Quick;
use crate::reassembly::Beyond;
use crate::recovery::{Machine, Scoreboard, Tracking};
use crate::rto::Clock;
use crate::stamps::Stamps;

/// What both halves of an endpoint remember about losses, marks and timeouts.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Trouble {
    pub recovery: Machine,
    /// The data beyond a hole; `None` until the first hole, and reused for later holes.
    pub beyond: Option<Box<Beyond>>,
    /// With SACK, the data that the other side has received beyond a hole; also reused for later
    /// holes.
    pub board: Option<Box<Scoreboard>>,
    /// The tracking state, which holds all outstanding segments; `None` unless this sender tracks
    /// segments individually.
    pub tracking: Option<Box<Tracking>>,
    /// The packets sent and received; `None` unless each transmission has a number of its own.
    pub packets: Option<Box<Packets>>,
    /// The state that decides when in-order data is acknowledged; `None` while a count of segments
    /// alone decides this.
    pub quick: Option<Box<Quick>>,
    /// The state of AccECN; `None` unless both sides have agreed on it.
    pub accurate: Option<Box<AccEcn>>,
    /// The memory of the congestion control.
    pub control: Memory,
    pub counts: Incidents,
    pub loss_window: LossWindow,
    /// TS.Recent of RFC 7323, section 4.3, while the receiver is to echo it.
    pub recent: u32,
    /// The Timestamps option of the latest segment whose option says something.
    pub stamps: Stamps,
    /// The endpoint's clock with the ns-2 arithmetic.
    pub clock: Clock,
}

const _: () =
    assert!(size_of::<Trouble>() <= 184, "`Trouble` exceeds 184 bytes; every flow with losses keeps one");

impl Trouble {
    const fn none() -> Self {
        Trouble {
            recovery: Machine::new(),
            beyond: None,
            board: None,
            tracking: None,
            packets: None,
            quick: None,
            accurate: None,
            control: Memory::none(),
            counts: Incidents::none(),
            loss_window: LossWindow::none(),
            recent: 0,
            stamps: Stamps::NONE,
            clock: Clock::OF_CLASS,
        }
    }
}

/// The state of an endpoint that has not seen any losses.
static NONE: Trouble = Trouble::none();

/// An endpoint's [`Trouble`], created at the first loss, mark or timeout, so most short flows never
/// have one.
#[derive(Clone, PartialEq, Default, Debug)]
pub(crate) struct Troubles(Option<Box<Trouble>>);

impl Troubles {
    pub(crate) const fn new() -> Self {
        Troubles(None)
    }

    /// Returns the history of losses so far.
    #[inline]
    pub(crate) fn get(&self) -> &Trouble {
        self.0.as_deref().unwrap_or(&NONE)
    }

    /// Returns the history of losses so far, if there is one, for modification.
    #[inline]
    pub(crate) fn get_mut(&mut self) -> Option<&mut Trouble> {
        self.0.as_deref_mut()
    }

    /// Returns the tracking state, which holds all outstanding segments; `None` unless this sender
    /// tracks segments individually.
    #[inline]
    pub(crate) fn tracking(&self) -> Option<&Tracking> {
        self.0.as_deref()?.tracking.as_deref()
    }

    /// Returns the tracking state, if there is one, for modification.
    #[inline]
    pub(crate) fn tracking_mut(&mut self) -> Option<&mut Tracking> {
        self.0.as_deref_mut()?.tracking.as_deref_mut()
    }

    /// Returns the history of losses so far for modification, and creates it if necessary.
    #[cold]
    pub(crate) fn note(&mut self) -> &mut Trouble {
        self.0.get_or_insert_with(nothing_yet)
    }

    /// Returns the memory of the congestion control, for modification.
    #[inline]
    pub(crate) fn control(&mut self) -> &mut Memory {
        &mut self.0.get_or_insert_with(nothing_yet).control
    }
}

#[cold]
#[inline(never)]
fn nothing_yet() -> Box<Trouble> {
    Box::new(Trouble::none())
}
