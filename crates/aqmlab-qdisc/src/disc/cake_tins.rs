//! CAKE's tins: the code points, the shares of the rate and the weights of each mode.

use alloc::vec::Vec;

use aqmlab_params::Words;
use aqmlab_units::{Bytes, Rate, Span};

use super::words::TinMode;
use crate::Dscp;
use crate::law::{Arithmetic, ByteTime, CobaltParams};

/// A tin: its share of the rate, and its weight without a shaper.
#[derive(Clone, Copy, Debug)]
pub(super) struct TinPlan {
    /// The rate up to which the tin has priority, in bytes per second; zero without a shaper.
    pub rate: u64,
    /// Bytes per round among tins without a shaper.
    pub quantum: i64,
}

/// Returns the tins of a mode in the order of their numbers. With a shaper of `rate` bytes per second, the last
/// tin that has not used up its own rate is served first.
pub(super) fn plans(mode: TinMode, rate: u64) -> Vec<TinPlan> {
    let shares = |shifts: &[u32]| {
        shifts.iter().map(|shift| TinPlan { rate: rate >> shift, quantum: 1024 >> shift }).collect()
    };
    match mode {
        TinMode::Besteffort => alloc::vec![TinPlan { rate, quantum: 65_535 }],
        // Best effort, bulk, voice.
        TinMode::Diffserv3 => shares(&[0, 4, 2]),
        // Best effort, bulk, video, voice.
        TinMode::Diffserv4 => shares(&[0, 4, 1, 2]),
        TinMode::Precedence | TinMode::Diffserv8 => {
            let less = |plan: &TinPlan| {
                Some(TinPlan { rate: (plan.rate * 7) >> 3, quantum: (plan.quantum * 7) >> 3 })
            };
            core::iter::successors(Some(TinPlan { rate, quantum: 256 }), less).take(8).collect()
        }
    }
}

/// The parameters of a tin.
#[derive(Clone, Copy, Debug)]
pub(super) struct TinRules {
    /// The name of its books.
    pub name: &'static str,
    pub rate: Option<ByteTime>,
    /// Bytes per round among tins without a shaper.
    pub quantum: i64,
    /// Bytes per round of a flow that shares with no other flow of its host.
    pub flow_quantum: u64,
    pub law: CobaltParams,
}

/// Bytes per second below which Linux's unlimited CAKE would have a rate of its own: none.
const UNLIMITED: u64 = 0;

/// What the parameters of the tins follow from, together with the shaper's rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tins {
    pub mode: TinMode,
    pub target: Span,
    pub interval: Span,
    /// Size of the largest packet.
    pub mtu: Bytes,
    pub arithmetic: Arithmetic,
}

impl Tins {
    /// Returns the parameters of the tins if the shaper has this rate, in the order of their numbers.
    pub(super) fn at(self, bandwidth: Option<Rate>) -> impl Iterator<Item = TinRules> {
        let bytes_per_s = bandwidth.map_or(UNLIMITED, |rate| rate.as_bps() / 8);
        let named = plans(self.mode, bytes_per_s).into_iter().zip(names(self.mode));
        named.map(move |(plan, name)| self.rules(name, plan.rate, plan.quantum))
    }

    fn rules(self, name: &'static str, rate: u64, quantum: i64) -> TinRules {
        let rate = (rate != UNLIMITED).then(|| ByteTime::of(rate));
        let mtu_time = rate.map_or(Span::ZERO, |rate| rate.time(self.mtu.get()));
        let target = self.target.max(Span::ns(3 * mtu_time.as_ns() / 2));
        let interval = (self.interval + target).saturating_sub(self.target).max(target.saturating_mul(2));
        TinRules {
            name,
            rate,
            quantum,
            flow_quantum: rate.map_or(1514, |rate| (rate.bytes_per_s() >> 12).clamp(300, 1514)),
            law: CobaltParams {
                target,
                interval,
                mtu_time,
                increment: 1.0 / 256.0,
                decrement: 1.0 / 4096.0,
                blue_threshold: None,
                arithmetic: self.arithmetic,
            },
        }
    }
}

/// Returns the names of the tins of a mode, in the order of their numbers.
pub(super) const fn names(mode: TinMode) -> &'static [&'static str] {
    match mode {
        TinMode::Besteffort => &["tin_best_effort"],
        TinMode::Diffserv3 => &["tin_best_effort", "tin_bulk", "tin_voice"],
        TinMode::Diffserv4 => &["tin_best_effort", "tin_bulk", "tin_video", "tin_voice"],
        TinMode::Precedence | TinMode::Diffserv8 => {
            &["tin_0", "tin_1", "tin_2", "tin_3", "tin_4", "tin_5", "tin_6", "tin_7"]
        }
    }
}

/// Returns the tin of each code point in CAKE's mode `mode`, if there is such a mode. Tin 0 is best effort except
/// in the modes `precedence` and `diffserv8`.
pub fn cake_tins(mode: &str) -> Option<[u8; 64]> {
    TinMode::from_word(mode).map(tin_of_code_points)
}

/// Returns the tin of each code point.
pub(super) fn tin_of_code_points(mode: TinMode) -> [u8; 64] {
    let tin = |dscp: u8| match mode {
        TinMode::Besteffort => 0,
        TinMode::Precedence => dscp >> 3,
        TinMode::Diffserv3 => match named(dscp) {
            "LE" | "CS1" => 1,
            "TOS4" | "VA" | "EF" | "CS6" | "CS7" => 2,
            _ => 0,
        },
        TinMode::Diffserv4 => match named(dscp) {
            "LE" | "CS1" => 1,
            "TOS4" | "CS2" | "CS3" => 2,
            name if ["AF2", "AF3", "AF4"].iter().any(|class| name.starts_with(class)) => 2,
            "CS4" | "CS5" | "VA" | "EF" | "CS6" | "CS7" => 3,
            _ => 0,
        },
        TinMode::Diffserv8 => match named(dscp) {
            "LE" => 0,
            "CS1" | "AF11" | "AF12" | "AF13" | "TOS2" => 1,
            "CS3" => 3,
            name if name.starts_with("AF3") || name.starts_with("AF4") => 3,
            "TOS4" => 4,
            name if name.starts_with("AF2") => 4,
            "CS2" => 5,
            "CS4" | "CS5" | "VA" | "EF" => 6,
            "CS6" | "CS7" => 7,
            _ => 2,
        },
    };
    core::array::from_fn(|dscp| tin(dscp as u8))
}

/// Returns the name of a code point. Before RFC 2474, TOS4 asked for low delay and TOS2 for high throughput.
fn named(dscp: u8) -> &'static str {
    match dscp {
        2 => return "TOS2",
        4 => return "TOS4",
        _ => {}
    }
    Dscp::NAMES.iter().find(|(_, known)| known.0 == dscp).map_or("", |(name, _)| *name)
}
