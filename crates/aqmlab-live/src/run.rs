//! A live run: it takes a plan and a seed, and returns a recording with checks of its faithfulness.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use aqmlab_network::End;
use aqmlab_qdisc::{Registry, Stamped};
use aqmlab_recording::StoppedBy;
use aqmlab_recording::capture::PortCapture;
use aqmlab_scenario::{ClassPlan, Plan, Traffic, Wait};
use aqmlab_units::{Instant, Span};

use crate::addresses::HostId;
use crate::busiest::at_the_busiest;
use crate::calibration::Calibration;
use crate::capture;
use crate::data_plane::{Clock, DataPlane, DataPlaneControl, DataPlaneOutcome, DataPlaneSettings};
use crate::error::LiveError;
use crate::faithfulness::TimeScales;
use crate::feasible;
use crate::frame::LiveFrame;
use crate::host::{self, Attached, Hosts, Outside, ProgramSetup, Programs, Uplinks};
use crate::machine;
use crate::outcome::{LiveRun, Ran};
use crate::priority;
use crate::router::{FrameBudget, Router};
use crate::threads::spawn;
use crate::traffic::{Generator, Outcome, RunEnd};

/// Options of a live run that the plan does not contain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Runs even if the machine is too slow for the plan.
    pub force: bool,
    /// Requests real-time scheduling for the router; if this is not permitted, the run continues with
    /// ordinary scheduling.
    pub realtime: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options { force: false, realtime: true }
    }
}

/// Phase of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Hosts are created, and the machine is measured.
    Begin,
    /// Traffic flows.
    Run,
    /// Traffic has ended, and packets in flight are still arriving.
    Drain,
}

impl Phase {
    /// Returns the phase's name, for use by programs.
    pub const fn name(self) -> &'static str {
        match self {
            Phase::Begin => "begin",
            Phase::Run => "run",
            Phase::Drain => "drain",
        }
    }
}

/// Progress of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RunProgress {
    /// Its present phase.
    pub phase: Phase,
    /// Elapsed time of the run.
    pub done: Span,
    /// Duration of the run, if nothing ends it earlier.
    pub total: Span,
    /// Maximum lateness of a packet so far.
    pub lateness_max: Span,
}

/// The ratio of the limit on lateness to the time for which packets in a busy router wait so that
/// several can be written together. It is so large that most of the limit remains for the machine's
/// own delays.
const SHARE: u64 = 4;
/// Time for the threads to start before the run's clock starts.
const TO_GET_READY: Span = Span::ms(50);
/// The maximum drain time of a cancelled run.
const LONGEST_LAST_DRAIN: Span = Span::s(1);
/// Interval between checks of the run's progress and of its cancellation.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// The network counts as empty only after this many consecutive checks have found it empty, because a host
/// may still be about to answer.
const LOOKS_EMPTY: u32 = 2;
/// Number of checks from one report of progress to the next.
const LOOKS_PER_REPORT: u32 = 4;

/// Runs `plan` live with `seed` and the built-in disciplines. `cancel` ends the run early; the
/// results up to that moment are returned. The process must have a single thread, unless it may
/// create network namespaces without a user namespace.
///
/// # Errors
/// See [`LiveError`]. Even a run that fails leaves nothing behind on the machine: all namespaces,
/// interfaces and settings belong to the process.
pub fn live(
    plan: &Plan,
    seed: u64,
    options: &Options,
    progress: &mut dyn FnMut(&RunProgress),
    cancel: &AtomicBool,
) -> Result<LiveRun, LiveError> {
    live_with(plan, seed, options, &Registry::builtin(), progress, cancel)
}

/// Runs `plan` like [`live`], and also captures packets at the ports in `capture` and writes them
/// to a file, from the start of the run to the end of the drain. A file that cannot be written, for
/// example on a full disk, is abandoned, and the run continues without it; the recording's manifest
/// reports this as `live.capture_failure`.
///
/// # Errors
/// See [`live`]; the file is then incomplete.
pub fn live_captured(
    plan: &Plan,
    seed: u64,
    options: &Options,
    capture: PortCapture,
    progress: &mut dyn FnMut(&RunProgress),
    cancel: &AtomicBool,
) -> Result<LiveRun, LiveError> {
    run_live(plan, seed, options, &Registry::builtin(), Some(capture), None, progress, cancel)
}

