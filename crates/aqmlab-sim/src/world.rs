//! The simulation loop: takes the next event, lets it happen, schedules what follows.

use aqmlab_qdisc::{Ecn, Packet, Passage, Registry};
use aqmlab_random::Stream;
use aqmlab_scenario::{Plan, QueueCount, Workload};
use aqmlab_traffic::PacketSource;
use aqmlab_transport::{ENDLESS, Endpoint, Role, StreamEvent};
use aqmlab_units::{Bytes, Instant};

use crate::control::Control;
use crate::event::{End, Event, EventQueue, FlowRef, Key, Rank};
use crate::fates::{Fates, Tally, Witness};
use crate::flow::{AccessLink, AccessLinks, Body, Connection, Datagrams, Flow, FlowCounts, FlowTable};
use crate::network::{self, Class, Link};
use crate::packet::{FlowId, PortPacket, SimPacket, Slab, Toward};
use crate::recorder::Recorder;
use crate::run::RunError;

/// Events between two looks at the control.
const CONTROL_INTERVAL: u64 = 1 << 16;

/// Why a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StoppedBy {
    /// Its time was over.
    Time,
    /// Enough flows of a class had completed.
    Completed,
    /// A count at a queue was reached.
    Condition,
}

/// Events to come and the packets that they carry.
pub struct Agenda<Q: EventQueue> {
    queue: Q,
    slab: Slab,
    /// The number of links: flows' objects are numbered behind them.
    links: u64,
}

/// What of a flow has timers: the low bits of its object's number in the order of events. A flow's access links
/// ([`AccessLink`]) have the same low bits in the rank of arrivals; ranks keep them apart.
#[derive(Clone, Copy)]
enum FlowObject {
    Sender = 0,
    Receiver = 1,
    Source = 2,
    Start = 3,
    Stop = 4,
}

const OBJECTS_PER_FLOW: u64 = 8;

impl<Q: EventQueue> Agenda<Q> {
    #[inline]
    fn flow_object(&self, number: u32, object: u64) -> u64 {
        self.links + u64::from(number) * OBJECTS_PER_FLOW + object
    }

    #[inline]
    fn arrival(&mut self, key: Key, packet: SimPacket) {
        let packet = self.slab.put(packet);
        self.queue.push(key, Event::Arrive { packet });
    }

    /// An event of a flow in the rank of timers. Each object has one valid event, so their turn is always 0; a
    /// superseded one may share its key with its successor, and is the same event.
    #[inline]
    fn timer(&mut self, at: Instant, number: u32, object: FlowObject, event: Event) {
        let object = self.flow_object(number, object as u64);
        self.queue.push(Key::new(at, Rank::Timer, object, 0), event);
    }

    /// A packet enters one of its flow's own links at `at`: its arrival at the other end is scheduled. False
    /// if the link lost it.
    #[inline]
    fn over_access(
        &mut self,
        access: &mut AccessLinks,
        which: AccessLink,
        at: Instant,
        mut packet: SimPacket,
    ) -> bool {
        match access.pipes[which as usize].pass(at, packet.wire_len()) {
            Passage::Lost => false,
            Passage::Due(due) => {
                packet.pass();
                let object = self.flow_object(packet.flow().number, which as u64);
                let turn = access.turns[which as usize].take(due);
                self.arrival(Key::new(due, Rank::Arrival, object, turn), packet);
                true
            }
        }
    }
}

/// A network in motion.
pub struct World<'a, Q: EventQueue> {
    plan: &'a Plan,
    seed: u64,
    now: Instant,
    agenda: Agenda<Q>,
    /// A packet that leaves the last link of its path goes over its flow's access link at once, without an
    /// event in between: nothing else can feed that link, and it cannot drop.
    fused: bool,
    /// Every link with its port.
    pub links: Vec<Link>,
    classes: Vec<Class>,
    /// Every living flow.
    pub flows: FlowTable,
    /// End-to-end books.
    pub fates: Fates,
    /// What goes into the recording.
    pub recorder: Recorder,
    /// Packets of flows without access links on their way into the first queue.
    outbox: Vec<SimPacket>,
    /// Flows completed since the end of the warm-up, by class.
    completed: Vec<u64>,
    /// Events processed: a figure of the engine, not of the network.
    pub events: u64,
    /// Is the warm-up over?
    measuring: bool,
    /// The link that a stop condition watches.
    watched: Option<u32>,
    stopped_by: Option<StoppedBy>,
}

