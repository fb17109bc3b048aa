//! FQ-CoDel: [`FlowQueues`] with CoDel's law in each queue; its parameters and their conversion to a queue.

use alloc::format;

use aqmlab_params::{ParamError, Row, Settings, params};
use aqmlab_random::Stream;
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Span};

use super::codel::{CeThreshold, CodelControl, CodelExtras};
use super::flow_queues::{FlowQueues, FlowRules, NoRoom};
use super::table::{names, ns3, packets, presets, tc, tc_bytes};
use super::words::{CeFor, EmptyNew, HalfOf, MtuOf, PacketMemory, Queues};
use super::{EarlyLaw, EarlyQueue};
use crate::flow_store::Weigh;
use crate::info::{Derive, Effective, Info, Maturity, Preset};
use crate::law::{Arithmetic, CodelParams};
use crate::resolve::{self, Common};
use crate::{Limit, LinkContext, Packet};

/// FQ-CoDel.
pub type FqCodel<P> = FlowQueues<P, CodelControl>;

/// FQ-CoDel's entry in the catalogue.
pub(crate) const FQ_CODEL_INFO: Info = Info {
    name: "fq_codel",
    title: "FQ-CoDel",
    summary: "FlowQueue-CoDel: a CoDel queue per flow, served in turn, new flows first; overload drops from the longest",
    version: 1,
    applies: &["codel"],
    maturity: Maturity::ReferenceChecked,
    decides: CodelControl::DECIDES,
    params: Parameters::TABLE,
    presets: PRESETS,
    derive: Derive::Alone(derive),
    samples: || {
        let (target, interval) = (Parameters::target(), Parameters::interval());
        resolve::sample(&[
            FlowRows::flows().is(8),
            Parameters::batch().is(4),
            target.is(Span::us(200)),
            interval.is(Span::ms(2)),
        ])
    },
};

const RFC: &str = "RFC 8290";
const LINUX: &str = "Linux";

params! {
    /// The parameters of the scheduler and its store.
    pub(super) struct FlowRows {
        /// memory that the packets of all queues may take, as packet_memory counts it; beyond it, packets are
        /// dropped as at the limit
        memory_limit: Bytes = Row::bytes(1, 1_000_000_000_000).default(Bytes::new(32 << 20))
            .aliases(&[tc_bytes("memory_limit")]).source("tc-fq_codel(8)"),
        /// memory of a packet: `length` its bytes; `linux` 256 B for Linux's description of it plus the power of
        /// two, from 512 B on, that holds the packet and 351 B, as for a datagram that a Linux host sends
        packet_memory: PacketMemory = Row::choice("length").source("ours; Linux"),
        /// `hashed` distributes the flows among flows queues by a salted hash, so that flows may share a queue;
        /// `perfect` gives each flow a queue of its own
        queues: Queues = Row::choice("hashed").source("RFC 8290, section 4.1; `perfect`: ours"),
        /// number of queues if they are `hashed`
        flows: u64 = Row::integer(1, 65_536).default(1024)
            .aliases(&[tc("flows"), ns3("Flows")]).source("RFC 8290, section 5.2.5"),
        /// bytes that a queue may send per round
        quantum: Bytes = Row::bytes(1, 1_000_000).default(Bytes::new(1514))
            .aliases(&[tc_bytes("quantum")]).source("RFC 8290, section 5.2.4"),
        /// list to which a new queue moves once it is empty: always to the `old` ones, or as in `linux`, which
        /// removes it at once if there are no old ones
        empty_new: EmptyNew = Row::choice("old").source("RFC 8290, section 4.2; Linux"),
    }
}

params! {
    struct Parameters {
        preset: &'static str = presets(const { &names::<2>(PRESETS) }),
        /// buffer size of all queues together, excluding the packet in transmission; an arrival that exceeds it
        /// is queued, and packets at the head of the longest queue are dropped
        limit: Size = Common::limit().default(packets(10_240))
            .aliases(&[tc("limit"), ns3("MaxSize")]).source("RFC 8290, section 5.2.3"),
        ..FlowRows { memory_limit, packet_memory, queues, flows, quantum },
        /// acceptable waiting time in each queue, as in CoDel
        target: Span = Row::span(Span::ns(1), Span::s(100)).default(Span::ms(5))
            .aliases(&[tc("target"), ns3("Target")]).source("RFC 8290, section 5.2.2"),
        /// CoDel's interval in each queue
        interval: Span = Row::span(Span::us(1), Span::s(1000)).default(Span::ms(100))
            .aliases(&[tc("interval"), ns3("Interval")]).source("RFC 8290, section 5.2.1"),
        /// CoDel chooses no packet if the backlog that it leaves behind is no larger than this
        mtu: Bytes = Row::bytes(1, 1_000_000).default(Bytes::new(1500)).source("RFC 8289, `maxpacket_`"),
        /// the backlog that is compared with mtu: that of the packet's own `queue`, or of `all` queues
        mtu_of: MtuOf = Row::choice("queue").source("RFC 8289; Linux compares the backlog of all queues"),
        /// CoDel's arithmetic, as in codel
        arithmetic: Arithmetic = Row::choice("exact").source("RFC 8289; Linux"),
        /// mark ECN-capable packets that CoDel chooses instead of dropping them; only an overflow still drops
        /// them
        ecn: bool = Row::flag(true).aliases(&[tc("ecn"), ns3("UseEcn")]).source("RFC 8290, section 5.2.6"),
        ce_threshold: Option<Span> = CeThreshold::row(),
        ce_threshold_for: CeFor = CeThreshold::selector_row(),
        /// most packets that one overflow drops
        batch: u64 = Row::integer(1, 1_000_000).default(64)
            .aliases(&[tc("drop_batch"), ns3("DropBatchSize")]).source("RFC 8290, section 4.1"),
        /// an overflow drops up to half of the longest queue: half of its `packets`, or of its `bytes`
        half_of: HalfOf = Row::choice("packets").source("RFC 8290, section 4.1; Linux"),
        /// each packet dropped by an overflow raises the count of its queue's CoDel by one
        overflow_counts: bool = Row::flag(false).source(LINUX),
        ..FlowRows { empty_new },
    }
}

