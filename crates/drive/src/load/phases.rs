//! The order of a load. Only this file knows it.

use std::thread::available_parallelism;

use serde_json::{Value, json};
use tokio::runtime;
use wire::{Session, Stream, Target as Server, Timestamp};
use workload::tpcc::{
    Tpcc, VERSION,
    constants::of_load,
    rows::{RowSource, Target},
    schema::{FOREIGN_KEYS, Index, TABLES, indexes},
};

use super::{
    crew,
    job::Job,
    progress::{Course, Phase, Shared, Work},
    report::{Choice, LoadReport, PhaseReport, TableReport},
    spec::LoadSpec,
    tables,
};
use crate::{clock::steady_ns, cpu::Account, cpu::nanos, error::RunError};

/// More streams than this do not fill one server faster.
const STREAMS_MAX: usize = 16;
/// A copy is split so that streams end at about the same time.
const COPIES_PER_WAREHOUSE: u32 = 4;
/// Cost of indexing and of vacuuming a row, in thousandths of the cost of copying one. For the
/// estimate of the time left only; measured on ten warehouses.
const INDEX_PER_MILLE: u64 = 430;
const VACUUM_PER_MILLE: u64 = 185;
/// The first version whose VACUUM can be told not to use a small ring of buffers.
const BUFFER_USAGE_LIMIT_SINCE: u32 = 160_000;

/// A load, resolved.
#[derive(Debug)]
pub(super) struct Plan {
    spec: LoadSpec,
    tpcc: Tpcc,
    rows: RowSource,
    server: Server,
    streams: usize,
    builders: usize,
    choices: Vec<Choice>,
}

impl Plan {
    pub(super) fn new(spec: LoadSpec) -> Result<Self, RunError> {
        let kind = spec.workload.get("kind").and_then(Value::as_str);
        if kind != Some("tpcc") {
            let fact = format!("workload.kind is {}, known is tpcc", kind.unwrap_or("missing"));
            return Err(RunError::spec(fact, None));
        }
        let tpcc = Tpcc::from_spec(&spec.workload)
            .map_err(|e| RunError::spec(e.fact, e.hint.as_deref()))?;
        let loaded_at = Timestamp::from_unix_micros(spec.loaded_at_unix_s * 1_000_000);
        let rows = tpcc.rows(loaded_at);
        let cores = available_parallelism().map_or(1, usize::from);
        let streams = spec.connections.unwrap_or_else(|| cores.min(STREAMS_MAX));
        let builders = spec.index_connections.unwrap_or(streams);
        let server = server(&spec, cores, builders)?;
        let choices = choices(&spec, streams, builders);
        Ok(Self { spec, tpcc, rows, server, streams, builders, choices })
    }

    /// All work, for the estimate of the time left.
    pub(super) fn work(&self) -> Work {
        let rows: u64 = Target::ALL.iter().map(|&target| self.rows.rows(target)).sum();
        let jobs = self.indexes().into_iter().chain(self.vacuums(0));
        let more: u64 = jobs
            .map(|job| match job {
                Job::Sql { units, .. } => units,
                Job::Copy { .. } => 0,
            })
            .sum();
        Work { rows, units: rows + more }
    }

    fn copies(&self) -> Vec<Job> {
        let mut jobs = Vec::new();
        for target in Target::ALL {
            let batches = self.rows.batches(target);
            let size = (target.batches_per_warehouse() / COPIES_PER_WAREHOUSE).max(1);
            for start in (0..batches).step_by(size as usize) {
                jobs.push(Job::Copy { target, batches: start..batches.min(start + size) });
            }
        }
        jobs
    }

    fn rows_of(&self, table: &str) -> u64 {
        let target = Target::ALL.iter().find(|target| target.table() == table);
        target.map_or(0, |target| self.rows.rows(*target))
    }

    fn indexes(&self) -> Vec<Job> {
        let build = |index: Index| Job::Sql {
            step: format!("build {}", index.name),
            units: self.rows_of(index.table) * INDEX_PER_MILLE / 1000,
            sql: index.ddl,
        };
        indexes().into_iter().map(build).collect()
    }

