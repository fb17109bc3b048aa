//! Header prediction: of the segments that arrive at an established connection almost all are the next data, with
//! nothing new acknowledged, or acknowledge new data and bring none (V. Jacobson, "4BSD header prediction", ACM
//! Computer Communication Review 20 (2), 1990). For these two much of [`super::input`] has nothing to decide. Where
//! packets are lost, half of the data comes behind a hole or again: its acknowledgment field has nothing to say either.

use aqmlab_units::Instant;

use super::Endpoint;
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
    /// Data from this offset on, for a host that has nothing outstanding.
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
            self.on_any_segment(now, seg, &Sack::NONE, ce, profile);
            return;
        };
        let twin = cfg!(debug_assertions).then(|| {
            let mut twin = self.clone();
            twin.on_any_segment(now, seg, &Sack::NONE, ce, profile);
            twin
        });
        self.on_predicted(now, seg, predicted, profile);
        debug_assert_eq!(Some(&*self), twin.as_ref(), "the short way and the full one agree");
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

    /// Whether the segment is of the expected kind. An ECN echo is not, nor is CE.
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
        self.burst = profile.max_burst;
        self.peer_window = seg.window;
        self.ecn.on_ack(Flags::ACK); // its only flag
        match predicted {
            Predicted::Data => {
                if profile.ack_rules {
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
