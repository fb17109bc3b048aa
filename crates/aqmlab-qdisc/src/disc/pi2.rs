//! PI2 (De Schepper, Bondarenko, Tsang, Briscoe 2016): one queue whose controller is squared for Classic packets
//! and linear for those of scalable senders.

use aqmlab_params::{ParamError, Row, Settings, params};
use aqmlab_random::Stream;
use aqmlab_units::{Bytes, Instant, Rate, Span};

use super::dualpi2::{Draws, L4sPackets, apply};
use super::dualpi2_table::{Base, QUICK, base, derive_base};
use super::table::{names, presets};
use super::words::Decide;
use crate::info::{Decides, Derive, Effective, Info, Maturity, Preset};
use crate::law::{Combine, DualPi2Law, DualPi2Params, Lane, Native, Scheduling};
use crate::resolve::{self, Common, LimitRule};
use crate::{Arrived, Backlog, Cause, Fifo, LawSamples, Limit, LinkContext, Observer, Packet, Qdisc, Reason};

/// The parameters of the queue other than those of its law.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Pi2Queue {
    /// Buffer limit.
    pub limit: Limit,
    /// Whether ECN-capable packets are marked instead of dropped.
    pub ecn: bool,
    /// Whether packets of scalable senders, ECT(1) and CE, are marked with the linear probability k p'.
    pub scalable: bool,
    /// Whether the law decides when packets arrive rather than when they leave.
    pub at_arrival: bool,
}

/// PI2. Unlike the laws of [`super::Early`], its law must know at each update how long the packet at the head has
/// waited.
#[derive(Clone, Debug)]
pub struct Pi2<P> {
    law: DualPi2Law,
    queue: Pi2Queue,
    fifo: Fifo<P>,
    draws: Draws,
}

impl<P: Packet> Pi2<P> {
    /// Creates an empty queue behind an idle link.
    pub fn new(law: DualPi2Law, queue: Pi2Queue, draws: Stream) -> Self {
        Pi2 { law, queue, fifo: Fifo::for_limit(queue.limit), draws: Draws::new(draws) }
    }

    /// Returns the law in its state after the last call.
    pub const fn law(&self) -> &DualPi2Law {
        &self.law
    }
}

impl<P: Arrived> Pi2<P> {
    fn catch_up(&mut self, now: Instant) {
        let head = self.fifo.head();
        self.law.catch_up(now, || head.map(P::arrived));
    }

    /// Returns the packet, marked if the law requires it, or reports its loss.
    fn judged(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) -> Option<P> {
        let (ecn, left) = (pkt.ecn(), self.fifo.backlog().bytes);
        let capable = self.queue.ecn && ecn.is_capable();
        let is_scalable = self.queue.scalable && capable && L4sPackets::Ect1AndCe.lane(ecn) == Lane::L4s;
        let verdict = if is_scalable {
            self.law.scalable(capable, left, 0.0, self.draws.next())
        } else {
            self.law.classic(capable, left, self.draws.next())
        };
        apply(now, pkt, verdict, 0, obs)
    }
}

impl<P: Arrived> Qdisc<P> for Pi2<P> {
    fn enqueue(&mut self, now: Instant, pkt: P, obs: &mut dyn Observer<P>) {
        self.catch_up(now);
        if !self.queue.limit.admits(self.fifo.backlog(), pkt.wire_len()) {
            return obs.dropped(now, pkt, Cause::of(Reason::Overflow));
        }
        let pkt = if self.queue.at_arrival { self.judged(now, pkt, obs) } else { Some(pkt) };
        if let Some(pkt) = pkt {
            self.fifo.push(pkt);
        }
    }

    fn dequeue(&mut self, now: Instant, obs: &mut dyn Observer<P>) -> Option<P> {
        self.catch_up(now);
        while let Some(pkt) = self.fifo.pop() {
            let pkt = if self.queue.at_arrival { Some(pkt) } else { self.judged(now, pkt, obs) };
            if pkt.is_some() {
                return pkt;
            }
        }
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
        self.fifo.backlog()
    }

    fn next_len(&mut self) -> Option<Bytes> {
        self.fifo.head().map(P::wire_len)
    }

