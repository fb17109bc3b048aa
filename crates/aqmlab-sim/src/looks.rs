//! What is seen of flows at an instant: at a sample, and at the end of the warm-up.
//!
//! An end of a flow may have been served ahead of time, as of an instant after the look. What it was before has been
//! kept then, and is what the look sees.

use aqmlab_transport::Endpoint;
use aqmlab_units::{Bytes, Span};

use crate::connection::Connection;
use crate::counts::FlowCounts;
use crate::event::End;
use crate::flow::{Body, Flow};

/// What has been kept of a flow for looks to come.
#[derive(Default)]
pub struct Kept {
    /// Counts of each end at the end of the warm-up, also when that has passed.
    warmup: [Option<FlowCounts>; 2],
    /// The sender at the next sample.
    sender: Option<SenderSample>,
    /// The receiver at the next sample.
    receiver: Option<ReceiverSample>,
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
    fn of(sender: &Endpoint) -> Self {
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
    fn of(receiver: &Endpoint) -> Self {
        ReceiverSample { received: receiver.received(), delivered: receiver.delivered() }
    }
}

impl Flow {
    /// Keeps the counts of one end as those at the end of the warm-up, unless that has been done.
    pub fn keep_for_warmup(&mut self, end: End) {
        let counts = self.counts_of(end);
        self.kept.get_or_insert_default().warmup[end as usize].get_or_insert(counts);
    }

    /// Keeps one end for the next sample, unless that has been done.
    pub fn keep_for_sample(&mut self, end: End) {
        let Flow { body: Body::Tcp(Connection { sender, receiver, .. }), kept, .. } = self else { return };
        let kept = kept.get_or_insert_default();
        match end {
            End::Sender => {
                kept.sender.get_or_insert_with(|| SenderSample::of(sender));
            }
            End::Receiver => {
                kept.receiver.get_or_insert_with(|| ReceiverSample::of(receiver));
            }
        }
    }

    /// The flow at the sample of this instant: its sender and its receiver. `None` if it is no connection.
    pub fn sample(&mut self) -> Option<(SenderSample, ReceiverSample)> {
        let Flow { body: Body::Tcp(Connection { sender, receiver, .. }), kept, .. } = self else {
            return None;
        };
        let (kept_sender, kept_receiver) =
            kept.as_mut().map_or((None, None), |kept| (kept.sender.take(), kept.receiver.take()));
        let sender = kept_sender.unwrap_or_else(|| SenderSample::of(sender));
        Some((sender, kept_receiver.unwrap_or_else(|| ReceiverSample::of(receiver))))
    }

    /// The counts at the end of the warm-up; none for a flow that started later.
    pub fn counts_at_warmup(&self) -> FlowCounts {
        let [sender, receiver] = self.kept.as_ref().map(|kept| kept.warmup).unwrap_or_default();
        sender.unwrap_or_default().plus(receiver.unwrap_or_default())
    }
}
