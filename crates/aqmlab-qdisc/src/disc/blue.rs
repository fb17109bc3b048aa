//! BLUE: the [`Early`] queue with a [`BlueLaw`], and its parameters.

use alloc::format;

use aqmlab_params::{Alias, ParamError, Row, Settings, params};
use aqmlab_random::{Stream, unit_from_bits};
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Instant, Span};

use super::table::{names, ns3, packets, presets};
use super::words::{Freeze, Gate, Loss, Precedence, Victim};
use super::{Early, EarlyLaw, EarlyQueue, Measure};
use crate::info::{Derive, Effective, Info, Maturity, Preset};
use crate::law::{BlueIdle, BlueLaw, BlueParams, Decision};
use crate::resolve::{self, Common, LimitRule, in_bytes};
use crate::{Backlog, LawSamples, Limit, LinkContext, Packet};

/// BLUE.
pub type Blue<P> = Early<P, BlueControl>;

/// BLUE's law for a real queue, with the draws that it needs in addition to those for the arrivals'
/// fates.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BlueControl {
    law: BlueLaw,
    /// Unit of the threshold.
    measure: Measure,
    /// Whether each freeze time is a new draw, uniform between 0 and twice the parameter.
    random_freeze: bool,
    /// Whether an overflow drops a random packet, possibly the arrival, instead of always the
    /// arrival.
    random_victim: bool,
    draws: Stream,
    updates: u64,
    victims: u64,
}

/// Number of the first draw for freeze times in the queue's stream; `VICTIM_DRAWS` is the number of
/// the first draw for victims. The draws for arrivals never reach these numbers.
const FREEZE_DRAWS: u64 = 1 << 62;
const VICTIM_DRAWS: u64 = 1 << 63;

impl BlueControl {
    /// Creates a control for an empty queue; `draws` is the queue's stream.
    pub fn new(
        law: BlueLaw,
        measure: Measure,
        random_freeze: bool,
        random_victim: bool,
        draws: Stream,
    ) -> Self {
        let mut control =
            BlueControl { law, measure, random_freeze, random_victim, draws, updates: 0, victims: 0 };
        control.draw_freeze_time(true);
        control
    }

    /// Returns the law.
    pub const fn law(&self) -> &BlueLaw {
        &self.law
    }

    #[inline]
    fn draw_freeze_time(&mut self, updated: bool) {
        if updated && self.random_freeze {
            let unit = unit_from_bits(self.draws.at(FREEZE_DRAWS + self.updates));
            self.updates += 1;
            let seconds = 2.0 * unit * self.law.params().freeze_time.as_secs_f64();
            self.law.set_hold(Span::try_from_secs_f64(seconds).expect("twice a freeze time is a valid span"));
        }
    }
}

impl EarlyLaw for BlueControl {
    #[inline]
    fn decide_at_arrival(
        &mut self,
        now: Instant,
        backlog: Backlog,
        _size: Bytes,
        draw: impl FnOnce() -> f64,
    ) -> Decision {
        let updated = self.law.on_arrival(now, self.measure.of(backlog));
        self.draw_freeze_time(updated);
        self.law.decision(Measure::Packets.of(backlog), draw)
    }

    fn on_overflow(&mut self, now: Instant) {
        let updated = self.law.on_loss(now);
        self.draw_freeze_time(updated);
    }

    fn on_early_drop(&mut self, now: Instant) {
        let updated = self.law.on_early_drop(now);
        self.draw_freeze_time(updated);
    }

    fn evicts(&self) -> bool {
        self.random_victim
    }

    fn victim(&mut self, waiting: usize) -> usize {
        if !self.random_victim {
            return waiting;
        }
        let bits = self.draws.at(VICTIM_DRAWS + self.victims);
        self.victims += 1;
        // Uniform on 0 ..= waiting.
        ((u128::from(bits) * (waiting as u128 + 1)) >> 64) as usize
    }

    #[inline]
    fn on_idle(&mut self, now: Instant) {
        let updated = self.law.on_idle(now);
        self.draw_freeze_time(updated);
    }

    /// `p`: the probability, `p_m`.
    fn observe(&self, _now: Instant, _backlog: Backlog, out: &mut LawSamples) {
        out.push(("p", self.law.probability()));
    }
}

