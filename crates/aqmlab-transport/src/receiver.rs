//! The receiving half: reassembly and the decision when to acknowledge (RFC 5681, section 4.2).

use alloc::boxed::Box;
use alloc::vec::Vec;

use aqmlab_units::Instant;

use crate::profile::Profile;

/// What one segment brought.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Arrival {
    /// Bytes now deliverable in order.
    pub delivered: u64,
    /// The FIN is reached: nothing follows.
    pub finished: bool,
    /// The segment brought nothing new.
    pub duplicate: bool,
}

/// Sequence space received, and the acknowledgments owed for it.
///
/// The application reads at once, so the window is always the whole buffer counted from the next byte, and
/// there is neither a zero window nor a window probe.
#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    /// Next offset expected.
    next: u64,
    /// What arrived beyond a hole; `None` when nothing is missing, so that an orderly flow allocates nothing.
    beyond: Option<Box<Beyond>>,
    /// When a delayed acknowledgment is due; [`Instant::FAR_FUTURE`] if none is.
    ack_deadline: Instant,
    /// The other side's first sequence number.
    initial: u32,
    /// In-order segments not yet acknowledged.
    unacked: u8,
    ack_now: bool,
    /// The FIN is among what `next` counts.
    finished: bool,
}

/// Data out of order.
#[derive(Clone, Debug, Default)]
struct Beyond {
    /// `[from, to)` in ascending order, neither overlapping nor touching.
    ranges: Vec<(u64, u64)>,
    /// Offset of the FIN, if it has arrived.
    fin: Option<u64>,
}

impl Receiver {
    pub(crate) const fn new() -> Self {
        Receiver {
            next: 0,
            beyond: None,
            ack_deadline: Instant::FAR_FUTURE,
            initial: 0,
            unacked: 0,
            ack_now: false,
            finished: false,
        }
    }

    /// The other side's SYN with sequence number `initial` has arrived.
    pub(crate) fn synchronise(&mut self, initial: u32) {
        self.initial = initial;
        self.next = 1;
    }

    /// The other side's first sequence number.
    pub(crate) fn initial(&self) -> u32 {
        self.initial
    }

    /// Next offset expected.
    #[inline]
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// A segment with offsets `[from, to)` and perhaps a FIN at `to`.
    pub(crate) fn on_segment(
        &mut self,
        now: Instant,
        from: u64,
        to: u64,
        fin: bool,
        profile: &Profile,
    ) -> Arrival {
        let end = to + u64::from(fin);
        if end <= self.next || from >= self.next + u64::from(profile.receive_window) {
            if profile.delay_repeated_ack && end == self.next && self.beyond.is_none() {
                self.delay_ack(now, profile);
            } else {
                self.ack_now = true; // RFC 9293, 3.10.7.4: an unacceptable segment is answered with an ACK
            }
            return Arrival { duplicate: true, ..Arrival::default() };
        }
        if from > self.next {
            let duplicate = self.keep(from, to, fin);
            self.ack_now = true; // RFC 5681, 4.2: at once when out of order
            return Arrival { duplicate, ..Arrival::default() };
        }
        let start = self.next;
        self.next = to.max(self.next);
        let filled = self.beyond.is_some();
        let finished = self.absorb() || fin;
        let delivered = self.next - start;
        self.next += u64::from(finished);
        self.finished |= finished;
        if filled || finished {
            self.ack_now = true; // RFC 5681, 4.2: at once when a hole is filled, in part or whole
        } else {
            self.delay_ack(now, profile);
        }
        Arrival { delivered, finished, duplicate: false }
    }

    /// RFC 5681, 4.2: every second segment, or after the delay.
    #[inline]
    fn delay_ack(&mut self, now: Instant, profile: &Profile) {
        self.unacked += 1;
        if u32::from(self.unacked) >= profile.ack_every {
            self.ack_now = true;
        } else if self.ack_deadline == Instant::FAR_FUTURE {
            self.ack_deadline = now.saturating_add(profile.delayed_ack);
        }
    }

