//! Requests and answers over datagrams, as `ping` and UDP echo send them.

use alloc::collections::VecDeque;
use alloc::sync::Arc;
use alloc::vec::Vec;

use aqmlab_random::Stream;
use aqmlab_traffic::{Distribution, End};
use aqmlab_units::{Bytes, Instant, Span};
use schemars::JsonSchema;
use serde::Serialize;

use crate::talk::{Datagram, Noticed, earlier};

/// The requests of a class.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct PingPlan {
    /// Time from one request to the next, whatever has been answered.
    #[serde(rename = "period_ns")]
    pub period: Distribution,
    /// Sizes of requests and answers at the network layer.
    #[serde(rename = "size_bytes")]
    pub size: Bytes,
    /// Size of answers.
    #[serde(rename = "answer_bytes")]
    pub answer: Bytes,
    /// Time after which a request counts as unanswered.
    #[serde(rename = "timeout_ns")]
    pub timeout: Span,
}

impl PingPlan {
    /// The version of this part, incremented whenever a change to it changes a result.
    pub const VERSION: u32 = 1;
}

/// A client that sends requests, and a server that answers each of them at once.
#[derive(Clone, Debug)]
pub struct Ping {
    plan: Arc<PingPlan>,
    draws: Stream,
    next_at: Instant,
    sent: u64,
    answered: u64,
    /// Number of the request that each answer answers, from the first that may still arrive.
    answers: VecDeque<(u64, u64)>,
    /// Requests to be answered.
    to_answer: VecDeque<u64>,
    /// Requests without an answer, with the instants at which they were sent; ascending.
    open: VecDeque<(u64, Instant)>,
    stopped: bool,
}

impl Ping {
    /// Creates a client whose first request is due at `start`.
    pub fn new(plan: Arc<PingPlan>, start: Instant, draws: Stream) -> Self {
        let (answers, to_answer, open) = (VecDeque::new(), VecDeque::new(), VecDeque::new());
        Ping { plan, draws, next_at: start, sent: 0, answered: 0, answers, to_answer, open, stopped: false }
    }

    pub(crate) fn next_at(&self) -> Instant {
        let timeout = self.open.front().map_or(Instant::FAR_FUTURE, |&(_, sent)| sent + self.plan.timeout);
        earlier(if self.stopped { Instant::FAR_FUTURE } else { self.next_at }, timeout)
    }

    pub(crate) fn stop(&mut self) {
        self.stopped = true;
    }

    pub(crate) fn poll(&mut self, now: Instant, noticed: &mut Vec<Noticed>) -> Option<(End, Datagram)> {
        if let Some(request) = self.to_answer.pop_front() {
            let number = self.answered;
            self.answered += 1;
            self.answers.push_back((number, request));
            return Some((End::Server, Datagram { number, wire_len: self.plan.answer, is_data: true }));
        }
        while let Some(&(number, sent)) = self.open.front()
            && sent + self.plan.timeout <= now
        {
            self.open.pop_front();
            noticed.push(self.ended(number, sent, false));
        }
        // Answers to requests that are no longer open say nothing.
        let oldest = self.open.front().map_or(self.sent, |&(number, _)| number);
        while self.answers.front().is_some_and(|&(_, request)| request < oldest) {
            self.answers.pop_front();
        }
        if self.stopped || self.next_at > now {
            return None;
        }
        let number = self.sent;
        self.sent += 1;
        self.next_at = now + self.plan.period.draw(number, &mut self.draws);
        self.open.push_back((number, now));
        Some((End::Client, Datagram { number, wire_len: self.plan.size, is_data: true }))
    }

    pub(crate) fn arrive(&mut self, end: End, number: u64, noticed: &mut Vec<Noticed>) {
        if end == End::Server {
            self.to_answer.push_back(number);
            return;
        }
        let request = self.answers.iter().find(|&&(answer, _)| answer == number).map(|&(_, request)| request);
        let place = self.open.iter().position(|&(open, _)| Some(open) == request);
        if let Some((number, sent)) = place.and_then(|place| self.open.remove(place)) {
            noticed.push(self.ended(number, sent, true));
        }
    }

    fn ended(&self, number: u64, sent: Instant, arrived: bool) -> Noticed {
        Noticed::Answered { number, sent, sizes: (self.plan.size, self.plan.answer), arrived }
    }

    /// Iterates over the requests without an answer.
    pub(crate) fn open(&self) -> impl Iterator<Item = Noticed> {
        self.open.iter().map(|&(number, sent)| self.ended(number, sent, false))
    }
}