/// BLUE's entry in the catalogue.
pub(crate) const BLUE_INFO: Info = Info {
    name: "blue",
    title: "BLUE",
    summary: "a single drop or mark probability, raised by lost packets and lowered by an idle link",
    version: 1,
    applies: &[],
    maturity: Maturity::ReferenceChecked,
    decides: BlueControl::DECIDES,
    params: Parameters::TABLE,
    presets: PRESETS,
    derive: Derive::Alone(derive),
    samples: || {
        let (d1, d2, time) = (Parameters::d1(), Parameters::d2(), Parameters::freeze_time());
        resolve::sample(&[Parameters::ecn().is(true), d1.is(0.3), d2.is(0.05), time.is(Span::us(500))])
    },
};

params! {
    struct Parameters {
        preset: &'static str = presets(const { &names::<3>(PRESETS) }),
        /// buffer size, excluding the packet in transmission
        limit: Size = Common::limit().default(Size::Bdp(1.0))
            .aliases(&[ns3("MaxSize")])
            .source("one bandwidth-delay product: Villamizar and Song 1994"),
        limit_rule: LimitRule = Common::limit_rule(),
        /// increase of the probability when a packet is lost
        d1: f64 = Row::above(0.0, 1.0).default(0.0025)
            .aliases(&[ns3("Increment")])
            .source("Feng et al. 2002, figure 2; value: the author's ns-1.1 code as ported to ns-3"),
        /// decrease of the probability when the link is idle
        d2: f64 = Row::above(0.0, 1.0).default(0.00025)
            .aliases(&[ns3("Decrement")])
            .source("Feng et al. 2002, figure 2: a tenth of d1; value: the author's ns-1.1 code as ported \
             to ns-3"),
        /// minimum time between two updates of the probability, upwards or downwards
        freeze_time: Span = Row::span(Span::ZERO, Span::s(1000)).default(Span::ms(100))
            .aliases(&[ns3("FreezeTime"), Alias::new("ALTQ", "hold_time")])
            .source("Feng et al. 2002, figure 2; value: the author's ns-1.1 code as ported to ns-3"),
        /// `random`: each freeze time is drawn uniformly between 0 and twice freeze_time
        freeze: Freeze = Row::choice("fixed")
            .source("Feng et al. 2002, section 3: fixed there, but the paper advises randomising it to \
             avoid synchronisation; the distribution is ours"),
        /// whether an update is due only when more than freeze_time has passed since the last one (`after`),
        /// or also when exactly freeze_time has passed (`at`)
        gate: Gate = Row::choice("after").source("Feng et al. 2002, figure 2, ALTQ and ns-3: `after`"),
        /// `L`: an arrival that finds a longer queue than this counts as a loss
        threshold: Size = Row::size().auto("limit, which no backlog exceeds, so only losses count")
            .source("Feng et al. 2002, figure 2, variant with L; the value of L is not known"),
        /// unit in which the backlog is compared with threshold
        measure: Measure = Common::measure().source("ours"),
        mean_packet: Bytes = Common::mean_packet(),
        /// the drops that raise the probability: overflows only, or the discipline's own drops as well
        loss: Loss = Row::choice("overflow")
            .source("overflow: Feng et al. 2002, ALTQ; any_drop: an early version of the port to ns-3"),
        /// when the probability is lowered: `emptied` when the link runs out of packets; `periods` at the
        /// arrival that ends an idle time, once for each whole freeze_time in it; `altq` at the same arrival,
        /// once if the idle time was longer than freeze_time; after more than a second or two, `altq` instead
        /// sets the probability to d2
        idle: BlueIdle = Row::choice("emptied")
            .source("emptied: Feng et al. 2002, figure 2; periods: ns-3; altq: ALTQ"),
        /// arrivals that find a queue of fewer packets than this are never chosen
        min_backlog: u64 = Row::integer(0, 1_000_000).default(0).source("ours; ALTQ: 2"),
        /// the probability is rounded to a multiple of 1/steps; 0: no rounding
        steps: u64 = Row::integer(0, 1_000_000_000).default(0)
            .aliases(&[Alias::new("ALTQ", "max_pmark")])
            .source("ours; ALTQ: 1000"),
        /// the cause that is recorded when a chosen packet finds the buffer full and is lost; with `limit`,
        /// it counts as a loss that raises the probability
        precedence: Precedence = Row::choice("law").source("law: ALTQ; limit: ns-3; the paper does not say"),
        /// the packet that an overflow drops: the arrival, or one chosen at random from the queue and the
        /// arrival
        victim: Victim = Row::choice("arrival").source("arrival: Feng et al. 2002; random: ALTQ"),
        /// mark ECN-capable packets instead of dropping them; only an overflow still drops them
        ecn: bool = Row::flag(false).source("RFC 3168; Feng et al. 2002"),
    }
}

