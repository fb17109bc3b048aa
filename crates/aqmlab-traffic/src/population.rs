//! Who opens connections, and when.
//!
//! A population is driven by its host: it is woken at instants that it has asked for, opens connections, and hears what
//! becomes of them. What it does for one user follows from what that user has heard and from nothing else, so a host may
//! serve users in any order, each of them in order of time.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use aqmlab_random::Stream;
use aqmlab_units::{Instant, Span};

use crate::browsers::Browsers;
use crate::distribution::Distribution;
use crate::opening::{ConnectionEvent, Identity, Opening, Reaction, Wake, Woken};
use crate::packmime::{Carried, OpenedByCloud, PackMime};
use crate::page_users::PageUsers;
use crate::pages::PageEnded;
use crate::starts::Starts;

/// The users of a class.
#[derive(Clone, Debug)]
pub enum Population {
    /// Connections of which all starts are known.
    List(Starts),
    /// Connections that come whatever becomes of those before.
    Arrivals(Arrivals),
    /// Users who think before each connection but their first.
    Users(Users),
    /// A cloud of web users, as PackMime-HTTP has them.
    Cloud(Box<Cloud>),
    /// Users who fetch pages, each over several connections at a time.
    Pages(Box<PageUsers>),
    /// Users who fetch pages with one request at a time on each connection.
    Browsers(Box<Browsers>),
}

impl Population {
    /// Clouds draw what they need for their first `count` connections together: see [`PackMime::draw_ahead`].
    pub fn draw_ahead<'a>(populations: impl Iterator<Item = &'a mut Population>, count: usize) {
        let mut models: Vec<_> = populations
            .filter_map(|population| match population {
                Population::Cloud(cloud) => Some(&mut cloud.model),
                _ => None,
            })
            .collect();
        PackMime::draw_ahead(&mut models, count);
    }

    /// What it wants to be woken for first; nothing if it will never open a connection. To be called once, before all else.
    pub fn begin(&mut self) -> Option<Wake> {
        match self {
            Population::List(starts) => starts.next(),
            Population::Arrivals(arrivals) => Some(arrivals.next()),
            Population::Users(users) => users.firsts.next(),
            Population::Cloud(cloud) => Some(cloud.next()),
            Population::Pages(users) => users.begin(),
            Population::Browsers(users) => users.begin(),
        }
    }

    /// The instant that it has asked for.
    ///
    /// # Panics
    /// If it has not.
    pub fn on_wake(&mut self, wake: Wake) -> Woken {
        Woken::Opens(match self {
            Population::List(starts) => starts.on_wake(wake),
            Population::Arrivals(arrivals) => arrivals.on_wake(),
            Population::Users(users) => users.on_wake(wake),
            Population::Cloud(cloud) => cloud.on_wake(),
            Population::Pages(users) => return users.on_wake(wake),
            Population::Browsers(users) => users.on_wake(wake),
        })
    }

    /// What has become of a connection at `now`; whom it wants to be woken for because of that, and when.
    pub fn on_event(&mut self, now: Instant, of: Identity, event: ConnectionEvent) -> Reaction {
        match self {
            Population::List(_) | Population::Arrivals(_) | Population::Cloud(_) => Reaction::default(),
            Population::Users(users) => Reaction { wake: users.on_event(now, of, event), page: None },
            Population::Pages(users) => users.on_event(now, of, event),
            Population::Browsers(users) => users.on_event(now, of, event),
        }
    }

    /// The run is over at `now`, or the class stops: the pages that are under way, which end with that.
    pub fn give_up_pages(&mut self, now: Instant) -> Vec<PageEnded> {
        match self {
            Population::Pages(users) => users.give_up(now),
            Population::Browsers(users) => users.give_up(now),
            _ => Vec::new(),
        }
    }

    /// Bytes that its tables take.
    pub fn memory_bytes(&self) -> usize {
        match self {
            Population::List(starts) => starts.memory_bytes(),
            Population::Arrivals(_) => 0,
            Population::Cloud(_) => Cloud::MEMORY_BYTES,
            Population::Pages(users) => users.memory_bytes(),
            Population::Browsers(users) => users.memory_bytes(),
            Population::Users(users) => users.firsts.memory_bytes() + users.users.len() * size_of::<User>(),
        }
    }
}

/// See [`Population::Arrivals`]: one user, who never waits for an answer.
#[derive(Clone, Debug)]
pub struct Arrivals {
    gaps: Gaps,
    draws: Stream,
    next_at: Instant,
    opened: u32,
}

/// Times from one arrival to the next.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Gaps {
    /// Exponential: a Poisson process.
    Exponential {
        /// how many there are in a second, in the mean
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
    /// Rises by one whenever this moves a result.
    pub const VERSION: u32 = 1;

    /// A process that begins at `start`: the first arrival is one gap after it.
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

/// See [`Population::Cloud`]: one user, as with arrivals.
#[derive(Clone, Debug)]
pub struct Cloud {
    model: PackMime,
    next_at: Instant,
    /// The connection that opens next.
    carried: Carried,
    opened: u32,
}

impl Cloud {
    /// What the model's past takes at most: coefficients, spectra and values.
    const MEMORY_BYTES: usize = 1 << 20;

    /// A cloud that begins at `start`: the first connection opens one gap after it.
    pub fn new(mut model: PackMime, start: Instant) -> Self {
        let OpenedByCloud { gap, carried } = model.open();
        Cloud { model, next_at: start + gap, carried, opened: 0 }
    }

    const fn next(&self) -> Wake {
        Wake { at: self.next_at, user: 0 }
    }

    fn on_wake(&mut self) -> Opening {
        let open = Identity { user: 0, serial: self.opened };
        self.opened = self.opened.wrapping_add(1);
        let OpenedByCloud { gap, carried } = self.model.open();
        self.next_at += gap;
        let carried = core::mem::replace(&mut self.carried, carried);
        Opening { carried: Some(Box::new(carried)), ..Opening::of(open, Some(self.next())) }
    }
}

/// See [`Population::Users`]. A user thinks from the moment when the last exchange of his connection is done, or when the
/// connection has failed or closed before.
#[derive(Clone, Debug)]
pub struct Users {
    /// First connections.
    firsts: Starts,
    think: Arc<Distribution>,
    /// Member i: the draws of user i.
    draws: Stream,
    users: Vec<User>,
}

/// Eight bytes, for there may be many.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct User {
    /// Connections opened so far.
    opened: u32,
    /// Waits for something from the last of them.
    waits: bool,
}

impl Users {
    /// Rises by one whenever this moves a result.
    pub const VERSION: u32 = 1;

    /// Users whose first connections start so (latest first, one for each); times to think are draws of the user's member
    /// of the family `draws`.
    pub fn new(starts: Vec<(Instant, u32)>, think: Arc<Distribution>, draws: Stream) -> Self {
        let users = alloc::vec![User::default(); starts.len()];
        Users { firsts: Starts::new(starts), think, draws, users }
    }

    fn on_wake(&mut self, wake: Wake) -> Opening {
        let user = &mut self.users[wake.user as usize];
        let open = Identity { user: wake.user, serial: user.opened };
        user.waits = true;
        user.opened = user.opened.wrapping_add(1);
        // First connections are a list, and each asks for the next.
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
