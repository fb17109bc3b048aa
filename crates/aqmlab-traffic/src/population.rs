//! Populations, which open connections.
//!
//! A population is driven by its host: it is woken at instants that it has requested, opens
//! connections, and is notified of the events of these connections. Its actions for one user depend
//! only on the events reported for that user. A host may therefore serve users in any order, but
//! must report the events of each user in the order in which they occur.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use aqmlab_random::Stream;
use aqmlab_units::{Instant, Span};

use crate::browsers::Browsers;
use crate::distribution::Distribution;
use crate::listed_users::ListedUsers;
use crate::opening::{ConnectionEvent, Content, Identity, Opening, Reaction, Wake, Woken};
use crate::packmime::{CloudConnection, OpenedByCloud, PackMime};
use crate::page_users::PageUsers;
use crate::pages::PageEnded;
use crate::starts::Starts;

/// The users of a class.
#[derive(Clone, Debug)]
pub enum Population {
    /// Connections whose start times are all known in advance.
    List(Starts),
    /// Connections that arrive regardless of earlier ones.
    Arrivals(Arrivals),
    /// Users who think before each connection except their first.
    Users(Users),
    /// A cloud of web users, as in PackMime-HTTP.
    Cloud(Box<Cloud>),
    /// Users who fetch pages, each page over several connections at once.
    Pages(Box<PageUsers>),
    /// Users who fetch pages with one request at a time on each connection.
    Browsers(Box<Browsers>),
    /// Users whose pages a list gives.
    ListedUsers(Box<ListedUsers>),
}

impl Population {
    /// Draws in advance, for all clouds together, the values that each cloud needs for its first `count`
    /// connections: see [`PackMime::draw_ahead`].
    pub fn draw_ahead<'a>(populations: impl Iterator<Item = &'a mut Population>, count: usize) {
        let mut models: Vec<_> = populations
            .filter_map(|population| match population {
                Population::Cloud(cloud) => Some(&mut cloud.model),
                _ => None,
            })
            .collect();
        PackMime::draw_ahead(&mut models, count);
    }

    /// Returns the population's first wake-up, or `None` if it will never open a connection. The
    /// host must call this method once, before any other.
    pub fn begin(&mut self) -> Option<Wake> {
        match self {
            Population::List(starts) => starts.next(),
            Population::Arrivals(arrivals) => Some(arrivals.next()),
            Population::Users(users) => users.firsts.next(),
            Population::Cloud(cloud) => Some(cloud.next()),
            Population::Pages(users) => users.begin(),
            Population::Browsers(users) => users.begin(),
            Population::ListedUsers(users) => users.begin(),
        }
    }

    /// Handles a wake-up that the population has requested.
    ///
    /// # Panics
    /// If the population has not requested one.
    pub fn on_wake(&mut self, wake: Wake) -> Woken {
        Woken::Opens(match self {
            Population::List(starts) => starts.on_wake(wake),
            Population::Arrivals(arrivals) => arrivals.on_wake(),
            Population::Users(users) => users.on_wake(wake),
            Population::Cloud(cloud) => cloud.on_wake(),
            Population::Pages(users) => return users.on_wake(wake),
            Population::Browsers(users) => users.on_wake(wake),
            Population::ListedUsers(users) => return users.on_wake(wake),
        })
    }

    /// Handles an event of a connection at `now`, and returns the resulting reaction.
    pub fn on_event(&mut self, now: Instant, of: Identity, event: ConnectionEvent) -> Reaction {
        match self {
            Population::List(_) | Population::Arrivals(_) | Population::Cloud(_) => Reaction::default(),
            Population::Users(users) => Reaction { wake: users.on_event(now, of, event), page: None },
            Population::Pages(users) => users.on_event(now, of, event),
            Population::Browsers(users) => users.on_event(now, of, event),
            Population::ListedUsers(users) => users.on_event(now, of, event),
        }
    }

    /// Ends, at `now`, all pages that are in progress, because the run ends or the class stops
    /// sending. Returns the outcomes of these pages.
    pub fn give_up_pages(&mut self, now: Instant) -> Vec<PageEnded> {
        match self {
            Population::Pages(users) => users.give_up(now),
            Population::Browsers(users) => users.give_up(now),
            Population::ListedUsers(users) => users.give_up(now),
            _ => Vec::new(),
        }
    }

    /// Returns the memory that the population's tables occupy, in bytes.
    pub fn memory_bytes(&self) -> usize {
        match self {
            Population::List(starts) => starts.memory_bytes(),
            Population::Arrivals(_) => 0,
            Population::Cloud(_) => Cloud::MEMORY_BYTES,
            Population::Pages(users) => users.memory_bytes(),
            Population::Browsers(users) => users.memory_bytes(),
            Population::ListedUsers(users) => users.memory_bytes(),
            Population::Users(users) => users.firsts.memory_bytes() + users.users.len() * size_of::<User>(),
        }
    }
}

