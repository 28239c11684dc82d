//! From the parts of a script to the steps of a program.

use std::{collections::HashSet, time::Duration};

use wire::Results;

use super::spec::Script;
use crate::{
    program::{
        build::{Builder, numbered, without_comments},
        expression::Expression,
        parse::{self, is_name, name_length},
        scan::{Item, Piece, What, scan},
        steps::{Action, Effect, Execution, Form, Program, Source, Step, Store},
        value::Value,
    },
    spec::{SpecError, meant},
};

/// Names that some script may have set by the time it is asked.
#[derive(Debug)]
pub(super) struct Known {
    names: HashSet<String>,
    /// Of `\gset` and `\aset`: the columns' names are known to the server only.
    prefixes: HashSet<String>,
}

impl Known {
    pub(super) fn of(scripts: &[Script], builder: &Builder) -> Result<Self, SpecError> {
        let (_, names) = builder.scope();
        let mut known = Self { names: names.iter().cloned().collect(), prefixes: HashSet::new() };
        for script in scripts {
            for item in items(script)? {
                if let What::Meta(name, arguments) = item.what {
                    let first = arguments.split_whitespace().next().unwrap_or_default().to_owned();
                    match name.as_str() {
                        "set" => drop(known.names.insert(first)),
                        "gset" | "aset" => drop(known.prefixes.insert(first)),
                        _ => {}
                    }
                }
            }
        }
        Ok(known)
    }

    fn check(&self, name: &str) -> Result<(), String> {
        let stored = |prefix: &String| name.starts_with(prefix.as_str());
        if self.names.contains(name) || self.prefixes.iter().any(stored) {
            return Ok(());
        }
        let mut known: Vec<&str> = self.names.iter().map(String::as_str).collect();
        known.sort_unstable(); // of two that are as near, always the same
        Err(format!("variable :{name} is never set{}", meant(name, &known)))
    }
}

fn items(script: &Script) -> Result<Vec<Item>, SpecError> {
    scan(&script.text).map_err(|(line, fact)| refused(script, line, &fact))
}

fn refused(script: &Script, line: usize, fact: &str) -> SpecError {
    SpecError::plain(format!("{}, line {line}: {fact}", script.name))
}

/// Compiles one script.
pub(super) fn compile(
    script: &Script,
    known: &Known,
    builder: &mut Builder,
) -> Result<Program, SpecError> {
    let mut compiler =
        Compiler { script, known, builder, steps: Vec::new(), open: Vec::new(), executions: 0 };
    for Item { line, what } in items(script)? {
        let done = match what {
            What::Sql(pieces) => compiler.sql(&pieces, line),
            What::Meta(name, arguments) => compiler.meta(&name, &arguments, line),
        };
        done.map_err(|fact| refused(script, line, &fact))?;
    }
    if let Some(If { line, .. }) = compiler.open.last() {
        return Err(refused(script, *line, "\\if without \\endif"));
    }
    if compiler.executions == 0 {
        return Err(refused(script, 1, "script has no SQL statement"));
    }
    let Compiler { steps, builder, .. } = compiler;
    let program =
        Program { name: script.name.clone(), weight: script.weight, steps, witness: None };
    builder.witnessed(program, script.witness.as_deref())
}

struct Compiler<'a> {
    script: &'a Script,
    known: &'a Known,
    builder: &'a mut Builder,
    steps: Vec<Step>,
    open: Vec<If>,
    executions: usize,
}

/// An `\if` that has no `\endif` yet.
struct If {
    line: usize,
    /// The step that skips the present branch.
    skip: Option<usize>,
    /// Steps that leave a branch that was taken.
    leave: Vec<usize>,
}

