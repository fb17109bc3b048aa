//! The windowed maximum of Kathleen Nichols, which keeps three values.

/// The largest value of the latest rounds: the best three in order of age, each at most as large as the one
/// before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Largest<T>([(u32, T); 3]);

impl<T: Copy + PartialOrd> Largest<T> {
    pub(super) fn new(value: T) -> Self {
        Largest([(0, value); 3])
    }

    #[inline]
    pub(super) fn get(&self) -> T {
        self.0[0].1
    }

    /// Adds a value measured in this round, and forgets values that are older than this number of `rounds`.
    #[inline]
    pub(super) fn add(&mut self, round: u32, value: T, rounds: u32) {
        let new = (round, value);
        let [first, second, third] = &mut self.0;
        if value >= first.1 || round - third.0 > rounds {
            *self = Largest([new; 3]);
            return;
        }
        if value >= second.1 {
            (*second, *third) = (new, new);
        } else if value >= third.1 {
            *third = new;
        }
        let age = round - first.0;
        if age > rounds {
            (*first, *second, *third) = (*second, *third, new);
            if round - first.0 > rounds {
                (*first, *second) = (*second, *third);
            }
        } else if second.0 == first.0 && age > rounds / 4 {
            // A quarter of the time has passed without a second-best rate.
            (*second, *third) = (new, new);
        } else if third.0 == second.0 && age > rounds / 2 {
            *third = new;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The filter keeps the largest rate for ten rounds, and never returns less than the largest of the latest
    /// two rounds or more than the largest of the latest eleven.
    #[test]
    fn the_largest_rate_is_forgotten_after_ten_rounds() {
        let mut largest = Largest::new(0);
        largest.add(1, 100, 10);
        (2..=11).for_each(|round| largest.add(round, 50, 10));
        assert_eq!(largest.get(), 100);
        largest.add(12, 50, 10);
        assert_eq!(largest.get(), 50);
        let mut draws = aqmlab_random::Stream::new(7, "rates");
        let mut largest = Largest::new(0);
        let mut rates = std::vec::Vec::new();
        for round in 0..500_u32 {
            rates.push(draws.below(1000));
            largest.add(round, rates[round as usize], 10);
            let of = |rounds: usize| *rates[rates.len().saturating_sub(rounds)..].iter().max().expect("some");
            assert!((of(2)..=of(11)).contains(&largest.get()), "round {round}");
        }
    }
}
