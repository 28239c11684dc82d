//! From a mix to programs: each transaction draws its parameters, in the order of their names
//! (those with an expression last), and then executes its statements.

use std::collections::BTreeMap;

use wire::{Results, StatementId};

use super::spec::{Bound, MixSpec, Parameter, ParameterKind, Sql, Transaction};
use crate::{
    draw::Draw,
    program::{
        build::{Builder, REQUEST_ID, numbered},
        expression::{Expression, Scope},
        functions::Function,
        parse,
        programs::Programs,
        random::{NORMAL_MIN, ZIPF_MAX, span},
        scan::{Piece, What, scan},
        steps::{Action, Effect, Execution, Form, Program, Source, Step},
        value::Value,
    },
    script::spec::variable,
    spec::{Face, Isolation, SpecError},
};

/// Places of a `numeric` beyond which an `i64` holds hardly anything.
const PLACES_MAX: u8 = 9;
const STRING_MAX: i64 = 1_000_000;

pub(super) fn compile(spec: &MixSpec) -> Result<Programs, SpecError> {
    let mut builder = Builder::new(spec.seed, spec.scale);
    for (name, value) in &spec.variables {
        let value = variable(name, value)?;
        let value = match &value {
            Value::Text(text) => constant(text, &builder)
                .map_err(|fact| SpecError::plain(format!("variable {name}: {fact}")))?,
            _ => value,
        };
        builder.define(name, value);
    }
    let mut ends = BTreeMap::new();
    let mut programs = Vec::new();
    for transaction in &spec.transactions {
        let mut compiler = Compiler { spec, transaction, builder: &mut builder, ends: &mut ends };
        programs.push(compiler.program()?);
    }
    Ok(builder.finish(programs))
}

/// The value of an expression of variables alone.
fn constant(text: &str, builder: &Builder) -> Result<Value, String> {
    let (variables, names) = builder.scope();
    let expression = parse::expression(text, &mut |name| {
        let slot = names.iter().position(|known| known == name);
        slot.ok_or_else(|| format!("variable :{name} is not known here"))
    })?;
    if is_random(&expression) {
        return Err(format!("{text:?} is random, a constant is wanted"));
    }
    let mut draw = Draw::new(0, 0, 0, 0);
    expression.evaluate(&mut Scope { variables, names, draw: &mut draw, default_seed: 0 })
}

fn is_random(expression: &Expression) -> bool {
    match expression {
        Expression::Constant(_) | Expression::Variable(_) => false,
        Expression::Call(function, arguments) => {
            let random = matches!(
                function,
                Function::Random
                    | Function::RandomGaussian
                    | Function::RandomExponential
                    | Function::RandomZipfian
            );
            random || arguments.iter().any(is_random)
        }
        Expression::And(a, b) | Expression::Or(a, b) => is_random(a) || is_random(b),
        Expression::Is(a, _) => is_random(a),
        Expression::Case(branches, otherwise) => {
            is_random(otherwise) || branches.iter().any(|(a, b)| is_random(a) || is_random(b))
        }
    }
}

struct Compiler<'a> {
    spec: &'a MixSpec,
    transaction: &'a Transaction,
    builder: &'a mut Builder,
    /// Statements that begin or end a transaction, by their SQL.
    ends: &'a mut BTreeMap<String, StatementId>,
}

