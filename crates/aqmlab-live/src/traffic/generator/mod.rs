//! The generator: one thread that drives every socket of every host.
//!
//! Its loop is here; [`timer_events`] has what it does when an instant comes, [`socket_events`] what it does when something happens at sockets.

mod socket_events;
mod timer_events;

use std::os::fd::OwnedFd;

use aqmlab_network::{End, request_recorder};
use aqmlab_qdisc::Histogram;
use aqmlab_recording::{Ending, RequestRecord, RequestRecorder, Table};
use aqmlab_scenario::Plan;
use aqmlab_units::{Instant, Span};
use rustix::event::Timespec;
use rustix::event::epoll::{self, EventFlags};
use rustix::io::Errno;

use super::counts::SocketErrors;
use super::flow::{Body, Flow};
use super::interest::Whose;
use super::signals::Signals;
use super::sockets;
use super::tables::{FlowRow, row_of, series_table};
use super::timers::{Due, Timers};
use crate::data_plane::{Clock, DataPlaneControl};
use crate::error::LiveError;
use crate::host::Hosts;
use crate::host_id::HostId;

/// What the generator leaves behind.
#[derive(Debug)]
pub struct Outcome {
    /// Of each flow that started, in the order of their numbers.
    pub rows: Vec<FlowRow>,
    /// The table `flow_series`.
    pub series: Table,
    /// What became of requests, if a class makes some.
    pub requests: Option<RequestRecord>,
    /// What went wrong at sockets.
    pub socket_errors: SocketErrors,
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
    requests: Option<RequestRecorder>,
    socket_errors: SocketErrors,
    lateness_ns: Histogram,
    measuring: bool,
    /// Who is told at once when enough flows have completed.
    router: Option<&'a DataPlaneControl>,
}

/// The longest that the generator sleeps: so soon it hears that the run has ended.
const LONGEST_WAIT: Span = Span::ms(10);
/// Instants dealt with before sockets have their turn, and events of sockets before instants have theirs.
const PER_PASS: usize = 256;

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
            series: series_table(),
            // Rows are held as the bytes of their file: the run's directory is made when it is over.
            requests: request_recorder(plan, seed, None),
            socket_errors: SocketErrors::default(),
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
    pub fn with_router(self, router: &'a DataPlaneControl) -> Self {
        Generator { router: Some(router), ..self }
    }

    fn add_class(&mut self, number: usize) -> Result<(), LiveError> {
        let (plan, stack) = (&self.plan.classes[number], &self.hosts.stacks[number]);
        let host = self.hosts.of(HostId { class: number, side: End::Server });
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
                // A burst of events takes milliseconds; what is due meanwhile does not wait for its end, and what comes
                // after the end is none of the run's.
                let (now, end) = (self.clock.now(), self.signals.end());
                self.do_what_is_due(now.min(end))?;
                if now >= end {
                    break;
                }
                self.on_event(Whose::of(event.data), event.flags, now, &mut scratch)?;
            }
        }
        Ok(self.finish(used))
    }

    fn finish(mut self, used: Span) -> Outcome {
        if !self.measuring {
            // It was ended in the warm-up: nothing is measured.
            self.end_warmup();
        }
        let end = self.signals.end();
        (0..self.flows.len() as u32).for_each(|flow| self.request_cut_off(flow, Ending::Censored, end));
        self.ended.extend(self.flows.iter().flatten().map(|flow| row_of(flow)));
        self.ended.sort_unstable_by_key(|row| row.number);
        for flow in self.flows.drain(..).flatten() {
            if let Body::Tcp(connection) = flow.body {
                connection.abort();
            }
        }
        let requests = self.requests.map(RequestRecorder::finish).transpose();
        Outcome {
            rows: self.ended,
            series: self.series,
            requests: requests.expect("times and sizes of a run fit their columns, and memory takes them"),
            socket_errors: self.socket_errors,
            lateness_ns: self.lateness_ns,
            processor_time: Clock::thread_time().saturating_sub(used),
            still_open: self.classes.into_iter().map(|class| class.server).collect(),
        }
    }
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
