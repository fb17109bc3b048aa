//! Stochastic Fair BLUE (Feng, Kandlur, Saha, Shin, INFOCOM 2001; ToN 10(4), 2002).
//!
//! Each flow is hashed into one bin at each of several levels. A bin has a probability that rises while too many of
//! its packets wait and falls when an arrival finds none of them. The smallest probability among a flow's bins is the
//! flow's own: only a flow that fills all of its bins, at all levels, is notified often. A flow whose probability is 1
//! is unresponsive; a rate limit applies to all such flows together, the *penalty box*.

use alloc::vec::Vec;

use aqmlab_units::{Instant, Span};

use super::{Decision, Notice};
use crate::Reason;

/// Which arrivals are lost because their bins hold too many packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FullBin {
    /// Those of which any bin holds more than `bin_size` packets (the paper's figure).
    Any,
    /// Those of which every bin holds at least this many (Linux's `max`).
    All(u64),
}

/// Parameters of the law.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SfbParams {
    /// Number of levels.
    pub levels: usize,
    /// Number of bins per level.
    pub bins: usize,
    /// Number of packets above which a bin's probability rises.
    pub bin_size: u64,
    /// Whether the probability also rises at exactly `bin_size` packets (Linux).
    pub at_bin_size: bool,
    /// Increase of a bin's probability.
    pub increment: f64,
    /// Decrease of a bin's probability.
    pub decrement: f64,
    /// Number of steps from probability 0 to 1 to which increments are rounded; `None`: no rounding.
    pub steps: Option<f64>,
    /// Which arrivals are lost because their bins are full.
    pub full_bin: FullBin,
    /// Whether packets of flows whose probability exceeds one half are dropped, not marked, with twice the excess
    /// (Linux).
    pub drops_above_half: bool,
    /// Packets per second that unresponsive flows may send together.
    pub penalty_rate: f64,
    /// Largest number of packets that they may send at once.
    pub penalty_burst: f64,
    /// Time between changes of the hash function; `None`: never.
    pub rehash: Option<Span>,
    /// The last part of this time, in which unresponsive flows are hashed into the next set of bins, too.
    pub warmup: Span,
    /// Whether time is counted as in Linux: in milliseconds; the hash changes at the first arrival more than `rehash`
    /// after the last change, and the next bins keep their old probabilities; the penalty box gets whole packets,
    /// and only when it is empty.
    pub linux_time: bool,
}

/// One bin.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct Bin {
    queued: u64,
    p: f64,
}

/// The hashes of a packet, one for each of the two sets of bins in which it counts.
pub type SfbKeys = [Option<u64>; 2];

/// The law's state.
#[derive(Clone, PartialEq, Debug)]
pub struct SfbLaw {
    params: SfbParams,
    /// Two sets of bins, level by level. The set of an epoch is that of its parity.
    sets: [Vec<Bin>; 2],
    /// Number of changes of the hash function so far.
    epoch: u64,
    changed: Instant,
    tokens: f64,
    filled: Instant,
    /// Probability 1 in units of the bins' probabilities.
    one: f64,
    penalised: u64,
    full: u64,
}

const TICK: u64 = 1_000_000;

impl SfbLaw {
    /// Creates the law for an empty queue.
    pub fn new(params: SfbParams) -> Self {
        let set = alloc::vec![Bin::default(); params.levels * params.bins];
        SfbLaw {
            params,
            sets: [set.clone(), set],
            epoch: 0,
            changed: Instant::ZERO,
            tokens: params.penalty_burst,
            filled: Instant::ZERO,
            one: params.steps.unwrap_or(1.0),
            penalised: 0,
            full: 0,
        }
    }

    /// Changes the hash function if this is due, and returns the number of changes so far: the hash of a packet
    /// depends on this number.
    #[inline]
    pub fn epoch_at(&mut self, now: Instant) -> u64 {
        if let Some(period) = self.params.rehash {
            self.change(self.time(now), period);
        }
        self.epoch
    }

    fn change(&mut self, now: Instant, period: Span) {
        if self.params.linux_time {
            if now.saturating_since(self.changed) > period {
                self.epoch += 1;
                self.changed = now;
            }
            return;
        }
        let epoch = now.as_ns() / period.as_ns();
        for passed in self.epoch..epoch.min(self.epoch + 2) {
            // Nothing has been warmed up in a set that was not the next one.
            self.sets[(passed & 1) as usize].iter_mut().for_each(|bin| bin.p = 0.0);
        }
        self.epoch = epoch;
        self.changed = Instant::from_ns(epoch * period.as_ns());
    }

