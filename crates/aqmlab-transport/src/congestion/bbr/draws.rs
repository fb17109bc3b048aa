//! The draws of a flow: with which phase a cycle begins, and how long it waits.

/// Draws that do not depend on anything else: a function of a seed and their number.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Draws {
    pub seed: u64,
    number: u64,
}

impl Draws {
    /// Returns a number below `bound` (the finaliser of SplitMix64: Steele, Lea, Flood 2014).
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.number += 1;
        let mut bits = self.seed.wrapping_add(self.number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        ((u128::from(bits) * u128::from(bound)) >> 64) as u64
    }
}
