//! Flows: two endpoints or a packet source, their access links and counters, in slots that are used again.

use aqmlab_qdisc::Line;
use aqmlab_traffic::{Act, PacketSource, Progress, Session, Step};
use aqmlab_transport::{ENDLESS, Endpoint, Profile, Role, State};
use aqmlab_units::{Bytes, Instant, Span, Tempo};

use crate::event::{End, FlowRef};
use crate::hazards::Hazards;
use crate::looks::Kept;
use crate::packet::FlowId;

/// One flow that is alive.
pub struct Flow {
    /// Its slot, its number in the run (classes in the plan's order, flows in the class's order), its class.
    pub id: FlowId,
    /// Its index within the class.
    pub index: u32,
    /// Its packets in the network. The flow keeps its slot until the last of them has gone.
    pub in_flight: u32,
    /// Both ends have closed.
    pub over: bool,
    /// Its packets on their way to a host that do so by events of their own.
    pub pending: Pending,
    /// When it started.
    pub start: Instant,
    /// When its receiver had got everything; far future before.
    pub completed: Instant,
    /// Twice the propagation delay of path and access links.
    pub base_rtt: Span,
    /// The four dedicated access links, if it has any.
    pub access: Option<AccessLinks>,
    /// What sends.
    pub body: Body,
    /// What it was at instants for which that matters: see `looks.rs`.
    pub kept: Option<Box<Kept>>,
}

/// A count of packets in two bytes: a flow has never more than a few on their way to a host by events of their own.
/// If it has too many to count they are too many for ever.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Pending(u16);

impl Pending {
    const TOO_MANY: u16 = u16::MAX;

    /// One more.
    #[inline]
    pub fn one_more(&mut self) {
        self.0 = self.0.saturating_add(1);
    }

    /// One has arrived, which may be one of those that are not counted.
    #[inline]
    pub fn one_less(&mut self) {
        if self.0 != Self::TOO_MANY {
            self.0 = self.0.saturating_sub(1);
        }
    }

    /// Is there none?
    #[inline]
    pub fn is_none(self) -> bool {
        self.0 == 0
    }
}

/// What a flow is.
#[expect(
    clippy::large_enum_variant,
    reason = "almost all flows are connections, and a packet finds one at once"
)]
pub enum Body {
    /// A TCP connection.
    Tcp(Connection),
    /// A one-way stream of datagrams.
    Packets(Box<Datagrams>),
}

/// The two endpoints of a connection and the timer event that each waits for.
pub struct Connection {
    /// Opens and sends.
    pub sender: Endpoint,
    /// Accepts and receives.
    pub receiver: Endpoint,
    /// The instant of each endpoint's one valid timer event; far future if there is none.
    pub armed: [Instant; 2],
    /// Which endpoints have closed.
    pub closed: [bool; 2],
    /// The end at which the last of the data arrives.
    pub last: End,
    /// What the applications do, where that depends on more than the beginning.
    pub session: Option<Box<Session>>,
}

impl Connection {
    /// Two endpoints that have not begun, and nothing to say but what is told them.
    pub fn new(tcp: &Profile, session: Option<Session>) -> Self {
        let last = match &session {
            Some(Session::Exchange(exchange)) if !exchange.response.is_zero() => End::Sender,
            _ => End::Receiver,
        };
        Connection {
            sender: Endpoint::new(Role::Active, tcp),
            receiver: Endpoint::new(Role::Passive, tcp),
            armed: [Instant::FAR_FUTURE; 2],
            closed: [false; 2],
            last,
            session: session.map(Box::new),
        }
    }

    /// The applications do what they are about to do.
    pub fn act(&mut self, step: &Step) {
        for (endpoint, act) in [(&mut self.sender, step.client), (&mut self.receiver, step.server)] {
            match act {
                Some(Act::Write(bytes)) => endpoint.write(bytes),
                Some(Act::WriteLast(bytes)) => {
                    endpoint.write(bytes);
                    endpoint.close();
                }
                Some(Act::WriteEndlessly) => endpoint.write(ENDLESS),
                Some(Act::Withdraw) => endpoint.withdraw(),
                None => {}
            }
        }
    }

    /// How far its streams have come.
    pub fn progress(&self) -> Progress {
        Progress {
            acked: self.sender.acked().get(),
            at_server: self.receiver.delivered().get(),
            at_client: self.sender.delivered().get(),
        }
    }

