//! The delay stage: order, ties, loss, cap, conservation.

use aqmlab_qdisc::{DelayStage, Pipe, Reason};
use aqmlab_random::Stream;
use aqmlab_units::{Bytes, Instant, Packets, Rate, Span};
use proptest::prelude::*;

mod support;
use support::{Fates, Pkt};

fn ms(n: u64) -> Instant {
    Instant::ZERO + Span::ms(n)
}

#[test]
fn flows_have_their_own_delay_and_ties_leave_in_order_of_arrival() {
    let pipes = vec![Pipe::new(Span::ms(20)), Pipe::new(Span::ms(10))];
    let mut stage = DelayStage::new(pipes, |p: &Pkt| p.flow as usize, Packets::new(10));
    let mut lost = Fates::default();
    let pkt = |number, flow| Pkt { flow, ..Pkt::new(number) };
    stage.accept(ms(0), pkt(0, 0), &mut lost);
    stage.accept(ms(5), pkt(1, 1), &mut lost);
    stage.accept(ms(10), pkt(2, 1), &mut lost);
    assert_eq!(stage.deadline(), Some(ms(15)));
    assert_eq!(stage.release(ms(14)), None);
    assert_eq!(stage.release(ms(15)), Some((ms(15), pkt(1, 1))));
    assert_eq!(stage.release(ms(25)), Some((ms(20), pkt(0, 0))));
    assert_eq!(stage.release(ms(25)), Some((ms(20), pkt(2, 1))));
    assert_eq!(stage.release(ms(25)), None);
    stage.check_books().unwrap();
}

#[test]
fn the_cap_has_its_own_counter() {
    let mut stage = DelayStage::new(vec![Pipe::new(Span::s(1))], |_: &Pkt| 0, Packets::new(3));
    let mut lost = Fates::default();
    for number in 0..5 {
        stage.accept(ms(0), Pkt { size: 100, ..Pkt::new(number) }, &mut lost);
    }
    assert_eq!(lost.lost(), [(3, Reason::Overflow), (4, Reason::Overflow)]);
    assert_eq!(stage.books().overflowed.packets, 2);
    assert_eq!(stage.books().overflowed.bytes, 200);
    assert_eq!(stage.books().lost.packets, 0);
    stage.check_books().unwrap();
}

proptest! {
    /// For any arrivals, each packet leaves once or is lost once, due times never decrease, and the packets
    /// of each flow keep their order.
    #[test]
    fn conservation_and_order(
        arrivals in prop::collection::vec((0u64..2_000_000, 0u64..3, 40u64..1501), 1..150),
        seed in 0u64..1000,
    ) {
        let pipes = vec![
            Pipe::new(Span::ms(3)),
            Pipe::new(Span::ms(1)).with_rate(Rate::mbit(5), Bytes::new(18)),
            Pipe::new(Span::ZERO).with_loss(0.3, Stream::new(seed, "loss")),
        ];
        let mut stage = DelayStage::new(pipes, |p: &Pkt| p.flow as usize, Packets::new(20));
        let mut lost = Fates::default();
        let (mut now, mut out) = (Instant::ZERO, Vec::new());
        for (number, &(gap, flow, size)) in (0..).zip(&arrivals) {
            now += Span::ns(gap);
            out.extend(std::iter::from_fn(|| stage.release(now)));
            stage.accept(now, Pkt { flow, size, ..Pkt::new(number) }, &mut lost);
            stage.check_books().unwrap();
        }
        out.extend(std::iter::from_fn(|| stage.release(Instant::FAR_FUTURE)));
        stage.check_books().unwrap();
        prop_assert!(out.is_sorted_by_key(|(due, _)| *due));
        for flow in 0..3 {
            prop_assert!(out.iter().filter(|(_, p)| p.flow == flow).is_sorted_by_key(|(_, p)| p.number));
        }
        let left = out.iter().map(|(_, p)| p.number);
        let mut numbers: Vec<u64> = left.chain(lost.lost().iter().map(|(number, _)| *number)).collect();
        numbers.sort_unstable();
        prop_assert!(numbers.iter().copied().eq(0..arrivals.len() as u64));
    }
}
