//! CoDel (RFC 8289). If packets have waited for at least `target` throughout an `interval`, there is a
//! standing queue. The law then drops or marks one packet, and further ones at intervals that are inversely
//! proportional to the square root of their count.

use alloc::sync::Arc;

use aqmlab_units::{Bytes, Instant, Span};

/// How times and square roots are computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Arithmetic {
    /// In nanoseconds, with exact square roots.
    Exact,
    /// Like Linux: times in whole units of 1024 ns; the inverse square root of the count as a 16-bit
    /// fraction, refined by one step of Newton's method for each chosen packet. The first packet is chosen
    /// only after more than an interval of long waits, not after exactly one.
    Linux,
}

/// The unit of Linux's times.
const LINUX_UNIT_NS: u64 = 1024;

/// Parameters of the law.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CodelParams {
    /// The acceptable waiting time, `TARGET`.
    pub target: Span,
    /// The time within which the waiting time falls below the target unless the queue is standing,
    /// `INTERVAL`.
    pub interval: Span,
    /// Backlog behind the leaving packet up to which no packet is chosen, `maxpacket_`.
    pub mtu: Bytes,
    /// How times and square roots are computed.
    pub arithmetic: Arithmetic,
}

/// The law's state. Copies share their parameters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CodelLaw {
    params: Arc<CodelParams>,
    /// The instant at which sojourn times will have been at or above the target for a whole interval; `None`
    /// after a sojourn time below the target, a backlog of at most `mtu` bytes, or an empty queue.
    first_above: Option<Instant>,
    /// The instant at which the next packet is due to be chosen; outside the dropping state, the
    /// instant at which it would have been due.
    drop_next: Instant,
    /// The count with which this dropping state began, plus the number of packets chosen after
    /// the first.
    count: u64,
    /// `count` at the beginning of the dropping state.
    last_count: u64,
    /// The instant at which the packet that was chosen last was due, unless it was the first.
    was_due: Instant,
    /// Linux: the inverse square root of the count, times 2^16.
    inverse_root: u16,
    /// Whether the queue counts as standing.
    dropping: bool,
    /// The value that `after` takes if the packet that was chosen last is dropped.
    once_dropped: After,
    after: After,
}

/// Fate of the previous packet that left at the same instant.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum After {
    /// There was no such packet, or it was sent.
    Sent,
    /// It was the first drop of a dropping state.
    FirstDrop,
    /// It was a later drop of a dropping state.
    Drop,
}

impl CodelLaw {
    /// Creates the law for an empty queue.
    pub fn new(mut params: CodelParams) -> Self {
        if matches!(params.arithmetic, Arithmetic::Linux) {
            params.target = Span::ns(whole_units(params.target.as_ns()));
            params.interval = Span::ns(whole_units(params.interval.as_ns()));
        }
        CodelLaw {
            params: Arc::new(params),
            first_above: None,
            drop_next: Instant::ZERO,
            count: 0,
            last_count: 0,
            was_due: Instant::ZERO,
            inverse_root: u16::MAX,
            dropping: false,
            once_dropped: After::Sent,
            after: After::Sent,
        }
    }

    /// Decides whether to signal congestion (by a mark or a drop) with a packet that waited for `sojourn` and
    /// whose departure leaves `left` bytes in the queue. After a drop ([`CodelLaw::on_drop`]), the next
    /// packet is judged at the same instant.
    #[inline]
    pub fn on_departure(&mut self, now: Instant, sojourn: Span, left: Bytes) -> bool {
        let (now, sojourn) = match self.params.arithmetic {
            Arithmetic::Exact => (now, sojourn),
            Arithmetic::Linux => {
                let arrived = now.as_ns().saturating_sub(sojourn.as_ns());
                let units = whole_units(now.as_ns());
                (Instant::from_ns(units), Span::ns(units - whole_units(arrived)))
            }
        };
        let standing = self.is_standing(now, sojourn, left);
        if self.after != After::Sent {
            return self.decide_after_drop(now, standing);
        }
        if self.dropping {
            self.dropping = standing;
            return standing && self.is_due(now);
        }
        if standing {
            self.enter(now);
        }
        standing
    }

