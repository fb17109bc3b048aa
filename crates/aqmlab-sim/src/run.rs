//! One run: takes a plan and a seed, and returns a recording.

use aqmlab_network::{DialogueRecorders, Engine, RunFacts};
use aqmlab_qdisc::Registry;
use aqmlab_recording::{Ending, Host, Recording, StoppedBy, run_table};
use aqmlab_scenario::Plan;

use crate::control::{Control, Controllers, RunError, RunFiles};
use crate::event::{EventQueue, HeapQueue};
use crate::flow::Body;
use crate::network;
use crate::packet::PortPacket;
use crate::wheel::Wheel;
use crate::world::{EventModel, World};

/// The version of the simulator itself, recorded in addition to the versions of the parts that a
/// plan uses. It also covers the order of events.
pub const ENGINE: Engine = Engine { host: Host::Sim, version: 1 };

/// Runs `plan` with `seed` on the built-in disciplines.
///
/// # Errors
/// See [`RunError`]; a failed run leaves no recording.
pub fn run(plan: &Plan, seed: u64, control: &Control) -> Result<Recording, RunError> {
    run_with(plan, seed, control, &Registry::builtin())
}

/// Runs `plan` with `seed` on the disciplines of `registry`.
///
/// # Errors
/// See [`RunError`]; a failed run leaves no recording.
pub fn run_with(
    plan: &Plan,
    seed: u64,
    control: &Control,
    registry: &Registry<PortPacket>,
) -> Result<Recording, RunError> {
    run_fast(plan, seed, control, registry, RunFiles::default(), None)
}

/// Does the same as [`run_with`], with other authors' congestion controllers. Both ends of a connection get one.
///
/// # Errors
/// See [`RunError`]; a failed run leaves no recording.
///
/// # Panics
/// If there is a controller for a class whose profile has no `packet_numbers`.
pub fn run_controllers(
    plan: &Plan,
    seed: u64,
    control: &Control,
    registry: &Registry<PortPacket>,
    controllers: Controllers<'_>,
) -> Result<Recording, RunError> {
    run_fast(plan, seed, control, registry, RunFiles::default(), Some(controllers))
}

/// Does the same as [`run_with`], with files that are written during the run. Nothing else differs.
///
/// # Errors
/// See [`RunError`]; the files are then incomplete.
pub fn run_into(
    plan: &Plan,
    seed: u64,
    control: &Control,
    registry: &Registry<PortPacket>,
    files: RunFiles,
) -> Result<Recording, RunError> {
    run_fast(plan, seed, control, registry, files, None)
}

fn run_fast(
    plan: &Plan,
    seed: u64,
    control: &Control,
    registry: &Registry<PortPacket>,
    files: RunFiles,
    controllers: Option<Controllers<'_>>,
) -> Result<Recording, RunError> {
    let run = |model, files| {
        let (gap, horizon) = network::pace(plan);
        run_on(Wheel::new(gap, horizon), model, plan, seed, control, registry, (files, controllers))
    };
    // A run is repeated if it turns out to have ended before something that it did ahead of time
    // was due. A run that writes files cannot be repeated, so it does nothing ahead of time.
    if plan.stop.completed.is_some() && !files.is_empty() {
        return run(EventModel::Fused, files).map(|recording| recording.expect(IN_TIME));
    }
    match run(EventModel::Ahead, files)? {
        Some(recording) => Ok(recording),
        None => run(EventModel::Fused, RunFiles::default()).map(|recording| recording.expect(IN_TIME)),
    }
}

const IN_TIME: &str = "a run that does nothing ahead of time does not pass its end";

/// Does the same as [`run_with`] on the plain engine, which uses a binary heap and one event per
/// hop. It is slow but simple, and gives the same recording; tests compare the two engines.
///
/// # Errors
/// See [`RunError`]; a failed run leaves no recording.
pub fn run_plain(
    plan: &Plan,
    seed: u64,
    control: &Control,
    registry: &Registry<PortPacket>,
) -> Result<Recording, RunError> {
    let queue = HeapQueue::default();
    let recording =
        run_on(queue, EventModel::Plain, plan, seed, control, registry, (RunFiles::default(), None))?;
    Ok(recording.expect(IN_TIME))
}

