//! Programs as a workload: requests by weight, an audit of the weights.

use serde::{Deserialize, Serialize};
use wire::{Error, Exchange, Statement, Timestamp};

use super::{
    programs::{Programs, Request},
    runner::Runner,
    steps::{Action, Program},
};
use crate::{
    chi_square::{binomial_band, real},
    description::{Condition, Description, Deviation, PreparedSql},
    witness::{Witness, WitnessQuery},
    workload::{Audit, AuditLine, Outcome, Timing, Workload},
    written::{WrittenTables, tables_written},
};

/// How often each program came to its end.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct ProgramAudit(Vec<u64>);

impl Audit for ProgramAudit {
    type Request = Request;

    fn add(&mut self, request: &Request, _: Outcome) {
        if self.0.len() <= request.program {
            self.0.resize(request.program + 1, 0);
        }
        self.0[request.program] += 1;
    }

    fn merge(&mut self, other: &Self) {
        let size = self.0.len().max(other.0.len());
        self.0.resize(size, 0);
        for (count, more) in self.0.iter_mut().zip(&other.0) {
            *count += more;
        }
    }
}

impl Workload for Programs {
    type Request = Request;
    type Audit = ProgramAudit;

    fn kinds(&self) -> &[String] {
        &self.kinds
    }

    fn statements(&self) -> &[Statement] {
        &self.statements
    }

    fn request(&self, terminal: u32, number: u64) -> (Request, Timing) {
        let program = self.choose(terminal, number);
        let timing = Timing { kind: program, keying_ns: 0, think_ns: 0, deferred: false };
        (Request { program, terminal, number }, timing)
    }

    fn witness(&self, request: &Request, _now: Timestamp) -> Option<Witness> {
        let found = self.all[request.program].witness.is_some();
        found.then(|| Witness::row([request.ident(), 0, 0, 0]))
    }

    async fn perform<X: Exchange>(
        &self,
        session: &mut X,
        request: &Request,
        _now: Timestamp,
    ) -> Result<Outcome, Error> {
        Runner::new(self, *request, session).run_to_end().await
    }

    fn audit_lines(&self, audit: &ProgramAudit) -> Vec<AuditLine> {
        let all: u64 = audit.0.iter().sum();
        let sum: f64 = self.all.iter().map(|program| program.weight).sum();
        let line = |(at, program): (usize, &Program)| {
            let expected = program.weight / sum;
            let count = audit.0.get(at).copied().unwrap_or(0);
            let certain = expected <= 0.0 || expected >= 1.0;
            let (low, high) =
                if certain { (expected, expected) } else { binomial_band(expected, all) };
            AuditLine {
                name: format!("share of {}", program.name),
                source: "the weights, 99.9% binomial band".into(),
                measured: real(count) / real(all.max(1)),
                n: all,
                low,
                high,
                unit: "1".into(),
            }
        };
        let lines = self.all.iter().enumerate().map(line);
        lines.filter(|line| line.n > 0).collect()
    }
}

/// A workload of programs for plans, reports and checks.
#[must_use]
pub fn describe(
    programs: &Programs,
    name: &str,
    version: u32,
    conditions: Vec<Condition>,
    deviations: Vec<Deviation>,
) -> Description {
    Description {
        name: name.to_owned(),
        version,
        kinds: programs.kinds.clone(),
        mix: programs.shares(),
        statements: PreparedSql::of(&programs.statements),
        tables: Vec::new(),
        indexes: Vec::new(),
        conditions,
        witnesses: programs.all.iter().filter_map(witness_query).collect(),
        writes: programs.all.iter().filter_map(|one| writes(programs, one)).collect(),
        load_checks: Vec::new(),
        deviations,
        disk_bytes_estimate: 0,
    }
}

/// The tables that the statements of a program change.
fn writes(programs: &Programs, program: &Program) -> Option<WrittenTables> {
    let executed = program.steps.iter().filter_map(|step| match &step.action {
        Action::Execute(execution) => programs.statements.get(usize::from(execution.statement.0)),
        _ => None,
    });
    WrittenTables::of(&program.name, executed.flat_map(|one| tables_written(&one.sql)))
}

/// The user's query as the others are: four numbers, and a time that it has no use for.
fn witness_query(program: &Program) -> Option<WitnessQuery> {
    let found = program.witness.as_ref()?;
    let sql = format!(
        "SELECT request_id::bigint, 0::bigint, 0::bigint, 0::bigint FROM (\n{found}\n) \
         AS found(request_id) WHERE $1::bigint IS NOT NULL"
    );
    Some(WitnessQuery { kind: program.name.clone(), sql })
}
