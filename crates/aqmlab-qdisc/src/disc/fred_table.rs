//! FRED's parameters, and from what a scenario gives to a queue.

use alloc::format;

use aqmlab_params::{Default, Kind, Origin, Param, ParamError, Settings, Value};
use aqmlab_random::Stream;
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Packets};

use super::table::{MEAN_PACKET, PROBABILITY, ecn, names, preset};
use super::words::ManyFlowsRule;
use super::{Fred, FredQueue};
use crate::law::{FredLaw, FredParams, ManyFlows};
use crate::registry::{Decides, Info, Maturity, Preset};
use crate::resolve::{self, LIMIT_RULE, in_bytes, whole};
use crate::{LinkContext, Packet};

/// FRED's entry in the catalogue.
pub(crate) const FRED_INFO: Info = Info {
    name: "fred",
    title: "FRED",
    summary: "Flow Random Early Drop: RED that spares flows with few waiting packets and cuts off those with too many",
    maturity: Maturity::Experimental,
    decides: Decides::Enqueue,
    params: FRED,
    presets: PRESETS,
    resolve,
};

const PRESETS: &[Preset] = &[Preset { name: "paper", title: "Lin and Morris 1997", values: &[] }];

const FIGURE: &str = "Lin and Morris 1997, figure 6";

static FRED: &[Param] = &[
    preset(const { &names::<1>(PRESETS) }),
    Param {
        name: "limit",
        kind: Kind::Size { min: Packets::new(1) },
        default: Default::Bdp(1.0),
        aliases: &[],
        source: "one bandwidth-delay product: Villamizar and Song 1994",
        help: "buffer size without the packet in transmission",
    },
    LIMIT_RULE,
    Param {
        name: "min_th",
        kind: Kind::Size { min: Packets::new(1) },
        default: Default::Auto("limit / 4, but at most one bandwidth-delay product"),
        aliases: &[],
        source: "Lin and Morris 1997, figure 6 (recalled): the smaller of a quarter of the buffer and a round-trip time",
        help: "average queue below which no packet is chosen at random",
    },
    Param {
        name: "max_th",
        kind: Kind::Size { min: Packets::new(1) },
        default: Default::Auto("2 min_th"),
        aliases: &[],
        source: "Lin and Morris 1997, figure 6 (recalled)",
        help: "average queue from which on every arrival is lost, unless many_flows says otherwise",
    },
    Param {
        name: "max_p",
        kind: PROBABILITY,
        default: Default::Number(0.02),
        aliases: &[],
        source: "Lin and Morris 1997, figure 6 (recalled)",
        help: "probability at max_th",
    },
    Param {
        name: "w_q",
        kind: PROBABILITY,
        default: Default::Number(0.002),
        aliases: &[],
        source: "Lin and Morris 1997, figure 6 (recalled)",
        help: "weight of a new sample in the average; there is one at each packet that is queued and at each that leaves",
    },
    Param {
        name: "min_q",
        kind: Kind::Integer { min: 1, max: 1_000_000 },
        default: Default::Auto("4, or 2 where max_q is below 4 packets"),
        aliases: &[],
        source: "Lin and Morris 1997, figure 6 (recalled): 2 for small buffers, 4 for large",
        help: "packets that a flow may have waiting without being chosen at random",
    },
    Param {
        name: "max_q",
        kind: Kind::Size { min: Packets::new(1) },
        default: Default::Auto("min_th"),
        aliases: &[],
        source: FIGURE,
        help: "waiting packets at which a flow is cut off and gets a strike",
    },
    Param {
        name: "many_flows",
        kind: Kind::Choice(ManyFlowsRule::WORDS),
        default: Default::Choice("off"),
        aliases: &[],
        source: "Lin and Morris 1997, section 6 (recalled); J-Sim 1.3 has `average`, but keeps the drops above max_th",
        help: "when each flow may have two packets waiting and no more, instead of losing all arrivals above max_th: `off` \
               never, `average` while the average is at max_th or above, `count` while many_flows_from flows have packets \
               waiting",
    },
    Param {
        name: "many_flows_from",
        kind: Kind::Integer { min: 1, max: 1_000_000_000 },
        default: Default::Auto("limit / min_q in packets, rounded up"),
        aliases: &[],
        source: "ours: so many flows can fill the buffer with packets that are spared",
        help: "many_flows `count`: number of flows with packets waiting from which on there are many",
    },
    MEAN_PACKET,
    ecn(
        "ours: the paper drops; RFC 3168, section 7",
        "mark ECN-capable packets that are chosen at random instead of dropping them; what a flow has too much is \
         dropped",
    ),
];

