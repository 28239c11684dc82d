//! A run: threads that drive, each with a loop of its own, and one that keeps the time. A thread
//! has one worker for each part, that is for each database that is driven.

use std::{
    cell::RefCell,
    io,
    path::Path,
    pin::Pin,
    sync::{
        Arc,
        mpsc::{self, Receiver, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

use nix::unistd::gettid;
use reactor::Tasks;
use tokio::{
    runtime::{self, Runtime},
    sync::oneshot,
};
use wire::{Session, Stream};
use workload::{Audit, Workload, catalogue};

use crate::{
    clock::{Clock, SystemClock, steady_ns},
    connection::{
        background::Background,
        opener::{Opener, ServerOpener},
        spec::ConnectionSpec,
    },
    error::RunError,
    hosts::Begin,
    measure::{cpu::Account, ledger::Ledger, meter::Meter},
    progress::Progress,
    result::{PartResult, RunResult},
    schedule::{
        arrivals::ArrivalsSpec,
        queue::Schedule,
        timeline::{Timeline, Window, nanoseconds},
    },
    setup::set_up,
    shared::{Instant, Shared},
    spec::Spec,
    worker::{
        Share, merge,
        thread::{connect, connect_some, run_worker},
    },
};

/// A run under way, or ended.
#[derive(Debug)]
pub struct Run {
    shared: Arc<Shared>,
    kinds: Vec<String>,
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
        let workload = spec.workload.clone();
        catalogue::with(&workload, Start(spec))
            .map_err(|e| RunError::spec(e.fact, e.hint.as_deref()))?
    }

    /// Starts a workload in threads of its own.
    ///
    /// # Errors
    ///
    /// The connection's specification is refused, or no thread can be started.
    pub fn start_with<W: Workload>(spec: Spec, workload: W) -> Result<Self, RunError> {
        let kinds = workload.kinds().to_vec();
        spec.check_replica(&kinds)?;
        let openers = openers(&spec, &workload)?;
        let shared = Arc::new(Shared::new(spec.threads() * openers.len(), kinds.len()));
        let (sender, result) = mpsc::channel();
        let theirs = Arc::clone(&shared);
        let conduct = move || {
            let outcome = conduct(&spec, &Arc::new(workload), &openers, &theirs);
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
        Progress::read(&self.shared, &self.kinds, self.begun_ns, steady_ns())
    }

    /// Tells when the warm-up begins, where the specification has that told.
    pub fn begin(&self, at: Instant) {
        self.shared.tell_begin(at);
    }

    /// Ends the warm-up at an instant of the steady clock. The window's planned end stays.
    pub fn open_at(&self, from_ns: u64) {
        self.shared.open_at(from_ns);
    }

    /// Begins the drain at an instant of the steady clock.
    pub fn stop_at(&self, until_ns: u64) {
        self.shared.stop(until_ns);
    }

    /// Ends the warm-up now: the window begins. Its planned end stays.
    pub fn open(&self) {
        self.shared.open(steady_ns());
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

/// Starts whatever workload the specification names.
struct Start(Spec);

impl catalogue::Visitor for Start {
    type Output = Result<Run, RunError>;

    fn visit<W: Workload>(self, workload: W) -> Self::Output {
        Run::start_with(self.0, workload)
    }
}

/// One driver thread, seen by the one that keeps the time.
struct Thread<A> {
    /// Its number at the kernel, as soon as its connections stand; `None`: stopped before that.
    ready: oneshot::Receiver<Result<Option<i32>, RunError>>,
    /// By part.
    meters: oneshot::Receiver<Vec<Meter<A>>>,
    /// It lives until this is dropped: the kernel forgets what an ended thread has cost.
    alive: oneshot::Sender<()>,
}

/// Connects, sets the timeline, reads the driver's own cost at both ends of the window, and puts
/// the threads' counts together.
fn conduct<W: Workload>(
    spec: &Spec,
    workload: &Arc<W>,
    openers: &[ServerOpener],
    shared: &Arc<Shared>,
) -> Result<RunResult, RunError> {
    let ledger = spec.ledger.as_ref().map(|name| Ledger::create(Path::new(name))).transpose();
    let ledger = ledger.map_err(RunError::internal)?.map(Arc::new);
    local_runtime()?.block_on(set_up(spec, &**workload, openers, shared))?;
    let background = Background::start().map_err(|e| no_runtime(&e))?;
    let routed = spec.routed(workload.kinds());
    let mut threads = Vec::new();
    for thread in 0..spec.threads() {
        let portion = |part| share(spec, &routed, (part, thread), ledger.as_ref());
        let portions = (0..openers.len()).map(portion).collect();
        threads.push(start_thread(portions, workload, openers, shared, &background)?);
    }
    local_runtime()?.block_on(async {
        let clock =
            SystemClock::new().map_err(|e| RunError::internal(format!("open a timer: {e}")))?;
        let (mut ready, mut meters, mut alive) = (Vec::new(), Vec::new(), Vec::new());
        for thread in threads {
            ready.push(thread.ready);
            meters.push(thread.meters);
            alive.push(thread.alive);
        }
        let tids = match all_ready(ready).await {
            Ok(tids) => tids,
            Err(error) => {
                shared.stop(clock.now_ns()); // the other threads wait for the timeline
                return Err(error);
            }
        };
        let begin = match spec.begin {
            Begin::AtOnce => Instant { steady_ns: clock.now_ns(), unix_ns: clock.unix_ns() },
            Begin::WhenTold => told(&clock, shared).await?,
        };
        let timeline = timeline(spec, begin);
        shared.begin(timeline);
        let begun_late_ns = clock.now_ns() - timeline.start_ns;
        reach(&clock, shared, Shared::from_ns).await;
        let before = Account::read(&tids)?;
        reach(&clock, shared, |_| u64::MAX).await;
        let client = before.until(&Account::read(&tids)?, tids.len());
        drop(alive);
        let mut by_part: Vec<Vec<Meter<W::Audit>>> = openers.iter().map(|_| Vec::new()).collect();
        for meters in meters {
            let meters = meters.await.map_err(|_| RunError::internal("driver panicked".into()))?;
            by_part.iter_mut().zip(meters).for_each(|(part, meter)| part.push(meter));
        }
        if let Some(ledger) = &ledger {
            ledger.sync().map_err(RunError::internal)?;
        }
        let by_part = by_part.into_iter().map(|meters| merged(meters, workload.kinds()));
        let by_part: Vec<_> = by_part.collect::<Result<_, _>>()?;
        let named = spec.parts.iter().zip(&by_part);
        let parts = named.map(|(part, meter)| PartResult::new(&part.name, &**workload, meter));
        let parts = parts.collect::<Result<_, _>>()?;
        let meter = merged(by_part, workload.kinds())?;
        let tally = spec.share.is_part().then(|| serde_json::to_value(&meter.audit)).transpose();
        let tally =
            tally.map_err(|e| RunError::internal(format!("write the audit's counts: {e}")))?;
        let result = RunResult::new(&**workload, &meter, &timeline, shared, client)?;
        Ok(RunResult { begun_late_ns, parts, tally, ..result })
    })
}

fn merged<A: Audit>(meters: Vec<Meter<A>>, kinds: &[String]) -> Result<Meter<A>, RunError> {
    merge(meters, kinds).ok_or_else(|| RunError::internal("no thread was started".into()))
}

/// Where the sessions of each part go.
fn openers<W: Workload>(spec: &Spec, workload: &W) -> Result<Vec<ServerOpener>, RunError> {
    let opener = |connection: &ConnectionSpec| {
        let mut target = connection.target("pgdyno")?;
        target.options.extend(workload.settings());
        Ok(ServerOpener::new(target, workload.statements()))
    };
    if let Some(replica) = &spec.replica {
        let mut target = replica.connection.target("pgdyno")?;
        target.options.extend(workload.settings());
        return Ok(vec![opener(&spec.connection)?.with_replica(target)]);
    }
    if spec.parts.is_empty() {
        return Ok(vec![opener(&spec.connection)?]);
    }
    spec.parts.iter().map(|part| opener(&part.connection(&spec.connection))).collect()
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

/// Waits until the begin is told, then until it is there.
async fn told(clock: &impl Clock, shared: &Shared) -> Result<Instant, RunError> {
    let (mut told, mut ended) = (shared.await_begin(), shared.follow());
    loop {
        if shared.is_stopped() {
            return Err(RunError::internal("run was stopped before it began".into()));
        }
        let begin = *told.borrow_and_update();
        let now_ns = clock.now_ns();
        match begin {
            Some(begin) if begin.steady_ns <= now_ns => return Ok(begin),
            Some(begin) => tokio::select! {
                () = clock.sleep_until(begin.steady_ns) => {}
                _changed = ended.changed() => {}
            },
            None => tokio::select! {
                _changed = told.changed() => {}
                _changed = ended.changed() => {}
            },
        }
    }
}

fn timeline(spec: &Spec, begin: Instant) -> Timeline {
    let Instant { steady_ns: start_ns, unix_ns: start_unix_ns } = begin;
    let from_ns = start_ns + nanoseconds(spec.warmup_s);
    let until_ns = from_ns + nanoseconds(spec.window_s);
    Timeline {
        start_ns,
        start_unix_ns,
        window: Window { from_ns, until_ns },
        drain_ns: nanoseconds(spec.drain_s),
    }
}

/// Sleeps until an instant that may change, or until the window ends, whatever comes first.
async fn reach(clock: &impl Clock, shared: &Shared, at_ns: fn(&Shared) -> u64) {
    let mut timeline = shared.follow();
    loop {
        let goal_ns = at_ns(shared).min(shared.until_ns());
        if clock.now_ns() >= goal_ns {
            return;
        }
        tokio::select! {
            () = clock.sleep_until(goal_ns) => {}
            _changed = timeline.changed() => {}
        }
    }
}

/// What a thread has of a part: connections and terminals are dealt round robin.
fn share(
    spec: &Spec,
    routed: &[bool],
    (part, thread): (usize, usize),
    ledger: Option<&Arc<Ledger>>,
) -> Share {
    let threads = spec.threads();
    let connections = (thread..spec.own_connections()).step_by(threads).count();
    let seats = spec.share.hosts as usize * threads;
    let narrow = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let waiting_max = match spec.arrivals {
        ArrivalsSpec::Closed {} => 0,
        ArrivalsSpec::Open { waiting_max, .. } => {
            spec.share.of(waiting_max).div_ceil(threads).max(1)
        }
    };
    Share {
        worker: part * threads + thread,
        connections,
        replica_connections: (thread..spec.own_replica_connections()).step_by(threads).count(),
        seat: part * seats + spec.share.host as usize + spec.share.hosts as usize * thread,
        terminals: spec.share.terminals(narrow(thread), narrow(threads), spec.terminals),
        schedule: Schedule {
            arrivals: spec.arrivals,
            steps: spec.steps.clone(),
            part: part as u64,
            requests_max: spec.requests_max,
            deferred_max: spec.deferred_max.unwrap_or(connections),
            waiting_max,
            seed: spec.seed(),
            routed: routed.to_vec(),
        },
        slowdowns: spec.slowdowns.clone(),
        retries_max: spec.retries_max,
        give_up_ns: nanoseconds(spec.reconnect_give_up_s),
        ledger: ledger.cloned(),
    }
}

fn start_thread<W: Workload>(
    portions: Vec<Share>,
    workload: &Arc<W>,
    openers: &[ServerOpener],
    shared: &Arc<Shared>,
    background: &Background,
) -> Result<Thread<W::Audit>, RunError> {
    let (ready_sender, ready) = oneshot::channel();
    let (meter_sender, meters) = oneshot::channel();
    let (alive, released) = oneshot::channel();
    let (workload, shared) = (Arc::clone(workload), Arc::clone(shared));
    let portions: Vec<_> = portions.into_iter().zip(openers.iter().cloned()).collect();
    let background = background.clone();
    let body = move || {
        let _within = background.enter();
        // Without a loop the senders are dropped unused, and the time keeper hears of that.
        let _no_loop = reactor::block_on(async {
            let counted = run_thread(portions, workload, shared, ready_sender).await;
            if let Some(counted) = counted {
                // The time keeper has given up and does not listen.
                let _unheard = meter_sender.send(counted);
                let _dropped = released.await;
            }
        });
    };
    thread::Builder::new()
        .name("pgdyno-drive".into())
        .spawn(body)
        .map_err(|e| RunError::internal(format!("start a thread: {e}")))?;
    Ok(Thread { ready, meters, alive })
}

/// Connects, tells, waits for the timeline, runs it. `None`: there was nothing to run.
async fn run_thread<W: Workload>(
    portions: Vec<(Share, ServerOpener)>,
    workload: Arc<W>,
    shared: Arc<Shared>,
    ready: oneshot::Sender<Result<Option<i32>, RunError>>,
) -> Option<Vec<Meter<W::Audit>>> {
    let mut followed = shared.follow();
    let workers = connect_all(portions, &shared).await;
    let tid = gettid().as_raw();
    let (told, workers) = match workers {
        Ok(workers) => (Ok(workers.as_ref().map(|_| tid)), workers),
        Err(error) => (Err(error), None),
    };
    ready.send(told).ok()?;
    let workers = workers?;
    let timeline = loop {
        followed.changed().await.ok()?;
        if let Some(timeline) = *followed.borrow_and_update() {
            break timeline;
        }
        if shared.is_stopped() {
            return None; // another thread could not connect
        }
    };
    let meters = RefCell::new(Vec::new());
    let running = workers.into_iter().enumerate().map(|(part, ready)| {
        let Ready { share, opener, clock, sessions } = ready;
        let (workload, shared) = (Arc::clone(&workload), Arc::clone(&shared));
        let worker = run_worker(share, workload, clock, opener, shared, timeline, sessions);
        let meters = &meters;
        let running = async move {
            let meter = worker.await;
            meters.borrow_mut().push((part, meter));
        };
        Box::pin(running) as Pin<Box<dyn Future<Output = ()>>>
    });
    Tasks::new(running).all().await;
    let mut meters = meters.into_inner();
    meters.sort_by_key(|(part, _)| *part);
    Some(meters.into_iter().map(|(_, meter)| meter).collect())
}

/// A worker before the timeline is set.
struct Ready {
    share: Share,
    opener: ServerOpener,
    clock: SystemClock,
    sessions: Vec<Session<Stream>>,
}

/// The connections of a thread's workers; `None` where the run was stopped meanwhile.
async fn connect_all(
    portions: Vec<(Share, ServerOpener)>,
    shared: &Shared,
) -> Result<Option<Vec<Ready>>, RunError> {
    let mut workers = Vec::with_capacity(portions.len());
    for (share, opener) in portions {
        let clock =
            SystemClock::new().map_err(|e| RunError::internal(format!("open a timer: {e}")))?;
        let sessions = connect(&share, &clock, &opener, shared).await;
        let sessions = sessions.map_err(|e| RunError::opening(&opener, &e))?;
        let Some(mut sessions) = sessions else { return Ok(None) };
        if let Some(replica) = opener.replica() {
            let (count, give_up_ns) = (share.replica_connections, share.give_up_ns);
            let more = connect_some(count, give_up_ns, &clock, &replica, shared).await;
            let more = more.map_err(|e| RunError::opening(&replica, &e))?;
            let Some(more) = more else { return Ok(None) };
            sessions.extend(more);
        }
        workers.push(Ready { share, opener, clock, sessions });
    }
    Ok(Some(workers))
}

fn local_runtime() -> Result<Runtime, RunError> {
    runtime::Builder::new_current_thread().enable_all().build().map_err(|e| no_runtime(&e))
}

fn no_runtime(error: &io::Error) -> RunError {
    RunError::internal(format!("start a runtime: {error}"))
}
