//! Timed events: connections open, sessions act, datagrams leave, flows stop, samples are taken.

use std::io;

use aqmlab_network::{End, FlowPath, Milestone};
use aqmlab_recording::{Cell, Ending};
use aqmlab_scenario::FlowSource;
use aqmlab_traffic::{ConnectionEvent, Content, Identity, Opening, PageObject, Session, Wake, Woken};
use aqmlab_units::{Instant, Span};

use super::{Generator, OPENED, PER_PASS, socket_error};
use crate::addresses::HostId;
use crate::error::LiveError;
use crate::sys;
use crate::traffic::counts::KernelCounts;
use crate::traffic::datagrams::Datagrams;
use crate::traffic::flow::{Body, Connection, Flow, FlowKey};
use crate::traffic::sockets;
use crate::traffic::stream::Stream;
use crate::traffic::timers::TimerEvent;

/// Maximum number of client ports that are tried for a connection. A port may still be in TIME-WAIT
/// if the client closed the port's previous connection first.
const PORTS_TRIED: usize = 8;

impl Generator<'_> {
    /// Executes the events due by `now`, but at most `PER_PASS`, so that the sockets do not wait too long. At
    /// any one instant, milestones come last.
    pub(super) fn do_what_is_due(&mut self, now: Instant) -> Result<(), LiveError> {
        for _ in 0..PER_PASS {
            let milestone = self.schedule.next().filter(|(at, _)| *at <= now);
            match self.timers.take(milestone.map_or(now, |(at, _)| at)) {
                Some((at, TimerEvent::Open { class, user })) => self.open(class.into(), Wake { at, user })?,
                Some((at, TimerEvent::Wake(flow))) => self.wake(flow, at),
                Some((_, TimerEvent::Stop(flow))) => self.stop(flow, now),
                None => match milestone {
                    Some((at, milestone)) => self.reach(at, milestone),
                    None => return Ok(()),
                },
            }
        }
        Ok(())
    }

    pub(super) fn wake_population(&mut self, class: usize, wake: Option<Wake>) {
        if let Some(Wake { at, user }) = wake {
            self.timers.add(at, TimerEvent::Open { class: class as u16, user });
        }
    }

    /// Opens the next flow or connection of a class.
    fn open(&mut self, class: usize, wake: Wake) -> Result<(), LiveError> {
        let (at, now) = (wake.at, self.now());
        self.lateness_ns.add(now.saturating_since(at).as_ns(), 1);
        let woken = self.populations.on_wake(class, wake);
        self.wake_population(class, woken.wake());
        let opening = match woken {
            Woken::Opens(opening) => opening,
            Woken::Asks { of, objects, .. } => {
                self.ask(class, of, &objects, at);
                return Ok(());
            }
            Woken::Closes { of, .. } => {
                self.ask(class, of, &[], at);
                return Ok(());
            }
        };
        let of = opening.open;
        match self.start(class, opening, at, now)? {
            Some(flow) => {
                if let Some(stop_at) = self.plan.classes[class].stop_at {
                    self.timers.add((Instant::ZERO + stop_at).max(at), TimerEvent::Stop(flow));
                }
                self.begin(flow, at);
            }
            None => {
                let next = self.populations.on_event(class, now, of, ConnectionEvent::Failed);
                self.wake_population(class, next);
            }
        }
        Ok(())
    }

    /// Passes on a user's request for more objects on a connection; the connection closes if nothing is
    /// requested.
    fn ask(&mut self, class: usize, of: Identity, objects: &[PageObject], at: Instant) {
        let Some(&key) = self.asked_on.get(&(class as u16, of)) else { return };
        if let Some(Flow { body: Body::Tcp(connection), .. }) = self.flow(key) {
            connection.ask(at, objects);
            self.see_to(key, at);
        }
    }

    /// Gives a flow its client port and its sockets. If they are not available, counts the failure and
    /// returns `None`.
    ///
    /// # Errors
    /// Any error from the operating system if the flow belongs to a list, because the cause would persist.
    fn start(
        &mut self,
        class: usize,
        Opening { open: of, content, .. }: Opening,
        at: Instant,
        now: Instant,
    ) -> Result<Option<FlowKey>, LiveError> {
        let plan = &self.plan.classes[class];
        let path = FlowPath::new(self.plan, class, self.plan.propagation(class), Some(of), self.seed);
        let path = path.carrying(content.connection());
        for _ in 0..PORTS_TRIED {
            let Some(row) = self.populations.take_port(class, of, now) else { break };
            let source = plan.source(of, content.clone(), at, self.seed);
            match self.body(class, row, of, source, &path) {
                Ok(body) => {
                    let key = self.insert(class, row, of, at, path.whole_base_rtt(), body);
                    if matches!(content, Content::Objects(_)) {
                        self.asked_on.insert((key.class, of), key);
                    }
                    return Ok(Some(key));
                }
                Err(error) if self.populations.is_list(class) => {
                    let name = format!("flow {} of class `{}`", of.user, plan.name);
                    return Err(socket_error("start", name)(error));
                }
                Err(error) => {
                    self.populations.give_back(class, row, now);
                    match error.raw_os_error() {
                        Some(libc::EADDRNOTAVAIL | libc::EADDRINUSE) => {}
                        error => {
                            self.socket_errors.count(error.unwrap_or(0));
                            return Ok(None);
                        }
                    }
                }
            }
        }
        self.socket_errors.no_port += 1;
        Ok(None)
    }

    fn insert(
        &mut self,
        class: usize,
        row: u32,
        of: Identity,
        at: Instant,
        base_rtt: Span,
        body: Body,
    ) -> FlowKey {
        let key = FlowKey { class: class as u16, row, opened: self.opened & OPENED };
        self.opened = self.opened.wrapping_add(1);
        let (number, at_warmup) = (self.populations.number(class, of), KernelCounts::ZERO);
        let flow = Flow { key, number, of, start: at, base_rtt, completed: None, body, at_warmup };
        self.flows[class][row as usize] = Some(Box::new(flow));
        key
    }

    fn body(
        &mut self,
        class: usize,
        row: u32,
        of: Identity,
        source: FlowSource,
        path: &FlowPath<'_>,
    ) -> io::Result<Body> {
        let (addresses, stack) = (self.hosts.addresses, &self.hosts.stacks[class]);
        let host = self.hosts.of(HostId { class, side: End::Client });
        let port = self.plan.classes[class].port;
        let (from, to) = (addresses.client(class, row), addresses.server(class, port));
        let (session, first) = match source {
            FlowSource::Packets(source) => {
                let socket = sockets::datagram_client(host, from, to)?;
                let sizes = stack.datagrams(addresses.0);
                let dscp = self.plan.classes[class].dscp;
                let packets = Datagrams::new(socket, source, sizes, addresses.0, dscp);
                return Ok(Body::Packets(Box::new(packets)));
            }
            FlowSource::Dialogue { .. } => unreachable!("`feasible` refuses dialogues"),
            FlowSource::Session(session) => (Some(session), None),
            FlowSource::Stream(act) => (None, Some(act)),
        };
        let options = stack.tcp.as_ref().expect("a class without datagrams has connections");
        let socket = sockets::client(host, from, options)?;
        if let Some(network) = self.network.as_mut().filter(|_| !self.populations.is_list(class)) {
            let announced = network.announcer.announce(class, row, of.user, path);
            announced.map_err(|_| io::Error::from_raw_os_error(libc::ENOBUFS))?;
        }
        sockets::connect(&socket, to)?;
        if matches!(session, Some(Session::Bursts(_))) {
            // Linux numbers the bytes of a connection only once the connection has begun to open.
            sys::stamp_acknowledgments(&socket)?;
        }
        let mut client = Stream::new(socket, true, options.receive_window);
        first.into_iter().for_each(|act| client.act(act));
        Ok(Body::Tcp(Box::new(Connection::new(client, session))))
    }

    /// Executes the applications' first actions.
    fn begin(&mut self, key: FlowKey, at: Instant) {
        let Some(flow) = self.flow(key) else { return };
        match &mut flow.body {
            Body::Tcp(connection) => {
                let wake_at = connection.begin(at);
                self.wake_later(key, wake_at);
                self.see_to(key, at);
            }
            Body::Packets(datagrams) => {
                let next = datagrams.next_at();
                self.wake_later(key, next);
            }
        }
    }

    pub(super) fn wake_later(&mut self, flow: FlowKey, at: Option<Instant>) {
        if let Some(at) = at {
            self.timers.add(at, TimerEvent::Wake(flow));
        }
    }

    /// Handles a timer of a session or of a source of datagrams. The next instant is computed from the one
    /// that was due, not from the present, so that lateness does not accumulate.
    fn wake(&mut self, key: FlowKey, at: Instant) {
        let late = self.now().saturating_since(at).as_ns();
        let Some(flow) = self.flow(key) else { return };
        let (next, unsent, is_connection) = match &mut flow.body {
            Body::Tcp(connection) => (connection.wake(at), false, true),
            Body::Packets(datagrams) => {
                let unsent = datagrams.next_at().is_some() && !datagrams.emit();
                (datagrams.next_at(), unsent, false)
            }
        };
        self.lateness_ns.add(late, 1);
        self.socket_errors.unsent += u64::from(unsent);
        self.wake_later(key, next);
        if is_connection {
            self.see_to(key, at);
        }
    }

    fn stop(&mut self, key: FlowKey, now: Instant) {
        self.requests_cut_off(key, Ending::Censored, now);
        let Some(flow) = self.flow(key) else { return };
        match &mut flow.body {
            Body::Tcp(connection) => {
                connection.stop();
                self.see_to(key, now);
            }
            Body::Packets(datagrams) => datagrams.stop(),
        }
    }

    fn reach(&mut self, at: Instant, milestone: Milestone) {
        match milestone {
            Milestone::SampleQueues => {} // The router takes these samples.
            Milestone::SampleFlows => self.sample(at),
            Milestone::WarmupEnd => self.end_warmup(),
            // The loop ends at the same instant.
            Milestone::End => {}
        }
        self.schedule.pass(milestone);
    }

    /// Writes a row of `flow_series` for each connection that is itself a flow.
    fn sample(&mut self, now: Instant) {
        for (class, flows) in self.flows.iter().enumerate() {
            // A user's connections get no rows, because otherwise one flow would have several rows at one
            // instant.
            let flows = flows.iter().flatten().filter(|_| self.populations.is_list(class));
            for flow in flows {
                let Body::Tcp(connection) = &flow.body else { continue };
                let Some(sample) = connection.sender().sample() else { continue };
                self.series.push([
                    now.as_ns().into(),
                    u64::from(flow.number).into(),
                    sample.cwnd.into(),
                    sample.ssthresh.into(),
                    sample.srtt.map(Span::as_ns).into(),
                    sample.flight.get().into(),
                    sample.acked.get().into(),
                    Cell::Null, // A socket reports only data that is in order.
                    connection.delivered().get().into(),
                ]);
            }
        }
    }

    pub(super) fn end_warmup(&mut self) {
        for flow in self.flows.iter_mut().flatten().flatten() {
            flow.at_warmup = flow.counts();
        }
        self.populations.warmup_ended();
    }
}
