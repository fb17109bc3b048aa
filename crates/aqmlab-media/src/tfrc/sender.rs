//! The sender of RFC 5348, section 4.

use alloc::vec::Vec;

use aqmlab_units::{Instant, Span};

use super::equation::throughput;
use super::receiver::Report;

/// The longest time between packets, in seconds (`t_mbi`).
const LONGEST_GAP_S: f64 = 64.0;
/// The weight of the previous estimate of the round-trip time (`q`).
const RTT_WEIGHT: f64 = 0.9;
/// The weight of the previous average of the square root of the round-trip time (`q2`, section 4.5).
const ROOT_WEIGHT: f64 = 0.9;
/// The time to the first nofeedback timer.
const FIRST_NOFEEDBACK: Span = Span::s(2);

/// A TFRC sender. Rates are in bytes per second.
#[derive(Clone, Debug)]
pub struct Sender {
    /// The size of packets (`s`).
    size: f64,
    /// Whether section 4.5 applies.
    prevents_oscillation: bool,
    /// The allowed rate (`X`).
    rate: f64,
    /// The rate of the equation (`X_Bps`).
    of_equation: f64,
    rtt: Option<f64>,
    /// The averaged square root of the round-trip time, and the last sample.
    root: f64,
    sample: f64,
    /// When the rate was last doubled (`tld`).
    doubled_at: Instant,
    /// Recent values of `X_recv`, each with its instant.
    received: Vec<(Instant, f64)>,
    p: f64,
    /// When the nofeedback timer fires.
    nofeedback: Instant,
    /// Whether anything was sent since the timer was set.
    sent_since: bool,
    /// Instants at which the rate, not the application, limited the sender, after the last packet that a report covers.
    limited: Vec<Instant>,
}

impl Sender {
    /// Creates the sender of packets of `size` bytes.
    pub fn new(size: f64, prevents_oscillation: bool) -> Self {
        Sender {
            size,
            prevents_oscillation,
            // Section 4.2: one packet per second until there is feedback.
            rate: size,
            of_equation: f64::INFINITY,
            rtt: None,
            root: 0.0,
            sample: 0.0,
            doubled_at: Instant::ZERO,
            received: alloc::vec![(Instant::ZERO, f64::INFINITY)],
            p: 0.0,
            nofeedback: Instant::FAR_FUTURE,
            sent_since: false,
            limited: Vec::new(),
        }
    }

    /// Returns the allowed rate in bytes per second (`X`), or that of section 4.5 (`X_inst`).
    pub fn rate(&self) -> f64 {
        if self.prevents_oscillation && self.sample > 0.0 && self.root > 0.0 {
            return f64::max(self.rate * self.root / libm::sqrt(self.sample), self.least());
        }
        self.rate
    }

    /// Returns the estimate of the round-trip time.
    pub fn rtt(&self) -> Option<Span> {
        self.rtt.and_then(Span::try_from_secs_f64)
    }

    /// Notes that a packet was sent, and whether more data waits for the rate.
    pub fn sent(&mut self, now: Instant, more_waits: bool) {
        if self.nofeedback == Instant::FAR_FUTURE {
            self.nofeedback = now + FIRST_NOFEEDBACK;
        }
        self.sent_since = true;
        if more_waits {
            self.limited.push(now);
        }
    }

    /// Handles a report (section 4.3).
    pub fn on_report(&mut self, now: Instant, report: &Report) {
        let elapsed = now.saturating_since(report.sent_at).saturating_sub(report.delay);
        self.sample = elapsed.as_secs_f64();
        let first = self.rtt.is_none();
        let rtt = match self.rtt {
            None => self.sample,
            Some(rtt) => RTT_WEIGHT * rtt + (1.0 - RTT_WEIGHT) * self.sample,
        };
        self.rtt = Some(rtt);
        let root = libm::sqrt(self.sample);
        self.root = if first { root } else { ROOT_WEIGHT * self.root + (1.0 - ROOT_WEIGHT) * root };
        let covered = self.limited.partition_point(|&at| at <= report.sent_at);
        let data_limited = covered == 0;
        self.limited.drain(..covered);
        if first {
            // Section 4.2: the initial window, per round-trip time.
            self.rate = self.initial_rate();
            self.doubled_at = now;
            self.p = report.loss_event_rate;
            self.maximize(now, report.received_per_s);
        } else {
            let worse = report.loss_event_rate > self.p;
            self.p = report.loss_event_rate;
            let limit = if data_limited && worse {
                for (_, rate) in &mut self.received {
                    *rate *= 0.5;
                }
                self.maximize(now, 0.85 * report.received_per_s)
            } else if data_limited {
                2.0 * self.maximize(now, report.received_per_s)
            } else {
                2.0 * self.update(now, report.received_per_s)
            };
            self.set_rate(now, limit);
        }
        self.restart_timer(now);
    }

