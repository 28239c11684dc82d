//! Runs one program over a session.
//!
//! Variables live as long as the transaction: what a request does is a function of (seed, terminal,
//! number), so that a repetition sends the same, and so does another run.

use std::time::Duration;

use wire::{Answers, Decimal, Error, Exchange, Param};

use super::{
    expression::{Expression, Scope},
    programs::{Programs, Request, STREAM_VALUES},
    steps::{Action, Effect, Execution, Form, Source, Step, Store},
    value::Value,
};
use crate::{draw::Draw, workload::Outcome};

/// Longer is a slip of the unit.
const SLEEP_MAX: Duration = Duration::from_secs(3600);
/// Room for a parameter that is sent as text.
const INFERRED_BYTES: usize = 32;

/// A program under way.
pub(super) struct Runner<'a, X> {
    programs: &'a Programs,
    steps: &'a [Step],
    request: Request,
    session: &'a mut X,
    variables: Vec<Option<Value>>,
    draw: Draw,
    /// Queued, not sent.
    queued: Vec<(&'a Execution, &'a str)>,
    /// Values that are sent as text.
    text: String,
    pipelining: bool,
    fate: Fate,
}

/// What became of the work so far.
#[derive(Clone, Copy, Debug, Default)]
struct Fate {
    /// A transaction block is open.
    in_block: bool,
    /// The last transaction was undone.
    rolled_back: bool,
    /// Something was committed: what follows must not be repeated from the start.
    committed: bool,
}

impl Fate {
    /// A statement was executed.
    fn follow(&mut self, effect: Effect) {
        match effect {
            Effect::Begins => self.in_block = true,
            Effect::None if self.in_block => {}
            Effect::None | Effect::Commits => {
                *self = Self { in_block: false, rolled_back: false, committed: true };
            }
            Effect::RollsBack => {
                *self = Self { in_block: false, rolled_back: true, committed: self.committed };
            }
        }
    }
}

impl<'a, X: Exchange> Runner<'a, X> {
    pub(super) fn new(programs: &'a Programs, request: Request, session: &'a mut X) -> Self {
        let Request { program, terminal, .. } = request;
        let mut variables = programs.initial.clone();
        variables[programs.client_id] = Some(Value::Int(i64::from(terminal)));
        variables[programs.request_id] = Some(Value::Int(request.ident()));
        Self {
            programs,
            steps: &programs.all[program].steps,
            request,
            session,
            variables,
            draw: Draw::new(programs.seed, STREAM_VALUES, u64::from(terminal), request.number),
            queued: Vec::new(),
            text: String::new(),
            pipelining: false,
            fate: Fate::default(),
        }
    }

    pub(super) async fn run_to_end(mut self) -> Result<Outcome, Error> {
        match self.run().await {
            // What was committed would happen twice.
            Err(error) if self.fate.committed => Err(error.partly_committed()),
            ended => ended,
        }
    }

    async fn run(&mut self) -> Result<Outcome, Error> {
        let mut at = 0;
        while let Some(step) = self.steps.get(at) {
            at = self.step(step, at + 1).await?;
        }
        let name = &self.programs.all[self.request.program].name;
        if self.pipelining {
            return Err(Error::protocol(format!("{name} ends within a pipeline")));
        }
        if self.fate.in_block {
            return Err(Error::protocol(format!("{name} ends within a transaction")));
        }
        Ok(if self.fate.rolled_back { Outcome::RolledBack } else { Outcome::Committed })
    }