impl<'a, Q: EventQueue> World<'a, Q> {
    /// The network of `plan` at time zero.
    ///
    /// # Errors
    /// If a discipline refuses its parameters.
    pub fn new(
        plan: &'a Plan,
        seed: u64,
        queue: Q,
        fused: bool,
        registry: &Registry<PortPacket>,
    ) -> Result<Self, RunError> {
        let links = network::links(plan, seed, registry).map_err(RunError::Discipline)?;
        let agenda = Agenda { queue, slab: Slab::default(), links: links.len() as u64 };
        let mut world = World {
            plan,
            seed,
            now: Instant::ZERO,
            agenda,
            fused,
            links,
            classes: network::classes(plan, seed),
            flows: FlowTable::default(),
            fates: Fates::default(),
            recorder: Recorder::new(plan),
            outbox: Vec::new(),
            completed: vec![0; plan.classes.len()],
            events: 0,
            measuring: false,
            watched: None,
            stopped_by: None,
        };
        world.schedule_first_events();
        Ok(world)
    }

    fn schedule_first_events(&mut self) {
        for class in 0..self.classes.len() {
            self.schedule_next_start(class as u32);
        }
        let begin = Instant::ZERO + self.plan.warmup;
        if self.plan.warmup.is_zero() {
            self.begin_measuring();
        } else {
            self.schedule_sampler(begin, Event::WarmupEnd);
        }
        self.schedule_sample(Event::SampleQueues);
        self.schedule_sample(Event::SampleFlows);
        self.schedule_sampler(Instant::ZERO + self.plan.stop.at, Event::End);
    }

    /// Runs to the end.
    ///
    /// # Errors
    /// [`RunError::Cancelled`], or [`RunError::Memory`] when the run's tables outgrow the control's cap.
    pub fn run(&mut self, control: &Control) -> Result<StoppedBy, RunError> {
        while let Some((key, event)) = self.agenda.queue.pop() {
            debug_assert!(key.at >= self.now, "time ran backwards");
            self.now = key.at;
            self.events += 1;
            self.handle(event);
            if let Some(why) = self.stopped_by {
                control.report(self.events, self.now.as_ns());
                return Ok(why);
            }
            if self.events.is_multiple_of(CONTROL_INTERVAL) {
                self.look_at(control)?;
            }
        }
        unreachable!("the end of the run is an event")
    }

    #[cold]
    fn look_at(&self, control: &Control) -> Result<(), RunError> {
        control.report(self.events, self.now.as_ns());
        if control.is_cancelled() {
            return Err(RunError::Cancelled);
        }
        let used = self.memory_bytes();
        match control.cap() {
            Some(cap) if used > cap => Err(RunError::Memory { used, cap }),
            _ => Ok(()),
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Arrive { packet } => {
                let packet = self.agenda.slab.take(packet);
                self.forward(packet);
            }
            Event::LinkFree { link } => self.link_free(link),
            Event::EndpointTimer { flow, end } => self.endpoint_timer(flow, end),
            Event::LinkDeadline { link } => self.link_deadline(link),
            Event::Emit { flow } => self.emit(flow),
            Event::Start { class } => self.start(class),
            Event::StopSending { flow } => self.stop_sending(flow),
            Event::WarmupEnd => self.end_warmup(),
            Event::SampleQueues => {
                self.recorder.sample_queues(self.now, &self.links);
                self.schedule_sample(event);
            }
            Event::SampleFlows => {
                self.recorder.sample_flows(self.now, &self.flows);
                self.schedule_sample(event);
            }
            Event::End => self.stopped_by = Some(StoppedBy::Time),
        }
    }

    /// The current time.
    pub fn now(&self) -> Instant {
        self.now
    }

    // --- samplers -------------------------------------------------------------------------------------

