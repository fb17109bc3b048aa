//! How responses are told apart by their sizes.

use aqmlab_units::Bytes;

/// Bands of sizes, each a factor wider than the one before: below `first`, below `first` times the factor, and so on; the
/// last has no upper end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SizeBands {
    /// The least size of each band but the first, ascending.
    starts: Vec<Bytes>,
}

impl SizeBands {
    /// This many bands. `None` where there is none, where they are not rising, or where one begins beyond 2^63 bytes.
    pub fn by_factor(first: Bytes, factor: u64, count: u32) -> Option<Self> {
        if count == 0 || first.is_zero() || factor < 2 {
            return None;
        }
        let mut starts = Vec::new();
        for n in 1..count {
            let start = factor.checked_pow(n - 1)?.checked_mul(first.get())?;
            starts.push(Bytes::new(i64::try_from(start).ok()?.unsigned_abs()));
        }
        Some(SizeBands { starts })
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.starts.len() + 1
    }

    /// The number of the band of this size.
    pub fn of(&self, size: Bytes) -> usize {
        self.starts.partition_point(|&start| start <= size)
    }

    /// The least and the greatest size of a band, the last of which has no greatest.
    pub fn edges(&self, band: usize) -> (Bytes, Option<Bytes>) {
        let low = band.checked_sub(1).map_or(Bytes::ZERO, |before| self.starts[before]);
        (low, self.starts.get(band).map(|&next| Bytes::new(next.get() - 1)))
    }
}
