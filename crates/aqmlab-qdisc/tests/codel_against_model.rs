//! CoDel compared with a model written from the pseudo-code of RFC 8289, section 5, line by line: a queue and
//! the routines `dodequeue`, `control_law` and `dequeue` in the RFC's own words and order. For a million
//! packets, under loads of all kinds, with and without ECN, the same packets leave, are marked and are lost,
//! at the same instants.

use std::collections::VecDeque;

use aqmlab_params::Value;
use aqmlab_qdisc::contract::LINK;
use aqmlab_qdisc::{Cause, Discipline, Ecn, LawSamples, Observer, Qdisc, Reason, Stamped};
use aqmlab_random::Stream;
use aqmlab_units::{Instant, Packets, Span};

const TARGET: u64 = 5_000_000;
const INTERVAL: u64 = 100_000_000;
const MAXPACKET: u64 = 1500;
const LIMIT: usize = 1000;

mod support;
use support::{Pkt, build, packets, settings};

/// The fate of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fate {
    Sent(Ecn),
    Dropped(Reason),
}

/// The RFC's queue. Its clock counts nanoseconds. A `first_above_time` of 0 means unset, as in the
/// RFC, so the clock begins at 1.
#[derive(Default)]
struct Model {
    queue: VecDeque<(u64, Pkt)>,
    bytes: u64,
    ecn: bool,
    first_above_time: u64,
    drop_next: u64,
    count: u32,
    lastcount: u32,
    dropping: bool,
    fates: Vec<(u64, u64, Fate)>,
    /// Number of dropping states that began at the drop rate of the previous one, total number of
    /// dropping states, and number of marks.
    resumed: u64,
    states: u64,
    marks: u64,
}

impl Model {
    fn enqueue(&mut self, now: u64, pkt: Pkt) {
        if self.queue.len() == LIMIT {
            return self.fates.push((now, pkt.number, Fate::Dropped(Reason::Overflow)));
        }
        self.bytes += pkt.size;
        self.queue.push_back((now, pkt));
    }

    fn dodequeue(&mut self, now: u64) -> (Option<Pkt>, bool) {
        let mut ok_to_drop = false;
        let Some((tstamp, p)) = self.queue.pop_front() else {
            self.first_above_time = 0;
            return (None, false);
        };
        self.bytes -= p.size;
        let sojourn_time = now - tstamp;
        if sojourn_time < TARGET || self.bytes <= MAXPACKET {
            self.first_above_time = 0;
        } else if self.first_above_time == 0 {
            self.first_above_time = now + INTERVAL;
        } else if now >= self.first_above_time {
            ok_to_drop = true;
        }
        (Some(p), ok_to_drop)
    }

    fn control_law(t: u64, count: u32) -> u64 {
        t + (INTERVAL as f64 / f64::from(count).sqrt()) as u64
    }

    fn drop(&mut self, now: u64, p: Option<Pkt>) {
        let p = p.expect("there is a packet to drop");
        self.fates.push((now, p.number, Fate::Dropped(Reason::Early)));
    }

    /// Marks the packet and returns true if it is ECN-capable and ECN is on. Otherwise returns
    /// false, and the caller drops the packet and takes the next one.
    fn marks(&mut self, p: &mut Option<Pkt>) -> bool {
        let p = p.as_mut().expect("there is a packet to drop");
        let marks = self.ecn && p.ecn != Ecn::NotEct;
        if marks {
            self.marks += u64::from(p.ecn != Ecn::Ce);
            p.ecn = Ecn::Ce;
        }
        marks
    }

