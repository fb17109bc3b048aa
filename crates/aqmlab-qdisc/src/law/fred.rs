//! Flow Random Early Drop (Lin and Morris, SIGCOMM 1997, figure 6).
//!
//! RED treats all flows alike. FRED takes into account how many packets the arrival's own flow has waiting.
//! Packets of a flow that has few of them waiting are not chosen at random, and a flow that has too many is
//! cut off. A flow that keeps exceeding its limit gets a strike each time; with two strikes it is limited to
//! the average share as long as it has packets waiting.

use aqmlab_units::{Bytes, Instant};

use super::{Average, ByteMode, Decision, IdleRule, Notice, Spacing, SpacingRule};
use crate::Reason;

/// Parameters of the law. Queue lengths are in packets.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FredParams {
    /// Average below which no packet is chosen at random.
    pub min_th: f64,
    /// Average at and above which every arrival is lost.
    pub max_th: f64,
    /// Probability at `max_th`.
    pub max_p: f64,
    /// Weight of a new sample in the average, w_q.
    pub weight: f64,
    /// Number of waiting packets below which a flow's arrivals are not chosen at random.
    pub min_q: f64,
    /// Number of waiting packets at which a flow is cut off.
    pub max_q: f64,
    /// When the rule for many flows applies.
    pub many_flows: ManyFlows,
    /// Packets of mean size that the link can send per second.
    pub packets_per_s: f64,
}

/// When to limit each flow to two waiting packets, instead of dropping every arrival while the average queue
/// is at `max_th` or above.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ManyFlows {
    /// Never.
    Off,
    /// While the average is at `max_th` or above.
    Average,
    /// While at least this many flows have packets waiting.
    Count(u64),
}

/// Number of waiting packets that a flow may have when there are many flows.
const TWO_PACKETS: f64 = 2.0;
/// Number of strikes that a flow may have without being limited to the average share.
const STRIKES_ALLOWED: u32 = 1;

/// The state of a flow that has packets waiting: `qlen_i` and `strike_i`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FredFlow {
    /// Waiting packets.
    pub queued: u32,
    /// Number of arrivals that exceeded the flow's limit.
    pub strikes: u32,
}

/// The state of the law, except for the state of the individual flows.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FredLaw {
    params: FredParams,
    average: Average,
    spacing: Spacing,
    /// `avgcq`: the average queue length divided by the number of flows that have packets waiting,
    /// but at least one packet.
    fair_share: f64,
}

impl FredLaw {
    /// Creates the law for an empty queue and an idle link.
    pub const fn new(params: FredParams) -> Self {
        FredLaw {
            params,
            average: Average::new(params.weight, IdleRule::Paper, params.packets_per_s),
            spacing: Spacing::new(SpacingRule::Paper, ByteMode::Off),
            fair_share: 1.0,
        }
    }

    /// Decides on an arrival while `active` flows have packets waiting. `draw` returns a number in [0, 1) and
    /// is called at most once. If the packet is then queued, the caller reports this with
    /// [`FredLaw::on_queued`].
    #[inline]
    pub fn on_arrival(
        &mut self,
        now: Instant,
        flow: &mut FredFlow,
        active: u64,
        size: Bytes,
        draw: impl FnOnce() -> f64,
    ) -> Decision {
        let FredParams { min_th, max_th, min_q, .. } = self.params;
        // Only queued packets update the average, but every arrival sees the decay of the average over the
        // time that the link has been idle.
        let avg = self.average.at(now);
        let (waiting, above) = (f64::from(flow.queued), avg >= max_th);
        if self.exceeds(flow, avg, active) {
            flow.strikes = flow.strikes.saturating_add(1);
            return forced();
        }
        if avg < min_th {
            self.spacing.leave();
            return Decision::Admit;
        }
        if above {
            self.spacing.notified();
            return if self.allows_two_packets(avg, active) { Decision::Admit } else { forced() };
        }
        self.spacing.step(size);
        let pb = self.probability(avg);
        if waiting >= min_q.max(self.fair_share) && self.spacing.hit(pb, size, draw) {
            return Decision::Notify(Notice::EARLY);
        }
        Decision::Admit
    }

    /// Returns whether the flow exceeds its limit: the step "identify and manage non-adaptive
    /// flows" in the paper's figure 6.
    #[inline]
    fn exceeds(&self, flow: &FredFlow, avg: f64, active: u64) -> bool {
        let FredParams { max_th, max_q, .. } = self.params;
        let waiting = f64::from(flow.queued);
        let two_packets = self.allows_two_packets(avg, active);
        waiting >= if two_packets { TWO_PACKETS } else { max_q }
            || (avg >= max_th && !two_packets && waiting > 2.0 * self.fair_share)
            || (flow.strikes > STRIKES_ALLOWED && waiting >= self.fair_share)
    }

