//! CAKE's parameters, and their conversion to a queue.

use alloc::format;

use aqmlab_params::{ParamError, Row, Settings, params};
use aqmlab_random::Stream;
use aqmlab_units::{Bytes, Rate, Span};

use super::cake::{Cake, CakeRules, WAYS};
use super::cake_tins::{Tins, tin_of_code_points};
use super::fq_codel::linux_memory;
use super::table::{names, presets, tc, tc_bytes};
use super::words::{AckFilter, Isolation, PacketMemory, TinMode};
use crate::flow_store::Weigh;
use crate::info::{Decides, Derive, Effective, Info, Maturity, Preset};
use crate::law::{Arithmetic, ByteTime, Cells, Framing};
use crate::{LinkContext, Packet, resolve};

/// CAKE's entry in the catalogue.
pub(crate) const CAKE_INFO: Info = Info {
    name: "cake",
    title: "CAKE",
    summary: "Common Applications Kept Enhanced: tins, a COBALT queue per flow with fairness between hosts, a shaper",
    version: 2,
    applies: &["cobalt"],
    maturity: Maturity::ReferenceChecked,
    decides: Decides::Dequeue,
    params: Parameters::TABLE,
    presets: PRESETS,
    derive: Derive::Alone(derive),
    samples: || {
        let values = [
            Parameters::queues().is(16),
            Parameters::interval().is(Span::ms(2)),
            Parameters::target().is(Span::us(200)),
            Parameters::memory_limit().is(Bytes::new(60_000)),
        ];
        alloc::vec![("", resolve::given(&values))]
    },
};

const PAPER: &str = "Høiland-Jørgensen et al. 2018";
const TC: &str = "tc-cake(8)";

/// The longest interval: Linux counts microseconds in 32 bits.
const MOST_TIME: Span = Span::us(u32::MAX as u64);

params! {
    struct Parameters {
        preset: &'static str = presets(const { &names::<2>(PRESETS) }),
        /// rate of the shaper, in bytes on the link as overhead, mpu and framing count them
        bandwidth: Option<Rate> = Row::rate(Rate::bps(512), Rate::gbit(1000))
            .aliases(&[tc("bandwidth")])
            .source(TC)
            .optional("no shaper; the link paces"),
        /// the packets that share a queue: all (`flowblind`), those of a host (`srchost`, `dsthost`), of a pair of
        /// hosts (`hosts`) or of a flow (all others); `dual-srchost` and `dual-dsthost` also share the rate
        /// between the hosts of one side, `triple-isolate` between the hosts of both sides
        isolation: Isolation = Row::choice("triple-isolate")
            .source("Høiland-Jørgensen et al. 2018, section III-C; tc-cake(8)"),
        /// the tins, among which packets are divided by code point
        tins: TinMode = Row::choice("diffserv3")
            .source("Høiland-Jørgensen et al. 2018, section III-B; tc-cake(8)"),
        /// number of queues per tin, a multiple of 8; a flow may wait in any of the 8 queues of its set
        queues: u64 = Row::integer(8, 65_536).default(1024).source(PAPER),
        /// COBALT's interval: a large round-trip time
        interval: Span = Row::span(Span::us(1), MOST_TIME).default(Span::ms(100))
            .aliases(&[tc("rtt")]).source(TC),
        /// COBALT's target; a tin whose rate is so low that one and a half packets of mtu take longer has that
        /// time as its target, and a longer interval
        target: Span = Row::span(Span::us(1), MOST_TIME).auto("interval / 20, at least 1 us")
            .source(TC),
        /// bytes that the link adds to each packet
        overhead: u64 = Row::integer(0, 256).default(0)
            .aliases(&[tc("overhead")]).source("tc-cake(8); negative values are not supported"),
        /// length, overhead included, of the shortest packet on the link, in bytes
        mpu: u64 = Row::integer(0, 256).default(0).aliases(&[tc("mpu")]).source(TC),
        /// the cells of the link: `atm`, 53 bytes for each 48; `ptm`, one byte more for each 64
        framing: Cells = Row::choice("none").source(TC),
        /// count dropped packets as sent, for a shaper behind the bottleneck, and accept longer waits when many
        /// flows are active
        ingress: bool = Row::flag(false).aliases(&[tc("ingress")]).source(TC),
        /// clear the code points of all packets once they are in their tin
        wash: bool = Row::flag(false).aliases(&[tc("wash")]).source(TC),
        /// drop acknowledgments that a later segment of their connection makes unnecessary: `on`, the older of two
        /// such; `aggressive`, also the only one
        ack_filter: AckFilter = Row::choice("none").source(TC),
        /// memory that all packets may take, as packet_memory counts it; beyond it, packets at the head of the
        /// longest queue are dropped
        memory_limit: Bytes = Row::bytes(1, 1_000_000_000_000)
            .auto("4 bandwidth interval, at least 4 MiB, at most 10240 mtu (without a shaper, the latter)")
            .aliases(&[tc_bytes("memlimit")]).source("Linux"),
        /// memory of a packet: `length` its bytes; `linux` as in fq_codel
        packet_memory: PacketMemory = Row::choice("length").source("ours; Linux"),
        /// size of the largest packet
        mtu: Bytes = Row::bytes(64, 1_000_000).default(Bytes::new(1514)).source("Linux, on Ethernet"),
        /// COBALT's arithmetic, as in cobalt
        arithmetic: Arithmetic = Row::choice("exact").source("Linux"),
    }
}

