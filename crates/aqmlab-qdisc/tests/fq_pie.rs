//! FQ-PIE where it differs from FQ-CoDel: losses of arrivals, and queues that other flows may use.

use aqmlab_params::Value;
use aqmlab_qdisc::contract::LINK;
use aqmlab_qdisc::disc::{PieControl, idle_queue_bytes};
use aqmlab_qdisc::{Discipline, Qdisc, Reason, Stamped};
use aqmlab_random::Stream;
use aqmlab_units::{Instant, Span};

mod support;
use support::{Fates, Pkt, build, bytes, law_value, packets, settings};

fn queue(given: &[(&'static str, Value)]) -> Discipline<Stamped<Pkt>> {
    let perfect = [("queues", Value::Choice("perfect"))];
    build("fq_pie", &settings(&[&perfect[..], given].concat()), &LINK, Stream::new(1, "salt"))
}

fn arrival(number: u64, flow: u64, at: Instant) -> Stamped<Pkt> {
    Stamped { packet: Pkt { flow, ..Pkt::new(number) }, arrived: at }
}

/// The packets of all flows share the limit, and a packet that is lost makes no queue new.
#[test]
fn a_flow_that_finds_no_room_has_no_turn() {
    for given in [("limit", packets(3)), ("limit", bytes(3500)), ("memory_limit", bytes(3999))] {
        let (mut queue, mut fates, now) = (queue(&[given]), Fates::default(), Instant::ZERO);
        for (number, flow) in [(0, 0), (1, 0), (2, 1), (3, 2), (4, 0)] {
            queue.enqueue(now, arrival(number, flow, now), &mut fates);
        }
        assert_eq!(fates.lost(), [(3, Reason::Overflow), (4, Reason::Overflow)]);
        assert_eq!(["new", "old", "new_queues"].map(|name| law_value(&queue, now, name)), [2.0, 0.0, 2.0]);
        let left = std::iter::from_fn(|| queue.dequeue(now, &mut fates)).map(|out| out.packet.number);
        assert_eq!(left.collect::<Vec<_>>(), [0, 1, 2]);
    }
}

/// An arrival that is lost leaves its idle queue, which it does not make new, where it is among the idle ones.
#[test]
fn a_lost_arrival_changes_no_list() {
    let (mut queue, mut fates, now) = (queue(&[("limit", packets(6))]), Fates::default(), Instant::ZERO);
    let mut number = 0;
    let mut arrive = |queue: &mut Discipline<_>, fates: &mut Fates, flow| {
        queue.enqueue(now, arrival(number, flow, now), fates);
        number += 1;
    };
    // Six flows have queues; three of them, and then a fourth, fill the buffer.
    (0..6).for_each(|flow| arrive(&mut queue, &mut fates, flow));
    while queue.dequeue(now, &mut fates).is_some() {}
    [3, 3, 4, 4, 5, 5].into_iter().for_each(|flow| arrive(&mut queue, &mut fates, flow));
    arrive(&mut queue, &mut fates, 1);
    assert_eq!(queue.dequeue(now, &mut fates).map(|out| out.packet.flow), Some(3));
    [0, 1].into_iter().for_each(|flow| arrive(&mut queue, &mut fates, flow));
    assert_eq!(fates.lost().len(), 2);
    let mut left: Vec<u64> =
        std::iter::from_fn(|| queue.dequeue(now, &mut fates)).map(|out| out.packet.flow).collect();
    left.sort_unstable();
    assert_eq!(left, [0, 3, 4, 4, 5, 5]);
}

/// A queue whose PIE remembers congestion is not given to another flow; once its probability is 0 again, it is.
#[test]
fn idle_queues_are_used_again_once_nothing_is_remembered() {
    for preset in ["rfc", "linux"] {
        let given = [("preset", Value::Choice(preset)), ("max_burst", Value::Span(Span::ZERO))];
        let (mut queue, mut fates, mut now) = (queue(&given), Fates::default(), Instant::ZERO);
        let Discipline::FqPie(queue) = &mut queue else { panic!("not FQ-PIE") };
        // Flow 0 waits for a second and more, so its probability rises.
        for number in 0..2000 {
            now += Span::us(500);
            queue.enqueue(now, arrival(number, 0, now), &mut fates);
            if number % 2 == 0 {
                queue.dequeue(now, &mut fates);
            }
        }
        while queue.dequeue(now, &mut fates).is_some() {}
        assert!(queue.law_of(&arrival(0, 0, now)).unwrap().law.probability() > 0.1, "{preset}");
        let mut kept = Vec::new();
        for flow in [1, 1000] {
            now += Span::s(flow);
            queue.enqueue(now, arrival(3000 + flow, flow, now), &mut fates);
            while queue.dequeue(now, &mut fates).is_some() {}
            kept.push(queue.law_of(&arrival(0, 0, now)).is_some());
        }
        assert_eq!(kept, [true, false], "{preset}");
    }
}

/// The chapter states the memory of an empty queue.
#[test]
#[cfg(target_pointer_width = "64")]
fn an_empty_queue_takes_what_the_chapter_states() {
    assert_eq!(idle_queue_bytes::<Stamped<Pkt>, PieControl>(), 176);
}
