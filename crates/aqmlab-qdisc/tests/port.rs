//! The port's books: conservation, exact integrals, the cut after the warm-up, classes.

use std::collections::VecDeque;

use aqmlab_params::{Origin, Settings, Value};
use aqmlab_qdisc::books::Tally;
use aqmlab_qdisc::contract::LINK;
use aqmlab_qdisc::disc::DropTail;
use aqmlab_qdisc::{
    Backlog, Cause, Discipline, Ecn, LawSamples, Limit, Observer, Packet, PacketKind, Port, Qdisc, Reason,
    Stamped,
};
use aqmlab_random::Stream;
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Instant, Packets, Rate, Span};
use proptest::prelude::*;

mod support;
use support::{Pkt, build};

#[derive(Default)]
struct Fates {
    enqueued: Vec<(Instant, u64)>,
    dequeued: Vec<(Instant, u64)>,
    dropped: Vec<(Instant, Pkt, Cause)>,
    marked: Vec<(Instant, Pkt, Cause)>,
}

impl Observer<Stamped<Pkt>> for Fates {
    fn enqueued(&mut self, now: Instant, pkt: &Stamped<Pkt>) {
        assert_eq!(pkt.arrived, now);
        self.enqueued.push((now, pkt.packet.number));
    }
    fn dequeued(&mut self, now: Instant, pkt: &Stamped<Pkt>) {
        self.dequeued.push((now, pkt.packet.number));
    }
    fn dropped(&mut self, now: Instant, pkt: Stamped<Pkt>, at: Cause) {
        self.dropped.push((now, pkt.packet, at));
    }
    fn marked(&mut self, now: Instant, pkt: &Stamped<Pkt>, at: Cause) {
        self.marked.push((now, pkt.packet, at));
    }
}

fn ms(n: u64) -> Instant {
    Instant::ZERO + Span::ms(n)
}

fn pkt(number: u64, class: usize) -> Pkt {
    Pkt { size: 1250, class, ..Pkt::new(number) }
}

/// 1250 B take 1 ms.
fn droptail(limit: u64) -> Port<Pkt> {
    let queue = DropTail::new(Limit::Packets(Packets::new(limit)));
    Port::new(Discipline::DropTail(queue), Rate::mbit(10), Bytes::ZERO, 2)
}

#[test]
fn one_buffer_holds_what_waits_and_the_link_one_packet_more() {
    let (mut port, mut fates) = (droptail(2), Fates::default());
    assert_eq!(port.arrive(ms(0), pkt(0, 0), &mut fates), Some(ms(1)));
    for n in 1..5 {
        assert_eq!(port.arrive(ms(0), pkt(n, 0), &mut fates), None);
    }
    assert_eq!(port.backlog().packets, Packets::new(2));
    let dropped: Vec<u64> = fates.dropped.iter().map(|(_, p, _)| p.number).collect();
    assert_eq!(dropped, [3, 4]);
    assert!(fates.dropped.iter().all(|(_, _, at)| at.reason == Reason::Overflow));
    for n in 0..3 {
        assert_eq!(port.next_event(), Some(ms(n + 1)));
        let done = port.link_free(ms(n + 1), &mut fates);
        assert_eq!((done.packet.number, done.arrived), (n, ms(0)));
        assert_eq!(done.next_end, (n < 2).then(|| ms(n + 2)));
    }
    assert_eq!(port.next_event(), None);
    port.check_books().unwrap();
}

#[test]
fn an_observer_hears_of_every_arrival_and_every_departure_unless_the_port_looks_ahead() {
    let (mut port, mut heard) = (droptail(1), Fates::default());
    for n in 0..3 {
        port.arrive(ms(0), pkt(n, 0), &mut heard);
    }
    port.link_free(ms(1), &mut heard);
    assert_eq!(heard.enqueued, [(ms(0), 0), (ms(0), 1), (ms(0), 2)]);
    assert_eq!(heard.dequeued, [(ms(0), 0), (ms(1), 1)]);
    assert_eq!(heard.dropped.iter().map(|(at, pkt, _)| (*at, pkt.number)).collect::<Vec<_>>(), [(ms(0), 2)]);
    let (mut port, mut heard) = (droptail(1), Fates::default());
    assert!(port.look_ahead());
    for n in 0..3 {
        port.arrive_ahead(ms(0), &pkt(n, 0), &mut heard);
    }
    port.catch_up(ms(1));
    assert_eq!((heard.enqueued, heard.dequeued, heard.dropped.len()), (vec![], vec![], 1));
}

