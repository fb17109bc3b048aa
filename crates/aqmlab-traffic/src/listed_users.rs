//! Users whose pages a list gives, each page over several connections with one request at a time.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Range;

use aqmlab_units::{Bytes, Instant, Span};

use crate::opening::{ConnectionEvent, Content, Identity, Opening, Reaction, Wake, Woken};
use crate::pages::{PageEnded, PageObject};
use crate::starts::Starts;

/// The pages of all users of a class, in the order in which each user fetches them.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct PageList {
    objects: Vec<PageObject>,
    pages: Vec<ListedPage>,
    /// The first page of each user.
    users: Vec<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct ListedPage {
    /// Time from the end of the user's previous page, or from the beginning of the run, to this page.
    think: Span,
    /// The first of its objects.
    first: usize,
}

impl PageList {
    /// Adds a user, without pages.
    pub fn add_user(&mut self) {
        self.users.push(self.pages.len());
    }

    /// Adds a page, without objects, to the last user. It begins when the user has thought for this time since the
    /// previous page or, for the first page, since the beginning of the run.
    pub fn add_page(&mut self, think: Span) {
        self.pages.push(ListedPage { think, first: self.objects.len() });
    }

    /// Adds an object to the last page. The first object of a page is its document.
    pub fn add_object(&mut self, request: u64, server_delay: Span, response: u64) {
        self.objects.push(PageObject { wave: 0, origin: 0, request, server_delay, response });
    }

    /// Returns the number of users.
    pub const fn users(&self) -> usize {
        self.users.len()
    }

    /// Returns the number of pages.
    pub const fn pages(&self) -> usize {
        self.pages.len()
    }

    /// Returns the number of objects.
    pub const fn objects(&self) -> usize {
        self.objects.len()
    }

    /// Iterates over the beginning of each user's first page.
    pub fn starts(&self) -> impl ExactSizeIterator<Item = Span> {
        self.users.iter().map(|&page| self.pages[page].think)
    }

    /// Returns the mean time for which users think before a page that is not their first; zero if there is none.
    pub fn mean_think(&self) -> Span {
        let all: u128 = self.pages.iter().map(|page| u128::from(page.think.as_ns())).sum();
        let firsts: u128 = self.starts().map(|start| u128::from(start.as_ns())).sum();
        let count = (self.pages.len() - self.users.len()).max(1) as u128;
        Span::ns(((all - firsts) / count) as u64)
    }

    fn pages_of(&self, user: usize) -> Range<usize> {
        let end = self.users.get(user + 1).copied().unwrap_or(self.pages.len());
        self.users[user]..end
    }

    fn objects_of(&self, page: usize) -> Range<usize> {
        let end = self.pages.get(page + 1).map_or(self.objects.len(), |next| next.first);
        self.pages[page].first..end
    }
}

/// Users who fetch the pages of a list, one after another, and think before each. The document of a page comes first,
/// alone. Its other objects are requested in the order of the list, each on the first connection of the user that is
/// free; while none is free, a new connection opens, unless the user has as many as `parallel`. If a connection
/// fails, its object has failed, and so has the page; if this object is the document, the page ends. A user stops after
/// the last page.
///
/// Each user has at most one pending wake-up: to act on several connections at one instant, the user is woken several
/// times at that instant.
#[derive(Clone, Debug)]
pub struct ListedUsers {
    firsts: Starts,
    list: Arc<PageList>,
    parallel: usize,
    keeps_connections: bool,
    users: Vec<User>,
}

#[derive(Clone, Default, Debug)]
struct User {
    /// Number of connections opened so far.
    opened: u32,
    /// Number of pages begun so far.
    pages: u32,
    /// The open connections, the oldest first.
    connections: Vec<Open>,
    page: Option<UnderWay>,
    /// Whether a wake-up is pending.
    wakes: bool,
}

/// An open connection.
#[derive(Clone, Copy, Debug)]
struct Open {
    serial: u32,
    /// Whether an object has been requested that has not yet arrived.
    is_busy: bool,
}

