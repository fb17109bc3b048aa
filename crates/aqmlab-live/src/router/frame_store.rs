//! The store of the router's frames and of the records about them: the frame pool, the books, and
//! the observer of ports.

use aqmlab_qdisc::{Cause, Ecn, Observer, Packet, Stamped, TcpHeader};
use aqmlab_recording::Fates;
use aqmlab_transport::UniqueBytes;
use aqmlab_units::{Instant, Span};

use super::books::{FlowBooks, HostBooks, count};
use super::flow_table::FlowTable;
use super::routes::Routes;
use crate::addresses::HostId;
use crate::frame::{FramePool, LinkHeader, LiveFrame, set_traffic_class, tcp_payload, tcp_segment};

/// A frame that leaves the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutgoingFrame<'a> {
    /// Ideal time of departure.
    pub at: Instant,
    /// The host through which the frame leaves.
    pub to: HostId,
    /// The index of its flow within the class, if it belongs to one.
    pub flow: Option<u32>,
    /// The frame's ECN field as it leaves.
    pub ecn: Ecn,
    /// If it leaves in the measured interval: the lateness that it must not reach at the rates that hold, or
    /// [`Span::MAX`] if no rate changes.
    pub measured: Option<Span>,
    /// The whole packet, marks and checksum included.
    pub octets: &'a [u8],
    /// The link header that it had when it was accepted, if it had one.
    pub link: &'a LinkHeader,
}

/// Receives the frames that leave the network, in chronological order.
pub trait FrameSink {
    /// Receives a frame that leaves.
    fn leave(&mut self, leaving: OutgoingFrame<'_>);
}

/// A frame at a port, as an observer of ports sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameAtPort<'a> {
    /// The port's link: an index into the plan's links.
    pub link: usize,
    /// Time at which the frame arrived at the port.
    pub arrived: Instant,
    /// The number of the frame's slot; the frame keeps this slot from its first queue to its last.
    pub slot: u32,
    /// Its [`packet_id`](aqmlab_recording::capture::packet_id).
    pub id: u64,
    /// The whole packet as it is now, marks included.
    pub octets: &'a [u8],
}

/// An observer that is notified of every frame at every port, in chronological order. It is called during the
/// run and therefore must not block; it may allocate.
pub trait FrameObserver: for<'a> Observer<FrameAtPort<'a>> + Send {}

impl<O: for<'a> Observer<FrameAtPort<'a>> + Send> FrameObserver for O {}

/// Everything that holds or counts frames.
pub struct FrameStore {
    pub pool: FramePool,
    pub routes: Routes,
    pub flow_table: FlowTable,
    pub fates: Fates,
    pub hosts: Vec<HostBooks>,
    /// The books of each class, by flow and direction.
    pub flows: Vec<Vec<[FlowBooks; 2]>>,
    /// The data of each connection that has left the network, by class, row and direction; a class
    /// of datagrams has no rows.
    pub streams: Vec<Vec<[UniqueBytes; 2]>>,
    /// The observer of frames at ports, if there is one.
    pub observer: Option<Box<dyn FrameObserver>>,
}

impl FrameStore {
    /// Returns the books of a frame's flow, in the frame's direction.
    pub fn books(&mut self, frame: &LiveFrame) -> &mut FlowBooks {
        let host = frame.origin();
        &mut self.flows[host.class][frame.owner().flow as usize][host.side as usize]
    }

    /// Records that a frame leaves the network, and passes it to `out`.
    pub fn leave(&mut self, at: Instant, frame: LiveFrame, measured: Option<Span>, out: &mut dyn FrameSink) {
        let size = frame.wire_len();
        self.fates.delivered.count(size);
        self.fates.packet_hops += u64::from(self.routes.passed(frame.place));
        let to = frame.origin().opposite();
        let (ecn, marked) = (frame.ecn(), frame.is_marked());
        let new_bytes = self.new_bytes(&frame);
        self.flow_table.left(to.class, frame.owner(), at);
        let books = self.books(&frame);
        count(&mut books.delivered, size);
        books.received_bytes += new_bytes;
        books.delivered_ce += u64::from(ecn == Ecn::Ce);
        let host = &mut self.hosts[to.number()];
        count(&mut host.left, size);
        host.left_ce += u64::from(ecn == Ecn::Ce);
        host.left_marked += u64::from(marked);
        self.write_header(&frame);
        let flow = self.flow_table.flow(to.class, frame.owner().flow);
        let (octets, link) = (self.pool.frame(&frame.slot, frame.len()), self.pool.link(&frame.slot));
        out.leave(OutgoingFrame { at, to, flow, ecn, measured, octets, link });
        self.pool.free(frame.slot);
    }

