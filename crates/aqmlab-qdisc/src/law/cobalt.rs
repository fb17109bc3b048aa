//! COBALT: CoDel and BLUE combined, as CAKE uses them (Høiland-Jørgensen, Täht and Morton 2018, "Piece of
//! CAKE"; Palmei et al. 2019, "Design and Evaluation of COBALT Queue Discipline"). CoDel's part signals ever
//! more often while packets wait longer than the target, and forgets at the same pace once they do not. BLUE's
//! part drops at random; its probability rises while the buffer overflows and falls while the queue is empty.

use aqmlab_units::{Instant, Span};

use super::Arithmetic;

/// Parameters of the law.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CobaltParams {
    /// The acceptable waiting time; also the shortest time between two changes of BLUE's probability.
    pub target: Span,
    /// The time from the first long wait to the first signal.
    pub interval: Span,
    /// The transmission time of a packet of the largest size; zero if waits are compared with the target alone.
    pub mtu_time: Span,
    /// Added to BLUE's probability when the buffer overflows.
    pub increment: f64,
    /// Subtracted from BLUE's probability when the queue is empty.
    pub decrement: f64,
    /// A wait above which BLUE's probability rises as at an overflow.
    pub blue_threshold: Option<Span>,
    /// How square roots are computed.
    pub arithmetic: Arithmetic,
}

/// The law's decision on a leaving packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CobaltChoice {
    /// It passes.
    Pass,
    /// It passes with a mark.
    Mark,
    /// It is dropped.
    Drop,
}

/// The law's state.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CobaltLaw {
    params: CobaltParams,
    /// Signals sent, minus those forgotten.
    count: u32,
    dropping: bool,
    /// In the dropping state, the instant of the next signal; otherwise, the instant at which the count falls
    /// by one or, if it is zero, until which the law is not at rest.
    drop_next: Instant,
    /// BLUE's probability.
    p_drop: f64,
    /// The last change of BLUE's probability.
    blue_changed: Instant,
    /// Linux: the inverse square root of the count, times 2^32.
    inverse_root: u32,
}

/// Number of counts for which Linux has computed the inverse square root with more steps.
const PREPARED: usize = 16;

/// The inverse square roots of small counts, times 2^32: four steps of Newton's method, from the value before.
const PREPARED_ROOTS: [u32; PREPARED] = {
    let (mut roots, mut count) = ([u32::MAX; PREPARED], 1);
    while count < PREPARED {
        let (mut root, mut step) = (roots[count - 1], 0);
        while step < 4 {
            root = improved(root, count as u32);
            step += 1;
        }
        roots[count] = root;
        count += 1;
    }
    roots
};

/// Returns the inverse square root of `count` after one step of Newton's method, x (3 - count x^2) / 2, in
/// fixed-point arithmetic with 32 fractional bits.
const fn improved(root: u32, count: u32) -> u32 {
    let x = root as u64;
    let square = (x * x) >> 32;
    // The factor is divided by four first, so that the product has at most 64 bits.
    let factor = (3u64 << 32).wrapping_sub(count as u64 * square) >> 2;
    (factor.wrapping_mul(x) >> 31) as u32
}

impl CobaltLaw {
    /// Creates the law for an empty queue.
    pub const fn new(params: CobaltParams) -> Self {
        CobaltLaw {
            params,
            count: 0,
            dropping: false,
            drop_next: Instant::ZERO,
            p_drop: 0.0,
            blue_changed: Instant::ZERO,
            inverse_root: 0,
        }
    }

    /// Changes the parameters; what is scheduled remains.
    pub const fn set_params(&mut self, params: CobaltParams) {
        self.params = params;
    }

