//! The table of flows. Slots are reused, but a flow is never confused with an earlier occupant of
//! its slot.

use crate::event::FlowRef;
use crate::flow::Flow;

/// Slots for active flows. A flow keeps its slot until its last packet has left the network, so
/// packets need only the slot to find their flow. A freed slot is reused under the next generation,
/// so a late timer of a flow that is over never reaches the slot's next flow.
#[derive(Default)]
pub struct FlowTable {
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Flows that are over and have no packet left, to be removed.
    finished: Vec<u32>,
}

struct Slot {
    generation: u32,
    flow: Option<Flow>,
}

const _: () = assert!(size_of::<Slot>() <= 520, "the memory of every flow would grow");

impl FlowTable {
    /// Inserts a flow, which `make` creates for its slot, and returns the reference that its timers hold.
    pub fn insert(&mut self, make: impl FnOnce(u32) -> Flow) -> FlowRef {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { generation: 0, flow: None });
            (self.slots.len() - 1) as u32
        });
        let place = &mut self.slots[slot as usize];
        place.flow = Some(make(slot));
        FlowRef { slot, generation: place.generation }
    }

    /// Returns the flow to which a timer belongs, unless the flow has been removed.
    #[inline]
    pub fn get_mut(&mut self, flow: FlowRef) -> Option<&mut Flow> {
        let slot = &mut self.slots[flow.slot as usize];
        if slot.generation == flow.generation { slot.flow.as_mut() } else { None }
    }

    /// Returns the flow to which a packet in the network belongs.
    ///
    /// # Panics
    /// If there is no such flow: a flow stays in the table while it has packets.
    #[inline]
    pub fn of_packet(&mut self, slot: u32) -> &mut Flow {
        self.tenant(slot).1
    }

    /// Returns the flow to which a packet in the network belongs, and the generation that its timers hold.
    ///
    /// # Panics
    /// If there is no such flow: a flow stays in the table while it has packets.
    #[inline]
    pub fn tenant(&mut self, slot: u32) -> (u32, &mut Flow) {
        let slot = &mut self.slots[slot as usize];
        let flow = slot.flow.as_mut().expect("a flow stays while it has packets in the network");
        (slot.generation, flow)
    }

    /// Records that a packet of the flow has been delivered or lost, and so has left the network.
    #[inline]
    pub fn packet_gone(&mut self, slot: u32) {
        self.of_packet(slot).in_flight -= 1;
        self.look_whether_finished(slot);
    }

    /// Marks a flow for removal if it is over and its last packet has left. This must be called
    /// after each change of a flow.
    #[inline]
    pub fn look_whether_finished(&mut self, slot: u32) {
        let flow = self.of_packet(slot);
        if flow.over && flow.in_flight == 0 {
            self.finished.push(slot);
        }
    }

    /// Returns whether there is a flow that [`FlowTable::reap`] can remove.
    #[inline]
    pub fn has_finished(&self) -> bool {
        !self.finished.is_empty()
    }

    /// Removes a flow that is over and has no packet left, and returns it. Returns `None` if there
    /// is no such flow.
    pub fn reap(&mut self) -> Option<Flow> {
        let number = self.finished.pop()?;
        let slot = &mut self.slots[number as usize];
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(number);
        slot.flow.take()
    }

    /// Iterates over all active flows by slot, with the references that their timers hold.
    pub fn living(&self) -> impl Iterator<Item = (FlowRef, &Flow)> {
        self.slots.iter().enumerate().filter_map(|(slot, s)| {
            let flow = s.flow.as_ref()?;
            Some((FlowRef { slot: slot as u32, generation: s.generation }, flow))
        })
    }

    /// Iterates over all active flows by slot.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Flow> {
        self.slots.iter_mut().filter_map(|s| s.flow.as_mut())
    }

    /// Returns the memory of the table in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Slot>()
    }

    /// Removes all flows that are still active.
    pub fn drain(&mut self) -> impl Iterator<Item = Flow> {
        self.slots.iter_mut().filter_map(|s| s.flow.take())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Pending;
    use crate::flow::{Body, Datagrams};
    use crate::packet::FlowId;
    use aqmlab_qdisc::Ecn;
    use aqmlab_random::Stream;
    use aqmlab_scenario::DatagramSource;
    use aqmlab_traffic::{PacketSizes, PacketSource, Spacing};
    use aqmlab_units::{Bytes, Instant, Rate};

    fn flow(slot: u32, number: u32) -> Flow {
        let draws = Stream::new(1, "test");
        let sizes = PacketSizes::Fixed(Bytes::new(100));
        let source = PacketSource::new(Rate::mbit(1), sizes, Spacing::Constant, Instant::ZERO, draws, draws);
        let body = Body::Packets(Box::new(Datagrams::new(DatagramSource::Rate { source, ecn: Ecn::NotEct })));
        Flow {
            id: FlowId { slot, number, class: 0 },
            index: number,
            in_flight: 0,
            over: false,
            pending: Pending::default(),
            start: Instant::ZERO,
            completed: Instant::FAR_FUTURE,
            access: None,
            body,
            rare: None,
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