    /// Returns when the nofeedback timer fires.
    pub fn timer(&self) -> Instant {
        self.nofeedback
    }

    /// Handles the expiry of the nofeedback timer (section 4.4).
    pub fn on_timer(&mut self, now: Instant) {
        let received = self.most_received();
        let recovery = self.initial_rate();
        let idle = !self.sent_since;
        if self.rtt.is_none() {
            self.rate = f64::max(0.5 * self.rate, self.least());
        } else if idle
            && ((self.p > 0.0 && received < recovery) || (self.p == 0.0 && self.rate < 2.0 * recovery))
        {
            // The rate of an idle sender is not lowered further than it may have at once.
        } else if self.p == 0.0 {
            self.rate = f64::max(0.5 * self.rate, self.least());
        } else if self.of_equation > 2.0 * received {
            self.limit_to(now, received);
        } else {
            self.limit_to(now, 0.5 * self.of_equation);
        }
        self.restart_timer(now);
    }

    /// `Update_Limits` of section 4.4.
    fn limit_to(&mut self, now: Instant, limit: f64) {
        let limit = f64::max(limit, self.least());
        self.received = alloc::vec![(now, 0.5 * limit)];
        self.set_rate(now, limit);
    }

    /// Sets the allowed rate (section 4.3, step 4); `limit` is `recv_limit`.
    fn set_rate(&mut self, now: Instant, limit: f64) {
        let rtt = self.rtt.unwrap_or(0.0);
        if self.p > 0.0 {
            self.of_equation = throughput(self.size, rtt, self.p);
            self.rate = f64::max(f64::min(self.of_equation, limit), self.least());
        } else if now.saturating_since(self.doubled_at).as_secs_f64() >= rtt {
            self.rate = f64::max(f64::min(2.0 * self.rate, limit), self.initial_rate());
            self.doubled_at = now;
        }
    }

    /// Restarts the nofeedback timer: four round-trip times, or twice the time between packets if that is longer.
    fn restart_timer(&mut self, now: Instant) {
        let gaps = 2.0 * self.size / self.rate;
        let wait = self.rtt.map_or(gaps.max(FIRST_NOFEEDBACK.as_secs_f64()), |rtt| f64::max(4.0 * rtt, gaps));
        self.nofeedback = now + Span::try_from_secs_f64(wait).unwrap_or(Span::s(64));
        self.sent_since = false;
    }

    /// `Maximize X_recv_set`: keeps only the largest value, and returns it.
    fn maximize(&mut self, now: Instant, rate: f64) -> f64 {
        self.received.push((now, rate));
        self.received.retain(|(_, rate)| rate.is_finite());
        let most = self.most_received();
        self.received = alloc::vec![(now, most)];
        most
    }

    /// `Update X_recv_set`: keeps the values of the last two round-trip times, and returns the largest.
    fn update(&mut self, now: Instant, rate: f64) -> f64 {
        let window = 2.0 * self.rtt.unwrap_or(0.0);
        self.received.push((now, rate));
        self.received.retain(|&(at, _)| now.saturating_since(at).as_secs_f64() <= window);
        self.most_received()
    }

    fn most_received(&self) -> f64 {
        self.received.iter().fold(0.0, |most, &(_, rate)| f64::max(most, rate))
    }

    /// Returns `W_init / R`: at most four packets, at least two packets or 4380 bytes (RFC 3390).
    fn initial_rate(&self) -> f64 {
        let window = f64::min(4.0 * self.size, f64::max(2.0 * self.size, 4380.0));
        self.rtt.map_or(self.size, |rtt| window / rtt)
    }

    /// Returns the lowest rate: a packet per 64 s.
    fn least(&self) -> f64 {
        self.size / LONGEST_GAP_S
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Span::ms(ms)
    }

    fn report(sent_ms: u64, received_per_s: f64, loss_event_rate: f64) -> Report {
        Report { sent_at: at(sent_ms), delay: Span::ZERO, received_per_s, loss_event_rate }
    }

    /// A sender of 1000 B packets whose first packet, sent at 0, is reported at 100 ms.
    fn begun() -> Sender {
        let mut sender = Sender::new(1000.0, false);
        assert_eq!(sender.rate(), 1000.0, "section 4.2: one packet per second");
        sender.sent(at(0), true);
        assert_eq!(sender.timer(), at(2000), "section 4.2: two seconds");
        sender.on_report(at(100), &report(0, 0.0, 0.0));
        sender
    }

