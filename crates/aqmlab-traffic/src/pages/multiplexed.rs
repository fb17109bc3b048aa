//! One multiplexed connection: many exchanges at once.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use aqmlab_units::{Bytes, Instant};

use super::PageObject;
use crate::step::{Act, End, ExchangeDone, Step};

/// The applications at both ends of a connection that carries many exchanges at once, like HTTP/2
/// and HTTP/3.
///
/// The client writes its requests immediately, regardless of what else is in progress. The server processes
/// requests in parallel as they arrive, each with its own delay, and writes responses in the order of the
/// requests, as RFC 9218 recommends for responses that are useless until complete. A response that is ready
/// early waits for its turn. Frames of different responses are not interleaved, and there are no priorities.
/// The client closes the connection.
#[derive(Clone, Debug)]
pub struct Multiplexed {
    /// The objects that the client requests when the connection opens.
    first: Vec<PageObject>,
    /// Requested objects whose responses are incomplete, in the order of the requests.
    under_way: VecDeque<Exchange>,
    /// Of these objects, the number whose requests have arrived, and the number whose responses
    /// have been written.
    arrived: usize,
    written: usize,
    /// Bytes that the client has written, and bytes that the server has written.
    asked: u64,
    answered: u64,
    /// The number of the next exchange.
    number: u32,
    /// Whether the server is waiting for the next response, in the order of the requests, to become
    /// ready.
    waits: bool,
}

#[derive(Clone, Copy, Debug)]
struct Exchange {
    number: u32,
    object: PageObject,
    began: Instant,
    /// Total number of bytes that the server will have received when the whole request has arrived.
    asked: u64,
    /// When the response is ready; known once the request has arrived.
    ready: Instant,
    /// Total number of bytes that the client will have received when the whole response has arrived; known
    /// once the response has been written.
    answered: u64,
}

impl Multiplexed {
    /// Creates a connection on which the client requests these objects as soon as the connection
    /// opens.
    pub(crate) fn new(first: Vec<PageObject>) -> Self {
        Multiplexed {
            first,
            under_way: VecDeque::new(),
            arrived: 0,
            written: 0,
            asked: 0,
            answered: 0,
            number: 0,
            waits: false,
        }
    }

    pub(crate) fn begin(&mut self, now: Instant) -> Step {
        let first = core::mem::take(&mut self.first);
        self.ask(now, &first)
    }

    /// Makes the client request these objects.
    pub(crate) fn ask(&mut self, now: Instant, objects: &[PageObject]) -> Step {
        let before = self.asked;
        for &object in objects {
            self.asked += object.request;
            let (number, asked) = (self.number, self.asked);
            self.under_way.push_back(Exchange { number, object, began: now, asked, ready: now, answered: 0 });
            self.number += 1;
        }
        Step { client: Some(Act::Write(self.asked - before)), ..Step::default() }
    }

    /// Handles the instant at which the next response, in the order of the requests, becomes ready.
    pub(crate) fn on_timer(&mut self, now: Instant) -> Step {
        self.waits = false;
        self.answer(now)
    }

    pub(crate) fn look(&mut self, now: Instant, end: End, delivered: u64) -> Step {
        match end {
            End::Server => self.take_requests(now, delivered),
            End::Client => self.take_response(delivered),
        }
    }

    fn take_requests(&mut self, now: Instant, delivered: u64) -> Step {
        while let Some(exchange) = self.under_way.get_mut(self.arrived).filter(|of| of.asked <= delivered) {
            exchange.ready = now.saturating_add(exchange.object.server_delay);
            self.arrived += 1;
        }
        if self.waits { Step::default() } else { self.answer(now) }
    }

    /// Writes responses, in the order of the requests, up to the first one that is not ready; then
    /// waits for that one.
    fn answer(&mut self, now: Instant) -> Step {
        let before = self.answered;
        let mut wake_at = None;
        while self.written < self.arrived {
            let exchange = &mut self.under_way[self.written];
            if exchange.ready > now {
                wake_at = Some(exchange.ready);
                break;
            }
            self.answered += exchange.object.response;
            exchange.answered = self.answered;
            self.written += 1;
        }
        self.waits = wake_at.is_some();
        let new = self.answered - before;
        Step { server: (new > 0).then_some(Act::Write(new)), wake_at, ..Step::default() }
    }

    /// Completes the oldest exchange, if its response has arrived.
    fn take_response(&mut self, delivered: u64) -> Step {
        let is_there = |of: &Exchange| of.answered <= delivered;
        if self.written == 0 || !is_there(&self.under_way[0]) {
            return Step::default();
        }
        let done = self.under_way.pop_front().map(Exchange::as_done);
        self.arrived -= 1;
        self.written -= 1;
        let more = self.written > 0 && is_there(&self.under_way[0]);
        Step { done, more, ..Step::default() }
    }

    /// Returns whether the connection has nothing to do until the next request.
    pub(crate) fn is_idle(&self) -> bool {
        self.under_way.is_empty()
    }

    /// Iterates over the exchanges that have begun and are not yet complete.
    pub(crate) fn under_way(&self) -> impl Iterator<Item = ExchangeDone> {
        self.under_way.iter().copied().map(Exchange::as_done)
    }
}

impl Exchange {
    fn as_done(self) -> ExchangeDone {
        ExchangeDone {
            number: self.number,
            request: Bytes::new(self.object.request),
            response: Bytes::new(self.object.response),
            began: self.began,
            opened_connection: self.number == 0,
            last: false,
        }
    }
}
