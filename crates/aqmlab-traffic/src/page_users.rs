//! Users who fetch pages, each page over several connections at once.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use aqmlab_random::Stream;
use aqmlab_units::{Bytes, Instant};

use crate::opening::{ConnectionEvent, Content, Identity, Opening, Reaction, Wake, Woken};
use crate::pages::{Page, PageEnded, PageObject, PagePlan};
use crate::starts::Starts;

/// Users who fetch one page after another and think in between. A user opens a connection to each origin of
/// the page when the page first needs it. A wave of objects begins when all objects of the previous
/// wave have arrived and the client has parsed them. The page ends with its last object. If a
/// connection fails, the page counts as failed and ends as soon as nothing more is in progress.
///
/// Each user has at most one pending wake-up: to act on several connections at one instant, the
/// user is woken several times at that instant. The order in which a host reports the events of a
/// user's connections does not affect the user.
#[derive(Clone, Debug)]
pub struct PageUsers {
    firsts: Starts,
    plan: Arc<PagePlan>,
    /// Member i of this family draws the pages of user i.
    pages: Stream,
    /// Member i of this family draws the thinking times of user i.
    thoughts: Stream,
    users: Vec<User>,
}

#[derive(Clone, Default, Debug)]
struct User {
    /// Number of connections opened so far.
    opened: u32,
    /// Number of pages begun so far.
    pages: u32,
    /// The open connections, by origin.
    connections: Vec<Option<Open>>,
    page: Option<Box<UnderWay>>,
}

/// An open connection.
#[derive(Clone, Copy, Debug)]
struct Open {
    serial: u32,
    /// Number of objects of the wave that have not yet arrived on this connection.
    under_way: u32,
}

/// A page that is being fetched.
#[derive(Clone, Debug)]
struct UnderWay {
    page: Page,
    /// Number of objects requested so far; they are requested in order, starting with the page's
    /// first object.
    asked: usize,
    /// Number of objects of the wave that have neither arrived nor failed.
    under_way: u32,
    /// Once the page is over, its connections are closed in the order of their origins; this is the first
    /// origin whose connection may still be open.
    closing: Option<usize>,
    began: Instant,
    /// The time of the latest arrival or failure.
    latest: Instant,
    failed: bool,
    opened_connection: bool,
}

impl PageUsers {
    /// Creates users whose first pages begin at these times (one for each user, latest first). Each
    /// user's pages and thinking times are drawn from the user's members of the families `pages`
    /// and `thoughts`.
    pub fn new(starts: Vec<(Instant, u32)>, plan: Arc<PagePlan>, pages: Stream, thoughts: Stream) -> Self {
        let users = alloc::vec![User::default(); starts.len()];
        PageUsers { firsts: Starts::new(starts), plan, pages, thoughts, users }
    }

    pub(crate) fn begin(&self) -> Option<Wake> {
        self.firsts.next()
    }

    pub(crate) fn on_wake(&mut self, wake: Wake) -> Woken {
        let user = &mut self.users[wake.user as usize];
        if user.page.is_none() {
            let page = self.plan.draw(wake.user, user.pages, &self.pages.member(wake.user.into()));
            user.page = Some(Box::new(UnderWay::new(page, wake.at)));
            user.pages = user.pages.wrapping_add(1);
        }
        if user.page.as_ref().is_some_and(|page| page.closing.is_some()) {
            return self.close_next(wake);
        }
        let is_first_page = user.pages == 1;
        let (woken, wave_is_asked_for) = user.ask_next(wake.user);
        let next = match wave_is_asked_for {
            false => Some(wake),
            // The first pages of all users form a list: the wake-up for each of them requests the wake-up for
            // the next.
            true if is_first_page && user.is_in_first_wave() => self.firsts.on_wake(wake).wake,
            true => None,
        };
        woken.waking(next)
    }

    /// Closes the next connection of a page that is over; after closing the last one, the user
    /// thinks.
    fn close_next(&mut self, wake: Wake) -> Woken {
        let user = &mut self.users[wake.user as usize];
        let from = user.page.as_ref().and_then(|page| page.closing).unwrap_or_default();
        let mut open = (from..user.connections.len()).filter(|&origin| user.connections[origin].is_some());
        let (origin, next) = (open.next().expect("a connection is to be closed"), open.next());
        let serial = user.connections[origin].take().map_or(0, |open| open.serial);
        let of = Identity { user: wake.user, serial };
        let wake = match next {
            Some(next) => {
                user.page.as_mut().expect("a page is over").closing = Some(next);
                Some(wake)
            }
            None => {
                user.page = None;
                Some(self.think(wake.at, wake.user))
            }
        };
        Woken::Closes { of, wake }
    }

    fn think(&self, from: Instant, user: u32) -> Wake {
        let page = self.users[user as usize].pages.wrapping_sub(1);
        let mut draws = self.thoughts.member(user.into()).from_draw(page.into());
        let think = self.plan.think.draw(u64::from(user) + u64::from(page), &mut draws);
        Wake { at: from.saturating_add(think), user }
    }

