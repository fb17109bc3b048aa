//! The life of a connection: lost SYNs and FINs, both sides opening or closing simultaneously,
//! resets, wrap-around and TIME-WAIT.

mod support;

use aqmlab_transport::{Endpoint, Flags, Profile, Role, Segment, State, StreamEvent};
use aqmlab_units::{Instant, Rate, Span};
use support::{A, B, Fate, Faults, Link, Pair, Path, drop_list, faultless, ms};

fn pair(faults: [Faults; 2]) -> Pair {
    let profile = Profile::named("rfc").expect("built in");
    Pair::new(profile, faults.map(|f| Path::plain(Span::ms(50), f)))
}

fn end() -> Instant {
    Instant::ZERO + Span::s(100_000)
}

/// Drops the first `n` segments with these flags.
fn drop_first(n: u32, flags: Flags) -> Faults {
    let mut left = n;
    Box::new(move |_, seg| {
        if seg.flags.has(flags) && left > 0 {
            left -= 1;
            return Fate::Drop;
        }
        Fate::Pass
    })
}

fn times(net: &Pair, side: usize, flags: Flags) -> Vec<Instant> {
    net.sides[side].sent.iter().filter(|(_, s)| s.flags.has(flags)).map(|(t, _)| *t).collect()
}

/// Rules: 9293 3.5 handshake
#[test]
fn the_handshake_takes_three_segments_and_data_follows() {
    let mut net = pair([faultless(), faultless()]);
    net.open(Instant::ZERO);
    net.with(A, |e, _, _| e.write(1000));
    net.run_until(ms(500));
    let flags = |side: usize, n: usize| net.sides[side].sent[n].1.flags;
    assert_eq!(flags(A, 0), Flags::SYN);
    assert_eq!(flags(B, 0), Flags::SYN | Flags::ACK);
    assert_eq!((flags(A, 1), net.sides[A].sent[1].1.len), (Flags::ACK, 0), "the third segment");
    assert_eq!(net.sides[A].sent[2].1.len, 1000);
    assert!(net.sides.iter().all(|s| s.endpoint.state() == State::Established));
}

/// Rules: 6298 2.1; 6298 5.5
#[test]
fn lost_syns_cost_one_three_and_seven_seconds() {
    let mut net = pair([drop_first(3, Flags::SYN), faultless()]);
    net.open(Instant::ZERO);
    net.run_until(end());
    let s = |n| Instant::ZERO + Span::s(n);
    assert_eq!(times(&net, A, Flags::SYN), [s(0), s(1), s(3), s(7)]);
    assert!(net.sides.iter().all(|s| s.endpoint.state() == State::Established));
    assert_eq!(net.sides[A].endpoint.counters().syn_retransmissions, 3);
}

/// Rules: 9293 3.5 handshake
#[test]
fn a_lost_syn_ack_is_repaired_by_either_side() {
    let mut net = pair([faultless(), drop_first(2, Flags::SYN)]);
    net.open(Instant::ZERO);
    net.run_until(end());
    assert!(net.sides.iter().all(|s| s.saw(StreamEvent::Established)));
}

/// Rules: 9293 3.6
#[test]
fn lost_fins_are_sent_again_until_both_sides_are_closed() {
    let mut net = pair([drop_first(3, Flags::FIN), drop_first(3, Flags::FIN)]);
    net.open(Instant::ZERO);
    net.with(A, |e, _, _| {
        e.write(5000);
        e.close();
    });
    net.run_until(ms(400));
    net.with(B, |e, _, _| e.close());
    net.run_until(end());
    assert!(net.sides.iter().all(|s| s.endpoint.state() == State::Closed && s.saw(StreamEvent::Closed)));
    assert_eq!(net.sides[B].delivered(), 5000);
    assert_eq!([A, B].map(|side| times(&net, side, Flags::FIN).len() >= 4), [true, true]);
}

