//! PIE (RFC 8033). A proportional-integral controller of the queueing delay: at each update, a drop or mark
//! probability rises by `alpha` times the distance of the delay from its target plus `beta` times the growth of
//! the delay, both scaled down while the probability is small.
//!
//! Probabilities are whole numbers of units, so that many equal updates can be made in one operation, with the
//! same result to the last bit, and a packet costs no division.

use aqmlab_units::{Bytes, Instant, Rate, Span};

use super::{Decision, Notice, Sampling};
use crate::Reason;

/// How times and probabilities are computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PieArithmetic {
    /// In nanoseconds, with probabilities in units of 2^-60.
    Exact,
    /// Like Linux: times in whole units of 64 ns, probabilities in units of 1 / (2^56 - 1), gains in
    /// sixteenths of 1/s that are rounded down after each scaling. A probability may exceed 1. The delay at the
    /// last departure, not that at the last update, spares packets; the burst allowance shrinks with departures.
    Linux,
}

/// How the queueing delay is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PieDelay {
    /// It is the waiting time of the packet that left last.
    Timestamps,
    /// It is the backlog divided by the departure rate, which is measured each time that this many bytes have
    /// left a queue of at least this many bytes, `DQ_THRESHOLD`.
    Rate(Bytes),
}

/// Parameters of the law.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PieParams {
    /// The acceptable delay, `QDELAY_REF`.
    pub target: Span,
    /// The time between two updates of the probability, `T_UPDATE`.
    pub t_update: Span,
    /// Weight of the distance of the delay from the target, in 1/s.
    pub alpha: f64,
    /// Weight of the growth of the delay, in 1/s.
    pub beta: f64,
    /// The time for which no packet is chosen after the queue was uncongested, `MAX_BURST`.
    pub max_burst: Span,
    /// Half of the backlog up to which no packet is chosen, `MEAN_PKTSIZE`.
    pub mean_packet: Bytes,
    /// The probability below which a mark may replace a drop, `mark_ecnth`.
    pub mark_below: f64,
    /// The factor by which each update multiplies the probability while the delay is zero; above 0.5.
    pub decay: f64,
    /// Whether an update raises a probability of at least 0.1 by at most 0.02 (section 5.5).
    pub cap: bool,
    /// Whether an update adds 0.02 if the delay exceeds 250 ms (Linux).
    pub surge: bool,
    /// Whether choices are spread (section 5.4).
    pub derandomize: bool,
    /// The size relative to which smaller packets have a smaller probability, if they do.
    pub largest: Option<Bytes>,
    /// How the queueing delay is found.
    pub delay: PieDelay,
    /// How times and probabilities are computed.
    pub arithmetic: PieArithmetic,
}

/// The number of probabilities at which the scaling of the gains changes: 0.1, 0.01, ... 0.000001.
const BOUNDS: usize = 6;
/// RFC 8033, section 4.2: the gains are divided by 2 below 0.1, by 8 below 0.01, ... by 2048 below 0.000001.
/// This is the number of bits, by the number of bounds that the probability is below.
const SHIFTS: [u32; BOUNDS + 1] = [0, 1, 3, 5, 7, 9, 11];
/// The delay above which [`PieParams::surge`] acts.
const SURGE: Span = Span::ms(250);
/// Linux's times have this many bits less than a number of nanoseconds.
const LINUX_TIME_BITS: u32 = 6;
/// The number of Linux's units of time per second.
const LINUX_TICKS_PER_S: u64 = 15_625_000;
/// Fractional bits of Linux's departure rate, which is in bytes per unit of time.
const LINUX_RATE_BITS: u32 = 8;

