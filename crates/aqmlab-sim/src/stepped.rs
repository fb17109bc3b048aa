//! A run that its host carries out in parts, and looks at between them: a picture that moves.

use aqmlab_qdisc::{Port, Registry};
use aqmlab_recording::{Recording, StoppedBy, Table};
use aqmlab_scenario::Plan;
use aqmlab_units::Instant;

use crate::control::{Control, RunError, RunFiles};
use crate::network;
use crate::packet::{PortPacket, SimPacket};
use crate::run::finish;
use crate::watch::Seen;
use crate::wheel::Wheel;
use crate::world::{EventModel, World};

/// A run in parts. Where the parts end, and what the host looks at, changes nothing in the recording, which is that
/// of [`run`](crate::run()).
pub struct Stepped<'a> {
    plan: &'a Plan,
    seed: u64,
    control: Control,
    world: World<'a, Wheel>,
    stopped_by: Option<StoppedBy>,
}

impl<'a> Stepped<'a> {
    /// Creates the run of `plan` with `seed` at time zero. The host may take every event of a packet at the ports
    /// `looks`, which are numbers of links. A run without such ports is as fast as any other; its books are up to
    /// date only at samples. The run stops with an error if its tables outgrow the cap of `control`.
    ///
    /// # Errors
    /// See [`RunError`].
    pub fn new(
        plan: &'a Plan,
        seed: u64,
        control: Control,
        registry: &Registry<PortPacket>,
        looks: Vec<usize>,
    ) -> Result<Self, RunError> {
        if let Some(problem) = plan.only_live().next() {
            return Err(RunError::OnlyLive(problem.clone()));
        }
        // A run whose end is not known in advance would have to be repeated if it did anything ahead of time.
        let ahead = plan.stop.completed.is_none();
        let model = if ahead { EventModel::Ahead } else { EventModel::Fused };
        let (gap, horizon) = network::pace(plan);
        let files = RunFiles { looks, ..RunFiles::default() };
        let world = World::new(plan, seed, Wheel::new(gap, horizon), model, registry, files)?;
        Ok(Stepped { plan, seed, control, world, stopped_by: None })
    }

    /// Runs up to and including `until`, but handles at most `most` events. Returns whether the run has ended.
    ///
    /// # Errors
    /// See [`RunError`]; the run cannot be continued.
    pub fn advance(&mut self, until: Instant, most: u64) -> Result<bool, RunError> {
        if self.stopped_by.is_none() {
            self.stopped_by = self.world.run_part(until, most, &self.control)?;
        }
        Ok(self.stopped_by.is_some())
    }

    /// Returns the instant of the last event handled.
    pub fn now(&self) -> Instant {
        self.world.now()
    }

    /// Returns the instant of the next event, or `None` if the run has ended.
    pub fn next_at(&mut self) -> Option<Instant> {
        self.stopped_by.is_none().then(|| self.world.next_at())
    }

    /// Returns the number of events handled so far.
    pub fn events(&self) -> u64 {
        if self.stopped_by.is_some() { self.world.events } else { self.world.handled() }
    }

    /// Returns the samples so far: the recording's tables `queues`, `law` and `flow_series`.
    pub fn samples(&self) -> [&Table; 3] {
        self.world.samples()
    }

    /// Returns the port of a link, by its number in the plan.
    pub fn port(&self, link: usize) -> &Port<SimPacket> {
        &self.world.links[link].port
    }

    /// Returns the events of packets at the ports that the host looks at, since the last call.
    pub fn take_seen(&mut self) -> Vec<Seen> {
        self.world.watch.as_mut().map(|watch| watch.take_seen()).unwrap_or_default()
    }

    /// Runs to the end, if that has not been reached, and returns the recording.
    ///
    /// # Errors
    /// See [`RunError`].
    pub fn finish(mut self) -> Result<Recording, RunError> {
        while !self.advance(Instant::FAR_FUTURE, u64::from(u32::MAX))? {
            drop(self.take_seen());
        }
        self.world.check_watch()?;
        let stopped_by = self.stopped_by.expect("the run has ended");
        finish(self.world, self.plan, self.seed, stopped_by)
    }
}
