//! Writes a workload's initial rows into CSV files, without a server. A file is written by one
//! thread from its first batch to its last, so that the same specification gives the same bytes.
//! What was not finished is removed.

use std::{
    fs::{self, File},
    io::Write as _,
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed},
        mpsc,
    },
    thread,
    time::Duration,
};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use wire::Timestamp;
use workload::{
    catalogue::WorkloadSpec,
    tpcc::{
        Tpcc,
        csv::{CsvFile, files},
        rows::RowSource,
    },
};

use drive::{
    clock::steady_ns,
    error::{ErrorKind, RunError},
    measure::cpu::nanos,
};

const VERSION: u32 = 1;
const THREADS_MAX: usize = 64;

/// What to write, and where to.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ExportSpec {
    /// Of this format: 1.
    pub version: u32,
    /// The workload's own specification: TPC-C.
    #[schemars(with = "WorkloadSpec")]
    pub workload: Value,
    /// What the folder is called, for messages.
    pub folder: PathBuf,
    /// The folder itself, as a descriptor that stays open until the end. It holds none of the
    /// files: its name may lead elsewhere by now, this does not.
    #[schemars(range(min = 0))]
    pub handle: u32,
    /// The time that rows carry, seconds since 1970.
    pub loaded_at_unix_s: i64,
    /// Files that are written at the same time; absent: one for each core.
    #[serde(default)]
    #[schemars(range(min = 1, max = THREADS_MAX))]
    pub threads: Option<usize>,
}

impl ExportSpec {
    /// Reads and checks a specification.
    ///
    /// # Errors
    ///
    /// Unknown or missing keys, values out of range.
    pub fn parse(json: &str) -> Result<Self, RunError> {
        let spec: Self = serde_json::from_str(json)
            .map_err(|e| RunError::spec(format!("specification of the export: {e}"), None))?;
        if spec.version != VERSION {
            let fact = format!("version is {}, this export knows {VERSION}", spec.version);
            return Err(RunError::spec(fact, None));
        }
        if let Some(threads) = spec.threads
            && !(1..=THREADS_MAX).contains(&threads)
        {
            let fact = format!("threads is {threads}, allowed are 1 to {THREADS_MAX}");
            return Err(RunError::spec(fact, None));
        }
        Ok(spec)
    }
}

/// How far an export is.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ExportProgress {
    /// Whether there is a result, or an error.
    pub done: bool,
    /// Rows written.
    pub rows: u64,
    /// Rows to write; those of the small `config.csv` are not counted.
    pub rows_total: u64,
    /// Bytes written.
    pub bytes: u64,
    /// Since the start.
    pub seconds: f64,
}

/// What was written.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ExportReport {
    /// Of this format: 1.
    pub version: u32,
    /// The workload, resolved.
    #[schemars(with = "WorkloadSpec")]
    pub workload: Value,
    /// Each file, the largest first.
    pub files: Vec<FileReport>,
    /// From start to end.
    pub seconds: f64,
}

/// A file that was written.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FileReport {
    /// Its name.
    pub name: String,
    /// Lines.
    pub rows: u64,
    /// Bytes.
    pub bytes: u64,
}

/// An export under way, or ended.
#[derive(Debug)]
pub struct Export {
    shared: Arc<Shared>,
    result: mpsc::Receiver<Result<ExportReport, RunError>>,
    thread: Option<thread::JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    begun_ns: u64,
    rows_total: u64,
    rows: AtomicU64,
    bytes: AtomicU64,
    stopped: AtomicBool,
    done: AtomicBool,
}

/// Everything that the threads need.
#[derive(Debug)]
struct Plan {
    spec: ExportSpec,
    tpcc: Tpcc,
    rows: RowSource,
    files: Vec<CsvFile>,
    threads: usize,
}

