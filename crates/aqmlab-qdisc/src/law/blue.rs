//! BLUE (Feng, Kandlur, Saha, Shin 1999 to 2002): a single probability, which lost packets raise and an idle
//! link lowers.
//!
//! ```text
//! packet lost, or queue above L:  if now - last_update > freeze_time { p += d1; last_update = now }
//! link idle:                      if now - last_update > freeze_time { p -= d2; last_update = now }
//! packet arrives:                 marked or dropped with probability p
//! ```

use aqmlab_units::{Instant, Span};

use super::{Decision, Notice};

/// Parameters of the law. Queue lengths are in the queue's own unit.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BlueParams {
    /// Increase of the probability when a packet is lost, `d1`.
    pub increment: f64,
    /// Decrease of the probability when the link is idle, `d2`.
    pub decrement: f64,
    /// Minimum time between two updates, `freeze_time`.
    pub freeze_time: Span,
    /// Whether an update is due when exactly `freeze_time` has passed. In the paper it is not: more time must
    /// have passed.
    pub at_freeze_time: bool,
    /// `L`: an arrival that finds a queue longer than this counts as a loss.
    pub threshold: f64,
    /// Whether the law's own drops count as losses. The paper counts only overflows.
    pub early_drops_count: bool,
    /// Effect of an idle link.
    pub idle: BlueIdle,
    /// An arrival that finds a queue of fewer packets than this is never chosen.
    pub min_backlog: f64,
    /// The probability is rounded to a multiple of 1 divided by this number; `None` means no
    /// rounding.
    pub steps: Option<f64>,
}

/// Effect of an idle link on the probability.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlueIdle {
    /// Paper: one event per idle period, at the instant at which the link runs out of packets.
    Emptied,
    /// ns-3 port: at the arrival that ends the idle period, one decrement per whole `freeze_time` that the
    /// period contains.
    Periods,
    /// ALTQ: at the arrival that ends the idle period, one decrement if the period was longer than
    /// `freeze_time`. If the clock's whole seconds at the beginning and at the end of an idle
    /// period differ by more than one, the probability is set to the decrement. The beginning of an
    /// idle period counts as an update.
    Altq,
}

/// The law's state.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BlueLaw {
    params: BlueParams,
    /// `p_m`.
    p: f64,
    last_update: Option<Instant>,
    /// Time after an update during which no further update is made.
    hold: Span,
    idle_since: Option<Instant>,
}

impl BlueLaw {
    /// Creates the law for an empty queue and a link that has been idle since the start, with
    /// probability 0.
    pub const fn new(params: BlueParams) -> Self {
        let last_update = match params.idle {
            BlueIdle::Altq => Some(Instant::ZERO),
            _ => None,
        };
        let idle_since = Some(Instant::ZERO);
        BlueLaw { params, p: 0.0, last_update, hold: params.freeze_time, idle_since }
    }

    /// Records an arrival that finds a queue of length `queued`. Returns whether the probability
    /// was updated; this happens before [`BlueLaw::decision`] decides on the packet.
    #[inline]
    pub fn on_arrival(&mut self, now: Instant, queued: f64) -> bool {
        let by_idle = match self.idle_since.take() {
            Some(since) => self.end_idle(now, since),
            None => false,
        };
        by_idle | (queued > self.params.threshold && self.on_loss(now))
    }

    /// Decides on an arrival that found a queue of this number of `packets`. `draw` returns a
    /// number in [0, 1).
    #[inline]
    pub fn decision(&self, packets: f64, draw: impl FnOnce() -> f64) -> Decision {
        if self.p > 0.0 && packets >= self.params.min_backlog && draw() < self.p {
            Decision::Notify(Notice::EARLY)
        } else {
            Decision::Admit
        }
    }

    /// Records a loss for lack of room. Returns whether the probability was updated.
    pub fn on_loss(&mut self, now: Instant) -> bool {
        let due = self.is_due(now);
        if due {
            self.update(now, (self.p + self.params.increment).min(1.0));
        }
        due
    }

    /// Records the drop of a packet that the law had chosen. Returns whether the probability was
    /// updated.
    pub fn on_early_drop(&mut self, now: Instant) -> bool {
        self.params.early_drops_count && self.on_loss(now)
    }