    #[inline]
    fn allows_two_packets(&self, avg: f64, active: u64) -> bool {
        match self.params.many_flows {
            ManyFlows::Off => false,
            ManyFlows::Average => avg >= self.params.max_th,
            ManyFlows::Count(from) => active >= from,
        }
    }

    /// Records that the arrival is queued behind `queued` packets. `active` includes the arrival's flow.
    #[inline]
    pub fn on_queued(&mut self, now: Instant, queued: f64, active: u64) {
        let avg = self.average.on_arrival(now, queued);
        self.share(avg, active);
    }

    /// Records a departure that leaves `queued` packets waiting; `active` flows had packets waiting
    /// before it.
    #[inline]
    pub fn on_departure(&mut self, queued: f64, active: u64) {
        let avg = self.average.on_departure(queued);
        self.share(avg, active);
    }

    #[inline]
    fn share(&mut self, avg: f64, active: u64) {
        self.fair_share = (avg / active as f64).max(1.0);
    }

    /// Records that the link polled the empty queue.
    #[inline]
    pub fn on_idle(&mut self, now: Instant) {
        self.average.on_idle(now);
    }

    /// Changes the link's rate to `packets_per_s` packets of mean size per second.
    pub fn rate_changed(&mut self, now: Instant, packets_per_s: f64) {
        self.average.rate_changed(now, packets_per_s);
    }

    /// Returns the probability of a random drop, before spacing, at the average `avg`, for a flow
    /// that is subject to random drops.
    #[inline]
    pub fn probability(&self, avg: f64) -> f64 {
        let FredParams { min_th, max_th, max_p, .. } = self.params;
        if avg < min_th {
            0.0
        } else if avg < max_th {
            max_p * (avg - min_th) / (max_th - min_th)
        } else {
            1.0
        }
    }

    /// Returns the average queue.
    pub const fn average(&self) -> &Average {
        &self.average
    }

    /// Returns `avgcq`, the average number of waiting packets per flow, at the last queued arrival or
    /// departure.
    pub const fn fair_share(&self) -> f64 {
        self.fair_share
    }

    /// Returns the number of arrivals since the last notice, counting only those in the range of random
    /// drops.
    pub const fn count(&self) -> i64 {
        self.spacing.count()
    }
}

