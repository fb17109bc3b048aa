//! The most frequent acknowledgment while something is missing: it does not advance SND.UNA, and its
//! option reports one more segment, which lies above all those reported before. Processing it takes
//! only a small part of what [`Endpoint::on_ack_by_segments`] does for an arbitrary acknowledgment.

use aqmlab_units::Instant;

use crate::congestion::Heard;
use crate::endpoint::Endpoint;
use crate::profile::Profile;
use crate::recovery::{Frto, Phase, Timer};
use crate::sack::Sack;

impl Endpoint {
    /// Processes a pure acknowledgment of `una` that reports one more segment. Returns false, and changes
    /// nothing, if it reports anything else, or may end a phase, or concerns a probe or a timeout.
    #[inline(always)]
    pub(in crate::endpoint) fn on_report(&mut self, now: Instant, sack: &Sack, profile: &Profile) -> bool {
        let (una, sent) = (self.una, self.sent());
        let Some(trouble) = self.troubles.get_mut() else { return false };
        let Some(tracking) = trouble.tracking.as_deref_mut() else { return false };
        let answers_probe = tracking.probe.is_some_and(|probe| una >= probe.end);
        let judges_timeout = tracking.phase == Phase::Loss && tracking.frto != Frto::Off;
        let ends_phase = tracking.phase != Phase::Open && una >= tracking.recover;
        if answers_probe || judges_timeout || ends_phase {
            return false;
        }
        let Some(rtt) = tracking.segments.sack_topmost(now, una, sack, profile.initial_sequence) else {
            return false;
        };
        self.unsettled = true;
        trouble.counts.duplicate_acks += 1;
        self.note_round_trip(rtt, (una, sent), profile);
        if profile.hears {
            let heard = Heard { now, bytes: 0, segments: 1, marked: false, una, sent, rtt: Some(rtt) };
            self.hear(&heard, profile);
        }
        let (found, wait) = self.find_lost(now, profile);
        self.enter_phase(found, 1, false, profile);
        self.reduce_window(1, false, profile);
        if let Some(wait) = wait {
            self.rto.arm_by_ticks(now, wait + profile.patience(), profile);
            self.tracking_mut().timer = Timer::Reordering;
        } else if self.sacked_is_older_than_first(now, rtt) {
            self.rearm_with(now, true, false, profile); // no probe while something is missing
        }
        true
    }
}