    /// What one end has counted of the data that the flow counts: where the server answers, both ends send some.
    fn counts(&self, end: End) -> FlowCounts {
        let answers = self.last == End::Sender;
        let (endpoint, counts_sent, counts_received) = match end {
            End::Sender => (&self.sender, true, answers),
            End::Receiver => (&self.receiver, answers, true),
        };
        let mut counts = FlowCounts::default();
        let c = endpoint.counters();
        if counts_sent {
            counts.sent_segments = u64::from(c.data_segments_sent);
            counts.sent_bytes = c.bytes_sent;
            counts.retransmitted_segments = u64::from(c.retransmitted);
            counts.timeouts = u64::from(c.timeouts);
            counts.fast_retransmits = u64::from(c.fast_retransmits);
            counts.ecn_reductions = u64::from(c.ecn_reductions);
            counts.multiple_loss_windows = u64::from(c.multiple_loss_windows);
        }
        if counts_received {
            counts.delivered_bytes = endpoint.delivered().get();
            counts.ce_received = u64::from(c.ce_received);
            counts.spurious_retransmissions = u64::from(c.duplicates_received);
        }
        counts
    }

    /// Does nothing happen at this end up to `due` but the arrival of packets? Its timer is not due, and it is neither
    /// opening nor closing.
    #[inline]
    fn is_quiet(&self, end: End, due: Instant) -> bool {
        let endpoint = match end {
            End::Sender => &self.sender,
            End::Receiver => &self.receiver,
        };
        endpoint.state() == State::Established && endpoint.deadline().is_none_or(|at| at > due)
    }

    /// One endpoint.
    #[inline]
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

impl Datagrams {
    /// A receiver that has seen nothing of this source yet.
    pub fn new(source: PacketSource) -> Self {
        let (sent_bytes, delivered_bytes) = (Bytes::ZERO, Bytes::ZERO);
        Datagrams { source, sent_packets: 0, sent_bytes, delivered_bytes, stopped: false }
    }

    /// Makes the packet that is due: its length.
    pub fn emit(&mut self) -> Bytes {
        let wire_len = self.source.emit();
        self.sent_packets += 1;
        self.sent_bytes += wire_len;
        wire_len
    }
}

/// How fast the access links of a class are, in the order of [`AccessLink`]. All have one rate; each sees packets of
/// few sizes, so each has a tempo to itself.
pub type Tempi = [Tempo; 4];

/// A flow's own links: it feeds each alone, and none of them drops for want of room. All four have one delay, and the
/// rate of the flow's class. Packets get lost on them only where the scenario says so: see [`Hazards`].
pub struct AccessLinks {
    delay: Span,
    /// In the order of [`AccessLink`].
    lines: [Line; 4],
    /// How many packets before the last one came out of each at the same instant.
    turns: [u32; 4],
    hazards: Option<Box<Hazards>>,
}

impl AccessLinks {
    /// Four idle links.
    pub fn new(delay: Span, hazards: Option<Hazards>) -> Self {
        AccessLinks { delay, lines: [Line::default(); 4], turns: [0; 4], hazards: hazards.map(Box::new) }
    }

    /// Where nothing is lost, a packet's arrival can be foreseen: no packet is pending yet. Elsewhere too many always
    /// are.
    pub fn pending(&self) -> Pending {
        if self.hazards.is_some() { Pending(Pending::TOO_MANY) } else { Pending::default() }
    }

    /// Packets lost on them.
    pub fn lost_packets(&self) -> u64 {
        self.hazards.as_ref().map_or(0, |hazards| hazards.lost_packets)
    }

    /// A packet of `size` enters one of them at `now`: when it comes out, and in which turn of that instant. `None`
    /// if it is lost.
    #[inline(always)]
    pub fn pass(
        &mut self,
        tempi: &mut Tempi,
        which: AccessLink,
        now: Instant,
        size: Bytes,
    ) -> Option<(Instant, u64)> {
        if self.hazards.is_some() {
            return self.pass_hazards(tempi, which, now, size);
        }
        Some(self.pass_line(tempi, which, now, size))
    }

    /// The link itself.
    #[inline(always)]
    fn pass_line(
        &mut self,
        tempi: &mut Tempi,
        which: AccessLink,
        now: Instant,
        size: Bytes,
    ) -> (Instant, u64) {
        let line = &mut self.lines[which as usize];
        let before = line.free_at();
        let sent = line.pass(now, &mut tempi[which as usize], size);
        // The delay is constant: what is sent at one instant comes out at one instant.
        let turn = &mut self.turns[which as usize];
        *turn = if sent == before { *turn + 1 } else { 0 };
        (sent + self.delay, u64::from(*turn))
    }

