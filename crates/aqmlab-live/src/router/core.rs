//! The router itself: it determines the next event and executes it.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::mpsc::Receiver;

use aqmlab_network::{Autorates, ChangingLinks, End, Milestone, Schedule, Turn, queue_stop_is_reached};
use aqmlab_qdisc::{DelayStage, Discipline, Packet, Pipe, Port, Registry, Stamped};
use aqmlab_recording::capture::{of_packet_id, packet_id};
use aqmlab_recording::{Fates, PortTables, StoppedBy, Tally, samples_in};
use aqmlab_scenario::{ClassPlan, Plan, QueueStop};
use aqmlab_transport::UniqueBytes;
use aqmlab_units::{Bytes, Instant, Packets, Rate, Span};
use rtrb::Consumer;

use super::announcements::{self, Announcement, Announcer, MOST_PIPES};
use super::books::{FlowBooks, Frozen, HostBooks, Refused, count};
use super::flow_table::{FlowTable, INSIDE};
use super::found::Ends;
use super::frame_budget::{FrameBudget, client_ports};
use super::frame_store::{FrameObserver, FrameSink, FrameStore};
use super::pace::Pace;
use super::routes::{Routes, Step};
use crate::addresses::HostId;
use crate::error::LiveError;
use crate::frame::{FramePool, LinkHeader, LiveFrame, parse, tcp_payload};
use crate::kernel_queue::{Habits, KernelPath, KernelQueue};

/// Number of holes in a connection's delivered data for which memory is reserved from the start; a
/// few dozen holes are common after slow start has filled a queue. A connection with more holes
/// allocates memory for twice as many.
const HOLES: usize = 64;

/// Number of answers to controllers of shapers for which memory is reserved from the start: those of a quarter of an hour
/// with cake-autorate's six reflectors.
const ANSWERS: usize = 20_000;

/// A network of ports in virtual time.
pub struct Router {
    pub(super) ports: Vec<Port<LiveFrame>>,
    /// Frames on links and in flows' own pipes, on their way to another pipe or queue.
    pub(super) inside: Stage,
    /// Frames in the last pipe of their path.
    pub(super) leaving: Stage,
    pub(super) store: FrameStore,
    pub(super) schedule: Schedule,
    pub(super) tables: PortTables,
    pub(super) link_names: Vec<String>,
    /// The links whose rate changes.
    pub(super) changing: ChangingLinks,
    /// The next turn of each of these links, by their numbers.
    turns: Vec<(usize, Instant, Turn)>,
    /// Controllers of shapers, and the links that have one.
    pub(super) autorates: Autorates,
    shaped: Vec<usize>,
    /// The limit of lateness, if the rate of a link changes.
    pace: Option<Pace>,
    /// The flows' books at the end of the warm-up.
    pub(super) at_warmup: Vec<Vec<[FlowBooks; 2]>>,
    /// State at the end of the measured interval, once it has ended.
    pub(super) frozen: Option<Frozen>,
    /// Connections that are about to open, if connections are announced.
    announced: Option<Consumer<Announcement>>,
    largest: Vec<usize>,
    condition: Option<QueueStop>,
    /// Maximum time by which events inside the router may be delayed: no frame leaves the network
    /// within that time after such an event.
    slack: Span,
    least_round_trip: Span,
    now: Instant,
    /// Kernel queues, by link.
    pub(super) kernels: Vec<Option<KernelQueue>>,
    /// The first error of a kernel queue since the last call of [`Router::take_fault`].
    fault: Option<io::Error>,
}

/// Pipes, and the frames in them. Each frame names its pipe.
pub(super) type Stage = DelayStage<LiveFrame, fn(&LiveFrame) -> usize>;

