//! The simulation loop: takes the next event, handles it, and schedules its consequences.

mod flows;
mod packets;
mod service;

use std::collections::VecDeque;

use aqmlab_network::{
    Autorates, ChangingLinks, Completions, Milestone, Schedule, frame_recorder, request_recorder,
    sender_state,
};
use aqmlab_qdisc::{Packet, Registry};
use aqmlab_recording::{Fates, FrameRecorder, RequestRecorder, StoppedBy, Table, Tally};
use aqmlab_scenario::Plan;
use aqmlab_units::Instant;

use crate::connection::Applications;
use crate::control::{Control, Controllers, RunError, RunFiles};
use crate::event::{Event, EventQueue, Key, Notice, Rank};
use crate::flow::{Body, Flow};
use crate::flow_table::FlowTable;
use crate::in_transit::InTransit;
use crate::network::{self, Class, Held, Link};
use crate::options::{OptionImbalance, OptionTable};
use crate::packet::{PortPacket, SimPacket};
use crate::recorder::Recorder;
use crate::routes::{Recorded, Routes};
use crate::scheduler::{FlowObject, Scheduler};
use crate::watch::{TableFull, Watch};

/// Number of events between two readings of the control.
const CONTROL_INTERVAL: u64 = 1 << 16;

/// Which steps of a run are events of their own. All models give the same recording.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EventModel {
    /// An event for each departure and each hop.
    Plain,
    /// Ports that look ahead, and fused hops.
    Fused,
    /// Like [`EventModel::Fused`], but everything is done ahead of time unless it is observed before it
    /// is due.
    Ahead,
}

/// A running network.
pub struct World<'a, Q: EventQueue> {
    plan: &'a Plan,
    seed: u64,
    now: Instant,
    scheduler: Scheduler<Q>,
    /// Whether hosts are processed ahead of time. If there is no continuous observation, a packet
    /// is processed at its host as soon as its arrival is known, provided that nothing else can
    /// happen there before then. The packet then needs no event for the last part of its path.
    serves_ahead: bool,
    /// The latest instant for which anything has been done ahead of time.
    done_as_of: Instant,
    /// Every link with its port.
    pub links: Vec<Link>,
    /// The links whose rate changes.
    pub changing: ChangingLinks,
    /// Controllers of shapers.
    pub autorates: Autorates,
    /// Flows, their packets, and the packets' fates.
    pub in_transit: InTransit,
    /// Classes of flows, in the plan's order.
    pub classes: Vec<Class>,
    /// The recording.
    pub recorder: Recorder,
    /// The recorder of requests, if a class makes any.
    pub requests: Option<Box<RequestRecorder>>,
    /// The recorder of frames and updates, if a class has any.
    pub frames: Option<Box<FrameRecorder>>,
    /// The recording of individual changes and packets, if it is requested.
    pub watch: Option<Box<Watch>>,
    /// Packets that are about to enter their first queue, from flows without access links.
    outbox: Vec<SimPacket>,
    /// The held packets that are being released; empty at all other times: see [`Link::held`].
    releasing: VecDeque<Held>,
    /// Memory of ended connections, for reuse by the applications of later connections.
    #[expect(clippy::vec_box, reason = "the boxes themselves are reused")]
    spare: Vec<Box<Applications>>,
    /// Other authors' congestion controllers, if there are any.
    pub controllers: Option<Controllers<'a>>,
    /// The number of flows in the plan, and the number of the last connection that is not one of these flows.
    flows: u32,
    opened: u32,
    /// Counts completions since the end of the warm-up, if they may end the run.
    completions: Completions,
    /// Events processed up to the last reading of the control. This count depends on the engine,
    /// not on the network.
    pub events: u64,
    /// The number of events from the last reading of the control to the next, and how many of them
    /// are still to come.
    stride: u64,
    until_poll: u64,
    /// The times of samples, of the end of the warm-up, and of the end of the run.
    schedule: Schedule,
    /// When the next milestone is due; queues are not advanced beyond that instant. Zero if nothing
    /// is done at queues ahead of time.
    next_look: Instant,
    /// When flows are sampled next, or when the warm-up ends if that is earlier.
    next_snapshot: Instant,
    /// The link that a stop condition watches.
    watched: Option<u32>,
}

