//! Congestion control of a sender with packet numbers (RFC 9002, section 7 and appendix B), by a control of this crate or
//! by a [`Controller`](crate::Controller).

use aqmlab_units::Instant;

use crate::congestion::{Ack, AckReport, Outstanding, Repair, Sample, Sign};
use crate::controller::Controller;
use crate::endpoint::Endpoint;
use crate::packets::{Packets, SentPacket, is_persistent, probe_timeout};
use crate::profile::Profile;

/// What a rate sample compares with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Before {
    in_flight: u32,
}

impl Endpoint {
    /// Returns the controller that takes the place of the profile's, if there is one.
    pub(super) fn foreign(&mut self) -> Option<&mut dyn Controller> {
        self.troubles.get_mut()?.control.foreign()
    }

    /// Sets the window to that of the other authors' controller.
    pub(super) fn follow_foreign(&mut self, profile: &Profile) {
        if let Some(bytes) = self.foreign().map(|controller| controller.window()) {
            self.window.set_exactly(bytes as f64 / f64::from(profile.datagram()));
        }
    }

    pub(super) fn before_packets(&self) -> Before {
        Before { in_flight: self.packets().sent.in_flight() }
    }

    /// Processes the count of CE marks in an acknowledgment (appendix A.7 and B.7: ProcessECN). Returns by how much it
    /// has increased.
    pub(super) fn on_marks(&mut self, now: Instant, ce: u32, last: SentPacket, profile: &Profile) -> u32 {
        let packets = self.packets_mut();
        let marks = ce.saturating_sub(packets.ce);
        if marks == 0 {
            return 0;
        }
        packets.ce = ce;
        if let Some(rates) = &mut packets.rates {
            rates.reported_ce(marks);
        }
        if let Some(controller) = self.foreign() {
            controller.on_ecn(now, last.at, marks.into());
            self.follow_foreign(profile);
        }
        if self.react(now, last.at, Sign::Mark, profile) {
            self.troubles.note().counts.ecn_reductions += 1;
        }
        marks
    }

    /// Processes lost packets (appendix B.8: OnPacketsLost).
    pub(super) fn on_packets_lost(&mut self, now: Instant, lost: &[SentPacket], profile: &Profile) {
        let Some(last) = lost.last() else { return };
        let first_sample = self.packets().first_sample.unwrap_or(Instant::FAR_FUTURE);
        let period = probe_timeout(&self.rto, profile).saturating_mul(profile.persistent_congestion.into());
        let persistent = is_persistent(lost, first_sample, period);
        if let Some(rates) = &mut self.packets_mut().rates {
            lost.iter().for_each(|packet| rates.declared_lost(packet.number, packet.number + 1));
        }
        if let Some(controller) = self.foreign() {
            let bytes = lost.iter().map(|packet| u64::from(packet.size)).sum();
            controller.on_congestion_event(now, last.at, persistent, bytes);
            self.follow_foreign(profile);
        }
        if self.react(now, last.at, Sign::Loss, profile) {
            self.troubles.note().counts.fast_retransmits += 1;
        }
        if persistent {
            self.packets_mut().recovery_began = None;
            if self.foreign().is_none() && !profile.samples() {
                let (window, algorithm) = self.congestion(profile);
                window.collapse(algorithm, profile);
            }
        }
    }

    /// Reduces the window for a sign of congestion that a packet sent at `sent` has met, unless the latest reduction was
    /// later (appendix B.6: OnCongestionEvent). Returns whether it was reduced.
    fn react(&mut self, now: Instant, sent: Instant, sign: Sign, profile: &Profile) -> bool {
        let packets = self.packets_mut();
        if packets.is_in_recovery(sent) {
            return false;
        }
        (packets.recovery_began, packets.recovering) = (Some(now), true);
        packets.one_due = true; // MaybeSendOnePacket
        if self.foreign().is_none() {
            // The base of the reduction is the congestion window, in bytes.
            let flight = (self.window.cwnd() * f64::from(profile.mss)) as u32;
            let outstanding = Outstanding { flight, inflation: 0 };
            let samples = profile.samples();
            let (window, algorithm) = self.congestion(profile);
            window.lower(algorithm, sign, outstanding, profile);
            if !samples {
                window.settle();
            }
        }
        true
    }