/// Runs `plan` with `seed` on `queue`. Returns `None` if the run ended before something that was
/// done ahead of time was due.
fn run_on<Q: EventQueue>(
    queue: Q,
    model: EventModel,
    plan: &Plan,
    seed: u64,
    control: &Control,
    registry: &Registry<PortPacket>,
    (files, controllers): (RunFiles, Option<Controllers<'_>>),
) -> Result<Option<Recording>, RunError> {
    let begun = (control.clock)();
    if let Some(problem) = plan.only_live().next() {
        return Err(RunError::OnlyLive(problem.clone()));
    }
    let mut world = World::new(plan, seed, queue, model, registry, files)?;
    world.controllers = controllers;
    let stopped_by = world.run(control)?;
    if world.has_passed_its_end() {
        return Ok(None);
    }
    world.check_watch()?;
    let mut recording = finish(world, plan, seed, stopped_by)?;
    recording.manifest.wall_s = (control.clock)().saturating_sub(begun).as_secs_f64();
    Ok(Some(recording))
}

/// Settles the books of a run that has ended, and returns its recording.
pub(crate) fn finish<Q: EventQueue>(
    mut world: World<'_, Q>,
    plan: &Plan,
    seed: u64,
    stopped_by: StoppedBy,
) -> Result<Recording, RunError> {
    let (t0, t1) = (world.measured_from(), world.now());
    for (link, plan) in world.links.iter_mut().zip(&plan.links) {
        link.port.settle(t1);
        let queue = || plan.name.clone();
        link.port.check_books().map_err(|source| RunError::PortBooks { queue: queue(), source })?;
    }
    let resident = world.resident();
    world.in_transit.fates.check(resident).map_err(RunError::NetworkBooks)?;
    world.check_options().map_err(RunError::OptionBooks)?;
    let (mut recorder, mut requests, mut frames) = (world.recorder, world.requests, world.frames);
    for class in &mut world.classes {
        class.opening.opener.cut_off_pages(t1, requests.as_deref_mut());
    }
    for flow in world.in_transit.flows.drain() {
        recorder.flow_ended(&flow, &world.classes[usize::from(flow.id.class)]);
        match &flow.body {
            Body::Tcp(connection) => {
                connection.cut_off_request(flow.id.class, Ending::Censored, t1, &mut requests);
            }
            Body::Dialogue(talk) => {
                let mut recorders =
                    DialogueRecorders { frames: frames.as_deref_mut(), requests: requests.as_deref_mut() };
                recorders.note_rest((flow.id.class.into(), flow.index), t1, &talk.dialogue);
            }
            Body::Packets(_) => {}
        }
    }
    if let Some(watch) = &mut world.watch {
        watch.finish_capture(t1).map_err(RunError::File)?;
    }
    let run = run_table(t0, t1, &world.in_transit.fates, resident);
    let (tables, capacities) = world.changing.finish(t1, world.links.iter().map(|link| &link.port));
    let adjusted = world.autorates.finish();
    let more =
        tables.into_iter().chain(adjusted).chain(world.watch.into_iter().flat_map(|watch| watch.finish()));
    let facts =
        RunFacts { engine: ENGINE, seed, t0, t1, stopped_by, events: world.events, wall_s: 0.0, live: None };
    let mut recording = recorder.finish(plan, facts, &world.links, run, more);
    recording.manifest.note_capacities(&capacities);
    if let Some(frames) = frames {
        recording.add_frames(*frames);
    }
    if let Some(requests) = requests {
        recording.add_requests(requests.finish().map_err(RunError::File)?);
    }
    Ok(recording)
}