impl Export {
    /// Begins in threads of its own.
    ///
    /// # Errors
    ///
    /// The workload is refused or is not TPC-C, or no thread can be started.
    pub fn start(spec: ExportSpec) -> Result<Self, RunError> {
        let plan = Plan::new(spec)?;
        let counted = plan.files.iter().filter_map(|file| file.rows(&plan.rows));
        let shared = Arc::new(Shared {
            begun_ns: steady_ns(),
            rows_total: counted.sum(),
            rows: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
            done: AtomicBool::new(false),
        });
        let (sender, result) = mpsc::channel();
        let theirs = Arc::clone(&shared);
        let body = move || {
            let outcome = plan.run(&theirs);
            theirs.done.store(true, Relaxed);
            // Nobody listens any more when the export was dropped.
            let _unheard = sender.send(outcome);
        };
        let thread = thread::Builder::new()
            .name("pgdyno-export".into())
            .spawn(body)
            .map_err(|e| RunError::internal(format!("start a thread: {e}")))?;
        Ok(Self { shared, result, thread: Some(thread) })
    }

    /// How far it is.
    #[must_use]
    pub fn progress(&self) -> ExportProgress {
        let Shared { begun_ns, rows_total, rows, bytes, done, .. } = &*self.shared;
        ExportProgress {
            done: done.load(Relaxed),
            rows: rows.load(Relaxed),
            rows_total: *rows_total,
            bytes: bytes.load(Relaxed),
            seconds: nanos(steady_ns() - begun_ns),
        }
    }

    /// Gives up; the result is then an error, and the files are gone.
    pub fn stop(&self) {
        self.shared.stopped.store(true, Relaxed);
    }

    /// Waits for the result; `None` when it is not there in time.
    #[must_use]
    pub fn wait(&self, patience: Duration) -> Option<Result<ExportReport, RunError>> {
        match self.result.recv_timeout(patience) {
            Ok(result) => Some(result),
            Err(mpsc::RecvTimeoutError::Timeout) => None,
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                Some(Err(RunError::internal("export panicked, or its result was taken".into())))
            }
        }
    }
}

impl Drop for Export {
    fn drop(&mut self) {
        self.stop();
        if let Some(thread) = self.thread.take() {
            // A panic was reported by the result already.
            let _ended = thread.join();
        }
    }
}

impl Plan {
    fn new(spec: ExportSpec) -> Result<Self, RunError> {
        let kind = spec.workload.get("kind").and_then(Value::as_str);
        if kind != Some("tpcc") {
            let kind = kind.unwrap_or("missing");
            let fact = format!("workload.kind is {kind}, only tpcc can be exported");
            return Err(RunError::spec(fact, None));
        }
        let tpcc = Tpcc::from_spec(&spec.workload)
            .map_err(|e| RunError::spec(e.fact, e.hint.as_deref()))?;
        let loaded_at = Timestamp::from_unix_micros(spec.loaded_at_unix_s * 1_000_000);
        let rows = tpcc.rows(loaded_at);
        let files = files(tpcc.spec().schema, tpcc.spec().warehouses);
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let threads = spec.threads.unwrap_or(cores).min(files.len());
        Ok(Self { spec, tpcc, rows, files, threads })
    }

