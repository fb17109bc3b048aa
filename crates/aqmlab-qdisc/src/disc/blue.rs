//! BLUE: the [`Early`] queue with a [`BlueLaw`], and its parameters.

use alloc::format;

use aqmlab_params::{Alias, Default, Kind, Origin, Param, ParamError, Settings, Value};
use aqmlab_random::{Stream, unit_from_bits};
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Instant, Packets, Span};

use super::table::{MEAN_PACKET, PROBABILITY, ecn, measure, names, ns3, preset, word};
use super::words::{Freeze, Gate, Loss, Precedence, Victim};
use super::{Early, EarlyLaw, EarlyQueue, Measure};
use crate::info::{Effective, Info, Maturity, Preset};
use crate::law::{BlueIdle, BlueLaw, BlueParams, Decision};
use crate::resolve::{self, LIMIT_RULE, in_bytes};
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
    params: BLUE,
    presets: PRESETS,
    derive,
    samples: || {
        let steps = [("d1", Value::Number(0.3)), ("d2", Value::Number(0.05))];
        let time = ("freeze_time", Value::Span(Span::us(500)));
        resolve::sample(&[("ecn", Value::Flag(true)), steps[0].clone(), steps[1].clone(), time])
    },
};

static BLUE: &[Param] = &[
    preset(const { &names::<3>(PRESETS) }),
    Param {
        name: "limit",
        kind: Kind::Size { min: Packets::new(1) },
        default: Default::Bdp(1.0),
        aliases: &[ns3("MaxSize")],
        source: "one bandwidth-delay product: Villamizar and Song 1994",
        help: "buffer size, excluding the packet in transmission",
    },
    LIMIT_RULE,
    Param {
        name: "d1",
        kind: PROBABILITY,
        default: Default::Number(0.0025),
        aliases: &[ns3("Increment")],
        source: "Feng et al. 2002, figure 2; value: the author's ns-1.1 code as ported to ns-3",
        help: "increase of the probability when a packet is lost",
    },
    Param {
        name: "d2",
        kind: PROBABILITY,
        default: Default::Number(0.00025),
        aliases: &[ns3("Decrement")],
        source: "Feng et al. 2002, figure 2: a tenth of d1; value: the author's ns-1.1 code as ported to ns-3",
        help: "decrease of the probability when the link is idle",
    },
    Param {
        name: "freeze_time",
        kind: Kind::Span { min: Span::ZERO, max: Span::s(1000) },
        default: Default::Span(Span::ms(100)),
        aliases: &[ns3("FreezeTime"), Alias::new("ALTQ", "hold_time")],
        source: "Feng et al. 2002, figure 2; value: the author's ns-1.1 code as ported to ns-3",
        help: "minimum time between two updates of the probability, upwards or downwards",
    },
    Param {
        name: "freeze",
        kind: Kind::Choice(Freeze::WORDS),
        default: Default::Choice("fixed"),
        aliases: &[],
        source: "Feng et al. 2002, section 3: fixed there, but the paper advises randomising it to avoid \
                 synchronisation; the distribution is ours",
        help: "`random`: each freeze time is drawn uniformly between 0 and twice freeze_time",
    },
    Param {
        name: "gate",
        kind: Kind::Choice(Gate::WORDS),
        default: Default::Choice("after"),
        aliases: &[],
        source: "Feng et al. 2002, figure 2, ALTQ and ns-3: `after`",
        help: "whether an update is due only when more than freeze_time has passed since the last one (`after`), or \
               also when exactly freeze_time has passed (`at`)",
    },
    Param {
        name: "threshold",
        kind: Kind::Size { min: Packets::new(1) },
        default: Default::Auto("limit, which no backlog exceeds, so only losses count"),
        aliases: &[],
        source: "Feng et al. 2002, figure 2, variant with L; the value of L is not known",
        help: "`L`: an arrival that finds a longer queue than this counts as a loss",
    },
    measure("ours", "unit in which the backlog is compared with threshold", &[]),
    MEAN_PACKET,
    Param {
        name: "loss",
        kind: Kind::Choice(Loss::WORDS),
        default: Default::Choice("overflow"),
        aliases: &[],
        source: "overflow: Feng et al. 2002, ALTQ; any_drop: an early version of the port to ns-3",
        help: "the drops that raise the probability: overflows only, or the discipline's own drops as well",
    },
    Param {
        name: "idle",
        kind: Kind::Choice(BlueIdle::WORDS),
        default: Default::Choice("emptied"),
        aliases: &[],
        source: "emptied: Feng et al. 2002, figure 2; periods: ns-3; altq: ALTQ",
        help: "when the probability is lowered: `emptied` when the link runs out of packets; `periods` at \
               the arrival that ends an idle time, once for each whole freeze_time in it; `altq` at the \
               same arrival, once if the idle time was longer than freeze_time; after more than a second or \
               two, `altq` instead sets the probability to d2",
    },
    Param {
        name: "min_backlog",
        kind: Kind::Integer { min: 0, max: 1_000_000 },
        default: Default::Integer(0),
        aliases: &[],
        source: "ours; ALTQ: 2",
        help: "arrivals that find a queue of fewer packets than this are never chosen",
    },
    Param {
        name: "steps",
        kind: Kind::Integer { min: 0, max: 1_000_000_000 },
        default: Default::Integer(0),
        aliases: &[Alias::new("ALTQ", "max_pmark")],
        source: "ours; ALTQ: 1000",
        help: "the probability is rounded to a multiple of 1/steps; 0: no rounding",
    },
    Param {
        name: "precedence",
        kind: Kind::Choice(Precedence::WORDS),
        default: Default::Choice("law"),
        aliases: &[],
        source: "law: ALTQ; limit: ns-3; the paper does not say",
        help: "the cause that is recorded when a chosen packet finds the buffer full and is lost; with \
               `limit`, it counts as a loss that raises the probability",
    },
    Param {
        name: "victim",
        kind: Kind::Choice(Victim::WORDS),
        default: Default::Choice("arrival"),
        aliases: &[],
        source: "arrival: Feng et al. 2002; random: ALTQ",
        help: "the packet that an overflow drops: the arrival, or one chosen at random from the queue and the arrival",
    },
    ecn(
        "RFC 3168; Feng et al. 2002",
        "mark ECN-capable packets instead of dropping them; only an overflow still drops them",
        &[],
    ),
];

