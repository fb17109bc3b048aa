//! Self-clocked rate adaptation for multimedia: RFC 8298.
//!
//! A congestion window limits the bytes in flight, and a target rate follows the window. Section numbers are those of
//! the RFC. The variant for L4S takes two things from draft-johansson-ccwg-rfc8298bis-screamv2: the window backs off in
//! proportion to the share of marked packets, as in DCTCP, and the target rate follows the window. The rest of that draft
//! is not included.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use aqmlab_params::words;
use aqmlab_units::{Instant, Span};
use schemars::JsonSchema;
use serde::Serialize;

use crate::feedback::Acknowledged;
use crate::limits::Limits;

/// The version of this part, incremented whenever a change to it changes a result.
pub const VERSION: u32 = 1;

// The constants of section 4.1.1.1, in seconds, bytes and bit/s.
const QDELAY_TARGET_LO: f64 = 0.1;
const QDELAY_TARGET_HI: f64 = 0.4;
const QDELAY_WEIGHT: f64 = 0.1;
const QDELAY_TREND_TH: f64 = 0.2;
const MIN_CWND: f64 = 3000.0;
const MAX_BYTES_IN_FLIGHT_HEAD_ROOM: f64 = 1.1;
const GAIN: f64 = 1.0;
const BETA_LOSS: f64 = 0.8;
const BETA_ECN: f64 = 0.9;
const BETA_R: f64 = 0.9;
const MSS: f64 = 1000.0;
const RATE_ADJUST_INTERVAL: Span = Span::ms(200);
const RAMP_UP_SPEED: f64 = 200_000.0;
const PRE_CONGESTION_GUARD: f64 = 0.1;
const TX_QUEUE_SIZE_FACTOR: f64 = 1.0;
const RTP_QDELAY_TH: f64 = 0.02;
const TARGET_RATE_SCALE_RTP_QDELAY: f64 = 0.95;
const QDELAY_TREND_LO: f64 = 0.2;
const T_RESUME_FAST_INCREASE: Span = Span::s(5);
const RATE_PACE_MIN: f64 = 50_000.0;

/// Number of values in `qdelay_fraction_hist`.
const FRACTIONS: usize = 20;
/// Numbers of values in the histories of section 4.1.2.3.
const NORMS: usize = 200;
const RECENT_NORMS: usize = 50;
/// The window of the largest number of bytes in flight.
const IN_FLIGHT_WINDOW: Span = Span::s(5);
/// The time over which the median of the media rate is taken; the RFC says more than 10 s.
const MEDIAN: usize = 51;
/// Weight of a round-trip time in the loss event rate, which the RFC leaves open.
const LOSS_EVENT_WEIGHT: f64 = 0.01;
/// Minutes of which the smallest delay is the base delay (RFC 6817, section 4.2: `BASE_HISTORY`).
const BASE_HISTORY: usize = 10;
const MINUTE: Span = Span::s(60);
/// Weight of a sample of the smoothed round-trip time (RFC 6298).
const RTT_GAIN: f64 = 0.125;
/// Weight of a sample in the share of marked packets (`L4S_AVG_G` of the later draft).
const L4S_AVG_G: f64 = 1.0 / 16.0;
/// Without feedback for this long, what is in flight counts as lost, so that a packet may be sent: the RFC asks for a
/// minimum send rate (section 8), and leaves the time open.
const SILENCE: Span = Span::s(1);

words! {
    /// How marks are answered.
    #[derive(Serialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub enum Reaction {
        /// By a fixed factor, as RFC 8298 says.
        Classic = "classic",
        /// In proportion to the share of marked packets.
        L4s = "l4s",
    }
}

