//! Sessions of exchanges, run with both ends and a network between them that takes 10 ms each way.

use std::sync::Arc;

use aqmlab_random::Stream;
use aqmlab_traffic::{
    Act, Count, Distribution, End, ExchangeDone, ExchangePlan, Identity, ListedExchanges, PlannedExchange,
    Requests, Session, SingleExchange, Step, StreamPosition,
};
use aqmlab_units::{Bytes, Instant, Span};

const WAY: Span = Span::ms(10);

const fn at_ms(ms: u64) -> Instant {
    Instant::from_ns(ms * 1_000_000)
}

fn constant(exchanges: u64, pause_ms: u64, delay_ms: u64) -> ExchangePlan {
    ExchangePlan {
        request: Distribution::Constant(Bytes::new(300)),
        response: Distribution::Constant(Bytes::new(5000)),
        per_connection: Distribution::Constant(Count(exchanges)),
        pause: Distribution::Constant(Span::ms(pause_ms)),
        server_delay: Distribution::Constant(Span::ms(delay_ms)),
    }
}

fn session(plan: &ExchangePlan, of: Identity) -> Session {
    let families = ["exchange", "exchanges"].map(|what| Stream::new(4, what));
    Session::Requests(Requests::new(Arc::new(plan.clone()), of, &families[0], &families[1]))
}

/// The next event: either an end receives everything that the other end has written so far, or a wake-up that
/// the session requested is due.
enum Due {
    At(End, u64),
    Timer,
}

/// An action, with its time and the end that performed it.
type Done = (Instant, End, Act);

/// Runs a session until it ends, or up to the instant `until`.
fn carried(mut session: Session, until: Instant) -> (Vec<Done>, Vec<(Instant, ExchangeDone)>) {
    let mut due: Vec<(Instant, Due)> = Vec::new();
    let mut written = [0u64; 2];
    let (mut acts, mut exchanges) = (Vec::new(), Vec::new());
    let mut now = Instant::ZERO;
    let mut step = session.begin(now);
    loop {
        let Step { client, server, wake_at, done, .. } = step;
        exchanges.extend(done.map(|done| (now, done)));
        due.extend(wake_at.map(|at| (at, Due::Timer)));
        for (end, act, other) in [(End::Client, client, End::Server), (End::Server, server, End::Client)] {
            let Some(act) = act else { continue };
            let (Act::Write(bytes) | Act::WriteLast(bytes)) = act else { panic!("{act:?}") };
            acts.push((now, end, act));
            written[end as usize] += bytes;
            // An end that only closes sends no data.
            if bytes > 0 {
                due.push((now + WAY, Due::At(other, written[end as usize])));
            }
        }
        due.sort_by_key(|(at, _)| *at);
        if due.is_empty() || due[0].0 > until {
            return (acts, exchanges);
        }
        let (at, what) = due.remove(0);
        now = at;
        step = match what {
            Due::At(end, delivered) => {
                let mut arrived =
                    |delivered| session.on_progress(now, end, StreamPosition { delivered, acked: 0 });
                // The arrival of the penultimate byte has no effect, other than that it completes what was written
                // together with the last bytes.
                let early = arrived(delivered - 1);
                assert_eq!(Step { done: None, ..early }, Step::default());
                exchanges.extend(early.done.map(|done| (now, done)));
                let mut step = arrived(delivered);
                while step.more {
                    exchanges.extend(step.done.map(|done| (now, done)));
                    step = arrived(delivered);
                }
                step
            }
            Due::Timer => session.on_timer(now),
        };
    }
}

#[test]
fn exchanges_follow_each_other_with_pauses_at_both_ends_and_the_server_closes_behind_the_last() {
    let (acts, exchanges) = carried(session(&constant(3, 100, 7), Identity::first_of(0)), at_ms(10_000));
    let (ask, answer, last) = (Act::Write(300), Act::Write(5000), Act::WriteLast(5000));
    assert_eq!(
        acts,
        [
            (at_ms(0), End::Client, ask),
            (at_ms(17), End::Server, answer),
            (at_ms(127), End::Client, ask),
            (at_ms(144), End::Server, answer),
            (at_ms(254), End::Client, ask),
            (at_ms(271), End::Server, last),
        ]
    );
    let times: Vec<_> = exchanges.iter().map(|(at, done)| (done.number, *at - done.began)).collect();
    assert_eq!(times, [(0, Span::ms(27)), (1, Span::ms(27)), (2, Span::ms(27))]);
    let firsts: Vec<_> = exchanges.iter().map(|(_, done)| (done.opened_connection, done.last)).collect();
    assert_eq!(firsts, [(true, false), (false, false), (false, true)]);
    let sizes: Vec<_> = exchanges.iter().map(|(_, done)| (done.request.get(), done.response.get())).collect();
    assert_eq!(sizes, [(300, 5000); 3]);
}