/// A page that is being fetched.
#[derive(Clone, Debug)]
struct UnderWay {
    objects: Range<usize>,
    /// The next object to request.
    next: usize,
    /// Number of objects that have been requested and have neither arrived nor failed.
    under_way: u32,
    /// Whether the page is over, and its connections are being closed.
    closes: bool,
    began: Instant,
    /// The time of the latest arrival or failure.
    latest: Instant,
    failed: bool,
    opened_connection: bool,
}

impl ListedUsers {
    /// The version of this part, incremented whenever a change to it changes a result.
    pub const VERSION: u32 = 1;

    /// Creates users whose first pages begin at these times (one for each user, latest first), with at most
    /// `parallel` connections each, at least one. Connections close with their page, unless they are kept.
    pub fn new(
        starts: Vec<(Instant, u32)>,
        list: Arc<PageList>,
        parallel: usize,
        keeps_connections: bool,
    ) -> Self {
        let users = alloc::vec![User::default(); starts.len()];
        ListedUsers { firsts: Starts::new(starts), list, parallel, keeps_connections, users }
    }

    pub(crate) fn begin(&self) -> Option<Wake> {
        self.firsts.next()
    }

    pub(crate) fn on_wake(&mut self, wake: Wake) -> Woken {
        let ListedUsers { firsts, list, parallel, users, .. } = self;
        let user = &mut users[wake.user as usize];
        user.wakes = false;
        let mut next = None;
        let page = match &mut user.page {
            Some(page) if page.closes => return self.close_next(wake),
            Some(page) => page,
            none => {
                // The first pages of all users form a list: the wake-up for each of them requests the wake-up for
                // the next.
                if user.pages == 0 {
                    next = firsts.on_wake(wake).wake;
                }
                let number = list.pages_of(wake.user as usize).start + user.pages as usize;
                user.pages += 1;
                none.insert(UnderWay::new(list.objects_of(number), wake.at))
            }
        };
        let object = list.objects[page.next];
        let is_document = page.next == page.objects.start;
        page.next += 1;
        page.under_way += 1;
        let free = user.connections.iter_mut().find(|open| !open.is_busy);
        let woken = match free {
            Some(open) => {
                open.is_busy = true;
                let of = Identity { user: wake.user, serial: open.serial };
                Woken::Asks { of, objects: alloc::vec![object], wake: None }
            }
            None => {
                let of = Identity { user: wake.user, serial: user.opened };
                user.connections.push(Open { serial: user.opened, is_busy: true });
                user.opened = user.opened.wrapping_add(1);
                page.opened_connection |= is_document;
                Woken::Opens(Opening {
                    content: Content::Objects(alloc::vec![object]),
                    ..Opening::of(of, None)
                })
            }
        };
        if !is_document && user.has_more_to_ask(*parallel) {
            user.wakes = true;
            next = Some(wake);
        }
        woken.waking(next)
    }

    /// Closes the oldest connection of a page that is over; after closing the last one, the user thinks.
    fn close_next(&mut self, wake: Wake) -> Woken {
        let user = &mut self.users[wake.user as usize];
        let open = user.connections.remove(0);
        let of = Identity { user: wake.user, serial: open.serial };
        user.wakes = !user.connections.is_empty();
        let wake = if user.wakes { Some(wake) } else { self.think(wake.at, wake.user) };
        Woken::Closes { of, wake }
    }

    /// Lets the user think from this instant on, and returns the wake-up for the next page, if there is one.
    fn think(&mut self, from: Instant, of: u32) -> Option<Wake> {
        let user = &mut self.users[of as usize];
        user.page = None;
        let number = self.list.pages_of(of as usize).nth(user.pages as usize)?;
        Some(Wake { at: from.saturating_add(self.list.pages[number].think), user: of })
    }

