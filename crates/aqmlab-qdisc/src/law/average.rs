//! RED's exponentially weighted average of the queue length, and its decay while the link is idle.

use aqmlab_units::{Instant, Span};

/// Effect of an idle period, in which no arrival updates the average.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum IdleRule {
    /// Floyd and Jacobson 1993, section 11: `m` steps with an empty queue, where `m` is the number of packets
    /// of mean size that could have been sent, and no ordinary step at the arrival that ends the idle period.
    // DEVIATES from the paper's wording if that arrival is lost. The queue has then been empty ever since
    // `q_time`, so `f(time - q_time)` at the next arrival would count the time before the lost arrival again.
    // Here, each packet that could have been sent counts once. (Restarting the count at each loss would be
    // worse: arrivals less than a transmission time apart would never let the average decay, and a RED queue
    // above `max_th` would remain blocked forever.)
    Paper,
    /// ns-2.35: the same `m` steps, then the ordinary step of the arrival, `m + 1` steps in all.
    Ns2,
    /// Linux: the average decays by powers of two, from the table of 256 shifts that `tc` computes; within
    /// the table's first cell it decays linearly. The decay is 15.625 times slower than the table intends.
    Linux,
    /// No decay: nothing tells the law that the link is idle, as behind Linux's htb and tbf.
    Never,
}

/// The average queue length at the last arrival.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Average {
    value: f64,
    weight: f64,
    /// 1 - weight
    rest: f64,
    /// Whether the average is a fixed-point number, as in Linux.
    fixed_point: bool,
    rule: IdleRule,
    packets_per_s: f64,
    /// Start of the idle period whose virtual packets have not yet been counted.
    idle_since: Option<Instant>,
    /// The arrival that ended the last idle period, and the instant up to which the period's virtual packets
    /// have been counted.
    ended: (Instant, Instant),
}

impl Average {
    /// Creates an average of zero for a link that has been idle since the start. `weight` is w_q in
    /// (0, 1]; `packets_per_s` is the link's rate in packets of mean size.
    pub const fn new(weight: f64, rule: IdleRule, packets_per_s: f64) -> Self {
        Average {
            value: 0.0,
            weight,
            rest: 1.0 - weight,
            fixed_point: false,
            rule,
            packets_per_s,
            idle_since: if matches!(rule, IdleRule::Never) { None } else { Some(Instant::ZERO) },
            ended: (Instant::FAR_FUTURE, Instant::FAR_FUTURE),
        }
    }

    /// Computes the average as Linux does, in fixed point with as many fractional bits as the weight has.
    #[must_use]
    pub const fn in_fixed_point(mut self) -> Self {
        self.fixed_point = true;
        self
    }

    /// Records an arrival that finds a queue of length `queued`, and returns the new average.
    #[inline]
    pub fn on_arrival(&mut self, now: Instant, queued: f64) -> f64 {
        match self.idle_since {
            None => self.step(queued),
            Some(since) => self.end_idle(since, now, queued),
        }
        self.value
    }

    /// This function is cold because arrivals at a busy link do not reach it.
    #[cold]
    fn end_idle(&mut self, since: Instant, now: Instant, queued: f64) {
        self.idle_since = None;
        if self.value == 0.0 {
            return self.step(queued);
        }
        self.value = self.aged(since, now);
        match self.rule {
            IdleRule::Paper => self.ended = (now, self.counted_to(since, now)),
            IdleRule::Ns2 => self.step(queued),
            IdleRule::Linux | IdleRule::Never => {}
        }
    }

    /// Returns the instant at which the link would have sent the last whole virtual packet of the
    /// idle period from `since` to `now`.
    fn counted_to(&self, since: Instant, now: Instant) -> Instant {
        let sent = Span::try_from_secs_f64(self.virtual_packets(since, now) / self.packets_per_s);
        // The result is never later than now, whatever the rounding.
        sent.map_or(now, |sent| (since + sent).min(now))
    }

    /// Records a departure after which the queue has length `queued`, and returns the new average.
    /// (FRED samples the queue at departures too; RED does not.)
    #[inline]
    pub fn on_departure(&mut self, queued: f64) -> f64 {
        self.step(queued);
        self.value
    }

    /// Records that the link polled the empty queue. At the instant of an arrival that ended an idle period,
    /// this means that the arrival was lost and the idle period continues.
    #[inline]
    pub fn on_idle(&mut self, now: Instant) {
        if self.rule == IdleRule::Never {
            return;
        }
        let (ended, counted_to) = self.ended;
        self.idle_since.get_or_insert(if now == ended { counted_to } else { now });
    }

