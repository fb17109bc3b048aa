//! A token bucket, which decides whether packets conform to a rate and a burst.

use aqmlab_units::{Bytes, Instant, Rate};

/// A meter with a single rate. It is the meter of RFC 2697 with an excess burst of zero, which is
/// equivalent to the meter of RFC 1363 and to the (r, b) curve of network calculus. In every
/// interval of length t, the conforming packets amount to at most `burst + rate t`, and a packet
/// fails to conform only if it would cause this amount to be exceeded.
///
/// The meter is exact: the level is a whole number of 10^-9 bit, so no rounding error accumulates,
/// whatever the spacing of packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TokenBucket {
    rate: Rate,
    /// Depth, in 10^-9 bit like the level.
    burst: u128,
    level: u128,
    /// Instant to which the level refers.
    at: Instant,
}

impl TokenBucket {
    /// Creates a full bucket.
    pub const fn new(rate: Rate, burst: Bytes) -> Self {
        TokenBucket { rate, burst: burst.nanobits(), level: burst.nanobits(), at: Instant::ZERO }
    }

    /// Returns whether an arriving packet of `size` conforms. If the packet conforms, its tokens are taken;
    /// otherwise the bucket stays as it is.
    pub fn conforms(&mut self, now: Instant, size: Bytes) -> bool {
        self.level = self.level_at(now);
        self.at = now;
        match self.level.checked_sub(size.nanobits()) {
            Some(rest) => {
                self.level = rest;
                true
            }
            None => false,
        }
    }

    /// Returns the tokens at `now`, in bytes.
    pub fn bytes_at(&self, now: Instant) -> f64 {
        self.level_at(now) as f64 / Bytes::new(1).nanobits() as f64
    }

    fn level_at(&self, now: Instant) -> u128 {
        let filled = self.rate.nanobits_in(now.saturating_since(self.at));
        self.level.saturating_add(filled).min(self.burst)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use aqmlab_random::Stream;
    use aqmlab_units::Span;

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
