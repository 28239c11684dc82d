//! Puts programs together: slots of variables, prepared statements, and what a statement's first
//! words say of the transaction.

use std::collections::HashMap;

use wire::{Results, Statement, StatementId};

use super::{
    programs::Programs,
    scan::Piece,
    steps::{Action, Effect, Form, Program, Source},
    value::Value,
};
use crate::spec::SpecError;

/// A statement's parameters are counted by 16 bits, and so are the statements of a session.
const PARAMETERS_MAX: usize = 65_535;

/// The variable that tells requests apart.
pub const REQUEST_ID: &str = "request_id";

/// Programs under construction.
#[derive(Debug)]
pub struct Builder {
    names: Vec<String>,
    slots: HashMap<String, usize>,
    initial: Vec<Option<Value>>,
    statements: Vec<Statement>,
    seed: u64,
}

impl Builder {
    /// With the variables that every script has: `client_id`, `default_seed`, `random_seed`,
    /// `request_id`, `scale`.
    #[must_use]
    pub fn new(seed: u64, scale: i64) -> Self {
        let mut builder = Self {
            names: Vec::new(),
            slots: HashMap::new(),
            initial: Vec::new(),
            statements: Vec::new(),
            seed,
        };
        let seed = Value::Int((seed >> 1).cast_signed());
        builder.define("client_id", Value::Int(0));
        builder.define("default_seed", seed.clone());
        builder.define("random_seed", seed);
        builder.define(REQUEST_ID, Value::Int(0));
        builder.define("scale", Value::Int(scale));
        builder
    }

    /// The slot of a variable, made when it is first named.
    pub fn slot(&mut self, name: &str) -> usize {
        if let Some(slot) = self.slots.get(name) {
            return *slot;
        }
        let slot = self.names.len();
        self.slots.insert(name.to_owned(), slot);
        self.names.push(name.to_owned());
        self.initial.push(None);
        slot
    }

    /// Gives a variable the value that it has when a transaction begins.
    pub fn define(&mut self, name: &str, value: Value) {
        let slot = self.slot(name);
        self.initial[slot] = Some(value);
    }

    /// The value that a variable has when a transaction begins.
    #[must_use]
    pub fn defined(&self, name: &str) -> Option<&Value> {
        self.initial[*self.slots.get(name)?].as_ref()
    }

    /// Values at the start and names, by slot.
    #[must_use]
    pub fn scope(&self) -> (&[Option<Value>], &[String]) {
        (&self.initial, &self.names)
    }

    /// Adds a statement that sessions prepare; the same one again if there is one like it.
    ///
    /// # Errors
    ///
    /// Too many statements, or parameters.
    pub fn statement(
        &mut self,
        name: &str,
        sql: &str,
        forms: &[Form],
        results: Results,
    ) -> Result<StatementId, String> {
        if forms.len() > PARAMETERS_MAX {
            let count = forms.len();
            return Err(format!("statement has {count} parameters, allowed are {PARAMETERS_MAX}"));
        }
        if streams(sql) {
            return Err("COPY FROM STDIN and TO STDOUT cannot be prepared".into());
        }
        let id = u16::try_from(self.statements.len());
        let id = id.map_err(|_| "workload has more than 65536 statements".to_owned())?;
        let params = forms.iter().map(|form| form.kind()).collect();
        let (name, sql) = (name.to_owned(), sql.to_owned());
        self.statements.push(Statement { name, sql, params, results });
        Ok(StatementId(id))
    }

    /// A program with a query by which its committed requests are found again.
    ///
    /// # Errors
    ///
    /// It is empty, or the program sends nothing that would tell its requests apart.
    pub fn witnessed(&mut self, program: Program, sql: Option<&str>) -> Result<Program, SpecError> {
        let Some(sql) = sql else { return Ok(program) };
        let sql = sql.trim().trim_end_matches(';').trim_end();
        let name = &program.name;
        if sql.is_empty() {
            return Err(SpecError::plain(format!("witness of {name} is empty")));
        }
        if !sends(&program, self.slot(REQUEST_ID)) {
            let fact = format!("{name} has a witness, but no statement of it uses :{REQUEST_ID}");
            let hint = "Store that number, which no other request has, with what each request \
                        leaves; the witness returns it.";
            return Err(SpecError::new(fact, hint));
        }
        Ok(Program { witness: Some(sql.to_owned()), ..program })
    }

