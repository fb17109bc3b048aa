//! Proportional rate reduction (RFC 9937, section 6): the window decreases to `ssthresh` gradually, as data
//! arrives.

/// A reduction in progress; all amounts are in segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Prr {
    /// RecoverFS: segments in flight when the reduction began.
    flight: u32,
    /// prr_delivered.
    delivered: u32,
    /// prr_out.
    out: u32,
}

/// What an acknowledgment reports during the reduction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Delivery {
    /// DeliveredData.
    pub segments: u32,
    /// inflight, without the data that this acknowledgment has delivered.
    pub in_flight: u32,
    /// safeACK: the acknowledgment advances SND.UNA and reveals no further losses.
    pub safe: bool,
}

impl Prr {
    /// Begins a reduction with `flight` segments in flight; zero counts as one.
    pub(crate) fn begin(flight: u32) -> Self {
        Prr { flight: flight.max(1), delivered: 0, out: 0 }
    }

    /// Notes that a segment has been sent.
    pub(crate) fn sent(&mut self) {
        self.out += 1;
    }

    /// Returns the window after an acknowledgment.
    #[inline(always)]
    pub(crate) fn window(&mut self, ack: Delivery, ssthresh: u32) -> u32 {
        self.delivered += ack.segments;
        let count = if ack.in_flight > ssthresh {
            let share = (u64::from(self.delivered) * u64::from(ssthresh)).div_ceil(u64::from(self.flight));
            (share as u32).saturating_sub(self.out)
        } else {
            let conservative = self.delivered.saturating_sub(self.out).max(ack.segments);
            (conservative + u32::from(ack.safe)).min(ssthresh - ack.in_flight)
        };
        // The fast retransmit leaves in any case.
        let first = u32::from(self.out == 0);
        ack.in_flight + count.max(first)
    }
}
