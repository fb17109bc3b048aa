//! Packet sources: CBR, Poisson and on/off, with fixed or exponential sizes, for UDP.

use alloc::boxed::Box;
use alloc::sync::Arc;

use aqmlab_random::Stream;
use aqmlab_units::{Bytes, Instant, LinkClock, Rate, Span};

use crate::on_off::{Begin, OnOff, Period, Periods};

/// Sizes of the packets of a source, at the network layer.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum PacketSizes {
    /// All the same.
    Fixed(Bytes),
    /// Exponential with this mean, rounded up to whole bytes, at least one byte: packets of these
    /// sizes have the service times of an M/M/1 queue. No MTU limits them.
    Exponential(Bytes),
}

impl PacketSizes {
    /// Returns the mean size.
    pub const fn mean(&self) -> Bytes {
        match self {
            PacketSizes::Fixed(b) | PacketSizes::Exponential(b) => *b,
        }
    }
}

/// When the packets of a source leave.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spacing {
    /// Constant bit rate: each gap is the packet's transmission time at the source's rate, so the
    /// rate is also correct for mixed sizes.
    Constant,
    /// Like [`Spacing::Constant`], but each gap is drawn independently and uniformly from 0.5 to
    /// 1.5 times the constant gap, so the mean rate is correct. ns-2's `Application/Traffic/CBR`
    /// with `random_` does the same.
    Random,
    /// Poisson: exponential gaps whose mean is the mean packet size divided by the rate.
    Poisson,
}

/// A source that sends packets at a given rate.
#[derive(Clone, Debug)]
pub struct PacketSource {
    sizes: PacketSizes,
    spacing: Spacing,
    clock: LinkClock,
    mean_gap_s: f64,
    next_at: Instant,
    size_draws: Stream,
    gap_draws: Stream,
    /// On and off periods, if it has any.
    bursts: Option<Box<Bursts>>,
}

/// On and off periods; each on period lasts for a whole number of packets.
#[derive(Clone, Debug)]
struct Bursts {
    periods: Periods,
    /// Number of packets left in this on period.
    left: u64,
}

impl PacketSource {
    /// The version of this part, incremented whenever a change to it changes a result.
    pub const VERSION: u32 = 1;

    /// Creates a source whose first packet leaves at `start` or, with Poisson spacing, one exponential gap
    /// after `start`.
    ///
    /// # Panics
    /// If the rate or the mean size is zero.
    pub fn new(
        rate: Rate,
        sizes: PacketSizes,
        spacing: Spacing,
        start: Instant,
        gaps: Stream,
        size_draws: Stream,
    ) -> Self {
        assert!(!sizes.mean().is_zero(), "packets must have at least one byte");
        let mean_gap_s = 1.0 / rate.packets_per_s(sizes.mean());
        let mut source = PacketSource {
            sizes,
            spacing,
            clock: LinkClock::new(rate),
            mean_gap_s,
            next_at: start,
            size_draws,
            gap_draws: gaps,
            bursts: None,
        };
        if spacing == Spacing::Poisson {
            let gap = source.draw_gap();
            source.next_at += gap;
        }
        source
    }

    /// Creates a source that sends packets of `size` at `rate` during on periods. Its first period
    /// begins at `start`.
    ///
    /// In an on period, the source sends the whole number of packets, at least one, whose transmission time
    /// at this rate comes nearest to the period's drawn length. The off period begins after the transmission
    /// time of these packets. ns-2's `Application/Traffic/Exponential` and `Application/Traffic/Pareto` do
    /// the same, with `Begin::Off`. DEVIATES from them in two respects: the random numbers differ, and the
    /// first off period begins immediately, not after the transmission time of one packet.
    ///
    /// # Panics
    /// If the rate or the size is zero.
    pub fn on_off(
        rate: Rate,
        size: Bytes,
        times: Arc<OnOff>,
        start: Instant,
        on_draws: Stream,
        off_draws: Stream,
    ) -> Self {
        let mut source =
            PacketSource::new(rate, PacketSizes::Fixed(size), Spacing::Constant, start, on_draws, on_draws);
        let begin = times.begin;
        let mut bursts = Box::new(Bursts { periods: Periods::new(times, on_draws, off_draws), left: 0 });
        match bursts.periods.first() {
            // The residual life of an on period may be shorter than the time for half a packet.
            Period::On(span)
                if begin == Begin::Stationary && span.as_secs_f64() < 0.5 * source.mean_gap_s =>
            {
                source.next_at += bursts.pause(source.mean_gap_s);
            }
            Period::On(span) => bursts.left = packets_of(span, source.mean_gap_s),
            Period::Off(span) => {
                source.next_at += span;
                bursts.begin(source.mean_gap_s);
            }
        }
        source.bursts = Some(bursts);
        source
    }

    /// Returns when the next packet leaves.
    pub const fn next_at(&self) -> Instant {
        self.next_at
    }