impl<'a, Q: EventQueue> World<'a, Q> {
    /// Creates the network of `plan` at time zero.
    ///
    /// # Errors
    /// If the plan does not permit this seed, if a discipline refuses its parameters, or if there
    /// are too many places on the paths.
    pub fn new(
        plan: &'a Plan,
        seed: u64,
        queue: Q,
        model: EventModel,
        registry: &Registry<PortPacket>,
        files: RunFiles,
    ) -> Result<Self, RunError> {
        let fused = model != EventModel::Plain;
        plan.check_seed(seed).map_err(RunError::Seed)?;
        let watch = Watch::of(plan, files.capture, files.looks);
        let mut links = network::links(plan, seed, registry).map_err(RunError::Discipline)?;
        if fused {
            look_ahead(plan, &mut links, watch.as_ref());
        }
        let completions = Completions::new(plan);
        // Flows and queues are observed only at instants that are known in advance. If a number of
        // completions ends the run, the instant of the end is not; `has_passed_its_end` deals with it.
        let is_unobserved = plan.stop.condition.is_none() && watch.is_none();
        let serves_ahead = model == EventModel::Ahead && is_unobserved && !completions.is_near_end();
        let joinable = |link: u32| serves_ahead && links[link as usize].port.looks_ahead();
        let recorded = Recorded {
            classes: &|class| watch.as_ref().is_some_and(|watch| watch.attends(class)),
            links: &|link| watch.as_ref().is_some_and(|watch| watch.records_receptions(link)),
        };
        let (routes, begins) = Routes::new(plan, fused, joinable, &recorded).ok_or(RunError::Places)?;
        let scheduler = Scheduler::new(queue, links.len());
        let flows = plan.classes.iter().map(|class| class.count as u32).sum();
        let mut world = World {
            plan,
            seed,
            now: Instant::ZERO,
            scheduler,
            serves_ahead,
            done_as_of: Instant::ZERO,
            links,
            changing: ChangingLinks::new(plan, seed),
            autorates: Autorates::new(plan),
            in_transit: InTransit {
                flows: FlowTable::default(),
                routes,
                options: OptionTable::default(),
                fates: Fates::default(),
            },
            classes: network::classes(plan, begins, seed),
            recorder: Recorder::new(plan),
            requests: request_recorder(plan, seed, files.requests).map(Box::new),
            frames: frame_recorder(plan).map(Box::new),
            watch: watch.map(Box::new),
            outbox: Vec::new(),
            releasing: VecDeque::new(),
            spare: Vec::new(),
            controllers: None,
            flows,
            opened: flows,
            completions,
            events: 0,
            stride: CONTROL_INTERVAL,
            until_poll: CONTROL_INTERVAL,
            schedule: Schedule::new(plan),
            next_look: Instant::ZERO,
            next_snapshot: Instant::FAR_FUTURE,
            watched: None,
        };
        world.schedule_first_events();
        Ok(world)
    }

    fn schedule_first_events(&mut self) {
        self.begin_changes();
        self.begin_autorates();
        for class in 0..self.classes.len() {
            let opening = &mut self.classes[class].opening;
            let wake = opening.opener.begin();
            opening.schedule(&mut self.scheduler, wake);
            if let Some(stop_at) = self.plan.classes[class].stop_at {
                // This event has the same key as the stop of the class's first flow, so it comes
                // before the stops of all flows.
                let (number, class) = (opening.opener.first_number, class as u32);
                let at = Instant::ZERO + stop_at;
                self.scheduler.timer(at, number, FlowObject::Stop, Notice::StopClass { class });
            }
        }
        if self.schedule.is_measuring() {
            self.watch_stop_condition();
        }
        self.foresee_snapshots();
        self.schedule_milestone();
    }

