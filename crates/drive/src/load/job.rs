//! One piece of a load that one session does.

use wire::{Error, Session, Stream};
use workload::{
    copy::{HEADER, TRAILER},
    tpcc::rows::{RowSource, Target},
};

use super::progress::{Course, Shared};

/// Work for one session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Job {
    /// Streams batches of a table.
    Copy {
        /// The table.
        target: Target,
        /// Its batches.
        batches: std::ops::Range<u32>,
    },
    /// Runs SQL.
    Sql {
        /// For progress and errors, in the infinitive: `build order_line_pkey`.
        step: String,
        /// One or more statements.
        sql: String,
        /// What it counts as, in rows.
        units: u64,
    },
}

/// Why a job was not done.
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

impl Job {
    /// What it does, for people.
    pub(super) fn step(&self) -> String {
        match self {
            Self::Copy { target, batches } if target.grows() => {
                let warehouse = batches.start / target.batches_per_warehouse() + 1;
                format!("copy {}, warehouse {warehouse}", target.table())
            }
            Self::Copy { target, .. } => format!("copy {}", target.table()),
            Self::Sql { step, .. } => step.clone(),
        }
    }

    /// Does it; `buffer` is reused from job to job.
    pub(super) async fn run(
        &self,
        session: &mut Session<Stream>,
        rows: &RowSource,
        shared: &Shared,
        buffer: &mut Vec<u8>,
    ) -> Result<(), Unfinished> {
        match self {
            Self::Copy { target, batches } => {
                copy(session, rows, shared, buffer, *target, batches.clone()).await
            }
            Self::Sql { sql, units, .. } => {
                session.simple(sql).await?;
                shared.worked(*units);
                Ok(())
            }
        }
    }
}

async fn copy(
    session: &mut Session<Stream>,
    rows: &RowSource,
    shared: &Shared,
    buffer: &mut Vec<u8>,
    target: Target,
    batches: std::ops::Range<u32>,
) -> Result<(), Unfinished> {
    let sql = format!("COPY {} FROM STDIN (FORMAT binary)", target.table());
    let mut copy = session.copy_in(&sql).await?;
    copy.send(HEADER).await?;
    let mut made = 0;
    for batch in batches {
        if shared.course() != Course::On {
            return Err(Unfinished::Stopped);
        }
        let count = u64::from(rows.batch(target, batch, buffer));
        copy.send(buffer).await?;
        shared.sent(target, count, buffer.len() as u64);
        made += count;
    }
    copy.send(TRAILER).await?;
    let counted = copy.finish().await?;
    if counted == made {
        return Ok(());
    }
    Err(Unfinished::Failed(Error::protocol(format!("server took {counted} of {made} rows"))))
}
