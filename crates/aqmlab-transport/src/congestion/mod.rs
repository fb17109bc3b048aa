//! Congestion control: how much may be in flight.
//!
//! There are three parts. The [`Window`] is what every control determines, in segments; it includes the rules
//! that all controls share: the base of a reduction, the minimum window after a reduction, and the window
//! after a pause. A [`Control`] is an algorithm: it is called for each acknowledgment, a second time if that
//! acknowledgment may open the window, and for each congestion signal. An [`Algorithm`] is the control that
//! the profile names. No control knows which segment is missing, how much of the outstanding data has left
//! the network, or how far the window is inflated for that data; [`crate::recovery`] keeps track of these.
//!
//! Adding a control takes a file next to [`reno`], a word in the profile and a variant of [`ControlState`].
//! Any state other than the window is kept in [`Memory`], so that flows that do not use the control
//! take no more memory. A control that [uses rate samples](Congestion::samples_rates) hears a [`Sample`] of each
//! acknowledgment; it alone determines the window, and the [`Pacing`] of segments.

mod bbr;
mod counted;
mod cubic;
mod dctcp;
mod hystart;
mod hystart_plus_plus;
mod model;
mod prague;
mod reno;
mod window;

use alloc::boxed::Box;

use aqmlab_units::{Instant, Span};

pub use model::PathModel;
pub(crate) use reno::Reno;
pub(crate) use window::{Ack, AckReport, Lost, Outstanding, Pacing, Pause, Repair, Sample, Sign, Window};

use crate::controller::{Controller, Foreign};
use crate::profile::{Congestion, CubicGrowth, Profile, SlowStartExit};
use bbr::{v1, v3};
use counted::Counted;
use cubic::Cubic;
use dctcp::Dctcp;
use hystart::HyStart;
use hystart_plus_plus::HyStartPlusPlus;
use prague::Prague;
use window::{Control, Cut};

/// State that a control keeps in addition to the window; Reno keeps none.
#[derive(Clone, PartialEq, Default, Debug)]
pub(crate) struct Memory(Option<Box<Remembered>>);

/// The memory of a control that needs one.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Remembered {
    now: ControlState,
    /// The state before the latest reduction that may prove unnecessary.
    before: ControlState,
    exit: Option<Exit>,
}

/// The state of whichever control is in use.
#[derive(Clone, PartialEq, Debug)]
enum ControlState {
    Reno(Reno),
    Cubic(Cubic),
    Counted(Counted),
    Dctcp(Dctcp),
    /// Apart, so that the memories of other controls do not grow.
    Bbr(Box<v1::Bbr>),
    Bbr3(Box<v3::Bbr>),
    /// Likewise.
    Prague(Box<Prague>),
    /// Another author's, which the endpoint calls directly.
    Foreign(Foreign),
}

/// A rule that may end slow start early, with its state.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Exit {
    HyStart(HyStart),
    PlusPlus(HyStartPlusPlus),
}

impl Remembered {
    #[cold]
    #[inline(never)]
    fn new(profile: &Profile) -> Box<Self> {
        let now = match (profile.congestion, profile.cubic_growth) {
            // No endpoint is ever created with a control that only kernels have.
            (Some(Congestion::Reno) | None, _) => ControlState::Reno(Reno),
            (Some(Congestion::Dctcp), _) => ControlState::Dctcp(Dctcp::default()),
            (Some(Congestion::Bbr), _) => ControlState::Bbr(v1::Bbr::new()),
            (Some(Congestion::Bbr3), _) => ControlState::Bbr3(v3::Bbr::new()),
            (Some(Congestion::Prague), _) => ControlState::Prague(Box::new(Prague::new())),
            (Some(Congestion::Cubic), CubicGrowth::Rfc9438) => ControlState::Cubic(Cubic::default()),
            (Some(Congestion::Cubic), CubicGrowth::Linux) => ControlState::Counted(Counted::default()),
        };
        let exit = match profile.slow_start_exit {
            SlowStartExit::Nothing => None,
            SlowStartExit::Hystart => Some(Exit::HyStart(HyStart::default())),
            SlowStartExit::HystartPlusPlus => Some(Exit::PlusPlus(HyStartPlusPlus::default())),
        };
        let before = if profile.samples() { ControlState::Reno(Reno) } else { now.clone() };
        Box::new(Remembered { now, before, exit })
    }
}

