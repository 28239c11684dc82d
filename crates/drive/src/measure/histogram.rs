//! Latency histograms: HDR, three significant digits, up to an hour; their text form and summary.

use std::io::Read as _;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use flate2::read::ZlibDecoder;
use hdrhistogram::{
    Counter, Histogram,
    serialization::{Deserializer, Serializer, V2DeflateSerializer},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::RunError;

const DIGITS: u8 = 3;
/// An hour; what takes longer is recorded as an hour.
pub(crate) const HIGHEST_NS: u64 = 3_600_000_000_000;

const DEFLATED: [u8; 4] = 0x1c84_9314_u32.to_be_bytes(); // the cookie of the V2 deflate form
const LENGTH_BYTES: usize = 4;
const PAYLOAD: std::ops::Range<usize> = 4..8; // of the V2 form: how long its counts are
const HEAD_BYTES: usize = 40;
/// Three digits up to an hour are 33,000 counts, of at most 9 bytes each.
const PLAIN_BYTES_MAX: u64 = 1 << 20;

/// An empty histogram. It grows with what is recorded, so that the many that a run keeps cost what
/// they hold: 200 kB when it holds a second, 270 kB when an hour.
///
/// # Panics
///
/// Never: the number of digits is a constant that the library accepts.
#[must_use]
pub fn empty() -> Histogram<u64> {
    Histogram::new(DIGITS).expect("three digits are valid")
}

/// Records a time; beyond an hour as an hour.
///
/// # Panics
///
/// Never: a histogram that grows takes every time up to an hour.
pub fn record(histogram: &mut Histogram<u64>, ns: u64) {
    histogram.record(ns.min(HIGHEST_NS)).expect("an hour can be recorded");
}

/// Adds another one's times.
///
/// # Panics
///
/// Never: both grow.
pub fn add(sum: &mut Histogram<u64>, other: &Histogram<u64>) {
    sum.add(other).expect("histograms that grow can be added");
}

/// Base64 of the V2 deflate form, readable by every HDR library.
///
/// # Errors
///
/// The library's.
pub fn encode<T: Counter>(histogram: &Histogram<T>) -> Result<String, RunError> {
    let mut bytes = Vec::new();
    V2DeflateSerializer::new()
        .serialize(histogram, &mut bytes)
        .map_err(|e| RunError::internal(format!("write a histogram: {e}")))?;
    Ok(STANDARD.encode(bytes))
}

/// Reads what [`encode`] wrote, or another library for us.
///
/// # Errors
///
/// The text is not such a histogram.
pub fn decode(text: &str) -> Result<Histogram<u64>, RunError> {
    let bytes = STANDARD
        .decode(text)
        .map_err(|e| RunError::spec(format!("histogram is not base64: {e}"), None))?;
    let plain = inflate(&bytes)?;
    Deserializer::new()
        .deserialize(&mut plain.as_slice())
        .map_err(|e| RunError::spec(format!("histogram cannot be read: {e}"), None))
}

/// The V2 form within the V2 deflate form. The library would take as much memory as either says
/// that it needs, and texts come from files that are handed on, and from other hosts.
fn inflate(bytes: &[u8]) -> Result<Vec<u8>, RunError> {
    let broken = |what: &str| RunError::spec(format!("histogram cannot be read: {what}"), None);
    let Some((DEFLATED, rest)) = bytes.split_first_chunk().map(|(c, r)| (*c, r)) else {
        return Err(broken("it is not of the V2 deflate form"));
    };
    let packed = rest.get(LENGTH_BYTES..).unwrap_or_default(); // its own length, which is a repeat
    let mut plain = Vec::new();
    ZlibDecoder::new(packed)
        .take(PLAIN_BYTES_MAX + 1)
        .read_to_end(&mut plain)
        .map_err(|e| broken(&e.to_string()))?;
    let told = plain.get(PAYLOAD).and_then(|four| four.try_into().ok()).map(u32::from_be_bytes);
    let there = plain.len().saturating_sub(HEAD_BYTES);
    match told {
        Some(told) if told as usize <= there && plain.len() as u64 <= PLAIN_BYTES_MAX => Ok(plain),
        _ => Err(broken("it does not hold as many bytes as it says, or too many")),
    }
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

/// Where the lower bounds begin among a histogram's values. A request without an answer is recorded
/// with the time until nobody waited for it any more; its own would have been longer. A quantile
/// below the least of these is exact, whatever they would have become; from there on it is a lower
/// bound itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExactBelow(u64);

impl Default for ExactBelow {
    /// All values are exact.
    fn default() -> Self {
        Self(u64::MAX)
    }
}

impl ExactBelow {
    /// Notes that a value was recorded which is a lower bound; beyond an hour it is an hour.
    pub fn bound(&mut self, ns: u64) {
        self.0 = self.0.min(ns.min(HIGHEST_NS));
    }

    /// Adds what another one noted.
    pub fn add(&mut self, other: Self) {
        self.0 = self.0.min(other.0);
    }

    /// The least lower bound; none where all values are exact.
    #[must_use]
    pub fn ns(self) -> Option<u64> {
        (self.0 < u64::MAX).then_some(self.0)
    }
}

/// What is read at a glance, in ns; zeros when nothing was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Summary {
    p50: u64,
    p90: u64,
    p95: u64,
    p99: u64,
    p999: u64,
    max: u64,
    mean: u64,
    /// What is not below it is a lower bound, and so is the mean then; absent: all is exact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "u64")]
    exact_below: Option<u64>,
}

impl Summary {
    /// Where the lower bounds begin.
    #[must_use]
    pub fn exact_below(&self) -> ExactBelow {
        self.exact_below.map_or_else(ExactBelow::default, ExactBelow)
    }

    /// Of a histogram.
    #[must_use]
    pub fn of<T: Counter>(histogram: &Histogram<T>, exact_below: ExactBelow) -> Self {
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
            exact_below: exact_below.ns(),
        }
    }
}
