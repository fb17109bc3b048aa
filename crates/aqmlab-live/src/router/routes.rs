//! Routes of frames: the steps of all paths of a plan, in one table.

use aqmlab_network::{End, Hop, OwnPipe, hops};
use aqmlab_scenario::Plan;
use aqmlab_units::Span;

use crate::addresses::HostId;

/// Next step of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Into a pipe of the frame's row; the number is the pipe's index among the pipes of the class.
    Own(u8),
    /// Into the queue of this link.
    Queue(u16),
    /// Out of the network.
    Leave,
}

/// The paths of all classes, one after the other.
pub struct Routes {
    steps: Vec<Step>,
    /// For each step, the number of links that a frame has passed when it arrives there, access links
    /// included.
    passed: Vec<u8>,
    /// First step of each host's path, by the host's number.
    begins: Vec<u16>,
    /// For each class, the pipes of every row, in the order in which a frame may meet them.
    pipes: Vec<Vec<OwnPipe>>,
}

impl Routes {
    /// Returns the routes of `plan`; `None` if they have too many steps for a `u16`, the type of a frame's
    /// place.
    pub fn new(plan: &Plan) -> Option<Self> {
        let mut routes = Routes { steps: vec![], passed: vec![], begins: vec![], pipes: vec![] };
        for class in 0..plan.classes.len() {
            let mut pipes = Vec::new();
            for side in End::ALL {
                routes.begins.push(u16::try_from(routes.steps.len()).ok()?);
                routes.add(plan, HostId { class, side }, &mut pipes);
            }
            routes.pipes.push(pipes);
        }
        u16::try_from(routes.steps.len()).ok()?;
        Some(routes)
    }

    fn add(&mut self, plan: &Plan, from: HostId, pipes: &mut Vec<OwnPipe>) {
        let mut passed = 0;
        let mut step = |step, links| {
            self.steps.push(step);
            self.passed.push(passed);
            passed += links;
        };
        for hop in hops(plan, from.class, from.side as usize) {
            match hop {
                Hop::Queue(link) => step(Step::Queue(link as u16), hop.links()),
                Hop::Own(pipe) => {
                    step(Step::Own(pipes.len() as u8), hop.links());
                    pipes.push(pipe);
                }
            }
        }
        step(Step::Leave, 0);
    }

    /// Returns the first place on a host's path.
    pub fn begin(&self, host: HostId) -> u16 {
        self.begins[host.number()]
    }

    /// Returns the next step of a frame at `place`. The next place on the frame's path is `place + 1`.
    #[inline]
    pub fn step(&self, place: u16) -> Step {
        self.steps[usize::from(place)]
    }

    /// Returns the number of links that a frame at `place` has passed.
    #[inline]
    pub fn passed(&self, place: u16) -> u8 {
        self.passed[usize::from(place)]
    }

    /// Returns the shortest time that a frame still needs to leave the network after any event
    /// inside it (when the frame comes out of a queue, or out of a pipe that is not its last).
    /// `own` returns the smallest delay of a class's n-th pipe, and `link` returns the delay of a
    /// link.
    pub fn least_ahead(&self, own: impl Fn(usize, u8) -> Span, link: impl Fn(usize) -> Span) -> Span {
        let mut least = Span::MAX;
        for (number, &begin) in self.begins.iter().enumerate() {
            let end = self.begins.get(number + 1).map_or(self.steps.len(), |&next| usize::from(next));
            let mut ahead = Span::ZERO;
            for &step in self.steps[usize::from(begin)..end].iter().rev() {
                match step {
                    Step::Leave => continue,
                    Step::Own(which) => ahead += own(HostId::of_number(number).class, which),
                    Step::Queue(of) => ahead += link(usize::from(of)),
                }
                least = least.min(ahead);
            }
        }
        least
    }

    /// Returns the shortest round-trip time between client and server, over all classes, without
    /// queueing. `own` and `link` have the same meaning as for [`Routes::least_ahead`].
    pub fn least_round_trip(&self, own: impl Fn(usize, u8) -> Span, link: impl Fn(usize) -> Span) -> Span {
        let of_host = |number: usize| {
            let begin = usize::from(self.begins[number]);
            let steps = self.steps[begin..].iter().take_while(|&&step| step != Step::Leave);
            steps.fold(Span::ZERO, |sum, step| match *step {
                Step::Own(which) => sum + own(HostId::of_number(number).class, which),
                Step::Queue(of) => sum + link(usize::from(of)),
                Step::Leave => sum,
            })
        };
        let classes = 0..self.pipes.len();
        let one_way = |class, side| of_host(HostId { class, side }.number());
        let round_trip = |class| one_way(class, End::Client) + one_way(class, End::Server);
        classes.map(round_trip).min().unwrap_or(Span::ZERO)
    }

    /// Returns whether a frame leaves the network after the n-th pipe of its row.
    pub fn is_last(&self, class: usize, which: u8) -> bool {
        let begin = usize::from(self.begin(HostId { class, side: End::Client }));
        let place = self.steps[begin..].iter().position(|&step| step == Step::Own(which));
        place.is_some_and(|place| self.steps[begin + place + 1] == Step::Leave)
    }

    /// Returns the pipes that each row of a class has.
    pub fn pipes(&self, class: usize) -> &[OwnPipe] {
        &self.pipes[class]
    }
}
