//! Histograms for Python: texts in, texts and numbers out.

use drive::measure::{histogram, times};
use pyo3::prelude::*;

use crate::error::raise;

/// Adds histograms of the same kind from several trials.
#[pyfunction]
#[pyo3(signature = (histograms, /))]
#[allow(clippy::needless_pass_by_value, reason = "a Python list is copied into a Vec")]
pub(crate) fn merge_histograms(py: Python<'_>, histograms: Vec<String>) -> PyResult<String> {
    py.detach(|| histogram::merge(&histograms)).map_err(raise)
}

/// Values in ns at the given shares; 1.0 is the maximum.
#[pyfunction]
#[pyo3(signature = (histogram, shares, /))]
#[allow(clippy::needless_pass_by_value, reason = "a Python list is copied into a Vec")]
pub(crate) fn quantiles(histogram: &str, shares: Vec<f64>) -> PyResult<Vec<u64>> {
    histogram::quantiles(histogram, &shares).map_err(raise)
}

/// Number of recorded values.
#[pyfunction]
#[pyo3(signature = (histogram, /))]
pub(crate) fn histogram_count(histogram: &str) -> PyResult<u64> {
    histogram::decode(histogram).map(|histogram| histogram.len()).map_err(raise)
}

/// Bounds of the columns that response times over time are counted in, in ns.
#[pyfunction]
pub(crate) fn time_edges_ns() -> Vec<u64> {
    times::edges_ns()
}
