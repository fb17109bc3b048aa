//! How the size of a packet scales the probability that it is chosen.

use aqmlab_units::Bytes;

/// How the size of a packet scales its probability.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ByteMode {
    /// Not at all (RFC 7141's advice).
    Off,
    /// Times size over the largest packet size, before spacing if there is any (RED's paper).
    Paper {
        /// the largest packet
        largest: Bytes,
    },
    /// Times size over mean size, after spacing if there is any (ns-2). RED's count is in bytes over mean size
    /// then, rounded down.
    Ns2 {
        /// the mean packet
        mean: Bytes,
    },
}

impl ByteMode {
    /// `pb` for a packet of `size`, in the mode that scales before spacing.
    #[inline]
    pub(super) fn before_spacing(self, pb: f64, size: Bytes) -> f64 {
        match self {
            ByteMode::Paper { largest } => (pb * size.as_f64() / largest.as_f64()).min(1.0),
            ByteMode::Off | ByteMode::Ns2 { .. } => pb,
        }
    }

    /// `pa` for a packet of `size`, in the mode that scales after spacing; certainty stays.
    #[inline]
    pub(super) fn after_spacing(self, pa: f64, size: Bytes) -> f64 {
        match self {
            ByteMode::Ns2 { mean } if pa < 1.0 => pa * size.as_f64() / mean.as_f64(),
            ByteMode::Off | ByteMode::Paper { .. } | ByteMode::Ns2 { .. } => pa,
        }
    }

    /// The probability `p` of a law without spacing for a packet of `size`.
    #[inline]
    pub fn scaled(self, p: f64, size: Bytes) -> f64 {
        match self {
            ByteMode::Off => p,
            ByteMode::Paper { largest: reference } | ByteMode::Ns2 { mean: reference } => {
                (p * size.as_f64() / reference.as_f64()).min(1.0)
            }
        }
    }
}
