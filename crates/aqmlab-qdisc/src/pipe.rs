//! Computations for one flow's path outside the bottleneck: rate, constant delay, loss.

use alloc::sync::Arc;
use core::fmt::Debug;

use aqmlab_random::Stream;
use aqmlab_units::{Bytes, Instant, Rate, Serialiser, Span};

use crate::Course;

/// Fate of a packet that enters a pipe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Passage {
    /// It leaves at this instant.
    Due(Instant),
    /// It is lost.
    Lost,
}

/// A link with a rate and an unbounded queue in front of it, reduced to the instant at which it will be free.
/// It takes only sixteen bytes, so a simulator can give every flow its own links; the caller passes the
/// serialiser for the link's rate to each call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Line {
    free_at: Instant,
    /// Rounding remainder of the current train of packets: see [`Serialiser`].
    remainder: u64,
}

impl Line {
    /// Creates a link that has nothing to send at `now`.
    #[inline]
    pub const fn idle(now: Instant) -> Self {
        Line { free_at: now, remainder: 0 }
    }

    /// Creates a link that is sending until `free_at`, with the rounding remainder of its train so far.
    #[inline]
    pub(crate) const fn busy(free_at: Instant, remainder: u64) -> Self {
        Line { free_at, remainder }
    }

    /// Accepts a packet of `size` after all earlier ones, and returns when it will have been sent. `now` must
    /// not go back between calls.
    #[inline]
    pub fn pass(&mut self, now: Instant, serialiser: &mut Serialiser, size: Bytes) -> Instant {
        let Line { free_at, mut remainder } = if self.free_at < now { Line::idle(now) } else { *self };
        let sent = free_at + serialiser.serialise(size, &mut remainder);
        *self = Line { free_at: sent, remainder };
        sent
    }

    /// Returns when all accepted packets will have been sent.
    #[inline]
    pub const fn free_at(&self) -> Instant {
        self.free_at
    }
}

/// A dedicated path: an optional rate, then a constant delay (or one of whole ticks) and optional jitter, with an
/// optional loss probability at the entrance. It holds no packets; it only computes when each of them leaves. Packets leave
/// in the order in which they enter, unless jitter may [reorder](Pipe::reordering) them.
///
/// A queue that builds up because of the rate is not bounded; [`crate::DelayStage`] has a cap.
#[derive(Clone, Debug)]
pub struct Pipe {
    serialiser: Option<Serialiser>,
    overhead: Bytes,
    line: Line,
    delay: Span,
    changes: Option<Changes>,
    ticks: Option<Ticks>,
    jitter: Option<Jitter>,
    loss: Option<Loss>,
}

/// A delay that changes.
#[derive(Clone, Debug)]
struct Changes {
    delay: Course<Span>,
    least: Span,
    /// Whether a packet may overtake those before it when the delay becomes shorter.
    reorders: bool,
    last_due: Instant,
}

/// A delay by a kernel's clock: a packet leaves a whole number of ticks after the last tick before
/// its arrival. (The pipe of FreeBSD 4's dummynet: `move_pkt` adds ticks to the number of the current tick, and
/// packets leave in the first tick that has their number.)
#[derive(Clone, Copy, Debug)]
struct Ticks {
    tick: Span,
    /// Time from the last tick before time 0 until time 0, less than a tick.
    before_zero: Span,
    /// The delay, in ticks.
    whole: u64,
}

/// The random delay of individual packets beyond the constant delay.
#[derive(Clone, Debug)]
struct Jitter {
    times: Arc<dyn Times>,
    draws: Stream,
    /// Whether a packet may overtake another one.
    reorders: bool,
    /// When the last packet accepted so far leaves.
    last_due: Instant,
}

/// A distribution of times, one for each packet.
pub trait Times: Debug + Send + Sync {
    /// Draws the time of the next packet.
    fn draw(&self, stream: &mut Stream) -> Span;
}

/// Uniform over the whole nanoseconds from zero to this time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct UpTo(pub Span);

impl Times for UpTo {
    fn draw(&self, stream: &mut Stream) -> Span {
        Span::ns(stream.below(self.0.as_ns().saturating_add(1)))
    }
}

/// Independent losses, with one probability or with one that changes.
#[derive(Clone, Debug)]
pub struct Loss {
    probability: f64,
    changes: Option<Course<f64>>,
    draws: Stream,
}

impl Loss {
    /// Creates a loss process with one draw per packet, whatever the outcome of the draw.
    pub const fn new(probability: f64, draws: Stream) -> Self {
        Loss { probability, changes: None, draws }
    }