    pub(crate) fn on_event(&mut self, now: Instant, of: Identity, event: ConnectionEvent) -> Reaction {
        let user = &mut self.users[of.user as usize];
        let is_of = |open: &Option<Open>| open.is_some_and(|open| open.serial == of.serial);
        let Some(origin) = user.connections.iter().position(is_of) else { return Reaction::default() };
        let open = user.connections[origin].as_mut().expect("just found");
        let gone = match event {
            ConnectionEvent::Opened => return Reaction::default(),
            ConnectionEvent::ExchangeDone(_) => {
                open.under_way -= 1;
                1
            }
            ConnectionEvent::Closed | ConnectionEvent::Failed => {
                let gone = open.under_way;
                user.connections[origin] = None;
                gone
            }
        };
        let Some(page) = user.page.as_mut().filter(|_| gone > 0) else { return Reaction::default() };
        page.failed |= !matches!(event, ConnectionEvent::ExchangeDone(_));
        page.under_way -= gone;
        page.latest = page.latest.max(now);
        match page.under_way {
            0 => self.wave_over(of.user),
            _ => Reaction::default(),
        }
    }

    /// Ends a wave, once none of its requests is in progress.
    fn wave_over(&mut self, of: u32) -> Reaction {
        let user = &mut self.users[of as usize];
        let page = user.page.as_mut().expect("a wave is over");
        if let Some(next) = page.page.objects.get(page.asked).filter(|_| !page.failed) {
            let parse = page.page.parse[usize::from(next.wave) - 1];
            return Reaction {
                wake: Some(Wake { at: page.latest.saturating_add(parse), user: of }),
                page: None,
            };
        }
        let ended = page.as_ended(of, user.pages);
        let (any_open, latest) = (user.connections.iter().any(Option::is_some), page.latest);
        let wake = if any_open && !self.plan.keeps_connections {
            page.closing = Some(0);
            Wake { at: latest, user: of }
        } else {
            user.page = None;
            self.think(latest, of)
        };
        Reaction { wake: Some(wake), page: Some(ended) }
    }

    /// Ends, at `now`, all pages that are in progress, and returns their outcomes.
    pub(crate) fn give_up(&mut self, now: Instant) -> Vec<PageEnded> {
        let ended = self.users.iter_mut().enumerate().filter_map(|(index, user)| {
            let page = user.page.take().filter(|page| page.closing.is_none())?;
            Some(PageEnded { at: now, ..page.as_ended(index as u32, user.pages) })
        });
        ended.collect()
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let of_user = |user: &User| {
            let page = user.page.as_ref().map_or(0, |page| page.page.objects.capacity());
            let connections = user.connections.capacity() * size_of::<Option<Open>>();
            size_of::<User>() + connections + page * size_of::<PageObject>()
        };
        self.firsts.memory_bytes() + self.users.iter().map(of_user).sum::<usize>()
    }
}

impl User {
    /// Requests the next objects of the wave, all from one origin, and returns whether the whole
    /// wave has then been requested.
    fn ask_next(&mut self, index: u32) -> (Woken, bool) {
        let page = self.page.as_mut().expect("a page is under way");
        let to_come = &page.page.objects[page.asked..];
        let PageObject { wave, origin, .. } = to_come[0];
        let of_origin = |object: &&PageObject| (object.wave, object.origin) == (wave, origin);
        let asked: Vec<PageObject> = to_come.iter().take_while(of_origin).copied().collect();
        let whole_wave = to_come.get(asked.len()).is_none_or(|next| next.wave != wave);
        if page.under_way == 0 {
            page.under_way = to_come.iter().take_while(|object| object.wave == wave).count() as u32;
        }
        page.asked += asked.len();
        let origin = usize::from(origin);
        if self.connections.len() <= origin {
            self.connections.resize(origin + 1, None);
        }
        let under_way = asked.len() as u32;
        let woken = match &mut self.connections[origin] {
            Some(open) => {
                open.under_way = under_way;
                Woken::Asks { of: Identity { user: index, serial: open.serial }, objects: asked, wake: None }
            }
            none => {
                let of = Identity { user: index, serial: self.opened };
                *none = Some(Open { serial: self.opened, under_way });
                self.opened = self.opened.wrapping_add(1);
                page.opened_connection |= wave == 0;
                Woken::Opens(Opening { content: Content::Objects(asked), ..Opening::of(of, None) })
            }
        };
        (woken, whole_wave)
    }

    /// Returns whether all requested objects belong to the page's first wave.
    fn is_in_first_wave(&self) -> bool {
        self.page.as_ref().is_some_and(|page| page.page.objects[page.asked - 1].wave == 0)
    }
}

impl UnderWay {
    const fn new(page: Page, began: Instant) -> Self {
        UnderWay {
            page,
            asked: 0,
            under_way: 0,
            closing: None,
            began,
            latest: began,
            failed: false,
            opened_connection: false,
        }
    }

    /// Returns the page's outcome; `pages` is the number of pages that the user has begun.
    fn as_ended(&self, user: u32, pages: u32) -> PageEnded {
        let sum = |of: fn(&PageObject) -> u64| Bytes::new(self.page.objects.iter().map(of).sum());
        PageEnded {
            user,
            number: pages.wrapping_sub(1),
            objects: self.page.objects.len() as u32,
            opened_connection: self.opened_connection,
            began: self.began,
            at: self.latest,
            request: sum(|object| object.request),
            weight: sum(|object| object.response),
            failed: self.failed,
        }
    }
}
