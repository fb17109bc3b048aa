//! The generator: one thread that drives every socket of every host.
//!
//! Its loop is here; [`timer_events`] handles timed events, and [`socket_events`] handles events on
//! sockets.

mod socket_events;
mod timer_events;

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;

use aqmlab_network::{End, Schedule};
use aqmlab_qdisc::Histogram;
use aqmlab_recording::{Ending, RequestRecord, StoppedBy, Table, schema};
use aqmlab_scenario::{Plan, Traffic};
use aqmlab_traffic::Identity;
use aqmlab_units::{Instant, Span};
use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;

use super::counts::SocketErrors;
use super::flow::{Body, Flow, FlowKey};
use super::populations::{FlowRow, Populations};
use super::sockets;
use super::timers::{RunEnd, Timers};
use crate::addresses::HostId;
use crate::data_plane::{Clock, DataPlaneControl};
use crate::error::LiveError;
use crate::feasible;
use crate::host::Hosts;
use crate::router::{Announcer, client_ports};

/// Results of the generator.
#[derive(Debug)]
pub struct Outcome {
    /// One row for each flow that started, or for each user with a connection, in the order of their numbers.
    pub rows: Vec<FlowRow>,
    /// The table `flow_series`.
    pub series: Table,
    /// Record of requests, if a class makes any.
    pub requests: Option<RequestRecord>,
    /// Errors on sockets.
    pub socket_errors: SocketErrors,
    /// Lateness of flows' starts, datagrams' departures and sessions' wake-ups, in nanoseconds.
    pub lateness_ns: Histogram,
    /// Processor time of the generator, including what the kernel has spent on its behalf.
    pub processor_time: Span,
    /// Sockets that are kept open: if they were closed, the kernel would answer packets in flight with
    /// errors.
    pub still_open: Vec<OwnedFd>,
}

/// The router that carries the traffic.
struct Network<'a> {
    announcer: Announcer,
    control: &'a DataPlaneControl,
}

/// See the module.
pub struct Generator<'a> {
    plan: &'a Plan,
    seed: u64,
    hosts: &'a Hosts,
    clock: Clock,
    run_end: &'a RunEnd,
    epoll: OwnedFd,
    timers: Timers,
    /// The times of flow samples, of the end of the warm-up, and of the end of the run.
    schedule: Schedule,
    populations: Populations,
    /// For each class, the socket that accepts its connections or receives its datagrams; programs have their own.
    servers: Vec<Option<OwnedFd>>,
    /// For each class and client port, the open flow.
    flows: Vec<Vec<Option<Box<Flow>>>>,
    /// Number of flows opened so far.
    opened: u32,
    /// The connections on which users send request after request, by class and identity.
    asked_on: BTreeMap<(u16, Identity), FlowKey>,
    series: Table,
    socket_errors: SocketErrors,
    lateness_ns: Histogram,
    network: Option<Network<'a>>,
    /// Whether the clock stands still while threads compute.
    virtual_time: bool,
    /// In virtual time: the time since the last wait. Reading it again would cost a system call.
    held: Option<Instant>,
}

/// Maximum time that the generator sleeps, so that it soon notices the end of the run.
const LONGEST_WAIT: Span = Span::ms(10);
/// Maximum number of due events that are handled before the sockets are served, and of socket events that are
/// handled before the next due events.
const PER_PASS: usize = 256;

