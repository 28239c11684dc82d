//! The only crate that knows Python: `pgdyno._core`. Calls are coarse, nothing calls back, waiting
//! happens detached from the interpreter. Types for Python stand in `python/pgdyno/_core.pyi`.

mod contract;
mod describe;
mod disk;
mod drive;
mod error;
mod export;
mod histogram;
mod job;
mod load;
mod null;
mod redo;
mod wal;

use pyo3::prelude::*;

/// Load driver, loader, null server, recorded disks, histograms, WAL,
/// repair.
#[pymodule]
mod _core {
    #[pymodule_export]
    use crate::{
        contract::{contract_version, schema, shapes},
        describe::describe,
        disk::{Recording, close_record, hand_back, make_disk, record_span, take_stock},
        drive::{Drive, is_release, merge_results},
        error::CoreError,
        export::Export,
        histogram::{histogram_count, merge_histograms, quantiles, time_edges_ns},
        load::{Load, estimate_load},
        null::NullServer,
        redo::{PageJudge, Redo},
        wal::Wal,
    };
}
