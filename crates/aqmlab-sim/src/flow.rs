//! Flows: two endpoints or a packet source, their access links and counters, in slots that are used again.

use aqmlab_qdisc::Pipe;
use aqmlab_random::Stream;
use aqmlab_traffic::PacketSource;
use aqmlab_transport::Endpoint;
use aqmlab_units::{Bytes, Instant, Rate, Span};

use crate::event::{End, FlowRef};

/// One flow that is alive.
pub struct Flow {
    /// Its number in the run: classes in the plan's order, flows in the class's order.
    pub number: u32,
    /// The class's index.
    pub class: u16,
    /// Its index within the class.
    pub index: u32,
    /// When it started.
    pub start: Instant,
    /// When its receiver had got everything.
    pub completed: Option<Instant>,
    /// Twice the propagation delay of path and access links.
    pub base_rtt: Span,
    /// The four dedicated access links, if it has any.
    pub access: Option<Box<AccessLinks>>,
    /// What sends.
    pub body: Body,
    /// Counts at the end of the warm-up; zero for flows that started later.
    pub at_warmup: FlowCounts,
}

/// What a flow is.
pub enum Body {
    /// A TCP connection.
    Tcp(Box<Connection>),
    /// A one-way stream of datagrams.
    Packets(Datagrams),
}

/// The two endpoints of a connection and the timer event that each waits for.
pub struct Connection {
    /// Opens and sends.
    pub sender: Endpoint,
    /// Accepts and receives.
    pub receiver: Endpoint,
    /// The instant of each endpoint's one valid timer event; far future if there is none.
    pub armed: [Instant; 2],
    /// Timer events made so far, by endpoint.
    pub timers: [u32; 2],
    /// Which endpoints have closed.
    pub closed: [bool; 2],
}

impl Connection {
    /// One endpoint.
    pub fn endpoint(&mut self, end: End) -> &mut Endpoint {
        match end {
            End::Sender => &mut self.sender,
            End::Receiver => &mut self.receiver,
        }
    }
}

/// A packet source and what its receiver has seen.
pub struct Datagrams {
    /// Makes the packets.
    pub source: PacketSource,
    /// Packets sent.
    pub sent_packets: u64,
    /// Bytes sent, network-layer length.
    pub sent_bytes: Bytes,
    /// Bytes received, network-layer length.
    pub delivered_bytes: Bytes,
    /// Has it been told to stop?
    pub stopped: bool,
}

/// A flow's own links: it feeds each alone, and none of them drops for want of room.
pub struct AccessLinks {
    /// In the order of [`AccessLink`].
    pub pipes: [Pipe; 4],
    /// Packets that came out of each, for the order of simultaneous arrivals.
    pub emitted: [u32; 4],
}

impl AccessLinks {
    /// Four links of one rate and delay; packets get lost at the entrance of the sender's outgoing one.
    pub fn new(rate: Rate, delay: Span, loss: f64, losses: Stream) -> Self {
        let pipe = || Pipe::new(delay).with_rate(rate, Bytes::ZERO);
        let out = if loss > 0.0 { pipe().with_loss(loss, losses) } else { pipe() };
        AccessLinks { pipes: [out, pipe(), pipe(), pipe()], emitted: [0; 4] }
    }
}

/// Which of a flow's four access links.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AccessLink {
    /// from the sender into the network
    SenderOut = 0,
    /// from the network to the receiver
    ReceiverIn = 1,
    /// from the receiver into the network
    ReceiverOut = 2,
    /// from the network to the sender
    SenderIn = 3,
}

/// Cumulative counts of a flow, as recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct FlowCounts {
    /// Segments or datagrams sent by the sender.
    pub sent_segments: u64,
    /// Payload bytes sent, retransmissions included (datagrams: network-layer bytes).
    pub sent_bytes: u64,
    /// Bytes that the receiving application has got, in order, for the first time.
    pub delivered_bytes: u64,
    /// Segments sent again.
    pub retransmitted_segments: u64,
    /// Retransmission time-outs.
    pub timeouts: u64,
    /// Entries into fast recovery.
    pub fast_retransmits: u64,
    /// Window reductions on ECN echo.
    pub ecn_reductions: u64,
    /// CE-marked packets that the receiver got.
    pub ce_received: u64,
}

