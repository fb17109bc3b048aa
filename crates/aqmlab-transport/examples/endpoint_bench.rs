//! Measures the cost of processing a segment in the endpoints. Two endpoints are connected
//! directly, without a network: the sender's window is full, each segment that arrives is
//! acknowledged, and each acknowledgment releases the next segment. The program prints only one
//! JSON line, so that a profiler can count instructions. The cost of one segment is the difference
//! in cost between a long and a short run, divided by the difference between their numbers of
//! segments.
//!
//! cargo build --release -p aqmlab-transport --example endpoint_bench
//! perf stat -e instructions:u target/release/examples/endpoint_bench plain 2000000
//!
//! The modes:
//!
//! - `plain` acknowledges every segment, and `delayed` every second one;
//! - `lossy` is `plain` with one segment in 200 lost, and `marked` is `plain` with one in 200 marked;
//! - `cubic` and `cubic_linux` are `plain` with CUBIC, whose window grows as in RFC 9438 or as in
//!   Linux;
//! - `tracked` and `tracked_lossy` are `plain` and `lossy` with a sender that tracks each segment
//!   individually (RFC 8985, RFC 9937, RFC 5682);
//! - `linux` and `linux_lossy` are `plain` and `lossy` with the whole profile `linux`;
//! - `bbr` and `bbr3` are `linux` with BBR, version 1 or 3, which measures rates and paces;
//! - `prague` is the whole profile `prague` with one segment in 200 marked; it paces, too;
//! - `nothing` measures the cost of this program itself, which must be subtracted.

use std::collections::VecDeque;

use aqmlab_params::{Origin, Value};
use aqmlab_transport::{ENDLESS, Endpoint, Options, Profile, Role, Segment, StreamEvent, profile_settings};
use aqmlab_units::{Ecn, Instant, Span};

/// 1500 B on 100 Mbit/s.
const SEGMENT_TIME: Span = Span::us(120);
/// Segments in flight.
const WINDOW: u64 = 40;
/// One segment in this many is lost or marked, if the mode calls for it.
const SELDOM: u64 = 200;