#[test]
fn overhead_takes_time_on_the_link_and_room_nowhere_else() {
    let queue = DropTail::new(Limit::Bytes(Bytes::new(1250)));
    // 1250 B + 125 B at 10 Mbit/s: 1.1 ms.
    let mut port = Port::new(Discipline::DropTail(queue), Rate::mbit(10), Bytes::new(125), 1);
    let mut fates = Fates::default();
    assert_eq!(port.arrive(ms(0), pkt(0, 0), &mut fates), Some(Instant::ZERO + Span::us(1100)));
    port.arrive(ms(0), pkt(1, 0), &mut fates);
    assert_eq!(port.backlog().bytes, Bytes::new(1250));
    let done = port.link_free(Instant::ZERO + Span::us(1100), &mut fates);
    assert_eq!(done.next_end, Some(Instant::ZERO + Span::us(2200)));
    assert_eq!(port.books().total().departed.bytes, 1250);
}

#[test]
fn the_rest_of_a_packet_goes_on_at_the_new_rate() {
    let (mut port, mut fates) = (droptail(5), Fates::default());
    port.arrive(ms(0), pkt(0, 0), &mut fates);
    port.arrive(ms(0), pkt(1, 0), &mut fates);
    // Half of 1250 B is left at 0.5 ms; at 1 Mbit/s it takes 5 ms.
    let half = ms(0) + Span::us(500);
    assert_eq!(port.set_rate(half, Rate::mbit(1), &mut fates), Some(ms(5) + Span::us(500)));
    assert!(!port.is_due(ms(1)) && port.is_due(ms(5) + Span::us(500)));
    assert_eq!(port.link_free(ms(5) + Span::us(500), &mut fates).next_end, Some(ms(15) + Span::us(500)));
}

#[test]
fn a_link_that_stands_still_keeps_its_packet_and_takes_no_other() {
    let (mut port, mut fates) = (droptail(5), Fates::default());
    port.arrive(ms(0), pkt(0, 0), &mut fates);
    port.arrive(ms(0), pkt(1, 0), &mut fates);
    let half = ms(0) + Span::us(500);
    assert_eq!(port.set_rate(half, Rate::default(), &mut fates), None);
    assert_eq!((port.next_event(), port.backlog().packets.get()), (None, 1));
    assert_eq!(port.arrive(ms(3), pkt(2, 0), &mut fates), None);
    assert_eq!(port.set_rate(ms(4), Rate::mbit(10), &mut fates), Some(ms(4) + Span::us(500)));
    assert_eq!(port.link_free(ms(4) + Span::us(500), &mut fates).next_end, Some(ms(5) + Span::us(500)));
    // This packet ends exactly when the link stops, so it leaves, but no other one begins.
    assert_eq!(
        port.set_rate(ms(5) + Span::us(500), Rate::default(), &mut fates),
        Some(ms(5) + Span::us(500))
    );
    assert_eq!(port.link_free(ms(5) + Span::us(500), &mut fates).next_end, None);
    assert_eq!((port.is_sending(), port.backlog().packets.get()), (false, 1));
    assert_eq!(port.set_rate(ms(9), Rate::mbit(5), &mut fates), Some(ms(11)));
    // A quarter of it is left when the link stops again, and goes on at half that rate.
    assert_eq!(port.set_rate(ms(10) + Span::us(500), Rate::default(), &mut fates), None);
    assert_eq!(port.set_rate(ms(20), Rate::kbit(2500), &mut fates), Some(ms(21)));
    port.settle(ms(20) + Span::us(500));
    // It has sent for 0.5 ms, 1.5 ms, 1.5 ms and 0.5 ms.
    assert_eq!(port.books().busy(), Span::ms(4));
    // Seven eighths of the third packet: 1093.75 bytes, to the nearest whole number.
    assert_eq!(port.books().total().sent_bytes, 2 * 1250 + 1094);
    assert_eq!(fates.dequeued, [(ms(0), 0), (ms(4) + Span::us(500), 1), (ms(9), 2)]);
    port.check_books().unwrap();
}

