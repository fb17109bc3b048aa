//! Users whose pages a list gives: which object goes on which connection.

use std::sync::Arc;

use aqmlab_traffic::{
    ConnectionEvent, Content, ExchangeDone, Identity, ListedUsers, Opening, PageList, Population, Wake, Woken,
};
use aqmlab_units::{Bytes, Instant, Span};

const fn at_ms(ms: u64) -> Instant {
    Instant::from_ns(ms * 1_000_000)
}

/// Two users. The first has a page with a document and four objects, whose requests have 1 to 5 bytes, and then a page
/// with a document alone; the second has one page.
fn users(parallel: usize, keeps_connections: bool) -> Population {
    let mut list = PageList::default();
    list.add_user();
    list.add_page(Span::ms(10));
    (1..=5).for_each(|request| list.add_object(request, Span::ZERO, 100 * request));
    list.add_page(Span::ms(500));
    list.add_object(6, Span::ZERO, 600);
    list.add_user();
    list.add_page(Span::ms(20));
    list.add_object(7, Span::ZERO, 700);
    assert_eq!((list.users(), list.pages(), list.objects()), (2, 3, 7));
    assert_eq!(
        (list.mean_think(), list.starts().collect::<Vec<_>>()),
        (Span::ms(500), vec![Span::ms(10), Span::ms(20)])
    );
    let starts = vec![(at_ms(20), 1), (at_ms(10), 0)];
    Population::ListedUsers(Box::new(ListedUsers::new(starts, Arc::new(list), parallel, keeps_connections)))
}

/// An action: its name, the connection, and the bytes of the request.
type Said = (&'static str, u32, u64);

/// Returns what the population does from `wake` on, until it requests no further wake-up at once, and the last wake-up that
/// it requests.
fn turns(population: &mut Population, wake: Wake) -> (Vec<Said>, Option<Wake>) {
    let (mut said, mut next) = (Vec::new(), Some(wake));
    while let Some(now) = next.filter(|next| *next == wake) {
        let woken = population.on_wake(now);
        next = woken.wake();
        said.push(match woken {
            Woken::Opens(Opening { open, content: Content::Objects(objects), .. }) => {
                ("open", open.serial, objects[0].request)
            }
            Woken::Opens(other) => panic!("{other:?}"),
            Woken::Asks { of, objects, .. } => ("ask", of.serial, objects[0].request),
            Woken::Closes { of, .. } => ("close", of.serial, 0),
        });
    }
    (said, next)
}

fn event(
    population: &mut Population,
    ms: u64,
    serial: u32,
    event: ConnectionEvent,
) -> (Option<Wake>, Option<(Instant, bool)>) {
    let reaction = population.on_event(at_ms(ms), Identity { user: 0, serial }, event);
    (reaction.wake, reaction.page.map(|page| (page.at, page.failed)))
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

const fn now(ms: u64) -> Wake {
    Wake { at: at_ms(ms), user: 0 }
}

/// Returns users of whom the first has received the document at 30 ms, and what this user then does.
fn with_document(parallel: usize, keeps_connections: bool) -> (Population, Vec<Said>) {
    let mut population = users(parallel, keeps_connections);
    let first = population.begin().expect("a first page");
    assert_eq!(first, now(10));
    let (said, next) = turns(&mut population, first);
    assert_eq!(
        (said, next),
        (vec![("open", 0, 1)], Some(Wake { at: at_ms(20), user: 1 })),
        "the document alone"
    );
    assert_eq!(event(&mut population, 30, 0, done()), (Some(now(30)), None));
    let (said, next) = turns(&mut population, now(30));
    assert_eq!(next, None);
    (population, said)
}

#[test]
fn each_object_takes_the_first_connection_that_is_free() {
    let (mut population, said) = with_document(2, false);
    assert_eq!(said, [("ask", 0, 2), ("open", 1, 3)], "both connections are busy now");
    assert_eq!(event(&mut population, 40, 1, done()), (Some(now(40)), None));
    assert_eq!(turns(&mut population, now(40)), (vec![("ask", 1, 4)], None));
    assert_eq!(event(&mut population, 50, 1, done()), (Some(now(50)), None), "connection 0 is still busy");
    assert_eq!(turns(&mut population, now(50)), (vec![("ask", 1, 5)], None));
    assert_eq!(event(&mut population, 60, 0, done()), (None, None), "nothing is left to request");
    let over = event(&mut population, 70, 1, done());
    assert_eq!(over, (Some(now(70)), Some((at_ms(70), false))));
    assert_eq!(turns(&mut population, now(70)), (vec![("close", 0, 0), ("close", 1, 0)], Some(now(570))));
    assert_eq!(
        turns(&mut population, now(570)),
        (vec![("open", 2, 6)], None),
        "a page has connections of its own"
    );
    assert_eq!(event(&mut population, 600, 2, done()), (Some(now(600)), Some((at_ms(600), false))));
    assert_eq!(turns(&mut population, now(600)), (vec![("close", 2, 0)], None), "the last page");
}

/// Two connections become free at the same instant; only one wake-up is pending.
#[test]
fn connections_that_are_free_at_once_all_get_an_object() {
    let (mut population, said) = with_document(2, true);
    assert_eq!(said.len(), 2);
    assert_eq!(event(&mut population, 40, 1, done()), (Some(now(40)), None));
    assert_eq!(event(&mut population, 40, 0, done()), (None, None), "a wake-up is pending");
    assert_eq!(turns(&mut population, now(40)), (vec![("ask", 0, 4), ("ask", 1, 5)], None));
    assert_eq!(event(&mut population, 50, 0, done()), (None, None));
    assert_eq!(
        event(&mut population, 55, 1, done()),
        (Some(now(555)), Some((at_ms(55), false))),
        "connections are kept"
    );
    assert_eq!(turns(&mut population, now(555)), (vec![("ask", 0, 6)], None));
    assert_eq!(event(&mut population, 560, 0, done()), (None, Some((at_ms(560), false))), "the last page");
}

#[test]
fn a_page_goes_on_without_a_connection_that_fails_but_not_without_its_document() {
    let (mut population, _) = with_document(2, false);
    assert_eq!(event(&mut population, 40, 1, ConnectionEvent::Failed), (Some(now(40)), None));
    assert_eq!(turns(&mut population, now(40)), (vec![("open", 2, 4)], None), "another one takes its place");
    assert_eq!(event(&mut population, 50, 0, done()), (Some(now(50)), None));
    assert_eq!(turns(&mut population, now(50)), (vec![("ask", 0, 5)], None));
    assert_eq!(event(&mut population, 60, 0, done()), (None, None));
    assert_eq!(
        event(&mut population, 70, 2, done()),
        (Some(now(70)), Some((at_ms(70), true))),
        "the page has failed"
    );

    let mut population = users(2, false);
    let first = population.begin().expect("a first page");
    turns(&mut population, first);
    assert_eq!(
        event(&mut population, 30, 0, ConnectionEvent::Failed),
        (Some(now(530)), Some((at_ms(30), true)))
    );
    assert_eq!(turns(&mut population, now(530)), (vec![("open", 1, 6)], None), "the next page");
}