    /// Changes the link's rate to `packets_per_s`. The effect of the idle period so far is kept, except that
    /// a fraction of a virtual packet is lost.
    pub fn rate_changed(&mut self, now: Instant, packets_per_s: f64) {
        if packets_per_s == self.packets_per_s {
            return;
        }
        if let Some(since) = self.idle_since {
            self.value = self.aged(since, now);
            self.idle_since = Some(now);
        }
        self.packets_per_s = packets_per_s;
    }

    /// Returns the average at `now`: its value at the last arrival, decayed if the link has been
    /// idle since then.
    pub fn at(&self, now: Instant) -> f64 {
        self.idle_since.map_or(self.value, |since| self.aged(since, now))
    }

    /// Takes over the state of `other`, which counts the same packets with a weight of its own.
    pub(crate) fn adopt(&mut self, other: &Average) {
        self.value = other.read_by(self);
        (self.idle_since, self.ended) = (other.idle_since, other.ended);
    }

    /// Returns the value at the last arrival as `reader` sees it. In fixed point, the kernel's integers have as many
    /// fractional bits as the weight, so an average with another weight has another unit.
    pub(crate) fn read_by(&self, reader: &Average) -> f64 {
        if self.fixed_point { self.value / self.weight * reader.weight } else { self.value }
    }

    /// Returns whether the link is idle.
    pub const fn is_idle(&self) -> bool {
        self.idle_since.is_some()
    }

    #[inline]
    fn step(&mut self, queued: f64) {
        self.value = if self.fixed_point {
            // The kernel's `qavg + backlog - (qavg >> Wlog)`, in units of the queue.
            self.value + self.weight * (queued - whole(self.value))
        } else {
            self.value * self.rest + self.weight * queued
        };
    }

    fn aged(&self, since: Instant, now: Instant) -> f64 {
        if self.rule == IdleRule::Linux {
            let idle = now.saturating_since(since);
            let decay = linux_decay(self.weight, self.packets_per_s, idle);
            return if self.fixed_point {
                decay.of_whole(self.value / self.weight) * self.weight
            } else {
                decay.of(self.value)
            };
        }
        self.value * libm::pow(self.rest, self.virtual_packets(since, now))
    }

    /// Returns the number of whole packets of mean size that could have been sent from `since` to
    /// `now`.
    fn virtual_packets(&self, since: Instant, now: Instant) -> f64 {
        libm::floor(now.saturating_since(since).as_secs_f64() * self.packets_per_s)
    }
}

/// Linux's approximation of (1 - w)^m.
#[derive(Clone, Copy)]
enum Decay {
    /// Halves the average this many times.
    Halvings(i32),
    /// Takes this share off the average, but at most one half.
    Share(f64),
}

impl Decay {
    fn of(self, avg: f64) -> f64 {
        match self {
            Decay::Halvings(n) => libm::scalbn(avg, -n),
            Decay::Share(share) => avg - (avg * share).min(avg / 2.0),
        }
    }

    /// Returns the decayed value of an integer as an integer. The kernel rounds each half and each share down.
    fn of_whole(self, avg: f64) -> f64 {
        match self {
            Decay::Halvings(n) => whole(libm::scalbn(avg, -n)),
            Decay::Share(share) => {
                let (off, half) = (whole(avg * share), whole(avg / 2.0));
                if off < half { avg - off } else { half }
            }
        }
    }
}

