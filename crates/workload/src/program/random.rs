//! Distributions of whole numbers between two bounds, from a [`Draw`]. The shapes are those of
//! pgbench's functions; the values are not, because the generator is another one.

use crate::draw::Draw;

/// Below this, pgbench's rejection loop for normal values would hardly end.
pub const NORMAL_MIN: f64 = 2.0;
/// Largest skew of a Zipf distribution: beyond it every value is the first.
pub const ZIPF_MAX: f64 = 1000.0;

/// Number of values from `low` to `high`, both included.
///
/// # Errors
///
/// There is none, or more than an `i64` counts.
pub fn span(low: i64, high: i64) -> Result<i64, String> {
    if high < low {
        return Err(format!("no number lies between {low} and {high}"));
    }
    let span = high.checked_sub(low).and_then(|span| span.checked_add(1));
    span.ok_or_else(|| format!("too many numbers lie between {low} and {high}"))
}

/// Each value with the same probability.
///
/// # Errors
///
/// As [`span`]; so the others.
pub fn uniform(draw: &mut Draw, low: i64, high: i64) -> Result<i64, String> {
    let span = span(low, high)?;
    Ok(low + draw.below(span.cast_unsigned()).cast_signed())
}

/// A normal distribution cut off at `parameter` standard deviations on each side of the middle.
///
/// # Errors
///
/// The parameter is below 2.
pub fn normal(draw: &mut Draw, low: i64, high: i64, parameter: f64) -> Result<i64, String> {
    let span = span(low, high)?;
    if parameter.is_nan() || parameter < NORMAL_MIN {
        return Err(format!("normal parameter is {parameter}, allowed is {NORMAL_MIN} and more"));
    }
    let deviation = loop {
        // Box and Muller, 1958.
        let radius = (-2.0 * draw.share().ln()).sqrt();
        let deviation = radius * (std::f64::consts::TAU * draw.share()).sin();
        if (-parameter..parameter).contains(&deviation) {
            break deviation;
        }
    };
    Ok(place(low, span, (deviation + parameter) / (2.0 * parameter)))
}

/// An exponential distribution, the larger the parameter the more on `low`.
///
/// # Errors
///
/// The parameter is not above 0.
pub fn exponential(draw: &mut Draw, low: i64, high: i64, parameter: f64) -> Result<i64, String> {
    let span = span(low, high)?;
    if parameter.is_nan() || parameter <= 0.0 {
        return Err(format!("exponential parameter is {parameter}, allowed is above 0"));
    }
    let cut = (-parameter).exp();
    let share = -(cut + (1.0 - cut) * draw.share()).ln() / parameter;
    Ok(place(low, span, share))
}

/// The value at a share (0 to below 1) of the span.
fn place(low: i64, span: i64, share: f64) -> i64 {
    #[expect(clippy::cast_precision_loss, reason = "a share of the span needs no more bits")]
    let offset = (span as f64 * share).floor();
    #[expect(clippy::cast_possible_truncation, reason = "between 0 and the span, which fits")]
    let offset = offset as i64;
    low + offset.clamp(0, span - 1)
}

/// Zipf: the k-th value (from 1) with a probability proportional to `k^-s`. Rejection-inversion
/// (Hörmann and Derflinger, 1996): exact, in constant time, for any `s` above 0.
///
/// # Errors
///
/// `s` is not above 0, or above 1000.
pub fn zipf(draw: &mut Draw, low: i64, high: i64, s: f64) -> Result<i64, String> {
    let span = span(low, high)?;
    if s.is_nan() || s <= 0.0 || s > ZIPF_MAX {
        return Err(format!("zipf exponent is {s}, allowed is above 0 to {ZIPF_MAX}"));
    }
    #[expect(clippy::cast_precision_loss, reason = "ranks beyond 2^53 share their probability")]
    let n = span as f64;
    let first = integral(1.5, s) - 1.0;
    let last = integral(n + 0.5, s);
    let threshold = 2.0 - inverse(integral(2.5, s) - power(2.0, s), s);
    loop {
        let u = last + draw.share() * (first - last);
        let x = inverse(u, s);
        let rank = x.round().clamp(1.0, n);
        if rank - x <= threshold || u >= integral(rank + 0.5, s) - power(rank, s) {
            #[expect(clippy::cast_possible_truncation, reason = "between 1 and the span")]
            let rank = rank as i64;
            return Ok(low + rank.clamp(1, span) - 1);
        }
    }
}

/// `x^-s`, the density.
fn power(x: f64, s: f64) -> f64 {
    (-s * x.ln()).exp()
}

