//! The built-in workloads: requests from a seed, and their transactions over a session.

use serde_json::Value;
use wire::{Error, Exchange, Param, Statement, StatementId, Timestamp};

use super::{
    audit::{self, PgbenchAudit},
    request::{DELTA_MAX, Request},
    schema::{ACCOUNTS, TELLERS, wide_accounts},
    spec::{Kind, PgbenchSpec},
    statements,
};
use crate::{
    digest,
    draw::Draw,
    plausible::Plausible,
    spec::{Face, SpecError},
    witness::Witness,
    workload::{AuditLine, Outcome, Timing, Workload},
};

/// Stream of draws; a number never changes its meaning.
const STREAM_REQUESTS: u64 = 211;
/// One of the built-in workloads.
#[derive(Clone, Debug)]
pub struct Pgbench {
    spec: PgbenchSpec,
    kinds: Vec<String>,
    statements: Vec<Statement>,
    /// One transaction, in order.
    plan: Vec<StatementId>,
}

impl Pgbench {
    /// From the JSON of a [`PgbenchSpec`].
    ///
    /// # Errors
    ///
    /// As [`PgbenchSpec::from_json`].
    pub fn from_spec(spec: &Value) -> Result<Self, SpecError> {
        Ok(Self::new(PgbenchSpec::from_json(spec)?))
    }

    /// From a checked specification.
    #[must_use]
    pub fn new(spec: PgbenchSpec) -> Self {
        let statements = statements::all(&spec);
        let count = u16::try_from(statements.len()).unwrap_or(u16::MAX);
        let plan = (0..count).map(StatementId).collect();
        Self { kinds: vec![spec.kind.name().to_owned()], statements, plan, spec }
    }

    /// The specification.
    #[must_use]
    pub fn spec(&self) -> &PgbenchSpec {
        &self.spec
    }

    fn queue<X: Exchange>(&self, session: &mut X, statement: StatementId, request: Request) {
        let Request { aid, bid, tid, delta, .. } = request;
        let aid = if wide_accounts(self.spec.scale) {
            Param::I64(aid)
        } else {
            Param::I32(i32::try_from(aid).unwrap_or(i32::MAX)) // fits: the scale says so
        };
        let [bid, tid, delta] = [bid, tid, delta].map(Param::I32);
        match self.statements[usize::from(statement.0)].name.as_str() {
            statements::ACCOUNTS_UPDATE => session.queue(statement, &[delta, aid]),
            statements::ACCOUNTS_SELECT => session.queue(statement, &[aid]),
            statements::TELLERS_UPDATE => session.queue(statement, &[delta, tid]),
            statements::BRANCHES_UPDATE => session.queue(statement, &[delta, bid]),
            statements::HISTORY_INSERT => session.queue(statement, &[tid, bid, aid, delta]),
            statements::CALL => session.queue(statement, &[aid, bid, tid, delta]),
            _ => session.queue(statement, &[]),
        }
    }

    /// The statement found its row; the balance is read, as a client would.
    fn look(
        &self,
        statement: StatementId,
        answer: wire::Answer<'_>,
        request: Request,
    ) -> Result<(), Error> {
        let name = self.statements[usize::from(statement.0)].name.as_str();
        let Request { aid, bid, tid, .. } = request;
        let found = match name {
            statements::ACCOUNTS_SELECT | statements::CALL => match answer.row(0) {
                Some(row) => row.i32(0).map(|_balance| 1)?,
                None => 0,
            },
            statements::BEGIN | statements::END => return Ok(()),
            _ => answer.affected(),
        };
        if found == 1 {
            return Ok(());
        }
        Err(Error::protocol(format!(
            "{name} found {found} rows for account {aid}, teller {tid}, branch {bid}: the database \
             has another scale than {}, or was changed by others",
            self.spec.scale
        )))
    }
}

impl Workload for Pgbench {
    type Request = Request;
    type Audit = PgbenchAudit;

    fn kinds(&self) -> &[String] {
        &self.kinds
    }

    fn statements(&self) -> &[Statement] {
        &self.statements
    }

    fn setup(&self) -> Vec<String> {
        statements::setup(&self.spec)
    }

    fn request(&self, terminal: u32, number: u64) -> (Request, Timing) {
        let mut draw = Draw::new(self.spec.seed, STREAM_REQUESTS, u64::from(terminal), number);
        let scale = self.spec.scale;
        let accounts = u64::from(ACCOUNTS) * u64::from(scale.unsigned_abs());
        let request = Request {
            aid: draw.below(accounts).cast_signed() + 1,
            bid: draw.int(1, scale),
            tid: draw.int(1, scale * TELLERS),
            delta: draw.int(-DELTA_MAX, DELTA_MAX),
            scale,
        };
        (request, Timing { kind: 0, keying_ns: 0, think_ns: 0, deferred: false })
    }

    fn digest(&self, request: &Request) -> u64 {
        digest::of(request)
    }

    fn witness(&self, request: &Request, _now: Timestamp) -> Option<Witness> {
        let Request { aid, bid, tid, delta, .. } = *request;
        let key = [tid.into(), bid.into(), aid, delta.into()];
        (self.spec.kind != Kind::SelectOnly).then(|| Witness::row(key))
    }

    async fn perform<X: Exchange>(
        &self,
        session: &mut X,
        request: &Request,
        _now: Timestamp,
    ) -> Result<Outcome, Error> {
        if self.spec.face == Face::Pipeline {
            for statement in &self.plan {
                self.queue(session, *statement, *request);
            }
            let answers = session.exchange().await?;
            for (at, statement) in self.plan.iter().enumerate() {
                self.look(*statement, answers.get(at), *request)?;
            }
            return Ok(Outcome::Committed);
        }
        for statement in &self.plan {
            self.queue(session, *statement, *request);
            let answer = session.exchange().await?.get(0);
            self.look(*statement, answer, *request)?;
        }
        Ok(Outcome::Committed)
    }

    fn plausible(&self, statement: &Statement) -> Option<Plausible> {
        Some(match statement.name.as_str() {
            statements::BEGIN => Plausible::done("BEGIN"),
            statements::END => Plausible::done("COMMIT"),
            statements::ACCOUNTS_SELECT | statements::CALL => {
                Plausible::rows("SELECT", &[&[Param::I32(1234)]])
            }
            statements::HISTORY_INSERT => Plausible::done("INSERT 0 1"),
            _ => Plausible::done("UPDATE 1"),
        })
    }

    fn audit_lines(&self, audit: &PgbenchAudit) -> Vec<AuditLine> {
        audit::lines(&self.spec, audit)
    }
}
