//! RED with Preferential Dropping (Mahajan and Floyd, ICNP 2001; ns-2.35 and its scripts).
//!
//! RED drops packets of each flow in proportion to the flow's rate. The flows with drops in most of
//! the recent congestion epochs therefore send much more than a TCP connection with the target
//! round-trip time would send at the same drop rate. The law monitors such flows: a filter ahead of
//! the queue drops some of their packets until they lose no more in the queue than other flows do.

use alloc::vec::Vec;

use aqmlab_units::{Bytes, Instant, Span};

pub use super::red_pd_flow::RedPdParams;
use super::red_pd_flow::{MOST_LISTS, Monitored, PdFlow};
use crate::flow_table::FlowTable;

/// Number of past intervals whose lengths are kept.
const REMEMBERED: usize = 8;
/// ns-2: time from each identification to the lowering of probabilities.
const LOWERING_DELAY: Span = Span::ms(1);
/// ns-2: largest initial probability of a monitored flow, which is also limited to twice the drop
/// rate.
const FIRST_AT_MOST: f64 = 0.5;
/// Largest number of flows for which room is reserved in advance. If more flows than this lose packets, the
/// room doubles.
const RESERVED_AT_MOST: usize = 1024;
/// Average drop rate below which the average counts as zero.
const NO_DROPS: f64 = 1e-12;

/// The law's state.
#[derive(Clone, Debug)]
pub struct RedPdLaw {
    params: RedPdParams,
    flows: FlowTable<PdFlow>,
    /// Bytes that arrived at RED, and bytes that it dropped, in the current interval.
    arrived: u64,
    dropped: u64,
    drop_rate: Option<f64>,
    /// Lengths of the last intervals, the newest first.
    intervals: [Span; REMEMBERED],
    /// Index of the next list, modulo the number of lists.
    list: usize,
    identified: Instant,
    identify_at: Instant,
    lower_at: Option<Instant>,
    /// Buffer for the lists, kept so that the steady state allocates nothing.
    scratch: Vec<(u64, u64)>,
}

impl RedPdLaw {
    /// Creates the law for an empty queue at time zero.
    pub fn new(params: RedPdParams) -> Self {
        assert!(params.lists <= MOST_LISTS, "the history has at most eight lists");
        RedPdLaw {
            params,
            flows: FlowTable::with_room(0),
            arrived: 0,
            dropped: 0,
            drop_rate: None,
            intervals: [Span::ZERO; REMEMBERED],
            list: 0,
            identified: Instant::ZERO,
            identify_at: Instant::ZERO + params.start,
            lower_at: None,
            scratch: Vec::new(),
        }
    }

    /// Reserves room for the state of this many flows, but for at most a thousand flows, because each
    /// identification visits all reserved slots.
    pub fn reserve(&mut self, flows: usize) {
        let flows = flows.min(RESERVED_AT_MOST);
        self.flows.reserve(flows);
        self.scratch.reserve(flows.saturating_sub(self.scratch.len()));
    }

    /// Decides on an arriving packet of a flow. Returns whether it is dropped before it reaches RED.
    /// `above_min_th` tells whether RED's average is above `min_th`, and `waits` whether more than one unit
    /// (packet or byte) waits. `draw` returns a number in [0, 1).
    #[inline]
    pub fn on_arrival(
        &mut self,
        now: Instant,
        flow: u64,
        size: Bytes,
        above_min_th: bool,
        waits: bool,
        draw: impl FnOnce() -> f64,
    ) -> bool {
        self.catch_up(now);
        let Some(state) = self.flows.get_mut(flow) else { return false };
        state.arrived += size.get();
        let Some(monitored) = &mut state.monitored else { return false };
        let may_drop = match monitored.unresponsive {
            false => above_min_th && waits,
            true => waits || !self.params.no_idle,
        };
        let drops = monitored.drops(may_drop, size, draw);
        if drops {
            state.lost += size.get();
        }
        drops
    }

