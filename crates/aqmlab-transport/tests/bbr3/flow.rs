//! One flow through a bottleneck that a test may change while the flow runs, with a log of its model.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use aqmlab_params::{Origin, Value};
use aqmlab_transport::{ENDLESS, PathModel, Profile, Segment, profile_settings};
use aqmlab_units::{Instant, Rate, Span};

use crate::support::{A, Fate, Faults, Link, Pair, Path};

/// What the network does to a segment at a time.
type Trouble = Box<dyn FnMut(Instant, &Segment) -> Fate>;

/// The sender after an arrival or an expiry of its timer, before it sends.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    pub at: Instant,
    pub model: PathModel,
    /// The window and what is outstanding, in segments.
    pub cwnd: f64,
    pub flight: f64,
    /// In segments per second.
    pub pacing_rate: f64,
    pub recovering: bool,
}

impl Entry {
    /// BBR.bw and BBR.bdp.
    pub fn bw(&self) -> f64 {
        self.model.max_bw.min(self.model.bw_shortterm)
    }

    pub fn bdp(&self) -> f64 {
        self.bw() * self.model.min_rtt.as_ns() as f64 * 1e-9
    }

    /// BBRInflight(1.0), with an offload budget of three send quanta of 1 ms and at least two segments each.
    pub fn inflight(&self) -> f64 {
        self.bdp().max(3.0 * (self.pacing_rate * 0.001).clamp(2.0, 65_536.0 / 1448.0)).max(4.0)
    }

    /// InflightWithHeadroom.
    pub fn inflight_with_headroom(&self) -> f64 {
        let bound = self.model.inflight_longterm;
        if bound.is_infinite() { bound } else { (bound - (0.15 * bound).max(1.0)).max(4.0) }
    }
}

/// A path: the rate of the bottleneck, its delay in both directions together, and its queue in packets.
#[derive(Clone, Copy)]
pub struct Bottleneck {
    pub rate: Rate,
    pub rtt: Span,
    pub depth: usize,
}

impl Bottleneck {
    pub fn mbit(rate: u64, rtt_ms: u64, depth: usize) -> Self {
        Bottleneck { rate: Rate::mbit(rate), rtt: Span::ms(rtt_ms), depth }
    }
}

pub struct Flow {
    pub net: Pair,
    there: Rc<RefCell<Trouble>>,
    back: Rc<RefCell<Trouble>>,
    clock: Rc<Cell<Instant>>,
    log: Rc<RefCell<Vec<Entry>>>,
    /// The application writes this much at this interval, next at this time.
    writes: Option<(u64, Span, Instant)>,
}

fn faults(clock: &Rc<Cell<Instant>>, trouble: &Rc<RefCell<Trouble>>) -> Faults {
    let (clock, trouble) = (clock.clone(), trouble.clone());
    Box::new(move |_, segment| (trouble.borrow_mut())(clock.get(), segment))
}

impl Flow {
    /// A flow whose application writes nothing yet.
    pub fn silent(path: Bottleneck) -> Self {
        Flow::with_seed(path, 1)
    }

    /// The same, with the draws of this seed.
    pub fn with_seed(path: Bottleneck, seed: u64) -> Self {
        let mut settings = profile_settings("linux").expect("built in");
        let mut set = |name, value| settings.set(name, value, Origin::Given);
        set("congestion", Value::Choice("bbr3"));
        set("pacing_burst", Value::Integer(1));
        set(
            "receive_window",
            Value::Size(aqmlab_units::text::Size::Bytes(aqmlab_units::Bytes::new(1 << 30))),
        );
        let profile = Profile::resolve(&mut settings).expect("consistent");
        let fast = || Link::new(Rate::gbit(1000), path.rtt.div(2), usize::MAX);
        let bottleneck = Link::new(path.rate, Span::ZERO, path.depth);
        let clock = Rc::new(Cell::new(Instant::ZERO));
        let pass = || -> Rc<RefCell<Trouble>> { Rc::new(RefCell::new(Box::new(|_, _| Fate::Pass))) };
        let (there, back) = (pass(), pass());
        let none = || Link::new(Rate::gbit(1000), Span::ZERO, usize::MAX);
        let paths = [
            Path::new([bottleneck, fast()], faults(&clock, &there)),
            Path::new([none(), fast()], faults(&clock, &back)),
        ];
        let mut net = Pair::new(profile, paths);
        let log = Rc::new(RefCell::new(Vec::new()));
        let entries = log.clone();
        let profile = net.profile.clone();
        net.applications = Some(Box::new(move |side, endpoint, at| {
            if side == A
                && let Some(model) = endpoint.path_model()
            {
                let mss = f64::from(profile.mss);
                let pacing_rate =
                    endpoint.pacing_rate(&profile).expect("BBR paces").as_bps() as f64 / 8.0 / mss;
                let flight = endpoint.flight().get() as f64 / mss;
                let (cwnd, recovering) = (endpoint.cwnd(), endpoint.is_recovering());
                entries.borrow_mut().push(Entry { at, model, cwnd, flight, pacing_rate, recovering });
            }
        }));
        net.sides[A].endpoint.set_seed(seed, &net.profile);
        net.open(Instant::ZERO);
        Flow { net, there, back, clock, log, writes: None }
    }

    /// A flow that always has data to send.
    pub fn endless(path: Bottleneck) -> Self {
        let mut flow = Flow::silent(path);
        flow.fill();
        flow
    }