    /// Decides on a packet that is about to leave after waiting for `sojourn`. A wait counts as long only if it
    /// exceeds the target and the transmission times of four packets and, for each of the `bulk_flows`, of two.
    pub fn on_departure(
        &mut self,
        now: Instant,
        sojourn: Span,
        bulk_flows: u64,
        can_mark: bool,
        draw: impl FnOnce() -> f64,
    ) -> CobaltChoice {
        let p = self.params;
        let packets = |n| p.mtu_time.saturating_mul(n);
        let over = sojourn > p.target && sojourn > packets(2 * bulk_flows) && sojourn > packets(4);
        let mut due = self.is_due(now);
        let mut passed = now > self.drop_next;
        if over && !self.dropping {
            self.drop_next = self.after_interval(now);
        }
        if over && self.count == 0 {
            self.count = 1;
        }
        self.dropping = over;
        let signals = due && over;
        if signals {
            self.count = self.count.saturating_add(1);
            self.reschedule();
            passed = now > self.drop_next;
        } else {
            // At most as many steps as signals have been sent.
            while due {
                self.forget_one();
                due = self.is_due(now);
                passed = now > self.drop_next;
            }
        }
        if p.blue_threshold.is_some_and(|above| sojourn > above) {
            self.raise(now);
        }
        // BLUE drops ECN-capable packets too: it acts on senders that ignore the other signals.
        let hit = self.p_drop > 0.0 && draw() < self.p_drop;
        let choice = match (hit || (signals && !can_mark), signals) {
            (true, _) => CobaltChoice::Drop,
            (_, true) => CobaltChoice::Mark,
            _ => CobaltChoice::Pass,
        };
        if self.count == 0 {
            self.drop_next = now.saturating_add(p.interval);
        } else if passed && choice != CobaltChoice::Drop {
            // The instant that has passed may be one from before this dropping state: then the first signal of
            // the state is due at once, because the queue has long been without one.
            self.drop_next = now;
        }
        choice
    }

    /// Records that a packet was lost for lack of room: the law is in its dropping state, and BLUE's probability
    /// rises.
    pub fn on_overflow(&mut self, now: Instant) {
        self.raise(now);
        self.dropping = true;
        self.drop_next = now;
        self.count = self.count.max(1);
    }

    /// Records that the queue was polled and was empty: BLUE's probability falls, and one signal is forgotten if
    /// it is time.
    pub fn on_empty(&mut self, now: Instant) {
        if self.p_drop > 0.0 && self.may_change(now) {
            self.p_drop = (self.p_drop - self.params.decrement).max(0.0);
            self.blue_changed = now;
        }
        self.dropping = false;
        if self.is_due(now) {
            self.forget_one();
        }
    }

    /// Returns whether the law has forgotten everything that would affect later decisions.
    pub fn is_at_rest(&self, now: Instant) -> bool {
        self.p_drop == 0.0 && self.count == 0 && now >= self.drop_next
    }

    fn may_change(&self, now: Instant) -> bool {
        now.saturating_since(self.blue_changed) > self.params.target
    }

    fn raise(&mut self, now: Instant) {
        if self.may_change(now) {
            self.p_drop = (self.p_drop + self.params.increment).min(1.0);
            self.blue_changed = now;
        }
    }

    fn is_due(&self, now: Instant) -> bool {
        self.count > 0 && now >= self.drop_next
    }

    fn forget_one(&mut self) {
        self.count -= 1;
        self.reschedule();
    }

    /// Moves `drop_next` by the interval that belongs to a new count.
    fn reschedule(&mut self) {
        self.inverse_root = match PREPARED_ROOTS.get(self.count as usize) {
            Some(root) => *root,
            None => improved(self.inverse_root, self.count),
        };
        self.drop_next = self.after_interval(self.drop_next);
    }

    /// Returns `from` plus the interval divided by the square root of the count (of one, if the count is zero),
    /// rounded down to nanoseconds.
    fn after_interval(&self, from: Instant) -> Instant {
        let interval = self.params.interval.as_ns();
        let ns = match self.params.arithmetic {
            Arithmetic::Exact => (interval as f64 / libm::sqrt(f64::from(self.count.max(1)))) as u64,
            // Linux takes the interval modulo 2^32 ns here.
            Arithmetic::Linux => (u64::from(interval as u32) * u64::from(self.inverse_root)) >> 32,
        };
        from.saturating_add(Span::ns(ns))
    }