/// The client closes when the last response has arrived; nothing else changes.
#[test]
fn a_client_that_closes_first_does_so_behind_the_last_response() {
    let as_usual = carried(session(&constant(2, 100, 7), Identity::first_of(0)), at_ms(10_000));
    let by_client = session(&constant(2, 100, 7), Identity::first_of(0)).closed_by(End::Client);
    let (acts, exchanges) = carried(by_client, at_ms(10_000));
    assert_eq!(exchanges, as_usual.1);
    assert_eq!(acts[..3], as_usual.0[..3]);
    assert_eq!(
        acts[3..],
        [(at_ms(144), End::Server, Act::Write(5000)), (at_ms(154), End::Client, Act::WriteLast(0))]
    );
    let by_server = session(&constant(2, 100, 7), Identity::first_of(0)).closed_by(End::Server);
    assert_eq!(carried(by_server, at_ms(10_000)), as_usual);
}

#[test]
fn without_pauses_what_follows_is_done_at_once() {
    let (acts, exchanges) = carried(session(&constant(2, 0, 0), Identity::first_of(0)), at_ms(10_000));
    let at: Vec<_> = acts.iter().map(|(at, ..)| *at).collect();
    assert_eq!(at, [0, 10, 20, 30].map(at_ms));
    assert_eq!(exchanges.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [20, 40].map(at_ms));
}

#[test]
fn the_exchange_under_way_is_known_as_it_will_be() {
    let plan = ExchangePlan {
        response: Distribution::Exponential { mean: Bytes::new(8000), offset: Bytes::ZERO },
        ..constant(2, 100, 7)
    };
    let (_, exchanges) = carried(session(&plan, Identity::first_of(0)), at_ms(10_000));
    let mut one = session(&plan, Identity::first_of(0));
    let under_way = |one: &Session| one.under_way().collect::<Vec<_>>();
    assert_eq!(under_way(&one), [], "it has not begun");
    one.begin(at_ms(0));
    assert_eq!(under_way(&one), [exchanges[0].1], "the answer is known before it is given");
    let arrived = |delivered| StreamPosition { delivered, acked: 0 };
    one.on_progress(at_ms(10), End::Server, arrived(300));
    one.on_timer(at_ms(17));
    assert_eq!(under_way(&one), [exchanges[0].1]);
    one.on_progress(at_ms(27), End::Client, arrived(exchanges[0].1.response.get()));
    assert_eq!(under_way(&one), [], "the client pauses");
}

#[test]
fn a_connection_draws_by_its_identity_and_one_quantity_never_shifts_another() {
    let drawn = |mean| Distribution::Exponential { mean: Bytes::new(mean), offset: Bytes::ZERO };
    let plan = ExchangePlan {
        request: drawn(400),
        response: drawn(9000),
        per_connection: Distribution::Uniform { low: Count(2), high: Count(6) },
        ..constant(1, 50, 0)
    };
    let of = |plan: &ExchangePlan, user, serial| {
        let (_, exchanges) = carried(session(plan, Identity { user, serial }), at_ms(100_000));
        exchanges.iter().map(|(_, done)| (done.request.get(), done.response.get())).collect::<Vec<_>>()
    };
    let all = [(0, 0), (0, 1), (1, 0)].map(|(user, serial)| of(&plan, user, serial));
    assert!(all[0] != all[1] && all[0] != all[2] && all[1] != all[2]);
    let counts: Vec<_> = (0..64).map(|serial| of(&plan, 3, serial).len()).collect();
    assert!((2..=6).all(|n| counts.contains(&n)) && counts.iter().all(|n| (2..=6).contains(n)), "{counts:?}");

    let fixed = ExchangePlan {
        request: Distribution::Constant(Bytes::new(1)),
        pause: Distribution::Exponential { mean: Span::ms(9), offset: Span::ZERO },
        ..plan.clone()
    };
    let responses = |of: Vec<(u64, u64)>| of.into_iter().map(|(_, response)| response).collect::<Vec<_>>();
    assert_eq!(responses(of(&fixed, 0, 1)), responses(of(&plan, 0, 1)));
}

