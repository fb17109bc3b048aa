//! Limits of a target rate.

/// The rates between which a controller moves, in bit/s at the network layer.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Limits {
    /// The first rate.
    pub start: f64,
    /// The lowest rate.
    pub least: f64,
    /// The highest rate.
    pub most: f64,
}