    /// Section 4.2: W_init = min(4 MSS, max(2 MSS, 4380)) = 4000 B, so W_init / R = 40 kB/s.
    #[test]
    fn the_first_report_allows_the_initial_window_per_round_trip() {
        let sender = begun();
        assert!((sender.rate() - 40_000.0).abs() < 1e-6);
        assert_eq!(sender.timer(), at(500), "RTO = max(4 R, 2 s / X) = 400 ms");
    }

    /// Section 4.3: the rate doubles once per round-trip time, limited by twice what arrives.
    #[test]
    fn slow_start_doubles_up_to_twice_what_arrives() {
        let mut sender = begun();
        sender.sent(at(100), true);
        sender.on_report(at(200), &report(100, 40_000.0, 0.0));
        assert!((sender.rate() - 80_000.0).abs() < 1e-6);
        sender.sent(at(200), true);
        sender.on_report(at(300), &report(200, 30_000.0, 0.0));
        assert!((sender.rate() - 80_000.0).abs() < 1e-6, "2 max(40, 30) kB/s");
    }

    /// Section 4.3 with p > 0: X = max(min(X_Bps, recv_limit), s / t_mbi).
    #[test]
    fn with_losses_the_equation_or_the_receiver_limits_the_rate() {
        let mut sender = begun();
        sender.sent(at(100), true);
        sender.on_report(at(200), &report(100, 1e9, 0.01));
        let equation = throughput(1000.0, 0.1, 0.01);
        assert!((sender.rate() / equation - 1.0).abs() < 1e-9);
        sender.sent(at(500), true);
        sender.on_report(at(600), &report(500, 10_000.0, 0.01));
        assert!((sender.rate() - 20_000.0).abs() < 1e-6, "older values have left the set: {}", sender.rate());
    }

    /// Section 4.3: a data-limited sender that hears of more losses keeps 0.85 X_recv, not twice X_recv.
    #[test]
    fn a_data_limited_sender_is_limited_to_what_it_used() {
        let mut sender = begun();
        sender.sent(at(100), false);
        sender.on_report(at(200), &report(100, 20_000.0, 0.000_1));
        assert!((sender.rate() - 17_000.0).abs() < 1e-6, "{}", sender.rate());
        sender.sent(at(200), false);
        sender.on_report(at(300), &report(200, 20_000.0, 0.000_1));
        assert!((sender.rate() - 40_000.0).abs() < 1e-6, "{}", sender.rate());
    }

    /// Section 4.4: without feedback, the rate is halved in slow start; with losses, half of the smaller of the
    /// equation's rate and twice what arrived.
    #[test]
    fn without_feedback_the_rate_falls() {
        let mut sender = begun();
        sender.sent(at(110), true);
        sender.on_timer(at(500));
        assert!((sender.rate() - 20_000.0).abs() < 1e-6);
        let mut sender = begun();
        sender.sent(at(100), true);
        sender.on_report(at(200), &report(100, 30_000.0, 0.000_1));
        assert!((sender.rate() - 60_000.0).abs() < 1e-6);
        sender.sent(at(210), true);
        sender.on_timer(at(600));
        assert!((sender.rate() - 30_000.0).abs() < 1e-6, "{}", sender.rate());
    }

    /// Section 4.5: X_inst = X R_sqmean / sqrt(R_sample). After samples of 100 ms and 400 ms, R_sqmean is 0.9 sqrt(0.1)
    /// + 0.1 sqrt(0.4).
    #[test]
    fn oscillation_prevention_follows_the_square_root_of_the_round_trip_time() {
        let mut sender = Sender::new(1000.0, true);
        sender.sent(at(0), true);
        sender.on_report(at(100), &report(0, 0.0, 0.0));
        sender.sent(at(100), true);
        sender.on_report(at(500), &report(100, 50_000.0, 0.01));
        let root = 0.9 * libm::sqrt(0.1) + 0.1 * libm::sqrt(0.4);
        let plain = throughput(1000.0, 0.13, 0.01);
        assert!((sender.rate() / (plain * root / libm::sqrt(0.4)) - 1.0).abs() < 1e-9, "{}", sender.rate());
    }

    #[test]
    fn the_rate_never_falls_below_a_packet_in_64_s() {
        let mut sender = Sender::new(1000.0, false);
        sender.sent(at(0), true);
        for _ in 0..20 {
            let timer = sender.timer();
            sender.on_timer(timer);
        }
        assert_eq!(sender.rate(), 1000.0 / 64.0);
    }
}
