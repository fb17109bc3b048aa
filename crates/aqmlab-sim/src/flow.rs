//! A flow: its connection or packet source, its access links, and its packets in the network.

use aqmlab_network::{End, FlowCounts};
use aqmlab_qdisc::{Ecn, Packet};
use aqmlab_scenario::DatagramSource;
use aqmlab_transport::Endpoint;
use aqmlab_units::{Bytes, Instant, Span};

use crate::access::{AccessLinks, Pending};
use crate::connection::Connection;
use crate::packet::{FlowId, SimPacket};
use crate::stages::RouterStages;
use crate::talk::Talk;

/// A living flow.
pub struct Flow {
    /// The flow's slot, its number in the run (classes in the plan's order, flows in the class's
    /// order), and its class.
    pub id: FlowId,
    /// The flow's index within its class; if users have many connections, the index of its user.
    pub index: u32,
    /// The number of the flow's packets in the network. The flow keeps its slot until the last of
    /// these packets has left.
    pub in_flight: u32,
    /// Whether both endpoints have closed.
    pub over: bool,
    /// The number of the flow's packets whose arrival at a host is an event of its own.
    pub pending: Pending,
    /// When it started.
    pub start: Instant,
    /// When the receiver received the last of the flow's data; until then, the far future.
    pub completed: Instant,
    /// What is between the flow's hosts and the network, if anything: access links or delay stages.
    pub access: Option<AccessLinks>,
    /// The connection or packet source.
    pub body: Body,
    /// State that only a few flows have.
    pub rare: Option<Box<Rare>>,
}

/// State that only a few flows have; in the other flows, it takes only the eight bytes of a pointer.
#[derive(Default)]
pub struct Rare {
    /// The flow's state, kept for observations yet to come.
    snapshots: Option<Box<Snapshots>>,
    /// The flow's passages through delay stages in routers.
    stages: Option<RouterStages>,
}

impl Rare {
    /// Creates the rare state of a flow that passes delay stages in routers.
    pub fn stages(stages: RouterStages) -> Box<Self> {
        Box::new(Rare { snapshots: None, stages: Some(stages) })
    }
}

/// The part of a flow that depends on its kind.
#[expect(
    clippy::large_enum_variant,
    reason = "almost all flows are connections, and without a box a packet reaches its connection directly"
)]
pub enum Body {
    /// A TCP connection.
    Tcp(Connection),
    /// A one-way stream of datagrams.
    Packets(Box<Datagrams>),
    /// Datagrams that both ends send.
    Dialogue(Box<Talk>),
}

impl Flow {
    /// Returns its connection.
    ///
    /// # Panics
    /// If the flow is not a connection.
    #[inline]
    pub fn connection(&mut self) -> &mut Connection {
        match &mut self.body {
            Body::Tcp(connection) => connection,
            _ => unreachable!("segments and endpoints' timers belong to connections"),
        }
    }

    /// Handles the arrival of a datagram at `end`. Returns whether the flow may have something to say to it.
    #[inline]
    pub fn datagram_arrives(&mut self, now: Instant, end: End, packet: &SimPacket) -> bool {
        match &mut self.body {
            Body::Packets(datagrams) => {
                datagrams.delivered_bytes += packet.wire_len();
                datagrams.ce_received += u64::from(packet.ecn() == Ecn::Ce);
                false
            }
            Body::Dialogue(talk) => {
                talk.arrive(now, end, packet);
                true
            }
            Body::Tcp(_) => unreachable!("datagrams belong to packet sources and dialogues"),
        }
    }

    /// Returns the flow's own links.
    ///
    /// # Panics
    /// If the flow has none.
    #[inline]
    pub fn own_links(&mut self) -> &mut AccessLinks {
        self.access.as_mut().expect("its class has access links or delay stages")
    }

    /// Returns the flow's passages through delay stages in routers, if there are any.
    pub fn router_stages(&self) -> Option<&RouterStages> {
        self.rare.as_ref()?.stages.as_ref()
    }

    /// Returns the same passages for modification.
    ///
    /// # Panics
    /// If the flow has none.
    pub fn router_stages_mut(&mut self) -> &mut RouterStages {
        let stages = self.rare.as_mut().and_then(|rare| rare.stages.as_mut());
        stages.expect("its class meets delay stages in routers")
    }

