//! PIE compared with a model of the pseudo-code of RFC 8033, appendix A, by the author of the law: it shows errors
//! of arithmetic, not of reading. The model has floats and a timer that ticks. Under loads of all kinds, the same
//! packets leave and are lost, at the same instants, and the variables agree at each tick. With the options of
//! section 5, derandomisation and the cap are those of appendix B.

use std::collections::VecDeque;

use aqmlab_params::Value;
use aqmlab_qdisc::contract::LINK;
use aqmlab_qdisc::{Discipline, Qdisc, Reason, Stamped};
use aqmlab_random::Stream;
use aqmlab_units::Instant;

mod support;
use support::{Fates, Pkt, build, bytes, law_value, settings};

const QDELAY_REF: f64 = 0.015;
const MAX_BURST: f64 = 0.150;
const T_UPDATE: f64 = 0.015;
const T_UPDATE_NS: u64 = 15_000_000;
const MEAN_PKTSIZE: u64 = 1000;
const TAIL_DROP: u64 = 150_000;

/// The RFC's queue, with draws from the same stream as ours: number n is for arrival number n.
struct Model {
    queue: VecDeque<(u64, Pkt)>,
    byte_length: u64,
    options: bool,
    drop_prob: f64,
    accu_prob: f64,
    burst_allowance: f64,
    current_qdelay: f64,
    qdelay_old: f64,
    draws: aqmlab_random::Numbered,
    arrivals: u64,
    lost: Vec<(u64, Reason)>,
}

impl Model {
    fn new(options: bool, draws: Stream) -> Self {
        Model {
            queue: VecDeque::new(),
            byte_length: 0,
            options,
            drop_prob: 0.0,
            accu_prob: 0.0,
            burst_allowance: MAX_BURST,
            current_qdelay: 0.0,
            qdelay_old: 0.0,
            draws: draws.numbered(),
            arrivals: 0,
            lost: Vec::new(),
        }
    }

    fn enque(&mut self, now: u64, packet: Pkt) {
        let u = aqmlab_random::unit_from_bits(self.draws.at(self.arrivals));
        self.arrivals += 1;
        if self.byte_length + packet.size > TAIL_DROP {
            self.lost.push((packet.number, Reason::Overflow));
            self.accu_prob = 0.0;
            return;
        }
        if self.drop_prob == 0.0
            && self.current_qdelay < QDELAY_REF / 2.0
            && self.qdelay_old < QDELAY_REF / 2.0
        {
            self.burst_allowance = MAX_BURST;
        }
        if self.burst_allowance == 0.0 && self.drop_early(u) {
            self.lost.push((packet.number, Reason::Early));
            self.accu_prob = 0.0;
        } else {
            self.byte_length += packet.size;
            self.queue.push_back((now, packet));
        }
    }

    fn drop_early(&mut self, u: f64) -> bool {
        if (self.qdelay_old < QDELAY_REF / 2.0 && self.drop_prob < 0.2)
            || self.byte_length <= 2 * MEAN_PKTSIZE
        {
            return false;
        }
        if self.options {
            if self.drop_prob == 0.0 {
                self.accu_prob = 0.0;
            }
            self.accu_prob += self.drop_prob;
            if self.accu_prob < 0.85 {
                return false;
            }
            if self.accu_prob >= 8.5 {
                return true;
            }
        }
        u < self.drop_prob
    }

    fn deque(&mut self, now: u64) -> Option<Pkt> {
        let (then, packet) = self.queue.pop_front()?;
        self.byte_length -= packet.size;
        self.current_qdelay = (now - then) as f64 / 1e9;
        // The deviation that the chapter declares.
        if self.byte_length == 0 {
            self.current_qdelay = 0.0;
        }
        Some(packet)
    }

