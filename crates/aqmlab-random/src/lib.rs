//! Named, counter-based random streams.
//!
//! A draw is a pure function of the run's seed, the name of the component that draws ("bottleneck/red",
//! "traffic/ftp/start") and the number of the draw. No generator state is shared: an additional flow never
//! shifts the draws of a queue, skipping ahead costs nothing, and two arms of an experiment that differ only
//! in their queue see the same arrivals.
//!
//! The generator is Philox 2x64 with 10 rounds (Salmon et al., "Parallel random numbers: as easy as
//! 1, 2, 3", SC 2011), checked against the known-answer vectors published with it. The conversions
//! from bits to numbers are implemented here and pinned by tests, so that a dependency can never
//! change a result.
#![no_std]

use core::fmt::{self, Display, Write};

/// The version of the draws, incremented whenever a change makes the same seed, name and number
/// give a different draw.
pub const VERSION: u32 = 1;

mod philox;

pub use philox::philox2x64;
use philox::{RoundKeys, round_keys, with_round_keys};

/// One component's stream of draws.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stream {
    key: u64,
    next: u64,
}

impl Stream {
    /// Creates the stream that `path` names in the run with `seed`. A path of several parts is best
    /// passed as `format_args!`, which allocates nothing.
    pub fn new(seed: u64, path: impl Display) -> Self {
        let mut name = Fnv1a(FNV1A_BASIS);
        write!(name, "{path}").expect("hashing text does not fail");
        Stream { key: philox2x64([name.0, 0], seed)[0], next: 0 }
    }

    /// Creates the `index`-th stream of the family that `path` names, such as one per flow of a
    /// class.
    pub fn indexed(seed: u64, path: impl Display, index: u64) -> Self {
        // The index is a separate block counter, so two (path, index) pairs are no more likely to collide
        // than two 64-bit hashes.
        Stream::new(seed, path).member(index)
    }

    /// Returns the `index`-th stream of the family named by this stream's path, as
    /// [`Stream::indexed`] does.
    pub fn member(&self, index: u64) -> Self {
        Stream { key: philox2x64([index, 1], self.key)[0], next: 0 }
    }

    /// Returns the same stream, positioned at draw number `n`.
    pub const fn from_draw(self, n: u64) -> Self {
        Stream { key: self.key, next: n }
    }

    /// Returns draw number `n` of this stream, whatever was drawn before: 64 uniform bits.
    #[inline]
    pub fn at(&self, n: u64) -> u64 {
        philox2x64([n, 0], self.key)[0]
    }

    /// Returns a stream with the same key for a component that requests its draws by number, one per packet.
    /// Its draws differ from those of [`Stream::at`].
    pub fn numbered(&self) -> Numbered {
        Numbered { keys: round_keys(self.key), block: u64::MAX, words: [0; 2] }
    }

    /// Returns the next draw: 64 uniform bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        let draw = self.at(self.next);
        self.next += 1;
        draw
    }

    /// Draws uniformly on [0, 1), in multiples of 2^-53.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        unit_from_bits(self.bits())
    }

    /// Draws uniformly on {0, 1, ..., n - 1}; the bias is below n / 2^64.
    ///
    /// # Panics
    /// If `n` is zero.
    pub fn below(&mut self, n: u64) -> u64 {
        assert!(n > 0, "`n` must be above zero");
        ((u128::from(self.bits()) * u128::from(n)) >> 64) as u64
    }

    /// Returns true with probability `p`, decided by one integer comparison. It always takes one draw, even
    /// if `p` is 0 or 1.
    #[inline]
    pub fn hit(&mut self, p: f64) -> bool {
        self.bits() >> 11 < threshold(p)
    }

    /// Draws from the exponential distribution with mean 1, by inversion.
    pub fn exponential(&mut self) -> f64 {
        // 1 - u is in (0, 1], so the logarithm is finite.
        -libm::log(1.0 - self.unit())
    }
}

/// A stream whose draws are requested only by number, mostly consecutively. The generator yields two words at
/// a time: draws 2k and 2k + 1 come from block k, so every other draw costs next to nothing. Its round keys
/// are computed in advance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Numbered {
    keys: RoundKeys,
    /// The block of `words`.
    block: u64,
    words: [u64; 2],
}

/// The second word of a numbered stream's counter. In a plain stream this word is 0; where a key is derived
/// for an index of a family, it is 1.
const NUMBERED: u64 = 2;

impl Numbered {
    /// Returns draw number `n`, whatever was drawn before: 64 uniform bits.
    #[inline]
    pub fn at(&mut self, n: u64) -> u64 {
        let block = n / 2;
        if block != self.block {
            self.block = block;
            self.words = with_round_keys([block, NUMBERED], &self.keys);
        }
        self.words[(n % 2) as usize]
    }
}

/// Returns the number of 53-bit draws that count as a hit with probability `p`: 0 for p <= 0 or
/// NaN, all for p >= 1.
#[inline]
fn threshold(p: f64) -> u64 {
    const ALL: f64 = (1u64 << 53) as f64;
    // The cast saturates: negative and NaN give 0.
    if p >= 1.0 { 1 << 53 } else { (p * ALL) as u64 }
}

/// Returns the top 53 bits as a number in [0, 1).
#[inline]
pub fn unit_from_bits(bits: u64) -> f64 {
    (bits >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
}

/// Converts a component's path to a number by FNV-1a, 64 bits (Fowler, Noll, Vo).
pub const fn fnv1a(bytes: &[u8]) -> u64 {
    fnv1a_from(FNV1A_BASIS, bytes)
}

const FNV1A_BASIS: u64 = 0xcbf2_9ce4_8422_2325;

/// Continues the hash `hash` with further bytes.
const fn fnv1a_from(mut hash: u64, bytes: &[u8]) -> u64 {
    let mut i = 0;
    while i < bytes.len() {
        hash = (hash ^ bytes[i] as u64).wrapping_mul(0x0000_0100_0000_01b3);
        i += 1;
    }
    hash
}

/// The hash of the text written to it.
struct Fnv1a(u64);

impl Write for Fnv1a {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 = fnv1a_from(self.0, text.as_bytes());
        Ok(())
    }
}
