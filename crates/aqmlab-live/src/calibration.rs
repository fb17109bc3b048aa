//! What this machine can do at best, measured just before each run and kept with its result.

use aqmlab_qdisc::Histogram;
use aqmlab_recording::live::CapacityReport;
use aqmlab_scenario::Plan;

use crate::capacity::{self, Capacity};
use crate::error::LiveError;
use crate::host;
use crate::ping;

/// What this machine can do at best.
#[derive(Clone, PartialEq, Debug)]
pub struct Calibration {
    /// Packets that it carries.
    pub capacity: Capacity,
    /// Round-trip times of small datagrams between two hosts without any router, in nanoseconds.
    pub ping_ns: Histogram,
}

impl Calibration {
    /// Measures it in less than half a second, between two hosts that nobody else knows.
    ///
    /// # Errors
    /// If the machine refuses.
    pub fn measure() -> Result<Self, LiveError> {
        let plan = capacity::plan();
        let (hosts, mut tuns) = host::set_up(&plan)?;
        // The pings first: what connections leave behind, an ordinary timer for one, would wake somebody up.
        let ping_ns = ping::measure(&hosts, &mut tuns)?;
        let capacity = capacity::measure(&plan, &hosts, &mut tuns)?;
        Ok(Calibration { capacity, ping_ns })
    }

    /// What the machine carries, beside what `plan` asks for.
    pub fn capacity_for(&self, plan: &Plan) -> CapacityReport {
        CapacityReport {
            per_packet_ns: self.capacity.per_packet.as_ns(),
            per_wake_ns: self.capacity.per_wake.as_ns(),
            packets_per_s: self.capacity.packets_per_s(),
            limit_packets_per_s: self.capacity.limit(),
            demand_packets_per_s: capacity::demand(plan),
        }
    }
}
