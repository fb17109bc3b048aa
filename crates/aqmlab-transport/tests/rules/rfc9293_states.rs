//! The states of a connection (RFC 9293, sections 3.3.2, 3.5, 3.6 and 3.10.7): each state, and the segments
//! that may arrive in it.

use aqmlab_params::Value;
use aqmlab_transport::{Flags, Role, Segment, State, StreamEvent};
use aqmlab_units::Span;

use crate::bench::{Bench, segment};

const STATES: [State; 11] = [
    State::Closed,
    State::Listen,
    State::SynSent,
    State::SynReceived,
    State::Established,
    State::FinWait1,
    State::FinWait2,
    State::CloseWait,
    State::Closing,
    State::LastAck,
    State::TimeWait,
];

/// The other side's FIN without data, which acknowledges everything below `ack`.
fn fin(ack: u32) -> Segment {
    Segment { flags: Flags::FIN | Flags::ACK, ..segment(1, ack, 0) }
}

/// Returns an endpoint in this state; it has no data to send, and all its events have been fetched.
fn in_state(state: State) -> Bench {
    let role = if state == State::SynSent { Role::Active } else { Role::Passive };
    let mut b = Bench::new(role, &[]);
    if state == State::Listen {
        return b;
    }
    if state == State::SynSent {
        b.connect();
        return b;
    }
    b.arrive(Segment { flags: Flags::SYN, ack: 0, ..segment(0, 0, 0) });
    if state == State::SynReceived {
        return b;
    }
    b.arrive(segment(1, 1, 0));
    match state {
        State::Established => {}
        State::Closed => b.endpoint.abort(),
        State::CloseWait | State::LastAck => {
            b.arrive(fin(1));
        }
        _ => b.endpoint.close(),
    }
    if state == State::LastAck {
        b.endpoint.close();
    }
    b.drain();
    if matches!(state, State::FinWait2 | State::TimeWait) {
        b.arrive(segment(1, 2, 0));
    }
    match state {
        State::Closing => drop(b.arrive(fin(1))),
        State::TimeWait => drop(b.arrive(fin(2))),
        _ => {}
    }
    while b.endpoint.poll_event().is_some() {}
    assert_eq!(b.endpoint.state(), state, "the path to {}", state.name());
    b
}

/// Returns the other side's next sequence number in this state.
fn peer_next(state: State) -> u32 {
    match state {
        State::SynSent => 0,
        State::CloseWait | State::Closing | State::LastAck | State::TimeWait => 2,
        _ => 1,
    }
}

fn is_open(state: State) -> bool {
    !matches!(state, State::Closed | State::Listen | State::SynSent)
}

/// Rules: 9293 3.10.7.1; 9293 3.10.7.2; 9293 3.10.7.3 reset; 9293 3.10.7.4 second
#[test]
fn a_reset_in_each_state() {
    for state in STATES {
        let next = peer_next(state);
        let reset = |seq| Segment { flags: Flags::RST | Flags::ACK, ..segment(seq, 1, 0) };
        let mut b = in_state(state);
        assert_eq!(b.arrive(reset(next)), [], "{}: no answer to a reset", state.name());
        let (after, event) = match state {
            State::Closed | State::Listen => (state, None),
            State::TimeWait => (State::Closed, Some(StreamEvent::Closed)),
            _ => (State::Closed, Some(StreamEvent::Reset)),
        };
        assert_eq!((b.endpoint.state(), b.endpoint.poll_event()), (after, event), "{}", state.name());
        assert!(after == State::Listen || b.endpoint.deadline().is_none());
        // A reset elsewhere in the window is answered with a challenge ACK; outside the window, it
        // is ignored.
        for (seq, answers) in [(next + 1, 1), (next.wrapping_sub(1), 0), (next + (1 << 30), 0)] {
            if !is_open(state) {
                continue;
            }
            let mut b = in_state(state);
            let answer = b.arrive(reset(seq));
            assert_eq!(answer.len(), answers, "{} at {seq}", state.name());
            assert!(answer.iter().all(|s| s.flags == Flags::ACK && s.ack == next));
            assert_eq!(b.endpoint.state(), state);
        }
    }
}

