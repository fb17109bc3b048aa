//! What the applications at both ends of a connection do: write, pause, answer, close.

use alloc::boxed::Box;
use alloc::sync::Arc;

use aqmlab_random::Stream;
use aqmlab_units::{Bytes, Instant};

use crate::distribution::Distribution;
use crate::on_off::{OnOff, Period, Periods};

/// What an application does to its byte stream.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Act {
    /// It writes so many bytes.
    Write(u64),
    /// It writes so many bytes and closes.
    WriteLast(u64),
    /// It has something to send at all times from now on.
    WriteEndlessly,
    /// It takes back what has not been sent yet of what it writes without end.
    Withdraw,
}

/// What happens now, and when the session wants to be woken.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Step {
    /// At the end that opened the connection.
    pub client: Option<Act>,
    /// At the other end.
    pub server: Option<Act>,
    /// Call [`Session::on_timer`] then.
    pub wake_at: Option<Instant>,
}

/// How far the two streams have come, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Progress {
    /// Of the client's, acknowledged.
    pub acked: u64,
    /// Of the client's, delivered to the server.
    pub at_server: u64,
    /// Of the server's, delivered to the client.
    pub at_client: u64,
}

/// The applications at both ends of one connection. Each call says what they do then.
#[derive(Clone, Debug)]
pub enum Session {
    /// Greedy while on; what has not left when an off period begins is withdrawn.
    Greedy(Box<Greedy>),
    /// One burst of bytes after the other, with an off period after each has been acknowledged.
    Bursts(Box<ByteBursts>),
    /// One request, one response.
    Exchange(Exchange),
}

/// See [`Session::Greedy`].
#[derive(Clone, Debug)]
pub struct Greedy {
    periods: Periods,
    on: bool,
}

/// The bursts of the sources of a class.
#[derive(Clone, PartialEq, Debug)]
pub struct Bursty {
    /// Bytes of each burst.
    pub sizes: Distribution<Bytes>,
    /// From the moment when all of a burst has been acknowledged to the next burst.
    pub off: Distribution,
    /// Does an off period come before the first burst?
    pub begins_off: bool,
}

/// See [`Session::Bursts`].
#[derive(Clone, Debug)]
pub struct ByteBursts {
    plan: Arc<Bursty>,
    size_draws: Stream,
    off_draws: Stream,
    /// Off periods and bursts so far.
    offs: u64,
    bursts: u64,
    written: u64,
    /// A burst is on its way.
    on: bool,
}

/// A client sends a request; once it has arrived the server answers and closes; the client closes when it has got all.
/// Without a response the client closes behind its request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exchange {
    /// From the client, may be nothing if there is a response.
    pub request: Bytes,
    /// From the server, may be nothing.
    pub response: Bytes,
    answered: bool,
}

impl Exchange {
    /// Not begun yet.
    pub const fn new(request: Bytes, response: Bytes) -> Self {
        Exchange { request, response, answered: false }
    }
}

impl Session {
    /// A greedy sender with these periods.
    pub fn greedy(times: Arc<OnOff>, on_draws: Stream, off_draws: Stream) -> Self {
        Session::Greedy(Box::new(Greedy { periods: Periods::new(times, on_draws, off_draws), on: false }))
    }

    /// Bursts of bytes as `plan` has them.
    pub fn bursts(plan: Arc<Bursty>, size_draws: Stream, off_draws: Stream) -> Self {
        let (offs, bursts, written, on) = (0, 0, 0, false);
        Session::Bursts(Box::new(ByteBursts { plan, size_draws, off_draws, offs, bursts, written, on }))
    }

    /// The connection is about to be opened.
    pub fn begin(&mut self, now: Instant) -> Step {
        match self {
            Session::Greedy(greedy) => greedy.begin(now),
            Session::Bursts(bursts) => bursts.begin(now),
            Session::Exchange(exchange) => exchange.begin(),
        }
    }

    /// The instant that the session asked for.
    pub fn on_timer(&mut self, now: Instant) -> Step {
        match self {
            Session::Greedy(greedy) => greedy.turn(now),
            Session::Bursts(bursts) => bursts.burst(),
            Session::Exchange(_) => Step::default(),
        }
    }

    /// After each arrival at either end.
    pub fn on_progress(&mut self, now: Instant, progress: Progress) -> Step {
        match self {
            Session::Greedy(_) => Step::default(),
            Session::Bursts(bursts) => bursts.look(now, progress.acked),
            Session::Exchange(exchange) => exchange.look(progress.at_server),
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

    /// From on to off, or back.
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
        if self.plan.begins_off { self.pause(now) } else { self.burst() }
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

impl Exchange {
    fn begin(&mut self) -> Step {
        let (request, response) = (self.request.get(), self.response.get());
        match (request, response) {
            (_, 0) => Step { client: Some(Act::WriteLast(request)), ..Step::default() },
            // Nothing is asked for: the server speaks first.
            (0, _) => self.answer(),
            _ => Step { client: Some(Act::Write(request)), ..Step::default() },
        }
    }

    fn look(&mut self, at_server: u64) -> Step {
        if self.answered || self.response.is_zero() || at_server < self.request.get() {
            return Step::default();
        }
        self.answer()
    }

    fn answer(&mut self) -> Step {
        self.answered = true;
        Step { server: Some(Act::WriteLast(self.response.get())), ..Step::default() }
    }
}