    fn run(&self, shared: &Shared) -> Result<ExportReport, RunError> {
        let next = AtomicUsize::new(0);
        let created = Mutex::new(Vec::new());
        let workers = || {
            thread::scope(|scope| {
                let start = |_| scope.spawn(|| self.work(&next, &created, shared));
                let workers: Vec<_> = (0..self.threads).map(start).collect();
                let join = |worker: thread::ScopedJoinHandle<'_, _>| {
                    let panicked = || RunError::internal("a thread of the export panicked".into());
                    worker.join().unwrap_or_else(|_| Err(panicked()))
                };
                workers.into_iter().map(join).collect::<Vec<Result<_, RunError>>>()
            })
        };
        let written: Result<Vec<Vec<FileReport>>, RunError> = workers().into_iter().collect();
        let stopped = || RunError {
            kind: ErrorKind::Drive,
            fact: format!("the export was stopped after {} rows", shared.rows.load(Relaxed)),
            hint: Some("Its files were removed.".into()),
        };
        let outcome = match written {
            Ok(_) if shared.stopped.load(Relaxed) => Err(stopped()),
            outcome => outcome,
        };
        let mut files: Vec<FileReport> = match outcome {
            Ok(files) => files.into_iter().flatten().collect(),
            Err(error) => {
                for path in created.into_inner().unwrap_or_else(PoisonError::into_inner) {
                    // What cannot be removed is no worse than the error that is told.
                    let _kept: Result<(), std::io::Error> = fs::remove_file(path);
                }
                return Err(error);
            }
        };
        files.sort_by_key(|file| std::cmp::Reverse(file.bytes));
        Ok(ExportReport {
            version: VERSION,
            workload: serde_json::json!(self.tpcc.spec()),
            files,
            seconds: nanos(steady_ns() - shared.begun_ns),
        })
    }

    /// One thread: file after file until none is left; a failure stops the others.
    fn work(
        &self,
        next: &AtomicUsize,
        created: &Mutex<Vec<PathBuf>>,
        shared: &Shared,
    ) -> Result<Vec<FileReport>, RunError> {
        let mut written = Vec::new();
        while let Some(file) = self.files.get(next.fetch_add(1, Relaxed)) {
            let path = self.path(&file.name);
            let outcome = self.write(file, path, created, shared);
            match outcome {
                Ok(report) => written.push(report),
                Err(error) => {
                    shared.stopped.store(true, Relaxed);
                    return Err(error);
                }
            }
        }
        Ok(written)
    }

    /// A name in the folder that is held open: nothing above it is looked up again.
    fn path(&self, name: &str) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.spec.handle)).join(name)
    }

    fn write(
        &self,
        file: &CsvFile,
        path: PathBuf,
        created: &Mutex<Vec<PathBuf>>,
        shared: &Shared,
    ) -> Result<FileReport, RunError> {
        let failed = |error: std::io::Error| RunError {
            kind: ErrorKind::Drive,
            fact: format!("write {}: {error}", self.spec.folder.join(&file.name).display()),
            hint: Some("What was written of the export was removed.".into()),
        };
        let mut to = File::create_new(&path).map_err(failed)?;
        created.lock().unwrap_or_else(PoisonError::into_inner).push(path);
        let config = self.tpcc.config();
        let (mut binary, mut lines) = (Vec::new(), Vec::new());
        let mut report = FileReport { name: file.name.clone(), rows: 0, bytes: 0 };
        for number in 0..file.batches(&self.rows) {
            if shared.stopped.load(Relaxed) {
                return Ok(report);
            }
            let rows = file.batch(&self.rows, number, &config, &mut binary, &mut lines);
            to.write_all(&lines).map_err(failed)?;
            report.rows += u64::from(rows);
            report.bytes += lines.len() as u64;
            if file.rows(&self.rows).is_some() {
                shared.rows.fetch_add(rows.into(), Relaxed);
            }
            shared.bytes.fetch_add(lines.len() as u64, Relaxed);
        }
        to.sync_all().map_err(failed)?;
        Ok(report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: &str) -> String {
        let mut spec = serde_json::json!({
            "version": 1, "workload": {"kind": "tpcc", "warehouses": 1}, "folder": "/nowhere/at",
            "handle": 1_000_000, "loaded_at_unix_s": 1_577_836_800,
        });
        let change: Value = serde_json::from_str(change).expect("JSON");
        for (key, value) in change.as_object().expect("an object") {
            spec[key] = value.clone();
        }
        let end = |export: Export| export.wait(Duration::from_secs(60)).expect("an end");
        let outcome = ExportSpec::parse(&spec.to_string()).and_then(Export::start).and_then(end);
        outcome.expect_err("must be refused").fact
    }

    #[test]
    fn what_cannot_be_exported_is_refused() {
        for (change, part) in [
            (r#"{"version": 2}"#, "version is 2, this export knows 1"),
            (r#"{"threads": 0}"#, "threads is 0, allowed are 1 to 64"),
            (r#"{"folders": 1}"#, "unknown field `folders`"),
            (r#"{"workload": {"kind": "mix"}}"#, "workload.kind is mix, only tpcc"),
            (r#"{"workload": {"kind": "tpcc", "warehouses": 0}}"#, "warehouses is 0, allowed"),
            ("{}", "write /nowhere/at/"),
        ] {
            let fact = refused(change);
            assert!(fact.contains(part), "{fact}");
        }
    }
}