    /// Records that the packet reached RED, and whether RED dropped it.
    #[inline]
    pub fn on_red(&mut self, flow: u64, size: Bytes, dropped: bool) {
        self.arrived += size.get();
        if dropped {
            self.on_drop(flow, size.get());
        }
    }

    #[inline(never)]
    fn on_drop(&mut self, flow: u64, size: u64) {
        self.dropped += size;
        let known = self.flows.get(flow).is_some();
        let state = self.flows.get_or_default(flow);
        if !known {
            state.arrived = size;
        }
        state.dropped += size;
        state.lost += size;
    }

    /// Performs all identifications and reductions of probabilities that are due up to and
    /// including `now`.
    #[inline]
    pub fn catch_up(&mut self, now: Instant) {
        if now >= self.lower_at.unwrap_or(self.identify_at) {
            self.run_timer(now);
        }
    }

    /// During a silence, no flow remains on a list after `lists` intervals, and every probability
    /// falls. After a few hundred intervals nothing can change any more, so the rest of the silence
    /// is handled in one step.
    #[cold]
    fn run_timer(&mut self, now: Instant) {
        loop {
            if let Some(at) = self.lower_at.filter(|at| *at <= now) {
                self.lower_at = None;
                self.lower(at);
            } else if self.lower_at.is_none() && self.identify_at <= now {
                self.leap(now);
                self.identify(self.identify_at);
            } else {
                return;
            }
        }
    }

    /// Skips identifications that change nothing, but not the last one that is due.
    fn leap(&mut self, now: Instant) {
        let longest = self.params.max_interval;
        let settled = self.flows.len() == 0
            && self.arrived == 0
            && self.drop_rate == Some(0.0)
            && self.intervals == [longest; REMEMBERED];
        if settled {
            let skipped = (now - self.identify_at).div_span(longest);
            self.identified += longest * skipped;
            self.identify_at += longest * skipped;
            self.list += (skipped % self.params.lists as u64) as usize;
        }
    }

    /// Does ns-2's `do_detect`.
    fn identify(&mut self, now: Instant) {
        let elapsed = now - self.identified;
        let (current, average) = self.drop_rates();
        let usable = current.min(average);
        self.make_list();
        if current > self.params.min_drop_rate {
            self.raise(now, elapsed, usable);
        }
        let interval = self.interval(average);
        self.intervals.rotate_right(1);
        self.intervals[0] = interval;
        self.begin_interval(now);
        self.identified = now;
        self.identify_at = now + interval;
        self.lower_at = Some(now + LOWERING_DELAY);
    }

    /// Returns the drop rate of RED in this interval, and the updated average of the drop rate.
    fn drop_rates(&mut self) -> (f64, f64) {
        let current = if self.arrived == 0 { 0.0 } else { self.dropped as f64 / self.arrived as f64 };
        let weight = self.params.drop_rate_weight;
        let average = match self.drop_rate {
            None => current,
            Some(average) => weight * current + (1.0 - weight) * average,
        };
        let average = if average < NO_DROPS { 0.0 } else { average };
        self.drop_rate = Some(average);
        (current, average)
    }

    /// Puts the flows with the most dropped bytes in this interval on the newest list, which
    /// replaces the oldest.
    fn make_list(&mut self) {
        self.scratch.clear();
        let dropped = self.flows.iter().filter(|(_, state)| state.dropped > 0);
        self.scratch.extend(dropped.map(|(flow, state)| (state.dropped, flow)));
        if self.scratch.len() > self.params.list_flows {
            self.scratch.sort_unstable_by(|a, b| b.cmp(a));
            self.scratch.truncate(self.params.list_flows);
        }
        let newest = self.list % self.params.lists;
        self.list = newest + 1;
        self.flows.iter_mut().for_each(|(_, state)| state.lists[newest] = 0);
        for (dropped, flow) in &self.scratch {
            if let Some(state) = self.flows.get_mut(*flow) {
                state.lists[newest] = *dropped;
            }
        }
    }

