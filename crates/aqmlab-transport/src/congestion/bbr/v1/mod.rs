//! BBR, version 1 (draft-cardwell-iccrg-bbr-congestion-control-00): a model of the path, from the largest
//! delivery rate and the shortest round-trip time, determines the pacing rate and the window.
//!
//! The units, the pacing margin, the allowance for aggregated acknowledgments and further details that the
//! draft leaves open are as observed on Linux 6.1.

mod policer;
mod units;

use alloc::boxed::Box;

use aqmlab_units::{Instant, Rate, Span};

use super::super::window::{Ack, Control, Cut, Pacing, Pause, Repair, Sample, Sign, Window};
use super::draws::Draws;
use super::largest::Largest;
use crate::profile::Profile;
use policer::Policer;
use units::{RATE_STEPS, UNIT, whole_ms, whole_us};

pub(crate) const VERSION: u32 = 1;

/// BBRHighGain: 2/ln(2), the smallest gain that doubles the rate in each round trip.
const HIGH_GAIN: u64 = 739;
/// The inverse of [`HIGH_GAIN`].
const DRAIN_GAIN: u64 = 88;
/// The gain of the window in ProbeBW.
const WINDOW_GAIN: u64 = 2 * UNIT;
/// pacing_gain_cycle: 5/4, 3/4, and six times 1.
const CYCLE: [u64; 8] = [320, 192, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT];
/// Percentage of the estimated rate that pacing uses, so that queues drain.
const PACED: u64 = 99;
/// BtlBwFilterLen, in rounds.
const RATE_ROUNDS: u32 = 10;
/// RTpropFilterLen, in milliseconds.
const RTT_MS: u64 = 10_000;
/// BBRMinPipeCwnd, in segments.
const LEAST_WINDOW: u32 = 4;
/// ProbeRTTDuration, in milliseconds.
const PROBE_RTT_MS: u64 = 200;
/// The pipe is full if the rate has not grown to 5/4 of its earlier value in this many rounds.
const FULL_ROUNDS: u8 = 3;
const GROWTH: u64 = 320;
/// Below this pacing rate, in bytes per second (1.2 Mbit/s), segments leave one by one.
const ONE_BY_ONE: u64 = 150_000;
/// A group of segments takes at most 1/1024 of a second at the pacing rate.
const GROUPS_PER_SECOND: u64 = 1024;
/// Most bytes and segments in a group: those of a super-segment.
const MOST_GROUPED: u64 = 65_215;
const MOST_SEGMENTS: u64 = 127;
/// Number of rounds over which each of the two maxima of aggregation extends.
const AGGREGATION_ROUNDS: u8 = 5;
/// Aggregation opens the window by at most what arrives in this time, in microseconds.
const MOST_AGGREGATION: u64 = 100_000;
/// The count of acknowledged segments starts again when it reaches this.
const MOST_COUNTED: u64 = 1 << 20;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Startup,
    Drain,
    ProbeBw,
    ProbeRtt,
}

/// Segments acknowledged beyond those that the estimated rate explains, in the current interval.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Aggregation {
    began: Instant,
    acked: u64,
    /// The maxima of the current and the previous rounds, and which of them is the current one.
    extra: [u64; 2],
    current: usize,
    rounds: u8,
}

/// State of a flow; the names are those of the draft.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Bbr {
    state: State,
    /// BBR.BtlBw.
    rate: Largest<u64>,
    round: u32,
    next_round_delivered: u64,
    round_start: bool,
    full_rate: u64,
    full_rounds: u8,
    filled_pipe: bool,
    /// BBR.RTprop, in microseconds.
    rtprop: Option<u64>,
    /// rtprop_stamp, in milliseconds.
    rtprop_at: u64,
    cycle: usize,
    cycle_began: Instant,
    /// probe_rtt_done_stamp, in milliseconds.
    probe_rtt_done: Option<u64>,
    probe_rtt_round_done: bool,
    prior_window: u32,
    idle_restart: bool,
    packet_conservation: bool,
    repair: Repair,
    has_seen_rtt: bool,
    /// Bytes per second.
    pacing_rate: u64,
    aggregation: Aggregation,
    policer: Policer,
    draws: Draws,
}