impl Router {
    /// Returns the network of `plan` at time zero, with the disciplines of `registry`, and with all
    /// random values drawn from `seed`.
    ///
    /// # Errors
    /// If a discipline refuses its parameters, or the plan is too large.
    ///
    /// # Panics
    /// If `budget` does not give the largest packet of each class.
    pub fn new(
        plan: &Plan,
        seed: u64,
        registry: &Registry<Stamped<LiveFrame>>,
        budget: &FrameBudget,
    ) -> Result<Self, LiveError> {
        assert_eq!(budget.largest.len(), plan.classes.len(), "a largest packet for each class");
        let too_large = || LiveError::Unsupported("it has too many queues, classes or flows".into());
        let routes = Routes::new(plan).ok_or_else(too_large)?;
        check_pipes(plan, &routes)?;
        let rows = client_ports(plan)?;
        let (flow_table, pipes) = FlowTable::new(plan, &routes, &rows, seed).ok_or_else(too_large)?;
        let (ports, kernels) = queues(plan, seed, registry, budget, &flow_table)?;
        let own = |class, which: u8| {
            let pipe = routes.pipes(class)[usize::from(which)];
            flow_table.least_delay(plan, class, (which, pipe), &pipes)
        };
        // Events inside the router may be delayed by up to half of the shortest time that their frame still
        // needs to leave the network; the other half remains for executing them.
        let slack = routes.least_ahead(own, |link| plan.links[link].delay).div(2);
        let least_round_trip = routes.least_round_trip(own, |link| plan.links[link].delay);
        // Packets must reach a kernel queue at their own instants, so no event may be delayed.
        let slack = if kernels.iter().any(Option::is_some) { Span::ZERO } else { slack };
        let [inside, leaving] = pipes.map(|pipes| stage(pipes, budget));
        let link_names: Vec<String> = plan.links.iter().map(|l| l.name.clone()).collect();
        let mut tables =
            PortTables::new(link_names.clone(), plan.classes.iter().map(|c| c.name.clone()).collect());
        tables.reserve(samples_in(plan.stop.at, plan.record.queues), ports.iter());
        let store = store(plan, routes, flow_table, &rows, budget);
        let mut changing = ChangingLinks::new(plan, seed);
        changing.reserve(samples_in(plan.stop.at, plan.record.queues));
        let mut autorates = Autorates::new(plan);
        autorates.reserve(ANSWERS);
        let mut router = Router {
            ports,
            inside,
            leaving,
            slack,
            least_round_trip,
            schedule: Schedule::without_flows(plan),
            tables,
            link_names,
            changing,
            turns: Vec::new(),
            shaped: autorates.numbers().collect(),
            autorates,
            pace: None,
            at_warmup: store.flows.clone(),
            frozen: None,
            announced: None,
            largest: budget.largest.clone(),
            condition: plan.stop.condition.clone(),
            now: Instant::ZERO,
            kernels,
            fault: None,
            store,
        };
        router.begin_changes(plan);
        Ok(router)
    }

    /// Prepares the links whose rate changes.
    fn begin_changes(&mut self, plan: &Plan) {
        for link in self.changing.numbers() {
            self.changing.begin(link, &mut self.ports[link], &mut self.store.at_port(link));
            self.turns.extend(self.changing.next(link).map(|(at, turn)| (link, at, turn)));
        }
        for link in &self.shaped {
            self.autorates.begin(*link, &mut self.ports[*link], &mut self.store.at_port(*link));
        }
        if !self.changing.is_empty() {
            self.pace = Some(Pace::new(plan, self.least_round_trip, rates(&self.changing, &self.ports)));
        }
    }

    /// Notifies `observer` of every frame at every port from now on, until [`Router::take_observer`]. Without
    /// that call, the observer is dropped with the router.
    pub fn observe_ports(&mut self, observer: Box<dyn FrameObserver>) {
        self.store.observer = Some(observer);
    }

    /// Returns the observer of ports, which then receives no further events.
    pub fn take_observer(&mut self) -> Option<Box<dyn FrameObserver>> {
        self.store.observer.take()
    }

    /// Returns the means to announce connections to this router. Connections of a list need not be announced;
    /// a frame of any other connection that has not been announced belongs to no flow.
    pub fn announcer(&mut self) -> Announcer {
        let classes = 0..self.store.hosts.len() / 2;
        let pipes = classes.map(|class| self.store.routes.pipes(class).to_vec()).collect();
        let (announcer, announced) = announcements::ring(pipes);
        self.announced = Some(announced);
        announcer
    }

    /// Accepts a packet that a host has sent at `now`. Events that are due earlier are executed
    /// first. The router's time never decreases: if it is already later than `now`, the packet
    /// counts as sent at that later time.
    ///
    /// # Errors
    /// The reason why the packet is refused, which is also recorded in the host's books.
    pub fn accept(
        &mut self,
        now: Instant,
        host: HostId,
        octets: &[u8],
        out: &mut dyn FrameSink,
    ) -> Result<(), Refused> {
        self.accept_from_link(now, host, octets, None, out)
    }