    /// Samplers of one instant go in this order: queues, flows, end of the warm-up, end of the run.
    fn schedule_sampler(&mut self, at: Instant, event: Event) {
        let turn = match event {
            Event::SampleQueues => 0,
            Event::SampleFlows => 1,
            Event::WarmupEnd => 2,
            _ => 3,
        };
        self.agenda.queue.push(Key::new(at, Rank::Sampler, 0, turn), event);
    }

    fn schedule_sample(&mut self, event: Event) {
        let interval = match event {
            Event::SampleQueues => self.plan.record.queues,
            _ => self.plan.record.flows,
        };
        if !interval.is_zero() {
            self.schedule_sampler(self.now + interval, event);
        }
    }

    fn end_warmup(&mut self) {
        self.recorder.warmup_ended(&self.links);
        for link in &mut self.links {
            link.port.measure_from(self.now);
        }
        for flow in self.flows.iter_mut() {
            flow.at_warmup = flow.counts();
        }
        self.begin_measuring();
    }

    /// From now on completed flows count, and the stop condition's link is watched.
    fn begin_measuring(&mut self) {
        self.measuring = true;
        self.watched = self.plan.stop.condition.as_ref().map(|stop| stop.link as u32);
    }

    // --- links ----------------------------------------------------------------------------------------

    /// A packet reaches the queue of a link.
    fn enqueue(&mut self, link: u32, packet: SimPacket) {
        let port = &mut self.links[link as usize].port;
        let mut witness = Witness { fates: &mut self.fates, flows: &mut self.flows };
        let free_at = port.arrive(self.now, packet, &mut witness);
        self.schedule_link(link, free_at);
    }

    /// The link has sent a packet to the last bit: it travels on, and the next one starts.
    fn link_free(&mut self, link: u32) {
        let l = &mut self.links[link as usize];
        let mut witness = Witness { fates: &mut self.fates, flows: &mut self.flows };
        let departure = l.port.link_free(self.now, &mut witness);
        let mut packet = departure.packet;
        packet.pass();
        let at = self.now + l.delay;
        let class = &self.classes[usize::from(packet.flow().class)];
        let toward = packet.toward();
        if self.fused && class.has_access && usize::from(packet.hops()) == class.path(toward).len() + 1 {
            let flow = self.flows.of_packet(packet.flow().slot);
            let access = flow.access.as_mut().expect("the class has access links");
            let arrives = self.agenda.over_access(access, AccessLink::last(toward), at, packet);
            debug_assert!(arrives, "the last access link does not lose");
        } else {
            let turn = l.turns.take(at);
            self.agenda.arrival(Key::new(at, Rank::Arrival, u64::from(link), turn), packet);
        }
        self.schedule_link(link, departure.next_end);
    }

    /// The instant that a shaper asked for.
    fn link_deadline(&mut self, link: u32) {
        let l = &mut self.links[link as usize];
        if l.deadline != Some(self.now) {
            return;
        }
        l.deadline = None;
        let mut witness = Witness { fates: &mut self.fates, flows: &mut self.flows };
        let free_at = l.port.wake(self.now, &mut witness);
        self.schedule_link(link, free_at);
    }

    /// After each change of a port: schedules the end of a transmission that has begun; if none has, the
    /// deadline of a shaper.
    #[inline]
    fn schedule_link(&mut self, link: u32, free_at: Option<Instant>) {
        if let Some(at) = free_at {
            let key = Key::new(at, Rank::Departure, u64::from(link), 0);
            self.agenda.queue.push(key, Event::LinkFree { link });
        } else {
            self.schedule_deadline(link);
        }
        if self.watched == Some(link) {
            self.check_queue_stop(link);
        }
        self.reap();
    }

    fn schedule_deadline(&mut self, link: u32) {
        let l = &mut self.links[link as usize];
        if !l.port.is_sending()
            && let Some(at) = l.port.next_event()
            && l.deadline.is_none_or(|pending| at < pending)
        {
            l.deadline = Some(at);
            let key = Key::new(at, Rank::Departure, u64::from(link), 1);
            self.agenda.queue.push(key, Event::LinkDeadline { link });
        }
    }