    fn calculate_drop_prob(&mut self) {
        let mut p =
            0.125 * (self.current_qdelay - QDELAY_REF) + 1.25 * (self.current_qdelay - self.qdelay_old);
        if self.drop_prob < 0.000_001 {
            p /= 2048.0;
        } else if self.drop_prob < 0.000_01 {
            p /= 512.0;
        } else if self.drop_prob < 0.000_1 {
            p /= 128.0;
        } else if self.drop_prob < 0.001 {
            p /= 32.0;
        } else if self.drop_prob < 0.01 {
            p /= 8.0;
        } else if self.drop_prob < 0.1 {
            p /= 2.0;
        }
        if self.options && self.drop_prob >= 0.1 && p > 0.02 {
            p = 0.02;
        }
        self.drop_prob += p;
        if self.current_qdelay == 0.0 && self.qdelay_old == 0.0 {
            self.drop_prob *= 0.98;
        }
        self.drop_prob = self.drop_prob.clamp(0.0, 1.0);
        self.qdelay_old = self.current_qdelay;
        self.burst_allowance = (self.burst_allowance - T_UPDATE).max(0.0);
        if self.burst_allowance < 1e-9 {
            self.burst_allowance = 0.0; // ten times 15 ms
        }
    }
}

/// Runs both under the same load, and returns the number of losses by the law and by the limit.
fn run(options: bool, seed: u64, packets: u64) -> (usize, usize) {
    let flag = |name| (name, Value::Flag(options));
    let given = settings(&[
        ("limit", bytes(TAIL_DROP)),
        ("mean_packet", bytes(MEAN_PKTSIZE)),
        flag("derandomize"),
        flag("cap"),
    ]);
    let mut ours: Discipline<Stamped<Pkt>> = build("pie", &given, &LINK, Stream::new(seed, "pie"));
    let mut model = Model::new(options, Stream::new(seed, "pie"));
    let (mut load, mut fates) = (Stream::new(seed, "load"), Fates::default());
    let (mut arrives, mut leaves, mut ticks, mut rate) = (0, 0, T_UPDATE_NS, 1.0);
    let mut number = 0;
    while number < packets {
        let now = arrives.min(leaves);
        while ticks <= now {
            model.calculate_drop_prob();
            let at = Instant::from_ns(ticks);
            for (name, theirs) in [
                ("p", model.drop_prob),
                ("qdelay", model.current_qdelay),
                ("burst_allowance", model.burst_allowance),
            ] {
                let found = law_value(&ours, at, name);
                assert!((found - theirs).abs() < 1e-12, "{name} at {at:?}: {found} {theirs}");
            }
            ticks += T_UPDATE_NS;
        }
        let at = Instant::from_ns(now);
        if leaves <= arrives {
            let out = ours.dequeue(at, &mut fates).map(|p| p.packet.number);
            assert_eq!(out, model.deque(now).map(|p| p.number), "{at:?}");
            leaves += 800_000;
        } else {
            let size = [1500, 1500, 600, 60][load.below(4) as usize];
            let packet = Pkt { size, ..Pkt::new(number) };
            ours.enqueue(at, Stamped { packet, arrived: at }, &mut fates);
            model.enque(now, packet);
            number += 1;
            if load.hit(0.004) {
                rate = 0.3 + 2.2 * load.unit();
            }
            let idle = if load.hit(0.000_5) { 3_000_000_000.0 * load.unit() } else { 0.0 };
            arrives += (800_000.0 / rate * 2.0 * load.unit() + idle) as u64;
        }
    }
    assert_eq!(fates.lost(), model.lost);
    let early = model.lost.iter().filter(|(_, reason)| *reason == Reason::Early).count();
    (early, model.lost.len() - early)
}

#[test]
fn every_fate_and_every_update_is_that_of_the_rfcs_pseudo_code() {
    for options in [false, true] {
        let (mut early, mut overflows) = (0, 0);
        for seed in 0..10 {
            let (law, limit) = run(options, seed, 50_000);
            early += law;
            overflows += limit;
        }
        println!("options {options}: {early} early drops, {overflows} overflows");
        assert!(early > 10_000 && overflows > 100);
    }
}
