//! Chi-square of counts against an exact distribution, and binomial bands, for the input audit.
//! Not statistics of measured times: those are made in Python.

/// The standard normal quantile of 99.9 % (one side).
const Z_999: f64 = 3.090_232;
/// Of 99.95 %: both sides together leave 0.1 % outside.
const Z_9995: f64 = 3.290_527;

/// A test of counts against a distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChiSquare {
    /// Sum over the classes of (seen - expected)^2 / expected.
    pub statistic: f64,
    /// The 99.9 % point of its distribution where the counts come from the given distribution.
    pub limit: f64,
    /// Number of classes after grouping.
    pub classes: usize,
}

/// Groups values of like probability into at most `classes` of about equal mass, and compares.
///
/// `weights` are the exact counts of equally likely cases of each value; `seen` how often it came.
/// Fewer classes are used where a class would be expected fewer than five times; with no
/// observations, or one class, statistic and limit are 0.
///
/// # Panics
///
/// If there is not one count for each weight: a bug of the caller.
#[must_use]
pub fn by_likelihood(weights: &[u64], seen: &[u64], classes: usize) -> ChiSquare {
    assert_eq!(weights.len(), seen.len(), "one count for each value");
    let n: u64 = seen.iter().sum();
    let total: u64 = weights.iter().sum();
    let classes = classes.min(usize::try_from(n / 5).unwrap_or(usize::MAX)).max(1);
    // The likely values first; ties by value, so that the grouping is the same everywhere.
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by_key(|&value| (std::cmp::Reverse(weights[value]), value));

    let share = total / classes as u64;
    let mut statistic = 0.0;
    let mut groups = 0;
    let (mut weight, mut count, mut rest) = (0_u64, 0_u64, total);
    for (at, &value) in order.iter().enumerate() {
        weight += weights[value];
        count += seen[value];
        rest -= weights[value];
        // A class ends when it has its share and leaves enough for another one.
        if (weight >= share && rest >= share && rest > 0) || at + 1 == order.len() {
            let expected = real(n) * real(weight) / real(total);
            if expected > 0.0 {
                statistic += (real(count) - expected).powi(2) / expected;
            }
            groups += 1;
            (weight, count) = (0, 0);
        }
    }
    // A value that cannot come but came is an infinite deviation.
    if weights.iter().zip(seen).any(|(&weight, &seen)| weight == 0 && seen > 0) {
        statistic = f64::INFINITY;
    }
    ChiSquare { statistic, limit: limit(groups), classes: usize::try_from(groups).unwrap_or(0) }
}

/// The 99.9 % point of chi-square for so many classes, by Wilson and Hilferty (1931): within 1 % of
/// the tables from nine degrees of freedom on.
fn limit(classes: u64) -> f64 {
    if classes < 2 {
        return 0.0;
    }
    let df = real(classes - 1);
    let spread = 2.0 / (9.0 * df);
    df * (1.0 - spread + Z_999 * spread.sqrt()).powi(3)
}

/// The band that holds the share of successes of `n` trials with probability `p` in 99.9 % of
/// cases: the normal band, with one success more for the lattice, and on the longer side the
/// skewness term of Cornish and Fisher (1938), without which it is too narrow for rare events.
#[must_use]
pub fn binomial_band(p: f64, n: u64) -> (f64, f64) {
    if n == 0 {
        return (0.0, 1.0);
    }
    let n = real(n);
    let half = Z_9995 * (p * (1.0 - p) / n).sqrt() + 1.0 / n;
    let skew = (1.0 - 2.0 * p) * (Z_9995 * Z_9995 - 1.0) / (6.0 * n);
    ((p - half + skew.min(0.0)).max(0.0), (p + half + skew.max(0.0)).min(1.0))
}

/// The band that holds the mean of `n` values with the given mean and variance in 99.9 % of cases.
#[must_use]
pub fn mean_band(mean: f64, variance: f64, n: u64) -> (f64, f64) {
    if n == 0 {
        return (f64::NEG_INFINITY, f64::INFINITY);
    }
    let half = Z_9995 * (variance / real(n)).sqrt();
    (mean - half, mean + half)
}

/// A count as a real number.
#[expect(clippy::cast_precision_loss, reason = "counts stay below 2^53")]
#[must_use]
pub fn real(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Probability that a binomial share lies within the band, by summing the exact terms.
    fn coverage(p: f64, n: u64) -> f64 {
        let (low, high) = binomial_band(p, n);
        let mut log_term = real(n) * (1.0 - p).ln();
        let mut inside = 0.0;
        for k in 0..=n {
            let share = real(k) / real(n);
            if (low..=high).contains(&share) {
                inside += log_term.exp();
            }
            log_term += (real(n - k) / real(k + 1)).ln() + (p / (1.0 - p)).ln();
        }
        inside
    }

    #[test]
    fn the_band_covers_999_in_1000() {
        for p in [0.01, 0.04, 0.15, 0.45, 0.6] {
            for n in [1, 7, 30, 200, 3_000, 40_000] {
                let covered = coverage(p, n);
                assert!(covered >= 0.999, "p {p}, n {n}: {covered}");
            }
        }
        let (low, high) = binomial_band(0.01, 1_000_000);
        assert!(high - low < 0.0007, "from {low} to {high} would let anything pass");
        assert!(coverage(0.01, 40_000) < 0.999_95, "the band is wider than it says");
    }

    #[test]
    fn the_limits_are_those_of_the_tables() {
        // 99.9 % points for 9 and 49 degrees of freedom.
        assert!((limit(10) / 27.877 - 1.0).abs() < 0.01, "{}", limit(10));
        assert!((limit(50) / 85.351 - 1.0).abs() < 0.01, "{}", limit(50));
    }

    #[test]
    fn equal_counts_fit_and_skewed_ones_do_not() {
        let weights = vec![1; 100];
        let fits = by_likelihood(&weights, &[50; 100], 20);
        assert_eq!((fits.classes, fits.statistic), (20, 0.0));
        let mut skewed = vec![50; 100];
        skewed[..10].fill(80);
        let skewed = by_likelihood(&weights, &skewed, 20);
        assert!(skewed.statistic > skewed.limit, "{skewed:?}");
    }

    #[test]
    fn an_impossible_value_is_seen() {
        let chi = by_likelihood(&[1, 1, 0], &[500, 500, 1], 3);
        assert!(chi.statistic > chi.limit, "{chi:?}");
    }
}
