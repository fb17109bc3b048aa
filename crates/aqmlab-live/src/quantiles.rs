//! Quantiles of times that are measured in live runs.

use aqmlab_qdisc::Histogram;
use aqmlab_recording::live::TimeDistribution;
use aqmlab_units::Span;

/// Returns, to within 1 %, the smallest value that a given share of all values does not exceed.
pub fn quantile(histogram: &Histogram, share: f64) -> Span {
    let wanted = share * histogram.total() as f64;
    let mut below = 0;
    for bin in histogram.bins() {
        below += bin.weight;
        if below as f64 >= wanted {
            return Span::ns(bin.high);
        }
    }
    Span::ZERO
}

/// Returns the count and the quantiles of times in nanoseconds, and the bins from which they are computed.
pub fn distribution(histogram: &Histogram) -> TimeDistribution {
    let at = |share| quantile(histogram, share).as_ns();
    TimeDistribution {
        count: histogram.total(),
        p50_ns: at(0.5),
        p90_ns: at(0.9),
        p99_ns: at(0.99),
        p999_ns: at(0.999),
        max_ns: histogram.bins().last().map_or(0, |bin| bin.high),
        bins: histogram.bins().map(|bin| [bin.low, bin.high, bin.weight]).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_bins() {
        let mut histogram = Histogram::new();
        (1..=100).for_each(|value| histogram.add(value, 1));
        assert_eq!(quantile(&histogram, 0.5), Span::ns(50));
        assert_eq!(quantile(&histogram, 0.99), Span::ns(99));
        assert_eq!(quantile(&histogram, 1.0), Span::ns(100));
        assert_eq!(quantile(&Histogram::new(), 0.99), Span::ZERO);
        let found = distribution(&histogram);
        assert_eq!((found.count, found.max_ns, found.p90_ns), (100, 100, 90));
    }
}
