//! The receiving half: reassembly, and the decision of when to acknowledge (RFC 5681, section 4.2).

use aqmlab_units::{Instant, Span};

use crate::bits::Bits;
use crate::profile::{AckCounting, DelayedAckTimer, Profile};
use crate::quick::delay_of;
use crate::sack::Sack;
use crate::sequence::to_wire;
use crate::stamps::{Stamp, is_before};
use crate::ticks::fires_at;
use crate::trouble::Troubles;

/// What the arrival of one segment has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Arrival {
    /// Number of bytes that can now be delivered in order.
    pub delivered: u32,
    /// Whether the FIN has been reached, after which nothing follows.
    pub finished: bool,
    /// Whether the segment contained nothing new.
    pub duplicate: bool,
}

/// The sequence space that has been received, and the acknowledgments owed for it.
///
/// The application reads all data immediately, so the window is always the whole buffer counted
/// from the next byte, and neither zero windows nor window probes occur. Data beyond a hole is
/// stored in the endpoint's [`Troubles`], so that a flow without losses allocates nothing.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Receiver {
    /// Next offset expected.
    next: u64,
    /// When a delayed acknowledgment is due; [`Instant::FAR_FUTURE`] if none is.
    ack_deadline: Instant,
    /// The other side's first sequence number.
    initial: u32,
    /// Number of in-order segments, or bytes, not yet acknowledged; [`ACK_NOW`] if an
    /// acknowledgment is due.
    unacked: u16,
    /// The flags [`HOLES`], [`TWICE`], [`ECHO`] and [`PERMITTED`].
    notes: Bits,
    /// `next` includes the FIN.
    finished: bool,
}

/// Something has arrived beyond a hole.
const HOLES: u8 = 1;
/// Some data has arrived twice, and no acknowledgment has reported it yet (RFC 2883).
const TWICE: u8 = 1 << 1;

/// The time stamp to echo is that of a retransmission: TS.Recent of RFC 7323, section 4.3.
const ECHO: u8 = 1 << 2;

/// Both sides have permitted SACK (RFC 2018, section 2).
const PERMITTED: u8 = 1 << 3;

/// A value above any amount that may remain unacknowledged.
const ACK_NOW: u16 = u16::MAX;

impl Receiver {
    pub(crate) const fn new() -> Self {
        Receiver {
            next: 0,
            ack_deadline: Instant::FAR_FUTURE,
            initial: 0,
            unacked: 0,
            notes: Bits::none(),
            finished: false,
        }
    }

    /// Processes the other side's SYN, which has the sequence number `initial`.
    pub(crate) fn synchronise(&mut self, initial: u32) {
        self.initial = initial;
        self.next = 1;
    }

    /// Returns the other side's first sequence number.
    pub(crate) fn initial(&self) -> u32 {
        self.initial
    }

    /// Returns the next offset expected.
    #[inline]
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Returns the sequence number of the next expected byte, for acknowledgments.
    #[inline]
    pub(crate) fn next_on_wire(&self) -> u32 {
        to_wire(self.initial, self.next)
    }

    /// Notes whether both sides have permitted SACK.
    pub(crate) fn permit_sack(&mut self, both: bool) {
        self.notes.put(PERMITTED, both);
    }

    /// Returns whether both sides have permitted SACK.
    #[inline]
    pub(crate) fn permits_sack(&self) -> bool {
        self.notes.any(PERMITTED)
    }

    /// Returns whether nothing waits beyond a hole, and neither a duplicate nor the time stamp of a
    /// retransmission is to be reported.
    #[inline]
    pub(crate) fn is_orderly(&self) -> bool {
        !self.notes.any(HOLES | TWICE | ECHO)
    }

    /// Notes the time stamp of a segment that is to be echoed; it has none here if it was sent for the
    /// first time.
    #[cold]
    pub(crate) fn note_stamp(&mut self, value: Stamp, troubles: &mut Troubles) {
        self.notes.put(ECHO, value.is_some());
        if let Some(value) = value {
            troubles.note().recent = value;
        }
    }

    /// Notes the time stamp of data `[from, end)`, if it is to be echoed: the data begins at or below the number in
    /// the latest acknowledgment (RFC 7323, section 4.3, rule 2), and has not all arrived before (5.3, R2).
    #[cold]
    pub(crate) fn note_stamp_of_data(&mut self, from: u64, end: u64, value: Stamp, troubles: &mut Troubles) {
        // What is delayed while there is a hole are reports about data beyond it.
        let acknowledged = self.notes.any(HOLES) || !self.delays_ack();
        if end >= self.next && (from < self.next || from == self.next && acknowledged) {
            self.note_stamp(value, troubles);
        }
    }