    /// The finished workload.
    #[must_use]
    pub fn finish(mut self, programs: Vec<Program>) -> Programs {
        let (client_id, request_id) = (self.slot("client_id"), self.slot(REQUEST_ID));
        let default_seed = self.defined("default_seed").and_then(|value| value.int().ok());
        Programs {
            kinds: programs.iter().map(|program| program.name.clone()).collect(),
            all: programs,
            statements: self.statements,
            seed: self.seed,
            names: self.names,
            slots: self.slots,
            initial: self.initial,
            client_id,
            request_id,
            default_seed: default_seed.unwrap_or(0),
        }
    }
}

/// Whether anything that a program sends may follow from a variable.
fn sends(program: &Program, slot: usize) -> bool {
    program.steps.iter().any(|step| match &step.action {
        Action::Set(_, Source::Expression(expression)) => expression.names(slot),
        Action::Execute(execution) => execution.parameters.iter().any(|(at, _)| *at == slot),
        _ => false,
    })
}

/// SQL with `$1`, `$2`, … in the places of variables. `place` gives the number of a variable's
/// parameter, from 0.
///
/// # Errors
///
/// Those of `place`.
pub fn numbered(
    pieces: &[Piece],
    mut place: impl FnMut(&str) -> Result<usize, String>,
) -> Result<String, String> {
    let mut sql = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(text) => sql.push_str(text),
            Piece::Variable(name) => {
                sql.push('$');
                sql.push_str(&(place(name)? + 1).to_string());
            }
        }
    }
    Ok(sql)
}

/// A statement from its first word on.
#[must_use]
pub fn without_comments(sql: &str) -> &str {
    let mut sql = sql.trim_start();
    while let Some(comment) = sql.strip_prefix("/*") {
        sql = comment.split_once("*/").map_or("", |(_, rest)| rest.trim_start());
    }
    sql
}

/// A COPY between server and client is another protocol.
fn streams(sql: &str) -> bool {
    let upper = without_comments(sql).to_ascii_uppercase();
    upper.starts_with("COPY") && ["STDIN", "STDOUT"].iter().any(|end| upper.contains(end))
}

impl Effect {
    /// What a statement does, by its first words.
    #[must_use]
    pub fn of(sql: &str) -> Self {
        let upper = without_comments(sql).to_ascii_uppercase();
        let words: Vec<&str> = upper.split_whitespace().take(6).collect();
        let has = |word: &str| words.contains(&word);
        let chained = has("CHAIN") && !has("NO");
        match words.first().copied().unwrap_or_default() {
            "BEGIN" | "START" => Self::Begins,
            "PREPARE" if has("TRANSACTION") => Self::Commits,
            "COMMIT" | "END" if !has("PREPARED") && !chained => Self::Commits,
            "ROLLBACK" | "ABORT" if !has("PREPARED") && !has("TO") && !chained => Self::RollsBack,
            _ => Self::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_words_tell_what_becomes_of_the_transaction() {
        for (sql, effect) in [
            ("BEGIN", Effect::Begins),
            ("begin isolation level serializable", Effect::Begins),
            ("/* a */ /* b */ start transaction", Effect::Begins),
            ("END", Effect::Commits),
            ("commit work", Effect::Commits),
            ("COMMIT PREPARED 'x'", Effect::None),
            ("COMMIT AND CHAIN", Effect::None),
            ("COMMIT AND NO CHAIN", Effect::Commits),
            ("PREPARE TRANSACTION 'x'", Effect::Commits),
            ("PREPARE x AS SELECT 1", Effect::None),
            ("ROLLBACK", Effect::RollsBack),
            ("rollback to savepoint a", Effect::None),
            ("SELECT 1", Effect::None),
            ("", Effect::None),
        ] {
            assert_eq!(Effect::of(sql), effect, "{sql}");
        }
    }
}