    /// Returns the number of bytes of a leaving frame that are new to its receiver.
    fn new_bytes(&mut self, frame: &LiveFrame) -> u64 {
        let (host, owner) = (frame.origin(), frame.owner());
        let is_stale = self.flow_table.is_stale(host.class, owner);
        let Some(streams) = self.streams[host.class].get_mut(owner.row as usize) else {
            return frame.wire_len().get();
        };
        let segment = tcp_payload(self.pool.frame(&frame.slot, frame.len()));
        if segment.is_none() && !self.flow_table.found(host.class).is_empty() {
            return frame.wire_len().get();
        }
        match segment.filter(|_| !is_stale) {
            // Segments that leave before the SYN belong to an earlier connection with the same client port.
            Some(segment) if segment.syn || streams[host.side as usize].has_begun() => {
                streams[host.side as usize].pass(segment.seq, segment.syn, segment.len).into()
            }
            _ => 0,
        }
    }

    /// Writes the changes made by queues into the frame's octets.
    pub(super) fn write_header(&mut self, frame: &LiveFrame) {
        if let Some(class) = frame.new_traffic_class() {
            set_traffic_class(self.pool.frame_mut(&frame.slot, frame.len()), class);
        }
    }

    /// Returns the observer of the port of `link`.
    pub const fn at_port(&mut self, link: usize) -> AtPort<'_> {
        AtPort { store: self, link }
    }

    /// Returns the observer of the pipes between ports.
    pub const fn in_pipes(&mut self) -> InPipes<'_> {
        InPipes { store: self }
    }
}

/// The observer of one port.
pub struct AtPort<'a> {
    store: &'a mut FrameStore,
    link: usize,
}

impl AtPort<'_> {
    /// Passes a frame to the observer of ports, if there is one.
    #[inline]
    fn show(
        &mut self,
        frame: &Stamped<LiveFrame>,
        to: impl FnOnce(&mut dyn FrameObserver, &FrameAtPort<'_>),
    ) {
        if self.store.observer.is_some() {
            self.store.write_header(&frame.packet);
        }
        let FrameStore { observer: Some(observer), pool, .. } = &mut *self.store else { return };
        let Stamped { packet, arrived } = frame;
        let octets = pool.frame(&packet.slot, packet.len());
        let (slot, id) = (packet.slot.number(), packet.id);
        to(&mut **observer, &FrameAtPort { link: self.link, arrived: *arrived, slot, id, octets });
    }
}

impl Observer<Stamped<LiveFrame>> for AtPort<'_> {
    fn enqueued(&mut self, now: Instant, frame: &Stamped<LiveFrame>) {
        self.show(frame, |observer, frame| observer.enqueued(now, frame));
    }

    fn dequeued(&mut self, now: Instant, frame: &Stamped<LiveFrame>) {
        self.show(frame, |observer, frame| observer.dequeued(now, frame));
    }

    fn dropped(&mut self, now: Instant, frame: Stamped<LiveFrame>, at: Cause) {
        self.show(&frame, |observer, frame| observer.dropped(now, *frame, at));
        let (store, frame) = (&mut *self.store, frame.packet);
        store.fates.dropped.count(frame.wire_len());
        store.fates.packet_hops += u64::from(store.routes.passed(frame.place));
        store.books(&frame).dropped += 1;
        store.pool.free(frame.slot);
    }

    fn marked(&mut self, now: Instant, frame: &Stamped<LiveFrame>, at: Cause) {
        self.show(frame, |observer, frame| observer.marked(now, frame, at));
    }

    fn tcp_header(&self, frame: &Stamped<LiveFrame>) -> Option<TcpHeader> {
        let frame = &frame.packet;
        TcpHeader::read(tcp_segment(self.store.pool.frame(&frame.slot, frame.len()))?)
    }
}

/// The observer of pipes.
pub struct InPipes<'a> {
    store: &'a mut FrameStore,
}

impl Observer<LiveFrame> for InPipes<'_> {
    fn dropped(&mut self, _now: Instant, frame: LiveFrame, _at: Cause) {
        self.store.fates.lost.count(frame.wire_len());
        self.store.books(&frame).lost += 1;
        self.store.pool.free(frame.slot);
    }

    fn marked(&mut self, _now: Instant, _frame: &LiveFrame, _at: Cause) {
        unreachable!("pipes mark nothing");
    }
}
