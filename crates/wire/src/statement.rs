//! Statements that sessions prepare: their names, SQL, and types.

/// Type of a declared parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `int4`.
    I32,
    /// `int8`.
    I64,
    /// `float8`.
    F64,
    /// `numeric`.
    Decimal,
    /// `text`.
    Text,
    /// `timestamp`.
    Timestamp,
    /// `int4[]`.
    I32s,
    /// `numeric[]`.
    Decimals,
    /// `text[]`.
    Texts,
    /// `timestamp[]`.
    Timestamps,
    /// Whatever the statement needs at that place: the server infers the type, the value travels
    /// as text.
    Inferred,
}

/// How the results of a statement travel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Results {
    /// In binary format; the workload knows the columns.
    #[default]
    Binary,
    /// As text; the session asks for the columns' names when it prepares
    /// ([`crate::Exchange::columns`]).
    Text,
}

/// A statement that every session of a run prepares once, right after it connects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Short name for reports and errors, e.g. `stock_update_03`.
    pub name: String,
    /// SQL with `$1`, `$2`, …
    pub sql: String,
    /// Types of the parameters, in order.
    pub params: Vec<Kind>,
    /// Format of the results.
    pub results: Results,
}

/// Position of a statement in the list that the session prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StatementId(pub u16);