/// The controller of one sender.
#[derive(Clone, Debug)]
pub struct Scream {
    limits: Limits,
    reaction: Reaction,
    cwnd: f64,
    in_fast_increase: bool,
    /// Since when the trend has been low, outside the fast increase mode.
    calm_since: Option<Instant>,
    qdelay: f64,
    qdelay_target: f64,
    fraction_avg: f64,
    fractions: VecDeque<f64>,
    trend: f64,
    trend_mem: f64,
    norms: VecDeque<f64>,
    base: VecDeque<f64>,
    base_minute: Instant,
    rtt: Option<f64>,
    in_flight_peaks: VecDeque<(Instant, f64)>,
    last_event: Option<Instant>,
    losses: Losses,
    loss_event_rate: f64,
    lost_this_rtt: bool,
    rtt_began: Instant,
    alpha: f64,
    delivered: u64,
    marked: u64,
    target: f64,
    target_last_max: f64,
    adjusted: Instant,
    rates: Rates,
    last_feedback: Option<Instant>,
}

/// Amounts since the target was adjusted last, and the rates of the interval before, in bit/s.
#[derive(Clone, Debug, Default)]
struct Rates {
    sent_bits: f64,
    acked_bits: f64,
    media_bits: f64,
    transmit: f64,
    ack: f64,
    media: f64,
    recent: VecDeque<f64>,
}

/// Numbers that have not been reported although higher ones have (section 4.1.2.4).
#[derive(Clone, Debug, Default)]
struct Losses {
    next: u64,
    missing: Vec<(u64, Instant)>,
    /// Numbers declared lost, to learn from a late arrival by how much packets are reordered.
    declared: VecDeque<(u64, Instant)>,
    window: Span,
}

impl Losses {
    /// Takes in a report, and returns whether it shows a loss.
    fn update(&mut self, now: Instant, acked: &[Acknowledged]) -> bool {
        for packet in acked {
            if packet.number >= self.next {
                self.missing.extend((self.next..packet.number).map(|number| (number, now)));
                self.next = packet.number + 1;
                continue;
            }
            let late = self.missing.iter().chain(&self.declared).find(|(number, _)| *number == packet.number);
            if let Some(&(_, since)) = late {
                self.window = self.window.max(now.saturating_since(since));
            }
            self.missing.retain(|(number, _)| *number != packet.number);
        }
        let window = self.window;
        let is_lost = |since: Instant| now.saturating_since(since) >= window;
        let lost: Vec<_> = self.missing.iter().filter(|(_, since)| is_lost(*since)).copied().collect();
        self.missing.retain(|(_, since)| !is_lost(*since));
        self.declared.extend(&lost);
        while self.declared.len() > NORMS {
            self.declared.pop_front();
        }
        !lost.is_empty()
    }
}

/// What a report says about the flow as a whole.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Progress {
    /// Bytes by which the highest number that has arrived grew.
    pub newly_acked: f64,
    /// Bytes sent after the packet with the highest number that has arrived.
    pub in_flight: f64,
    /// The round-trip time of that packet, without the time that the receiver held it.
    pub rtt: Span,
}

impl Scream {
    /// Creates the controller.
    pub fn new(limits: Limits, reaction: Reaction) -> Self {
        Scream {
            limits,
            reaction,
            cwnd: MIN_CWND,
            in_fast_increase: true,
            calm_since: None,
            qdelay: 0.0,
            qdelay_target: QDELAY_TARGET_LO,
            fraction_avg: 0.0,
            fractions: VecDeque::from([0.0; FRACTIONS]),
            trend: 0.0,
            trend_mem: 0.0,
            norms: VecDeque::new(),
            base: VecDeque::new(),
            base_minute: Instant::ZERO,
            rtt: None,
            in_flight_peaks: VecDeque::new(),
            last_event: None,
            losses: Losses::default(),
            loss_event_rate: 0.0,
            lost_this_rtt: false,
            rtt_began: Instant::ZERO,
            alpha: 0.0,
            delivered: 0,
            marked: 0,
            target: limits.start,
            target_last_max: 1.0,
            adjusted: Instant::ZERO,
            rates: Rates::default(),
            last_feedback: None,
        }
    }

