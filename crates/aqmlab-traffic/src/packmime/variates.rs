//! Random variables: normal, Weibull, gamma.

use aqmlab_random::Stream;

/// Returns the probability that a standard normal variable is below `z`.
pub fn cumulative(z: f64) -> f64 {
    0.5 * libm::erfc(-z * core::f64::consts::FRAC_1_SQRT_2)
}

/// Returns the probability that a standard normal variable is above `z`.
pub fn above(z: f64) -> f64 {
    0.5 * libm::erfc(z * core::f64::consts::FRAC_1_SQRT_2)
}

/// Draws a standard normal variable by inversion, using one draw from `stream`.
pub fn normal(stream: &mut Stream) -> f64 {
    // Uses the middle of the interval that the draw represents, so that neither 0 nor 1 can occur.
    const HALF_A_STEP: f64 = 1.0 / (1u64 << 54) as f64;
    quantile(stream.unit() + HALF_A_STEP)
}

/// Returns the `p` quantile of the standard normal distribution, for `0 < p < 1`, with a relative
/// error of about 1 in 10^16 (Wichura, "Algorithm AS 241: the percentage points of the normal
/// distribution", Applied Statistics 37, 1988, function PPND16).
pub fn quantile(p: f64) -> f64 {
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        let r = 0.180_625 - q * q;
        return q * ratio(r, &CENTRE_ABOVE, &CENTRE_BELOW);
    }
    let r = libm::sqrt(-libm::log(if q < 0.0 { p } else { 1.0 - p }));
    let size = if r <= 5.0 {
        ratio(r - 1.6, &SHOULDER_ABOVE, &SHOULDER_BELOW)
    } else {
        ratio(r - 5.0, &TAIL_ABOVE, &TAIL_BELOW)
    };
    if q < 0.0 { -size } else { size }
}

/// Returns the ratio of two polynomials whose coefficients are given in ascending order of powers.
fn ratio(x: f64, above: &[f64; 8], below: &[f64; 8]) -> f64 {
    let polynomial = |of: &[f64; 8]| of.iter().rev().fold(0.0, |sum, coefficient| sum * x + coefficient);
    polynomial(above) / polynomial(below)
}

const CENTRE_ABOVE: [f64; 8] = [
    3.387_132_872_796_366_5,
    133.141_667_891_784_37,
    1_971.590_950_306_551_3,
    13_731.693_765_509_46,
    45_921.953_931_549_87,
    67_265.770_927_008_7,
    33_430.575_583_588_13,
    2_509.080_928_730_122_7,
];
const CENTRE_BELOW: [f64; 8] = [
    1.0,
    42.313_330_701_600_91,
    687.187_007_492_057_9,
    5_394.196_021_424_751,
    21_213.794_301_586_597,
    39_307.895_800_092_71,
    28_729.085_735_721_943,
    5_226.495_278_852_854,
];
const SHOULDER_ABOVE: [f64; 8] = [
    1.423_437_110_749_683_5,
    4.630_337_846_156_546,
    5.769_497_221_460_691,
    3.647_848_324_763_204_5,
    1.270_458_252_452_368_4,
    0.241_780_725_177_450_6,
    0.022_723_844_989_269_184,
    7.745_450_142_783_414e-4,
];
const SHOULDER_BELOW: [f64; 8] = [
    1.0,
    2.053_191_626_637_759,
    1.676_384_830_183_803_8,
    0.689_767_334_985_1,
    0.148_103_976_427_480_08,
    0.015_198_666_563_616_457,
    5.475_938_084_995_345e-4,
    1.050_750_071_644_416_9e-9,
];
const TAIL_ABOVE: [f64; 8] = [
    6.657_904_643_501_103,
    5.463_784_911_164_114,
    1.784_826_539_917_291_3,
    0.296_560_571_828_504_87,
    0.026_532_189_526_576_124,
    1.242_660_947_388_078_4e-3,
    2.711_555_568_743_487_6e-5,
    2.010_334_399_292_288_1e-7,
];
const TAIL_BELOW: [f64; 8] = [
    1.0,
    0.599_832_206_555_888,
    0.136_929_880_922_735_8,
    0.014_875_361_290_850_615,
    7.868_691_311_456_133e-4,
    1.846_318_317_510_054_8e-5,
    1.421_511_758_316_446e-7,
    2.044_263_103_389_939_8e-15,
];

/// Draws a Weibull variable, using one draw.
pub fn weibull(shape: f64, scale: f64, draws: &mut Stream) -> f64 {
    scale * libm::pow(draws.exponential(), 1.0 / shape)
}

/// Draws a gamma variable with scale 1 and `shape >= 1` (G. Marsaglia and W. W. Tsang, "A simple
/// method for generating gamma variables", ACM TOMS 26, 2000), usually using three draws.
pub fn gamma(shape: f64, draws: &mut Stream) -> f64 {
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / libm::sqrt(9.0 * d);
    loop {
        let x = normal(draws);
        let root = 1.0 + c * x;
        if root <= 0.0 {
            continue;
        }
        let v = root * root * root;
        if -draws.exponential() < 0.5 * x * x + d * (1.0 - v + libm::log(v)) {
            return d * v;
        }
    }
}

/// Returns `size` if it is at most `most`, and otherwise the first draw that is. After a hundred
/// draws it returns `most`: persistent connections have distributions of their own, and some lie
/// above any bound.
pub fn at_most(most: u64, size: u64, mut again: impl FnMut() -> u64) -> u64 {
    if size <= most {
        return size;
    }
    (0..100).map(|_| again()).find(|&size| size <= most).unwrap_or(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The known values come from tables of the normal distribution and from `NormalDist` in
    /// Python's `statistics` module.
    #[test]
    fn quantiles_are_those_of_tables() {
        for (p, z) in [
            (0.5, 0.0),
            (0.975, 1.959_963_984_540_053_6),
            (0.999, 3.090_232_306_167_813),
            (1e-10, -6.361_340_902_404_056),
            (1e-13, -7.348_796_102_800_676_5),
            (0.2, -0.841_621_233_572_914_3),
            (0.93, 1.475_791_028_179_170_8),
        ] {
            assert!((quantile(p) - z).abs() <= 4e-15 * z.abs().max(1.0), "{p}: {} against {z}", quantile(p));
            assert!((cumulative(z) / p - 1.0).abs() < 1e-12, "{p}");
        }
        assert!((above(3.090_232_306_167_813) / 0.001 - 1.0).abs() < 1e-12);
    }
}