/// Numbers that depend on the parameters alone, in the law's own units.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Scales {
    /// Probability 1.
    one: u64,
    /// A probability is below 10^-(k+1) if it is less than element k.
    bounds: [u64; BOUNDS],
    /// The probability below which a short delay spares packets: 0.2.
    fifth: u64,
    /// Probability 0.02 where a rise is compared with it or added, and where it replaces the rise.
    rise: (u64, u64),
    /// The probability below which a mark may replace a drop.
    mark_below: u64,
    /// Accumulated probabilities below which no packet is chosen, and from which each one is: 0.85 and 8.5.
    spread: (u64, u64),
    /// The number of bits by which times in nanoseconds are shifted right.
    time_bits: u32,
    target: u64,
    /// A delay is shorter than half the target if it is less than this.
    half_target: u64,
    max_burst: u64,
    surge: u64,
    /// A backlog that spares packets is less than this.
    spared: u64,
}

impl Scales {
    fn new(params: &PieParams) -> Self {
        let PieParams { target, max_burst, mean_packet, mark_below, .. } = *params;
        let spared = 2 * mean_packet.get();
        match params.arithmetic {
            PieArithmetic::Exact => {
                let one = 1u64 << 60;
                // The least whole number of units that is not below the fraction 1 / n.
                let part = |n: u64| one.div_ceil(n);
                let mut n = 1;
                Scales {
                    one,
                    bounds: [(); BOUNDS].map(|()| {
                        n *= 10;
                        part(n)
                    }),
                    fifth: part(5),
                    rise: (one / 50, one / 50),
                    mark_below: libm::ceil(mark_below * one as f64) as u64,
                    spread: (part(20) * 17, part(2) * 17),
                    time_bits: 0,
                    target: target.as_ns(),
                    half_target: target.as_ns().div_ceil(2),
                    max_burst: max_burst.as_ns(),
                    surge: SURGE.as_ns(),
                    spared: spared + 1,
                }
            }
            PieArithmetic::Linux => {
                let one = (1u64 << 56) - 1;
                let ticks = |time: Span| time.as_ns() >> LINUX_TIME_BITS;
                let mut n = 1;
                Scales {
                    one,
                    bounds: [(); BOUNDS].map(|()| {
                        n *= 10;
                        one / n
                    }),
                    fifth: one / 5,
                    rise: (one / 50, one / 100 * 2),
                    // At the threshold itself, Linux still marks.
                    mark_below: libm::floor(mark_below * one as f64) as u64 + 1,
                    spread: (one / 100 * 85, one / 2 * 17),
                    time_bits: LINUX_TIME_BITS,
                    target: ticks(target),
                    half_target: ticks(target) / 2,
                    max_burst: ticks(max_burst),
                    surge: ticks(SURGE),
                    spared,
                }
            }
        }
    }
}

/// The law's state. Times and probabilities are in the units of [`PieArithmetic`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PieLaw {
    params: PieParams,
    scales: Scales,
    sampling: Sampling,
    p: u64,
    /// `p` divided by the size relative to which it is scaled.
    p_per_byte: u64,
    /// The sum of the probabilities since the last choice, for derandomisation.
    accumulated: u64,
    /// The delay at present, `current_qdelay`; with a departure rate, that at the last update.
    delay: u64,
    /// The delay at the last update, `qdelay_old`.
    old: u64,
    /// The time for which no packet will be chosen, `burst_allowance`.
    burst: u64,
    /// With a departure rate: the beginning of the present measurement. In Linux's arithmetic with timestamps: the
    /// last departure. `None` if there is none.
    since: Option<u64>,
    /// The number of bytes that have left since the measurement began.
    left: u64,
    /// The departure rate: the average time per `DQ_THRESHOLD` bytes, or, in Linux's arithmetic, the rate itself;
    /// 0 before the first measurement.
    drain: f64,
}

impl PieLaw {
    /// Creates the law for an empty queue at time zero; the first update is due after one period.
    pub fn new(params: PieParams) -> Self {
        let scales = Scales::new(&params);
        PieLaw {
            params,
            scales,
            sampling: Sampling::every(params.t_update),
            p: 0,
            p_per_byte: 0,
            accumulated: 0,
            delay: 0,
            old: 0,
            burst: scales.max_burst,
            since: None,
            left: 0,
            drain: 0.0,
        }
    }