impl Compiler<'_> {
    /// A place within the transaction, for errors.
    fn refused(&self, place: &str, fact: &str) -> SpecError {
        SpecError::plain(format!("transaction {}, {place}: {fact}", self.transaction.name))
    }

    fn program(&mut self) -> Result<Program, SpecError> {
        let mut steps = Vec::new();
        for (name, parameter) in in_order(self.transaction) {
            let place = format!("parameter {name}");
            let source = self.source(parameter).map_err(|fact| self.refused(&place, &fact))?;
            let slot = self.builder.slot(&self.qualified(name));
            steps.push(self.step(&place, Action::Set(slot, source)));
        }
        let piped = self.spec.face == Face::Pipeline;
        if piped {
            steps.push(self.step("begin", Action::StartPipeline));
        }
        if self.transaction.begin {
            let begin = self.begin();
            steps.push(self.control("begin", &begin)?);
        }
        let mut used = Vec::new();
        for (at, sql) in self.transaction.statements.iter().enumerate() {
            let place = format!("statement {}", at + 1);
            let execution = self.execution(at, sql, &mut used);
            let execution = execution.map_err(|fact| self.refused(&place, &fact))?;
            steps.push(self.step(&place, Action::Execute(execution)));
        }
        if self.transaction.begin {
            steps.push(self.control("commit", "COMMIT")?);
        }
        if piped {
            steps.push(self.step("commit", Action::EndPipeline));
        }
        self.all_used(&used)?;
        let Transaction { name, weight, witness, .. } = self.transaction;
        let program = Program { name: name.clone(), weight: *weight, steps, witness: None };
        self.builder.witnessed(program, witness.as_deref())
    }

    /// Parameters of different transactions have nothing to do with each other.
    fn qualified(&self, name: &str) -> String {
        format!("{}.{name}", self.transaction.name)
    }

    fn step(&self, place: &str, action: Action) -> Step {
        Step { place: format!("transaction {}, {place}", self.transaction.name).into(), action }
    }

    fn begin(&self) -> String {
        let isolation = self.transaction.isolation.unwrap_or(self.spec.isolation);
        let mut sql = "BEGIN".to_owned();
        // Read committed is the server's default, but a server may be configured otherwise.
        if self.transaction.isolation.is_some() || isolation != Isolation::ReadCommitted {
            sql = format!("{sql} ISOLATION LEVEL {}", isolation.sql());
        }
        if self.transaction.read_only {
            sql.push_str(" READ ONLY");
        }
        sql
    }

    /// BEGIN or COMMIT, prepared once for all transactions.
    fn control(&mut self, name: &str, sql: &str) -> Result<Step, SpecError> {
        let statement = if let Some(statement) = self.ends.get(sql) {
            *statement
        } else {
            let statement = self.builder.statement(name, sql, &[], Results::Binary);
            statement.map_err(|fact| self.refused(name, &fact))?
        };
        self.ends.insert(sql.to_owned(), statement);
        let effect = Effect::of(sql);
        let execution =
            Execution { statement, parameters: vec![], effect, rows: None, store: None };
        Ok(self.step(name, Action::Execute(execution)))
    }

    fn execution(
        &mut self,
        at: usize,
        sql: &Sql,
        used: &mut Vec<String>,
    ) -> Result<Execution, String> {
        let pieces = one_statement(sql.text())?;
        let mut parameters: Vec<(usize, Form)> = Vec::new();
        let text = numbered(&pieces, |name| {
            let (slot, form) = self.argument(name)?;
            used.push(name.to_owned());
            if let Some(known) = parameters.iter().position(|(known, _)| *known == slot) {
                return Ok(known);
            }
            parameters.push((slot, form));
            Ok(parameters.len() - 1)
        })?;
        let effect = Effect::of(&text);
        if effect != Effect::None {
            return Err(
                "a statement begins or ends a transaction, which the mix does by itself".into()
            );
        }
        let forms: Vec<Form> = parameters.iter().map(|(_, form)| *form).collect();
        let name = format!("{}.{}", self.transaction.name, at + 1);
        let statement = self.builder.statement(&name, &text, &forms, Results::Binary)?;
        Ok(Execution { statement, parameters, effect, rows: sql.rows(), store: None })
    }

    /// A parameter, or a variable of the mix, as a statement needs it.
    fn argument(&mut self, name: &str) -> Result<(usize, Form), String> {
        if let Some(parameter) = self.transaction.params.get(name) {
            return Ok((self.builder.slot(&self.qualified(name)), form(parameter)));
        }
        if self.builder.defined(name).is_some() {
            let form = if name == REQUEST_ID { Form::Bigint } else { Form::Inferred };
            return Ok((self.builder.slot(name), form));
        }
        let known: Vec<&str> = self.transaction.params.keys().map(String::as_str).collect();
        Err(format!("parameter :{name} is unknown, params has {}", listed(&known)))
    }

    fn all_used(&self, used: &[String]) -> Result<(), SpecError> {
        let computed: Vec<&str> =
            self.transaction.params.values().filter_map(|one| one.value.as_deref()).collect();
        for name in self.transaction.params.keys() {
            let in_value = computed.iter().any(|text| text.contains(&format!(":{name}")));
            if !used.contains(name) && !in_value {
                return Err(self.refused(&format!("parameter {name}"), "no statement uses it"));
            }
        }
        Ok(())
    }

    fn source(&mut self, parameter: &Parameter) -> Result<Source, String> {
        sources(parameter)?;
        let scale = match (parameter.kind, parameter.places) {
            (ParameterKind::Numeric, places) => {
                let places = places.unwrap_or(0);
                if places > PLACES_MAX {
                    return Err(format!("places is {places}, allowed is 0 to {PLACES_MAX}"));
                }
                10_i64.pow(u32::from(places))
            }
            (_, None) => 1,
            (_, Some(places)) => {
                return Err(format!("places is {places}, which only numeric has"));
            }
        };
        if let Some(text) = &parameter.value {
            return self.computed(text, parameter).map(Source::Expression);
        }
        if let Some(start) = &parameter.sequence {
            if parameter.kind != ParameterKind::Bigint {
                return Err("sequence is for type bigint".into());
            }
            return Ok(Source::Sequence { start: self.bound(start)? });
        }
        if let Some([low, high]) = &parameter.string {
            return self.characters(low, high, parameter.kind);
        }
        if parameter.kind == ParameterKind::Text {
            return Err("type text takes string or value".into());
        }
        if let Some([a, low, high, c]) = &parameter.nurand {
            let [a, low, high, c] =
                [self.bound(a)?, self.bound(low)?, self.bound(high)?, self.bound(c)?];
            return nurand(a, low, high, c, parameter.kind);
        }
        self.distribution(parameter, scale).map(Source::Expression)
    }

    fn characters(&self, low: &Bound, high: &Bound, kind: ParameterKind) -> Result<Source, String> {
        let (low, high) = (self.bound(low)?, self.bound(high)?);
        if kind != ParameterKind::Text {
            return Err("string is for type text".into());
        }
        if low < 0 || high < low || high > STRING_MAX {
            return Err(format!("string is {low} to {high} long, allowed is 0 to {STRING_MAX}"));
        }
        // Both fit: see above.
        let narrow = |length| i32::try_from(length).unwrap_or(i32::MAX);
        Ok(Source::Characters(narrow(low), narrow(high)))
    }

    /// An expression of parameters that are drawn, and of variables.
    fn computed(&mut self, text: &str, parameter: &Parameter) -> Result<Expression, String> {
        if parameter.places.is_some() {
            return Err("value and places exclude each other".into());
        }
        let (transaction, builder) = (self.transaction, &mut *self.builder);
        parse::expression(text, &mut |name| match transaction.params.get(name) {
            Some(Parameter { value: None, kind, .. }) => match kind {
                ParameterKind::Int | ParameterKind::Bigint => {
                    Ok(builder.slot(&format!("{}.{name}", transaction.name)))
                }
                _ => Err(format!("parameter :{name} is neither int nor bigint")),
            },
            Some(_) => Err(format!("parameter :{name} is computed itself")),
            None if builder.defined(name).is_some() => Ok(builder.slot(name)),
            None => Err(format!("parameter or variable :{name} is unknown")),
        })
    }

    /// A call of the random function, its arguments constants.
    fn distribution(&self, parameter: &Parameter, scale: i64) -> Result<Expression, String> {
        let Parameter { uniform, zipf, normal, exponential, kind, .. } = parameter;
        let shaped = [
            (zipf, Function::RandomZipfian, 0.0, ZIPF_MAX),
            (normal, Function::RandomGaussian, NORMAL_MIN, f64::MAX),
            (exponential, Function::RandomExponential, 0.0, f64::MAX),
        ];
        let found = shaped.iter().find_map(|(shape, function, least, most)| {
            shape.as_ref().map(|(low, high, s)| (*function, low, high, Some((*s, *least, *most))))
        });
        let plain = || uniform.as_ref().map(|[low, high]| (Function::Random, low, high, None));
        let Some((function, low, high, shape)) = found.or_else(plain) else {
            return Err("parameter has no source".into());
        };
        let (low, high) = (self.bound(low)?, self.bound(high)?);
        let scaled = |bound: i64| {
            bound.checked_mul(scale).ok_or_else(|| format!("{bound} is too large for its places"))
        };
        let (low, high) = (scaled(low)?, scaled(high)?);
        span(low, high)?;
        fits(*kind, low, high)?;
        let int = |value| Expression::Constant(Value::Int(value));
        let mut arguments = vec![int(low), int(high)];
        if let Some((s, least, most)) = shape {
            let above = if least > 0.0 { s >= least } else { s > 0.0 };
            if !above || s > most {
                return Err(format!("shape is {s}, which the distribution does not allow"));
            }
            arguments.push(Expression::Constant(Value::Double(s)));
        }
        Ok(Expression::Call(function, arguments))
    }

    fn bound(&self, bound: &Bound) -> Result<i64, String> {
        match bound {
            Bound::Number(number) => Ok(*number),
            Bound::Expression(text) => constant(text, self.builder)?.int(),
        }
    }
}