impl Bbr {
    pub(crate) fn new() -> Box<Self> {
        Box::new(Bbr {
            state: State::Startup,
            rate: Largest::new(0),
            round: 0,
            next_round_delivered: 0,
            round_start: false,
            full_rate: 0,
            full_rounds: 0,
            filled_pipe: false,
            rtprop: None,
            rtprop_at: 0,
            cycle: 0,
            cycle_began: Instant::ZERO,
            probe_rtt_done: None,
            probe_rtt_round_done: false,
            prior_window: 0,
            idle_restart: false,
            packet_conservation: false,
            repair: Repair::Nothing,
            has_seen_rtt: false,
            pacing_rate: 0,
            aggregation: Aggregation { began: Instant::ZERO, acked: 0, extra: [0; 2], current: 0, rounds: 0 },
            policer: Policer::default(),
            draws: Draws::default(),
        })
    }

    fn pacing_gain(&self) -> u64 {
        match self.state {
            State::Startup => HIGH_GAIN,
            State::Drain => DRAIN_GAIN,
            State::ProbeBw if self.policer.found => UNIT,
            State::ProbeBw => CYCLE[self.cycle],
            State::ProbeRtt => UNIT,
        }
    }

    fn window_gain(&self) -> u64 {
        match self.state {
            State::Startup | State::Drain => HIGH_GAIN,
            State::ProbeBw => WINDOW_GAIN,
            State::ProbeRtt => UNIT,
        }
    }

    /// Returns the rate that the model uses.
    fn rate(&self) -> u64 {
        if self.policer.found { self.policer.rate } else { self.rate.get() }
    }

    /// Returns a pacing rate in bytes per second.
    fn to_pacing_rate(rate: u64, gain: u64, profile: &Profile) -> u64 {
        let scaled = u128::from(rate * u64::from(profile.mss)) * u128::from(gain) / u128::from(UNIT);
        (scaled * u128::from(1_000_000 / 100 * PACED) / u128::from(RATE_STEPS)) as u64
    }

    /// BBRInitPacingRate.
    fn init_pacing_rate(&mut self, window: u32, srtt: Option<Span>, profile: &Profile) {
        let us = srtt.map_or(1000, |srtt| whole_us(srtt).max(1));
        self.has_seen_rtt |= srtt.is_some();
        let rate = u64::from(window) * RATE_STEPS / us;
        self.pacing_rate = Self::to_pacing_rate(rate, HIGH_GAIN, profile);
    }

