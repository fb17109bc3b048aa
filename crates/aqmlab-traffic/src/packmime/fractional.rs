//! Fractional noise: a Gaussian process with long-range dependence.

use alloc::vec::Vec;

use aqmlab_random::Stream;

use super::convolution::{BLOCK, Convolution};
use super::variates::normal;

/// A fractional ARIMA(0, d, 0) process with innovations of variance 1, computed as an
/// autoregression.
///
/// Value `t` is its best linear prediction from the `order` values before it, plus an innovation.
/// The Levinson-Durbin recursion computes the coefficients from the partial autocorrelations
/// `d / (t - d)`. From value `order` on, the coefficients are constant (Hosking, "Fractional
/// differencing", Biometrika 68, 1981).
#[derive(Clone, Debug)]
pub struct Fractional {
    d: f64,
    order: usize,
    innovations: Stream,
    /// Coefficients of the prediction, starting with that of the latest value. Once there are `order` of
    /// them, only the first `BLOCK - 1` remain here, those of the most recent values; they are then in
    /// reverse order, so that the coefficient of the latest value is the last.
    coefficients: Vec<f64>,
    /// Standard deviation of the next innovation.
    deviation: f64,
    /// All values. Once there are `order` coefficients, only the last two whole blocks and the
    /// values since then remain.
    values: Vec<f64>,
    /// Number of values at the end of the list that have been drawn in advance and not yet
    /// returned.
    ahead: usize,
    /// The contribution of older values to the predictions, present once there are `order`
    /// coefficients.
    old: Option<Old>,
}

/// The contribution of older values to the predictions in the current block; the filter covers all
/// values that are at least one block old.
#[derive(Clone, Debug)]
struct Old {
    filter: Convolution,
    predicted: [f64; BLOCK],
}

impl Fractional {
    /// Creates the process with `0 < d < 1/2`. Each value is predicted from the last `order` values; `order`
    /// must exceed two blocks.
    ///
    /// # Panics
    /// If `d` or `order` is out of range.
    pub fn new(d: f64, order: usize, innovations: Stream) -> Self {
        assert!(d > 0.0 && d < 0.5 && order > 2 * BLOCK);
        Fractional {
            d,
            order,
            innovations,
            coefficients: Vec::new(),
            deviation: libm::sqrt(variance(d)),
            values: Vec::new(),
            ahead: 0,
            old: None,
        }
    }

    /// Draws values of several processes in advance and in parallel, until each has drawn `count` values
    /// (fewer than its order). Only processes with the same parameters and the same number of values so far
    /// are drawn together, because they share the work on their coefficients; others are left unchanged. The
    /// values are the same as without drawing in advance.
    pub fn draw_ahead(processes: &mut [&mut Fractional], count: usize) {
        for some in processes.chunks_mut(LANES) {
            let (d, order, drawn) = (some[0].d, some[0].order, some[0].values.len());
            let alike = |of: &Fractional| of.d == d && of.order == order && of.values.len() == drawn;
            if some[0].old.is_none() && drawn < count && some.iter().all(|process| alike(process)) {
                draw_side_by_side(some, count.min(order - 1));
            }
        }
    }

    /// Returns the next value.
    pub fn next(&mut self) -> f64 {
        if self.ahead > 0 {
            let place = self.values.len() - self.ahead;
            self.ahead -= 1;
            return self.values[place];
        }
        if self.old.is_some() && self.values.len() == 3 * BLOCK {
            self.begin_block();
        }
        let value = self.prediction() + self.deviation * normal(&mut self.innovations);
        self.values.push(value);
        if self.old.is_none() {
            self.deviation *= extend(&mut self.coefficients, self.d, self.values.len());
            if self.values.len() == self.order {
                self.settle();
            }
        }
        value
    }

    fn prediction(&self) -> f64 {
        match &self.old {
            Some(old) => {
                let recent = &self.values[self.values.len() - self.coefficients.len()..];
                old.predicted[self.values.len() - 2 * BLOCK] + product(&self.coefficients, recent)
            }
            None => self.coefficients.iter().zip(self.values.iter().rev()).map(|(c, x)| c * x).sum(),
        }
    }

