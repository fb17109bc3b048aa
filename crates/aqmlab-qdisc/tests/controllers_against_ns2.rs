//! PI and REM with their ns-2 presets, compared arrival by arrival with traces recorded from ns-2.35
//! (`vectors/ns2-controller-open-loop`): backlog, probability, and each packet's fate given the draws that
//! ns-2 made.

use std::collections::VecDeque;
use std::path::PathBuf;

use aqmlab_params::{Origin, Settings, Value};
use aqmlab_qdisc::contract::TestPacket;
use aqmlab_qdisc::disc::{EarlyLaw, EarlyQueue, Leaving};
use aqmlab_qdisc::law::Decision;
use aqmlab_qdisc::{Backlog, Discipline, Ecn, LawSamples, LinkContext, Registry, registry};
use aqmlab_random::Stream;
use aqmlab_units::text::Size;
use aqmlab_units::{Bytes, Instant, Packets, Rate, Span};

const LINK: LinkContext = LinkContext {
    rate: Rate::mbit(1),
    delay: Span::ms(1),
    rtt: None,
    flows: None,
    mean_packet: Bytes::new(1000),
};
/// ns-2 prints six significant digits.
const DIGITS: f64 = 5e-6;

#[derive(Clone, Copy, Debug)]
struct Pkt {
    size: Bytes,
    ecn: Ecn,
    u: Option<f64>,
}

/// A queue that behaves like `Early` but uses the draws of the trace instead of those of a stream,
/// and the link behind it.
struct Port<L> {
    law: L,
    queue: EarlyQueue,
    waiting: VecDeque<(usize, Pkt)>,
    backlog: Backlog,
    free: Option<Instant>,
    fates: Vec<&'static str>,
}

impl<L: EarlyLaw> Port<L> {
    /// Carries out all departures up to and including `now`.
    fn advance(&mut self, now: Instant) {
        while let Some(free) = self.free.filter(|at| *at <= now) {
            self.free = None;
            self.begin(free);
        }
    }

    fn begin(&mut self, now: Instant) {
        self.law.catch_up(now, self.backlog);
        let Some((number, pkt)) = self.waiting.pop_front() else { return self.law.on_idle(now) };
        self.backlog.packets -= Packets::new(1);
        self.backlog.bytes -= pkt.size;
        if self.law.decides().at_departure() {
            // The laws here do not use waiting times.
            let leaving =
                Leaving { size: pkt.size, ecn: Ecn::NotEct, sojourn: Span::ZERO, backlog: self.backlog };
            let chosen = self.law.decide_at_departure(now, leaving, || pkt.u.expect("ns-2 drew"));
            self.fates[number] = self.fate(chosen, pkt);
        }
        self.free = Some(now + LINK.rate.time_for(pkt.size));
    }

    fn arrive(&mut self, now: Instant, pkt: Pkt) {
        self.law.catch_up(now, self.backlog);
        let full = !self.queue.limit.admits(self.backlog, pkt.size);
        self.law.on_arrival(now, self.backlog, pkt.size);
        let mut decision = Decision::Admit;
        if self.law.decides().at_arrival() {
            decision = self.law.decide_at_arrival(now, self.backlog, pkt.size, || pkt.u.unwrap_or(0.5));
        }
        let fate = if full { "full" } else { self.fate(decision, pkt) };
        assert!(full || pkt.u.is_some(), "a draw that ns-2 did not make");
        if matches!(fate, "passed" | "marked") {
            self.waiting.push_back((self.fates.len(), pkt));
            self.backlog.packets += Packets::new(1);
            self.backlog.bytes += pkt.size;
        }
        self.fates.push(fate);
        if self.free.is_none() {
            self.begin(now);
        }
    }

    fn fate(&self, decision: Decision, pkt: Pkt) -> &'static str {
        match decision {
            Decision::Notify(notice) if notice.marks(self.queue.ecn, pkt.ecn) => "marked",
            Decision::Notify(_) if !self.queue.spares_not_ect || pkt.ecn.is_capable() => "early",
            Decision::Notify(_) | Decision::Admit => "passed",
        }
    }

    fn probability(&self, now: Instant) -> f64 {
        let mut samples = LawSamples::new();
        self.law.observe(now, self.backlog, &mut samples);
        samples.iter().find(|(name, _)| *name == "p").expect("both have a p").1
    }
}

