//! The server of a load: what must be known of it, and settings that nobody's configuration may
//! disturb.

use std::thread::available_parallelism;

use wire::{Session, Stream, Target};
use workload::dataset::Dataset;

use super::{pieces, spec::LoadSpec, strategy::Server};
use drive::error::RunError;

/// Which unit is in which hash partition; `None` where there are no such partitions.
pub(super) async fn routing(
    dataset: &dyn Dataset,
    session: &mut Session<Stream>,
) -> Result<Option<pieces::Routing>, RunError> {
    let (Some(sql), Some(partitions)) = (pieces::routing_query(dataset), dataset.partitions())
    else {
        return Ok(None);
    };
    let rows = session
        .simple(&sql)
        .await
        .map_err(|e| RunError::target(&"ask which partition a row belongs to", &e))?;
    match pieces::routing(&rows, partitions.count, dataset.units()) {
        Some(routing) => Ok(Some(routing)),
        None => Err(RunError::internal("the server's hash partitions hold no row each".into())),
    }
}

/// Asks for version and settings.
pub(super) async fn ask(session: &mut Session<Stream>) -> Result<Server, RunError> {
    let name = session.parameter("server_version").unwrap_or_default().to_owned();
    let sql = "SELECT name, setting FROM pg_settings \
               WHERE name IN ('server_version_num', 'wal_level', 'maintenance_work_mem')";
    let rows =
        session.simple(sql).await.map_err(|e| RunError::target(&"ask for the version", &e))?;
    let value = |key: &str| {
        let found = rows.iter().find(|row| row.first().and_then(|one| one.as_deref()) == Some(key));
        found.and_then(|row| row.get(1)?.clone())
    };
    let version = value("server_version_num").and_then(|text| text.parse().ok());
    let version =
        version.ok_or_else(|| RunError::internal("server has no version number".into()))?;
    let kilobytes: u64 =
        value("maintenance_work_mem").and_then(|text| text.parse().ok()).unwrap_or(0);
    let wal_level = value("wal_level").unwrap_or_default();
    Ok(Server { name, version, wal_level, memory_bytes: kilobytes * 1024 })
}

/// The server, with settings that nobody's configuration may disturb.
pub(super) fn target(spec: &LoadSpec, sessions: usize) -> Result<Target, RunError> {
    let mut target = spec.connection.target("pgdyno load")?;
    for timeout in ["statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"] {
        set(&mut target, timeout, "0".into());
    }
    // The record at the end is durable, and with it everything before it.
    set(&mut target, "synchronous_commit", "off".into());
    set(&mut target, "client_min_messages", "error".into());
    // Cores that no session of ours uses may help one.
    let cores = available_parallelism().map_or(1, usize::from);
    let helpers = (cores / sessions.max(1)).saturating_sub(1);
    set(&mut target, "max_parallel_maintenance_workers", helpers.to_string());
    Ok(target)
}

/// Sets a setting of the sessions, in place of any other value.
pub(super) fn set(target: &mut Target, name: &str, value: String) {
    target.options.retain(|(known, _)| known != name);
    target.options.push((name.to_owned(), value));
}
