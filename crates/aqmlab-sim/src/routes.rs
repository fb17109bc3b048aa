//! Routes: the places on all paths of a run, in one table.

use aqmlab_network::{End, Hop, OwnPipe, hops};
use aqmlab_scenario::{Carries, DelayPlan, Edge, LinkPlan, Plan, StagePlace};

use crate::access::AccessLink;
use crate::network::has_edges;
use crate::packet::Place;

/// The next step of a packet on its path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// Into the queue of this link.
    Queue {
        /// index of the link
        link: u32,
        /// the step after the link
        onward: Onward,
    },
    /// Over one of the flow's own links.
    Access {
        /// name of the link
        link: AccessLink,
        /// number of links that the packet will have passed on arrival at its host
        passed: u8,
        /// whether a stage in front of the link may lose the packet; the loss is decided when the packet
        /// arrives there and not before, so that the books are right at any moment
        loses: bool,
        /// how the host receives the packet, if it is the next place
        reception: Reception,
    },
    /// Through a delay stage in a router: the one with this number on the packet's path.
    Stage {
        /// number, from 0
        number: u8,
        /// whether the stage may lose the packet; the loss is decided when the packet arrives there
        loses: bool,
    },
    /// To the packet's host.
    Host {
        /// end of the path
        end: End,
        /// number of links that the packet has passed, including access links
        passed: u8,
        /// how the host receives the packet
        reception: Reception,
    },
    /// To the router at the end of this link, where the packet's reception is recorded.
    FarEnd(u32),
}

/// How hosts receive the packets of a class. Each kind has its own code, so that the most frequent one pays for
/// no other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reception {
    /// By endpoints or packet sinks alone.
    Plain,
    /// By endpoints whose applications watch the position of their streams.
    Tracked,
    /// By a client whose endpoint has code of its own for what it sends
    /// ([`Profile::lists_segments`](aqmlab_transport::Profile::lists_segments)).
    BySegments,
    /// By hosts at which individual events are recorded, or which delay what they send.
    Watched,
    /// By hosts whose arrivals a controller of a shaper hears of.
    Reported,
}

/// What is recorded on the way of packets.
pub struct Recorded<'a> {
    /// Whether individual events are recorded at the hosts of the class with this number, or its
    /// packets are numbered.
    pub classes: &'a dyn Fn(usize) -> bool,
    /// Whether the receptions of packets at the end of the link with this number are recorded.
    pub links: &'a dyn Fn(u32) -> bool,
}

/// The next step of a packet that has left a queue and its link. It is stored with the queue's
/// place, so a packet looks up its path only once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Onward {
    /// The arrival of the packet at the next place is an event.
    Arrive,
    /// The packet enters its flow's own link to the server immediately, because that link has no
    /// other feeder and cannot drop it. On arrival at its host, the packet will have passed this
    /// many links.
    ToServer(u8),
    /// Like [`Onward::ToServer`], but to the client.
    ToClient(u8),
    /// Like [`Onward::ToClient`], but for a client that keeps a list of its segments.
    ToBySegments(u8),
    /// Like [`Onward::ToServer`] or [`Onward::ToClient`], but for connections whose applications
    /// watch the position of their streams.
    ToTracked(AccessLink, u8),
    /// The packet enters the delay stage with this number immediately, because its flow's passage
    /// through the stage has no other feeder and cannot drop it.
    ToStage(u8),
    /// The packet enters the next queue immediately, because that queue looks ahead and is fed by
    /// this link only.
    ToQueue,
}

const _: () = assert!(size_of::<Next>() == 8, "an entry is one word");

impl Onward {
    /// Returns how, with fused hops, a packet that leaves a queue enters its next place, `next`.
    fn fused(next: Next, joined: impl Fn(u32) -> bool) -> Self {
        match next {
            Next::Access { link, passed, loses: false, reception } => match (reception, link) {
                (Reception::Reported, _) => Onward::Arrive,
                (Reception::Tracked, _) => Onward::ToTracked(link, passed),
                (_, AccessLink::ServerIn) => Onward::ToServer(passed),
                (Reception::BySegments, _) => Onward::ToBySegments(passed),
                (Reception::Plain | Reception::Watched, _) => Onward::ToClient(passed),
            },
            Next::Stage { number, loses: false } => Onward::ToStage(number),
            Next::Queue { link, .. } if joined(link) => Onward::ToQueue,
            _ => Onward::Arrive,
        }
    }
}

/// The places of all paths, one path after another. Classes with the same path share its places.
#[derive(Default)]
pub struct Routes {
    places: Vec<Next>,
    /// For each place, the number of links that a packet has passed on arrival there, including access links.
    passed: Vec<u8>,
}