    pub(crate) fn on_event(&mut self, now: Instant, of: Identity, event: ConnectionEvent) -> Reaction {
        let user = &mut self.users[of.user as usize];
        let Some(place) = user.connections.iter().position(|open| open.serial == of.serial) else {
            return Reaction::default();
        };
        // Connections of a page that is over close in any case.
        if user.page.as_ref().is_some_and(|page| page.closes) {
            return Reaction::default();
        }
        let (was_busy, fails) = match event {
            ConnectionEvent::Opened => return Reaction::default(),
            ConnectionEvent::ExchangeDone(_) => {
                (core::mem::take(&mut user.connections[place].is_busy), false)
            }
            ConnectionEvent::Closed | ConnectionEvent::Failed => {
                (user.connections.remove(place).is_busy, true)
            }
        };
        let Some(page) = user.page.as_mut().filter(|_| was_busy) else { return Reaction::default() };
        page.under_way -= 1;
        page.latest = page.latest.max(now);
        page.failed |= fails;
        if fails && page.next == page.objects.start + 1 {
            page.next = page.objects.end; // without the document, nothing is known of the other objects
        }
        if page.under_way == 0 && page.next == page.objects.end {
            return self.page_over(of.user);
        }
        if user.wakes || !user.has_more_to_ask(self.parallel) {
            return Reaction::default();
        }
        user.wakes = true;
        Reaction { wake: Some(Wake { at: now, user: of.user }), page: None }
    }

    /// Ends the page; its connections close, or the user thinks.
    fn page_over(&mut self, of: u32) -> Reaction {
        let user = &mut self.users[of as usize];
        let page = user.page.as_mut().expect("a page is over");
        let (ended, latest) = (page.as_ended(of, user.pages, &self.list), page.latest);
        let wake = if user.connections.is_empty() || self.keeps_connections {
            self.think(latest, of)
        } else {
            (page.closes, user.wakes) = (true, true);
            Some(Wake { at: latest, user: of })
        };
        Reaction { wake, page: Some(ended) }
    }

    /// Ends, at `now`, all pages that are in progress, and returns their outcomes.
    pub(crate) fn give_up(&mut self, now: Instant) -> Vec<PageEnded> {
        let list = &self.list;
        let ended = self.users.iter_mut().enumerate().filter_map(|(index, user)| {
            let page = user.page.take().filter(|page| !page.closes)?;
            Some(PageEnded { at: now, ..page.as_ended(index as u32, user.pages, list) })
        });
        ended.collect()
    }

    /// Returns the memory of the users, without that of the list, which all runs of a plan share.
    pub(crate) fn memory_bytes(&self) -> usize {
        let connections = self.users.iter().map(|user| user.connections.capacity() * size_of::<Open>());
        self.firsts.memory_bytes() + size_of_val(&*self.users) + connections.sum::<usize>()
    }
}

impl User {
    /// Returns whether the page has an object that can be requested now.
    fn has_more_to_ask(&self, parallel: usize) -> bool {
        let is_left = self.page.as_ref().is_some_and(|page| page.next < page.objects.end);
        is_left && (self.connections.len() < parallel || self.connections.iter().any(|open| !open.is_busy))
    }
}

impl UnderWay {
    const fn new(objects: Range<usize>, began: Instant) -> Self {
        UnderWay {
            next: objects.start,
            objects,
            under_way: 0,
            closes: false,
            began,
            latest: began,
            failed: false,
            opened_connection: false,
        }
    }

    /// Returns the page's outcome; `pages` is the number of pages that the user has begun.
    fn as_ended(&self, user: u32, pages: u32, list: &PageList) -> PageEnded {
        let objects = &list.objects[self.objects.clone()];
        let sum = |of: fn(&PageObject) -> u64| Bytes::new(objects.iter().map(of).sum());
        PageEnded {
            user,
            number: pages - 1,
            objects: objects.len() as u32,
            opened_connection: self.opened_connection,
            began: self.began,
            at: self.latest,
            request: sum(|object| object.request),
            weight: sum(|object| object.response),
            failed: self.failed,
        }
    }
}