    /// Decides on the packet behind one that was dropped at the same instant.
    #[cold]
    fn decide_after_drop(&mut self, now: Instant, standing: bool) -> bool {
        if core::mem::replace(&mut self.after, After::Sent) == After::FirstDrop {
            // RFC 8289, dequeue routine: the packet after the first drop always leaves.
            return false;
        }
        self.dropping = standing;
        if !standing {
            // The packet that ends the state schedules no further drop.
            self.drop_next = self.was_due;
        }
        standing && self.is_due(now)
    }

    /// Records that the packet chosen last was dropped, not marked.
    pub const fn on_drop(&mut self) {
        self.after = self.once_dropped;
    }

    /// Raises the count by one, for a packet that was lost for lack of room.
    pub const fn on_overflow(&mut self) {
        self.count += 1;
    }

    /// Returns whether a sojourn time exceeds `threshold`.
    pub fn exceeds(&self, now: Instant, sojourn: Span, threshold: Span) -> bool {
        let sojourn_ns = match self.params.arithmetic {
            Arithmetic::Exact => return sojourn > threshold,
            Arithmetic::Linux => {
                let arrived = now.as_ns().saturating_sub(sojourn.as_ns());
                whole_units(now.as_ns()) - whole_units(arrived)
            }
        };
        sojourn_ns > whole_units(threshold.as_ns())
    }

    /// Returns whether the law of an empty queue has forgotten its last dropping state: none is in progress, and
    /// the next one will start with a count of one.
    pub fn is_as_new(&self, now: Instant) -> bool {
        let recent = now.saturating_since(self.drop_next) < self.params.interval.saturating_mul(16);
        !self.dropping
            && self.first_above.is_none()
            && matches!(self.after, After::Sent)
            && (self.count - self.last_count <= 1 || !recent)
    }

    /// Records that the link polled the empty queue.
    pub fn on_empty(&mut self) {
        self.first_above = None;
        match core::mem::replace(&mut self.after, After::Sent) {
            After::FirstDrop => {}
            After::Sent => self.dropping = false,
            After::Drop => (self.dropping, self.drop_next) = (false, self.was_due),
        }
    }

    /// RFC 8289, dodequeue routine, `ok_to_drop`: returns whether sojourn times have been at or above the
    /// target for a whole interval.
    #[inline]
    fn is_standing(&mut self, now: Instant, sojourn: Span, left: Bytes) -> bool {
        if sojourn < self.params.target || left <= self.params.mtu {
            self.first_above = None;
            return false;
        }
        match self.first_above {
            Some(begin) => match self.params.arithmetic {
                Arithmetic::Exact => now >= begin,
                Arithmetic::Linux => now > begin,
            },
            None => {
                self.first_above = Some(now.saturating_add(self.params.interval));
                false
            }
        }
    }

    /// Enters a dropping state. If the last dropping state ended recently, the new one continues at the rate
    /// that the last one had reached.
    #[cold]
    fn enter(&mut self, now: Instant) {
        let gained = self.count - self.last_count;
        let recent = now.saturating_since(self.drop_next) < self.params.interval.saturating_mul(16);
        if gained > 1 && recent {
            self.count = gained;
            self.improve_root();
        } else {
            self.count = 1;
            self.inverse_root = u16::MAX;
        }
        self.last_count = self.count;
        self.dropping = true;
        self.drop_next = self.after_interval(now);
        self.once_dropped = After::FirstDrop;
    }

    /// Returns whether the next packet of the dropping state is due to be chosen and, if so, schedules the
    /// one after it.
    #[inline]
    fn is_due(&mut self, now: Instant) -> bool {
        let due = now >= self.drop_next;
        if due {
            self.schedule();
        }
        due
    }

