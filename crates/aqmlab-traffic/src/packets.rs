//! Packet sources: CBR, Poisson and on/off, with fixed or exponential sizes, for UDP.

use alloc::boxed::Box;
use alloc::sync::Arc;

use aqmlab_random::Stream;
use aqmlab_units::{Bytes, Instant, LinkClock, Rate, Span};
use schemars::JsonSchema;
use serde::Serialize;

use crate::on_off::{Begin, OnOff, Period, Periods};

/// Sizes of the packets of a source, at the network layer.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum PacketSizes {
    /// Exponential, as the service times of an M/M/1 queue are, but never smaller or larger than a datagram can
    /// be. This is the mean of the resulting sizes: see [`exponential_scale`]. No MTU limits them.
    Exponential(Bytes),
    /// All the same.
    #[serde(untagged)]
    Fixed(Bytes),
}

/// The smallest datagram over IPv4: headers of IP and UDP, and no data.
pub const SMALLEST_DATAGRAM: Bytes = Bytes::new(28);
/// The largest datagram over IPv4, headers included.
pub const LARGEST_DATAGRAM: Bytes = Bytes::new(65_535);

/// Returns the mean of an exponential variable that has the mean `mean` after values below the smallest
/// datagram are raised to it, and values above the largest are lowered to it. In other words, with the two
/// sizes a and b, it solves `a + s (exp(-a/s) - exp(-b/s)) = mean` for s, in bytes.
///
/// Returns `None` if the mean is not between the two sizes.
pub fn exponential_scale(mean: Bytes) -> Option<f64> {
    let (least, most) = (SMALLEST_DATAGRAM.as_f64(), LARGEST_DATAGRAM.as_f64());
    let resulting = |s: f64| least + s * (libm::exp(-least / s) - libm::exp(-most / s));
    let wanted = mean.as_f64();
    if wanted <= least || wanted >= most {
        return None;
    }
    // The resulting mean grows with s.
    let (mut low, mut high) = (0.1, 1.0);
    while resulting(high) < wanted {
        (low, high) = (high, 2.0 * high);
        if high > 1e12 {
            return None;
        }
    }
    for _ in 0..200 {
        let middle = 0.5 * (low + high);
        if resulting(middle) < wanted { low = middle } else { high = middle }
    }
    Some(0.5 * (low + high))
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
    /// The size of all packets, unless sizes are drawn.
    size: Bytes,
    drawn: Option<Box<DrawnSizes>>,
    spacing: Spacing,
    clock: LinkClock,
    mean_gap_s: f64,
    next_at: Instant,
    /// The fraction of a nanosecond that the last drawn gap lost in rounding; the next one receives it.
    rest_ns: f64,
    gap_draws: Stream,
    /// On and off periods, if it has any.
    bursts: Option<Box<Bursts>>,
}

/// Exponential sizes.
#[derive(Clone, Debug)]
struct DrawnSizes {
    /// The mean of the exponential variable, in bytes.
    scale: f64,
    /// The fraction of a byte that the last size lost in rounding; the next one receives it.
    rest: f64,
    draws: Stream,
}

impl DrawnSizes {
    fn next(&mut self) -> Bytes {
        let drawn = self.scale * self.draws.exponential();
        let exact = drawn.clamp(SMALLEST_DATAGRAM.as_f64(), LARGEST_DATAGRAM.as_f64()) + self.rest;
        let whole = exact as u64;
        self.rest = exact - whole as f64;
        Bytes::new(whole)
    }
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
    pub const VERSION: u32 = 2;

    /// Creates a source whose first packet leaves at `start` or, with Poisson spacing, one exponential gap
    /// after `start`.
    ///
    /// # Panics
    /// If the rate or the mean size is zero, or no datagrams have the mean of exponential sizes.
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
        let drawn = match sizes {
            PacketSizes::Fixed(_) => None,
            PacketSizes::Exponential(mean) => {
                let scale = exponential_scale(mean).expect("datagrams can have this mean size");
                Some(Box::new(DrawnSizes { scale, rest: 0.0, draws: size_draws }))
            }
        };
        let mut source = PacketSource {
            size: sizes.mean(),
            drawn,
            spacing,
            clock: LinkClock::new(rate),
            mean_gap_s,
            next_at: start,
            rest_ns: 0.0,
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
        let size = self.drawn.as_mut().map_or(self.size, |drawn| drawn.next());
        let gap = match self.spacing {
            Spacing::Constant => self.clock.serialise(size),
            Spacing::Random => {
                let even_s = size.as_f64() / self.clock.rate().bytes_per_s();
                let factor = 0.5 + self.gap_draws.unit();
                self.whole_ns(even_s * factor)
            }
            Spacing::Poisson => self.draw_gap(),
        };
        self.next_at += gap;
        if let Some(bursts) = &mut self.bursts {
            bursts.left -= 1;
            if bursts.left == 0 {
                self.next_at += bursts.pause(self.mean_gap_s);
            }
        }
        size
    }