    /// Stores a range beyond the hole. True if it was there already.
    fn keep(&mut self, from: u64, to: u64, fin: bool) -> bool {
        let beyond = self.beyond.get_or_insert_default();
        let news_of_fin = fin && beyond.fin.is_none();
        if fin {
            beyond.fin = Some(to);
        }
        if from == to {
            return !news_of_fin;
        }
        let first = beyond.ranges.partition_point(|r| r.1 < from);
        let last = beyond.ranges.partition_point(|r| r.0 <= to);
        if let Some(r) = beyond.ranges.get(first)
            && r.0 <= from
            && to <= r.1
        {
            return !news_of_fin;
        }
        let merged = beyond.ranges[first..last].iter().fold((from, to), |m, r| (m.0.min(r.0), m.1.max(r.1)));
        beyond.ranges.splice(first..last, [merged]);
        false
    }

    /// Advances over what was kept and now follows in order. True if that reaches the FIN.
    fn absorb(&mut self) -> bool {
        let Some(beyond) = &mut self.beyond else { return false };
        let reached = beyond.ranges.partition_point(|r| r.0 <= self.next);
        if let Some(last) = beyond.ranges[..reached].last() {
            self.next = self.next.max(last.1);
        }
        beyond.ranges.drain(..reached);
        let finished = beyond.fin == Some(self.next);
        if beyond.ranges.is_empty() && (finished || beyond.fin.is_none()) {
            self.beyond = None;
        }
        finished
    }

    /// Bytes delivered in order.
    pub(crate) fn delivered(&self) -> u64 {
        self.next.saturating_sub(1 + u64::from(self.finished))
    }

    /// The connection is over: nothing is owed any more.
    pub(crate) fn stop(&mut self) {
        self.ack_sent();
        self.beyond = None;
    }

    /// Acknowledge at once.
    pub(crate) fn ack_now(&mut self) {
        self.ack_now = true;
    }

    /// Is an acknowledgment due?
    #[inline]
    pub(crate) fn owes_ack(&self) -> bool {
        self.ack_now
    }

    /// A segment with an acknowledgment leaves.
    #[inline]
    pub(crate) fn ack_sent(&mut self) {
        self.ack_now = false;
        self.unacked = 0;
        self.ack_deadline = Instant::FAR_FUTURE;
    }

    /// When a delayed acknowledgment is due; [`Instant::FAR_FUTURE`] if none is.
    #[inline]
    pub(crate) fn deadline(&self) -> Instant {
        self.ack_deadline
    }

    /// The time `now` has come.
    pub(crate) fn on_timer(&mut self, now: Instant) {
        if now >= self.ack_deadline {
            self.ack_now = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_units::Span;

    use super::*;

    fn receiver() -> (Receiver, Profile) {
        let mut r = Receiver::new();
        r.synchronise(0);
        (r, Profile::named("rfc").expect("built in"))
    }

    #[test]
    fn ranges_merge_and_the_hole_releases_them_in_order() {
        let (mut r, p) = receiver();
        let t = Instant::ZERO;
        for (from, to) in [(301, 401), (101, 201), (501, 601), (201, 301)] {
            assert_eq!(r.on_segment(t, from, to, false, &p), Arrival::default());
        }
        assert_eq!(r.beyond.as_ref().expect("a hole").ranges, [(101, 401), (501, 601)]);
        assert!(r.on_segment(t, 120, 390, false, &p).duplicate);
        assert_eq!(r.on_segment(t, 1, 101, false, &p).delivered, 400);
        assert_eq!(r.on_segment(t, 601, 701, true, &p), Arrival::default());
        assert_eq!(
            r.on_segment(t, 381, 501, false, &p),
            Arrival { delivered: 300, finished: true, duplicate: false }
        );
        assert_eq!(r.next(), 702);
        assert!(r.beyond.is_none(), "nothing is kept once nothing is missing");
    }

    #[test]
    fn the_second_segment_is_acknowledged_at_once_and_the_first_after_the_delay() {
        let (mut r, p) = receiver();
        let t = Instant::ZERO + Span::ms(5);
        r.on_segment(t, 1, 101, false, &p);
        assert!(!r.owes_ack());
        assert_eq!(r.deadline(), t + p.delayed_ack);
        r.on_segment(t + Span::ms(1), 101, 201, false, &p);
        assert!(r.owes_ack());
        r.ack_sent();
        assert_eq!(r.deadline(), Instant::FAR_FUTURE);
        r.on_segment(t + Span::ms(2), 201, 301, false, &p);
        r.on_timer(t + Span::ms(2) + p.delayed_ack);
        assert!(r.owes_ack());
    }
}