    /// Does a step; returns the number of the next.
    async fn step(&mut self, step: &'a Step, next: usize) -> Result<usize, Error> {
        let place: &'a str = &step.place;
        match &step.action {
            Action::Set(slot, source) => {
                self.variables[*slot] = Some(self.draw_from(source, place)?);
            }
            Action::Execute(execution) => {
                self.queue(execution, place)?;
                if !self.pipelining {
                    self.send().await?;
                }
            }
            Action::Unless(condition, to) => {
                let value = self.value(condition, place)?;
                if !value.is_true().map_err(|fact| at_place(place, &fact))? {
                    return Ok(*to);
                }
            }
            Action::Jump(to) => return Ok(*to),
            Action::Sleep(amount, unit) => {
                let time = self.sleep(amount, *unit, place)?;
                self.session.pause(time).await?;
            }
            Action::StartPipeline => {
                if self.pipelining {
                    return Err(at_place(place, "a pipeline is open already"));
                }
                self.pipelining = true;
            }
            Action::SyncPipeline | Action::EndPipeline => {
                if !self.pipelining {
                    return Err(at_place(place, "no pipeline is open"));
                }
                self.pipelining = matches!(step.action, Action::SyncPipeline);
                self.send().await?;
            }
        }
        Ok(next)
    }

    fn value(&mut self, expression: &Expression, place: &str) -> Result<Value, Error> {
        let mut scope = Scope {
            variables: &self.variables,
            names: &self.programs.names,
            draw: &mut self.draw,
            default_seed: self.programs.default_seed,
        };
        expression.evaluate(&mut scope).map_err(|fact| at_place(place, &fact))
    }

    fn draw_from(&mut self, source: &Source, place: &str) -> Result<Value, Error> {
        Ok(match source {
            Source::Expression(expression) => return self.value(expression, place),
            Source::NuRand { a, low, high, c } => {
                let span = (high - low + 1).cast_unsigned();
                let first = self.draw.below((a + 1).cast_unsigned());
                let second = self.draw.below(span) + low.cast_unsigned();
                let mixed = (first | second).wrapping_add(c.cast_unsigned());
                Value::Int((mixed % span).cast_signed() + low)
            }
            Source::Sequence { start } => Value::Int(start.wrapping_add(self.request.ident())),
            Source::Characters(low, high) => {
                let length = usize::try_from(self.draw.int(*low, *high)).unwrap_or(0);
                let mut out = Vec::new();
                self.draw.alphanumeric(&mut out, length);
                Value::Text(String::from_utf8_lossy(&out).into())
            }
        })
    }

    fn sleep(
        &mut self,
        amount: &Expression,
        unit: Duration,
        place: &str,
    ) -> Result<Duration, Error> {
        let amount = self.value(amount, place)?.int().map_err(|fact| at_place(place, &fact))?;
        let time = u32::try_from(amount).ok().and_then(|amount| unit.checked_mul(amount));
        time.filter(|time| *time <= SLEEP_MAX).ok_or_else(|| {
            at_place(place, &format!("sleep of {amount} times {unit:?}, allowed is 0 to an hour"))
        })
    }

    /// Queues an execution; follows what it does to the transaction.
    fn queue(&mut self, execution: &'a Execution, place: &'a str) -> Result<(), Error> {
        self.text.clear();
        self.text.reserve(execution.parameters.len() * INFERRED_BYTES);
        // Text first: the parameters borrow it.
        let mut ends = Vec::with_capacity(execution.parameters.len());
        for (slot, form) in &execution.parameters {
            let null = match (&self.variables[*slot], form) {
                (None, _) => {
                    let name = &self.programs.names[*slot];
                    return Err(at_place(place, &format!("variable :{name} is not set yet")));
                }
                (Some(value), Form::Inferred | Form::Text) => !value.write(&mut self.text),
                (Some(value), _) => *value == Value::Null,
            };
            ends.push((self.text.len(), null));
        }
        let mut begin = 0;
        let mut params = Vec::with_capacity(ends.len());
        for ((slot, form), (end, null)) in execution.parameters.iter().zip(ends) {
            let text = &self.text[begin..end];
            begin = end;
            let value = self.variables[*slot].as_ref().unwrap_or(&Value::Null);
            let param = if null { Ok(Param::Null) } else { param(*form, text, value) };
            params.push(param.map_err(|fact| {
                at_place(place, &format!("variable :{}: {fact}", self.programs.names[*slot]))
            })?);
        }
        self.session.queue(execution.statement, &params);
        self.queued.push((execution, place));
        Ok(())
    }