/// An integral of the density: `(x^(1-s) - 1) / (1 - s)`, `ln x` for s = 1, precise near it.
fn integral(x: f64, s: f64) -> f64 {
    let log = x.ln();
    let t = (1.0 - s) * log;
    if t.abs() > 1e-8 { t.exp_m1() / t * log } else { (1.0 + t / 2.0 * (1.0 + t / 3.0)) * log }
}

/// The inverse of [`integral`].
fn inverse(y: f64, s: f64) -> f64 {
    let t = (y * (1.0 - s)).max(-1.0);
    let share = if t.abs() > 1e-8 { t.ln_1p() / t } else { 1.0 - t * (0.5 - t * (1.0 / 3.0)) };
    (share * y).exp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chi_square::by_likelihood;
    use proptest::prelude::*;

    /// Counts of values 1..=n.
    fn counted(n: u32, mut next: impl FnMut(&mut Draw) -> i64) -> Vec<u64> {
        let mut draw = Draw::new(11, 0, 0, 0);
        let mut counts = vec![0; usize::try_from(n).expect("small")];
        for _ in 0..100_000 {
            counts[usize::try_from(next(&mut draw) - 1).expect("in range")] += 1;
        }
        counts
    }

    /// Probabilities as counts of equally likely cases.
    fn weights(n: u32, density: impl Fn(f64) -> f64) -> Vec<u64> {
        let densities: Vec<f64> = (1..=n).map(|k| density(f64::from(k))).collect();
        let sum: f64 = densities.iter().sum();
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "shares of 10^12"
        )]
        densities.into_iter().map(|density| (density / sum * 1e12).round() as u64).collect()
    }

    #[test]
    fn zipf_has_the_probabilities_of_its_definition() {
        for s in [0.3, 0.99, 1.0, 1.07, 2.5] {
            let seen = counted(200, |draw| zipf(draw, 1, 200, s).expect("a value"));
            let chi = by_likelihood(&weights(200, |k| k.powf(-s)), &seen, 40);
            assert!(chi.statistic < chi.limit, "s = {s}: {chi:?}");
            let wrong = by_likelihood(&weights(200, |k| k.powf(-s - 0.1)), &seen, 40);
            assert!(wrong.statistic > wrong.limit, "another exponent must be seen: {wrong:?}");
        }
    }

    #[test]
    fn exponential_and_normal_have_pgbenchs_shapes() {
        let seen = counted(50, |draw| exponential(draw, 1, 50, 4.0).expect("a value"));
        let mass = |k: f64| (-4.0 * (k - 1.0) / 50.0).exp() - (-4.0 * k / 50.0).exp();
        let chi = by_likelihood(&weights(50, mass), &seen, 40);
        assert!(chi.statistic < chi.limit, "exponential: {chi:?}");

        // Documented: with parameter 4, the middle quarter holds 67 % (PHI ratio), half 95 %.
        let seen = counted(100, |draw| normal(draw, 1, 100, 4.0).expect("a value"));
        let middle: u64 = seen[37..62].iter().sum();
        let half: u64 = seen[25..75].iter().sum();
        assert!((66_500..69_500).contains(&middle), "{middle} in the middle quarter");
        assert!((95_000..96_000).contains(&half), "{half} in the middle half");
    }

    #[test]
    fn impossible_parameters_are_refused_with_their_value() {
        let mut draw = Draw::new(1, 0, 0, 0);
        assert!(uniform(&mut draw, 2, 1).expect_err("empty").contains("between 2 and 1"));
        assert!(uniform(&mut draw, i64::MIN, i64::MAX).expect_err("large").contains("too many"));
        assert!(normal(&mut draw, 1, 2, 1.9).expect_err("steep").contains("1.9"));
        assert!(exponential(&mut draw, 1, 2, 0.0).expect_err("flat").contains("is 0"));
        assert!(zipf(&mut draw, 1, 2, 0.0).expect_err("flat").contains("is 0"));
        assert!(zipf(&mut draw, 1, 2, f64::NAN).is_err());
    }

    proptest! {
        #[test]
        fn every_value_lies_between_its_bounds(
            seed: u64, low in -1_000_000_i64..1_000_000, more in 0_i64..1_000_000_000_000,
            parameter in 2.0_f64..50.0, s in 0.01_f64..20.0,
        ) {
            let mut draw = Draw::new(seed, 0, 0, 0);
            let high = low + more;
            for value in [
                uniform(&mut draw, low, high),
                normal(&mut draw, low, high, parameter),
                exponential(&mut draw, low, high, parameter),
                zipf(&mut draw, low, high, s),
            ] {
                prop_assert!((low..=high).contains(&value.expect("a value")));
            }
        }
    }
}
