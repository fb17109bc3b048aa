//! The processing of an endpoint when a packet reaches its host, when a timer fires, or when an
//! application acts.

use aqmlab_network::{End, Milestone, recorded_exchange};
use aqmlab_qdisc::Packet;
use aqmlab_recording::{Ending, Fates, RequestRecorder};
use aqmlab_scenario::Completed;
use aqmlab_traffic::{ConnectionEvent, ExchangeDone, Identity};
use aqmlab_transport::{Endpoint, Options, Profile, Segment, StreamEvent};
use aqmlab_units::Instant;

use super::World;
use super::packets::autorate_key;
use crate::access::{AccessLink, AccessLinks, Serialisers};
use crate::connection::Connection;
use crate::event::{EventQueue, FlowRef, Notice};
use crate::flow::{Body, Flow};
use crate::network::{Class, Opening};
use crate::options::OptionTable;
use crate::packet::{Begin, FlowId, SimPacket, Toward};
use crate::scheduler::{FlowObject, Scheduler};
use crate::watch::Watch;

/// Splits off the parts of the world that processing needs in addition to the flow and its class.
macro_rules! hosts {
    ($world:ident, $now:expr, $watch:expr) => {
        Hosts {
            now: $now,
            scheduler: &mut $world.scheduler,
            fates: &mut $world.in_transit.fates,
            options: &mut $world.in_transit.options,
            outbox: &mut $world.outbox,
            requests: &mut $world.requests,
            watch: $watch,
        }
    };
}