    /// Accepts a packet like [`Router::accept`]; it keeps its link header until it leaves.
    ///
    /// # Errors
    /// See [`Router::accept`].
    pub fn accept_from_link(
        &mut self,
        now: Instant,
        host: HostId,
        octets: &[u8],
        link: Option<&LinkHeader>,
        out: &mut dyn FrameSink,
    ) -> Result<(), Refused> {
        let now = now.max(self.now);
        // A sample at an instant is taken after all other events of that instant.
        while let Some(at) = self.next_event().filter(|at| *at <= now) {
            self.reach_before(at);
            self.happen(at, out);
        }
        self.reach_before(now);
        self.now = now;
        let taken = self.take(now, host, octets);
        let books = &mut self.store.hosts[host.number()];
        count(&mut books.read, Bytes::new(octets.len() as u64));
        match taken {
            Ok(frame) => {
                if let Some(link) = link {
                    self.store.pool.note_link(&frame.slot, link);
                }
                self.forward(now, frame, out);
                Ok(())
            }
            Err(why) => {
                books.refuse(why);
                Err(why)
            }
        }
    }

    /// Executes all events up to `until`, each at its own instant.
    pub fn advance(&mut self, until: Instant, out: &mut dyn FrameSink) {
        while let Some(at) = self.next_event().filter(|at| *at <= until) {
            self.reach_before(at);
            self.happen(at, out);
        }
        while let Some((at, milestone)) = self.schedule.next().filter(|(at, _)| *at <= until) {
            self.reach(at, milestone);
        }
        self.now = self.now.max(until);
    }

    /// Returns the instant of the next event, before which [`Router::advance`] has nothing to do. `None` if
    /// nothing happens until a packet arrives.
    pub fn next_due(&self) -> Option<Instant> {
        let milestone = self.schedule.next().map(|(at, _)| at);
        [self.next_event(), milestone].into_iter().flatten().min()
    }

    /// Returns the earliest departure time of the frames in the last pipe of their path.
    pub fn next_leaving(&self) -> Option<Instant> {
        self.leaving.deadline()
    }

    /// Returns the instant by which the router must be called again to execute events inside it, so that they
    /// delay no frame's departure. An event that is executed late has the same effect as at its own instant;
    /// only departures depend on real time.
    pub fn next_inside(&self) -> Option<Instant> {
        // A chance at a link with nothing to send has no effect, whenever it is taken.
        let has_effect = |(link, _, turn): &&(usize, Instant, Turn)| {
            let port = &self.ports[*link];
            *turn == Turn::Rate || port.is_sending() || !port.backlog().packets.is_zero()
        };
        let turn = self.turns.iter().filter(has_effect).map(|(_, at, _)| *at).min();
        let adjusted = self.shaped.iter().map(|link| self.autorates.next(*link)).min();
        let due = [self.next_at_ports(), turn, adjusted, self.inside.deadline()].into_iter().flatten().min();
        due.map(|at| at.saturating_add(self.slack))
    }

    /// Ends the measured interval at `now`, unless it has already ended. The reason `why` is that a
    /// user has stopped the run, or that enough flows have completed. Frames continue on their way.
    pub fn end(&mut self, now: Instant, why: StoppedBy, out: &mut dyn FrameSink) {
        let now = now.max(self.now);
        self.advance(now, out);
        if self.schedule.ended().is_none() {
            self.freeze(now, why);
        }
    }

    /// Returns when and why the measured interval ended, if it has ended.
    pub const fn ended(&self) -> Option<(Instant, StoppedBy)> {
        self.schedule.ended()
    }

    /// Returns the end of the warm-up, at which measuring begins.
    pub const fn measured_from(&self) -> Instant {
        self.schedule.t0()
    }

    /// Returns the shortest time that the packets of any flow need to the server and back, without queueing.
    pub const fn least_round_trip(&self) -> Span {
        self.least_round_trip
    }

    /// Returns the number of frames in the network.
    pub fn held(&self) -> usize {
        self.store.pool.taken()
    }

    /// Returns the books of all hosts, by [`HostId::number`].
    pub fn hosts(&self) -> &[HostBooks] {
        &self.store.hosts
    }

