//! A value that changes at given instants.

use alloc::sync::Arc;

use aqmlab_units::{Instant, Span};

/// A value as a function of time: steps, each an instant and the value from then on, which may be repeated.
///
/// It is asked for at later and later instants, so that finding a value takes no search.
#[derive(Clone, PartialEq, Debug)]
pub struct Course<V> {
    steps: Arc<[(Span, V)]>,
    repeat: Option<Span>,
    /// The beginning of the present round.
    begin: Instant,
    /// The next step of this round.
    next: usize,
    value: V,
}

impl<V: Copy> Course<V> {
    /// Creates a course with these steps, which are repeated after `repeat`.
    ///
    /// # Panics
    /// If there is no step, the first is not at zero, they are not at later and later instants, or the last is not
    /// before `repeat`.
    pub fn new(steps: Arc<[(Span, V)]>, repeat: Option<Span>) -> Self {
        assert!(steps.first().is_some_and(|(at, _)| at.is_zero()), "the first step is at zero");
        let last = steps[steps.len() - 1].0;
        let rises = steps.windows(2).all(|pair| pair[0].0 < pair[1].0);
        assert!(rises && repeat.is_none_or(|repeat| last < repeat), "steps are in order");
        let value = steps[0].1;
        Course { steps, repeat, begin: Instant::ZERO, next: 1, value }
    }

    /// Returns the value at `now`, which must not go back between calls.
    #[inline]
    pub fn at(&mut self, now: Instant) -> V {
        while let Some((at, value)) = self.due(now) {
            if self.next == self.steps.len() {
                (self.begin, self.next) = (at, 0);
            }
            self.next += 1;
            self.value = value;
        }
        self.value
    }

    /// Returns the next step, if it has come by `now`.
    fn due(&self, now: Instant) -> Option<(Instant, V)> {
        let (at, value) = match self.steps.get(self.next) {
            Some((at, value)) => (self.begin + *at, *value),
            None => (self.begin + self.repeat?, self.steps[0].1),
        };
        (at <= now).then_some((at, value))
    }

    /// Iterates over the values.
    pub fn values(&self) -> impl Iterator<Item = V> {
        self.steps.iter().map(|(_, value)| *value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_hold_from_their_instant_on_and_come_again() {
        let steps = [(Span::ns(0), 'a'), (Span::ns(3), 'b'), (Span::ns(7), 'c')];
        let mut once = Course::new(steps.into(), None);
        let mut again = Course::new(steps.into(), Some(Span::ns(10)));
        for now in 0..1000 {
            let value = |now| match now {
                0..3 => 'a',
                3..7 => 'b',
                _ => 'c',
            };
            assert_eq!(once.at(Instant::from_ns(now)), value(now));
            assert_eq!(again.at(Instant::from_ns(now)), value(now % 10));
        }
        let mut late = Course::new(steps.into(), Some(Span::ns(10)));
        assert_eq!(late.at(Instant::from_ns(123_456_783)), 'b');
    }
}
