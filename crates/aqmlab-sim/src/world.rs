//! The simulation loop: takes the next event, lets it happen, schedules what follows.

use aqmlab_qdisc::{Passage, Registry};
use aqmlab_random::Stream;
use aqmlab_scenario::{Plan, QueueCount, Workload};
use aqmlab_traffic::PacketSource;
use aqmlab_transport::{ENDLESS, Endpoint, Role, Segment, StreamEvent};
use aqmlab_units::{Bytes, Instant};

use crate::control::Control;
use crate::event::{End, Event, EventQueue, FlowRef, Key, Rank};
use crate::fates::{Fates, Tally};
use crate::flow::{AccessLink, Body, Connection, Datagrams, Flow, FlowCounts, FlowTable};
use crate::network::{self, Class, Link};
use crate::packet::{Payload, PortPacket, SimPacket, Slab, Toward};
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

/// A network in motion.
pub struct World<'a, Q: EventQueue> {
    plan: &'a Plan,
    seed: u64,
    now: Instant,
    queue: Q,
    /// Every link with its port.
    pub links: Vec<Link>,
    classes: Vec<Class>,
    /// Every living flow.
    pub flows: FlowTable,
    slab: Slab,
    /// End-to-end books.
    pub fates: Fates,
    /// What goes into the recording.
    pub recorder: Recorder,
    /// Flows completed, by class.
    completed: Vec<u64>,
    sampler_events: u64,
    /// Events processed.
    pub events: u64,
    /// Packets that have passed a link, access links included.
    pub packet_hops: u64,
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
        registry: &Registry<PortPacket>,
    ) -> Result<Self, RunError> {
        let links = network::links(plan, seed, registry).map_err(RunError::Discipline)?;
        let classes = network::classes(plan, seed);
        let mut world = World {
            plan,
            seed,
            now: Instant::ZERO,
            queue,
            links,
            classes,
            flows: FlowTable::default(),
            slab: Slab::default(),
            fates: Fates::default(),
            recorder: Recorder::new(plan),
            completed: vec![0; plan.classes.len()],
            sampler_events: 0,
            events: 0,
            packet_hops: 0,
            stopped_by: None,
        };
        world.schedule_first_events();
        Ok(world)
    }

    fn schedule_first_events(&mut self) {
        for class in 0..self.classes.len() {
            self.schedule_next_start(class as u32);
        }
        // The order of these pushes is the order of the samplers at one instant.
        if !self.plan.warmup.is_zero() {
            self.schedule_sampler(Instant::ZERO + self.plan.warmup, Event::WarmupEnd);
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
        while let Some((key, event)) = self.queue.pop() {
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
            Event::LinkFree { link } => self.link_free(link),
            Event::LinkDeadline { link } => self.link_deadline(link),
            Event::Arrive { packet } => self.arrive(packet),
            Event::EndpointTimer { flow, end } => self.endpoint_timer(flow, end),
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

    fn schedule_sampler(&mut self, at: Instant, event: Event) {
        self.queue.push(Key::new(at, Rank::Sampler, 0, self.sampler_events), event);
        self.sampler_events += 1;
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
        for link in &mut self.links {
            link.port.measure_from(self.now);
        }
        self.recorder.books_restarted();
        for flow in self.flows.iter_mut() {
            flow.at_warmup = flow.counts();
        }
    }

    // --- links ----------------------------------------------------------------------------------------

    /// A packet reaches the queue of a link.
    fn enqueue(&mut self, link: u32, packet: SimPacket) {
        let port = &mut self.links[link as usize].port;
        let free_at = port.arrive(self.now, packet, &mut self.fates);
        self.schedule_link(link, free_at);
        self.check_queue_stop(link);
    }

    /// The link has sent a packet to the last bit: it travels on, and the next one starts.
    fn link_free(&mut self, link: u32) {
        let l = &mut self.links[link as usize];
        let departure = l.port.link_free(self.now, &mut self.fates);
        let at = self.now + l.delay;
        let key = Key::new(at, Rank::Arrival, u64::from(link), l.departures);
        l.departures += 1;
        let mut packet = departure.packet;
        packet.hop += 1;
        self.packet_hops += 1;
        let place = self.slab.put(packet);
        self.queue.push(key, Event::Arrive { packet: place });
        self.schedule_link(link, departure.next_end);
        self.check_queue_stop(link);
    }

    /// The instant that a shaper asked for.
    fn link_deadline(&mut self, link: u32) {
        let l = &mut self.links[link as usize];
        if l.deadline != Some(self.now) {
            return;
        }
        l.deadline = None;
        let free_at = l.port.wake(self.now, &mut self.fates);
        self.schedule_link(link, free_at);
    }

    /// Schedules the end of a transmission that has begun; if none has, the deadline of a shaper.
    fn schedule_link(&mut self, link: u32, free_at: Option<Instant>) {
        let l = &mut self.links[link as usize];
        if let Some(at) = free_at {
            let key = Key::new(at, Rank::Departure, u64::from(link), l.departures);
            self.queue.push(key, Event::LinkFree { link });
        } else if !l.port.is_sending()
            && let Some(at) = l.port.next_event()
            && l.deadline.is_none_or(|pending| at < pending)
        {
            l.deadline = Some(at);
            l.deadlines += 1;
            let key = Key::new(at, Rank::Departure, u64::from(link), l.deadlines);
            self.queue.push(key, Event::LinkDeadline { link });
        }
    }

    fn check_queue_stop(&mut self, link: u32) {
        let Some(stop) = &self.plan.stop.condition else { return };
        if stop.link != link as usize || self.now < Instant::ZERO + self.plan.warmup {
            return;
        }
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

    /// An endpoint or source hands a packet to the network.
    fn send(&mut self, flow: FlowRef, mut packet: SimPacket) {
        self.fates.sent.count(Bytes::new(u64::from(packet.wire_len)));
        packet.hop = 0;
        let link = match packet.toward {
            Toward::Receiver => AccessLink::SenderOut,
            Toward::Sender => AccessLink::ReceiverOut,
        };
        if !self.through_access(flow, link, packet) {
            self.forward(packet);
        }
    }

    /// Sends a packet over one of its flow's own links; false if the flow has none or is gone.
    fn through_access(&mut self, flow: FlowRef, which: AccessLink, packet: SimPacket) -> bool {
        let Some(f) = self.flows.get_mut(flow) else { return false };
        let Some(access) = &mut f.access else { return false };
        let wire_len = Bytes::new(u64::from(packet.wire_len));
        match access.pipes[which as usize].pass(self.now, wire_len) {
            Passage::Lost => self.fates.dropped.count(wire_len),
            Passage::Due(at) => {
                let counter = &mut access.emitted[which as usize];
                let object = self.plan.links.len() as u64 + u64::from(f.number) * 8 + which as u64;
                let key = Key::new(at, Rank::Arrival, object, u64::from(*counter));
                *counter = counter.wrapping_add(1);
                self.packet_hops += 1;
                let place = self.slab.put(packet);
                self.queue.push(key, Event::Arrive { packet: place });
            }
        }
        true
    }

    /// A packet has arrived where its event said.
    fn arrive(&mut self, place: u32) {
        let packet = self.slab.take(place);
        self.forward(packet);
    }

    /// Moves a packet into the next queue on its path, over the last access link, or to its host.
    fn forward(&mut self, mut packet: SimPacket) {
        let class = &self.classes[packet.class as usize];
        let (path, last) = match packet.toward {
            Toward::Receiver => (&class.path, AccessLink::ReceiverIn),
            Toward::Sender => (&class.return_path, AccessLink::SenderIn),
        };
        let hop = usize::from(packet.hop);
        if hop < path.len() {
            let link = path[hop];
            self.enqueue(link, packet);
            return;
        }
        if hop == path.len() {
            packet.hop += 1;
            if self.through_access(packet.flow, last, packet) {
                return;
            }
        }
        self.deliver(packet);
    }

    /// A packet reaches its host. One whose flow is gone is received and ignored, as by a closed port.
    fn deliver(&mut self, packet: SimPacket) {
        self.fates.delivered.count(Bytes::new(u64::from(packet.wire_len)));
        let Some(flow) = self.flows.get_mut(packet.flow) else { return };
        let ce = packet.ecn == aqmlab_qdisc::Ecn::Ce;
        match (&mut flow.body, packet.payload) {
            (Body::Packets(d), Payload::Udp) => d.delivered_bytes += Bytes::new(u64::from(packet.wire_len)),
            (Body::Tcp(connection), Payload::Tcp(segment)) => {
                let end = match packet.toward {
                    Toward::Receiver => End::Receiver,
                    Toward::Sender => End::Sender,
                };
                let Workload::Bulk { tcp, .. } = &self.plan.classes[packet.class as usize].workload else {
                    unreachable!("a connection belongs to a stream class")
                };
                connection.endpoint(end).on_segment(self.now, &segment, ce, tcp);
                self.drain(packet.flow, end);
            }
            _ => unreachable!("a flow receives what it sends"),
        }
    }

    // --- flows ----------------------------------------------------------------------------------------

    fn schedule_next_start(&mut self, class: u32) {
        if let Some(&(at, index)) = self.classes[class as usize].starts.last() {
            let number = self.classes[class as usize].first_number + index;
            self.queue.push(self.timer_key(at, number, TimerObject::Start, 0), Event::Start { class });
        }
    }

    fn timer_key(&self, at: Instant, number: u32, object: TimerObject, counter: u64) -> Key {
        let base = self.plan.links.len() as u64 + u64::from(number) * 8;
        Key::new(at, Rank::Timer, base + object as u64, counter)
    }

    /// The next flow of a class begins.
    fn start(&mut self, class: u32) {
        let c = &mut self.classes[class as usize];
        let (_, index) = c.starts.pop().expect("a start event has a start");
        let number = c.first_number + index;
        let plan = &self.plan.classes[class as usize];
        let (base_rtt, access) = network::access(plan, c.propagation, index, self.seed);
        let body = match &plan.workload {
            Workload::Bulk { tcp, .. } => Body::Tcp(Box::new(Connection {
                sender: Endpoint::new(Role::Active, tcp),
                receiver: Endpoint::new(Role::Passive, tcp),
                armed: [Instant::FAR_FUTURE; 2],
                timers: [0; 2],
                closed: [false; 2],
            })),
            Workload::Packets { rate, sizes, spacing } => {
                let draws = |what| {
                    Stream::indexed(self.seed, &format!("traffic/{}/{what}", plan.name), u64::from(index))
                };
                let source =
                    PacketSource::new(*rate, *sizes, *spacing, self.now, draws("gap"), draws("size"));
                Body::Packets(Datagrams {
                    source,
                    sent_packets: 0,
                    sent_bytes: Bytes::ZERO,
                    delivered_bytes: Bytes::ZERO,
                    stopped: false,
                })
            }
        };
        let at_warmup = FlowCounts::default();
        let flow = Flow {
            number,
            class: class as u16,
            index,
            start: self.now,
            completed: None,
            base_rtt,
            access,
            body,
            at_warmup,
        };
        let flow = self.flows.insert(flow);
        if let Some(stop_at) = plan.stop_at {
            let at = (Instant::ZERO + stop_at).max(self.now);
            self.queue.push(self.timer_key(at, number, TimerObject::Stop, 0), Event::StopSending { flow });
        }
        self.begin(flow);
        self.schedule_next_start(class);
    }

    /// The application's first act.
    fn begin(&mut self, flow: FlowRef) {
        let f = self.flows.get_mut(flow).expect("the flow has just been made");
        let workload = &self.plan.classes[f.class as usize].workload;
        match (&mut f.body, workload) {
            (Body::Tcp(connection), Workload::Bulk { bytes, tcp, .. }) => {
                connection.sender.write(bytes.map_or(ENDLESS, Bytes::get));
                if bytes.is_some() {
                    connection.sender.close();
                }
                connection.sender.open(self.now, tcp);
                self.drain(flow, End::Sender);
            }
            (Body::Packets(d), _) => {
                let at = d.source.next_at();
                let number = f.number;
                self.queue.push(self.timer_key(at, number, TimerObject::Source, 0), Event::Emit { flow });
            }
            _ => unreachable!("a flow's body is made from its workload"),
        }
    }

    /// A source's packet is due.
    fn emit(&mut self, flow: FlowRef) {
        let Some(f) = self.flows.get_mut(flow) else { return };
        let (number, class) = (f.number, f.class);
        let Body::Packets(d) = &mut f.body else { return };
        if d.stopped {
            return;
        }
        let wire_len = d.source.emit();
        d.sent_packets += 1;
        d.sent_bytes += wire_len;
        let (next_at, count) = (d.source.next_at(), d.sent_packets);
        let packet = SimPacket {
            flow,
            number,
            wire_len: wire_len.get() as u32,
            class,
            hop: 0,
            toward: Toward::Receiver,
            ecn: aqmlab_qdisc::Ecn::NotEct,
            dscp: aqmlab_qdisc::Dscp(0),
            payload: Payload::Udp,
        };
        self.queue.push(self.timer_key(next_at, number, TimerObject::Source, count), Event::Emit { flow });
        self.send(flow, packet);
    }

    fn stop_sending(&mut self, flow: FlowRef) {
        let Some(f) = self.flows.get_mut(flow) else { return };
        match &mut f.body {
            Body::Packets(d) => d.stopped = true,
            Body::Tcp(connection) => {
                connection.sender.close();
                self.drain(flow, End::Sender);
            }
        }
    }

    fn endpoint_timer(&mut self, flow: FlowRef, end: End) {
        let Some(f) = self.flows.get_mut(flow) else { return };
        let Body::Tcp(connection) = &mut f.body else { return };
        if connection.armed[end as usize] != self.now {
            return; // superseded by an earlier one
        }
        connection.armed[end as usize] = Instant::FAR_FUTURE;
        let endpoint = connection.endpoint(end);
        if endpoint.deadline().is_some_and(|at| at <= self.now) {
            let Workload::Bulk { tcp, .. } = &self.plan.classes[f.class as usize].workload else { return };
            endpoint.on_timer(self.now, tcp);
        }
        self.drain(flow, end);
    }

    /// After each change of an endpoint: sends what it has to send, hears what it has to tell, and sees to
    /// its timer.
    fn drain(&mut self, flow: FlowRef, end: End) {
        while let Some((segment, f)) = self.next_segment(flow, end) {
            self.send(flow, f.packet(flow, end, segment));
        }
        self.hear(flow, end);
        self.arm(flow, end);
    }

    fn next_segment(&mut self, flow: FlowRef, end: End) -> Option<(Segment, FlowLabel)> {
        let f = self.flows.get_mut(flow)?;
        let Workload::Bulk { tcp, .. } = &self.plan.classes[f.class as usize].workload else { return None };
        let Body::Tcp(connection) = &mut f.body else { return None };
        let segment = connection.endpoint(end).poll_transmit(self.now, tcp)?;
        let wire_len = segment.wire_len(tcp.header).get() as u32;
        Some((segment, FlowLabel { number: f.number, class: f.class, wire_len }))
    }

    /// The application listens: a receiver closes when its peer has, and a flow with both ends closed ends.
    fn hear(&mut self, flow: FlowRef, end: End) {
        let Some(f) = self.flows.get_mut(flow) else { return };
        let Body::Tcp(connection) = &mut f.body else { return };
        let mut peer_closed = false;
        while let Some(event) = connection.endpoint(end).poll_event() {
            match event {
                StreamEvent::PeerClosed => peer_closed = true,
                StreamEvent::Closed | StreamEvent::Reset | StreamEvent::Aborted => {
                    connection.closed[end as usize] = true;
                }
                _ => {}
            }
        }
        let over = connection.closed == [true; 2];
        if peer_closed {
            connection.endpoint(end).close();
            if end == End::Receiver && f.completed.is_none() {
                f.completed = Some(self.now);
                let class = f.class;
                self.count_completed(class);
            }
            self.drain(flow, end);
        } else if over && let Some(gone) = self.flows.remove(flow) {
            self.recorder.flow_ended(&gone);
        }
    }

    /// A receiver has got all that its sender had to send.
    fn count_completed(&mut self, class: u16) {
        self.completed[class as usize] += 1;
        if let Some(stop) = &self.plan.stop.completed
            && stop.class == class as usize
            && self.completed[stop.class] >= stop.count
        {
            self.stopped_by = Some(StoppedBy::Completed);
        }
    }

    /// One valid timer event an endpoint: made when the deadline comes before the pending one; when that
    /// fires early, it is made again.
    fn arm(&mut self, flow: FlowRef, end: End) {
        let Some(f) = self.flows.get_mut(flow) else { return };
        let number = f.number;
        let Body::Tcp(connection) = &mut f.body else { return };
        let Some(at) = connection.endpoint(end).deadline() else { return };
        let at = at.max(self.now);
        if at >= connection.armed[end as usize] {
            return;
        }
        connection.armed[end as usize] = at;
        let count = &mut connection.timers[end as usize];
        *count = count.wrapping_add(1);
        let count = u64::from(*count);
        let object = if end == End::Sender { TimerObject::Sender } else { TimerObject::Receiver };
        self.queue.push(self.timer_key(at, number, object, count), Event::EndpointTimer { flow, end });
    }

    // --- the end --------------------------------------------------------------------------------------

    /// What is still in the network: on links, in access links, in queues and in transmission.
    pub fn resident(&self) -> Tally {
        let mut tally = Tally::default();
        for packet in self.slab.iter() {
            tally.count(Bytes::new(u64::from(packet.wire_len)));
        }
        for link in &self.links {
            let backlog = link.port.backlog();
            tally.packets += backlog.packets;
            tally.bytes += backlog.bytes;
            if let Some(packet) = link.port.in_transmission() {
                tally.count(Bytes::new(u64::from(packet.wire_len)));
            }
        }
        tally
    }

    /// Bytes that the run's own tables take now, estimated from their lengths.
    fn memory_bytes(&self) -> u64 {
        let events = self.queue.len() * size_of::<(Key, Event)>();
        let flows = self.flows.capacity() * (size_of::<Flow>() + size_of::<Connection>());
        let packets = self.slab.capacity() * size_of::<Option<SimPacket>>();
        (events + flows + packets + self.recorder.memory_bytes()) as u64
    }
}

/// Which of a flow's timers: the low bits of its object number.
#[derive(Clone, Copy)]
enum TimerObject {
    Sender = 0,
    Receiver = 1,
    Source = 2,
    Start = 3,
    Stop = 4,
}

/// What a packet carries of its flow.
struct FlowLabel {
    number: u32,
    class: u16,
    wire_len: u32,
}

impl FlowLabel {
    fn packet(&self, flow: FlowRef, end: End, segment: Segment) -> SimPacket {
        SimPacket {
            flow,
            number: self.number,
            wire_len: self.wire_len,
            class: self.class,
            hop: 0,
            toward: if end == End::Sender { Toward::Receiver } else { Toward::Sender },
            ecn: if segment.ect { aqmlab_qdisc::Ecn::Ect0 } else { aqmlab_qdisc::Ecn::NotEct },
            dscp: aqmlab_qdisc::Dscp(0),
            payload: Payload::Tcp(segment),
        }
    }
}
