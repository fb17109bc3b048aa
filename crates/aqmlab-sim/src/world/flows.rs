//! Flows: they start, send, wait for their timers and end.

use aqmlab_random::Stream;
use aqmlab_scenario::Workload;
use aqmlab_traffic::PacketSource;
use aqmlab_transport::{ENDLESS, Endpoint, Role};
use aqmlab_units::{Bytes, Instant};

use super::{StoppedBy, World};
use crate::agenda::FlowObject;
use crate::event::{End, EventQueue, FlowRef, Notice};
use crate::flow::{AccessLink, Body, Connection, Datagrams, Flow};
use crate::network;
use crate::packet::{FlowId, SimPacket, Toward};

impl<Q: EventQueue> World<'_, Q> {
    pub(super) fn schedule_next_start(&mut self, class: u32) {
        let c = &self.classes[class as usize];
        if let Some(&(at, index)) = c.starts.last() {
            let number = c.first_number + index;
            self.agenda.timer(at, number, FlowObject::Start, Notice::Start { class });
        }
    }

    /// The next flow of a class begins.
    pub(super) fn start(&mut self, class: u32) {
        let c = &mut self.classes[class as usize];
        let index = c.take_start().expect("a start event has a start");
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
            (Workload::Bulk { tcp, .. }, _) => Body::Tcp(Connection {
                sender: Endpoint::new(Role::Active, tcp),
                receiver: Endpoint::new(Role::Passive, tcp),
                armed: [Instant::FAR_FUTURE; 2],
                closed: [false; 2],
            }),
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
            self.agenda.timer(at, number, FlowObject::Stop, Notice::StopSending { flow });
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
                self.agenda.timer(at, number, FlowObject::Source, Notice::Emit { flow });
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
        self.agenda.timer(d.source.next_at(), f.id.number, FlowObject::Source, Notice::Emit { flow });
        let class = &mut self.classes[usize::from(f.id.class)];
        let packet = SimPacket::datagram(f.id, class.begins[Toward::Receiver as usize], wire_len);
        f.in_flight += 1;
        self.fates.sent.count(wire_len);
        let lost = match &mut f.access {
            None => false,
            Some(access) => {
                !self.agenda.over_access(access, &mut class.tempi, AccessLink::SenderOut, self.now, packet)
            }
        };
        let direct = f.access.is_none();
        if let Some(watch) = &mut self.watch {
            watch.sent(self.now, &packet, lost);
        }
        if lost {
            self.lose(packet);
        } else if direct {
            self.forward_seldom(packet);
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

    /// A receiver has got all that its sender had to send.
    pub(super) fn count_completed(&mut self, class: u16) {
        if !self.measuring {
            return;
        }
        self.completed[usize::from(class)] += 1;
        if let Some(stop) = &self.plan.stop.completed
            && stop.class == usize::from(class)
            && self.completed[stop.class] >= stop.count
        {
            self.stop(StoppedBy::Completed);
        }
    }
}
