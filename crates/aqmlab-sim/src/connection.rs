//! A connection: two endpoints, the timer of each, and the applications at both ends.

use aqmlab_network::{End, FlowCounts, recorded_exchange};
use aqmlab_random::Stream;
use aqmlab_recording::{Ending, RequestRecorder};
use aqmlab_traffic::{Act, Identity, Session, Step, StreamPosition};
use aqmlab_transport::{ENDLESS, Endpoint, Profile, Role, State};
use aqmlab_units::{Instant, Span};

/// The two endpoints of a connection and the timer event for which each waits.
pub struct Connection {
    /// The endpoint that opens the connection and sends.
    pub sender: Endpoint,
    /// The endpoint that accepts the connection and receives.
    pub receiver: Endpoint,
    /// The instant of each endpoint's only valid timer event, or the far future if there is none.
    pub armed: [Instant; 2],
    /// Which endpoints have closed.
    pub closed: [bool; 2],
    /// The end at which the connection's last data arrives.
    pub last: End,
    /// Whether the server sends data, too.
    is_answered: bool,
    /// The applications, if they do anything after the start.
    pub applications: Option<Box<Applications>>,
    /// The delays that the endpoints add before they send data, if they add any.
    pub delays: Option<Box<[SendDelay; 2]>>,
}

/// The applications at both ends of a connection.
pub struct Applications {
    /// The session.
    pub session: Session,
    /// When the applications next act by themselves: the far future if they wait for an arrival,
    /// zero if they wait for their user, who may act at any time.
    pub wakes_at: Instant,
    /// The identity of the connection.
    pub of: Identity,
}

/// The delay that an endpoint adds before it sends data that its windows have released
/// ([`Profile::send_jitter`]). The delay is the same for all data that waits together.
pub struct SendDelay {
    draws: Stream,
    /// Whether the delay is running.
    running: bool,
}

impl SendDelay {
    /// Starts the delay unless it is running, and returns its duration.
    fn begin(&mut self, most: Span) -> Option<Span> {
        if self.running {
            return None;
        }
        self.running = true;
        // Rounded to whole nanoseconds, like instants. The product is below `most`, so it is a valid span.
        Some(Span::ns((most.as_ns() as f64 * self.draws.unit()) as u64))
    }
}

impl Connection {
    /// Creates two endpoints that have not opened the connection yet, and the applications if they do
    /// anything after the start. The endpoints delay what they send if there are draws for the `jitter`, and
    /// have clocks of their own if there are `clocks` ([`Endpoint::with_clock_ahead`]).
    pub fn new(
        tcp: &Profile,
        applications: Option<Box<Applications>>,
        jitter: Option<[Stream; 2]>,
        clocks: Option<[f64; 2]>,
    ) -> Self {
        let last = applications.as_ref().map_or(End::Server, |of| of.session.last_arrives_at());
        let is_answered = applications.as_ref().is_some_and(|of| of.session.is_answered());
        let endpoint = |role, end: End| match clocks {
            Some(ahead) => Endpoint::new(role, tcp).with_clock_ahead(ahead[end as usize]),
            None => Endpoint::new(role, tcp),
        };
        Connection {
            sender: endpoint(Role::Active, End::Client),
            receiver: endpoint(Role::Passive, End::Server),
            armed: [Instant::FAR_FUTURE; 2],
            closed: [false; 2],
            last,
            is_answered,
            applications,
            delays: jitter.map(|draws| Box::new(draws.map(|draws| SendDelay { draws, running: false }))),
        }
    }

    /// Gives both endpoints seeds for the draws of their congestion control.
    #[cold]
    pub fn seed(&mut self, [sender, receiver]: [u64; 2], tcp: &Profile) {
        self.sender.set_seed(sender, tcp);
        self.receiver.set_seed(receiver, tcp);
    }

    /// Starts the delay of an endpoint that has just sent all data that need not wait for the
    /// delay, and returns its duration. Does nothing, and returns `None`, if the endpoint has no
    /// delay, if the delay is already running, or if there is nothing more to send.
    pub fn begin_delay(&mut self, end: End, tcp: &Profile) -> Option<Span> {
        let wants = self.endpoint(end).wants_to_send(tcp);
        self.delays.as_mut().filter(|_| wants)?[end as usize].begin(tcp.send_jitter)
    }

    /// Completes the delay of an endpoint, which may now send everything.
    pub fn end_delay(&mut self, end: End, tcp: &Profile) {
        if let Some(delays) = &mut self.delays {
            delays[end as usize].running = false;
        }
        self.endpoint(end).release(tcp);
    }

    /// Makes the applications carry out their pending actions.
    pub fn act(&mut self, step: &Step) {
        for (endpoint, act) in [(&mut self.sender, step.client), (&mut self.receiver, step.server)] {
            match act {
                Some(Act::Write(bytes)) => endpoint.write(bytes),
                Some(Act::WriteLast(bytes)) => {
                    endpoint.write(bytes);
                    endpoint.close();
                }
                Some(Act::WriteEndlessly) => endpoint.write(ENDLESS),
                Some(Act::Withdraw) => endpoint.withdraw(),
                None => {}
            }
        }
    }

    /// Returns the positions of the connection's two streams at one end.
    pub fn position(&mut self, end: End) -> StreamPosition {
        let endpoint = self.endpoint(end);
        StreamPosition { delivered: endpoint.delivered().get(), acked: endpoint.acked().get() }
    }

