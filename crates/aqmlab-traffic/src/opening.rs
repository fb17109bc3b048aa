//! What passes between a population and its host: who opens which connection, when it wants to be woken, and what becomes
//! of connections.

use alloc::boxed::Box;
use alloc::vec::Vec;

use aqmlab_units::Instant;

use crate::packmime::Carried;
use crate::pages::{PageEnded, PageObject};
use crate::step::ExchangeDone;

/// A connection within its class: whose it is, and how many that user has opened before.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Identity {
    /// Index within the class: of the flow in a list, of the user; 0 for all that an arrival process opens.
    pub user: u32,
    /// The first of a user's connections is 0.
    pub serial: u32,
}

impl Identity {
    /// The first connection of a user.
    pub const fn first_of(user: u32) -> Self {
        Identity { user, serial: 0 }
    }

    /// What draws go by, no two connections of a class the same. That of a user's first connection is the user's index.
    pub const fn index(self) -> u64 {
        (self.serial as u64) << 32 | self.user as u64
    }
}

/// When a population wants to be woken, and for whom.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wake {
    /// When.
    pub at: Instant,
    /// Index of the user.
    pub user: u32,
}

/// What a population does when it is woken.
#[derive(Clone, Debug)]
pub enum Woken {
    /// It opens a connection.
    Opens(Opening),
    /// A user asks for more on a connection that is open.
    Asks {
        /// Which one.
        of: Identity,
        /// What for.
        objects: Vec<PageObject>,
        /// Wants to be woken again.
        wake: Option<Wake>,
    },
    /// A user closes a connection, on which nothing is under way.
    Closes {
        /// Which one.
        of: Identity,
        /// Wants to be woken again.
        wake: Option<Wake>,
    },
}

impl Woken {
    /// The same, and it wants to be woken so.
    pub fn waking(mut self, next: Option<Wake>) -> Self {
        match &mut self {
            Woken::Opens(Opening { wake, .. }) | Woken::Asks { wake, .. } | Woken::Closes { wake, .. } => {
                *wake = next;
            }
        }
        self
    }

    /// When and for whom it wants to be woken again.
    pub const fn wake(&self) -> Option<Wake> {
        match self {
            Woken::Opens(Opening { wake, .. }) | Woken::Asks { wake, .. } | Woken::Closes { wake, .. } => {
                *wake
            }
        }
    }
}

/// What a population makes of news.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Reaction {
    /// Whom it wants to be woken for, and when.
    pub wake: Option<Wake>,
    /// The page that has ended with that.
    pub page: Option<PageEnded>,
}

/// A connection that opens.
#[derive(Clone, Debug)]
pub struct Opening {
    /// Opens this connection now.
    pub open: Identity,
    /// Wants to be woken again: at this instant or later.
    pub wake: Option<Wake>,
    /// What the connection has from its cloud, where a cloud opens it; else its draws go by its identity.
    pub carried: Option<Box<Carried>>,
    /// What it asks for at once, where it opens for a page; else there is nothing here.
    pub objects: Vec<PageObject>,
    /// How many exchanges it carries, where its user says so; else that is a draw of its own.
    pub exchanges: Option<u32>,
}

impl Opening {
    pub(crate) const fn of(open: Identity, wake: Option<Wake>) -> Self {
        Opening { open, wake, carried: None, objects: Vec::new(), exchanges: None }
    }
}

/// What becomes of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConnectionEvent {
    /// The handshake is complete at the end that opened.
    Opened,
    /// An exchange has come to its end.
    ExchangeDone(ExchangeDone),
    /// Both ends have closed, in order.
    Closed,
    /// It has been reset or given up before all was done.
    Failed,
}