impl Memory {
    pub(crate) const fn none() -> Self {
        Memory(None)
    }

    /// Records that sending restarts after a pause.
    pub(crate) fn resumed(&mut self, pause: Pause, window: &mut Window, profile: &Profile) {
        if let Some(memory) = self.0.as_deref_mut() {
            memory.now.resumed(pause, window, profile);
        }
    }

    /// Puts another author's controller in the place of the profile's.
    pub(crate) fn replace(&mut self, controller: Box<dyn Controller>) {
        let now = ControlState::Foreign(Foreign::new(controller));
        self.0 = Some(Box::new(Remembered { now, before: ControlState::Reno(Reno), exit: None }));
    }

    /// Returns another author's controller, if there is one.
    #[inline]
    pub(crate) fn foreign(&mut self) -> Option<&mut dyn Controller> {
        match &mut self.0.as_deref_mut()?.now {
            ControlState::Foreign(controller) => Some(controller.get_mut()),
            _ => None,
        }
    }

    /// Creates the memory of a control that makes draws, with this seed.
    pub(crate) fn set_seed(&mut self, seed: u64, profile: &Profile) {
        self.of(profile).now.set_seed(seed);
    }

    /// Records whether the other side reports how many segments are marked.
    pub(crate) fn set_feedback(&mut self, accurate: bool, profile: &Profile) {
        self.of(profile).now.set_feedback(accurate);
    }

    /// Records that the connection is established.
    pub(crate) fn established(
        &mut self,
        now: Instant,
        window: &Window,
        srtt: Option<Span>,
        profile: &Profile,
    ) {
        self.of(profile).now.established(now, window, srtt, profile);
    }

    /// Processes a rate sample. Returns whether what is in flight counts as limited by the application.
    pub(crate) fn on_sample(&mut self, window: &mut Window, sample: &Sample, profile: &Profile) -> bool {
        self.of(profile).now.on_sample(window, sample, profile)
    }

    /// Processes losses that the timer has found.
    pub(crate) fn on_losses(
        &mut self,
        now: Instant,
        window: &mut Window,
        losses: &[Lost],
        profile: &Profile,
    ) {
        self.of(profile).now.on_losses(now, window, losses, profile);
    }

    /// Returns what the control knows about the path.
    pub(crate) fn model(&self) -> Option<PathModel> {
        self.0.as_deref().and_then(|memory| memory.now.model())
    }

    /// Returns how fast segments may leave, if the control determines it.
    pub(crate) fn pacing(&self, profile: &Profile) -> Option<Pacing> {
        self.0.as_deref().and_then(|memory| memory.now.pacing(profile))
    }

    fn of(&mut self, profile: &Profile) -> &mut Remembered {
        self.0.get_or_insert_with(|| Remembered::new(profile))
    }

    /// Processes new data acknowledged during the current stage of congestion avoidance. Returns false, and
    /// does nothing, if the control knows no such stage, or the window is in slow start.
    #[inline(always)]
    pub(crate) fn continue_stage(&mut self, window: &mut Window, ack: &Ack, profile: &Profile) -> bool {
        match self.0.as_deref_mut() {
            Some(memory) if !window.is_below_ssthresh() => memory.now.continue_stage(window, ack, profile),
            _ => false,
        }
    }

    /// Saves the state before a reduction that may prove unnecessary.
    pub(crate) fn remember(&mut self, profile: &Profile) {
        if let Some(memory) = self.0.as_deref_mut().filter(|_| !profile.samples()) {
            memory.before = memory.now.clone();
        }
    }

    /// Undoes an unnecessary reduction.
    pub(crate) fn restore(&mut self, delivered: u64, window: &mut Window) {
        if let Some(memory) = &mut self.0
            && memory.now.undone(delivered, window)
        {
            memory.now = memory.before.clone();
        }
    }
}

