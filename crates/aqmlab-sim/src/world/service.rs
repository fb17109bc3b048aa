//! The service of an endpoint: what happens at a host when a packet reaches it, a timer fires or an application acts.

use aqmlab_qdisc::{Ecn, Packet};
use aqmlab_transport::{Endpoint, Segment, StreamEvent};
use aqmlab_units::Instant;

use super::World;
use crate::agenda::{Agenda, FlowObject};
use crate::event::{End, EventQueue, FlowRef, Notice};
use crate::fates::Fates;
use crate::flow::{AccessLink, Body, Flow};
use crate::network::Class;
use crate::packet::{SimPacket, Toward};
use crate::watch::Watch;

impl<Q: EventQueue> World<'_, Q> {
    /// A packet reaches the host that receives. (Two copies of one code, one for each end, are quicker than one for
    /// both.)
    #[inline(never)]
    pub(super) fn at_receiver(&mut self, packet: SimPacket, passed: u8) {
        self.at_host(packet, passed, End::Receiver, false);
    }

    /// A packet reaches the host that sends.
    #[inline(never)]
    pub(super) fn at_sender(&mut self, packet: SimPacket, passed: u8) {
        self.at_host(packet, passed, End::Sender, false);
    }

    /// A packet reaches a host where something is recorded one by one.
    #[inline(never)]
    pub(super) fn at_watched_host(&mut self, packet: SimPacket, passed: u8, end: End) {
        if let Some(watch) = &mut self.watch {
            watch.arrived(self.now, &packet);
        }
        self.at_host(packet, passed, end, true);
    }

    #[inline(always)]
    fn at_host(&mut self, packet: SimPacket, passed: u8, end: End, watched: bool) {
        self.fates.delivered.count(packet.wire_len());
        self.fates.packet_hops += u64::from(passed);
        let slot = packet.flow().slot;
        let (generation, flow) = self.flows.tenant(slot);
        flow.in_flight -= 1;
        let Some(segment) = packet.segment() else {
            flow.datagrams().delivered_bytes += packet.wire_len();
            self.flows.look_whether_finished(slot);
            self.reap();
            return;
        };
        let class = &mut self.classes[usize::from(packet.flow().class)];
        let (at, marked) = (FlowRef { slot, generation }, packet.ecn() == Ecn::Ce);
        let mut hosts = Hosts {
            now: self.now,
            agenda: &mut self.agenda,
            fates: &mut self.fates,
            outbox: &mut self.outbox,
            watch: if watched { self.watch.as_deref_mut() } else { None },
        };
        let outcome = match packet.options() {
            None => hosts.serve(class, flow, at, end, Some((segment, marked)), watched),
            Some(place) => hosts.serve_with_options(class, flow, at, end, (segment, marked), place),
        };
        if outcome != Outcome::default() {
            self.conclude(slot, outcome);
        }
    }

    /// After a change of an endpoint that no arrival has made: a timer, or the application.
    pub(super) fn serve(&mut self, at: FlowRef, end: End) {
        let flow = self.flows.of_packet(at.slot);
        let class = &mut self.classes[usize::from(flow.id.class)];
        let mut hosts = Hosts {
            now: self.now,
            agenda: &mut self.agenda,
            fates: &mut self.fates,
            outbox: &mut self.outbox,
            watch: self.watch.as_deref_mut(),
        };
        let outcome = hosts.serve(class, flow, at, end, None, false);
        self.conclude(at.slot, outcome);
    }

    /// What follows from a service besides what it has done to the flow itself.
    #[cold]
    fn conclude(&mut self, slot: u32, outcome: Outcome) {
        if outcome.completed {
            let class = self.flows.of_packet(slot).id.class;
            self.count_completed(class);
        }
        if outcome.to_send {
            self.send_outbox();
        }
        if outcome.over {
            self.flows.look_whether_finished(slot);
        }
        self.reap();
    }
}

/// What of the world a service needs besides the flow and its class.
struct Hosts<'a, Q: EventQueue> {
    now: Instant,
    agenda: &'a mut Agenda<Q>,
    fates: &'a mut Fates,
    outbox: &'a mut Vec<SimPacket>,
    /// Known to be `None` where a packet reaches a host at which nothing is recorded: there it costs nothing.
    watch: Option<&'a mut Watch>,
}

/// What a service leaves to be done.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct Outcome {
    /// The receiver has got everything, just now.
    completed: bool,
    /// Both ends have closed.
    over: bool,
    /// There are packets in the outbox.
    to_send: bool,
}

