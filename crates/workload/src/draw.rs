//! Random numbers and strings from a fixed algorithm: xoshiro256++ (Blackman and Vigna, 2019)
//! seeded by `SplitMix64`. Written out here because stored results name a seed: what it yields must
//! never change with the version of a library. Not for secrets.

/// Characters of an a-string, in the order of the draw.
const ALPHANUMERIC: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const DIGITS: &[u8; 10] = b"0123456789";
/// Characters made of one draw of 64 bits. 62^8 is 2^47.6, so a string's probability is within
/// 1.2e-5 (relative) of uniform.
const WORD_CHARS: usize = 8;

/// All pairs of characters of an alphabet, so that one multiplication yields two of them.
const fn pairs<const N: usize, const PAIRS: usize>(alphabet: &[u8; N]) -> [[u8; 2]; PAIRS] {
    let mut table = [[0; 2]; PAIRS];
    let mut at = 0;
    while at < PAIRS {
        table[at] = [alphabet[at / N], alphabet[at % N]];
        at += 1;
    }
    table
}

static ALPHANUMERIC_PAIRS: [[u8; 2]; 62 * 62] = pairs(ALPHANUMERIC);
static DIGIT_PAIRS: [[u8; 2]; 100] = pairs(DIGITS);

/// A source of random values, wholly determined by what it was made from.
#[derive(Clone, Debug)]
pub struct Draw {
    state: [u64; 4],
}

impl Draw {
    /// A source for one purpose: `stream` says which (a table, the requests), `a` and `b` which
    /// one of them (batch, terminal, number). Different arguments give unrelated values.
    #[must_use]
    pub fn new(seed: u64, stream: u64, a: u64, b: u64) -> Self {
        let mut mixed = split_mix(seed);
        for part in [stream, a, b] {
            mixed = split_mix(mixed ^ part);
        }
        let mut state = [0; 4];
        for word in &mut state {
            *word = finish(mixed);
            mixed = mixed.wrapping_add(GOLDEN_GAMMA);
        }
        Self { state }
    }

    /// 64 random bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        let [s0, s1, s2, s3] = self.state;
        let result = s0.wrapping_add(s3).rotate_left(23).wrapping_add(s0);
        let (s2, s3) = (s2 ^ s0, s3 ^ s1);
        self.state = [s0 ^ s3, s1 ^ s2, s2 ^ (s1 << 17), s3.rotate_left(45)];
        result
    }

    /// Uniform in `0..n`, without bias (Lemire, 2019: the draws that would favour some values are
    /// thrown away).
    ///
    /// # Panics
    ///
    /// If `n` is 0.
    #[inline]
    pub fn below(&mut self, n: u64) -> u64 {
        assert!(n > 0, "a range has at least one value");
        let (mut high, mut low) = multiply(self.bits(), n);
        if low < n {
            let threshold = n.wrapping_neg() % n;
            while low < threshold {
                (high, low) = multiply(self.bits(), n);
            }
        }
        high
    }

    /// Uniform in `low..=high`.
    ///
    /// # Panics
    ///
    /// If `high` is less than `low`.
    #[inline]
    pub fn int(&mut self, low: i32, high: i32) -> i32 {
        assert!(low <= high, "no number from {low} to {high}");
        let span = u64::from(high.abs_diff(low)) + 1;
        // Fits: the sum lies between `low` and `high`.
        i32::try_from(i64::from(low) + self.below(span).cast_signed()).unwrap_or(high)
    }

    /// True once in `n` times on average.
    #[inline]
    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// Uniform in `(0, 1]`, of 53 bits.
    #[inline]
    pub fn share(&mut self) -> f64 {
        // Exact: an integer up to 2^53.
        #[expect(clippy::cast_precision_loss, reason = "at most 2^53, which an f64 holds exactly")]
        let numerator = ((self.bits() >> 11) + 1) as f64;
        numerator / 9_007_199_254_740_992.0
    }

    /// Appends an a-string of exactly `length` characters `[A-Za-z0-9]`.
    #[inline]
    pub fn alphanumeric(&mut self, out: &mut Vec<u8>, length: usize) {
        self.characters(out, length, &ALPHANUMERIC_PAIRS);
    }

    /// Appends an n-string of exactly `length` digits.
    #[inline]
    pub fn digits(&mut self, out: &mut Vec<u8>, length: usize) {
        self.characters(out, length, &DIGIT_PAIRS);
    }

    #[inline]
    fn characters<const PAIRS: usize>(
        &mut self,
        out: &mut Vec<u8>,
        length: usize,
        table: &[[u8; 2]; PAIRS],
    ) {
        let end = out.len() + length;
        out.reserve(length + WORD_CHARS);
        while out.len() < end {
            // The draw is read as a fraction; each multiplication moves one pair before the point.
            let mut fraction = self.bits();
            let mut word = [0; WORD_CHARS];
            for pair in word.chunks_exact_mut(2) {
                let (index, rest) = multiply(fraction, PAIRS as u64);
                fraction = rest;
                // Below PAIRS, so the conversion holds and the bound check is for the compiler.
                let index = usize::try_from(index).unwrap_or(0);
                pair.copy_from_slice(&table[index]);
            }
            out.extend_from_slice(&word);
        }
        out.truncate(end);
    }
}

