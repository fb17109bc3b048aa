//! Two endpoints and a small virtual network between them: two links in series each way, faults at the
//! entrance, and time that jumps to the next event.
#![allow(dead_code, reason = "each test uses its part")]

pub mod one_side;
pub mod vectors;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use aqmlab_transport::{Endpoint, Options, Profile, Role, Segment, State, StreamEvent};
use aqmlab_units::{Bytes, Ecn, Instant, LinkClock, Rate, Span};

/// What the network does to one packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    Pass,
    Drop,
    Mark,
    /// The packet arrives this much later than it otherwise would.
    Late(Span),
}

/// Decides the fate of the n-th packet (from 0) that enters one direction.
pub type Faults = Box<dyn FnMut(u64, &Segment) -> Fate>;

/// No faults.
pub fn faultless() -> Faults {
    Box::new(|_, _| Fate::Pass)
}

/// Drops the packets with these numbers.
pub fn drop_list(numbers: &'static [u64]) -> Faults {
    Box::new(move |n, _| if numbers.contains(&n) { Fate::Drop } else { Fate::Pass })
}

/// Marks the packets with these numbers if they are ECN-capable.
pub fn mark_list(numbers: &'static [u64]) -> Faults {
    Box::new(move |n, _| if numbers.contains(&n) { Fate::Mark } else { Fate::Pass })
}

/// A link with a rate, a delay, and a FIFO queue of `limit` packets in addition to the one in
/// transmission.
pub struct Link {
    clock: LinkClock,
    delay: Span,
    limit: usize,
    free_at: Instant,
    /// The times at which the transmissions of the waiting packets start.
    starts: VecDeque<Instant>,
}

impl Link {
    pub fn new(rate: Rate, delay: Span, limit: usize) -> Self {
        let clock = LinkClock::new(rate);
        Link { clock, delay, limit, free_at: Instant::ZERO, starts: VecDeque::new() }
    }

    /// Changes the rate, for packets that arrive from now on.
    pub fn set_rate(&mut self, rate: Rate) {
        self.clock = LinkClock::new(rate);
    }

    /// Returns the time at which a packet sent at `now` arrives at the other end; `None` if the
    /// queue is full.
    fn carry(&mut self, now: Instant, size: Bytes) -> Option<Instant> {
        while self.starts.front().is_some_and(|start| *start <= now) {
            self.starts.pop_front();
        }
        if self.starts.len() >= self.limit {
            return None;
        }
        let start = self.free_at.max(now);
        if start > now {
            self.starts.push_back(start);
        } else {
            self.clock.restart();
        }
        self.free_at = start + self.clock.serialise(size);
        Some(self.free_at + self.delay)
    }
}

/// One direction.
pub struct Path {
    pub links: [Link; 2],
    pub faults: Faults,
    entered: u64,
}

impl Path {
    pub fn new(links: [Link; 2], faults: Faults) -> Self {
        Path { links, faults, entered: 0 }
    }

    /// Returns a path of two 100 Mbit/s links with this total delay.
    pub fn plain(delay: Span, faults: Faults) -> Self {
        let link = |d| Link::new(Rate::mbit(100), d, usize::MAX);
        Path::new([link(delay.div(2)), link(delay.div(2))], faults)
    }

    /// Returns the arrival time of a packet and its code point there; `None` if it is lost.
    fn carry(&mut self, now: Instant, seg: &Segment, header: u32) -> Option<(Instant, Ecn)> {
        let fate = (self.faults)(self.entered, seg);
        self.entered += 1;
        if fate == Fate::Drop {
            return None;
        }
        let size = seg.wire_len(header);
        // Only the first link feeds the second link, so arrivals there are in order and can be
        // computed immediately.
        let middle = self.links[0].carry(now, size)?;
        let end = self.links[1].carry(middle, size)?;
        match fate {
            Fate::Late(span) => Some((end + span, seg.ecn)),
            Fate::Mark if seg.ecn.is_capable() => Some((end, Ecn::Ce)),
            _ => Some((end, seg.ecn)),
        }
    }
}

/// One side, with everything that it has sent and all events that it has reported.
pub struct Side {
    pub endpoint: Endpoint,
    pub sent: Vec<(Instant, Segment)>,
    /// Each segment that arrived, with the state of the endpoint at that time.
    pub received: Vec<(State, Segment)>,
    pub events: Vec<(Instant, StreamEvent)>,
    /// The delay before each transmission of data, in order; used only if the profile has
    /// `send_jitter`.
    pub delays: VecDeque<Span>,
    /// The time at which the current delay ends; `None` if there is none.
    send_at: Option<Instant>,
}

impl Side {
    fn new(role: Role, profile: &Profile) -> Self {
        Side {
            endpoint: Endpoint::new(role, profile),
            sent: Vec::new(),
            received: Vec::new(),
            events: Vec::new(),
            delays: VecDeque::new(),
            send_at: None,
        }
    }

    /// Returns the number of bytes delivered to this side's application, according to its events.
    pub fn delivered(&self) -> u64 {
        self.events.iter().map(|(_, e)| if let StreamEvent::Delivered(n) = e { *n } else { 0 }).sum()
    }

    /// Returns the number of this side's bytes that have been acknowledged, according to its
    /// events.
    pub fn acked(&self) -> u64 {
        self.events.iter().map(|(_, e)| if let StreamEvent::Acked(n) = e { *n } else { 0 }).sum()
    }

    pub fn saw(&self, event: StreamEvent) -> bool {
        self.events.iter().any(|(_, e)| *e == event)
    }

