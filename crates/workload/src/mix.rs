//! A mix of SQL transactions that a user writes in TOML: statements with named parameters, how
//! often each transaction comes, how its parameters are distributed, and what must hold afterwards.
//! The file is read by Python; here it is JSON.

mod compile;
pub mod spec;

pub use spec::{Bound, Counted, Kind, MixSpec, Parameter, ParameterKind, Sql, Transaction};

use crate::{
    description::Description,
    program::{programs::Programs, workload},
    spec::{Invariant, SpecError},
};

/// Raised whenever the same mix would send something else.
pub const VERSION: u32 = 1;

/// Compiles a mix.
///
/// # Errors
///
/// SQL that is cut short, parameters without a source or never used, bounds that are no numbers,
/// each with transaction and statement.
pub fn programs(spec: &MixSpec) -> Result<Programs, SpecError> {
    compile::compile(spec)
}

/// The workload for plans, reports and checks.
///
/// # Errors
///
/// As [`programs`].
pub fn describe(spec: &MixSpec) -> Result<Description, SpecError> {
    let programs = programs(spec)?;
    Ok(workload::describe(
        &programs,
        "mix",
        VERSION,
        Invariant::conditions(&spec.invariants),
        Vec::new(),
    ))
}
