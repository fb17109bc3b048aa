//! Successive exchanges on one connection: requests, responses, and the pauses at both ends.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use aqmlab_random::Stream;
use aqmlab_units::{Bytes, Instant, Span};
use schemars::JsonSchema;
use serde::Serialize;

use crate::distribution::Distribution;
use crate::mean_connection::MeanConnection;
use crate::opening::Identity;
use crate::packmime::WebConnection;
use crate::quantity::Count;
use crate::step::{Act, End, ExchangeDone, PlannedExchange, Step};

/// The exchanges on the connections of a class.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct ExchangePlan {
    /// Bytes of each request, at least one.
    #[serde(rename = "request_bytes")]
    pub request: Distribution<Bytes>,
    /// Bytes of each response, at least one.
    #[serde(rename = "response_bytes")]
    pub response: Distribution<Bytes>,
    /// Number of exchanges on each connection, at least one.
    #[serde(rename = "exchanges")]
    pub per_connection: Distribution<Count>,
    /// Pause at the client, from the last byte of a response to the next request.
    #[serde(rename = "pause_ns")]
    pub pause: Distribution,
    /// Delay at the server, from the last byte of a request to its response.
    #[serde(rename = "server_delay_ns")]
    pub server_delay: Distribution,
}

impl ExchangePlan {
    /// The version of this part, incremented whenever a change to it changes a result.
    pub const VERSION: u32 = 1;

    /// Returns the average connection of this plan.
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

/// One connection's exchanges. The client sends a request, the server responds after its delay, and
/// the client pauses and then sends the next request. The server closes after its last response,
/// and the client closes when it has received that response. With [`Requests::closed_by`], the client may close first.
#[derive(Clone, Debug)]
pub struct Requests {
    to_come: Exchanges,
    /// Bytes of the current exchange's request or, during a pause, of the next exchange's request.
    request: u64,
    server_delay: Span,
    response: u64,
    /// When the current exchange began.
    began: Instant,
    /// Total number of bytes that the server will have received when the whole request has arrived.
    asked: u64,
    /// Total number of bytes that the client will have received when the whole response has arrived.
    answered: u64,
    number: u32,
    /// Whether this exchange is the connection's last one.
    last: bool,
    stage: Stage,
    /// Whether the client closes first.
    client_closes: bool,
}

/// The source of a connection's exchanges.
#[derive(Clone, Debug)]
enum Exchanges {
    /// Independent draws.
    Drawn(DrawnExchanges),
    /// A connection of PackMime-HTTP.
    Web(Box<WebConnection>),
}

/// Exchange `n` uses the four draws of the connection's stream that start at `4 n`, in the order of
/// [`Place`], so whether one quantity is drawn never changes another.
#[derive(Clone, Debug)]
struct DrawnExchanges {
    plan: Arc<ExchangePlan>,
    draws: Stream,
    /// Index of the first exchange's value in distributions that are lists of values.
    first: u32,
    /// Number of exchanges on this connection.
    count: u32,
}

/// The event for which the current exchange waits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    /// the arrival of the request
    Asked,
    /// the server's delay
    ServerWaits,
    /// the arrival of the response
    Answered,
    /// the end of the client's pause, when the next exchange begins
    ClientPauses,
    /// nothing: there is no exchange
    Over,
}

/// Identifies one of the [`PLACES`] draws of an exchange by its position.
#[derive(Clone, Copy)]
enum Place {
    Request = 0,
    Response = 1,
    ServerDelay = 2,
    Pause = 3,
}

const PLACES: u64 = 4;

impl Requests {
    /// Creates the exchanges of the connection `of`. The connection's member of the family `numbers` draws
    /// the number of exchanges, and its member of the family `draws` draws everything else.
    pub fn new(plan: Arc<ExchangePlan>, of: Identity, draws: &Stream, numbers: &Stream) -> Self {
        let first = of.user.wrapping_add(of.serial);
        let Count(count) = match plan.per_connection {
            Distribution::Constant(count) => count,
            ref drawn => drawn.draw(first.into(), &mut numbers.member(of.index())),
        };
        let count = u32::try_from(count.max(1)).unwrap_or(u32::MAX);
        Requests::counted(plan, of, draws, count)
    }

    /// Creates the exchanges of a connection that carries `count` of them.
    pub fn counted(plan: Arc<ExchangePlan>, of: Identity, draws: &Stream, count: u32) -> Self {
        let (first, draws) = (of.user.wrapping_add(of.serial), draws.member(of.index()));
        Requests::of(Exchanges::Drawn(DrawnExchanges { plan, draws, first, count }))
    }

    /// Creates the exchanges of a connection of PackMime-HTTP.
    pub fn of_web(connection: WebConnection) -> Self {
        Requests::of(Exchanges::Web(Box::new(connection)))
    }

    /// Returns the exchanges with `end` as the end that closes first.
    #[must_use]
    pub fn closed_by(self, end: End) -> Self {
        Requests { client_closes: end == End::Client, ..self }
    }

    /// Returns the exchanges that a connection would carry. The connection must not have begun.
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
            client_closes: false,
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

    /// Takes the values of the next exchange, and returns the pause before it.
    fn take_next(&mut self) -> Span {
        let PlannedExchange { pause, request, server_delay, response, last } =
            self.to_come.exchange(self.number);
        (self.request, self.server_delay, self.response, self.last) = (request, server_delay, response, last);
        pause
    }

    /// Makes the client write the next request.
    fn ask(&mut self, now: Instant) -> Step {
        self.asked += self.request;
        self.began = now;
        self.stage = Stage::Asked;
        Step { client: Some(Act::Write(self.request)), ..Step::default() }
    }

    /// Handles the arrival of the request at the server.
    fn asked_for(&mut self, now: Instant) -> Step {
        if self.server_delay.is_zero() {
            return self.answer();
        }
        self.stage = Stage::ServerWaits;
        Step { wake_at: Some(now + self.server_delay), ..Step::default() }
    }

    /// Makes the server write the response.
    fn answer(&mut self) -> Step {
        self.answered += self.response;
        self.stage = Stage::Answered;
        let act = Act::write_last(self.response, self.last && !self.client_closes);
        Step { server: Some(act), ..Step::default() }
    }

    /// Handles the arrival of the response at the client.
    fn finish(&mut self, now: Instant) -> Step {
        let done = self.as_done();
        let next = if done.last { self.end() } else { self.pause(now) };
        Step { done: Some(done), ..next }
    }

    /// Returns the exchange in progress, in the form in which it will be reported when complete.
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
        if self.client_closes { Step::of(End::Client, Act::WriteLast(0)) } else { Step::default() }
    }

    /// Lets the client pause before it begins the next exchange.
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
    /// Returns exchange `number`. The caller must request exchanges in order, and none after the
    /// last.
    fn exchange(&mut self, number: u32) -> PlannedExchange {
        match self {
            Exchanges::Drawn(drawn) => drawn.exchange(number),
            Exchanges::Web(connection) => connection.next().expect("only the last exchange has no successor"),
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

    /// Draws a value for exchange `number`.
    fn draw<T: crate::Quantity>(&self, of: &Distribution<T>, number: u32, place: Place) -> T {
        // A constant needs no draw. Most quantities are constant, so this saves time.
        if let Distribution::Constant(value) = of {
            return *value;
        }
        let number = u64::from(number);
        let mut draws = self.draws.from_draw(number * PLACES + place as u64);
        of.draw(u64::from(self.first) + number, &mut draws)
    }
}