/// Parameters: those that are drawn, then those that are computed from them.
fn in_order(transaction: &Transaction) -> Vec<(&str, &Parameter)> {
    let mut all: Vec<(&str, &Parameter)> =
        transaction.params.iter().map(|(name, one)| (name.as_str(), one)).collect();
    all.sort_by_key(|(_, parameter)| parameter.value.is_some());
    all
}

/// Exactly one source.
fn sources(parameter: &Parameter) -> Result<(), String> {
    let Parameter { uniform, zipf, nurand, normal, exponential, sequence, string, value, .. } =
        parameter;
    let given = [
        ("uniform", uniform.is_some()),
        ("zipf", zipf.is_some()),
        ("nurand", nurand.is_some()),
        ("normal", normal.is_some()),
        ("exponential", exponential.is_some()),
        ("sequence", sequence.is_some()),
        ("string", string.is_some()),
        ("value", value.is_some()),
    ];
    let named: Vec<&str> = given.iter().filter(|(_, is)| *is).map(|(name, _)| *name).collect();
    if named.len() == 1 {
        return Ok(());
    }
    let all: Vec<&str> = given.iter().map(|(name, _)| *name).collect();
    Err(format!("source of its values is {}, wanted is one of {}", listed(&named), all.join(", ")))
}

fn listed(names: &[&str]) -> String {
    if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
}

