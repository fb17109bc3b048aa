//! What is due: flows start, sessions and datagrams have their turn, flows stop, samples are taken.

use aqmlab_network::End;
use aqmlab_recording::Ending;
use aqmlab_scenario::FlowSource;
use aqmlab_traffic::{Identity, Session};
use aqmlab_units::Instant;

use super::{Generator, PER_PASS, socket_error};
use crate::error::LiveError;
use crate::host_id::HostId;
use crate::sys;
use crate::traffic::counts::KernelCounts;
use crate::traffic::datagrams::Datagrams;
use crate::traffic::flow::{Body, Connection, Flow};
use crate::traffic::sockets;
use crate::traffic::stream::Stream;
use crate::traffic::tables::push_sample;
use crate::traffic::timers::Due;

impl Generator<'_> {
    /// What is due by `now`, as far as sockets can wait for their turn.
    pub(super) fn do_what_is_due(&mut self, now: Instant) -> Result<(), LiveError> {
        for _ in 0..PER_PASS {
            let Some((at, due)) = self.timers.take(now) else { return Ok(()) };
            match due {
                Due::Start { class } => self.start(class as usize, at)?,
                Due::Wake { flow } => self.wake(flow, at),
                Due::Stop { flow } => self.stop(flow),
                Due::Sample => self.sample(at),
                Due::WarmupEnd => self.end_warmup(),
            }
        }
        Ok(())
    }

    pub(super) fn schedule_start(&mut self, class: usize) {
        if let Some(&(at, _)) = self.classes[class].starts.last() {
            self.timers.add(at, Due::Start { class: class as u32 });
        }
    }

    pub(super) fn schedule_sample(&mut self, now: Instant) {
        let interval = self.plan.record.flows;
        if !interval.is_zero() {
            self.timers.add(now + interval, Due::Sample);
        }
    }

    /// The next flow of a class begins.
    fn start(&mut self, class: usize, at: Instant) -> Result<(), LiveError> {
        self.lateness_ns.add(self.clock.now().saturating_since(at).as_ns(), 1);
        let (_, index) = self.classes[class].starts.pop().expect("a start that is due has a start");
        let number = self.classes[class].first + index;
        let plan = &self.plan.classes[class];
        let name = || format!("flow {index} of class `{}`", plan.name);
        let body = self.body(class, index, at).map_err(socket_error("start", name()))?;
        let (class_number, at_warmup) = (class as u32, KernelCounts::ZERO);
        let flow = Flow { number, class: class_number, index, start: at, completed: None, body, at_warmup };
        self.flows[number as usize] = Some(Box::new(flow));
        if let Some(stop_at) = plan.stop_at {
            self.timers.add((Instant::ZERO + stop_at).max(at), Due::Stop { flow: number });
        }
        self.begin(number, at);
        self.schedule_start(class);
        Ok(())
    }

    fn body(&self, class: usize, index: u32, at: Instant) -> std::io::Result<Body> {
        let (addresses, stack) = (self.hosts.addresses, &self.hosts.stacks[class]);
        let host = self.hosts.of(HostId { class, side: End::Client });
        let from = addresses.client(class, index).expect("the plan has been checked for ports");
        let to = addresses.server(class);
        let session = match self.plan.classes[class].source(Identity::first_of(index), at, self.seed) {
            FlowSource::Packets(source) => {
                let socket = sockets::datagram_client(host, from, to)?;
                let sizes = stack.datagrams(addresses.0);
                let dscp = self.plan.classes[class].dscp;
                let packets = Datagrams::new(socket, source, sizes, addresses.0, dscp);
                return Ok(Body::Packets(Box::new(packets)));
            }
            FlowSource::Session(session) => Some(session),
            FlowSource::Stream => None,
        };
        let options = stack.tcp.as_ref().expect("whatever is not datagrams is a connection");
        let socket = sockets::connection(host, from, to, options)?;
        if matches!(session, Some(Session::Bursts(_))) {
            sys::stamp_acknowledgments(&socket)?;
        }
        Ok(Body::Tcp(Box::new(Connection::new(Stream::new(socket, true, options.receive_window), session))))
    }

    /// The applications' first acts.
    fn begin(&mut self, number: u32, at: Instant) {
        let Some(flow) = &mut self.flows[number as usize] else { return };
        match &mut flow.body {
            Body::Tcp(connection) => {
                let wake_at = connection.begin(&self.plan.classes[flow.class as usize], at);
                self.wake_later(number, wake_at);
                self.see_to(number);
            }
            Body::Packets(datagrams) => {
                let next = datagrams.next_at();
                self.wake_later(number, next);
            }
        }
    }

    pub(super) fn wake_later(&mut self, flow: u32, at: Option<Instant>) {
        if let Some(at) = at {
            self.timers.add(at, Due::Wake { flow });
        }
    }

    /// A session's instant has come, or a datagram's. What comes next is reckoned from the instant it was due, so that being
    /// late does not add up.
    fn wake(&mut self, number: u32, at: Instant) {
        self.lateness_ns.add(self.clock.now().saturating_since(at).as_ns(), 1);
        let Some(flow) = &mut self.flows[number as usize] else { return };
        let next = match &mut flow.body {
            Body::Tcp(connection) => connection.wake(at),
            Body::Packets(datagrams) => {
                if datagrams.next_at().is_some() && !datagrams.emit() {
                    self.socket_errors.unsent += 1;
                }
                datagrams.next_at()
            }
        };
        let is_connection = matches!(flow.body, Body::Tcp(_));
        self.wake_later(number, next);
        if is_connection {
            self.see_to(number);
        }
    }

    fn stop(&mut self, number: u32) {
        self.request_cut_off(number, Ending::Censored, self.clock.now());
        let Some(flow) = &mut self.flows[number as usize] else { return };
        match &mut flow.body {
            Body::Tcp(connection) => {
                connection.stop();
                self.see_to(number);
            }
            Body::Packets(datagrams) => datagrams.stop(),
        }
    }

    fn sample(&mut self, at: Instant) {
        for flow in self.flows.iter().flatten() {
            push_sample(&mut self.series, at, flow);
        }
        self.schedule_sample(at);
    }

    pub(super) fn end_warmup(&mut self) {
        for flow in self.flows.iter_mut().flatten() {
            flow.at_warmup = flow.counts();
        }
        for row in &mut self.ended {
            row.at_warmup = row.counts;
        }
        self.measuring = true;
    }
}
