//! Packets that leave a delay stage at the same instant are ordered by pipe, and within a pipe by
//! arrival.

mod support;

use aqmlab_qdisc::{DelayStage, Pipe};
use aqmlab_units::{Instant, Packets, Span};
use support::{Fates, Pkt};

#[test]
fn many_that_are_due_at_once_leave_in_order_of_their_pipes() {
    // Packet n enters pipe n at n ms and takes 64 - n ms, so all packets are due at 64 ms.
    let pipes = (0..64).map(|n| Pipe::new(Span::ms(64 - n))).collect();
    let mut stage = DelayStage::new(pipes, |p: &Pkt| p.number as usize, Packets::new(64));
    let (mut lost, due) = (Fates::default(), Instant::ZERO + Span::ms(64));
    for n in 0..64 {
        stage.accept(Instant::ZERO + Span::ms(n), Pkt::new(n), &mut lost);
    }
    let out: Vec<_> = std::iter::from_fn(|| stage.release(due)).collect();
    assert_eq!(out, (0..64).map(|n| (due, Pkt::new(n))).collect::<Vec<_>>());
    assert_eq!(lost, Fates::default());
    stage.check_books().unwrap();
}

#[test]
fn who_came_first_to_another_pipe_does_not_matter() {
    // Packets of pipe 1 arrive first, and all are due at the same instant; two packets of the same
    // pipe keep their order.
    let pipes = vec![Pipe::new(Span::ms(1)), Pipe::new(Span::ms(2))];
    let mut stage = DelayStage::new(pipes, |p: &Pkt| (p.number % 2) as usize, Packets::new(8));
    let mut lost = Fates::default();
    for n in [3, 1] {
        stage.accept(Instant::ZERO, Pkt::new(n), &mut lost);
    }
    for n in [2, 0] {
        stage.accept(Instant::ZERO + Span::ms(1), Pkt::new(n), &mut lost);
    }
    let due = Instant::ZERO + Span::ms(2);
    let out: Vec<_> = std::iter::from_fn(|| stage.release(due)).collect();
    assert_eq!(out, [2, 0, 3, 1].map(|n| (due, Pkt::new(n))));
}