    /// Performs all updates that are due up to and including `now`. `backlog` has been constant since the last
    /// call.
    #[inline]
    pub fn catch_up(&mut self, now: Instant, backlog: Bytes) {
        if self.sampling.is_due(now) {
            self.update(now, backlog.get());
        }
    }

    /// Decides on the arrival of a packet of `size` that finds `waiting` bytes. The caller must first have
    /// brought the law up to date. `draw` returns a number in [0, 1) and is called at most once.
    #[inline]
    pub fn on_arrival(&mut self, waiting: Bytes, size: Bytes, draw: impl FnOnce() -> f64) -> Decision {
        let half = self.scales.half_target;
        let last = match self.params.arithmetic {
            PieArithmetic::Exact => {
                // RFC 8033, section 4.3: the allowance is restored when the congestion has gone away.
                if self.p == 0 && self.delay < half && self.old < half {
                    self.burst = self.scales.max_burst;
                }
                self.old
            }
            PieArithmetic::Linux => self.delay,
        };
        // Section 4.1: a short queue is spared, so that the link stays busy.
        if self.burst > 0 || (last < half && self.p < self.scales.fifth) || waiting.get() < self.scales.spared
        {
            return Decision::Admit;
        }
        self.choose(size, draw)
    }

    /// Sections 4.1 and 5.4.
    fn choose(&mut self, size: Bytes, draw: impl FnOnce() -> f64) -> Decision {
        let p = match self.params.largest {
            Some(largest) if size <= largest => size.get() * self.p_per_byte,
            _ => self.p,
        };
        if self.params.derandomize {
            let (least, most) = self.scales.spread;
            self.accumulated = if p == 0 { 0 } else { self.accumulated.wrapping_add(p) };
            if self.accumulated < least {
                return Decision::Admit;
            }
            if self.accumulated >= most {
                if self.params.arithmetic == PieArithmetic::Exact {
                    self.accumulated = 0;
                }
                return self.notice();
            }
        }
        if draw() * (self.scales.one as f64) < p as f64 {
            self.accumulated = 0;
            return self.notice();
        }
        Decision::Admit
    }

    fn notice(&self) -> Decision {
        // Section 5.1.
        Decision::Notify(Notice { reason: Reason::Early, markable: self.p < self.scales.mark_below })
    }

    /// Records that a packet is dropped, by the law or because there is no room for it.
    #[inline]
    pub const fn on_drop(&mut self) {
        self.accumulated = 0;
    }

    /// Records that a packet of `size` leaves after waiting for `sojourn`, with `left` bytes behind it.
    #[inline]
    pub fn on_departure(&mut self, now: Instant, size: Bytes, sojourn: Span, left: Bytes) {
        let bits = self.scales.time_bits;
        let at = now.as_ns() >> bits;
        if let PieDelay::Rate(threshold) = self.params.delay {
            return self.measure(at, size.get(), left.get(), threshold.get());
        }
        // DEVIATES from RFC 8033, appendix A: an empty queue has no delay, as in Linux. By the appendix, the delay of
        // the last packet would count until the next one leaves, and the probability would rise on an idle link.
        self.delay =
            if left == Bytes::ZERO { 0 } else { at - (now.as_ns().saturating_sub(sojourn.as_ns()) >> bits) };
        if self.params.arithmetic == PieArithmetic::Linux
            && let Some(last) = self.since.replace(at)
        {
            self.burst = self.burst.saturating_sub(at - last);
        }
    }

