//! Users with browsers: the composition of their pages is compared with values computed from the
//! distributions, and the order in which they open connections must not depend on the order in which events
//! are reported.
use std::sync::Arc;

use aqmlab_random::Stream;
use aqmlab_traffic::{
    BrowserPlan, Browsers, ConnectionEvent, Content, Count, Distribution, ExchangeDone, Identity, Opening,
    Population, Reaction, Wake, Woken,
};
use aqmlab_units::{Bytes, Instant, Span};

const MANY: u64 = 1_000_000_000;

fn constant(count: u64) -> Distribution<Count> {
    Distribution::Constant(Count(count))
}

fn plan() -> BrowserPlan {
    BrowserPlan {
        embedded: constant(5),
        servers: constant(1),
        parallel: constant(2),
        persistent: 0.0,
        per_persistent: constant(MANY),
        think: Distribution::Constant(Span::s(7)),
    }
}

/// Draws this many pages; returns, for each page, its connections and the number of them that may be open at
/// once.
fn pages(plan: &BrowserPlan, count: u32) -> Vec<(Vec<u32>, usize)> {
    let draws = Stream::new(11, "pages");
    let mut connections = Vec::new();
    let page = |page| {
        let parallel =
            plan.draw(page % 100, page / 100, &draws.member(u64::from(page % 100)), &mut connections);
        (connections.clone(), parallel)
    };
    (0..count).map(page).collect()
}

#[test]
fn what_is_not_persistent_carries_one_object_each_and_what_is_carries_the_rest_of_its_server() {
    let of = |persistent, servers, per_persistent| {
        let plan = BrowserPlan {
            persistent,
            servers: constant(servers),
            per_persistent: constant(per_persistent),
            ..plan()
        };
        let page = pages(&plan, 1).remove(0);
        assert_eq!(page.1, 2);
        page.0
    };
    assert_eq!(of(0.0, 1, MANY), [1; 6], "HTTP/1.0");
    assert_eq!(of(1.0, 1, MANY), [6]);
    assert_eq!(of(1.0, 1, 4), [4, 2]);
    assert_eq!(of(1.0, 4, MANY), [2, 2, 1, 1], "servers share the objects evenly");
    assert_eq!(of(1.0, 4, 1), [1; 6]);
    assert_eq!(of(1.0, 100, MANY), [1; 6], "every server has an object");
}

#[test]
fn objects_on_shared_connections_are_those_of_the_theory() {
    // An exponential variable of mean m, rounded, is at least k >= 1 with probability exp(-(k - 1/2) / m):
    // given that some objects are left, their number is geometric with ratio r, no matter how many have been
    // fetched. From any moment at which objects are left, a page therefore opens c = 1 + (1 - p) r c more
    // connections on average.
    let (m, p) = (4.0f64, 0.3);
    let (r, some) = (libm::exp(-1.0 / m), libm::exp(-0.5 / m));
    let objects = 1.0 + some / (1.0 - r);
    let per_page = 1.0 + (1.0 - p) * some / (1.0 - (1.0 - p) * r);
    let shared = p * (objects - (1.0 - some))
        + (1.0 - p) * some * p * (1.0 / (1.0 - r) - (1.0 - r)) / (1.0 - (1.0 - p) * r);

    let embedded = Distribution::Exponential { mean: Count(4), offset: Count(0) };
    let drawn = pages(&BrowserPlan { embedded, persistent: p, ..plan() }, 200_000);
    let n = drawn.len() as f64;
    let sum = |of: &dyn Fn(&[u32]) -> f64| drawn.iter().map(|(page, _)| of(page)).sum::<f64>() / n;
    let shared_of = |page: &[u32]| f64::from(page.iter().filter(|&&n| n > 1).sum::<u32>());
    // The tolerance is five standard errors, estimated from the variation between pages.
    let close = |of: &dyn Fn(&[u32]) -> f64, expected: f64| {
        let (mean, square) = (sum(of), sum(&|page| of(page) * of(page)));
        let error = ((square - mean * mean) / n).sqrt();
        assert!((mean - expected).abs() < 5.0 * error, "{mean}, not {expected} (+- {error})");
    };
    close(&|page| f64::from(page.iter().sum::<u32>()), objects);
    close(&|page| page.len() as f64, per_page);
    close(&shared_of, shared);
    close(&|page| f64::from(u8::from(page == [1])), 1.0 - some);
}

