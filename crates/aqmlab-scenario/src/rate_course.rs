//! The course of a changing rate in a run: its levels, or the chances to send.

use std::sync::Arc;

use aqmlab_random::Stream;
use aqmlab_traffic::Distribution;
use aqmlab_traffic::packmime::normal;
use aqmlab_units::{Bytes, Instant, Rate, Span};

use crate::plan::{AtEnd, ChangingRate, RateClock, RateCourse};
use crate::trace::{ChanceFile, RateStep};

/// Levels of a rate, each from an instant on: the first from time zero, the others at later and later instants. The
/// last level, if there is one, holds for ever.
pub type Levels = Box<dyn Iterator<Item = (Instant, Rate)> + Send>;

/// Instants at which a link may send, ascending.
pub type Chances = Box<dyn Iterator<Item = Instant> + Send>;

impl ChangingRate {
    /// Incremented whenever a change here changes a result.
    pub const VERSION: u32 = 1;

    /// Returns the levels of the rate of the link `link` in the run with this seed.
    pub fn levels(&self, link: &str, seed: u64) -> Levels {
        let draws = |what: &str| Stream::new(seed, format_args!("rate/{link}/{what}"));
        match &self.course {
            RateCourse::Steps { steps, repeat } => stepped(steps.clone(), *repeat),
            RateCourse::File { levels, at_end } => {
                stepped(levels.steps.clone(), (*at_end == AtEnd::Repeat).then_some(levels.length))
            }
            RateCourse::Mahimahi { chances, at_end, bin } => {
                let steps = binned(chances, self.chance(), bin.unwrap_or(Span::ms(1)));
                match at_end {
                    AtEnd::Repeat => stepped(steps, Some(chances.length())),
                    AtEnd::Hold => {
                        let over = RateStep { at: chances.length(), rate: Rate::default() };
                        stepped(steps.iter().copied().chain([over]).collect(), None)
                    }
                }
            }
            RateCourse::Outages { rate, up, down } => {
                Box::new(outages(*rate, [up.clone(), down.clone()], [draws("up"), draws("down")]))
            }
            RateCourse::Markov { levels, stay } => {
                Box::new(markov(levels.clone(), *stay, [draws("level"), draws("stay")]))
            }
            RateCourse::Redrawn { level, every, first } => {
                let (level, every, first, mut draws) = (level.clone(), *every, *first, draws("level"));
                Box::new((0..).map(move |n| (regular(n, first, every), level.draw(n, &mut draws))))
            }
            RateCourse::Fading { mean, deviation_db, coherence, step } => {
                Box::new(fading(*mean, *deviation_db, *coherence, *step, draws("level")))
            }
            RateCourse::Stalls { rate, every, lasts, first } => {
                let (rate, every, lasts, first) = (*rate, *every, *lasts, *first);
                let stall = move |n| {
                    let begins = Instant::ZERO + first + every * n;
                    [(begins, Rate::default()), (begins + lasts, rate)]
                };
                let before = (!first.is_zero()).then_some((Instant::ZERO, rate));
                Box::new(before.into_iter().chain((0..).flat_map(stall)))
            }
        }
    }

    /// Returns the bytes of a chance: those of the clock or, for a serving link, those that a line of Mahimahi's
    /// format stands for.
    pub fn chance(&self) -> Bytes {
        match self.clock {
            RateClock::Chances { size } => size,
            RateClock::Serving => crate::trace::MAHIMAHI_CHANCE,
        }
    }

    /// Returns the chances of the link `link` to send in the run with this seed: those of the file or, for other
    /// courses, one whenever the integral of the rate has grown by the bytes of a chance.
    pub fn chances(&self, link: &str, seed: u64) -> Chances {
        match &self.course {
            RateCourse::Mahimahi { chances, at_end, bin: None } => {
                let (stamps, length, repeats) =
                    (chances.stamps_ms.clone(), chances.length(), *at_end == AtEnd::Repeat);
                let rounds = if repeats { u64::MAX } else { 1 };
                Box::new((0..rounds).flat_map(move |round| {
                    let (stamps, begin) = (stamps.clone(), Instant::ZERO + length * round);
                    (0..stamps.len()).map(move |i| begin + Span::ms(stamps[i].into()))
                }))
            }
            _ => Box::new(Spread::new(self.levels(link, seed), self.chance())),
        }
    }