/// Runs `plan` like [`live_captured`] or, without `capture`, like [`live`]; the programs of the plan, if it has
/// any, run as `programs` says.
///
/// # Errors
/// See [`live`]; also if a program cannot be started.
pub fn live_programs(
    plan: &Plan,
    seed: u64,
    options: &Options,
    capture: Option<PortCapture>,
    programs: ProgramSetup,
    progress: &mut dyn FnMut(&RunProgress),
    cancel: &AtomicBool,
) -> Result<LiveRun, LiveError> {
    run_live(plan, seed, options, &Registry::builtin(), capture, Some(programs), progress, cancel)
}

/// Runs `plan` like [`live`], but with the disciplines of `registry`.
///
/// # Errors
/// See [`live`].
pub fn live_with(
    plan: &Plan,
    seed: u64,
    options: &Options,
    registry: &Registry<Stamped<LiveFrame>>,
    progress: &mut dyn FnMut(&RunProgress),
    cancel: &AtomicBool,
) -> Result<LiveRun, LiveError> {
    run_live(plan, seed, options, registry, None, None, progress, cancel)
}

#[allow(clippy::too_many_arguments)] // the arguments of the public functions together
fn run_live(
    plan: &Plan,
    seed: u64,
    options: &Options,
    registry: &Registry<Stamped<LiveFrame>>,
    capture: Option<PortCapture>,
    programs: Option<ProgramSetup>,
    progress: &mut dyn FnMut(&RunProgress),
    cancel: &AtomicBool,
) -> Result<LiveRun, LiveError> {
    feasible::check(plan)?;
    if programs.is_none() && plan.classes.iter().any(|class| matches!(class.traffic, Traffic::Program(_))) {
        return Err(LiveError::Unsupported("it has programs, but no directory for what they write".into()));
    }
    plan.check_seed(seed).map_err(LiveError::Unsupported)?;
    let total = plan.stop.at;
    progress(&RunProgress { phase: Phase::Begin, done: Span::ZERO, total, lateness_max: Span::ZERO });
    let wires = host::open_wires(plan)?;
    let has_uplink = plan.classes.iter().any(ClassPlan::has_uplink);
    let outside = host::leave_host_namespace(|| has_uplink.then(Outside::begin).transpose())?;
    let mut calibration = Calibration::measure(plan.live.offload)?;
    let (hosts, devices) = host::set_up(plan, wires)?;
    let largest = hosts.stacks.iter().map(|stack| stack.mtu as usize).collect();
    let busiest = &*at_the_busiest(plan, seed);
    let budget = FrameBudget::of(busiest, largest)?;
    let mut router = Router::new(plan, seed, registry, &budget)?;
    let mut uplinks = Uplinks::default();
    for (class, _) in plan.classes.iter().enumerate().filter(|(_, class)| class.has_uplink()) {
        let id = HostId { class, side: End::Server };
        let (server, own) = (&hosts.of(id).namespace, hosts.addresses.of(id));
        uplinks.add(server, own, outside.as_ref().expect("there is an uplink"), router.hear(class))?;
    }
    let gather = TimeScales::of(busiest, router.least_round_trip()).limit().0.div(SHARE);
    if let Some(capacity) = &mut calibration.capacity {
        capacity.gather = gather;
        if !options.force {
            capacity.check(busiest)?;
        }
    }
    let mtu = hosts.stacks.iter().map(|stack| stack.mtu).max().unwrap_or_default();
    let mut kernels = Vec::new();
    for (kernel, path) in host::kernel_queues(plan, mtu, &hosts.home)? {
        router.connect(kernel.link, Box::new(path));
        kernels.push(kernel);
    }
    let writer = capture.map(|capture| capture::observe(&mut router, capture, &budget)).transpose()?;
    // In virtual time, no time passes while a thread spins.
    let virtual_time = calibration.in_virtual_time();
    let wait = if virtual_time { Wait::Epoll } else { plan.live.wait };
    let begun = Clock::start();
    let mut waits = || {
        progress(&RunProgress { phase: Phase::Begin, done: Span::ZERO, total, lateness_max: Span::ZERO });
        !cancel.load(Ordering::Relaxed)
    };
    let programs = match programs {
        Some(setup) => Programs::start(plan, seed, &hosts, setup, &mut waits)?,
        None => None,
    };
    let run = Run {
        plan,
        seed,
        options,
        hosts: &hosts,
        programs: programs.as_ref(),
        wait,
        gather,
        virtual_time,
        cancel,
    };
    let (data_plane, mut traffic) = run.run(router, devices, progress)?;
    let programs = programs.map_or(Ok(Vec::new()), Programs::finish)?;
    drop(uplinks);
    let DataPlaneOutcome { router: record, report, devices } = data_plane;
    let counters = hosts.counters(&devices)?;
    let kernels = host::look_at_queues(kernels, &hosts.home)?;
    // The sockets have stayed open until now, so that packets in flight would find a receiver.
    traffic.still_open.clear();
    let wall = begun.now().saturating_since(Instant::ZERO);
    // A capture that could not be written is reported with the measurements, and has no other effect.
    let captured = writer.map(|writer| writer.finish(record.t1));
    let hosts = &hosts;
    Ok(Ran {
        plan,
        busiest,
        seed,
        hosts,
        calibration,
        wait,
        record,
        report,
        traffic,
        programs,
        counters,
        kernels,
        captured,
        wall,
    }
    .settle())
}

