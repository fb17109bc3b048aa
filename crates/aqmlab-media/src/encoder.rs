//! The encoder: frames at a rate, whose sizes follow a target.

use alloc::collections::VecDeque;

use aqmlab_random::Stream;
use aqmlab_units::{Bytes, Instant, Span};
use schemars::JsonSchema;
use serde::Serialize;

/// The frames of a class of media flows.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, JsonSchema)]
pub struct FramePlan {
    /// Frames per second.
    #[serde(rename = "fps")]
    pub per_s: f64,
    /// A key frame begins each group of this many frames; 0 without key frames.
    #[serde(rename = "key_every_frames", skip_serializing_if = "is_zero")]
    pub key_every: u64,
    /// How many times larger a key frame is than another frame.
    #[serde(skip_serializing_if = "is_one")]
    pub key_factor: f64,
    /// Scale of the deviation of frame sizes from their mean, as a share of it.
    pub variation: f64,
    /// Time from a new target to the first frame of its size.
    #[serde(rename = "latency_ns")]
    pub latency: Span,
}

fn is_zero(value: &u64) -> bool {
    *value == 0
}

fn is_one(value: &f64) -> bool {
    *value == 1.0
}

/// The smallest frame, and limits of the deviation, as shares of the mean.
const LEAST_SHARE: f64 = 0.2;
const MOST_SHARE: f64 = 3.0;

impl FramePlan {
    /// The version of this part, incremented whenever a change to it changes a result.
    pub const VERSION: u32 = 1;

    /// Returns the size of frame `number` relative to the mean size, before the deviation. Over a group of frames, the
    /// mean is 1.
    fn share(&self, number: u64) -> f64 {
        if self.key_every == 0 {
            return 1.0;
        }
        let group = self.key_every as f64;
        let other = group / (self.key_factor + group - 1.0);
        if number.is_multiple_of(self.key_every) { self.key_factor * other } else { other }
    }
}

/// An encoder at work.
#[derive(Clone, Debug)]
pub(crate) struct Encoder {
    plan: FramePlan,
    start: Instant,
    number: u64,
    draws: Stream,
    /// The rate in use, in bit/s, and later targets with the instants from which they apply.
    rate: f64,
    pending: VecDeque<(Instant, f64)>,
    /// The fraction of a byte that the last size lost in rounding.
    rest: f64,
}

impl Encoder {
    pub(crate) fn new(plan: FramePlan, rate: f64, start: Instant, draws: Stream) -> Self {
        Encoder { plan, start, number: 0, draws, rate, pending: VecDeque::new(), rest: 0.0 }
    }

    /// Returns when the next frame is captured: `number / fps` after the start, to the nearest nanosecond below.
    pub(crate) fn next_at(&self) -> Instant {
        let after = self.number as f64 * 1e9 / self.plan.per_s;
        self.start + Span::ns(after as u64)
    }

    /// Sets the target rate, which applies after the latency.
    pub(crate) fn aim(&mut self, now: Instant, target: f64) {
        let last = self.pending.back().map_or(self.rate, |&(_, rate)| rate);
        if target != last {
            self.pending.push_back((now + self.plan.latency, target));
        }
    }

    /// Returns the rate in use at `now`, in bit/s.
    pub(crate) fn rate(&mut self, now: Instant) -> f64 {
        while let Some(&(at, rate)) = self.pending.front()
            && at <= now
        {
            self.rate = rate;
            self.pending.pop_front();
        }
        self.rate
    }

    /// Captures the frame that is due, and returns its number and its size, headers included.
    pub(crate) fn frame(&mut self, now: Instant) -> (u64, Bytes) {
        let number = self.number;
        self.number += 1;
        let mean = self.rate(now) / (8.0 * self.plan.per_s);
        let share = self.plan.share(number) * self.deviation(number);
        let exact = mean * share + self.rest;
        let whole = f64::max(exact, 1.0) as u64;
        self.rest = exact - whole as f64;
        (number, Bytes::new(whole))
    }

    /// Returns the deviation of a frame: 1 plus a Laplacian variable, as in RFC 8593, section 5.1.
    fn deviation(&self, number: u64) -> f64 {
        if self.plan.variation == 0.0 {
            return 1.0;
        }
        let centred = self.draws.from_draw(number).unit() - 0.5;
        let size = -libm::log(f64::max(1.0 - 2.0 * libm::fabs(centred), f64::MIN_POSITIVE));
        let signed = if centred < 0.0 { -size } else { size };
        (1.0 + self.plan.variation * signed).clamp(LEAST_SHARE, MOST_SHARE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> FramePlan {
        FramePlan { per_s: 25.0, key_every: 0, key_factor: 1.0, variation: 0.0, latency: Span::ZERO }
    }

    fn sizes(plan: FramePlan, rate: f64, count: usize) -> alloc::vec::Vec<u64> {
        let mut encoder = Encoder::new(plan, rate, Instant::ZERO, Stream::new(1, "test"));
        (0..count)
            .map(|_| {
                let at = encoder.next_at();
                encoder.frame(at).1.get()
            })
            .collect()
    }

    /// 200 000 bit/s / (8 * 25 /s) = 1000 B; 100 001 bit/s gives 500.005 B, so every 200th frame has a byte more.
    #[test]
    fn frames_have_the_rate() {
        assert_eq!(sizes(plan(), 200_000.0, 3), [1000; 3]);
        let sum: u64 = sizes(plan(), 100_001.0, 1000).iter().sum();
        assert!((500_004..=500_005).contains(&sum), "{sum}");
    }

    /// A group of 10 frames with a key frame of four times the size: the others have 10/13 of the mean.
    #[test]
    fn key_frames_leave_the_rate_as_it_is() {
        let keyed = FramePlan { key_every: 10, key_factor: 4.0, ..plan() };
        let sizes = sizes(keyed, 260_000.0, 20);
        assert_eq!((sizes[0], sizes[1], sizes[10]), (4000, 1000, 4000));
        assert_eq!(sizes.iter().sum::<u64>(), 20 * 1300);
    }

    /// The deviation has mean 0 and, as a Laplacian variable of scale b, variance 2 b^2. The limits cut off little.
    #[test]
    fn sizes_deviate_as_much_as_the_plan_says() {
        let varied = FramePlan { variation: 0.1, ..plan() };
        let sizes = sizes(varied, 2_000_000.0, 20_000);
        let mean = sizes.iter().sum::<u64>() as f64 / 20_000.0;
        let variance = sizes.iter().map(|&s| (s as f64 - mean) * (s as f64 - mean)).sum::<f64>() / 20_000.0;
        assert!((mean / 10_000.0 - 1.0).abs() < 0.005, "{mean}");
        assert!((libm::sqrt(variance) / 10_000.0 - 0.1 * libm::sqrt(2.0)).abs() < 0.005, "{variance}");
    }

    #[test]
    fn a_new_target_applies_after_the_latency() {
        let slow = FramePlan { latency: Span::ms(200), ..plan() };
        let mut encoder = Encoder::new(slow, 200_000.0, Instant::ZERO, Stream::new(1, "test"));
        encoder.aim(Instant::ZERO + Span::ms(10), 400_000.0);
        assert_eq!(encoder.rate(Instant::ZERO + Span::ms(209)), 200_000.0);
        assert_eq!(encoder.rate(Instant::ZERO + Span::ms(210)), 400_000.0);
    }
}