    /// BBRSetPacingRateWithGain.
    fn set_pacing_rate(&mut self, gain: u64, profile: &Profile) {
        let rate = Self::to_pacing_rate(self.rate(), gain, profile);
        if self.filled_pipe || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    /// Returns the number of segments that leave as one group at the pacing rate: send_quantum.
    fn quantum(&self, profile: &Profile) -> u64 {
        let bytes = (self.pacing_rate / GROUPS_PER_SECOND).min(MOST_GROUPED);
        let least = if self.pacing_rate < ONE_BY_ONE { 1 } else { 2 };
        (bytes / u64::from(profile.mss)).max(least).min(MOST_SEGMENTS)
    }

    /// Returns the bandwidth-delay product at this rate, times `gain`, in segments; with no round-trip time measured
    /// yet, the initial window.
    fn bdp(&self, rate: u64, gain: u64, profile: &Profile) -> u64 {
        let Some(rtprop) = self.rtprop else { return profile.initial_window as u64 };
        (rate * rtprop * gain / UNIT).div_ceil(RATE_STEPS)
    }

    /// Adds room for the groups that hosts handle at once (BBRInflight: 3 * send_quantum).
    fn with_groups(&self, segments: u64, profile: &Profile) -> u64 {
        let even = (segments + 3 * self.quantum(profile)).next_multiple_of(2);
        // While probing, at least one group more must fit, also on short paths.
        if self.state == State::ProbeBw && self.cycle == 0 { even + 2 } else { even }
    }

    /// BBRInflight.
    fn inflight(&self, gain: u64, profile: &Profile) -> u64 {
        self.with_groups(self.bdp(self.rate.get(), gain, profile), profile)
    }

    /// Returns how many of the segments in flight will not have arrived when the next one may leave.
    fn inflight_at_departure(&self, in_flight: u32, sample: &Sample, profile: &Profile) -> u64 {
        let wait = whole_us(sample.departs.saturating_since(sample.now));
        let arrive = self.rate() * wait / RATE_STEPS;
        let joins = if self.pacing_gain() > UNIT { self.quantum(profile) } else { 0 };
        (u64::from(in_flight) + joins).saturating_sub(arrive)
    }

    /// BBRUpdateBtlBw and BBRUpdateRound.
    fn update_rate(&mut self, sample: &Sample, profile: &Profile) {
        self.round_start = false;
        let Some((delivered, interval)) = sample.rate else { return };
        if sample.prior_delivered >= self.next_round_delivered {
            self.next_round_delivered = sample.delivered;
            self.round += 1;
            self.round_start = true;
            self.packet_conservation = false;
        }
        let in_probe_bw = self.state == State::ProbeBw;
        if self.policer.on_sample(sample, self.round_start, in_probe_bw, profile) {
            self.enter_probe_bw(sample.now);
        }
        let rate = delivered * RATE_STEPS / whole_us(interval).max(1);
        if !sample.app_limited || rate >= self.rate.get() {
            self.rate.add(self.round, rate, RATE_ROUNDS);
        }
    }

    /// BBRUpdateACKAggregation of draft-ietf-ccwg-bbr, with two maxima over five to ten rounds.
    fn update_aggregation(&mut self, sample: &Sample, window: &Window) {
        let rate = self.rate();
        let Aggregation { began, acked, extra, current, rounds } = &mut self.aggregation;
        if sample.newly_acked == 0 || sample.rate.is_none() {
            return;
        }
        if self.round_start {
            *rounds += 1;
            if *rounds >= AGGREGATION_ROUNDS {
                (*rounds, *current) = (0, 1 - *current);
                extra[*current] = 0;
            }
        }
        let mut expected = rate * whole_us(sample.now - *began) / RATE_STEPS;
        if *acked <= expected || *acked + u64::from(sample.newly_acked) >= MOST_COUNTED {
            (*began, *acked, expected) = (sample.now, 0, 0);
        }
        *acked = (*acked + u64::from(sample.newly_acked)).min(MOST_COUNTED - 1);
        extra[*current] = extra[*current].max((*acked - expected).min(window.cwnd() as u64));
    }

    /// Returns the number of segments by which aggregation opens the window.
    fn aggregated(&self) -> u64 {
        if !self.filled_pipe {
            return 0;
        }
        let [one, other] = self.aggregation.extra;
        one.max(other).min(self.rate() * MOST_AGGREGATION / RATE_STEPS)
    }

    /// BBRCheckCyclePhase.
    fn check_cycle(&mut self, sample: &Sample, profile: &Profile) {
        if self.state == State::ProbeBw && self.cycle_is_over(sample, profile) {
            self.advance_cycle(sample.now);
        }
    }

    /// BBRIsNextCyclePhase.
    fn cycle_is_over(&self, sample: &Sample, profile: &Profile) -> bool {
        let full = self.rtprop.is_some_and(|rtprop| whole_us(sample.now - self.cycle_began) > rtprop);
        let gain = self.pacing_gain();
        if gain == UNIT {
            return full;
        }
        let inflight = self.inflight_at_departure(sample.prior_in_flight, sample, profile);
        if gain > UNIT {
            full && (sample.newly_lost > 0 || inflight >= self.inflight(gain, profile))
        } else {
            full || inflight <= self.inflight(UNIT, profile)
        }
    }

    /// BBRAdvanceCyclePhase.
    fn advance_cycle(&mut self, now: Instant) {
        self.cycle = (self.cycle + 1) % CYCLE.len();
        self.cycle_began = now;
    }

    /// BBRCheckFullPipe.
    fn check_full_pipe(&mut self, sample: &Sample) {
        if self.filled_pipe || !self.round_start || sample.app_limited {
            return;
        }
        if self.rate.get() >= self.full_rate * GROWTH / UNIT {
            (self.full_rate, self.full_rounds) = (self.rate.get(), 0);
            return;
        }
        self.full_rounds += 1;
        self.filled_pipe = self.full_rounds >= FULL_ROUNDS;
    }

    /// BBRCheckDrain.
    fn check_drain(&mut self, sample: &Sample, profile: &Profile) {
        if self.state == State::Startup && self.filled_pipe {
            self.state = State::Drain;
        }
        if self.state == State::Drain
            && self.inflight_at_departure(sample.in_flight, sample, profile) <= self.inflight(UNIT, profile)
        {
            self.enter_probe_bw(sample.now);
        }
    }

    /// BBREnterProbeBW.
    fn enter_probe_bw(&mut self, now: Instant) {
        self.state = State::ProbeBw;
        self.cycle = CYCLE.len() - 1 - self.draws.below(7) as usize;
        self.advance_cycle(now);
    }

    /// BBRUpdateRTprop and BBRCheckProbeRTT. Returns whether ProbeRTT limits the rate samples that follow.
    fn update_rtprop(&mut self, sample: &Sample, window: &mut Window) -> bool {
        let now = whole_ms(sample.now);
        let expired = now > self.rtprop_at + RTT_MS;
        if let Some(rtt) = sample.rtt.map(whole_us)
            && (expired || self.rtprop.is_none_or(|least| rtt < least))
        {
            (self.rtprop, self.rtprop_at) = (Some(rtt), now);
        }
        if expired && !self.idle_restart && self.state != State::ProbeRtt {
            self.state = State::ProbeRtt;
            self.save_window(window);
            self.probe_rtt_done = None;
        }
        let probes = self.state == State::ProbeRtt;
        if probes {
            self.probe_rtt(now, sample, window);
        }
        if sample.rate.is_some() {
            self.idle_restart = false;
        }
        probes
    }

    /// BBRHandleProbeRTT.
    fn probe_rtt(&mut self, now: u64, sample: &Sample, window: &mut Window) {
        match self.probe_rtt_done {
            None if sample.in_flight <= LEAST_WINDOW => {
                self.probe_rtt_done = Some(now + PROBE_RTT_MS);
                self.probe_rtt_round_done = false;
                self.next_round_delivered = sample.delivered;
            }
            None => {}
            Some(_) => {
                self.probe_rtt_round_done |= self.round_start;
                if self.probe_rtt_round_done {
                    self.check_probe_rtt_done(sample.now, window);
                }
            }
        }
    }

    fn check_probe_rtt_done(&mut self, at: Instant, window: &mut Window) {
        let now = whole_ms(at);
        if self.probe_rtt_done.is_none_or(|done| now <= done) {
            return;
        }
        self.rtprop_at = now;
        window.set((window.cwnd() as u32).max(self.prior_window)); // BBRRestoreCwnd
        if self.filled_pipe {
            self.enter_probe_bw(at);
        } else {
            self.state = State::Startup;
        }
    }

    /// BBRSaveCwnd.
    fn save_window(&mut self, window: &Window) {
        let cwnd = window.cwnd() as u32;
        let usual = self.repair == Repair::Nothing && self.state != State::ProbeRtt;
        self.prior_window = if usual { cwnd } else { cwnd.max(self.prior_window) };
    }

    /// BBRSetCwnd.
    fn set_window(&mut self, sample: &Sample, window: &mut Window, profile: &Profile) {
        let mut cwnd = window.cwnd() as u32;
        if sample.newly_acked > 0 {
            cwnd = self.window_after(cwnd, sample, profile);
        }
        if self.state == State::ProbeRtt {
            cwnd = cwnd.min(LEAST_WINDOW);
        }
        window.set(cwnd);
    }

    fn window_after(&mut self, before: u32, sample: &Sample, profile: &Profile) -> u32 {
        let acked = sample.newly_acked;
        // BBRModulateCwndForRecovery
        let mut cwnd =
            if sample.newly_lost > 0 { before.saturating_sub(sample.newly_lost).max(1) } else { before };
        let earlier = core::mem::replace(&mut self.repair, sample.repair);
        if self.repair == Repair::Recovery && earlier != Repair::Recovery {
            self.packet_conservation = true;
            self.next_round_delivered = sample.delivered;
            cwnd = sample.in_flight + acked;
        } else if earlier != Repair::Nothing && self.repair == Repair::Nothing {
            self.packet_conservation = false;
            cwnd = cwnd.max(self.prior_window);
        }
        if self.packet_conservation {
            return cwnd.max(sample.in_flight + acked);
        }
        let target = self.bdp(self.rate(), self.window_gain(), profile) + self.aggregated();
        let target = self.with_groups(target, profile).min(u64::from(u32::MAX)) as u32;
        if self.filled_pipe {
            cwnd = (cwnd + acked).min(target);
        } else if cwnd < target || sample.delivered < profile.initial_window as u64 {
            cwnd += acked;
        }
        cwnd.max(LEAST_WINDOW)
    }
}

impl Control for Bbr {
    fn established(&mut self, now: Instant, window: &Window, srtt: Option<Span>, profile: &Profile) {
        self.rtprop = srtt.map(whole_us);
        self.rtprop_at = whole_ms(now);
        self.next_round_delivered = 1;
        self.aggregation.began = now;
        self.init_pacing_rate(window.cwnd() as u32, srtt, profile);
    }

