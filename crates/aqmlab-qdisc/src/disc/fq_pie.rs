//! FQ-PIE: [`FlowQueues`] with PIE's law in each queue; its parameters and their conversion to a queue.

use aqmlab_params::{ParamError, Settings, params, words};
use aqmlab_random::Stream;
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Span};

use super::EarlyLaw;
use super::flow_queues::{FlowQueues, FlowRules};
use super::fq_codel::{FlowRows, rules};
use super::pie::{self, PieControl, PieRows};
use super::table::{LINUX, names, ns3, packets, presets, tc};
use crate::info::{Derive, Effective, Info, Maturity, Preset};
use crate::resolve::{self, Common, LimitRule};
use crate::{LinkContext, Packet};

/// FQ-PIE.
pub type FqPie<P> = FlowQueues<P, PieControl>;

words! {
    /// What the limit on memory does.
    enum MemoryFull { Drop = "drop", Count = "count" }
}

/// FQ-PIE's entry in the catalogue.
pub(crate) const FQ_PIE_INFO: Info = Info {
    name: "fq_pie",
    title: "FQ-PIE",
    summary: "FlowQueue-PIE: a queue per flow, served in turn, new flows first, each with a PIE of its own",
    version: 2,
    applies: &["pie", "fq_codel"],
    maturity: Maturity::ReferenceChecked,
    decides: PieControl::DECIDES,
    params: Parameters::TABLE,
    presets: PRESETS,
    derive: Derive::Alone(derive),
    samples: || resolve::sample(&[&[FlowRows::flows().is(8)][..], &pie::QUICK].concat()),
};

params! {
    struct Parameters {
        preset: &'static str = presets(const { &names::<2>(PRESETS) }),
        /// buffer size of all queues together, excluding the packet in transmission; an arrival that finds no room
        /// is lost
        limit: Size = Common::limit().default(packets(10_240))
            .aliases(&[tc("limit"), ns3("MaxSize")]).source("tc-fq_pie(8)"),
        limit_rule: LimitRule = Common::limit_rule(),
        ..FlowRows { memory_limit, packet_memory },
        /// at memory_limit, `drop` loses arrivals; `count` loses none, as in Linux, where the limit has no effect
        memory_full: MemoryFull = aqmlab_params::Row::choice("drop").source("tc-fq_pie(8); Linux"),
        ..FlowRows { queues, flows, quantum, empty_new },
        ..PieRows {
            target, t_update, alpha, beta, max_burst, mean_packet, delay, dq_threshold, derandomize, cap, surge,
            decay, byte_mode, max_packet,
        },
        /// probability below which ECN-capable packets are marked; from it on, they are dropped; tc counts in
        /// percent
        mark_ecnth: f64 = PieRows::mark_ecnth().aliases(&[ns3("MarkEcnThreshold")])
            .source("RFC 8033, section 5.1; tc-fq_pie(8), `ecn_prob`"),
        ..PieRows { arithmetic, ecn },
    }
}

const PRESETS: &[Preset] = &[
    Preset { name: "rfc", title: "RFC 8033 in each queue of RFC 8290's scheduler", values: &[] },
    Preset {
        name: LINUX,
        title: "Linux's fq_pie as tc configures it on Ethernet, with 1000 timer ticks per second",
        values: &[
            FlowRows::packet_memory().is("linux"),
            Parameters::memory_full().is("count"),
            FlowRows::empty_new().is("linux"),
            PieRows::t_update().is(Span::ms(16)),
            PieRows::mean_packet().is(Bytes::new(1514)),
            PieRows::derandomize().is(true),
            PieRows::cap().is(true),
            PieRows::surge().is(true),
            PieRows::decay().is(0.984_375),
            PieRows::max_packet().is(Bytes::new(1514)),
            PieRows::arithmetic().is("linux"),
        ],
    },
];

fn derive(all: &mut Settings, link: &LinkContext) -> Result<(), ParamError> {
    pie::derive(all, link)
}

/// Builds an FQ-PIE queue from these parameters.
pub(crate) fn build_fq_pie<P: Packet>(s: &Effective, draws: Stream) -> Result<FqPie<P>, ParamError> {
    let (law, queue) = pie::parts(s)?;
    let mut rules: FlowRules = rules(s)?;
    if Parameters::memory_full().read(s)? == MemoryFull::Count {
        rules.memory_limit = u64::MAX;
    }
    Ok(FqPie::new(law, queue, rules, draws))
}