    /// Records that the link polled the empty queue. Returns whether the probability was
    /// updated.
    #[inline]
    pub fn on_idle(&mut self, now: Instant) -> bool {
        // One event each time the queue becomes empty, however often the link polls it.
        if self.idle_since.is_some() {
            return false;
        }
        self.idle_since = Some(now);
        match self.params.idle {
            BlueIdle::Emptied => self.decrement_if_due(now),
            BlueIdle::Periods => false,
            BlueIdle::Altq => {
                self.last_update = Some(now);
                false
            }
        }
    }

    #[inline(never)]
    fn end_idle(&mut self, now: Instant, since: Instant) -> bool {
        match self.params.idle {
            BlueIdle::Emptied => false,
            BlueIdle::Periods => self.periods(now, now.saturating_since(since)),
            // ALTQ compares the seconds of the time stamps before it compares microseconds.
            BlueIdle::Altq if seconds(now) > seconds(since) + 1 => {
                self.update(now, self.params.decrement);
                true
            }
            BlueIdle::Altq => self.decrement_if_due(now),
        }
    }

    // DEVIATES from the ns-3 port: the quotient is computed from exact times, not from whole
    // milliseconds, and an idle period shorter than freeze_time does not count as an update,
    // although it does in the port.
    fn periods(&mut self, now: Instant, idle: Span) -> bool {
        let periods = if self.hold.is_zero() { 1 } else { idle.div_span(self.hold) };
        if periods > 0 {
            self.update(now, (self.p - self.params.decrement * periods as f64).max(0.0));
        }
        periods > 0
    }

    fn decrement_if_due(&mut self, now: Instant) -> bool {
        let due = self.is_due(now);
        if due {
            self.update(now, (self.p - self.params.decrement).max(0.0));
        }
        due
    }

    fn is_due(&self, now: Instant) -> bool {
        match self.last_update.map(|at| now.saturating_since(at)) {
            None => true,
            Some(elapsed) if self.params.at_freeze_time => elapsed >= self.hold,
            Some(elapsed) => elapsed > self.hold,
        }
    }

    fn update(&mut self, now: Instant, p: f64) {
        self.p = match self.params.steps {
            Some(steps) => libm::round(p * steps) / steps,
            None => p,
        };
        self.last_update = Some(now);
    }

    /// Suppresses updates until the time `hold` has passed since the last one. Hosts that randomise
    /// `freeze_time` draw a new value after each update.
    pub const fn set_hold(&mut self, hold: Span) {
        self.hold = hold;
    }

    /// Returns the probability, `p_m`.
    pub const fn probability(&self) -> f64 {
        self.p
    }

    /// Returns the parameters.
    pub const fn params(&self) -> &BlueParams {
        &self.params
    }
}

