//! The time that a link takes to send each packet, without cumulative rounding errors.

use crate::{Bytes, Rate, Span};

const NS_PER_S: u64 = 1_000_000_000;

/// Transmission times of packets at one rate, in whole nanoseconds and a remainder that is carried
/// to the next packet.
///
/// Networks send packets of only a few sizes, and division is slow. Quotients are therefore cached, each in
/// the slot for its packet size, and the last one used is also kept separately.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Serialiser {
    rate: Rate,
    last: Quotient,
    known: [Quotient; PLACES],
}

/// Number of slots, a power of two. Acknowledgments and full segments of the usual sizes have their
/// own slots.
const PLACES: usize = 4;

/// The time that a packet of one size takes: whole nanoseconds, and the rest in units of `1 / rate` ns,
/// always less than the rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Quotient {
    size: Bytes,
    whole: u64,
    rest: u64,
}

impl Serialiser {
    /// Creates the serialiser for `rate`.
    ///
    /// # Panics
    /// If the rate is zero, or 2^63 bit/s or more.
    pub const fn new(rate: Rate) -> Self {
        assert!(rate.as_bps() > 0, "a link needs a rate above zero");
        assert!(rate.as_bps() < 1 << 63, "a link's rate is below 2^63 bit/s");
        let nothing = Quotient { size: Bytes::ZERO, whole: 0, rest: 0 };
        Serialiser { rate, last: nothing, known: [nothing; PLACES] }
    }

    /// Returns the rate.
    pub const fn rate(&self) -> Rate {
        self.rate
    }

    /// Returns the time that a packet of `size` takes, given the `remainder` of the packets before it. The
    /// remainder is in units of `1 / rate` ns, less than the rate, and zero before the first packet of a
    /// train. Updates the remainder.
    #[inline]
    pub fn serialise(&mut self, size: Bytes, remainder: &mut u64) -> Span {
        if size != self.last.size {
            self.recall(size);
        }
        let rate = self.rate.as_bps();
        let sum = *remainder + self.last.rest;
        let carry = sum >= rate;
        *remainder = if carry { sum - rate } else { sum };
        Span::ns(self.last.whole + u64::from(carry))
    }

    /// Makes the quotient for `size` the last one used.
    #[inline(never)]
    fn recall(&mut self, size: Bytes) {
        let place = (size.get() >> 3 ^ size.get() >> 7) as usize % PLACES;
        if size == self.known[place].size {
            self.last = self.known[place];
        } else {
            self.learn(size, place);
        }
    }

    /// Computes the quotient for `size` and makes it the last one used.
    #[cold]
    #[inline(never)]
    fn learn(&mut self, size: Bytes, place: usize) {
        self.last = self.quotient(size);
        self.known[place] = self.last;
    }

    fn quotient(&self, size: Bytes) -> Quotient {
        let rate = self.rate.as_bps();
        // 8 * 10^9 * size fits into 64 bits for sizes up to 2 GB; real packets are below 64 kB.
        if let Some(work) = size.get().checked_mul(8 * NS_PER_S) {
            return Quotient { size, whole: work / rate, rest: work % rate };
        }
        let (work, rate) = (size.bits() * u128::from(NS_PER_S), u128::from(rate));
        // The result must be less than u64::MAX, so that a nanosecond can be added.
        let whole = u64::try_from(work / rate).unwrap_or(u64::MAX).min(u64::MAX - 1);
        Quotient { size, whole, rest: (work % rate) as u64 }
    }
}

/// Serialisation times of one link in whole nanoseconds, with the rounding remainder carried to the next
/// packet.
///
/// After any number of packets sent back to back, the sum of the returned spans is the exact time rounded
/// down: even an awkward rate never leads to drift.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkClock {
    serialiser: Serialiser,
    /// The remainder carried so far, in units of `1 / rate` ns; always less than the rate.
    remainder: u64,
}

impl LinkClock {
    /// Creates a clock at `rate`.
    ///
    /// # Panics
    /// Under the same conditions as [`Serialiser::new`].
    pub const fn new(rate: Rate) -> Self {
        LinkClock { serialiser: Serialiser::new(rate), remainder: 0 }
    }

    /// Returns the current rate.
    pub const fn rate(&self) -> Rate {
        self.serialiser.rate()
    }

    /// Returns the fraction of a nanosecond left after the last packet, in units of `1 / rate` ns.
    #[inline]
    pub const fn remainder(&self) -> u64 {
        self.remainder
    }

    /// Returns the serialiser for the current rate, for calculations outside the clock.
    #[inline]
    pub const fn serialiser(&mut self) -> &mut Serialiser {
        &mut self.serialiser
    }

    /// Changes the rate while `left`, in units of 10^-9 bit, of a packet is still to be sent. Returns
    /// the time that this takes at the new rate; the remainder is carried to the next packet.
    pub fn set_rate(&mut self, rate: Rate, left: u128) -> Span {
        let bps = u128::from(rate.as_bps());
        *self = LinkClock { serialiser: Serialiser::new(rate), remainder: (left % bps) as u64 };
        // The result must be less than u64::MAX, so that a nanosecond can be added.
        Span::ns(u64::try_from(left / bps).unwrap_or(u64::MAX).min(u64::MAX - 1))
    }

    /// Clears the remainder: the link was idle, and its next packet starts a new back-to-back
    /// train.
    pub const fn restart(&mut self) {
        self.remainder = 0;
    }

    /// Returns how long the next packet, whose size is `size`, occupies the link.
    #[inline]
    pub fn serialise(&mut self, size: Bytes) -> Span {
        self.serialiser.serialise(size, &mut self.remainder)
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
    fn packets_of_changing_size_take_their_own_time() {
        let rate = Rate::bps(9_999_991);
        let mut clock = LinkClock::new(rate);
        let (mut end, mut bytes) = (0, 0);
        for size in [1500, 40, 40, 1500, 576, 576, 40].into_iter().cycle().take(7000) {
            end += clock.serialise(Bytes::new(size)).as_ns();
            bytes += size;
            assert_eq!(u128::from(end), u128::from(bytes) * 8_000_000_000 / 9_999_991, "after {bytes} B");
        }
    }

    #[test]
    fn a_size_beyond_64_bit_work_is_still_exact() {
        let mut clock = LinkClock::new(Rate::gbit(400));
        let size = Bytes::new(1 << 40);
        assert_eq!(clock.serialise(size).as_ns(), ((1u128 << 43) / 400) as u64);
    }
}