    /// Creates a loss process whose probability changes, with one draw per packet, whatever the outcome of the draw.
    pub const fn changing(probability: Course<f64>, draws: Stream) -> Self {
        Loss { probability: 0.0, changes: Some(probability), draws }
    }

    /// Returns whether a packet that comes at `now`, which must not go back between calls, is lost.
    #[inline]
    pub fn hits_at(&mut self, now: Instant) -> bool {
        if let Some(changes) = &mut self.changes {
            self.probability = changes.at(now);
        }
        self.hits()
    }

    /// Returns whether the next packet is lost.
    #[inline]
    pub fn hits(&mut self) -> bool {
        self.draws.hit(self.probability)
    }
}

impl Pipe {
    /// Creates a pipe of constant delay.
    pub fn new(delay: Span) -> Self {
        let (overhead, line) = (Bytes::ZERO, Line::default());
        Pipe { serialiser: None, overhead, line, delay, changes: None, ticks: None, jitter: None, loss: None }
    }

    /// Lets the delay change: a packet is delayed by the value at the instant at which it has been sent. A packet that
    /// would overtake its predecessor leaves together with it, unless [`Pipe::reordering`] is called. The pipe's
    /// [delay](Pipe::delay) remains that with which it was created, which should be the mean.
    pub fn with_delays(mut self, delay: Course<Span>) -> Self {
        let least = delay.values().min().unwrap_or(Span::ZERO);
        self.changes = Some(Changes { delay, least, reorders: false, last_due: Instant::ZERO });
        self
    }

    /// Cuts the delay to whole ticks, and lets packets leave only at ticks: those at `phase`, less than a tick,
    /// and every `tick` before and after it. A packet is delayed by the time to the last of its ticks, so
    /// by more than one tick less than the whole ticks, and at most by all of them. If the delay is
    /// less than a tick, packets are not delayed.
    ///
    /// # Panics
    /// If the tick is zero, or the phase is not less than the tick.
    pub fn with_ticks(mut self, tick: Span, phase: Span) -> Self {
        assert!(!tick.is_zero() && phase < tick, "a phase lies within a tick");
        let before_zero = if phase.is_zero() { phase } else { tick - phase };
        self.ticks = Some(Ticks { tick, before_zero, whole: self.delay.as_ns() / tick.as_ns() });
        self.delay = mean_of_ticks(self.delay, tick);
        self
    }

    /// Adds a rate, at which each packet takes the transmission time of its length plus `overhead`.
    ///
    /// # Panics
    /// If the rate is zero.
    pub fn with_rate(mut self, rate: Rate, overhead: Bytes) -> Self {
        self.serialiser = Some(Serialiser::new(rate));
        self.overhead = overhead;
        self
    }

    /// Adds independent losses with `probability`. A lost packet takes no transmission time.
    pub fn with_loss(self, probability: f64, draws: Stream) -> Self {
        self.with_losses(Loss::new(probability, draws))
    }

    /// Adds a loss process that was created elsewhere.
    pub fn with_losses(mut self, losses: Loss) -> Self {
        self.loss = Some(losses);
        self
    }

    /// Adds jitter: each packet is delayed further by an independent random time, uniformly
    /// distributed over the whole nanoseconds from 0 to `most`. A packet that would overtake its
    /// predecessor leaves together with it.
    pub fn with_jitter(self, most: Span, draws: Stream) -> Self {
        self.with_times(Arc::new(UpTo(most)), draws)
    }

    /// Adds jitter with this distribution. A packet that would overtake its predecessor leaves together with it,
    /// unless [`Pipe::reordering`] is called.
    pub fn with_times(mut self, times: Arc<dyn Times>, draws: Stream) -> Self {
        self.jitter = Some(Jitter { times, draws, reorders: false, last_due: Instant::ZERO });
        self
    }

    /// Lets packets overtake each other, so that the jitter of every packet has the distribution that was given, and
    /// every packet the delay of its instant.
    pub fn reordering(mut self) -> Self {
        if let Some(changes) = &mut self.changes {
            changes.reorders = true;
        }
        if let Some(jitter) = &mut self.jitter {
            jitter.reorders = true;
        }
        self
    }

    /// Returns whether packets may overtake each other.
    pub fn reorders(&self) -> bool {
        self.jitter.as_ref().is_some_and(|jitter| jitter.reorders)
            || self.changes.as_ref().is_some_and(|changes| changes.reorders)
    }