    /// Returns the target rate in bit/s.
    pub fn target(&self) -> f64 {
        self.target
    }

    /// Returns whether a packet may be sent while this many bytes are in flight (section 4.1.2.5).
    pub fn may_send(&self, len: f64, in_flight: f64) -> bool {
        let slack = if self.qdelay <= self.qdelay_target { MSS } else { 0.0 };
        // A window below one packet would stop the flow for ever.
        in_flight == 0.0 || self.cwnd + slack - in_flight >= len
    }

    /// Returns when the silence of the receiver is over.
    pub fn silent_at(&self) -> Instant {
        self.last_feedback.map_or(Instant::FAR_FUTURE, |last| last + SILENCE)
    }

    /// Notes that a packet was sent, after which this many bytes are in flight.
    pub fn sent(&mut self, now: Instant, len: f64, in_flight: f64) {
        self.rates.sent_bits += 8.0 * len;
        if self.last_feedback.is_none_or(|last| now >= last + SILENCE) {
            // The next packet waits for another silence.
            self.last_feedback = Some(now);
        }
        while self.in_flight_peaks.back().is_some_and(|(_, peak)| *peak <= in_flight) {
            self.in_flight_peaks.pop_back();
        }
        self.in_flight_peaks.push_back((now, in_flight));
        while self.in_flight_peaks.front().is_some_and(|(at, _)| now.saturating_since(*at) > IN_FLIGHT_WINDOW)
        {
            self.in_flight_peaks.pop_front();
        }
    }

    /// Notes that the encoder made a frame of this many bytes.
    pub fn encoded(&mut self, len: f64) {
        self.rates.media_bits += 8.0 * len;
    }

    /// Returns the least time between a packet of `len` bytes and the next one (section 4.1.2.6).
    pub fn pause_after(&self, len: f64) -> Span {
        let Some(rtt) = self.rtt.filter(|&rtt| rtt > 0.0) else { return Span::ZERO };
        let rate = f64::max(RATE_PACE_MIN, 8.0 * self.cwnd / rtt);
        Span::try_from_secs_f64(8.0 * len / rate).unwrap_or(Span::ZERO)
    }

    /// Handles a report. `queued` is the number of bytes that wait to be sent.
    pub fn on_report(&mut self, now: Instant, acked: &[Acknowledged], progress: Progress, queued: f64) {
        self.last_feedback = Some(now);
        let rtt = progress.rtt.as_secs_f64();
        self.rtt = Some(self.rtt.map_or(rtt, |old| old + RTT_GAIN * (rtt - old)));
        self.measure_delay(now, acked);
        self.update_trend();
        self.rates.acked_bits += acked.iter().map(|packet| 8.0 * packet.len).sum::<f64>();
        let lost = self.losses.update(now, acked);
        let marks = acked.iter().filter(|packet| packet.marked).count() as u64;
        self.count_round_trip(now, acked.len() as u64, marks, lost);
        let may_react =
            self.last_event.is_none_or(|last| now.saturating_since(last).as_secs_f64() > self.round_trip());
        if may_react && (lost || marks > 0) {
            self.on_congestion(now, lost);
        } else {
            self.update_cwnd(progress.newly_acked, progress.in_flight);
            self.adjust_qdelay_target();
            self.resume_fast_increase(now);
            if now.saturating_since(self.adjusted) >= RATE_ADJUST_INTERVAL {
                self.adjust_target(now, 8.0 * queued);
            }
        }
    }

