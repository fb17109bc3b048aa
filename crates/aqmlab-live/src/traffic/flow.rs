//! Flows, each of which is a connection with both its ends, or a stream of datagrams.

use std::io;

use aqmlab_network::End;
use aqmlab_traffic::{Act, ExchangeDone, Identity, PageObject, Session, Step, StreamPosition};
use aqmlab_units::{Bytes, Instant, Span};

use super::counts::KernelCounts;
use super::datagrams::Datagrams;
use super::populations::FlowRow;
use super::stream::Stream;

/// Key of a flow. A client port carries many flows, one after another; the key identifies one of them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct FlowKey {
    /// The class.
    pub class: u16,
    /// The client port.
    pub row: u32,
    /// Number of flows opened before this one, modulo 2^30.
    pub opened: u32,
}

/// A flow that has started but not ended.
#[derive(Debug)]
pub struct Flow {
    /// Its own key.
    pub key: FlowKey,
    /// The number that the flow, or its user, has in the run. Numbers follow the plan's order of
    /// classes and, within a class, the order of its flows.
    pub number: u32,
    /// Its identity among the connections of its class.
    pub of: Identity,
    /// Time of its start.
    pub start: Instant,
    /// Round-trip propagation delay.
    pub base_rtt: Span,
    /// Time at which the flow's receiver had received all data.
    pub completed: Option<Instant>,
    /// Its connection, or its stream of datagrams.
    pub body: Body,
    /// Its counts at the end of the warm-up.
    pub at_warmup: KernelCounts,
}

/// Kind of a flow.
#[derive(Debug)]
pub enum Body {
    /// A TCP connection.
    Tcp(Box<Connection>),
    /// A one-way stream of datagrams.
    Packets(Box<Datagrams>),
}

/// Both ends of a connection.
#[derive(Debug)]
pub struct Connection {
    client: Stream,
    /// The server's end, once the connection has been accepted.
    server: Option<Stream>,
    /// Actions of the server's application, delayed until the server's end exists.
    waiting: Vec<Act>,
    session: Option<Session>,
    /// The endpoint that receives the last of the data.
    last: End,
    /// Whether the server sends data, too.
    is_answered: bool,
    /// Whether the last of the data has arrived although its sender has not closed.
    received_all: bool,
}

impl Connection {
    /// Returns a connection that `client` opens, and that its server has not yet accepted.
    pub fn new(client: Stream, session: Option<Session>) -> Self {
        let last = session.as_ref().map_or(End::Server, Session::last_arrives_at);
        let is_answered = session.as_ref().is_some_and(Session::is_answered);
        let (server, waiting, received_all) = (None, Vec::new(), false);
        Connection { client, server, waiting, session, last, is_answered, received_all }
    }

    /// Executes the applications' first actions; returns the instant at which the session wants to be woken.
    pub fn begin(&mut self, now: Instant) -> Option<Instant> {
        let step = self.session.as_mut()?.begin(now);
        self.act(&step)
    }

    /// Records that the server has accepted the connection.
    pub fn accepted(&mut self, mut server: Stream) {
        self.waiting.drain(..).for_each(|act| server.act(act));
        self.server = Some(server);
    }

    /// Returns whether the server has accepted the connection.
    pub fn is_accepted(&self) -> bool {
        self.server.is_some()
    }

    /// Wakes the session at an instant that it has requested; returns the instant at which the
    /// session wants to be woken again.
    pub fn wake(&mut self, at: Instant) -> Option<Instant> {
        let step = self.session.as_mut()?.on_timer(at);
        self.act(&step)
    }

    /// Handles the user's request for more objects; closes the connection if nothing is requested.
    pub fn ask(&mut self, now: Instant, objects: &[PageObject]) {
        match &mut self.session {
            Some(session) if !objects.is_empty() => {
                let step = session.ask(now, objects);
                self.act(&step);
            }
            _ => self.client.close(),
        }
    }

    /// Informs the session of the progress of the streams at both ends. Returns the instant at
    /// which the session wants to be woken, and the exchanges that have finished.
    pub fn look(&mut self, now: Instant) -> (Option<Instant>, Vec<ExchangeDone>) {
        let Some(session) = &mut self.session else { return (None, Vec::new()) };
        let acked = match session {
            Session::Bursts(_) => self.client.acked(),
            _ => 0,
        };
        let at_client = StreamPosition { delivered: self.client.read_bytes(), acked };
        let delivered = self.server.as_ref().map_or(0, Stream::read_bytes);
        let at_server = StreamPosition { delivered, acked: 0 };
        let (mut wake_at, mut done) = (None, Vec::new());
        for (end, position) in [(End::Server, at_server), (End::Client, at_client)] {
            while let Some(session) = &mut self.session {
                let step = session.on_progress(now, end, position);
                done.extend(step.done);
                self.received_all |= step.receiver_closes();
                wake_at = self.act(&step).or(wake_at);
                if !step.more {
                    break;
                }
            }
        }
        (wake_at, done)
    }

