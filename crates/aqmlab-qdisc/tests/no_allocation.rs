//! In the steady state, a port allocates nothing, whatever its built-in discipline. If room has
//! been reserved, it allocates nothing from its first packet on.

use allocation_counter::measure;
use aqmlab_params::{Origin, Value};
use aqmlab_qdisc::contract::LINK;
use aqmlab_qdisc::{
    Cause, Ecn, LawSamples, Observer, Port, Stamped,
    registry::{Info, catalogue},
};
use aqmlab_random::{Stream, philox2x64};
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Instant, Packets, Span};

mod support;
use support::{Pkt, build};

/// Number of lost packets, and a digest of their numbers and times.
#[derive(Default, PartialEq, Debug)]
struct Lost(u64, u64);

impl Observer<Stamped<Pkt>> for Lost {
    fn dropped(&mut self, now: Instant, pkt: Stamped<Pkt>, _: Cause) {
        *self = Lost(self.0 + 1, philox2x64([now.as_ns(), pkt.packet.flow], self.1)[0]);
    }
    fn marked(&mut self, _: Instant, _: &Stamped<Pkt>, _: Cause) {}
}

/// Returns a port on whose link 1250 B take 1 ms.
fn port(info: &Info, limit: u64) -> Port<Pkt> {
    let mut given = (info.samples)().remove(0).1;
    // A shaper with a queue inside has no limit of its own.
    if info.params.iter().any(|p| p.name == "limit") && given.get("queue").is_none() {
        given.set("limit", Value::Size(Size::Packets(Packets::new(limit))), Origin::Given);
    }
    let built = build(info.name, &given, &LINK, Stream::new(1, "law"));
    Port::new(built, LINK.rate, Bytes::ZERO, 1)
}

/// The arrivals at a port.
struct Load {
    now: Instant,
    draws: Stream,
    flows: u64,
    /// Longest time between two packets; half of it is the mean.
    gap_ns: u64,
    lost: Lost,
    law: LawSamples,
}

impl Load {
    fn new(flows: u64, gap_ns: u64) -> Self {
        let (draws, law) = (Stream::new(2, "arrivals"), LawSamples::with_capacity(16));
        Load { now: Instant::ZERO, draws, flows, gap_ns, lost: Lost::default(), law }
    }

    /// Sends packets through the port. Half of them can be marked; the law is observed occasionally.
    fn put_on(&mut self, port: &mut Port<Pkt>, packets: u64) {
        for n in 0..packets {
            self.now += Span::ns(self.draws.below(self.gap_ns));
            while let Some(end) = port.next_event().filter(|end| *end <= self.now) {
                if port.is_sending() {
                    port.link_free(end, &mut self.lost);
                } else {
                    port.wake(end, &mut self.lost);
                }
            }
            let ecn = if n % 2 == 0 { Ecn::Ect0 } else { Ecn::NotEct };
            let flow = self.draws.below(self.flows);
            port.arrive(self.now, Pkt { size: 1250, ecn, flow, ..Pkt::new(n) }, &mut self.lost);
            if n % 100 == 0 {
                self.law.clear();
                port.observe(self.now, &mut self.law);
            }
        }
    }
}

/// At a load of 1, the port alternates between an idle link and a full buffer.
#[test]
fn a_port_in_steady_state_allocates_nothing() {
    for info in catalogue() {
        let (mut port, mut load) = (port(info, 40), Load::new(1, 2_000_000));
        let first = measure(|| load.put_on(&mut port, 20_000));
        assert!(
            first.count_total > 0,
            "{}: the books begin empty, so the counter must have seen them",
            info.name
        );
        load.lost = Lost::default();
        let steady = measure(|| load.put_on(&mut port, 100_000));
        assert_eq!(steady.count_total, 0, "{}", info.name);
        assert!(load.lost.0 > 0, "{}: the load reaches the drops too", info.name);
    }
}

/// There are many flows, and the queue is longer than the room that disciplines reserve by
/// themselves. The reserved room suffices from the first packet on, and reserving it does not
/// affect the fates of packets.
#[test]
fn a_port_with_room_allocates_nothing_from_its_first_packet_on() {
    const LIMIT: u64 = 5000;
    const FLOWS: u64 = 300;
    for info in catalogue() {
        let (mut roomy, mut plain) = (port(info, LIMIT), port(info, LIMIT));
        roomy.reserve(LIMIT as usize, FLOWS as usize);
        let [mut load, mut same] = [(); 2].map(|()| Load::new(FLOWS, 1_000_000));
        let counted = measure(|| load.put_on(&mut roomy, 40_000));
        assert_eq!(counted.count_total, 0, "{}", info.name);
        same.put_on(&mut plain, 40_000);
        assert!(load.lost.0 > 10_000, "{}: the load is twice the rate of the link", info.name);
        assert_eq!((load.lost, load.law), (same.lost, same.law), "{}", info.name);
    }
}