    fn check_queue_stop(&mut self, link: u32) {
        let Some(stop) = &self.plan.stop.condition else { return };
        let port = &self.links[link as usize].port;
        let count: u64 = match stop.quantity {
            QueueCount::Arrivals => port.books().classes().iter().map(|c| c.arrived.packets).sum(),
            QueueCount::Drops => port.books().classes().iter().map(|c| c.dropped_total().packets).sum(),
            QueueCount::Marks => port.books().classes().iter().map(|c| c.marked_total().packets).sum(),
            QueueCount::Backlog => port.backlog().packets.get(),
        };
        if count >= stop.count {
            self.stopped_by = Some(StoppedBy::Condition);
        }
    }

    // --- packets on their way -------------------------------------------------------------------------

    /// Moves a packet that has arrived: into the next queue on its path, over the last access link, or to its
    /// host.
    #[inline]
    fn forward(&mut self, packet: SimPacket) {
        let class = &self.classes[usize::from(packet.flow().class)];
        let toward = packet.toward();
        let path = class.path(toward);
        let passed = usize::from(packet.hops()) - usize::from(class.has_access);
        if let Some(&link) = path.get(passed) {
            self.enqueue(link, packet);
        } else if class.has_access && passed == path.len() {
            let flow = self.flows.of_packet(packet.flow().slot);
            let access = flow.access.as_mut().expect("the class has access links");
            self.agenda.over_access(access, AccessLink::last(toward), self.now, packet);
        } else {
            self.deliver(packet);
        }
    }

    /// A packet reaches its host.
    fn deliver(&mut self, packet: SimPacket) {
        self.fates.delivered.count(packet.wire_len());
        self.fates.packet_hops += u64::from(packet.hops());
        let FlowId { slot, class, .. } = packet.flow();
        let flow = self.flows.of_packet(slot);
        match (&mut flow.body, packet.segment()) {
            (Body::Packets(d), None) => d.delivered_bytes += packet.wire_len(),
            (Body::Tcp(connection), Some(segment)) => {
                let end = match packet.toward() {
                    Toward::Receiver => End::Receiver,
                    Toward::Sender => End::Sender,
                };
                let tcp = self.classes[usize::from(class)].tcp.as_deref().expect("a class of connections");
                connection.endpoint(end).on_segment(self.now, &segment, packet.ecn() == Ecn::Ce, tcp);
                self.drain(slot, end);
            }
            _ => unreachable!("a flow receives what it sends"),
        }
        self.flows.packet_gone(slot);
        self.reap();
    }

    /// Takes out flows whose last packet has gone.
    #[inline]
    fn reap(&mut self) {
        if self.flows.has_finished() {
            self.record_finished();
        }
    }

    #[cold]
    fn record_finished(&mut self) {
        while let Some(gone) = self.flows.reap() {
            self.recorder.flow_ended(&gone);
        }
    }

    // --- flows ----------------------------------------------------------------------------------------

    fn schedule_next_start(&mut self, class: u32) {
        let c = &self.classes[class as usize];
        if let Some(&(at, index)) = c.starts.last() {
            let number = c.first_number + index;
            self.agenda.timer(at, number, FlowObject::Start, Event::Start { class });
        }
    }

    /// The next flow of a class begins.
    fn start(&mut self, class: u32) {
        let c = &mut self.classes[class as usize];
        let (_, index) = c.starts.pop().expect("a start event has a start");
        let number = c.first_number + index;
        let plan = &self.plan.classes[class as usize];
        let (base_rtt, access) = network::access(plan, c.propagation, index, self.seed);
        let body = match (&plan.workload, &c.tcp) {
            (Workload::Packets { rate, sizes, spacing }, _) => {
                let draws = |what| {
                    Stream::indexed(self.seed, &format!("traffic/{}/{what}", plan.name), u64::from(index))
                };
                let source =
                    PacketSource::new(*rate, *sizes, *spacing, self.now, draws("gap"), draws("size"));
                Body::Packets(Datagrams::new(source))
            }
            (Workload::Bulk { tcp, .. }, _) => Body::Tcp(Box::new(Connection {
                sender: Endpoint::new(Role::Active, tcp),
                receiver: Endpoint::new(Role::Passive, tcp),
                armed: [Instant::FAR_FUTURE; 2],
                closed: [false; 2],
            })),
        };
        let flow = self.flows.insert(|slot| Flow {
            id: FlowId { slot, number, class: class as u16 },
            index,
            in_flight: 0,
            over: false,
            start: self.now,
            completed: None,
            base_rtt,
            access,
            body,
            at_warmup: FlowCounts::default(),
        });
        if let Some(stop_at) = plan.stop_at {
            let at = (Instant::ZERO + stop_at).max(self.now);
            self.agenda.timer(at, number, FlowObject::Stop, Event::StopSending { flow });
        }
        self.begin(flow);
        self.schedule_next_start(class);
    }