    /// Returns the ends of each flow of a class of programs, when its first packet from a client enters the network.
    ///
    /// # Panics
    /// If the class has no programs.
    pub fn hear(&mut self, class: usize) -> Receiver<Ends> {
        self.store.flow_table.hear(class)
    }

    // --- kernel queues ----------------------------------------------------------------------------------

    /// Connects the kernel queue of a link to the kernel.
    ///
    /// # Panics
    /// If the link's queue is not a kernel queue.
    pub fn connect(&mut self, link: usize, path: Box<dyn KernelPath>) {
        self.kernels[link].as_mut().expect("the link's queue is the kernel's").connect(path);
    }

    /// Returns the descriptors that become readable when a packet has left a kernel queue, in the order of
    /// the links; [`Router::collect`] numbers the queues in this order.
    pub fn kernel_fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.kernels.iter().flatten().filter_map(KernelQueue::fd)
    }

    /// Collects the packets that have left the n-th kernel queue by `now`. Events that are due
    /// earlier are executed first.
    ///
    /// # Errors
    /// Any error from the operating system.
    pub fn collect(&mut self, now: Instant, nth: usize, out: &mut dyn FrameSink) -> io::Result<()> {
        let now = now.max(self.now);
        self.advance(now, out);
        let connected = |kernel: &Option<KernelQueue>| kernel.as_ref().is_some_and(|k| k.fd().is_some());
        let link = (0..self.kernels.len()).filter(|&link| connected(&self.kernels[link])).nth(nth);
        let Some(link) = link else { return Ok(()) };
        let kernel = self.kernels[link].as_mut().expect("it is connected");
        kernel.collect()?;
        if !self.ports[link].is_sending() {
            kernel.ends_idle_time(now, self.schedule.is_measuring());
            self.ports[link].wake(now, &mut self.store.at_port(link));
            self.look_at(now, link);
        }
        Ok(())
    }

    /// Returns the first error of a kernel queue since the last call, if there was one.
    pub fn take_fault(&mut self) -> Option<io::Error> {
        self.fault.take()
    }

    // --- frames ---------------------------------------------------------------------------------------

    /// Parses a packet and gives it a slot.
    fn take(&mut self, now: Instant, host: HostId, octets: &[u8]) -> Result<LiveFrame, Refused> {
        let headers = parse(octets).map_err(Refused::Malformed)?;
        if octets.len() > self.largest[host.class] {
            return Err(Refused::Oversize);
        }
        if self.begins_connection(host, octets) {
            self.take_in_announced();
        }
        let store = &mut self.store;
        let slot = store.pool.store(&octets[..usize::from(headers.total_len)]).ok_or(Refused::NoSlot)?;
        let owner = store.flow_table.owner(now, host, &headers, octets);
        let mut frame = LiveFrame::new(slot, &headers, host, owner, store.routes.begin(host));
        store.fates.sent.count(frame.wire_len());
        let sent = &mut store.books(&frame).sent;
        let number = sent.packets;
        count(sent, frame.wire_len());
        let flow = store.flow_table.captured_as(host.class, owner);
        frame.id = packet_id(flow, host.side == End::Server, number);
        let of_no_flow = store.flow_table.flow(host.class, owner.flow).is_none();
        if host.side == End::Client && !of_no_flow && self.autorates.is_reflector(host.class) {
            self.autorates.sent(host.class, flow, number, now);
        }
        let books = &mut store.hosts[host.number()];
        count(&mut books.accepted, frame.wire_len());
        books.fragments += u64::from(headers.fragment);
        books.of_no_flow += u64::from(of_no_flow);
        Ok(frame)
    }

    /// Returns whether a packet is the SYN of a connection with a reused client port.
    fn begins_connection(&self, host: HostId, octets: &[u8]) -> bool {
        host.side == End::Client
            && self.store.flow_table.has_tenants(host.class)
            && tcp_payload(octets).is_some_and(|segment| segment.syn)
    }

    /// Assigns rows to the announced connections: gives each row the connection's own pipes, and forgets
    /// which bytes of earlier connections were delivered.
    fn take_in_announced(&mut self) {
        let Some(announced) = &mut self.announced else { return };
        while let Ok(mut announcement) = announced.pop() {
            let (class, row) = (usize::from(announcement.class), announcement.row);
            self.store.flow_table.move_in(&announcement);
            if let Some(streams) = self.store.streams[class].get_mut(row as usize) {
                streams.iter_mut().for_each(UniqueBytes::reset);
            }
            for (which, pipe) in (0..).zip(&mut announcement.pipes) {
                let Some(pipe) = pipe.take() else { break };
                let (stage, number) = self.store.flow_table.place(class, row, which);
                let stage = if stage == INSIDE { &mut self.inside } else { &mut self.leaving };
                stage.set_pipe(number as usize, pipe);
            }
        }
    }

    /// Moves a frame to the next step of its path.
    fn forward(&mut self, now: Instant, frame: LiveFrame, out: &mut dyn FrameSink) {
        match self.store.routes.step(frame.place) {
            Step::Own(which) => {
                let pipe = self.store.flow_table.pipe(frame.origin().class, frame.owner(), which);
                self.enter(now, frame, pipe);
            }
            Step::Queue(link) => {
                let link = usize::from(link);
                if let Some(kernel) = &mut self.kernels[link] {
                    self.store.write_header(&frame);
                    if let Err(error) = kernel.offer(self.store.pool.frame(&frame.slot, frame.len())) {
                        self.fault.get_or_insert(error);
                    }
                }
                self.ports[link].arrive(now, frame, &mut self.store.at_port(link));
                self.look_at(now, link);
            }
            Step::Leave => {
                self.report_delivery(now, &frame);
                let limit = self.pace.as_ref().map_or(Span::MAX, Pace::limit);
                self.store.leave(now, frame, self.schedule.is_measuring().then_some(limit), out);
            }
        }
    }

    /// Lets a frame enter a pipe.
    fn enter(&mut self, now: Instant, mut frame: LiveFrame, pipe: u32) {
        frame.enter(pipe);
        let is_last = self.store.routes.step(frame.place) == Step::Leave;
        let stage = if is_last { &mut self.leaving } else { &mut self.inside };
        stage.accept(now, frame, &mut self.store.in_pipes());
    }

    // --- time -----------------------------------------------------------------------------------------

    /// Returns the instant at which the next event occurs: the rate of a link changes, a transmission ends, a link has a
    /// chance to send, a shaper wakes or a frame comes out of a pipe.
    fn next_event(&self) -> Option<Instant> {
        let turn = self.turns.iter().map(|(_, at, _)| *at).min();
        let adjusted = self.shaped.iter().map(|link| self.autorates.next(*link)).min();
        let pipes = [self.inside.deadline(), self.leaving.deadline()];
        pipes.into_iter().chain([self.next_at_ports(), turn, adjusted]).flatten().min()
    }

    /// Returns the instant of the next end of a transmission or of the next wake-up of a shaper.
    fn next_at_ports(&self) -> Option<Instant> {
        self.ports.iter().filter_map(Port::next_event).min()
    }

    /// Executes one of the events at `at`. Changes of rates come first, of each link before its shaper, then departures, in the order of their links'
    /// numbers, and then arrivals, in the order of their pipes' numbers.
    fn happen(&mut self, at: Instant, out: &mut dyn FrameSink) {
        let turn = |kind| self.turns.iter().position(|(_, due, turn)| (*due, *turn) == (at, kind));
        let adjusted = self.shaped.iter().copied().find(|link| self.autorates.next(*link) == at);
        if let Some(place) = turn(Turn::Rate)
            && adjusted.is_none_or(|link| self.turns[place].0 <= link)
        {
            return self.change_rate(at, place);
        }
        if let Some(link) = adjusted {
            self.autorates.act(link, at, &mut self.ports[link], &mut self.store.at_port(link));
            return self.look_at(at, link);
        }
        let departure = self.ports.iter().position(|port| port.next_event() == Some(at));
        if let Some(place) = turn(Turn::Chance)
            && departure.is_none_or(|link| self.turns[place].0 <= link)
        {
            return self.take_chance(at, place);
        }
        match departure {
            Some(link) => self.serve(at, link),
            None => {
                let due = self.inside.release(at).or_else(|| self.leaving.release(at));
                let (due, frame) = due.expect("something is due");
                self.forward(due, frame, out);
            }
        }
    }

    /// Executes an event at a link, which has sent a frame or whose shaper wakes.
    fn serve(&mut self, now: Instant, link: usize) {
        let port = &mut self.ports[link];
        if !port.is_sending() {
            port.wake(now, &mut self.store.at_port(link));
            return self.look_at(now, link);
        }
        let departure = port.link_free(now, &mut self.store.at_port(link));
        if let Some(kernel) = &mut self.kernels[link]
            && departure.next_end.is_none()
        {
            kernel.has_become_idle(now);
        }
        // The first pipes belong to the links.
        self.enter(now, departure.packet, link as u32);
        self.look_at(now, link);
    }

    /// Changes the rate of a link, whose turn is the one at `place`.
    fn change_rate(&mut self, now: Instant, place: usize) {
        let link = self.turns[place].0;
        self.changing.change(link, now, &mut self.ports[link], &mut self.store.at_port(link));
        self.end_turn(place);
        if let Some(pace) = &mut self.pace {
            pace.change(rates(&self.changing, &self.ports));
        }
        self.look_at(now, link);
    }

    /// Reports to controllers of shapers that a frame of their reflectors has reached its receiver.
    fn report_delivery(&mut self, now: Instant, frame: &LiveFrame) {
        let host = frame.origin();
        if host.side == End::Client && self.autorates.is_reflector(host.class) {
            let (flow, number) = of_packet_id(frame.id);
            self.autorates.delivered(host.class, flow, number, now, |_, _| ());
        }
    }

    /// Lets a link send at a chance, which is its turn at `place`.
    fn take_chance(&mut self, now: Instant, place: usize) {
        let link = self.turns[place].0;
        let mut left = self.changing.chance(link, now, &mut self.ports[link]);
        self.end_turn(place);
        while let Some(departure) = self.ports[link].use_chance(now, &mut left, &mut self.store.at_port(link))
        {
            self.enter(now, departure.packet, link as u32);
        }
        self.look_at(now, link);
    }

    /// Replaces a turn that has been taken by its link's next turn.
    fn end_turn(&mut self, place: usize) {
        let link = self.turns[place].0;
        match self.changing.next(link) {
            Some((at, turn)) => self.turns[place] = (link, at, turn),
            None => _ = self.turns.remove(place),
        }
    }

    /// Ends the run if this link's queue, which has just changed, has reached the count that ends the run.
    fn look_at(&mut self, now: Instant, link: usize) {
        let reached = |stop: &QueueStop| *stop.link == link && queue_stop_is_reached(stop, &self.ports[link]);
        if self.condition.as_ref().is_some_and(reached) && self.schedule.is_measuring() {
            self.freeze(now, StoppedBy::Condition);
        }
    }

    // --- samplers -------------------------------------------------------------------------------------

    /// Executes the milestones of the run's schedule that come before `at`.
    fn reach_before(&mut self, at: Instant) {
        while let Some((due, milestone)) = self.schedule.next().filter(|(due, _)| *due < at) {
            self.reach(due, milestone);
        }
    }

    fn reach(&mut self, at: Instant, milestone: Milestone) {
        match milestone {
            Milestone::SampleQueues => {
                self.tables.sample(at, self.ports.iter());
                self.changing.sample(at);
            }
            Milestone::SampleFlows => {} // The traffic generator takes these samples.
            Milestone::WarmupEnd => {
                self.tables.warmup_ended(self.ports.iter());
                self.autorates.warmup_ended(self.ports.iter());
                self.ports.iter_mut().for_each(|port| port.measure_from(at));
                self.changing.measure_from(at, self.ports.iter());
                for (then, now) in self.at_warmup.iter_mut().zip(&self.store.flows) {
                    then.copy_from_slice(now);
                }
            }
            Milestone::End => return self.freeze(at, StoppedBy::Time),
        }
        self.schedule.pass(milestone);
    }

    /// Ends the measured interval, and keeps the present state for the record.
    fn freeze(&mut self, at: Instant, why: StoppedBy) {
        if at < self.schedule.t0() {
            // The run ended during the warm-up, so nothing is measured.
            self.reach(at, Milestone::WarmupEnd);
        }
        self.end_measuring(at, why);
    }

    /// Ends the measured interval, which has begun, and keeps the present state for the record.
    pub(super) fn end_measuring(&mut self, at: Instant, why: StoppedBy) {
        self.schedule.end(at, why);
        self.ports.iter_mut().for_each(|port| port.settle(at));
        self.frozen = Some(self.as_it_is(at));
    }

    /// Returns the number of frames in the network according to the counts of ports and pipes.
    pub(super) fn resident(&self) -> Tally {
        let (inside, leaving) = (self.inside.backlog(), self.leaving.backlog());
        let mut tally =
            Tally { packets: inside.packets + leaving.packets, bytes: inside.bytes + leaving.bytes };
        for port in &self.ports {
            let backlog = port.backlog();
            tally.packets += backlog.packets;
            tally.bytes += backlog.bytes;
            if let Some(frame) = port.in_transmission() {
                tally.count(frame.wire_len());
            }
        }
        tally
    }

    /// Returns the present instant.
    pub(super) const fn now(&self) -> Instant {
        self.now
    }
}

