//! A shaper without a burst: each packet moves the instant of the next one by its transmission time.

use aqmlab_units::{Bytes, Instant, Rate, Span};

/// A rate as a time per byte, in the fixed-point arithmetic of Linux, from a rate in whole bytes per second.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ByteTime {
    per_byte: u64,
    shift: u32,
    bytes_per_s: u64,
}

impl ByteTime {
    /// Returns the time of a byte at this many bytes per second, at least 64, as CAKE computes it: with 34
    /// significant bits.
    pub const fn of(bytes_per_s: u64) -> Self {
        let rate = if bytes_per_s < 64 { 64 } else { bytes_per_s };
        let (mut per_byte, mut shift) = ((1_000_000_000 << 34) / rate, 34);
        while per_byte >> 34 != 0 {
            per_byte >>= 1;
            shift -= 1;
        }
        ByteTime { per_byte, shift, bytes_per_s }
    }

    /// Returns the time of a byte at this many bytes per second, as Linux's other shapers compute it: with 32
    /// significant bits, as far as 64 bits suffice for them.
    pub const fn of_shaper(bytes_per_s: u64) -> Self {
        let rate = if bytes_per_s == 0 { 1 } else { bytes_per_s };
        let (mut dividend, mut shift) = (1_000_000_000_u64, 0);
        while dividend / rate < 1 << 31 && dividend < 1 << 63 {
            dividend <<= 1;
            shift += 1;
        }
        ByteTime { per_byte: dividend / rate, shift, bytes_per_s }
    }

    /// Returns the time of a byte at `rate`, as CAKE computes it.
    pub const fn at(rate: Rate) -> Self {
        ByteTime::of(rate.as_bps() / 8)
    }

    /// Returns the rate in bytes per second.
    pub const fn bytes_per_s(&self) -> u64 {
        self.bytes_per_s
    }

    /// Returns the transmission time of this many bytes, rounded down to nanoseconds.
    #[inline]
    pub const fn time(&self, bytes: u64) -> Span {
        Span::ns(((bytes as u128 * self.per_byte as u128) >> self.shift) as u64)
    }
}

/// Returns the time that a bucket of Linux's htb holds, at this many bytes per second, for packets of `burst`
/// bytes: tc rounds it down to microseconds, and then to ticks of 64 ns.
pub const fn linux_depth(bytes_per_s: u64, burst: Bytes) -> Span {
    let rate = if bytes_per_s == 0 { 1 } else { bytes_per_s };
    let microseconds = burst.get() as u128 * 1_000_000 / rate as u128;
    let ticks = microseconds * 125 / 8;
    Span::ns(64 * ticks as u64)
}

/// The clock of a shaper.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct VirtualClock {
    /// When the next packet may leave if all packets count.
    next: Instant,
    /// When the next packet may leave if only packets that left count, for one and a half times their
    /// transmission time; it bounds the wait after many drops that count (ingress mode).
    failsafe: Instant,
}

impl VirtualClock {
    /// A clock that has never been used.
    pub const NEW: VirtualClock = VirtualClock { next: Instant::ZERO, failsafe: Instant::ZERO };

    /// Records an arrival at an empty queue: unused time is lost.
    pub fn on_busy(&mut self, now: Instant) {
        if self.next < now {
            (self.next, self.failsafe) = (now, now);
        }
    }

    /// Returns the instant from which a packet may leave.
    #[inline]
    pub fn due(&self) -> Instant {
        self.next.min(self.failsafe)
    }

    /// Records that a packet with this transmission time has left, or was dropped and counts as sent.
    pub fn charge(&mut self, time: Span, dropped: bool) {
        self.next = self.next.saturating_add(time);
        if !dropped {
            self.failsafe = self.failsafe.saturating_add(time + Span::ns(time.as_ns() / 2));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1514 bytes at 10 Mbit/s take 1211.2 us; at 8 bytes per second, the lowest rate (64) applies.
    #[test]
    fn times_are_those_of_the_rate() {
        assert_eq!(ByteTime::at(Rate::mbit(10)).time(1514), Span::ns(1_211_200));
        assert_eq!(ByteTime::of(8).time(64), Span::s(1));
        assert_eq!(ByteTime::of(1_000_000_000).time(1_000_000), Span::ms(1));
        assert_eq!(ByteTime::of_shaper(1_250_000).time(1514), Span::ns(1_211_200));
        // 10^9 / 972125 ns per byte, 1028.67...: 2_157_286_357 / 2^21 with 32 significant bits.
        assert_eq!(ByteTime::of_shaper(972_125).time(1514), Span::ns(1_557_412));
        assert_eq!(ByteTime::of_shaper(1).time(64), Span::s(64));
    }

    #[test]
    fn packets_leave_at_the_rate_without_a_burst() {
        let mut clock = VirtualClock::NEW;
        clock.on_busy(Instant::from_ns(500));
        assert_eq!(clock.due(), Instant::from_ns(500));
        clock.charge(Span::ns(100), false);
        assert_eq!(clock.due(), Instant::from_ns(600));
        // Drops that count delay the next packet by at most half of what has left.
        (0..9).for_each(|_| clock.charge(Span::ns(100), true));
        assert_eq!(clock.due(), Instant::from_ns(650));
    }
}