/// The exact law of a link that always has something to send: packet n leaves when the integral of the
/// rate reaches the n packets before it and itself, rounded down to a nanosecond.
#[test]
fn a_million_departures_under_steps_are_those_of_the_integral_of_the_rate() {
    let (mut port, mut fates) = (droptail(2), Fates::default());
    let mut draws = Stream::new(7, "steps");
    let (mut now, mut rate) = (0u64, 10_000_000u64);
    // Work in units of 10^-9 bit: done up to `now`, and due after each packet.
    let (mut done, mut due) = (0u128, 0u128);
    let mut next_change = 3;
    let size = |n: u64| if n.is_multiple_of(3) { 40 } else { 1500 };
    for n in 0..2 {
        port.arrive(Instant::ZERO, Pkt { size: size(n), ..Pkt::new(n) }, &mut fates);
    }
    let mut ends = port.next_event();
    let mut still = 0;
    for n in 0..1_000_000u64 {
        due += Bytes::new(size(n)).nanobits();
        while rate == 0 || next_change <= now + ((due - done) / u128::from(rate)) as u64 {
            done += u128::from(rate) * u128::from(next_change - now);
            now = next_change;
            let most = 1 << (10 + draws.below(25));
            rate = if draws.below(9) == 0 { 0 } else { 1_000 + draws.below(most) };
            still += u32::from(rate == 0);
            next_change = now + 1 + draws.below(4_000_000);
            ends = port.set_rate(Instant::from_ns(now), Rate::bps(rate), &mut fates);
        }
        let leaves = Instant::from_ns(now + ((due - done) / u128::from(rate)) as u64);
        assert_eq!(ends, Some(leaves), "packet {n}");
        let departure = port.link_free(leaves, &mut fates);
        assert_eq!(departure.packet.number, n);
        ends = departure.next_end;
        port.arrive(leaves, Pkt { size: size(n + 2), ..Pkt::new(n + 2) }, &mut fates);
        done += u128::from(rate) * u128::from(leaves.as_ns() - now);
        now = leaves.as_ns();
    }
    assert!(still > 500, "the link stood still {still} times");
}

/// Mahimahi's rule: a chance carries bytes of the packet in transmission and then of those behind it; a chance that finds
/// nothing is lost.
#[test]
fn chances_are_shared_by_small_packets_and_are_not_saved() {
    let mut port = Port::new(
        Discipline::DropTail(DropTail::new(Limit::Packets(Packets::new(9)))),
        Rate::mbit(10),
        Bytes::ZERO,
        1,
    );
    let mut fates = Fates::default();
    port.send_at_chances();
    let chance = |port: &mut Port<Pkt>, at: u64, fates: &mut Fates| {
        let mut left = Bytes::new(1500);
        let leave = std::iter::from_fn(|| port.use_chance(ms(at), &mut left, fates));
        let numbers: Vec<u64> = leave.map(|departure| departure.packet.number).collect();
        (numbers, left.get())
    };
    assert_eq!(chance(&mut port, 1, &mut fates), (vec![], 1500));
    for (number, bytes) in [(0, 700), (1, 700), (2, 1500), (3, 100)] {
        assert_eq!(port.arrive(ms(2), Pkt { size: bytes, ..Pkt::new(number) }, &mut fates), None);
    }
    assert_eq!(port.next_event(), None);
    // 700 + 700 + 100 of 1500, then 1400 + 100.
    assert_eq!(chance(&mut port, 3, &mut fates), (vec![0, 1], 0));
    assert_eq!((port.backlog().packets.get(), port.is_sending()), (1, true));
    port.settle(ms(4));
    assert_eq!(port.books().total().sent_bytes, 1500);
    assert_eq!(chance(&mut port, 5, &mut fates), (vec![2, 3], 0));
    assert_eq!(chance(&mut port, 6, &mut fates), (vec![], 1500));
    assert_eq!(fates.dequeued.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [ms(3), ms(3), ms(3), ms(5)]);
    port.settle(ms(7));
    // A packet waits from 2 to 5 ms.
    assert_eq!(port.books().busy(), Span::ms(3));
    port.check_books().unwrap();
}