fn seconds(at: Instant) -> u64 {
    at.saturating_since(Instant::ZERO).div_span(Span::s(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARAMS: BlueParams = BlueParams {
        increment: 0.0025,
        decrement: 0.00025,
        freeze_time: Span::ms(100),
        at_freeze_time: false,
        threshold: f64::INFINITY,
        early_drops_count: false,
        idle: BlueIdle::Emptied,
        min_backlog: 0.0,
        steps: None,
    };
    const ALTQ: BlueParams = BlueParams {
        increment: 0.125,
        decrement: 0.001,
        freeze_time: Span::ms(50),
        idle: BlueIdle::Altq,
        min_backlog: 2.0,
        steps: Some(1000.0),
        ..PARAMS
    };

    fn ms(n: u64) -> Instant {
        Instant::ZERO + Span::ms(n)
    }

    /// Returns a law for a link that is busy from time zero on.
    fn busy(params: BlueParams) -> BlueLaw {
        let mut law = BlueLaw::new(params);
        law.on_arrival(ms(0), 0.0);
        law
    }

    fn chosen(law: &BlueLaw, queued: f64, draw: f64) -> bool {
        law.decision(queued, || draw) != Decision::Admit
    }

    #[test]
    fn known_answer() {
        let mut law = busy(PARAMS);
        let updates = [0, 50, 110, 150, 300].map(|at| law.on_loss(ms(at)));
        assert_eq!(updates, [true, false, true, false, true]);
        assert!((law.probability() - 0.0075).abs() < 1e-15);
        let idles = [350, 450].map(|at| {
            let updated = law.on_idle(ms(at));
            law.on_arrival(ms(at + 1), 0.0);
            updated
        });
        assert_eq!(idles, [false, true]);
        assert!((law.probability() - 0.00725).abs() < 1e-15);
        assert!(!law.on_loss(ms(550)), "a decrement holds increments back");
        assert!(law.on_loss(ms(551)));
    }

    #[test]
    fn an_update_needs_more_than_the_freeze_time_or_just_that() {
        for at_freeze_time in [false, true] {
            let mut law = busy(BlueParams { at_freeze_time, ..PARAMS });
            assert!(law.on_loss(ms(0)));
            assert_eq!(law.on_loss(ms(100)), at_freeze_time);
            assert_eq!(law.on_loss(ms(100) + Span::ns(1)), !at_freeze_time);
        }
    }

    #[test]
    fn one_idle_event_for_each_emptying() {
        let mut law = busy(PARAMS);
        law.on_loss(ms(0));
        assert!(law.on_idle(ms(200)));
        assert!(!law.on_idle(ms(400)), "it has been empty all the time");
        law.on_arrival(ms(500), 0.0);
        assert!(law.on_idle(ms(600)));
    }

    #[test]
    fn the_probability_stays_between_nought_and_one() {
        let mut law = busy(BlueParams { increment: 0.4, decrement: 0.7, freeze_time: Span::ZERO, ..PARAMS });
        (1..4).for_each(|at| assert!(law.on_loss(ms(at))));
        assert_eq!(law.probability(), 1.0);
        assert!(chosen(&law, 0.0, 0.999_999_999));
        for at in [10, 20] {
            law.on_idle(ms(at));
            law.on_arrival(ms(at + 1), 0.0);
        }
        assert_eq!(law.probability(), 0.0);
        assert!(!chosen(&law, 0.0, 0.0), "probability 0 never hits");
    }

    #[test]
    fn a_queue_above_the_threshold_is_a_loss() {
        let mut law = busy(BlueParams { threshold: 40.0, ..PARAMS });
        assert!(!law.on_arrival(ms(1), 40.0));
        assert!(law.on_arrival(ms(2), 41.0));
        assert_eq!(law.probability(), 0.0025);
    }

    #[test]
    fn early_drops_count_only_if_asked() {
        for early_drops_count in [false, true] {
            let mut law = busy(BlueParams { early_drops_count, ..PARAMS });
            assert_eq!(law.on_early_drop(ms(1)), early_drops_count);
        }
    }

    #[test]
    fn the_port_to_ns3_counts_whole_periods_when_the_idle_time_ends() {
        let mut law = busy(BlueParams { increment: 0.5, idle: BlueIdle::Periods, ..PARAMS });
        law.on_loss(ms(0));
        assert!(!law.on_idle(ms(1000)));
        assert!(law.on_arrival(ms(1350), 0.0));
        assert!((law.probability() - (0.5 - 3.0 * 0.00025)).abs() < 1e-15);
        law.on_idle(ms(1400));
        assert!(!law.on_arrival(ms(1499), 0.0));
        law.on_idle(ms(1500));
        assert!(law.on_arrival(ms(3_601_500), 0.0), "an hour in one step");
        assert_eq!(law.probability(), 0.0);
    }

    #[test]
    fn altq_counts_in_thousandths() {
        let mut law = busy(ALTQ);
        assert!(!law.on_loss(ms(50)), "time zero counts as an update");
        for (at, p) in [(51, 0.125), (102, 0.25), (153, 0.375)] {
            assert!(law.on_loss(ms(at)));
            assert_eq!(law.probability(), p);
        }
        // Idle for 50 ms, then for 51 ms.
        for (from, to, p) in [(1000, 1050, 0.375), (1100, 1151, 0.374)] {
            law.on_idle(ms(from));
            law.on_arrival(ms(to), 0.0);
            assert_eq!(law.probability(), p);
        }
        // The beginning of an idle period counts as an update, so it also delays increments.
        law.on_idle(ms(1300));
        law.on_arrival(ms(1310), 0.0);
        assert!(!law.on_loss(ms(1350)));
        assert!(law.on_loss(ms(1351)));
    }

    #[test]
    fn altq_forgets_over_a_long_idle_time() {
        for (from, to, p) in [(1900, 2999, 0.124), (1900, 3000, 0.001), (1000, 2999, 0.124)] {
            let mut law = busy(ALTQ);
            law.on_loss(ms(100));
            law.on_idle(ms(from));
            law.on_arrival(ms(to), 0.0);
            assert_eq!(law.probability(), p, "{from} to {to}");
        }
    }

    #[test]
    fn altq_spares_a_queue_of_one() {
        let mut law = busy(ALTQ);
        law.on_loss(ms(100));
        assert!(!chosen(&law, 1.0, 0.0));
        assert!(chosen(&law, 2.0, 0.124));
        assert!(!chosen(&law, 2.0, 0.125));
    }
}
