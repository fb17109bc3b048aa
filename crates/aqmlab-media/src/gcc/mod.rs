//! Google congestion control for real-time communication: draft-ietf-rmcat-gcc-02.
//!
//! Both controllers run at the sender, which the draft permits, on reports of arrivals (RFC 8888).

mod detector;
mod filter;
mod groups;
mod rate;

use alloc::collections::VecDeque;

use aqmlab_params::words;
use aqmlab_units::{Instant, Span};
use schemars::JsonSchema;
use serde::Serialize;

use crate::feedback::Acknowledged;
use crate::limits::Limits;
use detector::{Detector, Usage};
use filter::{Kalman, Trendline};
use groups::Groups;
use rate::{ByDelay, ByLoss};

/// The version of this part, incremented whenever a change to it changes a result.
pub const VERSION: u32 = 1;

/// Time over which the rate of arrivals is measured (`T`); the draft recommends 0.5 to 1 s.
const WINDOW: Span = Span::ms(500);
/// Time between two updates of the controller by loss. The draft updates it with each receiver report; the usual
/// interval of such reports is a second.
const LOSS_INTERVAL: Span = Span::s(1);

words! {
    /// How the delay gradient is estimated.
    #[derive(Serialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub enum Estimator {
        /// The draft's Kalman filter.
        Kalman = "kalman",
        /// A line through recent delays, as in WebRTC's code.
        Trendline = "trendline",
    }
}

#[derive(Clone, Debug)]
enum Filter {
    Kalman(Kalman),
    Trendline(Trendline),
}

/// The controller of one sender.
#[derive(Clone, Debug)]
pub struct Gcc {
    limits: Limits,
    groups: Groups,
    filter: Filter,
    detector: Detector,
    usage: Usage,
    by_delay: ByDelay,
    by_loss: ByLoss,
    /// Recent arrivals: instants and bits.
    arrivals: VecDeque<(Instant, f64)>,
    first_arrival: Option<Instant>,
    /// Packets expected and received since the controller by loss was updated, and when that was.
    expected: u64,
    received: u64,
    loss_updated: Option<Instant>,
}

impl Gcc {
    /// Creates the controller.
    pub fn new(limits: Limits, estimator: Estimator) -> Self {
        let filter = match estimator {
            Estimator::Kalman => Filter::Kalman(Kalman::default()),
            Estimator::Trendline => Filter::Trendline(Trendline::default()),
        };
        Gcc {
            limits,
            groups: Groups::default(),
            filter,
            detector: Detector::default(),
            usage: Usage::Normal,
            by_delay: ByDelay::new(limits.start),
            by_loss: ByLoss::new(limits.start),
            arrivals: VecDeque::new(),
            first_arrival: None,
            expected: 0,
            received: 0,
            loss_updated: None,
        }
    }

    /// Returns the target rate in bit/s: the lower of the two estimates.
    pub fn target(&self) -> f64 {
        f64::min(self.by_delay.rate(), self.by_loss.rate())
    }

    /// Handles a report. `acked` lists what arrived, in the order of arrival; `passed` is the number of packets by which
    /// the highest number that has arrived grew.
    pub fn on_report(&mut self, now: Instant, acked: &[Acknowledged], passed: u64, rtt: Span) {
        // An over-use that the report shows counts even if the last group of the report is normal again.
        let mut usage = None;
        for packet in acked {
            self.arrivals.push_back((packet.arrived, 8.0 * packet.len));
            self.first_arrival.get_or_insert(packet.arrived);
            if let Some(variation) = self.groups.add(packet.sent, packet.arrived) {
                let gradient_ms = match &mut self.filter {
                    Filter::Kalman(filter) => filter.update(&variation),
                    Filter::Trendline(filter) => filter.update(&variation),
                };
                self.usage = self.detector.update(gradient_ms, variation.at);
                if usage != Some(Usage::Over) {
                    usage = Some(self.usage);
                }
            }
        }
        let received = self.received_rate();
        self.by_delay.update(now, usage.unwrap_or(self.usage), received, rtt);
        self.by_delay.clamp(self.limits.least, self.limits.most);
        self.count_losses(now, acked.len() as u64, passed);
    }

    fn count_losses(&mut self, now: Instant, received: u64, passed: u64) {
        self.expected += passed;
        self.received += received;
        let last = *self.loss_updated.get_or_insert(now);
        if now.saturating_since(last) >= LOSS_INTERVAL && self.expected > 0 {
            let lost = self.expected.saturating_sub(self.received) as f64 / self.expected as f64;
            self.by_loss.update(lost, self.limits.least, self.limits.most);
            (self.expected, self.received, self.loss_updated) = (0, 0, Some(now));
        }
    }

    /// Returns the rate of arrivals in the last window, in bit/s (`R_hat`), once a window has passed.
    fn received_rate(&mut self) -> Option<f64> {
        let &(latest, _) = self.arrivals.back()?;
        while self.arrivals.front().is_some_and(|&(at, _)| latest.saturating_since(at) >= WINDOW) {
            self.arrivals.pop_front();
        }
        if latest.saturating_since(self.first_arrival?) < WINDOW {
            return None;
        }
        Some(self.arrivals.iter().map(|(_, bits)| bits).sum::<f64>() / WINDOW.as_secs_f64())
    }
}