    fn vacuums(&self, server_version: u32) -> Vec<Job> {
        let options = if server_version >= BUFFER_USAGE_LIMIT_SINCE {
            "FREEZE, ANALYZE, BUFFER_USAGE_LIMIT 0"
        } else {
            "FREEZE, ANALYZE"
        };
        let vacuum = |target: &Target| {
            let table = target.table();
            Job::Sql {
                step: format!("vacuum {table}"),
                sql: format!("VACUUM ({options}) {table}"),
                units: self.rows.rows(*target) * VACUUM_PER_MILLE / 1000,
            }
        };
        Target::ALL.iter().map(vacuum).collect()
    }

    /// What `pgdyno_load` remembers.
    fn record(&self) -> Vec<(&'static str, String)> {
        let spec = self.tpcc.spec();
        vec![
            ("workload", "tpcc".to_owned()),
            ("version", VERSION.to_string()),
            ("schema", json!(spec.schema).as_str().unwrap_or_default().to_owned()),
            ("warehouses", spec.warehouses.to_string()),
            ("seed", spec.seed.to_string()),
            ("c_last", of_load(spec).c_last.to_string()),
            ("foreign_keys", spec.foreign_keys.to_string()),
            ("loaded_at_unix_s", self.spec.loaded_at_unix_s.to_string()),
        ]
    }
}

/// The server, with settings that nobody's configuration may disturb.
fn server(spec: &LoadSpec, cores: usize, builders: usize) -> Result<Server, RunError> {
    let mut server = spec.connection.target("pgdyno load")?;
    let mut set = |name: &str, value: String| {
        server.options.retain(|(known, _)| known != name);
        server.options.push((name.to_owned(), value));
    };
    for timeout in ["statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"] {
        set(timeout, "0".into());
    }
    // The record at the end is durable, and with it everything before it.
    set("synchronous_commit", "off".into());
    set("client_min_messages", "error".into());
    // Cores that no builder of ours uses may help one.
    let helpers = (cores / builders.max(1)).saturating_sub(1);
    set("max_parallel_maintenance_workers", helpers.to_string());
    if let Some(bytes) = spec.maintenance_work_mem_bytes {
        set("maintenance_work_mem", format!("{}kB", bytes / 1024));
    }
    Ok(server)
}

fn choices(spec: &LoadSpec, streams: usize, builders: usize) -> Vec<Choice> {
    let mut choices = Vec::new();
    if spec.connections.is_none() {
        let why = "one for each core of this machine, at most 16";
        choices.push(Choice { name: "connections", value: streams.to_string(), why });
    }
    if spec.index_connections.is_none() {
        let why = "as many as stream rows";
        choices.push(Choice { name: "index_connections", value: builders.to_string(), why });
    }
    if spec.maintenance_work_mem_bytes.is_none() {
        let why = "the memory of the server's machine is not known here";
        let value = "the server's own setting".to_owned();
        choices.push(Choice { name: "maintenance_work_mem", value, why });
    }
    choices
}

/// The whole load.
pub(super) fn run(plan: &Plan, shared: &Shared) -> Result<LoadReport, RunError> {
    let before = Account::read(&[])?;
    let runtime = runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| RunError::internal(format!("start a runtime: {e}")))?;
    let mut laps = Laps { phases: Vec::new(), shared };
    let begun_ns = steady_ns();
    let version = runtime.block_on(prepare(plan))?;
    let seconds = nanos(steady_ns() - begun_ns);
    laps.phases.push(PhaseReport { name: Phase::Prepare, seconds });
    // From here on there are tables that an error leaves behind.
    let disk_bytes = fill(plan, shared, &mut laps, &runtime, version.number)
        .map_err(|error| with_remains(plan, error))?;
    let after = Account::read(&[])?;
    let cost = before.until(&after, plan.streams);
    Ok(LoadReport {
        version: 1,
        workload: json!(plan.tpcc.spec()),
        server_version: version.name,
        loaded_at_unix_s: plan.spec.loaded_at_unix_s,
        seconds: shared.seconds(),
        phases: laps.phases,
        tables: TABLES
            .iter()
            .map(|table| TableReport {
                name: table.name,
                rows: plan.rows_of(table.name),
                bytes: shared.bytes_of(table.name),
            })
            .collect(),
        rows: shared.rows(),
        bytes: shared.bytes(),
        disk_bytes,
        c_load: json!(of_load(plan.tpcc.spec())),
        client_cpu_seconds: cost.user_s + cost.system_s,
        choices: plan.choices.clone(),
    })
}