    /// Returns whether the time stamp to echo is that of a retransmission.
    pub(crate) fn is_echoing(&self) -> bool {
        self.notes.any(ECHO)
    }

    /// Returns the time stamp that acknowledgments echo, if it is that of a retransmission.
    pub(crate) fn echo(&self, troubles: &Troubles) -> Stamp {
        self.is_echoing().then(|| troubles.get().recent)
    }

    /// Returns whether a SYN left before the one whose time stamp is to be echoed.
    pub(crate) fn is_older(&self, value: Stamp, troubles: &Troubles) -> bool {
        self.echo(troubles).is_some_and(|recent| value.is_none_or(|value| is_before(value, recent)))
    }

    /// Returns the first part of `[from, to)` that had already arrived and is therefore a duplicate (RFC
    /// 2883, section 4).
    pub(crate) fn overlap(&self, from: u64, to: u64, troubles: &Troubles) -> Option<(u64, u64)> {
        if from < self.next {
            return (from < to).then_some((from, to.min(self.next)));
        }
        troubles.get().beyond.as_deref()?.first_in(from, to)
    }

    /// Makes the next acknowledgment report that `[from, to)` has arrived twice.
    pub(crate) fn report(&mut self, (from, to): (u64, u64), troubles: &mut Troubles) {
        self.notes.set(TWICE);
        troubles.note().beyond.get_or_insert_default().arrived_twice(from, to);
    }

    /// Processes `len` bytes at `next` while nothing waits beyond them, for a receiver whose
    /// acknowledgments depend on a count alone.
    #[inline]
    pub(crate) fn on_next_segment(&mut self, now: Instant, len: u32, profile: &Profile) {
        self.next += u64::from(len);
        self.delay_ack_by_count(now, profile);
    }

    /// Does the same as `on_next_segment`, for a receiver with further rules for when to
    /// acknowledge.
    pub(crate) fn on_next_segment_by_rules(
        &mut self,
        now: Instant,
        len: u32,
        troubles: &Troubles,
        profile: &Profile,
    ) {
        self.next += u64::from(len);
        self.delay_ack(now, len, troubles, profile);
    }

    /// Processes a segment with offsets `[from, to)` and possibly a FIN at `to`.
    #[inline(always)] // has one caller; where packets are lost, half of the data passes through here
    pub(crate) fn on_segment(
        &mut self,
        now: Instant,
        from: u64,
        to: u64,
        fin: bool,
        troubles: &mut Troubles,
        profile: &Profile,
    ) -> Arrival {
        let end = to + u64::from(fin);
        if !self.accepts(from, end, profile) {
            if profile.delay_repeated_ack && end == self.next && !self.notes.any(HOLES) {
                self.delay_ack(now, 0, troubles, profile);
            } else {
                self.ack_now(); // RFC 9293, 3.10.7.4: an unacceptable segment is answered with an ACK
            }
            return Arrival { duplicate: end <= self.next, ..Arrival::default() };
        }
        if from > self.next {
            self.notes.set(HOLES);
            let duplicate = troubles.note().beyond.get_or_insert_default().keep(
                from,
                to,
                fin,
                profile.remembered_blocks(),
            );
            self.ack_now(); // RFC 5681, 4.2: immediately when out of order
            return Arrival { duplicate, ..Arrival::default() };
        }
        let start = self.next;
        self.next = to.max(self.next);
        let filled = self.notes.any(HOLES);
        let finished = (filled && self.absorb(troubles)) || fin;
        let delivered = u32::try_from(self.next - start).expect("a window is below 4 GiB");
        self.next += u64::from(finished);
        self.finished |= finished;
        if finished && profile.delay_fin_ack && !filled && start > 1 && !self.owes_ack() {
            self.notes.clear(TWICE);
            self.owe(1, now, profile.delayed_ack);
        } else if filled || finished {
            self.ack_now(); // RFC 5681, 4.2: immediately when a hole is filled, in whole or in part
        } else {
            self.delay_ack(now, delivered, troubles, profile);
        }
        Arrival { delivered, finished, duplicate: false }
    }