/// Returns the decay over an idle time, as iproute2's `tc_red_eval_idle_damping` and the kernel's
/// `red_calc_qavg_from_idle_time` compute it.
///
/// `tc` counts time in ticks of 64 ns and divides it into 256 cells of 2^c ticks. Each cell has a
/// shift `floor(-ln(1 - w) t / t_packet)`, at most 31. The kernel uses the time in microseconds to
/// look up the shift, as if microseconds were ticks, so the average decays 15.625 times more slowly
/// than the table intends. (The logarithm is natural although each shift by one halves the
/// average.) On links so slow that the table exceeds 32 bits, and on links that send a packet in less
/// than a microsecond, the table has the values that tc then stores.
fn linux_decay(weight: f64, packets_per_s: f64, idle: Span) -> Decay {
    const DEEPEST: u8 = 31;
    /// The number of ticks of `tc` in a microsecond; the kernel takes each tick for a microsecond.
    const TICKS_PER_US: f64 = 15.625;
    /// More than the rounding error of a quotient that is a whole number.
    const ROUNDING: f64 = 1e-12;
    const LAST: f64 = 255.0;
    // `tc` rounds the transmission time of a packet down to whole microseconds, and then to whole ticks.
    let packet_us = libm::floor((1.0 + ROUNDING) * 1e6 / packets_per_s);
    let per_us = -libm::log1p(-weight) / libm::floor(packet_us * TICKS_PER_US);
    let mut cell_log = 0;
    while f64::from(DEEPEST) / per_us / f64::from(1u32 << cell_log) >= 512.0 && cell_log < 31 {
        cell_log += 1;
    }
    let cell_us = f64::from(1u32 << cell_log);
    let idle_us = ((idle.as_ns() / 1000) as f64).min(f64::from(255u32 << cell_log));
    let cell = libm::floor(idle_us / cell_us);
    let shift = if cell >= LAST {
        DEEPEST
    } else {
        // A C compiler for x86 converts a number beyond 32 bits to one whose low byte is 0.
        let shift = f64::from(((cell as u32) << cell_log) as i32) * per_us;
        if libm::fabs(shift) < f64::from(1u32 << 31) { (shift as i32 as u8).min(DEEPEST) } else { 0 }
    };
    if shift >= 1 { Decay::Halvings(i32::from(shift)) } else { Decay::Share(idle_us / cell_us) }
}

/// Returns a number without its fraction; it must be at least 0.
#[inline]
fn whole(x: f64) -> f64 {
    x as i64 as f64
}

/// A first-order low-pass filter whose output is initially zero.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct LowPass {
    weight: f64,
    held: f64,
}

impl LowPass {
    /// Creates a filter that gives a new value the weight `weight`, in (0, 1].
    pub(super) const fn new(weight: f64) -> Self {
        LowPass { weight, held: 0.0 }
    }

    /// Adds a value and returns the filter's new output.
    #[inline]
    pub(super) fn take(&mut self, value: f64) -> f64 {
        self.held += self.weight * (value - self.held);
        self.held
    }

    /// Returns the filter's output.
    pub(super) const fn held(&self) -> f64 {
        self.held
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: f64) -> Instant {
        Instant::ZERO + Span::try_from_secs_f64(seconds).unwrap()
    }

    fn warm(rule: IdleRule, weight: f64, value: f64, packets_per_s: f64) -> Average {
        Average { value, idle_since: None, ..Average::new(weight, rule, packets_per_s) }
    }

    #[test]
    fn known_answer_steps() {
        let mut average = warm(IdleRule::Paper, 0.25, 0.0, 1000.0);
        let values = [8.0; 4].map(|q| average.on_arrival(at(0.0), q));
        assert_eq!(values, [2.0, 3.5, 4.625, 5.46875]);
    }

    #[test]
    fn known_answer_idle_decay() {
        // avg 10, w 0.002, C 2032.52, idle 50 ms: m = 101, 8.1692 before the new sample.
        let mut paper = warm(IdleRule::Paper, 0.002, 10.0, 2032.52);
        let mut ns2 = warm(IdleRule::Ns2, 0.002, 10.0, 2032.52);
        for average in [&mut paper, &mut ns2] {
            average.on_idle(at(1.0));
            average.on_idle(at(1.04));
            assert!((average.at(at(1.05)) - 8.1692).abs() < 1e-4, "{average:?}");
        }
        assert!((paper.on_arrival(at(1.05), 0.0) - 8.1692).abs() < 1e-4);
        assert!((ns2.on_arrival(at(1.05), 0.0) - 8.1692 * 0.998).abs() < 1e-4);
    }

    #[test]
    fn a_lost_packet_does_not_end_an_idle_time() {
        // Arrivals every 0.4 packet times, all lost: after 1000 packet times there have been 1000
        // virtual packets, as if there had been no arrival. Steps are whole nanoseconds.
        let mut average = warm(IdleRule::Paper, 0.002, 10.0, 1000.0);
        average.on_idle(at(0.0));
        for arrival in 1..=2500 {
            let now = at(0.0004 * f64::from(arrival));
            average.on_arrival(now, 0.0);
            average.on_idle(now);
        }
        let expected = |packets| 10.0 * 0.998f64.powi(packets);
        let found = average.at(at(1.0));
        assert!(expected(1000) * 0.9999 < found && found < expected(999) * 1.0001, "{found}");
        // An arrival that is sent ends the idle period; the next idle period begins when the link polls the
        // empty queue.
        average.on_arrival(at(1.0), 0.0);
        average.on_idle(at(1.0009));
        assert_eq!(average.at(at(1.0018)), average.at(at(1.0009)));
    }