impl<Q: EventQueue> World<'_, Q> {
    /// Handles a packet that reaches the receiving host. (Two copies of this code, one per end, are
    /// faster than one copy for both.)
    #[inline(never)]
    pub(super) fn at_server(&mut self, packet: &SimPacket, passed: u8) {
        self.at_host(self.now, packet, Reached { end: End::Server, passed, sending: Sending::AtOnce });
    }

    /// Handles a packet that reaches the sending host.
    #[inline(never)]
    pub(super) fn at_client(&mut self, packet: &SimPacket, passed: u8) {
        self.at_host(self.now, packet, Reached { end: End::Client, passed, sending: Sending::AtOnce });
    }

    /// Handles a packet that reaches a host where applications watch the position of their streams.
    #[inline(never)]
    pub(super) fn at_tracked_host(&mut self, packet: &SimPacket, passed: u8, end: End) {
        self.at_host(self.now, packet, Reached { end, passed, sending: Sending::MayWait });
    }

    #[inline(always)]
    fn at_host(&mut self, now: Instant, packet: &SimPacket, reached: Reached) {
        let FlowId { slot, class, .. } = packet.flow();
        let (generation, flow) = self.in_transit.flows.tenant(slot);
        let class = &mut self.classes[usize::from(class)];
        flow.pending.one_less();
        let mut hosts = hosts!(self, now, None);
        let outcome = hosts.arrive(class, flow, generation, packet, reached);
        if outcome != Served::default() {
            self.conclude(slot, outcome);
        }
    }

    /// Handles a packet that reaches a host whose events are recorded, or a host that delays its packets.
    #[inline(never)]
    pub(super) fn at_watched_host(&mut self, packet: &SimPacket, passed: u8, end: End) {
        let options = &mut self.in_transit.options;
        if let Some(watch) = &mut self.watch {
            watch.arrived(self.now, packet, options);
        }
        let packet = options.take_number(*packet);
        let FlowId { slot, class, number } = packet.flow();
        if let Some(serial) = packet.datagram_number()
            && self.autorates.is_reflector(class.into())
        {
            let queue = &mut self.scheduler.queue;
            self.autorates.delivered(class.into(), number, serial, self.now, |link, at| {
                queue.push(autorate_key(link, at), Notice::Autorate { link: link as u32 });
            });
        }
        let (generation, flow) = self.in_transit.flows.tenant(slot);
        let class = &mut self.classes[usize::from(class)];
        let mut hosts = hosts!(self, self.now, self.watch.as_deref_mut());
        let reached = Reached { end, passed, sending: Sending::MayWait };
        let outcome = hosts.arrive(class, flow, generation, &packet, reached);
        self.conclude(slot, outcome);
    }

    /// Moves a packet onto its flow's own link to the receiving host. The packet enters the link at `at`.
    #[inline(never)]
    pub(super) fn leave_for_server(&mut self, at: Instant, packet: &mut SimPacket, passed: u8) {
        self.leave_for_host(at, packet, passed, AccessLink::ServerIn, Sending::AtOnce);
    }

    /// Moves a packet onto its flow's own link to the sending host. The packet enters the link at `at`.
    #[inline(never)]
    pub(super) fn leave_for_client(&mut self, at: Instant, packet: &mut SimPacket, passed: u8) {
        self.leave_for_host(at, packet, passed, AccessLink::ClientIn, Sending::AtOnce);
    }

    /// Moves a packet onto its flow's own link to a sending host that keeps a list of its segments.
    /// The packet enters the link at `at`. (This is a separate copy of the code, so that other
    /// senders do not pay for handling the list.)
    #[inline(never)]
    pub(super) fn leave_for_client_by_segments(&mut self, at: Instant, packet: &mut SimPacket, passed: u8) {
        self.leave_for_host(at, packet, passed, AccessLink::ClientIn, Sending::BySegments);
    }

    /// Moves a packet onto its flow's own link to a host where applications watch the position of
    /// their streams. The packet enters the link at `at`.
    #[inline(never)]
    pub(super) fn leave_for_tracked_host(
        &mut self,
        at: Instant,
        packet: &mut SimPacket,
        passed: u8,
        last: AccessLink,
    ) {
        self.leave_for_host(at, packet, passed, last, Sending::MayWait);
    }

    /// Schedules the packet's arrival at its host or, if nothing else can happen there before then,
    /// processes the packet now, with its arrival time as the current time.
    #[inline(always)]
    fn leave_for_host(
        &mut self,
        at: Instant,
        packet: &mut SimPacket,
        passed: u8,
        last: AccessLink,
        sending: Sending,
    ) {
        let (end, tracked) = (last.end(), sending == Sending::MayWait);
        let FlowId { slot, class, .. } = packet.flow();
        let (generation, flow) = self.in_transit.flows.tenant(slot);
        let class = &mut self.classes[usize::from(class)];
        let passage = flow.own_links().pass(&mut class.serialisers, last, at, packet.wire_len());
        let (due, turn) = passage.expect("the last access link does not lose packets");
        // The packet leaves the queue's link and passes this link, too.
        packet.pass();
        packet.pass();
        let in_time = self.serves_ahead && due <= class.served_until;
        if !(in_time && packet.is_ordinary() && flow.can_be_served_ahead(end, due, tracked)) {
            self.leave_seldom(due, turn, packet, last, Reached { end, passed, sending });
            return;
        }
        if due > self.next_snapshot {
            let [warmup_end, sample] = [Milestone::WarmupEnd, Milestone::SampleFlows];
            let sampled = class.opening.opener.is_list;
            let looks = [warmup_end, sample].map(|next| self.schedule.at(next));
            keep_snapshots(flow, end, due, looks, sampled);
        }
        self.done_as_of = self.done_as_of.max(due);
        if sending == Sending::BySegments && packet.entry().is_some() {
            return self.serve_client_by_segments_with_options(due, packet, passed);
        }
        let mut hosts = hosts!(self, due, None);
        let outcome = hosts.arrive(class, flow, generation, packet, Reached { end, passed, sending });
        if outcome != Served::default() {
            self.conclude(slot, outcome);
        }
    }

    /// Handles the arrival of a segment with options, at `due`, at a sending host that keeps a list of its
    /// segments.
    #[inline(never)]
    fn serve_client_by_segments_with_options(&mut self, due: Instant, packet: &SimPacket, passed: u8) {
        let FlowId { slot, class, .. } = packet.flow();
        let (generation, flow) = self.in_transit.flows.tenant(slot);
        let class = &mut self.classes[usize::from(class)];
        let mut hosts = hosts!(self, due, None);
        hosts.count_arrival(flow, packet, passed);
        let (Some(segment), Some(place)) = (packet.segment(), packet.entry()) else {
            unreachable!("only segments have options")
        };
        let options = hosts.options.take(place);
        let segment = options.complete(segment);
        let endpoint = flow.connection().endpoint(End::Client);
        endpoint.on_segment_with_options(due, &segment, &options.options, class.profile());
        let at = FlowRef { slot, generation };
        let outcome = hosts.serve(class, flow, at, End::Client, None, Sending::BySegments);
        if outcome != Served::default() {
            self.conclude(slot, outcome);
        }
    }

    /// Schedules the arrival of a packet at its host at `due`, unless it can be processed now. Used
    /// for packets and flows that are not in the ordinary state.
    #[inline(never)]
    fn leave_seldom(
        &mut self,
        due: Instant,
        turn: u64,
        packet: &SimPacket,
        last: AccessLink,
        reached: Reached,
    ) {
        let FlowId { slot, class, .. } = packet.flow();
        if self.serves_ahead {
            let in_time = due <= self.classes[usize::from(class)].served_until;
            if in_time && self.can_be_served_after_all(packet, due, &reached) {
                self.keep_for_looks(slot, reached.end, due);
                // This is rare enough to share the code that all other senders use.
                let by_segments = reached.sending == Sending::BySegments;
                let sending = if by_segments { Sending::AtOnce } else { reached.sending };
                return self.at_host(due, packet, Reached { sending, ..reached });
            }
            self.in_transit.flows.of_packet(slot).pending.one_more();
        }
        self.scheduler.arrival_from_own_link(due, last, turn, *packet);
    }

    /// Returns whether a packet can be processed ahead of time after all: either because the host's
    /// timers that precede its arrival have now been fired, or because nothing else changes at the
    /// host, and flows are not observed, before its arrival.
    fn can_be_served_after_all(&mut self, packet: &SimPacket, due: Instant, reached: &Reached) -> bool {
        let (slot, end) = (packet.flow().slot, reached.end);
        let tracked = reached.sending == Sending::MayWait;
        loop {
            let flow = self.in_transit.flows.of_packet(slot);
            // The next observation of flows must see a packet that opens or closes a connection, so
            // such a packet waits for the observation.
            if packet.is_ordinary() && flow.can_be_served_ahead(end, due, tracked)
                || due <= self.next_snapshot && flow.changes_alone(end, due)
            {
                return true;
            }
            let Some(at) = flow.timer_before(end, due) else { return false };
            self.keep_for_looks(slot, end, at);
            self.fire_ahead(slot, end, at);
        }
    }

    /// Lets the timer of a host fire now, ahead of `at`, the instant for which it is set.
    fn fire_ahead(&mut self, slot: u32, end: End, at: Instant) {
        let (generation, flow) = self.in_transit.flows.tenant(slot);
        let class = &mut self.classes[usize::from(flow.id.class)];
        flow.connection().endpoint(end).on_timer(at, class.profile());
        let mut hosts = hosts!(self, at, None);
        let outcome = hosts.serve(class, flow, FlowRef { slot, generation }, end, None, Sending::MayWait);
        self.conclude(slot, outcome);
    }

    /// Saves the state of an endpoint that is about to be processed ahead of time, up to the
    /// instant `at`, if an observation of the endpoint is due earlier than `at`.
    fn keep_for_looks(&mut self, slot: u32, end: End, at: Instant) {
        if at > self.next_snapshot {
            let looks = [Milestone::WarmupEnd, Milestone::SampleFlows].map(|next| self.schedule.at(next));
            let flow = self.in_transit.flows.of_packet(slot);
            let sampled = self.classes[usize::from(flow.id.class)].opening.opener.is_list;
            keep_snapshots(flow, end, at, looks, sampled);
        }
        self.done_as_of = self.done_as_of.max(at);
    }

    /// Processes an endpoint after a change that is not an arrival: a timer has fired, or the
    /// application has acted.
    pub(super) fn serve(&mut self, at: FlowRef, end: End) {
        self.serve_as(at, end, Sending::MayWait);
    }

    /// Processes an endpoint that may now also send the data that it has held back.
    pub(super) fn serve_fully(&mut self, at: FlowRef, end: End) {
        self.serve_as(at, end, Sending::AtOnce);
    }

    fn serve_as(&mut self, at: FlowRef, end: End, sending: Sending) {
        let flow = self.in_transit.flows.of_packet(at.slot);
        let class = &mut self.classes[usize::from(flow.id.class)];
        let mut hosts = hosts!(self, self.now, self.watch.as_deref_mut());
        let outcome = hosts.serve(class, flow, at, end, None, sending);
        self.conclude(at.slot, outcome);
    }

    /// Handles the consequences that processing has outside the flow itself.
    #[cold]
    fn conclude(&mut self, slot: u32, outcome: Served) {
        for (completed, what) in
            [(u32::from(outcome.completed), Completed::Flows), (outcome.answered, Completed::Requests)]
        {
            for _ in 0..completed {
                let class = self.in_transit.flows.of_packet(slot).id.class;
                self.count_completed(class, what);
            }
        }
        // This check comes before the flow's last packets leave: if the first queue drops them,
        // the flow ends with them.
        if outcome.over {
            self.in_transit.flows.look_whether_finished(slot);
        }
        if outcome.to_send {
            self.send_outbox();
        }
        if outcome.answers {
            let (generation, _) = self.in_transit.flows.tenant(slot);
            self.speak(FlowRef { slot, generation });
        }
        self.reap();
    }
}

