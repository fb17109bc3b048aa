//! The items of the contract, and how often each was checked.

/// The items of the contract, in the order of [`crate::Qdisc`]'s documentation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Item {
    /// 1. Conservation.
    Conservation,
    /// 2. Order of time: fates are told with the instant of the call.
    Time,
    /// 3. Liveness.
    Liveness,
    /// 4. One meaning of deadline.
    Deadline,
    /// 5. Catching up.
    CatchingUp,
    /// 6. Bounded.
    Bounded,
    /// 7. Replay; CE only on ECT; limit; work conserving.
    Replay,
}

impl Item {
    /// All of them.
    pub const ALL: [Item; 7] = [
        Item::Conservation,
        Item::Time,
        Item::Liveness,
        Item::Deadline,
        Item::CatchingUp,
        Item::Bounded,
        Item::Replay,
    ];

    /// What it is called in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Item::Conservation => "conservation",
            Item::Time => "order of time",
            Item::Liveness => "liveness",
            Item::Deadline => "deadline",
            Item::CatchingUp => "catching up",
            Item::Bounded => "bounded work",
            Item::Replay => "replay",
        }
    }

    /// One look at it, in words: what a count of [`Checks`] counts.
    pub const fn counts(self) -> &'static str {
        match self {
            Item::Conservation => {
                "calls after which arrived = left + dropped + backlog, in packets and bytes"
            }
            Item::Time => "fates told with the instant of the call",
            Item::Liveness => "requests for a packet that got one, found none waiting, or led to a deadline",
            Item::Deadline => "deadlines of shapers that came after the call and were followed",
            Item::CatchingUp => "law states and fates that more calls during pauses did not change",
            Item::Bounded => "calls that looked at no more packets than allowed",
            Item::Replay => "law states and fates repeated; marks of ECN-capable packets only; limits kept",
        }
    }
}

/// How often each item was checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Checks([u64; Item::ALL.len()]);

impl Checks {
    /// So many checks of one item.
    pub const fn of(&self, item: Item) -> u64 {
        self.0[item as usize]
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Checks) -> Checks {
        Checks(core::array::from_fn(|i| self.0[i] + other.0[i]))
    }

    pub(super) const fn count(&mut self, item: Item, times: u64) {
        self.0[item as usize] += times;
    }
}
