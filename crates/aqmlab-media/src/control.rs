//! The rate controllers of media senders, as one type.

use alloc::boxed::Box;

use aqmlab_units::{Bytes, Instant, Span};
use schemars::JsonSchema;
use serde::Serialize;

use crate::feedback::{Acknowledged, Arrivals};
use crate::gcc::{Estimator, Gcc};
use crate::limits::Limits;
use crate::scream::{Progress, Reaction, Scream};
use crate::tfrc;

/// The rate controller of a class of media flows.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum ControlPlan {
    /// None: the rate is constant, and there is no feedback.
    Constant,
    /// Google congestion control.
    Gcc {
        /// How the delay gradient is estimated.
        estimator: Estimator,
        /// Time between reports.
        #[serde(rename = "feedback_ns")]
        feedback: Span,
        /// The rate of the pacer, as a multiple of the target rate.
        pacing: f64,
    },
    /// SCReAM.
    Scream {
        /// How marks are answered.
        reaction: Reaction,
        /// Time between reports.
        #[serde(rename = "feedback_ns")]
        feedback: Span,
    },
    /// TCP-Friendly Rate Control.
    Tfrc {
        /// Whether the rate follows the last round-trip time (RFC 5348, section 4.5).
        prevents_oscillation: bool,
    },
}

/// The pacer of Google congestion control sends groups of packets at this interval (draft-ietf-rmcat-gcc-02, section 4).
const BURST: Span = Span::ms(5);

/// A rate controller at work.
#[derive(Clone, Debug)]
pub(crate) enum Control {
    Constant(f64),
    Gcc(Box<Gcc>, Pacer),
    Scream(Box<Scream>, Last),
    Tfrc(Box<tfrc::Sender>, Limits, Last),
}

/// The pacer of Google congestion control.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pacer {
    factor: f64,
    /// When the next group may be sent, and the bits left in this one.
    next: Instant,
    left: f64,
}

/// The last packet sent.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Last(Option<(Instant, f64)>);

/// The state of a sender that a controller needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    /// Bytes sent after the packet with the highest number reported.
    pub(crate) in_flight: f64,
    /// Bytes that wait to be sent.
    pub(crate) queued: f64,
}

impl Control {
    pub(crate) fn new(plan: &ControlPlan, limits: Limits, packet: Bytes) -> Self {
        match *plan {
            ControlPlan::Constant => Control::Constant(limits.start),
            ControlPlan::Gcc { estimator, pacing, .. } => {
                let pacer = Pacer { factor: pacing, next: Instant::ZERO, left: 0.0 };
                Control::Gcc(Box::new(Gcc::new(limits, estimator)), pacer)
            }
            ControlPlan::Scream { reaction, .. } => {
                Control::Scream(Box::new(Scream::new(limits, reaction)), Last::default())
            }
            ControlPlan::Tfrc { prevents_oscillation } => {
                let sender = tfrc::Sender::new(packet.as_f64(), prevents_oscillation);
                Control::Tfrc(Box::new(sender), limits, Last::default())
            }
        }
    }

    /// Returns the target rate in bit/s.
    pub(crate) fn target(&self) -> f64 {
        match self {
            Control::Constant(rate) => *rate,
            Control::Gcc(gcc, _) => gcc.target(),
            Control::Scream(scream, _) => scream.target(),
            Control::Tfrc(sender, limits, _) => (8.0 * sender.rate()).clamp(limits.least, limits.most),
        }
    }

    /// Returns the instant from which a packet of `len` bytes may be sent, unless a report comes before.
    pub(crate) fn send_at(&self, len: f64, load: Load) -> Instant {
        match self {
            Control::Constant(_) => Instant::ZERO,
            Control::Gcc(gcc, pacer) => pacer.opens_at(gcc.target()),
            Control::Scream(scream, last) => {
                let paced = last.0.map_or(Instant::ZERO, |(at, len)| at + scream.pause_after(len));
                // Either a report opens the window, or its absence does.
                if scream.may_send(len, load.in_flight) { paced } else { paced.max(scream.silent_at()) }
            }
            Control::Tfrc(sender, limits, last) => {
                // Section 4.6: the time between packets follows the rate, even if the rate has changed since.
                let rate = f64::min(sender.rate(), limits.most / 8.0);
                let gap = |len: f64| Span::try_from_secs_f64(len / rate).unwrap_or(Span::s(64));
                last.0.map_or(Instant::ZERO, |(at, len)| at + gap(len))
            }
        }
    }

