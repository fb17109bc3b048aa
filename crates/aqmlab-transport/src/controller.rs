//! Congestion controllers of other authors, which take the place of the ones here.

use alloc::boxed::Box;
use core::fmt;

use aqmlab_units::{Instant, Span};

/// Round-trip times as a sender knows them (RFC 9002, section 5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RoundTrips {
    /// latest_rtt
    pub latest: Span,
    /// min_rtt
    pub least: Span,
    /// smoothed_rtt
    pub smoothed: Span,
    /// rttvar
    pub variance: Span,
}

/// A congestion controller, as the sender with [`packet_numbers`](crate::Profile) drives it.
///
/// The methods are those of RFC 9002, appendix B, and have the names and arguments that `quinn-proto` 0.11 gives them,
/// so an adapter for its controllers is a few lines. Bytes are those of UDP datagrams, without IP and UDP headers. With
/// each acknowledgment, the calls come in the order of appendix A.7: [`on_ecn`](Controller::on_ecn), the event for
/// losses, [`on_ack`](Controller::on_ack) for each packet, and [`on_end_acks`](Controller::on_end_acks).
///
/// A controller must be a function of these calls: no clock, no draws from a generator that is seeded outside.
pub trait Controller: Send + Sync {
    /// Records that the packet `number` of `bytes` bytes has just left.
    fn on_sent(&mut self, _now: Instant, _bytes: u64, _number: u64) {}

    /// Records that a packet has been acknowledged, which left at `sent`. `app_limited` means that the application, not
    /// the window, has limited the sender.
    fn on_ack(&mut self, _now: Instant, _sent: Instant, _bytes: u64, _app_limited: bool, _rtt: &RoundTrips) {}

    /// Records that all packets of an acknowledgment have been reported; `in_flight` bytes are left, and `largest` is the
    /// largest number acknowledged so far.
    fn on_end_acks(&mut self, _now: Instant, _in_flight: u64, _app_limited: bool, _largest: Option<u64>) {}

    /// Records that `lost_bytes` bytes have been declared lost. The latest of these packets left at `sent`: a controller
    /// reacts once per round trip by comparing it with the time of its last reaction (RFC 9002, appendix B.6).
    /// `persistent` means persistent congestion (section 7.6).
    fn on_congestion_event(&mut self, now: Instant, sent: Instant, persistent: bool, lost_bytes: u64);

    /// Records that the count of CE marks has increased by `marks` (section 7.1); the largest packet acknowledged left at
    /// `sent`. Unless the controller distinguishes marks from losses, this is a congestion event without lost bytes.
    fn on_ecn(&mut self, now: Instant, sent: Instant, _marks: u64) {
        self.on_congestion_event(now, sent, false, 0);
    }

    /// Records that a packet that had been declared lost is acknowledged after all.
    fn on_spurious(&mut self, _now: Instant, _sent: Instant, _bytes: u64) {}

    /// Returns the number of bytes that may be in flight.
    fn window(&self) -> u64;

    /// Returns the pacing rate in bytes per second; without one, the profile determines it (`pacing`).
    fn pacing_rate(&self) -> Option<u64> {
        None
    }

    /// Returns a copy of the controller.
    fn clone_box(&self) -> Box<dyn Controller>;
}

/// A controller as an endpoint keeps it.
pub(crate) struct Foreign(Box<dyn Controller>);

impl Foreign {
    pub(crate) fn new(controller: Box<dyn Controller>) -> Self {
        Foreign(controller)
    }

    pub(crate) fn get_mut(&mut self) -> &mut dyn Controller {
        &mut *self.0
    }
}

impl Clone for Foreign {
    fn clone(&self) -> Self {
        Foreign(self.0.clone_box())
    }
}

impl PartialEq for Foreign {
    fn eq(&self, other: &Self) -> bool {
        (self.0.window(), self.0.pacing_rate()) == (other.0.window(), other.0.pacing_rate())
    }
}

impl fmt::Debug for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Foreign({} B)", self.0.window())
    }
}
