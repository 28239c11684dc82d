//! A random permutation that needs no memory: any place of it can be asked for in any order. A
//! Feistel network over a little more than the range, walked until the result is in the range
//! (Black and Rogaway, 2002). Not for secrets.

use crate::draw::Indexed;

/// Rounds of the network: with ten, places of neighbours show no relation (see the tests).
const ROUNDS: u64 = 10;

/// A permutation of `0..n`, wholly determined by what it was made from.
#[derive(Clone, Copy, Debug)]
pub struct Permutation {
    rounds: Indexed,
    n: u32,
    half_bits: u32,
}

impl Permutation {
    /// A permutation of `0..n`; different sources give unrelated ones.
    ///
    /// # Panics
    ///
    /// If `n` is 0 or above 2^30.
    #[must_use]
    pub fn new(rounds: Indexed, n: u32) -> Self {
        assert!((1..=1 << 30).contains(&n), "no permutation of {n}");
        let bits = u32::BITS - (n - 1).leading_zeros();
        Self { rounds, n, half_bits: bits.div_ceil(2).max(1) }
    }

    /// What stands at a place.
    ///
    /// # Panics
    ///
    /// If `place` is `n` or above.
    #[must_use]
    pub fn at(&self, place: u32) -> u32 {
        assert!(place < self.n, "place {place} of {}", self.n);
        let mut value = place;
        loop {
            value = self.network(value);
            if value < self.n {
                return value;
            }
        }
    }

    fn network(&self, value: u32) -> u32 {
        let bits = self.half_bits;
        let mask = (1 << bits) - 1;
        let (mut left, mut right) = (value >> bits, value & mask);
        for round in 0..ROUNDS {
            let drawn = self.rounds.below(round << 32 | u64::from(right), 1 << bits);
            // Below 2^15, as `n` is at most 2^30.
            let drawn = u32::try_from(drawn).unwrap_or(0);
            (left, right) = (right, left ^ drawn);
        }
        left << bits | right
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chi_square::by_likelihood;

    fn permutation(seed: u64, n: u32) -> Vec<u32> {
        let permutation = Permutation::new(Indexed::new(seed, 0, 0, 0), n);
        (0..n).map(|place| permutation.at(place)).collect()
    }

    #[test]
    fn every_value_stands_at_one_place() {
        for n in [1, 2, 3, 10, 64, 65, 3000, 4096, 4097] {
            let mut values = permutation(5, n);
            values.sort_unstable();
            assert_eq!(values, (0..n).collect::<Vec<_>>(), "of {n}");
        }
    }

    #[test]
    fn every_value_is_as_probable_at_every_place() {
        const N: usize = 12;
        let mut counts = vec![[0_u64; N]; N];
        for seed in 0..6_000 {
            for (place, value) in permutation(seed, 12).into_iter().enumerate() {
                counts[place][usize::try_from(value).expect("small")] += 1;
            }
        }
        for (place, counts) in counts.iter().enumerate() {
            let chi = by_likelihood(&[1; N], counts, N);
            assert!(chi.statistic < chi.limit, "place {place}: {chi:?}");
        }
    }

    #[test]
    fn neighbours_have_no_relation() {
        const N: u32 = 3000;
        const CELLS: usize = 10;
        let mut counts = vec![0_u64; CELLS];
        for seed in 0..20 {
            for pair in permutation(seed, N).windows(2) {
                // Steps round the circle are uniform.
                let step = (pair[1] + N - pair[0]) % N;
                let cell = usize::try_from(step).expect("small") * CELLS / 3000;
                counts[cell] += 1;
            }
        }
        let chi = by_likelihood(&[1; CELLS], &counts, CELLS);
        assert!(chi.statistic < chi.limit, "{chi:?} of {counts:?}");
    }
}