    /// RFC 8033, section 5.2: measures the departure rate.
    fn measure(&mut self, at: u64, size: u64, left: u64, threshold: u64) {
        let since = match self.since {
            Some(since) => since,
            None if left < threshold => return,
            None => {
                self.left = 0;
                *self.since.insert(at)
            }
        };
        self.left += size;
        let time = at - since;
        if self.left < threshold {
            return;
        }
        match self.params.arithmetic {
            PieArithmetic::Exact => {
                let weight = threshold as f64 / 65_536.0;
                let time = time as f64;
                self.drain =
                    if self.drain == 0.0 { time } else { time * weight + self.drain * (1.0 - weight) };
                self.since = None;
            }
            PieArithmetic::Linux => {
                let Some(rate) = (self.left << LINUX_RATE_BITS).checked_div(time) else { return };
                let average = self.drain as u64;
                let average = if average == 0 { rate } else { average - (average >> 3) + (rate >> 3) };
                self.drain = average as f64;
                self.since = (left >= threshold).then_some(at);
                self.left = 0;
                self.burst = self.burst.saturating_sub(time);
            }
        }
    }

    /// The delay that an update sees.
    fn measured_delay(&self, backlog: u64) -> u64 {
        let PieDelay::Rate(threshold) = self.params.delay else { return self.delay };
        match self.params.arithmetic {
            PieArithmetic::Exact => (backlog as f64 * self.drain / threshold.as_f64()) as u64,
            PieArithmetic::Linux => (backlog << LINUX_RATE_BITS).checked_div(self.drain as u64).unwrap_or(0),
        }
    }

    /// Makes the updates that are due. The backlog and, without departures, the delay are constant, so all but the
    /// first update find the delay that the previous one found. Those that change the probability by the same step
    /// are made at once, so the work is bounded however long the pause.
    // DEVIATES from RFC 8033, whose probability is a float: sums of whole numbers are the same in any grouping.
    #[cold]
    fn update(&mut self, now: Instant, backlog: u64) {
        let mut due = self.sampling.take(now);
        if self.params.arithmetic == PieArithmetic::Exact {
            self.burst = self.burst.saturating_sub(due.saturating_mul(self.params.t_update.as_ns()));
        }
        while due > 0 {
            let (delay, old, before) = (self.measured_delay(backlog), self.old, self.p);
            let change = self.change(delay, old);
            // The decay of the probability is a factor, not a step.
            let decays =
                delay == 0 && old == 0 && (self.params.arithmetic == PieArithmetic::Exact || backlog == 0);
            let steps = if delay != old || decays { 1 } else { self.equal_steps(change).min(due) };
            self.p = self.stepped(change, steps, decays);
            (self.delay, self.old) = (delay, delay);
            due -= steps;
            if self.params.arithmetic == PieArithmetic::Linux {
                self.forget(delay, old);
            }
            if delay == old && self.p == before && self.measured_delay(backlog) == delay {
                break;
            }
        }
        if let Some(largest) = self.params.largest {
            self.p_per_byte = self.p / largest.get();
        }
    }

    /// The number of bounds of the scaling that the probability is below.
    fn band(&self) -> usize {
        self.scales.bounds.iter().take_while(|bound| self.p < **bound).count()
    }

    /// Section 4.2: the change of the probability at an update.
    fn change(&self, delay: u64, old: u64) -> i128 {
        let Scales { target, surge, rise: (rise, capped), .. } = self.scales;
        let band = self.band();
        let (shift, PieParams { alpha, beta, .. }) = (SHIFTS[band], self.params);
        let (delay_i, target, old) = (i128::from(delay), i128::from(target), i128::from(old));
        let mut change = match self.params.arithmetic {
            PieArithmetic::Exact => {
                let apart = |one: i128, other: i128| {
                    let s = Span::ns((one - other).unsigned_abs() as u64).as_secs_f64();
                    if one < other { -s } else { s }
                };
                let p = alpha * apart(delay_i, target) + beta * apart(delay_i, old);
                let one = self.scales.one as f64;
                // A change by more than 1 has the effect of a change by 1, unless it is scaled down.
                libm::rint((p / f64::from(1u32 << shift)).clamp(-1.0, 1.0) * one) as i128
            }
            PieArithmetic::Linux => {
                let per_tick = self.scales.one / LINUX_TICKS_PER_S;
                let gain = |hz: f64| i128::from((libm::rint(16.0 * hz) as u64 * per_tick) >> 4 >> shift);
                gain(alpha) * (delay_i - target) + gain(beta) * (delay_i - old)
            }
        };
        if self.params.cap && band == 0 && change > i128::from(rise) {
            change = i128::from(capped);
        }
        if self.params.surge && delay > surge {
            change += i128::from(rise);
        }
        change
    }

