//! The items of the contract, the number of checks of each item, the subject of a test, and violations of the
//! contract.

use alloc::boxed::Box;
use alloc::string::String;
use core::fmt;

use aqmlab_random::Stream;
use aqmlab_units::Rate;

use super::TestPacket;
use crate::{Limit, Qdisc};

/// The items of the contract, in the order of [`crate::Qdisc`]'s documentation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Item {
    /// 1. Conservation.
    Conservation,
    /// 2. Time order: fates are reported with the instant of the call.
    Time,
    /// 3. Liveness.
    Liveness,
    /// 4. One meaning of deadline.
    Deadline,
    /// 5. Catching up.
    CatchingUp,
    /// 6. Bounded.
    Bounded,
    /// 7. Replay; CE only on ECT; limit kept; work conserving.
    Replay,
}

impl Item {
    /// All items.
    pub const ALL: [Item; 7] = [
        Item::Conservation,
        Item::Time,
        Item::Liveness,
        Item::Deadline,
        Item::CatchingUp,
        Item::Bounded,
        Item::Replay,
    ];

    /// Returns the name of the item in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Item::Conservation => "conservation",
            Item::Time => "time order",
            Item::Liveness => "liveness",
            Item::Deadline => "deadline",
            Item::CatchingUp => "catching up",
            Item::Bounded => "bounded work",
            Item::Replay => "replay",
        }
    }

    /// Describes what [`Checks`] counts for this item.
    pub const fn counts(self) -> &'static str {
        match self {
            Item::Conservation => {
                "calls after which arrived = left + dropped + backlog, in packets and bytes"
            }
            Item::Time => "fates reported with the instant of the call",
            Item::Liveness => "dequeues that returned a packet, found none waiting, or led to a deadline",
            Item::Deadline => "shapers' deadlines that were later than the call and were acted on",
            Item::CatchingUp => "law states and fates that additional calls during pauses did not change",
            Item::Bounded => "calls that accessed packets no more often than allowed",
            Item::Replay => {
                "law states and fates that a second run repeated; packets marked only as allowed; limits kept; decisions with their own draw"
            }
        }
    }
}

/// The number of checks of each item, and the number of drops and marks during the checks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Checks {
    items: [u64; Item::ALL.len()],
    /// Packets marked.
    pub marks: u64,
    /// Packets that a law dropped.
    pub law_drops: u64,
}

impl Checks {
    /// Returns the number of checks of one item.
    pub const fn of(&self, item: Item) -> u64 {
        self.items[item as usize]
    }

    /// Returns the sum of these checks and `other`, count by count.
    #[must_use]
    pub fn plus(self, other: Checks) -> Checks {
        Checks {
            items: core::array::from_fn(|i| self.items[i] + other.items[i]),
            marks: self.marks + other.marks,
            law_drops: self.law_drops + other.law_drops,
        }
    }

    pub(super) const fn count(&mut self, item: Item, times: u64) {
        self.items[item as usize] += times;
    }
}

/// The subject of a test.
pub struct Subject<'a> {
    /// Makes a fresh instance that draws from the given stream.
    pub make: &'a dyn Fn(Stream) -> Box<dyn Qdisc<TestPacket>>,
    /// The stream from which all runs draw, except those that compare streams.
    pub draws: Stream,
    /// The limit that the discipline's backlog must not exceed, if there is one.
    pub limit: Option<Limit>,
    /// Whether the discipline may hold packets back. If so, its deadlines are followed; otherwise it must be
    /// work conserving.
    pub shaper: bool,
    /// The rate of the link for which the discipline was made.
    pub rate: Rate,
}

/// A breach of the contract.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// The item that is violated.
    pub item: Item,
    /// Position in the script, counted from 0, of the operation that shows the violation.
    pub operation: usize,
    /// The observation.
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "contract item {} ({:?}) at operation {}: {}",
            self.item as u8 + 1,
            self.item,
            self.operation,
            self.what
        )
    }
}

impl core::error::Error for Violation {}
