//! Socket events: connections and datagrams reach servers, streams can be read and written, flows complete
//! and end.

use std::net::SocketAddr;

use aqmlab_network::End;
use aqmlab_recording::{Ending, StoppedBy};
use aqmlab_scenario::Completed;
use aqmlab_traffic::ConnectionEvent;
use aqmlab_units::Instant;
use rustix::event::epoll::{self, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SocketFlags};

use super::{EventSource, Generator, socket_error};
use crate::addresses::client_port;
use crate::error::LiveError;
use crate::traffic::flow::{Body, Flow, FlowKey};
use crate::traffic::stream::Stream;

/// Maximum number of datagrams or connections that a server accepts before the next socket is served.
const PER_SERVER: usize = 64;

impl Generator<'_> {
    pub(super) fn on_event(
        &mut self,
        source: EventSource,
        flags: EventFlags,
        now: Instant,
        scratch: &mut [u8],
    ) -> Result<(), LiveError> {
        match source {
            EventSource::Server(class) => match self.hosts.stacks[usize::from(class)].tcp {
                Some(_) => self.accept(class.into(), now)?,
                None => self.receive(class.into(), scratch),
            },
            EventSource::End(flow, end) => self.on_stream(flow, end, flags, now, scratch),
        }
        Ok(())
    }

    /// Accepts connections that have reached a server.
    fn accept(&mut self, class: usize, now: Instant) -> Result<(), LiveError> {
        for _ in 0..PER_SERVER {
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            let (socket, from) = match rustix::net::acceptfrom_with(self.server(class), flags) {
                Ok((socket, from)) => (socket, from.and_then(|from| SocketAddr::try_from(from).ok())),
                Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => return Ok(()),
                Err(error) => return Err(socket_error("accept", "a connection")(error.into())),
            };
            let window = self.hosts.stacks[class].tcp.as_ref().and_then(|tcp| tcp.receive_window);
            match self.flow_from(class, from).map(|flow| (flow.key, &mut flow.body)) {
                Some((key, Body::Tcp(connection))) if !connection.is_accepted() => {
                    connection.accepted(Stream::new(socket, false, window));
                    self.see_to(key, now);
                }
                _ => self.socket_errors.strays += 1,
            }
        }
        Ok(())
    }

    /// Returns the flow whose client has this address and port.
    fn flow_from(&mut self, class: usize, from: Option<SocketAddr>) -> Option<&mut Flow> {
        let from = from?;
        self.flows[class].get_mut(client_port(from.ip(), from.port())? as usize)?.as_deref_mut()
    }

    /// Receives datagrams that have reached a server.
    fn receive(&mut self, class: usize, scratch: &mut [u8]) {
        for _ in 0..PER_SERVER {
            let received = rustix::net::recvfrom(self.server(class), &mut *scratch, RecvFlags::TRUNC);
            let Ok((_, length, from)) = received else { return };
            let from = from.and_then(|from| SocketAddr::try_from(from).ok());
            match self.flow_from(class, from).map(|flow| &mut flow.body) {
                Some(Body::Packets(datagrams)) => datagrams.delivered(length),
                _ => self.socket_errors.strays += 1,
            }
        }
    }

    /// Handles an event at an end of a connection.
    fn on_stream(&mut self, key: FlowKey, end: End, flags: EventFlags, now: Instant, scratch: &mut [u8]) {
        let Some(Flow { body: Body::Tcp(connection), .. }) = self.flow(key) else { return };
        let Some(stream) = connection.end(end) else { return };
        if flags.contains(EventFlags::ERR) {
            // Most often, this flag reports an acknowledgment.
            stream.forget_stamps();
            if let Some(error) = stream.error() {
                return self.fail(key, error, now);
            }
        }
        let opened = flags.contains(EventFlags::OUT) && stream.opened() && end == End::Client;
        if flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::RDHUP)
            && let Err(error) = connection.read(end, scratch)
        {
            return self.fail(key, error.raw_os_error().unwrap_or(0), now);
        }
        let (wake_at, done) = connection.look(now);
        if opened {
            self.notify_population(key, now, ConnectionEvent::Opened);
        }
        for done in done {
            if let Some(&mut Flow { of, .. }) = self.flow(key) {
                self.populations.request_ended(key.class.into(), of, &done, Ending::Completed, now);
                if !done.response.is_zero() {
                    self.count_completed(key.class.into(), Completed::Requests, now);
                }
            }
            self.notify_population(key, now, ConnectionEvent::ExchangeDone(done));
        }
        self.wake_later(key, wake_at);
        self.see_to(key, now);
    }

    /// Updates a connection after each change: both ends write, the kernel is asked to watch for the events
    /// that they await, and the completion and the end of the connection are detected.
    pub(super) fn see_to(&mut self, key: FlowKey, now: Instant) {
        let Some(Flow { body: Body::Tcp(connection), completed, .. }) = self.flow(key) else { return };
        if let Err(error) = connection.write() {
            return self.fail(key, error.raw_os_error().unwrap_or(0), now);
        }
        let completes = completed.is_none() && connection.is_complete();
        if completes {
            *completed = Some(now);
        }
        let is_over = connection.is_over();
        self.watch(key);
        if completes {
            self.count_completed(key.class.into(), Completed::Flows, now);
        }
        if is_over {
            self.end_flow(key, ConnectionEvent::Closed, now);
        }
    }

    /// Asks the kernel to report the events for which the two ends of a connection now wait, if these have
    /// changed.
    fn watch(&mut self, key: FlowKey) {
        let flow = self.flows[usize::from(key.class)][key.row as usize].as_deref_mut();
        let Some(Flow { body: Body::Tcp(connection), .. }) = flow else { return };
        for end in End::ALL {
            let Some(stream) = connection.end(end) else { continue };
            let (was_watched, data) = (stream.is_watched(), EventSource::End(key, end).data());
            let Some(interest) = stream.new_interest() else { continue };
            // The descriptor is open and belongs to this process, so the call can fail only for lack of
            // memory, in which case the flow makes no further progress. A socket that waits for nothing would
            // keep reporting that it has been closed, so it is not watched.
            let _ = match (was_watched, interest.is_empty()) {
                (true, true) => epoll::delete(&self.epoll, stream.fd()),
                (true, false) => epoll::modify(&self.epoll, stream.fd(), data, interest),
                (false, _) => epoll::add(&self.epoll, stream.fd(), data, interest),
            };
        }
    }

    fn count_completed(&mut self, class: usize, what: Completed, now: Instant) {
        let ends = self.schedule.is_measuring() && self.populations.completed(class, what);
        if ends
            && self.run_end.bring_forward(now)
            && let Some(network) = &self.network
        {
            network.control.end_at(now, StoppedBy::Completed);
        }
    }

    /// Counts a connection that has ended with an error. The run continues.
    fn fail(&mut self, key: FlowKey, error: i32, now: Instant) {
        self.socket_errors.count(error);
        self.end_flow(key, ConnectionEvent::Failed, now);
    }

    /// Records that the pending requests of a flow have ended at `at`, because they will not be answered.
    pub(super) fn requests_cut_off(&mut self, key: FlowKey, how: Ending, at: Instant) {
        let Some(flow) = self.flow(key) else { return };
        let of = flow.of;
        for exchange in flow.requests_under_way() {
            self.populations.request_ended(key.class.into(), of, &exchange, how, at);
        }
    }

    /// Notifies the population of a connection's class of `event`, unless the connection's
    /// applications have been stopped.
    fn notify_population(&mut self, key: FlowKey, now: Instant, event: ConnectionEvent) {
        let Some(Flow { body: Body::Tcp(connection), of, .. }) = self.flow(key) else { return };
        if connection.has_session() {
            let (class, of) = (usize::from(key.class), *of);
            let wake = self.populations.on_event(class, now, of, event);
            self.wake_population(class, wake);
        }
    }

    fn end_flow(&mut self, key: FlowKey, how: ConnectionEvent, now: Instant) {
        self.requests_cut_off(key, Ending::Failed, now);
        self.notify_population(key, now, how);
        let Some(flow) = self.flows[usize::from(key.class)][key.row as usize].take() else { return };
        self.asked_on.remove(&(key.class, flow.of));
        self.populations.flow_ended(flow.row());
        self.populations.give_back(key.class.into(), key.row, now);
        if let (Body::Tcp(connection), ConnectionEvent::Failed) = (flow.body, how) {
            // Otherwise, later packets of this end would reach the next connection that uses the client port.
            connection.abort();
        }
    }
}
