//! Hierarchical token buckets: which leaf of a tree of classes sends next (Devera 2002, "Hierarchical token bucket
//! theory").

use alloc::vec::Vec;

use aqmlab_units::{Instant, Span};

use super::TokenBucket;

/// Levels of a tree; leaves are at level 0, the classes at the root at the last one.
pub const LEVELS: usize = 8;
/// Priorities of leaves; 0 is served first.
pub const PRIORITIES: usize = 8;

/// A class of the tree.
#[derive(Clone, Copy, Debug)]
pub struct HtbClass {
    /// The class whose unused rate this one may borrow: the number of an earlier or later class.
    pub parent: Option<u16>,
    /// The bucket of its own rate.
    pub rate: TokenBucket,
    /// The bucket of the rate that it never exceeds.
    pub ceil: TokenBucket,
    /// The priority of a leaf.
    pub prio: u8,
    /// Bytes that a leaf sends before the next leaf of its priority has its turn.
    pub quantum: i64,
}

/// What a class may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    /// It has reached its ceiling.
    CannotSend,
    /// It has used up its own rate, and sends as far as its parent may.
    MayBorrow,
    CanSend,
}

#[derive(Clone, Debug)]
struct Node {
    class: HtbClass,
    level: u8,
    mode: Mode,
    /// Priorities, one bit each, in which the class or one below it has something to send.
    active: u8,
    /// Bytes that a leaf may still send in its turn, by the level at which it is served.
    deficit: [i64; LEVELS],
}

/// Classes that take turns, and the one whose turn it is.
#[derive(Clone, Debug)]
struct Turns {
    /// In ascending order.
    members: Vec<u16>,
    /// The first member from this number on is next; after the last one, the first.
    next: Option<u16>,
}

impl Turns {
    fn from(&self, class: u16) -> Option<u16> {
        self.members.get(self.members.partition_point(|member| *member < class)).copied()
    }

    fn insert(&mut self, class: u16) {
        let place = self.members.partition_point(|member| *member < class);
        if self.members.get(place) != Some(&class) {
            self.members.insert(place, class);
        }
    }

    fn remove(&mut self, class: u16) {
        self.members.retain(|member| *member != class);
    }

    fn advance(&mut self) {
        self.next = self.next.and_then(|class| self.from(class + 1));
    }
}

/// A leaf that may send, and the level of the class from which it borrows (0: none).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HtbTurn {
    /// The number of the leaf among all classes.
    pub class: usize,
    level: u8,
}

/// The state of a tree of classes.
///
/// Leaves that have something to send and rate of their own take turns by deficit round robin, the leaves of a lower
/// priority number first. Only if there are none do leaves send that borrow from their parents, and so on upwards;
/// the leaves that borrow from the same class take turns as well. A packet is charged to the class whose
/// rate it uses and to all classes above it, and counts for the ceilings of all classes from the leaf upwards.
#[derive(Clone, Debug)]
pub struct HtbLaw {
    nodes: Vec<Node>,
    /// By level and priority, the classes that can send without borrowing; after them, by class and priority, the
    /// classes that borrow from it.
    turns: Vec<Turns>,
    /// By level, the classes that cannot send without borrowing and when they can do more than now, the
    /// first at the end.
    waits: [Vec<(Instant, u16)>; LEVELS],
    /// Places in `turns` from a level down to a leaf.
    path: Vec<usize>,
}

impl HtbLaw {
    /// Creates a tree in which no class has anything to send. No class may be its own ancestor.
    pub fn new(classes: &[HtbClass]) -> Self {
        let is_parent = |number: usize| classes.iter().any(|class| class.parent == Some(number as u16));
        let parent = |number: &u16| classes[usize::from(*number)].parent;
        let depth =
            |class: &HtbClass| core::iter::successors(class.parent, parent).take(classes.len()).count();
        let node = |(number, class): (usize, &HtbClass)| Node {
            class: *class,
            level: if is_parent(number) { (LEVELS - 1 - depth(class)) as u8 } else { 0 },
            mode: Mode::CanSend,
            active: 0,
            deficit: [0; LEVELS],
        };
        let nodes: Vec<Node> = classes.iter().enumerate().map(node).collect();
        let turns = |_| Turns { members: Vec::with_capacity(classes.len()), next: None };
        HtbLaw {
            turns: (0..(LEVELS + classes.len()) * PRIORITIES).map(turns).collect(),
            waits: core::array::from_fn(|_| Vec::with_capacity(classes.len())),
            path: Vec::with_capacity(LEVELS),
            nodes,
        }
    }

