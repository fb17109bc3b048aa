//! Checks, to the exact byte, which acknowledgments are acceptable (RFC 9293, section 3.10.7.4,
//! fifth).

use aqmlab_transport::{ENDLESS, Endpoint, Extras, Flags, Profile, Role, Segment};
use aqmlab_units::{Ecn, Instant, Span};

fn incoming(flags: Flags, seq: u32, ack: u32) -> Segment {
    Segment { seq, ack, len: 0, flags, window: 1 << 30, ecn: Ecn::NotEct, extras: Extras::NONE, sack_len: 0 }
}

/// Returns an active endpoint that has completed its handshake and sent its first flight, and the
/// offset after the flight's last byte.
fn flight(profile: &Profile) -> (Endpoint, u32) {
    let mut endpoint = Endpoint::new(Role::Active, profile);
    endpoint.open(Instant::ZERO, profile);
    endpoint.write(ENDLESS);
    assert!(endpoint.poll_transmit(Instant::ZERO, profile).is_some_and(|s| s.flags.has(Flags::SYN)));
    let now = Instant::ZERO + Span::ms(100);
    endpoint.on_segment(now, &incoming(Flags::SYN | Flags::ACK, 0, 1), profile);
    let sent: Vec<Segment> = std::iter::from_fn(|| endpoint.poll_transmit(now, profile)).collect();
    let end = sent.iter().map(|s| s.seq + s.len).max().expect("a flight");
    (endpoint, end)
}

/// A segment with SND.UNA < SEG.ACK =< SND.NXT acknowledges data; one with SEG.ACK > SND.NXT is
/// answered with an ACK and changes nothing.
#[test]
fn all_that_was_sent_may_be_acknowledged_and_not_a_byte_more() {
    let profile = Profile::named("rfc").expect("built in");
    let now = Instant::ZERO + Span::ms(200);
    for beyond in [1, 2, 1000, 1 << 30] {
        let (mut endpoint, end) = flight(&profile);
        let (flight, deadline) = (endpoint.flight(), endpoint.deadline());
        endpoint.on_segment(now, &incoming(Flags::ACK, 1, end + beyond), &profile);
        let answer = endpoint.poll_transmit(now, &profile).expect("an answer");
        assert_eq!((answer.flags, answer.len, answer.seq), (Flags::ACK, 0, end), "beyond by {beyond}");
        assert_eq!(endpoint.poll_transmit(now, &profile), None);
        assert_eq!((endpoint.flight(), endpoint.deadline()), (flight, deadline), "beyond by {beyond}");
        assert_eq!(endpoint.acked().get(), 0);
    }
    let (mut endpoint, end) = flight(&profile);
    endpoint.on_segment(now, &incoming(Flags::ACK, 1, end), &profile);
    assert_eq!((endpoint.acked().get(), endpoint.flight().get()), (u64::from(end - 1), 0));
}
