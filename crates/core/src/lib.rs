//! The only crate that knows Python: `pgdyno._core`. Calls are coarse, nothing calls back, waiting
//! happens detached from the interpreter. Types for Python stand in `python/pgdyno/_core.pyi`.

mod drive;
mod error;
mod histogram;

use pyo3::prelude::*;

/// Load driver, loader, histograms.
#[pymodule]
mod _core {
    #[pymodule_export]
    use crate::{
        drive::{Drive, is_release},
        error::CoreError,
        histogram::{histogram_count, merge_histograms, quantiles},
    };
}
