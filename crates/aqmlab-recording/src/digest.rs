//! Digests: two runs count as equal if their digests are equal.

use std::fmt;

use serde::Serialize;
use sha2::{Digest as _, Sha256};

/// A SHA-256 digest, displayed as 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Digest([u8; 32]);

impl Digest {
    /// Returns the digest of bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Digest(Sha256::digest(bytes).into())
    }
}

impl From<[u8; 32]> for Digest {
    fn from(bytes: [u8; 32]) -> Self {
        Digest(bytes)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Returns the text of a JSON object with `file_digest`, the digest of all bytes before it, added as the last
/// member.
///
/// # Panics
/// If the object has no other member.
pub(crate) fn sealed(object: &impl Serialize) -> String {
    let text = serde_json::to_string_pretty(object).expect("JSON can represent all its keys and values");
    let members = text.strip_suffix("\n}").expect("an object has members, one per line");
    let head = format!("{members},\n  ");
    let digest = Digest::of(head.as_bytes());
    format!("{head}\"file_digest\": \"{digest}\"\n}}\n")
}

/// Passes typed values to SHA-256 through a buffer: one call per value would cost more than the
/// hashing.
pub(crate) struct Hasher {
    sha: Sha256,
    buffer: Vec<u8>,
}

const BUFFER_BYTES: usize = 1 << 14;

impl Hasher {
    pub(crate) fn new() -> Self {
        Hasher { sha: Sha256::new(), buffer: Vec::with_capacity(BUFFER_BYTES) }
    }

    pub(crate) fn u8(&mut self, value: u8) {
        self.bytes(&[value]);
    }

    pub(crate) fn u64(&mut self, value: u64) {
        self.bytes(&value.to_le_bytes());
    }

    pub(crate) fn i64(&mut self, value: i64) {
        self.bytes(&value.to_le_bytes());
    }

    pub(crate) fn u128(&mut self, value: u128) {
        self.bytes(&value.to_le_bytes());
    }

    pub(crate) fn f64(&mut self, value: f64) {
        let canonical = if value.is_nan() { 0x7ff8_0000_0000_0000 } else { value.to_bits() };
        self.u64(canonical);
    }

    pub(crate) fn text(&mut self, value: &str) {
        self.u64(value.len() as u64);
        self.bytes(value.as_bytes());
    }

    pub(crate) fn optional<T>(&mut self, value: Option<T>, hash: impl FnOnce(&mut Self, T)) {
        match value {
            Some(value) => {
                self.u8(1);
                hash(self, value);
            }
            None => self.u8(0),
        }
    }

    pub(crate) fn finish(mut self) -> Digest {
        self.sha.update(&self.buffer);
        Digest(self.sha.finalize().into())
    }

    fn bytes(&mut self, bytes: &[u8]) {
        if self.buffer.len() + bytes.len() > BUFFER_BYTES {
            self.sha.update(&self.buffer);
            self.buffer.clear();
        }
        self.buffer.extend_from_slice(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_digest_is_sha_256() {
        // FIPS 180-4 example: SHA-256("abc")
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(Digest::of(b"abc").to_string(), expected);
    }

    #[test]
    fn a_sealed_object_ends_with_the_digest_of_what_stands_before() {
        // printf '{\n  "a": 1,\n  ' | sha256sum
        let digest = "6307439874e33cd516dd610d809eab1e3e429e27350db63ef7f2f8cd79888620";
        let text = sealed(&json!({"a": 1}));
        assert_eq!(text, format!("{{\n  \"a\": 1,\n  \"file_digest\": \"{digest}\"\n}}\n"));
    }
}