    /// The number of steps of this size after which another step may have another size, because the probability
    /// has another scaling or has reached an end; at least 1.
    fn equal_steps(&self, change: i128) -> u64 {
        let (p, band) = (i128::from(self.p), self.band());
        let steps = if change > 0 {
            let end = match (band.checked_sub(1), self.params.arithmetic) {
                (Some(bound), _) => i128::from(self.scales.bounds[bound]),
                (None, PieArithmetic::Exact) => i128::from(self.scales.one),
                (None, PieArithmetic::Linux) => i128::from(u64::MAX) + 1,
            };
            (end - p + change - 1) / change
        } else if change < 0 {
            let end = self.scales.bounds.get(band).map_or(0, |bound| i128::from(*bound));
            (p - end) / -change + 1
        } else {
            return u64::MAX;
        };
        u64::try_from(steps.max(1)).unwrap_or(u64::MAX)
    }

    /// The probability after `steps` equal changes.
    fn stepped(&self, change: i128, steps: u64, decays: bool) -> u64 {
        let (decay, one) = (self.params.decay, self.scales.one);
        let p = i128::from(self.p).saturating_add(change.saturating_mul(i128::from(steps))).max(0);
        match self.params.arithmetic {
            PieArithmetic::Exact => {
                let p = if decays { libm::rint(p as f64 * decay) as i128 } else { p };
                u64::try_from(p).unwrap_or(one).min(one)
            }
            PieArithmetic::Linux => {
                let p = u64::try_from(p).unwrap_or(one);
                if decays { p - p / libm::rint(1.0 / (1.0 - decay)) as u64 } else { p }
            }
        }
    }

    /// Linux: starts anew once the congestion has gone away.
    fn forget(&mut self, delay: u64, old: u64) {
        let half = self.scales.half_target;
        let measured = self.params.delay == PieDelay::Timestamps || self.drain > 0.0;
        if self.p == 0 && delay < half && old < half && measured {
            self.burst = self.scales.max_burst;
            (self.accumulated, self.since, self.left, self.drain) = (0, None, 0, 0.0);
        }
    }

    /// Returns the probability at the last update. In Linux's arithmetic, it may exceed 1.
    pub fn probability(&self) -> f64 {
        self.p as f64 / self.scales.one as f64
    }

    /// Returns the probability at the last update in the units of the [`PieArithmetic`].
    pub const fn probability_in_units(&self) -> u64 {
        self.p
    }

    /// Returns the queueing delay: by timestamps, that of the last departure; by the departure rate, that at the
    /// last update.
    pub const fn delay(&self) -> Span {
        self.time(self.delay)
    }

    /// Returns the time for which no packet will be chosen.
    pub const fn burst_allowance(&self) -> Span {
        self.time(self.burst)
    }

    /// Returns the average departure rate; `None` if it is not measured, or not yet.
    pub fn drain_rate(&self) -> Option<Rate> {
        let PieDelay::Rate(threshold) = self.params.delay else { return None };
        if self.drain == 0.0 {
            return None;
        }
        Some(match self.params.arithmetic {
            PieArithmetic::Exact => Rate::of(threshold, Span::ns(self.drain as u64).max(Span::ns(1))),
            PieArithmetic::Linux => {
                let per_s = (self.drain as u64).saturating_mul(LINUX_TICKS_PER_S) >> LINUX_RATE_BITS;
                Rate::of(Bytes::new(per_s), Span::s(1))
            }
        })
    }

    const fn time(&self, units: u64) -> Span {
        Span::ns(units << self.scales.time_bits)
    }

    /// Returns the parameters.
    pub const fn params(&self) -> &PieParams {
        &self.params
    }
}
