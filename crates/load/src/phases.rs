//! A load from its first look at the database to the record of what was loaded.

use tokio::runtime;

use super::{
    plan::{self, Asked, Plan},
    progress::{LoadState, Phase, Shared},
    report::{LoadReport, PhaseReport, TableReport},
    spec::Part,
    step_queue::StepQueue,
    tables, workers,
};
use drive::{
    clock::steady_ns,
    error::{ErrorKind, RunError},
    measure::cpu::{Account, nanos},
};

/// The whole load.
pub(super) fn run(asked: &Asked, shared: &Shared) -> Result<LoadReport, RunError> {
    let before = Account::read(&[])?;
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| RunError::internal(format!("start a runtime: {e}")))?;
    let begun_ns = steady_ns();
    let plan = runtime.block_on(asked.prepare())?;
    let prepared = PhaseReport::of_one(Phase::Prepare, begun_ns);
    let queue = StepQueue::new(plan.steps(asked.spec.part), &plan.done);
    // From here on there are tables that an error leaves behind.
    let filled = fill(asked, &plan, shared, &queue, &runtime);
    let (recorded, disk_bytes) = filled.map_err(|error| with_remains(asked, error))?;
    let cost = before.until(&Account::read(&[])?, asked.sessions);
    let phases = [prepared].into_iter().chain(queue.phases()).chain(recorded);
    Ok(LoadReport {
        version: 1,
        workload: plan.dataset.spec(),
        server_version: plan.server.name.clone(),
        loaded_at_unix_s: plan.begun.loaded_at_unix_s,
        seconds: shared.seconds(),
        phases: phases.collect(),
        tables: tables_of(&plan, shared),
        rows: shared.rows(),
        bytes: shared.bytes(),
        steps_done_before: plan.done.len(),
        units_before: plan.begun.from_units,
        disk_bytes,
        c_load: plan.dataset.constants(),
        client_cpu_seconds: cost.user_s + cost.system_s,
        choices: plan.choices.clone(),
    })
}

fn tables_of(plan: &Plan, shared: &Shared) -> Vec<TableReport> {
    let report = |(at, table): (usize, &workload::dataset::Table)| {
        let (rows, bytes) = shared.of_table(at);
        TableReport { name: table.name.clone(), rows, bytes }
    };
    plan.dataset.tables().iter().enumerate().map(report).collect()
}

/// Everything after the tables were created: the record's phase, and the bytes on disk. What comes
/// after a part of a load is others' work.
fn fill(
    asked: &Asked,
    plan: &Plan,
    shared: &Shared,
    queue: &StepQueue,
    runtime: &runtime::Runtime,
) -> Result<(Option<PhaseReport>, u64), RunError> {
    shared.expect(plan.work(queue));
    let copies = !matches!(asked.spec.part, Some(Part::Reach | Part::Begin));
    let result = if copies {
        shared.enter(Phase::Copy);
        workers::work(&plan.target, &*plan.dataset, shared, queue, asked.sessions)
    } else {
        Ok(())
    };
    if shared.state() == LoadState::Stopped {
        return Err(stopped(shared, queue));
    }
    result?;
    if asked.spec.part.is_some() {
        return Ok((None, 0));
    }
    let begun_ns = steady_ns();
    shared.enter(Phase::Record);
    let bytes = runtime.block_on(record(plan))?;
    Ok((Some(PhaseReport::of_one(Phase::Record, begun_ns)), bytes))
}

fn stopped(shared: &Shared, queue: &StepQueue) -> RunError {
    let (phase, (steps, left)) = (shared.phase().name(), queue.count());
    let fact = format!(
        "the load was stopped in phase {phase}, after {} rows and {} of {steps} steps",
        shared.rows(),
        steps - left
    );
    RunError { kind: ErrorKind::Drive, fact, hint: None }
}

/// Records the load, in a session of its own: one that was kept while rows were copied for hours
/// might have been ended by a firewall. Returns the bytes on disk.
async fn record(plan: &Plan) -> Result<u64, RunError> {
    let mut session = plan::connect(&plan.target).await?;
    tables::record(&mut session, &plan.stored, &plan.record()).await?;
    let bytes = tables::disk_bytes(&mut session, &plan.stored).await?;
    let _unheard = session.close().await;
    Ok(bytes)
}

/// Says what becomes of what a load that failed leaves behind, as far as who asked for it knows.
fn with_remains(asked: &Asked, mut error: RunError) -> RunError {
    let Some(remains) = &asked.spec.remains else { return error };
    error.hint = Some(match error.hint {
        Some(hint) => format!("{} {remains}", sentence(&hint)),
        None => remains.clone(),
    });
    error
}

/// PostgreSQL's hints end with a full stop, most of the time.
fn sentence(hint: &str) -> String {
    let hint = hint.trim_end();
    if hint.ends_with('.') { hint.to_owned() } else { format!("{hint}.") }
}

impl PhaseReport {
    /// What one session did since this time.
    fn of_one(name: Phase, begun_ns: u64) -> Self {
        let seconds = nanos(steady_ns() - begun_ns);
        Self { name, seconds, session_seconds: seconds }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LoadSpec;

    #[test]
    fn a_hint_of_the_servers_is_kept_before_ours() {
        let json = r#"{"version": 1, "workload": {"kind": "tpcc", "warehouses": 1},
            "loaded_at_unix_s": 1700000000, "remains": "The tables stay.",
            "connection": {"host": "h", "port": 1, "user": "u", "database": "d"}}"#;
        let spec = LoadSpec::parse(json).expect("a specification");
        let (asked, _) = Asked::new(spec).expect("a load");
        let error = RunError::spec("disk full".into(), Some("Check free disk space"));
        let hint = with_remains(&asked, error).hint.expect("a hint");
        assert_eq!(hint, "Check free disk space. The tables stay.");
    }
}
