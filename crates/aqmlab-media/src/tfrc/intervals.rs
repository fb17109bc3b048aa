//! Loss events and the average loss interval: RFC 5348, section 5.

use alloc::collections::{BTreeSet, VecDeque};

use aqmlab_units::{Instant, Span};

/// Number of loss intervals in the average, apart from the current one (`n` in the RFC).
const INTERVALS: usize = 8;
/// Number of packets with higher numbers whose arrival shows that a packet is lost (`NDUPACK`).
const NDUPACK: usize = 3;

/// The weights of the loss intervals, the most recent one first (RFC 5348, section 5.4).
pub(super) const WEIGHTS: [f64; INTERVALS] = [1.0, 1.0, 1.0, 1.0, 0.8, 0.6, 0.4, 0.2];

/// Returns the average of loss intervals, the current one first (RFC 5348, section 5.4). The current interval counts
/// only if it makes the average longer. Returns `None` if there is no interval apart from the current one.
pub(super) fn average(intervals: &[f64]) -> Option<f64> {
    let k = intervals.len().checked_sub(1).filter(|&k| k > 0)?.min(INTERVALS);
    let weighted = |from: usize| (0..k).map(|i| intervals[from + i] * WEIGHTS[i]).sum::<f64>();
    let weights: f64 = WEIGHTS[..k].iter().sum();
    Some(f64::max(weighted(0), weighted(1)) / weights)
}

/// A receiver's memory of arrivals, losses and loss events. Packets are numbered from 0.
#[derive(Clone, Debug, Default)]
pub struct LossHistory {
    /// The next number expected if nothing were lost or late: one above the highest that has arrived.
    next: u64,
    /// The last arrivals in front of a hole, with their numbers, in ascending order; the last one is the highest.
    last: Option<(u64, Instant)>,
    /// Holes: numbers that have not arrived, each with the arrivals around its gap.
    holes: VecDeque<Hole>,
    /// The first number of each loss interval, the most recent first, and when its loss event began.
    events: VecDeque<(u64, Instant)>,
    /// The lengths of closed intervals, the most recent first.
    closed: VecDeque<f64>,
}

#[derive(Clone, Debug)]
struct Hole {
    number: u64,
    /// Number and arrival of the packet before the gap, and of the packet after it.
    before: (u64, Instant),
    after: (u64, Instant),
    /// Higher numbers that have arrived.
    above: BTreeSet<u64>,
}

impl LossHistory {
    /// Notes the arrival of a packet, which may carry a congestion mark. `rtt` is the sender's estimate at the time of
    /// the packet. `first_interval` returns the length of the interval before the first loss event (section 6.3.1).
    /// Returns whether a loss event began.
    pub fn arrived(
        &mut self,
        now: Instant,
        number: u64,
        marked: bool,
        rtt: Span,
        first_interval: impl Fn() -> f64,
    ) -> bool {
        let mut began = false;
        if number < self.next {
            self.holes.retain(|hole| hole.number != number);
        }
        for hole in &mut self.holes {
            if number > hole.number {
                hole.above.insert(number);
            }
        }
        if number >= self.next {
            // What comes before the first arrival was sent before it; its instants are taken to be the same.
            let before = self.last.unwrap_or((number.min(self.next), now));
            for missing in self.next..number {
                let above = BTreeSet::from([number]);
                self.holes.push_back(Hole { number: missing, before, after: (number, now), above });
            }
            self.next = number + 1;
            self.last = Some((number, now));
        }
        while self.holes.front().is_some_and(|hole| hole.above.len() >= NDUPACK) {
            if let Some(lost) = self.holes.pop_front() {
                began |= self.lost(lost.number, lost.instant(), rtt, &first_interval);
            }
        }
        if marked {
            began |= self.lost(number, now, rtt, &first_interval);
        }
        began
    }

    /// Notes the loss of a packet, or a mark, at `at`. Losses within a round-trip time of the first one belong to the
    /// same loss event (section 5.2).
    fn lost(&mut self, number: u64, at: Instant, rtt: Span, first_interval: &impl Fn() -> f64) -> bool {
        match self.events.front() {
            Some(&(_, began)) if at <= began + rtt => return false,
            Some(&(first, _)) => self.closed.push_front(number.saturating_sub(first) as f64),
            None => self.closed.push_front(first_interval()),
        }
        self.closed.truncate(INTERVALS);
        self.events.push_front((number, at));
        self.events.truncate(1);
        true
    }

