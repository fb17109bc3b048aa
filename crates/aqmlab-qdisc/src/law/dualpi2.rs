//! DualPI2 (RFC 9332, appendix A): two queues with coupled laws. The L queue holds traffic of scalable senders
//! (L4S), the C queue Classic traffic. One controller sets p'; C is notified with probability p'^2, L with
//! k p' or more often, as its own law requires.

use aqmlab_units::{Bytes, Instant, Span};

use super::{Coins, Pi2Law, Pi2Params, Recurrence};

/// Parameters of the laws and of the scheduler.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DualPi2Params {
    /// The base controller.
    pub base: Pi2Params,
    /// k: the coupled probability of L is k p'.
    pub coupling: f64,
    /// What happens when k p' reaches 1.
    pub overload: Overload,
    /// How coins fall.
    pub coins: Coins,
    /// L's own law.
    pub native: Native,
    /// The number of packets that must remain in L if its own law is to mark.
    pub least_left: u64,
    /// How the probabilities of the two laws that concern L are combined.
    pub combine: Combine,
    /// The coupled law notifies nobody if less than this remains in both queues together.
    pub idle_below: Bytes,
    /// The order of service.
    pub scheduling: Scheduling,
}

/// What happens when the coupled probability reaches 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Overload {
    /// Nothing: ECN-capable packets are never dropped by a law (RFC 9332, appendix A.1).
    None,
    /// L is subject to C's drops, and C no longer marks (RFC 9332, appendix A.2).
    Drop,
    /// p' is limited to 1 / k, and the buffer overflows.
    Overflow,
}

/// L's own law, which considers only L.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Native {
    /// The probability rises from 0 at a waiting time of `min` to 1 at `min` plus `range`.
    Ramp {
        /// Waiting time up to which nothing is marked.
        min: Span,
        /// Width of the ramp.
        range: Span,
    },
    /// Marks what has waited longer than this.
    Step(Span),
    /// Marks a packet that leaves more than this number behind.
    StepPackets(u64),
}

/// The combination of the coupled probability and that of L's own law.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Combine {
    /// The larger of the two.
    Max,
    /// A coin for each; either suffices.
    Or,
}

/// The order of service.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scheduling {
    /// Weighted round robin by bytes: while both queues wait, C has `protection` hundredths of the link.
    RoundRobin {
        /// Hundredths of the link, at most 100.
        protection: u64,
        /// The packet size that determines the first credit.
        mtu: Bytes,
    },
    /// The packet that has waited longest, with L's packets taken to have waited this much longer.
    ShiftedFifo(Span),
}

/// One of the two queues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lane {
    /// Scalable traffic.
    L4s,
    /// Classic traffic.
    Classic,
}

/// The laws' decision on a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// It leaves untouched.
    Pass,
    /// It is marked: by L's own law with certainty if `forced`, otherwise by chance.
    Mark {
        /// Whether a threshold was passed.
        forced: bool,
    },
    /// It is lost.
    Drop,
}

impl Native {
    /// Returns the probability of L's own law for a packet that waited this long and leaves `left` packets
    /// behind.
    // RFC 9332, figure 5.
    pub fn probability(self, sojourn: Span, left: u64) -> f64 {
        match self {
            Native::Ramp { min, range } if sojourn >= min + range => 1.0,
            Native::Ramp { min, range } if sojourn > min => {
                (sojourn - min).as_secs_f64() / range.as_secs_f64()
            }
            Native::Ramp { .. } => 0.0,
            Native::Step(step) => f64::from(u8::from(sojourn > step)),
            Native::StepPackets(most) => f64::from(u8::from(left > most)),
        }
    }
}

/// The state of the laws and of the scheduler.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DualPi2Law {
    params: DualPi2Params,
    base: Pi2Law,
    /// Sums of probabilities of each queue, for recurrent coins.
    sums: [Recurrence; 2],
    /// C's credit, in bytes times hundredths: above 0, C is next.
    credit: i64,
}