    /// Accepts a packet of `size`; `now` must not go back between calls.
    #[inline]
    pub fn pass(&mut self, now: Instant, size: Bytes) -> Passage {
        if self.loss.as_mut().is_some_and(|loss| loss.hits_at(now)) {
            return Passage::Lost;
        }
        let sent = match &mut self.serialiser {
            None => now,
            Some(serialiser) => self.line.pass(now, serialiser, size + self.overhead),
        };
        let due = match (&self.ticks, &mut self.changes) {
            (Some(ticks), _) => ticks.due(sent),
            (None, Some(changes)) => changes.due(sent),
            (None, None) => sent + self.delay,
        };
        Passage::Due(self.jitter.as_mut().map_or(due, |jitter| jitter.shift(due)))
    }

    /// Returns the time at which the transmission of a packet that enters now would begin.
    pub fn free_at(&self, now: Instant) -> Instant {
        self.line.free_at().max(now)
    }

    /// Returns the constant delay; if packets leave at ticks, the mean delay of packets that arrive at any time within
    /// a tick.
    pub const fn delay(&self) -> Span {
        self.delay
    }

    /// Returns a delay that every packet exceeds or has.
    pub fn least_delay(&self) -> Span {
        match &self.ticks {
            None => self.changes.as_ref().map_or(self.delay, |changes| changes.least),
            Some(ticks) => ticks.tick.saturating_mul(ticks.whole.saturating_sub(1)),
        }
    }

    /// Returns whether this pipe delays all packets by exactly [`Pipe::delay`].
    pub const fn is_constant(&self) -> bool {
        let delay = self.ticks.is_none() && self.jitter.is_none() && self.changes.is_none();
        delay && self.serialiser.is_none() && self.loss.is_none()
    }
}

impl Changes {
    fn due(&mut self, sent: Instant) -> Instant {
        let due = sent + self.delay.at(sent);
        if !self.reorders {
            self.last_due = due.max(self.last_due);
            return self.last_due;
        }
        due
    }
}

impl Ticks {
    fn due(&self, sent: Instant) -> Instant {
        if self.whole == 0 {
            return sent;
        }
        let tick = self.tick.as_ns();
        let since_tick = (sent.as_ns() % tick + self.before_zero.as_ns()) % tick;
        sent + Span::ns(tick.saturating_mul(self.whole) - since_tick)
    }
}

/// Returns the mean delay of a pipe with this delay and [ticks](Pipe::with_ticks): half a tick
/// less than the whole ticks in it, or nothing.
pub fn mean_of_ticks(delay: Span, tick: Span) -> Span {
    let whole = delay.as_ns() / tick.as_ns();
    Span::ns((whole * tick.as_ns()).saturating_sub(tick.as_ns() / 2))
}

