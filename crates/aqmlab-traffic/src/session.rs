//! The applications at both ends of a connection, which write, pause, respond and close.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use aqmlab_random::Stream;
use aqmlab_units::{Bytes, Instant};
use schemars::JsonSchema;
use serde::Serialize;

use crate::distribution::Distribution;
use crate::listed::ListedExchanges;
use crate::on_off::{Begin, OnOff, Period, Periods};
use crate::pages::{Multiplexed, PageObject};
use crate::requests::Requests;
use crate::step::{Act, End, ExchangeDone, PlannedExchange, Step, StreamPosition};

/// The applications at both ends of one connection. Each call returns the actions that they take.
///
/// An application's actions depend only on the arrivals at its own end and on its own timers. A
/// host may therefore process the arrivals at the two ends in any order that preserves the order at
/// each end and in which causes precede effects.
#[derive(Clone, Debug)]
pub enum Session {
    /// The client always has data to send during on periods; data still unsent when an off period
    /// begins is withdrawn.
    Greedy(Greedy),
    /// Bursts of bytes; after each burst has been acknowledged, an off period follows.
    Bursts(ByteBursts),
    /// One request, one response.
    Single(SingleExchange),
    /// Any number of exchanges in succession.
    Requests(Requests),
    /// The exchanges of a list, in which either end may send several times in a row.
    Listed(ListedExchanges),
    /// Any number of simultaneous exchanges, each begun when a user requests it.
    Multiplexed(Box<Multiplexed>),
}

/// See [`Session::Greedy`].
#[derive(Clone, Debug)]
pub struct Greedy {
    periods: Periods,
    on: bool,
}

/// The properties of the bursts that the sources of a class send.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Bursty {
    /// Bytes of each burst.
    #[serde(rename = "burst_bytes")]
    pub sizes: Distribution<Bytes>,
    /// Time from the acknowledgment of a complete burst to the next burst.
    #[serde(rename = "off_ns")]
    pub off: Distribution,
    /// What comes first, a burst or an off period; never [`Begin::Stationary`].
    pub begin: Begin,
}

impl Bursty {
    /// The version of this part, incremented whenever a change to it changes a result.
    pub const VERSION: u32 = 1;
}

/// See [`Session::Bursts`].
#[derive(Clone, Debug)]
pub struct ByteBursts {
    plan: Arc<Bursty>,
    size_draws: Stream,
    off_draws: Stream,
    /// Numbers of off periods and of bursts so far.
    offs: u64,
    bursts: u64,
    written: u64,
    /// Whether a burst is in progress.
    on: bool,
}

/// A client that sends one request. Once the request has arrived, the server responds and closes;
/// the client closes when it has received the whole response. If there is no response, the client
/// closes after its request. With [`SingleExchange::closed_by`], the end that receives the last data may
/// close first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SingleExchange {
    /// Bytes that the client sends; may be zero if there is a response.
    pub request: Bytes,
    /// Bytes that the server sends; may be zero.
    pub response: Bytes,
    began: Instant,
    answered: bool,
    done: bool,
    /// Whether the end at which the last data arrives closes first.
    receiver_closes: bool,
}

impl SingleExchange {
    /// The version of this part, incremented whenever a change to it changes a result.
    pub const VERSION: u32 = 1;

    /// Creates an exchange that has not begun.
    pub const fn new(request: Bytes, response: Bytes) -> Self {
        SingleExchange {
            request,
            response,
            began: Instant::ZERO,
            answered: false,
            done: false,
            receiver_closes: false,
        }
    }

    /// Returns the exchange with `end` as the end that closes first.
    #[must_use]
    pub fn closed_by(self, end: End) -> Self {
        SingleExchange { receiver_closes: self.last_arrives_at() == end, ..self }
    }

    /// Returns the end at which the last data arrives.
    const fn last_arrives_at(&self) -> End {
        if self.response.is_zero() { End::Server } else { End::Client }
    }
}

impl Session {
    /// Creates a greedy sender with these periods.
    pub fn greedy(times: Arc<OnOff>, on_draws: Stream, off_draws: Stream) -> Self {
        Session::Greedy(Greedy { periods: Periods::new(times, on_draws, off_draws), on: false })
    }

