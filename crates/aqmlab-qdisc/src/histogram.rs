//! Log-linear histograms, which are small and mergeable and have exact counts.

use alloc::vec::Vec;

/// Each value below this has its own bin; from this value upwards, each octave has this many bins.
const PER_OCTAVE: u64 = 128;
const OCTAVE_BITS: u32 = PER_OCTAVE.trailing_zeros();
/// Number of octaves that 64-bit values span, including the first octave, which has one bin per value.
const OCTAVES: u64 = (u64::BITS - OCTAVE_BITS + 1) as u64;

/// Weights of `u64` values in bins of at most 1 % relative width (1/128), exact below 128.
///
/// The bins are fixed, so histograms of different runs merge by addition. The weight of a value is
/// a count (sojourn times: one per packet) or a time in nanoseconds (backlog: how long it lasted).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Histogram {
    /// Weights by bin. This vector grows by whole octaves, up to the octave of the largest value
    /// seen (58 octaves at most).
    weights: Vec<u64>,
}

/// The values `low ..= high` and their weight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bin {
    /// The smallest value of the bin.
    pub low: u64,
    /// The largest value of the bin.
    pub high: u64,
    /// The total weight of the values in the bin.
    pub weight: u64,
}

impl Histogram {
    /// Creates an empty histogram.
    pub const fn new() -> Self {
        Histogram { weights: Vec::new() }
    }

    /// Adds `weight` to the bin of `value`.
    #[inline]
    pub fn add(&mut self, value: u64, weight: u64) {
        let index = index_of(value);
        match self.weights.get_mut(index) {
            Some(sum) => *sum += weight,
            None => self.add_first(index, weight),
        }
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &Histogram) {
        if other.weights.len() > self.weights.len() {
            self.weights.resize(other.weights.len(), 0);
        }
        for (mine, theirs) in self.weights.iter_mut().zip(&other.weights) {
            *mine += theirs;
        }
    }

    /// Clears all weights and keeps the memory.
    pub fn clear(&mut self) {
        self.weights.clear();
    }

    /// Reserves room for all possible values, 58 KiB, so that adding one allocates nothing.
    pub fn reserve(&mut self) {
        self.weights.reserve((OCTAVES * PER_OCTAVE) as usize - self.weights.len());
    }

    /// Returns the sum of all weights.
    pub fn total(&self) -> u64 {
        self.weights.iter().sum()
    }

    /// Returns how much memory the bins occupy, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.weights.capacity() * size_of::<u64>()
    }

    /// Iterates over the bins whose weight is above zero, in ascending order.
    pub fn bins(&self) -> impl Iterator<Item = Bin> + '_ {
        self.weights.iter().enumerate().filter(|&(_, &weight)| weight > 0).map(|(index, &weight)| {
            let (low, high) = bounds_of(index);
            Bin { low, high, weight }
        })
    }

    /// Adds a weight to a bin in an octave that the vector does not contain yet.
    #[cold]
    fn add_first(&mut self, index: usize, weight: u64) {
        let octave = PER_OCTAVE as usize;
        self.weights.resize((index / octave + 1) * octave, 0);
        self.weights[index] = weight;
    }
}

#[inline]
fn index_of(value: u64) -> usize {
    if value < PER_OCTAVE {
        return value as usize;
    }
    // `octave` is 0 for 128..=255: bins of width 1 there, 2 in the next octave, and so on.
    let octave = 63 - value.leading_zeros() - OCTAVE_BITS;
    ((u64::from(octave) << OCTAVE_BITS) + (value >> octave)) as usize
}

fn bounds_of(index: usize) -> (u64, u64) {
    let index = index as u64;
    if index < PER_OCTAVE {
        return (index, index);
    }
    let octave = (index >> OCTAVE_BITS) - 1;
    let low = (index - (octave << OCTAVE_BITS)) << octave;
    (low, low + ((1 << octave) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_lies_in_its_bin_and_no_bin_is_wider_than_one_percent() {
        let mut value = 0u64;
        loop {
            for v in [value, value.saturating_add(1)] {
                let (low, high) = bounds_of(index_of(v));
                assert!(low <= v && v <= high, "{v} is not in {low}..={high}");
                assert!(v < 256 || (high - low + 1) as f64 / low as f64 <= 0.01, "{low}..={high}");
                assert!(v >= 256 || low == high);
            }
            if value == u64::MAX {
                break;
            }
            value = value.saturating_add(value / 97 + 1);
        }
    }

    #[test]
    fn bins_are_adjacent() {
        for index in 0..58 * 128 - 1 {
            assert_eq!(bounds_of(index).1.wrapping_add(1), bounds_of(index + 1).0, "bin {index}");
        }
        assert_eq!(bounds_of(58 * 128 - 1).1, u64::MAX);
    }

    #[test]
    fn merging_is_adding() {
        let (mut a, mut b, mut both) = (Histogram::new(), Histogram::new(), Histogram::new());
        for n in 0..1000u64 {
            let (value, weight) = (n * n * n, n % 7);
            if n % 3 == 0 { &mut a } else { &mut b }.add(value, weight);
            both.add(value, weight);
        }
        a.merge(&b);
        assert!(a.bins().eq(both.bins()));
        assert_eq!(a.total(), (0..1000).map(|n| n % 7).sum::<u64>());
    }
}
