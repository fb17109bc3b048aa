//! What a control that models the path knows about it.

use aqmlab_units::Span;

/// The model of a path that BBR, version 3, keeps, with the names of draft-ietf-ccwg-bbr. Amounts are in segments, and
/// rates in segments per second; a bound that is not set is infinite.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PathModel {
    /// BBR.state.
    pub state: &'static str,
    /// The multiples of the estimated rate at which segments leave, and of the bandwidth-delay product that may be in
    /// flight.
    pub pacing_gain: f64,
    /// See `pacing_gain`.
    pub cwnd_gain: f64,
    /// The largest delivery rate of this cycle and the previous one.
    pub max_bw: f64,
    /// The bound on the rate that losses since the latest probe have set.
    pub bw_shortterm: f64,
    /// The shortest round-trip time of ten seconds; [`Span::MAX`] if none has been measured.
    pub min_rtt: Span,
    /// What acknowledgments have reported beyond the estimated rate.
    pub extra_acked: f64,
    /// The bound on what is in flight that probes have found.
    pub inflight_longterm: f64,
    /// The bound on what is in flight that losses since the latest probe have set.
    pub inflight_shortterm: f64,
    /// The pipe has been full at some time.
    pub full_bw_reached: bool,
    /// The pipe has been full since the latest probe began.
    pub full_bw_now: bool,
    /// The number of rounds in a row in which the rate has grown by less than a quarter.
    pub full_bw_count: u8,
    /// The number of round trips, counted by segments.
    pub round_count: u32,
    /// The flow has just resumed after a pause.
    pub idle_restart: bool,
}