    /// The application has data to send from now on.
    pub fn fill(&mut self) {
        self.writes = None;
        self.net.with(A, |endpoint, _, _| endpoint.write(ENDLESS));
    }

    /// The application has nothing to send from now on.
    pub fn pause(&mut self) {
        self.writes = None;
        self.net.with(A, |endpoint, _, _| endpoint.withdraw());
    }

    /// From now on, the application writes this many segments at this interval.
    pub fn write(&mut self, segments: u64, interval: Span) {
        self.pause();
        self.writes = Some((segments * u64::from(self.net.profile.mss), interval, self.net.now));
    }

    pub fn now(&self) -> Entry {
        *self.log.borrow().last().expect("the connection is established")
    }

    /// The entries since this time.
    pub fn since(&self, at: Instant) -> Vec<Entry> {
        self.log.borrow().iter().filter(|entry| entry.at >= at).copied().collect()
    }

    /// The bottleneck in segments per second.
    pub fn capacity(&self, rate: Rate) -> f64 {
        rate.as_bps() as f64 / 8.0 / f64::from(self.net.profile.mss + self.net.profile.header)
    }

    pub fn set_rate(&mut self, rate: Rate) {
        self.net.paths[A].links[0].set_rate(rate);
    }

    /// What happens to the sender's segments from now on.
    pub fn there(&mut self, trouble: impl FnMut(Instant, &Segment) -> Fate + 'static) {
        *self.there.borrow_mut() = Box::new(trouble);
    }

    /// What happens to acknowledgments from now on.
    pub fn back(&mut self, trouble: impl FnMut(Instant, &Segment) -> Fate + 'static) {
        *self.back.borrow_mut() = Box::new(trouble);
    }

    /// From now on, acknowledgments report at most this rate, whatever waits in the queue.
    pub fn deliver_at(&mut self, rate: Rate) {
        let per_byte = 1e9 / (self.capacity(rate) * f64::from(self.net.profile.mss));
        let (mut free_at, mut reported) = (self.net.now, None);
        self.back(move |now, segment| {
            let bytes = segment.ack.wrapping_sub(reported.unwrap_or(segment.ack));
            reported = Some(segment.ack);
            free_at = free_at.max(now) + Span::ns((f64::from(bytes) * per_byte) as u64);
            Fate::Late(free_at - now)
        });
    }

    /// Acknowledgments arrive together, at multiples of this time.
    pub fn aggregate(&mut self, interval: Span) {
        self.back(move |now, _| {
            let ns = interval.as_ns();
            Fate::Late(Span::ns((ns - now.as_ns() % ns) % ns))
        });
    }

    fn step(&mut self) {
        let next = self.net.next_event();
        if let Some((bytes, interval, at)) = self.writes
            && next.is_none_or(|next| at <= next)
        {
            self.writes = Some((bytes, interval, at + interval));
            self.net.now = at;
            self.clock.set(at);
            self.net.with(A, |endpoint, _, _| endpoint.write(bytes));
            return;
        }
        self.clock.set(next.expect("the flow goes on"));
        self.net.step();
    }

    pub fn run_for(&mut self, span: Span) {
        let end = self.net.now + span;
        while self.net.next_event().into_iter().chain(self.writes.map(|(_, _, at)| at)).min() <= Some(end) {
            if self.net.next_event().is_none() && self.writes.is_none() {
                break;
            }
            self.step();
        }
        self.net.now = self.net.now.max(end);
        self.clock.set(self.net.now);
    }

    /// Runs until the sender is in this state, for at most this time.
    pub fn until(&mut self, state: &str, most: Span) -> Entry {
        self.until_that(state, most, |entry| entry.model.state == state)
    }

    /// Runs until the sender is in another state than this one, for at most this time.
    pub fn while_in(&mut self, state: &str, most: Span) -> Entry {
        self.until_that("another state", most, |entry| entry.model.state != state)
    }

    /// Runs until something holds, for at most this time.
    pub fn until_that(&mut self, what: &str, most: Span, holds: impl Fn(&Entry) -> bool) -> Entry {
        let end = self.net.now + most;
        loop {
            self.step();
            assert!(self.net.now <= end, "{what}: not after {most}, but {:?}", self.now());
            if self.log.borrow().last().is_some_and(&holds) {
                return self.now();
            }
        }
    }

    /// Segments delivered so far.
    pub fn delivered(&self) -> f64 {
        self.net.sides[A].endpoint.acked().get() as f64 / f64::from(self.net.profile.mss)
    }

    /// Segments sent again so far.
    pub fn retransmitted(&self) -> u32 {
        self.net.sides[A].endpoint.counters().retransmitted
    }
}

/// The states in the order in which the flow enters them.
pub fn course(entries: &[Entry]) -> Vec<&'static str> {
    let mut states: Vec<_> = entries.iter().map(|entry| entry.model.state).collect();
    states.dedup();
    states
}

/// Returns whether `value` differs from `expected` by at most this share.
pub fn is_within(share: f64, value: f64, expected: f64) -> bool {
    (value / expected - 1.0).abs() <= share
}

/// The counts of rounds without growth, one per round.
pub fn counts_by_round(entries: &[Entry]) -> Vec<u8> {
    let mut counts: Vec<_> =
        entries.iter().map(|entry| (entry.model.round_count, entry.model.full_bw_count)).collect();
    counts.dedup_by_key(|(round, _)| *round);
    counts.into_iter().map(|(_, count)| count).collect()
}