    /// Processes acknowledged packets (appendix B.5: OnPacketsAcked).
    pub(super) fn on_packets_acked(
        &mut self,
        now: Instant,
        acked: &[SentPacket],
        (bytes, ce): (u32, u32),
        profile: &Profile,
    ) {
        let app_limited = self.packets().app_limited;
        let rtt = self.packets().round_trips(&self.rto);
        if profile.hears && self.foreign().is_none() {
            let (una, sent, segments) = (self.una, self.sent(), acked.len() as u32);
            let (rtt, srtt, marked) = (Some(rtt.latest), self.rto.srtt(), ce > 0);
            self.inform_control(
                &AckReport { now, bytes, segments, marked, ce, una, sent, rtt, srtt },
                profile,
            );
        }
        for packet in acked {
            if let Some(rates) = &mut self.packets_mut().rates {
                rates.arrived(packet.at, packet.number + 1);
            }
            if let Some(controller) = self.foreign() {
                controller.on_ack(now, packet.at, packet.size.into(), app_limited, &rtt);
            }
            if self.packets().is_in_recovery(packet.at) {
                continue;
            }
            self.packets_mut().recovering = false;
            if !app_limited && self.foreign().is_none() && !profile.samples() {
                // The sender fills the window, whatever is in flight by the time the acknowledgment arrives.
                let (flight, srtt) = (u32::MAX, self.rto.srtt());
                let ack = Ack { now, bytes: packet.len, flight, srtt, after_timeout: false };
                let (window, algorithm) = self.congestion(profile);
                window.acked(algorithm, &ack, profile);
            }
        }
        let sent = &self.packets().sent;
        let (in_flight, largest) = (sent.bytes_in_flight(), sent.largest_acked());
        if let Some(controller) = self.foreign() {
            controller.on_end_acks(now, in_flight, app_limited, largest);
            self.follow_foreign(profile);
        }
    }

    /// Notes, before the application writes, whether it limits the flow.
    #[cold]
    pub(in crate::endpoint) fn check_application_by_packets(&mut self, unsent: u64) {
        let cwnd = self.window.cwnd();
        let packets = self.troubles.get_mut().and_then(|trouble| trouble.packets.as_deref_mut());
        let Some(Packets { sent, lost, rates: Some(rates), .. }) = packets else { return };
        let in_flight = sent.in_flight();
        rates.check_application(unsent, in_flight, f64::from(in_flight) < cwnd, lost.is_empty());
    }

    /// Gives a congestion control that hears of each the losses that the timer has found.
    pub(super) fn report_lost_packets(&mut self, now: Instant, profile: &Profile) {
        let losses = self.packets_mut().rates.as_mut().map(|rates| rates.take_losses()).unwrap_or_default();
        if !losses.is_empty() {
            let Endpoint { window, troubles, .. } = self;
            troubles.control().on_losses(now, window, &losses, profile);
        }
    }

    /// Gives a congestion control that uses them the rate sample of an acknowledgment.
    pub(super) fn sample_packets(
        &mut self,
        now: Instant,
        acked: &[SentPacket],
        newly_lost: u32,
        (before, ce): (Before, u32),
        profile: &Profile,
    ) {
        let srtt = self.rto.srtt();
        let limited_by_window = !self.packets().app_limited;
        let packets = self.packets_mut();
        let (lowest, least) = (packets.sent.lowest(), packets.least_rtt);
        let Some(rates) = &mut packets.rates else { return };
        let losses = rates.take_losses();
        let measured = rates.measure(now, lowest, least);
        let newly_acked = acked.len() as u32;
        let in_flight = packets.sent.in_flight();
        let sample = Sample {
            limited_by_window,
            newly_acked,
            newly_lost,
            prior_in_flight: before.in_flight + newly_acked,
            in_flight,
            rtt: Some(packets.latest_rtt),
            srtt,
            marked: ce > 0,
            newly_ce: ce,
            repair: if packets.recovering { Repair::Recovery } else { Repair::Nothing },
            departs: packets.pace.next().max(now),
            ..rates.sample(now, &measured, &losses)
        };
        let Endpoint { window, troubles, .. } = self;
        if troubles.control().on_sample(window, &sample, profile)
            && let Some(rates) = &mut self.packets_mut().rates
        {
            rates.limit(in_flight);
        }
    }
}