    /// Creates a session that sends bursts of bytes according to `plan`.
    pub fn bursts(plan: Arc<Bursty>, size_draws: Stream, off_draws: Stream) -> Self {
        let (offs, bursts, written, on) = (0, 0, 0, false);
        Session::Bursts(ByteBursts { plan, size_draws, off_draws, offs, bursts, written, on })
    }

    /// Creates a session that requests these objects when its connection opens, and more objects
    /// whenever its user asks for them.
    pub fn multiplexed(objects: Vec<PageObject>) -> Self {
        Session::Multiplexed(Box::new(Multiplexed::new(objects)))
    }

    /// Returns the session with `end` as the end that closes first, if its exchanges come one after another and have an
    /// end.
    #[must_use]
    pub fn closed_by(self, end: End) -> Self {
        match self {
            Session::Single(exchange) => Session::Single(exchange.closed_by(end)),
            Session::Requests(requests) => Session::Requests(requests.closed_by(end)),
            Session::Listed(listed) => Session::Listed(listed.closed_by(end)),
            other @ (Session::Greedy(_) | Session::Bursts(_) | Session::Multiplexed(_)) => other,
        }
    }

    /// Handles the opening of the connection.
    pub fn begin(&mut self, now: Instant) -> Step {
        match self {
            Session::Greedy(greedy) => greedy.begin(now),
            Session::Bursts(bursts) => bursts.begin(now),
            Session::Single(exchange) => exchange.begin(now),
            Session::Requests(requests) => requests.begin(now),
            Session::Listed(listed) => listed.begin(now),
            Session::Multiplexed(many) => many.begin(now),
        }
    }

    /// Handles the request of the client's user for more objects.
    ///
    /// # Panics
    /// If the session is not multiplexed.
    pub fn ask(&mut self, now: Instant, objects: &[PageObject]) -> Step {
        match self {
            Session::Multiplexed(many) => many.ask(now, objects),
            _ => unreachable!("a user asks for objects only on a multiplexed connection"),
        }
    }

    /// Returns whether the client will do nothing, regardless of what arrives, until its user requests more
    /// objects or closes the connection. Only the user knows when that request or close will come.
    pub fn is_idle(&self) -> bool {
        match self {
            Session::Multiplexed(many) => many.is_idle(),
            _ => false,
        }
    }

    /// Handles the instant for which the session requested a timer.
    pub fn on_timer(&mut self, now: Instant) -> Step {
        match self {
            Session::Greedy(greedy) => greedy.turn(now),
            Session::Bursts(bursts) => bursts.burst(),
            Session::Single(_) => Step::default(),
            Session::Requests(requests) => requests.on_timer(now),
            Session::Listed(listed) => listed.on_timer(now),
            Session::Multiplexed(many) => many.on_timer(now),
        }
    }

    /// Handles an arrival at one end. The host must call this method again if [`Step::more`] is set. The
    /// returned step contains no action at the other end.
    pub fn on_progress(&mut self, now: Instant, end: End, progress: StreamPosition) -> Step {
        match (self, end) {
            (Session::Bursts(bursts), End::Client) => bursts.look(now, progress.acked),
            (Session::Greedy(_), _) | (Session::Bursts(_), End::Server) => Step::default(),
            (Session::Single(exchange), _) => exchange.look(end, progress.delivered),
            (Session::Requests(requests), _) => requests.look(now, end, progress.delivered),
            (Session::Listed(listed), _) => listed.look(now, end, progress.delivered),
            (Session::Multiplexed(many), _) => many.look(now, end, progress.delivered),
        }
    }

    /// Iterates over the exchanges in progress, in the form in which they will be reported when
    /// complete.
    pub fn under_way(&self) -> impl Iterator<Item = ExchangeDone> {
        let (one, listed, many) = match self {
            Session::Greedy(_) | Session::Bursts(_) => (None, None, None),
            Session::Single(exchange) => ((!exchange.done).then(|| exchange.as_done()), None, None),
            Session::Requests(requests) => (requests.under_way(), None, None),
            Session::Listed(listed) => (None, Some(listed), None),
            Session::Multiplexed(many) => (None, None, Some(many)),
        };
        let listed = listed.into_iter().flat_map(|listed| listed.under_way());
        one.into_iter().chain(listed).chain(many.into_iter().flat_map(|many| many.under_way()))
    }

