//! The list of outstanding segments: when each was sent, and whether it is SACKed, lost or retransmitted.
//! Losses are inferred from the order of departures (RACK, RFC 8985, section 6) or from the number of SACKed
//! segments above a segment (IsLost, RFC 6675, section 4); the pipe is computed from counts.

mod duplicates;
mod lost;
mod sacked;

pub(crate) use sacked::round_trip;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use aqmlab_units::{Instant, Span};

use super::news::News;
use super::rack::Rack;
use super::rate::{Measured, Rates};
use super::sent::{AGAIN, LOST, REPEATED, SACKED, Sent};
use crate::congestion::Lost;
use crate::profile::Profile;
use crate::ranges::Ranges;
use crate::sack::Sack;

/// What an acknowledgment reports if all segments that it covers were sent only once and nothing
/// else is reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Plain {
    pub segments: u32,
    /// The round-trip times of the first and of the last of these segments.
    pub first: Span,
    pub last: Span,
}

/// Number of segments newly declared lost.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Found {
    pub segments: u32,
    /// How many of them were retransmissions.
    pub copies: u32,
}

/// All outstanding segments, oldest first.
///
/// Processing an acknowledgment takes the same time regardless of their number. Segments that were
/// sent only once are in the order of their departure, and so are the retransmitted `copies` of the
/// others. Segments that may be lost are therefore found at `judged` and at the front of `copies`.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Segments {
    /// The segments, in order. Places in this list do not change when the first segment is
    /// acknowledged.
    list: Vec<Sent>,
    /// The place of the first outstanding segment.
    first: usize,
    /// Every segment before this place is SACKed or lost, or was sent again.
    judged: usize,
    /// Every lost segment before this place has been sent again.
    repaired: usize,
    /// The place after the segment that was SACKed last, where the next SACKed segment is likely to
    /// be.
    sacked_to: usize,
    /// Departure time and end of each copy; some of these copies may have arrived.
    copies: VecDeque<(Instant, u64)>,
    /// When the latest segment to be retransmitted as the first outstanding one was first sent, and its end.
    original: Option<(Instant, u64)>,
    /// The ranges of offsets that SACK options have reported.
    sacked_ranges: Ranges,
    /// The latest SACK option, if everything that it reports has been processed here.
    latest: Sack,
    sacked: u32,
    lost: u32,
    again: u32,
    rack: Rack,
    /// Delivery rates, for a congestion control that uses them.
    pub rates: Option<Box<Rates>>,
}

impl Segments {
    /// Creates the empty list after the handshake, which may have measured the round-trip time `rtt`.
    pub(crate) fn new(rtt: Option<Span>) -> Self {
        Segments {
            list: Vec::new(),
            first: 0,
            judged: 0,
            repaired: 0,
            sacked_to: 0,
            copies: VecDeque::new(),
            original: None,
            sacked_ranges: Ranges::default(),
            latest: Sack::NONE,
            sacked: 0,
            lost: 0,
            again: 0,
            rack: Rack::new(rtt),
            rates: None,
        }
    }

    /// Notes that an acknowledgment of everything below `una` reports duplicates.
    pub(crate) fn arrived_twice(&mut self, una: u64, sent: u64, profile: &Profile) {
        self.rack.arrived_twice(una, sent, profile);
    }

    /// Notes that the segment that begins at `from` seemed to be lost, but was only late.
    pub(crate) fn note_reordering(&mut self, from: u64, profile: &Profile) {
        self.rack.note_reordering(from, profile);
    }

    /// Returns the number of SACKed segments above a missing one that show that it is lost.
    pub(crate) fn threshold(&self, profile: &Profile) -> u32 {
        self.rack.threshold(profile)
    }

    /// Returns whether more segments are considered reordered than `dupthresh`.
    #[inline]
    pub(crate) fn is_far_from_order(&self, profile: &Profile) -> bool {
        self.threshold(profile) > profile.dupthresh
    }

    /// Notes a timeout without a recovery before it: if so many segments were SACKed that it would have begun, the
    /// degree of reordering has been overestimated.
    pub(crate) fn doubt_reordering(&mut self, profile: &Profile) {
        if self.sacked >= profile.dupthresh {
            self.rack.forget_degree();
        }
    }

    /// Notes that a recovery is over.
    pub(crate) fn recovered(&mut self) {
        self.rack.recovered();
    }

    /// Records a new segment that ends at `end`.
    #[inline(always)]
    pub(crate) fn sent(&mut self, now: Instant, end: u64) {
        if self.list.len() == self.list.capacity() {
            self.move_down();
        }
        self.list.push(Sent::new(now, end, 0));
    }