    /// The application's first act.
    fn begin(&mut self, flow: FlowRef) {
        let f = self.flows.of_packet(flow.slot);
        let workload = &self.plan.classes[usize::from(f.id.class)].workload;
        match (&mut f.body, workload) {
            (Body::Tcp(connection), Workload::Bulk { bytes, tcp, .. }) => {
                connection.sender.write(bytes.map_or(ENDLESS, Bytes::get));
                if bytes.is_some() {
                    connection.sender.close();
                }
                connection.sender.open(self.now, tcp);
                self.drain(flow.slot, End::Sender);
            }
            (Body::Packets(d), _) => {
                let at = d.source.next_at();
                let number = f.id.number;
                self.agenda.timer(at, number, FlowObject::Source, Event::Emit { flow });
            }
            _ => unreachable!("a flow's body is made from its workload"),
        }
    }

    /// A source's packet is due.
    fn emit(&mut self, flow: FlowRef) {
        let Some(f) = self.flows.get_mut(flow) else { return };
        let Body::Packets(d) = &mut f.body else { return };
        if d.stopped {
            return;
        }
        let wire_len = d.emit();
        self.agenda.timer(d.source.next_at(), f.id.number, FlowObject::Source, Event::Emit { flow });
        let packet = SimPacket::datagram(f.id, wire_len);
        f.in_flight += 1;
        self.fates.sent.count(wire_len);
        match &mut f.access {
            None => self.forward(packet),
            Some(access) => {
                if !self.agenda.over_access(access, AccessLink::SenderOut, self.now, packet) {
                    self.lose(packet);
                }
            }
        }
    }

    /// A packet is lost on its flow's own link.
    fn lose(&mut self, packet: SimPacket) {
        self.fates.dropped.count(packet.wire_len());
        self.flows.packet_gone(packet.flow().slot);
    }

    fn stop_sending(&mut self, flow: FlowRef) {
        let Some(f) = self.flows.get_mut(flow) else { return };
        match &mut f.body {
            Body::Packets(d) => d.stopped = true,
            Body::Tcp(connection) => {
                connection.sender.close();
                self.drain(flow.slot, End::Sender);
                self.reap();
            }
        }
    }

    fn endpoint_timer(&mut self, flow: FlowRef, end: End) {
        let Some(f) = self.flows.get_mut(flow) else { return };
        let class = f.id.class;
        let Body::Tcp(connection) = &mut f.body else { return };
        if connection.armed[end as usize] != self.now {
            return; // superseded by an earlier one
        }
        connection.armed[end as usize] = Instant::FAR_FUTURE;
        let endpoint = connection.endpoint(end);
        if endpoint.deadline().is_some_and(|at| at <= self.now) {
            let tcp = self.classes[usize::from(class)].tcp.as_deref().expect("a class of connections");
            endpoint.on_timer(self.now, tcp);
        }
        self.drain(flow.slot, end);
        self.reap();
    }