/// Replays one trace and returns the number of arrivals with each fate.
fn replay<L: EarlyLaw>(name: &str, law: L, queue: EarlyQueue) -> [usize; 4] {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../vectors/ns2-controller-open-loop")
        .join(format!("{name}.csv"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let mut port =
        Port { law, queue, waiting: VecDeque::new(), backlog: Backlog::default(), free: None, fates: vec![] };
    let mut recorded = Vec::new();
    for line in text.lines().skip(1) {
        let fields: Vec<&str> = line.split(',').collect();
        let [at, size, ect, waiting, bytes, prob, u, fate] = fields[..] else { panic!("{line}") };
        let now = Instant::from_ns(at.parse().unwrap());
        port.advance(now);
        let found = (port.backlog.packets.get(), port.backlog.bytes.get());
        assert_eq!(found, (waiting.parse().unwrap(), bytes.parse().unwrap()), "{name}: {line}");
        let words = ["passed", "marked", "early", "full"];
        let fate = *words.iter().find(|w| **w == fate).expect("a known fate");
        let ecn = if ect == "1" { Ecn::Ect0 } else { Ecn::NotEct };
        port.arrive(now, Pkt { size: Bytes::new(size.parse().unwrap()), ecn, u: u.parse().ok() });
        let (p, prob) = (port.probability(now), prob.parse::<f64>().unwrap());
        assert!((p - prob).abs() <= DIGITS * prob + 1e-12, "{name}: p {p}: {line}");
        recorded.push(fate);
    }
    port.advance(Instant::FAR_FUTURE);
    for (number, (ours, theirs)) in port.fates.iter().zip(&recorded).enumerate() {
        assert_eq!(ours, theirs, "{name}: arrival {number}");
    }
    ["passed", "marked", "early", "full"].map(|word| recorded.iter().filter(|f| **f == word).count())
}

fn packets(n: u64) -> Value {
    Value::Size(Size::Packets(Packets::new(n)))
}

fn check(name: &str, limit: u64, values: &[(&'static str, Value)]) {
    let kind = name.split_once('_').expect("the name begins with the discipline").0;
    let mut given = Settings::default();
    let shared = [
        ("preset", Value::Choice("ns2")),
        ("limit", packets(limit)),
        ("q_ref", packets(20)),
        ("mean_packet", Value::Size(Size::Bytes(LINK.mean_packet))),
    ];
    for (name, value) in shared.iter().chain(values) {
        given.set(name, value.clone(), Origin::Given);
    }
    let resolved = registry::info(kind).unwrap().resolve(&given, &LINK);
    let build = |s| Registry::<TestPacket>::builtin().build(&s, Stream::new(1, "unused"));
    let counts = match resolved.and_then(build).unwrap_or_else(|e| panic!("{name}: {e}")) {
        Discipline::Pi(queue) => replay(name, *queue.law(), *queue.queue()),
        Discipline::Rem(queue) => replay(name, *queue.law(), *queue.queue()),
        _ => panic!("{kind}"),
    };
    println!("{name}: {counts:?} (passed, marked, early, full) agree");
    assert_eq!(counts.iter().sum::<usize>(), 2500, "{name}");
}

const BYTES: (&str, Value) = ("measure", Value::Choice("bytes"));
const BYTE_MODE: (&str, Value) = ("byte_mode", Value::Choice("mean"));
const ECN: (&str, Value) = ("ecn", Value::Flag(true));

#[test]
fn pi_decides_as_ns2_at_each_recorded_arrival() {
    let gains = |a, b| [("a", Value::Number(a)), ("b", Value::Number(b))];
    let quick = gains(0.002, 0.0019);
    let with = |more: &[(&'static str, Value)]| [&quick[..], more].concat();
    check("pi_overload", 60, &quick);
    check("pi_bursts", 60, &quick);
    check("pi_flood", 30, &[&gains(1.822e-5, 1.816e-5)[..], &[("w", Value::Number(160.0))]].concat());
    check("pi_bytes", 60, &with(&[BYTES, BYTE_MODE]));
    check("pi_marks", 60, &with(&[ECN]));
}

#[test]
fn rem_decides_as_ns2_at_each_recorded_arrival() {
    let gamma = [("gamma", Value::Number(0.02))];
    let with = |more: &[(&'static str, Value)]| [&gamma[..], more].concat();
    check("rem_overload", 60, &gamma);
    check("rem_bursts", 60, &gamma);
    check("rem_flood", 30, &[]);
    check("rem_input", 60, &with(&[("inw", Value::Number(0.02))]));
    check("rem_bytes", 60, &with(&[BYTES, BYTE_MODE]));
    check("rem_marks", 60, &with(&[ECN]));
}
