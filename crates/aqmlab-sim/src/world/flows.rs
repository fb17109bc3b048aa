//! Flows: they start, send, wait for their timers and end.

use aqmlab_qdisc::Packet;
use aqmlab_random::Stream;
use aqmlab_scenario::Workload;
use aqmlab_traffic::PacketSource;
use aqmlab_transport::{ENDLESS, Endpoint, Role, StreamEvent};
use aqmlab_units::{Bytes, Instant};

use super::{StoppedBy, World};
use crate::agenda::{Agenda, FlowObject};
use crate::event::{End, Event, EventQueue, FlowRef};
use crate::fates::Fates;
use crate::flow::{AccessLink, Body, Connection, Datagrams, Flow};
use crate::network::{self, Class};
use crate::packet::{FlowId, SimPacket, Toward};

impl<Q: EventQueue> World<'_, Q> {
    pub(super) fn schedule_next_start(&mut self, class: u32) {
        let c = &self.classes[class as usize];
        if let Some(&(at, index)) = c.starts.last() {
            let number = c.first_number + index;
            self.agenda.timer(at, number, FlowObject::Start, Event::Start { class });
        }
    }

    /// The next flow of a class begins.
    pub(super) fn start(&mut self, class: u32) {
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
                Body::Packets(Box::new(Datagrams::new(source)))
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
            completed: Instant::FAR_FUTURE,
            base_rtt,
            access,
            body,
            at_warmup: None,
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
                self.serve(flow, End::Sender);
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
    pub(super) fn emit(&mut self, flow: FlowRef) {
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
                let tempi = &mut self.classes[usize::from(packet.flow().class)].tempi;
                if !self.agenda.over_access(access, tempi, AccessLink::SenderOut, self.now, packet) {
                    self.lose(packet);
                }
            }
        }
    }

    pub(super) fn stop_sending(&mut self, flow: FlowRef) {
        let Some(f) = self.flows.get_mut(flow) else { return };
        match &mut f.body {
            Body::Packets(d) => d.stopped = true,
            Body::Tcp(connection) => {
                connection.sender.close();
                self.serve(flow, End::Sender);
            }
        }
    }

    pub(super) fn endpoint_timer(&mut self, flow: FlowRef, end: End) {
        let Some(f) = self.flows.get_mut(flow) else { return };
        let class = f.id.class;
        let connection = f.connection();
        if connection.armed[end as usize] != self.now {
            return; // superseded by an earlier one
        }
        connection.armed[end as usize] = Instant::FAR_FUTURE;
        let endpoint = connection.endpoint(end);
        if endpoint.deadline().is_some_and(|at| at <= self.now) {
            endpoint.on_timer(self.now, self.classes[usize::from(class)].profile());
        }
        self.serve(flow, end);
    }

    /// After each change of an endpoint: sends what it has to send, hears what it has to tell, sees to its timer, and
    /// takes the flow out if that was its end.
    #[inline(always)]
    pub(super) fn serve(&mut self, at: FlowRef, end: End) {
        // Two copies of the same code, each for one end, are quicker than one for both.
        match end {
            End::Sender => self.serve_sender(at),
            End::Receiver => self.serve_receiver(at),
        }
    }

    #[inline(never)]
    fn serve_sender(&mut self, at: FlowRef) {
        self.serve_end(at, End::Sender);
    }

    #[inline(never)]
    fn serve_receiver(&mut self, at: FlowRef) {
        self.serve_end(at, End::Receiver);
    }

    #[inline(always)]
    fn serve_end(&mut self, at: FlowRef, end: End) {
        let flow = self.flows.of_packet(at.slot);
        let class = &mut self.classes[usize::from(flow.id.class)];
        let mut completed = false;
        loop {
            send(&mut self.agenda, &mut self.fates, &mut self.outbox, self.now, class, flow, end);
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
            if end == End::Receiver && flow.completed == Instant::FAR_FUTURE {
                flow.completed = self.now;
                completed = true;
            }
        }
        let (id, connection) = (flow.id, flow.connection());
        // One valid timer event an endpoint: made when the deadline comes before the pending one; when that
        // fires early, it is made again.
        let deadline = connection.endpoint(end).deadline().map(|at| at.max(self.now));
        if let Some(deadline) = deadline
            && deadline < connection.armed[end as usize]
        {
            connection.armed[end as usize] = deadline;
            let object = if end == End::Sender { FlowObject::Sender } else { FlowObject::Receiver };
            self.agenda.timer(deadline, id.number, object, Event::EndpointTimer { flow: at, end });
        }
        self.flows.look_whether_finished(at.slot);
        if completed {
            self.count_completed(id.class);
        }
        self.send_outbox();
        self.reap();
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
}

/// Sends all that an endpoint has to send: over its flow's own link, or into the outbox if it has none.
#[inline(always)]
fn send<Q: EventQueue>(
    agenda: &mut Agenda<Q>,
    fates: &mut Fates,
    outbox: &mut Vec<SimPacket>,
    now: Instant,
    class: &mut Class,
    flow: &mut Flow,
    end: End,
) {
    let Class { tcp: Some(tcp), tempi, .. } = class else { return };
    let (toward, own_link) = match end {
        End::Sender => (Toward::Receiver, AccessLink::SenderOut),
        End::Receiver => (Toward::Sender, AccessLink::ReceiverOut),
    };
    let Body::Tcp(connection) = &mut flow.body else { return };
    while let Some(segment) = connection.endpoint(end).poll_transmit(now, tcp) {
        let packet = SimPacket::tcp(flow.id, toward, &segment, tcp.header);
        fates.sent.count(packet.wire_len());
        flow.in_flight += 1;
        match &mut flow.access {
            None => outbox.push(packet),
            Some(access) => {
                if !agenda.over_access(access, tempi, own_link, now, packet) {
                    fates.dropped.count(packet.wire_len());
                    flow.in_flight -= 1;
                }
            }
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