fn resolve(given: &Settings, link: &LinkContext) -> Result<Settings, ParamError> {
    let mut all = resolve::completed(FRED, given);
    let mean = resolve::mean_packet(&mut all, link)?;
    for name in ["limit", "min_th", "max_th", "max_q"] {
        if !all.is_auto(name) {
            resolve::absolute_size(&mut all, name, link)?;
        }
    }
    let packets = |all: &Settings, name| all.size(name).map(|size| in_bytes(size, mean) / mean.as_f64());
    if all.is_auto("min_th") {
        let quarter = packets(&all, "limit")? / 4.0;
        let bdp = link.rtt.map(|_| link.bdp_bytes("min_th", 1.0)).transpose()?;
        let bdp = bdp.map_or(f64::INFINITY, |b| b / mean.as_f64());
        let rule = if bdp < quarter { "one bandwidth-delay product" } else { "limit / 4" };
        derive(&mut all, "min_th", size(quarter.min(bdp)), rule);
    }
    if all.is_auto("max_th") {
        let twice = 2.0 * packets(&all, "min_th")?;
        derive(&mut all, "max_th", size(twice), "2 min_th");
    }
    if all.is_auto("max_q") {
        let min_th = all.size("min_th")?;
        derive(&mut all, "max_q", Value::Size(min_th), "min_th");
    }
    let max_q = packets(&all, "max_q")?;
    if all.is_auto("min_q") {
        let min_q = if max_q < 4.0 { 2 } else { 4 };
        derive(&mut all, "min_q", Value::Integer(min_q), "4, or 2 where max_q is below 4 packets");
    }
    if all.is_auto("many_flows_from") {
        let flows = libm::ceil(packets(&all, "limit")? / all.integer("min_q")? as f64);
        derive(&mut all, "many_flows_from", Value::Integer((flows as u64).max(1)), "limit / min_q");
    }
    check(&all, link, mean, max_q)?;
    Ok(all)
}

fn check(all: &Settings, link: &LinkContext, mean: Bytes, max_q: f64) -> Result<(), ParamError> {
    resolve::check_buffer(all, link.mean_packet.max(mean))?;
    resolve::check_order(all, "min_th", "max_th", mean)?;
    resolve::check_order(all, "max_th", "limit", mean)?;
    let min_q = all.integer("min_q")?;
    if all.is_given("min_q") && min_q as f64 > max_q {
        let message = format!(
            "min_q `{min_q}` exceeds max_q `{}`: flows would be cut off before any is chosen at random",
            all.size("max_q")?
        );
        return Err(ParamError::new("min_q", message));
    }
    Ok(())
}

fn derive(all: &mut Settings, name: &'static str, value: Value, rule: &'static str) {
    all.set(name, value, Origin::Derived(rule.into()));
}

/// The nearest whole number of packets, at least one.
fn size(packets: f64) -> Value {
    Value::Size(Size::Packets(Packets::new(whole(packets))))
}

/// A FRED queue with effective parameters.
pub(crate) fn build_fred<P: Packet>(
    effective: &Settings,
    link: &LinkContext,
    draws: Stream,
) -> Result<Fred<P>, ParamError> {
    let mean_packet = resolve::bytes(effective, "mean_packet")?;
    let packets = |name| effective.size(name).map(|size| in_bytes(size, mean_packet) / mean_packet.as_f64());
    let params = FredParams {
        min_th: packets("min_th")?,
        max_th: packets("max_th")?,
        max_p: effective.number("max_p")?,
        weight: effective.number("w_q")?,
        min_q: effective.integer("min_q")? as f64,
        max_q: packets("max_q")?,
        many_flows: match ManyFlowsRule::read(effective, "many_flows")? {
            ManyFlowsRule::Off => ManyFlows::Off,
            ManyFlowsRule::Average => ManyFlows::Average,
            ManyFlowsRule::Count => ManyFlows::Count(effective.integer("many_flows_from")?),
        },
        packets_per_s: link.rate.packets_per_s(mean_packet),
    };
    let ecn = effective.flag("ecn")?;
    let queue = FredQueue { limit: resolve::limit(effective)?, ecn, mean_packet };
    Ok(Fred::new(FredLaw::new(params), queue, draws))
}
