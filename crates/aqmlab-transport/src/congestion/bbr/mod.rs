//! BBR: a model of the path, from the largest delivery rate and the shortest round-trip time, determines the pacing
//! rate and the window. [`v1`] is the version of Linux; the filter and the draws are for all versions.

mod draws;
mod largest;
pub(super) mod v1;

/// The sample of an acknowledgment of one segment.
#[cfg(test)]
fn sample() -> super::window::Sample {
    use aqmlab_units::Instant;
    super::window::Sample {
        now: Instant::ZERO,
        delivered: 0,
        lost: 0,
        prior_delivered: 0,
        rate: None,
        app_limited: false,
        newly_acked: 1,
        newly_lost: 0,
        prior_in_flight: 1,
        in_flight: 1,
        rtt: None,
        srtt: None,
        marked: false,
        delivered_ce: 0,
        newly_ce: 0,
        repair: super::window::Repair::Nothing,
        departs: Instant::ZERO,
    }
}