    /// Runs the simulation to its end.
    ///
    /// # Errors
    /// [`RunError::Cancelled`], or [`RunError::Memory`] if the run's tables outgrow the control's cap.
    pub fn run(&mut self, control: &Control) -> Result<StoppedBy, RunError> {
        loop {
            if let Some(why) = self.run_part(Instant::FAR_FUTURE, u64::MAX, control)? {
                return Ok(why);
            }
        }
    }

    /// Runs the simulation up to and including `until`, but handles at most `most` events. Returns the reason why
    /// the run has ended, if it has; nothing may be called after that except what finishes a recording.
    ///
    /// # Errors
    /// As [`World::run`].
    pub fn run_part(
        &mut self,
        until: Instant,
        most: u64,
        control: &Control,
    ) -> Result<Option<StoppedBy>, RunError> {
        for _ in 0..most {
            let at = self.scheduler.queue.advance().expect("the end of the run is an event");
            if at > until {
                break;
            }
            debug_assert!(at >= self.now, "time ran backwards");
            self.now = at;
            match *self.scheduler.queue.first().1 {
                Event::Arrive(mut packet) => {
                    self.scheduler.queue.release();
                    self.forward(&mut packet);
                }
                Event::Other(notice) => {
                    self.scheduler.queue.release();
                    self.handle(notice);
                }
            }
            self.until_poll -= 1;
            if self.until_poll == 0
                && let Some(why) = self.poll_control(control)?
            {
                return Ok(Some(why));
            }
        }
        Ok(None)
    }

    /// Returns when the next event is due.
    pub fn next_at(&mut self) -> Instant {
        self.scheduler.queue.advance().expect("the end of the run is an event")
    }

    /// Returns the number of events handled so far.
    pub fn handled(&self) -> u64 {
        self.events + (self.stride - self.until_poll)
    }

    /// Returns whether something has been done for an instant at or after the end of the run,
    /// because it was not known that the run would end so early.
    pub fn has_passed_its_end(&self) -> bool {
        self.schedule.ended().is_some_and(|(at, why)| why == StoppedBy::Completed && self.done_as_of >= at)
    }

    /// Reads the control; called every [`CONTROL_INTERVAL`] events, and when the run should stop.
    /// Returns the reason for a stop, if there is one.
    #[cold]
    fn poll_control(&mut self, control: &Control) -> Result<Option<StoppedBy>, RunError> {
        self.events += self.stride;
        (self.stride, self.until_poll) = (CONTROL_INTERVAL, CONTROL_INTERVAL);
        control.report(self.events, self.now.as_ns());
        if let Some((_, why)) = self.schedule.ended() {
            return Ok(Some(why));
        }
        if control.is_cancelled() {
            return Err(RunError::Cancelled);
        }
        if let Some(requests) = &mut self.requests {
            requests.settle(self.now);
        }
        self.check_watch()?;
        let used = self.memory_bytes();
        match control.cap() {
            Some(cap) if used > cap => Err(RunError::Memory { used, cap }),
            _ => Ok(None),
        }
    }

    /// Checks that no trace or packet recording has exceeded its limit, and that captures and rows
    /// of requests could be written.
    ///
    /// # Errors
    /// [`RunError::TooManyRows`] or [`RunError::File`], otherwise.
    pub fn check_watch(&mut self) -> Result<(), RunError> {
        if let Some(watch) = &mut self.watch
            && watch.capture_has_failed()
        {
            watch.finish_capture(self.now).map_err(RunError::File)?;
        }
        if let Some(requests) = self.requests.take_if(|requests| requests.failure().is_some()) {
            requests.finish().map_err(RunError::File)?;
        }
        match self.watch.as_ref().and_then(|watch| watch.full(self.now)) {
            Some(TableFull { table, at }) => {
                let limit = self.plan.record.limit.unwrap_or(u64::MAX);
                Err(RunError::TooManyRows { table, at, limit })
            }
            None => Ok(()),
        }
    }