    const fn row(level: usize, prio: usize) -> usize {
        level * PRIORITIES + prio
    }

    const fn borrowers(class: u16, prio: usize) -> usize {
        (LEVELS + class as usize) * PRIORITIES + prio
    }

    /// Records that a leaf has something to send.
    pub fn activate(&mut self, leaf: usize) {
        let node = &mut self.nodes[leaf];
        if node.active == 0 {
            node.active = 1 << node.class.prio;
            self.enter(leaf as u16);
        }
    }

    /// Records that a leaf has nothing to send.
    pub fn deactivate(&mut self, leaf: usize) {
        if self.nodes[leaf].active != 0 {
            self.leave(leaf as u16);
            self.nodes[leaf].active = 0;
        }
    }

    /// Lets a class take turns, with those above it from which it borrows.
    fn enter(&mut self, mut class: u16) {
        let mut prios = self.nodes[usize::from(class)].active;
        loop {
            let node = &self.nodes[usize::from(class)];
            let (mode, level) = (node.mode, usize::from(node.level));
            match (mode, node.class.parent) {
                (Mode::CanSend, _) => {
                    for prio in bits(prios) {
                        self.turns[Self::row(level, prio)].insert(class);
                    }
                    return;
                }
                (Mode::MayBorrow, Some(parent)) if prios != 0 => {
                    for prio in bits(prios) {
                        let turns = &mut self.turns[Self::borrowers(parent, prio)];
                        // Where others borrow already, the classes above take turns already.
                        if !turns.members.is_empty() {
                            prios &= !(1 << prio);
                        }
                        turns.insert(class);
                    }
                    self.nodes[usize::from(parent)].active |= prios;
                    class = parent;
                }
                _ => return,
            }
        }
    }

    /// Undoes [`HtbLaw::enter`].
    fn leave(&mut self, mut class: u16) {
        let mut prios = self.nodes[usize::from(class)].active;
        loop {
            let node = &self.nodes[usize::from(class)];
            let (mode, level) = (node.mode, usize::from(node.level));
            match (mode, node.class.parent) {
                (Mode::CanSend, _) => {
                    for prio in bits(prios) {
                        let turns = &mut self.turns[Self::row(level, prio)];
                        if turns.next == Some(class) {
                            turns.advance();
                        }
                        turns.remove(class);
                    }
                    return;
                }
                (Mode::MayBorrow, Some(parent)) if prios != 0 => {
                    for prio in bits(prios) {
                        // If it is this class's turn, the turn passes to the next one, unless the class returns before.
                        let turns = &mut self.turns[Self::borrowers(parent, prio)];
                        turns.remove(class);
                        if !turns.members.is_empty() {
                            prios &= !(1 << prio);
                        }
                    }
                    self.nodes[usize::from(parent)].active &= !prios;
                    class = parent;
                }
                _ => return,
            }
        }
    }

    /// Determines what a class may do at `now` and, unless it can send, when this changes.
    fn update(&mut self, class: u16, now: Instant) -> Option<Instant> {
        let node = &mut self.nodes[usize::from(class)];
        let below_ceil = node.class.ceil.wait(now, 0);
        let below_rate = node.class.rate.wait(now, 0);
        let (mode, wait) = match (below_ceil.is_zero(), below_rate.is_zero()) {
            (false, _) => (Mode::CannotSend, below_ceil),
            (true, false) => (Mode::MayBorrow, below_rate),
            (true, true) => (Mode::CanSend, Span::ZERO),
        };
        if mode != node.mode {
            if node.active != 0 && node.mode != Mode::CannotSend {
                self.leave(class);
            }
            let node = &mut self.nodes[usize::from(class)];
            node.mode = mode;
            if node.active != 0 && mode != Mode::CannotSend {
                self.enter(class);
            }
        }
        (mode != Mode::CanSend).then(|| now.saturating_add(wait))
    }

    fn wait_until(&mut self, class: u16, at: Instant) {
        let waits = &mut self.waits[usize::from(self.nodes[usize::from(class)].level)];
        let place = waits.partition_point(|(other, _)| *other > at);
        waits.insert(place, (at, class));
    }