#[test]
fn values_from_a_list_are_shifted_by_the_connection() {
    let plan = ExchangePlan {
        request: Distribution::List(vec![Bytes::new(10), Bytes::new(20), Bytes::new(30)]),
        ..constant(2, 1, 0)
    };
    let of = |serial| {
        let (_, exchanges) = carried(session(&plan, Identity { user: 0, serial }), at_ms(1000));
        exchanges.iter().map(|(_, done)| done.request.get()).collect::<Vec<_>>()
    };
    assert_eq!([of(0), of(1), of(2)], [[10, 20], [20, 30], [30, 10]]);
}

#[test]
fn one_exchange_is_done_where_its_last_byte_arrives() {
    let of = |request, response| {
        let session = Session::Single(SingleExchange::new(Bytes::new(request), Bytes::new(response)));
        let last = session.last_arrives_at();
        let (_, exchanges) = carried(session, at_ms(1000));
        (last, exchanges.iter().map(|(at, done)| (*at, done.last)).collect::<Vec<_>>())
    };
    assert_eq!(of(100, 900), (End::Client, vec![(at_ms(20), true)]));
    assert_eq!(of(100, 0), (End::Server, vec![(at_ms(10), true)]), "without a response");
    assert_eq!(of(0, 900), (End::Client, vec![(at_ms(10), true)]), "the server sends first");
}

fn listed(list: &[PlannedExchange]) -> Session {
    let mut list = list.to_vec();
    list.last_mut().expect("there is one").last = true;
    Session::Listed(ListedExchanges::new(list.into(), 0))
}

/// An exchange with its waits in milliseconds.
fn exchange(pause: u64, request: u64, server_delay: u64, response: u64) -> PlannedExchange {
    let (pause, server_delay) = (Span::ms(pause), Span::ms(server_delay));
    PlannedExchange { pause, request, server_delay, response, last: false }
}

#[test]
fn a_list_of_complete_exchanges_is_carried_out_like_drawn_ones() {
    for (pause, delay) in [(100, 7), (0, 7), (100, 0), (0, 0)] {
        let drawn = carried(session(&constant(3, pause, delay), Identity::first_of(0)), at_ms(10_000));
        let list = [
            exchange(0, 300, delay, 5000),
            exchange(pause, 300, delay, 5000),
            exchange(pause, 300, delay, 5000),
        ];
        assert_eq!(carried(listed(&list), at_ms(10_000)), drawn, "{pause} {delay}");
    }
}

/// The waits of an end that sends several times in a row count from its own data, not from what arrives.
#[test]
fn either_end_may_send_first_several_times_in_a_row_and_last() {
    let list = [
        exchange(0, 0, 0, 49),
        // The second and third data of the server leave before the first has arrived.
        exchange(0, 0, 4, 1000),
        exchange(0, 0, 3, 2000),
        exchange(20, 90, 6, 146),
        // The client's data: 5 ms after the response, and 30 ms after that.
        exchange(5, 11, 0, 0),
        exchange(30, 443, 2, 1775),
        exchange(0, 0, 50, 8),
        exchange(1, 14, 0, 0),
    ];
    let (acts, exchanges) = carried(listed(&list), at_ms(10_000));
    let (client, server) = (End::Client, End::Server);
    let expected = [
        (0, server, Act::Write(49)),
        (4, server, Act::Write(1000)),
        (7, server, Act::Write(2000)),
        // All 3049 bytes have arrived at 17 ms.
        (37, client, Act::Write(90)),
        (53, server, Act::Write(146)),
        (68, client, Act::Write(11)),
        (98, client, Act::Write(443)),
        (110, server, Act::Write(1775)),
        (160, server, Act::Write(8)),
        (171, client, Act::WriteLast(14)),
    ];
    assert_eq!(acts, expected.map(|(ms, end, act)| (at_ms(ms), end, act)));
    let ends: Vec<_> = exchanges.iter().map(|(at, done)| (done.number, done.began, *at, done.last)).collect();
    let expected = [(0, 10), (4, 14), (7, 17), (37, 63), (68, 78), (98, 120), (160, 170), (171, 181)];
    let expected = (0..).zip(expected).map(|(n, (began, end))| (n, at_ms(began), at_ms(end), n == 7));
    assert_eq!(ends, expected.collect::<Vec<_>>());
    let sizes: Vec<_> = exchanges.iter().map(|(_, done)| (done.request.get(), done.response.get())).collect();
    assert_eq!(sizes, list.map(|exchange| (exchange.request, exchange.response)));
    assert_eq!(listed(&list).last_arrives_at(), End::Server);
    assert!(listed(&list).is_answered());
}

