//! Web pages: the draws compared with the published quantiles, the data on a multiplexed
//! connection, and the times at which users act.

use std::sync::Arc;

use aqmlab_random::Stream;
use aqmlab_traffic::{
    Act, ConnectionEvent, Content, Count, Device, Distribution, End, ExchangeDone, Identity, ObjectType,
    Opening, Page, PageObject, PagePlan, PageUsers, Population, Reaction, Session, StreamPosition, Wake,
    Woken,
};
use aqmlab_units::{Bytes, Instant, Span};

const PAGES: u32 = 100_000;
const SHARES: [f64; 5] = [0.1, 0.25, 0.5, 0.75, 0.9];

fn plan(device: Device) -> PagePlan {
    PagePlan {
        device,
        weight: None,
        objects: None,
        correlation: 0.6,
        shares: [0.3, 0.11, 0.05, 0.22],
        waves: 3,
        origins: Distribution::Uniform { low: Count(1), high: Count(10) },
        request: Distribution::Constant(Bytes::new(500)),
        server_delay: Distribution::Constant(Span::ZERO),
        parse: Distribution::Constant(Span::ms(5)),
        think: Distribution::Constant(Span::s(7)),
        keeps_connections: false,
    }
}

fn pages(plan: &PagePlan) -> impl Iterator<Item = Page> {
    let draws = Stream::new(11, "pages");
    (0..PAGES).map(move |page| plan.draw(0, page, &draws))
}

fn weight(page: &Page) -> u64 {
    page.objects.iter().map(|object| object.response).sum()
}

/// For each quantile, compares the number of `values` below it with the expected number. Returns
/// the differences, in standard deviations of a binomial variable.
fn deviations(values: &[u64], quantiles: [u64; 5]) -> [f64; 5] {
    let n = values.len() as f64;
    let mut result = [0.0; 5];
    for ((share, quantile), deviation) in SHARES.iter().zip(quantiles).zip(&mut result) {
        let below = values.iter().filter(|&&value| value < quantile).count() as f64;
        let at = values.iter().filter(|&&value| value == quantile).count() as f64;
        // A whole number represents all values that are rounded to it.
        *deviation = (below + at / 2.0 - n * share) / (n * share * (1.0 - share)).sqrt();
    }
    result
}

#[test]
fn weights_and_numbers_of_objects_have_the_published_quantiles() {
    let published = [
        (Device::Desktop, [607, 1275, 2412, 4570, 9179], [27, 46, 77, 122, 185]),
        (Device::Mobile, [516, 1127, 2164, 4119, 8337], [25, 42, 72, 116, 179]),
    ];
    for (device, kilobytes, requests) in published {
        let (weights, counts): (Vec<u64>, Vec<u64>) =
            pages(&plan(device)).map(|page| (weight(&page), page.objects.len() as u64)).unzip();
        for (what, found) in [
            ("weight", deviations(&weights, kilobytes.map(|kilobytes| kilobytes * 1024))),
            ("requests", deviations(&counts, requests)),
        ] {
            println!("{device:?} {what}: {found:.1?} standard deviations");
            // At the 10th percentile, rounding to whole requests increases the deviation by only a small part
            // of a standard deviation.
            assert!(found.iter().all(|of| of.abs() < 4.0), "{device:?} {what}: {found:?}");
        }
        assert!(*weights.iter().max().expect("there are pages") < 1 << 28, "the extrapolation is bounded");
    }
}

#[test]
fn weight_and_number_of_objects_are_rank_correlated_as_asked() {
    for asked in [-0.5, 0.0, 0.6, 1.0] {
        let plan = PagePlan { correlation: asked, ..plan(Device::Desktop) };
        let mut drawn: Vec<(u64, usize)> =
            pages(&plan).take(20_000).map(|page| (weight(&page), page.objects.len())).collect();
        drawn.sort_unstable();
        let mut by_count: Vec<usize> = (0..drawn.len()).collect();
        by_count.sort_by_key(|&page| (drawn[page].1, page));
        let n = drawn.len() as f64;
        let squares: f64 =
            by_count.iter().enumerate().map(|(rank, &page)| (rank as f64 - page as f64).powi(2)).sum();
        let spearman = 1.0 - 6.0 * squares / (n * (n * n - 1.0));
        assert!((spearman - asked).abs() < 0.02, "{asked}: {spearman}");
    }
}

