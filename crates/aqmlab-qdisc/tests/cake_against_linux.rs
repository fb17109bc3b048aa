//! Compares COBALT and CAKE with Linux's CAKE (`vectors/linux-cake`), packet by packet where the kernel draws no
//! random numbers, and by shares elsewhere.

use std::path::PathBuf;

use aqmlab_params::{Settings, Value};
use aqmlab_qdisc::contract::LINK;
use aqmlab_qdisc::{Ecn, Qdisc, Stamped};
use aqmlab_random::Stream;
use aqmlab_units::{Instant, Span};

mod support;
use support::{Fates, Pkt, build, settings};

/// An event at the kernel's queue.
enum Event {
    Arrival(Pkt),
    /// The packet with this number leaves, marked or not.
    Departure(u64, bool),
}

fn text(file: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../vectors/linux-cake");
    std::fs::read_to_string(folder.join(file)).unwrap_or_else(|e| panic!("{file}: {e}"))
}

/// Length of the link's header, which the kernel counts and the network layer does not.
const ETHERNET: u64 = 14;

fn events(case: &str) -> Vec<(Instant, Event)> {
    let mut arrivals = 0;
    let mut event = |line: &str| {
        let [at, event, values] = line.split(',').collect::<Vec<_>>()[..] else { panic!("{case}: {line}") };
        let values: Vec<u64> = values.split(' ').map(|value| value.parse().expect(line)).collect();
        let event = match (event, &values[..]) {
            ("arrived", &[size, tos, flow, source, destination]) => {
                let ecn = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0][(tos & 3) as usize];
                arrivals += 1;
                let ports = Some([source as u16, destination as u16]);
                let dscp = (tos >> 2) as u8;
                Event::Arrival(Pkt {
                    size: size - ETHERNET,
                    ecn,
                    flow,
                    dscp,
                    ports,
                    ..Pkt::new(arrivals - 1)
                })
            }
            ("sent" | "marked", &[number]) => Event::Departure(number, event == "marked"),
            _ => panic!("{case}: {line}"),
        };
        (Instant::from_ns(at.parse().expect(line)), event)
    };
    text(&format!("{case}.csv")).lines().skip(1).map(&mut event).collect()
}

/// Polls the queue at the kernel's departures, and returns the number of departures that differ.
fn differ(case: &str, kind: &str, given: &Settings) -> usize {
    let mut queue = build::<Stamped<Pkt>>(kind, given, &LINK, Stream::new(1, "salt"));
    let (mut fates, mut differ, mut left, mut marked, mut arrived) = (Fates::default(), 0, 0, 0, 0);
    for (now, event) in events(case) {
        match event {
            Event::Arrival(packet) => {
                arrived += 1;
                queue.enqueue(now, Stamped { packet, arrived: now }, &mut fates);
            }
            Event::Departure(number, ce) => {
                let out = queue.dequeue(now, &mut fates);
                let found = out.map(|out| (out.packet.number, out.packet.ecn == Ecn::Ce));
                if found != Some((number, ce)) {
                    if differ < 3 {
                        println!("{case}: at {now:?} {found:?}, in the kernel {number} {ce}");
                    }
                    differ += 1;
                }
                left += 1;
                marked += usize::from(ce);
            }
        }
    }
    let dropped = arrived - left;
    println!("{case}: {arrived} packets, {dropped} dropped, {marked} marked; {differ} departures differ");
    differ + queue.backlog().packets.get() as usize
}

fn linux(more: &[(&'static str, Value)]) -> Settings {
    settings(&[&[("preset", Value::Choice("linux"))], more].concat())
}

fn times(target: u64, interval: u64) -> [(&'static str, Value); 2] {
    [("target", Value::Span(Span::ms(target))), ("interval", Value::Span(Span::ms(interval)))]
}

#[test]
fn cobalt_decides_as_a_queue_of_cake() {
    for (case, given) in [
        ("cobalt_constant", linux(&[])),
        ("cobalt_bursts", linux(&[])),
        ("cobalt_short", linux(&times(1, 20))),
    ] {
        assert_eq!(differ(case, "cobalt", &given), 0, "{case}");
        let mut exact = given;
        exact.set("arithmetic", Value::Choice("exact"), aqmlab_params::Origin::Given);
        assert!(differ(case, "cobalt", &exact) > 0, "{case} does not distinguish the arithmetics");
    }
}
