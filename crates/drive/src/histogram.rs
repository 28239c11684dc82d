//! Latency histograms: HDR, three significant digits, up to an hour; their text form and summary.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use hdrhistogram::{
    Histogram,
    serialization::{Deserializer, Serializer, V2DeflateSerializer},
};
use serde::Serialize;

use crate::error::RunError;

const DIGITS: u8 = 3;
/// An hour; what takes longer is recorded as an hour.
const HIGHEST_NS: u64 = 3_600_000_000_000;

/// An empty histogram.
///
/// # Panics
///
/// Never: the bounds are constants that the library accepts.
#[must_use]
pub fn empty() -> Histogram<u64> {
    Histogram::new_with_bounds(1, HIGHEST_NS, DIGITS).expect("constant bounds are valid")
}

/// Base64 of the V2 deflate form, readable by every HDR library.
///
/// # Errors
///
/// The library's.
pub fn encode(histogram: &Histogram<u64>) -> Result<String, RunError> {
    let mut bytes = Vec::new();
    V2DeflateSerializer::new()
        .serialize(histogram, &mut bytes)
        .map_err(|e| RunError::internal(format!("write a histogram: {e}")))?;
    Ok(STANDARD.encode(bytes))
}

/// Reads what [`encode`] wrote.
///
/// # Errors
///
/// The text is not such a histogram.
pub fn decode(text: &str) -> Result<Histogram<u64>, RunError> {
    let bytes = STANDARD
        .decode(text)
        .map_err(|e| RunError::spec(format!("histogram is not base64: {e}"), None))?;
    Deserializer::new()
        .deserialize(&mut bytes.as_slice())
        .map_err(|e| RunError::spec(format!("histogram cannot be read: {e}"), None))
}

/// Adds histograms of the same kind; none gives an empty one.
///
/// # Errors
///
/// A text is not a histogram, or its bounds are wider.
pub fn merge(texts: &[String]) -> Result<String, RunError> {
    let mut sum = empty();
    for text in texts {
        sum.add(decode(text)?)
            .map_err(|e| RunError::spec(format!("histograms cannot be added: {e}"), None))?;
    }
    encode(&sum)
}

/// Values in ns at the given shares.
///
/// # Errors
///
/// The text is not a histogram, or a share lies outside 0 to 1.
pub fn quantiles(text: &str, shares: &[f64]) -> Result<Vec<u64>, RunError> {
    if let Some(share) = shares.iter().find(|share| !(0.0..=1.0).contains(*share)) {
        return Err(RunError::spec(format!("share {share} is not between 0 and 1"), None));
    }
    let histogram = decode(text)?;
    Ok(shares.iter().map(|&share| histogram.value_at_quantile(share)).collect())
}

/// What is read at a glance, in ns; zeros when nothing was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Summary {
    p50: u64,
    p90: u64,
    p95: u64,
    p99: u64,
    p999: u64,
    max: u64,
    mean: u64,
}

impl Summary {
    /// Of a histogram.
    #[must_use]
    pub fn of(histogram: &Histogram<u64>) -> Self {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a mean of values up to an hour in ns, rounded to a ns"
        )]
        let mean = histogram.mean().round() as u64;
        Self {
            p50: histogram.value_at_quantile(0.5),
            p90: histogram.value_at_quantile(0.9),
            p95: histogram.value_at_quantile(0.95),
            p99: histogram.value_at_quantile(0.99),
            p999: histogram.value_at_quantile(0.999),
            max: histogram.max(),
            mean,
        }
    }
}