#[test]
fn the_fin_rides_on_the_last_byte() {
    let mut net = pair([faultless(), faultless()]);
    net.open(Instant::ZERO);
    net.with(A, |e, _, _| {
        e.write(2000);
        e.close();
    });
    net.run_until(ms(1000));
    let last = net.sides[A].sent.iter().rfind(|(_, s)| s.len > 0).expect("data").1;
    assert!(last.flags.has(Flags::FIN) && last.len == 540);
    assert_eq!(net.sides[A].sent.iter().filter(|(_, s)| s.flags.has(Flags::FIN)).count(), 1);
}

/// Rules: 9293 3.6
#[test]
fn both_sides_close_at_once_and_pass_through_closing() {
    let mut net = pair([faultless(), faultless()]);
    net.open(Instant::ZERO);
    net.run_until(ms(1000));
    net.now = ms(1000);
    net.with(A, |e, _, _| e.close());
    net.with(B, |e, _, _| e.close());
    assert_eq!(net.sides[A].endpoint.state(), State::FinWait1);
    net.run_until(ms(1060));
    assert!(net.sides.iter().all(|s| s.endpoint.state() == State::Closing));
    net.run_until(ms(1200));
    assert!(net.sides.iter().all(|s| s.endpoint.state() == State::TimeWait));
    net.run_until(end());
    assert!(net.sides.iter().all(|s| s.endpoint.state() == State::Closed));
    let waited = net.now - ms(1100);
    assert!(waited >= Span::s(240) && waited < Span::ms(240_100), "TIME-WAIT lasted {waited:?}");
}

/// One side has closed, and the other sends another 200 kB; segments, ACKs and FINs are lost in
/// both directions.
///
/// Rules: 9293 3.6.1
#[test]
fn data_continues_the_other_way_after_a_fin() {
    let lossy =
        |every: u64| -> Faults { Box::new(move |n, _| if n % every == 5 { Fate::Drop } else { Fate::Pass }) };
    let mut net = pair([lossy(7), lossy(11)]);
    net.open(Instant::ZERO);
    net.with(A, |e, _, _| {
        e.write(3000);
        e.close();
    });
    net.run_until(ms(10_000));
    let states = |net: &Pair| [A, B].map(|side| net.sides[side].endpoint.state());
    assert_eq!(states(&net), [State::FinWait2, State::CloseWait]);
    assert!(net.sides[B].saw(StreamEvent::PeerClosed) && !net.sides[A].saw(StreamEvent::Closed));
    net.now = ms(10_000);
    net.with(B, |e, _, _| e.write(200_000));
    net.run_until(ms(200_000));
    assert_eq!((states(&net), net.sides[A].delivered()), ([State::FinWait2, State::CloseWait], 200_000));
    assert!(net.sides[B].endpoint.counters().retransmitted > 0);
    net.now = ms(200_000);
    net.with(B, |e, _, _| e.close());
    net.run_until(end());
    assert_eq!(states(&net), [State::Closed; 2]);
    assert!(net.sides.iter().all(|s| s.saw(StreamEvent::Closed)));
}

/// The first FINs of both sides are lost, and then the ACKs of the FINs that arrive.
///
/// Rules: 9293 3.6
#[test]
fn a_simultaneous_close_survives_the_loss_of_both_fins_and_of_their_acknowledgments() {
    // After the handshake's segments, two FINs and two pure ACKs of each side are lost.
    let losses = |handshake: u64| -> Faults {
        let (mut fins, mut acks) = (0, 0);
        Box::new(move |n, seg| {
            if n < handshake {
                return Fate::Pass;
            }
            let count = if seg.flags.has(Flags::FIN) { &mut fins } else { &mut acks };
            *count += 1;
            if *count <= 2 { Fate::Drop } else { Fate::Pass }
        })
    };
    let mut net = pair([losses(2), losses(1)]);
    net.open(Instant::ZERO);
    net.run_until(ms(1000));
    net.now = ms(1000);
    net.with(A, |e, _, _| e.close());
    net.with(B, |e, _, _| e.close());
    net.run_until(end());
    assert!(net.sides.iter().all(|s| s.endpoint.state() == State::Closed && s.saw(StreamEvent::Closed)));
    assert!([A, B].iter().all(|side| times(&net, *side, Flags::FIN).len() >= 3));
}

