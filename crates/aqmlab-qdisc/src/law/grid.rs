//! Numbers on a grid, on which many equal steps are one.

/// A number of the grid `k 2^-60`. Sums on it are exact, so `n` equal steps end on the same number to the last
/// bit whether they are made one by one or at once: what a law that catches up needs. A law's value near 1 is
/// as fine here as an `f64`; rounding a step to the grid moves it by less than 5e-19.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Grid(i128);

const FRACTION_BITS: u32 = 60;
const UNIT: f64 = (1u64 << FRACTION_BITS) as f64;
/// Beyond this a number is held: 2^66, far above any price, and far enough from overflow.
const FAR: i128 = 1 << 126;

impl Grid {
    pub(super) const ZERO: Grid = Grid(0);
    pub(super) const ONE: Grid = Grid(1 << FRACTION_BITS);
    /// No number is greater.
    pub(super) const MOST: Grid = Grid(FAR);

    /// The number of the grid nearest to `x`, which is no NaN.
    pub(super) fn nearest(x: f64) -> Self {
        Grid((libm::rint(x * UNIT) as i128).clamp(-FAR, FAR))
    }

    /// `count` steps from here, held between `low` and `high` as if each step were.
    pub(super) fn stepped(self, step: Grid, count: u64, (low, high): (Grid, Grid)) -> Self {
        // Equal steps go one way: only the last can be the first to pass an end.
        Grid(self.0.saturating_add(step.0.saturating_mul(i128::from(count))).clamp(low.0, high.0))
    }

    /// As a float, rounded to the nearest.
    pub(super) fn value(self) -> f64 {
        self.0 as f64 / UNIT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_steps_at_once_end_where_they_end_one_by_one() {
        let ends = (Grid::ZERO, Grid::ONE);
        for step in [3e-6, -1.7e-9, 0.3, -0.9, 1e30, 1e-19] {
            let step = Grid::nearest(step);
            for count in [0, 1, 7, 1000] {
                let start = Grid::nearest(0.123_456_789);
                let single = (0..count).fold(start, |at, _| at.stepped(step, 1, ends));
                assert_eq!(start.stepped(step, count, ends), single);
            }
        }
    }

    #[test]
    fn no_number_of_steps_overflows() {
        let ends = (Grid::ZERO, Grid::MOST);
        let far = Grid::ZERO.stepped(Grid::nearest(f64::MAX), u64::MAX, ends);
        assert_eq!(far, Grid::MOST);
        assert_eq!(far.stepped(Grid::nearest(-f64::MAX), u64::MAX, ends), Grid::ZERO);
        assert_eq!(far.value(), 2f64.powi(66));
    }
}
