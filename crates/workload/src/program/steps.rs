//! What a program consists of: steps with actions, statements with where their values come from.

use std::time::Duration;

use wire::{Kind, StatementId};

use super::expression::Expression;

/// One kind of transaction.
#[derive(Clone, Debug)]
pub struct Program {
    /// Its name.
    pub name: String,
    /// Its share is its weight over the sum of all.
    pub weight: f64,
    /// What it does, in order but for jumps.
    pub steps: Vec<Step>,
    /// Returns the number of each of its requests that is committed; `None`: they leave nothing by
    /// which they could be found again.
    pub witness: Option<String>,
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
