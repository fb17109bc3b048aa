//! What an endpoint shows to its host: where both directions are, and how its sender sees the network.

use aqmlab_units::Instant;

use super::{CLOSING, Endpoint, NO_BURST_LIMIT, SELECTIVE};
use crate::profile::Profile;
use crate::recovery::Phase;
use crate::sequence::{from_wire, to_wire};

/// The sender's reaction to congestion, as hosts show it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reaction {
    /// Nothing is missing.
    Open,
    /// Something has arrived out of order, and nothing counts as lost.
    Disorder,
    /// The window decreases because of a mark.
    Reduction,
    /// Fast recovery.
    Recovery,
    /// Recovery after a timeout.
    Loss,
}

/// What a sender counts, in segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Info {
    /// The reaction to congestion.
    pub reaction: Reaction,
    /// Sent and not acknowledged cumulatively.
    pub outstanding: u32,
    /// Of these, reported by SACK or inferred from duplicate ACKs.
    pub sacked: u32,
    /// Of these, lost.
    pub lost: u32,
    /// Copies of lost segments in flight.
    pub copies: u32,
    /// The degree of reordering (`reordering_most`), at least `dupthresh`.
    pub reordering: u32,
}

impl Endpoint {
    /// Returns what the sender counts. A sender without a list of segments divides its outstanding bytes by
    /// `mss`, and knows neither SACKed nor lost segments.
    pub fn info(&self, profile: &Profile) -> Info {
        let Some(tracking) = self.troubles.tracking() else {
            let recovering = self.troubles.get().recovery.is_recovering();
            return Info {
                reaction: if recovering { Reaction::Recovery } else { Reaction::Open },
                outstanding: self.unacked.div_ceil(profile.mss),
                sacked: 0,
                lost: 0,
                copies: 0,
                reordering: profile.dupthresh,
            };
        };
        let segments = &tracking.segments;
        let reaction = match tracking.phase {
            Phase::Open if segments.sacked() > 0 => Reaction::Disorder,
            Phase::Open => Reaction::Open,
            Phase::Reduction => Reaction::Reduction,
            Phase::Recovery => Reaction::Recovery,
            Phase::Loss => Reaction::Loss,
        };
        Info {
            reaction,
            outstanding: segments.outstanding(),
            sacked: segments.sacked(),
            lost: segments.lost(),
            copies: segments.copies(),
            reordering: segments.threshold(profile),
        }
    }

    /// Makes an acknowledgment due immediately, for a host that answers a segment which it does not pass on.
    pub fn acknowledge(&mut self) {
        self.receiver.ack_now();
    }

    /// Makes an acknowledgment due that reports that `[from, to)` has arrived twice (RFC 2883), if the profile
    /// reports such data. For a host that does not pass on the rest of a segment.
    pub fn report_duplicate(&mut self, from: u32, to: u32, profile: &Profile) {
        let offset = |number| from_wire(self.receiver.initial(), number, self.receiver.next());
        if let (Some(from), Some(to)) = (offset(from), offset(to))
            && profile.dsack
            && self.uses_sack()
        {
            self.receiver.report((from, to), &mut self.troubles);
        }
        self.receiver.ack_now();
    }

    /// Delays the acknowledgment that is due, for a host that knows that nobody waits for it.
    pub fn postpone_acknowledgment(&mut self, now: Instant, profile: &Profile) {
        if self.receiver.owes_ack() {
            self.receiver.hold_ack(0, now.saturating_add(profile.delayed_ack));
        }
    }

    /// Sends those outstanding segments again that are larger than `mss`, because a host has learnt that they do not
    /// reach the other side. This is no sign of congestion (RFC 1191, 6.5). DEVIATES for a sender without a list of
    /// segments: it sends all outstanding segments again.
    pub fn repeat_larger_segments(&mut self, profile: &Profile) {
        let una = self.una;
        match self.troubles.tracking_mut() {
            Some(tracking) => {
                tracking.segments.find_larger(una, profile.mss);
                self.notes.set(SELECTIVE);
            }
            None => self.flight = 0,
        }
        self.unsettled = true;
        self.burst = NO_BURST_LIMIT;
    }

    /// Returns the sequence number of the oldest unacknowledged byte: SND.UNA.
    pub fn oldest(&self, profile: &Profile) -> u32 {
        to_wire(profile.initial_sequence, self.una)
    }

    /// Returns the sequence number after all that has been sent: SND.NXT, or SND.MAX after a timeout.
    pub fn newest(&self, profile: &Profile) -> u32 {
        to_wire(profile.initial_sequence, self.sent())
    }

    /// Returns the next sequence number expected from the other side: RCV.NXT.
    pub fn expected(&self) -> u32 {
        self.receiver.next_on_wire()
    }

    /// Returns whether everything in flight has arrived, but the other side's window holds back the next data
    /// (RFC 9293, 3.8.6.1).
    pub fn waits_for_window(&self, profile: &Profile) -> bool {
        let len = self.segment_len(self.next(), profile);
        self.state.is_synchronised() && self.unacked == 0 && len > 0 && u64::from(len) > self.reach(profile)
    }

    /// Returns whether the application has written bytes that have not been sent, or has closed and the FIN has
    /// not been sent.
    pub fn has_unsent(&self) -> bool {
        self.sent() < self.stream_end || self.notes.any(CLOSING) && self.sent() == self.stream_end
    }

    /// Returns the receive window of the other side, in bytes.
    pub fn peer_window(&self) -> u32 {
        self.peer_window
    }
}