#[test]
fn integrals_are_exact_and_the_cut_keeps_what_is_inside() {
    let (mut port, mut fates) = (droptail(10), Fates::default());
    // Three packets at 0: one is sent until 1 ms, two wait; a fourth, of class 1, arrives at 1.5 ms.
    for n in 0..3 {
        port.arrive(ms(0), pkt(n, 0), &mut fates);
    }
    port.link_free(ms(1), &mut fates);
    let half = ms(1) + Span::us(500);
    port.measure_from(half);
    port.arrive(half, pkt(3, 1), &mut fates);
    port.link_free(ms(2), &mut fates);
    port.link_free(ms(3), &mut fates);
    port.settle(ms(3) + Span::us(500));
    port.check_books().unwrap();

    // Packets waiting from 1.5 ms on: 2 until 2 ms, 1 until 3 ms, 0 until 3.5 ms (packet 3 is then being
    // sent).
    let books = port.books();
    let waiting = books.backlog_packets();
    assert_eq!(books.span(), Span::ms(2));
    assert_eq!(waiting.integral, 2 * 500_000 + 1_000_000);
    assert_eq!(waiting.integral_of_square, 4 * 500_000 + 1_000_000);
    assert_eq!((waiting.min, waiting.max), (0, 2));
    assert_eq!(waiting.mean(books.span()), 1.0);
    assert_eq!(books.backlog_bytes().integral, 1250 * waiting.integral);
    assert_eq!(books.busy(), Span::ms(2));
    let bins: Vec<_> = waiting.histogram.bins().map(|b| (b.low, b.weight)).collect();
    assert_eq!(bins, [(0, 500_000), (1, 1_000_000), (2, 500_000)]);

    let (old, new) = (books.class(0), books.class(1));
    assert_eq!(
        (old.initial.packets, old.arrived().packets, old.departed.packets, old.held().packets),
        (2, 0, 2, 0)
    );
    assert_eq!(
        (new.initial.packets, new.arrived().packets, new.departed.packets, new.held().packets),
        (0, 1, 0, 1)
    );
    // Half of packet 1 was sent before the cut, and half of packet 3 by the end.
    assert_eq!((old.sent_bytes, new.sent_bytes, books.total().sent_bytes), (625 + 1250, 625, 2500));
    // Packet 2 waited from 0 to 2 ms, and packet 3 from 1.5 to 3 ms; the sojourn of packet 1 was over before
    // the cut.
    assert_eq!(old.sojourn_sum_ns, 2_000_000);
    assert_eq!(new.sojourn_sum_ns, 1_500_000);
}