    fn draw_gap(&mut self) -> Span {
        let gap_s = self.mean_gap_s * self.gap_draws.exponential();
        self.whole_ns(gap_s)
    }

    /// Returns a gap in whole nanoseconds. What is lost in rounding is added to the next gap, so the mean is
    /// correct even if a gap lasts only a few nanoseconds.
    fn whole_ns(&mut self, gap_s: f64) -> Span {
        let exact = gap_s * 1e9 + self.rest_ns;
        let whole = exact as u64;
        self.rest_ns = exact - whole as f64;
        Span::ns(whole)
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
            assert!(
                (bytes.as_f64() / (n as f64 * 1000.0) - 1.0).abs() < 4.0 / (n as f64).sqrt(),
                "{bytes:?}"
            );
        }
    }

    #[test]
    fn exponential_sizes_have_their_mean_within_the_sizes_of_datagrams() {
        for mean in [29u64, 30, 100, 1000, 9000, 30_000] {
            let scale = exponential_scale(Bytes::new(mean)).unwrap();
            // The mean and the variance of max(a, min(X, b)) for exponential X, by integration by parts.
            let (a, b) = (28.0, 65_535.0);
            let (at_a, at_b) = (libm::exp(-a / scale), libm::exp(-b / scale));
            let expected = a + scale * (at_a - at_b);
            assert!((expected / mean as f64 - 1.0).abs() < 1e-9, "{mean}: {expected}");
            let square = a * a + 2.0 * scale * ((a + scale) * at_a - (b + scale) * at_b);
            let mut s = source(PacketSizes::Exponential(Bytes::new(mean)), Spacing::Constant);
            let n = 200_000u64;
            let sizes: Vec<u64> = (0..n).map(|_| s.emit().get()).collect();
            assert!(sizes.iter().all(|size| (28..=65_535).contains(size)), "{mean}");
            let sum = sizes.iter().sum::<u64>() as f64;
            let deviation = libm::sqrt(square - expected * expected);
            // Five standard errors.
            let most = 5.0 * deviation / (n as f64).sqrt();
            assert!((sum / n as f64 - mean as f64).abs() < most, "{mean}: {}", sum / n as f64);
        }
        assert_eq!(exponential_scale(Bytes::new(28)), None);
        assert_eq!(exponential_scale(Bytes::new(65_535)), None);
    }

    /// Gaps of about a nanosecond have the right mean, whatever their distribution.
    #[test]
    fn gaps_below_a_nanosecond_add_up_to_the_rate() {
        for spacing in [Spacing::Constant, Spacing::Random, Spacing::Poisson] {
            let (gaps, sizes) = (Stream::new(1, "gap"), Stream::new(1, "size"));
            let size = PacketSizes::Fixed(Bytes::new(64));
            let mut s = PacketSource::new(Rate::gbit(1000), size, spacing, Instant::ZERO, gaps, sizes);
            let n = 1_000_000u64;
            (0..n).for_each(|_| {
                s.emit();
            });
            // A mean gap of 0.512 ns; the standard error of the slowest of the three is a thousandth of it.
            let mean = s.next_at().as_ns() as f64 / n as f64;
            assert!((mean / 0.512 - 1.0).abs() < 0.005, "{spacing:?}: {mean}");
        }
    }

    /// On periods of one packet lose no time either.
    #[test]
    fn bursts_below_a_nanosecond_add_up_to_their_rate() {
        let always = |span| crate::Distribution::Constant(span);
        let times = OnOff { on: always(Span::ZERO), off: always(Span::ns(1)), begin: Begin::On };
        let draws = Stream::new(1, "periods");
        let mut s = PacketSource::on_off(
            Rate::gbit(1000),
            Bytes::new(64),
            Arc::new(times),
            Instant::ZERO,
            draws,
            draws,
        );
        (0..1_000_000).for_each(|_| {
            s.emit();
        });
        assert_eq!(
            s.next_at(),
            Instant::from_ns(1_512_000),
            "a packet of 0.512 ns and an off period of 1 ns"
        );
    }
}