    fn dequeue(&mut self, now: u64) -> Option<Pkt> {
        let (mut p, mut ok_to_drop) = self.dodequeue(now);
        if self.dropping {
            if !ok_to_drop {
                self.dropping = false;
            }
            while now >= self.drop_next && self.dropping {
                self.count += 1;
                if self.marks(&mut p) {
                    self.drop_next = Self::control_law(self.drop_next, self.count);
                    break;
                }
                self.drop(now, p);
                (p, ok_to_drop) = self.dodequeue(now);
                if ok_to_drop {
                    self.drop_next = Self::control_law(self.drop_next, self.count);
                } else {
                    self.dropping = false;
                }
            }
        } else if ok_to_drop {
            if !self.marks(&mut p) {
                self.drop(now, p);
                (p, _) = self.dodequeue(now);
            }
            self.dropping = true;
            self.states += 1;
            let delta = self.count - self.lastcount;
            self.count = 1;
            if delta > 1 && (now as i64 - self.drop_next as i64) < 16 * INTERVAL as i64 {
                self.count = delta;
                self.resumed += 1;
            }
            self.drop_next = Self::control_law(now, self.count);
            self.lastcount = self.count;
        }
        if let Some(p) = p {
            self.fates.push((now, p.number, Fate::Sent(p.ecn)));
        }
        p
    }
}

/// The discipline's behaviour.
#[derive(Default)]
struct Fates(Vec<(u64, u64, Fate)>, u64);

impl Observer<Stamped<Pkt>> for Fates {
    fn dropped(&mut self, now: Instant, pkt: Stamped<Pkt>, at: Cause) {
        self.0.push((now.as_ns(), pkt.packet.number, Fate::Dropped(at.reason)));
    }
    fn marked(&mut self, _: Instant, _: &Stamped<Pkt>, at: Cause) {
        assert_eq!(at.reason, Reason::Early);
        self.1 += 1;
    }
}

fn codel(ecn: bool) -> Discipline<Stamped<Pkt>> {
    let given = settings(&[("ecn", Value::Flag(ecn)), ("limit", packets(LIMIT as u64))]);
    build("codel", &given, &LINK, Stream::new(1, "unused"))
}

/// The discipline and the model, polled by one link whenever a transmission ends and whenever a packet arrives
/// while the link is idle.
struct Pair {
    discipline: Discipline<Stamped<Pkt>>,
    model: Model,
    fates: Fates,
    /// The time at which the link becomes free; `None` if it is idle.
    free: Option<u64>,
    ns_per_byte: u64,
}

impl Pair {
    fn ask(&mut self, now: u64) {
        let sent = self.model.dequeue(now);
        let out = self.discipline.dequeue(Instant::from_ns(now), &mut self.fates);
        if let Some(out) = &out {
            self.fates.0.push((now, out.packet.number, Fate::Sent(out.packet.ecn)));
        }
        assert_eq!(out.map(|out| out.packet), sent);
        self.free = sent.map(|pkt| now + pkt.size * self.ns_per_byte);
    }

    fn arrive(&mut self, now: u64, packet: Pkt) {
        while let Some(free) = self.free.filter(|free| *free <= now) {
            self.ask(free);
        }
        self.model.enqueue(now, packet);
        let arrived = Instant::from_ns(now);
        self.discipline.enqueue(arrived, Stamped { packet, arrived }, &mut self.fates);
        if self.free.is_none() {
            self.ask(now);
        }
    }

    fn compare(&self) {
        let first = self.fates.0.iter().zip(&self.model.fates).find(|(ours, theirs)| ours != theirs);
        assert_eq!(first, None, "the first decision that differs");
        assert_eq!((self.fates.0.len(), self.fates.1), (self.model.fates.len(), self.model.marks));
        let mut law = LawSamples::new();
        self.discipline.observe(Instant::FAR_FUTURE, &mut law);
        let next = Instant::from_ns(self.model.drop_next).as_secs_f64();
        let dropping = f64::from(u8::from(self.model.dropping));
        let count = f64::from(self.model.count);
        assert_eq!(law, [("dropping", dropping), ("count", count), ("drop_next", next)]);
    }
}

