//! The generator: one thread that drives every socket of every host.

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use aqmlab_qdisc::Histogram;
use aqmlab_recording::{StoppedBy, Table, schema};
use aqmlab_scenario::{FlowSource, Plan};
use aqmlab_traffic::Session;
use aqmlab_units::{Instant, Span};
use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SocketFlags};

use super::counts::Trouble;
use super::datagrams::Datagrams;
use super::flow::{Body, Connection, Flow};
use super::sockets;
use super::stream::Stream;
use super::tables::{FlowRow, push_sample};
use super::timers::{Due, Timers};
use crate::entry::{End, Entry};
use crate::error::LiveError;
use crate::host::{Hosts, flow_of_port};
use crate::plane::{Clock, PlaneControl};
use crate::sys;

/// What a run's threads tell each other while it goes on.
#[derive(Debug)]
pub struct Signals {
    /// The end of the measured interval, in nanoseconds.
    end: AtomicU64,
}

impl Signals {
    /// The run ends at `end`, if nobody ends it before.
    pub fn new(end: Instant) -> Self {
        Signals { end: AtomicU64::new(end.as_ns()) }
    }

    /// When the run ends.
    pub fn end(&self) -> Instant {
        Instant::from_ns(self.end.load(Ordering::Acquire))
    }

    /// It ends at `at`, if not before. Was that news?
    pub fn end_by(&self, at: Instant) -> bool {
        self.end.fetch_min(at.as_ns(), Ordering::AcqRel) > at.as_ns()
    }
}

/// What the generator leaves behind.
#[derive(Debug)]
pub struct Outcome {
    /// Of each flow that started, in the order of their numbers.
    pub rows: Vec<FlowRow>,
    /// The table `flow_series`.
    pub series: Table,
    /// What went wrong at sockets.
    pub trouble: Trouble,
    /// How late flows started, datagrams left and sessions were woken, in nanoseconds.
    pub lateness_ns: Histogram,
    /// Processor time that the generator has used, with what the kernel did on its behalf.
    pub processor_time: Span,
    /// Sockets that are still open: closed, they would answer what is under way with errors.
    pub still_open: Vec<OwnedFd>,
}

/// A class at run time.
#[derive(Debug)]
struct Class {
    /// Starts to come, the next one last.
    starts: Vec<(Instant, u32)>,
    /// The number of its first flow in the run.
    first: u32,
    /// Where connections are accepted, or datagrams arrive.
    server: OwnedFd,
    /// Flows completed since the end of the warm-up.
    completed: u64,
}

/// See the module.
#[derive(Debug)]
pub struct Generator<'a> {
    plan: &'a Plan,
    seed: u64,
    hosts: &'a Hosts,
    clock: Clock,
    signals: &'a Signals,
    epoll: OwnedFd,
    timers: Timers,
    classes: Vec<Class>,
    /// By number; `None` before they start and after they have ended.
    flows: Vec<Option<Box<Flow>>>,
    ended: Vec<FlowRow>,
    series: Table,
    trouble: Trouble,
    lateness_ns: Histogram,
    measuring: bool,
    /// Who is told at once when enough flows have completed.
    router: Option<&'a PlaneControl>,
}

/// The longest that the generator sleeps: so soon it hears that the run has ended.
const LONGEST_WAIT: Span = Span::ms(10);
/// Instants dealt with before sockets have their turn, and events of sockets before instants have theirs.
const PER_PASS: usize = 256;
/// Datagrams, or connections, that a server takes in before others have their turn.
const PER_SERVER: usize = 64;

/// Whose event it is, in the two lowest bits of what the kernel hands back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Whose {
    End(u32, End),
    Server(u32),
}

impl Whose {
    fn data(self) -> EventData {
        EventData::new_u64(match self {
            Whose::End(flow, end) => u64::from(flow) << 2 | end as u64,
            Whose::Server(class) => u64::from(class) << 2 | 2,
        })
    }

    fn of(data: EventData) -> Self {
        let number = (data.u64() >> 2) as u32;
        match data.u64() & 3 {
            0 => Whose::End(number, End::Client),
            1 => Whose::End(number, End::Server),
            _ => Whose::Server(number),
        }
    }
}