    /// Records that the requests whose responses the client awaits have ended at `at` without a
    /// response. `class` is the class of the connection.
    #[cold]
    pub fn cut_off_request(
        &self,
        class: u16,
        how: Ending,
        at: Instant,
        requests: &mut Option<Box<RequestRecorder>>,
    ) {
        let waiting = self.applications.as_ref().filter(|_| !self.closed[End::Client as usize]);
        if let Some(requests) = requests
            && let Some(Applications { session, of, .. }) = waiting.map(|of| &**of)
        {
            for exchange in session.under_way() {
                if let Some(exchange) = recorded_exchange(class.into(), *of, &exchange) {
                    requests.ended(&exchange, how, at);
                }
            }
        }
    }

    /// Returns one end's part of the counts that are recorded for the flow. If the server responds,
    /// each end contributes to both the sent and the received data.
    pub fn counts(&self, end: End) -> FlowCounts {
        let (endpoint, counts_sent, counts_received) = match end {
            End::Client => (&self.sender, true, self.is_answered),
            End::Server => (&self.receiver, self.is_answered, true),
        };
        let mut counts = FlowCounts::default();
        let c = endpoint.counters();
        match end {
            End::Client => counts.syn_retransmissions = u64::from(c.syn_retransmissions),
            End::Server => counts.syn_ack_retransmissions = u64::from(c.syn_retransmissions),
        }
        if counts_sent {
            counts.sent_segments = u64::from(c.data_segments_sent);
            counts.sent_bytes = c.bytes_sent;
            counts.retransmitted_segments = u64::from(c.retransmitted);
            counts.timeouts = u64::from(c.timeouts);
            if end == End::Client {
                counts.timeouts_at_client = counts.timeouts;
            }
            counts.fast_retransmits = u64::from(c.fast_retransmits);
            counts.ecn_reductions = u64::from(c.ecn_reductions);
            counts.multiple_loss_windows = u64::from(c.multiple_loss_windows);
        }
        if counts_received {
            counts.received_bytes = endpoint.received().get();
            if end == End::Client {
                counts.received_by_client_bytes = counts.received_bytes;
            }
            counts.delivered_bytes = endpoint.delivered().get();
            counts.ce_received = u64::from(c.ce_received);
            counts.spurious_retransmissions = u64::from(c.duplicates_received);
        }
        counts
    }

    /// Returns whether nothing but arrivals happens at this endpoint up to `due`: its timer is not
    /// due in that time, and the endpoint is neither opening nor closing.
    #[inline]
    pub fn is_quiet(&self, end: End, due: Instant) -> bool {
        let endpoint = match end {
            End::Client => &self.sender,
            End::Server => &self.receiver,
        };
        endpoint.state() == State::Established && endpoint.deadline().is_none_or(|at| at > due)
    }

    /// Returns whether this endpoint is established, so that it may send and receive data.
    #[inline]
    pub fn is_established(&self, end: End) -> bool {
        let endpoint = match end {
            End::Client => &self.sender,
            End::Server => &self.receiver,
        };
        endpoint.state() == State::Established
    }

    /// Returns whether nothing but an arrival and its consequences happens at this endpoint up to
    /// `due`. This test is for connections whose applications watch the position of their streams,
    /// and for packets that open or close a connection.
    #[inline]
    pub fn changes_alone(&self, end: End, due: Instant) -> bool {
        let endpoint = match end {
            End::Client => &self.sender,
            End::Server => &self.receiver,
        };
        endpoint.deadline().is_none_or(|at| at > due)
            && self.applications.as_ref().is_none_or(|of| of.wakes_at > due)
    }

    /// Returns when the timer of an established endpoint fires, if that is before `due` and before
    /// the applications act.
    pub fn timer_before(&self, end: End, due: Instant) -> Option<Instant> {
        let endpoint = match end {
            End::Client => &self.sender,
            End::Server => &self.receiver,
        };
        let first = self.applications.as_ref().map_or(due, |of| of.wakes_at.min(due));
        endpoint.deadline().filter(|at| *at < first && endpoint.state() == State::Established)
    }

    /// Returns whether this endpoint is only waiting for late packets.
    pub fn lets_stragglers_pass(&mut self, end: End) -> bool {
        self.endpoint(end).state() == State::TimeWait
    }

    /// Completes an endpoint's wait for late packets ([`State::TimeWait`]) if that wait was over
    /// before `now`. This must be called when a packet arrives, because no event ends the wait.
    pub fn catch_up(&mut self, end: End, now: Instant, tcp: &Profile) {
        let endpoint = self.endpoint(end);
        if endpoint.state() == State::TimeWait && endpoint.deadline().is_some_and(|at| at < now) {
            endpoint.on_timer(now, tcp);
        }
    }

    /// Returns whether the connection is over: its client has given up, or both endpoints have
    /// closed. An endpoint may remain open in two cases: if it waits for late packets
    /// ([`State::TimeWait`]), because none come once all packets have left the network, or if no
    /// packet of the connection has reached it ([`State::Listen`]).
    pub fn has_ended(&self, end: End) -> bool {
        let other = match end {
            End::Client => &self.receiver,
            End::Server => &self.sender,
        };
        self.closed == [true; 2] || matches!(other.state(), State::TimeWait | State::Listen)
    }

    /// Returns one endpoint.
    #[inline]
    pub fn endpoint(&mut self, end: End) -> &mut Endpoint {
        match end {
            End::Client => &mut self.sender,
            End::Server => &mut self.receiver,
        }
    }
}
