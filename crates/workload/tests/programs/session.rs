//! A session that writes down what is sent and answers as it is told.

use std::{collections::VecDeque, future::Future, pin::pin, task, time::Duration};

use serde_json::Value;
use wire::{Answers, Error, Exchange, Param, Statement, StatementId, Timestamp};
use workload::{
    Outcome, Workload,
    program::programs::Programs,
    spec::SpecError,
    {mix, script},
};

/// What the next execution is answered with.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    /// Rows of text, `None` for NULL.
    Rows(Vec<Vec<Option<&'static str>>>),
    /// So many rows affected.
    Affected(u64),
    /// An error with this SQLSTATE.
    Error(&'static str),
}

/// Answers in order; `UPDATE 1` when there are no more.
#[derive(Default)]
pub(crate) struct Fake {
    pub(crate) statements: Vec<Statement>,
    pub(crate) replies: VecDeque<Reply>,
    /// Names of the columns of every statement.
    pub(crate) columns: Vec<String>,
    /// One line an execution; an empty one ends a round trip; `sleep 5ms` for a pause.
    pub(crate) sent: Vec<String>,
    pub(crate) queued: usize,
    pub(crate) answers: Answers,
}

impl Exchange for Fake {
    fn queue(&mut self, statement: StatementId, params: &[Param<'_>]) {
        let statement = &self.statements[usize::from(statement.0)];
        assert_eq!(statement.params.len(), params.len());
        let mut sql = statement.sql.clone();
        // From the last on, so that $1 does not find $10.
        for (at, param) in params.iter().enumerate().rev() {
            let shown = match param {
                Param::Null => "NULL".to_owned(),
                Param::I32(value) => format!("{value}::int"),
                Param::I64(value) => format!("{value}::bigint"),
                Param::Decimal(value) => format!("{}e-{}", value.unscaled, value.scale),
                Param::Text(value) => format!("{value:?}"),
                Param::Inferred(value) => format!("'{value}'"),
                other => panic!("{other:?} is not sent by programs"),
            };
            sql = sql.replace(&format!("${}", at + 1), &shown);
        }
        self.sent.push(sql);
        self.queued += 1;
    }

    async fn exchange(&mut self) -> Result<&Answers, Error> {
        self.sent.push(String::new());
        self.answers.clear();
        for _ in 0..std::mem::take(&mut self.queued) {
            match self.replies.pop_front().unwrap_or(Reply::Affected(1)) {
                Reply::Affected(count) => self.answers.finish(count),
                Reply::Error(sqlstate) => {
                    let severity = "ERROR".to_owned();
                    let text = "as told".to_owned();
                    return Err(Error::server(severity, sqlstate.to_owned(), text, None, None));
                }
                Reply::Rows(rows) => {
                    for row in &rows {
                        let mut bytes = Vec::new();
                        for field in row {
                            field.map_or(Param::Null, Param::Text).encode(&mut bytes);
                        }
                        self.answers.push_row(&bytes);
                    }
                    self.answers.finish(rows.len() as u64);
                }
            }
        }
        Ok(&self.answers)
    }

    fn columns(&self, _: StatementId) -> &[String] {
        &self.columns
    }

    async fn pause(&mut self, time: Duration) -> Result<(), Error> {
        self.sent.push(format!("sleep {time:?}"));
        Ok(())
    }
}

/// Nothing here waits.
pub(crate) fn now<T>(future: impl Future<Output = T>) -> T {
    let mut context = task::Context::from_waker(task::Waker::noop());
    match pin!(future).poll(&mut context) {
        task::Poll::Ready(value) => value,
        task::Poll::Pending => panic!("a test's future must not wait"),
    }
}

pub(crate) fn scripts(spec: &Value) -> Result<Programs, SpecError> {
    script::programs(&script::ScriptSpec::from_json(spec)?)
}

pub(crate) fn mixes(spec: &Value) -> Result<Programs, SpecError> {
    mix::programs(&mix::MixSpec::from_json(spec)?)
}

/// Performs a terminal's request.
pub(crate) fn perform<W: Workload>(
    workload: &W,
    session: &mut Fake,
    (terminal, number): (u32, u64),
) -> Result<Outcome, Error> {
    session.statements = workload.statements().to_vec();
    let (request, _) = workload.request(terminal, number);
    now(workload.perform(session, &request, Timestamp(0)))
}

/// One script, performed once: what was sent, and how it ended.
pub(crate) fn run(text: &str, session: &mut Fake) -> Result<Outcome, String> {
    let spec = serde_json::json!({"kind": "script", "seed": 7, "scale": 3,
                                  "scripts": [{"name": "a.sql", "text": text}]});
    let programs = scripts(&spec).map_err(|refused| refused.fact)?;
    perform(&programs, session, (5, 0)).map_err(|error| error.to_string())
}