fn nurand(a: i64, low: i64, high: i64, c: i64, kind: ParameterKind) -> Result<Source, String> {
    if kind == ParameterKind::Numeric {
        return Err("nurand is for types int and bigint".into());
    }
    span(low, high)?;
    fits(kind, low, high)?;
    if low < 0 || high >= i64::MAX / 4 {
        return Err(format!("nurand goes from {low} to {high}, allowed is 0 and more"));
    }
    if !(1..i64::MAX / 4).contains(&a) || !(a.cast_unsigned() + 1).is_power_of_two() {
        return Err(format!("nurand's A is {a}, it must be a power of two less one"));
    }
    if !(0..=a).contains(&c) {
        return Err(format!("nurand's C is {c}, allowed is 0 to {a}"));
    }
    Ok(Source::NuRand { a, low, high, c })
}

fn fits(kind: ParameterKind, low: i64, high: i64) -> Result<(), String> {
    let narrow = |bound| i32::try_from(bound).is_ok();
    if kind != ParameterKind::Int || (narrow(low) && narrow(high)) {
        return Ok(());
    }
    Err(format!("{low} to {high} does not fit into int; use bigint"))
}

fn form(parameter: &Parameter) -> Form {
    match parameter.kind {
        ParameterKind::Int => Form::Int,
        ParameterKind::Bigint => Form::Bigint,
        // A computed one is a number of any kind, which the server reads.
        ParameterKind::Numeric if parameter.value.is_some() => Form::Inferred,
        ParameterKind::Numeric => Form::Numeric(parameter.places.unwrap_or(0)),
        ParameterKind::Text => Form::Text,
    }
}

/// The pieces of a text that is one statement.
fn one_statement(text: &str) -> Result<Vec<Piece>, String> {
    let mut items = scan(text).map_err(|(line, fact)| format!("line {line}: {fact}"))?;
    match (items.pop().map(|item| item.what), items.is_empty()) {
        (None, _) => Err("it is empty".into()),
        (Some(What::Sql(pieces)), true) => Ok(pieces),
        (Some(What::Meta(name, _)), _) => Err(format!("\\{name} is a command of scripts")),
        (Some(What::Sql(_)), false) => {
            Err("it has several statements; write them as several strings".into())
        }
    }
}
