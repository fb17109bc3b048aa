//! Rate samples, for a congestion control that uses them.

use alloc::boxed::Box;

use aqmlab_units::Instant;

use crate::congestion::{Repair, Sample};
use crate::endpoint::Endpoint;
use crate::profile::Profile;
use crate::recovery::{News, Phase, Rates};

/// What a sample compares with: the state before an acknowledgment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Before {
    in_flight: u32,
    outstanding: u32,
    lost: u64,
}

impl Endpoint {
    /// Begins to measure delivery rates, now that the connection is established.
    #[cold]
    pub(super) fn begin_sampling(&mut self, now: Instant, profile: &Profile) {
        let rates = Rates::new(now, profile.mss, self.uses_sack(), profile.follows_draft());
        self.tracking_mut().segments.rates = Some(Box::new(rates));
        self.unsettled = true;
        let srtt = self.rto.srtt();
        let Endpoint { window, troubles, .. } = self;
        troubles.control().established(now, window, srtt, profile);
    }

    /// Notes, before the application writes, whether it limits the flow.
    #[inline]
    pub(in crate::endpoint) fn check_application(&mut self) {
        let unsent = self.stream_end.saturating_sub(self.next());
        let cwnd = self.window.cwnd();
        let Some(tracking) = self.troubles.tracking_mut() else {
            self.check_application_by_packets(unsent);
            return;
        };
        let (in_flight, repaired) =
            (tracking.segments.in_flight(), tracking.segments.lost() <= tracking.segments.copies());
        if let Some(rates) = &mut tracking.segments.rates {
            rates.check_application(unsent, in_flight, f64::from(in_flight) < cwnd, repaired);
        }
    }

    /// Notes whether the application limits the flow, before an acknowledgment or an expiry of the timer is
    /// processed, for a control that follows the draft: Linux checks only writes.
    pub(super) fn check_application_again(&mut self, profile: &Profile) {
        if profile.follows_draft() {
            self.check_application();
        }
    }

    /// Returns what a sample needs to know about the state before an acknowledgment.
    #[cold]
    pub(super) fn before_sample(&mut self, profile: &Profile) -> Before {
        self.check_application_again(profile);
        let segments = &self.tracking().segments;
        let lost = segments.rates.as_ref().map_or(0, |rates| rates.lost());
        Before { in_flight: segments.in_flight(), outstanding: segments.outstanding(), lost }
    }

    /// Gives the congestion control the losses that the timer has found.
    #[cold]
    pub(super) fn report_losses(&mut self, now: Instant, profile: &Profile) {
        let losses = self.tracking_mut().segments.take_losses();
        let Endpoint { window, troubles, .. } = self;
        troubles.control().on_losses(now, window, &losses, profile);
    }

    /// Gives the congestion control the sample of an acknowledgment, all of whose news have been processed.
    #[inline(never)]
    pub(super) fn take_sample(&mut self, now: Instant, news: &News, before: Before, profile: &Profile) {
        let (una, srtt) = (self.una, self.rto.srtt());
        let tracking = self.tracking_mut();
        if let Some(rates) = &mut tracking.segments.rates {
            rates.reported_ce(news.ce);
        }
        let losses = tracking.segments.take_losses();
        let Some(measured) = tracking.segments.measure_rate(now, una) else { return };
        if before.outstanding == 0 {
            return;
        }
        let repair = match tracking.phase {
            Phase::Open | Phase::Reduction => Repair::Nothing,
            Phase::Recovery => Repair::Recovery,
            Phase::Loss => Repair::Timeout,
        };
        let in_flight = tracking.segments.in_flight();
        let departs = tracking.pace.as_ref().map_or(now, |pace| pace.next().max(now));
        let rates = tracking.segments.rates.as_ref().expect("rates have been measured");
        let sample = Sample {
            limited_by_window: tracking.usage.is_full(),
            newly_acked: news.delivered,
            newly_lost: (rates.lost() - before.lost) as u32,
            prior_in_flight: before.in_flight,
            in_flight,
            rtt: news.last_rtt,
            srtt,
            marked: news.echo,
            newly_ce: news.ce,
            repair,
            departs,
            ..rates.sample(now, &measured, &losses)
        };
        let Endpoint { window, troubles, .. } = self;
        let limits = troubles.control().on_sample(window, &sample, profile);
        if limits && let Some(rates) = &mut self.tracking_mut().segments.rates {
            rates.limit(in_flight);
        }
    }
}