    #[test]
    fn the_linux_table_halves_where_the_natural_exponent_has_grown_by_one() {
        // w = 2^-9, 1000 packets/s: -ln(1 - w) is 0.001955 for 1 ms, which is 15 625 ticks or "us", so the table's first
        // shift by one lies at 15.625 ms / 0.001955 = 7992 ms; 31 times that is 247.8e6, so cells are 2^19 us = 524.288 ms.
        let avg = warm(IdleRule::Linux, 1.0 / 512.0, 64.0, 1000.0);
        let idle = |ms: f64| Average { idle_since: Some(at(0.0)), ..avg }.at(at(ms / 1000.0));
        assert_eq!(idle(0.0), 64.0);
        assert!((idle(131.072) - 48.0).abs() < 1e-9, "a quarter of the first cell takes a quarter off");
        assert_eq!(idle(320.0), 32.0, "the linear part stops at one half");
        assert_eq!(idle(16.0 * 524.288 + 1.0), 32.0, "16 cells are 8389 ms: shift 1");
        assert_eq!(idle(31.0 * 524.288 + 1.0), 16.0, "31 cells are 16253 ms: shift 2");
        assert_eq!(idle(3.6e6), 64.0 / 2f64.powi(31));
    }

    /// The shifts that tc of iproute2 6.1 sends to the kernel (read from its netlink message with strace), for idle
    /// times in units of the table's cells.
    #[test]
    fn the_linux_table_is_the_one_that_tc_sends() {
        for (packet_bytes, bytes_per_s, weight_log, cell_log, shifts) in [
            // 121.12 us are 121 us, which are 1890 ticks.
            (1514.0, 12_500_000.0, 12, 19, [(253, 0x11), (254, 0x11), (255, 0x1f)]),
            (777.0, 15_432_098.0, 11, 17, [(253, 0x14), (254, 0x14), (255, 0x1f)]),
            (64.0, 7000.0, 9, 23, [(10, 1), (254, 0x1d), (255, 0x1f)]),
            // The table of a slow link exceeds 32 bits, and a packet of 0.23 us takes no ticks at all.
            (1000.0, 1000.0, 11, 31, [(0, 0), (1, 0), (255, 0x1f)]),
            (1000.0, 4_294_967_295.0, 11, 0, [(1, 0), (254, 0), (255, 0x1f)]),
        ] {
            for (cells, shift) in shifts {
                let idle = Span::us(cells << cell_log);
                let found = linux_decay(0.5f64.powi(weight_log), bytes_per_s / packet_bytes, idle);
                let found = if let Decay::Halvings(n) = found { n } else { 0 };
                let kept = if cell_log == 31 && cells == 255 { 0 } else { shift };
                assert_eq!(found, kept, "{packet_bytes} B at {bytes_per_s} B/s, cell {cells}");
            }
        }
    }

    #[test]
    fn a_change_of_rate_ages_each_part_of_an_idle_time_at_its_own_rate() {
        let mut average = warm(IdleRule::Paper, 0.01, 10.0, 1000.0);
        average.on_idle(at(0.0));
        average.rate_changed(at(0.1), 100.0);
        let expected = 10.0 * 0.99f64.powi(110);
        assert!((average.at(at(0.2)) - expected).abs() < 1e-9);
    }

    #[test]
    fn known_answers() {
        let mut filter = LowPass::new(0.25);
        assert_eq!(filter.held(), 0.0);
        assert_eq!([1.0, 1.0, 1.0, 0.0].map(|x| filter.take(x)), [0.25, 0.4375, 0.578_125, 0.433_593_75]);
        assert_eq!(filter.held(), 0.433_593_75);
    }

    /// The response to a step to 1 is `1 - (1 - w)^n`.
    #[test]
    fn a_step_is_answered_exponentially() {
        let mut filter = LowPass::new(0.002);
        for n in 1..5000 {
            let expected = 1.0 - libm::pow(1.0 - 0.002, f64::from(n));
            assert!((filter.take(1.0) - expected).abs() < 1e-12, "after {n}");
        }
    }
}