    /// Ends the run after the current event.
    fn stop(&mut self, why: StoppedBy) {
        self.schedule.end(self.now, why);
        // The loop does not check for a stop at each event, so the next check is brought forward:
        // it follows directly after this event.
        self.stride -= self.until_poll - 1;
        self.until_poll = 1;
    }

    #[inline(never)]
    fn handle(&mut self, notice: Notice) {
        match notice {
            Notice::LinkFree { link } => self.link_free(link),
            Notice::EndpointTimer { flow, end } => self.endpoint_timer(flow, end),
            Notice::LinkDeadline { link } => self.link_deadline(link),
            Notice::RateChange { link } => self.change_rate(link),
            Notice::Chance { link } => self.take_chance(link),
            Notice::Autorate { link } => self.adjust_shaper(link),
            Notice::SendDelayed { flow, end } => self.send_delayed(flow, end),
            Notice::Emit { flow } => self.emit(flow),
            Notice::Start { class, user } => self.wake_population(class, user),
            Notice::StopClass { class } => self.stop_class(class),
            Notice::StopSending { class, flow } => self.stop_sending(class, flow),
            Notice::Milestone(milestone) => self.reach(milestone),
        }
    }

    /// Returns the recording's samples of queues, of laws and of flows, so far.
    pub fn samples(&self) -> [&Table; 3] {
        self.recorder.samples()
    }

    /// Returns the current time.
    pub fn now(&self) -> Instant {
        self.now
    }

    /// Returns the beginning of the measured interval.
    pub fn measured_from(&self) -> Instant {
        self.schedule.t0()
    }

    // --- samplers -------------------------------------------------------------------------------------

    /// Schedules the next milestone of the run.
    fn schedule_milestone(&mut self) {
        if let Some((at, milestone)) = self.schedule.next() {
            if self.serves_ahead {
                self.next_look = at;
            }
            let key = Key::new(at, Rank::Sampler, 0, milestone as u64);
            self.scheduler.queue.push(key, Notice::Milestone(milestone));
        }
    }

    fn reach(&mut self, milestone: Milestone) {
        match milestone {
            Milestone::SampleQueues => {
                self.catch_up();
                self.recorder.sample_queues(self.now, &self.links);
                self.changing.sample(self.now);
            }
            Milestone::SampleFlows => {
                self.recorder.sample_flows(self.now, &mut self.in_transit.flows);
                self.sample_media();
            }
            Milestone::WarmupEnd => self.end_warmup(),
            Milestone::End => return self.stop(StoppedBy::Time),
        }
        self.schedule.pass(milestone);
        if milestone != Milestone::SampleQueues {
            self.foresee_snapshots();
        }
        self.schedule_milestone();
        self.release_held();
    }

    /// Samples the media senders, in the order of their flows' numbers.
    fn sample_media(&mut self) {
        let Some(frames) = &mut self.frames else { return };
        let state = |(_, flow): (_, &Flow)| match &flow.body {
            Body::Dialogue(talk) => Some((flow.id.number, talk.dialogue.media_state()?)),
            _ => None,
        };
        let mut states: Vec<_> = self.in_transit.flows.living().filter_map(state).collect();
        states.sort_unstable_by_key(|&(number, _)| number);
        for (number, state) in states {
            frames.sample(self.now, number, sender_state(state));
        }
    }

    /// Allows hosts to be processed beyond the next sample of flows, but not beyond the one after it.
    fn foresee_snapshots(&mut self) {
        let (next_sample, warmup_end) =
            (self.schedule.at(Milestone::SampleFlows), self.schedule.at(Milestone::WarmupEnd));
        self.next_snapshot = next_sample.min(warmup_end);
        let mut until = next_sample.saturating_add(self.plan.record.flows);
        if self.plan.stop.completed.is_some() {
            // Completions count only after the end of the warm-up.
            until = until.min(warmup_end);
        }
        for class in &mut self.classes {
            class.served_until = class.unattended_until.min(until);
        }
    }