#[test]
fn types_have_their_shares_and_waves_and_origins_follow() {
    let plan = PagePlan { origins: Distribution::Constant(Count(4)), ..plan(Device::Mobile) };
    let (mut waves, mut origins, mut embedded) = ([0_u64; 3], [0_u64; 4], 0_u64);
    for page in pages(&plan).take(20_000) {
        assert!(page.objects.is_sorted_by_key(|object| (object.wave, object.origin)));
        let (first, rest) = page.objects.split_first().expect("a document");
        assert_eq!((first.wave, first.origin), (0, 0));
        assert!(rest.iter().all(|object| object.wave > 0 && object.response > 0));
        embedded += rest.len() as u64;
        for object in rest {
            waves[usize::from(object.wave)] += 1;
            origins[usize::from(object.origin)] += 1;
        }
    }
    let share = |of: u64| of as f64 / embedded as f64;
    assert!((share(waves[1]) - 0.46).abs() < 0.003, "{waves:?}");
    assert!(origins.iter().all(|&of| (share(of) - 0.25).abs() < 0.003), "{origins:?}");
    assert_eq!([ObjectType::Font, ObjectType::Data].map(ObjectType::wave), [1, 2]);
}

#[test]
fn sizes_add_up_to_the_weight_to_the_byte_and_depth_is_a_setting() {
    let of = |weight, objects, waves| PagePlan {
        weight: Some(Distribution::Constant(Bytes::new(weight))),
        objects: Some(Distribution::Constant(Count(objects))),
        waves,
        ..plan(Device::Desktop)
    };
    for page in pages(&of(1_234_567, 70, 2)).take(500) {
        assert_eq!((weight(&page), page.objects.len()), (1_234_567, 70));
        assert_eq!(page.objects.iter().filter(|object| object.wave == 0).count(), 1);
        assert!(page.objects.iter().all(|object| object.wave < 2));
    }
    let least = pages(&of(3, 70, 1)).next().expect("a page");
    assert_eq!(weight(&least), 70, "each object has a byte");
    assert!(least.objects.iter().all(|object| object.wave == 0));
}

fn object(wave: u8, origin: u8, response: u64) -> PageObject {
    PageObject { wave, origin, request: 100, server_delay: Span::ZERO, response }
}

fn at_ms(ms: u64) -> Instant {
    Instant::ZERO + Span::ms(ms)
}

fn got(delivered: u64) -> StreamPosition {
    StreamPosition { delivered, acked: 0 }
}

#[test]
fn responses_come_in_the_order_of_their_requests_and_several_may_be_done_at_once() {
    let slow = PageObject { server_delay: Span::ms(9), ..object(0, 0, 1000) };
    let mut session = Session::multiplexed(vec![slow, object(0, 0, 20), object(0, 0, 3000)]);
    assert_eq!(session.begin(at_ms(0)).client, Some(Act::Write(300)));
    assert!(!session.is_idle());
    let first = session.on_progress(at_ms(10), End::Server, got(200));
    assert_eq!((first.server, first.wake_at), (None, Some(at_ms(19))), "the second is ready and waits");
    let second = session.on_progress(at_ms(12), End::Server, got(300));
    assert_eq!((second.server, second.wake_at), (None, None), "one timer at a time");
    assert_eq!(session.on_timer(at_ms(19)).server, Some(Act::Write(4020)));
    assert_eq!(session.on_progress(at_ms(30), End::Client, got(999)).done, None);
    let done = session.on_progress(at_ms(31), End::Client, got(1020));
    assert_eq!(
        done.done.map(|done| (done.number, done.opened_connection, done.response.get())),
        Some((0, true, 1000))
    );
    assert!(done.more, "the second has arrived as well");
    let done = session.on_progress(at_ms(31), End::Client, got(1020));
    assert_eq!((done.done.map(|done| done.number), done.more), (Some(1), false));
    assert_eq!(session.under_way().count(), 1);
    assert_eq!(session.ask(at_ms(40), &[object(1, 0, 7)]).client, Some(Act::Write(100)));
    assert_eq!(session.on_progress(at_ms(50), End::Server, got(400)).server, Some(Act::Write(7)));
    let done = session.on_progress(at_ms(60), End::Client, got(4027));
    assert_eq!((done.done.map(|done| (done.number, done.began)), done.more), (Some((2, at_ms(0))), true));
    let done = session.on_progress(at_ms(60), End::Client, got(4027));
    assert_eq!(done.done.map(|done| (done.number, done.began, done.last)), Some((3, at_ms(40), false)));
    assert!(session.is_idle() && session.under_way().count() == 0);
}