    fn set_seed(&mut self, seed: u64) {
        self.draws.seed = seed;
    }

    fn slow_start(&mut self, _window: &mut Window, _ack: &Ack, _profile: &Profile) {}

    fn avoid(&mut self, _window: &mut Window, _ack: &Ack, _profile: &Profile) {}

    /// BBRUpdateModelAndState and BBRUpdateControlParameters.
    fn on_sample(&mut self, window: &mut Window, sample: &Sample, profile: &Profile) -> bool {
        self.update_rate(sample, profile);
        self.update_aggregation(sample, window);
        self.check_cycle(sample, profile);
        self.check_full_pipe(sample);
        self.check_drain(sample, profile);
        let limits = self.update_rtprop(sample, window);
        if !self.has_seen_rtt && sample.srtt.is_some() {
            self.init_pacing_rate(window.cwnd() as u32, sample.srtt, profile);
        }
        self.set_pacing_rate(self.pacing_gain(), profile);
        self.set_window(sample, window, profile);
        limits
    }

    /// BBRSaveCwnd, when a recovery or a reaction to a mark begins; after a timeout, the pipe is not known to be
    /// full any longer.
    fn congestion(&mut self, sign: Sign, window: &Window, _profile: &Profile) -> Cut {
        self.save_window(window);
        if matches!(sign, Sign::Timeout { .. }) {
            self.repair = Repair::Timeout;
            self.full_rate = 0;
            self.round_start = true;
        }
        Cut { share: 1.0, least: 1.0, left: Some(window.ssthresh()) }
    }

