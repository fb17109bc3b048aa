//! Rate samples, for a congestion control that uses them.

use alloc::boxed::Box;

use aqmlab_units::{Instant, Span};

use super::timers::rearm;
use super::{Signs, measure};
use crate::congestion::{AckReport, Repair, Sample};
use crate::endpoint::Endpoint;
use crate::profile::Profile;
use crate::recovery::{News, Phase, Rates};
use crate::sack::Sack;

/// What a sample compares with: the state before an acknowledgment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Before {
    in_flight: u32,
    outstanding: u32,
    lost: u64,
}

/// What an acknowledgment reports for the first time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Reported {
    /// [`News::delivered`] and [`News::ce`].
    pub segments: u32,
    pub ce: u32,
    /// [`News::last_rtt`].
    pub rtt: Option<Span>,
    /// [`News::echo`].
    pub marked: bool,
}

impl From<&News> for Reported {
    #[inline]
    fn from(news: &News) -> Self {
        Reported { segments: news.delivered, ce: news.ce, rtt: news.last_rtt, marked: news.echo }
    }
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

    /// Processes an acknowledgment that reports nothing but `bytes` new bytes, while the sender is settled, for a
    /// control that uses rate samples.
    #[inline(never)] // keeps the code path of other senders short
    pub(super) fn on_calm_ack_with_sample(&mut self, now: Instant, bytes: u32, profile: &Profile) {
        let (una, sent) = (self.una + u64::from(bytes), self.sent());
        let before = self.before_sample(profile);
        let probes = profile.tail_loss_probe && self.uses_sack();
        let Endpoint { rto, troubles, unacked, .. } = self;
        let tracking = troubles.tracking_mut().expect("tracking has begun");
        let Some(plain) = tracking.segments.acknowledge_plain(now, una) else {
            self.on_ack_by_segments(now, una, &Sack::NONE, Signs::default(), profile);
            return;
        };
        tracking.segments.rate_arrivals(plain.segments);
        measure(rto, tracking, plain.first, (una, sent), profile);
        rto.acked(una);
        rearm(rto, tracking, *unacked > bytes, now, true, probes, profile);
        self.advance_by(bytes, bytes);
        let (segments, rtt) = (plain.segments, Some(plain.last));
        if profile.hears {
            let srtt = self.rto.srtt();
            self.inform_control(
                &AckReport { now, bytes, segments, marked: false, ce: 0, una, sent, rtt, srtt },
                profile,
            );
        }
        self.note_activity_on_ack(now, profile);
        let reported = Reported { segments, ce: 0, rtt, marked: false };
        self.take_sample(now, reported, before, profile);
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
    pub(super) fn take_sample(
        &mut self,
        now: Instant,
        reported: Reported,
        before: Before,
        profile: &Profile,
    ) {
        let (una, srtt) = (self.una, self.rto.srtt());
        let tracking = self.tracking_mut();
        if let Some(rates) = &mut tracking.segments.rates {
            rates.reported_ce(reported.ce);
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
            newly_acked: reported.segments,
            newly_lost: (rates.lost() - before.lost) as u32,
            prior_in_flight: before.in_flight,
            in_flight,
            rtt: reported.rtt,
            srtt,
            marked: reported.marked,
            newly_ce: reported.ce,
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
