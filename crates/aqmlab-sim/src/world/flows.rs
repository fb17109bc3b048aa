//! The life of flows: their start, transmissions, timers and end.

use std::cmp::Reverse;

use aqmlab_network::{DialogueRecorders, End, FlowPath};
use aqmlab_qdisc::Packet;
use aqmlab_recording::{Ending, StoppedBy};
use aqmlab_scenario::{ClassPlan, Completed, FlowSource};
use aqmlab_traffic::{Content, Identity, Opening, PageObject, Step, Wake, Woken};
use aqmlab_units::Instant;

use super::World;
use crate::access::{AccessLink, AccessLinks};
use crate::connection::{Applications, Connection};
use crate::event::{EventQueue, FlowRef, Notice};
use crate::flow::{Body, Datagrams, Flow, Rare};
use crate::packet::{FlowId, SimPacket, Toward};
use crate::scheduler::FlowObject;
use crate::talk::Talk;

impl<Q: EventQueue> World<'_, Q> {
    /// Handles the wake-up of a population.
    pub(super) fn wake_population(&mut self, class: u32, user: u32) {
        let opener = &mut self.classes[class as usize].opening.opener;
        let woken = opener.on_wake(Wake { at: self.now, user });
        let wake = woken.wake();
        match woken {
            Woken::Opens(opening) => self.start(class, opening),
            Woken::Asks { of, objects, .. } => self.ask(class, of, &objects),
            Woken::Closes { of, .. } => self.ask(class, of, &[]),
        }
        self.classes[class as usize].opening.schedule(&mut self.scheduler, wake);
    }

    /// Starts the next flow or connection of a class.
    fn start(&mut self, class: u32, Opening { open, content, .. }: Opening) {
        let c = &mut self.classes[class as usize];
        let number = if c.opening.opener.is_list {
            c.opening.opener.number(open)
        } else {
            // The number follows the numbers of all flows of the plan; after four billion
            // connections, numbers repeat.
            self.opened = self.opened.checked_add(1).unwrap_or(self.flows);
            self.opened
        };
        let plan = &self.plan.classes[class as usize];
        let path = FlowPath::new(self.plan, class as usize, c.propagation, Some(open), self.seed);
        let (access, stages) = c.own_path(&path.carrying(content.connection()));
        let asks_again = matches!(content, Content::Objects(_));
        let source = plan.source(open, content, self.now, self.seed);
        let body = self.body(plan, open, source);
        let flow = self.in_transit.flows.insert(|slot| Flow {
            id: FlowId { slot, number, class: class as u16 },
            index: open.user,
            in_flight: 0,
            over: false,
            pending: access.as_ref().map(AccessLinks::pending).unwrap_or_default(),
            start: self.now,
            completed: Instant::FAR_FUTURE,
            access,
            body,
            rare: stages.map(Rare::stages),
        });
        if asks_again {
            self.classes[class as usize].opening.open.insert(open, flow);
        }
        if self.classes[class as usize].stopping.is_some() {
            self.schedule_stop(class, number, flow);
        }
        self.begin(flow);
    }

    /// Lets a user make further requests on a connection, or closes the connection if nothing is
    /// left to request.
    fn ask(&mut self, class: u32, of: Identity, objects: &[PageObject]) {
        let Some(&flow) = self.classes[class as usize].opening.open.get(&of) else { return };
        let Some(f) = self.in_transit.flows.get_mut(flow) else { return };
        let connection = f.connection();
        if objects.is_empty() {
            connection.sender.close();
        } else if let Some(applications) = &mut connection.applications {
            applications.wakes_at = Instant::FAR_FUTURE;
            let step = applications.session.ask(self.now, objects);
            connection.act(&step);
        }
        self.serve(flow, End::Client);
    }

    /// Creates the body of a flow or connection that starts now in the class with this plan.
    fn body(&mut self, plan: &ClassPlan, of: Identity, source: FlowSource) -> Body {
        let (applications, first) = match source {
            FlowSource::Packets(source) => return Body::Packets(Box::new(Datagrams::new(source))),
            FlowSource::Dialogue { dialogue, ecn } => {
                return Body::Dialogue(Box::new(Talk::new(dialogue, ecn)));
            }
            FlowSource::Session(session) => {
                let new = Applications { session, wakes_at: Instant::FAR_FUTURE, of };
                // Reuses the memory of an ended connection, if there is one.
                let applications = match self.spare.pop() {
                    Some(mut spare) => {
                        *spare = new;
                        spare
                    }
                    None => Box::new(new),
                };
                (Some(applications), None)
            }
            FlowSource::Stream(act) => (None, Some(act)),
        };
        let tcp = plan.traffic.tcp().expect("every other source belongs to a connection");
        let mut connection =
            Connection::new(tcp, applications, plan.send_jitter(of, self.seed), plan.clocks(of, self.seed));
        if let Some(seeds) = plan.congestion_seeds(of, self.seed) {
            connection.seed(seeds, tcp);
        }
        if let Some(controllers) = self.controllers {
            let new = || controllers(&plan.name, self.now, tcp.datagram());
            for end in [End::Client, End::Server] {
                if let Some(controller) = new() {
                    connection.endpoint(end).set_controller(controller, tcp);
                }
            }
        }
        connection.act(&Step { client: first, ..Step::default() });
        Body::Tcp(connection)
    }

    /// Carries out the first action of a flow's application.
    fn begin(&mut self, flow: FlowRef) {
        let f = self.in_transit.flows.of_packet(flow.slot);
        match &mut f.body {
            Body::Tcp(connection) => {
                let begin = |of: &mut Box<Applications>| of.session.begin(self.now);
                let step = connection.applications.as_mut().map(begin).unwrap_or_default();
                connection.act(&step);
                connection.sender.open(self.now, self.classes[usize::from(f.id.class)].profile());
                self.schedule_wake(flow, &step);
                self.serve(flow, End::Client);
            }
            Body::Packets(d) => {
                let number = f.id.number;
                if let Some(at) = d.source.next_at() {
                    self.scheduler.timer(at, number, FlowObject::Source, Notice::Emit { flow });
                }
            }
            Body::Dialogue(_) => self.speak(flow),
        }
    }

    /// Sends what both ends of a dialogue have to say now, and records what they notice.
    #[inline(never)]
    pub(super) fn speak(&mut self, flow: FlowRef) {
        while let Some(f) = self.in_transit.flows.get_mut(flow)
            && let Body::Dialogue(talk) = &mut f.body
            && let Some((end, datagram, ecn)) = talk.poll(self.now)
        {
            let (toward, own_link) = match end {
                End::Client => (Toward::Receiver, AccessLink::ClientOut),
                End::Server => (Toward::Sender, AccessLink::ServerOut),
            };
            let begin = self.classes[usize::from(f.id.class)].begins[toward as usize];
            let packet = SimPacket::datagram(f.id, toward, begin, datagram.number, datagram.wire_len, ecn);
            self.send_datagram(flow, own_link, packet, datagram.number);
        }
        let Some(f) = self.in_transit.flows.get_mut(flow) else { return };
        let Body::Dialogue(talk) = &mut f.body else { return };
        let (class, number) = (u32::from(f.id.class), f.id.number);
        let next = talk.dialogue.next_at();
        debug_assert!(next > self.now, "a dialogue says everything that is due");
        if next < talk.armed && next != Instant::FAR_FUTURE {
            talk.armed = next;
            self.scheduler.timer(next, number, FlowObject::Source, Notice::Emit { flow });
        }
        let mut recorders =
            DialogueRecorders { frames: self.frames.as_deref_mut(), requests: self.requests.as_deref_mut() };
        let mut answered = 0;
        for noticed in talk.dialogue.noticed() {
            answered += u32::from(recorders.note((class, f.index), self.now, noticed));
        }
        for _ in 0..answered {
            self.count_completed(class as u16, Completed::Requests);
        }
    }

    /// Sends a datagram over its flow's own link or, if there is no such link, into its first queue.
    fn send_datagram(&mut self, flow: FlowRef, own_link: AccessLink, packet: SimPacket, number: u64) {
        let f = self.in_transit.flows.of_packet(flow.slot);
        let class = &mut self.classes[usize::from(f.id.class)];
        f.in_flight += 1;
        self.in_transit.fates.sent.count(packet.wire_len());
        let lost = match &mut f.access {
            None => false,
            Some(access) => {
                !self.scheduler.over_access(access, &mut class.serialisers, own_link, self.now, packet)
            }
        };
        let direct = f.access.is_none();
        if let Some(watch) = &mut self.watch {
            watch.sent(self.now, &packet, Some(number), lost);
        }
        if lost {
            self.lose(packet);
        } else if direct {
            self.forward_seldom(packet);
        }
    }

    /// Emits the packet that is due at a source.
    pub(super) fn emit(&mut self, flow: FlowRef) {
        let Some(f) = self.in_transit.flows.get_mut(flow) else { return };
        let d = match &mut f.body {
            Body::Packets(d) => d,
            Body::Tcp(_) => return self.wake_session(flow),
            Body::Dialogue(talk) => {
                if talk.armed == self.now {
                    talk.armed = Instant::FAR_FUTURE;
                }
                return self.speak(flow);
            }
        };
        if d.stopped {
            return;
        }
        let number = d.sent_packets;
        let (wire_len, ecn) = d.emit();
        if let Some(at) = d.source.next_at() {
            self.scheduler.timer(at, f.id.number, FlowObject::Source, Notice::Emit { flow });
        }
        if self.autorates.is_reflector(f.id.class.into()) {
            self.autorates.sent(f.id.class.into(), f.id.number, number, self.now);
        }
        let class = &self.classes[usize::from(f.id.class)];
        let begin = class.begins[Toward::Receiver as usize];
        let packet = SimPacket::datagram(f.id, Toward::Receiver, begin, number, wire_len, ecn);
        self.send_datagram(flow, AccessLink::ClientOut, packet, number);
    }

    /// Makes the applications of a session act when they are due.
    fn wake_session(&mut self, flow: FlowRef) {
        let connection = self.in_transit.flows.of_packet(flow.slot).connection();
        let Some(applications) = &mut connection.applications else { return };
        applications.wakes_at = Instant::FAR_FUTURE;
        let step = applications.session.on_timer(self.now);
        connection.act(&step);
        self.schedule_wake(flow, &step);
        self.serve(flow, if step.server.is_some() { End::Server } else { End::Client });
    }

    fn schedule_wake(&mut self, flow: FlowRef, step: &Step) {
        let Some(wake_at) = step.wake_at else { return };
        let of = self.in_transit.flows.of_packet(flow.slot);
        let number = of.id.number;
        if let Some(applications) = &mut of.connection().applications {
            applications.wakes_at = wake_at;
        }
        self.scheduler.timer(wake_at, number, FlowObject::Source, Notice::Emit { flow });
    }

    /// Stops a class. Its flows stop in the order of their numbers, each by an event of its own.
    /// Flows that start later stop immediately.
    pub(super) fn stop_class(&mut self, class: u32) {
        let living = self.in_transit.flows.living().filter(|(_, flow)| u32::from(flow.id.class) == class);
        let mut stopping: Vec<_> = living.map(|(at, flow)| (flow.id.number, at)).collect();
        stopping.sort_unstable_by_key(|&(number, _)| Reverse(number));
        self.classes[class as usize].stopping = Some(stopping);
        let requests = self.requests.as_deref_mut();
        self.classes[class as usize].opening.opener.cut_off_pages(self.now, requests);
        self.stop_next(class);
    }

    /// Schedules the stop of the next flow of a stopping class.
    fn stop_next(&mut self, class: u32) {
        if let Some((number, flow)) = self.classes[class as usize].stopping.as_mut().and_then(Vec::pop) {
            self.schedule_stop(class, number, flow);
        }
    }

    fn schedule_stop(&mut self, class: u32, number: u32, flow: FlowRef) {
        let notice = Notice::StopSending { class: class as u16, flow };
        self.scheduler.timer(self.now, number, FlowObject::Stop, notice);
    }

    pub(super) fn stop_sending(&mut self, class: u16, flow: FlowRef) {
        self.stop_next(class.into());
        let Some(f) = self.in_transit.flows.get_mut(flow) else { return };
        match &mut f.body {
            Body::Packets(d) => d.stopped = true,
            Body::Dialogue(talk) => talk.dialogue.stop(),
            Body::Tcp(connection) => {
                connection.cut_off_request(class, Ending::Censored, self.now, &mut self.requests);
                connection.applications = None;
                connection.sender.close();
                self.serve(flow, End::Client);
            }
        }
    }

    pub(super) fn endpoint_timer(&mut self, flow: FlowRef, end: End) {
        let Some(f) = self.in_transit.flows.get_mut(flow) else { return };
        let class = f.id.class;
        let is_list = self.classes[usize::from(class)].opening.opener.is_list;
        let connection = f.connection();
        if connection.armed[end as usize] != self.now {
            return; // superseded by an earlier event
        }
        connection.armed[end as usize] = Instant::FAR_FUTURE;
        match connection.endpoint(end).deadline() {
            // The deadline has moved since, so the event is scheduled again for the new one.
            Some(at) if at > self.now => {
                if !is_list && connection.lets_stragglers_pass(end) {
                    return;
                }
                connection.armed[end as usize] = at;
                self.scheduler.endpoint_timer(at, f.id.number, flow, end);
            }
            None => {}
            Some(_) => {
                connection.endpoint(end).on_timer(self.now, self.classes[usize::from(class)].profile());
                self.serve(flow, end);
            }
        }
    }

    /// Releases the data that an endpoint has held back.
    pub(super) fn send_delayed(&mut self, at: FlowRef, end: End) {
        let Some(flow) = self.in_transit.flows.get_mut(at) else { return };
        let class = usize::from(flow.id.class);
        flow.connection().end_delay(end, self.classes[class].profile());
        self.serve_fully(at, end);
    }

    /// Counts a completion: a receiver has received everything from its sender, or a client has
    /// received its response.
    pub(super) fn count_completed(&mut self, class: u16, what: Completed) {
        if self.schedule.is_measuring() && self.completions.count(usize::from(class), what) {
            self.stop(StoppedBy::Completed);
        }
        if self.serves_ahead && self.completions.is_near_end() {
            self.serve_in_time();
        }
    }
}