/// See [`Population::Arrivals`]. The arrival process counts as one user, who never waits for a
/// response.
#[derive(Clone, Debug)]
pub struct Arrivals {
    gaps: Gaps,
    draws: Stream,
    next_at: Instant,
    opened: u32,
}

/// Times between arrivals.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Gaps {
    /// Exponential: a Poisson process.
    Exponential {
        /// mean number of arrivals per second
        per_s: f64,
    },
}

impl Gaps {
    fn draw(self, draws: &mut Stream) -> Span {
        match self {
            Gaps::Exponential { per_s } => {
                Span::try_from_secs_f64(draws.exponential() / per_s).unwrap_or(Span::s(1 << 32))
            }
        }
    }
}

impl Arrivals {
    /// The version of this part, incremented whenever a change to it changes a result.
    pub const VERSION: u32 = 1;

    /// Creates a process that begins at `start`; the first arrival is one gap later.
    pub fn new(gaps: Gaps, start: Instant, mut draws: Stream) -> Self {
        let next_at = start + gaps.draw(&mut draws);
        Arrivals { gaps, draws, next_at, opened: 0 }
    }

    const fn next(&self) -> Wake {
        Wake { at: self.next_at, user: 0 }
    }

    fn on_wake(&mut self) -> Opening {
        let open = Identity { user: 0, serial: self.opened };
        self.opened = self.opened.wrapping_add(1);
        self.next_at += self.gaps.draw(&mut self.draws);
        Opening::of(open, Some(self.next()))
    }
}

/// See [`Population::Cloud`]. A cloud counts as one user, as [`Arrivals`] does.
#[derive(Clone, Debug)]
pub struct Cloud {
    model: PackMime,
    next_at: Instant,
    /// The connection that opens next.
    connection: CloudConnection,
    opened: u32,
}

impl Cloud {
    /// Upper bound, in bytes, on the memory that the model's history occupies: coefficients,
    /// spectra and values.
    const MEMORY_BYTES: usize = 1 << 20;

    /// Creates a cloud that begins at `start`; the first connection opens one gap later.
    pub fn new(mut model: PackMime, start: Instant) -> Self {
        let OpenedByCloud { gap, connection } = model.open();
        Cloud { model, next_at: start + gap, connection, opened: 0 }
    }

    const fn next(&self) -> Wake {
        Wake { at: self.next_at, user: 0 }
    }

    fn on_wake(&mut self) -> Opening {
        let open = Identity { user: 0, serial: self.opened };
        self.opened = self.opened.wrapping_add(1);
        let OpenedByCloud { gap, connection } = self.model.open();
        self.next_at += gap;
        let connection = core::mem::replace(&mut self.connection, connection);
        Opening { content: Content::Cloud(Box::new(connection)), ..Opening::of(open, Some(self.next())) }
    }
}

/// See [`Population::Users`]. A user starts thinking when the last exchange of the current
/// connection ends, or when that connection fails or closes early.
#[derive(Clone, Debug)]
pub struct Users {
    /// First connections.
    firsts: Starts,
    think: Arc<Distribution>,
    /// Member i of this family provides the draws of user i.
    draws: Stream,
    users: Vec<User>,
}

/// The state of one user, kept to eight bytes because there may be many users.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct User {
    /// Number of connections opened so far.
    opened: u32,
    /// Whether the user is waiting for an event of the latest connection.
    waits: bool,
}

impl Users {
    /// The version of this part, incremented whenever a change to it changes a result.
    pub const VERSION: u32 = 1;

    /// Creates users whose first connections start at these times (one for each user, latest
    /// first). Each user's thinking times are drawn from the user's member of the family `draws`.
    pub fn new(starts: Vec<(Instant, u32)>, think: Arc<Distribution>, draws: Stream) -> Self {
        let users = alloc::vec![User::default(); starts.len()];
        Users { firsts: Starts::new(starts), think, draws, users }
    }

    fn on_wake(&mut self, wake: Wake) -> Opening {
        let user = &mut self.users[wake.user as usize];
        let open = Identity { user: wake.user, serial: user.opened };
        user.waits = true;
        user.opened = user.opened.wrapping_add(1);
        // The first connections of all users form a list: the wake-up for each of them requests the wake-up
        // for the next.
        if open.serial == 0 { self.firsts.on_wake(wake) } else { Opening::of(open, None) }
    }

    fn on_event(&mut self, now: Instant, of: Identity, event: ConnectionEvent) -> Option<Wake> {
        let user = &mut self.users[of.user as usize];
        let is_end = match event {
            ConnectionEvent::Opened => false,
            ConnectionEvent::ExchangeDone(done) => done.last,
            ConnectionEvent::Closed | ConnectionEvent::Failed => true,
        };
        let is_awaited = user.waits && of.serial.wrapping_add(1) == user.opened;
        if !(is_end && is_awaited) {
            return None;
        }
        user.waits = false;
        let mut draws = self.draws.member(of.user.into()).from_draw(of.serial.into());
        let think = self.think.draw(u64::from(of.user) + u64::from(of.serial), &mut draws);
        Some(Wake { at: now + think, user: of.user })
    }
}
