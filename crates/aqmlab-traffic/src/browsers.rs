//! Users with browsers from around 2000: one page at a time, over parallel connections,
//! with one request at a time on each.
//!
//! The structure is that of the UNC model of HTTP traffic: F. D. Smith, F. Hernandez Campos, K.
//! Jeffay, D. Ott, "What TCP/IP Protocol Headers Can Tell Us About the Web", SIGMETRICS 2001. Its
//! variables are drawn from the distributions of a [`BrowserPlan`]; each connection draws the bytes
//! of its requests and responses separately ([`crate::ExchangePlan`]).

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use aqmlab_random::Stream;
use aqmlab_units::{Bytes, Instant};
use schemars::JsonSchema;
use serde::Serialize;

use crate::distribution::Distribution;
use crate::opening::{ConnectionEvent, Content, Identity, Opening, Reaction, Wake};
use crate::pages::PageEnded;
use crate::quantity::Count;
use crate::starts::Starts;
use crate::step::ExchangeDone;

/// The contents of the pages of a class, and the way in which browsers fetch them.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct BrowserPlan {
    /// Time from the end of a user's page to the beginning of the user's next page.
    #[serde(rename = "think_ns")]
    pub think: Distribution,
    /// Number of objects in a page, not counting its document.
    pub embedded: Distribution<Count>,
    /// Number of servers of a page; its objects are divided evenly among them.
    pub servers: Distribution<Count>,
    /// Largest number of connections that a page has open at the same time.
    pub parallel: Distribution<Count>,
    /// The share of connections that are persistent; each of the others carries one object, as in HTTP/1.0.
    pub persistent: f64,
    /// Number of objects that a persistent connection carries, unless its server has fewer objects left.
    pub per_persistent: Distribution<Count>,
}

/// Identifies one of a page's draws by its position in the page's stream.
#[derive(Clone, Copy)]
enum OfPage {
    Embedded = 0,
    Servers = 1,
    Parallel = 2,
    /// The first draw of the page's first connection; each connection has two draws.
    Connections = 3,
}

impl BrowserPlan {
    /// The version of this part, incremented whenever a change to it changes a result.
    pub const VERSION: u32 = 1;

    /// Draws page number `page` of the user whose family of draws is `draws`. Writes to
    /// `connections` the number of objects on each of the page's connections, in the order in which
    /// the connections open, and returns how many of them may be open at the same time.
    ///
    /// The connections to one server are consecutive. The document is the first object of the first
    /// server.
    pub fn draw(&self, user: u32, page: u32, draws: &Stream, connections: &mut Vec<u32>) -> usize {
        connections.clear();
        let index = u64::from(user) + u64::from(page);
        let own = draws.member(page.into());
        let draw =
            |of: &Distribution<Count>, which: OfPage| of.draw(index, &mut own.from_draw(which as u64)).0;
        let objects = draw(&self.embedded, OfPage::Embedded).saturating_add(1).min(u32::MAX.into()) as u32;
        let servers = draw(&self.servers, OfPage::Servers).clamp(1, objects.into()) as u32;
        for server in 0..servers {
            let mut left = objects / servers + u32::from(server < objects % servers);
            while left > 0 {
                let first_draw = OfPage::Connections as u64 + 2 * connections.len() as u64;
                let mut of_connection = own.from_draw(first_draw);
                let carried = if of_connection.hit(self.persistent) {
                    let most = self.per_persistent.draw(index, &mut of_connection).0;
                    most.clamp(1, left.into()) as u32
                } else {
                    1
                };
                connections.push(carried);
                left -= carried;
            }
        }
        usize::try_from(draw(&self.parallel, OfPage::Parallel)).unwrap_or(usize::MAX).max(1)
    }
}

/// Users who fetch one page after another and think in between. The document comes first, alone.
/// Then the page's connections open in parallel. With `n` connections in parallel, connection `i`
/// opens when the last response on connection `i - n` has arrived or that connection has failed.
/// The page ends with its last object, and counts as failed if one of its connections has failed;
/// if the document does not arrive, the page ends immediately.
///
/// Once the document has arrived, what happens on one of the parallel connections never depends on the
/// others. A host may therefore report the events of a user's connections in any order without affecting the
/// user. A user may have several wake-ups pending.
#[derive(Clone, Debug)]
pub struct Browsers {
    firsts: Starts,
    plan: Arc<BrowserPlan>,
    /// Member i of this family draws the pages of user i.
    pages: Stream,
    /// Member i of this family draws the thinking times of user i.
    thoughts: Stream,
    users: Vec<User>,
    /// Memory of pages that have ended, reused for later pages.
    #[expect(clippy::vec_box, reason = "each user holds a pointer, so only the pointer is moved")]
    spare: Vec<Box<UnderWay>>,
}

