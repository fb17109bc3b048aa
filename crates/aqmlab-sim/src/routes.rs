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
    /// It enters the queue that follows at once, for that has no other feeder than this link and looks ahead.
    ToQueue,
}

const _: () = assert!(size_of::<Next>() == 8, "an entry is a word");

impl Onward {
    /// Where hops are fused: how a packet enters the place `next`, the one behind a queue.
    fn fused(next: Next, joined: impl Fn(u32) -> bool) -> Self {
        match next {
            Next::Access(AccessLink::ServerIn, passed) => Onward::ToServer(passed),
            Next::Access(_, passed) => Onward::ToClient(passed),
            Next::AttendedAccess(link, passed) => Onward::ToAttended(link, passed),
            Next::Stage { number, loses: false } => Onward::ToStage(number),
            Next::Queue { link, .. } if joined(link) => Onward::ToQueue,
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
    /// The paths of a plan, and where each class's begin: toward the receiver, toward the sender. If hops are `fused`, packets
    /// enter without an event the last links of their paths, delay stages, and those links in `joinable` that only one other
    /// link feeds. `None` if the paths have more places than packets can name.
    pub fn new(plan: &Plan, fused: bool, joinable: impl Fn(u32) -> bool) -> Option<(Self, Vec<[Place; 2]>)> {
        let mut paths: Vec<_> = (0..plan.classes.len())
            .flat_map(|class| [0, 1].map(|direction| path(plan, class, direction, &arrival(plan, class))))
            .collect();
        if fused {
            let fed = fed_by_one_link(plan.links.len(), paths.iter().map(|(path, _)| &path[..]));
            let joined = |link: u32| fed[link as usize] && joinable(link);
            paths.iter_mut().for_each(|(path, _)| fuse(path, joined));
        }
        let mut routes = Routes::default();
        let begins = paths.iter().map(|(path, passed)| routes.add(path, passed));
        let begins: Vec<Place> = begins.collect::<Option<_>>()?;
        Some((routes, begins.as_chunks().0.to_vec()))
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

/// How the packets of class number `class` come to their hosts.
fn arrival(plan: &Plan, class: usize) -> LastPlaces {
    let ClassPlan { workload, .. } = &plan.classes[class];
    if is_watched(plan, class) || plan.classes[class].delays_sending() {
        return LastPlaces { access: Next::Access, host: Next::WatchedHost };
    }
    match workload {
        Workload::Sessions { .. } => LastPlaces { access: Next::AttendedAccess, host: Next::AttendedHost },
        _ => LastPlaces { access: Next::Access, host: Next::Host },
    }
}

/// For each of `links` links, whether all packets come to its queue from one other link, and from nowhere else.
fn fed_by_one_link<'a>(links: usize, paths: impl Iterator<Item = &'a [Next]>) -> Vec<bool> {
    #[derive(Clone, Copy, PartialEq)]
    enum Feeder {
        Nobody,
        Link(u32),
        Others,
    }
    let mut feeders = vec![Feeder::Nobody; links];
    for path in paths {
        let mut feeder = Feeder::Others;
        for place in path {
            if let Next::Queue { link, .. } = *place {
                let known = &mut feeders[link as usize];
                *known = if *known == Feeder::Nobody || *known == feeder { feeder } else { Feeder::Others };
            }
            feeder = match *place {
                Next::Queue { link, .. } => Feeder::Link(link),
                _ => Feeder::Others,
            };
        }
    }
    feeders.iter().map(|feeder| matches!(feeder, Feeder::Link(_))).collect()
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

/// Packets enter what follows a queue without an event, where that has no other feeder and cannot drop, or is one of the
/// links that are `joined` to the one that feeds them.
fn fuse(path: &mut [Next], joined: impl Fn(u32) -> bool + Copy) {
    for place in 1..path.len() {
        let next = path[place];
        if let Next::Queue { onward, .. } = &mut path[place - 1] {
            *onward = Onward::fused(next, joined);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_is_fed_by_one_link_if_all_paths_come_from_there() {
        let queue = |link| Next::Queue { link, onward: Onward::Arrive };
        let stage = Next::Stage { number: 0, loses: false };
        let host = Next::Host(End::Server, 3);
        let paths: [&[Next]; 4] = [
            &[queue(0), queue(1), queue(2), queue(3), host],
            &[queue(4), queue(2), queue(3), host],
            &[queue(1), stage, queue(5), host],
            &[Next::Access(AccessLink::ClientOut, 2), queue(6), queue(7), host],
        ];
        // Link 1 gets packets from a host, too; link 2 from two links; link 5 from a delay stage.
        let fed = [false, false, false, true, false, false, false, true];
        assert_eq!(fed_by_one_link(8, paths.into_iter()), fed);
    }
}
