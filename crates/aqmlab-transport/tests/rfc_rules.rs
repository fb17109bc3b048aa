//! Rules of the RFCs as tables: what arrives, and what must leave.
//!
//! One endpoint, the other side played by the test, time by hand.

use aqmlab_params::{Origin, Value};
use aqmlab_transport::{
    ENDLESS, Endpoint, Flags, Profile, Role, Segment, State, StreamEvent, profile_settings,
};
use aqmlab_units::{Instant, Span};

const MSS: u32 = 1460;

fn ms(n: u64) -> Instant {
    Instant::ZERO + Span::ms(n)
}

/// An endpoint and what it has sent since last asked.
struct Bench {
    endpoint: Endpoint,
    profile: Profile,
    now: Instant,
}

impl Bench {
    fn new(role: Role, given: &[(&'static str, Value)]) -> Bench {
        let mut settings = profile_settings("rfc").expect("built in");
        for (name, value) in given {
            settings.set(name, value.clone(), Origin::Given);
        }
        let profile = Profile::from_settings(&settings).expect("consistent");
        Bench { endpoint: Endpoint::new(role, &profile), profile, now: Instant::ZERO }
    }

    /// An active endpoint past its handshake, whose SYN took 100 ms, with an endless stream to send and the
    /// first flight sent.
    fn established(given: &[(&'static str, Value)]) -> Bench {
        let mut b = Bench::new(Role::Active, given);
        b.endpoint.open(b.now, &b.profile);
        b.drain();
        b.endpoint.write(ENDLESS);
        b.now = ms(100);
        let ecn = Flags::NONE.with_if(Flags::ECE, b.profile.ecn);
        b.arrive(Segment { flags: Flags::SYN | Flags::ACK | ecn, ..segment(0, 1, 0) });
        assert_eq!(b.endpoint.poll_event(), Some(StreamEvent::Established));
        b
    }

    fn arrive(&mut self, seg: Segment) -> Vec<Segment> {
        self.arrive_marked(seg, false)
    }

    fn arrive_marked(&mut self, seg: Segment, ce: bool) -> Vec<Segment> {
        self.endpoint.on_segment(self.now, &seg, ce, &self.profile);
        self.drain()
    }

    /// A pure ACK of everything below segment `n`.
    fn ack(&mut self, n: u32) -> Vec<Segment> {
        self.arrive(ack_of(n))
    }

    /// Lets the time come at which the endpoint wants to be called.
    fn fire(&mut self) -> Vec<Segment> {
        self.now = self.endpoint.deadline().expect("a timer is running");
        self.endpoint.on_timer(self.now, &self.profile);
        self.drain()
    }

    fn drain(&mut self) -> Vec<Segment> {
        std::iter::from_fn(|| self.endpoint.poll_transmit(self.now, &self.profile)).collect()
    }
}

fn segment(seq: u32, ack: u32, len: u32) -> Segment {
    Segment { seq, ack, len, flags: Flags::ACK, window: 1 << 30, ect: false }
}

fn ack_of(n: u32) -> Segment {
    segment(1, 1 + n * MSS, 0)
}

/// Numbers of the data segments, from 0.
fn numbers(sent: &[Segment]) -> Vec<u32> {
    sent.iter().filter(|s| s.len > 0).map(|s| (s.seq - 1) / MSS).collect()
}

fn iw(n: u64) -> (&'static str, Value) {
    ("initial_window", Value::Integer(n))
}

#[test]
fn rfc5681_initial_window_by_segment_size() {
    use aqmlab_units::{Bytes, text::Size};
    for (mss, segments) in [(536, 4.0), (1095, 4.0), (1096, 3.0), (1460, 3.0), (2190, 3.0), (2191, 2.0)] {
        let b = Bench::established(&[("mss", Value::Size(Size::Bytes(Bytes::new(mss))))]);
        assert_eq!(b.endpoint.cwnd(), segments, "{mss}");
    }
}

#[test]
fn rfc5681_slow_start_then_one_segment_per_window() {
    let mut b = Bench::established(&[iw(2)]);
    // Each ACK of one segment lets two go.
    assert_eq!(numbers(&b.ack(1)), [2, 3]);
    assert_eq!(numbers(&b.ack(2)), [4, 5]);
    assert_eq!(b.endpoint.cwnd(), 4.0);
    // A delayed ACK of two segments opens the window by one only.
    assert_eq!(numbers(&b.ack(4)), [6, 7, 8]);
    assert_eq!(b.endpoint.cwnd(), 5.0);
}

#[test]
fn rfc3465_counts_bytes_up_to_its_limit() {
    let abc = |l| [iw(4), ("increase", Value::Choice("byte_counting")), ("abc_limit", Value::Integer(l))];
    for (limit, window) in [(1, 5.0), (2, 6.0)] {
        let mut b = Bench::established(&abc(limit));
        b.ack(2);
        assert_eq!(b.endpoint.cwnd(), window);
    }
}

#[test]
fn rfc3465_after_a_timeout_the_limit_is_one_and_avoidance_counts_a_window() {
    let abc = [iw(4), ("increase", Value::Choice("byte_counting"))];
    let mut b = Bench::established(&abc);
    b.fire();
    b.ack(2);
    assert_eq!(b.endpoint.cwnd(), 2.0, "one segment, although two were acknowledged (RFC 3465, 2.3)");
    // ssthresh is two: avoidance. A window of two segments acknowledged in all opens it by one.
    b.ack(3);
    assert_eq!(b.endpoint.cwnd(), 2.0);
    b.ack(4);
    assert_eq!(b.endpoint.cwnd(), 3.0);
}

#[test]
fn rfc5681_ssthresh_is_never_below_two_segments() {
    for initial in [1, 2, 3] {
        let mut b = Bench::established(&[iw(initial)]);
        b.fire();
        assert_eq!(b.endpoint.ssthresh(), 2.0);
    }
}

#[test]
fn rfc5681_fast_retransmit_at_the_third_duplicate() {
    let mut b = Bench::established(&[iw(10), ("limited_transmit", Value::Flag(false))]);
    assert_eq!(b.ack(0), [], "the first duplicate");
    assert_eq!(b.ack(0), [], "the second");
    assert_eq!(numbers(&b.ack(0)), [0], "the third");
    assert_eq!(b.endpoint.ssthresh(), 5.0, "half of ten in flight");
    // Inflated to 5 + 3: ten are out, so two more duplicates bring it to ten, the next lets one go.
    assert_eq!(b.ack(0), []);
    assert_eq!(b.ack(0), []);
    assert_eq!(numbers(&b.ack(0)), [10]);
    // Full acknowledgment of all eleven: cwnd = min(ssthresh, max(0, 1) + 1).
    b.ack(11);
    assert!(!b.endpoint.is_recovering());
    assert_eq!(b.endpoint.cwnd(), 2.0);
}

#[test]
fn rfc5681_what_is_a_duplicate_acknowledgment() {
    let table = [
        (ack_of(0), 1),
        (Segment { len: 100, ..ack_of(0) }, 0),
        (Segment { flags: Flags::ACK | Flags::FIN, ..ack_of(0) }, 0),
        (Segment { window: 5000, ..ack_of(0) }, 0),
    ];
    for (segment, counted) in table {
        let mut b = Bench::established(&[iw(4)]);
        b.arrive(segment);
        assert_eq!(b.endpoint.counters().duplicate_acks, counted, "{segment:?}");
    }
    let mut b = Bench::established(&[iw(1)]);
    b.endpoint.close();
    b.ack(1);
    b.arrive(segment(1, 2 + MSS, 0));
    b.arrive(segment(1, 2 + MSS, 0));
    assert_eq!(b.endpoint.counters().duplicate_acks, 0, "nothing outstanding");
}

#[test]
fn rfc3042_limited_transmit_sends_on_the_first_two_duplicates() {
    let mut b = Bench::established(&[iw(4)]);
    assert_eq!(numbers(&b.ack(0)), [4]);
    assert_eq!(numbers(&b.ack(0)), [5]);
    assert_eq!(numbers(&b.ack(0)), [0]);
    // RFC 5681, 3.2, step 2: the two extra segments are no part of the flight that is halved.
    assert_eq!(b.endpoint.ssthresh(), 2.0);
}

#[test]
fn rfc6582_a_partial_ack_retransmits_the_next_hole() {
    let mut b = Bench::established(&[iw(10), ("limited_transmit", Value::Flag(false))]);
    (0..3).for_each(|_| drop(b.ack(0)));
    let deadline = b.endpoint.deadline();
    b.now += Span::ms(100);
    // Segments 0, 4 and 6 are missing: the retransmission of 0 brings an ACK of 4.
    assert_eq!(numbers(&b.ack(4)), [4]);
    assert!(b.endpoint.is_recovering());
    let first = b.endpoint.deadline();
    assert!(first > deadline, "the first partial ACK restarts the timer");
    b.now += Span::ms(100);
    assert_eq!(numbers(&b.ack(6)), [6]);
    assert_eq!(b.endpoint.deadline(), first, "impatient: the second does not");
    b.now += Span::ms(100);
    // Ten acknowledged: over. Five in slow start territory: cwnd = min(5, max(0, 1) + 1).
    assert_eq!(numbers(&b.ack(10)), [10, 11]);
    assert_eq!(b.endpoint.cwnd(), 2.0);
}

#[test]
fn rfc6582_slow_but_steady_restarts_the_timer_each_time() {
    let steady = ("partial_ack", Value::Choice("slow_but_steady"));
    let mut b = Bench::established(&[iw(10), steady]);
    (0..3).for_each(|_| drop(b.ack(0)));
    for n in [4, 6] {
        b.now += Span::ms(100);
        b.ack(n);
        assert_eq!(b.endpoint.deadline(), Some(b.now + b.endpoint.rto(&b.profile)));
    }
}

#[test]
fn rfc6582_duplicates_of_segments_sent_before_a_timeout_do_not_retransmit() {
    let mut b = Bench::established(&[iw(6)]);
    assert_eq!(numbers(&b.fire()), [0]);
    assert_eq!(numbers(&b.ack(1)), [1, 2], "slow start from one segment, from there on");
    // Segments 1 and 2 had arrived the first time: their repetition brings duplicates.
    for _ in 0..3 {
        b.ack(1);
    }
    assert_eq!(b.endpoint.counters().fast_retransmits, 0);
    b.ack(6);
    b.ack(7);
    for _ in 0..3 {
        b.ack(7);
    }
    assert_eq!(b.endpoint.counters().fast_retransmits, 1, "beyond `recover` they count again");
}

#[test]
fn rfc5681_a_timeout_halves_ssthresh_once_and_the_window_is_one() {
    let mut b = Bench::established(&[iw(10)]);
    b.fire();
    assert_eq!((b.endpoint.cwnd(), b.endpoint.ssthresh()), (1.0, 5.0));
    b.fire();
    assert_eq!((b.endpoint.cwnd(), b.endpoint.ssthresh()), (1.0, 5.0), "held for the same segment");
}

#[test]
fn rfc5681_an_idle_connection_restarts_with_the_initial_window() {
    let mut b = Bench::new(Role::Active, &[iw(3)]);
    b.endpoint.open(b.now, &b.profile);
    b.drain();
    b.endpoint.write(u64::from(14 * MSS));
    b.now = ms(100);
    b.arrive(Segment { flags: Flags::SYN | Flags::ACK, ..segment(0, 1, 0) });
    for n in 1..=14 {
        b.ack(n);
    }
    assert_eq!(b.endpoint.cwnd(), 17.0);
    let idle_until = |b: &mut Bench, pause| {
        b.now += pause;
        b.endpoint.write(u64::from(20 * MSS));
        b.drain().len()
    };
    let rto = b.endpoint.rto(&b.profile);
    assert_eq!(idle_until(&mut b, rto), 17, "not longer than the timeout");
    b.ack(31);
    b.ack(34);
    assert_eq!(idle_until(&mut b, rto + Span::ns(1)), 3);
}

#[test]
fn rfc6298_known_answers() {
    // Samples of 100, 100 and 200 ms; G 10 ms, no floor.
    let given = [iw(1), ("min_rto", Value::Span(Span::ZERO)), ("granularity", Value::Span(Span::ms(10)))];
    let mut b = Bench::established(&given);
    let us = |n| Span::us(n);
    assert_eq!((b.endpoint.srtt(), b.endpoint.rto(&b.profile)), (Some(us(100_000)), us(300_000)));
    b.now = ms(200);
    b.ack(1);
    assert_eq!((b.endpoint.srtt(), b.endpoint.rto(&b.profile)), (Some(us(100_000)), us(250_000)));
    b.now = ms(400);
    b.ack(2);
    assert_eq!((b.endpoint.srtt(), b.endpoint.rto(&b.profile)), (Some(us(112_500)), us(325_000)));
}

#[test]
fn rfc6298_backs_off_doubling_to_the_bound_and_karn_takes_no_sample() {
    let mut b = Bench::established(&[iw(1)]);
    let mut last = b.now;
    for expected in [1, 2, 4, 8, 16, 32, 60, 60] {
        assert_eq!(numbers(&b.fire()), [0]);
        assert_eq!(b.now - last, Span::s(expected));
        last = b.now;
    }
    let srtt = b.endpoint.srtt();
    b.now += Span::ms(700);
    b.ack(1);
    assert_eq!(b.endpoint.srtt(), srtt, "it could be for either copy");
    assert_eq!(b.endpoint.rto(&b.profile), Span::s(60), "backed off until a sample is taken");
    b.now += Span::ms(100);
    b.ack(2);
    assert_eq!(b.endpoint.rto(&b.profile), Span::s(1));
}

#[test]
fn rfc6298_a_lost_syn_doubles_and_leaves_three_seconds_and_a_window_of_one() {
    let mut b = Bench::new(Role::Active, &[iw(10)]);
    b.endpoint.open(b.now, &b.profile);
    b.drain();
    b.endpoint.write(ENDLESS);
    for at in [1, 3, 7] {
        assert!(b.fire()[0].flags.has(Flags::SYN));
        assert_eq!(b.now, Instant::ZERO + Span::s(at));
    }
    b.now += Span::ms(100);
    let sent = b.arrive(Segment { flags: Flags::SYN | Flags::ACK, ..segment(0, 1, 0) });
    assert_eq!(numbers(&sent), [0], "RFC 5681, 3.1: initial window of one segment");
    assert_eq!(b.endpoint.rto(&b.profile), Span::s(3), "RFC 6298, 5.7");
}

fn ecn() -> [(&'static str, Value); 2] {
    [iw(16), ("ecn", Value::Flag(true))]
}

fn echo(n: u32) -> Segment {
    Segment { flags: Flags::ACK | Flags::ECE, ..ack_of(n) }
}

#[test]
fn rfc3168_one_halving_per_window_no_retransmission_and_cwr_once() {
    let mut b = Bench::established(&ecn());
    assert!(b.endpoint.uses_ecn());
    let mut sent = b.arrive(echo(1));
    assert_eq!(b.endpoint.cwnd(), 8.0);
    // A second mark in the same window, echoed until CWR arrives.
    for n in 2..=16 {
        sent.extend(b.arrive(echo(n)));
    }
    assert_eq!(b.endpoint.cwnd(), 8.0, "still one halving");
    assert_eq!(numbers(&sent), (16..24).collect::<Vec<_>>(), "the next flight is eight, nothing again");
    let cwr: Vec<u32> = sent.iter().filter(|s| s.flags.has(Flags::CWR)).map(|s| (s.seq - 1) / MSS).collect();
    assert_eq!(cwr, [16], "on the first new segment only");
    assert_eq!(b.endpoint.counters().ecn_reductions, 1);
    // The next window may be reduced again.
    b.arrive(echo(17));
    assert_eq!((b.endpoint.cwnd(), b.endpoint.counters().ecn_reductions), (4.0, 2));
}

#[test]
fn rfc3168_loss_and_mark_in_one_window_are_one_reduction() {
    let mut b = Bench::established(&ecn());
    b.arrive(echo(1));
    for _ in 0..3 {
        b.arrive(echo(1));
    }
    assert!(b.endpoint.is_recovering(), "what is missing is retransmitted");
    assert_eq!((b.endpoint.ssthresh(), b.endpoint.cwnd()), (8.0, 8.0));
    let mut b = Bench::established(&ecn());
    for _ in 0..3 {
        b.ack(0);
    }
    assert_eq!(b.endpoint.ssthresh(), 8.0);
    b.arrive(echo(4));
    b.arrive(echo(16));
    assert_eq!((b.endpoint.ssthresh(), b.endpoint.counters().ecn_reductions), (8.0, 0));
}

#[test]
fn rfc3168_a_timeout_in_the_marked_window_holds_ssthresh_and_a_later_one_does_not() {
    let mut b = Bench::established(&ecn());
    b.arrive(echo(1));
    b.fire();
    assert_eq!(b.endpoint.ssthresh(), 8.0, "the mark has halved it already");
    let mut b = Bench::established(&ecn());
    b.arrive(echo(1));
    (2..=18).for_each(|n| drop(b.ack(n)));
    let flight = b.endpoint.flight().get() / u64::from(MSS);
    b.fire();
    assert_eq!(b.endpoint.ssthresh(), flight as f64 / 2.0, "a new window, a new reduction");
}

#[test]
fn rfc6582_a_loss_after_a_mark_recovers_all_that_was_sent_before_it() {
    let mut b = Bench::established(&ecn());
    b.arrive(echo(1));
    (2..=12).for_each(|n| drop(b.ack(n)));
    let sent = 12 + b.endpoint.flight().get() as u32 / MSS;
    assert!(sent > 16, "new data since the mark");
    (0..3).for_each(|_| drop(b.ack(12)));
    // The mark's window ends at 16; `recover` is what had been sent when the loss was seen.
    assert_eq!(numbers(&b.ack(17))[0], 17, "a partial acknowledgment: the next hole");
    assert!(b.endpoint.is_recovering());
}

#[test]
fn rfc3168_at_one_segment_the_sender_waits_for_its_timer() {
    let mut b = Bench::established(&[iw(1), ecn()[1].clone()]);
    b.now = ms(200);
    assert_eq!(b.arrive(echo(1)), [], "nothing leaves");
    assert_eq!(b.endpoint.deadline(), Some(ms(200) + b.endpoint.rto(&b.profile)));
    let sent = b.fire();
    assert_eq!(numbers(&sent), [1], "one new segment");
    assert!(sent[0].flags.has(Flags::CWR));
    assert_eq!((b.endpoint.counters().timeouts, b.endpoint.counters().ecn_waits), (0, 1));
}

#[test]
fn rfc3168_what_is_ecn_capable() {
    let mut b = Bench::new(Role::Active, &ecn());
    b.endpoint.open(b.now, &b.profile);
    let syn = b.drain()[0];
    assert!(syn.flags.has(Flags::SYN | Flags::ECE | Flags::CWR) && !syn.ect);
    let mut b = Bench::established(&ecn());
    assert!(b.ack(1).iter().all(|s| s.ect), "new data");
    let again = b.fire();
    assert!(numbers(&again) == [1] && !again[0].ect, "not a retransmission");
    let pure = b.arrive(segment(500, 1, 100));
    assert!(!pure[0].ect, "not a pure acknowledgment");
}

#[test]
fn rfc3168_the_echo_lasts_until_cwr() {
    let mut b = Bench::new(Role::Passive, &[("ecn", Value::Flag(true)), ("ack_every", Value::Integer(1))]);
    let syn = Segment { flags: Flags::SYN | Flags::ECE | Flags::CWR, ack: 0, ..segment(0, 0, 0) };
    let syn_ack = b.arrive(syn)[0];
    assert!(syn_ack.flags.has(Flags::SYN | Flags::ACK | Flags::ECE) && !syn_ack.flags.has(Flags::CWR));
    let mut at = 1;
    // (CE, CWR) arriving, and whether the acknowledgment echoes.
    let table = [
        (false, false, false),
        (true, false, true),
        (false, false, true),
        (false, true, false),
        (true, true, true),
        (false, true, false),
    ];
    for (i, (ce, cwr, echoes)) in table.into_iter().enumerate() {
        let data = Segment { flags: Flags::ACK.with_if(Flags::CWR, cwr), ect: true, ..segment(at, 1, 100) };
        let ack = b.arrive_marked(data, ce)[0];
        assert_eq!(ack.flags.has(Flags::ECE), echoes, "segment {i}");
        at += 100;
    }
}

#[test]
fn rfc3168_a_side_that_does_not_want_ecn_gets_none() {
    let mut b = Bench::new(Role::Passive, &[]);
    let syn = Segment { flags: Flags::SYN | Flags::ECE | Flags::CWR, ack: 0, ..segment(0, 0, 0) };
    assert_eq!(b.arrive(syn)[0].flags, Flags::SYN | Flags::ACK);
    assert!(!b.endpoint.uses_ecn());
}

#[test]
fn rfc5681_acknowledgments_at_once_and_delayed() {
    let mut b = Bench::new(Role::Passive, &[]);
    b.arrive(Segment { flags: Flags::SYN, ack: 0, ..segment(0, 0, 0) });
    b.arrive(segment(1, 1, 0));
    let acks = |sent: Vec<Segment>| sent.iter().map(|s| s.ack).collect::<Vec<_>>();
    assert_eq!(acks(b.arrive(segment(1, 1, 100))), []);
    assert_eq!(acks(b.arrive(segment(101, 1, 100))), [201], "every second segment");
    assert_eq!(acks(b.arrive(segment(301, 1, 100))), [201], "out of order: at once");
    assert_eq!(acks(b.arrive(segment(401, 1, 100))), [201]);
    assert_eq!(acks(b.arrive(segment(201, 1, 100))), [501], "the hole is filled: at once");
    assert_eq!(acks(b.arrive(segment(201, 1, 100))), [501], "a repetition: at once");
    assert_eq!(acks(b.arrive(segment(501, 1, 100))), []);
    let arrived = b.now;
    assert_eq!(acks(b.fire()), [601]);
    assert_eq!(b.now, arrived + b.profile.delayed_ack);
}

#[test]
fn rfc9293_a_reset_counts_only_at_the_next_expected_number() {
    let reset = |seq| Segment { flags: Flags::RST, ..segment(seq, 0, 0) };
    let mut b = Bench::established(&[iw(2)]);
    assert_eq!(b.arrive(reset(1 << 31)), [], "outside the window: ignored");
    assert_eq!(b.arrive(reset(2)).len(), 1, "inside it: a challenge acknowledgment");
    assert_eq!(b.endpoint.state(), State::Established);
    assert_eq!(b.arrive(reset(1)), []);
    assert_eq!((b.endpoint.state(), b.endpoint.poll_event()), (State::Closed, Some(StreamEvent::Reset)));
    assert_eq!(b.endpoint.deadline(), None);
}

#[test]
fn rfc9293_gives_up_after_its_retries_and_says_so() {
    let mut b = Bench::established(&[iw(2), ("data_retries", Value::Integer(3))]);
    (0..3).for_each(|_| assert_eq!(numbers(&b.fire()), [0]));
    let last = b.fire();
    assert!(last.len() == 1 && last[0].flags.has(Flags::RST));
    assert_eq!(b.endpoint.poll_event(), Some(StreamEvent::Aborted));
    let mut b = Bench::new(Role::Active, &[("syn_retries", Value::Integer(2))]);
    b.endpoint.open(b.now, &b.profile);
    b.drain();
    (0..2).for_each(|_| assert!(b.fire()[0].flags.has(Flags::SYN)));
    assert_eq!(b.fire(), []);
    assert_eq!(b.endpoint.poll_event(), Some(StreamEvent::Aborted));
}

#[test]
fn rfc9293_an_acknowledgment_of_the_future_is_answered_and_changes_nothing() {
    let mut b = Bench::established(&[iw(2)]);
    assert_eq!(b.ack(3).len(), 1);
    assert_eq!((b.endpoint.acked().get(), b.endpoint.flight().get()), (0, u64::from(2 * MSS)));
}

#[test]
fn rfc9293_the_receive_window_of_the_other_side_bounds_the_flight() {
    let mut b = Bench::established(&[iw(4)]);
    let narrow = Segment { window: 3 * MSS + 100, ..ack_of(4) };
    assert_eq!(numbers(&b.arrive(narrow)), [4, 5, 6], "whole segments only (silly window avoidance)");
}

#[test]
fn nagle_holds_a_partial_segment_while_data_is_outstanding() {
    for (nagle, expected) in [(false, vec![100, 100]), (true, vec![100])] {
        let mut b = Bench::new(Role::Active, &[("nagle", Value::Flag(nagle))]);
        b.endpoint.open(b.now, &b.profile);
        b.drain();
        b.arrive(Segment { flags: Flags::SYN | Flags::ACK, ..segment(0, 1, 0) });
        let mut sent = Vec::new();
        for _ in 0..2 {
            b.endpoint.write(100);
            sent.extend(b.drain());
        }
        assert_eq!(sent.iter().map(|s| s.len).collect::<Vec<_>>(), expected);
        let rest: u32 = b.arrive(segment(1, 101, 0)).iter().map(|s| s.len).sum();
        assert_eq!(rest, if nagle { 100 } else { 0 });
    }
}
