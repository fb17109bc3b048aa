//! Where packets go: the places on all paths of a run, in one table.

use aqmlab_network::{End, Hop, OwnPipe, hops};
use aqmlab_scenario::{ClassPlan, Edge, Plan, Workload};

use crate::access::AccessLink;
use crate::network::{has_edges, is_watched};
use crate::packet::Place;

/// Where a packet goes next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// Into the queue of this link.
    Queue {
        /// index of the link
        link: u32,
        /// where it goes when it has crossed the link
        onward: Onward,
    },
    /// Over one of its flow's own links. When it has come to its host, it will have passed so many links.
    Access(AccessLink, u8),
    /// Over one of its flow's own links, with a stage in front of it that may lose the packet: whether it does is decided
    /// when the packet gets there and not before, so that the books are right at any moment.
    Risk(AccessLink),
    /// To its host at this end of the path, having passed so many links, access links included.
    Host(End, u8),
    /// The same two where applications look how far their streams have come.
    AttendedAccess(AccessLink, u8),
    /// See [`Next::AttendedAccess`].
    AttendedHost(End, u8),
    /// To its host, where something is recorded one by one, or where hosts delay what they send.
    WatchedHost(End, u8),
}

/// How a packet goes on that comes out of a queue's link. A queue's entry says it, so that a packet looks its way up once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Onward {
    /// Its arrival at the next place is an event.
    Arrive,
    /// It enters its flow's own link to the server at once, for that link has no other feeder and cannot drop. At the host
    /// it will have passed so many links.
    ToServer(u8),
    /// The same to the client.
    ToClient(u8),
    /// The same where applications look how far their streams have come.
    ToAttended(AccessLink, u8),
}

const _: () = assert!(size_of::<Next>() == 8, "an entry is a word");

impl Onward {
    /// Where hops are fused: how a packet enters the place `next`, the one behind a queue.
    fn fused(next: Next) -> Self {
        match next {
            Next::Access(AccessLink::ServerIn, passed) => Onward::ToServer(passed),
            Next::Access(_, passed) => Onward::ToClient(passed),
            Next::AttendedAccess(link, passed) => Onward::ToAttended(link, passed),
            _ => Onward::Arrive,
        }
    }
}

/// The places of all paths one after the other. Classes that take the same way share it.
#[derive(Default)]
pub struct Routes {
    places: Vec<Next>,
    /// For each place, how many links a packet has passed that comes there, access links included.
    passed: Vec<u8>,
}

impl Routes {
    /// The paths of a plan, and where each class's begin: toward the receiver, toward the sender. Packets enter the last
    /// links of their paths without an event if hops are `fused`. `None` if the paths have more places than packets can name.
    pub fn new(plan: &Plan, fused: bool) -> Option<(Self, Vec<[Place; 2]>)> {
        let mut routes = Routes::default();
        let add = |(i, class): (usize, &ClassPlan)| {
            let attended = matches!(class.workload, Workload::Sessions { .. });
            let (access, host): (fn(_, _) -> _, fn(_, _) -> _) = match attended {
                _ if is_watched(plan, i) || class.delays_sending() => (Next::Access, Next::WatchedHost),
                true => (Next::AttendedAccess, Next::AttendedHost),
                false => (Next::Access, Next::Host),
            };
            let last = [0, 1].map(|direction| match plan.delay_stage(i, direction, Edge::Exit) {
                Some(stage) if stage.loses() => |link, _| Next::Risk(link),
                _ => access,
            });
            let onward = if fused { Onward::fused } else { |_| Onward::Arrive };
            let own = |links: [AccessLink; 2]| has_edges(plan, i).then_some(links);
            let there = own([AccessLink::ClientOut, AccessLink::ServerIn]);
            let back = own([AccessLink::ServerOut, AccessLink::ClientIn]);
            Some([
                routes.add(&hops(plan, i, 0), there, last[0], |passed| host(End::Server, passed), onward)?,
                routes.add(&hops(plan, i, 1), back, last[1], |passed| host(End::Client, passed), onward)?,
            ])
        };
        let begins = plan.classes.iter().enumerate().map(add).collect::<Option<_>>()?;
        Some((routes, begins))
    }

    /// Adds the path over these hops, of which those at the edges are two links of the flow's own if anything lies there;
    /// `into_last` is how packets meet the second, and `onward` how they go on behind a queue, into what follows it.
    fn add(
        &mut self,
        hops: &[Hop],
        own: Option<[AccessLink; 2]>,
        into_last: fn(AccessLink, u8) -> Next,
        host: impl FnOnce(u8) -> Next,
        onward: fn(Next) -> Onward,
    ) -> Option<Place> {
        let links = hops.iter().map(|hop| hop.links()).sum();
        let queues = hops.iter().filter_map(|hop| match hop {
            Hop::Queue(link) => Some(Next::Queue { link: *link as u32, onward: Onward::Arrive }),
            Hop::Own(_) => None,
        });
        let [first, last] = own.map_or([None, None], |own| own.map(Some));
        let enters = first.map(|link| Next::Access(link, links));
        let leaves = last.map(|link| into_last(link, links));
        let mut path: Vec<Next> =
            enters.into_iter().chain(queues).chain(leaves).chain([host(links)]).collect();
        for place in 1..path.len() {
            let next = path[place];
            if let Next::Queue { onward: of, .. } = &mut path[place - 1] {
                *of = onward(next);
            }
        }
        // Is what stands first a link?
        let first = own.is_none() || matches!(hops.first(), Some(Hop::Own(OwnPipe::Access(..))));
        // A path ends with its host, so what looks like a path begins and ends like one too, except that one
        // path may be the end of another.
        let passed = |n: usize| (if first { n } else { n.saturating_sub(1) }) as u8;
        let same =
            |begin: usize| self.passed[begin..][..path.len()].iter().copied().eq((0..path.len()).map(passed));
        let known =
            self.places.windows(path.len()).enumerate().position(|(begin, w)| w == path && same(begin));
        let begin = known.unwrap_or_else(|| {
            self.passed.extend((0..path.len()).map(passed));
            self.places.extend(&path);
            self.places.len() - path.len()
        });
        (self.places.len() <= usize::from(Place::MAX)).then_some(begin as Place)
    }

    /// Where a packet at `place` goes.
    #[inline]
    pub fn next(&self, place: Place) -> Next {
        self.places[usize::from(place)]
    }

    /// How many links a packet has passed that has come to `place`.
    #[inline]
    pub fn passed(&self, place: Place) -> u8 {
        self.passed[usize::from(place)]
    }
}