    /// Returns the exchanges that have begun but not ended.
    pub fn under_way(&self) -> Vec<ExchangeDone> {
        self.session.iter().flat_map(Session::under_way).collect()
    }

    /// Stops the sending application, regardless of what its session has scheduled.
    pub fn stop(&mut self) {
        self.session = None;
        self.client.close();
    }

    /// Returns whether a session still determines what the connection carries.
    pub fn has_session(&self) -> bool {
        self.session.is_some()
    }

    fn act(&mut self, step: &Step) -> Option<Instant> {
        if let Some(act) = step.client {
            self.client.act(act);
        }
        if let Some(act) = step.server {
            match &mut self.server {
                Some(server) => server.act(act),
                None => self.waiting.push(act),
            }
        }
        step.wake_at
    }

    /// Returns one end, if it exists.
    pub fn end(&mut self, end: End) -> Option<&mut Stream> {
        match end {
            End::Client => Some(&mut self.client),
            End::Server => self.server.as_mut(),
        }
    }

    /// Reads the data that has arrived at an end. An application closes its end once its peer has closed.
    ///
    /// # Errors
    /// Any error from the operating system.
    pub fn read(&mut self, end: End, scratch: &mut [u8]) -> io::Result<()> {
        let Some(stream) = self.end(end) else { return Ok(()) };
        stream.read(scratch)?;
        if stream.peer_has_closed() {
            stream.close();
        }
        Ok(())
    }

    /// Writes the pending data of both ends.
    ///
    /// # Errors
    /// Any error from the operating system.
    pub fn write(&mut self) -> io::Result<()> {
        self.client.write()?;
        self.server.as_mut().map_or(Ok(()), Stream::write)
    }

    /// Returns whether the last of the data has arrived.
    pub fn is_complete(&self) -> bool {
        let peer_has_closed = match self.last {
            End::Client => self.client.peer_has_closed(),
            End::Server => self.server.as_ref().is_some_and(Stream::peer_has_closed),
        };
        self.received_all || peer_has_closed
    }

    /// Returns whether both ends have closed.
    pub fn is_over(&self) -> bool {
        self.client.is_done() && self.server.as_ref().is_some_and(Stream::is_done)
    }

    /// Returns the sending end.
    pub fn sender(&self) -> &Stream {
        &self.client
    }

    /// Returns the number of bytes that the receiving application has received.
    pub fn delivered(&self) -> Bytes {
        Bytes::new(self.server.as_ref().map_or(0, Stream::read_bytes))
    }

    /// Returns the counts so far. As in the simulator, they cover both ends if the server responds.
    pub fn counts(&self) -> KernelCounts {
        let delivered_bytes = Some(self.delivered().get());
        let toward_server = KernelCounts { delivered_bytes, ..self.client.sent() };
        match &self.server {
            Some(server) if self.is_answered => {
                let delivered_bytes = Some(self.client.read_bytes());
                toward_server.plus(KernelCounts { delivered_bytes, ..server.sent() })
            }
            _ => toward_server,
        }
    }

    /// Ends the connection immediately.
    pub fn abort(self) {
        self.client.abort();
        if let Some(server) = self.server {
            server.abort();
        }
    }
}

impl Flow {
    /// Returns the row in which the flow is recorded.
    pub fn row(&self) -> FlowRow {
        FlowRow {
            number: self.number,
            class: self.key.class,
            index: self.of.user,
            start: self.start,
            end: self.completed,
            base_rtt: self.base_rtt,
            counts: self.counts(),
            at_warmup: self.at_warmup,
        }
    }

    /// Returns the exchanges that the flow's applications have begun but not finished.
    pub fn requests_under_way(&self) -> Vec<ExchangeDone> {
        match &self.body {
            Body::Tcp(connection) => connection.under_way(),
            Body::Packets(_) => Vec::new(),
        }
    }

    /// Returns the counts so far.
    pub fn counts(&self) -> KernelCounts {
        match &self.body {
            Body::Tcp(connection) => connection.counts(),
            Body::Packets(datagrams) => datagrams.counts(),
        }
    }
}
