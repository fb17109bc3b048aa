//! The link of a port keeps its rate to the nanosecond, whatever arrives while it sends.

mod support;

use aqmlab_qdisc::disc::DropTail;
use aqmlab_qdisc::{Discipline, Limit, Port};
use aqmlab_units::{Bytes, Instant, Packets, Rate};
use support::{Fates, Pkt, SIZE};

/// A prime: no transmission time is a whole number of nanoseconds.
const RATE: Rate = Rate::bps(9_999_991);

/// Returns when the `n`-th packet of a back-to-back train that began at `start` has been sent.
fn exact_end(start: Instant, n: u64) -> Instant {
    Instant::from_ns(start.as_ns() + n * SIZE.get() * 8 * 1_000_000_000 / RATE.as_bps())
}

#[test]
fn arrivals_during_a_train_do_not_shift_it_and_each_train_is_exact() {
    let queue = DropTail::new(Limit::Packets(Packets::new(10)));
    let mut port = Port::new(Discipline::DropTail(queue), RATE, Bytes::ZERO, 1);
    let mut lost = Fates::default();
    let mut start = Instant::from_ns(12_345);
    for train in 0..3 {
        let mut end = port.arrive(start, Pkt::new(0), &mut lost);
        for n in 1..=1000 {
            assert_eq!(end, Some(exact_end(start, n)), "train {train}, packet {n}");
            let now = end.expect("the train continues");
            if n < 1000 {
                port.arrive(Instant::from_ns(now.as_ns() - 1), Pkt::new(n), &mut lost);
            }
            end = port.link_free(now, &mut lost).next_end;
        }
        assert_eq!(end, None, "the train is over");
        start = Instant::from_ns(exact_end(start, 1000).as_ns() + 777);
    }
    assert_eq!(lost, Fates::default());
}
