//! The text's non-uniform random numbers (clause 2.1.6): the function, and its exact distribution
//! by counting, against which the input audit and the tests hold what was drawn.

use crate::draw::Draw;

/// `NURand(A, x, y)` with its constant `C`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NuRand {
    /// One less than a power of two: the second operand of OR is uniform in `0..=a`.
    pub a: i32,
    /// Smallest value.
    pub low: i32,
    /// Largest value.
    pub high: i32,
    /// Constant of the whole run, in `0..=a`.
    pub c: i32,
}

impl NuRand {
    /// `(((random(0, A) | random(x, y)) + C) % (y - x + 1)) + x`.
    #[inline]
    #[must_use]
    pub fn draw(&self, draw: &mut Draw) -> i32 {
        let mixed = draw.int(0, self.a) | draw.int(self.low, self.high);
        (mixed + self.c) % self.span() + self.low
    }

    fn span(&self) -> i32 {
        self.high - self.low + 1
    }

    /// How many of the `(a + 1) * (high - low + 1)` equally likely pairs yield each value, from
    /// `low` to `high`.
    ///
    /// The OR of two independent numbers lies under a mask of bits if both do, so the counts under
    /// each mask multiply; the Möbius transform over the subsets of bits turns "under the mask"
    /// into "exactly the mask". All in integers: the result is exact.
    #[must_use]
    pub fn counts(&self) -> Vec<u64> {
        let bits = (self.a | self.high).ilog2() + 1;
        let mut first = uniform(0, self.a, bits);
        let mut second = uniform(self.low, self.high, bits);
        sum_over_subsets(&mut first);
        sum_over_subsets(&mut second);
        let mut under: Vec<i64> = first.iter().zip(&second).map(|(a, b)| a * b).collect();
        undo_sum_over_subsets(&mut under);
        let span = usize::try_from(self.span()).unwrap_or(0);
        let shift = usize::try_from(self.c).unwrap_or(0);
        let mut counts = vec![0; span];
        for (value, count) in under.iter().enumerate() {
            counts[(value + shift) % span] += count.unsigned_abs();
        }
        counts
    }
}

fn uniform(low: i32, high: i32, bits: u32) -> Vec<i64> {
    let within = low..=high;
    (0..1_i32 << bits).map(|value| i64::from(within.contains(&value))).collect()
}

/// Calls `add(without, with)` for each pair of masks that differ in one bit, bit by bit.
fn for_each_pair(counts: &mut [i64], add: impl Fn(i64, &mut i64)) {
    let mut bit = 1;
    while bit < counts.len() {
        for mask in 0..counts.len() {
            if mask & bit != 0 {
                let without = counts[mask ^ bit];
                add(without, &mut counts[mask]);
            }
        }
        bit <<= 1;
    }
}

fn sum_over_subsets(counts: &mut [i64]) {
    for_each_pair(counts, |without, with| *with += without);
}

fn undo_sum_over_subsets(counts: &mut [i64]) {
    for_each_pair(counts, |without, with| *with -= without);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Counts by trying every pair.
    fn counted(nurand: &NuRand) -> Vec<u64> {
        let span = nurand.high - nurand.low + 1;
        let mut counts = vec![0; usize::try_from(span).expect("positive")];
        for a in 0..=nurand.a {
            for b in nurand.low..=nurand.high {
                let value = ((a | b) + nurand.c) % span;
                counts[usize::try_from(value).expect("not negative")] += 1;
            }
        }
        counts
    }

    proptest! {
        #[test]
        fn the_distribution_is_that_of_all_pairs(
            bits in 1_u32..8, low in 0_i32..40, span in 1_i32..200, c in 0_i32..300,
        ) {
            let a = (1 << bits) - 1;
            let nurand = NuRand { a, low, high: low + span, c: c % (a + 1) };
            prop_assert_eq!(nurand.counts(), counted(&nurand));
        }
    }

    #[test]
    fn the_items_of_a_run_are_distributed_as_counted() {
        let nurand = NuRand { a: 8191, low: 1, high: 100_000, c: 4711 };
        let counts = nurand.counts();
        assert_eq!(counts.iter().sum::<u64>(), 8192 * 100_000);

        // Classes of equal probability in the order of the values: a wrong C moves the mass.
        let mut draw = Draw::new(1, 0, 0, 0);
        let mut seen = vec![0_u64; counts.len()];
        for _ in 0..200_000 {
            let value = nurand.draw(&mut draw);
            assert!((1..=100_000).contains(&value), "{value} is no item");
            seen[usize::try_from(value - 1).expect("positive")] += 1;
        }
        let chi = crate::chi_square::by_likelihood(&counts, &seen, 50);
        assert!(chi.statistic < chi.limit, "{chi:?}");
        let shifted = NuRand { c: 4712, ..nurand };
        let wrong = crate::chi_square::by_likelihood(&shifted.counts(), &seen, 50);
        assert!(wrong.statistic > wrong.limit, "a wrong constant must be seen: {wrong:?}");
    }
}