    /// Takes the queueing delay of the packet that was sent last: its delay above the smallest of ten minutes (RFC 6817).
    fn measure_delay(&mut self, now: Instant, acked: &[Acknowledged]) {
        if self.base.is_empty() || now.saturating_since(self.base_minute) >= MINUTE {
            self.base.push_back(f64::INFINITY);
            self.base_minute = now;
            if self.base.len() > BASE_HISTORY {
                self.base.pop_front();
            }
        }
        for packet in acked {
            let delay = packet.arrived.as_secs_f64() - packet.sent.as_secs_f64();
            if let Some(least) = self.base.back_mut() {
                *least = f64::min(*least, delay);
            }
            let base = self.base.iter().fold(f64::INFINITY, |least, &minute| f64::min(least, minute));
            self.qdelay = delay - base;
        }
    }

    /// `update_variables` of section 4.1.2.
    fn update_trend(&mut self) {
        let fraction = self.qdelay / self.qdelay_target;
        self.fraction_avg = (1.0 - QDELAY_WEIGHT) * self.fraction_avg + QDELAY_WEIGHT * fraction;
        self.fractions.pop_front();
        self.fractions.push_back(fraction);
        let correlation = lag_one(&self.fractions);
        self.trend = (correlation * self.fraction_avg).clamp(0.0, 1.0);
        self.trend_mem = f64::max(0.99 * self.trend_mem, self.trend);
    }

    /// Counts losses and marks by round-trip times.
    fn count_round_trip(&mut self, now: Instant, delivered: u64, marks: u64, lost: bool) {
        self.delivered += delivered;
        self.marked += marks;
        self.lost_this_rtt |= lost;
        if now.saturating_since(self.rtt_began).as_secs_f64() < self.round_trip() {
            return;
        }
        if self.delivered > 0 {
            let share = self.marked as f64 / self.delivered as f64;
            self.alpha = L4S_AVG_G * share + (1.0 - L4S_AVG_G) * self.alpha;
        }
        let lost = f64::from(u8::from(self.lost_this_rtt));
        self.loss_event_rate += LOSS_EVENT_WEIGHT * (lost - self.loss_event_rate);
        (self.delivered, self.marked, self.lost_this_rtt, self.rtt_began) = (0, 0, false, now);
    }

    fn round_trip(&self) -> f64 {
        self.rtt.unwrap_or(0.0)
    }

    /// Reacts to a loss or a mark (sections 4.1.2.1 and 4.1.3).
    fn on_congestion(&mut self, now: Instant, lost: bool) {
        self.in_fast_increase = false;
        self.calm_since = None;
        self.last_event = Some(now);
        self.target_last_max = self.target;
        let window = match (lost, self.reaction) {
            (true, _) => BETA_LOSS,
            (false, Reaction::Classic) => BETA_ECN,
            (false, Reaction::L4s) => 1.0 - 0.5 * self.alpha,
        };
        self.cwnd = f64::max(MIN_CWND, self.cwnd * window);
        let target = match (lost, self.reaction) {
            (true, _) => BETA_R * self.target,
            (false, Reaction::Classic) => BETA_ECN * self.target,
            // Marks come in almost every round-trip time, so a factor for each would take the rate to its minimum.
            (false, Reaction::L4s) => {
                f64::min(self.target, 8.0 * self.cwnd / f64::max(self.round_trip(), 1e-3))
            }
        };
        self.target = f64::max(self.limits.least, target);
        self.adjust_qdelay_target();
    }

    /// `update_cwnd` of section 4.1.2.2.
    fn update_cwnd(&mut self, newly_acked: f64, in_flight: f64) {
        if self.in_fast_increase {
            if self.trend < QDELAY_TREND_TH {
                if in_flight * 1.5 + newly_acked > self.cwnd {
                    self.cwnd += newly_acked;
                }
                return;
            }
            self.in_fast_increase = false;
            // Section 4.1.3: the maximum is updated when congestion is detected.
            self.target_last_max = self.target;
        }
        let off_target = (self.qdelay_target - self.qdelay) / self.qdelay_target;
        let is_unused = in_flight * 1.25 + newly_acked <= self.cwnd;
        if !(off_target > 0.0 && is_unused) {
            self.cwnd += GAIN * off_target * newly_acked * MSS / self.cwnd;
        }
        let most = self.in_flight_peaks.front().map_or(0.0, |(_, peak)| *peak);
        self.cwnd = f64::max(MIN_CWND, f64::min(self.cwnd, most * MAX_BYTES_IN_FLIGHT_HEAD_ROOM));
    }