    fn reserve(&mut self, packets: usize, _flows: usize) {
        self.fifo.reserve(self.queue.limit, packets);
    }

    /// Appends `p` (p', the base probability), `p_classic`, `p_scalable`, and the waiting time of the packet at
    /// the head in seconds.
    fn observe(&self, now: Instant, out: &mut LawSamples) {
        let (mut law, head) = (self.law, self.fifo.head().map(P::arrived));
        law.catch_up(now, || head);
        let p = law.probability();
        let delay = head.map_or(0.0, |at| now.saturating_since(at).as_secs_f64());
        out.extend([("p", p), ("p_classic", p * p), ("p_scalable", law.coupled()), ("delay", delay)]);
    }
}

const PAPER: &str = "De Schepper, Bondarenko, Tsang, Briscoe 2016";

params! {
    struct Parameters {
        preset: &'static str = presets(const { &names::<2>(PRESETS) }),
        ..Base { limit },
        limit_rule: LimitRule = Common::limit_rule(),
        target: Span = Base::target().default(Span::ms(20)).source(PAPER),
        tupdate: Span = Row::span(Span::us(100), Span::s(10)).default(Span::ms(32))
            .source(PAPER)
            .help("time between two updates of the probability"),
        alpha: f64 = Row::above(0.0, 1e6).default(5.0 / 16.0).source(PAPER)
            .help("integral gain in 1/s: change of the probability at each update per second of distance from target"),
        beta: f64 = Row::number(0.0, 1e6).default(50.0 / 16.0).source(PAPER)
            .help("proportional gain in 1/s: change of the probability at each update per second by which the \
                   waiting time has changed"),
        ..Base { coupling, overload, coins, arithmetic, mtu },
        /// where the law decides
        decide: Decide = Row::choice("enqueue").source(PAPER),
        /// mark ECN-capable packets instead of dropping them
        ecn: bool = Row::flag(false).source(PAPER),
        /// with `ecn`, mark packets of scalable senders, ECT(1) and CE, with probability k p' instead of p'^2
        scalable: bool = Row::flag(true).source(PAPER),
    }
}

const PRESETS: &[Preset] = &[
    Preset { name: "paper", title: PAPER, values: &[Base::coins().is("random")] },
    Preset {
        name: "rfc9332",
        title: "one queue with the controller of RFC 9332, appendix A.1",
        values: &[
            Base::target().is(Span::ms(15)),
            Base::tupdate().is(Span::ms(15)),
            Base::alpha().is(0.15),
            Base::beta().is(3.0),
            Parameters::decide().is("dequeue"),
        ],
    },
];

/// PI2's entry in the catalogue.
pub(crate) const PI2_INFO: Info = Info {
    name: "pi2",
    title: "PI2",
    summary: "controls the waiting time with a probability that is squared for Classic packets and linear for scalable ones",
    version: 1,
    applies: &[],
    maturity: Maturity::ReferenceChecked,
    decides: Decides::Both,
    params: Parameters::TABLE,
    presets: PRESETS,
    derive: Derive::Alone(derive),
    samples: || resolve::sample(&[&QUICK[..], &[Parameters::ecn().is(true)]].concat()),
};

fn derive(all: &mut Settings, link: &LinkContext) -> Result<(), ParamError> {
    derive_base(all, link)
}

/// Builds a PI2 queue from these parameters.
pub(crate) fn build_pi2<P: Packet>(s: &Effective, draws: Stream) -> Result<Pi2<P>, ParamError> {
    let Parameters { decide, ecn, scalable, .. } = Parameters::read(s)?;
    let (base, coupling, overload, coins) = base(s)?;
    let law = DualPi2Law::new(DualPi2Params {
        base,
        coupling,
        overload,
        coins,
        // There is no queue L, so nothing has waited in it.
        native: Native::Step(Span::s(1)),
        least_left: 0,
        combine: Combine::Max,
        idle_below: Bytes::ZERO,
        scheduling: Scheduling::ShiftedFifo(Span::ZERO),
    });
    let queue = Pi2Queue { limit: resolve::limit(s)?, ecn, scalable, at_arrival: decide == Decide::Enqueue };
    Ok(Pi2::new(law, queue, draws))
}