    /// Decides on an arrival whose hash in the current epoch is `key`. `next` returns its hash in the next epoch, and
    /// `draw` a number in [0, 1). Also returns the hashes with which the packet counts if it is queued.
    pub fn on_arrival(
        &mut self,
        now: Instant,
        key: u64,
        next: impl FnOnce() -> u64,
        draw: impl FnOnce() -> f64,
    ) -> (Decision, SfbKeys) {
        let set = (self.epoch & 1) as usize;
        let mut keys = [None; 2];
        keys[set] = Some(key);
        let (p, fewest, any_full) = self.update(set, key);
        let full = match self.params.full_bin {
            FullBin::Any => any_full,
            FullBin::All(most) => fewest >= most,
        };
        if full {
            self.full += 1;
            return (FORCED, keys);
        }
        if p >= self.one {
            if self.warms_up(now) {
                let key = next();
                self.update(1 - set, key);
                keys[1 - set] = Some(key);
            }
            if !self.box_admits(self.time(now)) {
                self.penalised += 1;
                return (FORCED, keys);
            }
            return (Decision::Admit, keys);
        }
        (self.chosen(p, draw), keys)
    }

    /// Updates the bins of a packet and returns the smallest probability and the smallest queue among them, and
    /// whether any bin holds more than `bin_size` packets.
    fn update(&mut self, set: usize, key: u64) -> (f64, u64, bool) {
        let SfbParams { bin_size, at_bin_size, increment, decrement, .. } = self.params;
        let (up, down) = (self.step(increment), self.step(decrement));
        let (mut p, mut fewest, mut any) = (f64::INFINITY, u64::MAX, false);
        let (one, levels, bins) = (self.one, self.params.levels, self.params.bins);
        for place in places(key, levels, bins) {
            let bin = &mut self.sets[set][place];
            if bin.queued > bin_size || (at_bin_size && bin.queued == bin_size) {
                bin.p = (bin.p + up).min(one);
                any = true;
            } else if bin.queued == 0 {
                bin.p = (bin.p - down).max(0.0);
            }
            p = p.min(bin.p);
            fewest = fewest.min(bin.queued);
        }
        (p, fewest, any)
    }

    /// Returns a change of the probability in the unit of the bins.
    fn step(&self, change: f64) -> f64 {
        self.params.steps.map_or(change, |steps| libm::floor(change * steps + 0.5))
    }

    fn chosen(&self, p: f64, draw: impl FnOnce() -> f64) -> Decision {
        if p <= 0.0 {
            return Decision::Admit;
        }
        // Linux compares 16 random bits with the probability in steps of 1/65535.
        let drawn = match self.params.steps {
            Some(steps) => libm::floor(draw() * (steps + 1.0)),
            None => draw(),
        };
        if drawn >= p {
            return Decision::Admit;
        }
        let half = if self.params.steps.is_some() { libm::floor(self.one / 2.0) } else { self.one / 2.0 };
        let drops = self.params.drops_above_half && p > half && drawn < 2.0 * (p - half);
        Decision::Notify(Notice { markable: !drops, ..Notice::EARLY })
    }

    /// Returns whether unresponsive flows are hashed into the next set of bins, too.
    fn warms_up(&self, now: Instant) -> bool {
        let Some(period) = self.params.rehash else { return false };
        let passed = self.time(now).saturating_since(self.changed);
        let before = period.saturating_sub(self.params.warmup);
        !self.params.warmup.is_zero()
            && if self.params.linux_time { passed > before } else { passed >= before }
    }

    /// Takes a packet's token, if there is one.
    fn box_admits(&mut self, now: Instant) -> bool {
        let SfbParams { penalty_rate, penalty_burst, linux_time, .. } = self.params;
        if !linux_time || self.tokens < 1.0 {
            let passed = now.saturating_since(self.filled);
            let passed = if linux_time { passed.min(Span::s(10)) } else { passed };
            let filled = passed.as_secs_f64() * penalty_rate;
            self.tokens =
                if linux_time { libm::floor(filled) } else { self.tokens + filled }.min(penalty_burst);
            self.filled = now;
        }
        let admits = self.tokens >= 1.0;
        if admits {
            self.tokens -= 1.0;
        }
        admits
    }

    fn time(&self, now: Instant) -> Instant {
        if self.params.linux_time { Instant::from_ns(now.as_ns() / TICK * TICK) } else { now }
    }