impl DualPi2Law {
    /// Creates the laws for empty queues at time zero.
    pub fn new(params: DualPi2Params) -> Self {
        let base = Pi2Law::new(params.base);
        let mut law = DualPi2Law { params, base, sums: [Recurrence::default(); 2], credit: 0 };
        law.on_idle();
        law
    }

    /// Makes all updates of p' that are due up to and including `now`, as [`Pi2Law::catch_up`].
    #[inline]
    pub fn catch_up(&mut self, now: Instant, oldest: impl FnOnce() -> Option<Instant>) {
        self.base.catch_up(now, oldest);
    }

    /// Makes one update of p' with this waiting time, for a caller that has a schedule of its own.
    pub fn update(&mut self, delay: Span) {
        self.base.update(delay);
    }

    /// Returns the queue that is next, given the arrival times of the packets at the heads.
    #[inline]
    pub fn next(&self, l4s: Option<Instant>, classic: Option<Instant>) -> Option<Lane> {
        let (l4s, classic) = match (l4s, classic) {
            (None, None) => return None,
            (Some(_), None) => return Some(Lane::L4s),
            (None, Some(_)) => return Some(Lane::Classic),
            (Some(l4s), Some(classic)) => (l4s, classic),
        };
        let is_l4s = match self.params.scheduling {
            Scheduling::RoundRobin { .. } => self.credit <= 0,
            Scheduling::ShiftedFifo(shift) => classic.saturating_add(shift) >= l4s,
        };
        Some(if is_l4s { Lane::L4s } else { Lane::Classic })
    }

    /// Records that a packet of `size` leaves for the link, and whether the other queue has packets.
    #[inline]
    pub fn on_departure(&mut self, from: Lane, size: Bytes, other_waits: bool) {
        let Scheduling::RoundRobin { protection, .. } = self.params.scheduling else { return };
        if other_waits {
            let bytes = size.get() as i64;
            match from {
                Lane::L4s => self.credit += bytes * protection as i64,
                Lane::Classic => self.credit -= bytes * (100 - protection) as i64,
            }
        }
    }

    /// Records that the link found no packet.
    pub fn on_idle(&mut self) {
        if let Scheduling::RoundRobin { protection, mtu } = self.params.scheduling {
            self.credit = mtu.get() as i64 * (2 * protection as i64 - 100);
        }
    }

    /// Decides on a Classic packet that is ECN-capable or not; `left` remains in both queues, without it.
    #[inline]
    pub fn classic(&mut self, capable: bool, left: Bytes, draw: impl FnMut() -> f64) -> Verdict {
        let DualPi2Params { coins, idle_below, .. } = self.params;
        let sum = &mut self.sums[Lane::Classic as usize];
        if left < idle_below || !coins.squared(sum, self.base.probability(), draw) {
            Verdict::Pass
        } else if capable && !self.is_classic_overloaded() {
            Verdict::Mark { forced: false }
        } else {
            Verdict::Drop
        }
    }

    /// Decides on a packet of a scalable sender, which `native` would mark with this probability. `left`
    /// remains in both queues, without the packet. A law that notifies at arrivals has two parts: there,
    /// `native` is 0; when the packet leaves, [`DualPi2Law::native`] follows.
    // RFC 9332, figure 9, lines 4 to 8.
    #[inline]
    pub fn scalable(
        &mut self,
        capable: bool,
        left: Bytes,
        native: f64,
        mut draw: impl FnMut() -> f64,
    ) -> Verdict {
        let DualPi2Params { coins, idle_below, combine, .. } = self.params;
        let (p, awake) = (self.base.probability(), left >= idle_below);
        let (coupled, overloaded) = (self.coupled(), awake && self.is_overloaded());
        let sum = &mut self.sums[Lane::L4s as usize];
        if overloaded {
            if coins.squared(sum, p, &mut draw) {
                return Verdict::Drop;
            }
            if coins.linear(sum, coupled, draw) {
                return Verdict::Mark { forced: false };
            }
            return Verdict::Pass;
        }
        let coupled = if awake { coupled } else { 0.0 };
        let chosen = match combine {
            Combine::Max => coins.linear(sum, native.max(coupled), draw),
            Combine::Or => coins.linear(sum, coupled, &mut draw) | coins.linear(sum, native, draw),
        };
        match (chosen, capable) {
            (false, _) => Verdict::Pass,
            (true, true) => Verdict::Mark { forced: native >= 1.0 },
            (true, false) => Verdict::Drop,
        }
    }

