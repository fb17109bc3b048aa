//! What sockets tell: connections and datagrams reach servers, streams can be read and written, flows complete and end.

use aqmlab_network::{End, recorded_exchange};
use aqmlab_recording::{Ending, StoppedBy};
use aqmlab_traffic::{ExchangeDone, Identity};
use aqmlab_units::Instant;
use rustix::event::epoll::EventFlags;
use rustix::io::Errno;
use rustix::net::{RecvFlags, SocketFlags};

use super::{Generator, socket_error};
use crate::error::LiveError;
use crate::host::flow_of_port;
use crate::traffic::flow::{Body, Flow};
use crate::traffic::interest::{Whose, watch};
use crate::traffic::stream::Stream;
use crate::traffic::tables::row_of;

/// Datagrams, or connections, that a server takes in before others have their turn.
const PER_SERVER: usize = 64;

impl Generator<'_> {
    pub(super) fn on_event(
        &mut self,
        whose: Whose,
        flags: EventFlags,
        now: Instant,
        scratch: &mut [u8],
    ) -> Result<(), LiveError> {
        match whose {
            Whose::Server(class) => match self.hosts.stacks[class as usize].tcp {
                Some(_) => self.accept(class as usize)?,
                None => self.receive(class as usize, scratch),
            },
            Whose::End(flow, end) => self.on_stream(flow, end, flags, now, scratch),
        }
        Ok(())
    }

    /// Connections have reached a server.
    fn accept(&mut self, class: usize) -> Result<(), LiveError> {
        for _ in 0..PER_SERVER {
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            let (socket, from) = match rustix::net::acceptfrom_with(&self.classes[class].server, flags) {
                Ok((socket, from)) => {
                    (socket, from.and_then(|from| std::net::SocketAddr::try_from(from).ok()))
                }
                Err(Errno::AGAIN | Errno::INTR | Errno::CONNABORTED) => return Ok(()),
                Err(error) => return Err(socket_error("accept", "a connection")(error.into())),
            };
            let number = from.and_then(|from| self.flow_at(class, from.port()));
            let flow = number.and_then(|number| self.flows[number as usize].as_mut());
            match flow.map(|flow| (flow.number, &mut flow.body)) {
                Some((number, Body::Tcp(connection))) if !connection.is_accepted() => {
                    let window = self.hosts.stacks[class].tcp.as_ref().and_then(|tcp| tcp.receive_window);
                    connection.accepted(Stream::new(socket, false, window));
                    self.see_to(number);
                }
                _ => self.socket_errors.strays += 1,
            }
        }
        Ok(())
    }

    /// The number of the flow with this port at its client.
    fn flow_at(&self, class: usize, port: u16) -> Option<u32> {
        let index = flow_of_port(port)?;
        (u64::from(index) < self.plan.classes[class].count).then(|| self.classes[class].first + index)
    }

    /// Datagrams have reached a server.
    fn receive(&mut self, class: usize, scratch: &mut [u8]) {
        for _ in 0..PER_SERVER {
            let received =
                rustix::net::recvfrom(&self.classes[class].server, &mut *scratch, RecvFlags::TRUNC);
            let Ok((_, length, from)) = received else { return };
            let from = from.and_then(|from| std::net::SocketAddr::try_from(from).ok());
            let number = from.and_then(|from| self.flow_at(class, from.port()));
            let flow = number.and_then(|number| self.flows[number as usize].as_mut());
            match flow.map(|flow| &mut flow.body) {
                Some(Body::Packets(datagrams)) => datagrams.delivered(length),
                _ => self.socket_errors.strays += 1,
            }
        }
    }

    /// Something has happened at an end of a connection.
    fn on_stream(&mut self, number: u32, end: End, flags: EventFlags, now: Instant, scratch: &mut [u8]) {
        let Some(Flow { body: Body::Tcp(connection), .. }) = self.flows[number as usize].as_deref_mut()
        else {
            return;
        };
        let Some(stream) = connection.end(end) else { return };
        if flags.contains(EventFlags::ERR) {
            // Most often it is word of an acknowledgment.
            stream.forget_stamps();
            if let Some(error) = stream.error() {
                return self.fail(number, error);
            }
        }
        if flags.contains(EventFlags::OUT) {
            stream.opened();
        }
        if flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::RDHUP)
            && let Err(error) = connection.read(end, scratch)
        {
            return self.fail(number, error.raw_os_error().unwrap_or(0));
        }
        let (wake_at, done) = connection.look(now);
        if let Some(done) = done {
            self.request_ended(number, &done, Ending::Completed, now);
        }
        self.wake_later(number, wake_at);
        self.see_to(number);
    }

    /// After each change of a connection: its ends write, what they wait for is told the kernel, and its end is noticed.
    pub(super) fn see_to(&mut self, number: u32) {
        let Some(flow) = self.flows[number as usize].as_deref_mut() else { return };
        let Body::Tcp(connection) = &mut flow.body else { return };
        if let Err(error) = connection.write() {
            return self.fail(number, error.raw_os_error().unwrap_or(0));
        }
        for end in End::ALL {
            if let Some(stream) = connection.end(end) {
                watch(&self.epoll, Whose::End(number, end), stream);
            }
        }
        let completed = flow.completed.is_none() && connection.is_complete();
        let over = connection.is_over();
        if completed {
            flow.completed = Some(self.clock.now());
            let class = flow.class as usize;
            self.count_completed(class);
        }
        if over {
            self.end_flow(number);
        }
    }

    fn count_completed(&mut self, class: usize) {
        if !self.measuring {
            return;
        }
        self.classes[class].completed += 1;
        if let Some(stop) = &self.plan.stop.completed
            && stop.class == class
            && self.classes[class].completed >= stop.count
        {
            let now = self.clock.now();
            if self.signals.end_by(now) {
                self.router.inspect(|router| router.end_at(now, StoppedBy::Completed));
            }
        }
    }

    /// A connection has ended with an error. That is counted; a run goes on.
    fn fail(&mut self, number: u32, error: i32) {
        self.socket_errors.count(error);
        self.end_flow(number);
    }

    /// What a flow waits for, if it does, has not come by `at`, and will not.
    pub(super) fn request_cut_off(&mut self, number: u32, how: Ending, at: Instant) {
        let Some(Flow { body: Body::Tcp(connection), .. }) = self.flows[number as usize].as_deref() else {
            return;
        };
        if let Some(exchange) = connection.under_way() {
            self.request_ended(number, &exchange, how, at);
        }
    }

    fn request_ended(&mut self, number: u32, exchange: &ExchangeDone, how: Ending, at: Instant) {
        let Some(flow) = self.flows[number as usize].as_deref() else { return };
        let of = Identity::first_of(flow.index);
        if let Some(requests) = &mut self.requests
            && let Some(exchange) = recorded_exchange(flow.class, of, exchange)
        {
            requests.ended(&exchange, how, at);
            requests.settle(at);
        }
    }

    fn end_flow(&mut self, number: u32) {
        self.request_cut_off(number, Ending::Failed, self.clock.now());
        if let Some(flow) = self.flows[number as usize].take() {
            self.ended.push(row_of(&flow));
        }
    }
}
