//! What does a segment cost in the endpoints? Two of them back to back, without a network: the sender's window is
//! full, each segment that arrives is acknowledged, and each acknowledgment lets the next segment out. Prints
//! one JSON line, so that a profiler can count instructions; the cost of one segment is the difference between
//! a long and a short run over the difference of their segments.
//!
//! cargo build --release -p aqmlab-transport --example endpoint_bench
//! perf stat -e instructions:u target/release/examples/endpoint_bench plain 2000000
//!
//! `plain` acknowledges every segment, `delayed` every second one, `lossy` is `plain` with one segment in 200
//! lost, `marked` with one in 200 marked; `nothing` measures this program's own share, which is to be subtracted.

use std::collections::VecDeque;

use aqmlab_params::{Origin, Value};
use aqmlab_transport::{ENDLESS, Endpoint, Profile, Role, Segment, profile_settings};
use aqmlab_units::{Instant, Span};

/// 1500 B on 100 Mbit/s.
const SEGMENT_TIME: Span = Span::us(120);
/// Segments in flight.
const WINDOW: u64 = 40;
/// One segment in this many is lost or marked, where that is asked for.
const SELDOM: u64 = 200;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [name, segments] = args.as_slice() else {
        panic!("usage: endpoint_bench plain|delayed|lossy|marked|nothing <segments>")
    };
    let segments: u64 = segments.parse().expect("the number of segments is a number");
    let retransmitted = match name.as_str() {
        "plain" => through_endpoints(segments, 1, Fault::Nothing),
        "delayed" => through_endpoints(segments, 2, Fault::Nothing),
        "lossy" => through_endpoints(segments, 1, Fault::Loss),
        "marked" => through_endpoints(segments, 1, Fault::Mark),
        "nothing" => through_nothing(segments),
        other => panic!("no way to run is called `{other}`"),
    };
    let bytes = size_of::<Endpoint>();
    println!(
        r#"{{"name":"{name}","segments":{segments},"retransmitted":{retransmitted},"endpoint_bytes":{bytes}}}"#
    );
}

/// What befalls one segment in [`SELDOM`].
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    Nothing,
    Loss,
    Mark,
}

fn profile(ack_every: u64, ecn: bool) -> Profile {
    let mut settings = profile_settings("rfc").expect("built in");
    let mut set = |name, value| settings.set(name, value, Origin::Given);
    set("ack_every", Value::Integer(ack_every));
    set("max_window", Value::Integer(WINDOW));
    set("initial_ssthresh", Value::Choice("max_window"));
    set("ecn", Value::Flag(ecn));
    Profile::from_settings(&settings).expect("consistent")
}

/// Data segments and acknowledgments on their way, oldest first.
#[derive(Default)]
struct InFlight {
    data: VecDeque<Segment>,
    acks: VecDeque<Segment>,
}

/// Delivers `segments` segments with their acknowledgments; how many were sent again.
fn through_endpoints(segments: u64, ack_every: u64, fault: Fault) -> u32 {
    let profile = profile(ack_every, fault == Fault::Mark);
    let (mut sender, mut receiver) =
        (Endpoint::new(Role::Active, &profile), Endpoint::new(Role::Passive, &profile));
    let (mut now, mut net) = (Instant::ZERO, InFlight::default());
    sender.write(ENDLESS);
    sender.open(now, &profile);
    drain(&mut sender, now, &profile, &mut net.data);
    for n in 1..=segments {
        now += SEGMENT_TIME;
        let Some(segment) = net.data.pop_front() else {
            now = now.max(sender.deadline().expect("a sender that waits has a timer"));
            sender.on_timer(now, &profile);
            drain(&mut sender, now, &profile, &mut net.data);
            continue;
        };
        let struck = n % SELDOM == 0;
        if struck && fault == Fault::Loss {
            continue;
        }
        receiver.on_segment(now, &segment, struck && fault == Fault::Mark, &profile);
        drain(&mut receiver, now, &profile, &mut net.acks);
        while let Some(ack) = net.acks.pop_front() {
            sender.on_segment(now, &ack, false, &profile);
            drain(&mut sender, now, &profile, &mut net.data);
        }
    }
    sender.counters().retransmitted
}

/// As a host does after each call (see the crate's documentation).
fn drain(endpoint: &mut Endpoint, now: Instant, profile: &Profile, out: &mut VecDeque<Segment>) {
    while let Some(segment) = endpoint.poll_transmit(now, profile) {
        out.push_back(segment);
    }
    while let Some(event) = endpoint.poll_event() {
        std::hint::black_box(&event);
    }
    std::hint::black_box(&endpoint.deadline());
}

/// The queues alone.
fn through_nothing(segments: u64) -> u32 {
    let profile = profile(1, false);
    let mut endpoint = Endpoint::new(Role::Active, &profile);
    endpoint.open(Instant::ZERO, &profile);
    let segment = endpoint.poll_transmit(Instant::ZERO, &profile).expect("a SYN");
    let mut net = InFlight { data: (0..WINDOW).map(|_| segment).collect(), acks: VecDeque::new() };
    for _ in 0..segments {
        let segment = net.data.pop_front().expect("as many go in as come out");
        net.acks.push_back(std::hint::black_box(segment));
        while let Some(ack) = net.acks.pop_front() {
            net.data.push_back(std::hint::black_box(ack));
        }
    }
    0
}