    /// Returns whether a packet that arrives at its host only at `due` can be processed there now.
    /// That is possible if nothing else happens at that endpoint before then.
    #[inline(always)]
    pub fn can_be_served_ahead(&self, end: End, due: Instant, tracked: bool) -> bool {
        self.pending.is_none()
            && match &self.body {
                Body::Tcp(connection) if tracked => {
                    connection.is_established(end) && connection.changes_alone(end, due)
                }
                Body::Tcp(connection) => connection.is_quiet(end, due),
                Body::Packets(_) => true,
                Body::Dialogue(_) => false,
            }
    }

    /// Does the same as [`Flow::can_be_served_ahead`] for flows with applications that watch their
    /// streams, and for packets that open or close a connection.
    #[inline(never)]
    pub fn changes_alone(&self, end: End, due: Instant) -> bool {
        self.pending.is_none()
            && match &self.body {
                Body::Tcp(connection) => connection.changes_alone(end, due),
                Body::Packets(_) => true,
                Body::Dialogue(_) => false,
            }
    }

    /// Returns when the timer of a host fires, if it fires before the host's next arrival (at
    /// `due`) and nothing else happens at the host before it fires.
    pub fn timer_before(&self, end: End, due: Instant) -> Option<Instant> {
        match &self.body {
            Body::Tcp(connection) if self.pending.is_none() => connection.timer_before(end, due),
            _ => None,
        }
    }

    /// Returns the flow's counts so far.
    pub fn counts(&self) -> FlowCounts {
        let ends = self.counts_of(End::Client).plus(self.counts_of(End::Server));
        FlowCounts { lost_outside_queues_packets: self.lost_packets(), ..ends }
    }

    /// Returns the number of packets lost outside the queues so far. A packet counts from the
    /// instant of its loss. The counts of the two endpoints do not include these losses.
    fn lost_packets(&self) -> u64 {
        self.access.as_ref().map_or(0, AccessLinks::lost_packets)
            + self.router_stages().map_or(0, |stages| stages.lost_packets)
    }

    /// Returns one endpoint's counts so far.
    fn counts_of(&self, end: End) -> FlowCounts {
        match (&self.body, end) {
            (Body::Tcp(connection), _) => connection.counts(end),
            (Body::Dialogue(talk), _) => talk.counts(end),
            (Body::Packets(d), End::Client) => FlowCounts {
                sent_segments: d.sent_packets,
                sent_bytes: d.sent_bytes.get(),
                ..FlowCounts::default()
            },
            (Body::Packets(d), End::Server) => {
                // Every arriving datagram is new.
                let (bytes, ce_received) = (d.delivered_bytes.get(), d.ce_received);
                FlowCounts {
                    received_bytes: bytes,
                    delivered_bytes: bytes,
                    ce_received,
                    ..FlowCounts::default()
                }
            }
        }
    }
}

impl Flow {
    /// Ends the warm-up: saves the flow's counts at this instant.
    pub fn end_warmup(&mut self) {
        self.keep_for_warmup(End::Client);
        self.keep_for_warmup(End::Server);
        let lost = self.lost_packets();
        self.snapshots().lost_in_warmup = lost;
    }

    /// Saves the counts of one endpoint as those at the end of the warm-up, unless this has been
    /// done already.
    pub fn keep_for_warmup(&mut self, end: End) {
        let counts = self.counts_of(end);
        self.snapshots().warmup[end as usize].get_or_insert(counts);
    }

    fn snapshots(&mut self) -> &mut Snapshots {
        self.rare.get_or_insert_default().snapshots.get_or_insert_default()
    }

    /// Saves the state of one endpoint for the next sample, unless it has been saved already.
    pub fn keep_for_sample(&mut self, end: End) {
        let Flow { body: Body::Tcp(Connection { sender, receiver, .. }), rare, .. } = self else {
            return;
        };
        let snapshots = rare.get_or_insert_default().snapshots.get_or_insert_default();
        match end {
            End::Client => {
                snapshots.sender.get_or_insert_with(|| SenderSample::of(sender));
            }
            End::Server => {
                snapshots.receiver.get_or_insert_with(|| ReceiverSample::of(receiver));
            }
        }
    }