    /// Sends what is queued, and looks at the answers.
    async fn send(&mut self) -> Result<(), Error> {
        if self.queued.is_empty() {
            return Ok(());
        }
        let widths = self.widths();
        let answers = self.session.exchange().await?;
        // Before the answers are looked at: one that is refused may have been committed.
        for (execution, _) in &self.queued {
            self.fate.follow(execution.effect);
        }
        let mut stored = Vec::new();
        for (at, (execution, place)) in self.queued.iter().enumerate() {
            check(answers, at, execution, place)?;
            if let Some(store) = &execution.store {
                stored.push((*execution, row_of(answers, at, widths[at], store, place)?));
            }
        }
        self.queued.clear();
        for (execution, row) in stored {
            self.store(execution, row);
        }
        Ok(())
    }

    /// How many columns each answer has, where one of them is to be stored.
    fn widths(&self) -> Vec<usize> {
        if self.queued.iter().all(|(execution, _)| execution.store.is_none()) {
            return Vec::new();
        }
        let width = |execution: &Execution| self.session.columns(execution.statement).len();
        self.queued.iter().map(|(execution, _)| width(execution)).collect()
    }

    /// Columns become variables; those that no script names are forgotten.
    fn store(&mut self, execution: &Execution, row: Option<Vec<Value>>) {
        let (Some(store), Some(row)) = (&execution.store, row) else { return };
        let columns = self.session.columns(execution.statement);
        for (column, value) in columns.iter().zip(row) {
            let name = format!("{}{column}", store.prefix);
            if let Some(slot) = self.programs.slots.get(&name) {
                self.variables[*slot] = Some(value);
            }
        }
    }
}

/// As many rows as the program wants.
fn check(answers: &Answers, at: usize, execution: &Execution, place: &str) -> Result<(), Error> {
    let Some(wanted) = execution.rows else { return Ok(()) };
    let got = answers.get(at).affected();
    if got == wanted {
        return Ok(());
    }
    Err(at_place(place, &format!("statement has {got} rows, wanted are {wanted}")))
}

/// The row that is to be stored; `None` where none needs to be.
fn row_of(
    answers: &Answers,
    at: usize,
    width: usize,
    store: &Store,
    place: &str,
) -> Result<Option<Vec<Value>>, Error> {
    let answer = answers.get(at);
    let count = answer.len();
    if store.one_row && count != 1 {
        return Err(at_place(place, &format!("\\gset expects one row, {count} came")));
    }
    let Some(row) = count.checked_sub(1).and_then(|last| answer.row(last)) else {
        return Ok(None);
    };
    let value = |field: Option<&[u8]>| match field {
        None => Value::Null,
        Some(bytes) => Value::Text(String::from_utf8_lossy(bytes).into()),
    };
    let mut fields = row.fields();
    (0..width).map(|_| fields.bytes().map(value)).collect::<Result<Vec<Value>, Error>>().map(Some)
}

fn param<'v>(form: Form, text: &'v str, value: &Value) -> Result<Param<'v>, String> {
    Ok(match form {
        Form::Inferred => Param::Inferred(text),
        Form::Text => Param::Text(text),
        Form::Bigint => Param::I64(value.int()?),
        Form::Numeric(scale) => Param::Decimal(Decimal::new(value.int()?, scale)),
        Form::Int => {
            let int = value.int()?;
            let int = i32::try_from(int).map_err(|_| format!("{int} does not fit into int"))?;
            Param::I32(int)
        }
    })
}

fn at_place(place: &str, fact: &str) -> Error {
    Error::protocol(format!("{place}: {fact}"))
}
