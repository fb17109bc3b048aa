//! The exchanges of a list, on one connection. Either end may send several times in a row.

use alloc::collections::VecDeque;
use alloc::sync::Arc;

use aqmlab_units::{Bytes, Instant, Span};

use crate::step::{Act, End, ExchangeDone, PlannedExchange, Step};

/// One connection's exchanges, as a list gives them ([`PlannedExchange`]). The ends take turns. The
/// end that sends next waits before it does: since all data of the other end has arrived or, if this
/// end was also the last to send, since it last wrote. The end that sends last then closes; the
/// other end closes when all data has arrived. With [`ListedExchanges::closed_by`], the end that receives the
/// last data may close first.
#[derive(Clone, Debug)]
pub struct ListedExchanges {
    list: Arc<[PlannedExchange]>,
    /// The position of the connection's first exchange.
    first: usize,
    /// The data that is written next.
    next: Transmission,
    turn: Turn,
    /// The bytes that each end has written.
    written: [u64; 2],
    /// Number of exchanges that have begun.
    begun: u32,
    /// Number of exchanges that are complete.
    complete: u32,
    /// The bytes of each end in all complete exchanges.
    completed: [u64; 2],
    /// When the newest exchange began.
    began: Instant,
    /// When the other exchanges in progress began, the oldest first.
    began_before: VecDeque<Instant>,
    /// Whether the end at which the last data arrives closes first.
    receiver_closes: bool,
}

/// The data of one end in one exchange.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Transmission {
    /// The number of the exchange on its connection.
    number: u32,
    end: End,
}

/// The event after which the next data is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Turn {
    /// the arrival of all data of the other end
    Arrival,
    /// the end of the wait
    Timer,
    /// nothing: all data has been written, or the connection has not opened
    Over,
}

impl ListedExchanges {
    /// The version of this part, incremented whenever a change to it changes a result.
    pub const VERSION: u32 = 1;

    /// Creates the exchanges of a list, from the position `first` to the one marked as the last.
    pub fn new(list: Arc<[PlannedExchange]>, first: usize) -> Self {
        let next = Transmission { number: 0, end: list[first].first_sends() };
        ListedExchanges {
            list,
            first,
            next,
            turn: Turn::Over,
            written: [0; 2],
            begun: 0,
            complete: 0,
            completed: [0; 2],
            began: Instant::ZERO,
            began_before: VecDeque::new(),
            receiver_closes: false,
        }
    }

    /// Returns the exchanges with `end` as the end that closes first.
    #[must_use]
    pub fn closed_by(self, end: End) -> Self {
        ListedExchanges { receiver_closes: self.last_arrives_at() == end, ..self }
    }

    /// Returns all exchanges of the connection.
    pub(crate) fn planned(&self) -> &[PlannedExchange] {
        let rest = &self.list[self.first..];
        let last = rest.iter().position(|exchange| exchange.last).expect("one is marked as the last");
        &rest[..=last]
    }

    /// Returns the end at which the last data arrives.
    pub(crate) fn last_arrives_at(&self) -> End {
        self.planned().last().map_or(End::Server, PlannedExchange::completes_at)
    }

    pub(crate) fn begin(&mut self, now: Instant) -> Step {
        self.begin_exchange(now);
        self.take_turn(now)
    }

    pub(crate) fn on_timer(&mut self, now: Instant) -> Step {
        if self.turn == Turn::Timer { self.write(now) } else { Step::default() }
    }

    pub(crate) fn look(&mut self, now: Instant, end: End, delivered: u64) -> Step {
        let done = self.completes(end, delivered).then(|| self.complete_oldest());
        let more = done.is_some() && self.completes(end, delivered);
        let takes_turn = self.turn == Turn::Arrival
            && self.next.end == end
            && delivered >= self.written[end.other() as usize];
        let step = match done {
            _ if takes_turn => self.take_turn(now),
            Some(ExchangeDone { last: true, .. }) if self.receiver_closes => Step::of(end, Act::WriteLast(0)),
            _ => Step::default(),
        };
        Step { done, more, ..step }
    }

    /// Iterates over the exchanges in progress, in the form in which they will be reported when complete.
    pub(crate) fn under_way(&self) -> impl Iterator<Item = ExchangeDone> {
        let newest = (self.complete < self.begun).then_some(self.began);
        let began = self.began_before.iter().copied().chain(newest);
        (self.complete..).zip(began).map(|(number, began)| self.as_done(number, began))
    }

    /// Makes the end that sends next write, at once or after its wait.
    fn take_turn(&mut self, now: Instant) -> Step {
        let wait = self.wait();
        if wait.is_zero() {
            return self.write(now);
        }
        self.turn = Turn::Timer;
        Step { wake_at: Some(now + wait), ..Step::default() }
    }

    /// Makes the end that sends next write, up to the point where it has to wait for something.
    fn write(&mut self, now: Instant) -> Step {
        let end = self.next.end;
        let (mut bytes, mut wake_at) = (0, None);
        loop {
            let exchange = self.exchange(self.next.number);
            if self.next.number == self.begun {
                self.begin_exchange(now);
            }
            bytes += exchange.bytes(end);
            let Some(next) = self.after(self.next) else {
                self.turn = Turn::Over;
                break;
            };
            self.next = next;
            if next.end != end {
                self.turn = Turn::Arrival;
                break;
            }
            let wait = self.wait();
            if !wait.is_zero() {
                (self.turn, wake_at) = (Turn::Timer, Some(now + wait));
                break;
            }
        }
        self.written[end as usize] += bytes;
        let closes = self.turn == Turn::Over && !self.receiver_closes;
        Step { wake_at, ..Step::of(end, Act::write_last(bytes, closes)) }
    }

    /// Returns the wait before the data that is written next.
    fn wait(&self) -> Span {
        let exchange = self.exchange(self.next.number);
        match self.next.end {
            End::Client => exchange.pause,
            End::Server => exchange.server_delay,
        }
    }

    /// Returns the data that is written after `this`, if there is any.
    fn after(&self, this: Transmission) -> Option<Transmission> {
        let exchange = self.exchange(this.number);
        if this.end == End::Client && exchange.response > 0 {
            return Some(Transmission { end: End::Server, ..this });
        }
        let number = this.number + 1;
        (!exchange.last).then(|| Transmission { number, end: self.exchange(number).first_sends() })
    }

    fn begin_exchange(&mut self, now: Instant) {
        if self.complete < self.begun {
            self.began_before.push_back(self.began);
        }
        self.began = now;
        self.begun += 1;
    }

    /// Returns whether `delivered` bytes at this end complete the oldest exchange in progress.
    fn completes(&self, end: End, delivered: u64) -> bool {
        if self.complete == self.begun {
            return false;
        }
        let (exchange, sender) = (self.exchange(self.complete), end.other());
        exchange.completes_at() == end
            && delivered >= self.completed[sender as usize] + exchange.bytes(sender)
    }

    fn complete_oldest(&mut self) -> ExchangeDone {
        let began = self.began_before.pop_front().unwrap_or(self.began);
        let done = self.as_done(self.complete, began);
        self.completed[End::Client as usize] += done.request.get();
        self.completed[End::Server as usize] += done.response.get();
        self.complete += 1;
        done
    }

    fn as_done(&self, number: u32, began: Instant) -> ExchangeDone {
        let PlannedExchange { request, response, last, .. } = self.exchange(number);
        let (request, response) = (Bytes::new(request), Bytes::new(response));
        ExchangeDone { number, request, response, began, opened_connection: number == 0, last }
    }

    fn exchange(&self, number: u32) -> PlannedExchange {
        self.list[self.first + number as usize]
    }
}
