//! Compares a port that looks ahead with one that is called at each departure, given the same
//! discipline and arrivals. The departure predicted for each packet must be the actual one, and the
//! books and laws of the two ports must agree at every instant.

use aqmlab_params::{Origin, Value};
use aqmlab_qdisc::contract::LINK;
use aqmlab_qdisc::{Cause, Ecn, LawSamples, Observer, Port, Stamped, registry};
use aqmlab_random::Stream;
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Instant, Packets, Rate, Span};
use proptest::prelude::*;

mod support;
use support::{Pkt, build};

/// The numbers of the lost packets, each with the instant of its loss.
#[derive(Default, PartialEq, Debug)]
struct Lost(Vec<(Instant, u64)>);

impl Observer<Stamped<Pkt>> for Lost {
    fn dropped(&mut self, now: Instant, pkt: Stamped<Pkt>, _: Cause) {
        self.0.push((now, pkt.packet.number));
    }
    fn marked(&mut self, _: Instant, _: &Stamped<Pkt>, _: Cause) {}
}

/// Packets that have left or will leave: the time, the packet, and whether it was marked.
type Sent = Vec<(Instant, u64, bool)>;

#[derive(Clone, Copy, Debug)]
struct Arrival {
    gap_ns: u64,
    size: u64,
    flow: u64,
    ect: bool,
    look: bool,
    /// Whether the packet arrives in the nanosecond in which a busy link becomes idle.
    at_end: bool,
}

fn arrival() -> impl Strategy<Value = Arrival> {
    // At 9,999,991 bit/s, 1000 B take 0.8 ms, so these gaps give bursts, loads around 1, and pauses.
    let gap_ns = prop_oneof![Just(0u64), 0u64..200_000, 0u64..1_600_000, 0u64..50_000_000];
    (gap_ns, 40u64..1500, 0u64..6, any::<bool>(), prop::bool::weighted(0.05), prop::bool::weighted(0.05))
        .prop_map(|(gap_ns, size, flow, ect, look, at_end)| Arrival { gap_ns, size, flow, ect, look, at_end })
}

fn port(name: &'static str) -> Port<Pkt> {
    let info = registry::info(name).expect("it is built in");
    let mut given = (info.samples)().remove(0).1;
    if info.params.iter().any(|p| p.name == "limit") {
        given.set("limit", Value::Size(Size::Packets(Packets::new(30))), Origin::Given);
    }
    if info.params.iter().any(|p| p.name == "ecn") {
        given.set("ecn", Value::Flag(true), Origin::Given);
    }
    let built = build(name, &given, &LINK, Stream::new(3, "law"));
    // A prime: no transmission time is a whole number of nanoseconds.
    Port::new(built, Rate::bps(9_999_991), Bytes::new(18), 2)
}

fn law(port: &Port<Pkt>, now: Instant) -> Vec<(&'static str, u64)> {
    let mut samples = LawSamples::new();
    port.observe(now, &mut samples);
    samples.into_iter().map(|(name, value)| (name, value.to_bits())).collect()
}

/// Returns everything in the books as text.
fn books(port: &mut Port<Pkt>, now: Instant) -> String {
    port.settle(now);
    port.check_books().expect("the books balance");
    let books = port.books();
    format!(
        "{:?} {:?} {:?} {:?} {:?}",
        books.classes().collect::<Vec<_>>(),
        books.backlog_packets(),
        books.backlog_bytes(),
        books.busy(),
        port.backlog()
    )
}

/// Carries out the departures of the plain port up to `now`; a transmission that ends at `now` comes before
/// arrivals at `now`.
fn depart(plain: &mut Port<Pkt>, now: Instant, lost: &mut Lost, sent: &mut Sent) {
    while let Some(end) = plain.next_event().filter(|&end| end <= now) {
        let pkt = plain.link_free(end, lost).packet;
        sent.push((end, pkt.number, pkt.ecn == Ecn::Ce));
    }
}

fn compare(name: &'static str, arrivals: &[Arrival]) {
    let (mut plain, mut ahead) = (port(name), port(name));
    if !ahead.look_ahead() {
        return;
    }
    let (mut lost, mut lost_ahead) = (Lost::default(), Lost::default());
    let (mut sent, mut foreseen) = (Sent::new(), Sent::new());
    let mut now = Instant::ZERO;
    for (number, a) in arrivals.iter().enumerate() {
        now += Span::ns(a.gap_ns);
        if a.at_end {
            now = foreseen.last().map_or(now, |&(sent, ..)| sent.max(now));
        }
        let ecn = if a.ect { Ecn::Ect0 } else { Ecn::NotEct };
        let pkt =
            Pkt { size: a.size, flow: a.flow, class: (a.flow % 2) as usize, ecn, ..Pkt::new(number as u64) };
        depart(&mut plain, now, &mut lost, &mut sent);
        plain.arrive(now, pkt, &mut lost);
        if let Some(prospect) = ahead.arrive_ahead(now, &pkt, &mut lost_ahead) {
            foreseen.push((prospect.sent, pkt.number, prospect.marked));
        }
        assert_eq!(lost, lost_ahead, "{name}");
        assert_eq!(plain.backlog(), ahead.backlog(), "{name}");
        if a.look {
            assert_eq!(books(&mut plain, now), books(&mut ahead, now), "{name}");
            assert_eq!(law(&plain, now), law(&ahead, now), "{name}");
        }
    }
    now += Span::s(10);
    depart(&mut plain, now, &mut lost, &mut sent);
    assert_eq!(sent, foreseen, "{name}");
    assert_eq!(books(&mut plain, now), books(&mut ahead, now), "{name}");
    assert_eq!(law(&plain, now), law(&ahead, now), "{name}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn what_is_foreseen_comes_true(arrivals in prop::collection::vec(arrival(), 1..600)) {
        for info in without_shapers() {
            compare(info.name, &arrivals);
        }
    }
}

/// Returns the disciplines, without the shapers: these never look ahead, and their links wait for them.
fn without_shapers() -> impl Iterator<Item = &'static registry::Info> {
    registry::catalogue().iter().filter(|info| !["tbf", "htb"].contains(&info.name))
}

/// An idle link whose only packet is lost still polls the discipline, so RED's idle period restarts,
/// whichever way the port is driven.
#[test]
fn a_loss_at_an_idle_link_begins_a_new_idle_time() {
    // Bursts raise the average; then single packets arrive at an idle link, and some of them are
    // dropped early.
    let burst = (0..400).map(|n| Arrival {
        gap_ns: 100_000,
        size: 1000,
        flow: n % 3,
        ect: false,
        look: false,
        at_end: false,
    });
    let pause = [Arrival { gap_ns: 40_000_000, size: 1000, flow: 0, ect: false, look: false, at_end: false }];
    let single = (0..60).map(|n| Arrival {
        gap_ns: 2_000_000,
        size: 1000,
        flow: n % 3,
        ect: false,
        look: n % 7 == 0,
        at_end: false,
    });
    let arrivals: Vec<_> = burst.chain(pause).chain(single).collect();
    for info in without_shapers() {
        compare(info.name, &arrivals);
    }
}
