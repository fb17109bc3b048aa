//! Header prediction: almost all segments that arrive at an established connection either contain the next
//! data and acknowledge nothing new, or acknowledge new data and contain none (V. Jacobson, "4BSD header
//! prediction", ACM Computer Communication Review 20 (2), 1990). Neither kind needs most of [`super::input`].
//! Where packets are lost, half of the data segments arrive beyond a hole or for the second time; these
//! acknowledge nothing new either.

use aqmlab_units::{Ecn, Instant};

use super::Endpoint;
use crate::congestion::AckReport;
use crate::connection::State;
use crate::profile::Profile;
use crate::sack::Options;
use crate::segment::{Extras, Flags, Segment};
use crate::sequence::{from_wire, to_wire};

/// The kinds of segment that are expected.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Predicted {
    /// The next in-order data, while no data waits beyond a hole.
    Data,
    /// Any other data, starting at this offset, while the host has nothing outstanding.
    Elsewhere { from: u64 },
    /// A pure acknowledgment of this many bytes, while no loss is suspected.
    Ack { bytes: u32 },
}

impl Endpoint {
    /// Processes a segment without options.
    #[inline(always)]
    pub fn on_segment(&mut self, now: Instant, seg: &Segment, profile: &Profile) {
        self.on_segment_as(now, seg, false, profile);
    }

    /// Does the same as [`Endpoint::on_segment`], but faster for a sender that [lists its
    /// segments](Profile::lists_segments).
    #[inline(always)]
    pub fn on_segment_by_segments(&mut self, now: Instant, seg: &Segment, profile: &Profile) {
        self.on_segment_as(now, seg, true, profile);
    }

    #[inline(always)]
    fn on_segment_as(&mut self, now: Instant, seg: &Segment, by_segments: bool, profile: &Profile) {
        debug_assert!(
            seg.sack_len == 0 && !seg.extras.has(Extras::STAMPED),
            "options must come with their contents"
        );
        self.note_any_arrival(now, profile);
        let Some(predicted) = self.prediction(seg, profile) else {
            self.on_any_segment(now, seg, &Options::NONE, profile);
            return;
        };
        let twin = cfg!(debug_assertions).then(|| {
            let mut twin = self.clone();
            twin.on_any_segment(now, seg, &Options::NONE, profile);
            twin
        });
        match predicted {
            Predicted::Ack { bytes } if by_segments && self.troubles.tracking().is_some() => {
                self.note_predicted(seg, profile);
                self.on_calm_ack(now, bytes, profile);
            }
            _ => self.on_predicted(now, seg, predicted, profile),
        }
        debug_assert_eq!(Some(&*self), twin.as_ref(), "the fast and the full path must agree");
    }

    /// Processes a segment with these options.
    pub fn on_segment_with_options(
        &mut self,
        now: Instant,
        seg: &Segment,
        options: &Options,
        profile: &Profile,
    ) {
        self.note_any_arrival(now, profile);
        let twin = cfg!(debug_assertions).then(|| {
            let mut twin = self.clone();
            twin.on_any_segment(now, seg, options, profile);
            twin
        });
        if !(self.is_pure_report(seg, profile) && self.on_report(now, seg, &options.sack, profile)) {
            self.on_any_segment(now, seg, options, profile);
            return;
        }
        debug_assert_eq!(Some(&*self), twin.as_ref(), "the fast and the full path must agree");
    }

    /// Returns whether the segment has no data and acknowledges nothing new, and the sender tracks each
    /// segment.
    #[inline(always)]
    fn is_pure_report(&self, seg: &Segment, profile: &Profile) -> bool {
        self.is_ordinary(seg)
            && seg.len == 0
            && profile.by_segments()
            && !profile.samples()
            && self.uses_sack()
            && seg.ack == to_wire(profile.initial_sequence, self.una)
            && seg.seq == self.receiver.next_on_wire()
    }