impl Flow {
    /// The flow's counts so far.
    pub fn counts(&self) -> FlowCounts {
        match &self.body {
            Body::Tcp(connection) => {
                let (s, r) = (connection.sender.counters(), connection.receiver.counters());
                FlowCounts {
                    sent_segments: u64::from(s.data_segments_sent),
                    sent_bytes: s.bytes_sent,
                    delivered_bytes: connection.receiver.delivered().get(),
                    retransmitted_segments: u64::from(s.retransmitted),
                    timeouts: u64::from(s.timeouts),
                    fast_retransmits: u64::from(s.fast_retransmits),
                    ecn_reductions: u64::from(s.ecn_reductions),
                    ce_received: u64::from(r.ce_received),
                }
            }
            Body::Packets(d) => FlowCounts {
                sent_segments: d.sent_packets,
                sent_bytes: d.sent_bytes.get(),
                delivered_bytes: d.delivered_bytes.get(),
                ..FlowCounts::default()
            },
        }
    }
}

/// Slots for living flows. A freed slot is used again under the next generation, so that a late timer or
/// segment of a dead flow never hits its successor.
#[derive(Default)]
pub struct FlowTable {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

struct Slot {
    generation: u32,
    flow: Option<Flow>,
}

impl FlowTable {
    /// Puts a flow in; how to find it.
    pub fn insert(&mut self, flow: Flow) -> FlowRef {
        if let Some(slot) = self.free.pop() {
            let place = &mut self.slots[slot as usize];
            place.flow = Some(flow);
            return FlowRef { slot, generation: place.generation };
        }
        self.slots.push(Slot { generation: 0, flow: Some(flow) });
        FlowRef { slot: (self.slots.len() - 1) as u32, generation: 0 }
    }

    /// The flow, unless it is gone.
    #[inline]
    pub fn get_mut(&mut self, flow: FlowRef) -> Option<&mut Flow> {
        let slot = &mut self.slots[flow.slot as usize];
        if slot.generation == flow.generation { slot.flow.as_mut() } else { None }
    }

    /// Takes a flow out and frees its slot.
    pub fn remove(&mut self, flow: FlowRef) -> Option<Flow> {
        let slot = &mut self.slots[flow.slot as usize];
        if slot.generation != flow.generation {
            return None;
        }
        let gone = slot.flow.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(flow.slot);
        Some(gone)
    }

    /// All living flows, by slot.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Flow> {
        self.slots.iter_mut().filter_map(|s| s.flow.as_mut())
    }

    /// All living flows, by slot.
    pub fn iter(&self) -> impl Iterator<Item = &Flow> {
        self.slots.iter().filter_map(|s| s.flow.as_ref())
    }

    /// Slots that there are, taken or not.
    pub fn capacity(&self) -> usize {
        self.slots.capacity()
    }

    /// Takes out all that still live.
    pub fn drain(&mut self) -> impl Iterator<Item = Flow> {
        self.slots.iter_mut().filter_map(|s| s.flow.take())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aqmlab_traffic::{PacketSizes, Spacing};

    fn flow(number: u32) -> Flow {
        let draws = Stream::new(1, "test");
        let sizes = PacketSizes::Fixed(Bytes::new(100));
        let source = PacketSource::new(Rate::mbit(1), sizes, Spacing::Constant, Instant::ZERO, draws, draws);
        let (sent_bytes, delivered_bytes) = (Bytes::ZERO, Bytes::ZERO);
        let body =
            Body::Packets(Datagrams { source, sent_packets: 0, sent_bytes, delivered_bytes, stopped: false });
        let (start, base_rtt) = (Instant::ZERO, Span::ZERO);
        Flow {
            number,
            class: 0,
            index: number,
            start,
            completed: None,
            base_rtt,
            access: None,
            body,
            at_warmup: FlowCounts::default(),
        }
    }

    #[test]
    fn a_reference_to_a_dead_flow_never_finds_its_successor() {
        let mut table = FlowTable::default();
        let first = table.insert(flow(1));
        assert_eq!(table.remove(first).map(|f| f.number), Some(1));
        let second = table.insert(flow(2));
        assert_eq!(first.slot, second.slot, "the slot is used again");
        assert!(table.get_mut(first).is_none() && table.remove(first).is_none());
        assert_eq!(table.get_mut(second).map(|f| f.number), Some(2));
    }
}
