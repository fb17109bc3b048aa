//! How long a link takes for each packet, without drift.

use crate::{Bytes, Rate, Span};

const NS_PER_S: u64 = 1_000_000_000;

/// Serialisation times of one link in whole nanoseconds, the rounding remainder carried to the next packet.
///
/// After any number of packets sent back to back, the sum of the returned spans is the exact time rounded
/// down: a rate never drifts, however awkward.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkClock {
    rate: Rate,
    /// Unspent remainder in units of `1 / rate` ns; always below the rate.
    remainder: u64,
}

impl LinkClock {
    /// A clock at `rate`.
    ///
    /// # Panics
    /// If the rate is zero.
    pub const fn new(rate: Rate) -> Self {
        assert!(rate.as_bps() > 0, "a link needs a rate above zero");
        LinkClock { rate, remainder: 0 }
    }

    /// The current rate.
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// Changes the rate; the remainder, less than a nanosecond, is kept in proportion by dropping it.
    pub const fn set_rate(&mut self, rate: Rate) {
        assert!(rate.as_bps() > 0, "a link needs a rate above zero");
        self.rate = rate;
        self.remainder = 0;
    }

    /// Forgets the remainder: the link was idle, and its next packet starts a new back-to-back train.
    pub const fn restart(&mut self) {
        self.remainder = 0;
    }

    /// The time that the next packet of `size` occupies the link.
    #[inline]
    pub fn serialise(&mut self, size: Bytes) -> Span {
        self.rate.serialise(size, &mut self.remainder)
    }
}

impl Rate {
    /// The time that `size` takes after what left `remainder`, which is in units of `1 / rate` ns, below the rate,
    /// and zero before the first packet of a train. [`LinkClock`] keeps it; a host with very many links keeps it
    /// itself.
    ///
    /// # Panics
    /// If the rate is zero.
    #[inline]
    pub fn serialise(self, size: Bytes, remainder: &mut u64) -> Span {
        let rate = self.as_bps();
        // 8 * 10^9 * size fits 64 bits up to 2 GB less the remainder; real packets are below 64 kB.
        if let Some(work) = size.get().checked_mul(8 * NS_PER_S).and_then(|w| w.checked_add(*remainder)) {
            *remainder = work % rate;
            return Span::ns(work / rate);
        }
        let work = size.bits() * u128::from(NS_PER_S) + u128::from(*remainder);
        *remainder = (work % u128::from(rate)) as u64;
        Span::ns(u64::try_from(work / u128::from(rate)).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_billion_packets_at_an_awkward_rate_end_within_one_nanosecond() {
        // 10^9 packets of 1500 B at 9 999 991 bit/s (a prime): the exact end is 1.2e13 * 10^9 / 9999991 ns.
        let rate = Rate::bps(9_999_991);
        let mut clock = LinkClock::new(rate);
        let mut end: u128 = 0;
        for _ in 0..1_000_000_000u32 {
            end += u128::from(clock.serialise(Bytes::new(1500)).as_ns());
        }
        let exact = 1500u128 * 8 * 1_000_000_000 * 1_000_000_000 / 9_999_991;
        assert_eq!(end, exact);
    }

    #[test]
    fn a_size_beyond_64_bit_work_is_still_exact() {
        let mut clock = LinkClock::new(Rate::gbit(400));
        let size = Bytes::new(1 << 40);
        assert_eq!(clock.serialise(size).as_ns(), ((1u128 << 43) / 400) as u64);
    }
}