impl Compiler<'_> {
    fn add(&mut self, action: Action, line: usize) {
        let place = format!("{}, line {line}", self.script.name).into();
        self.steps.push(Step { place, action });
    }

    fn sql(&mut self, pieces: &[Piece], line: usize) -> Result<(), String> {
        let mut parameters = Vec::new();
        let sql = numbered(pieces, |name| {
            self.known.check(name)?;
            parameters.push((self.builder.slot(name), Form::Inferred));
            Ok(parameters.len() - 1)
        })?;
        let forms = vec![Form::Inferred; parameters.len()];
        let name = format!("{}:{line}", self.script.name);
        let effect = Effect::of(&sql);
        // Sessions know what ends a transaction by its first word, too.
        let sent = if effect == Effect::None { &sql } else { without_comments(&sql) };
        let statement = self.builder.statement(&name, sent, &forms, Results::Text)?;
        let execution = Execution { statement, parameters, effect, rows: None, store: None };
        self.executions += 1;
        self.add(Action::Execute(execution), line);
        Ok(())
    }

    fn meta(&mut self, name: &str, arguments: &str, line: usize) -> Result<(), String> {
        match name {
            "set" => {
                let length = name_length(arguments);
                let (variable, expression) = arguments.split_at(length);
                let starts = variable.starts_with(|c: char| is_name(c) && !c.is_ascii_digit());
                if !starts || !expression.starts_with(char::is_whitespace) {
                    return Err("\\set needs a name and an expression".into());
                }
                let expression = self.expression(expression)?;
                let slot = self.builder.slot(variable);
                self.add(Action::Set(slot, Source::Expression(expression)), line);
            }
            "gset" | "aset" => self.store(name, arguments)?,
            "if" => {
                let condition = self.expression(arguments)?;
                let skip = Some(self.steps.len());
                self.add(Action::Unless(condition, 0), line);
                self.open.push(If { line, skip, leave: Vec::new() });
            }
            "elif" | "else" | "endif" => self.branch(name, arguments, line)?,
            "sleep" => self.sleep(arguments, line)?,
            "startpipeline" | "syncpipeline" | "endpipeline" => {
                none_left(name, arguments)?;
                let action = match name {
                    "startpipeline" => Action::StartPipeline,
                    "syncpipeline" => Action::SyncPipeline,
                    _ => Action::EndPipeline,
                };
                self.add(action, line);
            }
            "shell" | "setshell" => {
                return Err(format!(
                    "\\{name} starts a program, whose time would be measured; it is not supported"
                ));
            }
            "setrandom" => {
                return Err(
                    "\\setrandom left pgbench in version 9.6; write \\set x random(1, 10)".into()
                );
            }
            _ => {
                return Err(format!(
                    "meta command \\{name} is unknown, known are \\set, \\gset, \\aset, \\if, \
                     \\elif, \\else, \\endif, \\sleep, \\startpipeline, \\syncpipeline, \
                     \\endpipeline"
                ));
            }
        }
        Ok(())
    }

    fn expression(&mut self, text: &str) -> Result<Expression, String> {
        let (known, builder) = (self.known, &mut *self.builder);
        parse::expression(text, &mut |name| {
            known.check(name)?;
            Ok(builder.slot(name))
        })
    }

    /// `\gset` and `\aset` say what becomes of the statement before them.
    fn store(&mut self, name: &str, arguments: &str) -> Result<(), String> {
        let mut words = arguments.split_whitespace();
        let prefix = words.next().unwrap_or_default().to_owned();
        if words.next().is_some() || !prefix.chars().all(is_name) {
            return Err(format!("\\{name} takes one prefix, not {arguments:?}"));
        }
        match self.steps.last_mut().map(|step| &mut step.action) {
            Some(Action::Execute(execution)) if execution.store.is_none() => {
                execution.store = Some(Store { prefix, one_row: name == "gset" });
                Ok(())
            }
            _ => Err(format!("\\{name} does not follow a statement")),
        }
    }

    /// Ends a branch of the innermost `\if` and begins the next.
    fn branch(&mut self, name: &str, arguments: &str, line: usize) -> Result<(), String> {
        let mut open = self.open.pop().ok_or_else(|| format!("\\{name} without \\if"))?;
        if name == "endif" {
            none_left(name, arguments)?;
            self.land(open.skip);
            for leave in open.leave {
                self.land(Some(leave));
            }
            return Ok(());
        }
        if open.skip.is_none() {
            return Err(format!("\\{name} after \\else"));
        }
        open.leave.push(self.steps.len());
        self.add(Action::Jump(0), line);
        self.land(open.skip);
        if name == "elif" {
            let condition = self.expression(arguments)?;
            open.skip = Some(self.steps.len());
            self.add(Action::Unless(condition, 0), line);
        } else {
            none_left(name, arguments)?;
            open.skip = None;
        }
        self.open.push(open);
        Ok(())
    }

    /// A jump leads to the next step.
    fn land(&mut self, jump: Option<usize>) {
        let next = self.steps.len();
        if let Some(Step { action: Action::Unless(_, to) | Action::Jump(to), .. }) =
            jump.and_then(|jump| self.steps.get_mut(jump))
        {
            *to = next;
        }
    }

    fn sleep(&mut self, arguments: &str, line: usize) -> Result<(), String> {
        let length = match arguments.strip_prefix(':') {
            Some(name) => 1 + name_length(name),
            None => arguments.find(|c: char| !c.is_ascii_digit()).unwrap_or(arguments.len()),
        };
        let (amount, unit) = arguments.split_at(length);
        let unit = match unit.trim().to_ascii_lowercase().as_str() {
            "us" => Duration::from_micros(1),
            "ms" => Duration::from_millis(1),
            "" | "s" => Duration::from_secs(1),
            unit => return Err(format!("unit of \\sleep is {unit}, known are us, ms, s")),
        };
        let wrong = || format!("\\sleep needs a number or :variable, not {arguments:?}");
        let amount = match amount.strip_prefix(':') {
            Some("") => return Err(wrong()),
            Some(name) => {
                self.known.check(name)?;
                Expression::Variable(self.builder.slot(name))
            }
            None => Expression::Constant(Value::Int(amount.parse().map_err(|_| wrong())?)),
        };
        self.add(Action::Sleep(amount, unit), line);
        Ok(())
    }
}

fn none_left(name: &str, arguments: &str) -> Result<(), String> {
    if arguments.is_empty() {
        return Ok(());
    }
    Err(format!("\\{name} takes no arguments, not {arguments:?}"))
}