/// Saves the state of one endpoint of a flow that is about to be processed ahead of time, up to the
/// instant `due`, which is after a pending snapshot: the end of the warm-up, or a sample if the
/// flow is `sampled`.
#[cold]
fn keep_snapshots(
    flow: &mut Flow,
    end: End,
    due: Instant,
    [warmup_ends, next_sample]: [Instant; 2],
    sampled: bool,
) {
    if due > warmup_ends {
        flow.keep_for_warmup(end);
    }
    if sampled && due > next_sample {
        flow.keep_for_sample(end);
    }
}

/// The parts of the world that processing needs in addition to the flow and its class.
struct Hosts<'a, Q: EventQueue> {
    now: Instant,
    scheduler: &'a mut Scheduler<Q>,
    fates: &'a mut Fates,
    options: &'a mut OptionTable,
    outbox: &'a mut Vec<SimPacket>,
    requests: &'a mut Option<Box<RequestRecorder>>,
    /// The watch. In the code for hosts at which nothing is recorded, this is always `None`, which
    /// costs nothing.
    watch: Option<&'a mut Watch>,
}

/// How an endpoint sends its data when it is processed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sending {
    /// The endpoint sends everything that it may send: it has no delay of its own, or its delay is
    /// over.
    AtOnce,
    /// Like [`Sending::AtOnce`], but from a list of segments.
    BySegments,
    /// If the endpoint has a delay of its own, it sends only the data that need not wait for it.
    MayWait,
}