const PRESETS: &[Preset] = &[
    Preset { name: "paper", title: "Feng et al. 2002 with the constants of the author's code", values: &[] },
    Preset {
        name: "ns3",
        title: "BlueQueueDisc, the port of the author's ns-1.1 code to ns-3",
        values: &[
            Parameters::limit().is(packets(25)),
            Parameters::idle().is("periods"),
            Parameters::precedence().is("limit"),
        ],
    },
    Preset {
        name: "altq",
        title: "ALTQ's blue as shipped",
        values: &[
            Parameters::limit().is(packets(200)),
            Parameters::d1().is(0.125),
            Parameters::d2().is(0.001),
            Parameters::freeze_time().is(Span::ms(50)),
            Parameters::idle().is("altq"),
            Parameters::min_backlog().is(2),
            Parameters::steps().is(1000),
            Parameters::victim().is("random"),
        ],
    },
];

fn derive(all: &mut Settings, link: &LinkContext) -> Result<(), ParamError> {
    let mean = resolve::mean_packet(all, link)?;
    let (limit, threshold) = (Parameters::limit(), Parameters::threshold());
    resolve::absolute_size(all, limit, link)?;
    if threshold.is_auto(all) {
        let size = limit.read(all)?;
        threshold.derive(all, size, "limit: only losses count");
    } else {
        resolve::absolute_size(all, threshold, link)?;
    }
    resolve::check_buffer(all, link.mean_packet.max(mean))?;
    resolve::check_order(all, threshold, limit, mean)?;
    let p = Parameters::read(all)?;
    for (row, change) in [(Parameters::d1(), p.d1), (Parameters::d2(), p.d2)] {
        check_step(row, change, p.steps)?;
    }
    if p.victim == Victim::Random && !matches!(resolve::limit(all)?, Limit::Packets(_)) {
        return Err(Parameters::victim().error(format!(
            "victim `random` needs a limit in packets, but limit is `{}`; a victim smaller than the \
             arrival might not make enough room",
            p.limit
        )));
    }
    Ok(())
}

/// Refuses a change that is smaller than one step of the probability (1/steps), because rounding could remove
/// it.
fn check_step(row: Row<f64>, change: f64, steps: u64) -> Result<(), ParamError> {
    if steps == 0 || change * (steps as f64) >= 1.0 {
        return Ok(());
    }
    Err(row.error(format!(
        "{} `{change}` is less than one step, 1/{steps}; write steps 0 for no rounding",
        row.name()
    )))
}

/// Builds a BLUE queue from these parameters.
pub(crate) fn build_blue<P: Packet>(s: &Effective, draws: Stream) -> Result<Blue<P>, ParamError> {
    let p = Parameters::read(s)?;
    let unit = match p.measure {
        Measure::Packets => p.mean_packet.as_f64(),
        Measure::Bytes => 1.0,
    };
    let threshold = in_bytes(p.threshold, p.mean_packet) / unit;
    let params = BlueParams {
        increment: p.d1,
        decrement: p.d2,
        freeze_time: p.freeze_time,
        at_freeze_time: p.gate == Gate::At,
        // A threshold equal to the limit must never be exceeded, but after a conversion of units the backlog
        // might exceed it, so such a threshold is replaced by infinity.
        threshold: if p.threshold == p.limit { f64::INFINITY } else { threshold },
        early_drops_count: p.loss == Loss::AnyDrop,
        idle: p.idle,
        min_backlog: p.min_backlog as f64,
        steps: Some(p.steps as f64).filter(|steps| *steps > 0.0),
    };
    let (random_freeze, random_victim) = (p.freeze == Freeze::Random, p.victim == Victim::Random);
    let control = BlueControl::new(BlueLaw::new(params), p.measure, random_freeze, random_victim, draws);
    let queue = EarlyQueue {
        limit: resolve::limit(s)?,
        ecn: p.ecn,
        overflow_first: p.precedence == Precedence::Limit,
        spares_not_ect: false,
    };
    Ok(Blue::new(control, queue, draws))
}
