//! A run: one thread per core, each with its own runtime, and one that keeps the time.

use std::{
    sync::{
        Arc,
        mpsc::{self, Receiver, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

use nix::unistd::gettid;
use serde_json::Value;
use tokio::{
    runtime::{self, Runtime},
    sync::oneshot,
    task::LocalSet,
};
use workload::{Workload, tpcc::Tpcc};

use crate::{
    clock::{Clock, SystemClock, steady_ns},
    course::{Course, Shared, Window},
    cpu::Account,
    dial::ServerDial,
    error::RunError,
    lane::{Share, connect, merge, run_lane},
    meter::Meter,
    progress::Progress,
    result::RunResult,
    spec::{Spec, nanoseconds},
};

/// A run under way, or ended.
#[derive(Debug)]
pub struct Run {
    shared: Arc<Shared>,
    kinds: &'static [&'static str],
    begun_ns: u64,
    result: Receiver<Result<RunResult, RunError>>,
}

impl Run {
    /// Starts the workload that the specification names.
    ///
    /// # Errors
    ///
    /// The workload is unknown or refuses its part of the specification.
    pub fn start(spec: Spec) -> Result<Self, RunError> {
        match spec.workload.get("kind").and_then(Value::as_str) {
            Some("tpcc") => {
                let workload = Tpcc::from_spec(&spec.workload)
                    .map_err(|e| RunError::spec(e.fact, e.hint.as_deref()))?;
                Self::start_with(spec, workload)
            }
            kind => Err(RunError::spec(
                format!("workload.kind is {}, known is tpcc", kind.unwrap_or("missing")),
                None,
            )),
        }
    }

    /// Starts a workload in threads of its own.
    ///
    /// # Errors
    ///
    /// The connection's specification is refused, or no thread can be started.
    pub fn start_with<W: Workload>(spec: Spec, workload: W) -> Result<Self, RunError> {
        let kinds = workload.kinds();
        let dial = ServerDial::new(spec.connection.target("pgdyno")?, workload.statements());
        let shared = Arc::new(Shared::new(spec.threads(), kinds.len()));
        let (sender, result) = mpsc::channel();
        let theirs = Arc::clone(&shared);
        let conduct = move || {
            let outcome = conduct(&spec, &Arc::new(workload), &dial, &theirs);
            theirs.finish();
            // Nobody listens any more when the run was dropped.
            let _unheard = sender.send(outcome);
        };
        thread::Builder::new()
            .name("pgdyno-run".into())
            .spawn(conduct)
            .map_err(|e| RunError::internal(format!("start a thread: {e}")))?;
        Ok(Self { shared, kinds, begun_ns: steady_ns(), result })
    }

    /// How far the run is.
    #[must_use]
    pub fn progress(&self) -> Progress {
        Progress::read(&self.shared, self.kinds, self.begun_ns, steady_ns())
    }

    /// Begins the drain now.
    pub fn stop(&self) {
        self.shared.stop(steady_ns());
    }

    /// Waits for the result; `None` when it is not there in time.
    #[must_use]
    pub fn wait(&self, patience: Duration) -> Option<Result<RunResult, RunError>> {
        match self.result.recv_timeout(patience) {
            Ok(result) => Some(result),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                Some(Err(RunError::internal("driver panicked, or its result was taken".into())))
            }
        }
    }
}

impl Drop for Run {
    /// A run that nobody waits for must not go on.
    fn drop(&mut self) {
        self.stop();
    }
}

/// One driver thread, seen by the one that keeps the time.
struct Thread<A> {
    /// Its number at the kernel, as soon as its connections stand; `None`: stopped before that.
    ready: oneshot::Receiver<Result<Option<i32>, RunError>>,
    meter: oneshot::Receiver<Meter<A>>,
}

/// Connects, sets the course, reads the driver's own cost at both ends of the window, and puts the
/// threads' counts together.
fn conduct<W: Workload>(
    spec: &Spec,
    workload: &Arc<W>,
    dial: &ServerDial,
    shared: &Arc<Shared>,
) -> Result<RunResult, RunError> {
    let mut threads = Vec::new();
    for share in shares(spec) {
        threads.push(start_thread(share, workload, dial, shared)?);
    }
    local_runtime()?.block_on(async {
        let clock =
            SystemClock::new().map_err(|e| RunError::internal(format!("open a timer: {e}")))?;
        let (mut ready, mut meters) = (Vec::new(), Vec::new());
        for thread in threads {
            ready.push(thread.ready);
            meters.push(thread.meter);
        }
        let tids = match all_ready(ready).await {
            Ok(tids) => tids,
            Err(error) => {
                shared.stop(clock.now_ns()); // the other threads wait for the course
                return Err(error);
            }
        };
        let course = course(spec, &clock);
        shared.begin(course);
        reach(&clock, shared, course.window.from_ns).await;
        let before = Account::read(&tids)?;
        reach(&clock, shared, u64::MAX).await;
        let client = before.until(&Account::read(&tids)?, tids.len());
        let mut counted = Vec::new();
        for meter in meters {
            counted.push(meter.await.map_err(|_| RunError::internal("driver panicked".into()))?);
        }
        let meter = merge(counted, workload.kinds())
            .ok_or_else(|| RunError::internal("no thread was started".into()))?;
        RunResult::new(&**workload, &meter, &course, shared, client)
    })
}

/// Numbers of the threads at the kernel once all their connections stand.
async fn all_ready(
    ready: Vec<oneshot::Receiver<Result<Option<i32>, RunError>>>,
) -> Result<Vec<i32>, RunError> {
    let mut tids = Vec::new();
    for ready in ready {
        let connected = ready.await.map_err(|_| RunError::internal("driver panicked".into()))??;
        let tid = connected
            .ok_or_else(|| RunError::internal("run was stopped while it connected".into()))?;
        tids.push(tid);
    }
    Ok(tids)
}

fn course(spec: &Spec, clock: &impl Clock) -> Course {
    let start_ns = clock.now_ns();
    let from_ns = start_ns + nanoseconds(spec.warmup_s);
    let until_ns = from_ns + nanoseconds(spec.window_s);
    Course {
        start_ns,
        start_unix_ns: clock.unix_ns(),
        window: Window { from_ns, until_ns },
        drain_ns: nanoseconds(spec.drain_s),
    }
}

/// Sleeps until an instant, or until the window ends, whatever comes first.
async fn reach(clock: &impl Clock, shared: &Shared, at_ns: u64) {
    let mut course = shared.follow();
    loop {
        let goal_ns = at_ns.min(shared.until_ns());
        if clock.now_ns() >= goal_ns {
            return;
        }
        tokio::select! {
            () = clock.sleep_until(goal_ns) => {}
            _changed = course.changed() => {}
        }
    }
}

/// Deals connections and terminals to the threads, round robin.
fn shares(spec: &Spec) -> Vec<Share> {
    let threads = spec.threads();
    let deal = |thread: usize| {
        let connections = (thread..spec.connections).step_by(threads).count();
        Share {
            thread,
            connections,
            terminals: (0..spec.terminals).skip(thread).step_by(threads).collect(),
            deferred_max: spec.deferred_max.unwrap_or(connections),
            retries_max: spec.retries_max,
            give_up_ns: nanoseconds(spec.reconnect_give_up_s),
            seed: spec.seed(),
        }
    };
    (0..threads).map(deal).collect()
}

fn start_thread<W: Workload>(
    share: Share,
    workload: &Arc<W>,
    dial: &ServerDial,
    shared: &Arc<Shared>,
) -> Result<Thread<W::Audit>, RunError> {
    let (ready_sender, ready) = oneshot::channel();
    let (meter_sender, meter) = oneshot::channel();
    let (workload, dial, shared) = (Arc::clone(workload), dial.clone(), Arc::clone(shared));
    let runtime = local_runtime()?;
    let body = move || {
        LocalSet::new().block_on(&runtime, async {
            let counted = run_thread(share, workload, dial, shared, ready_sender).await;
            if let Some(counted) = counted {
                // The time keeper has given up and does not listen.
                let _unheard = meter_sender.send(counted);
            }
        });
    };
    thread::Builder::new()
        .name("pgdyno-drive".into())
        .spawn(body)
        .map_err(|e| RunError::internal(format!("start a thread: {e}")))?;
    Ok(Thread { ready, meter })
}

/// Connects, tells, waits for the course, runs it. `None`: there was nothing to run.
async fn run_thread<W: Workload>(
    share: Share,
    workload: Arc<W>,
    dial: ServerDial,
    shared: Arc<Shared>,
    ready: oneshot::Sender<Result<Option<i32>, RunError>>,
) -> Option<Meter<W::Audit>> {
    let mut followed = shared.follow();
    let clock = match SystemClock::new() {
        Ok(clock) => clock,
        Err(e) => {
            let _unheard = ready.send(Err(RunError::internal(format!("open a timer: {e}"))));
            return None;
        }
    };
    let sessions = connect(&share, &clock, &dial, &shared).await;
    let tid = gettid().as_raw();
    let told = sessions.as_ref().map(|sessions| sessions.as_ref().map(|_| tid));
    let told = told.map_err(|e| RunError::target(&format!("connect to {dial}"), e));
    ready.send(told).ok()?;
    let sessions = sessions.ok()??;
    let course = loop {
        followed.changed().await.ok()?;
        if let Some(course) = *followed.borrow_and_update() {
            break course;
        }
        if shared.is_stopped() {
            return None; // another thread could not connect
        }
    };
    Some(run_lane(share, workload, clock, dial, shared, course, sessions).await)
}

fn local_runtime() -> Result<Runtime, RunError> {
    runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| RunError::internal(format!("start a runtime: {e}")))
}
