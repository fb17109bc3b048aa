//! The counter-based generator Philox 2x64-10.

const MULTIPLIER: u64 = 0xD2B7_4407_B1CE_6E93;
const WEYL: u64 = 0x9E37_79B9_7F4A_7C15;
const ROUNDS: usize = 10;

/// The key of each round.
pub type RoundKeys = [u64; ROUNDS];

/// Returns two 64-bit words for a 128-bit counter and a 64-bit key (Salmon et al. 2011, section 3).
#[inline]
pub const fn philox2x64(counter: [u64; 2], key: u64) -> [u64; 2] {
    with_round_keys(counter, &round_keys(key))
}

/// Returns the round keys of `key`: each is the previous one plus a constant.
#[inline]
pub const fn round_keys(mut key: u64) -> RoundKeys {
    let mut keys = [0; ROUNDS];
    let mut round = 0;
    while round < ROUNDS {
        keys[round] = key;
        key = key.wrapping_add(WEYL);
        round += 1;
    }
    keys
}

/// Like [`philox2x64`], but with given round keys.
#[inline]
pub const fn with_round_keys([mut x0, mut x1]: [u64; 2], keys: &RoundKeys) -> [u64; 2] {
    let mut round = 0;
    while round < ROUNDS {
        let product = x0 as u128 * MULTIPLIER as u128;
        x0 = (product >> 64) as u64 ^ keys[round] ^ x1;
        x1 = product as u64;
        round += 1;
    }
    [x0, x1]
}

#[cfg(test)]
mod tests {
    use super::philox2x64;

    /// Known answers published with the Random123 library for philox2x64-10.
    #[test]
    fn known_answers() {
        assert_eq!(philox2x64([0, 0], 0), [0xca00_a045_9843_d731, 0x66c2_4222_c9a8_45b5]);
        assert_eq!(philox2x64([u64::MAX; 2], u64::MAX), [0x65b0_21d6_0cd8_310f, 0x4d02_f322_2f86_df20]);
        assert_eq!(
            philox2x64([0x243f_6a88_85a3_08d3, 0x1319_8a2e_0370_7344], 0xa409_3822_299f_31d0),
            [0x0a5e_742c_2997_341c, 0xb0f8_83d3_8000_de5d]
        );
    }
}