/// Rules: 9293 3.10.7.3 ack; 9293 3.10.7.3 reset; 9293 3.10.7.3 syn
#[test]
fn what_arrives_in_syn_sent() {
    let table = [
        // An ACK of data not sent is not an ACK of the SYN.
        (Segment { flags: Flags::SYN | Flags::ACK, ..segment(0, 2, 0) }, State::SynSent, 0),
        (Segment { flags: Flags::SYN | Flags::ACK, ..segment(0, 0, 0) }, State::SynSent, 0),
        (Segment { flags: Flags::RST | Flags::ACK, ..segment(0, 2, 0) }, State::SynSent, 0),
        (Segment { flags: Flags::RST, ..segment(0, 1, 0) }, State::SynSent, 0),
        (segment(0, 1, 0), State::SynSent, 0),
        (Segment { flags: Flags::SYN | Flags::ACK, ..segment(0, 1, 0) }, State::Established, 1),
        (Segment { flags: Flags::SYN, ack: 0, ..segment(0, 0, 0) }, State::SynReceived, 1),
    ];
    for (arrives, after, answers) in table {
        let mut b = in_state(State::SynSent);
        let sent = b.arrive(arrives);
        assert_eq!((b.endpoint.state(), sent.len()), (after, answers), "{arrives:?}");
        let expected = if after == State::SynReceived { Flags::SYN | Flags::ACK } else { Flags::ACK };
        assert!(sent.iter().all(|s| s.flags == expected && s.ack == 1));
    }
}

/// Rules: 9293 3.5 simultaneous
#[test]
fn crossing_syns_open_one_connection() {
    let mut b = in_state(State::SynSent);
    let answer = b.arrive(Segment { flags: Flags::SYN, ack: 0, ..segment(0, 0, 0) })[0];
    assert_eq!((answer.flags, answer.seq, answer.ack), (Flags::SYN | Flags::ACK, 0, 1));
    b.arrive(Segment { flags: Flags::SYN | Flags::ACK, ..segment(0, 1, 0) });
    assert_eq!(b.endpoint.state(), State::Established);
    assert_eq!(b.endpoint.poll_event(), Some(StreamEvent::Established));
}

/// Rules: 9293 3.10.7.2; 9293 3.10.7.4 fourth
#[test]
fn a_syn_in_each_state() {
    let syn = Segment { flags: Flags::SYN, ack: 0, ..segment(0, 0, 0) };
    for state in STATES {
        let mut b = in_state(state);
        let answer = b.arrive(syn);
        let flags = answer.iter().map(|s| s.flags).collect::<Vec<_>>();
        let expected = match state {
            State::Closed => vec![],
            // In these states, the SYN opens the connection or repeats the one that opened it.
            State::Listen | State::SynSent | State::SynReceived => vec![Flags::SYN | Flags::ACK],
            _ => vec![Flags::ACK], // a challenge
        };
        assert_eq!(flags, expected, "{}", state.name());
        let opens = matches!(state, State::Listen | State::SynSent);
        assert_eq!(b.endpoint.state(), if opens { State::SynReceived } else { state });
    }
}

/// Rules: 9293 3.10.7.4 fifth
#[test]
fn a_segment_without_ack_is_dropped_and_an_ack_moves_the_states_of_closing() {
    for state in STATES.into_iter().filter(|s| is_open(*s)) {
        let mut b = in_state(state);
        let data = Segment { flags: Flags::FIN, ..segment(peer_next(state), 0, 100) };
        assert_eq!((b.arrive(data), b.endpoint.state()), (vec![], state), "{}", state.name());
        assert_eq!(b.endpoint.poll_event(), None);
        // All data sent is acknowledged.
        let all = match state {
            State::SynReceived | State::Established | State::CloseWait => 1,
            _ => 2,
        };
        let after = match state {
            State::SynReceived => State::Established,
            State::FinWait1 => State::FinWait2,
            State::Closing => State::TimeWait,
            State::LastAck => State::Closed,
            other => other,
        };
        assert_eq!(b.arrive(segment(peer_next(state), all, 0)), []);
        assert_eq!(b.endpoint.state(), after, "{}", state.name());
    }
}

/// Rules: 9293 3.10.7.4 seventh; 9293 3.10.7.4 eighth; 9293 3.6
#[test]
fn data_and_fin_in_each_state() {
    for state in STATES.into_iter().filter(|s| is_open(*s)) {
        let mut b = in_state(state);
        let last = Segment { flags: Flags::FIN | Flags::ACK, ..segment(1, 1, 100) };
        let answer = b.arrive(last);
        let (after, delivered) = match state {
            State::SynReceived | State::Established => (State::CloseWait, 100),
            State::FinWait1 => (State::Closing, 100),
            State::FinWait2 => (State::TimeWait, 100),
            other => (other, 0), // nothing follows a FIN
        };
        assert_eq!(
            (b.endpoint.state(), b.endpoint.delivered().get()),
            (after, delivered),
            "{}",
            state.name()
        );
        let next = if delivered > 0 { 102 } else { 2 };
        assert!(answer.len() == 1 && answer[0].ack == next, "a FIN is acknowledged at once");
        let events: Vec<_> = std::iter::from_fn(|| b.endpoint.poll_event()).collect();
        assert_eq!(events.contains(&StreamEvent::PeerClosed), delivered > 0);
    }
    // A FIN that acknowledges ours.
    let mut b = in_state(State::FinWait1);
    b.arrive(fin(2));
    assert_eq!(b.endpoint.state(), State::TimeWait);
}