/// Returns the present rates of links, zero for those that stand still. A link that sends at chances has its mean rate.
fn rates<'a>(changing: &'a ChangingLinks, ports: &'a [Port<LiveFrame>]) -> impl Fn(usize) -> Rate + 'a {
    |link| changing.rate(link).unwrap_or_else(|| ports[link].rate())
}

/// Returns the port of each link and, for each link with a kernel's queue, that queue.
#[expect(clippy::type_complexity, reason = "the two lists go into two fields of the router")]
fn queues(
    plan: &Plan,
    seed: u64,
    registry: &Registry<Stamped<LiveFrame>>,
    budget: &FrameBudget,
    flow_table: &FlowTable,
) -> Result<(Vec<Port<LiveFrame>>, Vec<Option<KernelQueue>>), LiveError> {
    let mut ports = Vec::with_capacity(plan.links.len());
    let mut kernels = Vec::with_capacity(plan.links.len());
    for (number, link) in plan.links.iter().enumerate() {
        let (discipline, kernel) = match link.kernel_spec() {
            Some(spec) => {
                let (kernel, mirror) = KernelQueue::new(Habits::of(&spec));
                (Discipline::Custom(Box::new(mirror)), Some(kernel))
            }
            None => (link.discipline(seed, registry).map_err(LiveError::Discipline)?, None),
        };
        kernels.push(kernel);
        let mut port = Port::new(discipline, link.rate, link.overhead, plan.classes.len());
        port.reserve(budget.frames, flow_table.across(plan, number));
        ports.push(port);
    }
    Ok((ports, kernels))
}

