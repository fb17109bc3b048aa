//! Where packets go: the places on all paths of a run, in one table.

use aqmlab_network::{End, Hop, OwnPipe, hops};
use aqmlab_scenario::{ClassPlan, DelayPlan, Edge, Plan, StagePlace, Workload};

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
    /// Through the delay stage of this number on its way, which stands in a router.
    Stage {
        /// the first is 0
        number: u8,
        /// whether it may lose the packet, which is decided when it gets there
        loses: bool,
    },
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
    /// It enters the delay stage of this number at once, for its flow's passage has no other feeder and cannot drop.
    ToStage(u8),
}

const _: () = assert!(size_of::<Next>() == 8, "an entry is a word");

impl Onward {
    /// Where hops are fused: how a packet enters the place `next`, the one behind a queue.
    fn fused(next: Next) -> Self {
        match next {
            Next::Access(AccessLink::ServerIn, passed) => Onward::ToServer(passed),
            Next::Access(_, passed) => Onward::ToClient(passed),
            Next::AttendedAccess(link, passed) => Onward::ToAttended(link, passed),
            Next::Stage { number, loses: false } => Onward::ToStage(number),
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
            let arrival = match attended {
                _ if is_watched(plan, i) || class.delays_sending() => {
                    LastPlaces { access: Next::Access, host: Next::WatchedHost }
                }
                true => LastPlaces { access: Next::AttendedAccess, host: Next::AttendedHost },
                false => LastPlaces { access: Next::Access, host: Next::Host },
            };
            let mut way = |direction| {
                let (mut path, passed) = path(plan, i, direction, &arrival);
                if fused {
                    fuse(&mut path);
                }
                routes.add(&path, &passed)
            };
            Some([way(0)?, way(1)?])
        };
        let begins = plan.classes.iter().enumerate().map(add).collect::<Option<_>>()?;
        Some((routes, begins))
    }

    /// Adds a path, on which packets have passed so many links at each place. Where it begins.
    fn add(&mut self, path: &[Next], passed: &[u8]) -> Option<Place> {
        // A path ends with its host, so what looks like a path begins and ends like one too, except that one
        // path may be the end of another.
        let same = |begin: usize| self.passed[begin..][..path.len()] == *passed;
        let known =
            self.places.windows(path.len()).enumerate().position(|(begin, w)| w == path && same(begin));
        let begin = known.unwrap_or_else(|| {
            self.passed.extend(passed);
            self.places.extend(path);
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

/// The last places on paths.
struct LastPlaces {
    /// The flow's own link, where it cannot lose packets.
    access: fn(AccessLink, u8) -> Next,
    host: fn(End, u8) -> Next,
}

/// The places on the path of class number `class` in a direction, and how many links a packet has passed that comes to each.
/// What lies at the edges is two links of the flow's own, if anything does.
fn path(plan: &Plan, class: usize, direction: usize, arrival: &LastPlaces) -> (Vec<Next>, Vec<u8>) {
    let hops = hops(plan, class, direction);
    let links = hops.iter().map(|hop| hop.links()).sum();
    let loses = |place| plan.delay_stage(class, direction, place).is_some_and(DelayPlan::loses);
    let (first, last, end) = match direction {
        0 => (AccessLink::ClientOut, AccessLink::ServerIn, End::Server),
        _ => (AccessLink::ServerOut, AccessLink::ClientIn, End::Client),
    };
    let has_edges = has_edges(plan, class);
    let (mut path, mut passed) = (Vec::new(), Vec::new());
    let mut links_passed = 0;
    let mut add = |next, links| {
        path.push(next);
        passed.push(links_passed);
        links_passed += links;
    };
    if has_edges {
        let linked = matches!(hops.first(), Some(Hop::Own(OwnPipe::Access(..))));
        add(Next::Access(first, links), u8::from(linked));
    }
    let mut stages = 0;
    for hop in &hops {
        match *hop {
            Hop::Queue(link) => add(Next::Queue { link: link as u32, onward: Onward::Arrive }, 1),
            Hop::Own(OwnPipe::Stage(_, place @ StagePlace::Router(_))) => {
                add(Next::Stage { number: stages, loses: loses(place) }, 0);
                stages += 1;
            }
            Hop::Own(_) => {} // at an edge
        }
    }
    if has_edges {
        let linked = matches!(hops.last(), Some(Hop::Own(OwnPipe::Access(..))));
        let into_last =
            if loses(StagePlace::Edge(Edge::Exit)) { |link, _| Next::Risk(link) } else { arrival.access };
        add(into_last(last, links), u8::from(linked));
    }
    add((arrival.host)(end, links), 0);
    (path, passed)
}

/// Packets enter what follows a queue without an event, where that has no other feeder and cannot drop.
fn fuse(path: &mut [Next]) {
    for place in 1..path.len() {
        let next = path[place];
        if let Next::Queue { onward, .. } = &mut path[place - 1] {
            *onward = Onward::fused(next);
        }
    }
}