/// Parts shared by the whole run.
struct Run<'a> {
    plan: &'a Plan,
    seed: u64,
    options: &'a Options,
    hosts: &'a Hosts,
    programs: Option<&'a Programs>,
    wait: Wait,
    gather: Span,
    virtual_time: bool,
    cancel: &'a AtomicBool,
}

impl Run<'_> {
    /// Executes the run itself: the router and the traffic run in two other threads, and this
    /// thread supervises them.
    fn run(
        &self,
        mut router: Router,
        devices: Vec<Attached>,
        progress: &mut dyn FnMut(&RunProgress),
    ) -> Result<(DataPlaneOutcome<Attached>, Outcome), LiveError> {
        let clock = Clock::starting_in(TO_GET_READY);
        let settings = DataPlaneSettings {
            wait: self.wait,
            spin: self.plan.live.spin,
            gather: self.gather,
            offload: self.plan.live.offload,
            realtime: self.options.realtime,
            virtual_time: self.virtual_time,
        };
        let announcer = router.announcer();
        let data_plane = DataPlane::new(router, devices, clock, settings)?;
        let run_end = RunEnd::new(Instant::ZERO + self.plan.stop.at);
        let control = DataPlaneControl::default();
        let traffic = Generator::new(self.plan, self.seed, self.hosts, clock, &run_end)?
            .with_router(announcer, &control)
            .in_virtual_time(self.virtual_time);
        let watch = Watch { run: self, clock, control: &control, run_end: &run_end };
        thread::scope(|scope| {
            let data_plane = spawn(scope, "the router", || data_plane.run(&control))?;
            let traffic = {
                // When dropped, this guard ends the router's thread, even if the traffic's thread
                // has failed or panicked.
                let _at_last = Finish(&control);
                // Hosts send nothing before the servers listen.
                watch.wait_until_ready();
                if let Some(programs) = self.programs {
                    programs.go(clock);
                }
                let traffic = spawn(scope, "the traffic", || {
                    favour_this_thread(&control);
                    traffic.run()
                });
                traffic.and_then(|traffic| watch.watch(traffic, progress))
            };
            let data_plane = joined(data_plane);
            // If both threads have failed, the router's error is returned, because no host can do
            // anything without the router.
            let data_plane = data_plane?;
            Ok((data_plane, traffic?))
        })
    }
}