/// The arrival of a packet at the end of its path.
struct Reached {
    end: End,
    /// Number of links that the packet has passed.
    passed: u8,
    /// [`Sending::MayWait`] if there may be a session that must be notified of the arrival.
    sending: Sending,
}

/// What is left to do after processing.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct Served {
    /// Whether the receiver has just received everything.
    completed: bool,
    /// Number of responses that have just reached their client completely.
    answered: u32,
    /// Whether both endpoints have closed.
    over: bool,
    /// Whether the outbox contains packets.
    to_send: bool,
    /// Whether a dialogue may have something to say.
    answers: bool,
}

/// What an application has noticed in its streams.
#[derive(Clone, Copy, Default)]
struct Noticed {
    /// Number of responses that have just reached their client completely.
    answered: u32,
    /// Whether the last data has just arrived although its sender has not closed.
    completed: bool,
}

/// Notes that a receiver has received everything; returns false if this was known already.
#[inline(always)]
fn complete_at(now: Instant, completed: &mut Instant) -> bool {
    let is_new = *completed == Instant::FAR_FUTURE;
    if is_new {
        *completed = now;
    }
    is_new
}

impl<Q: EventQueue> Hosts<'_, Q> {
    /// Handles a packet that reaches its host.
    #[inline(always)]
    fn arrive(
        &mut self,
        class: &mut Class,
        flow: &mut Flow,
        generation: u32,
        packet: &SimPacket,
        Reached { end, passed, sending }: Reached,
    ) -> Served {
        self.count_arrival(flow, packet, passed);
        let Some(segment) = packet.segment() else {
            let answers = flow.datagram_arrives(self.now, end, packet);
            return Served { over: flow.over, answers, ..Served::default() };
        };
        let at = FlowRef { slot: packet.flow().slot, generation };
        match packet.entry() {
            None => self.serve(class, flow, at, end, Some(segment), sending),
            Some(place) => self.reborrow().serve_with_options(class, flow, at, end, segment, place),
        }
    }

    #[inline(always)]
    fn count_arrival(&mut self, flow: &mut Flow, packet: &SimPacket, passed: u8) {
        self.fates.delivered.count(packet.wire_len());
        self.fates.packet_hops += u64::from(passed);
        flow.in_flight -= 1;
    }

    /// Returns a copy to be passed by value to a function that is not inlined, so that the compiler
    /// need not keep the fields of the original in memory.
    #[inline(always)]
    fn reborrow(&mut self) -> Hosts<'_, Q> {
        Hosts {
            now: self.now,
            scheduler: self.scheduler,
            fates: self.fates,
            options: self.options,
            outbox: self.outbox,
            requests: self.requests,
            watch: self.watch.as_deref_mut(),
        }
    }

    /// Does the same as [`Hosts::serve`] for a segment whose options are kept at `place`.
    #[inline(never)]
    fn serve_with_options(
        mut self,
        class: &mut Class,
        flow: &mut Flow,
        at: FlowRef,
        end: End,
        segment: Segment,
        place: u32,
    ) -> Served {
        let options = self.options.take(place);
        let segment = options.complete(segment);
        let Class { tcp: Some(profile), opening, .. } = class else { unreachable!("a class of connections") };
        let id = flow.id;
        let connection = flow.connection();
        if !opening.opener.is_list {
            connection.catch_up(end, self.now, profile);
        }
        let endpoint = connection.endpoint(end);
        endpoint.on_segment_with_options(self.now, &segment, &options.options, profile);
        let noticed = match connection.applications {
            Some(_) => {
                connection.endpoint(end).acknowledge_apart(profile);
                self.reborrow().notify_session(opening, connection, &id, at, end)
            }
            None => Noticed::default(),
        };
        let completed = noticed.completed && complete_at(self.now, &mut flow.completed);
        let served = self.serve(class, flow, at, end, None, Sending::MayWait);
        Served { completed: completed || served.completed, answered: noticed.answered, ..served }
    }

    /// Passes an arriving segment to an endpoint, sends what the
    /// endpoint has to send, handles its events, and updates its timer. With [`Sending::AtOnce`]
    /// and [`Sending::BySegments`], no session needs to be notified.
    #[inline(always)]
    fn serve(
        &mut self,
        class: &mut Class,
        flow: &mut Flow,
        at: FlowRef,
        end: End,
        arrival: Option<Segment>,
        sending: Sending,
    ) -> Served {
        let Class { tcp: Some(profile), serialisers, begins, opening, .. } = class else {
            unreachable!("a class of connections")
        };
        let Flow { id, in_flight, over, completed, access, body: Body::Tcp(connection), .. } = flow else {
            unreachable!("segments and endpoints' timers belong to connections")
        };
        let mut context = SendContext {
            profile,
            serialisers,
            begin: begins[sends_toward(end) as usize],
            id,
            in_flight,
            access,
            sent_out: false,
        };
        let (mut complete, mut answered, mut opened) = (false, 0, false);
        if let Some(arrival) = arrival {
            let noticed = self.receive(profile, opening, connection, id, (at, end), arrival, sending);
            answered = noticed.answered;
            complete = noticed.completed && complete_at(self.now, completed);
        }
        let waits = sending == Sending::MayWait && connection.delays.is_some();
        let way = if waits || sending == Sending::BySegments { sending } else { Sending::AtOnce };
        loop {
            self.send(&mut context, connection.endpoint(end), end, way);
            // The receiving application closes when it is notified that the peer has closed.
            match stream_change(connection.endpoint(end), &mut opened) {
                StreamChange::None => break,
                StreamChange::Over { in_order } => {
                    *over = self.closed(opening, connection, id, end, in_order);
                    break;
                }
                StreamChange::PeerClosed => connection.endpoint(end).close(),
            }
            if end == connection.last {
                complete |= complete_at(self.now, completed);
            }
        }
        if opened && !opening.opener.is_list {
            self.reborrow().notify_population(opening, connection, end, ConnectionEvent::Opened);
        }
        if waits {
            delay_sending(self.scheduler, self.now, connection, id.number, at, end, profile);
        }
        // If the connection is one of many that a class opens, an endpoint that is only waiting for
        // late packets gets no event when that wait is over.
        if sending != Sending::MayWait || opening.opener.is_list || !connection.lets_stragglers_pass(end) {
            self.see_to_timer(connection, id.number, at, end);
        }
        let (over, to_send) = (*over, context.sent_out);
        if let Some(watch) = &mut self.watch {
            watch.served(self.now, flow, end, profile);
        }
        Served { completed: complete, answered, over, to_send, answers: false }
    }

    /// Passes an arriving segment to an endpoint and, with
    /// [`Sending::MayWait`], notifies the session.
    #[inline(always)]
    #[expect(clippy::too_many_arguments, reason = "it is a part of `serve`, which has them")]
    fn receive(
        &mut self,
        profile: &Profile,
        opening: &mut Opening,
        connection: &mut Connection,
        id: &FlowId,
        (at, end): (FlowRef, End),
        segment: Segment,
        sending: Sending,
    ) -> Noticed {
        if sending == Sending::MayWait && !opening.opener.is_list {
            connection.catch_up(end, self.now, profile);
        }
        let endpoint = connection.endpoint(end);
        match sending {
            Sending::BySegments => endpoint.on_segment_by_segments(self.now, &segment, profile),
            _ => endpoint.on_segment(self.now, &segment, profile),
        }
        if sending != Sending::MayWait || connection.applications.is_none() {
            return Noticed::default();
        }
        connection.endpoint(end).acknowledge_apart(profile);
        self.reborrow().notify_session(opening, connection, id, at, end)
    }

    /// Handles an endpoint that has just closed, `in_order` or not. Returns whether the flow is over.
    #[inline(always)]
    fn closed(
        &mut self,
        opening: &mut Opening,
        connection: &mut Connection,
        id: &FlowId,
        end: End,
        in_order: bool,
    ) -> bool {
        if end == End::Client {
            connection.cut_off_request(id.class, Ending::Failed, self.now, self.requests);
        }
        connection.closed[end as usize] = true;
        if opening.opener.is_list {
            return connection.closed == [true; 2];
        }
        let event = if in_order { ConnectionEvent::Closed } else { ConnectionEvent::Failed };
        self.reborrow().notify_population(opening, connection, end, event);
        connection.has_ended(end)
    }

    /// Passes the position of an end's streams to the application at that end.
    #[inline(never)]
    fn notify_session(
        mut self,
        opening: &mut Opening,
        connection: &mut Connection,
        id: &FlowId,
        at: FlowRef,
        end: End,
    ) -> Noticed {
        let position = connection.position(end);
        let mut noticed = Noticed::default();
        loop {
            let Some(applications) = &mut connection.applications else { return noticed };
            let step = applications.session.on_progress(self.now, end, position);
            if let Some(wake_at) = step.wake_at {
                applications.wakes_at = wake_at;
                self.scheduler.timer(wake_at, id.number, FlowObject::Source, Notice::Emit { flow: at });
            }
            if let Some(done) = step.done {
                if applications.session.is_idle() {
                    applications.wakes_at = Instant::ZERO;
                }
                let of = applications.of;
                noticed.answered += u32::from(self.reborrow().exchange_done(opening, id.class, of, done));
                noticed.completed |= step.receiver_closes();
            }
            connection.act(&step);
            if !step.more {
                return noticed;
            }
        }
    }

    /// Records a completed exchange, and returns whether it answers a request.
    fn exchange_done(self, opening: &mut Opening, class: u16, of: Identity, done: ExchangeDone) -> bool {
        let mut answered = false;
        if let Some(requests) = self.requests
            && let Some(exchange) = recorded_exchange(class.into(), of, &done)
        {
            answered = true;
            requests.ended(&exchange, Ending::Completed, self.now);
        }
        opening.notify(self.scheduler, self.requests, self.now, of, ConnectionEvent::ExchangeDone(done));
        answered
    }

    /// Passes the state of a connection, as seen from the client's end, to the population that
    /// opened the connection.
    #[cold]
    fn notify_population(
        self,
        opening: &mut Opening,
        connection: &Connection,
        end: End,
        event: ConnectionEvent,
    ) {
        if let Some(applications) = connection.applications.as_ref().filter(|_| end == End::Client) {
            opening.notify(self.scheduler, self.requests, self.now, applications.of, event);
        }
    }

    /// Sends everything that an endpoint has to send: over its flow's own link, or into the outbox
    /// if there is no such link. If the endpoint may have to wait for its own delay, sends only the
    /// data that need not wait.
    #[inline(always)]
    fn send(&mut self, context: &mut SendContext, endpoint: &mut Endpoint, end: End, way: Sending) {
        let own_link = match end {
            End::Client => AccessLink::ClientOut,
            End::Server => AccessLink::ServerOut,
        };
        while let Some(segment) = match way {
            Sending::MayWait => endpoint.poll_prompt(self.now, context.profile),
            Sending::BySegments => endpoint.poll_transmit_by_segments(self.now, context.profile),
            Sending::AtOnce => endpoint.poll_transmit(self.now, context.profile),
        } {
            let mut packet = SimPacket::tcp(
                *context.id,
                sends_toward(end),
                context.begin,
                &segment,
                context.profile.header,
            );
            let toward = sends_toward(end);
            let number = self.watch.as_mut().and_then(|watch| watch.number(context.id, toward));
            if segment.has_options() {
                let options = endpoint.options(&segment, context.profile);
                packet =
                    packet.with_entry(self.options.put(&segment, &options, number), segment.options_len());
            } else if number.is_some() {
                packet = packet.with_entry(self.options.put(&segment, &Options::NONE, number), 0);
            }
            self.fates.sent.count(packet.wire_len());
            *context.in_flight += 1;
            let mut lost = false;
            match context.access {
                None => {
                    self.outbox.push(packet);
                    context.sent_out = true;
                }
                Some(access) => {
                    if !self.scheduler.over_access(access, context.serialisers, own_link, self.now, packet) {
                        self.fates.lost.count(packet.wire_len());
                        self.options.forget(&packet);
                        *context.in_flight -= 1;
                        lost = true;
                    }
                }
            }
            if let Some(watch) = &mut self.watch {
                watch.sent(self.now, &packet, number, lost);
            }
            if way == Sending::BySegments && endpoint.has_ended_burst() {
                break;
            }
        }
    }

    /// Keeps one valid timer event per endpoint: schedules an event if the deadline is earlier than
    /// the pending event; an event that fires before the deadline is scheduled again.
    #[inline(always)]
    fn see_to_timer(&mut self, connection: &mut Connection, number: u32, at: FlowRef, end: End) {
        let deadline = connection.endpoint(end).deadline().map(|at| at.max(self.now));
        if let Some(deadline) = deadline
            && deadline < connection.armed[end as usize]
        {
            connection.armed[end as usize] = deadline;
            self.scheduler.endpoint_timer(deadline, number, at, end);
        }
    }
}