    /// The link with what lies in front of it, where the packet comes from the network, or behind it.
    #[inline(never)]
    fn pass_hazards(
        &mut self,
        tempi: &mut Tempi,
        which: AccessLink,
        now: Instant,
        size: Bytes,
    ) -> Option<(Instant, u64)> {
        let enters_at = self.hazards.as_mut()?.before(which, now, size)?;
        let (out, turn) = self.pass_line(tempi, which, enters_at, size);
        self.hazards.as_mut()?.behind(which, out, turn, size)
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
    /// Segments with payload, or datagrams, sent by the sender.
    pub sent_segments: u64,
    /// Payload bytes sent, retransmissions included (datagrams: network-layer bytes).
    pub sent_bytes: u64,
    /// Bytes that the receiving application has got, in order, for the first time.
    pub delivered_bytes: u64,
    /// Segments with payload or FIN sent again.
    pub retransmitted_segments: u64,
    /// Retransmission timeouts of data or FIN.
    pub timeouts: u64,
    /// Entries into fast recovery.
    pub fast_retransmits: u64,
    /// Window reductions on ECN echo.
    pub ecn_reductions: u64,
    /// CE-marked packets that the receiver got.
    pub ce_received: u64,
    /// Segments with payload or FIN that reached the receiver and brought nothing it did not have.
    pub spurious_retransmissions: u64,
    /// Windows of data of which two or more segments were sent again.
    pub multiple_loss_windows: u64,
    /// Packets lost outside the queues: on access links and in delay stages.
    pub lost_packets: u64,
}

impl FlowCounts {
    /// Both together.
    pub fn plus(self, other: FlowCounts) -> FlowCounts {
        FlowCounts {
            sent_segments: self.sent_segments + other.sent_segments,
            sent_bytes: self.sent_bytes + other.sent_bytes,
            delivered_bytes: self.delivered_bytes + other.delivered_bytes,
            retransmitted_segments: self.retransmitted_segments + other.retransmitted_segments,
            timeouts: self.timeouts + other.timeouts,
            fast_retransmits: self.fast_retransmits + other.fast_retransmits,
            ecn_reductions: self.ecn_reductions + other.ecn_reductions,
            ce_received: self.ce_received + other.ce_received,
            spurious_retransmissions: self.spurious_retransmissions + other.spurious_retransmissions,
            multiple_loss_windows: self.multiple_loss_windows + other.multiple_loss_windows,
            lost_packets: self.lost_packets + other.lost_packets,
        }
    }
}

impl Flow {
    /// Its connection.
    ///
    /// # Panics
    /// If it has none.
    #[inline]
    pub fn connection(&mut self) -> &mut Connection {
        match &mut self.body {
            Body::Tcp(connection) => connection,
            Body::Packets(_) => unreachable!("segments and endpoints' timers belong to connections"),
        }
    }

    /// Its packet source.
    ///
    /// # Panics
    /// If it has none.
    #[inline]
    pub fn datagrams(&mut self) -> &mut Datagrams {
        match &mut self.body {
            Body::Packets(datagrams) => datagrams,
            Body::Tcp(_) => unreachable!("datagrams belong to packet sources"),
        }
    }

    /// Its own links.
    ///
    /// # Panics
    /// If it has none.
    #[inline]
    pub fn own_links(&mut self) -> &mut AccessLinks {
        self.access.as_mut().expect("its class has access links")
    }

    /// Can what a packet does at its host be done now, although it arrives at `due` only? It can if nothing else
    /// happens to that end before.
    #[inline]
    pub fn can_be_served_ahead(&self, end: End, due: Instant) -> bool {
        self.pending.is_none()
            && match &self.body {
                Body::Tcp(connection) => connection.is_quiet(end, due),
                Body::Packets(_) => true,
            }
    }

    /// The flow's counts so far.
    pub fn counts(&self) -> FlowCounts {
        self.counts_of(End::Sender).plus(self.counts_of(End::Receiver))
    }

    /// What one end has counted so far.
    pub fn counts_of(&self, end: End) -> FlowCounts {
        let lost_packets = match end {
            End::Sender => self.access.as_ref().map_or(0, AccessLinks::lost_packets),
            End::Receiver => 0,
        };
        FlowCounts { lost_packets, ..self.body_counts(end) }
    }