    /// Schedules the choice after the one that is due.
    #[cold]
    fn schedule(&mut self) {
        self.was_due = self.drop_next;
        self.count += 1;
        self.improve_root();
        self.drop_next = self.after_interval(self.was_due);
        self.once_dropped = After::Drop;
    }

    /// RFC 8289, `control_law`: returns `from` plus the interval divided by the square root of the
    /// count. The quotient is rounded down to whole nanoseconds or to Linux's unit.
    fn after_interval(&self, from: Instant) -> Instant {
        let interval = self.params.interval.as_ns();
        let ns = match self.params.arithmetic {
            Arithmetic::Exact => (interval as f64 / libm::sqrt(self.count as f64)) as u64,
            Arithmetic::Linux => whole_units((interval * u64::from(self.inverse_root)) >> 16),
        };
        from.saturating_add(Span::ns(ns))
    }

    /// Improves the inverse square root of the count by one step of Newton's method,
    /// x (3 - count x^2) / 2, in 32-bit fixed-point arithmetic, as Linux does.
    fn improve_root(&mut self) {
        let x = u64::from(self.inverse_root) << 16;
        let square = (x * x) >> 32;
        // The factor is divided by four first, so that the product has at most 64 bits. Where the count has
        // grown by more than the root can follow (FQ-CoDel's overflows), the difference is negative, and
        // Linux's arithmetic wraps.
        let factor = (3u64 << 32).wrapping_sub(self.count.wrapping_mul(square)) >> 2;
        let next = factor.wrapping_mul(x) >> 31;
        self.inverse_root = (next >> 16) as u16;
    }

    /// Returns whether the law is in the dropping state.
    pub const fn is_dropping(&self) -> bool {
        self.dropping
    }

    /// In the dropping state, returns the count with which it began, plus the number of packets chosen after
    /// the first; otherwise, returns the count at the end of the last dropping state.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Returns the instant at which the next packet is due to be chosen; outside the dropping
    /// state, the instant at which it would have been due.
    pub const fn drop_next(&self) -> Instant {
        self.drop_next
    }
}