/// Two users, each of whose pages has two origins.
fn users(keeps_connections: bool) -> Population {
    let plan = PagePlan {
        objects: Some(Distribution::Constant(Count(40))),
        origins: Distribution::Constant(Count(2)),
        keeps_connections,
        ..plan(Device::Desktop)
    };
    let draws = |what: &str| Stream::new(5, what);
    let starts = vec![(at_ms(20), 1), (at_ms(10), 0)];
    Population::Pages(Box::new(PageUsers::new(starts, Arc::new(plan), draws("pages"), draws("think"))))
}

/// Returns, as text, the population's actions from `wake` until it no longer requests an immediate wake-up,
/// and the last wake-up that it requests.
fn turns(population: &mut Population, wake: Wake) -> (Vec<(String, Identity, usize)>, Option<Wake>) {
    let (mut said, mut next) = (Vec::new(), Some(wake));
    while let Some(now) = next.filter(|next| (next.at, next.user) == (wake.at, wake.user)) {
        let woken = population.on_wake(now);
        next = woken.wake();
        said.push(match woken {
            Woken::Opens(Opening { open, content: Content::Objects(objects), .. }) => {
                ("open".to_owned(), open, objects.len())
            }
            Woken::Opens(other) => panic!("{other:?}"),
            Woken::Asks { of, objects, .. } => ("ask".to_owned(), of, objects.len()),
            Woken::Closes { of, .. } => ("close".to_owned(), of, 0),
        });
    }
    (said, next)
}

fn done() -> ConnectionEvent {
    ConnectionEvent::ExchangeDone(ExchangeDone {
        number: 0,
        request: Bytes::new(1),
        response: Bytes::new(1),
        began: Instant::ZERO,
        opened_connection: false,
        last: false,
    })
}

/// Reports the arrival of all requested objects, in order or in reverse, the last one at `at`; returns the
/// last reaction.
fn arrive(
    population: &mut Population,
    said: &[(String, Identity, usize)],
    at: Instant,
    backwards: bool,
) -> Reaction {
    let mut news: Vec<(Instant, Identity)> =
        said.iter().flat_map(|(_, of, objects)| vec![(at, *of); *objects]).collect();
    for (earlier, (when, _)) in news.iter_mut().rev().enumerate() {
        *when = Instant::from_ns(at.as_ns() - earlier as u64);
    }
    if backwards {
        news.reverse();
    }
    let mut last = Reaction::default();
    for (when, of) in news {
        assert_eq!(last, Reaction::default(), "only the last object of a wave matters");
        last = population.on_event(when, of, done());
    }
    last
}

