//! DCTCP (RFC 8257): like Reno, except that the size of the reduction at a mark depends on how frequent marks
//! are. When it counts whole segments, its arithmetic and the boundaries of its observation windows are as
//! observed on Linux 6.1.

use super::reno::Reno;
use super::window::{Ack, AckReport, Control, Cut, Sign, Window};
use crate::profile::Profile;

pub(super) const VERSION: u32 = 3;

/// Number of steps per unit of alpha, used where DCTCP computes in whole numbers.
const STEPS: f64 = 1024.0;

/// The estimate of congestion, and its observation window (section 3.3).
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Dctcp {
    /// DCTCP.Alpha.
    alpha: f64,
    /// DCTCP.WindowEnd; SND.UNA at first.
    window_end: u64,
    /// DCTCP.BytesAcked, or segments.
    acked: u64,
    /// DCTCP.BytesMarked, or segments.
    marked: u64,
}

impl Default for Dctcp {
    /// Section 4.2: alpha starts at 1, the cautious choice.
    fn default() -> Self {
        Dctcp { alpha: 1.0, window_end: 1, acked: 0, marked: 0 }
    }
}

impl Dctcp {
    /// Section 3.3, steps 1 to 8, in segments: alpha is a multiple of 1/1024, and a window ends with the
    /// acknowledgment that reaches DCTCP.WindowEnd.
    fn report_in_segments(&mut self, report: &AckReport, profile: &Profile) {
        self.acked += u64::from(report.segments);
        self.marked += u64::from(report.ce);
        if report.una < self.window_end {
            return;
        }
        let (steps, gain) = (self.alpha * STEPS, profile.dctcp_gain);
        let less = libm::floor(steps * gain);
        let less = if less > 0.0 { less } else { steps };
        let more = libm::floor(self.marked as f64 * STEPS * gain / self.acked as f64);
        self.alpha = (steps - less + more).min(STEPS) / STEPS;
        self.window_end = report.sent;
        (self.acked, self.marked) = (0, 0);
    }
}

impl Control for Dctcp {
    /// Section 3.3, steps 1 to 8.
    fn on_report(&mut self, _window: &mut Window, report: &AckReport, profile: &Profile) {
        if profile.dctcp_segments {
            self.report_in_segments(report, profile);
            return;
        }
        if report.bytes == 0 {
            return;
        }
        self.acked += u64::from(report.bytes);
        // AccECN tells how many of the segments are marked; an echo concerns all that are acknowledged with it.
        let segments = report.segments.max(1);
        self.marked += u64::from(report.bytes) * u64::from(report.ce.min(segments)) / u64::from(segments);
        if report.una <= self.window_end {
            return;
        }
        let m = self.marked as f64 / self.acked as f64;
        self.alpha = self.alpha * (1.0 - profile.dctcp_gain) + profile.dctcp_gain * m;
        self.window_end = report.sent;
        (self.acked, self.marked) = (0, 0);
    }

    /// Section 3.4: opens the window as specified in RFC 5681.
    fn avoid(&mut self, window: &mut Window, ack: &Ack, profile: &Profile) {
        Reno.avoid(window, ack, profile);
    }

    /// Follows section 3.3, step 9, for a mark. For a loss, follows section 3.5, which reduces the
    /// window as in conventional TCP.
    fn congestion(&mut self, sign: Sign, window: &Window, profile: &Profile) -> Cut {
        if sign != Sign::Mark {
            return Reno.congestion(sign, window, profile);
        }
        let cwnd = window.cwnd();
        let less = cwnd * self.alpha / 2.0;
        let left = cwnd - if profile.dctcp_segments { libm::floor(less) } else { less };
        Cut { left: Some(left), ..Reno.congestion(sign, window, profile) }
    }
}