    /// Records that a packet with these hashes is queued.
    #[inline]
    pub fn on_queued(&mut self, keys: &SfbKeys) {
        self.count(keys, |bin| bin.queued += 1);
    }

    /// Records that a packet with these hashes leaves the queue.
    #[inline]
    pub fn on_departure(&mut self, keys: &SfbKeys) {
        self.count(keys, |bin| bin.queued -= 1);
    }

    fn count(&mut self, keys: &SfbKeys, change: impl Fn(&mut Bin)) {
        for (set, key) in self.sets.iter_mut().zip(keys) {
            if let Some(key) = *key {
                places(key, self.params.levels, self.params.bins).for_each(|place| change(&mut set[place]));
            }
        }
    }

    /// Returns the largest probability of a bin of the current set.
    pub fn largest_probability(&self) -> f64 {
        self.current().iter().fold(0.0, |most: f64, bin| most.max(bin.p)) / self.one
    }

    /// Returns the smallest probability of the bins of `key`, which is that of its flow.
    pub fn probability(&self, key: u64) -> f64 {
        let bins = places(key, self.params.levels, self.params.bins).map(|place| self.current()[place].p);
        bins.fold(f64::INFINITY, f64::min) / self.one
    }

    /// Returns the largest number of packets of a bin of the current set.
    pub fn longest(&self) -> u64 {
        self.current().iter().map(|bin| bin.queued).max().unwrap_or(0)
    }

    fn current(&self) -> &[Bin] {
        &self.sets[(self.epoch & 1) as usize]
    }

    /// Returns the number of packets lost in the penalty box.
    pub const fn penalised(&self) -> u64 {
        self.penalised
    }

    /// Returns the number of packets lost because of full bins.
    pub const fn full(&self) -> u64 {
        self.full
    }
}

const FORCED: Decision = Decision::Notify(Notice { reason: Reason::Forced, markable: false });

