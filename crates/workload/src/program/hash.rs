//! pgbench's hashes and its permutation, bit for bit: scripts use them to scatter skewed keys, and
//! must hit the same rows as with pgbench.

const FNV_PRIME: u64 = 0x0100_0000_01b3;
const FNV_OFFSET_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const MURMUR_FACTOR: u64 = 0xc6a4_a793_5bd1_e995;
const MURMUR_FACTOR_TIMES_8: u64 = 0x3525_3c9a_de8f_4ca8;
const MURMUR_ROTATION: u32 = 47;
/// Rounds of the permutation.
const ROUNDS: u32 = 6;

/// FNV-1a of the eight bytes, lowest first.
#[must_use]
pub fn fnv1a(value: i64, seed: i64) -> i64 {
    let start = FNV_OFFSET_BASIS ^ seed.cast_unsigned();
    let hash = value
        .to_le_bytes()
        .iter()
        .fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(FNV_PRIME));
    hash.cast_signed()
}

/// `MurmurHash2` of one word of 64 bits.
#[must_use]
pub fn murmur2(value: i64, seed: i64) -> i64 {
    let mut word = value.cast_unsigned().wrapping_mul(MURMUR_FACTOR);
    word ^= word >> MURMUR_ROTATION;
    word = word.wrapping_mul(MURMUR_FACTOR);
    let mut hash = seed.cast_unsigned() ^ MURMUR_FACTOR_TIMES_8;
    hash = (hash ^ word).wrapping_mul(MURMUR_FACTOR);
    hash ^= hash >> MURMUR_ROTATION;
    hash = hash.wrapping_mul(MURMUR_FACTOR);
    (hash ^ (hash >> MURMUR_ROTATION)).cast_signed()
}

/// The place of `value` in a random order of 0 to `size - 1`.
#[must_use]
pub fn permute(value: i64, size: i64, seed: i64) -> i64 {
    if size < 2 {
        return 0;
    }
    let mut random = Xoroshiro::new(seed.cast_unsigned());
    let size = size.cast_unsigned();
    let mut place = value.cast_unsigned() % size;
    // The lower and the upper half are each as large as the largest power of two that fits.
    let bits = size.ilog2();
    let mask = (1_u64 << bits) - 1;
    for _ in 0..ROUNDS {
        place = scatter(place, mask, bits, &mut random);
        place = size - 1 - scatter(size - 1 - place, mask, bits, &mut random);
        let offset = random.up_to(size - 1);
        // Both are below 2^63.
        place = (place + offset) % size;
    }
    place.cast_signed()
}

/// Multiplies, mixes and rotates a number within the mask; leaves one beyond it alone.
fn scatter(place: u64, mask: u64, bits: u32, random: &mut Xoroshiro) -> u64 {
    let factor = random.bits() | 1;
    let mixed = random.bits() & mask;
    if place > mask {
        return place;
    }
    let place = (place.wrapping_mul(factor) ^ mixed) & mask;
    ((place << 1) & mask) | (place >> (bits - 1))
}

/// `xoroshiro128**`, as PostgreSQL's `pg_prng.c` seeds and uses it.
struct Xoroshiro([u64; 2]);

impl Xoroshiro {
    fn new(seed: u64) -> Self {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            mixed ^ (mixed >> 31)
        };
        Self([next(), next()])
    }

    fn bits(&mut self) -> u64 {
        let [s0, s1] = self.0;
        let result = s0.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let mixed = s1 ^ s0;
        self.0 = [s0.rotate_left(24) ^ mixed ^ (mixed << 16), mixed.rotate_left(37)];
        result
    }

    /// Uniform in 0 to `most`, which is above 0.
    fn up_to(&mut self, most: u64) -> u64 {
        loop {
            let value = self.bits() >> (63 - most.ilog2());
            if value <= most {
                return value;
            }
        }
    }
}