    /// Notes that a packet was sent.
    pub(crate) fn sent(&mut self, now: Instant, len: f64, load: Load) {
        match self {
            Control::Constant(_) => {}
            Control::Gcc(gcc, pacer) => pacer.sent(now, gcc.target(), 8.0 * len),
            Control::Scream(scream, last) => {
                scream.sent(now, len, load.in_flight);
                last.0 = Some((now, len));
            }
            Control::Tfrc(sender, _, last) => {
                sender.sent(now, load.queued > 0.0);
                last.0 = Some((now, len));
            }
        }
    }

    /// Notes that the encoder made a frame.
    pub(crate) fn encoded(&mut self, len: f64) {
        if let Control::Scream(scream, _) = self {
            scream.encoded(len);
        }
    }

    /// Handles a report of arrivals.
    pub(crate) fn on_arrivals(
        &mut self,
        now: Instant,
        _report: &Arrivals,
        acked: &[Acknowledged],
        (passed, progress): (u64, Progress),
        queued: f64,
    ) {
        match self {
            Control::Gcc(gcc, _) => gcc.on_report(now, acked, passed, progress.rtt),
            Control::Scream(scream, _) => scream.on_report(now, acked, progress, queued),
            Control::Constant(_) | Control::Tfrc(..) => {}
        }
    }

    /// Handles a report of TFRC.
    pub(crate) fn on_tfrc(&mut self, now: Instant, report: &tfrc::Report) {
        if let Control::Tfrc(sender, ..) = self {
            sender.on_report(now, report);
        }
    }

    /// Returns when the controller's own timer fires.
    pub(crate) fn timer(&self) -> Instant {
        match self {
            Control::Tfrc(sender, ..) => sender.timer(),
            _ => Instant::FAR_FUTURE,
        }
    }

    /// Handles its timer.
    pub(crate) fn on_timer(&mut self, now: Instant) {
        if let Control::Tfrc(sender, ..) = self {
            sender.on_timer(now);
        }
    }

    /// Returns the estimate of the round-trip time that packets carry.
    pub(crate) fn rtt(&self) -> Option<Span> {
        match self {
            Control::Tfrc(sender, ..) => sender.rtt(),
            _ => None,
        }
    }
}

impl Pacer {
    /// Returns the bits of a group.
    fn group(&self, target: f64) -> f64 {
        self.factor * target * BURST.as_secs_f64()
    }

    /// Returns when the next packet may be sent.
    fn opens_at(&self, target: f64) -> Instant {
        if self.left > 0.0 {
            return Instant::ZERO;
        }
        // What was sent in excess of a group is paid by whole groups.
        let paid = libm::floor(-self.left / self.group(target)) as u64;
        self.next + BURST * paid
    }

    fn sent(&mut self, now: Instant, target: f64, bits: f64) {
        if now >= self.next {
            let group = self.group(target);
            let groups = now.saturating_since(self.next).div_span(BURST) + 1;
            // Unused bits are not saved.
            self.left = f64::min(f64::min(self.left, 0.0) + groups as f64 * group, group);
            self.next += BURST * groups;
        }
        self.left -= bits;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At 1.6 Mbit/s, a group has 8000 bits: a packet of 12 000 bits leaves a debt of 4000 bits, which the group 5 ms later
    /// pays; the packet of 24 000 bits after it leaves 20 000 bits, which takes three groups.
    #[test]
    fn a_pacer_sends_groups() {
        let at = |ms| Instant::ZERO + Span::ms(ms);
        let mut pacer = Pacer { factor: 1.0, next: Instant::ZERO, left: 0.0 };
        pacer.sent(at(0), 1.6e6, 12_000.0);
        assert_eq!(pacer.opens_at(1.6e6), at(5));
        pacer.sent(at(5), 1.6e6, 24_000.0);
        assert_eq!(pacer.opens_at(1.6e6), at(20));
        // After a pause, only one group is available.
        pacer.sent(at(1000), 1.6e6, 4000.0);
        assert_eq!((pacer.left, pacer.opens_at(1.6e6)), (4000.0, Instant::ZERO));
    }
}