    /// Records, for delivery rates, that a segment is leaving, which covers `[from, end)`; must be called before
    /// it is listed.
    #[inline]
    pub(crate) fn note_departure(&mut self, now: Instant, from: u64, end: u64) {
        let (idle, in_flight) = (self.outstanding() == 0, self.in_flight() + 1);
        if let Some(rates) = &mut self.rates {
            rates.sent(now, from, end, in_flight, idle);
        }
    }

    /// Makes room by removing the acknowledged part of the list if it is at least half of the list, so that
    /// on average at most one segment moves for each segment sent.
    #[cold]
    fn move_down(&mut self) {
        if 2 * self.first >= self.list.len() {
            self.list.drain(..self.first);
            for place in [&mut self.judged, &mut self.repaired, &mut self.sacked_to] {
                *place = place.saturating_sub(self.first);
            }
            self.first = 0;
        }
    }

    /// Returns the places of the outstanding segments, starting at the place `from`.
    #[inline]
    fn places(&self, from: usize) -> core::ops::Range<usize> {
        from.max(self.first)..self.list.len()
    }

    #[inline]
    fn front(&self) -> Option<&Sent> {
        self.list.get(self.first)
    }

    /// Returns the number of segments in the network: those that are neither SACKed nor lost, and
    /// copies of lost ones.
    #[inline]
    pub(crate) fn in_flight(&self) -> u32 {
        self.outstanding() + self.again - self.sacked - self.lost
    }

    /// Returns the number of segments that have not been acknowledged cumulatively.
    #[inline]
    pub(crate) fn outstanding(&self) -> u32 {
        (self.list.len() - self.first) as u32
    }

    /// Returns whether all outstanding segments are still in flight and none has been
    /// retransmitted, as far as the sender knows.
    #[inline]
    pub(crate) fn is_orderly(&self) -> bool {
        self.sacked | self.lost | self.again == 0
    }

    pub(crate) fn sacked(&self) -> u32 {
        self.sacked
    }

    /// Returns the number of copies in flight.
    pub(crate) fn copies(&self) -> u32 {
        self.again
    }

    pub(crate) fn lost(&self) -> u32 {
        self.lost
    }

    /// Processes an acknowledgment of everything below `una` while nothing is SACKed. Returns
    /// `None`, and changes nothing, unless it covers whole segments that were sent only once.
    #[inline(always)]
    pub(crate) fn acknowledge_plain(&mut self, now: Instant, una: u64) -> Option<Plain> {
        let first = *self.front()?;
        if !self.sacked_ranges.is_empty() {
            return None; // a part of a segment
        }
        let (mut last, mut next) = (first, self.first);
        while let Some(segment) = self.list.get(next).filter(|segment| segment.end <= una) {
            if segment.marks() != 0 {
                return None;
            }
            (last, next) = (*segment, next + 1);
        }
        let segments = (next - self.first) as u32;
        if segments == 0 {
            return None;
        }
        self.first = next;
        let rtt = self.rack.originals_arrived(now, &first, &last);
        Some(Plain { segments, first: now - first.at(), last: rtt })
    }

    /// Notes, for delivery rates, that the first outstanding segments have arrived, which
    /// [`Segments::acknowledge_plain`] has just removed.
    #[inline]
    pub(crate) fn rate_arrivals(&mut self, segments: u32) {
        if let Some(rates) = &mut self.rates {
            for segment in &self.list[self.first - segments as usize..self.first] {
                rates.arrived(segment.at(), segment.end);
            }
        }
    }

    /// Processes the news that everything below `una` has arrived. Returns the round-trip time of the last
    /// segment that has thus arrived.
    pub(crate) fn acknowledge(&mut self, now: Instant, una: u64, news: &mut News) -> Option<Span> {
        let mut rtt = None;
        while let Some(segment) = self.front().copied().filter(|first| first.end <= una) {
            self.first += 1;
            if segment.marks() == SACKED {
                self.sacked -= 1;
                continue;
            }
            if segment.marks() != 0 {
                self.unmark(&segment);
                news.repeated |= segment.has(REPEATED);
                if segment.has(SACKED) {
                    continue;
                }
            }
            if news.first.is_none() {
                let (first, once) = (now - segment.at(), !segment.has(REPEATED));
                news.first = Some((first, once));
                news.original_left =
                    self.original.filter(|(_, end)| *end == segment.end).map(|(left, _)| left);
            }
            rtt = self.arrived(now, &segment, news).or(rtt);
        }
        if !self.sacked_ranges.is_empty() {
            self.sacked_ranges.remove_below(una);
        }
        rtt
    }