    /// Monitors the flows that are on enough lists, and raises the probability of those already
    /// monitored.
    fn raise(&mut self, now: Instant, elapsed: Span, usable: f64) {
        let RedPdParams { hits, unresponsive_test, .. } = self.params;
        let sought = |state: &PdFlow| state.hits() >= hits;
        let (mut flows, mut dropped) = (0u64, 0u64);
        for (_, state) in self.flows.iter().filter(|(_, state)| sought(state)) {
            flows += 1;
            dropped += state.in_history();
        }
        let mean = dropped as f64 / flows as f64;
        let least = self.least_between_changes(4);
        for (_, state) in self.flows.iter_mut().filter(|(_, state)| sought(state)) {
            // A flow that lost nothing in this interval is not punished for losses in earlier ones.
            if since_change(state, now) < least || state.lost == 0 {
                continue;
            }
            let share = usable * state.in_history() as f64 / mean;
            let monitored = match &mut state.monitored {
                Some(monitored) => {
                    monitored.unresponsive |= unresponsive_test && monitored.does_not_respond();
                    monitored.raise(share);
                    monitored
                }
                vacant => vacant.insert(Monitored::new(share.min(2.0 * usable).min(FIRST_AT_MOST))),
            };
            let arrived = state.arrived as f64;
            monitored.note(arrived / elapsed.as_secs_f64(), state.lost as f64 / arrived);
            state.changed = Some(now);
        }
    }

    /// Returns `B`, the time to the next identification: the fraction `hits / lists` of a congestion epoch of
    /// the target flow, which at the drop rate p has one drop per `R / sqrt(1.5 p)` seconds.
    fn interval(&self, drop_rate: f64) -> Span {
        let RedPdParams { min_interval, max_interval, .. } = self.params;
        if drop_rate == 0.0 {
            return max_interval;
        }
        let part = self.params.hits as f64 / self.params.lists as f64;
        let seconds = part * self.params.target_rtt.as_secs_f64() / libm::sqrt(1.5 * drop_rate);
        Span::try_from_secs_f64(seconds).map_or(max_interval, |b| b.clamp(min_interval, max_interval))
    }

    /// Clears the interval's counters, and removes the state of flows for which it is no longer needed.
    fn begin_interval(&mut self, now: Instant) {
        (self.arrived, self.dropped) = (0, 0);
        let least = self.least_between_changes(4);
        self.scratch.clear();
        for (flow, state) in self.flows.iter_mut() {
            (state.arrived, state.dropped, state.lost) = (0, 0, 0);
            if state.hits() == 0 && state.monitored.is_none() && since_change(state, now) >= least {
                self.scratch.push((0, flow));
            }
        }
        for (_, flow) in &self.scratch {
            self.flows.remove(*flow);
        }
    }

    /// Implements `do_reward` of ns-2: lowers the probability of monitored flows that are on no list.
    fn lower(&mut self, now: Instant) {
        let params = self.params;
        let (responsive, unresponsive) = (self.least_between_changes(3), self.least_between_changes(5));
        for (_, state) in self.flows.iter_mut().filter(|(_, state)| state.hits() == 0) {
            let since = since_change(state, now);
            let Some(monitored) = &mut state.monitored else { continue };
            if since < if monitored.unresponsive { unresponsive } else { responsive } {
                continue;
            }
            if !monitored.lower(&params) {
                state.monitored = None;
            }
            state.changed = Some(now);
        }
    }

    /// Returns the total length of the last `intervals`, but at least `min_change`.
    fn least_between_changes(&self, intervals: usize) -> Span {
        let sum = self.intervals[..intervals].iter().fold(Span::ZERO, |sum, b| sum + *b);
        sum.max(self.params.min_change)
    }

    /// Returns the probability, before spreading, with which the filter drops the flow's packets; 0
    /// if the flow is not monitored.
    pub fn probability(&self, flow: u64) -> f64 {
        self.flows.get(flow).and_then(|state| state.monitored.as_ref()).map_or(0.0, |m| m.p)
    }