    /// Returns the mean rate over a run of this length; for a course that repeats and is shorter, over its period;
    /// for draws, their expectation.
    pub fn mean(&self, run: Span) -> Rate {
        match &self.course {
            RateCourse::Steps { steps, repeat } => {
                mean_of(steps, repeat.map_or(run, |period| period.min(run)))
            }
            RateCourse::File { levels, at_end } => match at_end {
                AtEnd::Repeat => mean_of(&levels.steps, levels.length.min(run)),
                AtEnd::Hold => mean_of(&levels.steps, run),
            },
            RateCourse::Mahimahi { chances, at_end, .. } => {
                let over = if *at_end == AtEnd::Repeat { chances.length().min(run) } else { run };
                let count = chances.stamps_ms.partition_point(|stamp| Span::ms((*stamp).into()) <= over);
                Rate::of(self.chance() * count as u64, over)
            }
            RateCourse::Outages { rate, up, down } => {
                let (up, down) = (up.mean().as_secs_f64(), down.mean().as_secs_f64());
                scaled(*rate, up / (up + down))
            }
            RateCourse::Markov { levels, .. } => {
                let sum: u128 = levels.iter().map(|level| u128::from(level.as_bps())).sum();
                Rate::bps((sum / levels.len() as u128) as u64)
            }
            RateCourse::Redrawn { level, .. } => level.mean(),
            RateCourse::Fading { mean, .. } => *mean,
            RateCourse::Stalls { rate, every, lasts, .. } => {
                scaled(*rate, 1.0 - lasts.as_secs_f64() / every.as_secs_f64())
            }
        }
    }

    /// Returns the highest mean rate over a window of this length in the run with this seed. Windows follow each other from the
    /// beginning of the run on, which lasts for `run`.
    pub fn highest(&self, link: &str, seed: u64, run: Span, window: Span) -> Rate {
        let (mut highest, mut sum) = (0u128, 0u128);
        let (mut begin, mut now, mut rate) = (Instant::ZERO, Instant::ZERO, Rate::default());
        let end = Instant::ZERO + run;
        for (at, next) in self.levels(link, seed).chain([(Instant::FAR_FUTURE, Rate::default())]) {
            while now < at.min(end) {
                let until = at.min(end).min(begin + window);
                sum += rate.nanobits_in(until.saturating_since(now));
                now = until;
                if now == begin + window || now == end {
                    highest = highest.max(sum);
                    (begin, sum) = (now, 0);
                }
            }
            if at >= end {
                break;
            }
            rate = next;
        }
        Rate::bps(u64::try_from(highest / u128::from(window.min(run).as_ns().max(1))).unwrap_or(u64::MAX))
    }

    /// Returns the highest rate, if there is one.
    pub fn peak(&self) -> Option<Rate> {
        let highest = |steps: &[RateStep]| steps.iter().map(|step| step.rate).max();
        match &self.course {
            RateCourse::Steps { steps, .. } => highest(steps),
            RateCourse::File { levels, .. } => highest(&levels.steps),
            RateCourse::Mahimahi { chances, bin, .. } => {
                bin.and_then(|bin| highest(&binned(chances, self.chance(), bin)))
            }
            RateCourse::Outages { rate, .. } | RateCourse::Stalls { rate, .. } => Some(*rate),
            RateCourse::Markov { levels, .. } => levels.iter().copied().max(),
            RateCourse::Redrawn { .. } | RateCourse::Fading { .. } => None,
        }
    }
}

fn scaled(rate: Rate, share: f64) -> Rate {
    Rate::bps((rate.as_bps() as f64 * share + 0.5) as u64)
}

/// Returns the mean rate of steps up to `end`.
fn mean_of(steps: &[RateStep], end: Span) -> Rate {
    let ends = steps[1..].iter().map(|step| step.at).chain([Span::MAX]);
    let sent: u128 = steps
        .iter()
        .zip(ends)
        .map(|(step, until)| step.rate.nanobits_in(until.min(end).saturating_sub(step.at)))
        .sum();
    Rate::bps(u64::try_from(sent / u128::from(end.as_ns().max(1))).unwrap_or(u64::MAX))
}

/// Returns instant `n` of a sequence that begins at zero and goes on at `first` and every `every` after it.
fn regular(n: u64, first: Span, every: Span) -> Instant {
    n.checked_sub(1).map_or(Instant::ZERO, |n| Instant::ZERO + first + every * n)
}

/// Iterates over steps, which are repeated after `repeat`.
fn stepped(steps: Arc<[RateStep]>, repeat: Option<Span>) -> Levels {
    let rounds = if repeat.is_some() { u64::MAX } else { 1 };
    let period = repeat.unwrap_or_default();
    Box::new((0..rounds).flat_map(move |round| {
        let (steps, begin) = (steps.clone(), Instant::ZERO + period * round);
        (0..steps.len()).map(move |i| (begin + steps[i].at, steps[i].rate))
    }))
}

/// Returns the mean rate of chances in each bin. A chance belongs to the bin that it ends or lies in.
fn binned(chances: &ChanceFile, size: Bytes, bin: Span) -> Arc<[RateStep]> {
    let (length, mut counts) = (chances.length(), Vec::new());
    counts.resize(length.as_ns().div_ceil(bin.as_ns()) as usize, 0u64);
    let last = counts.len() - 1;
    for stamp in &*chances.stamps_ms {
        let before = Span::ms((*stamp).into()).saturating_sub(Span::ns(1));
        counts[(before.div_span(bin) as usize).min(last)] += 1;
    }
    let step = |(i, count): (usize, &u64)| {
        let at = bin * i as u64;
        RateStep { at, rate: Rate::of(size * *count, bin.min(length.saturating_sub(at))) }
    };
    counts.iter().enumerate().map(step).collect()
}

