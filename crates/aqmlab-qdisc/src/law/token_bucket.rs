//! A token bucket, which decides whether packets conform to a rate and a burst.

use aqmlab_units::{Bytes, Instant, Rate, Span};

use super::{Arithmetic, ByteTime};

/// What bytes cost, and how fast tokens arrive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tariff {
    /// Without rounding: a token is 10^-9 bit.
    Exact(Rate),
    /// As Linux's shapers compute it: a token is a nanosecond, and the transmission time of a packet is
    /// rounded down to nanoseconds.
    Linux(ByteTime),
}

impl Tariff {
    /// Returns the tariff of a shaper with this rate.
    pub const fn of(arithmetic: Arithmetic, rate: Rate) -> Self {
        match arithmetic {
            Arithmetic::Exact => Tariff::Exact(rate),
            Arithmetic::Linux => Tariff::Linux(ByteTime::of_shaper(rate.as_bps() / 8)),
        }
    }

    /// Returns the tokens that arrive per nanosecond.
    const fn per_ns(self) -> i128 {
        match self {
            Tariff::Exact(rate) => rate.as_bps() as i128,
            Tariff::Linux(_) => 1,
        }
    }

    /// Returns the tokens that a packet of this many bytes takes.
    #[inline]
    pub const fn price(self, bytes: u64) -> i128 {
        match self {
            Tariff::Exact(_) => Bytes::new(bytes).nanobits() as i128,
            Tariff::Linux(rate) => rate.time(bytes).as_ns() as i128,
        }
    }

    /// Returns the tokens that arrive in this time.
    #[inline]
    pub const fn in_span(self, span: Span) -> i128 {
        self.per_ns() * span.as_ns() as i128
    }
}

/// A meter with a single rate. It is the meter of RFC 2697 with an excess burst of zero, which is
/// equivalent to the meter of RFC 1363 and to the (r, b) curve of network calculus. In every
/// interval of length t, the conforming packets amount to at most `burst + rate t`, and a packet
/// fails to conform only if it would cause this amount to be exceeded.
///
/// With [`Tariff::Exact`], the meter is exact: the level is a whole number of 10^-9 bit, so no
/// rounding error accumulates, whatever the spacing of packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TokenBucket {
    tariff: Tariff,
    depth: i128,
    /// Tokens at the instant `at`; negative if packets were charged that did not conform.
    level: i128,
    at: Instant,
}

impl TokenBucket {
    /// Creates a full bucket.
    pub const fn new(rate: Rate, burst: Bytes) -> Self {
        TokenBucket::with_depth(Tariff::Exact(rate), burst.nanobits() as i128)
    }

    /// Creates a full bucket that holds this many tokens.
    pub const fn with_depth(tariff: Tariff, depth: i128) -> Self {
        TokenBucket { tariff, depth, level: depth, at: Instant::ZERO }
    }

    /// Returns whether an arriving packet of `size` conforms. If the packet conforms, its tokens are taken;
    /// otherwise the bucket stays as it is.
    pub fn conforms(&mut self, now: Instant, size: Bytes) -> bool {
        let conforms = self.wait(now, size.get()).is_zero();
        if conforms {
            self.charge(now, size.get());
        }
        conforms
    }

    /// Returns the time until a packet of this many bytes conforms, if no other packet is charged before. (If
    /// the packet costs more than the bucket holds, it never does.)
    #[inline]
    pub fn wait(&self, now: Instant, bytes: u64) -> Span {
        let missing = self.tariff.price(bytes) - self.level_at(now);
        let per_ns = self.tariff.per_ns();
        let ns = (missing + per_ns - 1).div_euclid(per_ns).max(0);
        Span::ns(u64::try_from(ns).unwrap_or(u64::MAX))
    }

    /// Takes the tokens of a packet, whether it conforms or not.
    #[inline]
    pub fn charge(&mut self, now: Instant, bytes: u64) {
        self.level = self.level_at(now) - self.tariff.price(bytes);
        self.at = now;
    }

    /// Changes the price of bytes, how fast tokens arrive, and the tokens that the bucket holds. The bucket keeps its tokens as a
    /// number of bytes, as far as it holds them.
    pub fn change(&mut self, now: Instant, tariff: Tariff, depth: i128) {
        const MANY: u64 = 1 << 20;
        let (before, after) = (self.tariff.price(MANY), tariff.price(MANY));
        self.level = (self.level_at(now) * after).div_euclid(before).min(depth);
        (self.tariff, self.depth, self.at) = (tariff, depth, now);
    }

    /// Returns the tokens at `now`, in bytes.
    pub fn bytes_at(&self, now: Instant) -> f64 {
        const MANY: u64 = 1 << 20;
        self.level_at(now) as f64 / (self.tariff.price(MANY) as f64 / MANY as f64)
    }

    #[inline]
    fn level_at(&self, now: Instant) -> i128 {
        let filled = self.tariff.in_span(now.saturating_since(self.at));
        (self.level + filled).min(self.depth)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use aqmlab_random::Stream;

    use super::*;

    /// Checks conformance against the arrival curve: no interval that begins at an admitted packet contains
    /// more than `burst + rate t`, this packet included. Compares every decision with the curve, at loads
    /// around the rate.
    #[test]
    fn it_lets_through_what_the_arrival_curve_lets_through_and_nothing_else() {
        let mut draws = Stream::new(11, "token bucket");
        let (mut kept, mut refused) = (0, 0);
        for _ in 0..300 {
            let rate = Rate::bps(1 + draws.below(50_000_000));
            let burst = Bytes::new(1500 + draws.below(20_000));
            let mut bucket = TokenBucket::new(rate, burst);
            let mut passed: Vec<(Instant, u64)> = Vec::new();
            let mut now = Instant::ZERO;
            let mean_gap = rate.time_for(Bytes::new(800)).as_ns().clamp(1, 1_000_000_000);
            for _ in 0..120 {
                if draws.below(3) > 0 {
                    now += Span::ns(draws.below(2 * mean_gap));
                }
                let size = 40 + draws.below(1461);
                let fits = passed.iter().enumerate().all(|(i, (from, _))| {
                    let since: u64 = passed[i..].iter().map(|(_, size)| size).sum();
                    let most = burst.nanobits() + rate.nanobits_in(now.saturating_since(*from));
                    Bytes::new(since + size).nanobits() <= most
                });
                let conforms = bucket.conforms(now, Bytes::new(size));
                assert_eq!(conforms, fits, "{rate}, {burst}: {size} B at {now}");
                if conforms {
                    passed.push((now, size));
                    kept += 1;
                } else {
                    refused += 1;
                }
            }
        }
        assert!(kept > 5_000 && refused > 5_000, "{kept} conform, {refused} do not");
    }

    /// At 8 Mbit/s, 10 kB conform immediately and 1000 B per millisecond after that, so an eleventh
    /// packet conforms only after a millisecond.
    #[test]
    fn a_full_bucket_lets_its_burst_through_at_once() {
        let mut bucket = TokenBucket::new(Rate::mbit(8), Bytes::new(10_000));
        let size = Bytes::new(1000);
        assert!((0..10).all(|_| bucket.conforms(Instant::ZERO, size)));
        assert!(!bucket.conforms(Instant::ZERO, Bytes::new(1)));
        assert!(!bucket.conforms(Instant::from_ns(999_999), size), "a nanosecond too early");
        assert!(bucket.conforms(Instant::from_ns(1_000_000), size));
        assert_eq!(bucket.bytes_at(Instant::from_ns(1_000_000_000_000)), 10_000.0, "no more than its depth");
    }
}