    fn body_counts(&self, end: End) -> FlowCounts {
        match (&self.body, end) {
            (Body::Tcp(connection), _) => connection.counts(end),
            (Body::Packets(d), End::Sender) => FlowCounts {
                sent_segments: d.sent_packets,
                sent_bytes: d.sent_bytes.get(),
                ..FlowCounts::default()
            },
            (Body::Packets(d), End::Receiver) => {
                FlowCounts { delivered_bytes: d.delivered_bytes.get(), ..FlowCounts::default() }
            }
        }
    }
}

/// Slots for living flows. A flow keeps its slot until its last packet has left the network, so that packets
/// find their flow by slot alone. A freed slot is used again under the next generation, so that a late timer of
/// a dead flow never hits its successor.
#[derive(Default)]
pub struct FlowTable {
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Flows that are over and have no packet left, to be taken out.
    finished: Vec<u32>,
}

struct Slot {
    generation: u32,
    flow: Option<Flow>,
}

impl FlowTable {
    /// Puts a flow in, which `make` makes for its slot; how its timers find it.
    pub fn insert(&mut self, make: impl FnOnce(u32) -> Flow) -> FlowRef {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { generation: 0, flow: None });
            (self.slots.len() - 1) as u32
        });
        let place = &mut self.slots[slot as usize];
        place.flow = Some(make(slot));
        FlowRef { slot, generation: place.generation }
    }

    /// The flow of a timer, unless it is gone.
    #[inline]
    pub fn get_mut(&mut self, flow: FlowRef) -> Option<&mut Flow> {
        let slot = &mut self.slots[flow.slot as usize];
        if slot.generation == flow.generation { slot.flow.as_mut() } else { None }
    }

    /// The flow of a packet that is in the network.
    ///
    /// # Panics
    /// If there is none: a flow stays while it has packets.
    #[inline]
    pub fn of_packet(&mut self, slot: u32) -> &mut Flow {
        self.tenant(slot).1
    }

    /// The flow of a packet that is in the network, and the generation in which its timers find it.
    ///
    /// # Panics
    /// If there is none: a flow stays while it has packets.
    #[inline]
    pub fn tenant(&mut self, slot: u32) -> (u32, &mut Flow) {
        let slot = &mut self.slots[slot as usize];
        let flow = slot.flow.as_mut().expect("a flow stays while it has packets in the network");
        (slot.generation, flow)
    }

    /// A packet of the flow has left the network, delivered or lost.
    #[inline]
    pub fn packet_gone(&mut self, slot: u32) {
        self.of_packet(slot).in_flight -= 1;
        self.look_whether_finished(slot);
    }

    /// After each change of a flow: is it over, and has its last packet gone?
    #[inline]
    pub fn look_whether_finished(&mut self, slot: u32) {
        let flow = self.of_packet(slot);
        if flow.over && flow.in_flight == 0 {
            self.finished.push(slot);
        }
    }

    /// Is there a flow to [`FlowTable::reap`]?
    #[inline]
    pub fn has_finished(&self) -> bool {
        !self.finished.is_empty()
    }

    /// Takes out a flow that is over and has no packet left; `None` if there is none.
    pub fn reap(&mut self) -> Option<Flow> {
        let number = self.finished.pop()?;
        let slot = &mut self.slots[number as usize];
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(number);
        slot.flow.take()
    }

    /// All living flows, by slot.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Flow> {
        self.slots.iter_mut().filter_map(|s| s.flow.as_mut())
    }

    /// Bytes that the table takes.
    pub fn memory_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Slot>()
    }

    /// Takes out all that still live.
    pub fn drain(&mut self) -> impl Iterator<Item = Flow> {
        self.slots.iter_mut().filter_map(|s| s.flow.take())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aqmlab_random::Stream;
    use aqmlab_traffic::{PacketSizes, Spacing};
    use aqmlab_units::Rate;

    fn flow(slot: u32, number: u32) -> Flow {
        let draws = Stream::new(1, "test");
        let sizes = PacketSizes::Fixed(Bytes::new(100));
        let source = PacketSource::new(Rate::mbit(1), sizes, Spacing::Constant, Instant::ZERO, draws, draws);
        let body = Body::Packets(Box::new(Datagrams::new(source)));
        Flow {
            id: FlowId { slot, number, class: 0 },
            index: number,
            in_flight: 0,
            over: false,
            pending: Pending::default(),
            start: Instant::ZERO,
            completed: Instant::FAR_FUTURE,
            base_rtt: Span::ZERO,
            access: None,
            body,
            kept: None,
        }
    }

    #[test]
    fn a_timer_of_a_dead_flow_never_finds_its_successor() {
        let mut table = FlowTable::default();
        let first = table.insert(|slot| flow(slot, 1));
        table.of_packet(first.slot).over = true;
        table.look_whether_finished(first.slot);
        assert_eq!(table.reap().map(|f| f.id.number), Some(1));
        let second = table.insert(|slot| flow(slot, 2));
        assert_eq!(first.slot, second.slot, "the slot is used again");
        assert!(table.get_mut(first).is_none());
        assert_eq!(table.get_mut(second).map(|f| f.id.number), Some(2));
    }

    #[test]
    fn a_flow_stays_until_its_last_packet_has_gone() {
        let mut table = FlowTable::default();
        let slot = table.insert(|slot| flow(slot, 1)).slot;
        table.of_packet(slot).in_flight = 2;
        table.of_packet(slot).over = true;
        table.packet_gone(slot);
        assert!(table.reap().is_none());
        table.packet_gone(slot);
        assert_eq!(table.reap().map(|f| f.id.number), Some(1));
        assert!(table.reap().is_none());
    }
}
