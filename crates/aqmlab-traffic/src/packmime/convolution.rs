//! A long filter applied to a process block by block, in the frequency domain.
//!
//! The filter is divided into pieces of one block each, and the spectra of past input are kept. A
//! block therefore costs only two short transforms and one product per piece (uniformly partitioned
//! overlap-save: Wefers, "Partitioned convolution algorithms for real-time auralization", 2015,
//! chapter 5).

use alloc::vec::Vec;

/// Number of values in a block.
pub const BLOCK: usize = 128;
/// Size of a transform: two blocks.
const SIZE: usize = 2 * BLOCK;
/// Number of frequency bins stored; the others follow by symmetry because all values are real.
const BINS: usize = BLOCK + 1;

#[derive(Clone, Copy, Default, Debug)]
struct Complex {
    re: f64,
    im: f64,
}

impl Complex {
    fn times(self, other: Complex) -> Complex {
        Complex { re: self.re * other.re - self.im * other.im, im: self.re * other.im + self.im * other.re }
    }
}

/// The filter, and the part of the past input on which the output still depends.
#[derive(Clone, Debug)]
pub struct Convolution {
    /// Spectra of the filter's pieces, the one for the latest input first.
    pieces: Vec<[Complex; BINS]>,
    /// Spectra of the input, as many as there are pieces; each covers two blocks.
    inputs: Vec<[Complex; BINS]>,
    /// Index of the latest spectrum in `inputs`; older ones follow cyclically.
    latest: usize,
    twiddles: Vec<Complex>,
}

impl Convolution {
    /// Creates the filter with these coefficients, the one for the latest input first; it has received no
    /// input yet.
    pub fn new(filter: &[f64]) -> Self {
        let twiddles = (0..BLOCK)
            .map(|i| {
                let angle = -core::f64::consts::PI * i as f64 / BLOCK as f64;
                Complex { re: libm::cos(angle), im: libm::sin(angle) }
            })
            .collect();
        let mut made = Convolution { pieces: Vec::new(), inputs: Vec::new(), latest: 0, twiddles };
        made.pieces = filter.chunks(BLOCK).map(|piece| made.spectrum(piece.iter().copied())).collect();
        made.inputs = alloc::vec![[Complex::default(); BINS]; made.pieces.len()];
        made
    }

    /// Takes the last two blocks of input, with the latest value last. Returns the part of the filter's
    /// output in the following block that depends on the input so far.
    pub fn next_block(&mut self, input: &[f64]) -> [f64; BLOCK] {
        debug_assert_eq!(input.len(), SIZE);
        let count = self.pieces.len();
        self.latest = (self.latest + count - 1) % count;
        self.inputs[self.latest] = self.spectrum(input.iter().copied());
        let mut sum = [Complex::default(); BINS];
        let (newer, older) = (&self.inputs[self.latest..], &self.inputs[..self.latest]);
        for (piece, input) in self.pieces.iter().zip(newer.iter().chain(older)) {
            for ((sum, &a), &b) in sum.iter_mut().zip(piece).zip(input) {
                let product = a.times(b);
                sum.re += product.re;
                sum.im += product.im;
            }
        }
        self.values(&sum)
    }

    fn spectrum(&self, values: impl Iterator<Item = f64>) -> [Complex; BINS] {
        let mut all = [Complex::default(); SIZE];
        all.iter_mut().zip(values).for_each(|(place, re)| *place = Complex { re, im: 0.0 });
        self.transform(&mut all);
        core::array::from_fn(|i| all[i])
    }

    /// Returns the second of the two blocks of values that have this spectrum.
    fn values(&self, spectrum: &[Complex; BINS]) -> [f64; BLOCK] {
        // The inverse transform is the transform of the conjugate. As the values are real, the conjugate of
        // bin `i` is bin `SIZE - i`.
        let mut all = core::array::from_fn(|i| match i {
            0..BINS => Complex { im: -spectrum[i].im, ..spectrum[i] },
            _ => spectrum[SIZE - i],
        });
        self.transform(&mut all);
        core::array::from_fn(|i| all[BLOCK + i].re / SIZE as f64)
    }

    /// Computes the discrete Fourier transform in place (Cooley and Tukey, radix 2).
    fn transform(&self, values: &mut [Complex; SIZE]) {
        for i in 0..SIZE {
            let reversed = i.reverse_bits() >> (usize::BITS - SIZE.trailing_zeros());
            if i < reversed {
                values.swap(i, reversed);
            }
        }
        let mut half = 1;
        while half < SIZE {
            let step = BLOCK / half;
            for pair in values.chunks_exact_mut(2 * half) {
                let (low, high) = pair.split_at_mut(half);
                for ((a, b), &twiddle) in low.iter_mut().zip(high).zip(self.twiddles.iter().step_by(step)) {
                    let turned = twiddle.times(*b);
                    (*b, *a) = (
                        Complex { re: a.re - turned.re, im: a.im - turned.im },
                        Complex { re: a.re + turned.re, im: a.im + turned.im },
                    );
                }
            }
            half *= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_sum_that_defines_it() {
        let value = |i: usize| libm::sin(i as f64 * 0.7) + 0.01 * (i % 17) as f64;
        let filter: Vec<f64> = (0..3 * BLOCK + 40).map(|m| 1.0 / (1.0 + m as f64)).collect();
        let input: Vec<f64> = (0..8 * BLOCK).map(value).collect();
        let mut convolution = Convolution::new(&filter);
        for block in 1..8 {
            let from = if block == 1 { 0 } else { (block - 2) * BLOCK };
            let mut given = alloc::vec![0.0; SIZE - (block * BLOCK - from).min(SIZE)];
            given.extend(&input[from..block * BLOCK]);
            let found = convolution.next_block(&given);
            for (i, found) in found.into_iter().enumerate() {
                // The latest input that the filter uses in this block is one block old.
                let at = block * BLOCK + i - BLOCK;
                let expected: f64 =
                    filter.iter().enumerate().filter(|&(m, _)| m <= at).map(|(m, h)| h * input[at - m]).sum();
                assert!((found - expected).abs() < 1e-12, "block {block}, {i}: {found} against {expected}");
            }
        }
    }
}
