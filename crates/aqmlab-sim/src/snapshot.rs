//! What is seen of flows at an instant: at a sample, and at the end of the warm-up.
//!
//! An end of a flow may have been served ahead of time, as of an instant after the look. What it was before has been
//! kept then, and is what the look sees.

use aqmlab_network::FlowCounts;
use aqmlab_transport::Endpoint;
use aqmlab_units::{Bytes, Span};

/// What has been kept of a flow for looks to come.
#[derive(Default)]
pub struct Snapshots {
    /// Counts of each end at the end of the warm-up, also when that has passed.
    pub warmup: [Option<FlowCounts>; 2],
    /// The sender at the next sample.
    pub sender: Option<SenderSample>,
    /// The receiver at the next sample.
    pub receiver: Option<ReceiverSample>,
}

/// A sending endpoint at an instant.
#[derive(Clone, Copy)]
pub struct SenderSample {
    /// Congestion window, segments.
    pub cwnd: f64,
    /// Slow-start threshold, segments; infinite at first.
    pub ssthresh: f64,
    /// Smoothed round-trip time.
    pub srtt: Option<Span>,
    /// Sent and not acknowledged.
    pub flight: Bytes,
    /// Acknowledged.
    pub acked: Bytes,
}

impl SenderSample {
    pub fn of(sender: &Endpoint) -> Self {
        SenderSample {
            cwnd: sender.cwnd(),
            ssthresh: sender.ssthresh(),
            srtt: sender.srtt(),
            flight: sender.flight(),
            acked: sender.acked(),
        }
    }
}

/// A receiving endpoint at an instant.
#[derive(Clone, Copy)]
pub struct ReceiverSample {
    /// Arrived for the first time, in order or not.
    pub received: Bytes,
    /// Handed to the application, in order.
    pub delivered: Bytes,
}

impl ReceiverSample {
    pub fn of(receiver: &Endpoint) -> Self {
        ReceiverSample { received: receiver.received(), delivered: receiver.delivered() }
    }
}