    /// BBRHandleRestartFromIdle.
    fn resumed(&mut self, Pause { now, .. }: Pause, window: &mut Window, profile: &Profile) {
        self.idle_restart = true;
        self.aggregation.began = now;
        self.aggregation.acked = 0;
        match self.state {
            State::ProbeBw => self.set_pacing_rate(UNIT, profile),
            State::ProbeRtt => self.check_probe_rtt_done(now, window),
            State::Startup | State::Drain => {}
        }
    }

    /// The reduction was spurious, so the pipe may not have been full.
    fn undone(&mut self, _delivered: u64, _window: &mut Window) -> bool {
        (self.full_rate, self.full_rounds) = (0, 0);
        self.policer = Policer::default();
        false
    }

    fn pacing(&self, profile: &Profile) -> Option<Pacing> {
        let least = if self.pacing_rate < ONE_BY_ONE { 1 } else { profile.pacing_burst };
        let rate = Rate::bps(self.pacing_rate.max(1).saturating_mul(8));
        Some(Pacing { rate, burst: least, as_linux: true })
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    fn flow(rate: u64, rtprop: u64, state: State) -> Bbr {
        let mut bbr = *Bbr::new();
        (bbr.state, bbr.rtprop, bbr.filled_pipe) = (state, Some(rtprop), true);
        bbr.rate.add(0, rate, RATE_ROUNDS);
        bbr
    }

    /// The gain of Startup is 2/ln(2), rounded up to 1/256, and that of Drain its inverse, rounded down (the draft,
    /// sections 4.3.2.1 and 4.3.3). One cycle of ProbeBW sends as much as at a gain of 1 (4.3.4.2).
    #[test]
    fn gains_are_those_of_the_draft() {
        let high = 2.0 / core::f64::consts::LN_2;
        assert_eq!(HIGH_GAIN, libm::ceil(high * 256.0) as u64);
        assert_eq!(DRAIN_GAIN, libm::floor(256.0 / high) as u64);
        assert_eq!(CYCLE.iter().sum::<u64>(), 8 * UNIT);
    }

    /// 10 Mbit/s less headers are 833.3 segments per second; in 40.061 ms, 33.4 of them are on the path. With a
    /// gain of 2 and room for three groups of two, the window is 67 + 6 segments, made even: 74.
    #[test]
    fn the_window_is_two_bandwidth_delay_products_and_three_groups() {
        let profile = Profile::named("linux").expect("built in");
        let rate = 8333 * RATE_STEPS / 10_000_000;
        let mut bbr = flow(rate, 40_061, State::ProbeBw);
        bbr.cycle = 2;
        bbr.set_pacing_rate(UNIT, &profile);
        assert_eq!(bbr.bdp(rate, UNIT, &profile), 34);
        assert_eq!(bbr.with_groups(bbr.bdp(rate, WINDOW_GAIN, &profile), &profile), 74);
        assert_eq!(bbr.inflight(UNIT, &profile), 40);
        bbr.cycle = 0;
        assert_eq!(bbr.inflight(CYCLE[0], &profile), 50, "42 + 6, and 2 while probing");
        let expected = 833.3 * 1448.0 * 0.99;
        assert!((bbr.pacing_rate as f64 / expected - 1.0).abs() < 2e-4, "{}", bbr.pacing_rate);
    }

    /// Groups of segments: one below 1.2 Mbit/s, two below 24 Mbit/s, then what leaves in 1/1024 of a second, up to
    /// 64 KB (the draft, section 4.2.2, with 1/1024 of a second instead of a millisecond).
    #[test]
    fn groups_grow_with_the_rate() {
        let profile = Profile::named("linux").expect("built in");
        for (mbit, expected) in [(1.1, 1), (1.3, 2), (20.0, 2), (100.0, 8), (1000.0, 45)] {
            let mut bbr = *Bbr::new();
            bbr.pacing_rate = (mbit * 125_000.0) as u64;
            assert_eq!(bbr.quantum(&profile), expected, "{mbit} Mbit/s");
        }
    }

    /// ProbeBW begins with any phase but the one that drains (the draft, section 4.3.4.3), each equally often.
    #[test]
    fn a_cycle_begins_anywhere_but_with_the_drain() {
        let mut begun = [0; CYCLE.len()];
        for seed in 0..700 {
            let mut bbr = *Bbr::new();
            bbr.draws.seed = seed;
            bbr.enter_probe_bw(Instant::ZERO);
            begun[bbr.cycle] += 1;
        }
        assert_eq!(begun[1], 0);
        let others = [0, 2, 3, 4, 5, 6, 7].map(|phase| begun[phase]);
        assert!(others.iter().all(|times| (70..=130).contains(times)), "{others:?}");
    }

    /// The pipe is full if, in three rounds in a row, the rate has not grown by a quarter since it last did (the
    /// draft, section 4.3.2.2); rounds limited by the application do not count.
    #[test]
    fn the_pipe_is_full_after_three_rounds_without_growth() {
        let mut sample = sample();
        let mut bbr = *Bbr::new();
        bbr.round_start = true;
        for (rate, app_limited, full) in [
            (1000, false, false),
            (1250, false, false),
            (1500, false, false),
            (1500, false, false),
            (1500, true, false),
            (1500, false, true),
        ] {
            bbr.rate = Largest::new(rate);
            sample.app_limited = app_limited;
            bbr.check_full_pipe(&sample);
            assert_eq!(bbr.filled_pipe, full, "{rate}");
        }
    }

    /// Samples that the application limits do not replace a larger rate, however old it is, but raise a smaller one
    /// (the draft, section 4.1.1.5).
    #[test]
    fn a_sample_that_the_application_limits_counts_only_if_it_is_the_largest() {
        let profile = Profile::named("linux").expect("built in");
        for (app_limited, expected) in [(false, 5), (true, 50)] {
            let mut bbr = *Bbr::new();
            for round in 1..=20 {
                let rate = if round == 1 { 50 } else { 5 };
                let sample = Sample {
                    delivered: 100 * round,
                    prior_delivered: 100 * (round - 1),
                    rate: Some((rate, Span::ms(10))),
                    app_limited,
                    ..sample()
                };
                bbr.update_rate(&sample, &profile);
            }
            assert_eq!(bbr.round, 20);
            assert_eq!(bbr.rate.get(), expected * RATE_STEPS / 10_000, "{app_limited}");
        }
    }
}