const PRESETS: &[Preset] = &[
    Preset { name: "rfc8290", title: RFC, values: &[] },
    Preset {
        name: "linux",
        title: "Linux's fq_codel as tc configures it on Ethernet",
        values: &[
            FlowRows::packet_memory().is("linux"),
            Parameters::mtu().is(Bytes::new(1514)),
            Parameters::mtu_of().is("all"),
            Parameters::arithmetic().is("linux"),
            Parameters::half_of().is("bytes"),
            Parameters::overflow_counts().is(true),
            FlowRows::empty_new().is("linux"),
        ],
    },
];

fn derive(all: &mut Settings, link: &LinkContext) -> Result<(), ParamError> {
    resolve::absolute_size(all, Parameters::limit(), link)?;
    resolve::check_buffer(all, link.mean_packet)?;
    let Parameters { target, interval, .. } = Parameters::read(all)?;
    if target > interval {
        return Err(Parameters::target().error(format!(
            "target `{target}` exceeds interval `{interval}`; RFC 8289 sets the target to 5 % to 10 % of the interval"
        )));
    }
    Ok(())
}

/// Builds an FQ-CoDel queue from these parameters.
pub(crate) fn build_fq_codel<P: Packet>(s: &Effective, draws: Stream) -> Result<FqCodel<P>, ParamError> {
    let p = Parameters::read(s)?;
    let limit = match p.limit {
        Size::Packets(most) => Limit::Packets(most),
        Size::Bytes(most) => Limit::Bytes(most),
        size @ (Size::Bdp(_) | Size::Time(_)) => {
            return Err(Parameters::limit()
                .error(format!("limit `{size}` has not been resolved to packets or bytes")));
        }
    };
    let params = CodelParams { target: p.target, interval: p.interval, mtu: p.mtu, arithmetic: p.arithmetic };
    let ce_threshold = CeThreshold::new(p.ce_threshold, p.ce_threshold_for);
    let law = CodelControl::new(params, CodelExtras { ce_threshold, overflow_counts: p.overflow_counts });
    let queue = EarlyQueue { limit, ecn: p.ecn, overflow_first: false, spares_not_ect: false };
    let rules = FlowRules {
        no_room: NoRoom::FromFattest { batch: p.batch as u32, half_of: p.half_of },
        law_sees_all: p.mtu_of == MtuOf::All,
        ..rules(s)?
    };
    Ok(FqCodel::new(law, queue, rules, draws))
}

/// Returns the scheduler's rules that effective parameters describe. Arrivals without room are lost.
pub(super) fn rules(s: &Effective) -> Result<FlowRules, ParamError> {
    let p = FlowRows::read(s)?;
    Ok(FlowRules {
        quantum: p.quantum.get() as i64,
        flows: p.flows as u32,
        queues: p.queues,
        memory_limit: p.memory_limit.get(),
        weigh: match p.packet_memory {
            PacketMemory::Length => Weigh::Length,
            PacketMemory::Linux => Weigh::By(linux_memory),
        },
        no_room: NoRoom::Arrival,
        empty_new: p.empty_new,
        law_sees_all: false,
    })
}

/// Returns the memory that Linux 6.1 counts for a datagram of this length at the network layer: the
/// description of the packet, and its buffer, which also has room for the link's header, an alignment and what
/// Linux stores behind the packet.
// DEVIATES from Linux for packets that a driver received: their buffers depend on the driver.
pub(super) fn linux_memory(size: Bytes) -> u64 {
    256 + (size.get() + 351).next_power_of_two()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `memory_used` of Linux 6.1 (x86-64) for ten datagrams, divided by ten. Lengths here are those at the
    /// network layer, 14 B less than on Ethernet.
    #[test]
    fn a_packet_takes_the_memory_that_linux_reports() {
        for (on_ethernet, memory) in [
            (43, 768),
            (142, 768),
            (174, 768),
            (175, 768),
            (176, 1280),
            (200, 1280),
            (686, 1280),
            (687, 1280),
            (688, 2304),
            (689, 2304),
            (742, 2304),
            (1042, 2304),
            (1514, 2304),
        ] {
            assert_eq!(linux_memory(Bytes::new(on_ethernet - 14)), memory, "{on_ethernet} B");
        }
    }
}
