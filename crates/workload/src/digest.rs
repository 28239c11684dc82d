//! A fast hash of a request that never changes with the version of a library. Not for secrets, and
//! not against somebody who looks for collisions.

use std::hash::{Hash, Hasher};

/// The hash of a request.
#[must_use]
pub fn of(request: &impl Hash) -> u64 {
    let mut mixer = Mixer(START);
    request.hash(&mut mixer);
    mixer.finish()
}

/// The hash of some numbers.
#[must_use]
pub fn mix(numbers: &[u64]) -> u64 {
    let mut mixer = Mixer(START);
    for number in numbers {
        mixer.write_u64(*number);
    }
    mixer.finish()
}

/// One multiplication a word, as in `FxHash`, and the finaliser of `SplitMix64` at the end.
struct Mixer(u64);

const FACTOR: u64 = 0x9E37_79B9_7F4A_7C15;
/// Not 0, so that leading zeros count.
const START: u64 = 0x243F_6A88_85A3_08D3;

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
        self.write_usize(bytes.len());
    }

    fn write_u8(&mut self, value: u8) {
        self.write_u64(value.into());
    }

    fn write_u32(&mut self, value: u32) {
        self.write_u64(value.into());
    }

    fn write_i32(&mut self, value: i32) {
        self.write_u32(value.cast_unsigned());
    }

    fn write_i64(&mut self, value: i64) {
        self.write_u64(value.cast_unsigned());
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(5) ^ value).wrapping_mul(FACTOR);
    }

    fn write_usize(&mut self, value: usize) {
        self.write_u64(value as u64);
    }

    fn write_isize(&mut self, value: isize) {
        self.write_usize(value.cast_unsigned());
    }

    fn finish(&self) -> u64 {
        let z = self.0.wrapping_add(FACTOR);
        let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A changed value here means that digests of stored runs can no longer be compared.
    #[test]
    fn values_never_change() {
        assert_eq!(mix(&[1, 2, 3]), 14_270_844_225_137_121_236);
        assert_eq!(of(&("text", 7_i32, -1_i64, true)), 11_988_601_994_205_953_487);
    }

    #[test]
    fn order_sign_and_length_matter() {
        let mut seen: Vec<u64> = [&[1, 2][..], &[2, 1], &[1], &[], &[0], &[0, 0], &[1, 2, 0]]
            .iter()
            .map(|numbers| mix(numbers))
            .collect();
        seen.extend([of(&-1_i32), of(&1_i32), of(&"a"), of(&"a\0"), of(&(1_u8, 2_u32))]);
        let all = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), all - 2, "only 1 and (1, 2) of either width are the same");
    }
}