impl Routes {
    /// Creates the paths of a plan. Also returns where the paths of each class begin: toward the
    /// receiver, and toward the sender. If hops are `fused`, no event is needed for packets to
    /// enter the last links of their paths, delay stages, and those links that satisfy `joinable`
    /// and that only one other link feeds. Returns `None` if there are more places than a
    /// [`Place`] can represent.
    pub fn new(
        plan: &Plan,
        fused: bool,
        joinable: impl Fn(u32) -> bool,
        recorded: &Recorded<'_>,
    ) -> Option<(Self, Vec<[Place; 2]>)> {
        let of_class = |class| [0, 1].map(|direction| path(plan, class, direction, recorded));
        let mut paths: Vec<_> = (0..plan.classes.len()).flat_map(of_class).collect();
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

    /// Adds a path, with the number of links that packets have passed at each of its places, and
    /// returns its beginning.
    fn add(&mut self, path: &[Next], passed: &[u8]) -> Option<Place> {
        // A path ends with its host, so a matching sequence of places is either a whole path or the
        // end of a longer one.
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

    /// Returns where a packet at `place` goes next.
    #[inline]
    pub fn next(&self, place: Place) -> Next {
        self.places[usize::from(place)]
    }

    /// Returns the number of links that a packet at `place` has passed.
    #[inline]
    pub fn passed(&self, place: Place) -> u8 {
        self.passed[usize::from(place)]
    }
}

/// Returns how the hosts of class number `class`, at which events may be `recorded`, receive packets.
fn reception(plan: &Plan, class: usize, recorded: bool) -> Reception {
    let is_of = |link: &LinkPlan| link.autorate.as_ref().is_some_and(|of| *of.reflector == class);
    if plan.links.iter().any(is_of) {
        return Reception::Reported;
    }
    let class = &plan.classes[class];
    let lists = class.traffic.tcp().is_some_and(|tcp| tcp.lists_segments());
    match class.traffic.carries() {
        _ if recorded || class.delays_sending() => Reception::Watched,
        Carries::Sessions(_) => Reception::Tracked,
        _ if lists => Reception::BySegments,
        _ => Reception::Plain,
    }
}

/// Returns, for each of `links` links, whether all packets in its queue come from the same other
/// link.
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

/// Returns the places on the path of class number `class` in a direction, and the number of links
/// passed on arrival at each. If there are access links, or delay stages at the edges, the path
/// begins with a link of the flow's own, and has another one in front of the host.
fn path(plan: &Plan, class: usize, direction: usize, recorded: &Recorded<'_>) -> (Vec<Next>, Vec<u8>) {
    let reception = reception(plan, class, (recorded.classes)(class));
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
        let (passed, loses, reception) = (links, false, Reception::Plain);
        add(Next::Access { link: first, passed, loses, reception }, u8::from(linked));
    }
    let mut stages = 0;
    for hop in &hops {
        match *hop {
            Hop::Queue(link) => {
                let link = link as u32;
                add(Next::Queue { link, onward: Onward::Arrive }, 1);
                if (recorded.links)(link) {
                    add(Next::FarEnd(link), 0);
                }
            }
            Hop::Own(OwnPipe::Stage(_, place @ StagePlace::Router(_))) => {
                add(Next::Stage { number: stages, loses: loses(place) }, 0);
                stages += 1;
            }
            Hop::Own(_) => {} // at an edge
        }
    }
    if has_edges {
        let linked = matches!(hops.last(), Some(Hop::Own(OwnPipe::Access(..))));
        let loses = loses(StagePlace::Edge(Edge::Exit));
        add(Next::Access { link: last, passed: links, loses, reception }, u8::from(linked));
    }
    // An arrival that is an event is rare enough to share the code that all other senders use.
    let reception = if reception == Reception::BySegments { Reception::Plain } else { reception };
    add(Next::Host { end, passed: links, reception }, 0);
    (path, passed)
}

/// Lets packets enter the place after a queue without an event if that place has no other feeder
/// and cannot drop them, or if it is a link that is `joined` to the link in front of it.
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
        let reception = Reception::Plain;
        let host = Next::Host { end: End::Server, passed: 3, reception };
        let access = Next::Access { link: AccessLink::ClientOut, passed: 2, loses: false, reception };
        let paths: [&[Next]; 4] = [
            &[queue(0), queue(1), queue(2), queue(3), host],
            &[queue(4), queue(2), queue(3), host],
            &[queue(1), stage, queue(5), host],
            &[access, queue(6), queue(7), host],
        ];
        // Link 1 also gets packets from a host, link 2 gets them from two links, and link 5 from a
        // delay stage.
        let fed = [false, false, false, true, false, false, false, true];
        assert_eq!(fed_by_one_link(8, paths.into_iter()), fed);
    }
}
