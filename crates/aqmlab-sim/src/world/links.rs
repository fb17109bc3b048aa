//! Links: packets into their queues, out of them, and over to the next place.

use aqmlab_network::queue_stop_is_reached;
use aqmlab_qdisc::Packet;
use aqmlab_recording::StoppedBy;
use aqmlab_scenario::QueueStop;
use aqmlab_units::Instant;

use super::World;
use crate::event::{EventQueue, Key, Notice, Rank};
use crate::packet::SimPacket;
use crate::routes::{Next, Onward};

/// Calls the port of a link, which does not look ahead, with the observer that hears of its packets: one that writes them
/// down where that is asked for, elsewhere the network itself.
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
    /// A packet reaches the queue of a link, from which it will go `onward`.
    #[inline(always)]
    pub(super) fn enqueue(&mut self, link: u32, onward: Onward, packet: &mut SimPacket) {
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

    /// The same where each departure is an event.
    #[inline(never)]
    fn enqueue_and_wait(&mut self, link: u32, packet: SimPacket) {
        let free_at = at_port!(self, link, (port, observer) => port.arrive(self.now, packet, observer));
        self.schedule_link(link, free_at);
    }

    /// The link has sent a packet to the last bit: it travels on, and the next one starts.
    pub(super) fn link_free(&mut self, link: u32) {
        let mut departure = at_port!(self, link, (port, observer) => port.link_free(self.now, observer));
        let Next::Queue { onward, .. } = self.in_transit.routes.next(departure.packet.place()) else {
            unreachable!("a packet in a queue is at the queue's place")
        };
        self.leave(link, onward, self.now, &mut departure.packet);
        self.schedule_link(link, departure.next_end);
    }

    /// A packet has left a link's port, or will have, at `sent`: it is on its way over the link.
    /// (By reference: where it is copied is decided behind the branches.)
    #[inline(always)]
    fn leave(&mut self, link: u32, onward: Onward, sent: Instant, packet: &mut SimPacket) {
        let l = &mut self.links[link as usize];
        let at = sent + l.delay;
        match onward {
            Onward::ToServer(passed) => self.leave_for_server(at, packet, passed),
            Onward::ToClient(passed) => self.leave_for_client(at, packet, passed),
            Onward::ToAttended(last, passed) => self.leave_for_attended_host(at, packet, passed, last),
            Onward::Arrive => {
                packet.pass();
                let turn = l.turns.take(at);
                self.scheduler.arrival_from_link(at, link, turn, *packet);
            }
        }
    }

    /// Ports that look ahead do what is due by now.
    pub(super) fn catch_up(&mut self) {
        for link in &mut self.links {
            link.port.catch_up(self.now);
        }
    }

    /// The instant that a shaper asked for.
    pub(super) fn link_deadline(&mut self, link: u32) {
        let l = &mut self.links[link as usize];
        if l.deadline != Some(self.now) {
            return;
        }
        l.deadline = None;
        let free_at = at_port!(self, link, (port, observer) => port.wake(self.now, observer));
        self.schedule_link(link, free_at);
    }

    /// After each change of a port: schedules the end of a transmission that has begun; if none has, the
    /// deadline of a shaper.
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
}