    /// Returns whether the sequence space `[from, end)` reaches into the window (RFC 9293,
    /// 3.10.7.4, first).
    #[inline]
    pub(crate) fn accepts(&self, from: u64, end: u64, profile: &Profile) -> bool {
        // Nothing follows a FIN (RFC 9293, 3.10.7.4, seventh).
        !self.finished && end > self.next && from < self.next + u64::from(profile.receive_window)
    }

    /// RFC 5681, 4.2: acknowledges every second segment immediately, and any other segment within
    /// the delay. `len` bytes are new.
    fn delay_ack(&mut self, now: Instant, len: u32, troubles: &Troubles, profile: &Profile) {
        if profile.ack_rules {
            self.delay_ack_by_rules(now, len, troubles, profile);
        } else {
            self.delay_ack_by_count(now, profile);
        }
    }

    #[inline]
    fn delay_ack_by_count(&mut self, now: Instant, profile: &Profile) {
        if self.is_at_count(profile) {
            self.ack_now();
        } else {
            self.owe(1, now, profile.delayed_ack);
        }
    }

    /// Returns whether the count of unacknowledged segments requires that the next segment be
    /// acknowledged immediately; always false for a receiver whose acknowledgments do not depend on
    /// a count alone.
    #[inline]
    pub(crate) fn is_at_count(&self, profile: &Profile) -> bool {
        u32::from(self.unacked) + 1 >= profile.ack_at
    }

    /// Notes that the amount `more` is also unacknowledged; it will be acknowledged within the
    /// delay.
    #[inline]
    fn owe(&mut self, more: u16, now: Instant, delay: Span) {
        self.unacked += more;
        if self.ack_deadline == Instant::FAR_FUTURE {
            self.ack_deadline = now.saturating_add(delay);
        }
    }

    #[cold]
    fn delay_ack_by_rules(&mut self, now: Instant, len: u32, troubles: &Troubles, profile: &Profile) {
        let (more, limit) = match profile.ack_counting {
            AckCounting::Segments => (1, profile.ack_every),
            AckCounting::Bytes => (len, profile.ack_every * profile.mss),
        };
        if u32::from(self.unacked) + more >= limit || self.is_quick(profile) {
            self.ack_now();
            return;
        }
        let delay = match profile.delayed_ack_timer {
            DelayedAckTimer::OneShot => {
                let delay = delay_of(troubles.get().quick.as_deref(), profile);
                fires_at(now, delay, profile.timer_tick) - now
            }
            DelayedAckTimer::Periodic => until_beat(now, profile.delayed_ack),
        };
        self.owe(more as u16, now, delay); // `more` is below the limit, so it fits
    }

    /// Makes the receiver acknowledge the next in-order segment immediately.
    pub(crate) fn quicken(&mut self, profile: &Profile) {
        self.unacked = self.unacked.max(profile.ack_every as u16 - 1);
    }

    /// Returns whether the first segments, each of which is acknowledged individually, are still
    /// arriving.
    #[inline]
    fn is_quick(&self, profile: &Profile) -> bool {
        profile.quick_acks > 0
            && profile.quick_acks_again == 0
            && self.next <= 1 + u64::from(profile.quick_acks) * u64::from(profile.mss)
    }

    /// Advances over stored data that is now in order. Returns true if this reaches the FIN.
    fn absorb(&mut self, troubles: &mut Troubles) -> bool {
        let Some(beyond) = &mut troubles.note().beyond else { return false };
        let (next, finished) = beyond.absorb(self.next);
        self.next = next;
        if beyond.is_empty() {
            self.notes.clear(HOLES);
            beyond.clear();
        }
        finished
    }

    /// Records that a SACK option is being sent, and returns its number of blocks.
    #[inline]
    pub(crate) fn report_blocks(&mut self, troubles: &mut Troubles, profile: &Profile) -> u32 {
        self.notes.clear(TWICE);
        let beyond = troubles.get_mut().and_then(|trouble| trouble.beyond.as_mut());
        beyond.map_or(0, |beyond| beyond.report(profile.sack_blocks))
    }

    /// Returns the blocks of the latest SACK option.
    #[inline]
    pub(crate) fn sack(&self, troubles: &Troubles, profile: &Profile) -> Sack {
        let beyond = troubles.get().beyond.as_ref();
        beyond.map_or(Sack::NONE, |beyond| beyond.sack(self.initial, profile.sack_blocks))
    }