    /// After each change of an endpoint: sends what it has to send, hears what it has to tell, and sees to
    /// its timer.
    fn drain(&mut self, slot: u32, end: End) {
        let reference = self.flows.reference(slot);
        let flow = self.flows.of_packet(slot);
        let id = flow.id;
        let tcp = self.classes[usize::from(id.class)].tcp.as_deref().expect("a class of connections");
        let Body::Tcp(connection) = &mut flow.body else { return };
        let (toward, out) = match end {
            End::Sender => (Toward::Receiver, AccessLink::SenderOut),
            End::Receiver => (Toward::Sender, AccessLink::ReceiverOut),
        };
        let mut lost = 0;
        let mut completed = false;
        loop {
            let endpoint = connection.endpoint(end);
            while let Some(segment) = endpoint.poll_transmit(self.now, tcp) {
                let packet = SimPacket::tcp(id, toward, &segment, tcp.header);
                flow.in_flight += 1;
                self.fates.sent.count(packet.wire_len());
                match &mut flow.access {
                    None => self.outbox.push(packet),
                    Some(access) => {
                        if !self.agenda.over_access(access, out, self.now, packet) {
                            self.fates.dropped.count(packet.wire_len());
                            lost += 1;
                        }
                    }
                }
            }
            // The receiving application closes when it has been told that its peer has.
            let mut peer_closed = false;
            while let Some(event) = endpoint.poll_event() {
                match event {
                    StreamEvent::PeerClosed => peer_closed = true,
                    StreamEvent::Closed | StreamEvent::Reset | StreamEvent::Aborted => {
                        connection.closed[end as usize] = true;
                        break;
                    }
                    _ => {}
                }
            }
            if !peer_closed {
                break;
            }
            connection.endpoint(end).close();
            if end == End::Receiver && flow.completed.is_none() {
                flow.completed = Some(self.now);
                completed = true;
            }
        }
        flow.in_flight -= lost;
        // One valid timer event an endpoint: made when the deadline comes before the pending one; when that
        // fires early, it is made again.
        if let Some(at) = connection.endpoint(end).deadline() {
            let at = at.max(self.now);
            let armed = &mut connection.armed[end as usize];
            if at < *armed {
                *armed = at;
                let object = if end == End::Sender { FlowObject::Sender } else { FlowObject::Receiver };
                let event = Event::EndpointTimer { flow: reference, end };
                self.agenda.timer(at, id.number, object, event);
            }
        }
        let over = connection.closed == [true; 2];
        if over {
            self.flows.end(slot);
        }
        if completed {
            self.count_completed(id.class);
        }
        self.send_outbox();
    }

    /// Packets of flows without access links enter their first queue.
    #[inline]
    fn send_outbox(&mut self) {
        if self.outbox.is_empty() {
            return;
        }
        let mut outbox = std::mem::take(&mut self.outbox);
        for packet in outbox.drain(..) {
            self.forward(packet);
        }
        self.outbox = outbox;
    }

    /// A receiver has got all that its sender had to send.
    fn count_completed(&mut self, class: u16) {
        if !self.measuring {
            return;
        }
        self.completed[usize::from(class)] += 1;
        if let Some(stop) = &self.plan.stop.completed
            && stop.class == usize::from(class)
            && self.completed[stop.class] >= stop.count
        {
            self.stopped_by = Some(StoppedBy::Completed);
        }
    }

    // --- the end --------------------------------------------------------------------------------------

    /// What is still in the network: on links, in access links, in queues and in transmission.
    pub fn resident(&self) -> Tally {
        let slab = &self.agenda.slab;
        let mut tally = Tally { packets: aqmlab_units::Packets::new(slab.len()), bytes: slab.bytes() };
        for link in &self.links {
            let backlog = link.port.backlog();
            tally.packets += backlog.packets;
            tally.bytes += backlog.bytes;
            if let Some(packet) = link.port.in_transmission() {
                tally.count(packet.wire_len());
            }
        }
        tally
    }

    /// Bytes that the run's own tables take now, estimated from their lengths.
    fn memory_bytes(&self) -> u64 {
        let agenda = self.agenda.queue.memory_bytes() + self.agenda.slab.memory_bytes();
        let waiting: u64 = self.links.iter().map(|l| l.port.backlog().packets.get()).sum();
        let queues = waiting as usize * size_of::<PortPacket>();
        let starts: usize = self.classes.iter().map(|c| size_of_val(&*c.starts)).sum();
        (agenda + queues + starts + self.flows.memory_bytes() + self.recorder.memory_bytes()) as u64
    }
}