    /// Returns whether this flow is considered unresponsive to drops.
    pub fn is_unresponsive(&self, flow: u64) -> bool {
        self.flows.get(flow).and_then(|state| state.monitored.as_ref()).is_some_and(|m| m.unresponsive)
    }

    /// Returns the number of monitored flows and the highest probability among them.
    pub fn monitored(&self) -> (usize, f64) {
        let monitored = self.flows.iter().filter_map(|(_, state)| state.monitored.as_ref());
        monitored.fold((0, 0.0), |(n, most): (usize, f64), m| (n + 1, most.max(m.p)))
    }

    /// Returns the average drop rate in RED at the last identification.
    pub fn drop_rate(&self) -> f64 {
        self.drop_rate.unwrap_or(0.0)
    }
}

fn since_change(state: &PdFlow, now: Instant) -> Span {
    now.saturating_since(state.changed.unwrap_or(Instant::ZERO))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) const PARAMS: RedPdParams = RedPdParams {
        target_rtt: Span::ms(40),
        lists: 5,
        hits: 3,
        list_flows: 50,
        min_interval: Span::ms(80),
        max_interval: Span::ms(400),
        start: Span::ms(100),
        drop_rate_weight: 0.5,
        min_drop_rate: 0.001,
        min_change: Span::ms(400),
        max_reduction: 0.05,
        release: 0.005,
        unresponsive_test: true,
        no_idle: false,
    };
    const SIZE: Bytes = Bytes::new(1000);

    fn ms(n: u64) -> Instant {
        Instant::ZERO + Span::ms(n)
    }

    /// Sends, in each millisecond, one packet of each of ten flows and `heavy` packets of flow 0; RED drops
    /// every 20th packet.
    fn load(law: &mut RedPdLaw, from: u64, to: u64, heavy: u64, number: &mut u64) {
        for at in from..to {
            for flow in (0..heavy).map(|_| 0).chain(1..=10) {
                *number += 1;
                if !law.on_arrival(ms(at), flow, SIZE, true, true, || 0.999) {
                    law.on_red(flow, SIZE, number.is_multiple_of(20));
                }
            }
        }
    }

    #[test]
    fn the_interval_is_a_part_of_the_epoch_of_a_tcp() {
        let law = RedPdLaw::new(PARAMS);
        // 3/5 * 40 ms / sqrt(1.5 * 0.01) = 195.96 ms.
        let seconds = |p: f64| law.interval(p).as_secs_f64();
        assert!((seconds(0.01) - 0.195_959_18).abs() < 1e-8, "{}", seconds(0.01));
        assert_eq!((seconds(0.0), seconds(1e-4), seconds(0.9)), (0.4, 0.4, 0.08));
    }

    #[test]
    fn a_flow_on_three_of_five_lists_is_monitored() {
        let (mut law, mut number) = (RedPdLaw::new(PARAMS), 0);
        load(&mut law, 0, 2000, 30, &mut number);
        assert!(law.probability(0) > 0.0, "{:?}", law.monitored());
        assert!((law.drop_rate() - 0.05).abs() < 0.01, "{}", law.drop_rate());
        assert_eq!(law.probability(99), 0.0);
    }

    #[test]
    fn the_first_probability_is_the_flows_share_of_the_drop_rate() {
        // The only flow on the lists has exactly the mean number of dropped bytes, so its share is
        // the drop rate itself, 0.1.
        let mut law = RedPdLaw::new(PARAMS);
        for n in 0..1500u64 {
            assert!(!law.on_arrival(ms(n), 0, SIZE, true, true, || 0.999));
            law.on_red(0, SIZE, n % 10 == 5);
            if law.probability(0) > 0.0 {
                assert!((law.probability(0) - 0.1).abs() < 0.03, "{}", law.probability(0));
                // Identifications take place at 100 ms and then every 80 ms. The flow is on its third list at
                // 260 ms, but `min_change`, 400 ms, must have passed first.
                assert_eq!(n, 420);
                return;
            }
        }
        panic!("never monitored");
    }

    #[test]
    fn a_flow_is_first_monitored_with_its_share_in_bounds() {
        for (usable, large, small) in [(0.1, 0.2, 0.1 * 300.0 / 780.0), (0.4, 0.5, 0.4 * 300.0 / 780.0)] {
            let mut law = RedPdLaw::new(PARAMS);
            for flow in 0..5 {
                let state = law.flows.get_or_default(flow);
                let dropped = if flow == 0 { 900 } else { 100 };
                (state.arrived, state.lost) = (1000, dropped);
                state.lists[..3].fill(dropped);
            }
            // The mean of 2700, 300, 300, 300 and 300 is 780; the share of flow 0 is 3.46 times the drop rate.
            law.raise(ms(1000), Span::ms(100), usable);
            assert_eq!(law.probability(0), large);
            assert!((law.probability(1) - small).abs() < 1e-12, "{}", law.probability(1));
        }
    }

    #[test]
    fn responsive_flows_are_spared_when_the_queue_is_short_and_unresponsive_ones_are_not() {
        let mut law = RedPdLaw::new(PARAMS);
        let state = law.flows.get_or_default(7);
        state.monitored = Some(Monitored::new(1.0));
        let asked = |law: &mut RedPdLaw, above, waits| law.on_arrival(ms(0), 7, SIZE, above, waits, || 0.5);
        assert!(asked(&mut law, true, true));
        assert!(!asked(&mut law, false, true) && !asked(&mut law, true, false));
        law.flows.get_or_default(7).monitored.as_mut().unwrap().unresponsive = true;
        assert!(asked(&mut law, false, true) && asked(&mut law, false, false));
        law.params.no_idle = true;
        assert!(asked(&mut law, false, true) && !asked(&mut law, false, false));
    }

    #[test]
    fn a_constant_flood_is_found_unresponsive_and_is_released_in_a_silence() {
        let (mut law, mut number) = (RedPdLaw::new(PARAMS), 0);
        load(&mut law, 0, 20_000, 30, &mut number);
        assert!(law.is_unresponsive(0));
        let p = law.probability(0);
        assert!(p > 0.2, "{p}");
        load(&mut law, 20_000, 40_000, 0, &mut number);
        assert!(law.probability(0) < p);
        law.catch_up(ms(200_000));
        assert_eq!((law.monitored(), law.flows.len()), ((0, 0.0), 0));
    }

    #[test]
    fn a_leap_over_a_silence_equals_waking_at_every_instant() {
        for silence in [1u64, 79, 500, 5000, 100_000, 3_600_000] {
            let (mut leaping, mut number) = (RedPdLaw::new(PARAMS), 0);
            load(&mut leaping, 0, 5000, 30, &mut number);
            let mut woken = leaping.clone();
            (1..=silence).for_each(|n| woken.catch_up(ms(4999 + n)));
            let end = ms(4999 + silence);
            leaping.catch_up(end);
            assert_eq!(leaping.drop_rate, woken.drop_rate);
            assert_eq!((leaping.identified, leaping.identify_at), (woken.identified, woken.identify_at));
            assert_eq!((leaping.intervals, leaping.monitored()), (woken.intervals, woken.monitored()));
        }
    }

    #[test]
    fn a_long_list_keeps_the_flows_of_most_dropped_bytes() {
        let mut law = RedPdLaw::new(RedPdParams { list_flows: 3, ..PARAMS });
        for flow in 0..10 {
            law.on_red(flow, Bytes::new(100 * (1 + flow * 7 % 10)), true);
        }
        law.make_list();
        let mut listed: Vec<u64> = law.flows.iter().map(|(_, state)| state.in_history()).collect();
        listed.sort_unstable();
        assert_eq!(listed[6..], [0, 800, 900, 1000]);
    }
}