    /// Emits the packet due at [`PacketSource::next_at`], advances to the next packet, and returns
    /// the size of the one emitted.
    pub fn emit(&mut self) -> Bytes {
        let size = match self.sizes {
            PacketSizes::Fixed(b) => b,
            PacketSizes::Exponential(mean) => {
                Bytes::new((round_up(mean.as_f64() * self.size_draws.exponential()) as u64).max(1))
            }
        };
        let gap = match self.spacing {
            Spacing::Constant => self.clock.serialise(size),
            Spacing::Random => {
                let even = self.clock.serialise(size).as_ns() as f64;
                Span::ns((even * (0.5 + self.gap_draws.unit()) + 0.5) as u64)
            }
            Spacing::Poisson => self.draw_gap(),
        };
        self.next_at += gap;
        if let Some(bursts) = &mut self.bursts {
            bursts.left -= 1;
            if bursts.left == 0 {
                self.next_at += bursts.pause(self.mean_gap_s);
                self.clock.restart();
            }
        }
        size
    }

    fn draw_gap(&mut self) -> Span {
        Span::try_from_secs_f64(self.mean_gap_s * self.gap_draws.exponential())
            .expect("a gap is finite because the rate is above zero")
    }
}

impl Bursts {
    /// Draws an off period and the following on period, and returns the time until the on period
    /// begins.
    fn pause(&mut self, gap_s: f64) -> Span {
        let off = self.periods.next_off();
        self.begin(gap_s);
        off
    }

    /// Begins an on period in which packets are `gap_s` seconds apart.
    fn begin(&mut self, gap_s: f64) {
        self.left = packets_of(self.periods.next_on(), gap_s);
    }
}

/// Returns the number of packets sent in an on period of length `on`: the nearest whole number, at
/// least one.
fn packets_of(on: Span, gap_s: f64) -> u64 {
    ((on.as_secs_f64() / gap_s + 0.5) as u64).max(1)
}

/// Returns the smallest whole number not below a positive `x`; `core` has no `ceil`.
fn round_up(x: f64) -> f64 {
    let whole = x as u64 as f64;
    if whole < x { whole + 1.0 } else { whole }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    fn source(sizes: PacketSizes, spacing: Spacing) -> PacketSource {
        PacketSource::new(
            Rate::mbit(1),
            sizes,
            spacing,
            Instant::from_ns(5),
            Stream::new(1, "gap"),
            Stream::new(1, "size"),
        )
    }

    #[test]
    fn cbr_keeps_its_rate_exactly() {
        let mut s = source(PacketSizes::Fixed(Bytes::new(1000)), Spacing::Constant);
        assert_eq!(s.next_at(), Instant::from_ns(5));
        for _ in 0..1000 {
            assert_eq!(s.emit(), Bytes::new(1000));
        }
        assert_eq!(s.next_at(), Instant::from_ns(5) + Span::s(8));
    }

    #[test]
    fn random_gaps_are_uniform_around_the_even_one() {
        let mut s = source(PacketSizes::Fixed(Bytes::new(1000)), Spacing::Random);
        assert_eq!(s.next_at(), Instant::from_ns(5), "the first leaves at once");
        let n = 10_000usize;
        let mut at = Vec::with_capacity(n);
        for _ in 0..n {
            at.push(s.next_at().as_secs_f64());
            s.emit();
        }
        let gaps: Vec<f64> = at.windows(2).map(|w| (w[1] - w[0]) / 0.008).collect();
        assert!(gaps.iter().all(|g| (0.5..=1.5).contains(g)));
        // A uniform draw has a standard deviation of sqrt(1/12) = 0.2887; over 9943 packets of ns-2.35 with
        // `random_ 1`, it was 0.289.
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let deviation =
            libm::sqrt(gaps.iter().map(|g| (g - mean) * (g - mean)).sum::<f64>() / gaps.len() as f64);
        assert!((mean - 1.0).abs() < 4.0 * 0.2887 / 100.0, "{mean}");
        assert!((deviation - 0.2887).abs() < 0.005, "{deviation}");
        for tenth in 0..10 {
            let low = 0.5 + 0.1 * f64::from(tenth);
            let share = gaps.iter().filter(|g| (low..low + 0.1).contains(*g)).count();
            assert!((850..1150).contains(&share), "from {low}: {share} of 1000 expected");
        }
    }

    #[test]
    fn poisson_rate_lies_within_four_standard_errors() {
        for sizes in [PacketSizes::Fixed(Bytes::new(1000)), PacketSizes::Exponential(Bytes::new(1000))] {
            let mut s = source(sizes, Spacing::Poisson);
            let n = 100_000u64;
            let bytes: Bytes = (0..n).map(|_| s.emit()).sum();
            let seconds = s.next_at().as_secs_f64();
            assert!((seconds / (n as f64 * 0.008) - 1.0).abs() < 4.0 / (n as f64).sqrt(), "{seconds}");
            // On average, rounding up adds half a byte.
            assert!(
                (bytes.as_f64() / (n as f64 * 1000.5) - 1.0).abs() < 4.0 / (n as f64).sqrt(),
                "{bytes:?}"
            );
        }
    }
}