    /// Returns the leaf that sends next, if one may.
    pub fn next(&mut self, now: Instant) -> Option<HtbTurn> {
        for level in 0..LEVELS {
            while let Some((_, class)) = self.waits[level].pop_if(|(at, _)| *at <= now) {
                if let Some(at) = self.update(class, now) {
                    self.wait_until(class, at);
                }
            }
            for prio in 0..PRIORITIES {
                if !self.turns[Self::row(level, prio)].members.is_empty() {
                    let class = usize::from(self.descend(level, prio)?);
                    return Some(HtbTurn { class, level: level as u8 });
                }
            }
        }
        None
    }

    /// Returns the leaf whose turn it is among those of a level and a priority.
    fn descend(&mut self, level: usize, prio: usize) -> Option<u16> {
        self.path.clear();
        self.path.push(Self::row(level, prio));
        loop {
            let turns = &mut self.turns[*self.path.last()?];
            turns.next = turns.next.and_then(|class| turns.from(class));
            let Some(class) = turns.next else {
                // A round is over: the next class above has its turn.
                turns.next = Some(*turns.members.first()?);
                if self.path.len() > 1 {
                    self.path.pop();
                    self.turns[*self.path.last()?].advance();
                }
                continue;
            };
            if self.nodes[usize::from(class)].level == 0 {
                return Some(class);
            }
            self.path.push(Self::borrowers(class, prio));
        }
    }

    /// Ends the turn of a leaf without a packet.
    pub fn pass(&mut self, turn: HtbTurn) {
        let node = &self.nodes[turn.class];
        let prio = usize::from(node.class.prio);
        let place = match node.class.parent {
            Some(parent) if turn.level > 0 => Self::borrowers(parent, prio),
            _ => Self::row(0, prio),
        };
        self.turns[place].advance();
    }

    /// Charges a packet of `length` bytes, which takes `charged` bytes on the link. `emptied` says whether the leaf has
    /// nothing more to send.
    pub fn sent(&mut self, now: Instant, turn: HtbTurn, length: u64, charged: u64, emptied: bool) {
        let node = &mut self.nodes[turn.class];
        let deficit = &mut node.deficit[usize::from(turn.level)];
        *deficit -= length as i64;
        if *deficit < 0 {
            *deficit += node.class.quantum;
            self.pass(turn);
        }
        if emptied {
            self.deactivate(turn.class);
        }
        let mut class = Some(turn.class as u16);
        while let Some(number) = class {
            let node = &mut self.nodes[usize::from(number)];
            if node.level >= turn.level {
                node.class.rate.charge(now, charged);
            }
            node.class.ceil.charge(now, charged);
            let (before, level, parent) = (node.mode, usize::from(node.level), node.class.parent);
            let changes = self.update(number, now);
            if before != self.nodes[usize::from(number)].mode {
                self.waits[level].retain(|(_, waiting)| *waiting != number);
                if let Some(at) = changes {
                    self.wait_until(number, at);
                }
            }
            class = parent;
        }
    }

    /// Changes the buckets of all classes with `change`, which gets the number of the class, its rate's bucket and its ceiling's.
    pub fn change(
        &mut self,
        now: Instant,
        mut change: impl FnMut(usize, &mut TokenBucket, &mut TokenBucket),
    ) {
        for (number, node) in self.nodes.iter_mut().enumerate() {
            change(number, &mut node.class.rate, &mut node.class.ceil);
        }
        for number in 0..self.nodes.len() as u16 {
            let level = usize::from(self.nodes[usize::from(number)].level);
            self.waits[level].retain(|(_, waiting)| *waiting != number);
            if let Some(at) = self.update(number, now) {
                self.wait_until(number, at);
            }
        }
    }

    /// Returns when a class may do more than at the last call.
    pub fn deadline(&self) -> Option<Instant> {
        self.waits.iter().filter_map(|waits| waits.last()).map(|(at, _)| *at).min()
    }

    /// Returns the tokens of a class in bytes: of its own rate, and of its ceiling.
    pub fn tokens(&self, class: usize, now: Instant) -> [f64; 2] {
        let class = &self.nodes[class].class;
        [class.rate.bytes_at(now), class.ceil.bytes_at(now)]
    }
}

/// Iterates over the numbers of the bits that are set.
fn bits(mask: u8) -> impl Iterator<Item = usize> {
    (0..PRIORITIES).filter(move |bit| mask & 1 << bit != 0)
}