    /// Keeps the coefficients constant from now on.
    fn settle(&mut self) {
        let mut filter = Convolution::new(&self.coefficients[BLOCK - 1..]);
        let windows = (self.order + 1 - BLOCK).div_ceil(BLOCK);
        // Zeros take the place of values before the first one; no coefficient applies to them.
        let mut values = alloc::vec![0.0; ((windows + 1) * BLOCK).saturating_sub(self.order)];
        values.extend_from_slice(&self.values);
        let mut predicted = [0.0; BLOCK];
        for end in (0..windows).rev().map(|later| values.len() - later * BLOCK) {
            predicted = filter.next_block(&values[end - 2 * BLOCK..end]);
        }
        self.old = Some(Old { filter, predicted });
        self.coefficients = self.coefficients[..BLOCK - 1].iter().rev().copied().collect();
        self.values = self.values[self.order - 2 * BLOCK..].to_vec();
    }

    /// Begins a new block after the previous one is complete.
    fn begin_block(&mut self) {
        self.values.drain(..BLOCK);
        if let Some(old) = &mut self.old {
            old.predicted = old.filter.next_block(&self.values);
        }
    }
}

/// Number of processes that are drawn in parallel.
const LANES: usize = 8;

/// Draws values in advance, for processes with the same parameters and the same number of values so
/// far, until each has `count` values. Each sum is computed in the same order as in
/// [`Fractional::prediction`], so each value is the same to the last bit.
fn draw_side_by_side(processes: &mut [&mut Fractional], count: usize) {
    let Fractional { d, mut deviation, ref values, .. } = *processes[0];
    let drawn = values.len();
    let row = |processes: &[&mut Fractional], t: usize| {
        core::array::from_fn(|lane| processes.get(lane).map_or(0.0, |process| process.values[t]))
    };
    let mut rows: Vec<[f64; LANES]> = (0..drawn).map(|t| row(processes, t)).collect();
    let mut coefficients = core::mem::take(&mut processes[0].coefficients);
    while rows.len() < count {
        let predicted = predictions(&coefficients, &rows);
        rows.push(core::array::from_fn(|lane| {
            let draw = |process: &mut &mut Fractional| deviation * normal(&mut process.innovations);
            predicted[lane] + processes.get_mut(lane).map_or(0.0, draw)
        }));
        deviation *= extend(&mut coefficients, d, rows.len());
    }
    for (lane, process) in processes.iter_mut().enumerate() {
        process.values.extend(rows[drawn..].iter().map(|row| row[lane]));
        process.ahead += count - drawn;
        process.coefficients.clone_from(&coefficients);
        process.deviation = deviation;
    }
}

/// Returns each process's prediction of its next value, from the values in `rows`.
fn predictions(coefficients: &[f64], rows: &[[f64; LANES]]) -> [f64; LANES] {
    let mut sums = [-0.0; LANES];
    for (c, row) in coefficients.iter().zip(rows.iter().rev()) {
        for lane in 0..LANES {
            sums[lane] += c * row[lane];
        }
    }
    sums
}

/// Computes the coefficients of the prediction from `t` values, given the coefficients of the prediction from
/// one value fewer. Returns the factor by which the additional value reduces the standard deviation of the
/// innovation.
fn extend(coefficients: &mut Vec<f64>, d: f64, t: usize) -> f64 {
    let partial = d / (t as f64 - d);
    let (near, rest) = coefficients.split_at_mut((t - 1) / 2);
    let (middle, far) = rest.split_at_mut((t - 1) % 2);
    for (near, far) in near.iter_mut().zip(far.iter_mut().rev()) {
        (*near, *far) = (*near - partial * *far, *far - partial * *near);
    }
    for both in middle {
        *both -= partial * *both;
    }
    coefficients.push(partial);
    libm::sqrt(1.0 - partial * partial)
}

