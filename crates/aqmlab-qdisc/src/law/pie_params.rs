//! PIE's parameters, and the numbers that follow from them alone, in the units of either arithmetic.

use aqmlab_units::{Bytes, Span};

/// How times and probabilities are computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PieArithmetic {
    /// In nanoseconds, with probabilities in units of 2^-60.
    Exact,
    /// Like Linux: times in whole units of 64 ns, probabilities in units of 1 / (2^56 - 1), gains in
    /// sixteenths of 1/s that are rounded down after each scaling. A probability may exceed 1. The delay at the
    /// last departure, not that at the last update, spares packets; the burst allowance shrinks with departures.
    Linux,
}

/// How the queueing delay is found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PieDelay {
    /// It is the waiting time of the packet that left last.
    Timestamps,
    /// It is the backlog divided by the departure rate, which is measured each time that this many bytes have
    /// left a queue of at least this many bytes, `DQ_THRESHOLD`.
    Rate(Bytes),
}

/// Parameters of the law.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PieParams {
    /// The acceptable delay, `QDELAY_REF`.
    pub target: Span,
    /// The time between two updates of the probability, `T_UPDATE`.
    pub t_update: Span,
    /// Weight of the distance of the delay from the target, in 1/s.
    pub alpha: f64,
    /// Weight of the growth of the delay, in 1/s.
    pub beta: f64,
    /// The time for which no packet is chosen after the queue was uncongested, `MAX_BURST`.
    pub max_burst: Span,
    /// Half of the backlog up to which no packet is chosen, `MEAN_PKTSIZE`.
    pub mean_packet: Bytes,
    /// The probability below which a mark may replace a drop, `mark_ecnth`.
    pub mark_below: f64,
    /// The factor by which each update multiplies the probability while the delay is zero; above 0.5.
    pub decay: f64,
    /// Whether an update raises a probability of at least 0.1 by at most 0.02 (section 5.5).
    pub cap: bool,
    /// Whether an update adds 0.02 if the delay exceeds 250 ms (Linux).
    pub surge: bool,
    /// Whether choices are spread (section 5.4).
    pub derandomize: bool,
    /// The size relative to which smaller packets have a smaller probability, if they do.
    pub largest: Option<Bytes>,
    /// How the queueing delay is found.
    pub delay: PieDelay,
    /// How times and probabilities are computed.
    pub arithmetic: PieArithmetic,
}

/// The number of probabilities at which the scaling of the gains changes: 0.1, 0.01, ... 0.000001.
pub(super) const BOUNDS: usize = 6;
/// The delay above which [`PieParams::surge`] acts.
const SURGE: Span = Span::ms(250);
/// Linux's times have this many bits less than a number of nanoseconds.
const LINUX_TIME_BITS: u32 = 6;
/// The number of Linux's units of time per second.
pub(super) const LINUX_TICKS_PER_S: u64 = 15_625_000;
/// Numbers that depend on the parameters alone, in the law's own units.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Scales {
    /// Probability 1.
    pub one: u64,
    /// A probability is below 10^-(k+1) if it is less than element k.
    pub bounds: [u64; BOUNDS],
    /// The probability below which a short delay spares packets: 0.2.
    pub fifth: u64,
    /// Probability 0.02 where a rise is compared with it or added, and where it replaces the rise.
    pub rise: (u64, u64),
    /// The probability below which a mark may replace a drop.
    pub mark_below: u64,
    /// Accumulated probabilities below which no packet is chosen, and from which each one is: 0.85 and 8.5.
    pub spread: (u64, u64),
    /// The number of bits by which times in nanoseconds are shifted right.
    pub time_bits: u32,
    pub target: u64,
    /// A delay is shorter than half the target if it is less than this.
    pub half_target: u64,
    pub max_burst: u64,
    pub surge: u64,
    /// A backlog that spares packets is less than this.
    pub spared: u64,
}

impl Scales {
    pub(super) fn new(params: &PieParams) -> Self {
        let PieParams { target, max_burst, mean_packet, mark_below, .. } = *params;
        let spared = 2 * mean_packet.get();
        match params.arithmetic {
            PieArithmetic::Exact => {
                let one = 1u64 << 60;
                // The least whole number of units that is not below the fraction 1 / n.
                let part = |n: u64| one.div_ceil(n);
                let mut n = 1;
                Scales {
                    one,
                    bounds: [(); BOUNDS].map(|()| {
                        n *= 10;
                        part(n)
                    }),
                    fifth: part(5),
                    rise: (one / 50, one / 50),
                    mark_below: libm::ceil(mark_below * one as f64) as u64,
                    spread: (part(20) * 17, part(2) * 17),
                    time_bits: 0,
                    target: target.as_ns(),
                    half_target: target.as_ns().div_ceil(2),
                    max_burst: max_burst.as_ns(),
                    surge: SURGE.as_ns(),
                    spared: spared + 1,
                }
            }
            PieArithmetic::Linux => {
                let one = (1u64 << 56) - 1;
                let ticks = |time: Span| time.as_ns() >> LINUX_TIME_BITS;
                let mut n = 1;
                Scales {
                    one,
                    bounds: [(); BOUNDS].map(|()| {
                        n *= 10;
                        one / n
                    }),
                    fifth: one / 5,
                    rise: (one / 50, one / 100 * 2),
                    // At the threshold itself, Linux still marks.
                    mark_below: libm::floor(mark_below * one as f64) as u64 + 1,
                    spread: (one / 100 * 85, one / 2 * 17),
                    time_bits: LINUX_TIME_BITS,
                    target: ticks(target),
                    half_target: ticks(target) / 2,
                    max_burst: ticks(max_burst),
                    surge: ticks(SURGE),
                    spared,
                }
            }
        }
    }
}