    /// Returns the exchanges that a session would carry out; the result is empty if the session has no
    /// exchanges, or may have several at once. The session must not have begun.
    pub fn planned(self) -> Vec<PlannedExchange> {
        match self {
            Session::Greedy(_) | Session::Bursts(_) | Session::Multiplexed(_) => Vec::new(),
            Session::Single(SingleExchange { request, response, .. }) => alloc::vec![PlannedExchange {
                request: request.get(),
                response: response.get(),
                last: true,
                ..PlannedExchange::default()
            }],
            Session::Requests(requests) => requests.planned(),
            Session::Listed(listed) => listed.planned().to_vec(),
        }
    }

    /// Returns whether the server sends data.
    pub fn is_answered(&self) -> bool {
        match self {
            Session::Greedy(_) | Session::Bursts(_) => false,
            Session::Single(exchange) => !exchange.response.is_zero(),
            Session::Requests(_) | Session::Multiplexed(_) => true,
            Session::Listed(listed) => listed.planned().iter().any(|exchange| exchange.response > 0),
        }
    }

    /// Returns the end at which the last data arrives.
    pub fn last_arrives_at(&self) -> End {
        match self {
            Session::Greedy(_) | Session::Bursts(_) => End::Server,
            Session::Single(exchange) => exchange.last_arrives_at(),
            Session::Requests(_) | Session::Multiplexed(_) => End::Client,
            Session::Listed(listed) => listed.last_arrives_at(),
        }
    }
}

impl Greedy {
    fn begin(&mut self, now: Instant) -> Step {
        let (act, span) = match self.periods.first() {
            Period::On(span) => (Some(Act::WriteEndlessly), span),
            Period::Off(span) => (None, span),
        };
        self.on = act.is_some();
        Step { client: act, wake_at: Some(now + span), ..Step::default() }
    }

    /// Switches between on and off.
    fn turn(&mut self, now: Instant) -> Step {
        self.on = !self.on;
        let (act, span) = if self.on {
            (Act::WriteEndlessly, self.periods.next_on())
        } else {
            (Act::Withdraw, self.periods.next_off())
        };
        Step { client: Some(act), wake_at: Some(now + span), ..Step::default() }
    }
}

impl ByteBursts {
    fn begin(&mut self, now: Instant) -> Step {
        if self.plan.begin == Begin::Off { self.pause(now) } else { self.burst() }
    }

    fn burst(&mut self) -> Step {
        let size = self.plan.sizes.draw(self.bursts, &mut self.size_draws).get().max(1);
        self.bursts += 1;
        self.written += size;
        self.on = true;
        Step { client: Some(Act::Write(size)), ..Step::default() }
    }

    fn pause(&mut self, now: Instant) -> Step {
        self.on = false;
        let off = self.plan.off.draw(self.offs, &mut self.off_draws);
        self.offs += 1;
        Step { wake_at: Some(now + off), ..Step::default() }
    }

    fn look(&mut self, now: Instant, acked: u64) -> Step {
        if self.on && acked >= self.written { self.pause(now) } else { Step::default() }
    }
}

impl SingleExchange {
    fn begin(&mut self, now: Instant) -> Step {
        self.began = now;
        let (request, response) = (self.request.get(), self.response.get());
        match (request, response) {
            (_, 0) => Step::of(End::Client, Act::write_last(request, !self.receiver_closes)),
            // There is no request, so the server sends first.
            (0, _) => self.answer(),
            _ => Step { client: Some(Act::Write(request)), ..Step::default() },
        }
    }

    fn look(&mut self, end: End, delivered: u64) -> Step {
        match end {
            End::Server if delivered < self.request.get() => Step::default(),
            End::Server if self.response.is_zero() => self.finish(),
            End::Server if !self.answered => self.answer(),
            End::Client if !self.response.is_zero() && delivered >= self.response.get() => self.finish(),
            _ => Step::default(),
        }
    }

    fn answer(&mut self) -> Step {
        self.answered = true;
        Step::of(End::Server, Act::write_last(self.response.get(), !self.receiver_closes))
    }

    fn finish(&mut self) -> Step {
        if self.done {
            return Step::default();
        }
        self.done = true;
        let done = Some(self.as_done());
        if self.receiver_closes {
            return Step { done, ..Step::of(self.last_arrives_at(), Act::WriteLast(0)) };
        }
        Step { done, ..Step::default() }
    }

    const fn as_done(&self) -> ExchangeDone {
        let SingleExchange { request, response, began, .. } = *self;
        ExchangeDone { number: 0, request, response, began, opened_connection: true, last: true }
    }
}