    /// Returns the probability of L's own law for a packet that waited this long and leaves `left` packets
    /// behind in L.
    #[inline]
    pub fn native(&self, sojourn: Span, left: u64) -> f64 {
        // RFC 9332, figure 9, lines 5a to 5d: a queue of one packet is not marked.
        if left < self.params.least_left { 0.0 } else { self.params.native.probability(sojourn, left) }
    }

    /// Decides on a packet that leaves L and that the coupled law has already seen.
    pub fn native_alone(&mut self, native: f64, draw: impl FnMut() -> f64) -> Verdict {
        if self.params.coins.linear(&mut self.sums[Lane::L4s as usize], native, draw) {
            Verdict::Mark { forced: native >= 1.0 }
        } else {
            Verdict::Pass
        }
    }

    /// Returns whether L is subject to C's drops.
    pub fn is_overloaded(&self) -> bool {
        self.params.overload == Overload::Drop && self.base.is_overloaded(self.params.coupling)
    }

    /// Returns whether C drops what it would mark.
    // RFC 9332, figure 9, line 12b: p_C >= p_Cmax, which is min(1 / k^2, 1).
    fn is_classic_overloaded(&self) -> bool {
        self.params.overload == Overload::Drop && self.base.is_overloaded(self.params.coupling.max(1.0))
    }

    /// Returns p', the base probability at the last update.
    #[inline]
    pub const fn probability(&self) -> f64 {
        self.base.probability()
    }

    /// Returns the coupled probability of L: k p', at most 1.
    #[inline]
    pub fn coupled(&self) -> f64 {
        (self.params.coupling * self.base.probability()).min(1.0)
    }

    /// Returns C's credit, in bytes times hundredths.
    pub const fn credit(&self) -> i64 {
        self.credit
    }

