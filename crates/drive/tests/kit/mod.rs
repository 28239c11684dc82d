//! A small workload, sessions with a scripted server, and a worker on virtual time.

#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::unwrap_used, reason = "a failed test panics")]
#![allow(unreachable_pub, missing_docs, reason = "a module of tests")]

use std::{fmt, sync::Arc};

use drive::{
    clock::{Clock, TokioClock},
    connection::opener::Opener,
    measure::{counts::Counts, meter::Meter},
    schedule::{
        arrivals::{ArrivalsSpec, Terminals},
        queue::Schedule,
        ramps::Step,
        slowdowns::Slowdown,
        timeline::{Timeline, Window},
    },
    shared::Shared,
    worker::{
        Share, merge,
        thread::{connect, run_worker},
    },
};
use serde::{Deserialize, Serialize};
use sim::{Scripted, serve};
use tokio::{io::DuplexStream, task::LocalSet};
use wire::{
    CancelKey, Error, Exchange, Kind, Param, Session, Statement, StatementId, Target, Timestamp,
};
use workload::{Audit, AuditLine, Outcome, Timing, Workload};

pub const MS: u64 = 1_000_000;
pub const SECOND: u64 = 1_000 * MS;

/// Two kinds: `work` is answered, `background` is deferred. What a request does is a function of
/// (seed, terminal, number): `UPDATE` with these three.
#[derive(Clone, Debug, Default)]
pub struct Simple {
    pub seed: u64,
    pub keying_ns: u64,
    pub think_ns: u64,
    /// Every so many requests of a terminal one is deferred; 0: none.
    pub deferred_every: u64,
    /// Every so many requests of a terminal one rolls back; 0: none.
    pub rollback_every: u64,
    /// All statements of a request travel together.
    pub pipelined: bool,
    kinds: Vec<String>,
    statements: Vec<Statement>,
}

pub const KINDS: [&str; 2] = ["work", "background"];
const BEGIN: StatementId = StatementId(0);
const COMMIT: StatementId = StatementId(1);
const UPDATE: StatementId = StatementId(2);
const ROLLBACK: StatementId = StatementId(3);

#[derive(Clone, Debug)]
pub struct SimpleRequest {
    pub terminal: u32,
    pub number: u64,
    pub value: i64,
    rolls_back: bool,
}

#[derive(Debug, Default, Deserialize, Serialize)]
pub struct Tally {
    pub requests: Vec<(u32, u64)>,
}

impl Audit for Tally {
    type Request = SimpleRequest;
    fn add(&mut self, request: &SimpleRequest, _: Outcome) {
        self.requests.push((request.terminal, request.number));
    }
    fn merge(&mut self, other: &Self) {
        self.requests.extend(&other.requests);
    }
}

impl Simple {
    pub fn new(seed: u64) -> Self {
        let statement = |name: &str, sql: &str, params: &[Kind]| Statement {
            name: name.to_owned(),
            sql: sql.to_owned(),
            params: params.to_vec(),
            results: wire::Results::Binary,
        };
        let update = "UPDATE t SET v = $3 WHERE terminal = $1 AND number = $2";
        let statements = vec![
            statement("begin", "BEGIN", &[]),
            statement("commit", "COMMIT", &[]),
            statement("update", update, &[Kind::I32, Kind::I64, Kind::I64]),
            statement("rollback", "ROLLBACK", &[]),
        ];
        let kinds = KINDS.map(str::to_owned).to_vec();
        Self { seed, kinds, statements, ..Self::default() }
    }
}

fn every(number: u64, period: u64) -> bool {
    period > 0 && number % period == period - 1
}

impl Workload for Simple {
    type Request = SimpleRequest;
    type Audit = Tally;

    fn kinds(&self) -> &[String] {
        &self.kinds
    }

    fn statements(&self) -> &[Statement] {
        &self.statements
    }