/// The state of one user, kept to sixteen bytes while the user is idle, because there may be many
/// users.
#[derive(Clone, Default, Debug)]
struct User {
    /// Number of connections of all pages begun so far, whether opened or not.
    connections: u32,
    /// Number of pages begun so far.
    pages: u32,
    page: Option<Box<UnderWay>>,
}

/// A page that is being fetched.
#[derive(Clone, Default, Debug)]
struct UnderWay {
    /// The serial number of its first connection.
    first: u32,
    /// Number of objects on each of its connections.
    connections: Vec<u32>,
    /// Its parallel connections.
    lanes: Vec<Lane>,
    /// Number of wake-ups still to be requested. All are for the same instant, and each is requested when the
    /// previous one occurs.
    further_wakes: u32,
    /// Number of objects that have neither arrived nor failed.
    left: u32,
    began: Instant,
    /// The time of the latest arrival or failure.
    latest: Instant,
    /// Bytes of requests whose responses have arrived.
    request: Bytes,
    response: Bytes,
    failed: bool,
}

/// A place for one of a page's parallel connections. When the connection ends, another connection
/// of the page may open in the same place.
#[derive(Clone, Copy, Debug)]
struct Lane {
    /// The number, within the page, of the connection that is open or opens next; a number beyond that of the
    /// last connection means that there is none.
    connection: usize,
    /// When the connection is to open; `None` once it has opened.
    opens: Option<Instant>,
    /// Number of objects that have arrived on this connection.
    arrived: u32,
}

impl Browsers {
    /// Creates users whose first pages begin at these times (one for each user, latest first). Each
    /// user's pages and thinking times are drawn from the user's members of the families `pages`
    /// and `thoughts`.
    pub fn new(starts: Vec<(Instant, u32)>, plan: Arc<BrowserPlan>, pages: Stream, thoughts: Stream) -> Self {
        let users = alloc::vec![User::default(); starts.len()];
        Browsers { firsts: Starts::new(starts), plan, pages, thoughts, users, spare: Vec::new() }
    }

    pub(crate) fn begin(&self) -> Option<Wake> {
        self.firsts.next()
    }

    /// Opens a connection: either the first of a page, or one that is due.
    pub(crate) fn on_wake(&mut self, wake: Wake) -> Opening {
        let user = &mut self.users[wake.user as usize];
        let mut next = None;
        if user.page.is_none() {
            let mut page = self.spare.pop().unwrap_or_else(|| Box::new(UnderWay::with_room_for(&self.plan)));
            let draws = self.pages.member(wake.user.into());
            let parallel = self.plan.draw(wake.user, user.pages, &draws, &mut page.connections);
            page.begin(user.connections, parallel, wake.at);
            // The first pages of all users form a list: the wake-up for each of them requests the wake-up for
            // the next.
            if user.pages == 0 {
                next = self.firsts.on_wake(wake).wake;
            }
            user.connections = user.connections.wrapping_add(page.connections.len() as u32);
            user.pages = user.pages.wrapping_add(1);
            user.page = Some(page);
        }
        let page = user.page.as_mut().expect("the page has just begun, or is in progress");
        if page.further_wakes > 0 {
            page.further_wakes -= 1;
            next = Some(wake);
        }
        let due = page.lanes.iter_mut().find(|lane| lane.opens == Some(wake.at));
        let lane = due.expect("a wake-up belongs to a connection that is due");
        (lane.opens, lane.arrived) = (None, 0);
        let open = Identity { user: wake.user, serial: page.first.wrapping_add(lane.connection as u32) };
        Opening { content: Content::Counted(page.connections[lane.connection]), ..Opening::of(open, next) }
    }

