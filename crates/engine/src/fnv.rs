//! FNV-1a, a hash that is stable across processes, platforms and versions: [`Fnv1a`].

use std::hash::Hasher;

/// 64-bit FNV-1a hasher. Numbers are hashed as little-endian bytes, `usize` as `u64`.
///
/// Source: <http://www.isthe.com/chongo/tech/comp/fnv/>.
pub(crate) struct Fnv1a(u64);

impl Default for Fnv1a {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv1a {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    fn write_u16(&mut self, number: u16) {
        self.write(&number.to_le_bytes());
    }

    fn write_u32(&mut self, number: u32) {
        self.write(&number.to_le_bytes());
    }

    fn write_u64(&mut self, number: u64) {
        self.write(&number.to_le_bytes());
    }

    fn write_u128(&mut self, number: u128) {
        self.write(&number.to_le_bytes());
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_match_reference_values() {
        let check = |bytes: &[u8], expected: u64| {
            let mut hasher = Fnv1a::default();
            hasher.write(bytes);
            assert_eq!(hasher.finish(), expected, "{bytes:?}");
        };
        check(b"", 0xcbf2_9ce4_8422_2325);
        check(b"a", 0xaf63_dc4c_8601_ec8c);
        check(b"foobar", 0x8594_4171_f739_67e8);
    }
}