/// Returns a time in nanoseconds, rounded down to Linux's unit.
const fn whole_units(ns: u64) -> u64 {
    ns / LINUX_UNIT_NS * LINUX_UNIT_NS
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    const PARAMS: CodelParams = CodelParams {
        target: Span::ms(5),
        interval: Span::ms(100),
        mtu: Bytes::new(1500),
        arithmetic: Arithmetic::Exact,
    };
    const LONG: Span = Span::ms(6);
    const LEFT: Bytes = Bytes::new(100_000);

    /// Sends a packet every 10 us from `from` to `to` and returns the times of the drops in microseconds.
    fn drops(law: &mut CodelLaw, from: u64, to: u64) -> Vec<u64> {
        let mut found = Vec::new();
        for us in (from..to).step_by(10) {
            let now = Instant::ZERO + Span::us(us);
            while law.on_departure(now, LONG, LEFT) {
                law.on_drop();
                found.push(us);
            }
        }
        found
    }

    /// Worked out by hand: 100 ms until the first drop, then gaps of 100 ms divided by the square roots of
    /// 1, 2, 3, 4, so drops at 0.1, 0.2, 0.27071, 0.32845, 0.37845 s.
    #[test]
    fn drops_come_at_distances_that_shrink_with_the_square_root_of_their_count() {
        let mut law = CodelLaw::new(PARAMS);
        assert_eq!(drops(&mut law, 0, 400_000), [100_000, 200_000, 270_720, 328_450, 378_450]);
        assert_eq!((law.count(), law.is_dropping()), (5, true));
        // 100 ms / sqrt 5 = 44.721 ms; the instant itself is not a multiple of 10 us.
        assert_eq!(law.drop_next().as_ns() / 1000, 423_167);
    }

    #[test]
    fn the_first_drop_comes_an_interval_after_the_first_long_wait_and_a_short_wait_begins_anew() {
        let mut law = CodelLaw::new(PARAMS);
        assert!(drops(&mut law, 0, 100_000).is_empty());
        assert!(!law.on_departure(Instant::from_ns(99_995_000), Span::ns(4_999_999), LEFT));
        assert_eq!(drops(&mut law, 100_000, 210_000), [200_000]);
    }

    /// A sojourn of exactly `target` is too long, and one byte more than `mtu` counts as a queue.
    #[test]
    fn edges_are_those_of_the_rfc() {
        for (sojourn, left, dropped) in
            [(5_000_000, 1501, true), (4_999_999, 1501, false), (5_000_000, 1500, false)]
        {
            let mut law = CodelLaw::new(PARAMS);
            let (sojourn, left) = (Span::ns(sojourn), Bytes::new(left));
            assert!(!law.on_departure(Instant::ZERO, sojourn, left));
            assert!(!law.on_departure(Instant::from_ns(99_999_999), sojourn, left));
            assert_eq!(law.on_departure(Instant::from_ns(100_000_000), sojourn, left), dropped);
        }
    }

    /// A dropping state that begins within 16 intervals of the end of the previous one starts with
    /// a count equal to the amount by which the count rose during the previous one.
    #[test]
    fn a_new_state_goes_on_from_the_rate_of_one_that_ended_not_long_ago() {
        for (pause_ms, count) in [(10, 4), (1400, 4), (1600, 1)] {
            let mut law = CodelLaw::new(PARAMS);
            assert_eq!(drops(&mut law, 0, 400_000).len(), 5);
            assert!(!law.on_departure(Instant::ZERO + Span::us(400_000), Span::ZERO, LEFT));
            assert!(!law.is_dropping());
            let again = 400_000 + pause_ms * 1000;
            let found = drops(&mut law, again, again + 100_010);
            assert_eq!((found, law.count()), (Vec::from([again + 100_000]), count), "{pause_ms} ms");
        }
    }

    #[test]
    fn a_packet_that_was_due_earlier_is_dropped_with_those_due_since() {
        let mut law = CodelLaw::new(PARAMS);
        assert_eq!(drops(&mut law, 0, 150_000), [100_000]);
        // Drops due at 200, 270.7, 328.4 and 378.4 ms all happen at the next departure.
        assert_eq!(drops(&mut law, 390_000, 390_010), [390_000; 4]);
    }

    /// If a drop leaves the queue empty, the dropping state ends, unless this was its first drop.
    #[test]
    fn an_empty_queue_ends_the_state_but_not_at_its_first_drop() {
        let mut law = CodelLaw::new(PARAMS);
        drops(&mut law, 0, 90_000);
        assert!(law.on_departure(Instant::ZERO + Span::ms(100), LONG, LEFT));
        law.on_drop();
        law.on_empty();
        assert!(law.is_dropping());
        assert_eq!(law.drop_next(), Instant::ZERO + Span::ms(200));
        law.on_empty();
        assert!(!law.is_dropping());
        drops(&mut law, 100_000, 390_000);
        let due = law.drop_next();
        assert!(law.is_dropping() && law.on_departure(due, LONG, LEFT));
        law.on_drop();
        law.on_empty();
        assert_eq!((law.is_dropping(), law.drop_next()), (false, due));
    }

    /// Like a drop, a mark determines when the next packet is chosen; but the packet behind the marked one is
    /// judged only when its own turn comes.
    #[test]
    fn a_mark_counts_like_a_drop() {
        let mut law = CodelLaw::new(PARAMS);
        let marks: Vec<u64> = (0..400_000)
            .step_by(10)
            .filter(|&us| law.on_departure(Instant::ZERO + Span::us(us), LONG, LEFT))
            .collect();
        assert_eq!(marks, [100_000, 200_000, 270_720, 328_450, 378_450]);
    }
}