    fn request(&self, terminal: u32, number: u64) -> (SimpleRequest, Timing) {
        let mixed = (self.seed ^ (u64::from(terminal) << 32) ^ number)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(31);
        let deferred = every(number, self.deferred_every);
        let request = SimpleRequest {
            terminal,
            number,
            value: i64::from_ne_bytes(mixed.to_ne_bytes()),
            rolls_back: every(number, self.rollback_every),
        };
        let timing = Timing {
            kind: usize::from(deferred),
            keying_ns: self.keying_ns,
            think_ns: self.think_ns,
            deferred,
        };
        (request, timing)
    }

    fn digest(&self, request: &SimpleRequest) -> u64 {
        request.value.cast_unsigned()
    }

    async fn perform<X: Exchange>(
        &self,
        session: &mut X,
        request: &SimpleRequest,
        _now: Timestamp,
    ) -> Result<Outcome, Error> {
        session.queue(BEGIN, &[]);
        if !self.pipelined {
            session.exchange().await?;
        }
        let terminal = i32::try_from(request.terminal).unwrap();
        let number = i64::try_from(request.number).unwrap();
        let params = [Param::I32(terminal), Param::I64(number), Param::I64(request.value)];
        session.queue(UPDATE, &params);
        if !self.pipelined {
            session.exchange().await?;
        }
        session.queue(if request.rolls_back { ROLLBACK } else { COMMIT }, &[]);
        session.exchange().await?;
        Ok(if request.rolls_back { Outcome::RolledBack } else { Outcome::Committed })
    }

    fn audit_lines(&self, _: &Tally) -> Vec<AuditLine> {
        Vec::new()
    }
}

/// Sessions with a scripted server in the same thread, over streams that cut bytes.
pub struct SimDial {
    pub scripted: Scripted,
    statements: Vec<Statement>,
}

impl fmt::Display for SimDial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the scripted server")
    }
}

impl Opener for SimDial {
    type Stream = DuplexStream;

    async fn open(&self) -> Result<Session<DuplexStream>, Error> {
        let (client, server) = tokio::io::duplex(512);
        let scripted = self.scripted.clone();
        tokio::task::spawn_local(async move {
            // A client that is dropped in the middle of a message is no error of the server's.
            let _gone = serve(server, scripted).await;
        });
        Session::start(client, &Target::new("/", 1, "u", "d"), &self.statements).await
    }

    async fn cancel(&self, _: CancelKey) {}
}

/// What a run on virtual time is made of.
pub struct Virtual {
    pub workload: Simple,
    /// Of all workers together.
    pub connections: usize,
    pub terminals: u32,
    /// Workers that connections and terminals are dealt to.
    pub workers: usize,
    pub warmup_ns: u64,
    pub window_ns: u64,
    pub drain_ns: u64,
    pub deferred_max: usize,
    pub arrivals: ArrivalsSpec,
    pub waiting_max: usize,
    pub steps: Vec<Step>,
    pub slowdowns: Vec<Slowdown>,
    pub requests_max: Option<u64>,
    pub retries_max: u32,
    pub give_up_ns: u64,
    /// Ask for an early end this long after the start.
    pub stop_after_ns: Option<u64>,
}

impl Default for Virtual {
    fn default() -> Self {
        Self {
            workload: Simple::new(1),
            connections: 1,
            terminals: 1,
            workers: 1,
            warmup_ns: 0,
            window_ns: 10 * SECOND,
            drain_ns: 10 * SECOND,
            deferred_max: 1,
            arrivals: ArrivalsSpec::default(),
            waiting_max: 1_000_000,
            steps: Vec::new(),
            slowdowns: Vec::new(),
            requests_max: None,
            retries_max: 10,
            give_up_ns: 30 * SECOND,
            stop_after_ns: None,
        }
    }
}

pub struct Outcomes {
    pub meter: Meter<Tally>,
    pub shared: Arc<Shared>,
    /// From the start of the warm-up to the end of the drain.
    pub lasted_ns: u64,
}

