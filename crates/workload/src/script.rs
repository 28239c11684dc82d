//! Script files as pgbench has them: SQL, variables, expressions and meta commands, compiled to
//! programs. What pgbench does otherwise is listed in [`deviations`].

mod compile;
pub mod spec;

use serde_json::{Value as Json, json};

pub use spec::{Kind, Script, ScriptSpec};

use crate::{
    program::{build::Builder, programs::Programs, workload},
    spec::SpecError,
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

/// The workload as JSON.
///
/// # Errors
///
/// As [`programs`].
pub fn describe(value: &Json) -> Result<Json, SpecError> {
    let spec = ScriptSpec::from_json(value)?;
    let programs = programs(&spec)?;
    let (spec, none) = (json!(spec), json!([]));
    Ok(workload::describe(&programs, "script", VERSION, &spec, &none, &deviations()))
}

/// What pgbench does otherwise.
#[must_use]
pub fn deviations() -> Json {
    let line = |what: &str, why: &str| json!({"what": what, "why": why, "clause": "pgbench"});
    json!([
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
    ])
}