impl<Q: EventQueue> Hosts<'_, Q> {
    /// An endpoint takes what arrives (a segment; was it marked?), sends what it has to send, tells what it has to
    /// tell, and its timer is seen to. `attended`: may there be a session that wants to know of the arrival?
    #[inline(always)]
    fn serve(
        &mut self,
        class: &mut Class,
        flow: &mut Flow,
        at: FlowRef,
        end: End,
        arrival: Option<(Segment, bool)>,
        attended: bool,
    ) -> Outcome {
        let mut completed = false;
        if let Some((segment, marked)) = arrival {
            flow.connection().endpoint(end).on_segment(self.now, &segment, marked, class.profile());
            if attended && flow.connection().session.is_some() {
                self.tell_session(flow, at);
            }
        }
        loop {
            self.send(class, flow, end);
            let connection = flow.connection();
            // The receiving application closes when it has been told that its peer has.
            match news(connection.endpoint(end)) {
                News::None => break,
                News::Over => {
                    connection.closed[end as usize] = true;
                    flow.over = flow.connection().closed == [true; 2];
                    break;
                }
                News::PeerClosed => connection.endpoint(end).close(),
            }
            if end == flow.connection().last && flow.completed == Instant::FAR_FUTURE {
                flow.completed = self.now;
                completed = true;
            }
        }
        self.see_to_timer(flow, at, end);
        if let Some(watch) = &mut self.watch {
            watch.served(self.now, flow, end, class.profile());
        }
        Outcome { completed, over: flow.over, to_send: !self.outbox.is_empty() }
    }

    /// The applications look how far their streams have come.
    #[inline(never)]
    fn tell_session(&mut self, flow: &mut Flow, at: FlowRef) {
        let number = flow.id.number;
        let connection = flow.connection();
        let progress = connection.progress();
        let Some(session) = &mut connection.session else { return };
        let step = session.on_progress(self.now, progress);
        connection.act(&step);
        if let Some(wake_at) = step.wake_at {
            self.agenda.timer(wake_at, number, FlowObject::Source, Notice::Emit { flow: at });
        }
    }

    /// The same for a segment whose options are kept at `place`.
    #[inline(never)]
    fn serve_with_options(
        &mut self,
        class: &mut Class,
        flow: &mut Flow,
        at: FlowRef,
        end: End,
        (segment, marked): (Segment, bool),
        place: u32,
    ) -> Outcome {
        let options = self.fates.options.take(place);
        let segment = options.complete(segment);
        let endpoint = flow.connection().endpoint(end);
        endpoint.on_segment_with_sack(self.now, &segment, &options.sack, marked, class.profile());
        if flow.connection().session.is_some() {
            self.tell_session(flow, at);
        }
        self.serve(class, flow, at, end, None, false)
    }

    /// Sends all that an endpoint has to send: over its flow's own link, or into the outbox if it has none.
    #[inline(always)]
    fn send(&mut self, class: &mut Class, flow: &mut Flow, end: End) {
        let Class { tcp: Some(tcp), tempi, begins, .. } = class else { return };
        let Body::Tcp(connection) = &mut flow.body else { return };
        let (toward, own_link) = match end {
            End::Sender => (Toward::Receiver, AccessLink::SenderOut),
            End::Receiver => (Toward::Sender, AccessLink::ReceiverOut),
        };
        let begin = begins[toward as usize];
        while let Some(segment) = connection.endpoint(end).poll_transmit(self.now, tcp) {
            let mut packet = SimPacket::tcp(flow.id, toward, begin, &segment, tcp.header);
            if segment.has_options() {
                packet = self.fates.options.put(packet, &segment, connection.endpoint(end).sack(tcp));
            }
            self.fates.sent.count(packet.wire_len());
            flow.in_flight += 1;
            let mut lost = false;
            match &mut flow.access {
                None => self.outbox.push(packet),
                Some(access) => {
                    if !self.agenda.over_access(access, tempi, own_link, self.now, packet) {
                        self.fates.lost.count(packet.wire_len());
                        self.fates.options.forget(&packet);
                        flow.in_flight -= 1;
                        lost = true;
                    }
                }
            }
            if let Some(watch) = &mut self.watch {
                watch.sent(self.now, &packet, lost);
            }
        }
    }

    /// An endpoint has one valid timer event: made when its deadline comes before the pending one; when that fires
    /// early, it is made again.
    #[inline(always)]
    fn see_to_timer(&mut self, flow: &mut Flow, at: FlowRef, end: End) {
        let (number, connection) = (flow.id.number, flow.connection());
        let deadline = connection.endpoint(end).deadline().map(|at| at.max(self.now));
        if let Some(deadline) = deadline
            && deadline < connection.armed[end as usize]
        {
            connection.armed[end as usize] = deadline;
            let object = if end == End::Sender { FlowObject::Sender } else { FlowObject::Receiver };
            self.agenda.timer(deadline, number, object, Notice::EndpointTimer { flow: at, end });
        }
    }
}

/// What of an endpoint's events concerns the flow.
enum News {
    None,
    /// The other side has sent all it will send.
    PeerClosed,
    /// The endpoint is closed, in whatever way.
    Over,
}

#[inline(always)]
fn news(endpoint: &mut Endpoint) -> News {
    while let Some(event) = endpoint.poll_change() {
        match event {
            StreamEvent::PeerClosed => return News::PeerClosed,
            StreamEvent::Closed | StreamEvent::Reset | StreamEvent::Aborted => return News::Over,
            _ => {}
        }
    }
    News::None
}
