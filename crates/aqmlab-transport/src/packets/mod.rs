//! What an endpoint keeps if each transmission has a number of its own, as in QUIC: the packets that it has sent and
//! received. RFC 9002 determines which of them are lost and when a probe leaves.

mod frame;
mod received;
mod sent;

use alloc::boxed::Box;

use aqmlab_units::{Instant, Span};

pub(crate) use frame::AckFrame;
pub(crate) use received::Received;
pub(crate) use sent::{Newly, SentPacket, SentPackets, is_persistent};

use crate::controller::RoundTrips;
use crate::profile::Profile;
use crate::ranges::Ranges;
use crate::recovery::{Pace, Rates};
use crate::rto::RtoTimer;

/// What the timer waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Due {
    /// A packet is declared lost (RFC 9002, section 6.1.2).
    Loss(Instant),
    /// A probe leaves (section 6.2).
    Probe(Instant),
}

/// The state of both halves of an endpoint.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Packets {
    pub sent: SentPackets,
    pub received: Received,
    /// The ACK frame of the latest packet with one.
    pub frame: AckFrame,
    /// Data above the cumulative acknowledgment that has been acknowledged.
    pub acked: Ranges,
    /// Data that was in a lost packet and has not been sent again.
    pub lost: Ranges,
    /// latest_rtt and min_rtt.
    pub latest_rtt: Span,
    pub least_rtt: Span,
    /// first_rtt_sample
    pub first_sample: Option<Instant>,
    /// pto_count
    pub probes: u32,
    /// Number of probes that leave regardless of the window.
    pub probes_due: u32,
    /// One packet may leave although the window has been reduced (section 7.3.2).
    pub one_due: bool,
    /// congestion_recovery_start_time
    pub recovery_began: Option<Instant>,
    /// No packet sent after that time has been acknowledged.
    pub recovering: bool,
    /// The largest count of CE marks reported.
    pub ce: u32,
    /// Whether the application, not the window, has limited the sender.
    pub app_limited: bool,
    pub pace: Pace,
    /// The time until which the next packet waits because of pacing.
    pub waits_until: Option<Instant>,
    /// Delivery rates, for a congestion control that uses them.
    pub rates: Option<Box<Rates>>,
}

impl Packets {
    /// Creates the state after a handshake that has measured the round-trip time `rtt`.
    pub(crate) fn new(now: Instant, rtt: Option<Span>, profile: &Profile) -> Self {
        Packets {
            sent: SentPackets::new(),
            received: Received::new(),
            frame: AckFrame::default(),
            acked: Ranges::default(),
            lost: Ranges::default(),
            latest_rtt: rtt.unwrap_or(Span::ZERO),
            least_rtt: rtt.unwrap_or(Span::MAX),
            first_sample: rtt.map(|_| now),
            probes: 0,
            probes_due: 0,
            one_due: false,
            recovery_began: None,
            recovering: false,
            ce: 0,
            app_limited: true,
            pace: Pace::new(),
            waits_until: None,
            rates: profile
                .samples()
                .then(|| Box::new(Rates::new(now, profile.mss, true, profile.follows_draft()))),
        }
    }

    /// Processes a round-trip sample (section 5, appendix A.7: UpdateRtt).
    pub(crate) fn measured(
        &mut self,
        now: Instant,
        rtt: Span,
        delay: Span,
        timer: &mut RtoTimer,
        profile: &Profile,
    ) {
        self.latest_rtt = rtt;
        self.least_rtt = self.least_rtt.min(rtt);
        let delay = delay.min(profile.delayed_ack);
        let first = self.first_sample.is_none();
        self.first_sample.get_or_insert(now);
        let adjusted = if !first && rtt >= self.least_rtt + delay { rtt - delay } else { rtt };
        timer.measured_besides(adjusted, profile);
    }

    /// Returns the time after which a packet is lost if a later one is acknowledged (section 6.1.2).
    pub(crate) fn loss_delay(&self, srtt: Option<Span>, profile: &Profile) -> Span {
        let rtt = self.latest_rtt.max(srtt.unwrap_or(Span::ZERO));
        Span::ns((rtt.as_ns() as f64 * profile.time_threshold) as u64).max(profile.granularity)
    }

    /// Returns what is due next (section 6.2, appendix A.8: SetLossDetectionTimer).
    pub(crate) fn due(&self, timer: &RtoTimer, profile: &Profile) -> Option<Due> {
        if let Some(at) = self.sent.loss_time {
            return Some(Due::Loss(at));
        }
        if self.sent.in_flight() == 0 {
            return None;
        }
        let timeout = probe_timeout(timer, profile).saturating_mul(1 << self.probes.min(32));
        Some(Due::Probe(self.sent.latest.saturating_add(timeout.min(profile.max_rto))))
    }

    /// Returns whether the reaction to the latest sign of congestion includes a packet that left at `sent` (appendix
    /// B.5: InCongestionRecovery).
    pub(crate) fn is_in_recovery(&self, sent: Instant) -> bool {
        self.recovery_began.is_some_and(|began| sent <= began)
    }

    /// Returns the round-trip times for a controller.
    pub(crate) fn round_trips(&self, timer: &RtoTimer) -> RoundTrips {
        let smoothed = timer.srtt().unwrap_or(self.latest_rtt);
        RoundTrips { latest: self.latest_rtt, least: self.least_rtt, smoothed, variance: timer.variance() }
    }
}

/// Returns the probe timeout without its back-off (section 6.2.1).
pub(crate) fn probe_timeout(timer: &RtoTimer, profile: &Profile) -> Span {
    timer.unbounded_rto(profile).max(profile.min_rto) + profile.delayed_ack
}