/// The settings of a sender that tracks each segment individually, with everything that requires
/// such tracking.
const TRACKED: [(&str, Value); 7] = [
    ("recovery", Value::Choice("sack")),
    ("sack_pipe", Value::Choice("segments")),
    ("rack", Value::Flag(true)),
    ("tail_loss_probe", Value::Flag(true)),
    ("prr", Value::Flag(true)),
    ("frto", Value::Flag(true)),
    ("timestamps", Value::Flag(true)),
];
const CUBIC: (&str, Value) = ("congestion", Value::Choice("cubic"));

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [name, segments] = args.as_slice() else {
        panic!("usage: endpoint_bench MODE SEGMENTS; the source file lists the modes")
    };
    let segments: u64 = segments.parse().expect("the number of segments must be a whole number");
    let run = |fault, settings: &[(&'static str, Value)]| through_endpoints(segments, "rfc", fault, settings);
    let retransmitted = match name.as_str() {
        "plain" => run(Fault::Nothing, &[]),
        "delayed" => run(Fault::Nothing, &[("ack_every", Value::Integer(2))]),
        "lossy" => run(Fault::Loss, &[]),
        "marked" => run(Fault::Mark, &[]),
        "cubic" => run(Fault::Nothing, &[CUBIC]),
        "cubic_linux" => run(Fault::Nothing, &[CUBIC, ("cubic_growth", Value::Choice("linux"))]),
        "tracked" => run(Fault::Nothing, &TRACKED),
        "tracked_lossy" => run(Fault::Loss, &TRACKED),
        "linux" => through_endpoints(segments, "linux", Fault::Nothing, &[]),
        "linux_lossy" => through_endpoints(segments, "linux", Fault::Loss, &[]),
        "bbr" | "bbr3" => {
            let bbr = [("congestion", Value::Choice(if name == "bbr" { "bbr" } else { "bbr3" }))];
            through_endpoints(segments, "linux", Fault::Nothing, &bbr)
        }
        "prague" => {
            let only_mean = [("pacing_gain", Value::Number(100.0))];
            through_endpoints(segments, "prague", Fault::Mark, &only_mean)
        }
        "nothing" => through_nothing(segments),
        other => panic!("no mode is called `{other}`; the source file lists the modes"),
    };
    let bytes = size_of::<Endpoint>();
    println!(
        r#"{{"name":"{name}","segments":{segments},"retransmitted":{retransmitted},"endpoint_bytes":{bytes}}}"#
    );
}

/// The fault that affects one segment in [`SELDOM`].
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fault {
    Nothing,
    Loss,
    Mark,
}

/// Sends endless data from one endpoint to the other; returns the number of retransmitted segments.
fn through_endpoints(segments: u64, name: &str, fault: Fault, with: &[(&'static str, Value)]) -> u32 {
    let mut settings = profile_settings(name).expect("built in");
    let mut set = |name, value| settings.set(name, value, Origin::Given);
    set("ack_every", Value::Integer(1));
    set("max_window", Value::Integer(WINDOW));
    set("initial_ssthresh", Value::Choice("max_window"));
    set("ecn", Value::Flag(fault == Fault::Mark));
    with.iter().for_each(|(name, value)| set(name, value.clone()));
    let profile = Profile::resolve(&mut settings).expect("consistent");
    let [mut sender, receiver] = [Role::Active, Role::Passive].map(|role| Endpoint::new(role, &profile));
    sender.write(ENDLESS);
    sender.open(Instant::ZERO, &profile);
    drive([sender, receiver], &profile, segments, fault).counters().retransmitted
}

/// Does the same as `through_endpoints`, but with ends that merely answer each segment with one
/// segment.
fn through_nothing(segments: u64) -> u32 {
    let profile = Profile::named("rfc").expect("built in");
    let mut endpoint = Endpoint::new(Role::Active, &profile);
    endpoint.open(Instant::ZERO, &profile);
    let segment = endpoint.poll_transmit(Instant::ZERO, &profile).expect("a SYN");
    let [sender, receiver] = [WINDOW, 0].map(|due| Echo { segment, due, told: false });
    drive([sender, receiver], &profile, segments, Fault::Nothing);
    0
}

/// One end of the connection, with the methods that a host calls.
trait End {
    fn on_segment(&mut self, now: Instant, segment: &Segment, profile: &Profile);
    fn on_segment_with_options(
        &mut self,
        now: Instant,
        segment: &Segment,
        options: &Options,
        profile: &Profile,
    );
    fn options(&self, segment: &Segment, profile: &Profile) -> Options;
    fn on_timer(&mut self, now: Instant, profile: &Profile);
    fn poll_transmit(&mut self, now: Instant, profile: &Profile) -> Option<Segment>;
    fn poll_event(&mut self) -> Option<StreamEvent>;
    fn deadline(&self) -> Option<Instant>;
}

/// Delivers `segments` segments and their acknowledgments, in order, one segment per
/// [`SEGMENT_TIME`]; returns the sender.
fn drive<E: End>(ends: [E; 2], profile: &Profile, segments: u64, fault: Fault) -> E {
    let [mut sender, mut receiver] = ends;
    let (mut data, mut acks) = (Wire::default(), Wire::default());
    let mut now = Instant::ZERO;
    drain(&mut sender, now, profile, &mut data);
    let mut until_fault = SELDOM;
    for _ in 0..segments {
        now += SEGMENT_TIME;
        let Some(mut segment) = data.segments.pop_front() else {
            now = now.max(sender.deadline().expect("a sender that waits has a timer"));
            sender.on_timer(now, profile);
            drain(&mut sender, now, profile, &mut data);
            continue;
        };
        until_fault -= 1;
        let struck = until_fault == 0;
        if struck {
            until_fault = SELDOM;
            match fault {
                Fault::Nothing => {}
                Fault::Loss => continue,
                Fault::Mark => segment.ecn = Ecn::Ce,
            }
        }
        receiver.on_segment(now, &segment, profile);
        drain(&mut receiver, now, profile, &mut acks);
        while let Some(ack) = acks.segments.pop_front() {
            if ack.has_options() {
                let options = acks.options.pop_front().expect("an option travels with its segment");
                sender.on_segment_with_options(now, &ack, &options, profile);
            } else {
                sender.on_segment(now, &ack, profile);
            }
            drain(&mut sender, now, profile, &mut data);
        }
    }
    sender
}

/// Segments in flight, and the options of those that have one.
#[derive(Default)]
struct Wire {
    segments: VecDeque<Segment>,
    options: VecDeque<Options>,
}

/// Does what a host does after each call (see the crate's documentation).
fn drain(end: &mut impl End, now: Instant, profile: &Profile, out: &mut Wire) {
    while let Some(segment) = end.poll_transmit(now, profile) {
        if segment.has_options() {
            out.options.push_back(end.options(&segment, profile));
        }
        out.segments.push_back(segment);
    }
    while let Some(event) = end.poll_event() {
        std::hint::black_box(&event);
    }
    std::hint::black_box(&end.deadline());
}

impl End for Endpoint {
    fn on_segment(&mut self, now: Instant, segment: &Segment, profile: &Profile) {
        self.on_segment(now, segment, profile);
    }

    fn on_segment_with_options(
        &mut self,
        now: Instant,
        segment: &Segment,
        options: &Options,
        profile: &Profile,
    ) {
        self.on_segment_with_options(now, segment, options, profile);
    }

    fn options(&self, segment: &Segment, profile: &Profile) -> Options {
        self.options(segment, profile)
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

/// Answers each segment with one segment, and reports one event about it.
struct Echo {
    segment: Segment,
    due: u64,
    told: bool,
}

impl End for Echo {
    fn on_segment(&mut self, _now: Instant, segment: &Segment, _profile: &Profile) {
        self.segment = *segment;
        self.due += 1;
        self.told = false;
    }

    fn on_segment_with_options(
        &mut self,
        _now: Instant,
        _segment: &Segment,
        _options: &Options,
        _profile: &Profile,
    ) {
    }

    fn options(&self, _segment: &Segment, _profile: &Profile) -> Options {
        Options::NONE
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