/// Rules: 9293 3.10.7.4 first
#[test]
fn what_is_acceptable_and_what_is_only_answered() {
    // The window is 1000 bytes, starting at 101. Each row has the sequence number and length of a
    // segment, the number of its bytes that are delivered, and whether all of them had already
    // arrived.
    let table = [
        (101, 100, 100, false),
        (51, 100, 50, false),  // its first half is old
        (1, 100, 0, true),     // old
        (1, 0, 0, false),      // old and empty
        (1101, 100, 0, false), // just beyond the window
        (1001, 100, 0, false), // the window's last 100 bytes, after a hole
        (5000, 100, 0, false),
    ];
    for (seq, len, counts, repeats) in table {
        use aqmlab_units::{Bytes, text::Size};
        let size = |bytes| Value::Size(Size::Bytes(Bytes::new(bytes)));
        let given = [("receive_window", size(1000)), ("mss", size(500)), ("ack_every", Value::Integer(1))];
        let mut b = Bench::accepted(&given);
        b.arrive(segment(1, 1, 100));
        let answer = b.arrive(segment(seq, 1, len));
        assert_eq!(b.endpoint.delivered().get(), 100 + counts, "{seq}, {len}");
        let expected = if len == 0 { vec![] } else { vec![101 + counts as u32] };
        assert_eq!(answer.iter().map(|s| s.ack).collect::<Vec<_>>(), expected, "{seq}, {len}");
        assert_eq!(b.endpoint.counters().duplicates_received, u32::from(repeats), "{seq}, {len}");
    }
}

/// Rules: 9293 3.6.1
#[test]
fn the_side_that_has_closed_still_receives_and_the_other_still_sends() {
    let mut b = in_state(State::FinWait2);
    for n in 0..10 {
        let acks = b.arrive(segment(1 + 100 * n, 2, 100));
        assert_eq!(acks.len(), (n % 2) as usize, "delayed as usual");
    }
    assert_eq!((b.endpoint.state(), b.endpoint.delivered().get()), (State::FinWait2, 1000));
    let mut b = in_state(State::CloseWait);
    b.endpoint.write(1000);
    let sent = b.drain();
    assert_eq!((sent.len(), sent[0].len, sent[0].ack), (1, 1000, 2));
    b.fire();
    b.arrive(segment(2, 1001, 0));
    assert_eq!((b.endpoint.state(), b.endpoint.acked().get()), (State::CloseWait, 1000));
    b.endpoint.close();
    assert!(b.drain()[0].flags.has(Flags::FIN));
    assert_eq!(b.endpoint.state(), State::LastAck);
}

/// Rules: 9293 3.6.1; 9293 3.10.7.4 eighth
#[test]
fn time_wait_lasts_two_lifetimes_from_the_last_fin() {
    let mut b = in_state(State::TimeWait);
    let began = b.now;
    b.now += Span::s(100);
    let again = b.arrive(Segment { flags: Flags::FIN | Flags::ACK, ..segment(1, 2, 0) });
    assert_eq!(again.iter().map(|s| s.ack).collect::<Vec<_>>(), [2], "the last ACK was lost");
    b.fire();
    assert_eq!((b.now, b.endpoint.state()), (began + Span::s(100 + 240), State::Closed));
    assert_eq!(b.endpoint.poll_event(), Some(StreamEvent::Closed));
}

/// Rules: 9293 3.10.7.1
#[test]
fn a_connection_that_is_over_answers_with_a_reset() {
    let mut b = in_state(State::Closed);
    let answer = b.arrive(segment(1, 1, 100));
    assert!(answer.len() == 1 && answer[0].flags.has(Flags::RST) && answer[0].seq == 1);
    assert_eq!(b.arrive(Segment { flags: Flags::RST | Flags::ACK, ..segment(1, 1, 0) }), []);
}

/// Rules: 9293 3.10.5
#[test]
fn an_abort_tells_whom_it_concerns() {
    for state in STATES.into_iter().filter(|s| *s != State::Closed) {
        let mut b = in_state(state);
        b.endpoint.abort();
        let told = b.drain().iter().filter(|s| s.flags.has(Flags::RST)).count();
        let unheard = matches!(state, State::Listen | State::SynSent | State::TimeWait);
        assert_eq!(told, usize::from(!unheard), "{}", state.name());
        assert_eq!(
            (b.endpoint.state(), b.endpoint.poll_event()),
            (State::Closed, Some(StreamEvent::Aborted))
        );
        assert_eq!(b.endpoint.deadline(), None);
    }
}