/// Starts the delay of the data that an endpoint still has to send.
#[inline(never)]
fn delay_sending<Q: EventQueue>(
    scheduler: &mut Scheduler<Q>,
    now: Instant,
    connection: &mut Connection,
    number: u32,
    flow: FlowRef,
    end: End,
    profile: &Profile,
) {
    let Some(delay) = connection.begin_delay(end, profile) else { return };
    let object = match end {
        End::Client => FlowObject::ClientDelay,
        End::Server => FlowObject::ServerDelay,
    };
    scheduler.timer(now + delay, number, object, Notice::SendDelayed { flow, end });
}

/// The parts of a flow and its class that are needed for sending.
struct SendContext<'a> {
    profile: &'a Profile,
    serialisers: &'a mut Serialisers,
    /// Where the packets' path begins.
    begin: Begin,
    id: &'a FlowId,
    in_flight: &'a mut u32,
    access: &'a mut Option<AccessLinks>,
    /// Whether the outbox contains packets.
    sent_out: bool,
}

/// Returns the direction of the packets that an endpoint sends.
#[inline]
const fn sends_toward(end: End) -> Toward {
    match end {
        End::Client => Toward::Receiver,
        End::Server => Toward::Sender,
    }
}

/// Events at an endpoint that concern the flow.
enum StreamChange {
    None,
    /// The other end has sent everything, and all of it has arrived.
    PeerClosed,
    /// The endpoint is closed, for any reason.
    Over {
        /// whether it closed normally, that is, neither by a reset nor for lack of responses
        in_order: bool,
    },
}

#[inline(always)]
fn stream_change(endpoint: &mut Endpoint, opened: &mut bool) -> StreamChange {
    while let Some(event) = endpoint.poll_change() {
        match event {
            StreamEvent::Established => *opened = true,
            StreamEvent::PeerClosed => return StreamChange::PeerClosed,
            StreamEvent::Closed => return StreamChange::Over { in_order: true },
            StreamEvent::Reset | StreamEvent::Aborted => return StreamChange::Over { in_order: false },
            _ => {}
        }
    }
    StreamChange::None
}