#[test]
fn variables_of_a_page_are_independent_draws() {
    let uniform = |low, high| Distribution::Uniform { low: Count(low), high: Count(high) };
    let of = |persistent| {
        let plan = BrowserPlan { embedded: uniform(0, 9), parallel: uniform(2, 4), persistent, ..plan() };
        pages(&plan, 9000)
    };
    let (without, with) = (of(0.0), of(0.5));
    for ((few, a), (many, b)) in without.iter().zip(&with) {
        assert_eq!(
            (few.iter().sum::<u32>(), a),
            (many.iter().sum::<u32>(), b),
            "the contents of a page do not change"
        );
    }
    for parallel in 2..=4 {
        let count = without.iter().filter(|page| page.1 == parallel).count();
        assert!(count.abs_diff(3000) < 5 * 45, "{count} of 9000 have {parallel}");
    }
}

fn at_ms(ms: u64) -> Instant {
    Instant::ZERO + Span::ms(ms)
}

fn users(plan: BrowserPlan) -> Population {
    let draws = |what: &str| Stream::new(5, what);
    let starts = vec![(at_ms(20), 1), (at_ms(10), 0)];
    Population::Browsers(Box::new(Browsers::new(starts, Arc::new(plan), draws("pages"), draws("think"))))
}

fn open(population: &mut Population, wake: Wake) -> Opening {
    match population.on_wake(wake) {
        Woken::Opens(opening) => opening,
        other => panic!("{other:?}"),
    }
}

/// Returns the number of exchanges that a user determines.
fn exchanges(opening: &Opening) -> u32 {
    match opening.content {
        Content::Counted(count) => count,
        ref other => panic!("{other:?}"),
    }
}

/// Opens the connection for which `reaction` requests a wake-up, and all others due at the same instant.
/// Returns the serial number of each and its number of exchanges.
fn opened(population: &mut Population, reaction: Reaction) -> Vec<(u32, u32)> {
    let (mut found, mut next) = (Vec::new(), reaction.wake);
    while let Some(wake) = next {
        let opening = open(population, wake);
        found.push((opening.open.serial, exchanges(&opening)));
        next = opening.wake;
        assert!(next.is_none_or(|next| next == wake), "{next:?}");
    }
    found
}

fn done(number: u32, last: bool) -> ConnectionEvent {
    ConnectionEvent::ExchangeDone(ExchangeDone {
        number,
        request: Bytes::new(100),
        response: Bytes::new(1000),
        began: Instant::ZERO,
        opened_connection: number == 0,
        last,
    })
}

const fn of(serial: u32) -> Identity {
    Identity { user: 0, serial }
}

#[test]
fn the_document_comes_alone_and_then_so_many_connections_at_a_time() {
    let mut population = users(plan());
    let first = population.begin().expect("a first page");
    assert_eq!(first, Wake { at: at_ms(10), user: 0 });
    let document = open(&mut population, first);
    assert_eq!((document.open, exchanges(&document)), (of(0), 1));
    assert_eq!(document.wake, Some(Wake { at: at_ms(20), user: 1 }), "the other's first page");
    assert_eq!(population.on_event(at_ms(20), of(0), ConnectionEvent::Opened), Reaction::default());
    let reaction = population.on_event(at_ms(30), of(0), done(0, true));
    assert_eq!(opened(&mut population, reaction), [(2, 1), (1, 1)]);
    assert_eq!(population.on_event(at_ms(31), of(0), ConnectionEvent::Closed), Reaction::default());
    // Connection n opens when connection n - 2 is over.
    let reaction = population.on_event(at_ms(50), of(1), done(0, true));
    assert_eq!(opened(&mut population, reaction), [(3, 1)]);
    let reaction = population.on_event(at_ms(70), of(3), done(0, true));
    assert_eq!(opened(&mut population, reaction), [(5, 1)]);
    assert_eq!(population.on_event(at_ms(90), of(5), done(0, true)), Reaction::default());
    let reaction = population.on_event(at_ms(200), of(2), done(0, true));
    assert_eq!(opened(&mut population, reaction), [(4, 1)]);
    let Reaction { wake, page: Some(page) } = population.on_event(at_ms(300), of(4), done(0, true)) else {
        panic!("the page is over")
    };
    assert_eq!((page.number, page.objects, page.began, page.at), (0, 6, at_ms(10), at_ms(300)));
    assert_eq!((page.request, page.weight), (Bytes::new(600), Bytes::new(6000)));
    assert!(!page.failed && page.opened_connection);
    assert_eq!(wake, Some(Wake { at: at_ms(7300), user: 0 }), "the user thinks for 7 s");
    let next = open(&mut population, wake.expect("just seen"));
    assert_eq!((next.open, next.wake), (of(6), None));
}

