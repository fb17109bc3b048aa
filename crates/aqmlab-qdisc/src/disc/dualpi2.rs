//! DualPI2 (RFC 9332): an L queue for scalable traffic (L4S) and a C queue for Classic traffic, with coupled laws.

use alloc::collections::VecDeque;

use aqmlab_random::{Numbered, Stream, unit_from_bits};
use aqmlab_units::{Bytes, Instant, Rate};

use crate::law::{DualPi2Law, Lane, Overload, Verdict};
use crate::{Arrived, Backlog, Cause, Ecn, Fifo, Inside, LawSamples, Limit, Observer, Packet, Qdisc, Reason};

/// The packets that belong to the L queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum L4sPackets {
    /// ECT(1) and CE (RFC 9331, section 5.1; RFC 9332, section 2.5.1.1).
    Ect1AndCe,
    /// ECT(1) only: CE counts as Classic.
    Ect1,
    /// All ECN-capable packets.
    AnyCapable,
}

impl L4sPackets {
    /// Returns the queue of a packet with this ECN field.
    #[inline]
    pub const fn lane(self, ecn: Ecn) -> Lane {
        let is_l4s = match self {
            L4sPackets::Ect1AndCe => matches!(ecn, Ecn::Ect1 | Ecn::Ce),
            L4sPackets::Ect1 => matches!(ecn, Ecn::Ect1),
            L4sPackets::AnyCapable => ecn.is_capable(),
        };
        if is_l4s { Lane::L4s } else { Lane::Classic }
    }
}

/// The parameters of the queues other than those of the laws.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DualQueue {
    /// The buffer that both queues share.
    pub limit: Limit,
    /// The room that a byte limit keeps for an arrival, however short it is.
    pub mtu: Bytes,
    /// The packets of the L queue.
    pub l4s: L4sPackets,
    /// Whether the coupled law decides when packets arrive rather than when they leave.
    pub at_arrival: bool,
    /// L's own law concerns only packets that find at least this many in L when they arrive.
    pub least_found: u64,
}

/// The numbers of the two queues among the inner queues, and their names.
const INNER: [(Lane, u16, &str); 2] = [(Lane::L4s, 1, "l4s"), (Lane::Classic, 2, "classic")];

const fn number(lane: Lane) -> u16 {
    INNER[lane as usize].1
}

/// DualPI2.
#[derive(Clone, Debug)]
pub struct DualPi2<P> {
    law: DualPi2Law,
    queue: DualQueue,
    /// L and C.
    lanes: [Fifo<P>; 2],
    /// For each packet in L, whether L's own law concerns it; empty if it concerns all.
    concerned: VecDeque<bool>,
    draws: Draws,
}

impl<P: Packet> DualPi2<P> {
    /// Creates empty queues behind an idle link.
    pub fn new(law: DualPi2Law, queue: DualQueue, draws: Stream) -> Self {
        let waiting = || Fifo::for_limit(queue.limit);
        DualPi2 {
            law,
            queue,
            lanes: [waiting(), waiting()],
            concerned: VecDeque::new(),
            draws: Draws::new(draws),
        }
    }

    /// Returns the laws in their state after the last call.
    pub const fn law(&self) -> &DualPi2Law {
        &self.law
    }

    /// Returns the queues' parameters, without those of the laws.
    pub const fn queue(&self) -> &DualQueue {
        &self.queue
    }

    fn fifo(&self, lane: Lane) -> &Fifo<P> {
        &self.lanes[lane as usize]
    }

    fn total(&self) -> Backlog {
        let [l4s, classic] = self.lanes.each_ref().map(Fifo::backlog);
        Backlog { packets: l4s.packets + classic.packets, bytes: l4s.bytes + classic.bytes }
    }

    fn push(&mut self, lane: Lane, pkt: P) {
        if lane == Lane::L4s && self.queue.least_found > 0 {
            self.concerned.push_back(self.fifo(lane).len() as u64 >= self.queue.least_found);
        }
        self.lanes[lane as usize].push(pkt);
    }

    /// Removes the oldest packet of L or C, and returns with it whether L's own law concerns it.
    fn pop(&mut self, lane: Lane) -> Option<(P, bool)> {
        let pkt = self.lanes[lane as usize].pop()?;
        let concerned = lane == Lane::L4s && self.concerned.pop_front().unwrap_or(true);
        Some((pkt, concerned))
    }
}

impl<P: Arrived> DualPi2<P> {
    fn heads(&self) -> [Option<Instant>; 2] {
        self.lanes.each_ref().map(|lane| lane.head().map(P::arrived))
    }

    /// Returns when the packet arrived that determines the waiting time of the controller.
    fn oldest(&self) -> Option<Instant> {
        oldest(self.heads(), self.law.params().overload)
    }

    fn catch_up(&mut self, now: Instant) {
        let (heads, overload) = (self.heads(), self.law.params().overload);
        self.law.catch_up(now, || oldest(heads, overload));
    }

    fn next(&self) -> Option<Lane> {
        let [l4s, classic] = self.heads();
        self.law.next(l4s, classic)
    }

    /// Decides on a packet that leaves.
    fn at_departure(&mut self, now: Instant, lane: Lane, pkt: &P, concerned: bool) -> Verdict {
        let (capable, left, at_arrival) = (pkt.ecn().is_capable(), self.total().bytes, self.queue.at_arrival);
        match lane {
            Lane::Classic if at_arrival => Verdict::Pass,
            Lane::Classic => self.law.classic(capable, left, self.draws.next()),
            Lane::L4s => {
                let sojourn = now.saturating_since(pkt.arrived());
                let behind = self.fifo(lane).len() as u64;
                let native = if concerned { self.law.native(sojourn, behind) } else { 0.0 };
                if at_arrival {
                    self.law.native_alone(native, self.draws.next())
                } else {
                    self.law.scalable(capable, left, native, self.draws.next())
                }
            }
        }
    }
}

