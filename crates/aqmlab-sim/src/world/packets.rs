//! The path of packets: into queues and out of them, and over links, until they reach their hosts or
//! are lost.

use aqmlab_network::{End, Turn, queue_stop_is_reached};
use aqmlab_qdisc::Packet;
use aqmlab_recording::StoppedBy;
use aqmlab_scenario::QueueStop;
use aqmlab_units::Instant;

use super::World;
use crate::access::AccessLink;
use crate::connection::Connection;
use crate::event::{EventQueue, Key, Notice, Rank};
use crate::flow::Body;
use crate::network::Held;
use crate::packet::{FlowId, SimPacket};
use crate::routes::{Next, Onward, Reception};

/// Returns the key of a turn of the controller of a link's shaper. (Turn 0 is that of a change of the link's rate.)
pub(super) fn autorate_key(link: usize, at: Instant) -> Key {
    Key::new(at, Rank::Rate, link as u64, 1)
}

/// Calls the port of a link that does not look ahead. The port reports its events to the watch if
/// the watch records this port, otherwise directly to the network.
macro_rules! at_port {
    ($world:ident, $link:ident, ($port:ident, $observer:ident) => $call:expr) => {{
        let $port = &mut $world.links[$link as usize].port;
        match $world.watch.as_deref_mut().filter(|watch| watch.watches($link)) {
            None => {
                let $observer = &mut $world.in_transit;
                $call
            }
            Some(watch) => {
                let $observer = &mut watch.at_port($link, &mut $world.in_transit);
                $call
            }
        }
    }};
}