/// Compares the discipline with the model over phases of 50 ms to 5 s, each with its own load (from a
/// fiftieth of the link's rate to three times that rate), burst length and share of ECN-capable packets.
fn compare(seed: u64, packets: u64, ecn: bool) -> Pair {
    let mut draws = Stream::new(seed, "load");
    // 1500 B take 120 us to 12 ms.
    let ns_per_byte = [80, 800, 8000][draws.below(3) as usize];
    let model = Model { ecn, ..Model::default() };
    let mut pair = Pair { discipline: codel(ecn), model, fates: Fates::default(), free: None, ns_per_byte };
    let (mut now, mut phase_ends, mut percent, mut burst, mut ect) = (1, 0, 0, 1, 50);
    for number in 0..packets {
        if now >= phase_ends {
            phase_ends = now + 50_000_000 + draws.below(5_000_000_000);
            percent = [2, 60, 95, 102, 110, 150, 300][draws.below(7) as usize];
            burst = 1 + draws.below(3) * 15;
            ect = [0, 50, 100][draws.below(3) as usize];
        }
        let size = if draws.below(4) == 0 { 40 + draws.below(1461) } else { 1500 };
        let field = [Ecn::Ect0, Ecn::Ect1, Ecn::Ce][draws.below(3) as usize];
        let ecn = if draws.below(100) < ect { field } else { Ecn::NotEct };
        pair.arrive(now, Pkt { size, ecn, ..Pkt::new(number) });
        if number % burst == 0 {
            now += draws.below(2 * burst * 1300 * ns_per_byte * 100 / percent);
        }
    }
    while let Some(free) = pair.free {
        pair.ask(free);
    }
    pair.compare();
    pair
}

#[test]
fn a_million_packets_meet_the_fate_that_the_rfcs_pseudo_code_has_for_them() {
    for ecn in [false, true] {
        let (mut chosen, mut overflows, mut marks, mut states, mut resumed) = (0, 0, 0, 0, 0);
        for seed in 0..50 {
            let pair = compare(seed, 10_000, ecn);
            let dropped =
                |reason| pair.model.fates.iter().filter(|(.., fate)| *fate == Fate::Dropped(reason)).count();
            chosen += dropped(Reason::Early);
            overflows += dropped(Reason::Overflow);
            marks += pair.model.marks;
            states += pair.model.states;
            resumed += pair.model.resumed;
        }
        println!(
            "ecn {ecn}: {chosen} drops, {marks} marks, {overflows} overflows, {states} states, {resumed} resumed"
        );
        assert!(chosen > 5_000 && overflows > 5_000 && states > 200 && resumed > 20, "all cases occur");
        assert_eq!(marks > 1_000, ecn);
    }
}

/// A queue that never empties, behind a link that polls every 100 us: the first drop occurs 100 ms
/// after the first long wait, and the others follow at intervals of 100 ms divided by 1, sqrt 2,
/// sqrt 3 and so on. These figures were worked out independently of both the discipline and the
/// model.
#[test]
fn drops_of_a_standing_queue_come_at_the_known_instants() {
    let (mut queue, mut fates) = (codel(false), Fates::default());
    let mut number = 0;
    for step in 0..5000 {
        let now = Instant::ZERO + Span::us(100) * step;
        while queue.backlog().packets < Packets::new(200) {
            let packet = Pkt { size: 1500, ..Pkt::new(number) };
            queue.enqueue(now, Stamped { packet, arrived: now }, &mut fates);
            number += 1;
        }
        assert!(queue.dequeue(now, &mut fates).is_some());
    }
    // A queue of 200 packets takes 20 ms to send; the first packet that has waited 5 ms leaves
    // at 5 ms.
    let expected = [105.0, 205.0, 275.8, 333.5, 383.5, 428.2, 469.0];
    let dropped: Vec<f64> = fates.0.iter().map(|(at, ..)| *at as f64 / 1e6).collect();
    assert_eq!(dropped, expected);
}