    /// Returns whether the law is in the dropping state.
    pub const fn is_dropping(&self) -> bool {
        self.dropping
    }

    /// Returns the number of signals sent, minus those forgotten.
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// Returns the instant of the next signal or, outside the dropping state, of the next change of the count.
    pub const fn drop_next(&self) -> Instant {
        self.drop_next
    }

    /// Returns BLUE's probability.
    pub const fn p_drop(&self) -> f64 {
        self.p_drop
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARAMS: CobaltParams = CobaltParams {
        target: Span::ms(5),
        interval: Span::ms(100),
        mtu_time: Span::ZERO,
        increment: 1.0 / 256.0,
        decrement: 1.0 / 4096.0,
        blue_threshold: None,
        arithmetic: Arithmetic::Exact,
    };

    const fn at(ms: u64) -> Instant {
        Instant::from_ns(ms * 1_000_000)
    }

    fn no_draw() -> f64 {
        panic!("BLUE's probability is zero")
    }

    /// Published constants: increments of 1/256 and decrements of 1/4096, at most one per target (5 ms).
    #[test]
    fn blue_changes_at_most_once_per_target() {
        for (second, p) in [(1006, 2.0 / 256.0), (1003, 1.0 / 256.0), (1005, 1.0 / 256.0)] {
            let mut law = CobaltLaw::new(PARAMS);
            law.on_overflow(at(1000));
            law.on_overflow(at(second));
            assert_eq!(law.p_drop(), p, "{second}");
        }
        let mut law = CobaltLaw::new(PARAMS);
        law.on_overflow(at(1000));
        (0..32).for_each(|n| law.on_empty(at(1006 + 6 * n)));
        assert_eq!((law.p_drop(), law.count()), (0.0, 0));
        assert!(law.is_at_rest(at(10_000)));
    }

    /// With waits that stay above the target, signals follow 100, 100 (1 + 1/sqrt 2), ... ms after the first
    /// long wait: the control law of CoDel, whose count here includes the state's beginning.
    #[test]
    fn signals_follow_the_inverse_square_root() {
        let mut law = CobaltLaw::new(PARAMS);
        law.on_departure(at(999), Span::ms(1), 0, true, no_draw);
        let mut signalled = alloc::vec::Vec::new();
        for us in (0..400_000).step_by(10) {
            let now = Instant::from_ns(1_000_000_000 + 1000 * us);
            if law.on_departure(now, Span::ms(6), 0, true, no_draw) == CobaltChoice::Mark {
                signalled.push(us as f64 / 1000.0);
            }
        }
        let mut expected = 100.0;
        for (n, ms) in signalled.iter().enumerate() {
            assert!((ms - expected).abs() < 0.02, "{n}: {ms} against {expected}");
            expected += 100.0 / libm::sqrt(n as f64 + 2.0);
        }
        assert_eq!(signalled.len(), 6);
    }

    /// The prepared roots are those of real numbers to a thousandth.
    #[test]
    fn roots_of_small_counts_are_exact_enough() {
        for (count, root) in PREPARED_ROOTS.iter().enumerate().skip(1) {
            let real = 4_294_967_296.0 / libm::sqrt(count as f64);
            assert!((f64::from(*root) - real).abs() < 1e-3 * real, "{count}: {root} against {real}");
        }
    }

    #[test]
    fn waits_shorter_than_some_transmissions_are_not_long() {
        let mut law = CobaltLaw::new(CobaltParams { mtu_time: Span::ms(2), ..PARAMS });
        law.on_departure(at(1000), Span::ms(8), 0, true, no_draw);
        assert!(!law.is_dropping());
        law.on_departure(at(1001), Span::us(8001), 2, true, no_draw);
        assert!(law.is_dropping());
        law.on_departure(at(1002), Span::ms(12), 6, true, no_draw);
        assert!(!law.is_dropping(), "twelve transmissions of 2 ms are 24 ms");
    }
}