/// The server's version, for people and for comparison.
struct Version {
    name: String,
    number: u32,
}

async fn connect(plan: &Plan) -> Result<Session<Stream>, RunError> {
    let session = Session::connect(&plan.server, &[]).await;
    session.map_err(|e| RunError::target(&format!("connect to {}", plan.server), &e))
}

/// Creates the tables. The session is not kept: while rows are copied for hours, a firewall or
/// `idle_session_timeout` would end it.
async fn prepare(plan: &Plan) -> Result<Version, RunError> {
    let mut session = connect(plan).await?;
    let name = session.parameter("server_version").unwrap_or_default().to_owned();
    let rows = session
        .simple("SHOW server_version_num")
        .await
        .map_err(|e| RunError::target(&"ask for the version", &e))?;
    let number = rows.first().and_then(|row| row.first()?.as_ref()?.parse().ok());
    let number = number.ok_or_else(|| RunError::internal("server has no version number".into()))?;
    tables::make_room(&mut session, plan.spec.drop_ours).await?;
    tables::create(&mut session).await?;
    // Everything is committed: a goodbye that is not heard changes nothing.
    let _unheard = session.close().await;
    Ok(Version { name, number })
}

/// Records the load; returns the bytes on disk.
async fn record(plan: &Plan) -> Result<u64, RunError> {
    let mut session = connect(plan).await?;
    tables::record(&mut session, &plan.record()).await?;
    let bytes = tables::disk_bytes(&mut session).await?;
    let _unheard = session.close().await;
    Ok(bytes)
}

/// Everything after the tables were created.
fn fill(
    plan: &Plan,
    shared: &Shared,
    laps: &mut Laps<'_>,
    runtime: &runtime::Runtime,
    server_version: u32,
) -> Result<u64, RunError> {
    let crew = |jobs, count| crew::work(&plan.server, &plan.rows, shared, jobs, count);
    laps.time(Phase::Copy, || crew(plan.copies(), plan.streams))?;
    laps.time(Phase::Index, || {
        crew(plan.indexes(), plan.builders)?;
        crew(vec![attach_keys()], 1)
    })?;
    if plan.tpcc.spec().foreign_keys {
        laps.time(Phase::ForeignKeys, || crew(vec![foreign_keys()], 1))?;
    }
    laps.time(Phase::Vacuum, || crew(plan.vacuums(server_version), plan.builders))?;
    laps.time(Phase::Record, || runtime.block_on(record(plan)))
}

/// Makes primary keys of the unique indexes: an instant, since their columns are NOT NULL.
fn attach_keys() -> Job {
    let attach = |index: Index| {
        let (table, name) = (index.table, index.name);
        format!("ALTER TABLE {table} ADD CONSTRAINT {name} PRIMARY KEY USING INDEX {name}")
    };
    let keys = indexes().into_iter().filter(|index| index.primary).map(attach);
    Job::Sql { step: "declare primary keys".into(), sql: tables::transaction(keys), units: 0 }
}

fn foreign_keys() -> Job {
    let add = |(table, key): &(&str, &str)| format!("ALTER TABLE {table} ADD {key}");
    let sql = tables::transaction(FOREIGN_KEYS.iter().map(add));
    Job::Sql { step: "add foreign keys".into(), sql, units: 0 }
}

/// Says what a load that failed leaves behind.
fn with_remains(plan: &Plan, mut error: RunError) -> RunError {
    let remains = format!(
        "The tables of the load remain in database {}, incomplete; loading again with leave to \
         drop them removes them.",
        plan.spec.connection.database
    );
    error.hint = Some(match error.hint {
        Some(hint) => format!("{} {remains}", sentence(&hint)),
        None => remains,
    });
    error
}

/// PostgreSQL's hints end with a full stop, most of the time.
fn sentence(hint: &str) -> String {
    let hint = hint.trim_end();
    if hint.ends_with('.') { hint.to_owned() } else { format!("{hint}.") }
}

/// Times the phases.
struct Laps<'a> {
    phases: Vec<PhaseReport>,
    shared: &'a Shared,
}