/// Random values by number, in any order: the outputs of `SplitMix64` from a state of its own.
#[derive(Clone, Copy, Debug)]
pub struct Indexed {
    state: u64,
}

impl Indexed {
    /// A source for one purpose, as [`Draw::new`].
    #[must_use]
    pub fn new(seed: u64, stream: u64, a: u64, b: u64) -> Self {
        let mix = |mixed, part| split_mix(mixed ^ part);
        Self { state: [stream, a, b].into_iter().fold(split_mix(seed), mix) }
    }

    /// The `index`-th value, in `0..n`, within `n / 2^64` of uniform.
    #[inline]
    #[must_use]
    pub fn below(&self, index: u64, n: u64) -> u64 {
        let steps = index.wrapping_add(1).wrapping_mul(GOLDEN_GAMMA);
        multiply(finish(self.state.wrapping_add(steps)), n).0
    }
}

const GOLDEN_GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// The next output of `SplitMix64` (Steele, Lea and Flood, 2014) from this state.
const fn split_mix(state: u64) -> u64 {
    finish(state.wrapping_add(GOLDEN_GAMMA))
}

const fn finish(z: u64) -> u64 {
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// High and low half of a product.
#[inline]
fn multiply(a: u64, b: u64) -> (u64, u64) {
    let product = u128::from(a) * u128::from(b);
    #[expect(clippy::cast_possible_truncation, reason = "the low half is what is wanted")]
    let low = product as u64;
    ((product >> 64) as u64, low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Reference outputs published with the algorithms' C code.
    #[test]
    fn the_generator_is_xoshiro256_plus_plus() {
        let mut draw = Draw { state: [1, 2, 3, 4] };
        let first: Vec<u64> = (0..4).map(|_| draw.bits()).collect();
        assert_eq!(first, [41_943_041, 58_720_359, 3_588_806_011_781_223, 3_591_011_842_654_386]);
    }

    #[test]
    fn the_seeder_is_split_mix_64() {
        let mut state = 1_477_776_061_723_855_037_u64;
        let mut outputs = Vec::new();
        for _ in 0..3 {
            outputs.push(split_mix(state));
            state = state.wrapping_add(GOLDEN_GAMMA);
        }
        assert_eq!(
            outputs,
            [1_985_237_415_132_408_290, 2_979_275_885_539_914_483, 13_511_426_838_097_143_398]
        );
    }

    /// A changed value here means that every stored seed now names other data.
    #[test]
    fn values_of_a_seed_never_change() {
        let mut draw = Draw::new(42, 1, 2, 3);
        let bits = [draw.bits(), draw.bits()];
        let mut text = Vec::new();
        draw.alphanumeric(&mut text, 24);
        assert_eq!(
            (bits, String::from_utf8_lossy(&text).as_ref(), draw.int(1, 100_000)),
            (
                [14_242_392_778_391_430_546, 14_145_514_887_990_557_415],
                "0QkWKofHA6hxy7CXmmQZ7Pvp",
                67_688
            )
        );
    }

    /// The 99.9 % point of chi-square with `n - 1` degrees of freedom, by Wilson and Hilferty.
    fn limit(n: u32) -> f64 {
        let df = f64::from(n - 1);
        df * (1.0 - 2.0 / (9.0 * df) + 3.0902 * (2.0 / (9.0 * df)).sqrt()).powi(3)
    }

    #[test]
    fn characters_are_uniform_at_every_position() {
        let rounds = 20_000_u32;
        let mut draw = Draw::new(7, 0, 0, 0);
        let mut counts = [[0_u32; 62]; 9];
        let mut text = Vec::new();
        for _ in 0..rounds {
            text.clear();
            draw.alphanumeric(&mut text, 9);
            for (position, byte) in text.iter().enumerate() {
                let index = ALPHANUMERIC.iter().position(|c| c == byte).expect("an alphanumeric");
                counts[position][index] += 1;
            }
        }
        let expected = f64::from(rounds) / 62.0;
        for (position, counts) in counts.iter().enumerate() {
            let chi: f64 =
                counts.iter().map(|c| (f64::from(*c) - expected).powi(2) / expected).sum();
            assert!(chi < limit(62), "position {position}: chi-square {chi}");
        }
    }

    #[test]
    fn values_by_number_are_those_of_split_mix_64_and_uniform() {
        let source = Indexed { state: 1_477_776_061_723_855_037 };
        let first: Vec<u64> = (0..2).map(|index| source.below(index, 1 << 63) >> 32).collect();
        let outputs = [1_985_237_415_132_408_290_u64, 2_979_275_885_539_914_483];
        assert_eq!(first, outputs.map(|output| output >> 33));
        let mut counts = [0_u32; 11];
        for index in 0..110_000 {
            counts[usize::try_from(source.below(index, 11)).expect("below 11")] += 1;
        }
        let chi: f64 = counts.iter().map(|c| (f64::from(*c) - 1e4).powi(2) / 1e4).sum();
        assert!(chi < limit(11), "chi-square {chi} of {counts:?}");
    }

    #[test]
    fn small_ranges_are_uniform() {
        let mut draw = Draw::new(9, 0, 0, 0);
        let mut counts = [0_u32; 11];
        for _ in 0..110_000 {
            counts[usize::try_from(draw.int(5, 15) - 5).expect("from 0 to 10")] += 1;
        }
        let chi: f64 = counts.iter().map(|c| (f64::from(*c) - 1e4).powi(2) / 1e4).sum();
        assert!(chi < limit(11), "chi-square {chi} of {counts:?}");
    }

    proptest! {
        #[test]
        fn an_int_lies_in_its_range(seed: u64, low: i32, high: i32) {
            let (low, high) = (low.min(high), low.max(high));
            let mut draw = Draw::new(seed, 0, 0, 0);
            for _ in 0..20 {
                prop_assert!((low..=high).contains(&draw.int(low, high)));
            }
        }

        #[test]
        fn a_string_has_its_length_and_alphabet(seed: u64, length in 0_usize..600) {
            let mut draw = Draw::new(seed, 0, 0, 0);
            let mut text = b"kept".to_vec();
            draw.alphanumeric(&mut text, length);
            prop_assert_eq!(text.len(), 4 + length);
            prop_assert!(text.starts_with(b"kept"));
            prop_assert!(text.iter().all(u8::is_ascii_alphanumeric));
            draw.digits(&mut text, length);
            prop_assert!(text[4 + length..].iter().all(u8::is_ascii_digit));
        }

        #[test]
        fn a_share_is_never_zero(seed: u64) {
            let share = Draw::new(seed, 0, 0, 0).share();
            prop_assert!(share > 0.0 && share <= 1.0);
        }

        #[test]
        fn every_argument_matters(seed: u64, stream: u64, a: u64, b: u64) {
            let first = Draw::new(seed, stream, a, b).bits();
            prop_assert_eq!(first, Draw::new(seed, stream, a, b).bits());
            prop_assert_ne!(first, Draw::new(seed ^ 1, stream, a, b).bits());
            prop_assert_ne!(first, Draw::new(seed, stream ^ 1, a, b).bits());
            prop_assert_ne!(first, Draw::new(seed, stream, a ^ 1, b).bits());
            prop_assert_ne!(first, Draw::new(seed, stream, a, b ^ 1).bits());
        }
    }
}