#[test]
fn a_user_fetches_wave_after_wave_over_a_connection_for_each_origin() {
    let (mut forth, mut back) = (users(false), users(false));
    for (population, backwards) in [(&mut forth, false), (&mut back, true)] {
        let first = population.begin().expect("a first page");
        assert_eq!(first, Wake { at: at_ms(10), user: 0 });
        let (document, next) = turns(population, first);
        assert_eq!(document, [("open".to_owned(), Identity { user: 0, serial: 0 }, 1)]);
        assert_eq!(next, Some(Wake { at: at_ms(20), user: 1 }), "the other's first page");
        let wake = arrive(population, &document, at_ms(30), backwards).wake.expect("a second wave");
        assert_eq!(wake, Wake { at: at_ms(35), user: 0 }, "5 ms to parse it");
        let (second, next) = turns(population, wake);
        let what: Vec<_> = second.iter().map(|(what, of, _)| (what.as_str(), of.serial)).collect();
        assert_eq!((what, next), (vec![("ask", 0), ("open", 1)], None));
        let wake = arrive(population, &second, at_ms(50), backwards).wake.expect("a third wave");
        assert_eq!(wake.at, at_ms(55), "the last event came at 50 ms");
        let (third, _) = turns(population, wake);
        assert!(third.iter().all(|(what, ..)| what == "ask"), "{third:?}");
        let objects: usize = [&document, &second, &third].into_iter().flatten().map(|said| said.2).sum();
        assert_eq!(objects, 40);
        let Reaction { wake: Some(wake), page: Some(page) } =
            arrive(population, &third, at_ms(80), backwards)
        else {
            panic!("the page is over");
        };
        assert_eq!((page.number, page.objects, page.began, page.at), (0, 40, at_ms(10), at_ms(80)));
        assert!(!page.failed && page.opened_connection);
        assert_eq!(page.request, Bytes::new(40 * 500));
        let (closing, next) = turns(population, wake);
        let what: Vec<_> = closing.iter().map(|(what, of, _)| (what.as_str(), of.serial)).collect();
        assert_eq!(what, [("close", 0), ("close", 1)]);
        assert_eq!(next, Some(Wake { at: at_ms(7080), user: 0 }), "the user thinks for 7 s");
        let (document, _) = turns(population, next.expect("just seen"));
        assert_eq!(document, [("open".to_owned(), Identity { user: 0, serial: 2 }, 1)]);
        assert_eq!(population.give_up_pages(at_ms(7090)).len(), 1, "the other user has not begun");
        assert!(population.give_up_pages(at_ms(7090)).is_empty());
    }
}

#[test]
fn kept_connections_carry_the_next_page_and_one_that_fails_ends_the_page() {
    let mut population = users(true);
    let (mut said, mut next) = turns(&mut population, Wake { at: at_ms(10), user: 0 });
    let mut at = at_ms(30);
    let end = loop {
        let reaction = arrive(&mut population, &said, at, false);
        let wake = reaction.wake.expect("the page continues");
        if reaction.page.is_some() {
            break wake;
        }
        (said, next) = turns(&mut population, wake);
        at += Span::ms(100);
    };
    assert_eq!((end.at, next), (at + Span::s(7), None), "nothing is closed");
    let (document, _) = turns(&mut population, end);
    assert_eq!(document, [("ask".to_owned(), Identity { user: 0, serial: 0 }, 1)]);
    let wake = arrive(&mut population, &document, end.at + Span::ms(9), false).wake.expect("a second wave");
    let (second, _) = turns(&mut population, wake);
    let Some([(_, first, objects), (_, other, _)]) = second.get(..2) else { panic!("{second:?}") };
    for _ in 0..*objects {
        assert_eq!(population.on_event(wake.at + Span::ms(2), *first, done()), Reaction::default());
    }
    let reaction = population.on_event(wake.at + Span::ms(1), *other, ConnectionEvent::Failed);
    let page = reaction.page.expect("nothing is in flight any more");
    assert!(page.failed && !page.opened_connection);
    assert_eq!((page.number, page.at), (1, wake.at + Span::ms(2)));
    let (document, _) = turns(&mut population, reaction.wake.expect("the next page"));
    assert_eq!(document[0].0, "ask", "that connection is still open");
}
