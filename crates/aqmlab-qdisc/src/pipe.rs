//! The arithmetic of one flow's path outside the bottleneck: rate, constant delay, loss.

use aqmlab_random::Stream;
use aqmlab_units::{Bytes, Instant, LinkClock, Rate, Span};

/// What becomes of a packet that enters a pipe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Passage {
    /// It comes out at this instant.
    Due(Instant),
    /// It is lost.
    Lost,
}

/// A dedicated path: an optional rate, then a constant delay, with an optional loss probability at the
/// entrance. It holds no packets, it only says when each comes out, so that the simulator needs no event
/// of its own for an access link. What enters first comes out first.
///
/// The queue in front of the rate is not bounded; [`crate::DelayStage`] has a cap.
#[derive(Clone, Debug)]
pub struct Pipe {
    clock: Option<LinkClock>,
    overhead: Bytes,
    free_at: Instant,
    delay: Span,
    loss: Option<Loss>,
}

#[derive(Clone, Debug)]
struct Loss {
    probability: f64,
    draws: Stream,
}

impl Pipe {
    /// A pipe of constant delay.
    pub fn new(delay: Span) -> Self {
        Pipe { clock: None, overhead: Bytes::ZERO, free_at: Instant::ZERO, delay, loss: None }
    }

    /// The same with a rate; each packet occupies it for `overhead` more than its length.
    ///
    /// # Panics
    /// If the rate is zero.
    pub fn with_rate(mut self, rate: Rate, overhead: Bytes) -> Self {
        self.clock = Some(LinkClock::new(rate));
        self.overhead = overhead;
        self
    }

    /// The same with losses, independent with `probability`. One draw a packet, whatever comes of it; a
    /// lost packet does not occupy the rate.
    pub fn with_loss(mut self, probability: f64, draws: Stream) -> Self {
        self.loss = Some(Loss { probability, draws });
        self
    }

    /// A packet of `size` enters; `now` does not go back between calls.
    #[inline]
    pub fn pass(&mut self, now: Instant, size: Bytes) -> Passage {
        if let Some(loss) = &mut self.loss
            && loss.draws.hit(loss.probability)
        {
            return Passage::Lost;
        }
        let sent = match &mut self.clock {
            None => now,
            Some(clock) => {
                if self.free_at < now {
                    clock.restart();
                    self.free_at = now;
                }
                self.free_at += clock.serialise(size + self.overhead);
                self.free_at
            }
        };
        Passage::Due(sent + self.delay)
    }

    /// When a packet that enters now would begin to be sent.
    pub fn free_at(&self, now: Instant) -> Instant {
        self.free_at.max(now)
    }

    /// The constant delay.
    pub const fn delay(&self) -> Span {
        self.delay
    }
}

#[cfg(test)]
mod tests {
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