fn forced() -> Decision {
    Decision::Notify(Notice { reason: Reason::Forced, markable: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARAMS: FredParams = FredParams {
        min_th: 10.0,
        max_th: 20.0,
        max_p: 0.02,
        // With this weight, the average is the last sample.
        weight: 1.0,
        min_q: 2.0,
        max_q: 8.0,
        many_flows: ManyFlows::Off,
        packets_per_s: 1000.0,
    };
    const NOW: Instant = Instant::ZERO;

    /// Returns a law whose average is `avg` while `active` flows have packets waiting.
    fn at(params: FredParams, avg: f64, active: u64) -> FredLaw {
        let mut law = FredLaw::new(params);
        law.on_queued(NOW, avg, active);
        law
    }

    /// Returns the decision on an arrival whose flow has this many packets waiting and this many strikes, and
    /// the flow's strikes afterwards.
    fn ask(law: &mut FredLaw, queued: u32, strikes: u32, active: u64, draw: f64) -> (Option<Reason>, u32) {
        let mut flow = FredFlow { queued, strikes };
        let decision = law.on_arrival(NOW, &mut flow, active, Bytes::new(1000), || draw);
        assert_eq!(flow.queued, queued, "the queue counts packets, not the law");
        let reason = match decision {
            Decision::Admit => None,
            Decision::Notify(notice) => Some(notice.reason),
        };
        (reason, flow.strikes)
    }

    #[test]
    fn a_flow_at_max_q_is_cut_off_at_any_average_and_gets_a_strike() {
        let mut law = at(PARAMS, 0.0, 1);
        assert_eq!(ask(&mut law, 7, 0, 1, 0.0), (None, 0));
        assert_eq!(ask(&mut law, 8, 0, 1, 0.0), (Some(Reason::Forced), 1));
    }

    #[test]
    fn a_flow_with_two_strikes_is_held_to_the_fair_share() {
        // avgcq = 8 / 2 = 4.
        let mut law = at(PARAMS, 8.0, 2);
        assert_eq!(law.fair_share(), 4.0);
        assert_eq!(ask(&mut law, 4, 1, 2, 0.0), (None, 1), "one strike is not enough");
        assert_eq!(ask(&mut law, 4, 2, 2, 0.0), (Some(Reason::Forced), 3));
        assert_eq!(ask(&mut law, 3, 2, 2, 0.0), (None, 2), "below its share it may queue");
    }

    #[test]
    fn the_fair_share_is_at_least_one_packet() {
        assert_eq!(at(PARAMS, 3.0, 12).fair_share(), 1.0);
    }

    #[test]
    fn above_max_th_twice_the_fair_share_is_a_strike_and_everything_is_lost() {
        // avgcq = 24 / 8 = 3.
        let mut law = at(PARAMS, 24.0, 8);
        assert_eq!(ask(&mut law, 7, 0, 8, 0.0), (Some(Reason::Forced), 1));
        assert_eq!(ask(&mut law, 6, 0, 8, 0.0), (Some(Reason::Forced), 0), "lost, but no strike");
        assert_eq!(ask(&mut law, 0, 0, 8, 0.0), (Some(Reason::Forced), 0));
        assert_eq!(law.count(), 0);
    }

    #[test]
    fn between_the_thresholds_only_robust_flows_face_reds_draw() {
        // avgcq = 15 / 5 = 3 > min_q.
        let mut law = at(PARAMS, 15.0, 5);
        assert_eq!(ask(&mut law, 2, 0, 5, 0.0), (None, 0));
        assert_eq!(ask(&mut law, 3, 0, 5, 0.0), (Some(Reason::Early), 0));
        // avgcq = 15 / 12 < min_q = 2.
        let mut law = at(PARAMS, 15.0, 12);
        assert_eq!(ask(&mut law, 1, 0, 12, 0.0), (None, 0));
        assert_eq!(ask(&mut law, 2, 0, 12, 0.0), (Some(Reason::Early), 0));
    }

    #[test]
    fn fragile_flows_count_too() {
        // pb = 0.01; after 50 arrivals pa = 0.01 / (1 - 0.5) = 0.02.
        let mut law = at(PARAMS, 15.0, 5);
        assert_eq!(law.count(), -1);
        for _ in 0..50 {
            assert_eq!(ask(&mut law, 0, 0, 5, 0.0), (None, 0));
        }
        assert_eq!(law.count(), 49);
        let pa = 0.01 / (1.0 - 50.0 * 0.01);
        assert_eq!(ask(&mut { law }, 3, 0, 5, pa * 0.999), (Some(Reason::Early), 0));
        assert_eq!(ask(&mut { law }, 3, 0, 5, pa * 1.001), (None, 0));
        // Below min_th the count restarts.
        law.on_departure(9.0, 5);
        assert_eq!(ask(&mut law, 3, 0, 5, 0.0), (None, 0));
        assert_eq!(law.count(), -1);
    }

    #[test]
    fn departures_update_the_average_and_lost_arrivals_do_not() {
        let mut law = FredLaw::new(FredParams { weight: 0.25, ..PARAMS });
        law.on_queued(NOW, 8.0, 1);
        assert_eq!(law.average().at(NOW), 2.0);
        assert_eq!(ask(&mut law, 8, 0, 1, 0.0), (Some(Reason::Forced), 1));
        assert_eq!(law.average().at(NOW), 2.0);
        law.on_departure(4.0, 1);
        assert_eq!((law.average().at(NOW), law.fair_share()), (2.5, 2.5));
    }

    #[test]
    fn an_idle_link_ages_the_average_until_a_packet_is_queued() {
        // 1000 packets/s: after 10 ms, 0.5^10 of the average is left.
        let mut law = FredLaw::new(FredParams { weight: 0.5, ..PARAMS });
        law.on_queued(NOW, 64.0, 1);
        law.on_idle(NOW);
        let later = |ms: u64| NOW + aqmlab_units::Span::ms(ms);
        let reason = |law: &mut FredLaw, ms| match law.on_arrival(
            later(ms),
            &mut FredFlow::default(),
            0,
            Bytes::new(1000),
            || 0.0,
        ) {
            Decision::Admit => None,
            Decision::Notify(notice) => Some(notice.reason),
        };
        assert_eq!(law.average().at(NOW), 32.0);
        // Lost arrivals do not stop the decay of the average.
        assert_eq!(reason(&mut law, 0), Some(Reason::Forced));
        assert_eq!(
            reason(&mut law, 1),
            None,
            "16 is between the thresholds, and the flow has nothing waiting"
        );
        law.on_queued(later(2), 0.0, 1);
        assert_eq!(law.average().at(later(2)), 8.0, "aged once, with no further step");
    }

    #[test]
    fn with_many_flows_each_may_have_two_packets() {
        for (many_flows, avg, active) in [
            (ManyFlows::Average, 24.0, 100),
            (ManyFlows::Count(12), 24.0, 12),
            (ManyFlows::Count(12), 5.0, 12),
        ] {
            let mut law = at(FredParams { many_flows, ..PARAMS }, avg, active);
            assert_eq!(ask(&mut law, 1, 0, active, 0.0), (None, 0), "{many_flows:?}");
            assert_eq!(ask(&mut law, 2, 0, active, 0.0), (Some(Reason::Forced), 1), "{many_flows:?}");
        }
        let mut few = at(FredParams { many_flows: ManyFlows::Count(12), ..PARAMS }, 24.0, 11);
        assert_eq!(ask(&mut few, 0, 0, 11, 0.0), (Some(Reason::Forced), 0));
    }
}