#[test]
fn a_listed_server_may_wait_before_it_sends_first_and_data_without_a_wait_between_is_written_as_one() {
    let (acts, exchanges) = carried(listed(&[exchange(0, 0, 30, 10), exchange(0, 0, 0, 20)]), at_ms(1000));
    assert_eq!(acts, [(at_ms(30), End::Server, Act::WriteLast(30))]);
    let times: Vec<_> = exchanges.iter().map(|(at, done)| (done.began, *at)).collect();
    assert_eq!(times, [(at_ms(0), at_ms(40)), (at_ms(30), at_ms(40))]);
    let (acts, exchanges) = carried(listed(&[exchange(0, 10, 0, 0), exchange(0, 20, 0, 0)]), at_ms(1000));
    assert_eq!(acts, [(at_ms(0), End::Client, Act::WriteLast(30))]);
    assert_eq!(exchanges.len(), 2);
    assert!(!listed(&[exchange(0, 10, 0, 0)]).is_answered());
}

#[test]
fn all_listed_exchanges_under_way_are_known_as_they_will_be() {
    let mut one = listed(&[exchange(0, 9, 0, 1), exchange(0, 0, 5, 2), exchange(0, 0, 5, 3)]);
    let arrived = |delivered| StreamPosition { delivered, acked: 0 };
    let numbers = |one: &Session| one.under_way().map(|done| (done.number, done.began)).collect::<Vec<_>>();
    assert_eq!(numbers(&one), []);
    one.begin(at_ms(1));
    assert_eq!(numbers(&one), [(0, at_ms(1))]);
    one.on_progress(at_ms(10), End::Server, arrived(9));
    one.on_timer(at_ms(15));
    one.on_timer(at_ms(20));
    assert_eq!(numbers(&one), [(0, at_ms(1)), (1, at_ms(15)), (2, at_ms(20))]);
    let done = one.on_progress(at_ms(21), End::Client, arrived(3));
    assert_eq!((done.done.map(|done| done.number), done.more), (Some(0), true));
    let done = one.on_progress(at_ms(21), End::Client, arrived(3));
    assert_eq!((done.done.map(|done| done.number), done.more), (Some(1), false));
    assert_eq!(numbers(&one), [(2, at_ms(20))]);
}

/// The end that does not send last closes when the last data arrives there, and not before.
#[test]
fn either_end_may_close_first() {
    let (client, server) = (End::Client, End::Server);
    let single = |request, response, closes: End| {
        Session::Single(SingleExchange::new(Bytes::new(request), Bytes::new(response)).closed_by(closes))
    };
    let list = |list: &[PlannedExchange], closes: End| match listed(list) {
        Session::Listed(list) => Session::Listed(list.closed_by(closes)),
        other => other,
    };
    let answered = [exchange(0, 300, 0, 5000), exchange(100, 200, 7, 900)];
    let pushed = [exchange(0, 300, 0, 5000), exchange(100, 200, 0, 0)];
    for (session, expected) in [
        (single(100, 900, server), (10, server, Act::WriteLast(900))),
        (single(100, 900, client), (20, client, Act::WriteLast(0))),
        (single(100, 0, client), (0, client, Act::WriteLast(100))),
        (single(100, 0, server), (10, server, Act::WriteLast(0))),
        (single(0, 900, client), (10, client, Act::WriteLast(0))),
        (list(&answered, server), (137, server, Act::WriteLast(900))),
        (list(&answered, client), (147, client, Act::WriteLast(0))),
        (list(&pushed, client), (120, client, Act::WriteLast(200))),
        (list(&pushed, server), (130, server, Act::WriteLast(0))),
    ] {
        let (acts, exchanges) = carried(session, at_ms(10_000));
        let closing: Vec<_> = acts.iter().filter(|(.., act)| matches!(act, Act::WriteLast(_))).collect();
        let (at, end, act) = expected;
        assert_eq!(closing, [&(at_ms(at), end, act)]);
        assert!(exchanges.last().is_some_and(|(_, done)| done.last), "all data has arrived: {exchanges:?}");
    }
}
