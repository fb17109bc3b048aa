//! Exchanges one after the other on one connection: requests, responses, and the pauses at both ends.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use aqmlab_random::Stream;
use aqmlab_units::{Bytes, Instant, Span};

use crate::distribution::Distribution;
use crate::mean_connection::MeanConnection;
use crate::opening::Identity;
use crate::packmime::WebConnection;
use crate::quantity::Count;
use crate::step::{Act, End, ExchangeDone, PlannedExchange, Step};

/// What the connections of a class ask for and get.
#[derive(Clone, PartialEq, Debug)]
pub struct ExchangePlan {
    /// Bytes of each request, at least one.
    pub request: Distribution<Bytes>,
    /// Bytes of each response, at least one.
    pub response: Distribution<Bytes>,
    /// Exchanges on each connection, at least one.
    pub per_connection: Distribution<Count>,
    /// At the client, from the last byte of a response to the next request.
    pub pause: Distribution,
    /// At the server, from the last byte of a request to its response.
    pub server_delay: Distribution,
}

impl ExchangePlan {
    /// Rises by one whenever this moves a result.
    pub const VERSION: u32 = 1;

    /// Its connections on average.
    pub fn mean_connection(&self) -> MeanConnection {
        let exchanges = self.per_connection.mean().0 as f64;
        let pauses = (exchanges - 1.0) * self.pause.mean().as_secs_f64();
        MeanConnection {
            exchanges,
            bytes: [&self.request, &self.response].map(|of| exchanges * of.mean().as_f64()),
            waits_s: exchanges * self.server_delay.mean().as_secs_f64() + pauses,
        }
    }
}

/// One connection's exchanges. The client asks; the server waits for its delay and answers; the client pauses and asks
/// again. The server closes behind its last response, and the client when it has got that.
#[derive(Clone, Debug)]
pub struct Requests {
    to_come: Exchanges,
    /// Of the exchange under way, or of the next one while the client pauses.
    request: u64,
    server_delay: Span,
    response: u64,
    /// When the exchange under way began.
    began: Instant,
    /// Bytes that the server has got when the request has arrived.
    asked: u64,
    /// Bytes that the client has got when the response has arrived.
    answered: u64,
    number: u32,
    /// No other exchange follows.
    last: bool,
    stage: Stage,
}

/// What a connection's exchanges are made from.
#[derive(Clone, Debug)]
enum Exchanges {
    /// Independent draws.
    Drawn(DrawnExchanges),
    /// A connection of PackMime-HTTP.
    Web(Box<WebConnection>),
    /// Those of a list, from this place on.
    Listed(Arc<[PlannedExchange]>, usize),
}

/// Exchange `n` has the draws from `4 n` on of the connection's stream, in the order of [`Place`]; so one quantity more
/// or less never changes another.
#[derive(Clone, Debug)]
struct DrawnExchanges {
    plan: Arc<ExchangePlan>,
    draws: Stream,
    /// What the indices of draws from lists begin with.
    first: u32,
    /// Exchanges on this connection.
    count: u32,
}

/// What the exchange under way waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// the arrival of the request
    Asked,
    /// the server's delay
    ServerWaits,
    /// the arrival of the response
    Answered,
    /// the client's pause, after which the next one begins
    ClientPauses,
    /// nothing: there is none
    Over,
}

/// Which of an exchange's draws.
#[derive(Clone, Copy)]
enum Place {
    Request = 0,
    Response = 1,
    ServerDelay = 2,
    Pause = 3,
}

const PLACES: u64 = 4;

impl Requests {
    /// The exchanges of the connection `of`. The connection's members of two families of draws: of `numbers`, how many
    /// there are, and of `draws` all else.
    pub fn new(plan: Arc<ExchangePlan>, of: Identity, draws: &Stream, numbers: &Stream) -> Self {
        let first = of.user.wrapping_add(of.serial);
        let Count(count) = match plan.per_connection {
            Distribution::Constant(count) => count,
            ref drawn => drawn.draw(first.into(), &mut numbers.member(of.index())),
        };
        let count = u32::try_from(count.max(1)).unwrap_or(u32::MAX);
        Requests::counted(plan, of, draws, count)
    }

    /// The same where it is known how many there are.
    pub fn counted(plan: Arc<ExchangePlan>, of: Identity, draws: &Stream, count: u32) -> Self {
        let (first, draws) = (of.user.wrapping_add(of.serial), draws.member(of.index()));
        Requests::of(Exchanges::Drawn(DrawnExchanges { plan, draws, first, count }))
    }

    /// The exchanges of a connection of PackMime-HTTP.
    pub fn of_web(connection: WebConnection) -> Self {
        Requests::of(Exchanges::Web(Box::new(connection)))
    }

    /// The exchanges of a list, from the place `first` on to the one that says it is the last.
    pub fn of_list(list: Arc<[PlannedExchange]>, first: usize) -> Self {
        Requests::of(Exchanges::Listed(list, first))
    }