    /// Returns the number of bytes delivered in order.
    pub(crate) fn delivered(&self) -> u64 {
        self.next.saturating_sub(1 + u64::from(self.finished))
    }

    /// Returns the number of bytes that have arrived, in order or not, each counted once.
    pub(crate) fn received(&self, troubles: &Troubles) -> u64 {
        let trouble = troubles.get();
        let waiting = trouble.beyond.as_ref().map_or(0, |beyond| beyond.waiting());
        self.delivered() + waiting + u64::from(trouble.counts.bytes_discarded)
    }

    /// Ends reception, as the connection is over: no acknowledgment is due any longer, and data
    /// beyond a hole is never delivered.
    pub(crate) fn stop(&mut self, troubles: &mut Troubles) {
        self.ack_sent();
        if self.notes.take(HOLES) {
            let trouble = troubles.note();
            let waiting = trouble.beyond.take().map_or(0, |beyond| beyond.waiting());
            trouble.counts.bytes_discarded += u32::try_from(waiting).expect("a window is below 4 GiB");
        }
    }

    /// Makes an acknowledgment due immediately.
    #[inline]
    pub(crate) fn ack_now(&mut self) {
        self.unacked = ACK_NOW;
    }

    /// Returns the unacknowledged amount, in the unit of `ack_every`.
    pub(crate) fn unacked(&self) -> u16 {
        self.unacked
    }

    /// Delays the acknowledgment that has just become due; `unacked` is the amount that was
    /// unacknowledged before. The acknowledgment waits until `at`, or leaves with one that is due
    /// earlier.
    pub(crate) fn hold_ack(&mut self, unacked: u16, at: Instant) {
        self.unacked = unacked.max(1);
        self.ack_deadline = self.ack_deadline.min(at);
    }

    /// Returns the unacknowledged amount, and when its acknowledgment is due.
    pub(crate) fn owed(&self) -> (u16, Instant) {
        (self.unacked, self.ack_deadline)
    }

    /// Replaces what an arrival has changed since the acknowledgment was `owed`: packet numbers, not the order of the
    /// data, determine whether it is due immediately (RFC 9000, section 13.2.1).
    pub(crate) fn owe_by_number(
        &mut self,
        now: Instant,
        owed: (u16, Instant),
        at_once: bool,
        profile: &Profile,
    ) {
        (self.unacked, self.ack_deadline) = owed;
        if at_once || self.owes_ack() {
            self.ack_now();
        } else {
            self.owe(1, now, profile.delayed_ack);
        }
    }

    /// Returns whether the acknowledgment of some data is being delayed.
    pub(crate) fn delays_ack(&self) -> bool {
        0 < self.unacked && self.unacked < ACK_NOW
    }

    /// Returns whether an acknowledgment is due.
    #[inline]
    pub(crate) fn owes_ack(&self) -> bool {
        self.unacked == ACK_NOW
    }

    /// Notes that a segment with an acknowledgment is being sent.
    #[inline]
    pub(crate) fn ack_sent(&mut self) {
        self.unacked = 0;
        self.ack_deadline = Instant::FAR_FUTURE;
    }

    /// Returns when a delayed acknowledgment is due; [`Instant::FAR_FUTURE`] if none is.
    #[inline]
    pub(crate) fn deadline(&self) -> Instant {
        self.ack_deadline
    }

    /// Advances to the time `now`. Returns whether a delayed acknowledgment has become due.
    pub(crate) fn on_timer(&mut self, now: Instant) -> bool {
        let due = now >= self.ack_deadline;
        if due {
            self.ack_now();
        }
        due
    }
}

/// Returns the time from `now` to the next whole multiple of `period`.
fn until_beat(now: Instant, period: Span) -> Span {
    period - Span::ns(now.as_ns() % period.as_ns())
}

#[cfg(test)]
mod tests {
    use aqmlab_params::{Origin, Value};
    use aqmlab_units::Span;

    use super::*;

    fn receiver() -> (Receiver, Troubles, Profile) {
        let mut r = Receiver::new();
        r.synchronise(0);
        (r, Troubles::new(), Profile::named("rfc").expect("built in"))
    }