/// Gives the traffic a real-time priority below that of the router, if that is permitted and there
/// is more than one processor. Without this priority, the hosts might have to wait for a processor,
/// and would not behave as the plan says. The traffic never spins, so it uses only the time that
/// its packets need. If the router is an ordinary thread, so is the traffic.
fn favour_this_thread(control: &DataPlaneControl) {
    match control.priority() {
        Some(router) if machine::processors().is_some_and(|processors| processors > 1) => {
            priority::favour_traffic(router);
        }
        Some(_) => {}
        None => priority::favour_ordinary(),
    }
}

/// When dropped, ends the router's thread.
struct Finish<'a>(&'a DataPlaneControl);

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        self.0.finish();
    }
}

/// The work of the supervising thread while the others run.
struct Watch<'a> {
    run: &'a Run<'a>,
    clock: Clock,
    control: &'a DataPlaneControl,
    run_end: &'a RunEnd,
}

impl Watch<'_> {
    fn wait_until_ready(&self) {
        while !self.control.is_ready() && !self.control.is_gone() {
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Supervises the run until the traffic has ended, and then until packets in flight have
    /// arrived or the drain time is over.
    fn watch(
        &self,
        traffic: ScopedJoinHandle<'_, Result<Outcome, LiveError>>,
        progress: &mut dyn FnMut(&RunProgress),
    ) -> Result<Outcome, LiveError> {
        let mut looks = 0;
        while !traffic.is_finished() {
            thread::sleep(LOOK_EVERY);
            self.pass_on_endings();
            if looks % LOOKS_PER_REPORT == 0 {
                progress(&self.progress(Phase::Run));
            }
            looks += 1;
        }
        let outcome = joined(traffic)?;
        if let Some(programs) = self.run.programs {
            programs.stop();
        }
        self.drain(progress);
        Ok(outcome)
    }

    /// Passes on any request to end the run. A request comes from a user, or from the router if a
    /// queue has reached the count that ends the run, or if the router has failed.
    fn pass_on_endings(&self) {
        if self.run.cancel.load(Ordering::Relaxed) {
            let now = self.clock.now();
            self.control.end_at(now, StoppedBy::Interrupted);
            self.run_end.bring_forward(now);
        }
        if self.run.programs.is_some_and(Programs::is_over) {
            self.control.end_at(self.clock.now(), StoppedBy::Completed);
        }
        match self.control.ended() {
            Some((at, _)) => _ = self.run_end.bring_forward(at),
            None if self.control.is_gone() => _ = self.run_end.bring_forward(self.clock.now()),
            None => {}
        }
    }

    /// Waits until the network is empty, for at most the time that the plan allows, but only briefly if the
    /// run was cancelled.
    fn drain(&self, progress: &mut dyn FnMut(&RunProgress)) {
        let (begun, most) = (self.clock.now(), self.run.plan.live.drain);
        let end = || {
            let cancelled = self.run.cancel.load(Ordering::Relaxed);
            begun + if cancelled { most.min(LONGEST_LAST_DRAIN) } else { most }
        };
        let (mut looks, mut empty) = (0, 0);
        // Programs that have been asked to end still send; they are killed when their grace is over.
        let programs_run = || self.run.programs.is_some_and(|programs| !programs.is_gone());
        while (programs_run() || self.clock.now() < end() && empty < LOOKS_EMPTY) && !self.control.is_gone() {
            thread::sleep(LOOK_EVERY);
            empty = if self.control.held() == 0 { empty + 1 } else { 0 };
            if looks % LOOKS_PER_REPORT == 0 {
                progress(&self.progress(Phase::Drain));
            }
            looks += 1;
        }
    }

    fn progress(&self, phase: Phase) -> RunProgress {
        let (total, now) = (self.run.plan.stop.at, self.clock.now().saturating_since(Instant::ZERO));
        RunProgress { phase, done: now.min(total), total, lateness_max: self.control.lateness_max() }
    }
}

/// Returns a thread's result; a panic in the thread propagates to the caller.
fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| resume_unwind(panic))
}
