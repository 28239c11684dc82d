//! Expressions of `\set` and `\if`, evaluated as pgbench evaluates them.

use super::{
    functions::{self, Function},
    value::Value,
};
use crate::draw::Draw;

/// An expression, its variables resolved to slots.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// A constant.
    Constant(Value),
    /// A variable.
    Variable(usize),
    /// A function or operator whose arguments are all evaluated first.
    Call(Function, Vec<Expression>),
    /// The right side is evaluated only where the left one does not decide.
    And(Box<Expression>, Box<Expression>),
    /// Likewise.
    Or(Box<Expression>, Box<Expression>),
    /// `CASE WHEN … THEN … ELSE … END`.
    Case(Vec<(Expression, Expression)>, Box<Expression>),
    /// `IS NULL`, `IS TRUE`, `IS FALSE`.
    Is(Box<Expression>, Value),
}

/// What an expression may look at.
#[derive(Debug)]
pub struct Scope<'a> {
    /// Values by slot; `None` where nothing was assigned yet.
    pub variables: &'a [Option<Value>],
    /// Names by slot, for errors.
    pub names: &'a [String],
    /// The source of random values.
    pub draw: &'a mut Draw,
    /// Seed of hashes and permutations that name none.
    pub default_seed: i64,
}

impl Expression {
    /// Whether its value may follow from a variable.
    #[must_use]
    pub fn names(&self, slot: usize) -> bool {
        match self {
            Self::Constant(_) => false,
            Self::Variable(named) => *named == slot,
            Self::Call(_, arguments) => arguments.iter().any(|one| one.names(slot)),
            Self::And(left, right) | Self::Or(left, right) => left.names(slot) || right.names(slot),
            Self::Case(branches, otherwise) => {
                otherwise.names(slot)
                    || branches.iter().any(|(when, then)| when.names(slot) || then.names(slot))
            }
            Self::Is(value, _) => value.names(slot),
        }
    }

    /// Its value.
    ///
    /// # Errors
    ///
    /// A fact such as `division by zero`, without place.
    pub fn evaluate(&self, scope: &mut Scope<'_>) -> Result<Value, String> {
        match self {
            Self::Constant(value) => Ok(value.clone()),
            Self::Variable(slot) => match &scope.variables[*slot] {
                Some(value) => value.read(),
                None => Err(format!("variable :{} is not set yet", scope.names[*slot])),
            },
            Self::Call(function, arguments) => {
                let arguments: Result<Vec<Value>, String> =
                    arguments.iter().map(|argument| argument.evaluate(scope)).collect();
                functions::call(*function, &arguments?, scope.draw, scope.default_seed)
            }
            Self::And(left, right) => logic(left, right, false, scope),
            Self::Or(left, right) => logic(left, right, true, scope),
            Self::Case(branches, otherwise) => {
                for (condition, value) in branches {
                    if condition.evaluate(scope)?.is_true()? {
                        return value.evaluate(scope);
                    }
                }
                otherwise.evaluate(scope)
            }
            Self::Is(left, wanted) => Ok(Value::Bool(left.evaluate(scope)? == *wanted)),
        }
    }
}

/// AND (`decides` is false) and OR (true). As in pgbench, a NULL on the left is the result,
/// whatever stands on the right.
fn logic(
    left: &Expression,
    right: &Expression,
    decides: bool,
    scope: &mut Scope<'_>,
) -> Result<Value, String> {
    match left.evaluate(scope)? {
        Value::Null => Ok(Value::Null),
        value if value.bool()? == decides => Ok(Value::Bool(decides)),
        _ => match right.evaluate(scope)? {
            Value::Null => Ok(Value::Null),
            value => value.bool().map(Value::Bool),
        },
    }
}