/// Returns the place of a flow's bin at each level: the digits of its hash, as a fraction of 2^64, to the base of the
/// number of bins.
fn places(key: u64, levels: usize, bins: usize) -> impl Iterator<Item = usize> {
    let mut rest = key;
    (0..levels).map(move |level| {
        let product = u128::from(rest) * bins as u128;
        rest = product as u64;
        level * bins + (product >> 64) as usize
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two levels of four bins.
    const PARAMS: SfbParams = SfbParams {
        levels: 2,
        bins: 4,
        bin_size: 2,
        at_bin_size: false,
        increment: 0.25,
        decrement: 0.125,
        steps: None,
        full_bin: FullBin::Any,
        drops_above_half: false,
        penalty_rate: 10.0,
        penalty_burst: 2.0,
        rehash: None,
        warmup: Span::ZERO,
        linux_time: false,
    };

    /// The hash of a flow in these two bins of four.
    const fn key(first: u64, second: u64) -> u64 {
        first << 62 | second << 60
    }

    fn at_ms(ms: u64) -> Instant {
        Instant::ZERO + Span::ms(ms)
    }

    fn arrive(law: &mut SfbLaw, now: Instant, key: u64, u: f64) -> Option<Notice> {
        law.epoch_at(now);
        let (decision, keys) = law.on_arrival(now, key, || key.rotate_left(4), || u);
        match decision {
            Decision::Notify(notice) => Some(notice),
            Decision::Admit => {
                law.on_queued(&keys);
                None
            }
        }
    }

    #[test]
    fn the_bins_of_a_flow_are_the_digits_of_its_hash() {
        assert_eq!(places(key(3, 1), 2, 4).collect::<Vec<_>>(), [3, 5]);
        // 0.5 = 0.1111... to the base 3
        assert_eq!(places(1 << 63, 4, 3).collect::<Vec<_>>(), [1, 4, 7, 10]);
    }

    /// Three packets of a flow fill its bins beyond `bin_size`. Each further one raises both probabilities and is lost;
    /// another flow that shares a bin with it is lost as well, but its own probability stays 0.
    #[test]
    fn a_flow_is_judged_by_its_best_bin() {
        let mut law = SfbLaw::new(PARAMS);
        let (flood, beside, apart) = (key(0, 0), key(0, 1), key(1, 1));
        for _ in 0..3 {
            assert_eq!(arrive(&mut law, at_ms(0), flood, 0.9), None);
        }
        for n in 1..4u8 {
            assert_eq!(arrive(&mut law, at_ms(0), flood, 0.9).unwrap().reason, Reason::Forced);
            assert_eq!(law.probability(flood), 0.25 * f64::from(n));
        }
        assert_eq!(law.full(), 3);
        assert!(arrive(&mut law, at_ms(0), beside, 0.0).is_some(), "one of its bins is full");
        assert_eq!((law.probability(beside), law.probability(apart)), (0.0, 0.0));
        assert_eq!(arrive(&mut law, at_ms(0), apart, 0.0), None);
        // The shared bin has risen to 1, that of the other level not.
        assert_eq!((law.largest_probability(), law.probability(flood)), (1.0, 0.75));
        assert_eq!(law.longest(), 3);
    }

    #[test]
    fn an_arrival_that_finds_no_packet_of_its_bins_lowers_the_probability() {
        let mut law = SfbLaw::new(PARAMS);
        let (flood, keys) = (key(2, 2), [Some(key(2, 2)), None]);
        (0..3).for_each(|_| assert_eq!(arrive(&mut law, at_ms(0), flood, 0.9), None));
        assert!(arrive(&mut law, at_ms(0), flood, 0.9).is_some());
        (0..3).for_each(|_| law.on_departure(&keys));
        // 0.25 - 0.125, and the draw is below it
        assert_eq!(arrive(&mut law, at_ms(1), flood, 0.12), Some(Notice::EARLY));
        assert_eq!(law.probability(flood), 0.125);
        assert_eq!(arrive(&mut law, at_ms(2), flood, 0.0), None, "0.125 - 0.125");
    }

    /// 10 packets/s and a burst of 2: with an exact bucket, the third packet may pass 100 ms after the first.
    #[test]
    fn the_penalty_box_lets_its_rate_pass() {
        let full_bin = FullBin::All(100);
        // Linux fills the box when it is empty, and only with whole packets: with two at 1020 ms, for the time since the
        // start.
        for (linux_time, passes) in
            [(false, [true, true, false, true, false]), (true, [true, true, true, true, false])]
        {
            let mut law =
                SfbLaw::new(SfbParams { increment: 1.0, bin_size: 0, full_bin, linux_time, ..PARAMS });
            assert_eq!(arrive(&mut law, at_ms(1000), 0, 0.9), None, "p is 0");
            let times = [1000, 1010, 1020, 1101, 1102];
            let found = times.map(|ms| arrive(&mut law, at_ms(ms), 0, 0.9).is_none());
            assert_eq!(found, passes, "{linux_time}");
        }
    }

    #[test]
    fn above_one_half_linux_drops_twice_the_excess() {
        let steps = Some(65_535.0);
        let params = SfbParams { drops_above_half: true, steps, full_bin: FullBin::All(100), ..PARAMS };
        let law = SfbLaw::new(params);
        let p = 49_152.0;
        // (49152 - 32767) * 2 = 32770 of the 65536 values are drops.
        for (drawn, fate) in [
            (0.0, Some(false)),
            (32_769.0, Some(false)),
            (32_770.0, Some(true)),
            (49_151.0, Some(true)),
            (49_152.0, None),
        ] {
            let decision = law.chosen(p, || drawn / 65_536.0);
            let found = if let Decision::Notify(notice) = decision { Some(notice.markable) } else { None };
            assert_eq!(found, fate, "{drawn}");
        }
    }

    /// An unresponsive flow warms up its bins in the next set in the last part of the period, and is in the penalty box
    /// from the first packet after the change on.
    #[test]
    fn the_next_set_is_warmed_up() {
        for warmup in [0, 400] {
            let params = SfbParams {
                increment: 1.0,
                bin_size: 0,
                full_bin: FullBin::All(1000),
                penalty_rate: 0.0,
                penalty_burst: 100.0,
                rehash: Some(Span::s(1)),
                warmup: Span::ms(warmup),
                ..PARAMS
            };
            let mut law = SfbLaw::new(params);
            let flow = key(1, 2);
            for ms in [0, 100, 700, 800, 900] {
                assert_eq!(arrive(&mut law, at_ms(ms), flow, 0.9), None);
            }
            assert_eq!(law.largest_probability(), 1.0);
            law.epoch_at(at_ms(1000));
            let next = law.probability(flow.rotate_left(4));
            assert_eq!(next, if warmup == 0 { 0.0 } else { 1.0 }, "{warmup}");
            // Two changes later, nothing is known of it.
            law.epoch_at(at_ms(3500));
            assert_eq!(law.largest_probability(), 0.0);
        }
    }
}
