//! Populations: when connections open, and the consequences of their outcomes.

use std::sync::Arc;

use aqmlab_random::Stream;
use aqmlab_traffic::{
    Arrivals, ConnectionEvent, Distribution, ExchangeDone, Gaps, Identity, Opening, Population, Starts,
    Users, Wake, Woken,
};
use aqmlab_units::{Bytes, Instant, Span};

const fn at_ms(ms: u64) -> Instant {
    Instant::from_ns(ms * 1_000_000)
}

fn done(last: bool) -> ConnectionEvent {
    let (request, response) = (Bytes::new(1), Bytes::new(1));
    let began = Instant::ZERO;
    ConnectionEvent::ExchangeDone(ExchangeDone {
        number: 0,
        request,
        response,
        began,
        opened_connection: true,
        last,
    })
}

fn users(think: Distribution, starts: Vec<(Instant, u32)>) -> Population {
    Population::Users(Users::new(starts, Arc::new(think), Stream::new(1, "think")))
}

fn opening(woken: Woken) -> Opening {
    let Woken::Opens(opening) = woken else { panic!("no user requests again: {woken:?}") };
    opening
}

#[test]
fn identities_of_first_connections_draw_as_their_users_do_and_no_two_alike() {
    assert_eq!(Identity::first_of(7).index(), 7);
    let some = [(0, 0), (0, 1), (1, 0), (1, 1), (u32::MAX, 0), (0, u32::MAX), (u32::MAX, u32::MAX)];
    let mut indices: Vec<u64> =
        some.iter().map(|&(user, serial)| Identity { user, serial }.index()).collect();
    indices.sort_unstable();
    indices.dedup();
    assert_eq!(indices.len(), some.len());
}

#[test]
fn a_list_opens_each_connection_at_its_start_and_no_other() {
    // The list is in descending order of start time; of users who start at the same time, the one
    // with the highest index comes first.
    let mut list = Population::List(Starts::new(vec![(at_ms(9), 0), (at_ms(4), 2), (at_ms(4), 1)]));
    let mut opened = Vec::new();
    let mut next = list.begin();
    while let Some(wake) = next {
        let turn = opening(list.on_wake(wake));
        opened.push((wake.at, turn.open));
        assert_eq!(
            list.on_event(wake.at, turn.open, ConnectionEvent::Closed).wake,
            None,
            "no user opens another"
        );
        next = turn.wake;
    }
    let first_of = Identity::first_of;
    assert_eq!(opened, [(at_ms(4), first_of(1)), (at_ms(4), first_of(2)), (at_ms(9), first_of(0))]);
    assert_eq!(Population::List(Starts::new(Vec::new())).begin(), None);
}

#[test]
fn poisson_arrivals_have_exponential_gaps_of_the_mean_and_serials_without_end() {
    let start = Instant::ZERO + Span::s(3);
    let gaps = Gaps::Exponential { per_s: 100.0 };
    let mut arrivals = Population::Arrivals(Arrivals::new(gaps, start, Stream::new(5, "gap")));
    let n = 40_000u32;
    let mut wake = arrivals.begin().expect("a process continues");
    assert!(wake.at > start, "the first is one gap after the start");
    let mut before = start;
    let (mut sum, mut squares) = (0.0, 0.0);
    for serial in 0..n {
        let gap = (wake.at - before).as_secs_f64();
        (sum, squares) = (sum + gap, squares + gap * gap);
        before = wake.at;
        let turn = opening(arrivals.on_wake(wake));
        assert_eq!(turn.open, Identity { user: 0, serial });
        assert_eq!(
            arrivals.on_event(before, turn.open, ConnectionEvent::Failed).wake,
            None,
            "it does not wait"
        );
        wake = turn.wake.expect("a process continues");
    }
    let (mean, square) = (sum / f64::from(n), squares / f64::from(n));
    // The tolerance is four standard errors; the square of an exponential gap with mean m has mean
    // 2 m^2 and standard deviation sqrt(20) m^2.
    let error = 4.0 / f64::from(n).sqrt();
    assert!((mean / 0.01 - 1.0).abs() < error, "{mean}");
    assert!((square / 2e-4 - 1.0).abs() < error * 20f64.sqrt() / 2.0, "{square}");
}

#[test]
fn a_user_thinks_after_the_last_exchange_and_opens_the_next_connection() {
    let mut one = users(Distribution::Constant(Span::ms(30)), vec![(at_ms(5), 0)]);
    let first = one.begin().expect("the first start");
    assert_eq!(first, Wake { at: at_ms(5), user: 0 });
    let turn = opening(one.on_wake(first));
    assert_eq!((turn.open, turn.wake), (Identity { user: 0, serial: 0 }, None));
    assert_eq!(one.on_event(at_ms(6), turn.open, ConnectionEvent::Opened).wake, None);
    assert_eq!(one.on_event(at_ms(7), turn.open, done(false)).wake, None, "an exchange follows");
    let wake = one.on_event(at_ms(8), turn.open, done(true)).wake;
    assert_eq!(wake, Some(Wake { at: at_ms(38), user: 0 }));
    assert_eq!(
        one.on_event(at_ms(9), turn.open, ConnectionEvent::Closed).wake,
        None,
        "the user is already thinking"
    );
    let second = opening(one.on_wake(wake.expect("just seen")));
    assert_eq!((second.open, second.wake), (Identity { user: 0, serial: 1 }, None));
    assert_eq!(
        one.on_event(at_ms(39), turn.open, ConnectionEvent::Closed).wake,
        None,
        "that was the previous one"
    );
    let after_failure = one.on_event(at_ms(50), second.open, ConnectionEvent::Failed).wake;
    assert_eq!(after_failure, Some(Wake { at: at_ms(80), user: 0 }), "the user tries again");
}

#[test]
fn what_users_draw_does_not_depend_on_the_order_in_which_others_are_heard() {
    let think = Distribution::Exponential { mean: Span::s(1), offset: Span::ZERO };
    let thinks = |order: &[u32]| {
        let mut all = users(think.clone(), (0..3).rev().map(|user| (at_ms(user.into()), user)).collect());
        let mut wake = all.begin();
        let mut open = Vec::new();
        while let Some(next) = wake {
            let turn = opening(all.on_wake(next));
            open.push(turn.open);
            wake = turn.wake;
        }
        assert_eq!(open, [0, 1, 2].map(Identity::first_of));
        let mut wakes: Vec<Wake> = order
            .iter()
            .map(|&user| {
                all.on_event(at_ms(100), Identity::first_of(user), done(true)).wake.expect("he thinks")
            })
            .collect();
        wakes.sort_unstable_by_key(|wake| wake.user);
        wakes
    };
    let found = thinks(&[0, 1, 2]);
    assert_eq!(found, thinks(&[2, 0, 1]));
    assert!(found[0].at != found[1].at && found[1].at != found[2].at, "each has its own draws");
}