impl<'a> Generator<'a> {
    /// All that can be done before the run begins: the servers' sockets are open when this returns.
    ///
    /// # Errors
    /// If a socket cannot be opened.
    pub fn new(
        plan: &'a Plan,
        seed: u64,
        hosts: &'a Hosts,
        clock: Clock,
        signals: &'a Signals,
    ) -> Result<Self, LiveError> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)
            .map_err(|e| socket_error("make", "an epoll")(e.into()))?;
        let mut generator = Generator {
            plan,
            seed,
            hosts,
            clock,
            signals,
            epoll,
            timers: Timers::default(),
            classes: Vec::new(),
            flows: Vec::new(),
            ended: Vec::new(),
            series: Table::new(&schema::FLOW_SERIES),
            trouble: Trouble::default(),
            lateness_ns: Histogram::new(),
            measuring: plan.warmup.is_zero(),
            router: None,
        };
        (0..plan.classes.len()).try_for_each(|class| generator.add_class(class))?;
        generator.hosts.home.enter()?;
        if !generator.measuring {
            generator.timers.add(Instant::ZERO + plan.warmup, Due::WarmupEnd);
        }
        generator.schedule_sample(Instant::ZERO);
        Ok(generator)
    }

    /// The router whose measured interval ends when enough flows have completed.
    pub fn with_router(self, router: &'a PlaneControl) -> Self {
        Generator { router: Some(router), ..self }
    }

    fn add_class(&mut self, number: usize) -> Result<(), LiveError> {
        let (plan, stack) = (&self.plan.classes[number], &self.hosts.stacks[number]);
        let host = self.hosts.of(Entry { class: number, side: End::Server });
        let at = self.hosts.addresses.server(number);
        let server = match &stack.tcp {
            Some(options) => sockets::listener(host, at, options),
            None => sockets::datagram_server(host, at),
        }
        .map_err(socket_error("open", format!("the server of class `{}`", plan.name)))?;
        epoll::add(&self.epoll, &server, Whose::Server(number as u32).data(), EventFlags::IN)
            .map_err(|error| socket_error("watch", "a server")(error.into()))?;
        let first = self.flows.len() as u32;
        self.flows.resize_with(self.flows.len() + plan.count as usize, || None);
        self.classes.push(Class { starts: plan.starts(self.seed), first, server, completed: 0 });
        self.schedule_start(number);
        Ok(())
    }

    /// Runs to the end of the run.
    ///
    /// # Errors
    /// If a socket cannot be opened, or the system refuses to wait.
    pub fn run(mut self) -> Result<Outcome, LiveError> {
        std::thread::sleep(std::time::Duration::from_nanos(self.clock.until_start().as_ns()));
        let used = Clock::thread_time();
        let mut events = Vec::with_capacity(PER_PASS);
        let mut scratch = vec![0; 256 << 10];
        loop {
            let (now, end) = (self.clock.now(), self.signals.end());
            self.do_what_is_due(now.min(end))?;
            if now >= end {
                break;
            }
            let next = self.timers.next_at().map_or(end, |at| at.min(end));
            let wait = next.saturating_since(self.clock.now()).min(LONGEST_WAIT);
            let wait = Timespec { tv_sec: 0, tv_nsec: wait.as_ns() as i64 };
            match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(&mut events), Some(&wait)) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(socket_error("wait for", "sockets")(error.into())),
            }
            for event in events.drain(..) {
                self.on_event(Whose::of(event.data), event.flags, &mut scratch)?;
                // A burst of events takes milliseconds; what is due meanwhile does not wait for its end.
                let (now, end) = (self.clock.now(), self.signals.end());
                self.do_what_is_due(now.min(end))?;
                if now >= end {
                    // What comes after the end is none of the run's.
                    break;
                }
            }
        }
        Ok(self.finish(used))
    }

    fn do_what_is_due(&mut self, now: Instant) -> Result<(), LiveError> {
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

    // --- what is due --------------------------------------------------------------------------------------------------

    fn schedule_start(&mut self, class: usize) {
        if let Some(&(at, _)) = self.classes[class].starts.last() {
            self.timers.add(at, Due::Start { class: class as u32 });
        }
    }

    fn schedule_sample(&mut self, now: Instant) {
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
        let (class_number, at_warmup) = (class as u32, Default::default());
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
        let host = self.hosts.of(Entry { class, side: End::Client });
        let from = addresses.client(class, index).expect("the plan has been checked for ports");
        let to = addresses.server(class);
        let session = match self.plan.classes[class].source(index, at, self.seed) {
            FlowSource::Packets(source) => {
                let socket = sockets::datagram_client(host, from, to)?;
                let sizes = stack.datagrams(addresses.0);
                return Ok(Body::Packets(Box::new(Datagrams::new(socket, source, sizes))));
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

    fn wake_later(&mut self, flow: u32, at: Option<Instant>) {
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
                    self.trouble.unsent += 1;
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

    fn end_warmup(&mut self) {
        for flow in self.flows.iter_mut().flatten() {
            flow.at_warmup = flow.counts();
        }
        for row in &mut self.ended {
            row.at_warmup = row.counts;
        }
        self.measuring = true;
    }

    // --- what sockets tell --------------------------------------------------------------------------------------------

    fn on_event(&mut self, whose: Whose, flags: EventFlags, scratch: &mut [u8]) -> Result<(), LiveError> {
        match whose {
            Whose::Server(class) => match self.hosts.stacks[class as usize].tcp {
                Some(_) => self.accept(class as usize)?,
                None => self.receive(class as usize, scratch),
            },
            Whose::End(flow, end) => self.on_stream(flow, end, flags, scratch),
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
                _ => self.trouble.strays += 1,
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
                _ => self.trouble.strays += 1,
            }
        }
    }

    /// Something has happened at an end of a connection.
    fn on_stream(&mut self, number: u32, end: End, flags: EventFlags, scratch: &mut [u8]) {
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
        let wake_at = connection.look(self.clock.now());
        self.wake_later(number, wake_at);
        self.see_to(number);
    }

    /// After each change of a connection: its ends write, what they wait for is told the kernel, and its end is noticed.
    fn see_to(&mut self, number: u32) {
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
        self.trouble.count(error);
        self.end_flow(number);
    }

    fn end_flow(&mut self, number: u32) {
        if let Some(flow) = self.flows[number as usize].take() {
            self.ended.push(FlowRow::of(&flow));
        }
    }

    // --- the end ------------------------------------------------------------------------------------------------------

    fn finish(mut self, used: Span) -> Outcome {
        if !self.measuring {
            // It was ended in the warm-up: nothing is measured.
            self.end_warmup();
        }
        self.ended.extend(self.flows.iter().flatten().map(|flow| FlowRow::of(flow)));
        self.ended.sort_unstable_by_key(|row| row.number);
        for flow in self.flows.drain(..).flatten() {
            if let Body::Tcp(connection) = flow.body {
                connection.abort();
            }
        }
        Outcome {
            rows: self.ended,
            series: self.series,
            trouble: self.trouble,
            lateness_ns: self.lateness_ns,
            processor_time: Clock::thread_time().saturating_sub(used),
            still_open: self.classes.into_iter().map(|class| class.server).collect(),
        }
    }
}

/// Tells the kernel what a socket waits for, if that has changed. A socket that waits for nothing would go on to tell of its
/// end, so it is not watched.
fn watch(epoll: &OwnedFd, whose: Whose, stream: &mut Stream) {
    let was_watched = stream.is_watched();
    let Some(interest) = stream.new_interest() else { return };
    // The descriptor is open and belongs to us: none of these can fail but for want of memory, and then the flow stands still.
    let _ = match (was_watched, interest.is_empty()) {
        (true, true) => epoll::delete(epoll, stream.fd()),
        (true, false) => epoll::modify(epoll, stream.fd(), whose.data(), interest),
        (false, _) => epoll::add(epoll, stream.fd(), whose.data(), interest),
    };
}

fn socket_error(
    operation: &'static str,
    object: impl Into<String>,
) -> impl FnOnce(std::io::Error) -> LiveError {
    let object = object.into();
    move |error| match error.raw_os_error() {
        Some(libc::EMFILE | libc::ENFILE) => crate::host::too_few_descriptors(&error),
        _ => LiveError::io(operation, object)(error),
    }
}
