//! Transactions that users write, compiled: statements with variables, and what happens between
//! them. Scripts ([`crate::script`]) and mixes ([`crate::mix`]) become programs; this module
//! chooses and runs them.

pub mod build;
pub mod expression;
pub mod functions;
pub mod hash;
pub mod parse;
pub mod random;
pub mod run;
pub mod scan;
pub mod value;

use std::{collections::HashMap, time::Duration};

use serde_json::{Value as Json, json};
use wire::{Error, Exchange, Kind, Statement, StatementId, Timestamp};

use crate::{
    Audit, AuditLine, Outcome, Timing, Workload,
    chi_square::{binomial_band, real},
    draw::Draw,
};
use expression::Expression;
use value::Value;

/// Streams of draws; a number never changes its meaning.
const STREAM_CHOICE: u64 = 201;
const STREAM_VALUES: u64 = 202;

/// One kind of transaction.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// Its share is its weight over the sum of all.
    pub weight: f64,
    /// What it does, in order but for jumps.
    pub steps: Vec<Step>,
}

/// One thing that a program does, and where its text stands, for errors.
#[derive(Clone, Debug)]
pub struct Step {
    /// E.g. `mine.sql, line 7`.
    pub place: Box<str>,
    /// What.
    pub action: Action,
}

/// What a step does.
#[derive(Clone, Debug)]
pub enum Action {
    /// Assigns a variable.
    Set(usize, Source),
    /// Executes a statement, at once or when the pipeline ends.
    Execute(Execution),
    /// Goes on at another step unless the condition holds.
    Unless(Expression, usize),
    /// Goes on at another step.
    Jump(usize),
    /// Waits so many units of this length.
    Sleep(Expression, Duration),
    /// Queues what follows.
    StartPipeline,
    /// Sends what is queued, with a Sync; the pipeline goes on.
    SyncPipeline,
    /// Sends what is queued; the pipeline ends.
    EndPipeline,
}

/// Where a variable's value comes from.
#[derive(Clone, Debug)]
pub enum Source {
    /// An expression.
    Expression(Expression),
    /// `NURand(a, low, high)` with the constant `c` (TPC-C clause 2.1.6).
    NuRand {
        /// A power of two less one.
        a: i64,
        /// Lowest value.
        low: i64,
        /// Highest value.
        high: i64,
        /// The constant.
        c: i64,
    },
    /// A number that no other request of the run has: its number and its terminal.
    Sequence {
        /// Added to it.
        start: i64,
    },
    /// Characters and digits, of a length between these two.
    Characters(i32, i32),
}

/// An execution of a statement.
#[derive(Clone, Debug)]
pub struct Execution {
    /// Which.
    pub statement: StatementId,
    /// Slots of its parameters and how they are sent.
    pub parameters: Vec<(usize, Form)>,
    /// What it does to the transaction.
    pub effect: Effect,
    /// Rows that it must return or change.
    pub rows: Option<u64>,
    /// What becomes of its answer.
    pub store: Option<Store>,
}

/// How a value is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// As text; the server knows the type.
    Inferred,
    /// `integer`.
    Int,
    /// `bigint`.
    Bigint,
    /// `numeric` with so many places; the variable holds a whole number of the last one.
    Numeric(u8),
    /// `text`.
    Text,
}

impl Form {
    /// The declared type.
    #[must_use]
    pub fn kind(self) -> Kind {
        match self {
            Self::Inferred => Kind::Inferred,
            Self::Int => Kind::I32,
            Self::Bigint => Kind::I64,
            Self::Numeric(_) => Kind::Decimal,
            Self::Text => Kind::Text,
        }
    }
}

/// What a statement does to the transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Opens one.
    Begins,
    /// Ends it, for good.
    Commits,
    /// Ends it, undone.
    RollsBack,
    /// Neither.
    None,
}

/// Columns become variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Store {
    /// Before the names of the columns.
    pub prefix: String,
    /// Exactly one row must come; else the last of any number counts, and none changes nothing.
    pub one_row: bool,
}

/// Programs, and what they share.
#[derive(Clone, Debug)]
pub struct Programs {
    kinds: Vec<String>,
    all: Vec<Program>,
    statements: Vec<Statement>,
    seed: u64,
    names: Vec<String>,
    slots: HashMap<String, usize>,
    /// Values that variables have at the start; scripts may change them.
    initial: Vec<Option<Value>>,
    /// Slots of what is different in each request.
    client_id: usize,
    default_seed: i64,
}

/// A request: everything else follows from its numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// Which program.
    pub program: usize,
    /// Whose.
    pub terminal: u32,
    /// The how-manieth of this terminal, from 0.
    pub number: u64,
}

/// How often each program came to its end.
#[derive(Clone, Debug, Default)]
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

impl Programs {
    /// The programs.
    #[must_use]
    pub fn programs(&self) -> &[Program] {
        &self.all
    }

    /// Shares of the programs, by name.
    #[must_use]
    pub fn shares(&self) -> Json {
        let sum: f64 = self.all.iter().map(|program| program.weight).sum();
        let share = |program: &Program| (program.name.clone(), json!(program.weight / sum));
        Json::Object(self.all.iter().map(share).collect())
    }

    fn choose(&self, terminal: u32, number: u64) -> usize {
        let sum: f64 = self.all.iter().map(|program| program.weight).sum();
        let mut draw = Draw::new(self.seed, STREAM_CHOICE, u64::from(terminal), number);
        let mut left = draw.share() * sum;
        for (at, program) in self.all.iter().enumerate() {
            left -= program.weight;
            if left <= 0.0 && program.weight > 0.0 {
                return at;
            }
        }
        self.all.iter().rposition(|program| program.weight > 0.0).unwrap_or(0)
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

    async fn perform<X: Exchange>(
        &self,
        session: &mut X,
        request: &Request,
        _now: Timestamp,
    ) -> Result<Outcome, Error> {
        run::Run::new(self, *request, session).perform().await
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
                source: "the weights, 99.9 % binomial band".into(),
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

/// A workload of programs as JSON, in the shape that all workloads have.
#[must_use]
pub fn describe(
    programs: &Programs,
    name: &str,
    version: u32,
    spec: &Json,
    conditions: &Json,
    deviations: &Json,
) -> Json {
    let statement = |one: &Statement| json!({"name": one.name, "sql": one.sql});
    let statements: Vec<Json> = programs.statements.iter().map(statement).collect();
    json!({
        "name": name,
        "version": version,
        "spec": spec,
        "kinds": programs.kinds,
        "mix": programs.shares(),
        "statements": statements,
        "tables": [],
        "indexes": [],
        "conditions": conditions,
        "load_checks": [],
        "deviations": deviations,
        "disk_bytes_estimate": 0,
    })
}
