//! The delay stage: order, ties, loss, cap, conservation.

use aqmlab_qdisc::{Cause, DelayStage, Dscp, Ecn, Observer, Packet, Pipe, Reason, Side};
use aqmlab_random::Stream;
use aqmlab_units::{Bytes, Instant, Packets, Rate, Span};
use proptest::prelude::*;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Pkt {
    number: usize,
    flow: usize,
    size: u64,
}

impl Packet for Pkt {
    fn wire_len(&self) -> Bytes {
        Bytes::new(self.size)
    }
    fn flow_hash(&self, salt: u64) -> u64 {
        salt ^ self.flow as u64
    }
    fn host_hash(&self, _: Side, salt: u64) -> u64 {
        salt
    }
    fn ecn(&self) -> Ecn {
        Ecn::NotEct
    }
    fn mark_ce(&mut self) {}
    fn dscp(&self) -> Dscp {
        Dscp(0)
    }
    fn set_dscp(&mut self, _: Dscp) {}
}

#[derive(Default)]
struct Lost(Vec<(usize, Reason)>);

impl Observer<Pkt> for Lost {
    fn dropped(&mut self, _: Instant, pkt: Pkt, at: Cause) {
        self.0.push((pkt.number, at.reason));
    }
    fn marked(&mut self, _: Instant, _: &Pkt, _: Cause) {}
}

fn ms(n: u64) -> Instant {
    Instant::ZERO + Span::ms(n)
}

#[test]
fn flows_have_their_own_delay_and_ties_leave_in_order_of_arrival() {
    let pipes = vec![Pipe::new(Span::ms(20)), Pipe::new(Span::ms(10))];
    let mut stage = DelayStage::new(pipes, |p: &Pkt| p.flow, Packets::new(10));
    let mut lost = Lost::default();
    let pkt = |number, flow| Pkt { number, flow, size: 1000 };
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
    let mut lost = Lost::default();
    for number in 0..5 {
        stage.accept(ms(0), Pkt { number, flow: 0, size: 100 }, &mut lost);
    }
    assert_eq!(lost.0, [(3, Reason::Overflow), (4, Reason::Overflow)]);
    assert_eq!(stage.books().overflowed.packets, 2);
    assert_eq!(stage.books().overflowed.bytes, 200);
    assert_eq!(stage.books().lost.packets, 0);
    stage.check_books().unwrap();
}

proptest! {
    /// Whatever comes: each packet leaves once or is lost once, due times never fall, and each flow keeps
    /// its order.
    #[test]
    fn conservation_and_order(
        arrivals in prop::collection::vec((0u64..2_000_000, 0usize..3, 40u64..1501), 1..150),
        seed in 0u64..1000,
    ) {
        let pipes = vec![
            Pipe::new(Span::ms(3)),
            Pipe::new(Span::ms(1)).with_rate(Rate::mbit(5), Bytes::new(18)),
            Pipe::new(Span::ZERO).with_loss(0.3, Stream::new(seed, "loss")),
        ];
        let mut stage = DelayStage::new(pipes, |p: &Pkt| p.flow, Packets::new(20));
        let mut lost = Lost::default();
        let (mut now, mut out) = (Instant::ZERO, Vec::new());
        for (number, &(gap, flow, size)) in arrivals.iter().enumerate() {
            now += Span::ns(gap);
            out.extend(std::iter::from_fn(|| stage.release(now)));
            stage.accept(now, Pkt { number, flow, size }, &mut lost);
            stage.check_books().unwrap();
        }
        out.extend(std::iter::from_fn(|| stage.release(Instant::FAR_FUTURE)));
        stage.check_books().unwrap();
        prop_assert!(out.is_sorted_by_key(|(due, _)| *due));
        for flow in 0..3 {
            prop_assert!(out.iter().filter(|(_, p)| p.flow == flow).is_sorted_by_key(|(_, p)| p.number));
        }
        let mut numbers: Vec<usize> = out.iter().map(|(_, p)| p.number).chain(lost.0.iter().map(|l| l.0)).collect();
        numbers.sort_unstable();
        prop_assert!(numbers.iter().copied().eq(0..arrivals.len()));
    }
}