    /// The exchanges of a connection that has not begun, without carrying them out.
    pub fn planned(mut self) -> Vec<PlannedExchange> {
        let mut planned = Vec::new();
        while !planned.last().is_some_and(|exchange: &PlannedExchange| exchange.last) {
            planned.push(self.to_come.exchange(planned.len() as u32));
        }
        planned
    }

    fn of(to_come: Exchanges) -> Self {
        Requests {
            to_come,
            request: 0,
            server_delay: Span::ZERO,
            response: 0,
            began: Instant::ZERO,
            asked: 0,
            answered: 0,
            number: 0,
            last: false,
            stage: Stage::Over,
        }
    }

    pub(crate) fn begin(&mut self, now: Instant) -> Step {
        _ = self.take_next();
        self.ask(now)
    }

    pub(crate) fn on_timer(&mut self, now: Instant) -> Step {
        match self.stage {
            Stage::ServerWaits => self.answer(),
            Stage::ClientPauses => self.ask(now),
            Stage::Asked | Stage::Answered | Stage::Over => Step::default(),
        }
    }

    pub(crate) fn look(&mut self, now: Instant, end: End, delivered: u64) -> Step {
        match (self.stage, end) {
            (Stage::Asked, End::Server) if delivered >= self.asked => self.asked_for(now),
            (Stage::Answered, End::Client) if delivered >= self.answered => self.finish(now),
            _ => Step::default(),
        }
    }

    /// The next exchange is under way, after a pause of this length.
    fn take_next(&mut self) -> Span {
        let PlannedExchange { pause, request, server_delay, response, last } =
            self.to_come.exchange(self.number);
        (self.request, self.server_delay, self.response, self.last) = (request, server_delay, response, last);
        pause
    }

    /// The client writes the next request.
    fn ask(&mut self, now: Instant) -> Step {
        self.asked += self.request;
        self.began = now;
        self.stage = Stage::Asked;
        Step { client: Some(Act::Write(self.request)), ..Step::default() }
    }

    /// The server has got the request.
    fn asked_for(&mut self, now: Instant) -> Step {
        if self.server_delay.is_zero() {
            return self.answer();
        }
        self.stage = Stage::ServerWaits;
        Step { wake_at: Some(now + self.server_delay), ..Step::default() }
    }

    /// The server writes the response.
    fn answer(&mut self) -> Step {
        self.answered += self.response;
        self.stage = Stage::Answered;
        let act = if self.last { Act::WriteLast(self.response) } else { Act::Write(self.response) };
        Step { server: Some(act), ..Step::default() }
    }

    /// The client has got the response.
    fn finish(&mut self, now: Instant) -> Step {
        let done = self.as_done();
        let next = if done.last { self.end() } else { self.pause(now) };
        Step { done: Some(done), ..next }
    }

    /// The exchange that has begun and is not done, as it will be when it is.
    pub(crate) const fn under_way(&self) -> Option<ExchangeDone> {
        match self.stage {
            Stage::Asked | Stage::ServerWaits | Stage::Answered => Some(self.as_done()),
            Stage::ClientPauses | Stage::Over => None,
        }
    }

    const fn as_done(&self) -> ExchangeDone {
        ExchangeDone {
            number: self.number,
            request: Bytes::new(self.request),
            response: Bytes::new(self.response),
            began: self.began,
            opened_connection: self.number == 0,
            last: self.last,
        }
    }

    fn end(&mut self) -> Step {
        self.stage = Stage::Over;
        Step::default()
    }

    /// The client does nothing for a while, and then begins the next exchange.
    fn pause(&mut self, now: Instant) -> Step {
        self.number += 1;
        let pause = self.take_next();
        if pause.is_zero() {
            return self.ask(now);
        }
        self.stage = Stage::ClientPauses;
        Step { wake_at: Some(now + pause), ..Step::default() }
    }
}

impl Exchanges {
    /// Exchange `number`: they are asked for one after the other, and none behind the last.
    fn exchange(&mut self, number: u32) -> PlannedExchange {
        match self {
            Exchanges::Drawn(drawn) => drawn.exchange(number),
            Exchanges::Web(connection) => {
                connection.next().expect("only the last exchange has none behind it")
            }
            Exchanges::Listed(list, first) => list[*first + number as usize],
        }
    }
}

impl DrawnExchanges {
    fn exchange(&self, number: u32) -> PlannedExchange {
        let plan = &self.plan;
        let before = number.checked_sub(1);
        PlannedExchange {
            pause: before.map_or(Span::ZERO, |before| self.draw(&plan.pause, before, Place::Pause)),
            request: self.draw(&plan.request, number, Place::Request).get().max(1),
            server_delay: self.draw(&plan.server_delay, number, Place::ServerDelay),
            response: self.draw(&plan.response, number, Place::Response).get().max(1),
            last: number + 1 == self.count,
        }
    }

    /// A value of exchange `number`.
    fn draw<T: crate::Quantity>(&self, of: &Distribution<T>, number: u32, place: Place) -> T {
        // A constant needs no draw, and most are.
        if let Distribution::Constant(value) = of {
            return *value;
        }
        let number = u64::from(number);
        let mut draws = self.draws.from_draw(number * PLACES + place as u64);
        of.draw(u64::from(self.first) + number, &mut draws)
    }
}
