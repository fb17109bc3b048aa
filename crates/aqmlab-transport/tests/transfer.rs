//! A connection from SYN to FIN over a faultless network.

mod support;

use aqmlab_transport::{Profile, State, StreamEvent};
use aqmlab_units::{Instant, Span};
use support::{A, B, Pair, Path, faultless};

fn pair(profile: &str) -> Pair {
    let profile = Profile::named(profile).expect("a built-in profile");
    let path = || Path::plain(Span::ms(50), faultless());
    Pair::new(profile, [path(), path()])
}

#[test]
fn data_flows_both_ways_and_both_sides_close() {
    for name in ["rfc", "ns2"] {
        let mut net = pair(name);
        net.open(Instant::ZERO);
        net.with(A, |e, _, _| {
            e.write(123_457);
            e.close();
        });
        net.with(B, |e, _, _| e.write(1_000_001));
        net.run_until(Instant::ZERO + Span::s(20));
        assert_eq!(
            net.sides[B].endpoint.state(),
            State::CloseWait,
            "{name}: the passive side may still send"
        );
        net.with(B, |e, _, _| e.close());
        net.run_until(Instant::ZERO + Span::s(1000));
        for side in &net.sides {
            assert_eq!(side.endpoint.state(), State::Closed, "{name}");
            assert!(side.saw(StreamEvent::Established) && side.saw(StreamEvent::PeerClosed), "{name}");
            assert!(side.saw(StreamEvent::Closed), "{name}");
            assert_eq!(side.endpoint.counters().retransmitted, 0, "{name}");
        }
        assert_eq!((net.sides[A].delivered(), net.sides[B].delivered()), (1_000_001, 123_457), "{name}");
        assert_eq!((net.sides[A].acked(), net.sides[B].acked()), (123_457, 1_000_001), "{name}");
    }
}

/// Without loss and without delayed ACKs, the flight doubles in each round-trip time.
#[test]
fn loss_free_flights_double() {
    let mut net = pair("ns2");
    net.profile.max_window = 1000;
    net.open(Instant::ZERO);
    net.with(A, |e, _, _| e.write(30_000));
    net.run_until(Instant::ZERO + Span::s(5));
    let mut flights = [0; 4];
    for (at, _, _) in net.sides[A].data_sent() {
        flights[(at.as_ns() / Span::ms(100).as_ns()) as usize - 1] += 1;
    }
    assert_eq!(flights, [2, 4, 8, 16]);
}

#[test]
fn an_endpoint_is_small_because_its_parameters_are_not_in_it() {
    let size = size_of::<aqmlab_transport::Endpoint>();
    assert!(size <= 272, "an endpoint takes {size} bytes");
}
