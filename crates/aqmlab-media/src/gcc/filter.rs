//! Estimates of the delay gradient: the Kalman filter of draft-ietf-rmcat-gcc-02, section 5.3, and the line fitted to
//! recent delays that implementations use today.

use alloc::collections::VecDeque;

use super::groups::Variation;

/// State noise variance (`q`) and the initial error of the estimate (`e(0)`).
const STATE_NOISE: f64 = 1e-3;
const FIRST_ERROR: f64 = 0.1;
/// Weight of a new sample of the measurement noise (`chi`); the draft gives the range 0.001 to 0.1.
const CHI: f64 = 0.01;
/// Number of groups among which the highest rate is looked for (`K`), which the draft leaves open.
const GROUPS: usize = 60;

/// A Kalman filter for the delay gradient, in milliseconds per group.
#[derive(Clone, Debug)]
pub struct Kalman {
    gradient: f64,
    error: f64,
    noise: f64,
    intervals: VecDeque<f64>,
}

impl Default for Kalman {
    fn default() -> Self {
        // The draft leaves the initial noise open; 1 is the smallest that it permits.
        Kalman { gradient: 0.0, error: FIRST_ERROR, noise: 1.0, intervals: VecDeque::new() }
    }
}

impl Kalman {
    /// Takes in a variation, and returns the gradient (`m`).
    pub fn update(&mut self, variation: &Variation) -> f64 {
        if variation.departures_ms > 0.0 {
            self.intervals.push_back(variation.departures_ms);
        }
        if self.intervals.len() > GROUPS {
            self.intervals.pop_front();
        }
        let shortest = self.intervals.iter().fold(f64::INFINITY, |least, &gap| f64::min(least, gap));
        let innovation = variation.delay_ms - self.gradient;
        // alpha = (1 - chi)^(30 / (1000 f_max)), where f_max is the highest rate of groups per millisecond.
        let alpha = libm::pow(1.0 - CHI, 30.0 / 1000.0 * shortest.min(1000.0));
        let limit = 3.0 * libm::sqrt(self.noise);
        let bounded = innovation.clamp(-limit, limit);
        self.noise = f64::max(alpha * self.noise + (1.0 - alpha) * bounded * bounded, 1.0);
        let uncertain = self.error + STATE_NOISE;
        let gain = uncertain / (self.noise + uncertain);
        self.gradient += innovation * gain;
        self.error = (1.0 - gain) * uncertain;
        self.gradient
    }
}

/// Number of delays to which the line is fitted, weight of the previous smoothed delay, and gain of the slope.
const POINTS: usize = 20;
const SMOOTHING: f64 = 0.9;
const SLOPE_GAIN: f64 = 4.0;
const MOST_GAPS: u32 = 60;

/// The slope of a line fitted by least squares to the smoothed delays of the last 20 groups. The slope is multiplied by
/// the number of groups so far (at most 60) and by 4, so that it has the unit and the threshold of the Kalman filter's
/// gradient. These numbers are those of WebRTC's code; no draft describes them.
#[derive(Clone, Debug, Default)]
pub struct Trendline {
    delay_ms: f64,
    smoothed_ms: f64,
    begin_ms: Option<f64>,
    points: VecDeque<(f64, f64)>,
    count: u32,
}

impl Trendline {
    /// Takes in a variation, and returns the gradient.
    pub fn update(&mut self, variation: &Variation) -> f64 {
        let at_ms = variation.at.as_secs_f64() * 1000.0;
        let begin_ms = *self.begin_ms.get_or_insert(at_ms);
        self.count = (self.count + 1).min(MOST_GAPS);
        self.delay_ms += variation.delay_ms;
        self.smoothed_ms = SMOOTHING * self.smoothed_ms + (1.0 - SMOOTHING) * self.delay_ms;
        self.points.push_back((at_ms - begin_ms, self.smoothed_ms));
        if self.points.len() > POINTS {
            self.points.pop_front();
        }
        if self.points.len() < POINTS {
            return 0.0;
        }
        let slope = slope(self.points.iter().copied());
        f64::from(self.count) * slope * SLOPE_GAIN
    }
}

/// Returns the slope of the line through these points, by least squares; 0 if they share one abscissa.
fn slope(points: impl Iterator<Item = (f64, f64)> + Clone) -> f64 {
    let count = points.clone().count() as f64;
    let (sum_x, sum_y) = points.clone().fold((0.0, 0.0), |(x, y), point| (x + point.0, y + point.1));
    let (mean_x, mean_y) = (sum_x / count, sum_y / count);
    let (above, below) = points.fold((0.0, 0.0), |(above, below), (x, y)| {
        (above + (x - mean_x) * (y - mean_y), below + (x - mean_x) * (x - mean_x))
    });
    if below > 0.0 { above / below } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aqmlab_units::{Instant, Span};

    fn variation(delay_ms: f64, at_ms: u64) -> Variation {
        Variation { delay_ms, departures_ms: 1000.0 / 30.0, at: Instant::ZERO + Span::ms(at_ms) }
    }

    /// The first steps by hand, for 30 groups per second (alpha = 1 - chi = 0.99) and variations of 2 ms:
    /// noise = 0.99 * 1 + 0.01 * 4 = 1.03; k = 0.101 / 1.131; m = 2 k; then e = (1 - k) 0.101, and so on.
    #[test]
    fn the_filter_takes_the_steps_of_the_draft() {
        let mut filter = Kalman::default();
        let gain = 0.101 / (1.03 + 0.101);
        let first = filter.update(&variation(2.0, 0));
        assert!((first - 2.0 * gain).abs() < 1e-12);
        let innovation = 2.0 - first;
        let noise = 0.99 * 1.03 + 0.01 * innovation * innovation;
        let uncertain = (1.0 - gain) * 0.101 + 1e-3;
        let second = filter.update(&variation(2.0, 33));
        assert!((second - (first + innovation * uncertain / (noise + uncertain))).abs() < 1e-12);
    }

    /// Section 5.3: an outlier enters the noise as three standard deviations: 0.99 * 1 + 0.01 * 9.
    #[test]
    fn an_outlier_is_bounded_in_the_noise() {
        let mut filter = Kalman::default();
        filter.update(&variation(100.0, 0));
        assert!((filter.noise - 1.08).abs() < 1e-12);
    }

    /// A constant gradient is found by both.
    #[test]
    fn a_steady_gradient_is_found() {
        let mut filter = Kalman::default();
        let gradient = (0..600).fold(0.0, |_, n| filter.update(&variation(1.5, 33 * n)));
        assert!((gradient - 1.5).abs() < 0.01, "{gradient}");
        let mut line = Trendline::default();
        // 1.5 ms per 33 ms: after the smoothing has settled, the slope is 1.5 / 33.
        let gradient = (0..600).fold(0.0, |_, n| line.update(&variation(1.5, 33 * n)));
        assert!((gradient - 60.0 * 4.0 * 1.5 / 33.0).abs() < 1e-6, "{gradient}");
    }

    #[test]
    fn the_line_is_that_of_least_squares() {
        // By hand: the means are 1.5 and 2.5; (3.75 + 0.25 + 0.75 + 2.25) / 5 = 1.4.
        let points = [(0.0, 0.0), (1.0, 2.0), (2.0, 4.0), (3.0, 4.0)];
        assert!((slope(points.into_iter()) - 1.4).abs() < 1e-12);
        assert_eq!(slope([(1.0, 2.0), (1.0, 3.0)].into_iter()), 0.0);
    }
}