impl Jitter {
    fn shift(&mut self, due: Instant) -> Instant {
        let late = due + self.times.draw(&mut self.draws);
        if self.reorders {
            return late;
        }
        self.last_due = late.max(self.last_due);
        self.last_due
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    const MS: fn(u64) -> Instant = |n| Instant::from_ns(n * 1_000_000);

    #[test]
    fn a_train_is_spread_by_the_rate_and_shifted_by_the_delay() {
        // 1250 B at 10 Mbit/s take 1 ms.
        let mut pipe = Pipe::new(Span::ms(20)).with_rate(Rate::mbit(10), Bytes::ZERO);
        let size = Bytes::new(1250);
        assert_eq!(pipe.pass(MS(0), size), Passage::Due(MS(21)));
        assert_eq!(pipe.pass(MS(0), size), Passage::Due(MS(22)));
        assert_eq!(pipe.pass(MS(1), size), Passage::Due(MS(23)));
        assert_eq!(pipe.pass(MS(9), size), Passage::Due(MS(30)), "idle in between");
    }

    /// The rule of dummynet, by counting ticks: a packet that arrives in tick n, the n-th since the phase, leaves with
    /// tick n + floor(delay / tick).
    #[test]
    fn packets_leave_at_ticks_in_batches() {
        let us = |n: u64| Instant::from_ns(n * 1000);
        let leaves = |pipe: &mut Pipe, at: u64| match pipe.pass(us(at), Bytes::new(100)) {
            Passage::Due(due) => due.as_ns() as f64 / 1e6,
            Passage::Lost => unreachable!("nothing is lost here"),
        };
        // Ticks at 3, 13, 23, .. ms. A delay of 37 ms has three whole ticks.
        let mut pipe = Pipe::new(Span::ms(37)).with_ticks(Span::ms(10), Span::ms(3));
        let due: Vec<f64> =
            [0, 2_999, 3_000, 3_001, 12_999, 13_000, 50_000].map(|at| leaves(&mut pipe, at)).into();
        assert_eq!(due, [23.0, 23.0, 33.0, 33.0, 33.0, 43.0, 73.0]);
        assert_eq!((pipe.delay(), pipe.least_delay()), (Span::ms(25), Span::ms(20)));
        assert!(!pipe.is_constant());
        // All arrivals of a tick leave together, in their order, so the mean over a tick is half a tick less.
        let mut pipe = Pipe::new(Span::ms(30)).with_ticks(Span::ms(10), Span::ZERO);
        let mean = (0..10_000).map(|us| leaves(&mut pipe, us) - us as f64 / 1e3).sum::<f64>() / 1e4;
        assert!((mean - 25.0).abs() < 0.001, "{mean}");
        // A delay below a tick is none.
        let mut pipe = Pipe::new(Span::ms(9)).with_ticks(Span::ms(10), Span::ms(3));
        assert_eq!(leaves(&mut pipe, 4_567), 4.567);
        assert_eq!((pipe.delay(), pipe.least_delay()), (Span::ZERO, Span::ZERO));
        assert_eq!(mean_of_ticks(Span::ms(1), Span::ms(1)), Span::us(500));
    }

    #[test]
    fn a_rate_comes_before_the_ticks_of_the_delay() {
        // 1250 B at 10 Mbit/s take 1 ms; four packets are sent at 1 to 4 ms, two of them before the tick at 3 ms.
        let mut pipe = Pipe::new(Span::ms(10))
            .with_rate(Rate::mbit(10), Bytes::ZERO)
            .with_ticks(Span::ms(10), Span::ms(3));
        let due: Vec<Passage> = (0..4).map(|_| pipe.pass(MS(0), Bytes::new(1250))).collect();
        assert_eq!(due, [3, 3, 13, 13].map(|ms| Passage::Due(MS(ms))));
    }

    #[test]
    fn jitter_spreads_packets_and_keeps_their_order() {
        let mut far = Pipe::new(Span::ms(10)).with_jitter(Span::ms(2), Stream::new(1, "jitter"));
        // Packets one second apart do not wait for each other: each is delayed by 10 ms plus a
        // uniform draw with a mean of 1 ms.
        let extra: Vec<u64> = (1..=10_000)
            .map(|s| match far.pass(MS(1000 * s), Bytes::new(100)) {
                Passage::Due(at) => at.as_ns() - MS(1000 * s + 10).as_ns(),
                Passage::Lost => unreachable!("nothing is lost here"),
            })
            .collect();
        assert!(extra.iter().all(|ns| *ns <= 2_000_000));
        let mean = extra.iter().sum::<u64>() as f64 / 1e4;
        assert!((mean - 1e6).abs() < 5.0 * 2e6 / 12f64.sqrt() / 100.0, "{mean}");
        let mut near = Pipe::new(Span::ms(10)).with_jitter(Span::ms(2), Stream::new(1, "jitter"));
        let due: Vec<Passage> =
            (0..1000u64).map(|i| near.pass(Instant::from_ns(i * 1000), Bytes::new(100))).collect();
        let at = |p: &Passage| if let Passage::Due(at) = p { at.as_ns() } else { 0 };
        assert!(due.windows(2).all(|w| at(&w[0]) <= at(&w[1])), "order is kept");
    }

    #[test]
    fn jitter_of_a_train_has_the_mean_that_keeping_the_order_gives() {
        // Packets at n g with J = 1 leave x or less late with the probability that no packet before is later:
        // the product over k >= 0 of min(1, x + k g). The mean is the integral of the complement.
        let expected = |g: f64| {
            let beyond = |x: f64| 1.0 - (0..1000).fold(1.0, |p, k| p * (x + f64::from(k) * g).min(1.0));
            (0..2000).map(|i| beyond((f64::from(i) + 0.5) / 2000.0)).sum::<f64>() / 2000.0
        };
        for (parts, figure) in [(1u32, 0.5), (2, 0.52), (10, 0.69), (100, 0.88)] {
            let mean = expected(1.0 / f64::from(parts));
            assert!((mean - figure).abs() < 0.005, "`docs/scenario.md` states this figure: {mean}");
            let mut pipe = Pipe::new(Span::ms(10)).with_jitter(Span::ms(2), Stream::new(1, "jitter"));
            let gap = 2_000_000 / u64::from(parts);
            let late =
                (1..=100_000u64).map(|n| match pipe.pass(Instant::from_ns(n * gap), Bytes::new(100)) {
                    Passage::Due(at) => at.as_ns() - n * gap - 10_000_000,
                    Passage::Lost => unreachable!("nothing is lost here"),
                });
            let ours = late.sum::<u64>() as f64 / 1e5 / 2e6;
            // Packets within J of each other are dependent: a thousand independent values remain at J/100.
            assert!((ours - mean).abs() < 0.015, "J/{parts}: {ours} instead of {mean}");
        }
    }

    #[test]
    fn a_change_of_the_delay_reorders_only_if_asked() {
        let steps = [(Span::ZERO, Span::ms(10)), (Span::ms(5), Span::ms(30)), (Span::ms(15), Span::ms(2))];
        let course = Course::new(steps.into(), None);
        for (reorders, expected) in
            [(false, [10, 14, 35, 44, 44, 44, 52]), (true, [10, 14, 35, 44, 17, 19, 52])]
        {
            let mut pipe = Pipe::new(Span::ms(9)).with_delays(course.clone());
            if reorders {
                pipe = pipe.reordering();
            }
            assert_eq!((pipe.reorders(), pipe.is_constant()), (reorders, false));
            assert_eq!((pipe.delay(), pipe.least_delay()), (Span::ms(9), Span::ms(2)));
            let due = [0, 4, 5, 14, 15, 17, 50].map(|at| pipe.pass(MS(at), Bytes::new(100)));
            assert_eq!(due, expected.map(|ms| Passage::Due(MS(ms))));
        }
    }

    #[test]
    fn losses_follow_their_course() {
        let course = Course::new([(Span::ZERO, 0.0), (Span::ms(10), 1.0), (Span::ms(20), 0.25)].into(), None);
        let mut pipe = Pipe::new(Span::ZERO).with_losses(Loss::changing(course, Stream::new(1, "pipe")));
        let mut lost = |from: u64, to: u64| {
            (from * 1000..to * 1000)
                .filter(|us| pipe.pass(Instant::from_ns(us * 1000), Bytes::new(100)) == Passage::Lost)
                .count()
        };
        assert_eq!((lost(0, 10), lost(10, 20)), (0, 10_000));
        // Binomial(40000, 0.25): five standard deviations are 433.
        assert!(lost(20, 60).abs_diff(10_000) < 433);
    }

    #[test]
    fn jitter_that_reorders_has_its_distribution_whatever_the_gaps() {
        // A train of packets 20 us apart with a jitter of up to 2 ms: the mean is 1 ms, and packets overtake others.
        let mut pipe =
            Pipe::new(Span::ms(10)).with_jitter(Span::ms(2), Stream::new(1, "jitter")).reordering();
        assert!(pipe.reorders());
        let due: Vec<u64> = (0..100_000u64)
            .map(|n| match pipe.pass(Instant::from_ns(n * 20_000), Bytes::new(100)) {
                Passage::Due(at) => at.as_ns() - n * 20_000 - 10_000_000,
                Passage::Lost => unreachable!("nothing is lost here"),
            })
            .collect();
        let mean = due.iter().sum::<u64>() as f64 / 1e5;
        assert!((mean - 1e6).abs() < 5.0 * 2e6 / 12f64.sqrt() / 1e5f64.sqrt(), "{mean}");
        // With U and V uniform on [0, 1], a packet overtakes its predecessor if U < V - 0.01: 0.99^2 / 2.
        let overtakes = due.windows(2).filter(|pair| pair[1] + 20_000 < pair[0]).count() as f64 / 1e5;
        assert!((overtakes - 0.99f64 * 0.99 / 2.0).abs() < 5.0 * 0.5 / 1e5f64.sqrt(), "{overtakes}");
    }

    #[test]
    fn losses_come_at_their_rate_and_take_no_time() {
        let mut pipe = Pipe::new(Span::ZERO)
            .with_rate(Rate::mbit(10), Bytes::ZERO)
            .with_loss(0.25, Stream::new(1, "pipe"));
        let sent = (0..40_000).filter(|_| pipe.pass(MS(0), Bytes::new(1250)) != Passage::Lost).count() as u64;
        assert_eq!(pipe.free_at(MS(0)), MS(sent));
        // Binomial(40000, 0.75): five standard deviations are 433.
        assert!(sent.abs_diff(30_000) < 433, "{sent}");
    }
}