    /// Returns samples of the flow's sender and receiver at this instant, or `None` if the flow
    /// is not a connection.
    pub fn sample(&mut self) -> Option<(SenderSample, ReceiverSample)> {
        let Flow { body: Body::Tcp(Connection { sender, receiver, .. }), rare, .. } = self else {
            return None;
        };
        let snapshots = rare.as_mut().and_then(|rare| rare.snapshots.as_mut());
        let (kept_sender, kept_receiver) =
            snapshots.map_or((None, None), |snapshots| (snapshots.sender.take(), snapshots.receiver.take()));
        let sender = kept_sender.unwrap_or_else(|| SenderSample::of(sender));
        Some((sender, kept_receiver.unwrap_or_else(|| ReceiverSample::of(receiver))))
    }

    /// Returns the flow's counts at the end of the warm-up, which are zero if the flow started
    /// later.
    pub fn counts_at_warmup(&self) -> FlowCounts {
        let kept = self.rare.as_ref().and_then(|rare| rare.snapshots.as_ref());
        kept.map_or(FlowCounts::default(), |snapshots| {
            let [sender, receiver] = snapshots.warmup.map(Option::unwrap_or_default);
            FlowCounts { lost_outside_queues_packets: snapshots.lost_in_warmup, ..sender.plus(receiver) }
        })
    }
}

/// A flow's state, kept for observations yet to come: a sample, or the end of the warm-up.
///
/// One endpoint of a flow may already have been processed to a point in time later than such an
/// observation. In that case, the endpoint's earlier state is kept, and the observation sees that
/// state.
#[derive(Default)]
pub struct Snapshots {
    /// Counts of each endpoint at the end of the warm-up. They are kept until the end of the run.
    pub warmup: [Option<FlowCounts>; 2],
    /// Packets lost outside the queues by the end of the warm-up. Losses are never processed ahead
    /// of time, so they are recorded once, at that instant, and not separately for each endpoint.
    lost_in_warmup: u64,
    /// The sender's state at the next sample.
    pub sender: Option<SenderSample>,
    /// The receiver's state at the next sample.
    pub receiver: Option<ReceiverSample>,
}

/// A sending endpoint at an instant.
#[derive(Clone, Copy)]
pub struct SenderSample {
    /// Congestion window, in segments.
    pub cwnd: f64,
    /// Slow-start threshold, in segments; infinite at first.
    pub ssthresh: f64,
    /// Smoothed round-trip time.
    pub srtt: Option<Span>,
    /// Bytes sent and not acknowledged.
    pub flight: Bytes,
    /// Bytes acknowledged.
    pub acked: Bytes,
}

impl SenderSample {
    pub fn of(sender: &Endpoint) -> Self {
        SenderSample {
            cwnd: sender.cwnd(),
            ssthresh: sender.ssthresh(),
            srtt: sender.srtt(),
            flight: sender.flight(),
            acked: sender.acked(),
        }
    }
}

/// A receiving endpoint at an instant.
#[derive(Clone, Copy)]
pub struct ReceiverSample {
    /// Bytes that arrived for the first time, in order or not.
    pub received: Bytes,
    /// Bytes passed to the application, in order.
    pub delivered: Bytes,
}

impl ReceiverSample {
    pub fn of(receiver: &Endpoint) -> Self {
        ReceiverSample { received: receiver.received(), delivered: receiver.delivered() }
    }
}

/// A packet source, with the counts of its sender and its receiver.
pub struct Datagrams {
    /// The source that determines the packets.
    pub source: DatagramSource,
    /// Packets sent.
    pub sent_packets: u64,
    /// Bytes sent, counted at the network layer.
    pub sent_bytes: Bytes,
    /// Bytes received, counted at the network layer.
    pub delivered_bytes: Bytes,
    /// Packets received with CE.
    pub ce_received: u64,
    /// Whether the source has been stopped.
    pub stopped: bool,
}

impl Datagrams {
    /// Creates the counts for a source that has not sent any packet yet.
    pub fn new(source: DatagramSource) -> Self {
        let (sent_bytes, delivered_bytes) = (Bytes::ZERO, Bytes::ZERO);
        Datagrams { source, sent_packets: 0, sent_bytes, delivered_bytes, ce_received: 0, stopped: false }
    }

    /// Emits the packet that is due, and returns its length and its ECN field.
    pub fn emit(&mut self) -> (Bytes, Ecn) {
        let (wire_len, ecn) = self.source.emit();
        self.sent_packets += 1;
        self.sent_bytes += wire_len;
        (wire_len, ecn)
    }
}