/// Iterates over the periods of a link that is up first, and down and up in turn. Periods of no length are left out.
fn outages(
    rate: Rate,
    periods: [Distribution; 2],
    mut draws: [Stream; 2],
) -> impl Iterator<Item = (Instant, Rate)> {
    let (mut begin, mut number) = (Instant::ZERO, 0u64);
    std::iter::from_fn(move || {
        loop {
            let (which, at) = ((number % 2) as usize, begin);
            let length = periods[which].draw(number / 2, &mut draws[which]);
            number += 1;
            begin += length;
            if !length.is_zero() {
                return Some((at, if which == 0 { rate } else { Rate::default() }));
            }
        }
    })
}

/// Iterates over the levels of a Markov chain, which begins in its stationary distribution.
fn markov(
    levels: Vec<Rate>,
    stay: Span,
    [mut level, mut time]: [Stream; 2],
) -> impl Iterator<Item = (Instant, Rate)> {
    let count = levels.len() as u64;
    let (mut begin, mut now) = (Instant::ZERO, level.below(count));
    std::iter::from_fn(move || {
        let next = (begin, levels[now as usize]);
        let stays = Distribution::Exponential { mean: stay, offset: Span::ZERO }.draw(0, &mut time);
        begin += stays.max(Span::ns(1));
        // One of the other levels.
        now = (now + 1 + level.below(count - 1)) % count;
        Some(next)
    })
}

/// Iterates over the levels of log-normal fading. Its process begins in its stationary distribution.
fn fading(
    mean: Rate,
    deviation_db: f64,
    coherence: Span,
    step: Span,
    mut draws: Stream,
) -> impl Iterator<Item = (Instant, Rate)> {
    let deviation = deviation_db * core::f64::consts::LN_10 / 10.0;
    let correlation = libm::exp(-step.as_secs_f64() / coherence.as_secs_f64());
    let renewal = (1.0 - correlation * correlation).sqrt();
    let mut state = normal(&mut draws);
    (0..).map(move |n| {
        let rate = scaled(mean, libm::exp(deviation * state - deviation * deviation / 2.0));
        state = correlation * state + renewal * normal(&mut draws);
        (Instant::ZERO + step * n, rate)
    })
}

/// Chances at the instants at which a link with these levels that always sends would have sent packets of this size.
struct Spread {
    levels: std::iter::Peekable<Levels>,
    size: Bytes,
    now: Instant,
    rate: Rate,
    /// What is still to be sent until the next chance, in units of 10^-9 bit.
    left: u128,
}

impl Spread {
    fn new(levels: Levels, size: Bytes) -> Self {
        let (levels, left) = (levels.peekable(), size.nanobits());
        Spread { levels, size, now: Instant::ZERO, rate: Rate::default(), left }
    }
}

impl Iterator for Spread {
    type Item = Instant;

    fn next(&mut self) -> Option<Instant> {
        loop {
            let due = match u128::from(self.rate.as_bps()) {
                0 => Instant::FAR_FUTURE,
                bps => self.now.saturating_add(Span::ns(u64::try_from(self.left / bps).unwrap_or(u64::MAX))),
            };
            // As on a link, a new rate comes before what ends at its instant.
            let change = self.levels.next_if(|(at, _)| *at <= due);
            let at = change.map_or(due, |(at, _)| at);
            if at == Instant::FAR_FUTURE {
                return None;
            }
            self.left -= self.rate.nanobits_in(at.saturating_since(self.now));
            self.now = at;
            match change {
                Some((_, rate)) => self.rate = rate,
                None => {
                    self.left += self.size.nanobits();
                    return Some(at);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_rate_is_a_mean_over_windows() {
        let step = |ms, mbps| RateStep { at: Span::ms(ms), rate: Rate::mbit(mbps) };
        let highest = |steps: &[RateStep], run, clock| {
            let course = RateCourse::Steps { steps: steps.into(), repeat: None };
            ChangingRate { clock, course }.highest("link", 1, Span::ms(run), Span::ms(100))
        };
        for clock in [RateClock::Serving, RateClock::Chances { size: Bytes::new(1500) }] {
            let highest = |steps: &[RateStep], run| highest(steps, run, clock);
            assert_eq!(highest(&[step(0, 3), step(500, 8), step(900, 1)], 1000), Rate::mbit(8));
            // A quarter of the window from 100 ms on has 8 Mbit/s, the rest 4.
            assert_eq!(highest(&[step(0, 4), step(125, 8), step(150, 4)], 1000), Rate::mbit(5));
            assert_eq!(highest(&[step(0, 4), step(900, 8)], 900), Rate::mbit(4), "the run is over");
            assert_eq!(highest(&[step(0, 0), step(20, 4)], 40), Rate::mbit(2), "a run shorter than a window");
            assert_eq!(highest(&[step(0, 0)], 1000), Rate::default());
        }
    }
}