#[test]
fn a_persistent_connection_goes_on_with_the_page_beside_the_others() {
    let plan = BrowserPlan { persistent: 1.0, per_persistent: constant(3), ..plan() };
    let mut population = users(plan);
    assert_eq!(exchanges(&open(&mut population, Wake { at: at_ms(10), user: 0 })), 3);
    let reaction = population.on_event(at_ms(30), of(0), done(0, false));
    assert_eq!(opened(&mut population, reaction), [(1, 3)], "the rest, when the document has arrived");
    for number in 1..3 {
        let at = at_ms(40 + u64::from(number));
        assert_eq!(population.on_event(at, of(0), done(number, number == 2)), Reaction::default());
        assert_eq!(population.on_event(at, of(1), done(number - 1, false)), Reaction::default());
    }
    assert!(population.on_event(at_ms(60), of(1), done(2, true)).page.is_some());
}

/// The order in which a host reports events of several connections has no effect.
#[test]
fn news_may_come_in_any_order() {
    let (mut forth, mut back) = (users(plan()), users(plan()));
    let news = [(at_ms(45), of(1)), (at_ms(50), of(2))];
    let mut orders = [news, news];
    orders[1].reverse();
    for (population, order) in [(&mut forth, orders[0]), (&mut back, orders[1])] {
        open(population, Wake { at: at_ms(10), user: 0 });
        let reaction = population.on_event(at_ms(30), of(0), done(0, true));
        opened(population, reaction);
        let mut wakes: Vec<Wake> =
            order.iter().filter_map(|&(at, of)| population.on_event(at, of, done(0, true)).wake).collect();
        assert_eq!(wakes.len(), 2);
        wakes.sort_by_key(|wake| wake.at);
        let serials: Vec<_> = wakes.iter().map(|&wake| open(population, wake).open.serial).collect();
        assert_eq!(serials, [3, 4]);
    }
}

#[test]
fn a_page_without_its_document_ends_and_one_without_another_object_goes_on() {
    let mut population = users(plan());
    open(&mut population, Wake { at: at_ms(10), user: 0 });
    let Reaction { wake: Some(wake), page: Some(page) } =
        population.on_event(at_ms(90), of(0), ConnectionEvent::Failed)
    else {
        panic!("there is no page without its document")
    };
    assert!(page.failed && page.weight.is_zero());
    assert_eq!(wake.at, at_ms(7090));
    let second = open(&mut population, wake).open;
    assert_eq!(second.serial, 6);
    let after = |ms| wake.at + Span::ms(ms);
    let reaction = population.on_event(after(1), second, done(0, true));
    assert_eq!(opened(&mut population, reaction).len(), 2);
    let failed = population.on_event(after(2), of(7), ConnectionEvent::Failed);
    assert_eq!(opened(&mut population, failed), [(9, 1)], "the next one replaces it");
    let mut ended = None;
    for (serial, ms) in [(9, 3), (8, 4), (11, 5), (10, 6)] {
        let reaction = population.on_event(after(ms), of(serial), done(0, true));
        ended = ended.or(reaction.page);
        if reaction.page.is_none() {
            opened(&mut population, reaction);
        }
    }
    let page = ended.expect("nothing is left");
    assert!(page.failed && page.number == 1);
    assert_eq!(page.weight, Bytes::new(5000));
    assert_eq!(population.give_up_pages(after(7)).len(), 0, "he thinks");
}

#[test]
fn a_user_at_rest_takes_little_memory() {
    let starts = (0..100_000).rev().map(|i| (at_ms(i.into()), i)).collect();
    let draws = |what: &str| Stream::new(5, what);
    let mut population = Population::Browsers(Box::new(Browsers::new(
        starts,
        Arc::new(plan()),
        draws("pages"),
        draws("think"),
    )));
    population.begin();
    assert!(
        population.memory_bytes() / 100_000 <= 64,
        "{} bytes per user",
        population.memory_bytes() / 100_000
    );
}