impl<Q: EventQueue> World<'_, Q> {
    /// Moves a packet that has arrived at a place on to its next step: into the next queue on its
    /// path, over the last access link, or to its host.
    #[inline(always)]
    pub(super) fn forward(&mut self, packet: &mut SimPacket) {
        match self.in_transit.routes.next(packet.place()) {
            Next::Queue { link, onward } => self.enqueue(link, onward, packet),
            Next::Host { end, passed, reception: Reception::Plain } => match end {
                End::Server => self.at_server(packet, passed),
                End::Client => self.at_client(packet, passed),
            },
            _ => self.forward_elsewhere(packet),
        }
    }

    /// Moves a packet to a step that needs an event of its own, for example because hops are not fused or
    /// because individual events are recorded.
    #[inline(never)]
    fn forward_elsewhere(&mut self, packet: &SimPacket) {
        // The step is looked up again: passing it as an argument would slow down all other packets.
        match self.in_transit.routes.next(packet.place()) {
            Next::Access { link, .. } => self.enter_access(link, *packet),
            Next::Stage { number, .. } => self.enter_stage(self.now, number, *packet),
            Next::Host { end, passed, reception: Reception::Tracked } => {
                self.at_tracked_host(packet, passed, end)
            }
            Next::Host { end, passed, reception: Reception::Watched | Reception::Reported } => {
                self.at_watched_host(packet, passed, end)
            }
            Next::FarEnd(link) => self.at_far_end(link, *packet),
            Next::Queue { .. } | Next::Host { .. } => unreachable!("the caller handles these steps itself"),
        }
    }

    /// Moves a packet onto its flow's own link in an event of its own, for example because hops are not
    /// fused.
    fn enter_access(&mut self, link: AccessLink, packet: SimPacket) {
        let FlowId { slot, class, .. } = packet.flow();
        let serialisers = &mut self.classes[usize::from(class)].serialisers;
        let flow = self.in_transit.flows.of_packet(slot);
        // Until the packet has arrived, nothing is precomputed at its host.
        flow.pending.one_more();
        if !self.scheduler.over_access(flow.own_links(), serialisers, link, self.now, packet) {
            flow.pending.one_less();
            self.lose_on_its_way(packet);
        }
    }

    /// Moves a packet, at `at`, into its flow's passage through a delay stage in a router.
    #[inline(never)]
    fn enter_stage(&mut self, at: Instant, number: u8, mut packet: SimPacket) {
        let stages = self.in_transit.flows.of_packet(packet.flow().slot).router_stages_mut();
        match stages.pass(packet.toward(), number, at, packet.wire_len()) {
            Some((due, turn)) => {
                packet.pass();
                self.scheduler.arrival_from_stage(due, number, turn, packet);
            }
            None => self.lose_on_its_way(packet),
        }
    }

    /// Drops a packet between two places, while the packet's own event is handled.
    fn lose_on_its_way(&mut self, packet: SimPacket) {
        if let Some(watch) = &mut self.watch {
            watch.lost(self.now, &packet, &self.in_transit.options);
        }
        self.lose(packet);
        self.reap();
    }

    /// Records that a packet has reached the router at the end of a link, and moves it on.
    fn at_far_end(&mut self, link: u32, mut packet: SimPacket) {
        if let Some(watch) = &mut self.watch {
            watch.received(self.now, link, &packet, &self.in_transit.options);
        }
        packet.pass();
        self.forward_seldom(packet);
    }

    /// Does the same as [`World::forward`], where speed does not matter.
    #[inline(never)]
    pub(super) fn forward_seldom(&mut self, mut packet: SimPacket) {
        self.forward(&mut packet);
    }

    /// Passes a packet to the queue of a link, from which it will go `onward`.
    #[inline(always)]
    fn enqueue(&mut self, link: u32, onward: Onward, packet: &mut SimPacket) {
        let port = &mut self.links[link as usize].port;
        if port.looks_ahead() {
            if let Some(prospect) = port.arrive_ahead(self.now, packet, &mut self.in_transit) {
                if prospect.marked {
                    packet.mark_ce();
                }
                self.leave(link, onward, prospect.sent, packet);
            } else {
                self.reap();
            }
        } else {
            self.enqueue_and_wait(link, *packet);
        }
    }

    /// Does the same as [`World::enqueue`] for a port at which each departure is an event.
    #[inline(never)]
    fn enqueue_and_wait(&mut self, link: u32, packet: SimPacket) {
        let free_at = at_port!(self, link, (port, observer) => port.arrive(self.now, packet, observer));
        self.schedule_link(link, free_at);
    }

    /// Ends a transmission on a link: the packet travels on, and the next transmission starts. If the rate of the
    /// link has changed, the end may have moved.
    pub(super) fn link_free(&mut self, link: u32) {
        if !self.links[link as usize].port.is_due(self.now) {
            return;
        }
        let mut departure = at_port!(self, link, (port, observer) => port.link_free(self.now, observer));
        let onward = self.onward(&departure.packet);
        self.leave(link, onward, self.now, &mut departure.packet);
        self.schedule_link(link, departure.next_end);
    }

    /// Prepares the links whose rate changes.
    pub(super) fn begin_changes(&mut self) {
        for number in self.changing.numbers() {
            let port = &mut self.links[number].port;
            self.changing.begin(number, port, &mut self.in_transit);
            self.schedule_turn(number as u32);
        }
    }

    /// Prepares the controllers of shapers.
    pub(super) fn begin_autorates(&mut self) {
        for number in self.autorates.numbers() {
            let port = &mut self.links[number].port;
            self.autorates.begin(number, port, &mut self.in_transit);
            self.schedule_autorate(number, self.autorates.next_measurement(number));
        }
    }

    pub(super) fn schedule_autorate(&mut self, link: usize, at: Instant) {
        self.scheduler.queue.push(autorate_key(link, at), Notice::Autorate { link: link as u32 });
    }

    /// Lets a controller adjust its shaper. The notices of two answers at one instant are the same.
    pub(super) fn adjust_shaper(&mut self, link: u32) {
        let number = link as usize;
        if self.autorates.next(number) > self.now {
            return;
        }
        let measures = self.autorates.next_measurement(number) <= self.now;
        let autorates = &mut self.autorates;
        let ends = at_port!(self, link, (port, observer) => autorates.act(number, self.now, port, observer));
        self.schedule_link(link, ends);
        if measures {
            self.schedule_autorate(number, self.autorates.next_measurement(number));
        }
    }

    /// Schedules the next turn of a link whose rate changes.
    fn schedule_turn(&mut self, link: u32) {
        let Some((at, turn)) = self.changing.next(link as usize) else { return };
        let (key, notice) = match turn {
            Turn::Rate => (Key::new(at, Rank::Rate, link.into(), 0), Notice::RateChange { link }),
            // Turns 0 and 1 are those of a serving link.
            Turn::Chance => (Key::new(at, Rank::Departure, link.into(), 2), Notice::Chance { link }),
        };
        self.scheduler.queue.push(key, notice);
    }

    /// Changes the rate of a link.
    pub(super) fn change_rate(&mut self, link: u32) {
        let changing = &mut self.changing;
        let ends = at_port!(self, link, (port, observer) => {
            changing.change(link as usize, self.now, port, observer)
        });
        self.schedule_link(link, ends);
        self.schedule_turn(link);
    }

    /// Lets a link send at a chance.
    pub(super) fn take_chance(&mut self, link: u32) {
        let mut left = self.changing.chance(link as usize, self.now, &mut self.links[link as usize].port);
        while let Some(mut departure) =
            at_port!(self, link, (port, observer) => port.use_chance(self.now, &mut left, observer))
        {
            let onward = self.onward(&departure.packet);
            self.leave(link, onward, self.now, &mut departure.packet);
        }
        self.schedule_link(link, None);
        self.schedule_turn(link);
    }

    /// Returns where a packet goes that leaves the queue at whose place it is.
    fn onward(&self, packet: &SimPacket) -> Onward {
        match self.in_transit.routes.next(packet.place()) {
            Next::Queue { onward, .. } => onward,
            _ => unreachable!("a packet that leaves a queue is at that queue's place"),
        }
    }

    /// Moves a packet onto a link. The packet has left the link's port, or will leave it, at
    /// `sent`. (The packet is passed by reference because the branches decide where it is copied.)
    #[inline(always)]
    fn leave(&mut self, link: u32, onward: Onward, sent: Instant, packet: &mut SimPacket) {
        let l = &mut self.links[link as usize];
        let at = sent + l.delay;
        match onward {
            Onward::ToServer(passed) => self.leave_for_server(at, packet, passed),
            Onward::ToClient(passed) => self.leave_for_client(at, packet, passed),
            Onward::ToBySegments(passed) => self.leave_for_client_by_segments(at, packet, passed),
            Onward::ToTracked(last, passed) => self.leave_for_tracked_host(at, packet, passed, last),
            Onward::ToStage(number) => {
                packet.pass();
                self.enter_stage(at, number, *packet);
            }
            Onward::ToQueue => self.leave_for_queue(at, link, packet),
            Onward::Arrive => {
                packet.pass();
                let turn = l.turns.take(at);
                self.scheduler.arrival_from_link(at, link, turn, *packet);
            }
        }
    }

    /// Moves a packet that leaves `link` at `at` into a queue that only this link feeds. The packet
    /// enters the queue now, with `at` as its arrival time, and continues along its path. If queues
    /// are observed before that time, the packet waits for the observation.
    #[inline(never)]
    fn leave_for_queue(&mut self, mut at: Instant, mut link: u32, packet: &mut SimPacket) {
        loop {
            packet.pass();
            let Next::Queue { link: next, onward } = self.in_transit.routes.next(packet.place()) else {
                unreachable!("a queue follows")
            };
            if at > self.next_look || !self.links[next as usize].held.is_empty() {
                return self.hold(at, link, next, *packet);
            }
            self.done_as_of = self.done_as_of.max(at);
            let l = &mut self.links[next as usize];
            let Some(prospect) = l.port.arrive_ahead(at, packet, &mut self.in_transit) else {
                return self.reap();
            };
            if prospect.marked {
                packet.mark_ce();
            }
            if onward != Onward::ToQueue {
                return self.leave(next, onward, prospect.sent, packet);
            }
            (at, link) = (prospect.sent + l.delay, next);
        }
    }

    /// Holds a packet on its way to the queue of the link `next`, which the packet reaches at `at`
    /// and must not enter yet.
    fn hold(&mut self, at: Instant, from: u32, next: u32, packet: SimPacket) {
        let turn = self.links[from as usize].turns.take(at);
        if self.serves_ahead {
            self.links[next as usize].held.push_back(Held { at, from, turn, packet });
        } else {
            self.scheduler.arrival_from_link(at, from, turn, packet);
        }
    }

    /// Releases the held packets after an observation of queues. Each packet enters its next queue
    /// at its arrival time, unless there is another observation before that time.
    pub(super) fn release_held(&mut self) {
        for link in 0..self.links.len() {
            // Packets held from now on go into a second buffer; the two are swapped each time.
            std::mem::swap(&mut self.releasing, &mut self.links[link].held);
            while let Some(Held { at, from, mut packet, .. }) = self.releasing.pop_front() {
                // The packet goes back to its previous place and leaves that place again.
                packet.step_back();
                self.leave_for_queue(at, from, &mut packet);
            }
        }
    }

    /// Stops all processing ahead of time: from now on, every arrival is an event.
    pub(super) fn serve_in_time(&mut self) {
        self.serves_ahead = false;
        self.next_look = Instant::ZERO;
        for link in &mut self.links {
            for Held { at, from, turn, packet } in link.held.drain(..) {
                self.scheduler.arrival_from_link(at, from, turn, packet);
            }
        }
    }

    /// Brings the ports that look ahead up to date: they process everything that is due by now.
    pub(super) fn catch_up(&mut self) {
        for link in &mut self.links {
            link.port.catch_up(self.now);
        }
    }

    /// Wakes the port of a link at the deadline that a shaper has set.
    pub(super) fn link_deadline(&mut self, link: u32) {
        let l = &mut self.links[link as usize];
        if l.deadline != Some(self.now) {
            return;
        }
        l.deadline = None;
        let free_at = at_port!(self, link, (port, observer) => port.wake(self.now, observer));
        self.schedule_link(link, free_at);
    }

    /// Schedules the next event of a port after each change of the port: the end of a transmission
    /// that has begun or, if there is none, the deadline of a shaper.
    #[inline]
    fn schedule_link(&mut self, link: u32, free_at: Option<Instant>) {
        if let Some(at) = free_at {
            let key = Key::new(at, Rank::Departure, u64::from(link), 0);
            self.scheduler.queue.push(key, Notice::LinkFree { link });
        } else {
            self.schedule_deadline(link);
        }
        if self.watched == Some(link) {
            self.check_queue_stop(link);
        }
        self.reap();
    }

    fn schedule_deadline(&mut self, link: u32) {
        let l = &mut self.links[link as usize];
        if !l.port.is_sending()
            && let Some(at) = l.port.next_event()
            && l.deadline.is_none_or(|pending| at < pending)
        {
            l.deadline = Some(at);
            let key = Key::new(at, Rank::Departure, u64::from(link), 1);
            self.scheduler.queue.push(key, Notice::LinkDeadline { link });
        }
    }

    fn check_queue_stop(&mut self, link: u32) {
        let reached = |stop: &QueueStop| queue_stop_is_reached(stop, &self.links[link as usize].port);
        if self.plan.stop.condition.as_ref().is_some_and(reached) {
            self.stop(StoppedBy::Condition);
        }
    }

    /// Removes the flows whose last packet has left.
    #[inline]
    pub(super) fn reap(&mut self) {
        if self.in_transit.flows.has_finished() {
            self.record_finished();
        }
    }

    #[cold]
    fn record_finished(&mut self) {
        while let Some(gone) = self.in_transit.flows.reap() {
            self.recorder.flow_ended(&gone, &self.classes[usize::from(gone.id.class)]);
            if let Some(watch) = &mut self.watch {
                watch.flow_ended(&gone);
            }
            if let Body::Tcp(Connection { applications: Some(applications), .. }) = gone.body {
                self.spare.push(applications);
            }
        }
    }

    /// Drops a packet on its flow's own link.
    pub(super) fn lose(&mut self, packet: SimPacket) {
        self.in_transit.fates.lost.count(packet.wire_len());
        self.in_transit.options.forget(&packet);
        self.in_transit.flows.packet_gone(packet.flow().slot);
    }

    /// Passes the packets in the outbox, whose flows have no access links, to their first queue.
    #[inline(always)]
    pub(super) fn send_outbox(&mut self) {
        if !self.outbox.is_empty() {
            self.empty_outbox();
        }
    }

    #[inline(never)]
    fn empty_outbox(&mut self) {
        let mut outbox = std::mem::take(&mut self.outbox);
        for packet in outbox.drain(..) {
            self.forward_seldom(packet);
        }
        self.outbox = outbox;
    }
}