    /// `adjust_qdelay_target` of section 4.1.2.3.
    fn adjust_qdelay_target(&mut self) {
        self.norms.push_back(self.qdelay / QDELAY_TARGET_LO);
        if self.norms.len() > NORMS {
            self.norms.pop_front();
        }
        let variance = variance(&self.norms);
        let recent = self.norms.len().min(RECENT_NORMS);
        let average = self.norms.iter().rev().take(recent).sum::<f64>() / recent as f64;
        let new_target = (average + libm::sqrt(variance)) * QDELAY_TARGET_LO;
        let target = if self.loss_event_rate > 0.002 {
            1.5 * new_target
        } else if variance < 0.2 {
            new_target
        } else if new_target < QDELAY_TARGET_LO {
            f64::max(0.5 * self.qdelay_target, new_target)
        } else {
            0.9 * self.qdelay_target
        };
        self.qdelay_target = target.clamp(QDELAY_TARGET_LO, QDELAY_TARGET_HI);
    }

    /// Section 4.1.2.7.
    fn resume_fast_increase(&mut self, now: Instant) {
        if self.in_fast_increase {
            return;
        }
        if self.trend >= QDELAY_TREND_LO {
            self.calm_since = None;
            return;
        }
        let since = *self.calm_since.get_or_insert(now);
        if now.saturating_since(since) >= T_RESUME_FAST_INCREASE {
            self.in_fast_increase = true;
            self.calm_since = None;
        }
    }

    /// Adjusts the target rate (section 4.1.3). `queued` bits wait to be sent.
    fn adjust_target(&mut self, now: Instant, queued: f64) {
        let interval = RATE_ADJUST_INTERVAL.as_secs_f64();
        self.rates.turn(now.saturating_since(self.adjusted).as_secs_f64());
        self.adjusted = now;
        let current = f64::max(self.rates.transmit, self.rates.ack);
        let ramp_up = f64::min(RAMP_UP_SPEED, 0.5 * self.target);
        let distance = 4.0 * (self.target - self.target_last_max) / self.target_last_max;
        let scale = (distance * distance).clamp(0.2, 1.0);
        if self.in_fast_increase {
            self.target += ramp_up * interval * scale;
        } else {
            let delta = current * (1.0 - PRE_CONGESTION_GUARD * self.trend) - TX_QUEUE_SIZE_FACTOR * queued;
            self.target += if delta > 0.0 { f64::min(delta * scale, ramp_up * interval) } else { delta };
            if current > 0.0 && queued / current > RTP_QDELAY_TH {
                self.target *= TARGET_RATE_SCALE_RTP_QDELAY;
            }
        }
        let media = f64::max(current, f64::max(self.rates.media, self.rates.median()));
        self.target = f64::min(self.target, media * (2.0 - self.trend_mem));
        self.target = self.target.clamp(self.limits.least, self.limits.most);
    }
}

impl Rates {
    /// Ends an interval of this many seconds.
    fn turn(&mut self, seconds: f64) {
        self.transmit = self.sent_bits / seconds;
        self.ack = self.acked_bits / seconds;
        self.media = self.media_bits / seconds;
        (self.sent_bits, self.acked_bits, self.media_bits) = (0.0, 0.0, 0.0);
        self.recent.push_back(self.media);
        if self.recent.len() > MEDIAN {
            self.recent.pop_front();
        }
    }

    fn median(&self) -> f64 {
        let mut sorted: Vec<f64> = self.recent.iter().copied().collect();
        sorted.sort_unstable_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
    }
}