    /// Returns the loss event rate `p`, 0 before the first loss event.
    pub fn loss_event_rate(&self) -> f64 {
        let Some(&(first, _)) = self.events.front() else { return 0.0 };
        let mut intervals = [0.0; INTERVALS + 1];
        intervals[0] = self.next.saturating_sub(first) as f64;
        for (place, &closed) in intervals[1..].iter_mut().zip(&self.closed) {
            *place = closed;
        }
        let mean = average(&intervals[..=self.closed.len()]);
        mean.map_or(0.0, |mean| 1.0 / f64::max(mean, 1.0))
    }
}

impl Hole {
    /// Returns when the packet would have arrived, by linear interpolation over the gap (section 5.2).
    fn instant(&self) -> Instant {
        let ((low, early), (high, late)) = (self.before, self.after);
        let gap = late.saturating_since(early).as_ns();
        let share =
            u128::from(gap) * u128::from(self.number - low.min(self.number)) / u128::from(high - low).max(1);
        early + Span::ns(share as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Span::ms(ms)
    }

    /// The arithmetic of section 5.4 by hand. Intervals 10 (current), 100, 200, 50, 400, 80, 60, 300, 120:
    /// I_tot0 = 10 + 100 + 200 + 50 + 320 + 48 + 24 + 60 = 812, I_tot1 = 100 + 200 + 50 + 400 + 64 + 36 + 120 + 24 =
    /// 994, W_tot = 6.
    #[test]
    fn the_average_is_that_of_the_rfc() {
        let mut intervals = [10.0, 100.0, 200.0, 50.0, 400.0, 80.0, 60.0, 300.0, 120.0];
        assert!((average(&intervals).unwrap() - 994.0 / 6.0).abs() < 1e-12);
        // A long current interval counts: I_tot0 = 1802.
        intervals[0] = 1000.0;
        assert!((average(&intervals).unwrap() - 1802.0 / 6.0).abs() < 1e-12);
        // With two closed intervals: max(40 + 100, 100 + 200) / 2.
        assert_eq!(average(&[40.0, 100.0, 200.0]), Some(150.0));
        assert_eq!(average(&[40.0]), None);
    }

    /// The formula of section 5.4 for n = 8: 1 for i < n/2, then 1 - (i - (n/2 - 1)) / (n/2 + 1).
    #[test]
    fn the_weights_are_those_of_the_formula() {
        for (i, weight) in WEIGHTS.iter().enumerate() {
            let formula = if i < 4 { 1.0 } else { 1.0 - (i as f64 - 3.0) / 5.0 };
            assert!((weight - formula).abs() < 1e-12);
        }
    }

    #[test]
    fn three_later_arrivals_show_a_loss_and_a_late_packet_none() {
        let mut history = LossHistory::default();
        let mut arrive = |ms, number| history.arrived(at(ms), number, false, Span::ms(100), || 50.0);
        // Packet 2 is late and packet 5 is lost.
        let began: [bool; 9] = [(0, 0), (1, 1), (3, 3), (4, 4), (5, 2), (6, 6), (7, 7), (8, 8), (9, 9)]
            .map(|(ms, n)| arrive(ms, n));
        assert_eq!(began, [false, false, false, false, false, false, false, true, false]);
        // The current interval is that of packets 5 to 9; the first one was given as 50.
        assert_eq!(history.loss_event_rate(), 1.0 / 50.0);
    }

    /// Packets leave 10 ms apart; numbers 100, 105, 130 and 200 are lost. With a round-trip time of 100 ms, 105 belongs
    /// to the event of 100, while 130 and 200 begin events: intervals 20, 30 and 70.
    #[test]
    fn losses_within_a_round_trip_are_one_event() {
        let mut history = LossHistory::default();
        let mut events = 0;
        for number in (0..220).filter(|n| ![100, 105, 130, 200].contains(n)) {
            events += u32::from(history.arrived(at(10 * number), number, false, Span::ms(100), || 20.0));
        }
        assert_eq!(events, 3);
        // Current 20, closed 70, 30, 20: I_tot0 = 20 + 70 + 30, I_tot1 = 70 + 30 + 20, W_tot = 3.
        assert!((history.loss_event_rate() - 3.0 / 120.0).abs() < 1e-12);
    }

    /// A mark is a loss event at the arrival of the marked packet (section 5.2).
    #[test]
    fn a_mark_counts_as_a_loss() {
        let mut history = LossHistory::default();
        for number in 0..10 {
            assert_eq!(history.arrived(at(number), number, number == 7, Span::ms(100), || 8.0), number == 7);
        }
        assert_eq!(history.loss_event_rate(), 1.0 / 8.0);
    }

    #[test]
    fn a_loss_lies_on_the_line_between_the_arrivals_around_it() {
        let hole = Hole { number: 12, before: (10, at(100)), after: (14, at(180)), above: BTreeSet::new() };
        assert_eq!(hole.instant(), at(140));
    }
}