    /// Returns whether the segment has neither a flag other than ACK nor CE, and says nothing about marks.
    #[inline(always)]
    fn is_ordinary(&self, seg: &Segment) -> bool {
        self.state == State::Established
            && seg.flags == Flags::ACK
            && seg.ecn != Ecn::Ce
            && !self.ecn.hears_plain_ack()
    }

    /// Returns the expected kind to which the segment belongs, or `None` if it belongs to none of
    /// them. A segment with an ECN echo or with CE is never an expected one.
    #[inline(always)]
    fn prediction(&self, seg: &Segment, profile: &Profile) -> Option<Predicted> {
        if !self.is_ordinary(seg) {
            return None;
        }
        // In ESTABLISHED our FIN has not been sent, so only bytes of the stream are acknowledged.
        let bytes = seg.ack.wrapping_sub(to_wire(profile.initial_sequence, self.una));
        let next = seg.seq == self.receiver.next_on_wire();
        if seg.len == 0 {
            (next && 0 < bytes && bytes <= self.unacked && !self.unsettled)
                .then_some(Predicted::Ack { bytes })
        } else if next && bytes == 0 && self.receiver.is_orderly() {
            Some(Predicted::Data)
        } else if bytes == 0 && self.unacked == 0 {
            let from = from_wire(self.receiver.initial(), seg.seq, self.receiver.next())?;
            Some(Predicted::Elsewhere { from })
        } else {
            None
        }
    }

    #[inline(always)]
    fn on_predicted(&mut self, now: Instant, seg: &Segment, predicted: Predicted, profile: &Profile) {
        self.note_predicted(seg, profile);
        match predicted {
            Predicted::Data => {
                if !self.receiver.is_at_count(profile) && profile.ack_rules {
                    self.on_next_by_rules(now, seg, profile);
                } else {
                    self.receiver.on_next_segment(now, seg.len, profile);
                }
                self.events.delivered(seg.len);
            }
            Predicted::Elsewhere { from } => self.on_data_elsewhere(now, from, seg, profile),
            Predicted::Ack { bytes } => self.on_predicted_ack(now, bytes, profile),
        }
    }

    #[inline(never)] // keeps the code path of an ordinary segment short
    fn on_data_elsewhere(&mut self, now: Instant, from: u64, seg: &Segment, profile: &Profile) {
        if self.receiver.is_echoing() {
            let end = from + seg.sequence_len();
            self.receiver.note_stamp_of_data(from, end, None, &mut self.troubles);
        }
        self.on_payload(now, from, seg, profile);
    }

    #[inline(always)]
    pub(super) fn note_predicted(&mut self, seg: &Segment, profile: &Profile) {
        self.burst = profile.max_burst;
        self.peer_window = seg.window;
    }

    #[inline(always)]
    fn on_predicted_ack(&mut self, now: Instant, bytes: u32, profile: &Profile) {
        if !profile.more_than_reno.is_empty() {
            self.on_predicted_ack_apart(now, bytes, profile);
            return;
        }
        self.advance_by(bytes, bytes);
        self.note_activity_on_ack(now, profile);
        self.go_on(now, bytes, true, profile);
    }

    /// Processes a predicted acknowledgment for a congestion control that keeps state beyond the
    /// window, or for a sender that tracks each segment; this is a separate function to keep the
    /// hot path short.
    #[inline(never)]
    fn on_predicted_ack_apart(&mut self, now: Instant, bytes: u32, profile: &Profile) {
        if self.tracks(profile) {
            self.on_calm_ack(now, bytes, profile);
            return;
        }
        self.advance_by(bytes, bytes);
        self.note_activity_on_ack(now, profile);
        let (segments, una, sent) = (bytes.div_ceil(profile.mss), self.una, self.sent());
        self.inform_control(
            &AckReport {
                now,
                bytes,
                segments,
                marked: false,
                ce: 0,
                una,
                sent,
                rtt: None,
                srtt: self.rto.srtt(),
            },
            profile,
        );
        self.go_on(now, bytes, true, profile);
    }
}