    #[test]
    fn a_hole_holds_back_and_releases_what_follows() {
        let (mut r, mut troubles, p) = receiver();
        let mut arrive = |from, to, fin| r.on_segment(Instant::ZERO, from, to, fin, &mut troubles, &p);
        for (from, to) in [(301, 401), (101, 201), (501, 601), (201, 301)] {
            assert_eq!(arrive(from, to, false), Arrival::default());
        }
        assert!(arrive(120, 390, false).duplicate);
        assert_eq!(arrive(1, 101, false).delivered, 400);
        assert_eq!(arrive(601, 701, true), Arrival::default());
        assert_eq!(arrive(381, 501, false), Arrival { delivered: 300, finished: true, duplicate: false });
        assert_eq!(r.next(), 702);
        let beyond = troubles.get().beyond.as_ref().expect("its memory is kept");
        assert!(r.is_orderly() && beyond.is_empty(), "nothing waits once nothing is missing");
    }

    #[test]
    fn what_arrives_counts_once_whether_or_not_it_can_be_delivered() {
        let (mut r, mut troubles, p) = receiver();
        let mut after = |r: &mut Receiver, from, to, fin| {
            r.on_segment(Instant::ZERO, from, to, fin, &mut troubles, &p);
            (r.received(&troubles), r.delivered())
        };
        assert_eq!(after(&mut r, 1, 101, false), (100, 100));
        assert_eq!(after(&mut r, 201, 301, false), (200, 100), "beyond a hole");
        assert_eq!(after(&mut r, 201, 301, false), (200, 100), "a duplicate");
        assert_eq!(after(&mut r, 251, 351, false), (250, 100), "half of it is new");
        assert_eq!(after(&mut r, 51, 151, false), (300, 150), "half of it is new");
        assert_eq!(after(&mut r, 401, 451, true), (350, 150), "a FIN is not a byte");
        assert_eq!(after(&mut r, 151, 201, false), (400, 350));
        assert_eq!(after(&mut r, 351, 401, false), (450, 450));
    }

    #[test]
    fn what_waited_when_the_connection_ended_has_arrived_all_the_same() {
        let (mut r, mut troubles, p) = receiver();
        r.on_segment(Instant::ZERO, 101, 301, false, &mut troubles, &p);
        r.stop(&mut troubles);
        assert_eq!((r.received(&troubles), r.delivered()), (200, 0));
    }

    /// Checks when the timer of ns-2's `interval_` fires: at 300 ms, for example, it acknowledges
    /// data that arrived after 200 ms.
    #[test]
    fn a_periodic_timer_beats_at_whole_multiples_of_its_period() {
        let period = Span::ms(100);
        for (at, beat) in [(Span::us(245_808), 300), (Span::ms(300), 400), (Span::ns(399_999_999), 400)] {
            let now = Instant::ZERO + at;
            assert_eq!(now + until_beat(now, period), Instant::ZERO + Span::ms(beat), "{at}");
        }
    }

    #[test]
    fn bytes_are_counted_up_to_as_many_full_segments() {
        let mut settings = crate::profile_settings("rfc").expect("built in");
        settings.set("ack_counting", Value::Choice("bytes"), Origin::Given);
        let p = Profile::resolve(&mut settings).expect("consistent");
        let (mut r, mut troubles, _) = receiver();
        let mut arrive = |r: &mut Receiver, len| {
            let from = r.next();
            r.on_segment(Instant::ZERO, from, from + len, false, &mut troubles, &p);
            r.owes_ack()
        };
        assert!(!arrive(&mut r, 1460) && !arrive(&mut r, 540) && !arrive(&mut r, 919));
        assert!(arrive(&mut r, 1), "2920 bytes");
        r.ack_sent();
        assert!(!arrive(&mut r, 1460) && arrive(&mut r, 1460), "two full segments");
    }

    #[test]
    fn the_second_segment_is_acknowledged_at_once_and_the_first_after_the_delay() {
        let (mut r, mut troubles, p) = receiver();
        let mut at = |r: &mut Receiver, t, from| {
            r.on_segment(t, from, from + 100, false, &mut troubles, &p);
        };
        let t = Instant::ZERO + Span::ms(5);
        at(&mut r, t, 1);
        assert!(!r.owes_ack());
        assert_eq!(r.deadline(), t + p.delayed_ack);
        at(&mut r, t + Span::ms(1), 101);
        assert!(r.owes_ack());
        r.ack_sent();
        assert_eq!(r.deadline(), Instant::FAR_FUTURE);
        at(&mut r, t + Span::ms(2), 201);
        r.on_timer(t + Span::ms(2) + p.delayed_ack);
        assert!(r.owes_ack());
    }
}
