//! Header prediction: almost all segments that arrive at an established connection either contain the next
//! data and acknowledge nothing new, or acknowledge new data and contain none (V. Jacobson, "4BSD header
//! prediction", ACM Computer Communication Review 20 (2), 1990). For both kinds, most of [`super::input`] is
//! not needed. Where packets are lost, half of the data arrives behind a hole or repeatedly, and its
//! acknowledgment field is not new either.

use aqmlab_units::Instant;

use super::Endpoint;
use super::by_segments::Signs;
use crate::connection::State;
use crate::profile::Profile;
use crate::sack::Sack;
use crate::segment::{Flags, Segment};
use crate::sequence::{from_wire, to_wire};

/// A segment of the expected kind.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Predicted {
    /// The next data in order, and nothing waits beyond it.
    Data,
    /// Data from this offset, for a host that has nothing outstanding.
    Elsewhere { from: u64 },
    /// A pure acknowledgment of this many bytes, while no loss is suspected.
    Ack { bytes: u32 },
}

impl Endpoint {
    /// A segment without SACK blocks arrives; `ce`: with congestion experienced.
    #[inline(always)]
    pub fn on_segment(&mut self, now: Instant, seg: &Segment, ce: bool, profile: &Profile) {
        debug_assert!(seg.sack_len == 0, "a SACK option comes with its blocks");
        let Some(predicted) = self.prediction(seg, ce, profile) else {
            self.on_unpredicted(now, seg, ce, profile);
            return;
        };
        let twin = self.twin_after(now, seg, ce, profile);
        self.on_predicted(now, seg, predicted, profile);
        debug_assert_eq!(Some(&*self), twin.as_ref(), "the short way and the full one agree");
    }

    /// Another kind, or an acknowledgment of new data where each outstanding segment is tracked.
    #[inline(never)] // keeps the way of other senders short
    fn on_unpredicted(&mut self, now: Instant, seg: &Segment, ce: bool, profile: &Profile) {
        let listed = self.tracks(profile).then(|| self.acknowledges(seg, ce, profile)).flatten();
        let Some(ack) = listed else {
            self.on_any_segment(now, seg, &Sack::NONE, ce, profile);
            return;
        };
        let twin = self.twin_after(now, seg, ce, profile);
        self.note_predicted(seg, profile);
        self.on_ack_by_segments(now, ack, &Sack::NONE, Signs::default(), profile);
        debug_assert_eq!(Some(&*self), twin.as_ref(), "the short way and the full one agree");
    }

    /// The state of the endpoint after the segment on the full path, where that is checked.
    #[inline(always)]
    fn twin_after(&self, now: Instant, seg: &Segment, ce: bool, profile: &Profile) -> Option<Endpoint> {
        cfg!(debug_assertions).then(|| {
            let mut twin = self.clone();
            twin.on_any_segment(now, seg, &Sack::NONE, ce, profile);
            twin
        })
    }

    /// The offset that a pure acknowledgment of new data, without echo or CE, has reached.
    fn acknowledges(&self, seg: &Segment, ce: bool, profile: &Profile) -> Option<u64> {
        let ordinary = self.state == State::Established && seg.flags == Flags::ACK && !ce;
        let bytes = seg.ack.wrapping_sub(to_wire(profile.initial_sequence, self.una));
        let pure = seg.len == 0 && seg.seq == self.receiver.next_on_wire();
        (ordinary && pure && 0 < bytes && bytes <= self.unacked).then(|| self.una + u64::from(bytes))
    }

    /// A segment with these SACK blocks arrives; `ce`: with congestion experienced.
    pub fn on_segment_with_sack(
        &mut self,
        now: Instant,
        seg: &Segment,
        sack: &Sack,
        ce: bool,
        profile: &Profile,
    ) {
        self.on_any_segment(now, seg, sack, ce, profile);
    }

    /// Whether the segment is of the expected kind. An ECN echo is not of this kind, and neither is CE.
    #[inline(always)]
    fn prediction(&self, seg: &Segment, ce: bool, profile: &Profile) -> Option<Predicted> {
        let ordinary = self.state == State::Established && seg.flags == Flags::ACK && !ce;
        if !ordinary {
            return None;
        }
        // In ESTABLISHED our FIN is not sent: what is acknowledged are bytes of the stream.
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
            Predicted::Elsewhere { from } => self.on_payload(now, from, seg, false, profile),
            Predicted::Ack { bytes } => self.on_predicted_ack(now, bytes, profile),
        }
    }

    #[inline(always)]
    fn note_predicted(&mut self, seg: &Segment, profile: &Profile) {
        self.burst = profile.max_burst;
        self.peer_window = seg.window;
        self.ecn.on_ack(Flags::ACK); // its only flag
    }

    #[inline(always)]
    fn on_predicted_ack(&mut self, now: Instant, bytes: u32, profile: &Profile) {
        self.advance_by(bytes, bytes);
        self.note_activity_on_ack(now, profile);
        if profile.remembers {
            self.go_on_apart(now, bytes, profile);
            return;
        }
        self.go_on(now, bytes, true, profile);
    }
}