impl<'a> Generator<'a> {
    /// Creates the generator and prepares everything that can be prepared before the run begins;
    /// when this returns, the servers' sockets are open.
    ///
    /// # Errors
    /// If a socket cannot be opened.
    pub fn new(
        plan: &'a Plan,
        seed: u64,
        hosts: &'a Hosts,
        clock: Clock,
        run_end: &'a RunEnd,
    ) -> Result<Self, LiveError> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)
            .map_err(|e| socket_error("make", "an epoll")(e.into()))?;
        let ports = client_ports(plan)?;
        let none = |&ports: &u32| (0..ports).map(|_| None).collect();
        let mut generator = Generator {
            plan,
            seed,
            hosts,
            clock,
            run_end,
            epoll,
            timers: Timers::default(),
            schedule: Schedule::without_queues(plan),
            populations: Populations::new(plan, seed, &ports, feasible::most_connections(plan)),
            servers: Vec::new(),
            flows: ports.iter().map(none).collect(),
            opened: 0,
            asked_on: BTreeMap::new(),
            series: series_table(),
            socket_errors: SocketErrors::default(),
            lateness_ns: Histogram::new(),
            network: None,
            virtual_time: false,
            held: None,
        };
        (0..plan.classes.len()).try_for_each(|class| generator.open_server(class))?;
        generator.hosts.home.enter()?;
        for class in 0..plan.classes.len() {
            if generator.servers[class].is_none() {
                continue;
            }
            let wake = generator.populations.begin(class);
            generator.wake_population(class, wake);
        }
        Ok(generator)
    }

    /// Connects the router that carries the traffic: connections are announced to it, and its
    /// measured interval ends when enough flows have completed.
    pub fn with_router(self, announcer: Announcer, control: &'a DataPlaneControl) -> Self {
        Generator { network: Some(Network { announcer, control }), ..self }
    }

    /// In virtual time, the clock is read only after each wait.
    pub fn in_virtual_time(self, virtual_time: bool) -> Self {
        Generator { virtual_time, ..self }
    }

    /// The time.
    fn now(&self) -> Instant {
        self.held.unwrap_or_else(|| self.clock.now())
    }

    fn open_server(&mut self, class: usize) -> Result<(), LiveError> {
        let (plan, stack) = (&self.plan.classes[class], &self.hosts.stacks[class]);
        if matches!(plan.traffic, Traffic::Program(_)) {
            self.servers.push(None);
            return Ok(());
        }
        let host = self.hosts.of(HostId { class, side: End::Server });
        let at = self.hosts.addresses.server(class, plan.port);
        let server = match &stack.tcp {
            Some(options) => sockets::listener(host, at, options),
            None => sockets::datagram_server(host, at),
        }
        .map_err(socket_error("open", format!("the server of class `{}`", plan.name)))?;
        epoll::add(&self.epoll, &server, EventSource::Server(class as u16).data(), EventFlags::IN)
            .map_err(|error| socket_error("watch", "a server")(error.into()))?;
        self.servers.push(Some(server));
        Ok(())
    }

    /// Generates the traffic until the run ends.
    ///
    /// # Errors
    /// If a socket cannot be opened, or if waiting for sockets fails.
    pub fn run(mut self) -> Result<Outcome, LiveError> {
        std::thread::sleep(std::time::Duration::from_nanos(self.clock.until_start().as_ns()));
        let used = Clock::thread_time();
        let mut events = Vec::with_capacity(PER_PASS);
        let mut scratch = vec![0; 256 << 10];
        while self.catch_up()?.is_some() {
            self.wait(&mut events)?;
            for event in events.drain(..) {
                // Handling a burst of events takes milliseconds. Anything due in the meantime does not wait
                // for the end of the burst, and events after the run's end are ignored.
                let Some(now) = self.catch_up()? else { break };
                self.on_event(EventSource::of(event.data), event.flags, now, &mut scratch)?;
            }
        }
        Ok(self.finish(used))
    }

    /// Executes everything that is due. Returns the time, or `None` once the run has ended.
    fn catch_up(&mut self) -> Result<Option<Instant>, LiveError> {
        let (now, end) = (self.now(), self.run_end.at());
        self.do_what_is_due(now.min(end))?;
        Ok((now < end).then_some(now))
    }

    /// Waits for events on sockets until something is due.
    fn wait(&mut self, events: &mut Vec<epoll::Event>) -> Result<(), LiveError> {
        let milestone = self.schedule.next().map(|(at, _)| at);
        let next =
            [self.timers.next_at(), milestone].into_iter().flatten().fold(self.run_end.at(), Instant::min);
        let wait = next.saturating_since(self.now()).min(LONGEST_WAIT);
        let wait = Timespec { tv_sec: 0, tv_nsec: wait.as_ns() as i64 };
        let waited = epoll::wait(&self.epoll, rustix::buffer::spare_capacity(events), Some(&wait));
        if self.virtual_time {
            self.held = Some(self.clock.now());
        }
        match waited {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(socket_error("wait for", "sockets")(error.into())),
        }
    }

    fn finish(mut self, used: Span) -> Outcome {
        let end = self.run_end.at();
        if end < self.schedule.t0() {
            // The run ended during the warm-up, so nothing is measured.
            self.end_warmup();
        }
        self.schedule.end(end, StoppedBy::Time);
        for flow in self.flows.iter_mut().flatten().filter_map(Option::take) {
            for exchange in flow.requests_under_way() {
                let class = usize::from(flow.key.class);
                self.populations.request_ended(class, flow.of, &exchange, Ending::Censored, end);
            }
            self.populations.flow_ended(flow.row());
            if let Body::Tcp(connection) = flow.body {
                connection.abort();
            }
        }
        let (rows, requests) = self.populations.finish(end);
        Outcome {
            rows,
            series: self.series,
            requests,
            socket_errors: self.socket_errors,
            lateness_ns: self.lateness_ns,
            processor_time: Clock::thread_time().saturating_sub(used),
            still_open: self.servers.into_iter().flatten().collect(),
        }
    }

    /// Returns the server of a class.
    ///
    /// # Panics
    /// If the class has programs, whose sockets cause no events here.
    fn server(&self, class: usize) -> &OwnedFd {
        self.servers[class].as_ref().expect("a class without programs has a server")
    }

    /// Returns a flow that is open; `None` if it has ended.
    fn flow(&mut self, key: FlowKey) -> Option<&mut Flow> {
        let flow = self.flows[usize::from(key.class)].get_mut(key.row as usize)?.as_deref_mut();
        flow.filter(|flow| flow.key == key)
    }
}