#[test]
fn marks_and_drops_are_booked_by_reason_class_and_kind_and_told_to_the_host() {
    let mut given = Settings::default();
    for (name, value) in [
        ("limit", Value::Size(Size::Packets(Packets::new(40)))),
        ("ecn", Value::Flag(true)),
        ("w_q", Value::Number(0.1)),
    ] {
        given.set(name, value, Origin::Given);
    }
    let red = build("red", &given, &LINK, Stream::new(1, "red"));
    let (mut port, mut fates) = (Port::new(red, LINK.rate, Bytes::new(18), 2), Fates::default());
    let mut draws = Stream::new(2, "arrivals");
    let mut now = Instant::ZERO;
    for number in 0..20_000 {
        now += Span::ns(draws.below(1_500_000));
        while let Some(end) = port.next_event().filter(|end| *end <= now) {
            port.link_free(end, &mut fates);
        }
        let ecn = if number % 2 == 0 { Ecn::Ect0 } else { Ecn::NotEct };
        let kind = PacketKind::ALL[(number / 2 % 5) as usize];
        port.arrive(now, Pkt { class: (number % 2) as usize, kind, ecn, ..Pkt::new(number) }, &mut fates);
    }
    port.check_books().unwrap();
    let books = port.books();
    let (capable, other) = (books.class(0), books.class(1));
    for class in [0, 1] {
        for kind in PacketKind::ALL {
            let of_class = books.class(class);
            let (came, own) = (of_class.arrivals[kind as usize], of_class.fates[kind as usize]);
            assert_eq!(came.all.packets, 2_000, "ten thousand packets per class, of five kinds in turn");
            assert_eq!(came.ect, if class == 0 { came.all } else { Tally::default() });
            for reason in Reason::ALL {
                let of = |list: &[(Instant, Pkt, Cause)]| {
                    let is = |p: &Pkt, at: &Cause| (p.class, p.kind, at.reason) == (class, kind, reason);
                    list.iter().filter(|(_, p, at)| is(p, at)).count() as u64
                };
                assert_eq!(own.dropped[reason as usize].packets, of(&fates.dropped), "{kind:?} {reason:?}");
                assert_eq!(own.marked[reason as usize].packets, of(&fates.marked), "{kind:?} {reason:?}");
            }
            let [marked, dropped] =
                [own.marked, own.dropped].map(|reasons| reasons[Reason::Early as usize].packets);
            assert!(if class == 0 { marked } else { dropped } > 20, "{kind:?}: {own:?}");
        }
    }
    assert_eq!(capable.arrived().packets, 10_000);
    assert_eq!(other.marked_total().packets, 0);
    assert_eq!(capable.marked_total().packets, fates.marked.len() as u64);
    let lost = books.total().dropped_total().packets;
    assert_eq!(lost, capable.dropped_total().packets + other.dropped_total().packets);
    assert_eq!(lost, fates.dropped.len() as u64);
}

/// A discipline that loses a packet without reporting it: the books must not balance.
struct Leaky(VecDeque<Stamped<Pkt>>);

impl Qdisc<Stamped<Pkt>> for Leaky {
    fn enqueue(&mut self, _: Instant, pkt: Stamped<Pkt>, _: &mut dyn Observer<Stamped<Pkt>>) {
        if pkt.packet.number != 3 {
            self.0.push_back(pkt);
        }
    }
    fn dequeue(&mut self, _: Instant, _: &mut dyn Observer<Stamped<Pkt>>) -> Option<Stamped<Pkt>> {
        self.0.pop_front()
    }
    fn deadline(&self) -> Option<Instant> {
        None
    }
    fn rate_changed(&mut self, _: Instant, _: Rate) {}
    fn backlog(&self) -> Backlog {
        let bytes = self.0.iter().map(Packet::wire_len).sum();
        Backlog { packets: Packets::new(self.0.len() as u64), bytes }
    }
    fn observe(&self, _: Instant, _: &mut LawSamples) {}
}

#[test]
fn a_leak_is_found_and_named() {
    let leaky = Discipline::Custom(Box::new(Leaky(VecDeque::new())));
    let (mut port, mut fates) = (Port::new(leaky, Rate::mbit(10), Bytes::ZERO, 1), Fates::default());
    for n in 0..3 {
        port.arrive(ms(0), pkt(n, 0), &mut fates);
        port.check_books().unwrap();
    }
    port.arrive(ms(0), pkt(3, 0), &mut fates);
    let error = port.check_books().unwrap_err().to_string();
    assert!(error.starts_with("arrived and not yet gone = backlog + in transmission"), "{error}");
}

proptest! {
    /// For any arrivals and any cut, the books balance at every event. For a queue that loses only
    /// arrivals, Little's law is an identity: the integral of the backlog is the sum of the waiting
    /// times.
    #[test]
    fn books_balance_at_any_time(
        arrivals in prop::collection::vec((0u64..3_000_000, 40u64..1501, 0usize..2), 1..200),
        limit in 1u64..20,
        cut in 0usize..200,
    ) {
        let (mut port, mut fates) = (droptail(limit), Fates::default());
        let mut now = Instant::ZERO;
        for (n, &(gap, size, class)) in arrivals.iter().enumerate() {
            now += Span::ns(gap);
            while let Some(end) = port.next_event().filter(|end| *end <= now) {
                port.link_free(end, &mut fates);
                port.check_books().unwrap();
            }
            if n == cut {
                port.measure_from(now);
            }
            port.arrive(now, Pkt { size, class, ecn: Ecn::Ect0, ..Pkt::new(n as u64) }, &mut fates);
            port.check_books().unwrap();
        }
        while let Some(end) = port.next_event() {
            port.link_free(end, &mut fates);
        }
        port.check_books().unwrap();
        let total = port.books().total();
        prop_assert_eq!(total.held().packets, 0);
        if cut >= arrivals.len() {
            prop_assert_eq!(total.sojourn_sum_ns, port.books().backlog_packets().integral);
            prop_assert_eq!(total.departed.packets + fates.dropped.len() as u64, arrivals.len() as u64);
        }
    }
}

