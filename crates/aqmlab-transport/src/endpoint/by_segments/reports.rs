//! Processing of the most frequent kind of acknowledgment while something is missing: one that does
//! not advance SND.UNA, and whose option reports one more segment, above all those reported before.
//! This takes only a small part of the work that [`Endpoint::on_ack_by_segments`] does for an
//! arbitrary acknowledgment.

use aqmlab_units::Instant;

use super::phases::reduce_window;
use super::timers::{rearm, sacked_is_older_than_first};
use super::{find_lost, measure};
use crate::congestion::{AckReport, Algorithm};
use crate::endpoint::Endpoint;
use crate::profile::Profile;
use crate::recovery::{Frto, Phase, Timer};
use crate::sack::Sack;
use crate::segment::Segment;
use crate::trouble::Trouble;

impl Endpoint {
    /// Processes a pure acknowledgment of `una` that reports one more segment. Returns false, and changes
    /// nothing, if the acknowledgment reports anything else, may end a phase, or concerns a probe or a
    /// timeout.
    #[inline(always)]
    pub(in crate::endpoint) fn on_report(
        &mut self,
        now: Instant,
        seg: &Segment,
        sack: &Sack,
        profile: &Profile,
    ) -> bool {
        let (una, sent) = (self.una, self.sent());
        let Endpoint { rto, window, troubles, .. } = self;
        let Some(trouble) = troubles.get_mut() else { return false };
        let Trouble { tracking, counts, control, .. } = trouble;
        let Some(tracking) = tracking.as_deref_mut() else { return false };
        let answers_probe = tracking.probe.is_some_and(|probe| una >= probe.end);
        let judges_timeout = tracking.phase == Phase::Loss && tracking.frto != Frto::Off;
        let ends_phase = tracking.phase != Phase::Open && una >= tracking.recover;
        let opens = profile.reordered_opens && tracking.segments.is_far_from_order(profile);
        if answers_probe || judges_timeout || ends_phase || opens {
            return false;
        }
        let Some(rtt) = tracking.segments.sack_topmost(now, una, sack, profile.initial_sequence) else {
            return false;
        };
        self.unsettled = true;
        counts.duplicate_acks += 1;
        measure(rto, tracking, rtt, (una, sent), profile);
        if profile.hears {
            let (rtt, srtt) = (Some(rtt), rto.srtt());
            let report = AckReport { now, bytes: 0, segments: 1, marked: false, ce: 0, una, sent, rtt, srtt };
            window.on_report(Algorithm::of(profile, || control), &report, profile);
        }
        let (found, wait) = find_lost(tracking, now, rto.srtt(), profile);
        if tracking.has_begun_losing(found) {
            self.enter_phase(found, 1, false, profile);
        }
        self.note_predicted(seg, profile);
        let Endpoint { rto, window, troubles, unacked, burst, .. } = self;
        let tracking = troubles.tracking_mut().expect("tracking has begun");
        reduce_window(window, tracking, 1, false, profile);
        tracking.forget_first_again();
        if let Some(wait) = wait {
            rto.arm_by_ticks(now, wait + profile.patience(), profile);
            tracking.timer = Timer::Reordering;
        } else if sacked_is_older_than_first(tracking, now, rtt) {
            rearm(rto, tracking, *unacked > 0, now, true, false, profile); // no probe while something is missing
        }
        if tracking.fills(window, profile) {
            *burst = 0;
        }
        true
    }
}