impl Congestion {
    /// All algorithms.
    pub const ALL: [Congestion; 6] = [
        Congestion::Reno,
        Congestion::Cubic,
        Congestion::Dctcp,
        Congestion::Bbr,
        Congestion::Bbr3,
        Congestion::Prague,
    ];

    /// Returns whether the algorithm uses rate samples and determines a pacing rate.
    pub const fn samples_rates(self) -> bool {
        matches!(self, Congestion::Bbr | Congestion::Bbr3)
    }

    /// Returns whether samples are taken as in draft-ietf-ccwg-bbr rather than as in Linux: the algorithm hears of
    /// each lost segment, and whether the application limits the flow is also judged with each acknowledgment.
    pub const fn follows_draft(self) -> bool {
        matches!(self, Congestion::Bbr3)
    }

    /// Returns whether the algorithm itself decides how marks change the window.
    pub const fn answers_marks(self) -> bool {
        matches!(self, Congestion::Prague)
    }

    /// Returns the version of the algorithm, which is incremented whenever a change to it changes a
    /// result.
    pub const fn version(self) -> u32 {
        match self {
            Congestion::Reno => reno::VERSION,
            Congestion::Cubic => cubic::VERSION,
            Congestion::Dctcp => dctcp::VERSION,
            Congestion::Bbr => v1::VERSION,
            Congestion::Bbr3 => v3::VERSION,
            Congestion::Prague => prague::VERSION,
        }
    }
}

/// The control that a profile names, with its memory.
pub(crate) enum Algorithm<'m> {
    Reno(Reno),
    ControlState(&'m mut Remembered),
}

impl<'m> Algorithm<'m> {
    /// Returns the control that `profile` names; if the control needs a memory, `memory` provides
    /// it.
    #[inline(always)]
    pub(crate) fn of(profile: &Profile, memory: impl FnOnce() -> &'m mut Memory) -> Self {
        if profile.remembers() { Algorithm::kept(profile, memory()) } else { Algorithm::Reno(Reno) }
    }

    /// Does the same as `of`, for a control that [has a memory](Profile::remembers).
    #[inline(always)]
    pub(crate) fn kept(profile: &Profile, memory: &'m mut Memory) -> Self {
        Algorithm::ControlState(memory.of(profile))
    }
}

/// Calls a method of whichever control is in use.
macro_rules! of_control {
    ($state:expr, $control:ident => $call:expr) => {
        match $state {
            ControlState::Reno($control) => $call,
            ControlState::Cubic($control) => $call,
            ControlState::Counted($control) => $call,
            ControlState::Dctcp($control) => $call,
            ControlState::Bbr($control) => $call,
            ControlState::Bbr3($control) => $call,
            ControlState::Prague($control) => $call,
            ControlState::Foreign($control) => $call,
        }
    };
}

/// The endpoint calls the controller itself, so nothing is left to do here.
impl Control for Foreign {
    fn slow_start(&mut self, _window: &mut Window, _ack: &Ack, _profile: &Profile) {}

    fn avoid(&mut self, _window: &mut Window, _ack: &Ack, _profile: &Profile) {}

    fn congestion(&mut self, _sign: Sign, window: &Window, _profile: &Profile) -> Cut {
        Cut { share: 1.0, least: 1.0, left: Some(window.cwnd()) }
    }
}

impl Control for ControlState {
    fn on_report(&mut self, window: &mut Window, report: &AckReport, profile: &Profile) {
        of_control!(self, control => control.on_report(window, report, profile));
    }

    fn slow_start(&mut self, window: &mut Window, ack: &Ack, profile: &Profile) {
        of_control!(self, control => control.slow_start(window, ack, profile));
    }

    #[inline(always)]
    fn continue_stage(&mut self, window: &mut Window, ack: &Ack, profile: &Profile) -> bool {
        of_control!(self, control => control.continue_stage(window, ack, profile))
    }

    fn avoid(&mut self, window: &mut Window, ack: &Ack, profile: &Profile) {
        of_control!(self, control => control.avoid(window, ack, profile));
    }