const PRESETS: &[Preset] = &[
    Preset { name: "paper", title: PAPER, values: &[] },
    Preset {
        name: "linux",
        title: "Linux's cake as tc configures it on Ethernet",
        values: &[
            Parameters::overhead().is(14),
            Parameters::packet_memory().is("linux"),
            Parameters::arithmetic().is("linux"),
        ],
    },
];

fn derive(all: &mut Settings, _link: &LinkContext) -> Result<(), ParamError> {
    Parameters::target().derive_if_auto(all, |all| {
        let interval = Parameters::interval().read(all)?;
        Ok(Span::us((interval.as_ns() / 20_000).max(1)))
    })?;
    Parameters::memory_limit().derive_if_auto(all, |all| {
        let most = 10_240 * Parameters::mtu().read(all)?.get();
        let Some(rate) = Parameters::bandwidth().read(all)? else { return Ok(Bytes::new(most)) };
        let interval_us = u128::from(Parameters::interval().read(all)?.as_ns() / 1000);
        let four = u128::from(rate.as_bps() / 8) * interval_us / 250_000;
        Ok(Bytes::new(u64::try_from(four).unwrap_or(u64::MAX).max(4 << 20).min(most)))
    })?;
    let Parameters { target, interval, queues, memory_limit, mtu, .. } = Parameters::read(all)?;
    if target > interval {
        return Err(Parameters::target().error(format!(
            "target `{target}` exceeds interval `{interval}`; the target is usually 5 % of the interval"
        )));
    }
    if queues % u64::from(WAYS) != 0 {
        return Err(Parameters::queues().error(format!("queues `{queues}` is no multiple of {WAYS}")));
    }
    if memory_limit < mtu {
        return Err(Parameters::memory_limit()
            .error(format!("memory_limit `{memory_limit}` is smaller than one packet of mtu `{mtu}`")));
    }
    Ok(())
}

/// Builds a CAKE queue from these parameters.
pub(crate) fn build_cake<P: Packet>(s: &Effective, draws: Stream) -> Result<Cake<P>, ParamError> {
    let p = Parameters::read(s)?;
    let tins =
        Tins { mode: p.tins, target: p.target, interval: p.interval, mtu: p.mtu, arithmetic: p.arithmetic };
    let rules = CakeRules {
        isolation: p.isolation,
        tin_of: tin_of_code_points(p.tins),
        queues: p.queues as u32,
        framing: Framing { overhead: Bytes::new(p.overhead), shortest: Bytes::new(p.mpu), cells: p.framing },
        rate: p.bandwidth.map(ByteTime::at),
        ingress: p.ingress,
        wash: p.wash,
        ack_filter: p.ack_filter,
        memory_limit: p.memory_limit.get(),
        weigh: match p.packet_memory {
            PacketMemory::Length => Weigh::Length,
            PacketMemory::Linux => Weigh::By(linux_memory),
        },
        tins,
    };
    Ok(Cake::new(rules, p.bandwidth, draws))
}
