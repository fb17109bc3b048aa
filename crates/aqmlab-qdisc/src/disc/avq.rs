//! AVQ: the [`Early`] queue with an [`AvqLaw`], and its parameters.

use aqmlab_params::{ParamError, Row, Settings, params};
use aqmlab_random::Stream;
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Instant, Rate};

use super::table::{names, ns2, presets};
use super::{Early, EarlyLaw, EarlyQueue};
use crate::info::{Derive, Effective, Info, Maturity, Preset};
use crate::law::{AvqLaw, AvqParams, Decision};
use crate::resolve::{self, Common, LimitRule, in_bytes};
use crate::{Backlog, LawSamples, LinkContext, Packet};

/// Adaptive Virtual Queue.
pub type Avq<P> = Early<P, AvqControl>;

/// AVQ's law for a real queue.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct AvqControl {
    /// The law.
    pub law: AvqLaw,
}

impl EarlyLaw for AvqControl {
    #[inline]
    fn decide_at_arrival(
        &mut self,
        now: Instant,
        _backlog: Backlog,
        size: Bytes,
        _draw: impl FnOnce() -> f64,
    ) -> Decision {
        self.law.on_arrival(now, size)
    }

    fn rate_changed(&mut self, now: Instant, rate: Rate) {
        self.law.rate_changed(now, rate.bytes_per_s());
    }

    /// Appends `virtual_queue` (bytes) and `virtual_capacity` (bytes per second).
    fn observe(&self, now: Instant, _backlog: Backlog, out: &mut LawSamples) {
        let (queue, capacity) = (self.law.queue_at(now), self.law.virtual_capacity());
        out.extend([("virtual_queue", queue), ("virtual_capacity", capacity)]);
    }
}

/// AVQ's entry in the catalogue.
pub(crate) const AVQ_INFO: Info = Info {
    name: "avq",
    title: "AVQ",
    summary: "Adaptive Virtual Queue: notices arrivals that would overflow a virtual queue with a lower, adaptive capacity",
    version: 1,
    applies: &[],
    maturity: Maturity::Experimental,
    decides: AvqControl::DECIDES,
    params: Parameters::TABLE,
    presets: PRESETS,
    derive: Derive::Alone(derive),
    samples: || resolve::sample(&[Parameters::ecn().is(true), Parameters::virtual_limit().is(SAMPLE)]),
};

const SAMPLE: Size = super::table::packets(20);
const PAPER: &str = "Kunniyur and Srikant 2001, figure 1";
const PRESETS: &[Preset] = &[Preset { name: "paper", title: "Kunniyur and Srikant 2001", values: &[] }];

params! {
    struct Parameters {
        preset: &'static str = presets(const { &names::<1>(PRESETS) }),
        /// buffer size, excluding the packet in transmission
        limit: Size = Common::limit().default(Size::Bdp(1.0)).aliases(&[super::table::ns2_in("p", "limit_")])
            .source("one bandwidth-delay product: Villamizar and Song 1994"),
        limit_rule: LimitRule = Common::limit_rule(),
        /// size of the virtual queue, B
        virtual_limit: Size = Row::size().auto("limit").source(PAPER),
        /// desired utilisation of the link
        gamma: f64 = Row::above(0.0, 1.0).default(0.98).aliases(&[ns2("gamma_")])
            .source("Kunniyur and Srikant 2001, section 4 (from memory)"),
        /// smoothing parameter: the speed with which the virtual capacity moves
        alpha: f64 = Row::above(0.0, 1000.0).default(0.15)
            .source("Kunniyur and Srikant 2001, section 4 (from memory)"),
        mean_packet: Bytes = Common::mean_packet(),
        /// mark ECN-capable packets instead of dropping them; only an overflow still drops them
        ecn: bool = Row::flag(false).source("Kunniyur and Srikant 2001, figure 1: mark or drop"),
    }
}

fn derive(all: &mut Settings, link: &LinkContext) -> Result<(), ParamError> {
    let mean = resolve::mean_packet(all, link)?;
    let (limit, virtual_limit) = (Parameters::limit(), Parameters::virtual_limit());
    resolve::absolute_size(all, limit, link)?;
    if virtual_limit.is_auto(all) {
        let size = limit.read(all)?;
        virtual_limit.derive(all, size, "limit");
    } else {
        resolve::absolute_size(all, virtual_limit, link)?;
    }
    resolve::check_buffer(all, link.mean_packet.max(mean))
}

/// Builds an AVQ queue from these parameters.
pub(crate) fn build_avq<P: Packet>(s: &Effective, draws: Stream) -> Result<Avq<P>, ParamError> {
    let p = Parameters::read(s)?;
    let law = AvqLaw::new(AvqParams {
        buffer: in_bytes(p.virtual_limit, p.mean_packet),
        gamma: p.gamma,
        alpha: p.alpha,
        capacity: s.link().rate.bytes_per_s(),
    });
    let limit = resolve::limit(s)?;
    let queue = EarlyQueue { limit, ecn: p.ecn, overflow_first: false, spares_not_ect: false };
    Ok(Avq::new(AvqControl { law }, queue, draws))
}