impl Laps<'_> {
    /// Does a phase, unless the load does not go on; a stop during it is an error at its end.
    fn time<T>(
        &mut self,
        name: Phase,
        phase: impl FnOnce() -> Result<T, RunError>,
    ) -> Result<T, RunError> {
        self.shared.enter(name);
        let begun_ns = steady_ns();
        let result = phase()?;
        if self.shared.course() == Course::Stopped {
            let (rows, name) = (self.shared.rows(), json!(name));
            let fact = format!(
                "the load was stopped in phase {}, after {rows} rows",
                name.as_str().unwrap_or_default()
            );
            return Err(RunError { kind: crate::error::ErrorKind::Drive, fact, hint: None });
        }
        self.phases.push(PhaseReport { name, seconds: nanos(steady_ns() - begun_ns) });
        Ok(result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(workload: &str, index_connections: usize) -> Plan {
        let json = format!(
            r#"{{"version": 1, "workload": {workload}, "loaded_at_unix_s": 1700000000,
                "connections": 3, "index_connections": {index_connections},
                "maintenance_work_mem_bytes": 268435456, "connection": {{"host": "h", "port": 1,
                "user": "u", "database": "d", "options": {{"statement_timeout": "5s"}}}}}}"#
        );
        Plan::new(LoadSpec::parse(&json).expect("a specification")).expect("a plan")
    }

    #[test]
    fn every_batch_is_copied_by_one_job() {
        let plan = plan(r#"{"kind": "tpcc", "warehouses": 3}"#, 2);
        for target in Target::ALL {
            let mut next = 0;
            for job in plan.copies() {
                if let Job::Copy { target: of, batches } = job
                    && of == target
                {
                    assert_eq!(batches.start, next, "{target:?}");
                    next = batches.end;
                }
            }
            assert_eq!(next, plan.rows.batches(target), "{target:?}");
        }
    }

    #[test]
    fn nobodys_configuration_disturbs_a_load() {
        let plan = plan(r#"{"kind": "tpcc", "warehouses": 1}"#, 2);
        let value = |name: &str| {
            let mut found = plan.server.options.iter().filter(|(known, _)| known == name);
            let value = found.next().map(|(_, value)| value.as_str());
            assert!(found.next().is_none(), "{name} is set twice");
            value
        };
        assert_eq!(value("statement_timeout"), Some("0"), "not the five seconds asked for");
        assert_eq!(value("synchronous_commit"), Some("off"));
        assert_eq!(value("maintenance_work_mem"), Some("262144kB"));
    }

    #[test]
    fn old_servers_are_not_given_options_they_do_not_know() {
        let plan = plan(r#"{"kind": "tpcc", "warehouses": 1}"#, 2);
        let first = |version| match plan.vacuums(version).swap_remove(0) {
            Job::Sql { sql, .. } => sql,
            Job::Copy { .. } => panic!("a vacuum is SQL"),
        };
        assert_eq!(first(150_018), "VACUUM (FREEZE, ANALYZE) stock");
        assert_eq!(first(180_000), "VACUUM (FREEZE, ANALYZE, BUFFER_USAGE_LIMIT 0) stock");
    }

    #[test]
    fn other_workloads_and_bad_parameters_are_refused() {
        let refused = |workload: &str| {
            let json = format!(
                r#"{{"version": 1, "workload": {workload}, "loaded_at_unix_s": 1700000000,
                    "connection": {{"host": "h", "port": 1, "user": "u", "database": "d"}}}}"#
            );
            Plan::new(LoadSpec::parse(&json).expect("a specification")).expect_err("refused").fact
        };
        assert_eq!(refused(r#"{"kind": "tpcb"}"#), "workload.kind is tpcb, known is tpcc");
        assert_eq!(refused("{}"), "workload.kind is missing, known is tpcc");
        let fact = refused(r#"{"kind": "tpcc", "warehouses": -1}"#);
        assert!(fact.starts_with("warehouses is -1, allowed is 1 to"), "{fact}");
    }

    #[test]
    fn a_hint_of_the_servers_is_kept_before_ours() {
        let plan = plan(r#"{"kind": "tpcc", "warehouses": 1}"#, 2);
        let error = RunError::spec("disk full".into(), Some("Check free disk space"));
        let hint = with_remains(&plan, error).hint.expect("a hint");
        assert!(hint.starts_with("Check free disk space. The tables of the load remain"), "{hint}");
    }
}
