//! BBR: a model of the path, from the largest delivery rate and the shortest round-trip time, determines the pacing
//! rate and the window. [`v1`] is the version of Linux, and [`v3`] that of draft-ietf-ccwg-bbr; both use the filter and
//! the draws.

mod draws;
mod largest;
pub(super) mod v1;
pub(super) mod v3;

/// The sample of an acknowledgment of one segment.
#[cfg(test)]
fn sample() -> super::window::Sample<'static> {
    use aqmlab_units::Instant;
    super::window::Sample {
        now: Instant::ZERO,
        delivered: 0,
        lost: 0,
        prior_delivered: 0,
        rate: None,
        app_limited: false,
        tx_in_flight: 1,
        lost_since: 0,
        limited_by_window: false,
        selective: true,
        losses: &[],
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
