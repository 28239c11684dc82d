//! Script files as pgbench has them: SQL, variables, expressions and meta commands, compiled to
//! programs. What pgbench does otherwise is listed in [`deviations`].

mod compile;
pub mod spec;

pub use spec::{Kind, Script, ScriptSpec};

use crate::{
    description::{Description, Deviation},
    program::{build::Builder, programs::Programs, workload},
    spec::{Invariant, SpecError},
};
use spec::variable;

/// Raised whenever the same scripts would send something else.
pub const VERSION: u32 = 1;
/// Compiles scripts.
///
/// # Errors
///
/// Those of [`ScriptSpec::from_json`]; syntax, unknown variables, functions and meta commands, each
/// with file and line.
pub fn programs(spec: &ScriptSpec) -> Result<Programs, SpecError> {
    let mut builder = Builder::new(spec.seed, spec.scale);
    for (name, value) in &spec.variables {
        builder.define(name, variable(name, value)?);
    }
    let mut programs = Vec::new();
    let known = compile::Known::of(&spec.scripts, &builder)?;
    for script in &spec.scripts {
        programs.push(compile::compile(script, &known, &mut builder)?);
    }
    Ok(builder.finish(programs))
}

/// The workload for plans, reports and checks.
///
/// # Errors
///
/// As [`programs`].
pub fn describe(spec: &ScriptSpec) -> Result<Description, SpecError> {
    let programs = programs(spec)?;
    Ok(workload::describe(
        &programs,
        "script",
        VERSION,
        Invariant::conditions(&spec.invariants),
        deviations(),
    ))
}

/// What pgbench does otherwise.
#[must_use]
pub fn deviations() -> Vec<Deviation> {
    let line = |what: &str, why: &str| Deviation::new(what, why, "pgbench");
    vec![
        line(
            "variables live as long as a transaction, not as long as a client",
            "what a request sends is a function of (seed, terminal, number)",
        ),
        line(
            "random numbers have pgbench's distributions, but other values",
            "the generator must never change with a version",
        ),
        line(
            "a name in quotes is no variable",
            "pgbench replaces :name within quotes as well, which is hardly ever meant",
        ),
        line(
            "a variable that is NULL is sent as NULL, pgbench sends an empty text or NULL as text",
            "a statement that returned NULL can hand it on",
        ),
        line(
            "\\syncpipeline waits for the answers up to it",
            "an exchange is a batch with one Sync",
        ),
        line(
            "statements are prepared when a session connects, and are all sent by the extended \
             protocol",
            "as pgbench -M prepared after the first execution of each",
        ),
        line(
            "after a serialisation failure the script is repeated from its start, and only where \
             it has committed nothing yet",
            "a request keeps its due time and its values",
        ),
    ]
}