    /// Returns (send time, sequence number, length) for each segment with payload.
    pub fn data_sent(&self) -> Vec<(Instant, u32, u32)> {
        self.sent.iter().filter(|(_, s)| s.len > 0).map(|(t, s)| (*t, s.seq, s.len)).collect()
    }
}

/// The indices of the side that opens the connection, and of the other side.
pub const A: usize = 0;
pub const B: usize = 1;

/// A segment in flight: its destination and its options.
struct Packet {
    to: usize,
    segment: Segment,
    options: Options,
}

/// What the applications do at one side, at a given time.
pub type Applications = Box<dyn FnMut(usize, &mut Endpoint, Instant)>;

/// Two endpoints, the two paths between them, and a clock.
pub struct Pair {
    pub now: Instant,
    pub profile: Profile,
    pub sides: [Side; 2],
    /// `paths[i]` is the path on which side `i` sends.
    pub paths: [Path; 2],
    /// The applications: called after each change of a side (`A` or `B`), before that side sends.
    pub applications: Option<Applications>,
    in_flight: BinaryHeap<Reverse<(Instant, u64)>>,
    packets: BTreeMap<u64, Packet>,
    serial: u64,
}

impl Pair {
    pub fn new(profile: Profile, paths: [Path; 2]) -> Self {
        Pair::with_roles(profile, [Role::Active, Role::Passive], paths)
    }

    pub fn with_roles(profile: Profile, roles: [Role; 2], paths: [Path; 2]) -> Self {
        let sides = roles.map(|role| Side::new(role, &profile));
        let (in_flight, packets) = (BinaryHeap::new(), BTreeMap::new());
        let applications = None;
        Pair { now: Instant::ZERO, profile, sides, paths, applications, in_flight, packets, serial: 0 }
    }

    /// Opens the connection from side A at `at`.
    pub fn open(&mut self, at: Instant) {
        self.now = at;
        self.with(A, |e, now, p| e.open(now, p));
    }

    /// Makes one call that changes one side, then drains that side.
    pub fn with(&mut self, side: usize, mutate: impl FnOnce(&mut Endpoint, Instant, &Profile)) {
        mutate(&mut self.sides[side].endpoint, self.now, &self.profile);
        if let Some(applications) = &mut self.applications {
            applications(side, &mut self.sides[side].endpoint, self.now);
        }
        self.drain(side);
    }

    fn drain(&mut self, side: usize) {
        let this = &mut self.sides[side];
        let delays = !self.profile.send_jitter.is_zero() && this.send_at != Some(self.now);
        let poll = if delays { Endpoint::poll_prompt } else { Endpoint::poll_transmit };
        while let Some(seg) = poll(&mut this.endpoint, self.now, &self.profile) {
            this.sent.push((self.now, seg));
            if let Some((at, ecn)) = self.paths[side].carry(self.now, &seg, self.profile.header) {
                self.in_flight.push(Reverse((at, self.serial)));
                let options = this.endpoint.options(&seg, &self.profile);
                let segment = Segment { ecn, ..seg };
                self.packets.insert(self.serial, Packet { to: 1 - side, segment, options });
                self.serial += 1;
            }
        }
        if delays && this.send_at.is_none() && this.endpoint.wants_to_send(&self.profile) {
            let delay = this.delays.pop_front().expect("a delay each time that data is to be sent");
            this.send_at = Some(self.now + delay);
        }
        while let Some(event) = this.endpoint.poll_event() {
            this.events.push((self.now, event));
        }
    }

    /// Returns the time of the next event, which is an arrival or a timer.
    pub fn next_event(&self) -> Option<Instant> {
        let arrival = self.in_flight.peek().map(|Reverse((at, _))| *at);
        let timers = self.sides.iter().flat_map(|s| [s.endpoint.deadline(), s.send_at]).flatten();
        arrival.into_iter().chain(timers).min()
    }

    /// Processes the next event; an arrival precedes a timer at the same time. Returns false if
    /// nothing is left.
    pub fn step(&mut self) -> bool {
        let Some(at) = self.next_event() else { return false };
        assert!(at >= self.now, "time ran backwards");
        self.now = at;
        if self.in_flight.peek().is_some_and(|Reverse((t, _))| *t == at) {
            let Reverse((_, serial)) = self.in_flight.pop().expect("peeked");
            let Packet { to, segment, options } =
                self.packets.remove(&serial).expect("stored with its event");
            let state = self.sides[to].endpoint.state();
            self.sides[to].received.push((state, segment));
            self.with(to, |e, now, p| {
                if segment.has_options() {
                    e.on_segment_with_options(now, &segment, &options, p);
                } else {
                    e.on_segment(now, &segment, p);
                }
            });
            return true;
        }
        if let Some(due) = (0..2).find(|i| self.sides[*i].send_at == Some(at)) {
            self.with(due, |e, _, p| e.release(p));
            self.sides[due].send_at = None;
            return true;
        }
        let due = (0..2).find(|i| self.sides[*i].endpoint.deadline() == Some(at)).expect("a side is due");
        self.with(due, |e, now, p| e.on_timer(now, p));
        true
    }

    /// Runs until no event is left or the next one is later than `end`.
    pub fn run_until(&mut self, end: Instant) {
        while self.next_event().is_some_and(|at| at <= end) {
            self.step();
        }
    }
}

/// Returns the instant `n` milliseconds after the start.
pub fn ms(n: u64) -> Instant {
    Instant::ZERO + Span::ms(n)
}