/// Returns the store of the frames, with the books of all flows; class number `i` has `rows[i]` client ports.
fn store(
    plan: &Plan,
    routes: Routes,
    flow_table: FlowTable,
    rows: &[u32],
    budget: &FrameBudget,
) -> FrameStore {
    let flows = (0..plan.classes.len()).map(|class| vec![<_>::default(); flow_table.books(class)]).collect();
    let streams = |(class, rows): (&ClassPlan, &u32)| match class.traffic.tcp() {
        Some(_) => (0..*rows).map(|_| [(); 2].map(|()| UniqueBytes::with_room(HOLES))).collect(),
        None => Vec::new(),
    };
    FrameStore {
        pool: FramePool::new(budget.frames, budget.largest.iter().copied().max().unwrap_or(0)),
        routes,
        flow_table,
        fates: Fates::default(),
        hosts: vec![HostBooks::default(); 2 * plan.classes.len()],
        flows,
        streams: plan.classes.iter().zip(rows).map(streams).collect(),
        observer: None,
    }
}

/// Checks that the pipes of each row fit into an announcement.
fn check_pipes(plan: &Plan, routes: &Routes) -> Result<(), LiveError> {
    let pipes = |class| routes.pipes(class).len();
    let Some(class) = (0..plan.classes.len()).find(|&class| pipes(class) > MOST_PIPES) else { return Ok(()) };
    Err(LiveError::Unsupported(format!(
        "each flow of class \"{}\" has {} access links and delay stages of its own, but may have at most {MOST_PIPES}",
        plan.classes[class].name,
        pipes(class)
    )))
}

/// Returns an empty stage that consists of these pipes and has room for all frames.
fn stage(pipes: Vec<Pipe>, budget: &FrameBudget) -> Stage {
    let mut stage: Stage =
        DelayStage::new(pipes, |frame| frame.pipe as usize, Packets::new(budget.frames as u64));
    stage.reserve(budget.frames);
    stage
}