/// Returns the autocorrelation at lag 1, divided by that at lag 0, after the mean has been removed; 0 for constant values.
fn lag_one(values: &VecDeque<f64>) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let at_zero: f64 = values.iter().map(|x| (x - mean) * (x - mean)).sum();
    let at_one: f64 = values.iter().zip(values.iter().skip(1)).map(|(x, y)| (x - mean) * (y - mean)).sum();
    if at_zero > 0.0 { at_one / at_zero } else { 0.0 }
}

fn variance(values: &VecDeque<f64>) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    values.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / values.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { start: 500_000.0, least: 100_000.0, most: 2_000_000.0 };

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Span::ms(ms)
    }

    fn acked(number: u64, arrived_ms: u64, delay_ms: u64, marked: bool) -> Acknowledged {
        let arrived = at(arrived_ms);
        Acknowledged { number, len: 1000.0, sent: at(arrived_ms - delay_ms), arrived, marked }
    }

    fn report(control: &mut Scream, ms: u64, packets: &[Acknowledged]) {
        let newly_acked = 1000.0 * packets.len() as f64;
        let progress = Progress { newly_acked, in_flight: 4000.0, rtt: Span::ms(50) };
        control.on_report(at(ms), packets, progress, 0.0);
    }

    /// A flow without queueing: each of `count` reports, 20 ms apart from 20 ms on, acknowledges a packet.
    fn calm(count: u64) -> Scream {
        let mut control = Scream::new(LIMITS, Reaction::Classic);
        for n in 0..count {
            control.sent(at(20 * n), 1000.0, 4000.0);
            report(&mut control, 20 * n + 20, &[acked(n, 20 * n + 20, 10, false)]);
        }
        control
    }

    /// Section 4.1.2.2: in the fast increase mode, the window grows by what is acknowledged while it is used: 4000 * 1.5
    /// + 1000 > cwnd up to 7000 B, so it grows from 3000 to 7000 B.
    #[test]
    fn the_window_grows_by_what_is_acknowledged() {
        assert_eq!(calm(1).cwnd, 4000.0);
        assert_eq!(calm(4).cwnd, 7000.0);
        assert_eq!(calm(9).cwnd, 7000.0);
    }

    /// Section 4.1.3: the fast increase mode raises the target by 200 kbit/s per second, that is 40 kbit/s per 200 ms.
    #[test]
    fn the_target_ramps_up() {
        let mut control = Scream::new(LIMITS, Reaction::Classic);
        for n in 0..10 {
            control.sent(at(20 * n), 2000.0, 4000.0);
            control.encoded(2000.0);
            report(&mut control, 20 * n + 20, &[acked(n, 20 * n + 20, 10, false)]);
        }
        // 200 ms after the start, 20 000 B have been sent: 800 kbit/s, so the limit by the media rate does not apply.
        assert!((control.target() - 540_000.0).abs() < 1e-6, "{}", control.target());
    }

    /// Sections 4.1.2.1 and 4.1.3: 0.8 of the window and 0.9 of the target after a loss, 0.9 of both after a mark, once
    /// per round-trip time.
    #[test]
    fn losses_and_marks_lower_window_and_target() {
        for (lost, factor) in [(true, BETA_LOSS), (false, BETA_ECN)] {
            let mut control = calm(5);
            let target = control.target();
            let number = if lost { 6 } else { 5 };
            report(&mut control, 120, &[acked(number, 120, 10, !lost)]);
            assert!((control.cwnd - 7000.0 * factor).abs() < 1e-9, "{}", control.cwnd);
            assert!((control.target() - 0.9 * target).abs() < 1e-6);
            assert!(!control.in_fast_increase);
            report(&mut control, 140, &[acked(number + 1, 140, 10, true)]);
            assert_eq!(control.last_event, Some(at(120)), "no second reaction within 50 ms");
        }
    }

    /// The later draft: cwnd is scaled by 1 - alpha / 2. One of the 5 packets of a round-trip time is marked after a
    /// round-trip time without marks: alpha = 1/5 / 16.
    #[test]
    fn l4s_backs_off_in_proportion() {
        let mut control = Scream { reaction: Reaction::L4s, ..calm(5) };
        let packets: Vec<_> = (5..10).map(|number| acked(number, 180, 10, number == 9)).collect();
        control.count_round_trip(at(110), 0, 0, false);
        let cwnd = control.cwnd;
        report(&mut control, 180, &packets);
        assert!((control.cwnd - cwnd * (1.0 - 0.5 * 0.2 / 16.0)).abs() < 1e-9, "{}", control.cwnd);
    }

    /// Outside the fast increase mode, the window follows LEDBAT: with a queueing delay of twice the target, it shrinks
    /// by newly_acked * MSS / cwnd.
    #[test]
    fn a_delay_above_the_target_shrinks_the_window() {
        let mut control = calm(8);
        control.in_fast_increase = false;
        (control.qdelay, control.qdelay_target, control.cwnd) = (0.2, 0.1, 4000.0);
        control.update_cwnd(1000.0, 4000.0);
        assert!((control.cwnd - (4000.0 - 250.0)).abs() < 1e-9, "{}", control.cwnd);
        // The window is limited to 1.1 times the bytes in flight.
        (control.qdelay, control.cwnd) = (0.0, 4390.0);
        control.update_cwnd(1000.0, 4000.0);
        assert!((control.cwnd - 4400.0).abs() < 1e-9, "{}", control.cwnd);
    }

    /// Section 4.1.2.5.
    #[test]
    fn the_send_window_has_slack_below_the_target_delay() {
        let mut control = calm(4);
        assert!(control.may_send(1000.0, 7000.0) && !control.may_send(1001.0, 7000.0));
        control.qdelay = 0.15;
        assert!(!control.may_send(1000.0, 6001.0) && control.may_send(1000.0, 6000.0));
        assert_eq!(control.silent_at(), at(80) + SILENCE, "the last report came at 80 ms");
    }

    /// Section 4.1.2.6: a packet of 1000 B at a window of 7000 B per 50 ms.
    #[test]
    fn packets_are_paced_by_the_window() {
        let pause = calm(4).pause_after(1000.0).as_secs_f64();
        assert!((pause - 0.05 / 7.0).abs() < 1e-9);
    }

    /// The trend is the correlation of successive delays times their average; a rising delay raises it.
    #[test]
    fn a_rising_delay_ends_the_fast_increase() {
        let mut control = calm(5);
        for n in 5..25 {
            let ms = 20 * n + 20;
            report(&mut control, ms, &[acked(n, ms, 10 + 6 * (n - 5), false)]);
        }
        assert!(control.trend > QDELAY_TREND_TH && !control.in_fast_increase);
        // By hand, for 1, 2, 3, 4: (-1.5)(-0.5) + (-0.5)(0.5) + (0.5)(1.5) = 1.25, of 5.
        assert!((lag_one(&VecDeque::from([1.0, 2.0, 3.0, 4.0])) - 0.25).abs() < 1e-12);
    }

    /// Section 4.1.2.4: a packet that arrives late opens the reordering window.
    #[test]
    fn a_late_packet_teaches_the_reordering_window() {
        let mut losses = Losses::default();
        let packet = |number| [acked(number, 100, 10, false)];
        assert!(!losses.update(at(0), &packet(0)));
        assert!(losses.update(at(10), &packet(2)), "no window yet");
        assert!(!losses.update(at(30), &packet(1)));
        assert_eq!(losses.window, Span::ms(20));
        assert!(!losses.update(at(40), &packet(4)) && !losses.update(at(50), &packet(3)));
        assert!(
            !losses.update(at(60), &packet(6)) && losses.update(at(80), &packet(7)),
            "5 is lost after 20 ms"
        );
    }
}