/// Returns the empty table `flow_series`.
fn series_table() -> Table {
    let names = schema::FLOW_SERIES.columns.iter().map(|(name, _)| *name);
    let known: Vec<&str> = names.filter(|name| *name != "received_bytes").collect();
    Table::partial(&schema::FLOW_SERIES, &known)
}

/// Source of an event, as encoded in the word that the kernel returns with the event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum EventSource {
    /// This end of a flow.
    End(FlowKey, End),
    /// The server of this class.
    Server(u16),
}

impl EventSource {
    /// Encodes the source. Starting from the lowest bit, the word has two bits for the kind, eight
    /// for the class, 24 for the client port and 30 for the number of the flow.
    fn data(self) -> EventData {
        let word = |class: u16, kind: u64| u64::from(class) << 2 | kind;
        EventData::new_u64(match self {
            EventSource::End(key, end) => {
                u64::from(key.opened) << 34 | u64::from(key.row) << 10 | word(key.class, end as u64)
            }
            EventSource::Server(class) => word(class, 2),
        })
    }

    fn of(data: EventData) -> Self {
        let word = data.u64();
        let class = (word >> 2 & 0xff) as u16;
        let key = FlowKey { class, row: (word >> 10 & 0xff_ffff) as u32, opened: (word >> 34) as u32 };
        match word & 3 {
            0 => EventSource::End(key, End::Client),
            1 => EventSource::End(key, End::Server),
            _ => EventSource::Server(class),
        }
    }
}

/// Mask for the number of flows opened so far, as stored in a key.
const OPENED: u32 = (1 << 30) - 1;

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::addresses::{Addresses, MOST_CLIENT_PORTS};

    #[test]
    fn an_event_comes_from_where_it_was_asked_for() {
        let most =
            FlowKey { class: Addresses::MOST_CLASSES as u16 - 1, row: MOST_CLIENT_PORTS - 1, opened: OPENED };
        let least = FlowKey { class: 0, row: 0, opened: 0 };
        for key in [least, most, FlowKey { class: 3, row: 64_511, opened: 1 }] {
            for source in [
                EventSource::End(key, End::Client),
                EventSource::End(key, End::Server),
                EventSource::Server(key.class),
            ] {
                assert_eq!(EventSource::of(source.data()), source);
            }
        }
    }
}