const PRESETS: &[Preset] = &[
    Preset { name: "paper", title: "Feng et al. 2002 with the constants of the author's code", values: &[] },
    Preset {
        name: "ns3",
        title: "BlueQueueDisc, the port of the author's ns-1.1 code to ns-3",
        values: &[
            ("limit", Value::Size(Size::Packets(Packets::new(25)))),
            word("idle", "periods"),
            word("precedence", "limit"),
        ],
    },
    Preset {
        name: "altq",
        title: "ALTQ's blue as shipped",
        values: &[
            ("limit", Value::Size(Size::Packets(Packets::new(200)))),
            ("d1", Value::Number(0.125)),
            ("d2", Value::Number(0.001)),
            ("freeze_time", Value::Span(Span::ms(50))),
            word("idle", "altq"),
            ("min_backlog", Value::Integer(2)),
            ("steps", Value::Integer(1000)),
            word("victim", "random"),
        ],
    },
];

fn derive(all: &mut Settings, link: &LinkContext) -> Result<(), ParamError> {
    let mean = resolve::mean_packet(all, link)?;
    resolve::absolute_size(all, "limit", link)?;
    if all.is_auto("threshold") {
        let limit = all.size("limit")?;
        all.set("threshold", Value::Size(limit), Origin::Derived("limit: only losses count".into()));
    } else {
        resolve::absolute_size(all, "threshold", link)?;
    }
    resolve::check_buffer(all, link.mean_packet.max(mean))?;
    resolve::check_order(all, "threshold", "limit", mean)?;
    check_steps(all)?;
    if Victim::read(all, "victim")? == Victim::Random && !matches!(resolve::limit(all)?, Limit::Packets(_)) {
        let limit = all.size("limit")?;
        let message = format!(
            "victim `random` needs a limit in packets, but limit is `{limit}`; a victim smaller than the \
             arrival might not make enough room"
        );
        return Err(ParamError::new("victim", message));
    }
    Ok(())
}

/// Refuses a change that is smaller than one step of the probability (1/steps), because rounding could remove
/// it.
fn check_steps(all: &Settings) -> Result<(), ParamError> {
    let steps = all.integer("steps")?;
    for name in ["d1", "d2"] {
        let change = all.number(name)?;
        if steps > 0 && change * (steps as f64) < 1.0 {
            let message =
                format!("{name} `{change}` is less than one step, 1/{steps}; write steps 0 for no rounding");
            return Err(ParamError::new(name, message));
        }
    }
    Ok(())
}

/// Builds a BLUE queue from these parameters.
pub(crate) fn build_blue<P: Packet>(s: &Effective, draws: Stream) -> Result<Blue<P>, ParamError> {
    let measure = Measure::read(s, "measure")?;
    let unit = match measure {
        Measure::Packets => resolve::bytes(s, "mean_packet")?.as_f64(),
        Measure::Bytes => 1.0,
    };
    let threshold = in_bytes(s.size("threshold")?, resolve::bytes(s, "mean_packet")?) / unit;
    let limit = resolve::limit(s)?;
    let params = BlueParams {
        increment: s.number("d1")?,
        decrement: s.number("d2")?,
        freeze_time: s.span("freeze_time")?,
        at_freeze_time: Gate::read(s, "gate")? == Gate::At,
        // A threshold equal to the limit must never be exceeded, but after a conversion of units the backlog
        // might exceed it, so such a threshold is replaced by infinity.
        threshold: if s.size("threshold")? == s.size("limit")? { f64::INFINITY } else { threshold },
        early_drops_count: Loss::read(s, "loss")? == Loss::AnyDrop,
        idle: BlueIdle::read(s, "idle")?,
        min_backlog: s.integer("min_backlog")? as f64,
        steps: Some(s.integer("steps")? as f64).filter(|steps| *steps > 0.0),
    };
    let random_freeze = Freeze::read(s, "freeze")? == Freeze::Random;
    let random_victim = Victim::read(s, "victim")? == Victim::Random;
    let control = BlueControl::new(BlueLaw::new(params), measure, random_freeze, random_victim, draws);
    let queue = EarlyQueue {
        limit,
        ecn: s.flag("ecn")?,
        overflow_first: Precedence::read(s, "precedence")? == Precedence::Limit,
        spares_not_ect: false,
    };
    Ok(Blue::new(control, queue, draws))
}