    /// Returns the parameters.
    pub const fn params(&self) -> &DualPi2Params {
        &self.params
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    use crate::law::Arithmetic;

    fn law(coupling: f64, overload: Overload) -> DualPi2Law {
        DualPi2Law::new(DualPi2Params {
            base: Pi2Params {
                target: Span::ZERO,
                period: Span::ms(16),
                alpha: 1.0,
                beta: 0.0,
                most: 1.0,
                arithmetic: Arithmetic::Exact,
            },
            coupling,
            overload,
            coins: Coins::Random,
            native: Native::Ramp { min: Span::us(800), range: Span::us(400) },
            least_left: 2,
            combine: Combine::Max,
            idle_below: Bytes::ZERO,
            scheduling: Scheduling::RoundRobin { protection: 10, mtu: Bytes::new(1500) },
        })
    }

    /// A draw for squared and linear coins alike.
    fn falls(below: f64) -> impl FnMut() -> f64 {
        move || below - 1e-9
    }

    /// `vectors/rfc/dualpi2/map.csv`.
    #[test]
    fn the_coupling_is_that_of_the_rfc() {
        let mut rows = 0;
        for row in include_str!("../../../../vectors/rfc/dualpi2/map.csv").lines().skip(1) {
            let [p, k, p_c, p_cl]: [f64; 4] =
                row.split(',').map(|x| x.parse().unwrap()).collect::<Vec<_>>().try_into().unwrap();
            let mut law = law(k, Overload::Drop);
            law.update(Span::try_from_secs_f64(p).unwrap());
            assert!((law.probability() - p).abs() < 1e-12 && (law.coupled() - p_cl).abs() < 1e-12);
            assert!((law.probability() * law.probability() - p_c).abs() < 1e-12);
            assert_eq!(law.is_overloaded(), k * p >= 1.0);
            // Of squared coins, both draws fall below p'; of linear ones, the draw falls below k p'.
            let dropped = Verdict::Drop;
            assert_eq!(law.classic(false, Bytes::ZERO, falls(p)), dropped);
            assert_eq!(law.classic(false, Bytes::ZERO, falls(p + 2e-9)), Verdict::Pass);
            let marked = if k * p >= 1.0 { dropped } else { Verdict::Mark { forced: false } };
            assert_eq!(law.classic(true, Bytes::ZERO, falls(p)), marked, "overload disables ECN");
            assert_eq!(law.scalable(true, Bytes::ZERO, 0.0, falls(p_cl)), Verdict::Mark { forced: false });
            assert_eq!(law.scalable(true, Bytes::ZERO, 0.0, falls(p)), marked);
            rows += 1;
        }
        assert_eq!(rows, 3);
    }

    #[test]
    fn l_has_a_ramp_or_a_step_of_its_own() {
        let law = law(2.0, Overload::Drop);
        for (us, p) in [(800, 0.0), (900, 0.25), (1100, 0.75), (1200, 1.0), (9000, 1.0)] {
            assert!((law.native(Span::us(us), 2) - p).abs() < 1e-12, "{us} us");
            assert_eq!(law.native(Span::us(us), 1), 0.0, "a queue of one packet");
        }
        let step = Native::Step(Span::ms(1));
        assert_eq!([1000, 1001].map(|us| step.probability(Span::us(us), 0)), [0.0, 1.0]);
        assert_eq!([5, 6].map(|left| Native::StepPackets(5).probability(Span::ZERO, left)), [0.0, 1.0]);
    }

    #[test]
    fn without_overload_handling_no_capable_packet_is_dropped() {
        for overload in [Overload::None, Overload::Overflow] {
            let mut law = law(2.0, overload);
            law.update(Span::s(1));
            assert_eq!(law.probability(), 1.0);
            assert_eq!(law.classic(true, Bytes::ZERO, falls(1.0)), Verdict::Mark { forced: false });
            assert_eq!(law.scalable(true, Bytes::ZERO, 0.0, falls(1.0)), Verdict::Mark { forced: false });
        }
    }

    #[test]
    fn while_both_wait_c_has_its_share_of_bytes() {
        let mut law = law(2.0, Overload::Drop);
        let heads = Some(Instant::ZERO);
        let mut bytes = [0u64; 2];
        for _ in 0..20_000 {
            let lane = law.next(heads, heads).unwrap();
            let size = if lane == Lane::L4s { 300 } else { 1500 };
            bytes[lane as usize] += size;
            law.on_departure(lane, Bytes::new(size), true);
        }
        let share = bytes[1] as f64 / (bytes[0] + bytes[1]) as f64;
        assert!((share - 0.1).abs() < 1e-3, "{share}");
        assert_eq!(law.next(None, heads), Some(Lane::Classic));
        assert_eq!(law.next(None, None), None);
    }

    #[test]
    fn a_shifted_fifo_prefers_l_by_the_shift() {
        let mut law = law(2.0, Overload::Drop);
        law.params.scheduling = Scheduling::ShiftedFifo(Span::ms(50));
        let at = |ms| Some(Instant::ZERO + Span::ms(ms));
        assert_eq!(law.next(at(50), at(0)), Some(Lane::L4s));
        assert_eq!(law.next(at(51), at(0)), Some(Lane::Classic));
    }
}