/// Rules: 9293 3.5 simultaneous
#[test]
fn both_sides_open_at_once() {
    let profile = Profile::named("rfc").expect("built in");
    let paths = [(); 2].map(|()| Path::plain(Span::ms(50), faultless()));
    let mut net = Pair::with_roles(profile, [Role::Active; 2], paths);
    for side in [A, B] {
        net.with(side, |e, now, p| {
            e.open(now, p);
            e.write(10_000);
            e.close();
        });
    }
    net.run_until(end());
    for side in &net.sides {
        assert_eq!((side.endpoint.state(), side.delivered(), side.acked()), (State::Closed, 10_000, 10_000));
    }
}

#[test]
fn an_abort_resets_the_other_side() {
    let mut net = pair([faultless(), faultless()]);
    net.open(Instant::ZERO);
    net.with(A, |e, _, _| e.write(100_000));
    net.run_until(ms(400));
    net.with(B, |e, _, _| e.abort());
    net.run_until(end());
    assert!(net.sides[B].saw(StreamEvent::Aborted) && net.sides[A].saw(StreamEvent::Reset));
    assert!(net.sides.iter().all(|s| s.endpoint.state() == State::Closed && s.endpoint.deadline().is_none()));
}

#[test]
fn an_endless_stream_ends_when_it_is_closed() {
    let mut net = pair([drop_list(&[20, 21]), faultless()]);
    net.open(Instant::ZERO);
    net.with(A, |e, _, _| e.write(aqmlab_transport::ENDLESS));
    net.run_until(ms(2000));
    net.with(A, |e, _, _| e.close());
    net.with(B, |e, _, _| e.close());
    net.run_until(end());
    assert!(net.sides.iter().all(|s| s.endpoint.state() == State::Closed));
    assert_eq!(net.sides[A].acked(), net.sides[B].delivered());
    assert!(net.sides[A].acked() > 100_000);
}

/// Five gibibytes are sent with losses, starting at a sequence number just below the wrap-around.
#[test]
fn more_than_four_gibibytes_wrap_around_and_arrive() {
    let bytes = 5 << 30;
    let mut profile = Profile::named("rfc").expect("built in");
    profile.mss = 65_000;
    profile.initial_sequence = u32::MAX - 100_000;
    let lossy = || -> Faults { Box::new(|n, _| if n % 997 == 996 { Fate::Drop } else { Fate::Pass }) };
    let link = || Link::new(Rate::gbit(40), Span::us(50), 10_000);
    let mut net = Pair::new(profile, [(); 2].map(|()| Path::new([link(), link()], lossy())));
    net.open(Instant::ZERO);
    net.with(A, |e, _, _| {
        e.write(bytes);
        e.close();
    });
    net.with(B, |e, _, _| e.close());
    net.run_until(end());
    assert_eq!((net.sides[B].delivered(), net.sides[A].acked()), (bytes, bytes));
    assert!(net.sides.iter().all(|s| s.endpoint.state() == State::Closed));
    assert!(net.sides[A].endpoint.counters().retransmitted > 50);
}

#[test]
fn an_early_timer_call_does_nothing() {
    let profile = Profile::named("rfc").expect("built in");
    let mut e = Endpoint::new(Role::Active, &profile);
    e.open(Instant::ZERO, &profile);
    assert!(e.poll_transmit(Instant::ZERO, &profile).is_some());
    let deadline = e.deadline().expect("the SYN's timer");
    e.on_timer(Instant::from_ns(deadline.as_ns() - 1), &profile);
    assert_eq!(e.poll_transmit(deadline, &profile), None::<Segment>);
    e.on_timer(deadline, &profile);
    assert!(e.poll_transmit(deadline, &profile).is_some());
}
