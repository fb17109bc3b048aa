//! What does a segment cost in the endpoints? Two of them back to back, without a network: the sender's window is
//! full, each segment that arrives is acknowledged, and each acknowledgment lets the next segment out. Prints
//! one JSON line, so that a profiler can count instructions; the cost of one segment is the difference between
//! a long and a short run over the difference of their segments.
//!
//! cargo build --release -p aqmlab-transport --example endpoint_bench
//! perf stat -e instructions:u target/release/examples/endpoint_bench plain 2000000
//!
//! `plain` acknowledges every segment, `delayed` every second one, `lossy` is `plain` with one segment in 200
//! lost, `marked` with one in 200 marked, `cubic` and `cubic_linux` are `plain` with that growth; `nothing` measures this program's own share, which is to be subtracted.

use std::collections::VecDeque;

use aqmlab_params::{Origin, Value};
use aqmlab_transport::{ENDLESS, Endpoint, Profile, Role, Segment, StreamEvent, profile_settings};
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
        panic!("usage: endpoint_bench plain|delayed|lossy|marked|cubic|cubic_linux|nothing <segments>")
    };
    let segments: u64 = segments.parse().expect("the number of segments is a number");
    let retransmitted = match name.as_str() {
        "plain" => through_endpoints(segments, 1, Fault::Nothing, &[]),
        "delayed" => through_endpoints(segments, 2, Fault::Nothing, &[]),
        "lossy" => through_endpoints(segments, 1, Fault::Loss, &[]),
        "marked" => through_endpoints(segments, 1, Fault::Mark, &[]),
        "cubic" => through_endpoints(segments, 1, Fault::Nothing, &[("congestion", "cubic")]),
        "cubic_linux" => {
            let growth = [("congestion", "cubic"), ("cubic_growth", "linux")];
            through_endpoints(segments, 1, Fault::Nothing, &growth)
        }
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

/// Sends endless data from one endpoint to the other; how many segments were sent again.
fn through_endpoints(
    segments: u64,
    ack_every: u64,
    fault: Fault,
    words: &[(&'static str, &'static str)],
) -> u32 {
    let mut settings = profile_settings("rfc").expect("built in");
    let mut set = |name, value| settings.set(name, value, Origin::Given);
    set("ack_every", Value::Integer(ack_every));
    set("max_window", Value::Integer(WINDOW));
    set("initial_ssthresh", Value::Choice("max_window"));
    set("ecn", Value::Flag(fault == Fault::Mark));
    words.iter().for_each(|(name, word)| set(name, Value::Choice(word)));
    let profile = Profile::resolve(&mut settings).expect("consistent");
    let [mut sender, receiver] = [Role::Active, Role::Passive].map(|role| Endpoint::new(role, &profile));
    sender.write(ENDLESS);
    sender.open(Instant::ZERO, &profile);
    drive([sender, receiver], &profile, segments, fault).counters().retransmitted
}

/// The same with endpoints that answer each segment by one, whatever it is.
fn through_nothing(segments: u64) -> u32 {
    let profile = Profile::named("rfc").expect("built in");
    let mut endpoint = Endpoint::new(Role::Active, &profile);
    endpoint.open(Instant::ZERO, &profile);
    let segment = endpoint.poll_transmit(Instant::ZERO, &profile).expect("a SYN");
    let [sender, receiver] = [WINDOW, 0].map(|due| Echo { segment, due, told: false });
    drive([sender, receiver], &profile, segments, Fault::Nothing);
    0
}

/// What a host calls.
trait End {
    fn on_segment(&mut self, now: Instant, segment: &Segment, ce: bool, profile: &Profile);
    fn on_timer(&mut self, now: Instant, profile: &Profile);
    fn poll_transmit(&mut self, now: Instant, profile: &Profile) -> Option<Segment>;
    fn poll_event(&mut self) -> Option<StreamEvent>;
    fn deadline(&self) -> Option<Instant>;
}

/// Delivers `segments` segments with their acknowledgments, in order, one in each [`SEGMENT_TIME`]; the sender.
fn drive<E: End>(ends: [E; 2], profile: &Profile, segments: u64, fault: Fault) -> E {
    let [mut sender, mut receiver] = ends;
    let (mut data, mut acks) = (VecDeque::new(), VecDeque::new());
    let mut now = Instant::ZERO;
    drain(&mut sender, now, profile, &mut data);
    let mut until_fault = SELDOM;
    for _ in 0..segments {
        now += SEGMENT_TIME;
        let Some(segment) = data.pop_front() else {
            now = now.max(sender.deadline().expect("a sender that waits has a timer"));
            sender.on_timer(now, profile);
            drain(&mut sender, now, profile, &mut data);
            continue;
        };
        until_fault -= 1;
        let struck = until_fault == 0;
        if struck {
            until_fault = SELDOM;
            if fault == Fault::Loss {
                continue;
            }
        }
        receiver.on_segment(now, &segment, struck && fault == Fault::Mark, profile);
        drain(&mut receiver, now, profile, &mut acks);
        while let Some(ack) = acks.pop_front() {
            sender.on_segment(now, &ack, false, profile);
            drain(&mut sender, now, profile, &mut data);
        }
    }
    sender
}

/// As a host does after each call (see the crate's documentation).
fn drain(end: &mut impl End, now: Instant, profile: &Profile, out: &mut VecDeque<Segment>) {
    while let Some(segment) = end.poll_transmit(now, profile) {
        out.push_back(segment);
    }
    while let Some(event) = end.poll_event() {
        std::hint::black_box(&event);
    }
    std::hint::black_box(&end.deadline());
}

impl End for Endpoint {
    fn on_segment(&mut self, now: Instant, segment: &Segment, ce: bool, profile: &Profile) {
        self.on_segment(now, segment, ce, profile);
    }

    fn on_timer(&mut self, now: Instant, profile: &Profile) {
        self.on_timer(now, profile);
    }

    fn poll_transmit(&mut self, now: Instant, profile: &Profile) -> Option<Segment> {
        self.poll_transmit(now, profile)
    }

    fn poll_event(&mut self) -> Option<StreamEvent> {
        self.poll_event()
    }

    fn deadline(&self) -> Option<Instant> {
        self.deadline()
    }
}

/// Answers each segment by one, and has one thing to tell about it.
struct Echo {
    segment: Segment,
    due: u64,
    told: bool,
}

impl End for Echo {
    fn on_segment(&mut self, _now: Instant, segment: &Segment, _ce: bool, _profile: &Profile) {
        self.segment = *segment;
        self.due += 1;
        self.told = false;
    }

    fn on_timer(&mut self, _now: Instant, _profile: &Profile) {}

    fn poll_transmit(&mut self, _now: Instant, _profile: &Profile) -> Option<Segment> {
        self.due = self.due.checked_sub(1)?;
        Some(self.segment)
    }

    fn poll_event(&mut self) -> Option<StreamEvent> {
        let told = std::mem::replace(&mut self.told, true);
        (!told).then_some(StreamEvent::Acked(1))
    }

    fn deadline(&self) -> Option<Instant> {
        Some(Instant::ZERO)
    }
}
