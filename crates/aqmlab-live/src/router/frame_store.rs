//! Where frames are kept and accounted for: pool, books, and who listens.

use aqmlab_qdisc::{Cause, Ecn, Observer, Packet};
use aqmlab_recording::Fates;
use aqmlab_transport::UniqueBytes;
use aqmlab_units::Instant;

use super::books::{FlowBooks, HostBooks, count};
use super::flow_table::FlowTable;
use super::routes::Routes;
use super::tap::{Happening, Tap, What};
use crate::frame::{FramePool, LiveFrame, set_traffic_class, tcp_payload};
use crate::host_id::HostId;

/// A frame that leaves the network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutgoingFrame<'a> {
    /// When it leaves, ideally.
    pub at: Instant,
    /// By which host.
    pub to: HostId,
    /// The index of its flow within the class, if it is of one.
    pub flow: Option<u32>,
    /// Its ECN field as it leaves.
    pub ecn: Ecn,
    /// Whether it leaves in the measured interval.
    pub measured: bool,
    /// The whole packet, marks and checksum included.
    pub octets: &'a [u8],
}

/// Takes the frames that leave the network, in the order of time.
pub trait FrameSink {
    /// A frame leaves.
    fn leave(&mut self, leaving: OutgoingFrame<'_>);
}

/// All that a frame leaves traces in.
pub struct FrameStore {
    pub pool: FramePool,
    pub routes: Routes,
    pub flow_table: FlowTable,
    pub fates: Fates,
    pub hosts: Vec<HostBooks>,
    /// Of each class, by row and direction.
    pub flows: Vec<Vec<[FlowBooks; 2]>>,
    /// What has left of each connection, likewise; empty for classes of datagrams.
    pub streams: Vec<Vec<[UniqueBytes; 2]>>,
    pub tap: Option<Box<dyn Tap>>,
}

impl FrameStore {
    /// The books of a frame's flow in its direction.
    pub fn books(&mut self, frame: &LiveFrame) -> &mut FlowBooks {
        let host = frame.origin();
        &mut self.flows[host.class][frame.flow_row() as usize][host.side as usize]
    }

    /// A frame leaves the network.
    pub fn leave(&mut self, at: Instant, frame: LiveFrame, measured: bool, out: &mut dyn FrameSink) {
        let size = frame.wire_len();
        self.fates.delivered.count(size);
        self.fates.packet_hops += u64::from(self.routes.passed(frame.place));
        let to = frame.origin().opposite();
        let (ecn, marked) = (frame.ecn(), frame.is_marked());
        let new_bytes = self.new_bytes(&frame);
        let books = self.books(&frame);
        count(&mut books.delivered, size);
        books.received_bytes += new_bytes;
        books.delivered_ce += u64::from(ecn == Ecn::Ce);
        let host = &mut self.hosts[to.number()];
        count(&mut host.left, size);
        host.left_ce += u64::from(ecn == Ecn::Ce);
        host.left_marked += u64::from(marked);
        self.write_header(&frame);
        let flow = self.flow_table.flow(to.class, frame.flow_row());
        let octets = self.pool.frame(&frame.slot, frame.len());
        out.leave(OutgoingFrame { at, to, flow, ecn, measured, octets });
        self.pool.free(frame.slot);
    }

    /// How many bytes of a leaving frame its receiver has not had before.
    fn new_bytes(&mut self, frame: &LiveFrame) -> u64 {
        let host = frame.origin();
        let Some(streams) = self.streams[host.class].get_mut(frame.flow_row() as usize) else {
            return frame.wire_len().get();
        };
        match tcp_payload(self.pool.frame(&frame.slot, frame.len())) {
            Some(segment) => streams[host.side as usize].pass(segment.seq, segment.syn, segment.len).into(),
            None => 0,
        }
    }

    /// Somebody listens: a frame is at the queue of `link`.
    #[inline]
    pub fn happens(&mut self, link: usize, at: Instant, frame: &LiveFrame, what: What) {
        if self.tap.is_some() {
            self.tell(link, at, frame, what);
        }
    }

    #[cold]
    fn tell(&mut self, link: usize, at: Instant, frame: &LiveFrame, what: What) {
        self.write_header(frame);
        let octets = self.pool.frame(&frame.slot, frame.len());
        if let Some(tap) = &mut self.tap {
            tap.happens(Happening { link, at, what, slot: frame.slot.number(), frame: octets });
        }
    }

    /// Writes what queues have changed into the frame's octets.
    fn write_header(&mut self, frame: &LiveFrame) {
        if let Some(class) = frame.new_traffic_class() {
            set_traffic_class(self.pool.frame_mut(&frame.slot, frame.len()), class);
        }
    }

    /// What becomes of frames at the queue of `link`.
    pub const fn at_queue(&mut self, link: usize) -> AtQueue<'_> {
        AtQueue { store: self, link }
    }

    /// What becomes of frames between queues.
    pub const fn on_the_way(&mut self) -> OnTheWay<'_> {
        OnTheWay { store: self }
    }
}

/// Hears of frames at one queue.
pub struct AtQueue<'a> {
    store: &'a mut FrameStore,
    link: usize,
}

impl Observer<LiveFrame> for AtQueue<'_> {
    fn dropped(&mut self, now: Instant, frame: LiveFrame, at: Cause) {
        let store = &mut *self.store;
        store.happens(self.link, now, &frame, What::Drop { reason: at.reason });
        store.fates.dropped.count(frame.wire_len());
        store.fates.packet_hops += u64::from(store.routes.passed(frame.place));
        store.books(&frame).dropped += 1;
        store.pool.free(frame.slot);
    }

    fn marked(&mut self, now: Instant, frame: &LiveFrame, at: Cause) {
        self.store.happens(self.link, now, frame, What::Mark { reason: at.reason });
    }
}

/// Hears of frames in pipes.
pub struct OnTheWay<'a> {
    store: &'a mut FrameStore,
}

impl Observer<LiveFrame> for OnTheWay<'_> {
    fn dropped(&mut self, _now: Instant, frame: LiveFrame, _at: Cause) {
        self.store.fates.lost.count(frame.wire_len());
        self.store.books(&frame).lost += 1;
        self.store.pool.free(frame.slot);
    }

    fn marked(&mut self, _now: Instant, _frame: &LiveFrame, _at: Cause) {
        unreachable!("pipes mark nothing");
    }
}
