//! The interface between a population and its host: openings of connections, wake-ups, and the
//! events of connections.

use alloc::boxed::Box;
use alloc::vec::Vec;

use aqmlab_units::Instant;

use crate::packmime::CloudConnection;
use crate::pages::{PageEnded, PageObject};
use crate::step::ExchangeDone;

/// A connection within its class: its user, and the number of connections that the user has opened
/// before.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Identity {
    /// Index of the user within the class, or of the flow in a list of flows; 0 for all connections of an
    /// arrival process.
    pub user: u32,
    /// Number among the user's connections, counted from 0.
    pub serial: u32,
}

impl Identity {
    /// Returns the identity of a user's first connection.
    pub const fn first_of(user: u32) -> Self {
        Identity { user, serial: 0 }
    }

    /// Returns the index that selects the connection's draws; it is unique among the connections of
    /// a class. For a user's first connection, it is the user's index.
    pub const fn index(self) -> u64 {
        (self.serial as u64) << 32 | self.user as u64
    }
}

/// A wake-up that a population has requested for one of its users.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Wake {
    /// The instant.
    pub at: Instant,
    /// Index of the user.
    pub user: u32,
}

/// The action that a population takes when it is woken.
#[derive(Clone, Debug)]
pub enum Woken {
    /// It opens a connection.
    Opens(Opening),
    /// A user requests more objects on an open connection.
    Asks {
        /// The connection.
        of: Identity,
        /// The objects.
        objects: Vec<PageObject>,
        /// The next wake-up requested.
        wake: Option<Wake>,
    },
    /// A user closes an idle connection.
    Closes {
        /// The connection.
        of: Identity,
        /// The next wake-up requested.
        wake: Option<Wake>,
    },
}

impl Woken {
    /// Returns the same action with `next` as the next wake-up requested.
    pub fn waking(mut self, next: Option<Wake>) -> Self {
        match &mut self {
            Woken::Opens(Opening { wake, .. }) | Woken::Asks { wake, .. } | Woken::Closes { wake, .. } => {
                *wake = next;
            }
        }
        self
    }

    /// Returns the next wake-up requested.
    pub const fn wake(&self) -> Option<Wake> {
        match self {
            Woken::Opens(Opening { wake, .. }) | Woken::Asks { wake, .. } | Woken::Closes { wake, .. } => {
                *wake
            }
        }
    }
}

/// The reaction of a population to an event.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Reaction {
    /// The wake-up requested.
    pub wake: Option<Wake>,
    /// The page that the event has ended.
    pub page: Option<PageEnded>,
}

/// A connection that opens.
#[derive(Clone, Debug)]
pub struct Opening {
    /// The connection, which opens now.
    pub open: Identity,
    /// The next wake-up requested, for this instant or a later one.
    pub wake: Option<Wake>,
    /// What it carries.
    pub content: Content,
}

/// What a connection carries, as far as its population determines that.
#[derive(Clone, Debug)]
pub enum Content {
    /// The draws that belong to its identity.
    Drawn,
    /// The same, but its user determines the number of exchanges.
    Counted(u32),
    /// The values that its cloud has drawn.
    Cloud(Box<CloudConnection>),
    /// Objects of a page: it requests these immediately, and others when its user asks for them.
    Objects(Vec<PageObject>),
}

impl Content {
    /// Returns the values that a cloud has drawn, if a cloud opens the connection.
    pub fn connection(&self) -> Option<&CloudConnection> {
        match self {
            Content::Cloud(connection) => Some(connection),
            Content::Drawn | Content::Counted(_) | Content::Objects(_) => None,
        }
    }
}

impl Opening {
    pub(crate) const fn of(open: Identity, wake: Option<Wake>) -> Self {
        Opening { open, wake, content: Content::Drawn }
    }
}

/// An event of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConnectionEvent {
    /// The handshake is complete at the end that opened the connection.
    Opened,
    /// An exchange has ended.
    ExchangeDone(ExchangeDone),
    /// Both ends have closed normally.
    Closed,
    /// The connection was reset, or given up before its end.
    Failed,
}