/// Returns the sum of products, computed as several parallel sums so that an addition need not wait
/// for the previous one.
fn product(a: &[f64], b: &[f64]) -> f64 {
    const LANES: usize = 8;
    let mut sums = [0.0; LANES];
    let (a, b) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest: f64 = a.remainder().iter().zip(b.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in a.zip(b) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    sums.iter().sum::<f64>() + rest
}

/// Returns the variance of the process.
pub fn variance(d: f64) -> f64 {
    libm::exp(libm::lgamma(1.0 - 2.0 * d) - 2.0 * libm::lgamma(1.0 - d))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(d: f64, order: usize) -> Fractional {
        Fractional::new(d, order, Stream::new(5, "test"))
    }

    /// The coefficients of the prediction have a closed form (Hosking 1981, theorem 1):
    /// `-binomial(t, j) G(j - d) G(t - d - j + 1) / (G(-d) G(t - d + 1))`.
    #[test]
    fn coefficients_are_those_of_the_closed_form() {
        let (d, t) = (0.31f64, 40usize);
        let mut process = process(d, 400);
        (0..t).for_each(|_| _ = process.next());
        for j in 1..=t {
            let (n, k) = (t as f64, j as f64);
            let binomial = libm::lgamma(n + 1.0) - libm::lgamma(k + 1.0) - libm::lgamma(n - k + 1.0);
            let gammas = libm::lgamma(k - d) + libm::lgamma(n - d - k + 1.0) - libm::lgamma(n - d + 1.0);
            // Gamma(-d) is negative for d between 0 and 1, so the two signs cancel.
            let expected = libm::exp(binomial + gammas - libm::lgamma(-d));
            let found = process.coefficients[j - 1];
            assert!((found / expected - 1.0).abs() < 1e-11, "{j}: {found} against {expected}");
        }
        // The variance that remains after prediction is that of the innovation; as the number of values
        // grows, it tends to 1 from above.
        let expected = libm::exp(
            libm::lgamma(t as f64 + 1.0) + libm::lgamma(t as f64 + 1.0 - 2.0 * d)
                - 2.0 * libm::lgamma(t as f64 + 1.0 - d),
        );
        assert!((process.deviation * process.deviation / expected - 1.0).abs() < 1e-11);
    }

    /// Values drawn in advance and in parallel equal, to the last bit, those that each process
    /// draws on its own. This holds before, at and after the end of the values drawn in advance,
    /// and where the coefficients become constant.
    #[test]
    fn values_drawn_ahead_are_those_drawn_alone() {
        let (d, order) = (0.31, 400);
        for (processes, drawn, count) in [(1, 0, 3), (3, 1, 250), (8, 1, 1000), (11, 7, 399)] {
            let alone: Vec<Fractional> =
                (0..processes).map(|n| Fractional::new(d, order, Stream::new(n, "test"))).collect();
            let mut ahead = alone.clone();
            let next = |some: &mut [Fractional]| -> Vec<u64> {
                some.iter_mut().map(|process| process.next().to_bits()).collect()
            };
            let mut alone = alone;
            for _ in 0..drawn {
                assert_eq!(next(&mut ahead), next(&mut alone));
            }
            Fractional::draw_ahead(&mut ahead.iter_mut().collect::<Vec<_>>(), count);
            assert_eq!(ahead[0].values.len(), count.min(order - 1));
            for t in drawn..2 * order {
                assert_eq!(next(&mut ahead), next(&mut alone), "{processes} processes, value {t}");
            }
        }
    }

    /// Processes with different parameters or numbers of values are not drawn in parallel.
    #[test]
    fn processes_that_differ_are_left_alone() {
        let mut first = process(0.31, 400);
        for mut other in [process(0.32, 400), process(0.31, 500)] {
            Fractional::draw_ahead(&mut [&mut first, &mut other], 50);
            assert!(first.values.is_empty() && other.values.is_empty());
        }
        let mut begun = first.clone();
        begun.next();
        Fractional::draw_ahead(&mut [&mut first, &mut begun], 50);
        assert!(first.values.is_empty() && begun.values.len() == 1);
    }

    /// Values computed block by block equal values computed one at a time.
    #[test]
    fn a_block_is_a_value_at_a_time() {
        let (d, order) = (0.33, 1000);
        let mut process = process(d, order);
        // A process whose order is higher by one keeps all its coefficients up to this point.
        let mut longer = Fractional { order: order + 1, ..process.clone() };
        let mut values: Vec<f64> = (0..order).map(|_| longer.next()).collect();
        (0..order).for_each(|_| _ = process.next());
        let mut innovations = Stream::new(5, "test").from_draw(order as u64);
        for t in order..2 * order {
            let predicted: f64 =
                longer.coefficients.iter().zip(values.iter().rev()).map(|(c, x)| c * x).sum();
            values.push(predicted + longer.deviation * normal(&mut innovations));
            let found = process.next();
            assert!((values[t] - found).abs() < 1e-11, "{t}: {found} against {}", values[t]);
        }
    }
}