    fn congestion(&mut self, sign: Sign, window: &Window, profile: &Profile) -> Cut {
        of_control!(self, control => control.congestion(sign, window, profile))
    }

    fn resumed(&mut self, pause: Pause, window: &mut Window, profile: &Profile) {
        of_control!(self, control => control.resumed(pause, window, profile));
    }

    fn undone(&mut self, delivered: u64, window: &mut Window) -> bool {
        of_control!(self, control => control.undone(delivered, window))
    }

    fn established(&mut self, now: Instant, window: &Window, srtt: Option<Span>, profile: &Profile) {
        of_control!(self, control => control.established(now, window, srtt, profile));
    }

    fn set_feedback(&mut self, accurate: bool) {
        of_control!(self, control => control.set_feedback(accurate));
    }

    fn set_seed(&mut self, seed: u64) {
        of_control!(self, control => control.set_seed(seed));
    }

    fn on_sample(&mut self, window: &mut Window, sample: &Sample, profile: &Profile) -> bool {
        of_control!(self, control => control.on_sample(window, sample, profile))
    }

    fn on_losses(&mut self, now: Instant, window: &mut Window, losses: &[Lost], profile: &Profile) {
        of_control!(self, control => control.on_losses(now, window, losses, profile));
    }

    fn model(&self) -> Option<PathModel> {
        of_control!(self, control => control.model())
    }

    fn pacing(&self, profile: &Profile) -> Option<Pacing> {
        of_control!(self, control => control.pacing(profile))
    }
}

impl Control for Remembered {
    fn on_report(&mut self, window: &mut Window, report: &AckReport, profile: &Profile) {
        self.now.on_report(window, report, profile);
        match &mut self.exit {
            None => {}
            Some(Exit::HyStart(exit)) => exit.on_report(window, report, profile),
            Some(Exit::PlusPlus(exit)) => exit.on_report(window, report),
        }
    }

    fn slow_start(&mut self, window: &mut Window, ack: &Ack, profile: &Profile) {
        let before = window.cwnd();
        self.now.slow_start(window, ack, profile);
        if let Some(Exit::PlusPlus(exit)) = &self.exit {
            window.slow_growth(before, exit.share());
        }
    }

    fn avoid(&mut self, window: &mut Window, ack: &Ack, profile: &Profile) {
        self.now.avoid(window, ack, profile);
    }

    fn congestion(&mut self, sign: Sign, window: &Window, profile: &Profile) -> Cut {
        match &mut self.exit {
            Some(Exit::HyStart(exit)) if matches!(sign, Sign::Timeout { .. }) => exit.timed_out(),
            Some(Exit::PlusPlus(exit)) => exit.congestion(),
            _ => {}
        }
        self.now.congestion(sign, window, profile)
    }
}

impl Control for Algorithm<'_> {
    #[inline(always)]
    fn on_report(&mut self, window: &mut Window, report: &AckReport, profile: &Profile) {
        match self {
            Algorithm::Reno(reno) => reno.on_report(window, report, profile),
            Algorithm::ControlState(memory) => memory.on_report(window, report, profile),
        }
    }

    #[inline(always)]
    fn slow_start(&mut self, window: &mut Window, ack: &Ack, profile: &Profile) {
        match self {
            Algorithm::Reno(reno) => reno.slow_start(window, ack, profile),
            Algorithm::ControlState(memory) => memory.slow_start(window, ack, profile),
        }
    }

    #[inline(always)]
    fn avoid(&mut self, window: &mut Window, ack: &Ack, profile: &Profile) {
        match self {
            Algorithm::Reno(reno) => reno.avoid(window, ack, profile),
            Algorithm::ControlState(memory) => memory.avoid(window, ack, profile),
        }
    }

    #[inline(always)]
    fn congestion(&mut self, sign: Sign, window: &Window, profile: &Profile) -> Cut {
        match self {
            Algorithm::Reno(reno) => reno.congestion(sign, window, profile),
            Algorithm::ControlState(memory) => memory.congestion(sign, window, profile),
        }
    }
}