    fn end_warmup(&mut self) {
        self.catch_up();
        self.recorder.warmup_ended(&self.links);
        self.autorates.warmup_ended(self.links.iter().map(|link| &link.port));
        for link in &mut self.links {
            link.port.measure_from(self.now);
        }
        self.changing.measure_from(self.now, self.links.iter().map(|link| &link.port));
        for flow in self.in_transit.flows.iter_mut() {
            flow.end_warmup();
        }
        self.watch_stop_condition();
    }

    /// Starts to watch the link of the stop condition.
    fn watch_stop_condition(&mut self) {
        self.watched = self.plan.stop.condition.as_ref().map(|stop| *stop.link as u32);
    }

    // --- the end --------------------------------------------------------------------------------------

    /// Counts the packets, and their bytes, that are still in the network: on links, in access
    /// links, in queues and in transmission. A packet at a port that looks ahead counts as being on
    /// its way to the next place.
    pub fn resident(&self) -> Tally {
        let mut tally = self.scheduler.packets();
        self.held().for_each(|packet| tally.count(packet.wire_len()));
        for link in self.links.iter().filter(|l| !l.port.looks_ahead()) {
            let backlog = link.port.backlog();
            tally.packets += backlog.packets;
            tally.bytes += backlog.bytes;
            if let Some(packet) = link.port.in_transmission() {
                tally.count(packet.wire_len());
            }
        }
        tally
    }

    /// Iterates over the packets that travel between two links without an event of their own.
    fn held(&self) -> impl Iterator<Item = &SimPacket> {
        self.links.iter().flat_map(|link| link.held.iter().map(|held| &held.packet))
    }

    /// Checks that the table of options holds the options of all packets in the network, and no others.
    ///
    /// # Errors
    /// Returns the numbers of options held and found if they do not agree.
    pub fn check_options(&self) -> Result<(), OptionImbalance> {
        let plain = self.links.iter().filter(|l| !l.port.looks_ahead());
        let waiting = plain.map(|l| l.port.backlog().packets.get() + u64::from(l.port.is_sending()));
        let held = self.held().filter(|packet| packet.entry().is_some()).count() as u64;
        self.in_transit.options.check(self.scheduler.packets_with_entries() + held, waiting.sum())
    }

    /// Returns the memory that the run's own tables take at present, in bytes, estimated from their lengths.
    fn memory_bytes(&self) -> u64 {
        let scheduler = self.scheduler.queue.memory_bytes();
        let waiting: u64 = self.links.iter().map(|l| l.port.backlog().packets.get()).sum();
        let queues = waiting as usize * size_of::<PortPacket>();
        let starts: usize = self.classes.iter().map(|c| c.opening.opener.memory_bytes()).sum();
        let watched = self.watch.as_ref().map_or(0, |watch| watch.memory_bytes());
        let options = self.in_transit.options.memory_bytes();
        let requests = self.requests.as_ref().map_or(0, |requests| requests.memory_bytes());
        let cells = self.changing.cells() + self.autorates.cells();
        let recorded = self.recorder.memory_bytes() + cells * size_of::<u64>();
        let frames = self.frames.as_ref().map_or(0, |frames| frames.memory_bytes());
        let rest = frames + self.in_transit.flows.memory_bytes() + recorded + watched + requests;
        (scheduler + queues + starts + options + rest) as u64
    }
}

/// Makes ports look ahead where the discipline permits it. A stop condition reads its link after
/// each change, so that link keeps an event for each departure. So do the links with higher
/// numbers: if an event of that link ends the run, their departures at that instant must not have
/// happened yet. A watched port must report each departure when it happens, and a port whose rate changes does not know its
/// departures in advance.
fn look_ahead(plan: &Plan, links: &mut [Link], watch: Option<&Watch>) {
    let before = plan.stop.condition.as_ref().map_or(links.len(), |stop| *stop.link);
    for (number, link) in links[..before].iter_mut().enumerate() {
        let is_constant = plan.links[number].changes.is_none();
        if is_constant && watch.is_none_or(|watch| !watch.watches(number as u32)) {
            link.port.look_ahead();
        }
    }
}
