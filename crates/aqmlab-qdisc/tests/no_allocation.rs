//! In steady state a port allocates nothing, whatever built-in discipline it has.

use allocation_counter::measure;
use aqmlab_params::{Origin, Settings, Value};
use aqmlab_qdisc::contract::LINK;
use aqmlab_qdisc::{
    Cause, Classed, Dscp, Ecn, Observer, Packet, Port, Registry, Side, Stamped, registry::catalogue,
};
use aqmlab_random::Stream;
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Instant, Packets, Span};

#[derive(Clone, Copy)]
struct Pkt(Ecn);

impl Packet for Pkt {
    fn wire_len(&self) -> Bytes {
        Bytes::new(1250)
    }
    fn flow_hash(&self, salt: u64) -> u64 {
        salt
    }
    fn host_hash(&self, _: Side, salt: u64) -> u64 {
        salt
    }
    fn ecn(&self) -> Ecn {
        self.0
    }
    fn mark_ce(&mut self) {
        self.0 = Ecn::Ce;
    }
    fn dscp(&self) -> Dscp {
        Dscp(0)
    }
    fn set_dscp(&mut self, _: Dscp) {}
}

impl Classed for Pkt {}

#[derive(Default)]
struct Lost(u64);

impl Observer<Pkt> for Lost {
    fn dropped(&mut self, _: Instant, _: Pkt, _: Cause) {
        self.0 += 1;
    }
    fn marked(&mut self, _: Instant, _: &Pkt, _: Cause) {}
}

/// A load of 1 that swings between idle link and full buffer; half of the packets can be marked.
fn load(port: &mut Port<Pkt>, now: &mut Instant, draws: &mut Stream, lost: &mut Lost, packets: u64) {
    for n in 0..packets {
        // 1250 B take 1 ms.
        *now += Span::ns(draws.below(2_000_000));
        while let Some(end) = port.next_event().filter(|end| end <= now) {
            port.link_free(end, lost);
        }
        port.arrive(*now, Pkt(if n % 2 == 0 { Ecn::Ect0 } else { Ecn::NotEct }), lost);
    }
}

#[test]
fn a_port_in_steady_state_allocates_nothing() {
    for info in catalogue() {
        let mut given = Settings::default();
        given.set("limit", Value::Size(Size::Packets(Packets::new(40))), Origin::Given);
        let built =
            Registry::<Stamped<Pkt>>::builtin().build(info.name, &given, &LINK, Stream::new(1, "law"));
        let mut port = Port::new(built.unwrap(), LINK.rate, Bytes::ZERO, 1);
        let (mut now, mut draws, mut lost) = (Instant::ZERO, Stream::new(2, "arrivals"), Lost::default());
        let first = measure(|| load(&mut port, &mut now, &mut draws, &mut lost, 20_000));
        assert!(
            first.count_total > 0,
            "{}: the books begin empty, so the counter must have seen them",
            info.name
        );
        lost = Lost::default();
        let steady = measure(|| load(&mut port, &mut now, &mut draws, &mut lost, 100_000));
        assert_eq!(steady.count_total, 0, "{}", info.name);
        assert!(lost.0 > 0, "{}: the load reaches the drops too", info.name);
    }
}
