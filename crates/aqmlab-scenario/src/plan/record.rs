//! The record of a run.

use aqmlab_units::{Bytes, Span};
use schemars::JsonSchema;
use serde::Serialize;

use super::data::{Reference, References, is_default};

/// What to record, and how often; an interval of zero means never.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RecordPlan {
    /// Interval between samples of queues and laws.
    #[serde(rename = "queues_ns")]
    pub queues: Span,
    /// Interval between samples of each flow.
    #[serde(rename = "flows_ns")]
    pub flows: Span,
    /// Flows whose state changes are all recorded.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trace: Vec<FlowChoice>,
    /// Packets that are recorded individually.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packets: Option<PacketChoice>,
    /// How requests are recorded; absent if as by default.
    #[serde(skip_serializing_if = "is_default")]
    pub requests: RequestPlan,
    /// Largest number of rows in a trace or a packet recording; absent if there is neither.
    #[serde(rename = "limit_rows", skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
}

/// How requests are recorded, for classes that make requests.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct RequestPlan {
    /// Whether there is a row per request.
    pub each: bool,
    /// Upper end of the first size band of responses.
    #[serde(rename = "first_band_bytes")]
    pub first_band: Bytes,
    /// Ratio of the upper ends of successive bands.
    pub band_factor: u64,
    /// Number of bands.
    pub bands: u32,
    /// Largest number of completed requests in the sample of each class.
    #[serde(rename = "sample_requests")]
    pub sample: u32,
}

impl Default for RequestPlan {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl RequestPlan {
    /// How requests are recorded by default.
    pub const DEFAULT: RequestPlan =
        RequestPlan { each: false, first_band: Bytes::new(1000), band_factor: 10, bands: 6, sample: 5000 };

    /// Returns where the last band begins, or `None` if that is beyond 2^63 bytes.
    pub fn last_band(&self) -> Option<Bytes> {
        let Some(steps) = self.bands.checked_sub(2) else { return Some(Bytes::ZERO) };
        let begin = self.band_factor.checked_pow(steps)?.checked_mul(self.first_band.get())?;
        i64::try_from(begin).ok().map(|_| Bytes::new(begin))
    }
}

/// Flows of one class.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct FlowChoice {
    /// The class.
    pub class: Reference,
    /// The indices of the flows within the class, ascending; all flows if there is none.
    #[serde(rename = "flows")]
    pub indices: Option<Vec<u64>>,
}

impl FlowChoice {
    /// Returns whether the flow with this index in this class is among the selected flows.
    pub fn holds(&self, class: usize, index: u64) -> bool {
        *self.class == class
            && self.indices.as_ref().is_none_or(|indices| indices.binary_search(&index).is_ok())
    }
}

/// The packets that are recorded, with places and times.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PacketChoice {
    /// The links at which packets are recorded, in the order of the plan.
    pub links: References,
    /// The flows whose packets are recorded; all if there is none. If flows are selected, their packets
    /// are also recorded at their hosts.
    pub flows: Option<Vec<FlowChoice>>,
    /// The recorded events, in the order of [`PacketEvent::ALL`].
    pub events: Vec<PacketEvent>,
    /// Beginning of the recording.
    #[serde(rename = "from_ns")]
    pub from: Span,
    /// End of the recording, that instant included; the end of the run if there is none.
    #[serde(rename = "until_ns")]
    pub until: Option<Span>,
}

/// A recordable event of a packet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[repr(u8)]
pub enum PacketEvent {
    /// A host sends it.
    Send,
    /// The packet is lost on its flow's own access link.
    Lose,
    /// It reaches a queue.
    Enqueue,
    /// Its transmission begins.
    Dequeue,
    /// The router at the end of the link receives it.
    Receive,
    /// A queue drops it.
    Drop,
    /// A queue marks it.
    Mark,
    /// The packet reaches its host.
    Arrive,
}

impl PacketEvent {
    /// All events.
    pub const ALL: [PacketEvent; 8] = [
        PacketEvent::Send,
        PacketEvent::Lose,
        PacketEvent::Enqueue,
        PacketEvent::Dequeue,
        PacketEvent::Receive,
        PacketEvent::Drop,
        PacketEvent::Mark,
        PacketEvent::Arrive,
    ];

    /// Returns whether the event happens at a host, not at a link.
    pub const fn is_at_a_host(self) -> bool {
        matches!(self, PacketEvent::Send | PacketEvent::Lose | PacketEvent::Arrive)
    }

    /// Returns the word that scenarios and recordings use for the event.
    pub const fn name(self) -> &'static str {
        match self {
            PacketEvent::Send => "send",
            PacketEvent::Lose => "lose",
            PacketEvent::Enqueue => "enqueue",
            PacketEvent::Dequeue => "dequeue",
            PacketEvent::Receive => "receive",
            PacketEvent::Drop => "drop",
            PacketEvent::Mark => "mark",
            PacketEvent::Arrive => "arrive",
        }
    }
}