/// Passes packets of 64 B to a link of 1 Tbit/s, which takes 0.512 ns for each: number n arrives at
/// `n * step / 1000` ns, rounded down.
fn short_packets(look_ahead: bool, packets: u64, step_ps: u64) -> Port<Pkt> {
    let queue = DropTail::new(Limit::Packets(Packets::new(1_000_000)));
    let mut port = Port::new(Discipline::DropTail(queue), Rate::gbit(1000), Bytes::ZERO, 1);
    assert_eq!(look_ahead, look_ahead && port.look_ahead());
    let mut fates = Fates::default();
    for number in 0..packets {
        let at = Instant::from_ns(number * step_ps / 1000);
        let pkt = Pkt { size: 64, ..Pkt::new(number) };
        if look_ahead {
            port.arrive_ahead(at, &pkt, &mut fates);
        } else {
            while let Some(end) = port.next_event().filter(|end| *end <= at) {
                port.link_free(end, &mut fates);
            }
            port.arrive(at, pkt, &mut fates);
        }
    }
    let end = Instant::from_ns(packets * step_ps / 1000);
    while let Some(sent) = port.next_event().filter(|sent| !look_ahead && *sent <= end) {
        port.link_free(sent, &mut fates);
    }
    port.settle(end);
    port.check_books().unwrap();
    port
}

#[test]
fn the_busy_time_of_packets_below_a_nanosecond_is_exact() {
    for look_ahead in [false, true] {
        // 500 Gbit/s: the link is busy for half of the time.
        let port = short_packets(look_ahead, 1_000_000, 1024);
        assert_eq!(port.books().span(), Span::us(1024));
        let busy = port.books().busy();
        assert_eq!(busy, Span::us(512), "look-ahead {look_ahead}");
        assert_eq!(port.books().total().sent_bytes, 64_000_000);
    }
}

#[test]
fn a_link_sends_no_more_than_its_rate_whatever_the_size_of_packets() {
    for look_ahead in [false, true] {
        // 2 Tbit/s come: the link is always busy, and as many packets leave as it can send.
        let port = short_packets(look_ahead, 1_000_000, 256);
        assert_eq!(port.books().span(), Span::us(256));
        assert_eq!(port.books().busy(), Span::us(256), "look-ahead {look_ahead}");
        let sent = port.books().total().sent_bytes;
        assert_eq!(sent, 1_000_000 * 256 / 8, "1 Tbit/s for 256 us, look-ahead {look_ahead}");
    }
}

#[test]
fn busy_time_and_bytes_hold_across_a_change_of_rate() {
    // 1250 B take 1 ms at 10 Mbit/s and 10 ms at 1 Mbit/s; half of a packet is left when the rate changes.
    let (mut port, mut fates) = (droptail(5), Fates::default());
    port.arrive(ms(0), pkt(0, 0), &mut fates);
    port.arrive(ms(0), pkt(1, 0), &mut fates);
    let half = ms(0) + Span::us(500);
    port.set_rate(half, Rate::mbit(1), &mut fates);
    port.settle(ms(1));
    assert_eq!(port.books().busy(), Span::ms(1));
    assert_eq!(port.books().total().sent_bytes, 625 + 63);
    port.link_free(half + Span::ms(5), &mut fates);
    port.settle(half + Span::ms(10));
    assert_eq!(port.books().busy(), Span::us(10_500));
    assert_eq!(port.books().total().sent_bytes, 1250 + 625);
    port.link_free(half + Span::ms(15), &mut fates);
    port.settle(ms(20));
    assert_eq!(port.books().busy(), Span::us(15_500));
    assert_eq!(port.books().total().sent_bytes, 2500);
}
