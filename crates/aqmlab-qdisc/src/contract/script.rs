//! Random sequences of calls, and the shortening of one that fails.

use alloc::vec::Vec;
use core::fmt;

use aqmlab_random::Stream;
use aqmlab_units::{Bytes, Rate, Span};

use crate::Ecn;

/// One call, or a pause between calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operation {
    /// This amount of time, possibly zero, passes.
    Pass(Span),
    /// A packet arrives.
    Arrive {
        /// its size
        size: Bytes,
        /// its flow
        flow: u64,
        /// its ECN field
        ecn: Ecn,
    },
    /// The link polls the queue.
    Depart,
    /// The link changes its rate.
    SetRate(Rate),
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Operation::Pass(span) => write!(f, "pass {span}"),
            Operation::Arrive { size, flow, ecn } => write!(f, "arrive {size}, flow {flow}, {ecn:?}"),
            Operation::Depart => f.write_str("depart"),
            Operation::SetRate(rate) => write!(f, "rate {rate}"),
        }
    }
}

/// The kind of load in a section of a script.
#[derive(Clone, Copy)]
enum Phase {
    /// Arrivals while the link is almost stopped.
    Burst,
    /// Two arrivals per departure.
    Overload,
    /// About as many arrivals as departures.
    Balance,
    /// Departures, including polls of an empty queue.
    Drain,
    /// Few packets, with long pauses between them.
    Silence,
}

/// Returns the script that `seed` determines. Its sections are bursts, overload, balance, drains,
/// and silences with pauses of up to an hour. The packets have 40 to 9000 bytes, come from eight
/// flows and have all values of the ECN field. From time to time, the link gets a new rate between
/// 10 kbit/s and 400 Gbit/s.
pub fn script(seed: u64) -> Vec<Operation> {
    let mut draws = Stream::new(seed, "contract/script");
    // All, none or some of the packets in a script are ECN-capable.
    let ecn_share = [0, 50, 100][draws.below(3) as usize];
    let mut operations = Vec::new();
    for _ in 0..6 + draws.below(10) {
        let phase = [Phase::Burst, Phase::Overload, Phase::Balance, Phase::Drain, Phase::Silence]
            [draws.below(5) as usize];
        for _ in 0..10 + draws.below(60) {
            stretch(phase, ecn_share, &mut draws, &mut operations);
        }
        if draws.below(4) == 0 {
            operations.push(Operation::SetRate(any_rate(&mut draws)));
        }
    }
    operations
}

fn stretch(phase: Phase, ecn_share: u64, draws: &mut Stream, out: &mut Vec<Operation>) {
    let (arrivals, departures, longest) = match phase {
        Phase::Burst => (1 + draws.below(3), 0, Span::us(10)),
        Phase::Overload => (2, 1, Span::ms(2)),
        Phase::Balance => (draws.below(3), draws.below(3), Span::ms(2)),
        Phase::Drain => (0, 2, Span::ms(1)),
        Phase::Silence => (draws.below(2), draws.below(2), Span::s(3600)),
    };
    for _ in 0..arrivals {
        out.push(arrival(ecn_share, draws));
    }
    for _ in 0..departures {
        out.push(Operation::Depart);
    }
    // Calls at the same instant are common: in a third of the cases, no time passes between two
    // steps.
    if draws.below(3) > 0 {
        out.push(Operation::Pass(Span::ns(draws.below(longest.as_ns()))));
    }
}

fn arrival(ecn_share: u64, draws: &mut Stream) -> Operation {
    let size = match draws.below(8) {
        0 => 40,
        1..=5 => 1500,
        _ => 40 + draws.below(8961),
    };
    let capable = draws.below(100) < ecn_share;
    let field = [Ecn::Ect0, Ecn::Ect0, Ecn::Ect1, Ecn::Ce][draws.below(4) as usize];
    let ecn = if capable { field } else { Ecn::NotEct };
    Operation::Arrive { size: Bytes::new(size), flow: draws.below(8), ecn }
}

fn any_rate(draws: &mut Stream) -> Rate {
    let rates = [Rate::kbit(10), Rate::mbit(1), Rate::mbit(10), Rate::gbit(1), Rate::gbit(400)];
    rates[draws.below(5) as usize]
}

/// Tries to remove ever smaller parts of `script`, and keeps a removal only if `fails` is true for
/// the rest. Returns the shortest script found.
pub fn shrink(script: &[Operation], fails: impl Fn(&[Operation]) -> bool) -> Vec<Operation> {
    let mut best = script.to_vec();
    let mut part = best.len() / 2;
    while part > 0 {
        let mut from = 0;
        while from < best.len() {
            let mut shorter = best.clone();
            shorter.drain(from..(from + part).min(best.len()));
            if fails(&shorter) { best = shorter } else { from += part }
        }
        part /= 2;
    }
    best
}