    /// Notes that a segment has arrived for the first time. Returns its round-trip time, or `None` if its first
    /// copy may have arrived.
    #[inline]
    fn arrived(&mut self, now: Instant, segment: &Sent, news: &mut News) -> Option<Span> {
        if let Some(rates) = &mut self.rates {
            rates.arrived(segment.at(), segment.end);
        }
        self.rack.arrived(now, segment, news)
    }

    /// Returns whether segments have been declared lost of which the congestion control has not heard.
    pub(crate) fn has_losses(&self) -> bool {
        self.rates.as_ref().is_some_and(|rates| rates.has_losses())
    }

    /// Takes the list of these segments.
    pub(crate) fn take_losses(&mut self) -> Vec<Lost> {
        self.rates.as_mut().map_or_else(Vec::new, |rates| rates.take_losses())
    }

    /// Ends the processing of an acknowledgment of everything below `una`; returns what it measures.
    pub(crate) fn measure_rate(&mut self, now: Instant, una: u64) -> Option<Measured> {
        let least = self.rack.min_rtt();
        self.rates.as_mut().map(|rates| rates.measure(now, una, least))
    }

    /// Sets the round-trip time of the segment that arrived last.
    pub(crate) fn set_latest_rtt(&mut self, rtt: Span) {
        self.rack.set_rtt(rtt);
    }

    /// Subtracts this segment from the counts, because it leaves the list or its marks change.
    fn unmark(&mut self, segment: &Sent) {
        self.sacked -= u32::from(segment.has(SACKED));
        self.lost -= u32::from(segment.has(LOST));
        self.again -= u32::from(segment.has(AGAIN));
    }

    /// Returns the offset at which the segment at this place begins.
    #[inline]
    fn begin(&self, at: usize, una: u64) -> u64 {
        if at == self.first { una } else { self.list[at - 1].end }
    }

    /// Returns when the first outstanding segment was last sent.
    pub(crate) fn first_left(&self) -> Option<Instant> {
        self.front().map(|first| first.at())
    }

    /// Returns whether a segment sent after the first outstanding one has arrived; if all outstanding
    /// segments are in flight, the one that has arrived must have been a copy.
    pub(crate) fn first_is_overtaken(&self) -> bool {
        self.front().is_some_and(|first| self.rack.is_after(first.at(), first.end))
    }

    /// Returns the range of offsets of the segment at this position.
    pub(crate) fn bounds(&self, at: usize, una: u64) -> (u64, u64) {
        (self.begin(at, una), self.list[at].end)
    }

    /// Notes that the segment at this position is retransmitted, up to `end`, which is lower than the
    /// segment's previous end if segments have become smaller. The copy `counts` as in flight.
    pub(crate) fn sent_again(&mut self, now: Instant, at: usize, end: u64, counts: bool) {
        let segment = self.list[at];
        if end < segment.end {
            self.list.insert(at + 1, segment);
            self.sacked += u32::from(segment.has(SACKED));
            self.lost += u32::from(segment.has(LOST));
            self.again += u32::from(segment.has(AGAIN));
            self.judged = self.judged.min(at);
        }
        // The last data may leave together with the FIN, which was a separate segment before.
        while let Some(next) = self.list.get(at + 1).copied().filter(|next| next.end <= end) {
            self.unmark(&next);
            self.list.remove(at + 1);
            self.judged = self.judged.min(at);
            self.repaired = self.repaired.min(at);
        }
        self.again += u32::from(counts && !segment.has(AGAIN));
        let counted = if counts { AGAIN } else { 0 };
        self.list[at] = Sent::new(now, end, segment.marks() | counted | REPEATED);
        self.repaired += usize::from(self.repaired == at);
        self.list_copy((now, end));
    }

    /// Remembers, before the segment at this place is retransmitted, when it was first sent.
    pub(crate) fn note_original(&mut self, at: usize) {
        let segment = self.list[at];
        if self.is_first(at) && !segment.has(REPEATED) {
            self.original = Some((segment.at(), segment.end));
        }
    }

    /// Returns whether the first outstanding segment has been retransmitted, or a copy is in flight.
    pub(crate) fn has_repeated(&self) -> bool {
        self.again > 0 || self.front().is_some_and(|first| first.has(REPEATED))
    }

    /// Returns whether this is the place of the first outstanding segment.
    pub(crate) fn is_first(&self, at: usize) -> bool {
        at == self.first
    }

    /// Returns the place of the last segment.
    pub(crate) fn last(&self) -> Option<usize> {
        self.places(0).next_back()
    }

    /// Returns whether the segment at this place is SACKed.
    pub(crate) fn has_arrived(&self, at: usize) -> bool {
        self.list[at].has(SACKED)
    }
}
