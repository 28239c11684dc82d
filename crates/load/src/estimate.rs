//! What a load would need, before it begins: space on disk, rows, time. Nothing is changed; the
//! server's speed is measured on a small temporary table.

use schemars::JsonSchema;
use serde::Serialize;
use tokio::runtime;
use wire::{Error, Session, Stream};
use workload::{
    copy::{HEADER, TRAILER},
    dataset::{Dataset, Units},
};

use super::{
    plan::{Asked, Plan},
    progress::real,
    report::Choice,
    spec::LoadSpec,
    step_queue::StepQueue,
    steps::{Step, part},
    strategy::Copies,
};
use drive::{clock::steady_ns, error::RunError, measure::cpu::nanos};

/// COPYs that the speed is measured with, after one to warm up: the median counts.
const SAMPLES: u32 = 5;
/// Batches of each.
const SAMPLE_BATCHES: u32 = 2;
/// A temporary table spares the server WAL and a part of the writing; loads of ten warehouses took
/// so much longer, in percent, than the sample said.
const REAL_PERCENT: u64 = 145;
/// Bytes of a tuple being sorted: header and pointer, and each column.
const SORT_TUPLE: u64 = 16;
const SORT_COLUMN: u64 = 8;

/// What a load would need.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct LoadEstimate {
    /// Of this format: 1.
    pub version: u32,
    /// What units are called: `warehouses`.
    pub unit: &'static str,
    /// So many there are to be.
    pub units: u32,
    /// So many are there.
    pub units_before: u32,
    /// Rows to send.
    pub rows: u64,
    /// Bytes of tables and indexes that come.
    pub disk_bytes: u64,
    /// Bytes of temporary files while indexes are built.
    pub sort_bytes: u64,
    /// Bytes of WAL written.
    pub wal_bytes: u64,
    /// How long, in seconds; absent where no temporary table can be made.
    pub seconds: Option<f64>,
    /// Sessions.
    pub connections: usize,
    /// What the load would choose.
    pub choices: Vec<Choice>,
}

/// Looks at the server and the database, and refuses what a load would refuse.
///
/// # Errors
///
/// The specification is refused, the server cannot be reached, the database has tables already.
pub fn estimate(spec: LoadSpec) -> Result<LoadEstimate, RunError> {
    let (asked, _) = Asked::new(spec)?;
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| RunError::internal(format!("start a runtime: {e}")))?;
    runtime.block_on(async {
        let mut session = asked.connect().await?;
        let (plan, _) = asked.draft(&mut session).await?;
        let ns_per_unit = match sample(&plan, &mut session).await {
            Ok(measured) => measured,
            // Not everybody may make temporary tables.
            Err(e) if e.sqlstate() == Some("42501") => None,
            Err(e) => return Err(RunError::target(&"measure the server's speed", &e)),
        };
        let _unheard = session.close().await;
        Ok(needs(&asked, &plan, ns_per_unit))
    })
}

fn needs(asked: &Asked, plan: &Plan, ns_per_unit: Option<f64>) -> LoadEstimate {
    let queue = StepQueue::new(plan.terms().steps(), &plan.done);
    let left = plan.work(&queue);
    let disk_bytes = queue.left(Step::disk_bytes);
    let minimal = plan.server.wal_level == "minimal" && plan.begun.copies == Copies::Tables;
    let sessions = u64::try_from(asked.sessions).unwrap_or(1).max(1);
    let units = (left.units / sessions).max(queue.longest());
    LoadEstimate {
        version: 1,
        unit: plan.dataset.unit_name(),
        units: plan.dataset.units(),
        units_before: plan.begun.from_units,
        rows: left.rows,
        disk_bytes,
        sort_bytes: sort_bytes(&*plan.dataset, asked.sessions, plan.memory_bytes),
        wal_bytes: if minimal { 0 } else { disk_bytes },
        seconds: ns_per_unit.map(|ns| ns * real(units * REAL_PERCENT / 100) / 1e9),
        connections: asked.sessions,
        choices: plan.choices.clone(),
    }
}

/// Temporary files of the largest indexes, as many as are built at once; those that fit into
/// memory need none.
fn sort_bytes(dataset: &dyn Dataset, sessions: usize, memory_bytes: u64) -> u64 {
    let rows = |name: &str| {
        let found = dataset.tables().iter().find(|table| table.name == name);
        found.map_or(0, |table| table.rows)
    };
    let mut sorts: Vec<u64> = dataset
        .indexes()
        .iter()
        .map(|index| {
            let columns = index.columns.split(',').count() as u64;
            rows(&index.table) * (SORT_TUPLE + SORT_COLUMN * columns)
        })
        .filter(|bytes| *bytes > memory_bytes)
        .collect();
    sorts.sort_unstable_by(|one, other| other.cmp(one));
    sorts.iter().take(sessions).sum()
}

/// Time of one unit of the steps' costs, in ns: rows of the largest table are copied into a
/// temporary one. `None` where there are no rows.
async fn sample(plan: &Plan, session: &mut Session<Stream>) -> Result<Option<f64>, Error> {
    let dataset = &*plan.dataset;
    let tables = dataset.tables().iter().enumerate();
    let Some((at, table)) = tables.max_by_key(|(_, table)| table.disk_bytes) else {
        return Ok(None);
    };
    if table.batches < (SAMPLES + 1) * SAMPLE_BATCHES {
        return Ok(None);
    }
    let name = "pg_temp.pgdyno_sample";
    session
        .simple(&format!("BEGIN; CREATE TEMPORARY TABLE pgdyno_sample ({})", table.columns))
        .await?;
    let sql = format!("COPY {name} ({}) FROM STDIN (FORMAT binary)", table.copied);
    let units = Units::Range(0..dataset.units());
    let mut took_ns = Vec::new();
    for at_sample in 0..=SAMPLES {
        let first = at_sample * SAMPLE_BATCHES;
        let begun_ns = steady_ns();
        let mut copy = session.copy_in(&sql).await?;
        copy.send(HEADER).await?;
        let mut buffer = Vec::new();
        for batch in first..first + SAMPLE_BATCHES {
            dataset.batch_of(at, &units, batch, &mut buffer);
            copy.send(&buffer).await?;
        }
        copy.send(TRAILER).await?;
        copy.finish().await?;
        took_ns.push(steady_ns() - begun_ns);
    }
    session.simple("ROLLBACK").await?;
    let counted = &mut took_ns[1..];
    counted.sort_unstable();
    let copied = part(table.disk_bytes, SAMPLE_BATCHES.into(), table.batches.into());
    Ok(Some(nanos(counted[counted.len() / 2]) * 1e9 / real(copied.max(1))))
}