/// Returns the arrival that determines the waiting time of the controller, of the packets at the heads of L and C.
// RFC 9332, figure 6 has the waiting time of C; figure 8, with overload, has the longer of the two.
fn oldest([l4s, classic]: [Option<Instant>; 2], overload: Overload) -> Option<Instant> {
    match (l4s, classic) {
        (Some(l4s), Some(classic)) if overload != Overload::None => Some(l4s.min(classic)),
        (Some(l4s), None) if overload != Overload::None => Some(l4s),
        (_, classic) => classic,
    }
}

/// Applies a verdict: returns the packet, with CE if it is to be marked, or reports its loss.
pub(super) fn apply<P: Packet>(
    now: Instant,
    mut pkt: P,
    verdict: Verdict,
    inner: u16,
    obs: &mut dyn Observer<P>,
) -> Option<P> {
    match verdict {
        Verdict::Pass => {}
        Verdict::Mark { forced } => {
            if pkt.ecn() != Ecn::Ce {
                pkt.mark_ce();
                let reason = if forced { Reason::Forced } else { Reason::Early };
                obs.marked(now, &pkt, Cause { reason, inner });
            }
        }
        Verdict::Drop => {
            obs.dropped(now, pkt, Cause { reason: Reason::Early, inner });
            return None;
        }
    }
    Some(pkt)
}

/// The draws of the decisions: up to [`Draws::EACH`] for each, whether they are used or not.
#[derive(Clone, Debug)]
pub(super) struct Draws {
    draws: Numbered,
    decisions: u64,
}

impl Draws {
    /// Two for a squared coin, and one for another coin.
    const EACH: u64 = 4;

    pub(super) fn new(draws: Stream) -> Self {
        Draws { draws: draws.numbered(), decisions: 0 }
    }

    /// Returns the draws of the next decision.
    pub(super) fn next(&mut self) -> impl FnMut() -> f64 {
        let mut number = self.decisions * Self::EACH;
        self.decisions += 1;
        move || {
            let bits = self.draws.at(number);
            number += 1;
            unit_from_bits(bits)
        }
    }
}

impl<P: Arrived> Qdisc<P> for DualPi2<P> {
    // RFC 9332, figure 3.
    fn enqueue(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) {
        self.catch_up(now);
        let (lane, backlog) = (self.queue.l4s.lane(pkt.ecn()), self.total());
        let inner = number(lane);
        obs.entered(now, &pkt, inner);
        if !self.queue.limit.admits(backlog, pkt.wire_len().max(self.queue.mtu)) {
            return obs.dropped(now, pkt, Cause { reason: Reason::Overflow, inner });
        }
        if self.queue.at_arrival {
            let capable = pkt.ecn().is_capable();
            let verdict = match lane {
                Lane::L4s => self.law.scalable(capable, backlog.bytes, 0.0, self.draws.next()),
                Lane::Classic => self.law.classic(capable, backlog.bytes, self.draws.next()),
            };
            if let Some(pkt) = apply(now, pkt, verdict, inner, obs) {
                self.push(lane, pkt);
            }
        } else {
            self.push(lane, pkt);
        }
    }

    // RFC 9332, figures 4 and 9.
    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<P> {
        self.catch_up(now);
        while let Some(lane) = self.next() {
            let inner = number(lane);
            let (pkt, concerned) = self.pop(lane)?;
            let verdict = self.at_departure(now, lane, &pkt, concerned);
            let Some(pkt) = apply(now, pkt, verdict, inner, obs) else { continue };
            let other = INNER[1 - lane as usize].0;
            self.law.on_departure(lane, pkt.wire_len(), !self.fifo(other).is_empty());
            obs.left(now, &pkt, inner);
            return Some(pkt);
        }
        self.law.on_idle();
        None
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }

    /// Waiting times are measured, so the rate does not matter; the updates that are due are made.
    fn rate_changed(&mut self, now: Instant, _rate: Rate) {
        self.catch_up(now);
    }

    fn backlog(&self) -> Backlog {
        self.total()
    }

    fn next_len(&mut self) -> Option<Bytes> {
        self.fifo(self.next()?).head().map(P::wire_len)
    }

    fn reserve(&mut self, packets: usize, _flows: usize) {
        self.lanes.iter_mut().for_each(|lane| lane.reserve(self.queue.limit, packets));
        if self.queue.least_found > 0 {
            self.concerned.reserve_exact(self.queue.limit.most_of(packets));
        }
    }

    fn each_inner(&self, visit: &mut dyn FnMut(&str, Inside<'_, P>)) {
        INNER.iter().for_each(|(lane, _, name)| visit(name, Inside::Group(self.fifo(*lane).backlog())));
    }

    /// Appends `p` (p', the base probability), `p_classic` and `p_l4s` (the coupled probabilities), the waiting
    /// times of the packets at the heads in seconds, and `credit` (of C, in bytes; above 0, C is next).
    fn observe(&self, now: Instant, out: &mut LawSamples) {
        let mut law = self.law;
        law.catch_up(now, || self.oldest());
        let [l4s, classic] =
            self.heads().map(|head| head.map_or(0.0, |at| now.saturating_since(at).as_secs_f64()));
        let p = law.probability();
        out.extend([
            ("p", p),
            ("p_classic", p * p),
            ("p_l4s", law.coupled()),
            ("delay_classic", classic),
            ("delay_l4s", l4s),
            ("credit", law.credit() as f64 / 100.0),
        ]);
    }
}