impl Outcomes {
    pub fn window(&self, kind: usize) -> Counts {
        self.meter.kinds[kind].window
    }

    pub fn run(&self, kind: usize) -> Counts {
        self.meter.kinds[kind].run
    }
}

impl Virtual {
    /// Runs all workers against the scripted server, on a clock that jumps to the next event.
    pub fn run(self, scripted: &Scripted) -> Outcomes {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .build()
            .unwrap();
        LocalSet::new().block_on(&runtime, self.run_workers(scripted.clone()))
    }

    /// What a worker has, dealt as the driver deals its threads'.
    pub fn share(&self, worker: usize) -> Share {
        let narrow = |number: usize| u32::try_from(number).unwrap();
        Share {
            worker,
            seat: worker,
            connections: (worker..self.connections).step_by(self.workers).count(),
            replica_connections: 0,
            terminals: Terminals {
                first: narrow(worker),
                stride: narrow(self.workers),
                all: self.terminals,
            },
            schedule: Schedule {
                arrivals: self.arrivals,
                steps: self.steps.clone(),
                part: 0,
                requests_max: self.requests_max,
                deferred_max: self.deferred_max,
                waiting_max: self.waiting_max,
                seed: 1,
                routed: Vec::new(),
            },
            slowdowns: self.slowdowns.clone(),
            retries_max: self.retries_max,
            give_up_ns: self.give_up_ns,
            ledger: None,
        }
    }

    /// When its phases begin, after a start at an instant.
    pub fn timeline(&self, start_ns: u64, start_unix_ns: u64) -> Timeline {
        let from_ns = start_ns + self.warmup_ns;
        let window = Window { from_ns, until_ns: from_ns + self.window_ns };
        Timeline { start_ns, start_unix_ns, window, drain_ns: self.drain_ns }
    }

    async fn run_workers(self, scripted: Scripted) -> Outcomes {
        let clock = TokioClock::new();
        let workload = Arc::new(self.workload.clone());
        let statements = workload.statements().to_vec();
        let shared = Arc::new(Shared::new(self.workers, KINDS.len()));
        let mut workers = Vec::new();
        for worker in 0..self.workers {
            let share = self.share(worker);
            let opener = SimDial { scripted: scripted.clone(), statements: statements.clone() };
            let sessions = connect(&share, &clock, &opener, &shared).await.unwrap().unwrap();
            workers.push((share, opener, sessions));
        }
        let start_ns = clock.now_ns();
        let timeline = self.timeline(start_ns, clock.unix_ns());
        shared.begin(timeline);
        if let Some(after_ns) = self.stop_after_ns {
            let (shared, clock) = (Arc::clone(&shared), clock.clone());
            tokio::task::spawn_local(async move {
                clock.sleep_until(start_ns + after_ns).await;
                shared.stop(clock.now_ns());
            });
        }
        let mut running = Vec::new();
        for (share, opener, sessions) in workers {
            let (workload, theirs) = (Arc::clone(&workload), Arc::clone(&shared));
            let worker =
                run_worker(share, workload, clock.clone(), opener, theirs, timeline, sessions);
            running.push(tokio::task::spawn_local(worker));
        }
        let mut meters = Vec::new();
        for worker in running {
            meters.push(worker.await.unwrap());
        }
        let meter = merge(meters, &KINDS.map(str::to_owned)).unwrap();
        Outcomes { meter, shared, lasted_ns: clock.now_ns() - start_ns }
    }
}

/// Whether a call is the statement that carries the request.
pub fn is_update(call: &sim::Call) -> bool {
    call.sql.starts_with("UPDATE")
}

/// Terminal, number and value of such a call.
pub fn identity(call: &sim::Call) -> (i32, i64, i64) {
    let field = |n: usize| call.params[n].clone().unwrap();
    (
        i32::from_be_bytes(field(0).try_into().unwrap()),
        i64::from_be_bytes(field(1).try_into().unwrap()),
        i64::from_be_bytes(field(2).try_into().unwrap()),
    )
}