    pub(crate) fn on_event(&mut self, now: Instant, of: Identity, event: ConnectionEvent) -> Reaction {
        let user = &mut self.users[of.user as usize];
        let Some(page) = user.page.as_mut() else { return Reaction::default() };
        let connection = of.serial.wrapping_sub(page.first) as usize;
        let lanes = page.lanes.len();
        // A connection whose exchanges are over still reports that both ends have closed; such a
        // report is ignored.
        let lane = connection % lanes;
        if page.lanes[lane].connection != connection || page.lanes[lane].opens.is_some() {
            return Reaction::default();
        }
        let mut due = 0;
        match event {
            ConnectionEvent::Opened => return Reaction::default(),
            ConnectionEvent::ExchangeDone(done) => {
                page.arrived(lane, &done);
                if connection == 0 && done.number == 0 {
                    due += (1..lanes).map(|lane| page.open_at(lane, lane, now)).sum::<u32>();
                }
                if done.last {
                    due += page.open_at(lane, connection + lanes, now);
                }
            }
            ConnectionEvent::Closed | ConnectionEvent::Failed => {
                let arrived = page.lanes[lane].arrived;
                page.failed = true;
                if connection == 0 && arrived == 0 {
                    page.left = 0;
                } else {
                    page.left -= page.connections[connection] - arrived;
                    due += page.open_at(lane, connection + lanes, now);
                }
            }
        }
        page.latest = page.latest.max(now);
        page.further_wakes += due.saturating_sub(1);
        if page.left == 0 {
            return self.page_over(of.user);
        }
        Reaction { wake: (due > 0).then_some(Wake { at: now, user: of.user }), page: None }
    }

    /// Ends the page; the user then thinks.
    fn page_over(&mut self, of: u32) -> Reaction {
        let user = &mut self.users[of as usize];
        let page = user.page.take().expect("a page is over");
        let number = user.pages.wrapping_sub(1);
        let ended = page.as_ended(of, number);
        self.spare.push(page);
        let mut draws = self.thoughts.member(of.into()).from_draw(number.into());
        let think = self.plan.think.draw(u64::from(of) + u64::from(number), &mut draws);
        let wake = Wake { at: ended.at.saturating_add(think), user: of };
        Reaction { wake: Some(wake), page: Some(ended) }
    }

    /// Ends, at `now`, all pages that are in progress, and returns their outcomes.
    pub(crate) fn give_up(&mut self, now: Instant) -> Vec<PageEnded> {
        let ended = self.users.iter_mut().enumerate().filter_map(|(index, user)| {
            let page = user.page.take()?;
            Some(PageEnded { at: now, ..page.as_ended(index as u32, user.pages.wrapping_sub(1)) })
        });
        ended.collect()
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let of_page = |page: &UnderWay| {
            let (lanes, connections) = (page.lanes.capacity(), page.connections.capacity());
            size_of::<UnderWay>() + lanes * size_of::<Lane>() + connections * size_of::<u32>()
        };
        let under_way = self.users.iter().filter_map(|user| user.page.as_deref());
        let pages = under_way.chain(self.spare.iter().map(|page| &**page)).map(of_page).sum::<usize>();
        self.firsts.memory_bytes() + size_of_val(&*self.users) + pages
    }
}

impl UnderWay {
    /// Allocates enough memory for almost any page, so that it rarely has to grow.
    fn with_room_for(plan: &BrowserPlan) -> Self {
        let room = |of: &Distribution<Count>, factor: u64| {
            (of.mean().0.saturating_add(1) * factor).min(1000) as usize
        };
        UnderWay {
            connections: Vec::with_capacity(room(&plan.embedded, 6)),
            lanes: Vec::with_capacity(room(&plan.parallel, 2)),
            ..UnderWay::default()
        }
    }

    /// Schedules the page's first connection, whose serial number is `first`, for `now`. The page's
    /// connections must already have been drawn.
    fn begin(&mut self, first: u32, parallel: usize, now: Instant) {
        let lane = |connection| Lane { connection, opens: None, arrived: 0 };
        self.lanes.clear();
        self.lanes.extend((0..parallel.min(self.connections.len())).map(lane));
        self.lanes[0].opens = Some(now);
        (self.first, self.further_wakes, self.failed) = (first, 0, false);
        self.left = self.connections.iter().sum();
        (self.began, self.latest) = (now, now);
        (self.request, self.response) = (Bytes::ZERO, Bytes::ZERO);
    }

    /// Records the arrival of an object on a lane.
    fn arrived(&mut self, lane: usize, done: &ExchangeDone) {
        self.lanes[lane].arrived += 1;
        self.left -= 1;
        self.request += done.request;
        self.response += done.response;
    }

    /// Schedules the opening of a lane's next connection at `at`, if there is one. Returns the
    /// number of connections scheduled (0 or 1).
    fn open_at(&mut self, lane: usize, connection: usize, at: Instant) -> u32 {
        let opens = (connection < self.connections.len()).then_some(at);
        self.lanes[lane] = Lane { connection, opens, arrived: 0 };
        u32::from(opens.is_some())
    }

    fn as_ended(&self, user: u32, number: u32) -> PageEnded {
        PageEnded {
            user,
            number,
            objects: self.connections.iter().sum(),
            opened_connection: true,
            began: self.began,
            at: self.latest,
            request: self.request,
            weight: self.response,
            failed: self.failed,
        }
    }
}
