//! How one session does one step.

use std::ops::Range;

use wire::{Error, Session, Stream};
use workload::{
    copy::{HEADER, TRAILER},
    dataset::{Dataset, Units},
    made,
};

use super::{
    ledger,
    progress::{LoadState, Shared},
    steps::{Action, Step},
};

/// Has the server count the rows of a COPY now. A session counts once a second at most, and what
/// comes after the VACUUM makes each table due for autovacuum, within the first minute of each
/// trial. Before 15 nothing asks for it.
const COUNTED: &str = "DO $$ BEGIN IF current_setting('server_version_num')::int >= 150000 THEN \
    PERFORM pg_stat_force_next_flush(); END IF; END $$";

/// Why a step was not done.
#[derive(Debug)]
pub(super) enum Unfinished {
    /// The load does not go on.
    Stopped,
    /// The server, or the connection.
    Failed(Error),
}

impl From<Error> for Unfinished {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// Does a step and notes it in the ledger; `buffer` is used again from step to step.
pub(super) async fn run(
    step: &Step,
    session: &mut Session<Stream>,
    dataset: &dyn Dataset,
    shared: &Shared,
    buffer: &mut Vec<u8>,
) -> Result<(), Unfinished> {
    let note = ledger::note(&step.name);
    match &step.action {
        Action::Sql { sql, atomic: true } => {
            let made = made::hanging();
            session.simple(&format!("BEGIN; {sql}; {made}; {note}; COMMIT")).await?;
            shared.worked(step.cost);
        }
        Action::Sql { sql, atomic: false } => {
            // A commit that is not on disk yet keeps the vacuum of any table from seeing rows of
            // its neighbours in the commit log as visible to all.
            session.simple("SET synchronous_commit = on").await?;
            session.simple(sql).await?;
            session.simple(&note).await?;
            shared.worked(step.cost);
        }
        Action::Copy { table, relation, before, sql, units, batches } => {
            session.simple(&format!("BEGIN; {before}; {}", guard(relation))).await?;
            let rows = Rows { dataset, table: *table, units, batches: batches.clone() };
            rows.copy(sql, step.cost, session, shared, buffer).await?;
            session.simple(&format!("{note}; COMMIT; {COUNTED}")).await?;
        }
    }
    Ok(())
}

/// Fails if the relation, which is locked by now, is not the one that the load made: rows are never
/// copied into a table that somebody put in its place.
fn guard(relation: &str) -> String {
    format!(
        "DO $$ BEGIN IF NOT EXISTS (SELECT FROM {} WHERE kind = 'relation' \
         AND id = '{relation}'::regclass) THEN RAISE EXCEPTION \
         'table {relation} is not the one that the load made'; END IF; END $$",
        made::TABLE
    )
}

/// Rows to stream.
struct Rows<'a> {
    dataset: &'a dyn Dataset,
    table: usize,
    units: &'a Units,
    batches: Range<u32>,
}

impl Rows<'_> {
    async fn copy(
        self,
        sql: &str,
        cost: u64,
        session: &mut Session<Stream>,
        shared: &Shared,
        buffer: &mut Vec<u8>,
    ) -> Result<(), Unfinished> {
        let mut copy = session.copy_in(sql).await?;
        copy.send(HEADER).await?;
        let (mut made, mut worked) = (0, 0);
        let count = u64::from(self.batches.end - self.batches.start);
        for (at, batch) in (1..).zip(self.batches) {
            if shared.state() != LoadState::Running {
                return Err(Unfinished::Stopped);
            }
            let rows = u64::from(self.dataset.batch_of(self.table, self.units, batch, buffer));
            copy.send(buffer).await?;
            made += rows;
            // In parts that sum up to the whole.
            let until = u64::try_from(u128::from(cost) * at / u128::from(count)).unwrap_or(cost);
            shared.sent(self.table, rows, buffer.len() as u64, until - worked);
            worked = until;
        }
        copy.send(TRAILER).await?;
        let counted = copy.finish().await?;
        if counted == made {
            return Ok(());
        }
        Err(Unfinished::Failed(Error::protocol(format!("server took {counted} of {made} rows"))))
    }
}
